#include "server/sketch.h"

#include <stdlib.h>
#include <string.h>

#include "types/memory.h"

struct rl_sketch *rl_sketch_make(void) {
    struct rl_sketch *sketch = rl_alloc(sizeof(*sketch));
    sketch->used = 0;
    return sketch;
}

void rl_sketch_free(struct rl_sketch *sketch) {
    for (int i = 0; i < sketch->used; i++) rl_free(sketch->entries[i].key);
    rl_free(sketch);
}

static uint32_t hash_of(const char *key, size_t len) {
    uint32_t h = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < len; i++) h = (h ^ (unsigned char)key[i]) * 16777619u;
    return h;
}

size_t rl_sketch_key_len(const struct rl_sketch_entry *entry) {
    return entry->len < RL_SKETCH_KEY_MAX ? entry->len : RL_SKETCH_KEY_MAX;
}

static void name(struct rl_sketch_entry *entry, const char *key, size_t len, uint32_t hash) {
    entry->hash = hash;
    entry->len = (uint32_t)len;
    entry->key = rl_alloc(rl_sketch_key_len(entry) + 1);
    memcpy(entry->key, key, rl_sketch_key_len(entry));
}

void rl_sketch_count(struct rl_sketch *sketch, const char *key, size_t len) {
    uint32_t hash = hash_of(key, len);
    struct rl_sketch_entry *entry, *least = sketch->entries;
    for (int i = 0; i < sketch->used; i++) {
        entry = &sketch->entries[i];
        if (entry->hash == hash && entry->len == len && memcmp(entry->key, key, rl_sketch_key_len(entry)) == 0) {
            entry->count++;
            return;
        }
        if (entry->count < least->count) least = entry;
    }
    if (sketch->used < RL_SKETCH_SIZE) {
        entry = &sketch->entries[sketch->used++];
        entry->count = 1;
        entry->over = 0;
    } else {
        entry = least;
        entry->over = entry->count++;
        rl_free(entry->key);
    }
    name(entry, key, len, hash);
}

static int larger_first(const void *a, const void *b) {
    const struct rl_sketch_entry *x = a, *y = b;
    return (x->count < y->count) - (x->count > y->count);
}

void rl_sketch_sort(struct rl_sketch *sketch) {
    qsort(sketch->entries, (size_t)sketch->used, sizeof(sketch->entries[0]), larger_first);
}
