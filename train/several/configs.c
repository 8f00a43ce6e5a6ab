/* SPDX-License-Identifier: BSD-2-Clause */
#include "train/several/configs.h"

#include "common/file.h"
#include "common/json.h"
#include "common/memory.h"
#include "common/scope.h"
#include "loader/loader_options.h"
#include "train/several/hop.h"
#include "train/train_options.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Limits of a file of configurations. */
enum { MAX_CONFIGS = 4096, MAX_BYTES = 16 << 20 };

int dl2_configs_check_base(const struct dl2_configs_base *base)
{
    /* One file cannot be that of several models. */
    const struct dl2_option_rule rules[] = {
        {true, "name,export", "is of one model: it has no use with several"},
        {base->hop, "run-epochs,cold", "has no use with --hop and --task"},
        {!base->hop, "ranks,world", "needs --hop or --task with several models"},
    };
    if (dl2_program_refuse(base->program, base->common, rules, sizeof rules / sizeof *rules) != 0)
        return DL2_EXIT_USAGE;
    const char *sampling = dl2_sampling_given(base->program, base->common);
    if (base->hop && sampling)
        return dl2_program_usage_error(base->program, "--%s has no use with --hop and --task",
                                       sampling);
    if (base->settings->config.optimizer.cutmix > 0 && !base->hop &&
        !base->settings->config.data.own_batches)
        return dl2_program_usage_error(base->program,
                                       "--cutmix changes the images of a batch, which several "
                                       "models share; --mixup does not, and --share decode gives "
                                       "each its own");
    if (base->settings->config.loader.batching != DL2_BATCHING_STRICT)
        return dl2_program_usage_error(base->program,
                                       "several models need --batching strict: they can be resumed "
                                       "at different places of one order");
    return 0;
}

static int config_error(const struct dl2_program *program, const char *key,
                        const struct dl2_error *error)
{
    return dl2_program_usage_error(program, "\"%s\": %s", key, error->message);
}

/* A name is that of a folder, too. */
static int check_config_name(const struct dl2_configs *configs, const struct dl2_program *program,
                             const char *name, bool hop)
{
    if (!name)
        return dl2_program_usage_error(program, "it has no \"name\"");
    bool fits = *name && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
    for (const char *byte = name; *byte; byte++) /* it stands in lines of messages, too */
        fits = fits && !iscntrl((unsigned char)*byte);
    if (!fits)
        return dl2_program_usage_error(program, "\"name\": '%s' cannot be the name of a folder",
                                       name);
    if (hop && strcmp(name, DL2_VISITS_FILE) == 0)
        return dl2_program_usage_error(program, "\"name\": '%s' is the file of visits", name);
    for (size_t i = 0; i < configs->count; i++)
        if (strcmp(configs->models[i].config.run.name, name) == 0)
            return dl2_program_usage_error(program, "\"name\": there is a '%s' already", name);
    return 0;
}

/* The last model to end would overwrite the others' weights. */
static int check_config_export(const struct dl2_configs *configs, const struct dl2_program *program,
                               const struct dl2_train_config *config)
{
    for (size_t i = 0; config->run.export && i < configs->count; i++) {
        const struct dl2_train_config *other = &configs->models[i].config;
        if (other->run.export && strcmp(other->run.export, config->run.export) == 0)
            return dl2_program_usage_error(program, "\"export\": '%s' is that of '%s'",
                                           config->run.export, other->run.name);
    }
    return 0;
}

/* Takes the members of `given` into `settings`. */
static int take_settings(struct dl2_train_settings *settings, const struct dl2_program *program,
                         struct dl2_common_options *common, const json_t *given, bool hop)
{
    struct dl2_train_config *config = &settings->config;
    const unsigned roles = DL2_OPTION_MODEL | (hop ? DL2_OPTION_ALONE : 0);
    const char *key;
    json_t *value;
    /* Models on the same batches have the order and the crops of the command line's seed. */
    if (!config->data.own_batches && !dl2_option_given(program, common, "data-seed")) {
        config->loader.seed = config->seed;
        dl2_option_note_given(program, common, "data-seed", true);
    }
    json_object_foreach((json_t *)given, key, value)
    {
        struct dl2_error error = DL2_ERROR_INIT;
        if (dl2_option_from_user(dl2_train_options, settings, key, value, roles, &error) < 0)
            return config_error(program, key, &error);
        dl2_option_note_given(program, common, key, !json_is_false(value));
    }
    return 0;
}

/* Images and batches are the same for all. */
static int check_config_images(const struct dl2_configs *configs, const struct dl2_program *program,
                               const struct dl2_train_config *config)
{
    const struct dl2_train_config *first = configs->count ? &configs->models[0].config : config;
    if (config->loader.frames != first->loader.frames)
        return dl2_program_usage_error(
            program,
            "%s sees %u frames of a clip and %s, by '%s', %u (0: images): give one --frames",
            config->arch, config->loader.frames, first->arch, first->run.name,
            first->loader.frames);
    if (config->loader.height == first->loader.height &&
        config->loader.volume_depth == first->loader.volume_depth)
        return 0;
    return dl2_program_usage_error(
        program, "images of %s have %u pixels and those of %s, by '%s', %u: give one --image-size",
        config->arch, config->loader.height, first->arch, first->run.name, first->loader.height);
}

