/*
 * Where encoded samples and their labels live, by number. Pixels are not this room's business.
 *
 * Sources, told apart by what lies at `path`:
 *   folder   any tree of image files; the class of ROOT/[SPLIT/]CLASS/.../FILE is CLASS
 *   gulp     GulpIO's chunks data_N.gulp with meta_N.gmeta and label2idx.json
 *   tar      WebDataset's shards *.tar, or one such file; also tar files of class folders
 *   IDX      {train,t10k}-images-idx3-ubyte[.gz] with labels beside them (MNIST's format); a sample
 *            is given as a PGM file in memory, so that it is encoded bytes like any other; t10k is
 *            for validation. Sample 17 of train, labelled 3, is "train/3/00017": what a folder that
 *            the dataset is copied to calls it
 *
 * Gulp and tar lie at `path` itself or in its folders that are named after splits; tar files in
 * one folder may have such a name as a word of their own names instead. With dl2-index.bin beside
 * them (docs/formats.md) opening takes milliseconds, and every sample is held against its check sum
 * when it is read; without it, or where it is out of date, they are gone through. Classes are in
 * the container's own order.
 *
 * Splits: SPLIT is train or training; val, valid, validation or dev; test or testing; in any case.
 * Top folders with such names are splits where there is no other folder, where train and val are
 * both there, and beside others where all images lie in folders of folders; else they are classes,
 * and dl2_dataset_message() says so. A path that lies in a split (ROOT/train with ROOT/val beside
 * it, a class's folder in it, a tar file with such a word in its name) is that split, whole. Any
 * other dataset is split by the rule below.
 *
 * Samples come in the byte order of their names; packed ones as they are stored. Where there are
 * classes, samples outside every class belong to no split: DL2_SPLIT_ALL alone has them, labelled
 * -1. Names that start with a dot and dl2-variant.json(l)
 * are not samples; every other file is, unless `keep` says otherwise.
 *
 * Threads: open and close on one; everything else on any number at once.
 */
#ifndef DL2_DATASET_DATASET_H
#define DL2_DATASET_DATASET_H

#include "common/error.h"
#include "common/memory.h"
#include "common/slices.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* DL2_SPLIT_VAL of a path that lies in a test split gives that split, since the path names it. */
enum dl2_split { DL2_SPLIT_ALL, DL2_SPLIT_TRAIN, DL2_SPLIT_VAL, DL2_SPLIT_TEST };

struct dl2_dataset_options {
    enum dl2_split split;
    /*
     * For a dataset without splits: within each class, samples in the order of a hash of
     * (split_seed, key); the first round(val_fraction * n), at least one where n > 1, are for
     * validation; none at all where val_fraction is 0. Keys have no extension, so every variant of
     * a dataset is split alike.
     */
    double val_fraction;
    uint64_t split_seed;
    /*
     * Which files of a folder are samples, by path; NULL: all. dl2_codec_is_image_file() is made
     * for it: a README.txt among the images is no sample then. What it turns down might as well not
     * be there, also for the classes.
     */
    bool (*keep)(const char *path);
};

#define DL2_DATASET_DEFAULTS                                                                       \
    {                                                                                              \
        DL2_SPLIT_ALL, 0.2, 0, NULL                                                                \
    }

struct dl2_dataset;

/* DL2_ERR_FORMAT where no sample is found, with a message that says what is there instead. */
int dl2_dataset_open(const char *path, const struct dl2_dataset_options *options,
                     struct dl2_dataset **out, struct dl2_error *error);
void dl2_dataset_close(struct dl2_dataset *dataset);

size_t dl2_dataset_count(const struct dl2_dataset *dataset);

/* Classes, sorted by byte value, of the whole dataset whatever the split; 0 for a flat folder. */
unsigned dl2_dataset_class_count(const struct dl2_dataset *dataset);
const char *dl2_dataset_class_name(const struct dl2_dataset *dataset, unsigned label);

/* What it lies in: "folder", "idx", "gulp" or "tar". */
const char *dl2_dataset_container(const struct dl2_dataset *dataset);

/* Do the data come with splits of their own? */
bool dl2_dataset_has_parts(const struct dl2_dataset *dataset);

/* Has the seeded rule split them? False for DL2_SPLIT_ALL. */
bool dl2_dataset_is_split_by_rule(const struct dl2_dataset *dataset);

/*
 * How the dataset was read, for people: "train 9,025 images in 10 classes, val 3,929 (valid/)". Of
 * all splits, whichever was asked for. The dataset's.
 */
const char *dl2_dataset_layout(const struct dl2_dataset *dataset);

/*
 * What a program tells people when it opens a dataset, a line each: first the layout, then what may
 * not have been meant so (classes that are called like splits, images without a class, labels and
 * links that were not read). NULL from the last number on. *matters is false for what may be left
 * out where people want to hear little: a layout that folders say. The dataset's.
 */
