/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts the heap allocations of this program and its libraries: the allocator's functions are
 * replaced by ones that count and call glibc's own. Without glibc, or with a sanitizer that
 * replaces them already, nothing is counted.
 *
 * The counter is a mutable global, since the allocator's functions have no argument for it.
 */
#include "tests/common/allocations.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif

#if defined(__GLIBC__) && !defined(SANITIZED)

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static atomic_ullong allocations;

static void count_one(void)
{
    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
}

void *malloc(size_t size)
{
    count_one();
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    count_one();
    return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    count_one();
    return __libc_realloc(old, size);
}

void *memalign(size_t alignment, size_t size)
{
    count_one();
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    count_one();
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    if (alignment < sizeof(void *) || (alignment & (alignment - 1)))
        return EINVAL;
    count_one();
    void *block = __libc_memalign(alignment, size);
    if (!block)
        return ENOMEM;
    *out = block;
    return 0;
}

bool count_allocations(uint64_t *count)
{
    *count = atomic_load_explicit(&allocations, memory_order_relaxed);
    return true;
}

#else

bool count_allocations(uint64_t *count)
{
    *count = 0;
    return false;
}

#endif
