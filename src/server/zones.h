/* The zones of the system's tz database, read once each.
 *
 * A zone's text is never a path: only a name of the strict syntax of algo/zone.h is looked for, and what is found,
 * links resolved, must be a regular file inside the database's directory, of bounded size, with sound TZif data. The
 * process-wide TZ is neither read nor changed.
 *
 * A cache is bounded and belongs to one thread. What it holds stays until rl_zones_forget: new zone data is seen after
 * a restart. */
#ifndef RL_SERVER_ZONES_H
#define RL_SERVER_ZONES_H

#include "algo/zone.h"

#define RL_ZONES_SETS 256
#define RL_ZONES_WAYS 4 /* zones with the same hash; the database has some 600 names in all */
#define RL_ZONES_FILE_MAX (256 * 1024)

enum rl_zones_error {
    RL_ZONES_OK,
    RL_ZONES_BAD_SYNTAX,  /* neither UTC, nor an offset, nor what could be a name */
    RL_ZONES_NO_DATABASE, /* this machine has no tz database */
    RL_ZONES_UNKNOWN,     /* its database has no such zone */
    RL_ZONES_UNREADABLE,  /* there is something of that name, but it isn't sound zone data inside the database */
    RL_ZONES_NO_MEMORY,
};

struct rl_zones_entry;

struct rl_zones {
    const struct rl_allocator *mem;
    const char *directory; /* NULL: the first of the usual ones that is there */
    struct rl_zone fixed;
    uint32_t turn;               /* whose place is taken next in a full set */
    struct rl_zones_entry *last; /* asked for last, and most likely next */
    struct rl_zones_entry *sets[RL_ZONES_SETS][RL_ZONES_WAYS];
};

/* A cache without zones. directory, which is not copied, is for tests; NULL is the system's. */
void rl_zones_init(struct rl_zones *zones, const struct rl_allocator *mem, const char *directory);

/* The zone with this text, valid until the next call; NULL, and why. UTC and offsets need no database. */
const struct rl_zone *rl_zones_get(struct rl_zones *zones, const char *text, size_t len, enum rl_zones_error *error);

/* Frees all zones; they are read anew when they are asked for. */
void rl_zones_forget(struct rl_zones *zones);

/* What went wrong, as the end of a sentence that begins with the argument's name. */
const char *rl_zones_error_text(enum rl_zones_error error);

#endif
