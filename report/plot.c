/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/plot.h"

#include "common/file.h"
#include "common/json.h"

#include <math.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

#define INK          "#3a4048"
#define SOFT_INK     "#5b616b"
#define AXIS         "#8a8f98"
#define GRID         "#e6e8eb"
#define BAND         "#eef3ee"
#define MOST_SAMPLES 10000 /* of a timeline */
#define HEIGHT       360   /* of most plots, pixels */

const struct dl2_plot_colour dl2_plot_colours[] = {
    {INK, "#d5d9df"},       {SOFT_INK, "#a3aab5"},  {AXIS, "#6b7280"},      {GRID, "#2b3038"},
    {BAND, "#1d2a23"},      {"#2f6fde", "#6ea0f5"}, {"#d9730d", "#f0a04b"}, {"#14895c", "#4cc492"},
    {"#8f4fc4", "#bb8be6"}, {"#b8336a", "#ec7fa8"}, {"#0e7f94", "#4fbfd4"}, {"#8a6d1a", "#cdb05a"},
    {"#c2410c", "#f0825a"}, {"#6b8f1a", "#a6cc52"}, {NULL, NULL},
};

/* One colour a codec, the same in all plots; others take what is left in turn. */
static const char *codec_colour(const char *codec, size_t number)
{
    static const struct {
        const char *codec, *colour;
    } known[] = {{"jpeg", "#2f6fde"}, {"webp", "#d9730d"}, {"avif", "#14895c"},
                 {"jp2", "#8f4fc4"},  {"png", "#b8336a"},  {"ppm", "#8a6d1a"}};
    static const char *const others[] = {"#0e7f94", "#c2410c", "#6b8f1a"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].codec, codec) == 0)
            return known[i].colour;
    return others[number % (sizeof others / sizeof *others)];
}

/* From strong compression to weak. */
static const char *const ramp[] = {"#c2410c", "#d9730d", "#8a6d1a", "#6b8f1a", "#14895c",
                                   "#0e7f94", "#2f6fde", "#8f4fc4", "#b8336a"};

/* ---- Text that grows */

struct text {
    struct dl2_bytes bytes;
    struct dl2_error *error;
    int status; /* sticks */
};

static void emit(struct text *text, const char *format, ...) DL2_PRINTF(2, 3);
static void emit(struct text *text, const char *format, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length >= (int)sizeof line)
        length = sizeof line - 1;
    if (text->status == DL2_OK && length > 0)
        text->status = dl2_bytes_append(&text->bytes, line, (size_t)length, text->error);
}

/* A number for a data file; gnuplot reads NaN as missing. */
static void add_number(struct text *text, double value)
{
    if (isfinite(value))
        emit(text, "%.10g ", value);
    else
        emit(text, "NaN ");
}

/* Makes a name safe for a script or data file: no blanks, no quotes, nothing that gnuplot
 * expands. */
static const char *plain(const char *name, char *out, size_t size)
{
    size_t i = 0;
    for (; name[i] && i + 1 < size; i++) {
        const char c = name[i];
        const bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '+';
        out[i] = ok ? c : '_';
    }
    out[i] = '\0';
    return out;
}

/* ---- Making one plot */

struct sheet { /* a plot being written */
    struct text data, script;
    size_t indices; /* blocks in the data file */
    size_t curves;  /* in the plot command */
};

static void begin_sheet(struct sheet *sheet, struct dl2_plot *plot, const char *columns, int height,
                        struct dl2_error *error)
{
    *sheet = (struct sheet){{DL2_BYTES_INIT, error, DL2_OK}, {DL2_BYTES_INIT, error, DL2_OK}, 0, 0};
    emit(&sheet->data, "# %s\n# %s\n", plot->title, columns);
    char identifier[128]; /* prefix of the ids in the SVG */
    snprintf(identifier, sizeof identifier, "%s", plot->name);
    for (char *c = identifier; *c; c++)
        if (*c == '-' || *c == '.' || *c == '+')
            *c = '_';
    emit(&sheet->script,
         "# %s\n# Run it in this folder: gnuplot %s.gp\n"
         "set terminal svg size 560,%d dynamic noenhanced font 'sans-serif,13' "
         "background '#ffffff' name '%s'\n"
         "set output '%s.svg'\n"
         "set border 3 linecolor rgb '" AXIS "' linewidth 1\n"
         "set tics nomirror scale 0.4 textcolor rgb '" SOFT_INK "'\n"
         "set grid ytics linecolor rgb '" GRID "' linetype 1 linewidth 1\n"
         "set key outside top left horizontal Left reverse samplen 2 textcolor rgb '" INK "'\n"
         "set offsets graph 0.03, graph 0.03, graph 0.08, graph 0.06\n"
         "set bars 0.6\n",
         plot->title, plot->name, height, identifier, plot->name);
}

