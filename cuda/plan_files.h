/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files about plans of cuDNN (docs/formats/train.md): the cache of what was chosen, by which later
 * processes are spared the measuring, and the times of all plans, for whoever wants to see them.
 *
 * DL2_CUDA_PLAN_CACHE names the cache, or is "off"; without it, the cache is dl2/cuda-plans.json in
 * XDG_CACHE_HOME or ~/.cache. DL2_CUDA_PLANS names the file of times; where it is set, the cache is
 * written but not read, so that all is measured.
 *
 * Other processes may write the cache meanwhile. It is never half written; what two choose at the
 * same moment, one of them may have to choose again another time.
 */
#ifndef DL2_CUDA_PLAN_FILES_H
#define DL2_CUDA_PLAN_FILES_H

#include "cuda/cudnn_plan.h"

#define DL2_PLAN_CACHE_SCHEMA "dl2-cuda-plans/1"
#define DL2_PLAN_TIMES_SCHEMA "dl2-cuda-plan-times/1"

struct dl2_plan_files {
    char *cache; /* path; NULL: none */
    char *times; /* path; NULL: none */
    char *card;
    json_t *measured; /* for the file of times: lists by kind of layer */
};

/* Looks at the environment alone. Call dl2_plan_files_close() also after an error. */
int dl2_plan_files_open(const char *card, struct dl2_plan_files *files, struct dl2_error *error);
void dl2_plan_files_close(struct dl2_plan_files *files);

/* Fills in the name of the plan that was chosen for the request on such a card; "" where the cache
 * has none. An error says why the cache is of no use. */
int dl2_plan_cache_get(const struct dl2_plan_files *files, const struct dl2_cudnn_request *request,
                       char name[DL2_CUDNN_PLAN_NAME], struct dl2_error *error);
/* `ms`: what it took. Leaves a file alone that is no such cache, or a damaged one. */
int dl2_plan_cache_put(const struct dl2_plan_files *files, const struct dl2_cudnn_request *request,
                       const char *name, double ms, struct dl2_error *error);

/* Adds the times of one request's plans, a new reference, and writes the file. `chosen`: NULL where
 * none can be used. */
int dl2_plan_times_add(struct dl2_plan_files *files, const struct dl2_cudnn_request *request,
                       const char *chosen, json_t *plans, struct dl2_error *error);

#endif
