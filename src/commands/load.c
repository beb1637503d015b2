/* RL.LOAD source percent [FOR duration] */
#include "commands/load.h"

#include "commands/policy_definition.h"
#include "commands/policy_dump.h"
#include "server/clock.h"
#include "server/reply.h"

static int run(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    struct rl_args args = {.ctx = ctx, .argv = argv, .argc = argc, .at = 2};
    struct rl_timed_percent load;
    size_t len;
    if (argc < 3) return RedisModule_WrongArity(ctx);
    const char *source = RedisModule_StringPtrLen(argv[1], &len);
    if (!rl_policy_name_valid(ctx, "source", len) || !rl_policy_read_timed(&args, &load)) return REDISMODULE_OK;
    int64_t now_ms = rl_clock_us() / 1000;
    if (!rl_policies_put_load(&rl_policies, source, len, load, now_ms)) {
        rl_reply_error(ctx, "ERR there are 1024 sources of load, and more are not kept");
        return REDISMODULE_OK;
    }
    rl_policy_replicate(ctx, NULL, rl_policies_find_load(&rl_policies, source, len), now_ms);
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}

static RedisModuleCommandArg args[] = {
    {.name = "source", .type = REDISMODULE_ARG_TYPE_STRING},
    {.name = "percent", .type = REDISMODULE_ARG_TYPE_INTEGER},
    {.name = "duration", .type = REDISMODULE_ARG_TYPE_STRING, .token = "FOR", .flags = REDISMODULE_CMD_ARG_OPTIONAL},
    {0},
};

static const RedisModuleCommandInfo info = {
    .version = REDISMODULE_COMMAND_INFO_VERSION,
    .summary = "Reports a load, which the policies that say so adapt to.",
    .complexity = "O(1)",
    .since = RL_SINCE,
    .arity = -3,
    .tips = RL_COMMAND_TIPS_ALL_SHARDS,
    .args = args,
};

const struct rl_command rl_load_command = {
    .name = "RL.LOAD",
    .run = run,
    .flags = "write admin fast",
    .categories = "write admin fast dangerous",
    .info = &info,
};
