/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plans are measured with the batch that comes first, on tensors of their own full of noise:
 *
 * - The card works for CLOCKS_UP_MS before the first time is taken: idle cards are slow at first.
 * - All plans that cuDNN lists run once. The best FINALISTS run ROUNDS times more, in turns, each
 *   time after the card's L2 cache was overwritten: in a step, other layers have used it meanwhile.
 *   The least time counts.
 * - Each time begins while the card is still at work (an earlier run, or the overwriting), so that
 *   the host's part of a launch is not in it.
 *
 * For other batches, an epoch's last, cuDNN's first plan that runs is taken: measuring would cost
 * more than it gains. A plan that nothing could be run of is taken with a warning.
 */
#include "cuda/cudnn_choice.h"

#include "common/json.h"
#include "common/memory.h"
#include "cuda/gpu.h"
#include "cuda/kernels.h"
#include "device/element.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CLOCKS_UP_MS = 200, CLOCKS_UP_RUNS = 10000, FINALISTS = 5, ROUNDS = 5 };

/* What became of a plan. */
struct trial {
    struct dl2_cudnn_plan *plan;
    double once, cold;       /* milliseconds; INFINITY: not measured */
    struct dl2_error failed; /* why it is no good */
};

/* Where plans of a request are run. */
struct bench {
    struct cuda *cuda;
    const struct dl2_cudnn_request *request;
    void *tensors[DL2_CUDNN_TENSORS];
    struct area workspace, overwritten; /* the latter: larger than the L2 cache */
    cudaEvent_t begin, end;
    const struct trial *faulted; /* left the card of no use to this process; NULL: none did */
};

/* -- the bench -- */

/* Memory that the device can do without: no error where there is none. */
static bool bench_take(struct area *area, size_t size)
{
    if (size <= area->size)
        return true;
    cudaFree(area->memory);
    *area = (struct area){0};
    if (cudaMalloc(&area->memory, size) != cudaSuccess) {
        cudaGetLastError();
        return false;
    }
    area->size = size;
    return true;
}

static bool bench_open(struct bench *bench, struct cuda *cuda,
                       const struct dl2_cudnn_request *request)
{
    const enum dl2_element element = cuda->base.element;
    size_t bytes[DL2_CUDNN_TENSORS];
    *bench = (struct bench){.cuda = cuda, .request = request};
    dl2_cudnn_request_bytes(request, bytes);
    bool good = cudaEventCreate(&bench->begin) == cudaSuccess &&
                cudaEventCreate(&bench->end) == cudaSuccess;
    for (int i = 0; i < DL2_CUDNN_TENSORS && good; i++)
        good = !bytes[i] ||
               (cudaMalloc(&bench->tensors[i], bytes[i]) == cudaSuccess &&
                dl2_gpu_noise(element, bench->tensors[i], bytes[i] / dl2_element_size(element),
                              cuda->stream) == cudaSuccess);
    cudaGetLastError();
    return good;
}

static void bench_close(struct bench *bench)
{
    cudaStreamSynchronize(bench->cuda->stream);
    for (int i = 0; i < DL2_CUDNN_TENSORS; i++)
        cudaFree(bench->tensors[i]);
    cudaFree(bench->workspace.memory);
    cudaFree(bench->overwritten.memory);
    if (bench->begin)
        cudaEventDestroy(bench->begin);
    if (bench->end)
        cudaEventDestroy(bench->end);
    cudaGetLastError(); /* what matters comes up again when the plan runs */
}

static int bench_start(const struct bench *bench, struct trial *trial)
{
    return dl2_cudnn_plan_run(trial->plan, bench->cuda->cudnn, (const void *const *)bench->tensors,
                              bench->workspace.memory, &trial->failed);
}

/* Milliseconds of one run, behind what the stream is at; INFINITY where it fails. */
static double bench_time(struct bench *bench, struct trial *trial)
{
    const cudaStream_t stream = bench->cuda->stream;
    struct dl2_error *error = &trial->failed;
    float ms = 0;
    if (dl2_gpu_check(cudaEventRecord(bench->begin, stream), "cudaEventRecord", error) == DL2_OK &&
        bench_start(bench, trial) == DL2_OK &&
        dl2_gpu_check(cudaEventRecord(bench->end, stream), "cudaEventRecord", error) == DL2_OK &&
        dl2_gpu_check(cudaEventSynchronize(bench->end), "cudaEventSynchronize", error) == DL2_OK &&
        dl2_gpu_check(cudaEventElapsedTime(&ms, bench->begin, bench->end), "cudaEventElapsedTime",
                      error) == DL2_OK)
        return ms;
    /* A plan may refuse, and the next be tried; but not once the card has faulted. */
    if (!bench->faulted && cudaStreamSynchronize(stream) != cudaSuccess)
        bench->faulted = trial;
    cudaGetLastError();
    return INFINITY;
}

