/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/accuracy_text.h"

#include "common/keep.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- Numbers */

const char *dl2_number(const char *format, ...)
{
    char text[32];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return dl2_text_copy(text);
}

const char *dl2_signed_digits(double value, int digits)
{
    const double scale = pow(10, digits), rounded = round(scale * value) / scale;
    return dl2_number("%s%.*f", rounded > 0 ? "+" : rounded < 0 ? "−" : "", digits, fabs(rounded));
}

const char *dl2_signed(const struct dl2_accuracy_kind *kind, double value)
{
    return dl2_signed_digits(value, 1 + kind->digits);
}

const char *dl2_interval_digits(double middle, double half, int digits)
{
    return dl2_text("%s to %s", dl2_signed_digits(middle - half, digits),
                    dl2_signed_digits(middle + half, digits));
}

const char *dl2_interval(const struct dl2_accuracy_kind *kind, double middle, double half)
{
    return dl2_interval_digits(middle, half, 1 + kind->digits);
}

const char *dl2_count_points(const struct dl2_accuracy_kind *kind, double points)
{
    const char *unit = kind->is_percent && points == 1 ? "point" : kind->unit;
    return dl2_text("%s%s%s", dl2_number("%g", points), *unit ? " " : "", unit);
}

const char *dl2_accuracy_amount(const struct dl2_accuracy_kind *kind, double value)
{
    const char *number = dl2_number("%.*f", 1 + kind->digits, dl2_accuracy_shown(kind, value));
    const char *unit = kind->is_percent ? "%" : kind->unit;
    return dl2_text("%s%s%s", number, kind->is_percent || !*unit ? "" : " ", unit);
}

const char *dl2_accuracy_named(const struct dl2_accuracy_kind *kind, double value)
{
    return dl2_text("%s %s", dl2_accuracy_amount(kind, value), kind->name);
}

/* ---- Words */

/*
 * Longer ones come before their parts. {n} is the metric's name; {u} its unit after a blank, {q}
 * after a comma; {p} "points of mAP"; {c} the unit of its values after a comma, {cc} the same in a
 * format; {1} and {2} are so many digits after the point and those that the metric has in addition.
 */
struct words {
    const char *from, *to, *lower; /* `lower`: where less is better; NULL: as `to` */
};
static const struct words foreign[] = {
    {" points of accuracy", " {p}", NULL},
    {"mean accuracy %s points", "mean {n} %s{u}", "mean improvement %s{u}"},
    {"accuracy, points to the original", "{n}{q} to the original", "better than the original{q}"},
    {"accuracy, points\nto the original", "{n}{q}\nto the original",
     "better than\nthe original{q}"},
    {"difference in accuracy", "difference in {n}", "better by"},
    {"difference,\npoints", "difference{q}", "better by{q}"},
    {"difference, points", "difference{q}", "better by{q}"},
    {"(too few trainings for an interval)", "(which has no interval)", NULL},
    {"a loss of %s", "a loss of %s", "to be worse by %s"},
    {"Validation accuracy", "{n}", NULL},
    {"validation accuracy, %", "{n}{c}", NULL},
    {"accuracies", "values of {n}", NULL},
    {"Accuracies", "Values of {n}", NULL},
    {"an accuracy", "a value of {n}", NULL},
    {"another accuracy", "another value of {n}", NULL},
    {"one accuracy", "one value of {n}", NULL},
    {"Accuracy does not rise", "{n} does not rise", "{n} does not fall"},
    {"neighbors that fall", "neighbors that fall", "neighbors that rise"},
    {"a fall is levelled", "a fall is levelled", "a rise is levelled"},
    {"Accuracy, percent", "{n}{c}", NULL},
    {"accuracy, %%", "{n}{cc}", NULL},
    {"accuracy, %", "{n}{c}", NULL},
    {"predictions", "outcomes", NULL},
    {"accuracy", "{n}", NULL},
    {"Accuracy", "{n}", NULL},
    {"as accurate", "as good", NULL},
    {", percentage points", "{q}", NULL},
    {",\npoints", "{q}", NULL},
    {", points", "{q}", NULL},
    {"%.1f points", "%.{1}f{u}", NULL},
    {"%.1f to %.1f", "%.{1}f to %.{1}f", NULL},
    {"%.2f points", "%.{2}f{u}", NULL},
    {" points", "{u}", NULL},
    {"loses less than", "loses less than", "is worse by less than"},
    {"lose less than", "lose less than", "be worse by less than"},
    {"loses more than", "loses more than", "is worse by more than"},
    {"lose more than", "lose more than", "be worse by more than"},
    {"loses more", "loses more", "is worse"},
    {"changes by", "changes by", "is better by"},
    {"gains", "gains", "is better by"},
    {"loses", "loses", "is worse by"},
    {"lose less", "lose less", "be worse by less"},
};

