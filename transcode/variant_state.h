/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by variant.c and variant_load.c alone. */
#ifndef DL2_TRANSCODE_VARIANT_STATE_H
#define DL2_TRANSCODE_VARIANT_STATE_H

#include "transcode/variant.h"

#define DL2_VARIANT_SCHEMA  "dl2-variant/1"
#define DL2_VARIANT_JOURNAL ".dl2-variant.journal"

/* "ROOT/NAME", a string to free; NULL: no memory. */
char *dl2_variant_inside(const struct dl2_variant *variant, const char *name,
                         struct dl2_error *error);

/* The names in the variant's folder that start with `start`, which has a dot in front: a list to
 * free, empty if there are none. */
int dl2_variant_list_hidden(const struct dl2_variant *variant, const char *start, char ***names,
                            size_t *count, struct dl2_error *error);

/* Adds `text`, which it takes over, to a NULL-ended list. NULL in `text` counts as no memory. */
int dl2_variant_add_text(char ***list, size_t *count, char *text, struct dl2_error *error);

/*
 * The first item that is called `key` in JSON. Where two keys that aren't UTF-8 look alike there,
 * the line's source and size tell whose it is well enough: at worst an image is made again.
 */
size_t dl2_variant_find_item(const struct dl2_source_items *items, const char *key);

/* Were the sources decoded, when the variant was last written, as they are now? */
bool dl2_variant_decodes_alike(const struct dl2_variant *variant);

/* The sum over what lies beside the item's source as text, "" if nothing does. */
enum { DL2_SIDECAR_SUM_SIZE = 17 };
void dl2_variant_show_sum(const struct dl2_source_item *item, char out[DL2_SIDECAR_SUM_SIZE]);

/* Is there such an item? For struct dl2_folder_keys; the context is the struct dl2_source_items. */
bool dl2_variant_has_key(const void *context, const char *key);

#endif