/* The first plan that runs on this device does the work. */
static void bench_bring_clocks_up(struct bench *bench, struct trial *trial)
{
    double done = 0;
    for (int i = 0; i < CLOCKS_UP_RUNS && done < CLOCKS_UP_MS; i++)
        done += bench_time(bench, trial);
    bench->cuda->clocks_up = true;
}

/* Makes the plan and runs it once, for its time. */
static void bench_try(struct bench *bench, struct trial *trial)
{
    struct cuda *cuda = bench->cuda;
    struct dl2_cudnn_plan *plan = trial->plan;
    if (dl2_cudnn_plan_make(bench->request, cuda->cudnn, NULL, plan, &trial->failed) < 0)
        return;
    if (!bench_take(&bench->workspace, plan->workspace)) {
        dl2_error_set(&trial->failed, DL2_ERR_MEMORY, "no memory for its workspace");
        return;
    }
    /* The first run loads kernels. */
    const bool runs = isfinite(bench_time(bench, trial));
    if (runs && !cuda->clocks_up)
        bench_bring_clocks_up(bench, trial);
    if (runs && bench_start(bench, trial) == DL2_OK)
        trial->once = bench_time(bench, trial);
}

/* -- choosing -- */

static int trial_faster(const void *left, const void *right)
{
    const struct trial *a = left, *b = right;
    return (a->once > b->once) - (a->once < b->once);
}

/* Runs the first trials in turns. Returns the fastest; NULL: none runs. */
static struct dl2_cudnn_plan *hold_finals(struct bench *bench, struct trial *trials, unsigned count)
{
    const struct cuda *cuda = bench->cuda;
    const struct trial *best = NULL;
    const unsigned finals = count < FINALISTS ? count : FINALISTS;
    if (cuda->l2_bytes)
        bench_take(&bench->overwritten, 2 * cuda->l2_bytes);
    for (int round = 0; round < ROUNDS; round++)
        for (struct trial *t = trials; t < trials + finals; t++) {
            if (t->failed.status || bench->faulted ||
                !bench_take(&bench->workspace, t->plan->workspace))
                continue;
            if (bench->overwritten.size)
                cudaMemsetAsync(bench->overwritten.memory, round, bench->overwritten.size,
                                cuda->stream);
            t->cold = fmin(t->cold, bench_time(bench, t));
        }
    for (const struct trial *t = trials; t < trials + finals; t++)
        if (!t->failed.status && (!best || t->cold < best->cold))
            best = t;
    return best ? best->plan : NULL;
}

/* Finds the fastest, or the first that runs; NULL: none runs, or there is no memory to try. */
static int measure(struct cuda *cuda, const struct dl2_cudnn_request *request, struct trial *trials,
                   unsigned count, bool fastest, struct dl2_cudnn_plan **best,
                   struct dl2_error *error)
{
    struct bench bench;
    char text[256];
    *best = NULL;
    if (bench_open(&bench, cuda, request)) {
        for (unsigned i = 0; i < count && !bench.faulted && (fastest || !*best); i++) {
            bench_try(&bench, &trials[i]);
            *best = trials[i].failed.status ? NULL : trials[i].plan;
        }
        if (fastest && !bench.faulted) {
            qsort(trials, count, sizeof *trials, trial_faster);
            *best = hold_finals(&bench, trials, count);
        }
    }
    bench_close(&bench);
    if (!bench.faulted)
        return DL2_OK;
    dl2_cudnn_request_text(request, text, sizeof text);
    return dl2_error_set(
        error, DL2_ERR_SYSTEM,
        "device cuda: plan %s of cuDNN for the %s: %s; --deterministic tries fewer "
        "plans, and may not meet this one",
        bench.faulted->plan->name, text, bench.faulted->failed.message);
}

