/* Keys: opened with their type checked, changed by one writer, replicated as effects. */
#ifndef RL_SERVER_KEY_H
#define RL_SERVER_KEY_H

#include "types/effect.h"
#include "types/policy.h"
#include "types/type.h"

struct rl_key {
    RedisModuleCtx *ctx;
    RedisModuleString *name;
    RedisModuleKey *handle;
    const struct rl_type *type;
    struct rl_policy_value
        *policy;         /* what a key under a policy holds, where any kind may be opened; then live is empty */
    bool adopted;        /* the state was read from a string that another module left */
    struct rl_live live; /* what the key holds, unpacked */
};

/* Understands a string as a state under this limit; false: it isn't one. */
typedef bool (*rl_key_adopt)(const char *bytes, size_t len, const void *limit, int64_t now_us, void *state);

/* Opens a key that holds this type or nothing, for reading and writing. Replies WRONGTYPE and answers false where it
 * holds anything else; what has outlived itself at now_us is nothing, whatever its kind. */
bool rl_key_open(RedisModuleCtx *ctx, RedisModuleString *name, const struct rl_type *type, int64_t now_us,
                 struct rl_key *key);

/* The same, but a string that adopt understands counts as a state of this type. */
bool rl_key_open_adopting(RedisModuleCtx *ctx, RedisModuleString *name, const struct rl_type *type,
                          const struct rl_moment *m, rl_key_adopt adopt, const int64_t *limit, struct rl_key *key);

/* Opens a limiter of any kind, for reading. Where there is none, or it has outlived itself, live.limit and policy are
 * NULL. */
bool rl_key_open_any(RedisModuleCtx *ctx, RedisModuleString *name, int64_t now_us, struct rl_key *key);

void rl_key_close(struct rl_key *key);

/* Takes cost units, sets the expiry, replicates and tells. The check at this same moment must have allowed it. Answers
 * what the kind has to tell besides. */
unsigned rl_key_take(struct rl_key *key, const int64_t *limit, int64_t cost, int64_t keep_ms,
                     const struct rl_moment *m);

/* Loads the value anew, as if nothing had been asked of it. */
void rl_key_reload(struct rl_key *key, int64_t now_us);

/* Opens the key of an effect: what it holds of this type, at the primary's time; anything else can only be what had
 * outlived itself there. */
void rl_key_open_to_apply(RedisModuleCtx *ctx, RedisModuleString *name, const struct rl_type *type, int64_t now_us,
                          struct rl_key *key);

/* Does what a primary did. False where that is impossible: the effect is broken, or not of this key's history. */
bool rl_key_apply(RedisModuleCtx *ctx, RedisModuleString *name, const struct rl_effect *e);

/* Puts the stored value into the key, in place of the block it had. False: it is as if never used, so the key is
 * deleted. */
bool rl_key_put(struct rl_key *key, struct rl_value *had, int64_t now_us);

/* Whether a key that is open holds nothing, or a limiter that has outlived itself at now_us. */
bool rl_key_is_nothing(RedisModuleKey *handle, int64_t now_us);

/* Extends the life of a key whose value asked for one expiry before, and now for another; answers what effects carry.
 */
int64_t rl_key_extend(RedisModuleKey *handle, int64_t before_ms, int64_t expire_at_ms);

/* What changed a key is told to WATCH, to client tracking and to the keyspace. */
void rl_key_tell(RedisModuleCtx *ctx, RedisModuleString *name, int64_t cost, bool deleted);

/* Tells who watches the keyspace that a call was refused. */
void rl_key_tell_refused(RedisModuleCtx *ctx, RedisModuleString *name);

#endif
