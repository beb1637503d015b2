/* What CONFIG GET and SET ratelimit.* know. */
#ifndef RL_SERVER_CONFIG_H
#define RL_SERVER_CONFIG_H

#include <stdbool.h>

#include "redismodule.h"

/* Registers the settings and reads what the server's configuration says of them. */
bool rl_config_register(RedisModuleCtx *ctx);

/* ratelimit.alert-channel: where alerts are published; NULL: nowhere. */
RedisModuleString *rl_config_alert_channel(void);

#endif