static void label_axes(struct sheet *sheet, const char *x, const char *y)
{
    emit(&sheet->script,
         "set xlabel '%s' textcolor rgb '" SOFT_INK "'\nset ylabel '%s' textcolor rgb '" SOFT_INK
         "'\n",
         x, y);
}

static void begin_block(struct sheet *sheet, const char *name)
{
    char clean[256];
    emit(&sheet->data, "%s# %s\n", sheet->indices ? "\n\n" : "", plain(name, clean, sizeof clean));
    sheet->indices++;
}

/* One more curve of the plot command: "index I using ..." of the plot's own data file. */
static void add_curve(struct sheet *sheet, const struct dl2_plot *plot, const char *format, ...)
    DL2_PRINTF(3, 4);
static void add_curve(struct sheet *sheet, const struct dl2_plot *plot, const char *format, ...)
{
    char rest[768];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(rest, sizeof rest, format, arguments);
    va_end(arguments);
    emit(&sheet->script, "%s '%s.dat' index %zu %s", sheet->curves ? ", \\\n    " : "plot",
         plot->name, sheet->indices - 1, rest);
    sheet->curves++;
}

static int replace_all(struct dl2_bytes *bytes, const char *from, const char *to,
                       struct dl2_error *error)
{
    struct dl2_bytes out = DL2_BYTES_INIT;
    const size_t length = strlen(from);
    const char *at = (const char *)bytes->data, *end = at + bytes->size;
    int status = DL2_OK;
    while (status == DL2_OK && at < end) {
        const char *hit = memmem(at, (size_t)(end - at), from, length);
        status = dl2_bytes_append(&out, at, (size_t)((hit ? hit : end) - at), error);
        if (hit && status == DL2_OK)
            status = dl2_bytes_append(&out, to, strlen(to), error);
        at = hit ? hit + length : end;
    }
    dl2_bytes_free(bytes);
    *bytes = out;
    return status;
}

/* Drops what stands from `open` to `close`, both included, wherever that is. */
static void drop_all(struct dl2_bytes *bytes, const char *open, const char *close)
{
    char *data = (char *)bytes->data;
    size_t from = 0;
    while (from < bytes->size) {
        char *start = memmem(data + from, bytes->size - from, open, strlen(open));
        if (!start)
            return;
        char *stop = memmem(start, (size_t)(data + bytes->size - start), close, strlen(close));
        if (!stop)
            return;
        stop += strlen(close);
        memmove(start, stop, (size_t)(data + bytes->size - stop));
        bytes->size -= (size_t)(stop - start);
        from = (size_t)(start - data);
    }
}

/* Makes gnuplot's file fit to stand in a page with others of its kind: ids
 * of its own, no tooltips. */
static int embed(struct dl2_plot *plot, struct dl2_error *error)
{
    static const char *const shared[] = {"gpPt", "gpDot", "textbox", "greybox", "gnuplot_canvas"};
    char own[192];
    drop_all(&plot->svg, "<?xml", "?>");
    drop_all(&plot->svg, "<title>", "</title>");
    drop_all(&plot->svg, "<desc>", "</desc>");
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
        snprintf(own, sizeof own, "%s-%s", plot->name, shared[i]);
        DL2_TRY(replace_all(&plot->svg, shared[i], own, error));
    }
    return DL2_OK;
}

