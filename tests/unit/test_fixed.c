/* RL.FIXED's algorithm: tables of instants, then random traffic against a twin that keeps every grant, and the law. */
#include "algo/fixed.h"

#include <string.h>

#include "unit.h"

/* ---- helpers */

static struct rl_verdict call(struct rl_fixed *w, const struct rl_fixed_limit *lim, struct rl_ask ask, int64_t now_ms) {
    struct rl_verdict v = rl_fixed_check(w, lim, &ask, now_ms);
    if (!ask.peek && v.allowed > 0 && !v.beyond) rl_fixed_take(w, lim, rl_verdict_delta(&v, &ask), now_ms);
    CHECK(rl_fixed_valid(w));
    return v;
}

static bool same_verdict(const struct rl_verdict *a, const struct rl_verdict *b) {
    bool same = a->allowed == b->allowed && a->limit == b->limit && a->remaining == b->remaining &&
                a->wait_ms == b->wait_ms && a->reset_ms == b->reset_ms && a->beyond == b->beyond;
    if (!same && rl_unit_failed < 20) {
        printf("allowed %ld %ld, remaining %ld %ld, wait %ld %ld, reset %ld %ld\n", (long)a->allowed, (long)b->allowed,
               (long)a->remaining, (long)b->remaining, (long)a->wait_ms, (long)b->wait_ms, (long)a->reset_ms,
               (long)b->reset_ms);
    }
    return same;
}

/* ---- tables */

struct row {
    int64_t at_ms;
    enum rl_mode mode;
    bool peek;
    int64_t cost, allowed, remaining, wait_ms, reset_ms;
};

static void run_table(const struct rl_fixed_limit *lim, const struct row *rows, size_t n) {
    struct rl_fixed w = {0};
    CHECK(rl_fixed_limit_valid(lim));
    for (size_t i = 0; i < n; i++) {
        const struct row *r = &rows[i];
        struct rl_verdict want = {r->allowed, lim->count, r->remaining, r->wait_ms, r->reset_ms, false};
        struct rl_verdict got = call(&w, lim, (struct rl_ask){r->cost, r->mode, r->peek}, r->at_ms);
        if (!CHECK(same_verdict(&got, &want))) printf("  in row %zu, align %ld\n", i, (long)lim->align);
    }
}

static void test_tables(void) {
    static const struct rl_fixed_limit opened = {.count = 5, .period_ms = 1000};
    static const struct row opened_rows[] = {
        /* at    mode     peek  cost allowed remaining wait   reset */
        {10300, RL_TAKE, false, 6, 0, 5, RL_NEVER, 0}, /* larger than the window */
        {10300, RL_TAKE, true, 5, 5, 5, 0, 0},         /* a peek opens nothing */
        {10300, RL_REFUND, false, 5, 0, 5, 0, 0},      /* nothing to give back */
        {10300, RL_TAKE, false, 2, 2, 3, 0, 1000},     /* the window opens */
        {11299, RL_TAKE, false, 4, 0, 3, 1, 1},        /* not yet over */
        {11299, RL_UPTO, false, 9, 3, 0, 0, 1},        /* what fits */
        {11299, RL_UPTO, false, 9, 0, 0, 1, 1},        /* nothing fits */
        {11300, RL_TAKE, true, 5, 5, 5, 0, 0},         /* over */
        {11300, RL_FORCE, false, 9, 9, -4, 0, 1000},   /* in debt */
        {11400, RL_TAKE, false, 1, 0, -4, 900, 900},   /* until the window ends, not longer */
        {11400, RL_TAKE, false, 6, 0, -4, RL_NEVER, 900},
        {11400, RL_REFUND, false, 3, 3, -1, 0, 900},
        {11400, RL_REFUND, false, 9, 6, 5, 0, 0},    /* refunded to zero: closed */
        {11900, RL_TAKE, false, 5, 5, 0, 0, 1000},   /* and opened anew */
        {11800, RL_TAKE, true, 1, 0, 0, 1000, 1000}, /* stepped back: it begins now */
        {1800, RL_TAKE, false, 1, 0, 0, 1000, 1000}, /* far back: as well */
    };
    run_table(&opened, opened_rows, sizeof(opened_rows) / sizeof(*opened_rows));

    static const struct rl_fixed_limit aligned = {.count = 5, .period_ms = 1000, .align = 1};
    static const struct row aligned_rows[] = {
        {10300, RL_TAKE, false, 5, 5, 0, 0, 700}, /* of the window from 10000 */
        {10999, RL_TAKE, false, 1, 0, 0, 1, 1},
        {11000, RL_TAKE, false, 2, 2, 3, 0, 1000},    /* the next */
        {10999, RL_TAKE, false, 4, 0, 3, 1001, 1001}, /* a step back over its start grants nothing again */
        {10000, RL_TAKE, false, 4, 0, 3, 2000, 2000}, /* one period ahead is still current */
        {9999, RL_TAKE, true, 4, 0, 3, 1, 1},         /* further ahead: of the window of now */
        {11500, RL_REFUND, false, 2, 2, 5, 0, 0},
        {11600, RL_TAKE, false, 1, 1, 4, 0, 400}, /* the window stands where it stood */
        {0, RL_FORCE, false, 7, 7, -3, 0, 1000},  /* the first window of all */
    };
    run_table(&aligned, aligned_rows, sizeof(aligned_rows) / sizeof(*aligned_rows));
}

