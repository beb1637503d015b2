/* The token bucket: tables of instants, the law over every pair of instants under random traffic, and a naive twin. */
#include "algo/tokenbucket.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#define US INT64_C(1)
#define MS (1000 * US)
#define S (1000 * MS)
#define DAY (86400 * S)
#define DAY_MS INT64_C(86400000)
#define E12 RL_UNITS_MAX
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static uint64_t seed;

/* ---- a key that holds a bucket, as the commands treat it */

struct key {
    struct rl_tokenbucket b;
    struct rl_tokenbucket_limit lim; /* as of the last write; count 0: there is no key */
};

static bool same_limit(const struct rl_tokenbucket_limit *a, const struct rl_tokenbucket_limit *b) {
    return a->count == b->count && a->period_us == b->period_us && a->burst == b->burst;
}

/* One call: what has outlived itself is absent; a new limit counts from the last write; a grant is taken, a refusal
 * changes nothing but for the repair of a state that is ahead of the clock. */
static struct rl_verdict call(struct key *k, const struct rl_tokenbucket_limit *lim, const struct rl_ask *ask,
                              int64_t now_us) {
    if (k->lim.count && rl_tokenbucket_full_at_us(&k->b, &k->lim) <= now_us) *k = (struct key){0};
    struct rl_tokenbucket b = k->b;
    if (k->lim.count && !same_limit(&k->lim, lim) && !rl_tokenbucket_rescale(&b, &k->lim, lim))
        return (struct rl_verdict){.beyond = true};
    struct rl_verdict v = rl_tokenbucket_check(&b, lim, ask, now_us);
    if (v.beyond || ask->peek) return v;
    if (v.allowed > 0) {
        rl_tokenbucket_take(&b, lim, rl_verdict_delta(&v, ask), now_us);
        k->b = b;
        k->lim = *lim;
        if (rl_tokenbucket_full_at_us(&b, lim) <= now_us) *k = (struct key){0};
    } else if (k->lim.count && k->b.at_us > now_us) {
        rl_tokenbucket_take(&k->b, &k->lim, 0, now_us);
    }
    return v;
}

/* The harness names the first failures only, and so do we. */
static bool telling(void) {
    return rl_unit_failed <= 20;
}

static void tell_limit(const struct rl_tokenbucket_limit *lim) {
    printf("  limit %" PRId64 "/%" PRId64 "us burst %" PRId64 "\n", lim->count, lim->period_us, lim->burst);
}

static void tell(const char *who, const struct rl_verdict *v) {
    printf("  %s: allowed %" PRId64 ", limit %" PRId64 ", remaining %" PRId64 ", wait %" PRId64 ", reset %" PRId64
           "%s\n",
           who, v->allowed, v->limit, v->remaining, v->wait_ms, v->reset_ms, v->beyond ? ", beyond" : "");
}

static bool same_verdict(const struct rl_verdict *a, const struct rl_verdict *b) {
    if (a->beyond || b->beyond) return a->beyond == b->beyond;
    return a->allowed == b->allowed && a->limit == b->limit && a->remaining == b->remaining &&
           a->wait_ms == b->wait_ms && a->reset_ms == b->reset_ms;
}

/* ---- tables of instants */

enum how { TAKE, FORCE, UPTO, REFUND, PEEK, PEEK_UPTO };
#define UNDER(limit) ((limit) << 3) /* which of the table's limits, the first where left out */

static struct rl_ask ask_of(enum how how, int64_t cost) {
    static const enum rl_mode modes[] = {RL_TAKE, RL_FORCE, RL_UPTO, RL_REFUND, RL_TAKE, RL_UPTO};
    return (struct rl_ask){.cost = cost, .mode = modes[how], .peek = how == PEEK || how == PEEK_UPTO};
}

enum { BEYOND = -2 }; /* in the column of allowed */

struct row {
    int64_t at_us;
    int how;
    int64_t cost;
    int64_t allowed, remaining, wait_ms, reset_ms;
};

static void run_rows(const char *name, const struct rl_tokenbucket_limit *limits, const struct row *rows,
                     size_t count) {
    struct key k = {0};
    for (size_t i = 0; i < count; i++) {
        const struct row *r = &rows[i];
        const struct rl_tokenbucket_limit *lim = &limits[r->how >> 3];
        struct rl_ask ask = ask_of((enum how)(r->how & 7), r->cost);
        struct rl_verdict want = {.allowed = r->allowed,
                                  .limit = lim->burst,
                                  .remaining = r->remaining,
                                  .wait_ms = r->wait_ms,
                                  .reset_ms = r->reset_ms,
                                  .beyond = r->allowed == BEYOND};
        CHECK(rl_tokenbucket_limit_valid(lim));
        struct rl_verdict got = call(&k, lim, &ask, r->at_us);
        bool held = CHECK(same_verdict(&got, &want));
        held = CHECK(k.lim.count == 0 || rl_tokenbucket_valid(&k.b, &k.lim)) && held;
        if (held || !telling()) continue;
        printf("  in \"%s\", row %zu\n", name, i + 1);
        tell("got", &got);
        tell("want", &want);
    }
}

#define LIMITS(...) ((const struct rl_tokenbucket_limit[]){__VA_ARGS__})
#define RUN(name, limits, rows) run_rows(name, limits, rows, COUNT_OF(rows))

static void test_one_a_second(void) {
    /* clang-format off */
    static const struct row rows[] = {
        /* at               how   cost allowed remaining wait      reset */
        {100 * S,           TAKE, 6,   0,      5,        RL_NEVER, 0},    /* larger than the bucket */
        {100 * S,           TAKE, E12, 0,      5,        RL_NEVER, 0},    /* by far */
        {100 * S,           TAKE, 5,   5,      0,        0,        5000}, /* all at once */
        {100 * S,           TAKE, 1,   0,      0,        1000,     5000}, /* empty */
        {100 * S,           TAKE, 6,   0,      0,        RL_NEVER, 5000}, /* still larger than the bucket */
        {90 * S,            TAKE, 1,   0,      0,        1000,     5000}, /* clock stepped back */
        {91 * S,            TAKE, 1,   1,      0,        0,        5000}, /* and not locked until 101 */
        {91 * S + 500 * MS, TAKE, 1,   0,      0,        500,      4500}, /* half a unit is none */
        {93 * S,            TAKE, 3,   0,      2,        1000,     3000}, /* the wait is for this cost */
        {93 * S,            TAKE, 2,   2,      0,        0,        5000}, /* two back after two seconds */
        {98 * S - 1 * US,   PEEK, 5,   0,      4,        1,        1},    /* a microsecond rounds up */
        {98 * S,            TAKE, 5,   5,      0,        0,        5000}, /* all five back */
        {200 * S,           TAKE, 1,   1,      4,        0,        1000}, /* idle for long: never more than five */
    };
    /* clang-format on */
    RUN("five units, one back each second", LIMITS({1, S, 5}), rows);
    RUN("the same rate in other words", LIMITS({60, 60 * S, 5}), rows);
}

static void test_wait(void) {
    /* clang-format off */
    static const struct row rows[] = {
        /* at                 how   cost allowed remaining wait reset */
        {1 * S,               TAKE, 1,   1,      0,        0,   334},
        {1 * S,               TAKE, 1,   0,      0,        334, 334},
        {1 * S + 1 * US,      TAKE, 1,   0,      0,        334, 334},
        {1 * S + 333 * US,    TAKE, 1,   0,      0,        334, 334},  /* 333 ms and a third of a microsecond left */
        {1 * S + 334 * US,    TAKE, 1,   0,      0,        333, 333},
        {1 * S + 333 * MS,    TAKE, 1,   0,      0,        1,   1},
        {1 * S + 333333 * US, TAKE, 1,   0,      0,        1,   1},    /* a third of a microsecond early */
        {1 * S + 333334 * US, TAKE, 1,   1,      0,        0,   334},
    };
    /* clang-format on */
    RUN("wait is exact and rounded up", LIMITS({3, S, 1}), rows);
}

