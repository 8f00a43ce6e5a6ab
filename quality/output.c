/* SPDX-License-Identifier: BSD-2-Clause */
#include "quality/output.h"

#include "common/file.h"
#include "common/json.h"
#include "common/quote.h"
#include "common/scope.h"
#include "dataset/dataset.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const state_names[DL2_PAIR_STATES] = {"missing", "failed", "mismatched",
                                                         "scored"};

enum { TITLE = 13 }; /* columns of a metric's title in the table */

static double bits_per_pixel(uint64_t bytes, uint64_t pixels)
{
    return pixels ? 8.0 * (double)bytes / (double)pixels : NAN;
}

/* The table. */

static void print_bytes(FILE *out, uint64_t bytes)
{
    if (bytes < 10000)
        fprintf(out, "%7" PRIu64 " B ", bytes);
    else if (bytes < 10000000)
        fprintf(out, "%7.1f kB", (double)bytes / 1e3);
    else if (bytes < (uint64_t)10000000000)
        fprintf(out, "%7.1f MB", (double)bytes / 1e6);
    else
        fprintf(out, "%7.1f GB", (double)bytes / 1e9);
}

static void print_figure(FILE *out, const struct dl2_metric *metric, double value)
{
    if (isnan(value))
        fprintf(out, " %9s", "-");
    else
        fprintf(out, " %9.*f", (int)metric->digits, value);
}

/* Prints "  3 missing, 1 failed" piece by piece. */
static void print_note(FILE *out, const char **separator, size_t count, const char *text)
{
    if (!count || !text)
        return;
    fprintf(out, "%s%zu %s", *separator, count, text);
    *separator = ", ";
}

/* How a reference's files were encoded before: how many by lossy codecs, and the qualities of those
 * that are JPEG, of which `known` have one. */
struct earlier_losses {
    size_t lossy, known, of_quality[101];
    unsigned lowest, median, highest;
};

static void find_earlier_losses(const struct dl2_scoring *scoring, struct earlier_losses *losses)
{
    size_t below = 0;
    *losses = (struct earlier_losses){0};
    for (size_t i = 0; i < scoring->count; i++) {
        const struct dl2_reference_file *file = &scoring->files[i];
        losses->lossy += file->lossy;
        losses->known += file->quality > 0;
        losses->of_quality[file->quality]++;
    }
    for (unsigned quality = 1; quality <= 100; quality++) {
        if (!losses->of_quality[quality])
            continue;
        losses->highest = quality;
        losses->lowest = losses->lowest ? losses->lowest : quality;
        below += losses->of_quality[quality];
        losses->median = !losses->median && 2 * below >= losses->known ? quality : losses->median;
    }
}

static void print_earlier_losses(FILE *out, const struct dl2_scoring *scoring)
{
    struct earlier_losses losses;
    find_earlier_losses(scoring, &losses);
    if (!losses.lossy)
        return;
    fprintf(out, "%zu of its files %s of a lossy codec already", losses.lossy,
            losses.lossy == 1 ? "is" : "are");
    if (losses.known)
        fprintf(out, ", JPEGs of quality %u (median; %u to %u)", losses.median, losses.lowest,
                losses.highest);
    fprintf(out, ": scores are of what was lost since\n");
}

static void print_headers(FILE *out, const char **separator,
                          const struct dl2_scored_variant *variant)
{
    enum { WORTH_A_NOTE = 10 };
    const double share = 100.0 * (double)variant->header_bytes / (double)variant->bytes;
    if (!(share >= WORTH_A_NOTE))
        return;
    fprintf(out, "%s%.0f%% of the bytes are headers", *separator, share);
    *separator = ", ";
}

static void print_notes(FILE *out, const struct dl2_scoring *scoring,
                        const struct dl2_scored_variant *variant)
{
    const char *separator = "  ";
    print_note(out, &separator, variant->identical,
               variant->above_8_bits > variant->deep ? "identical to the reference at 8 bits"
                                                     : "identical to the reference");
    print_note(out, &separator, variant->deep,
               "with more than 8 bits: PSNR and what is identical at 16 bits, the rest at 8 bits");
    print_note(out, &separator, variant->above_8_bits - variant->deep,
               "with more than 8 bits, scored at 8 bits");
    print_note(out, &separator, variant->resized,
               "scored against the reference resized as they are");
    print_headers(out, &separator, variant);
    print_note(out, &separator, variant->alpha, "with alpha, scored over the background");
    print_note(out, &separator, variant->colors_differ,
               "whose files describe other colors, scored by their numbers");
    for (unsigned i = 0; i < scoring->metric_count; i++)
        print_note(out, &separator, variant->aggregates[i].missing,
                   scoring->metrics[i]->missing_note);
    print_note(out, &separator, variant->states[DL2_PAIR_MISSING], "missing");
    print_note(out, &separator, variant->states[DL2_PAIR_MISMATCHED], "of another size");
    print_note(out, &separator, variant->states[DL2_PAIR_FAILED], "failed");
    print_note(out, &separator, variant->extra_count, "without a reference");
    if (*separator == ',')
        fprintf(out, "\n");
}

