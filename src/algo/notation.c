#include "algo/notation.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct unit {
    const char *name;
    size_t len;
    int64_t ms;
};

/* Longest span first, so that formatting finds the shortest notation; words after their letters. */
static const struct unit units[] = {
    {"w", 1, 604800000},  {"d", 1, 86400000},   {"h", 1, 3600000},      {"m", 1, 60000},
    {"s", 1, 1000},       {"ms", 2, 1},         {"second", 6, 1000},    {"minute", 6, 60000},
    {"hour", 4, 3600000}, {"day", 3, 86400000}, {"week", 4, 604800000},
};
enum { UNITS = sizeof(units) / sizeof(units[0]), LETTERS = 6 };

static bool is_digit(char c) {
    return (unsigned char)(c - '0') < 10;
}

/* The number that the bytes begin with, and where it ends; INT64_MAX stands for any that is too large for every
 * bound. */
static int64_t leading_number(const char *s, const char *end, const char **rest) {
    uint64_t n = 0;
    for (; s < end && is_digit(*s); s++) {
        if (n < INT64_MAX / 16)
            n = n * 10 + (uint64_t)(*s - '0');
        else
            n = INT64_MAX;
    }
    *rest = s;
    return (int64_t)n;
}

bool rl_notation_digits(const char *s, size_t len, int64_t min, int64_t max, int64_t *out) {
    const char *rest;
    int64_t n = leading_number(s, s + len, &rest);
    if (len == 0 || rest != s + len || n < min || n > max) return false;
    *out = n;
    return true;
}

static const struct unit *find_unit(const char *s, const char *end) {
    size_t len = (size_t)(end - s);
    for (int i = 0; i < UNITS; i++) {
        if (units[i].len != len || (s[0] | 0x20) != units[i].name[0]) continue;
        if (len == 1 || strncasecmp(units[i].name, s, len) == 0) return &units[i];
    }
    return NULL;
}

static bool in_range(int64_t n, int64_t max) {
    return n >= 1 && n <= max;
}

const char *rl_notation_rate(const char *s, size_t len, int64_t *count, int64_t *period_ms) {
    static const char *const wrong = "must be count/period, such as 10/s or 5/250ms";
    const char *end = s + len, *slash, *unit_at;
    int64_t n = leading_number(s, end, &slash);
    if (slash == s || slash == end || *slash != '/') return wrong;

    int64_t span = leading_number(slash + 1, end, &unit_at);
    const struct unit *u = find_unit(unit_at, end);
    if (!u) return wrong;
    if (unit_at == slash + 1) span = 1;
    if (!in_range(n, RL_UNITS_MAX)) return "must have a count from 1 to 1000000000000";
    if (!in_range(span, RL_PERIOD_MAX_MS / u->ms)) return "must have a period from 1ms to 366d";
    *count = n;
    *period_ms = span * u->ms;
    return NULL;
}

const char *rl_notation_duration(const char *s, size_t len, int64_t *ms) {
    const char *end = s + len, *unit_at;
    int64_t n = leading_number(s, end, &unit_at);
    if (unit_at > s && unit_at == end) return "needs a unit: ms, s, m, h, d or w, such as 500ms, 90s or 30d";
    const struct unit *u = find_unit(unit_at, end);
    if (!u || unit_at == s) return "must be a number and a unit, such as 500ms, 90s or 30d";
    if (!in_range(n, RL_PERIOD_MAX_MS / u->ms)) return "must be from 1ms to 366d";
    *ms = n * u->ms;
    return NULL;
}

static const struct unit *largest_unit(int64_t ms) {
    int i = 0;
    while (i < LETTERS - 1 && ms % units[i].ms != 0) i++;
    return &units[i];
}

size_t rl_notation_format_duration(char *out, size_t size, int64_t ms) {
    const struct unit *u = largest_unit(ms);
    return (size_t)snprintf(out, size, "%" PRId64 "%s", ms / u->ms, u->name);
}

size_t rl_notation_format_rate(char *out, size_t size, int64_t count, int64_t period_ms) {
    const struct unit *u = largest_unit(period_ms);
    if (period_ms == u->ms) return (size_t)snprintf(out, size, "%" PRId64 "/%s", count, u->name);
    return (size_t)snprintf(out, size, "%" PRId64 "/%" PRId64 "%s", count, period_ms / u->ms, u->name);
}
