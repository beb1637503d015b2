/* rl-fixwin: the type of RL.FIXED. */
#ifndef RL_TYPES_FIXED_H
#define RL_TYPES_FIXED_H

#include "types/type.h"

extern struct rl_type rl_fixed_type;

#endif
