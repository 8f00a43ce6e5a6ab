/* SPDX-License-Identifier: BSD-2-Clause */
/* What a loader is told, and what it hands out (loader/loader.h). */
#ifndef DL2_LOADER_LOADER_CONFIG_H
#define DL2_LOADER_LOADER_CONFIG_H

#include "codec/external_decoders.h"
#include "common/error.h"
#include "common/random.h"
#include "dataset/dataset.h"
#include "pixels/pixel_format.h"
#include "volumes/volume.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dl2_batch_decoder; /* loader/batch_decoder.h */
struct dl2_decoded_cache; /* loader/decoded.h */

/*
 * Which finished samples make a batch. In both, each index comes once an epoch, with the same
 * pixels. In the second, the batch that it is in depends on timing.
 */
enum dl2_batching {
    /* The epoch's order; a batch waits for its slowest sample. */
    DL2_BATCHING_STRICT,
    /* The samples that are finished first: slow ones join a later batch (MinatoLoader's
     * sample-aware batching, without its threshold, which gained nothing). */
    DL2_BATCHING_COMPLETION
};

/* How encoded bytes are read. */
enum dl2_io {
    /* Workers read for themselves while that is fast; else as DL2_IO_URING, or DL2_IO_THREADS where
     * io_uring is not available. From a server: many requests ahead of the workers. */
    DL2_IO_AUTO,
    DL2_IO_DIRECT,  /* each worker reads what it needs when it needs it */
    DL2_IO_THREADS, /* threads read ahead of the workers */
    DL2_IO_URING,   /* one thread reads ahead by io_uring; DL2_ERR_UNSUPPORTED if it can't */
};

struct dl2_fetch_config {
    enum dl2_io io;
    unsigned ahead;       /* samples that are read ahead at most; 0: 256 */
    uint64_t ahead_bytes; /* bytes that are read ahead at most; 0: 64 MiB, from a server 256 MiB */
    uint64_t cache_bytes; /* limit of the cache of encoded bytes; 0: no cache */
    bool drop_behind;     /* evict what was read from the page cache: each epoch reads from disk */
    bool whole;           /* read samples whole where parts would do, to see what that costs */
};

/* What validation shows of an image. */
enum dl2_val_crop {
    DL2_VAL_CENTER, /* the middle, after a resize that keeps the aspect */
    DL2_VAL_SQUASH  /* all of it, whatever its aspect */
};

/* Which frames of a clip are loaded. */
enum dl2_frame_sampling {
    DL2_FRAMES_AUTO,   /* random in training, the center in validation */
    DL2_FRAMES_RANDOM, /* frame_step apart, from a random frame on; in training alone */
    DL2_FRAMES_CENTER, /* the same in the middle of the clip */
    DL2_FRAMES_UNIFORM /* the middle frames of as many equal parts of the clip */
};

#define DL2_MAX_FRAMES 1024

/* How the values of volumes are normalized. */
enum dl2_normalization {
    DL2_NORMALIZATION_ZSCORE,
    DL2_NORMALIZATION_WINDOW,
    DL2_NORMALIZATION_NONE
};

/* What a patch with foreground shows of it. */
enum dl2_foreground_rule {
    DL2_FOREGROUND_VOXEL,    /* a random voxel */
    DL2_FOREGROUND_COMPONENT /* a random component of a random class */
};

enum { DL2_FOREGROUND_VOXELS = 1024, DL2_AUGMENT_TIMED = 16 };

/*
 * An augmentation of the caller's: one more operation on each sample, after the resize and
 * config.augment, before the sample enters its batch. It works in place on uint8 NHWC pixels.
 * Workers run it in parallel. `random` continues the sample's random numbers. If it returns a
 * negative number, the sample is bad for the reason in `error`; with stop_on_bad the epoch ends
 * with DL2_ERR_FORMAT.
 */
struct dl2_operation {
    const char *name;
    int (*run)(void *context, uint32_t index, struct dl2_random *random, uint8_t *pixels,
               unsigned width, unsigned height, unsigned channels, struct dl2_error *error);
    void *context;
};

