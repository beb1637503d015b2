/* Leases as bytes: the last write, then for each lease that was alive, by end and then id, the time since the end
 * before (or the last write), its units doubled and one more where its length is not the one before, this length; all
 * are varints; then the id's length in a byte, and the id. */
#include "algo/leases.h"
#include "algo/sliding_varint.h"

#define CLOCK_MAX_MS (RL_CLOCK_MAX_US / 1000)

static size_t put_all(const struct rl_leases *l, unsigned char *out) {
    unsigned char scratch[40];
    if (!l->table.by_end.root) return 0;
    size_t len = rl_varint_put(out ? out : scratch, (uint64_t)l->at_ms);
    struct rl_pages_walk w = rl_lease_start(&l->table, l->at_ms);
    struct rl_lease lease;
    int64_t end_ms = l->at_ms, length_ms = 0;
    while (rl_lease_next(&w, &lease)) {
        unsigned char *at = out ? out + len : scratch;
        size_t size = rl_varint_put(at, (uint64_t)(lease.end_at_ms - end_ms));
        size += rl_varint_put(at + size, (uint64_t)lease.units << 1 | (lease.length_ms != length_ms));
        if (lease.length_ms != length_ms) size += rl_varint_put(at + size, (uint64_t)lease.length_ms);
        at[size++] = (unsigned char)lease.id.len;
        if (out) memcpy(at + size, lease.id.bytes, lease.id.len);
        len += size + lease.id.len;
        end_ms = lease.end_at_ms;
        length_ms = lease.length_ms;
    }
    return len;
}

size_t rl_leases_encoded_size(const struct rl_leases *l) {
    return put_all(l, NULL);
}

void rl_leases_encode(const struct rl_leases *l, unsigned char *out) {
    put_all(l, out);
}

/* Reads the lease that comes after this one in a state last written at at_ms. */
static bool read_lease(const uint8_t **at, const uint8_t *end, int64_t at_ms, struct rl_lease *lease) {
    uint64_t since, word, length_ms = (uint64_t)lease->length_ms;
    struct rl_lease_id before = lease->id;
    if (!rl_varint_read(at, end, &since) || since > (uint64_t)RL_PERIOD_MAX_MS) return false;
    if (!rl_varint_read(at, end, &word)) return false;
    if ((word & 1) && (!rl_varint_read(at, end, &length_ms) || length_ms == (uint64_t)lease->length_ms)) return false;
    if (length_ms < 1 || length_ms > (uint64_t)RL_PERIOD_MAX_MS) return false;
    if (word >> 1 < 1 || word >> 1 > (uint64_t)RL_LEASES_LIMIT_MAX) return false;
    if (*at == end) return false;
    size_t id_len = *(*at)++;
    if (id_len < 1 || id_len > RL_LEASE_ID_MAX || id_len > (size_t)(end - *at)) return false;

    *lease =
        (struct rl_lease){{*at, id_len}, (int64_t)(word >> 1), lease->end_at_ms + (int64_t)since, (int64_t)length_ms};
    *at += id_len;
    int64_t start_ms = lease->end_at_ms - lease->length_ms;
    if (lease->end_at_ms <= at_ms || start_ms > at_ms || start_ms < 0) return false;
    if (since > 0 || !before.len) return true;
    int by_id = memcmp(before.bytes, lease->id.bytes, before.len < id_len ? before.len : id_len);
    return by_id < 0 || (by_id == 0 && before.len < id_len);
}

bool rl_leases_decode(struct rl_leases *l, const unsigned char *bytes, size_t len, const struct rl_allocator *mem) {
    const uint8_t *at = bytes, *end = bytes + len;
    uint64_t at_ms;
    int64_t units = 0;
    *l = (struct rl_leases){0};
    if (len == 0) return true;
    if (!rl_varint_read(&at, end, &at_ms) || at_ms > (uint64_t)CLOCK_MAX_MS || at == end) return false;

    l->at_ms = (int64_t)at_ms;
    struct rl_lease lease = {.end_at_ms = l->at_ms}, other;
    while (at < end) {
        bool good = read_lease(&at, end, l->at_ms, &lease) && (units += lease.units) <= RL_LEASES_LIMIT_MAX &&
                    !rl_lease_find(&l->table, &lease.id, l->at_ms, &other) && rl_lease_add(&l->table, &lease, mem);
        if (good) continue;
        rl_leases_reset(l, mem);
        return false;
    }
    return true;
}