/* Runs the script in `folder`. What gnuplot complains of is thrown away: its status counts. */
static bool run_gnuplot(const char *gnuplot, const char *folder, const char *name)
{
    char script[160];
    snprintf(script, sizeof script, "%s.gp", name);
    char *arguments[] = {"sh",
                         "-c",
                         "cd \"$1\" && exec \"$2\" \"$3\" 2>/dev/null",
                         "sh",
                         (char *)folder,
                         (char *)gnuplot,
                         script,
                         NULL};
    pid_t child;
    if (posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ) != 0)
        return false;
    int status;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int write_file(const char *folder, const char *name, const char *extension,
                      const struct text *text)
{
    if (text->status < 0)
        return text->status;
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.%s", folder, name, extension);
    return dl2_file_write(path, text->bytes.data, text->bytes.size, text->error);
}

struct maker {
    const struct dl2_study *study;
    const struct dl2_analysis *analyses;
    const char *folder, *gnuplot;
    struct dl2_plots *plots;
    struct dl2_error *error;
};

/* Writes the sheet, draws it, and keeps it in the list; frees the sheet. */
static int finish_plot(struct maker *maker, struct sheet *sheet, struct dl2_plot *plot)
{
    emit(&sheet->script, "\n");
    int status = write_file(maker->folder, plot->name, "dat", &sheet->data);
    if (status == DL2_OK)
        status = write_file(maker->folder, plot->name, "gp", &sheet->script);
    dl2_bytes_free(&sheet->data.bytes);
    dl2_bytes_free(&sheet->script.bytes);
    DL2_TRY(status);

    struct dl2_plots *plots = maker->plots;
    struct dl2_plot *grown = dl2_realloc(plots->items, plots->count + 1, sizeof *grown);
    if (!grown)
        return dl2_error_set(maker->error, DL2_ERR_MEMORY, "no memory for the plots");
    plots->items = grown;
    struct dl2_plot *kept = &grown[plots->count++];
    *kept = *plot;
    if (plots->problem[0]) /* as before, so it'd be again */
        return DL2_OK;
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.svg", maker->folder, plot->name);
    remove(path);
    if (!run_gnuplot(maker->gnuplot, maker->folder, plot->name) ||
        dl2_file_read(path, 1 << 26, &kept->svg, NULL) < 0) {
        dl2_bytes_free(&kept->svg);
        snprintf(plots->problem, sizeof plots->problem,
                 "The plots could not be drawn: '%s %s.gp' in %s failed. Is gnuplot installed "
                 "(Debian: gnuplot-nox)? Their data and scripts are there.",
                 maker->gnuplot, plot->name, maker->folder);
        return DL2_OK;
    }
    return embed(kept, maker->error);
}

/* ---- The plots */

/* Is `v` the first of its codec? The original isn't of any. */
static bool starts_codec(const struct dl2_study *study, size_t v)
{
    return strcmp(study->variants[v].name, "raw") != 0 &&
           (v == 0 || strcmp(study->variants[v].codec, study->variants[v - 1].codec) != 0);
}

