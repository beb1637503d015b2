/* A sorted set of small records in pages of at most 1 KB: what leases are kept in, by end and by id.
 *
 * A record is a rank, a tail of bytes, a value and units; the order is by rank, then tail (as memcmp, the shorter
 * first), then value where there is no tail. It takes 15 bytes and its tail. Pages hold records side by side and are
 * as large as these need, to an eighth on average; they split when full, join when less than a quarter full, and are
 * the nodes of a treap that knows how many records and units are below each page. So whatever the number of records n,
 * all questions and changes take O(log n) steps and move at most one page of bytes.
 *
 * Functions without an allocator never need memory and never give any back. */
#ifndef RL_ALGO_LEASES_PAGES_H
#define RL_ALGO_LEASES_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "algo/allocator.h"
#include "algo/leases_record.h"

struct rl_page;

/* Zeroed it is empty. */
struct rl_pages {
    struct rl_page *root;
};

struct rl_tally rl_pages_all(const struct rl_pages *p);

/* Of the records with a lower rank. */
struct rl_tally rl_pages_below(const struct rl_pages *p, uint64_t rank);

/* The rank of the record that has the nth unit, 1 <= nth <= all units. */
uint64_t rl_pages_rank_of(const struct rl_pages *p, int64_t nth);

/* The highest rank; 0 where there is no record. */
uint64_t rl_pages_last_rank(const struct rl_pages *p);

/* Whether all records, if any, are in one page. */
bool rl_pages_single(const struct rl_pages *p);

/* Whether the record is there, which fills in its units, and its value where it has a tail. */
bool rl_pages_find(const struct rl_pages *p, struct rl_record *r);

/* False, and the set is what it was: memory is short. The tail must not be one that lies in these pages. */
bool rl_pages_insert(struct rl_pages *p, const struct rl_record *r, const struct rl_allocator *mem);

/* Removes the record, or one of those that are equal. False: it is not there. */
bool rl_pages_remove(struct rl_pages *p, const struct rl_record *r, const struct rl_allocator *mem);

/* Goes over the records from this one on: start, then next until it answers false. The tails that next answers lie in
 * the pages, so both are gone with the next change. */
struct rl_pages_walk {
    const struct rl_page *page;
    size_t pos;
};
struct rl_pages_walk rl_pages_start(const struct rl_pages *p, const struct rl_record *from);
bool rl_pages_next(struct rl_pages_walk *w, struct rl_record *r);

/* False, and copy is empty: memory is short. */
bool rl_pages_clone(struct rl_pages *copy, const struct rl_pages *p, const struct rl_allocator *mem);
void rl_pages_reset(struct rl_pages *p, const struct rl_allocator *mem);
size_t rl_pages_memory(const struct rl_pages *p, const struct rl_allocator *mem);
void rl_pages_relocate(struct rl_pages *p, void *(*move)(void *ctx, void *block), void *ctx);

#endif
