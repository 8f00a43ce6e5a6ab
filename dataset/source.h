/*
 * What a kind of dataset supplies; only this room's files include it. A new kind is one file with a
 * `struct dl2_source` and a line in dataset.c's table.
 */
#ifndef DL2_DATASET_SOURCE_H
#define DL2_DATASET_SOURCE_H

#include "dataset/split.h"

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
    const char *container;  /* NULL: the source's name */
    bool has_parts;         /* the data come with splits of their own */
    bool by_rule;           /* the seeded rule split them */
    enum dl2_part own_part; /* the split that the whole dataset is, where it lies in one */
    unsigned own_depth;     /* as of dl2_part_of_path() */
    /* Of all samples, whatever the split that was asked for: see dl2_dataset_note(). */
    size_t part_counts[DL2_PARTS], unlabelled[DL2_PARTS];
    const char *part_folders[DL2_PARTS];
    unsigned notes; /* enum dl2_index_notes */
    char *layout;
    char **warnings;
    size_t warning_count;
};

extern const struct dl2_source dl2_source_folder;
extern const struct dl2_source dl2_source_idx;
extern const struct dl2_source dl2_source_packed;

/* Copies the names, in label order, into dataset->classes. */
int dl2_dataset_set_classes(struct dl2_dataset *dataset, const char *const *names, unsigned count,
                            struct dl2_error *error);

/* Counts a sample for dl2_dataset_layout(). `name` is its path from the root, which stays. */
void dl2_dataset_note(struct dl2_dataset *dataset, enum dl2_part part, int label, const char *name);

/*
 * parts[i] for samples that come without splits of their own: the split that the whole dataset lies
 * in, else by the seeded rule. Call where has_parts is false, and when the classes are known.
 */
int dl2_dataset_assign_parts(struct dl2_dataset *dataset, const struct dl2_dataset_options *options,
                             const char *const *keys, const int *labels, size_t count,
                             uint8_t *parts, struct dl2_error *error);

/* Does a sample belong to the split that was asked for? Not where it has no class, but others do.
 */
bool dl2_dataset_wants(const struct dl2_dataset *dataset, enum dl2_split split, enum dl2_part part,
                       int label);

#endif
