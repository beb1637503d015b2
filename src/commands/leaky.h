#ifndef RL_COMMANDS_LEAKY_H
#define RL_COMMANDS_LEAKY_H

#include "commands/limiter.h"
#include "server/command.h"

extern const struct rl_command rl_leaky_command;
extern const struct rl_limiter rl_leaky_limiter;

#endif
