/* SPDX-License-Identifier: BSD-2-Clause */
/* Boxes: COCO's JSON and what is broken in it, label files, geometry, masks as pycocotools draws
 * them. */
#include "annotations/instance_masks.h"
#include "common/file.h"
#include "common/json.h"
#include "loader/boxes.h"
#include "pixels/resolution.h"
#include "tests/loader/pictures.h"

#include <inttypes.h>
#include <math.h>
#include <unistd.h>
#include <zlib.h>

/* ---- masks ---- */

/* tests/loader/gen_instance_masks.py wrote the file; DL2_INSTANCE_MASKS names a larger one. */
static void test_masks_are_those_of_pycocotools(void **state)
{
    char path[512];
    const char *named = getenv("DL2_INSTANCE_MASKS"), *folder = getenv("srcdir");
    snprintf(path, sizeof path, "%s/tests/loader/instance_masks.json", folder ? folder : ".");
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_coco *coco;
    if (dl2_coco_open(named ? named : path, NULL, true, &coco, &error) < 0)
        fail_msg("%s", error.message);
    json_auto_t *json = json_load_file(named ? named : path, 0, NULL);
    const json_t *all = json_object_get(json, "annotations");
    struct dl2_bytes mask = DL2_BYTES_INIT, scratch = DL2_BYTES_INIT;
    struct dl2_annotated_image image;
    size_t number = 0;
    for (size_t i = 0; dl2_coco_image(coco, i, &image); i++)
        for (uint32_t j = 0; j < image.count; j++, number++) {
            const json_t *expected = json_array_get(all, number);
            const size_t size = (size_t)image.width * image.height;
            size_t pixels = 0;
            assert_int_equal(dl2_bytes_resize(&mask, size, NULL), DL2_OK);
            memset(mask.data, 9, size);
            assert_int_equal(dl2_instance_mask_draw(dl2_coco_shape(coco, &image.annotations[j]),
                                                    image.width, image.height, mask.data, &scratch,
                                                    &error),
                             DL2_OK);
            for (size_t p = 0; p < size; p++)
                pixels += mask.data[p];
            if (pixels != (size_t)image.annotations[j].area ||
                crc32_z(0, mask.data, size) !=
                    (uint32_t)json_integer_value(json_object_get(expected, "crc32")))
                fail_msg("annotation %zu: %zu pixels, not %g", number + 1, pixels,
                         (double)image.annotations[j].area);
        }
    assert_int_equal(number, json_array_size(all));
    assert_true(number > 50);
    dl2_bytes_free(&mask);
    dl2_bytes_free(&scratch);
    dl2_coco_close(coco);
}

/* ---- the file ---- */

static const char *write_json(const char *text)
{
    static char path[512];
    put("boxes.json", text, strlen(text));
    snprintf(path, sizeof path, "%s/boxes.json", root);
    return path;
}

#define COCO(images, categories, annotations)                                                      \
    "{\"info\": {\"segmentation\": \"]}\\\"\"}, \"annotations\": [" annotations                    \
    "], \"images\": [" images "], \"categories\": [" categories "], \"more\": 1e3}"
#define IMAGE        "{\"id\": 7, \"file_name\": \"a/b.jpg\", \"width\": 10, \"height\": 20}"
#define CATEGORY     "{\"id\": 3, \"name\": \"cat\"}"
#define OBJECT(more) "{\"id\": 5, \"image_id\": 7, \"category_id\": 3, " more "}"
#define BOX          "\"bbox\": [1, 2, 3, 4]"

