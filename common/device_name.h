/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of devices on command lines, the same in all programs: "auto" is the best device that can
 * be used, "cuda" a kind of device, "cuda:1" its second one. Each program has a registry of the
 * kinds that it knows.
 */
#ifndef DL2_COMMON_DEVICE_NAME_H
#define DL2_COMMON_DEVICE_NAME_H

#include "common/error.h"

#include <stdbool.h>
#include <stddef.h>

struct dl2_device_name {
    bool automatic;  /* "auto": the fields below are 0 */
    size_t kind;     /* index into the registry */
    unsigned number; /* from 0, at most 9999 */
    bool numbered;   /* the name had a number */
};

/*
 * Parses `text`; NULL is "auto". known(i) is the name of the registry's kind i, NULL after the
 * last. DL2_ERR_ARGUMENT for any other name: the message lists the known ones.
 */
int dl2_device_name_parse(const char *text, const char *(*known)(size_t index),
                          struct dl2_device_name *out, struct dl2_error *error);

#endif
