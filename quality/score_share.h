/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scoring by several processes, each a part of the reference's images: parts that know nothing of
 * each other (dl2-quality --part), or ranks. What a part has scored is text, with numbers that are
 * exact, from which any process can go on as if it had scored the images itself: so means,
 * percentiles and files are those of one process.
 *
 * A part by itself writes its text to STEM-2-of-4.scores, beside STEM-2-of-4
 * (common/work_part.h). The last one reads all of them, and removes them. A part that is lost is
 * scored again as a whole. Text by other options, versions, datasets or metrics counts as none.
 */
#ifndef DL2_QUALITY_SCORE_SHARE_H
#define DL2_QUALITY_SCORE_SHARE_H

#include "common/error.h"
#include "common/work_part.h"
#include "quality/score.h"

struct dl2_world;

struct dl2_score_share {
    struct dl2_work_part part;     /* of ranks: this one's */
    const struct dl2_world *world; /* NULL: the part is by itself */
    const char *stem;              /* then: a path */
    /* Results. */
    bool complete; /* the scoring has all images: of ranks, rank 0's */
    unsigned parts_missing, first_missing;
    /* The share's own. */
    struct dl2_part_file file;
    char digest[32];
    uint16_t *owners; /* [scoring->count] */
};

/* Begins: divides the images by `costs`, and locks a part that is by itself: DL2_ERR_CANCELED if
 * another process has it. `sum` differs where anything that scores depend on does. */
int dl2_score_share_begin(struct dl2_score_share *share, const uint64_t *costs, size_t count,
                          uint64_t sum, struct dl2_error *error);

/* Does this process score the image? */
bool dl2_score_share_has(const struct dl2_score_share *share, size_t index);

/*
 * Ends, with the `status` of the scoring so far: hands over what this process has scored, and reads
 * all where it completes the scoring. Collective for ranks: a failure of one is one of all.
 */
int dl2_score_share_end(struct dl2_score_share *share, struct dl2_scoring *scoring, int status,
                        struct dl2_error *error);
void dl2_score_share_free(struct dl2_score_share *share);

#endif