static void test_bounds(void) {
    static const struct {
        struct rl_fixed_limit lim;
        bool valid;
    } limits[] = {
        {{1, 1, 0}, true},    {{RL_UNITS_MAX, RL_PERIOD_MAX_MS, 1}, true},
        {{0, 1, 0}, false},   {{RL_UNITS_MAX + 1, 1, 0}, false},
        {{1, 0, 0}, false},   {{1, RL_PERIOD_MAX_MS + 1, 0}, false},
        {{1, 1, 2}, false},   {{1, 1, -1}, false},
        {{-1, -1, 0}, false},
    };
    for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
        CHECK(rl_fixed_limit_valid(&limits[i].lim) == limits[i].valid);
    }
    static const struct {
        struct rl_fixed state;
        bool valid;
    } states[] = {
        {{0, 0, 0}, true},  {{RL_USED_MAX, 5, 5}, true}, {{RL_USED_MAX + 1, 5, 5}, false},   {{-1, 5, 5}, false},
        {{1, 6, 5}, false}, {{1, -1, 5}, false},         {{1, INT64_MAX, INT64_MAX}, false},
    };
    for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++) {
        CHECK(rl_fixed_valid(&states[i].state) == states[i].valid);
    }

    struct rl_fixed w = {0};
    struct rl_fixed_limit lim = {.count = RL_UNITS_MAX, .period_ms = RL_PERIOD_MAX_MS};
    struct rl_ask force = {RL_UNITS_MAX, RL_FORCE, false};
    for (int i = 0; i < 1000; i++) CHECK(!call(&w, &lim, force, RL_CLOCK_MAX_US / 1000).beyond);
    struct rl_fixed before = w;
    CHECK(w.used == RL_USED_MAX && call(&w, &lim, force, RL_CLOCK_MAX_US / 1000).beyond);
    CHECK(memcmp(&w, &before, sizeof(w)) == 0);
}

/* As if the new limit had been set at the last write: what is used stays, in the window of that write. */
static void test_rescale(void) {
    static const struct {
        struct rl_fixed from;
        struct rl_fixed_limit to;
        int64_t start_ms;
    } rows[] = {
        {{5, 10300, 10700}, {9, 5000, 0}, 10300}, /* longer: from the first grant */
        {{5, 10300, 10700}, {9, 401, 0}, 10300},  /* shorter, but not over at the last write */
        {{5, 10300, 10700}, {9, 400, 0}, 10700},  /* over: a window of the last write */
        {{5, 10300, 10700}, {9, 1000, 1}, 10000}, /* aligned */
        {{5, 10300, 10700}, {9, 100, 1}, 10700},
        {{5, 10000, 10700}, {9, 1000, 0}, 10000}, /* no longer aligned: as it stands */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct rl_fixed w = rows[i].from;
        rl_fixed_rescale(&w, &rows[i].to);
        CHECK(w.used == rows[i].from.used && w.at_ms == rows[i].from.at_ms && w.start_ms == rows[i].start_ms);
        CHECK(rl_fixed_valid(&w) && rl_fixed_ends_at_ms(&w, &rows[i].to) == rows[i].start_ms + rows[i].to.period_ms);
    }
    struct rl_fixed unused = {0};
    rl_fixed_rescale(&unused, &rows[3].to);
    CHECK(rl_fixed_ends_at_ms(&unused, &rows[3].to) == 0);
}

/* ---- the law, over every window, while time goes on */

enum { CALLS = 400 };