static void print_variant(FILE *out, const struct dl2_scoring *scoring,
                          const struct dl2_scored_variant *variant, int width)
{
    fprintf(out, "\n%-*s %7zu ", width, DL2_SHOWN(variant->name), variant->states[DL2_PAIR_SCORED]);
    print_bytes(out, variant->bytes);
    const double bpp = bits_per_pixel(variant->bytes, variant->pixels);
    if (isnan(bpp))
        fprintf(out, " %8s", "-");
    else
        fprintf(out, " %8.4f", bpp);
    for (unsigned i = 0; i < scoring->metric_count; i++) {
        const struct dl2_metric *metric = scoring->metrics[i];
        const struct dl2_aggregate *a = &variant->aggregates[i];
        if (i)
            fprintf(out, "%*s", width + 28, "");
        fprintf(out, "  %-*s", TITLE, metric->title);
        print_figure(out, metric, a->mean);
        print_figure(out, metric, a->median);
        print_figure(out, metric, a->p5);
        print_figure(out, metric, a->min);
        if (metric->of_mse)
            print_figure(out, metric, a->of_mean_mse);
        fprintf(out, "\n");
    }
    print_notes(out, scoring, variant);
}

/* Prints "title     text" in lines of at most 100 columns. */
static void print_definition(FILE *out, const char *title, const char *text)
{
    enum { INDENT = TITLE + 2, WIDTH = 100 };
    int column = fprintf(out, "%-*s", INDENT, title);
    while (*text) {
        const int length = (int)strcspn(text, " ");
        if (column > INDENT && column + 1 + length > WIDTH)
            column = fprintf(out, "\n%*s", INDENT, "") - 1;
        else if (column > INDENT)
            column += fprintf(out, " ");
        column += fprintf(out, "%.*s", length, text);
        text += length;
        text += strspn(text, " ");
    }
    fprintf(out, "\n");
}

/* Who scored what, if not the processors everything. */
static void print_devices(FILE *out, const struct dl2_scoring *scoring)
{
    bool any = false, all = true;
    for (unsigned i = 0; i < scoring->metric_count; i++) {
        any |= scoring->by_device[i];
        all &= scoring->by_device[i];
    }
    if (!any)
        return;
    for (int by_device = 1; by_device >= !!all; by_device--) {
        const char *separator = "  ";
        fprintf(out, "%-*s", TITLE, by_device ? scoring->device : "cpu");
        for (unsigned i = 0; i < scoring->metric_count; i++)
            if (scoring->by_device[i] == by_device) {
                fprintf(out, "%s%s", separator, scoring->metrics[i]->title);
                separator = ", ";
            }
        fputs("\n", out);
    }
}

void dl2_scoring_print(const struct dl2_scoring *scoring, FILE *out)
{
    int width = (int)strlen("variant");
    for (size_t i = 0; i < scoring->variant_count; i++) {
        const size_t length = strlen(scoring->variants[i].name);
        if (length > (size_t)width)
            width = length < 40 ? (int)length : 40;
    }
    fprintf(out, "Reference: %s, %zu %s%s\n", DL2_SHOWN(scoring->reference), scoring->count,
            scoring->volumes ? "volume" : "image", scoring->count == 1 ? "" : "s");
    print_earlier_losses(out, scoring);
    fputs("\n", out);
    fprintf(out, "%-*s %7s %10s %8s  %-*s %9s %9s %9s %9s %9s\n", width, "variant",
            scoring->volumes ? "volumes" : "images", "size  ", "bpp", TITLE, "metric", "mean",
            "median", "5%", "min", "mean MSE");
    for (size_t i = 0; i < scoring->variant_count; i++)
        print_variant(out, scoring, &scoring->variants[i], width);
    fprintf(out, "\n");
    bool any_of_mse = false, any_lower = false;
    for (unsigned i = 0; i < scoring->metric_count; i++) {
        print_definition(out, scoring->metrics[i]->title, scoring->metrics[i]->definition);
        any_of_mse |= scoring->metrics[i]->of_mse != NULL;
        any_lower |= scoring->metrics[i]->lower_is_better;
    }
    print_devices(out, scoring);
    if (scoring->input_size) {
        char size[64];
        snprintf(size, sizeof size, "%ux%u pixels", scoring->input_size, scoring->input_size);
        print_definition(out, "inputs", size);
    }
    if (any_of_mse)
        print_definition(out, "mean MSE",
                         "the dB of the mean MSE, to which identical images add 0; the other "
                         "columns leave these images out, since they have no dB of their own");
    if (any_lower)
        print_definition(
            out, "5%, min",
            "of a metric of which lower is better: the 95th percentile and the maximum");
}

