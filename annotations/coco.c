/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file's outermost object, and the arrays in it, are read here, byte by byte; each element of
 * the arrays that matter goes to Jansson. So memory is that of one element, and not of a tree of
 * the whole file, which is several times as large as the file.
 */
#include "annotations/annotations.h"

#include "common/file.h"
#include "common/json.h"
#include "common/quote.h"
#include "common/scope.h"
#include "dataset/packed/label_field.h"
#include "dataset/split.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum {
    MAX_ELEMENT = 64 << 20, /* bytes of an element's text */
    MAX_SIDE = 1 << 24,     /* of an image, pixels */
    NAMED = 3,              /* broken elements that are named */
    FAULT_BYTES = 640
};
#define MAX_COORDINATE 1e9
#define NOWHERE        UINT32_MAX

struct listed {
    int64_t id;
    uint32_t number; /* in the file, from 1: the id of an image whose own is a text; else 0 */
    uint32_t width, height;
    size_t name, stem_length; /* in coco->names; as dl2_path_tidy() leaves it */
    bool is_absolute;         /* the name, which may be of another machine */
    uint32_t sample;          /* or NOWHERE */
    uint32_t first, count;    /* of its annotations */
};

struct category {
    int64_t id;
    size_t name; /* in coco->names; SIZE_MAX: it has none */
};

/* An annotation before its image is known. */
struct found {
    struct dl2_annotation annotation;
    int64_t image_id, id; /* id -1: it has none */
    size_t number;        /* in the file */
};

struct dl2_coco {
    struct dl2_bytes names;      /* of images, each ended by 0 */
    struct dl2_bytes images;     /* struct listed, ordered by id once they are all there */
    struct dl2_bytes categories; /* struct category, ordered likewise */
    struct dl2_bytes shapes;     /* uint32_t */
    struct dl2_bytes found;      /* struct found, while reading */
    struct dl2_annotation *annotations;
    uint32_t *by_sample; /* [samples] number among images, or NOWHERE */
    size_t samples;
    const char **missing;
    struct dl2_coco_facts facts;
    char faults[FAULT_BYTES]; /* the first broken elements */
};

/* A file under way. */
struct reader {
    FILE *file;
    struct dl2_coco *coco;
    bool shapes;
    struct dl2_bytes text; /* of the value that was read last */
    uint64_t at;           /* bytes read */
    size_t ambiguous; /* faults that leave unknown what is meant, so that the file is refused */
    char faults[FAULT_BYTES]; /* the first of them */
};

static struct listed *images_of(const struct dl2_coco *coco)
{
    return (struct listed *)(void *)coco->images.data;
}

static size_t image_count(const struct dl2_coco *coco)
{
    return coco->images.size / sizeof(struct listed);
}

static struct found *found_in(const struct dl2_coco *coco)
{
    return (struct found *)(void *)coco->found.data;
}

static size_t found_count(const struct dl2_coco *coco)
{
    return coco->found.size / sizeof(struct found);
}

/* Adds to `faults` what is wrong with one more element, if it is one of the first. */
DL2_PRINTF(3, 0)
static void add_fault(char faults[FAULT_BYTES], size_t before, const char *format,
                      va_list arguments)
{
    const size_t used = strlen(faults), room = FAULT_BYTES - used;
    if (before >= NAMED)
        return;
    const int added = snprintf(faults + used, room, "%s", used ? "; " : "");
    vsnprintf(faults + used + added, room - (size_t)added, format, arguments);
}

/* Notes a broken element, which is left out. */
DL2_PRINTF(2, 3) static void note_broken(struct reader *reader, const char *format, ...)
{
    struct dl2_coco *coco = reader->coco;
    va_list arguments;
    va_start(arguments, format);
    add_fault(coco->faults, coco->facts.broken++, format, arguments);
    va_end(arguments);
}

/* Notes what leaves unknown which is meant; the file is read on, so that these are counted. */
DL2_PRINTF(2, 3) static void note_ambiguous(struct reader *reader, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_fault(reader->faults, reader->ambiguous++, format, arguments);
    va_end(arguments);
}

/* ---- bytes ---- */

static int next_byte(struct reader *reader)
{
    const int byte = getc_unlocked(reader->file);
    reader->at += byte != EOF;
    return byte;
}

static void put_back(struct reader *reader, int byte)
{
    if (byte != EOF)
        reader->at--;
    ungetc(byte, reader->file);
}

