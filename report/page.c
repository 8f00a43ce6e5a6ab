/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/page.h"

#include "common/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_FAILURES 200 /* named in the page, a stage's rest is counted */

static const char style[] =
    ":root{color-scheme:light dark;--page:#faf9f7;--card:#ffffff;--ink:#1f2328;--soft:#5b616b;"
    "--line:#e4e2dd;--accent:#2f6fde;--good:#14724c;--good-bg:#e5f3ec;--maybe:#8a5a00;"
    "--maybe-bg:#fbf0d9;--bad:#a8323a;--bad-bg:#fae6e6;--code:#f3f1ed}"
    "@media (prefers-color-scheme:dark){:root{--page:#14171c;--card:#1b1f26;--ink:#e4e7eb;"
    "--soft:#a3aab5;--line:#2e343d;--accent:#6ea0f5;--good:#6fd3a5;--good-bg:#17352a;"
    "--maybe:#eec069;--maybe-bg:#3a2e14;--bad:#f0969b;--bad-bg:#3d2024;--code:#232830}}"
    "*{box-sizing:border-box}"
    "body{margin:0;background:var(--page);color:var(--ink);font:16px/1.6 system-ui,-apple-system,"
    "'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;-webkit-text-size-adjust:100%}"
    "main{max-width:70rem;margin:0 auto;padding:3.5rem 1.5rem 5rem}"
    "h1{font-size:2.1rem;line-height:1.2;letter-spacing:-.02em;font-weight:650;margin:0 0 .5rem}"
    "h2{font-size:1.3rem;letter-spacing:-.01em;font-weight:650;margin:3.5rem 0 .75rem}"
    "h3{font-size:1rem;font-weight:600;margin:1.75rem 0 .5rem}"
    "p{margin:.5rem 0;max-width:46rem}.lead{color:var(--soft);font-size:1.05rem}"
    ".note{color:var(--soft);font-size:.9rem}"
    ".cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(20rem,1fr));gap:1.25rem;"
    "margin:1.75rem 0 1rem}"
    ".card{background:var(--card);border:1px solid var(--line);border-radius:14px;"
    "padding:1.4rem 1.5rem 1.2rem}"
    ".card .kicker{font-size:.78rem;font-weight:600;letter-spacing:.07em;text-transform:uppercase;"
    "color:var(--soft);display:flex;justify-content:space-between;align-items:center;gap:1rem}"
    ".card .name{font-size:1.75rem;font-weight:650;letter-spacing:-.02em;margin-top:.35rem;"
    "line-height:1.25}"
    ".card .gain{font-size:1.05rem;color:var(--accent);font-weight:600;margin-bottom:.6rem}"
    ".card p{font-size:.95rem;margin:.4rem 0 0}"
    ".badge{display:inline-block;font-size:.78rem;font-weight:600;letter-spacing:0;"
    "text-transform:none;padding:.05rem .55rem;border-radius:99px;white-space:nowrap}"
    ".within{color:var(--good);background:var(--good-bg)}"
    ".maybe{color:var(--maybe);background:var(--maybe-bg)}"
    ".beyond{color:var(--bad);background:var(--bad-bg)}"
    ".scroll{overflow-x:auto;border:1px solid var(--line);border-radius:14px;"
    "background:var(--card)}"
    "table{border-collapse:collapse;width:100%;font-size:.92rem;"
    "font-variant-numeric:tabular-nums}"
    "th,td{padding:.5rem .65rem;text-align:right;white-space:nowrap;"
    "border-top:1px solid var(--line)}"
    "thead th{border-top:0;color:var(--soft);font-weight:600;font-size:.8rem;vertical-align:bottom;"
    "line-height:1.35}"
    "th:first-child,td:first-child,.l{text-align:left}tbody th{font-weight:600}"
    "tr.pick{background:color-mix(in srgb,var(--accent) 8%,transparent)}"
    "td small{color:var(--soft)}"
    ".plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(26rem,1fr));gap:1.25rem}"
    "figure{margin:0;background:var(--card);border:1px solid var(--line);border-radius:14px;"
    "padding:1rem 1rem .6rem}"
    "figcaption{font-size:.9rem;font-weight:600;padding:0 .4rem .4rem}"
    "figure svg{display:block;width:100%;height:auto}"
    "figure svg text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,Arial,sans-serif}"
    "figure svg rect[fill='#ffffff']{fill:none}figure svg [color='#FFFFFF']{color:var(--card)}"
    "figure a{font-size:.8rem}"
    "pre,code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.85rem}"
    "pre{background:var(--code);border-radius:10px;padding:.9rem 1.1rem;overflow-x:auto;"
    "line-height:1.5;margin:.5rem 0;"
    "white-space:pre-wrap}"
    "details{border-top:1px solid var(--line);padding:.7rem 0;margin-top:1.5rem}"
    "details+details{margin-top:0}details .scroll{margin-top:.7rem}"
    "summary{cursor:pointer;font-weight:600}"
    "ul.plain{padding-left:1.1rem;margin:.5rem 0}"
    ".warning{background:var(--maybe-bg);color:var(--maybe);border-radius:10px;"
    "padding:.7rem 1.1rem;margin:1.25rem 0;max-width:none}"
    "footer{margin-top:4rem;color:var(--soft);font-size:.85rem;border-top:1px solid var(--line);"
    "padding-top:1rem}"
    "@media (max-width:34rem){main{padding:2rem 1rem 3rem}.plots,.cards{grid-template-columns:1fr}}"
    "@media print{body{background:#fff}.card,figure,.scroll{break-inside:avoid}}";

