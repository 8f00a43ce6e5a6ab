/* SPDX-License-Identifier: BSD-2-Clause */
#include "transcode/target/select_targets.h"

#include "codec/video_encoder.h"

#include "common/memory.h"
#include "common/process.h"
#include "common/quote.h"
#include "common/scope.h"

#include <stdlib.h>
#include <string.h>

const char *const dl2_filter_words[] = {"lanczos", "box", "bilinear", NULL};
static const enum dl2_interpolation filter_numbers[] = {DL2_LANCZOS, DL2_BOX, DL2_BILINEAR};
static const char *const size_names[] = {"resize-shorter", "max-side", "fit"};

static bool given(const struct dl2_selection *selection, const char *option)
{
    return dl2_option_given(selection->program, selection->common, option);
}

/* A list of one option's values, of which `add` takes each. Errors name the option, if one is given
 * here. */
static int select_list(struct dl2_selection *selection, const char *text, const char *option,
                       int (*add)(struct dl2_selection *selection, const char *text, int number,
                                  struct dl2_error *error),
                       int number, struct dl2_error *error)
{
    DL2_AUTO_LIST char **items = NULL;
    size_t count;
    int status = dl2_parse_name_list(text, &items, &count, error);
    for (size_t i = 0; status == DL2_OK && i < count; i++)
        status = add(selection, items[i], number, error);
    if (status < 0 && option)
        dl2_error_prefix(error, "--%s", option);
    return status;
}

/* ---- Resolutions */

/* A number of pixels, up to the end of `text` or an "x" if that may follow; 0: it is none. */
static uint32_t parse_side(const char **text, bool with_height)
{
    const size_t digits = strspn(*text, "0123456789");
    const unsigned long side = digits && digits < 6 ? strtoul(*text, NULL, 10) : 0;
    const char end = (*text)[digits];
    *text += digits + (with_height && end == 'x');
    return end == (with_height ? 'x' : '\0') && side <= DL2_RESOLUTION_MAX ? (uint32_t)side : 0;
}

static bool parse_size(const char *text, enum dl2_size_option option, struct dl2_resolution *out)
{
    if (!strcmp(text, "full"))
        return true;
    if (option == DL2_SHORT)
        return (out->short_side = parse_side(&text, false));
    out->width = parse_side(&text, option == DL2_FIT);
    out->height = option == DL2_FIT && out->width ? parse_side(&text, false) : out->width;
    return out->width && out->height;
}

static int add_size(struct dl2_selection *selection, const char *text, int option,
                    struct dl2_error *error)
{
    struct dl2_resolution own = {.filter = filter_numbers[selection->arguments->filter]};
    if (selection->resolution_count == DL2_MAX_RESOLUTIONS)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "more than %d sizes", DL2_MAX_RESOLUTIONS);
    if (!parse_size(text, (enum dl2_size_option)option, &own))
        return dl2_error_set(
            error, DL2_ERR_ARGUMENT, "'%s' is not %s from 1 to %d, nor \"full\"", text,
            option == DL2_FIT ? "a width and a height, as 640x480, each" : "a number of pixels",
            DL2_RESOLUTION_MAX);
    for (size_t r = 0; r < selection->resolution_count; r++)
        if (dl2_resolution_equal(&selection->resolutions[r], &own))
            return DL2_OK;
    selection->resolutions[selection->resolution_count++] = own;
    return DL2_OK;
}

int dl2_select_resolutions(struct dl2_selection *selection, struct dl2_error *error)
{
    bool resized = false;
    for (int option = 0; option < DL2_SIZE_OPTIONS; option++)
        if (selection->arguments->sizes[option])
            DL2_TRY(select_list(selection, selection->arguments->sizes[option], size_names[option],
                                add_size, option, error));
    if (!selection->resolution_count)
        selection->resolution_count = 1;
    for (size_t r = 0; r < selection->resolution_count; r++)
        resized = resized || !dl2_resolution_is_full(&selection->resolutions[r]);
    return resized || !given(selection, "filter")
               ? DL2_OK
               : dl2_error_set(
                     error, DL2_ERR_ARGUMENT,
                     "--filter has no effect: no image is resized; give --resize-shorter, "
                     "--max-side or --fit");
}

