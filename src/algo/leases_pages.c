#include "algo/leases_pages.h"

#include <string.h>

#include "algo/leases_record.h"

#define BLOCK_MAX 1024

/* A node of the treap: pages to the left come before, pages below have lower priorities. */
struct rl_page {
    struct rl_page *parent, *left, *right;
    uint64_t tally; /* of this page and all below: packed */
    uint32_t priority;
    uint16_t used; /* bytes, never 0 */
    uint16_t room;
    unsigned char bytes[];
};

#define BYTES_MAX (BLOCK_MAX - sizeof(struct rl_page))

/* ---- the treap */

static uint64_t below(const struct rl_page *page) {
    return page ? page->tally : 0;
}

static uint64_t own(const struct rl_page *page) {
    return page->tally - below(page->left) - below(page->right);
}

static void climb(struct rl_page *page, uint64_t delta) {
    for (; page; page = page->parent) page->tally += delta;
}

static struct rl_page **link_of(struct rl_pages *p, const struct rl_page *page) {
    if (!page->parent) return &p->root;
    return page->parent->left == page ? &page->parent->left : &page->parent->right;
}

static struct rl_page *first_page(struct rl_page *page) {
    while (page && page->left) page = page->left;
    return page;
}

static struct rl_page *next_page(const struct rl_page *page) {
    if (page->right) return first_page(page->right);
    while (page->parent && page->parent->right == page) page = page->parent;
    return page->parent;
}

static struct rl_page *previous_page(const struct rl_page *page) {
    if (page->left) {
        struct rl_page *last = page->left;
        while (last->right) last = last->right;
        return last;
    }
    while (page->parent && page->parent->left == page) page = page->parent;
    return page->parent;
}

static void rotate_up(struct rl_pages *p, struct rl_page *page) {
    struct rl_page *parent = page->parent;
    struct rl_page **link = link_of(p, parent);
    bool is_left = parent->left == page;
    struct rl_page *middle = is_left ? page->right : page->left;
    uint64_t all = parent->tally;

    parent->tally = all - page->tally + below(middle);
    page->tally = all;
    *(is_left ? &parent->left : &parent->right) = middle;
    *(is_left ? &page->right : &page->left) = parent;
    if (middle) middle->parent = parent;
    page->parent = parent->parent;
    parent->parent = page;
    *link = page;
}

/* Makes a page, whose tally is its own, the one that comes after another. */
static void link_after(struct rl_pages *p, struct rl_page *page, struct rl_page *before) {
    struct rl_page *parent = before && before->right ? first_page(before->right) : before;
    page->parent = parent;
    if (!parent) {
        p->root = page;
    } else if (parent == before) {
        parent->right = page;
    } else {
        parent->left = page;
    }
    climb(parent, page->tally);
    while (page->parent && page->parent->priority < page->priority) rotate_up(p, page);
}

static void unlink_page(struct rl_pages *p, struct rl_page *page) {
    while (page->left && page->right) {
        rotate_up(p, page->left->priority > page->right->priority ? page->left : page->right);
    }
    struct rl_page *child = page->left ? page->left : page->right;
    climb(page->parent, -own(page));
    *link_of(p, page) = child;
    if (child) child->parent = page->parent;
}

/* Blocks come in four sizes to each power of two, as allocators like it. */
static size_t room_for(size_t bytes) {
    size_t block = sizeof(struct rl_page) + bytes, step = 16;
    while (step * 8 <= block) step *= 2;
    return ((block + step - 1) & ~(step - 1)) - sizeof(struct rl_page);
}

/* Chance need not be strong, but differ from page to page: addresses alone come again and again. */
static uint32_t chance(const struct rl_pages *p, const struct rl_page *page, uint64_t rank) {
    uint64_t x = (uint64_t)(uintptr_t)page ^ rank << 20 ^ below(p->root) << 40;
    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return (uint32_t)(x >> 32);
}

/* A page with that many bytes of records to come, not yet linked. */
static struct rl_page *make(const struct rl_pages *p, size_t bytes, uint64_t rank, const struct rl_allocator *mem) {
    size_t room = room_for(bytes);
    struct rl_page *page = mem->alloc(sizeof(*page) + room);
    if (!page) return NULL;
    *page = (struct rl_page){.priority = chance(p, page, rank), .used = (uint16_t)bytes, .room = (uint16_t)room};
    return page;
}

/* NULL: memory is short, and the page is where it was. */
static struct rl_page *resize(struct rl_pages *p, struct rl_page *page, size_t bytes, const struct rl_allocator *mem) {
    struct rl_page **link = link_of(p, page);
    size_t room = room_for(bytes);
    struct rl_page *moved = mem->realloc(page, sizeof(*page) + room);
    if (!moved) return NULL;
    moved->room = (uint16_t)room;
    *link = moved;
    if (moved->left) moved->left->parent = moved;
    if (moved->right) moved->right->parent = moved;
    return moved;
}

/* ---- looking */

/* The last page that begins before the record, or with one that is equal if `or_equal`; else the first page. With
 * or_equal it is one that has the record, if any has; without, the one after which all that comes is not before it. */
