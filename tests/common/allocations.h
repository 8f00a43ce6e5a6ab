/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DL2_TESTS_ALLOCATIONS_H
#define DL2_TESTS_ALLOCATIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Counts the allocations of this process so far, libraries included; false if it can't. */
bool count_allocations(uint64_t *count);

#endif
