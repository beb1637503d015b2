#include "algo/sliding_log.h"

#include <string.h>

#include "algo/sliding_varint.h"

enum {
    MARK_EVERY = 32, /* entries */
    NEAR_STEPS = 4,  /* entries tried from the oldest before a search: between two writes few expire */
    ENTRY_SIZE = 15, /* bytes at most: 45 bits of time and flag, 50 bits of units */
    BYTES_SPARE = 36,
    MARKS_SPARE = 2,
};

struct rl_log_block {
    struct rl_log_place head, tail;
    struct rl_log_place *marks; /* those of [marks_first, marks_end) lie after head and not after tail */
    uint32_t marks_first, marks_end, marks_cap;
    uint32_t origin; /* the position of bytes[0] */
    uint32_t cap;
    uint8_t bytes[];
};

/* Where a log starts: so near to the wrap that every test of more than a few entries goes over it. */
static const struct rl_log_place EARLY = {.units = UINT64_MAX - 60, .pos = UINT32_MAX - 90, .seq = UINT32_MAX - 50};

static size_t block_size(uint32_t cap) {
    return offsetof(struct rl_log_block, bytes) + cap;
}

static uint32_t roomy(uint32_t live, uint32_t spare) {
    return live + live / 8 + spare;
}

static struct rl_log_place after(const struct rl_log_block *b, struct rl_log_place p) {
    const uint8_t *start = b->bytes + (p.pos - b->origin);
    const uint8_t *at = start;
    uint64_t word = rl_varint_get(&at);
    p.at_ms += (int64_t)(word >> 1);
    p.units += word & 1 ? rl_varint_get(&at) : 1;
    p.pos += (uint32_t)(at - start);
    p.seq++;
    return p;
}

static int64_t units_up_to(const struct rl_log_block *b, const struct rl_log_place *p) {
    return (int64_t)(p->units - b->head.units);
}

/* What a seek looks for: the last place with nothing later and no more units before it. */
struct bound {
    int64_t last_at_ms;
    int64_t units;
};

static bool within(const struct rl_log_block *b, const struct rl_log_place *p, const struct bound *bound) {
    return p->at_ms <= bound->last_at_ms && units_up_to(b, p) <= bound->units;
}

