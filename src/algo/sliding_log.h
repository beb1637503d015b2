/* A log of units by the millisecond in which they were granted, oldest first: what RL.SLIDING EXACT remembers.
 *
 * Units of one millisecond are one entry. The newest entry stands by itself, so that a log of one needs no memory;
 * those before it are a string of varints, each the time since the entry before and, unless it is one, the units: two
 * bytes for one unit within 8 s. Every 32 entries a mark notes what time it is there and how many units lie before, so
 * any instant and any unit is found by bisection and at most 32 steps, however long the log. Memory grows by an eighth
 * and shrinks when less than half is in use; the space of dropped entries is used again once it is an eighth.
 *
 * Functions without an allocator never need memory and never give any back. */
#ifndef RL_ALGO_SLIDING_LOG_H
#define RL_ALGO_SLIDING_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "algo/allocator.h"

#define RL_LOG_ENTRIES_MAX 65536

struct rl_log_block;

struct rl_log {
    int64_t newest_at_ms;
    int64_t newest_units; /* 0: the log is empty, and everything here is zero */
    struct rl_log_block *older;
};

/* A place between two entries. */
struct rl_log_place {
    int64_t at_ms;  /* of the entry before */
    uint64_t units; /* of all entries before; this and the next two wrap, only their differences count */
    uint32_t pos;   /* in bytes */
    uint32_t seq;   /* in entries */
};

int64_t rl_log_units(const struct rl_log *log);

/* Units of the entries earlier than at_ms. */
int64_t rl_log_units_before(const struct rl_log *log, int64_t at_ms);

/* When the nth oldest unit was granted, 1 <= nth <= rl_log_units. */
int64_t rl_log_find(const struct rl_log *log, int64_t nth);

/* Gets the memory that an append at at_ms may need, even if there is a pull or a drop_before in between. False: memory
 * is short. The log says the same as before. */
bool rl_log_reserve(struct rl_log *log, int64_t at_ms, const struct rl_allocator *mem);

/* Appends units >= 1, after a reserve for the same at_ms, which is not before the newest entry. A log of
 * RL_LOG_ENTRIES_MAX entries does not grow: its newest entry is moved to at_ms and takes the units. */
void rl_log_append(struct rl_log *log, int64_t at_ms, int64_t units);

/* Drops the entries earlier than at_ms. */
void rl_log_drop_before(struct rl_log *log, int64_t at_ms, const struct rl_allocator *mem);

/* Drops that many of the newest units, at most all. */
void rl_log_drop_newest(struct rl_log *log, int64_t units, const struct rl_allocator *mem);

/* Moves the entries later than at_ms to at_ms. */
void rl_log_pull(struct rl_log *log, int64_t at_ms);

/* Goes over all entries: start, then next until it answers false. The log must not change meanwhile. */
struct rl_log_walk {
    const struct rl_log *log;
    struct rl_log_place place;
    bool done;
};
struct rl_log_walk rl_log_start(const struct rl_log *log);
bool rl_log_next(struct rl_log_walk *walk, int64_t *at_ms, int64_t *units);

/* False, and copy is empty: memory is short. */
bool rl_log_clone(struct rl_log *copy, const struct rl_log *log, const struct rl_allocator *mem);

/* Empties the log and frees its memory. */
void rl_log_reset(struct rl_log *log, const struct rl_allocator *mem);

size_t rl_log_memory(const struct rl_log *log, const struct rl_allocator *mem);

/* Offers every block to move, which answers its new place or NULL where it stays. */
void rl_log_relocate(struct rl_log *log, void *(*move)(void *ctx, void *block), void *ctx);

#endif
