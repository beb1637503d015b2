/* The record that leases_pages.h keeps, as bytes: the tail's length (1), value and units (8), rank (6), tail. They stay
 * in the memory of one machine, so numbers are as that machine has them. */
#ifndef RL_ALGO_LEASES_RECORD_H
#define RL_ALGO_LEASES_RECORD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define RL_RECORD_TAIL_MAX 128
#define RL_RECORD_WORD_AT 1
#define RL_RECORD_RANK_AT 9
#define RL_RECORD_HEAD 15
#define RL_RECORD_UNITS_BITS 20

struct rl_record {
    uint64_t rank;  /* < 2^48 */
    uint64_t value; /* < 2^44 */
    uint64_t units; /* < 2^20 */
    const unsigned char *tail;
    size_t tail_len; /* at most RL_RECORD_TAIL_MAX */
};

/* Of up to 2^21 - 1 records. */
struct rl_tally {
    int64_t records;
    int64_t units;
};

/* The same in one word, so that sums are one addition. */
#define RL_TALLY_SHIFT 21

static inline struct rl_tally rl_tally_unpack(uint64_t tally) {
    return (struct rl_tally){(int64_t)(tally & ((1u << RL_TALLY_SHIFT) - 1)), (int64_t)(tally >> RL_TALLY_SHIFT)};
}

static inline uint64_t rl_record_word(const unsigned char *at) {
    uint64_t word;
    memcpy(&word, at + RL_RECORD_WORD_AT, sizeof(word));
    return word;
}

static inline uint64_t rl_record_rank(const unsigned char *at) {
    uint32_t low;
    uint16_t high;
    memcpy(&low, at + RL_RECORD_RANK_AT, sizeof(low));
    memcpy(&high, at + RL_RECORD_RANK_AT + sizeof(low), sizeof(high));
    return (uint64_t)high << 32 | low;
}

static inline size_t rl_record_size(const unsigned char *at) {
    return RL_RECORD_HEAD + (size_t)at[0];
}

static inline uint64_t rl_record_tally(const unsigned char *at) {
    return (rl_record_word(at) & ((1u << RL_RECORD_UNITS_BITS) - 1)) << RL_TALLY_SHIFT | 1;
}

static inline void rl_record_put(unsigned char *at, const struct rl_record *r) {
    uint64_t word = r->value << RL_RECORD_UNITS_BITS | r->units;
    uint32_t low = (uint32_t)r->rank;
    uint16_t high = (uint16_t)(r->rank >> 32);
    at[0] = (unsigned char)r->tail_len;
    memcpy(at + RL_RECORD_WORD_AT, &word, sizeof(word));
    memcpy(at + RL_RECORD_RANK_AT, &low, sizeof(low));
    memcpy(at + RL_RECORD_RANK_AT + sizeof(low), &high, sizeof(high));
    if (r->tail_len) memcpy(at + RL_RECORD_HEAD, r->tail, r->tail_len);
}

static inline void rl_record_get(const unsigned char *at, struct rl_record *r) {
    uint64_t word = rl_record_word(at);
    *r = (struct rl_record){rl_record_rank(at), word >> RL_RECORD_UNITS_BITS, word & ((1u << RL_RECORD_UNITS_BITS) - 1),
                            at + RL_RECORD_HEAD, at[0]};
}

/* Below, at or above 0 where r comes before, is, or comes after the record at `at`. */
static inline int rl_record_order(const struct rl_record *r, const unsigned char *at) {
    uint64_t rank = rl_record_rank(at);
    if (r->rank != rank) return r->rank < rank ? -1 : 1;
    size_t len = at[0];
    size_t least = r->tail_len < len ? r->tail_len : len;
    int by_tail = least ? memcmp(r->tail, at + RL_RECORD_HEAD, least) : 0;
    if (by_tail != 0 || r->tail_len != len) return by_tail ? by_tail : r->tail_len < len ? -1 : 1;
    uint64_t value = rl_record_word(at) >> RL_RECORD_UNITS_BITS;
    if (len > 0 || r->value == value) return 0;
    return r->value < value ? -1 : 1;
}

#endif
