/* Numbers as little-endian bytes, on every machine. */
#ifndef RL_TYPES_BYTES_H
#define RL_TYPES_BYTES_H

#include <stdint.h>
#include <string.h>

static inline void rl_bytes_put(unsigned char *out, uint64_t n) {
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    n = __builtin_bswap64(n);
#endif
    memcpy(out, &n, sizeof(n));
}

static inline uint64_t rl_bytes_get(const unsigned char *bytes) {
    uint64_t n;
    memcpy(&n, bytes, sizeof(n));
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    n = __builtin_bswap64(n);
#endif
    return n;
}

#endif
