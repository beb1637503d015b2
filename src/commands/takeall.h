#ifndef RL_COMMANDS_TAKEALL_H
#define RL_COMMANDS_TAKEALL_H

#include "server/command.h"

extern const struct rl_command rl_takeall_command;

#endif
