/* What a key under a policy is made of: the policy's name, and the names and kinds of its rules.
 *
 * Each layout is stored once, never changes, and is shared by the policy and by all keys that it last wrote: whether a
 * key is up to date is a comparison of pointers. As with limits (types/shared.h) only the main thread looks up, adds
 * and removes; other threads only count down, and what nobody holds is swept when the table grows. */
#ifndef RL_TYPES_LAYOUT_H
#define RL_TYPES_LAYOUT_H

#include <stdatomic.h>

#include "types/kind.h"

#define RL_RULES_MAX 8
#define RL_NAME_MAX 128 /* bytes */

struct rl_name {
    const char *bytes;
    size_t len;
};

struct rl_shape {
    struct rl_name policy;
    int rules;
    struct {
        const struct rl_kind *kind;
        struct rl_name name;
    } rule[RL_RULES_MAX];
};

struct rl_layout {
    struct rl_shape shape; /* its names are in bytes */
    struct rl_layout *next;
    uint32_t hash;
    _Atomic uint32_t refs;
    char bytes[];
};

bool rl_name_is(const struct rl_name *name, const char *bytes, size_t len);

/* Whether a policy may have this shape: names of 1 to 128 bytes, those of the rules all different, kinds that count. */
bool rl_shape_valid(const struct rl_shape *shape);

/* The index of the rule with this name; -1: there is none. */
int rl_shape_find(const struct rl_shape *shape, const char *name, size_t len);

/* The layout of a valid shape, with one more holder. */
struct rl_layout *rl_layout_hold(const struct rl_shape *shape);
void rl_layout_retain(struct rl_layout *layout);
void rl_layout_release(struct rl_layout *layout);

/* Which rule of the old layout each rule of the new one takes its state from: the one of the same name and kind, else
 * of those that no name has claimed the next of its kind; -1: none. */
void rl_layout_match(const struct rl_layout *from, const struct rl_layout *to, int sources[RL_RULES_MAX]);

#endif
