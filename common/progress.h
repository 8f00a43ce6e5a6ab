/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How far a long job is: a bar that redraws itself on a terminal, a plain line every ten seconds
 * elsewhere, nothing when quiet. On stderr, so that results can be piped.
 *
 * Threads: one at a time.
 */
#ifndef DL2_COMMON_PROGRESS_H
#define DL2_COMMON_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

struct dl2_progress {
    const char *label; /* "transcode" */
    const char *unit;  /* "images" */
    size_t total;
    size_t done;
    /* Where items differ in what they take: of all and of those that are done, in any unit, for the
     * time that is left. 0: they do not. The caller's, before dl2_progress_update(). */
    double cost, cost_done;
    double started, last_drawn; /* dl2_clock_wall() */
    bool terminal, quiet, drawn;
};

void dl2_progress_begin(struct dl2_progress *progress, const char *label, const char *unit,
                        size_t total, bool quiet);
/* Cheap enough to call for each item; `note` (may be NULL) stands at the end of the line. */
void dl2_progress_update(struct dl2_progress *progress, size_t done, const char *note);
/* Prints a message line on stderr, quoted (common/quote.h), without tearing the bar; even when
 * quiet.
 */
void dl2_progress_message(struct dl2_progress *progress, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Prints "PLACE: TEXT" in the same way, and frees the text; nothing if that is NULL. */
void dl2_progress_tell(struct dl2_progress *progress, const char *place, char *text);
/* Clears the bar, or ends with a plain line of totals. */
void dl2_progress_end(struct dl2_progress *progress);

#endif
