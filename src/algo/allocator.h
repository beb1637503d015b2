/* Where state that grows takes its memory from. The server's allocator never fails (it aborts), others may: NULL from
 * alloc or realloc means that memory is short, and whoever asked leaves everything as it was. */
#ifndef RL_ALGO_ALLOCATOR_H
#define RL_ALGO_ALLOCATOR_H

#include <stddef.h>

struct rl_allocator {
    void *(*alloc)(size_t size);
    void *(*realloc)(void *block, size_t size);
    void (*free)(void *block);   /* NULL is fine */
    size_t (*size)(void *block); /* what the block really takes */
};

#endif
