/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which images a dataset has, of all that its reader knows: those of a split, of a subset, of a
 * selection; their order; and the partitions of a table that they lie in.
 */
#include "dataset/container.h"

#include "common/random.h"
#include "common/scope.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The number of the split that was asked for: 0 for all samples. */
enum { ALL_SPLITS = DL2_PART_NONE, NO_SUCH_SPLIT = DL2_MAX_PARTS + 1 };

static unsigned find_split(const struct dl2_dataset *dataset, const char *name)
{
    if (!name || !strcmp(name, "all"))
        return ALL_SPLITS;
    const unsigned part = dl2_part_find(&dataset->parts, name, strlen(name));
    return part ? part : NO_SUCH_SPLIT;
}

int dl2_choose_refuse_empty(const struct dl2_dataset *dataset, const char *path, const char *name,
                            struct dl2_error *error)
{
    static const char *const whats[DL2_PARTS] = {
        [ALL_SPLITS] = "samples",
        [DL2_PART_TRAIN] = "samples for training",
        [DL2_PART_VAL] = "samples for validation",
        [DL2_PART_TEST] = "samples for testing",
    };
    size_t there = 0;
    const unsigned split = find_split(dataset, name);
    for (unsigned p = 0; p < DL2_PARTS + dataset->parts.count; p++)
        there += dataset->part_counts[p];
    /* A name of its own is known only because there are samples of it. */
    if (there && split >= DL2_PARTS)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s: no split is called '%s', but %s; name a split that is there, or "
                             "all",
                             path, name, dl2_dataset_layout(dataset));
    if (!there)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s: no %s; looked for %s", path,
                             whats[split < DL2_PARTS ? split : ALL_SPLITS],
                             dataset->container->looks_for);
    return dl2_error_set(error, DL2_ERR_FORMAT,
                         "%s: no %s, but %s; name another split or another folder%s", path,
                         whats[split], dl2_dataset_layout(dataset),
                         split == DL2_PART_VAL && dataset->part_counts[DL2_PART_TRAIN]
                             ? "; dl2-train --val-fraction 0.2, val_fraction=0.2 in Python, "
                               "keeps a fifth of the training images for it"
                             : "");
}

/* ---- Splits */

/* While a dataset is opened: image `at` of all, those of a clip together. Each frame of a clip has
 * the clip's key. */
static struct dl2_entry describe_item(const struct dl2_dataset *dataset, size_t at)
{
    struct dl2_entry entry = dl2_reader_entry(dataset, dl2_reader_number(dataset, at));
    if (!dataset->clips)
        return entry;
    const struct dl2_clip *clip = &dataset->clips[dl2_clip_of_image(dataset, at)];
    entry.sample.key = dl2_clip_key(dataset, clip);
    entry.is_further = at > clip->first;
    return entry;
}

/* The items of one part: frames of one item stay together. */
struct items {
    const char **keys;
    int *labels;
    size_t count;
    uint32_t *of; /* the item of each sample of the part */
};

static void free_items(struct items *items)
{
    free(items->keys);
    free(items->labels);
    free(items->of);
}

/* To free_items() in any case. */
static int gather_items(const struct dl2_dataset *dataset, const uint8_t *parts, uint8_t part,
                        struct items *items, struct dl2_error *error)
{
    *items = (struct items){0};
    DL2_TRY(DL2_NEW(&items->keys, dataset->count, "a dataset", error));
    DL2_TRY(DL2_NEW(&items->labels, dataset->count, "a dataset", error));
    DL2_TRY(DL2_NEW(&items->of, dataset->count, "a dataset", error));
    for (size_t i = 0; i < dataset->count; i++) {
        if (parts[i] != part)
            continue;
        const struct dl2_entry entry = describe_item(dataset, i);
        if (!entry.is_further || !items->count) {
            items->keys[items->count] = entry.sample.key;
            items->labels[items->count++] = entry.sample.label;
        }
        items->of[i] = (uint32_t)items->count - 1;
    }
    return DL2_OK;
}

