/* Keys under a policy: opened with the state that each rule finds, changed by one writer, replicated as one effect. */
#ifndef RL_SERVER_POLICY_KEY_H
#define RL_SERVER_POLICY_KEY_H

#include "types/policy_effect.h"

struct rl_policy_key {
    RedisModuleCtx *ctx;
    RedisModuleString *name;
    RedisModuleKey *handle;
    struct rl_policy_value *had; /* what the key holds; NULL: nothing */
    struct rl_layout *layout;    /* of the rules below; where it isn't that of what it had, they took over its states */
    int sources[RL_RULES_MAX];   /* from which rule of what it had each state comes */
    struct rl_live rules[RL_RULES_MAX];
};

/* Opens a key that holds a value of any policy, or nothing. Replies WRONGTYPE and answers false where it holds anything
 * else; what has outlived itself at now_us is nothing, whatever its type. Without a layout it is the value's own, or
 * there are no rules where there is no value. */
bool rl_policy_key_open(RedisModuleCtx *ctx, RedisModuleString *name, struct rl_layout *layout, int64_t now_us,
                        struct rl_policy_key *key);
bool rl_policy_key_open_to_read(RedisModuleCtx *ctx, RedisModuleString *name, struct rl_layout *layout, int64_t now_us,
                                struct rl_policy_key *key);

void rl_policy_key_close(struct rl_policy_key *key);

/* Loads what the key holds anew, for the rules of this layout, as if nothing had been asked of it. */
void rl_policy_key_reload(struct rl_policy_key *key, struct rl_layout *layout, int64_t now_us);

/* Takes each rule's share, sets the expiry, replicates and tells. Each share must have been checked at this same
 * moment. told gets what each kind has to tell besides. */
void rl_policy_key_take(struct rl_policy_key *key, const struct rl_share *shares, int64_t now_us,
                        unsigned told[RL_RULES_MAX]);

/* Does what a primary did. False where that is impossible: the effect is broken, or not of this key's history. */
bool rl_policy_key_apply(RedisModuleCtx *ctx, RedisModuleString *name, const struct rl_policy_effect *e);

#endif
