/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records how a run uses the machine: once a period a thread samples the process, the disk, the
 * card and the run's progress.
 *
 * Threads: all functions but start and stop may be called from any.
 */
#ifndef DL2_COMMON_MONITOR_H
#define DL2_COMMON_MONITOR_H

#include "common/error.h"

#include <jansson.h>
#include <stdint.h>

/* Samples that a timeline has at most. With all columns its JSON stays below 256 KiB. */
#define DL2_MONITOR_SAMPLES 600

struct dl2_monitor;

/*
 * Starts it. `card` is the one to watch, as for dl2_nvml_open(), or NULL; the environment variable
 * DL2_CARD goes before it. A card that can't be watched is left out without a word. `server` is the
 * name of processes of this machine that work for the run, or NULL; at most 15 characters.
 */
int dl2_monitor_start(double period_seconds, const char *card, const char *server,
                      struct dl2_monitor **out, struct dl2_error *error);
/* Ends it; NULL is fine. */
void dl2_monitor_stop(struct dl2_monitor *monitor);

/* Takes a sample now, for example at a run's end. */
void dl2_monitor_sample(struct dl2_monitor *monitor);

/* Adds images that are done, and seconds that were spent waiting for them. */
void dl2_monitor_count(struct dl2_monitor *monitor, uint64_t images, double waited);

/*
 * The samples so far, in columns of equal length:
 *   seconds                              since the start, of each sample
 *   images, data_wait_seconds            counted since the start
 *   cpu_percent                          100 = one core, since the sample before
 *   rss_bytes
 *   disk_read_bytes, disk_write_bytes    since the start; what really went to the disk
 *   network_received_bytes, network_sent_bytes   since the start, of the machine
 *   machine_cpu_percent                  the same of all processes of the machine
 *   machine_disk_read_bytes, machine_disk_write_bytes   since the start, of all disks
 * with a server:
 *   server_cpu_percent                   of its processes; those that ended in between don't count
 * and, with a card, those that it tells:
 *   card_percent, card_memory_percent    of the time in which a kernel ran, memory was moved
 *   card_memory_bytes                    in use, by all processes
 *   card_watts, card_joules              of the board; joules since the start
 *   card_sm_mhz, card_memory_mhz
 * and "period_seconds", which doubles, and every other sample goes, when there are
 * DL2_MONITOR_SAMPLES. A new reference.
 */
json_t *dl2_monitor_timeline(struct dl2_monitor *monitor);

/* {"name", "driver", ..., "energy": "counter" or, where the card counts none, "power" for the sum
 * of its power over time}, or NULL without a card. A new reference. */
json_t *dl2_monitor_card(const struct dl2_monitor *monitor);

/* Energy that the card used since the start, joules; NAN if it is not known. */
double dl2_monitor_joules(struct dl2_monitor *monitor);

#endif
