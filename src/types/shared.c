#include "types/shared.h"

#include <string.h>

#include "types/memory.h"

/* Ids are found in blocks that double in size and never move, so that other threads may follow an id at any time. */
#define BLOCKS 31
static struct rl_shared **blocks[BLOCKS];
static uint32_t ids_made;
static uint32_t *free_ids;
static uint32_t free_ids_len, free_ids_cap;

static struct rl_shared **buckets;
static uint32_t buckets_len; /* a power of two */
static uint32_t stored;

static struct rl_shared **slot_of(uint32_t id) {
    uint32_t n = id + 1;
    uint32_t block = 31 - (uint32_t)__builtin_clz(n);
    return &blocks[block][n - (UINT32_C(1) << block)];
}

struct rl_shared *rl_shared_by_id(uint32_t id) {
    return *slot_of(id);
}

bool rl_shared_is(const struct rl_shared *s, const int64_t *limit) {
    return memcmp(s->limit, limit, s->kind->limit_words * sizeof(int64_t)) == 0;
}

size_t rl_shared_count(void) {
    return stored;
}

static uint32_t hash_of(const struct rl_kind *kind, const int64_t *limit) {
    uint64_t h = kind->wire;
    for (size_t i = 0; i < kind->limit_words; i++) {
        h = (h ^ (uint64_t)limit[i]) * UINT64_C(0x9E3779B97F4A7C15);
        h ^= h >> 29;
    }
    return (uint32_t)(h ^ (h >> 32));
}

static uint32_t new_id(void) {
    if (free_ids_len > 0) return free_ids[--free_ids_len];
    uint32_t n = ids_made + 1;
    uint32_t block = 31 - (uint32_t)__builtin_clz(n);
    if (!blocks[block]) blocks[block] = rl_alloc((sizeof(*blocks[0])) << block);
    return ids_made++;
}

static void put_id_back(uint32_t id) {
    if (free_ids_len == free_ids_cap) {
        free_ids_cap = free_ids_cap ? free_ids_cap * 2 : 64;
        free_ids = rl_realloc(free_ids, free_ids_cap * sizeof(*free_ids));
    }
    free_ids[free_ids_len++] = id;
}

/* Frees what nobody holds, then doubles the table if it is still full. */
static void sweep_and_grow(void) {
    for (uint32_t i = 0; i < buckets_len; i++) {
        struct rl_shared **link = &buckets[i];
        while (*link) {
            struct rl_shared *s = *link;
            if (atomic_load_explicit(&s->refs, memory_order_acquire) > 0) {
                link = &s->next;
                continue;
            }
            *link = s->next;
            put_id_back(s->id);
            rl_free(s);
            stored--;
        }
    }
    if (buckets_len > 0 && stored < buckets_len / 2) return;

    uint32_t len = buckets_len ? buckets_len * 2 : 64;
    struct rl_shared **grown = rl_alloc(len * sizeof(*grown));
    memset(grown, 0, len * sizeof(*grown));
    for (uint32_t i = 0; i < buckets_len; i++) {
        for (struct rl_shared *s = buckets[i], *next; s; s = next) {
            next = s->next;
            s->next = grown[s->hash & (len - 1)];
            grown[s->hash & (len - 1)] = s;
        }
    }
    rl_free(buckets);
    buckets = grown;
    buckets_len = len;
}

struct rl_shared *rl_shared_hold(const struct rl_kind *kind, const int64_t *limit) {
    uint32_t hash = hash_of(kind, limit);
    if (buckets_len > 0) {
        for (struct rl_shared *s = buckets[hash & (buckets_len - 1)]; s; s = s->next) {
            if (s->hash != hash || s->kind != kind || !rl_shared_is(s, limit)) continue;
            rl_shared_retain(s);
            return s;
        }
    }
    if (stored == buckets_len) sweep_and_grow();

    size_t size = kind->limit_words * sizeof(int64_t);
    struct rl_shared *s = rl_alloc(sizeof(*s) + size);
    s->kind = kind;
    s->unit = kind->limit_unit ? kind->limit_unit(limit) : 1;
    s->id = new_id();
    s->hash = hash;
    atomic_init(&s->refs, 1);
    memcpy(s->limit, limit, size);
    s->next = buckets[hash & (buckets_len - 1)];
    buckets[hash & (buckets_len - 1)] = s;
    *slot_of(s->id) = s;
    stored++;
    return s;
}

void rl_shared_retain(struct rl_shared *s) {
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
}

void rl_shared_release(struct rl_shared *s) {
    atomic_fetch_sub_explicit(&s->refs, 1, memory_order_release);
}
