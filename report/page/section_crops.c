/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the variants look like: crops of the worst, median and best images by each metric, with the
 * original's under a slider, in turns with it, or as a map of the error, which the browser computes
 * from the pixels.
 */
#include "common/file.h"
#include "common/json.h"
#include "common/keep.h"
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

/* What is read and written; `html` is of the images so far. */
struct gallery {
    const struct dl2_page *page;
    struct dl2_bytes *html;
    struct dl2_bytes bytes;    /* of the file that was read last */
    struct dl2_bytes left_out; /* the images that there was no room for, as a list of texts */
    size_t shown, start;       /* images; html's size before them */
};

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

/* "worst by SSIM and PSNR, best by CIEDE2000" */
static void write_reasons(const struct gallery *gallery, struct dl2_bytes *html, const json_t *crop)
{
    static const char *const kinds[] = {"worst", "median", "best"};
    size_t i, written = 0;
    json_t *reason;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        size_t own = 0;
        json_array_foreach(json_object_get(crop, "of"), i, reason)
        {
            if (strcmp(dl2_json_get_text(reason, "kind", ""), kinds[k]) != 0)
                continue;
            dl2_html_format(
                html, "%s%s%s%s", !own && written ? "; " : "", own ? ", " : kinds[k],
                own ? "" : " by ",
                dl2_metric_title(gallery->page->study, dl2_json_get_text(reason, "metric", "?")));
            own++;
            written++;
        }
    }
}

/* A crop of a variant, with the original's over it. */
static int write_crop(struct gallery *gallery, const json_t *entry, const char *metric,
                      struct dl2_error *error)
{
    struct dl2_bytes *html = gallery->html;
    const struct dl2_study *study = gallery->page->study;
    const char *name = dl2_json_get_text(entry, "variant", "");
    const size_t v = dl2_study_find(study, name);
    if (v == study->variant_count) /* not of this study */
        return DL2_OK;
    DL2_TRY(read_crop(gallery, dl2_json_get_text(entry, "file", ""), error));
    const double score = dl2_json_get_real(json_object_get(entry, "scores"), metric, NAN);
    dl2_html_markup(html, "<figure class='crop'><div><img alt='");
    dl2_html_format(html, "%s", name);
    dl2_html_markup(html, "' src='");
    dl2_html_data(html, "image/png", &gallery->bytes);
    dl2_html_markup(html, "'/><i></i></div><figcaption>");
    dl2_html_element(html, "b", "%s", name);
    if (isfinite(study->variants[v].ratio))
        dl2_html_element(html, "small", " %.3g%%", 100 * study->variants[v].ratio);
    if (study->variants[v].resized)
        dl2_html_element(html, "small", " enlarged");
    if (isfinite(score))
        dl2_html_element(html, "small", " %s %s", dl2_metric_title(study, metric),
                         dl2_part_fixed(score, 3));
    dl2_html_markup(html, "</figcaption></figure>\n");
    return DL2_OK;
}

/* One image from all variants. */
static int write_image(struct gallery *gallery, const json_t *crop, struct dl2_error *error)
{
    struct dl2_bytes *html = gallery->html;
    const long long width = dl2_json_get_integer(crop, "width", 0);
    const long long height = dl2_json_get_integer(crop, "height", 0);
    const char *metric =
        dl2_json_get_text(json_array_get(json_object_get(crop, "of"), 0), "metric", "");
    if (width < 1 || width > 1024 || height < 1 || height > 1024)
        return dl2_error_set(error, DL2_ERR_FORMAT, "a crop of %lldx%lld pixels", width, height);
    DL2_TRY(read_crop(gallery, dl2_json_get_text(crop, "original", ""), error));
    char size[96]; /* tiny images are enlarged by a whole factor */
    const long long factor =
        width < 64 && height < 64 ? 128 / (width > height ? width : height) : 1;
    snprintf(size, sizeof size, " style='--w:%lldpx;--h:%lldpx;", factor * width, factor * height);
    dl2_html_markup(html,
                    gallery->shown ? "<details class='strip'" : "<details open='' class='strip'");
    dl2_html_markup(html, size);
    dl2_html_markup(html, "--was:url(");
    dl2_html_data(html, "image/png", &gallery->bytes);
    dl2_html_markup(html, ")'><summary>");
    write_reasons(gallery, html, crop);
    dl2_html_element(html, "small", " %s", dl2_json_get_text(crop, "key", "?"));
    dl2_html_markup(html, "</summary>\n<div class='crops'>\n");
    size_t i;
    json_t *entry;
    int status = DL2_OK;
    json_array_foreach(json_object_get(crop, "variants"), i, entry)
    {
        if (status == DL2_OK)
            status = write_crop(gallery, entry, metric, error);
    }
    dl2_html_markup(html, "</div></details>\n");
    return status;
}

