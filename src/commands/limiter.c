#include "commands/limiter.h"

#include <string.h>

#include "server/clock.h"
#include "server/reply.h"

static bool read_cost(struct rl_args *a, const char *name, void *into) {
    return rl_args_units(a, name, &((struct rl_request *)into)->ask.cost);
}

static bool read_keep(struct rl_args *a, const char *name, void *into) {
    return rl_args_duration(a, name, &((struct rl_request *)into)->keep_ms);
}

enum { COST, PEEK, FORCE, UPTO, REFUND, KEEP };
static const struct rl_option shared_options[] = {
    [COST] = {"COST", read_cost, RL_BIT(REFUND)},
    [PEEK] = {"PEEK", NULL, RL_BIT(FORCE) | RL_BIT(REFUND) | RL_BIT(KEEP)},
    [FORCE] = {"FORCE", NULL, RL_BIT(PEEK) | RL_BIT(UPTO) | RL_BIT(REFUND)},
    [UPTO] = {"UPTO", NULL, RL_BIT(FORCE) | RL_BIT(REFUND)},
    [REFUND] = {"REFUND", read_cost, RL_BIT(COST) | RL_BIT(PEEK) | RL_BIT(FORCE) | RL_BIT(UPTO)},
    [KEEP] = {"KEEP", read_keep, RL_BIT(PEEK)},
    {0},
};

static enum rl_mode mode_of(unsigned seen) {
    return seen & RL_BIT(FORCE)    ? RL_FORCE
           : seen & RL_BIT(UPTO)   ? RL_UPTO
           : seen & RL_BIT(REFUND) ? RL_REFUND
                                   : RL_TAKE;
}

static bool parse(struct rl_args *a, const struct rl_limiter *limiter, struct rl_request *req) {
    unsigned seen_own = 0, seen = 0;
    req->ask.cost = 1;
    req->keep_ms = 0;
    if (!limiter->parse(a, req->limit)) return false;
    while (rl_args_more(a)) {
        int got = rl_args_option(a, limiter->options, &seen_own, req->limit);
        if (got == 0) got = rl_args_option(a, shared_options, &seen, req);
        if (got < 0) return false;
        if (got == 0) return rl_args_unknown(a, limiter->options, shared_options);
    }
    req->ask.mode = mode_of(seen);
    req->ask.peek = seen & RL_BIT(PEEK);
    return !limiter->finish || limiter->finish(a, req->limit);
}

const struct rl_limiter *rl_limiter_of(const struct rl_kind *kind) {
    int i = 0;
    while (rl_limiters[i]->type->kind != kind) i++;
    return rl_limiters[i];
}

static bool read_rule_keep(struct rl_args *a, const char *name, void *into) {
    return rl_args_duration(a, name, &((struct rl_limiter_rule *)into)->keep_ms);
}

/* RL.TAKE has lists of rule=n, so these two can't be in a name. */
static bool read_rule_name(struct rl_args *a, const char *name, void *into) {
    struct rl_limiter_rule *rule = into;
    rule->name = rl_args_text(a, name, &rule->name_len);
    if (!rule->name) return false;
    bool good = rule->name_len >= 1 && rule->name_len <= RL_NAME_MAX && !memchr(rule->name, '=', rule->name_len) &&
                !memchr(rule->name, ',', rule->name_len);
    return good || rl_reply_error(a->ctx, "ERR %s must be a name of 1 to 128 bytes without = and ,", name);
}

static const struct rl_option rule_options[] = {{"KEEP", read_rule_keep, 0}, {"AS", read_rule_name, 0}, {0}};

int rl_limiter_read_rule(struct rl_args *a, struct rl_limiter_rule *rule) {
    const struct rl_limiter *const *limiter = rl_limiters;
    while (*limiter && !((*limiter)->rule && rl_args_keyword(a, (*limiter)->rule))) limiter++;
    if (!*limiter) return 0;

    unsigned seen_own = 0, seen = 0;
    *rule = (struct rl_limiter_rule){.limiter = *limiter, .name = (*limiter)->rule};
    rule->name_len = strlen(rule->name);
    if (!(*limiter)->parse(a, rule->limit)) return -1;
    while (rl_args_more(a)) {
        int got = rl_args_option(a, (*limiter)->options, &seen_own, rule->limit);
        if (got == 0) got = rl_args_option(a, rule_options, &seen, rule);
        if (got < 0) return -1;
        if (got == 0) break;
    }
    return !(*limiter)->finish || (*limiter)->finish(a, rule->limit) ? 1 : -1;
}

