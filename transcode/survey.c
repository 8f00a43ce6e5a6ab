/* SPDX-License-Identifier: BSD-2-Clause */
#include "transcode/survey.h"

#include "codec/decoder.h"
#include "common/file.h"
#include "common/json.h"
#include "common/machine.h"
#include "common/memory.h"
#include "common/quote.h"
#include "common/scope.h"
#include "common/stats.h"
#include "common/thread.h"
#include "dataset/tell.h"
#include "quality/image_dataset.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { THUMB_WIDTH = 9, THUMB_HEIGHT = 8, BANDS = 4, BINS = 24, CHANNELS = 3 };
enum { MAX_GROUPS = 1000, MAX_SHOWN = 5 };

/* What is measured of each image, in the order of the report and of the table. */
enum { WIDTH, HEIGHT, SHORT, BYTES, BITS_PER_PIXEL, QUALITY, FIGURES };
static const struct figure {
    const char *name;
    int digits; /* in the table */
} figures[] = {
    [WIDTH] = {"width", 0},
    [HEIGHT] = {"height", 0},
    [SHORT] = {"short", 0},
    [BYTES] = {"bytes", 0},
    [BITS_PER_PIXEL] = {"bits_per_pixel", 3},
    [QUALITY] = {"quality", 0},
};

/* What is known of one image. */
struct survey_image {
    const struct dl2_codec *codec; /* NULL: no codec knows it */
    struct dl2_image_info info;
    char *color; /* the description of colors that are not sRGB, or NULL */
    struct dl2_coding coding;
    bool has_coding, nearly_black;
    uint64_t bytes;
    double figures[FIGURES];                 /* NAN: it has none */
    double mean[CHANNELS], square[CHANNELS]; /* of its pixels' values */
    uint64_t hash;
    uint8_t thumb[THUMB_WIDTH * THUMB_HEIGHT];
    char *bad; /* why it cannot be read; NULL: it can */
};

struct survey_worker {
    struct dl2_bytes bytes;
    struct dl2_image image, scratch;
    struct dl2_decoder *decoder; /* kept with external codecs */
    struct dl2_color_space color;
};

struct survey {
    const struct dl2_transcode_options *options;
    struct dl2_dataset *dataset;
    size_t count;
    struct survey_image *images;
    struct survey_worker *workers;
    unsigned worker_count;
    size_t *parent; /* union-find over near duplicates */
    char *uses;     /* of each image: TRAINING, VALIDATION, or 0 */
    size_t validated;
};
enum { TRAINING = 't', VALIDATION = 'v' };

/* ---- One image */

static void set_figures(struct survey_image *image)
{
    const double width = dl2_upright_width(&image->info), height = dl2_upright_height(&image->info);
    const double bytes = (double)image->bytes;
    const bool graded = image->has_coding && image->coding.quality;
    image->figures[WIDTH] = width;
    image->figures[HEIGHT] = height;
    image->figures[SHORT] = fmin(width, height);
    image->figures[BYTES] = bytes;
    image->figures[BITS_PER_PIXEL] = 8 * bytes / (width * height);
    image->figures[QUALITY] = graded ? image->coding.quality : (double)NAN;
}

/* Sums of all pixels, and of those of each cell of the thumbnail. */
static void measure(const struct dl2_image *image, struct survey_image *out)
{
    uint64_t sum[CHANNELS] = {0}, square[CHANNELS] = {0};
    const uint32_t channels = image->channels;
    for (uint32_t y = 0; y < image->height; y++) {
        const uint8_t *row = image->data + y * image->stride;
        for (size_t i = 0; i < (size_t)image->width * channels; i += channels)
            for (uint32_t c = 0; c < channels; c++) {
                sum[c] += row[i + c];
                square[c] += (uint64_t)row[i + c] * row[i + c];
            }
    }
    const double pixels = (double)image->width * image->height;
    for (uint32_t c = 0; c < CHANNELS; c++) {
        out->mean[c] = (double)sum[channels == 1 ? 0 : c] / pixels;
        out->square[c] = (double)square[channels == 1 ? 0 : c] / pixels;
    }
}