static int plot_rate_distortion(struct maker *maker, const char *name, const char *what,
                                const char *axis, size_t field)
{
    const struct dl2_study *study = maker->study;
    struct dl2_plot plot = {.kind = DL2_PLOT_RATE_DISTORTION};
    snprintf(plot.name, sizeof plot.name, "%s", name);
    snprintf(plot.title, sizeof plot.title, "%s against bits per pixel, by codec and quality",
             what);
    struct sheet sheet;
    begin_sheet(&sheet, &plot, "bits-per-pixel value quality variant", HEIGHT, maker->error);
    label_axes(&sheet, "bits per pixel", axis);
    emit(&sheet.script, "set xrange [0:*]\n");
    for (size_t v = 0, codecs = 0; v < study->variant_count; v++) {
        if (!starts_codec(study, v))
            continue;
        const char *codec = study->variants[v].codec;
        struct text points = {DL2_BYTES_INIT, maker->error, DL2_OK};
        size_t count = 0;
        for (size_t i = v; i < study->variant_count; i++) {
            const struct dl2_study_variant *variant = &study->variants[i];
            if (strcmp(variant->codec, codec) != 0)
                break;
            const double value = *(const double *)((const char *)variant + field);
            if (!isfinite(value) || !isfinite(variant->bits_per_pixel))
                continue;
            char clean[256];
            add_number(&points, variant->bits_per_pixel);
            add_number(&points, value);
            emit(&points, "%d %s\n", variant->quality, plain(variant->name, clean, sizeof clean));
            count++;
        }
        if (count && points.status == DL2_OK) {
            char clean[256];
            const char *colour = codec_colour(codec, codecs++);
            begin_block(&sheet, codec);
            sheet.data.status = dl2_bytes_append(&sheet.data.bytes, points.bytes.data,
                                                 points.bytes.size, maker->error);
            add_curve(&sheet, &plot,
                      "using 1:2 with linespoints linecolor rgb '%s' linewidth 2 pointtype 7 "
                      "pointsize 0.55 title '%s'",
                      colour, plain(codec, clean, sizeof clean));
            add_curve(
                &sheet, &plot,
                "using 1:2:3 with labels right offset -0.4,0.6 font ',10' textcolor rgb '" SOFT_INK
                "' notitle");
        }
        dl2_bytes_free(&points.bytes);
        DL2_TRY(points.status);
    }
    if (sheet.curves)
        return finish_plot(maker, &sheet, &plot);
    dl2_bytes_free(&sheet.data.bytes);
    dl2_bytes_free(&sheet.script.bytes);
    return DL2_OK;
}

enum axis { AXIS_BYTES, AXIS_LOAD, AXIS_TRAIN };

static double axis_value(const struct maker *maker, size_t arch, size_t v, enum axis axis)
{
    const struct dl2_study_variant *variant = &maker->study->variants[v];
    switch (axis) {
    case AXIS_BYTES:
        return 100 * variant->ratio;
    case AXIS_LOAD:
        return variant->load_rate;
    default:
        return maker->analyses[arch].comparisons[v].train_rate.mean;
    }
}

