/* Taking from one key under one policy: all of its rules are asked, and all take or none does.
 *
 * Open, check, then commit or not, close: several keys are first all checked, then all committed. */
#ifndef RL_COMMANDS_TAKING_H
#define RL_COMMANDS_TAKING_H

#include "server/policies.h"
#include "server/policy_key.h"
#include "server/stats.h"

/* What is asked of a policy. */
struct rl_amount {
    enum rl_mode mode;
    bool peek;
    bool outcome;               /* it comes after the fact: nothing is decided, wait_ms is 0 */
    unsigned charged;           /* a bit for each rule; none: only look */
    int64_t cost[RL_RULES_MAX]; /* of the charged ones */
};

struct rl_taking {
    struct rl_policy *policy;
    struct rl_policy_key key;
    struct rl_amount amount;
    int64_t now_us;
    int64_t upto;     /* what UPTO asked for; 0 without */
    int64_t until_ms; /* when the policy's limits change by themselves */
    bool ahead;       /* the clock was stepped back behind a state that is asked */
    bool refused;     /* by a real limiter: SHADOW grants nevertheless */
    int binding;      /* the rule that the verdict is of */
    struct rl_verdict verdict;
    struct rl_verdict verdicts[RL_RULES_MAX];
    struct rl_moment moments[RL_RULES_MAX];
};

/* The same cost for all rules; 0 only looks. */
void rl_amount_set(struct rl_amount *amount, const struct rl_policy *policy, int64_t cost, enum rl_mode mode);

/* What an outcome costs. False, and replied, where the policy's table doesn't know the label. */
bool rl_amount_outcome(RedisModuleCtx *ctx, const struct rl_policy *policy, RedisModuleString *label,
                       struct rl_amount *amount);

/* Opens the key and checks the amount, which must be there already. False, with nothing open, where an error was
 * replied. */
bool rl_taking_open(RedisModuleCtx *ctx, RedisModuleString *name, struct rl_policy *policy, int64_t now_us,
                    struct rl_taking *t);

/* Opens the key to read, with what its rules are under the policy. The same, but nothing is asked. */
bool rl_taking_look(RedisModuleCtx *ctx, RedisModuleString *name, struct rl_policy *policy, int64_t now_us,
                    struct rl_taking *t);

/* Whether the caller may go on. */
static inline bool rl_taking_passes(const struct rl_taking *t) {
    return !t->refused || t->policy->shadow;
}

/* Carries the verdict out. */
void rl_taking_commit(struct rl_taking *t);

/* Counts a verdict that was carried out for the command. */
void rl_taking_count(const struct rl_taking *t, struct rl_stats *stats);

/* Carries nothing out because another key was refused: the verdict is what there is now. A step back of the clock is
 * repaired nevertheless. */
void rl_taking_leave(struct rl_taking *t);

void rl_taking_close(struct rl_taking *t);

/* The five integers and the name of the rule. */
void rl_taking_reply(RedisModuleCtx *ctx, const struct rl_taking *t);

#endif