/* Writes it if there is room, else its name. */
static int add_image(struct gallery *gallery, const json_t *crop, struct dl2_error *error)
{
    struct dl2_bytes *html = gallery->html;
    const size_t before = html->size;
    DL2_TRY(write_image(gallery, crop, error));
    if (html->size - gallery->start <= MAX_GALLERY_BYTES) {
        gallery->shown++;
        return DL2_OK;
    }
    html->size = before;
    dl2_html_markup(&gallery->left_out, gallery->left_out.size ? " · " : "");
    write_reasons(gallery, &gallery->left_out, crop);
    return DL2_OK;
}

/* The ways to look; style sheets do the work. */
static void write_controls(struct dl2_bytes *html)
{
    dl2_html_markup(
        html,
        "<svg width='0' height='0' style='position:absolute' aria-hidden='true'><filter "
        "id='heat' color-interpolation-filters='sRGB'><feColorMatrix values='1.7 5.72 .58 0 0 1.7 "
        "5.72 .58 0 0 1.7 5.72 .58 0 0 0 0 0 1 0'/><feComponentTransfer><feFuncR type='table' "
        "tableValues='0 .34 .73 .96 .99'/><feFuncG type='table' tableValues='0 .06 .22 .56 1'/>"
        "<feFuncB type='table' tableValues='.02 .43 .33 .1 .64'/></feComponentTransfer></filter>"
        "</svg>\n<fieldset class='ways'><legend>Show</legend>"
        "<label><input type='radio' name='way' value='slider' checked=''/> slider</label> "
        "<label><input type='radio' name='way' value='flicker'/> flicker</label> "
        "<label><input type='radio' name='way' value='heat'/> error heat map</label>"
        "<label class='slide'><span>variant</span><input type='range' min='0' max='100' "
        "value='50' oninput='this.closest(\".gallery\").style.setProperty(\"--cut\",this.value+"
        "\"%\")' aria-label='Part of each crop that shows the original, percent'/><span>original"
        "</span></label></fieldset>\n");
}

static void write_notes(struct gallery *gallery, const json_t *left_out)
{
    struct dl2_bytes *html = gallery->html;
    size_t i;
    json_t *name;
    json_array_foreach(left_out, i, name)
    {
        dl2_html_markup(html,
                        i ? ", "
                          : "<p class='note'>Not here, because they have no scores that compare: ");
        dl2_html_format(html, "%s", json_is_string(name) ? json_string_value(name) : "?");
    }
    dl2_html_markup(html, json_array_size(left_out) ? ".</p>\n" : "");
    if (gallery->shown)
        dl2_html_markup(
            html, "<p class='note'>One pixel of the screen for one of the image (tiny images are "
                  "enlarged), where the variant with the lowest score differs most from the "
                  "original. Resized variants are enlarged to the original's size. Images are "
                  "ranked by their mean score over all variants. Slider: left "
                  "of the white line is the original. Flicker: variant and original take turns "
                  "every half second. Heat map: the difference of luma, black for none, brightest "
                  "for 32 of 255 levels or more.</p>\n");
    if (gallery->left_out.size) {
        dl2_html_markup(html, "<p class='note'>Images take up to 3 MB of this page; there was no "
                              "room for: ");
        dl2_append(html, gallery->left_out.data, gallery->left_out.size);
        dl2_html_markup(html, ". They lie in <code>crops/</code> of the study.</p>\n");
    }
}

void dl2_section_crops(const struct dl2_page *page, struct dl2_bytes *html)
{
    const char *path = dl2_text("%s/crops/crops.json", page->folder);
    json_auto_t *crops = NULL;
    json_t *crop;
    size_t i;
    if (!dl2_is_file(path))
        return;
    struct dl2_error why = DL2_ERROR_INIT;
    struct gallery gallery = {.page = page, .html = html};
    int status = dl2_result_load(path, "dl2-crops/2", &crops, &why);
    const json_t *list = json_object_get(crops, "crops");
    if (status < 0 || json_array_size(list))
        dl2_html_markup(
            html, "<h2>What they look like</h2>\n<div class='gallery' style='--heat:url(#heat)'>");
    if (json_array_size(list))
        write_controls(html);
    gallery.start = html->size;
    json_array_foreach(list, i, crop)
    {
        if (status == DL2_OK)
            status = add_image(&gallery, crop, &why);
    }
    if (status < 0 || json_array_size(list))
        dl2_html_markup(html, "</div>\n");
    if (status == DL2_OK)
        write_notes(&gallery, json_object_get(crops, "left_out"));
    if (dl2_unless_memory(status, &why) < 0)
        dl2_html_element(html, "p class='warning'", "The crops in %s can't be shown: %s", path,
                         why.message);
    dl2_bytes_free(&gallery.left_out);
    dl2_bytes_free(&gallery.bytes);
}
