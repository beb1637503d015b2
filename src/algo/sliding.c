#include "algo/sliding.h"

#include <assert.h>

#include "algo/sliding_varint.h"

#define CLOCK_MAX_MS (RL_CLOCK_MAX_US / 1000)

/* ---- Time comes in ticks, of which each unit has one: the millisecond (EXACT) or the slot (SLOTS) of its grant. The
 * rest of this file hardly knows the two apart. */

static int64_t width_ms(const struct rl_sliding_limit *lim) {
    return (int64_t)((uint64_t)(lim->period_ms + lim->slots - 1) / (uint64_t)lim->slots);
}

static int64_t tick_of(const struct rl_sliding_limit *lim, int64_t at_ms) {
    return lim->slots ? (int64_t)((uint64_t)at_ms / (uint64_t)width_ms(lim)) : at_ms;
}

static int64_t leaves_at_ms(const struct rl_sliding_limit *lim, int64_t tick) {
    return (lim->slots ? (tick + 1) * width_ms(lim) : tick) + lim->period_ms;
}

/* The first tick whose units have not left at at_ms. */
static int64_t first_alive(const struct rl_sliding_limit *lim, int64_t at_ms) {
    int64_t start_ms = at_ms - lim->period_ms;
    if (start_ms < 0) return 0;
    return lim->slots ? tick_of(lim, start_ms) : start_ms + 1;
}

/* When the units of a tick were granted, at the latest. */
static int64_t granted_at_ms(const struct rl_sliding_limit *lim, int64_t tick, int64_t last_write_ms) {
    if (!lim->slots) return tick;
    int64_t last_ms = (tick + 1) * width_ms(lim) - 1;
    return last_ms < last_write_ms ? last_ms : last_write_ms;
}

