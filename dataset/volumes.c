/* SPDX-License-Identifier: BSD-2-Clause */
/* The volumes of a dataset. */
#include "dataset/container.h"

#include "common/file.h"
#include "common/scope.h"
#include "volumes/volume.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int dl2_dataset_open_volume(const struct dl2_dataset *dataset, size_t index, const char *extension,
                            struct dl2_volume **out, struct dl2_error *error)
{
    struct dl2_sample sample;
    DL2_AUTO_FREE char *path = NULL;
    *out = NULL;
    if (!dataset->volumes)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "the dataset holds no volumes");
    dl2_dataset_sample(dataset, index, &sample);
    if (!extension)
        return dl2_volume_open(sample.path, dataset->decode_slice, out, error);
    DL2_TRY(dl2_format(&path, error, "%.*s.%s", (int)dl2_volume_stem_length(sample.path),
                       sample.path, extension));
    const char *found = dl2_is_file(path) ? path : NULL, *elsewhere, *name;
    for (size_t i = 0; !found && (name = dl2_dataset_sidecar_at(dataset, index, i, &elsewhere));
         i++)
        found = !strcmp(name, extension) ? elsewhere : NULL;
    return found ? dl2_volume_open(found, dataset->decode_slice, out, error) : DL2_OK;
}

unsigned dl2_dataset_volume_channels(const struct dl2_dataset *dataset)
{
    struct dl2_volume *volume;
    for (size_t i = 0; i < dl2_dataset_count(dataset); i++) {
        if (dl2_dataset_open_volume(dataset, i, NULL, &volume, NULL) < 0)
            continue;
        const size_t channels = dl2_volume_info(volume)->channels;
        dl2_volume_close(volume);
        return (unsigned)channels;
    }
    return 1;
}
