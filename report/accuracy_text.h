/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accuracies in words and numbers. Sentences, headings and axes are written for accuracy in
 * percent; dl2_accuracy_words() replaces the phrases in them that would be wrong of another metric.
 * It is given literals and formats, so that it never changes a name or a number. Texts are kept.
 */
#ifndef DL2_REPORT_ACCURACY_TEXT_H
#define DL2_REPORT_ACCURACY_TEXT_H

#include "common/accuracy_kind.h"
#include "common/error.h"

/* The text of a number, by printf(); of an absurd one, its first 31 bytes. */
const char *dl2_number(const char *format, ...) DL2_PRINTF(1, 2);
/* "−1.3"; with so many digits after the point; finite. */
const char *dl2_signed_digits(double value, int digits);
/* "−1.3 to +0.2": `half` to both sides of `middle`; finite. */
const char *dl2_interval_digits(double middle, double half, int digits);

/* The same of a difference in accuracy, with the digits that it takes. */
const char *dl2_signed(const struct dl2_accuracy_kind *kind, double value);
const char *dl2_interval(const struct dl2_accuracy_kind *kind, double middle, double half);
/* "1 point", "1.5 points", "0.02 nats". */
const char *dl2_count_points(const struct dl2_accuracy_kind *kind, double points);

/* "72.3%", "0.412 nats"; of 100 times an accuracy. */
const char *dl2_accuracy_amount(const struct dl2_accuracy_kind *kind, double value);
/* "72.3% top-1", "0.412 nats val_loss". */
const char *dl2_accuracy_named(const struct dl2_accuracy_kind *kind, double value);

/*
 * A text on accuracy, or the format of one, in the words of a foreign metric: "accuracy, points"
 * becomes "mAP, points" or "loss, nats", and what loses accuracy "is worse" where less is better.
 * A text on top-1, IoU or Dice is returned as it is. Of networks that are evaluated as they are,
 * nothing "was trained on".
 */
const char *dl2_accuracy_words(const struct dl2_accuracy_kind *kind, const char *text)
    __attribute__((format_arg(2)));

#endif
