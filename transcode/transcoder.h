/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One pass over a source's images, private to the files that make it. Each calls only files below:
 *
 *     transcode.c      the pass from beginning to end; parts, ranks, and the pass that follows them
 *     finish_image.c   an image in the source's order: packs it, and records it or why it failed
 *     encode_clip.c    a clip on any thread, where its variants are videos; a frame at a time
 *     encode_image.c   an image on any thread: decodes it once, encodes it for all variants
 *     encode_volume.c  a volume on any thread: encodes its slices for all variants
 *     target_curves.c  what targets expect of qualities, from a sample of the images
 *     source_image.c   reads and decodes a source image, within the limit of memory
 */
#ifndef DL2_TRANSCODE_TRANSCODER_H
#define DL2_TRANSCODE_TRANSCODER_H

#include "codec/video_notes.h"
#include "common/scope.h"
#include "common/thread.h"
#include "pixels/resize.h"
#include "quality/image_dataset.h"
#include "transcode/clip_packer.h"
#include "transcode/masks.h"
#include "transcode/reuse.h"
#include "transcode/transcode.h"
#include "transcode/variant/output_folder.h"
#include "transcode/variant/variant.h"

#include <pthread.h>

enum {
    /* Memory that a worker keeps from image to image. */
    DL2_KEPT_IMAGE_BYTES = 64 << 20,
    /* What an image costs whatever its size, in bytes of the source. */
    DL2_IMAGE_COST = 8192,
};

/* A worker thread, with the source image that it works on. */
struct dl2_transcode_worker {
    struct dl2_transcoder *run;
    struct dl2_transcode_slot *slot;
    struct dl2_bytes file, taken;
    /* The variants that are encoded together, and what they become: [variant_count] */
    struct dl2_bytes *encoded;
    size_t *members;
    int *qualities;
    struct dl2_image image, scratch, resized;
    struct dl2_decoder *decoder;   /* kept with external codecs */
    const struct dl2_image *shown; /* `image`, or `resized` for the variants that are made of it */
    const uint8_t *source;         /* the encoded image */
    size_t source_size;
    float decode_cpu;
    struct dl2_source_colors colors;
    struct dl2_reuse reuse; /* may variants have it as it is, if it is not resized? */
    struct dl2_image_resizer resizer;
    struct dl2_mask_resizer masks;
    struct dl2_target_searcher searcher;
    struct dl2_video_encoder **encoders; /* [variant_count] of videos that are being made */
    struct dl2_resizer raster;           /* of a source video */
};

/* What is worth a look in clips that became videos; zeroed, with its mutex initialized. Threads:
 * any. */
struct dl2_clip_notes {
    pthread_mutex_t mutex;
    struct dl2_video_notes videos;
    size_t uneven;
    struct dl2_left_out beside; /* frames but the first */
};

/* What became of an image in a variant: a new record, or why there is none. */
struct dl2_transcode_outcome {
    struct dl2_record record;
    struct dl2_bytes encoded; /* of a packed variant: to be put there in order */
    char *message;            /* of a failure */
    bool tried;
};

/* An image from the beginning of its work until it is recorded. */
struct dl2_transcode_slot {
    size_t index; /* of the item */
    const struct dl2_source_item *item;
    struct dl2_transcode_outcome *outcomes; /* [variant_count] */
    /* [resolution_count]: what lies beside the image, as it is, and from 1 on as far as it is
     * another at that resolution */
    struct dl2_sidecars *sidecars;
};

/* Lets work through while its memory fits under the limit, or where nothing else is being done. */
struct dl2_transcode_gate {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint64_t limit, used;
};

/*
 * A worker's memory for a sample, which ends with its scope; zeroed but for the worker:
 *
 *     DL2_CLEANUP(dl2_sample_memory_end) struct dl2_sample_memory memory = {.worker = worker};
 */
struct dl2_sample_memory {
    struct dl2_transcode_worker *worker;
    uint64_t bytes; /* that the gate has let through */
};

struct dl2_transcoder {
    const struct dl2_transcode_options *options;
    struct dl2_progress *progress;
    struct dl2_dataset *dataset;
    struct dl2_source_items source;
    struct dl2_variant *variants;
    size_t variant_count;
    struct dl2_transcode_worker *workers;
    struct dl2_transcode_slot *slots;   /* [window] */
    struct dl2_resolution *resolutions; /* of the variants, each once, full first */
    size_t resolution_count;
    size_t *resolution_of;           /* [variant_count] */
    struct dl2_target_curve *curves; /* [variant_count] of those whose targets are searched */
    struct dl2_unresized unresized;
    struct dl2_mask_look *looks; /* [source.count] of images that this pass has decoded */
    bool makes_videos;           /* items are clips, else images */
    struct dl2_clip_notes notes;
    struct dl2_transcode_gate gate;
    size_t *todo; /* item numbers */
    size_t todo_count;
    double deadline; /* dl2_clock_wall(), with a time limit */
    bool late;       /* it has passed, and items are left */
    struct dl2_output_lock *lock;
    bool volumes; /* the source's samples are volumes */
    bool packed;  /* variants are containers, not folders of files */
    /* [variant_count], of packed variants of clips, but in a part's pass; else NULL */
    struct dl2_clip_packer *clips;
    /* The part that this pass makes; 0 of 0: it makes all that is missing and completes. */
    struct dl2_work_part part;
    bool alone;   /* a part by itself, no rank */
    bool joins;   /* other such parts are at work */
    bool is_done; /* there was nothing to make, for no part */
    bool follows; /* parts of this process' run have been made */
    bool told;    /* all about the source has been said */
    /* [variant_count] The pass only finds out which variants are there on a server, as they should
     * be; NULL: it makes them. */
    bool *kept;
    struct dl2_part_file part_file;
    char *parts_stem; /* of a part by itself */
    char digest[32];  /* likewise: what is to be done */
    uint16_t *owners; /* [source.count] the parts that have the items; NULL: no part */
};

