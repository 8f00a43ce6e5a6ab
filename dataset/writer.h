/*
 * Writing packed datasets: encoded samples in, one container out.
 *
 *   gulp  GulpIO's data_N.gulp, meta_N.gmeta, label2idx.json, which its own reader opens
 *   tar   WebDataset's shards, shard-000000.tar: NAME.jpg and NAME.cls for each sample
 *
 * each with a small binary index, dl2-index.bin (docs/formats.md), that makes opening instant and
 * holds a check sum of every sample. A container is complete or not there: shards are written under
 * temporary names, the index, which is written last, makes the container, and as long as the file
 * .dl2-unfinished lies beside it, also after SIGKILL, dl2_dataset_open() refuses it.
 *
 * Threads: one at a time. The same samples in the same order give the same bytes.
 */
#ifndef DL2_DATASET_WRITER_H
#define DL2_DATASET_WRITER_H

#include "common/error.h"
#include "common/slices.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum dl2_container { DL2_CONTAINER_FOLDER, DL2_CONTAINER_GULP, DL2_CONTAINER_TAR };

/* "folder", "gulp", "tar". */
const char *dl2_container_name(enum dl2_container container);

struct dl2_writer_options {
    enum dl2_container container; /* GULP or TAR; folders are written file by file */
    uint64_t shard_bytes;         /* a shard is closed once it holds so much; 0: 256 MiB */
    uint32_t shard_samples;       /* or so many samples; 0: no limit (gulp: 10000) */
    /* Keys that start with a split's name are of that split, which becomes a folder of its own. */
    bool has_parts;
    /* Finds where samples can be cut, for readers to know: dl2_jpeg_slice(); NULL: nowhere. */
    dl2_slice_function slice;
};

struct dl2_writer;

/*
 * Classes in label order. A container that this has written before is removed first; where `path`
 * holds anything else but dl2-variant.json(l), DL2_ERR_ARGUMENT.
 */
int dl2_writer_open(const char *path, const struct dl2_writer_options *options,
                    const char *const *classes, unsigned class_count, struct dl2_writer **out,
                    struct dl2_error *error);

/*
 * Appends one sample. `key` is its path without extension ("train/rose/0017") and must not come
 * twice; `extension` without dot, not empty; `label` -1: none. DL2_ERR_UNSUPPORTED for a key that
 * the container can't hold (gulp's JSON wants UTF-8), before anything is written: one may go on.
 */
int dl2_writer_add(struct dl2_writer *writer, const char *key, const char *extension, int label,
                   const void *data, size_t size, struct dl2_error *error);

/* Writes the rest and the index; then the container is there. */
int dl2_writer_finish(struct dl2_writer *writer, struct dl2_error *error);
/* Frees it; without finish, removes what was written. */
void dl2_writer_close(struct dl2_writer *writer);

#ifdef __cplusplus
}
#endif

#endif
