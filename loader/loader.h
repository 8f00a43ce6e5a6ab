/*
 * The input pipeline: samples of a dataset, decoded, cropped, resized and flipped, in batches.
 *
 * Order comes from (seed, epoch), each sample's random numbers from (seed, epoch, index), so in
 * strict order batches are the same bytes for any number of workers. Batch slots are a fixed ring,
 * allocated once; in steady state nothing is allocated for a JPEG.
 *
 * Training: area fraction uniform in [area_min, area_max], log aspect uniform in [log aspect_min,
 * log aspect_max], ten tries, then the central crop (Inception's rule as torchvision has it);
 * antialiased bilinear resize; flip with probability 1/2. Validation: antialiased resize of the
 * shorter side to `resize`, central crop of image_size. Only the part of an image that the crop
 * needs is decoded, at the coarsest resolution that is of use.
 *
 * Images are turned upright as their EXIF orientation says, and those with an alpha channel are
 * laid on white, before anything else.
 *
 * A sample that can't be read or decoded is counted and named once. In training its slot is
 * refilled by the next good sample in the epoch's order (its random numbers keyed by that one's
 * index); in validation its slot is zero and its label -1. With stop_on_bad the epoch ends with the
 * error instead, after the batches before it. A dataset of which nothing can be read is an error:
 * in training at once (of a rank's share), in validation at the epoch's end (of the whole dataset).
 *
 * Memory is bounded: `depth` batches; for each worker (with DL2_BATCHING_AWARE two for each) what
 * one image of max_pixels takes to decode and resize; about 10 bytes a sample of the dataset; and
 * the limits of what is read ahead and cached. dl2_loader_stats.memory says how much it was.
 *
 * Threads: one consumer thread calls everything here, but dl2_loader_release() and
 * dl2_loader_get_stats(), which any may; workers are inside.
 *
 * Installed as libdl2.so with the headers that this one includes (pkg-config: dl2). The structs
 * that callers fill in or read may grow in any release, and the library's number (libdl2.so.N) then
 * rises: a program runs with the library that it was compiled for, or not at all. Begin from
 * DL2_LOADER_DEFAULTS (C, C++20): what a release adds starts out as what was before.
 */
#ifndef DL2_LOADER_LOADER_H
#define DL2_LOADER_LOADER_H

#include "common/error.h"
#include "common/random.h"
#include "dataset/dataset.h"
#include "pixels/pixel_format.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dl2_batch_decoder; /* loader/batch_decoder.h */

/*
 * Which finished samples make a batch. In all three each index comes once an epoch, with the same
 * pixels; but which batch it is in depends on the machine's mood in the last two.
 */
enum dl2_batching {
    /* The epoch's order; a batch waits for its slowest sample. */
    DL2_BATCHING_STRICT,
    /* Whatever is finished first, with no regard to how long anything takes. */
    DL2_BATCHING_COMPLETION,
    /*
     * Sample-aware (MinatoLoader): a sample that takes longer than a percentile of what samples
     * lately took is put aside at its next operation (decoding and resizing are operations, too),
     * with its buffers and random state; one that was slow in an earlier epoch at once. Some of the
     * workers finish these on the side, how many depends on how full the ring of batches is; they
     * join a later batch. At most as many samples as there are workers are aside at a time, and
     * whatever is idle helps. With a single worker the same as DL2_BATCHING_COMPLETION.
     */
    DL2_BATCHING_AWARE
};

/* How encoded bytes are read. */
enum dl2_io {
    /* Workers read for themselves while that is fast; else as DL2_IO_URING, or DL2_IO_THREADS where
     * io_uring is not available. */
    DL2_IO_AUTO,
    DL2_IO_DIRECT,  /* each worker reads what it needs when it needs it */
    DL2_IO_THREADS, /* threads read ahead of the workers */
    DL2_IO_URING,   /* one thread reads ahead by io_uring; DL2_ERR_UNSUPPORTED if it can't */
};

struct dl2_fetch_config {
    enum dl2_io io;
    unsigned ahead;       /* samples that are read ahead at most; 0: 256 */
    uint64_t ahead_bytes; /* bytes that are read ahead at most; 0: 64 MiB */
    uint64_t cache_bytes; /* limit of the cache of encoded bytes; 0: no cache */
    bool drop_behind;     /* evict what was read from the page cache: each epoch reads from disk */
    bool whole;           /* read samples whole where parts would do, to see what that costs */
};

/*
 * One more operation on each sample, after the resize and before the sample enters its batch, on
 * its uint8 NHWC pixels in place: an augmentation of the caller's. Runs on any worker, many at
 * once; `random` goes on where the sample's own operations left off. Any negative number: the
 * sample is bad, for the reason in `error`; with stop_on_bad the epoch ends with DL2_ERR_FORMAT.
 */
struct dl2_operation {
    const char *name;
    int (*run)(void *context, uint32_t index, struct dl2_random *random, uint8_t *pixels,
               unsigned width, unsigned height, unsigned channels, struct dl2_error *error);
    void *context;
};

