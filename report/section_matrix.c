/* SPDX-License-Identifier: BSD-2-Clause */
/* Accuracy of what was trained on one variant and validated on another. */
#include "common/json.h"
#include "common/memory.h"
#include "report/parts.h"
#include "report/sections.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A set of validation images: by its path, or by its name where the path is not known. */
struct val_set {
    const char *path, *name;
};

static struct val_set validated(const struct dl2_study_run *run, size_t set)
{
    const json_t *final = json_array_get(json_object_get(run->report, "final"), set);
    const json_t *arguments = json_object_get(run->report, "arguments");
    const json_t *paths = json_object_get(arguments, "val");
    const char *path = json_string_value(json_array_get(paths, set));
    /* Without --val it is the dataset that was trained on. */
    if (!path && json_array_size(paths) == 0 && set == 0)
        path = dl2_json_get_text(arguments, "data", NULL);
    return (struct val_set){path, dl2_json_get_text(final, "name", "?")};
}

static bool same_set(const struct val_set *a, const struct val_set *b)
{
    return a->path && b->path ? strcmp(a->path, b->path) == 0 : strcmp(a->name, b->name) == 0;
}

/* Columns of the matrix: what variants were trained on itself, the original, and any other set. */
enum { ITSELF, MOST_SETS = 32 };

struct columns {
    struct val_set sets[MOST_SETS]; /* the first is not used */
    size_t count, original;         /* the original's column, 0: none */
};

static double top1_on(const struct dl2_study_run *run, size_t set)
{
    const json_t *final = json_array_get(json_object_get(run->report, "final"), set);
    return 100 * dl2_json_get_real(final, "top1", NAN);
}

static void find_columns(const struct dl2_study *study, const char *arch, struct columns *columns)
{
    const size_t raw = dl2_study_find(study, "raw");
    const struct dl2_study_run *original = NULL;
    *columns = (struct columns){.count = 1};
    for (size_t i = 0; i < study->run_count && !original; i++)
        if (study->runs[i].variant == raw && strcmp(study->runs[i].arch, arch) == 0)
            original = &study->runs[i];
    if (original) { /* its first set is its own */
        columns->original = columns->count;
        columns->sets[columns->count++] = validated(original, 0);
    }
    for (size_t i = 0; i < study->run_count; i++) {
        const struct dl2_study_run *run = &study->runs[i];
        const size_t sets = json_array_size(json_object_get(run->report, "final"));
        if (strcmp(run->arch, arch) != 0)
            continue;
        for (size_t set = 1; set < sets; set++) {
            const struct val_set own = validated(run, set);
            size_t known = 1;
            while (known < columns->count && !same_set(&columns->sets[known], &own))
                known++;
            if (known == columns->count && known < MOST_SETS)
                columns->sets[columns->count++] = own;
        }
    }
}

/* Top-1 of a run on a column's set, NAN where it was not validated on it. */
static double top1_in(const struct dl2_study_run *run, const struct columns *columns, size_t column)
{
    const size_t sets = json_array_size(json_object_get(run->report, "final"));
    for (size_t set = 0; set < sets; set++) {
        const struct val_set own = validated(run, set);
        if (column == ITSELF ? set == 0 : same_set(&own, &columns->sets[column]))
            return top1_on(run, set);
    }
    return NAN;
}

static void write_column_names(struct dl2_html *html, const struct columns *columns)
{
    for (size_t c = 0; c < columns->count; c++) {
        const struct val_set *set = &columns->sets[c];
        bool twice = false; /* sets of one name are told apart by their paths */
        for (size_t k = 1; k < columns->count; k++)
            twice |= k != c && k != columns->original && c != ITSELF &&
                     strcmp(columns->sets[k].name, set->name) == 0;
        dl2_html_element(html, "th", "%s",
                         c == ITSELF              ? "itself"
                         : c == columns->original ? "the original"
                         : twice && set->path     ? set->path
                                                  : set->name);
    }
}

/* Trained on one variant, validated on others. */
static void write_matrix(struct dl2_html *html, const struct dl2_page *page, size_t a)
{
    const struct dl2_study *study = page->study;
    struct columns columns;
    find_columns(study, study->archs[a], &columns);
    size_t most = 0;
    for (size_t i = 0; i < study->run_count; i++) {
        const size_t sets = json_array_size(json_object_get(study->runs[i].report, "final"));
        if (strcmp(study->runs[i].arch, study->archs[a]) == 0 && sets > most)
            most = sets;
    }
    double *values = most > 1 ? dl2_calloc(study->run_count, sizeof *values) : NULL;
    if (!values)
        return;
    dl2_html_element(html, "h3", "Trained on one, validated on another%s%s",
                     study->arch_count > 1 ? ": " : "",
                     study->arch_count > 1 ? study->archs[a] : "");
    dl2_html_markup(html, "<div class='scroll'><table><thead><tr><th>trained on</th>");
    write_column_names(html, &columns);
    dl2_html_markup(html, "</tr></thead><tbody>\n");
    for (size_t v = 0; v < study->variant_count; v++) {
        bool any = false;
        for (size_t c = 0; c < columns.count; c++) {
            size_t count = 0;
            for (size_t i = 0; i < study->run_count; i++) {
                const struct dl2_study_run *run = &study->runs[i];
                const double top1 = top1_in(run, &columns, c);
                if (run->variant == v && strcmp(run->arch, study->archs[a]) == 0 && isfinite(top1))
                    values[count++] = top1;
            }
            const struct dl2_estimate mean = dl2_estimate_mean(values, count);
            if (c == ITSELF && !count)
                break;
            if (!any)
                dl2_html_markup(html, "<tr>"),
                    dl2_html_element(html, "th", "%s", dl2_part_variant(&study->variants[v]));
            any = true;
            char text[32];
            dl2_html_markup(html, "<td>");
            dl2_html_text(html, dl2_part_fixed(mean.mean, 1, text));
            if (isfinite(mean.half))
                dl2_html_element(html, "small", " ± %.1f", mean.half);
            dl2_html_markup(html, "</td>");
        }
        if (any)
            dl2_html_markup(html, "</tr>\n");
    }
    free(values);
    dl2_html_markup(html, "</tbody></table></div>\n");
}

void dl2_section_matrix(const struct dl2_page *page, struct dl2_html *html)
{
    for (size_t a = 0; a < page->study->arch_count; a++)
        write_matrix(html, page, a);
}