/* Mean luma (BT.601) of a rectangle of at least one pixel. */
static uint8_t mean_luma(const struct dl2_image *image, uint32_t left, uint32_t right, uint32_t top,
                         uint32_t bottom)
{
    uint64_t sum = 0;
    right = right > left ? right : left + 1;
    bottom = bottom > top ? bottom : top + 1;
    for (uint32_t y = top; y < bottom; y++) {
        const uint8_t *p = image->data + y * image->stride + (size_t)left * image->channels;
        for (uint32_t x = left; x < right; x++, p += image->channels)
            sum += image->channels == 1 ? 1000u * p[0] : 299u * p[0] + 587u * p[1] + 114u * p[2];
    }
    return (uint8_t)(sum / ((uint64_t)(right - left) * (bottom - top)) / 1000);
}

static void make_thumb(const struct dl2_image *image, struct survey_image *out)
{
    const uint64_t width = image->width, height = image->height;
    for (uint32_t y = 0; y < THUMB_HEIGHT; y++)
        for (uint32_t x = 0; x < THUMB_WIDTH; x++)
            out->thumb[y * THUMB_WIDTH + x] = mean_luma(
                image, (uint32_t)(x * width / THUMB_WIDTH),
                (uint32_t)((x + 1) * width / THUMB_WIDTH), (uint32_t)(y * height / THUMB_HEIGHT),
                (uint32_t)((y + 1) * height / THUMB_HEIGHT));
    out->hash = 0;
    for (uint32_t y = 0; y < THUMB_HEIGHT; y++)
        for (uint32_t x = 0; x + 1 < THUMB_WIDTH; x++) {
            const uint8_t *p = out->thumb + y * THUMB_WIDTH + x;
            out->hash = out->hash << 1 | (p[0] > p[1]);
        }
}

static int look_at(const struct survey *survey, struct survey_worker *worker, size_t index,
                   struct survey_image *out, struct dl2_error *error)
{
    const uint8_t *data;
    size_t size;
    struct dl2_decode_options decode = survey->options->decode;
    decode.info = &out->info;
    decode.keep = &worker->decoder;
    DL2_TRY(dl2_dataset_read(survey->dataset, index, &worker->bytes, &data, &size, error));
    out->bytes = size;
    DL2_TRY(dl2_image_decode(data, size, &decode, &worker->image, &worker->scratch, error));
    const struct dl2_raster raster = dl2_raster_of(&worker->image, 0, 0);
    out->nearly_black = dl2_image_is_nearly_black(&out->info, &raster);
    out->codec = dl2_codec_sniff(data, size);
    out->has_coding = out->codec->coding && out->codec->coding(data, size, &out->coding);
    DL2_TRY(dl2_image_read_color(data, size, &out->info, &worker->color, error));
    if (worker->color.form != DL2_COLOR_SPACE_SRGB && !(out->color = strdup(worker->color.name)))
        return dl2_error_memory(error, "a survey");
    set_figures(out);
    measure(&worker->image, out);
    make_thumb(&worker->image, out);
    return DL2_OK;
}

static int work(void *context, unsigned worker, size_t slot, size_t item, struct dl2_error *error)
{
    struct survey *survey = context;
    struct survey_image *image = &survey->images[item];
    struct dl2_error own = DL2_ERROR_INIT;
    (void)slot;
    const int status = look_at(survey, &survey->workers[worker], item, image, &own);
    if (status == DL2_ERR_MEMORY || status == DL2_ERR_LOST)
        return dl2_error_copy(error, &own);
    if (status < 0 && !(image->bad = strdup(own.message)))
        return dl2_error_memory(error, "a survey");
    return DL2_OK;
}

static int count_done(void *context, size_t slot, size_t item, struct dl2_error *error)
{
    const struct survey *survey = context;
    (void)slot;
    (void)error;
    dl2_progress_update(survey->options->progress, item + 1, NULL);
    return DL2_OK;
}

/* ---- Near duplicates */

static size_t root_of(size_t *parent, size_t i)
{
    while (parent[i] != i)
        i = parent[i] = parent[parent[i]];
    return i;
}

/* The smaller number is the root, so that groups come out in the dataset's order. */
static void join(size_t *parent, size_t a, size_t b)
{
    a = root_of(parent, a);
    b = root_of(parent, b);
    if (a < b)
        parent[b] = a;
    else
        parent[a] = b;
}

