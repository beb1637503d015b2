/* RL.HISTORY key [COUNT n] */
#include "commands/history.h"

#include "commands/quota.h"
#include "server/clock.h"
#include "server/reply.h"
#include "types/quota.h"

static bool read_count(struct rl_args *a, const char *name, void *count) {
    return rl_args_number(a, name, 1, RL_QUOTA_HISTORY_MAX, count);
}

static const struct rl_option options[] = {{"COUNT", read_count}, {0}};

static void reply_history(RedisModuleCtx *ctx, const struct rl_live *live, int64_t count, int64_t now_us) {
    const struct rl_quota_limit *lim = (const struct rl_quota_limit *)(const void *)live->limit->limit;
    struct rl_quota_row rows[RL_QUOTA_HISTORY_MAX];
    size_t n = rl_quota_history((const struct rl_quota *)(const void *)live->state, lim, rl_quota_zone(lim, NULL),
                                now_us / 1000, rows, RL_QUOTA_HISTORY_MAX);
    if (n > (size_t)count) n = (size_t)count;
    RedisModule_ReplyWithArray(ctx, (long)n);
    for (size_t i = 0; i < n; i++) {
        RedisModule_ReplyWithArray(ctx, 3);
        RedisModule_ReplyWithLongLong(ctx, rows[i].start_ms);
        RedisModule_ReplyWithLongLong(ctx, rows[i].used);
        RedisModule_ReplyWithLongLong(ctx, rows[i].limit);
    }
}

static int run(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    struct rl_args args = {.ctx = ctx, .argv = argv, .argc = argc, .at = 2};
    struct rl_key key;
    int64_t count = RL_QUOTA_HISTORY_MAX;
    if (argc < 2) return RedisModule_WrongArity(ctx);
    if (!rl_args_options(&args, options, NULL, &count)) return REDISMODULE_OK;

    int64_t now_us = rl_clock_us();
    if (!rl_key_open_any(ctx, argv[1], now_us, &key)) return REDISMODULE_OK;
    if (!key.live.limit) {
        RedisModule_ReplyWithEmptyArray(ctx);
    } else if (key.type == &rl_quota_type) {
        reply_history(ctx, &key.live, count, now_us);
    } else {
        rl_reply_error(ctx, REDISMODULE_ERRORMSG_WRONGTYPE);
    }
    rl_key_close(&key);
    return REDISMODULE_OK;
}

static RedisModuleCommandArg args[] = {
    {.name = "key", .type = REDISMODULE_ARG_TYPE_KEY, .key_spec_index = 0},
    {.name = "count", .type = REDISMODULE_ARG_TYPE_INTEGER, .token = "COUNT", .flags = REDISMODULE_CMD_ARG_OPTIONAL},
    {0},
};

static const RedisModuleCommandInfo info = {
    .version = REDISMODULE_COMMAND_INFO_VERSION,
    .summary = "Lists the past periods of a quota, newest first.",
    .complexity = "O(N) with N periods listed",
    .since = RL_SINCE,
    .arity = -2,
    .key_specs = (RedisModuleCommandKeySpec *)(uintptr_t)rl_command_reads_key,
    .args = args,
};

const struct rl_command rl_history_command = {
    .name = "RL.HISTORY",
    .run = run,
    .flags = "readonly",
    .categories = "read slow",
    .info = &info,
};
