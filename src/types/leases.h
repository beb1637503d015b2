/* rl-leases: the type of RL.ACQUIRE, RL.RENEW and RL.RELEASE. */
#ifndef RL_TYPES_LEASES_H
#define RL_TYPES_LEASES_H

#include "types/type.h"

extern struct rl_type rl_leases_type;

#endif
