/* RL.STATS [policy | RESET] and RL.TOP policy [COUNT n] */
#include "commands/stats.h"

#include "commands/policy.h"
#include "server/args.h"
#include "server/reply.h"
#include "types/memory.h"

static void reply_policy_stats(RedisModuleCtx *ctx, const struct rl_policy *policy) {
    const struct rl_policy_stats *s = &policy->stats;
    RedisModule_ReplyWithMap(ctx, 9);
    rl_reply_field(ctx, "granted_calls", (int64_t)s->granted_calls);
    rl_reply_field(ctx, "granted_units", (int64_t)s->granted_units);
    rl_reply_field(ctx, "refused_calls", (int64_t)s->refused_calls);
    rl_reply_field(ctx, "refused_units", (int64_t)s->refused_units);
    rl_reply_field(ctx, "refunded_calls", (int64_t)s->refunded_calls);
    rl_reply_field(ctx, "refunded_units", (int64_t)s->refunded_units);
    rl_reply_field(ctx, "shadow_refused_calls", (int64_t)s->shadow_refused_calls);
    rl_reply_field(ctx, "shadow_refused_units", (int64_t)s->shadow_refused_units);
    rl_reply_field(ctx, "errors", (int64_t)s->errors);
}

static void reply_command_stats(RedisModuleCtx *ctx) {
    long n = 0;
    RedisModule_ReplyWithMap(ctx, REDISMODULE_POSTPONED_LEN);
    for (const struct rl_stats *s = rl_stats_first(); s; s = s->next, n++) {
        RedisModule_ReplyWithCString(ctx, s->command);
        RedisModule_ReplyWithMap(ctx, 6);
        rl_reply_field(ctx, "granted_calls", (int64_t)s->granted_calls);
        rl_reply_field(ctx, "granted_units", (int64_t)s->granted_units);
        rl_reply_field(ctx, "refused_calls", (int64_t)s->refused_calls);
        rl_reply_field(ctx, "refused_units", (int64_t)s->refused_units);
        rl_reply_field(ctx, "refunded_calls", (int64_t)s->refunded_calls);
        rl_reply_field(ctx, "refunded_units", (int64_t)s->refunded_units);
    }
    RedisModule_ReplySetMapLength(ctx, n);
}

static void reply_all(RedisModuleCtx *ctx) {
    struct rl_named **all = rl_names_sorted(&rl_policies.policies);
    RedisModule_ReplyWithMap(ctx, 2);
    RedisModule_ReplyWithCString(ctx, "policies");
    RedisModule_ReplyWithMap(ctx, rl_policies.policies.count);
    for (uint32_t i = 0; i < rl_policies.policies.count; i++) {
        rl_reply_bytes(ctx, all[i]->name, all[i]->len);
        reply_policy_stats(ctx, (const struct rl_policy *)all[i]);
    }
    RedisModule_ReplyWithCString(ctx, "commands");
    reply_command_stats(ctx);
    rl_free(all);
}

static void reset(void) {
    struct rl_named **all = rl_names_sorted(&rl_policies.policies);
    for (uint32_t i = 0; i < rl_policies.policies.count; i++) rl_policy_reset_stats((struct rl_policy *)all[i]);
    rl_free(all);
    rl_stats_reset();
}

/* A policy that is called RESET is seen only among all. */
static int run_stats(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    struct rl_args args = {.ctx = ctx, .argv = argv, .argc = argc, .at = 1};
    if (argc > 2) return RedisModule_WrongArity(ctx);
    if (argc == 1) {
        reply_all(ctx);
    } else if (rl_args_keyword(&args, "RESET")) {
        reset();
        RedisModule_ReplyWithSimpleString(ctx, "OK");
    } else {
        const struct rl_policy *policy = rl_policy_find(ctx, argv[1]);
        if (policy) reply_policy_stats(ctx, policy);
    }
    return REDISMODULE_OK;
}

static bool read_count(struct rl_args *a, const char *name, void *count) {
    return rl_args_number(a, name, 1, RL_SKETCH_SIZE, count);
}

static int run_top(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    static const struct rl_option options[] = {{"COUNT", read_count, 0}, {0}};
    struct rl_args args = {.ctx = ctx, .argv = argv, .argc = argc, .at = 2};
    int64_t count = 10;
    if (argc < 2) return RedisModule_WrongArity(ctx);
    if (!rl_args_options(&args, options, NULL, &count)) return REDISMODULE_OK;
    const struct rl_policy *policy = rl_policy_find(ctx, argv[1]);
    if (!policy) return REDISMODULE_OK;
    struct rl_sketch *top = policy->refused_keys;
    if (top) rl_sketch_sort(top);
    int n = !top ? 0 : top->used < count ? top->used : (int)count;
    RedisModule_ReplyWithArray(ctx, n);
    for (int i = 0; i < n; i++) {
        const struct rl_sketch_entry *entry = &top->entries[i];
        RedisModule_ReplyWithArray(ctx, 3);
        rl_reply_bytes(ctx, entry->key, rl_sketch_key_len(entry));
        RedisModule_ReplyWithLongLong(ctx, (long long)entry->count);
        RedisModule_ReplyWithLongLong(ctx, (long long)entry->over);
    }
    return REDISMODULE_OK;
}

static RedisModuleCommandArg stats_choice[] = {
    {.name = "policy", .type = REDISMODULE_ARG_TYPE_STRING},
    {.name = "reset", .type = REDISMODULE_ARG_TYPE_PURE_TOKEN, .token = "RESET"},
    {0},
};
static RedisModuleCommandArg stats_args[] = {
    {.name = "of", .type = REDISMODULE_ARG_TYPE_ONEOF, .flags = REDISMODULE_CMD_ARG_OPTIONAL, .subargs = stats_choice},
    {0},
};
static RedisModuleCommandArg top_args[] = {
    {.name = "policy", .type = REDISMODULE_ARG_TYPE_STRING},
    {.name = "count", .type = REDISMODULE_ARG_TYPE_INTEGER, .token = "COUNT", .flags = REDISMODULE_CMD_ARG_OPTIONAL},
    {0},
};

static const RedisModuleCommandInfo stats_info = {
    .version = REDISMODULE_COMMAND_INFO_VERSION,
    .summary = "Tells how much was granted and refused, by policy and by command; or starts to count anew.",
    .complexity = "O(N log(N)) with N policies",
    .since = RL_SINCE,
    .arity = -1,
    .args = stats_args,
};
static const RedisModuleCommandInfo top_info = {
    .version = REDISMODULE_COMMAND_INFO_VERSION,
    .summary = "Lists the keys that a policy refused most often.",
    .complexity = "O(1)",
    .since = RL_SINCE,
    .arity = -2,
    .args = top_args,
};

/* Counts are the node's own, so neither is a write. */
const struct rl_command rl_stats_command = {
    .name = "RL.STATS",
    .run = run_stats,
    .flags = "readonly",
    .categories = "read slow",
    .info = &stats_info,
};
const struct rl_command rl_top_command = {
    .name = "RL.TOP",
    .run = run_top,
    .flags = "readonly admin",
    .categories = "read admin slow dangerous",
    .info = &top_info,
};
