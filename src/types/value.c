#include "types/value.h"

#include <string.h>

#include "types/memory.h"

struct rl_value {
    uint32_t limit_kept; /* the id of the limit, and in the lowest bit whether totals follow the packed state */
    unsigned char packed[];
};

#define BLOCK_MAX (sizeof(struct rl_value) + RL_PACKED_MAX + sizeof(struct rl_totals))

static bool has_totals(const struct rl_value *value) {
    return value->limit_kept & 1;
}

struct rl_shared *rl_value_limit(const struct rl_value *value) {
    return rl_shared_by_id(value->limit_kept >> 1);
}

static size_t packed_size(const struct rl_value *value, const struct rl_kind *kind) {
    return kind->packed_size ? kind->packed_size(value->packed) : kind->state_size;
}

static void unpack(const struct rl_value *value, const struct rl_shared *limit, void *state) {
    if (limit->kind->unpack) {
        limit->kind->unpack(value->packed, limit->unit, state);
    } else {
        memcpy(state, value->packed, limit->kind->state_size);
    }
}

static size_t pack(const void *state, const struct rl_shared *limit, unsigned char *packed) {
    if (limit->kind->pack) return limit->kind->pack(state, limit->unit, packed);
    memcpy(packed, state, limit->kind->state_size);
    return limit->kind->state_size;
}

static size_t block_size(const struct rl_value *value, const struct rl_kind *kind) {
    return sizeof(*value) + packed_size(value, kind) + (has_totals(value) ? sizeof(struct rl_totals) : 0);
}

void rl_live_forget(struct rl_live *live) {
    live->limit = NULL;
    live->borrowed = false;
    live->unused_at_us = 0;
    live->totals = (struct rl_totals){0};
    memset(live->state, 0, sizeof(live->state));
}

void rl_live_load_all(struct rl_live *live, const struct rl_kind *kind, struct rl_value *value) {
    live->kind = kind;
    live->value = value;
    if (!value) {
        rl_live_forget(live);
        return;
    }
    live->limit = rl_value_limit(value);
    live->borrowed = true;
    unpack(value, live->limit, live->state);
    live->unused_at_us = kind->unused_at_us(live->state, live->limit->limit);
    if (has_totals(value)) {
        memcpy(&live->totals, value->packed + packed_size(value, kind), sizeof(live->totals));
    } else {
        live->totals = (struct rl_totals){0};
    }
}

static int64_t kept_until_ms(const struct rl_totals *t) {
    return t->keep_ms ? t->last_at_ms + t->keep_ms : 0;
}

bool rl_live_ended(const struct rl_live *live, int64_t now_us) {
    return live->unused_at_us <= now_us && kept_until_ms(&live->totals) <= now_us / 1000;
}

void rl_live_load(struct rl_live *live, const struct rl_kind *kind, struct rl_value *value, int64_t now_us) {
    rl_live_load_all(live, kind, value);
    if (live->unused_at_us > now_us || !live->limit) return;
    /* As if never used: under which limit it got there must not be observable, or expiry would be. */
    struct rl_totals totals = live->totals;
    struct rl_shared *limit = live->limit;
    bool ended = rl_live_ended(live, now_us);
    rl_live_forget(live);
    if (ended) return;
    live->limit = limit;
    live->totals = totals;
}

/* Rounded up to a multiple of a power of two, by less than a sixteenth of the time it lives. */
static int64_t round_up(int64_t at_ms, int64_t lives_ms) {
    if (lives_ms < 32) return at_ms;
    int64_t grid = INT64_C(1) << (59 - __builtin_clzll((unsigned long long)lives_ms));
    return (at_ms + grid - 1) & ~(grid - 1);
}

int64_t rl_live_expiry_ms(const struct rl_live *live) {
    if (!live->limit) return 0;
    int64_t expiry_ms = (live->unused_at_us + 999) / 1000;
    if (live->kind->written_at_ms) expiry_ms = round_up(expiry_ms, expiry_ms - live->kind->written_at_ms(live->state));
    if (live->totals.keep_ms == 0) return expiry_ms;
    int64_t kept_ms = round_up(kept_until_ms(&live->totals), live->totals.keep_ms);
    return kept_ms > expiry_ms ? kept_ms : expiry_ms;
}

