/* Any bytes as a number, a rate and a duration: nothing outside of them is read, what is accepted is inside the bounds
 * and survives formatting, what is refused writes nothing. */
#include <stdlib.h>
#include <string.h>

#include "algo/notation.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { UNTOUCHED = -77 };

static void must(bool held) {
    if (!held) abort();
}

static void fuzz_digits(const char *s, size_t len) {
    int64_t n = UNTOUCHED;
    if (!rl_notation_digits(s, len, 1, RL_UNITS_MAX, &n)) {
        must(n == UNTOUCHED);
        return;
    }
    must(n >= 1 && n <= RL_UNITS_MAX && len > 0);
    int64_t by_hand = 0;
    for (size_t i = 0; i < len; i++) {
        must(s[i] >= '0' && s[i] <= '9');
        by_hand = by_hand * 10 + (s[i] - '0');
    }
    must(n == by_hand);
}

static void fuzz_rate(const char *s, size_t len) {
    int64_t count = UNTOUCHED, period_ms = UNTOUCHED;
    if (rl_notation_rate(s, len, &count, &period_ms)) {
        must(count == UNTOUCHED && period_ms == UNTOUCHED);
        return;
    }
    must(count >= 1 && count <= RL_UNITS_MAX && period_ms >= 1 && period_ms <= RL_PERIOD_MAX_MS);

    char text[RL_NOTATION_SIZE];
    int64_t count_again, period_again_ms;
    size_t text_len = rl_notation_format_rate(text, sizeof(text), count, period_ms);
    must(text_len == strlen(text) && text_len <= len);
    must(!rl_notation_rate(text, text_len, &count_again, &period_again_ms));
    must(count_again == count && period_again_ms == period_ms);
}

static void fuzz_duration(const char *s, size_t len) {
    int64_t ms = UNTOUCHED;
    if (rl_notation_duration(s, len, &ms)) {
        must(ms == UNTOUCHED);
        return;
    }
    must(ms >= 1 && ms <= RL_PERIOD_MAX_MS);

    char text[RL_NOTATION_SIZE];
    int64_t again_ms;
    size_t text_len = rl_notation_format_duration(text, sizeof(text), ms);
    must(text_len == strlen(text) && text_len <= len);
    must(!rl_notation_duration(text, text_len, &again_ms) && again_ms == ms);
}

/* Whatever the numbers, there is room for them. */
static void fuzz_format(const uint8_t *data, size_t size) {
    int64_t n[2];
    char text[RL_NOTATION_SIZE];
    if (size < sizeof(n)) return;
    memcpy(n, data, sizeof(n));
    must(rl_notation_format_rate(text, sizeof(text), n[0], n[1]) == strlen(text));
    must(rl_notation_format_duration(text, sizeof(text), n[0]) == strlen(text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    /* A block of exactly this size, so that the sanitizer sees one byte too many. */
    char *s = malloc(size ? size : 1);
    if (!s) return 0;
    if (size) memcpy(s, data, size);
    fuzz_digits(s, size);
    fuzz_rate(s, size);
    fuzz_duration(s, size);
    fuzz_format(data, size);
    free(s);
    return 0;
}
