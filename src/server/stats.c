#include "server/stats.h"

#include <stdio.h>

#include "server/clock.h"
#include "server/policies.h"
#include "types/memory.h"
#include "types/shared.h"

static struct rl_stats *first;

void rl_stats_add(struct rl_stats *stats) {
    struct rl_stats **end = &first;
    while (*end) end = &(*end)->next;
    *end = stats;
}

void rl_stats_count(struct rl_stats *stats, const struct rl_ask *ask, const struct rl_verdict *v) {
    if (ask->mode == RL_REFUND) {
        stats->refunded_calls += v->allowed > 0;
        stats->refunded_units += (uint64_t)v->allowed;
        return;
    }
    stats->granted_calls += v->allowed > 0;
    stats->granted_units += (uint64_t)v->allowed;
    stats->refused_calls += v->allowed == 0;
    stats->refused_units += (uint64_t)(ask->cost - v->allowed);
}

const struct rl_stats *rl_stats_first(void) {
    return first;
}

void rl_stats_reset(void) {
    for (struct rl_stats *s = first; s; s = s->next) {
        struct rl_stats fresh = {.command = s->command, .next = s->next};
        *s = fresh;
    }
}

static void add_policy(RedisModuleInfoCtx *ctx, const struct rl_policy *policy) {
    char name[sizeof("policy_") + RL_NAME_MAX];
    const struct rl_policy_stats *s = &policy->stats;
    if (s->granted_calls + s->refused_calls + s->refunded_calls + s->errors == 0) return;
    snprintf(name, sizeof(name), "policy_%s", policy->named.name);
    RedisModule_InfoBeginDictField(ctx, name);
    RedisModule_InfoAddFieldULongLong(ctx, "granted_calls", s->granted_calls);
    RedisModule_InfoAddFieldULongLong(ctx, "granted_units", s->granted_units);
    RedisModule_InfoAddFieldULongLong(ctx, "refused_calls", s->refused_calls);
    RedisModule_InfoAddFieldULongLong(ctx, "refused_units", s->refused_units);
    RedisModule_InfoAddFieldULongLong(ctx, "refunded_calls", s->refunded_calls);
    RedisModule_InfoAddFieldULongLong(ctx, "refunded_units", s->refunded_units);
    RedisModule_InfoAddFieldULongLong(ctx, "shadow_refused_calls", s->shadow_refused_calls);
    RedisModule_InfoAddFieldULongLong(ctx, "shadow_refused_units", s->shadow_refused_units);
    RedisModule_InfoAddFieldULongLong(ctx, "errors", s->errors);
    RedisModule_InfoEndDictField(ctx);
}

static void add_policies(RedisModuleInfoCtx *ctx) {
    struct rl_named **all = rl_names_sorted(&rl_policies.policies);
    RedisModule_InfoAddFieldULongLong(ctx, "policies", rl_policies.policies.count);
    for (uint32_t i = 0; i < rl_policies.policies.count; i++) add_policy(ctx, (const struct rl_policy *)all[i]);
    rl_free(all);
}

void rl_stats_info(RedisModuleInfoCtx *ctx, int for_crash_report) {
    RedisModule_InfoAddSection(ctx, NULL);
    RedisModule_InfoAddFieldCString(ctx, "clock", rl_clock_frozen() ? "frozen" : "real");
    RedisModule_InfoAddFieldULongLong(ctx, "distinct_limits", rl_shared_count());
    for (const struct rl_stats *s = first; s; s = s->next) {
        RedisModule_InfoBeginDictField(ctx, s->command);
        RedisModule_InfoAddFieldULongLong(ctx, "granted_calls", s->granted_calls);
        RedisModule_InfoAddFieldULongLong(ctx, "granted_units", s->granted_units);
        RedisModule_InfoAddFieldULongLong(ctx, "refused_calls", s->refused_calls);
        RedisModule_InfoAddFieldULongLong(ctx, "refused_units", s->refused_units);
        RedisModule_InfoAddFieldULongLong(ctx, "refunded_calls", s->refunded_calls);
        RedisModule_InfoAddFieldULongLong(ctx, "refunded_units", s->refunded_units);
        RedisModule_InfoEndDictField(ctx);
    }
    /* Which takes memory, so not after a crash. */
    if (!for_crash_report) add_policies(ctx);
}
