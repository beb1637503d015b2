/* Rates and durations: tables of what is right and of what is wrong and why, and there and back for random values. */
#include "algo/notation.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#define DAY_MS INT64_C(86400000)
#define WEEK_MS (7 * DAY_MS)
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Bytes with their length, so that a NUL may stand inside. */
#define TEXT(literal) (literal), sizeof(literal) - 1

enum { UNTOUCHED = -77 };

static const char rate_form[] = "must be count/period, such as 10/s or 5/250ms";
static const char rate_count[] = "must have a count from 1 to 1000000000000";
static const char rate_period[] = "must have a period from 1ms to 366d";
static const char duration_unit[] = "needs a unit: ms, s, m, h, d or w, such as 500ms, 90s or 30d";
static const char duration_form[] = "must be a number and a unit, such as 500ms, 90s or 30d";
static const char duration_range[] = "must be from 1ms to 366d";

/* The harness names the first failures only, and so do we. */
static bool telling(void) {
    return rl_unit_failed <= 20;
}

static bool same_text(const char *a, const char *b) {
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* A copy that ends where its memory ends: under the sanitizer, reading one byte more is fatal. */
static char *exact_copy(const char *s, size_t len) {
    char *copy = malloc(len ? len : 1);
    if (!copy) abort();
    memcpy(copy, s, len);
    return copy;
}

static void show(const char *what, const char *s, size_t len) {
    printf("  %s \"", what);
    for (size_t i = 0; i < len; i++) {
        if (s[i] >= ' ' && s[i] < 127) {
            putchar(s[i]);
        } else {
            printf("\\x%02x", (unsigned char)s[i]);
        }
    }
    printf("\"\n");
}

static void expect_rate(const char *s, size_t len, const char *wrong, int64_t count, int64_t period_ms) {
    char *copy = exact_copy(s, len);
    int64_t got_count = UNTOUCHED, got_ms = UNTOUCHED;
    const char *got = rl_notation_rate(copy, len, &got_count, &got_ms);
    bool held = CHECK(same_text(got, wrong));
    held = CHECK(got_count == count && got_ms == period_ms) && held;
    if (!held && telling()) {
        show("rate", s, len);
        printf("  %s, %" PRId64 " in %" PRId64 " ms\n", got ? got : "accepted", got_count, got_ms);
    }
    free(copy);
}

static void expect_duration(const char *s, size_t len, const char *wrong, int64_t ms) {
    char *copy = exact_copy(s, len);
    int64_t got_ms = UNTOUCHED;
    const char *got = rl_notation_duration(copy, len, &got_ms);
    bool held = CHECK(same_text(got, wrong));
    held = CHECK(got_ms == ms) && held;
    if (!held && telling()) {
        show("duration", s, len);
        printf("  %s, %" PRId64 " ms\n", got ? got : "accepted", got_ms);
    }
    free(copy);
}

static void test_good_rates(void) {
    static const struct {
        const char *s;
        size_t len;
        int64_t count, period_ms;
    } rows[] = {
        /* the examples of the design */
        {TEXT("10/s"), 10, 1000},
        {TEXT("2/m"), 2, 60000},
        {TEXT("5/250ms"), 5, 250},
        {TEXT("1000/day"), 1000, DAY_MS},
        {TEXT("36000/30m"), 36000, 1800000},
        {TEXT("1/10s"), 1, 10000},
        /* every unit, alone and with a number */
        {TEXT("1/ms"), 1, 1},
        {TEXT("1/s"), 1, 1000},
        {TEXT("1/m"), 1, 60000},
        {TEXT("1/h"), 1, 3600000},
        {TEXT("1/d"), 1, DAY_MS},
        {TEXT("1/w"), 1, WEEK_MS},
        {TEXT("3/7ms"), 3, 7},
        {TEXT("3/7s"), 3, 7000},
        {TEXT("3/7m"), 3, 420000},
        {TEXT("3/7h"), 3, 25200000},
        {TEXT("3/7d"), 3, WEEK_MS},
        {TEXT("3/7w"), 3, 7 * WEEK_MS},
        /* every word, in any case */
        {TEXT("1/second"), 1, 1000},
        {TEXT("1/minute"), 1, 60000},
        {TEXT("1/hour"), 1, 3600000},
        {TEXT("1/day"), 1, DAY_MS},
        {TEXT("1/week"), 1, WEEK_MS},
        {TEXT("1/SECOND"), 1, 1000},
        {TEXT("1/Minute"), 1, 60000},
        {TEXT("1/hOUR"), 1, 3600000},
        {TEXT("1/DaY"), 1, DAY_MS},
        {TEXT("1/weeK"), 1, WEEK_MS},
        {TEXT("1/2Week"), 1, 2 * WEEK_MS},
        {TEXT("1/MS"), 1, 1},
        {TEXT("1/mS"), 1, 1},
        {TEXT("1/Ms"), 1, 1},
        {TEXT("1/S"), 1, 1000},
        {TEXT("1/M"), 1, 60000},
        {TEXT("1/H"), 1, 3600000},
        {TEXT("1/D"), 1, DAY_MS},
        {TEXT("1/W"), 1, WEEK_MS},
        /* bounds */
        {TEXT("1000000000000/ms"), RL_UNITS_MAX, 1},
        {TEXT("1/366d"), 1, 366 * DAY_MS},
        {TEXT("1/52w"), 1, 364 * DAY_MS},
        {TEXT("1/8784h"), 1, 366 * DAY_MS},
        {TEXT("1/527040m"), 1, 366 * DAY_MS},
        {TEXT("1/31622400s"), 1, 366 * DAY_MS},
        {TEXT("1/31622400000ms"), 1, 366 * DAY_MS},
        {TEXT("1000000000000/366DAY"), RL_UNITS_MAX, 366 * DAY_MS},
        /* leading zeros are digits too */
        {TEXT("010/s"), 10, 1000},
        {TEXT("10/01s"), 10, 1000},
        {TEXT("0000000000000000000000000000010/0000000000000000000000000000250ms"), 10, 250},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        expect_rate(rows[i].s, rows[i].len, NULL, rows[i].count, rows[i].period_ms);
}

static void test_bad_rates(void) {
    static const struct {
        const char *s;
        size_t len;
        const char *wrong;
    } rows[] = {
        /* not count/period at all */
        {TEXT(""), rate_form},
        {TEXT("/"), rate_form},
        {TEXT("10"), rate_form},
        {TEXT("10/"), rate_form},
        {TEXT("/s"), rate_form},
        {TEXT("s"), rate_form},
        {TEXT("10s"), rate_form},
        {TEXT("10//s"), rate_form},
        {TEXT("10/s/"), rate_form},
        {TEXT("10/5"), rate_form},
        {TEXT("10/5/s"), rate_form},
        {TEXT("10:s"), rate_form},
        {TEXT("10\\s"), rate_form},
        /* signs, spaces, exponents, fractions, other notations of numbers */
        {TEXT("-1/s"), rate_form},
        {TEXT("+1/s"), rate_form},
        {TEXT("1/-1s"), rate_form},
        {TEXT("1/+1s"), rate_form},
        {TEXT(" 1/s"), rate_form},
        {TEXT("1 /s"), rate_form},
        {TEXT("1/ s"), rate_form},
        {TEXT("1/s "), rate_form},
        {TEXT("1/1 s"), rate_form},
        {TEXT("1/s\n"), rate_form},
        {TEXT("1/s\r"), rate_form},
        {TEXT("\t1/s"), rate_form},
        {TEXT("1e3/s"), rate_form},
        {TEXT("1/1e3ms"), rate_form},
        {TEXT("1.5/s"), rate_form},
        {TEXT("1/1.5s"), rate_form},
        {TEXT("1,000/s"), rate_form},
        {TEXT("1_000/s"), rate_form},
        {TEXT("0x10/s"), rate_form},
        {TEXT("1k/s"), rate_form},
        {TEXT("\xd9\xa1/s"), rate_form}, /* an Arabic one */
        /* units that are none */
        {TEXT("1/x"), rate_form},
        {TEXT("1/us"), rate_form},
        {TEXT("1/y"), rate_form},
        {TEXT("1/month"), rate_form},
        {TEXT("1/year"), rate_form},
        {TEXT("1/sec"), rate_form},
        {TEXT("1/min"), rate_form},
        {TEXT("1/seconds"), rate_form},
        {TEXT("1/days"), rate_form},
        {TEXT("1/da"), rate_form},
        {TEXT("1/dax"), rate_form},
        {TEXT("1/wee"), rate_form},
        {TEXT("1/mm"), rate_form},
        {TEXT("1/sm"), rate_form},
        {TEXT("1/ss"), rate_form},
        {TEXT("1/mss"), rate_form},
        {TEXT("1/s1"), rate_form},
        {TEXT("1/1h30m"), rate_form},
        {TEXT("1/\x13"), rate_form}, /* s, m, d, h, w but for the bits that letters have in common */
        {TEXT("1/\x33"), rate_form},
        {TEXT("1/\xf3"), rate_form},
        {TEXT("1/\xed"), rate_form},
        {TEXT("1/\x0d"), rate_form},
        {TEXT("1/\x17"), rate_form},
        {TEXT("1/\xff"), rate_form},
        {TEXT("1/\xc5\xbf"), rate_form},        /* a long s */
        {TEXT("1/wee\xe2\x84\xaa"), rate_form}, /* ends with the sign of the Kelvin */
        /* NUL bytes, which end nothing */
        {TEXT("\0"), rate_form},
        {TEXT("\0001/s"), rate_form},
        {TEXT("1\0/s"), rate_form},
        {TEXT("1/\0"), rate_form},
        {TEXT("1/\0s"), rate_form},
        {TEXT("1/s\0"), rate_form},
        {TEXT("1/m\0"), rate_form},
        {TEXT("1/ms\0"), rate_form},
        {TEXT("1/5\0ms"), rate_form},
        {TEXT("1/da\0"), rate_form},
        {TEXT("1/day\0"), rate_form},
        {TEXT("1/d\0y"), rate_form},
        /* the form is right, the count is not */
        {TEXT("0/s"), rate_count},
        {TEXT("000/s"), rate_count},
        {TEXT("1000000000001/s"), rate_count},
        {TEXT("9223372036854775807/s"), rate_count},
        {TEXT("9223372036854775808/s"), rate_count},
        {TEXT("18446744073709551615/s"), rate_count},
        {TEXT("18446744073709551617/s"), rate_count}, /* 1 modulo 2^64 */
        {TEXT("100000000000000000000/s"), rate_count},
        {TEXT("36893488147419103232000000000000000000000001/s"), rate_count},
        {TEXT("0/0s"), rate_count},
        {TEXT("1000000000001/367d"), rate_count},
        /* the count is right, the period is not */
        {TEXT("1/0s"), rate_period},
        {TEXT("1/0ms"), rate_period},
        {TEXT("1/0day"), rate_period},
        {TEXT("1/00w"), rate_period},
        {TEXT("1/367d"), rate_period},
        {TEXT("1/53w"), rate_period},
        {TEXT("1/8785h"), rate_period},
        {TEXT("1/527041m"), rate_period},
        {TEXT("1/31622401s"), rate_period},
        {TEXT("1/31622400001ms"), rate_period},
        {TEXT("1/53WEEK"), rate_period},
        {TEXT("1/9223372036854775807ms"), rate_period},
        {TEXT("1/18446744073709551617ms"), rate_period},
        {TEXT("1/100000000000000000000000000000w"), rate_period},
        {TEXT("1/15250284452471w"), rate_period}, /* a product of about 2^63 */
        {TEXT("1/30500568904944w"), rate_period}, /* a product of about 2^64 */
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        expect_rate(rows[i].s, rows[i].len, rows[i].wrong, UNTOUCHED, UNTOUCHED);
}

static void test_good_durations(void) {
    static const struct {
        const char *s;
        size_t len;
        int64_t ms;
    } rows[] = {
        {TEXT("500ms"), 500},
        {TEXT("90s"), 90000},
        {TEXT("30d"), 30 * DAY_MS},
        {TEXT("1ms"), 1},
        {TEXT("1s"), 1000},
        {TEXT("1m"), 60000},
        {TEXT("1h"), 3600000},
        {TEXT("1d"), DAY_MS},
        {TEXT("1w"), WEEK_MS},
        {TEXT("2second"), 2000},
        {TEXT("2Minute"), 120000},
        {TEXT("2HOUR"), 7200000},
        {TEXT("2dAy"), 2 * DAY_MS},
        {TEXT("2weeK"), 2 * WEEK_MS},
        {TEXT("5MS"), 5},
        {TEXT("5H"), 18000000},
        {TEXT("366d"), RL_PERIOD_MAX_MS},
        {TEXT("52w"), 364 * DAY_MS},
        {TEXT("31622400000ms"), RL_PERIOD_MAX_MS},
        {TEXT("007s"), 7000},
        {TEXT("000000000000000000000000000001ms"), 1},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) expect_duration(rows[i].s, rows[i].len, NULL, rows[i].ms);
}

static void test_bad_durations(void) {
    static const struct {
        const char *s;
        size_t len;
        const char *wrong;
    } rows[] = {
        /* nobody has to guess */
        {TEXT("0"), duration_unit},
        {TEXT("5"), duration_unit},
        {TEXT("500"), duration_unit},
        {TEXT("007"), duration_unit},
        {TEXT("99999999999999999999999"), duration_unit},
        /* no number and unit */
        {TEXT(""), duration_form},
        {TEXT("s"), duration_form},
        {TEXT("ms"), duration_form},
        {TEXT("day"), duration_form},
        {TEXT("x"), duration_form},
        {TEXT("/"), duration_form},
        {TEXT("5/s"), duration_form},
        {TEXT("5x"), duration_form},
        {TEXT("5us"), duration_form},
        {TEXT("5mss"), duration_form},
        {TEXT("5days"), duration_form},
        {TEXT("1month"), duration_form},
        {TEXT("1h30m"), duration_form},
        {TEXT("-5s"), duration_form},
        {TEXT("+5s"), duration_form},
        {TEXT(" 5s"), duration_form},
        {TEXT("5 s"), duration_form},
        {TEXT("5s "), duration_form},
        {TEXT("5 "), duration_form},
        {TEXT("1e3ms"), duration_form},
        {TEXT("1.5s"), duration_form},
        {TEXT("0x5s"), duration_form},
        {TEXT("\0"), duration_form},
        {TEXT("\0005s"), duration_form},
        {TEXT("5\0"), duration_form},
        {TEXT("5\0s"), duration_form},
        {TEXT("5s\0"), duration_form},
        {TEXT("5m\0"), duration_form},
        {TEXT("5da\0"), duration_form},
        /* too short, too long */
        {TEXT("0ms"), duration_range},
        {TEXT("0w"), duration_range},
        {TEXT("000s"), duration_range},
        {TEXT("367d"), duration_range},
        {TEXT("53w"), duration_range},
        {TEXT("31622400001ms"), duration_range},
        {TEXT("31622401s"), duration_range},
        {TEXT("9223372036854775807ms"), duration_range},
        {TEXT("18446744073709551617ms"), duration_range},
        {TEXT("30500568904944w"), duration_range},
        {TEXT("100000000000000000000d"), duration_range},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) expect_duration(rows[i].s, rows[i].len, rows[i].wrong, UNTOUCHED);
}

static void test_digits(void) {
    static const struct {
        const char *s;
        size_t len;
        int64_t min, max;
        bool good;
        int64_t n;
    } rows[] = {
        {TEXT("0"), 0, 9, true, 0},
        {TEXT("0"), 1, 9, false, 0},
        {TEXT("9"), 1, 9, true, 9},
        {TEXT("10"), 1, 9, false, 0},
        {TEXT("0010"), 10, 10, true, 10},
        {TEXT("1000000000000"), 1, RL_UNITS_MAX, true, RL_UNITS_MAX},
        {TEXT("1000000000001"), 1, RL_UNITS_MAX, false, 0},
        {TEXT("9007199254740992"), 0, RL_CLOCK_MAX_US, true, RL_CLOCK_MAX_US},
        {TEXT("9007199254740993"), 0, RL_CLOCK_MAX_US, false, 0},
        {TEXT("9223372036854775807"), 1, RL_UNITS_MAX, false, 0},
        {TEXT("18446744073709551617"), 1, RL_UNITS_MAX, false, 0},
        {TEXT("1000000000000000000000000000000"), 1, RL_UNITS_MAX, false, 0},
        {TEXT(""), 0, 9, false, 0},
        {TEXT("-1"), -9, 9, false, 0},
        {TEXT("+1"), 0, 9, false, 0},
        {TEXT(" 1"), 0, 9, false, 0},
        {TEXT("1 "), 0, 9, false, 0},
        {TEXT("1e1"), 0, 99, false, 0},
        {TEXT("1."), 0, 9, false, 0},
        {TEXT("1\0"), 0, 9, false, 0},
        {TEXT("\0001"), 0, 9, false, 0},
        {TEXT("1:"), 0, 99, false, 0}, /* the bytes next to the digits */
        {TEXT("1/"), 0, 99, false, 0},
        {TEXT("\xb1"), 0, 9, false, 0},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char *copy = exact_copy(rows[i].s, rows[i].len);
        int64_t n = UNTOUCHED;
        bool good = rl_notation_digits(copy, rows[i].len, rows[i].min, rows[i].max, &n);
        if (!CHECK(good == rows[i].good && n == (good ? rows[i].n : UNTOUCHED))) show("digits", rows[i].s, rows[i].len);
        free(copy);
    }
}

static void test_format(void) {
    static const struct {
        int64_t ms;
        const char *text;
    } durations[] = {
        {1, "1ms"},
        {500, "500ms"},
        {999, "999ms"},
        {1000, "1s"},
        {1001, "1001ms"},
        {1500, "1500ms"},
        {59000, "59s"},
        {60000, "1m"},
        {61000, "61s"},
        {90000, "90s"},
        {3600000, "1h"},
        {5400000, "90m"},
        {DAY_MS, "1d"},
        {25 * INT64_C(3600000), "25h"},
        {6 * DAY_MS, "6d"},
        {WEEK_MS, "1w"},
        {604800000 * INT64_C(2), "2w"},
        {30 * DAY_MS, "30d"},
        {364 * DAY_MS, "52w"},
        {RL_PERIOD_MAX_MS, "366d"},
        {RL_PERIOD_MAX_MS - 1, "31622399999ms"},
    };
    static const struct {
        int64_t count, period_ms;
        const char *text;
    } rates[] = {
        {10, 1000, "10/s"},
        {10, 60000, "10/m"},
        {5, 250, "5/250ms"},
        {1, 1, "1/ms"},
        {1000, DAY_MS, "1000/d"},
        {36000, 1800000, "36000/30m"},
        {1, WEEK_MS, "1/w"},
        {1, 2 * WEEK_MS, "1/2w"},
        {1, 90000, "1/90s"},
        {RL_UNITS_MAX, RL_PERIOD_MAX_MS, "1000000000000/366d"},
        {RL_UNITS_MAX, RL_PERIOD_MAX_MS - 1, "1000000000000/31622399999ms"},
    };
    char text[RL_NOTATION_SIZE];
    for (size_t i = 0; i < COUNT_OF(durations); i++) {
        memset(text, '#', sizeof(text));
        size_t len = rl_notation_format_duration(text, sizeof(text), durations[i].ms);
        if (!CHECK(len == strlen(durations[i].text) && memcmp(text, durations[i].text, len + 1) == 0))
            printf("  %s should be %s\n", text, durations[i].text);
    }
    for (size_t i = 0; i < COUNT_OF(rates); i++) {
        memset(text, '#', sizeof(text));
        size_t len = rl_notation_format_rate(text, sizeof(text), rates[i].count, rates[i].period_ms);
        if (!CHECK(len == strlen(rates[i].text) && memcmp(text, rates[i].text, len + 1) == 0))
            printf("  %s should be %s\n", text, rates[i].text);
    }
    /* "or any int64": the longest there are */
    CHECK(rl_notation_format_rate(text, sizeof(text), INT64_MIN, INT64_MIN) == strlen(text));
    CHECK(rl_notation_format_duration(text, sizeof(text), INT64_MIN) == strlen(text));
}

static const struct {
    const char *name;
    int64_t ms;
} letters[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", DAY_MS}, {"w", WEEK_MS}};

/* No other unit writes it with fewer bytes. */
static size_t shortest_len(int64_t ms) {
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < COUNT_OF(letters); i++) {
        char other[64];
        if (ms % letters[i].ms != 0) continue;
        size_t len = (size_t)snprintf(other, sizeof(other), "%" PRId64 "%s", ms / letters[i].ms, letters[i].name);
        if (len < best) best = len;
    }
    return best;
}

/* Multiples of a unit more often than chance would have it, and of every length. */
static int64_t random_ms(uint64_t *seed) {
    int64_t unit = letters[rl_unit_between(seed, 0, COUNT_OF(letters) - 1)].ms;
    int64_t max = RL_PERIOD_MAX_MS / unit;
    int64_t bits = rl_unit_between(seed, 0, 35);
    int64_t top = max >> bits > 0 ? max >> bits : 1;
    return rl_unit_between(seed, 1, top) * unit;
}

static void test_round_trips(uint64_t seed) {
    for (int i = 0; i < 100000; i++) {
        char text[RL_NOTATION_SIZE];
        int64_t ms = random_ms(&seed), got_ms = UNTOUCHED, got_count = UNTOUCHED;
        int64_t count = rl_unit_between(&seed, 1, RL_UNITS_MAX >> rl_unit_between(&seed, 0, 39));

        size_t len = rl_notation_format_duration(text, sizeof(text), ms);
        bool held = CHECK(len == strlen(text) && len == shortest_len(ms));
        held = CHECK(!rl_notation_duration(text, len, &got_ms) && got_ms == ms) && held;

        len = rl_notation_format_rate(text, sizeof(text), count, ms);
        held = CHECK(len == strlen(text)) && held;
        got_ms = UNTOUCHED;
        held = CHECK(!rl_notation_rate(text, len, &got_count, &got_ms) && got_count == count && got_ms == ms) && held;
        if (!held && telling()) printf("  %" PRId64 " in %" PRId64 " ms, written %s\n", count, ms, text);
    }
}

/* Random bytes of the alphabet of rates, against a reading of the grammar from its other end: unit, digits, slash. */
static bool naive_rate(const char *s, size_t len) {
    static const char *const names[] = {"ms", "s", "m", "h", "d", "w", "day"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        size_t unit_len = strlen(names[i]);
        if (len < unit_len || memcmp(s + len - unit_len, names[i], unit_len) != 0) continue;
        size_t at = len - unit_len;
        while (at > 0 && s[at - 1] >= '0' && s[at - 1] <= '9') at--;
        if (at < 2 || s[--at] != '/') continue;
        size_t digits = 0;
        while (digits < at && s[digits] >= '0' && s[digits] <= '9') digits++;
        if (digits == at) return true;
    }
    return false;
}

static void test_random_bytes(uint64_t seed) {
    static const char alphabet[] = "0123456789123/////msmshdwday-+ e.\0";
    for (int i = 0; i < 200000; i++) {
        char s[9];
        size_t len = (size_t)rl_unit_between(&seed, 0, (int64_t)sizeof(s));
        for (size_t k = 0; k < len; k++) s[k] = alphabet[rl_unit_between(&seed, 0, (int64_t)sizeof(alphabet) - 2)];
        int64_t count = UNTOUCHED, ms = UNTOUCHED;
        const char *wrong = rl_notation_rate(s, len, &count, &ms);
        bool held = CHECK((wrong == NULL || !same_text(wrong, rate_form)) == naive_rate(s, len));
        held = CHECK((wrong == NULL) == (count != UNTOUCHED && ms != UNTOUCHED)) && held;
        if (!held && telling()) show("rate", s, len);
    }
}

int main(int argc, char **argv) {
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : UINT64_C(0x6e6f746174696f6e);
    if (seed == 0) seed = 1;
    printf("test_notation: seed %" PRIu64 "\n", seed);
    test_good_rates();
    test_bad_rates();
    test_good_durations();
    test_bad_durations();
    test_digits();
    test_format();
    test_round_trips(seed);
    test_random_bytes(seed);
    return rl_unit_done("test_notation");
}