/* gnuplot writes its colours as attributes; rules win over those, so a
 * dark page can change them. */
static void write_dark_plots(struct dl2_html *html)
{
    dl2_html_markup(html, "@media (prefers-color-scheme:dark){");
    for (size_t i = 0; dl2_plot_colours[i].light; i++) {
        unsigned r, g, b;
        if (sscanf(dl2_plot_colours[i].light, "#%2x%2x%2x", &r, &g, &b) != 3)
            continue;
        char line[512];
        snprintf(
            line, sizeof line,
            "figure svg [stroke='rgb(%3u, %3u, %3u)']{stroke:%s}"
            "figure svg [color='rgb(%3u, %3u, %3u)']{color:%s}"
            "figure svg [fill='rgb(%u,%u,%u)'],figure svg [fill='rgb(%3u, %3u, %3u)']{fill:%s}",
            r, g, b, dl2_plot_colours[i].dark, r, g, b, dl2_plot_colours[i].dark, r, g, b, r, g, b,
            dl2_plot_colours[i].dark);
        dl2_html_markup(html, line);
    }
    dl2_html_markup(html, "}");
}

/* ---- Figures as people read them */

static const char *human_bytes(double bytes, char out[32])
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    size_t unit = 0;
    while (bytes >= 999.5 && unit + 1 < sizeof units / sizeof *units) {
        bytes /= 1000;
        unit++;
    }
    snprintf(out, 32, "%.*f %s", unit && bytes < 99.95 ? 1 : 0, bytes, units[unit]);
    return out;
}

static const char *fixed(double value, int digits, char out[32])
{
    if (isfinite(value))
        snprintf(out, 32, "%.*f", digits, value);
    else
        snprintf(out, 32, "–");
    return out;
}

static void cell(struct dl2_html *html, double value, int digits)
{
    char text[32];
    dl2_html_element(html, "td", "%s", fixed(value, digits, text));
}

static const char *badge_class(enum dl2_verdict verdict)
{
    switch (verdict) {
    case DL2_VERDICT_WITHIN:
        return "span class='badge within'";
    case DL2_VERDICT_BEYOND:
        return "span class='badge beyond'";
    default:
        return "span class='badge maybe'";
    }
}

static const char *with_sign(double value, char out[32])
{
    const double rounded = round(10 * value) / 10;
    snprintf(out, 32, "%s%.1f", rounded > 0 ? "+" : rounded < 0 ? "−" : "", fabs(rounded));
    return out;
}

/* ---- Sections */

static void write_advice(struct dl2_html *html, const struct dl2_page *page,
                         const struct dl2_analysis *analysis, const char *kicker,
                         const struct dl2_advice *advice, bool bytes)
{
    const struct dl2_study *study = page->study;
    const size_t none = study->variant_count;
    const size_t pick = advice->sure < none ? advice->sure : advice->likely;
    dl2_html_markup(html, "<div class='card'><div class='kicker'>");
    if (page->study->arch_count > 1)
        dl2_html_element(html, "span", "%s · %s", kicker, analysis->arch);
    else
        dl2_html_element(html, "span", "%s", kicker);
    if (pick < none)
        dl2_html_element(html, badge_class(analysis->comparisons[pick].verdict), "%s",
                         advice->sure < none ? "within tolerance" : "could be within tolerance");
    dl2_html_markup(html, "</div>");
    if (pick < none) {
        const struct dl2_study_variant *variant = &study->variants[pick];
        dl2_html_element(html, "div class='name'", "%s", variant->name);
        if (bytes)
            dl2_html_element(html, "div class='gain'", "%.3g times smaller", 1 / variant->ratio);
        else
            dl2_html_element(html, "div class='gain'", "%.3g times faster to load",
                             variant->load_rate /
                                 study->variants[dl2_study_find(study, "raw")].load_rate);
    } else {
        dl2_html_element(html, "div class='name'", "none");
    }
    dl2_html_element(html, "p", "%s", advice->text);
    dl2_html_markup(html, "</div>\n");
}

