/* Counters of what was decided, per command, shown by INFO ratelimit. */
#ifndef RL_SERVER_STATS_H
#define RL_SERVER_STATS_H

#include "algo/verdict.h"
#include "redismodule.h"

struct rl_stats {
    const char *command; /* in lower case, as INFO shows it */
    uint64_t granted_calls, granted_units;
    uint64_t refused_calls, refused_units;
    uint64_t refunded_calls, refunded_units;
    struct rl_stats *next;
};

/* Shows these from now on. */
void rl_stats_add(struct rl_stats *stats);

/* Counts a verdict that was carried out; peeks are not counted. Units refused by UPTO are what did not fit. */
void rl_stats_count(struct rl_stats *stats, const struct rl_ask *ask, const struct rl_verdict *v);

/* All that are shown, linked by next. */
const struct rl_stats *rl_stats_first(void);

/* Starts to count anew. */
void rl_stats_reset(void);

/* The section of INFO: the commands, and the policies that were used. */
void rl_stats_info(RedisModuleInfoCtx *ctx, int for_crash_report);

#endif
