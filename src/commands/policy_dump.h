/* Policies and loads as bytes: what RL.POLICY DUMP answers, RESTORE reads, an RDB keeps beside the keys, and what is
 * replicated where a time has to travel with it. */
#ifndef RL_COMMANDS_POLICY_DUMP_H
#define RL_COMMANDS_POLICY_DUMP_H

#include "server/policies.h"

/* All of them; or just the policy or the load that is given. What has ended at now_ms is left out. The caller frees the
 * bytes with rl_free. */
unsigned char *rl_policy_dump_all(const struct rl_policies *all, int64_t now_ms, size_t *len);
unsigned char *rl_policy_dump_one(const struct rl_policy *policy, const struct rl_load *load, int64_t now_ms,
                                  size_t *len);

/* Puts what the bytes hold into the policies; all or, answering why, nothing. replace: also over what is there. */
const char *rl_policy_restore(struct rl_policies *into, const unsigned char *bytes, size_t len, bool replace,
                              int64_t now_ms);

/* Replicates a policy or a load as it now is. */
void rl_policy_replicate(RedisModuleCtx *ctx, const struct rl_policy *policy, const struct rl_load *load,
                         int64_t now_ms);

#endif
