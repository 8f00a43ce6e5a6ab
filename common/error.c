/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/error.h"

#include "common/quote.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Returns whether the message is as it was formatted: nothing in it had to be quoted. */
static bool fill_message(struct dl2_error *error, enum dl2_status status, const char *format,
                         va_list args)
{
    char raw[sizeof error->message];
    vsnprintf(raw, sizeof raw, format, args);
    dl2_quote(raw, error->message, sizeof error->message);
    error->status = status;
    error->number = 0;
    error->path_start = error->path_length = 0;
    return !strcmp(raw, error->message);
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
    /* A path that was cut short is none. */
    return printed < 0 || (size_t)printed >= sizeof((struct dl2_error *)NULL)->message
               ? 0
               : (unsigned)printed;
}

int dl2_error_set(struct dl2_error *error, enum dl2_status status, const char *format, ...)
{
    if (error && error->status == DL2_OK) {
        va_list args;
        va_start(args, format);
        fill_message(error, status, format, args);
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
    int reason = errno;
    if (error && error->status == DL2_OK) {
        va_list args;
        va_start(args, format);
        const bool plain = fill_message(error, DL2_ERR_SYSTEM, format, args);
        va_end(args);
        va_start(args, format);
        error->path_length = plain ? path_length(format, args) : 0;
        va_end(args);
        error->number = reason;
        size_t used = strlen(error->message);
        char buffer[128];
        /* glibc's strerror_r may return a string of its own instead of filling the buffer. */
        const char *text = strerror_r(reason, buffer, sizeof buffer);
        snprintf(error->message + used, sizeof error->message - used, ": %s", text);
    }
    return DL2_ERR_SYSTEM;
}

void dl2_error_prefix(struct dl2_error *error, const char *format, ...)
{
    if (!error || error->status == DL2_OK)
        return;
    char old[sizeof error->message], raw[sizeof error->message];
    memcpy(old, error->message, sizeof old);
    va_list args;
    va_start(args, format);
    vsnprintf(raw, sizeof raw, format, args);
    va_end(args);
    dl2_quote(raw, error->message, sizeof error->message);
    size_t used = strlen(error->message);
    snprintf(error->message + used, sizeof error->message - used, ": %s", old);
    error->path_start += (unsigned)used + 2;
    if (error->path_start + error->path_length >= sizeof error->message)
        error->path_start = error->path_length = 0;
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
