/* SPDX-License-Identifier: BSD-2-Clause */
/* COCO's file is read twice: as the loader reads it, which finds the image of each entry and what
 * is wrong, and then as text, whose elements are written anew one by one. */
#include "transcode/annotations.h"

#include "annotations/annotations.h"
#include "common/file.h"
#include "common/json.h"
#include "common/quote.h"
#include "common/scope.h"
#include "pixels/resolution.h"
#include "transcode/variant/sidecar_files.h"
#include "transcode/variant/variant_state.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- The files */

/* Has a file the members of COCO's? Of one that is too large the user hears later. */
static bool looks_like_coco(const char *path)
{
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes text = DL2_BYTES_INIT;
    const int status = dl2_file_read(path, DL2_JSON_MAX_BYTES, &text, NULL);
    return status == DL2_ERR_LIMIT ||
           (status == DL2_OK && text.size && memmem(text.data, text.size, "\"images\"", 8) &&
            memmem(text.data, text.size, "\"annotations\"", 13));
}

/* LabelImg's list of classes, in any folder. */
static bool is_class_file(const char *path)
{
    return !strcmp(dl2_path_base(path), DL2_CLASSES_TXT);
}

static int list_files(struct dl2_source_items *source, struct dl2_error *error)
{
    const struct dl2_folder_keys keys = dl2_variant_keys(source);
    const bool in_shards = dl2_container_is_packed(dl2_dataset_container(source->dataset));
    DL2_CLEANUP(dl2_file_list_free) struct dl2_file_list files = {0};
    if (!in_shards && !source->ignored)
        return DL2_OK;
    DL2_TRY(dl2_list_files(source->root, &files, error));
    for (size_t i = 0; i < files.count; i++) {
        const char *path = files.paths[i], *extension = dl2_path_extension(path);
        DL2_AUTO_FREE char *whole = dl2_path_join(source->root, path);
        const bool xml = !strcmp(extension, "xml"), json = !strcmp(extension, "json");
        const bool names = !strcmp(path, DL2_DATA_YAML) || (!in_shards && is_class_file(path));
        if (!(xml || json || names) || dl2_sidecars_is_companion(&keys, path))
            continue; /* what lies beside an image is copied with it */
        source->unscaled += xml;
        if (names || (json && whole && looks_like_coco(whole)))
            DL2_TRY(dl2_list_append(&source->annotations, &source->annotation_count, strdup(path),
                                    error));
    }
    if (in_shards) /* whose reader counts no other files */
        source->ignored = source->annotation_count;
    return DL2_OK;
}

/* Where a folder of data.yaml lies in `root`: "images/train" is "train" in one that is called
 * images beside data.yaml, and "." in itself; NULL: outside. `root` has no links. */
static const char *find_below(const char *folder, const char *root, const char *yaml_folder)
{
    const size_t length = strlen(yaml_folder);
    if (strncmp(root, yaml_folder, length) != 0 || root[length] != '/')
        return NULL;
    const char *below = root + length + 1;
    const size_t size = strlen(below);
    if (strncmp(folder, below, size) != 0)
        return NULL;
    return !folder[size] ? "." : folder[size] == '/' ? folder + size + 1 : NULL;
}

/* Prints splits, as far as they lie in `root`, as data.yaml has them: each on a line of its own. */
static int print_splits(const struct dl2_class_names *names, const char *root, FILE *out,
                        struct dl2_error *error)
{
    if (!names->yaml_path)
        return DL2_OK;
    DL2_AUTO_FREE char *folder = dl2_folder_of(names->yaml_path);
    DL2_AUTO_FREE char *yaml_root = folder ? realpath(folder, NULL) : NULL;
    DL2_AUTO_FREE char *real = realpath(root, NULL);
    if (!yaml_root || !real)
        return dl2_error_system(error, "%s: can't be read", names->yaml_path);
    const char *before = "";
    for (size_t i = 0; i < names->yaml.folder_count; i++) {
        const struct dl2_split_folder *split = &names->yaml.folders[i];
        const char *below = find_below(split->path, real, yaml_root);
        json_auto_t *text = below ? json_string(below) : NULL;
        DL2_AUTO_FREE char *quoted = text ? json_dumps(text, JSON_ENCODE_ANY) : NULL;
        if (!quoted)
            continue;
        if (strcmp(before, split->split) != 0)
            fprintf(out, "%s:\n", split->split);
        fprintf(out, "  - %s\n", quoted);
        before = split->split;
    }
    return DL2_OK;
}

