#include "server/command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "server/api.h"

#define FIRST_ARGUMENT                                                                                                 \
    .begin_search_type = REDISMODULE_KSPEC_BS_INDEX, .bs.index.pos = 1, .find_keys_type = REDISMODULE_KSPEC_FK_RANGE,  \
    .fk.range = {.lastkey = 0, .keystep = 1, .limit = 0}

const RedisModuleCommandKeySpec rl_command_updates_key[] = {
    {.flags = REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_ACCESS | REDISMODULE_CMD_KEY_UPDATE, FIRST_ARGUMENT},
    {0},
};

const RedisModuleCommandKeySpec rl_command_reads_key[] = {
    {.flags = REDISMODULE_CMD_KEY_RO | REDISMODULE_CMD_KEY_ACCESS, FIRST_ARGUMENT},
    {0},
};

bool rl_command_add_category(RedisModuleCtx *ctx) {
    if (!rl_api.add_acl_category) return true;
    /* Loading again after a failed load finds the category there: the server never takes one back. */
    return rl_api.add_acl_category(ctx, "ratelimit") == REDISMODULE_OK || errno == EBUSY;
}

/* @ratelimit is what an application needs: nothing dangerous. It can only be named where it could be made. */
static void set_categories(RedisModuleCommand *handle, const char *categories) {
    char with_own[128];
    if (!rl_api.set_command_acl_categories || !categories) return;
    bool own = rl_api.add_acl_category && !strstr(categories, "dangerous");
    snprintf(with_own, sizeof(with_own), "%s%s", categories, own ? " ratelimit" : "");
    rl_api.set_command_acl_categories(handle, with_own);
}

/* Where the server finds the keys by itself they begin, and end, with the first argument. */
static int create(RedisModuleCtx *ctx, const struct rl_command *command) {
    int key = command->info->key_specs && !command->finds_keys ? 1 : 0;
    if (!command->container) {
        return RedisModule_CreateCommand(ctx, command->name, command->run, command->flags, key, key, key);
    }
    RedisModuleCommand *container = RedisModule_GetCommand(ctx, command->container);
    return RedisModule_CreateSubcommand(container, command->name, command->run, command->flags, key, key, key);
}

bool rl_command_register(RedisModuleCtx *ctx, const struct rl_command *command) {
    char name[64];
    if (create(ctx, command) != REDISMODULE_OK) {
        RedisModule_Log(ctx, "warning", "the command %s is taken by the server or another module", command->name);
        return false;
    }
    snprintf(name, sizeof(name), "%s%s%s", command->container ? command->container : "", command->container ? "|" : "",
             command->name);
    RedisModuleCommand *handle = RedisModule_GetCommand(ctx, name);
    set_categories(handle, command->categories);
    return RedisModule_SetCommandInfo(handle, command->info) == REDISMODULE_OK;
}
