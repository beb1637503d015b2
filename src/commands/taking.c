#include "commands/taking.h"

#include "algo/tokenbucket.h"
#include "commands/limiter.h"
#include "commands/taking_wait.h"
#include "server/reply.h"

void rl_amount_set(struct rl_amount *amount, const struct rl_policy *policy, int64_t cost, enum rl_mode mode) {
    int n = rl_policy_rules(policy);
    amount->mode = mode;
    amount->peek = amount->outcome = false;
    amount->charged = cost > 0 ? (1u << n) - 1 : 0;
    for (int i = 0; i < n; i++) amount->cost[i] = cost;
}

bool rl_amount_outcome(RedisModuleCtx *ctx, const struct rl_policy *policy, RedisModuleString *label,
                       struct rl_amount *amount) {
    size_t len;
    const char *bytes = RedisModule_StringPtrLen(label, &len);
    const struct rl_outcome *o = rl_policy_outcome(policy, bytes, len);
    if (!o) return rl_reply_error(ctx, "ERR OUTCOME must be a label of the policy's table, which has no *");
    if (o->cost < 0) {
        rl_amount_set(amount, policy, -o->cost, RL_REFUND);
    } else {
        rl_amount_set(amount, policy, o->cost, RL_FORCE);
    }
    amount->outcome = true;
    return true;
}

static bool charged(const struct rl_taking *t, int i) {
    return t->amount.charged >> i & 1;
}

static int rules(const struct rl_taking *t) {
    return rl_policy_rules(t->policy);
}

static struct rl_verdict check(const struct rl_taking *t, int i, int64_t cost, enum rl_mode mode, bool peek) {
    const struct rl_ask ask = {.cost = cost, .mode = mode, .peek = peek};
    const struct rl_policy_rule *rule = &t->policy->rules[i];
    return rule->kind->check(t->key.rules[i].state, rule->scaled, &ask, &t->moments[i]);
}

/* Puts the states under the limits of now. Replies what is wrong. */
static bool prepare(struct rl_taking *t) {
    t->ahead = false;
    for (int i = 0; i < rules(t); i++) {
        const struct rl_policy_rule *rule = &t->policy->rules[i];
        struct rl_live *live = &t->key.rules[i];
        if (!charged(t, i) && t->amount.charged != 0) continue;
        t->moments[i].now_us = t->now_us;
        struct rl_moment own = t->moments[i];
        if (rl_limiter_see_repaired(live, rule->limiter, &own)) t->ahead = true;
        if (!rl_live_rescale(live, rule->scaled)) return rl_reply_error(t->key.ctx, "ERR %s", rule->kind->beyond);
        const char *wrong =
            rule->limiter->locate ? rule->limiter->locate(live->state, rule->scaled, &t->moments[i]) : NULL;
        if (wrong) return rl_reply_error(t->key.ctx, "ERR TZ %s", wrong);
    }
    return true;
}

/* What the call wanted from the binding rule. */
static int64_t asked(const struct rl_taking *t) {
    return t->upto ? t->upto : t->amount.cost[t->binding];
}

/* UPTO: the same number for all, the most that fits everywhere; where that is nothing, the wait is for one. */
static void settle_upto(struct rl_taking *t) {
    int64_t most = INT64_MAX;
    for (int i = 0; i < rules(t); i++) {
        if (!charged(t, i)) continue;
        t->upto = t->amount.cost[i];
        int64_t fits = check(t, i, t->amount.cost[i], RL_UPTO, true).allowed;
        if (fits < most) most = fits;
    }
    for (int i = 0; i < rules(t); i++) t->amount.cost[i] = most > 0 ? most : 1;
    t->amount.mode = RL_TAKE;
}

/* Whether a has less left in proportion than b. What has no limit has the least. */
static bool less_left(const struct rl_verdict *a, const struct rl_verdict *b) {
    if (a->limit == 0 || b->limit == 0) return a->limit == 0 && b->limit > 0;
    return (rl_i128)a->remaining * b->limit < (rl_i128)b->remaining * a->limit;
}

static int find_binding(const struct rl_taking *t, unsigned among) {
    int binding = -1;
    for (int i = 0; i < rules(t); i++) {
        if (!(among >> i & 1)) continue;
        if (binding < 0 || less_left(&t->verdicts[i], &t->verdicts[binding])) binding = i;
    }
    return binding;
}

