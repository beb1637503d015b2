#include "server/config.h"

#include <stddef.h>

static RedisModuleString *alert_channel;

RedisModuleString *rl_config_alert_channel(void) {
    size_t len = 0;
    if (alert_channel) RedisModule_StringPtrLen(alert_channel, &len);
    return len > 0 ? alert_channel : NULL;
}

static RedisModuleString *get_alert_channel(const char *name, void *privdata) {
    (void)name;
    (void)privdata;
    return alert_channel;
}

static int set_alert_channel(const char *name, RedisModuleString *value, void *privdata, RedisModuleString **error) {
    (void)name;
    (void)privdata;
    (void)error;
    if (alert_channel) RedisModule_FreeString(NULL, alert_channel);
    RedisModule_RetainString(NULL, value);
    alert_channel = value;
    return REDISMODULE_OK;
}

bool rl_config_register(RedisModuleCtx *ctx) {
    return RedisModule_RegisterStringConfig(ctx, "alert-channel", "rl:alerts", REDISMODULE_CONFIG_DEFAULT,
                                            get_alert_channel, set_alert_channel, NULL, NULL) == REDISMODULE_OK &&
           RedisModule_LoadConfigs(ctx) == REDISMODULE_OK;
}
