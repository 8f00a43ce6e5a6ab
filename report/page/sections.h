/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The page's sections, in the order of the page. A section is one line here and one function in a
 * file of its own, report/section_NAME.c, which adds its heading, tables and plots. Where the
 * study has nothing for it, it adds no block.
 */
#ifndef DL2_REPORT_SECTIONS_H
#define DL2_REPORT_SECTIONS_H

#include "report/page/page.h"

#define DL2_REPORT_SECTIONS(X)                                                                     \
    X(answer)                                                                                      \
    X(about)                                                                                       \
    X(warnings)                                                                                    \
    X(choices)                                                                                     \
    X(variants)                                                                                    \
    X(sizes)                                                                                       \
    X(crops)                                                                                       \
    X(accuracy)                                                                                    \
    X(classes)                                                                                     \
    X(transfer)                                                                                    \
    X(quality)                                                                                     \
    X(bytes)                                                                                       \
    X(distortion)                                                                                  \
    X(metrics)                                                                                     \
    X(codecs)                                                                                      \
    X(equal_quality)                                                                               \
    X(equal_accuracy)                                                                              \
    X(tables)                                                                                      \
    X(training)                                                                                    \
    X(matrix)                                                                                      \
    X(forecast)                                                                                    \
    X(trainings)                                                                                   \
    X(search)                                                                                      \
    X(throughput)                                                                                  \
    X(time)                                                                                        \
    X(regimens)                                                                                    \
    X(loading)                                                                                     \
    X(timelines)                                                                                   \
    X(machine)                                                                                     \
    X(survey)                                                                                      \
    X(failures)                                                                                    \
    X(making)

#define DL2_DECLARE(name) void dl2_section_##name(const struct dl2_page *page, json_t *section);
DL2_REPORT_SECTIONS(DL2_DECLARE)
#undef DL2_DECLARE

#endif
