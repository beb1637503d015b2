/* What is asked of a limiter, and what it answers. Shared by every algorithm. */
#ifndef RL_ALGO_VERDICT_H
#define RL_ALGO_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

/* The bounds of every number that a client or a file can send. Chosen so that the product of any two, and a sum of
 * such products, stays far inside 128 bits. */
#define RL_UNITS_MAX INT64_C(1000000000000)   /* a count, a burst, a cost */
#define RL_USED_MAX INT64_C(1000000000000000) /* what may be owed once, debts included */
#define RL_PERIOD_MAX_MS (INT64_C(366) * 86400000)
#define RL_PERIOD_MAX_US (RL_PERIOD_MAX_MS * 1000)
#define RL_REFILL_MAX_US (INT64_C(3653) * 86400000000) /* ten years */
#define RL_CLOCK_MAX_US (INT64_C(1) << 53)             /* the year 2255; the packed states count on it */

#define RL_NEVER (-1) /* wait_ms of a cost above the limit */

enum rl_mode {
    RL_TAKE,   /* the whole cost or nothing */
    RL_FORCE,  /* the whole cost, whatever the limit says */
    RL_UPTO,   /* as much of the cost as fits */
    RL_REFUND, /* give back, as much as is used */
};

struct rl_ask {
    int64_t cost;
    enum rl_mode mode;
    bool peek; /* answer, and leave everything as it is */
};

/* The answer to every question; the first five are the reply, in this order. */
struct rl_verdict {
    int64_t allowed;
    int64_t limit;
    int64_t remaining;
    int64_t wait_ms;
    int64_t reset_ms;
    bool beyond; /* the state would leave the bounds above: an error, nothing may be taken */
};

/* By how much the use of the limiter changes when the verdict is carried out. */
static inline int64_t rl_verdict_delta(const struct rl_verdict *v, const struct rl_ask *ask) {
    return ask->mode == RL_REFUND ? -v->allowed : v->allowed;
}

#endif
