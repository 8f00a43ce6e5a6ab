/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measures speeds in rounds. A round measures each cell once, one after the other, so that what
 * changes on the machine from round to round changes all of them. What changes within a round is
 * balanced: every second round goes backwards through the order of the one before it, and each such
 * pair begins at another cell, up to the middle one. FOLDER/order.tsv has a line for each
 * measurement that was begun: its round, path, and when. Results are FOLDER/PATH/round-1.json...
 *
 * The step's own commands come first: they copy what is measured to other places.
 *
 * All is measured anew if an input is newer than the folder; what was interrupted is gone on with.
 */
#include "common/file.h"
#include "common/json.h"
#include "common/option.h"
#include "study/paths.h"
#include "study/progress.h"
#include "study/work.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct rounds {
    const struct dl2_step *step;
    const char *folder;
    size_t count;
};

/* The cells of a round, from 1, in its order. */
static size_t order_of(const struct rounds *rounds, size_t round,
                       const struct dl2_measurement ***out)
{
    const struct dl2_step *step = rounds->step;
    const struct dl2_measurement **all = dl2_keep(step->cell_count, sizeof *all, "the cells");
    const struct dl2_measurement **ordered =
        dl2_keep(step->cell_count, sizeof *ordered, "the cells");
    size_t count = 0, i;
    for (i = 0; i < step->cell_count; i++)
        if (round == 1 || !step->cells[i].once)
            all[count++] = &step->cells[i];
    const size_t pair = (round - 1) / 2, pairs = (rounds->count + 1) / 2;
    const size_t start = pairs > 1 ? count * pair / (2 * (pairs - 1)) : 0;
    for (i = 0; i < count; i++)
        ordered[i] = all[(start + (round % 2 ? i : count - 1 - i)) % count];
    *out = ordered;
    return count;
}

/* Percent of the original's bytes, which any variant knows. */
static const char *cache_of(const struct dl2_step *step, const char *percent)
{
    long long bytes = 0;
    if (!percent)
        return "";
    for (size_t i = 0; i < step->inputs.count && !bytes; i++) {
        json_auto_t *json = NULL;
        if (strstr(step->inputs.at[i], "dl2-variant.json") &&
            dl2_json_load(step->inputs.at[i], NULL, &json, NULL) == DL2_OK)
            bytes = dl2_json_get_integer(json, "source_bytes", 0);
    }
    return dl2_text("%lld", bytes * strtoll(percent, NULL, 10) / 100);
}

static void note_order(const struct rounds *rounds, size_t round, const char *path)
{
    const char *name = dl2_text("%s/order.tsv", rounds->folder);
    char when[32];
    const time_t now = time(NULL);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    FILE *file = fopen(name, "a");
    const bool written = file && fprintf(file, "%zu\t%s\t%s\n", round, path, when) > 0;
    if ((file && fclose(file) != 0) || !written)
        dl2_study_fail(DL2_EXIT_FAILED, "%s: can't be written: %s", name, strerror(errno));
}

/* The result is the last line that was said. */
static int note_failure(const char *log, const char *file)
{
    const char *text = dl2_text_of_file(log), *last = "it ended without a word";
    struct dl2_error error = DL2_ERROR_INIT;
    for (; text && *text; text = dl2_next_line(text))
        if (*dl2_first_line(text))
            last = dl2_first_line(text);
    json_auto_t *json =
        dl2_need(json_pack("{s:s, s:o}", "schema", "dl2-loader/1", "error", dl2_json_text(last)));
    if (dl2_json_save(file, json, &error) < 0)
        dl2_study_fail(DL2_EXIT_FAILED, "%s", error.message);
    return DL2_EXIT_OK;
}

static int measure(const struct rounds *rounds, size_t round, const struct dl2_measurement *cell,
                   const char *file)
{
    const char *log = dl2_text("%s/.log", rounds->folder);
    const char *folder = dl2_text("%s/.work", rounds->folder);
    const char *result = dl2_text(cell->trains ? "%s/rate_report.json" : "%s.json", folder);
    const struct dl2_words command = dl2_work_command(
        cell->command, "{file}", result, "{work}", folder, "{round}", dl2_text("%zu", round),
        "{cache}", cache_of(rounds->step, cell->cache), NULL);
    note_order(rounds, round, cell->path);
    dl2_work_make_folder_of(file);
    unlink(result);
    const int out = dl2_work_open(log), status = dl2_work_run(command, out, out);
    close(out);
    if ((status == 0 || (status == 1 && !cell->trains)) && rename(result, file) == 0)
        return DL2_EXIT_OK;
    dl2_progress_line_clear();
    dl2_work_show(log, STDERR_FILENO);
    fprintf(stderr, "The speed of %s could not be measured: see above\n", cell->path);
    return cell->may_fail ? note_failure(log, file) : DL2_EXIT_FAILED;
}

static int measure_round(const struct rounds *rounds, size_t round)
{
    const struct dl2_measurement **cells;
    const size_t count = order_of(rounds, round, &cells);
    int status = DL2_EXIT_OK;
    bool said = false;
    for (size_t i = 0; i < count && status == DL2_EXIT_OK; i++) {
        const char *file = dl2_text("%s/%s/round-%zu.json", rounds->folder, cells[i]->path, round);
        if (access(file, F_OK) == 0)
            continue;
        if (!said)
            dl2_work_say("Measuring speed, round %zu of %zu", round, rounds->count);
        said = true;
        status = measure(rounds, round, cells[i], file);
    }
    return status;
}

/* Says what a command said if it failed. */
static int prepare(const struct rounds *rounds)
{
    const struct dl2_commands commands = rounds->step->commands;
    const char *log = dl2_text("%s/.log", rounds->folder);
    int status = 0;
    for (size_t i = 0; i < commands.count && status == 0; i++) {
        const int out = dl2_work_open(log);
        status = dl2_work_run(commands.at[i], out, out);
        close(out);
    }
    if (status == 0)
        return DL2_EXIT_OK;
    dl2_progress_line_clear();
    dl2_work_show(log, STDERR_FILENO);
    fprintf(stderr, "A copy to be measured failed: see above\n");
    return DL2_EXIT_FAILED;
}

int dl2_work_measure(const char *out, const struct dl2_step *step)
{
    const char *made = step->outputs.at[0];
    const struct rounds rounds = {step, dl2_path_folder(made), step->rounds};
    const char *begun = dl2_text("%s/.begun", rounds.folder);
    bool anew = access(begun, F_OK) != 0;
    (void)out;
    for (size_t i = 0; i < step->inputs.count; i++)
        anew |= dl2_work_time(step->inputs.at[i]) > dl2_work_time(begun);
    if (anew) {
        dl2_remove_tree(rounds.folder);
        close(dl2_work_open(begun));
    }
    int status = prepare(&rounds);
    for (size_t round = 1; round <= rounds.count && status == DL2_EXIT_OK; round++)
        status = measure_round(&rounds, round);
    if (status != DL2_EXIT_OK)
        return status;
    dl2_remove_tree(dl2_text("%s/.work", rounds.folder));
    unlink(dl2_text("%s/.work.json", rounds.folder));
    unlink(dl2_text("%s/.log", rounds.folder));
    close(dl2_work_open(made));
    return DL2_EXIT_OK;
}
