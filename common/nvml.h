/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sensors of an NVIDIA card, read through the library that comes with its driver (NVML,
 * libnvidia-ml.so.1). It is looked for when a card is opened; nothing of it is needed to build, and
 * where it is missing there is simply no card. The environment variable DL2_NVML names another file
 * to take its place.
 *
 * Threads: any, at any time, as NVML's own calls.
 */
#ifndef DL2_COMMON_NVML_H
#define DL2_COMMON_NVML_H

#include <jansson.h>

struct dl2_nvml;

/* At one moment. NAN for what the card (or a slice of one, under MIG) doesn't tell. */
struct dl2_nvml_reading {
    double percent;        /* of the last sixth of a second to second in which a kernel ran */
    double memory_percent; /* the same, in which its memory was read or written */
    double memory_bytes;   /* in use, by all processes */
    double watts;          /* of the whole board; a mean of the last second on newer ones */
    double joules;         /* of the whole board since the driver was loaded */
    double sm_mhz, memory_mhz;
};

/*
 * The card at a PCI address such as "0000:1b:00.0", or that of a number such as "0" in NVML's own
 * order. NULL where there is no such card, no driver or no memory.
 */
struct dl2_nvml *dl2_nvml_open(const char *card);
void dl2_nvml_close(struct dl2_nvml *card); /* NULL is fine */

void dl2_nvml_read(const struct dl2_nvml *card, struct dl2_nvml_reading *reading);

/* {"name", "driver", "memory_bytes", "power_limit_watts", "max_sm_mhz"}, what of it there is. New
 * reference. */
json_t *dl2_nvml_describe(const struct dl2_nvml *card);

#endif
