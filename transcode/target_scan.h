/* SPDX-License-Identifier: BSD-2-Clause */
/* Tries all qualities for a score, by a codec's trials (codec/codec.h), without making files. */
#ifndef DL2_TRANSCODE_TARGET_SCAN_H
#define DL2_TRANSCODE_TARGET_SCAN_H

#include "transcode/target_try.h"

/* Makes job->out the file of the quality that is found, and fills in the result. */
int dl2_target_scan(const struct dl2_target_job *job, struct dl2_error *error);

#endif