/* ---- Targets of --target */

/* The qualities of --q-range. */
static int parse_range(const char *text, int *low, int *high, struct dl2_error *error)
{
    DL2_AUTO_FREE unsigned *list = NULL;
    size_t count;
    DL2_TRY(dl2_parse_uint_list(text, 1, 100, &list, &count, error));
    *low = (int)list[0];
    *high = (int)list[count - 1];
    return !strchr(text, ',') && (size_t)(*high - *low) + 1 == count
               ? DL2_OK
               : dl2_error_set(error, DL2_ERR_ARGUMENT, "'%s' is not a range such as 20:95", text);
}

static int add_goal(struct dl2_selection *selection, const char *text, int number,
                    struct dl2_error *error)
{
    const struct dl2_transcode_arguments *arguments = selection->arguments;
    struct dl2_quality_target rest = arguments->each;
    struct dl2_quality_target *own = &selection->goals[selection->goal_count];
    (void)number;
    if (selection->goal_count == DL2_MAX_GOALS)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "more than %d", DL2_MAX_GOALS);
    DL2_TRY(
        parse_range(arguments->range ? arguments->range : "1:100", &rest.low, &rest.high, NULL));
    DL2_TRY(dl2_target_parse(text, &rest, own, error));
    for (size_t g = 0; g < selection->goal_count; g++)
        if (dl2_target_equal(&selection->goals[g], own))
            return DL2_OK;
    selection->goal_count++;
    return DL2_OK;
}

static int select_goals(struct dl2_selection *selection, struct dl2_error *error)
{
    static const char *const others[] = {"q-range", "target-rule", "target-tolerance", "probes",
                                         "on-miss"};
    const struct dl2_transcode_arguments *arguments = selection->arguments;
    int low, high;
    for (size_t i = 0; !arguments->targets && i < sizeof others / sizeof *others; i++)
        if (given(selection, others[i]))
            return dl2_error_set(error, DL2_ERR_ARGUMENT, "--%s has no effect without --target",
                                 others[i]);
    if (!arguments->targets)
        return DL2_OK;
    if (given(selection, "q"))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "--q and --target exclude one another");
    if (arguments->range && parse_range(arguments->range, &low, &high, error) < 0) {
        dl2_error_prefix(error, "--q-range");
        return DL2_ERR_ARGUMENT;
    }
    return select_list(selection, arguments->targets, "target", add_goal, 0, error);
}

/* ---- Codecs */

static int no_codec(const struct dl2_selection *selection, int length, const char *name,
                    struct dl2_error *error)
{
    char known[128] = "";
    for (size_t i = 0; dl2_codec_at(i); i++)
        if (dl2_codec_encodes(dl2_codec_at(i)))
            dl2_list_name(known, sizeof known, dl2_codec_at(i)->name);
    return dl2_error_set(error, DL2_ERR_ARGUMENT,
                         "'%.*s' is not a codec that this build can write: %s, or an external one: "
                         "NAME=ENCODE; DECODE%s",
                         length, name, known,
                         selection->external ? "; quote a comma that belongs to a command" : "");
}

static bool is_named(const struct dl2_codec *codec, const char *name, size_t length)
{
    return strlen(codec->name) == length && !strncmp(codec->name, name, length);
}