/* Variants that were trained from fewer seeds than the original. */
static void write_short_of_seeds(struct dl2_html *html, const struct dl2_page *page)
{
    const struct dl2_study *study = page->study;
    for (size_t a = 0; a < study->arch_count; a++)
        for (size_t v = 0; v < study->variant_count; v++) {
            const struct dl2_analysis *analysis = &page->analyses[a];
            const struct dl2_comparison *comparison = &analysis->comparisons[v];
            if (comparison->verdict == DL2_VERDICT_NONE || comparison->pairs == analysis->seeds)
                continue;
            dl2_html_format(html, "%s was trained from %zu of the original's %zu seeds%s%s. ",
                            study->variants[v].name, comparison->pairs, analysis->seeds,
                            study->arch_count > 1 ? ", with " : "",
                            study->arch_count > 1 ? analysis->arch : "");
        }
}

/* What the verdicts mean. */
static void write_rules(struct dl2_html *html, const struct dl2_page *page)
{
    const struct dl2_analysis *first = &page->analyses[0];
    dl2_html_format(html,
                    "Tolerance: %g point%s of top-1 accuracy, the share of validation images whose "
                    "class the network found. “Within” is claimed: each codec's variants are "
                    "tested from the largest file to the smallest, the first that fails ends its "
                    "codec, and the probability that any claim is wrong is at most 2.5%%",
                    page->tolerance, page->tolerance == 1 ? "" : "s");
    if (first->codecs > 1)
        dl2_html_format(html, ", shared by %zu codecs", first->codecs);
    dl2_html_format(html, ". “Could be”: the measured difference is within, but it is not claimed; "
                          "“looks worse”: the measured difference is beyond, but its interval "
                          "reaches within; “worse”: all of its interval is beyond. Intervals are "
                          "95%%, of each variant by itself. ");
    if (first->question.looks.count < 2)
        return;
    dl2_html_format(html, "Seeds were added to what was undecided, with looks after ");
    for (size_t i = 0; i < first->question.looks.count; i++)
        dl2_html_format(html, "%s%zu",
                        !i                                    ? ""
                        : i + 1 < first->question.looks.count ? ", "
                                                              : " and ",
                        first->question.looks.seeds[i]);
    dl2_html_format(html, "; all looks share the 2.5%%. ");
}

static void write_noise(struct dl2_html *html, const struct dl2_analysis *first)
{
    if (first->seeds < 2) {
        dl2_html_format(html, "One training each can't tell chance from effect. ");
        return;
    }
    if (!isfinite(first->noise.deviation))
        return;
    dl2_html_format(html,
                    "Trainings from %zu seeds each, compared seed by seed; the noise of a single "
                    "training, estimated from all variants together (%zu degrees of freedom), is "
                    "%.2f points. ",
                    first->seeds, first->noise.freedom, first->noise.deviation);
    if (!first->pooled)
        dl2_html_format(html,
                        "It differs between variants (p = %.3f), so each variant is judged by its "
                        "own, which takes more seeds. ",
                        first->noise.homogeneity);
    else if (first->seeds < 4)
        dl2_html_format(html, "With so few seeds the intervals are wide. ");
}

/* Which intervals cover the choice of validation images. */
static void write_images(struct dl2_html *html, const struct dl2_page *page)
{
    const struct dl2_study *study = page->study;
    size_t with = 0, without = 0;
    for (size_t a = 0; a < study->arch_count; a++)
        for (size_t v = 0; v < study->variant_count; v++) {
            const struct dl2_comparison *comparison = &page->analyses[a].comparisons[v];
            if (comparison->verdict != DL2_VERDICT_NONE)
                *(comparison->images ? &with : &without) += 1;
        }
    double val = NAN;
    for (size_t i = 0; i < study->run_count && !(val > 0); i++)
        val = study->runs[i].val_images;
    if (!(val > 0))
        return;
    if (with)
        dl2_html_format(html,
                        "Verdicts and the table's intervals count both sources of chance: new "
                        "trainings, and new validation images in place of these %.0f. ",
                        val);
    if (with && without)
        dl2_html_format(html, "Where predictions are missing they count the trainings alone. ");
    else if (without)
        dl2_html_format(html,
                        "The trainings kept no predictions (earlier versions keep none), so the "
                        "intervals tell of the chance of training alone, not of the choice of the "
                        "%.0f validation images, of which one is %.2g points. ",
                        val, 100 / val);
}

