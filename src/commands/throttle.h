#ifndef RL_COMMANDS_THROTTLE_H
#define RL_COMMANDS_THROTTLE_H

#include "server/command.h"

/* Registered where ratelimit.cl-throttle says so and nobody else has the name. */
extern const struct rl_command rl_throttle_command;

#endif
