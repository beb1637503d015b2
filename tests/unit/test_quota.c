/* Quotas: tables of instants, laws under random traffic, and a slow twin that keeps every grant for ever. */
#include "algo/quota.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

#define HOUR INT64_C(3600000)
#define DAY (24 * HOUR)
#define D(n) (DAY * (n)) /* the day so many after the epoch, UTC */

static int fail_after = -1, held;

static bool fails(void) {
    if (fail_after == 0) return true;
    if (fail_after > 0) fail_after--;
    return false;
}

static void *test_alloc(size_t size) {
    if (fails()) return NULL;
    held++;
    return malloc(size);
}

static void *test_realloc(void *p, size_t size) {
    if (fails()) return NULL;
    if (!p) held++;
    return realloc(p, size);
}

static void test_free(void *p) {
    if (p) held--;
    free(p);
}

static size_t test_size(void *p) {
    return p ? 1 : 0;
}

static const struct rl_allocator mem = {test_alloc, test_realloc, test_free, test_size};
static const struct rl_zone *const utc = &(const struct rl_zone){.first_s = 0};

static struct rl_quota_limit limit(int64_t count, enum rl_calendar_unit unit, int64_t history) {
    return (struct rl_quota_limit){.count = count, .unit = unit, .anchor = 1, .history = history};
}

/* What a command does: the state's own period if it is current, else the calendar's. */
static struct rl_period period_of(const struct rl_quota *q, const struct rl_quota_limit *lim, int64_t now_ms) {
    struct rl_period p;
    if (rl_quota_current(q, now_ms, &p)) return p;
    return rl_calendar_period(utc, (enum rl_calendar_unit)lim->unit, (int)lim->anchor, now_ms);
}

static struct rl_verdict check(const struct rl_quota *q, const struct rl_quota_limit *lim, enum rl_mode mode,
                               int64_t cost, int64_t now_ms) {
    struct rl_period p = period_of(q, lim, now_ms);
    struct rl_ask ask = {.cost = cost, .mode = mode};
    return rl_quota_check(q, lim, &p, &ask, now_ms);
}

static unsigned take(struct rl_quota *q, const struct rl_quota_limit *lim, int64_t cost, int64_t now_ms) {
    struct rl_period p = period_of(q, lim, now_ms);
    CHECK(rl_quota_reserve(q, lim, now_ms, &mem));
    return rl_quota_take(q, lim, &p, cost, now_ms);
}

static struct rl_verdict ask(struct rl_quota *q, const struct rl_quota_limit *lim, enum rl_mode mode, int64_t cost,
                             int64_t now_ms) {
    struct rl_verdict v = check(q, lim, mode, cost, now_ms);
    struct rl_ask a = {.cost = cost, .mode = mode};
    if (v.allowed > 0 && !v.beyond) take(q, lim, rl_verdict_delta(&v, &a), now_ms);
    return v;
}

struct row {
    int64_t at_ms;
    enum rl_mode mode;
    int64_t cost, allowed, remaining, wait_ms, reset_ms;
};

static void run(const struct rl_quota_limit *lim, const struct row *rows, size_t n) {
    struct rl_quota q = {0};
    CHECK(rl_quota_limit_valid(lim));
    for (size_t i = 0; i < n; i++) {
        struct rl_verdict v = ask(&q, lim, rows[i].mode, rows[i].cost, rows[i].at_ms);
        if (!CHECK(v.allowed == rows[i].allowed && v.remaining == rows[i].remaining && v.wait_ms == rows[i].wait_ms &&
                   v.reset_ms == rows[i].reset_ms && v.limit == lim->count && !v.beyond)) {
            printf("  row %zu: %ld %ld %ld %ld\n", i, (long)v.allowed, (long)v.remaining, (long)v.wait_ms,
                   (long)v.reset_ms);
        }
        CHECK(rl_quota_valid(&q));
    }
    rl_quota_reset(&q, &mem);
}

