#include "types/fixed.h"

#include <stdio.h>

#include "algo/fixed.h"
#include "algo/notation.h"
#include "types/bytes.h"

enum { WORDS = sizeof(struct rl_fixed) / sizeof(int64_t), SIZE = sizeof(struct rl_fixed) };

static size_t encoded_size(const void *state) {
    (void)state;
    return SIZE;
}

static void encode(const void *state, unsigned char *out) {
    const int64_t *words = state;
    for (int i = 0; i < WORDS; i++) rl_bytes_put(out + 8 * i, (uint64_t)words[i]);
}

static bool decode(const unsigned char *bytes, size_t len, const void *limit, void *state) {
    (void)limit;
    int64_t *words = state;
    if (len != SIZE) return false;
    for (int i = 0; i < WORDS; i++) words[i] = (int64_t)rl_bytes_get(bytes + 8 * i);
    return rl_fixed_valid(state);
}

static bool limit_valid(const void *limit) {
    struct rl_fixed_limit lim = *(const struct rl_fixed_limit *)limit;
    if (lim.count == 0) lim.count = 1; /* scaled to nothing */
    return rl_fixed_limit_valid(&lim);
}

static void limit_scale(void *scaled, const void *limit, struct rl_scale scale) {
    struct rl_fixed_limit *lim = scaled;
    *lim = *(const struct rl_fixed_limit *)limit;
    lim->count = rl_scale_count(scale, lim->count, RL_UNITS_MAX);
}

static void limit_rule(const void *limit, char out[RL_RULE_SIZE]) {
    const struct rl_fixed_limit *lim = limit;
    size_t len = rl_notation_format_rate(out, RL_RULE_SIZE, lim->count, lim->period_ms);
    if (lim->align) snprintf(out + len, RL_RULE_SIZE - len, " ALIGN");
}

static struct rl_verdict check(const void *state, const void *limit, const struct rl_ask *ask,
                               const struct rl_moment *m) {
    return rl_fixed_check(state, limit, ask, rl_moment_ms(m));
}

static unsigned take(void *state, const void *limit, int64_t cost, const struct rl_moment *m) {
    rl_fixed_take(state, limit, cost, rl_moment_ms(m));
    return 0;
}

static bool rescale(void *state, const void *from, const void *to) {
    (void)from;
    rl_fixed_rescale(state, to);
    return true;
}

static bool ahead(const void *state, const void *limit, int64_t now_us) {
    return rl_fixed_ahead(state, limit, now_us / 1000);
}

static int64_t unused_at_us(const void *state, const void *limit) {
    return rl_fixed_ends_at_ms(state, limit) * 1000;
}

static const struct rl_kind kind = {
    .name = "fixed",
    .wire = 'f',
    .limit_words = sizeof(struct rl_fixed_limit) / sizeof(int64_t),
    .limit_valid = limit_valid,
    .limit_rule = limit_rule,
    .limit_scale = limit_scale,
    .beyond = RL_BEYOND_UNITS,
    .check = check,
    .take = take,
    .rescale = rescale,
    .ahead = ahead,
    .unused_at_us = unused_at_us,
    .state_size = SIZE,
    .encoded_size = encoded_size,
    .encode = encode,
    .decode = decode,
};

static void *rdb_load(RedisModuleIO *io, int encver) {
    return rl_type_rdb_load(io, encver, &kind);
}

struct rl_type rl_fixed_type = {.name = "rl-fixwin", .kind = &kind, .rdb_load = rdb_load};
