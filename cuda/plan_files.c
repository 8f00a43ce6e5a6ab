/* SPDX-License-Identifier: BSD-2-Clause */
#include "cuda/plan_files.h"

#include "common/file.h"
#include "common/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const pass_names[] = {
    [DL2_PASS_FORWARD] = "forward",
    [DL2_PASS_DATA] = "data",
    [DL2_PASS_WEIGHTS] = "weights",
    [DL2_PASS_ATTENTION] = "attention",
    [DL2_PASS_ATTENTION_GRADIENT] = "attention's gradient",
    [DL2_PASS_BIASED] = "forward with bias",
};

/* Where the cache lies; NULL where nothing says so, or memory runs out. */
static char *default_cache(void)
{
    const char *folder = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char *base = NULL;
    if (folder && *folder == '/') /* others are to be ignored: XDG Base Directory Specification */
        base = strdup(folder);
    else if (home && *home)
        base = dl2_path_join(home, ".cache");
    char *path = base ? dl2_path_join(base, "dl2/cuda-plans.json") : NULL;
    free(base);
    return path;
}

int dl2_plan_files_open(const char *card, struct dl2_plan_files *files, struct dl2_error *error)
{
    const char *cache = getenv("DL2_CUDA_PLAN_CACHE"), *times = getenv("DL2_CUDA_PLANS");
    *files = (struct dl2_plan_files){
        .card = strdup(card), .measured = json_pack("{s:[], s:[]}", "convolutions", "attention")};
    if (!cache || !*cache)
        files->cache = default_cache();
    else if (strcmp(cache, "off") != 0)
        files->cache = strdup(cache);
    if (times && *times)
        files->times = strdup(times);
    return files->card && files->measured ? DL2_OK : dl2_error_memory(error, "names of files");
}

void dl2_plan_files_close(struct dl2_plan_files *files)
{
    free(files->cache);
    free(files->times);
    free(files->card);
    json_decref(files->measured);
    *files = (struct dl2_plan_files){0};
}

/* All that a choice depends on. */
static void make_key(const struct dl2_plan_files *files, const struct dl2_cudnn_request *request,
                     char *key, size_t size)
{
    const struct dl2_conv_shape *s = &request->conv;
    const struct dl2_attention_shape *t = &request->attention;
    const int at = snprintf(key, size, "%s, cuDNN %zu, %s, %s, ", files->card, cudnnGetVersion(),
                            dl2_precision_name(request->precision), pass_names[request->pass]);
    if (at < 0 || (size_t)at >= size)
        return;
    char depth[80] = ""; /* of clips; keys of images are older than these */
    if (s->in.depth > 1 || s->kernel.depth > 1)
        snprintf(depth, sizeof depth, "depth %u (kernel %u, stride %u, padding %u), ", s->in.depth,
                 s->kernel.depth, s->stride.depth, s->pad.depth);
    if (dl2_cudnn_is_attention(request))
        snprintf(key + at, size - (size_t)at, "%ux%ux%u, heads %u", t->batch, t->tokens,
                 t->channels, t->heads);
    else
        snprintf(key + at, size - (size_t)at,
                 "%s%ux%ux%ux%u to %u, kernel %ux%u, stride %ux%u, padding %ux%u, groups %u%s",
                 depth, s->batch, s->in.height, s->in.width, s->in_channels, s->out_channels,
                 s->kernel.height, s->kernel.width, s->stride.height, s->stride.width,
                 s->pad.height, s->pad.width, s->groups,
                 request->pass == DL2_PASS_BIASED && s->activation == DL2_RELU ? ", ReLU" : "");
}

/* The cache as it is now, or a fresh one. A new reference. */
static int load_cache(const char *path, json_t **out, struct dl2_error *error)
{
    if (access(path, F_OK) == 0) {
        DL2_TRY(dl2_json_load(path, DL2_PLAN_CACHE_SCHEMA, out, error));
        if (json_is_object(json_object_get(*out, "choices")))
            return DL2_OK;
        json_decref(*out);
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s has no choices", path);
    }
    *out = json_pack("{s:s, s:{}}", "schema", DL2_PLAN_CACHE_SCHEMA, "choices");
    return *out ? DL2_OK : dl2_error_memory(error, "choices of plans");
}