static void test_what_is_broken_is_named(void **state)
{
    static const struct {
        const char *text, *says;
        bool shapes, left_out; /* and not refused */
    } rows[] = {
        {"", "cut short", false},
        {"[]", "begins no object", false},
        {"{\"images\": [], \"annotations\": []}", "it has no 'categories'", false},
        {"{\"images\": {}}", "images: byte 12 begins no array", false},
        {"{\"images\": [], \"images\": []}", "it has 'images' twice", false},
        {COCO(IMAGE, CATEGORY, OBJECT(BOX)) "x", "end of the file", false},
        {COCO(IMAGE, CATEGORY, OBJECT("\"bbox\": [1, 2, NaN, 4]")), "are no numbers", false, true},
        {COCO(IMAGE, CATEGORY, OBJECT("\"bbox\": [1, 2, 1e999, 4]")), "overflow", false},
        {COCO(IMAGE, CATEGORY, OBJECT("\"bbox\": [1, 2, -3, 4]")),
         "annotation 5 has a bbox of negative size", false, true},
        {COCO(IMAGE, CATEGORY, OBJECT("\"bbox\": [1, 2, 3]")), "no bbox of four numbers", false,
         true},
        {COCO(IMAGE, CATEGORY, OBJECT("\"bbox\": [1, 2, 3, \"4\"]")), "are no numbers", false,
         true},
        {COCO(IMAGE, CATEGORY, OBJECT("\"bbox\": [1, 2, 3, 1e300]")), "beyond a billion", false,
         true},
        {COCO(IMAGE, CATEGORY, OBJECT(BOX ", \"iscrowd\": 2")), "neither 0 nor 1", false, true},
        {COCO(IMAGE, CATEGORY, OBJECT(BOX ", \"area\": -1")), "no number from 0 on", false, true},
        {COCO(IMAGE, "", OBJECT(BOX)), "annotation 5 is of category 3, which is not there", false,
         true},
        {COCO("", CATEGORY, OBJECT(BOX)), "annotation 5 is of an image that is not there", false},
        {COCO(IMAGE ", " IMAGE, CATEGORY, ""), "the id of image 'a/b.jpg' comes twice", false},
        {COCO(IMAGE ", {\"id\": 8, \"file_name\": \"a/b.png\"}", CATEGORY, ""), "have one name",
         false},
        {COCO(IMAGE, CATEGORY ", " CATEGORY, ""), "category 3 comes twice", false},
        {COCO("{\"id\": 1.5, \"file_name\": \"a\"}", CATEGORY, ""), "image number 1 has no id",
         false},
        {COCO("{\"id\": 1, \"file_name\": \"a\", \"width\": -1}", CATEGORY, ""),
         "an invalid width or height", false},
        {COCO(IMAGE, CATEGORY, OBJECT(BOX)), "has no segmentation", true, true},
        {COCO(IMAGE, CATEGORY, OBJECT(BOX ", \"segmentation\": [[1, 2, 3, 4]]")),
         "three or more points", true, true},
        {COCO(IMAGE, CATEGORY, OBJECT(BOX ", \"segmentation\": [[1, 2, 3, 4, 5, 1e9]]")),
         "beyond a million", true, true},
        {COCO(IMAGE, CATEGORY,
              OBJECT(BOX ", \"segmentation\": {\"size\": [2, 2], \"counts\": [1, 2]}")),
         "do not fit their size", true, true},
        {COCO(IMAGE, CATEGORY,
              OBJECT(BOX ", \"segmentation\": {\"size\": [2, 2], \"counts\": \"~~\"}")),
         "damaged", true, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct dl2_error error = DL2_ERROR_INIT;
        struct dl2_coco *coco;
        const int status =
            dl2_coco_open(write_json(rows[i].text), NULL, rows[i].shapes, &coco, &error);
        assert_int_equal(status == DL2_OK, rows[i].left_out);
        const char *says = coco ? dl2_coco_facts(coco)->faults : error.message;
        if (!strstr(says, rows[i].says) || (!coco && !strstr(says, "boxes.json: ")))
            fail_msg("row %zu: %s", i, says);
        assert_int_equal(coco ? dl2_coco_facts(coco)->broken : 1, 1);
        dl2_coco_close(coco);
    }
    /* A file of which nothing is left is refused. */
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_coco *coco;
    static const char all[] = COCO(
        IMAGE, CATEGORY,
        OBJECT("\"a\": 1") "," OBJECT("\"a\": 1") "," OBJECT("\"a\": 1") "," OBJECT("\"a\": 1"));
    assert_true(dl2_coco_open(write_json(all), NULL, false, &coco, &error) < 0);
    assert_non_null(strstr(error.message, "no annotation but 4 broken elements: annotation 5 has"));
}

/* One broken element is left out, counted and named, and the others are read. */
static void test_what_is_broken_is_left_out(void **state)
{
    static const struct {
        const char *images, *annotations, *says;
        size_t kept;
        bool shapes;
    } rows[] = {
        {IMAGE, OBJECT("\"bbox\": [1, NaN, 3, 4]") ", " OBJECT(BOX), "bbox of what are no numbers",
         1, false},
        {IMAGE, OBJECT(BOX ", \"area\": NaN"), NULL, 1, false},
        {IMAGE, OBJECT(BOX ", \"area\": -Infinity, \"iscrowd\": null"), NULL, 1, false},
        {IMAGE, OBJECT("\"bbox\": [1, 2, -3, 4]") ", " OBJECT(BOX), "negative size", 1, false},
        {IMAGE,
         OBJECT(BOX ", \"segmentation\": []") ", " OBJECT(
             BOX ", \"segmentation\": [[1, 2, 3, 4, 5, 6]]"),
         "has no segmentation", 1, true},
        {IMAGE, OBJECT(BOX ", \"segmentation\": []"), NULL, 1, false},
        {IMAGE ", {\"id\": null, \"file_name\": \"c.jpg\"}", OBJECT(BOX),
         "image number 2 has no id", 1, false},
        {IMAGE, OBJECT(BOX) ", {\"image_id\": 9, \"category_id\": 3, " BOX "}",
         "annotation number 2 is of an image that is not there", 1, false},
        {"{\"id\": \"20260101000000000001\", \"file_name\": \"a/b.jpg\"}, "
         "{\"id\": \"20260101000000000002\", \"file_name\": \"c.jpg\"}",
         "{\"image_id\": \"20260101000000000002\", \"category_id\": 3, " BOX "}", NULL, 1, false},
        {IMAGE ", {\"id\": \"x_1\", \"file_name\": \"c\\\\d.jpg\"}",
         OBJECT(BOX) ", {\"image_id\": \"x_1\", \"category_id\": \"3\", " BOX "}", NULL, 2, false},
        {"{\"id\": \"7\", \"file_name\": \"a/b.jpg\"}", OBJECT(BOX), NULL, 1, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct dl2_error error = DL2_ERROR_INIT;
        struct dl2_coco *coco;
        char text[2048];
        snprintf(text, sizeof text, COCO("%s", CATEGORY, "%s"), rows[i].annotations,
                 rows[i].images);
        if (dl2_coco_open(write_json(text), NULL, rows[i].shapes, &coco, &error) < 0)
            fail_msg("row %zu: %s", i, error.message);
        const struct dl2_coco_facts *facts = dl2_coco_facts(coco);
        assert_int_equal(facts->broken, rows[i].says ? 1 : 0);
        assert_int_equal(facts->annotations, rows[i].kept);
        if (rows[i].says && !strstr(facts->faults, rows[i].says))
            fail_msg("row %zu: %s", i, facts->faults);
        dl2_coco_close(coco);
    }
    /* A text is an id, too: the image's number in the file stands for it; boxes have theirs. */
    struct dl2_coco *coco;
    struct dl2_annotated_image image;
    static const char texts[] =
        COCO("{\"id\": \"x\", \"file_name\": \"b.jpg\"}, {\"id\": \"y\", \"file_name\": \"a.jpg\"}",
             CATEGORY, "{\"image_id\": \"y\", \"category_id\": 3, " BOX "}");
    assert_int_equal(dl2_coco_open(write_json(texts), NULL, false, &coco, NULL), DL2_OK);
    size_t boxes = 0;
    for (size_t i = 0; dl2_coco_image(coco, i, &image); i++) {
        assert_int_equal(image.count, image.id == 2 ? 1 : 0);
        boxes += image.count;
    }
    assert_int_equal(boxes, 1);
    dl2_coco_close(coco);
}

static void test_what_is_good_is_read(void **state)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_coco *coco;
    struct dl2_annotated_image image;
    assert_int_equal(
        dl2_coco_open(
            write_json(COCO(IMAGE ", {\"id\": -2, \"file_name\": \"./c\"}", CATEGORY,
                            OBJECT(BOX ", \"segmentation\": [[]], \"x\": \"}\\\"\"") ", " OBJECT(
                                "\"iscrowd\": true, \"area\": 2.5, \"bbox\": [0, -1, "
                                "2.5, 0]"))),
            NULL, false, &coco, &error),
        DL2_OK);
    assert_true(dl2_coco_image(coco, 0, &image) && image.id == -2 && !image.count && !image.width);
    assert_true(dl2_coco_image(coco, 1, &image) && image.id == 7 && image.count == 2);
    assert_true(image.width == 10 && image.height == 20);
    assert_true(image.annotations[0].right == 4 && image.annotations[0].area == 12 &&
                !image.annotations[0].crowd && image.annotations[0].label == 3);
    assert_true(image.annotations[1].top == -1 && image.annotations[1].bottom == -1 &&
                image.annotations[1].crowd && image.annotations[1].area == 2.5F);
    assert_false(dl2_coco_image(coco, 2, &image));
    dl2_coco_close(coco);
}

static void test_label_files(void **state)
{
    static const char *const bad[] = {"0 0.5 0.5 0.5", "a 0 0 0 0",          "0 .1 .1 nan .1",
                                      "1.5 0 0 0 0",   "-1 0 0 0 0",         "0 .1 .1 -1 .1",
                                      "0 10 20 30 40", "0 .1 .1 .2 .2 .3 .3"};
    struct dl2_bytes rows = DL2_BYTES_INIT;
    struct dl2_error error = DL2_ERROR_INIT;
    static const char good[] = "2 0.5 0.25 0.5 0.5\r\n\n 80\t1 1 .5 .5 \n";
    assert_int_equal(dl2_yolo_read((const uint8_t *)good, sizeof good - 1, &rows, &error), DL2_OK);
    const struct dl2_annotation *row = (const struct dl2_annotation *)(const void *)rows.data;
    assert_int_equal(rows.size, 2 * sizeof *row);
    assert_true(row->label == 2 && row->left == 0.25 && row->right == 0.75 && row->top == 0 &&
                row->bottom == 0.5);
    assert_true(row[1].label == 80 && row[1].left == 0.75 && row[1].right == 1.25);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(dl2_yolo_read((const uint8_t *)bad[i], strlen(bad[i]), &rows, &error),
                         DL2_ERR_FORMAT);
        assert_non_null(strstr(error.message, "line 1: "));
    }
    assert_int_equal(dl2_yolo_read(NULL, 0, &rows, &error), DL2_OK);
    assert_int_equal(rows.size, 0);
    dl2_bytes_free(&rows);
}