static void test_step_back(void) {
    /* clang-format off */
    static const struct row rows[] = {
        /* at       how     cost allowed remaining wait  reset */
        {1000 * S,  TAKE,   4,   4,      1,        0,    4000},
        {10 * S,    PEEK,   1,   1,      1,        0,    4000}, /* a peek repairs nothing */
        {1000 * S,  PEEK,   1,   1,      1,        0,    4000}, /* so that this is as before */
        {10 * S,    TAKE,   1,   1,      0,        0,    5000}, /* a grant moves the state to the clock */
        {11 * S,    TAKE,   1,   1,      0,        0,    5000}, /* from where it refills */
        {0,         TAKE,   1,   0,      0,        1000, 5000}, /* a refusal does so too */
        {999 * MS,  TAKE,   1,   0,      0,        1,    4001},
        {1000 * MS, UPTO,   5,   1,      0,        0,    5000},
        {500 * MS,  FORCE,  3,   3,      -3,       0,    8000}, /* what is used is kept */
        {500 * MS,  REFUND, 9,   8,      5,        0,    0},
    };
    /* clang-format on */
    RUN("clock stepped back", LIMITS({1, S, 5}), rows);
}

static void test_force(void) {
    /* clang-format off */
    static const struct row rows[] = {
        /* at               how    cost allowed remaining wait      reset */
        {10 * S,            FORCE, 8,   8,      -3,       0,        8000}, /* into debt */
        {10 * S,            TAKE,  1,   0,      -3,       4000,     8000},
        {10 * S,            TAKE,  6,   0,      -3,       RL_NEVER, 8000},
        {10 * S + 500 * MS, TAKE,  1,   0,      -3,       3500,     7500}, /* -2.5 rounds down */
        {10 * S + 1 * US,   PEEK,  1,   0,      -3,       4000,     8000},
        {12 * S,            PEEK,  1,   0,      -1,       2000,     6000},
        {13 * S - 1 * US,   PEEK,  1,   0,      -1,       1001,     5001},
        {13 * S,            PEEK,  1,   0,      0,        1000,     5000}, /* paid back, and empty */
        {13 * S,            FORCE, 1,   1,      -1,       0,        6000}, /* and once more */
        {14 * S,            UPTO,  9,   0,      0,        1000,     5000},
        {15 * S,            TAKE,  1,   1,      0,        0,        5000},
        {20 * S,            FORCE, 2,   2,      3,        0,        2000}, /* within the limit it is a plain take */
    };
    /* clang-format on */
    RUN("debt by FORCE, and paying it back", LIMITS({1, S, 5}), rows);
}

static void test_upto(void) {
    /* clang-format off */
    static const struct row rows[] = {
        /* at               how        cost allowed remaining wait  reset */
        {10 * S,            UPTO,      3,   3,      2,        0,    3000},
        {10 * S,            PEEK_UPTO, 10,  2,      2,        0,    3000},
        {10 * S,            UPTO,      10,  2,      0,        0,    5000},
        {10 * S,            UPTO,      10,  0,      0,        1000, 5000}, /* the wait is for one unit */
        {10 * S + 999 * MS, UPTO,      10,  0,      0,        1,    4001},
        {12 * S + 500 * MS, UPTO,      10,  2,      0,        0,    4500}, /* the half is carried */
        {13 * S,            UPTO,      1,   1,      0,        0,    5000},
        {13 * S,            FORCE,     2,   2,      -2,       0,    7000},
        {13 * S,            UPTO,      4,   0,      -2,       3000, 7000}, /* nothing fits into a debt */
        {100 * S,           UPTO,      E12, 5,      0,        0,    5000},
    };
    /* clang-format on */
    RUN("UPTO", LIMITS({1, S, 5}), rows);
}

static void test_refund(void) {
    /* clang-format off */
    static const struct row rows[] = {
        /* at               how     cost allowed remaining wait reset */
        {10 * S,            REFUND, 1,   0,      5,        0,   0},    /* a missing key */
        {10 * S,            TAKE,   4,   4,      1,        0,   4000},
        {10 * S,            REFUND, 1,   1,      2,        0,   3000},
        {10 * S + 500 * MS, REFUND, 10,  2,      4,        0,   500},  /* of two and a half */
        {10 * S + 500 * MS, REFUND, 1,   0,      4,        0,   500},
        {10 * S + 500 * MS, PEEK,   5,   0,      4,        500, 500},
        {11 * S,            REFUND, E12, 0,      5,        0,   0},
        {11 * S,            FORCE,  9,   9,      -4,       0,   9000},
        {11 * S,            REFUND, 2,   2,      -2,       0,   7000}, /* out of a debt */
        {11 * S,            REFUND, E12, 7,      5,        0,   0},
        {11 * S,            TAKE,   5,   5,      0,        0,   5000},
    };
    /* clang-format on */
    RUN("REFUND of what is used", LIMITS({1, S, 5}), rows);
}

static void test_peek(void) {
    /* clang-format off */
    static const struct row rows[] = {
        /* at    how        cost allowed remaining wait      reset */
        {10 * S, PEEK,      5,   5,      5,        0,        0},
        {10 * S, PEEK,      6,   0,      5,        RL_NEVER, 0},
        {10 * S, TAKE,      3,   3,      2,        0,        3000},
        {10 * S, PEEK,      2,   2,      2,        0,        3000},
        {10 * S, PEEK,      3,   0,      2,        1000,     3000},
        {10 * S, PEEK_UPTO, 3,   2,      2,        0,        3000},
        {10 * S, TAKE,      2,   2,      0,        0,        5000},
        {10 * S, PEEK_UPTO, 3,   0,      0,        1000,     5000},
    };
    /* clang-format on */
    RUN("PEEK leaves remaining", LIMITS({1, S, 5}), rows);
}

static void test_changed_burst(void) {
    /* clang-format off */
    static const struct row rows[] = {
        /* at               how                cost allowed remaining wait      reset */
        {10 * S,            TAKE,              5,   5,      0,        0,        5000},
        {10 * S,            PEEK | UNDER(1),   1,   1,      5,        0,        5000},  /* raised: more at once */
        {10 * S,            TAKE | UNDER(1),   5,   5,      0,        0,        10000},
        {10 * S,            TAKE,              1,   0,      -5,       6000,     10000}, /* lowered: below zero */
        {10 * S,            TAKE | UNDER(2),   1,   0,      -8,       9000,     10000},
        {10 * S,            TAKE | UNDER(2),   3,   0,      -8,       RL_NEVER, 10000},
        {10 * S,            TAKE | UNDER(1),   1,   0,      0,        1000,     10000}, /* refusals changed nothing */
        {15 * S + 500 * MS, TAKE,              1,   0,      0,        500,      4500},
        {15 * S + 500 * MS, TAKE | UNDER(2),   1,   0,      -3,       3500,     4500},  /* -2.5 rounds down */
        {19 * S,            TAKE | UNDER(2),   1,   1,      0,        0,        2000},  /* time has paid it back */
        {19 * S,            PEEK | UNDER(1),   1,   1,      8,        0,        2000},
        {19 * S,            FORCE | UNDER(2),  1,   1,      -1,       0,        3000},
        {19 * S,            REFUND | UNDER(1), 9,   3,      10,       0,        0},
    };
    /* clang-format on */
    RUN("another burst on a live key", LIMITS({1, S, 5}, {1, S, 10}, {1, S, 2}), rows);
}

