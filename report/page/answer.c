/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/page/answer.h"

#include "common/file.h"
#include "common/json.h"
#include "common/quote.h"
#include "common/scope.h"
#include "report/advice.h"
#include "report/brief.h"
#include "report/divergence.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SCHEMA "dl2-answer/1"

static json_t *name_of(const struct dl2_study *study, size_t v)
{
    return v < study->variant_count ? dl2_json_text(study->variants[v].name) : json_null();
}

/* Sets a field whose name may hold any bytes. */
static void set_named(json_t *object, const char *name, json_t *value)
{
    json_auto_t *text = dl2_need(dl2_json_text(name));
    json_object_set_new(object, json_string_value(text), dl2_need(value));
}

/* ---- In words */

/* What readers should know before they read the answer. */
static json_t *make_notes(const struct dl2_page *page)
{
    const struct dl2_study *study = page->study;
    json_t *notes = json_array();
    if (!study->arch_count)
        json_array_append_new(notes, json_string("Nothing was trained yet: the report is of size "
                                                 "and image quality alone."));
    if (study->grouped)
        json_array_append_new(notes, dl2_json_text(study->grouped));
    for (size_t a = 0; a < study->arch_count; a++) {
        const char *diverged = dl2_divergence_text(study, &page->analyses[a]);
        if (diverged)
            json_array_append_new(notes, dl2_json_text(dl2_text(
                                             "%s%s%s", study->arch_count > 1 ? study->archs[a] : "",
                                             study->arch_count > 1 ? ": " : "", diverged)));
    }
    for (size_t i = 0; i < page->plan.note_count; i++)
        json_array_append_new(notes, dl2_json_text(page->plan.notes[i]));
    return notes;
}

static json_t *make_table(const struct dl2_brief *brief)
{
    json_t *lines = json_array();
    for (size_t i = 0; i < brief->line_count; i++)
        json_array_append_new(lines, dl2_json_text(brief->lines[i]));
    return lines;
}

static void print_lines(const json_t *lines)
{
    size_t i;
    json_t *line;
    json_array_foreach(lines, i, line) printf("%s\n", DL2_SHOWN(json_string_value(line)));
}

void dl2_answer_print(const json_t *answer)
{
    json_t *networks = json_object_get(answer, "networks"), *network;
    const char *name;
    print_lines(json_object_get(answer, "notes"));
    json_object_foreach(networks, name, network)
    {
        const char *open = json_string_value(json_object_get(network, "open"));
        if (json_object_size(networks) > 1)
            printf("%s:\n", DL2_SHOWN(name));
        print_lines(json_object_get(network, "table"));
        printf("%s\n", DL2_SHOWN(json_string_value(
                           json_object_get(json_object_get(network, "smallest"), "text"))));
        if (open)
            printf("%s\n", DL2_SHOWN(open));
    }
}

/* ---- In figures */

static json_t *make_interval(double low, double high)
{
    return json_pack("[o, o]", dl2_json_real(low), dl2_json_real(high));
}

static json_t *make_advice(const struct dl2_study *study, const struct dl2_advice *advice,
                           const char *text)
{
    return json_pack("{s:o, s:o, s:o}", "claimed", name_of(study, advice->sure), "candidate",
                     name_of(study, advice->likely), "text", dl2_json_text(text));
}

/* Why a variant has its verdict. */
static const char *reason_of(const struct dl2_comparison *comparison, size_t v, double tolerance)
{
    const double half = dl2_comparison_half(comparison);
    if (comparison->verdict == DL2_VERDICT_NONE)
        return "not compared";
    if (comparison->verdict == DL2_VERDICT_WITHIN)
        return "claimed";
    if (!isfinite(half))
        return "no interval";
    if (comparison->verdict == DL2_VERDICT_BEYOND)
        return "interval beyond the tolerance";
    if (comparison->difference - half < -tolerance)
        return "interval reaches beyond the tolerance";
    return comparison->blocker != v ? "larger variant not claimed" : "share of the error";
}

/* The test that a claim goes by, the last one of the variant; null: it was not reached. */
static json_t *make_claim(const struct dl2_comparison *comparison)
{
    return comparison->level > 0 ? json_pack("{s:f, s:o}", "error", comparison->level, "bound",
                                             dl2_json_real(comparison->bound))
                                 : json_null();
}

