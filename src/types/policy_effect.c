#include "types/policy_effect.h"

#include <string.h>

#include "types/numbers.h"
#include "types/type.h"

/* form, expire_at_ms, for a take now_us, the policy's name, the number of rules; then each: its kind, in whose highest
 * bit is whether something follows, and its name, empty where it is the kind's. What follows are the words of the limit
 * and, of a take, cost, keep_ms and where the kind has one the period; of a whole value the totals and the state. */
#define FOLLOWS 0x80

static bool is_default(const struct rl_name *name, const struct rl_kind *kind) {
    return rl_name_is(name, kind->name, strlen(kind->name));
}

static unsigned char *put_head(unsigned char *out, int form, const struct rl_shape *shape, int64_t expire_at_ms,
                               int64_t now_us) {
    *out++ = (unsigned char)form;
    out = rl_number_put(out, expire_at_ms);
    if (form == RL_POLICY_EFFECT_TAKE) out = rl_number_put(out, now_us);
    out = rl_bytes_write(out, shape->policy.bytes, shape->policy.len);
    return rl_number_put(out, shape->rules);
}

static unsigned char *put_rule(unsigned char *out, const struct rl_shape *shape, int i, bool follows) {
    const struct rl_name *name = &shape->rule[i].name;
    *out++ = (unsigned char)(shape->rule[i].kind->wire | (follows ? FOLLOWS : 0));
    return rl_bytes_write(out, name->bytes, is_default(name, shape->rule[i].kind) ? 0 : name->len);
}

size_t rl_policy_effect_encode_take(unsigned char out[RL_POLICY_EFFECT_MAX], const struct rl_layout *layout,
                                    const struct rl_share *shares, int64_t now_us, int64_t expire_at_ms) {
    const struct rl_shape *shape = &layout->shape;
    unsigned char *end = put_head(out, RL_POLICY_EFFECT_TAKE, shape, expire_at_ms, now_us);
    for (int i = 0; i < shape->rules; i++) {
        const struct rl_kind *kind = shape->rule[i].kind;
        const struct rl_share *share = &shares[i];
        end = put_rule(end, shape, i, share->limit != NULL);
        if (!share->limit) continue;
        end = rl_numbers_put(end, share->limit, kind->limit_words);
        end = rl_number_put(rl_number_put(end, share->cost), share->keep_ms);
        if (kind->calendar) end = rl_number_put(rl_number_put(end, share->period.start_ms), share->period.end_ms);
    }
    return (size_t)(end - out);
}

static void unpack(struct rl_live *live, const struct rl_policy_value *value, int i) {
    rl_live_load_all(live, value->layout->shape.rule[i].kind, value->rules[i]);
}

size_t rl_policy_effect_whole_max(const struct rl_policy_value *value) {
    size_t size = RL_POLICY_EFFECT_MAX;
    for (int i = 0; i < value->layout->shape.rules; i++) {
        struct rl_live live;
        if (!value->rules[i]) continue;
        unpack(&live, value, i);
        size += live.kind->encoded_size(live.state);
    }
    return size;
}

size_t rl_policy_effect_encode_whole(unsigned char *out, const struct rl_policy_value *value) {
    const struct rl_shape *shape = &value->layout->shape;
    unsigned char *end = put_head(out, RL_POLICY_EFFECT_WHOLE, shape, RL_KEEP_EXPIRY, 0);
    for (int i = 0; i < shape->rules; i++) {
        struct rl_live live;
        end = put_rule(end, shape, i, value->rules[i] != NULL);
        if (!value->rules[i]) continue;
        unpack(&live, value, i);
        const int64_t totals[] = {live.totals.granted, live.totals.last_at_ms, live.totals.keep_ms};
        size_t len = live.kind->encoded_size(live.state);
        end = rl_numbers_put(end, live.limit->limit, live.kind->limit_words);
        end = rl_numbers_put(end, totals, 3);
        end = rl_number_put(end, (int64_t)len);
        live.kind->encode(live.state, end);
        end += len;
    }
    return (size_t)(end - out);
}

bool rl_policy_effect_is(const unsigned char *bytes, size_t len) {
    return len > 0 && (bytes[0] == RL_POLICY_EFFECT_TAKE || bytes[0] == RL_POLICY_EFFECT_WHOLE);
}

static bool get_rule(struct rl_reader *r, struct rl_policy_effect *e, int i, bool *follows) {
    unsigned char wire = rl_byte_get(r);
    const struct rl_type *type = rl_type_by_wire(wire & (FOLLOWS - 1));
    struct rl_name *name = &e->shape.rule[i].name;
    if (!type) return false;
    *follows = wire & FOLLOWS;
    e->shape.rule[i].kind = type->kind;
    name->bytes = rl_bytes_read(r, RL_NAME_MAX, &name->len);
    if (name->len == 0) *name = (struct rl_name){type->kind->name, strlen(type->kind->name)};
    return !r->broken;
}

static bool get_share(struct rl_reader *r, const struct rl_kind *kind, struct rl_share *share, int64_t *limit) {
    share->limit = limit;
    share->cost = rl_number_get(r);
    share->keep_ms = rl_number_get(r);
    if (kind->calendar) {
        share->period.start_ms = rl_number_get(r);
        share->period.end_ms = rl_number_get(r);
        if (!rl_effect_period_valid(&share->period)) return false;
    }
    return !r->broken && share->cost >= -RL_UNITS_MAX && share->cost <= RL_UNITS_MAX && share->keep_ms >= 0 &&
           share->keep_ms <= RL_PERIOD_MAX_MS;
}

static bool get_state(struct rl_reader *r, struct rl_totals *totals, struct rl_name *state) {
    totals->granted = rl_number_get(r);
    totals->last_at_ms = rl_number_get(r);
    totals->keep_ms = rl_number_get(r);
    state->bytes = rl_bytes_read(r, (size_t)(r->end - r->at), &state->len);
    return !r->broken && rl_totals_valid(totals);
}

bool rl_policy_effect_decode(const unsigned char *bytes, size_t len, struct rl_policy_effect *e) {
    struct rl_reader r = {.at = bytes, .end = bytes + len};
    struct rl_shape *shape = &e->shape;
    e->form = rl_byte_get(&r);
    e->expire_at_ms = rl_number_get(&r);
    e->now_us = e->form == RL_POLICY_EFFECT_TAKE ? rl_number_get(&r) : 0;
    shape->policy.bytes = rl_bytes_read(&r, RL_NAME_MAX, &shape->policy.len);
    int64_t rules = rl_number_get(&r);
    if (r.broken || e->expire_at_ms < RL_KEEP_EXPIRY || rules < 1 || rules > RL_RULES_MAX) return false;
    if (e->now_us < 0 || e->now_us >= RL_CLOCK_MAX_US) return false;

    shape->rules = (int)rules;
    for (int i = 0; i < shape->rules; i++) {
        bool follows;
        e->shares[i] = (struct rl_share){.limit = NULL};
        e->states[i] = (struct rl_name){0};
        if (!get_rule(&r, e, i, &follows)) return false;
        if (!follows) continue;
        const struct rl_kind *kind = shape->rule[i].kind;
        rl_numbers_get(&r, e->limits[i], kind->limit_words);
        if (r.broken || !kind->limit_valid(e->limits[i])) return false;
        bool good = e->form == RL_POLICY_EFFECT_TAKE ? get_share(&r, kind, &e->shares[i], e->limits[i])
                                                     : get_state(&r, &e->totals[i], &e->states[i]);
        if (!good) return false;
    }
    return r.at == r.end && rl_shape_valid(shape);
}
