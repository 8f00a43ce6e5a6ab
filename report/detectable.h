/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How small a change could a study show, before anything is trained? The validation images are
 * known once a variant is made, and so are their groups: few of either leave intervals wide,
 * whatever training does.
 */
#ifndef DL2_REPORT_DETECTABLE_H
#define DL2_REPORT_DETECTABLE_H

#include "common/error.h"
#include "report/groups.h"

/* The part of the validation images whose answer a variant changes, for want of a better one: the
 * studies of `make simulate` change 2 to 5%. */
#define DL2_CHANGED_IMAGES 0.04

struct dl2_detectable {
    size_t images, units; /* for validation; groups, or as many as images */
    /* Half of a 95% interval by the choice of images alone, points: if images of a group are no
     * more alike than others, and if they are copies of each other. */
    double half, half_copies;
};

/* What groups with so many images each can show. */
struct dl2_detectable dl2_detectable_of(const size_t *sizes, size_t units);

/* What training takes for validation where the data have no split (dl2-train --val-fraction). */
#define DL2_DRAWN_SHARE 0.2

/*
 * Says in sentences what that is of `count` validation images with these keys, each ended by 0;
 * `groups` may be NULL. `count` 0: training draws them from so many `images`; if these are 0, too,
 * there is no list. The text is kept.
 */
int dl2_detectable_text(const char *keys, size_t count, size_t images,
                        const struct dl2_grouping *groups, double tolerance, const char **text,
                        struct dl2_error *error);

#endif
