/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/page/latex.h"

#include "common/scope.h"
#include "report/page/gnuplot.h"

#include <stdio.h>
#include <string.h>

/* Centimetres of a page for a pixel of the screen: most plots are 14 cm wide. */
#define CENTIMETRES (14.0 / DL2_PLOT_WIDTH)

static int append(struct dl2_bytes *bytes, const char *text, size_t size, struct dl2_error *error)
{
    return dl2_bytes_append(bytes, text, size, error);
}

/* A text in LaTeX. */
static int append_escaped(struct dl2_bytes *bytes, const char *text, size_t size,
                          struct dl2_error *error)
{
    for (size_t i = 0; i < size; i++) {
        if (strchr("%_&#$", text[i]) && text[i])
            DL2_TRY(append(bytes, "\\", 1, error));
        DL2_TRY(append(bytes, &text[i], 1, error));
    }
    return DL2_OK;
}

/* Is the text in quotes a colour, a file or a format of numbers, not one that is set? */
static bool is_literal(const char *text, size_t size)
{
    static const char *const prefixes[] = {"#", "%g"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (size >= strlen(prefixes[i]) && memcmp(text, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return size > 4 && memcmp(text + size - 4, ".dat", 4) == 0;
}

/* The script with the texts in its quotes escaped; '' in quotes is two texts side by side. */
static int append_script(struct dl2_bytes *bytes, const struct dl2_bytes *script,
                         struct dl2_error *error)
{
    const char *at = (const char *)script->data, *end = at + script->size;
    while (at < end) {
        const char *open = memchr(at, '\'', (size_t)(end - at));
        const char *close = open ? memchr(open + 1, '\'', (size_t)(end - open - 1)) : NULL;
        if (!close)
            return append(bytes, at, (size_t)(end - at), error);
        const size_t size = (size_t)(close - open - 1);
        DL2_TRY(append(bytes, at, (size_t)(open + 1 - at), error));
        DL2_TRY(is_literal(open + 1, size) ? append(bytes, open + 1, size, error)
                                           : append_escaped(bytes, open + 1, size, error));
        DL2_TRY(append(bytes, "'", 1, error));
        at = close + 1;
    }
    return DL2_OK;
}

static int write_script(const struct dl2_latex *latex, const struct dl2_plot *plot,
                        struct dl2_error *error)
{
    char head[512];
    snprintf(head, sizeof head,
             "# Run it in this folder: gnuplot %s.gp\n"
             "set terminal cairolatex pdf colortext size %.2fcm,%.2fcm\nset output '%s.tex'\n",
             plot->name, CENTIMETRES * DL2_PLOT_WIDTH, CENTIMETRES * plot->height, plot->name);
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes script = DL2_BYTES_INIT;
    DL2_TRY(append(&script, head, strlen(head), error));
    DL2_TRY(append_script(&script, &plot->script, error));
    return dl2_gnuplot_save(latex->folder, plot->name, "gp", &script, error);
}

static int add_figure(struct dl2_latex *latex, const struct dl2_plot *plot, struct dl2_error *error)
{
    static const char head[] =
        "\\documentclass{article}\n\\usepackage{graphicx}\n\\usepackage{color}\n"
        "\\usepackage[utf8]{inputenc}\n\\begin{document}\n";
    char figure[512];
    snprintf(figure, sizeof figure, "\\begin{figure}\\centering\\input{%s}\\caption{", plot->name);
    struct dl2_bytes *document = &latex->document;
    if (!document->size)
        DL2_TRY(append(document, head, strlen(head), error));
    DL2_TRY(append(document, figure, strlen(figure), error));
    DL2_TRY(append_escaped(document, plot->title, strlen(plot->title), error));
    static const char tail[] = "}\\end{figure}\\clearpage\n";
    return append(document, tail, strlen(tail), error);
}

int dl2_latex_draw(struct dl2_latex *latex, const struct dl2_plot *plot, const char *gnuplot,
                   struct dl2_error *error)
{
    DL2_TRY(dl2_gnuplot_save(latex->folder, plot->name, "dat", &plot->data, error));
    DL2_TRY(write_script(latex, plot, error));
    if (!dl2_gnuplot_run(gnuplot, latex->folder, plot->name))
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "--latex: '%s %s.gp' in %s failed; it takes gnuplot with the terminal "
                             "cairolatex (Debian: gnuplot-nox)",
                             gnuplot, plot->name, latex->folder);
    return add_figure(latex, plot, error);
}

int dl2_latex_end(struct dl2_latex *latex, struct dl2_error *error)
{
    static const char tail[] = "\\end{document}\n";
    int status = latex->document.size ? append(&latex->document, tail, strlen(tail), error)
                                      : dl2_error_set(error, DL2_ERR_ARGUMENT,
                                                      "--latex has no effect: there are no plots");
    if (status == DL2_OK)
        status = dl2_gnuplot_save(latex->folder, "figures", "tex", &latex->document, error);
    dl2_bytes_free(&latex->document);
    return status;
}
