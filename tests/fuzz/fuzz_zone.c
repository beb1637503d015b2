/* TZif data and the text of zones, from anybody: whatever is read must be sound, nothing may be lost or crash. */
#include <stdlib.h>
#include <string.h>

#include "algo/calendar.h"

static void *checked_realloc(void *p, size_t size) {
    return realloc(p, size);
}

static const struct rl_allocator mem = {.alloc = malloc, .realloc = checked_realloc, .free = free};

static void require(bool held) {
    if (!held) abort();
}

static void fuzz_text(const char *text, size_t len) {
    int64_t words[RL_ZONE_WORDS], again[RL_ZONE_WORDS];
    char back[RL_ZONE_TEXT_MAX + 1];
    if (!rl_zone_pack(words, text, len)) return;
    require(rl_zone_packed_valid(words));
    require(rl_zone_pack(again, back, rl_zone_unpack(words, back)) && memcmp(words, again, sizeof(words)) == 0);
    require(!strstr(back, "..") && !strstr(back, "//") && back[0] != '/');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_text((const char *)data, size);
    int64_t words[RL_ZONE_WORDS];
    if (size >= sizeof(words)) {
        memcpy(words, data, sizeof(words));
        rl_zone_packed_valid(words);
    }

    struct rl_zone z;
    if (!rl_zone_parse(&z, data, size, &mem)) return 0;
    for (uint32_t i = 0; i < 8; i++) {
        int64_t at_s = z.count ? z.shifts[(size_t)i * z.count / 8].at_s : (int64_t)i * 1000000000;
        if (at_s < -(INT64_C(1) << 40) || at_s > INT64_C(1) << 40) at_s = (int64_t)i * 1000000000;
        for (int unit = RL_CALENDAR_HOUR; unit <= RL_CALENDAR_YEAR; unit++) {
            struct rl_period p = rl_calendar_period(&z, (enum rl_calendar_unit)unit, 1, at_s * 1000);
            require(p.start_ms <= at_s * 1000 && at_s * 1000 < p.end_ms);
            require(rl_calendar_period(&z, (enum rl_calendar_unit)unit, 1, p.end_ms).start_ms == p.end_ms);
            require(p.end_ms - p.start_ms <= rl_calendar_longest_ms((enum rl_calendar_unit)unit, 1));
        }
    }
    rl_zone_free(&z, &mem);
    return 0;
}