int dl2_plan_cache_get(const struct dl2_plan_files *files, const struct dl2_cudnn_request *request,
                       char name[DL2_CUDNN_PLAN_NAME], struct dl2_error *error)
{
    char key[512];
    json_t *cache;
    name[0] = '\0';
    if (!files->cache || files->times)
        return DL2_OK;
    DL2_TRY(load_cache(files->cache, &cache, error));
    make_key(files, request, key, sizeof key);
    const json_t *choice = json_object_get(json_object_get(cache, "choices"), key);
    snprintf(name, DL2_CUDNN_PLAN_NAME, "%s", dl2_json_get_text(choice, "plan", ""));
    json_decref(cache);
    return DL2_OK;
}

/* Under a name of this process's own first: others may write, too. */
static int save_cache(const char *path, const json_t *cache, struct dl2_error *error)
{
    const size_t size = strlen(path) + 32;
    char *own = dl2_calloc(size, 1);
    if (!own)
        return dl2_error_memory(error, "choices of plans");
    snprintf(own, size, "%s.%ld", path, (long)getpid());
    int status = dl2_json_save(own, cache, error);
    if (status == DL2_OK && rename(own, path) != 0) {
        status = dl2_error_set(error, DL2_ERR_SYSTEM, "cannot rename %s to %s: %s", own, path,
                               strerror(errno));
        unlink(own);
    }
    free(own);
    return status;
}

int dl2_plan_cache_put(const struct dl2_plan_files *files, const struct dl2_cudnn_request *request,
                       const char *name, double ms, struct dl2_error *error)
{
    char key[512];
    json_t *cache;
    if (!files->cache)
        return DL2_OK;
    DL2_TRY(dl2_file_expect(files->cache, error));
    DL2_TRY(load_cache(files->cache, &cache, error));
    make_key(files, request, key, sizeof key);
    json_object_set_new(json_object_get(cache, "choices"), key,
                        json_pack("{s:s, s:f}", "plan", name, "ms", ms));
    const int status = save_cache(files->cache, cache, error);
    json_decref(cache);
    return status;
}

static json_t *describe_shape(const struct dl2_cudnn_request *request)
{
    const struct dl2_conv_shape *s = &request->conv;
    const struct dl2_attention_shape *t = &request->attention;
    if (dl2_cudnn_is_attention(request))
        return json_pack("{s:I, s:I, s:I, s:I}", "batch", (json_int_t)t->batch, "tokens",
                         (json_int_t)t->tokens, "channels", (json_int_t)t->channels, "heads",
                         (json_int_t)t->heads);
    return json_pack("{s:I, s:[II], s:I, s:I, s:[II], s:[II], s:[II], s:I}", "batch",
                     (json_int_t)s->batch, "in", (json_int_t)s->in.height, (json_int_t)s->in.width,
                     "in_channels", (json_int_t)s->in_channels, "out_channels",
                     (json_int_t)s->out_channels, "kernel", (json_int_t)s->kernel.height,
                     (json_int_t)s->kernel.width, "stride", (json_int_t)s->stride.height,
                     (json_int_t)s->stride.width, "padding", (json_int_t)s->pad.height,
                     (json_int_t)s->pad.width, "groups", (json_int_t)s->groups);
}

int dl2_plan_times_add(struct dl2_plan_files *files, const struct dl2_cudnn_request *request,
                       const char *chosen, json_t *plans, struct dl2_error *error)
{
    json_t *list = json_object_get(files->measured,
                                   dl2_cudnn_is_attention(request) ? "attention" : "convolutions");
    json_array_append_new(
        list,
        json_pack("{s:o, s:s, s:s, s:b, s:s?, s:o}", "shape", describe_shape(request), "pass",
                  pass_names[request->pass], "precision", dl2_precision_name(request->precision),
                  "deterministic", request->deterministic, "chosen", chosen, "plans", plans));
    json_t *all = json_pack("{s:s, s:s, s:I}", "schema", DL2_PLAN_TIMES_SCHEMA, "card", files->card,
                            "cudnn", (json_int_t)cudnnGetVersion());
    json_object_update(all, files->measured);
    const int status = dl2_json_save(files->times, all, error);
    json_decref(all);
    return status;
}
