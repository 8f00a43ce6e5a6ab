/* SPDX-License-Identifier: BSD-2-Clause */
/* What the variants' sizes stand on: entropy coding, headers, what the sources had lost, and how
 * they spread over the images. */
#include "common/file.h"
#include "common/json.h"
#include "common/keep.h"
#include "report/image_histograms.h"
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <math.h>
#include <string.h>

/* Bytes that hold no coded image, of all images that were scored; NAN: not known. */
static double header_bytes(const struct dl2_study_variant *variant)
{
    return dl2_json_get_real(variant->scored, "header_bytes", NAN);
}

static double header_percent(const struct dl2_study_variant *variant)
{
    return 100 * header_bytes(variant) / dl2_json_get_real(variant->scored, "bytes", NAN);
}

static double header_bytes_each(const struct dl2_study_variant *variant)
{
    return header_bytes(variant) / dl2_json_get_real(variant->scored, "images", NAN);
}

/* A figure of the variants of a codec, from the least to the most. */
static void write_range(json_t *table, const struct dl2_study *study, size_t first,
                        double (*figure)(const struct dl2_study_variant *), const char *unit)
{
    double least = INFINITY, most = -INFINITY;
    bool known = true;
    for (size_t v = first; v < dl2_study_end_of_codec(study, first); v++) {
        const double value = figure(&study->variants[v]);
        known = known && isfinite(value);
        least = fmin(least, value);
        most = fmax(most, value);
    }
    dl2_part_range(table, least, known ? most : NAN, 0, unit, "not measured");
}

/* The entropy coding of JPEG, whose encoder has a choice; that of other formats is part of them. */
static const char *entropy_coding_of(const struct dl2_study_variant *variant)
{
    const json_t *encoder = json_object_get(variant->made, "encoder");
    const char *tables = dl2_json_get_text(encoder, "huffman_tables", NULL);
    static const char *const words[][2] = {
        {"standard", "Huffman, standard tables"},
        {"optimized", "Huffman, a file's own tables"},
        {"smaller", "Huffman, standard tables or a file's own, whichever are smaller"}};
    if (json_is_true(json_object_get(encoder, "progressive")))
        return "Huffman, progressive, a file's own tables";
    if (!tables)
        return !variant->made || strncmp(variant->codec, "jpeg", 4) == 0 ? "not recorded"
                                                                         : "that of the format";
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(tables, words[i][0]))
            return words[i][1];
    return "";
}

/* The variants of which headers are more than half. */
static void name_headers(json_t *text, const struct dl2_study *study)
{
    const char *comma = "";
    for (size_t v = 0; v < study->variant_count; v++)
        if (header_percent(&study->variants[v]) > 50) {
            dl2_block_say(text, "%s%s", comma, study->variants[v].name);
            comma = ", ";
        }
    if (*comma)
        dl2_block_say(text, ": more than half of these files are headers, so a lower quality "
                            "hardly makes them smaller. ");
}

static void write_sources(json_t *text, const json_t *files)
{
    const long long lossy = dl2_json_get_integer(files, "lossy", -1);
    const double quality = dl2_json_get_real(files, "median_quality", NAN);
    if (lossy < 0)
        dl2_block_say(text, "How the sources were encoded is not recorded: score the variants "
                            "again. ");
    else if (!lossy)
        dl2_block_say(text, "No source is a file of a lossy codec. ");
    else
        dl2_block_say(text, "%lld sources are files of a lossy codec already", lossy);
    if (lossy > 0 && isfinite(quality))
        dl2_block_say(text, ", %lld of them JPEGs, of quality %.0f in the median",
                      dl2_json_get_integer(files, "of_known_quality", 0), quality);
    if (lossy > 0)
        dl2_block_say(text, ": sizes and scores are of a further generation, and sources without "
                            "loss would be larger. ");
}

/* ---- Histograms */

enum { MAX_DRAWN = 7, HISTOGRAM_HEIGHT = 240 }; /* variants, beside the original */

static const struct {
    const char *name, *title, *axis;
    bool of_resized; /* drawn where a variant is: all others have the original's */
} histograms[DL2_IMAGE_FIGURES] = {
    [DL2_IMAGE_BYTES] = {"bytes", "Bytes of an image", "bytes", false},
    [DL2_IMAGE_BITS_PER_PIXEL] = {"bits-per-pixel", "Compression of an image", "bits per pixel",
                                  false},
    [DL2_IMAGE_SHORT] = {"short", "Shorter side of an image", "pixels", true},
};

struct drawn {
    const struct dl2_study_variant *variant;
    struct dl2_image_histogram own[DL2_IMAGE_FIGURES], source[DL2_IMAGE_FIGURES];
};

/* The variants that have a list of their images, by their bytes; kept. */
static const struct dl2_study_variant **sort_listed(const struct dl2_study *study, size_t *count)
{
    const struct dl2_study_variant **sorted =
        dl2_keep(study->variant_count + 1, sizeof *sorted, "the variants");
    *count = 0;
    for (size_t v = 0; v < study->variant_count; v++) {
        const struct dl2_study_variant *variant = &study->variants[v];
        size_t i = *count;
        if (!variant->list_path || !dl2_is_file(variant->list_path))
            continue;
        for (; i > 0 && sorted[i - 1]->bytes > variant->bytes; i--)
            sorted[i] = sorted[i - 1];
        sorted[i] = variant;
        ++*count;
    }
    return sorted;
}

