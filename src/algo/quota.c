#include "algo/quota.h"

#include <string.h>

#define CLOCK_MAX_MS (RL_CLOCK_MAX_US / 1000)

enum { ALERT_BITS = 16, ALERTS_PER_WORD = 4, HEAD_WORDS = 5, ROW_WORDS = 4, WORD = 8 };

/* ---- The limit ---- */

bool rl_quota_pack_alerts(int64_t words[2], const int64_t *percents, size_t n) {
    int64_t sorted[RL_QUOTA_ALERTS_MAX];
    if (n > RL_QUOTA_ALERTS_MAX) return false;
    for (size_t i = 0; i < n; i++) {
        if (percents[i] < 1 || percents[i] > RL_QUOTA_PERCENT_MAX) return false;
        size_t k = i;
        for (; k > 0 && sorted[k - 1] >= percents[i]; k--) {
            if (sorted[k - 1] == percents[i]) return false;
            sorted[k] = sorted[k - 1];
        }
        sorted[k] = percents[i];
    }
    words[0] = words[1] = 0;
    for (size_t i = 0; i < n; i++) {
        words[i / ALERTS_PER_WORD] |= sorted[i] << (i % ALERTS_PER_WORD * ALERT_BITS);
    }
    return true;
}

size_t rl_quota_alerts(const struct rl_quota_limit *lim, int64_t percents[RL_QUOTA_ALERTS_MAX]) {
    size_t n = 0;
    for (; n < RL_QUOTA_ALERTS_MAX; n++) {
        uint64_t word = (uint64_t)lim->alerts[n / ALERTS_PER_WORD];
        percents[n] = (int64_t)(word >> (n % ALERTS_PER_WORD * ALERT_BITS) & ((1 << ALERT_BITS) - 1));
        if (percents[n] == 0) break;
    }
    return n;
}

static bool alerts_valid(const struct rl_quota_limit *lim) {
    int64_t percents[RL_QUOTA_ALERTS_MAX], again[2];
    size_t n = rl_quota_alerts(lim, percents);
    return rl_quota_pack_alerts(again, percents, n) && memcmp(again, lim->alerts, sizeof(again)) == 0;
}

bool rl_quota_limit_valid(const struct rl_quota_limit *lim) {
    return lim->count >= 0 && lim->count <= RL_UNITS_MAX && lim->unit >= RL_CALENDAR_HOUR &&
           lim->unit <= RL_CALENDAR_YEAR && lim->anchor >= 1 &&
           lim->anchor <= rl_calendar_anchor_max((enum rl_calendar_unit)lim->unit) && lim->history >= 0 &&
           lim->history <= RL_QUOTA_HISTORY_MAX && alerts_valid(lim) && rl_zone_packed_valid(lim->zone);
}

static bool same_calendar(const struct rl_quota_limit *a, const struct rl_quota_limit *b) {
    return a->unit == b->unit && a->anchor == b->anchor && memcmp(a->zone, b->zone, sizeof(a->zone)) == 0;
}

/* ---- Asking ---- */

static bool has_ended(const struct rl_quota *q, int64_t now_ms) {
    return now_ms >= q->end_ms;
}

int64_t rl_quota_used(const struct rl_quota *q, int64_t now_ms) {
    return has_ended(q, now_ms) ? 0 : q->used;
}

int64_t rl_quota_percent(int64_t used, int64_t count) {
    if (count == 0) return used > 0 ? 100 : 0;
    return used * 100 / count;
}

/* Whether the period starts further ahead of now_ms than it is long. */
static bool is_far_ahead(const struct rl_quota *q, int64_t now_ms) {
    return q->start_ms - now_ms > q->end_ms - q->start_ms;
}

bool rl_quota_current(const struct rl_quota *q, int64_t now_ms, struct rl_period *period) {
    if (has_ended(q, now_ms) || q->moved || is_far_ahead(q, now_ms)) return false;
    /* What is as if never used does not hold on to a period that is yet to come. */
    if (now_ms < q->start_ms && q->used == 0 && q->alerted == 0) return false;
    *period = (struct rl_period){q->start_ms, q->end_ms};
    return true;
}

bool rl_quota_ahead(const struct rl_quota *q, int64_t now_ms) {
    return q->used > 0 && is_far_ahead(q, now_ms);
}