/* Sets *text to the data.yaml that variants get where SOURCE has none of its own. */
static int print_names(const struct dl2_class_names *names, const char *root, char **text,
                       struct dl2_error *error)
{
    size_t size;
    FILE *out = open_memstream(text, &size);
    if (!out)
        return dl2_error_memory(error, "annotations");
    const int status = print_splits(names, root, out, error);
    fputs("names:\n", out);
    for (size_t i = 0; i < names->yaml.class_count; i++) {
        json_auto_t *name = dl2_json_text(names->yaml.classes[i].name);
        DL2_AUTO_FREE char *quoted = name ? json_dumps(name, JSON_ENCODE_ANY) : NULL;
        if (quoted)
            fprintf(out, "  %" PRId64 ": %s\n", names->yaml.classes[i].label, quoted);
    }
    return fclose(out) == 0 ? status : dl2_error_memory(error, "annotations");
}

/* Has SOURCE files that name classes, and do variants get one of these as it is? */
static bool find_name_files(const struct dl2_source_items *source, bool packed, bool *kept)
{
    bool any = source->label_folders;
    *kept = false;
    for (size_t i = 0; i < source->annotation_count; i++) {
        const bool yaml = !strcmp(source->annotations[i], DL2_DATA_YAML);
        *kept |= yaml || (is_class_file(source->annotations[i]) && !packed);
        any |= yaml || is_class_file(source->annotations[i]);
    }
    return any;
}

int dl2_annotations_list(struct dl2_source_items *source, const char *root, bool packed,
                         struct dl2_progress *progress, struct dl2_error *error)
{
    struct dl2_error own = DL2_ERROR_INIT;
    struct dl2_class_names names;
    bool kept;
    source->root = root;
    DL2_TRY(list_files(source, error));
    if (!find_name_files(source, packed, &kept) || kept)
        return DL2_OK;
    if (dl2_class_names_find(source->dataset, &names, &own) < 0) {
        dl2_progress_message(progress, "%s; variants get no names of classes", own.message);
        return DL2_OK;
    }
    const int status = names.path ? print_names(&names, root, &source->class_names, error) : DL2_OK;
    dl2_class_names_free(&names);
    return status;
}

char *dl2_annotations_message(const struct dl2_source_items *source, bool on_server)
{
    char *text = NULL;
    if (source->annotation_count && on_server)
        dl2_format(&text, NULL,
                   "variants on a server get no files of annotations, such as %s; dl2's loader "
                   "takes the source's and scales the boxes, other programs need those of a "
                   "variant on this machine",
                   source->annotations[0]);
    else if (source->unscaled)
        dl2_format(&text, NULL,
                   "%zu .xml files are left out: their coordinates, as of Pascal VOC's boxes, are "
                   "those of the source's images; convert them to COCO's JSON, which is scaled",
                   source->unscaled);
    return text;
}

/* ---- Where an image of COCO's file is in the variant */

struct placed {
    uint32_t width, height;         /* as the file has them, or the source */
    uint32_t new_width, new_height; /* in the variant; 0: it lacks the image */
};

struct rewriting {
    const struct dl2_variant *variant;
    const struct dl2_coco *coco;
    struct placed *images; /* [items], by their samples' numbers */
    FILE *out;
    bool first;                           /* element of an array */
    struct dl2_bytes runs, resized, text; /* of run lengths */
    size_t kept_images, kept_objects, lost_images, lost_objects;
};

