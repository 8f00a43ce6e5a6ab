/* SPDX-License-Identifier: BSD-2-Clause */
/* The quantization tables that were fitted (make study-tables), as pictures. */
#include "common/file.h"
#include "common/json.h"
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 8, QUALITIES = 100, MAX_STEP = 255 };

/* The lowest quality of the variants with tables of a kind, or 0. */
static int lowest_quality(const struct dl2_study *study, const char *kind)
{
    char mark[32];
    int lowest = 0;
    snprintf(mark, sizeof mark, "_%s", kind);
    for (size_t v = 0; v < study->variant_count; v++) {
        const int quality = (int)study->variants[v].quality;
        if (strstr(study->variants[v].name, mark) && quality >= 1 && quality <= QUALITIES &&
            (!lowest || quality < lowest))
            lowest = quality;
    }
    return lowest;
}

/* A table of steps, darker where a step is coarser. */
static void write_steps(json_t *parent, const char *title, const char *steps)
{
    json_t *table = dl2_table_add(parent, title);
    char *at = (char *)steps;
    dl2_block_set(table, "shades", "amount");
    for (int u = 0; u < SIDE; u++)
        dl2_table_head(table, "%d", u);
    for (int v = 0; v < SIDE; v++) {
        char name[16];
        snprintf(name, sizeof name, "%d", v);
        dl2_table_row(table, name);
        for (int u = 0; u < SIDE; u++) {
            const double step = fmin(fmax((double)strtoul(at, &at, 10), 1), MAX_STEP);
            dl2_table_shade(dl2_table_number(table, step, 0), log(step) / log(MAX_STEP));
        }
    }
}

static void write_family(json_t *section, const char *kind, int quality, const json_t *family)
{
    static const char *const names[] = {"luma", "chroma"};
    const char *resolution = dl2_json_get_text(family, "resolution", "");
    const json_t *steps = json_array_get(json_object_get(family, "qualities"), (size_t)quality - 1);
    dl2_block_text(section, "heading", "jpeg_%s-%02d%s", kind, quality, resolution);
    json_t *columns = dl2_block_add(section, "columns");
    for (int i = 0; i < 2; i++)
        write_steps(dl2_block_append(columns, "columns", json_object()), names[i],
                    dl2_json_get_text(steps, names[i], ""));
}

static void write_kind(const struct dl2_page *page, json_t *section, const char *kind)
{
    struct dl2_error why = DL2_ERROR_INIT;
    const char *path = dl2_text("%s/tables/%s.json", page->folder, kind);
    json_auto_t *json = NULL;
    const int quality = lowest_quality(page->study, kind);
    if (!quality || !dl2_is_file(path))
        return;
    if (dl2_block_is_empty(section))
        dl2_block_text(section, "note",
                       "Steps of the lowest quality, by frequency: across to the right, down to "
                       "the bottom. libjpeg's tables follow what eyes see; these follow what a "
                       "coefficient is worth to the training's input (pipeline) or to the loss of "
                       "a network (network), and what it costs in bits. A quality has about the "
                       "bytes of libjpeg's. What they save is in “Size at equal accuracy”.");
    if (dl2_unless_memory(dl2_json_load(path, "dl2-tables/1", &json, &why), &why) < 0)
        dl2_block_text(section, "warning", "%s can't be shown: %s", path, why.message);
    size_t i;
    json_t *family;
    json_array_foreach(json_object_get(json, "families"), i, family)
    {
        if (strcmp(dl2_json_get_text(family, "subsampling", ""), "420") == 0)
            write_family(section, kind, quality, family);
    }
}

void dl2_section_tables(const struct dl2_page *page, json_t *section)
{
    dl2_block_set(section, "heading", "Fitted quantization tables");
    write_kind(page, section, "pipeline");
    write_kind(page, section, "network");
}
