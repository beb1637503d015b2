#ifndef RL_COMMANDS_QUOTA_H
#define RL_COMMANDS_QUOTA_H

#include "algo/quota.h"
#include "commands/limiter.h"
#include "server/command.h"

extern const struct rl_command rl_quota_command;
extern const struct rl_limiter rl_quota_limiter;

/* The zone of a limit; NULL, and why in words, where there is no data for it. why may be NULL. */
const struct rl_zone *rl_quota_zone(const struct rl_quota_limit *lim, const char **why);

#endif
