/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files of weights: named tensors and a table of texts. Checkpoints, exported and pretrained
 * weights are such files.
 *
 * The layout is safetensors' (github.com/huggingface/safetensors, its README's "Format"), so that
 * other software reads the weights: eight bytes, little endian, with the length of a JSON header;
 * the header,
 * {"__metadata__": {KEY: TEXT}, NAME: {"dtype", "shape", "data_offsets": [begin, end]}}, padded
 * with spaces to a multiple of eight; then the tensors' bytes, little endian, without gaps. Files
 * written here begin their metadata with "crc32", eight hexadecimal digits: zlib's CRC-32 of the
 * whole file with those digits taken as zeros. A file without it (of another program) is read
 * unchecked, and says so.
 *
 * Everything that a file says is checked against its size before it is used; names are unique, and
 * the tensors cover the data exactly.
 *
 * Threads: one at a time for a struct dl2_safetensors.
 */
#ifndef DL2_NETWORK_SAFETENSORS_H
#define DL2_NETWORK_SAFETENSORS_H

#include "common/error.h"
#include "common/memory.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#define DL2_SAFETENSORS_MAX_DIMS   8
#define DL2_SAFETENSORS_MAX_HEADER ((size_t)100 << 20) /* bytes; safetensors' own limit */
#define DL2_SAFETENSORS_MAX_BYTES  ((uint64_t)1 << 36)
/* Prefixes of what a checkpoint has beside the weights, which keep their own names, so that other
 * software finds them. */
#define DL2_CHECKPOINT_MOMENTUM      "momentum." /* AdamW's first moment, too */
#define DL2_CHECKPOINT_SECOND_MOMENT "second_moment."
#define DL2_CHECKPOINT_AVERAGE       "average."

struct dl2_safetensors_tensor {
    const char *name;
    const char *dtype; /* "F32", "I64"...: safetensors' names */
    unsigned dims;
    size_t shape[DL2_SAFETENSORS_MAX_DIMS];
    const uint8_t *data; /* perhaps unaligned after reading: copy it out */
    size_t bytes;
    void *owned; /* dl2_safetensors_add_floats()' memory; NULL: name and data are others' */
};

struct dl2_safetensors {
    json_t *metadata; /* texts by key; without "crc32" */
    struct dl2_safetensors_tensor *tensors;
    size_t count, capacity;
    bool checksummed;      /* read from a file that had a checksum, and it was right */
    json_t *header;        /* what names and dtypes point into after reading */
    struct dl2_bytes file; /* what data points into after reading */
};

/* An empty one, to be filled and written. Free with dl2_safetensors_free() in any case. */
int dl2_safetensors_init(struct dl2_safetensors *content, struct dl2_error *error);

/* Adds a text; a key once only. */
int dl2_safetensors_set_text(struct dl2_safetensors *content, const char *key, const char *text,
                             struct dl2_error *error);

/*
 * Adds a tensor of type "F32" or another of safetensors'. Name, type and data are borrowed and must
 * stay as they are until the file has been written.
 */
int dl2_safetensors_add(struct dl2_safetensors *content, const char *name, const char *dtype,
                        unsigned dims, const size_t *shape, const void *data,
                        struct dl2_error *error);

/* Adds a tensor "F32" named PREFIX and NAME, with memory of its own: *values is for the caller to
 * fill before the file is written. */
int dl2_safetensors_add_floats(struct dl2_safetensors *content, const char *prefix,
                               const char *name, unsigned dims, const size_t *shape, float **values,
                               struct dl2_error *error);

/* The whole file into `out`, or under `path` (written whole or not at all). */
int dl2_safetensors_format(const struct dl2_safetensors *content, struct dl2_bytes *out,
                           struct dl2_error *error);
int dl2_safetensors_write(const struct dl2_safetensors *content, const char *path,
                          struct dl2_error *error);

/*
 * DL2_ERR_FORMAT for anything that is not a whole, consistent file with (if it has one) the right
 * checksum. Parsing takes over what `file` holds, also on failure, and leaves `file` empty.
 */
int dl2_safetensors_parse(struct dl2_bytes *file, struct dl2_safetensors *content,
                          struct dl2_error *error);
int dl2_safetensors_read(const char *path, struct dl2_safetensors *content,
                         struct dl2_error *error);
/* The metadata of a file alone: *out is a new reference. Looks neither at tensors nor at the
 * checksum. */
int dl2_safetensors_read_metadata(const char *path, json_t **out, struct dl2_error *error);

/* NULL if there is none of this name. */
const struct dl2_safetensors_tensor *dl2_safetensors_find(const struct dl2_safetensors *content,
                                                          const char *name);
const char *dl2_safetensors_text(const struct dl2_safetensors *content, const char *key);

/* Does a tensor have that shape? */
bool dl2_safetensors_has_shape(const struct dl2_safetensors_tensor *tensor, unsigned dims,
                               const size_t *shape);

/*
 * Copies the tensor `name` to `data` if it is there with this type and shape; else DL2_ERR_FORMAT,
 * with a message that says what was expected and what is there.
 */
int dl2_safetensors_copy(const struct dl2_safetensors *content, const char *name, const char *dtype,
                         unsigned dims, const size_t *shape, void *data, struct dl2_error *error);

/* The same as floats, of type F32, F16, BF16 or F64. */
int dl2_safetensors_copy_floats(const struct dl2_safetensors *content, const char *name,
                                unsigned dims, const size_t *shape, float *data,
                                struct dl2_error *error);
/* Is the tensor of one of these types? */
int dl2_safetensors_check_floats(const struct dl2_safetensors_tensor *tensor,
                                 struct dl2_error *error);

void dl2_safetensors_free(struct dl2_safetensors *content);

#endif