/* "jpeg", "jpeg:effort=1:subsampling=444", or an external one. */
static int select_codec(struct dl2_selection *selection, const char *text, struct dl2_error *error)
{
    const size_t length = strcspn(text, ":=");
    const struct dl2_codec *codec;
    if (selection->count == DL2_MAX_CODECS)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "more than %d", DL2_MAX_CODECS);
    if (text[length] == '=' && selection->external)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "'%s' is a second external codec, and one run takes one; quote a "
                             "comma that belongs to a command",
                             text);
    struct dl2_settings *item = &selection->items[selection->count++];
    if (text[length] == '=') {
        DL2_TRY(dl2_external_parse(text, selection->arguments->external.timeout,
                                   &selection->external, error));
        dl2_settings_init(item, dl2_external_codec(selection->external));
        return DL2_OK;
    }
    for (size_t i = 0; (codec = dl2_codec_at(i)); i++)
        if (dl2_codec_encodes(codec) && is_named(codec, text, length))
            break;
    if (!codec)
        return no_codec(selection, (int)length, text, error);
    dl2_settings_init(item, codec);
    return text[length] ? dl2_settings_parse(item, codec, text + length + 1, error) : DL2_OK;
}

/* A list. The commands of an external codec may have commas in quotes. */
static int select_codecs(struct dl2_selection *selection, struct dl2_error *error)
{
    for (const char *text = selection->arguments->codecs, *end;; text = end + 1) {
        const bool is_external = text[strcspn(text, ":=,")] == '=';
        end = is_external ? dl2_command_find(text, ',') : strchrnul(text, ',');
        if (end == text)
            return dl2_error_set(error, DL2_ERR_ARGUMENT, "--codec: an empty name before '%s'",
                                 end);
        DL2_AUTO_FREE char *item = strndup(text, (size_t)(end - text));
        const int status =
            item ? select_codec(selection, item, error) : dl2_error_memory(error, "options");
        if (status < 0)
            dl2_error_prefix(error, "--codec");
        DL2_TRY(status);
        if (!*end)
            return DL2_OK;
    }
}

/* The effort of a codec from its text; below -1: it is none. */
static int parse_effort(const struct dl2_codec *codec, const char *text)
{
    const size_t length = strlen(text);
    if (codec->usual_effort < 0 && !strcmp(text, "auto"))
        return -1;
    if (length < 1 || length > 2 || strspn(text, "0123456789") != length)
        return -2;
    return atoi(text) <= codec->max_effort ? atoi(text) : -2;
}

/* "6" if only one codec has a choice, or "webp=6"; for all of the codec that have none of their
 * own. */
static int set_effort(struct dl2_selection *selection, const char *text, int number,
                      struct dl2_error *error)
{
    const char *equals = strchr(text, '='), *value = equals ? equals + 1 : text;
    const struct dl2_codec *codec = NULL;
    size_t candidates = 0;
    bool any = false;
    (void)number;
    for (size_t i = 0; i < selection->count; i++) {
        const struct dl2_codec *own = selection->items[i].codec;
        if (own != codec &&
            (equals ? is_named(own, text, (size_t)(equals - text)) : own->max_effort >= 0)) {
            codec = own;
            candidates++;
        }
    }
    if (candidates == 0)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "--effort %s: that is for a codec that is not in use, or none that "
                             "is has a choice",
                             text);
    if (candidates > 1 && !equals)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "--effort %s: say for which codec, as in %s=%s", text, codec->name,
                             text);
    if (codec->max_effort < 0)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "--effort: %s has none", codec->name);
    const int effort = parse_effort(codec, value);
    if (effort < -1)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "--effort: %s takes %s0 to %d, not %s",
                             codec->name, codec->usual_effort < 0 ? "auto or " : "",
                             codec->max_effort, value);
    for (size_t i = 0; i < selection->count; i++) {
        struct dl2_settings *item = &selection->items[i];
        if (item->codec != codec || item->has_effort)
            continue;
        item->effort = effort;
        item->has_effort = any = true;
    }
    return any ? DL2_OK
               : dl2_error_set(error, DL2_ERR_ARGUMENT,
                               "--effort %s has no effect: --codec gives %s an effort everywhere",
                               text, codec->name);
}

