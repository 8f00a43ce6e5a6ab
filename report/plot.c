/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/plot.h"

#include "common/file.h"

#include <math.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

const struct dl2_plot_colour dl2_plot_colours[] = {
    {DL2_PLOT_INK, "#d5d9df"},  {DL2_PLOT_SOFT_INK, "#a3aab5"}, {DL2_PLOT_AXIS, "#6b7280"},
    {DL2_PLOT_GRID, "#2b3038"}, {DL2_PLOT_BAND, "#1d2a23"},     {"#2f6fde", "#6ea0f5"},
    {"#d9730d", "#f0a04b"},     {"#14895c", "#4cc492"},         {"#8f4fc4", "#bb8be6"},
    {"#b8336a", "#ec7fa8"},     {"#0e7f94", "#4fbfd4"},         {"#8a6d1a", "#cdb05a"},
    {"#c2410c", "#f0825a"},     {"#6b8f1a", "#a6cc52"},         {NULL, NULL},
};

const char *dl2_plot_codec_colour(const char *codec, size_t number)
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

const char *dl2_plot_ramp(size_t i, size_t count)
{
    static const char *const ramp[] = {"#c2410c", "#d9730d", "#8a6d1a", "#6b8f1a", "#14895c",
                                       "#0e7f94", "#2f6fde", "#8f4fc4", "#b8336a"};
    const size_t colours = sizeof ramp / sizeof *ramp;
    return ramp[count > 1 ? i * (colours - 1) / (count - 1) : 6];
}

static void append(struct dl2_plot *plot, struct dl2_bytes *bytes, const char *format,
                   va_list arguments)
{
    char line[2048];
    int length = vsnprintf(line, sizeof line, format, arguments);
    if (length >= (int)sizeof line)
        length = sizeof line - 1;
    if (plot->status == DL2_OK && length > 0)
        plot->status = dl2_bytes_append(bytes, line, (size_t)length, plot->error);
}

void dl2_plot_script(struct dl2_plot *plot, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    append(plot, &plot->script, format, arguments);
    va_end(arguments);
}

void dl2_plot_data(struct dl2_plot *plot, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    append(plot, &plot->data, format, arguments);
    va_end(arguments);
}

void dl2_plot_number(struct dl2_plot *plot, double value)
{
    if (isfinite(value))
        dl2_plot_data(plot, "%.10g ", value);
    else
        dl2_plot_data(plot, "NaN ");
}

const char *dl2_plot_plain(const char *name, char *out, size_t size)
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

void dl2_plot_begin(struct dl2_plot *plot, const char *name, const char *title, const char *columns,
                    int height, struct dl2_error *error)
{
    *plot = (struct dl2_plot){.data = DL2_BYTES_INIT, .script = DL2_BYTES_INIT, .error = error};
    dl2_plot_plain(name, plot->name, sizeof plot->name);
    snprintf(plot->title, sizeof plot->title, "%s", title);
    char comment[sizeof plot->title]; /* one line, whatever names of files are in it */
    snprintf(comment, sizeof comment, "%s", title);
    for (char *c = comment; *c; c++)
        if ((unsigned char)*c < ' ' || *c == '\\')
            *c = '_';
    dl2_plot_data(plot, "# %s\n# %s\n", comment, columns);
    char identifier[sizeof plot->name]; /* prefix of the ids in the SVG */
    snprintf(identifier, sizeof identifier, "%s", plot->name);
    for (char *c = identifier; *c; c++)
        if (*c == '-' || *c == '.' || *c == '+')
            *c = '_';
    dl2_plot_script(
        plot,
        "# %s\n# Run it in this folder: gnuplot %s.gp\n"
        "set terminal svg size 560,%d dynamic noenhanced font 'sans-serif,13' "
        "background '#ffffff' name '%s'\n"
        "set output '%s.svg'\n"
        "set border 3 linecolor rgb '" DL2_PLOT_AXIS "' linewidth 1\n"
        "set tics nomirror scale 0.4 textcolor rgb '" DL2_PLOT_SOFT_INK "'\n"
        "set grid ytics linecolor rgb '" DL2_PLOT_GRID "' linetype 1 linewidth 1\n"
        "set key outside top left horizontal Left reverse samplen 2 textcolor rgb '" DL2_PLOT_INK
        "'\n"
        "set offsets graph 0.03, graph 0.03, graph 0.08, graph 0.06\n"
        "set bars 0.6\n",
        comment, plot->name, height, identifier, plot->name);
}

void dl2_plot_axes(struct dl2_plot *plot, const char *x, const char *y)
{
    dl2_plot_script(plot,
                    "set xlabel '%s' textcolor rgb '" DL2_PLOT_SOFT_INK
                    "'\nset ylabel '%s' textcolor rgb '" DL2_PLOT_SOFT_INK "'\n",
                    x, y);
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
    append(plot, &plot->script, format, arguments);
    va_end(arguments);
    plot->curves++;
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
static int embed(struct dl2_bytes *svg, const char *name, struct dl2_error *error)
{
    static const char *const shared[] = {"gpPt", "gpDot", "textbox", "greybox", "gnuplot_canvas"};
    char own[192];
    drop_all(svg, "<?xml", "?>");
    drop_all(svg, "<title>", "</title>");
    drop_all(svg, "<desc>", "</desc>");
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
        snprintf(own, sizeof own, "%s-%s", name, shared[i]);
        DL2_TRY(replace_all(svg, shared[i], own, error));
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

static int write_file(const struct dl2_plotter *plotter, const struct dl2_plot *plot,
                      const char *extension, const struct dl2_bytes *bytes)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.%s", plotter->folder, plot->name, extension);
    return dl2_file_write(path, bytes->data, bytes->size, plot->error);
}

/* Runs the script that was written, unless gnuplot failed before: it would again. */
static int make_svg(const struct dl2_plot *plot, struct dl2_plotter *plotter, struct dl2_bytes *svg)
{
    if (plotter->problem[0])
        return DL2_OK;
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
        return DL2_OK;
    }
    return embed(svg, plot->name, plot->error);
}

int dl2_plot_draw(struct dl2_plot *plot, struct dl2_plotter *plotter, struct dl2_bytes *svg)
{
    *svg = (struct dl2_bytes)DL2_BYTES_INIT;
    if (plot->curves && plotter) {
        dl2_plot_script(plot, "\n");
        if (plot->status == DL2_OK)
            plot->status = write_file(plotter, plot, "dat", &plot->data);
        if (plot->status == DL2_OK)
            plot->status = write_file(plotter, plot, "gp", &plot->script);
        if (plot->status == DL2_OK)
            plot->status = make_svg(plot, plotter, svg);
    }
    dl2_bytes_free(&plot->data);
    dl2_bytes_free(&plot->script);
    return plot->status;
}