struct dl2_loader_config {
    unsigned batch;      /* samples a batch */
    unsigned image_size; /* output is image_size x image_size */
    unsigned channels;   /* 1 or 3 */
    unsigned resize;     /* validation's shorter side; 0: image_size * 256 / 224, rounded */
    bool train;          /* augment and shuffle; else in order, resize and centre crop */
    bool drop_last;      /* leave out an epoch's last batch if it is not full */
    double area_min, area_max, aspect_min, aspect_max;
    bool flip;
    uint64_t seed;
    unsigned workers; /* 0: dl2_cpu_count() */
    unsigned depth;   /* batch slots in the ring, at least 2 */
    /*
     * Another thread releases batches: where all `depth` are taken, dl2_loader_next() waits for
     * one. Else that is DL2_ERR_ARGUMENT, since a single thread would wait for ever.
     */
    bool wait_for_release;
    uint64_t max_pixels; /* largest image decoded; 0: default */
    bool stop_on_bad;
    /* Where batch memory comes from (pinned memory of a device); NULL: aligned heap. */
    void *(*slot_alloc)(void *context, size_t bytes);
    void (*slot_free)(void *context, void *slot);
    void *slot_context;

    /* What comes out. Mean and std are per channel and for the float types; with DL2_UINT8 they
     * stay 0 and 1. Std is above 0. */
    enum dl2_dtype dtype;
    enum dl2_layout layout;
    float mean[3], std[3];

    /*
     * Order. Ranks share an epoch without overlap, and all have the same number of steps. In
     * training all have equally many samples: count mod world of them, others in each epoch, are
     * left out. In validation each sample is on exactly one rank, so that the last batch of some
     * ranks may be empty (count 0).
     */
    unsigned rank, world; /* world 0: 1 */
    /*
     * 0: a uniform shuffle of all samples. Else quasi-random, for spinning disks: runs of
     * shuffle_chunk neighbours in random order, shuffled among shuffle_window chunks at a time
     * (0: 1). In training only.
     */
    unsigned shuffle_chunk, shuffle_window;

    enum dl2_batching batching;
    double slow_percentile; /* of DL2_BATCHING_AWARE; 0: 75 */
    /* Of DL2_BATCHING_AWARE: at most so many workers are on the side while others can begin new
     * samples; 0: half of them. */
    unsigned side_workers;
    const struct dl2_operation *operations; /* copied; the contexts stay the caller's */
    unsigned operation_count;

    /* Storage: how bytes are read, and how much is kept of encoded and of decoded samples. */
    struct dl2_fetch_config fetch;
    uint64_t decoded_cache_bytes; /* 0: none. Fills and stays, as the cache of encoded bytes does */

    /*
     * What decodes and resizes the images that it can, a graphics card; NULL: the processors do it
     * all. dl2_batch.images is the decoder's memory then. Only with uint8, NHWC, no operations and
     * no cache of decoded samples. It must outlive the loader.
     */
    struct dl2_batch_decoder *decoder;
    /*
     * Processors and decoder share the images by how fast each has been. Which image is decoded by
     * whom, and so its last bit of grey, depends on the machine's mood then.
     */
    bool decoder_shares;
    /* Of JPEGs with restart intervals, give it only the segments under the crop. */
    bool decoder_splices;
};

#define DL2_LOADER_DEFAULTS                                                                        \
    {                                                                                              \
        .batch = 64, .image_size = 64, .channels = 3, .train = true, .area_min = 0.08,             \
        .area_max = 1.0, .aspect_min = 3.0 / 4, .aspect_max = 4.0 / 3, .flip = true, .depth = 3,   \
        .std = {                                                                                   \
            1,                                                                                     \
            1,                                                                                     \
            1                                                                                      \
        }                                                                                          \
    }

struct dl2_batch {
    /* [count][image_size][image_size][channels], or with DL2_NCHW [count][channels][image_size]
     * [image_size]; bytes, or floats in the machine's order */
    uint8_t *images;
    int32_t *labels;      /* [count]; -1: not to be counted */
    uint32_t *indices;    /* [count] sample numbers in the dataset */
    unsigned count;       /* fewer than `batch` at the epoch's end, even 0 in a rank's last step */
    uint64_t epoch, step; /* step within the epoch */
};

/* Since the last dl2_loader_stats_reset(), but for `memory`. Times are wall seconds. */
struct dl2_loader_stats {
    /* The workers' time by stage, summed over them; what is left of workers x time, they waited. */
    double read, decode, transform;
    double operations;             /* the caller's, all together */
    double finish;                 /* batches in config.decoder; its own threads' time */
    uint64_t decoder_images;       /* that were given to it, refused ones too */
    double worker_wait;            /* workers without a free place in a batch, summed over them */
    double consumer_wait;          /* dl2_loader_next() without a ready batch */
    uint64_t images, bytes;        /* good samples; encoded bytes taken, of bad ones too */
    uint64_t bad;                  /* samples found to be bad */
    uint64_t batches;              /* handed out */
    uint64_t bytes_read, requests; /* from the dataset, and in how many reads */
    uint64_t encoded_hits;         /* samples whose encoded bytes were in the cache */
    uint64_t decoded_hits;         /* samples that were there decoded */
    uint64_t aside;                /* DL2_BATCHING_AWARE: samples finished by side workers */
    double threshold;              /* a sample is slow above it, in seconds; 0: not known yet */
    uint64_t memory; /* bytes held at most so far: slots, buffers, decoders, caches, order */
};

