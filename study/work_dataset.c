/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/option.h"
#include "study/child.h"
#include "study/work.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Installs packages, and makes the dataset. */
static int get_dataset(const struct dl2_step *step)
{
    enum { INSTALLED = 3 }; /* packages.sh: it had something to install */
    int status = 0;
    for (size_t i = 0; i < step->commands.count && status == 0; i++) {
        status = dl2_work_run(step->commands.at[i], -1, -1);
        status = status == INSTALLED ? 0 : status;
    }
    return status;
}

/* The stamp is as old as the last look at the dataset was, so that a change made since is seen. */
int dl2_work_dataset(const char *out, const struct dl2_step *step)
{
    const char *stamp = step->outputs.at[0];
    const char *looked = dl2_text("%s.looked", stamp);
    dl2_work_make_folder_of(stamp);
    dl2_text_save(dl2_text("%s/.make/owner", out), dl2_text("%s\n", step->identity));
    close(dl2_work_open(looked));
    if (get_dataset(step) != 0)
        return DL2_EXIT_FAILED;
    const char *output = "", *messages, *key = "\nfingerprint\t";
    if (step->identify.count) {
        dl2_child_ask(step->identify, &output, &messages);
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
