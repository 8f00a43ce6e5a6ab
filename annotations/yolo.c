/* SPDX-License-Identifier: BSD-2-Clause */
#include "annotations/annotations.h"

#include "common/file.h"
#include "common/scope.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS = 5, MAX_CLASS = 1000000 };

static int read_line(const char *line, struct dl2_bytes *rows, struct dl2_error *error)
{
    double fields[FIELDS];
    size_t count = 0;
    for (const char *at = line; *(at += strspn(at, " \t\r")); count++) {
        char *end;
        const double number = strtod(at, &end);
        if (end == at || (*end && !strchr(" \t\r", *end)) || !isfinite(number))
            return dl2_error_set(error, DL2_ERR_FORMAT, "'%.40s' is not a finite number", at);
        if (count < FIELDS)
            fields[count] = number;
        at = end;
    }
    if (!count)
        return DL2_OK;
    if (count != FIELDS)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%zu numbers, where class, x, y, width and height are 5", count);
    if (!(fields[0] >= 0 && fields[0] <= MAX_CLASS && fields[0] == floor(fields[0])))
        return dl2_error_set(error, DL2_ERR_FORMAT, "%g is not the number of a class", fields[0]);
    if (fields[3] < 0 || fields[4] < 0)
        return dl2_error_set(error, DL2_ERR_FORMAT, "a width or height below 0");
    for (int i = 1; i < FIELDS; i++)
        if (fabs(fields[i]) > 2)
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "%g is not a part of the image's width or height, 0 to 1",
                                 fields[i]);
    const struct dl2_annotation row = {.left = fields[1] - fields[3] / 2,
                                       .top = fields[2] - fields[4] / 2,
                                       .right = fields[1] + fields[3] / 2,
                                       .bottom = fields[2] + fields[4] / 2,
                                       .label = (int64_t)fields[0],
                                       .area = (float)(fields[3] * fields[4])};
    return dl2_bytes_append(rows, &row, sizeof row, error);
}

int dl2_yolo_read(const uint8_t *text, size_t size, struct dl2_bytes *rows, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes copy = DL2_BYTES_INIT;
    rows->size = 0;
    if (size)
        DL2_TRY(dl2_bytes_append(&copy, text, size, error));
    DL2_TRY(dl2_text_begin(&copy, error));
    size_t number = 0;
    for (char *line = (char *)copy.data, *next = line; next; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        number++;
        const int status = read_line(line, rows, error);
        if (status < 0) {
            dl2_error_prefix(error, "line %zu", number);
            return status;
        }
    }
    return DL2_OK;
}
