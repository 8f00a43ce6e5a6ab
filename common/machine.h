/* SPDX-License-Identifier: BSD-2-Clause */
/* Describes this machine and what this process uses of it, from Linux's /proc. Fields that /proc
 * lacks are left out. */
#ifndef DL2_COMMON_MACHINE_H
#define DL2_COMMON_MACHINE_H

#include <jansson.h>

/* {"cpu", "cores", "memory_bytes", "system", "simd"}; new reference. */
json_t *dl2_machine_describe(void);

/* This process: memory now, bytes read from and written to disks so far;
 * 0 if /proc has no figure. */
struct dl2_process_usage {
    long long rss, disk_read, disk_write;
};
void dl2_process_usage(struct dl2_process_usage *usage);

/* Bytes that this machine's, or container's, network interfaces have received and sent so far,
 * without the loopback; NAN if /proc has no figure. */
struct dl2_network_usage {
    double received, sent;
};
void dl2_network_usage(struct dl2_network_usage *usage);

/* The whole machine since it was started: seconds that its processors worked, of all processes; and
 * bytes that its disks have read and written. NAN if /proc has no figure. */
struct dl2_host_usage {
    double cpu, disk_read, disk_write;
};
void dl2_host_usage(struct dl2_host_usage *usage);
/* Processor seconds so far of the processes of this name that are there now; 0 if there are none.
 */
double dl2_named_cpu(const char *name);

/* Peak resident set of this process, bytes. */
unsigned long long dl2_peak_rss(void);

/* Memory that could be used now without swapping, bytes; 0 where /proc doesn't tell. */
unsigned long long dl2_memory_available(void);

#endif