static int next_mark(struct reader *reader)
{
    int byte;
    do
        byte = next_byte(reader);
    while (byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r');
    return byte;
}

static int refuse_byte(const struct reader *reader, int byte, const char *wanted,
                       struct dl2_error *error)
{
    if (byte == EOF && ferror(reader->file))
        return dl2_error_set(error, DL2_ERR_SYSTEM, "cannot be read: %s", strerror(errno));
    if (byte == EOF)
        return dl2_error_set(error, DL2_ERR_FORMAT, "is cut short: it ends where %s should be",
                             wanted);
    return dl2_error_set(error, DL2_ERR_FORMAT,
                         "byte %" PRIu64 " begins no %s: it is not COCO's JSON", reader->at,
                         wanted);
}

static int append(struct reader *reader, const char *text, size_t size, struct dl2_error *error)
{
    struct dl2_bytes *to = &reader->text;
    if (size == 1 && to->size < to->capacity) { /* mostly */
        to->data[to->size++] = (uint8_t)*text;
        return DL2_OK;
    }
    if (to->size + size > MAX_ELEMENT)
        return dl2_error_set(error, DL2_ERR_LIMIT,
                             "the element that ends at byte %" PRIu64 " is larger than 64 MiB",
                             reader->at);
    return dl2_bytes_append(to, text, size, error);
}

/*
 * Reads a value as far as brackets and strings tell where it ends, into reader->text if `keep`; an
 * object's member "segmentation" becomes null where shapes are not wanted, since it is most of a
 * file. Jansson judges what was kept.
 */
static int take_value(struct reader *reader, bool keep, struct dl2_error *error)
{
    static const char skipped[] = "\"segmentation\"";
    size_t depth = 0, key = 0;
    bool in_string = false, escaped = false, leaving = false;
    int byte = next_mark(reader);
    reader->text.size = 0;
    for (;; byte = next_byte(reader)) {
        const char letter = (char)byte;
        if (byte == EOF)
            return refuse_byte(reader, byte, "the rest of a value", error);
        const bool ends = !in_string && strchr(",]}", byte) && byte;
        if (!depth && ends) {
            put_back(reader, byte);
            return DL2_OK;
        }
        leaving = leaving && !(ends && depth == 1);
        if (!leaving && keep)
            DL2_TRY(append(reader, &letter, 1, error));
        if (in_string) {
            in_string = escaped || byte != '"';
            escaped = !escaped && byte == '\\';
            if (!in_string && !depth)
                return DL2_OK;
            continue;
        }
        if (byte == '"') {
            in_string = true;
            key = reader->text.size - 1;
        }
        depth += byte == '[' || byte == '{';
        depth -= byte == ']' || byte == '}';
        if (!depth && ends)
            return DL2_OK;
        if (byte == ':' && depth == 1 && keep && !leaving && !reader->shapes &&
            reader->text.size - 1 - key == sizeof skipped - 1 &&
            !memcmp(reader->text.data + key, skipped, sizeof skipped - 1)) {
            leaving = true;
            DL2_TRY(append(reader, "null", 4, error));
        }
    }
}

/* The value that was read last, as Jansson's; NULL and an error. */
static json_t *parse_value(const struct reader *reader, struct dl2_error *error)
{
    json_error_t fault;
    json_t *value = dl2_json_parse(reader->text.data, reader->text.size,
                                   JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &fault);
    if (!value)
        dl2_error_set(error, DL2_ERR_FORMAT, "%s, in the value that ends at byte %" PRIu64,
                      fault.text, reader->at);
    return value;
}

/* ---- elements ---- */

/* A side of an image: 0 where the file does not have it. */
static bool take_side(const json_t *image, const char *name, uint32_t *side)
{
    const json_t *value = json_object_get(image, name);
    *side = 0;
    if (!value || json_is_null(value))
        return true;
    if (!json_is_integer(value) || json_integer_value(value) < 1 ||
        json_integer_value(value) > MAX_SIDE)
        return false;
    *side = (uint32_t)json_integer_value(value);
    return true;
}

/* An id: a whole number, also one in quotes. *is_text: any other text, which is hashed. */
static bool take_id(const json_t *value, int64_t *id, bool *is_text)
{
    const char *text = json_string_value(value);
    const int64_t number = text ? dl2_label_number(text) : json_integer_value(value);
    *is_text = text && *text && (number < 0 || number == INT64_MAX);
    *id = *is_text ? (int64_t)(XXH3_64bits(text, strlen(text)) >> 1) : number;
    return json_is_integer(value) || (text && *text);
}

static int take_image(struct reader *reader, const json_t *element, size_t number,
                      struct dl2_error *error)
{
    struct dl2_coco *coco = reader->coco;
    const char *text = json_string_value(json_object_get(element, "file_name"));
    struct listed image = {.sample = NOWHERE, .name = coco->names.size};
    bool is_text;
    if (!take_id(json_object_get(element, "id"), &image.id, &is_text))
        note_broken(reader, "image number %zu has no id", number);
    else if (!text || !*text)
        note_broken(reader, "image number %zu has no file_name", number);
    else if (!take_side(element, "width", &image.width) ||
             !take_side(element, "height", &image.height) || !image.width != !image.height)
        note_broken(reader, "image number %zu, '%.200s', has an invalid width or height", number,
                    text);
    else {
        image.number = is_text ? (uint32_t)number : 0;
        DL2_TRY(dl2_bytes_append(&coco->names, text, strlen(text) + 1, error));
        char *name = (char *)coco->names.data + image.name;
        for (char *at = name; (at = strchr(at, '\\'));) /* as Windows has paths */
            *at = '/';
        image.is_absolute = *name == '/' || (*name && !strncmp(name + 1, ":/", 2));
        dl2_path_tidy(name);
        image.stem_length = dl2_path_stem_length(name);
        DL2_TRY(dl2_bytes_append(&coco->images, &image, sizeof image, error));
    }
    return DL2_OK;
}

static int take_category(struct reader *reader, const json_t *element, size_t number,
                         struct dl2_error *error)
{
    const char *name = json_string_value(json_object_get(element, "name"));
    struct dl2_coco *coco = reader->coco;
    struct category category = {.name = name ? coco->names.size : SIZE_MAX};
    bool is_text;
    if (take_id(json_object_get(element, "id"), &category.id, &is_text) && !is_text) {
        if (name)
            DL2_TRY(dl2_bytes_append(&coco->names, name, strlen(name) + 1, error));
        return dl2_bytes_append(&coco->categories, &category, sizeof category, error);
    }
    note_broken(reader, "category number %zu has no whole number as its id", number);
    return DL2_OK;
}

/* Why the box is none; NULL: it is one. */
static const char *take_box(const json_t *box, struct dl2_annotation *annotation)
{
    double numbers[4];
    if (json_array_size(box) != 4)
        return "has no bbox of four numbers";
    for (size_t i = 0; i < 4; i++) {
        const json_t *number = json_array_get(box, i);
        numbers[i] = json_number_value(number);
        if (!json_is_number(number))
            return "has a bbox of what are no numbers";
        if (fabs(numbers[i]) > MAX_COORDINATE)
            return "has a bbox beyond a billion pixels";
    }
    if (numbers[2] < 0 || numbers[3] < 0)
        return "has a bbox of negative size";
    annotation->left = numbers[0];
    annotation->top = numbers[1];
    annotation->right = numbers[0] + numbers[2];
    annotation->bottom = numbers[1] + numbers[3];
    return NULL;
}

/* Adds a number to the shapes; they are there until the file is closed. */
static int add_word(struct dl2_coco *coco, uint32_t word, struct dl2_error *error)
{
    return dl2_bytes_append(&coco->shapes, &word, sizeof word, error);
}

static int take_polygons(struct dl2_coco *coco, const json_t *polygons, const char **why,
                         struct dl2_error *error)
{
    DL2_TRY(add_word(coco, (uint32_t)json_array_size(polygons), error));
    for (size_t i = 0; i < json_array_size(polygons) && !*why; i++) {
        const json_t *polygon = json_array_get(polygons, i);
        const size_t count = json_array_size(polygon);
        if (count < 6 || count % 2) {
            *why = "has a polygon that is no list of three or more points";
            break;
        }
        DL2_TRY(add_word(coco, (uint32_t)(count / 2), error));
        for (size_t j = 0; j < count && !*why; j++) {
            const json_t *number = json_array_get(polygon, j);
            const double value = json_number_value(number);
            if (!json_is_number(number) || fabs(value) > DL2_POLYGON_MAX)
                *why = "has a polygon of what are no numbers, or beyond a million pixels";
            else /* as pycocotools rounds */
                DL2_TRY(add_word(coco, (uint32_t)(int32_t)(5 * value + 0.5), error));
        }
    }
    return DL2_OK;
}

/* A number of compressed run lengths, which *text goes behind; false: it is damaged. */
static bool take_number(const char **text, int64_t *number)
{
    const char *at = *text;
    int64_t value = 0;
    unsigned bits = 0, group;
    do {
        if (*at < '0' || *at > '0' + 63 || bits > 35)
            return false;
        group = (unsigned)(*at++ - '0');
        value |= (int64_t)(group & 31) << bits;
        bits += 5;
    } while (group & 32);
    if (group & 16)
        value -= (int64_t)1 << bits;
    *number = value;
    *text = at;
    return true;
}

int dl2_coco_read_runs(const json_t *counts, uint64_t pixels, struct dl2_bytes *runs,
                       struct dl2_error *error)
{
    const char *text = json_string_value(counts);
    for (size_t i = 0; text ? *text != '\0' : i < json_array_size(counts); i++) {
        const json_t *number = text ? NULL : json_array_get(counts, i);
        int64_t run = json_integer_value(number);
        if (text ? !take_number(&text, &run) : !json_is_integer(number))
            return 0;
        if (text && i > 2)
            run += ((const uint32_t *)(void *)(runs->data + runs->size))[-2];
        if (run < 0 || run > UINT32_MAX || (uint64_t)run > pixels)
            return 0;
        const uint32_t length = (uint32_t)run;
        pixels -= length;
        DL2_TRY(dl2_bytes_append(runs, &length, sizeof length, error));
    }
    return !pixels;
}

static int take_runs(struct dl2_coco *coco, const json_t *shape, const char **why,
                     struct dl2_error *error)
{
    const json_t *size = json_object_get(shape, "size"), *counts = json_object_get(shape, "counts");
    const json_t *height = json_array_get(size, 0), *width = json_array_get(size, 1);
    if (!json_is_integer(height) || !json_is_integer(width) || json_array_size(size) != 2 ||
        json_integer_value(height) < 1 || json_integer_value(height) > MAX_SIDE ||
        json_integer_value(width) < 1 || json_integer_value(width) > MAX_SIDE ||
        (!json_is_string(counts) && !json_is_array(counts))) {
        *why = "has run lengths without size and counts";
        return DL2_OK;
    }
    DL2_TRY(add_word(coco, 0, error));
    DL2_TRY(add_word(coco, (uint32_t)json_integer_value(height), error));
    DL2_TRY(add_word(coco, (uint32_t)json_integer_value(width), error));
    const size_t at = coco->shapes.size;
    DL2_TRY(add_word(coco, 0, error));
    const int read = dl2_coco_read_runs(
        counts, (uint64_t)(json_integer_value(height) * json_integer_value(width)), &coco->shapes,
        error);
    DL2_TRY(read);
    if (!read)
        *why = "has run lengths that are damaged, or do not fit their size";
    ((uint32_t *)(void *)(coco->shapes.data + at))[0] =
        (uint32_t)((coco->shapes.size - at) / sizeof(uint32_t) - 1);
    return DL2_OK;
}

static int take_shape(struct dl2_coco *coco, const json_t *shape, struct dl2_annotation *annotation,
                      const char **why, struct dl2_error *error)
{
    annotation->shape = coco->shapes.size / sizeof(uint32_t);
    if (json_array_size(shape))
        return take_polygons(coco, shape, why, error);
    if (json_is_object(shape))
        return take_runs(coco, shape, why, error);
    *why = "has no segmentation to make a mask of";
    return DL2_OK;
}

/* An annotation is broken: why. */
static void note_annotation(struct reader *reader, const struct found *found, const char *why)
{
    if (found->id >= 0)
        note_broken(reader, "annotation %" PRId64 " %s", found->id, why);
    else
        note_broken(reader, "annotation number %zu %s", found->number, why);
}

static int take_annotation(struct reader *reader, const json_t *element, size_t number,
                           struct dl2_error *error)
{
    const json_t *id = json_object_get(element, "id");
    const json_t *image_id = json_object_get(element, "image_id");
    const json_t *category = json_object_get(element, "category_id");
    const json_t *crowd = json_object_get(element, "iscrowd");
    const json_t *value = json_object_get(element, "area"); /* Python's NaN is null */
    const json_t *area = json_is_null(value) ? NULL : value;
    bool is_word; /* of an image's id it does not matter */
    struct found found = {.id = json_is_integer(id) ? json_integer_value(id) : -1,
                          .number = number};
    struct dl2_annotation *to = &found.annotation;
    const char *why = take_box(json_object_get(element, "bbox"), to);
    if (!take_id(image_id, &found.image_id, &is_word))
        why = "has no image_id";
    else if (!take_id(category, &to->label, &is_word) || is_word)
        why = "has no whole number as its category_id";
    else if (crowd && !json_is_null(crowd) && !json_is_boolean(crowd) &&
             !(json_is_integer(crowd) && json_integer_value(crowd) >= 0 &&
               json_integer_value(crowd) <= 1))
        why = "has an iscrowd that is neither 0 nor 1";
    else if (area && !(json_is_number(area) && json_number_value(area) >= 0 &&
                       json_number_value(area) <= MAX_COORDINATE * MAX_COORDINATE))
        why = "has an area that is no number from 0 on";
    to->crowd = json_is_true(crowd) || json_integer_value(crowd) == 1;
    to->area =
        (float)(area ? json_number_value(area) : (to->right - to->left) * (to->bottom - to->top));
    const size_t shapes = reader->coco->shapes.size;
    if (!why && reader->shapes)
        DL2_TRY(
            take_shape(reader->coco, json_object_get(element, "segmentation"), to, &why, error));
    if (!why)
        return dl2_bytes_append(&reader->coco->found, &found, sizeof found, error);
    reader->coco->shapes.size = shapes;
    note_annotation(reader, &found, why);
    return DL2_OK;
}

/* ---- the file ---- */

struct part {
    const char *name;
    int (*take)(struct reader *reader, const json_t *element, size_t number,
                struct dl2_error *error);
    bool seen;
};

static int read_elements(struct reader *reader, struct part *part, struct dl2_error *error)
{
    int byte = next_mark(reader);
    if (byte != '[')
        return refuse_byte(reader, byte, "array", error);
    byte = next_mark(reader);
    if (byte == ']')
        return DL2_OK;
    put_back(reader, byte);
    for (size_t number = 1;; number++) {
        if (number >= NOWHERE)
            return dl2_error_set(error, DL2_ERR_LIMIT, "more elements than can be counted");
        DL2_TRY(take_value(reader, true, error));
        json_auto_t *element = parse_value(reader, error);
        if (!element)
            return DL2_ERR_FORMAT;
        DL2_TRY(part->take(reader, element, number, error));
        byte = next_mark(reader);
        if (byte == ']')
            return DL2_OK;
        if (byte != ',')
            return refuse_byte(reader, byte, "comma or end of an array", error);
    }
}

static int read_member(struct reader *reader, struct part *parts, struct dl2_error *error)
{
    DL2_TRY(take_value(reader, true, error));
    json_auto_t *key = parse_value(reader, error);
    if (!key)
        return DL2_ERR_FORMAT;
    const char *name = json_string_value(key);
    const int byte = next_mark(reader);
    if (!name || byte != ':')
        return refuse_byte(reader, byte, "name of a member", error);
    for (struct part *part = parts; part->name; part++)
        if (!strcmp(part->name, name)) {
            if (part->seen)
                return dl2_error_set(error, DL2_ERR_FORMAT, "it has '%s' twice", name);
            part->seen = true;
            const int status = read_elements(reader, part, error);
            if (status < 0)
                dl2_error_prefix(error, "%s", part->name);
            return status;
        }
    return take_value(reader, false, error);
}

static int read_file(struct reader *reader, struct dl2_error *error)
{
    struct part parts[] = {{"images", take_image, false},
                           {"annotations", take_annotation, false},
                           {"categories", take_category, false},
                           {NULL, NULL, false}};
    char mark[3];
    if (dl2_text_mark(mark, fread(mark, 1, sizeof mark, reader->file)))
        reader->at = sizeof mark;
    else
        rewind(reader->file);
    int byte = next_mark(reader);
    if (byte != '{')
        return refuse_byte(reader, byte, "object", error);
    DL2_TRY(add_word(reader->coco, 0, error)); /* so that shape 0 is none */
    do {
        DL2_TRY(read_member(reader, parts, error));
        byte = next_mark(reader);
    } while (byte == ',');
    if (byte != '}')
        return refuse_byte(reader, byte, "comma or end of an object", error);
    byte = next_mark(reader);
    if (byte != EOF)
        return refuse_byte(reader, byte, "end of the file", error);
    for (const struct part *part = parts; part->name; part++)
        if (!part->seen)
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "it has no '%s': COCO's files of instances have images, "
                                 "annotations and categories",
                                 part->name);
    return DL2_OK;
}

