#include "types/value_io.h"

#include "types/memory.h"

static void unpack(struct rl_live *live, const struct rl_value *value) {
    rl_live_load_all(live, rl_value_limit(value)->kind, (struct rl_value *)(uintptr_t)value);
}

/* The encoded state in a buffer of its own, which the caller frees. */
static unsigned char *encode_state(const struct rl_live *live, size_t *len) {
    *len = live->kind->encoded_size(live->state);
    unsigned char *bytes = rl_alloc(*len);
    live->kind->encode(live->state, bytes);
    return bytes;
}

void rl_value_save(RedisModuleIO *io, struct rl_value *value) {
    struct rl_live live;
    unpack(&live, value);
    for (size_t i = 0; i < live.kind->limit_words; i++) RedisModule_SaveSigned(io, live.limit->limit[i]);
    RedisModule_SaveSigned(io, live.totals.granted);
    RedisModule_SaveSigned(io, live.totals.last_at_ms);
    RedisModule_SaveSigned(io, live.totals.keep_ms);

    size_t len;
    unsigned char *bytes = encode_state(&live, &len);
    RedisModule_SaveStringBuffer(io, (const char *)bytes, len);
    rl_free(bytes);
}

struct rl_value *rl_value_load(RedisModuleIO *io, const struct rl_kind *kind) {
    struct rl_live live;
    int64_t limit[RL_LIMIT_WORDS];
    rl_live_load_all(&live, kind, NULL);
    for (size_t i = 0; i < kind->limit_words; i++) limit[i] = RedisModule_LoadSigned(io);
    live.totals.granted = RedisModule_LoadSigned(io);
    live.totals.last_at_ms = RedisModule_LoadSigned(io);
    live.totals.keep_ms = RedisModule_LoadSigned(io);
    if (RedisModule_IsIOError(io) || !kind->limit_valid(limit) || !rl_totals_valid(&live.totals)) return NULL;

    size_t len;
    char *bytes = RedisModule_LoadStringBuffer(io, &len);
    if (!bytes) return NULL;
    bool good = kind->decode((const unsigned char *)bytes, len, limit, live.state);
    RedisModule_Free(bytes);
    if (good) rl_live_store(&live, limit);
    return live.value;
}

size_t rl_value_memory(const struct rl_value *value) {
    struct rl_live live;
    unpack(&live, value);
    return rl_alloc_size(live.value) + (live.kind->memory ? live.kind->memory(live.state) : 0);
}

struct rl_value *rl_value_copy(const struct rl_value *value) {
    struct rl_live live;
    unpack(&live, value);
    if (live.kind->clone) {
        struct rl_live original = live;
        live.kind->clone(original.state, live.state);
    }
    live.value = NULL; /* so that it is stored in a block of its own */
    rl_live_store(&live, live.limit->limit);
    return live.value;
}

void rl_value_digest(RedisModuleDigest *md, struct rl_value *value) {
    struct rl_live live;
    unpack(&live, value);
    for (size_t i = 0; i < live.kind->limit_words; i++) RedisModule_DigestAddLongLong(md, live.limit->limit[i]);
    RedisModule_DigestAddLongLong(md, live.totals.granted);
    RedisModule_DigestAddLongLong(md, live.totals.last_at_ms);
    RedisModule_DigestAddLongLong(md, live.totals.keep_ms);

    size_t len;
    unsigned char *bytes = encode_state(&live, &len);
    RedisModule_DigestAddStringBuffer(md, (const char *)bytes, len);
    RedisModule_DigestEndSequence(md);
    rl_free(bytes);
}

static void *move(void *ctx, void *block) {
    return rl_defrag(ctx, block);
}

struct rl_value *rl_value_defrag(RedisModuleDefragCtx *ctx, struct rl_value *value) {
    struct rl_live live;
    void *moved = rl_defrag(ctx, value);
    if (moved) value = moved;
    unpack(&live, value);
    if (live.kind->relocate) {
        live.kind->relocate(live.state, move, ctx);
        rl_live_store(&live, live.limit->limit);
    }
    return value;
}
