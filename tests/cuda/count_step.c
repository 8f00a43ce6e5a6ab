/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a training step must do on a card, counted from the network itself: operations of
 * convolutions and linear layers, and the bytes that each call moves when it reads each input and
 * writes each output once. Divided by the rates of a card it is the floor that a profile is held
 * against (docs/measurements/cuda.md).
 *
 *     count_step ARCH BATCH PIXELS TFLOPS TBPERSECOND     (bf16)
 */
#include "network/arch.h"
#include "network/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMENT = 2 };

struct sum {
    const char *name;
    double flops, bytes, seconds; /* seconds: of each call the slower of the two, added up */
};

static double flop_rate, byte_rate;

static void call(struct sum *sum, double flops, double bytes)
{
    double a = flops / flop_rate, b = bytes / byte_rate;
    sum->flops += flops;
    sum->bytes += bytes;
    sum->seconds += a > b ? a : b;
}

enum { CONV, LINEAR, ATTENTION, NORM, LAYER_NORM, POOL, OTHER, UPDATE, KINDS };

/* As cuDNN does it, of 16-bit elements: two products forward and five backward, whose scores are in
 * no memory. The gradient of the queries is added up as floats. x and y are the bytes of its input
 * and output. */
static void count_attention(const struct dl2_graph *g, const struct dl2_layer *l, double x,
                            double y, struct sum *sum)
{
    const double tokens = g->values[l->in].sides.height, floats = 4 / ELEMENT * x / 3;
    const double flops = 2 * tokens * tokens * g->batch * g->values[l->out].channels;
    call(sum, 2 * flops, x + y);
    call(sum, 5 * flops, x + y + y + x + floats);
    call(sum, 0, floats + x / 3);
}

static void count_layer(const struct dl2_graph *g, const struct dl2_layer *l, struct sum *sums)
{
    const struct dl2_value *in = &g->values[l->in], *out = &g->values[l->out];
    double batch = g->batch, e = ELEMENT;
    double x = batch * (double)in->size * e, y = batch * (double)out->size * e;
    double w = l->tensor >= 0 ? (double)g->tensors[l->tensor].count : 0;
    double two = out->uses > 1 ? y : 0; /* the second gradient of a value that is used twice */
    switch (l->kind) {
    case DL2_LAYER_CONV:
    case DL2_LAYER_LINEAR: {
        struct sum *s = &sums[l->kind == DL2_LAYER_CONV ? CONV : LINEAR];
        double flops = 2 * w * batch *
                       (l->kind == DL2_LAYER_CONV ? (double)dl2_sides_count(out->sides) : l->rows);
        call(s, flops, x + w * e + y);
        if (dl2_graph_wants_gradient(g, l->in))
            call(s, flops, y + w * e + x);
        call(s, flops, x + y + w * e);
        if (l->activation != DL2_IDENTITY)
            call(&sums[OTHER], 0, 3 * y); /* the gradient of what enters its ReLU */
        if (l->kind == DL2_LAYER_CONV)
            call(&sums[UPDATE], 0, w * (e + 4)); /* the gradient, widened */
        break;
    }
    case DL2_LAYER_NORM: {
        double residual = l->residual >= 0 ? y : 0;
        /* behind a residual a bit for each element says whether its activation was open */
        double mask = residual > 0 && l->activation != DL2_IDENTITY ? y / (8 * e) : 0;
        call(&sums[NORM], 0, x);                       /* moments */
        call(&sums[NORM], 0, x + residual + y + mask); /* applied */
        if (residual > 0) {
            call(&sums[NORM], 0, x + mask + y + two + y); /* sums; writes the residual's gradient */
            call(&sums[NORM], 0, x + y + x);
        } else {
            call(&sums[NORM], 0, x + y + two);
            call(&sums[NORM], 0, x + y + two + x);
        }
        break;
    }
    case DL2_LAYER_ATTENTION:
        count_attention(g, l, x, y, &sums[ATTENTION]);
        break;
    case DL2_LAYER_LAYER_NORM:
        call(&sums[LAYER_NORM], 0, x + y);
        call(&sums[LAYER_NORM], 0, x + y); /* gradients of its parameters */
        call(&sums[LAYER_NORM], 0, x + y + x);
        break;
    case DL2_LAYER_MAX_POOL:
        call(&sums[POOL], 0, x + y * 1.5); /* and where each maximum was */
        call(&sums[POOL], 0, y * 1.5 + x);
        break;
    case DL2_LAYER_AVERAGE_POOL:
        call(&sums[POOL], 0, x + y);
        call(&sums[POOL], 0, y + x);
        break;
    default:
        call(&sums[OTHER], 0, x + y);
        call(&sums[OTHER], 0, 2 * y + x);
    }
}

int main(int argc, char **argv)
{
    struct sum sums[KINDS] = {{.name = "convolutions"}, {.name = "linear layers"},
                              {.name = "attention"},    {.name = "batch norm"},
                              {.name = "layer norm"},   {.name = "pooling"},
                              {.name = "elementwise"},  {.name = "update"}};
    struct dl2_error error = DL2_ERROR_INIT;
    if (argc != 6)
        return 2;
    const struct dl2_arch *arch = dl2_arch_find(argv[1], &error);
    struct dl2_graph g = {.arch = argv[1],
                          .batch = (unsigned)strtoul(argv[2], NULL, 10),
                          .train = true,
                          .error = &error};
    unsigned pixels = (unsigned)strtoul(argv[3], NULL, 10);
    flop_rate = strtod(argv[4], NULL) * 1e12;
    byte_rate = strtod(argv[5], NULL) * 1e12;
    if (!arch || !g.batch || !pixels || !(flop_rate > 0) || !(byte_rate > 0))
        return 2;
    int images = dl2_graph_images(&g, arch->frames, pixels, pixels, 3);
    g.logits = arch->build(&g, images, 1000);
    if (dl2_graph_plan(&g, ELEMENT) < 0) {
        fprintf(stderr, "count_step: %s\n", error.message);
        return 1;
    }
    for (size_t i = 0; i < g.layer_count; i++)
        count_layer(&g, &g.layers[i], sums);
    /* Ingest; weights, gradients and momenta (AdamW: two) read, weights, momenta and low-precision
     * weights written. */
    const double momenta = arch->optimizer == DL2_ADAMW ? 2 : 1;
    call(&sums[OTHER], 0, (double)g.batch * (double)g.values[0].size * (1 + ELEMENT));
    call(&sums[UPDATE], 0,
         (double)g.parameters * ((2 + momenta) * 4 + (1 + momenta) * 4 + ELEMENT));
    struct sum all = {.name = "in all"};
    printf("%-14s %9s %9s %9s\n", "", "GFLOP", "GB", "ms");
    for (int i = 0; i < KINDS; i++) {
        printf("%-14s %9.0f %9.2f %9.2f\n", sums[i].name, sums[i].flops * 1e-9,
               sums[i].bytes * 1e-9, sums[i].seconds * 1e3);
        all.flops += sums[i].flops;
        all.bytes += sums[i].bytes;
        all.seconds += sums[i].seconds;
    }
    printf("%-14s %9.0f %9.2f %9.2f   %.0f images/s at most\n", all.name, all.flops * 1e-9,
           all.bytes * 1e-9, all.seconds * 1e3, g.batch / all.seconds);
    dl2_graph_free(&g);
    return 0;
}
