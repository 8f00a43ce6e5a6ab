/* SPDX-License-Identifier: BSD-2-Clause */
#include "transcode/target.h"

#include "common/quote.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { AT_ONCE = sizeof((struct dl2_target_searcher *)0)->trial / sizeof(struct dl2_bytes) };

int dl2_target_parse(const char *text, int low, int high, struct dl2_quality_target *out,
                     struct dl2_error *error)
{
    static const char *const sizes[] = {"bytes", "bpp"};
    const size_t length = strcspn(text, "=");
    char known[256] = "", shown[32], *end = NULL;
    *out = (struct dl2_quality_target){.low = low, .high = high};
    for (unsigned i = 0; dl2_metric_at(i); i++) {
        const struct dl2_metric *metric = dl2_metric_at(i);
        dl2_list_name(known, sizeof known, metric->name);
        if (strlen(metric->name) == length && !strncmp(metric->name, text, length)) {
            out->metric = metric;
            out->name = metric->name;
        }
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        dl2_list_name(known, sizeof known, sizes[i]);
        if (strlen(sizes[i]) == length && !strncmp(sizes[i], text, length))
            out->name = sizes[i];
    }
    if (!out->name || text[length] != '=')
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "'%s' is not a target and its value, as in ssim=0.95: %s", text,
                             known);
    const char *number = text + length + 1;
    if (*number && strspn(number, "0123456789.") == strlen(number))
        out->value = strtod(number, &end);
    const bool has_end = out->metric && !out->metric->of_mse; /* 1 is the best */
    if (!end || *end || !(out->value > 0) || !isfinite(out->value) || (has_end && out->value >= 1))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "'%s': the value is not a number above 0%s",
                             text, has_end ? " and below 1" : "");
    snprintf(shown, sizeof shown, "%g", out->value); /* as in the variant's name */
    if (strchr(shown, 'e') || strtod(shown, NULL) < out->value || strtod(shown, NULL) > out->value)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "'%s': give at most six digits", text);
    return DL2_OK;
}

bool dl2_target_equal(const struct dl2_quality_target *a, const struct dl2_quality_target *b)
{
    return a->metric == b->metric && !a->name == !b->name &&
           (!a->name || !strcmp(a->name, b->name)) && !(a->value < b->value) &&
           !(a->value > b->value) && a->low == b->low && a->high == b->high;
}

json_t *dl2_target_json(const struct dl2_quality_target *target)
{
    return json_pack("{s:s, s:f, s:[i,i]}", "of", target->name, "value", target->value, "qualities",
                     target->low, target->high);
}

/* ---- One image */

struct search {
    struct dl2_target_searcher *searcher;
    const struct dl2_quality_target *target;
    const struct dl2_codec *codec;
    const struct dl2_image *image;
    const struct dl2_encode_options *encode;
    struct dl2_bytes *out;            /* the best file so far */
    struct dl2_target_result *result; /* of it */
};

/* Bytes, or bits per pixel. */
static double size_of(const struct dl2_quality_target *target, const struct dl2_image *image,
                      const struct dl2_bytes *file)
{
    const double pixels = (double)image->width * image->height;
    return (double)file->size * (strcmp(target->name, "bpp") ? 1 : 8 / pixels);
}

/* The score of a file of the image. */
static int score_file(const struct search *search, const struct dl2_bytes *file, double *score,
                      struct dl2_error *error)
{
    const struct dl2_quality_target *target = search->target;
    struct dl2_target_searcher *searcher = search->searcher;
    if (!target->metric) {
        *score = size_of(target, search->image, file);
        return DL2_OK;
    }
    struct dl2_decode_options decode = DL2_DECODE_DEFAULTS;
    struct dl2_score value;
    DL2_TRY(dl2_image_decode(file->data, file->size, &decode, &searcher->decoded,
                             &searcher->scratch, error));
    DL2_TRY(dl2_scorer_score(searcher->scorer, target->metric, &searcher->decoded, &value, error));
    *score = value.value;
    if (isnan(*score) && dl2_images_equal(search->image, &searcher->decoded))
        *score = INFINITY; /* of dB */
    return DL2_OK;
}

static bool meets(const struct dl2_quality_target *target, double score)
{
    return target->metric ? score >= target->value : score <= target->value;
}

/* Takes a file over as the result, or leaves it. */
static void take(const struct search *search, struct dl2_bytes *file, int quality, double score)
{
    const struct dl2_bytes before = *search->out;
    *search->out = *file;
    *file = before;
    search->result->quality = (uint8_t)quality;
    search->result->score = score;
    search->result->met = meets(search->target, score);
}

/* From the lowest quality on, to the first that meets a score; several files share their work. */
static int scan(const struct search *search, struct dl2_error *error)
{
    const struct dl2_quality_target *target = search->target;
    struct dl2_bytes *files = search->searcher->trial;
    for (int first = target->low; first <= target->high; first += AT_ONCE) {
        int qualities[AT_ONCE], count = 0;
        double score;
        while (count < AT_ONCE && first + count <= target->high) {
            qualities[count] = first + count;
            count++;
        }
        DL2_TRY(dl2_image_encode_sweep(search->codec, search->image, search->encode, qualities,
                                       files, (size_t)count, error));
        for (int i = 0; i < count; i++) {
            DL2_TRY(score_file(search, &files[i], &score, error));
            search->result->probes++;
            if (search->result->probes == 1 || meets(target, score) ||
                score > search->result->score)
                take(search, &files[i], qualities[i], score);
            if (search->result->met)
                return DL2_OK;
        }
    }
    return DL2_OK;
}

