/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The answer of a study for scripts, beside the page: answer.json, "dl2-answer/1" of
 * docs/formats/report.md, and answer.csv, a line for each network and variant. The file keeps what
 * dl2-report prints, so that it can be printed again without the study.
 */
#ifndef DL2_REPORT_ANSWER_H
#define DL2_REPORT_ANSWER_H

#include "report/page/page.h"

/* The answer as JSON; kept. */
const json_t *dl2_answer_make(const struct dl2_page *page);

/* Writes it to `path` and its table to `table`, each whole or not at all. DL2_ERR_ARGUMENT if there
 * are files of these names that are not an answer's. */
int dl2_answer_save(const json_t *answer, const char *path, const char *table,
                    struct dl2_error *error);

/* Prints an answer: notes, and of each network the table, what to use, and what is open. */
void dl2_answer_print(const json_t *answer);

/* Prints the answer that was saved with the page of the study in `folder`. */
int dl2_answer_print_saved(const char *folder, struct dl2_error *error);

#endif