/* ---- geometry ---- */

/* Boxes of one image of 10 x 20, shown as 100 x 50. */
static void show(const char *annotations, double min_visibility, struct dl2_crop_box crop,
                 uint32_t width, uint32_t height, struct dl2_sample_boxes *boxes)
{
    char text[2048];
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_box_source source = {.text = (char *)"boxes.json"};
    struct dl2_loader_config config = DL2_LOADER_DEFAULTS;
    config.boxes = source.text;
    config.width = 100;
    config.height = 50;
    config.min_visibility = min_visibility;
    snprintf(text, sizeof text, COCO(IMAGE, CATEGORY, "%s"), annotations);
    assert_int_equal(dl2_coco_open(write_json(text), NULL, false, &source.coco, &error), DL2_OK);
    if (dl2_boxes_show(boxes, &source, &config, 0, width, height, &crop, &error) < 0)
        fail_msg("%s", error.message);
    dl2_coco_close(source.coco);
}

static void expect_box(const struct dl2_boxes *view, unsigned i, float left, float top, float right,
                       float bottom)
{
    assert_true(i < view->count);
    assert_float_equal(view->boxes[i][0], left, 0);
    assert_float_equal(view->boxes[i][1], top, 0);
    assert_float_equal(view->boxes[i][2], right, 0);
    assert_float_equal(view->boxes[i][3], bottom, 0);
}

