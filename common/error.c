/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/error.h"

#include "common/quote.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Formats and quotes: a text to free, NULL if memory runs out. Sets *plain, unless it is NULL, to
 * whether nothing had to be quoted. */
static char *format_text(const char *format, va_list args, bool *plain)
{
    char *raw = NULL, *quoted = NULL;
    const int length = vasprintf(&raw, format, args);
    if (length < 0)
        return NULL;
    const size_t most = 4 * (size_t)length + 16; /* \x1b for each byte, *** for a password */
    if ((quoted = malloc(most)) != NULL)
        dl2_quote(raw, quoted, most);
    if (quoted && plain)
        *plain = !strcmp(raw, quoted);
    free(raw);
    return quoted;
}

static bool is_inside_character(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/*
 * Makes `text` the message. What doesn't fit is cut out of its middle: names are long, messages
 * begin with what they are about and end with the reason. The file that the text names at `start`
 * is forgotten where the cut goes through it.
 */
static void store(struct dl2_error *error, const char *text, size_t start, size_t length)
{
    static const char gap[] = "...";
    const size_t size = strlen(text), room = sizeof error->message - 1;
    size_t head = size, tail = size; /* what is kept ends at one and begins again at the other */
    if (size > room) {
        head = room / 3;
        tail = size - (room - head - (sizeof gap - 1));
        while (head && is_inside_character(text[head]))
            head--;
        while (is_inside_character(text[tail]))
            tail++;
    }
    snprintf(error->message, sizeof error->message, "%.*s%s%s", (int)head, text,
             size > room ? gap : "", text + tail);
    const bool behind = start >= tail, whole = length && (behind || start + length <= head);
    error->path_start =
        !whole ? 0 : (unsigned)(behind ? start - tail + head + sizeof gap - 1 : start);
    error->path_length = whole ? (unsigned)length : 0;
}

/* How long the part of a formatted text is that ends before the format's first ": ". */
static unsigned path_length(const char *format, va_list args)
{
    char part[64];
    const char *end = strstr(format, ": ");
    const size_t length = end ? (size_t)(end - format) : strlen(format);
    if (format[0] != '%' || length >= sizeof part)
        return 0;
    memcpy(part, format, length);
    part[length] = '\0';
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    const int printed = vsnprintf(NULL, 0, part, args);
#pragma GCC diagnostic pop
    return printed < 0 ? 0 : (unsigned)printed;
}

/* Sets status and message; with `reason`, an errno, behind it, unless that is 0. */
static void fill(struct dl2_error *error, enum dl2_status status, int reason, const char *format,
                 va_list args)
{
    va_list again;
    va_copy(again, args);
    bool plain = false;
    char buffer[128], *text = format_text(format, args, &plain), *whole = NULL;
    /* glibc's strerror_r may return a string of its own instead of filling the buffer. */
    if (asprintf(&whole, "%s%s%s%s", text ? text : format, reason ? ": " : "",
                 reason ? strerror_r(reason, buffer, sizeof buffer) : "",
                 reason == EMFILE ? "; raise the limit (ulimit -n)" : "") < 0)
        whole = NULL;
    store(error, whole ? whole : format, 0,
          whole && plain && reason ? path_length(format, again) : 0);
    error->status = status;
    error->number = reason;
    free(whole);
    free(text);
    va_end(again);
}

int dl2_error_set(struct dl2_error *error, enum dl2_status status, const char *format, ...)
{
    if (error && error->status == DL2_OK) {
        va_list args;
        va_start(args, format);
        fill(error, status, 0, format, args);
        va_end(args);
    }
    return status;
}

int dl2_error_memory(struct dl2_error *error, const char *what, ...)
{
    char text[256];
    va_list args;
    va_start(args, what);
    vsnprintf(text, sizeof text, what, args);
    va_end(args);
    return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for %s", text);
}

int dl2_error_system(struct dl2_error *error, const char *format, ...)
{
    const int reason = errno;
    const bool ran_out = reason == EMFILE || reason == ENFILE;
    const enum dl2_status status = ran_out ? DL2_ERR_MEMORY : DL2_ERR_SYSTEM;
    if (error && error->status == DL2_OK) {
        va_list args;
        va_start(args, format);
        fill(error, status, reason, format, args);
        va_end(args);
    }
    return status;
}

void dl2_error_prefix(struct dl2_error *error, const char *format, ...)
{
    if (!error || error->status == DL2_OK)
        return;
    va_list args;
    va_start(args, format);
    char *front = format_text(format, args, NULL), *whole = NULL;
    va_end(args);
    if (front && asprintf(&whole, "%s: %s", front, error->message) >= 0) {
        store(error, whole, strlen(front) + 2 + error->path_start, error->path_length);
        free(whole);
    }
    free(front);
}

int dl2_error_copy(struct dl2_error *error, const struct dl2_error *from)
{
    if (error && error->status == DL2_OK)
        *error = *from;
    return from->status;
}

void dl2_error_clear(struct dl2_error *error)
{
    if (error) {
        *error = (struct dl2_error)DL2_ERROR_INIT;
    }
}
