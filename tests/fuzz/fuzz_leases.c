/* Leases as bytes, from anybody: whatever is accepted is what would have been written, sound, and can be gone on with;
 * nothing may be lost or crash. The first two bytes choose what is done then. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "algo/leases.h"

static size_t block_size(void *block) {
    return malloc_usable_size(block);
}

static const struct rl_allocator mem = {.alloc = malloc, .realloc = realloc, .free = free, .size = block_size};

static void require(bool held) {
    if (!held) abort();
}

static void require_same_bytes(const struct rl_leases *l, const uint8_t *data, size_t size) {
    require(rl_leases_encoded_size(l) == size);
    unsigned char *again = malloc(size + 1);
    rl_leases_encode(l, again);
    require(memcmp(again, data, size) == 0);
    free(again);
}

/* Some traffic at now_ms on what was read. */
static void go_on(struct rl_leases *l, int64_t now_ms) {
    struct rl_leases_limit lim = {.limit = 1000, .lease_ms = 50};
    struct rl_lease list[4];
    struct rl_lease_id ids[3] = {{(const unsigned char *)"a", 1}, {(const unsigned char *)"b", 1}};
    size_t listed = rl_leases_list(l, now_ms, list, 4);
    unsigned char id[RL_LEASE_ID_MAX] = {1};
    size_t len = listed ? list[listed - 1].id.len : 1;
    if (listed) memcpy(id, list[listed - 1].id.bytes, len);
    ids[2] = (struct rl_lease_id){id, len};

    struct rl_leases_ask ask = {ids, 2, 1, false, false};
    int64_t used = rl_leases_used(l, now_ms).units;
    struct rl_verdict v = rl_leases_check(l, &lim, &ask, now_ms, NULL);
    require(used >= 0 && used <= RL_LEASES_LIMIT_MAX && v.reset_ms >= 0 && v.wait_ms >= 0);
    if (v.allowed > 0) require(rl_leases_take(l, ids, 2, 1, lim.lease_ms, now_ms, &mem));
    require(rl_leases_renew(l, &ids[2], 70, now_ms, &mem) == rl_leases_alive(l, &ids[2], now_ms, NULL));
    if (listed) require(rl_leases_release(l, &ids[2], now_ms, &mem));
    require(!rl_leases_release(l, &ids[2], now_ms, &mem));
    require(rl_leases_move(l, now_ms + 1, &mem) && !rl_leases_ahead(l, now_ms + 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct rl_leases l, copy;
    if (size < 2) return 0;
    int64_t offset_ms = data[0] | data[1] << 8;
    data += 2;
    size -= 2;
    if (!rl_leases_decode(&l, data, size, &mem)) {
        require(!l.table.by_end.root && !l.table.by_id.root && l.at_ms == 0);
        return 0;
    }
    require_same_bytes(&l, data, size);
    require(rl_leases_clone(&copy, &l, &mem));
    int64_t now_ms = l.at_ms + offset_ms - 30000;
    go_on(&l, now_ms < 0 ? offset_ms : now_ms);
    rl_leases_reset(&l, &mem);
    require_same_bytes(&copy, data, size);
    rl_leases_reset(&copy, &mem);
    return 0;
}
