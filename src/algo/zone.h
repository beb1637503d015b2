/* A time zone: how far local clocks are ahead of UTC at each instant.
 *
 * Law: an instant has exactly one offset. Spans of one offset are half open, follow each other without a gap and cover
 *   all of time.
 * Text: a zone is written as UTC or Z in any case, as a fixed offset, or as a name of the tz database:
 *     offset = ("+" | "-") hh ":" mm        00:00 to 23:59, exactly so many digits
 *     name   = part *("/" part)             part: one or more of A-Z a-z 0-9 _ + -
 *   A name starts with a capital letter, as all of the tz database's do; so neither paths nor its own lower-case files
 *   (localtime, posixrules, right/...) are names. At most 64 bytes; names are case-sensitive.
 * Data: TZif of any version (RFC 8536, RFC 9636) with its footer, the rule for all years after the last transition.
 *   Nothing in it is trusted. Data that counts leap seconds (the right/ zones) is refused: the server's clock doesn't.
 * Nothing here reads files: see server/zones.h. */
#ifndef RL_ALGO_ZONE_H
#define RL_ALGO_ZONE_H

#include <stdbool.h>
#include <stdint.h>

#include "algo/allocator.h"

#define RL_ZONE_TEXT_MAX 64                  /* bytes of a zone's text */
#define RL_ZONE_WORDS (RL_ZONE_TEXT_MAX / 8) /* the same as part of a limit */
#define RL_ZONE_OFFSET_MAX_S (26 * 3600)     /* offsets are nearer to zero than this */
#define RL_ZONE_SHIFTS_MAX 4096              /* changes of offset in one zone's data; real ones have at most some 250 */
#define RL_ZONE_BEFORE_S (-(INT64_C(1) << 60)) /* the start of the first span */
#define RL_ZONE_AFTER_S (INT64_C(1) << 60)     /* the end of the last */

enum rl_zone_form {
    RL_ZONE_BAD,   /* not the text of a zone */
    RL_ZONE_FIXED, /* UTC or an offset: needs no data */
    RL_ZONE_NAMED, /* has the syntax of a name; only the database knows whether there is such a zone */
};

/* A day of the year and the time on its clock at which the offset changes, as in the POSIX TZ variable. */
struct rl_zone_rule {
    char form;       /* 'M': month, week, day of the week; 'J': day 1 to 365, never February 29; 'N': day 0 to 365 */
    int16_t month;   /* 1 to 12 */
    int16_t week;    /* 1 to 5, 5 is the last */
    int16_t day;     /* of the week, 0 is Sunday; or of the year */
    int32_t clock_s; /* -167 h to 167 h after midnight */
};

struct rl_zone_shift {
    int64_t at_s;
    int32_t offset_s; /* from at_s on */
};

struct rl_zone {
    struct rl_zone_shift *shifts; /* ascending; NULL where there are none */
    uint32_t count;
    int32_t first_s; /* the offset before the first shift */
    bool ruled;      /* from the last shift on, or always, this holds: */
    bool saving;     /* it has daylight saving time */
    int32_t standard_s;
    int32_t saving_s;
    struct rl_zone_rule begins; /* daylight saving time, by the standard clock */
    struct rl_zone_rule ends;   /* by the saving clock */
};

struct rl_zone_span {
    int64_t from_s;
    int64_t until_s; /* excluded */
    int32_t offset_s;
};

/* What this text is, by its syntax alone; offset_s is written for RL_ZONE_FIXED. */
enum rl_zone_form rl_zone_form(const char *text, size_t len, int32_t *offset_s);

/* A text as words of a limit, eight bytes each, the first lowest, zeros behind; false where it is none. What needs no
 * data gets one spelling: UTC is all zero, in whichever of its forms it came. */
bool rl_zone_pack(int64_t words[RL_ZONE_WORDS], const char *text, size_t len);

/* The text in these words, and a NUL; answers its length. All zero is UTC. */
size_t rl_zone_unpack(const int64_t words[RL_ZONE_WORDS], char text[RL_ZONE_TEXT_MAX + 1]);

/* Whether rl_zone_pack can have made these words. */
bool rl_zone_packed_valid(const int64_t words[RL_ZONE_WORDS]);

/* The zone that is always this far ahead of UTC. It needs no freeing. */
struct rl_zone rl_zone_fixed(int32_t offset_s);

/* Reads TZif data. False, with nothing allocated, where it is not well formed or memory is short. */
bool rl_zone_parse(struct rl_zone *z, const unsigned char *data, size_t len, const struct rl_allocator *mem);
void rl_zone_free(struct rl_zone *z, const struct rl_allocator *mem);

/* The span that at_s, at most 2^50 from zero, lies in. */
struct rl_zone_span rl_zone_span_at(const struct rl_zone *z, int64_t at_s);

#endif
