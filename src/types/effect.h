/* What goes to replicas and into the AOF: the effect of a call with its time, never the call.
 *
 * A take ships the limit, the units and the instant, and whoever applies it runs the same take on an equal value; a
 * whole value is what a rewritten AOF starts from. Both are the one argument of RL.APPLY. Decoding trusts nothing. */
#ifndef RL_TYPES_EFFECT_H
#define RL_TYPES_EFFECT_H

#include "types/value.h"

#define RL_EFFECT_MAX 320   /* bytes of an encoded take, or of a whole value besides its state */
#define RL_KEEP_EXPIRY (-2) /* expire_at_ms: leave it as it is (an AOF rewrite sets it by itself) */

enum rl_effect_form { RL_EFFECT_TAKE = 1, RL_EFFECT_WHOLE = 2 };

struct rl_effect {
    enum rl_effect_form form;
    const struct rl_kind *kind;
    int64_t expire_at_ms; /* of the key afterwards; -1 none */
    int64_t limit[RL_LIMIT_WORDS];
    /* a take */
    struct rl_moment moment;
    int64_t cost;
    int64_t keep_ms;
    /* a whole value */
    struct rl_totals totals;
    const unsigned char *state;
    size_t state_len;
};

size_t rl_effect_encode_take(unsigned char out[RL_EFFECT_MAX], const struct rl_kind *kind, const int64_t *limit,
                             int64_t cost, int64_t keep_ms, const struct rl_moment *m, int64_t expire_at_ms);

/* Into a buffer of at least rl_effect_whole_max bytes; answers how many were written. */
size_t rl_effect_whole_max(const struct rl_live *live);
size_t rl_effect_encode_whole(unsigned char *out, const struct rl_live *live, int64_t expire_at_ms);

/* Whether a calendar can have such a period. */
bool rl_effect_period_valid(const struct rl_period *p);

bool rl_effect_decode(const unsigned char *bytes, size_t len, struct rl_effect *e);

#endif