static struct rl_page *page_for(const struct rl_pages *p, const struct rl_record *r, bool or_equal) {
    struct rl_page *found = NULL, *last = NULL;
    for (struct rl_page *page = p->root; page;) {
        int ordered = rl_record_order(r, page->bytes);
        last = page;
        if (ordered > 0 || (ordered == 0 && or_equal)) {
            found = page;
            page = page->right;
        } else {
            page = page->left;
        }
    }
    return found ? found : last;
}

/* Where in the page the record is, or would be. */
static size_t place(const struct rl_page *page, const struct rl_record *r, bool *equal) {
    size_t pos = 0;
    int compared = 1;
    while (pos < page->used && (compared = rl_record_order(r, page->bytes + pos)) > 0)
        pos += rl_record_size(page->bytes + pos);
    *equal = pos < page->used && compared == 0;
    return pos;
}

struct rl_tally rl_pages_all(const struct rl_pages *p) {
    return rl_tally_unpack(below(p->root));
}

struct rl_tally rl_pages_below(const struct rl_pages *p, uint64_t rank) {
    const struct rl_page *found = NULL; /* the last page that begins below rank */
    uint64_t tally = 0, before_found = 0;
    for (const struct rl_page *page = p->root; page;) {
        if (rl_record_rank(page->bytes) >= rank) {
            page = page->left;
            continue;
        }
        found = page;
        before_found = tally + below(page->left);
        tally = before_found + own(page);
        page = page->right;
    }
    tally = before_found;
    for (size_t pos = 0; found && pos < found->used; pos += rl_record_size(found->bytes + pos)) {
        if (rl_record_rank(found->bytes + pos) >= rank) break;
        tally += rl_record_tally(found->bytes + pos);
    }
    return rl_tally_unpack(tally);
}

uint64_t rl_pages_rank_of(const struct rl_pages *p, int64_t nth) {
    const struct rl_page *page = p->root;
    for (;;) {
        int64_t left = rl_tally_unpack(below(page->left)).units, here = rl_tally_unpack(own(page)).units;
        if (nth <= left) {
            page = page->left;
        } else if (nth > left + here) {
            nth -= left + here;
            page = page->right;
        } else {
            nth -= left;
            break;
        }
    }
    size_t pos = 0;
    while ((nth -= rl_tally_unpack(rl_record_tally(page->bytes + pos)).units) > 0)
        pos += rl_record_size(page->bytes + pos);
    return rl_record_rank(page->bytes + pos);
}

uint64_t rl_pages_last_rank(const struct rl_pages *p) {
    const struct rl_page *page = p->root;
    uint64_t rank = 0;
    if (!page) return 0;
    while (page->right) page = page->right;
    for (size_t pos = 0; pos < page->used; pos += rl_record_size(page->bytes + pos))
        rank = rl_record_rank(page->bytes + pos);
    return rank;
}

bool rl_pages_single(const struct rl_pages *p) {
    return !p->root || (!p->root->left && !p->root->right);
}

bool rl_pages_find(const struct rl_pages *p, struct rl_record *r) {
    bool equal;
    if (!p->root) return false;
    const struct rl_page *page = page_for(p, r, true);
    size_t pos = place(page, r, &equal);
    if (!equal) return false;
    uint64_t word = rl_record_word(page->bytes + pos);
    r->value = word >> RL_RECORD_UNITS_BITS;
    r->units = word & ((1u << RL_RECORD_UNITS_BITS) - 1);
    return true;
}

struct rl_pages_walk rl_pages_start(const struct rl_pages *p, const struct rl_record *from) {
    bool equal;
    const struct rl_page *page = p->root ? page_for(p, from, false) : NULL;
    return (struct rl_pages_walk){page, page ? place(page, from, &equal) : 0};
}

bool rl_pages_next(struct rl_pages_walk *w, struct rl_record *r) {
    if (w->page && w->pos >= w->page->used) *w = (struct rl_pages_walk){next_page(w->page), 0};
    if (!w->page) return false;
    rl_record_get(w->page->bytes + w->pos, r);
    w->pos += RL_RECORD_HEAD + r->tail_len;
    return true;
}

/* ---- changing */

/* Moves the upper half of a page to a new one; or just what comes after pos, if that is little: records that come
 * almost in order leave full pages behind. */
static bool split(struct rl_pages *p, struct rl_page *page, size_t pos, const struct rl_allocator *mem) {
    size_t least = pos > page->used * 3u / 4 ? pos : page->used / 2u, cut = 0;
    uint64_t stays = 0;
    while (cut < least) {
        stays += rl_record_tally(page->bytes + cut);
        cut += rl_record_size(page->bytes + cut);
    }
    struct rl_page *upper = make(p, page->used - cut, rl_record_rank(page->bytes + cut), mem);
    if (!upper) return false;
    upper->tally = own(page) - stays;
    memcpy(upper->bytes, page->bytes + cut, upper->used);
    page->used = (uint16_t)cut;
    climb(page, -upper->tally);
    link_after(p, upper, page);
    resize(p, page, cut, mem); /* if it fails it stays large */
    return true;
}