/* Splits the samples of one part by the seeded rule. */
static int split_items(struct dl2_dataset *dataset, const struct dl2_dataset_options *options,
                       uint8_t part, uint8_t *parts, struct dl2_error *error)
{
    DL2_CLEANUP(free_items) struct items items;
    DL2_TRY(gather_items(dataset, parts, part, &items, error));
    DL2_AUTO_FREE uint8_t *part_of_item = NULL;
    DL2_TRY(DL2_NEW(&part_of_item, items.count, "a dataset", error));
    DL2_TRY(dl2_split_by_rule(options, items.keys, items.labels, items.count, part_of_item, error));
    for (size_t i = 0; i < dataset->count; i++)
        if (parts[i] == part)
            parts[i] = part_of_item[items.of[i]];
    dataset->by_rule = true;
    return DL2_OK;
}

/* Refuses to split the samples for training of data that come with a split for validation, and
 * settings that would have no effect. `parts` are the data's own. */
static int check_rule(const struct dl2_dataset *dataset, const char *path,
                      const struct dl2_dataset_options *options, const uint8_t *parts,
                      struct dl2_error *error)
{
    static const char no_effect[] = "%s: val_fraction and split_seed have no effect here: %s";
    size_t there[DL2_PARTS] = {0};
    for (size_t i = 0; i < dataset->count; i++)
        if (parts[i] < DL2_PARTS)
            there[parts[i]]++;
    if (there[DL2_PART_TRAIN] && there[DL2_PART_VAL])
        return dl2_error_set(error, DL2_ERR_ARGUMENT, no_effect, path,
                             "the dataset has a split for validation of its own; leave them out, "
                             "or open the folder of the split train alone, to split that");
    if (!there[DL2_PART_TRAIN])
        return dl2_error_set(error, DL2_ERR_ARGUMENT, no_effect, path,
                             "it has no split train that they could split; leave them out");
    if (!(options->val_fraction > 0))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s: split_seed has no effect without val_fraction where the data "
                             "come with splits",
                             path);
    return DL2_OK;
}

/* The split of each sample: of the data's own, by where the data lie, or by the rule. */
static int assign_parts(struct dl2_dataset *dataset, const char *path, unsigned split,
                        const struct dl2_dataset_options *options, uint8_t *parts,
                        struct dl2_error *error)
{
    for (size_t i = 0; i < dataset->count; i++)
        parts[i] = dataset->has_parts ? describe_item(dataset, i).part : dataset->own_part;
    if (!dataset->has_parts && !dataset->own_part)
        return split_items(dataset, options, DL2_PART_NONE, parts, error);
    const bool concerned = split == DL2_PART_TRAIN || split == DL2_PART_VAL || split == ALL_SPLITS;
    if (!concerned || !(options->val_fraction > 0 || options->split_seed))
        return DL2_OK;
    DL2_TRY(check_rule(dataset, path, options, parts, error));
    return split_items(dataset, options, DL2_PART_TRAIN, parts, error);
}

static void count_item(struct dl2_dataset *dataset, const struct dl2_entry *entry, unsigned part)
{
    if (dataset->clips && entry->is_further)
        return;
    if (!dataset->part_counts[part]++)
        dataset->part_names[part] = entry->sample.name;
    dataset->unlabeled[part] += entry->sample.label < 0;
}

/* Is a sample in the split that was asked for? If there are classes, it must have one. */
static bool is_in_split(const struct dl2_dataset *dataset, unsigned split, unsigned part, int label)
{
    /* A path that lies in a test split may be used for validation: it was named. */
    const bool named = split == DL2_PART_VAL && part == DL2_PART_TEST && dataset->own_part;
    return split == ALL_SPLITS ||
           ((part == split || named) && (label >= 0 || !dataset->class_count));
}

/* In place of a sample's part: it is one for training that the subset lacks. */
enum { LEFT_OUT = DL2_MAX_PARTS };

static bool is_whole(const struct dl2_subset *subset)
{
    return subset->fraction == 0 || subset->fraction == 1;
}

/* Takes a subset of the items for training: marks the samples of the others in `parts`. */
static int leave_out(struct dl2_dataset *dataset, const struct dl2_subset *subset, uint8_t *parts,
                     struct dl2_error *error)
{
    DL2_CLEANUP(free_items) struct items items;
    DL2_TRY(gather_items(dataset, parts, DL2_PART_TRAIN, &items, error));
    DL2_AUTO_FREE bool *taken = NULL;
    DL2_TRY(DL2_NEW(&taken, items.count, "a dataset", error));
    DL2_TRY(dl2_subset_by_rule(subset, items.keys, items.labels, items.count, taken, error));
    for (size_t i = 0; i < dataset->count; i++) {
        if (parts[i] != DL2_PART_TRAIN)
            continue;
        if (!taken[items.of[i]])
            parts[i] = LEFT_OUT;
        else if (!dataset->clips || !describe_item(dataset, i).is_further)
            dataset->taken++;
    }
    return DL2_OK;
}

