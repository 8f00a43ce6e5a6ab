/* SPDX-License-Identifier: BSD-2-Clause */
/* The folder that dl2-transcode writes to: its place relative to the source, and its lock. */
#ifndef DL2_TRANSCODE_OUTPUT_FOLDER_H
#define DL2_TRANSCODE_OUTPUT_FOLDER_H

#include "common/error.h"
#include "common/progress.h"
#include "dataset/dataset.h"

/* `path` with links resolved, and "/" at its end. A string to free, or NULL with errno. */
char *dl2_output_resolve(const char *path);

/* The same of a folder that need not be there yet: what its path will lead to once it is made. */
char *dl2_output_resolve_new(const char *path);

/* Is a resolved path the resolved folder, or does it lie in it? */
bool dl2_output_lies_in(const char *path, const char *folder);

/*
 * Removes the file `name` of the folder `root`, and the folders above it that are empty then. One
 * that is reached by a symbolic link to another place is left alone: *removed is false.
 */
int dl2_output_remove(const char *root, const char *name, bool *removed, struct dl2_error *error);

/* Does a dataset of GulpIO lie at `path` that has items of several frames? */
bool dl2_output_has_clips(const char *path);

/*
 * Can the container of this name hold what `source` has? DL2_ERR_UNSUPPORTED for clips in a
 * container of images alone, and for an image that would be of another class in a folder. Says how
 * many images lose their class there.
 */
int dl2_output_check_source(const struct dl2_dataset *dataset, const char *source,
                            const char *container, struct dl2_progress *progress,
                            struct dl2_error *error);

/*
 * Waits until no other run writes to `dest`, a folder that is there, and says so where it has to.
 * Closing *lock ends it; the lock file stays, since another run may be waiting.
 */
int dl2_output_lock(const char *dest, struct dl2_progress *progress, int *lock,
                    struct dl2_error *error);

#endif
