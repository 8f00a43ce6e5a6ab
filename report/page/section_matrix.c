/* SPDX-License-Identifier: BSD-2-Clause */
/* Accuracy of what was trained on one variant and validated on another. */
#include "common/json.h"
#include "common/memory.h"
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What the trainings themselves validated on */

/* Columns of the matrix: what variants were trained on itself, the original, and any other set. */
enum { ITSELF, MAX_SETS = 32 };

struct columns {
    struct dl2_val_set sets[MAX_SETS]; /* the first is not used */
    size_t count, original;            /* the original's column, 0: none */
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
        columns->sets[columns->count++] = dl2_study_val_set(original, 0);
    }
    for (size_t i = 0; i < study->run_count; i++) {
        const struct dl2_study_run *run = &study->runs[i];
        const size_t sets = json_array_size(json_object_get(run->report, "final"));
        if (strcmp(run->arch, arch) != 0)
            continue;
        for (size_t set = 1; set < sets; set++) {
            const struct dl2_val_set own = dl2_study_val_set(run, set);
            size_t known = 1;
            while (known < columns->count && !dl2_val_set_equal(&columns->sets[known], &own))
                known++;
            if (known == columns->count && known < MAX_SETS)
                columns->sets[columns->count++] = own;
        }
    }
}

/* Top-1 of a run on a column's set, NAN where it was not validated on it. */
static double top1_in(const struct dl2_study_run *run, const struct columns *columns, size_t column)
{
    const size_t sets = json_array_size(json_object_get(run->report, "final"));
    for (size_t set = 0; set < sets; set++) {
        const struct dl2_val_set own = dl2_study_val_set(run, set);
        if (column == ITSELF ? set == 0 : dl2_val_set_equal(&own, &columns->sets[column]))
            return top1_on(run, set);
    }
    return NAN;
}

static void write_column_names(struct dl2_html *html, const struct columns *columns)
{
    for (size_t c = 0; c < columns->count; c++) {
        const struct dl2_val_set *set = &columns->sets[c];
        bool twice = false; /* sets of one name are told apart by their paths */
        for (size_t k = 1; k < columns->count; k++)
            twice |= k != c && k != columns->original && c != ITSELF &&
                     strcmp(columns->sets[k].name, set->name) == 0;
        dl2_html_element(html, "th scope='col'", "%s",
                         c == ITSELF              ? "itself"
                         : c == columns->original ? "the original"
                         : twice && set->path     ? set->path
                                                  : set->name);
    }
}

static void write_heading(struct dl2_html *html, const struct dl2_page *page, size_t a)
{
    const char *arch = dl2_part_arch(page, a);
    dl2_html_element(html, "h2", "Trained on one, validated on another%s%s", arch ? ": " : "",
                     arch ? arch : "");
}

/* Trained on one variant, validated on the sets that trainings name: mostly itself and the
 * original. */
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
    write_heading(html, page, a);
    struct dl2_table table = {.html = html};
    dl2_table_heads(&table, "trained on");
    write_column_names(html, &columns);
    for (size_t v = 0; v < study->variant_count; v++) {
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
            if (c == ITSELF)
                dl2_table_row(&table, dl2_part_variant(&study->variants[v]));
            dl2_part_estimate_cell(html, &mean, 1);
        }
    }
    free(values);
    dl2_table_end(&table);
}

/* ---- The evaluations of `make matrix`: every variant on both axes */

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

/* cells[own * variant_count + other] */
struct heat_map {
    const struct dl2_study *study;
    struct dl2_estimate *cells;
    bool *rows, *columns; /* which of the variants have any */
    double original;      /* trained and validated on the original; NAN: not known */
    double most;          /* largest difference to that, points */
};

static void fill_heat_map(struct heat_map *map, const char *arch, double *values)
{
    const size_t count = map->study->variant_count;
    for (size_t own = 0; own < count; own++)
        for (size_t other = 0; other < count; other++) {
            struct dl2_estimate *cell = &map->cells[own * count + other];
            *cell = evaluated_on(map->study, arch, own, other, values);
            map->rows[own] |= cell->count > 0;
            map->columns[other] |= cell->count > 0;
        }
    const size_t raw = dl2_study_find(map->study, "raw");
    map->original = raw < count ? map->cells[raw * count + raw].mean : NAN;
    for (size_t i = 0; i < count * count; i++)
        if (map->cells[i].count && isfinite(map->original))
            map->most = fmax(map->most, fabs(map->cells[i].mean - map->original));
}

static void write_heat_cell(struct dl2_html *html, const struct heat_map *map, size_t own,
                            size_t other)
{
    const struct dl2_estimate *cell = &map->cells[own * map->study->variant_count + other];
    if (!cell->count) {
        dl2_html_markup(html, "<td>–</td>");
        return;
    }
    const double difference = cell->mean - map->original;
    char tag[160] = "", text[32];
    if (isfinite(difference) && map->most > 0)
        snprintf(tag, sizeof tag,
                 " style='background:color-mix(in srgb,var(--%s) %.0f%%,var(--card))'",
                 difference < 0 ? "bad" : "good", 45 * fabs(difference) / map->most);
    dl2_html_markup(html, own == other ? "<td class='own'" : "<td");
    dl2_html_markup(html, tag);
    dl2_html_markup(html, ">");
    dl2_html_text(html, dl2_part_fixed(cell->mean, 1, text));
    if (isfinite(cell->half))
        dl2_html_element(html, "small", " ± %.1f", cell->half);
    dl2_html_markup(html, "</td>");
}

