/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/json.h"
#include "common/option.h"
#include "study/child.h"
#include "study/work.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Installs packages, and makes the dataset. */
static int get_dataset(const struct dl2_work *work)
{
    enum { INSTALLED = 3 }; /* packages.sh: it had something to install */
    const json_t *commands = json_object_get(work->step, "commands");
    int status = 0;
    for (size_t i = 0; i < json_array_size(commands) && status == 0; i++) {
        status = dl2_work_run(dl2_words_of_json(json_array_get(commands, i)), -1, -1);
        status = status == INSTALLED ? 0 : status;
    }
    return status;
}

/* The stamp is as old as the last look at the dataset was, so that a change made since is seen. */
int dl2_work_dataset(const struct dl2_work *work)
{
    const char *stamp = dl2_work_list(work, "outputs").at[0];
    const char *looked = dl2_text("%s.looked", stamp);
    dl2_work_make_folder_of(stamp);
    dl2_text_save(dl2_text("%s/.make/owner", work->out),
                  dl2_text("%s\n", dl2_work_text(work, "identity")));
    close(dl2_work_open(looked));
    if (get_dataset(work) != 0)
        return DL2_EXIT_FAILED;
    const json_t *identify = json_object_get(work->step, "identify");
    const char *output = "", *messages, *key = "\nfingerprint\t";
    if (identify) {
        dl2_child_ask(dl2_words_of_json(identify), &output, &messages);
        output = dl2_text("\n%s", output);
        output = strstr(output, key) ? strstr(output, key) + strlen(key) : "";
    }
    struct stat info;
    if (stat(looked, &info) < 0)
        dl2_study_fail(DL2_EXIT_FAILED, "%s is gone", looked);
    dl2_text_save(looked, output);
    const struct timespec times[2] = {info.st_mtim, info.st_mtim};
    if (utimensat(AT_FDCWD, looked, times, 0) < 0 || rename(looked, stamp) < 0)
        dl2_study_fail(DL2_EXIT_FAILED, "%s: can't be written", stamp);
    return DL2_EXIT_OK;
}
