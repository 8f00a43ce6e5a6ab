/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/clock.h"

#include <time.h>

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

double dl2_clock_wall(void)
{
    return seconds(CLOCK_MONOTONIC);
}

double dl2_clock_thread_cpu(void)
{
    return seconds(CLOCK_THREAD_CPUTIME_ID);
}

double dl2_clock_process_cpu(void)
{
    return seconds(CLOCK_PROCESS_CPUTIME_ID);
}
