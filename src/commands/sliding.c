/* RL.SLIDING key rate [EXACT | SLOTS n] [options] */
#include "commands/sliding.h"

#include "algo/sliding.h"
#include "server/reply.h"
#include "types/sliding.h"

static bool parse(struct rl_args *a, void *limit) {
    struct rl_sliding_limit *lim = limit;
    lim->slots = 0;
    return rl_args_rate(a, "rate", &lim->count, &lim->period_ms);
}

static bool read_slots(struct rl_args *a, const char *name, void *limit) {
    return rl_args_number(a, name, RL_SLIDING_SLOTS_MIN, RL_SLIDING_SLOTS_MAX,
                          &((struct rl_sliding_limit *)limit)->slots);
}

enum { EXACT, SLOTS };
static const struct rl_option options[] = {
    [EXACT] = {"EXACT", NULL, RL_BIT(SLOTS)},
    [SLOTS] = {"SLOTS", read_slots, RL_BIT(EXACT)},
    {0},
};

static bool finish(struct rl_args *a, void *limit) {
    return rl_sliding_limit_valid(limit) ||
           rl_reply_error(a->ctx, "ERR rate must have a count up to 65536 for EXACT: use SLOTS n, such as SLOTS 64");
}

static struct rl_stats stats = {.command = "rl.sliding"};

const struct rl_limiter rl_sliding_limiter = {
    .type = &rl_sliding_type,
    .rule = "sliding",
    .stats = &stats,
    .parse = parse,
    .options = options,
    .finish = finish,
};

static int run(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    return rl_limiter_run(ctx, argv, argc, &rl_sliding_limiter);
}

static RedisModuleCommandArg modes[] = {
    {.name = "exact", .type = REDISMODULE_ARG_TYPE_PURE_TOKEN, .token = "EXACT"},
    {.name = "slots", .type = REDISMODULE_ARG_TYPE_INTEGER, .token = "SLOTS"},
    {0},
};

static RedisModuleCommandArg args[] = {
    {.name = "key", .type = REDISMODULE_ARG_TYPE_KEY, .key_spec_index = 0},
    {.name = "rate", .type = REDISMODULE_ARG_TYPE_STRING},
    {RL_LIMITER_OPTION("precision", REDISMODULE_ARG_TYPE_ONEOF), .subargs = modes},
    RL_LIMITER_SHARED_ARGS,
    {0},
};

static const RedisModuleCommandInfo info = {
    .version = REDISMODULE_COMMAND_INFO_VERSION,
    .summary = "Takes units of which at most so many pass in any window of time, however it is placed.",
    .complexity = "O(log(N)) with N grants in the window, O(1) amortized; with SLOTS O(n) at worst, O(1) amortized.",
    .since = RL_SINCE,
    .arity = -3,
    .key_specs = (RedisModuleCommandKeySpec *)(uintptr_t)rl_command_updates_key,
    .args = args,
};

const struct rl_command rl_sliding_command = {
    .name = "RL.SLIDING",
    .run = run,
    .flags = "write deny-oom fast",
    .categories = "write fast",
    .info = &info,
    .stats = &stats,
};