/* The first that can be made, of which nothing was run; NULL: none. */
static struct dl2_cudnn_plan *take_untested(struct cuda *cuda,
                                            const struct dl2_cudnn_request *request,
                                            const struct dl2_cudnn_plans *plans)
{
    char text[256];
    unsigned i = 0;
    while (i < plans->count &&
           dl2_cudnn_plan_make(request, cuda->cudnn, NULL, &plans->list[i], NULL) < 0)
        i++;
    if (i == plans->count)
        return NULL;
    dl2_cudnn_request_text(request, text, sizeof text);
    if (!cuda->told_untested)
        dl2_cuda_tell(
            cuda,
            "no plan for the %s could be tried out: cuDNN's first is taken untested, here "
            "and perhaps for others. It may be slow; a smaller batch leaves more memory",
            text);
    cuda->told_untested = true;
    return &plans->list[i];
}

/* -- files -- */

static void tell_of_file(struct cuda *cuda, int status, const char *what, struct dl2_error *error)
{
    if (status < 0 && !cuda->told_file)
        dl2_cuda_tell(cuda, "the %s is of no use: %s", what, error->message);
    cuda->told_file |= status < 0;
    dl2_error_clear(error);
}

static const char cache_text[] = "cache of plans (DL2_CUDA_PLAN_CACHE names another)";

/* The plan that the cache names, made; NULL: none. */
static struct dl2_cudnn_plan *recall(struct cuda *cuda, const struct dl2_cudnn_request *request,
                                     const struct dl2_cudnn_plans *plans)
{
    struct dl2_error error = DL2_ERROR_INIT;
    char name[DL2_CUDNN_PLAN_NAME];
    tell_of_file(cuda, dl2_plan_cache_get(&cuda->files, request, name, &error), cache_text, &error);
    for (unsigned i = 0; i < plans->count; i++)
        if (!strcmp(plans->list[i].name, name) &&
            dl2_cudnn_plan_make(request, cuda->cudnn, NULL, &plans->list[i], NULL) == DL2_OK)
            return &plans->list[i];
    return NULL;
}

static json_t *describe_trial(const struct trial *t)
{
    json_t *text =
        json_pack("{s:s, s:b, s:I, s:o, s:o}", "plan", t->plan->name, "tensor_cores",
                  t->plan->tensor_cores, "workspace_bytes", (json_int_t)t->plan->workspace, "ms",
                  dl2_json_real(t->once), "cold_ms", dl2_json_real(t->cold));
    if (t->failed.status)
        json_object_set_new(text, "failed", json_string(t->failed.message));
    return text;
}

/* Keeps what was measured, where somebody wants it. `best`: NULL where none runs. */
static void file_trials(struct cuda *cuda, const struct dl2_cudnn_request *request,
                        const struct dl2_cudnn_plan *best, const struct trial *trials,
                        unsigned count, bool fastest)
{
    struct dl2_error error = DL2_ERROR_INIT;
    if (dl2_world_rank(cuda->base.world) > 0)
        return;
    for (unsigned i = 0; i < count && fastest; i++)
        if (trials[i].plan == best && isfinite(trials[i].cold))
            tell_of_file(
                cuda, dl2_plan_cache_put(&cuda->files, request, best->name, trials[i].cold, &error),
                cache_text, &error);
    if (!cuda->files.times)
        return;
    json_t *plans = json_array();
    for (unsigned i = 0; i < count; i++)
        json_array_append_new(plans, describe_trial(&trials[i]));
    tell_of_file(cuda,
                 dl2_plan_times_add(&cuda->files, request, best ? best->name : NULL, plans, &error),
                 "file of plans' times (DL2_CUDA_PLANS)", &error);
}

/* -- the device's -- */

static int none_runs(const struct dl2_cudnn_request *request, const struct trial *first,
                     struct dl2_error *error)
{
    char text[256];
    dl2_cudnn_request_text(request, text, sizeof text);
    return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                         "no plan of cuDNN %zu can be used for the %s; %s: %s", cudnnGetVersion(),
                         text, first->plan->name,
                         first->failed.status ? first->failed.message : "no memory to try it");
}

