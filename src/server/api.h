/* API functions newer than the header that the module is built with: looked up at load, NULL where the server is too
 * old to have them. And what the server is. */
#ifndef RL_SERVER_API_H
#define RL_SERVER_API_H

#include <stdbool.h>
#include <stdint.h>

#include "redismodule.h"

struct rl_api {
    uint64_t (*cached_us)(void);                                                       /* Redis 7.2 */
    int (*set_command_acl_categories)(RedisModuleCommand *command, const char *flags); /* Redis 7.2 */
    int (*add_acl_category)(RedisModuleCtx *ctx, const char *name);                    /* Redis 7.4, Valkey 8.0 */
};

extern struct rl_api rl_api;

/* Looks everything up. False, with a line in the log, where the server lacks what the module can't do without. */
bool rl_api_init(RedisModuleCtx *ctx);

/* What the module can handle, as the server wants to be told. */
void rl_api_declare_options(RedisModuleCtx *ctx);

#endif
