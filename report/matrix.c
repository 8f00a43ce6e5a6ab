/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/matrix.h"

#include "common/json.h"
#include "common/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- What the trainings themselves validated on */

static double top1_on(const struct dl2_study_run *run, size_t set)
{
    const json_t *final = json_array_get(json_object_get(run->report, "final"), set);
    return 100 * dl2_json_get_real(final, "top1", NAN);
}

static void find_sets(const struct dl2_study *study, const char *arch, struct dl2_matrix_sets *sets)
{
    const struct dl2_study_run *original =
        dl2_study_first_run(study, dl2_study_find(study, "raw"), arch);
    *sets = (struct dl2_matrix_sets){.count = 1};
    if (original) { /* its first set is its own */
        sets->original = sets->count;
        sets->sets[sets->count++] = dl2_study_val_set(original, 0);
    }
    for (size_t i = 0; i < study->run_count; i++) {
        const struct dl2_study_run *run = &study->runs[i];
        const size_t own_sets = json_array_size(json_object_get(run->report, "final"));
        if (strcmp(run->arch, arch) != 0)
            continue;
        for (size_t set = 1; set < own_sets; set++) {
            const struct dl2_val_set own = dl2_study_val_set(run, set);
            size_t known = 1;
            while (known < sets->count && !dl2_val_set_equal(&sets->sets[known], &own))
                known++;
            if (known == sets->count && known < DL2_MATRIX_MAX_SETS)
                sets->sets[sets->count++] = own;
        }
    }
}

/* Top-1 of a run on a set, NAN where it was not validated on it. */
static double top1_in(const struct dl2_study_run *run, const struct dl2_matrix_sets *sets,
                      size_t number)
{
    const size_t own_sets = json_array_size(json_object_get(run->report, "final"));
    for (size_t set = 0; set < own_sets; set++) {
        const struct dl2_val_set own = dl2_study_val_set(run, set);
        if (number == DL2_MATRIX_ITSELF ? set == 0 : dl2_val_set_equal(&own, &sets->sets[number]))
            return top1_on(run, set);
    }
    return NAN;
}

bool dl2_matrix_sets_find(const struct dl2_study *study, const char *arch,
                          struct dl2_matrix_sets *sets)
{
    bool others = false;
    find_sets(study, arch, sets);
    for (size_t i = 0; i < study->run_count; i++)
        others |= strcmp(study->runs[i].arch, arch) == 0 &&
                  json_array_size(json_object_get(study->runs[i].report, "final")) > 1;
    return others;
}

struct dl2_estimate dl2_matrix_sets_top1(const struct dl2_study *study, const char *arch,
                                         const struct dl2_matrix_sets *sets, size_t v, size_t set,
                                         double *values)
{
    size_t count = 0;
    for (size_t i = 0; i < study->run_count; i++) {
        const struct dl2_study_run *run = &study->runs[i];
        const double top1 = top1_in(run, sets, set);
        if (run->variant == v && strcmp(run->arch, arch) == 0 && isfinite(top1))
            values[count++] = top1;
    }
    return dl2_estimate_mean(values, count);
}

/* ---- The evaluations of `make matrix` */

/* Top-1 of the network trained on `own` on the images of `other`, percent, over seeds. `values` has
 * room for all runs. */
static struct dl2_estimate evaluated_on(const struct dl2_study *study, const char *arch, size_t own,
                                        size_t other, double *values)
{
    size_t count = 0;
    for (size_t i = 0; i < study->run_count; i++) {
        const struct dl2_study_run *run = &study->runs[i];
        if (run->variant == own && strcmp(run->arch, arch) == 0 && run->evaluated &&
            isfinite(run->evaluated[other]))
            values[count++] = 100 * run->evaluated[other];
    }
    return dl2_estimate_mean(values, count);
}

static void fill_matrix(const struct dl2_study *study, struct dl2_matrix *matrix, const char *arch,
                        double *values)
{
    const size_t count = matrix->count;
    for (size_t own = 0; own < count; own++)
        for (size_t other = 0; other < count; other++) {
            struct dl2_estimate *cell = &matrix->cells[own * count + other];
            *cell = evaluated_on(study, arch, own, other, values);
            matrix->rows[own] |= cell->count > 0;
            matrix->columns[other] |= cell->count > 0;
        }
    const size_t raw = dl2_study_find(study, "raw");
    matrix->original = raw < count ? matrix->cells[raw * count + raw].mean : NAN;
    for (size_t i = 0; i < count * count; i++)
        if (matrix->cells[i].count && isfinite(matrix->original))
            matrix->most = fmax(matrix->most, fabs(matrix->cells[i].mean - matrix->original));
}

bool dl2_matrix_exists(const struct dl2_study *study, const char *arch)
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

int dl2_matrix_make(const struct dl2_study *study, const char *arch, struct dl2_matrix *matrix,
                    struct dl2_error *error)
{
    const size_t count = study->variant_count;
    *matrix = (struct dl2_matrix){.count = count,
                                  .cells = dl2_calloc(count, count * sizeof *matrix->cells),
                                  .rows = dl2_calloc(count, sizeof *matrix->rows),
                                  .columns = dl2_calloc(count, sizeof *matrix->columns)};
    double *values = dl2_calloc(study->run_count, sizeof *values);
    const bool made = matrix->cells && matrix->rows && matrix->columns && values;
    if (made)
        fill_matrix(study, matrix, arch, values);
    free(values);
    return made ? DL2_OK : dl2_error_memory(error, "%zu variants", count);
}

void dl2_matrix_free(struct dl2_matrix *matrix)
{
    free(matrix->columns);
    free(matrix->rows);
    free(matrix->cells);
}