static void test_changed_rate(void) {
    /* clang-format off */
    static const struct row rows[] = {
        /* at               how              cost allowed remaining wait  reset */
        {10 * S,            TAKE,            5,   5,      0,        0,    5000},
        {12 * S,            PEEK | UNDER(1), 1,   1,      4,        0,    500},   /* as if set at the last write */
        {12 * S,            PEEK | UNDER(2), 1,   0,      0,        8000, 48000}, /* or one in ten seconds */
        {12 * S,            PEEK,            1,   1,      2,        0,    3000},  /* a peek changes no limit */
        {12 * S,            TAKE | UNDER(1), 1,   1,      3,        0,    1000},
        {12 * S,            PEEK,            1,   1,      3,        0,    2000},
        {12 * S,            TAKE | UNDER(2), 3,   3,      0,        0,    50000},
        {15 * S,            TAKE | UNDER(2), 1,   0,      0,        7000, 47000},
        {15 * S,            TAKE | UNDER(1), 5,   5,      0,        0,    2500},  /* all paid back since 12 s */
        {17 * S + 500 * MS, TAKE | UNDER(2), 1,   1,      4,        0,    10000}, /* outlived its own limit */
    };
    /* clang-format on */
    RUN("another rate on a live key", LIMITS({1, S, 5}, {2, S, 5}, {1, 10 * S, 5}), rows);
}

static void test_numbers_of_the_design(void) {
    /* clang-format off */
    static const struct row fast[] = {
        /* at             how   cost       allowed    remaining  wait  reset */
        {10 * S,          TAKE, 300000000, 300000000, 0,         0,    1000},
        {10 * S,          TAKE, 1,         0,         0,         1,    1000},
        {10 * S + 1 * US, PEEK, 1,         1,         300,       0,    1000}, /* 300 a microsecond */
        {10 * S + 1 * US, TAKE, 301,       0,         300,       1,    1000},
        {10 * S + 1 * US, UPTO, E12,       300,       0,         0,    1000},
        {10 * S + 2 * US, TAKE, 300,       300,       0,         0,    1000},
        {10 * S + 2 * US, TAKE, 300000000, 0,         0,         1000, 1000},
        {11 * S + 1 * US, TAKE, 300000000, 0,         299999700, 1,    1},
        {11 * S + 2 * US, TAKE, 300000000, 300000000, 0,         0,    1000},
    };
    /* clang-format on */
    RUN("300000000/s is that", LIMITS({300000000, S, 300000000}), fast);
    /* clang-format off */
    static const struct row sevens[] = {
        /* at                 how   cost allowed remaining wait reset */
        {10 * S,              TAKE, 7,   7,      0,        0,   250},
        {10 * S,              TAKE, 1,   0,      0,        36,  250},
        {10 * S,              TAKE, 6,   0,      0,        215, 250},
        {10 * S + 35 * MS,    TAKE, 1,   0,      0,        1,   215},
        {10 * S + 35714 * US, TAKE, 1,   0,      0,        1,   215},
        {10 * S + 35715 * US, TAKE, 1,   1,      0,        0,   250},
        {10 * S + 71428 * US, TAKE, 1,   0,      0,        1,   215},
        {10 * S + 71429 * US, TAKE, 1,   1,      0,        0,   250},
        {10 * S + 250 * MS,   TAKE, 5,   5,      0,        0,   250},
    };
    /* clang-format on */
    RUN("7/250ms", LIMITS({7, 250 * MS, 7}), sevens);
    /* clang-format off */
    static const struct row gap[] = {
        /* at       how   cost allowed remaining wait reset */
        {0,         TAKE, 1,   1,      0,        0,   10000},
        {9999 * MS, TAKE, 1,   0,      0,        1,   1},
        {10 * S,    TAKE, 1,   1,      0,        0,   10000},
    };
    /* clang-format on */
    RUN("a gap of ten seconds", LIMITS({1, 10 * S, 1}), gap);
}

static void test_extremes(void) {
    /* clang-format off */
    static const struct row most[] = {
        /* at                 how    cost     allowed     remaining         wait reset */
        {10 * S,              TAKE,  E12 - 1, E12 - 1,    1,                0,   1},
        {10 * S,              TAKE,  1,       1,          0,                0,   1},
        {10 * S,              TAKE,  E12,     0,          0,                1,   1},
        {10 * S + 1 * US,     UPTO,  E12,     1000000000, 0,                0,   1},
        {10 * S + 1 * US,     FORCE, E12,     E12,        -E12,             0,   2},
        {10 * S + 1 * US,     TAKE,  E12,     0,          -E12,             2,   2},
        {10 * S + 2000 * US,  TAKE,  E12,     0,          E12 - 1000000000, 1,   1},
        {10 * S + 2001 * US,  TAKE,  E12,     E12,        0,                0,   1},
        {RL_CLOCK_MAX_US - 1, TAKE,  E12,     E12,        0,                0,   1},
        {0,                   TAKE,  1,       0,          0,                1,   1},
        {1 * MS,              TAKE,  E12,     E12,        0,                0,   1},
    };
    /* clang-format on */
    RUN("10^12/ms", LIMITS({E12, MS, E12}), most);
    /* clang-format off */
    static const struct row least[] = {
        /* at                       how    cost allowed remaining wait              reset */
        {10 * S,                    TAKE,  10,  0,      9,        RL_NEVER,         0},
        {10 * S,                    TAKE,  9,   9,      0,        0,                9 * 366 * DAY_MS},
        {10 * S,                    TAKE,  1,   0,      0,        366 * DAY_MS,     9 * 366 * DAY_MS},
        {10 * S,                    TAKE,  9,   0,      0,        9 * 366 * DAY_MS, 9 * 366 * DAY_MS},
        {10 * S,                    FORCE, 1,   BEYOND, 0,        0,                0}, /* over ten years */
        {10 * S + 1 * US,           TAKE,  1,   0,      0,        366 * DAY_MS,     9 * 366 * DAY_MS},
        {10 * S + 6 * DAY,          FORCE, 1,   BEYOND, 0,        0,                0},
        {10 * S + 7 * DAY - 1 * US, FORCE, 1,   BEYOND, 0,        0,                0},
        {10 * S + 7 * DAY,          FORCE, 1,   1,      -1,       0,                3653 * DAY_MS}, /* just ten years */
        {10 * S + 366 * DAY,        TAKE,  1,   0,      0,        366 * DAY_MS,     9 * 366 * DAY_MS},
        {10 * S + 366 * DAY,        FORCE, E12, BEYOND, 0,        0,                0},
    };
    /* clang-format on */
    RUN("1/366d", LIMITS({1, 366 * DAY, 9}), least);
    /* clang-format off */
    static const struct row slow_many[] = {
        /* at              how   cost allowed remaining wait reset */
        {10 * S,           TAKE, E12, E12,    0,        0,   366 * DAY_MS},
        {10 * S,           TAKE, 1,   0,      0,        1,   366 * DAY_MS},
        {10 * S + 31 * US, TAKE, 1,   0,      0,        1,   366 * DAY_MS}, /* one in 31.6224 us */
        {10 * S + 32 * US, TAKE, 1,   1,      0,        0,   366 * DAY_MS},
    };
    /* clang-format on */
    RUN("10^12/366d", LIMITS({E12, 366 * DAY, E12}), slow_many);
}

