#include "types/effect.h"

#include "types/numbers.h"
#include "types/type.h"

/* form, kind, then numbers: expire_at_ms, the words of the limit, then three (a take: now_us, cost, keep_ms; a whole
 * value: its totals), then a take's period where the kind has one, or a whole value's encoded state. Numbers are zigzag
 * varints: most effects are so short that the server allocates them in one piece. */
enum { HEAD = 2, TAIL_WORDS = 3, PERIOD_WORDS = 2, VARINT_MAX = RL_NUMBER_MAX };
_Static_assert(HEAD + (1 + RL_LIMIT_WORDS + TAIL_WORDS + PERIOD_WORDS) * VARINT_MAX <= RL_EFFECT_MAX, "a take fits");

static unsigned char *encode(unsigned char *out, enum rl_effect_form form, const struct rl_kind *kind,
                             int64_t expire_at_ms, const int64_t *limit, const int64_t tail[TAIL_WORDS]) {
    *out++ = (unsigned char)form;
    *out++ = kind->wire;
    out = rl_number_put(out, expire_at_ms);
    out = rl_numbers_put(out, limit, kind->limit_words);
    return rl_numbers_put(out, tail, TAIL_WORDS);
}

size_t rl_effect_encode_take(unsigned char out[RL_EFFECT_MAX], const struct rl_kind *kind, const int64_t *limit,
                             int64_t cost, int64_t keep_ms, const struct rl_moment *m, int64_t expire_at_ms) {
    const int64_t tail[TAIL_WORDS] = {m->now_us, cost, keep_ms};
    unsigned char *end = encode(out, RL_EFFECT_TAKE, kind, expire_at_ms, limit, tail);
    if (kind->calendar) end = rl_number_put(rl_number_put(end, m->period.start_ms), m->period.end_ms);
    return (size_t)(end - out);
}

size_t rl_effect_whole_max(const struct rl_live *live) {
    return RL_EFFECT_MAX + live->kind->encoded_size(live->state);
}

size_t rl_effect_encode_whole(unsigned char *out, const struct rl_live *live, int64_t expire_at_ms) {
    const int64_t tail[TAIL_WORDS] = {live->totals.granted, live->totals.last_at_ms, live->totals.keep_ms};
    unsigned char *state = encode(out, RL_EFFECT_WHOLE, live->kind, expire_at_ms, live->limit->limit, tail);
    live->kind->encode(live->state, state);
    return (size_t)(state - out) + live->kind->encoded_size(live->state);
}

bool rl_effect_period_valid(const struct rl_period *p) {
    int64_t edge_ms = RL_CLOCK_MAX_US / 1000 + RL_CALENDAR_SPAN_MAX_MS;
    return p->start_ms >= -edge_ms && p->start_ms < p->end_ms && p->end_ms <= edge_ms &&
           p->end_ms - p->start_ms <= RL_CALENDAR_SPAN_MAX_MS;
}

static bool decode_take(struct rl_reader *r, const int64_t tail[TAIL_WORDS], struct rl_effect *e) {
    e->moment.now_us = tail[0];
    e->cost = tail[1];
    e->keep_ms = tail[2];
    if (e->kind->calendar) {
        e->moment.period.start_ms = rl_number_get(r);
        e->moment.period.end_ms = rl_number_get(r);
        if (!rl_effect_period_valid(&e->moment.period)) return false;
    }
    return !r->broken && r->at == r->end && e->moment.now_us >= 0 && e->moment.now_us < RL_CLOCK_MAX_US &&
           e->cost >= -RL_UNITS_MAX && e->cost <= RL_UNITS_MAX && e->keep_ms >= 0 && e->keep_ms <= RL_PERIOD_MAX_MS;
}

static bool decode_whole(struct rl_reader *r, const int64_t tail[TAIL_WORDS], struct rl_effect *e) {
    e->totals = (struct rl_totals){.granted = tail[0], .last_at_ms = tail[1], .keep_ms = tail[2]};
    e->state = r->at;
    e->state_len = (size_t)(r->end - r->at);
    return !r->broken && rl_totals_valid(&e->totals);
}

bool rl_effect_decode(const unsigned char *bytes, size_t len, struct rl_effect *e) {
    const struct rl_type *type = len < HEAD ? NULL : rl_type_by_wire(bytes[1]);
    if (!type) return false;

    struct rl_reader r = {.at = bytes + HEAD, .end = bytes + len};
    int64_t tail[TAIL_WORDS];
    *e = (struct rl_effect){.form = bytes[0], .kind = type->kind};
    e->expire_at_ms = rl_number_get(&r);
    rl_numbers_get(&r, e->limit, e->kind->limit_words);
    rl_numbers_get(&r, tail, TAIL_WORDS);
    if (r.broken || e->expire_at_ms < RL_KEEP_EXPIRY || !e->kind->limit_valid(e->limit)) return false;

    switch (e->form) {
    case RL_EFFECT_TAKE: return decode_take(&r, tail, e);
    case RL_EFFECT_WHOLE: return decode_whole(&r, tail, e);
    }
    return false;
}
