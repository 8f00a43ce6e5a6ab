/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the files of dl2-load: its options, its commands, and one measured run of the loader.
 */
#ifndef DL2_LOAD_LOAD_H
#define DL2_LOAD_LOAD_H

#include "common/progress.h"
#include "loader/batch_decoder.h"
#include "loader/loader.h"

#include <jansson.h>
#include <stdio.h>

enum dl2_load_device {
    DL2_DEVICE_UNKNOWN,  /* as the report says, else separate */
    DL2_DEVICE_SEPARATE, /* the loader has all processors for itself */
    DL2_DEVICE_SHARED    /* training runs on the loader's processors */
};

struct dl2_load_options {
    struct dl2_loader_config loader;
    struct dl2_dataset_options dataset;
    bool quiet;
    const char *json_path, *name;

    /* bench */
    unsigned epochs;
    double measure; /* seconds, in place of `epochs`: see the option; NAN: none */
    bool cold, digest;
    struct dl2_decode_choice decode;
    unsigned card;     /* number of the card that decodes */
    unsigned *scaling; /* numbers of workers to compare */
    size_t scaling_count;

    /* analyze */
    enum dl2_load_device device;
    double device_rate; /* images/s; unused with a device_report */
    const char *device_report;
    double seconds, within; /* duration of each run; percent */
    uint64_t memory;        /* bytes for files; 0: what is available */
    const char **quality;   /* files of dl2-quality */
    size_t quality_count;
    unsigned models, ranks; /* to compare ways to train so many models on so many ranks; 0: don't */
    double parameters;      /* of a model; NAN: the device report's */
    double link;            /* bytes/s that a rank sends; NAN: sending takes no time */
};

/*
 * The commands. Each prints its results on `out` and names unreadable samples on stderr. Returns
 * the number of unreadable samples, or an error. dl2_load_analyze() compares the paths, the others
 * join them.
 */
int dl2_load_bench(const struct dl2_load_options *given, const char *const *paths, size_t count,
                   FILE *out, struct dl2_error *error);
int dl2_load_check(const struct dl2_load_options *options, const char *const *paths, size_t count,
                   FILE *out, struct dl2_error *error);
int dl2_load_analyze(const struct dl2_load_options *options, const char *const *paths, size_t count,
                     FILE *out, struct dl2_error *error);

/* ---- load_run.c: measuring ---- */

/* A part of an epoch to load. */
struct dl2_load_pass {
    uint64_t epoch, steps; /* from step 0 on; steps 0: all of them */
    double seconds;        /* ends after the batch that passes it; 0: never */
    /* Called for each batch; may be NULL. */
    void (*batch)(void *context, const struct dl2_batch *batch);
    void *context;
};

/* The cost of one or several passes, which add to it; zero it first. */
struct dl2_load_run {
    double seconds, cpu_seconds; /* wall; CPU of the whole process, user and system */
    uint64_t delivered;          /* images in batches that came out */
    uint64_t images;             /* finished by workers, also in batches not yet delivered */
    uint64_t bytes_read;         /* by the loader, from memory or disks */
    uint64_t disk_bytes; /* from disks, by the whole process; 0 where the system can't tell */
};

int dl2_load_run(struct dl2_loader *loader, const struct dl2_load_pass *pass,
                 struct dl2_load_run *run, struct dl2_error *error);

/* Amount divided by seconds, or 0 for no time. */
double dl2_load_rate(double amount, double seconds);
/* Writes bytes for tables, as "12.3 MB", and returns `text`. */
const char *dl2_load_bytes(char text[16], double bytes);

/* The counts of dl2_unusual_rows by name, a new object. */
json_t *dl2_load_unusual(const struct dl2_loader_stats *stats);

/* dl2_dataset_union_open(), with messages on stderr. */
int dl2_load_open(const struct dl2_load_options *options, const char *const *paths, size_t count,
                  struct dl2_dataset_union *data, struct dl2_error *error);

/* Names on stderr the samples that a loader of so many images could not read, and their number,
 * which it returns; appends the texts to `list` (may be NULL). */
int dl2_load_name_bad(const struct dl2_loader *loader, size_t images, json_t *list);

#endif