#define DL2_PARTITIONS_MAX 4096

/* A number above 0 for each of some joined datasets, in their order. */
struct dl2_dataset_shares {
    unsigned count; /* 0: none */
    double of[DL2_DATASETS_MAX];
};

struct dl2_loader_config {
    unsigned batch;         /* samples in a batch */
    unsigned height, width; /* of the output, pixels; width 0: as the height */
    /*
     * The depth of the output for a dataset of volumes, in voxels; 0 where samples are not volumes.
     * The output of depth x height x width, a patch, is cut out of the volume without resizing: at
     * random in training, else the middle. A volume that is smaller is in the middle of its patch,
     * among zeros. A batch has [count][depth][height][width][channels] then, or with DL2_NCHW
     * [count][channels][depth][height][width], of a type of floats. See also `normalization`,
     * `foreground`, `augment` and `mask`. Not with what concerns images alone, read-ahead, caches,
     * a decoder, or operations of the caller.
     */
    unsigned volume_depth;
    unsigned channels; /* 1 or 3; of volumes what they have, dl2_volume_info() */
    /* Validation resizes an image until it covers the output, enlarged so that its shorter side is
     * `resize` pixels, and cuts the output from the middle. 0: 256 / 224 of the output's shorter
     * side, rounded. */
    unsigned resize;
    enum dl2_val_crop val_crop;
    /*
     * The frames of each clip that are loaded, for a dataset of clips or videos, up to
     * DL2_MAX_FRAMES, and how they are chosen; 0 where samples are images. A batch has
     * [count][frames][height][width][channels] then, or with DL2_NCHW
     * [count][channels][frames][height][width]. All frames of a clip have the same crop, flip and
     * random numbers, and must be of one size. Where a clip is too short, its last frame comes
     * again (with DL2_FRAMES_UNIFORM, any may). Not with masks, a decoder, or caches of decoded
     * images.
     */
    unsigned frames;
    unsigned frame_step; /* from one frame to the next that is loaded; 0: 1 */
    enum dl2_frame_sampling frame_sampling;
    /*
     * In validation: the clips of each video, each of `frames` frames, up to DL2_MAX_FRAMES frames
     * in all; a sample has their frames one clip after the other. Of n possible first frames, clip
     * i of N begins at floor((2 i + 1) n / (2 N)), the middle of its equal part of them, as in TSN
     * and MMAction2; so clips overlap in a video that is shorter than all of them, and some are
     * the same where n is below N. 0 or 1: one clip, as frame_sampling says. Not with
     * DL2_FRAMES_UNIFORM, which shows all of a video.
     */
    unsigned val_clips;
    /*
     * What becomes of the values of each channel of volumes, before augmentation: by
     * DL2_NORMALIZATION_ZSCORE the patch has the mean 0 and the deviation 1 (of a constant patch,
     * 0); by _WINDOW values from window_min to window_max become 0 to 1, and others the nearer of
     * these; by _NONE nothing.
     */
    enum dl2_normalization normalization;
    double window_min, window_max;
    /*
     * The probability that a training patch of volumes with `mask` is one that shows a voxel
     * whose label is above 0 and not mask_fill. Such a voxel is drawn, then where in the patch it
     * is. Up to DL2_FOREGROUND_VOXELS of a volume, evenly taken, are kept in memory from the first
     * time on that one is drawn. Of a volume without such a voxel the patch is drawn as any.
     */
    double foreground;
    /*
     * By DL2_FOREGROUND_COMPONENT a class is drawn from those that the volume has, then one of its
     * components, voxels that are joined by faces (loader/components.h): classes and components
     * are equally probable, whatever their size, as in MLPerf's unet3d. Along an axis on which the
     * component's bounding box is no longer than the patch, where the patch begins is drawn from
     * all places that show the whole box, and moved into the volume; on others, from those within
     * the box.
     */
    enum dl2_foreground_rule foreground_rule;
    bool train;     /* shuffle and augment; else in order, resize and central crop */
    bool drop_last; /* leave out an epoch's last batch if it is not full */
    double area_min, area_max, aspect_min, aspect_max;
    bool flip;
    /*
     * Operations on training images, such as "randaugment:n=2:m=9,erase:p=0.25": names with commas,
     * each with settings after colons. `dl2-train --list augmentations` prints them with their
     * settings and defaults. NAME@FILE is an operation of a shared object of the user's
     * (pixels/operation_plugin.h); an image that it fails on is bad. NULL: none. Copied.
     */
    const char *augment;
    /*
     * What samples have beside their images, to come with them: extensions with commas, such as
     * "json,txt". See dl2_dataset_read_sidecar(). NULL: nothing. Copied.
     */
    const char *targets;
    /*
     * Masks beside the images, to come with them (dl2_batch.masks): their extension, such as "png"
     * or "mask.png", as in `targets`. A mask is of its image's size, gray of 8 bits or a PNG with a
     * palette, whose numbers count. Masks of volumes, "mask.npy", are volumes of one channel with
     * whole numbers from 0 to 255. A sample without a mask is bad. NULL: none. Copied.
     */
    const char *mask;
    /* 0 to 255: a mask where an augmentation shows what is outside the image, and around a volume
     * that is smaller than its patch */
    unsigned mask_fill;
    /*
     * Boxes of the images' objects, to come with them (dl2_batch.boxes): a file in COCO's JSON,
     * whose name ends in ".json" and whose file_names fit the samples' keys; or the extension of
     * label files beside the images, such as "txt", with YOLO's lines "class x y width height"; or
     * their "data.yaml" or "classes.txt", which are also looked for (docs/formats/datasets.md): a
     * class that they do not name makes a sample bad. A sample without its label file has no boxes,
     * and is counted
     * (dl2_loader_stats); if all are, the loader is refused. An image whose aspect the JSON has
     * otherwise is bad; where its size is another one, boxes are scaled. `augment` must leave
     * pixels where they are then, and so must operations of the caller. NULL: none. Copied.
     */
    const char *boxes;
    /* The share of a box's area that the sample must show, 0 to 1; 0: any. Else it is dropped. */
    double min_visibility;
    /* Also masks of the objects, from polygons or run lengths in COCO's JSON. */
    bool instance_masks;
    uint64_t seed;
    unsigned workers; /* 0: dl2_cpu_count() */
    unsigned depth;   /* batch slots in the ring, at least 2 */
    /*
     * Another thread releases batches: if all `depth` are taken, dl2_loader_next() waits for one.
     * Without this it returns DL2_ERR_ARGUMENT, since a single thread would wait for ever.
     */
    bool wait_for_release;
    uint64_t max_pixels; /* largest image decoded; 0: 2^27 */
    /* Commands that decode the files of external codecs. A file of one that none is named for is
     * bad. Copied. */
    struct dl2_external_decoders external;
    /* Load gray or RGB of images with more bands than these and alpha; else they are bad. */
    bool drop_bands;
    bool stop_on_bad;
    /*
     * The epoch ends with an error once more than this share of the dataset's (the partition's)
     * samples are bad, 0 to 1; fewer than 100 samples count as 100. 1: never. Of a dataset that
     * several ranks share each knows its own bad samples alone.
     */
    double max_bad;
    /* Allocates batch memory, such as pinned memory of a device; NULL: aligned heap memory. */
    void *(*slot_alloc)(void *context, size_t bytes);
    void (*slot_free)(void *context, void *slot);
    void *slot_context;

