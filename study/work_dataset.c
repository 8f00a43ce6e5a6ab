/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/file.h"
#include "common/json.h"
#include "common/option.h"
#include "study/child.h"
#include "study/scripts.h"
#include "study/work.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void write_file(const char *path, const char *text)
{
    struct dl2_error error = DL2_ERROR_INIT;
    if (dl2_file_write(path, text, strlen(text), &error) < 0)
        dl2_study_fail(DL2_EXIT_FAILED, "%s", error.message);
}

/* Installs the packages that a dataset comes with or is made by, and makes it. */
static int get_dataset(const struct dl2_work *work, const char *name)
{
    enum { INSTALLED = 3 };
    struct dl2_words command = {0};
    dl2_words_add(&command, "sh");
    dl2_words_add(&command, dl2_study_script("packages.sh"));
    dl2_words_add(&command, name);
    int status = dl2_work_run(&command, -1, -1);
    if ((status != 0 && status != INSTALLED) || strcmp(name, "fashion-mnist") == 0)
        return status == INSTALLED ? 0 : status;
    command = (struct dl2_words){0};
    setenv("JOBS", dl2_text("%lld", dl2_json_get_integer(work->step, "jobs", 1)), 1);
    if (strcmp(name, "demo") == 0)
        dl2_work_say("Cutting the demo dataset");
    dl2_words_add(&command, "sh");
    dl2_words_add(&command, dl2_study_script(dl2_text("%s-dataset.sh", name)));
    dl2_words_add(&command, dl2_work_text(work, "data"));
    return dl2_work_run(&command, -1, -1);
}

/* The stamp is as old as the last look at the dataset was, so that a change made since is seen. */
int dl2_work_dataset(const struct dl2_work *work)
{
    const char *stamp = dl2_work_list(work, "outputs").at[0];
    const char *looked = dl2_text("%s.looked", stamp), *name = dl2_work_text(work, "dataset");
    dl2_work_make_folder_of(stamp);
    write_file(dl2_text("%s/.make/owner", work->out),
               dl2_text("%s\n", dl2_work_text(work, "identity")));
    close(dl2_work_open(looked));
    if (name && get_dataset(work, name) != 0)
        return DL2_EXIT_FAILED;
    const json_t *identify = json_array_get(json_object_get(work->step, "commands"), 0);
    const char *output = "", *messages, *key = "\nfingerprint\t";
    if (identify) {
        const struct dl2_words command = dl2_words_of_json(identify);
        dl2_child_ask(&command, &output, &messages);
        output = dl2_text("\n%s", output);
        output = strstr(output, key) ? strstr(output, key) + strlen(key) : "";
    }
    struct stat info;
    if (stat(looked, &info) < 0)
        dl2_study_fail(DL2_EXIT_FAILED, "%s is gone", looked);
    write_file(looked, output);
    const struct timespec times[2] = {info.st_mtim, info.st_mtim};
    if (utimensat(AT_FDCWD, looked, times, 0) < 0 || rename(looked, stamp) < 0)
        dl2_study_fail(DL2_EXIT_FAILED, "%s: can't be written", stamp);
    return DL2_EXIT_OK;
}
