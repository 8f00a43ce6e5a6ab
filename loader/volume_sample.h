/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A patch of a volume on its way through the sample stage (sample.h): READ draws which part of the
 * volume it shows and reads that, with its labels; TRANSFORM normalizes it; each OPERATION is one
 * of the augmentation; STORE writes it into the batch.
 *
 * Threads: one at a time for each patch.
 */
#ifndef DL2_LOADER_VOLUME_SAMPLE_H
#define DL2_LOADER_VOLUME_SAMPLE_H

#include "loader/fetch.h"
#include "loader/foreground.h"
#include "loader/loader_config.h"
#include "loader/sample_plan.h"
#include "loader/volume_cache.h"
#include "pixels/volume_operations.h"

struct dl2_volume_sample {
    struct dl2_voxels voxels; /* of the output's size */
    struct dl2_patch patch;
    size_t at[3], part[3]; /* where in the patch the volume is, and how much of it */
};

/* Expects zeroed memory, does nothing where the loader has no volumes. Free it in either case. */
int dl2_volume_sample_init(struct dl2_volume_sample *sample, const struct dl2_loader_config *config,
                           struct dl2_error *error);
void dl2_volume_sample_free(struct dl2_volume_sample *sample);

/*
 * Opens sample `index` of a dataset of volumes, and with config->mask its labels; *labels is NULL
 * without. DL2_ERR_FORMAT where there are none, and where the sizes of both or the channels are not
 * those that they should be. Errors name the file. The caller closes both, after an error, too.
 */
int dl2_volume_open_labeled(const struct dl2_dataset *dataset, size_t index,
                            const struct dl2_loader_config *config, struct dl2_volume **volume,
                            struct dl2_volume **labels, struct dl2_error *error);

/* Where a loader's patches come from. */
struct dl2_volume_source {
    const struct dl2_planner *planner;
    struct dl2_foreground *foreground; /* may be NULL if config->foreground is 0 */
    struct dl2_volume_cache *cache;    /* NULL: none */
    struct dl2_fetch *fetch;           /* counts what is read */
};

/* Reads the patch of sample plan->index, whose plan is made here. What was read is added to
 * `stats`. Errors name the file. */
int dl2_volume_sample_read(struct dl2_volume_sample *sample, const struct dl2_volume_source *source,
                           struct dl2_sample_plan *plan, struct dl2_loader_stats *stats,
                           struct dl2_error *error);
void dl2_volume_sample_normalize(struct dl2_volume_sample *sample,
                                 const struct dl2_loader_config *config);
/* Writes the voxels in the type and the layout of the settings. DL2_ERR_FORMAT for values that are
 * too large for the type. */
int dl2_volume_sample_store(const struct dl2_volume_sample *sample,
                            const struct dl2_loader_config *config, void *out,
                            struct dl2_error *error);

/* Checks what settings ask of a dataset of volumes: their type, and the first volume's channels. */
int dl2_volumes_check(const struct dl2_dataset *dataset, const struct dl2_loader_config *config,
                      struct dl2_error *error);

#endif
