/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The space of a search (docs/formats/train.md, "Spaces"): the settings that its trials may have.
 */
#ifndef DL2_TRAIN_SEARCH_SPACE_H
#define DL2_TRAIN_SEARCH_SPACE_H

#include "common/option.h"
#include "train/several/search_options.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct dl2_search_space;

/* Reads options->space, and draws with `seed`. Returns 0, or an exit status after an error message;
 * call dl2_search_space_close() also then. `program` and `options` are borrowed. */
int dl2_search_space_open(const struct dl2_program *program,
                          const struct dl2_search_options *options, uint64_t seed,
                          struct dl2_search_space **out);
void dl2_search_space_close(struct dl2_search_space *space);

/* How many trials there are: options->trials, or all combinations, where those are fewer. */
size_t dl2_search_space_trials(const struct dl2_search_space *space);
/* The settings of trial `number`, with its name: a new reference. */
json_t *dl2_search_space_settings(const struct dl2_search_space *space, size_t number);
/* The space as its file has it: borrowed. */
json_t *dl2_search_space_json(const struct dl2_search_space *space);

#endif
