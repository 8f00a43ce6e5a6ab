/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * In the place of cuda/decode/decode.c, in a build of dl2._decoders that test_dl2.py and test_torch.py
 * load instead of the real one: two cards, whose memory is this machine's, and which decode as
 * fake_decoder.h says. DL2_FAKE_REFUSES and DL2_FAKE_FAILS_AT are that decoder's numbers. The
 * functions here are called by ctypes.
 */
#include "cuda/decode/decode.h"

#include "tests/loader/fake_decoder.h"

#include <stdlib.h>

static struct fake_decoder *last; /* that was opened and is not closed */
static unsigned open_count;
static struct dl2_batch_decoder_class counted; /* the fake's, but for close() */

unsigned fake_open_count(void);
unsigned fake_open_count(void)
{
    return open_count;
}

/* What the last decoder was told by write_after(): how often, and the last images and stream. */
unsigned fake_reads(uintptr_t *images, uintptr_t *stream);
unsigned fake_reads(uintptr_t *images, uintptr_t *stream)
{
    *images = atomic_load(&last->read);
    *stream = atomic_load(&last->reader);
    return atomic_load(&last->reads);
}

static void close_counted(struct dl2_batch_decoder *decoder)
{
    open_count--;
    if (last && &last->base == decoder)
        last = NULL;
    fake_decoder_class.close(decoder);
}

static unsigned number_of(const char *variable)
{
    const char *text = getenv(variable);
    return text ? (unsigned)strtoul(text, NULL, 10) : 0;
}

int dl2_nvjpeg_open(const struct dl2_batch_decoder_options *options, struct dl2_batch_decoder **out,
                    struct dl2_error *error)
{
    *out = NULL;
    if (options->card > 1)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "there is no card number %u", options->card);
    if (options->regions && options->engine == DL2_DECODE_CORES)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "a card's cores decode whole images");
    last = calloc(1, sizeof *last);
    if (!last)
        return dl2_error_set(error, DL2_ERR_MEMORY, "no memory for a fake decoder");
    if (!counted.close) { /* once: workers of other loaders read it */
        counted = fake_decoder_class;
        counted.close = close_counted;
    }
    last->base.ops = &counted;
    last->refuses = number_of("DL2_FAKE_REFUSES");
    last->fails_at = number_of("DL2_FAKE_FAILS_AT");
    open_count++;
    *out = &last->base;
    return DL2_OK;
}