static void test_table(void) {
    static const struct row rows[] = {
        /* at           mode       cost allowed remaining wait      reset */
        {D(9) + HOUR, RL_TAKE, 11, 0, 10, RL_NEVER, 0},        /* more than there ever is */
        {D(9) + HOUR, RL_TAKE, 4, 4, 6, 0, 23 * HOUR},         /**/
        {D(9) + HOUR, RL_TAKE, 7, 0, 6, 23 * HOUR, 23 * HOUR}, /* tomorrow */
        {D(9) + HOUR, RL_UPTO, 7, 6, 0, 0, 23 * HOUR},         /* what is left */
        {D(9) + HOUR, RL_UPTO, 7, 0, 0, 23 * HOUR, 23 * HOUR}, /* nothing */
        {D(9) + HOUR, RL_REFUND, 3, 3, 3, 0, 23 * HOUR},       /**/
        {D(9) + 2 * HOUR, RL_FORCE, 9, 9, -6, 0, 22 * HOUR},   /* usage known afterwards */
        {D(9) + 2 * HOUR, RL_TAKE, 1, 0, -6, 22 * HOUR, 22 * HOUR},
        {D(10) - 1, RL_TAKE, 1, 0, -6, 1, 1},            /**/
        {D(10), RL_TAKE, 1, 1, 9, 0, DAY},               /* overuse ended with its day */
        {D(10), RL_REFUND, 5, 1, 10, 0, 0},              /* no more than was used, in this day */
        {D(12), RL_REFUND, 5, 0, 10, 0, 0},              /**/
        {D(12), RL_TAKE, 10, 10, 0, 0, DAY},             /**/
        {D(12) - 1, RL_TAKE, 1, 0, 0, DAY + 1, DAY + 1}, /* stepped back into the day before: still today's */
        {D(11), RL_TAKE, 1, 0, 0, 2 * DAY, 2 * DAY},     /* one day is the most */
        {D(11) - 1, RL_TAKE, 1, 0, 0, 1, 1},             /* then it is moved to the day of now */
        {D(5), RL_TAKE, 1, 0, 0, DAY, DAY},              /**/
        {D(13), RL_TAKE, 1, 1, 9, 0, DAY},               /**/
    };
    struct rl_quota_limit lim = limit(10, RL_CALENDAR_DAY, 0);
    run(&lim, rows, sizeof(rows) / sizeof(rows[0]));
}

static void test_count_zero(void) {
    static const struct row rows[] = {
        {D(9), RL_TAKE, 1, 0, 0, RL_NEVER, 0},  {D(9), RL_UPTO, 5, 0, 0, RL_NEVER, 0},
        {D(9), RL_FORCE, 5, 5, -5, 0, DAY},     {D(9), RL_TAKE, 1, 0, -5, RL_NEVER, DAY},
        {D(10), RL_TAKE, 1, 0, 0, RL_NEVER, 0},
    };
    struct rl_quota_limit lim = limit(0, RL_CALENDAR_DAY, 0);
    run(&lim, rows, sizeof(rows) / sizeof(rows[0]));
}

static void test_peek_and_bounds(void) {
    struct rl_quota q = {0};
    struct rl_quota_limit lim = limit(RL_UNITS_MAX, RL_CALENDAR_YEAR, 0);
    struct rl_period p = period_of(&q, &lim, D(100));
    CHECK(p.start_ms == 0 && p.end_ms == D(365));
    struct rl_ask peek = {.cost = 5, .mode = RL_TAKE, .peek = true};
    struct rl_verdict v = rl_quota_check(&q, &lim, &p, &peek, D(100));
    CHECK(v.allowed == 5 && v.remaining == RL_UNITS_MAX && v.reset_ms == 0);
    int64_t used = 0;
    for (v = ask(&q, &lim, RL_FORCE, RL_UNITS_MAX, D(100)); !v.beyond; used += RL_UNITS_MAX) {
        v = ask(&q, &lim, RL_FORCE, RL_UNITS_MAX, D(100));
    }
    CHECK(q.used == RL_USED_MAX && used == RL_USED_MAX);
    CHECK(rl_quota_valid(&q));
    CHECK(rl_quota_percent(q.used, lim.count) == 100000 && rl_quota_percent(q.used, 1) == RL_USED_MAX * 100);
    CHECK(rl_quota_percent(0, 0) == 0 && rl_quota_percent(7, 0) == 100 && rl_quota_percent(199, 200) == 99);
}

