#include "algo/zone.h"

#include <string.h>
#include <strings.h>

#include "algo/calendar.h"

#define DAY_S 86400
#define HOUR_S 3600
#define INSTANT_MAX_S (INT64_C(1) << 50) /* transitions beyond (zic writes -2^59 for the Big Bang) are moved to it */

/* ---- Text ---- */

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_upper(char c) {
    return c >= 'A' && c <= 'Z';
}

static bool is_letter(char c) {
    return is_upper(c) || (c >= 'a' && c <= 'z');
}

static bool parse_offset(const char *text, size_t len, int32_t *offset_s) {
    if (len != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':') return false;
    if (!is_digit(text[1]) || !is_digit(text[2]) || !is_digit(text[4]) || !is_digit(text[5])) return false;
    int32_t hours = (text[1] - '0') * 10 + (text[2] - '0');
    int32_t minutes = (text[4] - '0') * 10 + (text[5] - '0');
    if (hours > 23 || minutes > 59) return false;
    *offset_s = (text[0] == '-' ? -1 : 1) * (hours * HOUR_S + minutes * 60);
    return true;
}

static bool is_name(const char *text, size_t len) {
    if (!is_upper(text[0]) || text[len - 1] == '/') return false;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (c == '/' && text[i - 1] == '/') return false;
        if (!is_letter(c) && !is_digit(c) && c != '_' && c != '+' && c != '-' && c != '/') return false;
    }
    return true;
}

enum rl_zone_form rl_zone_form(const char *text, size_t len, int32_t *offset_s) {
    if (len == 0 || len > RL_ZONE_TEXT_MAX) return RL_ZONE_BAD;
    if ((len == 1 && strncasecmp(text, "Z", 1) == 0) || (len == 3 && strncasecmp(text, "UTC", 3) == 0)) {
        *offset_s = 0;
        return RL_ZONE_FIXED;
    }
    if (parse_offset(text, len, offset_s)) return RL_ZONE_FIXED;
    return is_name(text, len) ? RL_ZONE_NAMED : RL_ZONE_BAD;
}

bool rl_zone_pack(int64_t words[RL_ZONE_WORDS], const char *text, size_t len) {
    int32_t offset_s = 0;
    enum rl_zone_form form = rl_zone_form(text, len, &offset_s);
    if (form == RL_ZONE_BAD) return false;
    if (form == RL_ZONE_FIXED && offset_s == 0) len = 0;
    for (size_t w = 0; w < RL_ZONE_WORDS; w++) {
        uint64_t word = 0;
        for (size_t i = 0; i < 8 && w * 8 + i < len; i++) word |= (uint64_t)(unsigned char)text[w * 8 + i] << (8 * i);
        words[w] = (int64_t)word;
    }
    return true;
}

size_t rl_zone_unpack(const int64_t words[RL_ZONE_WORDS], char text[RL_ZONE_TEXT_MAX + 1]) {
    size_t len = 0;
    for (; len < RL_ZONE_TEXT_MAX; len++) {
        text[len] = (char)((uint64_t)words[len / 8] >> (8 * (len % 8)) & 0xff);
        if (text[len] == 0) break;
    }
    text[len] = 0;
    if (len > 0) return len;
    memcpy(text, "UTC", 4);
    return 3;
}

bool rl_zone_packed_valid(const int64_t words[RL_ZONE_WORDS]) {
    char text[RL_ZONE_TEXT_MAX + 1];
    int64_t again[RL_ZONE_WORDS];
    return rl_zone_pack(again, text, rl_zone_unpack(words, text)) && memcmp(again, words, sizeof(again)) == 0;
}

/* ---- The footer: a POSIX TZ string ---- */

struct cursor {
    const char *at;
    const char *end;
};

static bool skip(struct cursor *c, char wanted) {
    if (c->at == c->end || *c->at != wanted) return false;
    c->at++;
    return true;
}

static bool read_number(struct cursor *c, int32_t min, int32_t max, int32_t *out) {
    int32_t n = 0;
    const char *start = c->at;
    for (; c->at < c->end && is_digit(*c->at) && c->at - start < 3; c->at++) n = n * 10 + (*c->at - '0');
    *out = n;
    return c->at > start && n >= min && n <= max;
}

static bool read_name(struct cursor *c) {
    const char *start = c->at;
    if (skip(c, '<')) {
        while (c->at < c->end && (is_letter(*c->at) || is_digit(*c->at) || *c->at == '+' || *c->at == '-')) c->at++;
        return c->at - start >= 4 && skip(c, '>');
    }
    while (c->at < c->end && is_letter(*c->at)) c->at++;
    return c->at - start >= 3;
}

/* [+-]h[:mm[:ss]] */
static bool read_clock(struct cursor *c, int32_t max_hours, int32_t *out) {
    bool negative = skip(c, '-');
    if (!negative) skip(c, '+');
    int32_t hours, minutes = 0, seconds = 0;
    if (!read_number(c, 0, max_hours, &hours)) return false;
    if (skip(c, ':')) {
        if (!read_number(c, 0, 59, &minutes)) return false;
        if (skip(c, ':') && !read_number(c, 0, 59, &seconds)) return false;
    }
    int32_t clock_s = hours * HOUR_S + minutes * 60 + seconds;
    *out = negative ? -clock_s : clock_s;
    return true;
}

