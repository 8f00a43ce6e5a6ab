/*
 * What a kind of dataset supplies; only this room's files include it. A new kind is one file with a
 * `struct dl2_source` and a line in dataset.c's table.
 */
#ifndef DL2_DATASET_SOURCE_H
#define DL2_DATASET_SOURCE_H

#include "dataset/dataset.h"

struct dl2_source {
    const char *name;
    const char *looks_for; /* for the message where no source knows a path */
    /* Does `path` hold this kind? Looks at names only. */
    bool (*probe)(const char *path);
    /*
     * Fills in dataset->state, count, classes and class_count for the split that is asked for.
     * Finding no samples is not an error here. After a failure close() is called on what there is.
     */
    int (*open)(struct dl2_dataset *dataset, const char *path,
                const struct dl2_dataset_options *options, struct dl2_error *error);
    void (*close)(struct dl2_dataset *dataset);
    void (*sample)(const struct dl2_dataset *dataset, size_t index, struct dl2_sample *sample);
    int (*read)(const struct dl2_dataset *dataset, size_t index, struct dl2_bytes *scratch,
                const uint8_t **data, size_t *size, struct dl2_error *error);
    /* NULL where samples lie nowhere as they are, and where there are no check sums. */
    bool (*locate)(const struct dl2_dataset *dataset, size_t index, struct dl2_location *location);
    int (*verify)(const struct dl2_dataset *dataset, size_t index, const uint8_t *data, size_t size,
                  struct dl2_error *error);
    /* NULL where nobody knows of slices. The range is one of those that there are. */
    bool (*cuts)(const struct dl2_dataset *dataset, size_t index, struct dl2_cuts *cuts);
    int (*read_slices)(const struct dl2_dataset *dataset, size_t index,
                       struct dl2_slice_range range, struct dl2_bytes *scratch,
                       const uint8_t **data, size_t *size, struct dl2_error *error);
    bool (*locate_slices)(const struct dl2_dataset *dataset, size_t index,
                          struct dl2_slice_range range, struct dl2_location *location);
    int (*verify_slices)(const struct dl2_dataset *dataset, size_t index,
                         struct dl2_slice_range range, const uint8_t *data, size_t size,
                         struct dl2_error *error);
    /* NULL: every sample is an item of its own, found by going through them all. */
    bool (*find)(const struct dl2_dataset *dataset, const char *id, size_t *first, size_t *count);
};

struct dl2_dataset {
    const struct dl2_source *source;
    void *state; /* the source's own; NULL until it is made */
    size_t count;
    char **classes; /* in label order; one block with its strings */
    unsigned class_count;
    const char *container; /* NULL: the source's name */
    bool has_parts;        /* the data come with train/ and val/ */
};

extern const struct dl2_source dl2_source_folder;
extern const struct dl2_source dl2_source_idx;
extern const struct dl2_source dl2_source_packed;

/* Copies the names, in label order, into dataset->classes. */
int dl2_dataset_set_classes(struct dl2_dataset *dataset, const char *const *names, unsigned count,
                            struct dl2_error *error);

/*
 * The seeded rule of dataset.h for data that come without train/ and val/: sets is_val[i] for each
 * of `count` samples. Labels are -1 .. class_count-1; those with -1 are split like one more class.
 */
int dl2_split_by_rule(const struct dl2_dataset_options *options, const char *const *keys,
                      const int *labels, size_t count, bool *is_val, struct dl2_error *error);

#endif
