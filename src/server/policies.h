/* Policies: limits with a name. And loads, which policies adapt to. They are the node's, not in any key. */
#ifndef RL_SERVER_POLICIES_H
#define RL_SERVER_POLICIES_H

#include "redismodule.h"
#include "server/names.h"
#include "server/sketch.h"
#include "types/layout.h"

#define RL_POLICIES_MAX 4096
#define RL_LOADS_MAX 1024
#define RL_OUTCOMES_MAX 64
#define RL_ADAPT_STEPS_MAX 16

struct rl_limiter; /* of the commands */

struct rl_policy_rule {
    const struct rl_limiter *limiter;
    const struct rl_kind *kind;
    int64_t keep_ms;
    int64_t limit[RL_LIMIT_WORDS];  /* as defined */
    int64_t scaled[RL_LIMIT_WORDS]; /* by the policy's scale */
};

struct rl_outcome {
    struct rl_name label;
    int64_t cost; /* negative: gives back */
};

struct rl_policy_stats {
    uint64_t granted_calls, granted_units;
    uint64_t refused_calls, refused_units;
    uint64_t refunded_calls, refunded_units;
    uint64_t shadow_refused_calls, shadow_refused_units;
    uint64_t errors;
};

/* A percent that holds for a while. */
struct rl_timed_percent {
    int64_t percent;
    int64_t until_ms; /* from then on it is 100, for a load none */
};

struct rl_policy {
    struct rl_named named;
    struct rl_layout *layout;
    RedisModuleString **definition; /* what SET had after the name */
    int definition_len;
    bool shadow;

    struct rl_outcome *outcomes;
    int outcomes_len;
    struct rl_outcome *other; /* the one of `*`, or NULL */

    struct rl_name source; /* of the load that it adapts to; NULL: none */
    int steps_len;
    struct {
        int64_t load, percent;
    } steps[RL_ADAPT_STEPS_MAX]; /* by load */

    struct rl_timed_percent scale;
    struct rl_scale scaled_by; /* what the rules' scaled limits are */

    struct rl_policy_stats stats;
    struct rl_sketch *refused_keys; /* NULL until a call is refused */
    struct rl_policy_rule rules[];
};

struct rl_load {
    struct rl_named named;
    struct rl_timed_percent now;
};

/* The policies and loads of this node; another such struct is what is being loaded while this one still serves. */
struct rl_policies {
    struct rl_names policies, loads;
};
extern struct rl_policies rl_policies;

void rl_policies_clear(struct rl_policies *all);

struct rl_policy *rl_policies_find(const struct rl_policies *all, const char *name, size_t len);
struct rl_load *rl_policies_find_load(const struct rl_policies *all, const char *source, size_t len);

/* Puts a policy in place of the one with its name, whose scale and counts it inherits. There must be room. */
void rl_policies_put(struct rl_policies *all, struct rl_policy *policy);
void rl_policies_remove(struct rl_policies *all, struct rl_policy *policy);

/* Loads that have ended make room at now_ms. False: there is none. */
bool rl_policies_put_load(struct rl_policies *all, const char *source, size_t len, struct rl_timed_percent load,
                          int64_t now_ms);

/* A policy with room for so many rules, and nothing else in it. */
struct rl_policy *rl_policy_make(const char *name, size_t len, int rules);
void rl_policy_free(struct rl_policy *policy);

static inline int rl_policy_rules(const struct rl_policy *policy) {
    return policy->layout->shape.rules;
}

/* How much of its limits a policy grants at now_ms, and until when: INT64_MAX for ever. */
struct rl_scale rl_policy_scale_at(const struct rl_policy *policy, int64_t now_ms, int64_t *until_ms);

/* Brings the scaled limits of its rules up to now_ms, and answers until when they hold. */
int64_t rl_policy_refresh(struct rl_policy *policy, int64_t now_ms);

/* What a label costs; NULL where the policy's table doesn't tell. */
const struct rl_outcome *rl_policy_outcome(const struct rl_policy *policy, const char *label, size_t len);

void rl_policy_count_refused_key(struct rl_policy *policy, RedisModuleString *key);
void rl_policy_reset_stats(struct rl_policy *policy);

#endif
