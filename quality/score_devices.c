/* SPDX-License-Identifier: BSD-2-Clause */
/* The registry of devices that score: a library of its own, for programs. No other file of this
 * room tests HAVE_CUDA. */
#include "config.h"

#include "common/device_name.h"
#include "quality/score_device.h"

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
enum { DEVICES = sizeof devices / sizeof *devices };

const struct dl2_score_device_class *dl2_score_device_at(unsigned index)
{
    return index < DEVICES ? devices[index] : NULL;
}

static const char *score_device_name_at(size_t index)
{
    return index < DEVICES ? devices[index]->name : NULL;
}

int dl2_score_device_check(const char *text, struct dl2_error *error)
{
    struct dl2_device_name name;
    return dl2_device_name_parse(text, score_device_name_at, &name, error);
}

int dl2_score_device_open(const char *text, struct dl2_score_device **out, struct dl2_error *error)
{
    struct dl2_device_name name;
    *out = NULL;
    DL2_TRY(dl2_device_name_parse(text, score_device_name_at, &name, error));
    for (size_t i = DEVICES; name.automatic && i-- > 0;) /* the best that can be opened */
        if (!devices[i]->open || devices[i]->open(0, out, NULL) == DL2_OK)
            return DL2_OK;
    if (devices[name.kind]->open)
        return devices[name.kind]->open(name.number, out, error);
    if (name.number)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "there is one device %s, no number %u",
                             devices[name.kind]->name, name.number);
    return DL2_OK;
}

void dl2_score_device_close(struct dl2_score_device *device)
{
    if (device)
        device->ops->close(device);
}
