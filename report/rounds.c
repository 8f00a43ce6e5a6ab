/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/rounds.h"

#include "common/json.h"
#include "report/result_files.h"
#include "report/study.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char loader[] = "load"; /* the folder that is of no network */

/* The loader's figures, without its first epoch, which warms up. */
static void read_loading(struct dl2_round *round)
{
    const json_t *epochs = json_object_get(round->report, "per_epoch");
    const size_t count = json_array_size(epochs);
    double images = 0, seconds = 0, cpu = 0, bytes = 0;
    for (size_t i = count > 1; i < count; i++) {
        const json_t *epoch = json_array_get(epochs, i);
        images += dl2_json_get_real(epoch, "images", NAN);
        seconds += dl2_json_get_real(epoch, "seconds", NAN);
        cpu += dl2_json_get_real(epoch, "cpu_seconds", NAN);
        bytes += dl2_json_get_real(epoch, "bytes_read", NAN);
    }
    round->rate = images / seconds;
    round->core_rate = images / cpu;
    round->image_bytes = bytes / images;
}

static void read_training(struct dl2_round *round)
{
    const json_t *measured = json_object_get(round->report, "measured");
    round->rate = dl2_json_get_real(measured, "images_per_second", NAN);
    round->stall = dl2_json_get_real(measured, "data_stall", NAN);
    round->joules = dl2_json_get_real(measured, "joules_per_image", NAN);
}

static void add_round(struct dl2_rounds *rounds, const char *path, const char *network,
                      const char *variant, unsigned number)
{
    const bool loads = strcmp(network, loader) == 0;
    struct dl2_error why = DL2_ERROR_INIT;
    json_t *report = NULL;
    int status = dl2_result_load(path, loads ? "dl2-load/1" : "dl2-rate/1", &report, &why);
    if (status == DL2_OK)
        dl2_keep_json(report);
    if (status == DL2_OK && strcmp(variant, "raw") != 0)
        status = dl2_result_is_of(report, path, "variant", variant, &why);
    if (status == DL2_OK && !loads)
        status = dl2_result_is_of(report, path, "arch", network, &why);
    if (dl2_unless_memory(status, &why) < 0) {
        dl2_words_add(&rounds->broken, dl2_text("%s", why.message));
        return;
    }
    struct dl2_round round = {.network = loads ? NULL : dl2_text_copy(network),
                              .variant = dl2_text_copy(variant),
                              .number = number,
                              .report = report,
                              .rate = NAN,
                              .core_rate = NAN,
                              .stall = NAN,
                              .joules = NAN,
                              .image_bytes = NAN};
    if (loads)
        read_loading(&round);
    else
        read_training(&round);
    if (!(round.rate > 0)) {
        dl2_words_add(&rounds->broken,
                      dl2_text("%s: it has no rate; the measurement was cut short", path));
        return;
    }
    rounds->items = dl2_keep_more(rounds->items, rounds->count, sizeof *rounds->items);
    rounds->items[rounds->count++] = round;
}

/* Networks, variants and rounds. */
static bool visit(void *rounds, const char *path, const char *const *names, size_t depth)
{
    unsigned number;
    int length = 0;
    if (depth == 2 && sscanf(names[2], "round-%u.json%n", &number, &length) == 1 &&
        (size_t)length == strlen(names[2]))
        add_round(rounds, path, names[0], names[1], number);
    return depth < 2;
}

struct dl2_rounds dl2_rounds_read(const char *folder)
{
    struct dl2_rounds rounds = {0};
    dl2_walk(folder, visit, &rounds);
    return rounds;
}

void dl2_rounds_drop(struct dl2_rounds *rounds, size_t index)
{
    rounds->count--;
    memmove(&rounds->items[index], &rounds->items[index + 1],
            (rounds->count - index) * sizeof *rounds->items);
}

/* ---- Figures */

static bool is_of(const struct dl2_round *round, const char *network, const char *variant)
{
    return strcmp(round->variant, variant) == 0 && !round->network == !network &&
           (!network || strcmp(round->network, network) == 0);
}

const struct dl2_round *dl2_rounds_first(const struct dl2_rounds *rounds, const char *network,
                                         const char *variant)
{
    for (size_t i = 0; i < rounds->count; i++)
        if (is_of(&rounds->items[i], network, variant))
            return &rounds->items[i];
    return NULL;
}

static double value_of(const struct dl2_round *round, size_t field)
{
    return *(const double *)((const char *)round + field);
}

struct dl2_estimate dl2_rounds_mean(const struct dl2_rounds *rounds, const char *network,
                                    const char *variant, size_t field, double scale,
                                    double *scratch)
{
    size_t count = 0;
    for (size_t i = 0; i < rounds->count; i++) {
        const double value = value_of(&rounds->items[i], field);
        if (is_of(&rounds->items[i], network, variant) && isfinite(value))
            scratch[count++] = scale * value;
    }
    return dl2_estimate_mean(scratch, count);
}

/* The logarithm of the ratio in the round of `own`; NAN where `base` was not measured in it. */
static double log_ratio(const struct dl2_rounds *rounds, const struct dl2_round *own,
                        const char *base, size_t field)
{
    for (size_t i = 0; i < rounds->count; i++) {
        const struct dl2_round *other = &rounds->items[i];
        if (is_of(other, own->network, base) && other->number == own->number)
            return log(value_of(own, field) / value_of(other, field));
    }
    return NAN;
}

struct dl2_ratio dl2_rounds_ratio(const struct dl2_rounds *rounds, const char *network,
                                  const char *variant, const char *base, size_t field)
{
    double sum = 0, squares = 0;
    size_t count = 0;
    for (int pass = 0; pass < 2; pass++) {
        const double mean = count ? sum / (double)count : 0;
        for (size_t i = 0; i < rounds->count; i++) {
            const struct dl2_round *own = &rounds->items[i];
            const double value =
                is_of(own, network, variant) ? log_ratio(rounds, own, base, field) : NAN;
            if (!isfinite(value))
                continue;
            if (pass == 0) {
                sum += value;
                count++;
            } else {
                squares += (value - mean) * (value - mean);
            }
        }
    }
    const double n = (double)count;
    return (struct dl2_ratio){
        .ratio = count ? exp(sum / n) : NAN,
        .spread = count > 1 ? (struct dl2_spread){squares / (n - 1) / n, n - 1}
                            : (struct dl2_spread){INFINITY, 0},
        .rounds = count,
    };
}

double dl2_ratio_low(const struct dl2_ratio *ratio)
{
    return ratio->ratio * exp(-dl2_spread_half(&ratio->spread, 0.025));
}

double dl2_ratio_high(const struct dl2_ratio *ratio)
{
    return ratio->ratio * exp(dl2_spread_half(&ratio->spread, 0.025));
}