/* What the most compressed variant shows. */
static void write_heat_sentence(struct dl2_html *html, const struct heat_map *map)
{
    const struct dl2_study *study = map->study;
    const size_t count = study->variant_count, raw = dl2_study_find(study, "raw");
    size_t least = count;
    for (size_t v = 0; v < count; v++)
        if (v != raw && map->rows[v] && map->columns[v] && isfinite(study->variants[v].ratio) &&
            (least == count || study->variants[v].ratio < study->variants[least].ratio))
            least = v;
    if (least == count || !isfinite(map->original))
        return;
    const struct dl2_estimate *strange = &map->cells[raw * count + least];
    const struct dl2_estimate *own = &map->cells[least * count + least];
    const struct dl2_estimate *back = &map->cells[least * count + raw];
    if (!strange->count || !own->count || !back->count)
        return;
    char text[3][32];
    dl2_html_format(
        html,
        " On the images of %s, the smallest, a network that was trained on the original "
        "differs by %s points from what it scores on the original's; one that was "
        "trained on %s, by %s; and that one on the original's images, by %s.",
        study->variants[least].name, dl2_part_signed(strange->mean - map->original, text[0]),
        study->variants[least].name, dl2_part_signed(own->mean - map->original, text[1]),
        dl2_part_signed(back->mean - map->original, text[2]));
}

static void write_heat_map(struct dl2_html *html, const struct dl2_page *page, size_t a,
                           const struct heat_map *map)
{
    const struct dl2_study *study = page->study;
    size_t columns = 0;
    for (size_t v = 0; v < study->variant_count; v++)
        columns += map->columns[v];
    write_heading(html, page, a);
    struct dl2_table table = {.html = html, .attributes = " class='heat'"};
    dl2_table_heads(&table, "");
    dl2_html_markup(html, "<td></td>");
    char tag[64];
    snprintf(tag, sizeof tag, "th class='l' scope='colgroup' colspan='%zu'", columns);
    dl2_html_element(html, tag, "validated on");
    dl2_html_markup(html, "</tr><tr>");
    dl2_table_heads(&table, "trained on");
    for (size_t v = 0; v < study->variant_count; v++)
        if (map->columns[v])
            dl2_html_element(html, "th scope='col'", "%s", dl2_part_variant(&study->variants[v]));
    for (size_t own = 0; own < study->variant_count; own++) {
        if (!map->rows[own])
            continue;
        dl2_table_row(&table, dl2_part_variant(&study->variants[own]));
        for (size_t other = 0; other < study->variant_count; other++)
            if (map->columns[other])
                write_heat_cell(html, map, own, other);
    }
    dl2_table_end(&table);
    dl2_html_markup(html, "<p class='note'>");
    dl2_html_format(html, "Top-1 accuracy, percent: means over seeds with 95%% intervals. Red is "
                          "below what a network that was trained on the original scores on the "
                          "original, green is above, outlined are a variant's own images.");
    write_heat_sentence(html, map);
    dl2_html_markup(html, "</p>\n");
}

/* False where networks of fewer than two variants were evaluated. */
static bool show_heat_map(struct dl2_html *html, const struct dl2_page *page, size_t a)
{
    const struct dl2_study *study = page->study;
    const size_t count = study->variant_count;
    size_t rows = 0; /* runs are sorted by variant */
    for (size_t i = 0, last = count; i < study->run_count; i++) {
        const struct dl2_study_run *run = &study->runs[i];
        if (!run->evaluated || strcmp(run->arch, study->archs[a]) != 0 || run->variant == last)
            continue;
        rows++;
        last = run->variant;
    }
    if (rows < 2)
        return false;
    struct heat_map map = {.study = study,
                           .cells = dl2_calloc(count, count * sizeof *map.cells),
                           .rows = dl2_calloc(count, sizeof *map.rows),
                           .columns = dl2_calloc(count, sizeof *map.columns)};
    double *values = dl2_calloc(study->run_count, sizeof *values);
    if (map.cells && map.rows && map.columns && values) {
        fill_heat_map(&map, study->archs[a], values);
        write_heat_map(html, page, a, &map);
    } else if (html->status == DL2_OK) {
        html->status = dl2_error_memory(html->error, "%zu variants", count);
    }
    free(values);
    free(map.columns);
    free(map.rows);
    free(map.cells);
    return true;
}

void dl2_section_matrix(const struct dl2_page *page, struct dl2_html *html)
{
    for (size_t a = 0; a < page->study->arch_count; a++)
        if (!show_heat_map(html, page, a))
            write_matrix(html, page, a);
}
