/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One variant on disk: a folder DEST/jpeg-50 that mirrors the source's tree.
 *
 *   dl2-variant.json        what it is, and sums (docs/formats/transcode.md)
 *   dl2-variant.jsonl       a line an image, once a run has ended
 *   .dl2-variant.journal    the same lines as they come, until a run has ended
 *   .dl2-variant.journal-2-of-4  the same of a part of a run, also of images that failed, until
 *                           the variant is complete
 *
 * What can be relied on at any moment, also after SIGKILL: files under their final names are whole,
 * and an image that has a line was made by the options that dl2-variant.json names, from a source
 * of the size and time that the line names. So a rerun needs to trust nothing but lines and file
 * sizes.
 *
 * A packed variant (dataset/write/writer.h) has the container instead of a tree; a table holds the
 * lines and dl2-variant.json, too (dataset/write/variant_facts.h), and an object store gets them
 * with the container. Neither has journals; those of parts lie in a folder (`waiting`). It is made
 * as a whole: kept where all images are up to date and none is missing or too much, else made again
 * from the first image on. Sources that failed count as up to date while they are the same and are
 * decoded in the same way (commands, time-out, libraries, version), or fail again; those that
 * couldn't be read, while they still can't. A killed run leaves nothing that could be taken for it.
 *
 * What lies beside an image is written before the image's line, which names it. An image whose
 * source has something else beside it now is made again. What lines of earlier runs name and those
 * of this run don't is removed at the end; what no line names is another program's, and named.
 *
 * An image that no run has made is in the way: any in a folder without dl2-variant.json, and one
 * without a line in a complete variant. In one that a killed run has left, lines may be missing.
 *
 * A part of a run (`part`) reads the journals of all parts and writes its own. Its images of a
 * packed variant wait to be packed (transcode/variant/staged.h). A run that is no part takes all
 * that is there, makes what is missing, and completes the variant.
 *
 * variant.c says what a variant is, variant_load.c reads what earlier runs have left of it, and
 * variant_write.c writes it image by image and completes it.
 *
 * Threads: dl2_variant_begin() and dl2_variant_put_sidecars() on any; everything else on one at a
 * time.
 */
#ifndef DL2_TRANSCODE_VARIANT_H
#define DL2_TRANSCODE_VARIANT_H

#include "codec/codec.h"
#include "common/error.h"
#include "common/work_part.h"
#include "dataset/dataset.h"
#include "dataset/sidecars.h"
#include "dataset/write/variant_facts.h"
#include "dataset/write/writer.h"
#include "pixels/resolution.h"
#include "transcode/colors.h"
#include "transcode/target/target_search.h"
#include "transcode/transcode.h"
#include "transcode/variant/source_items.h"
#include "transcode/variant/staged.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

enum dl2_record_state {
    DL2_RECORD_MISSING, /* to be made */
    DL2_RECORD_VALID,
    DL2_RECORD_FAILED,
    DL2_RECORD_STAGED, /* made by a part; it waits to be packed */
};

/* The facts that a variant keeps about an item. */
struct dl2_record {
    uint64_t bytes; /* of the image; until that is made, of the output that is there */
    uint32_t width, height;
    uint32_t depth;                       /* of a volume; 0 of an image */
    uint32_t source_width, source_height; /* upright */
    uint32_t frames;                      /* of a video; 0: it is an image */
    float encode_cpu, decode_cpu;         /* seconds */
    /* What the variant holds beside the image: extensions with slashes between them, a string to
     * free; NULL: nothing. */
    char *sidecars;
    struct dl2_target_result found; /* of a variant with a target */
    struct dl2_reduction reduction; /* its name is a string to free, too */
    double quantization_error;      /* the largest of its voxels, if the volume was... */
    bool quantized;
    uint8_t channels;
    uint8_t state;       /* enum dl2_record_state */
    uint8_t pixels_only; /* enum dl2_pixels_only: of a source file that it was to keep whole */
    bool copied;         /* it is the source's file, unchanged */
    bool has_output;     /* there is a file, good or not, from before this run */
    bool has_line;       /* an earlier run has said that it made it, of whatever source */
    bool unread; /* it failed for no fault of the source's bytes: the next run tries again */
};

/* Frees its strings. */
void dl2_record_free(struct dl2_record *record);

