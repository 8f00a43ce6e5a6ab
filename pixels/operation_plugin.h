/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations on training images that come from a shared object of the user's: a plug-in. It
 * includes this header, links with nothing of dl2 (examples/grain.c), and exports one symbol:
 *
 *     const struct dl2_operation_plugin dl2_operation_plugin = {DL2_OPERATION_PLUGIN_ABI, list};
 *
 * An augmentation names its operations NAME@FILE:SETTING=VALUE, in --augment of the programs,
 * augment= of Python and dl2_loader_config.augment of C. FILE is given to dlopen(): a path, or a
 * name without a slash to be looked for where libraries lie.
 *
 * Threads: run() is called on many threads at once, each time with an image of its own. It must
 * give the same bytes for the same image, settings and random numbers, so it keeps nothing from
 * call to call.
 */
#ifndef DL2_PIXELS_OPERATION_PLUGIN_H
#define DL2_PIXELS_OPERATION_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Rises when a struct below changes. A plug-in of another version is refused. */
enum { DL2_OPERATION_PLUGIN_ABI = 1 };

enum { DL2_OPERATION_SETTINGS = 8 }; /* of one operation at most */

/* A number that the user may set, within [low, high]. Every operation has one more, p, the
 * probability that it is applied, by default 1. */
struct dl2_operation_setting {
    const char *name; /* lower-case letters, digits and "-" */
    double low, high;
    double standard; /* the default */
    bool whole;      /* whole numbers alone */
};

/* Pixels to be changed in place, after the crop, the resize to the output's size and the flip. */
struct dl2_operation_image {
    uint8_t *data; /* [height][width][channels]: RGB, or gray */
    size_t stride; /* bytes from a row to the next */
    uint32_t width, height;
    uint32_t channels; /* 3 or 1 */
    bool is_mask;      /* class numbers of an image's pixels, one channel */
    uint8_t fill;      /* of a mask: for what comes from outside of it */
};

struct dl2_plugin_operation {
    const char *name; /* lower-case letters, digits, "-" and "_" */
    /* DL2_OPERATION_SETTINGS at most; one without a name ends them. NULL: there are none. */
    const struct dl2_operation_setting *settings;
    /* It moves pixels, and so is called for the mask of a sample, too, with the same settings and
     * random numbers. */
    bool moves;
    /*
     * `settings` holds a number for each of the operation's, in their order. *random is a seed that
     * depends on the run's seed, the epoch and the sample, for dl2_operation_uniform() or another
     * generator; how many numbers an operation draws from it changes nothing for the others.
     * Returns 0; or another number, and in `reason`, a text of fewer than `size` bytes, why the
     * image cannot be used. It counts as a bad file then.
     */
    int (*run)(const double *settings, uint64_t *random, const struct dl2_operation_image *image,
               char *reason, size_t size);
};

struct dl2_operation_plugin {
    uint32_t abi;                                  /* DL2_OPERATION_PLUGIN_ABI */
    const struct dl2_plugin_operation *operations; /* one without a name ends them */
};

#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
extern const struct dl2_operation_plugin dl2_operation_plugin;

/* The next random number in [0, 1): SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom
 * number generators", OOPSLA 2014), 53 bits. */
static inline double dl2_operation_uniform(uint64_t *random)
{
    uint64_t mixed = *random += 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
    return (double)((mixed ^ mixed >> 31) >> 11) / 9007199254740992.0;
}

#ifdef __cplusplus
}
#endif

#endif
