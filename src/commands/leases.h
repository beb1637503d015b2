#ifndef RL_COMMANDS_LEASES_H
#define RL_COMMANDS_LEASES_H

#include "commands/limiter.h"
#include "server/command.h"

extern const struct rl_command rl_acquire_command;
extern const struct rl_command rl_renew_command;
extern const struct rl_command rl_release_command;

/* For RL.STATE; leases are no rules of a policy. */
extern const struct rl_limiter rl_leases_limiter;

#endif