static void test_limits(void) {
    struct rl_quota_limit good = limit(10, RL_CALENDAR_MONTH, 366), lim;
    CHECK(rl_zone_pack(good.zone, "America/Sao_Paulo", 17));
    CHECK(rl_quota_pack_alerts(good.alerts, (const int64_t[]){95, 80, 1000, 1}, 4));
    good.anchor = 31;
    CHECK(rl_quota_limit_valid(&good));
    int64_t percents[RL_QUOTA_ALERTS_MAX];
    CHECK(rl_quota_alerts(&good, percents) == 4);
    CHECK(percents[0] == 1 && percents[1] == 80 && percents[2] == 95 && percents[3] == 1000);
    const struct {
        size_t word;
        int64_t value;
    } bad[] = {{0, -1},
               {0, RL_UNITS_MAX + 1},
               {1, 0},
               {1, 6},
               {1, -1},
               {1, INT64_MAX},
               {2, 0},
               {2, 32},
               {3, -1},
               {3, 367},
               {4, 80 | 80 << 16},
               {4, 95 | 80 << 16},
               {4, 1001},
               {4, -1},
               {4, 0},
               {5, 1},
               {6, 1},
               {6, -1}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        int64_t words[sizeof(lim) / sizeof(int64_t)];
        memcpy(words, &good, sizeof(lim));
        words[bad[i].word] = bad[i].value;
        if (bad[i].word == 4 && bad[i].value == 0) words[5] = 50; /* a gap */
        memcpy(&lim, words, sizeof(lim));
        CHECK(!rl_quota_limit_valid(&lim));
    }
    lim = good;
    lim.unit = RL_CALENDAR_WEEK;
    CHECK(!rl_quota_limit_valid(&lim));
    lim.anchor = 7;
    CHECK(rl_quota_limit_valid(&lim));
    for (int unit = RL_CALENDAR_HOUR; unit <= RL_CALENDAR_YEAR; unit++) {
        lim.unit = unit;
        lim.anchor = 2;
        CHECK(rl_quota_limit_valid(&lim) == (unit == RL_CALENDAR_WEEK || unit == RL_CALENDAR_MONTH));
    }
    int64_t words[2];
    CHECK(!rl_quota_pack_alerts(words, (const int64_t[]){1, 2, 3, 4, 5, 6, 7, 8, 9}, 9));
    CHECK(rl_quota_pack_alerts(words, (const int64_t[]){8, 7, 6, 5, 4, 3, 2, 1}, 8));
    CHECK(words[0] == (1 | 2 << 16 | INT64_C(3) << 32 | INT64_C(4) << 48));
    CHECK(!rl_quota_pack_alerts(words, (const int64_t[]){80, 80}, 2));
    CHECK(!rl_quota_pack_alerts(words, (const int64_t[]){0}, 1) &&
          !rl_quota_pack_alerts(words, (const int64_t[]){1001}, 1));
    CHECK(rl_quota_pack_alerts(words, NULL, 0) && words[0] == 0 && words[1] == 0);
}

