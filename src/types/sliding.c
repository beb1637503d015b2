#include "types/sliding.h"

#include <inttypes.h>
#include <stdio.h>

#include "algo/notation.h"
#include "algo/sliding.h"
#include "types/memory.h"

_Static_assert(sizeof(struct rl_sliding) <= RL_PACKED_MAX, "the state is kept as it is");

static size_t encoded_size(const void *state) {
    return rl_sliding_encoded_size(state);
}

static void encode(const void *state, unsigned char *out) {
    rl_sliding_encode(state, out);
}

static bool decode(const unsigned char *bytes, size_t len, const void *limit, void *state) {
    return rl_sliding_decode(state, limit, bytes, len, &rl_memory);
}

static bool limit_valid(const void *limit) {
    struct rl_sliding_limit lim = *(const struct rl_sliding_limit *)limit;
    if (lim.count == 0) lim.count = 1; /* scaled to nothing */
    return rl_sliding_limit_valid(&lim);
}

static void limit_scale(void *scaled, const void *limit, struct rl_scale scale) {
    struct rl_sliding_limit *lim = scaled;
    *lim = *(const struct rl_sliding_limit *)limit;
    lim->count = rl_scale_count(scale, lim->count, lim->slots ? RL_UNITS_MAX : RL_SLIDING_EXACT_MAX);
}

static void limit_rule(const void *limit, char out[RL_RULE_SIZE]) {
    const struct rl_sliding_limit *lim = limit;
    size_t len = rl_notation_format_rate(out, RL_RULE_SIZE, lim->count, lim->period_ms);
    if (lim->slots) snprintf(out + len, RL_RULE_SIZE - len, " SLOTS %" PRId64, lim->slots);
}

static struct rl_verdict check(const void *state, const void *limit, const struct rl_ask *ask,
                               const struct rl_moment *m) {
    return rl_sliding_check(state, limit, ask, rl_moment_ms(m));
}

static unsigned take(void *state, const void *limit, int64_t cost, const struct rl_moment *m) {
    rl_sliding_take(state, limit, cost, rl_moment_ms(m), &rl_memory);
    return 0;
}

static bool rescale(void *state, const void *from, const void *to) {
    return rl_sliding_rescale(state, from, to, &rl_memory);
}

static bool alike(const void *from, const void *to) {
    return rl_sliding_limit_alike(from, to);
}

static bool ahead(const void *state, const void *limit, int64_t now_us) {
    (void)limit;
    return rl_sliding_ahead(state, now_us / 1000);
}

static int64_t unused_at_us(const void *state, const void *limit) {
    return rl_sliding_ends_at_ms(state, limit) * 1000;
}

static int64_t written_at_ms(const void *state) {
    return ((const struct rl_sliding *)state)->at_ms;
}

static void reset(void *state) {
    rl_sliding_reset(state, &rl_memory);
}

static void clone(const void *state, void *copy) {
    rl_sliding_clone(copy, state, &rl_memory);
}

static size_t memory(const void *state) {
    return rl_sliding_memory(state, &rl_memory);
}

static void relocate(void *state, void *(*move)(void *ctx, void *block), void *ctx) {
    rl_sliding_relocate(state, move, ctx);
}

static const struct rl_kind kind = {
    .name = "sliding",
    .wire = 's',
    .limit_words = sizeof(struct rl_sliding_limit) / sizeof(int64_t),
    .limit_valid = limit_valid,
    .limit_rule = limit_rule,
    .limit_scale = limit_scale,
    .beyond = RL_BEYOND_UNITS,
    .check = check,
    .take = take,
    .rescale = rescale,
    .alike = alike,
    .ahead = ahead,
    .unused_at_us = unused_at_us,
    .written_at_ms = written_at_ms,
    .state_size = sizeof(struct rl_sliding),
    .encoded_size = encoded_size,
    .encode = encode,
    .decode = decode,
    .reset = reset,
    .clone = clone,
    .memory = memory,
    .relocate = relocate,
};

static void *rdb_load(RedisModuleIO *io, int encver) {
    return rl_type_rdb_load(io, encver, &kind);
}

struct rl_type rl_sliding_type = {.name = "rl-window", .kind = &kind, .rdb_load = rdb_load};
