#include "commands/limiter.h"

#include "server/clock.h"
#include "server/reply.h"

static bool read_cost(struct rl_args *a, const char *name, void *into) {
    return rl_args_units(a, name, &((struct rl_request *)into)->ask.cost);
}

static bool read_peek(struct rl_args *a, const char *name, void *into) {
    (void)a;
    (void)name;
    ((struct rl_request *)into)->ask.peek = true;
    return true;
}

static bool read_force(struct rl_args *a, const char *name, void *into) {
    (void)a;
    (void)name;
    ((struct rl_request *)into)->ask.mode = RL_FORCE;
    return true;
}

static bool read_upto(struct rl_args *a, const char *name, void *into) {
    (void)a;
    (void)name;
    ((struct rl_request *)into)->ask.mode = RL_UPTO;
    return true;
}

static bool read_refund(struct rl_args *a, const char *name, void *into) {
    ((struct rl_request *)into)->ask.mode = RL_REFUND;
    return rl_args_units(a, name, &((struct rl_request *)into)->ask.cost);
}

static bool read_keep(struct rl_args *a, const char *name, void *into) {
    return rl_args_duration(a, name, &((struct rl_request *)into)->keep_ms);
}

enum { COST, PEEK, FORCE, UPTO, REFUND, KEEP };
static const struct rl_option shared_options[] = {
    [COST] = {"COST", read_cost},
    [PEEK] = {"PEEK", read_peek},
    [FORCE] = {"FORCE", read_force},
    [UPTO] = {"UPTO", read_upto},
    [REFUND] = {"REFUND", read_refund},
    [KEEP] = {"KEEP", read_keep},
    {0},
};

/* Pairs that contradict each other. */
static const struct {
    int a, b;
} excluded[] = {
    {PEEK, FORCE}, {PEEK, REFUND}, {PEEK, KEEP}, {FORCE, UPTO}, {REFUND, COST}, {REFUND, FORCE}, {REFUND, UPTO},
};

static bool compatible(struct rl_args *a, unsigned seen) {
    if ((seen & (seen - 1)) == 0) return true; /* none or one */
    for (size_t i = 0; i < sizeof(excluded) / sizeof(excluded[0]); i++) {
        unsigned both = 1u << excluded[i].a | 1u << excluded[i].b;
        if ((seen & both) != both) continue;
        return rl_reply_error(a->ctx, "ERR %s does not go with %s", shared_options[excluded[i].a].name,
                              shared_options[excluded[i].b].name);
    }
    return true;
}

static bool parse(struct rl_args *a, const struct rl_limiter *limiter, struct rl_request *req) {
    unsigned seen_own = 0, seen = 0;
    req->ask = (struct rl_ask){.cost = 1, .mode = RL_TAKE};
    req->keep_ms = 0;
    if (!limiter->parse(a, req->limit)) return false;
    while (rl_args_more(a)) {
        int got = rl_args_option(a, limiter->options, &seen_own, req->limit);
        if (got == 0) got = rl_args_option(a, shared_options, &seen, req);
        if (got < 0) return false;
        if (got == 0) return rl_args_unknown(a, limiter->options, shared_options);
    }
    return compatible(a, seen) && (!limiter->finish || limiter->finish(a, req->limit));
}

/* A step back of the clock left the state ahead of it: before anything else it is seen as of now, under its own limit.
 * False where that can't be told, for lack of the zone's data: then it stays where it is. */
static bool see_repaired(struct rl_live *live, const struct rl_limiter *limiter, struct rl_moment *m) {
    const int64_t *limit = live->limit->limit;
    if (!rl_live_ahead(live, m->now_us) || (limiter->locate && limiter->locate(live->state, limit, m))) return false;
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
        if (told) limiter->tell(key, req->limit, told);
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
    bool repaired = live->limit && see_repaired(live, limiter, &own);
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
