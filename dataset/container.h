/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The registry of containers: what samples may lie in. A container is one file of this room, with
 * its reader and its writer, and one row of the table in container.c. Only this room's files
 * include this header.
 *
 * A new container takes its own file, a row in container.c, a line in local.mk and a section in
 * docs/formats/datasets.md. If its samples lie in shards, packed.h says what it supplies.
 */
#ifndef DL2_DATASET_CONTAINER_H
#define DL2_DATASET_CONTAINER_H

#include "dataset/server_fit.h"
#include "dataset/sidecars.h"
#include "dataset/split.h"
#include "dataset/write/parts_place.h"

#include "common/json.h"
#include "remote/remote.h"

#include <stdatomic.h>

struct dl2_shard_format;

/* An image as its reader knows it. Strings live as long as the dataset. */
struct dl2_entry {
    struct dl2_sample sample; /* but for its path where there is an `inner` */
    const char *inner; /* sample.path is a packed file or a table, and this a name in it: messages
                          have PATH[INNER], see dl2_reader_path(); NULL: the path is its own */
    uint8_t part;      /* DL2_PART_NONE if the dataset has no splits of its own */
    bool is_further;   /* a further frame of the item that the image before belongs to */
};

/*
 * Opens a dataset and reads its samples, which it numbers from 0 on without regard to splits.
 * `slices` of a sample are NULL for all of its bytes, else a range that cuts() allows.
 */
struct dl2_reader {
    /*
     * Sets dataset->state, count, has_parts, parts, remark and the classes, for all samples that
     * options->keep accepts. Finding none is not an error. After a failure close() is called
     * on what there is.
     */
    int (*open)(struct dl2_dataset *dataset, const char *path,
                const struct dl2_dataset_options *options, struct dl2_error *error);
    void (*close)(struct dl2_dataset *dataset);
    struct dl2_entry (*describe)(const struct dl2_dataset *dataset, size_t number);
    int (*read)(const struct dl2_dataset *dataset, size_t number,
                const struct dl2_slice_range *slices, struct dl2_bytes *out,
                struct dl2_error *error);
    /* As dl2_dataset_read_sidecar(). NULL: there is nothing beside images and labels. */
    int (*read_sidecar)(const struct dl2_dataset *dataset, size_t number, const char *extension,
                        struct dl2_bytes *out, struct dl2_error *error);
    /* As dl2_dataset_read_sidecars(), in any order; NULL with read_sidecar(). */
    int (*read_sidecars)(const struct dl2_dataset *dataset, size_t number, struct dl2_sidecars *out,
                         struct dl2_error *error);
    /* Item i of those files, by its extension, and its path; NULL after the last. NULL: what
     * samples have beside them does not lie in files. */
    const char *(*sidecar_at)(const struct dl2_dataset *dataset, size_t number, size_t i,
                              const char **path);
    /* As dl2_dataset_sidecar_sum() and dl2_dataset_ignored(). NULL: 0. */
    uint64_t (*sidecar_sum)(const struct dl2_dataset *dataset, size_t number);
    size_t (*ignored)(const struct dl2_dataset *dataset);
    /* As dl2_dataset_remote_stats(). NULL: those of dataset->remote. */
    bool (*remote_stats)(const struct dl2_dataset *dataset, struct dl2_remote_stats *stats);
    /* NULL: samples do not lie in files. */
    bool (*locate)(const struct dl2_dataset *dataset, size_t number,
                   const struct dl2_slice_range *slices, struct dl2_location *location);
    /* As dl2_dataset_read_batch() and dl2_dataset_in_batches(). NULL: read one after the other. */
    bool (*read_batch)(const struct dl2_dataset *dataset, const uint32_t *numbers, size_t count,
                       uint8_t *data);
    bool (*in_batches)(const struct dl2_dataset *dataset, size_t number, uint64_t *bytes);
    /* NULL: there are no check sums. */
    int (*verify)(const struct dl2_dataset *dataset, size_t number,
                  const struct dl2_slice_range *slices, const uint8_t *data, size_t size,
                  struct dl2_error *error);
    /* NULL: no sample is cut into slices. */
    bool (*cuts)(const struct dl2_dataset *dataset, size_t number, struct dl2_cuts *cuts);
    /* Which of dataset->tables a sample lies in. NULL: containers have no partitions. */
    uint32_t (*table)(const struct dl2_dataset *dataset, size_t number);
    /* As dl2_dataset_fit(). NULL: where the samples lie, nothing trains. */
    int (*fit)(const struct dl2_dataset *dataset, const struct dl2_server_fit *fit,
               struct dl2_bytes *out, struct dl2_error *error);
    int (*check_fit)(const struct dl2_dataset *dataset, char version[DL2_FIT_VERSION_BYTES],
                     struct dl2_error *error); /* of a table, with fit() */
    /* Appends to `out` what changes with the samples though struct dl2_sample does not tell. NULL:
     * mtime_ns of the samples does. */
    int (*version)(const struct dl2_dataset *dataset, struct dl2_bytes *out,
                   struct dl2_error *error);
    /* The number of an item's first image, SIZE_MAX if there is none. NULL: compare all keys. */
    size_t (*find)(const struct dl2_dataset *dataset, const char *id);
};

