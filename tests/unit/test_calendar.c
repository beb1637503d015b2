/* Calendar periods: tables of known days, and the law against a clock that is followed minute by minute. */
#include "algo/calendar.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

#define MIN INT64_C(60)
#define HOUR (60 * MIN)
#define DAY (24 * HOUR)

static int64_t at(int64_t year, int month, int day, int hour, int minute) {
    return (rl_calendar_days(year, month, day) * DAY + hour * HOUR + minute * MIN) * 1000;
}

/* Day by day through 800 years, as one counts with a pencil. */
static void test_dates(void) {
    struct rl_date d = {1600, 1, 1};
    int64_t days = rl_calendar_days(1600, 1, 1);
    CHECK(rl_calendar_days(1970, 1, 1) == 0);
    CHECK(days == -135140);
    bool same = true;
    for (; d.year < 2400; days++) {
        struct rl_date back = rl_calendar_date(days);
        same = same && back.year == d.year && back.month == d.month && back.day == d.day &&
               rl_calendar_days(d.year, d.month, d.day) == days;
        if (++d.day <= rl_calendar_month_days(d.year, d.month)) continue;
        d.day = 1;
        if (++d.month <= 12) continue;
        d.month = 1;
        d.year++;
    }
    CHECK(same);
    CHECK(rl_calendar_days(2400, 1, 1) == days);
    CHECK(rl_calendar_month_days(2000, 2) == 29 && rl_calendar_month_days(1900, 2) == 28 &&
          rl_calendar_month_days(2024, 2) == 29 && rl_calendar_month_days(2023, 2) == 28);
}

static void test_units(void) {
    CHECK(rl_calendar_unit("hour", 4) == RL_CALENDAR_HOUR && rl_calendar_unit("YEAR", 4) == RL_CALENDAR_YEAR);
    CHECK(rl_calendar_unit("Month!", 5) == RL_CALENDAR_MONTH);
    CHECK(rl_calendar_unit("", 0) == RL_CALENDAR_NONE && rl_calendar_unit("days", 4) == RL_CALENDAR_NONE &&
          rl_calendar_unit("d", 1) == RL_CALENDAR_NONE && rl_calendar_unit("minute", 6) == RL_CALENDAR_NONE);
    CHECK(strcmp(rl_calendar_unit_name(RL_CALENDAR_WEEK), "week") == 0);
    CHECK(strcmp(rl_calendar_unit_name(RL_CALENDAR_NONE), "") == 0);
    CHECK(rl_calendar_anchor_max(RL_CALENDAR_MONTH) == 31 && rl_calendar_anchor_max(RL_CALENDAR_WEEK) == 7 &&
          rl_calendar_anchor_max(RL_CALENDAR_YEAR) == 1 && rl_calendar_anchor_max(RL_CALENDAR_NONE) == 0 &&
          rl_calendar_anchor_max((enum rl_calendar_unit)99) == 0);
}

static void test_utc(void) {
    static const struct {
        enum rl_calendar_unit unit;
        int anchor;
        int at[5], start[5], end[5];
    } rows[] = {
        {RL_CALENDAR_HOUR, 1, {2024, 2, 29, 23, 59}, {2024, 2, 29, 23, 0}, {2024, 3, 1, 0, 0}},
        {RL_CALENDAR_DAY, 1, {2024, 2, 29, 0, 0}, {2024, 2, 29, 0, 0}, {2024, 3, 1, 0, 0}},
        {RL_CALENDAR_WEEK, 1, {2025, 1, 1, 12, 0}, {2024, 12, 30, 0, 0}, {2025, 1, 6, 0, 0}},
        {RL_CALENDAR_WEEK, 1, {1970, 1, 1, 0, 0}, {1969, 12, 29, 0, 0}, {1970, 1, 5, 0, 0}},
        {RL_CALENDAR_WEEK, 4, {1970, 1, 1, 0, 0}, {1970, 1, 1, 0, 0}, {1970, 1, 8, 0, 0}},
        {RL_CALENDAR_WEEK, 7, {2025, 1, 4, 23, 59}, {2024, 12, 29, 0, 0}, {2025, 1, 5, 0, 0}},
        {RL_CALENDAR_MONTH, 1, {2023, 2, 28, 23, 59}, {2023, 2, 1, 0, 0}, {2023, 3, 1, 0, 0}},
        {RL_CALENDAR_MONTH, 31, {2023, 2, 27, 23, 59}, {2023, 1, 31, 0, 0}, {2023, 2, 28, 0, 0}},
        {RL_CALENDAR_MONTH, 31, {2023, 2, 28, 0, 0}, {2023, 2, 28, 0, 0}, {2023, 3, 31, 0, 0}},
        {RL_CALENDAR_MONTH, 30, {2024, 2, 29, 0, 0}, {2024, 2, 29, 0, 0}, {2024, 3, 30, 0, 0}},
        {RL_CALENDAR_MONTH, 15, {2024, 1, 3, 0, 0}, {2023, 12, 15, 0, 0}, {2024, 1, 15, 0, 0}},
        {RL_CALENDAR_YEAR, 1, {2024, 12, 31, 23, 59}, {2024, 1, 1, 0, 0}, {2025, 1, 1, 0, 0}},
        {RL_CALENDAR_YEAR, 1, {1969, 12, 31, 23, 59}, {1969, 1, 1, 0, 0}, {1970, 1, 1, 0, 0}},
    };
    struct rl_zone utc = rl_zone_fixed(0);
    struct rl_zone east = rl_zone_fixed(19800);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const int *t = rows[i].at, *s = rows[i].start, *e = rows[i].end;
        int64_t at_ms = at(t[0], t[1], t[2], t[3], t[4]);
        struct rl_period p = rl_calendar_period(&utc, rows[i].unit, rows[i].anchor, at_ms);
        CHECK(p.start_ms == at(s[0], s[1], s[2], s[3], s[4]));
        CHECK(p.end_ms == at(e[0], e[1], e[2], e[3], e[4]));
        p = rl_calendar_period(&east, rows[i].unit, rows[i].anchor, at_ms - 19800000);
        CHECK(p.start_ms == at(s[0], s[1], s[2], s[3], s[4]) - 19800000);
    }
}