struct rl_verdict rl_quota_check(const struct rl_quota *q, const struct rl_quota_limit *lim,
                                 const struct rl_period *period, const struct rl_ask *ask, int64_t now_ms) {
    struct rl_verdict v = {.limit = lim->count};
    int64_t used = rl_quota_used(q, now_ms);
    int64_t room = used < lim->count ? lim->count - used : 0;
    int64_t wanted = ask->cost; /* what a refused caller waits for */

    switch (ask->mode) {
    case RL_TAKE:
        if (ask->cost <= room) v.allowed = ask->cost;
        break;
    case RL_FORCE:
        v.allowed = ask->cost;
        v.beyond = used + ask->cost > RL_USED_MAX;
        break;
    case RL_UPTO:
        v.allowed = room < ask->cost ? room : ask->cost;
        wanted = 1;
        break;
    case RL_REFUND:
        v.allowed = used < ask->cost ? used : ask->cost;
        wanted = 0;
        break;
    }
    /* Only a write moves what was used under another calendar for good; until then it goes when its own period does. */
    bool written = v.allowed > 0 && !ask->peek;
    int64_t ends_at_ms = q->moved && used > 0 && !written ? q->end_ms : period->end_ms;
    if (v.allowed == 0 && wanted > 0) v.wait_ms = wanted > lim->count ? RL_NEVER : ends_at_ms - now_ms;
    if (written) used += rl_verdict_delta(&v, ask);
    v.remaining = lim->count - used;
    v.reset_ms = used > 0 ? ends_at_ms - now_ms : 0;
    return v;
}

/* ---- Taking ---- */

static uint32_t rows_of(const struct rl_quota *q) {
    return q->past ? q->past->count : 0;
}

static size_t past_size(size_t room) {
    return sizeof(struct rl_quota_past) + room * sizeof(struct rl_quota_row);
}

static void drop_oldest(struct rl_quota_past *past, uint32_t n) {
    past->count -= n;
    memmove(past->rows, past->rows + n, past->count * sizeof(past->rows[0]));
}

bool rl_quota_reserve(struct rl_quota *q, const struct rl_quota_limit *lim, int64_t now_ms,
                      const struct rl_allocator *mem) {
    if (!has_ended(q, now_ms)) return true;
    if (lim->history == 0) {
        if (q->past) mem->free(q->past);
        q->past = NULL;
        return true;
    }
    uint32_t wanted = rows_of(q) + (q->used > 0);
    uint32_t most = (uint32_t)lim->history;
    if (wanted > most) wanted = most;
    if (rows_of(q) > most) drop_oldest(q->past, rows_of(q) - most);
    uint32_t room = q->past ? q->past->room : 0;
    if (wanted <= room && room <= most) return true;

    /* Grows by a half, so that a year of days is not copied day by day. */
    if (wanted > room) room = wanted + wanted / 2;
    if (room > most) room = most;
    struct rl_quota_past *past = mem->realloc(q->past, past_size(room));
    if (!past) return false;
    if (!q->past) past->count = 0;
    past->room = room;
    q->past = past;
    return true;
}

/* The period is over: what was used in it becomes a row, if there is room. */
static void record(struct rl_quota *q, const struct rl_quota_limit *lim) {
    struct rl_quota_past *past = q->past;
    if (past && q->used > 0 && lim->history > 0 && past->room > 0) {
        uint32_t most = past->room < lim->history ? past->room : (uint32_t)lim->history;
        if (past->count >= most) drop_oldest(past, past->count - most + 1);
        past->rows[past->count++] = (struct rl_quota_row){q->start_ms, q->end_ms, q->used, q->limit};
    }
    q->used = 0;
    q->alerted = 0;
}

/* Of a count of 0, any use is any percentage. */
static bool reaches(int64_t used, int64_t percent, int64_t count) {
    return used > 0 && used * 100 >= percent * count;
}

