/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tells which samples are for training, validation and testing, and their class. The
 * names of folders and shards tell this; without such names a seeded rule splits (dataset.h). Only
 * this room's files include this header.
 */
#ifndef DL2_DATASET_SPLIT_H
#define DL2_DATASET_SPLIT_H

#include "dataset/dataset.h"

#include <stddef.h>
#include <stdint.h>

/*
 * The split of a sample as a number, as the index stores it. Numbers from DL2_PARTS on are of the
 * splits that a dataset has by names of its own: DL2_PARTS + i is name i of its list.
 */
enum dl2_part { DL2_PART_NONE, DL2_PART_TRAIN, DL2_PART_VAL, DL2_PART_TEST, DL2_PARTS };
enum { DL2_MAX_PARTS = 255 };

/* The fraction of the seeded rule where none is given. */
double dl2_val_fraction(const struct dl2_dataset_options *options);

/* Zeroed at first. */
struct dl2_part_list {
    char **names;
    unsigned count;
};

/* "train", "val", "test" or a name of the list; "" for none. */
const char *dl2_part_name(const struct dl2_part_list *list, unsigned part);
/* The number of a split: the words of dl2_part_of_folder() in any case, other names as they are;
 * DL2_PART_NONE if there is none. */
unsigned dl2_part_find(const struct dl2_part_list *list, const char *name, size_t length);
/* The same, but a new name gets the next number. Sets *part to DL2_PART_NONE for what can be no
 * name ("", "all", "a/b", ".x"), and when the numbers are used up. */
int dl2_part_add(struct dl2_part_list *list, const char *name, size_t length, uint8_t *part,
                 struct dl2_error *error);
void dl2_part_list_free(struct dl2_part_list *list);

/* The split that a folder of this name holds: "val", "Validation", "val2017". */
enum dl2_part dl2_part_of_folder(const char *name, size_t length);
/* Where the folder of a split begins in a path: behind "images/" in "images/train/17", else at 0.
 */
size_t dl2_part_prefix(const char *name);
/* The split that a word in a shard's name stands for: "imagenet-train-000042.tar". */
enum dl2_part dl2_part_of_shard(const char *name);

/* Samples of a tree, by the split that its top folder is named after (none: any other folder). */
struct dl2_part_census {
    size_t direct[DL2_PARTS]; /* SPLIT/FILE */
    size_t deep[DL2_PARTS];   /* SPLIT/FOLDER/.../FILE */
};

/*
 * Are the folders that are named after splits really splits, and not classes with such names? They
 * are if there is no other folder, and if train and val are both there. Beside other folders the
 * depth decides: they are splits if all images lie in folders of folders.
 */
bool dl2_census_has_parts(const struct dl2_part_census *census);

/*
 * The split that a path is or lies in: PARENT/train if it is alone in PARENT or beside PARENT/val
 * or PARENT/test; PARENT/val or PARENT/test beside PARENT/train; a shard by its own name. Sets
 * *depth to 0 for such a path, and to 1 for a folder in one.
 */
enum dl2_part dl2_part_of_path(const char *path, unsigned *depth);

/* As dl2_part_of_path(), by the last two parts of an address alone. */
enum dl2_part dl2_part_of_address(const char *text, unsigned *depth);

/*
 * Whether the folder train beside a folder that is a split for validation or testing numbers these
 * classes otherwise, by the folders in it. Then *which is the first such class, and *number
 * what train gives it, -1 for none. False if memory runs out.
 */
bool dl2_part_differs_from_train(const char *path, char *const *classes, unsigned class_count,
                                 unsigned *which, long *number);

/*
 * The seeded rule of dataset.h: sets parts[i] for each of `count` samples. Labels are
 * -1 .. class_count-1; samples with -1 are split like one more class.
 */
int dl2_split_by_rule(const struct dl2_dataset_options *options, const char *const *keys,
                      const int *labels, size_t count, uint8_t *parts, struct dl2_error *error);

/*
 * The rule of struct dl2_subset: sets taken[i] for each of `count` items, all of them for training;
 * keys and labels as above.
 */
int dl2_subset_by_rule(const struct dl2_subset *subset, const char *const *keys, const int *labels,
                       size_t count, bool *taken, struct dl2_error *error);

/* ---- tree.c: what names alone say of a tree of samples: [SPLIT/]CLASS/.../FILE (dataset.h) */

struct dl2_tree {
    bool has_parts;             /* folders named after splits are splits, not classes */
    uint8_t *parts;             /* one a name; all none where has_parts is false */
    struct dl2_part_list names; /* of the other splits */
    int32_t *labels;            /* one a name; -1: outside every class */
    char **classes;             /* in label order; one block with its strings */
    unsigned class_count;
};

/*
 * `names` are paths from the root, in any order; those of one class in a row cost the least. If all
 * of them lie in the splits of a folder "images" (dl2_part_prefix()), each is moved behind it, also
 * for dl2_tree_name_parts(). A folder "images" that would be the only class is none.
 * `apart` (NULL: none) marks names in folders that are no classes in any case, so that they have no
 * say in whether there are splits. Call dl2_tree_free() also after an error.
 */
int dl2_tree_read(const char **names, size_t count, const bool *apart, struct dl2_tree *tree,
                  struct dl2_error *error);
/*
 * Where there are splits, another top folder is a split by its own name if a sample in it has a
 * class, or if there are no classes. Sets parts[i] for each of `count` names
 * whose part is not train, val or test.
 */
int dl2_tree_name_parts(const char *const *names, const int32_t *labels, size_t count,
                        bool has_classes, uint8_t *parts, struct dl2_part_list *list,
                        struct dl2_error *error);
void dl2_tree_free(struct dl2_tree *tree);

#endif
