/* Limits, each stored once and shared by all keys that have it: a key holds a small number instead of its parameters.
 *
 * Only the main thread looks up, adds and removes. FLUSHALL ASYNC and UNLINK free values on other threads, which only
 * count down; what nobody holds any more is swept by the main thread when the table grows. */
#ifndef RL_TYPES_SHARED_H
#define RL_TYPES_SHARED_H

#include <stdatomic.h>

#include "types/kind.h"

struct rl_shared {
    const struct rl_kind *kind;
    struct rl_shared *next; /* in its bucket */
    int64_t unit;           /* kind->limit_unit, once for all keys */
    uint32_t id;
    uint32_t hash;
    _Atomic uint32_t refs;
    int64_t limit[];
};

/* The shared limit, with one more holder. It need not be there yet; it must be valid. */
struct rl_shared *rl_shared_hold(const struct rl_kind *kind, const int64_t *limit);
void rl_shared_retain(struct rl_shared *s);
void rl_shared_release(struct rl_shared *s);

struct rl_shared *rl_shared_by_id(uint32_t id);

bool rl_shared_is(const struct rl_shared *s, const int64_t *limit);

/* How many limits are stored. */
size_t rl_shared_count(void);

#endif