static bool are_near(const struct survey_image *a, const struct survey_image *b)
{
    unsigned difference = 0;
    if (__builtin_popcountll(a->hash ^ b->hash) > DL2_SURVEY_BITS)
        return false;
    for (size_t i = 0; i < sizeof a->thumb; i++)
        difference += (unsigned)abs((int)a->thumb[i] - (int)b->thumb[i]);
    return difference <= DL2_SURVEY_LEVELS * sizeof a->thumb;
}

struct keyed {
    uint64_t key;
    const struct survey_image *image;
};

static int compare_thumbs(const void *left, const void *right)
{
    const struct keyed *a = left, *b = right;
    const int order = memcmp(a->image->thumb, b->image->thumb, sizeof a->image->thumb);
    return order ? order : (a->image > b->image) - (a->image < b->image);
}

static int compare_keys(const void *left, const void *right)
{
    const struct keyed *a = left, *b = right;
    return a->key != b->key ? (a->key > b->key) - (a->key < b->key)
                            : (a->image > b->image) - (a->image < b->image);
}

/* Joins images of equal thumbnails, and keeps the first of each; returns how many. */
static size_t join_equal(struct survey *survey, struct keyed *list, size_t count)
{
    size_t kept = 0;
    qsort(list, count, sizeof *list, compare_thumbs);
    for (size_t i = 0; i < count; i++) {
        const struct survey_image *image = list[i].image;
        if (kept && !memcmp(list[kept - 1].image->thumb, image->thumb, sizeof image->thumb))
            join(survey->parent, (size_t)(list[kept - 1].image - survey->images),
                 (size_t)(image - survey->images));
        else
            list[kept++] = list[i];
    }
    return kept;
}

/*
 * Hashes that differ in at most 3 bits are equal in at least one of their four 16-bit bands, so
 * only images that share a band are compared.
 */
_Static_assert((int)DL2_SURVEY_BITS < (int)BANDS, "a pair might share no band");
static int find_duplicates(struct survey *survey, struct dl2_error *error)
{
    DL2_AUTO_FREE struct keyed *list = NULL;
    DL2_TRY(DL2_NEW(&list, survey->count, "a survey", error));
    DL2_TRY(DL2_NEW(&survey->parent, survey->count, "a survey", error));
    size_t count = 0;
    for (size_t i = 0; i < survey->count; i++) {
        survey->parent[i] = i;
        if (!survey->images[i].bad)
            list[count++].image = &survey->images[i];
    }
    count = join_equal(survey, list, count);
    for (unsigned band = 0; band < BANDS; band++) {
        for (size_t i = 0; i < count; i++)
            list[i].key = list[i].image->hash >> 16 * band & 0xffff;
        qsort(list, count, sizeof *list, compare_keys);
        for (size_t i = 0; i < count; i++)
            for (size_t k = i + 1; k < count && list[k].key == list[i].key; k++)
                if (are_near(list[i].image, list[k].image))
                    join(survey->parent, (size_t)(list[i].image - survey->images),
                         (size_t)(list[k].image - survey->images));
    }
    return DL2_OK;
}

/* ---- Training and validation */

/* Marks the images of a split as dl2-train opens it, be it one of the data's own or one by the
 * seeded rule. They are a part of all images, in the same order. */
static int mark_split(struct survey *survey, const struct dl2_dataset_options *options, char use,
                      struct dl2_error *error)
{
    struct dl2_error own = DL2_ERROR_INIT;
    struct dl2_dataset *part;
    const int status = dl2_dataset_open(survey->options->source, options, &part, &own);
    if (status == DL2_ERR_FORMAT) /* there is no such split */
        return DL2_OK;
    if (status < 0)
        return dl2_error_copy(error, &own);
    const size_t count = dl2_dataset_count(part);
    for (size_t i = 0, k = 0; i < survey->count && k < count; i++) {
        struct dl2_sample sample, marked;
        dl2_dataset_sample(survey->dataset, i, &sample);
        dl2_dataset_sample(part, k, &marked);
        if (strcmp(sample.path, marked.path) == 0) {
            survey->uses[i] = use;
            k++;
        }
    }
    survey->validated += use == VALIDATION ? count : 0;
    dl2_dataset_close(part);
    return DL2_OK;
}

static int find_uses(struct survey *survey, const struct dl2_dataset_options *all,
                     struct dl2_error *error)
{
    struct dl2_dataset_options options = *all;
    DL2_TRY(DL2_NEW(&survey->uses, survey->count, "a survey", error));
    options.split = "train";
    DL2_TRY(mark_split(survey, &options, TRAINING, error));
    options.split = "val";
    return mark_split(survey, &options, VALIDATION, error);
}