/* What would settle it; null: it is settled. */
static json_t *make_outlook(const struct dl2_study *study, const struct dl2_analysis *analysis,
                            size_t v)
{
    const char *text = dl2_outlook_text(study, analysis, v);
    const struct dl2_outlook outlook = dl2_outlook_find(study, analysis, v);
    const struct dl2_study_size *size = &outlook.needed;
    if (!*text)
        return json_null();
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "margin", dl2_json_real(outlook.margin),
                     "of_images", dl2_json_real(outlook.of_images), "seeds",
                     size->few ? json_pack("[I, I]", (json_int_t)size->few, (json_int_t)size->many)
                               : json_null(),
                     "times_images", dl2_json_real(size->few ? size->times_images : NAN), "chance",
                     dl2_json_real(outlook.chance), "text", dl2_json_text(text));
}

/* What one question, on the variant's own images or on the original's, says of a variant. */
static json_t *make_comparison(const struct dl2_study *study, const struct dl2_analysis *analysis,
                               const struct dl2_comparison *comparison, size_t v)
{
    const double difference = comparison->difference, half = dl2_comparison_half(comparison);
    const bool compared = comparison->verdict != DL2_VERDICT_NONE;
    const char *verdict = dl2_verdict_text(comparison->verdict);
    json_t *json =
        json_pack("{s:o, s:o, s:I, s:o, s:o, s:o, s:I, s:I, s:o, s:s, s:o, s:o}", "accuracy",
                  dl2_json_real(dl2_accuracy_shown(analysis->kind, comparison->accuracy.mean)),
                  "top5", dl2_json_real(comparison->top5.mean), "seeds",
                  (json_int_t)(compared ? comparison->pairs : comparison->accuracy.count),
                  "difference", dl2_json_real(difference), "interval",
                  make_interval(difference - half, difference + half), "interval_training",
                  make_interval(difference - comparison->half, difference + comparison->half),
                  "images", (json_int_t)comparison->images, "groups",
                  (json_int_t)(comparison->units == comparison->images ? 0 : comparison->units),
                  "verdict", compared ? json_string(verdict) : json_null(), "reason",
                  reason_of(comparison, v, analysis->question.tolerance), "claim",
                  make_claim(comparison), "blocked_by",
                  compared && comparison->verdict != DL2_VERDICT_WITHIN && comparison->blocker != v
                      ? name_of(study, comparison->blocker)
                      : json_null());
    if (comparison->resamples)
        json_object_set_new(json, "resamples", json_integer((json_int_t)comparison->resamples));
    return json;
}

static json_t *make_speeds(const struct dl2_speed *speed)
{
    json_t *speeds = json_pack(
        "{s:o, s:o, s:o, s:o}", "load_rate", dl2_json_real(speed->load_rate.mean), "train_rate",
        dl2_json_real(speed->train_rate.mean), "epochs_to_accuracy", dl2_json_real(speed->epochs),
        "seconds_to_accuracy", dl2_json_real(speed->seconds));
    for (int kind = 0; kind < DL2_SPEED_KINDS; kind++)
        json_object_set_new(speeds, dl2_speed_words[kind],
                            json_pack("{s:o, s:o, s:b}", "ratio",
                                      dl2_json_real(speed->ratio[kind].ratio), "interval",
                                      make_interval(dl2_ratio_low(&speed->ratio[kind]),
                                                    dl2_ratio_high(&speed->ratio[kind])),
                                      "faster", speed->faster[kind]));
    return speeds;
}

/* A cost in percent as a BD-rate. */
static json_t *make_cost(const struct dl2_accuracy_size *size, enum dl2_cost cost)
{
    return json_pack("{s:o, s:o}", "bd_rate", dl2_json_real(size->cost[cost] - 100), "interval",
                     make_interval(size->low[cost] - 100, size->high[cost] - 100));
}

