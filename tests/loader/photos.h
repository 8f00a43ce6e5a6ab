/* SPDX-License-Identifier: BSD-2-Clause */
/* Photographs of noise for the tests of batch decoders: JPEG but for every ninth, which is PNG;
 * some gray, some 4:4:4 or 4:2:2, every other one with restart intervals, and wide enough to be
 * cut. */
#ifndef DL2_TESTS_LOADER_PHOTOS_H
#define DL2_TESTS_LOADER_PHOTOS_H

#include "common/memory.h"
#include "tests/loader/pictures.h"

enum { PHOTOS = 50 };

/* The file of one, by its number. */
void make_photo(unsigned number, struct dl2_bytes *file);
/* One of more than a megabyte, narrow and high. */
void make_large_photo(struct dl2_bytes *file);
/* cmocka's setup: all of them, in three classes. */
int make_photos(void **state);
/* Within: the headers and the end are good; else it is cut off. */
void spoil_photo(unsigned number, bool within);
void repair_photo(unsigned number);

#endif