bool rl_pages_insert(struct rl_pages *p, const struct rl_record *r, const struct rl_allocator *mem) {
    size_t size = RL_RECORD_HEAD + r->tail_len, pos = 0;
    bool equal;
    struct rl_page *page = p->root ? page_for(p, r, true) : NULL;
    if (page) pos = place(page, r, &equal);
    bool full = page && page->used + size > BYTES_MAX;
    if (full && pos < page->used) return split(p, page, pos, mem) && rl_pages_insert(p, r, mem);
    struct rl_page *next = full ? next_page(page) : NULL;
    if (next && next->used + size <= BYTES_MAX) {
        page = next;
        pos = 0;
        full = false;
    }
    if (!page || full) {
        struct rl_page *after = make(p, size, r->rank, mem);
        if (!after) return false;
        rl_record_put(after->bytes, r);
        after->tally = rl_record_tally(after->bytes);
        link_after(p, after, page);
        return true;
    }
    if (page->used + size > page->room) page = resize(p, page, page->used + size, mem);
    if (!page) return false;
    unsigned char *at = page->bytes + pos;
    memmove(at + size, at, page->used - pos);
    rl_record_put(at, r);
    page->used = (uint16_t)(page->used + size);
    climb(page, rl_record_tally(at));
    return true;
}

/* Appends the records of the next page to those of this one, and frees it. False: memory is short. */
static bool join(struct rl_pages *p, struct rl_page *page, struct rl_page *next, const struct rl_allocator *mem) {
    size_t used = (size_t)page->used + next->used;
    if (used > page->room) page = resize(p, page, used, mem);
    if (!page) return false;
    uint64_t tally = own(next);
    unlink_page(p, next);
    memcpy(page->bytes + page->used, next->bytes, next->used);
    page->used = (uint16_t)used;
    climb(page, tally);
    mem->free(next);
    return true;
}

/* Gives back what a page that has lost a record does not need any more, where memory allows. */
static void tidy(struct rl_pages *p, struct rl_page *page, const struct rl_allocator *mem) {
    if (page->used < BYTES_MAX / 4) {
        struct rl_page *next = next_page(page), *previous = previous_page(page);
        if (next && (size_t)page->used + next->used <= BYTES_MAX / 2 && join(p, page, next, mem)) return;
        if (previous && (size_t)page->used + previous->used <= BYTES_MAX / 2 && join(p, previous, page, mem)) return;
    }
    if (room_for(page->used) <= page->room * 3u / 4) resize(p, page, page->used, mem);
}

bool rl_pages_remove(struct rl_pages *p, const struct rl_record *r, const struct rl_allocator *mem) {
    bool equal;
    if (!p->root) return false;
    struct rl_page *page = page_for(p, r, true);
    size_t pos = place(page, r, &equal);
    if (!equal) return false;
    unsigned char *at = page->bytes + pos;
    size_t size = rl_record_size(at);
    climb(page, -rl_record_tally(at));
    page->used = (uint16_t)(page->used - size);
    memmove(at, at + size, page->used - pos);
    if (page->used > 0) {
        tidy(p, page, mem);
        return true;
    }
    unlink_page(p, page);
    mem->free(page);
    return true;
}

/* ---- the whole */

static struct rl_page *copy_below(const struct rl_page *page, struct rl_page *parent, bool *whole,
                                  const struct rl_allocator *mem) {
    if (!page) return NULL;
    struct rl_page *copy = mem->alloc(sizeof(*page) + page->room);
    if (!copy) {
        *whole = false;
        return NULL;
    }
    memcpy(copy, page, sizeof(*page) + page->used);
    copy->parent = parent;
    copy->left = copy_below(page->left, copy, whole, mem);
    copy->right = copy_below(page->right, copy, whole, mem);
    return copy;
}

bool rl_pages_clone(struct rl_pages *copy, const struct rl_pages *p, const struct rl_allocator *mem) {
    bool whole = true;
    copy->root = copy_below(p->root, NULL, &whole, mem);
    if (!whole) rl_pages_reset(copy, mem);
    return whole;
}

void rl_pages_reset(struct rl_pages *p, const struct rl_allocator *mem) {
    struct rl_page *page = p->root;
    while (page) {
        struct rl_page *left = page->left, *right = page->right, *parent = page->parent;
        if (left || right) {
            page = left ? left : right;
            continue;
        }
        if (parent) *link_of(p, page) = NULL;
        mem->free(page);
        page = parent;
    }
    p->root = NULL;
}

size_t rl_pages_memory(const struct rl_pages *p, const struct rl_allocator *mem) {
    size_t sum = 0;
    for (struct rl_page *page = first_page(p->root); page; page = next_page(page)) sum += mem->size(page);
    return sum;
}

void rl_pages_relocate(struct rl_pages *p, void *(*move)(void *ctx, void *block), void *ctx) {
    for (struct rl_page *page = first_page(p->root); page; page = next_page(page)) {
        struct rl_page **link = link_of(p, page);
        struct rl_page *moved = move(ctx, page);
        if (!moved) continue;
        *link = page = moved;
        if (page->left) page->left->parent = page;
        if (page->right) page->right->parent = page;
    }
}
