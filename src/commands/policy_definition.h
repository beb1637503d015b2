/* What a policy is, read from the words of RL.POLICY SET: the one check for clients, dumps, files and replication. */
#ifndef RL_COMMANDS_POLICY_DEFINITION_H
#define RL_COMMANDS_POLICY_DEFINITION_H

#include "server/args.h"
#include "server/policies.h"

#define RL_DEFINITION_MAX 512    /* words: more than the grammar can use */
#define RL_DEFINITION_WORD 16384 /* bytes of one: more than the longest table needs */

/* rule [rule ...] [OUTCOME label:cost[,...]] [ADAPT source load:percent[,...]] [SHADOW]. NULL, and replied, where the
 * words are wrong; ctx NULL: nobody is told. The words are copied. */
struct rl_policy *rl_policy_define(RedisModuleCtx *ctx, const char *name, size_t name_len, RedisModuleString **words,
                                   int words_len);

/* The same, but the words, which were made with rl_alloc and without a context, become the policy's, or are freed. */
struct rl_policy *rl_policy_define_owned(RedisModuleCtx *ctx, const char *name, size_t name_len,
                                         RedisModuleString **words, int words_len);

/* percent [FOR duration], to the end: the percent and, from now on, its end. */
bool rl_policy_read_timed(struct rl_args *a, struct rl_timed_percent *p);

/* Names of policies and sources: 1 to 128 bytes. */
bool rl_policy_name_valid(RedisModuleCtx *ctx, const char *what, size_t len);

#endif
