/* RL.ACQUIRE key limit lease [ID id | IDS n id ...] [COST n] [PEEK] [UPTO]
 * RL.RENEW key lease id [id ...]
 * RL.RELEASE key id [id ...] */
#include "commands/leases.h"

#include "algo/leases.h"
#include "server/clock.h"
#include "server/leases_key.h"
#include "server/reply.h"
#include "types/leases.h"
#include "types/memory.h"

#define MADE_ID_LEN 24   /* hexadecimal digits of an id that the server makes */
#define STATE_LEASES 100 /* RL.STATE lists at most so many */

struct request {
    struct rl_leases_limit limit;
    struct rl_leases_ask ask;
    struct rl_lease_id ids[RL_LEASES_IDS_MAX];
    unsigned char made[MADE_ID_LEN];
};

static bool read_id(struct rl_args *a, const char *name, struct rl_lease_id *id) {
    id->bytes = (const unsigned char *)rl_args_text(a, name, &id->len);
    if (!id->bytes) return false;
    return (id->len >= 1 && id->len <= RL_LEASE_ID_MAX) ||
           rl_reply_error(a->ctx, "ERR %s must have from 1 to %d bytes", name, RL_LEASE_ID_MAX);
}

/* Ids to the end of the arguments. */
static bool read_ids(struct rl_args *a, struct request *req) {
    req->ask = (struct rl_leases_ask){.ids = req->ids, .units = 1};
    while (rl_args_more(a)) {
        if (req->ask.ids_count == RL_LEASES_IDS_MAX) {
            return rl_reply_error(a->ctx, "ERR id may be given %d times at most in one call", RL_LEASES_IDS_MAX);
        }
        if (!read_id(a, "id", &req->ids[req->ask.ids_count++])) return false;
    }
    return true;
}

static bool read_one(struct rl_args *a, const char *name, void *into) {
    struct request *req = into;
    req->ask.ids_count = 1;
    return read_id(a, name, &req->ids[0]);
}

static bool read_several(struct rl_args *a, const char *name, void *into) {
    struct request *req = into;
    int64_t n;
    if (!rl_args_number(a, name, 1, RL_LEASES_IDS_MAX, &n)) return false;
    for (int64_t i = 0; i < n; i++) {
        if (!read_id(a, "id", &req->ids[req->ask.ids_count++])) return false;
    }
    return rl_leases_ids_differ(req->ids, req->ask.ids_count) ||
           rl_reply_error(a->ctx, "ERR IDS must be different ids");
}

static bool read_cost(struct rl_args *a, const char *name, void *into) {
    return rl_args_units(a, name, &((struct request *)into)->ask.units);
}

enum { ID, IDS, COST, PEEK, UPTO };
static const struct rl_option options[] = {
    [ID] = {"ID", read_one, RL_BIT(IDS)},
    [IDS] = {"IDS", read_several, RL_BIT(ID) | RL_BIT(COST)}, /* each of them is one unit */
    [COST] = {"COST", read_cost, RL_BIT(IDS)},
    [PEEK] = {"PEEK", NULL, 0},
    [UPTO] = {"UPTO", NULL, 0},
    {0},
};

static bool parse_acquire(struct rl_args *a, struct request *req) {
    unsigned seen = 0;
    req->ask = (struct rl_leases_ask){.ids = req->ids, .units = 1};
    if (!rl_args_number(a, "limit", 1, RL_LEASES_LIMIT_MAX, &req->limit.limit) ||
        !rl_args_duration(a, "lease", &req->limit.lease_ms) || !rl_args_options(a, options, &seen, req)) {
        return false;
    }
    req->ask.peek = seen & RL_BIT(PEEK);
    req->ask.upto = seen & RL_BIT(UPTO);
    return true;
}

/* An id that nobody else has. */
static void make_id(const struct rl_leases *l, struct request *req, int64_t now_ms) {
    req->ids[0] = (struct rl_lease_id){req->made, MADE_ID_LEN};
    req->ask.ids_count = 1;
    do {
        RedisModule_GetRandomHexChars((char *)req->made, MADE_ID_LEN);
    } while (rl_leases_alive(l, &req->ids[0], now_ms, NULL));
}

