/* Effects on leases, for RL.APPLY: which ids were acquired, renewed or released, and when.
 *
 * Whoever applies one does the same to equal leases. Decoding trusts nothing; the ids that it answers lie in the bytes,
 * and their array is the caller's to free. */
#ifndef RL_TYPES_LEASES_EFFECT_H
#define RL_TYPES_LEASES_EFFECT_H

#include "algo/leases.h"
#include "types/effect.h"

enum { RL_LEASES_EFFECT = 5 }; /* the other forms are of types/effect.h and types/policy_effect.h */

enum rl_leases_op {
    RL_LEASES_ACQUIRE = 1,
    RL_LEASES_RENEW = 2,
    RL_LEASES_RELEASE = 3,
    RL_LEASES_MOVE = 4, /* the repair after a step back of the clock */
};

struct rl_leases_effect {
    enum rl_leases_op op;
    int64_t expire_at_ms; /* as in types/effect.h */
    int64_t now_us;
    struct rl_leases_limit limit; /* of the key afterwards */
    int64_t lease_ms;             /* acquired or renewed for so long */
    int64_t units;                /* of each new lease */
    struct rl_lease_id *ids;
    size_t ids_count;
};

bool rl_leases_effect_is(const unsigned char *bytes, size_t len);

/* Into a buffer of at least rl_leases_effect_max bytes; answers how many were written. */
size_t rl_leases_effect_max(const struct rl_leases_effect *e);
size_t rl_leases_effect_encode(unsigned char *out, const struct rl_leases_effect *e);

bool rl_leases_effect_decode(const unsigned char *bytes, size_t len, struct rl_leases_effect *e);

#endif
