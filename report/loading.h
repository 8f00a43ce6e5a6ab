/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The speeds of loading and training by storage and number of worker threads: what `make
 * study-loading` leaves in FOLDER/loading/STORAGE/jobs-N, as rounds (report/rounds.h).
 */
#ifndef DL2_REPORT_LOADING_H
#define DL2_REPORT_LOADING_H

#include "report/analysis.h"
#include "report/study.h"

struct dl2_loading_setup {
    char *storage; /* "memory", "disk"; "cache-25": a disk, with a cache in memory */
    unsigned jobs; /* worker threads */
    struct dl2_rounds rounds;
};

struct dl2_loading {
    struct dl2_loading_setup *items; /* by storage and jobs */
    size_t count;
    const char **networks; /* that training was measured with; borrowed from the rounds */
    size_t network_count;
};

/* Collects what there is of the study's variants. Files that are broken are added to `study`. */
struct dl2_loading dl2_loading_collect(const char *folder, struct dl2_study *study);

/* Is it a disk with a cache in memory? */
bool dl2_loading_caches(const struct dl2_loading_setup *setup);

/* Is it the first setup of its storage? The others follow, those with more workers last. */
bool dl2_loading_starts_storage(const struct dl2_loading *loading, size_t i);
size_t dl2_loading_last_of_storage(const struct dl2_loading *loading, size_t first);

/* The part of the files that could not be evicted for reading cold, at worst. */
double dl2_loading_resident(const struct dl2_loading *loading);

/* The cache of a variant's loading, and what it reads in an epoch of all its images; bytes. False
 * where that is not known. */
bool dl2_loading_memory(const struct dl2_loading_setup *setup, const char *variant, double *cache,
                        double *epoch);

/* The most rounds of a setup. */
size_t dl2_loading_rounds(const struct dl2_loading *loading);

#endif
