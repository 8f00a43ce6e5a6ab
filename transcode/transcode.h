/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine of dl2-transcode: a source's images, each decoded once, resized once for each
 * resolution, and encoded for every variant that lacks it, written whole or not at all.
 *
 * Which images are made again: those without a file, whose source has another size or time than
 * when they were made, whose file has another size than was written, and all where options or the
 * encoder's library changed. The bytes are the same for any number of jobs.
 *
 * Several processes can share the work, by parts that know nothing of each other (`part`) or by
 * ranks (`world`). Each makes its images and notes them in a journal of its own; then one of them,
 * the last part or rank 0, makes the same pass as a run by itself does: it takes what is noted,
 * makes what is missing, and completes the variants. So nothing that a part loses is lost to the
 * result, and the bytes are those of one process.
 */
#ifndef DL2_TRANSCODE_TRANSCODE_H
#define DL2_TRANSCODE_TRANSCODE_H

#include "codec/codec.h"
#include "common/error.h"
#include "common/progress.h"
#include "common/work_part.h"
#include "dataset/dataset.h"
#include "dataset/write/writer.h"
#include "pixels/resolution.h"
#include "transcode/colors.h"
#include "transcode/target/target.h"

#include <stdint.h>

/* A variant to make. */
struct dl2_transcode_target {
    const struct dl2_codec *codec;
    struct dl2_encode_options encode;
    const char *name; /* the codec's, with settings: codec/settings.h; NULL: the codec's alone */
    struct dl2_quality_target
        target; /* a quality for each image, instead of encode.quality, which is 0 */
    struct dl2_resolution resolution;
};

struct dl2_world;

/* The options of all tasks of dl2-transcode: copy (transcode/copy.h) and others use what their
 * headers say. */
struct dl2_transcode_options {
    const char *source, *dest;
    enum dl2_samples samples;         /* clips stay clips; each of their frames is an image here */
    struct dl2_member_choice members; /* of samples of tar shards */
    struct dl2_subset subset;         /* of the source's images, for a copy */
    const char
        *labels; /* lists, of videos and of folders of frames; NULL: folders say the classes */
    const struct dl2_transcode_target *targets; /* all of codecs of images, or all of videos */
    size_t target_count;
    struct dl2_decode_options decode; /* channels: 0 */
    unsigned jobs;                    /* 0: dl2_cpu_count() */
    uint64_t memory; /* bytes that images in work may take together; one is always let through */
    struct dl2_writer_options pack; /* what variants lie in; its container may be "folder" */
    const uint64_t *shuffle;        /* packs images in the random order of this seed; or NULL */
    bool force;                     /* make everything again */
    bool never_larger; /* copy source files where that is no worse: transcode/reuse.h */
    enum dl2_color_rule color;
    enum dl2_metadata_rule metadata;
    /* An option of the command line that has no effect on volumes, to be refused where the source
     * holds some; NULL: none was given. */
    const char *idle_on_volumes;
    bool prune; /* remove files of earlier runs that no source image accounts for */
    /* Seconds that the variants may take, with those of earlier runs that ended so; 0: any. Not
     * with parts or ranks, nor where `dest` is no folder. */
    double time_limit;
    /* The images are divided by their bytes. With `part`, of all images: not with `force`. With
     * `world`, of those that have to be made; NULL: one process. On a server, of all images of the
     * variants that have to be made, in both cases. */
    struct dl2_work_part part;
    const struct dl2_world *world;
    /* With a DEST on a server: the folder in which its parts' images wait; NULL: there are none. */
    const char *staged;
    struct dl2_progress *progress; /* also tells of failed images and of what needs a look */
};

/* Sums over the images that a variant has, also from earlier runs. */
struct dl2_variant_totals {
    uint64_t images, pixels, bytes, source_bytes, failed; /* of clips where videos are made */
    uint64_t frames;               /* of the videos; 0 where images are made */
    uint64_t copied, copied_bytes; /* of images that are their source's files, unchanged */
    uint64_t pixels_only;          /* images that were to be kept whole, and could not */
    uint64_t pixels_only_for[DL2_PIXELS_ONLY_COUNT]; /* of these, for each reason */
    uint64_t missed, probes;                         /* of a variant with a target */
    uint64_t quantized;              /* volumes whose values the files do not hold exactly */
    double quantization_error;       /* the largest of these */
    uint64_t source_pixels, resized; /* of the upright sources; images smaller than theirs */
    double encode_cpu, decode_cpu;   /* seconds */
};

struct dl2_transcode_result {
    struct dl2_transcode_variant {
        char *name, *path;
        char *losses; /* dl2_reduction_describe(), and how many images were resized */
        size_t made;  /* images written in this run */
        struct dl2_variant_totals totals;
    } * variants;
    size_t variant_count;
    size_t sources;                        /* images found */
    size_t ignored;                        /* other files */
    size_t failed_sources;                 /* images that at least one variant lacks */
    bool complete;                         /* else a part has ended, and others have not, or... */
    bool late;                             /* time_limit has passed, and images are missing */
    unsigned parts_missing, first_missing; /* of these, and the lowest of them */
};

/*
 * DL2_ERR_ARGUMENT where DEST and SOURCE are in each other's way; other errors (no images, a full
 * disk) end the run, which a later one continues. Images that can't be read are no error here but
 * counted. `result` is to be freed in any case. Collective with `world`, and rank 0 has the result.
 */
int dl2_transcode(const struct dl2_transcode_options *options, struct dl2_transcode_result *result,
                  struct dl2_error *error);
void dl2_transcode_result_free(struct dl2_transcode_result *result);

#endif
