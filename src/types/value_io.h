/* What the server asks of a value, wherever it is held: in a key of its own or as one of several. */
#ifndef RL_TYPES_VALUE_IO_H
#define RL_TYPES_VALUE_IO_H

#include "redismodule.h"
#include "types/value.h"

/* The words of the limit, the three totals, the encoded state. Loading trusts nothing: NULL where no value can have led
 * to what is read. */
void rl_value_save(RedisModuleIO *io, struct rl_value *value);
struct rl_value *rl_value_load(RedisModuleIO *io, const struct rl_kind *kind);

size_t rl_value_memory(const struct rl_value *value);
struct rl_value *rl_value_copy(const struct rl_value *value);
void rl_value_digest(RedisModuleDigest *md, struct rl_value *value);

/* The value at its new place, or where it was. */
struct rl_value *rl_value_defrag(RedisModuleDefragCtx *ctx, struct rl_value *value);

#endif