/* ---- the edges of single functions */

static void test_fraction(void) {
    /* A third of a unit a second, asked every millisecond: one at every third second, to the microsecond. */
    struct rl_tokenbucket_limit lim = {1, 3 * S, 1};
    struct rl_ask one = {.cost = 1, .mode = RL_TAKE};
    struct key k = {0};
    bool on_time = true;
    for (int64_t ms = 0; ms <= 60000; ms++) {
        struct rl_verdict v = call(&k, &lim, &one, 100 * S + ms * MS);
        on_time = on_time && v.allowed == (ms % 3000 == 0) && v.wait_ms == (3000 - ms % 3000) % 3000;
    }
    CHECK(on_time);

    /* Three a second: no millisecond is a whole number of units, and after 100 s not one is missing. */
    lim = (struct rl_tokenbucket_limit){3, S, 2};
    k = (struct key){0};
    int64_t granted = 0;
    for (int64_t ms = 0; ms <= 100000; ms++) granted += call(&k, &lim, &one, ms * MS).allowed;
    CHECK(granted == 2 + 300);

    /* Every grant moves the state, and carries the rest: seven in 13 ms, taken one by one each microsecond. */
    lim = (struct rl_tokenbucket_limit){7, 13 * MS, 2};
    k = (struct key){0};
    granted = 0;
    for (int64_t us = 0; us <= 13 * 1000 * 20; us++) granted += call(&k, &lim, &one, us).allowed;
    CHECK(granted == 2 + 7 * 20);
}

