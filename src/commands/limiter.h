/* The body that all counting limiters share: parse, open, check, take, reply. A limiter plugs in its type, its own
 * arguments and its counters. */
#ifndef RL_COMMANDS_LIMITER_H
#define RL_COMMANDS_LIMITER_H

#include "server/alert.h"
#include "server/args.h"
#include "server/key.h"
#include "server/stats.h"
#include "types/type.h"

struct rl_limiter {
    const struct rl_type *type;
    const char *rule; /* its name as a rule of a policy; NULL: it can't be one */
    struct rl_stats *stats;

    /* Reads the positional arguments after the key into the limit, and sets what its options may change. */
    bool (*parse)(struct rl_args *a, void *limit);
    const struct rl_option *options; /* of its own; each reads into the limit */

    /* What only some limiters need; NULL for the others. */
    /* The last word on a limit whose options are all read; replies what is wrong with it. */
    bool (*finish)(struct rl_args *a, void *limit);
    /* Finds the calendar period of the moment; answers NULL, or what is wrong with its zone. */
    const char *(*locate)(const void *state, const void *limit, struct rl_moment *m);
    /* What a string that another module left means, if it means anything. */
    rl_key_adopt (*adopts)(void);
    /* How long a grant is to be held. */
    int64_t (*hold_ms)(const void *state, const void *limit, const struct rl_moment *m);
    /* Passes on what a take has told; where says which key it is. */
    void (*tell)(RedisModuleCtx *ctx, struct rl_alert where, const void *state, const void *limit, unsigned told);
    /* The fields of RL.STATE that only this kind has; replies them and answers how many. */
    int (*describe)(RedisModuleCtx *ctx, const void *state, const void *limit, const struct rl_moment *m);
};

/* The limiters, ended by NULL: the table in module.c. The first of a type is the one that RL.STATE asks. */
extern const struct rl_limiter *const rl_limiters[];

/* The limiter that RL.STATE asks of a kind's keys. */
const struct rl_limiter *rl_limiter_of(const struct rl_kind *kind);

/* What a call asks of a limiter. */
struct rl_request {
    struct rl_ask ask;
    int64_t keep_ms;
    int64_t limit[RL_LIMIT_WORDS];
};

/* A limiter as a rule of a policy. */
struct rl_limiter_rule {
    const struct rl_limiter *limiter;
    int64_t limit[RL_LIMIT_WORDS];
    int64_t keep_ms;
    const char *name; /* what AS says, or the kind's */
    size_t name_len;
};

/* Reads a rule, if the next argument is a limiter's name: its arguments, its own options, KEEP and AS, up to the first
 * argument that is none of these. 1: read; 0: not a limiter; -1: wrong, and replied. */
int rl_limiter_read_rule(struct rl_args *a, struct rl_limiter_rule *rule);

/* A step back of the clock left the state ahead of it: before anything else it is seen as of now, under its own limit,
 * whose period goes into m. False where it isn't ahead, or lacks its zone's data: then it stays where it is. */
bool rl_limiter_see_repaired(struct rl_live *live, const struct rl_limiter *limiter, struct rl_moment *m);

/* Opens the key, decides and carries the verdict out. False where an error was replied. */
bool rl_limiter_decide(RedisModuleCtx *ctx, RedisModuleString *name, const struct rl_limiter *limiter,
                       const struct rl_request *req, struct rl_verdict *v);

/* The whole command: parses, decides, replies. */
int rl_limiter_run(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, const struct rl_limiter *limiter);

/* The options that all limiters share, as rows for the arguments of COMMAND DOCS. */
extern RedisModuleCommandArg rl_limiter_amount_args[], rl_limiter_mode_args[];
#define RL_LIMITER_OPTION(option, of_type) .name = option, .type = of_type, .flags = REDISMODULE_CMD_ARG_OPTIONAL
#define RL_LIMITER_SHARED_ARGS                                                                                         \
    {RL_LIMITER_OPTION("amount", REDISMODULE_ARG_TYPE_ONEOF), .subargs = rl_limiter_amount_args},                      \
        {RL_LIMITER_OPTION("mode", REDISMODULE_ARG_TYPE_ONEOF), .subargs = rl_limiter_mode_args},                      \
        {RL_LIMITER_OPTION("peek", REDISMODULE_ARG_TYPE_PURE_TOKEN), .token = "PEEK"}, {                               \
        RL_LIMITER_OPTION("duration", REDISMODULE_ARG_TYPE_STRING), .token = "KEEP"                                    \
    }

#endif
