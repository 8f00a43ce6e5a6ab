/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The members of a tar file: its headers, read and written. They are ustar's (POSIX.1-1988); long
 * names and sizes come from pax headers (POSIX.1-2001) or GNU's extensions. What members mean as
 * samples is tar.c's business.
 *
 * Threads: a walk on one at a time.
 */
#ifndef DL2_DATASET_TAR_MEMBERS_H
#define DL2_DATASET_TAR_MEMBERS_H

#include "dataset/packed/packed.h"

enum {
    DL2_TAR_BLOCK = 512, /* headers begin, and members end, at multiples of it */
    DL2_TAR_LOOK = 4096, /* bytes read at once after a jump: a header, a label, the next header */
};

struct dl2_tar_member {
    char *name, *link; /* in the walk's buffers; `link` is what a link points to */
    uint64_t offset, size;
    char type; /* a file: '0', '7' or 0; a hard link: '1'; a sparse file of any format: 'S' */
};

/* A walk over the members, from the header at `at` on. */
struct dl2_tar_walk {
    struct dl2_tar_window *window;
    uint64_t at;
    struct dl2_bytes name, link, extra;
};

/* Begins at the first member of a file of `bytes`. The caller keeps the source. */
int dl2_tar_walk_open(struct dl2_tar_walk *walk, const struct dl2_shard_source *source,
                      uint64_t bytes, struct dl2_error *error);
void dl2_tar_walk_close(struct dl2_tar_walk *walk);

/* Sets *member to the next member, of any type: 1, or 0 at the end of the file. Behind the empty
 * blocks that close a tar file another may follow, as `cat a.tar b.tar` joins them. DL2_ERR_FORMAT
 * for damaged headers and files that are cut short, DL2_ERR_LIMIT for names above 1 MiB. */
int dl2_tar_next(struct dl2_tar_walk *walk, struct dl2_tar_member *member, struct dl2_error *error);

/* Sets *out to `size` bytes (at most DL2_TAR_LOOK) at `offset`, valid until the next call. */
int dl2_tar_look(struct dl2_tar_walk *walk, uint64_t offset, size_t size, const uint8_t **out,
                 struct dl2_error *error);
/* Reads just so many bytes; DL2_ERR_FORMAT where the file ends before. */
int dl2_tar_read_at(const struct dl2_shard_source *source, uint64_t offset, void *out, size_t size,
                    struct dl2_error *error);

/* Writes a file's header, with a pax header before it for a name that does not fit, and its data.
 */
int dl2_tar_put_member(struct dl2_shard_output *output, const char *name, const void *data,
                       size_t size, struct dl2_error *error);
/* Writes the two empty blocks that end a tar file. */
int dl2_tar_put_end(struct dl2_shard_output *output, struct dl2_error *error);

#endif