const char *dl2_dataset_message(const struct dl2_dataset *dataset, size_t number, bool *matters);

/* One sample; strings live as long as the dataset. */
struct dl2_sample {
    const char *key;       /* path from the root without extension: "train/rose/0017" */
    const char *path;      /* for messages: the file, or "FILE[17]" within a packed one */
    const char *name;      /* path from the root, with extension where it is a file of its own */
    const char *extension; /* "jpg"; "" where it has none or nobody has written it down */
    int label;             /* 0 .. class_count-1, or -1 */
    uint64_t bytes;        /* encoded size */
    int64_t mtime_ns;      /* of the file it lies in, since 1970 */
};
void dl2_dataset_sample(const struct dl2_dataset *dataset, size_t index, struct dl2_sample *sample);

/*
 * The encoded bytes of a sample: *data points either into `scratch` (grown as needed) or at
 * memory that the dataset keeps until it is closed; valid until scratch is used again.
 */
int dl2_dataset_read(const struct dl2_dataset *dataset, size_t index, struct dl2_bytes *scratch,
                     const uint8_t **data, size_t *size, struct dl2_error *error);

/*
 * Where a sample's encoded bytes lie, for those who read ahead or in part: `bytes` of them from
 * `offset` on, in the file `path`; `fd` is open for reading (the dataset's own, shared; pread
 * only), or -1 where the file is to be opened. False where they lie nowhere as they are (IDX).
 */
struct dl2_location {
    const char *path;
    int fd;
    uint64_t offset, bytes;
};
bool dl2_dataset_locate(const struct dl2_dataset *dataset, size_t index,
                        struct dl2_location *location);

/*
 * Holds a sample's bytes against the check sum that the container has of it: DL2_OK where they
 * agree or it has none, DL2_ERR_FORMAT, naming the sample, where they don't. dl2_dataset_read()
 * does so itself; whoever reads by dl2_dataset_locate() calls this.
 */
int dl2_dataset_verify(const struct dl2_dataset *dataset, size_t index, const uint8_t *data,
                       size_t size, struct dl2_error *error);

/*
 * Slices (common/slices.h). Packed datasets that dl2-transcode wrote know of crop-addressable
 * samples how they are cut, so that one need not read all of such a sample. False for a sample that
 * isn't cut, and where nobody knows.
 */
struct dl2_cuts {
    uint32_t width, height, rows, count; /* as in struct dl2_slicing */
    const uint8_t *head;                 /* the dataset's */
    size_t head_size;
};
bool dl2_dataset_cuts(const struct dl2_dataset *dataset, size_t index, struct dl2_cuts *cuts);

/*
 * As dl2_dataset_read(), _locate() and _verify(), of some of a sample's slices, of which there must
 * be that many: each slice has a check sum of its own.
 */
int dl2_dataset_read_slices(const struct dl2_dataset *dataset, size_t index,
                            struct dl2_slice_range range, struct dl2_bytes *scratch,
                            const uint8_t **data, size_t *size, struct dl2_error *error);
bool dl2_dataset_locate_slices(const struct dl2_dataset *dataset, size_t index,
                               struct dl2_slice_range range, struct dl2_location *location);
int dl2_dataset_verify_slices(const struct dl2_dataset *dataset, size_t index,
                              struct dl2_slice_range range, const uint8_t *data, size_t size,
                              struct dl2_error *error);

/*
 * The samples of an item: GulpIO's items may have several frames, each a sample, one after the
 * other (frame 7 of "film" is "film/00007"). Anything else is an item by its key. A slice of frames
 * is so much of first .. first + count - 1. False where no item of this split is called so.
 */
bool dl2_dataset_find(const struct dl2_dataset *dataset, const char *id, size_t *first,
                      size_t *count);

/* Does a packed dataset (gulp, tar) lie at `path`, whole or not? By names alone. */
bool dl2_dataset_is_packed(const char *path);

/*
 * Writes PATH/dl2-index.bin for a packed dataset that others have made, or whose index is out of
 * date: reads every sample for its check sum, and where it can be cut (dl2_jpeg_slice() of
 * codec/jpeg/jpeg_slices.h is made for it; NULL: nowhere), with so many threads, each of which
 * holds two samples (0: one a processor). *count: samples. The number of threads changes no byte.
 */
int dl2_dataset_write_index(const char *path, dl2_slice_function slice, unsigned jobs,
                            size_t *count, struct dl2_error *error);

/*
 * What a dataset is called in reports: "variant" of its dl2-variant.json if there is one at
 * its root, else the last part of its path. A new string to free.
 */
char *dl2_dataset_variant_name(const char *path);

#ifdef __cplusplus
}
#endif

#endif
