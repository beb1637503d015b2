/* Numbers and names as the bytes of effects and dumps: zigzag varints, so that most of them are short. Reading trusts
 * nothing: past the end, or of what can't have been written, it answers 0 or nothing and remembers that it broke. */
#ifndef RL_TYPES_NUMBERS_H
#define RL_TYPES_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define RL_NUMBER_MAX 10 /* bytes */

struct rl_reader {
    const unsigned char *at, *end;
    bool broken;
};

static inline unsigned char *rl_number_put(unsigned char *out, int64_t n) {
    uint64_t rest = (uint64_t)n << 1 ^ (uint64_t)(n >> 63);
    for (; rest > 127; rest >>= 7) *out++ = (unsigned char)(rest | 128);
    *out++ = (unsigned char)rest;
    return out;
}

static inline unsigned char *rl_numbers_put(unsigned char *out, const int64_t *words, size_t n) {
    for (size_t i = 0; i < n; i++) out = rl_number_put(out, words[i]);
    return out;
}

static inline int64_t rl_number_get(struct rl_reader *r) {
    uint64_t n = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (r->at == r->end) break;
        unsigned char byte = *r->at++;
        n |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return (int64_t)(n >> 1 ^ (~(n & 1) + 1));
    }
    r->broken = true;
    return 0;
}

static inline void rl_numbers_get(struct rl_reader *r, int64_t *words, size_t n) {
    for (size_t i = 0; i < n; i++) words[i] = rl_number_get(r);
}

static inline unsigned char rl_byte_get(struct rl_reader *r) {
    if (r->at < r->end) return *r->at++;
    r->broken = true;
    return 0;
}

/* Bytes with their length before them. */
static inline unsigned char *rl_bytes_write(unsigned char *out, const void *bytes, size_t len) {
    out = rl_number_put(out, (int64_t)len);
    if (len > 0) memcpy(out, bytes, len);
    return out + len;
}

/* They stay where they are, and are at most max. */
static inline const char *rl_bytes_read(struct rl_reader *r, size_t max, size_t *len) {
    int64_t n = rl_number_get(r);
    const char *bytes = (const char *)r->at;
    *len = 0;
    if (n < 0 || (uint64_t)n > max || n > r->end - r->at) r->broken = true;
    if (r->broken) return bytes;
    *len = (size_t)n;
    r->at += n;
    return bytes;
}

#endif
