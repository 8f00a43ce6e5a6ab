/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/page/plot.h"

#include "common/file.h"
#include "common/keep.h"
#include "common/scope.h"

#include <math.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

/* Whose a color is, the same in all plots; "": of the codecs that have none of their own. */
static const struct codec_color {
    const char *codec, *color;
} codec_colors[] = {
    {"jpeg", DL2_PLOT_BLUE},  {"webp", DL2_PLOT_ORANGE},
    {"avif", DL2_PLOT_GREEN}, {"jp2", DL2_PLOT_VIOLET},
    {"png", DL2_PLOT_PINK},   {"", DL2_PLOT_TEAL},
    {"ppm", DL2_PLOT_BROWN},  {"", DL2_PLOT_RED},
    {"", DL2_PLOT_LIME},      {NULL, NULL},
};

/* The first row of a codec from `row` on; NULL: there is none. */
static const struct codec_color *find_color(const struct codec_color *row, const char *codec)
{
    while (row->codec && strcmp(row->codec, codec) != 0)
        row++;
    return row->codec ? row : NULL;
}

const char *dl2_plot_codec_color(const char *codec, size_t number)
{
    const struct codec_color *own = *codec ? find_color(codec_colors, codec) : NULL;
    if (own)
        return own->color;
    for (size_t i = 0; i <= number; i++) {
        own = find_color(own ? own + 1 : codec_colors, "");
        own = own ? own : find_color(codec_colors, "");
    }
    return own->color;
}

const char *dl2_plot_ramp(size_t i, size_t count)
{
    static const char *const ramp[] = {DL2_PLOT_RED,  DL2_PLOT_ORANGE, DL2_PLOT_BROWN,
                                       DL2_PLOT_LIME, DL2_PLOT_GREEN,  DL2_PLOT_TEAL,
                                       DL2_PLOT_BLUE, DL2_PLOT_VIOLET, DL2_PLOT_PINK};
    const size_t colors = sizeof ramp / sizeof *ramp;
    return ramp[count > 1 ? i * (colors - 1) / (count - 1) : 6];
}

static void append(struct dl2_bytes *bytes, const char *format, va_list arguments)
{
    char line[2048];
    int length = vsnprintf(line, sizeof line, format, arguments);
    if (length >= (int)sizeof line)
        length = sizeof line - 1;
    if (length > 0)
        dl2_append(bytes, line, (size_t)length);
}

void dl2_plot_script(struct dl2_plot *plot, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    append(&plot->script, format, arguments);
    va_end(arguments);
}

void dl2_plot_data(struct dl2_plot *plot, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    append(&plot->data, format, arguments);
    va_end(arguments);
}

void dl2_plot_number(struct dl2_plot *plot, double value)
{
    if (isfinite(value))
        dl2_plot_data(plot, "%.10g ", value);
    else
        dl2_plot_data(plot, "NaN ");
}

/* The frame, pixels from the picture's edges; above it is the key. */
enum { FRAME_LEFT = 86, FRAME_RIGHT = 16, FRAME_BOTTOM = 58 };
/* Sizes of the key with one row and of a further row, of an entry without its text, and of a
 * character. */
enum { KEY_HEIGHT = 40, KEY_ROW = 18, KEY_SAMPLE = 60, KEY_CHARACTER = 7 };

/* Keeps letters, digits and the characters of `more`. */
static const char *keep_characters(const char *text, const char *more, char *out, size_t size)
{
    size_t i = 0;
    for (; text[i] && i + 1 < size; i++) {
        const char c = text[i];
        const bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || strchr(more, c);
        out[i] = ok ? c : '_';
    }
    out[i] = '\0';
    return out;
}

const char *dl2_plot_plain(const char *name, char *out, size_t size)
{
    return keep_characters(name, "-.+@", out, size);
}

const char *dl2_plot_label(const char *text, char *out, size_t size)
{
    return keep_characters(text, "-.+@ ,:()/%", out, size);
}

