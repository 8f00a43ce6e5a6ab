/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Encoded samples and their labels, by number. Pixels are not this room's business.
 *
 * A sample is an image, a clip: frames in order, with one label and one key, a clip that is a video
 * file (.mp4, .m4v, .mov, .webm, .mkv, .avi), or a volume (volumes/volume.h). All samples of a
 * dataset are of one kind. What is encoded are images, the frames of clips among them, and these
 * have numbers of their own: those of sample 0 come first, then those of sample 1. Where samples
 * are images or videos the two numbers are the same. Functions that read bytes take an image's
 * number.
 *
 * Containers, told apart by what lies at `path`:
 *   folder   any tree of image files; the class of ROOT/[SPLIT/]CLASS/.../FILE is CLASS
 *   gulp     GulpIO's chunks data_N.gulp with meta_N.gmeta and label2idx.json
 *   tar      WebDataset's shards *.tar, or one such file; also tar files of class folders
 *   idx      {train,t10k}-images-idx3-ubyte[.gz] with labels beside them (MNIST's format). Each
 *            sample is a PGM file in memory; t10k is for validation. Sample 17 of train, with label
 *            3, is "train/3/00017", which is its name in a folder that the dataset is copied to
 *
 *   postgresql  a table, at postgresql://HOST/DATABASE?table=NAME (docs/formats/datasets.md);
 *            in the byte order of its keys, or in the order in which dl2-transcode wrote it
 *
 * gulp and tar lie at `path` itself or in its folders that are named after splits; tar files in
 * one folder may instead have such a name as a word of their own names. With a dl2-index.bin beside
 * them (docs/formats/datasets.md) opening takes milliseconds, and each sample is compared with its
 * check sum when it is read. Without one, or if it is out of date, opening scans the shards.
 * Classes are in the container's own order.
 *
 * Splits: SPLIT is train or training; val, valid, validation or dev; test or testing; in any case,
 * also with four digits behind it (train2017). It may lie in a folder images that has all samples.
 * Top folders with such names are splits if there is no other folder, if train and val are both
 * there, or if all images lie in folders of folders; otherwise they are classes, and
 * dl2_dataset_message() says so. Where there are splits, any other top folder is one, too, by its
 * own name ("holdout"), but for the name all, if it has a sample of a class that train, val or test
 * have. Classes are those of these three: first train's, then those that train lacks, which a
 * message names. At most 251 such names count. In a table, the column for
 * splits decides. A path that lies in a split (ROOT/train with ROOT/val beside it, a class's folder
 * in it, a tar file with such a word in its name) is that split, whole. Any other dataset is split
 * by the rule below.
 *
 * Samples are in the byte order of their names; packed ones in the order of their storage. If there
 * are classes, samples outside every class belong to no split: only "all" has them, with
 * label -1. Names that start with a dot and dl2-variant.json(l) are not samples; every other file
 * is, unless `keep` refuses it. What it refuses lies beside the sample with the longest name that,
 * with a dot behind it, the file's name begins with. With `keep`, NAME.mask.EXT and NAME.seg.EXT
 * beside a sample NAME.EXT are masks, and no samples. So are, in folders of images, those that
 * other programs call NAME_mask.EXT, masks/NAME.EXT for images/NAME.EXT and so on
 * (docs/python.md): each lies beside its image as mask.EXT or seg.EXT.
 *
 * Threads: open, select and close on one; everything else on any number at once. The child of a
 * fork may read a dataset that its parent opened.
 */
#ifndef DL2_DATASET_DATASET_H
#define DL2_DATASET_DATASET_H

#include "common/error.h"
#include "common/gray.h"
#include "common/memory.h"
#include "common/slices.h"
#include "remote/access.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A part of the samples for training, to compare a few images of high quality with many of low
 * quality. Other splits stay whole. Of each class's n samples round(fraction * n) are taken, at
 * least one: the first by a hash of (seed, key), or by their names. So a smaller fraction is a part
 * of a larger one, and all variants of a dataset have the same samples.
 */
enum dl2_subset_by { DL2_SUBSET_DRAW, DL2_SUBSET_NAME };
struct dl2_subset {
    double fraction; /* above 0, below 1; 0 and 1: all samples */
    enum dl2_subset_by by;
    uint64_t seed; /* of a draw */
};

/* What samples are. */
enum dl2_sample_kind { DL2_SAMPLE_IMAGE, DL2_SAMPLE_CLIP, DL2_SAMPLE_VOLUME, DL2_SAMPLE_VIDEO };

/*
 * How the kind is found. DL2_SAMPLES_AUTO: samples are clips
 *   - in GulpIO, if an item has several frames; each item is a clip;
 *   - in a folder and in tar, if every image has a class, lies in a folder within its class's,
 *     [SPLIT/]CLASS/CLIP/FRAME (tar with labels: in any folder), and is called by a number, without
 *     letters; if the numbers in every such folder follow each other from 0 or from 1 on; if more
 *     than half of these folders hold several images; and if there are more of them than classes.
 * Otherwise samples are images. A message says so where most of this holds.
 *
 * DL2_SAMPLES_CLIPS: in a folder and in tar, the images of a folder within a class's are a clip in
 * the order of the numbers at the end of their names, whatever else their names have. An image
 * elsewhere, or without such a number, is DL2_ERR_FORMAT. IDX and PostgreSQL have no clips. A video
 * is a clip in either case.
 */
enum dl2_samples { DL2_SAMPLES_AUTO, DL2_SAMPLES_IMAGES, DL2_SAMPLES_CLIPS };

/*
 * Which members of a sample of tar shards are its label and its image; NULL: as
 * docs/formats/datasets.md says. An index keeps both, so that they need not be given again.
 */
struct dl2_member_choice {
    /*
     * The path of a field in the JSON beside each sample (dataset/packed/label_field.h), "label" or
     * "meta.class": a whole number there is its class's number, a string its class's name, unless
     * all strings are numbers (docs/formats/datasets.md, Labels). This replaces .cls, and what an
     * index says; a sample without such a field has no label, and a message counts these.
     * DL2_ERR_FORMAT if no sample has one, or some have numbers and some names.
     */
    const char *label_field;
    /* The image's extension, "jpg", or several with commas, the first that is there counts:
     * "jpg,png". A sample without any has no image. dl2-transcode's own shards know theirs. */
    const char *image_extension;
};

static inline bool dl2_members_are_chosen(const struct dl2_member_choice *members)
{
    return members->label_field || members->image_extension;
}

struct dl2_dataset_options {
    /*
     * "train", "val", "test" or the name of another split; "all" or NULL: all samples. Words that
     * folders may have for a split (above) name it, too. For a path that lies in a test split,
     * "val" is that split: the path names it.
     */
    const char *split;
    /*
     * The rule for a dataset without splits: each class is sorted by a hash of (split_seed, key),
     * and its first round(val_fraction * n) samples are for validation, at least one if n > 1, but
     * none if val_fraction is 0. Keys have no extension, so all variants of a dataset are split
     * alike. NAN: 0.2.
     *
     * A val_fraction above 0 also splits the samples of train where there is no split val, and
     * those of a path that is the split train. Where it, or a split_seed above 0, would have no
     * effect on a split train or val that is asked for, opening fails with DL2_ERR_ARGUMENT.
     */
    double val_fraction;
    uint64_t split_seed;
    /*
     * Is the file at this path of a folder a sample? NULL: all are. dl2_codec_is_image_file() is
     * made for it. Files that it refuses do not count for classes and splits either.
     */
    bool (*keep)(const char *path);
    /*
     * Can a file be read that has this extension (no dot; "": none) and begins with these bytes?
     * `size` 0 asks by the extension alone. NULL: not asked. dl2_codec_reads() is made for it. The
     * files that it refuses are samples, which a warning counts.
     */
    bool (*reads)(const char *extension, const uint8_t *start, size_t size);
    /* With "all", too, the samples for training are those that the rules above name. */
    struct dl2_subset subset;
    /* Extensions with commas, such as "mask.png": files of a folder with one of them lie beside
     * samples (dl2_dataset_read_sidecar()) and are none. NULL: none. */
    const char *sidecars;
    enum dl2_samples samples;
    /* For programs that work on single images: the frames of clips are samples, too, with the keys
     * CLIP/00000, CLIP/00001... The rules above still split and draw clips. */
    bool by_frame;
    /* Clips of GulpIO whose ids lie in no folder, as in GulpIO's own datasets, get the keys
     * CLASS/ID, so that a folder keeps their classes. */
    bool class_folders;
    struct dl2_remote_options remote; /* with a path that is none, DL2_ERR_ARGUMENT unless zero */
    /*
     * Can the caller work on volumes? Then this decodes slices of those that have some
     * (volumes/volume.h); dl2_gray_decode() is made for it. A folder holds volumes if it has files
     * of volumes and none that `keep` takes for an image (without `keep`: none of other names).
     * With NULL it is DL2_ERR_UNSUPPORTED then.
     */
    dl2_gray_decoder decode_slice;
    /* Can the caller work on videos? The same holds for these. A folder of both holds volumes. */
    bool takes_videos;
    /*
     * Lists of the labels of the videos below the path, with commas: FILE or SPLIT=FILE (list.c
     * says what they may look like). Samples are the videos that the lists name, with the keys
     * [SPLIT/]CLASS/NAME, wherever below the path they lie; or the images in folders NAME, with
     * keys [SPLIT/]CLASS/NAME/FRAME, which are clips by the rule above. NULL: folders say the
     * classes. DL2_ERR_ARGUMENT for an address or a database.
     */
    const char *labels;
    /* DL2_ERR_ARGUMENT with other containers than tar, and where a remote one's index has
     * others. */
    struct dl2_member_choice members;
    /* Does the caller read all images once, from the first to the last? Then tar shards may be
     * compressed by gzip: .tar.gz and .tgz. Without this they are DL2_ERR_UNSUPPORTED. */
    bool in_order;
};

#define DL2_VAL_FRACTION_UNSET ((double)NAN)

#define DL2_DATASET_DEFAULTS                                                                       \
    {                                                                                              \
        "all", DL2_VAL_FRACTION_UNSET, 0, NULL, NULL, {0, DL2_SUBSET_DRAW, 0}, NULL,               \
            DL2_SAMPLES_AUTO, false, false, {NULL, 0, 0, 0}, NULL, false, NULL, {NULL, NULL},      \
            false                                                                                  \
    }

struct dl2_dataset;

/* DL2_ERR_FORMAT if there is no sample, and DL2_ERR_ARGUMENT if there is no split of this name,
 * with a message that says what is there instead. */
int dl2_dataset_open(const char *path, const struct dl2_dataset_options *options,
                     struct dl2_dataset **out, struct dl2_error *error);
void dl2_dataset_close(struct dl2_dataset *dataset);

/*
 * Joins open datasets: the samples of the first in their order, then those of the next. They stay
 * the caller's, must outlive the joined one, and must not be selected from or shuffled any more.
 * `paths` is what messages call them.
 *
 * Classes are joined by name: those of the first keep their numbers, and new names follow in the
 * order of the datasets; a message names them. A key is that of its dataset behind the dataset's
 * name (dl2_dataset_variant_name()), "photos/train/rose/0017"; of several datasets of one name the
 * second is called NAME-2. There are sidecars if all have some. Joined tables of databases are the
 * joined one's partitions.
 *
 * DL2_ERR_ARGUMENT for datasets of several kinds, for volumes of other channels, for classes with
 * names beside classes that are numbers or none, for the same samples twice (by names, labels,
 * sizes and times), and for more than DL2_DATASETS_MAX.
 */
enum { DL2_DATASETS_MAX = 64 };
int dl2_dataset_join(struct dl2_dataset *const *members, const char *const *paths, size_t count,
                     struct dl2_dataset **out, struct dl2_error *error);
/*
 * Opens each path by `open`, and joins them if there are several. Zero-initialize the union, and
 * close it also after a failure.
 */
struct dl2_dataset_union {
    struct dl2_dataset *dataset;  /* all of them */
    struct dl2_dataset **members; /* each */
    size_t count;
    char *path; /* "a, b", for messages */
    char *name; /* dl2_dataset_variant_name(), "a+b" */
};
int dl2_dataset_union_open(const char *const *paths, size_t count,
                           int (*open)(void *context, const char *path, struct dl2_dataset **out,
                                       struct dl2_error *error),
                           void *context, struct dl2_dataset_union *out, struct dl2_error *error);
void dl2_dataset_union_close(struct dl2_dataset_union *all);
/* How many datasets are joined, which of them a sample is of, from 0, and what messages call it;
 * 1, 0 and NULL where none are. The string lives as long as the joined dataset. */
size_t dl2_dataset_members(const struct dl2_dataset *dataset);
size_t dl2_dataset_member_of(const struct dl2_dataset *dataset, size_t index);
const char *dl2_dataset_member_path(const struct dl2_dataset *dataset, size_t member);

/*
 * Leaves `count` samples of an open dataset, which are numbered anew: sample i is then what sample
 * numbers[i] was. A sample may come several times; a loader then visits it as often in an epoch,
 * each time with random numbers of its own. Call it before any loader is made. DL2_ERR_ARGUMENT for
 * no numbers, and for numbers that are not below dl2_dataset_count(); the dataset is as before.
 */
int dl2_dataset_select(struct dl2_dataset *dataset, const uint32_t *numbers, size_t count,
                       struct dl2_error *error);

/* The same with all samples, in a random order that follows from the seed and their number. Frames
 * of one clip stay together and in order, even where they are samples. */
int dl2_dataset_shuffle(struct dl2_dataset *dataset, uint64_t seed, struct dl2_error *error);

size_t dl2_dataset_count(const struct dl2_dataset *dataset);
/* The kind of what the dataset holds: clips also where by_frame makes each frame a sample. */
enum dl2_sample_kind dl2_dataset_kind(const struct dl2_dataset *dataset);
/* Encoded images, of all its samples. */
size_t dl2_dataset_image_count(const struct dl2_dataset *dataset);
/* Encoded, of all its samples. */
uint64_t dl2_dataset_bytes(const struct dl2_dataset *dataset);

/* Classes of the whole dataset whatever the split: those of train, sorted by byte value, then the
 * others, unless the container has an order of its own; 0 for a flat folder. */
unsigned dl2_dataset_class_count(const struct dl2_dataset *dataset);
const char *dl2_dataset_class_name(const struct dl2_dataset *dataset, unsigned label);
bool dl2_dataset_same_classes(const struct dl2_dataset *a, const struct dl2_dataset *b);

/*
 * Makes a list of classes the dataset's, such as that of a network which was trained on others:
 * labels become numbers of this list, by name. A message says so, unless the lists are equal. Call
 * it once, before any loader is made. DL2_ERR_ARGUMENT, and the dataset is as before, if a sample's
 * class is not in the list, if there are no classes, and if a name comes twice in either list.
 */
struct dl2_known_classes {
    const char *const *names;
    unsigned count;
    const char *of; /* whose it is, for messages */
};
int dl2_dataset_use_classes(struct dl2_dataset *dataset, const char *path,
                            const struct dl2_known_classes *list, struct dl2_error *error);

/*
 * A number that is another one when samples are added, removed, renamed, relabeled, moved to
 * another split or changed. A file is known to be changed by its size and time, a row of a table by
 * the transaction that wrote it. A view and a foreign table have no such transactions: there the
 * server reads all images. Only numbers of datasets that were opened with equal options, from the
 * same place, compare. DL2_ERR_LOST, and others of a database, if it does not answer.
 */
int dl2_dataset_fingerprint(const struct dl2_dataset *dataset, uint64_t *fingerprint,
                            struct dl2_error *error);

/*
 * Two cheaper numbers, without a look at files or a server. *samples is another one when samples
 * are added, removed, renamed, relabeled, come in another order or change their size; it is the
 * same for a copy of the dataset. *times is another one, too, when a file is written again; 0 in a
 * database.
 */
void dl2_dataset_hash(const struct dl2_dataset *dataset, uint64_t *samples, uint64_t *times);

/* The name of its container: "folder", "idx", "gulp", "tar" or "postgresql"; "several" of joined
 * datasets. */
const char *dl2_dataset_container(const struct dl2_dataset *dataset);

/* Are there compressed shards, where any other order than that of the images takes the time of all
 * that lies before an image? Opening it has decompressed them all. */
bool dl2_dataset_is_in_order(const struct dl2_dataset *dataset);

/* Do the data come with splits of their own? */
bool dl2_dataset_has_parts(const struct dl2_dataset *dataset);
/* The name of the split that the data give a sample; "" if they give it none. The string lives as
 * long as the dataset. */
const char *dl2_dataset_split_of(const struct dl2_dataset *dataset, size_t index);

/*
 * How the dataset was read, for people: "train 9,025 images in 10 classes, val 3,929 (valid/)". It
 * covers all splits, whichever was asked for. The string lives as long as the dataset.
 */
const char *dl2_dataset_layout(const struct dl2_dataset *dataset);

/*
 * Message `number` that a program prints when it opens a dataset, NULL after the last: first the
 * layout, then the warnings below, then others (classes that are called like splits or may be some,
 * images without a class, labels and links that were not read, files that are no samples). *matters
 * is false, so that --quiet may leave it out, for a layout that follows from the folders' names,
 * also for clips that do, and for files in class folders that are neither samples, volumes nor
 * videos. The string lives as long as the dataset.
 */
const char *dl2_dataset_message(const struct dl2_dataset *dataset, size_t number, bool *matters);

/*
 * Warning `number` about the data themselves, whatever their classes and splits: a variant that is
 * not finished, images that this build cannot read, ids with several frames, images that are masks
 * of others by their names. NULL after the last. dl2_dataset_message() has them, too; programs that
 * do without classes and splits print only these.
 */
const char *dl2_dataset_warning(const struct dl2_dataset *dataset, size_t number);

/* Is it a variant, or a part of one, that dl2-transcode is writing, or was when it was stopped? */
bool dl2_dataset_is_incomplete(const struct dl2_dataset *dataset);

/* One sample; strings live as long as the dataset. */
struct dl2_sample {
    const char *key;       /* path from the root without extension: "train/rose/0017" */
    const char *path;      /* for messages: the file, or "FILE[17]" within a packed one */
    const char *name;      /* path from the root, with extension if it is a file of its own */
    const char *extension; /* "jpg"; "" if it has none or the container does not keep it */
    int label;             /* 0 .. class_count-1, or -1 */
    uint64_t bytes;        /* encoded size */
    int64_t mtime_ns;      /* of the file it lies in, since 1970 */
};
/* A clip has its own key, which is its name, too, the bytes of all its frames, and the rest as its
 * first frame has it. */
void dl2_dataset_sample(const struct dl2_dataset *dataset, size_t index, struct dl2_sample *sample);

/* Images first, first + 1 ... first + count - 1. */
struct dl2_image_range {
    size_t first, count;
};
/* The frames of a sample, in order; of an image, the image. */
struct dl2_image_range dl2_dataset_frames(const struct dl2_dataset *dataset, size_t index);
/* The same facts about one encoded image. Frame 7 of the clip "film" has the key "film/00007",
 * whatever its file is called. */
void dl2_dataset_image(const struct dl2_dataset *dataset, size_t image, struct dl2_sample *facts);
/* The clip that an image is a frame of: its frames and its key, which lives as long as the dataset.
 * Where samples are images, the image itself. */
struct dl2_image_range dl2_dataset_clip_of(const struct dl2_dataset *dataset, size_t image,
                                           const char **key);

/*
 * Some frames of a clip: count of them, the first and then each `step` further; step may be
 * negative. Each is read by itself, so the others cost nothing.
 */
struct dl2_frame_slice {
    size_t sample, first, count; /* `first` is an image's number */
    int64_t step;
};
/*
 * Finds frames by "ID[a:b:c]", with the meaning of Python's slices, or "ID[a]"; "ID" alone is all
 * of them. DL2_ERR_ARGUMENT if there is no sample ID, for other text in the brackets, and for a
 * single frame that the clip lacks. A sample that is an image is a clip of one frame here.
 */
int dl2_dataset_slice(const struct dl2_dataset *dataset, const char *text,
                      struct dl2_frame_slice *slice, struct dl2_error *error);

/*
 * Reads the encoded bytes of an image. *data points either into `scratch` (grown as needed), and is
 * valid until that is used again, or at memory that the dataset keeps until it is closed.
 */
int dl2_dataset_read(const struct dl2_dataset *dataset, size_t image, struct dl2_bytes *scratch,
                     const uint8_t **data, size_t *size, struct dl2_error *error);

/*
 * Reads what a sample has beside its image, by extension: "json", "txt", "cls". In a folder that is
 * the file of the same path up to its extension; in tar the member of the same name up to its first
 * dot; in GulpIO, "json" is the first meta_data of the sample's item. Of a clip it is what its
 * first frame has; an item of GulpIO gives it to the first frame alone. Returns 1 and fills `out`,
 * or 0 if the sample has none.
 */
int dl2_dataset_read_sidecar(const struct dl2_dataset *dataset, size_t index, const char *extension,
                             struct dl2_bytes *out, struct dl2_error *error);
/*
 * Reads all of that, sorted by extension, into a zeroed list (dataset/sidecars.h). It lacks what
 * only says the class again: .cls in tar, metadata of GulpIO that have nothing but id, label and
 * idx.
 */
struct dl2_sidecars;
int dl2_dataset_read_sidecars(const struct dl2_dataset *dataset, size_t index,
                              struct dl2_sidecars *out, struct dl2_error *error);
/* The same of one image: a frame of a clip may have something beside it, too. */
int dl2_dataset_read_image_sidecars(const struct dl2_dataset *dataset, size_t image,
                                    struct dl2_sidecars *out, struct dl2_error *error);
/* The extension of file i of what a sample has beside it, and its path, which live as long as the
 * dataset. NULL after the last, and where samples are no files of their own. */
const char *dl2_dataset_sidecar_at(const struct dl2_dataset *dataset, size_t index, size_t i,
                                   const char **path);
/*
 * Changes when what a sample has beside its image changes and its mtime_ns does not tell: in a
 * folder, a hash of names, sizes and times; 0 if it has nothing, and in other containers.
 */
uint64_t dl2_dataset_sidecar_sum(const struct dl2_dataset *dataset, size_t index);
/* The same of one image. */
uint64_t dl2_dataset_image_sidecar_sum(const struct dl2_dataset *dataset, size_t image);
/* Files of a folder that `keep` refuses and that lie beside no sample. */
size_t dl2_dataset_ignored(const struct dl2_dataset *dataset);
/* Lines of lists of labels whose video is not there. A message names some. */
size_t dl2_dataset_missing(const struct dl2_dataset *dataset);
/* In a folder: of a sample's key that ends like a mask's, ".mask" or ".seg", the length of the name
 * of the image that it is a mask of if that is there; 0 for other keys. */
size_t dl2_dataset_mask_stem(const char *key);
/*
 * Ultralytics and Roboflow have the label files of images/DIR/NAME.jpg as labels/DIR/NAME.txt. In a
 * folder these lie beside the image with the extension "txt", also if it is the folder images, or
 * one in it, and labels lies outside. Are there such?
 */
bool dl2_dataset_has_label_folders(const struct dl2_dataset *dataset);
/* Sets *labels to a path with the folder labels in the place of its last folder images, a string to
 * free; to NULL where it has no such folder. */
int dl2_dataset_labels_path(const char *path, char **labels, struct dl2_error *error);
/* Is the file labels/DIR/NAME.txt for a key images/DIR/NAME that there is? */
bool dl2_dataset_is_label_file(const char *path, bool (*has)(const void *context, const char *key),
                               const void *context);
/* The path of a file classes.txt in a folder on this machine, or in that of its label files, which
 * LabelImg writes; not one beside an image of that name. By number, whatever the split; NULL after
 * the last. */
const char *dl2_dataset_class_file(const struct dl2_dataset *dataset, size_t number);
/* Can its container hold anything beside images and labels? IDX and PostgreSQL cannot. */
bool dl2_dataset_has_sidecars(const struct dl2_dataset *dataset);

/*
 * Where an image's encoded bytes lie, to read them ahead or in part: `bytes` of them from `offset`
 * on, in the file `path`. `fd` is open for reading (the dataset's own and shared, so for pread
 * only), or -1 if the caller must open the file. A `remote` file is read by remote/remote.h
 * instead; its image begins at `start`. False for images that do not lie in files as they are (IDX,
 * PostgreSQL).
 */
struct dl2_remote_file;
struct dl2_location {
    const char *path;
    int fd;
    uint64_t offset, bytes;
    struct dl2_remote_file *remote; /* NULL: a file of this machine */
    uint64_t start;
};
bool dl2_dataset_locate(const struct dl2_dataset *dataset, size_t image,
                        struct dl2_location *location);

/*
 * Samples of a database are read ahead in batches, since a query for many costs hardly more than a
 * query for one. Is this a sample that dl2_dataset_read_batch() can read? Sets *bytes to its size.
 */
enum { DL2_DATASET_BATCH = 32 };
bool dl2_dataset_in_batches(const struct dl2_dataset *dataset, size_t image, uint64_t *bytes);

/*
 * Reads at most DL2_DATASET_BATCH samples into `data`, one behind the other, without
 * verifying them. False if that is not possible, or one of them has another size by now: read
 * them one by one to know why.
 */
bool dl2_dataset_read_batch(const struct dl2_dataset *dataset, const uint32_t *indices,
                            size_t count, uint8_t *data);

/*
 * Compares an image's bytes with the container's check sum: DL2_OK if they agree or there is none,
 * else DL2_ERR_FORMAT with a message that names the sample. dl2_dataset_read() does so itself; call
 * this for bytes that were read by dl2_dataset_locate().
 */
int dl2_dataset_verify(const struct dl2_dataset *dataset, size_t image, const uint8_t *data,
                       size_t size, struct dl2_error *error);

/*
 * How an image is cut into slices (common/slices.h), so that a part of it can be read. The index of
 * a packed dataset knows this. False for a sample that is not cut. The head lives as long as the
 * dataset.
 */
bool dl2_dataset_cuts(const struct dl2_dataset *dataset, size_t image, struct dl2_cuts *cuts);

/*
 * The same as dl2_dataset_read(), _locate() and _verify() for a range of slices, which the sample
 * must have. Each slice has a check sum of its own.
 */
int dl2_dataset_read_slices(const struct dl2_dataset *dataset, size_t image,
                            struct dl2_slice_range range, struct dl2_bytes *scratch,
                            const uint8_t **data, size_t *size, struct dl2_error *error);
bool dl2_dataset_locate_slices(const struct dl2_dataset *dataset, size_t image,
                               struct dl2_slice_range range, struct dl2_location *location);
int dl2_dataset_verify_slices(const struct dl2_dataset *dataset, size_t image,
                              struct dl2_slice_range range, const uint8_t *data, size_t size,
                              struct dl2_error *error);

/*
 * Finds a sample by its key, or where samples are frames also all of a clip by the clip's: samples
 * first .. first + count - 1. With DL2_SAMPLES_IMAGES an item of GulpIO that has several frames is
 * found so, too. False if this split has none.
 */
bool dl2_dataset_find(const struct dl2_dataset *dataset, const char *id, size_t *first,
                      size_t *count);

/*
 * The partitions that the samples of a partitioned table of a database lie in, by their names, or
 * the tables that are joined: 0 if there are fewer than two, and after dl2_dataset_select(). The
 * samples of one, ascending.
 */
unsigned dl2_dataset_partitions(const struct dl2_dataset *dataset);
const uint32_t *dl2_dataset_partition(const struct dl2_dataset *dataset, unsigned partition,
                                      uint32_t *count);

/* Is this the address of a table, postgresql://..., and not a path? Asks no server. */
bool dl2_dataset_is_database(const char *path);

/* What it has asked for. False for a dataset that is not remote. Any thread. */
bool dl2_dataset_remote_stats(const struct dl2_dataset *dataset, struct dl2_remote_stats *stats);

/* Can members be chosen here? Looks at names only; true for an address. */
bool dl2_dataset_has_members(const char *path);

/* Does the path look like a dataset, by its name and what kind of file it is? */
bool dl2_dataset_is_known(const char *path);

/* Does a packed dataset (gulp, tar) lie at `path`, whole or not? Looks at names only. */
bool dl2_dataset_is_packed(const char *path);

/*
 * Lists the object store that a packed dataset lies in: are all shards there, with the sizes in the
 * index? Opening does not ask. *whole is true of every other dataset.
 */
int dl2_dataset_look_for_shards(const struct dl2_dataset *dataset, bool *whole,
                                struct dl2_error *error);

/*
 * Writes PATH/dl2-index.bin for a packed dataset that another program has made, or whose index is
 * out of date. Reads every sample for its check sum, and cuts it by `slice` (dl2_image_slice() of
 * codec/codec.h, for example; NULL: not at all). Runs `jobs` threads (0: one a
 * processor), each of which holds two samples; their number changes no byte. `members` are as when
 * a dataset is opened; NULLs: what the index before names. Sets *count to the number of samples,
 * and *remarks, unless `remarks` is NULL, to what there is to say, a line each, to be freed, or
 * NULL.
 */
int dl2_dataset_write_index(const char *path, const struct dl2_member_choice *members,
                            dl2_slice_function slice, unsigned jobs, size_t *count, char **remarks,
                            struct dl2_error *error);

/*
 * The name of a dataset in reports: "variant" of the dl2-variant.json at its root, if there is one,
 * else the last part of its path. Of a database, "variant" in the table's comment, which asks the
 * server, else the table's name. A new string to free; NULL if
 * memory runs out.
 */
char *dl2_dataset_variant_name(const char *path);

#ifdef __cplusplus
}
#endif

#endif
