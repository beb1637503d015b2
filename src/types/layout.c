#include "types/layout.h"

#include <string.h>

#include "types/memory.h"

static struct rl_layout **buckets;
static uint32_t buckets_len; /* a power of two */
static uint32_t stored;

bool rl_name_is(const struct rl_name *name, const char *bytes, size_t len) {
    return name->len == len && memcmp(name->bytes, bytes, len) == 0;
}

static bool same_name(const struct rl_name *a, const struct rl_name *b) {
    return rl_name_is(a, b->bytes, b->len);
}

static bool name_valid(const struct rl_name *name) {
    return name->len >= 1 && name->len <= RL_NAME_MAX;
}

int rl_shape_find(const struct rl_shape *shape, const char *name, size_t len) {
    for (int i = 0; i < shape->rules; i++) {
        if (rl_name_is(&shape->rule[i].name, name, len)) return i;
    }
    return -1;
}

bool rl_shape_valid(const struct rl_shape *shape) {
    if (!name_valid(&shape->policy) || shape->rules < 1 || shape->rules > RL_RULES_MAX) return false;
    for (int i = 0; i < shape->rules; i++) {
        const struct rl_name *name = &shape->rule[i].name;
        if (!shape->rule[i].kind->limit_scale || !name_valid(name)) return false;
        if (rl_shape_find(shape, name->bytes, name->len) != i) return false;
    }
    return true;
}

static uint32_t add_to_hash(uint32_t h, const struct rl_name *name) {
    h = (h ^ (uint32_t)name->len) * 16777619u;
    for (size_t i = 0; i < name->len; i++) h = (h ^ (unsigned char)name->bytes[i]) * 16777619u;
    return h;
}

static uint32_t hash_of(const struct rl_shape *shape) {
    uint32_t h = add_to_hash(2166136261u, &shape->policy);
    for (int i = 0; i < shape->rules; i++) h = add_to_hash(h ^ shape->rule[i].kind->wire, &shape->rule[i].name);
    return h ^ h >> 16;
}

static bool same_shape(const struct rl_shape *a, const struct rl_shape *b) {
    if (a->rules != b->rules || !same_name(&a->policy, &b->policy)) return false;
    for (int i = 0; i < a->rules; i++) {
        if (a->rule[i].kind != b->rule[i].kind || !same_name(&a->rule[i].name, &b->rule[i].name)) return false;
    }
    return true;
}

/* Frees what nobody holds, then doubles the table if it is still full. */
static void sweep_and_grow(void) {
    for (uint32_t i = 0; i < buckets_len; i++) {
        struct rl_layout **link = &buckets[i];
        while (*link) {
            struct rl_layout *layout = *link;
            if (atomic_load_explicit(&layout->refs, memory_order_acquire) > 0) {
                link = &layout->next;
                continue;
            }
            *link = layout->next;
            rl_free(layout);
            stored--;
        }
    }
    if (buckets_len > 0 && stored < buckets_len / 2) return;

    uint32_t len = buckets_len ? buckets_len * 2 : 64;
    struct rl_layout **grown = rl_alloc(len * sizeof(*grown));
    memset(grown, 0, len * sizeof(*grown));
    for (uint32_t i = 0; i < buckets_len; i++) {
        for (struct rl_layout *layout = buckets[i], *next; layout; layout = next) {
            next = layout->next;
            layout->next = grown[layout->hash & (len - 1)];
            grown[layout->hash & (len - 1)] = layout;
        }
    }
    rl_free(buckets);
    buckets = grown;
    buckets_len = len;
}

static void own(struct rl_name *name, char **at) {
    memcpy(*at, name->bytes, name->len);
    name->bytes = *at;
    *at += name->len;
}

static struct rl_layout *make(const struct rl_shape *shape, uint32_t hash) {
    size_t size = shape->policy.len;
    for (int i = 0; i < shape->rules; i++) size += shape->rule[i].name.len;
    struct rl_layout *layout = rl_alloc(sizeof(*layout) + size);
    char *at = layout->bytes;
    layout->shape = *shape;
    layout->hash = hash;
    atomic_init(&layout->refs, 1);
    own(&layout->shape.policy, &at);
    for (int i = 0; i < shape->rules; i++) own(&layout->shape.rule[i].name, &at);
    return layout;
}

struct rl_layout *rl_layout_hold(const struct rl_shape *shape) {
    uint32_t hash = hash_of(shape);
    if (buckets_len > 0) {
        for (struct rl_layout *layout = buckets[hash & (buckets_len - 1)]; layout; layout = layout->next) {
            if (layout->hash != hash || !same_shape(&layout->shape, shape)) continue;
            rl_layout_retain(layout);
            return layout;
        }
    }
    if (stored == buckets_len) sweep_and_grow();
    struct rl_layout *layout = make(shape, hash);
    layout->next = buckets[hash & (buckets_len - 1)];
    buckets[hash & (buckets_len - 1)] = layout;
    stored++;
    return layout;
}

void rl_layout_retain(struct rl_layout *layout) {
    atomic_fetch_add_explicit(&layout->refs, 1, memory_order_relaxed);
}

void rl_layout_release(struct rl_layout *layout) {
    atomic_fetch_sub_explicit(&layout->refs, 1, memory_order_release);
}

void rl_layout_match(const struct rl_layout *from, const struct rl_layout *to, int sources[RL_RULES_MAX]) {
    const struct rl_shape *old = &from->shape, *new = &to->shape;
    bool claimed[RL_RULES_MAX] = {false};
    for (int i = 0; i < new->rules; i++) {
        int found = from == to ? i : rl_shape_find(old, new->rule[i].name.bytes, new->rule[i].name.len);
        sources[i] = found >= 0 && old->rule[found].kind == new->rule[i].kind ? found : -1;
        if (sources[i] >= 0) claimed[found] = true;
    }
    for (int i = 0; i < new->rules; i++) {
        for (int k = 0; k < old->rules && sources[i] < 0; k++) {
            if (claimed[k] || old->rule[k].kind != new->rule[i].kind) continue;
            sources[i] = k;
            claimed[k] = true;
        }
    }
}
