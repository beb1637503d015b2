#include "server/sketch.h"

#include <stdlib.h>
#include <string.h>

#include "types/memory.h"

struct rl_sketch *rl_sketch_make(void) {
    struct rl_sketch *sketch = rl_alloc(sizeof(*sketch));
    sketch->used = sketch->turn = 0;
    sketch->least = 0;
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

enum { ROOM_MIN = 40 };

static void name(struct rl_sketch_entry *entry, const char *key, size_t len, uint32_t hash) {
    entry->hash = hash;
    entry->len = (uint32_t)len;
    size_t kept = rl_sketch_key_len(entry);
    if (!entry->key || kept > entry->room) {
        entry->room = kept < ROOM_MIN ? ROOM_MIN : (uint32_t)kept;
        rl_free(entry->key);
        entry->key = rl_alloc(entry->room);
    }
    memcpy(entry->key, key, kept);
}

static struct rl_sketch_entry *find(struct rl_sketch *sketch, const char *key, size_t len, uint32_t hash) {
    for (int i = 0; i < sketch->used; i++) {
        if (sketch->hashes[i] != hash) continue;
        struct rl_sketch_entry *entry = &sketch->entries[i];
        if (entry->len == len && memcmp(entry->key, key, rl_sketch_key_len(entry)) == 0) return entry;
    }
    return NULL;
}

/* A new entry, or that of the key that came least often. */
static struct rl_sketch_entry *make_room(struct rl_sketch *sketch) {
    if (sketch->used < RL_SKETCH_SIZE) {
        struct rl_sketch_entry *made = &sketch->entries[sketch->used++];
        *made = (struct rl_sketch_entry){0};
        return made;
    }
    struct rl_sketch_entry *least = NULL;
    for (int n = 0; n < RL_SKETCH_SIZE && !(least && least->count == sketch->least); n++) {
        struct rl_sketch_entry *entry = &sketch->entries[sketch->turn++ % RL_SKETCH_SIZE];
        if (!least || entry->count < least->count) least = entry;
    }
    sketch->turn %= RL_SKETCH_SIZE;
    sketch->least = least->count;
    return least;
}

void rl_sketch_count(struct rl_sketch *sketch, const char *key, size_t len) {
    uint32_t hash = hash_of(key, len);
    struct rl_sketch_entry *entry = find(sketch, key, len, hash);
    if (!entry) {
        entry = make_room(sketch);
        entry->over = entry->count;
        name(entry, key, len, hash);
        sketch->hashes[entry - sketch->entries] = hash;
    }
    entry->count++;
}

static int larger_first(const void *a, const void *b) {
    const struct rl_sketch_entry *x = a, *y = b;
    return (x->count < y->count) - (x->count > y->count);
}

void rl_sketch_sort(struct rl_sketch *sketch) {
    qsort(sketch->entries, (size_t)sketch->used, sizeof(sketch->entries[0]), larger_first);
    for (int i = 0; i < sketch->used; i++) sketch->hashes[i] = sketch->entries[i].hash;
}
