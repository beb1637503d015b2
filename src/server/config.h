/* What CONFIG GET and SET ratelimit.* know. */
#ifndef RL_SERVER_CONFIG_H
#define RL_SERVER_CONFIG_H

#include <stdbool.h>

#include "redismodule.h"

/* Registers the settings and reads what the server's configuration says of them. */
bool rl_config_register(RedisModuleCtx *ctx);

/* ratelimit.alert-channel: where alerts are published; NULL: nowhere. */
RedisModuleString *rl_config_alert_channel(void);

/* ratelimit.cl-throttle: whether CL.THROTTLE is registered. */
bool rl_config_cl_throttle(void);

/* ratelimit.cell-import: whether CL.THROTTLE understands what redis-cell left in string keys. */
bool rl_config_cell_import(void);

#endif