/* Leaves the clips whose images, at these places of all, were chosen. Places ascend. */
static void keep_clips(struct dl2_dataset *dataset, const uint32_t *places, size_t count)
{
    size_t kept = 0, at = 0;
    for (size_t i = 0; at < count && i < dataset->clip_count; i++) {
        if (dataset->clips[i].first != places[at])
            continue;
        dataset->clips[kept] = dataset->clips[i];
        dataset->clips[kept++].first = at;
        at += dataset->clips[i].count;
    }
    dataset->clip_count = kept;
}

int dl2_choose_split(struct dl2_dataset *dataset, const char *path,
                     const struct dl2_dataset_options *options, struct dl2_error *error)
{
    const unsigned split = find_split(dataset, options->split);
    if (split == ALL_SPLITS && is_whole(&options->subset)) {
        for (size_t i = 0; i < dataset->count; i++) {
            const struct dl2_entry entry = describe_item(dataset, i);
            count_item(dataset, &entry, entry.part);
        }
        return DL2_OK;
    }
    DL2_AUTO_FREE uint8_t *parts = dl2_calloc(dataset->count, 1);
    DL2_AUTO_FREE uint32_t *places = dl2_calloc(dataset->count, sizeof *places);
    if (!parts || !places)
        return dl2_error_memory(error, "a dataset");
    DL2_TRY(assign_parts(dataset, path, split, options, parts, error));
    for (size_t i = 0; i < dataset->count; i++) {
        const struct dl2_entry entry = describe_item(dataset, i);
        count_item(dataset, &entry, parts[i]);
    }
    if (!is_whole(&options->subset) && split == ALL_SPLITS && !dataset->part_counts[DL2_PART_TRAIN])
        return dl2_error_set(
            error, DL2_ERR_ARGUMENT,
            "%s: a subset is a part of the images for training, and there are none", path);
    if (!is_whole(&options->subset))
        DL2_TRY(leave_out(dataset, &options->subset, parts, error));
    size_t kept = 0;
    for (size_t i = 0; i < dataset->count; i++) {
        const int label = describe_item(dataset, i).sample.label;
        if (parts[i] != LEFT_OUT && is_in_split(dataset, split, parts[i], label))
            places[kept++] = (uint32_t)i;
    }
    keep_clips(dataset, places, kept);
    for (size_t i = 0; i < kept; i++)
        places[i] = (uint32_t)dl2_reader_number(dataset, places[i]);
    dataset->count = kept;
    free(dataset->chosen);
    dataset->chosen = places;
    places = NULL;
    return DL2_OK;
}

/* ---- Partitions */

void dl2_choose_forget_partitions(struct dl2_dataset *dataset)
{
    free(dataset->by_partition);
    free(dataset->starts);
    dataset->by_partition = dataset->starts = NULL;
    dataset->partitions = 0;
}

static uint32_t table_of(const struct dl2_dataset *dataset, size_t index)
{
    return dataset->container->reader->table(dataset, dl2_reader_number(dataset, index));
}

/* Counts the samples of each table, and gives those that have some the next number. */
static void number_partitions(struct dl2_dataset *dataset, uint32_t *partition_of)
{
    for (size_t i = 0; i < dataset->count; i++)
        partition_of[table_of(dataset, i)]++;
    for (unsigned table = 0; table < dataset->tables; table++)
        if (partition_of[table]) {
            const uint32_t start = dataset->starts[dataset->partitions];
            dataset->starts[dataset->partitions + 1] = start + partition_of[table];
            partition_of[table] = dataset->partitions++;
        }
}

