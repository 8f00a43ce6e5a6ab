/*
 * Which samples are for training, for validation and for testing. Only this room's files include
 * it.
 *
 * Folders and shards say it by their names: train and training, val, valid, validation and dev,
 * test and testing, in any case. Where names say nothing, a seeded rule does (dataset.h).
 */
#ifndef DL2_DATASET_SPLIT_H
#define DL2_DATASET_SPLIT_H

#include "dataset/dataset.h"

#include <stddef.h>
#include <stdint.h>

/* The split of a sample: the numbers of enum dl2_split, as the index stores them. */
enum dl2_part { DL2_PART_NONE, DL2_PART_TRAIN, DL2_PART_VAL, DL2_PART_TEST, DL2_PARTS };

/* "train", "val", "test"; "" for none. */
const char *dl2_part_name(enum dl2_part part);

/* The split that a folder of this name holds. */
enum dl2_part dl2_part_of_folder(const char *name, size_t length);
/* The split that a shard's name says by one of its words: "imagenet-train-000042.tar". */
enum dl2_part dl2_part_of_shard(const char *name);

/* Samples of a tree, by the split that its top folder is named after (none: any other folder). */
struct dl2_part_census {
    size_t direct[DL2_PARTS]; /* SPLIT/FILE */
    size_t deep[DL2_PARTS];   /* SPLIT/FOLDER/.../FILE */
};

/*
 * Are the folders that are named after splits splits, or classes that happen to be called so? They
 * are splits where there is no other folder, and where train and val are both there. Beside other
 * folders the depth decides: they are splits where all images lie in folders of folders.
 */
bool dl2_census_has_parts(const struct dl2_part_census *census);

/*
 * The split that a path lies in: PARENT/train with PARENT/val or PARENT/test beside it, or alone in
 * PARENT; PARENT/val or PARENT/test with PARENT/train beside it; a shard by its own name. *depth is
 * 0 for such a path, and 1 for a folder that lies in such a path.
 */
enum dl2_part dl2_part_of_path(const char *path, unsigned *depth);

/*
 * The seeded rule of dataset.h: sets parts[i] for each of `count` samples. Labels are
 * -1 .. class_count-1; samples with -1 are split like one more class.
 */
int dl2_split_by_rule(const struct dl2_dataset_options *options, const char *const *keys,
                      const int *labels, size_t count, uint8_t *parts, struct dl2_error *error);

#endif