/* Lists the images of the file that the variant has. */
static int place_images(struct rewriting *rewriting, struct dl2_error *error)
{
    const struct dl2_variant *variant = rewriting->variant;
    const struct dl2_source_items *items = variant->items;
    DL2_TRY(DL2_NEW(&rewriting->images, items->count, "annotations", error));
    for (size_t i = 0; i < items->count; i++) {
        const struct dl2_record *record = &variant->records[i];
        const size_t sample = items->items[i].sample;
        struct dl2_annotated_image image;
        if (record->state != DL2_RECORD_VALID || !dl2_coco_image(rewriting->coco, sample, &image))
            continue;
        const struct placed placed = {image.width ? image.width : record->source_width,
                                      image.width ? image.height : record->source_height,
                                      record->width, record->height};
        if (dl2_is_resized(placed.new_width, placed.new_height, placed.width, placed.height))
            rewriting->images[sample] = placed;
    }
    return DL2_OK;
}

static const struct placed *find_placed(const struct rewriting *rewriting, const json_t *id)
{
    size_t sample;
    return dl2_coco_find(rewriting->coco, id, &sample) && rewriting->images[sample].new_width
               ? &rewriting->images[sample]
               : NULL;
}

/* ---- Shapes */

/* A number's multiple, to a thousandth of a pixel; NULL of what is no number. */
static json_t *scaled(const json_t *number, double scale)
{
    return json_is_number(number)
               ? json_real(round(json_number_value(number) * scale * 1000) / 1000)
               : NULL;
}

/* x, y and perhaps more, again and again: `step` numbers each. What is no number stays. */
static void scale_points(json_t *array, size_t step, double across, double down)
{
    for (size_t i = 0; i < json_array_size(array); i++)
        if (i % step < 2)
            json_array_set_new(array, i,
                               scaled(json_array_get(array, i), i % step ? down : across));
}

/* Where the middle of a pixel of the smaller image lies in the larger one. */
static uint32_t nearest(uint32_t at, uint32_t new_side, uint32_t side)
{
    const uint32_t found = (uint32_t)(((uint64_t)at * 2 + 1) * side / ((uint64_t)new_side * 2));
    return found < side ? found : side - 1;
}

/* Makes rewriting->resized of rewriting->runs, by the nearest pixels. */
static int resize_runs(struct rewriting *rewriting, const struct placed *image,
                       struct dl2_error *error)
{
    const uint32_t *runs = (const uint32_t *)(void *)rewriting->runs.data;
    size_t run = 0;         /* that the pixel is in */
    uint64_t end = runs[0]; /* of that run */
    size_t made = 0;
    uint32_t length = 0;
    rewriting->resized.size = 0;
    for (uint32_t x = 0; x < image->new_width; x++) {
        const uint64_t column =
            (uint64_t)nearest(x, image->new_width, image->width) * image->height;
        for (uint32_t y = 0; y < image->new_height; y++) {
            const uint64_t pixel = column + nearest(y, image->new_height, image->height);
            while (pixel >= end)
                end += runs[++run];
            while (pixel < end - runs[run]) /* a column that comes again */
                end -= runs[run--];
            if (run % 2 != made % 2) {
                DL2_TRY(dl2_bytes_append(&rewriting->resized, &length, sizeof length, error));
                length = 0;
                made++;
            }
            length++;
        }
    }
    return dl2_bytes_append(&rewriting->resized, &length, sizeof length, error);
}

/* COCO's compressed text of rewriting->resized: dl2_coco_read_runs() reads it. */
static int print_runs(struct rewriting *rewriting, struct dl2_error *error)
{
    const uint32_t *runs = (const uint32_t *)(void *)rewriting->resized.data;
    rewriting->text.size = 0;
    for (size_t i = 0; i < rewriting->resized.size / sizeof *runs; i++) {
        int64_t rest = (int64_t)runs[i] - (i > 2 ? (int64_t)runs[i - 2] : 0);
        bool more = true;
        while (more) {
            char group = (char)(rest & 31);
            rest >>= 5;
            more = group & 16 ? rest != -1 : rest != 0;
            group = (char)((group | (more ? 32 : 0)) + '0');
            DL2_TRY(dl2_bytes_append(&rewriting->text, &group, 1, error));
        }
    }
    return DL2_OK;
}

