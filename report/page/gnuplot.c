/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/page/gnuplot.h"

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