struct dl2_plot dl2_plot_begin(const char *title, const char *columns, int height, const char *name,
                               ...)
{
    struct dl2_plot plot = {.height = height, .key_height = KEY_HEIGHT};
    char text[256];
    va_list arguments;
    va_start(arguments, name);
    vsnprintf(text, sizeof text, name, arguments);
    va_end(arguments);
    dl2_plot_plain(text, plot.name, sizeof plot.name);
    snprintf(plot.title, sizeof plot.title, "%s", title);
    for (char *c = plot.title; *c; c++) /* one line, whatever names of files are in it */
        if ((unsigned char)*c < ' ' || *c == '\\')
            *c = '_';
    dl2_plot_data(&plot, "# %s\n# %s\n", plot.title, columns);
    dl2_plot_script(
        &plot,
        "set border 3 linecolor rgb '" DL2_PLOT_AXIS "' linewidth 1\n"
        "set tics nomirror scale 0.4 textcolor rgb '" DL2_PLOT_SOFT_INK "'\n"
        "set grid ytics linecolor rgb '" DL2_PLOT_GRID "' linetype 1 linewidth 1\n"
        "set key outside top left horizontal Left reverse samplen 2 textcolor rgb '" DL2_PLOT_INK
        "'\n"
        "set offsets graph 0.03, graph 0.03, graph 0.08, graph 0.06\n"
        "set bars 0.6\n");
    return plot;
}

void dl2_plot_axes(struct dl2_plot *plot, const char *x, const char *y)
{
    dl2_plot_script(plot,
                    "set xlabel '%s' textcolor rgb '" DL2_PLOT_SOFT_INK
                    "'\nset ylabel '%s' textcolor rgb '" DL2_PLOT_SOFT_INK "'\n",
                    x, y);
}

/* ---- Labels beside points */

/* Sizes of labels, which are written at 11 pixels. */
enum { LABEL_HEIGHT = 12, CHARACTER_WIDTH = 6, POINT_RADIUS = 5 };

void dl2_plot_key(struct dl2_plot *plot, size_t entries, size_t longest)
{
    const size_t width = KEY_SAMPLE + KEY_CHARACTER * longest;
    const size_t fitting = (DL2_PLOT_WIDTH - FRAME_LEFT - FRAME_RIGHT) / width;
    const size_t columns = fitting ? fitting : 1;
    const int more = entries ? KEY_ROW * (int)((entries - 1) / columns) : 0;
    plot->height += more;
    plot->key_height += more;
    dl2_plot_script(plot, "set key maxcols %zu samplen 3 font ',11'\n", columns);
}

void dl2_plot_frame(struct dl2_plot *plot, const struct dl2_plot_range *x,
                    const struct dl2_plot_range *y)
{
    plot->x = *x;
    plot->y = *y;
    dl2_plot_script(plot,
                    "set lmargin at screen %.6g\nset rmargin at screen %.6g\n"
                    "set bmargin at screen %.6g\nset tmargin at screen %.6g\n"
                    "set offsets 0, 0, 0, 0\nset xrange [%.8g:%.8g]\nset yrange [%.8g:%.8g]\n"
                    "%s%s",
                    (double)FRAME_LEFT / DL2_PLOT_WIDTH, 1 - (double)FRAME_RIGHT / DL2_PLOT_WIDTH,
                    (double)FRAME_BOTTOM / plot->height,
                    1 - (double)plot->key_height / plot->height, x->from, x->to, y->from, y->to,
                    x->logarithmic ? "set logscale x\n" : "",
                    y->logarithmic ? "set logscale y\n" : "");
}

/* From 0 to 1 along the axis. */
static double place(const struct dl2_plot_range *range, double value)
{
    return range->logarithmic ? log(value / range->from) / log(range->to / range->from)
                              : (value - range->from) / (range->to - range->from);
}

void dl2_plot_point(struct dl2_plot *plot, double x, double y, bool joined, const char *label,
                    const char *color)
{
    plot->points = dl2_keep_more(plot->points, plot->point_count, sizeof *plot->points);
    struct dl2_plot_point *point = &plot->points[plot->point_count++];
    const double width = DL2_PLOT_WIDTH - FRAME_LEFT - FRAME_RIGHT;
    const double height = plot->height - plot->key_height - FRAME_BOTTOM;
    *point = (struct dl2_plot_point){.x = FRAME_LEFT + width * place(&plot->x, x),
                                     .y = FRAME_BOTTOM + height * place(&plot->y, y),
                                     .joined = joined,
                                     .color = color};
    if (label)
        dl2_plot_plain(label, point->label, sizeof point->label);
}

