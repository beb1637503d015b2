/* rl-bucket: the type of RL.TOKENBUCKET and of everything that asks the same bucket in other words. */
#ifndef RL_TYPES_TOKENBUCKET_H
#define RL_TYPES_TOKENBUCKET_H

#include "types/type.h"

extern struct rl_type rl_tokenbucket_type;

#endif
