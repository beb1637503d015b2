/* rl-window: the type of RL.SLIDING, in both of its modes. */
#ifndef RL_TYPES_SLIDING_H
#define RL_TYPES_SLIDING_H

#include "types/type.h"

extern struct rl_type rl_sliding_type;

#endif