/* ---- The files with a line for each image */

/* Numbers the groups of near duplicates from 1 on, in the dataset's order. */
static int number_groups(const struct survey *survey, size_t **out, struct dl2_error *error)
{
    size_t groups = 0;
    DL2_TRY(DL2_NEW(out, survey->count, "a survey", error));
    for (size_t i = 0; i < survey->count; i++) {
        const size_t root = root_of(survey->parent, i); /* is not above i */
        (*out)[i] = root == i ? ++groups : (*out)[root];
    }
    return DL2_OK;
}

static int write_groups(const struct survey *survey, const size_t *group, const char *path,
                        struct dl2_error *error)
{
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes text = DL2_BYTES_INIT;
    for (size_t i = 0; i < survey->count; i++) {
        struct dl2_sample sample;
        char tail[32];
        dl2_dataset_sample(survey->dataset, i, &sample);
        if (strchr(sample.key, '\n'))
            return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                                 "%s: the name of %s has a newline, which a line of the file of "
                                 "groups can't have; rename it",
                                 path, sample.path);
        const int length = snprintf(tail, sizeof tail, "\t%zu\n", group[i]);
        DL2_TRY(dl2_bytes_append(&text, sample.key, strlen(sample.key), error));
        DL2_TRY(dl2_bytes_append(&text, tail, (size_t)length, error));
    }
    return dl2_file_write(path, text.data, text.size, error);
}

/* The columns that an image has once it could be read. */
static void print_image(const struct survey_image *image, FILE *out)
{
    const struct dl2_image_info *info = &image->info;
    fprintf(out, "%s,", image->codec->name);
    if (isfinite(image->figures[QUALITY]))
        fprintf(out, "%.0f", image->figures[QUALITY]);
    fprintf(out, ",%s,%.0f,%.0f,%u,%u,%s,%u,", image->has_coding ? image->coding.subsampling : "",
            image->figures[WIDTH], image->figures[HEIGHT], (unsigned)info->channels,
            (unsigned)info->bits, info->alpha ? "yes" : "no", (unsigned)info->orientation);
    dl2_csv_field(out, image->color ? image->color : "sRGB");
    fprintf(out, ",%" PRIu64, image->bytes);
    for (int c = 0; c < CHANNELS; c++)
        fprintf(out, ",%.3f", image->mean[c]);
    for (int c = 0; c < CHANNELS; c++)
        fprintf(out, ",%.3f", sqrt(fmax(0, image->square[c] - image->mean[c] * image->mean[c])));
    fprintf(out, ",%016" PRIx64 ",", image->hash);
}

static void print_csv(const struct survey *survey, const size_t *group, FILE *out)
{
    fprintf(out, "key,split,class,codec,quality,subsampling,width,height,channels,bits,alpha,"
                 "orientation,color,bytes,mean_r,mean_g,mean_b,std_r,std_g,std_b,hash,group,"
                 "error\n");
    for (size_t i = 0; i < survey->count; i++) {
        struct dl2_sample sample;
        dl2_dataset_sample(survey->dataset, i, &sample);
        dl2_csv_field(out, sample.key);
        fputc(',', out);
        dl2_csv_field(out, dl2_dataset_split_of(survey->dataset, i));
        fputc(',', out);
        if (sample.label >= 0)
            dl2_csv_field(out, dl2_dataset_class_name(survey->dataset, (unsigned)sample.label));
        fputc(',', out);
        if (survey->images[i].bad) {
            fputs(",,,,,,,,,,,,,,,,,,,", out);
            dl2_csv_field(out, survey->images[i].bad);
        } else {
            print_image(&survey->images[i], out);
            fprintf(out, "%zu,", group[i]);
        }
        fputc('\n', out);
    }
}

static int write_csv(const struct survey *survey, const size_t *group, const char *path,
                     struct dl2_error *error)
{
    DL2_AUTO_FREE char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return dl2_error_memory(error, "a survey");
    print_csv(survey, group, out);
    const bool failed = ferror(out);
    if (fclose(out) != 0 || failed)
        return dl2_error_memory(error, "a survey");
    return dl2_file_write(path, (const uint8_t *)text, size, error);
}

