/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/texts.h"

#include "common/memory.h"

#include <string.h>

int dl2_copy_text(const char *text, char **out, struct dl2_error *error)
{
    *out = strdup(text);
    return *out ? DL2_OK : dl2_error_memory(error, "'%s'", text);
}

int dl2_texts_add(struct dl2_texts *texts, const char *text, struct dl2_error *error)
{
    return dl2_list_append(&texts->at, &texts->count, strdup(text), error);
}

void dl2_texts_free(struct dl2_texts *texts)
{
    dl2_free_list(texts->at);
    *texts = (struct dl2_texts){0};
}
