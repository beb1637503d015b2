#include "server/reply.h"

#include <stdarg.h>
#include <stdio.h>

void rl_reply_verdict_fields(RedisModuleCtx *ctx, const struct rl_verdict *v) {
    RedisModule_ReplyWithLongLong(ctx, v->allowed);
    RedisModule_ReplyWithLongLong(ctx, v->limit);
    RedisModule_ReplyWithLongLong(ctx, v->remaining);
    RedisModule_ReplyWithLongLong(ctx, v->wait_ms);
    RedisModule_ReplyWithLongLong(ctx, v->reset_ms);
}

int rl_reply_verdict(RedisModuleCtx *ctx, const struct rl_verdict *v) {
    RedisModule_ReplyWithArray(ctx, 5);
    rl_reply_verdict_fields(ctx, v);
    return REDISMODULE_OK;
}

bool rl_reply_error(RedisModuleCtx *ctx, const char *format, ...) {
    char message[512];
    if (!ctx) return false;
    va_list ap;
    va_start(ap, format);
    vsnprintf(message, sizeof(message), format, ap);
    va_end(ap);
    RedisModule_ReplyWithError(ctx, message);
    return false;
}

void rl_reply_field(RedisModuleCtx *ctx, const char *name, int64_t value) {
    RedisModule_ReplyWithCString(ctx, name);
    RedisModule_ReplyWithLongLong(ctx, value);
}

void rl_reply_text_field(RedisModuleCtx *ctx, const char *name, const char *value) {
    RedisModule_ReplyWithCString(ctx, name);
    RedisModule_ReplyWithCString(ctx, value);
}

void rl_reply_bytes(RedisModuleCtx *ctx, const char *bytes, size_t len) {
    RedisModule_ReplyWithStringBuffer(ctx, bytes, len);
}