static int write_files(const struct survey *survey, const struct dl2_survey_files *files,
                       struct dl2_error *error)
{
    DL2_AUTO_FREE size_t *group = NULL;
    DL2_TRY(number_groups(survey, &group, error));
    if (files->groups)
        DL2_TRY(write_groups(survey, group, files->groups, error));
    return files->csv ? write_csv(survey, group, files->csv, error) : DL2_OK;
}

/* ---- The report */

/* Adds to a number of an object, which begins as 0 and keeps its place. */
static void add_to(json_t *counts, const char *word, json_int_t more)
{
    const json_int_t so_far = json_integer_value(json_object_get(counts, word));
    json_object_set_new(counts, word, json_integer(so_far + more));
}

static void count_number(json_t *report, const char *group, long number)
{
    char word[32];
    snprintf(word, sizeof word, "%ld", number);
    add_to(json_object_get(report, group), word, 1);
}

/* Order statistics and a histogram; sorts the values. */
static json_t *distribution(double *values, size_t count)
{
    struct dl2_summary summary;
    dl2_summarize(values, count, &summary);
    json_t *bins = json_array();
    size_t at = 0;
    for (int bin = 1; count && bin <= BINS; bin++) {
        const double end = summary.min + (summary.max - summary.min) * bin / BINS;
        const size_t first = at;
        while (at < count && (values[at] < end || bin == BINS))
            at++;
        json_array_append_new(bins, json_integer((json_int_t)(at - first)));
    }
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "mean", dl2_json_real(summary.mean),
                     "min", dl2_json_real(summary.min), "p5", dl2_json_real(summary.p5), "median",
                     dl2_json_real(summary.median), "p95", dl2_json_real(summary.p95), "max",
                     dl2_json_real(summary.max), "histogram", bins);
}

static void add_distributions(const struct survey *survey, json_t *report, double *scratch)
{
    for (int f = 0; f < FIGURES; f++) {
        size_t count = 0;
        for (size_t i = 0; i < survey->count; i++)
            if (!survey->images[i].bad && isfinite(survey->images[i].figures[f]))
                scratch[count++] = survey->images[i].figures[f];
        if (count)
            json_object_set_new(report, figures[f].name, distribution(scratch, count));
    }
}

static void add_counts(const struct survey *survey, json_t *report)
{
    dl2_json_add(report,
                 json_pack("{s:{}, s:{}, s:{}, s:i, s:i, s:i, s:i, s:i, s:{}, s:{}, s:{s:{}, "
                           "s:i, s:{}, s:i}}",
                           "formats", "channels", "bits", "alpha", 0, "cmyk", 0, "has_more", 0,
                           "above_8_bits", 0, "nearly_black", 0, "colors", "orientations", "jpeg",
                           "qualities", "exact", 0, "subsamplings", "progressive", 0));
    json_t *formats = json_object_get(report, "formats"), *jpeg = json_object_get(report, "jpeg");
    for (size_t i = 0; i < survey->count; i++) {
        const struct survey_image *image = &survey->images[i];
        const struct dl2_image_info *info = &image->info;
        if (image->bad)
            continue;
        const char *name = image->codec->name;
        if (!json_object_get(formats, name))
            json_object_set_new(formats, name, json_object());
        add_to(json_object_get(formats, name), "images", 1);
        add_to(json_object_get(formats, name), "bytes", (json_int_t)image->bytes);
        add_to(json_object_get(formats, name), "pixels", (json_int_t)info->width * info->height);
        count_number(report, "channels", info->channels);
        count_number(report, "bits", info->bits);
        count_number(report, "orientations", info->orientation);
        add_to(report, "alpha", info->alpha);
        add_to(report, "has_more", info->has_more);
        add_to(report, "cmyk", info->cmyk);
        add_to(report, "above_8_bits", info->bits > 8);
        add_to(report, "nearly_black", image->nearly_black);
        if (image->color)
            add_to(json_object_get(report, "colors"), image->color, 1);
        if (!image->has_coding)
            continue;
        count_number(jpeg, "qualities", image->coding.quality);
        add_to(json_object_get(jpeg, "subsamplings"), image->coding.subsampling, 1);
        add_to(jpeg, "exact", image->coding.exact);
        add_to(jpeg, "progressive", image->coding.progressive);
    }
}

