/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The architectures. A row of arch.c's table is all that an architecture is: a new one needs no
 * other file.
 */
#ifndef DL2_NETWORK_ARCH_H
#define DL2_NETWORK_ARCH_H

#include "common/error.h"
#include "device/optimizer.h"
#include "network/label_shape.h"

#include <stddef.h>
#include <stdio.h>

struct dl2_graph;

struct dl2_arch {
    const char *name;
    /* The frames of its input, or a volume's depth, by default; 0: it sees images. */
    unsigned frames;
    unsigned image_size;          /* pixels: the side of its input, alike */
    enum dl2_optimizer optimizer; /* the one that it learns best with */
    /* Adds the layers to the graph, from `value` (the images) on. Returns
     * the value of the logits. */
    int (*build)(struct dl2_graph *graph, int value, unsigned classes);
    const char *summary;        /* for --help and --list: one line */
    enum dl2_label_kind labels; /* what it learns of a sample */
};

/* NULL at the end. */
const struct dl2_arch *dl2_arch_at(size_t index);
/* NULL for an unknown name; the error (DL2_ERR_ARGUMENT) lists the known ones. */
const struct dl2_arch *dl2_arch_find(const char *name, struct dl2_error *error);
/* Refuses images (`frames` 0) for a network that sees clips, and the reverse: DL2_ERR_ARGUMENT. */
int dl2_arch_check_frames(const struct dl2_arch *arch, unsigned frames, struct dl2_error *error);
/* Multiply-adds of one image, or of one clip of its default frames, forward, with 1000 classes
 * (21, PASCAL VOC's, where it labels pixels); training takes about three times as many. NAN if it
 * cannot have images of that size, or memory runs out. */
double dl2_arch_multiply_adds(const struct dl2_arch *arch, unsigned pixels);
/* Prints a line for each, separated by tabs: name, image size, optimizer, millions of multiply-adds
 * at that size, frames of a clip or depth of a volume (0: it sees images), what it learns (class,
 * mask or volume), and summary. */
void dl2_arch_list(FILE *out);

#endif
