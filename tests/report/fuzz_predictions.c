/* SPDX-License-Identifier: BSD-2-Clause */
/* The reader of predictions on any bytes. */
#include "common/keep.h"
#include "report/outcome_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool well)
{
    if (!well)
        abort();
}

/* The same bytes as another trainer's outcomes. */
static void try_outcomes(const uint8_t *data, size_t size, const char *name)
{
    struct dl2_prediction_table table;
    struct dl2_error error = DL2_ERROR_INIT;
    if (dl2_outcome_table_parse(data, size, name, &table, &error) < 0)
        must(strstr(error.message, name));
    else
        must(dl2_outcome_table_same_keys(&table, &table, &error) == DL2_OK &&
             fabs(dl2_outcome_table_mean(&table)) <= 1e12 && table.keys[0] != '\0');
    dl2_prediction_table_free(&table);
    dl2_free_kept();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dl2_prediction_table table;
    struct dl2_error error = DL2_ERROR_INIT;
    try_outcomes(data, size, "fuzz.npy");
    try_outcomes(data, size, "fuzz.csv");
    if (dl2_prediction_table_parse(data, size, "fuzz.npy", &table, &error) < 0) {
        must(strstr(error.message, "fuzz.npy"));
        dl2_prediction_table_free(&table);
        dl2_free_kept();
        return 0;
    }
    /* What was accepted pairs with itself, row by row, and adds up. */
    size_t *found = calloc(table.count, sizeof *found), right = 0;
    must(found && dl2_prediction_table_join(&table, &table, found, &error) == DL2_OK);
    for (size_t i = 0; i < table.count; i++) {
        must(found[i] == i && table.keys[i * table.key_size] != '\0');
        right += table.rows[i].top1;
    }
    must(right == table.right && table.right <= table.known && table.known <= table.count);
    free(found);
    dl2_prediction_table_free(&table);
    dl2_free_kept();
    return 0;
}