static int fill_settings(const struct dl2_configs *configs, const struct dl2_configs_base *base,
                         const json_t *given, const char *origin,
                         struct dl2_train_settings *settings)
{
    struct dl2_train_config *config = &settings->config;
    struct dl2_common_options common = *base->common;
    struct dl2_program program = *base->program;
    program.origin = origin;
    int status = take_settings(settings, &program, &common, given, base->hop);
    status = status ? status : check_config_name(configs, &program, config->run.name, base->hop);
    status = status ? status : check_config_export(configs, &program, config);
    status = status ? status : dl2_train_options_check(settings, &program, &common, true);
    status = status ? status : dl2_train_options_check_rates(config, &program, 1);
    return status || base->hop ? status : check_config_images(configs, &program, config);
}

static bool make_room(struct dl2_configs *configs)
{
    const size_t count = configs->count + 1;
    struct dl2_train_model *models = dl2_realloc(configs->models, count, sizeof *models);
    configs->models = models ? models : configs->models;
    json_t **settings = dl2_realloc((void *)configs->settings, count, sizeof(json_t *));
    configs->settings = settings ? settings : configs->settings;
    char **folders = dl2_realloc((void *)configs->folders, count, sizeof(char *));
    configs->folders = folders ? folders : configs->folders;
    return models && settings && folders;
}

static void free_config(struct dl2_train_config *config)
{
    config->data.val = config->data.joined = NULL; /* the command line's */
    dl2_train_options_free(config);
}

int dl2_configs_add(struct dl2_configs *configs, const struct dl2_configs_base *base, json_t *given,
                    const char *origin)
{
    struct dl2_train_settings settings = *base->settings;
    struct dl2_train_config *config = &settings.config;
    int status = fill_settings(configs, base, given, origin, &settings);
    char *folder = NULL;
    if (status == 0 && configs->count == MAX_CONFIGS) {
        fprintf(stderr, "%s: %s: more than %d configurations\n", base->program->name, origin,
                MAX_CONFIGS);
        status = DL2_EXIT_FAILED;
    }
    if (status == 0 &&
        ((config->run.out && !(folder = dl2_path_join(config->run.out, config->run.name))) ||
         !make_room(configs))) {
        fprintf(stderr, "%s: %s: out of memory\n", base->program->name, origin);
        status = DL2_EXIT_FAILED;
    }
    if (status != 0) {
        free(folder);
        free_config(config);
        return status;
    }
    config->run.out = folder;
    configs->models[configs->count] = (struct dl2_train_model){.config = *config};
    configs->folders[configs->count] = folder;
    configs->settings[configs->count++] = json_incref(given);
    return 0;
}

static bool is_blank(const char *line, size_t length)
{
    size_t i = 0;
    while (i < length && (line[i] == ' ' || line[i] == '\t' || line[i] == '\r'))
        i++;
    return i == length;
}

static int read_line(struct dl2_configs *configs, const struct dl2_configs_base *base,
                     const char *line, size_t length, const char *origin)
{
    json_error_t reason;
    json_auto_t *settings = json_loadb(line, length, JSON_REJECT_DUPLICATES, &reason);
    struct dl2_program program = *base->program;
    program.origin = origin;
    if (!settings)
        return dl2_program_usage_error(&program, "it is not JSON: %s", reason.text);
    if (!json_is_object(settings))
        return dl2_program_usage_error(&program, "it is not an object like {\"name\": \"a\"}");
    return dl2_configs_add(configs, base, settings, origin);
}

int dl2_configs_read(struct dl2_configs *configs, const struct dl2_configs_base *base,
                     const char *path)
{
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes bytes = DL2_BYTES_INIT;
    struct dl2_error error = DL2_ERROR_INIT;
    if (dl2_file_read(path, MAX_BYTES, &bytes, &error) < 0 || dl2_text_begin(&bytes, &error) < 0) {
        fprintf(stderr, "%s: %s\n", base->program->name, error.message);
        return DL2_EXIT_FAILED;
    }
    const char *text = (const char *)bytes.data;
    int status = 0;
    size_t at = 0;
    for (unsigned number = 1; at < bytes.size && status == 0; number++) {
        const char *newline = memchr(text + at, '\n', bytes.size - at);
        char *origin = NULL;
        const size_t length = newline ? (size_t)(newline - text) - at : bytes.size - at;
        if (asprintf(&origin, "%s:%u", path, number) < 0)
            status = DL2_EXIT_FAILED;
        else if (!is_blank(text + at, length))
            status = read_line(configs, base, text + at, length, origin);
        free(origin);
        at += length + 1;
    }
    if (status == 0 && configs->count == 0)
        status = dl2_program_usage_error(base->program, "--configs: %s has no configuration", path);
    return status;
}

void dl2_configs_free(struct dl2_configs *configs)
{
    for (size_t i = 0; i < configs->count; i++) {
        free_config(&configs->models[i].config);
        json_decref(configs->settings[i]);
        free(configs->folders[i]);
    }
    free(configs->models);
    free((void *)configs->settings);
    free((void *)configs->folders);
    *configs = (struct dl2_configs){.count = 0};
}
