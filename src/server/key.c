#include "server/key.h"

#include "server/clock.h"
#include "server/reply.h"

/* The key must hold the type that was asked for, or what counts as nothing because it has outlived itself. */
static bool load(struct rl_key *key, const struct rl_type *found, int64_t now_us) {
    struct rl_value *value = RedisModule_ModuleTypeGetValue(key->handle);
    rl_live_load(&key->live, found->kind, value, now_us);
    if (found == key->type) return true;
    if (key->live.limit) return false;
    rl_live_load(&key->live, key->type->kind, NULL, now_us);
    return true;
}

static const struct rl_type *type_of(RedisModuleKey *handle) {
    RedisModuleType *type = RedisModule_ModuleTypeGetType(handle);
    return type ? rl_type_by_handle(type) : NULL;
}

bool rl_key_is_nothing(RedisModuleKey *handle, int64_t now_us) {
    if (RedisModule_KeyType(handle) == REDISMODULE_KEYTYPE_EMPTY) return true;
    if (RedisModule_ModuleTypeGetType(handle) == rl_policy_type) {
        return rl_policy_value_ended(RedisModule_ModuleTypeGetValue(handle), now_us);
    }
    const struct rl_type *type = type_of(handle);
    if (!type) return false;
    struct rl_live live;
    rl_live_load_all(&live, type->kind, RedisModule_ModuleTypeGetValue(handle));
    return rl_live_ended(&live, now_us);
}

static bool wrong_type(struct rl_key *key) {
    rl_key_close(key);
    return rl_reply_error(key->ctx, REDISMODULE_ERRORMSG_WRONGTYPE);
}

static void open(RedisModuleCtx *ctx, RedisModuleString *name, int mode, struct rl_key *key) {
    key->ctx = ctx;
    key->name = name;
    key->handle = RedisModule_OpenKey(ctx, name, mode);
    key->adopted = false;
    key->policy = NULL;
    key->live.limit = NULL;
    key->live.borrowed = true; /* until it is loaded there is nothing to give back */
}

bool rl_key_open(RedisModuleCtx *ctx, RedisModuleString *name, const struct rl_type *type, int64_t now_us,
                 struct rl_key *key) {
    open(ctx, name, REDISMODULE_READ | REDISMODULE_WRITE, key);
    key->type = type;
    const struct rl_type *found = type_of(key->handle);
    if (found) return load(key, found, now_us) || wrong_type(key);
    if (!rl_key_is_nothing(key->handle, now_us)) return wrong_type(key);
    rl_live_load(&key->live, type->kind, NULL, now_us);
    return true;
}

bool rl_key_open_adopting(RedisModuleCtx *ctx, RedisModuleString *name, const struct rl_type *type,
                          const struct rl_moment *m, rl_key_adopt adopt, const int64_t *limit, struct rl_key *key) {
    open(ctx, name, REDISMODULE_READ | REDISMODULE_WRITE, key);
    if (RedisModule_KeyType(key->handle) != REDISMODULE_KEYTYPE_STRING) {
        rl_key_close(key);
        return rl_key_open(ctx, name, type, m->now_us, key);
    }
    size_t len;
    const char *bytes = RedisModule_StringDMA(key->handle, &len, REDISMODULE_READ);
    key->type = type;
    key->adopted = true;
    rl_live_load(&key->live, type->kind, NULL, m->now_us);
    return adopt(bytes, len, limit, m->now_us, key->live.state) || wrong_type(key);
}

bool rl_key_open_any(RedisModuleCtx *ctx, RedisModuleString *name, int64_t now_us, struct rl_key *key) {
    open(ctx, name, REDISMODULE_READ, key);
    if (!key->handle) return true;
    key->type = type_of(key->handle);
    if (RedisModule_ModuleTypeGetType(key->handle) == rl_policy_type) {
        struct rl_policy_value *value = RedisModule_ModuleTypeGetValue(key->handle);
        if (!rl_policy_value_ended(value, now_us)) key->policy = value;
        return true;
    }
    return (key->type && load(key, key->type, now_us)) || wrong_type(key);
}

void rl_key_close(struct rl_key *key) {
    rl_live_discard(&key->live);
    RedisModule_CloseKey(key->handle);
}

bool rl_key_put(struct rl_key *key, struct rl_value *had, int64_t now_us) {
    if (!had) {
        RedisModule_ModuleTypeSetValue(key->handle, key->type->handle, key->live.value);
    } else if (key->live.value != had) {
        RedisModule_ModuleTypeReplaceValue(key->handle, key->type->handle, key->live.value, NULL);
        rl_value_free_block(had);
    }
    if (!rl_live_ended(&key->live, now_us)) return true;
    RedisModule_DeleteKey(key->handle);
    return false;
}

/* The expiry that a value asks for is a function of the value, so the key lives at least as long as its old value asked
 * for: looking the expiry up, which costs as much as opening a key, is not needed. */
