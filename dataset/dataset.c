#include "dataset/source.h"

#include "common/file.h"
#include "common/json.h"

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

static int no_samples(const char *path, const struct dl2_source *source, enum dl2_split split,
                      struct dl2_error *error)
{
    static const char *const whats[] = {
        [DL2_SPLIT_ALL] = "samples",
        [DL2_SPLIT_TRAIN] = "samples for training",
        [DL2_SPLIT_VAL] = "samples for validation",
    };
    return dl2_error_set(error, DL2_ERR_FORMAT, "%s: no %s; looked for %s", path, whats[split],
                         source->looks_for);
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
    int status = source->open(dataset, path, options, error);
    if (status == DL2_OK && !dataset->count)
        status = no_samples(path, source, options->split, error);
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
