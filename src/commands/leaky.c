/* RL.LEAKY key rate [BURST n] [options]: the bucket of RL.TOKENBUCKET, asked how long to hold what it grants. */
#include "commands/leaky.h"

#include "algo/tokenbucket.h"
#include "commands/tokenbucket.h"
#include "types/tokenbucket.h"

static int64_t hold_ms(const void *state, const void *limit, const struct rl_moment *m) {
    return rl_tokenbucket_hold_ms(state, limit, m->now_us);
}

static struct rl_stats stats = {.command = "rl.leaky"};

const struct rl_limiter rl_leaky_limiter = {
    .type = &rl_tokenbucket_type,
    .rule = "leaky",
    .stats = &stats,
    .parse = rl_tokenbucket_parse,
    .options = rl_tokenbucket_options,
    .finish = rl_tokenbucket_finish,
    .hold_ms = hold_ms,
};

static int run(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    return rl_limiter_run(ctx, argv, argc, &rl_leaky_limiter);
}

static const RedisModuleCommandInfo info = {
    .version = REDISMODULE_COMMAND_INFO_VERSION,
    .summary =
        "Takes tokens from a bucket, and tells how long to hold the request so that what leaves is evenly spaced.",
    .complexity = "O(1)",
    .since = RL_SINCE,
    .arity = -3,
    .key_specs = (RedisModuleCommandKeySpec *)(uintptr_t)rl_command_updates_key,
    .args = rl_tokenbucket_args,
};

const struct rl_command rl_leaky_command = {
    .name = "RL.LEAKY",
    .run = run,
    .flags = "write deny-oom fast",
    .categories = "write fast",
    .info = &info,
    .stats = &stats,
};