static int plot_accuracy(struct maker *maker, size_t arch, enum axis axis)
{
    /* Rates of trainings that shared a machine are no measure of the variants. */
    if (axis == AXIS_TRAIN && maker->analyses[arch].shared)
        return DL2_OK;
    static const struct {
        const char *name, *title, *label;
    } texts[] = {{"bytes", "size", "bytes, % of the original''s (logarithmic)"},
                 {"load", "the input pipeline's speed", "input pipeline, images a second and core"},
                 {"train", "training speed", "training, images a second"}};
    const struct dl2_study *study = maker->study;
    const struct dl2_analysis *analysis = &maker->analyses[arch];
    char clean[256];
    struct dl2_plot plot = {.kind = DL2_PLOT_ACCURACY, .arch = arch};
    char arch_name[64];
    snprintf(plot.name, sizeof plot.name, "accuracy-%s-%s", texts[axis].name,
             plain(study->archs[arch], arch_name, sizeof arch_name));
    snprintf(plot.title, sizeof plot.title, "Top-1 accuracy against %s", texts[axis].title);
    struct sheet sheet;
    begin_sheet(&sheet, &plot, "x top1 half-width-of-95%-interval quality variant", HEIGHT,
                maker->error);
    label_axes(&sheet, texts[axis].label, "top-1 accuracy, %");
    double least = INFINITY, most = 0;
    for (size_t v = 0; v < study->variant_count; v++) {
        const double x = axis_value(maker, arch, v, axis);
        if (x > 0 && isfinite(x) && isfinite(analysis->comparisons[v].top1.mean)) {
            least = x < least ? x : least;
            most = x > most ? x : most;
        }
    }
    if (axis == AXIS_BYTES)
        emit(&sheet.script,
             "set logscale x\nset xtics (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)\n"
             "set xrange [%.8g:%.8g]\nset offsets 0, 0, graph 0.08, graph 0.06\n",
             least / 1.3, most * 1.2);
    else if (least == most)
        emit(&sheet.script, "set xrange [%.8g:%.8g]\n", 0.9 * least, 1.1 * most);
    const size_t raw = dl2_study_find(study, "raw");
    const double original = raw < study->variant_count ? analysis->comparisons[raw].top1.mean : NAN;
    if (isfinite(original))
        emit(&sheet.script,
             "set object 1 rectangle from graph 0, first %.8g to graph 1, first %.8g behind "
             "fillcolor rgb '" BAND "' fillstyle solid noborder # the tolerance\n"
             "set arrow 1 from graph 0, first %.8g to graph 1, first %.8g nohead dashtype (6,4) "
             "linecolor rgb '" AXIS "' # the original\n",
             original - analysis->question.tolerance, original, original, original);
    for (size_t v = 0, codecs = 0; v < study->variant_count; v++) {
        const char *codec = study->variants[v].codec;
        if (v != raw && !starts_codec(study, v))
            continue;
        size_t count = 0;
        bool intervals = false;
        for (size_t i = v; i < study->variant_count && strcmp(study->variants[i].codec, codec) == 0;
             i++) {
            const struct dl2_comparison *comparison = &analysis->comparisons[i];
            const double x = axis_value(maker, arch, i, axis);
            if (!isfinite(x) || !(x > 0) || !isfinite(comparison->top1.mean))
                continue;
            if (count++ == 0)
                begin_block(&sheet, codec);
            add_number(&sheet.data, x);
            add_number(&sheet.data, comparison->top1.mean);
            add_number(&sheet.data, comparison->top1.half);
            intervals |= isfinite(comparison->top1.half);
            if (i == raw)
                emit(&sheet.data, "original raw\n");
            else
                emit(&sheet.data, "%d %s\n", study->variants[i].quality,
                     plain(study->variants[i].name, clean, sizeof clean));
        }
        if (!count)
            continue;
        const char *colour = v == raw ? INK : codec_colour(codec, codecs++);
        if (intervals) /* first: gnuplot clears the line below each bar's point */
            add_curve(&sheet, &plot,
                      "using 1:2:3 with yerrorbars linecolor rgb '%s' linewidth 1 pointtype 0 "
                      "notitle",
                      colour);
        add_curve(&sheet, &plot,
                  "using 1:2 with %s linecolor rgb '%s' %s pointtype 7 pointsize 0.6 title '%s'",
                  v == raw ? "points" : "linespoints", colour, v == raw ? "" : "linewidth 2",
                  v == raw ? "original" : plain(codec, clean, sizeof clean));
        if (v != raw) /* beside the curve, which rises with size and falls with speed */
            add_curve(&sheet, &plot,
                      "using 1:2:4 with labels %s,0.7 font ',10' textcolor rgb '" SOFT_INK
                      "' notitle",
                      axis == AXIS_BYTES ? "right offset -0.6" : "left offset 0.6");
    }
    if (sheet.curves)
        return finish_plot(maker, &sheet, &plot);
    dl2_bytes_free(&sheet.data.bytes);
    dl2_bytes_free(&sheet.script.bytes);
    return DL2_OK;
}

static size_t most_epochs(const struct dl2_study *study, const char *arch)
{
    size_t epochs = 0;
    for (size_t i = 0; i < study->run_count; i++)
        if (strcmp(study->runs[i].arch, arch) == 0 && study->runs[i].epochs > epochs)
            epochs = study->runs[i].epochs;
    return epochs;
}

/* Mean over the seeds of a variant's validation accuracy after each epoch. */
static bool add_curve_points(struct sheet *sheet, const struct dl2_study *study, size_t v,
                             const char *arch)
{
    size_t epochs = 0;
    for (size_t i = 0; i < study->run_count; i++)
        if (study->runs[i].variant == v && strcmp(study->runs[i].arch, arch) == 0 &&
            study->runs[i].epochs > epochs)
            epochs = study->runs[i].epochs;
    if (epochs == 0)
        return false;
    begin_block(sheet, study->variants[v].name);
    for (size_t e = 0; e < epochs; e++) {
        double sum = 0;
        size_t count = 0;
        for (size_t i = 0; i < study->run_count; i++) {
            const struct dl2_study_run *run = &study->runs[i];
            if (run->variant == v && strcmp(run->arch, arch) == 0 && e < run->epochs &&
                isfinite(run->val_top1[e])) {
                sum += run->val_top1[e];
                count++;
            }
        }
        if (count == 0) /* not validated after this one */
            continue;
        emit(&sheet->data, "%zu ", e + 1);
        add_number(&sheet->data, 100 * sum / (double)count);
        emit(&sheet->data, "\n");
    }
    return true;
}

