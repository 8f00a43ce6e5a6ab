/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which classes does a variant harm? Accuracy over all images hides a class that is lost as long as
 * others gain. A class's recall is the share of its validation images that a network finds.
 *
 * Per class, the difference of recall to the original is a table of seeds and images, with both
 * sources of chance (report/inference.h). Few images and seeds say little about the chance of
 * training in one class, so its variance between seeds is drawn towards that of all classes and
 * variants together, by the weight of up to three seeds.
 *
 * A class of 40 images in which one in 15 is harmed shows no harmed one in 8% of studies, and then
 * hardly any variance. So the lower end of an interval counts at least the variance that images
 * would have if the class lost as much as that end says, which is Wilson's interval where nothing
 * else varies (Wilson, "Probable inference, the law of succession, and statistical inference",
 * Journal of the American Statistical Association 22, 1927; for paired proportions Tango,
 * "Equivalence test and confidence interval for the difference in proportions for the paired-sample
 * design", Statistics in Medicine 17, 1998).
 *
 * A class loses no more recall than the original has, so that the upper end of that cuts the
 * interval off.
 *
 * No class loses more than the lowest of all lower ends: that needs no adjustment for the number of
 * classes, as it errs only where the interval of the class that truly loses most does (Berger,
 * "Multiparameter hypothesis testing and acceptance sampling", Technometrics 24, 1982). "Shown to
 * lose" is said of any of many classes, so it is adjusted by Holm's step ("A simple sequentially
 * rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979).
 */
#ifndef DL2_REPORT_CLASS_HARM_H
#define DL2_REPORT_CLASS_HARM_H

#include "report/analysis.h"
#include "report/differences.h"

/* The classes of a network's validation images. */
struct dl2_classes {
    size_t count;
    char **names; /* [count]: the folder that all of a class's keys have, or "class 3" */
    uint32_t *of; /* [images of the table]: below `count` */
};

/* What is pointed to is kept. */
struct dl2_classes dl2_classes_find(const struct dl2_prediction_table *images);

struct dl2_class_change { /* one class, one variant */
    size_t class;         /* of struct dl2_classes */
    size_t images, units; /* groups of images that are not independent, or as many as images */
    double original;      /* the original's recall, percent */
    double difference;    /* of recall, points; NAN without images */
    double low, high;     /* its 95% interval by itself, points; infinite: not known */
    bool loses;           /* shown, as one of all classes; error 2.5% */
};

struct dl2_class_harm { /* one variant */
    size_t pairs;       /* seeds; 0: not trained, or without predictions, and all else is empty */
    bool diverged;      /* one of its trainings or of the original's did (dl2_study_run) */
    size_t count;       /* of classes */
    size_t judged;      /* that have an interval: two images and two seeds at least */
    struct dl2_class_change *changes; /* [count]: judged ones first, the worst measured before */
    size_t losers;                    /* classes that are shown to lose */
    size_t bounding; /* place of the class whose interval reaches lowest; `count`: none judged */
    double bound;    /* none of those judged loses more points, with an error of 2.5%; at least 0 */
};

/* The harm by network study->archs[arch], whose analysis this is: [variant_count], kept. */
struct dl2_class_harm *dl2_class_harm_make(const struct dl2_study *study,
                                           const struct dl2_analysis *analysis, size_t arch,
                                           const struct dl2_classes *classes);

/* The variant that is worth showing in full: the recommended one, else the smallest of those with a
 * class that is judged; variant_count: none. */
size_t dl2_class_harm_shown(const struct dl2_study *study, const struct dl2_analysis *analysis,
                            const struct dl2_class_harm *harms);

/* "rose, tulip and 3 more": the classes that are shown to lose, the worst first. */
void dl2_class_harm_losers(const struct dl2_class_harm *harm, const struct dl2_classes *classes,
                           char *text, size_t size);
/* Says which classes are shown to lose, how far to trust the worst, and what loss is not excluded.
 */
void dl2_class_harm_say(const struct dl2_class_harm *harm, const struct dl2_classes *classes,
                        char *text, size_t size);

/* The same in brief; kept. */
const char *dl2_class_harm_brief(const struct dl2_class_harm *harm,
                                 const struct dl2_classes *classes);

#endif
