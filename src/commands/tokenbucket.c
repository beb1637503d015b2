/* RL.TOKENBUCKET key rate [BURST n] [options] */
#include "commands/tokenbucket.h"

#include "algo/tokenbucket.h"
#include "server/reply.h"
#include "types/tokenbucket.h"

bool rl_tokenbucket_parse(struct rl_args *a, void *limit) {
    struct rl_tokenbucket_limit *lim = limit;
    int64_t period_ms;
    if (!rl_args_rate(a, "rate", &lim->count, &period_ms)) return false;
    lim->period_us = period_ms * 1000;
    lim->burst = lim->count;
    return true;
}

static bool read_burst(struct rl_args *a, const char *name, void *limit) {
    return rl_args_units(a, name, &((struct rl_tokenbucket_limit *)limit)->burst);
}

const struct rl_option rl_tokenbucket_options[] = {{"BURST", read_burst, 0}, {0}};

bool rl_tokenbucket_finish(struct rl_args *a, void *limit) {
    return rl_tokenbucket_limit_valid(limit) ||
           rl_reply_error(a->ctx, "ERR BURST must be small enough to refill within ten years at this rate");
}

static struct rl_stats stats = {.command = "rl.tokenbucket"};

const struct rl_limiter rl_tokenbucket_limiter = {
    .type = &rl_tokenbucket_type,
    .rule = "tokenbucket",
    .stats = &stats,
    .parse = rl_tokenbucket_parse,
    .options = rl_tokenbucket_options,
    .finish = rl_tokenbucket_finish,
};

static int run(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    return rl_limiter_run(ctx, argv, argc, &rl_tokenbucket_limiter);
}

RedisModuleCommandArg rl_tokenbucket_args[] = {
    {.name = "key", .type = REDISMODULE_ARG_TYPE_KEY, .key_spec_index = 0},
    {.name = "rate", .type = REDISMODULE_ARG_TYPE_STRING},
    {RL_LIMITER_OPTION("burst", REDISMODULE_ARG_TYPE_INTEGER), .token = "BURST"},
    RL_LIMITER_SHARED_ARGS,
    {0},
};

static const RedisModuleCommandInfo info = {
    .version = REDISMODULE_COMMAND_INFO_VERSION,
    .summary = "Takes tokens from a bucket that refills continuously at a rate, up to a burst.",
    .complexity = "O(1)",
    .since = RL_SINCE,
    .arity = -3,
    .key_specs = (RedisModuleCommandKeySpec *)(uintptr_t)rl_command_updates_key,
    .args = rl_tokenbucket_args,
};

const struct rl_command rl_tokenbucket_command = {
    .name = "RL.TOKENBUCKET",
    .run = run,
    .flags = "write deny-oom fast",
    .categories = "write fast",
    .info = &info,
    .stats = &stats,
};
