/* SPDX-License-Identifier: BSD-2-Clause */
#include "cuda/step_times.h"

#include "common/json.h"
#include "common/memory.h"
#include "cuda/gpu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEFT_OUT = 3 }; /* first steps: libraries load kernels then */

struct part {
    char *layer, *what;
    uint64_t calls;
    double sum, least; /* ms */
};

struct mark {
    cudaEvent_t event;
    size_t part;
};

struct dl2_step_times {
    char *path, *card;
    struct part *parts;
    size_t part_count, part_room;
    struct mark *marks; /* of the step that runs; the first is where it begins */
    size_t mark_count, mark_room;
    size_t events; /* marks that have one */
    uint64_t steps;
};

int dl2_step_times_open(const char *card, struct dl2_step_times **out, struct dl2_error *error)
{
    const char *path = getenv("DL2_CUDA_TIMES");
    *out = NULL;
    if (!path || !*path)
        return DL2_OK;
    struct dl2_step_times *times = dl2_calloc(1, sizeof *times);
    if (times) {
        times->path = strdup(path);
        times->card = strdup(card);
    }
    if (!times || !times->path || !times->card) {
        dl2_step_times_close(times);
        return dl2_error_memory(error, "times of steps");
    }
    *out = times;
    return DL2_OK;
}

void dl2_step_times_close(struct dl2_step_times *times)
{
    if (!times)
        return;
    for (size_t i = 0; i < times->events; i++)
        cudaEventDestroy(times->marks[i].event);
    for (size_t i = 0; i < times->part_count; i++) {
        free(times->parts[i].layer);
        free(times->parts[i].what);
    }
    free(times->marks);
    free(times->parts);
    free(times->path);
    free(times->card);
    free(times);
}

/* Room for one more; false where there is no memory. */
static bool make_room(void *list, size_t count, size_t *room, size_t size)
{
    void *old, *grown;
    if (count < *room)
        return true;
    memcpy(&old, list, sizeof old);
    grown = realloc(old, (2 * count + 64) * size);
    if (!grown)
        return false;
    memcpy(list, &grown, sizeof grown);
    *room = 2 * count + 64;
    return true;
}

/* The part of this name, new if need be. Steps have the same parts in the same order: the one
 * behind `likely` comes first. */
static int find_part(struct dl2_step_times *times, const char *layer, const char *what,
                     size_t likely, size_t *out, struct dl2_error *error)
{
    for (size_t i = 0; i < times->part_count; i++) {
        const size_t at = (likely + i) % times->part_count;
        const struct part *part = &times->parts[at];
        if (!strcmp(part->layer, layer) && !strcmp(part->what, what)) {
            *out = at;
            return DL2_OK;
        }
    }
    struct part part = {strdup(layer), strdup(what), 0, 0, INFINITY};
    if (!part.layer || !part.what ||
        !make_room(&times->parts, times->part_count, &times->part_room, sizeof part)) {
        free(part.layer);
        free(part.what);
        return dl2_error_memory(error, "times of steps");
    }
    *out = times->part_count;
    times->parts[times->part_count++] = part;
    return DL2_OK;
}

static int add_mark(struct dl2_step_times *times, cudaStream_t stream, size_t part,
                    struct dl2_error *error)
{
    if (!make_room(&times->marks, times->mark_count, &times->mark_room, sizeof *times->marks))
        return dl2_error_memory(error, "times of steps");
    struct mark *mark = &times->marks[times->mark_count];
    if (times->mark_count == times->events) {
        DL2_TRY(dl2_gpu_check(cudaEventCreate(&mark->event), "cudaEventCreate", error));
        times->events++;
    }
    mark->part = part;
    times->mark_count++;
    return dl2_gpu_check(cudaEventRecord(mark->event, stream), "cudaEventRecord", error);
}

/* Adds the times of the step that was marked. */
static int take_step(struct dl2_step_times *times, struct dl2_error *error)
{
    const size_t count = times->mark_count;
    times->mark_count = 0;
    if (count < 2 || times->steps++ < LEFT_OUT)
        return DL2_OK;
    DL2_TRY(dl2_gpu_check(cudaEventSynchronize(times->marks[count - 1].event),
                          "cudaEventSynchronize", error));
    for (size_t i = 1; i < count; i++) {
        struct part *part = &times->parts[times->marks[i].part];
        float ms;
        DL2_TRY(dl2_gpu_check(
            cudaEventElapsedTime(&ms, times->marks[i - 1].event, times->marks[i].event),
            "cudaEventElapsedTime", error));
        part->calls++;
        part->sum += (double)ms;
        part->least = fmin(part->least, (double)ms);
    }
    return DL2_OK;
}

int dl2_step_times_begin(struct dl2_step_times *times, cudaStream_t stream, struct dl2_error *error)
{
    DL2_TRY(take_step(times, error));
    return add_mark(times, stream, 0, error);
}

int dl2_step_times_mark(struct dl2_step_times *times, cudaStream_t stream, const char *layer,
                        const char *what, struct dl2_error *error)
{
    size_t part = 0;
    if (!times->mark_count) /* between steps */
        return DL2_OK;
    DL2_TRY(
        find_part(times, layer, what, times->marks[times->mark_count - 1].part + 1, &part, error));
    return add_mark(times, stream, part, error);
}

static int longer_first(const void *left, const void *right)
{
    const struct part *a = left, *b = right;
    return (a->sum < b->sum) - (a->sum > b->sum);
}

int dl2_step_times_save(struct dl2_step_times *times, struct dl2_error *error)
{
    DL2_TRY(take_step(times, error));
    qsort(times->parts, times->part_count, sizeof *times->parts, longer_first);
    json_t *list = json_array();
    for (size_t i = 0; i < times->part_count; i++) {
        const struct part *part = &times->parts[i];
        if (part->calls)
            json_array_append_new(list,
                                  json_pack("{s:s, s:s, s:I, s:f, s:f}", "layer", part->layer,
                                            "what", part->what, "calls", (json_int_t)part->calls,
                                            "ms", part->sum, "least_ms", part->least));
    }
    const json_int_t steps = (json_int_t)(times->steps > LEFT_OUT ? times->steps - LEFT_OUT : 0);
    json_t *all = json_pack("{s:s, s:s, s:I, s:o}", "schema", "dl2-cuda-times/1", "card",
                            times->card, "steps", steps, "parts", list);
    const int status = dl2_json_save(times->path, all, error);
    json_decref(all);
    return status;
}
