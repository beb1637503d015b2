/* RL.POLICY SET name rule [rule ...] [OUTCOME ...] [ADAPT ...] [SHADOW] | GET name | LIST [pattern] | DEL name
 *         | SCALE name percent [FOR duration] | DUMP | RESTORE payload [REPLACE] */
#include "commands/policy.h"

#include "commands/limiter.h"
#include "commands/policy_definition.h"
#include "commands/policy_dump.h"
#include "server/clock.h"
#include "server/glob.h"
#include "server/reply.h"
#include "types/memory.h"

struct rl_policy *rl_policy_find_bytes(RedisModuleCtx *ctx, const char *name, size_t len) {
    struct rl_policy *policy = rl_policies_find(&rl_policies, name, len);
    if (policy) return policy;
    char shown[RL_ARGS_SHOWN];
    rl_args_show(name, len, shown);
    rl_reply_error(ctx, "NOPOLICY there is no policy '%s': RL.POLICY SET makes one", shown);
    return NULL;
}

struct rl_policy *rl_policy_find(RedisModuleCtx *ctx, RedisModuleString *name) {
    size_t len;
    const char *bytes = RedisModule_StringPtrLen(name, &len);
    return rl_policy_find_bytes(ctx, bytes, len);
}

/* Where a client speaks: a replica and a file may know zones that this machine doesn't. */
static bool zones_known(RedisModuleCtx *ctx, const struct rl_policy *policy) {
    static const unsigned char unused[RL_STATE_SIZE];
    int flags = RedisModule_GetContextFlags(ctx);
    if (flags & (REDISMODULE_CTX_FLAGS_REPLICATED | REDISMODULE_CTX_FLAGS_LOADING)) return true;
    for (int i = 0; i < rl_policy_rules(policy); i++) {
        const struct rl_policy_rule *rule = &policy->rules[i];
        struct rl_moment m = {.now_us = rl_clock_us()};
        const char *wrong = rule->limiter->locate ? rule->limiter->locate(unused, rule->limit, &m) : NULL;
        if (wrong) return rl_reply_error(ctx, "ERR TZ %s", wrong);
    }
    return true;
}

static int set(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc < 4) return RedisModule_WrongArity(ctx);
    size_t len;
    const char *name = RedisModule_StringPtrLen(argv[2], &len);
    struct rl_policy *policy = rl_policy_define(ctx, name, len, argv + 3, argc - 3);
    if (!policy) return REDISMODULE_OK;
    bool fits = rl_policies.policies.count < RL_POLICIES_MAX || rl_policies_find(&rl_policies, name, len);
    if (!fits) rl_reply_error(ctx, "ERR there are 4096 policies, and more are not kept: delete one first");
    if (!fits || !zones_known(ctx, policy)) {
        rl_policy_free(policy);
        return REDISMODULE_OK;
    }
    rl_policies_put(&rl_policies, policy);
    RedisModule_ReplicateVerbatim(ctx);
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}

static int del(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc < 3) return RedisModule_WrongArity(ctx);
    int deleted = 0;
    for (int i = 2; i < argc; i++) {
        size_t len;
        const char *name = RedisModule_StringPtrLen(argv[i], &len);
        struct rl_policy *policy = rl_policies_find(&rl_policies, name, len);
        if (!policy) continue;
        rl_policies_remove(&rl_policies, policy);
        deleted++;
    }
    if (deleted > 0) RedisModule_ReplicateVerbatim(ctx);
    return RedisModule_ReplyWithLongLong(ctx, deleted);
}

static int list(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc > 3) return RedisModule_WrongArity(ctx);
    size_t pattern_len = 1;
    const char *pattern = argc == 3 ? RedisModule_StringPtrLen(argv[2], &pattern_len) : "*";
    struct rl_named **all = rl_names_sorted(&rl_policies.policies);
    long n = 0;
    RedisModule_ReplyWithArray(ctx, REDISMODULE_POSTPONED_LEN);
    for (uint32_t i = 0; i < rl_policies.policies.count; i++) {
        if (!rl_glob_matches(pattern, pattern_len, all[i]->name, all[i]->len)) continue;
        rl_reply_bytes(ctx, all[i]->name, all[i]->len);
        n++;
    }
    RedisModule_ReplySetArrayLength(ctx, n);
    rl_free(all);
    return REDISMODULE_OK;
}

