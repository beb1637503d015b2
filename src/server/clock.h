/* The one clock: the server's wall clock in microseconds since 1970, read once a command. */
#ifndef RL_SERVER_CLOCK_H
#define RL_SERVER_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

int64_t rl_clock_us(void);

/* Tests stand the clock still at an instant, forwards or backwards, and let it go again. */
void rl_clock_freeze(int64_t at_us);
void rl_clock_release(void);
bool rl_clock_frozen(void);

#endif
