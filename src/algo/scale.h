/* Limits made tighter or wider by a share: a policy's percents, multiplied and reduced.
 *
 * A scaled count is rounded down, but 0 only where the share is 0; what was 0 stays 0. A rate's share is exact: it is
 * the same count, times over times as much time. */
#ifndef RL_ALGO_SCALE_H
#define RL_ALGO_SCALE_H

#include <stdbool.h>
#include <stdint.h>

#define RL_SCALE_PERCENT_MAX 1000
#define RL_SCALE_TIMES_MAX INT64_C(1000000) /* two such percents, multiplied */
#define RL_SCALE_OF_MAX INT64_C(10000)

struct rl_scale {
    int64_t times; /* at most RL_SCALE_TIMES_MAX */
    int64_t of;    /* from 1 to RL_SCALE_OF_MAX */
};

/* The share of two percents, each at most RL_SCALE_PERCENT_MAX. */
static inline struct rl_scale rl_scale_of(int64_t percent, int64_t other_percent) {
    int64_t times = percent * other_percent, of = RL_SCALE_OF_MAX;
    int64_t a = of, b = times;
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return (struct rl_scale){times / a, of / a};
}

static inline bool rl_scale_same(struct rl_scale a, struct rl_scale b) {
    return a.times == b.times && a.of == b.of;
}

/* A count of at most 10^12 scaled, and at most max. */
static inline int64_t rl_scale_count(struct rl_scale s, int64_t count, int64_t max) {
    int64_t scaled = count * s.times / s.of;
    if (scaled == 0) return count > 0 && s.times > 0;
    return scaled < max ? scaled : max;
}

#endif
