#include "types/type.h"

#include "types/effect.h"
#include "types/memory.h"

/* Version 1: the words of the limit, the three totals, the encoded state. */
#define ENCVER 1

const struct rl_type *rl_type_by_wire(uint8_t wire) {
    for (int i = 0; rl_types[i]; i++) {
        if (rl_types[i]->kind->wire == wire) return rl_types[i];
    }
    return NULL;
}

const struct rl_type *rl_type_by_handle(const RedisModuleType *handle) {
    for (int i = 0; rl_types[i]; i++) {
        if (rl_types[i]->handle == handle) return rl_types[i];
    }
    return NULL;
}

static void unpack(struct rl_live *live, void *value) {
    rl_live_load_all(live, rl_value_limit(value)->kind, value);
}

/* The encoded state in a buffer of its own, which the caller frees. */
static unsigned char *encode_state(const struct rl_live *live, size_t *len) {
    *len = live->kind->encoded_size(live->state);
    unsigned char *bytes = rl_alloc(*len);
    live->kind->encode(live->state, bytes);
    return bytes;
}

static void rdb_save(RedisModuleIO *io, void *value) {
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

void *rl_type_rdb_load(RedisModuleIO *io, int encver, const struct rl_kind *kind) {
    struct rl_live live;
    int64_t limit[RL_LIMIT_WORDS];
    if (encver != ENCVER) return NULL;

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

static void aof_rewrite(RedisModuleIO *aof, RedisModuleString *key, void *value) {
    struct rl_live live;
    unpack(&live, value);
    unsigned char *bytes = rl_alloc(rl_effect_whole_max(&live));
    size_t len = rl_effect_encode_whole(bytes, &live, RL_KEEP_EXPIRY);
    RedisModule_EmitAOF(aof, "RL.APPLY", "sb", key, (const char *)bytes, len);
    rl_free(bytes);
}

static size_t mem_usage(RedisModuleKeyOptCtx *ctx, const void *value, size_t samples) {
    (void)ctx;
    (void)samples;
    struct rl_live live;
    unpack(&live, (void *)(uintptr_t)value);
    return rl_alloc_size(live.value) + (live.kind->memory ? live.kind->memory(live.state) : 0);
}

static void *copy(RedisModuleKeyOptCtx *ctx, const void *value) {
    (void)ctx;
    struct rl_live live;
    unpack(&live, (void *)(uintptr_t)value);
    if (live.kind->clone) {
        struct rl_live original = live;
        live.kind->clone(original.state, live.state);
    }
    live.value = NULL; /* so that it is stored in a block of its own */
    rl_live_store(&live, live.limit->limit);
    return live.value;
}

static void digest(RedisModuleDigest *md, void *value) {
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

static int defrag(RedisModuleDefragCtx *ctx, RedisModuleString *key, void **value) {
    (void)key;
    struct rl_live live;
    void *moved = rl_defrag(ctx, *value);
    if (moved) *value = moved;
    unpack(&live, *value);
    if (live.kind->relocate) {
        live.kind->relocate(live.state, move, ctx);
        rl_live_store(&live, live.limit->limit);
    }
    return 0;
}

bool rl_type_register(RedisModuleCtx *ctx, struct rl_type *type) {
    RedisModuleTypeMethods methods = {
        .version = REDISMODULE_TYPE_METHOD_VERSION,
        .rdb_save = rdb_save,
        .rdb_load = type->rdb_load,
        .aof_rewrite = aof_rewrite,
        .mem_usage2 = mem_usage,
        .copy2 = copy,
        .digest = digest,
        .defrag = defrag,
        .free = rl_value_free,
    };
    type->handle = RedisModule_CreateDataType(ctx, type->name, ENCVER, &methods);
    return type->handle != NULL;
}
