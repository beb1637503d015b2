#include "types/quota.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "algo/quota.h"
#include "types/memory.h"

_Static_assert(sizeof(struct rl_quota) <= RL_PACKED_MAX, "the state is kept as it is");
_Static_assert(sizeof(struct rl_quota_limit) <= RL_LIMIT_WORDS * sizeof(int64_t), "the largest limit");

static size_t encoded_size(const void *state) {
    return rl_quota_encoded_size(state);
}

static void encode(const void *state, unsigned char *out) {
    rl_quota_encode(state, out);
}

static bool decode(const unsigned char *bytes, size_t len, const void *limit, void *state) {
    (void)limit;
    return rl_quota_decode(state, bytes, len, &rl_memory);
}

static bool limit_valid(const void *limit) {
    return rl_quota_limit_valid(limit);
}

static void limit_scale(void *scaled, const void *limit, struct rl_scale scale) {
    struct rl_quota_limit *lim = scaled;
    *lim = *(const struct rl_quota_limit *)limit;
    lim->count = rl_scale_count(scale, lim->count, RL_UNITS_MAX);
}

__attribute__((format(printf, 2, 3))) static void append(char out[RL_RULE_SIZE], const char *format, ...) {
    size_t len = strlen(out);
    va_list ap;
    va_start(ap, format);
    vsnprintf(out + len, RL_RULE_SIZE - len, format, ap);
    va_end(ap);
}

static void limit_rule(const void *limit, char out[RL_RULE_SIZE]) {
    const struct rl_quota_limit *lim = limit;
    char zone[RL_ZONE_TEXT_MAX + 1];
    int64_t percents[RL_QUOTA_ALERTS_MAX];
    out[0] = '\0';
    append(out, "%" PRId64 "/%s", lim->count, rl_calendar_unit_name((enum rl_calendar_unit)lim->unit));
    rl_zone_unpack(lim->zone, zone);
    if (lim->zone[0]) append(out, " TZ %s", zone);
    if (lim->anchor != 1) append(out, " ANCHOR %" PRId64, lim->anchor);
    if (lim->history) append(out, " HISTORY %" PRId64, lim->history);
    size_t alerts = rl_quota_alerts(lim, percents);
    for (size_t i = 0; i < alerts; i++) append(out, "%s%" PRId64, i ? "," : " ALERT ", percents[i]);
}

static struct rl_verdict check(const void *state, const void *limit, const struct rl_ask *ask,
                               const struct rl_moment *m) {
    return rl_quota_check(state, limit, &m->period, ask, rl_moment_ms(m));
}

static unsigned take(void *state, const void *limit, int64_t cost, const struct rl_moment *m) {
    rl_quota_reserve(state, limit, rl_moment_ms(m), &rl_memory);
    return rl_quota_take(state, limit, &m->period, cost, rl_moment_ms(m));
}

static bool rescale(void *state, const void *from, const void *to) {
    rl_quota_rescale(state, from, to);
    return true;
}

static bool ahead(const void *state, const void *limit, int64_t now_us) {
    (void)limit;
    return rl_quota_ahead(state, now_us / 1000);
}

static int64_t unused_at_us(const void *state, const void *limit) {
    return rl_quota_ends_at_ms(state, limit) * 1000;
}

static void reset(void *state) {
    rl_quota_reset(state, &rl_memory);
}

static void clone(const void *state, void *copy) {
    rl_quota_clone(copy, state, &rl_memory);
}

static size_t memory(const void *state) {
    return rl_quota_memory(state, &rl_memory);
}

static const struct rl_kind kind = {
    .name = "quota",
    .wire = 'q',
    .limit_words = sizeof(struct rl_quota_limit) / sizeof(int64_t),
    .calendar = true,
    .limit_valid = limit_valid,
    .limit_rule = limit_rule,
    .limit_scale = limit_scale,
    .beyond = RL_BEYOND_UNITS,
    .check = check,
    .take = take,
    .rescale = rescale,
    .ahead = ahead,
    .unused_at_us = unused_at_us,
    .state_size = sizeof(struct rl_quota),
    .encoded_size = encoded_size,
    .encode = encode,
    .decode = decode,
    .reset = reset,
    .clone = clone,
    .memory = memory,
};

static void *rdb_load(RedisModuleIO *io, int encver) {
    return rl_type_rdb_load(io, encver, &kind);
}

struct rl_type rl_quota_type = {.name = "rl-quotas", .kind = &kind, .rdb_load = rdb_load};