static struct rl_leases *leases_of(struct rl_key *key) {
    return (struct rl_leases *)(void *)key->live.state;
}

/* The effect that a write at now_us has; the key keeps its limit. */
static struct rl_leases_effect effect_of(const struct rl_key *key, enum rl_leases_op op, int64_t now_us) {
    struct rl_leases_effect e = {.op = op, .now_us = now_us, .lease_ms = 1, .units = 1};
    if (key->live.limit) e.limit = *(const struct rl_leases_limit *)(const void *)key->live.limit->limit;
    return e;
}

/* A step back of the clock: before anything else the leases are moved to now, whatever becomes of the call. */
static void repair(struct rl_key *key, int64_t now_us) {
    if (!rl_live_ahead(&key->live, now_us)) return;
    struct rl_leases_effect e = effect_of(key, RL_LEASES_MOVE, now_us);
    rl_leases_key_write(key, &e);
}

/* Leaves only the ids that are granted, in the order in which they came. */
static size_t keep_granted(struct request *req, const bool *granted) {
    size_t n = 0;
    for (size_t i = 0; i < req->ask.ids_count; i++) {
        if (granted[i]) req->ids[n++] = req->ids[i];
    }
    return n;
}

static struct rl_stats stats = {.command = "rl.acquire"};

/* Answers how many ids were granted, which then are the first of the request. */
static size_t acquire(struct rl_key *key, struct request *req, int64_t now_us, struct rl_verdict *v) {
    bool granted[RL_LEASES_IDS_MAX];
    if (!req->ask.peek) repair(key, now_us);
    if (req->ask.ids_count == 0) make_id(leases_of(key), req, now_us / 1000);
    *v = rl_leases_check(leases_of(key), &req->limit, &req->ask, now_us / 1000, granted);
    if (req->ask.peek) return 0;

    int64_t cost = req->ask.ids_count > 1 ? (int64_t)req->ask.ids_count : req->ask.units;
    if (cost < v->allowed) cost = v->allowed; /* an id that was alive has its own units */
    rl_stats_count(&stats, &(struct rl_ask){.cost = cost}, v);
    size_t n = v->allowed > 0 ? keep_granted(req, granted) : 0;
    if (n > 0) {
        struct rl_leases_effect e = effect_of(key, RL_LEASES_ACQUIRE, now_us);
        e.limit = req->limit;
        e.lease_ms = req->limit.lease_ms;
        e.units = req->ask.ids_count > 1 ? 1 : v->allowed;
        e.ids = req->ids;
        e.ids_count = n;
        rl_leases_key_write(key, &e);
    } else {
        rl_key_tell_refused(key->ctx, key->name);
    }
    return n;
}

static int run_acquire(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    struct rl_args args = {.ctx = ctx, .argv = argv, .argc = argc, .at = 2};
    struct request req;
    struct rl_verdict v;
    struct rl_key key;
    if (argc < 4) return RedisModule_WrongArity(ctx);
    if (!parse_acquire(&args, &req)) return REDISMODULE_OK;

    int64_t now_us = rl_clock_us();
    if (!rl_key_open(ctx, argv[1], &rl_leases_type, now_us, &key)) return REDISMODULE_OK;
    size_t n = acquire(&key, &req, now_us, &v);
    rl_key_close(&key);

    RedisModule_ReplyWithArray(ctx, 6);
    rl_reply_verdict_fields(ctx, &v);
    RedisModule_ReplyWithArray(ctx, (long)n);
    for (size_t i = 0; i < n; i++) {
        RedisModule_ReplyWithStringBuffer(ctx, (const char *)req.ids[i].bytes, req.ids[i].len);
    }
    return REDISMODULE_OK;
}

