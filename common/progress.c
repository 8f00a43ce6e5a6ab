/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/progress.h"

#include "common/clock.h"
#include "common/quote.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BAR_WIDTH 24

void dl2_progress_begin(struct dl2_progress *progress, const char *label, const char *unit,
                        size_t total, bool quiet)
{
    double now = dl2_clock_wall();
    *progress = (struct dl2_progress){.label = label,
                                      .unit = unit,
                                      .total = total,
                                      .started = now,
                                      .last_drawn = now,
                                      .terminal = isatty(STDERR_FILENO),
                                      .quiet = quiet};
}

static void draw(struct dl2_progress *progress, double now, const char *note)
{
    double elapsed = now - progress->started;
    double rate = elapsed > 0 ? (double)progress->done / elapsed : 0;
    double left = rate > 0 ? (double)(progress->total - progress->done) / rate : 0;
    if (progress->cost_done > 0)
        left = elapsed * (progress->cost - progress->cost_done) / progress->cost_done;
    if (progress->terminal) {
        char bar[BAR_WIDTH + 1];
        size_t full = progress->total ? progress->done * BAR_WIDTH / progress->total : 0;
        for (size_t i = 0; i < BAR_WIDTH; i++)
            bar[i] = i < full ? '=' : i == full ? '>' : ' ';
        bar[BAR_WIDTH] = '\0';
        fprintf(stderr, "\r\033[K%s [%s] %zu/%zu %s  %.0f/s  %.0f s left%s%s", progress->label, bar,
                progress->done, progress->total, progress->unit, rate, left, note ? "  " : "",
                note ? note : "");
        fflush(stderr);
    } else {
        fprintf(stderr, "%s: %zu of %zu %s, %.0f/s, %.0f s left%s%s\n", progress->label,
                progress->done, progress->total, progress->unit, rate, left, note ? ", " : "",
                note ? note : "");
    }
    progress->drawn = true;
    progress->last_drawn = now;
}

void dl2_progress_update(struct dl2_progress *progress, size_t done, const char *note)
{
    progress->done = done;
    if (progress->quiet)
        return;
    double now = dl2_clock_wall();
    if (now - progress->last_drawn >= (progress->terminal ? 0.1 : 10.0))
        draw(progress, now, note);
}

void dl2_progress_message(struct dl2_progress *progress, const char *format, ...)
{
    if (progress->terminal && progress->drawn)
        fputs("\r\033[K", stderr);
    char text[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "%s\n", dl2_quote(text, (char[2 * sizeof text]){""}, 2 * sizeof text));
}

void dl2_progress_tell(struct dl2_progress *progress, const char *place, char *text)
{
    if (text)
        dl2_progress_message(progress, "%s: %s", place, text);
    free(text);
}

void dl2_progress_end(struct dl2_progress *progress)
{
    if (progress->quiet)
        return;
    if (progress->terminal && progress->drawn)
        fputs("\r\033[K", stderr);
    if (!progress->done)
        return;
    double elapsed = dl2_clock_wall() - progress->started;
    fprintf(stderr, "%s: %zu %s in %.1f s\n", progress->label, progress->done, progress->unit,
            elapsed);
}
