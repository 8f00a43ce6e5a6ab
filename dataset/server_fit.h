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
    /* [count] for the reader: what it calls these samples, and their labels. */
    const uint32_t *rows;
    const int32_t *labels;
    const volatile sig_atomic_t *stop; /* becomes non-zero to cancel it; may be NULL */
    /* Called for each image that cannot be decoded, with its place in `numbers`, and why. */
    void (*bad)(void *context, size_t place, const char *reason);
    void *context;
};

bool dl2_dataset_can_fit(const struct dl2_dataset *dataset);

/* Asks the server whether it can train, where dl2_dataset_can_fit(): DL2_ERR_UNSUPPORTED, with the
 * address and what to do, where its extension is missing or too old; else `version` is the
 * extension's. Joined datasets cannot be asked, but their members can. */
enum { DL2_FIT_VERSION_BYTES = 64 };
int dl2_dataset_check_fit(const struct dl2_dataset *dataset, char version[DL2_FIT_VERSION_BYTES],
                          struct dl2_error *error);

/* The trained model in `out`, where dl2_dataset_can_fit(). Of joined datasets all samples are of
 * one. Waits for the server, and asks it anew where the connection was lost. DL2_ERR_CANCELED: by
 * fit->stop; other errors are the server's. */
int dl2_dataset_fit(const struct dl2_dataset *dataset, const struct dl2_server_fit *fit,
                    struct dl2_bytes *out, struct dl2_error *error);

#endif
