#include "commands/policy_dump.h"

#include <string.h>

#include "commands/policy_definition.h"
#include "types/bytes.h"
#include "types/memory.h"
#include "types/numbers.h"

/* "RLP", the version, the number of policies and each (name, number of words, words, percent and end of its scale), the
 * number of loads and each (source, percent, end), and a checksum of all that: FNV-1a, against accidents only. */
static const unsigned char head[] = {'R', 'L', 'P', 1};
enum { CHECKSUM = 8 };

static uint64_t checksum(const unsigned char *bytes, size_t len) {
    uint64_t h = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < len; i++) h = (h ^ bytes[i]) * UINT64_C(1099511628211);
    return h;
}

static size_t policy_size(const struct rl_policy *policy) {
    size_t size = policy->named.len + 4 * RL_NUMBER_MAX, len;
    for (int i = 0; i < policy->definition_len; i++) {
        RedisModule_StringPtrLen(policy->definition[i], &len);
        size += len + RL_NUMBER_MAX;
    }
    return size;
}

static unsigned char *put_percent(unsigned char *out, const struct rl_timed_percent *p, int64_t now_ms) {
    bool ended = p->until_ms <= now_ms;
    out = rl_number_put(out, ended ? 100 : p->percent);
    return rl_number_put(out, ended ? 0 : p->until_ms);
}

static unsigned char *put_policy(unsigned char *out, const struct rl_policy *policy, int64_t now_ms) {
    out = rl_bytes_write(out, policy->named.name, policy->named.len);
    out = rl_number_put(out, policy->definition_len);
    for (int i = 0; i < policy->definition_len; i++) {
        size_t len;
        const char *word = RedisModule_StringPtrLen(policy->definition[i], &len);
        out = rl_bytes_write(out, word, len);
    }
    return put_percent(out, &policy->scale, now_ms);
}

static unsigned char *put_load(unsigned char *out, const struct rl_load *load, int64_t now_ms) {
    out = rl_bytes_write(out, load->named.name, load->named.len);
    return put_percent(out, &load->now, now_ms);
}

static unsigned char *dump(struct rl_named **policies, uint32_t policies_len, struct rl_named **loads,
                           uint32_t loads_len, int64_t now_ms, size_t *len) {
    size_t size = sizeof(head) + 2 * RL_NUMBER_MAX + CHECKSUM;
    for (uint32_t i = 0; i < policies_len; i++) size += policy_size((struct rl_policy *)policies[i]);
    for (uint32_t i = 0; i < loads_len; i++) size += loads[i]->len + 3 * RL_NUMBER_MAX;
    unsigned char *bytes = rl_alloc(size), *end = bytes + sizeof(head);
    memcpy(bytes, head, sizeof(head));
    end = rl_number_put(end, policies_len);
    for (uint32_t i = 0; i < policies_len; i++) end = put_policy(end, (struct rl_policy *)policies[i], now_ms);
    end = rl_number_put(end, loads_len);
    for (uint32_t i = 0; i < loads_len; i++) end = put_load(end, (struct rl_load *)loads[i], now_ms);
    rl_bytes_put(end, checksum(bytes, (size_t)(end - bytes)));
    *len = (size_t)(end - bytes) + CHECKSUM;
    return bytes;
}

unsigned char *rl_policy_dump_all(const struct rl_policies *all, int64_t now_ms, size_t *len) {
    struct rl_named **policies = rl_names_sorted(&all->policies), **loads = rl_names_sorted(&all->loads);
    uint32_t alive = 0;
    for (uint32_t i = 0; i < all->loads.count; i++) {
        if (((struct rl_load *)loads[i])->now.until_ms > now_ms) loads[alive++] = loads[i];
    }
    unsigned char *bytes = dump(policies, all->policies.count, loads, alive, now_ms, len);
    rl_free(policies);
    rl_free(loads);
    return bytes;
}

unsigned char *rl_policy_dump_one(const struct rl_policy *policy, const struct rl_load *load, int64_t now_ms,
                                  size_t *len) {
    struct rl_named *p = (struct rl_named *)(uintptr_t)policy, *l = (struct rl_named *)(uintptr_t)load;
    return dump(&p, policy != NULL, &l, load != NULL, now_ms, len);
}

void rl_policy_replicate(RedisModuleCtx *ctx, const struct rl_policy *policy, const struct rl_load *load,
                         int64_t now_ms) {
    size_t len;
    unsigned char *bytes = rl_policy_dump_one(policy, load, now_ms, &len);
    RedisModule_Replicate(ctx, "RL.POLICY", "cbc", "RESTORE", (const char *)bytes, len, "REPLACE");
    rl_free(bytes);
}

