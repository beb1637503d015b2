/* RL.STATE key [POLICY name] [COST n] */
#include "commands/state.h"

#include "commands/limiter.h"
#include "commands/policy.h"
#include "commands/taking_wait.h"
#include "server/clock.h"
#include "server/reply.h"

struct question {
    int64_t cost;
    RedisModuleString *policy; /* NULL: that of the key */
};

static bool read_cost(struct rl_args *a, const char *name, void *into) {
    return rl_args_units(a, name, &((struct question *)into)->cost);
}

static bool read_policy(struct rl_args *a, const char *name, void *into) {
    if (!rl_args_text(a, name, NULL)) return false;
    ((struct question *)into)->policy = a->argv[a->at - 1];
    return true;
}

static const struct rl_option options[] = {{"COST", read_cost, 0}, {"POLICY", read_policy, 0}, {0}};

/* Of one limiter: what is asked of it and what it answered. */
static void reply_limiter(RedisModuleCtx *ctx, const struct rl_live *live, const void *rule, const void *limit,
                          const struct rl_verdict *v, const struct rl_moment *m) {
    const struct rl_limiter *limiter = rl_limiter_of(live->kind);
    char text[RL_RULE_SIZE];
    live->kind->limit_rule(rule, text);

    long fields = 7;
    RedisModule_ReplyWithMap(ctx, REDISMODULE_POSTPONED_LEN);
    rl_reply_text_field(ctx, "kind", live->kind->name);
    rl_reply_text_field(ctx, "rule", text);
    rl_reply_field(ctx, "limit", v->limit);
    rl_reply_field(ctx, "remaining", v->remaining);
    rl_reply_field(ctx, "used", v->limit - v->remaining);
    rl_reply_field(ctx, "wait_ms", v->wait_ms);
    rl_reply_field(ctx, "reset_ms", v->reset_ms);
    if (limiter->describe) fields += limiter->describe(ctx, live->state, limit, m);
    if (live->totals.keep_ms > 0) {
        fields += 2;
        rl_reply_field(ctx, "granted", live->totals.granted);
        rl_reply_field(ctx, "last_ms", live->totals.last_at_ms);
    }
    RedisModule_ReplySetMapLength(ctx, fields);
}

static void reply_state(RedisModuleCtx *ctx, const struct rl_live *live, int64_t cost, struct rl_moment *m) {
    const struct rl_limiter *limiter = rl_limiter_of(live->kind);
    const void *limit = live->limit->limit;
    /* A node without the zone's data can still tell what it has: the period that the state carries. */
    if (limiter->locate) limiter->locate(live->state, limit, m);
    struct rl_ask ask = {.cost = cost, .mode = RL_TAKE, .peek = true};
    struct rl_verdict v = live->kind->check(live->state, limit, &ask, m);
    reply_limiter(ctx, live, limit, limit, &v, m);
}

static void reply_rules(RedisModuleCtx *ctx, const struct rl_taking *t, int64_t cost) {
    const struct rl_shape *shape = &t->policy->layout->shape;
    RedisModule_ReplyWithMap(ctx, 3);
    RedisModule_ReplyWithCString(ctx, "policy");
    rl_reply_bytes(ctx, shape->policy.bytes, shape->policy.len);
    rl_reply_field(ctx, "percent", t->policy->scaled_by.times * 100 / t->policy->scaled_by.of);
    RedisModule_ReplyWithCString(ctx, "rules");
    RedisModule_ReplyWithMap(ctx, shape->rules);
    for (int i = 0; i < shape->rules; i++) {
        const struct rl_policy_rule *rule = &t->policy->rules[i];
        const struct rl_live *live = &t->key.rules[i];
        struct rl_ask ask = {.cost = cost, .mode = RL_TAKE, .peek = true};
        struct rl_verdict v = rule->kind->check(live->state, rule->scaled, &ask, &t->moments[i]);
        v.wait_ms = rl_taking_wait_rule(t, i, cost, &v);
        rl_reply_bytes(ctx, shape->rule[i].name.bytes, shape->rule[i].name.len);
        reply_limiter(ctx, live, rule->limit, rule->scaled, &v, &t->moments[i]);
    }
}

/* Under a policy: its rules as they are now, with the states that they would find. */
static void reply_policy(RedisModuleCtx *ctx, RedisModuleString *name, struct rl_policy *policy, int64_t cost,
                         int64_t now_us) {
    struct rl_taking t;
    if (!policy || !rl_taking_look(ctx, name, policy, now_us, &t)) return;
    reply_rules(ctx, &t, cost);
    rl_taking_close(&t);
}

static int run(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    struct rl_args args = {.ctx = ctx, .argv = argv, .argc = argc, .at = 2};
    struct question q = {.cost = 1};
    struct rl_key key;
    if (argc < 2) return RedisModule_WrongArity(ctx);
    if (!rl_args_options(&args, options, NULL, &q)) return REDISMODULE_OK;

    struct rl_moment moment = {.now_us = rl_clock_us()};
    if (q.policy) {
        reply_policy(ctx, argv[1], rl_policy_find(ctx, q.policy), q.cost, moment.now_us);
        return REDISMODULE_OK;
    }
    if (!rl_key_open_any(ctx, argv[1], moment.now_us, &key)) return REDISMODULE_OK;
    if (key.policy) {
        const struct rl_name *of = &key.policy->layout->shape.policy;
        reply_policy(ctx, argv[1], rl_policy_find_bytes(ctx, of->bytes, of->len), q.cost, moment.now_us);
    } else if (key.live.limit) {
        reply_state(ctx, &key.live, q.cost, &moment);
    } else {
        RedisModule_ReplyWithNull(ctx);
    }
    rl_key_close(&key);
    return REDISMODULE_OK;
}

static RedisModuleCommandArg args[] = {
    {.name = "key", .type = REDISMODULE_ARG_TYPE_KEY, .key_spec_index = 0},
    {.name = "policy", .type = REDISMODULE_ARG_TYPE_STRING, .token = "POLICY", .flags = REDISMODULE_CMD_ARG_OPTIONAL},
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