static void write_answer(struct dl2_html *html, const struct dl2_page *page)
{
    const struct dl2_study *study = page->study;
    if (study->arch_count == 0) {
        dl2_html_element(
            html, "p class='warning'", "%s",
            study->variant_count
                ? "Nothing was trained yet, so nothing can be said of accuracy: only size "
                  "and image quality are known."
                : "There are no results here yet.");
        return;
    }
    dl2_html_markup(html, "<div class='cards'>\n");
    for (size_t a = 0; a < study->arch_count; a++) {
        write_advice(html, page, &page->analyses[a], "Smallest", &page->analyses[a].smallest, true);
        write_advice(html, page, &page->analyses[a], "Fastest to load", &page->analyses[a].fastest,
                     false);
    }
    dl2_html_markup(html, "</div>\n");
    dl2_html_markup(html, "<p class='note'>");
    write_rules(html, page);
    write_noise(html, &page->analyses[0]);
    write_short_of_seeds(html, page);
    write_images(html, page);
    dl2_html_markup(html, "</p>\n");
}

/* The bootstrap beside the analytic intervals, where it was asked for. */
static void write_bootstrap(struct dl2_html *html, const struct dl2_page *page)
{
    const struct dl2_study *study = page->study;
    bool any = false;
    for (size_t a = 0; a < study->arch_count; a++)
        for (size_t v = 0; v < study->variant_count; v++) {
            const struct dl2_comparison *comparison = &page->analyses[a].comparisons[v];
            char text[4][32];
            if (!isfinite(comparison->low))
                continue;
            if (!any)
                dl2_html_format(html,
                                "As a check, the pigeonhole bootstrap (seeds and images drawn "
                                "anew, %u times), which is too narrow for few seeds: ",
                                page->analyses[a].question.draws);
            dl2_html_format(
                html, "%s%s%s%s %s to %s, not %s to %s", any ? "; " : "", study->variants[v].name,
                study->arch_count > 1 ? " " : "", study->arch_count > 1 ? study->archs[a] : "",
                with_sign(comparison->low, text[0]), with_sign(comparison->high, text[1]),
                with_sign(comparison->difference - comparison->half_both, text[2]),
                with_sign(comparison->difference + comparison->half_both, text[3]));
            any = true;
        }
    dl2_html_markup(html, any ? "." : "");
}

static void write_variants(struct dl2_html *html, const struct dl2_page *page)
{
    const struct dl2_study *study = page->study;
    if (!study->variant_count)
        return;
    dl2_html_markup(html,
                    "<h2>Variants</h2>\n<div class='scroll'><table><thead><tr><th>variant</th>"
                    "<th>size</th><th>of the<br/>original</th><th>bits per<br/>pixel</th>"
                    "<th>PSNR<br/>dB</th><th>SSIM</th><th>loads, img/s<br/>and core</th>"
                    "<th>encoding,<br/>CPU s</th>");
    for (size_t a = 0; a < study->arch_count; a++) {
        dl2_html_markup(html, "<th>top-1, %");
        if (study->arch_count > 1) {
            dl2_html_markup(html, "<br/>");
            dl2_html_text(html, study->archs[a]);
        }
        dl2_html_markup(html, "</th><th class='l'>difference,<br/>points</th>");
    }
    dl2_html_markup(html, "</tr></thead><tbody>\n");
    for (size_t v = 0; v < study->variant_count; v++) {
        const struct dl2_study_variant *variant = &study->variants[v];
        const bool raw = strcmp(variant->name, "raw") == 0;
        bool pick = false;
        for (size_t a = 0; a < study->arch_count; a++)
            pick |= v == page->analyses[a].smallest.sure || v == page->analyses[a].fastest.sure;
        char text[4][32];
        dl2_html_markup(html, pick ? "<tr class='pick'>" : "<tr>");
        dl2_html_element(html, "th", "%s", raw ? "original" : variant->name);
        dl2_html_element(html, "td", "%s",
                         isfinite(variant->bytes) ? human_bytes(variant->bytes, text[0]) : "–");
        dl2_html_element(html, "td", "%s%s", fixed(100 * variant->ratio, 1, text[0]),
                         isfinite(variant->ratio) ? " %" : "");
        cell(html, variant->bits_per_pixel, 3);
        cell(html, variant->psnr_rgb, 2);
        cell(html, variant->ssim, 4);
        cell(html, variant->load_rate, 0);
        cell(html, variant->encode_seconds, 1);
        for (size_t a = 0; a < study->arch_count; a++) {
            const struct dl2_comparison *comparison = &page->analyses[a].comparisons[v];
            dl2_html_markup(html, "<td>");
            dl2_html_text(html, fixed(comparison->top1.mean, 1, text[0]));
            if (isfinite(comparison->top1.half))
                dl2_html_element(html, "small", " ± %.1f", comparison->top1.half);
            dl2_html_markup(html, "</td><td class='l'>");
            if (comparison->verdict != DL2_VERDICT_NONE) {
                dl2_html_format(html, "%s ", with_sign(comparison->difference, text[0]));
                const double half = dl2_comparison_half(comparison);
                if (isfinite(half))
                    dl2_html_element(html, "small", "(%s to %s)",
                                     with_sign(comparison->difference - half, text[1]),
                                     with_sign(comparison->difference + half, text[2]));
                dl2_html_markup(html, " ");
                dl2_html_element(html, badge_class(comparison->verdict), "%s",
                                 dl2_verdict_text(comparison->verdict));
            }
            dl2_html_markup(html, "</td>");
        }
        dl2_html_markup(html, "</tr>\n");
    }
    dl2_html_markup(html, "</tbody></table></div>\n");
    dl2_html_markup(html,
                    "<p class='note'>PSNR (of RGB, higher is nearer) and "
                    "SSIM (1: the same) tell how near images are to the original's, as means "
                    "over images; bits per pixel and bytes are those of the images alone. Loading "
                    "is reading, decoding, cropping and resizing, as for training. ");
    write_bootstrap(html, page);
    dl2_html_markup(html, "</p>\n");
}

