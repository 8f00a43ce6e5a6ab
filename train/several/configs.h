/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Configurations of models that are trained together: JSON objects whose members are named as the
 * options are (docs/formats/train.md, "Configurations"). What a configuration leaves out is as on
 * the command line.
 */
#ifndef DL2_TRAIN_CONFIGS_H
#define DL2_TRAIN_CONFIGS_H

#include "common/option.h"
#include "train/train_options.h"

struct dl2_configs {
    struct dl2_train_model *models; /* checked and complete, but for what differs each time */
    json_t **settings;              /* each one's object */
    char **folders;                 /* each one's config.out */
    size_t count;
};

/* What the configurations begin with: the parsed command line, before any check. */
struct dl2_configs_base {
    const struct dl2_train_settings *settings;
    const struct dl2_program *program;
    const struct dl2_common_options *common;
    bool hop; /* each rank trains one model at a time: train/several/hop.h */
};

/* Refuses options that models that are trained together cannot have. Returns 0, or an exit status
 * after an error message, as those below. */
int dl2_configs_check_base(const struct dl2_configs_base *base);

/* Adds a configuration, from `origin` ("FILE:3"), with a reference of its own. */
int dl2_configs_add(struct dl2_configs *configs, const struct dl2_configs_base *base, json_t *given,
                    const char *origin);
/* Adds those of a file of JSON Lines. */
int dl2_configs_read(struct dl2_configs *configs, const struct dl2_configs_base *base,
                     const char *path);
void dl2_configs_free(struct dl2_configs *configs);

#endif