/* What is given and usual is recorded as if it were not given, since it makes the same files. */
static void forget_usual(struct dl2_settings *item)
{
    if (item->effort == item->codec->usual_effort)
        item->effort = -1;
    if (item->subsampling && !strcmp(item->subsampling, dl2_subsampling_find(NULL)))
        item->subsampling = NULL;
}

/* Do both make the same files? */
static bool make_the_same(const struct dl2_settings *a, const struct dl2_settings *b)
{
    const char *restart = a->restart ? a->restart : "", *other = b->restart ? b->restart : "";
    return a->codec == b->codec && a->effort == b->effort && !strcmp(a->name, b->name) &&
           !strcmp(dl2_subsampling_find(a->subsampling), dl2_subsampling_find(b->subsampling)) &&
           !strcmp(restart, other) && !a->tables == !b->tables &&
           (!a->tables || !strcmp(a->tables->path, b->tables->path));
}

/* Drops what is there already: "jpeg,jpeg", "jpeg,jpeg:subsampling=420". */
static void drop_repeated(struct dl2_selection *selection)
{
    size_t kept = 0;
    for (size_t i = 0; i < selection->count; i++) {
        bool again = false;
        for (size_t k = 0; k < kept; k++)
            again = again || make_the_same(&selection->items[k], &selection->items[i]);
        if (again)
            dl2_jpeg_tables_free(selection->items[i].tables);
        else
            selection->items[kept++] = selection->items[i];
    }
    selection->count = kept;
}

/* Why the codecs that make videos of clips do not go with the other options, or NULL. */
static const char *find_video_conflict(const struct dl2_selection *selection)
{
    static const char *const idle[] = {"target", "never-larger", "restart", "input-size",
                                       "metadata"};
    static char conflict[160];
    const struct dl2_codec *video = NULL, *image = NULL;
    for (size_t c = 0; c < selection->count; c++)
        *(selection->items[c].codec->video ? &video : &image) = selection->items[c].codec;
    if (!video)
        return NULL;
    if (image) {
        snprintf(conflict, sizeof conflict,
                 "--codec: %s makes a video of each clip, %s an image of each frame; give them to "
                 "two runs, which may have one DEST",
                 video->name, image->name);
        return conflict;
    }
    for (size_t i = 0; i < sizeof idle / sizeof *idle; i++)
        if (given(selection, idle[i])) {
            snprintf(conflict, sizeof conflict, "--%s has no effect on videos, which %s makes",
                     idle[i], video->name);
            return conflict;
        }
    return NULL;
}

/* Gives the codecs what options say for all of them, and refuses options of no effect. */
static int complete_codecs(struct dl2_selection *selection, struct dl2_error *error)
{
    const struct dl2_transcode_arguments *arguments = selection->arguments;
    bool lossy = false, subsampled = false, restarted = false;
    const char *conflict = find_video_conflict(selection);
    for (size_t c = 0; !conflict && c < selection->count; c++) {
        struct dl2_settings *item = &selection->items[c];
        const struct dl2_encode_options own = {.settings = item->values};
        if (arguments->run.metadata == DL2_METADATA_KEEP && !item->codec->metadata_bytes)
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "--metadata keep: %s files hold no EXIF or XMP; give the codec a "
                                 "run of its own",
                                 item->codec->name);
        lossy = lossy || dl2_settings_use_quality(item->codec, &own);
        if (item->codec->has_subsampling && !item->subsampling) {
            subsampled = true;
            if (arguments->subsampling != DL2_ENCODERS_OWN)
                item->subsampling = dl2_subsamplings[arguments->subsampling];
        }
        if (item->codec->has_restart && !item->restart) {
            restarted = true;
            if (arguments->restart != DL2_ENCODERS_OWN)
                item->restart = dl2_restarts[arguments->restart];
        }
        forget_usual(item);
    }
    drop_repeated(selection);
    if (conflict)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s", conflict);
    if (!lossy && given(selection, "q"))
        conflict = "--q: every codec in use is lossless, or has a setting in its place";
    else if (!lossy && selection->goal_count)
        conflict = "--target: no codec in use has a quality to search";
    else if (selection->goal_count && selection->external &&
             dl2_external_codec(selection->external)->lossy)
        conflict = "--target: an external codec cannot be searched; give it --q in a run of its "
                   "own";
    else if (!subsampled && arguments->subsampling != DL2_ENCODERS_OWN)
        conflict = "--subsampling: none of the codecs in use has a choice, or --codec makes it "
                   "everywhere";
    else if (!restarted && arguments->restart != DL2_ENCODERS_OWN)
        conflict = "--restart: none of the codecs in use has restart intervals, or --codec sets "
                   "them everywhere";
    return conflict ? dl2_error_set(error, DL2_ERR_ARGUMENT, "%s", conflict) : DL2_OK;
}