/* Opens the key and finds out which of the ids are alive; those are the first of the request then. */
static bool open_alive(RedisModuleCtx *ctx, RedisModuleString *name, struct request *req, int64_t now_us,
                       struct rl_key *key, bool *alive, size_t *alive_count) {
    if (!rl_key_open(ctx, name, &rl_leases_type, now_us, key)) return false;
    for (size_t i = 0; i < req->ask.ids_count; i++) {
        alive[i] = rl_leases_alive(leases_of(key), &req->ids[i], now_us / 1000, NULL);
    }
    *alive_count = keep_granted(req, alive);
    return true;
}

/* Renews or releases the first of the request's ids. */
static void write_ids(struct rl_key *key, struct request *req, size_t ids_count, enum rl_leases_op op, int64_t now_us) {
    repair(key, now_us);
    if (ids_count == 0) return;
    struct rl_leases_effect e = effect_of(key, op, now_us);
    if (op == RL_LEASES_RENEW) e.lease_ms = req->limit.lease_ms;
    e.ids = req->ids;
    e.ids_count = ids_count;
    rl_leases_key_write(key, &e);
}

static int run_renew(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    struct rl_args args = {.ctx = ctx, .argv = argv, .argc = argc, .at = 2};
    struct request req;
    struct rl_key key;
    bool alive[RL_LEASES_IDS_MAX];
    size_t alive_count;
    if (argc < 4) return RedisModule_WrongArity(ctx);
    if (!rl_args_duration(&args, "lease", &req.limit.lease_ms) || !read_ids(&args, &req)) return REDISMODULE_OK;

    int64_t now_us = rl_clock_us();
    if (!open_alive(ctx, argv[1], &req, now_us, &key, alive, &alive_count)) return REDISMODULE_OK;
    write_ids(&key, &req, alive_count, RL_LEASES_RENEW, now_us);
    rl_key_close(&key);

    RedisModule_ReplyWithArray(ctx, (long)req.ask.ids_count);
    for (size_t i = 0; i < req.ask.ids_count; i++) RedisModule_ReplyWithLongLong(ctx, alive[i]);
    return REDISMODULE_OK;
}

static int run_release(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    struct rl_args args = {.ctx = ctx, .argv = argv, .argc = argc, .at = 2};
    struct request req;
    struct rl_key key;
    bool alive[RL_LEASES_IDS_MAX];
    size_t alive_count;
    if (argc < 3) return RedisModule_WrongArity(ctx);
    if (!read_ids(&args, &req)) return REDISMODULE_OK;

    int64_t now_us = rl_clock_us();
    if (!open_alive(ctx, argv[1], &req, now_us, &key, alive, &alive_count)) return REDISMODULE_OK;
    int64_t before = rl_leases_used(leases_of(&key), now_us / 1000).records;
    write_ids(&key, &req, alive_count, RL_LEASES_RELEASE, now_us);
    int64_t after = rl_leases_used(leases_of(&key), now_us / 1000).records;
    rl_key_close(&key);
    return RedisModule_ReplyWithLongLong(ctx, before - after); /* the same id twice is released once */
}

static int describe(RedisModuleCtx *ctx, const void *state, const void *limit, const struct rl_moment *m) {
    (void)limit;
    struct rl_lease leases[STATE_LEASES];
    size_t n = rl_leases_list(state, rl_moment_ms(m), leases, STATE_LEASES);
    rl_reply_field(ctx, "leases_count", rl_leases_used(state, rl_moment_ms(m)).records);
    RedisModule_ReplyWithCString(ctx, "leases");
    RedisModule_ReplyWithArray(ctx, (long)n);
    for (size_t i = 0; i < n; i++) {
        RedisModule_ReplyWithArray(ctx, 3);
        RedisModule_ReplyWithStringBuffer(ctx, (const char *)leases[i].id.bytes, leases[i].id.len);
        RedisModule_ReplyWithLongLong(ctx, leases[i].units);
        RedisModule_ReplyWithLongLong(ctx, leases[i].end_at_ms);
    }
    return 2;
}

const struct rl_limiter rl_leases_limiter = {.type = &rl_leases_type, .describe = describe};