struct box { /* pixels */
    double left, right, low, high;
};

static bool holds(const struct box *box, double x, double y, double margin)
{
    return x > box->left - margin && x < box->right + margin && y > box->low - margin &&
           y < box->high + margin;
}

/* How much a label at `box` would cover. What must not be counts much more than a line. */
static double cover(const struct dl2_plot *plot, const struct box *box, const struct box *placed,
                    size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        if (placed[i].left < box->right && placed[i].right > box->left &&
            placed[i].low < box->high && placed[i].high > box->low)
            sum += 1000;
    if (box->left < FRAME_LEFT || box->right > DL2_PLOT_WIDTH || box->low < FRAME_BOTTOM ||
        box->high > plot->height - plot->key_height + LABEL_HEIGHT)
        sum += 1000;
    for (size_t i = 0; i < plot->point_count; i++) {
        const struct dl2_plot_point *point = &plot->points[i];
        if (holds(box, point->x, point->y, POINT_RADIUS - 1))
            sum += 1000;
        enum { STEPS = 40 };
        for (int step = 1; point->joined && step < STEPS; step++) {
            const double t = (double)step / STEPS, x = point->x + t * (point[-1].x - point->x);
            const double y = point->y + t * (point[-1].y - point->y);
            sum += holds(box, x, y, 3);
        }
    }
    return sum;
}

/* The label's box beside the point, in one of several directions; the first is the best. */
static struct box sidecars(const struct dl2_plot_point *point, size_t direction)
{
    static const struct {
        int x, y; /* -1, 0 or 1 */
    } directions[] = {{1, 1}, {-1, 1}, {1, -1}, {-1, -1}, {0, 1}, {0, -1}, {1, 0}, {-1, 0}};
    const double width = (double)(CHARACTER_WIDTH * strlen(point->label));
    const size_t count = sizeof directions / sizeof *directions;
    const double far = direction < count ? 1 : 2.4;
    const int dx = directions[direction % count].x, dy = directions[direction % count].y;
    const double reach = dx && dy ? 0.7 * POINT_RADIUS : POINT_RADIUS + 1;
    const double x = point->x + far * dx * (reach + 1) + (dx - 1) * width / 2;
    const double y = point->y + far * dy * (reach + LABEL_HEIGHT / 2.0);
    return (struct box){x, x + width, y - LABEL_HEIGHT / 2.0, y + LABEL_HEIGHT / 2.0};
}

void dl2_plot_labels(struct dl2_plot *plot)
{
    enum { DIRECTIONS = 16 };
    DL2_AUTO_FREE struct box *placed = dl2_room(plot->point_count, sizeof *placed, "a plot");
    size_t count = 0;
    for (size_t i = 0; i < plot->point_count; i++) {
        if (!plot->points[i].label[0])
            continue;
        double least = INFINITY;
        struct box best = {0};
        for (size_t d = 0; d < DIRECTIONS; d++) {
            const struct box box = sidecars(&plot->points[i], d);
            const double own = cover(plot, &box, placed, count);
            if (own < least) {
                least = own;
                best = box;
            }
        }
        if (least >= 1000)
            continue;
        placed[count++] = best;
        dl2_plot_script(plot,
                        "set label %zu '%s' at screen %.5f, screen %.5f center front font ',11' "
                        "textcolor rgb '%s'\n",
                        count, plot->points[i].label, (best.left + best.right) / 2 / DL2_PLOT_WIDTH,
                        (best.low + best.high) / 2 / plot->height, plot->points[i].color);
    }
}

void dl2_plot_block(struct dl2_plot *plot, const char *name)
{
    char clean[256];
    dl2_plot_data(plot, "%s# %s\n", plot->blocks ? "\n\n" : "",
                  dl2_plot_plain(name, clean, sizeof clean));
    plot->blocks++;
}