static void test_alerts(void) {
    struct rl_quota q = {0};
    struct rl_quota_limit lim = limit(7, RL_CALENDAR_DAY, 0);
    CHECK(rl_quota_pack_alerts(lim.alerts, (const int64_t[]){50, 90, 200}, 3));
    CHECK(take(&q, &lim, 3, D(1)) == 0); /* 42 % */
    CHECK(take(&q, &lim, 1, D(1)) == 1); /* 57 % */
    CHECK(take(&q, &lim, -4, D(1)) == 0 && q.used == 0);
    CHECK(rl_quota_ends_at_ms(&q, &lim) == D(2)); /* what was told is remembered */
    CHECK(take(&q, &lim, 6, D(1)) == 0);          /* 85 %, the half stays silent */
    CHECK(take(&q, &lim, 8, D(1)) == 6);          /* two at once */
    CHECK(take(&q, &lim, 1, D(1)) == 0);
    CHECK(take(&q, &lim, 7, D(2)) == 3); /* a new day */

    struct rl_quota_limit more = lim;
    more.count = 100; /* the same period: once each */
    rl_quota_rescale(&q, &lim, &more);
    CHECK(take(&q, &more, 88, D(2)) == 0); /* 95 % */
    CHECK(rl_quota_pack_alerts(more.alerts, (const int64_t[]){85, 95, 99}, 3));
    CHECK(take(&q, &more, 1, D(2)) == 2); /* 95 is new and higher than what was told; 85 was passed */
    CHECK(q.alerted == 95);

    struct rl_quota_limit month = more;
    month.unit = RL_CALENDAR_MONTH;
    month.count = 1000;
    rl_quota_rescale(&q, &more, &month);
    CHECK(take(&q, &month, 1, D(2)) == 0 && q.alerted == 0); /* 9 % of the month's: all can be told again */
    CHECK(take(&q, &month, 800, D(2)) == 1);
    rl_quota_rescale(&q, &month, &more);
    CHECK(take(&q, &more, 1, D(2)) == 6); /* 85 is still reached, and not repeated */

    struct rl_quota none = {0};
    lim.count = 0; /* reached as soon as anything is used */
    CHECK(take(&none, &lim, 0, D(1)) == 0 && take(&none, &lim, 1, D(1)) == 7);

    struct rl_quota back = {0};
    lim.count = 10;
    more = lim;
    more.unit = RL_CALENDAR_WEEK;
    more.count = 0;
    CHECK(take(&back, &lim, 9, D(50)) == 3 && take(&back, &lim, -9, D(50)) == 0 && back.alerted == 90);
    rl_quota_rescale(&back, &lim, &more); /* unused, nothing is reached, not even of a count of 0 */
    CHECK(back.alerted == 0);
    back = (struct rl_quota){0}; /* a step back repeats nothing */
    CHECK(take(&back, &lim, 9, D(50)) == 3);
    CHECK(rl_quota_ahead(&back, D(40)) && take(&back, &lim, 0, D(40)) == 0 && back.alerted == 90);
    CHECK(!rl_quota_ahead(&back, D(40)) && back.start_ms == D(40) && back.used == 9);
}

static void test_rescale(void) {
    struct rl_quota q = {0};
    struct rl_quota_limit day = limit(100, RL_CALENDAR_DAY, 5), month = limit(1000, RL_CALENDAR_MONTH, 5), more = day;
    take(&q, &day, 60, D(10) + HOUR);
    more.count = 200;
    rl_quota_rescale(&q, &day, &more);
    CHECK(check(&q, &more, RL_TAKE, 1, D(10) + HOUR).remaining == 139);
    more.count = 50;
    rl_quota_rescale(&q, &day, &more);
    CHECK(check(&q, &more, RL_TAKE, 1, D(10) + HOUR).remaining == -10);

    struct rl_quota copy = q; /* the day isn't over: the month has it */
    rl_quota_rescale(&copy, &day, &month);
    struct rl_verdict v = check(&copy, &month, RL_TAKE, 1, D(10) + 2 * HOUR);
    CHECK(v.remaining == 939 && v.reset_ms == D(31) - D(10) - 2 * HOUR);
    take(&copy, &month, 1, D(10) + 2 * HOUR);
    CHECK(copy.start_ms == 0 && copy.end_ms == D(31) && copy.used == 61 && !copy.moved && copy.past == NULL);
    CHECK(rl_quota_current(&copy, D(20), &(struct rl_period){0, 0}));

    copy = q; /* the day is over: nothing to move, and it becomes history */
    rl_quota_rescale(&copy, &day, &month);
    CHECK(check(&copy, &month, RL_TAKE, 1, D(11)).remaining == 999);
    take(&copy, &month, 1, D(11));
    CHECK(copy.used == 1 && copy.past && copy.past->count == 1 && copy.past->rows[0].used == 60 &&
          copy.past->rows[0].limit == 100 && copy.past->rows[0].start_ms == D(10));

    /* Flapping between calendars forgives nothing within the period. */
    struct rl_quota_limit week = limit(100, RL_CALENDAR_WEEK, 0);
    struct rl_quota flap = {0};
    int64_t granted = 0;
    for (int i = 0; i < 500; i++) {
        const struct rl_quota_limit *lim = i % 2 ? &day : &week;
        if (i > 0) rl_quota_rescale(&flap, i % 2 ? &week : &day, lim);
        granted += ask(&flap, lim, RL_TAKE, 1, D(14) + i).allowed;
    }
    CHECK(granted == 100);
    rl_quota_reset(&copy, &mem);
}

