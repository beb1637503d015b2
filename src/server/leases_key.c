#include "server/leases_key.h"

#include "types/leases.h"
#include "types/memory.h"

/* The same on a primary and wherever its effects go. */
static bool perform(struct rl_leases *l, const struct rl_leases_effect *e) {
    int64_t now_ms = e->now_us / 1000;
    switch (e->op) {
    case RL_LEASES_ACQUIRE: return rl_leases_take(l, e->ids, e->ids_count, e->units, e->lease_ms, now_ms, &rl_memory);
    case RL_LEASES_RENEW:
        for (size_t i = 0; i < e->ids_count; i++) rl_leases_renew(l, &e->ids[i], e->lease_ms, now_ms, &rl_memory);
        return true;
    case RL_LEASES_RELEASE:
        for (size_t i = 0; i < e->ids_count; i++) rl_leases_release(l, &e->ids[i], now_ms, &rl_memory);
        return true;
    case RL_LEASES_MOVE: return rl_leases_move(l, now_ms, &rl_memory);
    }
    return false;
}

/* Whether a value was stored, and there says whether the key still is. */
static bool store(struct rl_key *key, const struct rl_leases_effect *e, bool *there) {
    struct rl_value *had = key->live.value;
    struct rl_leases *l = (struct rl_leases *)(void *)key->live.state;
    bool done = perform(l, e);
    if (!done && !had) return false;
    key->live.unused_at_us = rl_leases_ends_at_ms(l) * 1000;
    rl_live_store(&key->live, (const int64_t *)(const void *)&e->limit);
    *there = rl_key_put(key, had, e->now_us);
    return done;
}

static void tell(RedisModuleCtx *ctx, RedisModuleString *name, enum rl_leases_op op, bool there) {
    static const char *const events[] = {
        [RL_LEASES_ACQUIRE] = "rl.granted", [RL_LEASES_RENEW] = "rl.renewed", [RL_LEASES_RELEASE] = "rl.released"};
    if (op != RL_LEASES_MOVE) RedisModule_NotifyKeyspaceEvent(ctx, REDISMODULE_NOTIFY_MODULE, events[op], name);
    rl_key_tell(ctx, name, 0, !there);
}

void rl_leases_key_write(struct rl_key *key, struct rl_leases_effect *e) {
    bool there = false;
    int64_t before_ms = rl_live_expiry_ms(&key->live);
    store(key, e, &there);
    e->expire_at_ms = there ? rl_key_extend(key->handle, before_ms, rl_live_expiry_ms(&key->live)) : RL_KEEP_EXPIRY;

    unsigned char *bytes = rl_alloc(rl_leases_effect_max(e));
    size_t len = rl_leases_effect_encode(bytes, e);
    RedisModule_Replicate(key->ctx, "RL.APPLY", "sb", key->name, (const char *)bytes, len);
    rl_free(bytes);
    tell(key->ctx, key->name, e->op, there);
}

bool rl_leases_key_apply(RedisModuleCtx *ctx, RedisModuleString *name, const struct rl_leases_effect *e) {
    struct rl_key key;
    bool there = false;
    rl_key_open_to_apply(ctx, name, &rl_leases_type, e->now_us, &key);
    bool good = (key.live.value || e->op == RL_LEASES_ACQUIRE) && store(&key, e, &there);
    if (good) {
        if (there && e->expire_at_ms != RL_KEEP_EXPIRY) RedisModule_SetAbsExpire(key.handle, e->expire_at_ms);
        tell(ctx, name, e->op, there);
    }
    rl_key_close(&key);
    return good;
}
