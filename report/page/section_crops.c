/* SPDX-License-Identifier: BSD-2-Clause */
/* What the variants look like: crops of a typical image and of the worst, beside the original's. */
#include "common/file.h"
#include "common/json.h"
#include "report/page/parts.h"
#include "report/page/sections.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Larger files are not taken for crops, bytes. */
#define MAX_CROP_BYTES ((uint64_t)256 << 10)

/* Sets `bytes` to a file of the crops' folder, which must be a PNG. */
static int read_crop(const struct dl2_page *page, const char *name, struct dl2_bytes *bytes,
                     struct dl2_error *error)
{
    static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    char path[4608];
    if (!*name || strchr(name, '/') || name[0] == '.')
        return dl2_error_set(error, DL2_ERR_FORMAT, "\"%s\" is not a file's name", name);
    snprintf(path, sizeof path, "%s/crops/%s", page->folder, name);
    DL2_TRY(dl2_file_read(path, MAX_CROP_BYTES, bytes, error));
    if (bytes->size < sizeof signature || memcmp(bytes->data, signature, sizeof signature) != 0)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s is not a PNG file", path);
    return DL2_OK;
}

/* A crop of a variant, with the original's over its left part. */
static int write_crop(struct dl2_html *html, const struct dl2_page *page, const json_t *entry,
                      const char *metric, struct dl2_bytes *bytes, struct dl2_error *error)
{
    const char *name = dl2_json_get_text(entry, "variant", "");
    const size_t v = dl2_study_find(page->study, name);
    if (v == page->study->variant_count) /* not of this study */
        return DL2_OK;
    DL2_TRY(read_crop(page, dl2_json_get_text(entry, "file", ""), bytes, error));
    const double score = dl2_json_get_real(entry, "score", NAN);
    char text[32];
    dl2_html_markup(html, "<figure class='crop'><div><img alt='");
    dl2_html_format(html, "%s", name);
    dl2_html_markup(html, "' src='");
    dl2_html_data(html, "image/png", bytes);
    dl2_html_markup(html, "'/><i></i></div>");
    dl2_html_markup(html, "<figcaption>");
    dl2_html_element(html, "b", "%s", name);
    if (isfinite(page->study->variants[v].ratio))
        dl2_html_element(html, "small", " %.3g%%", 100 * page->study->variants[v].ratio);
    if (isfinite(score))
        dl2_html_element(html, "small", " %s %s", metric, dl2_part_fixed(score, 3, text));
    dl2_html_markup(html, "</figcaption></figure>\n");
    return DL2_OK;
}

static int write_strip(struct dl2_html *html, const struct dl2_page *page, const json_t *strip,
                       const char *metric, struct dl2_bytes *bytes, struct dl2_error *error)
{
    const char *kind = dl2_json_get_text(strip, "kind", "");
    const bool worst = strcmp(kind, "worst") == 0;
    const long long width = dl2_json_get_integer(strip, "width", 0);
    const long long height = dl2_json_get_integer(strip, "height", 0);
    if (width < 1 || width > 1024 || height < 1 || height > 1024)
        return dl2_error_set(error, DL2_ERR_FORMAT, "a crop of %lldx%lld pixels", width, height);
    DL2_TRY(read_crop(page, dl2_json_get_text(strip, "original", ""), bytes, error));
    char size[64]; /* tiny images are enlarged by a whole factor */
    const long long factor =
        width < 64 && height < 64 ? 128 / (width > height ? width : height) : 1;
    snprintf(size, sizeof size, "--w:%lldpx;--h:%lldpx;", factor * width, factor * height);
    dl2_html_markup(html, "<div class='strip' style='");
    dl2_html_markup(html, size);
    dl2_html_markup(html, "--was:url(");
    dl2_html_data(html, "image/png", bytes);
    dl2_html_markup(html, ")'>\n");
    dl2_html_element(html, "h3", "%s", worst ? "The worst image" : "A typical image");
    dl2_html_element(html, "p class='note'", "%s", dl2_json_get_text(strip, "key", "?"));
    dl2_html_markup(html, "<label class='slide'><span>variant</span><input type='range' min='0' "
                          "max='100' value='50' oninput='this.closest(\".strip\").style."
                          "setProperty(\"--cut\",this.value+\"%\")' aria-label='Part of each crop "
                          "that shows the original, percent'/><span>original</span></label>\n"
                          "<div class='crops'>\n");
    size_t i;
    json_t *entry;
    int status = DL2_OK;
    json_array_foreach(json_object_get(strip, "variants"), i, entry)
    {
        if (status == DL2_OK)
            status = write_crop(html, page, entry, metric, bytes, error);
    }
    dl2_html_markup(html, "</div></div>\n");
    return status;
}

void dl2_section_crops(const struct dl2_page *page, struct dl2_html *html)
{
    char path[4608];
    json_t *crops = NULL, *strip;
    size_t i;
    snprintf(path, sizeof path, "%s/crops/crops.json", page->folder);
    if (!dl2_is_file(path))
        return;
    struct dl2_error why = DL2_ERROR_INIT;
    struct dl2_bytes bytes = DL2_BYTES_INIT;
    int status = dl2_json_load(path, "dl2-crops/1", &crops, &why);
    const json_t *strips = json_object_get(crops, "crops");
    char metric[32];
    snprintf(metric, sizeof metric, "%s", dl2_json_get_text(crops, "metric", ""));
    for (char *c = metric; *c; c++)
        *c = *c == '_' ? '-' : (char)(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    if (status < 0 || json_array_size(strips))
        dl2_html_markup(html, "<h2>What they look like</h2>\n");
    json_array_foreach(strips, i, strip)
    {
        if (status == DL2_OK)
            status = write_strip(html, page, strip, metric, &bytes, &why);
    }
    if (status == DL2_OK && json_array_size(strips))
        dl2_html_markup(html, "<p class='note'>One pixel of the screen for one of the image (tiny "
                              "images are enlarged), where the smallest of these differs "
                              "most from the original. Left of the white line is the original. The "
                              "worst has the lowest mean score over all variants, the typical is "
                              "in the middle.</p>\n");
    if (status < 0 && html->status == DL2_OK)
        dl2_html_element(html, "p class='warning'", "The crops in %s can't be shown: %s", path,
                         why.message);
    if (status == DL2_ERR_MEMORY && html->status == DL2_OK)
        html->status = dl2_error_set(html->error, status, "%s", why.message);
    dl2_bytes_free(&bytes);
    json_decref(crops);
}
