#ifndef RL_COMMANDS_TAKE_H
#define RL_COMMANDS_TAKE_H

#include "server/command.h"

extern const struct rl_command rl_take_command;

#endif