/* One plot a codec, so that the curves can be told apart. */
static int plot_curves(struct maker *maker, size_t arch, size_t first)
{
    const struct dl2_study *study = maker->study;
    const char *codec = study->variants[first].codec;
    char clean[2][48];
    struct dl2_plot plot = {.kind = DL2_PLOT_CURVES, .arch = arch};
    plain(study->archs[arch], clean[0], sizeof clean[0]);
    plain(codec, clean[1], sizeof clean[1]);
    snprintf(plot.name, sizeof plot.name, "curves-%s-%s", clean[0], clean[1]);
    snprintf(plot.title, sizeof plot.title, "Validation top-1 by epoch: %s", clean[1]);
    struct sheet sheet;
    begin_sheet(&sheet, &plot, "epoch top1", HEIGHT, maker->error);
    label_axes(&sheet, "epoch", "validation top-1, %");
    emit(&sheet.script, "set key outside right center vertical\nset offsets 0, 0, graph 0.04, 0\n"
                        "set style data lines\n");
    const size_t epochs = most_epochs(study, study->archs[arch]);
    emit(&sheet.script, "set xtics 0, %d\n",
         epochs <= 10    ? 1
         : epochs <= 20  ? 2
         : epochs <= 50  ? 5
         : epochs <= 100 ? 10
                         : 50);
    size_t last = first, shown = 0;
    while (last < study->variant_count && strcmp(study->variants[last].codec, codec) == 0)
        last++;
    for (size_t v = first; v < last; v++) {
        if (!add_curve_points(&sheet, study, v, study->archs[arch]))
            continue;
        const size_t colours = sizeof ramp / sizeof *ramp;
        const size_t colour =
            last - first > 1 ? (v - first) * (colours - 1) / (last - first - 1) : 6;
        char name[256];
        add_curve(&sheet, &plot, "using 1:2 linecolor rgb '%s' linewidth 2 title '%s'",
                  ramp[colour], plain(study->variants[v].name, name, sizeof name));
        shown++;
    }
    const size_t raw = dl2_study_find(study, "raw");
    if (shown && raw < study->variant_count &&
        add_curve_points(&sheet, study, raw, study->archs[arch]))
        add_curve(&sheet, &plot,
                  "using 1:2 linecolor rgb '" INK "' linewidth 2 dashtype (6,4) title 'original'");
    if (shown)
        return finish_plot(maker, &sheet, &plot);
    dl2_bytes_free(&sheet.data.bytes);
    dl2_bytes_free(&sheet.script.bytes);
    return DL2_OK;
}

/* ---- What a run did, second by second */

enum { IMAGES_PANEL, PERCENT_PANEL, MEMORY_PANEL, POWER_PANEL, PANELS };

static const struct {
    enum { IMAGES_RATE, WAIT_PERCENT, CPU_PERCENT, CARD_PERCENT, PROCESS_GB, CARD_GB, WATTS } curve;
    int panel;
    const char *title, *colour;
} timeline_curves[] = {
    {IMAGES_RATE, IMAGES_PANEL, "", "#2f6fde"},
    {CPU_PERCENT, PERCENT_PANEL, "processors", "#2f6fde"},
    {CARD_PERCENT, PERCENT_PANEL, "card", "#14895c"},
    {WAIT_PERCENT, PERCENT_PANEL, "data wait", "#c2410c"},
    {PROCESS_GB, MEMORY_PANEL, "process", "#2f6fde"},
    {CARD_GB, MEMORY_PANEL, "card", "#14895c"},
    {WATTS, POWER_PANEL, "", "#d9730d"},
};
#define TIMELINE_CURVES (sizeof timeline_curves / sizeof *timeline_curves)

