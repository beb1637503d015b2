/* Sliding window, of units that are logged (EXACT) or counted by slots of time (SLOTS n).
 *
 * Law: no window of the period ever holds more than count units (FORCE aside).
 *   EXACT: a unit granted at t is gone at t + period, and all that the law permits is granted.
 *   SLOTS: time is cut into slots of ceil(period / n) ms from the epoch on; a unit granted in a slot is gone one period
 *   after the slot's end, so up to one slot later than the law asks. Never are more than n + 1 slots alive: n times the
 *   width is at least the period, so when slot i begins, slot i - n - 1 ended a period ago or earlier.
 * State: what was alive at the last write, and when that was. A missing key, a zeroed struct and a state that was last
 *   written a period (and a slot) ago are one and the same. Refusals and peeks trim nothing; a take drops what is gone,
 *   and a state with nothing left is zero again. So equal states under equal takes stay equal.
 *   EXACT takes a few bytes for each millisecond in which something was granted (see sliding_log.h), and no memory at
 * all for one. It never has more than 65,536 entries: beyond, FORCE moves the newest entry to now and adds to it. SLOTS
 * takes 8 (n + 1) + 32 bytes. Rounding: there is none, all is in whole milliseconds and units. Waits are exact for any
 * cost. Clock: in milliseconds. What lies ahead of the clock is taken to be of now; what is used is kept, what had gone
 * stays gone. So a step back never grants more, and delays by at most one period (and a slot). Cost: whatever the
 * number of entries, a check or take of EXACT looks at some of the oldest, or bisects the log. SLOTS goes over the
 * slots that have expired since the last write, and those to be waited for. Memory: where it is short, the answer is
 * false and the state is what it was. */
#ifndef RL_ALGO_SLIDING_H
#define RL_ALGO_SLIDING_H

#include "algo/allocator.h"
#include "algo/sliding_log.h"
#include "algo/sliding_slots.h"
#include "algo/verdict.h"

#define RL_SLIDING_EXACT_MAX INT64_C(65536) /* the largest count without slots */
#define RL_SLIDING_SLOTS_MIN 2
#define RL_SLIDING_SLOTS_MAX 1024

struct rl_sliding_limit {
    int64_t count;
    int64_t period_ms;
    int64_t slots; /* 0: EXACT */
};

/* Of log and slots at most one is in use. */
struct rl_sliding {
    int64_t at_ms; /* the last write; nothing is later */
    struct rl_log log;
    struct rl_slots *slots;
};

/* Whether the limit is one that a command may ask for and a file may hold. */
bool rl_sliding_limit_valid(const struct rl_sliding_limit *lim);

/* What the ask at now_ms would do. Changes nothing. */
struct rl_verdict rl_sliding_check(const struct rl_sliding *s, const struct rl_sliding_limit *lim,
                                   const struct rl_ask *ask, int64_t now_ms);

/* Moves the state to now_ms and takes cost units; a negative cost gives back the newest, at most all; 0 only moves. The
 * check at this same now_ms must have allowed it. False, and nothing changed, where memory is short or more than
 * RL_USED_MAX would be used; a cost of 0 or less always succeeds. */
bool rl_sliding_take(struct rl_sliding *s, const struct rl_sliding_limit *lim, int64_t cost, int64_t now_ms,
                     const struct rl_allocator *mem);

/* Puts the state under another limit as of its last write. What is used stays used, and leaves by the new rule: a unit
 * of the log keeps its time; a unit of a slot counts as granted in the slot's last millisecond, but not after the last
 * write. What by that had left at the last write is dropped. False, and nothing changed, where memory is short. */
bool rl_sliding_rescale(struct rl_sliding *s, const struct rl_sliding_limit *from, const struct rl_sliding_limit *to,
                        const struct rl_allocator *mem);

/* Whether a state under one limit may be given to check, take and ends_at as it is, under the other: they answer and do
 * the same as after rescale. So is any EXACT to any EXACT, and SLOTS where only the count differs. */
bool rl_sliding_limit_alike(const struct rl_sliding_limit *from, const struct rl_sliding_limit *to);

/* The first millisecond at which nothing is used; 0 where nothing ever was. */
int64_t rl_sliding_ends_at_ms(const struct rl_sliding *s, const struct rl_sliding_limit *lim);

/* Whether a step back of the clock left the state ahead of it. */
bool rl_sliding_ahead(const struct rl_sliding *s, int64_t now_ms);

/* The state as bytes, the same on every machine and for equal states; unused it has none. Decoding trusts nothing:
 * false, with nothing allocated and the state zero, where no state under this valid limit can have led to the bytes or
 * memory is short. */
size_t rl_sliding_encoded_size(const struct rl_sliding *s);
void rl_sliding_encode(const struct rl_sliding *s, unsigned char *out);
bool rl_sliding_decode(struct rl_sliding *s, const struct rl_sliding_limit *lim, const unsigned char *bytes, size_t len,
                       const struct rl_allocator *mem);

/* False, and copy is zero: memory is short. */
bool rl_sliding_clone(struct rl_sliding *copy, const struct rl_sliding *s, const struct rl_allocator *mem);

/* Frees what the state holds and zeroes it. */
void rl_sliding_reset(struct rl_sliding *s, const struct rl_allocator *mem);

/* Bytes held besides the struct. */
size_t rl_sliding_memory(const struct rl_sliding *s, const struct rl_allocator *mem);

/* Offers every block of memory to move, which answers its new place or NULL where it stays. */
void rl_sliding_relocate(struct rl_sliding *s, void *(*move)(void *ctx, void *block), void *ctx);

#endif
