/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/streams.h"

#include "common/option.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *name = "dl2";

/* The error of a write that failed before is not known any more. */
static void end(void)
{
    const int failed_before = ferror(stdout);
    int reason = 0;
    if (fclose(stdout) != 0)
        reason = errno;
    if (!failed_before && !reason)
        return;
    fprintf(stderr,
            "%s: the standard output could not be written%s%s; what was to be read there "
            "is incomplete\n",
            name, reason ? ": " : "", reason ? strerror(reason) : "");
    _exit(DL2_EXIT_FAILED);
}

void dl2_streams_begin(const char *program)
{
    name = program;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
            continue;
        /* The lowest number that is free is this one: those below are open. */
        if (open("/dev/null", O_RDWR) != fd) {
            if (fd < STDERR_FILENO)
                fprintf(stderr, "%s: /dev/null can't be opened in place of closed descriptor %d\n",
                        name, fd);
            _exit(DL2_EXIT_FAILED);
        }
    }
    if (atexit(end) != 0)
        abort();
}
