/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Annotations that a source folder has of its images in files of their own, and what variants get
 * of them:
 *
 *   FILE.json  COCO's: sizes, boxes, areas, polygons, run lengths and keypoints scaled, file names
 *              with the variant's extension, without images that the variant lacks
 *   data.yaml  Ultralytics': without `path`, which leads to the source's images; made of the names
 *              of classes if these lie elsewhere: above the source, or in a classes.txt that the
 *              variant does not get
 *   classes.txt  LabelImg's, in any folder, as it is; not in a packed variant
 *
 * They have the same names in a variant, also in a packed one; on a server it has none. YOLO's
 * label files are sidecars (transcode/variant/sidecar_files.h).
 *
 * Threads: one at a time.
 */
#ifndef DL2_TRANSCODE_ANNOTATIONS_H
#define DL2_TRANSCODE_ANNOTATIONS_H

#include "common/progress.h"
#include "transcode/variant/variant.h"

/* Lists the files of a source that may be annotations, in source->annotations, and finds names of
 * classes elsewhere. `root`: its folder. `packed`: the variants are. */
int dl2_annotations_list(struct dl2_source_items *source, const char *root, bool packed,
                         struct dl2_progress *progress, struct dl2_error *error);

/*
 * Writes the annotations of variants whose images are all made, before the variants are
 * completed, unless they are there already. A file that cannot be scaled is no error, but told with
 * its reason, as is what a scaled file leaves out.
 */
int dl2_annotations_write(const struct dl2_source_items *source, struct dl2_variant *variants,
                          size_t count, struct dl2_progress *progress, struct dl2_error *error);

/* What of the source's annotations its resized variants lack: a string to free, or NULL. */
char *dl2_annotations_message(const struct dl2_source_items *source, bool on_server);

#endif
