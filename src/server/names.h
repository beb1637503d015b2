/* Things found by their name, which is any bytes: a hash table whose entries begin with a struct rl_named. */
#ifndef RL_SERVER_NAMES_H
#define RL_SERVER_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rl_named {
    struct rl_named *next;
    uint32_t hash;
    uint32_t len;
    char *name; /* owned by the entry */
};

struct rl_names {
    struct rl_named **buckets;
    uint32_t buckets_len; /* a power of two, or 0 */
    uint32_t count;
};

/* Gives the entry a copy of its name, and takes that back. */
void rl_named_init(struct rl_named *entry, const char *name, size_t len);
void rl_named_reset(struct rl_named *entry);

struct rl_named *rl_names_find(const struct rl_names *names, const char *name, size_t len);

/* The name must not be there yet. */
void rl_names_add(struct rl_names *names, struct rl_named *entry);

/* The entry must be there. It is not freed. */
void rl_names_remove(struct rl_names *names, struct rl_named *entry);

/* All of them by name, in an array that the caller frees with rl_free; NULL where there are none. */
struct rl_named **rl_names_sorted(const struct rl_names *names);

/* Takes all out of the table, handing each to the function. */
void rl_names_clear(struct rl_names *names, void (*release)(struct rl_named *entry));

#endif
