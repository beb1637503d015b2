/* Token bucket.
 *
 * Law: over any span t at most burst + t * count / period units pass (FORCE aside).
 * State: what is owed, and since when. A missing key, a zeroed struct and a bucket idle for long are one and the same,
 *   so that the expiry of the key is never observable.
 * Rounding: against the caller. What is owed is counted in 1/period_us of a unit, of which every microsecond pays back
 *   exactly `count`: no interval is ever rounded, no fraction dropped. Remaining goes down, waits go up.
 * Clock: a state ahead of the clock is taken to be of now; what is owed is kept. */
#ifndef RL_ALGO_TOKENBUCKET_H
#define RL_ALGO_TOKENBUCKET_H

#include "algo/scale.h"
#include "algo/verdict.h"

__extension__ typedef unsigned __int128 rl_u128;
__extension__ typedef __int128 rl_i128;

struct rl_tokenbucket_limit {
    int64_t count;
    int64_t period_us; /* whole milliseconds */
    int64_t burst;
};

struct rl_tokenbucket {
    rl_u128 owed; /* in 1/period_us of a unit */
    int64_t at_us;
};

/* Whether the limit is one that a command may ask for and a file may hold. */
bool rl_tokenbucket_limit_valid(const struct rl_tokenbucket_limit *lim);

/* The limit scaled: the burst is, and the rate slows down or speeds up exactly alike; a share of 0 has no burst, and
 * pays back at the plain rate. What comes out may lie outside of the bounds for commands: a file and an effect may hold
 * that too, and all products still fit (below). */
void rl_tokenbucket_scale(struct rl_tokenbucket_limit *scaled, const struct rl_tokenbucket_limit *lim,
                          struct rl_scale scale);
bool rl_tokenbucket_limit_storable(const struct rl_tokenbucket_limit *lim);

/* Whether the state is one that this limit can have led to. */
bool rl_tokenbucket_valid(const struct rl_tokenbucket *b, const struct rl_tokenbucket_limit *lim);

/* What the ask at now_us would do. Changes nothing. */
struct rl_verdict rl_tokenbucket_check(const struct rl_tokenbucket *b, const struct rl_tokenbucket_limit *lim,
                                       const struct rl_ask *ask, int64_t now_us);

/* Moves the state to now_us and takes cost units; a negative cost gives back, 0 only moves. The check at this same
 * now_us must have allowed it. */
void rl_tokenbucket_take(struct rl_tokenbucket *b, const struct rl_tokenbucket_limit *lim, int64_t cost,
                         int64_t now_us);

/* Puts the state under another limit as of its last write: what is owed stays owed, rounded up. False, and nothing
 * changed, where the new limit cannot hold it. */
bool rl_tokenbucket_rescale(struct rl_tokenbucket *b, const struct rl_tokenbucket_limit *from,
                            const struct rl_tokenbucket_limit *to);

/* How long what is granted at now_us must be held for units to leave evenly spaced: until what was owed before it has
 * been paid back, rounded up to a millisecond. */
int64_t rl_tokenbucket_hold_ms(const struct rl_tokenbucket *b, const struct rl_tokenbucket_limit *lim, int64_t now_us);

/* The first instant at which nothing is owed. */
int64_t rl_tokenbucket_full_at_us(const struct rl_tokenbucket *b, const struct rl_tokenbucket_limit *lim);

#endif
