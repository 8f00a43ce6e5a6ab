/* SPDX-License-Identifier: BSD-2-Clause */
/* Splits and classes out of the names of samples. */
#include "dataset/split.h"

#include "common/memory.h"
#include "common/quote.h"
#include "common/scope.h"

#include <stdlib.h>
#include <string.h>

/* A class name within a path. */
struct span {
    const char *text;
    size_t length;
};

static int compare_spans(const void *left, const void *right)
{
    const struct span *a = left, *b = right;
    return dl2_compare_spans(a->text, a->length, b->text, b->length);
}

/* The first part of `name` if it is a folder. */
static struct span first_folder(const char *name)
{
    const char *slash = strchr(name, '/');
    return (struct span){name, slash ? (size_t)(slash - name) : 0};
}

/* Sets the splits of all names; false if there are no splits. */
static bool tree_find_parts(const char *const *names, size_t count, const bool *apart,
                            uint8_t *parts)
{
    struct dl2_part_census census = {0};
    struct span last = {"", 0};
    uint8_t part = DL2_PART_NONE;
    for (size_t i = 0; i < count; i++) {
        const struct span top = first_folder(names[i]);
        if (compare_spans(&top, &last))
            part = (uint8_t)dl2_part_of_folder(top.text, top.length);
        last = top;
        parts[i] = part;
        if (!top.length || (apart && apart[i]))
            continue;
        if (strchr(top.text + top.length + 1, '/'))
            census.deep[parts[i]]++;
        else
            census.direct[parts[i]]++;
    }
    if (dl2_census_has_parts(&census))
        return true;
    memset(parts, DL2_PART_NONE, count);
    return false;
}

static struct span tree_class_of(const struct dl2_tree *tree, const char *name, size_t index)
{
    if (!tree->has_parts)
        return first_folder(name);
    if (tree->parts[index] == DL2_PART_NONE)
        return (struct span){name, 0};
    return first_folder(strchr(name, '/') + 1);
}

static int tree_set_classes(struct dl2_tree *tree, const struct span *spans, size_t count,
                            struct dl2_error *error)
{
    size_t size = count * sizeof(char *);
    for (size_t i = 0; i < count; i++)
        size += spans[i].length + 1;
    tree->classes = dl2_calloc(1, size);
    if (!tree->classes || count > INT32_MAX)
        return dl2_error_memory(error, "%zu classes", count);
    char *text = (char *)(tree->classes + count);
    for (size_t i = 0; i < count; i++) {
        tree->classes[i] = memcpy(text, spans[i].text, spans[i].length);
        text += spans[i].length + 1;
    }
    tree->class_count = (unsigned)count;
    return DL2_OK;
}

/* Classes by number: those of train come first. Each part is sorted. */
struct class_spans {
    struct span *spans;
    size_t count, of_train;
};

static int32_t find_class(const struct class_spans *classes, const struct span *class)
{
    const size_t others = classes->count - classes->of_train;
    const struct span *found =
        bsearch(class, classes->spans, classes->of_train, sizeof *class, compare_spans);
    if (!found)
        found = bsearch(class, classes->spans + classes->of_train, others, sizeof *class,
                        compare_spans);
    return found ? (int32_t)(found - classes->spans) : -1;
}

/*
 * Appends the classes of the names in train, or of all names, that are not there yet. In samples
 * that are sorted by path, a class is one run in each split, so only the runs are sorted.
 */
static void add_classes(const char *const *names, size_t count, const struct dl2_tree *tree,
                        bool train, struct class_spans *classes)
{
    struct span *runs = classes->spans + classes->count, last = {"", 0};
    size_t run_count = 0, kept = 0;
    for (size_t i = 0; i < count; i++) {
        const struct span class = tree_class_of(tree, names[i], i);
        if ((train && tree->parts[i] != DL2_PART_TRAIN) || !class.length ||
            !compare_spans(&class, &last))
            continue;
        last = class;
        if (train || find_class(classes, &class) < 0)
            runs[run_count++] = class;
    }
    qsort(runs, run_count, sizeof *runs, compare_spans);
    for (size_t i = 0; i < run_count; i++)
        if (!kept || compare_spans(&runs[i], &runs[kept - 1]))
            runs[kept++] = runs[i];
    classes->count += kept;
}

