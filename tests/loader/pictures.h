/* SPDX-License-Identifier: BSD-2-Clause */
/* A small dataset of pictures for the loader's tests, and loaders over it. */
#ifndef DL2_TESTS_LOADER_PICTURES_H
#define DL2_TESTS_LOADER_PICTURES_H

#include "loader/loader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SIZE = 16, COUNT = 61 };

extern char root[256]; /* the dataset's folder */

void put(const char *name, const void *data, size_t size);
/* A picture of noise whose size and pixels `number` decides; every seventh is gray,
 * every fifth a JPEG, whatever it is called. */
void put_picture(const char *name, unsigned number);
/* Damages a picture: cut short, so that reading its header still works. */
void spoil(unsigned number);

/* cmocka's setup and teardown: COUNT pictures in three classes. */
int make_root(void **state);
int make_pictures(void **state);
int remove_root(void **state);
/* Else says what the test skips for. */
bool has_encoder(const char *codec);

struct dl2_dataset *open_all(void);
struct dl2_loader_config config_for(bool train, unsigned workers);
struct dl2_loader *create(const struct dl2_dataset *dataset,
                          const struct dl2_loader_config *config);
void start(struct dl2_loader *loader, uint64_t epoch, uint64_t step);

#endif
