#include "types/tokenbucket.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "algo/notation.h"
#include "algo/tokenbucket.h"
#include "types/bytes.h"

/* Packed, a bucket is a word and a half: 53 bits of at_us, one that says "wide", and 42 bits of what is owed. What is
 * owed is counted in 1/period_us, and moves in steps of the greatest common divisor of count and period: dividing by
 * it makes almost every bucket fit. Where it does not fit, or isn't a multiple (a remainder of a changed limit), the
 * bucket is wide: the same word, then what is owed in full. */
#define OWED_HIGH_BITS 10
#define WIDE_BIT (UINT64_C(1) << OWED_HIGH_BITS)
#define OWED_PACKED_MAX (UINT64_C(1) << (OWED_HIGH_BITS + 32))
enum { NARROW_SIZE = 12, WIDE_SIZE = 24, ENCODED_SIZE = 24 };

static uint64_t first_word(const unsigned char *packed) {
    uint64_t word;
    memcpy(&word, packed, sizeof(word));
    return word;
}

static size_t packed_size(const unsigned char *packed) {
    return first_word(packed) & WIDE_BIT ? WIDE_SIZE : NARROW_SIZE;
}

static size_t pack(const void *state, int64_t unit, unsigned char packed[RL_PACKED_MAX]) {
    const struct rl_tokenbucket *b = state;
    uint64_t word = (uint64_t)b->at_us << (OWED_HIGH_BITS + 1);
    uint64_t steps = (uint64_t)b->owed / (uint64_t)unit;
    if (b->owed >> 64 || steps >= OWED_PACKED_MAX || steps * (uint64_t)unit != (uint64_t)b->owed) {
        word |= WIDE_BIT;
        memcpy(packed, &word, sizeof(word));
        memcpy(packed + sizeof(word), &b->owed, sizeof(b->owed));
        return WIDE_SIZE;
    }
    uint32_t low = (uint32_t)steps;
    word |= steps >> 32;
    memcpy(packed, &word, sizeof(word));
    memcpy(packed + sizeof(word), &low, sizeof(low));
    return NARROW_SIZE;
}

static void unpack(const unsigned char *packed, int64_t unit, void *state) {
    struct rl_tokenbucket *b = state;
    uint64_t word = first_word(packed);
    b->at_us = (int64_t)(word >> (OWED_HIGH_BITS + 1));
    if (word & WIDE_BIT) {
        memcpy(&b->owed, packed + sizeof(word), sizeof(b->owed));
        return;
    }
    uint32_t low;
    memcpy(&low, packed + sizeof(word), sizeof(low));
    b->owed = (rl_u128)((word & (WIDE_BIT - 1)) << 32 | low) * (uint64_t)unit;
}

static size_t encoded_size(const void *state) {
    (void)state;
    return ENCODED_SIZE;
}

static void encode(const void *state, unsigned char *out) {
    const struct rl_tokenbucket *b = state;
    rl_bytes_put(out, (uint64_t)b->at_us);
    rl_bytes_put(out + 8, (uint64_t)b->owed);
    rl_bytes_put(out + 16, (uint64_t)(b->owed >> 64));
}

static bool decode(const unsigned char *bytes, size_t len, const void *limit, void *state) {
    struct rl_tokenbucket *b = state;
    if (len != ENCODED_SIZE) return false;
    b->at_us = (int64_t)rl_bytes_get(bytes);
    b->owed = (rl_u128)rl_bytes_get(bytes + 16) << 64 | rl_bytes_get(bytes + 8);
    return rl_tokenbucket_valid(b, limit);
}

static bool limit_valid(const void *limit) {
    return rl_tokenbucket_limit_storable(limit);
}

static void limit_scale(void *scaled, const void *limit, struct rl_scale scale) {
    rl_tokenbucket_scale(scaled, limit, scale);
}

static int64_t limit_unit(const void *limit) {
    const struct rl_tokenbucket_limit *lim = limit;
    int64_t a = lim->period_us, b = lim->count;
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void limit_rule(const void *limit, char out[RL_RULE_SIZE]) {
    const struct rl_tokenbucket_limit *lim = limit;
    size_t len = rl_notation_format_rate(out, RL_RULE_SIZE, lim->count, lim->period_us / 1000);
    if (lim->burst != lim->count) snprintf(out + len, RL_RULE_SIZE - len, " BURST %" PRId64, lim->burst);
}

static struct rl_verdict check(const void *state, const void *limit, const struct rl_ask *ask,
                               const struct rl_moment *m) {
    return rl_tokenbucket_check(state, limit, ask, m->now_us);
}

static unsigned take(void *state, const void *limit, int64_t cost, const struct rl_moment *m) {
    rl_tokenbucket_take(state, limit, cost, m->now_us);
    return 0;
}

static bool rescale(void *state, const void *from, const void *to) {
    return rl_tokenbucket_rescale(state, from, to);
}

static bool ahead(const void *state, const void *limit, int64_t now_us) {
    (void)limit;
    return ((const struct rl_tokenbucket *)state)->at_us > now_us;
}

static int64_t unused_at_us(const void *state, const void *limit) {
    return rl_tokenbucket_full_at_us(state, limit);
}

static int64_t written_at_ms(const void *state) {
    return ((const struct rl_tokenbucket *)state)->at_us / 1000;
}

static const struct rl_kind kind = {
    .name = "tokenbucket",
    .wire = 'b',
    .limit_words = sizeof(struct rl_tokenbucket_limit) / sizeof(int64_t),
    .limit_valid = limit_valid,
    .limit_unit = limit_unit,
    .limit_rule = limit_rule,
    .limit_scale = limit_scale,
    .beyond = "what is owed would go above 1000000000000000 units, or take more than ten years to come back",
    .check = check,
    .take = take,
    .rescale = rescale,
    .ahead = ahead,
    .unused_at_us = unused_at_us,
    .written_at_ms = written_at_ms,
    .packed_size = packed_size,
    .pack = pack,
    .unpack = unpack,
    .encoded_size = encoded_size,
    .encode = encode,
    .decode = decode,
};

static void *rdb_load(RedisModuleIO *io, int encver) {
    return rl_type_rdb_load(io, encver, &kind);
}

struct rl_type rl_tokenbucket_type = {.name = "rl-bucket", .kind = &kind, .rdb_load = rdb_load};