static void test_law(uint64_t seed) {
    struct rl_fixed_limit lim = {.count = rl_unit_between(&seed, 1, 20),
                                 .period_ms = rl_unit_between(&seed, 1, 1000),
                                 .align = rl_unit_between(&seed, 0, 1)};
    struct rl_fixed w = {0};
    int64_t now_ms = rl_unit_between(&seed, 0, 100000), opened_ms = -1, held = 0;

    for (int i = 0; i < CALLS; i++) {
        if (rl_unit_between(&seed, 0, 1)) now_ms += rl_unit_between(&seed, 0, lim.period_ms / 2 + 1);
        /* The twin knows only when its window opened and what it holds. */
        if (opened_ms >= 0 && now_ms >= opened_ms + lim.period_ms) opened_ms = -1, held = 0;
        struct rl_ask ask = {rl_unit_between(&seed, 1, lim.count + 1),
                             rl_unit_between(&seed, 0, 3) == 0 ? RL_UPTO : RL_TAKE, false};
        struct rl_fixed before = w;
        struct rl_verdict v = call(&w, &lim, ask, now_ms);

        int64_t room = lim.count - held;
        int64_t want = ask.cost <= room ? ask.cost : ask.mode == RL_UPTO ? room : 0;
        CHECK(v.allowed == want);
        if (want > 0 && opened_ms < 0) opened_ms = lim.align ? now_ms / lim.period_ms * lim.period_ms : now_ms;
        held += want;
        CHECK(held <= lim.count && v.remaining == lim.count - held);
        CHECK(v.reset_ms == (held ? opened_ms + lim.period_ms - now_ms : 0));
        if (v.allowed > 0) continue;

        CHECK(memcmp(&w, &before, sizeof(w)) == 0); /* a refusal changes nothing */
        if (v.wait_ms == RL_NEVER) {
            CHECK(ask.cost > lim.count);
            continue;
        }
        CHECK(rl_fixed_check(&w, &lim, &ask, now_ms + v.wait_ms).allowed > 0);
        CHECK(rl_fixed_check(&w, &lim, &ask, now_ms + v.wait_ms - 1).allowed == 0);
    }
}

/* ---- a clock that steps back, and parameters that change: nothing is forgiven, nothing waits too long */

static void test_steps_back(uint64_t seed) {
    struct rl_fixed_limit lim = {.count = rl_unit_between(&seed, 1, 20),
                                 .period_ms = rl_unit_between(&seed, 1, 1000),
                                 .align = rl_unit_between(&seed, 0, 1)};
    struct rl_fixed w = {0};
    int64_t now_ms = 1000000;
    for (int i = 0; i < CALLS; i++) {
        bool alive = rl_fixed_ends_at_ms(&w, &lim) > now_ms;
        int64_t step_ms = rl_unit_between(&seed, -3 * lim.period_ms, lim.period_ms);
        if (now_ms + step_ms < 0) step_ms = 0;
        now_ms += step_ms;
        struct rl_ask look = {1, RL_TAKE, true};
        struct rl_verdict v = rl_fixed_check(&w, &lim, &look, now_ms);
        if (alive && step_ms <= 0) CHECK(lim.count - v.remaining == w.used); /* what is used is kept */
        CHECK(v.wait_ms <= lim.period_ms * (1 + lim.align) && v.reset_ms <= lim.period_ms * (1 + lim.align));
        if (rl_fixed_ahead(&w, &lim, now_ms)) {
            rl_fixed_take(&w, &lim, 0, now_ms); /* repaired, it answers the same */
            struct rl_verdict again = rl_fixed_check(&w, &lim, &look, now_ms);
            CHECK(same_verdict(&v, &again) && !rl_fixed_ahead(&w, &lim, now_ms));
        }
        call(&w, &lim, (struct rl_ask){rl_unit_between(&seed, 1, lim.count), RL_UPTO, false}, now_ms);
        if (w.used > 0 && rl_unit_between(&seed, 0, 4) == 0) {
            struct rl_fixed_limit to = {.count = rl_unit_between(&seed, 1, 20),
                                        .period_ms = rl_unit_between(&seed, 1, 1000),
                                        .align = rl_unit_between(&seed, 0, 1)};
            int64_t was = w.used;
            rl_fixed_rescale(&w, &to);
            CHECK(w.used == was && rl_fixed_ends_at_ms(&w, &to) > w.at_ms);
            lim = to;
        }
    }
}

int main(void) {
    test_tables();
    test_bounds();
    test_rescale();
    for (uint64_t seed = 1; seed <= 300; seed++) test_law(seed);
    for (uint64_t seed = 1; seed <= 300; seed++) test_steps_back(seed);
    return rl_unit_done("fixed");
}