static bool read_rule(struct cursor *c, struct rl_zone_rule *r) {
    int32_t month = 0, week = 0, day;
    r->form = 'N';
    if (skip(c, 'M')) {
        r->form = 'M';
        if (!read_number(c, 1, 12, &month) || !skip(c, '.') || !read_number(c, 1, 5, &week) || !skip(c, '.'))
            return false;
        if (!read_number(c, 0, 6, &day)) return false;
    } else if (skip(c, 'J')) {
        r->form = 'J';
        if (!read_number(c, 1, 365, &day)) return false;
    } else if (!read_number(c, 0, 365, &day)) {
        return false;
    }
    r->month = (int16_t)month;
    r->week = (int16_t)week;
    r->day = (int16_t)day;
    r->clock_s = 2 * HOUR_S;
    return !skip(c, '/') || read_clock(c, 167, &r->clock_s);
}

/* An empty footer says nothing: then the last transition holds for ever. */
static bool read_footer(struct rl_zone *z, struct cursor c) {
    if (c.at == c.end) return true;
    int32_t west_s; /* POSIX counts westwards */
    if (!read_name(&c) || !read_clock(&c, 24, &west_s)) return false;
    z->ruled = true;
    z->standard_s = -west_s;
    if (c.at == c.end) return true;

    z->saving = true;
    z->saving_s = z->standard_s + HOUR_S;
    if (!read_name(&c)) return false;
    if (!skip(&c, ',')) {
        if (!read_clock(&c, 24, &west_s) || !skip(&c, ',')) return false;
        z->saving_s = -west_s;
    }
    return read_rule(&c, &z->begins) && skip(&c, ',') && read_rule(&c, &z->ends) && c.at == c.end;
}

/* ---- TZif ---- */

enum { HEADER_SIZE = 44, TYPE_SIZE = 6, TYPES_MAX = 256 };

struct block {
    uint32_t isut, isstd, leap, time, type, chars;
    const unsigned char *data;
    size_t size;
};

