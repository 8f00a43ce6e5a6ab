/* What this machine is, and what a run used of it. Linux's /proc; fields it lacks are left out. */
#ifndef DL2_COMMON_MACHINE_H
#define DL2_COMMON_MACHINE_H

#include "common/error.h"

#include <jansson.h>

/* {"cpu", "cores", "memory_bytes", "system", "simd"}; new reference. */
json_t *dl2_machine_describe(void);

/* Samples the process on a thread of its own until stopped. */
struct dl2_monitor;
int dl2_monitor_start(double period_seconds, struct dl2_monitor **out, struct dl2_error *error);
/*
 * Stops it and returns the samples, an array of {"seconds" since start, "cpu_percent" (100 = one
 * core, since the sample before), "rss_bytes", "disk_read_bytes", "disk_write_bytes" (both since
 * start)}; thinned to at most 1000 by halving the rate. New reference; the monitor is gone.
 */
json_t *dl2_monitor_stop(struct dl2_monitor *monitor);

/* The samples so far, in the same form, while it goes on. New reference. */
json_t *dl2_monitor_samples(struct dl2_monitor *monitor);

/* Peak resident set of this process, bytes. */
unsigned long long dl2_peak_rss(void);

/* Memory that could be used now without swapping, bytes; 0 where /proc doesn't tell. */
unsigned long long dl2_memory_available(void);

#endif
