/* Replies. */
#ifndef RL_SERVER_REPLY_H
#define RL_SERVER_REPLY_H

#include "algo/verdict.h"
#include "redismodule.h"

/* The five integers; or only them, in an array that was begun. */
void rl_reply_verdict_fields(RedisModuleCtx *ctx, const struct rl_verdict *v);
int rl_reply_verdict(RedisModuleCtx *ctx, const struct rl_verdict *v);

/* An error, formatted; it begins with its prefix. Always false, so that whoever finds an error can return it. Without a
 * context, as where a file is read, nobody is told. */
__attribute__((format(printf, 2, 3))) bool rl_reply_error(RedisModuleCtx *ctx, const char *format, ...);

/* Bytes of any kind. */
void rl_reply_bytes(RedisModuleCtx *ctx, const char *bytes, size_t len);

/* A field of a map. */
void rl_reply_field(RedisModuleCtx *ctx, const char *name, int64_t value);
void rl_reply_text_field(RedisModuleCtx *ctx, const char *name, const char *value);

#endif
