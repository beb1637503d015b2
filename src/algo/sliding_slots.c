#include "algo/sliding_slots.h"

#include <string.h>

static size_t ring_size(int64_t n) {
    return sizeof(struct rl_slots) + (size_t)n * sizeof(int64_t);
}

static int64_t place(const struct rl_slots *r, int64_t slot) {
    return (int64_t)((uint64_t)slot % (uint64_t)r->n);
}

static int64_t place_after(const struct rl_slots *r, int64_t at) {
    return at + 1 < r->n ? at + 1 : 0;
}

static int64_t place_before(const struct rl_slots *r, int64_t at) {
    return at > 0 ? at - 1 : r->n - 1;
}

struct rl_slots *rl_slots_make(int64_t n, const struct rl_allocator *mem) {
    struct rl_slots *r = mem->alloc(ring_size(n));
    if (!r) return NULL;
    memset(r, 0, ring_size(n));
    r->n = n;
    return r;
}

int64_t rl_slots_units_before(const struct rl_slots *r, int64_t slot) {
    if (r->units == 0 || slot <= r->oldest) return 0;
    if (slot > r->newest) return r->units;
    int64_t units = 0;
    int64_t at = place(r, r->oldest);
    for (int64_t i = r->oldest; i < slot; i++, at = place_after(r, at)) units += r->counts[at];
    return units;
}

int64_t rl_slots_find(const struct rl_slots *r, int64_t nth) {
    int64_t at = place(r, r->newest);
    if (nth > r->units - r->counts[at]) return r->newest;
    at = place(r, r->oldest);
    for (int64_t i = r->oldest;; i++, at = place_after(r, at)) {
        nth -= r->counts[at];
        if (nth <= 0) return i;
    }
}

int64_t rl_slots_count(const struct rl_slots *r, int64_t slot) {
    return r->counts[place(r, slot)];
}

void rl_slots_append(struct rl_slots *r, int64_t slot, int64_t units) {
    if (r->units == 0) r->oldest = slot;
    r->newest = slot;
    r->counts[place(r, slot)] += units;
    r->units += units;
}

void rl_slots_drop_before(struct rl_slots *r, int64_t slot) {
    if (r->units == 0 || slot <= r->oldest) return;
    int64_t at = place(r, r->oldest);
    while (r->units > 0 && (r->oldest < slot || r->counts[at] == 0)) {
        r->units -= r->counts[at];
        r->counts[at] = 0;
        r->oldest++;
        at = place_after(r, at);
    }
}

void rl_slots_drop_newest(struct rl_slots *r, int64_t units) {
    int64_t left = units < r->units ? r->units - units : 0;
    int64_t at = place(r, r->newest);
    while (r->units > left) {
        int64_t over = r->units - left;
        int64_t drop = r->counts[at] < over ? r->counts[at] : over;
        r->counts[at] -= drop;
        r->units -= drop;
        if (r->units == 0) return;
        for (; r->counts[at] == 0; at = place_before(r, at)) r->newest--;
    }
}

void rl_slots_pull(struct rl_slots *r, int64_t slot) {
    int64_t units = r->units - rl_slots_units_before(r, slot + 1);
    if (units == 0) return;
    rl_slots_drop_newest(r, units);
    rl_slots_append(r, slot, units);
}

struct rl_slots *rl_slots_clone(const struct rl_slots *r, const struct rl_allocator *mem) {
    struct rl_slots *copy = mem->alloc(ring_size(r->n));
    if (copy) memcpy(copy, r, ring_size(r->n));
    return copy;
}
