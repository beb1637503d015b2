/* The module: a table of types, a table of commands, and their registration. */
#include <strings.h>

#include "commands/apply.h"
#include "commands/debug.h"
#include "commands/fixed.h"
#include "commands/history.h"
#include "commands/leaky.h"
#include "commands/leases.h"
#include "commands/load.h"
#include "commands/policy.h"
#include "commands/policy_sync.h"
#include "commands/quota.h"
#include "commands/sliding.h"
#include "commands/state.h"
#include "commands/stats.h"
#include "commands/take.h"
#include "commands/takeall.h"
#include "commands/throttle.h"
#include "commands/tokenbucket.h"
#include "server/api.h"
#include "server/config.h"
#include "server/stats.h"
#include "types/fixed.h"
#include "types/leases.h"
#include "types/policy.h"
#include "types/quota.h"
#include "types/sliding.h"
#include "types/tokenbucket.h"

#define RL_VERSION 10000 /* 1.0.0 */

/* clang-format off */
struct rl_type *const rl_types[] = {
    &rl_tokenbucket_type, &rl_fixed_type, &rl_sliding_type, &rl_quota_type, &rl_leases_type, NULL,
};

const struct rl_limiter *const rl_limiters[] = {
    &rl_tokenbucket_limiter,
    &rl_leaky_limiter,
    &rl_fixed_limiter,
    &rl_sliding_limiter,
    &rl_quota_limiter,
    &rl_leases_limiter,
    NULL,
};

static const struct rl_command *const commands[] = {
    &rl_tokenbucket_command,
    &rl_leaky_command,
    &rl_fixed_command,
    &rl_sliding_command,
    &rl_quota_command,
    &rl_acquire_command,
    &rl_renew_command,
    &rl_release_command,
    &rl_state_command,
    &rl_history_command,
    &rl_apply_command,
    &rl_policy_command,
    &rl_policy_set_command,
    &rl_policy_get_command,
    &rl_policy_list_command,
    &rl_policy_del_command,
    &rl_policy_scale_command,
    &rl_policy_dump_command,
    &rl_policy_restore_command,
    &rl_load_command,
    &rl_take_command,
    &rl_takeall_command,
    &rl_stats_command,
    &rl_top_command,
    NULL,
};
/* clang-format on */

/* The only load argument is `debug`, which adds RL.DEBUG. */
static bool parse_load_arguments(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, bool *debug) {
    *debug = false;
    for (int i = 0; i < argc; i++) {
        const char *argument = RedisModule_StringPtrLen(argv[i], NULL);
        if (strcasecmp(argument, "debug") != 0) {
            RedisModule_Log(ctx, "warning", "unknown load argument '%s': the only one is debug", argument);
            return false;
        }
        *debug = true;
    }
    return true;
}

static bool register_command(RedisModuleCtx *ctx, const struct rl_command *command) {
    if (!rl_command_register(ctx, command)) return false;
    if (command->stats) rl_stats_add(command->stats);
    return true;
}

static bool register_all(RedisModuleCtx *ctx, bool debug) {
    for (int i = 0; rl_types[i]; i++) {
        if (!rl_type_register(ctx, rl_types[i])) return false;
    }
    if (!rl_policy_register(ctx) || !rl_policy_sync_register(ctx)) return false;
    if (!rl_command_add_category(ctx)) return false;
    for (int i = 0; commands[i]; i++) {
        if (!register_command(ctx, commands[i])) return false;
    }
    /* Where redis-cell itself is loaded, it keeps its command. */
    if (rl_config_cl_throttle()) register_command(ctx, &rl_throttle_command);
    return !debug || register_command(ctx, &rl_debug_command);
}

__attribute__((visibility("default"))) int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    bool debug;
    if (RedisModule_Init(ctx, "ratelimit", RL_VERSION, REDISMODULE_APIVER_1) != REDISMODULE_OK || !rl_api_init(ctx) ||
        !parse_load_arguments(ctx, argv, argc, &debug) || !rl_config_register(ctx) || !register_all(ctx, debug)) {
        return REDISMODULE_ERR;
    }
    rl_api_declare_options(ctx);
    RedisModule_RegisterInfoFunc(ctx, rl_stats_info);
    return REDISMODULE_OK;
}
