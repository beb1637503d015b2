#include "algo/tokenbucket.h"

/* Most divisions are of small numbers, and a 128-bit division costs several times a 64-bit one. */
static rl_u128 divide(rl_u128 a, uint64_t b) {
    return a >> 64 ? a / b : (uint64_t)a / b;
}

static rl_u128 divide_up(rl_u128 a, uint64_t b) {
    return divide(a + (b - 1), b);
}

static int64_t floor_units(rl_i128 amount, int64_t period_us) {
    if (amount >= 0) return (int64_t)divide((rl_u128)amount, (uint64_t)period_us);
    return -(int64_t)divide_up((rl_u128)-amount, (uint64_t)period_us);
}

/* The time in which `amount` is paid back, rounded up to a millisecond. */
static int64_t pay_ms(rl_u128 amount, int64_t count) {
    if (count > RL_UNITS_MAX) return (int64_t)divide_up(divide_up(amount, (uint64_t)count), 1000);
    return (int64_t)divide_up(amount, (uint64_t)count * 1000);
}

static rl_u128 units(int64_t n, const struct rl_tokenbucket_limit *lim) {
    return (rl_u128)(uint64_t)n * (uint64_t)lim->period_us;
}

static rl_u128 owed_at(const struct rl_tokenbucket *b, const struct rl_tokenbucket_limit *lim, int64_t now_us) {
    if (now_us <= b->at_us) return b->owed;
    rl_u128 paid = (rl_u128)(uint64_t)(now_us - b->at_us) * (uint64_t)lim->count;
    return b->owed > paid ? b->owed - paid : 0;
}

/* The bounds of scaled limits: 10^18, 3.2 * 10^17 and 10^12. The largest products are 10^15 units in 1/period_us, that
 * is 3.2 * 10^32, and what 10^18 units per period pay back in the slowed ten years, 3.2 * 10^36: 2^128 is 3.4 * 10^38.
 * The slowed ten years themselves, in microseconds, are 3.2 * 10^18: 2^63 is 9.2 * 10^18. */
#define SCALED_COUNT_MAX (RL_UNITS_MAX * RL_SCALE_TIMES_MAX)
#define SCALED_PERIOD_MAX_US (RL_PERIOD_MAX_US * RL_SCALE_OF_MAX)

/* Only scaling leads there, and then the time to refill is scaled too. */
static bool outside_of_plain(const struct rl_tokenbucket_limit *lim) {
    return lim->count > RL_UNITS_MAX || lim->period_us > RL_PERIOD_MAX_US;
}

static bool payable(rl_u128 owed, const struct rl_tokenbucket_limit *lim) {
    uint64_t refill_max_us = (uint64_t)(outside_of_plain(lim) ? RL_REFILL_MAX_US * RL_SCALE_OF_MAX : RL_REFILL_MAX_US);
    return owed <= units(RL_USED_MAX, lim) && owed <= (rl_u128)refill_max_us * (uint64_t)lim->count;
}

static bool in_range(int64_t n, int64_t max) {
    return n >= 1 && n <= max;
}

bool rl_tokenbucket_limit_valid(const struct rl_tokenbucket_limit *lim) {
    return in_range(lim->count, RL_UNITS_MAX) && in_range(lim->burst, RL_UNITS_MAX) &&
           in_range(lim->period_us, RL_PERIOD_MAX_US) && lim->period_us % 1000 == 0 &&
           payable(units(lim->burst, lim), lim);
}

bool rl_tokenbucket_limit_storable(const struct rl_tokenbucket_limit *lim) {
    return in_range(lim->count, SCALED_COUNT_MAX) && in_range(lim->period_us, SCALED_PERIOD_MAX_US) &&
           lim->period_us % 1000 == 0 && lim->burst >= 0 && lim->burst <= RL_UNITS_MAX &&
           payable(units(lim->burst, lim), lim);
}

