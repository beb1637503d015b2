/* Keys that hold leases: changed by one writer, replicated as effects. Opened and closed by server/key.h. */
#ifndef RL_SERVER_LEASES_KEY_H
#define RL_SERVER_LEASES_KEY_H

#include "server/key.h"
#include "types/leases_effect.h"

/* Does what the effect says to the leases, stores them, sets the expiry (which fills in the effect's), replicates and
 * tells. Acquired ids must have been granted by a check at this same instant. */
void rl_leases_key_write(struct rl_key *key, struct rl_leases_effect *e);

/* Does what a primary did. False: the effect isn't of this key's history. */
bool rl_leases_key_apply(RedisModuleCtx *ctx, RedisModuleString *name, const struct rl_leases_effect *e);

#endif
