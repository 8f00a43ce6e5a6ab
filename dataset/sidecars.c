/* SPDX-License-Identifier: BSD-2-Clause */
#include "dataset/sidecars.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool dl2_is_sidecar_extension(const char *text)
{
    return *text && *text != '.' && !strchr(text, '/');
}

int dl2_sidecars_add(struct dl2_sidecars *sidecars, const char *extension, uint64_t size,
                     struct dl2_sidecar **item, struct dl2_error *error)
{
    if (sidecars->count == DL2_BESIDE_MAX_ITEMS)
        return dl2_error_set(error, DL2_ERR_LIMIT, "more than %d things lie beside one image",
                             DL2_BESIDE_MAX_ITEMS);
    if (size > DL2_BESIDE_MAX_BYTES - sidecars->bytes)
        return dl2_error_set(error, DL2_ERR_LIMIT,
                             "what lies beside the image passes 2 GiB with .%s of %" PRIu64
                             " bytes",
                             extension, size);
    DL2_TRY(dl2_grow(&sidecars->items, sidecars->count, sizeof *sidecars->items, error));
    struct dl2_sidecar *added = &sidecars->items[sidecars->count];
    *added = (struct dl2_sidecar){.extension = NULL};
    DL2_TRY(dl2_format(&added->extension, error, "%s", extension));
    sidecars->count++;
    sidecars->bytes += size;
    *item = added;
    return dl2_bytes_resize(&added->bytes, (size_t)size, error);
}

static int compare_items(const void *a, const void *b)
{
    return strcmp(((const struct dl2_sidecar *)a)->extension,
                  ((const struct dl2_sidecar *)b)->extension);
}

void dl2_sidecars_sort(struct dl2_sidecars *sidecars)
{
    if (sidecars->count > 1)
        qsort(sidecars->items, sidecars->count, sizeof *sidecars->items, compare_items);
}

void dl2_sidecars_free(struct dl2_sidecars *sidecars)
{
    for (size_t i = 0; i < sidecars->count; i++) {
        free(sidecars->items[i].extension);
        dl2_bytes_free(&sidecars->items[i].bytes);
    }
    free(sidecars->items);
    *sidecars = (struct dl2_sidecars){0};
}

enum { ROWS = sizeof((struct dl2_left_out *)0)->rows / sizeof(struct dl2_left_out_row) };

void dl2_left_out_count(struct dl2_left_out *left_out, const char *extension)
{
    size_t i = 0;
    while (i + 1 < ROWS && left_out->rows[i].extension &&
           strcmp(left_out->rows[i].extension, extension) != 0)
        i++;
    if (i + 1 < ROWS && !left_out->rows[i].extension)
        left_out->rows[i].extension = strdup(extension);
    left_out->rows[i].count++;
    left_out->count++;
}

char *dl2_left_out_message(const struct dl2_left_out *left_out, const char *what, const char *why)
{
    char *text = NULL;
    size_t size;
    FILE *out = left_out->count ? open_memstream(&text, &size) : NULL;
    if (out)
        fprintf(out, "%s: ", what);
    for (size_t i = 0; out && i < ROWS; i++) {
        const struct dl2_left_out_row *row = &left_out->rows[i];
        if (row->count)
            fprintf(out, "%s%zu %s%s", i ? ", " : "", row->count, row->extension ? "." : "others",
                    row->extension ? row->extension : "");
    }
    if (out)
        fprintf(out, "; %s", why);
    if (out && fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

void dl2_left_out_free(struct dl2_left_out *left_out)
{
    for (size_t i = 0; i < ROWS; i++)
        free(left_out->rows[i].extension);
    *left_out = (struct dl2_left_out){0};
}