static void add_channels(const struct survey *survey, json_t *report)
{
    double mean[CHANNELS] = {0}, square[CHANNELS] = {0}, good = 0;
    for (size_t i = 0; i < survey->count; i++)
        for (int c = 0; c < CHANNELS && !survey->images[i].bad; c++) {
            good += c == 0;
            mean[c] += survey->images[i].mean[c];
            square[c] += survey->images[i].square[c];
        }
    json_t *means = json_array(), *deviations = json_array();
    for (int c = 0; c < CHANNELS; c++) {
        json_array_append_new(means, dl2_json_real(mean[c] / good));
        json_array_append_new(
            deviations,
            dl2_json_real(sqrt(fmax(0, square[c] / good - mean[c] / good * (mean[c] / good)))));
    }
    json_object_set_new(report, "mean", means);
    json_object_set_new(report, "std", deviations);
}

/* Adds an image to its group: the keys, and whether they cross splits or classes. */
static void add_member(const struct survey *survey, size_t root, size_t index, json_t **group)
{
    const struct dl2_dataset *dataset = survey->dataset;
    struct dl2_sample first, sample;
    dl2_dataset_sample(dataset, root, &first);
    dl2_dataset_sample(dataset, index, &sample);
    if (!*group)
        *group = json_pack("{s:[o], s:b, s:b}", "keys", dl2_json_text(first.key), "across_splits",
                           false, "across_classes", false);
    json_array_append_new(json_object_get(*group, "keys"), dl2_json_text(sample.key));
    if (strcmp(dl2_dataset_split_of(dataset, index), dl2_dataset_split_of(dataset, root)) != 0)
        json_object_set_new(*group, "across_splits", json_true());
    if (sample.label != first.label)
        json_object_set_new(*group, "across_classes", json_true());
}

static int add_duplicates(const struct survey *survey, json_t *report, struct dl2_error *error)
{
    DL2_AUTO_FREE json_t **all = NULL; /* by the numbers of roots */
    DL2_AUTO_FREE bool *trained = NULL;
    DL2_TRY(DL2_NEW(&all, survey->count, "a survey", error));
    DL2_TRY(DL2_NEW(&trained, survey->count, "a survey", error));
    json_t *list = json_array();
    json_int_t groups = 0, images = 0, splits = 0, classes = 0, leaks = 0;
    for (size_t i = 0; i < survey->count; i++) {
        const size_t root = root_of(survey->parent, i);
        trained[root] |= survey->uses[i] == TRAINING;
        if (root != i)
            add_member(survey, root, i, &all[root]);
    }
    for (size_t i = 0; i < survey->count; i++) {
        leaks += survey->uses[i] == VALIDATION && trained[root_of(survey->parent, i)];
        if (!all[i])
            continue;
        groups++;
        images += (json_int_t)json_array_size(json_object_get(all[i], "keys"));
        splits += json_is_true(json_object_get(all[i], "across_splits"));
        classes += json_is_true(json_object_get(all[i], "across_classes"));
        if (groups <= MAX_GROUPS)
            json_array_append(list, all[i]);
        json_decref(all[i]);
    }
    json_object_set_new(
        report, "duplicates",
        json_pack("{s:I, s:I, s:I, s:I, s:o, s:o}", "groups", groups, "images", images,
                  "across_splits", splits, "across_classes", classes, "val_near_train",
                  survey->validated ? json_integer(leaks) : json_null(), "list", list));
    return DL2_OK;
}

static void add_bad(const struct survey *survey, json_t *report)
{
    json_t *list = json_array();
    for (size_t i = 0; i < survey->count; i++) {
        struct dl2_sample sample;
        if (!survey->images[i].bad)
            continue;
        dl2_dataset_sample(survey->dataset, i, &sample);
        json_array_append_new(list, json_pack("{s:o, s:o}", "path", dl2_json_text(sample.path),
                                              "reason", dl2_json_text(survey->images[i].bad)));
    }
    json_object_set_new(report, "bad", list);
}

static void add_splits(const struct survey *survey, json_t *report)
{
    const bool has_splits = dl2_dataset_has_parts(survey->dataset);
    json_t *splits = has_splits ? json_object() : json_null();
    for (size_t i = 0; has_splits && i < survey->count; i++) {
        const char *name = dl2_dataset_split_of(survey->dataset, i);
        add_to(splits, *name ? name : "elsewhere", 1);
    }
    json_object_set_new(report, "splits", splits);
}