/* ---- what leads where ---- */

static int compare_numbers(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_ids(const void *a, const void *b)
{
    return compare_numbers(((const struct listed *)a)->id, ((const struct listed *)b)->id);
}

static int compare_categories(const void *a, const void *b)
{
    return compare_numbers(((const struct category *)a)->id, ((const struct category *)b)->id);
}

/* Does an annotation lead to an image and a category that are there? */
static bool leads_somewhere(struct reader *reader, const struct found *found)
{
    const struct dl2_coco *coco = reader->coco;
    const struct listed wanted = {.id = found->image_id};
    const bool image = coco->facts.images && bsearch(&wanted, images_of(coco), coco->facts.images,
                                                     sizeof wanted, compare_ids);
    const struct category label = {.id = found->annotation.label};
    const bool category =
        coco->facts.categories && bsearch(&label, coco->categories.data, coco->facts.categories,
                                          sizeof label, compare_categories);
    char why[64];
    snprintf(why, sizeof why, "is of category %" PRId64 ", which is not there",
             found->annotation.label);
    if (!image || !category)
        note_annotation(reader, found, image ? why : "is of an image that is not there");
    return image && category;
}

static void check_ids(struct reader *reader)
{
    struct dl2_coco *coco = reader->coco;
    struct listed *images = images_of(coco);
    struct found *found = found_in(coco);
    struct category *categories = (struct category *)(void *)coco->categories.data;
    coco->facts.images = image_count(coco);
    coco->facts.categories = coco->categories.size / sizeof *categories;
    if (coco->facts.categories)
        qsort(categories, coco->facts.categories, sizeof *categories, compare_categories);
    for (size_t i = 1; i < coco->facts.categories; i++)
        if (categories[i].id == categories[i - 1].id)
            note_ambiguous(reader, "category %" PRId64 " comes twice", categories[i].id);
    for (size_t i = 1; i < coco->facts.images; i++)
        if (images[i].id == images[i - 1].id)
            note_ambiguous(reader, "the id of image '%.200s' comes twice",
                           (const char *)coco->names.data + images[i].name);
    size_t kept = 0;
    for (size_t i = 0, count = found_count(coco); i < count; i++)
        if (leads_somewhere(reader, &found[i]))
            found[kept++] = found[i];
    coco->found.size = kept * sizeof *found;
    coco->facts.annotations = kept;
}

/* Orders the annotations by image, each image's as the file has them. */
static int group_annotations(struct dl2_coco *coco, struct dl2_error *error)
{
    struct listed *images = images_of(coco);
    const size_t count = found_count(coco);
    DL2_TRY(DL2_NEW(&coco->annotations, count + 1, "annotations", error));
    DL2_AUTO_FREE struct listed **of = NULL;
    DL2_TRY(DL2_NEW(&of, count + 1, "annotations", error));
    for (size_t i = 0; i < count; i++) {
        const struct listed wanted = {.id = found_in(coco)[i].image_id};
        of[i] = bsearch(&wanted, images, image_count(coco), sizeof *images, compare_ids);
        of[i]->count++;
    }
    uint32_t first = 0;
    for (size_t i = 0; i < image_count(coco); i++) {
        images[i].first = first;
        first += images[i].count;
        images[i].count = 0;
    }
    for (size_t i = 0; i < count; i++)
        coco->annotations[of[i]->first + of[i]->count++] = found_in(coco)[i].annotation;
    dl2_bytes_free(&coco->found);
    return DL2_OK;
}

/* A name of the file without its extension. */
struct stem {
    const char *text;
    size_t length;
    uint32_t image;
};

static int compare_stems(const void *a, const void *b)
{
    const struct stem *left = a, *right = b;
    return dl2_compare_spans(left->text, left->length, right->text, right->length);
}

/* The image that a sample is, by the longest end of its key that is a name; or NULL. */
static const struct stem *find_stem(const struct stem *stems, size_t count, const char *key)
{
    for (const char *end = key, *slash; end; end = slash ? slash + 1 : NULL) {
        slash = strchr(end, '/');
        const struct stem wanted = {end, strlen(end), 0};
        const struct stem *found = bsearch(&wanted, stems, count, sizeof *stems, compare_stems);
        if (found)
            return found;
    }
    return NULL;
}

/* Orders names from their ends on; a slash comes first. */
static int compare_ends(const void *a, const void *b)
{
    const struct stem *left = a, *right = b;
    for (size_t i = 1; i <= left->length && i <= right->length; i++) {
        const char one = left->text[left->length - i], two = right->text[right->length - i];
        if (one != two)
            return one == '/' ? -1 : two == '/' ? 1 : (one > two) - (one < two);
    }
    return (left->length > right->length) - (left->length < right->length);
}

static bool has_end(const struct stem *name, const struct stem *end)
{
    const size_t before = name->length > end->length ? name->length - end->length : 0;
    return before && name->text[before - 1] == '/' &&
           !memcmp(name->text + before, end->text, end->length);
}

/* The only absolute name that ends with a slash and the key; NULL: there are none or several. */
static const struct stem *find_absolute(const struct stem *absolute, size_t count, const char *key)
{
    const struct stem wanted = {key, strlen(key), 0};
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (compare_ends(&absolute[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    const bool found = low < count && has_end(&absolute[low], &wanted);
    const bool several = low + 1 < count && has_end(&absolute[low + 1], &wanted);
    return found && !several ? &absolute[low] : NULL;
}

/* Absolute names, by their ends: those of another machine have more parts than their samples' keys.
 */
static int sort_absolute(const struct dl2_coco *coco, struct stem **absolute, size_t *count,
                         struct dl2_error *error)
{
    const struct listed *images = images_of(coco);
    *count = 0;
    DL2_TRY(DL2_NEW(absolute, coco->facts.images + 1, "names", error));
    for (size_t i = 0; i < coco->facts.images; i++)
        if (images[i].is_absolute)
            (*absolute)[(*count)++] = (struct stem){(const char *)coco->names.data + images[i].name,
                                                    images[i].stem_length, (uint32_t)i};
    qsort(*absolute, *count, sizeof **absolute, compare_ends);
    return DL2_OK;
}

/* A sample's path without extension, but with what a member's name has between its first dot and
 * its last; a shard's name stands in the place of a folder's. `key`: its key, or what follows the
 * split that the shard's name gave it. */
static int print_long_name(const struct dl2_sample *sample, const char *key, char **name,
                           struct dl2_error *error)
{
    const char *inner = dl2_ends_with(sample->path, "]") ? strrchr(sample->path, '[') : NULL;
    const char *dot = inner ? strrchr(sample->extension, '.') : NULL;
    DL2_AUTO_FREE char *file =
        strndup(sample->path, inner ? (size_t)(inner - sample->path) : strlen(sample->path));
    if (!file)
        return dl2_error_memory(error, "names");
    return dl2_format(name, error, "%.*s%s%s%s%.*s", (int)dl2_path_stem_length(file), file,
                      inner ? "/" : "", inner ? key : "", dot ? "." : "",
                      dot ? (int)(dot - sample->extension) : 0, sample->extension);
}

/* The image that a sample is by a name that has more than its key, or NULL. */
static int find_longer(const struct stem *stems, size_t count, const struct dl2_sample *sample,
                       const struct stem **found, struct dl2_error *error)
{
    const size_t top = strcspn(sample->key, "/");
    const bool in_split = sample->key[top] && dl2_part_of_folder(sample->key, top);
    const char *const keys[] = {sample->key, in_split ? sample->key + top + 1 : NULL};
    *found = NULL;
    for (size_t i = 0; i < 2 && keys[i] && !*found; i++) {
        DL2_AUTO_FREE char *name = NULL;
        DL2_TRY(print_long_name(sample, keys[i], &name, error));
        *found = find_stem(stems, count, name);
    }
    return DL2_OK;
}

static int match_samples(struct reader *reader, const struct dl2_dataset *dataset,
                         const struct stem *stems, struct dl2_error *error)
{
    struct dl2_coco *coco = reader->coco;
    struct listed *images = images_of(coco);
    struct dl2_sample sample, other;
    size_t count;
    DL2_AUTO_FREE struct stem *absolute = NULL;
    DL2_TRY(sort_absolute(coco, &absolute, &count, error));
    for (size_t i = 0; i < coco->samples; i++) {
        dl2_dataset_sample(dataset, i, &sample);
        const struct stem *stem = find_stem(stems, coco->facts.images, sample.key);
        stem = stem ? stem : find_absolute(absolute, count, sample.key);
        if (!stem)
            DL2_TRY(find_longer(stems, coco->facts.images, &sample, &stem, error));
        if (stem && images[stem->image].sample != NOWHERE) {
            dl2_dataset_sample(dataset, images[stem->image].sample, &other);
            note_ambiguous(reader, "%s and %s are both image '%s'", other.path, sample.path,
                           stem->text);
        } else if (stem) {
            images[stem->image].sample = (uint32_t)i;
            coco->by_sample[i] = stem->image;
        } else if (!coco->facts.unlisted++) {
            coco->facts.unlisted_key = sample.key;
        }
    }
    if (coco->facts.unlisted < coco->samples || reader->ambiguous)
        return DL2_OK;
    return dl2_error_set(
        error, DL2_ERR_FORMAT,
        "none of its %zu images is in the dataset, which has samples such as '%s'; "
        "the first image is '%s'",
        coco->facts.images, coco->facts.unlisted_key ? coco->facts.unlisted_key : "",
        coco->facts.images ? (const char *)coco->names.data + images->name : "");
}

static int match_images(struct reader *reader, const struct dl2_dataset *dataset,
                        struct dl2_error *error)
{
    struct dl2_coco *coco = reader->coco;
    struct listed *images = images_of(coco);
    const size_t count = coco->facts.images;
    DL2_AUTO_FREE struct stem *stems = NULL;
    coco->samples = dataset ? dl2_dataset_count(dataset) : count;
    if (coco->samples >= NOWHERE)
        return dl2_error_set(error, DL2_ERR_LIMIT, "more samples than can be counted");
    DL2_TRY(DL2_NEW(&stems, count + 1, "names", error));
    DL2_TRY(DL2_NEW(&coco->by_sample, coco->samples + 1, "names", error));
    for (size_t i = 0; i < coco->samples; i++)
        coco->by_sample[i] = dataset ? NOWHERE : (uint32_t)i;
    for (size_t i = 0; i < count; i++) {
        stems[i] = (struct stem){(const char *)coco->names.data + images[i].name,
                                 images[i].stem_length, (uint32_t)i};
        if (!dataset)
            images[i].sample = (uint32_t)i;
    }
    qsort(stems, count, sizeof *stems, compare_stems);
    for (size_t i = 1; i < count; i++)
        if (!compare_stems(&stems[i - 1], &stems[i]))
            note_ambiguous(reader, "images %" PRId64 " and %" PRId64 " have one name, '%s'",
                           images[stems[i - 1].image].id, images[stems[i].image].id, stems[i].text);
    if (dataset)
        DL2_TRY(match_samples(reader, dataset, stems, error));
    return DL2_OK;
}

static int count_facts(struct dl2_coco *coco, struct dl2_error *error)
{
    const struct listed *images = images_of(coco);
    struct dl2_coco_facts *facts = &coco->facts;
    for (size_t i = 0; i < facts->images; i++) {
        facts->missing += images[i].sample == NOWHERE;
        facts->missing_boxes += images[i].sample == NOWHERE ? images[i].count : 0;
        facts->bare += images[i].sample != NOWHERE && !images[i].count;
    }
    DL2_TRY(DL2_NEW(&coco->missing, facts->missing + 1, "names", error));
    for (size_t i = 0, missing = 0; i < facts->images; i++)
        if (images[i].sample == NOWHERE)
            coco->missing[missing++] = (const char *)coco->names.data + images[i].name;
    return DL2_OK;
}

static int refuse_ambiguous(const struct reader *reader, struct dl2_error *error)
{
    return reader->ambiguous ? dl2_error_set(error, DL2_ERR_FORMAT, "%s%s", reader->faults,
                                             reader->ambiguous > NAMED ? "; ..." : "")
                             : DL2_OK;
}

/* Without images there is nothing to find; without objects, of which more are broken than can be
 * named, the file is not what it should be. */
static int refuse_broken(const struct dl2_coco *coco, struct dl2_error *error)
{
    const struct dl2_coco_facts *facts = &coco->facts;
    return facts->broken && (!facts->images || (!facts->annotations && facts->broken > NAMED))
               ? dl2_error_set(error, DL2_ERR_FORMAT, "%s but %zu broken element%s: %s%s",
                               facts->images ? "no annotation" : "no image", facts->broken,
                               facts->broken == 1 ? "" : "s", coco->faults,
                               facts->broken > NAMED ? "; ..." : "")
               : DL2_OK;
}

static int open_coco(struct reader *reader, const struct dl2_dataset *dataset,
                     struct dl2_error *error)
{
    struct dl2_coco *coco = reader->coco;
    DL2_TRY(read_file(reader, error));
    if (image_count(coco))
        qsort(images_of(coco), image_count(coco), sizeof(struct listed), compare_ids);
    check_ids(reader);
    coco->facts.faults = coco->faults;
    DL2_TRY(refuse_ambiguous(reader, error));
    DL2_TRY(refuse_broken(coco, error));
    DL2_TRY(group_annotations(coco, error));
    DL2_TRY(match_images(reader, dataset, error));
    DL2_TRY(refuse_ambiguous(reader, error));
    return count_facts(coco, error);
}

int dl2_coco_open(const char *path, const struct dl2_dataset *dataset, bool shapes,
                  struct dl2_coco **out, struct dl2_error *error)
{
    *out = NULL;
    struct reader reader = {.shapes = shapes, .file = fopen(path, "rbe")};
    if (!reader.file)
        return dl2_error_set(error, DL2_ERR_SYSTEM, "%s: %s", path, strerror(errno));
    int status = DL2_NEW(&reader.coco, 1, "annotations", error);
    if (status == DL2_OK)
        status = open_coco(&reader, dataset, error);
    fclose(reader.file);
    dl2_bytes_free(&reader.text);
    if (status < 0) {
        dl2_error_prefix(error, "%s", path);
        dl2_coco_close(reader.coco);
        return status;
    }
    *out = reader.coco;
    return DL2_OK;
}

void dl2_coco_close(struct dl2_coco *coco)
{
    if (!coco)
        return;
    dl2_bytes_free(&coco->names);
    dl2_bytes_free(&coco->images);
    dl2_bytes_free(&coco->categories);
    dl2_bytes_free(&coco->shapes);
    dl2_bytes_free(&coco->found);
    free(coco->annotations);
    free(coco->by_sample);
    free(coco->missing);
    free(coco);
}

const struct dl2_coco_facts *dl2_coco_facts(const struct dl2_coco *coco)
{
    return &coco->facts;
}

size_t dl2_coco_memory(const struct dl2_coco *coco)
{
    return sizeof *coco + coco->names.capacity + coco->images.capacity + coco->categories.capacity +
           coco->shapes.capacity + coco->facts.annotations * sizeof *coco->annotations +
           coco->samples * sizeof *coco->by_sample + coco->facts.missing * sizeof *coco->missing;
}

const char *dl2_coco_missing(const struct dl2_coco *coco, size_t number)
{
    return number < coco->facts.missing ? coco->missing[number] : NULL;
}

bool dl2_coco_class(const struct dl2_coco *coco, size_t number, int64_t *label, const char **name)
{
    const struct category *categories = (const struct category *)(void *)coco->categories.data;
    if (number >= coco->facts.categories)
        return false;
    *label = categories[number].id;
    *name = categories[number].name == SIZE_MAX
                ? ""
                : (const char *)coco->names.data + categories[number].name;
    return true;
}

bool dl2_coco_image(const struct dl2_coco *coco, size_t index, struct dl2_annotated_image *image)
{
    const uint32_t number = index < coco->samples ? coco->by_sample[index] : NOWHERE;
    if (number == NOWHERE)
        return false;
    const struct listed *listed = &images_of(coco)[number];
    *image = (struct dl2_annotated_image){listed->number ? listed->number : listed->id,
                                          listed->width, listed->height,
                                          coco->annotations + listed->first, listed->count};
    return true;
}

bool dl2_coco_find(const struct dl2_coco *coco, const json_t *id, size_t *index)
{
    struct listed wanted;
    bool is_text;
    if (!take_id(id, &wanted.id, &is_text) || !image_count(coco))
        return false;
    const struct listed *found =
        bsearch(&wanted, images_of(coco), image_count(coco), sizeof wanted, compare_ids);
    *index = found ? found->sample : NOWHERE;
    return *index != NOWHERE;
}

const uint32_t *dl2_coco_shape(const struct dl2_coco *coco, const struct dl2_annotation *annotation)
{
    return (const uint32_t *)(void *)coco->shapes.data + annotation->shape;
}