/* The last mark within the bound, or head. */
static struct rl_log_place nearest(const struct rl_log_block *b, const struct bound *bound) {
    uint32_t low = b->marks_first, high = b->marks_end; /* marks below low are within, from high on they are not */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (within(b, &b->marks[middle], bound)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > b->marks_first ? b->marks[low - 1] : b->head;
}

/* Goes on from a place within the bound, at most so many steps. The loop is on scalars, to stay in registers. */
static struct rl_log_place advance(const struct rl_log_block *b, const struct rl_log_place *from,
                                   const struct bound *bound, uint32_t steps) {
    const uint8_t *at = b->bytes + (from->pos - b->origin);
    const uint8_t *end = b->bytes + (b->tail.pos - b->origin);
    int64_t at_ms = from->at_ms, last_at_ms = bound->last_at_ms;
    int64_t units = units_up_to(b, from), most = bound->units;
    uint32_t n = 0;
    for (; n < steps && at < end; n++) {
        const uint8_t *next = at;
        uint64_t word = rl_varint_get(&next);
        int64_t next_at_ms = at_ms + (int64_t)(word >> 1);
        int64_t next_units = units + (word & 1 ? (int64_t)rl_varint_get(&next) : 1);
        if (next_at_ms > last_at_ms || next_units > most) break;
        at = next;
        at_ms = next_at_ms;
        units = next_units;
    }
    return (struct rl_log_place){
        .at_ms = at_ms,
        .units = b->head.units + (uint64_t)units,
        .pos = b->origin + (uint32_t)(at - b->bytes),
        .seq = from->seq + n,
    };
}

static struct rl_log_place seek(const struct rl_log_block *b, struct bound bound) {
    if (within(b, &b->tail, &bound)) return b->tail;
    struct rl_log_place p = advance(b, &b->head, &bound, NEAR_STEPS);
    if (p.seq - b->head.seq < NEAR_STEPS) return p;
    struct rl_log_place mark = nearest(b, &bound);
    return advance(b, (int32_t)(mark.seq - p.seq) > 0 ? &mark : &p, &bound, UINT32_MAX);
}

static struct rl_log_place seek_time(const struct rl_log_block *b, int64_t last_at_ms) {
    return seek(b, (struct bound){.last_at_ms = last_at_ms, .units = INT64_MAX});
}

static struct rl_log_place seek_units(const struct rl_log_block *b, int64_t units) {
    return seek(b, (struct bound){.last_at_ms = INT64_MAX, .units = units});
}

static int64_t older_units(const struct rl_log *log) {
    return log->older ? units_up_to(log->older, &log->older->tail) : 0;
}

int64_t rl_log_units(const struct rl_log *log) {
    return older_units(log) + log->newest_units;
}

int64_t rl_log_units_before(const struct rl_log *log, int64_t at_ms) {
    if (log->newest_at_ms < at_ms) return rl_log_units(log);
    if (!log->older) return 0;
    struct rl_log_place p = seek_time(log->older, at_ms - 1);
    return units_up_to(log->older, &p);
}

int64_t rl_log_find(const struct rl_log *log, int64_t nth) {
    if (nth > older_units(log)) return log->newest_at_ms;
    return after(log->older, seek_units(log->older, nth - 1)).at_ms;
}

/* ---- memory */

static void close_gap(struct rl_log_block *b) {
    memmove(b->bytes, b->bytes + (b->head.pos - b->origin), b->tail.pos - b->head.pos);
    b->origin = b->head.pos;
}

static void close_marks_gap(struct rl_log_block *b) {
    uint32_t live = b->marks_end - b->marks_first;
    if (live > 0) memmove(b->marks, b->marks + b->marks_first, live * sizeof(*b->marks));
    b->marks_first = 0;
    b->marks_end = live;
}

static bool resize(struct rl_log *log, uint32_t cap, const struct rl_allocator *mem) {
    struct rl_log_block *b = mem->realloc(log->older, block_size(cap));
    if (!b) return false;
    b->cap = cap;
    log->older = b;
    return true;
}

static bool resize_marks(struct rl_log_block *b, uint32_t cap, const struct rl_allocator *mem) {
    size_t size = cap * sizeof(*b->marks);
    struct rl_log_place *marks = b->marks ? mem->realloc(b->marks, size) : mem->alloc(size);
    if (!marks) return false;
    b->marks = marks;
    b->marks_cap = cap;
    return true;
}

/* The next entry gets a mark before it. */
static bool mark_due(const struct rl_log_block *b) {
    uint32_t last = b->marks_end > b->marks_first ? b->marks[b->marks_end - 1].seq : b->head.seq;
    return b->tail.seq - last >= MARK_EVERY;
}

static bool is_full(const struct rl_log *log) {
    return log->older && log->older->tail.seq - log->older->head.seq >= RL_LOG_ENTRIES_MAX - 1;
}

static bool is_later(const struct rl_log *log, int64_t at_ms) {
    return log->newest_units > 0 && log->newest_at_ms < at_ms;
}

bool rl_log_reserve(struct rl_log *log, int64_t at_ms, const struct rl_allocator *mem) {
    if (!is_later(log, at_ms)) return true;
    struct rl_log_block *b = log->older;
    if (!b) {
        b = mem->alloc(block_size(BYTES_SPARE));
        if (!b) return false;
        *b = (struct rl_log_block){.head = EARLY, .tail = EARLY, .origin = EARLY.pos, .cap = BYTES_SPARE};
        log->older = b;
    }
    if (b->cap - (b->tail.pos - b->origin) < ENTRY_SIZE) {
        uint32_t gap = b->head.pos - b->origin;
        if (gap >= ENTRY_SIZE && gap >= b->cap / 8) {
            close_gap(b);
        } else if (!resize(log, roomy(b->cap, ENTRY_SIZE), mem)) {
            return false;
        }
        b = log->older;
    }
    if (!mark_due(b) || b->marks_end < b->marks_cap) return true;
    if (b->marks_first > b->marks_cap / 8) {
        close_marks_gap(b);
        return true;
    }
    return resize_marks(b, roomy(b->marks_cap, MARKS_SPARE), mem);
}

/* Gives back what is no longer needed, but not what a reserve made ready for one more entry. Where memory is too short
 * even for that, it stays. */
static void shrink(struct rl_log *log, const struct rl_allocator *mem) {
    struct rl_log_block *b = log->older;
    uint32_t marks_cap = roomy(b->marks_end - b->marks_first, MARKS_SPARE);
    if (b->marks && b->marks_first == b->marks_end && !mark_due(b)) {
        mem->free(b->marks);
        b->marks = NULL;
        b->marks_first = b->marks_end = b->marks_cap = 0;
    } else if (b->marks_cap / 2 > marks_cap) {
        close_marks_gap(b);
        resize_marks(b, marks_cap, mem);
    }
    uint32_t cap = roomy(b->tail.pos - b->head.pos, BYTES_SPARE);
    if (b->cap / 2 > cap) {
        close_gap(b);
        resize(log, cap, mem);
    }
}

/* ---- changes */

static void push(struct rl_log_block *b, int64_t at_ms, int64_t units) {
    if (b->head.seq == b->tail.seq) b->head.at_ms = b->tail.at_ms = at_ms;
    if (mark_due(b)) b->marks[b->marks_end++] = b->tail;
    uint8_t *out = b->bytes + (b->tail.pos - b->origin);
    size_t len = rl_varint_put(out, (uint64_t)(at_ms - b->tail.at_ms) << 1 | (units != 1));
    if (units != 1) len += rl_varint_put(out + len, (uint64_t)units);
    b->tail.at_ms = at_ms;
    b->tail.units += (uint64_t)units;
    b->tail.pos += (uint32_t)len;
    b->tail.seq++;
}

void rl_log_append(struct rl_log *log, int64_t at_ms, int64_t units) {
    if (is_later(log, at_ms) && !is_full(log)) {
        push(log->older, log->newest_at_ms, log->newest_units);
        log->newest_units = 0;
    }
    log->newest_at_ms = at_ms;
    log->newest_units += units;
}

static void cut_tail(struct rl_log_block *b, struct rl_log_place tail) {
    b->tail = tail;
    while (b->marks_end > b->marks_first && (int32_t)(b->marks[b->marks_end - 1].seq - tail.seq) > 0) b->marks_end--;
}

void rl_log_drop_before(struct rl_log *log, int64_t at_ms, const struct rl_allocator *mem) {
    if (log->newest_at_ms < at_ms) {
        rl_log_reset(log, mem);
        return;
    }
    struct rl_log_block *b = log->older;
    if (!b) return;
    struct rl_log_place head = seek_time(b, at_ms - 1);
    if (head.seq == b->head.seq) return;
    b->head = head;
    while (b->marks_first < b->marks_end && (int32_t)(b->marks[b->marks_first].seq - head.seq) <= 0) b->marks_first++;
    shrink(log, mem);
}

void rl_log_drop_newest(struct rl_log *log, int64_t units, const struct rl_allocator *mem) {
    int64_t left = rl_log_units(log) - units;
    if (left <= 0) {
        rl_log_reset(log, mem);
        return;
    }
    if (units < log->newest_units) {
        log->newest_units -= units;
        return;
    }
    struct rl_log_place p = seek_units(log->older, left - 1);
    log->newest_at_ms = after(log->older, p).at_ms;
    log->newest_units = left - units_up_to(log->older, &p);
    cut_tail(log->older, p);
    shrink(log, mem);
}

void rl_log_pull(struct rl_log *log, int64_t at_ms) {
    if (log->newest_at_ms <= at_ms) return;
    if (log->older) {
        struct rl_log_place p = seek_time(log->older, at_ms - 1);
        log->newest_units = rl_log_units(log) - units_up_to(log->older, &p);
        cut_tail(log->older, p);
    }
    log->newest_at_ms = at_ms;
}

/* ---- the whole */

struct rl_log_walk rl_log_start(const struct rl_log *log) {
    struct rl_log_walk walk = {.log = log, .done = log->newest_units == 0};
    if (log->older) walk.place = log->older->head;
    return walk;
}

bool rl_log_next(struct rl_log_walk *walk, int64_t *at_ms, int64_t *units) {
    const struct rl_log *log = walk->log;
    if (walk->done) return false;
    if (!log->older || walk->place.seq == log->older->tail.seq) {
        *at_ms = log->newest_at_ms;
        *units = log->newest_units;
        walk->done = true;
        return true;
    }
    uint64_t before = walk->place.units;
    walk->place = after(log->older, walk->place);
    *at_ms = walk->place.at_ms;
    *units = (int64_t)(walk->place.units - before);
    return true;
}

bool rl_log_clone(struct rl_log *copy, const struct rl_log *log, const struct rl_allocator *mem) {
    const struct rl_log_block *b = log->older;
    *copy = *log;
    if (!b) return true;
    copy->older = mem->alloc(block_size(b->cap));
    struct rl_log_place *marks = b->marks ? mem->alloc(b->marks_cap * sizeof(*marks)) : NULL;
    if (!copy->older || (b->marks && !marks)) {
        mem->free(copy->older);
        mem->free(marks);
        *copy = (struct rl_log){0};
        return false;
    }
    memcpy(copy->older, b, block_size(b->tail.pos - b->origin));
    if (marks) memcpy(marks, b->marks, b->marks_end * sizeof(*marks));
    copy->older->marks = marks;
    return true;
}

void rl_log_reset(struct rl_log *log, const struct rl_allocator *mem) {
    if (log->older) {
        mem->free(log->older->marks);
        mem->free(log->older);
    }
    *log = (struct rl_log){0};
}

size_t rl_log_memory(const struct rl_log *log, const struct rl_allocator *mem) {
    if (!log->older) return 0;
    return mem->size(log->older) + (log->older->marks ? mem->size(log->older->marks) : 0);
}

void rl_log_relocate(struct rl_log *log, void *(*move)(void *ctx, void *block), void *ctx) {
    if (!log->older) return;
    void *moved = move(ctx, log->older);
    if (moved) log->older = moved;
    if (!log->older->marks) return;
    moved = move(ctx, log->older->marks);
    if (moved) log->older->marks = moved;
}