/* 1, or 0 where the run lengths are broken. */
static int scale_runs(struct rewriting *rewriting, json_t *shape, const struct placed *image,
                      struct dl2_error *error)
{
    json_t *size = json_object_get(shape, "size"), *counts = json_object_get(shape, "counts");
    const uint32_t *runs;
    if (json_integer_value(json_array_get(size, 0)) != image->height ||
        json_integer_value(json_array_get(size, 1)) != image->width)
        return 0;
    rewriting->runs.size = 0;
    const int read =
        dl2_coco_read_runs(counts, (uint64_t)image->width * image->height, &rewriting->runs, error);
    if (read <= 0)
        return read;
    DL2_TRY(resize_runs(rewriting, image, error));
    json_array_set_new(size, 0, json_integer(image->new_height));
    json_array_set_new(size, 1, json_integer(image->new_width));
    if (json_is_string(counts)) {
        DL2_TRY(print_runs(rewriting, error));
        json_object_set_new(shape, "counts",
                            json_stringn((const char *)rewriting->text.data, rewriting->text.size));
        return 1;
    }
    runs = (const uint32_t *)(void *)rewriting->resized.data;
    json_array_clear(counts);
    for (size_t i = 0; i < rewriting->resized.size / sizeof *runs; i++)
        json_array_append_new(counts, json_integer(runs[i]));
    return 1;
}

/* 1, or 0 where a shape is broken. */
static int scale_object(struct rewriting *rewriting, json_t *object, const struct placed *image,
                        struct dl2_error *error)
{
    const double across = (double)image->new_width / image->width;
    const double down = (double)image->new_height / image->height;
    json_t *shape = json_object_get(object, "segmentation"), *polygon;
    size_t i;
    scale_points(json_object_get(object, "bbox"), 2, across, down);
    scale_points(json_object_get(object, "keypoints"), 3, across, down);
    json_object_set_new(object, "area", scaled(json_object_get(object, "area"), across * down));
    if (json_is_object(shape))
        return scale_runs(rewriting, shape, image, error);
    json_array_foreach(shape, i, polygon) scale_points(polygon, 2, across, down);
    return 1;
}

/* ---- Elements */

/* Part of the file's text, and what it says; NULL: that is no JSON. */
struct element {
    const char *text;
    size_t size;
    json_t *json;
};

/* Begins an element of an array. */
static void separate(struct rewriting *rewriting)
{
    fputs(rewriting->first ? "\n" : ",\n", rewriting->out);
    rewriting->first = false;
}

/* Numbers keep the digits that they have in the file: few have more than 15. */
static int put_json(struct rewriting *rewriting, const json_t *json, struct dl2_error *error)
{
    separate(rewriting);
    return json_dumpf(json, rewriting->out, JSON_COMPACT | JSON_REAL_PRECISION(15)) == 0 ||
                   ferror(rewriting->out)
               ? DL2_OK
               : dl2_error_memory(error, "annotations");
}

/* Is a file_name an end of the image's key, so that it finds the image in the variant, too? One of
 * folders above SOURCE, or of a shard's member with several dots, is not. */
static bool has_key(const char *name, const char *key)
{
    while (!strncmp(name, "./", 2))
        name += 2;
    const size_t stem = dl2_path_stem_length(name), length = strlen(key);
    return *name == '/' || (stem <= length && !memcmp(key + length - stem, name, stem) &&
                            (stem == length || key[length - stem - 1] == '/'));
}

static int put_image(struct rewriting *rewriting, const struct element *element,
                     struct dl2_error *error)
{
    const struct placed *image = find_placed(rewriting, json_object_get(element->json, "id"));
    const char *name = json_string_value(json_object_get(element->json, "file_name"));
    DL2_AUTO_FREE char *new_name = NULL;
    if (!image || !name) {
        rewriting->lost_images++;
        return DL2_OK;
    }
    rewriting->kept_images++;
    struct dl2_sample sample;
    dl2_dataset_sample(rewriting->variant->items->dataset, (size_t)(image - rewriting->images),
                       &sample);
    const bool same = has_key(name, sample.key);
    DL2_TRY(dl2_format(&new_name, error, "%.*s.%s",
                       (int)(same ? dl2_path_stem_length(name) : strlen(sample.key)),
                       same ? name : sample.key, rewriting->variant->extension));
    json_object_set_new(element->json, "file_name", json_string(new_name));
    if (json_object_get(element->json, "width")) {
        json_object_set_new(element->json, "width", json_integer(image->new_width));
        json_object_set_new(element->json, "height", json_integer(image->new_height));
    }
    return put_json(rewriting, element->json, error);
}