static void test_boxes_follow_the_crop(void **state)
{
    struct dl2_sample_boxes boxes = {0};
    const struct dl2_boxes *view = &boxes.view;
    const struct dl2_crop_box part = {2, 4, 7, 14, false}, flipped = {2, 4, 7, 14, true};
    static const char objects[] = OBJECT("\"bbox\": [1, 2, 3, 4]") ", " OBJECT(
        "\"bbox\": [3, 5, "
        "1, 2]") ", " OBJECT("\"bbox\": [7, 5, 3, 3]") ", " OBJECT("\"bbox\": [-5, -5, 50, "
                                                                   "50]") ", " OBJECT("\"bb"
                                                                                      "ox\""
                                                                                      ": "
                                                                                      "[3, "
                                                                                      "5, "
                                                                                      "0, "
                                                                                      "2]");
    show(objects, 0, part, 10, 20, &boxes); /* 20 times across, 5 times down */
    assert_true(view->count == 3 && view->dropped == 2 && view->image_id == 7 && !view->masks);
    expect_box(view, 0, 0, 0, 40, 10);
    expect_box(view, 1, 20, 5, 40, 15);
    expect_box(view, 2, 0, 0, 100, 50);
    assert_true(view->areas[0] == 12 && view->labels[2] == 3 && view->iscrowd[1] == 0);
    show(objects, 0, flipped, 10, 20, &boxes);
    expect_box(view, 0, 60, 0, 100, 10);
    expect_box(view, 1, 60, 5, 80, 15);
    /* 4 of 12 and 50 of 2500 are shown */
    show(objects, 1.0 / 3, part, 10, 20, &boxes);
    assert_true(view->count == 2);
    expect_box(view, 1, 20, 5, 40, 15);
    show(objects, 0.34, part, 10, 20, &boxes);
    assert_true(view->count == 1);
    show(objects, 1, part, 10, 20, &boxes);
    assert_true(view->count == 1);
    /* the image at three times the size that the file has */
    const struct dl2_crop_box larger = {6, 12, 21, 42, false};
    show(objects, 0, larger, 30, 60, &boxes);
    expect_box(view, 1, 20, 5, 40, 15);
    dl2_boxes_free(&boxes);
}