/* Reads those that are drawn, from the smallest to the largest; kept. */
static struct drawn *read_drawn(const struct dl2_study *study, json_t *section, size_t *count)
{
    size_t listed;
    const struct dl2_study_variant **sorted = sort_listed(study, &listed);
    const size_t wanted = listed < MAX_DRAWN ? listed : MAX_DRAWN;
    struct drawn *drawn = dl2_keep(wanted + 1, sizeof *drawn, "the histograms");
    *count = 0;
    for (size_t i = 0; i < wanted; i++) {
        struct dl2_error why = DL2_ERROR_INIT;
        struct drawn *one = &drawn[*count];
        *one = (struct drawn){.variant = sorted[wanted > 1 ? i * (listed - 1) / (wanted - 1) : 0]};
        if (dl2_image_histograms_read(one->variant->list_path, one->own, one->source, &why) < 0)
            dl2_block_text(section, "warning", "%s", why.message);
        else
            ++*count;
    }
    const size_t made =
        study->variant_count - (dl2_study_find(study, "raw") < study->variant_count);
    if (*count && *count < made)
        dl2_block_text(section, "note",
                       "Histograms are of %zu of the %zu variants, evenly chosen from the smallest "
                       "to the largest%s.",
                       *count, made,
                       listed < made ? " of those that have a dl2-variant.jsonl" : "");
    return drawn;
}

/* A step from each bin that has images, or follows one that has, to the next bin. */
static void plot_steps(struct dl2_plot *plot, const char *name, size_t i, size_t count,
                       const struct dl2_image_histogram *histogram)
{
    const struct dl2_curve look = dl2_part_variant_curve(plot, name, i, count);
    char clean[256];
    double before = 0;
    dl2_plot_block(plot, name);
    for (size_t bin = 0; bin < DL2_IMAGE_BINS; bin++) {
        const double images = histogram->images[bin];
        if (images > 0 && before == 0) /* the step up */
            dl2_plot_data(plot, "%.8g 0\n", dl2_image_bin(bin));
        if (images > 0 || before > 0)
            dl2_plot_data(plot, "%.8g %.0f\n", dl2_image_bin(bin), images);
        before = images;
    }
    dl2_plot_curve(plot, "using 1:2 with steps linecolor rgb '%s' linewidth 2 %s%s title '%s'",
                   look.color, look.dash ? "dashtype " : "", look.dash ? look.dash : "",
                   dl2_plot_plain(dl2_part_variant_name(name), clean, sizeof clean));
}

static void plot_histogram(struct dl2_part_figures *figures, enum dl2_image_figure figure,
                           const struct drawn *drawn, size_t count)
{
    size_t longest = strlen("original");
    bool is_resized = false;
    for (size_t i = 0; i < count; i++) {
        longest =
            strlen(drawn[i].variant->name) > longest ? strlen(drawn[i].variant->name) : longest;
        is_resized |= drawn[i].variant->resized;
    }
    if (!count || (histograms[figure].of_resized && !is_resized))
        return;
    struct dl2_plot plot = dl2_plot_begin(histograms[figure].title, "start-of-the-bin images",
                                          HISTOGRAM_HEIGHT, "images-%s", histograms[figure].name);
    dl2_plot_axes(&plot, histograms[figure].axis, "images");
    dl2_plot_key(&plot, count + 1, longest);
    dl2_plot_script(&plot, "set logscale x 2\nset xrange [] noextend\nset yrange [0:]\n");
    plot_steps(&plot, "raw", 0, count, &drawn[0].source[figure]);
    for (size_t i = 0; i < count; i++)
        plot_steps(&plot, drawn[i].variant->name, i, count, &drawn[i].own[figure]);
    dl2_part_figure(figures, &plot, NULL);
}

static void write_table(const struct dl2_study *study, json_t *section)
{
    json_t *table = NULL;
    for (size_t v = 0; v < study->variant_count; v++) {
        if (!dl2_study_starts_codec(study, v))
            continue;
        if (!table)
            table = dl2_table_add(section, "codec|<entropy coding|headers,\nbytes an image|"
                                           "headers, of\nthe bytes");
        const char *restart = dl2_json_get_text(json_object_get(study->variants[v].made, "encoder"),
                                                "restart", "none");
        const bool restarts = strcmp(restart, "none") != 0;
        dl2_table_row(table, study->variants[v].codec);
        dl2_table_text(table, "%s%s%s", entropy_coding_of(&study->variants[v]),
                       restarts ? "; restart markers for " : "", restarts ? restart : "");
        write_range(table, study, v, header_bytes_each, "");
        write_range(table, study, v, header_percent, " %");
    }
    if (!table)
        return;
    json_t *text = dl2_block_text(
        section, "note",
        "Headers are all bytes that do not hold the coded image: markers, tables, profiles, the "
        "container. Ranges are over the qualities. ");
    name_headers(text, study);
    write_sources(text, json_object_get(study->quality, "reference_files"));
}

void dl2_section_sizes(const struct dl2_page *page, json_t *section)
{
    struct dl2_part_figures figures = {.page = page, .parent = section};
    size_t count;
    dl2_block_set(section, "heading", "What the sizes stand on");
    write_table(page->study, section);
    const struct drawn *drawn = read_drawn(page->study, section, &count);
    for (int figure = 0; figure < DL2_IMAGE_FIGURES; figure++)
        plot_histogram(&figures, (enum dl2_image_figure)figure, drawn, count);
}
