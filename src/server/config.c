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

static int cl_throttle = 1, cell_import = 0;

bool rl_config_cl_throttle(void) {
    return cl_throttle;
}

bool rl_config_cell_import(void) {
    return cell_import;
}

static int get_bool(const char *name, void *setting) {
    (void)name;
    return *(int *)setting;
}

static int set_bool(const char *name, int value, void *setting, RedisModuleString **error) {
    (void)name;
    (void)error;
    *(int *)setting = value;
    return REDISMODULE_OK;
}

bool rl_config_register(RedisModuleCtx *ctx) {
    return RedisModule_RegisterStringConfig(ctx, "alert-channel", "rl:alerts", REDISMODULE_CONFIG_DEFAULT,
                                            get_alert_channel, set_alert_channel, NULL, NULL) == REDISMODULE_OK &&
           RedisModule_RegisterBoolConfig(ctx, "cl-throttle", 1, REDISMODULE_CONFIG_IMMUTABLE, get_bool, set_bool, NULL,
                                          &cl_throttle) == REDISMODULE_OK &&
           RedisModule_RegisterBoolConfig(ctx, "cell-import", 0, REDISMODULE_CONFIG_DEFAULT, get_bool, set_bool, NULL,
                                          &cell_import) == REDISMODULE_OK &&
           RedisModule_LoadConfigs(ctx) == REDISMODULE_OK;
}