static void test_another_aspect_is_refused(void **state)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_box_source source = {.text = (char *)"boxes.json"};
    struct dl2_loader_config config = DL2_LOADER_DEFAULTS;
    struct dl2_sample_boxes boxes = {0};
    const struct dl2_crop_box crop = {0, 0, 20, 10, false};
    assert_int_equal(
        dl2_coco_open(write_json(COCO(IMAGE, CATEGORY, "")), NULL, false, &source.coco, &error),
        DL2_OK);
    assert_int_equal(dl2_boxes_show(&boxes, &source, &config, 0, 20, 10, &crop, &error),
                     DL2_ERR_FORMAT);
    assert_non_null(strstr(error.message, "of 20x10, and boxes are those of one of 10x20"));
    dl2_coco_close(source.coco);
    dl2_boxes_free(&boxes);
}

/* Does an image of width x height count as one of of_width x of_height, resized? */
static bool is_accepted(uint32_t of_width, uint32_t of_height, uint32_t width, uint32_t height)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_box_source source = {.text = (char *)"boxes.json"};
    struct dl2_loader_config config = DL2_LOADER_DEFAULTS;
    struct dl2_sample_boxes boxes = {0};
    const struct dl2_crop_box whole = {0, 0, width, height, false};
    char text[512];
    snprintf(text, sizeof text,
             COCO("{\"id\": 7, \"file_name\": \"a\", \"width\": %" PRIu32 ", \"height\": %" PRIu32
                  "}",
                  CATEGORY, OBJECT("\"bbox\": [0, 0, %" PRIu32 ", %" PRIu32 "]")),
             of_width, of_height, of_width, of_height);
    assert_int_equal(dl2_coco_open(write_json(text), NULL, false, &source.coco, &error), DL2_OK);
    const int status = dl2_boxes_show(&boxes, &source, &config, 0, width, height, &whole, &error);
    if (status == DL2_OK) /* the box of the whole image */
        expect_box(&boxes.view, 0, 0, 0, (float)config.height, (float)config.height);
    dl2_coco_close(source.coco);
    dl2_boxes_free(&boxes);
    return status == DL2_OK;
}

/* Every size that dl2-transcode gives, also to images that it has resized before, and what rounds
 * down or up instead; larger images, too. */
static void test_resized_images_are_accepted(void **state)
{
    static const uint32_t sides[] = {4000, 3000, 6016, 1333, 641, 97};
    static const uint32_t limits[] = {32, 96, 128, 160, 224, 256, 320, 511};
    enum { SIDES = sizeof sides / sizeof *sides, LIMITS = sizeof limits / sizeof *limits };
    for (size_t i = 0; i < (size_t)SIDES * SIDES * LIMITS * LIMITS; i++) {
        const uint32_t width = sides[i % SIDES], height = sides[i / SIDES % SIDES];
        const uint32_t limit = limits[i / SIDES / SIDES % LIMITS];
        const uint32_t next = limits[i / SIDES / SIDES / LIMITS];
        const struct dl2_resolution shortest = {.short_side = limit};
        const struct dl2_resolution fit = {.width = limit, .height = next};
        const struct dl2_resolution again = {.short_side = next};
        uint32_t w = width, h = height;
        dl2_resolution_apply(&fit, &w, &h);
        bool good = is_accepted(width, height, w, h) && is_accepted(w, h, width, height);
        w = width;
        h = height;
        dl2_resolution_apply(&shortest, &w, &h);
        dl2_resolution_apply(&again, &w, &h);
        good = good && is_accepted(width, height, w, h);
        if (!good)
            fail_msg("%" PRIu32 "x%" PRIu32 " at %" PRIu32 " and %" PRIu32, width, height, limit,
                     next);
    }
    assert_true(is_accepted(4000, 3000, 213, 160) && is_accepted(4000, 3000, 214, 160));
    assert_false(is_accepted(4000, 3000, 215, 160) || is_accepted(4000, 3000, 211, 160));
    assert_false(is_accepted(4000, 3000, 160, 213) || is_accepted(4000, 3000, 3000, 4000));
    assert_false(is_accepted(213, 160, 4000, 2980));
}

/* ---- the loader ---- */

