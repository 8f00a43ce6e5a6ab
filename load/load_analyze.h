/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dl2-load analyze: predicts how fast training from each of several datasets is on this machine,
 * and what it waits for. load_analyze.c measures, load_analyze_model.c concludes, and
 * load_analyze_report.c prints.
 *
 * The three differential runs of DS-Analyzer (Mohan et al., "Analyzing and mitigating data stalls
 * in DNN training", VLDB 2021, section 3.3), and reading alone:
 *
 *     device         D   images/s of training without waiting for data: given, not measured
 *     preprocessing  P   images/s of the whole loader, the files in memory; c: CPU seconds an image
 *     cold           L   the same with the files taken out of the page cache before; e: its c
 *     storage        S   images/s of reading alone, cold
 */
#ifndef DL2_LOAD_LOAD_ANALYZE_H
#define DL2_LOAD_LOAD_ANALYZE_H

#include "load/load.h"
#include "loader/sampler.h"

enum { DL2_LOAD_ANALYSIS_ROUNDS = 5, DL2_LOAD_ANALYSIS_VALUES = 64 };

/* Results of one dataset, of one round or the median over rounds. */
struct dl2_load_analysis_runs {
    double storage, loader, cold; /* S, P, L: images/s */
    double cpu, cold_cpu;         /* c, e: CPU seconds an image */
    double kept;                  /* processor seconds per image that were not free for others */
};

struct dl2_figure {
    double middle; /* the median, since some rounds are far off on a busy machine */
    double half;   /* half the mean's 95% interval; INFINITY if it is unknown */
};

struct dl2_load_analysis_device {
    struct dl2_figure rate;
    bool shared;
    unsigned threads, cores;
    json_t *report; /* NULL: the rate was given */
};

struct dl2_load_analysis_advice {
    char text[160];
    double rate;
};

/* Ways to train several models on several ranks, and what an epoch of all models takes. */
enum dl2_load_way {
    DL2_LOAD_DATA_PARALLEL,
    DL2_LOAD_HOPPING,
    DL2_LOAD_TASK_PARALLEL,
    DL2_LOAD_WAYS
};
extern const char *const dl2_load_way_words[]; /* "data parallel" */
struct dl2_load_analysis_way {
    double seconds;
    double moved;   /* bytes that ranks send each other */
    double files;   /* bytes of files that each rank reads, and has to keep to read them once */
    double network; /* bytes of weights, gradients and moments at a rank */
};

struct dl2_load_analysis_subject { /* one dataset */
    const char *path;
    const char *name;
    struct dl2_dataset_union data;
    const struct dl2_dataset *dataset; /* its */
    struct dl2_loader *loader;
    struct dl2_sampler sampler;
    uint64_t images, bytes;
    double decoded_bytes; /* that --cache-decoded needs for all images, estimated; 0: unknown */
    double cached;        /* the part of the files that memory keeps */
    const json_t *quality;

    struct dl2_load_analysis_runs runs[DL2_LOAD_ANALYSIS_ROUNDS];
    struct dl2_load_analysis_runs middle; /* medians */
    double rate[DL2_LOAD_ANALYSIS_ROUNDS], first[DL2_LOAD_ANALYSIS_ROUNDS];
    uint64_t read_images, read_bytes;
    uint64_t warm_images; /* read since the files were evicted */
    double resident;      /* the part of the files that eviction left in memory */
    struct dl2_loader_stats stats;
    struct dl2_figure storage_figure, loader_figure, cold_figure, cpu_figure, rate_figure,
        first_figure;
    double device_share, loader_share, storage_share; /* of an epoch */
    bool saturated;                                   /* the device hardly ever waits */
    const char *bottleneck;                           /* "device", "preprocessing", "storage" */
    struct dl2_load_analysis_advice advice;           /* what helps most; rate 0: nothing */
    struct dl2_load_analysis_way ways[DL2_LOAD_WAYS]; /* with options->models */
};

struct dl2_load_analysis {
    const struct dl2_load_options *options;
    struct dl2_loader_config config;
    struct dl2_load_analysis_device device;
    uint64_t memory;
    double parameters, moments; /* of a model; the optimizer's values for each parameter */
    struct dl2_load_analysis_subject *subjects;
    size_t count, fastest, smallest; /* smallest: of those nearly as fast */
    json_t *quality;                 /* the variants in all files of dl2-quality, in one array */
    json_t *bad;
    int bad_count;
};

/* ---- load_analyze_model.c ---- */

/* Summarizes the first DL2_LOAD_ANALYSIS_VALUES values. */
struct dl2_figure dl2_load_analysis_summarize(const double *values, size_t count);
/* Fills in the conclusions from a dataset's runs. */
void dl2_load_analysis_conclude(const struct dl2_load_analysis *analysis,
                                struct dl2_load_analysis_subject *subject);
/* Compares the ways to train options->models; after the former. */
void dl2_load_analysis_compare_ways(const struct dl2_load_analysis *analysis,
                                    struct dl2_load_analysis_subject *subject);
/* Finds the fastest dataset, and the smallest that is nearly as fast. */
void dl2_load_analysis_choose(struct dl2_load_analysis *analysis);

/* ---- load_analyze_report.c ---- */

void dl2_load_analysis_print(FILE *out, const struct dl2_load_analysis *analysis);
/* Writes dl2-load-analysis/1 to the file that the options name. */
int dl2_load_analysis_save(const struct dl2_load_analysis *analysis, struct dl2_error *error);

#endif
