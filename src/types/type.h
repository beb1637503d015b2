/* The data types that limiters live in, and their server callbacks: the same for every kind. */
#ifndef RL_TYPES_TYPE_H
#define RL_TYPES_TYPE_H

#include "redismodule.h"
#include "types/value.h"

struct rl_type {
    const char *name; /* nine characters, once released for ever */
    const struct rl_kind *kind;
    RedisModuleTypeLoadFunc rdb_load; /* rl_type_rdb_load with this kind: the server doesn't tell which type it loads */
    RedisModuleType *handle;          /* set when registered */
};

/* Every type of this module, ended by NULL: the table in module.c. */
extern struct rl_type *const rl_types[];

bool rl_type_register(RedisModuleCtx *ctx, struct rl_type *type);

const struct rl_type *rl_type_by_wire(uint8_t wire);

/* NULL for a type of another module. */
const struct rl_type *rl_type_by_handle(const RedisModuleType *handle);

void *rl_type_rdb_load(RedisModuleIO *io, int encver, const struct rl_kind *kind);

#endif
