/* CL.THROTTLE key max_burst count period_s [quantity]: redis-cell's command on the bucket of RL.TOKENBUCKET. */
#include "commands/throttle.h"

#include "algo/notation.h"
#include "algo/tokenbucket.h"
#include "commands/limiter.h"
#include "server/config.h"
#include "server/reply.h"
#include "types/tokenbucket.h"

static bool parse(struct rl_args *a, struct rl_request *req) {
    struct rl_tokenbucket_limit *lim = (struct rl_tokenbucket_limit *)(void *)req->limit;
    int64_t max_burst, period_s, quantity = 1;
    if (!rl_args_number(a, "max_burst", 0, RL_UNITS_MAX - 1, &max_burst) || !rl_args_units(a, "count", &lim->count) ||
        !rl_args_number(a, "period", 1, RL_PERIOD_MAX_MS / 1000, &period_s) ||
        (rl_args_more(a) && !rl_args_number(a, "quantity", 0, RL_UNITS_MAX, &quantity))) {
        return false;
    }
    lim->burst = max_burst + 1;
    lim->period_us = period_s * 1000000;
    if (!rl_tokenbucket_limit_valid(lim)) {
        return rl_reply_error(a->ctx, "ERR max_burst must be small enough to refill within ten years at this rate");
    }
    /* A quantity of 0 looks, and is never limited. */
    req->keep_ms = 0;
    req->ask = (struct rl_ask){.cost = quantity, .mode = RL_TAKE, .peek = quantity == 0};
    return true;
}

/* redis-cell leaves the instant at which the bucket will be full, in nanoseconds. */
static bool adopt(const char *bytes, size_t len, const void *limit, int64_t now_us, void *state) {
    struct rl_tokenbucket *b = state;
    int64_t full_at_ns;
    if (!rl_notation_digits(bytes, len, 0, INT64_MAX / 2, &full_at_ns)) return false;
    int64_t owes_us = (full_at_ns + 999) / 1000 - now_us;
    b->at_us = now_us;
    b->owed = owes_us > 0 ? (rl_u128)owes_us * (uint64_t)((const struct rl_tokenbucket_limit *)limit)->count : 0;
    return rl_tokenbucket_valid(b, limit);
}

static rl_key_adopt adopts(void) {
    return rl_config_cell_import() ? adopt : NULL;
}

static struct rl_stats stats = {.command = "cl.throttle"};

static const struct rl_limiter limiter = {.type = &rl_tokenbucket_type, .stats = &stats, .adopts = adopts};

static int64_t seconds_up(int64_t ms) {
    return (ms + 999) / 1000;
}

static int run(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    struct rl_args args = {.ctx = ctx, .argv = argv, .argc = argc, .at = 2};
    struct rl_request req;
    struct rl_verdict v;
    if (argc < 5 || argc > 6) return RedisModule_WrongArity(ctx);
    if (!parse(&args, &req) || !rl_limiter_decide(ctx, argv[1], &limiter, &req, &v)) return REDISMODULE_OK;

    bool limited = v.allowed < req.ask.cost;
    RedisModule_ReplyWithArray(ctx, 5);
    RedisModule_ReplyWithLongLong(ctx, limited);
    RedisModule_ReplyWithLongLong(ctx, v.limit);
    RedisModule_ReplyWithLongLong(ctx, v.remaining > 0 ? v.remaining : 0);
    RedisModule_ReplyWithLongLong(ctx, limited && v.wait_ms != RL_NEVER ? seconds_up(v.wait_ms) : -1);
    return RedisModule_ReplyWithLongLong(ctx, seconds_up(v.reset_ms));
}

static RedisModuleCommandArg args[] = {
    {.name = "key", .type = REDISMODULE_ARG_TYPE_KEY, .key_spec_index = 0},
    {.name = "max_burst", .type = REDISMODULE_ARG_TYPE_INTEGER},
    {.name = "count", .type = REDISMODULE_ARG_TYPE_INTEGER},
    {.name = "period", .type = REDISMODULE_ARG_TYPE_INTEGER},
    {RL_LIMITER_OPTION("quantity", REDISMODULE_ARG_TYPE_INTEGER)},
    {0},
};

static const RedisModuleCommandInfo info = {
    .version = REDISMODULE_COMMAND_INFO_VERSION,
    .summary = "Takes tokens from a bucket, with the arguments and replies of redis-cell.",
    .complexity = "O(1)",
    .since = RL_SINCE,
    .arity = -5,
    .key_specs = (RedisModuleCommandKeySpec *)(uintptr_t)rl_command_updates_key,
    .args = args,
};

const struct rl_command rl_throttle_command = {
    .name = "CL.THROTTLE",
    .run = run,
    .flags = "write deny-oom fast",
    .categories = "write fast",
    .info = &info,
    .stats = &stats,
};