static int make_report(const struct survey *survey, json_t **out, struct dl2_error *error)
{
    json_t *report = *out =
        json_pack("{s:s, s:o, s:I, s:i}", "schema", "dl2-survey/1", "source",
                  dl2_json_text(survey->options->source), "images", (json_int_t)survey->count,
                  "classes", (int)dl2_dataset_class_count(survey->dataset));
    DL2_AUTO_FREE double *scratch = NULL;
    DL2_TRY(DL2_NEW(&scratch, survey->count, "a survey", error));
    if (!report)
        return dl2_error_memory(error, "a survey");
    add_splits(survey, report);
    add_counts(survey, report);
    add_distributions(survey, report, scratch);
    add_channels(survey, report);
    DL2_TRY(add_duplicates(survey, report, error));
    add_bad(survey, report);
    json_object_set_new(report, "machine", dl2_machine_describe());
    json_object_set_new(report, "versions", dl2_codec_versions());
    return DL2_OK;
}

/* ---- The whole */

static int run_survey(struct survey *survey, struct dl2_error *error)
{
    struct dl2_parallel loop = {.jobs = survey->options->jobs,
                                .count = survey->count,
                                .work = work,
                                .emit = count_done,
                                .context = survey};
    dl2_parallel_resolve(&loop);
    DL2_TRY(DL2_NEW(&survey->images, survey->count, "a survey", error));
    DL2_TRY(DL2_NEW(&survey->workers, loop.jobs, "a survey", error));
    survey->worker_count = loop.jobs;
    survey->options->progress->total = survey->count;
    DL2_TRY(dl2_parallel_run(&loop, error));
    return find_duplicates(survey, error);
}

static void close_survey(struct survey *survey)
{
    for (unsigned i = 0; i < survey->worker_count; i++) {
        dl2_bytes_free(&survey->workers[i].bytes);
        dl2_image_free(&survey->workers[i].image);
        dl2_image_free(&survey->workers[i].scratch);
        dl2_decoder_destroy(survey->workers[i].decoder);
        dl2_color_free(&survey->workers[i].color);
    }
    for (size_t i = 0; survey->images && i < survey->count; i++) {
        free(survey->images[i].color);
        free(survey->images[i].bad);
    }
    free(survey->images);
    free(survey->workers);
    free(survey->parent);
    free(survey->uses);
    dl2_dataset_close(survey->dataset);
}

int dl2_survey(const struct dl2_transcode_options *options, const struct dl2_survey_files *files,
               json_t **out, struct dl2_error *error)
{
    DL2_CLEANUP(close_survey) struct survey survey = {.options = options};
    const struct dl2_dataset_options all =
        dl2_image_dataset_options(options->samples, &options->members);
    DL2_TRY(dl2_dataset_open(options->source, &all, &survey.dataset, error));
    survey.count = dl2_dataset_count(survey.dataset);
    dl2_dataset_tell(survey.dataset, options->source, false, options->progress);
    DL2_TRY(find_uses(&survey, &all, error));
    DL2_TRY(run_survey(&survey, error));
    json_auto_t *report = NULL;
    DL2_TRY(make_report(&survey, &report, error));
    if (files->groups || files->csv)
        DL2_TRY(write_files(&survey, files, error));
    *out = json_incref(report);
    return DL2_OK;
}

/* ---- The table */

static void print_distribution(const json_t *survey, const struct figure *figure, FILE *out)
{
    const json_t *summary = json_object_get(survey, figure->name);
    static const char *const columns[] = {"min", "p5", "median", "p95", "max"};
    if (!summary)
        return;
    fprintf(out, "%-14s", figure->name);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        fprintf(out, " %10.*f", figure->digits, dl2_json_get_real(summary, columns[i], 0));
    fprintf(out, "\n");
}

/* "420 1200, 444 20" */
static void print_counts(const json_t *counts, const char *title, FILE *out)
{
    const char *word, *comma = "";
    json_t *count;
    fprintf(out, "%-14s", title);
    json_object_foreach((json_t *)counts, word, count)
    {
        fprintf(out, "%s %s: %lld", comma, DL2_SHOWN(word), (long long)json_integer_value(count));
        comma = ",";
    }
    fprintf(out, "\n");
}

