/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the variants look like: crops of the worst, median and best images by each metric, with the
 * original's.
 */
#include "common/file.h"
#include "common/json.h"
#include "common/keep.h"
#include "common/scope.h"
#include "report/metric_trust.h"
#include "report/page/parts.h"
#include "report/page/sections.h"
#include "report/result_files.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Larger files are not taken for crops, bytes. */
#define MAX_CROP_BYTES ((uint64_t)256 << 10)
/* The bytes of the page that crops may have; further images are named. */
#define MAX_GALLERY_BYTES ((size_t)3000000)

/* What is read and written. */
struct gallery {
    const struct dl2_page *page;
    json_t *block;
    struct dl2_bytes bytes; /* of the file that was read last */
    size_t size;            /* of all images that are shown */
};

/* "data:image/png;base64,..." of the file that was read last (RFC 4648). */
static void set_image(struct gallery *gallery, json_t *object)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes text = DL2_BYTES_INIT;
    for (size_t i = 0; i < gallery->bytes.size; i += 3) {
        const uint8_t *data = gallery->bytes.data + i;
        const size_t left = gallery->bytes.size - i;
        const uint32_t three = (uint32_t)data[0] << 16 | (left > 1 ? (uint32_t)data[1] << 8 : 0) |
                               (left > 2 ? data[2] : 0);
        const char four[] = {digits[three >> 18], digits[three >> 12 & 63],
                             left > 1 ? digits[three >> 6 & 63] : '=',
                             left > 2 ? digits[three & 63] : '='};
        dl2_append(&text, four, sizeof four);
    }
    gallery->size += text.size;
    dl2_block_set(object, "png", "data:image/png;base64,%.*s", (int)text.size,
                  (const char *)text.data);
}

/* Sets `bytes` to a file of the crops' folder, which must be a PNG. */
static int read_crop(struct gallery *gallery, const char *name, struct dl2_error *error)
{
    static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    struct dl2_bytes *bytes = &gallery->bytes;
    const char *path = dl2_text("%s/crops/%s", gallery->page->folder, name);
    if (!*name || strchr(name, '/') || name[0] == '.')
        return dl2_error_set(error, DL2_ERR_FORMAT, "\"%s\" is not a file's name", name);
    DL2_TRY(dl2_file_read(path, MAX_CROP_BYTES, bytes, error));
    if (bytes->size < sizeof signature || memcmp(bytes->data, signature, sizeof signature) != 0)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s is not a PNG file", path);
    return DL2_OK;
}

/* "worst by SSIM, PSNR RGB; best by CIEDE2000" */
static const char *reasons_of(const struct gallery *gallery, const json_t *crop)
{
    static const char *const kinds[] = {"worst", "median", "best"};
    const char *text = "";
    size_t i;
    json_t *reason;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        bool any = false;
        json_array_foreach(json_object_get(crop, "of"), i, reason)
        {
            if (strcmp(dl2_json_get_text(reason, "kind", ""), kinds[k]) != 0)
                continue;
            text = dl2_text(
                "%s%s%s%s%s", text, !any && *text ? "; " : "", any ? ", " : kinds[k],
                any ? "" : " by ",
                dl2_metric_title(gallery->page->study, dl2_json_get_text(reason, "metric", "?")));
            any = true;
        }
    }
    return text;
}

/* A crop of a variant. */
static int add_crop(struct gallery *gallery, json_t *image, const json_t *entry, const char *metric,
                    struct dl2_error *error)
{
    const struct dl2_study *study = gallery->page->study;
    const size_t v = dl2_study_find(study, dl2_json_get_text(entry, "variant", ""));
    if (v == study->variant_count) /* not of this study */
        return DL2_OK;
    DL2_TRY(read_crop(gallery, dl2_json_get_text(entry, "file", ""), error));
    const double score = dl2_json_get_real(json_object_get(entry, "scores"), metric, NAN);
    json_t *crop = dl2_block_append(image, "variants", json_object());
    dl2_block_set(crop, "name", "%s", study->variants[v].name);
    if (isfinite(study->variants[v].ratio))
        dl2_block_set(crop, "size", "%.3g%%", 100 * study->variants[v].ratio);
    if (study->variants[v].resized)
        dl2_block_flag(crop, "enlarged");
    if (isfinite(score))
        dl2_block_set(crop, "score", "%s %s", dl2_metric_title(study, metric),
                      dl2_table_fixed(score, 3));
    set_image(gallery, crop);
    return DL2_OK;
}

