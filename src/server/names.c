#include "server/names.h"

#include <stdlib.h>
#include <string.h>

#include "types/memory.h"

/* Eight bytes at a time: names are short, and looked up by every call. */
static uint32_t hash_of(const char *name, size_t len) {
    uint64_t h = len * UINT64_C(0x9E3779B97F4A7C15), word;
    for (; len >= sizeof(word); len -= sizeof(word), name += sizeof(word)) {
        memcpy(&word, name, sizeof(word));
        h = (h ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        h ^= h >> 29;
    }
    word = 0;
    memcpy(&word, name, len);
    h = (h ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(h >> 32);
}

void rl_named_init(struct rl_named *entry, const char *name, size_t len) {
    entry->next = NULL;
    entry->hash = hash_of(name, len);
    entry->len = (uint32_t)len;
    entry->name = rl_alloc(len + 1);
    memcpy(entry->name, name, len);
    entry->name[len] = '\0';
}

void rl_named_reset(struct rl_named *entry) {
    rl_free(entry->name);
}

struct rl_named *rl_names_find(const struct rl_names *names, const char *name, size_t len) {
    if (names->count == 0) return NULL;
    uint32_t hash = hash_of(name, len);
    struct rl_named *entry = names->buckets[hash & (names->buckets_len - 1)];
    while (entry && !(entry->hash == hash && entry->len == len && memcmp(entry->name, name, len) == 0)) {
        entry = entry->next;
    }
    return entry;
}

static void link_in(struct rl_names *names, struct rl_named *entry) {
    struct rl_named **bucket = &names->buckets[entry->hash & (names->buckets_len - 1)];
    entry->next = *bucket;
    *bucket = entry;
}

static void grow(struct rl_names *names) {
    struct rl_names grown = {.buckets_len = names->buckets_len ? names->buckets_len * 2 : 16};
    grown.buckets = rl_alloc(grown.buckets_len * sizeof(*grown.buckets));
    memset(grown.buckets, 0, grown.buckets_len * sizeof(*grown.buckets));
    for (uint32_t i = 0; i < names->buckets_len; i++) {
        for (struct rl_named *entry = names->buckets[i], *next; entry; entry = next) {
            next = entry->next;
            link_in(&grown, entry);
        }
    }
    rl_free(names->buckets);
    names->buckets = grown.buckets;
    names->buckets_len = grown.buckets_len;
}

void rl_names_add(struct rl_names *names, struct rl_named *entry) {
    if (names->count == names->buckets_len) grow(names);
    link_in(names, entry);
    names->count++;
}

void rl_names_remove(struct rl_names *names, struct rl_named *entry) {
    struct rl_named **link = &names->buckets[entry->hash & (names->buckets_len - 1)];
    while (*link != entry) link = &(*link)->next;
    *link = entry->next;
    names->count--;
}

static int by_name(const void *a, const void *b) {
    const struct rl_named *x = *(struct rl_named *const *)a, *y = *(struct rl_named *const *)b;
    int order = memcmp(x->name, y->name, x->len < y->len ? x->len : y->len);
    return order ? order : (x->len > y->len) - (x->len < y->len);
}

struct rl_named **rl_names_sorted(const struct rl_names *names) {
    if (names->count == 0) return NULL;
    struct rl_named **all = rl_alloc(names->count * sizeof(*all));
    uint32_t n = 0;
    for (uint32_t i = 0; i < names->buckets_len; i++) {
        for (struct rl_named *entry = names->buckets[i]; entry; entry = entry->next) all[n++] = entry;
    }
    qsort(all, n, sizeof(*all), by_name);
    return all;
}

void rl_names_clear(struct rl_names *names, void (*release)(struct rl_named *entry)) {
    for (uint32_t i = 0; i < names->buckets_len; i++) {
        for (struct rl_named *entry = names->buckets[i], *next; entry; entry = next) {
            next = entry->next;
            release(entry);
        }
    }
    rl_free(names->buckets);
    *names = (struct rl_names){0};
}