/* Boxes of all pictures, number i with i % 4 of them; one picture is not in the file. */
static void put_boxes(void)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    fprintf(out, "{\"categories\": [{\"id\": 9}], \"images\": [");
    for (unsigned i = 1; i < COUNT; i++) {
        struct dl2_sample sample;
        dl2_dataset_sample(samples, i, &sample);
        fprintf(out, "%s{\"id\": %u, \"file_name\": \"%s.jpg\"}", i > 1 ? "," : "", 1000 + i,
                sample.key);
    }
    fprintf(out,
            ", {\"id\": 5, \"file_name\": \"gone.jpg\"}], \"annotations\": [{\"image_id\": 5, "
            "\"category_id\": 9, \"bbox\": [0, 0, 1, 1], \"segmentation\": [[0, 0, 1, 0, 1, 1]]}");
    for (unsigned i = 1; i < COUNT; i++)
        for (unsigned j = 0; j < i % 4; j++)
            fprintf(out,
                    ",{\"image_id\": %u, \"category_id\": 9, \"bbox\": [%u, %u, %u.5, 9], "
                    "\"segmentation\": [[%u, 0, 5, 2, 1, 6]]}",
                    1000 + i, i % 5, j, 5 + i % 3, i % 3);
    fprintf(out, "]}");
    assert_int_equal(fclose(out), 0);
    put("boxes.json", text, size);
    free(text);
}

/* A sum of all that a batch has of boxes, which does not depend on the order of the samples. */
static uint64_t sum_of(const struct dl2_batch *batch)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < batch->count; i++) {
        const struct dl2_boxes *boxes = &batch->boxes[i];
        uint32_t crc = (uint32_t)crc32_z(0, (const Bytef *)&batch->indices[i], 4);
        assert_int_equal(boxes->count + boxes->dropped, batch->indices[i] % 4);
        assert_int_equal(boxes->image_id, batch->indices[i] ? 1000 + (int)batch->indices[i] : -1);
        sum += crc;
        if (!boxes->count)
            continue; /* its pointers are anything */
        crc = (uint32_t)crc32_z(crc, (const Bytef *)boxes->boxes, boxes->count * 16);
        crc = (uint32_t)crc32_z(crc, (const Bytef *)boxes->labels, boxes->count * 8);
        crc = (uint32_t)crc32_z(crc, (const Bytef *)boxes->areas, boxes->count * 4);
        crc = (uint32_t)crc32_z(crc, boxes->masks, (size_t)boxes->count * SIZE * SIZE);
        for (unsigned j = 0; j < boxes->count; j++)
            assert_true(boxes->boxes[j][0] >= 0 && boxes->boxes[j][2] <= SIZE &&
                        boxes->boxes[j][0] < boxes->boxes[j][2] &&
                        boxes->boxes[j][1] < boxes->boxes[j][3]);
        sum += crc;
    }
    return sum;
}

static uint64_t sum_of_epoch(struct dl2_loader *loader, uint64_t from, unsigned *batches)
{
    struct dl2_batch *batch;
    uint64_t sum = 0;
    start(loader, 3, from);
    while (dl2_loader_next(loader, &batch, NULL) == 1) {
        sum += sum_of(batch);
        ++*batches;
        dl2_loader_release(loader, batch);
    }
    return sum;
}

static void test_the_same_for_all_workers(void **state)
{
    char path[512];
    put_boxes();
    snprintf(path, sizeof path, "%s/boxes.json", root);
    static const enum dl2_batching batchings[] = {DL2_BATCHING_STRICT, DL2_BATCHING_COMPLETION};
    for (int train = 0; train < 2; train++) {
        uint64_t expected = 0;
        for (unsigned i = 0; i < 6; i++) {
            struct dl2_loader_config config = config_for(train, 1 + i % 4);
            config.boxes = path;
            config.instance_masks = true;
            config.batching = batchings[i % 2];
            struct dl2_loader *loader = create(samples, &config);
            const char *warning = dl2_loader_boxes_warning(loader);
            assert_true(strstr(warning, "1 samples are not among its images") &&
                        strstr(warning, "1 of its images, with 1 annotations") &&
                        strstr(warning, "'gone.jpg'"));
            unsigned batches = 0;
            const uint64_t sum = sum_of_epoch(loader, 0, &batches);
            const struct dl2_loader_stats stats = stats_of(loader);
            assert_int_equal(stats.boxes + stats.boxes_dropped,
                             15 * 6); /* of 61: 0, 1, 2, 3, 0 ... */
            assert_int_equal(stats.bad, 0);
            assert_true(stats.boxes > 30);
            if (!i)
                expected = sum;
            assert_int_equal(sum, expected);
            if (config.batching == DL2_BATCHING_STRICT) { /* from the middle on, too */
                unsigned rest = 0, first = 0;
                uint64_t begun = 0;
                struct dl2_batch *batch;
                start(loader, 3, 0);
                for (; first < 3; first++) {
                    assert_int_equal(dl2_loader_next(loader, &batch, NULL), 1);
                    begun += sum_of(batch);
                    dl2_loader_release(loader, batch);
                }
                assert_int_equal(begun + sum_of_epoch(loader, 3, &rest), expected);
                assert_int_equal(first + rest, batches);
            }
            dl2_loader_destroy(loader);
        }
    }
}

