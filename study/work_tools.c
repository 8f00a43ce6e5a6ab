/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/clock.h"
#include "common/file.h"
#include "common/json.h"
#include "common/option.h"
#include "study/child.h"
#include "study/progress.h"
#include "study/work.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct dl2_words dl2_work_command(struct dl2_words words, ...)
{
    struct dl2_words command = {0};
    dl2_words_add_all(&command, words);
    va_list args;
    va_start(args, words);
    for (const char *key; (key = va_arg(args, const char *));) {
        const char *value = va_arg(args, const char *);
        for (size_t i = 0; i < command.count; i++)
            if (strcmp(command.at[i], key) == 0)
                command.at[i] = value;
    }
    va_end(args);
    return command;
}

void dl2_work_make_folder_of(const char *path)
{
    struct dl2_error error = DL2_ERROR_INIT;
    if (dl2_make_folder_of(path, &error) < 0)
        dl2_study_fail(DL2_EXIT_FAILED, "%s", error.message);
}

int dl2_work_open(const char *path)
{
    dl2_work_make_folder_of(path);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        dl2_study_fail(DL2_EXIT_FAILED, "%s: can't be written: %s", path, strerror(errno));
    return fd;
}

static void show_text(const char *text, int fd)
{
    fflush(stdout);
    for (size_t left = text ? strlen(text) : 0; left;) {
        const ssize_t written = write(fd, text, left);
        if (written <= 0)
            return;
        text += written;
        left -= (size_t)written;
    }
}

void dl2_work_show(const char *path, int fd)
{
    show_text(dl2_text_of_file(path), fd);
}

void dl2_work_show_end(const char *path, int fd)
{
    enum { MOST = 4096 };
    const char *text = dl2_text_of_file(path);
    const size_t size = text ? strlen(text) : 0;
    show_text(size > MOST ? dl2_next_line(text + size - MOST) : text, fd);
}

void dl2_work_say(const char *format, ...)
{
    dl2_progress_line_clear();
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
}

json_t *dl2_work_load(const char *path, const char *schema)
{
    json_t *json;
    struct dl2_error error = DL2_ERROR_INIT;
    if (dl2_json_load(path, schema, &json, &error) < 0)
        dl2_study_fail(DL2_EXIT_FAILED, "%s", error.message);
    return json;
}

bool dl2_work_is_true(const char *path, const char *key)
{
    json_auto_t *json = NULL;
    return dl2_is_file(path) && dl2_json_load(path, NULL, &json, NULL) == DL2_OK &&
           json_is_true(json_object_get(json, key));
}

long long dl2_work_time(const char *path)
{
    struct stat info;
    return stat(path, &info) < 0 ? -1 : dl2_mtime_ns(&info);
}

static void show_command(struct dl2_words command)
{
    const char *shows = getenv("V");
    if (shows && *shows && strcmp(shows, "0") != 0)
        dl2_work_say("%s", dl2_shell_command(command));
}

int dl2_work_run(struct dl2_words command, int out, int err)
{
    show_command(command);
    return dl2_child_run(command, out, err);
}

const char *dl2_work_attempt(const struct dl2_step *step, struct dl2_words command, int log)
{
    const double began = dl2_clock_wall();
    show_command(command);
    const int status = dl2_child_keep(command, log, log, step->limit);
    if (status == 0)
        return NULL;
    if (step->limit && dl2_clock_wall() - began >= step->limit)
        return dl2_text("it was ended after TRAIN_LIMIT, %u s", step->limit);
    return status > 128 ? dl2_text("signal %d (%s) ended it", status - 128, strsignal(status - 128))
                        : dl2_text("it exited with status %d", status);
}
