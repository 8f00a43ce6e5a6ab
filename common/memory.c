/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool dl2_size_mul(size_t a, size_t b, size_t *out)
{
    size_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *out = product;
    return true;
}

bool dl2_size_add(size_t a, size_t b, size_t *out)
{
    size_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return false;
    *out = sum;
    return true;
}

void *dl2_calloc(size_t count, size_t size)
{
    size_t bytes;
    if (!dl2_size_mul(count, size, &bytes))
        return NULL;
    return calloc(bytes ? bytes : 1, 1);
}

int dl2_new(void *pointer, size_t count, size_t size, const char *what, struct dl2_error *error)
{
    void *block = dl2_calloc(count, size);
    memcpy(pointer, &block, sizeof block); /* all pointers look alike in memory */
    return block ? DL2_OK : dl2_error_memory(error, "%s", what);
}

int dl2_format(char **text, struct dl2_error *error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int length = vasprintf(text, format, args);
    va_end(args);
    if (length >= 0)
        return DL2_OK;
    *text = NULL;
    return dl2_error_memory(error, "a text");
}

int dl2_format_more(char **text, struct dl2_error *error, const char *format, ...)
{
    va_list args;
    char *added, *both;
    va_start(args, format);
    const int length = vasprintf(&added, format, args);
    va_end(args);
    if (length < 0)
        return dl2_error_memory(error, "a text");
    const int status =
        dl2_format(&both, error, "%s%s%s", *text ? *text : "", *text ? "\n" : "", added);
    free(added);
    if (status < 0)
        return status;
    free(*text);
    *text = both;
    return DL2_OK;
}

void *dl2_realloc(void *old, size_t count, size_t size)
{
    size_t bytes;
    if (!dl2_size_mul(count, size, &bytes))
        return NULL;
    return realloc(old, bytes ? bytes : 1);
}

int dl2_grow(void *array, size_t count, size_t size, struct dl2_error *error)
{
    void *items;
    memcpy(&items, array, sizeof items);
    items = dl2_realloc(items, count + 1, size);
    if (!items)
        return dl2_error_memory(error, "%zu items", count + 1);
    memcpy(array, &items, sizeof items);
    return DL2_OK;
}

void *dl2_alloc_aligned(size_t count, size_t size)
{
    size_t bytes;
    if (!dl2_size_mul(count, size, &bytes) || !dl2_size_add(bytes, DL2_ALIGNMENT - 1, &bytes))
        return NULL;
    bytes = bytes / DL2_ALIGNMENT * DL2_ALIGNMENT;
    return aligned_alloc(DL2_ALIGNMENT, bytes ? bytes : DL2_ALIGNMENT);
}

int dl2_bytes_resize(struct dl2_bytes *bytes, size_t size, struct dl2_error *error)
{
    if (size > bytes->capacity) {
        uint8_t *data = dl2_alloc_aligned(size, 1);
        if (!data)
            return dl2_error_memory(error, "%zu bytes", size);
        free(bytes->data);
        bytes->data = data;
        bytes->capacity = size;
    }
    bytes->size = size;
    return DL2_OK;
}

int dl2_bytes_append(struct dl2_bytes *bytes, const void *data, size_t size,
                     struct dl2_error *error)
{
    size_t needed;
    if (!dl2_size_add(bytes->size, size, &needed))
        return dl2_error_set(error, DL2_ERR_LIMIT, "a buffer would pass the address space");
    if (needed > bytes->capacity) {
        size_t capacity = bytes->capacity < 4096 ? 4096 : bytes->capacity;
        while (capacity < needed && dl2_size_mul(capacity, 2, &capacity))
            ;
        if (capacity < needed)
            capacity = needed;
        uint8_t *grown = dl2_alloc_aligned(capacity, 1);
        if (!grown)
            return dl2_error_memory(error, "%zu bytes", capacity);
        if (bytes->size)
            memcpy(grown, bytes->data, bytes->size);
        free(bytes->data);
        bytes->data = grown;
        bytes->capacity = capacity;
    }
    if (size)
        memcpy(bytes->data + bytes->size, data, size);
    bytes->size = needed;
    return DL2_OK;
}

int dl2_bytes_insert(struct dl2_bytes *bytes, size_t at, const void *data, size_t size,
                     struct dl2_error *error)
{
    const size_t behind = bytes->size - at;
    DL2_TRY(dl2_bytes_append(bytes, data, size, error)); /* makes room */
    memmove(bytes->data + at + size, bytes->data + at, behind);
    if (size)
        memcpy(bytes->data + at, data, size);
    return DL2_OK;
}

void dl2_bytes_swap(struct dl2_bytes *a, struct dl2_bytes *b)
{
    const struct dl2_bytes other = *a;
    *a = *b;
    *b = other;
}

void dl2_bytes_free(struct dl2_bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct dl2_bytes)DL2_BYTES_INIT;
}

int dl2_list_append(char ***list, size_t *count, char *text, struct dl2_error *error)
{
    char **grown = text ? dl2_realloc(*list, *count + 2, sizeof *grown) : NULL;
    if (!grown) {
        free(text);
        return dl2_error_memory(error, "a list");
    }
    *list = grown;
    grown[(*count)++] = text;
    grown[*count] = NULL;
    return DL2_OK;
}

char **dl2_copy_texts(const char *const *texts, size_t count)
{
    size_t size = count * sizeof *texts;
    for (size_t i = 0; i < count; i++)
        size += strlen(texts[i]) + 1;
    char **copy = dl2_calloc(1, size);
    char *at = copy ? (char *)(copy + count) : NULL;
    for (size_t i = 0; copy && i < count; i++) {
        copy[i] = strcpy(at, texts[i]);
        at += strlen(at) + 1;
    }
    return copy;
}

void dl2_free_list(char **list)
{
    for (char **p = list; p && *p; p++)
        free(*p);
    free(list);
}