/* Faults. */

static void print_fault(FILE *out, const char *variant, const char *key, const char *what)
{
    fprintf(out, "%s: %s%s%s\n", DL2_SHOWN(variant), DL2_SHOWN(key), *key ? ": " : "",
            DL2_SHOWN(what));
}

void dl2_scoring_print_faults(const struct dl2_scoring *scoring, FILE *out)
{
    for (size_t v = 0; v < scoring->variant_count; v++) {
        const struct dl2_scored_variant *variant = &scoring->variants[v];
        if (variant->error) {
            fprintf(out, "%s\n", DL2_SHOWN(variant->error)); /* it begins with the path */
            continue; /* naming every image as missing would tell no more */
        }
        for (size_t i = 0; i < scoring->count; i++) {
            const struct dl2_pair *pair = &variant->pairs[i];
            if (pair->state == DL2_PAIR_MISSING)
                print_fault(out, variant->name, scoring->keys[i], "missing");
            else if (pair->state != DL2_PAIR_SCORED)
                print_fault(out, variant->name, scoring->keys[i], pair->error);
        }
        for (size_t i = 0; i < variant->extra_count; i++)
            print_fault(out, variant->name, variant->extra[i], "has no reference");
    }
}

/* Bounds. */

static unsigned place_of(const struct dl2_scoring *scoring, const struct dl2_metric *metric)
{
    unsigned place = 0;
    while (scoring->metrics[place] != metric)
        place++;
    return place;
}

size_t dl2_scoring_print_worse(const struct dl2_scoring *scoring,
                               const struct dl2_score_bound *bounds, size_t count, FILE *out)
{
    size_t worse = 0;
    for (size_t b = 0; b < count; b++) {
        const struct dl2_metric *metric = bounds[b].metric;
        const unsigned place = place_of(scoring, metric);
        size_t own = 0, unjudged = 0;
        fprintf(out, "\n%s %s than %g:\n", metric->title,
                metric->lower_is_better ? "higher" : "lower", bounds[b].value);
        for (size_t v = 0; v < scoring->variant_count; v++)
            for (size_t i = 0; i < scoring->count; i++) {
                const struct dl2_pair *pair = &scoring->variants[v].pairs[i];
                if (pair->state != DL2_PAIR_SCORED)
                    continue;
                unjudged += isnan(pair->scores[place].mean);
                if (!dl2_score_is_worse(metric, &pair->scores[place], bounds[b].value))
                    continue;
                fprintf(out, "%s\t%s\t%s\t%.*f\n", DL2_SHOWN(scoring->variants[v].name),
                        DL2_SHOWN(scoring->keys[i]), metric->name, (int)metric->digits,
                        pair->scores[place].value);
                own++;
            }
        if (!own)
            fprintf(out, "no image\n");
        if (unjudged)
            fprintf(out, "not judged, %s: %zu\n", metric->missing_note, unjudged);
        worse += own;
    }
    return worse;
}

/* Heat maps. */

void dl2_scoring_print_heatmaps(const struct dl2_scoring *scoring,
                                const struct dl2_heatmap_options *options, FILE *out)
{
    size_t drawn = 0, small = 0, beyond = 0, deep = 0;
    for (size_t v = 0; v < scoring->variant_count; v++)
        for (size_t i = 0; i < scoring->count; i++) {
            const struct dl2_pair *pair = &scoring->variants[v].pairs[i];
            if (pair->state != DL2_PAIR_SCORED)
                continue;
            drawn += pair->drawn;
            deep += pair->drawn && pair->above_8_bits;
            small += !pair->drawn && i < options->limit;
            beyond += i >= options->limit;
        }
    fprintf(out, "\nHeat maps (%s): %zu in %s", dl2_heatmap_errors[options->error], drawn,
            DL2_SHOWN(options->folder));
    if (deep)
        fprintf(out, ", at 8 bits of %zu with more", deep);
    if (small)
        fprintf(out, "; none of %zu images that are too small for SSIM", small);
    if (beyond)
        fprintf(out, "; none of %zu images behind the first %u of the reference (--limit)", beyond,
                options->limit);
    fputs("\n", out);
}