    /* The output. Mean and std are per channel, of values from 0 to 1, for float types; with
     * DL2_UINT8 they stay 0 and 1. Std is above 0. A mean above 1, or a std above 1 and up to 255,
     * is refused: it is of values from 0 to 255. */
    enum dl2_dtype dtype;
    enum dl2_layout layout;
    float mean[3], std[3];
    enum dl2_interpolation interpolation; /* of the resize, in training and validation */

    /*
     * Ranks share an epoch without overlap, and all have the same number of steps. In training all
     * ranks have equally many samples: count mod world samples, others in each epoch, are left out.
     * In validation each sample is on exactly one rank, so the last batch of some ranks may be
     * empty (count 0).
     */
    unsigned rank, world; /* world 0: 1 */
    /*
     * Only the samples of partition 0 <= partition < partitions; partitions 0: all. Partitions
     * depend on the number of samples alone, and their sizes differ by one at most; but if a table
     * of a database has just so many partitions, they are these.
     */
    unsigned partition, partitions;
    /*
     * shuffle_chunk 0: a uniform shuffle of all samples. Else a quasi-random order for spinning
     * disks: runs of shuffle_chunk neighbors in random order, shuffled among shuffle_window runs
     * at a time (0: 1). In training only.
     */
    unsigned shuffle_chunk, shuffle_window;
    /*
     * Which samples an epoch has, in training. `weights`: one for each sample of the dataset, at
     * least 0, copied: samples are drawn with replacement, each with a probability in proportion
     * to its weight (torch's WeightedRandomSampler). `weights_file`: the same with weights from a
     * file of lines KEY WEIGHT (loader/sample_weights.h), which is read when the loader is created;
     * only one of both may be set. `balanced`: the same with weights that make
     * all classes equally frequent. `repeats`: each sample comes so many times in a row, with other
     * random numbers each time; in a global batch neighbors are on different ranks (RASampler of
     * torchvision's references); 0: 1. `draws`: the epoch's length in samples of all ranks; 0: as
     * many as the dataset (or the partition) has, times repeats. Without weights an epoch of fewer
     * draws is the beginning of the longer one. `shares`: of joined datasets (dl2_dataset_join()),
     * the part of an epoch's samples that is of each, in proportion to the others, exact but for
     * whole samples (by the largest remainders). Epochs walk round the samples of a dataset in a
     * random order that stays: none comes again before all others have come, within an epoch and
     * from one to the next. dl2_loader_shares_note() says which have to come more than once an
     * epoch. Excludes weights, repeats and shuffle_chunk.
     */
    const double *weights;
    const char *weights_file;
    bool balanced;
    unsigned repeats, draws;
    struct dl2_dataset_shares shares;

