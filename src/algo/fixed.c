#include "algo/fixed.h"

static int64_t window_start(const struct rl_fixed_limit *lim, int64_t at_ms) {
    return lim->align ? at_ms - at_ms % lim->period_ms : at_ms;
}

bool rl_fixed_ahead(const struct rl_fixed *w, const struct rl_fixed_limit *lim, int64_t now_ms) {
    return w->used != 0 && w->start_ms > now_ms + (lim->align ? lim->period_ms : 0);
}

int64_t rl_fixed_ends_at_ms(const struct rl_fixed *w, const struct rl_fixed_limit *lim) {
    return w->used ? w->start_ms + lim->period_ms : 0;
}

/* The window that a call at now_ms falls into, with what is used in it. */
static struct rl_fixed current(const struct rl_fixed *w, const struct rl_fixed_limit *lim, int64_t now_ms) {
    if (rl_fixed_ends_at_ms(w, lim) <= now_ms) return (struct rl_fixed){.start_ms = window_start(lim, now_ms)};
    struct rl_fixed now = *w;
    if (rl_fixed_ahead(w, lim, now_ms)) now.start_ms = window_start(lim, now_ms);
    return now;
}

bool rl_fixed_limit_valid(const struct rl_fixed_limit *lim) {
    return lim->count >= 1 && lim->count <= RL_UNITS_MAX && lim->period_ms >= 1 && lim->period_ms <= RL_PERIOD_MAX_MS &&
           (lim->align == 0 || lim->align == 1);
}

bool rl_fixed_valid(const struct rl_fixed *w) {
    return w->used >= 0 && w->used <= RL_USED_MAX && w->start_ms >= 0 && w->start_ms <= w->at_ms &&
           w->at_ms <= 2 * (RL_CLOCK_MAX_US / 1000);
}

struct rl_verdict rl_fixed_check(const struct rl_fixed *w, const struct rl_fixed_limit *lim, const struct rl_ask *ask,
                                 int64_t now_ms) {
    struct rl_verdict v = {.limit = lim->count};
    struct rl_fixed now = current(w, lim, now_ms);
    int64_t room = lim->count > now.used ? lim->count - now.used : 0;
    int64_t after = now.used;

    switch (ask->mode) {
    case RL_TAKE: v.allowed = ask->cost <= room ? ask->cost : 0; break;
    case RL_FORCE:
        v.allowed = ask->cost;
        v.beyond = now.used + ask->cost > RL_USED_MAX;
        break;
    case RL_UPTO: v.allowed = ask->cost < room ? ask->cost : room; break;
    case RL_REFUND: v.allowed = ask->cost < now.used ? ask->cost : now.used; break;
    }
    if (!ask->peek) after += rl_verdict_delta(&v, ask);

    int64_t left_ms = now.start_ms + lim->period_ms - now_ms;
    if (v.allowed == 0 && ask->mode != RL_REFUND) {
        int64_t wanted = ask->mode == RL_UPTO ? 1 : ask->cost;
        v.wait_ms = wanted > lim->count ? RL_NEVER : left_ms;
    }
    v.remaining = lim->count - after;
    v.reset_ms = after ? left_ms : 0;
    return v;
}

void rl_fixed_take(struct rl_fixed *w, const struct rl_fixed_limit *lim, int64_t cost, int64_t now_ms) {
    *w = current(w, lim, now_ms);
    w->used += cost;
    w->at_ms = now_ms > w->start_ms ? now_ms : w->start_ms;
}

void rl_fixed_rescale(struct rl_fixed *w, const struct rl_fixed_limit *to) {
    if (to->align) {
        w->start_ms = window_start(to, w->at_ms);
    } else if (w->start_ms + to->period_ms <= w->at_ms) {
        w->start_ms = w->at_ms;
    }
}
