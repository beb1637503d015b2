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

static bool payable(rl_u128 owed, const struct rl_tokenbucket_limit *lim) {
    return owed <= units(RL_USED_MAX, lim) && owed <= (rl_u128)RL_REFILL_MAX_US * (uint64_t)lim->count;
}

static bool in_range(int64_t n, int64_t max) {
    return n >= 1 && n <= max;
}

bool rl_tokenbucket_limit_valid(const struct rl_tokenbucket_limit *lim) {
    return in_range(lim->count, RL_UNITS_MAX) && in_range(lim->burst, RL_UNITS_MAX) &&
           in_range(lim->period_us, RL_PERIOD_MAX_US) && lim->period_us % 1000 == 0 &&
           payable(units(lim->burst, lim), lim);
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