#define KEY_ARG                                                                                                        \
    { .name = "key", .type = REDISMODULE_ARG_TYPE_KEY, .key_spec_index = 0 }
#define IDS_ARG                                                                                                        \
    { .name = "id", .type = REDISMODULE_ARG_TYPE_STRING, .flags = REDISMODULE_CMD_ARG_MULTIPLE }

static RedisModuleCommandArg several_args[] = {
    {.name = "count", .type = REDISMODULE_ARG_TYPE_INTEGER, .token = "IDS"}, IDS_ARG, {0}};

static RedisModuleCommandArg which_args[] = {
    {.name = "id", .type = REDISMODULE_ARG_TYPE_STRING, .token = "ID"},
    {.name = "ids", .type = REDISMODULE_ARG_TYPE_BLOCK, .subargs = several_args},
    {0},
};

static RedisModuleCommandArg acquire_args[] = {
    KEY_ARG,
    {.name = "limit", .type = REDISMODULE_ARG_TYPE_INTEGER},
    {.name = "lease", .type = REDISMODULE_ARG_TYPE_STRING},
    {RL_LIMITER_OPTION("which", REDISMODULE_ARG_TYPE_ONEOF), .subargs = which_args},
    {RL_LIMITER_OPTION("cost", REDISMODULE_ARG_TYPE_INTEGER), .token = "COST"},
    {RL_LIMITER_OPTION("peek", REDISMODULE_ARG_TYPE_PURE_TOKEN), .token = "PEEK"},
    {RL_LIMITER_OPTION("upto", REDISMODULE_ARG_TYPE_PURE_TOKEN), .token = "UPTO"},
    {0},
};

static RedisModuleCommandArg renew_args[] = {
    KEY_ARG, {.name = "lease", .type = REDISMODULE_ARG_TYPE_STRING}, IDS_ARG, {0}};

static RedisModuleCommandArg release_args[] = {KEY_ARG, IDS_ARG, {0}};

static const RedisModuleCommandInfo acquire_info = {
    .version = REDISMODULE_COMMAND_INFO_VERSION,
    .summary = "Takes leases on units of which only so many may be in flight; each ends by itself.",
    .complexity = "O(M*log(N)) with M ids and N leases",
    .since = RL_SINCE,
    .arity = -4,
    .key_specs = (RedisModuleCommandKeySpec *)(uintptr_t)rl_command_updates_key,
    .args = acquire_args,
};

static const RedisModuleCommandInfo renew_info = {
    .version = REDISMODULE_COMMAND_INFO_VERSION,
    .summary = "Extends leases that are alive.",
    .complexity = "O(M*log(N)) with M ids and N leases",
    .since = RL_SINCE,
    .arity = -4,
    .key_specs = (RedisModuleCommandKeySpec *)(uintptr_t)rl_command_updates_key,
    .args = renew_args,
};

static const RedisModuleCommandInfo release_info = {
    .version = REDISMODULE_COMMAND_INFO_VERSION,
    .summary = "Ends leases, so that their units are free at once.",
    .complexity = "O(M*log(N)) with M ids and N leases",
    .since = RL_SINCE,
    .arity = -3,
    .key_specs = (RedisModuleCommandKeySpec *)(uintptr_t)rl_command_updates_key,
    .args = release_args,
};

const struct rl_command rl_acquire_command = {
    .name = "RL.ACQUIRE",
    .run = run_acquire,
    .flags = "write deny-oom fast",
    .categories = "write fast",
    .info = &acquire_info,
    .stats = &stats,
};

/* Both work when memory is full: a lock must not be lost for that. */
const struct rl_command rl_renew_command = {
    .name = "RL.RENEW",
    .run = run_renew,
    .flags = "write fast",
    .categories = "write fast",
    .info = &renew_info,
};

const struct rl_command rl_release_command = {
    .name = "RL.RELEASE",
    .run = run_release,
    .flags = "write fast",
    .categories = "write fast",
    .info = &release_info,
};
