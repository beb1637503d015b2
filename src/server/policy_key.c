#include "server/policy_key.h"

#include "server/clock.h"
#include "server/key.h"
#include "server/reply.h"

static int rules_of(const struct rl_policy_key *key) {
    return key->layout ? key->layout->shape.rules : 0;
}

static void load(struct rl_policy_key *key, int64_t now_us) {
    for (int i = 0; i < rules_of(key); i++) {
        key->sources[i] = -1;
        if (key->had && key->had->layout == key->layout) key->sources[i] = i;
    }
    if (key->had && key->had->layout != key->layout) rl_layout_match(key->had->layout, key->layout, key->sources);
    for (int i = 0; i < rules_of(key); i++) {
        struct rl_value *value = key->sources[i] < 0 ? NULL : key->had->rules[key->sources[i]];
        rl_live_load(&key->rules[i], key->layout->shape.rule[i].kind, value, now_us);
    }
}

/* What the key holds; NULL where that is nothing, or of another type. */
static struct rl_policy_value *value_of(RedisModuleKey *handle) {
    return RedisModule_ModuleTypeGetType(handle) == rl_policy_type ? RedisModule_ModuleTypeGetValue(handle) : NULL;
}

static bool open(RedisModuleCtx *ctx, RedisModuleString *name, int mode, struct rl_layout *layout, int64_t now_us,
                 struct rl_policy_key *key) {
    key->ctx = ctx;
    key->name = name;
    key->handle = RedisModule_OpenKey(ctx, name, mode);
    key->had = key->handle ? value_of(key->handle) : NULL;
    key->layout = layout;
    if (!key->had && key->handle && !rl_key_is_nothing(key->handle, now_us)) {
        RedisModule_CloseKey(key->handle);
        return rl_reply_error(ctx, REDISMODULE_ERRORMSG_WRONGTYPE);
    }
    if (!layout && key->had) key->layout = key->had->layout;
    load(key, now_us);
    return true;
}

bool rl_policy_key_open(RedisModuleCtx *ctx, RedisModuleString *name, struct rl_layout *layout, int64_t now_us,
                        struct rl_policy_key *key) {
    return open(ctx, name, REDISMODULE_READ | REDISMODULE_WRITE, layout, now_us, key);
}

bool rl_policy_key_open_to_read(RedisModuleCtx *ctx, RedisModuleString *name, struct rl_layout *layout, int64_t now_us,
                                struct rl_policy_key *key) {
    return open(ctx, name, REDISMODULE_READ, layout, now_us, key);
}

static void discard(struct rl_policy_key *key) {
    for (int i = 0; i < rules_of(key); i++) rl_live_discard(&key->rules[i]);
}

void rl_policy_key_close(struct rl_policy_key *key) {
    discard(key);
    RedisModule_CloseKey(key->handle);
}

void rl_policy_key_reload(struct rl_policy_key *key, struct rl_layout *layout, int64_t now_us) {
    discard(key);
    key->layout = layout;
    load(key, now_us);
}

/* What the value now stored in the rules asks for, or asked for before. */
static int64_t expiry_ms(const struct rl_policy_key *key) {
    int64_t latest_ms = 0;
    for (int i = 0; i < rules_of(key); i++) {
        int64_t ms = rl_live_expiry_ms(&key->rules[i]);
        if (ms > latest_ms) latest_ms = ms;
    }
    return latest_ms;
}

static unsigned take_share(struct rl_live *live, const struct rl_share *share, int64_t now_us) {
    struct rl_moment m = {.now_us = now_us, .period = share->period};
    struct rl_value *had = live->value;
    unsigned told = rl_live_take(live, share->limit, share->cost, share->keep_ms, &m);
    if (had && live->value != had) rl_value_free_block(had);
    if (rl_live_ended(live, now_us)) {
        rl_value_free(live->value);
        live->value = NULL;
        live->limit = NULL;
    }
    return told;
}

/* A block for the new layout, with the values of the rules; what no rule claimed goes. */
static void replace(struct rl_policy_key *key) {
    struct rl_policy_value *had = key->had, *made = rl_policy_value_make(key->layout);
    if (had) {
        for (int i = 0; i < rules_of(key); i++) {
            if (key->sources[i] >= 0) had->rules[key->sources[i]] = NULL;
        }
        RedisModule_ModuleTypeReplaceValue(key->handle, rl_policy_type, made, NULL);
        rl_policy_value_free(had);
    } else {
        RedisModule_ModuleTypeSetValue(key->handle, rl_policy_type, made);
    }
    key->had = made;
    for (int i = 0; i < rules_of(key); i++) key->sources[i] = i;
}

