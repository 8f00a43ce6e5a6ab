/* SPDX-License-Identifier: BSD-2-Clause */
/* What several studies say together, in words. */
#ifndef DL2_REPORT_SEVERAL_ANSWER_H
#define DL2_REPORT_SEVERAL_ANSWER_H

#include "report/several_studies.h"

/* In whole sentences, of one network. */
struct dl2_several_answer {
    char headline[512]; /* what is claimed of the smallest variant */
    char details[1024];
};

void dl2_several_answer_make(const struct dl2_several_studies *several,
                             const struct dl2_shared_network *network,
                             struct dl2_several_answer *answer);

#endif
