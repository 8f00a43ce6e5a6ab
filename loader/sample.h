/*
 * One sample's way: bytes, header, view, pixels, transform, the caller's operations, its place in a
 * batch. A dl2_job is one sample under way with everything that it needs, its random state too, so
 * that between two stages another thread can take it over.
 *
 *     READ -> DECODE -> TRANSFORM -> OPERATION 0, 1... -> PUT -> DONE
 *
 * Without operations TRANSFORM writes into the place itself and there is no PUT. For a batch
 * decoder DECODE looks at the headers, and TRANSFORM gives it the encoded image.
 *
 * Threads: one at a time per work; works share nothing but the recipe, which nobody changes.
 */
#ifndef DL2_LOADER_SAMPLE_H
#define DL2_LOADER_SAMPLE_H

#include "codec/decoder.h"
#include "codec/jpeg/jpeg_tiles.h"
#include "loader/batch_decoder.h"
#include "loader/cache.h"
#include "loader/fetch.h"
#include "loader/loader.h"
#include "pixels/crop.h"
#include "pixels/resize.h"

/* What all samples have in common. */
struct dl2_recipe {
    const struct dl2_dataset *dataset;
    const struct dl2_loader_config *config;
    struct dl2_fetch *fetch;
    /*
     * NULL: none. Where there is one, all samples are decoded to gray or RGB at full resolution,
     * also those that find no room in it: which do depends on who comes first, and the pixels
     * mustn't.
     */
    struct dl2_cache *decoded;
    bool sliced; /* of samples that can be cut, only the slices of the view are read */
    uint64_t epoch;
    size_t sample_bytes; /* in the batch */
};

/* Caches keep samples whole. */
static inline bool dl2_recipe_may_slice(const struct dl2_loader_config *config)
{
    return !config->fetch.whole && !config->fetch.cache_bytes && !config->decoded_cache_bytes;
}

/*
 * Which slices this epoch's view of a sample needs; false: all of it. What struct dl2_fetch_config
 * wants; `recipe` is one of these.
 */
bool dl2_sample_slices(const void *recipe, uint32_t index, struct dl2_slice_range *range);

/* What pixels/ needs of a loader's settings: which crops are drawn, and where a sample's pixels go,
 * and as what. */
struct dl2_crop_config dl2_loader_crop_config(const struct dl2_loader_config *config);
struct dl2_resize_output dl2_loader_output(const struct dl2_loader_config *config, void *out);

enum dl2_stage {
    DL2_STAGE_READ,
    DL2_STAGE_DECODE,
    DL2_STAGE_TRANSFORM,
    DL2_STAGE_OPERATION,
    DL2_STAGE_STORE,
    DL2_STAGE_DONE
};

struct dl2_job {
    uint32_t index;
    size_t position;      /* in the order that the bytes are fetched in */
    enum dl2_stage stage; /* the next */
    unsigned operation;   /* the next */
    double seconds;       /* that its stages took so far */
    struct dl2_random random;
    struct dl2_crop crop;
    struct dl2_loader_stats stats; /* for the caller to add up and clear */

    struct dl2_fetched fetched; /* encoded; given back once it is decoded, and not looked at */
    bool holds_bytes;
    bool has_crop;                        /* it was chosen before there were bytes */
    struct dl2_cuts cuts;                 /* where only slices were read */
    struct dl2_slice_range slices;        /* count 0: all of it */
    struct dl2_bytes joined;              /* the JPEG that they make */
    const struct dl2_cache_block *cached; /* decoded; NULL: not */
    struct dl2_decoder *decoder;
    struct dl2_raster raster; /* of the decoder's memory, or the cache's */
    struct dl2_resizer resizer;
    uint8_t *pixels; /* what operations work on */

    /* With a batch decoder. */
    bool to_decoder;                     /* let it decode this, if it takes it */
    bool staged;                         /* it does: `encoded` is for it */
    struct dl2_decode_slot *decode_slot; /* where the sample's place is, once there is one */
    unsigned place_number;
    struct dl2_encoded encoded;
    struct dl2_jpeg_splice splice;
};

/* Zeroed memory becomes a work. */
int dl2_job_init(struct dl2_job *job, const struct dl2_recipe *recipe, struct dl2_error *error);
void dl2_job_free(struct dl2_job *job, const struct dl2_recipe *recipe);
/* Bytes that it holds. */
size_t dl2_job_memory(const struct dl2_job *job, const struct dl2_recipe *recipe);

void dl2_job_begin(struct dl2_job *job, const struct dl2_recipe *recipe, uint32_t index,
                   size_t position);

/* Will the next stage write to the sample's place? */
bool dl2_job_needs_place(const struct dl2_job *job, const struct dl2_recipe *recipe);

/* Is there work left to be put off? Not with encoded bytes in hand, which others wait to follow. */
static inline bool dl2_job_may_rest(const struct dl2_job *job)
{
    return !job->holds_bytes &&
           (job->stage == DL2_STAGE_TRANSFORM || job->stage == DL2_STAGE_OPERATION);
}

/*
 * The next stage; `out` is the sample's place, recipe->sample_bytes of it, where one is needed. On
 * an error, which names the sample and the stage, the work is to begin anew with whatever sample.
 */
int dl2_job_step(struct dl2_job *job, const struct dl2_recipe *recipe, void *out,
                 struct dl2_error *error);

/* Gives up what is under way. */
void dl2_job_drop(struct dl2_job *job, const struct dl2_recipe *recipe);

#endif
