/* RL.TOKENBUCKET, and what the other commands on the same bucket share with it. */
#ifndef RL_COMMANDS_TOKENBUCKET_H
#define RL_COMMANDS_TOKENBUCKET_H

#include "commands/limiter.h"
#include "server/command.h"

extern const struct rl_command rl_tokenbucket_command;
extern const struct rl_limiter rl_tokenbucket_limiter;

bool rl_tokenbucket_parse(struct rl_args *a, void *limit);
bool rl_tokenbucket_finish(struct rl_args *a, void *limit);
extern const struct rl_option rl_tokenbucket_options[];
extern RedisModuleCommandArg rl_tokenbucket_args[];

#endif
