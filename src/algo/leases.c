#include "algo/leases.h"

#include <assert.h>

#define TRIM_MAX 30 /* ended leases that a write frees, besides one for each that it makes */

static int64_t later(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* What ends by then has ended: what was gone at the last write stays so when the clock is stepped back. */
static int64_t ended_by_ms(const struct rl_leases *l, int64_t now_ms) {
    return later(now_ms, l->at_ms);
}

/* A lease ends at most its own length from now. */
static int64_t end_seen_ms(const struct rl_lease *lease, int64_t now_ms) {
    int64_t most_ms = now_ms + lease->length_ms;
    return lease->end_at_ms < most_ms ? lease->end_at_ms : most_ms;
}

bool rl_leases_limit_valid(const struct rl_leases_limit *lim) {
    return lim->limit >= 1 && lim->limit <= RL_LEASES_LIMIT_MAX && lim->lease_ms >= 1 &&
           lim->lease_ms <= RL_PERIOD_MAX_MS;
}

bool rl_leases_ids_differ(const struct rl_lease_id *ids, size_t ids_count) {
    enum { SLOTS = 2 * RL_LEASES_IDS_MAX };
    uint16_t seen[SLOTS] = {0}; /* the id's number and 1, near its hash */
    assert(ids_count <= RL_LEASES_IDS_MAX);
    for (size_t i = 0; i < ids_count; i++) {
        size_t slot = rl_lease_hash(&ids[i]) % SLOTS;
        for (; seen[slot]; slot = (slot + 1) % SLOTS) {
            const struct rl_lease_id *other = &ids[seen[slot] - 1];
            if (other->len == ids[i].len && memcmp(other->bytes, ids[i].bytes, other->len) == 0) return false;
        }
        seen[slot] = (uint16_t)(i + 1);
    }
    return true;
}

/* ---- looking */

bool rl_leases_ahead(const struct rl_leases *l, int64_t now_ms) {
    return l->at_ms > now_ms;
}

bool rl_leases_alive(const struct rl_leases *l, const struct rl_lease_id *id, int64_t now_ms, struct rl_lease *lease) {
    struct rl_lease found;
    if (!rl_lease_find(&l->table, id, ended_by_ms(l, now_ms), &found)) return false;
    if (!lease) return true;
    *lease = found;
    lease->end_at_ms = end_seen_ms(&found, now_ms);
    return true;
}

struct rl_tally rl_leases_used(const struct rl_leases *l, int64_t now_ms) {
    struct rl_tally all = rl_pages_all(&l->table.by_end);
    struct rl_tally ended = rl_lease_ended(&l->table, ended_by_ms(l, now_ms));
    return (struct rl_tally){all.records - ended.records, all.units - ended.units};
}

int64_t rl_leases_ends_at_ms(const struct rl_leases *l) {
    int64_t last_ms = (int64_t)rl_pages_last_rank(&l->table.by_end);
    return last_ms > l->at_ms ? last_ms : 0;
}

size_t rl_leases_list(const struct rl_leases *l, int64_t now_ms, struct rl_lease *out, size_t max) {
    struct rl_pages_walk w = rl_lease_start(&l->table, ended_by_ms(l, now_ms));
    size_t n = 0;
    for (; n < max && rl_lease_next(&w, &out[n]); n++) out[n].end_at_ms = end_seen_ms(&out[n], now_ms);
    return n;
}

/* The last end that is seen at now_ms, at least now_ms. */
static int64_t last_end_ms(const struct rl_leases *l, int64_t now_ms) {
    if (!rl_leases_ahead(l, now_ms)) return later(rl_leases_ends_at_ms(l), now_ms);
    struct rl_pages_walk w = rl_lease_start(&l->table, l->at_ms);
    struct rl_lease lease;
    int64_t last_ms = now_ms;
    while (rl_lease_next(&w, &lease)) last_ms = later(last_ms, end_seen_ms(&lease, now_ms));
    return last_ms;
}

/* Units that will have ended at by_ms, of a state ahead of the clock. */
static int64_t ending_ahead(const struct rl_leases *l, int64_t now_ms, int64_t by_ms) {
    struct rl_pages_walk w = rl_lease_start(&l->table, l->at_ms);
    struct rl_lease lease;
    int64_t units = 0;
    while (rl_lease_next(&w, &lease)) units += end_seen_ms(&lease, now_ms) <= by_ms ? lease.units : 0;
    return units;
}

/* When the nth unit of those alive ends. */
static int64_t unit_end_ms(const struct rl_leases *l, int64_t now_ms, int64_t nth) {
    if (!rl_leases_ahead(l, now_ms)) {
        return (int64_t)rl_pages_rank_of(&l->table.by_end, rl_lease_ended(&l->table, now_ms).units + nth);
    }
    int64_t low_ms = now_ms + 1, high_ms = last_end_ms(l, now_ms);
    while (low_ms < high_ms) {
        int64_t middle_ms = low_ms + (high_ms - low_ms) / 2;
        if (ending_ahead(l, now_ms, middle_ms) >= nth) {
            high_ms = middle_ms;
        } else {
            low_ms = middle_ms + 1;
        }
    }
    return low_ms;
}

/* ---- Deciding: which ids are alive, and what all need. */

struct asked {
    int64_t held;  /* units of those alive */
    int64_t fresh; /* those not alive */
    size_t alive;
    int64_t ends_ms[RL_LEASES_IDS_MAX]; /* of those alive */
};

static void look_up(const struct rl_leases *l, const struct rl_leases_ask *ask, int64_t now_ms, struct asked *a,
                    bool *granted) {
    a->held = 0;
    a->fresh = 0;
    a->alive = 0;
    for (size_t i = 0; i < ask->ids_count; i++) {
        struct rl_lease lease;
        bool alive = rl_leases_alive(l, &ask->ids[i], now_ms, &lease);
        if (granted) granted[i] = alive;
        if (alive) {
            a->held += lease.units;
            a->ends_ms[a->alive++] = lease.end_at_ms;
        } else {
            a->fresh++;
        }
    }
}

/* When `lacking` more units fit. Of the ids asked for, each that ends meanwhile needs room of its own: one unit, as it
 * is not alone. */
static int64_t fits_at_ms(const struct rl_leases *l, const struct asked *a, int64_t lacking, int64_t now_ms) {
    int64_t anew = 0;
    for (;;) {
        int64_t at_ms = unit_end_ms(l, now_ms, lacking + anew), ended = 0;
        for (size_t i = 0; i < a->alive; i++) ended += a->ends_ms[i] <= at_ms;
        if (ended == anew) return at_ms;
        anew = ended;
    }
}

/* The first that fit, or none. */
static void grant(bool *granted, size_t ids_count, int64_t fitting) {
    for (size_t i = 0; i < ids_count; i++) {
        if (!granted[i] && fitting > 0) {
            granted[i] = true;
            fitting--;
        }
    }
}

struct rl_verdict rl_leases_check(const struct rl_leases *l, const struct rl_leases_limit *lim,
                                  const struct rl_leases_ask *ask, int64_t now_ms, bool *granted) {
    struct rl_verdict v = {.limit = lim->limit};
    struct asked a;
    assert(ask->ids_count >= 1 && ask->ids_count <= RL_LEASES_IDS_MAX && (ask->ids_count == 1 || ask->units == 1));
    look_up(l, ask, now_ms, &a, granted);

    int64_t used = rl_leases_used(l, now_ms).units;
    int64_t room = lim->limit - used, wanted = a.fresh * ask->units;
    int64_t taken = 0;
    bool refused = false;
    if (wanted == 0 || wanted <= room) {
        taken = wanted;
    } else if (ask->upto) {
        taken = later(room, 0);
        refused = taken == 0 && a.alive == 0;
        wanted = 1; /* what a refused caller waits for */
    } else {
        refused = true;
    }
    if (granted && refused) memset(granted, 0, ask->ids_count * sizeof(*granted));
    if (granted && !refused) grant(granted, ask->ids_count, taken);

    if (!refused) {
        v.allowed = a.held + taken;
    } else if (!ask->upto && (int64_t)ask->ids_count * ask->units > lim->limit) {
        v.wait_ms = RL_NEVER;
    } else {
        v.wait_ms = fits_at_ms(l, &a, wanted - room, now_ms) - now_ms;
    }
    bool written = !refused && !ask->peek;
    v.remaining = room - (written ? taken : 0);
    v.reset_ms = later(last_end_ms(l, now_ms), written ? now_ms + lim->lease_ms : 0) - now_ms;
    return v;
}

/* ---- writing */

/* Frees some of what has ended, at most max leases; nothing at all is left where nothing is alive. */
static void trim(struct rl_leases *l, size_t max, const struct rl_allocator *mem) {
    struct rl_lease lease;
    for (size_t n = 0; n < max; n++) {
        struct rl_pages_walk w = rl_lease_start(&l->table, -1);
        bool any = rl_lease_next(&w, &lease);
        if (any && lease.end_at_ms > l->at_ms) return;
        if (!any || (n == 0 && rl_leases_ends_at_ms(l) == 0)) {
            rl_leases_reset(l, mem);
            return;
        }
        rl_lease_drop(&l->table, &lease, mem);
    }
}

/* The next lease, in the order of ends and after the last one, that a step back left too far ahead. */
static bool next_ahead(const struct rl_leases *l, int64_t now_ms, struct rl_lease *lease,
                       unsigned char id[RL_LEASE_ID_MAX]) {
    struct rl_record from = {(uint64_t)lease->end_at_ms, 0, 0, lease->id.bytes, lease->id.len};
    struct rl_pages_walk w = rl_pages_start(&l->table.by_end, &from);
    struct rl_lease next;
    while (rl_lease_next(&w, &next)) {
        bool same = next.end_at_ms == lease->end_at_ms && next.id.len == lease->id.len &&
                    memcmp(next.id.bytes, lease->id.bytes, next.id.len) == 0;
        if (same || next.end_at_ms <= now_ms + next.length_ms) continue;
        *lease = next;
        memcpy(id, next.id.bytes, next.id.len);
        lease->id.bytes = id;
        return true;
    }
    return false;
}

/* Ends that are too far ahead come to be now + length: first all get their new place, then all lose the old. */
static bool move_some(struct rl_leases *l, int64_t now_ms, const struct rl_allocator *mem) {
    unsigned char id[RL_LEASE_ID_MAX];
    struct rl_lease lease = {.id.bytes = id}, moved;
    size_t done = 0;
    bool whole = true;
    while (whole && next_ahead(l, now_ms, &lease, id)) {
        moved = lease;
        moved.end_at_ms = now_ms + lease.length_ms;
        whole = rl_lease_add(&l->table, &moved, mem);
        done += whole;
    }
    lease = (struct rl_lease){.id.bytes = id};
    while (done-- > 0 && next_ahead(l, now_ms, &lease, id)) {
        moved = lease;
        if (!whole) moved.end_at_ms = now_ms + lease.length_ms; /* back to what it was */
        rl_lease_drop(&l->table, &moved, mem);
    }
    return whole;
}

/* The same for most leases: a new table is made faster. */
static bool move_most(struct rl_leases *l, int64_t now_ms, const struct rl_allocator *mem) {
    struct rl_leases moved = {.at_ms = l->at_ms};
    struct rl_pages_walk w = rl_lease_start(&l->table, -1);
    struct rl_lease lease;
    while (rl_lease_next(&w, &lease)) {
        lease.end_at_ms = end_seen_ms(&lease, now_ms);
        if (rl_lease_add(&moved.table, &lease, mem)) continue;
        rl_leases_reset(&moved, mem);
        return false;
    }
    rl_leases_reset(l, mem);
    *l = moved;
    return true;
}

/* Of a state without any that have ended. */
static bool repair(struct rl_leases *l, int64_t now_ms, const struct rl_allocator *mem) {
    struct rl_pages_walk w = rl_lease_start(&l->table, -1);
    struct rl_lease lease;
    int64_t ahead = 0;
    while (rl_lease_next(&w, &lease)) ahead += lease.end_at_ms > now_ms + lease.length_ms;
    if (ahead == 0) return true;
    bool most = ahead > rl_pages_all(&l->table.by_end).records / 4;
    return most ? move_most(l, now_ms, mem) : move_some(l, now_ms, mem);
}

bool rl_leases_move(struct rl_leases *l, int64_t now_ms, const struct rl_allocator *mem) {
    if (rl_leases_ahead(l, now_ms)) {
        trim(l, SIZE_MAX, mem); /* or it would come back */
        if (!repair(l, now_ms, mem)) return false;
    }
    if (!l->table.by_end.root) return true;
    l->at_ms = now_ms;
    trim(l, TRIM_MAX, mem);
    return true;
}

/* Gives the id a lease until lease->end_at_ms: the one that it has, or a new one. What it had stays there until it is
 * dropped, after all that may fail. Answers its end, 0 where there was none, or the same end where nothing was added;
 * or -1 where memory is short or too many units would be used. */
static int64_t place(struct rl_leases *l, struct rl_lease *lease, int64_t *used, int64_t now_ms,
                     const struct rl_allocator *mem) {
    struct rl_lease had = {0};
    if (rl_lease_find(&l->table, &lease->id, now_ms, &had)) {
        if (had.end_at_ms >= lease->end_at_ms) return lease->end_at_ms;
        lease->units = had.units;
    } else {
        *used += lease->units;
        if (*used > RL_LEASES_LIMIT_MAX) return -1;
    }
    return rl_lease_add(&l->table, lease, mem) ? had.end_at_ms : -1;
}

bool rl_leases_take(struct rl_leases *l, const struct rl_lease_id *ids, size_t ids_count, int64_t units,
                    int64_t lease_ms, int64_t now_ms, const struct rl_allocator *mem) {
    int64_t had_ends_ms[RL_LEASES_IDS_MAX];
    assert(ids_count <= RL_LEASES_IDS_MAX);
    if (units < 1 || units > RL_LEASES_LIMIT_MAX) return false;
    if (rl_leases_ahead(l, now_ms) && !rl_leases_move(l, now_ms, mem)) return false;

    int64_t used = rl_leases_used(l, now_ms).units, end_at_ms = now_ms + lease_ms;
    size_t placed = 0;
    for (; placed < ids_count; placed++) {
        struct rl_lease lease = {ids[placed], units, end_at_ms, lease_ms};
        had_ends_ms[placed] = place(l, &lease, &used, now_ms, mem);
        if (had_ends_ms[placed] < 0) break;
    }
    bool whole = placed == ids_count;
    for (size_t i = 0; i < placed; i++) { /* drop the old ones, or back to what it was */
        if (had_ends_ms[i] == end_at_ms || (whole && had_ends_ms[i] == 0)) continue;
        struct rl_lease lease = {.id = ids[i], .end_at_ms = whole ? had_ends_ms[i] : end_at_ms};
        rl_lease_drop(&l->table, &lease, mem);
    }
    if (!whole) return false;
    l->at_ms = now_ms;
    trim(l, TRIM_MAX + ids_count, mem);
    return true;
}

bool rl_leases_renew(struct rl_leases *l, const struct rl_lease_id *id, int64_t lease_ms, int64_t now_ms,
                     const struct rl_allocator *mem) {
    struct rl_lease had, lease;
    if (!rl_leases_alive(l, id, now_ms, &had)) return false;
    if (rl_leases_ahead(l, now_ms) && !rl_leases_move(l, now_ms, mem)) return false;
    lease = (struct rl_lease){*id, had.units, now_ms + lease_ms, lease_ms};
    if (lease.end_at_ms > had.end_at_ms) {
        if (!rl_lease_add(&l->table, &lease, mem)) return false;
        rl_lease_drop(&l->table, &had, mem);
    }
    l->at_ms = now_ms;
    trim(l, TRIM_MAX, mem);
    return true;
}

bool rl_leases_release(struct rl_leases *l, const struct rl_lease_id *id, int64_t now_ms,
                       const struct rl_allocator *mem) {
    struct rl_lease lease;
    if (!rl_lease_find(&l->table, id, ended_by_ms(l, now_ms), &lease)) return false;
    rl_lease_drop(&l->table, &lease, mem);
    l->at_ms = ended_by_ms(l, now_ms);
    trim(l, TRIM_MAX, mem);
    return true;
}

/* ---- the whole */

bool rl_leases_clone(struct rl_leases *copy, const struct rl_leases *l, const struct rl_allocator *mem) {
    *copy = (struct rl_leases){.at_ms = l->at_ms};
    if (rl_pages_clone(&copy->table.by_end, &l->table.by_end, mem) &&
        rl_pages_clone(&copy->table.by_id, &l->table.by_id, mem)) {
        return true;
    }
    rl_leases_reset(copy, mem);
    return false;
}

void rl_leases_reset(struct rl_leases *l, const struct rl_allocator *mem) {
    rl_pages_reset(&l->table.by_end, mem);
    rl_pages_reset(&l->table.by_id, mem);
    *l = (struct rl_leases){0};
}

size_t rl_leases_memory(const struct rl_leases *l, const struct rl_allocator *mem) {
    return rl_pages_memory(&l->table.by_end, mem) + rl_pages_memory(&l->table.by_id, mem);
}

void rl_leases_relocate(struct rl_leases *l, void *(*move)(void *ctx, void *block), void *ctx) {
    rl_pages_relocate(&l->table.by_end, move, ctx);
    rl_pages_relocate(&l->table.by_id, move, ctx);
}