static void write_figure(struct dl2_html *html, const struct dl2_page *page,
                         const struct dl2_plot *plot)
{
    dl2_html_markup(html, "<figure><figcaption>");
    dl2_html_text(html, plot->title);
    if (plot->kind != DL2_PLOT_RATE_DISTORTION && page->study->arch_count > 1)
        dl2_html_format(html, " · %s", page->study->archs[plot->arch]);
    dl2_html_markup(html, "</figcaption>\n");
    dl2_html_bytes(html, &plot->svg);
    dl2_html_markup(html, "</figure>\n");
}

static void write_plots(struct dl2_html *html, const struct dl2_page *page, enum dl2_plot_kind kind,
                        const char *heading, const char *note)
{
    size_t shown = 0;
    for (size_t i = 0; i < page->plots->count; i++) {
        const struct dl2_plot *plot = &page->plots->items[i];
        if (plot->kind != kind || !plot->svg.size)
            continue;
        if (shown++ == 0) {
            dl2_html_element(html, "h2", "%s", heading);
            if (note)
                dl2_html_element(html, "p class='note'", "%s", note);
            dl2_html_markup(html, "\n<div class='plots'>\n");
        }
        write_figure(html, page, plot);
    }
    if (shown)
        dl2_html_markup(html, "</div>\n");
}

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
                    dl2_html_element(html, "th", "%s",
                                     strcmp(study->variants[v].name, "raw")
                                         ? study->variants[v].name
                                         : "original");
            any = true;
            char text[32];
            dl2_html_markup(html, "<td>");
            dl2_html_text(html, fixed(mean.mean, 1, text));
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

static void with_half(struct dl2_html *html, const struct dl2_estimate *estimate, int digits,
                      bool shared)
{
    char text[32];
    dl2_html_markup(html, "<td>");
    dl2_html_text(html, fixed(estimate->mean, digits, text));
    if (isfinite(estimate->half) && isfinite(estimate->mean))
        dl2_html_element(html, "small", " ± %s", fixed(estimate->half, digits, text));
    if (shared)
        dl2_html_element(html, "small", " shared");
    dl2_html_markup(html, "</td>");
}

/* Whether a plot's timeline is of the original or of a recommended variant. */
static bool stands_out(const struct dl2_page *page, const struct dl2_plot *plot)
{
    const struct dl2_analysis *analysis = &page->analyses[plot->arch];
    const struct dl2_advice *advice = &analysis->smallest;
    const size_t pick = advice->sure < page->study->variant_count ? advice->sure : advice->likely;
    return plot->variant == dl2_study_find(page->study, "raw") || plot->variant == pick;
}

static size_t write_timelines(struct dl2_html *html, const struct dl2_page *page, bool outstanding,
                              const char *open)
{
    size_t shown = 0;
    for (size_t i = 0; i < page->plots->count; i++) {
        const struct dl2_plot *plot = &page->plots->items[i];
        if (plot->kind != DL2_PLOT_TIMELINE || !plot->svg.size ||
            stands_out(page, plot) != outstanding)
            continue;
        if (shown++ == 0)
            dl2_html_markup(html, open);
        write_figure(html, page, plot);
    }
    if (shown)
        dl2_html_markup(html, "</div>\n");
    return shown;
}