void rl_live_own(struct rl_live *live) {
    if (!live->kind->clone || !live->borrowed) return;
    alignas(16) unsigned char copy[RL_STATE_SIZE];
    live->kind->clone(live->state, copy);
    memcpy(live->state, copy, sizeof(copy));
    live->borrowed = false;
}

bool rl_live_rescale(struct rl_live *live, const int64_t *limit) {
    const struct rl_kind *kind = live->kind;
    if (!live->limit || rl_shared_is(live->limit, limit)) return true;
    if (kind->alike && kind->alike(live->limit->limit, limit)) return true;
    rl_live_own(live);
    return kind->rescale(live->state, live->limit->limit, limit);
}

static void count_totals(struct rl_totals *t, int64_t cost, int64_t keep_ms, int64_t now_ms) {
    if (t->last_at_ms > now_ms) t->last_at_ms = now_ms;
    if (keep_ms == 0) return;
    if (cost > 0) {
        t->granted = t->granted > INT64_MAX - cost ? INT64_MAX : t->granted + cost;
        t->last_at_ms = now_ms;
        t->keep_ms = keep_ms;
    } else if (t->keep_ms > 0) {
        t->granted = t->granted + cost > 0 ? t->granted + cost : 0;
        t->keep_ms = keep_ms;
    }
}

bool rl_totals_valid(const struct rl_totals *t) {
    return t->granted >= 0 && t->last_at_ms >= 0 && t->last_at_ms <= RL_CLOCK_MAX_US / 1000 && t->keep_ms >= 0 &&
           t->keep_ms <= RL_PERIOD_MAX_MS;
}

/* What the old block's state holds belongs to nobody any more. */
static void reset_packed(struct rl_value *value, const struct rl_shared *limit) {
    alignas(16) unsigned char state[RL_STATE_SIZE];
    if (!limit->kind->reset) return;
    unpack(value, limit, state);
    limit->kind->reset(state);
}

void rl_live_store(struct rl_live *live, const int64_t *limit) {
    const struct rl_kind *kind = live->kind;
    struct rl_value *old = live->value;
    struct rl_shared *had = old ? rl_value_limit(old) : NULL;
    struct rl_shared *shared = had && rl_shared_is(had, limit) ? had : rl_shared_hold(kind, limit);
    if (old && !live->borrowed) reset_packed(old, had);

    unsigned char block[BLOCK_MAX];
    bool kept = live->totals.keep_ms > 0;
    uint32_t limit_kept = shared->id << 1 | kept;
    memcpy(block, &limit_kept, sizeof(limit_kept));
    size_t size = sizeof(limit_kept) + pack(live->state, shared, block + sizeof(limit_kept));
    if (kept) {
        memcpy(block + size, &live->totals, sizeof(live->totals));
        size += sizeof(live->totals);
    }

    bool fits = old && block_size(old, kind) == size;
    if (fits && shared != had) rl_shared_release(had);
    if (!fits && shared == had) rl_shared_retain(shared);
    live->value = fits ? old : rl_alloc(size);
    live->limit = shared;
    live->borrowed = true;
    memcpy(live->value, block, size);
}

unsigned rl_live_take(struct rl_live *live, const int64_t *limit, int64_t cost, int64_t keep_ms,
                      const struct rl_moment *m) {
    unsigned told = live->kind->take(live->state, limit, cost, m);
    live->unused_at_us = live->kind->unused_at_us(live->state, limit);
    count_totals(&live->totals, cost, keep_ms, rl_moment_ms(m));
    rl_live_store(live, limit);
    return told;
}

void rl_live_discard(struct rl_live *live) {
    if (!live->borrowed && live->kind->reset) live->kind->reset(live->state);
}

bool rl_live_ahead(const struct rl_live *live, int64_t now_us) {
    return live->limit && live->kind->ahead(live->state, live->limit->limit, now_us);
}

void rl_value_free_block(struct rl_value *value) {
    rl_shared_release(rl_value_limit(value));
    rl_free(value);
}

void rl_value_free(void *value) {
    reset_packed(value, rl_value_limit(value));
    rl_value_free_block(value);
}
