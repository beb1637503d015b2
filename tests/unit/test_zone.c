/* Zones: the grammar of their text, TZif data whole, cut, bent and random, and offsets at the edges. */
#include "algo/zone.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

/* An allocator that fails at will and must be given everything back. */
static int fail_after = -1, held;

static void *test_alloc(size_t size) {
    if (fail_after == 0) return NULL;
    if (fail_after > 0) fail_after--;
    held++;
    return malloc(size);
}

static void test_free(void *p) {
    if (p) held--;
    free(p);
}

static const struct rl_allocator mem = {.alloc = test_alloc, .free = test_free};

static void test_text(void) {
    static const struct {
        const char *text;
        enum rl_zone_form form;
        int32_t offset_s;
        const char *packed; /* NULL: the same */
    } rows[] = {
        {"UTC", RL_ZONE_FIXED, 0, NULL},
        {"utc", RL_ZONE_FIXED, 0, "UTC"},
        {"Z", RL_ZONE_FIXED, 0, "UTC"},
        {"z", RL_ZONE_FIXED, 0, "UTC"},
        {"+00:00", RL_ZONE_FIXED, 0, "UTC"},
        {"-00:00", RL_ZONE_FIXED, 0, "UTC"},
        {"-03:00", RL_ZONE_FIXED, -10800, NULL},
        {"+05:30", RL_ZONE_FIXED, 19800, NULL},
        {"+23:59", RL_ZONE_FIXED, 86340, NULL},
        {"-23:59", RL_ZONE_FIXED, -86340, NULL},
        {"+24:00", RL_ZONE_BAD, 0, NULL},
        {"+03:60", RL_ZONE_BAD, 0, NULL},
        {"+3:00", RL_ZONE_BAD, 0, NULL},
        {"+0300", RL_ZONE_BAD, 0, NULL},
        {"+03", RL_ZONE_BAD, 0, NULL},
        {"03:00", RL_ZONE_BAD, 0, NULL},
        {"+03:00 ", RL_ZONE_BAD, 0, NULL},
        {"+0a:00", RL_ZONE_BAD, 0, NULL},
        {"America/Sao_Paulo", RL_ZONE_NAMED, 0, NULL},
        {"America/Argentina/ComodRivadavia", RL_ZONE_NAMED, 0, NULL},
        {"Etc/GMT+10", RL_ZONE_NAMED, 0, NULL},
        {"Etc/GMT-14", RL_ZONE_NAMED, 0, NULL},
        {"EST5EDT", RL_ZONE_NAMED, 0, NULL},
        {"W-SU", RL_ZONE_NAMED, 0, NULL},
        {"A", RL_ZONE_NAMED, 0, NULL},
        {"Aaaaaaaabbbbbbbbccccccccddddddddeeeeeeeeffffffffgggggggghhhhhhhh", RL_ZONE_NAMED, 0, NULL},
        {"Aaaaaaaabbbbbbbbccccccccddddddddeeeeeeeeffffffffgggggggghhhhhhhhi", RL_ZONE_BAD, 0, NULL},
        {"", RL_ZONE_BAD, 0, NULL},
        {"america/Sao_Paulo", RL_ZONE_BAD, 0, NULL},
        {"localtime", RL_ZONE_BAD, 0, NULL},
        {"posix/UTC", RL_ZONE_BAD, 0, NULL},
        {"/UTC", RL_ZONE_BAD, 0, NULL},
        {"Europe/", RL_ZONE_BAD, 0, NULL},
        {"Europe//Berlin", RL_ZONE_BAD, 0, NULL},
        {"Europe/../UTC", RL_ZONE_BAD, 0, NULL},
        {"Europe/Ber lin", RL_ZONE_BAD, 0, NULL},
        {"Europe\\Berlin", RL_ZONE_BAD, 0, NULL},
        {"Z\xc3\xbcrich", RL_ZONE_BAD, 0, NULL},
        {"_A", RL_ZONE_BAD, 0, NULL},
        {"5A", RL_ZONE_BAD, 0, NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int32_t offset_s = 0;
        int64_t words[RL_ZONE_WORDS];
        char text[RL_ZONE_TEXT_MAX + 1];
        size_t len = strlen(rows[i].text);
        CHECK(rl_zone_form(rows[i].text, len, &offset_s) == rows[i].form);
        CHECK(offset_s == rows[i].offset_s);
        bool good = rl_zone_pack(words, rows[i].text, len);
        CHECK(good == (rows[i].form != RL_ZONE_BAD));
        if (!good) continue;
        const char *want = rows[i].packed ? rows[i].packed : rows[i].text;
        CHECK(rl_zone_unpack(words, text) == strlen(want) && strcmp(text, want) == 0);
        CHECK(rl_zone_packed_valid(words));
    }
    int32_t offset_s;
    CHECK(rl_zone_form("Europe\0Berlin", 13, &offset_s) == RL_ZONE_BAD);
}

static void test_packed(void) {
    int64_t words[RL_ZONE_WORDS] = {0};
    CHECK(rl_zone_packed_valid(words));
    words[0] = 0x43545574; /* not one that pack makes: "tUTC" */
    CHECK(!rl_zone_packed_valid(words));
    words[0] = 0x435455; /* "UTC" is all zero */
    CHECK(!rl_zone_packed_valid(words));
    words[0] = 'A';
    CHECK(rl_zone_packed_valid(words));
    words[1] = 'A'; /* something behind the end */
    CHECK(!rl_zone_packed_valid(words));
    CHECK(rl_zone_pack(words, "Etc/GMT+1", 9));
    CHECK(words[0] == INT64_C(0x2b544d472f637445) && words[1] == '1' && words[2] == 0);
    for (int i = 0; i < RL_ZONE_WORDS; i++) words[i] = -1;
    CHECK(!rl_zone_packed_valid(words));
}

/* ---- TZif, put together piece by piece ---- */

struct file {
    unsigned char bytes[4096];
    size_t len;
};

static void put(struct file *f, uint64_t n, size_t width) {
    for (size_t i = 0; i < width; i++) f->bytes[f->len++] = (unsigned char)(n >> (8 * (width - 1 - i)));
}

static void put_header(struct file *f, char version, uint64_t isut, uint64_t isstd, uint64_t leap, uint64_t time,
                       uint64_t type, uint64_t chars) {
    memcpy(f->bytes + f->len, "TZif", 4);
    f->len += 4;
    put(f, (unsigned char)version, 1);
    for (int i = 0; i < 15; i++) put(f, 0, 1);
    const uint64_t counts[] = {isut, isstd, leap, time, type, chars};
    for (int i = 0; i < 6; i++) put(f, counts[i], 4);
}

struct data {
    char version;
    int times;
    int64_t at[8];
    int type[8];
    int types;
    int32_t offset[4];
    const char *footer;
};

static struct file build(const struct data *d) {
    struct file f = {.len = 0};
    for (size_t width = 4; width <= (d->version ? 8u : 4u); width += 4) {
        put_header(&f, d->version, 0, 0, 0, (uint64_t)d->times, (uint64_t)d->types, 4);
        for (int i = 0; i < d->times; i++) put(&f, (uint64_t)d->at[i], width);
        for (int i = 0; i < d->times; i++) put(&f, (uint64_t)d->type[i], 1);
        for (int i = 0; i < d->types; i++) {
            put(&f, (uint32_t)d->offset[i], 4);
            put(&f, 0, 2);
        }
        put(&f, 0x4c4d5400, 4);
    }
    if (d->version) {
        put(&f, '\n', 1);
        memcpy(f.bytes + f.len, d->footer, strlen(d->footer));
        f.len += strlen(d->footer);
        put(&f, '\n', 1);
    }
    return f;
}

/* Parses from a block of exactly this size, so that the sanitizer sees any step beyond. */
static bool parse(struct rl_zone *z, const unsigned char *bytes, size_t len) {
    unsigned char *copy = malloc(len ? len : 1);
    memcpy(copy, bytes, len);
    bool good = rl_zone_parse(z, copy, len, &mem);
    free(copy);
    return good;
}

static int32_t offset_at(const struct rl_zone *z, int64_t at_s) {
    return rl_zone_span_at(z, at_s).offset_s;
}

static const struct data berlin = {
    .version = '2',
    .times = 3,
    .at = {-1000000, 1711846800, 1729990800},
    .type = {1, 2, 1},
    .types = 3,
    .offset = {3208, 3600, 7200},
    .footer = "CET-1CEST,M3.5.0,M10.5.0/3",
};

static void test_data(void) {
    struct rl_zone z;
    struct file f = build(&berlin);
    CHECK(parse(&z, f.bytes, f.len));
    CHECK(z.count == 3 && z.ruled && z.saving);
    CHECK(offset_at(&z, -1000001) == 3208 && offset_at(&z, -1000000) == 3600);
    CHECK(offset_at(&z, 1711846799) == 3600 && offset_at(&z, 1711846800) == 7200);
    CHECK(offset_at(&z, 1729990799) == 7200 && offset_at(&z, 1729990800) == 3600);
    CHECK(offset_at(&z, 1743296399) == 3600 && offset_at(&z, 1743296400) == 7200); /* 2025, by the footer */
    CHECK(offset_at(&z, 7265725199) == 3600 && offset_at(&z, 7265725200) == 7200); /* 2200-03-30 01:00 UTC */
    CHECK(rl_zone_span_at(&z, 1729990800).from_s == 1729990800 &&
          rl_zone_span_at(&z, 1729990800).until_s == 1743296400);
    CHECK(rl_zone_span_at(&z, -1000001).from_s == RL_ZONE_BEFORE_S);
    CHECK(offset_at(&z, -(INT64_C(1) << 50)) == 3208);
    offset_at(&z, INT64_C(1) << 50);
    rl_zone_free(&z, &mem);

    struct data d = berlin; /* the first version has no footer: the last offset holds */
    d.version = 0;
    f = build(&d);
    CHECK(parse(&z, f.bytes, f.len) && !z.ruled);
    CHECK(offset_at(&z, -1000001) == 3208 && offset_at(&z, INT64_C(1) << 40) == 3600);
    CHECK(rl_zone_span_at(&z, INT64_C(1) << 40).until_s == RL_ZONE_AFTER_S);
    rl_zone_free(&z, &mem);

    d = berlin; /* days counted with and without February 29, in 2024 and 2025 */
    d.times = 0;
    d.footer = "AAA0BBB,J60/0,100/0";
    f = build(&d);
    CHECK(parse(&z, f.bytes, f.len));
    CHECK(rl_zone_span_at(&z, 1710000000).from_s == 1709251200 &&
          rl_zone_span_at(&z, 1710000000).until_s == 1712703600);
    CHECK(rl_zone_span_at(&z, 1741000000).from_s == 1740787200 &&
          rl_zone_span_at(&z, 1741000000).until_s == 1744326000);
    d.footer = "AAA0BBB,J59/0,100/0"; /* February 28 in both */
    f = build(&d);
    CHECK(parse(&z, f.bytes, f.len));
    CHECK(rl_zone_span_at(&z, 1710000000).from_s == 1709078400 && rl_zone_span_at(&z, 1741000000).from_s == 1740700800);

    d = berlin; /* the Big Bang, as zic writes it, and beyond any clock */
    d.at[0] = -(INT64_C(1) << 59);
    d.at[2] = INT64_MAX;
    f = build(&d);
    CHECK(parse(&z, f.bytes, f.len));
    CHECK(offset_at(&z, 0) == 3600 && offset_at(&z, INT64_C(1) << 40) == 7200);
    rl_zone_free(&z, &mem);

    for (char version = '2'; version <= '5'; version++) { /* a later one than is known is read as the latest known */
        d.version = version;
        f = build(&d);
        CHECK(parse(&z, f.bytes, f.len));
        rl_zone_free(&z, &mem);
    }
    CHECK(held == 0);
}

static void test_bad_data(void) {
    struct rl_zone z;
    struct file f = build(&berlin);
    for (size_t len = 0; len < f.len; len++) CHECK(!parse(&z, f.bytes, len));
    fail_after = 0;
    CHECK(!parse(&z, f.bytes, f.len));
    fail_after = -1;

    struct data d = berlin;
    d.at[1] = d.at[0]; /* not ascending */
    f = build(&d);
    CHECK(!parse(&z, f.bytes, f.len));
    d = berlin;
    d.type[2] = 3; /* no such type */
    f = build(&d);
    CHECK(!parse(&z, f.bytes, f.len));
    d = berlin;
    d.offset[0] = 26 * 3600;
    f = build(&d);
    CHECK(!parse(&z, f.bytes, f.len));
    d.offset[0] = INT32_MIN;
    f = build(&d);
    CHECK(!parse(&z, f.bytes, f.len));

    /* Counts that promise more than there is, or than there may be. */
    for (int count = 0; count < 6; count++) {
        for (int i = 0; i < 4; i++) {
            static const uint32_t lies[] = {UINT32_MAX, 0x80000000, 5000, 1};
            f = build(&berlin);
            f.len = f.len / 2 * 2;
            struct file first = {.len = 20 + (size_t)count * 4};
            put(&first, lies[i], 4);
            memcpy(f.bytes + 20 + count * 4, first.bytes + 20 + count * 4, 4);
            if (lies[i] != 1)
                CHECK(!parse(&z, f.bytes, f.len));
            else if (parse(&z, f.bytes, f.len))
                rl_zone_free(&z, &mem);
        }
    }
    CHECK(held == 0);
}

/* Whatever can be read has spans that follow each other around any instant. */
static void walk(const struct rl_zone *z, uint64_t *seed) {
    int64_t at_s = rl_unit_between(seed, -(INT64_C(1) << (rl_unit_random(seed) % 40)), INT64_C(1) << 41);
    bool sound = true;
    for (int i = 0; i < 6; i++) {
        struct rl_zone_span s = rl_zone_span_at(z, at_s);
        sound = sound && s.from_s <= at_s && at_s < s.until_s && s.offset_s > -RL_ZONE_OFFSET_MAX_S &&
                s.offset_s < RL_ZONE_OFFSET_MAX_S;
        struct rl_zone_span again = rl_zone_span_at(z, s.from_s > -(INT64_C(1) << 50) ? s.from_s : at_s);
        sound = sound && again.from_s == s.from_s && again.until_s == s.until_s && again.offset_s == s.offset_s;
        if (s.until_s >= INT64_C(1) << 49) break;
        at_s = s.until_s;
    }
    CHECK(sound);
}

static void test_bent_data(void) {
    uint64_t seed = 13;
    int read = 0;
    for (int i = 0; i < 60000; i++) {
        struct file f = build(&berlin);
        for (int64_t n = rl_unit_between(&seed, 1, 4); n > 0; n--) {
            f.bytes[rl_unit_random(&seed) % f.len] = (unsigned char)rl_unit_random(&seed);
        }
        struct rl_zone z;
        if (!parse(&z, f.bytes, f.len)) continue;
        read++;
        walk(&z, &seed);
        rl_zone_free(&z, &mem);
    }
    CHECK(read > 1000);
    for (int i = 0; i < 60000; i++) { /* footers out of the letters of footers */
        static const char letters[] = "MJ0123456789,./:<>+-ABC";
        char footer[40];
        size_t len = (size_t)rl_unit_between(&seed, 0, 39);
        for (size_t k = 0; k < len; k++) footer[k] = letters[rl_unit_random(&seed) % (sizeof(letters) - 1)];
        footer[len] = 0;
        struct data d = berlin;
        d.footer = footer;
        struct file f = build(&d);
        struct rl_zone z;
        if (!parse(&z, f.bytes, f.len)) continue;
        walk(&z, &seed);
        rl_zone_free(&z, &mem);
    }
    CHECK(held == 0);
}

int main(void) {
    test_text();
    test_packed();
    test_data();
    test_bad_data();
    test_bent_data();
    return rl_unit_done("zone");
}
