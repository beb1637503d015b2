#include "types/leases_effect.h"

#include "types/memory.h"
#include "types/numbers.h"

/* form, op, then numbers: expire_at_ms, now_us, the limit's two, lease_ms, units, how many ids; then each id with its
 * length before it. */
enum { HEAD = 2, NUMBERS = 7 };

bool rl_leases_effect_is(const unsigned char *bytes, size_t len) {
    return len > 0 && bytes[0] == RL_LEASES_EFFECT;
}

size_t rl_leases_effect_max(const struct rl_leases_effect *e) {
    size_t size = HEAD + NUMBERS * RL_NUMBER_MAX;
    for (size_t i = 0; i < e->ids_count; i++) size += RL_NUMBER_MAX + e->ids[i].len;
    return size;
}

size_t rl_leases_effect_encode(unsigned char *out, const struct rl_leases_effect *e) {
    const int64_t numbers[NUMBERS] = {e->expire_at_ms, e->now_us, e->limit.limit,       e->limit.lease_ms,
                                      e->lease_ms,     e->units,  (int64_t)e->ids_count};
    unsigned char *end = out;
    *end++ = RL_LEASES_EFFECT;
    *end++ = (unsigned char)e->op;
    end = rl_numbers_put(end, numbers, NUMBERS);
    for (size_t i = 0; i < e->ids_count; i++) end = rl_bytes_write(end, e->ids[i].bytes, e->ids[i].len);
    return (size_t)(end - out);
}

static bool valid(const struct rl_leases_effect *e, int64_t ids_count) {
    bool ids_needed = e->op != RL_LEASES_MOVE;
    return e->op >= RL_LEASES_ACQUIRE && e->op <= RL_LEASES_MOVE && e->expire_at_ms >= RL_KEEP_EXPIRY &&
           e->now_us >= 0 && e->now_us < RL_CLOCK_MAX_US && rl_leases_limit_valid(&e->limit) && e->lease_ms >= 1 &&
           e->lease_ms <= RL_PERIOD_MAX_MS && e->units >= 1 && e->units <= RL_LEASES_LIMIT_MAX &&
           ids_count >= ids_needed && ids_count <= RL_LEASES_IDS_MAX;
}

bool rl_leases_effect_decode(const unsigned char *bytes, size_t len, struct rl_leases_effect *e) {
    int64_t numbers[NUMBERS];
    struct rl_reader r = {.at = bytes, .end = bytes + len};
    rl_byte_get(&r);
    *e = (struct rl_leases_effect){.op = rl_byte_get(&r)};
    rl_numbers_get(&r, numbers, NUMBERS);
    e->expire_at_ms = numbers[0];
    e->now_us = numbers[1];
    e->limit = (struct rl_leases_limit){.limit = numbers[2], .lease_ms = numbers[3]};
    e->lease_ms = numbers[4];
    e->units = numbers[5];
    if (r.broken || !valid(e, numbers[6])) return false;

    e->ids_count = (size_t)numbers[6];
    e->ids = rl_alloc((e->ids_count + 1) * sizeof(*e->ids));
    for (size_t i = 0; i < e->ids_count; i++) {
        e->ids[i].bytes = (const unsigned char *)rl_bytes_read(&r, RL_LEASE_ID_MAX, &e->ids[i].len);
        if (e->ids[i].len == 0) r.broken = true;
    }
    if (!r.broken && r.at == r.end) return true;
    rl_free(e->ids);
    return false;
}
