/* SPDX-License-Identifier: BSD-2-Clause */
/* The fake CUDA for threads: fake_threads.c instead of fake_cuda.c. */
#ifndef DL2_TESTS_CUDA_FAKE_THREADS_H
#define DL2_TESTS_CUDA_FAKE_THREADS_H

#include <stdbool.h>
#include <stddef.h>

/* Does the card's memory hold these bytes? For what a stream runs. */
bool dl2_fake_on_card(const void *at, size_t size);
/* Runs what waits for no stream. */
void dl2_fake_at_once(void (*run)(void *call), void *call);

#endif
