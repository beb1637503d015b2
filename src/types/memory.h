/* Where values are allocated: with the server, so that used_memory and MEMORY USAGE tell the truth. The sanitizer build
 * uses libc's allocator instead, which AddressSanitizer watches. */
#ifndef RL_TYPES_MEMORY_H
#define RL_TYPES_MEMORY_H

#include <malloc.h>
#include <stdlib.h>

#include "algo/allocator.h"
#include "redismodule.h"

#ifdef RL_LIBC_ALLOC
static inline void *rl_alloc(size_t size) {
    return malloc(size);
}
static inline void *rl_realloc(void *p, size_t size) {
    return realloc(p, size);
}
static inline void rl_free(void *p) {
    free(p);
}
static inline size_t rl_alloc_size(void *p) {
    return malloc_usable_size(p);
}
static inline void *rl_defrag(RedisModuleDefragCtx *ctx, void *p) {
    (void)ctx;
    (void)p;
    return NULL;
}
#else
static inline void *rl_alloc(size_t size) {
    return RedisModule_Alloc(size);
}
static inline void *rl_realloc(void *p, size_t size) {
    return RedisModule_Realloc(p, size);
}
static inline void rl_free(void *p) {
    RedisModule_Free(p);
}
static inline size_t rl_alloc_size(void *p) {
    return RedisModule_MallocSize(p);
}
/* The moved memory, or NULL where it may stay. */
static inline void *rl_defrag(RedisModuleDefragCtx *ctx, void *p) {
    return RedisModule_DefragAlloc(ctx, p);
}
#endif

/* The same for the algorithms, which are told where to allocate. */
static const struct rl_allocator rl_memory = {rl_alloc, rl_realloc, rl_free, rl_alloc_size};

#endif
