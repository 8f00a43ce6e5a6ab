/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/progress.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *done_file(const char *out)
{
    return dl2_text("%s/.make/done", out);
}

static const char *failed_file(const char *out)
{
    return dl2_text("%s/.make/failed", out);
}

void dl2_progress_reset(const char *out)
{
    unlink(done_file(out));
    unlink(failed_file(out));
}

/* Several steps may do so at once. */
static void append(const char *path, const char *line)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0 || write(fd, line, strlen(line)) < 0)
        fprintf(stderr, "dl2-study: %s: can't be written\n", path);
    if (fd >= 0)
        close(fd);
}

void dl2_progress_line_clear(void)
{
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}

/* Steps whose names begin alike take about as long. */
static size_t kind_length(const char *name)
{
    return strcspn(name, "/");
}

static bool is_same_kind(const char *a, const char *b)
{
    return kind_length(a) == kind_length(b) && strncmp(a, b, kind_length(a)) == 0;
}

struct done {
    struct dl2_words names;
    double *seconds;
};

static struct done read_done(const char *out)
{
    const char *text = dl2_text_of_file(done_file(out));
    struct done done = {.names = {0}};
    for (; text && *text; text = dl2_next_line(text)) {
        const size_t name = strcspn(text, "\t\n");
        if (text[name] != '\t')
            break;
        done.seconds = dl2_keep_more(done.seconds, done.names.count, sizeof *done.seconds);
        done.seconds[done.names.count] = strtod(text + name + 1, NULL);
        dl2_words_add(&done.names, dl2_text("%.*s", (int)name, text));
    }
    return done;
}

/* Mean seconds of the steps of this kind that were done, NAN: none was. */
static double usual_seconds(const struct done *done, const char *name)
{
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < done->names.count; i++)
        if (is_same_kind(done->names.at[i], name)) {
            sum += done->seconds[i];
            count++;
        }
    return count ? sum / (double)count : NAN;
}

static const char *in_words(double seconds)
{
    return seconds < 90     ? dl2_text("%.0f s", seconds)
           : seconds < 5400 ? dl2_text("%.0f min", seconds / 60)
                            : dl2_text("%.1f h", seconds / 3600);
}

const char *dl2_progress_text(const struct dl2_study_plan *plan)
{
    struct done done = read_done(plan->out);
    size_t total = 0, count = 0, unknown = 0;
    double left = 0;
    for (size_t i = 0; i < plan->count; i++) {
        const struct dl2_step *step = plan->steps[i];
        if (!step->needed)
            continue;
        total++;
        if (dl2_words_have(done.names, step->name)) {
            count++;
            continue;
        }
        const double seconds = usual_seconds(&done, step->name);
        if (!isfinite(seconds))
            unknown++;
        else
            left += step->alone ? seconds : seconds / plan->trainers;
    }
    if (!total)
        return "nothing is to be done";
    const char *text = dl2_text("%zu of %zu step%s done", count, total, total == 1 ? "" : "s");
    if (count == total || (left == 0 && unknown))
        return text;
    return dl2_text("%s, %s %s left", text, unknown ? "at least" : "about", in_words(left));
}

void dl2_progress_say(const struct dl2_study_plan *plan)
{
    if (plan->quiet)
        return;
    dl2_progress_line_clear();
    fprintf(stderr, isatty(STDERR_FILENO) ? "%s" : "%s\n", dl2_progress_text(plan));
    fflush(stderr);
}

void dl2_progress_note(const struct dl2_study_plan *plan, const char *step, double seconds)
{
    append(done_file(plan->out), dl2_text("%s\t%.3f\n", step, seconds));
    dl2_progress_say(plan);
}

void dl2_progress_note_failed(const char *out, const char *step)
{
    append(failed_file(out), dl2_text("%s\n", step));
}

bool dl2_progress_is_done(const struct dl2_study_plan *plan)
{
    const struct done done = read_done(plan->out);
    for (size_t i = 0; i < plan->count; i++)
        if (plan->steps[i]->needed && !dl2_words_have(done.names, plan->steps[i]->name))
            return false;
    return true;
}

void dl2_progress_tell_failed(const struct dl2_study_plan *plan)
{
    const struct done done = read_done(plan->out);
    const char *text = dl2_text_of_file(failed_file(plan->out));
    const struct dl2_words failed = dl2_words_split(text ? text : "");
    size_t left = 0;
    if (failed.count)
        fprintf(stderr, "\n%zu step%s failed:\n", failed.count, failed.count == 1 ? "" : "s");
    for (size_t i = 0; i < plan->count; i++) {
        const struct dl2_step *step = plan->steps[i];
        if (!dl2_words_have(failed, step->name)) {
            left += step->needed && !dl2_words_have(done.names, step->name);
            continue;
        }
        fprintf(stderr, "  %s, which was to make %s", step->name, step->outputs.at[0]);
        if (step->outputs.count > 1)
            fprintf(stderr, " and %zu more", step->outputs.count - 1);
        fprintf(stderr, step->log ? "; see %s\n" : "\n", step->log);
    }
    if (left)
        fprintf(stderr, "%zu other%s that need%s their results %s not done, such as the report.\n",
                left, left == 1 ? "" : "s", left == 1 ? "s" : "", left == 1 ? "was" : "were");
    fputs("The same command tries these again, and keeps what was done.\n", stderr);
}