/* Puts the values of the rules into the key; where all are as if never used it leaves no key. */
static bool put(struct rl_policy_key *key, int64_t now_us) {
    bool ended = true;
    if (!key->had || key->had->layout != key->layout) replace(key);
    for (int i = 0; i < rules_of(key); i++) {
        key->had->rules[i] = key->rules[i].value;
        ended = ended && (!key->rules[i].limit || rl_live_ended(&key->rules[i], now_us));
    }
    if (!ended) return true;
    RedisModule_DeleteKey(key->handle);
    key->had = NULL;
    return false;
}

static bool commit(struct rl_policy_key *key, const struct rl_share *shares, int64_t now_us, unsigned *told) {
    for (int i = 0; i < rules_of(key); i++) {
        told[i] = shares[i].limit ? take_share(&key->rules[i], &shares[i], now_us) : 0;
    }
    return put(key, now_us);
}

static void tell(struct rl_policy_key *key, const struct rl_share *shares, bool deleted) {
    int64_t moved = 0;
    for (int i = 0; i < rules_of(key) && moved == 0; i++) moved = shares[i].limit ? shares[i].cost : 0;
    rl_key_tell(key->ctx, key->name, moved, deleted);
}

void rl_policy_key_take(struct rl_policy_key *key, const struct rl_share *shares, int64_t now_us,
                        unsigned told[RL_RULES_MAX]) {
    int64_t before_ms = expiry_ms(key);
    bool there = commit(key, shares, now_us, told);
    int64_t expire_at_ms = there ? rl_key_extend(key->handle, before_ms, expiry_ms(key)) : RL_KEEP_EXPIRY;

    unsigned char effect[RL_POLICY_EFFECT_MAX];
    size_t len = rl_policy_effect_encode_take(effect, key->layout, shares, now_us, expire_at_ms);
    RedisModule_Replicate(key->ctx, "RL.APPLY", "sb", key->name, (const char *)effect, len);
    tell(key, shares, !there);
}

/* Whether what the primary took can be taken here. */
static bool replayable(struct rl_policy_key *key, const struct rl_policy_effect *e) {
    for (int i = 0; i < rules_of(key); i++) {
        const struct rl_share *share = &e->shares[i];
        struct rl_moment m = {.now_us = e->now_us, .period = share->period};
        struct rl_ask ask = {.cost = share->cost, .mode = RL_FORCE};
        if (!share->limit) continue;
        if (share->cost < 0) ask = (struct rl_ask){.cost = -share->cost, .mode = RL_REFUND};
        if (!rl_live_rescale(&key->rules[i], share->limit)) return false;
        struct rl_verdict v = key->rules[i].kind->check(key->rules[i].state, share->limit, &ask, &m);
        if (v.beyond || v.allowed != ask.cost) return false;
    }
    return true;
}

static bool receive(struct rl_policy_key *key, const struct rl_policy_effect *e) {
    for (int i = 0; i < rules_of(key); i++) {
        struct rl_live *live = &key->rules[i];
        const struct rl_name *state = &e->states[i];
        rl_live_load_all(live, e->shape.rule[i].kind, NULL);
        if (!state->bytes) continue;
        if (!live->kind->decode((const unsigned char *)state->bytes, state->len, e->limits[i], live->state)) {
            while (i-- > 0) {
                if (key->rules[i].value) rl_value_free(key->rules[i].value);
            }
            return false;
        }
        live->unused_at_us = live->kind->unused_at_us(live->state, e->limits[i]);
        live->totals = e->totals[i];
        rl_live_store(live, e->limits[i]);
    }
    return true;
}

bool rl_policy_key_apply(RedisModuleCtx *ctx, RedisModuleString *name, const struct rl_policy_effect *e) {
    struct rl_policy_key key = {.ctx = ctx, .name = name, .layout = rl_layout_hold(&e->shape)};
    unsigned told[RL_RULES_MAX];
    bool whole = e->form == RL_POLICY_EFFECT_WHOLE, there = false;
    key.handle = RedisModule_OpenKey(ctx, name, REDISMODULE_READ | REDISMODULE_WRITE);
    /* Another type can only be what has outlived itself on the primary: it is replaced here too. */
    key.had = whole ? NULL : value_of(key.handle);

    load(&key, e->now_us);
    bool good = whole ? receive(&key, e) : replayable(&key, e);
    if (good) there = whole ? put(&key, 0) : commit(&key, e->shares, e->now_us, told);
    if (good && there && e->expire_at_ms != RL_KEEP_EXPIRY) RedisModule_SetAbsExpire(key.handle, e->expire_at_ms);
    if (good) tell(&key, e->shares, !there);
    if (good || !whole) discard(&key);
    RedisModule_CloseKey(key.handle);
    rl_layout_release(key.layout);
    return good;
}
