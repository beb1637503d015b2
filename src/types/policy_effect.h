/* Effects on keys under a policy, for RL.APPLY: a take from some or all of the rules, or a whole value.
 *
 * They carry the names and kinds of the rules and the resolved limits, so whoever applies them needs no policy.
 * Decoding trusts nothing; what it answers points into the bytes. */
#ifndef RL_TYPES_POLICY_EFFECT_H
#define RL_TYPES_POLICY_EFFECT_H

#include "types/effect.h"
#include "types/policy.h"

#define RL_POLICY_EFFECT_MAX (32 + RL_NAME_MAX + RL_RULES_MAX * (RL_EFFECT_MAX + RL_NAME_MAX)) /* of a take */

enum { RL_POLICY_EFFECT_TAKE = 3, RL_POLICY_EFFECT_WHOLE = 4 }; /* the other forms are of types/effect.h */

/* What is taken from one rule; limit NULL: nothing, it stays as it is. */
struct rl_share {
    const int64_t *limit;
    int64_t cost;
    int64_t keep_ms;
    struct rl_period period;
};

struct rl_policy_effect {
    int form;
    struct rl_shape shape;
    int64_t expire_at_ms; /* as in types/effect.h */
    /* a take */
    int64_t now_us;
    struct rl_share shares[RL_RULES_MAX];
    int64_t limits[RL_RULES_MAX][RL_LIMIT_WORDS];
    /* a whole value: for each rule that has one its totals and its state, in that rule's limits */
    struct rl_totals totals[RL_RULES_MAX];
    struct rl_name states[RL_RULES_MAX]; /* bytes NULL: never used */
};

/* Whether the bytes are such an effect, and not one on a plain key. */
bool rl_policy_effect_is(const unsigned char *bytes, size_t len);

size_t rl_policy_effect_encode_take(unsigned char out[RL_POLICY_EFFECT_MAX], const struct rl_layout *layout,
                                    const struct rl_share *shares, int64_t now_us, int64_t expire_at_ms);

/* Into a buffer of at least rl_policy_effect_whole_max bytes; answers how many were written. */
size_t rl_policy_effect_whole_max(const struct rl_policy_value *value);
size_t rl_policy_effect_encode_whole(unsigned char *out, const struct rl_policy_value *value);

bool rl_policy_effect_decode(const unsigned char *bytes, size_t len, struct rl_policy_effect *e);

#endif