static void write_shared(struct dl2_html *html, const struct dl2_page *page)
{
    unsigned trainers = 0;
    for (size_t a = 0; a < page->study->arch_count; a++)
        if (page->analyses[a].trainers > trainers)
            trainers = page->analyses[a].trainers;
    dl2_html_markup(html, "<p class='warning'>");
    if (trainers > 1)
        dl2_html_format(html,
                        "“Shared”: up to %u trainings ran on the machine at a time. Each had a "
                        "part of it, which its neighbours made larger or smaller,",
                        trainers);
    else
        dl2_html_format(html, "“Shared”: these trainings did not record whether others ran on the "
                              "machine at the same time. If so, each had a part of it,");
    dl2_html_format(html,
                    " so these rates are no measure of a variant, and variants are not ranked by "
                    "them. A card's energy and use would be those of all trainings on it, and are "
                    "left out. “Fastest to load” is judged by the input pipeline, which was "
                    "measured alone.");
    dl2_html_markup(html, "</p>\n");
}

/* Images a second, waiting and energy by variant; then runs second by second. */
static void write_throughput(struct dl2_html *html, const struct dl2_page *page)
{
    const struct dl2_study *study = page->study;
    bool energy = false, shared = false;
    for (size_t i = 0; i < study->run_count; i++)
        energy |= isfinite(study->runs[i].joules);
    for (size_t a = 0; a < study->arch_count; a++)
        shared |= page->analyses[a].shared;
    if (!study->run_count)
        return;
    dl2_html_markup(html, "<h2>Throughput of training</h2>\n<div class='scroll'><table><thead><tr>"
                          "<th>trained on</th><th class='l'>network</th><th>images/s</th>"
                          "<th>waiting<br/>for data, %</th>");
    dl2_html_markup(html, energy ? "<th>energy,<br/>J an image</th>" : "");
    dl2_html_markup(html, "</tr></thead><tbody>\n");
    for (size_t a = 0; a < study->arch_count; a++)
        for (size_t v = 0; v < study->variant_count; v++) {
            const struct dl2_comparison *comparison = &page->analyses[a].comparisons[v];
            if (!comparison->train_rate.count)
                continue;
            dl2_html_markup(html, "<tr>");
            dl2_html_element(html, "th", "%s",
                             strcmp(study->variants[v].name, "raw") ? study->variants[v].name
                                                                    : "original");
            dl2_html_element(html, "td class='l'", "%s", study->archs[a]);
            with_half(html, &comparison->train_rate, 0, comparison->shared);
            with_half(html, &comparison->stall, 1, comparison->shared);
            if (energy)
                with_half(html, &comparison->joules, 3, false);
            dl2_html_markup(html, "</tr>\n");
        }
    dl2_html_markup(html,
                    "</tbody></table></div>\n<p class='note'>Means over seeds with 95% "
                    "intervals; a training's figure is the median of its epochs but the "
                    "first. Validation is not in them; in the timelines it is where no images "
                    "are trained on.");
    if (energy)
        dl2_html_markup(html, " Energy is that of the card's board, without the rest of the "
                              "machine. A card has steps queued: while training waits for data, "
                              "it may still be busy.");
    dl2_html_markup(html, "</p>\n");
    if (shared)
        write_shared(html, page);
    write_timelines(html, page, true, "<div class='plots'>\n");
    if (write_timelines(html, page, false,
                        "<details><summary>The other timelines</summary><div class='plots'>\n"))
        dl2_html_markup(html, "</details>\n");
}

static void write_training(struct dl2_html *html, const struct dl2_page *page)
{
    const struct dl2_study *study = page->study;
    write_plots(html, page, DL2_PLOT_CURVES, "Training",
                "Top-1 accuracy on validation after each epoch, mean over seeds.");
    if (!study->run_count)
        return;
    for (size_t a = 0; a < study->arch_count; a++)
        write_matrix(html, page, a);
    dl2_html_markup(html, "<details><summary>Every training</summary><div class='scroll'><table>"
                          "<thead><tr><th>trained on</th><th class='l'>network</th><th>seed</th>"
                          "<th>epochs</th><th>top-1, %</th><th>top-5, %</th><th>images/s</th>"
                          "<th>waiting, %</th><th>J an image</th><th>seconds</th></tr></thead>"
                          "<tbody>\n");
    for (size_t i = 0; i < study->run_count; i++) {
        const struct dl2_study_run *run = &study->runs[i];
        char text[32];
        dl2_html_markup(html, "<tr>");
        dl2_html_element(html, "th", "%s", study->variants[run->variant].name);
        dl2_html_element(html, "td class='l'", "%s", run->arch);
        dl2_html_element(html, "td", "%llu", (unsigned long long)run->seed);
        dl2_html_element(html, "td", "%zu", run->epochs);
        cell(html, 100 * run->top1, 2);
        cell(html, 100 * run->top5, 2);
        dl2_html_markup(html, "<td>");
        dl2_html_text(html, fixed(run->train_rate, 0, text));
        if (dl2_study_run_shared(run) && isfinite(run->train_rate))
            dl2_html_element(html, "small", " shared");
        dl2_html_markup(html, "</td>");
        cell(html, 100 * run->stall, 1);
        cell(html, run->joules, 3);
        cell(html, run->seconds, 1);
        dl2_html_markup(html, "</tr>\n");
    }
    dl2_html_markup(html, "</tbody></table></div></details>\n");
}

