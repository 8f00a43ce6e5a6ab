/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/matrix.h"

#include "common/json.h"
#include "common/keep.h"
#include "common/scope.h"

#include <math.h>
#include <string.h>

/* ---- What the trainings themselves validated on */

/* Sets that trainings validated on: their own variant's, the original's, and any other. */
enum { ITSELF, MAX_SETS = 32 };

struct sets {
    struct dl2_val_set at[MAX_SETS]; /* the first is not used */
    size_t count, original;          /* the original's number, 0: none */
};

static void find_sets(const struct dl2_study *study, const char *arch, struct sets *sets)
{
    const struct dl2_runs original = dl2_study_runs(study, dl2_study_find(study, "raw"), arch);
    *sets = (struct sets){.count = 1};
    if (original.count) { /* its first set is its own */
        sets->original = sets->count;
        sets->at[sets->count++] = dl2_study_val_set(original.at, 0);
    }
    for (size_t i = 0; i < study->run_count; i++) {
        const struct dl2_study_run *run = &study->runs[i];
        const size_t own_sets = json_array_size(json_object_get(run->report, "final"));
        if (strcmp(run->arch, arch) != 0)
            continue;
        for (size_t set = 1; set < own_sets; set++) {
            const struct dl2_val_set own = dl2_study_val_set(run, set);
            size_t known = 1;
            while (known < sets->count && !dl2_val_set_equal(&sets->at[known], &own))
                known++;
            if (known == sets->count && known < MAX_SETS)
                sets->at[sets->count++] = own;
        }
    }
}

/* The accuracy of a run on a set, NAN where it was not validated on it. */
static double accuracy_in(const struct dl2_study_run *run, const struct sets *sets, size_t number)
{
    const json_t *final = json_object_get(run->report, "final");
    for (size_t set = 0; set < json_array_size(final); set++) {
        const struct dl2_val_set own = dl2_study_val_set(run, set);
        if (number == ITSELF ? set == 0 : dl2_val_set_equal(&own, &sets->at[number]))
            return 100 * dl2_accuracy_of(json_array_get(final, set));
    }
    return NAN;
}

/* Sets of one name are told apart by their paths. */
static const char *name_of(const struct sets *sets, size_t c)
{
    const struct dl2_val_set *set = &sets->at[c];
    if (c == ITSELF || c == sets->original)
        return c == ITSELF ? "itself" : "the original";
    for (size_t k = 1; k < sets->count; k++)
        if (k != c && k != sets->original && strcmp(sets->at[k].name, set->name) == 0 && set->path)
            return set->path;
    return set->name;
}

/* Did any training validate on another set than its own? */
static bool find_others(const struct dl2_study *study, const char *arch)
{
    for (size_t i = 0; i < study->run_count; i++)
        if (strcmp(study->runs[i].arch, arch) == 0 &&
            json_array_size(json_object_get(study->runs[i].report, "final")) > 1)
            return true;
    return false;
}

/* ---- The matrix */

/* Were networks of two or more variants evaluated on others' images? */
static bool are_evaluated(const struct dl2_study *study, const char *arch)
{
    size_t rows = 0; /* runs are sorted by variant */
    for (size_t i = 0, last = study->variant_count; i < study->run_count; i++) {
        const struct dl2_study_run *run = &study->runs[i];
        if (!run->evaluated || strcmp(run->arch, arch) != 0 || run->variant == last)
            continue;
        rows++;
        last = run->variant;
    }
    return rows > 1;
}

size_t dl2_matrix_own(const struct dl2_matrix *matrix, size_t row)
{
    return matrix->evaluated ? row : ITSELF;
}

/* The accuracy of the networks trained on `row`, percent, over seeds. `values` has room for all
 * runs. */
static struct dl2_estimate estimate(const struct dl2_study *study, const char *arch,
                                    const struct sets *sets, size_t row, size_t column,
                                    double *values)
{
    const struct dl2_runs runs = dl2_study_runs(study, row, arch);
    size_t count = 0;
    for (size_t i = 0; i < runs.count; i++) {
        const struct dl2_study_run *run = &runs.at[i];
        const double accuracy = sets             ? accuracy_in(run, sets, column)
                                : run->evaluated ? 100 * run->evaluated[column]
                                                 : NAN;
        if (isfinite(accuracy))
            values[count++] = accuracy;
    }
    return dl2_estimate_mean(values, count);
}

static void fill_matrix(const struct dl2_study *study, struct dl2_matrix *matrix, const char *arch,
                        const struct sets *sets, double *values)
{
    const size_t raw = dl2_study_find(study, "raw"), cells = matrix->rows * matrix->columns;
    for (size_t i = 0; i < cells; i++) {
        const size_t row = i / matrix->columns, column = i % matrix->columns;
        matrix->cells[i] = estimate(study, arch, sets, row, column, values);
        matrix->has_row[row] |= matrix->cells[i].count > 0;
        matrix->has_column[column] |= matrix->cells[i].count > 0;
        matrix->names[column] = sets            ? name_of(sets, column)
                                : column == raw ? "original"
                                                : study->variants[column].name;
    }
    if (raw < matrix->rows)
        matrix->original = matrix->cells[raw * matrix->columns + dl2_matrix_own(matrix, raw)].mean;
    for (size_t i = 0; i < cells; i++)
        if (matrix->cells[i].count && isfinite(matrix->original) &&
            i % matrix->columns < matrix->compared)
            matrix->most = fmax(matrix->most, fabs(matrix->cells[i].mean - matrix->original));
}

struct dl2_matrix dl2_matrix_make(const struct dl2_study *study, const char *arch)
{
    struct sets sets;
    const bool evaluated = are_evaluated(study, arch);
    struct dl2_matrix matrix = {.evaluated = evaluated, .original = NAN};
    if (!evaluated && !find_others(study, arch))
        return matrix;
    find_sets(study, arch, &sets);
    matrix.rows = study->variant_count;
    matrix.columns = evaluated ? study->variant_count : sets.count;
    matrix.compared = evaluated ? matrix.columns : sets.original + 1;
    matrix.cells = dl2_keep(matrix.rows, matrix.columns * sizeof *matrix.cells, "the matrix");
    matrix.names = dl2_keep(matrix.columns, sizeof *matrix.names, "the matrix");
    matrix.has_row = dl2_keep(matrix.rows, sizeof *matrix.has_row, "the matrix");
    matrix.has_column = dl2_keep(matrix.columns, sizeof *matrix.has_column, "the matrix");
    DL2_AUTO_FREE double *values = dl2_room(study->run_count, sizeof *values, "the matrix");
    fill_matrix(study, &matrix, arch, evaluated ? NULL : &sets, values);
    return matrix;
}