int dl2_choose_partitions(struct dl2_dataset *dataset, struct dl2_error *error)
{
    if (dataset->tables < 2)
        return DL2_OK;
    DL2_AUTO_FREE uint32_t *partition_of = NULL;
    DL2_TRY(DL2_NEW(&partition_of, dataset->tables, "a dataset", error));
    DL2_TRY(DL2_NEW(&dataset->starts, (size_t)dataset->tables + 1, "a dataset", error));
    DL2_TRY(DL2_NEW(&dataset->by_partition, dataset->count, "a dataset", error));
    number_partitions(dataset, partition_of);
    for (size_t i = 0; i < dataset->count; i++)
        dataset->by_partition[dataset->starts[partition_of[table_of(dataset, i)]]++] = (uint32_t)i;
    /* Each start has moved to the end of its samples, which is the next one's start. */
    for (unsigned p = dataset->partitions; p > 0; p--)
        dataset->starts[p] = dataset->starts[p - 1];
    dataset->starts[0] = 0;
    if (dataset->partitions < 2)
        dl2_choose_forget_partitions(dataset);
    return DL2_OK;
}

unsigned dl2_dataset_partitions(const struct dl2_dataset *dataset)
{
    return dataset->partitions;
}

const uint32_t *dl2_dataset_partition(const struct dl2_dataset *dataset, unsigned partition,
                                      uint32_t *count)
{
    const uint32_t *starts = dataset->starts + partition;
    *count = starts[1] - starts[0];
    return dataset->by_partition + starts[0];
}

/* ---- Selections */

/* Items are clips if there are any, also where frames are samples. */
static size_t item_count(const struct dl2_dataset *dataset)
{
    return dataset->clips ? dataset->clip_count : dataset->count;
}

static struct dl2_clip item_at(const struct dl2_dataset *dataset, uint32_t number)
{
    return dataset->clips ? dataset->clips[number] : (struct dl2_clip){number, 1, 0};
}

/* The number of images of the items of these numbers, at least 1. */
static int count_selected(const struct dl2_dataset *dataset, const uint32_t *numbers, size_t count,
                          size_t *images, struct dl2_error *error)
{
    *images = 0;
    if (!count)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "no sample was selected");
    for (size_t i = 0; i < count; i++) {
        if (numbers[i] >= item_count(dataset))
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "there is no sample number %" PRIu32 " to select among %zu",
                                 numbers[i], item_count(dataset));
        *images += item_at(dataset, numbers[i]).count;
    }
    if (*images > UINT32_MAX)
        return dl2_error_set(error, DL2_ERR_LIMIT, "%zu images pass the limit of 2^32", *images);
    return DL2_OK;
}

static int select_items(struct dl2_dataset *dataset, const uint32_t *numbers, size_t count,
                        struct dl2_error *error)
{
    size_t images, at = 0;
    DL2_TRY(count_selected(dataset, numbers, count, &images, error));
    DL2_AUTO_FREE uint32_t *chosen = NULL;
    struct dl2_clip *clips = NULL;
    DL2_TRY(DL2_NEW(&chosen, images, "a choice of samples", error));
    if (dataset->clips)
        DL2_TRY(DL2_NEW(&clips, count, "a choice of samples", error));
    for (size_t i = 0; i < count; i++) {
        struct dl2_clip item = item_at(dataset, numbers[i]);
        const size_t first = item.first;
        item.first = at;
        if (clips)
            clips[i] = item;
        for (uint32_t k = 0; k < item.count; k++)
            chosen[at++] = (uint32_t)dl2_reader_number(dataset, first + k);
    }
    dl2_choose_forget_partitions(dataset);
    free(dataset->chosen);
    free(dataset->clips);
    dataset->chosen = chosen;
    chosen = NULL;
    dataset->clips = clips;
    dataset->clip_count = clips ? count : 0;
    dataset->count = images;
    dataset->is_selected = true;
    return DL2_OK;
}

int dl2_dataset_select(struct dl2_dataset *dataset, const uint32_t *numbers, size_t count,
                       struct dl2_error *error)
{
    if (dataset->clips && dataset->by_frame)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "frames of clips cannot be selected one by one");
    return select_items(dataset, numbers, count, error);
}

int dl2_dataset_shuffle(struct dl2_dataset *dataset, uint64_t seed, struct dl2_error *error)
{
    const size_t count = item_count(dataset);
    struct dl2_random random;
    DL2_AUTO_FREE uint32_t *order = NULL;
    DL2_TRY(DL2_NEW(&order, count, "an order", error));
    dl2_random_init(&random, seed, DL2_RANDOM_PACK, 0, 0);
    dl2_random_permutation(&random, order, (uint32_t)count);
    return select_items(dataset, order, count, error);
}
