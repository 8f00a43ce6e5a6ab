/* SPDX-License-Identifier: BSD-2-Clause */
/* Every variant in a table: size, quality, speed, accuracy. */
#include "common/json.h"
#include "report/loss_change.h"
#include "report/page/parts.h"
#include "report/page/sections.h"
#include "report/sentence.h"

#include <math.h>

/* A variant's difference to the original, and whether that is harm that accuracy does not show; the
 * original's own loss. */
static void write_loss(json_t *table, const struct dl2_loss_change *change, bool raw,
                       enum dl2_verdict verdict)
{
    const double difference = change->difference, half = change->half;
    if (raw || !isfinite(difference)) {
        dl2_table_number(table, raw ? change->mean : NAN, 3);
        return;
    }
    json_t *cell = dl2_table_value(table, difference, "%s", dl2_signed_digits(difference, 3));
    if (isfinite(half)) {
        dl2_table_interval(cell, difference - half, difference + half);
        dl2_block_set(cell, "detail", "(%s)", dl2_interval_digits(difference, half, 3));
    }
    if (verdict == DL2_VERDICT_WITHIN && dl2_loss_is_higher(change))
        dl2_table_badge(cell, DL2_VERDICT_LIKELY, "higher");
}

/* What the table shows. */
struct variants_view {
    const struct dl2_page *page;
    bool copies; /* are there files that are the source's own? */
    bool resized;
    long long above_8_bits, at_16_bits; /* images, of the variant with the most of the first */
    unsigned draws;                     /* of the bootstrap; 0: none */
};

