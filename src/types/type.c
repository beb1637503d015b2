#include "types/type.h"

#include "types/effect.h"
#include "types/memory.h"
#include "types/value_io.h"

/* Version 1: one value, as types/value_io.h describes it. */
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

static void rdb_save(RedisModuleIO *io, void *value) {
    rl_value_save(io, value);
}

void *rl_type_rdb_load(RedisModuleIO *io, int encver, const struct rl_kind *kind) {
    return encver == ENCVER ? rl_value_load(io, kind) : NULL;
}

static void aof_rewrite(RedisModuleIO *aof, RedisModuleString *key, void *value) {
    struct rl_live live;
    rl_live_load_all(&live, rl_value_limit(value)->kind, value);
    unsigned char *bytes = rl_alloc(rl_effect_whole_max(&live));
    size_t len = rl_effect_encode_whole(bytes, &live, RL_KEEP_EXPIRY);
    RedisModule_EmitAOF(aof, "RL.APPLY", "sb", key, (const char *)bytes, len);
    rl_free(bytes);
}

static size_t mem_usage(RedisModuleKeyOptCtx *ctx, const void *value, size_t samples) {
    (void)ctx;
    (void)samples;
    return rl_value_memory(value);
}

static void *copy(RedisModuleKeyOptCtx *ctx, const void *value) {
    (void)ctx;
    return rl_value_copy(value);
}

static void digest(RedisModuleDigest *md, void *value) {
    rl_value_digest(md, value);
}

static int defrag(RedisModuleDefragCtx *ctx, RedisModuleString *key, void **value) {
    (void)key;
    *value = rl_value_defrag(ctx, *value);
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
