#include "dataset/source.h"

#include "common/file.h"
#include "common/json.h"
#include "dataset/index.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The first whose probe() says yes is asked; a folder of anything comes last. */
static const struct dl2_source *const sources[] = {
    &dl2_source_idx,
    &dl2_source_packed,
    &dl2_source_folder,
};

#define SOURCE_COUNT (sizeof sources / sizeof sources[0])

static const struct dl2_source *find_source(const char *path)
{
    for (size_t i = 0; i < SOURCE_COUNT; i++)
        if (sources[i]->probe(path))
            return sources[i];
    return NULL;
}

static int unknown_path(const char *path, struct dl2_error *error)
{
    struct stat status;
    if (stat(path, &status) < 0)
        return dl2_error_system(error, "%s", path);
    int result = dl2_error_set(error, DL2_ERR_FORMAT, "%s: no dataset; looked for", path);
    for (size_t i = 0; error && i < SOURCE_COUNT; i++) {
        strncat(error->message, i ? ", " : " ", sizeof error->message - strlen(error->message) - 1);
        strncat(error->message, sources[i]->looks_for,
                sizeof error->message - strlen(error->message) - 1);
    }
    return result;
}

static int no_samples(const struct dl2_dataset *dataset, const char *path, enum dl2_split split,
                      struct dl2_error *error)
{
    static const char *const whats[] = {
        [DL2_SPLIT_ALL] = "samples",
        [DL2_SPLIT_TRAIN] = "samples for training",
        [DL2_SPLIT_VAL] = "samples for validation",
        [DL2_SPLIT_TEST] = "samples for testing",
    };
    size_t there = 0;
    for (int p = 0; p < DL2_PARTS; p++)
        there += dataset->part_counts[p];
    if (!there)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s: no %s; looked for %s", path, whats[split],
                             dataset->source->looks_for);
    return dl2_error_set(error, DL2_ERR_FORMAT,
                         "%s: no %s, but %s; name another split or another folder", path,
                         whats[split], dl2_dataset_layout(dataset));
}

/* ---- Splits, and what people are told of them */

void dl2_dataset_note(struct dl2_dataset *dataset, enum dl2_part part, int label, const char *name)
{
    if (!dataset->part_counts[part]++)
        dataset->part_folders[part] = name;
    dataset->unlabelled[part] += label < 0;
}

/* A folder of images in a split's folder is of that split; one with classes is a dataset. */
static bool is_own_part(const struct dl2_dataset *dataset)
{
    return !dataset->has_parts && dataset->own_part &&
           (dataset->own_depth == 0 || !dataset->class_count);
}

int dl2_dataset_assign_parts(struct dl2_dataset *dataset, const struct dl2_dataset_options *options,
                             const char *const *keys, const int *labels, size_t count,
                             uint8_t *parts, struct dl2_error *error)
{
    if (is_own_part(dataset)) {
        memset(parts, dataset->own_part, count);
        return DL2_OK;
    }
    dataset->by_rule = true;
    return dl2_split_by_rule(options, keys, labels, count, parts, error);
}

bool dl2_dataset_wants(const struct dl2_dataset *dataset, enum dl2_split split, enum dl2_part part,
                       int label)
{
    if (split == DL2_SPLIT_ALL)
        return true;
    const bool named = split == DL2_SPLIT_VAL && part == DL2_PART_TEST && is_own_part(dataset);
    return ((int)part == (int)split || named) && (label >= 0 || !dataset->class_count);
}

/* "9,025" */
static const char *grouped(size_t number, char text[32])
{
    char digits[24];
    const int length = snprintf(digits, sizeof digits, "%zu", number);
    char *out = text;
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            *out++ = ',';
        *out++ = digits[i];
    }
    *out = '\0';
    return text;
}

DL2_PRINTF(2, 3) static int append(struct dl2_bytes *out, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return dl2_bytes_append(out, text, strlen(text), NULL);
}

