/* RL.ACQUIRE's algorithm: tables of instants, then random traffic against a twin that keeps its leases in a plain
 * array, the law, memory that fails, and bytes from strangers. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "algo/leases.h"
#include "unit.h"

/* ---- an allocator that fails at will */

static long blocks;              /* not yet freed */
static unsigned fail_one_in = 0; /* 0: never */
static uint64_t fail_seed = 7;

static bool fails(void) {
    return fail_one_in && rl_unit_random(&fail_seed) % fail_one_in == 0;
}

static void *test_alloc(size_t size) {
    if (fails()) return NULL;
    blocks++;
    return malloc(size);
}

static void *test_realloc(void *block, size_t size) {
    return fails() ? NULL : realloc(block, size);
}

static void test_free(void *block) {
    if (block) blocks--;
    free(block);
}

static size_t test_size(void *block) {
    return malloc_usable_size(block);
}

static const struct rl_allocator mem = {test_alloc, test_realloc, test_free, test_size};

/* ---- helpers */

static struct rl_lease_id id_of(const char *text) {
    return (struct rl_lease_id){(const unsigned char *)text, strlen(text)};
}

static bool same_id(const struct rl_lease_id *a, const struct rl_lease_id *b) {
    return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

static bool same_verdict(const struct rl_verdict *a, const struct rl_verdict *b) {
    bool same = a->allowed == b->allowed && a->limit == b->limit && a->remaining == b->remaining &&
                a->wait_ms == b->wait_ms && a->reset_ms == b->reset_ms && a->beyond == b->beyond;
    if (!same && rl_unit_failed < 20) {
        printf("allowed %ld %ld, remaining %ld %ld, wait %ld %ld, reset %ld %ld\n", (long)a->allowed, (long)b->allowed,
               (long)a->remaining, (long)b->remaining, (long)a->wait_ms, (long)b->wait_ms, (long)a->reset_ms,
               (long)b->reset_ms);
    }
    return same;
}

static unsigned char *bytes_of(const struct rl_leases *l, size_t *len) {
    *len = rl_leases_encoded_size(l);
    unsigned char *bytes = malloc(*len + 1);
    rl_leases_encode(l, bytes);
    return bytes;
}

static bool same_state(const struct rl_leases *a, const struct rl_leases *b) {
    size_t a_len, b_len;
    unsigned char *a_bytes = bytes_of(a, &a_len), *b_bytes = bytes_of(b, &b_len);
    bool same = a_len == b_len && memcmp(a_bytes, b_bytes, a_len) == 0;
    free(a_bytes);
    free(b_bytes);
    return same;
}

static bool is_zero(const struct rl_leases *l) {
    return l->at_ms == 0 && !l->table.by_end.root && !l->table.by_id.root;
}

/* Checks, and takes what was granted. */
static struct rl_verdict call(struct rl_leases *l, const struct rl_leases_limit *lim, const struct rl_leases_ask *ask,
                              int64_t now_ms) {
    static bool granted[RL_LEASES_IDS_MAX];
    static struct rl_lease_id taken[RL_LEASES_IDS_MAX];
    size_t n = 0;
    struct rl_verdict v = rl_leases_check(l, lim, ask, now_ms, granted);
    for (size_t i = 0; i < ask->ids_count; i++) {
        if (granted[i]) taken[n++] = ask->ids[i];
    }
    CHECK((n > 0) == (v.allowed > 0));
    if (ask->peek || n == 0) return v;
    CHECK(rl_leases_take(l, taken, n, ask->ids_count == 1 ? v.allowed : 1, lim->lease_ms, now_ms, &mem));
    return v;
}

static struct rl_verdict acquire(struct rl_leases *l, const struct rl_leases_limit *lim, const char *name,
                                 int64_t units, int64_t now_ms) {
    struct rl_lease_id id = id_of(name);
    return call(l, lim, &(struct rl_leases_ask){&id, 1, units, false, false}, now_ms);
}

static bool renew(struct rl_leases *l, const char *name, int64_t lease_ms, int64_t now_ms) {
    struct rl_lease_id id = id_of(name);
    return rl_leases_renew(l, &id, lease_ms, now_ms, &mem);
}

static bool release(struct rl_leases *l, const char *name, int64_t now_ms) {
    struct rl_lease_id id = id_of(name);
    return rl_leases_release(l, &id, now_ms, &mem);
}

/* ---- tables */

struct row {
    int64_t at_ms;
    const char *ids; /* separated by blanks; =id renews for a second, -id releases */
    int64_t units;
    const char *mode; /* peek, upto or both */
    int64_t limit;
    int64_t allowed, remaining, wait_ms, reset_ms;
};

static void run_row(struct rl_leases *l, const struct row *r, size_t number) {
    struct rl_lease_id ids[8];
    size_t n = 0;
    struct rl_leases_limit lim = {.limit = r->limit, .lease_ms = 1000};
    if (r->ids[0] == '=' || r->ids[0] == '-') {
        bool done = (r->ids[0] == '=' ? renew(l, r->ids + 1, 1000, r->at_ms) : release(l, r->ids + 1, r->at_ms));
        if (!CHECK(done == r->allowed)) printf("  in row %zu\n", number);
        return;
    }
    for (const char *at = r->ids; *at; at += *at == ' ') {
        ids[n].bytes = (const unsigned char *)at;
        ids[n].len = strcspn(at, " ");
        at += ids[n++].len;
    }
    struct rl_leases_ask ask = {ids, n, r->units, strstr(r->mode, "upto") != NULL, strstr(r->mode, "peek") != NULL};
    struct rl_verdict want = {r->allowed, r->limit, r->remaining, r->wait_ms, r->reset_ms, false};
    struct rl_verdict got = call(l, &lim, &ask, r->at_ms);
    if (!CHECK(same_verdict(&got, &want))) printf("  in row %zu\n", number);
}

static void run_table(const struct row *rows, size_t n) {
    struct rl_leases l = {0};
    for (size_t i = 0; i < n; i++) run_row(&l, &rows[i], i);
    rl_leases_reset(&l, &mem);
}

static void test_tables(void) {
    static const struct row lock[] = {
        /* at   ids  units mode limit allowed remaining wait reset */
        {5000, "a", 1, "", 1, 1, 0, 0, 1000},       /* the lock is free */
        {5100, "b", 1, "", 1, 0, 0, 900, 900},      /* and now it is not */
        {5200, "a", 1, "", 1, 1, 0, 0, 1000},       /* the same holder: extended, not counted twice */
        {5300, "b", 1, "", 1, 0, 0, 900, 900},      /* until 6200 */
        {5400, "=b", 0, "", 1, 0, 0, 0, 0},         /* who has none cannot renew */
        {5500, "=a", 0, "", 1, 1, 0, 0, 0},         /* until 6500 */
        {6499, "b", 1, "", 1, 0, 0, 1, 1},          /* still alive */
        {6500, "=a", 0, "", 1, 0, 0, 0, 0},         /* ended: never revived */
        {6500, "-a", 0, "", 1, 0, 0, 0, 0},         /* nothing to release */
        {6500, "b", 1, "peek", 1, 1, 1, 0, 0},      /* a peek is of the untouched state */
        {6500, "b", 1, "", 1, 1, 0, 0, 1000},       /* a died: its unit is free */
        {6600, "b", 2, "", 1, 1, 0, 0, 1000},       /* alive: its units stay, whatever the cost */
        {6700, "c", 2, "", 1, 0, 0, RL_NEVER, 900}, /* above the limit */
        {6700, "-b", 0, "", 1, 1, 0, 0, 0},         /* released */
        {6700, "-b", 0, "", 1, 0, 0, 0, 0},         /* twice is harmless */
        {6700, "c", 1, "", 1, 1, 0, 0, 1000},       /* at once */
    };
    run_table(lock, sizeof(lock) / sizeof(*lock));

    static const struct row pool[] = {
        {5000, "a", 3, "", 10, 3, 7, 0, 1000},        /* one lease of three units, until 6000 */
        {5100, "b", 2, "", 10, 2, 5, 0, 1000},        /* until 6100 */
        {5200, "c d e", 1, "", 10, 3, 2, 0, 1000},    /* three leases of one, until 6200 */
        {5300, "f", 3, "", 10, 0, 2, 700, 900},       /* a must end */
        {5300, "f", 6, "", 10, 0, 2, 800, 900},       /* a and b */
        {5300, "f", 10, "", 10, 0, 2, 900, 900},      /* all */
        {5300, "f", 11, "", 10, 0, 2, RL_NEVER, 900}, /* never */
        {5300, "f g h", 1, "", 10, 0, 2, 700, 900},   /* all or none */
        {5300, "f c g", 1, "peek", 10, 3, 2, 0, 900}, /* c is alive and needs no room */
        {5300, "f g h", 1, "upto peek", 10, 2, 2, 0, 900},
        {5300, "f", 9, "upto", 10, 2, 0, 0, 1000},           /* as many units as fit, until 6300 */
        {5300, "g", 9, "upto", 10, 0, 0, 700, 1000},         /* none fits: the wait for one unit */
        {5300, "a c", 1, "", 10, 4, 0, 0, 1000},             /* full, but both are alive: until 6300 */
        {5400, "g a h", 1, "upto", 10, 3, 0, 0, 1000},       /* a is granted, the others not; until 6400 */
        {5400, "b g", 1, "", 10, 0, 0, 700, 1000},           /* b ends at 6100, then two must fit: its own two */
        {5400, "d g", 1, "", 10, 0, 0, 700, 1000},           /* b frees two */
        {5400, "d e b g h i j", 1, "", 10, 0, 0, 900, 1000}, /* four more than what of these ends: c and f, too */
        {5500, "k", 1, "", 3, 0, -7, 900, 900},              /* lowered: a, c, f (and b, d, e) must end */
        {5500, "a", 1, "", 3, 3, -7, 0, 1000},               /* but who is alive stays so */
        {5500, "k", 1, "", 12, 1, 1, 0, 1000},               /* raised: at once */
        {9999, "z", 1, "peek", 10, 1, 10, 0, 0},             /* as if never used */
    };
    run_table(pool, sizeof(pool) / sizeof(*pool));

    static const struct row stepped[] = {
        {9000, "a", 1, "", 3, 1, 2, 0, 1000},    /* until 10000 */
        {9900, "b", 1, "", 3, 1, 1, 0, 1000},    /* until 10900 */
        {9950, "c", 1, "", 3, 1, 0, 0, 1000},    /* until 10950 */
        {9500, "d", 1, "", 3, 0, 0, 500, 1000},  /* back: a as it was, b and c at most a second */
        {9500, "d", 2, "", 3, 0, 0, 1000, 1000}, /* both at 10500 */
        {9500, "=a", 0, "", 3, 1, 0, 0, 0},      /* until 10500; b and c are repaired with it */
        {10499, "d", 1, "peek", 3, 0, 0, 1, 1},  /* as if granted then */
        {10500, "d", 1, "peek", 3, 1, 3, 0, 0},  /* all have ended */
        {1000, "d", 1, "", 3, 0, 0, 1000, 1000}, /* far back: never longer than a second */
        {1000, "-b", 0, "", 3, 1, 0, 0, 0},      /* a release needs no repair */
        {1000, "d", 1, "", 3, 1, 0, 0, 1000},    /* and frees at once */
        {1999, "e", 1, "upto", 3, 0, 0, 1, 1},   /* repaired by the take of d */
        {2000, "e f g", 1, "", 3, 3, 0, 0, 1000},
    };
    run_table(stepped, sizeof(stepped) / sizeof(*stepped));

    static const struct row gone[] = {
        {9000, "a", 1, "", 2, 1, 1, 0, 1000},  /* until 10000 */
        {10000, "b", 1, "", 2, 1, 1, 0, 1000}, /* a has ended */
        {9900, "=a", 0, "", 2, 0, 0, 0, 0},    /* back: it stays so */
        {9900, "c d", 1, "", 2, 0, 1, 1000, 1000}, {9900, "c", 1, "", 2, 1, 0, 0, 1000},
    };
    run_table(gone, sizeof(gone) / sizeof(*gone));
}

static void test_limits(void) {
    static const struct {
        struct rl_leases_limit lim;
        bool valid;
    } rows[] = {
        {{1, 1}, true},  {{1000000, RL_PERIOD_MAX_MS}, true}, {{1000001, 1}, false}, {{0, 1}, false},
        {{1, 0}, false}, {{1, RL_PERIOD_MAX_MS + 1}, false},  {{-1, 1}, false},      {{1, -1}, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        CHECK(rl_leases_limit_valid(&rows[i].lim) == rows[i].valid);
    }
    _Static_assert(sizeof(struct rl_leases) <= 64, "the state is kept as it is");
}

static void test_ids(void) {
    static char texts[RL_LEASES_IDS_MAX][8];
    static struct rl_lease_id ids[RL_LEASES_IDS_MAX];
    for (size_t i = 0; i < RL_LEASES_IDS_MAX; i++) {
        snprintf(texts[i], sizeof(texts[i]), "%zu", i);
        ids[i] = id_of(texts[i]);
    }
    CHECK(rl_leases_ids_differ(ids, RL_LEASES_IDS_MAX) && rl_leases_ids_differ(ids, 1));
    ids[1000] = id_of("17");
    CHECK(!rl_leases_ids_differ(ids, RL_LEASES_IDS_MAX) && rl_leases_ids_differ(ids, 1000));

    /* Whoever takes an id twice has one lease. */
    struct rl_leases l = {0};
    struct rl_lease_id twice[] = {id_of("a"), id_of("b"), id_of("a")};
    CHECK(rl_leases_take(&l, twice, 3, 1, 1000, 5000, &mem) && rl_leases_used(&l, 5000).units == 2);
    CHECK(rl_leases_take(&l, twice, 3, 1, 1000, 5001, &mem) && rl_leases_used(&l, 5001).records == 2);
    CHECK(release(&l, "a", 5001) && release(&l, "b", 5001) && is_zero(&l));

    /* Never more than the largest limit, whoever asks. */
    struct rl_lease_id a = id_of("a"), b = id_of("b");
    CHECK(!rl_leases_take(&l, &a, 1, 1000001, 1000, 5000, &mem) && !rl_leases_take(&l, &a, 1, 0, 1000, 5000, &mem));
    CHECK(rl_leases_take(&l, &a, 1, 999999, 1000, 5000, &mem) && !rl_leases_take(&l, &b, 1, 2, 1000, 5000, &mem));
    CHECK(rl_leases_take(&l, &b, 1, 1, 1000, 5000, &mem) && rl_leases_used(&l, 5000).units == 1000000);
    rl_leases_reset(&l, &mem);
}

/* ---- the pages, against a sorted array, with many records that are equal */

enum { PAGE_RECORDS = 3000 };

static void test_pages(uint64_t seed) {
    static uint64_t twin[PAGE_RECORDS]; /* rank << 32 | value */
    struct rl_pages p = {0};
    size_t n = 0;
    uint64_t ranks = 1 + rl_unit_random(&seed) % 40;
    for (int i = 0; i < 6000; i++) {
        bool growing = i % 3000 < 2000;
        struct rl_record r = {.rank = rl_unit_random(&seed) % ranks, .value = rl_unit_random(&seed) % 3};
        uint64_t key = r.rank << 32 | r.value;
        size_t at = 0;
        while (at < n && twin[at] < key) at++;
        if (n < PAGE_RECORDS && rl_unit_random(&seed) % 10 < (growing ? 8 : 2)) {
            CHECK(rl_pages_insert(&p, &r, &mem));
            memmove(twin + at + 1, twin + at, (n++ - at) * sizeof(*twin));
            twin[at] = key;
        } else {
            bool there = at < n && twin[at] == key;
            CHECK(rl_pages_find(&p, &r) == there && rl_pages_remove(&p, &r, &mem) == there);
            if (there) memmove(twin + at, twin + at + 1, (--n - at) * sizeof(*twin));
        }
        if (i % 100) continue;
        struct rl_pages_walk w = rl_pages_start(&p, &(struct rl_record){0});
        for (at = 0; rl_pages_next(&w, &r); at++) CHECK(at < n && twin[at] == (r.rank << 32 | r.value));
        CHECK(at == n && rl_pages_all(&p).records == (int64_t)n);
        CHECK(rl_pages_last_rank(&p) == (n ? twin[n - 1] >> 32 : 0));
    }
    rl_pages_reset(&p, &mem);
}

/* ---- the twin */

enum { POOL = 1500, TWIN_MAX = 1500 };

static unsigned char pool_bytes[POOL][RL_LEASE_ID_MAX];
static struct rl_lease_id pool[POOL];

/* Ids of all lengths and bytes, many of them beginnings of others. */
static void make_pool(uint64_t seed) {
    for (int i = 0; i < POOL; i++) {
        size_t len = (size_t)rl_unit_between(&seed, 2, i % 3 ? 20 : RL_LEASE_ID_MAX);
        if (i % 4 == 1) {
            memcpy(pool_bytes[i], pool_bytes[i - 1], RL_LEASE_ID_MAX);
            len = pool[i - 1].len < RL_LEASE_ID_MAX ? pool[i - 1].len + 1 : RL_LEASE_ID_MAX;
        } else {
            for (size_t k = 0; k < len; k++) pool_bytes[i][k] = (unsigned char)rl_unit_between(&seed, 0, 255);
        }
        pool_bytes[i][0] = (unsigned char)i; /* so that all differ */
        pool_bytes[i][1] = (unsigned char)(i >> 8);
        pool[i] = (struct rl_lease_id){pool_bytes[i], len};
    }
}

struct twin {
    int64_t at_ms;
    struct rl_lease leases[TWIN_MAX];
    int n;
};

static int compare_leases(const void *one, const void *other) {
    const struct rl_lease *a = one, *b = other;
    if (a->end_at_ms != b->end_at_ms) return a->end_at_ms < b->end_at_ms ? -1 : 1;
    size_t least = a->id.len < b->id.len ? a->id.len : b->id.len;
    int by_id = memcmp(a->id.bytes, b->id.bytes, least);
    return by_id ? by_id : a->id.len < b->id.len ? -1 : a->id.len > b->id.len;
}

/* What is alive at now_ms, with the ends that count then; moved there if written. */
static void twin_move(struct twin *t, int64_t now_ms) {
    int64_t ended_by_ms = now_ms > t->at_ms ? now_ms : t->at_ms;
    int kept = 0;
    for (int i = 0; i < t->n; i++) {
        struct rl_lease *lease = &t->leases[i];
        if (lease->end_at_ms <= ended_by_ms) continue;
        if (lease->end_at_ms > now_ms + lease->length_ms) lease->end_at_ms = now_ms + lease->length_ms;
        t->leases[kept++] = *lease;
    }
    t->n = kept;
    t->at_ms = now_ms;
}

static struct rl_lease *twin_find(struct twin *t, const struct rl_lease_id *id) {
    for (int i = 0; i < t->n; i++) {
        if (t->leases[i].id.bytes == id->bytes) return &t->leases[i];
    }
    return NULL;
}

/* What an ask would be granted if all that ends by at_ms had ended. */
static int64_t twin_grants(struct twin *t, const struct rl_leases_limit *lim, const struct rl_leases_ask *ask,
                           int64_t at_ms, int64_t *taken) {
    int64_t used = 0, held = 0, fresh = 0;
    for (int i = 0; i < t->n; i++) used += t->leases[i].end_at_ms > at_ms ? t->leases[i].units : 0;
    for (size_t i = 0; i < ask->ids_count; i++) {
        struct rl_lease *lease = twin_find(t, &ask->ids[i]);
        if (lease && lease->end_at_ms > at_ms) {
            held += lease->units;
        } else {
            fresh += ask->units;
        }
    }
    int64_t room = lim->limit - used;
    *taken = fresh <= room ? fresh : 0;
    if (fresh > room && ask->upto) *taken = room > 0 ? room : 0;
    return fresh == 0 || *taken > 0 || ask->upto ? held + *taken : 0;
}

/* Checks the answer, and does what it says if it is no peek. */
static void twin_check(struct twin *kept, const struct rl_leases_limit *lim, const struct rl_leases_ask *ask,
                       int64_t now_ms, const struct rl_verdict *got, const bool *granted) {
    static struct twin t;
    int64_t taken, used = 0, last_ms = now_ms, ignored;
    t = *kept;
    twin_move(&t, now_ms);
    struct rl_verdict want = {.limit = lim->limit, .allowed = twin_grants(&t, lim, ask, now_ms, &taken)};
    if (want.allowed == 0) {
        want.wait_ms = got->wait_ms;
        bool never = !ask->upto && (int64_t)ask->ids_count * ask->units > lim->limit;
        CHECK((want.wait_ms == RL_NEVER) == never && want.wait_ms != 0);
        if (!never) CHECK(twin_grants(&t, lim, ask, now_ms + got->wait_ms, &ignored) > 0);
        if (!never) CHECK(twin_grants(&t, lim, ask, now_ms + got->wait_ms - 1, &ignored) == 0);
    }
    for (size_t i = 0; i < ask->ids_count; i++) {
        bool fits = want.allowed > 0 && (twin_find(&t, &ask->ids[i]) || taken > 0);
        struct rl_lease *lease = twin_find(&t, &ask->ids[i]);
        CHECK(granted[i] == fits);
        if (!fits) continue;
        int64_t units = ask->ids_count == 1 ? taken : 1;
        if (!lease) taken -= units;
        if (ask->peek) continue;
        if (!lease) t.leases[t.n++] = (struct rl_lease){ask->ids[i], units, 0, 0};
        lease = twin_find(&t, &ask->ids[i]);
        if (lease->end_at_ms >= now_ms + lim->lease_ms) continue;
        lease->end_at_ms = now_ms + lim->lease_ms;
        lease->length_ms = lim->lease_ms;
    }
    for (int i = 0; i < t.n; i++) {
        used += t.leases[i].units;
        if (t.leases[i].end_at_ms > last_ms) last_ms = t.leases[i].end_at_ms;
    }
    want.remaining = lim->limit - used;
    want.reset_ms = last_ms - now_ms;
    CHECK(same_verdict(got, &want));
    if (want.allowed > 0 && !ask->peek) *kept = t;
}

static bool same_as_twin(const struct rl_leases *l, struct twin *t) {
    static struct rl_lease list[TWIN_MAX + 1];
    qsort(t->leases, (size_t)t->n, sizeof(*t->leases), compare_leases);
    size_t n = rl_leases_list(l, l->at_ms, list, TWIN_MAX + 1);
    struct rl_tally used = rl_leases_used(l, l->at_ms);
    bool same = n == (size_t)t->n && used.records == t->n && l->at_ms == (t->n ? t->at_ms : 0);
    same = same && rl_leases_ends_at_ms(l) == (t->n ? t->leases[t->n - 1].end_at_ms : 0) && (t->n || is_zero(l));
    for (size_t i = 0; same && i < n; i++) {
        const struct rl_lease *a = &list[i], *b = &t->leases[i];
        used.units -= b->units;
        same = same_id(&a->id, &b->id) && a->units == b->units && a->end_at_ms == b->end_at_ms &&
               a->length_ms == b->length_ms;
    }
    return same && used.units == 0;
}

/* The same leases by another way, in another order: the same bytes. Then reload, copy, and go on with what came back.
 */
static void check_copies(struct rl_leases *l, struct twin *t, uint64_t *seed) {
    struct rl_leases other = {0}, copy, loaded;
    struct rl_lease_id guest = id_of("?");
    for (int i = t->n - 1; i > 0; i--) {
        int k = (int)rl_unit_between(seed, 0, i);
        struct rl_lease swap = t->leases[i];
        t->leases[i] = t->leases[k];
        t->leases[k] = swap;
    }
    for (int i = 0; i < t->n; i++) {
        const struct rl_lease *lease = &t->leases[i];
        CHECK(rl_lease_add(&other.table, lease, &mem));
        CHECK(i % 2 || rl_lease_add(&other.table, &(struct rl_lease){guest, 1, i + 1, 1}, &mem));
    }
    other.at_ms = t->n ? t->at_ms : 0;
    CHECK(same_state(l, &other)); /* the guests had ended */
    rl_leases_reset(&other, &mem);

    size_t len;
    unsigned char *bytes = bytes_of(l, &len);
    CHECK(rl_leases_decode(&loaded, bytes, len, &mem));
    CHECK(rl_leases_clone(&copy, l, &mem));
    CHECK(same_state(l, &loaded) && same_state(l, &copy));
    CHECK(rl_leases_memory(l, &mem) == 0 || rl_leases_memory(&copy, &mem) > 0);
    rl_leases_reset(&loaded, &mem);
    fail_one_in = 3;
    if (!rl_leases_clone(&loaded, l, &mem)) CHECK(is_zero(&loaded));
    fail_one_in = 0;
    rl_leases_reset(&loaded, &mem);
    rl_leases_reset(l, &mem);
    *l = copy;
    free(bytes);
}

/* With memory that fails: nothing has changed then. */
static bool try_short_of_memory(struct rl_leases *l, const struct rl_lease_id *ids, size_t n, int64_t units,
                                int64_t lease_ms, int64_t now_ms) {
    struct rl_leases before;
    if (rl_leases_ahead(l, now_ms)) {
        CHECK(rl_leases_clone(&before, l, &mem));
        fail_one_in = 4;
        bool moved = rl_leases_move(l, now_ms, &mem);
        fail_one_in = 0;
        CHECK(moved || same_state(l, &before));
        rl_leases_reset(&before, &mem);
        if (!moved) CHECK(rl_leases_move(l, now_ms, &mem));
    }
    CHECK(rl_leases_clone(&before, l, &mem));
    fail_one_in = 1 + (unsigned)n;
    bool done = n == 1 && rl_leases_alive(l, ids, now_ms, NULL)
                    ? rl_leases_renew(l, ids, lease_ms, now_ms, &mem)
                    : rl_leases_take(l, ids, n, units, lease_ms, now_ms, &mem);
    fail_one_in = 0;
    CHECK(done || same_state(l, &before));
    rl_leases_reset(&before, &mem);
    return done;
}

struct traffic {
    struct rl_leases l;
    struct rl_leases_limit lim;
    int ids; /* of the pool */
    int64_t now_ms;
    uint64_t seed;
};

static void random_acquire(struct traffic *x, struct twin *t, int i) {
    static bool granted[RL_LEASES_IDS_MAX];
    struct rl_lease_id ids[12], taken[12];
    size_t n = 1, count = 0;
    int first = (int)rl_unit_between(&x->seed, 0, x->ids - 1);
    if (i % 3 == 0) n = (size_t)rl_unit_between(&x->seed, 1, x->ids < 12 ? x->ids : 12);
    for (size_t k = 0; k < n; k++) ids[k] = pool[((size_t)first + k * k) % (size_t)x->ids];
    if (!rl_leases_ids_differ(ids, n)) n = 1;
    struct rl_leases_ask ask = {ids, n, 1, i % 5 == 0, i % 11 == 0};
    if (n == 1) ask.units = rl_unit_between(&x->seed, 1, rl_unit_between(&x->seed, 1, 1 + x->lim.limit / 3));
    struct rl_verdict v = rl_leases_check(&x->l, &x->lim, &ask, x->now_ms, granted);
    twin_check(t, &x->lim, &ask, x->now_ms, &v, granted);
    for (size_t k = 0; k < n; k++) {
        if (granted[k]) taken[count++] = ids[k];
    }
    if (ask.peek || count == 0) return;
    int64_t units = n == 1 ? v.allowed : 1;
    if (i % 4 == 0 && try_short_of_memory(&x->l, taken, count, units, x->lim.lease_ms, x->now_ms)) return;
    CHECK(rl_leases_take(&x->l, taken, count, units, x->lim.lease_ms, x->now_ms, &mem));
}

static void random_renew(struct traffic *x, struct twin *t) {
    static struct twin moved;
    const struct rl_lease_id *id = &pool[rl_unit_between(&x->seed, 0, x->ids - 1)];
    int64_t lease_ms = rl_unit_between(&x->seed, 1, 2 * x->lim.lease_ms);
    moved = *t;
    twin_move(&moved, x->now_ms);
    struct rl_lease *lease = twin_find(&moved, id), seen;
    CHECK(rl_leases_alive(&x->l, id, x->now_ms, &seen) == (lease != NULL));
    if (lease) CHECK(seen.end_at_ms == lease->end_at_ms && seen.units == lease->units);
    CHECK(rl_leases_renew(&x->l, id, lease_ms, x->now_ms, &mem) == (lease != NULL));
    if (!lease) return;
    if (x->now_ms + lease_ms > lease->end_at_ms) {
        lease->end_at_ms = x->now_ms + lease_ms;
        lease->length_ms = lease_ms;
    }
    *t = moved;
}

static void random_release(struct traffic *x, struct twin *t) {
    const struct rl_lease_id *id = &pool[rl_unit_between(&x->seed, 0, x->ids - 1)];
    if (rl_leases_ahead(&x->l, x->now_ms)) {
        CHECK(rl_leases_move(&x->l, x->now_ms, &mem));
        twin_move(t, x->now_ms);
    }
    struct rl_lease *lease = twin_find(t, id);
    bool alive = lease && lease->end_at_ms > x->now_ms;
    fail_one_in = 2; /* it needs none */
    CHECK(rl_leases_release(&x->l, id, x->now_ms, &mem) == alive);
    fail_one_in = 0;
    if (!alive) return;
    lease->end_at_ms = 0;
    twin_move(t, x->now_ms);
}

static void test_twin(uint64_t seed) {
    static struct twin t;
    static const int64_t lengths[] = {1, 5, 100, 3000};
    struct traffic x = {.seed = seed * 77};
    t = (struct twin){0};
    x.ids = (int)rl_unit_between(&x.seed, 1, seed % 4 ? 60 : POOL);
    x.lim.limit = rl_unit_between(&x.seed, 1, x.ids * (seed % 3 ? 1 : 4));
    x.now_ms = 100000;
    int64_t length_ms = lengths[seed % 4];
    for (int i = 0; i < 1500; i++) {
        x.lim.lease_ms = rl_unit_between(&x.seed, 1, length_ms);
        if (i % 3) x.lim.lease_ms = length_ms;
        if (i % 100 == 50) x.lim.limit = rl_unit_between(&x.seed, 1, x.ids * 2);
        x.now_ms += rl_unit_between(&x.seed, 0, 1 + 3 * length_ms / x.ids);
        if (i % 150 == 149) x.now_ms += 3 * length_ms;
        if (i % 60 == 59) x.now_ms -= rl_unit_between(&x.seed, 0, length_ms * (i % 120 == 59 ? 1 : 3));
        if (x.now_ms < 0) x.now_ms = 0;
        int64_t what = rl_unit_between(&x.seed, 0, 9);
        if (what < 6) {
            random_acquire(&x, &t, i);
        } else if (what < 8) {
            random_renew(&x, &t);
        } else {
            random_release(&x, &t);
        }
        if (t.n == 0) t.at_ms = 0;
        if (!CHECK(same_as_twin(&x.l, &t))) {
            printf("  seed %d, step %d\n", (int)seed, i);
            break;
        }
        if (i % 100 == 0) check_copies(&x.l, &t, &x.seed);
    }
    rl_leases_reset(&x.l, &mem);
}

/* ---- the law, as holders see it: never do more than limit units believe that they are alive */

static void test_law(uint64_t seed) {
    enum { HOLDERS = 200 };
    int64_t units[HOLDERS] = {0}, ends_ms[HOLDERS] = {0}, now_ms = 50000;
    struct rl_leases l = {0};
    struct rl_leases_limit lim = {.limit = rl_unit_between(&seed, 1, 300), .lease_ms = rl_unit_between(&seed, 1, 500)};
    for (int i = 0; i < 3000; i++) {
        now_ms += rl_unit_between(&seed, 0, 1 + lim.lease_ms / 30);
        size_t who = (size_t)rl_unit_between(&seed, 0, HOLDERS - 1);
        struct rl_leases_ask ask = {&pool[who], 1, rl_unit_between(&seed, 1, 1 + lim.limit / 9), i % 3 == 0, false};
        if (i % 4 == 0) {
            if (rl_leases_release(&l, &pool[who], now_ms, &mem)) ends_ms[who] = 0;
        } else if (i % 4 == 1) {
            if (rl_leases_renew(&l, &pool[who], lim.lease_ms, now_ms, &mem)) ends_ms[who] = now_ms + lim.lease_ms;
        } else {
            int64_t allowed = call(&l, &lim, &ask, now_ms).allowed;
            if (allowed > 0) ends_ms[who] = now_ms + lim.lease_ms;
            if (allowed > 0) units[who] = allowed;
        }
        int64_t sum = 0;
        for (int k = 0; k < HOLDERS; k++) sum += ends_ms[k] > now_ms ? units[k] : 0;
        CHECK(sum <= lim.limit && sum == rl_leases_used(&l, now_ms).units);
    }
    rl_leases_reset(&l, &mem);
}

/* ---- many: what they cost, and that it is given back */

enum { MANY = 40000 };

static struct rl_lease_id numbered(unsigned char bytes[16], uint64_t n) {
    uint64_t words[2] = {rl_unit_random(&(uint64_t){n + 1}), n};
    memcpy(bytes, words, 16);
    return (struct rl_lease_id){bytes, 16};
}

static void fill(struct rl_leases *l, int64_t now_ms) {
    unsigned char bytes[16];
    for (uint64_t i = 0; i < MANY; i++) {
        struct rl_lease_id id = numbered(bytes, i);
        CHECK(rl_leases_take(l, &id, 1, 1, 100000, now_ms + (int64_t)i / 8, &mem));
    }
}

static void test_many(void) {
    struct rl_leases l = {0};
    struct rl_leases_limit lim = {.limit = MANY, .lease_ms = 100000};
    unsigned char bytes[16];
    CHECK(acquire(&l, &lim, "0123456789abcdef", 1, 5000).allowed == 1);
    CHECK(rl_leases_memory(&l, &mem) <= 88 && !l.table.by_id.root); /* a lock is one small block */
    CHECK(release(&l, "0123456789abcdef", 5000) && is_zero(&l));

    fill(&l, 1000000);
    int64_t now_ms = 1000000 + MANY / 8;
    CHECK(rl_leases_memory(&l, &mem) <= 56 * MANY);
    for (int64_t cost = 1; cost <= MANY; cost += 999) {
        struct rl_verdict v = acquire(&l, &lim, "x", cost, now_ms);
        CHECK(v.allowed == 0 && v.wait_ms == 1000000 + (cost - 1) / 8 + 100000 - now_ms);
    }
    for (uint64_t i = 0; i < MANY; i++) { /* renewed out of order */
        struct rl_lease_id id = numbered(bytes, i * 7919 % MANY);
        CHECK(rl_leases_renew(&l, &id, 100000, now_ms + (int64_t)i / 8, &mem));
    }
    CHECK(rl_leases_memory(&l, &mem) <= 64 * MANY);
    for (uint64_t i = 0; i < MANY - 100; i++) {
        struct rl_lease_id id = numbered(bytes, i);
        CHECK(rl_leases_release(&l, &id, now_ms + MANY / 8, &mem));
    }
    CHECK(rl_leases_memory(&l, &mem) <= 100 * 100 && rl_leases_used(&l, now_ms).units == 100);
    rl_leases_reset(&l, &mem);

    /* Ended all but a few: nobody counts them, and each write frees some. */
    fill(&l, 1000000);
    now_ms = 1100000 + MANY / 8 - 10;
    CHECK(rl_leases_used(&l, now_ms).units == 72 && rl_leases_used(&l, now_ms).records == 72);
    CHECK(acquire(&l, &lim, "x", MANY - 72, now_ms).allowed == MANY - 72);
    size_t encoded = rl_leases_encoded_size(&l);
    CHECK(encoded < 73 * 24 && rl_leases_memory(&l, &mem) > 40 * MANY);
    struct rl_leases back;
    CHECK(rl_leases_clone(&back, &l, &mem) && rl_leases_move(&back, now_ms - 5000, &mem)); /* nor come they back */
    CHECK(rl_leases_used(&back, now_ms - 5000).records == 73 && rl_leases_memory(&back, &mem) < 73 * 70);
    rl_leases_reset(&back, &mem);
    for (int i = 0; i < MANY / 20; i++) CHECK(renew(&l, "x", 100000, now_ms));
    CHECK(rl_leases_memory(&l, &mem) < 73 * 70 && rl_leases_encoded_size(&l) == encoded);
    CHECK(rl_leases_move(&l, now_ms + 100000, &mem) && is_zero(&l));
}

/* Two ids of one hash (where words are little-endian). */
static void test_collision(void) {
    struct rl_leases l = {0};
    struct rl_leases_limit lim = {.limit = MANY + 2, .lease_ms = 1000};
    unsigned char bytes[16];
    const char *one = "22690259", *other = "50369005";
    struct rl_lease_id a = id_of(one), b = id_of(other), c = numbered(bytes, 1);
    CHECK(rl_lease_hash(&a) != rl_lease_hash(&c));
    if (rl_lease_hash(&a) != rl_lease_hash(&b)) return;
    for (int64_t apart_ms = 0; apart_ms < 2; apart_ms++) {
        fill(&l, 5000);
        int64_t now_ms = 5000 + MANY / 8;
        CHECK(acquire(&l, &lim, one, 1, now_ms).remaining == 1);
        CHECK(!renew(&l, other, 1000, now_ms) && !release(&l, other, now_ms));
        CHECK(acquire(&l, &lim, other, 1, now_ms + apart_ms).remaining == 0);
        CHECK(renew(&l, one, 2000, now_ms + 1) && release(&l, one, now_ms + 1) && !release(&l, one, now_ms + 1));
        CHECK(renew(&l, other, 1001, now_ms + 1) && release(&l, other, now_ms + 1) && !release(&l, other, now_ms + 1));
        rl_leases_reset(&l, &mem);
    }
}

/* ---- bytes from strangers */

static void test_decode_rows(void) {
    static const struct {
        size_t len;
        unsigned char bytes[24];
        bool good;
    } rows[] = {
        {0, {0}, true},                                                           /* unused */
        {1, {50}, false},                                                         /* no lease */
        {6, {50, 10, 3, 20, 1, 'a'}, true},                                       /* one unit until 60, of 20 ms */
        {5, {50, 10, 3, 20, 1}, false},                                           /* cut short */
        {7, {50, 10, 3, 20, 1, 'a', 0}, false},                                   /* and too long */
        {6, {50, 0, 3, 20, 1, 'a'}, false},                                       /* ended at the last write */
        {6, {50, 10, 3, 9, 1, 'a'}, false},                                       /* granted at 51 */
        {6, {50, 10, 3, 10, 1, 'a'}, true},                                       /* at 50 */
        {6, {50, 10, 3, 61, 1, 'a'}, false},                                      /* before time began */
        {6, {50, 10, 1, 20, 1, 'a'}, false},                                      /* no unit */
        {5, {50, 10, 2, 1, 'a'}, false},                                          /* no length */
        {6, {50, 10, 3, 0, 1, 'a'}, false},                                       /* a length of nothing */
        {5, {50, 10, 3, 20, 0}, false},                                           /* no id */
        {8, {50, 10, 0xff, 0x88, 0x7a, 20, 1, 'a'}, true},                        /* 999999 units */
        {8, {50, 10, 0x81, 0x89, 0x7a, 20, 1, 'a'}, true},                        /* 1000000 units */
        {8, {50, 10, 0x83, 0x89, 0x7a, 20, 1, 'a'}, false},                       /* 1000001 */
        {10, {50, 10, 3, 20, 1, 'a', 0, 2, 1, 'b'}, true},                        /* two that end together */
        {10, {50, 10, 3, 20, 1, 'b', 0, 2, 1, 'a'}, false},                       /* out of order */
        {10, {50, 10, 3, 20, 1, 'a', 0, 2, 1, 'a'}, false},                       /* the same twice */
        {10, {50, 10, 3, 20, 1, 'a', 1, 2, 1, 'a'}, false},                       /* with another end */
        {10, {50, 10, 3, 20, 1, 'b', 1, 2, 1, 'a'}, true},                        /* later ends come later */
        {11, {50, 10, 3, 20, 1, 'b', 1, 3, 20, 1, 'a'}, false},                   /* the same length in more bytes */
        {11, {50, 10, 3, 20, 1, 'b', 1, 3, 21, 1, 'a'}, true},                    /* another */
        {11, {50, 10, 3, 20, 1, 'a', 0, 2, 2, 'a', 'b'}, true},                   /* the shorter first */
        {11, {50, 10, 3, 20, 2, 'a', 'b', 0, 2, 1, 'a'}, false},                  /* not the longer */
        {7, {0xb2, 0, 10, 3, 20, 1, 'a'}, false},                                 /* 50 in two bytes */
        {12, {50, 10, 0x81, 0x89, 0x7a, 20, 1, 'a', 0, 2, 1, 'b'}, false},        /* 1000001 in all */
        {13, {255, 255, 255, 255, 255, 255, 255, 255, 10, 3, 20, 1, 'a'}, false}, /* far in the future */
        {11, {50, 255, 255, 255, 255, 255, 10, 3, 20, 1, 'a'}, false},            /* a far end */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct rl_leases l;
        bool good = rl_leases_decode(&l, rows[i].bytes, rows[i].len, &mem);
        if (!CHECK(good == rows[i].good)) printf("  in row %zu\n", i);
        CHECK(good || is_zero(&l));
        rl_leases_reset(&l, &mem);
    }
    unsigned char longest[6 + 129] = {50, 10, 3, 20, 128};
    struct rl_leases l;
    CHECK(rl_leases_decode(&l, longest, 5 + 128, &mem));
    rl_leases_reset(&l, &mem);
    longest[4] = 129;
    CHECK(!rl_leases_decode(&l, longest, 5 + 129, &mem));
}

/* Whatever is accepted is what would have been written. */
static void test_decode_random(uint64_t seed) {
    for (int i = 0; i < 200; i++) {
        struct rl_leases l = {0}, loaded;
        int64_t now_ms = rl_unit_between(&seed, 1, 1000000);
        for (int k = 0; k < (i % 4 ? 5 : 120); k++) {
            struct rl_leases_limit lim = {.limit = 1000, .lease_ms = rl_unit_between(&seed, 1, 300)};
            struct rl_leases_ask ask = {&pool[rl_unit_between(&seed, 0, POOL - 1)], 1, 1 + k % 3, false, false};
            call(&l, &lim, &ask, now_ms += k % 2);
        }
        size_t len;
        unsigned char *bytes = bytes_of(&l, &len);
        fail_one_in = 4;
        if (!rl_leases_decode(&loaded, bytes, len, &mem)) CHECK(is_zero(&loaded));
        fail_one_in = 0;
        rl_leases_reset(&loaded, &mem);
        for (int k = 0; k < 100 && len > 0; k++) {
            bytes[rl_unit_random(&seed) % len] ^= (unsigned char)(1 << rl_unit_random(&seed) % 8);
            size_t cut = k % 3 ? len : rl_unit_random(&seed) % (len + 1);
            if (!rl_leases_decode(&loaded, bytes, cut, &mem)) continue;
            size_t again_len;
            unsigned char *again = bytes_of(&loaded, &again_len);
            CHECK(again_len == cut && memcmp(again, bytes, cut) == 0);
            free(again);
            rl_leases_reset(&loaded, &mem);
        }
        free(bytes);
        rl_leases_reset(&l, &mem);
    }
}

static void *move_block(void *ctx, void *block) {
    if (++*(int *)ctx % 3 == 0) return NULL;
    size_t size = malloc_usable_size(block);
    void *moved = malloc(size);
    memcpy(moved, block, size);
    free(block);
    return moved;
}

static void test_relocate(void) {
    struct rl_leases l = {0}, copy;
    unsigned char bytes[16];
    int moves = 0;
    fill(&l, 5000);
    CHECK(rl_leases_clone(&copy, &l, &mem));
    rl_leases_relocate(&l, move_block, &moves);
    CHECK(moves > 100 && same_state(&l, &copy) && rl_leases_memory(&l, &mem) > 0);
    for (uint64_t i = 0; i < MANY; i++) {
        struct rl_lease_id id = numbered(bytes, i);
        CHECK(rl_leases_release(&l, &id, 6000 + MANY / 8, &mem));
    }
    CHECK(is_zero(&l));
    rl_leases_reset(&copy, &mem);
}

int main(void) {
    make_pool(5);
    test_limits();
    test_ids();
    test_tables();
    for (uint64_t seed = 1; seed <= 10; seed++) test_pages(seed);
    test_many();
    test_collision();
    test_decode_rows();
    test_decode_random(11);
    test_relocate();
    for (uint64_t seed = 1; seed <= 80; seed++) test_twin(seed);
    for (uint64_t seed = 1; seed <= 50; seed++) test_law(seed);
    CHECK(blocks == 0);
    return rl_unit_done("leases");
}
