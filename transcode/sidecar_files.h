/* SPDX-License-Identifier: BSD-2-Clause */
/* What lies beside images in a folder that dl2-transcode writes: "rose/17.json" by "rose/17.jpg".
 */
#ifndef DL2_TRANSCODE_BESIDE_FILES_H
#define DL2_TRANSCODE_BESIDE_FILES_H

#include "dataset/sidecars.h"

/* The keys of the images of a folder. */
struct dl2_folder_keys {
    bool (*has)(const void *context, const char *key);
    const void *context;
};

/* Is a file ROOT/`path` beside one of the images, and not an image of its own? By names alone. */
bool dl2_sidecars_is_companion(const struct dl2_folder_keys *keys, const char *path);

/*
 * Can a folder hold this beside the image `key`? Not if readers would take the file for an image or
 * for another image's. `data` NULL: the name alone decides.
 */
bool dl2_sidecars_can_hold(const struct dl2_folder_keys *keys, const char *key,
                           const char *extension, const uint8_t *data, size_t size);

/* Writes ROOT/KEY.EXTENSION, unless a file with these bytes is there, to a folder that is there. */
int dl2_sidecars_write(const char *root, const char *key, const struct dl2_sidecar *item,
                       struct dl2_error *error);

/* Sorts two NULL-ended lists of paths and removes the files below root that the first has and the
 * second lacks. */
int dl2_sidecars_remove_others(const char *root, char **old, char **wanted,
                               struct dl2_error *error);

#endif
