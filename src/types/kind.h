/* A kind of limiter, as everything above the algorithms sees it: one constant table of functions per algorithm.
 *
 * A limit is a struct of int64_t alone, so that it can be compared, hashed, saved and shipped as words without knowing
 * its fields. A state is the algorithm's struct, zero where nothing was ever used; packed, it is the few bytes that
 * stay in a key. It may hold memory of its own: then the four functions for that are there. */
#ifndef RL_TYPES_KIND_H
#define RL_TYPES_KIND_H

#include <stddef.h>

#include "algo/calendar.h"
#include "algo/scale.h"
#include "algo/verdict.h"

#define RL_LIMIT_WORDS 16 /* the largest limit */
#define RL_STATE_SIZE 64  /* the largest state struct */
#define RL_PACKED_MAX 64  /* the largest packed state */
#define RL_RULE_SIZE 256  /* the longest rule as text */

#define RL_BEYOND_UNITS "what is used would go above 1000000000000000 units"

/* When something happens: the clock, and for quotas the calendar period that it falls into, which travels with the
 * effect so that a replica needs no calendar. */
struct rl_moment {
    int64_t now_us;
    struct rl_period period;
};

static inline int64_t rl_moment_ms(const struct rl_moment *m) {
    return m->now_us / 1000;
}

struct rl_kind {
    const char *name; /* in RL.STATE */
    uint8_t wire;     /* in effects: once released, for ever */
    size_t limit_words;
    bool calendar; /* moments have a period */

    /* The limit. */
    bool (*limit_valid)(const void *limit);
    int64_t (*limit_unit)(const void *limit); /* computed once per distinct limit, for pack and unpack; may be NULL */
    void (*limit_rule)(const void *limit, char out[RL_RULE_SIZE]); /* in the notation that a client would type */
    /* The limit tightened or widened; NULL for kinds that can't be rules of a policy. Counts may become 0: what is
     * valid here may be more than what commands let pass. */
    void (*limit_scale)(void *scaled, const void *limit, struct rl_scale scale);
    const char *beyond; /* the error where what is used leaves the bounds */

    /* The algorithm. take answers what the algorithm has to tell besides, such as alerts; mostly 0. */
    struct rl_verdict (*check)(const void *state, const void *limit, const struct rl_ask *ask,
                               const struct rl_moment *m);
    unsigned (*take)(void *state, const void *limit, int64_t cost, const struct rl_moment *m);
    bool (*rescale)(void *state, const void *from, const void *to);      /* false: the new limit can't hold it */
    bool (*alike)(const void *from, const void *to);                     /* rescale may be left out; may be NULL */
    bool (*ahead)(const void *state, const void *limit, int64_t now_us); /* a step back left it ahead of the clock */
    int64_t (*unused_at_us)(const void *state, const void *limit); /* from when on it is as if it had never been used */
    int64_t (*written_at_ms)(const void *state); /* for expiries rounded up to the life of the state; may be NULL */

    /* The packed state, where the struct itself, of state_size bytes, isn't compact enough: else all three are NULL.
     * pack answers the size. */
    size_t state_size;
    size_t (*packed_size)(const unsigned char *packed);
    size_t (*pack)(const void *state, int64_t unit, unsigned char packed[RL_PACKED_MAX]);
    void (*unpack)(const unsigned char *packed, int64_t unit, void *state);

    /* The state as portable bytes, the same for equal states: what files, peers and digests see. decode trusts nothing
     * and checks the state against its limit, which is known to be valid; where it fails it leaves nothing behind. */
    size_t (*encoded_size)(const void *state);
    void (*encode)(const void *state, unsigned char *out);
    bool (*decode)(const unsigned char *bytes, size_t len, const void *limit, void *state);

    /* Memory that the state holds besides its struct; all NULL where it holds none. */
    void (*reset)(void *state); /* gives it back */
    void (*clone)(const void *state, void *copy);
    size_t (*memory)(const void *state);
    void (*relocate)(void *state, void *(*move)(void *ctx, void *block), void *ctx); /* may be NULL */
};

#endif
