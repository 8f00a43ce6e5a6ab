/* SPDX-License-Identifier: BSD-2-Clause */
/* A small dataset of pictures for the loader's tests, and loaders over it. */
#ifndef DL2_TESTS_LOADER_PICTURES_H
#define DL2_TESTS_LOADER_PICTURES_H

#include "loader/loader.h"
#include "tests/unit.h"

enum { SIZE = 16, COUNT = 61 };

extern char root[256];              /* the dataset's folder */
extern struct dl2_dataset *samples; /* the dataset, as the setups opened it */

void put(const char *name, const void *data, size_t size);
/* A picture of noise whose size and pixels `number` decides; every seventh is gray,
 * every fifth a JPEG, whatever it is called. */
void put_picture(const char *name, unsigned number);
/* Damages a picture: cut short, so that reading its header still works. */
void spoil(unsigned number);

/* cmocka's setup and teardown: COUNT pictures in three classes. */
int make_root(void **state); /* an empty folder, which is not opened */
int make_pictures(void **state);
int remove_root(void **state);
/* Opens `samples`, anew where the folder has changed. */
void reopen(void);
/* Else says what the test skips for. */
bool has_encoder(const char *codec);

struct dl2_dataset *open_all(void);
struct dl2_loader_config config_for(bool train, unsigned workers);
struct dl2_loader *create(const struct dl2_dataset *dataset,
                          const struct dl2_loader_config *config);
void start(struct dl2_loader *loader, uint64_t epoch, uint64_t step);
struct dl2_loader_stats stats_of(const struct dl2_loader *loader);
/* Takes and releases the epoch's other batches; returns what ended it, and counts them in
 * *batches, which may be NULL. */
int drain(struct dl2_loader *loader, unsigned *batches, struct dl2_error *error);

/* All of an epoch's batches from a step on, copied one after the other. */
struct loaded {
    uint8_t images[COUNT * SIZE * SIZE * 3];
    int32_t labels[COUNT];
    uint32_t indices[COUNT];
    size_t count;
    uint64_t steps;
};

/* To be freed. */
struct loaded *load_epoch(struct dl2_loader *loader, unsigned channels, uint64_t epoch,
                          uint64_t step);
void expect_same(const struct loaded *a, const struct loaded *b);
/* `count` samples, each once; sorts the indices. */
void expect_every_sample(struct loaded *loaded, uint32_t count);
/* Begun at any step, epoch 7 of `count` samples has what it has as a whole from there on; before
 * that, other epochs are left in the middle. In color. */
void expect_exact_restarts(struct dl2_loader *loader, size_t count);

#endif
