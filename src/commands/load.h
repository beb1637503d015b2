#ifndef RL_COMMANDS_LOAD_H
#define RL_COMMANDS_LOAD_H

#include "server/command.h"

extern const struct rl_command rl_load_command;

#endif
