#ifndef RL_COMMANDS_SLIDING_H
#define RL_COMMANDS_SLIDING_H

#include "commands/limiter.h"
#include "server/command.h"

extern const struct rl_command rl_sliding_command;
extern const struct rl_limiter rl_sliding_limiter;

#endif
