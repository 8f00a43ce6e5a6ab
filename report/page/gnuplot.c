/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/page/gnuplot.h"

#include "common/file.h"

#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>

extern char **environ;

bool dl2_gnuplot_run(const char *gnuplot, const char *folder, const char *name)
{
    char script[160];
    snprintf(script, sizeof script, "%s.gp", name);
    char *arguments[] = {"sh",
                         "-c",
                         "cd \"$1\" && exec \"$2\" \"$3\" 2>/dev/null",
                         "sh",
                         (char *)folder,
                         (char *)gnuplot,
                         script,
                         NULL};
    pid_t child;
    if (posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ) != 0)
        return false;
    int status;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int dl2_gnuplot_save(const char *folder, const char *name, const char *extension,
                     const struct dl2_bytes *bytes, struct dl2_error *error)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.%s", folder, name, extension);
    return dl2_file_write(path, bytes->data, bytes->size, error);
}
