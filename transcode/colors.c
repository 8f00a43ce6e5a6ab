/* SPDX-License-Identifier: BSD-2-Clause */
#include "transcode/colors.h"

#include "common/json.h"
#include "common/quote.h"

#include <stdlib.h>
#include <string.h>

const char *const dl2_metadata_rules[] = {[DL2_METADATA_USUAL] = "usual",
                                          [DL2_METADATA_KEEP] = "keep",
                                          [DL2_METADATA_DROP] = "drop",
                                          NULL};

const char *const dl2_color_rules[] = {
    [DL2_COLORS_KEEP] = "keep",
    [DL2_COLORS_CONVERT] = "convert",
    [DL2_COLORS_DROP] = "drop",
    NULL,
};

static const char *const fates[DL2_FATES] = {
    [DL2_FATE_KEPT] = "kept",
    [DL2_FATE_CONVERTED] = "converted",
    [DL2_FATE_DROPPED] = "dropped",
};

int dl2_colors_apply(struct dl2_source_colors *source, enum dl2_color_rule rule,
                     const uint8_t *data, size_t size, struct dl2_image *image,
                     struct dl2_error *error)
{
    struct dl2_color_space *const color = &source->color;
    const struct dl2_raster raster = dl2_raster_of(image, 0, 0);
    source->rule = rule;
    source->nearly_black = dl2_image_is_nearly_black(&source->info, &raster);
    source->described = false;
    DL2_TRY(dl2_image_read_color(data, size, &source->info, color, error));
    if (color->form == DL2_COLOR_SPACE_SRGB)
        return DL2_OK;
    source->described = true;
    memcpy(source->name, color->name, sizeof source->name);
    if (rule == DL2_COLORS_CONVERT) {
        const int status = dl2_color_convert(color, image, error);
        if (status < 0) {
            dl2_error_prefix(error, "cannot be converted to sRGB (--color convert)");
            return status;
        }
        color->form = DL2_COLOR_SPACE_SRGB;
    } else if (rule == DL2_COLORS_DROP) {
        color->form = DL2_COLOR_SPACE_UNKNOWN;
    }
    return DL2_OK;
}

int dl2_colors_read_metadata(struct dl2_source_colors *source, enum dl2_metadata_rule rule,
                             const uint8_t *data, size_t size, struct dl2_error *error)
{
    source->metadata_rule = rule;
    if (rule == DL2_METADATA_USUAL)
        return DL2_OK;
    DL2_TRY(dl2_image_read_metadata(data, size, &source->metadata, error));
    dl2_metadata_make_upright(&source->metadata);
    return DL2_OK;
}

bool dl2_colors_allow_source(const struct dl2_source_colors *source)
{
    const struct dl2_metadata *metadata = &source->metadata;
    const bool drops =
        source->metadata_rule == DL2_METADATA_DROP &&
        (metadata->exif.size || metadata->xmp.size || metadata->partial || metadata->other);
    return !drops && (!source->described || source->rule == DL2_COLORS_KEEP);
}

static int fit_metadata(struct dl2_source_colors *source, const struct dl2_codec *codec,
                        struct dl2_encode_options *encode, struct dl2_error *error)
{
    const struct dl2_metadata *in = &source->metadata;
    struct dl2_metadata *out = &source->written;
    encode->metadata = NULL;
    if (source->metadata_rule != DL2_METADATA_KEEP)
        return DL2_OK;
    out->exif.size = out->xmp.size = 0;
    out->partial = in->partial;
    DL2_TRY(dl2_bytes_append(&out->exif, in->exif.data, in->exif.size, error));
    DL2_TRY(dl2_bytes_append(&out->xmp, in->xmp.data, in->xmp.size, error));
    dl2_metadata_limit(out, codec->metadata_bytes);
    encode->metadata = out;
    return DL2_OK;
}

int dl2_colors_fit(struct dl2_source_colors *source, const struct dl2_codec *codec,
                   const struct dl2_image *image, struct dl2_encode_options *encode,
                   struct dl2_error *error)
{
    const struct dl2_color_space *const color = &source->color;
    const int fits = dl2_color_fit(color, codec, image->channels, &source->fitted, error);
    encode->color = &source->fitted;
    DL2_TRY(fit_metadata(source, codec, encode, error));
    if (fits == 0 && codec->always_tagged && color->form != DL2_COLOR_SPACE_UNKNOWN)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "a %s file cannot hold these colors (%s) and would name others; pass "
                             "--color convert or --color drop",
                             codec->name, color->name);
    return fits < 0 ? fits : DL2_OK;
}

int dl2_colors_note(const struct dl2_source_colors *source, bool copied, struct dl2_reduction *out,
                    struct dl2_error *error)
{
    *out = (struct dl2_reduction){0};
    if (!copied) {
        out->bits = source->info.bits > 8 ? (uint8_t)source->info.bits : 0;
        out->alpha = source->info.alpha;
        out->cmyk = source->info.cmyk;
        out->frames = source->info.has_more;
        out->bands = source->info.left_out > 0;
        out->black = source->nearly_black;
        out->metadata = source->metadata_rule == DL2_METADATA_KEEP && source->written.partial;
        out->turned = source->info.orientation > 1;
    }
    if (!source->described)
        return DL2_OK;
    out->fate = source->rule == DL2_COLORS_CONVERT                          ? DL2_FATE_CONVERTED
                : !copied && source->fitted.form == DL2_COLOR_SPACE_UNKNOWN ? DL2_FATE_DROPPED
                                                                            : DL2_FATE_KEPT;
    out->color = strdup(source->name);
    return out->color ? DL2_OK : dl2_error_memory(error, "colors");
}

