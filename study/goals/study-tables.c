/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/goals.h"
#include "study/trainer.h"

static void set_tables(struct dl2_study_options *options)
{
    const char *own = options->sensitivity_with;
    if (!options->tables)
        options->tables =
            dl2_trainer_is_given(options) && !(own && *own) ? "pipeline" : "pipeline network";
}

/* Networks of dl2-train are validated on every variant, too: what a network does not see differs
 * from network to network. */
static struct dl2_words plan_study_tables(struct dl2_study_plan *plan)
{
    return plan->study->trainer ? dl2_plan_trainings(plan, NULL) : dl2_plan_matrix(plan);
}

static const struct dl2_goal goal_study_tables = {
    .name = "study-tables",
    .summary = "trainings on JPEGs with libjpeg's quantization tables and with those of TABLES, at "
               "equal bytes, and every network validated on every variant (OUT/tables)",
    .question = "What do fitted quantization tables save?",
    .section = "tables",
    .folders = "tables",
    .defaults = set_tables,
    .plan = plan_study_tables,
};