static void write_list(struct dl2_html *html, const char *heading, char *const *items, size_t count)
{
    if (!count)
        return;
    dl2_html_element(html, "h3", "%s", heading);
    dl2_html_markup(html, "<ul class='plain'>\n");
    for (size_t i = 0; i < count; i++)
        dl2_html_element(html, "li", "%s", items[i]);
    dl2_html_markup(html, "</ul>\n");
}

static bool has_failures(const struct dl2_study *study)
{
    return study->broken_count || study->unfinished_count || study->failure_count ||
           study->left_out_count;
}

static void write_failures(struct dl2_html *html, const struct dl2_page *page)
{
    const struct dl2_study *study = page->study;
    dl2_html_markup(html, "<h2 id='failures'>What went wrong</h2>\n");
    if (!has_failures(study)) {
        dl2_html_markup(html, "<p>Nothing that the stages noticed: no image failed, and where "
                              "variants were scored, loaded or trained on, they had the images of "
                              "the original.</p>\n");
        return;
    }
    write_list(html, "Results that could not be read", study->broken, study->broken_count);
    write_list(html, "Cut short, and left out above", study->unfinished, study->unfinished_count);
    write_list(html, "Not of this study, or not comparable, and left out above", study->left_out,
               study->left_out_count);
    for (size_t i = 0; i < study->failure_count;) {
        const char *stage = study->failures[i].stage;
        size_t end = i;
        while (end < study->failure_count && strcmp(study->failures[end].stage, stage) == 0)
            end++;
        dl2_html_element(html, "h3", "%s: %zu", stage, end - i);
        dl2_html_markup(html, "<ul class='plain'>\n");
        for (size_t k = i; k < end && k < i + MOST_FAILURES; k++)
            dl2_html_element(html, "li", "%s", study->failures[k].what);
        if (end - i > MOST_FAILURES)
            dl2_html_element(html, "li", "and %zu more", end - i - MOST_FAILURES);
        dl2_html_markup(html, "</ul>\n");
        i = end;
    }
}

static void write_json(struct dl2_html *html, const char *heading, const json_t *json)
{
    char *text = json ? json_dumps(json, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_ENCODE_ANY |
                                             JSON_REAL_PRECISION(6))
                      : NULL;
    if (!text)
        return;
    dl2_html_element(html, "h3", "%s", heading);
    dl2_html_element(html, "pre", "%s", text);
    free(text);
}