/* A sample to be written. */
struct dl2_new_sample {
    const char *key, *extension;
    const char *id;    /* the key without its split's folder */
    const char *split; /* its name; "" for none */
    uint8_t part;      /* the same, its number */
    int label;         /* -1: none */
    const char *class; /* the label's name, or NULL */
    const void *data;
    size_t size;
    const char *line; /* of the variant that is written, about this sample; NULL: none */
    struct dl2_sidecars sidecars; /* what the container can hold; not the sample's own */
    /* A clip, in a format that holds them, has all frames, the first of which is `data`. */
    const struct dl2_writer_frame *frames;
    size_t frame_count; /* 0: an image */
};

/* Writes a container that is neither files nor shards. */
struct dl2_sink {
    /* As dl2_writer_open(); *state is for the others. */
    int (*open)(const char *path, const char *const *classes, unsigned class_count, void **state,
                struct dl2_error *error);
    /* Can it hold this beside the image? */
    bool (*holds_sidecar)(const struct dl2_sidecar *item);
    /* DL2_ERR_UNSUPPORTED and DL2_ERR_LIMIT for a sample that it cannot hold; others may follow. */
    int (*add)(void *state, const struct dl2_new_sample *sample, struct dl2_error *error);
    /* `summary` is a variant's, `origin` a copy's, of variant_facts.h; NULL: none. */
    int (*finish)(void *state, const json_t *summary, const char *origin, struct dl2_error *error);
    /* Frees the state; if finish() has not succeeded, nothing stays of what was written. */
    void (*close)(void *state);
};

/* Keeps the facts about a variant where there are no files: variant_facts.h, by the same names. */
struct dl2_facts_store {
    int (*load)(const char *place, json_t **summary, struct dl2_error *error);
    int (*load_lines)(const char *place, struct dl2_bytes *lines, struct dl2_error *error);
    int (*save)(const char *place, const json_t *summary, struct dl2_error *error);
    int (*load_origin)(const char *place, char *origin, struct dl2_error *error);
    /* A text that no other table has: to free. NULL in *identity if there is no such table. */
    int (*identify)(const char *place, char **identity, struct dl2_error *error);
};

/* A row of the registry. */
struct dl2_container {
    const char *name;       /* in --container, dl2-variant.json and dl2_dataset_container() */
    const char *extensions; /* of its files, with commas; "-": any */
    const char *summary;    /* a noun phrase for --help and --list */
    const char *looks_for;  /* file names, for messages about a path without samples */
    bool can_write;         /* dl2-transcode writes it */
    bool has_clip_paths;    /* clips are found by the paths of their frames */
    bool has_class_folders; /* samples are files, and classes the folders that they lie in */
    const struct dl2_reader *reader;
    /* Why something beside an image is left out, for messages: "a table holds nothing there". */
    const char *leaves_out;
    /* Does `path` hold this container? Looks at names only. NULL for a container of shards. */
    bool (*probe)(const char *path);
    const struct dl2_shard_format *shards; /* packed.h; NULL if its samples do not lie in shards */
    const struct dl2_sink *sink;           /* NULL if it is written as files or shards */
    const struct dl2_facts_store *facts;   /* NULL: they are files; else probe() is there, too */
    const struct dl2_parts_store *parts;   /* NULL: files or objects; likewise */
    /* As dl2_group_column_read(). NULL: it has no columns; else probe() is there, too. */
    int (*read_groups)(const char *address, struct dl2_bytes *lines, struct dl2_error *error);
};

