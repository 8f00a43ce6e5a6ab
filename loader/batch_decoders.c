/* SPDX-License-Identifier: BSD-2-Clause */
/* The registry of batch decoders. It is a library of its own for the programs that offer them, so
 * that libdl2 needs no library of a graphics card. The only file here that tests HAVE_NVJPEG. */
#include "config.h"

#include "common/device_name.h"
#include "common/thread.h"
#include "loader/batch_decoder.h"

#include <stdio.h>
#include <string.h>

#ifdef HAVE_NVJPEG
#include "cuda/decode/decode.h"
#endif

static const char *decoder_card_at(size_t index)
{
    return index == 0 ? "cuda" : NULL;
}

int dl2_batch_decoder_card(const char *text, void *card, struct dl2_error *error)
{
    struct dl2_device_name name;
    DL2_TRY(dl2_device_name_parse(text, decoder_card_at, &name, error));
    *(unsigned *)card = name.number;
    return DL2_OK;
}

static bool has_batch_decoder(void)
{
#ifdef HAVE_NVJPEG
    return true;
#else
    return false;
#endif
}

int dl2_batch_decoder_open(const struct dl2_batch_decoder_options *options,
                           struct dl2_batch_decoder **out, struct dl2_error *error)
{
    *out = NULL;
#ifdef HAVE_NVJPEG
    return dl2_nvjpeg_open(options, out, error);
#else
    (void)options;
    return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                         "this build decodes on no card: it needs CUDA and nvJPEG (configure "
                         "--with-cuda --with-nvjpeg)");
#endif
}

void dl2_batch_decoder_close(struct dl2_batch_decoder *decoder)
{
    if (decoder)
        decoder->ops->close(decoder);
}

int dl2_decode_choice_check(const struct dl2_decode_choice *choice, struct dl2_error *error)
{
    if (choice->mode == DL2_DECODE_CPU)
        return choice->input || choice->engine
                   ? dl2_error_set(error, DL2_ERR_ARGUMENT,
                                   "--gpu-input and --gpu-engine need --decode gpu or hybrid")
                   : DL2_OK;
    if (has_batch_decoder())
        return DL2_OK;
    const int status = dl2_batch_decoder_open(NULL, &(struct dl2_batch_decoder *){NULL}, error);
    dl2_error_prefix(error, "--decode");
    return status;
}

int dl2_decode_choice_open(const struct dl2_decode_choice *choice, unsigned card,
                           struct dl2_loader_config *config, struct dl2_batch_decoder **out,
                           struct dl2_error *error)
{
    *out = NULL;
    if (choice->mode == DL2_DECODE_CPU)
        return DL2_OK;
    const unsigned workers = config->workers ? config->workers : dl2_cpu_count();
    const struct dl2_batch_decoder_options options = {
        .card = card,
        .engine = choice->engine,
        .regions = choice->input == DL2_DECODE_REGION,
        .threads = workers < 8 ? workers : 8,
    };
    DL2_TRY(dl2_batch_decoder_open(&options, out, error));
    config->decoder = *out;
    config->decoder_shares = choice->mode == DL2_DECODE_HYBRID;
    config->decoder_splices = choice->input == DL2_DECODE_SPLICED;
    return DL2_OK;
}
