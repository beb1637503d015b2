/* Quota: a budget per calendar period.
 *
 * Law: never more than count units in one period (FORCE aside). Overuse ends with its period.
 * State: what is used, and the bounds of the period it was used in. A missing key, a zeroed struct and a period that
 *   has ended are one and the same, but for the past periods that HISTORY keeps.
 * Calendar: the algorithm never asks it. Whoever decides passes the period of now: the state's own where
 *   rl_quota_current says so, which costs nothing, else the one of rl_calendar_period; it travels with the effect. So
 *   replay needs no zone data, and a take is the same function of the same arguments everywhere.
 *   Under another calendar what is used counts in each of its periods until the next write, which moves it into one; if
 *   there is none, it ends with the period that it was used in.
 * Clock: in milliseconds. A period that starts ahead of the clock stays the current one if that is by no more than its
 *   own length; else what is used is moved to the period of now.
 * Alerts: thresholds in percent of count, each told once in a period. What is remembered is the highest one told.
 * History: only periods in which something was used are kept, with their bounds, as facts; the idle ones between them
 *   are found by the calendar when they are listed. So idle time costs no memory, however long. */
#ifndef RL_ALGO_QUOTA_H
#define RL_ALGO_QUOTA_H

#include "algo/calendar.h"
#include "algo/verdict.h"

#define RL_QUOTA_HISTORY_MAX 366
#define RL_QUOTA_ALERTS_MAX 8
#define RL_QUOTA_PERCENT_MAX 1000
#define RL_QUOTA_ENCODED_MAX ((5 + 4 * RL_QUOTA_HISTORY_MAX) * sizeof(int64_t))

struct rl_quota_limit {
    int64_t count;               /* 0: nothing passes but FORCE */
    int64_t unit;                /* enum rl_calendar_unit */
    int64_t anchor;              /* 1 where the unit has none */
    int64_t history;             /* past periods to list and keep */
    int64_t alerts[2];           /* by rl_quota_pack_alerts */
    int64_t zone[RL_ZONE_WORDS]; /* by rl_zone_pack */
};

struct rl_quota_row {
    int64_t start_ms;
    int64_t end_ms;
    int64_t used;
    int64_t limit; /* the count at the last write in the period */
};

struct rl_quota_past {
    uint32_t count;
    uint32_t room;
    struct rl_quota_row rows[]; /* as recorded, the newest last */
};

struct rl_quota {
    int64_t used;
    int64_t start_ms; /* of the period it was used in */
    int64_t end_ms;
    int64_t limit;              /* the count at the last write */
    struct rl_quota_past *past; /* NULL: none. A const state shares it, a take changes it */
    int16_t alerted;            /* the highest threshold told in this period; 0: none */
    bool moved;                 /* the calendar was changed since: the bounds still tell until when it counts as used */
};

/* Whether the limit is one that a command may ask for and a file may hold. Of the zone only the syntax is known. */
bool rl_quota_limit_valid(const struct rl_quota_limit *lim);

/* Thresholds as words of a limit, in ascending order whichever way they came. False where there are more than eight,
 * one is not from 1 to 1000, or one comes twice. */
bool rl_quota_pack_alerts(int64_t words[2], const int64_t *percents, size_t n);

/* The thresholds, ascending; answers how many. */
size_t rl_quota_alerts(const struct rl_quota_limit *lim, int64_t percents[RL_QUOTA_ALERTS_MAX]);

/* Whether the state can have come about. */
bool rl_quota_valid(const struct rl_quota *q);

/* Whether the state's own period is the one of now_ms; then it is written to period. If not, ask the calendar. */
bool rl_quota_current(const struct rl_quota *q, int64_t now_ms, struct rl_period *period);

/* What counts as used at now_ms, and as percent of a count, rounded down; of a count of 0 anything used is 100 %. */
int64_t rl_quota_used(const struct rl_quota *q, int64_t now_ms);
int64_t rl_quota_percent(int64_t used, int64_t count);

/* What the ask at now_ms, in this period, would do. Changes nothing. */
struct rl_verdict rl_quota_check(const struct rl_quota *q, const struct rl_quota_limit *lim,
                                 const struct rl_period *period, const struct rl_ask *ask, int64_t now_ms);

/* Gets the memory that a take at now_ms may need to record the period that has ended, and gives back what the limit no
 * longer keeps. False: memory is short; the take would work, but drop the oldest row or not record the period. */
bool rl_quota_reserve(struct rl_quota *q, const struct rl_quota_limit *lim, int64_t now_ms,
                      const struct rl_allocator *mem);

/* Moves the state to this period and takes cost units; a negative cost gives back, 0 only moves. The check with the
 * same arguments must have allowed it. Answers which thresholds the use has now reached for the first time in the
 * period: bit i is the i-th of rl_quota_alerts. Only a positive cost tells. */
unsigned rl_quota_take(struct rl_quota *q, const struct rl_quota_limit *lim, const struct rl_period *period,
                       int64_t cost, int64_t now_ms);

/* Puts the state under another limit. What is used stays used; where unit, anchor or zone differ the next take moves it
 * into the period that it is given, and the thresholds that the use no longer reaches can be told again. */
void rl_quota_rescale(struct rl_quota *q, const struct rl_quota_limit *from, const struct rl_quota_limit *to);

/* Whether a step back of the clock left the state so far ahead that it has to be moved. */
bool rl_quota_ahead(const struct rl_quota *q, int64_t now_ms);

/* An instant from which on nothing is to be remembered: the end of the period, or with history when all periods that
 * would be listed are surely idle. */
int64_t rl_quota_ends_at_ms(const struct rl_quota *q, const struct rl_quota_limit *lim);

/* The past periods as of now_ms, newest first, at most max and what the limit keeps; answers how many. Idle ones
 * between them have used 0 and the limit last known; there are none before the first recorded, and nothing is listed
 * where all would be idle. z is the limit's zone; NULL where there is no data for it: then the idle ones are missing.
 */
size_t rl_quota_history(const struct rl_quota *q, const struct rl_quota_limit *lim, const struct rl_zone *z,
                        int64_t now_ms, struct rl_quota_row *rows, size_t max);

/* The state as bytes, the same on every machine and for equal states. Decoding trusts nothing: false, with nothing
 * allocated, where no state can have led to them or memory is short. */
size_t rl_quota_encoded_size(const struct rl_quota *q);
void rl_quota_encode(const struct rl_quota *q, unsigned char *out);
bool rl_quota_decode(struct rl_quota *q, const unsigned char *bytes, size_t len, const struct rl_allocator *mem);

/* False, and copy is zero: memory is short. */
bool rl_quota_clone(struct rl_quota *copy, const struct rl_quota *q, const struct rl_allocator *mem);

/* Frees what the state holds and zeroes it. */
void rl_quota_reset(struct rl_quota *q, const struct rl_allocator *mem);

/* Bytes held besides the struct. */
size_t rl_quota_memory(const struct rl_quota *q, const struct rl_allocator *mem);

#endif
