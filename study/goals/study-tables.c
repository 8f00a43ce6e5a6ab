/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/goals.h"

/* Every network is validated on every variant, too: what a network does not see differs from
 * network to network. */
static void plan_study_tables(struct dl2_study_plan *plan, const struct dl2_goal_values *values)
{
    (void)values;
    const struct dl2_words files = dl2_plan_matrix(plan, &plan->runs);
    dl2_plan_report(plan, &files);
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
