/* The notation of rates and durations: 10/s, 5/250ms, 1000/day; 500ms, 90s, 30d.
 *
 * Parsers take bytes, not strings, and answer NULL or what would be right, as the end of a sentence that begins with
 * the argument's name. Outputs are written only where NULL is answered. */
#ifndef RL_ALGO_NOTATION_H
#define RL_ALGO_NOTATION_H

#include <stddef.h>

#include "algo/verdict.h"

/* Room for a formatted rate or duration, or any int64. */
#define RL_NOTATION_SIZE 48

/* Plain digits, from min to max, which is at most 5 * 10^18: no sign, no space, no exponent. */
bool rl_notation_digits(const char *s, size_t len, int64_t min, int64_t max, int64_t *out);

/* count "/" [n] unit, with a count from 1 to 10^12 and a period from 1 ms to 366 days. */
const char *rl_notation_rate(const char *s, size_t len, int64_t *count, int64_t *period_ms);

/* n unit, from 1 ms to 366 days. */
const char *rl_notation_duration(const char *s, size_t len, int64_t *ms);

/* The shortest notation of a duration: 60000 is "1m"; of a rate: "10/m". They end with a NUL and answer its offset. */
size_t rl_notation_format_duration(char *out, size_t size, int64_t ms);
size_t rl_notation_format_rate(char *out, size_t size, int64_t count, int64_t period_ms);

#endif