void dl2_colors_free(struct dl2_source_colors *source)
{
    dl2_color_free(&source->color);
    dl2_color_free(&source->fitted);
    dl2_metadata_free(&source->metadata);
    dl2_metadata_free(&source->written);
}

/* -- the record -- */

void dl2_reduction_print(const struct dl2_reduction *reduction, FILE *out)
{
    if (reduction->color) {
        json_t *name = dl2_json_text(reduction->color);
        char *text = name ? json_dumps(name, JSON_ENCODE_ANY) : NULL;
        if (text)
            fprintf(out, ",\"color\":%s,\"color_is\":\"%s\"", text, fates[reduction->fate]);
        free(text);
        json_decref(name);
    }
    if (reduction->bits)
        fprintf(out, ",\"source_bits\":%d", reduction->bits);
    if (reduction->alpha)
        fputs(",\"source_alpha\":true", out);
    if (reduction->cmyk)
        fputs(",\"source_cmyk\":true", out);
    if (reduction->frames)
        fputs(",\"source_frames\":true", out);
    if (reduction->bands)
        fputs(",\"source_bands\":true", out);
    if (reduction->black)
        fputs(",\"source_black\":true", out);
    if (reduction->metadata)
        fputs(",\"source_metadata\":true", out);
    if (reduction->turned)
        fputs(",\"source_turned\":true", out);
}

int dl2_reduction_read(struct dl2_reduction *reduction, const json_t *line, struct dl2_error *error)
{
    const char *color = dl2_json_get_text(line, "color", NULL);
    const char *fate = dl2_json_get_text(line, "color_is", "");
    free(reduction->color);
    *reduction = (struct dl2_reduction){
        .bits = (uint8_t)dl2_json_get_integer(line, "source_bits", 0),
        .alpha = json_is_true(json_object_get(line, "source_alpha")),
        .cmyk = json_is_true(json_object_get(line, "source_cmyk")),
        .frames = json_is_true(json_object_get(line, "source_frames")),
        .bands = json_is_true(json_object_get(line, "source_bands")),
        .black = json_is_true(json_object_get(line, "source_black")),
        .metadata = json_is_true(json_object_get(line, "source_metadata")),
        .turned = json_is_true(json_object_get(line, "source_turned")),
    };
    while (reduction->fate < DL2_FATES - 1 && strcmp(fates[reduction->fate], fate) != 0)
        reduction->fate++;
    if (color && !(reduction->color = strdup(color)))
        return dl2_error_memory(error, "colors");
    return DL2_OK;
}

static bool add_one(json_t *sums, const char *group, const char *name)
{
    json_t *counts = json_object_get(sums, group);
    if (!counts && json_object_set_new(sums, group, counts = json_object()) < 0)
        return false;
    const json_int_t so_far = json_integer_value(json_object_get(counts, name));
    return json_object_set_new(counts, name, json_integer(so_far + 1)) == 0;
}

bool dl2_reduction_count(const struct dl2_reduction *reduction, json_t *sums)
{
    char bits[16];
    snprintf(bits, sizeof bits, "%d bits", reduction->bits);
    return (!reduction->color || add_one(sums, fates[reduction->fate], reduction->color)) &&
           (!reduction->bits || add_one(sums, "reduced", bits)) &&
           (!reduction->alpha || add_one(sums, "reduced", "alpha")) &&
           (!reduction->cmyk || add_one(sums, "reduced", "CMYK")) &&
           (!reduction->frames || add_one(sums, "reduced", "several frames")) &&
           (!reduction->bands || add_one(sums, "reduced", "further bands")) &&
           (!reduction->black || add_one(sums, "reduced", "data of 12 bits, now nearly black")) &&
           (!reduction->metadata || add_one(sums, "left_out", "EXIF or XMP")) &&
           (!reduction->turned || add_one(sums, "turned", "EXIF orientation"));
}

char *dl2_reduction_describe(const json_t *sums)
{
    static const struct {
        const char *group, *text;
    } lines[] = {
        {"kept", "colors that are not sRGB, kept with their description"},
        {"converted", "colors converted to sRGB"},
        {"dropped", "colors that are not sRGB, stored WITHOUT their description"},
        {"reduced", "reduced to one image of 8 bits, gray or RGB, without alpha"},
        {"left_out", "metadata left out, which is damaged, too large for the codec, or in parts"},
        {"turned", "turned upright; programs that ignore orientations show the source as stored"},
    };
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const char *name, *separator = ": ";
        json_t *count, *counts = json_object_get(sums, lines[i].group);
        if (!json_object_size(counts))
            continue;
        fputs(lines[i].text, out);
        json_object_foreach(counts, name, count)
        {
            fprintf(out, "%s%s (%lld)", separator, DL2_SHOWN(name),
                    (long long)json_integer_value(count));
            separator = ", ";
        }
        fputc('\n', out);
    }
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}