static int put_object(struct rewriting *rewriting, const struct element *element,
                      struct dl2_error *error)
{
    const struct placed *image = find_placed(rewriting, json_object_get(element->json, "image_id"));
    const bool same =
        image && image->width == image->new_width && image->height == image->new_height;
    const int fits = same ? 1 : image ? scale_object(rewriting, element->json, image, error) : 0;
    DL2_TRY(fits);
    rewriting->kept_objects += (size_t)fits;
    rewriting->lost_objects += !fits;
    if (!same)
        return fits ? put_json(rewriting, element->json, error) : DL2_OK;
    separate(rewriting);
    fwrite(element->text, 1, element->size, rewriting->out);
    return DL2_OK;
}

/* ---- The file as text */

struct scan {
    const char *at, *end;
};

/* The next byte that is no blank, and 0 at the end. */
static char next_mark(struct scan *scan)
{
    while (scan->at < scan->end && strchr(" \t\r\n", *scan->at) && *scan->at)
        scan->at++;
    return scan->at < scan->end ? *scan->at : '\0';
}

/* Goes behind a value, by its brackets and strings. */
static struct element take_value(struct scan *scan)
{
    next_mark(scan);
    struct element element = {.text = scan->at};
    size_t depth = 0;
    for (bool in_string = false; scan->at < scan->end; scan->at++) {
        const char byte = *scan->at;
        if (in_string) {
            scan->at += byte == '\\' && scan->at + 1 < scan->end;
            in_string = byte != '"';
            continue;
        }
        if (!depth && (byte == ',' || byte == ']' || byte == '}' || byte == ':'))
            break;
        in_string = byte == '"';
        depth += byte == '[' || byte == '{';
        depth -= byte == ']' || byte == '}';
    }
    element.size = (size_t)(scan->at - element.text);
    return element;
}

typedef int put_element(struct rewriting *rewriting, const struct element *element,
                        struct dl2_error *error);

static int rewrite_elements(struct rewriting *rewriting, const struct element *array,
                            put_element *put, struct dl2_error *error)
{
    struct scan scan = {array->text + 1, array->text + array->size};
    fputc('[', rewriting->out);
    rewriting->first = true;
    while (next_mark(&scan) && *scan.at != ']') {
        struct element element = take_value(&scan);
        json_auto_t *json = element.json = dl2_json_parse(element.text, element.size, 0, NULL);
        DL2_TRY(put(rewriting, &element, error));
        scan.at += next_mark(&scan) == ',';
    }
    fputs("]", rewriting->out);
    return DL2_OK;
}

/* Begins a file that is ours, and its member that says so. */
#define OURS   "{\"dl2_variant\":"
#define MEMBER "\"dl2_variant\""

static bool is_called(const struct element *key, const char *name)
{
    return key->size >= strlen(name) && !memcmp(key->text, name, strlen(name));
}

static int rewrite_text(struct rewriting *rewriting, const struct dl2_bytes *text,
                        struct dl2_error *error)
{
    const char *start = memchr(text->data, '{', text->size);
    struct scan scan = {start + 1, (const char *)text->data + text->size};
    fprintf(rewriting->out, OURS " \"%s\"", rewriting->variant->name);
    while (next_mark(&scan) == '"') {
        const struct element key = take_value(&scan);
        next_mark(&scan);
        scan.at++;
        const struct element value = take_value(&scan);
        put_element *put = is_called(&key, "\"images\"")        ? put_image
                           : is_called(&key, "\"annotations\"") ? put_object
                                                                : NULL;
        scan.at += next_mark(&scan) == ',';
        if (is_called(&key, MEMBER)) /* the source is a variant */
            continue;
        fprintf(rewriting->out, ",\n%.*s: ", (int)key.size, key.text);
        if (put)
            DL2_TRY(rewrite_elements(rewriting, &value, put, error));
        else
            fwrite(value.text, 1, value.size, rewriting->out);
    }
    fputs("}\n", rewriting->out);
    return DL2_OK;
}