unsigned rl_quota_take(struct rl_quota *q, const struct rl_quota_limit *lim, const struct rl_period *period,
                       int64_t cost, int64_t now_ms) {
    if (has_ended(q, now_ms)) record(q, lim);
    q->used += cost;
    q->start_ms = period->start_ms;
    q->end_ms = period->end_ms;
    q->limit = lim->count;
    q->moved = false;
    if (cost <= 0 || lim->alerts[0] == 0) return 0;

    unsigned reached = 0;
    int64_t percents[RL_QUOTA_ALERTS_MAX];
    size_t n = rl_quota_alerts(lim, percents);
    for (size_t i = 0; i < n; i++) {
        if (percents[i] <= q->alerted || !reaches(q->used, percents[i], lim->count)) continue;
        reached |= 1U << i;
        q->alerted = (int16_t)percents[i];
    }
    return reached;
}

void rl_quota_rescale(struct rl_quota *q, const struct rl_quota_limit *from, const struct rl_quota_limit *to) {
    if (same_calendar(from, to)) return;
    q->moved = true;
    int64_t percents[RL_QUOTA_ALERTS_MAX];
    int16_t told = 0;
    size_t n = rl_quota_alerts(to, percents);
    for (size_t i = 0; i < n && percents[i] <= q->alerted && reaches(q->used, percents[i], to->count); i++) {
        told = (int16_t)percents[i];
    }
    q->alerted = told;
}

/* ---- Remembering ---- */

int64_t rl_quota_ends_at_ms(const struct rl_quota *q, const struct rl_quota_limit *lim) {
    int64_t ends_at_ms = q->used > 0 || q->alerted > 0 ? q->end_ms : 0;
    if (lim->history == 0 || (q->used == 0 && rows_of(q) == 0)) return ends_at_ms;
    int64_t last_ms = q->used > 0 ? q->end_ms : q->past->rows[q->past->count - 1].end_ms;
    int64_t kept_ms = last_ms + rl_calendar_longest_ms((enum rl_calendar_unit)lim->unit, lim->history);
    return kept_ms > ends_at_ms ? kept_ms : ends_at_ms;
}

size_t rl_quota_history(const struct rl_quota *q, const struct rl_quota_limit *lim, const struct rl_zone *z,
                        int64_t now_ms, struct rl_quota_row *rows, size_t max) {
    enum rl_calendar_unit unit = (enum rl_calendar_unit)lim->unit;
    struct rl_period period = {now_ms, now_ms};
    if (!rl_quota_current(q, now_ms, &period) && z) period = rl_calendar_period(z, unit, (int)lim->anchor, now_ms);

    const struct rl_quota_row own = {q->start_ms, q->end_ms, q->used, q->limit};
    bool own_left = has_ended(q, now_ms) && q->used > 0;
    uint32_t left = rows_of(q);
    bool idle = true;
    size_t n = 0;
    if (max > (size_t)lim->history) max = (size_t)lim->history;
    while (n < max && (own_left || left > 0)) {
        const struct rl_quota_row *next = own_left ? &own : &q->past->rows[left - 1];
        if (z) {
            period = rl_calendar_period(z, unit, (int)lim->anchor, period.start_ms - 1);
            if (period.start_ms >= next->end_ms) {
                rows[n++] = (struct rl_quota_row){period.start_ms, period.end_ms, 0, next->limit};
                continue;
            }
        }
        rows[n++] = *next;
        period.start_ms = next->start_ms;
        idle = false;
        if (own_left)
            own_left = false;
        else
            left--;
    }
    return idle ? 0 : n;
}

/* ---- Bytes ---- */

static bool span_valid(int64_t start_ms, int64_t end_ms) {
    return start_ms >= -RL_CALENDAR_SPAN_MAX_MS && start_ms < CLOCK_MAX_MS + RL_CALENDAR_SPAN_MAX_MS &&
           end_ms > start_ms && end_ms - start_ms < RL_CALENDAR_SPAN_MAX_MS;
}

static bool row_valid(const struct rl_quota_row *r) {
    return span_valid(r->start_ms, r->end_ms) && r->used >= 1 && r->used <= RL_USED_MAX && r->limit >= 0 &&
           r->limit <= RL_UNITS_MAX;
}

