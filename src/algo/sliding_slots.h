/* A ring of counters of units, one for each of the last n slots of time: what RL.SLIDING SLOTS remembers.
 *
 * Slots are numbered by whoever knows their width. Between the oldest and the newest counter that is not zero there are
 * less than n slots; all other counters are zero. Functions without an allocator never need memory. */
#ifndef RL_ALGO_SLIDING_SLOTS_H
#define RL_ALGO_SLIDING_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "algo/allocator.h"

struct rl_slots {
    int64_t units;          /* of all slots together */
    int64_t oldest, newest; /* slots that hold units, where there are any */
    int64_t n;
    int64_t counts[]; /* slot i is at i mod n */
};

/* An empty ring; NULL: memory is short. */
struct rl_slots *rl_slots_make(int64_t n, const struct rl_allocator *mem);

/* Units of the slots before this one. */
int64_t rl_slots_units_before(const struct rl_slots *r, int64_t slot);

/* The slot of the nth oldest unit, 1 <= nth <= units. */
int64_t rl_slots_find(const struct rl_slots *r, int64_t nth);

int64_t rl_slots_count(const struct rl_slots *r, int64_t slot);

/* Adds units >= 1 to a slot that is not before the newest, and less than n after the oldest. */
void rl_slots_append(struct rl_slots *r, int64_t slot, int64_t units);

/* Drops the slots before this one. */
void rl_slots_drop_before(struct rl_slots *r, int64_t slot);

/* Drops that many of the newest units, at most all. */
void rl_slots_drop_newest(struct rl_slots *r, int64_t units);

/* Moves what is in later slots into this one. */
void rl_slots_pull(struct rl_slots *r, int64_t slot);

/* NULL: memory is short. */
struct rl_slots *rl_slots_clone(const struct rl_slots *r, const struct rl_allocator *mem);

#endif
