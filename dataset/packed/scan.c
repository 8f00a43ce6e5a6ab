/* SPDX-License-Identifier: BSD-2-Clause */
/* A scan of shards gathers samples and their labels as texts, and makes classes of these. */
#include "dataset/file_names.h"
#include "dataset/packed/packed.h"

#include "common/quote.h"
#include "common/scope.h"

#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the samples with a label say of it. */
enum use { UNCOUNTED, COUNTED, IN_TRAIN };

/* A label's text, in the tree and, by its number, in the list. */
struct label {
    int32_t number;
    bool behind;      /* where classes are sorted: it is not in train */
    const char *text; /* in the same allocation */
};

static struct label *label_at(const struct dl2_scan *scan, uint32_t number)
{
    struct label *label;
    memcpy(&label, scan->labels.data + number * sizeof label, sizeof label);
    return label;
}

static int32_t label_of(const struct dl2_scan *scan, size_t sample)
{
    int32_t label;
    memcpy(&label, scan->label_of.data + sample * sizeof label, sizeof label);
    return label;
}

static int compare_labels(const void *left, const void *right)
{
    return strcmp(((const struct label *)left)->text, ((const struct label *)right)->text);
}

/* The number of a label's text; a text that is new gets the next number. */
static int number_label(struct dl2_scan *scan, const char *text, int32_t *number,
                        struct dl2_error *error)
{
    const struct label wanted = {.text = text};
    struct label *const *found = tfind(&wanted, &scan->tree, compare_labels);
    if (found) {
        *number = (*found)->number;
        return DL2_OK;
    }
    if (scan->label_count >= INT32_MAX / 4)
        return dl2_error_set(error, DL2_ERR_LIMIT, "too many classes");
    const size_t size = strlen(text) + 1;
    struct label *label = dl2_calloc(1, sizeof *label + size);
    if (!label || dl2_bytes_append(&scan->labels, &label, sizeof label, error) < 0) {
        free(label);
        return dl2_error_memory(error, "a dataset");
    }
    label->text = memcpy(label + 1, text, size);
    label->number = *number = (int32_t)scan->label_count++;
    return tsearch(label, &scan->tree, compare_labels) ? DL2_OK
                                                       : dl2_error_memory(error, "a dataset");
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

int dl2_scan_find(const struct dl2_scan *scan, struct dl2_findings *findings, enum dl2_finding kind,
                  size_t count, const char *name, struct dl2_error *error)
{
    const struct dl2_index_draft *draft = &scan->draft;
    findings->of[kind].count += count;
    return !count || findings->of[kind].first
               ? DL2_OK
               : dl2_format(&findings->of[kind].first, error, "%s in %s", DL2_SHOWN(name),
                            DL2_SHOWN(draft->shards[draft->shard_count - 1].name));
}

void dl2_scan_add_findings(struct dl2_scan *scan, struct dl2_findings *findings)
{
    for (int i = 0; i < DL2_FINDINGS; i++) {
        scan->findings.of[i].count += findings->of[i].count;
        if (scan->findings.of[i].first)
            continue;
        scan->findings.of[i].first = findings->of[i].first;
        findings->of[i].first = NULL;
    }
}

void dl2_findings_free(struct dl2_findings *findings)
{
    for (int i = 0; i < DL2_FINDINGS; i++)
        free(findings->of[i].first);
    *findings = (struct dl2_findings){0};
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

int dl2_scan_add_classes(struct dl2_scan *scan, const char *folder, char **names, uint32_t count,
                         struct dl2_error *error)
{
    const int status = dl2_grow(&scan->lists, scan->list_count, sizeof *scan->lists, error);
    if (status == DL2_OK)
        scan->lists[scan->list_count++] = (struct dl2_class_list){folder, names, count};
    else
        free(names);
    return status;
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

/* The key of the first sample with this label. */
static const char *find_labeled(const struct dl2_scan *scan, const char *text)
{
    for (size_t i = 0; text && i < scan->draft.count; i++) {
        const int32_t label = label_of(scan, i);
        if (label >= 0 && !strcmp(label_at(scan, (uint32_t)label)->text, text))
            return dl2_index_draft_key(&scan->draft, i);
    }
    return "";
}

/* Classes 0, 1, 2... up to the largest label, all with as many digits. */
static int use_numbers(struct dl2_scan *scan, const struct dl2_label_census *census,
                       int32_t *class_of, struct dl2_error *error)
{
    DL2_TRY(dl2_label_check_largest(census, find_labeled(scan, census->top), error));
    const uint32_t count = (uint32_t)(census->largest + 1);
    DL2_AUTO_FREE char(*texts)[24] = dl2_calloc(count, sizeof *texts);
    DL2_AUTO_FREE const char **names = dl2_calloc(count, sizeof *names);
    if (!texts || !names)
        return dl2_error_memory(error, "a dataset");
    const int digits = snprintf(NULL, 0, "%" PRId64, census->largest);
    for (uint32_t i = 0; i < count; i++) {
        snprintf(texts[i], sizeof texts[i], "%0*" PRIu32, digits, i);
        names[i] = texts[i];
    }
    for (uint32_t i = 0; i < scan->label_count; i++) {
        const int64_t number = dl2_label_number(label_at(scan, i)->text);
        class_of[i] = number > census->largest || number < 0 ? -1 : (int32_t)number;
    }
    return dl2_index_draft_set_classes(&scan->draft, names, count, error);
}

/* Classes in the order of a list; *missing is one of the first `used` labels that are counted and
 * not in it, NULL if all are. */
static int use_list(struct dl2_scan *scan, const struct dl2_class_list *list, uint32_t used,
                    const uint8_t *counted, int32_t *class_of, const char **missing,
                    struct dl2_error *error)
{
    memset(class_of, -1, scan->label_count * sizeof *class_of);
    for (uint32_t i = 0; i < list->count; i++) {
        int32_t number;
        DL2_TRY(number_label(scan, list->names[i], &number, error));
        if (class_of[number] < 0) /* of classes with the same name the first counts */
            class_of[number] = (int32_t)i;
    }
    for (uint32_t i = 0; i < used && !*missing; i++) {
        const int64_t number = dl2_label_number(label_at(scan, i)->text);
        if (class_of[i] < 0 && number >= 0 && number < list->count)
            class_of[i] = (int32_t)number;
        if (class_of[i] < 0 && number != DL2_LABEL_ABSENT && counted[i])
            *missing = label_at(scan, i)->text;
    }
    return *missing ? DL2_OK
                    : dl2_index_draft_set_classes(&scan->draft, (const char *const *)list->names,
                                                  list->count, error);
}

static int compare_label_pointers(const void *left, const void *right)
{
    const struct label *a = *(struct label *const *)left, *b = *(struct label *const *)right;
    return a->behind != b->behind ? a->behind - b->behind : compare_labels(a, b);
}

/* Classes are all texts, sorted, those in train first, but for the first `used` labels that are not
 * counted. */
static int use_sorted(struct dl2_scan *scan, uint32_t used, const uint8_t *counted,
                      int32_t *class_of, struct dl2_error *error)
{
    uint32_t count = 0;
    DL2_AUTO_FREE const char **names = dl2_calloc(scan->label_count, sizeof *names);
    DL2_AUTO_FREE struct label **labels = dl2_calloc(scan->label_count, sizeof *labels);
    if (!names || !labels)
        return dl2_error_memory(error, "a dataset");
    for (uint32_t i = 0; i < scan->label_count; i++) {
        class_of[i] = -1;
        if (i < used &&
            (!counted[i] || dl2_label_number(label_at(scan, i)->text) == DL2_LABEL_ABSENT))
            continue;
        labels[count] = label_at(scan, i);
        labels[count++]->behind = i >= used || counted[i] != IN_TRAIN;
    }
    qsort(labels, count, sizeof *labels, compare_label_pointers);
    for (uint32_t i = 0; i < count; i++) {
        names[i] = labels[i]->text;
        class_of[labels[i]->number] = (int32_t)i;
    }
    return dl2_index_draft_set_classes(&scan->draft, names, count, error);
}

/* Says why names, and not numbers or a list, are the classes, unless that is plain. */
static int remark_names(struct dl2_scan *scan, const struct dl2_label_census *census,
                        const char *missing, struct dl2_error *error)
{
    if (missing)
        return dl2_format_more(&scan->draft.remarks, error,
                               "the label '%.200s' of %s is not in the list of classes beside the "
                               "samples, so classes are numbered by their names, sorted",
                               missing, find_labeled(scan, missing));
    if (scan->list_count)
        return dl2_format_more(&scan->draft.remarks, error,
                               "the lists of classes beside the samples differ or cannot be read, "
                               "so classes are numbered by their names, sorted");
    return dl2_label_remark_words(census, find_labeled(scan, census->number),
                                  find_labeled(scan, census->word), &scan->draft.remarks, error);
}

/* Sets the draft's classes, and the class of each label in the new list *out. Labels that are not
 * counted make no class. */
static int scan_make_classes(struct dl2_scan *scan, const uint8_t *counted, int32_t **out,
                             struct dl2_error *error)
{
    const uint32_t used = scan->label_count;
    struct dl2_label_census census = DL2_LABEL_CENSUS;
    for (uint32_t i = 0; i < used; i++)
        if (counted[i])
            dl2_label_count(&census, label_at(scan, i)->text);
    const char *missing = NULL;
    /* The lists' names are texts as well, whether a sample has them or not. */
    for (size_t i = 0; i < scan->list_count; i++)
        for (uint32_t n = 0; scan->lists[i].names && n < scan->lists[i].count; n++) {
            int32_t number;
            DL2_TRY(number_label(scan, scan->lists[i].names[n], &number, error));
        }
    DL2_TRY(DL2_NEW(out, scan->label_count, "a dataset", error));
    if (!scan->list_count && !census.word)
        return use_numbers(scan, &census, *out, error);
    const bool agree = lists_agree(scan);
    if (agree)
        DL2_TRY(use_list(scan, &scan->lists[0], used, counted, *out, &missing, error));
    if (agree && !missing)
        return DL2_OK;
    DL2_TRY(remark_names(scan, &census, missing, error));
    return use_sorted(scan, used, counted, *out, error);
}

/* Which labels make classes: where there are splits, those of train, val and test. */
static uint8_t *count_labels(const struct dl2_scan *scan, const struct dl2_tree *tree)
{
    uint8_t *counted = dl2_calloc(scan->label_count, sizeof *counted);
    for (size_t i = 0; counted && i < scan->draft.count; i++) {
        const uint8_t part = tree->parts[i];
        const bool known = part > DL2_PART_NONE && part < DL2_PARTS;
        const enum use use = part == DL2_PART_TRAIN || !tree->has_parts ? IN_TRAIN : COUNTED;
        const int32_t label = label_of(scan, i);
        if (label >= 0 && (known || !tree->has_parts) && counted[label] < use)
            counted[label] = (uint8_t)use;
    }
    return counted;
}

/* Marks the samples of shards that lie in folders with names of their own. NULL if memory runs out.
 */
static bool *find_apart(const struct dl2_scan *scan)
{
    const struct dl2_index_draft *draft = &scan->draft;
    bool *apart = dl2_calloc(draft->count, sizeof *apart);
    for (size_t i = 0; apart && draft->shard_count && i < draft->count; i++) {
        const char *name = draft->shards[dl2_index_draft_entry(draft, i)->shard].name;
        const char *slash = strchr(name, '/');
        apart[i] = slash && !dl2_part_of_folder(name, (size_t)(slash - name));
    }
    return apart;
}

/* Sets the classes, and the label and the part of each sample, out of what the names say. */
static int use_tree(struct dl2_scan *scan, const char *const *names, struct dl2_tree *tree,
                    struct dl2_error *error)
{
    struct dl2_index_draft *draft = &scan->draft;
    const struct dl2_shard_format *shards = draft->container->shards;
    const bool by_names = !scan->label_count && (!shards || shards->keys_are_paths);
    DL2_AUTO_FREE uint8_t *counted = NULL;
    DL2_AUTO_FREE int32_t *class_of = NULL;
    if (by_names) {
        draft->parts = tree->names;
        tree->names = (struct dl2_part_list){0};
        return dl2_index_draft_set_classes(draft, (const char *const *)tree->classes,
                                           tree->class_count, error);
    }
    if (scan->label_count) {
        counted = count_labels(scan, tree);
        if (!counted)
            return dl2_error_memory(error, "a dataset");
        DL2_TRY(scan_make_classes(scan, counted, &class_of, error));
    }
    for (size_t i = 0; i < draft->count; i++)
        tree->labels[i] = label_of(scan, i) < 0 ? -1 : class_of[label_of(scan, i)];
    return tree->has_parts
               ? dl2_tree_name_parts(names, tree->labels, draft->count, draft->class_count,
                                     tree->parts, &draft->parts, error)
               : DL2_OK;
}

/* Counts the samples whose labels say that they have no class, or nothing that can be read. */
static int remark_absent(struct dl2_scan *scan, struct dl2_error *error)
{
    size_t absent = 0;
    const char *first = NULL;
    for (size_t i = 0; i < scan->draft.count; i++) {
        const int32_t label = label_of(scan, i);
        if (label < 0 ||
            dl2_label_number(label_at(scan, (uint32_t)label)->text) != DL2_LABEL_ABSENT)
            continue;
        if (!absent++)
            first = dl2_index_draft_key(&scan->draft, i);
    }
    return dl2_label_remark_absent(absent, scan->draft.count, first, &scan->draft.remarks, error);
}

/* ---- What was found */

static int remark_on(struct dl2_scan *scan, enum dl2_finding kind, struct dl2_error *error)
{
    static const char *const texts[DL2_FINDINGS][2] = {
        [DL2_FOUND_JSON] =
            {"samples with a .json beside them and no .cls",
             "labels are read from .cls alone; --label-field (label_field in Python) "
             "names a field of .json to read them from"},
        [DL2_FOUND_LABEL] = {"labels that are not read",
                             "a sample's label is NAME.cls, where its name ends at the first dot"},
        [DL2_FOUND_IMAGE] = {"images that are not loaded, since their samples have another",
                             "a sample is what has the same name up to the first dot; "
                             "--image-extension (image_extension in Python) says which of its "
                             "members is the image"},
        [DL2_FOUND_NO_IMAGE] = {"members of samples that have no image",
                                "they are left out; a sample is what has the same name up to the "
                                "first dot, without other members in between"},
        [DL2_FOUND_LINK] = {"symbolic links", "they are left out: pack the files themselves (tar "
                                              "--dereference)"},
    };
    return dl2_format_more(&scan->draft.remarks, error, "%s: %zu, such as %s; %s", texts[kind][0],
                           scan->findings.of[kind].count, scan->findings.of[kind].first,
                           texts[kind][1]);
}

static int remark_on_all(struct dl2_scan *scan, struct dl2_error *error)
{
    struct dl2_index_draft *draft = &scan->draft;
    const struct dl2_findings *findings = &scan->findings;
    if (findings->of[DL2_FOUND_UNLABELED].count)
        DL2_TRY(dl2_format_more(
            &draft->remarks, error, "no label in the field %s of %s for %zu of %zu: %s",
            draft->label_field ? draft->label_field : "label",
            draft->label_field ? ".json" : "meta_data", findings->of[DL2_FOUND_UNLABELED].count,
            draft->count, findings->of[DL2_FOUND_UNLABELED].first));
    for (int i = DL2_FOUND_UNLABELED + 1; i < DL2_FINDINGS; i++)
        if (findings->of[i].count)
            DL2_TRY(remark_on(scan, (enum dl2_finding)i, error));
    return DL2_OK;
}

/* Counts the images that would be masks by their names in a folder. In a shard, where a sample is
 * what has one name, no member of another sample is its mask. */
static int remark_masks(struct dl2_scan *scan, struct dl2_error *error)
{
    struct dl2_index_draft *draft = &scan->draft;
    DL2_AUTO_FREE struct dl2_sample *samples = NULL;
    const char *first = NULL;
    size_t found, i = 0;
    while (i < draft->count && !dl2_may_be_mask(dl2_index_draft_key(draft, i)))
        i++;
    if (i == draft->count)
        return DL2_OK;
    DL2_TRY(DL2_NEW(&samples, draft->count, "a dataset", error));
    for (i = 0; i < draft->count; i++) {
        const char *key = dl2_index_draft_key(draft, i);
        samples[i] = (struct dl2_sample){.key = key, .extension = key + strlen(key) + 1};
    }
    DL2_TRY(dl2_find_named_masks(samples, draft->count, &found, &first, error));
    return found
               ? dl2_format_more(
                     &draft->remarks, error,
                     "images that are called like masks of others: %zu, such as %s; here they are "
                     "images, since the mask of a sample NAME is its member NAME.mask.EXT; "
                     "unpacked into a folder they are masks, and dl2-transcode copy packs that",
                     found, first)
               : DL2_OK;
}

int dl2_scan_finish(struct dl2_scan *scan, struct dl2_error *error)
{
    struct dl2_index_draft *draft = &scan->draft;
    if (!draft->count && scan->findings.of[DL2_FOUND_NO_IMAGE].count)
        return dl2_error_set(error, DL2_ERR_FORMAT, "no sample has an image%s%s; there is %s",
                             draft->image_extension ? " ." : "",
                             draft->image_extension ? draft->image_extension : "",
                             scan->findings.of[DL2_FOUND_NO_IMAGE].first);
    if (!draft->count)
        return DL2_OK;
    if (draft->label_field && !scan->label_count)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "no sample has a label in the field %s of its .json: %s",
                             draft->label_field, scan->findings.of[DL2_FOUND_UNLABELED].first);
    DL2_AUTO_FREE const char **names = dl2_calloc(draft->count, sizeof *names);
    DL2_AUTO_FREE bool *apart = find_apart(scan);
    DL2_CLEANUP(dl2_tree_free) struct dl2_tree tree = {0};
    if (!names || !apart)
        return dl2_error_memory(error, "a dataset");
    for (size_t i = 0; i < draft->count; i++)
        names[i] = dl2_index_draft_key(draft, i);
    DL2_TRY(dl2_tree_read(names, draft->count, apart, &tree, error));
    DL2_TRY(use_tree(scan, names, &tree, error));
    DL2_TRY(remark_absent(scan, error));
    DL2_TRY(remark_on_all(scan, error));
    DL2_TRY(remark_masks(scan, error));
    draft->has_parts = tree.has_parts;
    for (size_t i = 0; i < draft->count; i++) {
        struct dl2_index_draft_entry *entry = dl2_index_draft_entry(draft, i);
        entry->part = tree.parts[i];
        entry->label = tree.labels[i];
    }
    return DL2_OK;
}

void dl2_scan_free(struct dl2_scan *scan)
{
    dl2_index_draft_free(&scan->draft);
    dl2_bytes_free(&scan->label_of);
    tdestroy(scan->tree, free);
    dl2_bytes_free(&scan->labels);
    for (size_t i = 0; i < scan->list_count; i++)
        free(scan->lists[i].names);
    free(scan->lists);
    dl2_findings_free(&scan->findings);
    *scan = (struct dl2_scan){0};
}