struct dl2_loader;

/*
 * The dataset stays the caller's and must outlive the loader. Starts the workers. DL2_ERR_ARGUMENT
 * for a configuration that makes no sense, such as drop_last with fewer samples than a batch, and
 * for settings that would have no effect: `resize` in training, a mean with DL2_UINT8, read-ahead
 * with DL2_IO_DIRECT.
 */
int dl2_loader_create(const struct dl2_dataset *dataset, const struct dl2_loader_config *config,
                      struct dl2_loader **out, struct dl2_error *error);

/* Batches in an epoch. */
uint64_t dl2_loader_steps(const struct dl2_loader *loader);

/*
 * Begins an epoch at a step; what was left of the last one is dropped. A step other than 0 means
 * that the first step * batch samples of the epoch's order are left out, which resumes a run in
 * strict order exactly; in the other orders use dl2_loader_resume(). At step dl2_loader_steps() the
 * epoch is over at once; beyond it is DL2_ERR_ARGUMENT.
 */
int dl2_loader_start_epoch(struct dl2_loader *loader, uint64_t epoch, uint64_t first_step,
                           struct dl2_error *error);

/* What decides the order of epochs, and so what a position belongs to. */
struct dl2_loader_order {
    uint64_t seed;    /* in training; else 0 */
    uint64_t dataset; /* a hash of its samples' keys */
    uint32_t samples; /* of the dataset */
    uint32_t batch, rank, world, shuffle_chunk, shuffle_window;
    bool train, drop_last;
};

/* The first call goes through the samples' keys. */
void dl2_loader_get_order(struct dl2_loader *loader, struct dl2_loader_order *order);

/*
 * Where an epoch stands, to go on from there: all samples at positions below `next` of the epoch's
 * order have been handed out by dl2_loader_next(), the `missing` ones aside. In strict order
 * nothing is missing, and `step` says it all.
 */
struct dl2_loader_position {
    uint64_t epoch, step;
    uint32_t next;
    uint32_t missing_count;        /* next - missing_count is step * batch, or the epoch's end */
    const uint32_t *missing;       /* ascending */
    struct dl2_loader_order order; /* samples 0: not known, and not compared */
};

/* `missing` points at memory of the loader's that is valid until the next call here. */
int dl2_loader_get_position(struct dl2_loader *loader, struct dl2_loader_position *position,
                            struct dl2_error *error);

/*
 * Goes on with an epoch: exactly the samples come that had not been handed out. Any batching may
 * go on with what another one began, as long as dataset, seed, ranks, batch and shuffle are the
 * same: DL2_ERR_ARGUMENT, naming the first that differs, where position->order is another than the
 * loader's, and for a position that is none of this loader's.
 */
int dl2_loader_resume(struct dl2_loader *loader, const struct dl2_loader_position *position,
                      struct dl2_error *error);

/*
 * 1 and the next batch, which is the caller's until dl2_loader_release() or destroy; 0 at the
 * epoch's end, then and ever after; an error otherwise. DL2_ERR_ARGUMENT where all `depth` batches
 * are taken, unless config.wait_for_release. With stop_on_bad the first bad sample's error; the
 * epoch is over then.
 */
int dl2_loader_next(struct dl2_loader *loader, struct dl2_batch **out, struct dl2_error *error);

/*
 * Waits at most so many seconds until dl2_loader_next() has an answer, whichever: 1, it would not
 * block now; 0, it still would. For those who have signals or other things to look after.
 */
int dl2_loader_wait(struct dl2_loader *loader, double seconds);

/*
 * Gives the slot back, which is filled anew then. In any order, on any thread, and in a later
 * epoch, too: until then there is one batch less to fill.
 */
void dl2_loader_release(struct dl2_loader *loader, struct dl2_batch *batch);

void dl2_loader_get_stats(const struct dl2_loader *loader, struct dl2_loader_stats *stats);
void dl2_loader_stats_reset(struct dl2_loader *loader);

/*
 * The bad samples so far, each once, in the dataset's order, as "path: stage: reason"; `count`
 * strings, valid until destroy; their array until the next call.
 */
const char *const *dl2_loader_bad(const struct dl2_loader *loader, size_t *count);

void dl2_loader_destroy(struct dl2_loader *loader);

/*
 * Evicts the files of a dataset from the page cache, without root, so that the next reads come from
 * the disk. *resident is the fraction of their pages, 0 to 1, that is in the page cache afterwards,
 * by mincore(): pages that another process maps or locks stay, and for files that the caller
 * neither owns nor may write the kernel doesn't tell, and all pages count as resident.
 * DL2_ERR_UNSUPPORTED if the dataset lies in memory as a whole (IDX).
 */
int dl2_fetch_evict(const struct dl2_dataset *dataset, double *resident, struct dl2_error *error);

#ifdef __cplusplus
}
#endif

#endif
