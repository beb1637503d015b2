#include "server/args.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "algo/notation.h"
#include "server/reply.h"

const char *rl_args_text(struct rl_args *a, const char *name, size_t *len) {
    if (rl_args_more(a)) return RedisModule_StringPtrLen(a->argv[a->at++], len);
    rl_reply_error(a->ctx, "ERR %s needs a value", name);
    return NULL;
}

bool rl_args_rate(struct rl_args *a, const char *name, int64_t *count, int64_t *period_ms) {
    size_t len;
    const char *s = rl_args_text(a, name, &len);
    if (!s) return false;
    const char *wrong = rl_notation_rate(s, len, count, period_ms);
    return !wrong || rl_reply_error(a->ctx, "ERR %s %s", name, wrong);
}

bool rl_args_duration(struct rl_args *a, const char *name, int64_t *ms) {
    size_t len;
    const char *s = rl_args_text(a, name, &len);
    if (!s) return false;
    const char *wrong = rl_notation_duration(s, len, ms);
    return !wrong || rl_reply_error(a->ctx, "ERR %s %s", name, wrong);
}

bool rl_args_number(struct rl_args *a, const char *name, int64_t min, int64_t max, int64_t *n) {
    size_t len;
    const char *s = rl_args_text(a, name, &len);
    if (!s) return false;
    return rl_notation_digits(s, len, min, max, n) ||
           rl_reply_error(a->ctx, "ERR %s must be a whole number from %" PRId64 " to %" PRId64, name, min, max);
}

bool rl_args_units(struct rl_args *a, const char *name, int64_t *units) {
    return rl_args_number(a, name, 1, RL_UNITS_MAX, units);
}

static bool matches(const char *s, size_t len, const char *keyword) {
    return len > 0 && (s[0] | 0x20) == (keyword[0] | 0x20) && len == strlen(keyword) &&
           strncasecmp(s, keyword, len) == 0;
}

bool rl_args_keyword(struct rl_args *a, const char *keyword) {
    if (!rl_args_more(a)) return false;
    size_t len;
    const char *s = RedisModule_StringPtrLen(a->argv[a->at], &len);
    if (!matches(s, len, keyword)) return false;
    a->at++;
    return true;
}

int rl_args_option(struct rl_args *a, const struct rl_option *table, unsigned *seen, void *into) {
    size_t len;
    const char *s = RedisModule_StringPtrLen(a->argv[a->at], &len);
    int i = 0;
    while (table[i].name && !matches(s, len, table[i].name)) i++;
    if (!table[i].name) return 0;
    if (*seen & RL_BIT(i)) {
        rl_reply_error(a->ctx, "ERR %s is given twice", table[i].name);
        return -1;
    }
    if (*seen & table[i].excludes) {
        int other = __builtin_ctz(*seen & table[i].excludes);
        rl_reply_error(a->ctx, "ERR %s does not go with %s", table[i].name, table[other].name);
        return -1;
    }
    *seen |= RL_BIT(i);
    a->at++;
    return !table[i].read || table[i].read(a, table[i].name, into) ? 1 : -1;
}

static void append_names(char *out, size_t size, const struct rl_option *table) {
    for (int i = 0; table[i].name; i++) {
        size_t len = strlen(out);
        snprintf(out + len, size - len, "%s%s", len ? ", " : "", table[i].name);
    }
}

void rl_args_show(const char *bytes, size_t len, char shown[RL_ARGS_SHOWN]) {
    size_t n = len < RL_ARGS_SHOWN - 1 ? len : RL_ARGS_SHOWN - 1;
    for (size_t i = 0; i < n; i++) shown[i] = bytes[i] > ' ' && bytes[i] < 127 ? bytes[i] : '?';
    shown[n] = '\0';
}

bool rl_args_unknown(struct rl_args *a, const struct rl_option *own, const struct rl_option *shared) {
    size_t len;
    const char *s = RedisModule_StringPtrLen(a->argv[a->at], &len);
    char shown[RL_ARGS_SHOWN], known[256] = "";
    rl_args_show(s, len, shown);
    append_names(known, sizeof(known), own);
    if (shared) append_names(known, sizeof(known), shared);
    return rl_reply_error(a->ctx, "ERR unknown option '%s': the options are %s", shown, known);
}

bool rl_args_options(struct rl_args *a, const struct rl_option *table, unsigned *seen, void *into) {
    unsigned ignored = 0;
    while (rl_args_more(a)) {
        int got = rl_args_option(a, table, seen ? seen : &ignored, into);
        if (got < 0) return false;
        if (got == 0) return rl_args_unknown(a, table, NULL);
    }
    return true;
}
