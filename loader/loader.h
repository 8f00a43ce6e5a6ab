/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The input pipeline: decodes, crops, resizes and flips the samples of a dataset, in batches.
 *
 * The order of an epoch depends on (seed, epoch) alone, and a sample's random numbers on (seed,
 * epoch, index). So in strict order, batches are the same bytes for any number of workers. Batches
 * lie in a fixed ring of slots that is allocated once. After the first batches, reading and
 * decoding a JPEG allocates nothing.
 *
 * Training: a crop whose area is uniform in [area_min, area_max] of the image, and the logarithm of
 * whose aspect is uniform in [log aspect_min, log aspect_max]; after ten crops that don't fit, the
 * central crop (Inception's rule, as in torchvision); an antialiased resize, bilinear unless
 * config.interpolation says otherwise; a flip with probability 1/2. Validation: the same resize of
 * the shorter side to `resize`, and the central crop of height x width; or of the whole image to
 * height x width (config.val_crop). Outputs need not be square: crops have the same aspects then.
 * An augmentation (config.augment) follows the flip, with random numbers of the same sample. Only
 * the part of an image that the crop needs is decoded, at the lowest resolution that suffices; with
 * DL2_NEAREST, at the full one.
 *
 * Before all that, images are turned upright by their EXIF orientation, and images with an alpha
 * channel are laid on white.
 *
 * A sample that can't be read or decoded is counted and named once. In training, the next good
 * sample in the epoch's order takes its place, with random numbers keyed by its own index. In
 * validation, the place is zero and its label is -1. With stop_on_bad, the epoch ends with the
 * error instead, after the batches before it. It is an error if too many samples are bad
 * (config.max_bad), or if no sample can be read: in training at once, for the samples of this rank;
 * in validation at the epoch's end, for the whole dataset.
 *
 * Memory is bounded by the sum of `depth` batches; for each worker, what it takes to decode and
 * resize one image of max_pixels; about 10 bytes for each sample of the dataset; and the limits of
 * read-ahead and caches. See dl2_loader_stats.memory.
 *
 * Threads: one consumer thread calls all functions, except dl2_loader_release() and
 * dl2_loader_get_stats(), which any thread may call. The loader starts its worker threads itself.
 *
 * This header is installed with libdl2.so and the headers that it includes (pkg-config: dl2). Any
 * release may add members to the structs that callers fill in or read. Then the library's number
 * (libdl2.so.N) rises, so that a program runs only with the library that it was compiled for. Begin
 * from DL2_LOADER_DEFAULTS (C, C++20): defaults of new members keep the previous behavior.
 */
#ifndef DL2_LOADER_LOADER_H
#define DL2_LOADER_LOADER_H

#include "loader/loader_config.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dl2_loader;

/*
 * Starts the workers. The dataset stays the caller's and must outlive the loader. DL2_ERR_ARGUMENT
 * for a configuration that makes no sense, such as drop_last with fewer samples than a batch, and
 * for settings that would have no effect: `resize` and `val_crop` in training, a mean with
 * DL2_UINT8, limits of read-ahead with DL2_IO_DIRECT.
 */
int dl2_loader_create(const struct dl2_dataset *dataset, const struct dl2_loader_config *config,
                      struct dl2_loader **out, struct dl2_error *error);

/* config.augment with every setting of every operation, valid until destroy: equal if the
 * augmentations are. NULL: none. */
const char *dl2_loader_augment(const struct dl2_loader *loader);

/* config.targets, valid until destroy. */
const char *dl2_loader_targets(const struct dl2_loader *loader);

/* Samples that the file of config.boxes does not have, and images of it that are no samples: a line
 * that counts them and names the first; or what is wrong with data.yaml or classes.txt. NULL:
 * nothing. Valid until destroy. */
const char *dl2_loader_boxes_warning(const struct dl2_loader *loader);

/* The datasets of which config.shares asks more samples an epoch than they have, and how often
 * these come: a line. NULL: there are none. Valid until destroy. */
const char *dl2_loader_shares_note(const struct dl2_loader *loader);

/* Class `number` of config.boxes, a category of COCO or a name of label files' classes, in the
 * order of their labels; false after the last. *name is valid until destroy, and "" for a category
 * without one. */
bool dl2_loader_box_class(const struct dl2_loader *loader, size_t number, int64_t *label,
                          const char **name);

/* Samples that an epoch of such a configuration has, of all ranks together, from a dataset (or a
 * partition) of so many; without those that drop_last leaves out. */
uint64_t dl2_loader_epoch_samples(const struct dl2_loader_config *config, uint64_t samples);

/* The number of batches in an epoch. */
uint64_t dl2_loader_steps(const struct dl2_loader *loader);

/*
 * Begins an epoch at a step and drops what is left of the previous one. A first_step above 0 leaves
 * out the first first_step * batch samples of the epoch's order. That resumes a run exactly in
 * strict order; in the other orders use dl2_loader_resume(). At step dl2_loader_steps() the epoch
 * is over at once; a step beyond it is DL2_ERR_ARGUMENT.
 */
int dl2_loader_start_epoch(struct dl2_loader *loader, uint64_t epoch, uint64_t first_step,
                           struct dl2_error *error);

/* The first call reads the keys of all samples. */
void dl2_loader_get_order(struct dl2_loader *loader, struct dl2_loader_order *order);

/* `missing` points at memory of the loader's that is valid until the next call of this function. */
int dl2_loader_get_position(struct dl2_loader *loader, struct dl2_loader_position *position,
                            struct dl2_error *error);

/*
 * Continues an epoch: exactly the samples come that dl2_loader_next() had not returned. A loader
 * with another batching may continue an epoch if the order is the same. DL2_ERR_ARGUMENT for a
 * position that the loader can't have, and if position->order differs from the loader's; the error
 * names the first difference.
 */
int dl2_loader_resume(struct dl2_loader *loader, const struct dl2_loader_position *position,
                      struct dl2_error *error);

/*
 * Returns 1 and the next batch, which is the caller's until dl2_loader_release() or destroy; 0 at
 * the epoch's end and after it; otherwise an error. DL2_ERR_ARGUMENT if all `depth` batches are
 * taken, unless config.wait_for_release. With stop_on_bad, the error of the first bad sample; the
 * epoch is over then.
 */
int dl2_loader_next(struct dl2_loader *loader, struct dl2_batch **out, struct dl2_error *error);

/*
 * Waits at most `seconds` until dl2_loader_next() would not block, whatever it would return.
 * Returns 1 if it would not block now, 0 if it would. For callers that also handle signals or other
 * events.
 */
int dl2_loader_wait(struct dl2_loader *loader, double seconds);

/*
 * Gives a batch back, so that its slot can be filled again. Batches may be given back in any order,
 * on any thread, and in a later epoch; until then there is one slot less to fill.
 */
void dl2_loader_release(struct dl2_loader *loader, struct dl2_batch *batch);

void dl2_loader_get_stats(const struct dl2_loader *loader, struct dl2_loader_stats *stats);
void dl2_loader_stats_reset(struct dl2_loader *loader);

/* What the stats count of files that samples do not show as they are. */
struct dl2_unusual {
    const char *name;  /* of the member of struct dl2_loader_stats, a uint64_t: "interlaced" */
    const char *title; /* "interlaced videos" */
    const char *text;  /* "videos are interlaced, which stays so: ..." */
    size_t offset;     /* of the member */
};
enum { DL2_UNUSUAL = 8 }; /* rows */
/* The rows, which end with one of NULLs. */
const struct dl2_unusual *dl2_unusual_rows(void);
uint64_t dl2_unusual_count(const struct dl2_loader_stats *stats, const struct dl2_unusual *row);

/*
 * The bad samples so far, each once, in the dataset's order, as `count` strings "path: stage:
 * reason". The strings are valid until destroy, the array until the next call.
 */
const char *const *dl2_loader_bad(const struct dl2_loader *loader, size_t *count);

/* Samples of the epoch so far, and those of them that were bad: in each epoch again. */
void dl2_loader_epoch_bad(const struct dl2_loader *loader, uint64_t *samples, uint64_t *bad);

/*
 * DL2_ERR_FORMAT if so many bad ones of so many samples are more than config.max_bad allows; the
 * message says what to do. `first` is one of dl2_loader_bad().
 */
int dl2_loader_check_bad(double max_bad, uint64_t bad, uint64_t samples, const char *first,
                         struct dl2_error *error);

void dl2_loader_destroy(struct dl2_loader *loader);

/*
 * Decodes a whole image as samples have it before crop and resize: upright, RGB of 8 bits, on
 * white. `image` is a number of dl2_dataset_image(); of the configuration max_pixels, external and
 * drop_bands count. `pixels` becomes *height rows of *width pixels. What they do not show of the
 * file is added to `stats` (dl2_unusual_rows()). Any number of threads at once. Errors as of
 * dl2_loader_bad(): "path: decode: reason"; DL2_ERR_UNSUPPORTED of videos and volumes.
 */
int dl2_loader_decode(const struct dl2_dataset *dataset, size_t image,
                      const struct dl2_loader_config *config, struct dl2_bytes *pixels,
                      uint32_t *width, uint32_t *height, struct dl2_loader_stats *stats,
                      struct dl2_error *error);

/*
 * Evicts the files of a dataset from the page cache, without root, so that the next reads come from
 * the disk. *resident is the fraction of their pages, 0 to 1, that is in the page cache afterwards,
 * by mincore(): pages that another process maps or locks stay, and for files that the caller
 * neither owns nor may write, the kernel doesn't tell, and all pages count as resident.
 * DL2_ERR_UNSUPPORTED if the dataset lies in memory as a whole (IDX).
 */
int dl2_fetch_evict(const struct dl2_dataset *dataset, double *resident, struct dl2_error *error);

#ifdef __cplusplus
}
#endif

#endif
