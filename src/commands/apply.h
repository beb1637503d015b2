#ifndef RL_COMMANDS_APPLY_H
#define RL_COMMANDS_APPLY_H

#include "server/command.h"

extern const struct rl_command rl_apply_command;

#endif
