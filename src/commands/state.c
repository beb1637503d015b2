/* RL.STATE key [COST n] */
#include "commands/state.h"

#include "commands/limiter.h"
#include "server/clock.h"
#include "server/reply.h"

static bool read_cost(struct rl_args *a, const char *name, void *cost) {
    return rl_args_units(a, name, cost);
}

static const struct rl_option options[] = {{"COST", read_cost}, {0}};

static void reply_state(RedisModuleCtx *ctx, const struct rl_key *key, int64_t cost, struct rl_moment *m) {
    const struct rl_live *live = &key->live;
    const struct rl_limiter *limiter = rl_limiter_of(live->kind);
    const void *limit = live->limit->limit;
    /* A node without the zone's data can still tell what it has: the period that the state carries. */
    if (limiter->locate) limiter->locate(live->state, limit, m);
    struct rl_ask ask = {.cost = cost, .mode = RL_TAKE, .peek = true};
    struct rl_verdict v = live->kind->check(live->state, limit, &ask, m);
    char rule[RL_RULE_SIZE];
    live->kind->limit_rule(limit, rule);

    long fields = 7;
    RedisModule_ReplyWithMap(ctx, REDISMODULE_POSTPONED_LEN);
    rl_reply_text_field(ctx, "kind", live->kind->name);
    rl_reply_text_field(ctx, "rule", rule);
    rl_reply_field(ctx, "limit", v.limit);
    rl_reply_field(ctx, "remaining", v.remaining);
    rl_reply_field(ctx, "used", v.limit - v.remaining);
    rl_reply_field(ctx, "wait_ms", v.wait_ms);
    rl_reply_field(ctx, "reset_ms", v.reset_ms);
    if (limiter->describe) fields += limiter->describe(ctx, live->state, limit, m);
    if (live->totals.keep_ms > 0) {
        fields += 2;
        rl_reply_field(ctx, "granted", live->totals.granted);
        rl_reply_field(ctx, "last_ms", live->totals.last_at_ms);
    }
    RedisModule_ReplySetMapLength(ctx, fields);
}

static int run(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    struct rl_args args = {.ctx = ctx, .argv = argv, .argc = argc, .at = 2};
    struct rl_key key;
    int64_t cost = 1;
    if (argc < 2) return RedisModule_WrongArity(ctx);
    if (!rl_args_options(&args, options, NULL, &cost)) return REDISMODULE_OK;

    struct rl_moment moment = {.now_us = rl_clock_us()};
    if (!rl_key_open_any(ctx, argv[1], moment.now_us, &key)) return REDISMODULE_OK;
    if (key.live.limit) {
        reply_state(ctx, &key, cost, &moment);
    } else {
        RedisModule_ReplyWithNull(ctx);
    }
    rl_key_close(&key);
    return REDISMODULE_OK;
}

static RedisModuleCommandArg args[] = {
    {.name = "key", .type = REDISMODULE_ARG_TYPE_KEY, .key_spec_index = 0},
    {.name = "cost", .type = REDISMODULE_ARG_TYPE_INTEGER, .token = "COST", .flags = REDISMODULE_CMD_ARG_OPTIONAL},
    {0},
};

static const RedisModuleCommandInfo info = {
    .version = REDISMODULE_COMMAND_INFO_VERSION,
    .summary = "Tells all that is known of a limiter.",
    .complexity = "O(1)",
    .since = RL_SINCE,
    .arity = -2,
    .key_specs = (RedisModuleCommandKeySpec *)(uintptr_t)rl_command_reads_key,
    .args = args,
};

const struct rl_command rl_state_command = {
    .name = "RL.STATE",
    .run = run,
    .flags = "readonly fast",
    .categories = "read fast",
    .info = &info,
};
