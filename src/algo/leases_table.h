/* Leases by their end and by their id: what RL.ACQUIRE remembers.
 *
 * By end they lie sorted, with their ids, in the pages of leases_pages.h: so how many units end by some time, and when
 * the nth unit ends, are found in O(log n). By id there is a second set, of 48 bits of the id's hash with the end,
 * which leads to the place in the first; a table of one page, some thirty leases, does without and is searched as it
 * stands. The hash is SipHash under a key that everybody may know: ids whose 48 bits agree cost one more look each, and
 * even a handful takes some 2^48 tries to find.
 *
 * An id may be there with several ends; the table does not know which are alive. */
#ifndef RL_ALGO_LEASES_TABLE_H
#define RL_ALGO_LEASES_TABLE_H

#include "algo/leases_pages.h"

#define RL_LEASE_ID_MAX 128

struct rl_lease_id {
    const unsigned char *bytes;
    size_t len; /* 1 .. RL_LEASE_ID_MAX */
};

struct rl_lease {
    struct rl_lease_id id;
    int64_t units;
    int64_t end_at_ms;
    int64_t length_ms; /* it was granted, or last extended, that long before its end */
};

/* Zeroed it is empty. */
struct rl_lease_table {
    struct rl_pages by_end;
    struct rl_pages by_id; /* empty, or of all leases */
};

uint64_t rl_lease_hash(const struct rl_lease_id *id);

/* The latest lease of this id that ends after after_ms. False: there is none. The answer's id is the one given. */
bool rl_lease_find(const struct rl_lease_table *t, const struct rl_lease_id *id, int64_t after_ms,
                   struct rl_lease *out);

/* False, and nothing changed: memory is short. The id's bytes must not lie in the table; this id and end neither. */
bool rl_lease_add(struct rl_lease_table *t, const struct rl_lease *lease, const struct rl_allocator *mem);

/* Drops the lease of this id and end, which is there. Never needs memory. */
void rl_lease_drop(struct rl_lease_table *t, const struct rl_lease *lease, const struct rl_allocator *mem);

/* Of the leases that end at at_ms or before. */
struct rl_tally rl_lease_ended(const struct rl_lease_table *t, int64_t at_ms);

/* Goes over the leases that end after after_ms, soonest first, those that end together by id. Ids lie in the table. */
struct rl_pages_walk rl_lease_start(const struct rl_lease_table *t, int64_t after_ms);
bool rl_lease_next(struct rl_pages_walk *w, struct rl_lease *out);

#endif
