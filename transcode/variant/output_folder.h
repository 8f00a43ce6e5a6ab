/* SPDX-License-Identifier: BSD-2-Clause */
/* The folder that dl2-transcode writes to: its place relative to the source, and its lock. */
#ifndef DL2_TRANSCODE_OUTPUT_FOLDER_H
#define DL2_TRANSCODE_OUTPUT_FOLDER_H

#include "transcode/transcode.h"

struct dl2_variant;

/* Why a file can't be written, with its path, and "" or " with 3 more files". */
#define DL2_OUTPUT_IN_THE_WAY                                                                      \
    "%s is in the way%s: dl2-transcode did not write it; remove it, or name another DEST"

/* Is DEST a folder of this machine, and not the address of a table or of an object store? */
bool dl2_output_is_folder(const char *dest);

/*
 * Refuses a DEST that would be written over SOURCE, or that lies in it: whoever reads SOURCE later
 * would take the variants for images of it. DL2_ERR_ARGUMENT.
 */
int dl2_output_check_variants(const char *source, const char *dest, const char *container,
                              const struct dl2_variant *variants, size_t count,
                              struct dl2_error *error);

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
 * The lock of a DEST, a folder that is there. Either one run has it, or any number of parts of one
 * run share it. It ends with the process; its file stays, since another run may be waiting.
 */
struct dl2_output_lock {
    int fd; /* -1: none */
};

/* Waits until no other run writes to `dest`, and says so where it has to. */
int dl2_output_lock(const char *dest, struct dl2_progress *progress, struct dl2_output_lock *lock,
                    struct dl2_error *error);
/* Makes and locks a DEST that is a folder. It is to be a copy: neither may lie in the other, or
 * DL2_ERR_ARGUMENT. */
int dl2_output_begin_copy(const struct dl2_transcode_options *options, struct dl2_output_lock *lock,
                          struct dl2_error *error);
/* Begins a copy of a dataset whose container is packed, and refuses a packed DEST for another. */
int dl2_output_open_copy(const struct dl2_transcode_options *options,
                         const struct dl2_dataset *dataset, struct dl2_writer **writer,
                         struct dl2_error *error);

/*
 * The same for a part. *joins: other parts are at work. Else this one has the lock alone, so that
 * it can put things in order, until dl2_output_share(). DL2_ERR_CANCELED if those at work have
 * another digest: another command, other versions or another number of parts.
 */
int dl2_output_lock_part(const char *dest, const char *digest, struct dl2_progress *progress,
                         struct dl2_output_lock *lock, bool *joins, struct dl2_error *error);
int dl2_output_share(struct dl2_output_lock *lock, struct dl2_error *error);
/* Takes the lock alone if nobody else has it; otherwise gives it up, and *alone is false. */
int dl2_output_take_over(struct dl2_output_lock *lock, bool *alone, struct dl2_error *error);
void dl2_output_unlock(struct dl2_output_lock *lock);

#endif