bool rl_limiter_see_repaired(struct rl_live *live, const struct rl_limiter *limiter, struct rl_moment *m) {
    if (!rl_live_ahead(live, m->now_us)) return false;
    const int64_t *limit = live->limit->limit;
    if (limiter->locate && limiter->locate(live->state, limit, m)) return false;
    rl_live_own(live);
    live->kind->take(live->state, limit, 0, m);
    return true;
}

/* The same, written and replicated whatever becomes of the call; then it is under the limit that was asked for again.
 */
static void repair(struct rl_key *key, const struct rl_request *req, const struct rl_moment *m) {
    rl_key_reload(key, m->now_us);
    rl_key_take(key, key->live.limit->limit, 0, 0, m);
    rl_live_rescale(&key->live, req->limit);
}

/* Carries the verdict out. Nothing can fail from here on. */
static void commit(struct rl_key *key, const struct rl_limiter *limiter, const struct rl_request *req,
                   const struct rl_verdict *v, const struct rl_moment *m) {
    if (v->allowed > 0) {
        unsigned told = rl_key_take(key, req->limit, rl_verdict_delta(v, &req->ask), req->keep_ms, m);
        if (told) limiter->tell(key->ctx, (struct rl_alert){.key = key->name}, key->live.state, req->limit, told);
    } else if (req->ask.mode != RL_REFUND) {
        rl_key_tell_refused(key->ctx, key->name);
    }
    rl_stats_count(limiter->stats, &req->ask, v);
}

static bool decide(struct rl_key *key, const struct rl_limiter *limiter, const struct rl_request *req,
                   struct rl_moment *m, struct rl_verdict *v) {
    const struct rl_kind *kind = limiter->type->kind;
    struct rl_live *live = &key->live;
    struct rl_moment own = *m; /* with the period of the state's own limit */
    bool repaired = rl_limiter_see_repaired(live, limiter, &own);
    if (!rl_live_rescale(live, req->limit)) return rl_reply_error(key->ctx, "ERR %s", kind->beyond);
    const char *wrong = limiter->locate ? limiter->locate(live->state, req->limit, m) : NULL;
    if (wrong) return rl_reply_error(key->ctx, "ERR TZ %s", wrong);

    *v = kind->check(live->state, req->limit, &req->ask, m);
    if (v->beyond) return rl_reply_error(key->ctx, "ERR %s", kind->beyond);
    if (limiter->hold_ms && v->allowed > 0 && req->ask.mode != RL_REFUND) {
        v->wait_ms = limiter->hold_ms(live->state, req->limit, m);
    }
    if (req->ask.peek) return true;
    if (repaired) repair(key, req, &own);
    commit(key, limiter, req, v, m);
    return true;
}

bool rl_limiter_decide(RedisModuleCtx *ctx, RedisModuleString *name, const struct rl_limiter *limiter,
                       const struct rl_request *req, struct rl_verdict *v) {
    struct rl_key key;
    struct rl_moment moment = {.now_us = rl_clock_us()};
    rl_key_adopt adopt = limiter->adopts ? limiter->adopts() : NULL;
    bool opened = adopt ? rl_key_open_adopting(ctx, name, limiter->type, &moment, adopt, req->limit, &key)
                        : rl_key_open(ctx, name, limiter->type, moment.now_us, &key);
    if (!opened) return false;
    bool decided = decide(&key, limiter, req, &moment, v);
    rl_key_close(&key);
    return decided;
}

int rl_limiter_run(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, const struct rl_limiter *limiter) {
    struct rl_args args = {.ctx = ctx, .argv = argv, .argc = argc, .at = 2};
    struct rl_request req;
    struct rl_verdict v;
    if (argc < 3) return RedisModule_WrongArity(ctx);
    if (!parse(&args, limiter, &req) || !rl_limiter_decide(ctx, argv[1], limiter, &req, &v)) return REDISMODULE_OK;
    return rl_reply_verdict(ctx, &v);
}

RedisModuleCommandArg rl_limiter_amount_args[] = {
    {.name = "cost", .type = REDISMODULE_ARG_TYPE_INTEGER, .token = "COST"},
    {.name = "refund", .type = REDISMODULE_ARG_TYPE_INTEGER, .token = "REFUND"},
    {0},
};

RedisModuleCommandArg rl_limiter_mode_args[] = {
    {.name = "force", .type = REDISMODULE_ARG_TYPE_PURE_TOKEN, .token = "FORCE"},
    {.name = "upto", .type = REDISMODULE_ARG_TYPE_PURE_TOKEN, .token = "UPTO"},
    {0},
};