/* ---- What is to be made */

/* The tables of a target's resolution. */
static int find_tables(const struct dl2_settings *item, struct dl2_transcode_target *target,
                       struct dl2_error *error)
{
    char resolution[DL2_RESOLUTION_NAME_SIZE];
    DL2_TRY(dl2_jpeg_tables_load(item->tables, error));
    dl2_resolution_name(&target->resolution, resolution);
    target->encode.tables = dl2_jpeg_tables_find(item->tables, resolution,
                                                 dl2_subsampling_find(item->subsampling), error);
    return target->encode.tables ? DL2_OK : DL2_ERR_ARGUMENT;
}

/* Adds the variants of a codec: at each resolution one for each goal or quality, if it has such. */
static int add_targets(struct dl2_selection *selection, const struct dl2_settings *item,
                       const unsigned *qualities, size_t quality_count, struct dl2_error *error)
{
    struct dl2_encode_options encode = DL2_ENCODE_DEFAULTS;
    encode.effort = item->effort;
    encode.subsampling = item->subsampling;
    encode.restart = item->restart;
    encode.settings = item->codec->settings ? item->values : NULL;
    if (selection->external && item->codec == dl2_external_codec(selection->external))
        encode.external = selection->external;
    const bool has_quality = dl2_settings_use_quality(item->codec, &encode);
    const bool searched = has_quality && selection->goal_count;
    const unsigned usual = item->codec->video ? (unsigned)item->codec->video->usual_crf : 0;
    if (usual && !given(selection, "q")) {
        qualities = &usual;
        quality_count = 1;
    }
    for (size_t i = 0; usual && i < quality_count; i++)
        if (qualities[i] > (unsigned)item->codec->video->max_crf)
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "--q %u: of %s it is the CRF, 1 to %d, lower is better",
                                 qualities[i], item->codec->name, item->codec->video->max_crf);
    const size_t own = searched ? selection->goal_count : has_quality ? quality_count : 1;
    for (size_t i = 0; i < selection->resolution_count * own; i++) {
        struct dl2_transcode_target *target = &selection->targets[selection->target_count++];
        encode.quality = searched ? 0 : (int)qualities[i % own];
        *target = (struct dl2_transcode_target){.codec = item->codec,
                                                .encode = encode,
                                                .name = item->name,
                                                .resolution = selection->resolutions[i / own]};
        if (searched)
            target->target = selection->goals[i % own];
        if (item->tables && selection->arguments->list != DL2_LIST_VARIANTS) /* else made later */
            DL2_TRY(find_tables(item, target, error));
    }
    return DL2_OK;
}

static int add_all_targets(struct dl2_selection *selection, struct dl2_error *error)
{
    DL2_AUTO_FREE unsigned *qualities = NULL;
    size_t count;
    if (dl2_parse_uint_list(selection->arguments->qualities, 1, 100, &qualities, &count, error) <
        0) {
        dl2_error_prefix(error, "--q");
        return DL2_ERR_ARGUMENT;
    }
    const size_t graded = count + selection->goal_count; /* at most, at one resolution */
    DL2_TRY(DL2_NEW(&selection->targets, selection->count * graded * selection->resolution_count,
                    "options", error));
    for (size_t c = 0; c < selection->count; c++)
        DL2_TRY(add_targets(selection, &selection->items[c], qualities, count, error));
    return DL2_OK;
}