static bool get_percent(struct rl_reader *r, struct rl_timed_percent *p) {
    p->percent = rl_number_get(r);
    p->until_ms = rl_number_get(r);
    return !r->broken && p->percent >= 0 && p->percent <= RL_SCALE_PERCENT_MAX && p->until_ms >= 0 &&
           p->until_ms <= 2 * (RL_CLOCK_MAX_US / 1000);
}

/* The words of a definition; NULL where they are broken. */
static RedisModuleString **get_words(struct rl_reader *r, int *words_len) {
    int64_t n = rl_number_get(r);
    if (r->broken || n < 1 || n > RL_DEFINITION_MAX) return NULL;
    RedisModuleString **words = rl_alloc((size_t)n * sizeof(*words));
    int made = 0;
    while (made < n && !r->broken) {
        size_t len;
        const char *word = rl_bytes_read(r, RL_DEFINITION_WORD, &len);
        words[made++] = RedisModule_CreateString(NULL, word, len);
    }
    *words_len = made;
    if (!r->broken) return words;
    while (made > 0) RedisModule_FreeString(NULL, words[--made]);
    rl_free(words);
    return NULL;
}

static bool get_policy(struct rl_reader *r, struct rl_policies *into) {
    size_t len;
    int words_len;
    struct rl_timed_percent scale;
    const char *name = rl_bytes_read(r, RL_NAME_MAX, &len);
    if (r->broken || rl_policies_find(into, name, len)) return false;
    RedisModuleString **words = get_words(r, &words_len);
    struct rl_policy *policy = words ? rl_policy_define_owned(NULL, name, len, words, words_len) : NULL;
    if (!policy) return false;
    rl_policies_put(into, policy);
    if (!get_percent(r, &scale)) return false;
    policy->scale = scale;
    return true;
}

static bool get_load(struct rl_reader *r, struct rl_policies *into) {
    size_t len;
    struct rl_timed_percent load;
    const char *source = rl_bytes_read(r, RL_NAME_MAX, &len);
    return get_percent(r, &load) && len > 0 && !rl_policies_find_load(into, source, len) &&
           rl_policies_put_load(into, source, len, load, 0);
}

static bool get_all(struct rl_reader *r, struct rl_policies *into) {
    int64_t policies = rl_number_get(r);
    bool good = !r->broken && policies >= 0 && policies <= RL_POLICIES_MAX;
    while (good && policies-- > 0) good = get_policy(r, into);
    int64_t loads = good ? rl_number_get(r) : 0;
    good = good && !r->broken && loads >= 0 && loads <= RL_LOADS_MAX;
    while (good && loads-- > 0) good = get_load(r, into);
    return good && r->at == r->end;
}

static const char *conflict(const struct rl_policies *into, struct rl_named **fresh, uint32_t n, bool replace) {
    uint32_t added = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool there = rl_policies_find(into, fresh[i]->name, fresh[i]->len);
        if (there && !replace) return "a policy of the payload exists already: REPLACE would replace it";
        added += !there;
    }
    return into->policies.count + added > RL_POLICIES_MAX ? "there would be more than 4096 policies" : NULL;
}

static void move_all(struct rl_policies *into, struct rl_policies *fresh, bool replace, int64_t now_ms) {
    struct rl_named **policies = rl_names_sorted(&fresh->policies), **loads = rl_names_sorted(&fresh->loads);
    for (uint32_t i = 0, n = fresh->policies.count; i < n; i++) {
        rl_names_remove(&fresh->policies, policies[i]);
        rl_policies_put(into, (struct rl_policy *)policies[i]);
    }
    for (uint32_t i = 0; i < fresh->loads.count; i++) {
        const struct rl_load *load = (const struct rl_load *)loads[i];
        if (!replace && rl_policies_find_load(into, load->named.name, load->named.len)) continue;
        rl_policies_put_load(into, load->named.name, load->named.len, load->now, now_ms);
    }
    rl_free(policies);
    rl_free(loads);
}

const char *rl_policy_restore(struct rl_policies *into, const unsigned char *bytes, size_t len, bool replace,
                              int64_t now_ms) {
    static const char broken[] = "the payload is broken, or not of RL.POLICY DUMP, or of a newer version";
    if (len < sizeof(head) + CHECKSUM || memcmp(bytes, head, sizeof(head)) != 0) return broken;
    size_t body = len - CHECKSUM;
    if (rl_bytes_get(bytes + body) != checksum(bytes, body)) return broken;

    struct rl_policies fresh = {0};
    struct rl_reader r = {.at = bytes + sizeof(head), .end = bytes + body};
    const char *wrong = get_all(&r, &fresh) ? NULL : broken;
    if (!wrong) {
        struct rl_named **policies = rl_names_sorted(&fresh.policies);
        wrong = conflict(into, policies, fresh.policies.count, replace);
        rl_free(policies);
    }
    if (!wrong) move_all(into, &fresh, replace, now_ms);
    rl_policies_clear(&fresh);
    return wrong;
}
