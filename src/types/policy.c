#include "types/policy.h"

#include "types/memory.h"
#include "types/policy_effect.h"
#include "types/type.h"
#include "types/value_io.h"

/* Version 1: the name of the policy, the number of rules, and for each its kind, its name, whether it has a value, and
 * that. */
#define ENCVER 1

RedisModuleType *rl_policy_type;

static int rules_of(const struct rl_policy_value *value) {
    return value->layout->shape.rules;
}

static struct rl_policy_value *make_block(struct rl_layout *layout) {
    struct rl_policy_value *made = rl_alloc(sizeof(*made) + (size_t)layout->shape.rules * sizeof(made->rules[0]));
    made->layout = layout;
    for (int i = 0; i < layout->shape.rules; i++) made->rules[i] = NULL;
    return made;
}

struct rl_policy_value *rl_policy_value_make(struct rl_layout *layout) {
    rl_layout_retain(layout);
    return make_block(layout);
}

void rl_policy_value_free_block(struct rl_policy_value *value) {
    rl_layout_release(value->layout);
    rl_free(value);
}

void rl_policy_value_free(void *value) {
    struct rl_policy_value *v = value;
    for (int i = 0; i < rules_of(v); i++) {
        if (v->rules[i]) rl_value_free(v->rules[i]);
    }
    rl_policy_value_free_block(v);
}

bool rl_policy_value_ended(const struct rl_policy_value *value, int64_t now_us) {
    for (int i = 0; i < rules_of(value); i++) {
        struct rl_live live;
        if (!value->rules[i]) continue;
        rl_live_load_all(&live, value->layout->shape.rule[i].kind, value->rules[i]);
        if (!rl_live_ended(&live, now_us)) return false;
    }
    return true;
}

static void save_name(RedisModuleIO *io, const struct rl_name *name) {
    RedisModule_SaveStringBuffer(io, name->bytes, name->len);
}

static void rdb_save(RedisModuleIO *io, void *value) {
    const struct rl_policy_value *v = value;
    const struct rl_shape *shape = &v->layout->shape;
    save_name(io, &shape->policy);
    RedisModule_SaveUnsigned(io, (uint64_t)shape->rules);
    for (int i = 0; i < shape->rules; i++) {
        RedisModule_SaveUnsigned(io, shape->rule[i].kind->wire);
        save_name(io, &shape->rule[i].name);
    }
    for (int i = 0; i < shape->rules; i++) {
        RedisModule_SaveUnsigned(io, v->rules[i] != NULL);
        if (v->rules[i]) rl_value_save(io, v->rules[i]);
    }
}

/* The name is the server's memory, which the caller frees; NULL where there is none. */
static bool load_name(RedisModuleIO *io, struct rl_name *name) {
    name->bytes = RedisModule_LoadStringBuffer(io, &name->len);
    return name->bytes != NULL;
}

static struct rl_layout *load_layout(RedisModuleIO *io) {
    struct rl_shape shape = {.rules = 0};
    struct rl_layout *layout = NULL;
    if (!load_name(io, &shape.policy)) return NULL;
    uint64_t rules = RedisModule_LoadUnsigned(io);
    bool good = !RedisModule_IsIOError(io) && rules >= 1 && rules <= RL_RULES_MAX;
    while (good && shape.rules < (int)rules) {
        uint64_t wire = RedisModule_LoadUnsigned(io);
        const struct rl_type *type = wire <= UINT8_MAX ? rl_type_by_wire((uint8_t)wire) : NULL;
        good = type && load_name(io, &shape.rule[shape.rules].name);
        if (good) shape.rule[shape.rules++].kind = type->kind;
    }
    if (good && rl_shape_valid(&shape)) layout = rl_layout_hold(&shape);
    RedisModule_Free((void *)(uintptr_t)shape.policy.bytes);
    for (int i = 0; i < shape.rules; i++) RedisModule_Free((void *)(uintptr_t)shape.rule[i].name.bytes);
    return layout;
}

