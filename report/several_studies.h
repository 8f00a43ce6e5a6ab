/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several studies, of different datasets, with like settings: what they say together
 * (report/inference.h). Of each network and variant that at least two of them have, the studies
 * whose settings most of them share are taken; what is left out is named.
 *
 * Claims are "within the tolerance on at least k of the n datasets that were trained on it". All
 * are one family: the probability that any of them is wrong, of any network, is at most 2.5%. The
 * networks share it equally, and the codecs of a network as in a study (report/claims.h). Within a
 * codec the order is fixed: from the largest variant to the smallest, and of each k = 1, 2... n. So
 * a smaller variant comes only after all larger ones were claimed on all of their datasets.
 */
#ifndef DL2_REPORT_SEVERAL_STUDIES_H
#define DL2_REPORT_SEVERAL_STUDIES_H

#include "report/analysis.h"
#include "report/inference.h"

struct dl2_source_study {
    const char *folder; /* borrowed */
    const char *name;   /* of its folder, as far as that differs from the others'; into `folder` */
    struct dl2_study study;
    struct dl2_analysis *analyses; /* [study.arch_count] */
    bool is_used;                  /* in a variant at least */
};

struct dl2_shared_variant {
    const char *name;  /* "jpeg-50"; borrowed from a study */
    const char *codec; /* borrowed, too */
    size_t count;      /* of datasets */
    size_t *sources;   /* [count]: studies, as they were named */
    /* [count]: of each to its original, points; the interval is that of its own report */
    double *differences, *halves;
    double *p;    /* [count]: of "fewer than k are within", from k = 1 */
    double ratio; /* bytes over the originals', geometric mean */
    struct dl2_random_effects effects;
    size_t within;   /* claimed: within on at least so many; 0: none */
    bool was_tested; /* else a larger file of its codec is not within on all */
};

struct dl2_shared_network {
    const char *arch;                    /* borrowed from a study */
    struct dl2_shared_variant *variants; /* by codec, then from the largest to the smallest */
    size_t variant_count;
};

struct dl2_several_studies {
    struct dl2_source_study *sources;
    size_t count;
    const struct dl2_accuracy_kind *kind; /* of all of them */
    struct dl2_question question;
    struct dl2_shared_network *networks; /* with a variant at least */
    size_t network_count;
};

/*
 * Reads and analyzes the studies in `folders`, at least two, each as a report on it alone does, and
 * puts them together. What went wrong or was left out, in them or here, is added to `notes`.
 * The question's tolerance may be NAN: 1 point. DL2_ERR_ARGUMENT for two studies of one dataset, of
 * two metrics, and for studies with nothing in common; DL2_ERR_UNSUPPORTED for a tolerance in
 * percent, and for none where the metric is no percentage.
 */
int dl2_several_studies_collect(char *const *folders, size_t count,
                                const struct dl2_study_selection *selection,
                                const struct dl2_question *question,
                                struct dl2_several_studies *several, struct dl2_study *notes,
                                struct dl2_error *error);
/* The claims of one of so many networks, whose variants are in order and have their p-values: sets
 * `within` and `was_tested`. A step of the above. */
void dl2_shared_network_claim(struct dl2_shared_network *network, size_t networks);

/* Of one network, in whole sentences and in a table. */
struct dl2_several_answer {
    char headline[512]; /* what is claimed of the smallest variant */
    char details[1024]; /* means and what one more dataset would measure: what the table has, too */
    char caveats[1024]; /* each behind a blank; or "" */
    const char **lines; /* [line_count]: a table in plain text; kept */
    size_t line_count;
};

void dl2_several_answer_make(const struct dl2_several_studies *several,
                             const struct dl2_shared_network *network,
                             struct dl2_several_answer *answer);

#endif
