/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The conclusions from the measurements of dl2-load analyze.
 *
 * From the second epoch on, memory holds a part x of the files. Images from memory and from storage
 * alternate, so the loader delivers p = 1 / (x / P + (1 - x) / L) images/s at
 * x c + (1 - x) e CPU seconds each.
 *
 *     separate device    min(D, p, S / (1 - x))
 *     shared processors  the same, and no more than the n processors can do: training takes t / D
 *                        CPU seconds of an image (t: the device's threads), so n divided by those
 *                        and the loader's. D was told in wall time, in which others may have had
 *                        a part of the processors; so the loader's are taken as what its workers
 *                        kept busy or were kept from, min(workers, n) / P, where that is more
 *
 * With several models, each rank is a machine like this one. Data parallel, it has a part of the
 * images, others in each epoch; hopping, always the same part, of which its memory keeps more; task
 * parallel, all images. A sum over R ranks moves 8 (R - 1) bytes a parameter.
 */
#include "common/stats.h"
#include "load/load_analyze.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

/* A stage that makes an epoch longer by less than this part is not reported. */
#define WORTH 0.02

/* The limits of training, for predict(). */
struct limits {
    double device, threads, cores; /* threads 0: the device is separate */
    double loader, cpu;            /* images/s; CPU seconds an image */
    double storage;                /* images/s with what memory keeps; INFINITY: all of it */
};

struct dl2_figure dl2_load_analysis_summarize(const double *values, size_t count)
{
    double sorted[DL2_LOAD_ANALYSIS_VALUES];
    struct dl2_summary summary;
    count = count < DL2_LOAD_ANALYSIS_VALUES ? count : DL2_LOAD_ANALYSIS_VALUES;
    memcpy(sorted, values, count * sizeof *values);
    dl2_summarize(sorted, count, &summary);
    return (struct dl2_figure){summary.median, dl2_confidence95(summary.stddev, count)};
}

static double predict(const struct limits *limits)
{
    double rate = fmin(limits->device, fmin(limits->loader, limits->storage));
    if (limits->threads > 0)
        rate = fmin(rate, limits->cores / (limits->threads / limits->device + limits->cpu));
    return rate;
}

/* The loader's rates with a part of the files in memory. */
static struct limits limits_at(const struct dl2_load_analysis_device *device,
                               const struct dl2_load_analysis_runs *runs, double cached)
{
    const double rest = 1 - cached;
    return (struct limits){.device = device->rate.middle,
                           .threads = device->shared ? device->threads : 0,
                           .cores = device->cores,
                           .loader = 1 / (cached / runs->loader + rest / runs->cold),
                           .cpu = runs->kept + rest * (runs->cold_cpu - runs->cpu),
                           .storage = rest > 0 ? runs->storage / rest : INFINITY};
}

static void consider(struct dl2_load_analysis_advice *best, double rate, const char *format, ...)
    DL2_PRINTF(3, 4);
static void consider(struct dl2_load_analysis_advice *best, double rate, const char *format, ...)
{
    if (rate <= best->rate)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(best->text, sizeof best->text, format, args);
    va_end(args);
    best->rate = rate;
}

/* Finds the single change that speeds up this dataset most. */
static void advise(const struct dl2_load_analysis *analysis,
                   struct dl2_load_analysis_subject *subject)
{
    const struct dl2_load_analysis_device *device = &analysis->device;
    const struct limits now = limits_at(device, &subject->middle, subject->cached);
    const double cores = device->cores, workers = analysis->config.workers;
    struct dl2_load_analysis_advice *advice = &subject->advice;
    char size[16];
    const double least = advice->rate = predict(&now) * (1 + WORTH);

    struct limits other = now;
    other.device = INFINITY;
    other.threads = 0;
    consider(advice, predict(&other), "a faster device");
    if (workers < cores) {
        other = now;
        other.loader *= cores / workers;
        consider(advice, predict(&other), "%.0f workers instead of %.0f", cores, workers);
    }
    other = limits_at(device, &subject->middle, 1);
    consider(advice, predict(&other), "memory for all its files, %s",
             dl2_load_bytes(size, (double)subject->bytes));
    const struct dl2_loader_stats *stats = &subject->stats;
    const double work = stats->read + stats->decode + stats->transform + stats->operations;
    const double kept = work > 0 ? 1 - (stats->read + stats->decode) / work : 1;
    if (subject->decoded_bytes > 0 && subject->decoded_bytes <= (double)analysis->memory) {
        other.cpu *= kept;
        other.loader /= fmax(kept, 0.01);
        consider(advice, predict(&other), "--cache-decoded %.0fM",
                 ceil(subject->decoded_bytes / 0x1p20));
    }
    const double wanted = fmin(now.device, now.storage);
    if (!device->shared && now.loader < wanted)
        consider(advice, wanted, "%.0f processors for the loader instead of %.0f",
                 ceil(wanted / now.loader * fmin(workers, cores)), fmin(workers, cores));
    if (advice->rate <= least)
        advice->rate = 0;
}

/* Divides an epoch's time: each stage's part is what it adds to the stages before it. */
static void share_out(const struct dl2_load_analysis_device *device,
                      struct dl2_load_analysis_subject *subject)
{
    const struct limits limits = limits_at(device, &subject->middle, subject->cached);
    const struct limits warm = limits_at(device, &subject->middle, 1);
    const double rate = predict(&limits), warm_rate = predict(&warm);
    subject->device_share = rate / limits.device;
    subject->loader_share = rate / warm_rate - subject->device_share;
    subject->storage_share = 1 - rate / warm_rate;
    subject->saturated = subject->device_share >= 1 - WORTH;
    /* A device that waits is not the bottleneck; one that shares processors never waits. */
    const double device_counts = device->shared || subject->saturated ? subject->device_share : 0;
    if (device_counts >= subject->loader_share && device_counts >= subject->storage_share)
        subject->bottleneck = "device";
    else
        subject->bottleneck =
            subject->storage_share > subject->loader_share ? "storage" : "preprocessing";
}

/* Summarizes one field over the rounds. */
static struct dl2_figure figure_of(const struct dl2_load_analysis_subject *subject, size_t field)
{
    double values[DL2_LOAD_ANALYSIS_ROUNDS];
    for (unsigned round = 0; round < DL2_LOAD_ANALYSIS_ROUNDS; round++)
        memcpy(&values[round], (const char *)&subject->runs[round] + field, sizeof *values);
    return dl2_load_analysis_summarize(values, DL2_LOAD_ANALYSIS_ROUNDS);
}

void dl2_load_analysis_conclude(const struct dl2_load_analysis *analysis,
                                struct dl2_load_analysis_subject *subject)
{
    const struct dl2_load_analysis_device *device = &analysis->device;
    dl2_loader_get_stats(subject->loader, &subject->stats);
    subject->storage_figure = figure_of(subject, offsetof(struct dl2_load_analysis_runs, storage));
    subject->loader_figure = figure_of(subject, offsetof(struct dl2_load_analysis_runs, loader));
    subject->cold_figure = figure_of(subject, offsetof(struct dl2_load_analysis_runs, cold));
    subject->cpu_figure = figure_of(subject, offsetof(struct dl2_load_analysis_runs, cpu));
    subject->middle = (struct dl2_load_analysis_runs){
        subject->storage_figure.middle,
        subject->loader_figure.middle,
        subject->cold_figure.middle,
        subject->cpu_figure.middle,
        figure_of(subject, offsetof(struct dl2_load_analysis_runs, cold_cpu)).middle,
        figure_of(subject, offsetof(struct dl2_load_analysis_runs, kept)).middle};
    share_out(device, subject);
    advise(analysis, subject);
    for (unsigned round = 0; round < DL2_LOAD_ANALYSIS_ROUNDS; round++) {
        const struct limits limits = limits_at(device, &subject->runs[round], subject->cached);
        const struct limits first = limits_at(device, &subject->runs[round], 0);
        subject->rate[round] = predict(&limits);
        subject->first[round] = predict(&first);
    }
    subject->rate_figure = dl2_load_analysis_summarize(subject->rate, DL2_LOAD_ANALYSIS_ROUNDS);
    subject->first_figure = dl2_load_analysis_summarize(subject->first, DL2_LOAD_ANALYSIS_ROUNDS);
    /* The device's uncertainty is weighted by its share of an epoch. */
    const double relative = device->rate.half / device->rate.middle;
    if (isfinite(relative))
        subject->rate_figure.half =
            hypot(subject->rate_figure.half,
                  relative * subject->device_share * subject->rate_figure.middle);
}

const char *const dl2_load_way_words[] = {[DL2_LOAD_DATA_PARALLEL] = "data parallel",
                                          [DL2_LOAD_HOPPING] = "hopping",
                                          [DL2_LOAD_TASK_PARALLEL] = "task parallel",
                                          NULL};

/* Images/s of a rank that reads `part` of the files. */
static double rank_rate(const struct dl2_load_analysis *analysis,
                        const struct dl2_load_analysis_subject *subject, double part)
{
    const double memory = (double)analysis->memory / (part * (double)subject->bytes + 1);
    const struct limits limits = limits_at(&analysis->device, &subject->middle, fmin(memory, 1));
    return predict(&limits);
}

void dl2_load_analysis_compare_ways(const struct dl2_load_analysis *analysis,
                                    struct dl2_load_analysis_subject *subject)
{
    const double models = analysis->options->models, ranks = analysis->options->ranks;
    const double images = (double)subject->images, bytes = (double)subject->bytes;
    const double link = analysis->options->link * 1e6, parameters = analysis->parameters;
    const double network = 4 * parameters * (2 + analysis->moments);
    if (!analysis->options->models)
        return;
    const double whole = rank_rate(analysis, subject, 1);
    const double own = rank_rate(analysis, subject, 1 / ranks);
    /* Where all have a batch, the last one that is not full is left out. */
    const double batches = floor(images / ranks) / analysis->config.batch;
    const double steps = images >= analysis->config.batch * ranks ? floor(batches) : ceil(batches);
    subject->ways[DL2_LOAD_DATA_PARALLEL] =
        (struct dl2_load_analysis_way){.seconds = models * images / ranks / whole,
                                       .moved = models * steps * 8 * (ranks - 1) * parameters,
                                       .files = bytes,
                                       .network = network};
    /* A model is at one place at a time. A checkpoint has no gradients. */
    subject->ways[DL2_LOAD_HOPPING] = (struct dl2_load_analysis_way){
        .seconds = fmax(models / ranks, 1) * images / own,
        .moved = models * ranks * 4 * (1 + analysis->moments) * parameters,
        .files = bytes / ranks,
        .network = network};
    subject->ways[DL2_LOAD_TASK_PARALLEL] = (struct dl2_load_analysis_way){
        .seconds = ceil(models / ranks) * images / whole, .files = bytes, .network = network};
    for (int i = 0; i < DL2_LOAD_WAYS && isfinite(link); i++)
        subject->ways[i].seconds += subject->ways[i].moved / ranks / link;
}

void dl2_load_analysis_choose(struct dl2_load_analysis *analysis)
{
    const struct dl2_load_analysis_subject *subjects = analysis->subjects;
    for (size_t i = 1; i < analysis->count; i++)
        if (subjects[i].rate_figure.middle > subjects[analysis->fastest].rate_figure.middle)
            analysis->fastest = i;
    const double enough =
        subjects[analysis->fastest].rate_figure.middle * (1 - analysis->options->within / 100);
    analysis->smallest = analysis->fastest;
    for (size_t i = 0; i < analysis->count; i++)
        if (subjects[i].rate_figure.middle >= enough &&
            subjects[i].bytes < subjects[analysis->smallest].bytes)
            analysis->smallest = i;
}
