#ifndef RL_COMMANDS_FIXED_H
#define RL_COMMANDS_FIXED_H

#include "commands/limiter.h"
#include "server/command.h"

extern const struct rl_command rl_fixed_command;
extern const struct rl_limiter rl_fixed_limiter;

#endif
