/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cpu device. oneDNN does what is bound by arithmetic (convolutions, linear layers,
 * attention's products); cpu_kernels.c does what is bound by memory, fused so that each tensor is
 * read and written as seldom as possible. Threads are OpenMP's, for oneDNN and for our own loops.
 *
 * This file has the device, its memory, the input of a batch, the loss, and the table. The layers
 * are in cpu_NAME.c.
 */
#include "config.h"

#include "common/memory.h"
#include "common/simd.h"
#include "common/thread.h"
#include "device/cpu.h"
#include "device/dense.h"
#include "device/host_memory.h"
#include "ranks/reducer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- the device itself and its memory -- */

static const char *cpu_version(void)
{
    static char text[64];
    const dnnl_version_t *v = dnnl_version();
    snprintf(text, sizeof text, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
    return text;
}

static void cpu_close(struct dl2_device *device)
{
    struct dl2_cpu *cpu = (struct dl2_cpu *)device;
    if (!cpu)
        return;
    dl2_reducer_stop(cpu->reducer);
    if (cpu->stream)
        dnnl_stream_destroy(cpu->stream);
    if (cpu->engine)
        dnnl_engine_destroy(cpu->engine);
    free(cpu->partials);
    free(cpu->gradient);
    free(cpu->narrow[0]);
    free(cpu->narrow[1]);
    free(cpu);
}

extern const struct dl2_device_class dl2_device_cpu;

static int cpu_open(const struct dl2_device_options *options, struct dl2_device **out,
                    struct dl2_error *error)
{
    struct dl2_device_options rest = options ? *options : (struct dl2_device_options){0};
    const bool bf16 = rest.precision == DL2_PRECISION_BF16;
    const unsigned amx = dnnl_cpu_isa_avx512_core_amx;
    if (bf16 && ((unsigned)dnnl_get_effective_cpu_isa() & amx) != amx)
        return dl2_error_set(
            error, DL2_ERR_UNSUPPORTED,
            "device cpu has bf16 where processors have AMX, and this one has none: "
            "oneDNN's bf16 is slower than float32 there; pass --amp off");
    rest.precision = bf16 ? DL2_PRECISION_FP32 : rest.precision;
    DL2_TRY(dl2_device_check_plain(&dl2_device_cpu, &rest, error));
    struct dl2_cpu *cpu = dl2_calloc(1, sizeof *cpu);
    if (!cpu)
        return dl2_cpu_out_of_memory(error, "itself");
    cpu->base.ops = &dl2_device_cpu;
    cpu->base.staging = 1;
    cpu->base.world = options ? options->world : NULL;
    cpu->threads = options && options->threads ? options->threads : dl2_cpu_count();
    cpu->kernels = DL2_SIMD_BEST_COMPILED(dl2_cpu_kernels, dl2_simd_flags());
    cpu->version = 1;
    cpu->bf16 = bf16;
    /* Primitives are made for the number of threads there is when they are made. */
    dl2_cpu_claim_threads(cpu);
    int status =
        dl2_cpu_check(dnnl_engine_create(&cpu->engine, dnnl_cpu, 0), "make an engine", error);
    if (status == DL2_OK)
        status = dl2_cpu_check(dnnl_stream_create(&cpu->stream, cpu->engine, dnnl_stream_in_order),
                               "make a stream", error);
    if (status == DL2_OK && cpu->base.world)
        status = dl2_reducer_start(cpu->base.world, &cpu->reducer, error);
    if (status < 0) {
        cpu_close(&cpu->base);
        return status;
    }
    *out = &cpu->base;
    return DL2_OK;
}

static void cpu_copy(struct dl2_device *device, void *to, const void *from, size_t bytes)
{
    ((struct dl2_cpu *)device)->version++;
    memcpy(to, from, bytes);
}

static void cpu_zero(struct dl2_device *device, void *memory, size_t bytes)
{
    ((struct dl2_cpu *)device)->version++;
    memset(memory, 0, bytes);
}

static void cpu_all_reduce(struct dl2_device *device, float *data, size_t count)
{
    dl2_reducer_add(((struct dl2_cpu *)device)->reducer, data, count);
}

static void cpu_all_reduce_wait(struct dl2_device *device)
{
    dl2_reducer_wait(((struct dl2_cpu *)device)->reducer, &device->failure);
}

/* -- ingest -- */

enum { INGEST_PERIOD = 192 }; /* a multiple of 1 and 3, and of the vectors */

struct dl2_ingest {
    struct dl2_device_plan plan;
    struct dl2_cpu *cpu;
    struct dl2_ingest_shape s;
    float a[INGEST_PERIOD], b[INGEST_PERIOD]; /* y = a * x + b */
    /* Arguments of the current call. */
    const void *images;
    const uint32_t *partner;
    float *y;
};

static int cpu_ingest_create(struct dl2_device *device, const struct dl2_ingest_shape *shape,
                             struct dl2_ingest **out, struct dl2_error *error)
{
    struct dl2_ingest *ingest = dl2_calloc(1, sizeof *ingest);
    if (!ingest)
        return dl2_cpu_out_of_memory(error, "ingest");
    ingest->plan.free = free;
    ingest->cpu = (struct dl2_cpu *)device;
    ingest->s = *shape;
    for (int i = 0; i < INGEST_PERIOD && !shape->floats; i++) {
        unsigned c = (unsigned)i % shape->channels;
        ingest->a[i] = 1 / shape->std[c];
        ingest->b[i] = -shape->mean[c] / shape->std[c];
    }
    *out = ingest;
    return DL2_OK;
}

static void cpu_ingest_part(void *context, unsigned part, size_t begin, size_t end)
{
    const struct dl2_ingest *in = context;
    const struct dl2_cpu_kernels *kernels = in->cpu->kernels;
    size_t size = (size_t)in->s.height * in->s.width * in->s.channels;
    float lambda = in->cpu->base.params.lambda;
    (void)part;
    for (size_t n = begin; n < end; n++) {
        const uint8_t *images = in->images, *x = images + n * size;
        if (in->s.floats)
            memcpy(in->y + n * size, (const float *)in->images + n * size, size * sizeof *in->y);
        else if (in->partner)
            kernels->ingest_mixed(x, images + in->partner[n] * size, lambda, 1 - lambda, size,
                                  in->a, in->b, INGEST_PERIOD, in->y + n * size);
        else
            kernels->ingest(x, size, in->a, in->b, INGEST_PERIOD, in->y + n * size);
    }
}

static void cpu_ingest_run(struct dl2_ingest *ingest, const void *images, const uint32_t *partner,
                           void *y)
{
    ingest->images = images;
    ingest->partner = partner;
    ingest->y = y;
    dl2_cpu_share_out(ingest->cpu, ingest->s.batch, 1, cpu_ingest_part, ingest);
}

/* -- loss -- */

struct dl2_loss {
    struct dl2_device_plan plan;
    struct dl2_cpu *cpu;
    struct dl2_loss_shape s;
    double *values;  /* [batch] */
    uint32_t *ranks; /* [batch] classes above the label */
    size_t counted;
    /* Arguments of the current call. */
    const float *logits;
    const int32_t *labels;
    const uint32_t *partner;
    float *dlogits;
};

static void cpu_loss_free(void *plan)
{
    struct dl2_loss *loss = plan;
    free(loss->values);
    free(loss->ranks);
    free(loss);
}

static int cpu_loss_create(struct dl2_device *device, const struct dl2_loss_shape *shape,
                           struct dl2_loss **out, struct dl2_error *error)
{
    struct dl2_loss *loss = dl2_calloc(1, sizeof *loss);
    if (!loss)
        return dl2_cpu_out_of_memory(error, "the loss");
    loss->plan.free = cpu_loss_free;
    loss->cpu = (struct dl2_cpu *)device;
    loss->s = *shape;
    loss->values = dl2_calloc(shape->batch, sizeof *loss->values);
    loss->ranks = dl2_calloc(shape->batch, sizeof *loss->ranks);
    if (!loss->values || !loss->ranks) {
        cpu_loss_free(loss);
        return dl2_cpu_out_of_memory(error, "the loss");
    }
    *out = loss;
    return DL2_OK;
}

static bool cpu_counts(const struct dl2_loss *loss, size_t n)
{
    return loss->labels[n] >= 0 && (!loss->partner || loss->labels[loss->partner[n]] >= 0);
}

/* Samples begin .. end-1; in double, as classes are few and losses are added up. */
static void cpu_loss_part(void *context, unsigned part, size_t begin, size_t end)
{
    struct dl2_loss *loss = context;
    size_t classes = loss->s.classes;
    const struct dl2_step_params *params = &loss->cpu->base.params;
    double smoothing = loss->s.smoothing, own = loss->partner ? params->lambda : 1;
    (void)part;
    for (size_t n = begin; n < end; n++) {
        const float *logits = loss->logits + n * classes;
        float *dlogits = loss->dlogits ? loss->dlogits + n * classes : NULL;
        loss->values[n] = 0;
        if (!cpu_counts(loss, n)) {
            if (dlogits)
                memset(dlogits, 0, classes * sizeof *dlogits);
            continue;
        }
        size_t label = (size_t)loss->labels[n];
        size_t other = loss->partner ? (size_t)loss->labels[loss->partner[n]] : label;
        double highest = logits[0], sum = 0, plain = 0;
        uint32_t rank = 0;
        bool unordered = false;
        for (size_t k = 0; k < classes; k++) {
            highest = logits[k] > highest ? logits[k] : highest;
            rank += logits[k] > logits[label] || (logits[k] == logits[label] && k < label);
            unordered |= isnan(logits[k]) != 0;
        }
        for (size_t k = 0; k < classes; k++) {
            sum += exp(logits[k] - highest);
            plain += logits[k] - highest;
        }
        double log_sum = log(sum), even = smoothing / (double)classes;
        double nll =
            log_sum - own * (logits[label] - highest) - (1 - own) * (logits[other] - highest);
        loss->values[n] = (1 - smoothing) * nll + smoothing * (log_sum - plain / (double)classes);
        loss->ranks[n] = unordered ? DL2_RANK_NAN : rank;
        double scale = params->scale / (double)loss->counted;
        for (size_t k = 0; dlogits && k < classes; k++) {
            double target =
                even + (1 - smoothing) * (own * (k == label) + (1 - own) * (k == other));
            dlogits[k] = (float)(scale * (exp(logits[k] - highest) / sum - target));
        }
    }
}

static void cpu_loss_run(struct dl2_loss *loss, const void *logits, const int32_t *labels,
                         const uint32_t *partner, float *losses, void *dlogits,
                         struct dl2_loss_sums *sums)
{
    loss->logits = logits;
    loss->labels = labels;
    loss->partner = partner;
    loss->dlogits = dlogits;
    loss->counted = 0;
    for (size_t n = 0; n < loss->s.batch; n++)
        loss->counted += cpu_counts(loss, n);
    dl2_cpu_share_out(loss->cpu, loss->s.batch, 256 / loss->s.classes + 1, cpu_loss_part, loss);
    for (size_t n = 0; n < loss->s.batch; n++) {
        if (losses)
            losses[n] = (float)loss->values[n];
        if (!cpu_counts(loss, n))
            continue;
        sums->loss += loss->values[n];
        sums->counted++;
        sums->top1 += loss->ranks[n] < 1;
        sums->top5 += loss->ranks[n] < 5;
    }
}

/* clang-format off */
#define CPU_ROW(name) .name = dl2_cpu_##name,
const struct dl2_device_class dl2_device_cpu = {
    .name = "cpu",
    .summary = "oneDNN on this machine's processors",
    .version = cpu_version,
    .rounds_by_threads = true,
    .open = cpu_open,
    .close = cpu_close,
    .alloc = dl2_host_alloc,
    .free = dl2_host_free,
    .upload = cpu_copy,
    .wait_uploads = dl2_host_wait_uploads,
    .download = dl2_host_download,
    .copy = cpu_copy,
    .zero = cpu_zero,
    .sync = dl2_host_sync,
    .set_step_params = dl2_host_set_step_params,
    .all_reduce = cpu_all_reduce,
    .all_reduce_wait = cpu_all_reduce_wait,
    .ingest_create = cpu_ingest_create,
    .ingest_run = cpu_ingest_run,
    .loss_create = cpu_loss_create,
    .loss_run = cpu_loss_run,
    .confusion = dl2_host_confusion,
    DL2_CPU_METHODS(CPU_ROW)
};
/* clang-format on */