/* The columns of numbers. */
static const struct {
    const char *head;
    size_t field; /* its offset in struct dl2_study_variant */
    int digits;
} columns[] = {
    {"bits per\npixel", offsetof(struct dl2_study_variant, bits_per_pixel), 3},
    {"PSNR\ndB", offsetof(struct dl2_study_variant, psnr_rgb), 2},
    {"SSIM", offsetof(struct dl2_study_variant, ssim), 4},
    {"loads, img/s\nand core", offsetof(struct dl2_study_variant, load_rate), 0},
    {"encoding,\nCPU s", offsetof(struct dl2_study_variant, encode_seconds), 2},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static json_t *begin_table(json_t *section, const struct variants_view *view)
{
    json_t *table = dl2_table_add(section, "variant|size|of the\noriginal");
    dl2_table_heads(table, view->copies ? "files\ncopied" : "");
    for (size_t c = 0; c < COLUMNS; c++)
        dl2_table_heads(table, columns[c].head);
    for (size_t a = 0; a < view->page->study->arch_count; a++) {
        const struct dl2_accuracy_kind *kind = view->page->analyses[a].kind;
        dl2_table_head(table, dl2_accuracy_words(kind, "accuracy, %%%s"),
                       dl2_part_arch_after(view->page, "\n", a));
        dl2_table_heads(
            table,
            dl2_accuracy_words(kind, "<difference,\npoints|<claim's\nbound (error)|Pareto\nfront"));
        dl2_table_heads(table, view->draws ? "<bootstrap" : "");
        dl2_table_heads(table, view->page->losses ? "<loss,\nnats" : "");
    }
    return table;
}

/* The lower end that the test of all variants together goes by, with its part of the error; or the
 * larger file that was to be shown first. */
static void write_bound(json_t *table, const struct dl2_study *study,
                        const struct dl2_comparison *comparison, size_t v)
{
    const struct dl2_accuracy_kind *kind = dl2_study_accuracy(study);
    json_t *cell = dl2_part_interval(table, kind, comparison->bound, NAN, NAN);
    if (isfinite(comparison->bound)) {
        dl2_block_set(cell, "detail", "(%.2g%%)", 100 * comparison->level);
    } else if (comparison->verdict != DL2_VERDICT_NONE && comparison->blocker != v) {
        dl2_block_set(cell, "text", "%s", "");
        dl2_block_set(cell, "detail", "after %s", study->variants[comparison->blocker].name);
    }
}

/* Is it the smallest or the fastest that keeps the accuracy of a network? */
static bool is_pick(const struct dl2_page *page, size_t v)
{
    for (size_t a = 0; a < page->study->arch_count; a++)
        if (v == page->analyses[a].smallest.sure ||
            v == page->speeds[a].fastest[DL2_SPEED_LOAD].sure)
            return true;
    return false;
}

static void write_variant(json_t *table, const struct variants_view *view, size_t v)
{
    const struct dl2_page *page = view->page;
    struct dl2_study_variant variant = page->study->variants[v];
    if (page->study->arch_count) /* by rounds, where there are any */
        variant.load_rate = page->speeds[0].variants[v].load_rate.mean;
    if (dl2_study_has_volumes(page->study)) {
        variant.psnr_rgb = variant.volume_psnr;
        variant.ssim = variant.volume_ssim;
    }
    json_t *row = dl2_table_row(table, dl2_part_variant_name(variant.name));
    if (is_pick(page, v))
        dl2_block_flag(row, "pick");
    dl2_table_value(table, variant.bytes, "%s",
                    isfinite(variant.bytes) ? dl2_part_bytes(variant.bytes) : "–");
    dl2_part_percent(table, 100 * variant.ratio, 1, NAN, NAN);
    if (view->copies)
        dl2_table_number(table, dl2_json_get_real(variant.made, "copied", NAN), 0);
    for (size_t c = 0; c < COLUMNS; c++)
        dl2_table_number(table, *(const double *)((const char *)&variant + columns[c].field),
                         columns[c].digits);
    for (size_t a = 0; a < page->study->arch_count; a++) {
        const struct dl2_comparison *comparison = &page->analyses[a].comparisons[v];
        const size_t cell = a * page->study->variant_count + v;
        const struct dl2_accuracy_kind *kind = page->analyses[a].kind;
        dl2_part_accuracy(table, kind, comparison->accuracy.mean, 1);
        dl2_part_difference(table, kind, comparison);
        write_bound(table, page->study, comparison, v);
        dl2_table_text(table, "%s", page->fronts[cell] ? "yes" : "–");
        if (view->draws && isfinite(comparison->low))
            dl2_table_interval(dl2_table_value(table, comparison->low, "%s to %s",
                                               dl2_signed(kind, comparison->low),
                                               dl2_signed(kind, comparison->high)),
                               comparison->low, comparison->high);
        else if (view->draws)
            dl2_table_number(table, NAN, 0);
        if (page->losses)
            write_loss(table, &page->losses[cell], v == dl2_study_find(page->study, "raw"),
                       comparison->verdict);
    }
}

/* "−1.00"; of a tolerance in percent "−1.46 with a and −1.40 with b". */
static const char *limits_of(const struct dl2_page *page)
{
    const char *text = "";
    const size_t count = page->analyses[0].question.percent > 0 ? page->study->arch_count : 1;
    for (size_t a = 0; a < count; a++)
        text = dl2_text("%s%s%s%s", text, dl2_joint(a, count),
                        dl2_signed_digits(-page->analyses[a].question.tolerance,
                                          2 + page->analyses[a].kind->digits),
                        count > 1 ? dl2_part_arch_after(page, " with ", a) : "");
    return text;
}

static void write_note(json_t *section, const struct variants_view *view)
{
    json_t *text = dl2_block_text(
        section, "note", "%s",
        dl2_study_has_volumes(view->page->study)
            ? "The images here are volumes, and the pixels voxels. PSNR (higher is nearer) and "
              "SSIM (1: the same), both at each original volume's own range of values, tell how "
              "near volumes are to the original's, as means over volumes. Loading is reading and "
              "decoding patches, as for training. "
            : "PSNR (of RGB, higher is nearer) and SSIM (1: the same) tell how near images are to "
              "the original's, as means over images; bits per pixel and bytes are those of the "
              "images alone. Loading is reading, decoding, cropping and resizing, as for "
              "training. ");
    if (view->resized)
        dl2_block_say(text, "What stands behind an @ is the size that images were resized to. "
                            "Bits per pixel are of the original's pixels all the same. "
                            "Resized images have no PSNR and SSIM to the original. ");
    if (view->above_8_bits)
        dl2_block_say(text,
                      "Up to %lld images of a variant, or their originals, have more than 8 bits "
                      "a sample: PSNR RGB and Y are of 16 bits of %lld of them, all other scores "
                      "of 8. ",
                      view->above_8_bits, view->at_16_bits);
    if (view->copies)
        dl2_block_say(text, "Copied files are the source's own, which encoding again would not "
                            "make smaller. ");
    if (view->page->losses)
        dl2_block_say(text,
                      "The loss is the mean cross-entropy of the validation images, without "
                      "label smoothing: the original's, and differences to it with 95%% "
                      "intervals of each variant by itself; lower is better. “Higher” is harm "
                      "that accuracy hides: it is within the tolerance, but the interval of the "
                      "loss is above the original's, so the network is less sure of its "
                      "answers. ");
    if (view->page->study->arch_count)
        dl2_block_say(text,
                      "A variant is within if its claim's bound is above %s: the lower end that "
                      "the test of all variants together goes by, with its part of the 2.5%%. A "
                      "codec's files are tested from the largest to the smallest; behind one "
                      "that is not within, none is. ",
                      limits_of(view->page));
    if (view->page->study->arch_count)
        dl2_block_say(
            text, dl2_accuracy_words(dl2_study_accuracy(view->page->study),
                                     "On the Pareto front are the variants than which no other is "
                                     "measured to be as small and as accurate. "));
    if (view->draws)
        dl2_block_say(text,
                      "As a check, the pigeonhole bootstrap draws seeds and images anew, "
                      "%u times; it is too narrow for few seeds.",
                      view->draws);
}

void dl2_section_variants(const struct dl2_page *page, json_t *section)
{
    const struct dl2_study *study = page->study;
    if (!study->variant_count)
        return;
    struct variants_view view = {.page = page,
                                 .draws = study->arch_count ? page->analyses[0].question.draws : 0};
    for (size_t v = 0; v < study->variant_count; v++) {
        const json_t *scored = study->variants[v].scored;
        const long long above = dl2_json_get_integer(scored, "above_8_bits", 0);
        view.resized |= study->variants[v].resized;
        if (above > view.above_8_bits) {
            view.above_8_bits = above;
            view.at_16_bits = dl2_json_get_integer(scored, "at_16_bits", 0);
        }
        view.copies |= dl2_json_get_real(study->variants[v].made, "copied", 0) > 0;
    }
    dl2_block_set(section, "heading", "Variants");
    json_t *table = begin_table(section, &view);
    for (size_t v = 0; v < study->variant_count; v++)
        write_variant(table, &view, v);
    write_note(section, &view);
}
