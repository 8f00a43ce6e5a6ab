/* What a scan of shards gathers: samples, their labels as texts, and classes out of those. */
#include "dataset/packed.h"
#include "dataset/tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Limit of classes that are only known by numbers. */
enum { MAX_NUMBERED_CLASSES = 100000 };

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
        return dl2_dataset_no_memory(error);
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

/* The number of a label's text; a text that is new gets the next number. */
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
        return dl2_dataset_no_memory(error);
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
    if (!grown) {
        free_names(names, count);
        return dl2_dataset_no_memory(error);
    }
    scan->lists = grown;
    grown[scan->list_count++] = (struct dl2_class_list){folder, names, count};
    return DL2_OK;
}

/* ---- Classes out of labels */

/* Do all lists of classes say the same? */
static bool lists_agree(const struct dl2_scan *scan)
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

/* The value of a label that is a number below the limit, else -1. */
static int64_t numeric_label(const char *text)
{
    const size_t digits = strspn(text, "0123456789");
    const int64_t value = digits && digits <= 9 && !text[digits] ? strtoll(text, NULL, 10) : -1;
    return value < MAX_NUMBERED_CLASSES ? value : -1;
}

/* Classes 0, 1, 2... up to the largest label, all with as many digits. */
static int use_numbers(struct dl2_scan *scan, int64_t largest, int32_t *class_of,
                       struct dl2_error *error)
{
    const uint32_t count = (uint32_t)largest + 1;
    char(*texts)[24] = dl2_calloc(count, sizeof *texts);
    const char **names = dl2_calloc(count, sizeof *names);
    int status = texts && names ? DL2_OK : dl2_dataset_no_memory(error);
    const int digits = snprintf(NULL, 0, "%" PRId64, largest);
    for (uint32_t i = 0; status == DL2_OK && i < count; i++) {
        snprintf(texts[i], sizeof texts[i], "%0*" PRIu32, digits, i);
        names[i] = texts[i];
    }
    for (uint32_t i = 0; i < scan->label_count; i++)
        class_of[i] = (int32_t)numeric_label(scan->labels[i]);
    if (status == DL2_OK)
        status = dl2_index_draft_set_classes(&scan->draft, names, count, error);
    free(names);
    free(texts);
    return status;
}

/* Classes in the order of a list; *done is false if one of the first `used` labels is not in it. */
static int use_list(struct dl2_scan *scan, const struct dl2_class_list *list, uint32_t used,
                    int32_t *class_of, bool *done, struct dl2_error *error)
{
    memset(class_of, -1, scan->label_count * sizeof *class_of);
    for (uint32_t i = 0; i < list->count; i++) {
        int32_t number;
        DL2_TRY(number_label(scan, list->names[i], &number, error));
        if (class_of[number] < 0) /* of classes with the same name the first counts */
            class_of[number] = (int32_t)i;
    }
    *done = true;
    for (uint32_t i = 0; i < used; i++)
        *done = *done && class_of[i] >= 0;
    return *done ? dl2_index_draft_set_classes(&scan->draft, (const char *const *)list->names,
                                               list->count, error)
                 : DL2_OK;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Classes are all texts, sorted. */
static int use_sorted(struct dl2_scan *scan, int32_t *class_of, struct dl2_error *error)
{
    const uint32_t count = scan->label_count;
    const char **names = dl2_calloc(count, sizeof *names);
    if (!names)
        return dl2_dataset_no_memory(error);
    memcpy(names, scan->labels, count * sizeof *names);
    qsort(names, count, sizeof *names, compare_texts);
    for (uint32_t i = 0; i < count; i++) {
        const char *const *found =
            bsearch(&scan->labels[i], names, count, sizeof *names, compare_texts);
        class_of[i] = (int32_t)(found - (const char *const *)names);
    }
    int status = dl2_index_draft_set_classes(&scan->draft, names, count, error);
    free(names);
    return status;
}

/* Sets the draft's classes, and the class of each label in the new list *out. */
static int make_classes(struct dl2_scan *scan, int32_t **out, struct dl2_error *error)
{
    const uint32_t used = scan->label_count;
    int64_t largest = -1;
    bool numeric = !scan->list_count, done = false;
    for (uint32_t i = 0; i < used; i++) {
        const int64_t value = numeric_label(scan->labels[i]);
        numeric = numeric && value >= 0;
        largest = value > largest ? value : largest;
    }
    /* The lists' names are texts as well, whether a sample has them or not. */
    for (size_t i = 0; i < scan->list_count; i++)
        for (uint32_t n = 0; scan->lists[i].names && n < scan->lists[i].count; n++) {
            int32_t number;
            DL2_TRY(number_label(scan, scan->lists[i].names[n], &number, error));
        }
    *out = dl2_calloc(scan->label_count, sizeof **out);
    if (!*out)
        return dl2_dataset_no_memory(error);
    if (numeric)
        return use_numbers(scan, largest, *out, error);
    if (lists_agree(scan))
        DL2_TRY(use_list(scan, &scan->lists[0], used, *out, &done, error));
    return done ? DL2_OK : use_sorted(scan, *out, error);
}

int dl2_scan_finish(struct dl2_scan *scan, struct dl2_error *error)
{
    struct dl2_index_draft *draft = &scan->draft;
    if (!draft->count)
        return DL2_OK;
    const char **names = dl2_calloc(draft->count, sizeof *names);
    int32_t *class_of = NULL;
    struct dl2_tree tree = {0};
    int status = names ? DL2_OK : dl2_dataset_no_memory(error);
    for (size_t i = 0; status == DL2_OK && i < draft->count; i++)
        names[i] = dl2_index_draft_key(draft, i);
    if (status == DL2_OK)
        status = dl2_tree_read(names, draft->count, &tree, error);
    const bool by_names = !scan->label_count && draft->container->shards->keys_are_paths;
    if (status == DL2_OK && scan->label_count)
        status = make_classes(scan, &class_of, error);
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
    for (size_t i = 0; i < scan->list_count; i++)
        free_names(scan->lists[i].names, scan->lists[i].count);
    free(scan->lists);
    *scan = (struct dl2_scan){0};
}
