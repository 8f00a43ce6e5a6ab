/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A batch decoder that decodes on the processors, behind the same header as a card's: what comes
 * out is then what comes out without one, byte for byte.
 */
#ifndef DL2_TESTS_LOADER_FAKE_DECODER_H
#define DL2_TESTS_LOADER_FAKE_DECODER_H

#include "loader/batch_decoder.h"

#include <stdatomic.h>

struct fake_decoder {
    struct dl2_batch_decoder base; /* its ops are fake_decoder_class */
    unsigned refuses;              /* every so manieth image, by its bytes; 0: none, 1: all */
    unsigned fails_at;             /* the finish that fails, from 1 on; 0: none */
    unsigned micros;               /* that a finish takes at least */
    atomic_uint finishes;
    atomic_ullong images, bytes, pixels, refused, shifted; /* images: refused ones, too */
    atomic_uint reads;                                     /* calls of write_after */
    atomic_uintptr_t read, reader;                         /* images and stream of the last */
};

extern const struct dl2_batch_decoder_class fake_decoder_class; /* close() frees it */

#endif
