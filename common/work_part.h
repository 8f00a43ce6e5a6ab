/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Dividing work over processes that do not talk to each other: each is given a part, "2/4", and
 * knows its items by itself. Where they meet is a folder that all of them see: each part has a lock
 * there, and leaves a mark when it has ended, from which the last one sees that it is the last.
 *
 * Relied on: flock() that holds between all machines that see the folder (a local file system, NFS,
 * Lustre mounted with -o flock, GPFS), and that what was written before a file is closed is seen by
 * who opens it later. A lock ends with its process, however that ends.
 *
 * Threads: one at a time.
 */
#ifndef DL2_COMMON_WORK_PART_H
#define DL2_COMMON_WORK_PART_H

#include "common/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DL2_WORK_PARTS_MAX = 65535 };

struct dl2_work_part {
    unsigned number, count; /* 1 <= number <= count; both 0: all of the work */
};

/* "2/4" into a struct dl2_work_part. For an option's row. */
int dl2_work_part_parse(const char *text, void *value, struct dl2_error *error);

/* "-2-of-4", for names of files; "" for all of the work. */
enum { DL2_WORK_PART_NAME = 32 };
void dl2_work_part_name(const struct dl2_work_part *part, char out[DL2_WORK_PART_NAME]);

/*
 * Makes owners[i] the number, from 1 on, of the part that has item i: the one whose items cost
 * least up to there. So parts cost the same up to one item, each gets items from everywhere, and
 * the division depends on the costs and their order alone.
 */
int dl2_work_divide(const uint64_t *costs, size_t count, unsigned parts, uint16_t *owners,
                    struct dl2_error *error);

/*
 * A part's file, "STEM-2-of-4" with STEM a path: who works on the part has it locked. Its content
 * is empty until the part has ended, and then `digest`, a word that tells what was to be done.
 */
struct dl2_part_file {
    int fd; /* -1: none */
};

/* Locks a part and takes away its mark. DL2_ERR_CANCELED if another process has it. */
int dl2_part_file_open(struct dl2_part_file *file, const char *stem,
                       const struct dl2_work_part *part, struct dl2_error *error);
/* Marks the part as ended. */
int dl2_part_file_end(const struct dl2_part_file *file, const char *digest,
                      struct dl2_error *error);
/* Unlocks it. */
void dl2_part_file_close(struct dl2_part_file *file);

/* How many parts have no mark with this digest; *first is the lowest of them. */
unsigned dl2_part_files_missing(const char *stem, unsigned count, const char *digest,
                                unsigned *first);
/* Removes all files of parts, of any count. Nobody may be working. */
void dl2_part_files_remove(const char *stem);

#endif