bool rl_quota_valid(const struct rl_quota *q) {
    if (rows_of(q) > RL_QUOTA_HISTORY_MAX) return false;
    for (uint32_t i = 0; i < rows_of(q); i++) {
        if (!row_valid(&q->past->rows[i])) return false;
    }
    bool never = q->start_ms == 0 && q->end_ms == 0 && q->used == 0 && q->alerted == 0;
    return (never || span_valid(q->start_ms, q->end_ms)) && q->used >= 0 && q->used <= RL_USED_MAX && q->limit >= 0 &&
           q->limit <= RL_UNITS_MAX && q->alerted >= 0 && q->alerted <= RL_QUOTA_PERCENT_MAX;
}

static unsigned char *put_word(unsigned char *out, int64_t n) {
    for (int i = 0; i < WORD; i++) out[i] = (unsigned char)((uint64_t)n >> (8 * i));
    return out + WORD;
}

static int64_t get_word(const unsigned char **bytes) {
    uint64_t n = 0;
    for (int i = 0; i < WORD; i++) n |= (uint64_t)(*bytes)[i] << (8 * i);
    *bytes += WORD;
    return (int64_t)n;
}

size_t rl_quota_encoded_size(const struct rl_quota *q) {
    return (HEAD_WORDS + ROW_WORDS * (size_t)rows_of(q)) * WORD;
}

void rl_quota_encode(const struct rl_quota *q, unsigned char *out) {
    out = put_word(out, q->used);
    out = put_word(out, q->start_ms);
    out = put_word(out, q->end_ms);
    out = put_word(out, q->limit);
    out = put_word(out, q->alerted | (q->moved ? 1 << ALERT_BITS : 0));
    for (uint32_t i = 0; i < rows_of(q); i++) {
        const struct rl_quota_row *r = &q->past->rows[i];
        out = put_word(put_word(put_word(put_word(out, r->start_ms), r->end_ms), r->used), r->limit);
    }
}

bool rl_quota_decode(struct rl_quota *q, const unsigned char *bytes, size_t len, const struct rl_allocator *mem) {
    memset(q, 0, sizeof(*q));
    if (len < HEAD_WORDS * WORD || len > RL_QUOTA_ENCODED_MAX) return false;
    size_t rows_len = len - HEAD_WORDS * WORD;
    uint32_t rows = (uint32_t)(rows_len / (ROW_WORDS * WORD));
    if (rows_len % (ROW_WORDS * WORD) != 0) return false;

    struct rl_quota read = {.used = get_word(&bytes)};
    read.start_ms = get_word(&bytes);
    read.end_ms = get_word(&bytes);
    read.limit = get_word(&bytes);
    int64_t flags = get_word(&bytes);
    if (flags < 0 || flags >= 2 << ALERT_BITS) return false;
    read.moved = flags >> ALERT_BITS;
    flags &= (1 << ALERT_BITS) - 1;
    if (flags > RL_QUOTA_PERCENT_MAX) return false;
    read.alerted = (int16_t)flags;

    if (rows > 0) {
        read.past = mem->alloc(past_size(rows));
        if (!read.past) return false;
        read.past->count = read.past->room = rows;
    }
    for (uint32_t i = 0; i < rows; i++) {
        struct rl_quota_row *r = &read.past->rows[i];
        r->start_ms = get_word(&bytes);
        r->end_ms = get_word(&bytes);
        r->used = get_word(&bytes);
        r->limit = get_word(&bytes);
    }
    bool valid = rl_quota_valid(&read);
    if (valid)
        *q = read;
    else
        rl_quota_reset(&read, mem);
    return valid;
}

/* ---- Memory ---- */

bool rl_quota_clone(struct rl_quota *copy, const struct rl_quota *q, const struct rl_allocator *mem) {
    *copy = *q;
    copy->past = NULL;
    if (rows_of(q) == 0) return true;
    copy->past = mem->alloc(past_size(rows_of(q)));
    if (!copy->past) {
        memset(copy, 0, sizeof(*copy));
        return false;
    }
    memcpy(copy->past, q->past, past_size(rows_of(q)));
    copy->past->room = rows_of(q);
    return true;
}

void rl_quota_reset(struct rl_quota *q, const struct rl_allocator *mem) {
    if (q->past) mem->free(q->past);
    memset(q, 0, sizeof(*q));
}

size_t rl_quota_memory(const struct rl_quota *q, const struct rl_allocator *mem) {
    return q->past ? mem->size(q->past) : 0;
}
