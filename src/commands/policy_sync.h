/* Policies outlive the process and reach replicas: in the RDB, in a rewritten AOF, and gone when a server loads anew.
 */
#ifndef RL_COMMANDS_POLICY_SYNC_H
#define RL_COMMANDS_POLICY_SYNC_H

#include <stdbool.h>

#include "redismodule.h"

bool rl_policy_sync_register(RedisModuleCtx *ctx);

#endif
