/* SPDX-License-Identifier: BSD-2-Clause */
#include "train/step_log.h"

#include "common/json.h"
#include "common/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Longest line that is read: those that are written are far below. */
enum { MAX_LINE = 1024 };

struct dl2_step_log {
    FILE *file;
    char *path;
};

static int step_log_error(const struct dl2_step_log *log, const char *what, struct dl2_error *error)
{
    return dl2_error_set(error, DL2_ERR_SYSTEM, "%s: cannot be %s: %s", log->path, what,
                         strerror(errno));
}

/* The step of a whole line; 0: it is none. */
static long long step_of(const char *line)
{
    const size_t length = strlen(line);
    if (!length || line[length - 1] != '\n')
        return 0;
    json_auto_t *entry = json_loads(line, 0, NULL);
    return dl2_json_get_integer(entry, "step", 0);
}

/* Where the lines end that are to be kept: steps up to `steps`, in order. */
static off_t find_end(FILE *file, uint64_t steps)
{
    char line[MAX_LINE];
    off_t end = 0;
    long long last = 0;
    while (steps && fgets(line, sizeof line, file)) {
        const long long step = step_of(line);
        if (step <= last || (uint64_t)step > steps)
            break;
        last = step;
        end = ftello(file);
    }
    return end;
}

int dl2_step_log_open(const char *path, uint64_t steps, struct dl2_step_log **out,
                      struct dl2_error *error)
{
    struct dl2_step_log *log = dl2_calloc(1, sizeof *log);
    if (!log || !(log->path = strdup(path))) {
        free(log);
        return dl2_error_memory(error, "a log of steps");
    }
    const int place = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    log->file = place >= 0 ? fdopen(place, "r+") : NULL;
    if (!log->file && place >= 0)
        close(place);
    const off_t end = log->file ? find_end(log->file, steps) : 0;
    if (!log->file || ftruncate(fileno(log->file), end) != 0 ||
        fseeko(log->file, end, SEEK_SET) != 0) {
        step_log_error(log, "opened", error);
        dl2_step_log_close(log);
        return DL2_ERR_SYSTEM;
    }
    *out = log;
    return DL2_OK;
}

void dl2_step_log_close(struct dl2_step_log *log)
{
    if (!log)
        return;
    if (log->file)
        fclose(log->file);
    free(log->path);
    free(log);
}

int dl2_step_log_add(struct dl2_step_log *log, const struct dl2_step_entry *entry,
                     struct dl2_error *error)
{
    json_auto_t *json =
        json_pack("{s:I, s:f, s:o, s:f, s:I, s:f, s:f}", "step", (json_int_t)entry->step, "epoch",
                  entry->epoch, "loss", dl2_json_real(entry->loss), "lr", entry->lr, "images",
                  (json_int_t)entry->images, "seconds", entry->seconds, "data_wait_seconds",
                  entry->data_wait);
    if (!json)
        return dl2_error_memory(error, "a line of %s", log->path);
    if (json_dumpf(json, log->file, JSON_COMPACT | JSON_REAL_PRECISION(9)) != 0 ||
        fputc('\n', log->file) == EOF)
        return step_log_error(log, "written", error);
    return DL2_OK;
}

int dl2_step_log_flush(struct dl2_step_log *log, struct dl2_error *error)
{
    return fflush(log->file) == 0 ? DL2_OK : step_log_error(log, "written", error);
}
