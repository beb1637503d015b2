/* Limits scaled by two percents: exact, rounded down, and never outside of what can be stored and reckoned with. */
#include "algo/scale.h"

#include "algo/tokenbucket.h"
#include "unit.h"

static uint64_t seed = 20231114;

static void test_shares(void) {
    static const struct {
        int64_t a, b, times, of;
    } rows[] = {
        {100, 100, 1, 1}, {50, 100, 1, 2},           {75, 50, 3, 8},       {0, 50, 0, 1},
        {1, 1, 1, 10000}, {999, 997, 996003, 10000}, {1000, 1000, 100, 1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK(rl_scale_same(rl_scale_of(rows[i].a, rows[i].b), (struct rl_scale){rows[i].times, rows[i].of}));
    }
}

static void test_counts(void) {
    static const struct {
        int64_t percent, count, scaled;
    } rows[] = {
        {50, 5, 2},
        {1, 99, 1},
        {1, 1, 1},
        {0, 1, 0},
        {0, RL_UNITS_MAX, 0},
        {30, 0, 0},
        {1000, RL_UNITS_MAX, RL_UNITS_MAX},
        {99, 100, 99},
        {33, 10, 3},
        {250, 3, 7},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rl_scale scale = rl_scale_of(rows[i].percent, 100);
        CHECK(rl_scale_count(scale, rows[i].count, RL_UNITS_MAX) == rows[i].scaled);
    }
}

static int64_t random_size(int64_t max) {
    int64_t top = max >> rl_unit_between(&seed, 0, 39);
    return rl_unit_between(&seed, 1, top > 0 ? top : 1);
}

/* Any bucket that a command may ask for, scaled by anything: it can be stored, and a state put under it and back owes
 * as much as before, up to the rounding. */
static void test_buckets(void) {
    for (int n = 0; n < 200000; n++) {
        struct rl_tokenbucket_limit lim = {random_size(RL_UNITS_MAX), random_size(RL_PERIOD_MAX_MS) * 1000,
                                           random_size(RL_UNITS_MAX)};
        struct rl_tokenbucket_limit scaled;
        if (!rl_tokenbucket_limit_valid(&lim)) continue;
        struct rl_scale scale = rl_scale_of(rl_unit_between(&seed, 0, 1000), rl_unit_between(&seed, 1, 1000));
        rl_tokenbucket_scale(&scaled, &lim, scale);
        if (!CHECK(rl_tokenbucket_limit_storable(&scaled))) continue;
        if (scale.times > 0) {
            CHECK((rl_u128)scaled.count * (uint64_t)lim.period_us * (uint64_t)scale.of ==
                  (rl_u128)lim.count * (uint64_t)scaled.period_us * (uint64_t)scale.times);
        }

        const struct rl_ask ask = {.cost = rl_unit_between(&seed, 1, lim.burst), .mode = RL_FORCE};
        struct rl_tokenbucket b = {.owed = 0, .at_us = RL_CLOCK_MAX_US / 2};
        if (rl_tokenbucket_check(&b, &lim, &ask, b.at_us).beyond) continue;
        rl_tokenbucket_take(&b, &lim, ask.cost, b.at_us);
        rl_u128 owed = b.owed;
        if (!rl_tokenbucket_rescale(&b, &lim, &scaled)) continue;
        CHECK(rl_tokenbucket_valid(&b, &scaled) && rl_tokenbucket_full_at_us(&b, &scaled) >= b.at_us);
        struct rl_verdict v = rl_tokenbucket_check(&b, &scaled, &ask, b.at_us);
        CHECK(v.limit == scaled.burst && v.reset_ms >= 0);
        CHECK(rl_tokenbucket_rescale(&b, &scaled, &lim) && b.owed == owed);
    }
}

int main(void) {
    test_shares();
    test_counts();
    test_buckets();
    return rl_unit_done("scale");
}