static uint32_t get_32(const unsigned char *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int64_t get_time(const unsigned char *p, size_t width) {
    if (width == 4) return (int32_t)get_32(p);
    return (int64_t)((uint64_t)get_32(p) << 32 | get_32(p + 4));
}

/* A header and the block behind it, whose times have so many bytes; false where the data ends before it does. The sum
 * of six 32-bit counts times at most 13 can't wrap. */
static bool read_block(const unsigned char *data, size_t len, size_t width, struct block *b) {
    if (len < HEADER_SIZE || memcmp(data, "TZif", 4) != 0) return false;
    b->isut = get_32(data + 20);
    b->isstd = get_32(data + 24);
    b->leap = get_32(data + 28);
    b->time = get_32(data + 32);
    b->type = get_32(data + 36);
    b->chars = get_32(data + 40);
    b->data = data + HEADER_SIZE;
    uint64_t size = (uint64_t)b->time * (width + 1) + (uint64_t)b->type * TYPE_SIZE + b->chars +
                    (uint64_t)b->leap * (width + 4) + b->isstd + b->isut;
    if (size > len - HEADER_SIZE) return false;
    b->size = (size_t)size;
    return true;
}

static bool read_types(const struct block *b, size_t width, int32_t offsets[TYPES_MAX]) {
    if (b->leap != 0 || b->time > RL_ZONE_SHIFTS_MAX || b->type == 0 || b->type > TYPES_MAX || b->chars == 0)
        return false;
    if ((b->isut != 0 && b->isut != b->type) || (b->isstd != 0 && b->isstd != b->type)) return false;
    const unsigned char *type = b->data + b->time * (width + 1);
    for (uint32_t i = 0; i < b->type; i++, type += TYPE_SIZE) {
        offsets[i] = (int32_t)get_32(type);
        if (offsets[i] <= -RL_ZONE_OFFSET_MAX_S || offsets[i] >= RL_ZONE_OFFSET_MAX_S) return false;
        if (type[4] > 1 || type[5] >= b->chars) return false;
    }
    return true;
}

static int64_t clamp(int64_t at_s) {
    if (at_s < -INSTANT_MAX_S) return -INSTANT_MAX_S;
    return at_s > INSTANT_MAX_S ? INSTANT_MAX_S : at_s;
}

/* Only what changes the offset is kept, and the last one: from there on the footer rules. */
static bool read_shifts(struct rl_zone *z, const struct block *b, size_t width, const int32_t offsets[TYPES_MAX]) {
    const unsigned char *types = b->data + b->time * width;
    int64_t before_s = INT64_MIN;
    int32_t offset_s = z->first_s;
    for (uint32_t i = 0; i < b->time; i++) {
        int64_t at_s = get_time(b->data + i * width, width);
        if (types[i] >= b->type || (i > 0 && at_s <= before_s)) return false;
        before_s = at_s;
        int32_t next_s = offsets[types[i]];
        if (next_s == offset_s && i + 1 < b->time) continue;
        z->shifts[z->count++] = (struct rl_zone_shift){.at_s = clamp(at_s), .offset_s = next_s};
        offset_s = next_s;
    }
    return true;
}

bool rl_zone_parse(struct rl_zone *z, const unsigned char *data, size_t len, const struct rl_allocator *mem) {
    struct block b;
    size_t width = 4;
    memset(z, 0, sizeof(*z));
    if (!read_block(data, len, width, &b)) return false;
    if (data[4] >= '2') { /* all of it comes again, with times of 64 bits */
        size_t first = HEADER_SIZE + b.size;
        data += first;
        len -= first;
        width = 8;
        if (!read_block(data, len, width, &b)) return false;
        const char *footer = (const char *)b.data + b.size;
        size_t left = len - HEADER_SIZE - b.size;
        const char *end = left > 1 && footer[0] == '\n' ? memchr(footer + 1, '\n', left - 1) : NULL;
        if (!end || !read_footer(z, (struct cursor){footer + 1, end})) return false;
    }

    int32_t offsets[TYPES_MAX];
    if (!read_types(&b, width, offsets)) return false;
    z->first_s = offsets[0];
    if (b.time == 0) return true;
    z->shifts = mem->alloc(b.time * sizeof(*z->shifts));
    if (z->shifts && read_shifts(z, &b, width, offsets)) return true;
    rl_zone_free(z, mem);
    return false;
}

void rl_zone_free(struct rl_zone *z, const struct rl_allocator *mem) {
    if (z->shifts) mem->free(z->shifts);
    z->shifts = NULL;
    z->count = 0;
}

/* ---- Offsets ---- */

struct rl_zone rl_zone_fixed(int32_t offset_s) {
    return (struct rl_zone){.first_s = offset_s};
}

/* When the rule strikes in this year, on its clock. */
static int64_t strike_s(const struct rl_zone_rule *r, int64_t year) {
    int64_t days = rl_calendar_days(year, 1, 1);
    if (r->form == 'N') {
        days += r->day;
    } else if (r->form == 'J') {
        days += r->day - 1 + (r->day >= 60 && rl_calendar_month_days(year, 2) == 29);
    } else {
        days = rl_calendar_days(year, r->month, 1);
        int64_t weekday = ((days + 4) % 7 + 7) % 7; /* 1970-01-01 was a Thursday */
        int64_t day = (r->day - weekday + 7) % 7 + (r->week - 1) * 7;
        while (day >= rl_calendar_month_days(year, r->month)) day -= 7;
        days += day;
    }
    return days * DAY_S + r->clock_s;
}

/* The two strikes of the five years around, in order: a strike can be up to a week outside of its year, so the last
 * before at_s and the first after it are among them. Where saving time ends at the instant at which it begins again,
 * it goes on. */
static struct rl_zone_span ruled_span(const struct rl_zone *z, int64_t at_s) {
    struct rl_zone_span span = {RL_ZONE_BEFORE_S, RL_ZONE_AFTER_S, z->standard_s};
    if (!z->saving) return span;

    struct rl_zone_shift strikes[10];
    int n = 0;
    int64_t local_s = at_s + z->standard_s;
    int64_t middle = rl_calendar_date(local_s / DAY_S - (local_s % DAY_S < 0)).year;
    for (int64_t year = middle - 2; year <= middle + 2; year++) {
        struct rl_zone_shift pair[2] = {
            {strike_s(&z->ends, year) - z->saving_s, z->standard_s},
            {strike_s(&z->begins, year) - z->standard_s, z->saving_s},
        };
        for (int i = 0; i < 2; i++, n++) {
            int k = n;
            bool begins = i == 1;
            for (; k > 0 && (begins ? strikes[k - 1].at_s > pair[i].at_s : strikes[k - 1].at_s >= pair[i].at_s); k--) {
                strikes[k] = strikes[k - 1];
            }
            strikes[k] = pair[i];
        }
    }
    for (int i = 0; i < n; i++) {
        if (strikes[i].at_s > at_s) {
            span.until_s = strikes[i].at_s;
            break;
        }
        span.from_s = strikes[i].at_s;
        span.offset_s = strikes[i].offset_s;
    }
    return span;
}

struct rl_zone_span rl_zone_span_at(const struct rl_zone *z, int64_t at_s) {
    uint32_t low = 0, high = z->count; /* shifts before low are not after at_s, those from high on are */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (z->shifts[middle].at_s <= at_s)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == z->count && z->ruled) {
        struct rl_zone_span span = ruled_span(z, at_s);
        if (low > 0 && span.from_s < z->shifts[low - 1].at_s) span.from_s = z->shifts[low - 1].at_s;
        return span;
    }
    struct rl_zone_span span = {RL_ZONE_BEFORE_S, RL_ZONE_AFTER_S, z->first_s};
    if (low > 0) span.from_s = z->shifts[low - 1].at_s;
    if (low > 0) span.offset_s = z->shifts[low - 1].offset_s;
    if (low < z->count) span.until_s = z->shifts[low].at_s;
    return span;
}