/* ---- The twin: a clock followed minute by minute ---- */

enum { DAYS = 70, MINUTES = DAYS * 1440, SHIFTS = 12 };

static int64_t face[MINUTES];  /* what the clock shows, in minutes since the epoch */
static int64_t bound[MINUTES]; /* the minute at which the period of this one started */

static struct rl_zone random_zone(uint64_t *seed, struct rl_zone_shift *shifts, int64_t from_min) {
    struct rl_zone z = {.shifts = shifts, .first_s = (int32_t)(rl_unit_between(seed, -840, 840) * 60)};
    int64_t at_min = from_min + 2 * 1440;
    int64_t near = rl_unit_between(seed, 0, 2); /* changes every few minutes, days, or weeks */
    while (z.count < SHIFTS) {
        at_min += rl_unit_between(seed, 1, near == 0 ? 90 : near == 1 ? 3000 : 9000);
        int64_t step =
            rl_unit_between(seed, 0, 3) == 0 ? rl_unit_between(seed, -1500, 1500) : rl_unit_between(seed, -4, 4) * 30;
        int64_t offset_min = (z.count ? shifts[z.count - 1].offset_s : z.first_s) / 60 + step;
        if (offset_min < -1550 || offset_min > 1550) offset_min = 0;
        shifts[z.count++] = (struct rl_zone_shift){.at_s = at_min * 60, .offset_s = (int32_t)(offset_min * 60)};
    }
    return z;
}

/* The local day with which the period of this local day starts, looked for backwards. */
static int64_t label(enum rl_calendar_unit unit, int anchor, int64_t days) {
    for (;; days--) {
        struct rl_date d = rl_calendar_date(days);
        int last = rl_calendar_month_days(d.year, d.month);
        int64_t weekday = ((days + 3) % 7 + 7) % 7 + 1;
        if (unit == RL_CALENDAR_DAY || (unit == RL_CALENDAR_WEEK && weekday == anchor) ||
            (unit == RL_CALENDAR_MONTH && d.day == (anchor < last ? anchor : last)) ||
            (unit == RL_CALENDAR_YEAR && d.month == 1 && d.day == 1)) {
            return days;
        }
    }
}

static int64_t floor_to(int64_t n, int64_t step) {
    return (n - ((n % step) + step) % step) / step;
}

static void follow(const struct rl_zone *z, enum rl_calendar_unit unit, int anchor, int64_t from_min) {
    int64_t latest = INT64_MIN, here = INT64_MIN;
    for (int64_t i = 0; i < MINUTES; i++) {
        int64_t offset_s = z->first_s;
        for (uint32_t k = 0; k < z->count && z->shifts[k].at_s <= (from_min + i) * 60; k++) {
            offset_s = z->shifts[k].offset_s;
        }
        face[i] = from_min + i + offset_s / 60;
        bool starts;
        if (unit == RL_CALENDAR_HOUR) {
            starts = i > 0 && (face[i] < face[i - 1] || floor_to(face[i], 60) != floor_to(face[i - 1], 60));
        } else {
            if (face[i] > latest) latest = face[i];
            int64_t was = here;
            if (i == 0 || floor_to(latest, 1440) != floor_to(i > 0 ? face[i - 1] : 0, 1440)) {
                here = label(unit, anchor, floor_to(latest, 1440));
            }
            starts = i > 0 && here != was;
        }
        bound[i] = starts ? i : i > 0 ? bound[i - 1] : -1;
    }
}

