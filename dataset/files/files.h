/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples that are files of their own: what the readers of a folder and of a list of images share.
 * Both have a struct dl2_files first in dataset->state. Only this room's files include this header.
 */
#ifndef DL2_DATASET_FILES_H
#define DL2_DATASET_FILES_H

#include "dataset/container.h"

struct dl2_file_entry {
    struct dl2_sample sample; /* its strings are the container's */
    uint32_t number;          /* of a remote file; of a list's line while the list is read */
    uint8_t part;
};

struct dl2_files {
    struct dl2_file_entry *entries;
    size_t count;
    size_t ignored;                 /* other files */
    struct dl2_remote_file *remote; /* of a remote folder, by name, or list; else NULL */
    size_t remote_count;
};

/* Extensions of files for a message: each once, in any case, the first few. Zero it. */
enum { DL2_EXTENSIONS_NAMED = 8 };
struct dl2_extensions {
    const char *names[DL2_EXTENSIONS_NAMED]; /* borrowed */
};
void dl2_extensions_add(struct dl2_extensions *extensions, const char *extension);
/* ".heic, .tga" in `list`, of `size` bytes. */
void dl2_extensions_list(const struct dl2_extensions *extensions, char *list, size_t size);

/* Sets parts and labels of all entries, and the dataset's classes, by the samples' names. */
int dl2_files_read_names(struct dl2_dataset *dataset, struct dl2_error *error);
/* Reads a file; `number` is its one among the remote files. */
int dl2_files_load(const struct dl2_files *files, const char *path, size_t number,
                   uint64_t max_bytes, struct dl2_bytes *out, struct dl2_error *error);
void dl2_files_free(struct dl2_files *files);
/* Is this the name of a video file? Its extension decides. */
bool dl2_files_is_video(const char *path);
/* DL2_ERR_UNSUPPORTED for a dataset of videos at `path` where the options take none. */
int dl2_files_check_videos(const struct dl2_dataset *dataset, const char *path,
                           const struct dl2_dataset_options *options, struct dl2_error *error);

/* Is this the name of a list? Its extension decides. */
bool dl2_files_is_list(const char *path);
/* Has this folder, or have folders in it, metadata.csv or metadata.jsonl with labels of images? The
 * container of lists reads them. */
bool dl2_files_has_metadata(const char *path);

/* Functions of struct dl2_reader. */
struct dl2_entry dl2_files_describe(const struct dl2_dataset *dataset, size_t number);
int dl2_files_read(const struct dl2_dataset *dataset, size_t number,
                   const struct dl2_slice_range *slices, struct dl2_bytes *out,
                   struct dl2_error *error);
bool dl2_files_locate(const struct dl2_dataset *dataset, size_t number,
                      const struct dl2_slice_range *slices, struct dl2_location *location);
size_t dl2_files_ignored(const struct dl2_dataset *dataset);

#endif
