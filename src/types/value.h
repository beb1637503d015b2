/* What a key holds, for every kind of limiter: the number of its shared limit, the packed state and, with KEEP, totals.
 *
 * `struct rl_value` is the packed block that lives in the key; `struct rl_live` is the same unpacked, on the stack of
 * a command. One is loaded, checked, taken from and stored back: nothing else ever changes a value, neither here nor on
 * a replica nor in a replay, so equal values and equal takes lead to equal values. */
#ifndef RL_TYPES_VALUE_H
#define RL_TYPES_VALUE_H

#include <stdalign.h>

#include "types/shared.h"

struct rl_value;

struct rl_totals {
    int64_t granted; /* by the calls that had KEEP, refunds taken off */
    int64_t last_at_ms;
    int64_t keep_ms; /* 0: there are no totals */
};

struct rl_live {
    const struct rl_kind *kind;
    struct rl_value *value;  /* the block it was loaded from, or stored in; NULL: none */
    struct rl_shared *limit; /* as of the last write; NULL: as if never used, the state is zero */
    bool borrowed;           /* the memory that the state holds is the value's, not ours */
    int64_t unused_at_us;
    struct rl_totals totals;
    alignas(16) unsigned char state[RL_STATE_SIZE];
};

/* Unpacks. A value that has outlived itself at now_us is loaded as if it had never been; value may be NULL. */
void rl_live_load(struct rl_live *live, const struct rl_kind *kind, struct rl_value *value, int64_t now_us);

/* Unpacks as it stands, whatever the time. */
void rl_live_load_all(struct rl_live *live, const struct rl_kind *kind, struct rl_value *value);

/* Starts from nothing, in place of what the value holds. */
void rl_live_forget(struct rl_live *live);

/* Gives the live state memory of its own, so that it may be changed without changing the value. */
void rl_live_own(struct rl_live *live);

/* Moves the live state under another limit, as of its last write; the value is not changed. False where the limit
 * can't hold what is used. */
bool rl_live_rescale(struct rl_live *live, const int64_t *limit);

/* Takes cost units (negative: gives back; 0: only moves the state to the moment) and stores. keep_ms is 0 without KEEP.
 * Answers what the kind has to tell. */
unsigned rl_live_take(struct rl_live *live, const int64_t *limit, int64_t cost, int64_t keep_ms,
                      const struct rl_moment *m);

/* Stores the live state in live->value: the old block where it fits, else a new one; then the old one has to be freed
 * with rl_value_free_block. */
void rl_live_store(struct rl_live *live, const int64_t *limit);

/* Gives back what a live state that was not stored holds. */
void rl_live_discard(struct rl_live *live);

/* Whether the value is as if it had never been. */
bool rl_live_ended(const struct rl_live *live, int64_t now_us);

/* Whether the clock was stepped back behind the state. */
bool rl_live_ahead(const struct rl_live *live, int64_t now_us);

/* When a key with this value should expire: when it has outlived itself, or somewhat later, so that not every grant
 * has to move it. A function of the value alone; 0 where nothing is there. */
int64_t rl_live_expiry_ms(const struct rl_live *live);

bool rl_totals_valid(const struct rl_totals *t);

struct rl_shared *rl_value_limit(const struct rl_value *value);

/* The whole value; or only the block, where the state has moved to another. */
void rl_value_free(void *value);
void rl_value_free_block(struct rl_value *value);

#endif