static void *rdb_load(RedisModuleIO *io, int encver) {
    struct rl_layout *layout = encver == ENCVER ? load_layout(io) : NULL;
    if (!layout) return NULL;
    struct rl_policy_value *value = make_block(layout);
    bool good = true;
    for (int i = 0; good && i < rules_of(value); i++) {
        uint64_t there = RedisModule_LoadUnsigned(io);
        good = !RedisModule_IsIOError(io) && there <= 1;
        if (!good || !there) continue;
        value->rules[i] = rl_value_load(io, layout->shape.rule[i].kind);
        good = value->rules[i] != NULL;
    }
    if (good) return value;
    rl_policy_value_free(value);
    return NULL;
}

static void aof_rewrite(RedisModuleIO *aof, RedisModuleString *key, void *value) {
    unsigned char *bytes = rl_alloc(rl_policy_effect_whole_max(value));
    size_t len = rl_policy_effect_encode_whole(bytes, value);
    RedisModule_EmitAOF(aof, "RL.APPLY", "sb", key, (const char *)bytes, len);
    rl_free(bytes);
}

static size_t mem_usage(RedisModuleKeyOptCtx *ctx, const void *value, size_t samples) {
    (void)ctx;
    (void)samples;
    const struct rl_policy_value *v = value;
    size_t size = rl_alloc_size((void *)(uintptr_t)value);
    for (int i = 0; i < rules_of(v); i++) size += v->rules[i] ? rl_value_memory(v->rules[i]) : 0;
    return size;
}

static void *copy(RedisModuleKeyOptCtx *ctx, const void *value) {
    (void)ctx;
    const struct rl_policy_value *v = value;
    struct rl_policy_value *made = rl_policy_value_make(v->layout);
    for (int i = 0; i < rules_of(v); i++) made->rules[i] = v->rules[i] ? rl_value_copy(v->rules[i]) : NULL;
    return made;
}

static void digest_name(RedisModuleDigest *md, const struct rl_name *name) {
    RedisModule_DigestAddStringBuffer(md, name->bytes, name->len);
}

static void digest(RedisModuleDigest *md, void *value) {
    const struct rl_policy_value *v = value;
    digest_name(md, &v->layout->shape.policy);
    RedisModule_DigestEndSequence(md);
    for (int i = 0; i < rules_of(v); i++) {
        digest_name(md, &v->layout->shape.rule[i].name);
        RedisModule_DigestAddLongLong(md, v->layout->shape.rule[i].kind->wire);
        RedisModule_DigestAddLongLong(md, v->rules[i] != NULL);
        RedisModule_DigestEndSequence(md);
        if (v->rules[i]) rl_value_digest(md, v->rules[i]);
    }
}

static int defrag(RedisModuleDefragCtx *ctx, RedisModuleString *key, void **value) {
    (void)key;
    void *moved = rl_defrag(ctx, *value);
    if (moved) *value = moved;
    struct rl_policy_value *v = *value;
    for (int i = 0; i < rules_of(v); i++) {
        if (v->rules[i]) v->rules[i] = rl_value_defrag(ctx, v->rules[i]);
    }
    return 0;
}

bool rl_policy_register(RedisModuleCtx *ctx) {
    /* Version 5 added one field: servers that are older don't look at it. */
    struct {
        RedisModuleTypeMethods methods;
        RedisModuleTypeAuxSaveFunc aux_save2;
    } type = {
        .methods =
            {
                .version = 5,
                .rdb_save = rdb_save,
                .rdb_load = rdb_load,
                .aof_rewrite = aof_rewrite,
                .mem_usage2 = mem_usage,
                .copy2 = copy,
                .digest = digest,
                .defrag = defrag,
                .free = rl_policy_value_free,
                .aux_save = rl_policy_aux.save,
                .aux_load = rl_policy_aux.load,
                .aux_save_triggers = REDISMODULE_AUX_BEFORE_RDB,
#if REDISMODULE_TYPE_METHOD_VERSION >= 5
                .aux_save2 = rl_policy_aux.save_some,
#endif
            },
        .aux_save2 = rl_policy_aux.save_some,
    };
    rl_policy_type = RedisModule_CreateDataType(ctx, "rl-policy", ENCVER, &type.methods);
    return rl_policy_type != NULL;
}
