/* Patterns as KEYS has them: * ? [a-z] [^a] and \ before what stands for itself. */
#ifndef RL_SERVER_GLOB_H
#define RL_SERVER_GLOB_H

#include <stdbool.h>
#include <stddef.h>

bool rl_glob_matches(const char *pattern, size_t pattern_len, const char *text, size_t len);

#endif
