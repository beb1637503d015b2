/* Calendar periods: the hour, day, ISO week, month or year of a local clock that an instant lies in.
 *
 * Law: the periods of a zone, unit and anchor partition time: each instant is in exactly one, [start, end), and the
 *   end of one is the start of the next. No period is empty.
 * Days and longer: start at the first instant at which the local clock shows their first midnight or later. So where
 *   midnight is skipped the day starts right after the gap; where it happens twice, at the first; a day that is
 *   skipped as a whole (Apia, 2011-12-30) does not exist. Days have 23 to 25 hours, or what the zone makes of them.
 * Hours: follow the face of the local clock. One starts where the clock reaches a whole hour, jumps to another hour,
 *   or goes back. So an hour that happens twice is two periods, and half an hour skipped or repeated is one of 30 min.
 * Anchor: the day of the month (where it has fewer days: its last) or of the week (1 is Monday) on which the period
 *   starts, by default 1. The other units have no anchor but 1. */
#ifndef RL_ALGO_CALENDAR_H
#define RL_ALGO_CALENDAR_H

#include "algo/zone.h"

/* Stored in files: once released, for ever. */
enum rl_calendar_unit {
    RL_CALENDAR_NONE,
    RL_CALENDAR_HOUR,
    RL_CALENDAR_DAY,
    RL_CALENDAR_WEEK,
    RL_CALENDAR_MONTH,
    RL_CALENDAR_YEAR,
};

#define RL_CALENDAR_SPAN_MAX_MS (INT64_C(370) * 86400000) /* no period is as long */

struct rl_period {
    int64_t start_ms;
    int64_t end_ms; /* excluded */
};

struct rl_date {
    int64_t year;
    int month; /* 1 to 12 */
    int day;   /* 1 to 31 */
};

/* Days since 1970-01-01 in the Gregorian calendar, and back. */
int64_t rl_calendar_days(int64_t year, int month, int day);
struct rl_date rl_calendar_date(int64_t days);
int rl_calendar_month_days(int64_t year, int month);

/* The unit that a word names, in any case; RL_CALENDAR_NONE where there is none. And its name. */
enum rl_calendar_unit rl_calendar_unit(const char *word, size_t len);
const char *rl_calendar_unit_name(enum rl_calendar_unit unit);

/* The largest anchor: 31 for month, 7 for week; 1 for units that have none, 0 for what is no unit. */
int rl_calendar_anchor_max(enum rl_calendar_unit unit);

/* No n periods in a row take longer than this, in any zone. */
int64_t rl_calendar_longest_ms(enum rl_calendar_unit unit, int64_t n);

/* The period that at_ms, at most 2^53 from zero, lies in. Needs a unit, and an anchor up to its largest. */
struct rl_period rl_calendar_period(const struct rl_zone *z, enum rl_calendar_unit unit, int anchor, int64_t at_ms);

#endif
