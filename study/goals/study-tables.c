/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/goals.h"

/* Networks of dl2-train are validated on every variant, too: what a network does not see differs
 * from network to network. */
static struct dl2_words plan_study_tables(struct dl2_study_plan *plan)
{
    return plan->study->trainer ? dl2_plan_trainings(plan, NULL) : dl2_plan_matrix(plan);
}

static const struct dl2_goal goal_study_tables = {
    .name = "study-tables",
    .summary = "trainings on JPEGs with libjpeg's quantisation tables and with those of TABLES, at "
               "equal bytes, and every network validated on every variant (OUT/tables)",
    .question = "What do fitted quantisation tables save?",
    .section = "tables",
    .folders = "tables",
    .plan = plan_study_tables,
};
