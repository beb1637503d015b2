#include "server/policies.h"

#include <string.h>

#include "types/memory.h"

struct rl_policies rl_policies;

static const struct rl_scale plain = {1, 1};

struct rl_policy *rl_policy_make(const char *name, size_t len, int rules) {
    size_t size = sizeof(struct rl_policy) + (size_t)rules * sizeof(struct rl_policy_rule);
    struct rl_policy *policy = rl_alloc(size);
    memset(policy, 0, size);
    rl_named_init(&policy->named, name, len);
    policy->scale.percent = 100;
    policy->scaled_by = plain;
    return policy;
}

void rl_policy_free(struct rl_policy *policy) {
    for (int i = 0; i < policy->definition_len; i++) RedisModule_FreeString(NULL, policy->definition[i]);
    rl_free(policy->definition);
    rl_free(policy->outcomes);
    rl_policy_reset_stats(policy);
    if (policy->layout) rl_layout_release(policy->layout);
    rl_named_reset(&policy->named);
    rl_free(policy);
}

static void free_policy(struct rl_named *entry) {
    rl_policy_free((struct rl_policy *)entry);
}

static void free_load(struct rl_named *entry) {
    rl_named_reset(entry);
    rl_free(entry);
}

void rl_policies_clear(struct rl_policies *all) {
    rl_names_clear(&all->policies, free_policy);
    rl_names_clear(&all->loads, free_load);
}

struct rl_policy *rl_policies_find(const struct rl_policies *all, const char *name, size_t len) {
    return (struct rl_policy *)rl_names_find(&all->policies, name, len);
}

struct rl_load *rl_policies_find_load(const struct rl_policies *all, const char *source, size_t len) {
    return (struct rl_load *)rl_names_find(&all->loads, source, len);
}

void rl_policies_remove(struct rl_policies *all, struct rl_policy *policy) {
    rl_names_remove(&all->policies, &policy->named);
    rl_policy_free(policy);
}

void rl_policies_put(struct rl_policies *all, struct rl_policy *policy) {
    struct rl_policy *old = rl_policies_find(all, policy->named.name, policy->named.len);
    if (old) {
        policy->stats = old->stats;
        policy->refused_keys = old->refused_keys;
        if (policy->scale.until_ms == 0) policy->scale = old->scale;
        old->refused_keys = NULL;
        rl_policies_remove(all, old);
    }
    rl_names_add(&all->policies, &policy->named);
}

static void drop_ended_loads(struct rl_policies *all, int64_t now_ms) {
    struct rl_named **loads = rl_names_sorted(&all->loads);
    for (uint32_t i = 0, n = all->loads.count; i < n; i++) {
        if (((struct rl_load *)loads[i])->now.until_ms > now_ms) continue;
        rl_names_remove(&all->loads, loads[i]);
        free_load(loads[i]);
    }
    rl_free(loads);
}

bool rl_policies_put_load(struct rl_policies *all, const char *source, size_t len, struct rl_timed_percent load,
                          int64_t now_ms) {
    struct rl_load *entry = rl_policies_find_load(all, source, len);
    if (!entry) {
        if (all->loads.count >= RL_LOADS_MAX) drop_ended_loads(all, now_ms);
        if (all->loads.count >= RL_LOADS_MAX) return false;
        entry = rl_alloc(sizeof(*entry));
        rl_named_init(&entry->named, source, len);
        rl_names_add(&all->loads, &entry->named);
    }
    entry->now = load;
    return true;
}

/* The percent that a load maps to: that of the highest step it reaches. */
static int64_t adapted_percent(const struct rl_policy *policy, int64_t load) {
    int64_t percent = 100;
    for (int i = 0; i < policy->steps_len && policy->steps[i].load <= load; i++) percent = policy->steps[i].percent;
    return percent;
}

struct rl_scale rl_policy_scale_at(const struct rl_policy *policy, int64_t now_ms, int64_t *until_ms) {
    int64_t scale = 100, adapted = 100;
    *until_ms = INT64_MAX;
    if (now_ms < policy->scale.until_ms) {
        scale = policy->scale.percent;
        *until_ms = policy->scale.until_ms;
    }
    if (policy->steps_len > 0) {
        struct rl_load *load = rl_policies_find_load(&rl_policies, policy->source.bytes, policy->source.len);
        if (load && now_ms < load->now.until_ms) {
            adapted = adapted_percent(policy, load->now.percent);
            if (load->now.until_ms < *until_ms) *until_ms = load->now.until_ms;
        }
    }
    return scale == 100 && adapted == 100 ? plain : rl_scale_of(scale, adapted);
}

int64_t rl_policy_refresh(struct rl_policy *policy, int64_t now_ms) {
    int64_t until_ms;
    struct rl_scale scale = rl_policy_scale_at(policy, now_ms, &until_ms);
    if (rl_scale_same(scale, policy->scaled_by)) return until_ms;
    for (int i = 0; i < rl_policy_rules(policy); i++) {
        struct rl_policy_rule *rule = &policy->rules[i];
        rule->kind->limit_scale(rule->scaled, rule->limit, scale);
    }
    policy->scaled_by = scale;
    return until_ms;
}

const struct rl_outcome *rl_policy_outcome(const struct rl_policy *policy, const char *label, size_t len) {
    for (int i = 0; i < policy->outcomes_len; i++) {
        if (rl_name_is(&policy->outcomes[i].label, label, len)) return &policy->outcomes[i];
    }
    return policy->other;
}

void rl_policy_count_refused_key(struct rl_policy *policy, RedisModuleString *key) {
    size_t len;
    const char *bytes = RedisModule_StringPtrLen(key, &len);
    if (!policy->refused_keys) policy->refused_keys = rl_sketch_make();
    rl_sketch_count(policy->refused_keys, bytes, len);
}

void rl_policy_reset_stats(struct rl_policy *policy) {
    policy->stats = (struct rl_policy_stats){0};
    if (policy->refused_keys) rl_sketch_free(policy->refused_keys);
    policy->refused_keys = NULL;
}
