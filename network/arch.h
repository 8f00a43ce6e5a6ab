/* The architectures: arch.c has a recipe for each, of what graph.h offers. Internal to train/. */
#ifndef DL2_NETWORK_ARCH_H
#define DL2_NETWORK_ARCH_H

#include "network/network.h"

#include <stddef.h>

struct dl2_graph;

struct dl2_arch {
    const char *name, *summary;
    enum dl2_optimizer optimizer; /* that it learns best with */
    /* Adds the layers from `value` (the images) on; returns the value of the logits. */
    int (*build)(struct dl2_graph *graph, int value, unsigned classes);
};

/* NULL at the end. */
const struct dl2_arch *dl2_arch_at(size_t index);

#endif
