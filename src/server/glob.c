#include "server/glob.h"

/* Matches a character against the class at p, after its bracket; *next gets where the class ends. */
static bool in_class(const char *p, const char *end, char c, const char **next) {
    bool negated = p < end && *p == '^', found = false;
    p += negated;
    while (p < end && *p != ']') {
        if (*p == '\\' && end - p >= 2) p++;
        char low = *p, high = low;
        if (end - p >= 3 && p[1] == '-') {
            high = p[2];
            p += 2;
        }
        if (low > high) {
            char swapped = low;
            low = high;
            high = swapped;
        }
        found = found || (c >= low && c <= high);
        p++;
    }
    *next = p < end ? p + 1 : end;
    return found != negated;
}

/* Whether one character matches what is at p, which is not a star; *next gets where that ends. */
static bool one(const char *p, const char *end, char c, const char **next) {
    if (*p == '[') return in_class(p + 1, end, c, next);
    if (*p == '\\' && end - p >= 2)
        p++;
    else if (*p == '?')
        c = '?';
    *next = p + 1;
    return *p == c;
}

bool rl_glob_matches(const char *pattern, size_t pattern_len, const char *text, size_t len) {
    const char *p = pattern, *end = pattern + pattern_len, *text_end = text + len;
    const char *after_star = NULL, *tried_from = NULL, *next;
    while (text < text_end) {
        if (p < end && *p == '*') {
            after_star = ++p;
            tried_from = text;
        } else if (p < end && one(p, end, *text, &next)) {
            p = next;
            text++;
        } else if (after_star) { /* the last star takes one more: earlier ones never have to */
            p = after_star;
            text = ++tried_from;
        } else {
            return false;
        }
    }
    while (p < end && *p == '*') p++;
    return p == end;
}
