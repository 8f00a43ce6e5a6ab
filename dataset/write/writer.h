/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writing packed datasets: encoded samples in, one container out.
 *
 *   gulp  GulpIO's data_N.gulp, meta_N.gmeta and label2idx.json, as GulpIO's own reader opens them
 *   tar   WebDataset's shards, shard-000000.tar, with NAME.jpg and NAME.cls for each sample
 *   postgresql  a table, if the path is the address of one; all of it in one transaction
 *
 * The path of the first two may be s3://BUCKET/PREFIX: files are made in TMPDIR and sent one by
 * one.
 *
 * Each but the last has a small binary index, dl2-index.bin (docs/formats/datasets.md), with which
 * a dataset opens in milliseconds, and which holds a check sum of every sample. Shards are written
 * under temporary names, and the index is written last. Until then the file .dl2-unfinished lies
 * beside them, also after SIGKILL, and dl2_dataset_open() refuses the folder.
 *
 * Threads: one at a time. The same samples in the same order give the same bytes.
 */
#ifndef DL2_DATASET_WRITER_H
#define DL2_DATASET_WRITER_H

#include "common/error.h"
#include "common/slices.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Containers go by their names, as in dl2_dataset_container(). This is the name of container
 * `number` that can be written to a folder, NULL after the last. The first is "folder".
 */
const char *dl2_container_name(size_t number);

/* Describes the container of this name in a noun phrase, for --help. */
const char *dl2_container_summary(const char *name);

/* Why the container of this name leaves out some of what lies beside images, for messages. */
const char *dl2_container_leaves_out(const char *name);

/* Can the container of this name hold clips? And as one item each, whatever its frames' names? */
bool dl2_container_holds_clips(const char *name);
bool dl2_container_has_clip_items(const char *name);

/* Are the classes of this container the folders that its files lie in? */
bool dl2_container_has_class_folders(const char *name);
struct dl2_dataset;
/*
 * Would the samples have the same classes if each lay at its key in a folder, where folders are the
 * classes and are numbered by name? DL2_ERR_UNSUPPORTED names a sample of another class, or of
 * another number. *lost counts those that would lie in no folder, and so lose their class.
 */
int dl2_dataset_check_class_folders(const struct dl2_dataset *dataset, size_t *lost,
                                    struct dl2_error *error);

/* Is this the name of a container that struct dl2_writer writes? Folders are written by file. */
bool dl2_container_is_packed(const char *name);

/*
 * Prints all containers, a line each with tabs between its columns: name, "read" or "read,write",
 * extensions of its files ("-": any), summary.
 */
void dl2_container_list(FILE *out);

struct dl2_writer_options {
    const char *container;  /* its name: a packed one */
    uint64_t shard_bytes;   /* a shard is closed when it would grow beyond this; 0: 256 MiB */
    uint32_t shard_samples; /* or beyond this many samples; 0: the container's own limit */
    /* So many shards of each split, whatever their bytes, with numbers of images that differ by at
     * most one; 0: as the two above say. Of images alone, and for dl2_writer_open_like(), whose
     * source stays until the end. */
    uint32_t shards;
    /* Keys that start with a split's name are of that split, which becomes a folder of its own.
     * Beside train, val and test any folder is a split, for samples with a class if there are any.
     */
    bool has_parts;
    /* Finds how samples can be cut, as dl2_image_slice() does; NULL: they are not cut. */
    dl2_slice_function slice;
};

struct dl2_writer;

/*
 * Begins a container at `path`, with classes in label order. A container that was written there
 * before is removed first. DL2_ERR_ARGUMENT if `path` holds anything else but dl2-variant.json(l).
 */
int dl2_writer_open(const char *path, const struct dl2_writer_options *options,
                    const char *const *classes, unsigned class_count, struct dl2_writer **out,
                    struct dl2_error *error);

/* The same for a copy of `source`: with its classes, and has_parts as it has. */
struct dl2_dataset;
int dl2_writer_open_like(const char *path, const struct dl2_writer_options *options,
                         const struct dl2_dataset *source, struct dl2_writer **out,
                         struct dl2_error *error);

/* Clears the place of such a container and marks it as one that is being written, so that nobody
 * reads it until a later dl2_writer_open_like() has completed it. */
int dl2_writer_reserve(const char *path, const struct dl2_writer_options *options,
                       const struct dl2_dataset *source, struct dl2_error *error);

/*
 * DL2_ERR_ARGUMENT for the address of a table with words that have no effect on writing, such as
 * timeout=, and for http://; the message says why. dl2_writer_open() asks, too.
 */
int dl2_writer_check_place(const char *path, struct dl2_error *error);

/*
 * Appends one sample. `key` is its path without extension ("train/rose/0017"), and no other sample
 * may have it; `extension` has no dot and is not empty; `label` is -1 for none. DL2_ERR_UNSUPPORTED
 * means that the container cannot hold this sample (names in gulp must be UTF-8); nothing was
 * written then, and other samples may follow.
 */
int dl2_writer_add(struct dl2_writer *writer, const char *key, const char *extension, int label,
                   const void *data, size_t size, struct dl2_error *error);

/*
 * The same for a sample that has something beside its image; `beside` may be NULL. What the
 * container cannot hold is left out and counted.
 */
struct dl2_sidecars;
int dl2_writer_add_with_sidecars(struct dl2_writer *writer, const char *key, const char *extension,
                                 int label, const void *data, size_t size,
                                 const struct dl2_sidecars *sidecars, struct dl2_error *error);

/* A frame of a clip. */
struct dl2_writer_frame {
    const char *extension;
    const void *data;
    size_t size;
};
/*
 * Appends a clip whole, or nothing of it: frames in order, in GulpIO as one item called `key`, in
 * tar as KEY/00000, KEY/00001... What lies beside it goes to the item, or to its first frame.
 * DL2_ERR_UNSUPPORTED for a table.
 */
int dl2_writer_add_clip(struct dl2_writer *writer, const char *key, int label,
                        const struct dl2_writer_frame *frames, size_t count,
                        const struct dl2_sidecars *sidecars, struct dl2_error *error);

/* Says what has been left out so far and why, for people: a string to free, or NULL if nothing. */
char *dl2_writer_left_out(const struct dl2_writer *writer);

/* Writes the rest and the index, which completes the container. */
int dl2_writer_finish(struct dl2_writer *writer, struct dl2_error *error);
/* A server does not answer: dl2_writer_close() leaves what was sent, with its mark, to the next
 * run, instead of asking that server to remove it. */
void dl2_writer_leave(struct dl2_writer *writer);
/* Frees the writer. Removes what was written if dl2_writer_finish() has not succeeded. */
void dl2_writer_close(struct dl2_writer *writer);

#ifdef __cplusplus
}
#endif

#endif