/* "9,025 images in 10 classes" */
static int append_images(const struct dl2_dataset *dataset, size_t count, struct dl2_bytes *out)
{
    char images[32], classes[32];
    DL2_TRY(append(out, "%s image%s", grouped(count, images), count == 1 ? "" : "s"));
    return dataset->class_count
               ? append(out, " in %s class%s", grouped(dataset->class_count, classes),
                        dataset->class_count == 1 ? "" : "es")
               : DL2_OK;
}

/* "train 9,025 images in 10 classes, val 3,929 (valid/)" */
static int append_parts(const struct dl2_dataset *dataset, struct dl2_bytes *out)
{
    bool first = true;
    for (int p = DL2_PART_TRAIN; p < DL2_PARTS; p++) {
        const size_t count = dataset->part_counts[p];
        char number[32];
        if (!count)
            continue;
        const char *name = dl2_part_name(p), *folder = dataset->part_folders[p];
        const int length = (int)strcspn(folder, "/");
        DL2_TRY(append(out, "%s%s ", first ? "" : ", ", name));
        DL2_TRY(first ? append_images(dataset, count, out)
                      : append(out, "%s", grouped(count, number)));
        if (strncmp(folder, name, (size_t)length) != 0 || name[length])
            DL2_TRY(append(out, " (%.*s/)", length, folder));
        first = false;
    }
    char number[32];
    return dataset->part_counts[DL2_PART_NONE]
               ? append(out, "; %s elsewhere", grouped(dataset->part_counts[DL2_PART_NONE], number))
               : DL2_OK;
}

static int append_layout(const struct dl2_dataset *dataset,
                         const struct dl2_dataset_options *options, struct dl2_bytes *out)
{
    size_t all = 0;
    char train[32], val[32];
    for (int p = 0; p < DL2_PARTS; p++)
        all += dataset->part_counts[p];
    if (dataset->has_parts)
        return append_parts(dataset, out);
    DL2_TRY(append_images(dataset, all, out));
    if (is_own_part(dataset))
        return append(out, ", all of them in the %s split", dl2_part_name(dataset->own_part));
    if (!dataset->by_rule)
        return DL2_OK;
    return append(out,
                  ", without folders for splits: %s for training and %s for validation, chosen by "
                  "a hash of their names (fraction %g, seed %llu)",
                  grouped(dataset->part_counts[DL2_PART_TRAIN], train),
                  grouped(dataset->part_counts[DL2_PART_VAL], val), options->val_fraction,
                  (unsigned long long)options->split_seed);
}

DL2_PRINTF(2, 3) static int warn(struct dl2_dataset *dataset, const char *format, ...)
{
    char **grown = dl2_realloc(dataset->warnings, dataset->warning_count + 1, sizeof *grown);
    if (!grown)
        return DL2_ERR_MEMORY;
    dataset->warnings = grown;
    va_list args;
    va_start(args, format);
    const int length = vasprintf(&grown[dataset->warning_count], format, args);
    va_end(args);
    if (length < 0)
        return DL2_ERR_MEMORY;
    dataset->warning_count++;
    return DL2_OK;
}

static int find_warnings(struct dl2_dataset *dataset)
{
    for (unsigned i = 0; i < dataset->class_count; i++)
        if (dl2_part_of_folder(dataset->classes[i], strlen(dataset->classes[i])))
            DL2_TRY(warn(dataset,
                         "the folder '%s' is read as a class, and its name as a split's; where it "
                         "is a split, put every folder of images into one, as in "
                         "train/CLASS/IMAGE",
                         dataset->classes[i]));
    size_t unlabelled = 0;
    char number[32];
    for (int p = DL2_PART_NONE; p < DL2_PARTS; p++)
        unlabelled += p || !dataset->has_parts ? dataset->unlabelled[p] : 0;
    if (unlabelled && dataset->class_count)
        DL2_TRY(warn(dataset, "%s image%s outside every class: no split has %s",
                     grouped(unlabelled, number), unlabelled == 1 ? " is" : "s are",
                     unlabelled == 1 ? "it" : "them"));
    if (dataset->notes & DL2_NOTE_JSON_LABELS)
        DL2_TRY(warn(dataset, "samples have a .json beside them and no .cls: labels are read from "
                              ".cls alone, so these samples have none"));
    if (dataset->notes & DL2_NOTE_SYMBOLIC_LINKS)
        DL2_TRY(warn(dataset, "symbolic links in tar files are left out: pack the files "
                              "themselves (tar --dereference)"));
    return DL2_OK;
}

