/* Numbers in as few bytes as they need: seven bits each, lowest first, the top bit set on all but the last. */
#ifndef RL_ALGO_SLIDING_VARINT_H
#define RL_ALGO_SLIDING_VARINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Answers how many bytes were written, at most ten. */
static inline size_t rl_varint_put(uint8_t *out, uint64_t n) {
    size_t len = 0;
    for (; n >= 0x80; n >>= 7) out[len++] = (uint8_t)(n | 0x80);
    out[len++] = (uint8_t)n;
    return len;
}

/* Of our own bytes: no end is looked for. */
static inline uint64_t rl_varint_get(const uint8_t **at) {
    const uint8_t *p = *at;
    uint64_t n = *p & 0x7f;
    for (unsigned shift = 7; *p++ & 0x80; shift += 7) n |= (uint64_t)(*p & 0x7f) << shift;
    *at = p;
    return n;
}

/* Of anybody's bytes: false where they end too early, say the same in more bytes than needed, or more than 63 bits. */
static inline bool rl_varint_read(const uint8_t **at, const uint8_t *end, uint64_t *n) {
    *n = 0;
    for (unsigned shift = 0; shift < 63 && *at < end; shift += 7) {
        uint8_t byte = *(*at)++;
        *n |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return byte != 0 || shift == 0;
    }
    return false;
}

#endif