/* ---- A variant */

static void tell(const struct rewriting *rewriting, const char *path, struct dl2_progress *progress)
{
    char lost[256] = "";
    if (rewriting->lost_images || rewriting->lost_objects)
        snprintf(lost, sizeof lost,
                 "; left out: %zu images that the variant lacks or that have another aspect than "
                 "their files, and %zu objects of these or with broken shapes",
                 rewriting->lost_images, rewriting->lost_objects);
    dl2_progress_message(progress, "%s: %zu images and %zu objects, at the variant's sizes%s", path,
                         rewriting->kept_images, rewriting->kept_objects, lost);
}

/* As dl2_file_write() does. The file's time becomes that of the source's, by which a further run
 * knows it. */
static int write_coco(struct rewriting *rewriting, const struct dl2_bytes *text, const char *path,
                      const struct stat *info, struct dl2_error *error)
{
    const struct timespec times[] = {info->st_mtim, info->st_mtim};
    DL2_AUTO_FREE char *temporary = NULL;
    DL2_TRY(dl2_make_folder_of(path, error));
    DL2_TRY(dl2_format(&temporary, error, "%.*s.%s" DL2_TEMPORARY_SUFFIX,
                       (int)(dl2_path_base(path) - path), path, dl2_path_base(path)));
    if (!(rewriting->out = fopen(temporary, "we")))
        return dl2_error_system(error, "%s: can't be written", path);
    const int status = rewrite_text(rewriting, text, error);
    const bool whole = !ferror(rewriting->out);
    if (fclose(rewriting->out) == 0 && whole && status == DL2_OK &&
        utimensat(AT_FDCWD, temporary, times, 0) == 0 && rename(temporary, path) == 0)
        return DL2_OK;
    return status < 0 ? status : dl2_error_system(error, "%s: can't be written", path);
}

/* Is it there from a run that completed the variant, and has nothing changed since? */
static bool is_written(const struct dl2_variant *variant, const char *path, const struct stat *info)
{
    struct stat there;
    return !variant->begun && json_is_true(json_object_get(variant->old, "complete")) &&
           stat(path, &there) == 0 && dl2_mtime_ns(&there) == dl2_mtime_ns(info);
}

/* A file of the source and what the loader finds in it, opened once a variant needs it. */
struct coco_file {
    const char *name;
    char *path;
    struct stat info;
    struct dl2_coco *coco;
    struct dl2_bytes text;
};

static int open_coco(struct coco_file *file, const struct dl2_dataset *dataset,
                     struct dl2_error *error)
{
    if (file->coco)
        return DL2_OK;
    DL2_TRY(dl2_file_read(file->path, DL2_JSON_MAX_BYTES, &file->text, error));
    return dl2_coco_open(file->path, dataset, false, &file->coco, error);
}

static int scale_coco(const struct coco_file *file, const struct dl2_variant *variant,
                      const char *path, struct dl2_progress *progress, struct dl2_error *error)
{
    struct rewriting rewriting = {.variant = variant, .coco = file->coco};
    int status = place_images(&rewriting, error);
    if (status == DL2_OK)
        status = write_coco(&rewriting, &file->text, path, &file->info, error);
    if (status == DL2_OK)
        tell(&rewriting, path, progress);
    free(rewriting.images);
    dl2_bytes_free(&rewriting.runs);
    dl2_bytes_free(&rewriting.resized);
    dl2_bytes_free(&rewriting.text);
    return status;
}

static void tell_foreign(const char *path, struct dl2_progress *progress)
{
    dl2_progress_message(progress,
                         "%s: dl2-transcode has not written it, and leaves it as it is; move it to "
                         "get the source's annotations",
                         path);
}

