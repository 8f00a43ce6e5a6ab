/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Augmentation: operations on a training image, or a patch of a volume, after its crop, in the
 * order in which a text names them. The text is a list with commas; each operation may have
 * settings after colons:
 *
 *     randaugment:n=2:m=9,erase:p=0.25
 *
 * Every operation has a setting p, the probability that it is applied. The other settings, their
 * ranges and defaults are in one table (augment.c), which dl2_augmentation_row() shows. What the
 * operations do is in pixels/operations.h and pixels/policies.h. NAME@FILE is an operation of a
 * shared object of the user's (pixels/plugin.h), whose path has no comma and no colon.
 *
 * All that is drawn comes from the caller's random numbers, so an image that is augmented with the
 * same numbers gets the same bytes. Threads: any number at once may run one augmentation.
 */
#ifndef DL2_PIXELS_AUGMENT_H
#define DL2_PIXELS_AUGMENT_H

#include "common/random.h"
#include "pixels/operations.h"
#include "pixels/volume_operations.h"

struct dl2_augmentation;

/*
 * DL2_ERR_ARGUMENT for a name that is none, a value out of its range, settings that do not go
 * together or have no effect, a plug-in that cannot be used; the message names the word. Free *out
 * with dl2_augmentation_free().
 */
int dl2_augmentation_parse(const char *text, struct dl2_augmentation **out,
                           struct dl2_error *error);

/* Parsing the text would run code of files that it names. Text of a report or of a server's client
 * must not. */
bool dl2_augmentation_names_file(const char *text);

/* The text with every setting of every operation, and the check sums of plug-ins, NAME@FILE#SUM:
 * equal if the augmentations are. It can be parsed again; another file is refused then. */
const char *dl2_augmentation_text(const struct dl2_augmentation *augmentation);

/*
 * Operations are on images, on volumes, or on both. DL2_ERR_ARGUMENT, naming the first that is not
 * on what is to be augmented. Call it before any of the functions below.
 */
int dl2_augmentation_check(const struct dl2_augmentation *augmentation, bool volumes,
                           struct dl2_error *error);

/* Operations of an augmentation, and their names. */
size_t dl2_augmentation_count(const struct dl2_augmentation *augmentation);
const char *dl2_augmentation_name(const struct dl2_augmentation *augmentation, size_t number);
/* The name of the first that moves pixels of images; NULL: none does. */
const char *dl2_augmentation_moves(const struct dl2_augmentation *augmentation);
/* Runs one of them; call it for all in their order. */
void dl2_augmentation_run_volume(const struct dl2_augmentation *augmentation, size_t number,
                                 struct dl2_random *random, struct dl2_voxels *voxels);

/* Fails where a plug-in's operation does, with DL2_ERR_FORMAT; the image is to be left out then. */
int dl2_augmentation_run(const struct dl2_augmentation *augmentation, struct dl2_random *random,
                         struct dl2_pixels *pixels, struct dl2_error *error);

void dl2_augmentation_free(struct dl2_augmentation *augmentation);

/* Row `number` of the table: the name, then all settings with their defaults as a text, which is
 * the caller's to free, and a summary. False after the last row, or without memory. */
bool dl2_augmentation_row(size_t number, char **text, const char **summary);

#endif
