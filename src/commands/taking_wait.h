/* How long a refused call under a policy has to wait, through the changes of the policy's limits that are known. */
#ifndef RL_COMMANDS_TAKING_WAIT_H
#define RL_COMMANDS_TAKING_WAIT_H

#include "commands/taking.h"

/* The rule that waits longest, and the least time after which the same call would pass in all charged rules; RL_NEVER
 * where a cost is above the plain limit. The verdicts at now must be there. */
int rl_taking_wait(const struct rl_taking *t, int64_t *wait_ms);

/* The same for one rule with a cost of its own, of which the verdict is v. */
int64_t rl_taking_wait_rule(const struct rl_taking *t, int rule, int64_t cost, const struct rl_verdict *v);

#endif