void dl2_plot_curve(struct dl2_plot *plot, const char *format, ...)
{
    dl2_plot_script(plot, "%s '%s.dat' index %zu ", plot->curves ? ", \\\n    " : "plot",
                    plot->name, plot->blocks - 1);
    va_list arguments;
    va_start(arguments, format);
    append(&plot->script, format, arguments);
    va_end(arguments);
    plot->curves++;
}

/* ---- Curves */

void dl2_curve_point(struct dl2_curve *curve, const double *numbers, size_t count, const char *note)
{
    char clean[256];
    if (curve->count++ == 0)
        dl2_plot_block(curve->plot, curve->name);
    curve->rises += curve->count > 1 && numbers[0] > curve->last;
    curve->falls += curve->count > 1 && numbers[0] < curve->last;
    curve->last = numbers[0];
    for (size_t i = 0; i < count; i++)
        dl2_plot_number(curve->plot, numbers[i]);
    dl2_plot_data(curve->plot, "%s\n", note ? dl2_plot_plain(note, clean, sizeof clean) : "");
    curve->intervals |= curve->bars && isfinite(numbers[2]);
}

static void draw_bars(const struct dl2_curve *curve)
{
    if (curve->intervals)
        dl2_plot_curve(curve->plot,
                       "using %s with yerrorbars linecolor rgb '%s' linewidth 1 pointtype 0 "
                       "notitle",
                       curve->bars, curve->color);
}

void dl2_curve_draw_band(const struct dl2_curve *curve, const char *columns, double opacity)
{
    const size_t steps = curve->count - 1;
    if (curve->intervals && steps && (curve->rises == steps || curve->falls == steps))
        dl2_plot_curve(curve->plot,
                       "using %s with filledcurves linecolor rgb '%s' fillstyle transparent solid "
                       "%.2f noborder notitle",
                       columns, curve->color, opacity);
    else
        draw_bars(curve);
}

void dl2_curve_draw_as(const struct dl2_curve *curve, const char *style)
{
    char clean[256];
    dl2_plot_curve(curve->plot,
                   "using %s with %s linecolor rgb '%s' linewidth 2 %s%s pointtype %d "
                   "pointsize %g title '%s'",
                   curve->columns ? curve->columns : "1:2", style, curve->color,
                   curve->dash ? "dashtype " : "", curve->dash ? curve->dash : "",
                   curve->point ? curve->point : 7, curve->size > 0 ? curve->size : 0.6,
                   curve->title ? curve->title : dl2_plot_plain(curve->name, clean, sizeof clean));
}

void dl2_curve_draw(const struct dl2_curve *curve)
{
    if (!curve->count)
        return;
    draw_bars(curve); /* first: gnuplot clears the line below each bar's point */
    dl2_curve_draw_as(curve, "linespoints");
}

void dl2_curve_reference(struct dl2_plot *plot, char axis, double at, double from)
{
    const char *before = axis == 'y' ? "graph 0, " : "", *after = axis == 'y' ? "" : ", graph 0";
    const char *before_end = axis == 'y' ? "graph 1, " : "";
    const char *after_end = axis == 'y' ? "" : ", graph 1";
    if (isfinite(from)) {
        dl2_plot_script(plot,
                        "set arrow 2 from %sfirst %.8g%s to %sfirst %.8g%s nohead dashtype (2,3) "
                        "linecolor rgb '" DL2_PLOT_GREEN "' # the tolerance\n",
                        before, from, after, before_end, from, after_end);
        dl2_plot_script(plot,
                        "set object 1 rectangle from %sfirst %.8g%s to %sfirst %.8g%s behind "
                        "fillcolor rgb '" DL2_PLOT_BAND
                        "' fillstyle solid noborder # the tolerance\n",
                        before, from, after, before_end, at, after_end);
    }
    dl2_plot_script(plot,
                    "set arrow 1 from %sfirst %.8g%s to %sfirst %.8g%s nohead dashtype (6,4) "
                    "linecolor rgb '" DL2_PLOT_AXIS "' # the original\n",
                    before, at, after, before_end, at, after_end);
}

/* ---- Drawing */

/* Runs FOLDER/NAME.gp in its folder. What gnuplot complains of is thrown away. False: it failed. */
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

