/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/lists.h"

#include "common/memory.h"

#include <stdlib.h>
#include <string.h>

int dl2_list_grow(void **items, size_t count, size_t size, struct dl2_error *error)
{
    if (count & (count - 1))
        return DL2_OK;
    void *grown = dl2_realloc(*items, count ? 2 * count : 1, size);
    if (!grown)
        return dl2_error_memory(error, "the study's results");
    *items = grown;
    return DL2_OK;
}

int dl2_copy_text(const char *text, char **out, struct dl2_error *error)
{
    *out = strdup(text);
    return *out ? DL2_OK : dl2_error_memory(error, "'%s'", text);
}

int dl2_texts_add(struct dl2_texts *texts, const char *text, struct dl2_error *error)
{
    DL2_TRY(dl2_list_grow((void **)&texts->at, texts->count, sizeof *texts->at, error));
    DL2_TRY(dl2_copy_text(text, &texts->at[texts->count], error));
    texts->count++;
    return DL2_OK;
}

void dl2_texts_free(struct dl2_texts *texts)
{
    for (size_t i = 0; i < texts->count; i++)
        free(texts->at[i]);
    free(texts->at);
    *texts = (struct dl2_texts){0};
}
