#ifndef RL_COMMANDS_HISTORY_H
#define RL_COMMANDS_HISTORY_H

#include "server/command.h"

extern const struct rl_command rl_history_command;

#endif