static bool row_is(const struct rl_quota_row *r, int64_t start_ms, int64_t used, int64_t lim) {
    return r->start_ms == start_ms && r->used == used && r->limit == lim;
}

static void test_history(void) {
    struct rl_quota q = {0};
    struct rl_quota_row rows[400];
    struct rl_quota_limit lim = limit(100, RL_CALENDAR_DAY, 4);
    CHECK(rl_quota_history(&q, &lim, utc, D(1), rows, 400) == 0);
    take(&q, &lim, 5, D(10));
    CHECK(rl_quota_history(&q, &lim, utc, D(10) + 1, rows, 400) == 0); /* nothing is past */
    CHECK(rl_quota_history(&q, &lim, utc, D(11), rows, 400) == 1 && row_is(&rows[0], D(10), 5, 100));
    CHECK(rl_quota_history(&q, &lim, utc, D(13), rows, 400) == 3);
    CHECK(row_is(&rows[0], D(12), 0, 100) && row_is(&rows[1], D(11), 0, 100) && row_is(&rows[2], D(10), 5, 100));
    CHECK(rl_quota_history(&q, &lim, utc, D(13), rows, 2) == 0); /* all that was asked for is idle */
    CHECK(rl_quota_history(&q, &lim, NULL, D(13), rows, 400) == 1 && row_is(&rows[0], D(10), 5, 100));
    CHECK(rl_quota_history(&q, &lim, utc, D(14), rows, 400) == 4 && row_is(&rows[3], D(10), 5, 100));
    CHECK(rl_quota_history(&q, &lim, utc, D(15), rows, 400) == 0); /* four idle days: as if never used */
    CHECK(rl_quota_ends_at_ms(&q, &lim) >= D(15) && rl_quota_ends_at_ms(&q, &lim) <= D(18));

    struct rl_quota_limit fewer = lim;
    fewer.count = 70;
    rl_quota_rescale(&q, &lim, &fewer);
    take(&q, &fewer, 7, D(12));
    CHECK(rl_quota_history(&q, &fewer, utc, D(12), rows, 400) == 2 && row_is(&rows[0], D(11), 0, 100));
    CHECK(rl_quota_history(&q, &fewer, utc, D(13), rows, 400) == 3 && row_is(&rows[0], D(12), 7, 70));
    CHECK(rl_quota_history(&q, &fewer, utc, D(15), rows, 400) == 4); /* the 14th, 13th, 12th, and the idle 11th */
    CHECK(row_is(&rows[2], D(12), 7, 70) && row_is(&rows[3], D(11), 0, 100));

    take(&q, &lim, 0, D(1000)); /* a long sleep costs one row */
    CHECK(q.past->count == 2 && q.used == 0);
    CHECK(rl_quota_history(&q, &lim, utc, D(1000), rows, 400) == 0);
    take(&q, &lim, 9, D(1000));
    for (int64_t day = 1001; day <= 1010; day++) take(&q, &lim, day, D(day));
    CHECK(q.past->count == 4 && q.past->room == 4);
    CHECK(rl_quota_history(&q, &lim, utc, D(1010), rows, 400) == 4 && row_is(&rows[0], D(1009), 1009, 100));
    CHECK(rl_quota_memory(&q, &mem) == 1);

    struct rl_quota_limit two = lim, zero = lim;
    two.history = 2;
    zero.history = 0;
    CHECK(rl_quota_history(&q, &two, utc, D(1010), rows, 400) == 2);
    take(&q, &two, 1, D(1010)); /* kept until the next period */
    CHECK(q.past->count == 4);
    take(&q, &two, 1, D(1011));
    CHECK(q.past->count == 2 && q.past->room == 2 && row_is(&q.past->rows[1], D(1010), 1011, 100));
    CHECK(rl_quota_ends_at_ms(&q, &zero) == D(1012));
    take(&q, &zero, 1, D(1012));
    CHECK(q.past == NULL);
    CHECK(rl_quota_history(&q, &zero, utc, D(1013), rows, 400) == 0);
    rl_quota_reset(&q, &mem);

    /* Months, then days: each row keeps its own bounds, and idle days are never told inside of a month. */
    struct rl_quota_limit month = limit(10, RL_CALENDAR_MONTH, 10);
    take(&q, &month, 3, D(5));  /* January 1970 */
    take(&q, &month, 4, D(40)); /* February */
    lim.history = 10;
    rl_quota_rescale(&q, &month, &lim);
    take(&q, &lim, 1, D(41)); /* 4 move into February 11 */
    CHECK(rl_quota_history(&q, &lim, utc, D(42), rows, 400) == 10 && row_is(&rows[0], D(41), 5, 100));
    lim.history = 366;
    CHECK(rl_quota_history(&q, &lim, utc, D(42), rows, 400) == 12 && row_is(&rows[11], 0, 3, 10) &&
          row_is(&rows[10], D(31), 0, 10));
    rl_quota_reset(&q, &mem);
    CHECK(held == 0);
}

