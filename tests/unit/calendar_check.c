/* Answers questions about the calendar over a pipe, so that tests/server/test_calendar.py can compare it with Python's
 * zoneinfo: a line "zone unit anchor ms" is answered by "start_ms end_ms offset_s", or by the name of the error.
 *
 *     calendar_check [directory of a tz database] */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algo/calendar.h"
#include "server/zones.h"

static size_t usable(void *p) {
    return malloc_usable_size(p);
}

int main(int argc, char **argv) {
    static const struct rl_allocator mem = {malloc, realloc, free, usable};
    static const char *const errors[] = {"ok", "bad-syntax", "no-database", "unknown", "unreadable", "no-memory"};
    static struct rl_zones zones;
    static char line[512], name[256], word[32];
    rl_zones_init(&zones, &mem, argc > 1 ? argv[1] : NULL);
    while (fgets(line, sizeof(line), stdin)) {
        int anchor;
        int64_t at_ms;
        enum rl_zones_error error;
        if (strcmp(line, "forget\n") == 0) {
            rl_zones_forget(&zones);
            puts("ok");
            continue;
        }
        if (sscanf(line, "%255s %31s %d %" SCNd64, name, word, &anchor, &at_ms) != 4) return 1;
        enum rl_calendar_unit unit = rl_calendar_unit(word, strlen(word));
        if (anchor < 1 || anchor > rl_calendar_anchor_max(unit)) return 1;
        const struct rl_zone *z = rl_zones_get(&zones, name, strlen(name), &error);
        if (z) {
            struct rl_period p = rl_calendar_period(z, unit, anchor, at_ms);
            int32_t offset_s = rl_zone_span_at(z, at_ms / 1000 - (at_ms % 1000 < 0)).offset_s;
            printf("%" PRId64 " %" PRId64 " %" PRId32 "\n", p.start_ms, p.end_ms, offset_s);
        } else {
            puts(errors[error]);
        }
    }
    rl_zones_forget(&zones);
    return 0;
}