static void print_duplicates(const json_t *duplicates, FILE *out)
{
    const json_t *list = json_object_get(duplicates, "list");
    size_t i, k, shown = 0;
    json_t *group, *key;
    fprintf(out,
            "near duplicates: %lld images in %lld groups; %lld groups span several splits, "
            "%lld several classes\n",
            dl2_json_get_integer(duplicates, "images", 0),
            dl2_json_get_integer(duplicates, "groups", 0),
            dl2_json_get_integer(duplicates, "across_splits", 0),
            dl2_json_get_integer(duplicates, "across_classes", 0));
    const long long leaks = dl2_json_get_integer(duplicates, "val_near_train", 0);
    if (leaks)
        fprintf(out,
                "  %lld validation image%s a near duplicate among the training images: accuracies "
                "are too high\n",
                leaks, leaks == 1 ? " has" : "s have");
    json_array_foreach(list, i, group)
    {
        if (!json_is_true(json_object_get(group, "across_splits")) || shown++ >= MAX_SHOWN)
            continue;
        fprintf(out, "  in several splits:");
        json_array_foreach(json_object_get(group, "keys"), k, key) if (k < MAX_SHOWN)
            fprintf(out, " %s", DL2_SHOWN(json_string_value(key)));
        fprintf(out, "\n");
    }
}

void dl2_survey_print(const json_t *survey, FILE *out)
{
    const char *name;
    json_t *format;
    const json_t *jpeg = json_object_get(survey, "jpeg");
    fprintf(out, "%-14s %10s %14s %10s\n", "format", "images", "bytes", "bpp");
    json_object_foreach(json_object_get(survey, "formats"), name, format)
    {
        const double bytes = (double)dl2_json_get_integer(format, "bytes", 0);
        fprintf(out, "%-14s %10lld %14.0f %10.3f\n", name,
                dl2_json_get_integer(format, "images", 0), bytes,
                8 * bytes / (double)dl2_json_get_integer(format, "pixels", 1));
    }
    fprintf(out, "\n%-14s %10s %10s %10s %10s %10s\n", "", "min", "5%", "median", "95%", "max");
    for (int f = 0; f < FIGURES; f++)
        print_distribution(survey, &figures[f], out);
    fprintf(out, "\n");
    print_counts(json_object_get(survey, "channels"), "channels", out);
    print_counts(json_object_get(survey, "bits"), "bits", out);
    print_counts(json_object_get(survey, "orientations"), "orientation", out);
    fprintf(out, "%-14s above 8 bits: %lld, alpha: %lld, CMYK: %lld, several frames: %lld\n",
            "more than RGB", dl2_json_get_integer(survey, "above_8_bits", 0),
            dl2_json_get_integer(survey, "alpha", 0), dl2_json_get_integer(survey, "cmyk", 0),
            dl2_json_get_integer(survey, "has_more", 0));
    const long long black = dl2_json_get_integer(survey, "nearly_black", 0);
    if (black)
        fprintf(out, "%-14s nearly black: %lld, of 16 bits but perhaps with data of 12 bits\n", "",
                black);
    if (json_object_size(json_object_get(survey, "colors")))
        print_counts(json_object_get(survey, "colors"), "not sRGB", out);
    if (json_object_size(json_object_get(jpeg, "qualities"))) {
        print_counts(json_object_get(jpeg, "subsamplings"), "subsampling", out);
        fprintf(out, "%-14s %lld of the JPEG files\n", "progressive",
                dl2_json_get_integer(jpeg, "progressive", 0));
    }
    fprintf(out, "\n");
    print_duplicates(json_object_get(survey, "duplicates"), out);
    const json_t *mean = json_object_get(survey, "mean"), *std = json_object_get(survey, "std");
    if (json_is_real(json_array_get(mean, 0)))
        fprintf(out, "for dl2-train: --mean %.2f,%.2f,%.2f --std %.2f,%.2f,%.2f\n",
                json_real_value(json_array_get(mean, 0)), json_real_value(json_array_get(mean, 1)),
                json_real_value(json_array_get(mean, 2)), json_real_value(json_array_get(std, 0)),
                json_real_value(json_array_get(std, 1)), json_real_value(json_array_get(std, 2)));
    const double high = dl2_json_get_real(json_object_get(survey, "quality"), "p95", 0);
    if (high > 0)
        fprintf(out,
                "95%% of the JPEG files are of quality %.0f or below: recompressing them at that "
                "quality or a higher one saves little, unless chroma becomes coarser\n",
                ceil(high));
}