/* Of networks that are evaluated as they are. */
static const struct words as_it_is[] = {
    {"(too few trainings for an interval)", "(which has no interval)", NULL},
    {"was not trained on", "was not evaluated", NULL},
    {"was trained on.", "was evaluated.", NULL},
    {"trained on|", "evaluated on|", NULL},
    {"Every training", "Every evaluation", NULL},
    {"and trained on", "and evaluated", NULL},
    {"or trained on", "or evaluated", NULL},
    {"or train from more seeds", "or evaluate more images", NULL},
    {" Bars are 95% intervals over seeds.", "", NULL},
    {"There are too few trainings for an interval.", "There is no interval.", NULL},
    {"mean over seeds", "mean", NULL},
};

/* The row whose words `text` begins with; NULL: none. `before` is what stands before it. */
static const char *replacement_of(const struct dl2_accuracy_kind *kind, const struct words *rows,
                                  size_t count, const char *text, char before, size_t *length)
{
    for (size_t i = 0; i < count; i++) {
        *length = strlen(rows[i].from);
        if (strncmp(text, rows[i].from, *length) == 0 &&
            !(isalpha((unsigned char)before) && isalpha((unsigned char)*text)) &&
            !isalpha((unsigned char)text[*length]))
            return kind->is_lower_better && rows[i].lower ? rows[i].lower : rows[i].to;
    }
    return NULL;
}

static void add_filled(const struct dl2_accuracy_kind *kind, const char *template,
                       struct dl2_bytes *out)
{
    const char *unit = kind->unit, *of_values = kind->is_percent ? "%" : unit;
    const char *comma = *of_values ? ", " : "", *of = *unit ? " of " : "";
    const struct {
        const char *name, *text;
    } parts[] = {{"{n}", kind->name},
                 {"{u}", dl2_text("%s%s", *unit ? " " : "", unit)},
                 {"{q}", dl2_text("%s%s", *unit ? ", " : "", unit)},
                 {"{p}", dl2_text("%s%s%s", unit, of, kind->name)},
                 {"{c}", dl2_text("%s%s", comma, of_values)},
                 {"{cc}", dl2_text("%s%s", comma, kind->is_percent ? "%%" : unit)},
                 {"{1}", dl2_text("%d", 1 + kind->digits)},
                 {"{2}", dl2_text("%d", 2 + kind->digits)}};
    while (*template) {
        size_t part = 0;
        while (part < sizeof parts / sizeof *parts &&
               strncmp(template, parts[part].name, strlen(parts[part].name)) != 0)
            part++;
        if (part < sizeof parts / sizeof *parts) {
            dl2_append_text(out, parts[part].text);
            template += strlen(parts[part].name);
        } else {
            dl2_append(out, template ++, 1);
        }
    }
}

static const char *replace(const struct dl2_accuracy_kind *kind, const struct words *rows,
                           size_t count, const char *text)
{
    struct dl2_bytes out = DL2_BYTES_INIT;
    for (const char *at = text; *at;) {
        size_t length;
        const char *to = replacement_of(kind, rows, count, at, at > text ? at[-1] : ' ', &length);
        if (to)
            add_filled(kind, to, &out);
        else
            dl2_append(&out, at, 1);
        at += to ? length : 1;
    }
    dl2_append(&out, "", 1);
    return dl2_keep_block(out.data);
}

const char *dl2_accuracy_words(const struct dl2_accuracy_kind *kind, const char *text)
{
    if (kind->is_as_it_is)
        text = replace(kind, as_it_is, sizeof as_it_is / sizeof *as_it_is, text);
    return kind->is_foreign ? replace(kind, foreign, sizeof foreign / sizeof *foreign, text) : text;
}
