/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/settings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const dl2_setting_no_yes[] = {"no", "yes", NULL};

/* Row `index` of all settings of a codec: the common ones come first. False: there is none. */
static bool row_of(const struct dl2_codec *codec, unsigned index, struct dl2_setting *out)
{
    const struct dl2_setting common[] = {{.name = codec->max_effort >= 0 ? "effort" : NULL,
                                          .min = codec->usual_effort < 0 ? -1 : 0, /* auto */
                                          .max = codec->max_effort,
                                          .usual = codec->usual_effort,
                                          .whole = true,
                                          .help = codec->effort_help},
                                         {.name = codec->has_subsampling ? "subsampling" : NULL,
                                          .words = dl2_subsamplings,
                                          .help = "chroma subsampling"},
                                         {.name = codec->has_restart ? "restart" : NULL,
                                          .words = dl2_restarts,
                                          .help = "restart intervals; progressive files have none"},
                                         {.name = codec->count_coefficients ? "tables" : NULL,
                                          .is_file = true,
                                          .help = "quantization tables, a file of fit-tables"}};
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        if (common[i].name && index-- == 0) {
            *out = common[i];
            return true;
        }
    if (!codec->settings)
        return false;
    for (size_t i = 0; codec->settings[i].name; i++)
        if (index-- == 0) {
            *out = codec->settings[i];
            return true;
        }
    return false;
}

static double *value_of(struct dl2_settings *settings, const char *name)
{
    for (size_t i = 0; settings->codec->settings[i].name; i++)
        if (!strcmp(settings->codec->settings[i].name, name))
            return &settings->values[i];
    return NULL;
}

void dl2_settings_init(struct dl2_settings *settings, const struct dl2_codec *codec)
{
    *settings = (struct dl2_settings){.codec = codec, .effort = -1};
    for (size_t i = 0; codec->settings && codec->settings[i].name; i++)
        settings->values[i] = codec->settings[i].usual;
    snprintf(settings->name, sizeof settings->name, "%s", codec->name);
}

/* "0 to 9" or "420, 422 or 444". */
static void describe_values(const struct dl2_setting *row, char *out, size_t size)
{
    if (row->is_file) {
        snprintf(out, size, "a file");
        return;
    }
    if (!row->words) {
        snprintf(out, size, "%s%g to %g", row->min < 0 ? "auto or " : "", fmax(row->min, 0),
                 row->max);
        return;
    }
    out[0] = '\0';
    for (size_t i = 0; row->words[i]; i++)
        snprintf(out + strlen(out), size - strlen(out), "%s%s",
                 !i                  ? ""
                 : row->words[i + 1] ? ", "
                                     : " or ",
                 row->words[i]);
}

/* A number or the number of a word; NAN: the setting does not take it. */
static double parse_value(const struct dl2_setting *row, const char *text)
{
    char *end;
    if (row->words) {
        for (size_t i = 0; row->words[i]; i++)
            if (!strcmp(row->words[i], text))
                return (double)i;
        return NAN;
    }
    if (row->min < 0 && !strcmp(text, "auto"))
        return -1;
    if (!*text || strspn(text, "0123456789.") != strlen(text))
        return NAN;
    const double value = strtod(text, &end);
    char shown[32]; /* as in the name, which has to tell it from others */
    snprintf(shown, sizeof shown, "%g", value);
    const double same = strtod(shown, NULL);
    return *end || value < row->min || value > row->max || (row->whole && floor(value) < value) ||
                   same < value || same > value || strchr(shown, 'e')
               ? (double)NAN
               : value;
}

static int no_setting(const struct dl2_codec *codec, const char *name, struct dl2_error *error)
{
    char known[256] = "";
    struct dl2_setting row;
    for (unsigned i = 0; row_of(codec, i, &row); i++)
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "",
                 row.name);
    return *known ? dl2_error_set(error, DL2_ERR_ARGUMENT, "%s has no setting '%s': %s",
                                  codec->name, name, known)
                  : dl2_error_set(error, DL2_ERR_ARGUMENT, "%s has no settings", codec->name);
}

static void set_value(struct dl2_settings *settings, const struct dl2_setting *row, double value)
{
    if (!strcmp(row->name, "effort")) {
        settings->effort = (int)value;
        settings->has_effort = true;
    } else if (row->words == dl2_subsamplings)
        settings->subsampling = dl2_subsamplings[(int)value];
    else if (row->words == dl2_restarts)
        settings->restart = dl2_restarts[(int)value];
    else
        *value_of(settings, row->name) = value;
}

/* Adds a setting to the name: its value alone if that says what it is. */
static void add_name(struct dl2_settings *settings, const struct dl2_setting *row, double value)
{
    char *at = settings->name + strlen(settings->name);
    const size_t size = DL2_SETTINGS_NAME_SIZE - strlen(settings->name);
    if (row->words == dl2_subsamplings)
        snprintf(at, size, "_%s", row->words[(int)value]);
    else if (row->words == dl2_setting_no_yes)
        snprintf(at, size, "_%s", row->name);
    else if (row->is_file)
        snprintf(at, size, "_%s", settings->tables->name);
    else if (row->words)
        snprintf(at, size, "_%s%s", row->name, row->words[(int)value]);
    else
        snprintf(at, size, "_%s%g", row->name, value);
}

