/* What a scan of shards gathers: samples, and classes out of what the shards say of labels. */
#include "dataset/dataset.h"
#include "dataset/packed.h"
#include "dataset/tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Classes that are only known by numbers. */
enum { MAX_NUMBERED_CLASSES = 100000 };

static int no_memory(struct dl2_error *error)
{
    return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for a packed dataset");
}

static uint32_t hash_text(const char *text)
{
    return (uint32_t)XXH3_64bits(text, strlen(text));
}

static int grow_slots(struct dl2_scan *scan, struct dl2_error *error)
{
    const uint32_t count = scan->slot_count ? 2 * scan->slot_count : 256;
    uint32_t *slots = dl2_calloc(count, sizeof *slots);
    char **labels = dl2_realloc(scan->labels, count, sizeof *labels);
    if (labels)
        scan->labels = labels;
    if (!slots || !labels) {
        free(slots);
        return no_memory(error);
    }
    for (uint32_t i = 0; i < scan->label_count; i++) {
        uint32_t at = hash_text(labels[i]) & (count - 1);
        while (slots[at])
            at = (at + 1) & (count - 1);
        slots[at] = i + 1;
    }
    free(scan->slots);
    scan->slots = slots;
    scan->slot_count = count;
    return DL2_OK;
}

/* The number of a label's text, a new one where it has not come yet. */
static int number_label(struct dl2_scan *scan, const char *label, int32_t *number,
                        struct dl2_error *error)
{
    if (2 * scan->label_count >= scan->slot_count)
        DL2_TRY(grow_slots(scan, error));
    uint32_t at = hash_text(label) & (scan->slot_count - 1);
    for (; scan->slots[at]; at = (at + 1) & (scan->slot_count - 1)) {
        if (strcmp(scan->labels[scan->slots[at] - 1], label) != 0)
            continue;
        *number = (int32_t)(scan->slots[at] - 1);
        return DL2_OK;
    }
    if (scan->label_count >= INT32_MAX / 4)
        return dl2_error_set(error, DL2_ERR_LIMIT, "too many classes");
    if (!(scan->labels[scan->label_count] = strdup(label)))
        return no_memory(error);
    *number = (int32_t)scan->label_count++;
    scan->slots[at] = scan->label_count;
    return DL2_OK;
}

int dl2_scan_add(struct dl2_scan *scan, const struct dl2_index_entry *entry, const char *label,
                 struct dl2_error *error)
{
    int32_t number = -1;
    if (!dl2_index_is_key(entry->key))
        return dl2_error_set(error, DL2_ERR_FORMAT, "\"%.200s\" is no name for a sample",
                             entry->key);
    if (label)
        DL2_TRY(number_label(scan, label, &number, error));
    DL2_TRY(dl2_bytes_append(&scan->label_of, &number, sizeof number, error));
    return dl2_index_draft_add(&scan->draft, entry, error);
}

void dl2_scan_cut(struct dl2_scan *scan, size_t count)
{
    if (count >= scan->draft.count)
        return;
    scan->draft.strings.size = dl2_index_draft_entry(&scan->draft, count)->key;
    scan->draft.entries.size = count * sizeof(struct dl2_index_draft_entry);
    scan->draft.count = count;
    scan->label_of.size = count * sizeof(int32_t);
}

static void free_names(char **names, uint32_t count)
{
    for (uint32_t i = 0; names && i < count; i++)
        free(names[i]);
    free(names);
}

int dl2_scan_add_classes(struct dl2_scan *scan, const char *folder, char **names, uint32_t count,
                         struct dl2_error *error)
{
    struct dl2_class_list *grown = dl2_realloc(scan->lists, scan->list_count + 1, sizeof *grown);
    char *copy = strdup(folder);
    if (grown)
        scan->lists = grown;
    if (!grown || !copy) {
        free(copy);
        free_names(names, count);
        return no_memory(error);
    }
    grown[scan->list_count++] = (struct dl2_class_list){copy, names, count};
    return DL2_OK;
}