/* An option of targets that none of those to be made heeds, or NULL. */
static const char *find_idle(const struct dl2_selection *selection)
{
    const struct dl2_transcode_arguments *arguments = selection->arguments;
    bool searched = false, scored = false, of_input = false;
    for (size_t t = 0; t < selection->target_count; t++) {
        const struct dl2_transcode_target *const made = &selection->targets[t];
        const struct dl2_quality_target *const target = &made->target;
        searched = searched || (target->name && !dl2_target_is_scanned(target, made->codec));
        scored = scored || target->metric;
        of_input = of_input || target->input_size;
    }
    const bool scanned = arguments->targets && !searched;
    if (!of_input && given(selection, "input-size"))
        return "--input-size has no effect but on --target input_psnr or "
               "input_ssim";
    if (scanned && given(selection, "probes"))
        return "--probes has no effect: all qualities are tried for a score of JPEG";
    if (scanned && arguments->each.rule == DL2_TARGET_AT_LEAST &&
        given(selection, "target-tolerance"))
        return "--target-tolerance has no effect: all qualities are tried for a score of JPEG";
    if (arguments->each.miss == DL2_MISS_COPY && !scored)
        return "--on-miss copy has no effect on targets of sizes";
    if (arguments->each.miss == DL2_MISS_COPY && !arguments->run.never_larger)
        return "--on-miss copy has no effect with --never-larger=no";
    return NULL;
}

/* Options that exclude one another are told before any work, by the codec's own words. */
static int try_target(const struct dl2_transcode_target *target, enum dl2_metadata_rule rule,
                      struct dl2_error *error)
{
    DL2_CLEANUP(dl2_image_free) struct dl2_image image = DL2_IMAGE_INIT;
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes out = DL2_BYTES_INIT;
    struct dl2_error own = DL2_ERROR_INIT;
    struct dl2_encode_options encode = target->encode;
    const struct dl2_metadata none = {0};
    if (rule == DL2_METADATA_KEEP)
        encode.metadata = &none;
    if (target->target.name)
        encode.quality = target->target.high;
    if (target->codec->video)
        return DL2_OK;
    DL2_TRY(dl2_image_reshape(&image, 1, 1, 3, error));
    memset(image.data, 0, image.stride);
    const int status = dl2_image_encode(target->codec, &image, &encode, &out, &own);
    return status == DL2_ERR_ARGUMENT ? dl2_error_copy(error, &own) : DL2_OK;
}

int dl2_select_targets(struct dl2_selection *selection, struct dl2_error *error)
{
    const char *efforts = selection->arguments->efforts;
    DL2_TRY(dl2_select_resolutions(selection, error));
    DL2_TRY(select_goals(selection, error));
    DL2_TRY(select_codecs(selection, error));
    if (efforts)
        DL2_TRY(select_list(selection, efforts, NULL, set_effort, 0, error));
    DL2_TRY(complete_codecs(selection, error));
    DL2_TRY(add_all_targets(selection, error));
    const char *idle = find_idle(selection);
    if (idle)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s", idle);
    for (size_t t = 0; t < selection->target_count; t++) {
        const struct dl2_transcode_target *target = &selection->targets[t];
        if (!target->encode.external && (!t || target->name != target[-1].name))
            DL2_TRY(try_target(target, selection->arguments->run.metadata, error));
    }
    return DL2_OK;
}

void dl2_selection_free(struct dl2_selection *selection)
{
    dl2_external_free(selection->external);
    for (size_t c = 0; c < selection->count; c++)
        dl2_jpeg_tables_free(selection->items[c].tables);
    free(selection->targets);
}
