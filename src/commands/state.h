#ifndef RL_COMMANDS_STATE_H
#define RL_COMMANDS_STATE_H

#include "server/command.h"

extern const struct rl_command rl_state_command;

#endif