static void test_short_memory(void) {
    struct rl_quota q = {0};
    struct rl_quota_limit lim = limit(100, RL_CALENDAR_DAY, 30);
    take(&q, &lim, 5, D(1));
    struct rl_period p = {D(2), D(3)};
    fail_after = 0;
    CHECK(!rl_quota_reserve(&q, &lim, D(2), &mem));
    CHECK(q.used == 5 && q.past == NULL);
    rl_quota_take(&q, &lim, &p, 6, D(2)); /* goes on, without the row */
    CHECK(q.used == 6 && q.past == NULL && rl_quota_valid(&q));
    fail_after = -1;
    for (int64_t day = 3; day < 12; day++) take(&q, &lim, 1, D(day));
    CHECK(q.past->count == 9);
    struct rl_quota copy;
    fail_after = 0;
    CHECK(!rl_quota_clone(&copy, &q, &mem) && copy.past == NULL && copy.used == 0);
    unsigned char bytes[RL_QUOTA_ENCODED_MAX];
    rl_quota_encode(&q, bytes);
    CHECK(!rl_quota_decode(&copy, bytes, rl_quota_encoded_size(&q), &mem));
    fail_after = -1;
    CHECK(rl_quota_clone(&copy, &q, &mem) && copy.past != q.past && copy.past->count == 9);
    rl_quota_reset(&copy, &mem);
    CHECK(copy.past == NULL && copy.end_ms == 0);
    rl_quota_reset(&q, &mem);
    CHECK(held == 0);
}

static bool same_state(const struct rl_quota *a, const struct rl_quota *b) {
    static unsigned char x[RL_QUOTA_ENCODED_MAX], y[RL_QUOTA_ENCODED_MAX];
    size_t len = rl_quota_encoded_size(a);
    rl_quota_encode(a, x);
    rl_quota_encode(b, y);
    return len == rl_quota_encoded_size(b) && memcmp(x, y, len) == 0;
}

static void test_bytes(void) {
    uint64_t seed = 21;
    struct rl_quota q = {0}, back;
    struct rl_quota_limit lim = limit(100, RL_CALENDAR_HOUR, 366);
    static unsigned char bytes[RL_QUOTA_ENCODED_MAX + 64];
    CHECK(rl_quota_pack_alerts(lim.alerts, (const int64_t[]){10, 1000}, 2));
    CHECK(rl_quota_encoded_size(&q) == 40);
    rl_quota_encode(&q, bytes);
    CHECK(rl_quota_decode(&back, bytes, 40, &mem) && same_state(&q, &back));
    for (int i = 0; i < 400; i++) {
        take(&q, &lim, rl_unit_between(&seed, 1, 2000), HOUR * i);
        q.moved = i % 3 == 0;
        size_t len = rl_quota_encoded_size(&q);
        rl_quota_encode(&q, bytes);
        CHECK(rl_quota_decode(&back, bytes, len, &mem) && same_state(&q, &back));
        rl_quota_reset(&back, &mem);
        CHECK(!rl_quota_decode(&back, bytes, len - 1, &mem) && !rl_quota_decode(&back, bytes, len + 8, &mem));
    }
    CHECK(q.past->count == 366);
    CHECK(!rl_quota_decode(&back, bytes, RL_QUOTA_ENCODED_MAX + 32, &mem));
    rl_quota_reset(&q, &mem);
    take(&q, &lim, 5, 0);
    take(&q, &lim, 5, HOUR);
    for (int i = 0; i < 100000; i++) { /* bent: what is still read is sound, and says the same when written again */
        size_t len = rl_quota_encoded_size(&q);
        rl_quota_encode(&q, bytes);
        for (int64_t n = rl_unit_between(&seed, 1, 3); n > 0; n--) {
            bytes[rl_unit_random(&seed) % len] = (unsigned char)rl_unit_random(&seed);
        }
        if (!rl_quota_decode(&back, bytes, len, &mem)) continue;
        static unsigned char again[RL_QUOTA_ENCODED_MAX];
        rl_quota_encode(&back, again);
        if (!rl_quota_valid(&back) || memcmp(bytes, again, len) != 0) CHECK(false);
        ask(&back, &lim, RL_FORCE, 1, HOUR * rl_unit_between(&seed, 0, 1000));
        rl_quota_reset(&back, &mem);
    }
    rl_quota_reset(&q, &mem);
    CHECK(held == 0);
}

