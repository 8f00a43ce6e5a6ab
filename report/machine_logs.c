/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/machine_logs.h"

#include "common/file.h"
#include "common/json.h"
#include "common/scope.h"
#include "report/result_files.h"
#include "report/timeline.h"

#include <math.h>
#include <stdlib.h>

static const char *stage_of(const json_t *report)
{
    const char *program = dl2_json_get_text(report, "program", "?");
    const char *command = dl2_json_get_text(report, "command", "");
    if (strcmp(program, "dl2-study") != 0 || !*command)
        return program;
    return dl2_text("%.*s", (int)strcspn(command, "/"), command);
}

/* One without a start or samples tells nothing: it has just begun. */
static void add_log(struct dl2_machine_logs *logs, const json_t *report)
{
    const json_t *timeline = json_object_get(report, "timeline");
    const size_t samples = dl2_timeline_samples(timeline);
    const double from = dl2_json_get_real(report, "started", NAN);
    const double to = samples ? from + dl2_timeline_seconds(timeline, samples - 1) : NAN;
    if (!(to > from))
        return;
    logs->items = dl2_keep_more(logs->items, logs->count, sizeof *logs->items);
    logs->items[logs->count++] = (struct dl2_machine_log){
        dl2_json_get_text(report, "host", "?"), stage_of(report), from, to, report, timeline};
}

static int compare_starts(const void *a, const void *b)
{
    const struct dl2_machine_log *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

/* Makes times relative, and takes out the pauses. */
static void close_up(struct dl2_machine_logs *logs)
{
    double end = logs->count ? logs->items[0].from : 0, out = end;
    for (size_t i = 0; i < logs->count; i++) {
        struct dl2_machine_log *log = &logs->items[i];
        if (log->from - end >= DL2_MACHINE_PAUSE) {
            out += log->from - end;
            logs->pauses++;
        }
        end = fmax(end, log->to);
        log->from -= out;
        log->to -= out;
    }
}

struct dl2_machine_logs dl2_machine_logs_read(const char *folder)
{
    struct dl2_machine_logs logs = {.count = 0};
    struct dl2_error error = DL2_ERROR_INIT;
    DL2_AUTO_LIST char **names = NULL;
    if (dl2_unless_memory(dl2_list_names(dl2_text("%s/timelines", folder), &names, &error),
                          &error) < 0)
        dl2_words_add(&logs.broken, dl2_text("%s", error.message));
    for (size_t i = 0; names && names[i]; i++) {
        const char *path = dl2_text("%s/timelines/%s", folder, names[i]);
        struct dl2_error why = DL2_ERROR_INIT;
        json_t *report = NULL;
        if (strcmp(dl2_path_extension(path), "json") != 0)
            continue;
        if (dl2_unless_memory(dl2_result_load(path, "dl2-timeline/1", &report, &why), &why) < 0)
            dl2_words_add(&logs.broken, dl2_text("%s", why.message));
        else
            add_log(&logs, dl2_keep_json(report));
    }
    if (logs.count)
        qsort(logs.items, logs.count, sizeof *logs.items, compare_starts);
    close_up(&logs);
    return logs;
}
