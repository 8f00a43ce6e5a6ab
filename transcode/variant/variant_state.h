/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by variant.c, variant_load.c and variant_write.c alone. */
#ifndef DL2_TRANSCODE_VARIANT_STATE_H
#define DL2_TRANSCODE_VARIANT_STATE_H

#include "transcode/variant/sidecar_files.h"
#include "transcode/variant/variant.h"

#define DL2_VARIANT_SCHEMA  "dl2-variant/1"
#define DL2_VARIANT_JOURNAL ".dl2-variant.journal"

/* "ROOT/NAMEEND", a string to free; NULL: no memory. */
char *dl2_variant_inside(const struct dl2_variant *variant, const char *name, const char *end,
                         struct dl2_error *error);

/* The names in the variant's folder that start with `start`, which has a dot in front: a list to
 * free, empty if there are none. */
int dl2_variant_list_hidden(const struct dl2_variant *variant, const char *start, char ***names,
                            size_t *count, struct dl2_error *error);

/* Were the sources decoded, when the variant was last written, as they are now? */
bool dl2_variant_decodes_alike(const struct dl2_variant *variant);

/* The sum over what lies beside the item's source as text, "" if nothing does. */
enum { DL2_SIDECAR_SUM_SIZE = 17 };
void dl2_variant_show_sum(const struct dl2_source_item *item, char out[DL2_SIDECAR_SUM_SIZE]);

/* The keys of a variant in a folder. */
struct dl2_folder_keys dl2_variant_keys(const struct dl2_source_items *items);

/* What dl2-variant.json says: a new reference, or NULL if memory runs out. `failed`: an array. */
json_t *dl2_variant_summarize(const struct dl2_variant *variant, bool complete, json_t *failed);

#endif