/* ---- The twin: every grant for ever, in plain days ---- */

enum { TWIN_DAYS = 800 };
static int64_t twin_used[TWIN_DAYS], twin_limit[TWIN_DAYS], twin_told[TWIN_DAYS];

static size_t twin_history(int64_t today, int64_t history, int64_t first, struct rl_quota_row *rows) {
    size_t n = 0;
    bool idle = true;
    for (int64_t day = today - 1; day >= first && (int64_t)n < history; day--) {
        int64_t back = day; /* an idle day has the limit of the last that wasn't */
        while (twin_used[back] == 0) back--;
        rows[n++] = (struct rl_quota_row){.start_ms = D(day), .used = twin_used[day], .limit = twin_limit[back]};
        if (twin_used[day] > 0) idle = false;
    }
    return idle ? 0 : n;
}

static void test_against_the_twin(void) {
    uint64_t seed = 31;
    for (int round = 0; round < 30; round++) {
        memset(twin_used, 0, sizeof(twin_used));
        memset(twin_told, 0, sizeof(twin_told));
        struct rl_quota q = {0}, replica = {0};
        struct rl_quota_limit lim =
            limit(rl_unit_between(&seed, 1, 60), RL_CALENDAR_DAY, rl_unit_between(&seed, 1, 40));
        CHECK(rl_quota_pack_alerts(lim.alerts, (const int64_t[]){50, 100, 150}, 3));
        int64_t now_ms = D(1), first = 0;
        while (now_ms < D(TWIN_DAYS - 70)) {
            now_ms += rl_unit_between(&seed, 0, 40) == 0 ? rl_unit_between(&seed, 1, 60 * DAY)
                                                         : rl_unit_between(&seed, 0, DAY / 3);
            int64_t today = now_ms / DAY, left_ms = D(today + 1) - now_ms;
            struct rl_quota_limit before = lim;
            if (rl_unit_between(&seed, 0, 30) == 0) lim.count = rl_unit_between(&seed, 1, 60);
            rl_quota_rescale(&q, &before, &lim);
            rl_quota_rescale(&replica, &before, &lim);

            enum rl_mode mode = (enum rl_mode)rl_unit_between(&seed, RL_TAKE, RL_REFUND);
            int64_t cost = rl_unit_between(&seed, 1, 30), used = twin_used[today];
            int64_t room = lim.count - used < 0 ? 0 : lim.count - used, allowed = cost, wait_ms = 0;
            if (mode == RL_TAKE && cost > room) allowed = 0;
            if (mode == RL_UPTO && cost > room) allowed = room;
            if (mode == RL_REFUND && cost > used) allowed = used;
            if (allowed == 0 && mode == RL_TAKE) wait_ms = cost > lim.count ? -1 : left_ms;
            if (allowed == 0 && mode == RL_UPTO) wait_ms = left_ms;
            int64_t after = mode == RL_REFUND ? used - allowed : used + allowed;

            struct rl_verdict v = check(&q, &lim, mode, cost, now_ms);
            bool same = v.allowed == allowed && v.limit == lim.count && v.remaining == lim.count - after &&
                        v.wait_ms == wait_ms && v.reset_ms == (after > 0 ? left_ms : 0) && !v.beyond;
            if (v.wait_ms > 0) {
                int64_t later_ms = now_ms + v.wait_ms;
                same = same && check(&q, &lim, mode, cost, later_ms).allowed > 0 &&
                       check(&q, &lim, mode, cost, later_ms - 1).allowed == 0;
            }
            if (allowed > 0) {
                struct rl_period p = period_of(&q, &lim, now_ms); /* shipped; the replica asks no calendar */
                unsigned want = 0, told = take(&q, &lim, after - used, now_ms);
                rl_quota_reserve(&replica, &lim, now_ms, &mem);
                same = same && rl_quota_take(&replica, &lim, &p, after - used, now_ms) == told;
                const int64_t percents[] = {50, 100, 150};
                for (int i = 0; i < 3 && after > used; i++) {
                    if (after * 100 < percents[i] * lim.count || twin_told[today] & (1 << i)) continue;
                    /* a lower one, not told before, is not told after a higher one: the limit was raised since */
                    if (!(twin_told[today] >> (i + 1))) want |= 1U << i;
                    twin_told[today] |= 1 << i;
                }
                same = same && told == want && same_state(&q, &replica);
                if (after > 0 && first == 0) first = today;
            }
            twin_used[today] = after;
            if (allowed > 0 || after == 0) twin_limit[today] = lim.count;

            struct rl_quota_row rows[400], want_rows[400];
            int64_t recorded = q.past ? q.past->rows[0].start_ms / DAY : today;
            if (q.used > 0 && q.end_ms <= now_ms && !q.past) recorded = q.start_ms / DAY;
            size_t n = rl_quota_history(&q, &lim, utc, now_ms, rows, 400);
            same = same && n == twin_history(today, lim.history, recorded, want_rows);
            for (size_t i = 0; i < n; i++) {
                same = same && row_is(&rows[i], want_rows[i].start_ms, want_rows[i].used, want_rows[i].limit);
            }
            if (!CHECK(same)) break;
        }
        rl_quota_reset(&q, &mem);
        rl_quota_reset(&replica, &mem);
    }
    CHECK(held == 0);
}