/* Only to look, whatever the amount is. */
static void look(struct rl_taking *t) {
    for (int i = 0; i < rules(t); i++) t->verdicts[i] = check(t, i, 1, RL_UPTO, true);
    t->binding = find_binding(t, (1u << rules(t)) - 1);
    t->verdict = t->verdicts[t->binding];
    t->verdict.allowed = t->verdict.wait_ms = 0;
}

static void settle_refused(struct rl_taking *t) {
    int64_t wait_ms;
    t->binding = rl_taking_wait(t, &wait_ms);
    t->verdict = t->verdicts[t->binding];
    if (t->verdict.allowed > 0) t->verdict = check(t, t->binding, t->amount.cost[t->binding], RL_TAKE, true);
    t->verdict.allowed = 0;
    t->verdict.wait_ms = wait_ms;
}

/* A real limiter would grant the rules' costs, or give them back. A peek answers for the rule that would bind. */
static void settle_granted(struct rl_taking *t) {
    t->binding = find_binding(t, t->amount.charged);
    t->verdict = t->verdicts[t->binding];
    if (t->amount.peek) t->verdict = check(t, t->binding, t->amount.cost[t->binding], t->amount.mode, true);
    for (int i = 0; i < rules(t); i++) {
        const struct rl_policy_rule *rule = &t->policy->rules[i];
        if (!charged(t, i)) continue;
        if (t->amount.mode == RL_REFUND) {
            if (t->verdicts[i].allowed > t->verdict.allowed) t->verdict.allowed = t->verdicts[i].allowed;
        } else if (rule->limiter->hold_ms && !t->amount.outcome && !t->policy->shadow) {
            int64_t hold_ms = rule->limiter->hold_ms(t->key.rules[i].state, rule->scaled, &t->moments[i]);
            if (hold_ms > t->verdict.wait_ms) t->verdict.wait_ms = hold_ms;
        }
    }
}

static bool decide(struct rl_taking *t) {
    t->refused = false;
    t->upto = 0;
    if (!prepare(t)) return false;
    if (t->amount.charged == 0) {
        look(t);
        return true;
    }
    if (t->amount.mode == RL_UPTO) settle_upto(t);
    for (int i = 0; i < rules(t); i++) {
        if (!charged(t, i)) continue;
        t->verdicts[i] = check(t, i, t->amount.cost[i], t->amount.mode, false);
        if (t->verdicts[i].beyond) return rl_reply_error(t->key.ctx, "ERR %s", t->policy->rules[i].kind->beyond);
        if (t->verdicts[i].allowed == 0 && t->amount.mode == RL_TAKE) t->refused = true;
    }
    if (t->refused) {
        settle_refused(t);
    } else {
        settle_granted(t);
    }
    return true;
}

bool rl_taking_open(RedisModuleCtx *ctx, RedisModuleString *name, struct rl_policy *policy, int64_t now_us,
                    struct rl_taking *t) {
    t->policy = policy;
    t->now_us = now_us;
    t->until_ms = rl_policy_refresh(policy, now_us / 1000);
    if (rl_policy_key_open(ctx, name, policy->layout, now_us, &t->key)) {
        if (decide(t)) return true;
        rl_policy_key_close(&t->key);
    }
    policy->stats.errors++;
    return false;
}

bool rl_taking_look(RedisModuleCtx *ctx, RedisModuleString *name, struct rl_policy *policy, int64_t now_us,
                    struct rl_taking *t) {
    t->policy = policy;
    rl_amount_set(&t->amount, policy, 0, RL_TAKE);
    t->now_us = now_us;
    t->until_ms = rl_policy_refresh(policy, now_us / 1000);
    if (!rl_policy_key_open_to_read(ctx, name, policy->layout, now_us, &t->key)) return false;
    if (decide(t)) return true;
    rl_policy_key_close(&t->key);
    return false;
}

static void tell(struct rl_taking *t, const unsigned *told) {
    for (int i = 0; i < rules(t); i++) {
        const struct rl_policy_rule *rule = &t->policy->rules[i];
        const struct rl_shape *shape = &t->policy->layout->shape;
        if (!told[i]) continue;
        struct rl_alert where = {
            .key = t->key.name,
            .policy = shape->policy.bytes,
            .policy_len = shape->policy.len,
            .rule = shape->rule[i].name.bytes,
            .rule_len = shape->rule[i].name.len,
        };
        rule->limiter->tell(t->key.ctx, where, t->key.rules[i].state, rule->scaled, told[i]);
    }
}