/* What rises about evenly with the quality: of metrics that end at 1 the negative logarithm of what
 * is missing, of sizes the logarithm, of dB themselves. */
static double evenly(const struct dl2_quality_target *target, double score)
{
    if (!target->metric)
        return log(score);
    return target->metric->of_mse ? fmin(score, 99) : -log(fmax(1 - score, 1e-9));
}

/* A quality that was tried, or one beyond the range. */
struct known {
    int quality;
    bool tried;
    double even;
};

/* How much a step of quality adds: between two that were tried, or as images do on average. */
static double rise(const struct dl2_quality_target *target, const struct known *a,
                   const struct known *b)
{
    const double slope = (b->even - a->even) / (b->quality - a->quality);
    if (a->tried && b->tried && isfinite(slope) && slope > 0)
        return slope;
    if (!target->metric)
        return 0.025;
    return target->metric->of_mse ? 0.15 : 0.03;
}

/* Is what meets the target less than a step of quality away from it? */
static bool is_near(const struct dl2_quality_target *target, const struct known *low,
                    const struct known *high, double step)
{
    const double wanted = evenly(target, target->value);
    const struct known *good = target->metric ? high : low;
    return good->tried && fabs(good->even - wanted) < step;
}

/* The quality to try next, between low and high. */
static int choose(const struct dl2_quality_target *target, const struct known *low,
                  const struct known *high, double step, unsigned probes)
{
    const double wanted = evenly(target, target->value);
    const int middle = (low->quality + high->quality + 1) / 2;
    double guess = middle;
    if (probes >= 4 && probes % 2 == 0)
        return middle;
    if (low->tried)
        guess = low->quality + (wanted - low->even) / step;
    else if (high->tried)
        guess = high->quality - (high->even - wanted) / step;
    if (!isfinite(guess))
        guess = middle;
    guess = target->metric ? ceil(guess) : floor(guess);
    return guess <= low->quality    ? low->quality + 1
           : guess >= high->quality ? high->quality - 1
                                    : (int)guess;
}

/* Narrows down where it begins to meet the target, or ends to. */
static int narrow(const struct search *search, struct dl2_error *error)
{
    const struct dl2_quality_target *target = search->target;
    struct dl2_bytes *file = search->searcher->trial;
    struct dl2_encode_options encode = *search->encode;
    struct known low = {.quality = target->low - 1}, high = {.quality = target->high + 1};
    double step = rise(target, &low, &high);
    while (high.quality - low.quality > 1 && !is_near(target, &low, &high, step)) {
        const struct known before = low.tried ? low : high;
        double score;
        encode.quality = choose(target, &low, &high, step, search->result->probes);
        DL2_TRY(dl2_image_encode(search->codec, search->image, &encode, file, error));
        DL2_TRY(score_file(search, file, &score, error));
        search->result->probes++;
        const bool good = meets(target, score);
        const struct known here = {encode.quality, true, evenly(target, score)};
        /* Where nothing meets it, what was tried last is at the end of the range. */
        if (good || !search->result->met)
            take(search, file, encode.quality, score);
        if (good == (target->metric != NULL))
            high = here;
        else
            low = here;
        /* The two ends, or two on one side of it. */
        step = low.tried && high.tried ? rise(target, &low, &high) : rise(target, &before, &here);
    }
    return DL2_OK;
}

int dl2_target_search(struct dl2_target_searcher *searcher, const struct dl2_quality_target *target,
                      const struct dl2_codec *codec, const struct dl2_image *image,
                      const struct dl2_encode_options *encode, struct dl2_bytes *out,
                      struct dl2_target_result *result, struct dl2_error *error)
{
    const struct search search = {searcher, target, codec, image, encode, out, result};
    *result = (struct dl2_target_result){.score = NAN};
    if (target->metric &&
        (image->width < target->metric->min_side || image->height < target->metric->min_side))
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "%ux%u pixels are too few for a target of %s", (unsigned)image->width,
                             (unsigned)image->height, target->name);
    if (!searcher->scorer)
        DL2_TRY(dl2_scorer_create(&searcher->scorer, error));
    dl2_scorer_set_reference(searcher->scorer, image);
    return target->metric && codec->encode_sweep ? scan(&search, error) : narrow(&search, error);
}

void dl2_target_take_source(const struct dl2_quality_target *target, const struct dl2_image *image,
                            const struct dl2_bytes *file, struct dl2_target_result *result)
{
    result->score = target->metric ? (double)NAN : size_of(target, image, file);
    result->met = target->metric || meets(target, result->score);
}

void dl2_target_searcher_free(struct dl2_target_searcher *searcher)
{
    dl2_scorer_free(searcher->scorer);
    dl2_image_free(&searcher->decoded);
    dl2_image_free(&searcher->scratch);
    for (int i = 0; i < AT_ONCE; i++)
        dl2_bytes_free(&searcher->trial[i]);
}