/* Row `number` of the table, NULL after the last. */
const struct dl2_container *dl2_container_at(size_t number);
/* NULL if there is no container of this name (or this kind of index). */
const struct dl2_container *dl2_container_find(const char *name);
const struct dl2_container *dl2_container_of_index(uint32_t kind);

/* Frames are images first .. first + count - 1. */
struct dl2_clip {
    size_t first;
    uint32_t count;
    uint32_t number; /* among all clips of the container, for its key */
};

struct dl2_dataset {
    const struct dl2_container *container;
    void *state;                       /* the reader's own; NULL until it is made */
    size_t members;                    /* datasets that it joins; 0: it is one by itself */
    struct dl2_remote *remote;         /* where it lies; NULL: on this machine */
    struct dl2_bytes remote_index;     /* of a remote packed dataset, or the list, for its reader to
                                          take */
    struct dl2_listing remote_listing; /* of a remote folder, or that of a list */
    _Atomic(char *) *names; /* of all images, for messages; each NULL until it is needed */
    size_t name_count;
    size_t count;     /* while it is opened: of all encoded images; then: of the split's */
    uint32_t *chosen; /* the reader's numbers of the split's images; NULL: all */
    bool is_selected; /* `chosen` may be in any order, with repetitions */
    /* All clips while it is opened, then the split's; NULL: samples are images. */
    struct dl2_clip *clips;
    size_t clip_count;
    struct dl2_clip_keys *clip_keys; /* clips.c */
    bool by_frame;                   /* frames of clips are samples */
    bool volumes;                    /* samples are volumes */
    dl2_gray_decoder decode_slice;   /* of volumes */
    bool videos;                     /* samples are video files */
    bool label_folders;              /* dl2_dataset_has_label_folders() */
    size_t missing;                  /* dl2_dataset_missing() */
    const char *clip_note;           /* a message about them; NULL: none */
    size_t clip_message;             /* its number, where it only says what the layout says; or 0 */
    size_t aside_message;            /* the number of `aside`, or 0 */
    uint32_t least_frames, most_frames; /* of all clips, whatever the split */
    char **classes;                     /* in label order; one block with its strings */
    unsigned class_count;
    int32_t *labels;            /* of the reader's classes in this list; NULL: it is the reader's */
    bool has_parts;             /* the data come with splits of their own */
    struct dl2_part_list parts; /* the names of those that are not train, val or test */
    bool by_rule;               /* the seeded rule split them */
    bool is_incomplete;         /* it is a variant that is not finished */
    enum dl2_part own_part;     /* the split that the whole dataset is, because of where it lies */
    unsigned tables; /* set by open(): the partitions of a table, in their order; 0: none */
    /* The samples of each partition: those of partition p begin at by_partition[starts[p]]. */
    unsigned partitions;
    uint32_t *by_partition, *starts;
    bool is_in_order;        /* as dl2_dataset_is_in_order() */
    const char *label_field; /* of JSON, which gave the labels, the reader's; NULL: none did */
    char *remark;            /* more messages, of the reader, a line each; NULL: none */
    char *name_note;         /* of masks and label files by other names or elsewhere, likewise */
    char *aside;             /* and one that need not matter; NULL: none */
    char **class_files;      /* dl2_dataset_class_file() */
    size_t class_file_count;
    size_t all_images; /* whatever the split */
    /* Counts of all samples, whatever the split, and the name of the first sample of each part. */
    size_t part_counts[DL2_MAX_PARTS], unlabeled[DL2_MAX_PARTS];
    const char *part_names[DL2_MAX_PARTS];
    size_t taken;    /* samples for training that the subset has; of no meaning without one */
    char **messages; /* for dl2_dataset_message(): the layout, the warnings, others */
    size_t message_count, warning_count;
};

