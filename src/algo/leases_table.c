#include "algo/leases_table.h"

#define INDEX_BITS 48
#define UNINDEXED 8 /* leases for which an index is given up */

/* ---- SipHash-2-4 */

static uint64_t rotate(uint64_t x, unsigned bits) {
    return x << bits | x >> (64 - bits);
}

static void sip_round(uint64_t v[4]) {
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
}

static void sip_word(uint64_t v[4], uint64_t word) {
    v[3] ^= word;
    sip_round(v);
    sip_round(v);
    v[0] ^= word;
}

uint64_t rl_lease_hash(const struct rl_lease_id *id) {
    uint64_t v[4] = {UINT64_C(0x736f6d6570736575), UINT64_C(0x646f72616e646f6d), UINT64_C(0x6c7967656e657261),
                     UINT64_C(0x7465646279746573)};
    uint64_t word;
    size_t at = 0;
    for (; at + sizeof(word) <= id->len; at += sizeof(word)) {
        memcpy(&word, id->bytes + at, sizeof(word));
        sip_word(v, word);
    }
    word = (uint64_t)id->len << 56;
    for (unsigned shift = 0; at < id->len; shift += 8) word |= (uint64_t)id->bytes[at++] << shift;
    sip_word(v, word);
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++) sip_round(v);
    return (v[0] ^ v[1] ^ v[2] ^ v[3]) >> (64 - INDEX_BITS);
}

/* ---- leases as records */

static struct rl_record end_record(const struct rl_lease *lease) {
    return (struct rl_record){.rank = (uint64_t)lease->end_at_ms,
                              .value = (uint64_t)lease->length_ms,
                              .units = (uint64_t)lease->units,
                              .tail = lease->id.bytes,
                              .tail_len = lease->id.len};
}

static struct rl_record id_record(const struct rl_lease_id *id, int64_t end_at_ms) {
    return (struct rl_record){.rank = rl_lease_hash(id), .value = (uint64_t)end_at_ms};
}

static struct rl_lease lease_of(const struct rl_record *r) {
    return (struct rl_lease){{r->tail, r->tail_len}, (int64_t)r->units, (int64_t)r->rank, (int64_t)r->value};
}

struct rl_pages_walk rl_lease_start(const struct rl_lease_table *t, int64_t after_ms) {
    struct rl_record from = {.rank = (uint64_t)after_ms + 1};
    return rl_pages_start(&t->by_end, &from);
}

bool rl_lease_next(struct rl_pages_walk *w, struct rl_lease *out) {
    struct rl_record r;
    if (!rl_pages_next(w, &r)) return false;
    *out = lease_of(&r);
    return true;
}

struct rl_tally rl_lease_ended(const struct rl_lease_table *t, int64_t at_ms) {
    return rl_pages_below(&t->by_end, (uint64_t)at_ms + 1);
}

static bool find_unindexed(const struct rl_lease_table *t, const struct rl_lease_id *id, int64_t after_ms,
                           struct rl_lease *out) {
    struct rl_pages_walk w = rl_lease_start(t, after_ms);
    struct rl_lease lease;
    bool found = false;
    while (rl_lease_next(&w, &lease)) {
        if (lease.id.len != id->len || memcmp(lease.id.bytes, id->bytes, id->len) != 0) continue;
        *out = lease;
        found = true;
    }
    if (found) out->id = *id;
    return found;
}

bool rl_lease_find(const struct rl_lease_table *t, const struct rl_lease_id *id, int64_t after_ms,
                   struct rl_lease *out) {
    if (!t->by_id.root) return find_unindexed(t, id, after_ms, out);
    struct rl_record hint = id_record(id, after_ms + 1);
    uint64_t hash = hint.rank;
    struct rl_pages_walk w = rl_pages_start(&t->by_id, &hint);
    bool found = false;
    while (rl_pages_next(&w, &hint) && hint.rank == hash) {
        struct rl_record r = {.rank = hint.value, .tail = id->bytes, .tail_len = id->len};
        if (!rl_pages_find(&t->by_end, &r)) continue;
        *out = lease_of(&r);
        found = true;
    }
    return found;
}

static bool index_all(struct rl_lease_table *t, const struct rl_allocator *mem) {
    struct rl_pages_walk w = rl_lease_start(t, -1);
    struct rl_lease lease;
    while (rl_lease_next(&w, &lease)) {
        struct rl_record r = id_record(&lease.id, lease.end_at_ms);
        if (rl_pages_insert(&t->by_id, &r, mem)) continue;
        rl_pages_reset(&t->by_id, mem);
        return false;
    }
    return true;
}

bool rl_lease_add(struct rl_lease_table *t, const struct rl_lease *lease, const struct rl_allocator *mem) {
    struct rl_record r = end_record(lease);
    if (!rl_pages_insert(&t->by_end, &r, mem)) return false;
    bool indexed = true;
    if (t->by_id.root) {
        struct rl_record hint = id_record(&lease->id, lease->end_at_ms);
        indexed = rl_pages_insert(&t->by_id, &hint, mem);
    } else if (!rl_pages_single(&t->by_end)) {
        indexed = index_all(t, mem);
    }
    if (!indexed) rl_pages_remove(&t->by_end, &r, mem);
    return indexed;
}

void rl_lease_drop(struct rl_lease_table *t, const struct rl_lease *lease, const struct rl_allocator *mem) {
    if (t->by_id.root) {
        struct rl_record hint = id_record(&lease->id, lease->end_at_ms);
        rl_pages_remove(&t->by_id, &hint, mem);
    }
    struct rl_record r = end_record(lease);
    rl_pages_remove(&t->by_end, &r, mem);
    if (t->by_id.root && rl_pages_single(&t->by_end) && rl_pages_all(&t->by_end).records <= UNINDEXED) {
        rl_pages_reset(&t->by_id, mem);
    }
}