static int64_t later(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static int64_t units(const struct rl_sliding *s) {
    return s->slots ? s->slots->units : rl_log_units(&s->log);
}

static bool is_unused(const struct rl_sliding *s) {
    return !s->slots && s->log.newest_units == 0;
}

static int64_t newest(const struct rl_sliding *s) {
    return s->slots ? s->slots->newest : s->log.newest_at_ms;
}

static int64_t units_before(const struct rl_sliding *s, int64_t tick) {
    return s->slots ? rl_slots_units_before(s->slots, tick) : rl_log_units_before(&s->log, tick);
}

static int64_t find(const struct rl_sliding *s, int64_t nth) {
    return s->slots ? rl_slots_find(s->slots, nth) : rl_log_find(&s->log, nth);
}

/* Makes sure that the next append at this tick has its memory. */
static bool reserve(struct rl_sliding *s, const struct rl_sliding_limit *lim, int64_t tick,
                    const struct rl_allocator *mem) {
    if (!lim->slots) return rl_log_reserve(&s->log, tick, mem);
    if (!s->slots) s->slots = rl_slots_make(lim->slots + 1, mem);
    return s->slots != NULL;
}

static void append(struct rl_sliding *s, int64_t tick, int64_t cost) {
    if (s->slots) {
        rl_slots_append(s->slots, tick, cost);
    } else {
        rl_log_append(&s->log, tick, cost);
    }
}

static void drop_before(struct rl_sliding *s, int64_t tick, const struct rl_allocator *mem) {
    if (s->slots) {
        rl_slots_drop_before(s->slots, tick);
    } else {
        rl_log_drop_before(&s->log, tick, mem);
    }
}

static void drop_newest(struct rl_sliding *s, int64_t cost, const struct rl_allocator *mem) {
    if (s->slots) {
        rl_slots_drop_newest(s->slots, cost);
    } else {
        rl_log_drop_newest(&s->log, cost, mem);
    }
}

static void pull(struct rl_sliding *s, int64_t tick) {
    if (s->slots) {
        rl_slots_pull(s->slots, tick);
    } else {
        rl_log_pull(&s->log, tick);
    }
}

/* Goes over the ticks that have units, oldest first. */
struct walk {
    struct rl_log_walk log;
    const struct rl_slots *slots;
    int64_t slot;
};

static struct walk start(const struct rl_sliding *s) {
    struct walk w = {.log = rl_log_start(&s->log), .slots = s->slots};
    if (s->slots) w.slot = s->slots->oldest;
    return w;
}

static bool next(struct walk *w, int64_t *tick, int64_t *n) {
    if (!w->slots) return rl_log_next(&w->log, tick, n);
    while (w->slot <= w->slots->newest) {
        *tick = w->slot++;
        *n = rl_slots_count(w->slots, *tick);
        if (*n > 0) return true;
    }
    return false;
}

/* ---- the limiter */

bool rl_sliding_limit_valid(const struct rl_sliding_limit *lim) {
    bool exact = lim->slots == 0;
    if (!exact && (lim->slots < RL_SLIDING_SLOTS_MIN || lim->slots > RL_SLIDING_SLOTS_MAX)) return false;
    return lim->count >= 1 && lim->count <= (exact ? RL_SLIDING_EXACT_MAX : RL_UNITS_MAX) && lim->period_ms >= 1 &&
           lim->period_ms <= RL_PERIOD_MAX_MS;
}

struct rl_verdict rl_sliding_check(const struct rl_sliding *s, const struct rl_sliding_limit *lim,
                                   const struct rl_ask *ask, int64_t now_ms) {
    struct rl_verdict v = {.limit = lim->count};
    int64_t gone = units_before(s, first_alive(lim, later(now_ms, s->at_ms)));
    int64_t used = units(s) - gone;
    int64_t room = lim->count - used;
    int64_t here = tick_of(lim, now_ms);
    int64_t wanted = ask->cost; /* what a refused caller waits for */

    switch (ask->mode) {
    case RL_TAKE:
        if (ask->cost <= room) v.allowed = ask->cost;
        break;
    case RL_FORCE:
        v.allowed = ask->cost;
        v.beyond = used + ask->cost > RL_USED_MAX;
        break;
    case RL_UPTO:
        v.allowed = room < ask->cost ? later(room, 0) : ask->cost;
        wanted = 1;
        break;
    case RL_REFUND:
        v.allowed = used < ask->cost ? used : ask->cost;
        wanted = 0;
        break;
    }

    if (v.allowed == 0 && wanted > lim->count) {
        v.wait_ms = RL_NEVER;
    } else if (v.allowed == 0 && wanted > 0) {
        int64_t tick = find(s, gone + wanted - room);
        v.wait_ms = leaves_at_ms(lim, tick < here ? tick : here) - now_ms;
    }
    int64_t delta = ask->peek ? 0 : rl_verdict_delta(&v, ask);
    int64_t after = used + delta;
    v.remaining = lim->count - after;
    if (after > 0) {
        int64_t last = delta > 0 ? here : find(s, gone + after);
        v.reset_ms = leaves_at_ms(lim, last < here ? last : here) - now_ms;
    }
    return v;
}

bool rl_sliding_take(struct rl_sliding *s, const struct rl_sliding_limit *lim, int64_t cost, int64_t now_ms,
                     const struct rl_allocator *mem) {
    if (cost <= 0 && is_unused(s)) return true;
    assert(!(lim->slots ? s->log.newest_units : s->slots != NULL)); /* of another mode: rescale comes first */
    int64_t alive = first_alive(lim, later(now_ms, s->at_ms));
    int64_t here = tick_of(lim, now_ms);
    if (cost > 0) {
        int64_t most = RL_USED_MAX - cost;
        if (units(s) > most && units(s) - units_before(s, alive) > most) return false;
        /* A log that is about to be emptied needs nothing more. */
        if ((lim->slots || newest(s) >= alive) && !reserve(s, lim, here, mem)) return false;
    }

    /* No failure after this point. */
    drop_before(s, alive, mem);
    pull(s, here);
    if (cost > 0) append(s, here, cost);
    if (cost < 0) drop_newest(s, -cost, mem);
    s->at_ms = now_ms;
    if (units(s) == 0) rl_sliding_reset(s, mem);
    return true;
}

bool rl_sliding_limit_alike(const struct rl_sliding_limit *from, const struct rl_sliding_limit *to) {
    return from->slots == to->slots && (from->slots == 0 || from->period_ms == to->period_ms);
}

bool rl_sliding_rescale(struct rl_sliding *s, const struct rl_sliding_limit *from, const struct rl_sliding_limit *to,
                        const struct rl_allocator *mem) {
    int64_t alive = first_alive(to, s->at_ms);
    if (is_unused(s)) return true;
    if (rl_sliding_limit_alike(from, to)) {
        drop_before(s, alive, mem);
        if (units(s) == 0) rl_sliding_reset(s, mem);
        return true;
    }

    struct rl_sliding moved = {0};
    struct walk w = start(s);
    int64_t tick, n;
    while (next(&w, &tick, &n)) {
        tick = tick_of(to, granted_at_ms(from, tick, s->at_ms));
        if (tick < alive) continue;
        if (!reserve(&moved, to, tick, mem)) {
            rl_sliding_reset(&moved, mem);
            return false;
        }
        append(&moved, tick, n);
    }
    if (!is_unused(&moved)) moved.at_ms = s->at_ms;
    rl_sliding_reset(s, mem);
    *s = moved;
    return true;
}

int64_t rl_sliding_ends_at_ms(const struct rl_sliding *s, const struct rl_sliding_limit *lim) {
    return is_unused(s) || newest(s) < first_alive(lim, s->at_ms) ? 0 : leaves_at_ms(lim, newest(s));
}

bool rl_sliding_ahead(const struct rl_sliding *s, int64_t now_ms) {
    return s->at_ms > now_ms;
}

/* ---- As bytes: the last write, then for each tick that has units, oldest first, the ticks since the one before,
 * doubled and one more unless it has one unit; then these units less two. All are varints. */

static size_t put_all(const struct rl_sliding *s, unsigned char *out) {
    unsigned char scratch[20];
    if (is_unused(s)) return 0;
    size_t len = rl_varint_put(out ? out : scratch, (uint64_t)s->at_ms);
    struct walk w = start(s);
    int64_t before = 0, tick, n;
    while (next(&w, &tick, &n)) {
        unsigned char *at = out ? out + len : scratch;
        size_t size = rl_varint_put(at, (uint64_t)(tick - before) << 1 | (n > 1));
        if (n > 1) size += rl_varint_put(at + size, (uint64_t)(n - 2));
        len += size;
        before = tick;
    }
    return len;
}

size_t rl_sliding_encoded_size(const struct rl_sliding *s) {
    return put_all(s, NULL);
}

void rl_sliding_encode(const struct rl_sliding *s, unsigned char *out) {
    put_all(s, out);
}

/* Reads one tick that is not after last. */
static bool read_tick(const uint8_t **at, const uint8_t *end, int64_t last, int64_t *tick, int64_t *n) {
    uint64_t word, more;
    if (!rl_varint_read(at, end, &word) || word >> 1 > (uint64_t)(last - *tick)) return false;
    *tick += (int64_t)(word >> 1);
    *n = 1;
    if (!(word & 1)) return true;
    if (!rl_varint_read(at, end, &more) || more > (uint64_t)RL_USED_MAX) return false;
    *n = (int64_t)more + 2;
    return true;
}

/* Whether the bytes up to end are ticks of a state that was last written at at_ms. */
static bool ticks_valid(const struct rl_sliding_limit *lim, int64_t at_ms, const uint8_t *at, const uint8_t *end) {
    int64_t last = tick_of(lim, at_ms), tick = 0, sum = 0, entries = 0;
    int64_t least = first_alive(lim, at_ms);
    while (at < end) {
        int64_t n;
        if (!read_tick(&at, end, last, &tick, &n) || tick < least) return false;
        sum += n;
        if (sum > RL_USED_MAX || ++entries > RL_LOG_ENTRIES_MAX) return false;
        least = tick + 1;
    }
    return entries > 0;
}

bool rl_sliding_decode(struct rl_sliding *s, const struct rl_sliding_limit *lim, const unsigned char *bytes, size_t len,
                       const struct rl_allocator *mem) {
    const uint8_t *at = bytes, *end = bytes + len;
    uint64_t at_ms;
    *s = (struct rl_sliding){0};
    if (len == 0) return true;
    if (!rl_varint_read(&at, end, &at_ms) || at_ms > (uint64_t)CLOCK_MAX_MS) return false;
    if (!ticks_valid(lim, (int64_t)at_ms, at, end)) return false;

    int64_t tick = 0, n;
    while (at < end && read_tick(&at, end, INT64_MAX, &tick, &n)) {
        if (!reserve(s, lim, tick, mem)) {
            rl_sliding_reset(s, mem);
            return false;
        }
        append(s, tick, n);
    }
    s->at_ms = (int64_t)at_ms;
    return true;
}

/* ---- the whole */

bool rl_sliding_clone(struct rl_sliding *copy, const struct rl_sliding *s, const struct rl_allocator *mem) {
    *copy = (struct rl_sliding){0};
    if (!rl_log_clone(&copy->log, &s->log, mem)) return false;
    copy->slots = s->slots ? rl_slots_clone(s->slots, mem) : NULL;
    if (s->slots && !copy->slots) return false;
    copy->at_ms = s->at_ms;
    return true;
}

void rl_sliding_reset(struct rl_sliding *s, const struct rl_allocator *mem) {
    rl_log_reset(&s->log, mem);
    if (s->slots) mem->free(s->slots);
    *s = (struct rl_sliding){0};
}

size_t rl_sliding_memory(const struct rl_sliding *s, const struct rl_allocator *mem) {
    return rl_log_memory(&s->log, mem) + (s->slots ? mem->size(s->slots) : 0);
}

void rl_sliding_relocate(struct rl_sliding *s, void *(*move)(void *ctx, void *block), void *ctx) {
    rl_log_relocate(&s->log, move, ctx);
    void *moved = s->slots ? move(ctx, s->slots) : NULL;
    if (moved) s->slots = moved;
}