int64_t rl_key_extend(RedisModuleKey *handle, int64_t before_ms, int64_t expire_at_ms) {
    if (rl_clock_frozen()) {
        RedisModule_SetAbsExpire(handle, REDISMODULE_NO_EXPIRE);
        return REDISMODULE_NO_EXPIRE;
    }
    if (expire_at_ms <= before_ms) return RL_KEEP_EXPIRY;
    RedisModule_SetAbsExpire(handle, expire_at_ms);
    return expire_at_ms;
}

void rl_key_tell(RedisModuleCtx *ctx, RedisModuleString *name, int64_t cost, bool deleted) {
    RedisModule_SignalModifiedKey(ctx, name);
    if (cost != 0) {
        RedisModule_NotifyKeyspaceEvent(ctx, REDISMODULE_NOTIFY_MODULE, cost > 0 ? "rl.granted" : "rl.refunded", name);
    }
    if (deleted) RedisModule_NotifyKeyspaceEvent(ctx, REDISMODULE_NOTIFY_GENERIC, "del", name);
}

static void replicate(struct rl_key *key, const int64_t *limit, int64_t cost, int64_t keep_ms,
                      const struct rl_moment *m, int64_t expire_at_ms) {
    unsigned char effect[RL_EFFECT_MAX + RL_PACKED_MAX]; /* only packed states are adopted */
    size_t len;
    if (key->adopted) { /* a replica has no state to take from */
        len = rl_effect_encode_whole(effect, &key->live, expire_at_ms);
    } else {
        len = rl_effect_encode_take(effect, key->type->kind, limit, cost, keep_ms, m, expire_at_ms);
    }
    RedisModule_Replicate(key->ctx, "RL.APPLY", "sb", key->name, (const char *)effect, len);
}

unsigned rl_key_take(struct rl_key *key, const int64_t *limit, int64_t cost, int64_t keep_ms,
                     const struct rl_moment *m) {
    struct rl_value *had = key->live.value;
    int64_t before_ms = rl_live_expiry_ms(&key->live);
    unsigned told = rl_live_take(&key->live, limit, cost, keep_ms, m);
    bool there = rl_key_put(key, had, m->now_us);
    int64_t expire_at_ms =
        there ? rl_key_extend(key->handle, before_ms, rl_live_expiry_ms(&key->live)) : RL_KEEP_EXPIRY;

    replicate(key, limit, cost, keep_ms, m, expire_at_ms);
    rl_key_tell(key->ctx, key->name, cost, !there);
    return told;
}

void rl_key_reload(struct rl_key *key, int64_t now_us) {
    struct rl_value *value = key->live.value;
    rl_live_discard(&key->live);
    rl_live_load(&key->live, key->type->kind, value, now_us);
}

void rl_key_tell_refused(RedisModuleCtx *ctx, RedisModuleString *name) {
    RedisModule_NotifyKeyspaceEvent(ctx, REDISMODULE_NOTIFY_MODULE, "rl.refused", name);
}

/* Runs the primary's take. What the primary's check allowed is allowed here: anything else is a broken effect. */
static bool replay(struct rl_live *live, const struct rl_effect *e) {
    struct rl_ask ask = {.cost = e->cost, .mode = RL_FORCE};
    if (e->cost < 0) ask = (struct rl_ask){.cost = -e->cost, .mode = RL_REFUND};
    if (!e->kind->take || !rl_live_rescale(live, e->limit)) return false;
    struct rl_verdict v = e->kind->check(live->state, e->limit, &ask, &e->moment);
    if (v.beyond || v.allowed != ask.cost) return false;
    rl_live_take(live, e->limit, e->cost, e->keep_ms, &e->moment);
    return true;
}

static bool receive(struct rl_live *live, const struct rl_effect *e) {
    rl_live_forget(live);
    if (!e->kind->decode(e->state, e->state_len, e->limit, live->state)) return false;
    live->unused_at_us = e->kind->unused_at_us(live->state, e->limit);
    live->totals = e->totals;
    rl_live_store(live, e->limit);
    return true;
}

void rl_key_open_to_apply(RedisModuleCtx *ctx, RedisModuleString *name, const struct rl_type *type, int64_t now_us,
                          struct rl_key *key) {
    open(ctx, name, REDISMODULE_READ | REDISMODULE_WRITE, key);
    key->type = type;
    struct rl_value *had = type_of(key->handle) == type ? RedisModule_ModuleTypeGetValue(key->handle) : NULL;
    rl_live_load(&key->live, type->kind, had, now_us);
}

bool rl_key_apply(RedisModuleCtx *ctx, RedisModuleString *name, const struct rl_effect *e) {
    struct rl_key key;
    rl_key_open_to_apply(ctx, name, rl_type_by_wire(e->kind->wire), e->moment.now_us, &key);
    struct rl_value *had = key.live.value;
    bool good = e->form == RL_EFFECT_TAKE ? replay(&key.live, e) : receive(&key.live, e);
    if (good) {
        bool there = rl_key_put(&key, had, e->moment.now_us);
        if (there && e->expire_at_ms != RL_KEEP_EXPIRY) RedisModule_SetAbsExpire(key.handle, e->expire_at_ms);
        rl_key_tell(ctx, name, e->form == RL_EFFECT_TAKE ? e->cost : 0, !there);
    }
    rl_key_close(&key);
    return good;
}
