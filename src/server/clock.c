#include "server/clock.h"

#include <time.h>

#include "algo/verdict.h"
#include "server/api.h"

#define RUNNING (-1)
static int64_t frozen_at_us = RUNNING;

int64_t rl_clock_us(void) {
    if (frozen_at_us != RUNNING) return frozen_at_us;
    /* The server's cached time is that of the running command, or of the whole script or transaction. */
    if (rl_api.cached_us) return (int64_t)rl_api.cached_us();
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

void rl_clock_freeze(int64_t at_us) {
    frozen_at_us = at_us;
}

void rl_clock_release(void) {
    frozen_at_us = RUNNING;
}

bool rl_clock_frozen(void) {
    return frozen_at_us != RUNNING;
}
