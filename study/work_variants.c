/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/file.h"
#include "common/json.h"
#include "common/option.h"
#include "study/paths.h"
#include "study/work.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* Other options may ask for another container, and dl2-transcode refuses to write one over the
 * other, so an old one is removed, as are facts whose images were. A variant of the same container
 * is gone on with. */
static void remove_old(const char *out, const struct dl2_step *step, const char *file)
{
    const struct dl2_words command = step->commands.at[0];
    const char *folder = dl2_path_folder(file);
    const char *stamp = dl2_text("%s/.make/transcode", out);
    const bool is_removed = dl2_plan_is_removed(file);
    if (!dl2_is_folder(folder) ||
        (!is_removed && dl2_is_file(file) && dl2_work_time(file) >= dl2_work_time(stamp)))
        return;
    bool goes = step->elsewhere || is_removed;
    for (size_t i = 0; i < command.count; i++)
        goes |= strncmp(command.at[i], "--con", 5) == 0;
    json_auto_t *variant = NULL;
    if (goes || !dl2_is_file(file) || dl2_json_load(file, NULL, &variant, NULL) < 0 ||
        !json_object_get(variant, "codec") || json_object_get(variant, "container"))
        dl2_remove_tree(folder);
}

/* Images that can't be read don't end a study: the report names them. A run that failed as a whole
 * writes no facts, so only variants with facts are up to date, whatever older runs have left. */
int dl2_work_variants(const char *out, const struct dl2_step *step)
{
    const struct dl2_words files = step->outputs;
    const char *facts = dl2_text("%s/.make/facts", out);
    for (size_t i = 0; i < files.count; i++)
        remove_old(out, step, files.at[i]);
    dl2_remove_tree(facts);
    const int status = dl2_work_run(step->commands.at[0], -1, -1);
    bool all = status == 0 || status == 1;
    for (size_t i = 0; i < files.count; i++) {
        const char *name = dl2_path_base(dl2_path_folder(files.at[i]));
        const char *fact = dl2_text("%s/%s/dl2-variant.json", facts, name);
        if (status <= 1 && dl2_plan_is_late(fact)) { /* a result */
            printf("%s did not finish within ENCODE_LIMIT\n", name);
        } else if (status > 1 || !dl2_work_is_true(fact, "complete")) {
            fprintf(stderr, "%s could not be made: see above\n", name);
            all = false;
        } else if (step->elsewhere) {
            dl2_text_save(files.at[i], dl2_text_of_file(fact));
        } else {
            utimensat(AT_FDCWD, files.at[i], NULL, 0);
        }
    }
    dl2_remove_tree(facts);
    return all ? DL2_EXIT_OK : DL2_EXIT_FAILED;
}