/* Which sample an image is whose name ends with the key of sample 7, behind `start`; -1: none.
 * Another image is called like sample `number` behind `other`, and a third like sample 1. */
static int sample_of_name(const char *start, const char *other, size_t number)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_coco *coco;
    struct dl2_sample named[3];
    const size_t numbers[] = {7, number, 1};
    char text[4096];
    size_t index;
    for (size_t i = 0; i < 3; i++)
        dl2_dataset_sample(samples, numbers[i], &named[i]);
    snprintf(text, sizeof text,
             COCO("{\"id\": 1, \"file_name\": \"%s%s.jpg\"}, {\"id\": 2, \"file_name\": "
                  "\"%s%s.jpg\"}, {\"id\": 3, \"file_name\": \"%s.jpg\"}",
                  CATEGORY, ""),
             start, named[0].key, other, named[1].key, named[2].key);
    if (dl2_coco_open(write_json(text), samples, false, &coco, &error) < 0)
        fail_msg("%s", error.message);
    json_t *id = json_integer(1);
    const bool found = dl2_coco_find(coco, id, &index);
    json_decref(id);
    dl2_coco_close(coco);
    return found ? (int)index : -1;
}

/* Absolute names of another machine end with a sample's key; "./" and "//" lead nowhere. */
static void test_absolute_names(void **state)
{
    (void)state;
    assert_int_equal(sample_of_name("/home/x/", "/home/y/", 0), 7);
    assert_int_equal(sample_of_name("C:\\\\x\\\\", "", 0), 7);
    assert_int_equal(sample_of_name(".//./", "/", 0), 7);
    assert_int_equal(sample_of_name("/home/x", "", 0), -1);
    assert_int_equal(sample_of_name("home/x/", "", 0), -1);
    assert_int_equal(sample_of_name("/home/x/", "/home/y/", 7), -1); /* one of two */
}

static void refuse(const struct dl2_loader_config *config, const char *says)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_loader *loader;
    assert_true(dl2_loader_create(samples, config, &loader, &error) < 0);
    if (!strstr(error.message, says))
        fail_msg("%s", error.message);
}

static void test_what_does_not_go_with_boxes(void **state)
{
    struct dl2_loader_config config = config_for(true, 1);
    config.min_visibility = 0.5;
    refuse(&config, "min_visibility needs boxes");
    config.min_visibility = 0;
    config.instance_masks = true;
    refuse(&config, "instance_masks needs boxes");
    config.boxes = "txt";
    refuse(&config, "masks need COCO's JSON");
    config.instance_masks = false;
    config.boxes = "a/b";
    refuse(&config, "neither a file in COCO's JSON");
    config.boxes = "/nowhere/boxes.json";
    refuse(&config, "/nowhere/boxes.json: No such file");
    config.augment = "jitter:hue=0.1,rotate";
    refuse(&config, "the operation rotate of augment moves pixels");
    config.augment = NULL;
    config.boxes = write_json(COCO(IMAGE, CATEGORY, ""));
    refuse(&config, "none of its 1 images is in the dataset");
}

