/* RL.HISTORY key [RULE name] [COUNT n] */
#include "commands/history.h"

#include "commands/quota.h"
#include "server/clock.h"
#include "server/reply.h"
#include "types/quota.h"

struct question {
    int64_t count;
    const char *rule; /* NULL: not said */
    size_t rule_len;
};

static bool read_count(struct rl_args *a, const char *name, void *into) {
    return rl_args_number(a, name, 1, RL_QUOTA_HISTORY_MAX, &((struct question *)into)->count);
}

static bool read_rule(struct rl_args *a, const char *name, void *into) {
    struct question *q = into;
    q->rule = rl_args_text(a, name, &q->rule_len);
    return q->rule != NULL;
}

static const struct rl_option options[] = {{"RULE", read_rule, 0}, {"COUNT", read_count, 0}, {0}};

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

/* The quota that is meant: the one that is named, or else the only one. -1, and replied, where there is none. */
static int find_rule(RedisModuleCtx *ctx, const struct rl_shape *shape, const struct question *q) {
    int found = -1;
    if (q->rule) {
        found = rl_shape_find(shape, q->rule, q->rule_len);
        if (found < 0) rl_reply_error(ctx, "ERR RULE must be one that the key has: RL.STATE lists them");
        if (found >= 0 && shape->rule[found].kind != rl_quota_type.kind) {
            rl_reply_error(ctx, "ERR RULE must be a quota: others have no history");
            found = -1;
        }
        return found;
    }
    for (int i = 0; i < shape->rules; i++) {
        if (shape->rule[i].kind != rl_quota_type.kind) continue;
        if (found >= 0) {
            rl_reply_error(ctx, "ERR RULE is needed, because the key has several quotas");
            return -1;
        }
        found = i;
    }
    if (found < 0) rl_reply_error(ctx, "ERR the key's policy has no quota, and others have no history");
    return found;
}

static void reply_rule_history(RedisModuleCtx *ctx, const struct rl_policy_value *value, const struct question *q,
                               int64_t now_us) {
    struct rl_live live;
    int rule = find_rule(ctx, &value->layout->shape, q);
    if (rule < 0) return;
    rl_live_load(&live, rl_quota_type.kind, value->rules[rule], now_us);
    if (live.limit) {
        reply_history(ctx, &live, q->count, now_us);
    } else {
        RedisModule_ReplyWithEmptyArray(ctx);
    }
    rl_live_discard(&live);
}

static int run(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    struct rl_args args = {.ctx = ctx, .argv = argv, .argc = argc, .at = 2};
    struct rl_key key;
    struct question q = {.count = RL_QUOTA_HISTORY_MAX};
    if (argc < 2) return RedisModule_WrongArity(ctx);
    if (!rl_args_options(&args, options, NULL, &q)) return REDISMODULE_OK;

    int64_t now_us = rl_clock_us();
    if (!rl_key_open_any(ctx, argv[1], now_us, &key)) return REDISMODULE_OK;
    if (key.policy) {
        reply_rule_history(ctx, key.policy, &q, now_us);
    } else if (!key.live.limit) {
        RedisModule_ReplyWithEmptyArray(ctx);
    } else if (q.rule) {
        rl_reply_error(ctx, "ERR RULE goes only with keys of a policy");
    } else if (key.type == &rl_quota_type) {
        reply_history(ctx, &key.live, q.count, now_us);
    } else {
        rl_reply_error(ctx, REDISMODULE_ERRORMSG_WRONGTYPE);
    }
    rl_key_close(&key);
    return REDISMODULE_OK;
}

static RedisModuleCommandArg args[] = {
    {.name = "key", .type = REDISMODULE_ARG_TYPE_KEY, .key_spec_index = 0},
    {.name = "rule", .type = REDISMODULE_ARG_TYPE_STRING, .token = "RULE", .flags = REDISMODULE_CMD_ARG_OPTIONAL},
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