/* JSON. Jansson's functions accept NULL, so one check at the end suffices: it fails if anything ran
 * out of memory. */

/* A count of images, or another number that is not negative. */
static json_t *count_json(uint64_t count)
{
    return json_integer((json_int_t)count);
}

/* Sets a field that is there only where it is true. */
static void set_flag(json_t *json, const char *name, bool flag)
{
    if (flag)
        json_object_set_new(json, name, json_true());
}

static json_t *score_json(const struct dl2_scoring *scoring,
                          const struct dl2_scored_variant *variant, size_t index)
{
    const struct dl2_pair *pair = &variant->pairs[index];
    const double bpp = bits_per_pixel(pair->bytes, dl2_pair_pixels(pair));
    json_t *json =
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "key", dl2_json_text(scoring->keys[index]),
                  "width", count_json(pair->width), "height", count_json(pair->height), "bytes",
                  count_json(pair->bytes), "reference_bytes", count_json(pair->reference_bytes),
                  "bits_per_pixel", dl2_json_real(bpp));
    if (scoring->volumes)
        json_object_set_new(json, "slices", count_json(pair->slices));
    if (pair->header_bytes >= 0)
        json_object_set_new(json, "header_bytes", json_integer(pair->header_bytes));
    for (unsigned i = 0; i < scoring->metric_count; i++)
        json_object_set_new(json, scoring->metrics[i]->name, dl2_json_real(pair->scores[i].value));
    set_flag(json, "lossless", pair->identical);
    set_flag(json, "above_8_bits", pair->above_8_bits);
    set_flag(json, "at_16_bits", pair->deep);
    set_flag(json, "alpha", pair->alpha);
    set_flag(json, "resized", pair->resized);
    set_flag(json, "colors_differ", pair->colors_differ);
    return json;
}

static json_t *aggregate_json(const struct dl2_metric *metric,
                              const struct dl2_aggregate *aggregate)
{
    const bool lower = metric->lower_is_better;
    json_t *json = json_pack("{s:o, s:o, s:o, s:o}", "mean", dl2_json_real(aggregate->mean),
                             "median", dl2_json_real(aggregate->median), lower ? "p95" : "p5",
                             dl2_json_real(aggregate->p5), lower ? "max" : "min",
                             dl2_json_real(aggregate->min));
    if (metric->of_mse)
        json_object_set_new(json, "of_mean_mse", dl2_json_real(aggregate->of_mean_mse));
    json_object_set_new(json, "images", count_json(aggregate->values));
    json_object_set_new(json, metric->missing, count_json(aggregate->missing));
    set_flag(json, "lossless", metric->of_mse && aggregate->missing && !aggregate->values);
    return json;
}

/* The pairs of a state that have no scores: their keys, with the reasons where there are some. */
static json_t *faults_json(const struct dl2_scoring *scoring,
                           const struct dl2_scored_variant *variant, enum dl2_pair_state state)
{
    json_t *faults = json_array();
    for (size_t i = 0; i < scoring->count; i++) {
        const struct dl2_pair *pair = &variant->pairs[i];
        json_t *key = pair->state == state ? dl2_json_text(scoring->keys[i]) : NULL;
        if (pair->state == state)
            json_array_append_new(faults, state == DL2_PAIR_MISSING
                                              ? key
                                              : json_pack("{s:o, s:o}", "key", key, "error",
                                                          dl2_json_text(pair->error)));
    }
    return faults;
}

