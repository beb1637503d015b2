#ifndef RL_COMMANDS_DEBUG_H
#define RL_COMMANDS_DEBUG_H

#include "server/command.h"

/* Registered only where the module was loaded with the argument `debug`. */
extern const struct rl_command rl_debug_command;

#endif
