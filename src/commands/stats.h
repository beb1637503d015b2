#ifndef RL_COMMANDS_STATS_H
#define RL_COMMANDS_STATS_H

#include "server/command.h"

extern const struct rl_command rl_stats_command, rl_top_command;

#endif