void rl_tokenbucket_scale(struct rl_tokenbucket_limit *scaled, const struct rl_tokenbucket_limit *lim,
                          struct rl_scale scale) {
    scaled->burst = rl_scale_count(scale, lim->burst, RL_UNITS_MAX);
    scaled->count = scale.times > 0 ? lim->count * scale.times : lim->count;
    scaled->period_us = scale.times > 0 ? lim->period_us * scale.of : lim->period_us;
}

bool rl_tokenbucket_valid(const struct rl_tokenbucket *b, const struct rl_tokenbucket_limit *lim) {
    return b->at_us >= 0 && b->at_us < RL_CLOCK_MAX_US && payable(b->owed, lim);
}

struct rl_verdict rl_tokenbucket_check(const struct rl_tokenbucket *b, const struct rl_tokenbucket_limit *lim,
                                       const struct rl_ask *ask, int64_t now_us) {
    struct rl_verdict v = {.limit = lim->burst};
    rl_u128 owed = owed_at(b, lim, now_us);
    rl_u128 full = units(lim->burst, lim);
    rl_u128 after = owed;
    int64_t wanted = ask->cost; /* what a refused caller waits for */

    switch (ask->mode) {
    case RL_TAKE:
        if (owed + units(ask->cost, lim) <= full) v.allowed = ask->cost;
        break;
    case RL_FORCE:
        v.allowed = ask->cost;
        v.beyond = !payable(owed + units(ask->cost, lim), lim);
        break;
    case RL_UPTO: {
        int64_t room = owed < full ? (int64_t)divide(full - owed, (uint64_t)lim->period_us) : 0;
        v.allowed = room < ask->cost ? room : ask->cost;
        wanted = 1;
        break;
    }
    case RL_REFUND: {
        int64_t used = (int64_t)divide(owed, (uint64_t)lim->period_us);
        v.allowed = used < ask->cost ? used : ask->cost;
        wanted = 0;
        after -= units(v.allowed, lim);
        break;
    }
    }

    if (v.allowed == 0 && wanted > lim->burst) {
        v.wait_ms = RL_NEVER;
    } else if (v.allowed == 0 && wanted > 0) {
        v.wait_ms = pay_ms(owed + units(wanted, lim) - full, lim->count);
    } else if (ask->mode != RL_REFUND && !ask->peek) {
        after += units(v.allowed, lim);
    }
    v.remaining = floor_units((rl_i128)full - (rl_i128)after, lim->period_us);
    v.reset_ms = pay_ms(after, lim->count);
    return v;
}

void rl_tokenbucket_take(struct rl_tokenbucket *b, const struct rl_tokenbucket_limit *lim, int64_t cost,
                         int64_t now_us) {
    rl_u128 owed = owed_at(b, lim, now_us);
    b->owed = cost >= 0 ? owed + units(cost, lim) : owed - units(-cost, lim);
    b->at_us = now_us;
}

bool rl_tokenbucket_rescale(struct rl_tokenbucket *b, const struct rl_tokenbucket_limit *from,
                            const struct rl_tokenbucket_limit *to) {
    uint64_t period_us = (uint64_t)from->period_us;
    rl_u128 whole = b->owed / period_us;
    rl_u128 part = b->owed % period_us;
    rl_u128 owed = whole * (uint64_t)to->period_us + divide_up(part * (uint64_t)to->period_us, period_us);
    if (!payable(owed, to)) return false;
    b->owed = owed;
    return true;
}

int64_t rl_tokenbucket_hold_ms(const struct rl_tokenbucket *b, const struct rl_tokenbucket_limit *lim, int64_t now_us) {
    return pay_ms(owed_at(b, lim, now_us), lim->count);
}

int64_t rl_tokenbucket_full_at_us(const struct rl_tokenbucket *b, const struct rl_tokenbucket_limit *lim) {
    return b->at_us + (int64_t)divide_up(b->owed, (uint64_t)lim->count);
}
