/* RL.TAKE key policy [COST c | REFUND c | OUTCOME label] [FORCE | [PEEK] [UPTO]], with c = n or rule=n[,rule=n...] */
#include "commands/take.h"

#include <string.h>

#include "algo/notation.h"
#include "commands/policy.h"
#include "commands/taking.h"
#include "server/args.h"
#include "server/clock.h"
#include "server/reply.h"

struct request {
    const struct rl_policy *policy;
    struct rl_amount *amount;
};

/* rule=n[,rule=n...]: only these are charged. */
static bool read_list(struct rl_args *a, const char *name, const char *at, size_t len, struct request *req) {
    const struct rl_shape *shape = &req->policy->layout->shape;
    const char *end = at + len;
    req->amount->charged = 0;
    while (at <= end) {
        const char *comma = at < end ? memchr(at, ',', (size_t)(end - at)) : NULL;
        const char *item_end = comma ? comma : end;
        const char *equals = at < item_end ? memchr(at, '=', (size_t)(item_end - at)) : NULL;
        int64_t n;
        if (!equals || !rl_notation_digits(equals + 1, (size_t)(item_end - equals - 1), 1, RL_UNITS_MAX, &n)) {
            return rl_reply_error(a->ctx, "ERR %s must be a whole number from 1 to 1000000000000, or rule=n[,rule=n]",
                                  name);
        }
        int rule = rl_shape_find(shape, at, (size_t)(equals - at));
        if (rule < 0) return rl_reply_error(a->ctx, "ERR %s names a rule that the policy doesn't have", name);
        if (req->amount->charged >> rule & 1) return rl_reply_error(a->ctx, "ERR %s names a rule twice", name);
        req->amount->charged |= 1u << rule;
        req->amount->cost[rule] = n;
        at = item_end + 1;
    }
    return true;
}

static bool read_amount(struct rl_args *a, const char *name, void *into) {
    struct request *req = into;
    size_t len;
    int64_t n;
    const char *s = rl_args_text(a, name, &len);
    if (!s) return false;
    if (!rl_notation_digits(s, len, 1, RL_UNITS_MAX, &n)) return read_list(a, name, s, len, req);
    for (int i = 0; i < rl_policy_rules(req->policy); i++) req->amount->cost[i] = n;
    return true;
}

static bool read_outcome(struct rl_args *a, const char *name, void *into) {
    struct request *req = into;
    if (!rl_args_text(a, name, NULL)) return false;
    return rl_amount_outcome(a->ctx, req->policy, a->argv[a->at - 1], req->amount);
}

enum { COST, REFUND, OUTCOME, FORCE, PEEK, UPTO };
#define ANY_MODE (RL_BIT(FORCE) | RL_BIT(PEEK) | RL_BIT(UPTO))
static const struct rl_option options[] = {
    [COST] = {"COST", read_amount, RL_BIT(REFUND) | RL_BIT(OUTCOME)},
    [REFUND] = {"REFUND", read_amount, RL_BIT(COST) | RL_BIT(OUTCOME) | ANY_MODE},
    [OUTCOME] = {"OUTCOME", read_outcome, RL_BIT(COST) | RL_BIT(REFUND) | ANY_MODE},
    [FORCE] = {"FORCE", NULL, RL_BIT(REFUND) | RL_BIT(OUTCOME) | RL_BIT(PEEK) | RL_BIT(UPTO)},
    [PEEK] = {"PEEK", NULL, RL_BIT(REFUND) | RL_BIT(OUTCOME) | RL_BIT(FORCE)},
    [UPTO] = {"UPTO", NULL, RL_BIT(REFUND) | RL_BIT(OUTCOME) | RL_BIT(FORCE)},
    {0},
};

/* UPTO grants one number, so it can be asked for only one. */
static bool one_number(struct rl_args *a, const struct request *req) {
    int64_t n = 0;
    if (req->amount->mode != RL_UPTO) return true;
    for (int i = 0; req->amount->charged >> i; i++) {
        if (!(req->amount->charged >> i & 1)) continue;
        if (n != 0 && req->amount->cost[i] != n) {
            return rl_reply_error(a->ctx, "ERR UPTO goes only with the same COST for all rules");
        }
        n = req->amount->cost[i];
    }
    return true;
}

