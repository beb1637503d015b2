#include "types/leases.h"

#include <inttypes.h>
#include <stdio.h>

#include "algo/leases.h"
#include "algo/notation.h"
#include "types/memory.h"

_Static_assert(sizeof(struct rl_leases) <= RL_PACKED_MAX, "the state is kept as it is");

static size_t encoded_size(const void *state) {
    return rl_leases_encoded_size(state);
}

static void encode(const void *state, unsigned char *out) {
    rl_leases_encode(state, out);
}

static bool decode(const unsigned char *bytes, size_t len, const void *limit, void *state) {
    (void)limit;
    return rl_leases_decode(state, bytes, len, &rl_memory);
}

static bool limit_valid(const void *limit) {
    return rl_leases_limit_valid(limit);
}

static void limit_rule(const void *limit, char out[RL_RULE_SIZE]) {
    const struct rl_leases_limit *lim = limit;
    char lease[RL_NOTATION_SIZE];
    rl_notation_format_duration(lease, sizeof(lease), lim->lease_ms);
    snprintf(out, RL_RULE_SIZE, "%" PRId64 " %s", lim->limit, lease);
}

/* For RL.STATE alone: what a new lease of this cost would be told. An empty id is nobody's. */
static struct rl_verdict check(const void *state, const void *limit, const struct rl_ask *ask,
                               const struct rl_moment *m) {
    const struct rl_lease_id nobody = {(const unsigned char *)"", 0};
    struct rl_leases_ask new_lease = {.ids = &nobody, .ids_count = 1, .units = ask->cost, .peek = true};
    return rl_leases_check(state, limit, &new_lease, rl_moment_ms(m), NULL);
}

static bool alike(const void *from, const void *to) {
    (void)from;
    (void)to;
    return true;
}

static bool ahead(const void *state, const void *limit, int64_t now_us) {
    (void)limit;
    return rl_leases_ahead(state, now_us / 1000);
}

static int64_t unused_at_us(const void *state, const void *limit) {
    (void)limit;
    return rl_leases_ends_at_ms(state) * 1000;
}

static int64_t written_at_ms(const void *state) {
    return ((const struct rl_leases *)state)->at_ms;
}

static void reset(void *state) {
    rl_leases_reset(state, &rl_memory);
}

static void clone(const void *state, void *copy) {
    rl_leases_clone(copy, state, &rl_memory);
}

static size_t memory(const void *state) {
    return rl_leases_memory(state, &rl_memory);
}

static void relocate(void *state, void *(*move)(void *ctx, void *block), void *ctx) {
    rl_leases_relocate(state, move, ctx);
}

/* Leases are taken and given back by id, which types/leases_effect.h ships: there is no take of units alone. */
static const struct rl_kind kind = {
    .name = "leases",
    .wire = 'l',
    .limit_words = sizeof(struct rl_leases_limit) / sizeof(int64_t),
    .limit_valid = limit_valid,
    .limit_rule = limit_rule,
    .check = check,
    .alike = alike,
    .ahead = ahead,
    .unused_at_us = unused_at_us,
    .written_at_ms = written_at_ms,
    .state_size = sizeof(struct rl_leases),
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

struct rl_type rl_leases_type = {.name = "rl-leases", .kind = &kind, .rdb_load = rdb_load};
