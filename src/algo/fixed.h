/* Fixed window.
 *
 * Law: never more than count units in one window (FORCE aside). A window opens with its first grant or, aligned, at a
 *   multiple of the period since the epoch.
 * State: the window's start, what is used in it, and the last write. Nothing used, by refunds or because the window is
 *   over, is the same as never used. Debt ends with its window.
 * Clock: milliseconds. A window ahead of the clock is moved to begin now; an aligned one stays the current one if it is
 *   at most one period ahead, or a step back over its start would grant its units again. */
#ifndef RL_ALGO_FIXED_H
#define RL_ALGO_FIXED_H

#include "algo/verdict.h"

struct rl_fixed_limit {
    int64_t count;
    int64_t period_ms;
    int64_t align; /* 0 or 1 */
};

struct rl_fixed {
    int64_t used;
    int64_t start_ms;
    int64_t at_ms; /* the last write, never before the start */
};

bool rl_fixed_limit_valid(const struct rl_fixed_limit *lim);
bool rl_fixed_valid(const struct rl_fixed *w);

/* What the ask at now_ms would do. Changes nothing. */
struct rl_verdict rl_fixed_check(const struct rl_fixed *w, const struct rl_fixed_limit *lim, const struct rl_ask *ask,
                                 int64_t now_ms);

/* Moves the state to now_ms and takes cost units; a negative cost gives back, 0 only moves. The check at this same
 * now_ms must have allowed it. */
void rl_fixed_take(struct rl_fixed *w, const struct rl_fixed_limit *lim, int64_t cost, int64_t now_ms);

/* Puts the state under another limit as of its last write: what was used then stays used. */
void rl_fixed_rescale(struct rl_fixed *w, const struct rl_fixed_limit *to);

/* Whether the window must be moved before anything else, because the clock was stepped back behind it. */
bool rl_fixed_ahead(const struct rl_fixed *w, const struct rl_fixed_limit *lim, int64_t now_ms);

/* The first millisecond at which nothing is used. */
int64_t rl_fixed_ends_at_ms(const struct rl_fixed *w, const struct rl_fixed_limit *lim);

#endif