    enum dl2_batching batching;
    const struct dl2_operation *operations; /* copied, but the contexts stay the caller's */
    unsigned operation_count;

    /* Storage: how encoded bytes are read and cached, and the limit of the cache of decoded images
     * (0: no cache). A cache fills up to its limit and then keeps what it has. No cache changes the
     * pixels. */
    struct dl2_fetch_config fetch;
    uint64_t decoded_cache_bytes;
    /* The limit of the memory for volumes of .nii.gz that are kept decompressed, with their labels;
     * 0: none, each is decompressed up to the end of each of its patches. It fills up to its limit
     * and then keeps what it has. None are kept with fetch.drop_behind. */
    uint64_t volume_cache_bytes;
    /* Instead, a cache of decoded images that loaders of this dataset share; NULL: none. It must
     * outlive the loader. */
    struct dl2_decoded_cache *decoded_cache;

    /*
     * A graphics card's decoder, which decodes and resizes the images that it can; NULL: the
     * processors do everything. dl2_batch.images is the decoder's memory then. Only with uint8,
     * NHWC, square outputs, the bilinear filter, no clips, no masks, no boxes, no augmentation, no
     * operations and no cache of decoded images. It must outlive the loader.
     */
    struct dl2_batch_decoder *decoder;
    /*
     * Processors and decoder share the images by their speeds. Which of them decodes an image, and
     * so the last bit of its gray levels, depends on timing then.
     */
    bool decoder_shares;
    /* Give the decoder only the segments under the crop, for JPEGs with restart intervals. */
    bool decoder_splices;
};

/* The width of the output. */
static inline unsigned dl2_loader_width(const struct dl2_loader_config *config)
{
    return config->width ? config->width : config->height;
}

/* The clips of a sample, at least 1. */
static inline unsigned dl2_loader_clips(const struct dl2_loader_config *config)
{
    return config->train || !config->val_clips ? 1 : config->val_clips;
}

