/* RL.SLIDING's algorithm: tables of instants, then random traffic against a twin that keeps every unit in a plain
 * array, the law over every window, memory that fails, and bytes from strangers. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "algo/sliding.h"
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

static unsigned char *bytes_of(const struct rl_sliding *s, size_t *len) {
    *len = rl_sliding_encoded_size(s);
    unsigned char *bytes = malloc(*len + 1);
    rl_sliding_encode(s, bytes);
    return bytes;
}

static bool same_state(const struct rl_sliding *a, const struct rl_sliding *b) {
    size_t a_len, b_len;
    unsigned char *a_bytes = bytes_of(a, &a_len), *b_bytes = bytes_of(b, &b_len);
    bool same = a_len == b_len && memcmp(a_bytes, b_bytes, a_len) == 0;
    free(a_bytes);
    free(b_bytes);
    return same;
}

static bool is_zero(const struct rl_sliding *s) {
    return s->at_ms == 0 && s->log.newest_units == 0 && !s->log.older && !s->slots;
}

static struct rl_verdict call(struct rl_sliding *s, const struct rl_sliding_limit *lim, struct rl_ask ask,
                              int64_t now_ms) {
    struct rl_verdict v = rl_sliding_check(s, lim, &ask, now_ms);
    if (!ask.peek && v.allowed > 0 && !v.beyond) {
        CHECK(rl_sliding_take(s, lim, rl_verdict_delta(&v, &ask), now_ms, &mem));
    }
    return v;
}

/* ---- tables */

struct row {
    int64_t at_ms;
    enum rl_mode mode;
    bool peek;
    int64_t cost, allowed, remaining, wait_ms, reset_ms;
};

static void run_table(const struct rl_sliding_limit *lim, const struct row *rows, size_t n) {
    struct rl_sliding s = {0};
    for (size_t i = 0; i < n; i++) {
        const struct row *r = &rows[i];
        struct rl_verdict want = {r->allowed, lim->count, r->remaining, r->wait_ms, r->reset_ms, false};
        struct rl_verdict got = call(&s, lim, (struct rl_ask){r->cost, r->mode, r->peek}, r->at_ms);
        if (!CHECK(same_verdict(&got, &want))) printf("  in row %zu of %ld slots\n", i, (long)lim->slots);
    }
    rl_sliding_reset(&s, &mem);
}

static void test_tables(void) {
    static const struct rl_sliding_limit exact = {.count = 5, .period_ms = 1000};
    static const struct row exact_rows[] = {
        /* at    mode       peek   cost allowed remaining wait      reset */
        {10000, RL_TAKE, false, 6, 0, 5, RL_NEVER, 0}, /* larger than the window */
        {10000, RL_TAKE, true, 5, 5, 5, 0, 0},         /* a peek is of the untouched state */
        {10000, RL_REFUND, false, 5, 0, 5, 0, 0},      /* nothing to give back */
        {10000, RL_TAKE, false, 2, 2, 3, 0, 1000},     /* granted */
        {10300, RL_TAKE, false, 2, 2, 1, 0, 1000},     /* the reset is the newest unit's */
        {10400, RL_TAKE, false, 2, 0, 1, 600, 900},    /* one must leave, the oldest */
        {10400, RL_TAKE, false, 4, 0, 1, 900, 900},    /* three must leave */
        {10400, RL_UPTO, false, 4, 1, 0, 0, 1000},     /* what fits */
        {10400, RL_UPTO, false, 4, 0, 0, 600, 1000},   /* nothing fits: the wait for one unit */
        {10999, RL_TAKE, false, 1, 0, 0, 1, 401},      /* not yet */
        {11000, RL_TAKE, true, 1, 1, 2, 0, 400},       /* gone at t + period */
        {11000, RL_REFUND, false, 2, 2, 4, 0, 300},    /* newest first: of 10300 one stays */
        {11000, RL_FORCE, false, 9, 9, -5, 0, 1000},   /* in debt */
        {11000, RL_TAKE, false, 1, 0, -5, 1000, 1000}, /* until the forced ones leave */
        {9000, RL_TAKE, false, 1, 0, -5, 1000, 1000},  /* stepped back: all of now, never longer than a period */
        {12299, RL_TAKE, false, 5, 5, 0, 0, 1000},     /* as if never used */
    };
    run_table(&exact, exact_rows, sizeof(exact_rows) / sizeof(*exact_rows));

    /* Slots of 250 ms: units of [10000, 10250) leave at 11250. */
    static const struct rl_sliding_limit slots = {.count = 5, .period_ms = 1000, .slots = 4};
    static const struct row slot_rows[] = {
        {10100, RL_TAKE, false, 2, 2, 3, 0, 1150},     /* reset: the slot's end and a period */
        {10249, RL_TAKE, false, 1, 1, 2, 0, 1001},     /* the same slot */
        {10250, RL_TAKE, false, 2, 2, 0, 0, 1250},     /* the next */
        {11249, RL_TAKE, false, 1, 0, 0, 1, 251},      /* one slot later than EXACT would */
        {11249, RL_TAKE, false, 4, 0, 0, 251, 251},    /* for four the second slot must leave */
        {11250, RL_TAKE, true, 3, 3, 3, 0, 250},       /* now */
        {11250, RL_REFUND, false, 1, 1, 4, 0, 250},    /* of the newest slot */
        {11260, RL_FORCE, false, 7, 7, -3, 0, 1240},   /* in debt */
        {10600, RL_TAKE, false, 1, 0, -3, 1150, 1150}, /* stepped back: all of this slot */
        {99000, RL_UPTO, false, 9, 5, 0, 0, 1250},     /* as if never used */
    };
    run_table(&slots, slot_rows, sizeof(slot_rows) / sizeof(*slot_rows));

    /* 10 ms in 4 slots are slots of 3 ms: units of [0, 3) leave at 13. */
    static const struct rl_sliding_limit rounded = {.count = 1, .period_ms = 10, .slots = 4};
    static const struct row rounded_rows[] = {
        {0, RL_TAKE, false, 1, 1, 0, 0, 13},
        {12, RL_TAKE, false, 1, 0, 0, 1, 1},
        {13, RL_TAKE, false, 1, 1, 0, 0, 12},
    };
    run_table(&rounded, rounded_rows, sizeof(rounded_rows) / sizeof(*rounded_rows));
}