/* The reader's number of image `image` of the split. */
static inline size_t dl2_reader_number(const struct dl2_dataset *dataset, size_t image)
{
    return dataset->chosen ? dataset->chosen[image] : image;
}

/* An image by the reader's number. */
static inline struct dl2_entry dl2_reader_entry(const struct dl2_dataset *dataset, size_t number)
{
    struct dl2_entry entry = dataset->container->reader->describe(dataset, number);
    if (dataset->labels && entry.sample.label >= 0)
        entry.sample.label = dataset->labels[entry.sample.label];
    return entry;
}

/* Are samples clips, and not images? */
static inline bool dl2_has_clips(const struct dl2_dataset *dataset)
{
    return dataset->clips && !dataset->by_frame;
}

/* ---- reader.c */

/* Copies the names, in label order, into dataset->classes; those of splits into ->parts. */
int dl2_reader_set_classes(struct dl2_dataset *dataset, const char *const *names, unsigned count,
                           struct dl2_error *error);
int dl2_reader_set_parts(struct dl2_dataset *dataset, const char *const *names, unsigned count,
                         struct dl2_error *error);
/* Makes room for dataset->names if images have them. */
int dl2_reader_make_names(struct dl2_dataset *dataset, struct dl2_error *error);
void dl2_reader_free_names(struct dl2_dataset *dataset);
/* The path of struct dl2_sample of the image with this number; without a file's or table's name if
 * memory runs out. */
const char *dl2_reader_path(const struct dl2_dataset *dataset, size_t number);

/* relabel.c: DL2_ERR_ARGUMENT for a name that comes twice. */
int dl2_classes_check_names(const char *path, const char *const *names, unsigned count,
                            struct dl2_error *error);

/*
 * clips.c: finds the clips of a dataset that its reader has opened, or that there are none. Sets
 * dataset->clips, clip_keys and clip_note, and dataset->chosen to all images in the order of the
 * clips, unless they have that order.
 */
int dl2_clips_find(struct dl2_dataset *dataset, const char *path,
                   const struct dl2_dataset_options *options, struct dl2_error *error);
/* Gives all clips, and images by their numbers, keys that live as long as the dataset. Takes both
 * arrays over. */
int dl2_clips_set_keys(struct dl2_dataset *dataset, const char **clips, const char **frames,
                       struct dl2_error *error);
void dl2_clips_free(struct dl2_dataset *dataset);
/* The key of a clip, and of the image with this number of the reader's. */
const char *dl2_clip_key(const struct dl2_dataset *dataset, const struct dl2_clip *clip);
const char *dl2_frame_key(const struct dl2_dataset *dataset, size_t number);
/* The number among all clips, for dl2_clip.number; UINT32_MAX if no clip has this key. */
uint32_t dl2_clip_find(const struct dl2_dataset *dataset, const char *key, size_t length);
/* Clip `index` of the split that an image is a frame of. */
size_t dl2_clip_of_image(const struct dl2_dataset *dataset, size_t image);

/* ---- choose.c: which images the dataset has; count, chosen and clips are those of all before */

/* Counts the samples of each part, and leaves those of the split that was asked for. */
int dl2_choose_split(struct dl2_dataset *dataset, const char *path,
                     const struct dl2_dataset_options *options, struct dl2_error *error);
/* Says why there are no samples in the split `name`. */
int dl2_choose_refuse_empty(const struct dl2_dataset *dataset, const char *path, const char *name,
                            struct dl2_error *error);
/* Sorts the samples of the split by the partitions that they lie in. */
int dl2_choose_partitions(struct dl2_dataset *dataset, struct dl2_error *error);
void dl2_choose_forget_partitions(struct dl2_dataset *dataset);

/* layout.c: makes the messages of a dataset whose samples are counted. */
int dl2_dataset_describe(struct dl2_dataset *dataset, const char *path,
                         const struct dl2_dataset_options *options, struct dl2_error *error);

#endif