static double timeline_at(const json_t *timeline, const char *column, size_t i)
{
    const json_t *value = json_array_get(json_object_get(timeline, column), i);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* How fast a column rises from the sample before to this one; from zero to the first. */
static double timeline_slope(const json_t *timeline, const char *column, size_t i)
{
    const double dt =
        timeline_at(timeline, "seconds", i) - (i ? timeline_at(timeline, "seconds", i - 1) : 0);
    const double d =
        timeline_at(timeline, column, i) - (i ? timeline_at(timeline, column, i - 1) : 0);
    return dt > 0 ? d / dt : NAN;
}

static double timeline_value(const struct dl2_study_run *run, const json_t *timeline, int curve,
                             size_t i)
{
    const json_t *machine = json_object_get(run->report, "machine");
    switch (curve) {
    case IMAGES_RATE:
        return timeline_slope(timeline, "images", i);
    case WAIT_PERCENT: /* a long wait is counted when it is over */
        return fmin(100, 100 * timeline_slope(timeline, "data_wait_seconds", i));
    case CPU_PERCENT:
        return timeline_at(timeline, "cpu_percent", i) / dl2_json_get_real(machine, "cores", NAN);
    case CARD_PERCENT:
        return timeline_at(timeline, "card_percent", i);
    case PROCESS_GB:
        return timeline_at(timeline, "rss_bytes", i) / 1e9;
    case CARD_GB:
        return timeline_at(timeline, "card_memory_bytes", i) / 1e9;
    default:
        return timeline_at(timeline, "card_watts", i);
    }
}

/* The largest of 1, 2 and 5 times a power of ten that is not above `step`; 1 for none. */
static double round_step(double step)
{
    if (!(step > 0) || !isfinite(step))
        return 1;
    const double power = pow(10, floor(log10(step)));
    return power * (step >= 5 * power ? 5 : step >= 2 * power ? 2 : 1);
}

static bool is_of_card(int curve)
{
    return curve == CARD_PERCENT || curve == CARD_GB || curve == WATTS;
}

/* The timeline of one network on one variant: the run with the lowest seed. */
static int plot_timeline(struct maker *maker, size_t arch, size_t v)
{
    static const char *const labels[] = {"images/s", "% of time", "memory, GB", "power, W"};
    const struct dl2_study *study = maker->study;
    const struct dl2_study_run *run = NULL;
    for (size_t i = 0; i < study->run_count && !run; i++)
        if (study->runs[i].variant == v && strcmp(study->runs[i].arch, study->archs[arch]) == 0)
            run = &study->runs[i];
    const json_t *timeline = run ? json_object_get(run->report, "timeline") : NULL;
    const size_t all = json_array_size(json_object_get(timeline, "seconds"));
    const size_t count = all < MOST_SAMPLES ? all : MOST_SAMPLES;
    const double end = count ? timeline_at(timeline, "seconds", count - 1) : NAN;
    if (count < 2 || !(end > 0))
        return DL2_OK;
    const bool minutes = end > 600;

    bool known[TIMELINE_CURVES] = {false}, panel[PANELS] = {false};
    double most[PANELS] = {0};
    for (size_t c = 0; c < TIMELINE_CURVES; c++) {
        const int p = timeline_curves[c].panel;
        if (is_of_card(timeline_curves[c].curve) && dl2_study_run_shared(run))
            continue; /* the card's figures are of all that ran on it */
        for (size_t i = 0; i < count; i++) {
            const double value = timeline_value(run, timeline, timeline_curves[c].curve, i);
            known[c] |= isfinite(value);
            most[p] = isfinite(value) ? fmax(most[p], value) : most[p];
        }
        panel[p] |= known[c];
    }
    most[PERCENT_PANEL] = 100;
    int panels = 0, drawn = 0;
    for (int p = 0; p < PANELS; p++)
        panels += panel[p];
    if (!panels)
        return DL2_OK;

    char clean[2][48];
    struct dl2_plot plot = {.kind = DL2_PLOT_TIMELINE, .arch = arch, .variant = v};
    plain(study->archs[arch], clean[0], sizeof clean[0]);
    plain(study->variants[v].name, clean[1], sizeof clean[1]);
    snprintf(plot.name, sizeof plot.name, "timeline-%s-%s", clean[0], clean[1]);
    snprintf(plot.title, sizeof plot.title, "Training on %s, seed %llu",
             strcmp(clean[1], "raw") ? clean[1] : "the original", (unsigned long long)run->seed);
    struct sheet sheet;
    const int height = 46 + 110 * panels;
    begin_sheet(&sheet, &plot,
                "time images/s processors-% card-% waiting-% process-GB card-GB power-W", height,
                maker->error);
    begin_block(&sheet, study->variants[v].name);
    for (size_t i = 0; i < count; i++) {
        add_number(&sheet.data, timeline_at(timeline, "seconds", i) / (minutes ? 60 : 1));
        for (size_t c = 0; c < TIMELINE_CURVES; c++)
            add_number(&sheet.data,
                       known[c] ? timeline_value(run, timeline, timeline_curves[c].curve, i) : NAN);
        emit(&sheet.data, "\n");
    }
    emit(&sheet.script,
         "set multiplot\nset lmargin at screen 0.15\nset rmargin at screen 0.78\n"
         "set offsets 0, 0, 0, 0\nset xrange [0:%.8g]\nset style data lines\n"
         "set key at screen 0.79, graph 1 left top vertical Left reverse samplen 1.2\n"
         "set format x ''\n",
         end / (minutes ? 60 : 1));
    for (int p = 0; p < PANELS; p++) {
        if (!panel[p])
            continue;
        const int top = height - 12 - 110 * drawn++;
        emit(&sheet.script,
             "set tmargin at screen %.4f\nset bmargin at screen %.4f\n"
             "set ylabel '%s' textcolor rgb '" SOFT_INK "'\nset yrange [0:%.8g]\nset ytics %.8g\n",
             (double)top / height, (double)(top - 88) / height, labels[p],
             most[p] > 0 ? most[p] * (p == PERCENT_PANEL ? 1 : 1.05) : 1, round_step(most[p] / 2));
        if (drawn == panels)
            emit(&sheet.script,
                 "set format x '%%g'\nset xlabel '%s' textcolor rgb '" SOFT_INK "'\n",
                 minutes ? "minutes" : "seconds");
        sheet.curves = 0;
        for (size_t c = 0; c < TIMELINE_CURVES; c++)
            if (known[c] && timeline_curves[c].panel == p)
                add_curve(&sheet, &plot, "using 1:%zu linecolor rgb '%s' linewidth 1.5 %s%s%s",
                          c + 2, timeline_curves[c].colour,
                          timeline_curves[c].title[0] ? "title '" : "notitle",
                          timeline_curves[c].title, timeline_curves[c].title[0] ? "'" : "");
        emit(&sheet.script, "\n");
    }
    emit(&sheet.script, "unset multiplot");
    return finish_plot(maker, &sheet, &plot);
}

int dl2_plots_make(const struct dl2_study *study, const struct dl2_analysis *analyses,
                   const char *folder, const char *gnuplot, struct dl2_plots *plots,
                   struct dl2_error *error)
{
    *plots = (struct dl2_plots){NULL, 0, ""};
    struct maker maker = {study, analyses, folder, gnuplot, plots, error};
    DL2_TRY(dl2_make_folders(folder, error));
    DL2_TRY(plot_rate_distortion(&maker, "rate-psnr", "PSNR", "PSNR of RGB, dB",
                                 offsetof(struct dl2_study_variant, psnr_rgb)));
    DL2_TRY(plot_rate_distortion(&maker, "rate-ssim", "SSIM", "SSIM of luma",
                                 offsetof(struct dl2_study_variant, ssim)));
    for (size_t arch = 0; arch < study->arch_count; arch++) {
        for (int axis = AXIS_BYTES; axis <= AXIS_TRAIN; axis++)
            DL2_TRY(plot_accuracy(&maker, arch, (enum axis)axis));
        for (size_t v = 0; v < study->variant_count; v++)
            if (starts_codec(study, v))
                DL2_TRY(plot_curves(&maker, arch, v));
        for (size_t v = 0; v < study->variant_count; v++)
            DL2_TRY(plot_timeline(&maker, arch, v));
    }
    return DL2_OK;
}

void dl2_plots_free(struct dl2_plots *plots)
{
    for (size_t i = 0; i < plots->count; i++)
        dl2_bytes_free(&plots->items[i].svg);
    free(plots->items);
    *plots = (struct dl2_plots){NULL, 0, ""};
}