static void test_limit_valid(void) {
    static const struct {
        struct rl_tokenbucket_limit lim;
        bool valid;
    } rows[] = {
        {{1, MS, 1}, true},
        {{0, S, 1}, false},
        {{1, 0, 1}, false},
        {{1, S, 0}, false},
        {{-1, S, 1}, false},
        {{1, -S, 1}, false},
        {{1, S, -1}, false},
        {{INT64_MIN, S, 1}, false},
        {{1, INT64_MIN, 1}, false},
        {{1, S, INT64_MIN}, false},
        {{INT64_MAX, S, 1}, false},
        {{1, INT64_MAX, 1}, false},
        {{1, S, INT64_MAX}, false},
        {{INT64_MAX, INT64_MAX, INT64_MAX}, false},
        {{E12, MS, E12}, true},
        {{E12 + 1, MS, E12}, false},
        {{E12, MS, E12 + 1}, false},
        {{E12, 366 * DAY, E12}, true},
        {{E12, 366 * DAY + 1, E12}, false},
        {{1, 366 * DAY, 1}, true},
        {{1, 366 * DAY + 1, 1}, false},
        /* from empty to full within ten years, of 3653 days */
        {{1, 366 * DAY, 9}, true},
        {{1, 366 * DAY, 10}, false},
        {{1, DAY, 3653}, true},
        {{1, DAY, 3654}, false},
        {{1, S, 3653 * 86400}, true},
        {{1, S, 3653 * 86400 + 1}, false},
        {{1, S, E12}, false},
        {{3168, S, E12}, false}, /* 3168.4 is the least rate for 10^12 */
        {{3169, S, E12}, true},
        {{1, MS, 3653 * DAY_MS}, true},
        {{1, MS, 3653 * DAY_MS + 1}, false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (!CHECK(rl_tokenbucket_limit_valid(&rows[i].lim) == rows[i].valid) && telling()) tell_limit(&rows[i].lim);
    }
}

/* What no command can ask for, no file may hold: periods start at 1 ms. */
static void test_limit_valid_period_of_less_than_a_millisecond(void) {
    static const int64_t periods_us[] = {1, 500, 999};
    for (size_t i = 0; i < COUNT_OF(periods_us); i++) {
        struct rl_tokenbucket_limit lim = {1, periods_us[i], 1};
        if (!CHECK(!rl_tokenbucket_limit_valid(&lim)) && telling()) tell_limit(&lim);
    }
}

static void test_valid(void) {
    struct rl_tokenbucket_limit day = {1, DAY, 5}, ms = {E12, MS, E12};
    rl_u128 ten_years = (rl_u128)3653 * (uint64_t)DAY, most = (rl_u128)(uint64_t)RL_USED_MAX * (uint64_t)MS;
    static const struct rl_tokenbucket zero;
    CHECK(rl_tokenbucket_valid(&zero, &day) && rl_tokenbucket_valid(&zero, &ms));
    CHECK(rl_tokenbucket_valid(&(struct rl_tokenbucket){ten_years, 0}, &day));
    CHECK(!rl_tokenbucket_valid(&(struct rl_tokenbucket){ten_years + 1, 0}, &day));
    CHECK(rl_tokenbucket_valid(&(struct rl_tokenbucket){most, 0}, &ms));
    CHECK(!rl_tokenbucket_valid(&(struct rl_tokenbucket){most + 1, 0}, &ms));
    CHECK(!rl_tokenbucket_valid(&(struct rl_tokenbucket){~(rl_u128)0, 0}, &ms));
    CHECK(!rl_tokenbucket_valid(&(struct rl_tokenbucket){(rl_u128)1 << 127, 0}, &day));
    CHECK(rl_tokenbucket_valid(&(struct rl_tokenbucket){0, RL_CLOCK_MAX_US - 1}, &day));
    CHECK(!rl_tokenbucket_valid(&(struct rl_tokenbucket){0, RL_CLOCK_MAX_US}, &day));
    CHECK(!rl_tokenbucket_valid(&(struct rl_tokenbucket){0, -1}, &day));
    CHECK(!rl_tokenbucket_valid(&(struct rl_tokenbucket){0, INT64_MIN}, &day));
}

/* 10^15 units may be owed, however fast they come back. */
static void test_most_that_may_be_owed(void) {
    struct rl_tokenbucket_limit lim = {E12, MS, 1};
    struct rl_ask ask = {.cost = E12, .mode = RL_FORCE};
    struct key k = {0};
    for (int i = 0; i < 1000; i++) CHECK(!call(&k, &lim, &ask, S).beyond);
    struct key before = k;
    CHECK(call(&k, &lim, &ask, S).beyond);
    ask.cost = 1;
    CHECK(call(&k, &lim, &ask, S).beyond);
    CHECK(memcmp(&before, &k, sizeof(k)) == 0);
    ask = (struct rl_ask){.cost = 1, .mode = RL_TAKE};
    struct rl_verdict v = call(&k, &lim, &ask, S);
    CHECK(v.allowed == 0 && v.remaining == 1 - RL_USED_MAX && v.wait_ms == 1000 && v.reset_ms == 1000);
    CHECK(call(&k, &lim, &ask, 2 * S - 1).allowed == 0 && call(&k, &lim, &ask, 2 * S).allowed == 1);
}

static void test_rescale(void) {
    static const struct {
        int64_t owed, from_us, to_us, want; /* owed is in 1/period_us */
    } rows[] = {
        {0, S, MS, 0},
        {5 * S, S, MS, 5 * MS},
        {5 * S, S, 366 * DAY, 5 * 366 * DAY},
        {1, S, MS, 1}, /* rounded up, however little it is */
        {999, S, MS, 1},
        {1000, S, MS, 1},
        {1001, S, MS, 2},
        {5 * S + 1, S, MS, 5 * MS + 1},
        {1, 1000003, 1000000, 1},
        {1000002, 1000003, 1000000, 1000000},
        {1000003, 1000003, 1000000, 1000000},
        {1000004, 1000003, 1000000, 1000001},
        {1, MS, 366 * DAY, 366 * DAY / MS},
        {366 * DAY - 1, 366 * DAY, 366 * DAY - 1, 366 * DAY - 1},
        {3 * (366 * DAY - 1), 366 * DAY - 1, 366 * DAY, 3 * 366 * DAY},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct rl_tokenbucket_limit from = {1000, rows[i].from_us, 10}, to = {2000, rows[i].to_us, 3};
        struct rl_tokenbucket b = {(rl_u128)(uint64_t)rows[i].owed, 77};
        bool held = CHECK(rl_tokenbucket_rescale(&b, &from, &to));
        held = CHECK(b.owed == (rl_u128)(uint64_t)rows[i].want && b.at_us == 77) && held;
        if (!held && telling()) printf("  in row %zu, got %" PRId64 "\n", i + 1, (int64_t)b.owed);
    }
}

static void test_rescale_refuses(void) {
    static const struct {
        int64_t units;
        struct rl_tokenbucket_limit from, to;
        bool good;
    } rows[] = {
        {9, {1, S, 9}, {1, 366 * DAY, 9}, true}, /* 3294 days, then 3660 */
        {10, {1, S, 9}, {1, 366 * DAY, 9}, false},
        {3653, {1, S, 9}, {1, DAY, 1}, true},
        {3654, {1, S, 9}, {1, DAY, 1}, false},
        {RL_USED_MAX, {E12, MS, E12}, {E12, S, 1}, true},
        {RL_USED_MAX, {E12, MS, E12}, {E12, 366 * DAY, 1}, false}, /* a thousand years */
        {RL_USED_MAX, {E12, MS, E12}, {1, 366 * DAY, 1}, false},
        {9 * E12, {E12, 366 * DAY, E12}, {E12, 366 * DAY - 1, 1}, true},
        {10 * E12, {E12, MS, E12}, {E12, 366 * DAY, E12}, false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct rl_tokenbucket b, before;
        memset(&b, 0, sizeof(b));
        b.owed = (rl_u128)(uint64_t)rows[i].units * (uint64_t)rows[i].from.period_us;
        b.at_us = 5;
        memcpy(&before, &b, sizeof(b));
        bool good = rl_tokenbucket_rescale(&b, &rows[i].from, &rows[i].to);
        bool held = CHECK(good == rows[i].good);
        held = CHECK(good ? b.owed == (rl_u128)(uint64_t)rows[i].units * (uint64_t)rows[i].to.period_us
                          : memcmp(&b, &before, sizeof(b)) == 0) &&
               held;
        if (!held && telling()) printf("  in row %zu\n", i + 1);
    }
    /* The call that asks for it is an error, and the key is as it was. */
    /* clang-format off */
    static const struct row calls[] = {
        /* at    how              cost allowed remaining wait  reset */
        {10 * S, TAKE,            9,   9,      0,        0,    9000},
        {10 * S, FORCE,           1,   1,      -1,       0,    10000},
        {10 * S, TAKE | UNDER(1), 1,   BEYOND, 0,        0,    0},
        {10 * S, PEEK | UNDER(1), 1,   BEYOND, 0,        0,    0},
        {11 * S, TAKE,            1,   0,      0,        1000, 9000},
        {20 * S, TAKE | UNDER(1), 9,   9,      0,        0,    9 * 366 * DAY_MS}, /* outlived itself */
    };
    /* clang-format on */
    RUN("a limit that cannot hold what is owed", LIMITS({1, S, 9}, {1, 366 * DAY, 9}), calls);
}

static void test_full_at(void) {
    struct rl_tokenbucket_limit lim = {3, S, 1}, least = {1, 366 * DAY, 9}, most = {E12, MS, E12};
    static const int64_t rows[][2] = {{0, 0}, {1, 1}, {2, 1}, {3, 1}, {4, 2}, {6, 2}, {7, 3}, {S, 333334}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct rl_tokenbucket b = {(rl_u128)(uint64_t)rows[i][0], 9 * S};
        CHECK(rl_tokenbucket_full_at_us(&b, &lim) == 9 * S + rows[i][1]);
    }
    static const struct rl_tokenbucket zero;
    CHECK(rl_tokenbucket_full_at_us(&zero, &lim) == 0);
    struct rl_tokenbucket b = {(rl_u128)9 * 366 * (uint64_t)DAY, RL_CLOCK_MAX_US - 1};
    CHECK(rl_tokenbucket_full_at_us(&b, &least) == RL_CLOCK_MAX_US - 1 + 9 * 366 * DAY);
    b = (struct rl_tokenbucket){(rl_u128)(uint64_t)RL_USED_MAX * (uint64_t)MS, 5};
    CHECK(rl_tokenbucket_full_at_us(&b, &most) == 5 + S);
}

/* ---- random limits and traffic */

/* Every magnitude as likely as any other. */
static int64_t random_size(int64_t max) {
    int bits = 63 - __builtin_clzll((unsigned long long)max);
    int64_t top = max >> rl_unit_between(&seed, 0, bits);
    return rl_unit_between(&seed, 1, top);
}

static struct rl_tokenbucket_limit random_limit(void) {
    static const int64_t round_us[] = {MS, 250 * MS, S, 60 * S, 3600 * S, DAY, 366 * DAY};
    struct rl_tokenbucket_limit lim;
    do {
        lim.count = random_size(E12);
        lim.burst = rl_unit_between(&seed, 0, 3) ? random_size(E12) : lim.count;
        lim.period_us = rl_unit_between(&seed, 0, 1) ? round_us[rl_unit_between(&seed, 0, COUNT_OF(round_us) - 1)]
                                                     : MS + random_size(RL_PERIOD_MAX_US - MS);
    } while (!rl_tokenbucket_limit_valid(&lim));
    return lim;
}

/* In which the bucket gets back `units`, at least a microsecond. */
static int64_t refill_us(const struct rl_tokenbucket_limit *lim, int64_t units) {
    rl_i128 us = (rl_i128)units * lim->period_us / lim->count;
    return us < 1 ? 1 : (int64_t)us;
}

/* Bursts at one instant, steps about as long as the cost needs, now and then a long pause. */
static int64_t random_step_us(const struct rl_tokenbucket_limit *lim, int64_t cost) {
    int64_t kind = rl_unit_between(&seed, 0, 15);
    if (kind < 3) return 0;
    if (kind < 5) return rl_unit_between(&seed, 1, 3);
    if (kind == 15) return rl_unit_between(&seed, 0, refill_us(lim, lim->burst));
    return rl_unit_between(&seed, 0, 2 * refill_us(lim, cost < lim->burst ? cost : lim->burst));
}

static int64_t random_cost(const struct rl_tokenbucket_limit *lim) {
    int64_t kind = rl_unit_between(&seed, 0, 15);
    if (kind == 0) return random_size(E12);
    if (kind == 1) return lim->burst;
    if (kind < 8) return random_size(lim->burst < 20 ? lim->burst : lim->burst / 20);
    return random_size(lim->burst);
}

/* ---- the law */

enum { GRANTS = 4000, SHORT = 150 };

struct grants {
    int count;
    int64_t at_us[GRANTS];
    rl_i128 units[GRANTS];
};

static void note_grant(struct grants *g, int64_t at_us, int64_t units) {
    if (units == 0) return;
    g->at_us[g->count] = at_us;
    g->units[g->count++] = units;
}

/* Units in [t_i, t_j] <= burst + (t_j - t_i) * count / period, for every i <= j: multiplied by the period, and with
 * the sums P up to j and before i, P_j * period - t_j * count <= burst * period + (P_i * period - t_i * count). So the
 * least right side so far is all that has to be remembered. */
static bool lawful(const struct grants *g, const struct rl_tokenbucket_limit *lim) {
    rl_i128 sum = 0, least = 0;
    for (int j = 0; j < g->count; j++) {
        rl_i128 paid = (rl_i128)(g->at_us[j] - g->at_us[0]) * lim->count;
        rl_i128 before = sum * lim->period_us - paid;
        if (j == 0 || before < least) least = before;
        sum += g->units[j];
        if (sum * lim->period_us - paid > (rl_i128)lim->burst * lim->period_us + least) return false;
    }
    return true;
}

/* The same word by word, over the first SHORT grants. */
static bool lawful_by_pairs(const struct grants *g, const struct rl_tokenbucket_limit *lim) {
    for (int i = 0; i < g->count && i < SHORT; i++) {
        rl_i128 sum = 0;
        for (int j = i; j < g->count && j < SHORT; j++) {
            sum += g->units[j];
            rl_i128 span_us = g->at_us[j] - g->at_us[i];
            if (sum * lim->period_us > (rl_i128)lim->burst * lim->period_us + span_us * lim->count) return false;
        }
    }
    return true;
}

/* A law that cannot be broken is none. */
static void test_law_itself(void) {
    static struct grants g;
    struct rl_tokenbucket_limit lim = {3, S, 5};
    g = (struct grants){.count = 3, .at_us = {0, S, 2 * S}, .units = {5, 3, 3}};
    CHECK(lawful(&g, &lim) && lawful_by_pairs(&g, &lim));
    g.at_us[2]--;
    CHECK(!lawful(&g, &lim) && !lawful_by_pairs(&g, &lim));
    g = (struct grants){.count = 3, .at_us = {0, 100 * S, 100 * S}, .units = {1, 3, 3}};
    CHECK(!lawful(&g, &lim) && !lawful_by_pairs(&g, &lim));
    g = (struct grants){.count = 1, .units = {6}};
    CHECK(!lawful(&g, &lim) && !lawful_by_pairs(&g, &lim));
}

static struct rl_verdict look(const struct rl_tokenbucket *b, const struct rl_tokenbucket_limit *lim, enum rl_mode mode,
                              int64_t cost, int64_t now_us) {
    struct rl_ask ask = {.cost = cost, .mode = mode, .peek = true};
    return rl_tokenbucket_check(b, lim, &ask, now_us);
}

/* All that a verdict says of the state that it left. */
static bool truthful(const struct rl_tokenbucket *b, const struct rl_tokenbucket_limit *lim, const struct rl_ask *ask,
                     const struct rl_verdict *v, int64_t now_us) {
    bool held = CHECK(v->limit == lim->burst && v->remaining <= lim->burst && v->reset_ms >= 0 && !v->beyond);
    if (v->allowed > 0) {
        held = CHECK(v->wait_ms == 0 && v->allowed <= ask->cost) && held;
    } else if (ask->mode == RL_TAKE && ask->cost > lim->burst) {
        held = CHECK(v->wait_ms == RL_NEVER) && held;
    } else {
        /* After the wait the same call passes, a millisecond earlier it does not. */
        held = CHECK(v->wait_ms > 0) && held;
        held = CHECK(look(b, lim, ask->mode, ask->cost, now_us + v->wait_ms * MS).allowed > 0) && held;
        held = CHECK(look(b, lim, ask->mode, ask->cost, now_us + (v->wait_ms - 1) * MS).allowed == 0) && held;
    }

    struct rl_verdict now = look(b, lim, RL_TAKE, 1, now_us);
    held = CHECK(now.remaining == v->remaining && now.reset_ms == v->reset_ms) && held;
    if (v->remaining > 0) {
        held = CHECK(look(b, lim, RL_TAKE, v->remaining, now_us).allowed == v->remaining) && held;
        held = CHECK(look(b, lim, RL_UPTO, E12, now_us).allowed == v->remaining) && held;
    }
    held = CHECK(look(b, lim, RL_TAKE, v->remaining > 0 ? v->remaining + 1 : 1, now_us).allowed == 0) && held;

    struct rl_verdict full = look(b, lim, RL_TAKE, lim->burst, now_us + v->reset_ms * MS);
    held = CHECK(full.allowed == lim->burst && full.remaining == lim->burst && full.reset_ms == 0) && held;
    if (v->reset_ms > 0) held = CHECK(look(b, lim, RL_TAKE, 1, now_us + (v->reset_ms - 1) * MS).reset_ms == 1) && held;
    int64_t full_at_us = rl_tokenbucket_full_at_us(b, lim);
    held = CHECK(look(b, lim, RL_TAKE, lim->burst, full_at_us).allowed == lim->burst) && held;
    if (b->owed > 0) held = CHECK(look(b, lim, RL_TAKE, lim->burst, full_at_us - 1).allowed == 0) && held;
    return held;
}

static void run_law(const struct rl_tokenbucket_limit *lim) {
    static struct grants g;
    struct rl_tokenbucket b, before;
    memset(&b, 0, sizeof(b));
    g.count = 0;
    int64_t now_us = rl_unit_between(&seed, 0, RL_CLOCK_MAX_US / 2);
    bool held = true;
    while (g.count < GRANTS && held) {
        struct rl_ask ask = {.cost = random_cost(lim)};
        ask.mode = rl_unit_between(&seed, 0, 3) ? RL_TAKE : RL_UPTO;
        now_us += random_step_us(lim, ask.cost);
        if (now_us >= RL_CLOCK_MAX_US) break;

        memcpy(&before, &b, sizeof(b));
        ask.peek = true;
        struct rl_verdict peeked = rl_tokenbucket_check(&b, lim, &ask, now_us);
        ask.peek = false;
        struct rl_verdict v = rl_tokenbucket_check(&b, lim, &ask, now_us);
        held = CHECK(memcmp(&before, &b, sizeof(b)) == 0);
        held = CHECK(peeked.allowed == v.allowed && peeked.wait_ms == v.wait_ms) && held;
        held = CHECK(peeked.remaining == v.remaining + v.allowed) && held;
        held = CHECK(ask.mode == RL_UPTO || v.allowed == 0 || v.allowed == ask.cost) && held;
        held = CHECK(v.remaining >= 0) && held;
        if (v.allowed > 0) {
            rl_tokenbucket_take(&b, lim, v.allowed, now_us);
            note_grant(&g, now_us, v.allowed);
            held = CHECK(b.at_us == now_us) && held;
        }
        held = CHECK(rl_tokenbucket_valid(&b, lim)) && held;
        held = truthful(&b, lim, &ask, &v, now_us) && held;
    }
    held = CHECK(g.count > GRANTS / 4 || now_us >= RL_CLOCK_MAX_US) && held;
    held = CHECK(lawful(&g, lim)) && held;
    held = CHECK(lawful_by_pairs(&g, lim)) && held;
    if (!held && telling()) tell_limit(lim);
}

static void test_law(void) {
    static const struct rl_tokenbucket_limit chosen[] = {
        {300000000, S, 300000000}, {7, 250 * MS, 7}, {1, 3 * S, 1},         {E12, MS, E12},
        {1, 366 * DAY, 9},         {1, MS, 1},       {E12, 366 * DAY, E12}, {999999999989, 366 * DAY - 1, 999999999989},
    };
    for (size_t i = 0; i < COUNT_OF(chosen); i++) run_law(&chosen[i]);
    for (int i = 0; i < 60; i++) {
        struct rl_tokenbucket_limit lim = random_limit();
        run_law(&lim);
    }
}

/* ---- steps back: two clocks go forward together, and one of them is now and then set back. Call for call the bucket
 * of that one has never granted more in total; and counted on the clock that only goes forward, the law holds. */

static void run_step_backs(const struct rl_tokenbucket_limit *lim) {
    static struct grants g;
    struct key plain = {0}, stepped = {0};
    int64_t now_us = RL_CLOCK_MAX_US / 4, back_us = 0, refill_ms = refill_us(lim, lim->burst) / 1000 + 1;
    rl_i128 lead = 0;
    bool held = true;
    g.count = 0;
    for (int i = 0; i < 2000 && now_us < RL_CLOCK_MAX_US / 2 && held; i++) {
        struct rl_ask ask = {.cost = random_cost(lim), .mode = RL_UPTO};
        now_us += random_step_us(lim, ask.cost);
        if (rl_unit_between(&seed, 0, 9) == 0) {
            back_us += random_size(rl_unit_between(&seed, 0, 1) ? 4 * refill_us(lim, lim->burst) : 1000 * DAY);
            if (back_us > now_us) back_us = now_us;
        }
        struct rl_verdict ahead = call(&plain, lim, &ask, now_us), v = call(&stepped, lim, &ask, now_us - back_us);
        note_grant(&g, now_us, v.allowed);
        lead += ahead.allowed - v.allowed;
        held = CHECK(lead >= 0);
        held = CHECK(v.remaining >= 0 && v.reset_ms <= refill_ms && v.wait_ms <= refill_ms) && held;
        held = CHECK(stepped.lim.count == 0 || stepped.b.at_us <= now_us - back_us) && held;
        if (v.wait_ms > 0) /* not locked: the wait holds on the clock as it is now */
            held = CHECK(look(&stepped.b, lim, RL_TAKE, 1, now_us - back_us + v.wait_ms * MS).allowed == 1) && held;
    }
    held = CHECK(lawful(&g, lim)) && held;
    if (!held && telling()) tell_limit(lim);
}

static void test_step_backs(void) {
    for (int i = 0; i < 100; i++) {
        struct rl_tokenbucket_limit lim = random_limit();
        run_step_backs(&lim);
    }
}

/* ---- limits that flap. Where one is looser in both rate and burst, the flapping key has, call for call, never
 * granted more in total than a key that always has the looser one. Of any two, it keeps the law of the larger burst
 * with the faster rate. */

static bool faster(const struct rl_tokenbucket_limit *a, const struct rl_tokenbucket_limit *b) {
    return (rl_i128)a->count * b->period_us >= (rl_i128)b->count * a->period_us;
}

static void run_flapping(const struct rl_tokenbucket_limit limits[2]) {
    static struct grants g;
    struct rl_tokenbucket_limit loose = faster(&limits[0], &limits[1]) ? limits[0] : limits[1];
    loose.burst = limits[0].burst > limits[1].burst ? limits[0].burst : limits[1].burst;
    bool comparable = same_limit(&loose, &limits[0]) || same_limit(&loose, &limits[1]);
    struct key steady = {0}, flapping = {0};
    int64_t now_us = S, which = 0;
    rl_i128 lead = 0;
    bool held = true;
    g.count = 0;
    for (int i = 0; i < 3000 && now_us < RL_CLOCK_MAX_US && held; i++) {
        if (rl_unit_between(&seed, 0, 2) == 0) which = 1 - which;
        struct rl_ask ask = {.cost = random_cost(&limits[which]), .mode = RL_UPTO};
        if (rl_unit_between(&seed, 0, 3) == 0) ask.cost = 1;
        now_us += random_step_us(&limits[rl_unit_between(&seed, 0, 1)], ask.cost);
        if (now_us >= RL_CLOCK_MAX_US) break;
        struct rl_verdict v = call(&flapping, &limits[which], &ask, now_us);
        int64_t allowed = v.beyond ? 0 : v.allowed;
        note_grant(&g, now_us, allowed);
        if (!comparable) continue;
        lead += call(&steady, &loose, &ask, now_us).allowed - allowed;
        held = CHECK(lead >= 0);
    }
    held = CHECK(lawful(&g, &loose)) && held;
    held = CHECK(lawful_by_pairs(&g, &loose)) && held;
    if (held || !telling()) return;
    tell_limit(&limits[0]);
    tell_limit(&limits[1]);
}

static int64_t scaled(int64_t n) {
    int64_t times = rl_unit_between(&seed, 1, 6);
    return n * times / rl_unit_between(&seed, 1, 4);
}

/* Another limit of about the same size, so that both have something to say. */
static struct rl_tokenbucket_limit random_neighbour(const struct rl_tokenbucket_limit *lim) {
    struct rl_tokenbucket_limit near;
    do {
        near.count = scaled(lim->count);
        near.period_us = scaled(lim->period_us) + rl_unit_between(&seed, 0, 5);
        near.burst = scaled(lim->burst);
    } while (!rl_tokenbucket_limit_valid(&near));
    return near;
}

static void test_flapping(void) {
    for (int i = 0; i < 200; i++) {
        struct rl_tokenbucket_limit limits[2] = {random_limit()};
        limits[1] = rl_unit_between(&seed, 0, 3) ? random_neighbour(&limits[0]) : random_limit();
        run_flapping(limits);
    }
}

/* ---- the twin: a bucket of tokens as a fraction, whose waits are found by trying */

struct fraction {
    rl_i128 num;
    int64_t den;
};

static int64_t gcd(int64_t a, int64_t b) {
    return b == 0 ? a : gcd(b, a % b);
}

static struct fraction reduced(rl_i128 num, int64_t den) {
    int64_t rest = (int64_t)(num % den), common = gcd(den, rest < 0 ? -rest : rest);
    return (struct fraction){num / common, den / common};
}

static struct fraction plus(struct fraction a, struct fraction b) {
    int64_t common = gcd(a.den, b.den), den = a.den / common * b.den;
    return reduced(a.num * (den / a.den) + b.num * (den / b.den), den);
}

static struct fraction minus(struct fraction a, struct fraction b) {
    return plus(a, (struct fraction){-b.num, b.den});
}

static struct fraction whole(rl_i128 n) {
    return (struct fraction){n, 1};
}

static rl_i128 floor_of(struct fraction a) {
    rl_i128 n = a.num / a.den;
    return n * a.den > a.num ? n - 1 : n;
}

static bool at_least(struct fraction a, struct fraction b) {
    return minus(a, b).num >= 0;
}

struct twin {
    struct fraction tokens; /* at the last write */
    int64_t at_us;
    struct rl_tokenbucket_limit lim; /* count 0: there is no key */
};

static struct fraction tokens_at(const struct twin *t, int64_t now_us) {
    if (now_us <= t->at_us) return t->tokens;
    struct fraction full = whole(t->lim.burst);
    struct fraction now = plus(t->tokens, reduced((rl_i128)(now_us - t->at_us) * t->lim.count, t->lim.period_us));
    return at_least(now, full) ? full : now;
}

/* Ten years and 10^15 units. */
static bool bearable(struct fraction used, const struct rl_tokenbucket_limit *lim) {
    struct fraction most = reduced((rl_i128)3653 * DAY * lim->count, lim->period_us);
    return at_least(whole(INT64_C(1000000000000000)), used) && at_least(most, used);
}

/* The least whole number of milliseconds after which there are as many tokens. */
static int64_t try_ms(struct fraction tokens, int64_t wanted, const struct rl_tokenbucket_limit *lim) {
    int64_t low = 0, high = 3653 * DAY_MS;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        struct fraction then = plus(tokens, reduced((rl_i128)middle * 1000 * lim->count, lim->period_us));
        if (at_least(then, whole(wanted)))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static bool twin_change(struct twin *t, const struct rl_tokenbucket_limit *to) {
    struct fraction used = minus(whole(t->lim.burst), t->tokens);
    rl_i128 units = floor_of(used);
    struct fraction part = minus(used, whole(units)); /* up to the next multiple of 1/period */
    rl_i128 parts = -floor_of((struct fraction){-part.num * to->period_us, part.den});
    used = plus(whole(units), reduced(parts, to->period_us));
    if (!bearable(used, to)) return false;
    t->tokens = minus(whole(to->burst), used);
    t->lim = *to;
    return true;
}

static struct rl_verdict twin_call(struct twin *key, const struct rl_tokenbucket_limit *lim, const struct rl_ask *ask,
                                   int64_t now_us) {
    struct rl_verdict v = {.limit = lim->burst};
    struct twin t = *key;
    if (t.lim.count && at_least(tokens_at(&t, now_us), whole(t.lim.burst))) t.lim.count = 0;
    if (t.lim.count == 0) {
        t = (struct twin){.tokens = whole(lim->burst), .lim = *lim};
        *key = (struct twin){.tokens = {0, 1}};
    } else if (!same_limit(&t.lim, lim) && !twin_change(&t, lim)) {
        return (struct rl_verdict){.beyond = true};
    }
    struct fraction tokens = tokens_at(&t, now_us), used = minus(whole(lim->burst), tokens);
    int64_t there = (int64_t)floor_of(tokens), cost = ask->cost;
    switch (ask->mode) {
    case RL_TAKE: v.allowed = there >= cost ? cost : 0; break;
    case RL_FORCE: v.allowed = cost; break;
    case RL_UPTO: v.allowed = there >= cost ? cost : there > 0 ? there : 0; break;
    case RL_REFUND: v.allowed = floor_of(used) < cost ? (int64_t)floor_of(used) : cost; break;
    }
    if (ask->mode == RL_FORCE && !bearable(plus(used, whole(cost)), lim)) return (struct rl_verdict){.beyond = true};
    if (v.allowed == 0 && ask->mode == RL_TAKE) v.wait_ms = cost > lim->burst ? -1 : try_ms(tokens, cost, lim);
    if (v.allowed == 0 && ask->mode == RL_UPTO) v.wait_ms = try_ms(tokens, 1, lim);
    if (!ask->peek) tokens = minus(tokens, whole(ask->mode == RL_REFUND ? -v.allowed : v.allowed));
    v.remaining = (int64_t)floor_of(tokens);
    v.reset_ms = try_ms(tokens, lim->burst, lim);
    if (ask->peek) return v;
    if (v.allowed > 0) {
        *key = (struct twin){tokens, now_us, *lim};
        if (at_least(tokens, whole(lim->burst))) *key = (struct twin){.tokens = {0, 1}};
    } else if (key->at_us > now_us) {
        key->at_us = now_us;
    }
    return v;
}

static struct rl_ask random_ask(const struct rl_tokenbucket_limit *lim) {
    static const enum how often[] = {TAKE, TAKE, TAKE, TAKE, TAKE, UPTO, UPTO, FORCE, REFUND, REFUND, PEEK, PEEK_UPTO};
    enum how how = often[rl_unit_between(&seed, 0, COUNT_OF(often) - 1)];
    return ask_of(how, random_cost(lim));
}

static void run_twins(const struct rl_tokenbucket_limit *limits, int64_t limit_count, int calls) {
    struct key k = {0};
    struct twin t = {.tokens = {0, 1}};
    int64_t now_us = rl_unit_between(&seed, 0, RL_CLOCK_MAX_US / 2), which = 0;
    for (int i = 0; i < calls; i++) {
        if (rl_unit_between(&seed, 0, 7) == 0) which = rl_unit_between(&seed, 0, limit_count - 1);
        const struct rl_tokenbucket_limit *lim = &limits[which];
        struct rl_ask ask = random_ask(lim);
        now_us += random_step_us(lim, ask.cost);
        if (rl_unit_between(&seed, 0, 49) == 0) now_us -= random_size(now_us + 1) - 1;
        if (now_us >= RL_CLOCK_MAX_US) break;
        struct rl_verdict want = twin_call(&t, lim, &ask, now_us), got = call(&k, lim, &ask, now_us);
        bool held = CHECK(same_verdict(&got, &want));
        held = CHECK(k.lim.count == t.lim.count && (k.lim.count == 0 || k.b.at_us == t.at_us)) && held;
        held = CHECK(k.lim.count == 0 || rl_tokenbucket_valid(&k.b, &k.lim)) && held;
        if (held) continue;
        if (telling()) {
            printf("  call %d at %" PRId64 ", mode %d, cost %" PRId64 "%s\n", i + 1, now_us, (int)ask.mode, ask.cost,
                   ask.peek ? ", peek" : "");
            tell_limit(lim);
            tell("got", &got);
            tell("twin", &want);
        }
        return;
    }
}

static void test_twins(void) {
    for (int i = 0; i < 150; i++) {
        struct rl_tokenbucket_limit limits[3] = {random_limit()};
        limits[1] = random_neighbour(&limits[0]);
        limits[2] = random_limit();
        run_twins(limits, 1, 500);
        run_twins(limits, 2, 500);
        run_twins(limits, 3, 500);
    }
}

/* The expiry of a key is not observable: one that is kept for ever answers the same. */
static void test_expiry(void) {
    for (int i = 0; i < 100; i++) {
        struct rl_tokenbucket_limit lim = random_limit();
        struct rl_tokenbucket b = {0};
        struct key k = {0};
        int64_t now_us = 0;
        bool same = true;
        for (int n = 0; n < 300; n++) {
            struct rl_ask ask = random_ask(&lim);
            now_us += random_step_us(&lim, ask.cost);
            if (now_us >= RL_CLOCK_MAX_US) break;
            struct rl_verdict kept = rl_tokenbucket_check(&b, &lim, &ask, now_us), v = call(&k, &lim, &ask, now_us);
            same = same && same_verdict(&kept, &v);
            if (kept.allowed > 0 && !kept.beyond && !ask.peek)
                rl_tokenbucket_take(&b, &lim, rl_verdict_delta(&kept, &ask), now_us);
        }
        if (!CHECK(same) && telling()) tell_limit(&lim);
    }
}

int main(int argc, char **argv) {
    seed = argc > 1 ? strtoull(argv[1], NULL, 0) : UINT64_C(0x6275636b6574);
    if (seed == 0) seed = 1;
    printf("test_tokenbucket: seed %" PRIu64 "\n", seed);
    test_one_a_second();
    test_wait();
    test_step_back();
    test_force();
    test_upto();
    test_refund();
    test_peek();
    test_changed_burst();
    test_changed_rate();
    test_numbers_of_the_design();
    test_extremes();
    test_fraction();
    test_limit_valid();
    test_limit_valid_period_of_less_than_a_millisecond();
    test_valid();
    test_most_that_may_be_owed();
    test_rescale();
    test_rescale_refuses();
    test_full_at();
    test_law_itself();
    test_law();
    test_step_backs();
    test_flapping();
    test_twins();
    test_expiry();
    return rl_unit_done("test_tokenbucket");
}