int dl2_settings_parse(struct dl2_settings *settings, const struct dl2_codec *codec,
                       const char *text, struct dl2_error *error)
{
    enum { MOST = DL2_MAX_SETTINGS + 4 };
    double given[MOST];
    struct dl2_setting row;
    for (size_t i = 0; i < MOST; i++)
        given[i] = NAN;
    dl2_settings_init(settings, codec);
    for (const char *at = text;; at++) {
        char name[32], value[4096], values[128];
        const size_t length = strcspn(at, ":"), name_length = strcspn(at, "=:");
        const size_t value_length = length > name_length ? length - name_length - 1 : 0;
        unsigned i = 0;
        if (!value_length || name_length >= sizeof name || value_length >= sizeof value)
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "%s: '%.*s' is not a setting and its value, as in effort=1",
                                 codec->name, (int)length, at);
        snprintf(name, sizeof name, "%.*s", (int)name_length, at);
        snprintf(value, sizeof value, "%.*s", (int)value_length, at + name_length + 1);
        while (row_of(codec, i, &row) && strcmp(row.name, name) != 0)
            i++;
        if (!row_of(codec, i, &row))
            return no_setting(codec, name, error);
        if (!isnan(given[i]))
            return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s: %s is given twice", codec->name,
                                 name);
        if (row.is_file) {
            given[i] = 1;
            DL2_TRY(dl2_jpeg_tables_name(value, &settings->tables, error));
        } else {
            given[i] = parse_value(&row, value);
        }
        describe_values(&row, values, sizeof values);
        if (isnan(given[i]))
            return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s: %s takes %s, not '%s'", codec->name,
                                 name, values, value);
        if (!row.is_file)
            set_value(settings, &row, given[i]);
        at += length;
        if (!*at)
            break;
    }
    for (unsigned i = 0; row_of(codec, i, &row); i++)
        if (!isnan(given[i]) && (given[i] < row.usual || given[i] > row.usual))
            add_name(settings, &row, given[i]);
    return DL2_OK;
}

bool dl2_settings_equal(const struct dl2_codec *codec, const struct dl2_encode_options *a,
                        const struct dl2_encode_options *b)
{
    for (unsigned i = 0; codec->settings && codec->settings[i].name; i++) {
        const double one = dl2_setting_value(codec->settings, a, i),
                     two = dl2_setting_value(codec->settings, b, i);
        if (one < two || one > two)
            return false;
    }
    return true;
}

/* Is setting `i` of the codec's table another than the usual one? */
static bool is_set(const struct dl2_codec *codec, const struct dl2_encode_options *options,
                   unsigned i)
{
    const double value = dl2_setting_value(codec->settings, options, i);
    return value < codec->settings[i].usual || value > codec->settings[i].usual;
}

bool dl2_settings_use_quality(const struct dl2_codec *codec,
                              const struct dl2_encode_options *options)
{
    bool use = codec->lossy;
    for (unsigned i = 0; codec->settings && codec->settings[i].name; i++)
        use = use && !(codec->settings[i].replaces_quality && is_set(codec, options, i));
    return use;
}

json_t *dl2_settings_json(const struct dl2_codec *codec, const struct dl2_encode_options *options)
{
    json_t *json = json_object();
    for (unsigned i = 0; json && codec->settings && codec->settings[i].name; i++) {
        const struct dl2_setting *row = &codec->settings[i];
        const double value = dl2_setting_value(codec->settings, options, i);
        if (!is_set(codec, options, i))
            continue;
        json_t *one = row->words   ? json_string(row->words[(int)value])
                      : row->whole ? json_integer((json_int_t)value)
                                   : json_real(value);
        if (json_object_set_new(json, row->name, one) < 0) {
            json_decref(json);
            return NULL;
        }
    }
    return json;
}

void dl2_settings_list(FILE *out)
{
    const struct dl2_codec *codec;
    struct dl2_setting row;
    for (size_t c = 0; (codec = dl2_codec_at(c)); c++)
        for (unsigned i = 0; dl2_codec_encodes(codec) && row_of(codec, i, &row); i++) {
            char values[128], usual[32];
            describe_values(&row, values, sizeof values);
            if (row.is_file)
                snprintf(usual, sizeof usual, "none");
            else if (row.words)
                snprintf(usual, sizeof usual, "%s", row.words[(int)row.usual]);
            else if (row.usual < 0)
                snprintf(usual, sizeof usual, "auto");
            else
                snprintf(usual, sizeof usual, "%g", row.usual);
            fprintf(out, "%s\t%s\t%s\t%s\t%s\n", codec->name, row.name, values, usual, row.help);
        }
}