const struct dl2_class_list *dl2_scan_classes(const struct dl2_scan *scan, const char *folder,
                                              size_t length)
{
    for (size_t i = 0; i < scan->list_count; i++)
        if (strlen(scan->lists[i].folder) == length &&
            !memcmp(scan->lists[i].folder, folder, length))
            return &scan->lists[i];
    return NULL;
}

static bool same_lists(const struct dl2_scan *scan)
{
    for (size_t i = 0; i < scan->list_count; i++) {
        const struct dl2_class_list *list = &scan->lists[i], *first = &scan->lists[0];
        if (!list->names || list->count != first->count)
            return false;
        for (uint32_t n = 0; n < list->count; n++)
            if (strcmp(list->names[n], first->names[n]) != 0)
                return false;
    }
    return scan->list_count > 0;
}

/* The value of a label that is a number, below the limit; -1: it is none, or there are lists. */
static int64_t numbered(const struct dl2_scan *scan, uint32_t label)
{
    const char *text = scan->labels[label];
    const size_t digits = strspn(text, "0123456789");
    if (!digits || text[digits] || digits > 9 || scan->list_count)
        return -1;
    const int64_t value = strtoll(text, NULL, 10);
    return value < MAX_NUMBERED_CLASSES ? value : -1;
}

/* 0, 1, 2... up to the largest, written with equally many digits; names_of[label] is its class. */
static int number_classes(struct dl2_scan *scan, int64_t largest, int32_t *class_of,
                          struct dl2_error *error)
{
    const uint32_t count = (uint32_t)largest + 1;
    char(*texts)[8] = dl2_calloc(count, sizeof *texts);
    const char **names = dl2_calloc(count, sizeof *names);
    int status = texts && names ? DL2_OK : no_memory(error);
    const int digits = largest > 9999  ? 5
                       : largest > 999 ? 4
                       : largest > 99  ? 3
                       : largest > 9   ? 2
                                       : 1;
    for (uint32_t i = 0; status == DL2_OK && i < count; i++) {
        snprintf(texts[i], sizeof texts[i], "%0*" PRIu32, digits, i % MAX_NUMBERED_CLASSES);
        names[i] = texts[i];
    }
    for (uint32_t i = 0; i < scan->label_count; i++)
        class_of[i] = (int32_t)numbered(scan, i);
    if (status == DL2_OK)
        status = dl2_index_draft_set_classes(&scan->draft, names, count, error);
    free(names);
    free(texts);
    return status;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The class of each label among sorted or listed names; false where one is not there. */
static bool find_classes(const struct dl2_scan *scan, const char *const *names, uint32_t count,
                         const uint32_t *place, int32_t *class_of)
{
    for (uint32_t i = 0; i < scan->label_count; i++) {
        const char *text = scan->labels[i];
        const char *const *found = bsearch(&text, names, count, sizeof *names, compare_texts);
        if (!found)
            return false;
        const size_t at = (size_t)(found - names);
        class_of[i] = (int32_t)(place ? place[at] : at);
    }
    return true;
}

/* By the list that all folders agree on. False where a label is not in it. */
static int listed_classes(struct dl2_scan *scan, int32_t *class_of, bool *done,
                          struct dl2_error *error)
{
    const struct dl2_class_list *list = &scan->lists[0];
    struct place {
        const char *name;
        uint32_t number;
    } *places = dl2_calloc(list->count, sizeof *places);
    const char **names = dl2_calloc(list->count, sizeof *names);
    uint32_t *numbers = dl2_calloc(list->count, sizeof *numbers);
    int status = places && names && numbers ? DL2_OK : no_memory(error);
    if (status == DL2_OK) {
        for (uint32_t i = 0; i < list->count; i++)
            places[i] = (struct place){list->names[i], i};
        qsort(places, list->count, sizeof *places, compare_texts); /* by its first member */
        for (uint32_t i = 0; i < list->count; i++) {
            names[i] = places[i].name;
            numbers[i] = places[i].number;
        }
        *done = find_classes(scan, names, list->count, numbers, class_of);
        if (*done)
            status = dl2_index_draft_set_classes(&scan->draft, (const char *const *)list->names,
                                                 list->count, error);
    }
    free(places);
    free(names);
    free(numbers);
    return status;
}

/* All names that occur in labels and lists, sorted. */
static int sorted_classes(struct dl2_scan *scan, int32_t *class_of, struct dl2_error *error)
{
    size_t room = scan->label_count;
    for (size_t i = 0; i < scan->list_count; i++)
        room += scan->lists[i].names ? scan->lists[i].count : 0;
    const char **names = dl2_calloc(room, sizeof *names);
    if (!names)
        return no_memory(error);
    size_t count = 0;
    for (uint32_t i = 0; i < scan->label_count; i++)
        names[count++] = scan->labels[i];
    for (size_t i = 0; i < scan->list_count; i++)
        for (uint32_t n = 0; scan->lists[i].names && n < scan->lists[i].count; n++)
            names[count++] = scan->lists[i].names[n];
    qsort(names, count, sizeof *names, compare_texts);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (!kept || strcmp(names[kept - 1], names[i]) != 0)
            names[kept++] = names[i];
    find_classes(scan, names, (uint32_t)kept, NULL, class_of);
    int status = dl2_index_draft_set_classes(&scan->draft, names, (uint32_t)kept, error);
    free(names);
    return status;
}

static int make_classes(struct dl2_scan *scan, int32_t *class_of, struct dl2_error *error)
{
    bool done = false;
    if (same_lists(scan))
        DL2_TRY(listed_classes(scan, class_of, &done, error));
    if (done)
        return DL2_OK;
    int64_t largest = -1;
    bool all = true;
    for (uint32_t i = 0; i < scan->label_count; i++) {
        const int64_t value = numbered(scan, i);
        all = all && value >= 0;
        largest = value > largest ? value : largest;
    }
    return all ? number_classes(scan, largest, class_of, error)
               : sorted_classes(scan, class_of, error);
}

int dl2_scan_finish(struct dl2_scan *scan, struct dl2_error *error)
{
    struct dl2_index_draft *draft = &scan->draft;
    if (!draft->count)
        return DL2_OK;
    const char **names = dl2_calloc(draft->count, sizeof *names);
    int32_t *class_of = dl2_calloc((size_t)scan->label_count + 1, sizeof *class_of);
    struct dl2_tree tree = {0};
    int status = names && class_of ? DL2_OK : no_memory(error);
    for (size_t i = 0; status == DL2_OK && i < draft->count; i++)
        names[i] = dl2_index_draft_key(draft, i);
    if (status == DL2_OK)
        status = dl2_tree_read(names, draft->count, &tree, error);
    /* GulpIO's ids are no paths, if they look like it. */
    const bool by_names = !scan->label_count && draft->kind == DL2_INDEX_TAR;
    if (status == DL2_OK && scan->label_count)
        status = make_classes(scan, class_of, error);
    else if (status == DL2_OK && by_names)
        status = dl2_index_draft_set_classes(draft, (const char *const *)tree.classes,
                                             tree.class_count, error);
    draft->has_parts = tree.has_parts;
    for (size_t i = 0; status == DL2_OK && i < draft->count; i++) {
        int32_t label;
        memcpy(&label, scan->label_of.data + i * sizeof label, sizeof label);
        struct dl2_index_draft_entry *entry = dl2_index_draft_entry(draft, i);
        entry->part = tree.parts[i];
        entry->label = by_names ? tree.labels[i] : label < 0 ? -1 : class_of[label];
    }
    dl2_tree_free(&tree);
    free(names);
    free(class_of);
    return status;
}

void dl2_scan_free(struct dl2_scan *scan)
{
    dl2_index_draft_free(&scan->draft);
    dl2_bytes_free(&scan->label_of);
    free_names(scan->labels, scan->label_count);
    free(scan->slots);
    for (size_t i = 0; i < scan->list_count; i++) {
        free(scan->lists[i].folder);
        free_names(scan->lists[i].names, scan->lists[i].count);
    }
    free(scan->lists);
    *scan = (struct dl2_scan){0};
}