static void test_against_the_twin(void) {
    uint64_t seed = 11;
    static struct rl_zone_shift shifts[SHIFTS];
    for (int round = 0; round < 60; round++) {
        int64_t from_min = at(rl_unit_between(&seed, 1970, 2050), (int)rl_unit_between(&seed, 1, 12), 1, 0, 0) / 60000;
        struct rl_zone z = random_zone(&seed, shifts, from_min);
        enum rl_calendar_unit unit = (enum rl_calendar_unit)rl_unit_between(&seed, RL_CALENDAR_HOUR, RL_CALENDAR_YEAR);
        int anchor = (int)rl_unit_between(&seed, 1, rl_calendar_anchor_max(unit));
        follow(&z, unit, anchor, from_min);
        bool same = true, apart = true;
        for (int64_t i = 3000; i < MINUTES - 1; i += rl_unit_between(&seed, 1, 200)) {
            int64_t at_ms = (from_min + i) * 60000 + rl_unit_between(&seed, 0, 59999);
            struct rl_period p = rl_calendar_period(&z, unit, anchor, at_ms);
            apart = apart && p.start_ms <= at_ms && at_ms < p.end_ms;
            if (bound[i] >= 0)
                same = same && p.start_ms == (from_min + bound[i]) * 60000;
            else
                same = same && p.start_ms <= from_min * 60000;
            int64_t end = p.end_ms / 60000 - from_min;
            if (end < MINUTES) same = same && bound[end] == end && bound[end - 1] == bound[i];
        }
        CHECK(same);
        CHECK(apart);
    }
}

/* Periods partition time, however wild the zone: walking from end to end meets every random instant's own period. */
static void test_partition(void) {
    uint64_t seed = 12;
    static struct rl_zone_shift shifts[SHIFTS];
    for (int round = 0; round < 3000; round++) {
        int64_t from_min = at(rl_unit_between(&seed, 1970, 2200), (int)rl_unit_between(&seed, 1, 12), 1, 0, 0) / 60000;
        struct rl_zone z = random_zone(&seed, shifts, from_min);
        z.ruled = rl_unit_between(&seed, 0, 1);
        z.saving = true;
        z.standard_s = (int32_t)rl_unit_between(&seed, -50400, 50400);
        z.saving_s = z.standard_s + (int32_t)rl_unit_between(&seed, -7200, 7200);
        z.begins = (struct rl_zone_rule){'M', (int16_t)rl_unit_between(&seed, 1, 12), 2, 0, 7200};
        z.ends = (struct rl_zone_rule){'J', 0, 0, (int16_t)rl_unit_between(&seed, 1, 365), -400000};
        enum rl_calendar_unit unit = (enum rl_calendar_unit)rl_unit_between(&seed, RL_CALENDAR_HOUR, RL_CALENDAR_YEAR);
        int anchor = (int)rl_unit_between(&seed, 1, rl_calendar_anchor_max(unit));
        int64_t at_ms = (from_min + rl_unit_between(&seed, 0, 400 * 1440)) * 60000;
        struct rl_period p = rl_calendar_period(&z, unit, anchor, at_ms);
        int64_t start_ms = p.start_ms;
        bool held = p.start_ms <= at_ms && at_ms < p.end_ms;
        for (int n = 1; n <= 20; n++) {
            struct rl_period last = rl_calendar_period(&z, unit, anchor, p.end_ms - 1);
            struct rl_period inner =
                rl_calendar_period(&z, unit, anchor, rl_unit_between(&seed, p.start_ms, p.end_ms - 1));
            struct rl_period next = rl_calendar_period(&z, unit, anchor, p.end_ms);
            held = held && memcmp(&last, &p, sizeof(p)) == 0 && memcmp(&inner, &p, sizeof(p)) == 0 &&
                   next.start_ms == p.end_ms && next.end_ms > next.start_ms &&
                   p.end_ms - start_ms <= rl_calendar_longest_ms(unit, n) &&
                   p.end_ms - p.start_ms < RL_CALENDAR_SPAN_MAX_MS;
            p = next;
        }
        CHECK(held);
    }
}

int main(void) {
    test_dates();
    test_units();
    test_utc();
    test_against_the_twin();
    test_partition();
    return rl_unit_done("calendar");
}
