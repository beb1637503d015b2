/* What every unit test needs: a check that counts, and random numbers that are the same each time. */
#ifndef RL_TESTS_UNIT_H
#define RL_TESTS_UNIT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

static long rl_unit_passed, rl_unit_failed;

/* Counts, and says where and what on failure. Answers whether it held. */
static inline bool rl_unit_check(bool held, const char *what, const char *file, int line) {
    if (held)
        rl_unit_passed++;
    else if (++rl_unit_failed <= 20)
        printf("%s:%d: failed: %s\n", file, line, what);
    return held;
}

#define CHECK(condition) rl_unit_check((condition), #condition, __FILE__, __LINE__)

/* xorshift64*; never zero. */
static inline uint64_t rl_unit_random(uint64_t *seed) {
    *seed ^= *seed >> 12;
    *seed ^= *seed << 25;
    *seed ^= *seed >> 27;
    return *seed * UINT64_C(2685821657736338717);
}

/* From low to high, both included. */
static inline int64_t rl_unit_between(uint64_t *seed, int64_t low, int64_t high) {
    return low + (int64_t)(rl_unit_random(seed) % ((uint64_t)(high - low) + 1));
}

/* The last line of a test, and what main returns. */
static inline int rl_unit_done(const char *name) {
    printf("%s: %ld passed, %ld failed\n", name, rl_unit_passed, rl_unit_failed);
    return rl_unit_failed == 0 ? 0 : 1;
}

#endif