static json_t *variant_json(const struct dl2_scoring *scoring,
                            const struct dl2_scored_variant *variant)
{
    json_t *metrics = json_object(), *extra = json_array(), *images = json_array();
    for (unsigned i = 0; i < scoring->metric_count; i++)
        json_object_set_new(metrics, scoring->metrics[i]->name,
                            aggregate_json(scoring->metrics[i], &variant->aggregates[i]));
    for (size_t i = 0; i < scoring->count; i++)
        if (variant->pairs[i].state == DL2_PAIR_SCORED)
            json_array_append_new(images, score_json(scoring, variant, i));
    for (size_t i = 0; i < variant->extra_count; i++)
        json_array_append_new(extra, dl2_json_text(variant->extra[i]));
    json_t *json =
        json_pack("{s:o, s:o, s:o, s:o}", "variant", dl2_json_text(variant->name), "path",
                  dl2_json_text(variant->path), "codec",
                  variant->codec ? dl2_json_text(variant->codec) : json_null(), "quality",
                  variant->quality >= 0 ? json_integer(variant->quality) : json_null());
    if (variant->error)
        json_object_set_new(json, "error", dl2_json_text(variant->error));
    dl2_json_add(
        json,
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "images",
                  count_json(variant->states[DL2_PAIR_SCORED]), "pixels",
                  count_json(variant->pixels), "bytes", count_json(variant->bytes), "header_bytes",
                  variant->header_bytes >= 0 ? json_integer(variant->header_bytes) : json_null(),
                  "bits_per_pixel", dl2_json_real(bits_per_pixel(variant->bytes, variant->pixels)),
                  "reference_bytes", count_json(variant->reference_bytes)));
    dl2_json_add(json,
                 json_pack("{s:o, s:o, s:o, s:o, s:o}", "identical", count_json(variant->identical),
                           "above_8_bits", count_json(variant->above_8_bits), "at_16_bits",
                           count_json(variant->deep), "alpha", count_json(variant->alpha),
                           "colors_differ", count_json(variant->colors_differ)));
    if (!dl2_resolution_is_full(&variant->resolution))
        dl2_json_add(json,
                     json_pack("{s:o, s:o}", "resize", dl2_resolution_json(&variant->resolution),
                               "resized", count_json(variant->resized)));
    dl2_json_add(json, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "metrics", metrics,
                                 "missing", faults_json(scoring, variant, DL2_PAIR_MISSING),
                                 "mismatched", faults_json(scoring, variant, DL2_PAIR_MISMATCHED),
                                 "failed", faults_json(scoring, variant, DL2_PAIR_FAILED), "extra",
                                 extra, "cpu_seconds", dl2_json_real(variant->cpu_seconds),
                                 "per_image", images));
    return json;
}

static json_t *reference_files_json(const struct dl2_scoring *scoring)
{
    struct earlier_losses losses;
    find_earlier_losses(scoring, &losses);
    json_t *formats = json_object();
    for (size_t i = 0; i < scoring->count; i++) {
        const struct dl2_codec *codec = scoring->files[i].codec;
        if (codec)
            json_object_set_new(
                formats, codec->name,
                json_integer(json_integer_value(json_object_get(formats, codec->name)) + 1));
    }
    return json_pack("{s:o, s:o, s:o, s:o}", "lossy", count_json(losses.lossy), "of_known_quality",
                     count_json(losses.known), "median_quality",
                     losses.known ? json_integer(losses.median) : json_null(), "formats", formats);
}

/* Writes `count` variants, from `first` on, as one document. */
static int write_document(const struct dl2_scoring *scoring, size_t first, size_t count,
                          const char *path, struct dl2_error *error)
{
    json_t *definitions = json_object(), *titles = json_object(), *units = json_object();
    json_t *lower = json_array(), *one = json_array(), *inputs = json_array();
    json_t *by_card = json_array(), *variants = json_array();
    for (unsigned i = 0; i < scoring->metric_count; i++) {
        const struct dl2_metric *metric = scoring->metrics[i];
        json_object_set_new(definitions, metric->name, json_string(metric->definition));
        json_object_set_new(titles, metric->name, json_string(metric->title));
        json_object_set_new(units, metric->name, json_string(metric->unit));
        if (metric->lower_is_better)
            json_array_append_new(lower, json_string(metric->name));
        if (metric->one_is_best)
            json_array_append_new(one, json_string(metric->name));
        if (metric->of_input)
            json_array_append_new(inputs, json_string(metric->name));
        if (scoring->by_device[i])
            json_array_append_new(by_card, json_string(metric->name));
    }
    for (size_t i = first; i < first + count; i++)
        json_array_append_new(variants, variant_json(scoring, &scoring->variants[i]));
    json_t *json = json_pack(
        "{s:s, s:o, s:o, s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "schema",
        "dl2-quality/1", "reference", dl2_json_text(scoring->reference), "reference_files",
        reference_files_json(scoring), "reference_cpu_seconds",
        dl2_json_real(scoring->reference_cpu_seconds), "decoded_on", "cpu", "scored_on",
        scoring->device, "scored_by_card", by_card, "definitions", definitions, "titles", titles,
        "units", units, "lower_is_better", lower, "one_is_best", one, "of_inputs", inputs,
        "input_size", scoring->input_size ? json_integer(scoring->input_size) : json_null(),
        "variants", variants);
    return dl2_json_save_new(path, json, error);
}

