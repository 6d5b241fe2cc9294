/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The linker leads every call of malloc and its kin here (--wrap). */
#include "heap.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

static atomic_bool heap_is_counted;
static _Atomic(int64_t) heap_bytes;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void __real_free(void *block);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void __wrap_free(void *block);

static void heap_add(void *block, int sign)
{
    if (!atomic_load_explicit(&heap_is_counted, memory_order_relaxed))
        return;
    atomic_fetch_add_explicit(&heap_bytes, sign * (int64_t)malloc_usable_size(block),
                              memory_order_relaxed);
}

void *__wrap_malloc(size_t size)
{
    void *block = __real_malloc(size);

    heap_add(block, 1);
    return block;
}

void *__wrap_calloc(size_t count, size_t size)
{
    void *block = __real_calloc(count, size);

    heap_add(block, 1);
    return block;
}

void *__wrap_realloc(void *block, size_t size)
{
    heap_add(block, -1);
    void *moved = __real_realloc(block, size);
    heap_add(moved ? moved : block, 1);
    return moved;
}

void __wrap_free(void *block)
{
    heap_add(block, -1);
    __real_free(block);
}

void heap_count_begin(void)
{
    atomic_store(&heap_bytes, 0);
    atomic_store(&heap_is_counted, true);
}

int64_t heap_count(void)
{
    return atomic_load(&heap_bytes);
}

void heap_count_end(void)
{
    atomic_store(&heap_is_counted, false);
}
