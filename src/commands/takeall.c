/* RL.TAKEALL numkeys key policy [key policy ...] [COST n[,n...] | REFUND n[,n...] | OUTCOME label] [PEEK | FORCE] */
#include "commands/takeall.h"

#include <string.h>

#include "algo/notation.h"
#include "commands/policy.h"
#include "commands/taking.h"
#include "server/args.h"
#include "server/clock.h"
#include "server/reply.h"
#include "types/memory.h"

enum { FIRST = 2, STEP = 2, SUBJECTS_MAX = 128 };

struct request {
    int subjects;
    enum rl_mode mode;
    bool peek;
    RedisModuleString *label; /* NULL: no OUTCOME */
    const char *list;         /* of COST or REFUND; NULL: one of each */
    const char *list_name;
    size_t list_len;
};

static bool read_list(struct rl_args *a, const char *name, void *into) {
    struct request *req = into;
    req->list_name = name;
    req->list = rl_args_text(a, name, &req->list_len);
    return req->list != NULL;
}

static bool read_outcome(struct rl_args *a, const char *name, void *into) {
    if (!rl_args_text(a, name, NULL)) return false;
    ((struct request *)into)->label = a->argv[a->at - 1];
    return true;
}

enum { COST, REFUND, OUTCOME, PEEK, FORCE };
static const struct rl_option options[] = {
    [COST] = {"COST", read_list, RL_BIT(REFUND) | RL_BIT(OUTCOME)},
    [REFUND] = {"REFUND", read_list, RL_BIT(COST) | RL_BIT(OUTCOME) | RL_BIT(PEEK) | RL_BIT(FORCE)},
    [OUTCOME] = {"OUTCOME", read_outcome, RL_BIT(COST) | RL_BIT(REFUND) | RL_BIT(PEEK) | RL_BIT(FORCE)},
    [PEEK] = {"PEEK", NULL, RL_BIT(REFUND) | RL_BIT(OUTCOME) | RL_BIT(FORCE)},
    [FORCE] = {"FORCE", NULL, RL_BIT(REFUND) | RL_BIT(OUTCOME) | RL_BIT(PEEK)},
    {0},
};

static bool parse_subjects(struct rl_args *a, struct request *req) {
    int64_t n;
    if (!rl_args_number(a, "numkeys", 1, SUBJECTS_MAX, &n)) return false;
    if (n > (a->argc - FIRST) / STEP) {
        return rl_reply_error(a->ctx, "ERR numkeys must be the number of pairs of key and policy that follow");
    }
    req->subjects = (int)n;
    a->at = FIRST + STEP * req->subjects;
    for (int i = 0; i < req->subjects; i++) {
        for (int k = 0; k < i; k++) {
            if (RedisModule_StringCompare(a->argv[FIRST + STEP * i], a->argv[FIRST + STEP * k]) == 0) {
                return rl_reply_error(a->ctx, "ERR the same key must not be given twice");
            }
        }
    }
    return true;
}

static bool parse(struct rl_args *a, struct request *req) {
    unsigned seen = 0;
    *req = (struct request){.mode = RL_TAKE};
    if (!parse_subjects(a, req) || !rl_args_options(a, options, &seen, req)) return false;
    if (seen & RL_BIT(REFUND)) req->mode = RL_REFUND;
    if (seen & RL_BIT(FORCE)) req->mode = RL_FORCE;
    req->peek = seen & RL_BIT(PEEK);
    return true;
}

/* One number for all, or one for each; 0 only looks. */
static bool read_costs(struct rl_args *a, const struct request *req, int64_t *costs) {
    const char *at = req->list, *end = at ? at + req->list_len : NULL;
    int n = 0;
    for (int i = 0; i < req->subjects; i++) costs[i] = 1;
    if (!at) return true;
    while (at <= end) {
        const char *comma = at < end ? memchr(at, ',', (size_t)(end - at)) : NULL;
        const char *item_end = comma ? comma : end;
        if (n == req->subjects || !rl_notation_digits(at, (size_t)(item_end - at), 0, RL_UNITS_MAX, &costs[n++])) {
            n = 0;
            break;
        }
        at = item_end + 1;
    }
    if (n == 1) {
        for (int i = 1; i < req->subjects; i++) costs[i] = costs[0];
    }
    return n == 1 || n == req->subjects ||
           rl_reply_error(a->ctx, "ERR %s must be one whole number from 0 to 1000000000000, or one for each key",
                          req->list_name);
}

/* Opens and checks them all; answers how many were opened: fewer where an error was replied. */
static int open_all(struct rl_args *a, const struct request *req, const int64_t *costs, struct rl_taking *takings) {
    int64_t now_us = rl_clock_us();
    for (int i = 0; i < req->subjects; i++) {
        RedisModuleString **subject = a->argv + FIRST + STEP * i;
        struct rl_policy *policy = rl_policy_find(a->ctx, subject[1]);
        struct rl_amount *amount = &takings[i].amount;
        if (!policy) return i;
        rl_amount_set(amount, policy, costs[i], req->mode);
        amount->peek = req->peek;
        if (req->label && !rl_amount_outcome(a->ctx, policy, req->label, amount)) return i;
        if (!rl_taking_open(a->ctx, subject[0], policy, now_us, &takings[i])) return i;
    }
    return req->subjects;
}