/* Writes FOLDER/NAME.EXTENSION. */
static int save_file(const char *folder, const char *name, const char *extension,
                     const struct dl2_bytes *bytes, struct dl2_error *error)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.%s", folder, name, extension);
    return dl2_file_write(path, bytes->data, bytes->size, error);
}

static void replace_all(struct dl2_bytes *bytes, const char *from, const char *to)
{
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes out = DL2_BYTES_INIT;
    const size_t length = strlen(from);
    const char *at = (const char *)bytes->data, *end = at + bytes->size;
    while (at < end) {
        const char *hit = memmem(at, (size_t)(end - at), from, length);
        dl2_append(&out, at, (size_t)((hit ? hit : end) - at));
        if (hit)
            dl2_append_text(&out, to);
        at = hit ? hit + length : end;
    }
    dl2_bytes_swap(bytes, &out);
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
static void embed(struct dl2_bytes *svg, const char *name)
{
    static const char *const shared[] = {"gpPt", "gpDot", "textbox", "greybox", "gnuplot_canvas"};
    char own[192];
    drop_all(svg, "<?xml", "?>");
    drop_all(svg, "<title>", "</title>");
    drop_all(svg, "<desc>", "</desc>");
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
        snprintf(own, sizeof own, "%s-%s", name, shared[i]);
        replace_all(svg, shared[i], own);
    }
}

/* Writes the script with its head. */
static int write_script(const struct dl2_plotter *plotter, const struct dl2_plot *plot,
                        struct dl2_error *error)
{
    char head[1024], identifier[sizeof plot->name]; /* prefix of the ids in the SVG */
    snprintf(identifier, sizeof identifier, "%s", plot->name);
    for (char *c = identifier; *c; c++)
        if (strchr("-.+@", *c))
            *c = '_';
    snprintf(head, sizeof head,
             "# %s\n# Run it in this folder: gnuplot %s.gp\n"
             "set terminal svg size %d,%d dynamic noenhanced font 'sans-serif,13' "
             "background '#ffffff' name '%s'\nset output '%s.svg'\n",
             plot->title, plot->name, DL2_PLOT_WIDTH, plot->height, identifier, plot->name);
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes script = DL2_BYTES_INIT;
    dl2_append_text(&script, head);
    dl2_append(&script, plot->script.data, plot->script.size);
    return save_file(plotter->folder, plot->name, "gp", &script, error);
}

/* Runs the script that was written, unless gnuplot failed before: it would again. */
static void make_svg(const struct dl2_plot *plot, struct dl2_plotter *plotter,
                     struct dl2_bytes *svg)
{
    if (plotter->problem[0])
        return;
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.svg", plotter->folder, plot->name);
    remove(path);
    if (!run_gnuplot(plotter->gnuplot, plotter->folder, plot->name) ||
        dl2_file_read(path, 1 << 26, svg, NULL) < 0) {
        dl2_bytes_free(svg);
        snprintf(plotter->problem, sizeof plotter->problem,
                 "The plots could not be drawn: '%s %s.gp' in %s failed. Is gnuplot installed "
                 "(Debian: gnuplot-nox)? Their data and scripts are there.",
                 plotter->gnuplot, plot->name, plotter->folder);
        return;
    }
    embed(svg, plot->name);
}

/* ---- For LaTeX */

/* Centimetres of a page for a pixel of the screen: most plots are 14 cm wide. */
#define CENTIMETRES (14.0 / DL2_PLOT_WIDTH)

/* A text in LaTeX. */
static void append_escaped(struct dl2_bytes *bytes, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (strchr("%_&#$", text[i]) && text[i])
            dl2_append(bytes, "\\", 1);
        dl2_append(bytes, &text[i], 1);
    }
}