/* One image from all variants, if there is room; else its name. */
static int add_image(struct gallery *gallery, const json_t *crop, struct dl2_error *error)
{
    const long long width = dl2_json_get_integer(crop, "width", 0);
    const long long height = dl2_json_get_integer(crop, "height", 0);
    const char *metric =
        dl2_json_get_text(json_array_get(json_object_get(crop, "of"), 0), "metric", "");
    const size_t before = gallery->size;
    if (width < 1 || width > 1024 || height < 1 || height > 1024)
        return dl2_error_set(error, DL2_ERR_FORMAT, "a crop of %lldx%lld pixels", width, height);
    DL2_TRY(read_crop(gallery, dl2_json_get_text(crop, "original", ""), error));
    json_auto_t *image =
        dl2_need(json_pack("{s:I, s:I}", "width", (json_int_t)width, "height", (json_int_t)height));
    dl2_block_set(image, "title", "%s", reasons_of(gallery, crop));
    dl2_block_set(image, "key", "%s", dl2_json_get_text(crop, "key", "?"));
    set_image(gallery, image);
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(crop, "variants"), i, entry)
        DL2_TRY(add_crop(gallery, image, entry, metric, error));
    if (gallery->size <= MAX_GALLERY_BYTES) {
        dl2_block_append(gallery->block, "images", json_incref(image));
    } else {
        gallery->size = before;
        dl2_block_append(gallery->block, "no_room", dl2_json_text(reasons_of(gallery, crop)));
    }
    return DL2_OK;
}

void dl2_section_crops(const struct dl2_page *page, json_t *section)
{
    const char *path = dl2_text("%s/crops/crops.json", page->folder), *names = "";
    json_auto_t *crops = NULL;
    json_t *item;
    size_t i;
    if (!dl2_is_file(path))
        return;
    struct dl2_error why = DL2_ERROR_INIT;
    dl2_block_set(section, "heading", "What they look like");
    struct gallery gallery = {.page = page};
    int status = dl2_result_load(path, "dl2-crops/2", &crops, &why);
    const json_t *list = json_object_get(crops, "crops");
    if (json_array_size(list))
        gallery.block = dl2_block_add(section, "gallery");
    json_array_foreach(list, i, item)
    {
        if (status == DL2_OK)
            status = add_image(&gallery, item, &why);
    }
    dl2_bytes_free(&gallery.bytes);
    if (dl2_unless_memory(status, &why) < 0) {
        dl2_block_text(section, "warning", "The crops in %s can't be shown: %s", path, why.message);
        return;
    }
    json_array_foreach(json_object_get(crops, "left_out"), i, item) names = dl2_text(
        "%s%s%s", names, i ? ", " : "", json_is_string(item) ? json_string_value(item) : "?");
    if (*names)
        dl2_block_text(section, "note", "Not here, because they have no scores that compare: %s.",
                       names);
    if (json_object_get(gallery.block, "images"))
        dl2_block_text(
            section, "note",
            "One pixel of the screen for one of the image (tiny images are enlarged), where the "
            "variant with the lowest score differs most from the original. Resized variants are "
            "enlarged to the original's size. Images are ranked by their mean score over all "
            "variants. Slider: left of the white line is the original. Flicker: variant and "
            "original take turns every half second. Heat map: the difference of luma, black for "
            "none, brightest for 32 of 255 levels or more.");
    names = "";
    json_array_foreach(json_object_get(gallery.block, "no_room"), i, item) names =
        dl2_text("%s%s%s", names, i ? " · " : "", json_string_value(item));
    if (*names) {
        json_t *text = dl2_block_text(section, "note",
                                      "Images take up to 3 MB of this page; there was no room for: "
                                      "%s. They lie in ",
                                      names);
        dl2_block_mark(text, "code", "crops/");
        dl2_block_say(text, " of the study.");
    }
}