static void take(struct rl_taking *t) {
    struct rl_share shares[RL_RULES_MAX];
    unsigned told[RL_RULES_MAX];
    bool any = false;
    for (int i = 0; i < rules(t); i++) {
        bool takes = charged(t, i) && t->verdicts[i].allowed > 0;
        shares[i].limit = takes ? t->policy->rules[i].scaled : NULL;
        if (!takes) continue;
        shares[i].cost = t->amount.mode == RL_REFUND ? -t->verdicts[i].allowed : t->verdicts[i].allowed;
        shares[i].keep_ms = t->policy->rules[i].keep_ms;
        shares[i].period = t->moments[i].period;
        any = true;
    }
    if (!any) return;
    rl_policy_key_take(&t->key, shares, t->now_us, told);
    tell(t, told);
}

/* A step back of the clock: states are moved to now under their own limits, whatever becomes of the call; then they are
 * put under the limits of now again. */
static void repair(struct rl_taking *t) {
    struct rl_share shares[RL_RULES_MAX];
    unsigned told[RL_RULES_MAX];
    bool any = false;
    rl_policy_key_reload(&t->key, t->key.had->layout, t->now_us);
    for (int i = 0; i < t->key.layout->shape.rules; i++) {
        struct rl_live *live = &t->key.rules[i];
        const struct rl_limiter *limiter = rl_limiter_of(live->kind);
        struct rl_moment m = {.now_us = t->now_us};
        shares[i] = (struct rl_share){.limit = NULL};
        if (!rl_live_ahead(live, t->now_us)) continue;
        if (limiter->locate && limiter->locate(live->state, live->limit->limit, &m)) continue;
        shares[i] = (struct rl_share){.limit = live->limit->limit, .period = m.period};
        any = true;
    }
    if (any) rl_policy_key_take(&t->key, shares, t->now_us, told);
    rl_policy_key_reload(&t->key, t->policy->layout, t->now_us);
    prepare(t);
}

/* Units refused by UPTO are what did not fit. What SHADOW would have refused is granted too. */
static void count(struct rl_taking *t) {
    struct rl_policy_stats *stats = &t->policy->stats;
    uint64_t allowed = (uint64_t)t->verdict.allowed;
    if (t->amount.mode == RL_REFUND) {
        stats->refunded_calls += allowed > 0;
        stats->refunded_units += allowed;
        return;
    }
    uint64_t over = (uint64_t)asked(t) - allowed;
    if (t->refused) rl_policy_count_refused_key(t->policy, t->key.name);
    if (t->policy->shadow) {
        stats->shadow_refused_calls += t->refused;
        stats->shadow_refused_units += over;
        stats->granted_calls++;
        stats->granted_units += (uint64_t)asked(t);
        return;
    }
    stats->refused_calls += t->refused;
    stats->refused_units += over;
    stats->granted_calls += !t->refused;
    stats->granted_units += allowed;
}

void rl_taking_commit(struct rl_taking *t) {
    if (!t->amount.peek && t->amount.charged != 0) {
        if (t->ahead) repair(t);
        count(t);
        if (t->refused) {
            rl_key_tell_refused(t->key.ctx, t->key.name);
        } else {
            take(t);
        }
    }
    if (t->policy->shadow && t->amount.charged != 0 && t->amount.mode != RL_REFUND) {
        t->verdict.allowed = asked(t);
        t->verdict.wait_ms = 0;
    }
    if (t->amount.outcome && t->amount.mode == RL_REFUND) t->verdict.allowed = -t->verdict.allowed;
}

void rl_taking_count(const struct rl_taking *t, struct rl_stats *stats) {
    struct rl_ask ask = {.cost = asked(t), .mode = t->amount.mode};
    struct rl_verdict v = t->verdict;
    if (t->amount.peek || t->amount.charged == 0) return;
    if (v.allowed < 0) v.allowed = -v.allowed;
    rl_stats_count(stats, &ask, &v);
}

void rl_taking_leave(struct rl_taking *t) {
    if (t->ahead && !t->amount.peek && t->amount.charged != 0) repair(t);
    if (!t->refused || t->policy->shadow) look(t);
}

void rl_taking_close(struct rl_taking *t) {
    rl_policy_key_close(&t->key);
}

void rl_taking_reply(RedisModuleCtx *ctx, const struct rl_taking *t) {
    const struct rl_name *name = &t->policy->layout->shape.rule[t->binding].name;
    RedisModule_ReplyWithArray(ctx, 6);
    rl_reply_verdict_fields(ctx, &t->verdict);
    rl_reply_bytes(ctx, name->bytes, name->len);
}
