/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dl2-transcode copy: a dataset's encoded bytes as they are, in another container or out of one.
 *
 * DEST itself becomes the container, or the class folders. Keys, labels, classes, parts and bytes
 * stay the same; so does a dl2-variant.json, and what lies beside images. A packed DEST that was
 * copied from SOURCE as it is now is left alone, and else made again as a whole. Files of a folder
 * get the times of their sources. Only those that are missing, or of another size or time, are
 * written; images that SOURCE lacks are named, or removed where that is asked for. What an earlier
 * copy has put beside images and SOURCE lacks is removed; other files are left alone.
 *
 * A subset is one of the images for training, or of all where no names are of splits; SOURCE is not
 * a variant then, since a summary is of all its images.
 */
#ifndef DL2_TRANSCODE_COPY_H
#define DL2_TRANSCODE_COPY_H

#include "transcode/transcode.h"

struct dl2_copy_result {
    size_t images, written;
    size_t failed;  /* images, and lines of lists of labels whose clip is not there */
    uint64_t bytes; /* of the images */
};

/* DL2_ERR_ARGUMENT where DEST and SOURCE are in each other's way. Of the options: source, dest,
 * samples, members, labels, subset, pack, shuffle, force, prune, progress and jobs, of which each
 * reads two samples. */
int dl2_copy(const struct dl2_transcode_options *options, struct dl2_copy_result *result,
             struct dl2_error *error);

#endif