static void reply_rule(RedisModuleCtx *ctx, const struct rl_policy *policy, int i) {
    const struct rl_policy_rule *rule = &policy->rules[i];
    const struct rl_name *name = &policy->layout->shape.rule[i].name;
    char text[RL_RULE_SIZE];
    rule->kind->limit_rule(rule->limit, text);
    RedisModule_ReplyWithMap(ctx, 4);
    RedisModule_ReplyWithCString(ctx, "name");
    rl_reply_bytes(ctx, name->bytes, name->len);
    rl_reply_text_field(ctx, "kind", rule->limiter->stats->command + sizeof("rl.") - 1);
    rl_reply_text_field(ctx, "rule", text);
    rl_reply_field(ctx, "keep_ms", rule->keep_ms);
}

/* What holds for a while: replies it, and answers how many fields that were. */
static int reply_timed(RedisModuleCtx *ctx, const struct rl_timed_percent *p, int64_t now_ms, const char *percent,
                       const char *until) {
    if (p->until_ms <= now_ms) return 0;
    rl_reply_field(ctx, percent, p->percent);
    rl_reply_field(ctx, until, p->until_ms);
    return 2;
}

static int get(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 3) return RedisModule_WrongArity(ctx);
    struct rl_policy *policy = rl_policy_find(ctx, argv[2]);
    if (!policy) return REDISMODULE_OK;
    int64_t now_ms = rl_clock_us() / 1000, until_ms;
    struct rl_scale scale = rl_policy_scale_at(policy, now_ms, &until_ms);
    struct rl_load *load =
        policy->source.bytes ? rl_policies_find_load(&rl_policies, policy->source.bytes, policy->source.len) : NULL;

    long fields = 5;
    RedisModule_ReplyWithMap(ctx, REDISMODULE_POSTPONED_LEN);
    RedisModule_ReplyWithCString(ctx, "name");
    rl_reply_bytes(ctx, policy->named.name, policy->named.len);
    RedisModule_ReplyWithCString(ctx, "definition");
    RedisModule_ReplyWithArray(ctx, policy->definition_len);
    for (int i = 0; i < policy->definition_len; i++) RedisModule_ReplyWithString(ctx, policy->definition[i]);
    RedisModule_ReplyWithCString(ctx, "rules");
    RedisModule_ReplyWithArray(ctx, rl_policy_rules(policy));
    for (int i = 0; i < rl_policy_rules(policy); i++) reply_rule(ctx, policy, i);
    rl_reply_field(ctx, "shadow", policy->shadow);
    rl_reply_field(ctx, "percent", scale.times * 100 / scale.of);
    fields += reply_timed(ctx, &policy->scale, now_ms, "scale_percent", "scale_until_ms");
    if (load) fields += reply_timed(ctx, &load->now, now_ms, "load_percent", "load_until_ms");
    RedisModule_ReplySetMapLength(ctx, fields);
    return REDISMODULE_OK;
}

static int scale(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    struct rl_args args = {.ctx = ctx, .argv = argv, .argc = argc, .at = 3};
    struct rl_timed_percent p;
    if (argc < 4) return RedisModule_WrongArity(ctx);
    if (!rl_policy_read_timed(&args, &p)) return REDISMODULE_OK;
    struct rl_policy *policy = rl_policy_find(ctx, argv[2]);
    if (!policy) return REDISMODULE_OK;
    policy->scale = p;
    rl_policy_replicate(ctx, policy, NULL, rl_clock_us() / 1000);
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}

static int dump(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    size_t len;
    if (argc > 3) return RedisModule_WrongArity(ctx);
    struct rl_policy *only = argc == 3 ? rl_policy_find(ctx, argv[2]) : NULL;
    if (argc == 3 && !only) return REDISMODULE_OK;
    int64_t now_ms = rl_clock_us() / 1000;
    unsigned char *bytes =
        only ? rl_policy_dump_one(only, NULL, now_ms, &len) : rl_policy_dump_all(&rl_policies, now_ms, &len);
    rl_reply_bytes(ctx, (const char *)bytes, len);
    rl_free(bytes);
    return REDISMODULE_OK;
}

static int restore(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    struct rl_args args = {.ctx = ctx, .argv = argv, .argc = argc, .at = 3};
    if (argc < 3 || argc > 4) return RedisModule_WrongArity(ctx);
    bool replace = rl_args_keyword(&args, "REPLACE");
    if (rl_args_more(&args)) {
        rl_reply_error(ctx, "ERR the only option of RESTORE is REPLACE");
        return REDISMODULE_OK;
    }
    size_t len;
    const char *bytes = RedisModule_StringPtrLen(argv[2], &len);
    const char *wrong =
        rl_policy_restore(&rl_policies, (const unsigned char *)bytes, len, replace, rl_clock_us() / 1000);
    if (wrong) {
        rl_reply_error(ctx, "ERR nothing was restored: %s", wrong);
        return REDISMODULE_OK;
    }
    RedisModule_ReplicateVerbatim(ctx);
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}