static json_t *make_equal_accuracy(const struct dl2_page *page, size_t a)
{
    const struct dl2_study *study = page->study;
    json_t *list = json_array();
    for (size_t v = 0; v < study->variant_count; v++) {
        const struct dl2_accuracy_size *size = &page->accuracy_sizes[a * study->variant_count + v];
        if (!dl2_study_starts_codec(study, v) || !size->variants)
            continue;
        json_array_append_new(list, json_pack("{s:o, s:o, s:o, s:o, s:{s:o, s:o}, s:o, s:I, s:I}",
                                              "codec", dl2_json_text(study->variants[v].codec),
                                              "bytes", make_cost(size, DL2_COST_BYTES), "encoding",
                                              make_cost(size, DL2_COST_ENCODING), "loading",
                                              make_cost(size, DL2_COST_LOADING), "gain", "points",
                                              dl2_json_real(size->gain), "interval",
                                              make_interval(size->gain_low, size->gain_high),
                                              "overlap", dl2_json_real(size->overlap), "variants",
                                              (json_int_t)size->variants, "falls",
                                              (json_int_t)size->falls));
    }
    return list;
}

static json_t *make_network(const struct dl2_page *page, size_t a)
{
    const struct dl2_study *study = page->study;
    const struct dl2_analysis *analysis = &page->analyses[a];
    const struct dl2_speeds *speeds = &page->speeds[a];
    json_t *variants = json_object(), *fastest = json_object();
    for (size_t v = 0; v < study->variant_count; v++) {
        json_t *variant = make_comparison(study, analysis, &analysis->comparisons[v], v);
        if (strcmp(study->variants[v].name, "raw") == 0) {
            json_object_set_new(variant, "reason", json_string("original"));
            json_object_set_new(variant, "seeds", json_integer((json_int_t)analysis->seeds));
        } else if (analysis->on_original) {
            json_object_set_new(variant, "on_original",
                                make_comparison(study, analysis, &analysis->on_original[v], v));
        }
        json_object_set_new(variant, "outlook", make_outlook(study, analysis, v));
        json_object_set_new(variant, "pareto_front",
                            json_boolean(page->fronts[a * study->variant_count + v]));
        json_object_set_new(variant, "speed", make_speeds(&speeds->variants[v]));
        set_named(variants, study->variants[v].name, variant);
    }
    for (int kind = 0; kind < DL2_SPEED_KINDS; kind++)
        json_object_set_new(fastest, dl2_speed_words[kind],
                            make_advice(study, &speeds->fastest[kind], speeds->fastest[kind].text));
    json_t *network = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o}", "smallest",
        make_advice(study, &analysis->smallest, page->briefs[a].use), "new_study_seeds",
        analysis->needed.few ? json_pack("[I, I]", (json_int_t)analysis->needed.few,
                                         (json_int_t)analysis->needed.many)
                             : json_null(),
        "new_study_times_images",
        dl2_json_real(analysis->needed.few ? analysis->needed.times_images : NAN), "fastest",
        fastest, "variants", variants, "equal_accuracy", make_equal_accuracy(page, a));
    if (page->question->percent > 0)
        json_object_set_new(network, "tolerance", json_real(analysis->question.tolerance));
    json_object_set_new(network, "table", make_table(&page->briefs[a]));
    json_object_set_new(network, "open",
                        page->briefs[a].open ? dl2_json_text(page->briefs[a].open) : json_null());
    return network;
}

/* A count of images or bytes: a whole number, or null where it is not known. */
static json_t *make_count(double count)
{
    return count >= 0 && count < 9e15 ? json_integer((json_int_t)count) : json_null();
}

static json_t *make_variant(const struct dl2_study_variant *variant)
{
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "codec", dl2_json_text(variant->codec),
        "quality", variant->quality ? json_integer(variant->quality) : json_null(), "images",
        make_count(variant->images), "bytes", make_count(variant->bytes), "ratio",
        dl2_json_real(variant->ratio), "bits_per_pixel", dl2_json_real(variant->bits_per_pixel),
        "psnr_rgb", dl2_json_real(variant->psnr_rgb), "ssim", dl2_json_real(variant->ssim),
        "encode_cpu_seconds", dl2_json_real(variant->encode_seconds));
}

/* A size in percent as a BD-rate. */
static json_t *make_rate(double size, double low, double high, double overlap, size_t images)
{
    return json_pack("{s:o, s:o, s:o, s:I}", "bd_rate", dl2_json_real(size - 100), "interval",
                     make_interval(low - 100, high - 100), "overlap", dl2_json_real(overlap),
                     "images", (json_int_t)images);
}

