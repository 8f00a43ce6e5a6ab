/* SPDX-License-Identifier: BSD-2-Clause */
/* Text that grows by printf() in a buffer of fixed size; what does not fit is cut off. */
#ifndef DL2_REPORT_SENTENCE_H
#define DL2_REPORT_SENTENCE_H

#include "common/error.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

struct dl2_sentence {
    char *text;
    size_t size, used;
};

DL2_PRINTF(2, 3)
static inline void dl2_say(struct dl2_sentence *sentence, const char *format, ...)
{
    va_list arguments;
    const size_t left = sentence->size - sentence->used;
    va_start(arguments, format);
    const int length = vsnprintf(sentence->text + sentence->used, left, format, arguments);
    va_end(arguments);
    if (length > 0)
        sentence->used += (size_t)length < left ? (size_t)length : left - 1;
}

/* What stands before item `i` of `count` in "a, b and c". */
static inline const char *dl2_joint(size_t i, size_t count)
{
    return !i ? "" : i + 1 < count ? ", " : " and ";
}

#endif
