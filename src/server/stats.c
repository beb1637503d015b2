#include "server/stats.h"

#include "server/clock.h"
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

void rl_stats_info(RedisModuleInfoCtx *ctx, int for_crash_report) {
    (void)for_crash_report;
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
}
