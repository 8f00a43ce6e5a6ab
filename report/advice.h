/* SPDX-License-Identifier: BSD-2-Clause */
/* The answer in sentences: what is recommended, and what would settle the verdicts that are open.
 */
#ifndef DL2_REPORT_ADVICE_H
#define DL2_REPORT_ADVICE_H

#include "report/analysis.h"

/* Sets analysis->smallest and analysis->needed, once all comparisons are there. */
void dl2_advise(const struct dl2_study *study, struct dl2_analysis *analysis);

/* "1 point"; of a tolerance in percent of the original's accuracy "2% (1.5 points)". Kept, as the
 * texts below are. */
const char *dl2_tolerance_text(const struct dl2_analysis *analysis);

/* "gains 1.5 points (95% interval 0.6 to 2.3)", or loses; "changes by
 * −0.3 points" where the interval reaches to both sides of 0. */
const char *dl2_change_text(const struct dl2_accuracy_kind *kind,
                            const struct dl2_comparison *comparison);
/* The same of the variant's own images and, where trainings were validated on them, the original's:
 * "gains 1.5 points (...), on its own images and on the original's". */
const char *dl2_changes_text(const struct dl2_analysis *analysis, size_t variant);

/* Are most of the original's images stored without loss, or in so many bits per pixel that they may
 * as well be? Volumes are not meant. */
bool dl2_is_hardly_compressed(const struct dl2_study *study);
/* What the original's files are, such as "png without loss" or "JPEG of quality 90 in the median";
 * NULL: not known. */
const char *dl2_original_text(const struct dl2_study *study);

/* "18.6 times smaller than png without loss, 2 times smaller than jpeg-75": the latter where the
 * original is hardly compressed. */
const char *dl2_size_text(const struct dl2_study *study, size_t v);

/* How the variant of v's resolution without loss changes, png@48 of jpeg-75@48, a sentence; ""
 * where v is not resized, or none was trained on. */
const char *dl2_control_text(const struct dl2_study *study, const struct dl2_analysis *analysis,
                             size_t v);

/* Why a variant is not claimed though its interval may be within, a sentence: a larger file comes
 * first, or the bound of its claim; "" where neither decides. */
const char *dl2_blocks_text(const struct dl2_study *study, const struct dl2_analysis *analysis,
                            size_t v);

/* What would settle a verdict that is open: "could be" or "looks worse". */
struct dl2_outlook {
    double margin;    /* points from the measured change to the tolerance; below 0: beyond it */
    double of_images; /* the part of the interval's squared half-width that the choice of images
                       * makes, 0 to 1; NAN: not known */
    struct dl2_study_size needed; /* of a new study that shows it; few 0: none does, or not known */
    double chance; /* that the largest study that is thought of shows it; NAN: not known */
};

/* As one claim by itself, as if no larger file of its codec had to be shown first. */
struct dl2_outlook dl2_outlook_find(const struct dl2_study *study,
                                    const struct dl2_analysis *analysis, size_t variant);
/* The same in words; "" of a verdict that is not open. */
const char *dl2_outlook_text(const struct dl2_study *study, const struct dl2_analysis *analysis,
                             size_t variant);
/* What would show an open variant and all that has to be shown before it, in words; *needed: the
 * new study that does; few 0: none, or not known. */
const char *dl2_settle_text(const struct dl2_study *study, const struct dl2_analysis *analysis,
                            size_t variant, struct dl2_study_size *needed);

#endif
