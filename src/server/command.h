/* Commands: what a row of module.c's table says, and how the server is told of it. */
#ifndef RL_SERVER_COMMAND_H
#define RL_SERVER_COMMAND_H

#include <stdbool.h>

#include "redismodule.h"
#include "server/stats.h"

struct rl_command {
    const char *name;
    RedisModuleCmdFunc run;
    const char *flags;
    const char *categories; /* for ACLs, where the server can */
    const RedisModuleCommandInfo *info;
    struct rl_stats *stats; /* of a command that decides */
};

/* Registers a command, its documentation and its ACL categories. False, with a line in the log, where the name is
 * taken. */
bool rl_command_register(RedisModuleCtx *ctx, const struct rl_command *command);

/* Makes the category @ratelimit, where the server can. Must come before the commands. */
bool rl_command_add_category(RedisModuleCtx *ctx);

/* The key specs of commands whose only key is the first argument; each ends with an empty one. */
extern const RedisModuleCommandKeySpec rl_command_updates_key[];
extern const RedisModuleCommandKeySpec rl_command_reads_key[];

#define RL_SINCE "1.0.0"

#endif