/* Is a file there that dl2-transcode has not written, since it does not begin so? Says so. */
static bool is_foreign(const char *path, const char *ours, struct dl2_progress *progress)
{
    char start[32] = "";
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    if (!fgets(start, (int)strlen(ours) + 1, file))
        start[0] = '\0';
    fclose(file);
    if (!strcmp(start, ours))
        return false;
    tell_foreign(path, progress);
    return true;
}

static int scale_coco_for_all(struct coco_file *file, const struct dl2_variant *variants,
                              size_t count, struct dl2_progress *progress, struct dl2_error *error)
{
    struct dl2_error own = DL2_ERROR_INIT;
    if (stat(file->path, &file->info) != 0)
        return DL2_OK;
    for (size_t v = 0; v < count; v++) {
        DL2_AUTO_FREE char *path = dl2_path_join(variants[v].root, file->name);
        if (!path)
            return dl2_error_memory(error, "annotations");
        if (variants[v].on_server || is_written(&variants[v], path, &file->info))
            continue;
        if (open_coco(file, variants[v].items->dataset, &own) < 0) {
            dl2_progress_message(progress, "%s; variants get no such file", own.message);
            return DL2_OK;
        }
        if (!is_foreign(path, OURS, progress))
            DL2_TRY(scale_coco(file, &variants[v], path, progress, error));
    }
    return DL2_OK;
}

/* ---- data.yaml */

/* Begins a data.yaml that is ours. */
#define OUR_YAML "# dl2-transcode: "

/* Why a variant's file would lead to the source's images, or NULL. */
static const char *find_way_out(const struct dl2_data_yaml *yaml)
{
    for (size_t i = 0; i < yaml->folder_count; i++)
        if (*yaml->folders[i].path == '/')
            return yaml->folders[i].split;
    return yaml->is_path_within ? "path" : NULL;
}

/* Writes the file without the line of `path`, which leads to the source's images: without it splits
 * are those of the file's own folder. */
static int write_yaml(const struct dl2_bytes *text, size_t path_line, const char *name,
                      const char *path, struct dl2_error *error)
{
    char *out = NULL;
    size_t size;
    FILE *file = open_memstream(&out, &size);
    const char *line = (const char *)text->data, *end = line + text->size;
    if (!file)
        return dl2_error_memory(error, "annotations");
    fprintf(file, OUR_YAML "%s\n", name);
    for (size_t number = 1; line < end; number++) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        const char *next = stop ? stop + 1 : end;
        if (number != path_line)
            fwrite(line, 1, (size_t)(next - line), file);
        line = next;
    }
    int status = fclose(file) == 0 ? DL2_OK : dl2_error_memory(error, "annotations");
    if (status == DL2_OK && !dl2_file_has(path, out, size))
        status = dl2_file_write(path, out, size, error);
    free(out);
    return status;
}

static int write_yaml_for_all(struct coco_file *file, const struct dl2_variant *variants,
                              size_t count, struct dl2_progress *progress, struct dl2_error *error)
{
    struct dl2_error own = DL2_ERROR_INIT;
    struct dl2_data_yaml yaml;
    if (dl2_data_yaml_read(file->path, &yaml, &own) < 0) {
        dl2_progress_message(progress, "%s; variants get no such file", own.message);
        return DL2_OK;
    }
    const char *way_out = find_way_out(&yaml);
    const size_t path_line = yaml.path_line;
    if (way_out)
        dl2_progress_message(progress,
                             "%s: its %s %s, which leads to the source's images; variants get no "
                             "such file",
                             file->path, way_out,
                             strcmp(way_out, "path") ? "is an absolute path"
                                                     : "is no line of its own");
    dl2_data_yaml_free(&yaml);
    if (way_out)
        return DL2_OK;
    DL2_TRY(dl2_file_read(file->path, DL2_JSON_MAX_BYTES, &file->text, error));
    for (size_t v = 0; v < count; v++) {
        DL2_AUTO_FREE char *path = dl2_path_join(variants[v].root, file->name);
        if (!path)
            return dl2_error_memory(error, "annotations");
        if (!variants[v].on_server && !is_foreign(path, OUR_YAML, progress))
            DL2_TRY(write_yaml(&file->text, path_line, variants[v].name, path, error));
    }
    return DL2_OK;
}

