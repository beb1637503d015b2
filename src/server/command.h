/* Commands: what a row of module.c's table says, and how the server is told of it. */
#ifndef RL_SERVER_COMMAND_H
#define RL_SERVER_COMMAND_H

#include <stdbool.h>

#include "redismodule.h"
#include "server/stats.h"

struct rl_command {
    const char *name;
    const char *container;  /* the command that this is a subcommand of, or NULL */
    RedisModuleCmdFunc run; /* NULL: it has subcommands */
    const char *flags;
    const char *categories; /* for ACLs, where the server can */
    const RedisModuleCommandInfo *info;
    bool finds_keys;        /* tells the server where its keys are when asked */
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

/* For commands that change what belongs to the node and not to a key: cluster clients send them to every primary. */
#define RL_COMMAND_TIPS_ALL_SHARDS "request_policy:all_shards response_policy:all_succeeded"

#endif
