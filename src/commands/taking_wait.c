#include "commands/taking_wait.h"

#include "commands/limiter.h"

#define FOREVER INT64_MAX

/* Limits change by themselves when a scale or a load ends. In between, time alone only makes room, so each rule has one
 * first moment to pass, and the call passes at the latest of these; unless that is after the next change: then they are
 * sought anew, from the change on and as of the last write, as a call would find it then. All moments are whole
 * milliseconds from now, at which a caller who waits will ask. */

static int64_t wait_of(const struct rl_verdict *v) {
    if (v->allowed > 0) return 0;
    return v->wait_ms == RL_NEVER ? FOREVER : v->wait_ms;
}

/* What the rule's state will be at at_us if nobody calls: what is stored, but for a step back of the clock that this
 * call repairs. */
static void load_for(const struct rl_taking *t, int i, int64_t at_us, struct rl_live *live) {
    const struct rl_policy_rule *rule = &t->policy->rules[i];
    struct rl_moment now = {.now_us = t->now_us};
    rl_live_load(live, rule->kind, t->key.rules[i].value, t->now_us);
    if (!rl_limiter_see_repaired(live, rule->limiter, &now)) {
        rl_live_load(live, rule->kind, t->key.rules[i].value, at_us);
    } else if (rule->kind->unused_at_us(live->state, live->limit->limit) <= at_us) {
        rl_live_discard(live); /* it will have outlived itself */
        rl_live_forget(live);
    }
}

/* How long the rule would wait if it was asked only at at_us, under the limits of then. */
static int64_t wait_from(const struct rl_taking *t, int i, int64_t cost, int64_t at_us, struct rl_scale scale) {
    const struct rl_policy_rule *rule = &t->policy->rules[i];
    const struct rl_ask ask = {.cost = cost, .mode = RL_TAKE, .peek = true};
    struct rl_moment m = {.now_us = at_us};
    int64_t limit[RL_LIMIT_WORDS], wait_ms = FOREVER;
    struct rl_live live;
    rule->kind->limit_scale(limit, rule->limit, scale);
    load_for(t, i, at_us, &live);
    if (rl_live_rescale(&live, limit) && !(rule->limiter->locate && rule->limiter->locate(live.state, limit, &m))) {
        struct rl_verdict v = rule->kind->check(live.state, limit, &ask, &m);
        wait_ms = wait_of(&v);
    }
    rl_live_discard(&live);
    return wait_ms;
}

/* The longest of the waits, and whose it is; the first of equals. */
static int longest(const int64_t *waits, unsigned among) {
    int found = -1;
    for (int i = 0; among >> i; i++) {
        if (among >> i & 1 && (found < 0 || waits[i] > waits[found])) found = i;
    }
    return found;
}

static int wait_all(const struct rl_taking *t, unsigned among, const int64_t *costs, int64_t waits[RL_RULES_MAX],
                    int64_t *wait_ms) {
    int64_t after_ms = 0, until_ms = t->until_ms;
    int binding = longest(waits, among);
    while (until_ms != FOREVER &&
           (waits[binding] == FOREVER || t->now_us + (after_ms + waits[binding]) * 1000 >= until_ms * 1000)) {
        after_ms = (until_ms * 1000 - t->now_us + 999) / 1000;
        int64_t at_us = t->now_us + after_ms * 1000;
        struct rl_scale scale = rl_policy_scale_at(t->policy, at_us / 1000, &until_ms);
        for (int i = 0; among >> i; i++) {
            if (among >> i & 1) waits[i] = wait_from(t, i, costs[i], at_us, scale);
        }
        binding = longest(waits, among);
    }
    *wait_ms = waits[binding] == FOREVER ? RL_NEVER : after_ms + waits[binding];
    return binding;
}

int rl_taking_wait(const struct rl_taking *t, int64_t *wait_ms) {
    int64_t waits[RL_RULES_MAX];
    for (int i = 0; t->amount.charged >> i; i++) {
        if (t->amount.charged >> i & 1) waits[i] = wait_of(&t->verdicts[i]);
    }
    return wait_all(t, t->amount.charged, t->amount.cost, waits, wait_ms);
}

int64_t rl_taking_wait_rule(const struct rl_taking *t, int rule, int64_t cost, const struct rl_verdict *v) {
    int64_t waits[RL_RULES_MAX], costs[RL_RULES_MAX], wait_ms;
    waits[rule] = wait_of(v);
    costs[rule] = cost;
    if (waits[rule] == 0) return 0;
    wait_all(t, 1u << rule, costs, waits, &wait_ms);
    return wait_ms;
}
