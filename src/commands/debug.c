/* RL.DEBUG CLOCK unix-µs | REAL */
#include "commands/debug.h"

#include "server/args.h"
#include "server/clock.h"
#include "server/reply.h"

static int run(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    struct rl_args args = {.ctx = ctx, .argv = argv, .argc = argc, .at = 1};
    if (argc != 3) return RedisModule_WrongArity(ctx);
    if (!rl_args_keyword(&args, "CLOCK")) {
        rl_reply_error(ctx, "ERR unknown subcommand: RL.DEBUG knows CLOCK");
        return REDISMODULE_OK;
    }
    int64_t at_us;
    if (rl_args_keyword(&args, "REAL")) {
        rl_clock_release();
    } else if (rl_args_number(&args, "CLOCK", 0, RL_CLOCK_MAX_US - 1, &at_us)) {
        rl_clock_freeze(at_us);
    } else {
        return REDISMODULE_OK;
    }
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}

static RedisModuleCommandArg instant[] = {
    {.name = "unix-time-us", .type = REDISMODULE_ARG_TYPE_INTEGER},
    {.name = "real", .type = REDISMODULE_ARG_TYPE_PURE_TOKEN, .token = "REAL"},
    {0},
};

static RedisModuleCommandArg args[] = {
    {.name = "clock", .type = REDISMODULE_ARG_TYPE_PURE_TOKEN, .token = "CLOCK"},
    {.name = "instant", .type = REDISMODULE_ARG_TYPE_ONEOF, .subargs = instant},
    {0},
};

static const RedisModuleCommandInfo info = {
    .version = REDISMODULE_COMMAND_INFO_VERSION,
    .summary = "Freezes the clock of the limiters at an instant, or lets it go. For tests.",
    .complexity = "O(1)",
    .since = RL_SINCE,
    .arity = 3,
    .args = args,
};

const struct rl_command rl_debug_command = {
    .name = "RL.DEBUG",
    .run = run,
    .flags = "admin deny-script allow-stale fast",
    .categories = "admin dangerous fast",
    .info = &info,
};
