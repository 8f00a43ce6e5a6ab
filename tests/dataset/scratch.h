/* SPDX-License-Identifier: BSD-2-Clause */
/* A scratch folder for each test, files and datasets in it, and what is expected of them. */
#ifndef DL2_TESTS_DATASET_SCRATCH_H
#define DL2_TESTS_DATASET_SCRATCH_H

#include "dataset/dataset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

extern char root[256]; /* the scratch folder */

/* cmocka's setup and teardown. */
int make_root(void **state);
int remove_root(void **state);
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)

/* The path of a name below root, root itself for "". The next eight calls keep it. */
const char *at(const char *name);
/* Writes a file, and its folders. */
void put_bytes(const char *name, const void *data, size_t size);
void put_text(const char *name, const char *text);
/* A file that contains its own name. */
void put(const char *name);
void load(const char *name, struct dl2_bytes *bytes);
void remove_folder(const char *name);

struct dl2_dataset *open_with(const char *name, const struct dl2_dataset_options *options);
struct dl2_dataset *open_split(const char *name, const char *split);
/* NULL where it cannot be opened. */
struct dl2_dataset *open_any(const char *name, const char *split);
/* Opening must fail with this status and a message that contains `word` and the place. */
void refuse(const char *name, int status, const char *word);
void refuse_split(const char *name, const char *split, int status, const char *word);

struct dl2_sample sample_of(const struct dl2_dataset *dataset, size_t index);
/* The sample's bytes are these. */
void expect_sample(const struct dl2_dataset *dataset, size_t index, const void *data, size_t size);
/* "key:label key:label ...", in memory that the next call uses again. */
const char *describe(const struct dl2_dataset *dataset);
void expect_split(const char *name, const char *split, const char *description);
void expect_count(const char *name, size_t count);

#endif