static int tell_layout(struct dl2_dataset *dataset, const struct dl2_dataset_options *options,
                       struct dl2_error *error)
{
    struct dl2_bytes text = DL2_BYTES_INIT;
    int status = append_layout(dataset, options, &text);
    if (status == DL2_OK)
        status = dl2_bytes_append(&text, "", 1, NULL);
    dataset->layout = (char *)text.data;
    if (status == DL2_OK)
        status = find_warnings(dataset);
    return status < 0 ? dl2_error_set(error, status, "out of memory for a dataset") : DL2_OK;
}

int dl2_dataset_open(const char *path, const struct dl2_dataset_options *options,
                     struct dl2_dataset **out, struct dl2_error *error)
{
    *out = NULL;
    if (!(options->val_fraction >= 0 && options->val_fraction <= 1))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "a validation part of %g is not within 0 and 1",
                             options->val_fraction);
    const struct dl2_source *source = find_source(path);
    if (!source)
        return unknown_path(path, error);
    struct dl2_dataset *dataset = dl2_calloc(1, sizeof *dataset);
    if (!dataset)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for a dataset");
    dataset->source = source;
    dataset->own_part = dl2_part_of_path(path, &dataset->own_depth);
    int status = source->open(dataset, path, options, error);
    if (status == DL2_OK)
        status = tell_layout(dataset, options, error);
    if (status == DL2_OK && !dataset->count)
        status = no_samples(dataset, path, options->split, error);
    if (status == DL2_OK && dataset->count > UINT32_MAX)
        status = dl2_error_set(error, DL2_ERR_LIMIT, "%s: %zu samples pass the limit of 2^32", path,
                               dataset->count);
    if (status < 0) {
        dl2_dataset_close(dataset);
        return status;
    }
    *out = dataset;
    return DL2_OK;
}

void dl2_dataset_close(struct dl2_dataset *dataset)
{
    if (!dataset)
        return;
    dataset->source->close(dataset);
    for (size_t i = 0; i < dataset->warning_count; i++)
        free(dataset->warnings[i]);
    free(dataset->warnings);
    free(dataset->layout);
    free(dataset->classes);
    free(dataset);
}

size_t dl2_dataset_count(const struct dl2_dataset *dataset)
{
    return dataset->count;
}

unsigned dl2_dataset_class_count(const struct dl2_dataset *dataset)
{
    return dataset->class_count;
}

const char *dl2_dataset_class_name(const struct dl2_dataset *dataset, unsigned label)
{
    return label < dataset->class_count ? dataset->classes[label] : NULL;
}

const char *dl2_dataset_container(const struct dl2_dataset *dataset)
{
    return dataset->container ? dataset->container : dataset->source->name;
}

bool dl2_dataset_has_parts(const struct dl2_dataset *dataset)
{
    return dataset->has_parts;
}

bool dl2_dataset_is_split_by_rule(const struct dl2_dataset *dataset)
{
    return dataset->by_rule;
}

const char *dl2_dataset_layout(const struct dl2_dataset *dataset)
{
    return dataset->layout;
}

const char *dl2_dataset_message(const struct dl2_dataset *dataset, size_t number, bool *matters)
{
    *matters = number || dataset->by_rule;
    return number == 0                        ? dataset->layout
           : number <= dataset->warning_count ? dataset->warnings[number - 1]
                                              : NULL;
}

void dl2_dataset_sample(const struct dl2_dataset *dataset, size_t index, struct dl2_sample *sample)
{
    dataset->source->sample(dataset, index, sample);
}