static void test_limits(void) {
    static const struct {
        struct rl_sliding_limit lim;
        bool valid;
    } rows[] = {
        {{1, 1, 0}, true},
        {{65536, RL_PERIOD_MAX_MS, 0}, true},
        {{65537, 1000, 0}, false},
        {{RL_UNITS_MAX, 1, 2}, true},
        {{RL_UNITS_MAX + 1, 1000, 2}, false},
        {{1, RL_PERIOD_MAX_MS, 1024}, true},
        {{0, 1000, 0}, false},
        {{1, 0, 0}, false},
        {{1, RL_PERIOD_MAX_MS + 1, 0}, false},
        {{1, 1000, 1}, false},
        {{1, 1000, 1025}, false},
        {{1, 1000, -1}, false},
        {{-1, 1000, 0}, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        CHECK(rl_sliding_limit_valid(&rows[i].lim) == rows[i].valid);
    }
}

static void test_bounds(void) {
    for (int64_t slots = 0; slots <= 2; slots += 2) {
        struct rl_sliding_limit lim = {.count = 10, .period_ms = 1000, .slots = slots};
        struct rl_sliding s = {0};
        struct rl_ask force = {.cost = RL_UNITS_MAX, .mode = RL_FORCE};
        for (int64_t i = 0; i < RL_USED_MAX / RL_UNITS_MAX; i++) CHECK(!call(&s, &lim, force, 5000 + i / 10).beyond);
        CHECK(call(&s, &lim, force, 5100).beyond);
        CHECK(!rl_sliding_take(&s, &lim, 1, 5100, &mem)); /* whoever asks */
        CHECK(call(&s, &lim, (struct rl_ask){.cost = RL_UNITS_MAX, .mode = RL_REFUND}, 5100).allowed == RL_UNITS_MAX);
        CHECK(rl_sliding_take(&s, &lim, -RL_USED_MAX, 5100, &mem)); /* at most all */
        CHECK(is_zero(&s));
        CHECK(rl_sliding_take(&s, &lim, 0, 5100, &mem) && rl_sliding_take(&s, &lim, -1, 5100, &mem));
        CHECK(is_zero(&s) && rl_sliding_ends_at_ms(&s, &lim) == 0 && !rl_sliding_ahead(&s, 0));
    }
}

/* A full log: 65,536 entries, then FORCE joins; the waits are found without a scan; all goes as it came. */
static void test_full_log(void) {
    struct rl_sliding_limit lim = {.count = RL_SLIDING_EXACT_MAX, .period_ms = 3600000};
    struct rl_sliding s = {0};
    struct rl_ask one = {.cost = 1};
    int64_t n = RL_SLIDING_EXACT_MAX, start = 1000000;
    for (int64_t i = 0; i < n; i++) CHECK(call(&s, &lim, one, start + i * 50).allowed == 1);
    int64_t now = start + n * 50;
    size_t full = rl_sliding_memory(&s, &mem);
    for (int64_t cost = 1; cost <= n; cost += 997) {
        struct rl_verdict v = call(&s, &lim, (struct rl_ask){.cost = cost}, now);
        CHECK(v.allowed == 0 && v.wait_ms == start + (cost - 1) * 50 + lim.period_ms - now);
    }
    for (int i = 1; i <= 5; i++)
        CHECK(call(&s, &lim, (struct rl_ask){2, RL_FORCE, false}, now + i).remaining == -2 * i);
    CHECK(rl_sliding_memory(&s, &mem) == full);
    CHECK(rl_log_find(&s.log, n - 1) == start + (n - 2) * 50);
    CHECK(rl_log_find(&s.log, n) == now + 5); /* the newest moved, on the strict side */
    CHECK(call(&s, &lim, (struct rl_ask){n + 10, RL_REFUND, false}, now + 5).allowed == n + 10 && is_zero(&s));

    /* 1,000 grants spread over an hour: at most 5 bytes each, and given back as the window empties. */
    for (int64_t i = 0; i < 1000; i++) call(&s, &lim, one, start + i * 3600);
    CHECK(rl_sliding_memory(&s, &mem) + sizeof(s) <= 5000);
    CHECK(rl_sliding_take(&s, &lim, 0, start + 3600000 + 900 * 3600, &mem));
    CHECK(rl_sliding_memory(&s, &mem) + sizeof(s) <= 1000 && rl_log_units(&s.log) == 99);
    CHECK(rl_sliding_take(&s, &lim, 0, start + 7200000, &mem) && is_zero(&s));

    /* A full window that moves on: the memory stays what it is. */
    lim.count = 1000;
    for (int64_t i = 0; i < 20000; i++) {
        CHECK(call(&s, &lim, one, start + i * 3600).allowed == 1);
        if (i < 1000) continue;
        struct rl_verdict v = call(&s, &lim, (struct rl_ask){.cost = 1 + i % 1000}, start + i * 3600);
        CHECK(v.allowed == 0 && v.wait_ms == 3600 * (1 + i % 1000) && v.remaining == 0);
        CHECK(rl_sliding_memory(&s, &mem) + sizeof(s) <= 5000);
    }
    rl_sliding_reset(&s, &mem);
}

/* ---- the twin: every unit by itself, with the time that its rule goes by */

enum { TWIN_MAX = 4096 };

struct twin {
    int64_t at_ms;
    int64_t units[TWIN_MAX];
    int n;
};

static int64_t width(const struct rl_sliding_limit *lim) {
    return lim->slots ? (lim->period_ms + lim->slots - 1) / lim->slots : 1;
}

static int64_t twin_leaves(const struct rl_sliding_limit *lim, int64_t t) {
    return (lim->slots ? (t / width(lim) + 1) * width(lim) : t) + lim->period_ms;
}

/* The state at now_ms: what has left is gone, what is ahead is of now. */
static void twin_move(struct twin *t, const struct rl_sliding_limit *lim, int64_t now_ms) {
    int64_t last_ms = now_ms > t->at_ms ? now_ms : t->at_ms;
    int kept = 0;
    for (int i = 0; i < t->n; i++) {
        if (twin_leaves(lim, t->units[i]) > last_ms) t->units[kept++] = t->units[i];
    }
    t->n = kept;
    for (int i = 0; i < t->n; i++) {
        if (t->units[i] / width(lim) > now_ms / width(lim)) t->units[i] = now_ms;
    }
    t->at_ms = now_ms;
}

static void twin_rescale(struct twin *t, const struct rl_sliding_limit *from, const struct rl_sliding_limit *to) {
    int kept = 0;
    bool alike = rl_sliding_limit_alike(from, to);
    for (int i = 0; i < t->n; i++) {
        int64_t at_ms = t->units[i];
        if (from->slots && !alike) at_ms = (at_ms / width(from) + 1) * width(from) - 1;
        if (at_ms > t->at_ms) at_ms = t->at_ms;
        if (twin_leaves(to, at_ms) > t->at_ms) t->units[kept++] = at_ms;
    }
    t->n = kept;
}

/* Answers, and does what it says if it is no peek. */
static struct rl_verdict twin_call(struct twin *kept, const struct rl_sliding_limit *lim, struct rl_ask ask,
                                   int64_t now_ms) {
    static struct twin t;
    t = *kept;
    twin_move(&t, lim, now_ms);
    struct rl_verdict v = {.limit = lim->count};
    int64_t room = lim->count - t.n, wanted = ask.mode == RL_UPTO ? 1 : ask.cost;
    if (ask.mode == RL_FORCE || (ask.mode != RL_REFUND && ask.cost <= room)) {
        v.allowed = ask.cost;
    } else if (ask.mode == RL_REFUND) {
        v.allowed = ask.cost < t.n ? ask.cost : t.n;
    } else if (ask.mode == RL_UPTO && room > 0) {
        v.allowed = room;
    }
    if (v.allowed == 0 && ask.mode != RL_REFUND) {
        v.wait_ms = wanted > lim->count ? RL_NEVER : twin_leaves(lim, t.units[wanted - room - 1]) - now_ms;
    }
    if (!ask.peek) {
        for (int64_t i = 0; i < v.allowed; i++) {
            if (ask.mode == RL_REFUND) {
                t.n--;
            } else {
                t.units[t.n++] = now_ms;
            }
        }
        if (v.allowed > 0) *kept = t;
    }
    v.remaining = lim->count - t.n;
    v.reset_ms = t.n ? twin_leaves(lim, t.units[t.n - 1]) - now_ms : 0;
    return v;
}

static bool same_as_twin(const struct rl_sliding *s, const struct twin *t, const struct rl_sliding_limit *lim) {
    int64_t ends = t->n ? twin_leaves(lim, t->units[t->n - 1]) : 0;
    int64_t n = s->slots ? s->slots->units : rl_log_units(&s->log);
    return n == t->n && ends == rl_sliding_ends_at_ms(s, lim) && s->at_ms == (t->n ? t->at_ms : 0);
}

static struct rl_sliding_limit random_limit(uint64_t *seed, bool slots) {
    static const int64_t periods[] = {1, 2, 7, 50, 100, 1000, 5000, 60000};
    struct rl_sliding_limit lim = {.count = rl_unit_between(seed, 1, rl_unit_between(seed, 1, *seed % 4 ? 300 : 1500))};
    lim.period_ms = periods[rl_unit_between(seed, 0, 7)] + rl_unit_between(seed, 0, 2);
    if (slots) lim.slots = rl_unit_between(seed, 2, rl_unit_between(seed, 2, 40));
    return lim;
}

/* After the wait the same call passes, a millisecond earlier it does not. (Of a state ahead of the clock that is so
 * once it has been repaired.) */
static void check_wait(const struct rl_sliding *s, const struct rl_sliding_limit *lim, struct rl_ask ask,
                       const struct rl_verdict *v, int64_t now_ms) {
    if (v->wait_ms <= 0 || rl_sliding_ahead(s, now_ms)) return;
    CHECK(rl_sliding_check(s, lim, &ask, now_ms + v->wait_ms).allowed > 0);
    CHECK(v->wait_ms == 1 || rl_sliding_check(s, lim, &ask, now_ms + v->wait_ms - 1).allowed == 0);
}

/* Reload, copy, and now and then go on with what came back. */
static void check_copies(struct rl_sliding *s, const struct rl_sliding_limit *lim, bool go_on) {
    struct rl_sliding copy, loaded;
    size_t len;
    unsigned char *bytes = bytes_of(s, &len);
    CHECK(rl_sliding_decode(&loaded, lim, bytes, len, &mem) && same_state(s, &loaded));
    CHECK(rl_sliding_clone(&copy, s, &mem) && same_state(s, &copy));
    free(bytes);
    rl_sliding_reset(go_on ? s : &loaded, &mem);
    if (go_on) *s = loaded;
    rl_sliding_reset(&copy, &mem);
}

/* A change of the limit, first without memory. Where the limits are alike, no rescale is needed to ask. */
static void change_limit(struct rl_sliding *s, struct twin *t, const struct rl_sliding_limit *from,
                         const struct rl_sliding_limit *to, int64_t now_ms) {
    struct rl_sliding before;
    struct rl_ask ask = {.cost = 1};
    CHECK(rl_sliding_clone(&before, s, &mem));
    fail_one_in = 2;
    bool done = rl_sliding_rescale(s, from, to, &mem);
    fail_one_in = 0;
    if (!done) CHECK(same_state(s, &before) && rl_sliding_rescale(s, from, to, &mem));
    if (rl_sliding_limit_alike(from, to)) {
        struct rl_verdict a = rl_sliding_check(s, to, &ask, now_ms), b = rl_sliding_check(&before, to, &ask, now_ms);
        CHECK(same_verdict(&a, &b) && rl_sliding_ends_at_ms(s, to) == rl_sliding_ends_at_ms(&before, to));
    }
    twin_rescale(t, from, to);
    CHECK(same_as_twin(s, t, to));
    rl_sliding_reset(&before, &mem);
}

static void test_twin(uint64_t seed) {
    static struct twin t;
    struct rl_sliding s = {0};
    struct rl_sliding_limit lim = random_limit(&seed, seed & 1);
    int64_t now = rl_unit_between(&seed, 0, 100000), busy = rl_unit_between(&seed, 1, seed % 3 ? 50 : 2000);
    int64_t greed = seed % 3 ? 4 : 1000; /* a third of the runs makes long logs */
    memset(&t, 0, sizeof(t));

    for (int i = 0; i < 3000; i++) {
        int64_t dice = rl_unit_between(&seed, 0, 999);
        now += rl_unit_between(&seed, 0, 1 + 2 * lim.period_ms / busy);
        if (dice < 3) now += 2 * lim.period_ms;
        if (dice >= 3 && dice < 10) now -= rl_unit_between(&seed, 0, now < 2 * lim.period_ms ? now : 2 * lim.period_ms);
        if (dice >= 10 && dice < 15) {
            struct rl_sliding_limit to = random_limit(&seed, rl_unit_random(&seed) % 2);
            if (dice == 10) to.slots = lim.slots;
            change_limit(&s, &t, &lim, &to, now);
            lim = to;
        }
        struct rl_ask ask = {.cost = rl_unit_between(&seed, 1, rl_unit_between(&seed, 1, 2 + lim.count / greed))};
        if (dice >= 100 && dice < 250) ask.mode = RL_UPTO;
        if (dice >= 250 && dice < 300) ask.mode = RL_REFUND;
        if (dice >= 300 && dice < 302) ask.mode = RL_FORCE;
        if (dice == 400) ask.cost = lim.count + 1;
        ask.peek = dice > 900 && ask.mode != RL_REFUND;

        struct rl_verdict v = rl_sliding_check(&s, &lim, &ask, now);
        struct rl_verdict want = twin_call(&t, &lim, ask, now);
        if (!CHECK(same_verdict(&v, &want))) printf("  seed, step %d, %ld slots\n", i, (long)lim.slots);
        if (!ask.peek && v.allowed > 0) {
            struct rl_sliding before;
            fail_one_in = 3;
            while (!rl_sliding_clone(&before, &s, &mem)) CHECK(is_zero(&before));
            bool done = rl_sliding_take(&s, &lim, rl_verdict_delta(&v, &ask), now, &mem);
            fail_one_in = 0;
            if (!done) CHECK(same_state(&s, &before) && rl_sliding_take(&s, &lim, v.allowed, now, &mem));
            rl_sliding_reset(&before, &mem);
        } else if (rl_sliding_ahead(&s, now)) {
            CHECK(rl_sliding_take(&s, &lim, 0, now, &mem)); /* the repair, written even if the call is refused */
            twin_move(&t, &lim, now);
        }
        check_wait(&s, &lim, ask, &v, now);
        if (!CHECK(same_as_twin(&s, &t, &lim))) break;
        if (i % 50 == 0) check_copies(&s, &lim, i % 100 == 0);
    }
    rl_sliding_reset(&s, &mem);
}

/* The log alone, long and often cut at both ends, against an array of its units; marks that went stale would show. */
static void test_log(uint64_t seed) {
    static int64_t units[TWIN_MAX];
    struct rl_log log = {0};
    int n = 0;
    int64_t now = 1000;
    for (int i = 0; i < 20000; i++) {
        int64_t dice = rl_unit_between(&seed, 0, 99), cost = dice % 10 ? 1 : dice / 10 + 1;
        int cut = (int)rl_unit_between(&seed, 0, dice % 3 ? 5 : 70);
        if (dice < 5) {
            n = n > cut ? n - cut : 0;
            rl_log_drop_newest(&log, cut, &mem);
        } else if (dice < 7 && n > 0) {
            now = units[n > cut ? n - cut : 0];
            rl_log_pull(&log, now);
            for (int k = 0; k < n; k++) units[k] = units[k] < now ? units[k] : now;
        } else if ((dice < 10 || n > 2000) && n > cut) {
            rl_log_drop_before(&log, units[cut], &mem);
            while (units[cut] == units[cut - (cut > 0)] && cut > 0) cut--;
            memmove(units, units + cut, (size_t)(n -= cut) * sizeof(*units));
        } else {
            now += rl_unit_between(&seed, 0, dice < 90 ? 3 : 1000);
            CHECK(rl_log_reserve(&log, now, &mem));
            rl_log_append(&log, now, cost);
            while (cost-- > 0) units[n++] = now;
        }
        if (!CHECK(rl_log_units(&log) == n)) break;
        for (int k = 0; k < 3 && n > 0; k++) {
            int nth = (int)rl_unit_between(&seed, 1, n), before = nth - 1;
            while (before > 0 && units[before - 1] == units[nth - 1]) before--;
            CHECK(rl_log_find(&log, nth) == units[nth - 1] && rl_log_units_before(&log, units[nth - 1]) == before);
        }
    }
    rl_log_reset(&log, &mem);
}

/* ---- the law: grants are logged, and summed over every window */

static void test_law(uint64_t seed) {
    static struct { int64_t at_ms, units; } log[4000];
    struct rl_sliding_limit lim = random_limit(&seed, seed & 1);
    struct rl_sliding s = {0};
    int n = 0;
    int64_t now = rl_unit_between(&seed, 0, 100000);
    for (int i = 0; i < 4000; i++) {
        now += rl_unit_between(&seed, 0, 1 + lim.period_ms / 20);
        struct rl_ask ask = {.cost = rl_unit_between(&seed, 1, 1 + lim.count / 3)};
        if (i % 7 == 0) ask.mode = RL_UPTO;
        if (i % 31 == 0) ask.mode = RL_REFUND;
        int64_t moved = call(&s, &lim, ask, now).allowed;
        if (ask.mode != RL_REFUND && moved > 0) {
            log[n].at_ms = now;
            log[n++].units = moved;
        }
        for (; ask.mode == RL_REFUND && moved > 0; n -= log[n - 1].units == 0) {
            int64_t back = moved < log[n - 1].units ? moved : log[n - 1].units;
            log[n - 1].units -= back;
            moved -= back;
        }
    }
    int64_t sum = 0;
    for (int newest = 0, oldest = 0; newest < n; newest++) {
        sum += log[newest].units;
        while (log[oldest].at_ms + lim.period_ms <= log[newest].at_ms) sum -= log[oldest++].units;
        CHECK(sum <= lim.count);
    }
    rl_sliding_reset(&s, &mem);
}

/* ---- bytes from strangers */

static void test_decode_rows(void) {
    static const struct rl_sliding_limit exact = {.count = 5, .period_ms = 100};
    static const struct rl_sliding_limit slots = {.count = 5, .period_ms = 100, .slots = 2};
    static const struct {
        const struct rl_sliding_limit *lim;
        size_t len;
        unsigned char bytes[24];
        bool good;
    } rows[] = {
        {&exact, 0, {0}, true},                                                       /* unused */
        {&exact, 2, {50, 100}, true},                                                 /* at 50: one unit of 50 */
        {&exact, 1, {50}, false},                                                     /* no unit */
        {&exact, 2, {50, 102}, false},                                                /* of 51, after the last write */
        {&exact, 3, {50, 101, 0}, true},                                              /* two units of 50 */
        {&exact, 2, {50, 101}, false},                                                /* cut short */
        {&exact, 3, {50, 100, 0}, false},                                             /* the same time twice */
        {&exact, 3, {50, 98, 2}, true},                                               /* of 49 and 50 */
        {&exact, 4, {50, 98, 2, 2}, false},                                           /* and 51 */
        {&exact, 3, {0xe4, 0, 100}, false},                                           /* 100 in too many bytes */
        {&exact, 4, {0xe4, 0x01, 0x90, 0x02}, true},                                  /* at 228: of 136 */
        {&exact, 4, {0xe4, 0x01, 0xfe, 0x01}, false},                                 /* of 127: gone at 227 */
        {&exact, 10, {255, 255, 255, 255, 255, 255, 255, 255, 127, 2}, false},        /* far in the future */
        {&exact, 11, {50, 101, 255, 255, 255, 255, 255, 255, 255, 255, 127}, false},  /* more than may be used */
        {&exact, 12, {50, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0}, false}, /* more than 63 bits */
        {&slots, 3, {50, 0, 2}, true},                                                /* slots 0 and 1 of 50 ms */
        {&slots, 2, {50, 4}, false},                                                  /* slot 2 begins at 100 */
        {&slots, 3, {0x96, 0x01, 0}, false},                                          /* at 150 slot 0 has left */
        {&slots, 3, {0x95, 0x01, 0}, true},                                           /* at 149 it had not */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct rl_sliding s;
        bool good = rl_sliding_decode(&s, rows[i].lim, rows[i].bytes, rows[i].len, &mem);
        if (!CHECK(good == rows[i].good)) printf("  in row %zu\n", i);
        CHECK(good || is_zero(&s));
        rl_sliding_reset(&s, &mem);
    }
}

/* Whatever is accepted is what would have been written. */
static void test_decode_random(uint64_t seed) {
    for (int i = 0; i < 300; i++) {
        struct rl_sliding_limit lim = random_limit(&seed, i & 1);
        struct rl_sliding s = {0};
        int64_t now = rl_unit_between(&seed, 0, 100000);
        for (int k = 0; k < 60; k++) {
            call(&s, &lim, (struct rl_ask){.cost = 1 + k % 3},
                 now += rl_unit_between(&seed, 0, 1 + lim.period_ms / 40));
        }
        size_t len;
        unsigned char *bytes = bytes_of(&s, &len);
        fail_one_in = 2;
        struct rl_sliding loaded;
        if (!rl_sliding_decode(&loaded, &lim, bytes, len, &mem)) CHECK(is_zero(&loaded));
        fail_one_in = 0;
        rl_sliding_reset(&loaded, &mem);
        for (int k = 0; k < 100 && len > 0; k++) {
            bytes[rl_unit_random(&seed) % len] ^= (unsigned char)(1 << rl_unit_random(&seed) % 8);
            size_t cut = k % 3 ? len : rl_unit_random(&seed) % (len + 1);
            if (!rl_sliding_decode(&loaded, &lim, bytes, cut, &mem)) continue;
            size_t again_len;
            unsigned char *again = bytes_of(&loaded, &again_len);
            CHECK(again_len == cut && memcmp(again, bytes, cut) == 0);
            free(again);
            rl_sliding_reset(&loaded, &mem);
        }
        free(bytes);
        rl_sliding_reset(&s, &mem);
    }
}

static void *move_block(void *ctx, void *block) {
    size_t size = malloc_usable_size(block);
    void *moved = malloc(size);
    memcpy(moved, block, size);
    free(block);
    ++*(int *)ctx;
    return moved;
}

static void test_relocate(void) {
    for (int64_t slots = 0; slots <= 8; slots += 8) {
        struct rl_sliding_limit lim = {.count = 500, .period_ms = 10000, .slots = slots};
        struct rl_sliding s = {0}, copy;
        int moves = 0;
        for (int64_t i = 0; i < 500; i++) call(&s, &lim, (struct rl_ask){.cost = 1}, 5000 + i * 10);
        CHECK(rl_sliding_clone(&copy, &s, &mem));
        rl_sliding_relocate(&s, move_block, &moves);
        CHECK(moves == (slots ? 1 : 2) && same_state(&s, &copy));
        CHECK(call(&s, &lim, (struct rl_ask){.cost = 100}, 17000).allowed > 0);
        rl_sliding_reset(&s, &mem);
        rl_sliding_reset(&copy, &mem);
    }
}

int main(void) {
    test_limits();
    test_tables();
    test_bounds();
    test_full_log();
    test_decode_rows();
    test_decode_random(11);
    test_relocate();
    for (uint64_t seed = 1; seed <= 10; seed++) test_log(seed);
    for (uint64_t seed = 1; seed <= 200; seed++) test_twin(seed);
    for (uint64_t seed = 1; seed <= 200; seed++) test_law(seed);
    CHECK(blocks == 0);
    return rl_unit_done("sliding");
}
