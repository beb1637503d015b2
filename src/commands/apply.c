/* RL.APPLY key effect: what a primary, an AOF or a slot import sends in place of the call that a client made. */
#include "commands/apply.h"

#include "server/leases_key.h"
#include "server/policy_key.h"
#include "types/memory.h"

static bool trusted(RedisModuleCtx *ctx) {
    int flags = RedisModule_GetContextFlags(ctx);
    if (flags & REDISMODULE_CTX_FLAGS_REPLICATED) return true;
    /* While an AOF is loaded clients are kept out; while a replica loads beside its old data they are not. */
    return (flags & REDISMODULE_CTX_FLAGS_LOADING) && !(flags & REDISMODULE_CTX_FLAGS_ASYNC_LOADING);
}

static bool apply_leases(RedisModuleCtx *ctx, RedisModuleString *name, const unsigned char *bytes, size_t len) {
    struct rl_leases_effect effect;
    if (!rl_leases_effect_decode(bytes, len, &effect)) return false;
    bool good = rl_leases_key_apply(ctx, name, &effect);
    rl_free(effect.ids);
    return good;
}

static bool apply(RedisModuleCtx *ctx, RedisModuleString *name, const unsigned char *bytes, size_t len) {
    if (rl_leases_effect_is(bytes, len)) return apply_leases(ctx, name, bytes, len);
    if (rl_policy_effect_is(bytes, len)) {
        struct rl_policy_effect effect;
        return rl_policy_effect_decode(bytes, len, &effect) && rl_policy_key_apply(ctx, name, &effect);
    }
    struct rl_effect effect;
    return rl_effect_decode(bytes, len, &effect) && rl_key_apply(ctx, name, &effect);
}

static int run(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 3) return RedisModule_WrongArity(ctx);
    if (!trusted(ctx)) {
        return RedisModule_ReplyWithError(ctx, "ERR RL.APPLY is internal: only a primary or an AOF may call it");
    }
    size_t len;
    const char *bytes = RedisModule_StringPtrLen(argv[2], &len);
    if (!apply(ctx, argv[1], (const unsigned char *)bytes, len)) {
        RedisModule_Log(ctx, "warning", "RL.APPLY: an effect that can't be applied was left out");
        return RedisModule_ReplyWithError(ctx, "ERR RL.APPLY: broken effect");
    }
    /* For the AOF of a replica, and for its own replicas. */
    RedisModule_ReplicateVerbatim(ctx);
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}

static RedisModuleCommandArg args[] = {
    {.name = "key", .type = REDISMODULE_ARG_TYPE_KEY, .key_spec_index = 0},
    {.name = "effect", .type = REDISMODULE_ARG_TYPE_STRING},
    {0},
};

static const RedisModuleCommandInfo info = {
    .version = REDISMODULE_COMMAND_INFO_VERSION,
    .summary = "Internal: applies the effect of a call. Closed to clients.",
    .complexity = "O(1)",
    .since = RL_SINCE,
    .arity = 3,
    .key_specs = (RedisModuleCommandKeySpec *)(uintptr_t)rl_command_updates_key,
    .args = args,
};

/* Not deny-oom: a replica must be able to follow its primary. */
const struct rl_command rl_apply_command = {
    .name = "RL.APPLY",
    .run = run,
    .flags = "write fast",
    .categories = "write fast dangerous",
    .info = &info,
};
