#include "algo/calendar.h"

#include <string.h>
#include <strings.h>

#define DAY_S INT64_C(86400)
#define HOUR_S INT64_C(3600)
#define DAY_MS (DAY_S * 1000)

static const struct {
    const char *name;
    int anchor_max;
    int64_t ms;
} units[] = {
    [RL_CALENDAR_HOUR] = {"hour", 1, HOUR_S * 1000}, [RL_CALENDAR_DAY] = {"day", 1, DAY_MS},
    [RL_CALENDAR_WEEK] = {"week", 7, 7 * DAY_MS},    [RL_CALENDAR_MONTH] = {"month", 31, 31 * DAY_MS},
    [RL_CALENDAR_YEAR] = {"year", 1, 366 * DAY_MS},
};

static bool is_unit(enum rl_calendar_unit unit) {
    return unit > RL_CALENDAR_NONE && unit <= RL_CALENDAR_YEAR;
}

enum rl_calendar_unit rl_calendar_unit(const char *word, size_t len) {
    for (enum rl_calendar_unit unit = RL_CALENDAR_HOUR; is_unit(unit); unit++) {
        if (strlen(units[unit].name) == len && strncasecmp(units[unit].name, word, len) == 0) return unit;
    }
    return RL_CALENDAR_NONE;
}

const char *rl_calendar_unit_name(enum rl_calendar_unit unit) {
    return is_unit(unit) ? units[unit].name : "";
}

int rl_calendar_anchor_max(enum rl_calendar_unit unit) {
    return is_unit(unit) ? units[unit].anchor_max : 0;
}

/* Local clocks can be set back; an hour ends there, but longer periods go on. */
int64_t rl_calendar_longest_ms(enum rl_calendar_unit unit, int64_t n) {
    if (!is_unit(unit)) return 0;
    int64_t set_back_ms = unit == RL_CALENDAR_HOUR ? 0 : INT64_C(2) * RL_ZONE_OFFSET_MAX_S * 1000;
    return units[unit].ms * n + set_back_ms;
}

static int64_t floor_div(int64_t a, int64_t b) {
    return a / b - (a % b < 0);
}

/* Both conversions count years from March, so that the leap day is a year's last, and in eras of 400 years, which all
 * have 146097 days. */
int64_t rl_calendar_days(int64_t year, int month, int day) {
    if (month <= 2) year--;
    int64_t era = floor_div(year, 400);
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468; /* from 0000-03-01 to 1970-01-01 */
}

struct rl_date rl_calendar_date(int64_t days) {
    days += 719468;
    int64_t era = floor_div(days, 146097);
    int64_t day_of_era = days - era * 146097;
    int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int month_from_march = (int)((5 * day_of_year + 2) / 153);
    struct rl_date date = {
        .year = era * 400 + year_of_era + (month_from_march >= 10),
        .month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9,
        .day = (int)(day_of_year - (153 * month_from_march + 2) / 5) + 1,
    };
    return date;
}

int rl_calendar_month_days(int64_t year, int month) {
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && leap);
}

/* The periods of days are numbered. This is the number of the one that a local day belongs to. */
static int64_t number_of(enum rl_calendar_unit unit, int anchor, int64_t days) {
    if (unit == RL_CALENDAR_DAY) return days;
    if (unit == RL_CALENDAR_WEEK) return floor_div(days + 3 - (anchor - 1), 7); /* 1970-01-01 was a Thursday */
    struct rl_date date = rl_calendar_date(days);
    if (unit == RL_CALENDAR_YEAR) return date.year;
    int last = rl_calendar_month_days(date.year, date.month);
    return date.year * 12 + date.month - 1 - (date.day < (anchor < last ? anchor : last));
}

/* And this its first local day. */
static int64_t first_day(enum rl_calendar_unit unit, int anchor, int64_t number) {
    if (unit == RL_CALENDAR_DAY) return number;
    if (unit == RL_CALENDAR_WEEK) return number * 7 - 3 + (anchor - 1);
    if (unit == RL_CALENDAR_YEAR) return rl_calendar_days(number, 1, 1);
    int64_t year = floor_div(number, 12);
    int month = (int)(number - year * 12) + 1;
    int last = rl_calendar_month_days(year, month);
    return rl_calendar_days(year, month, anchor < last ? anchor : last);
}

/* The first instant at which the local clock shows local_s or later. Before the first span that is looked at it can't
 * have, as no offset reaches so far. */
static int64_t first_at_s(const struct rl_zone *z, int64_t local_s) {
    struct rl_zone_span span = rl_zone_span_at(z, local_s - RL_ZONE_OFFSET_MAX_S);
    while (local_s - span.offset_s >= span.until_s) span = rl_zone_span_at(z, span.until_s);
    int64_t at_s = local_s - span.offset_s;
    return at_s > span.from_s ? at_s : span.from_s;
}

static struct rl_period days_period(const struct rl_zone *z, enum rl_calendar_unit unit, int anchor, int64_t at_s) {
    int64_t local_s = at_s + rl_zone_span_at(z, at_s).offset_s;
    int64_t number = number_of(unit, anchor, floor_div(local_s, DAY_S));
    /* The clock may have shown the next midnight already, before it was set back. */
    int64_t start_s = first_at_s(z, first_day(unit, anchor, number) * DAY_S);
    int64_t end_s = first_at_s(z, first_day(unit, anchor, ++number) * DAY_S);
    while (end_s <= at_s) {
        start_s = end_s;
        end_s = first_at_s(z, first_day(unit, anchor, ++number) * DAY_S);
    }
    return (struct rl_period){start_s * 1000, end_s * 1000};
}

/* Whether the clock, at the change from one span to the next, goes on within the same hour: forwards, that is. */
static bool same_hour(const struct rl_zone_span *a, const struct rl_zone_span *b) {
    return b->offset_s >= a->offset_s &&
           floor_div(a->until_s - 1 + a->offset_s, HOUR_S) == floor_div(a->until_s + b->offset_s, HOUR_S);
}

static struct rl_period hour_period(const struct rl_zone *z, int64_t at_s) {
    struct rl_zone_span span = rl_zone_span_at(z, at_s);
    int64_t hour_s = floor_div(at_s + span.offset_s, HOUR_S) * HOUR_S;

    struct rl_zone_span first = span;
    while (hour_s - first.offset_s < first.from_s) {
        struct rl_zone_span before = rl_zone_span_at(z, first.from_s - 1);
        if (!same_hour(&before, &first)) break;
        first = before;
    }
    struct rl_zone_span last = span;
    while (hour_s + HOUR_S - last.offset_s > last.until_s) {
        struct rl_zone_span after = rl_zone_span_at(z, last.until_s);
        if (!same_hour(&last, &after)) break;
        last = after;
    }
    int64_t start_s = hour_s - first.offset_s;
    int64_t end_s = hour_s + HOUR_S - last.offset_s;
    if (start_s < first.from_s) start_s = first.from_s;
    if (end_s > last.until_s) end_s = last.until_s;
    return (struct rl_period){start_s * 1000, end_s * 1000};
}

struct rl_period rl_calendar_period(const struct rl_zone *z, enum rl_calendar_unit unit, int anchor, int64_t at_ms) {
    int64_t at_s = floor_div(at_ms, 1000);
    return unit == RL_CALENDAR_HOUR ? hour_period(z, at_s) : days_period(z, unit, anchor, at_s);
}