/* A sample without a label file has no boxes; one with a damaged one is bad. */
static void test_label_files_beside_images(void **state)
{
    char name[300];
    struct dl2_sample sample;
    for (size_t i = 0; i < COUNT; i++) {
        dl2_dataset_sample(samples, i, &sample);
        snprintf(name, sizeof name, "%s.txt", sample.key);
        const char *text = i == 2 ? "0 1 2\n" : i % 2 ? "4 0.5 0.5 1 1\n" : "";
        if (i != 1)
            put(name, text, strlen(text));
    }
    struct dl2_loader_config config = config_for(false, 2);
    config.boxes = "txt";
    struct dl2_loader *loader = create(samples, &config);
    struct dl2_batch *batch;
    size_t count;
    start(loader, 0, 0);
    while (dl2_loader_next(loader, &batch, NULL) == 1) {
        for (unsigned i = 0; i < batch->count; i++) {
            const struct dl2_boxes *boxes = &batch->boxes[i];
            const uint32_t index = batch->indices[i];
            assert_int_equal(boxes->count, index > 2 ? index % 2 : 0);
            assert_int_equal(boxes->image_id, index == 2 ? -1 : (int)index);
            if (boxes->count) {
                expect_box(boxes, 0, 0, 0, SIZE, SIZE);
                assert_true(boxes->labels[0] == 4 && boxes->areas[0] > 1 && !boxes->iscrowd[0]);
            }
        }
        dl2_loader_release(loader, batch);
    }
    const char *const *texts = dl2_loader_bad(loader, &count);
    struct dl2_loader_stats stats;
    dl2_loader_get_stats(loader, &stats);
    assert_int_equal(stats.no_label_file, 1);
    assert_int_equal(count, 1);
    assert_non_null(strstr(texts[0], "boxes: 'txt': line 1: 3 numbers"));
    dl2_loader_destroy(loader);
    config.boxes = "yolo";
    refuse(&config, "has a label file: there is no 'yolo' beside ");
}

/* data.yaml names the classes of label files, as a list or by numbers. */
static void test_names_of_classes(void **state)
{
    static const struct {
        const char *text, *name_0, *name_4; /* NULL: there is none */
    } good[] = {
        {"names: [a, b, 'c: d', d, person]\n", "a", "person"},
        {"path: ../datasets/x # comment\nnames:\n- a\n- b\n- c\n- d\n- 4\nnc: 5\n", "a", "4"},
        {"\xef\xbb\xbfnames:\n  0: a\n  4: \"\xc3\xa4 b\"\n  2: c\n", "a", "\xc3\xa4 b"},
        {"{\"names\": {\"4\": \"only\"}, \"train\": [\"a\", \"b\"]}", NULL, "only"},
        {"x: &all [a, b]\nnames: *all\n", "a", NULL},
        {"nc: 3\nval: 7\n", NULL, NULL},
    };
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"names: [a, b\nnc: 2\n", "line 2 is no YAML: "},
        {"\tnames: x\n", "line 1 is no YAML: "},
        {"[a, b]\n", "it has no lines such as 'names: [person]'"},
        {"", "it has no lines such as"},
        {"nc: 1\nnames: person\n", "line 2: names are a list, or lines such as '0: person'"},
        {"names:\n  one: person\n", "line 2: names are a list"},
        {"names: [[a]]\n", "line 1: names are a list"},
        {"names: {-1: a}\n", "line 1: names are a list"},
        {"names: {0: a, 00: b}\n", "class 0 has two names, "},
        {"names: [\xff]\n", "is no YAML: "},
    };
    struct dl2_data_yaml yaml;
    struct dl2_error error = DL2_ERROR_INIT;
    char path[300];
    snprintf(path, sizeof path, "%s/names.yaml", root);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        put("names.yaml", good[i].text, strlen(good[i].text));
        assert_int_equal(dl2_data_yaml_read(path, &yaml, &error), DL2_OK);
        const char *name_0 = dl2_data_yaml_name(&yaml, 0), *name_4 = dl2_data_yaml_name(&yaml, 4);
        assert_string_equal(name_0 ? name_0 : "", good[i].name_0 ? good[i].name_0 : "");
        assert_string_equal(name_4 ? name_4 : "", good[i].name_4 ? good[i].name_4 : "");
        assert_null(dl2_data_yaml_name(&yaml, 5));
        dl2_data_yaml_free(&yaml);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        put("names.yaml", bad[i].text, strlen(bad[i].text));
        dl2_error_clear(&error);
        assert_int_equal(dl2_data_yaml_read(path, &yaml, &error), DL2_ERR_FORMAT);
        if (!strstr(error.message, bad[i].says))
            fail_msg("%zu: %s", i, error.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_masks_are_those_of_pycocotools),
        cmocka_unit_test(test_label_files),
        cmocka_unit_test(test_what_is_broken_is_named),
        cmocka_unit_test(test_what_is_broken_is_left_out),
        cmocka_unit_test(test_what_is_good_is_read),
        cmocka_unit_test(test_boxes_follow_the_crop),
        cmocka_unit_test(test_another_aspect_is_refused),
        cmocka_unit_test(test_resized_images_are_accepted),
        cmocka_unit_test(test_absolute_names),
        cmocka_unit_test(test_the_same_for_all_workers),
        cmocka_unit_test(test_what_does_not_go_with_boxes),
        cmocka_unit_test(test_label_files_beside_images),
        cmocka_unit_test(test_names_of_classes),
    };
    return cmocka_run_group_tests(tests, make_pictures, remove_root);
}
