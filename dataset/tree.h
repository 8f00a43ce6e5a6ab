/*
 * What names alone say of a tree of samples: [SPLIT/]CLASS/.../FILE (dataset.h). Folders have such
 * names, and so do packed datasets that bring no labels of their own. Only this room's files
 * include it.
 */
#ifndef DL2_DATASET_TREE_H
#define DL2_DATASET_TREE_H

#include "dataset/split.h"

struct dl2_tree {
    bool has_parts;  /* folders named after splits are splits, not classes */
    uint8_t *parts;  /* enum dl2_part, one a name; all none where has_parts is false */
    int32_t *labels; /* one a name; -1: outside every class */
    char **classes;  /* in label order; one block with its strings */
    unsigned class_count;
};

/* `names` are paths from the root, in any order; those of one class in a row cost the least. */
int dl2_tree_read(const char *const *names, size_t count, struct dl2_tree *tree,
                  struct dl2_error *error);
void dl2_tree_free(struct dl2_tree *tree);

#endif