#define INFO(of_arity, of_summary, of_complexity, of_tips, of_args)                                                    \
    (&(const RedisModuleCommandInfo){                                                                                  \
        .version = REDISMODULE_COMMAND_INFO_VERSION,                                                                   \
        .summary = of_summary,                                                                                         \
        .complexity = of_complexity,                                                                                   \
        .since = RL_SINCE,                                                                                             \
        .arity = of_arity,                                                                                             \
        .tips = of_tips,                                                                                               \
        .args = of_args,                                                                                               \
    })
#define TEXT(called) .name = called, .type = REDISMODULE_ARG_TYPE_STRING
#define OPTIONAL .flags = REDISMODULE_CMD_ARG_OPTIONAL
#define SUBCOMMAND(called, function, with_flags, in_categories, with_info)                                             \
    {                                                                                                                  \
        .name = called, .container = "RL.POLICY", .run = function, .flags = with_flags, .categories = in_categories,   \
        .info = with_info                                                                                              \
    }

static RedisModuleCommandArg set_args[] = {
    {TEXT("name")},
    {TEXT("rule"), .flags = REDISMODULE_CMD_ARG_MULTIPLE},
    {TEXT("label:cost"), .token = "OUTCOME", OPTIONAL},
    {.name = "adapt",
     .type = REDISMODULE_ARG_TYPE_BLOCK,
     .token = "ADAPT",
     OPTIONAL,
     .subargs = (RedisModuleCommandArg[]){{TEXT("source")}, {TEXT("load:percent")}, {0}}},
    {.name = "shadow", .type = REDISMODULE_ARG_TYPE_PURE_TOKEN, .token = "SHADOW", OPTIONAL},
    {0},
};
static RedisModuleCommandArg name_args[] = {{TEXT("name")}, {0}};
static RedisModuleCommandArg names_args[] = {{TEXT("name"), .flags = REDISMODULE_CMD_ARG_MULTIPLE}, {0}};
static RedisModuleCommandArg optional_name_args[] = {{TEXT("name"), OPTIONAL}, {0}};
static RedisModuleCommandArg list_args[] = {{TEXT("pattern"), OPTIONAL}, {0}};
static RedisModuleCommandArg scale_args[] = {
    {TEXT("name")},
    {.name = "percent", .type = REDISMODULE_ARG_TYPE_INTEGER},
    {TEXT("duration"), .token = "FOR", OPTIONAL},
    {0},
};
static RedisModuleCommandArg restore_args[] = {
    {TEXT("payload")},
    {.name = "replace", .type = REDISMODULE_ARG_TYPE_PURE_TOKEN, .token = "REPLACE", OPTIONAL},
    {0},
};

const struct rl_command rl_policy_command = {
    .name = "RL.POLICY",
    .flags = "",
    .info = INFO(-2, "Defines limits with a name, which RL.TAKE takes from.", "Depends on subcommand.", NULL, NULL),
};
const struct rl_command rl_policy_set_command =
    SUBCOMMAND("set", set, "write deny-oom admin", "write admin slow dangerous",
               INFO(-4, "Makes or replaces a policy.", "O(N) with N words", RL_COMMAND_TIPS_ALL_SHARDS, set_args));
const struct rl_command rl_policy_del_command =
    SUBCOMMAND("del", del, "write admin", "write admin slow dangerous",
               INFO(-3, "Deletes policies.", "O(N) with N policies", RL_COMMAND_TIPS_ALL_SHARDS, names_args));
const struct rl_command rl_policy_scale_command =
    SUBCOMMAND("scale", scale, "write admin", "write admin slow dangerous",
               INFO(-4, "Tightens or widens a policy for a while.", "O(1)", RL_COMMAND_TIPS_ALL_SHARDS, scale_args));
const struct rl_command rl_policy_restore_command =
    SUBCOMMAND("restore", restore, "write deny-oom admin", "write admin slow dangerous",
               INFO(-3, "Makes the policies that RL.POLICY DUMP answered.", "O(N) with N policies",
                    RL_COMMAND_TIPS_ALL_SHARDS, restore_args));
const struct rl_command rl_policy_get_command =
    SUBCOMMAND("get", get, "readonly", "read slow", INFO(3, "Tells what a policy is.", "O(1)", NULL, name_args));
const struct rl_command rl_policy_list_command =
    SUBCOMMAND("list", list, "readonly", "read slow",
               INFO(-2, "Lists the names of the policies.", "O(N log(N)) with N policies", NULL, list_args));
const struct rl_command rl_policy_dump_command = SUBCOMMAND(
    "dump", dump, "readonly", "read slow",
    INFO(-2, "Answers the policies as bytes for RL.POLICY RESTORE.", "O(N) with N policies", NULL, optional_name_args));