static bool parse(struct rl_args *a, struct request *req) {
    unsigned seen = 0;
    rl_amount_set(req->amount, req->policy, 1, RL_TAKE);
    if (!rl_args_more(a)) return true;
    if (!rl_args_options(a, options, &seen, req)) return false;
    if (seen & RL_BIT(REFUND)) req->amount->mode = RL_REFUND;
    if (seen & RL_BIT(FORCE)) req->amount->mode = RL_FORCE;
    if (seen & RL_BIT(UPTO)) req->amount->mode = RL_UPTO;
    if (seen & RL_BIT(PEEK)) req->amount->peek = true;
    return one_number(a, req);
}

static struct rl_stats stats = {.command = "rl.take"};

static int run(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    struct rl_args args = {.ctx = ctx, .argv = argv, .argc = argc, .at = 3};
    struct rl_taking t;
    struct request req = {.amount = &t.amount};
    if (argc < 3) return RedisModule_WrongArity(ctx);
    struct rl_policy *policy = rl_policy_find(ctx, argv[2]);
    if (!policy) return REDISMODULE_OK;
    req.policy = policy;
    if (!parse(&args, &req)) {
        policy->stats.errors++;
        return REDISMODULE_OK;
    }
    if (!rl_taking_open(ctx, argv[1], policy, rl_clock_us(), &t)) return REDISMODULE_OK;
    rl_taking_commit(&t);
    rl_taking_count(&t, &stats);
    rl_taking_reply(ctx, &t);
    rl_taking_close(&t);
    return REDISMODULE_OK;
}

static RedisModuleCommandArg amounts[] = {
    {.name = "cost", .type = REDISMODULE_ARG_TYPE_STRING, .token = "COST"},
    {.name = "refund", .type = REDISMODULE_ARG_TYPE_STRING, .token = "REFUND"},
    {.name = "label", .type = REDISMODULE_ARG_TYPE_STRING, .token = "OUTCOME"},
    {0},
};

static RedisModuleCommandArg modes[] = {
    {.name = "force", .type = REDISMODULE_ARG_TYPE_PURE_TOKEN, .token = "FORCE"},
    {.name = "upto", .type = REDISMODULE_ARG_TYPE_PURE_TOKEN, .token = "UPTO"},
    {0},
};

static RedisModuleCommandArg args[] = {
    {.name = "key", .type = REDISMODULE_ARG_TYPE_KEY, .key_spec_index = 0},
    {.name = "policy", .type = REDISMODULE_ARG_TYPE_STRING},
    {.name = "amount", .type = REDISMODULE_ARG_TYPE_ONEOF, .flags = REDISMODULE_CMD_ARG_OPTIONAL, .subargs = amounts},
    {.name = "mode", .type = REDISMODULE_ARG_TYPE_ONEOF, .flags = REDISMODULE_CMD_ARG_OPTIONAL, .subargs = modes},
    {.name = "peek", .type = REDISMODULE_ARG_TYPE_PURE_TOKEN, .flags = REDISMODULE_CMD_ARG_OPTIONAL, .token = "PEEK"},
    {0},
};

static const RedisModuleCommandInfo info = {
    .version = REDISMODULE_COMMAND_INFO_VERSION,
    .summary = "Takes units from all rules of a policy, or from none.",
    .complexity = "O(N) with N rules of the policy",
    .since = RL_SINCE,
    .arity = -3,
    .key_specs = (RedisModuleCommandKeySpec *)(uintptr_t)rl_command_updates_key,
    .args = args,
};

const struct rl_command rl_take_command = {
    .name = "RL.TAKE",
    .run = run,
    .flags = "write deny-oom fast",
    .categories = "write fast",
    .info = &info,
    .stats = &stats,
};
