/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where parts of a run meet that write to a server and see no folder in common: each leaves its
 * files there, and who completes the run takes them. In a store they are objects below
 * DEST/.dl2-parts/DIGEST/, which readers of DEST pass over; in a database the rows of a table
 * "dl2-parts-..." beside DEST's. Runs of another digest have another place.
 *
 * Threads: one at a time.
 */
#ifndef DL2_DATASET_PARTS_PLACE_H
#define DL2_DATASET_PARTS_PLACE_H

#include "common/work_part.h"

struct dl2_parts_place;

/* 16 digits that differ from those of other processes, also of other machines. */
enum { DL2_PARTS_RUN_SIZE = 17 };
void dl2_parts_name_run(char run[DL2_PARTS_RUN_SIZE]);

/* `dest` is an address of a table or a store. In a database, DL2_ERR_CANCELED if another process
 * has the part; a store has no locks. Close it also after an error. */
int dl2_parts_place_open(const char *dest, const char *digest, const struct dl2_work_part *part,
                         struct dl2_parts_place **out, struct dl2_error *error);
void dl2_parts_place_close(struct dl2_parts_place *place);

/* Sends the file at `path`, which then is there as a whole, in the place of another one. */
int dl2_parts_place_send(struct dl2_parts_place *place, const char *name, const char *path,
                         struct dl2_error *error);

/* Waits until no other process has claimed the place, and claims it until it is closed. A store,
 * which has no locks, lets several claim it. */
int dl2_parts_place_claim(struct dl2_parts_place *place, struct dl2_error *error);
/* Looks at what is there. */
int dl2_parts_place_list(struct dl2_parts_place *place, struct dl2_error *error);
/* Was it there, at the last look? */
bool dl2_parts_place_has(const struct dl2_parts_place *place, const char *name);
/* Does this process complete the run? Of those that have seen the same objects in a store, one
 * does: the first that writes an object whose name follows from theirs (dl2_remote_store_new()). A
 * part that is sent again is another object. */
int dl2_parts_place_elect(struct dl2_parts_place *place, bool *elected, struct dl2_error *error);
/* Writes what was there to a file. DL2_ERR_CANCELED if it is gone. */
int dl2_parts_place_fetch(struct dl2_parts_place *place, const char *name, const char *path,
                          struct dl2_error *error);
/* Removes all of it: the run is complete. */
int dl2_parts_place_clear(struct dl2_parts_place *place, struct dl2_error *error);

/* Of containers (dataset/container.h) that are databases. The state is to be closed also after an
 * error of open(). */
struct dl2_parts_store {
    int (*open)(const char *dest, const char *digest, const struct dl2_work_part *part,
                void **state, struct dl2_error *error);
    void (*close)(void *state);
    int (*send)(void *state, const char *name, const char *path, struct dl2_error *error);
    int (*claim)(void *state, struct dl2_error *error);
    int (*list)(void *state, struct dl2_error *error);
    bool (*has)(const void *state, const char *name);
    int (*elect)(void *state, bool *elected, struct dl2_error *error); /* NULL: it always does */
    int (*fetch)(void *state, const char *name, const char *path, struct dl2_error *error);
    int (*clear)(void *state, struct dl2_error *error);
};

#endif
