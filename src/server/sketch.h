/* Which keys come most often, in fixed memory: the space-saving sketch. A key with more than 1/64 of all that came is
 * surely in it; a count is at most `over` too high. */
#ifndef RL_SERVER_SKETCH_H
#define RL_SERVER_SKETCH_H

#include <stddef.h>
#include <stdint.h>

#define RL_SKETCH_SIZE 64
#define RL_SKETCH_KEY_MAX 256 /* longer keys are told apart, but kept without their ends */

struct rl_sketch_entry {
    uint64_t count;
    uint64_t over;
    uint32_t hash;
    uint32_t len;  /* of the whole key */
    uint32_t room; /* for the key, which mostly is overwritten by another */
    char *key;
};

struct rl_sketch {
    int used;
    int turn;                        /* where the search for the least begins */
    uint64_t least;                  /* no count is less: they only grow */
    uint32_t hashes[RL_SKETCH_SIZE]; /* of the entries, where they are found at a glance */
    struct rl_sketch_entry entries[RL_SKETCH_SIZE];
};

struct rl_sketch *rl_sketch_make(void);
void rl_sketch_free(struct rl_sketch *sketch);

void rl_sketch_count(struct rl_sketch *sketch, const char *key, size_t len);

/* Puts the largest first. */
void rl_sketch_sort(struct rl_sketch *sketch);

size_t rl_sketch_key_len(const struct rl_sketch_entry *entry);

#endif
