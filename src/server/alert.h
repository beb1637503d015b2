/* Alerts: the world is told, once, that a limiter's use has reached a threshold. */
#ifndef RL_SERVER_ALERT_H
#define RL_SERVER_ALERT_H

#include <stdint.h>

#include "redismodule.h"

struct rl_alert {
    RedisModuleString *key;
    const char *policy, *rule; /* of a key under a policy; else NULL */
    size_t policy_len, rule_len;
    const char *kind;
    int64_t percent; /* the threshold */
    int64_t used;
    int64_t limit;
    int64_t period_end_ms;
};

/* Publishes the alert as a JSON object on ratelimit.alert-channel, and raises the keyspace event rl.alert. */
void rl_alert_publish(RedisModuleCtx *ctx, const struct rl_alert *alert);

#endif
