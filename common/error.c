#include "common/error.h"

#include "common/quote.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void fill(struct dl2_error *error, enum dl2_status status, const char *format, va_list args)
{
    char raw[sizeof error->message];
    vsnprintf(raw, sizeof raw, format, args);
    dl2_quote(raw, error->message, sizeof error->message);
    error->status = status;
}

int dl2_error_set(struct dl2_error *error, enum dl2_status status, const char *format, ...)
{
    if (error && error->status == DL2_OK) {
        va_list args;
        va_start(args, format);
        fill(error, status, format, args);
        va_end(args);
    }
    return status;
}

int dl2_error_system(struct dl2_error *error, const char *format, ...)
{
    int reason = errno;
    if (error && error->status == DL2_OK) {
        va_list args;
        va_start(args, format);
        fill(error, DL2_ERR_SYSTEM, format, args);
        va_end(args);
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
}

void dl2_error_clear(struct dl2_error *error)
{
    if (error) {
        error->status = DL2_OK;
        error->message[0] = '\0';
    }
}