static int find_best(struct cuda *cuda, const struct dl2_cudnn_request *request, bool fastest,
                     struct dl2_cudnn_plans *plans, struct dl2_cudnn_plan **out,
                     struct dl2_error *error)
{
    *out = fastest ? recall(cuda, request, plans) : NULL;
    if (*out)
        return DL2_OK;
    struct trial *trials = dl2_calloc(plans->count, sizeof *trials);
    if (!trials)
        return dl2_cuda_out_of_memory(error, "a plan of cuDNN");
    for (unsigned i = 0; i < plans->count; i++)
        trials[i] = (struct trial){&plans->list[i], INFINITY, INFINITY, DL2_ERROR_INIT};
    int status = measure(cuda, request, trials, plans->count, fastest, out, error);
    if (status == DL2_OK && !*out && !dl2_cudnn_is_optional(request))
        *out = take_untested(cuda, request, plans);
    file_trials(cuda, request, *out, trials, plans->count, fastest);
    if (status == DL2_OK && !*out)
        status = none_runs(request, trials, error);
    free(trials);
    return status;
}

static unsigned batch_of(const struct dl2_cudnn_request *request)
{
    return dl2_cudnn_is_attention(request) ? request->attention.batch : request->conv.batch;
}

/* But for the batch. */
static bool alike(const struct dl2_cudnn_request *a, const struct dl2_cudnn_request *b)
{
    struct dl2_conv_shape conv = a->conv;
    struct dl2_attention_shape attention = a->attention;
    conv.batch = b->conv.batch;
    attention.batch = b->attention.batch;
    return a->pass == b->pass && !memcmp(&conv, &b->conv, offsetof(struct dl2_conv_shape, bias)) &&
           (a->pass != DL2_PASS_BIASED || conv.activation == b->conv.activation) &&
           !memcmp(&attention, &b->attention, sizeof attention);
}

int dl2_cudnn_choose(struct cuda *cuda, const struct dl2_cudnn_request *wanted,
                     struct dl2_cudnn_choice **out, struct dl2_error *error)
{
    struct dl2_cudnn_request request = *wanted;
    bool fastest = !cuda->deterministic;
    request.precision = cuda->precision;
    request.deterministic = cuda->deterministic;
    request.workspace = cuda->workspace_limit;
    for (struct dl2_cudnn_choice *c = cuda->choices; c; c = c->next)
        if (alike(&c->request, &request)) {
            *out = c->plan.plan ? c : NULL;
            if (batch_of(&c->request) == batch_of(&request))
                return DL2_OK;
            fastest = false; /* an epoch's last batch: not worth seconds */
        }
    struct dl2_cudnn_choice *choice = dl2_calloc(1, sizeof *choice);
    struct dl2_cudnn_plans plans;
    struct dl2_cudnn_plan none = {0}, *best = &none;
    struct dl2_error reason = DL2_ERROR_INIT;
    if (!choice)
        return dl2_cuda_out_of_memory(error, "a plan of cuDNN");
    int status = dl2_cudnn_plans_find(&request, cuda->cudnn, NULL, &plans, &reason);
    if (status == DL2_OK)
        status = find_best(cuda, &request, fastest, &plans, &best, &reason);
    if (status == DL2_ERR_UNSUPPORTED && dl2_cudnn_is_optional(&request)) {
        /* A choice, too: the next layer of this shape need not try again. */
        dl2_cuda_tell(cuda, "%s. It is computed in parts, which takes longer", reason.message);
        best = &none;
    } else if (status < 0) {
        dl2_cudnn_plans_free(&plans);
        free(choice);
        return dl2_error_copy(error, &reason);
    }
    *choice = (struct dl2_cudnn_choice){request, *best, false, cuda->choices};
    *best = (struct dl2_cudnn_plan){0}; /* moves there */
    dl2_cudnn_plans_free(&plans);
    cuda->choices = choice;
    *out = choice->plan.plan ? choice : NULL;
    return dl2_cuda_grow(cuda, &cuda->workspace, choice->plan.workspace, "a workspace", error);
}

void dl2_cudnn_run(struct cuda *cuda, const struct dl2_cudnn_choice *choice,
                   const void *const *tensors)
{
    char text[256];
    if (!has_not_failed(cuda) ||
        dl2_cudnn_plan_run(&choice->plan, cuda->cudnn, tensors, cuda->workspace.memory,
                           &cuda->base.failure) == DL2_OK)
        return;
    dl2_cudnn_request_text(&choice->request, text, sizeof text);
    dl2_error_prefix(&cuda->base.failure, "device cuda: %s by plan %s", text, choice->plan.name);
}

void dl2_cudnn_choices_forget(struct cuda *cuda)
{
    while (cuda->choices) {
        struct dl2_cudnn_choice *next = cuda->choices->next;
        dl2_cudnn_plan_free(&cuda->choices->plan);
        free(cuda->choices);
        cuda->choices = next;
    }
}
