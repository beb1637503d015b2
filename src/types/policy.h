/* rl-policy: the type of keys under a policy, which hold one value for each rule. */
#ifndef RL_TYPES_POLICY_H
#define RL_TYPES_POLICY_H

#include "redismodule.h"
#include "types/layout.h"
#include "types/value.h"

struct rl_policy_value {
    struct rl_layout *layout;
    struct rl_value *rules[]; /* as many as the layout has; NULL: never used */
};

/* The policies themselves are saved beside the keys: what does that, defined with the commands. */
struct rl_policy_aux {
    void (*save)(RedisModuleIO *io, int when);      /* on servers that want something in every case */
    void (*save_some)(RedisModuleIO *io, int when); /* where there is nothing to save it saves nothing */
    int (*load)(RedisModuleIO *io, int encver, int when);
};
extern const struct rl_policy_aux rl_policy_aux;

/* NULL until it is registered. */
extern RedisModuleType *rl_policy_type;

bool rl_policy_register(RedisModuleCtx *ctx);

/* A value without any use. It holds the layout once more. */
struct rl_policy_value *rl_policy_value_make(struct rl_layout *layout);

/* The whole value; or only its block, where the values of the rules have moved to another. */
void rl_policy_value_free(void *value);
void rl_policy_value_free_block(struct rl_policy_value *value);

/* Whether it is, at now_us, as if it had never been. */
bool rl_policy_value_ended(const struct rl_policy_value *value, int64_t now_us);

#endif
