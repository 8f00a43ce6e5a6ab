/* SPDX-License-Identifier: BSD-2-Clause */
/* The images of a source, or its clips, as dl2-transcode makes variants of them. */
#ifndef DL2_TRANSCODE_SOURCE_ITEMS_H
#define DL2_TRANSCODE_SOURCE_ITEMS_H

#include "common/error.h"
#include "dataset/dataset.h"

#include <stdint.h>

/* A source image, or a clip. Strings are the dataset's unless said otherwise. */
struct dl2_source_item {
    size_t sample;    /* its number in the dataset */
    const char *key;  /* path without extension */
    const char *name; /* path from the source's root */
    const char *path; /* for messages; of a clip its key */
    /* The same as UTF-8, where what is not is replaced: then the item's own strings, to free. */
    const char *key_text, *name_text;
    uint64_t bytes;       /* of all frames */
    int64_t mtime_ns;     /* of a clip, of its latest frame */
    int label;            /* for packed variants */
    size_t same_key_as;   /* the item that has the key already, or SIZE_MAX */
    uint64_t sidecar_sum; /* dl2_dataset_sidecar_sum(); of a clip over its frames, too */
};

struct dl2_source_items {
    struct dl2_source_item *items; /* in the source's order */
    size_t count;
    size_t *by_key; /* item numbers sorted by key_text */
    size_t ignored; /* files that are not images */
    const struct dl2_dataset *dataset;
    bool label_folders; /* dl2_dataset_has_label_folders() */
    /* For a folder, by dl2_annotations_list(): the folder, files of annotations in it that variants
     * get, sorted, and how many they do not. */
    const char *root;
    char **annotations;
    size_t annotation_count, unscaled;
    char *class_names; /* what variants get as data.yaml, where it has none; or NULL */
};

/* Lists the samples of a dataset, which must outlive them. If several images would be written to
 * one name, the first has it. Zero the struct first; free it on failure, too. */
int dl2_source_items_list(struct dl2_source_items *source, const struct dl2_dataset *dataset,
                          struct dl2_error *error);
void dl2_source_items_free(struct dl2_source_items *source);

/*
 * The first item that is called `text` in JSON, or SIZE_MAX. Where two keys that aren't UTF-8 look
 * alike there, the line's source and size tell whose it is well enough: at worst an image is made
 * again.
 */
size_t dl2_source_items_find(const struct dl2_source_items *source, const char *text);

/* Is the key of an item `key`, byte for byte? */
bool dl2_source_items_has(const struct dl2_source_items *source, const char *key);

#endif