/* The images that a sample is made of. */
static inline unsigned dl2_loader_frames(const struct dl2_loader_config *config)
{
    return config->frames ? config->frames * dl2_loader_clips(config) : 1;
}

/* The planes that a sample has: a volume's depth, its clips' frames, or 1. */
static inline unsigned dl2_loader_planes(const struct dl2_loader_config *config)
{
    return config->volume_depth ? config->volume_depth : dl2_loader_frames(config);
}

static inline unsigned dl2_loader_shorter_side(const struct dl2_loader_config *config)
{
    const unsigned width = dl2_loader_width(config);
    return width < config->height ? width : config->height;
}

#define DL2_LOADER_DEFAULTS                                                                        \
    {                                                                                              \
        .batch = 64, .height = 64, .channels = 3, .train = true, .area_min = 0.08,                 \
        .area_max = 1.0, .aspect_min = 3.0 / 4, .aspect_max = 4.0 / 3, .flip = true, .depth = 3,   \
        .max_bad = 0.1, .std = {1, 1, 1}, .volume_cache_bytes = 1 << 30,                           \
    }

/* What a sample has beside its image; data NULL: it has none. */
struct dl2_target {
    const uint8_t *data;
    size_t size;
};

/*
 * What a sample shows of its image, in pixels of the upright image, and is then resized to the
 * output: for boxes and masks to follow. In validation it may have fractions.
 */
struct dl2_crop_box {
    double left, top, right, bottom;
    bool flipped; /* left and right are exchanged afterwards */
};

/*
 * The objects that a sample shows, in the order of the file; a box with nothing left of it, or less
 * than config.min_visibility, is dropped.
 */
struct dl2_boxes {
    unsigned count, dropped;
    /* [count] left, top, right, bottom: pixels of the sample, from its upper left corner on, 0 to
     * its width and height; left < right and top < bottom */
    const float (*boxes)[4];
    const int64_t *labels;  /* [count] COCO's category ids as in the file (in COCO itself 1 to 90
                               with  gaps); of YOLO the class's number, from 0 */
    const int64_t *iscrowd; /* [count] 1: a crowd of objects; else 0 */
    const float *areas;     /* [count] of the whole object, in pixels of the file's image */
    /* [count][height][width] of the sample, 1 where the object is, else 0, by nearest neighbors of
     * what pycocotools draws at the file's size. NULL: without config.instance_masks, and where
     * count is 0 */
    const uint8_t *masks;
    /* COCO's number in the file, -1 for a sample that is not in it; with YOLO the sample's number.
     * -1 for one that can't be read. */
    int64_t image_id;
};

/* What a sample shows of its volume, before augmentation. Axes are depth, height, width. */
struct dl2_patch {
    int32_t first[3]; /* voxel of the volume; below 0 where the volume is smaller than the patch */
    uint32_t size[3]; /* of the volume, voxels */
    float spacing[3]; /* of its voxels, as its file has it; 0: the file has none */
};

struct dl2_batch {
    /* [count][height][width][channels], or with DL2_NCHW [count][channels][height][width], or of
     * clips as config.frames says; bytes, or floats in the machine's byte order */
    uint8_t *images;
    int32_t *labels;      /* [count]; -1: not to be counted */
    uint32_t *indices;    /* [count] sample numbers in the dataset */
    unsigned count;       /* fewer than `batch` at the epoch's end, even 0 in a rank's last step */
    uint64_t epoch, step; /* step within the epoch */
    /* [count][target_count] in the order of config.targets; all NULL where the label is -1 for a
     * sample that can't be read */
    const struct dl2_target *targets;
    unsigned target_count;
    /* [count]; all 0 for a sample that can't be read, and of volumes */
    const struct dl2_crop_box *crop_boxes;
    /* [count]; of volumes, else NULL; all 0 for a sample that can't be read */
    const struct dl2_patch *patches;
    /* [count][height][width], of volumes [count][depth][height][width]; config.mask_fill for a
     * sample that can't be read. NULL: no masks. Nearest neighbors, cropped, flipped and moved by
     * config.augment as the image is; what changes colors or erases leaves a mask as it is, and so
     * do the caller's operations. */
    uint8_t *masks;
    /* [count]; NULL: without config.boxes. What they point at is the batch's. */
    const struct dl2_boxes *boxes;
};

