/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/keep.h"

#include "common/option.h"
#include "common/quote.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All that is kept, so that tools which look for lost memory find it. */
static struct kept {
    struct kept *next;
    void *block;
    json_t *json;
} * all;

_Noreturn static void end(const char *message)
{
    fflush(stdout);
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, DL2_SHOWN(message));
    exit(DL2_EXIT_FAILED);
}

int dl2_unless_memory(int status, const struct dl2_error *why)
{
    if (status == DL2_ERR_MEMORY)
        end(why->message);
    return status;
}

void *dl2_need(void *made)
{
    if (!made)
        end("out of memory");
    return made;
}

__attribute__((format(printf, 3, 0))) static void *make(size_t count, size_t size, const char *what,
                                                        va_list arguments)
{
    char message[256] = "out of memory for ";
    const size_t used = strlen(message);
    void *block = dl2_calloc(count, size);
    if (block)
        return block;
    vsnprintf(message + used, sizeof message - used, what, arguments);
    end(message);
}

void *dl2_room(size_t count, size_t size, const char *what, ...)
{
    va_list arguments;
    va_start(arguments, what);
    void *block = make(count, size, what, arguments);
    va_end(arguments);
    return block;
}

static void add(void *block, json_t *json)
{
    struct kept *own = dl2_need(malloc(sizeof *own));
    *own = (struct kept){all, block, json};
    all = own;
}

void *dl2_keep_block(void *block)
{
    add(dl2_need(block), NULL);
    return block;
}

json_t *dl2_keep_json(json_t *json)
{
    add(NULL, dl2_need(json));
    return json;
}

void *dl2_keep(size_t count, size_t size, const char *what, ...)
{
    va_list arguments;
    va_start(arguments, what);
    void *block = make(count, size, what, arguments);
    va_end(arguments);
    return dl2_keep_block(block);
}

void *dl2_keep_more(void *items, size_t count, size_t size)
{
    if (count & (count - 1)) /* there is room up to the next power of two */
        return items;
    void *grown = dl2_keep(count ? 2 * count : 1, size, "%zu items", count + 1);
    return count ? memcpy(grown, items, count * size) : grown;
}

char *dl2_text(const char *format, ...)
{
    char *text;
    va_list arguments;
    va_start(arguments, format);
    const int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    return dl2_keep_block(length < 0 ? NULL : text);
}

char *dl2_text_copy(const char *text)
{
    return dl2_keep_block(strdup(text));
}

void dl2_free_kept(void)
{
    while (all) {
        struct kept *own = all;
        all = own->next;
        free(own->block);
        json_decref(own->json);
        free(own);
    }
}

void dl2_words_add(struct dl2_words *words, const char *word)
{
    words->at = dl2_keep_more(words->at, words->count, sizeof *words->at);
    words->at[words->count++] = word;
}

void dl2_append(struct dl2_bytes *bytes, const void *data, size_t size)
{
    struct dl2_error why = DL2_ERROR_INIT;
    if (dl2_bytes_append(bytes, data, size, &why) < 0)
        end(why.message);
}

void dl2_append_text(struct dl2_bytes *bytes, const char *text)
{
    dl2_append(bytes, text, strlen(text));
}