struct dl2_variant {
    const struct dl2_transcode_options *options;
    const struct dl2_codec *codec;
    struct dl2_encode_options encode;
    struct dl2_resolution resolution;
    struct dl2_quality_target target;
    const char *extension;     /* of its files: the codec's, or that of volumes */
    const char *container;     /* "folder": a tree */
    bool packed;               /* it is another */
    bool on_server;            /* it is packed into a table or an object store, by its writer */
    struct dl2_writer *writer; /* of a packed variant that is being made */
    bool kept;                 /* it is packed, and there as it should be */
    char *name;                /* "jpeg-05", "jpeg-70@320" */
    char *root;                /* DEST/name; the address of a table or in a store */
    char *waiting;    /* of a variant on a server: the folder of its parts' images, or NULL */
    json_t *about;    /* codec, quality, options, encoder, libraries: what images depend on */
    json_t *decoding; /* what failures depend on beside these and the sources */
    json_t *old;      /* the dl2-variant.json that was found, or NULL */
    const struct dl2_source_items *items; /* once loaded */
    struct dl2_record *records;           /* one an item */
    char **errors;                        /* why an item failed, or NULL */
    /* Files below root that earlier runs have put beside images, NULL-ended or NULL. */
    char **old_sidecars;
    size_t old_sidecars_count;
    /* All files that lay beside images before this run; of a folder; NULL-ended or NULL. */
    char **beside;
    size_t beside_count;
    size_t lines;                 /* of images, that earlier runs have left */
    bool knows_all;               /* they name all files that these have written */
    struct dl2_left_out left_out; /* of a folder, in this run; under `mutex` */
    char **strays; /* files below root that no item accounts for; NULL-ended or NULL */
    size_t stray_count;
    bool same_options; /* the files that were found were made by these options */
    bool begun;        /* something has been written in this run */
    /* The caller sets these three before dl2_variant_load(). */
    struct dl2_work_part part; /* that this run makes */
    bool joins;                /* other parts are at work, so what is there stays */
    bool follows;              /* images that failed in parts have failed */
    struct dl2_staging staging;
    struct dl2_staged_image
        *staged; /* [items] of those that are DL2_RECORD_STAGED; NULL: none is */
    pthread_mutex_t mutex;
    FILE *journal;
    double flushed;                   /* when the journal was last written out, dl2_clock_wall() */
    size_t made;                      /* images written in this run */
    struct dl2_variant_totals totals; /* after dl2_variant_finish() or dl2_variant_end_part() */
    json_t *losses;                   /* sums of reductions, likewise */
    json_t *class_files;              /* every classes.txt of the source, below root; or NULL */
};

/* "jpeg-05", "jpeg_444-70@320", "png": a string to free, or NULL. */
char *dl2_variant_name(const struct dl2_transcode_target *target);

/* Names the variant, of images or of volumes, and what it depends on; touches no file. `options`
 * must outlive it. */
int dl2_variant_init(struct dl2_variant *variant, const struct dl2_transcode_options *options,
                     const struct dl2_transcode_target *target, bool volumes,
                     struct dl2_error *error);

/* Looks at the files and marks the records whose items need no work; with `force`, none. The items
 * must outlive the variant. Functions below have the number of one of them. */
int dl2_variant_load(struct dl2_variant *variant, const struct dl2_source_items *items, bool force,
                     struct dl2_error *error);

/* Why what is there is made again as a whole; NULL: it is not, or nothing complete is there. */
const char *dl2_variant_why_again(const struct dl2_variant *variant);
/* Seconds that earlier runs by these options took, if the last of them ended by its time limit. */
double dl2_variant_time_spent(const struct dl2_variant *variant);

/* "ROOT/KEY.EXT", a string to free; NULL: no memory. */
char *dl2_variant_path(const struct dl2_variant *variant, size_t index, struct dl2_error *error);

/* To be called before a file below root changes; does something once. */
int dl2_variant_begin(struct dl2_variant *variant, struct dl2_error *error);

/* Reads an image that waits to be packed. */
int dl2_variant_read_staged(struct dl2_variant *variant, size_t index, struct dl2_bytes *out,
                            struct dl2_error *error);

/* Puts an image and what lies beside it into a packed variant, after dl2_variant_begin(), in the
 * source's order; in a part, notes it there. `record` is what dl2_variant_add() gets next. */
int dl2_variant_pack(struct dl2_variant *variant, size_t index, const struct dl2_bytes *file,
                     const struct dl2_sidecars *sidecars, const struct dl2_record *record,
                     struct dl2_error *error);

/* DL2_ERR_ARGUMENT if a file would be overwritten that lies beside the image and that no run has
 * written: the image fails, and the variant's other ones are made. */
int dl2_variant_check_sidecars(const struct dl2_variant *variant, size_t index,
                               const struct dl2_sidecars *sidecars, struct dl2_error *error);

/* Writes what lies beside an image into a variant that is a folder, after dl2_variant_begin(), and
 * notes in the record what that could hold. On any thread. */
int dl2_variant_put_sidecars(struct dl2_variant *variant, size_t index,
                             const struct dl2_sidecars *sidecars, struct dl2_record *record,
                             struct dl2_error *error);

/* Says what could not be held beside images in this run: a string to free, or NULL if nothing. */
char *dl2_variant_left_out(const struct dl2_variant *variant);

/* An image is in its place, and so is what lies beside it. Takes over the strings of the record. */
int dl2_variant_add(struct dl2_variant *variant, size_t index, const struct dl2_record *record,
                    struct dl2_error *error);

/* Records that an image cannot be made. Takes over `message` (a string to free) and removes the
 * file that an earlier run made. */
int dl2_variant_fail(struct dl2_variant *variant, size_t index, char *message,
                     struct dl2_error *error);

/* Removes the strays that have the codec's extension, and those beside them; returns how many
 * through *removed. */
int dl2_variant_prune(struct dl2_variant *variant, size_t *removed, struct dl2_error *error);

/* Ends a part: sums up what it knows, and closes what it has written. */
int dl2_variant_end_part(struct dl2_variant *variant, struct dl2_error *error);
/* Ends a run that has taken `seconds`, its time limit, with images missing: its summary says so. A
 * variant that an earlier run has completed stays as it is. */
int dl2_variant_end_late(struct dl2_variant *variant, double seconds, struct dl2_error *error);

/* Sums up; writes both files unless they are there and say the same. */
int dl2_variant_finish(struct dl2_variant *variant, struct dl2_error *error);

void dl2_variant_free(struct dl2_variant *variant);

#endif