/* Figures since the last dl2_loader_stats_reset(), except `memory`. Times are wall seconds. */
struct dl2_loader_stats {
    /* The workers' time by stage, summed over workers; the rest of their time they waited. */
    double read, decode, transform;
    double operations;       /* time in the augmentation and all of the caller's operations */
    double finish;           /* time in config.decoder, summed over its batches */
    uint64_t decoder_images; /* images that were given to it, refused ones too */
    double worker_wait;      /* workers that waited for a free place in a batch, summed */
    double consumer_wait;    /* dl2_loader_next() waiting for a batch */
    uint64_t images, bytes;  /* good samples; encoded bytes taken, of bad samples too */
    uint64_t frames;         /* of clips, as loaded, repeated ones too; 0: of images */
    uint64_t short_clips;    /* clips with fewer frames than were asked for */
    /* Of several val_clips: videos whose clips have frames in common; those with equal clips. */
    uint64_t overlapping_clips, equal_clips;
    /* Videos whose pixels are not square, that are HDR or of a wide gamut, or interlaced: their
     * frames stay so. */
    uint64_t oblong, wide_color, interlaced;
    /* Images of more than 8 bits a sample, loaded at 8; those of 16 whose values all lie in the
     * lowest sixteenth of the range; with further frames or pages, which are not loaded; and with
     * further bands (config.drop_bands). Images that come from a cache of decoded ones have been
     * counted before. */
    uint64_t above_8_bits, nearly_black, several_frames, dropped_bands;
    uint64_t no_label_file; /* images without one, each time they come: they have no boxes */
    /* Time in each operation of config.augment on volumes, in their order; the last has that of
     * all that follow, too. */
    double augment[DL2_AUGMENT_TIMED];
    uint64_t padded;        /* volumes that were smaller than the patch */
    uint64_t no_foreground; /* volumes that were to show some and have none */
    uint64_t decompressed;  /* volumes and labels of .nii.gz that no cache keeps, each time */
    uint64_t boxes, boxes_dropped; /* of the samples that came; see struct dl2_boxes */
    uint64_t bad;                  /* samples found to be bad */
    uint64_t batches;              /* batches that dl2_loader_next() returned */
    uint64_t bytes_read, requests; /* bytes read from the dataset, and the number of reads */
    uint64_t encoded_hits;         /* samples whose encoded bytes were in the cache */
    uint64_t decoded_hits;         /* samples whose decoded image was in the cache */
    uint64_t memory; /* most bytes held so far: slots, buffers, decoders, caches, order */
};

/* What decides the order of epochs. A position is valid for one such order. */
struct dl2_loader_order {
    uint64_t seed;    /* in training; else 0 */
    uint64_t dataset; /* a hash of its samples' keys */
    uint32_t samples; /* in the dataset */
    uint32_t batch, rank, world, shuffle_chunk, shuffle_window;
    uint64_t weights; /* a hash; 0: none */
    uint32_t repeats, draws;
    bool train, drop_last, balanced;
    uint64_t shares; /* a hash of how many samples of an epoch are of each dataset; 0: none */
};

/*
 * Where an epoch stands. dl2_loader_next() has returned all samples at positions below `next` of
 * the epoch's order, except the `missing` ones. In strict order nothing is missing, and `step`
 * alone says where the epoch stands.
 */
struct dl2_loader_position {
    uint64_t epoch, step;
    uint32_t next;
    uint32_t missing_count;        /* next - missing_count is step * batch, or the epoch's end */
    const uint32_t *missing;       /* ascending */
    struct dl2_loader_order order; /* samples 0: not known, and not compared */
};

#ifdef __cplusplus
}
#endif

#endif
