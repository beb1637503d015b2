/* RL.FIXED key rate [ALIGN] [options] */
#include "commands/fixed.h"

#include "algo/fixed.h"
#include "types/fixed.h"

static bool parse(struct rl_args *a, void *limit) {
    struct rl_fixed_limit *lim = limit;
    lim->align = 0;
    return rl_args_rate(a, "rate", &lim->count, &lim->period_ms);
}

static bool read_align(struct rl_args *a, const char *name, void *limit) {
    (void)a;
    (void)name;
    ((struct rl_fixed_limit *)limit)->align = 1;
    return true;
}

static const struct rl_option options[] = {{"ALIGN", read_align, 0}, {0}};

static struct rl_stats stats = {.command = "rl.fixed"};

const struct rl_limiter rl_fixed_limiter = {
    .type = &rl_fixed_type,
    .rule = "fixed",
    .stats = &stats,
    .parse = parse,
    .options = options,
};

static int run(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    return rl_limiter_run(ctx, argv, argc, &rl_fixed_limiter);
}

static RedisModuleCommandArg args[] = {
    {.name = "key", .type = REDISMODULE_ARG_TYPE_KEY, .key_spec_index = 0},
    {.name = "rate", .type = REDISMODULE_ARG_TYPE_STRING},
    {RL_LIMITER_OPTION("align", REDISMODULE_ARG_TYPE_PURE_TOKEN), .token = "ALIGN"},
    RL_LIMITER_SHARED_ARGS,
    {0},
};

static const RedisModuleCommandInfo info = {
    .version = REDISMODULE_COMMAND_INFO_VERSION,
    .summary = "Takes units from a counter that starts anew with each window of time.",
    .complexity = "O(1)",
    .since = RL_SINCE,
    .arity = -3,
    .key_specs = (RedisModuleCommandKeySpec *)(uintptr_t)rl_command_updates_key,
    .args = args,
};

const struct rl_command rl_fixed_command = {
    .name = "RL.FIXED",
    .run = run,
    .flags = "write deny-oom fast",
    .categories = "write fast",
    .info = &info,
    .stats = &stats,
};