static json_t *make_equal_quality(const struct dl2_study *study,
                                  const struct dl2_codec_sizes *sizes)
{
    json_t *list = json_array();
    for (size_t v = 0; v < study->variant_count; v++)
        for (size_t m = 0; m < sizes->metrics.count; m++) {
            const struct dl2_codec_size *size = dl2_codec_size_at(study, sizes, m, v);
            if (!size)
                continue;
            json_t *per_image = make_rate(size->per_image, size->low, size->high,
                                          size->per_image_overlap, size->images);
            json_t *pooled = make_rate(size->pooled, size->pooled_low, size->pooled_high,
                                       size->overlap, size->pooled_images);
            json_object_set_new(pooled, "encoding", dl2_json_real(size->encoding - 100));
            json_object_set_new(pooled, "loading", dl2_json_real(size->loading - 100));
            json_object_set_new(per_image, "left_out", json_integer((json_int_t)size->left_out));
            json_object_set_new(per_image, "smaller", dl2_json_real(size->smaller));
            json_array_append_new(list, json_pack("{s:o, s:s, s:o, s:o}", "codec",
                                                  dl2_json_text(study->variants[v].codec), "metric",
                                                  sizes->metrics.names[m], "per_image", per_image,
                                                  "pooled", pooled));
        }
    return json_pack("{s:o, s:o}", "anchor",
                     sizes->anchor < study->variant_count
                         ? dl2_json_text(study->variants[sizes->anchor].codec)
                         : json_null(),
                     "rates", list);
}

const json_t *dl2_answer_make(const struct dl2_page *page)
{
    const struct dl2_study *study = page->study;
    json_t *variants = json_object(), *networks = json_object();
    for (size_t v = 0; v < study->variant_count; v++)
        set_named(variants, study->variants[v].name, make_variant(&study->variants[v]));
    for (size_t a = 0; a < study->arch_count; a++)
        set_named(networks, study->archs[a], make_network(page, a));
    const struct dl2_accuracy_kind *kind = dl2_study_accuracy(study);
    const double tolerance =
        study->arch_count ? page->analyses[0].question.tolerance : page->question->tolerance;
    json_t *answer = dl2_keep_json(
        json_pack("{s:s, s:s, s:f, s:I, s:o, s:o, s:o, s:o}", "schema", SCHEMA, "accuracy",
                  kind->name, "tolerance", tolerance, "look", (json_int_t)page->plan.look, "notes",
                  make_notes(page), "variants", variants, "networks", networks, "equal_quality",
                  make_equal_quality(study, &page->sizes)));
    if (page->question->percent > 0)
        json_object_set_new(answer, "tolerance_percent", json_real(page->question->percent));
    if (study->as_it_is)
        json_object_set_new(answer, "inference", json_true());
    if (kind->is_foreign)
        json_object_set_new(answer, "metric",
                            json_pack("{s:o, s:o, s:b}", "name", dl2_json_text(kind->name), "unit",
                                      dl2_json_text(kind->is_percent ? "percent" : kind->unit),
                                      "higher_is_better", !kind->is_lower_better));
    return answer;
}

/* ---- As a table */

