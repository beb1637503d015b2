/* rl-quotas: the type of RL.QUOTA. */
#ifndef RL_TYPES_QUOTA_H
#define RL_TYPES_QUOTA_H

#include "types/type.h"

extern struct rl_type rl_quota_type;

#endif
