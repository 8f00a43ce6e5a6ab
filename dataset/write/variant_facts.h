/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What dl2-transcode keeps about a variant (docs/formats/transcode.md, dl2-variant/1): a summary,
 * and a line about each image. In a folder they are the files dl2-variant.json and
 * dl2-variant.jsonl, in an object store objects of these names; in a database the table's comment
 * and its column `made`. A `place` is the path of a folder, the address of a table or one of a
 * store.
 *
 * Threads: any; each call has a connection of its own.
 */
#ifndef DL2_DATASET_VARIANT_FACTS_H
#define DL2_DATASET_VARIANT_FACTS_H

#include "common/json.h"
#include "common/memory.h"

#include <stdbool.h>

#define DL2_FACTS_SUMMARY_NAME "dl2-variant.json"
#define DL2_FACTS_LINES_NAME   "dl2-variant.jsonl"

struct dl2_writer;

/*
 * The place of the variant `name` of DEST: the folder, or the prefix in a store, DEST/jpeg-50; or,
 * with DEST's table photos, the table photos_jpeg_50. A string to free; NULL if memory runs out.
 */
char *dl2_facts_place(const char *dest, const char *name);

/*
 * The summary, a new reference, or NULL if there is none or it is damaged. An error means that a
 * server could not be asked, that this build cannot ask it, or that memory ran out; *summary is
 * NULL then, too.
 */
int dl2_facts_load(const char *place, json_t **summary, struct dl2_error *error);

/* The lines, each with its newline; none if there are none. Replaces what `lines` holds. */
int dl2_facts_load_lines(const char *place, struct dl2_bytes *lines, struct dl2_error *error);

/*
 * The keys of a variant's images, each ended by 0: of those in its split for validation, `count` of
 * them; if it has none, `count` is 0. *images: how many images it has; 0: there are no lines.
 */
int dl2_facts_load_val_keys(const char *place, struct dl2_bytes *keys, size_t *count,
                            size_t *images, struct dl2_error *error);

/* Replaces the summary of a variant that is there. */
int dl2_facts_save(const char *place, const json_t *summary, struct dl2_error *error);

/*
 * What the table was copied from, as the writer was told by dl2_writer_set_origin(): text with its
 * zero; "" if it has none. Of tables only.
 */
enum { DL2_FACTS_ORIGIN_DIGITS = 16 };
int dl2_facts_load_origin(const char *place, char origin[DL2_FACTS_ORIGIN_DIGITS + 1],
                          struct dl2_error *error);

/* Are both places the same table, however their addresses are spelled? A folder is none. An error
 * also says that this build cannot reach one of them. */
int dl2_facts_same_table(const char *a, const char *b, bool *same, struct dl2_error *error);

/*
 * The folder of this machine that the writer's files are made in: its path, or where those of an
 * object store wait to be sent; dl2_writer_finish() sends lines of that name in it, too. NULL of a
 * table.
 */
const char *dl2_writer_folder(const struct dl2_writer *writer);

/*
 * For a container without files, which keeps the facts with its samples: the line of the sample
 * that is added next; and before dl2_writer_finish() the summary, and of a copy digits that change
 * with its source. A store takes the summary; folders ignore all. They are borrowed until those
 * calls.
 */
void dl2_writer_set_line(struct dl2_writer *writer, const char *line);
void dl2_writer_set_summary(struct dl2_writer *writer, const json_t *summary);
void dl2_writer_set_origin(struct dl2_writer *writer, const char *origin);

/* Notes in `described` how a writer of these options divides samples into shards, if not as usual.
 */
struct dl2_writer_options;
int dl2_writer_describe(const struct dl2_writer_options *options, json_t *described,
                        struct dl2_error *error);

#endif