static void write_making(struct dl2_html *html, const struct dl2_page *page)
{
    const struct dl2_study *study = page->study;
    const json_t *machine = NULL, *versions = NULL, *arguments = NULL, *libraries = NULL;
    const json_t *card = NULL;
    for (size_t v = 0; v < study->variant_count; v++) {
        const struct dl2_study_variant *variant = &study->variants[v];
        machine = machine ? machine : json_object_get(variant->loaded, "machine");
        libraries = libraries ? libraries : json_object_get(variant->made, "libraries");
    }
    for (size_t i = 0; i < study->run_count; i++) {
        machine = machine ? machine : json_object_get(study->runs[i].report, "machine");
        versions = versions ? versions : json_object_get(study->runs[i].report, "versions");
        arguments = arguments ? arguments : json_object_get(study->runs[i].report, "arguments");
        card = card ? card : json_object_get(study->runs[i].report, "card");
    }
    dl2_html_markup(html, "<h2>How it was made</h2>\n");
    if (page->command) {
        dl2_html_markup(html, "<p>To make it again:</p>\n");
        dl2_html_element(html, "pre", "%s", page->command);
    }
    dl2_html_markup(html, "<p>The results lie in <code>");
    dl2_html_text(html, page->folder);
    dl2_html_markup(html,
                    "</code>, each plot's data and gnuplot script in <code>plots/</code> beside "
                    "this page.</p>\n");
    if (machine) {
        dl2_html_markup(html, "<p>The machine: ");
        dl2_html_format(html, "%s, %lld core%s",
                        dl2_json_get_text(machine, "cpu", "unknown processor"),
                        dl2_json_get_integer(machine, "cores", 0),
                        dl2_json_get_integer(machine, "cores", 0) == 1 ? "" : "s");
        const double memory = dl2_json_get_real(machine, "memory_bytes", NAN);
        char text[32];
        if (memory > 0)
            dl2_html_format(html, ", %s of memory", human_bytes(memory, text));
        dl2_html_format(html, "; %s; SIMD: %s.", dl2_json_get_text(machine, "system", "?"),
                        dl2_json_get_text(machine, "simd", "?"));
        dl2_html_markup(html, "</p>\n");
    }
    if (card) {
        char text[32];
        dl2_html_markup(html, "<p>The card: ");
        dl2_html_format(html, "%s", dl2_json_get_text(card, "name", "unknown"));
        const double memory = dl2_json_get_real(card, "memory_bytes", NAN);
        if (memory > 0)
            dl2_html_format(html, ", %s of memory", human_bytes(memory, text));
        dl2_html_format(html, "; driver %s.", dl2_json_get_text(card, "driver", "unknown"));
        dl2_html_markup(html, "</p>\n");
    }
    dl2_html_markup(html, "<details><summary>Options and versions</summary>\n");
    write_json(html, "Versions", versions);
    write_json(html, "Image libraries", libraries);
    write_json(html, "Definitions of the metrics", study->definitions);
    write_json(html, "Options of the first training", arguments);
    dl2_html_markup(html, "</details>\n<details><summary>Encoders</summary>\n");
    for (size_t v = 0; v < study->variant_count; v++) {
        const json_t *encoder = json_object_get(study->variants[v].made, "encoder");
        if (encoder)
            write_json(html, study->variants[v].name, encoder);
    }
    dl2_html_markup(html, "</details>\n");
}

void dl2_page_write(const struct dl2_page *page, struct dl2_html *html)
{
    const struct dl2_study *study = page->study;
    dl2_html_markup(html,
                    "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'/>\n<meta "
                    "name='viewport' content='width=device-width, initial-scale=1'/>\n<title>");
    dl2_html_format(html, "How far can %s be compressed?", page->title);
    dl2_html_markup(html, "</title>\n<style>");
    dl2_html_markup(html, style);
    write_dark_plots(html);
    dl2_html_markup(html, "</style></head>\n<body><main>\n");
    dl2_html_element(html, "h1", "How far can %s be compressed?", page->title);

    dl2_html_markup(html, "<p class='lead'>");
    const size_t raw = dl2_study_find(study, "raw");
    char text[32];
    if (raw < study->variant_count && isfinite(study->variants[raw].bytes) &&
        isfinite(study->variants[raw].images))
        dl2_html_format(html, "%.0f images of %s, ", study->variants[raw].images,
                        human_bytes(study->variants[raw].bytes, text));
    if (study->variant_count)
        dl2_html_format(html, "%zu variant%s, %zu training%s.", study->variant_count - 1,
                        study->variant_count == 2 ? "" : "s", study->run_count,
                        study->run_count == 1 ? "" : "s");
    dl2_html_markup(html, "</p>\n");
    if (has_failures(study)) {
        dl2_html_markup(html, "<p class='warning'>");
        if (study->broken_count + study->unfinished_count)
            dl2_html_format(html, "%zu result%s could not be used. ",
                            study->broken_count + study->unfinished_count,
                            study->broken_count + study->unfinished_count == 1 ? "" : "s");
        if (study->left_out_count)
            dl2_html_format(html,
                            "%zu result%s left out, being of another study than this one or "
                            "not comparable. ",
                            study->left_out_count, study->left_out_count == 1 ? " is" : "s are");
        if (study->failure_count)
            dl2_html_format(html, "%zu thing%s went wrong with images on the way. ",
                            study->failure_count, study->failure_count == 1 ? "" : "s");
        dl2_html_markup(html, "<a href='#failures'>See what and why.</a></p>\n");
    }
    write_answer(html, page);
    write_variants(html, page);
    write_plots(
        html, page, DL2_PLOT_ACCURACY, "Accuracy",
        "Bars are 95% intervals over seeds, of each variant by itself. The line: the original; "
        "shaded: the tolerance below it. Numbers are qualities.");
    write_plots(html, page, DL2_PLOT_RATE_DISTORTION, "Rate and distortion", NULL);
    if (page->plots->problem[0])
        dl2_html_element(html, "p class='warning'", "%s", page->plots->problem);
    write_training(html, page);
    write_throughput(html, page);
    write_failures(html, page);
    write_making(html, page);
    dl2_html_markup(html, "<footer>Written by dl2-report.</footer>\n</main></body></html>\n");
}