static struct rl_stats stats = {.command = "rl.takeall"};

static void settle(RedisModuleCtx *ctx, const struct request *req, struct rl_taking *takings) {
    bool passes = true;
    for (int i = 0; i < req->subjects; i++) passes = passes && rl_taking_passes(&takings[i]);
    RedisModule_ReplyWithArray(ctx, req->subjects);
    for (int i = 0; i < req->subjects; i++) {
        struct rl_taking *t = &takings[i];
        if (passes || !rl_taking_passes(t)) {
            rl_taking_commit(t);
            rl_taking_count(t, &stats);
        } else {
            rl_taking_leave(t);
        }
        rl_taking_reply(ctx, t);
    }
}

static void tell_keys(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    struct rl_args args = {.ctx = NULL, .argv = argv, .argc = argc, .at = 1};
    int64_t n;
    if (!rl_args_number(&args, "numkeys", 1, SUBJECTS_MAX, &n) || n > (argc - FIRST) / STEP) return;
    for (int i = 0; i < n; i++) {
        RedisModule_KeyAtPosWithFlags(ctx, FIRST + STEP * i,
                                      REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_ACCESS | REDISMODULE_CMD_KEY_UPDATE);
    }
}

static int run(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    struct rl_args args = {.ctx = ctx, .argv = argv, .argc = argc, .at = 1};
    struct request req;
    if (RedisModule_IsKeysPositionRequest(ctx)) {
        tell_keys(ctx, argv, argc);
        return REDISMODULE_OK;
    }
    if (argc < 4) return RedisModule_WrongArity(ctx);
    if (!parse(&args, &req)) return REDISMODULE_OK;

    struct rl_taking *takings = rl_alloc((size_t)req.subjects * sizeof(*takings));
    int64_t *costs = rl_alloc((size_t)req.subjects * sizeof(*costs));
    int opened = read_costs(&args, &req, costs) ? open_all(&args, &req, costs, takings) : 0;
    if (opened == req.subjects) settle(ctx, &req, takings);
    for (int i = 0; i < opened; i++) rl_taking_close(&takings[i]);
    rl_free(costs);
    rl_free(takings);
    return REDISMODULE_OK;
}

/* Servers count the step wrongly: of n keys they see only the first half, and ACLs would let the others pass. Where the
 * flags are said to vary they ask the command itself. */
static const RedisModuleCommandKeySpec key_specs[] = {
    {
        .flags = REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_ACCESS | REDISMODULE_CMD_KEY_UPDATE |
                 REDISMODULE_CMD_KEY_VARIABLE_FLAGS,
        .begin_search_type = REDISMODULE_KSPEC_BS_INDEX,
        .bs.index.pos = 1,
        .find_keys_type = REDISMODULE_KSPEC_FK_KEYNUM,
        .fk.keynum = {.keynumidx = 0, .firstkey = 1, .keystep = STEP},
    },
    {0},
};

static RedisModuleCommandArg subject[] = {
    {.name = "key", .type = REDISMODULE_ARG_TYPE_KEY, .key_spec_index = 0},
    {.name = "policy", .type = REDISMODULE_ARG_TYPE_STRING},
    {0},
};

static RedisModuleCommandArg amounts[] = {
    {.name = "cost", .type = REDISMODULE_ARG_TYPE_STRING, .token = "COST"},
    {.name = "refund", .type = REDISMODULE_ARG_TYPE_STRING, .token = "REFUND"},
    {.name = "label", .type = REDISMODULE_ARG_TYPE_STRING, .token = "OUTCOME"},
    {0},
};

static RedisModuleCommandArg modes[] = {
    {.name = "peek", .type = REDISMODULE_ARG_TYPE_PURE_TOKEN, .token = "PEEK"},
    {.name = "force", .type = REDISMODULE_ARG_TYPE_PURE_TOKEN, .token = "FORCE"},
    {0},
};

static RedisModuleCommandArg args[] = {
    {.name = "numkeys", .type = REDISMODULE_ARG_TYPE_INTEGER},
    {.name = "subject", .type = REDISMODULE_ARG_TYPE_BLOCK, .flags = REDISMODULE_CMD_ARG_MULTIPLE, .subargs = subject},
    {.name = "amount", .type = REDISMODULE_ARG_TYPE_ONEOF, .flags = REDISMODULE_CMD_ARG_OPTIONAL, .subargs = amounts},
    {.name = "mode", .type = REDISMODULE_ARG_TYPE_ONEOF, .flags = REDISMODULE_CMD_ARG_OPTIONAL, .subargs = modes},
    {0},
};

static const RedisModuleCommandInfo info = {
    .version = REDISMODULE_COMMAND_INFO_VERSION,
    .summary = "Takes units from several keys, each under its policy, or from none.",
    .complexity = "O(N) with N rules of the policies",
    .since = RL_SINCE,
    .arity = -4,
    .key_specs = (RedisModuleCommandKeySpec *)(uintptr_t)key_specs,
    .args = args,
};

const struct rl_command rl_takeall_command = {
    .name = "RL.TAKEALL",
    .run = run,
    .flags = "write deny-oom getkeys-api",
    .categories = "write slow",
    .info = &info,
    .finds_keys = true,
    .stats = &stats,
};