int dl2_dataset_read(const struct dl2_dataset *dataset, size_t index, struct dl2_bytes *scratch,
                     const uint8_t **data, size_t *size, struct dl2_error *error)
{
    return dataset->source->read(dataset, index, scratch, data, size, error);
}

bool dl2_dataset_locate(const struct dl2_dataset *dataset, size_t index,
                        struct dl2_location *location)
{
    return dataset->source->locate && dataset->source->locate(dataset, index, location);
}

int dl2_dataset_verify(const struct dl2_dataset *dataset, size_t index, const uint8_t *data,
                       size_t size, struct dl2_error *error)
{
    return dataset->source->verify ? dataset->source->verify(dataset, index, data, size, error)
                                   : DL2_OK;
}

bool dl2_dataset_cuts(const struct dl2_dataset *dataset, size_t index, struct dl2_cuts *cuts)
{
    return dataset->source->cuts && dataset->source->cuts(dataset, index, cuts);
}

int dl2_dataset_read_slices(const struct dl2_dataset *dataset, size_t index,
                            struct dl2_slice_range range, struct dl2_bytes *scratch,
                            const uint8_t **data, size_t *size, struct dl2_error *error)
{
    return dataset->source->read_slices(dataset, index, range, scratch, data, size, error);
}

bool dl2_dataset_locate_slices(const struct dl2_dataset *dataset, size_t index,
                               struct dl2_slice_range range, struct dl2_location *location)
{
    return dataset->source->locate_slices(dataset, index, range, location);
}

int dl2_dataset_verify_slices(const struct dl2_dataset *dataset, size_t index,
                              struct dl2_slice_range range, const uint8_t *data, size_t size,
                              struct dl2_error *error)
{
    return dataset->source->verify_slices(dataset, index, range, data, size, error);
}

bool dl2_dataset_find(const struct dl2_dataset *dataset, const char *id, size_t *first,
                      size_t *count)
{
    if (dataset->source->find)
        return dataset->source->find(dataset, id, first, count);
    for (size_t i = 0; i < dataset->count; i++) {
        struct dl2_sample sample;
        dataset->source->sample(dataset, i, &sample);
        if (strcmp(sample.key, id) != 0)
            continue;
        *first = i;
        *count = 1;
        return true;
    }
    return false;
}

int dl2_dataset_set_classes(struct dl2_dataset *dataset, const char *const *names, unsigned count,
                            struct dl2_error *error)
{
    size_t size = count * sizeof(char *);
    for (unsigned i = 0; i < count; i++)
        size += strlen(names[i]) + 1;
    char **classes = dl2_calloc(1, size);
    if (!classes)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for %u classes", count);
    char *text = (char *)(classes + count);
    for (unsigned i = 0; i < count; i++) {
        classes[i] = strcpy(text, names[i]);
        text += strlen(text) + 1;
    }
    dataset->classes = classes;
    dataset->class_count = count;
    return DL2_OK;
}

/* The last part of a path as it was given; "." and ".." are looked up first. */
static char *last_part(const char *path)
{
    size_t end = strlen(path);
    while (end > 0 && path[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    size_t length = end - start;
    if (length == 0 || !strcmp(path + start, ".") || !strncmp(path + start, "./", 2) ||
        (length == 2 && !strncmp(path + start, "..", 2))) {
        char *resolved = realpath(path, NULL);
        if (resolved) {
            char *name = strdup(dl2_path_base(resolved)[0] ? dl2_path_base(resolved) : "dataset");
            free(resolved);
            return name;
        }
    }
    return strndup(path + start, length);
}

char *dl2_dataset_variant_name(const char *path)
{
    char *file = dl2_path_join(path, "dl2-variant.json");
    char *name = NULL;
    json_t *variant = NULL;
    if (file && dl2_is_file(file) && dl2_json_load(file, NULL, &variant, NULL) == DL2_OK) {
        const char *text = dl2_json_get_text(variant, "variant", NULL);
        name = text && text[0] ? strdup(text) : NULL;
        json_decref(variant);
    }
    free(file);
    return name ? name : last_part(path);
}
