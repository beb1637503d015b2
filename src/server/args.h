/* A cursor over a command's arguments, read left to right. It knows the names and bounds of what it reads; where an
 * argument is wrong it replies the error and answers false, and the caller only returns. */
#ifndef RL_SERVER_ARGS_H
#define RL_SERVER_ARGS_H

#include "algo/verdict.h"
#include "redismodule.h"

struct rl_args {
    RedisModuleCtx *ctx;
    RedisModuleString **argv;
    int argc;
    int at;
};

/* An option: a keyword, the function that reads what follows it, NULL where nothing does, and the options that it does
 * not go with, a bit for each place in its table. Tables end with a NULL name. */
struct rl_option {
    const char *name;
    bool (*read)(struct rl_args *a, const char *name, void *into);
    unsigned excludes;
};
#define RL_BIT(place) (1u << (place))

/* The next argument as it is; NULL, and replied, where there is none. */
const char *rl_args_text(struct rl_args *a, const char *name, size_t *len);

bool rl_args_rate(struct rl_args *a, const char *name, int64_t *count, int64_t *period_ms);
bool rl_args_duration(struct rl_args *a, const char *name, int64_t *ms);

/* A number of units: plain digits from 1 to 10^12. */
bool rl_args_units(struct rl_args *a, const char *name, int64_t *units);

/* Plain digits from min to max. */
bool rl_args_number(struct rl_args *a, const char *name, int64_t min, int64_t max, int64_t *n);

static inline bool rl_args_more(const struct rl_args *a) {
    return a->at < a->argc;
}

/* Whether the next argument is this keyword, in any case. If so it is read. */
bool rl_args_keyword(struct rl_args *a, const char *keyword);

/* Reads the option that the next argument names, if it is in the table, into where its values go; seen has a bit for
 * each option of the table: none may come twice, or with one that it excludes. 1: read; 0: not in the table; -1: wrong,
 * and replied. */
int rl_args_option(struct rl_args *a, const struct rl_option *table, unsigned *seen, void *into);

/* The beginning of any bytes as text that can be shown in an error. */
#define RL_ARGS_SHOWN 33
void rl_args_show(const char *bytes, size_t len, char shown[RL_ARGS_SHOWN]);

/* Replies that the next argument isn't an option here, and what the options are; shared may be NULL. */
bool rl_args_unknown(struct rl_args *a, const struct rl_option *own, const struct rl_option *shared);

/* Reads options to the end; seen, which may be NULL, gets a bit for each that was there. */
bool rl_args_options(struct rl_args *a, const struct rl_option *table, unsigned *seen, void *into);

#endif