/* Is the text in quotes a color, a file or a format of numbers, not one that is set? */
static bool is_literal(const char *text, size_t size)
{
    static const char *const prefixes[] = {"#", "%g"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (size >= strlen(prefixes[i]) && memcmp(text, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return size > 4 && memcmp(text + size - 4, ".dat", 4) == 0;
}

/* The script with the texts in its quotes escaped; '' in quotes is two texts side by side. */
static void append_script(struct dl2_bytes *bytes, const struct dl2_bytes *script)
{
    const char *at = (const char *)script->data, *end = at + script->size;
    while (at < end) {
        const char *open = memchr(at, '\'', (size_t)(end - at));
        const char *close = open ? memchr(open + 1, '\'', (size_t)(end - open - 1)) : NULL;
        if (!close) {
            dl2_append(bytes, at, (size_t)(end - at));
            return;
        }
        const size_t size = (size_t)(close - open - 1);
        dl2_append(bytes, at, (size_t)(open + 1 - at));
        if (is_literal(open + 1, size))
            dl2_append(bytes, open + 1, size);
        else
            append_escaped(bytes, open + 1, size);
        dl2_append(bytes, "'", 1);
        at = close + 1;
    }
}

static int write_latex_script(const struct dl2_latex *latex, const struct dl2_plot *plot,
                              struct dl2_error *error)
{
    char head[512];
    snprintf(head, sizeof head,
             "# Run it in this folder: gnuplot %s.gp\n"
             "set terminal cairolatex pdf colortext size %.2fcm,%.2fcm\nset output '%s.tex'\n",
             plot->name, CENTIMETRES * DL2_PLOT_WIDTH, CENTIMETRES * plot->height, plot->name);
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes script = DL2_BYTES_INIT;
    dl2_append_text(&script, head);
    append_script(&script, &plot->script);
    return save_file(latex->folder, plot->name, "gp", &script, error);
}

static void add_figure(struct dl2_latex *latex, const struct dl2_plot *plot)
{
    struct dl2_bytes *document = &latex->document;
    if (!document->size)
        dl2_append_text(document,
                        "\\documentclass{article}\n\\usepackage{graphicx}\n\\usepackage{color}\n"
                        "\\usepackage[utf8]{inputenc}\n\\begin{document}\n");
    dl2_append_text(document, "\\begin{figure}\\centering\\input{");
    dl2_append_text(document, plot->name);
    dl2_append_text(document, "}\\caption{");
    append_escaped(document, plot->title, strlen(plot->title));
    dl2_append_text(document, "}\\end{figure}\\clearpage\n");
}

/* Writes and draws a plot. An error if gnuplot can't: this was asked for. */
static int draw_latex(struct dl2_latex *latex, const struct dl2_plot *plot, const char *gnuplot,
                      struct dl2_error *error)
{
    DL2_TRY(save_file(latex->folder, plot->name, "dat", &plot->data, error));
    DL2_TRY(write_latex_script(latex, plot, error));
    if (!run_gnuplot(gnuplot, latex->folder, plot->name))
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "--latex: '%s %s.gp' in %s failed; it takes gnuplot with the terminal "
                             "cairolatex (Debian: gnuplot-nox)",
                             gnuplot, plot->name, latex->folder);
    add_figure(latex, plot);
    return DL2_OK;
}

int dl2_latex_end(struct dl2_latex *latex, struct dl2_error *error)
{
    if (!latex->document.size)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "--latex has no effect: there are no plots");
    dl2_append_text(&latex->document, "\\end{document}\n");
    const int status = save_file(latex->folder, "figures", "tex", &latex->document, error);
    dl2_bytes_free(&latex->document);
    return status;
}

/* ---- All of it */

static int write_and_draw(struct dl2_plot *plot, struct dl2_plotter *plotter, struct dl2_bytes *svg,
                          struct dl2_error *error)
{
    dl2_plot_script(plot, "\n");
    DL2_TRY(save_file(plotter->folder, plot->name, "dat", &plot->data, error));
    DL2_TRY(write_script(plotter, plot, error));
    make_svg(plot, plotter, svg);
    return plotter->latex ? draw_latex(plotter->latex, plot, plotter->gnuplot, error) : DL2_OK;
}

struct dl2_bytes dl2_plot_draw(struct dl2_plot *plot, struct dl2_plotter *plotter)
{
    struct dl2_bytes svg = DL2_BYTES_INIT;
    if (plot->curves && plotter && write_and_draw(plot, plotter, &svg, &plotter->error) < 0)
        dl2_bytes_free(&svg);
    dl2_bytes_free(&plot->data);
    dl2_bytes_free(&plot->script);
    return svg;
}
