#include "server/api.h"

#include <stddef.h>

/* Valkey's own bit: the module's types survive an atomic slot migration. Redis may give the bit another meaning. */
#define VALKEY_HANDLES_ATOMIC_SLOT_MIGRATION (1 << 5)

struct rl_api rl_api;

static void find(const char *name, void *function) {
    if (RedisModule_GetApi(name, function) != REDISMODULE_OK) *(void **)function = NULL;
}

bool rl_api_init(RedisModuleCtx *ctx) {
    /* Redis 7.0 was the first to describe commands; everything else that is called came before. */
    void *describe;
    find("RedisModule_SetCommandInfo", &describe);
    if (!describe) {
        RedisModule_Log(ctx, "warning", "ratelimit needs Redis 7.0 or newer, or Valkey 8.0 or newer: not loaded");
        return false;
    }
    find("RedisModule_CachedMicroseconds", &rl_api.cached_us);
    find("RedisModule_SetCommandACLCategories", &rl_api.set_command_acl_categories);
    find("RedisModule_AddACLCategory", &rl_api.add_acl_category);
    return true;
}

static bool is_valkey(RedisModuleCtx *ctx) {
    RedisModuleServerInfoData *info = RedisModule_GetServerInfo(ctx, "server");
    bool found = RedisModule_ServerInfoGetFieldC(info, "valkey_version") != NULL;
    RedisModule_FreeServerInfo(ctx, info);
    return found;
}

void rl_api_declare_options(RedisModuleCtx *ctx) {
    /* A refusal opens its key for writing too, and must not wake up WATCH or client tracking. */
    int options = REDISMODULE_OPTIONS_HANDLE_IO_ERRORS | REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED |
                  REDISMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD;
    if (is_valkey(ctx)) options |= VALKEY_HANDLES_ATOMIC_SLOT_MIGRATION;
    RedisModule_SetModuleOptions(ctx, options);
}
