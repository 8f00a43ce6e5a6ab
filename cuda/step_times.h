/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The time of each part of a step on the card, summed over steps, for the file that DL2_CUDA_TIMES
 * names (docs/formats/train.md, dl2-cuda-times/1). Parts follow each other on one stream; an event
 * behind each ends it and begins the next. So a part also has the time for which the card waited
 * for the host to start it; parts much longer than a launch takes are exact.
 */
#ifndef DL2_CUDA_STEP_TIMES_H
#define DL2_CUDA_STEP_TIMES_H

#include "common/error.h"

#include <cuda_runtime_api.h>

struct dl2_step_times;

/* *out is NULL where nobody wants times. */
int dl2_step_times_open(const char *card, struct dl2_step_times **out, struct dl2_error *error);
/* Writes the file. Not for after a failure of the card. */
int dl2_step_times_save(struct dl2_step_times *times, struct dl2_error *error);
void dl2_step_times_close(struct dl2_step_times *times);

/* A step begins here on the stream: waits for the last one, and adds its times. */
int dl2_step_times_begin(struct dl2_step_times *times, cudaStream_t stream,
                         struct dl2_error *error);
/* The end of the part that began at the last mark. `layer` and `what` are copied. */
int dl2_step_times_mark(struct dl2_step_times *times, cudaStream_t stream, const char *layer,
                        const char *what, struct dl2_error *error);

#endif
