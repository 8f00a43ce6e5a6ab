/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The IDX format (Y. LeCun, "The MNIST database of handwritten digits"): two zero bytes, the type
 * of an item (8: unsigned byte, the only one here), the number of dimensions, each dimension as a
 * big-endian 32-bit number, then the items.
 */
#ifndef DL2_DATASET_IDX_H
#define DL2_DATASET_IDX_H

#include "common/error.h"

#include <stddef.h>
#include <stdint.h>

#define DL2_IDX_MAX_RANK 3

struct dl2_idx {
    /* Count, rows, columns; those beyond the rank are 1; none is 0. */
    uint32_t dims[DL2_IDX_MAX_RANK];
    uint8_t *items; /* their product in bytes */
};

/*
 * Reads a file, plain or compressed with gzip, from its start, with 1 (labels) or 3 (images)
 * dimensions; `fd` stays open. DL2_ERR_FORMAT if it is truncated, too long or corrupt,
 * DL2_ERR_UNSUPPORTED for other types and ranks, DL2_ERR_LIMIT above 4 GiB. Memory is taken only
 * for as much as the file can hold.
 */
int dl2_idx_read(int fd, unsigned rank, struct dl2_idx *idx, struct dl2_error *error);
void dl2_idx_free(struct dl2_idx *idx);

#endif
