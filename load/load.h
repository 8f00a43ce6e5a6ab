/*
 * What the files of dl2-load share: its options, its commands, one measured run of the loader, and
 * the count of heap allocations. Not for others.
 */
#ifndef DL2_LOAD_LOAD_H
#define DL2_LOAD_LOAD_H

#include "common/progress.h"
#include "loader/batch_decoder.h"
#include "loader/loader.h"

#include <jansson.h>
#include <stdio.h>

enum dl2_load_device {
    DL2_DEVICE_UNKNOWN,  /* what the report says, else separate */
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
    bool cold, digest;
    struct dl2_decode_choice decode;
    unsigned card;     /* that decodes */
    unsigned *scaling; /* numbers of workers to compare */
    size_t scaling_count;

    /* analyze */
    enum dl2_load_device device;
    double device_rate; /* images/s; 0: as the report says */
    const char *device_report;
    double seconds, within; /* of each run; percent */
    uint64_t memory;        /* for files; 0: what is available */
    const char **quality;   /* files of dl2-quality */
    size_t quality_count;
};

/*
 * The commands. Each prints its results on `out` and names bad samples on stderr; returns how many
 * of them there were, or an error.
 */
int dl2_load_bench(const struct dl2_load_options *options, const char *path, FILE *out,
                   struct dl2_error *error);
int dl2_load_check(const struct dl2_load_options *options, const char *path, FILE *out,
                   struct dl2_error *error);
int dl2_load_analyze(const struct dl2_load_options *options, const char *const *paths, size_t count,
                     FILE *out, struct dl2_error *error);

/* ---- load_run.c: measuring ---- */

/* A part of an epoch to load. */
struct dl2_load_pass {
    uint64_t epoch, steps; /* from step 0 on; steps 0: all of them */
    double seconds;        /* ends after the batch that passes it; 0: never */
    /* Called with each batch; may be NULL. */
    void (*batch)(void *context, const struct dl2_batch *batch);
    void *context;
};

/* What one or several passes took. Adds up; zero it first. */
struct dl2_load_run {
    double seconds, cpu_seconds; /* wall; user and system of the whole process */
    uint64_t delivered;          /* images in batches that came out */
    uint64_t images;             /* that the workers finished, so also of batches still inside */
    uint64_t allocations;        /* on the heap, of the whole process */
};

int dl2_load_run(struct dl2_loader *loader, const struct dl2_load_pass *pass,
                 struct dl2_load_run *run, struct dl2_error *error);

/* Amount over seconds, 0 for no time. */
double dl2_load_rate(double amount, double seconds);
/* "12.3 MB" for tables, into `text` and back. */
const char *dl2_load_bytes(char text[16], double bytes);

/* Opens a dataset, and tells on stderr how it was read. */
int dl2_load_open(const struct dl2_load_options *options, const char *path,
                  struct dl2_dataset **dataset, struct dl2_error *error);

/* Names on stderr what a loader found to be bad; returns how many. `list` (may be NULL) gets the
 * texts. */
int dl2_load_name_bad(const struct dl2_loader *loader, json_t *list);

/* ---- load_heap.c ---- */

/* Allocations of this process so far, libraries' too; false where they can't be counted. */
bool dl2_load_allocations(uint64_t *count);

#endif
