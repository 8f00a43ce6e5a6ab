/* The registry of devices that score: a library of its own, for programs. No other file of this
 * room tests HAVE_CUDA. */
#include "config.h"

#include "quality/score_device.h"

#include <stdio.h>
#include <string.h>

#ifdef HAVE_CUDA
#include "cuda/score_device_cuda.h"
#endif

/* The processors need no device: their row has no functions. */
static const struct dl2_score_device_class processors = {
    .name = "cpu",
    .summary = "the processors",
};

static const struct dl2_score_device_class *const devices[] = {
    &processors,
#ifdef HAVE_CUDA
    &dl2_score_cuda,
#endif
};

const struct dl2_score_device_class *dl2_score_device_at(unsigned index)
{
    return index < sizeof devices / sizeof *devices ? devices[index] : NULL;
}

/* "cuda" and "cuda:N"; false for other names. */
static bool parse_card(const char *name, unsigned *number)
{
    char rest;
    *number = 0;
    return !strcmp(name, "cuda") ||
           (sscanf(name, "cuda:%3u%c", number, &rest) == 1 && name[5] >= '0' && name[5] <= '9');
}

int dl2_score_device_check(const char *name, struct dl2_error *error)
{
    unsigned number;
    if (!strcmp(name, "cpu"))
        return DL2_OK;
    if (!parse_card(name, &number))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "'%s' is none of cpu, cuda, cuda:N", name);
#ifdef HAVE_CUDA
    return DL2_OK;
#else
    return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                         "this build scores on no card: it needs CUDA (configure --with-cuda)");
#endif
}

int dl2_score_device_open(const char *name, struct dl2_score_device **out, struct dl2_error *error)
{
    *out = NULL;
    DL2_TRY(dl2_score_device_check(name, error));
    unsigned number;
    if (!parse_card(name, &number))
        return DL2_OK;
#ifdef HAVE_CUDA
    return dl2_score_cuda.open(number, out, error);
#else
    return DL2_ERR_UNSUPPORTED;
#endif
}

void dl2_score_device_close(struct dl2_score_device *device)
{
    if (device)
        device->ops->close(device);
}
