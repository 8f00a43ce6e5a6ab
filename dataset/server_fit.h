/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Training where the samples lie: in a database that has the extension dl2 (postgres/). Only the
 * samples' keys, numbers and labels, and the model, travel.
 */
#ifndef DL2_DATASET_SERVER_FIT_H
#define DL2_DATASET_SERVER_FIT_H

#include "common/memory.h"
#include "dataset/dataset.h"

#include <signal.h>

struct dl2_server_fit {
    const void *model; /* as the SQL function dl2_fit() takes it */
    size_t size;
    const char *options;     /* the same, JSON */
    const uint32_t *numbers; /* [count] samples of the dataset in the order of training */
    size_t count;
    const uint32_t *rows;              /* [count] for the reader: what it calls these samples */
    const volatile sig_atomic_t *stop; /* becomes non-zero to cancel it; may be NULL */
    /* Called for each image that cannot be decoded, with its place in `numbers`, and why. */
    void (*bad)(void *context, size_t place, const char *reason);
    void *context;
};

bool dl2_dataset_can_fit(const struct dl2_dataset *dataset);

/* The trained model in `out`, where dl2_dataset_can_fit(). Waits for the server, and asks it anew
 * where the connection was lost. DL2_ERR_CANCELED: by fit->stop; other errors are the server's. */
int dl2_dataset_fit(const struct dl2_dataset *dataset, const struct dl2_server_fit *fit,
                    struct dl2_bytes *out, struct dl2_error *error);

#endif
