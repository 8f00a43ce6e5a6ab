/* SPDX-License-Identifier: BSD-2-Clause */
/* Splits and classes out of the names of samples. */
#include "dataset/split.h"

#include "common/memory.h"

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
    size_t common = a->length < b->length ? a->length : b->length;
    int order = memcmp(a->text, b->text, common);
    return order ? order : (a->length > b->length) - (a->length < b->length);
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

/*
 * Sets labels and classes. In samples that are sorted by path, a class is one run in each split, so
 * only the runs are sorted and searched.
 */
static int label_names(const char *const *names, size_t count, struct dl2_tree *tree,
                       struct span *runs, struct dl2_error *error)
{
    size_t run_count = 0;
    struct span last = {"", 0};
    for (size_t i = 0; i < count; i++) {
        struct span class = tree_class_of(tree, names[i], i);
        if (class.length && compare_spans(&class, &last))
            runs[run_count++] = last = class;
    }
    qsort(runs, run_count, sizeof *runs, compare_spans);
    size_t classes = 0;
    for (size_t i = 0; i < run_count; i++)
        if (!classes || compare_spans(&runs[i], &runs[classes - 1]))
            runs[classes++] = runs[i];
    last = (struct span){"", 0};
    int32_t current = -1;
    for (size_t i = 0; i < count; i++) {
        struct span class = tree_class_of(tree, names[i], i);
        if (compare_spans(&class, &last)) {
            const struct span *found =
                class.length ? bsearch(&class, runs, classes, sizeof *runs, compare_spans) : NULL;
            current = found ? (int32_t)(found - runs) : -1;
            last = class;
        }
        tree->labels[i] = current;
    }
    return classes ? tree_set_classes(tree, runs, classes, error) : DL2_OK;
}

/* Sets the labels of the samples in other folders than those of train, val and test, whose classes
 * are all that there are. */
static void label_others(const char *const *names, size_t count, struct dl2_tree *tree)
{
    struct span last = {"", 0};
    int32_t current = -1;
    for (size_t i = 0; tree->has_parts && i < count; i++) {
        const struct span top = first_folder(names[i]);
        if (tree->parts[i] || !top.length)
            continue;
        const struct span class = first_folder(names[i] + top.length + 1);
        if (compare_spans(&class, &last)) {
            unsigned low = 0, high = tree->class_count;
            while (low < high) {
                const unsigned middle = low + (high - low) / 2;
                const struct span there = {tree->classes[middle], strlen(tree->classes[middle])};
                if (compare_spans(&there, &class) < 0)
                    low = middle + 1;
                else
                    high = middle;
            }
            const bool found = low < tree->class_count &&
                               !strncmp(tree->classes[low], class.text, class.length) &&
                               !tree->classes[low][class.length];
            current = found && class.length ? (int32_t)low : -1;
            last = class;
        }
        tree->labels[i] = current;
    }
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

int dl2_tree_read(const char *const *names, size_t count, const bool *apart, struct dl2_tree *tree,
                  struct dl2_error *error)
{
    *tree = (struct dl2_tree){.parts = dl2_calloc(count, sizeof *tree->parts),
                              .labels = dl2_calloc(count, sizeof *tree->labels)};
    struct span *runs = dl2_realloc(NULL, count, sizeof *runs);
    int status = DL2_OK;
    if (!tree->parts || !tree->labels || !runs) {
        status = dl2_error_memory(error, "classes");
    } else {
        tree->has_parts = tree_find_parts(names, count, apart, tree->parts);
        status = label_names(names, count, tree, runs, error);
        label_others(names, count, tree);
        if (status == DL2_OK && tree->has_parts)
            status = dl2_tree_name_parts(names, tree->labels, count, tree->class_count, tree->parts,
                                         &tree->names, error);
    }
    free(runs);
    if (status < 0)
        dl2_tree_free(tree);
    return status;
}

void dl2_tree_free(struct dl2_tree *tree)
{
    free(tree->parts);
    free(tree->labels);
    free(tree->classes);
    dl2_part_list_free(&tree->names);
    *tree = (struct dl2_tree){0};
}
