/* SPDX-License-Identifier: BSD-2-Clause */
/* What lies beside images in a folder that dl2-transcode writes: "rose/17.json" by "rose/17.jpg".
 */
#ifndef DL2_TRANSCODE_BESIDE_FILES_H
#define DL2_TRANSCODE_BESIDE_FILES_H

#include "dataset/sidecars.h"

/* A message about files beside images that are not of SOURCE: with the folder, the first one's path
 * below it and their number. */
#define DL2_SIDECARS_FOREIGN                                                                       \
    "%s/%s: it lies beside an image and is not of SOURCE; such files, %zu here, are left alone"

/* The keys of the images of a folder. */
struct dl2_folder_keys {
    bool (*has)(const void *context, const char *key);
    const void *context;
    bool label_folders; /* what "txt" is beside images/NAME lies in labels/NAME.txt */
};

/* The path below the folder of what lies beside an image: "rose/17.json". A string to free. */
int dl2_sidecars_path(bool label_folders, const char *key, const char *extension, char **path,
                      struct dl2_error *error);

/* Is a file ROOT/`path` beside one of the images, and not an image of its own? By names alone. */
bool dl2_sidecars_is_companion(const struct dl2_folder_keys *keys, const char *path);

/*
 * Can a folder hold this beside the image `key`? Not if readers would take the file for an image or
 * for another image's. `data` NULL: the name alone decides.
 */
bool dl2_sidecars_can_hold(const struct dl2_folder_keys *keys, const char *key,
                           const char *extension, const uint8_t *data, size_t size);

/* Writes what lies beside an image of ROOT, unless a file with these bytes is there. */
int dl2_sidecars_write(const char *root, bool label_folders, const char *key,
                       const struct dl2_sidecar *item, struct dl2_error *error);

/* Sorts two NULL-ended lists of paths and removes the files below root that the first has and the
 * second lacks. */
int dl2_sidecars_remove_others(const char *root, char **old, char **wanted,
                               struct dl2_error *error);

/* Is the path in a sorted list? */
bool dl2_sidecars_list_has(char *const *list, size_t count, const char *path);

/* How many of the sorted list `there` neither of the two has, which are sorted by then; the first
 * of these in *first. A list that is NULL is empty. */
size_t dl2_sidecars_foreign(char *const *there, char *const *old, char *const *wanted,
                            const char **first);

#endif
