/* RL.POLICY and its subcommands. */
#ifndef RL_COMMANDS_POLICY_H
#define RL_COMMANDS_POLICY_H

#include "server/command.h"
#include "server/policies.h"

extern const struct rl_command rl_policy_command, rl_policy_set_command, rl_policy_get_command, rl_policy_list_command,
    rl_policy_del_command, rl_policy_scale_command, rl_policy_dump_command, rl_policy_restore_command;

/* The policy with this name; NULL, and replied, where there is none. */
struct rl_policy *rl_policy_find(RedisModuleCtx *ctx, RedisModuleString *name);
struct rl_policy *rl_policy_find_bytes(RedisModuleCtx *ctx, const char *name, size_t len);

#endif