/* Sets labels and classes. Samples in other folders than those of train, val and test make no
 * class. `runs` has room for a span of each name. */
static int label_names(const char *const *names, size_t count, struct dl2_tree *tree,
                       struct span *runs, struct dl2_error *error)
{
    struct class_spans classes = {.spans = runs};
    if (tree->has_parts)
        add_classes(names, count, tree, true, &classes);
    classes.of_train = classes.count;
    add_classes(names, count, tree, false, &classes);
    /* The layout of Roboflow: train/images and train/labels; or images/ and labels/ alone. */
    const struct span images = {"images", strlen("images")};
    if (classes.count == 1 && !compare_spans(runs, &images))
        classes.count = classes.of_train = 0;
    struct span last = {"", 0};
    int32_t current = -1;
    for (size_t i = 0; i < count; i++) {
        const struct span top = first_folder(names[i]);
        const bool other = tree->has_parts && tree->parts[i] == DL2_PART_NONE && top.length;
        const struct span class =
            other ? first_folder(names[i] + top.length + 1) : tree_class_of(tree, names[i], i);
        if (compare_spans(&class, &last)) {
            current = class.length ? find_class(&classes, &class) : -1;
            last = class;
        }
        tree->labels[i] = current;
    }
    return classes.count ? tree_set_classes(tree, runs, classes.count, error) : DL2_OK;
}

static bool is_known(uint8_t part)
{
    return part > DL2_PART_NONE && part < DL2_PARTS;
}

int dl2_tree_name_parts(const char *const *names, const int32_t *labels, size_t count,
                        bool has_classes, uint8_t *parts, struct dl2_part_list *list,
                        struct dl2_error *error)
{
    struct span last = {"", 0};
    uint8_t part = DL2_PART_NONE;
    for (size_t i = 0; i < count; i++) {
        const struct span top = first_folder(names[i]);
        if (is_known(parts[i]) || !top.length || (has_classes && labels[i] < 0))
            continue;
        if (compare_spans(&top, &last))
            DL2_TRY(dl2_part_add(list, top.text, top.length, &part, error));
        last = top;
    }
    last = (struct span){"", 0};
    for (size_t i = 0; i < count; i++) {
        const struct span top = first_folder(names[i]);
        if (is_known(parts[i]))
            continue;
        if (compare_spans(&top, &last))
            part = (uint8_t)dl2_part_find(list, top.text, top.length);
        last = top;
        parts[i] = top.length ? part : DL2_PART_NONE;
    }
    return DL2_OK;
}

/* The layout of Ultralytics: images/train, images/val, with the folder labels beside images. */
static void skip_images(const char **names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!dl2_part_prefix(names[i]))
            return;
    for (size_t i = 0; i < count; i++)
        names[i] += dl2_part_prefix(names[i]);
}

int dl2_tree_read(const char **names, size_t count, const bool *apart, struct dl2_tree *tree,
                  struct dl2_error *error)
{
    DL2_AUTO_FREE struct span *runs = NULL;
    skip_images(names, count);
    *tree = (struct dl2_tree){0};
    DL2_TRY(DL2_NEW(&tree->parts, count, "classes", error));
    DL2_TRY(DL2_NEW(&tree->labels, count, "classes", error));
    DL2_TRY(DL2_NEW(&runs, count, "classes", error));
    tree->has_parts = tree_find_parts(names, count, apart, tree->parts);
    DL2_TRY(label_names(names, count, tree, runs, error));
    return tree->has_parts ? dl2_tree_name_parts(names, tree->labels, count, tree->class_count,
                                                 tree->parts, &tree->names, error)
                           : DL2_OK;
}

void dl2_tree_free(struct dl2_tree *tree)
{
    free(tree->parts);
    free(tree->labels);
    free(tree->classes);
    dl2_part_list_free(&tree->names);
    *tree = (struct dl2_tree){0};
}
