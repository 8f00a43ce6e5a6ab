/* SPDX-License-Identifier: BSD-2-Clause */
/* Devices under test, and tensors on them. */
#include "tests/device/test_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- tensors: a host copy and a place on a device -- */

struct dl2_random stream;

float *fresh(size_t count)
{
    float *values = dl2_calloc(count, sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < count; i++)
        values[i] = (float)(2 * dl2_random_uniform(&stream) - 1);
    return values;
}

void ok(int status, const struct dl2_error *error)
{
    if (status)
        fail_msg("%s", error->message);
}

/* What hold() put on a device, until finish(). */
static struct held {
    void *memory, *to;
    size_t count;
    bool low_precision;
} held[24];
static size_t held_count;

void *hold(struct dl2_device *d, enum kind kind, const void *from, void *to, size_t count)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct held *h = &held[held_count];
    if (!from)
        return NULL;
    assert_true(held_count < sizeof held / sizeof held[0]);
    *h = (struct held){.to = to, .count = count, .low_precision = kind == ELEMENTS};
    const size_t bytes = count * (h->low_precision ? dl2_element_size(d->element) : 1);
    void *elements = h->low_precision ? dl2_calloc(bytes, 1) : NULL;
    if (elements)
        dl2_elements_from_floats(d->element, from, elements, count);
    ok(d->ops->alloc(d, bytes, &h->memory, &error), &error);
    held_count++;
    d->ops->upload(d, h->memory, elements ? elements : from, bytes);
    d->ops->wait_uploads(d);
    free(elements);
    return h->memory;
}

void finish(struct dl2_device *d)
{
    struct dl2_error error = DL2_ERROR_INIT;
    for (size_t i = 0; i < held_count; i++) {
        const struct held *h = &held[i];
        const size_t bytes = h->count * (h->low_precision ? dl2_element_size(d->element) : 1);
        void *elements = h->low_precision && h->to ? dl2_calloc(bytes, 1) : NULL;
        if (h->to)
            ok(d->ops->download(d, elements ? elements : h->to, h->memory, bytes, &error), &error);
        if (elements)
            dl2_elements_to_floats(d->element, elements, h->to, h->count);
        free(elements);
        d->ops->free(d, h->memory);
    }
    held_count = 0;
}

/* -- devices under test -- */

struct subject subjects[MAX_SUBJECTS];
size_t subject_count;

#define LOSS_SCALE 1024 /* where there is one */

/* What the device did in another way: device.py looks for it. */
static void say_note(void *context, const char *text)
{
    (void)context;
    printf("note: %s\n", text);
}

/* Opens a device for all tests to come. DL2_ERR_UNSUPPORTED: it lacks that precision. */
static int add_subject(const struct dl2_device_class *ops, enum dl2_precision precision,
                       unsigned threads)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct subject *subject = &subjects[subject_count];
    assert_true(subject_count < MAX_SUBJECTS);
    *subject = (struct subject){.ops = ops, .precision = precision, .threads = threads};
    snprintf(subject->name, sizeof subject->name, "%s, %s", ops->name,
             dl2_precision_name(precision));
    const struct dl2_device_options options = {
#ifdef __SANITIZE_THREAD__
        .threads = 1, /* GCC's OpenMP runtime is not instrumented: its barriers look like races */
#else
        .threads = threads,
#endif
        .precision = precision,
        .loss_scale = LOSS_SCALE,
        .deterministic = true,
        .note = say_note};
    int status = ops->open(&options, &subject->device, &error);
    if (status == DL2_ERR_UNSUPPORTED && precision != DL2_PRECISION_FP32)
        return status;
    ok(status, &error);
    subject_count++;
    return DL2_OK;
}

void close_subjects(void)
{
    while (subject_count)
        dl2_device_close(subjects[--subject_count].device);
}

void find_subjects(const char *name, const char *precision, bool cpu_only)
{
    const struct dl2_device_class *ops, *const ref = dl2_device_at(0);
    close_subjects();
    add_subject(ref, DL2_PRECISION_FP32, 1);
    for (size_t i = 0; (ops = dl2_device_at(i)); i++) {
        if ((name && strcmp(name, ops->name) != 0) || (cpu_only && !ops->rounds_by_threads))
            continue;
        if (ops->present && !ops->present()) {
            printf("SKIP: device %s: there is none here\n", ops->name);
            continue;
        }
        for (int p = DL2_PRECISION_FP32; p <= DL2_PRECISION_FP16; p++)
            for (unsigned threads = 1; threads <= (ops->rounds_by_threads ? 3 : 1); threads += 2)
                if ((!precision || !strcmp(precision, dl2_precision_name(p))) &&
                    (ops != ref || p != DL2_PRECISION_FP32))
                    add_subject(ops, (enum dl2_precision)p, threads);
    }
}

double tolerance_of(const struct subject *subject, double plain)
{
    static const double within[] = {[DL2_PRECISION_FP32] = 1e-4,
                                    [DL2_PRECISION_TF32] = 5e-3,
                                    [DL2_PRECISION_BF16] = 2e-2,
                                    [DL2_PRECISION_FP16] = 5e-3};
    const bool is_plain = subject->precision == DL2_PRECISION_FP32 &&
                          (subject == &subjects[0] || subject->ops->rounds_by_threads);
    double least = is_plain ? 0 : within[subject->precision];
    return least > plain ? least : plain;
}

/* As the subject sees them. */
void round_to(const struct subject *subject, float *values, size_t count)
{
    const enum dl2_element element = subject->device->element;
    if (!count || element == DL2_ELEMENT_F32)
        return;
    void *elements = dl2_calloc(count, dl2_element_size(element));
    assert_non_null(elements);
    dl2_elements_from_floats(element, values, elements, count);
    dl2_elements_to_floats(element, elements, values, count);
    free(elements);
}

double loss_scale_of(struct dl2_device *device)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_loss_scale scale = {.scale = 1};
    if (device->ops->get_loss_scale)
        ok(device->ops->get_loss_scale(device, &scale, &error), &error);
    return scale.scale;
}

/* -- a test's beginning -- */

int seed(void **state)
{
    (void)state;
    dl2_random_init(&stream, 1, DL2_RANDOM_TEST, 0, 0);
    held_count = 0;
    return 0;
}