/* A column: where it is, below the variant (v) or below the network's variant (n). */
static const struct {
    const char *name;
    char below;
    const char *path[3];
} columns[] = {
    {"codec", 'v', {"codec"}},
    {"quality", 'v', {"quality"}},
    {"images", 'v', {"images"}},
    {"bytes", 'v', {"bytes"}},
    {"ratio", 'v', {"ratio"}},
    {"bits_per_pixel", 'v', {"bits_per_pixel"}},
    {"psnr_rgb", 'v', {"psnr_rgb"}},
    {"ssim", 'v', {"ssim"}},
    {"encode_cpu_seconds", 'v', {"encode_cpu_seconds"}},
    {"seeds", 'n', {"seeds"}},
    {"accuracy", 'n', {"accuracy"}},
    {"difference", 'n', {"difference"}},
    {"low", 'n', {"interval", "0"}},
    {"high", 'n', {"interval", "1"}},
    {"verdict", 'n', {"verdict"}},
    {"reason", 'n', {"reason"}},
    {"claim_bound", 'n', {"claim", "bound"}},
    {"claim_error", 'n', {"claim", "error"}},
    {"on_original_difference", 'n', {"on_original", "difference"}},
    {"on_original_low", 'n', {"on_original", "interval", "0"}},
    {"on_original_high", 'n', {"on_original", "interval", "1"}},
    {"on_original_verdict", 'n', {"on_original", "verdict"}},
    {"load_rate", 'n', {"speed", "load_rate"}},
    {"train_rate", 'n', {"speed", "train_rate"}},
    {"seconds_to_accuracy", 'n', {"speed", "seconds_to_accuracy"}},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static void print_cell(FILE *out, const json_t *from, const char *const path[3])
{
    for (size_t i = 0; i < 3 && path[i]; i++)
        from = json_is_array(from) ? json_array_get(from, (size_t)atoi(path[i]))
                                   : json_object_get(from, path[i]);
    fputc(',', out);
    if (json_is_string(from))
        dl2_csv_field(out, json_string_value(from));
    else if (json_is_integer(from))
        fprintf(out, "%lld", (long long)json_integer_value(from));
    else if (json_is_real(from))
        fprintf(out, "%.10g", json_real_value(from));
}

static void print_line(FILE *out, const char *network, const char *name, const json_t *variant,
                       const json_t *own)
{
    dl2_csv_field(out, network);
    fputc(',', out);
    dl2_csv_field(out, name);
    for (size_t i = 0; i < COLUMNS; i++)
        print_cell(out, columns[i].below == 'v' ? variant : own, columns[i].path);
    fputc('\n', out);
}

static void print_table(FILE *out, const json_t *answer)
{
    json_t *variants = json_object_get(answer, "variants");
    json_t *networks = json_object_get(answer, "networks"), *network, *variant;
    const char *network_name, *name;
    fputs("network,variant", out);
    for (size_t i = 0; i < COLUMNS; i++)
        fprintf(out, ",%s", columns[i].name);
    fputc('\n', out);
    if (json_object_size(networks) == 0)
        json_object_foreach(variants, name, variant) print_line(out, "", name, variant, NULL);
    json_object_foreach(networks, network_name, network)
        json_object_foreach(variants, name, variant)
            print_line(out, network_name, name, variant,
                       json_object_get(json_object_get(network, "variants"), name));
}

static int save_table(const json_t *answer, const char *path, struct dl2_error *error)
{
    DL2_AUTO_FREE char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return dl2_error_memory(error, "%s", path);
    print_table(out, answer);
    const bool whole = !ferror(out);
    return fclose(out) == 0 && whole ? dl2_file_write(path, text, size, error)
                                     : dl2_error_memory(error, "%s", path);
}

/* Files of these names may be somebody else's: an answer is only written over another one. */
static int expect_answer(const char *json, const char *table, struct dl2_error *error)
{
    json_auto_t *old = NULL;
    const bool any = access(json, F_OK) == 0;
    const bool ours = any && dl2_json_load(json, SCHEMA, &old, NULL) == DL2_OK;
    if (ours || (!any && access(table, F_OK) != 0))
        return DL2_OK;
    return dl2_error_set(
        error, DL2_ERR_ARGUMENT,
        "%s may not be dl2-report's and would be overwritten: move it away, or name "
        "a page in another folder with -o",
        any ? json : table);
}

int dl2_answer_save(const json_t *answer, const char *path, const char *table,
                    struct dl2_error *error)
{
    DL2_TRY(expect_answer(path, table, error));
    DL2_TRY(dl2_json_save(path, answer, error));
    return save_table(answer, table, error);
}

int dl2_answer_print_saved(const char *folder, struct dl2_error *error)
{
    json_auto_t *answer = NULL;
    const char *path = dl2_keep_block(dl2_path_join(folder, "report/answer.json"));
    DL2_TRY(dl2_json_load(path, SCHEMA, &answer, error));
    if (!json_object_get(answer, "notes"))
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s is of an earlier version: make report writes it anew", path);
    dl2_answer_print(answer);
    return DL2_OK;
}