/* With a clock that jumps either way a key is never locked for longer than to the end of the next period, what is
 * granted in one stretch of a period never exceeds the count, and a repair happens once. */
static void test_jumping_clock(void) {
    uint64_t seed = 41;
    for (int round = 0; round < 2000; round++) {
        struct rl_quota q = {0};
        enum rl_calendar_unit unit = (enum rl_calendar_unit)rl_unit_between(&seed, RL_CALENDAR_HOUR, RL_CALENDAR_YEAR);
        struct rl_quota_limit lim = limit(rl_unit_between(&seed, 1, 20), unit, 0);
        int64_t now_ms = D(20000);
        for (int i = 0; i < 30; i++) {
            int64_t step_ms =
                rl_unit_between(&seed, -3, 3) * rl_unit_between(&seed, 0, rl_calendar_longest_ms(unit, 1));
            now_ms += step_ms;
            int64_t had = rl_quota_used(&q, now_ms);
            if (rl_quota_ahead(&q, now_ms)) {
                take(&q, &lim, 0, now_ms);
                CHECK(q.used == had && !rl_quota_ahead(&q, now_ms) && q.start_ms <= now_ms && now_ms < q.end_ms);
            }
            struct rl_verdict v = ask(&q, &lim, RL_TAKE, 1, now_ms);
            CHECK(v.allowed == (had < lim.count) && (v.allowed || v.wait_ms <= rl_calendar_longest_ms(unit, 2)));
            CHECK(rl_quota_used(&q, now_ms) <= lim.count && rl_quota_valid(&q));
        }
    }
}

int main(void) {
    test_table();
    test_count_zero();
    test_peek_and_bounds();
    test_limits();
    test_alerts();
    test_rescale();
    test_history();
    test_short_memory();
    test_bytes();
    test_against_the_twin();
    test_jumping_clock();
    return rl_unit_done("quota");
}
