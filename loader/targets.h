/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What samples have beside their images, as bytes: JSON, captions, several labels. They are read in
 * the read stage, past all caches of the loader, and travel with the sample into its batch.
 *
 * Threads: one at a time for each sample; a list does not change.
 */
#ifndef DL2_LOADER_TARGETS_H
#define DL2_LOADER_TARGETS_H

#include "common/error.h"
#include "dataset/dataset.h"
#include "loader/loader_config.h"

/* The extensions that are read, in the order of dl2_loader_config.targets. */
struct dl2_target_list {
    char *text;  /* as it was given */
    char *names; /* the same, each name ended by 0 */
    unsigned count;
};

/* One target of one sample. */
struct dl2_target_bytes {
    struct dl2_bytes bytes;
    bool there;
};

/* Expects zeroed memory; `text` NULL: none. DL2_ERR_ARGUMENT for what is no list of extensions. */
int dl2_target_list_parse(struct dl2_target_list *list, const char *text, struct dl2_error *error);
void dl2_target_list_free(struct dl2_target_list *list);

/* Reads all targets of a sample into targets[count]. */
int dl2_targets_read(const struct dl2_target_list *list, const struct dl2_dataset *dataset,
                     uint32_t index, struct dl2_target_bytes *targets, struct dl2_error *error);
/* Exchanges a sample's targets with those of its place in a batch, and shows them in `out`; with
 * `from` NULL it has none. */
void dl2_targets_place(const struct dl2_target_list *list, struct dl2_target_bytes *from,
                       struct dl2_target_bytes *to, struct dl2_target *out);
size_t dl2_targets_memory(const struct dl2_target_bytes *targets, unsigned count);
void dl2_targets_free(struct dl2_target_bytes *targets, size_t count);

#endif