int dl2_scoring_write_json(const struct dl2_scoring *scoring, const char *path,
                           struct dl2_error *error)
{
    return write_document(scoring, 0, scoring->variant_count, path, error);
}

int dl2_scoring_write_json_folder(const struct dl2_scoring *scoring, const char *folder,
                                  struct dl2_error *error)
{
    DL2_TRY(dl2_make_folders(folder, error));
    for (size_t i = 0; i < scoring->variant_count; i++) {
        DL2_AUTO_FREE char *path = NULL;
        DL2_TRY(dl2_format(&path, error, "%s/%s.json", folder, scoring->variants[i].name));
        DL2_TRY(write_document(scoring, i, 1, path, error));
    }
    return DL2_OK;
}

int dl2_check_variant_names(const char *const *paths, size_t count, struct dl2_error *error)
{
    DL2_AUTO_LIST char **names = NULL;
    DL2_TRY(DL2_NEW(&names, count + 1, "names", error));
    for (size_t i = 0; i < count; i++) {
        if (!(names[i] = dl2_dataset_variant_name(paths[i])))
            return dl2_error_memory(error, "a name");
        if (!names[i][0] || names[i][0] == '.' || strchr(names[i], '/'))
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "%s: its variant's name, '%s', can't be a file's", paths[i],
                                 names[i]);
        for (size_t j = 0; j < i; j++)
            if (!strcmp(names[i], names[j]))
                return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s and %s have the same name, '%s'",
                                     paths[j], paths[i], names[i]);
    }
    return DL2_OK;
}

/* CSV. */

static void csv_row(FILE *out, const struct dl2_scoring *scoring, const char *variant,
                    const char *key, const char *state, const struct dl2_pair *pair)
{
    const bool scored = pair->state == DL2_PAIR_SCORED;
    dl2_csv_field(out, variant);
    fputc(',', out);
    dl2_csv_field(out, key);
    fprintf(out, ",%s", state);
    if (scored)
        fprintf(out, ",%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%.17g,%d,%d,%d", pair->width,
                pair->height, pair->bytes, pair->reference_bytes,
                bits_per_pixel(pair->bytes, dl2_pair_pixels(pair)), pair->identical,
                pair->above_8_bits, pair->deep);
    else
        fputs(",,,,,,,,", out);
    for (unsigned i = 0; i < scoring->metric_count; i++) {
        fputc(',', out);
        if (scored && !isnan(pair->scores[i].value))
            fprintf(out, "%.17g", pair->scores[i].value);
    }
    fputc(',', out);
    dl2_csv_field(out, pair->error ? pair->error : "");
    fputs("\r\n", out);
}

int dl2_scoring_write_csv(const struct dl2_scoring *scoring, const char *path,
                          struct dl2_error *error)
{
    DL2_AUTO_FREE char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return dl2_error_memory(error, "%s", path);
    fputs("variant,key,state,width,height,bytes,reference_bytes,bits_per_pixel,lossless,"
          "above_8_bits,at_16_bits",
          out);
    for (unsigned i = 0; i < scoring->metric_count; i++)
        fprintf(out, ",%s", scoring->metrics[i]->name);
    fputs(",error\r\n", out);
    const struct dl2_pair extra = {.state = DL2_PAIR_FAILED};
    for (size_t v = 0; v < scoring->variant_count; v++) {
        const struct dl2_scored_variant *variant = &scoring->variants[v];
        for (size_t i = 0; i < scoring->count; i++)
            csv_row(out, scoring, variant->name, scoring->keys[i],
                    state_names[variant->pairs[i].state], &variant->pairs[i]);
        for (size_t i = 0; i < variant->extra_count; i++)
            csv_row(out, scoring, variant->name, variant->extra[i], "extra", &extra);
    }
    const bool whole = !ferror(out);
    return fclose(out) == 0 && whole ? dl2_file_write(path, text, size, error)
                                     : dl2_error_memory(error, "%s", path);
}
