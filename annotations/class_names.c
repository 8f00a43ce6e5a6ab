/* SPDX-License-Identifier: BSD-2-Clause */
/* The names of the classes of label files: data.yaml, or LabelImg's classes.txt. */
#include "annotations/annotations.h"

#include "common/file.h"
#include "common/quote.h"
#include "common/scope.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What classes.txt in several folders say together. */
struct search {
    const struct dl2_dataset *dataset;
    struct dl2_class_names *names;
    struct dl2_data_yaml found;
    char *path;     /* of the first file, or NULL */
    char *conflict; /* of two files, or NULL */
};

static int compare_names(const void *a, const void *b)
{
    const struct dl2_box_class *one = a, *two = b;
    return one->label == two->label ? strcmp(one->name, two->name)
                                    : (one->label > two->label) - (one->label < two->label);
}

/* Sorts the classes and drops those that come again; *conflict: two names of one number. */
static int join_classes(struct search *search, const char *path, struct dl2_error *error)
{
    struct dl2_box_class *classes = search->found.classes;
    size_t kept = 0;
    if (search->found.class_count > 1)
        qsort(classes, search->found.class_count, sizeof *classes, compare_names);
    for (size_t i = 0; i < search->found.class_count; i++) {
        struct dl2_box_class *before = kept ? &classes[kept - 1] : NULL;
        if (!before || before->label != classes[i].label) {
            classes[kept++] = classes[i];
            continue;
        }
        if (!search->conflict && strcmp(before->name, classes[i].name) != 0)
            DL2_TRY(dl2_format(&search->conflict, error,
                               "%s and %s give class %" PRId64 " the names '%s' and '%s'",
                               search->path, path, before->label, before->name, classes[i].name));
        free(classes[i].name);
    }
    search->found.class_count = kept;
    return DL2_OK;
}

/* Moves the classes of one file to the others'. */
static int add_classes(struct search *search, struct dl2_data_yaml *file, struct dl2_error *error)
{
    for (size_t i = 0; i < file->class_count; i++) {
        DL2_TRY(dl2_grow(&search->found.classes, search->found.class_count,
                         sizeof *search->found.classes, error));
        search->found.classes[search->found.class_count++] = file->classes[i];
        file->classes[i].name = NULL;
    }
    return DL2_OK;
}

/* Takes a file if it is there. One that cannot be read is a warning: nobody has asked for it. */
static int take_file(struct search *search, const char *path, struct dl2_error *error)
{
    struct dl2_class_names *names = search->names;
    struct dl2_error own = DL2_ERROR_INIT;
    struct dl2_data_yaml file;
    if (!dl2_is_file(path))
        return DL2_OK;
    if (dl2_data_yaml_read(path, &file, &own) < 0)
        return names->warning
                   ? DL2_OK
                   : dl2_format(&names->warning, error, "%s; it names no classes", own.message);
    int status = add_classes(search, &file, error);
    if (status == DL2_OK && !search->path && file.class_count)
        status = dl2_format(&search->path, error, "%s", path);
    if (status == DL2_OK)
        status = join_classes(search, path, error);
    dl2_data_yaml_free(&file);
    return status;
}

/* Those beside images and label files, and one above the dataset's folder. */
static int take_all(struct search *search, struct dl2_error *error)
{
    const char *path;
    DL2_AUTO_FREE char *other = NULL;
    bool is_above;
    for (size_t i = 0; (path = dl2_dataset_class_file(search->dataset, i)); i++)
        DL2_TRY(take_file(search, path, error));
    if (strcmp(dl2_dataset_container(search->dataset), "folder") != 0)
        return DL2_OK; /* that of shards has classes of whole images */
    DL2_TRY(dl2_data_yaml_find(search->dataset, DL2_CLASSES_TXT, &other, &is_above, error));
    return other && is_above ? take_file(search, other, error) : DL2_OK;
}

/* Says where classes.txt says otherwise than data.yaml, which counts. */
static int compare_both(struct search *search, struct dl2_error *error)
{
    struct dl2_class_names *names = search->names;
    if (search->conflict)
        return names->warning ? DL2_OK
                              : dl2_format(&names->warning, error, "%s; %s counts",
                                           search->conflict, names->path);
    for (size_t i = 0; i < search->found.class_count && !names->warning; i++) {
        const struct dl2_box_class *class = &search->found.classes[i];
        const char *name = dl2_data_yaml_name(&names->yaml, class->label);
        if (name && strcmp(name, class->name) != 0)
            DL2_TRY(dl2_format(&names->warning, error,
                               "%s, which counts, gives class %" PRId64
                               " the name '%s', and a " DL2_CLASSES_TXT " '%s'",
                               names->path, class->label, name, class->name));
    }
    return DL2_OK;
}

/* Takes the classes of classes.txt, or compares them with those of data.yaml. */
static int use_class_files(struct search *search, struct dl2_error *error)
{
    struct dl2_class_names *names = search->names;
    DL2_TRY(take_all(search, error));
    if (names->yaml.class_count)
        return compare_both(search, error);
    if (search->conflict)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s; number the classes alike, or name them in data.yaml",
                             search->conflict);
    if (!search->path)
        return DL2_OK;
    free(names->path);
    names->path = search->path;
    search->path = NULL;
    names->yaml.classes = search->found.classes;
    names->yaml.class_count = search->found.class_count;
    search->found = (struct dl2_data_yaml){0};
    return DL2_OK;
}

/* A data.yaml that was not asked for may be of any kind, so what is wrong with it is a warning. */
static int read_yaml(struct dl2_class_names *names, struct dl2_error *error)
{
    struct dl2_error own = DL2_ERROR_INIT;
    if (dl2_data_yaml_read(names->yaml_path, &names->yaml, &own) < 0)
        return dl2_format(&names->warning, error, "%s; classes have no names", own.message);
    return names->yaml.class_count ? dl2_format(&names->path, error, "%s", names->yaml_path)
                                   : DL2_OK;
}

int dl2_class_names_find(const struct dl2_dataset *dataset, struct dl2_class_names *names,
                         struct dl2_error *error)
{
    struct search search = {.dataset = dataset, .names = names};
    *names = (struct dl2_class_names){0};
    int status =
        dl2_data_yaml_find(dataset, DL2_DATA_YAML, &names->yaml_path, &names->is_above, error);
    if (status == DL2_OK && names->yaml_path)
        status = read_yaml(names, error);
    if (status == DL2_OK && !names->warning)
        status = use_class_files(&search, error);
    dl2_data_yaml_free(&search.found);
    free(search.path);
    free(search.conflict);
    if (status < 0)
        dl2_class_names_free(names);
    return status;
}

int dl2_class_names_read(const char *path, struct dl2_class_names *names, struct dl2_error *error)
{
    *names = (struct dl2_class_names){0};
    DL2_TRY(dl2_data_yaml_read(path, &names->yaml, error));
    return dl2_format(&names->path, error, "%s", path);
}

void dl2_class_names_free(struct dl2_class_names *names)
{
    dl2_data_yaml_free(&names->yaml);
    free(names->yaml_path);
    free(names->path);
    free(names->warning);
    *names = (struct dl2_class_names){0};
}
