/* The registry of batch decoders: a library of its own, for the programs that offer them, so that
 * libdl2 needs no graphics card's libraries. The only file here that asks HAVE_NVJPEG. */
#include "config.h"

#include "common/thread.h"
#include "loader/batch_decoder.h"

#include <stdio.h>
#include <string.h>

#ifdef HAVE_NVJPEG
#include "cuda/decode.h"
#endif

bool dl2_batch_decoder_built(void)
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

/* ---- words ---- */

static const char *const modes[] = {
    [DL2_DECODE_CPU] = "cpu", [DL2_DECODE_GPU] = "gpu", [DL2_DECODE_HYBRID] = "hybrid", NULL};
static const char *const inputs[] = {[DL2_DECODE_PLAIN] = "plain",
                                     [DL2_DECODE_REGION] = "region",
                                     [DL2_DECODE_SPLICED] = "spliced",
                                     NULL};
static const char *const engines[] = {[DL2_DECODE_AUTO] = "auto",
                                      [DL2_DECODE_ENGINES] = "engines",
                                      [DL2_DECODE_CORES] = "cores",
                                      NULL};

const char *dl2_decode_mode_name(enum dl2_decode_mode mode)
{
    return modes[mode];
}

const char *dl2_decode_input_name(enum dl2_decode_input input)
{
    return inputs[input];
}

const char *dl2_decode_engine_name(enum dl2_decode_engine engine)
{
    return engines[engine];
}

static int choose(const char *text, const char *const *words, struct dl2_error *error)
{
    for (int i = 0; words[i]; i++)
        if (!strcmp(text, words[i]))
            return i;
    return dl2_error_set(error, DL2_ERR_ARGUMENT, "'%s' is none of %s, %s, %s", text, words[0],
                         words[1], words[2]);
}

int dl2_decode_parse_mode(const char *text, void *choice, struct dl2_error *error)
{
    const int word = choose(text, modes, error);
    DL2_TRY(word);
    if (word != DL2_DECODE_CPU && !dl2_batch_decoder_built())
        return dl2_batch_decoder_open(NULL, &(struct dl2_batch_decoder *){NULL}, error);
    ((struct dl2_decode_choice *)choice)->mode = (enum dl2_decode_mode)word;
    return DL2_OK;
}

int dl2_decode_parse_input(const char *text, void *choice, struct dl2_error *error)
{
    const int word = choose(text, inputs, error);
    DL2_TRY(word);
    ((struct dl2_decode_choice *)choice)->input = (enum dl2_decode_input)word;
    return DL2_OK;
}

int dl2_decode_parse_engine(const char *text, void *choice, struct dl2_error *error)
{
    const int word = choose(text, engines, error);
    DL2_TRY(word);
    ((struct dl2_decode_choice *)choice)->engine = (enum dl2_decode_engine)word;
    return DL2_OK;
}