/* Has a variant to be made of an item? */
static inline bool dl2_transcoder_needs(const struct dl2_transcoder *run, size_t v, size_t index)
{
    return run->variants[v].records[index].state == DL2_RECORD_MISSING;
}

/* Has any? */
static inline bool dl2_transcoder_needs_any(const struct dl2_transcoder *run, size_t index)
{
    bool any = false;
    for (size_t v = 0; v < run->variant_count && !any; v++)
        any = dl2_transcoder_needs(run, v, index);
    return any;
}

/* Has variant `v` still to be made of the worker's item? */
static inline bool dl2_worker_needs(const struct dl2_transcode_worker *worker, size_t v)
{
    const struct dl2_transcode_slot *slot = worker->slot;
    return dl2_transcoder_needs(worker->run, v, slot->index) && !slot->outcomes[v].tried;
}

/* Has a part made it, so that it only has to be packed? */
static inline bool dl2_transcoder_packs(const struct dl2_transcoder *run, size_t v, size_t index)
{
    return !run->part.count && run->variants[v].records[index].state == DL2_RECORD_STAGED;
}

/* What lies beside a slot's image in variants of a resolution. */
static inline const struct dl2_sidecars *dl2_slot_sidecars(const struct dl2_transcode_slot *slot,
                                                           size_t resolution)
{
    return slot->sidecars[resolution].count ? &slot->sidecars[resolution] : &slot->sidecars[0];
}

/* ---- source_image.c */

int dl2_worker_init(struct dl2_transcode_worker *worker, struct dl2_transcoder *run,
                    struct dl2_error *error);
void dl2_worker_free(struct dl2_transcode_worker *worker);

/* Reads the file of an item. */
int dl2_worker_read(struct dl2_transcode_worker *worker, size_t index, struct dl2_error *error);
/* Decodes it into worker->image, which then has the colors of the run's rule. A `sampled` one may
 * take memory for each variant, also for those that have it. */
int dl2_worker_decode(struct dl2_sample_memory *memory, size_t index, bool sampled,
                      struct dl2_error *error);
/* Waits until work that takes so many bytes may begin. Once for a sample. */
void dl2_sample_memory_take(struct dl2_sample_memory *memory, uint64_t bytes);
/* Frees what the worker does not keep for the next sample, and lets others through the gate. */
void dl2_sample_memory_end(struct dl2_sample_memory *memory);
/* The options with which worker->shown is encoded for the variant. */
int dl2_worker_options(struct dl2_transcode_worker *worker, const struct dl2_variant *variant,
                       struct dl2_encode_options *encode, struct dl2_error *error);

/* ---- encode_clip.c, encode_image.c, finish_image.c: struct dl2_parallel's functions, for items of
 * `todo` */

int dl2_encode_clip(void *run, unsigned worker, size_t slot, size_t n, struct dl2_error *error);
int dl2_encode_image(void *run, unsigned worker, size_t slot, size_t n, struct dl2_error *error);
int dl2_finish_image(void *run, size_t slot, size_t n, struct dl2_error *error);

/* Begins with item `n` of `todo`, and returns whether any variant needs it. */
bool dl2_worker_take(struct dl2_transcode_worker *worker, size_t slot, size_t n);
/* Puts a file into its place in variant `v`, or into the outcome for dl2_finish_image(). */
int dl2_worker_store(struct dl2_transcode_worker *worker, size_t v, struct dl2_bytes *encoded,
                     struct dl2_error *error);
/* Fails the variants that wait for an item that can't be read or decoded, as `why` says. An error
 * is that of a source that is lost. */
int dl2_worker_fail(const struct dl2_transcode_worker *worker, bool encodes, struct dl2_error *why,
                    struct dl2_error *error);
void dl2_outcome_fail(struct dl2_transcode_outcome *outcome, const struct dl2_error *error);
/* How long an item takes, in proportion. */
double dl2_finish_cost(const struct dl2_transcoder *run, size_t index);
/* Ends the clips that were gathered last, and says what they lack. */
int dl2_finish_clips(struct dl2_transcoder *run, struct dl2_error *error);

/* ---- encode_volume.c */

/* Makes worker->encoded the files of the slot's volume for all variants that need it, and fills in
 * their records; variants that cannot have one fail. */
int dl2_encode_volume(struct dl2_sample_memory *memory, struct dl2_error *error);
/* ---- encode_clip.c */

/* Can the source's samples become videos here? Of a run that makes them. */
int dl2_clips_check(const struct dl2_transcoder *run, struct dl2_error *error);
/* Says what videos lack of their clips. */
void dl2_clips_tell(struct dl2_transcoder *run);

/* ---- target_curves.c */

/* Makes run->curves, with the workers. */
int dl2_target_curves_make(struct dl2_transcoder *run, struct dl2_error *error);

#endif