/* ---- Names of classes */

/* data.yaml of what names classes elsewhere. */
static int write_names_for_all(const struct dl2_source_items *source,
                               const struct dl2_variant *variants, size_t count,
                               struct dl2_progress *progress, struct dl2_error *error)
{
    struct dl2_bytes text = {.data = (uint8_t *)source->class_names};
    text.size = text.data ? strlen(source->class_names) : 0;
    for (size_t v = 0; text.size && v < count; v++) {
        DL2_AUTO_FREE char *path = dl2_path_join(variants[v].root, DL2_DATA_YAML);
        if (!path)
            return dl2_error_memory(error, "annotations");
        if (!variants[v].on_server && !is_foreign(path, OUR_YAML, progress))
            DL2_TRY(write_yaml(&text, 0, variants[v].name, path, error));
    }
    return DL2_OK;
}

/* Did an earlier run write a classes.txt, as its dl2-variant.json says? The file has no room for a
 * mark. */
static bool has_written(const struct dl2_variant *variant, const char *name)
{
    const json_t *list = json_object_get(variant->old, "class_files"), *item;
    bool found = false;
    size_t i;
    json_array_foreach(list, i, item) found |=
        json_is_string(item) && !strcmp(json_string_value(item), name);
    return found;
}

/* Writes it as it is; a packed variant has the names in data.yaml. */
static int write_classes(struct coco_file *file, struct dl2_variant *variant,
                         struct dl2_progress *progress, struct dl2_error *error)
{
    DL2_AUTO_FREE char *path = dl2_path_join(variant->root, file->name);
    if (!path)
        return dl2_error_memory(error, "annotations");
    if (dl2_is_file(path) && !dl2_file_has(path, file->text.data, file->text.size) &&
        !has_written(variant, file->name)) {
        tell_foreign(path, progress);
        return DL2_OK;
    }
    if (!dl2_file_has(path, file->text.data, file->text.size)) {
        DL2_TRY(dl2_make_folder_of(path, error));
        DL2_TRY(dl2_file_write(path, file->text.data, file->text.size, error));
    }
    if (!variant->class_files)
        variant->class_files = json_array();
    return json_array_append_new(variant->class_files, dl2_json_text(file->name)) == 0
               ? DL2_OK
               : dl2_error_memory(error, "annotations");
}

static int write_classes_for_all(struct coco_file *file, struct dl2_variant *variants, size_t count,
                                 struct dl2_progress *progress, struct dl2_error *error)
{
    struct dl2_error own = DL2_ERROR_INIT;
    if (dl2_file_read(file->path, DL2_JSON_MAX_BYTES, &file->text, &own) < 0) {
        dl2_progress_message(progress, "%s; variants get no such file", own.message);
        return DL2_OK;
    }
    for (size_t v = 0; v < count; v++)
        if (!variants[v].on_server && !variants[v].packed)
            DL2_TRY(write_classes(file, &variants[v], progress, error));
    return DL2_OK;
}

int dl2_annotations_write(const struct dl2_source_items *source, struct dl2_variant *variants,
                          size_t count, struct dl2_progress *progress, struct dl2_error *error)
{
    int status = write_names_for_all(source, variants, count, progress, error);
    for (size_t i = 0; i < source->annotation_count && status == DL2_OK; i++) {
        struct coco_file file = {.name = source->annotations[i]};
        file.path = dl2_path_join(source->root, file.name);
        if (!file.path)
            return dl2_error_memory(error, "annotations");
        status = !strcmp(file.name, DL2_DATA_YAML)
                     ? write_yaml_for_all(&file, variants, count, progress, error)
                 : is_class_file(file.name)
                     ? write_classes_for_all(&file, variants, count, progress, error)
                     : scale_coco_for_all(&file, variants, count, progress, error);
        dl2_coco_close(file.coco);
        dl2_bytes_free(&file.text);
        free(file.path);
    }
    return status;
}
