/* Leases: at most limit units in flight, each of them held until it is released or its lease ends.
 *
 * Law: never are more than limit units alive, unless the limit was lowered. A lease is alive from its grant to the
 *   millisecond before its end; a holder that dies frees its units at the end. An id that is alive is one lease,
 *   whoever asks for it: it is extended, never counted twice, and keeps its units. An end never moves earlier, and a
 *   lease that has ended is never revived: its id is free for a new one.
 * State: the leases that were alive at the last write, and when that was. A missing key, a zeroed struct and a state
 *   whose leases have all ended are one and the same. Refusals and peeks change nothing; a write that leaves nothing
 *   alive leaves zero. What has ended counts nowhere and is in no bytes; its memory is given back by the writes that
 *   follow, some 30 leases each, so that none of them is slow. Equal states under equal writes stay equal.
 *   A lease takes about 40 bytes and its id, 53 to 59 with an id of 16; one alone is a single block of 80.
 * Rounding: there is none, all is in whole milliseconds and units. Waits are exact for any cost.
 * Clock: in milliseconds. A lease ends at most its own length from now: where a step back left it further ahead, its
 *   end counts as now + length, and is moved there by the next write. What had ended at the last write stays ended.
 * Cost: O(log n) for each id, for any number n of leases, whatever the cost asked for. Only where the state is ahead of
 *   the clock a refused check looks at every lease, several times; the write that repairs it does so once or twice.
 * Limit: another limit on a live state simply applies; the leases keep their units and ends.
 * Memory: where it is short, the answer is false and the state is what it was. Releasing never needs any. */
#ifndef RL_ALGO_LEASES_H
#define RL_ALGO_LEASES_H

#include "algo/leases_table.h"
#include "algo/verdict.h"

#define RL_LEASES_LIMIT_MAX INT64_C(1000000) /* units, so leases too */
#define RL_LEASES_IDS_MAX 1024               /* ids in one ask */

struct rl_leases_limit {
    int64_t limit;
    int64_t lease_ms;
};

struct rl_leases {
    int64_t at_ms; /* the last write; no lease was granted later */
    struct rl_lease_table table;
};

struct rl_leases_ask {
    const struct rl_lease_id *ids; /* all different */
    size_t ids_count;              /* 1 .. RL_LEASES_IDS_MAX */
    int64_t units;                 /* of a new lease; 1 where there are several ids */
    bool upto;                     /* for one id: as many units as fit; for several: the first that fit, in order */
    bool peek;
};

/* Whether the limit is one that a command may ask for and a file may hold. */
bool rl_leases_limit_valid(const struct rl_leases_limit *lim);

/* Whether no id is there twice; of RL_LEASES_IDS_MAX at most. */
bool rl_leases_ids_differ(const struct rl_lease_id *ids, size_t ids_count);

/* What the ask at now_ms would do. Changes nothing. Ids that are alive need no room: an ask of such alone is always
 * granted, and with upto they are granted even where no new one is. Allowed are the units of all ids that are granted,
 * for an id that was alive those that it has. The wait of a refusal takes into account that ids asked for may end
 * meanwhile, and need room then. `granted` tells for each id whether it is; it may be NULL. */
struct rl_verdict rl_leases_check(const struct rl_leases *l, const struct rl_leases_limit *lim,
                                  const struct rl_leases_ask *ask, int64_t now_ms, bool *granted);

/* Moves the state to now_ms, extends those of the ids that are alive, and makes the others leases of `units` each: of
 * allowed, where there is one id. The check at this same now_ms must have granted them. False, and nothing changed (but
 * that a state ahead of the clock may have been moved), where memory is short or more than RL_LEASES_LIMIT_MAX units
 * would be alive. An id that is there twice is one lease. */
bool rl_leases_take(struct rl_leases *l, const struct rl_lease_id *ids, size_t ids_count, int64_t units,
                    int64_t lease_ms, int64_t now_ms, const struct rl_allocator *mem);

/* Whether the id has a lease that is alive, and which; lease may be NULL. */
bool rl_leases_alive(const struct rl_leases *l, const struct rl_lease_id *id, int64_t now_ms, struct rl_lease *lease);

/* Moves the state to now_ms and the end of a lease that is alive to now_ms + lease_ms, if that is later. False, and
 * nothing changed (but as above): it is not alive, or memory is short. */
bool rl_leases_renew(struct rl_leases *l, const struct rl_lease_id *id, int64_t lease_ms, int64_t now_ms,
                     const struct rl_allocator *mem);

/* Ends a lease that is alive, and moves the state to now_ms unless it is ahead. False, and nothing changed: it is not
 * alive. */
bool rl_leases_release(struct rl_leases *l, const struct rl_lease_id *id, int64_t now_ms,
                       const struct rl_allocator *mem);

/* Only moves the state to now_ms: the repair after a step back of the clock. False, and nothing changed: memory is
 * short, which it can only be for a state that is ahead. */
bool rl_leases_move(struct rl_leases *l, int64_t now_ms, const struct rl_allocator *mem);

/* How many leases and units are alive. */
struct rl_tally rl_leases_used(const struct rl_leases *l, int64_t now_ms);

/* The leases that are alive, soonest end first, those that end together by id, at most max; answers how many. Of a
 * state ahead of the clock they come in the order of the ends that they had. The ids lie in the state. */
size_t rl_leases_list(const struct rl_leases *l, int64_t now_ms, struct rl_lease *out, size_t max);

/* The first millisecond at which nothing is alive; 0 where nothing ever was. */
int64_t rl_leases_ends_at_ms(const struct rl_leases *l);

/* Whether a step back of the clock left the state ahead of it. */
bool rl_leases_ahead(const struct rl_leases *l, int64_t now_ms);

/* The state as bytes, the same on every machine and for equal states; unused it has none. Decoding trusts nothing:
 * false, with nothing allocated and the state zero, where no writes can have led to the bytes or memory is short. */
size_t rl_leases_encoded_size(const struct rl_leases *l);
void rl_leases_encode(const struct rl_leases *l, unsigned char *out);
bool rl_leases_decode(struct rl_leases *l, const unsigned char *bytes, size_t len, const struct rl_allocator *mem);

/* False, and copy is zero: memory is short. */
bool rl_leases_clone(struct rl_leases *copy, const struct rl_leases *l, const struct rl_allocator *mem);

/* Frees what the state holds and zeroes it. */
void rl_leases_reset(struct rl_leases *l, const struct rl_allocator *mem);

/* Bytes held besides the struct. */
size_t rl_leases_memory(const struct rl_leases *l, const struct rl_allocator *mem);

/* Offers every block of memory to move, which answers its new place or NULL where it stays. */
void rl_leases_relocate(struct rl_leases *l, void *(*move)(void *ctx, void *block), void *ctx);

#endif
