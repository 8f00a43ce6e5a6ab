/* SPDX-License-Identifier: BSD-2-Clause */
/* libjpeg's errors: they jump back to the caller instead of ending the process. */
#ifndef DL2_CODEC_JPEG_JPEG_TRAP_H
#define DL2_CODEC_JPEG_JPEG_TRAP_H

#include "common/error.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>

#include <jpeglib.h>

/* Let cinfo->err point to `manager` and cinfo->client_data to the trap. */
struct dl2_jpeg_trap {
    struct jpeg_error_mgr manager;
    jmp_buf jump;
    struct dl2_error *error;
    int status;
    bool end_missing; /* the bytes ended before the end-of-image marker */
};

/* From now on errors, and warnings that mean lost pixels, set trap->status and jump to trap->jump,
 * which the caller sets. */
void dl2_jpeg_set_trap(struct dl2_jpeg_trap *trap, struct dl2_error *error);

#endif
