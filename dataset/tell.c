/* SPDX-License-Identifier: BSD-2-Clause */
#include "dataset/tell.h"

void dl2_dataset_tell(const struct dl2_dataset *dataset, const char *path, bool all,
                      struct dl2_progress *progress)
{
    const char *text;
    bool matters;
    for (size_t i = 0; progress && (text = all ? dl2_dataset_message(dataset, i + 1, &matters)
                                               : dl2_dataset_warning(dataset, i));
         i++)
        dl2_progress_message(progress, "%s: %s", path, text);
}
