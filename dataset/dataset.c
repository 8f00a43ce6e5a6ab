/* SPDX-License-Identifier: BSD-2-Clause */
#include "dataset/container.h"

#include "common/file.h"
#include "common/json.h"
#include "common/quote.h"
#include "common/random.h"
#include "dataset/packed.h"
#include "dataset/postgresql/database_uri.h"
#include "dataset/variant_facts.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

/* The last row that knows a path reads it: a folder can be anything, so its row comes first. NULL
 * if no row does. */
static const struct dl2_container *probe_container(const char *path)
{
    const struct dl2_container *packed = dl2_shards_probe(path), *found = NULL, *row;
    for (size_t i = 0; (row = dl2_container_at(i)); i++)
        if (row->shards ? row == packed : row->probe(path))
            found = row;
    return found;
}

bool dl2_dataset_is_known(const char *path)
{
    return probe_container(path) != NULL;
}

static int unknown_path(const char *path, struct dl2_error *error)
{
    struct stat status;
    char known[512] = "";
    if (dl2_dataset_is_database(path))
        return dl2_database_unsupported(path, error);
    if (stat(path, &status) < 0)
        return dl2_error_system(error, "%s", path);
    const struct dl2_container *container;
    for (size_t i = 0; (container = dl2_container_at(i)); i++)
        dl2_list_name(known, sizeof known, container->looks_for);
    return dl2_error_set(error, DL2_ERR_FORMAT, "%s: no dataset; looked for %s", path, known);
}

/* The number of the split that was asked for: 0 for all samples. */
enum { ALL_SPLITS = DL2_PART_NONE, NO_SUCH_SPLIT = DL2_MAX_PARTS + 1 };

static unsigned find_split(const struct dl2_dataset *dataset, const char *name)
{
    if (!name || !strcmp(name, "all"))
        return ALL_SPLITS;
    const unsigned part = dl2_part_find(&dataset->parts, name, strlen(name));
    return part ? part : NO_SUCH_SPLIT;
}

static int no_samples(const struct dl2_dataset *dataset, const char *path, const char *name,
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
                         "%s: no %s, but %s; name another split or another folder", path,
                         whats[split], dl2_dataset_layout(dataset));
}

/* ---- Splits */

/* An image by the reader's number. */
static struct dl2_entry describe_image(const struct dl2_dataset *dataset, size_t number)
{
    struct dl2_entry entry = {.part = DL2_PART_NONE};
    dataset->container->reader->describe(dataset, number, &entry);
    return entry;
}

static size_t number_of(const struct dl2_dataset *dataset, size_t image)
{
    return dataset->chosen ? dataset->chosen[image] : image;
}

/* While a dataset is opened: image `at` of all, those of a clip together. Each frame of a clip has
 * the clip's key. */
static struct dl2_entry describe_item(const struct dl2_dataset *dataset, size_t at)
{
    struct dl2_entry entry = describe_image(dataset, number_of(dataset, at));
    if (!dataset->clips)
        return entry;
    const struct dl2_clip *clip = &dataset->clips[dl2_clip_of_image(dataset, at)];
    entry.key = dl2_clip_key(dataset, clip);
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
    *items = (struct items){dl2_calloc(dataset->count, sizeof *items->keys),
                            dl2_calloc(dataset->count, sizeof *items->labels), 0,
                            dl2_calloc(dataset->count, sizeof *items->of)};
    if (!items->keys || !items->labels || !items->of)
        return dl2_error_memory(error, "a dataset");
    for (size_t i = 0; i < dataset->count; i++) {
        if (parts[i] != part)
            continue;
        const struct dl2_entry entry = describe_item(dataset, i);
        if (!entry.is_further || !items->count) {
            items->keys[items->count] = entry.key;
            items->labels[items->count++] = entry.label;
        }
        items->of[i] = (uint32_t)items->count - 1;
    }
    return DL2_OK;
}

/* Splits the samples of one part by the seeded rule. */
static int split_items(struct dl2_dataset *dataset, const struct dl2_dataset_options *options,
                       uint8_t part, uint8_t *parts, struct dl2_error *error)
{
    struct items items;
    uint8_t *part_of_item = dl2_calloc(dataset->count, 1);
    int status = gather_items(dataset, parts, part, &items, error);
    if (status == DL2_OK && !part_of_item)
        status = dl2_error_memory(error, "a dataset");
    if (status == DL2_OK)
        status =
            dl2_split_by_rule(options, items.keys, items.labels, items.count, part_of_item, error);
    for (size_t i = 0; status == DL2_OK && i < dataset->count; i++)
        if (parts[i] == part)
            parts[i] = part_of_item[items.of[i]];
    dataset->by_rule = true;
    free_items(&items);
    free(part_of_item);
    return status;
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

static void count_image(struct dl2_dataset *dataset, size_t at, unsigned part)
{
    const struct dl2_entry entry = describe_item(dataset, at);
    if (dataset->clips && entry.is_further)
        return;
    if (!dataset->part_counts[part]++)
        dataset->part_names[part] = entry.name;
    dataset->unlabelled[part] += entry.label < 0;
}

/* Is a sample in the split that was asked for? If there are classes, it must have one. */
static bool is_in_split(const struct dl2_dataset *dataset, unsigned split,
                        const struct dl2_entry *entry)
{
    /* A path that lies in a test split may be used for validation: it was named. */
    const bool named = split == DL2_PART_VAL && entry->part == DL2_PART_TEST && dataset->own_part;
    return (entry->part == split || named) && (entry->label >= 0 || !dataset->class_count);
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
    struct items items;
    bool *taken = dl2_calloc(dataset->count, sizeof *taken);
    size_t total;
    int status = gather_items(dataset, parts, DL2_PART_TRAIN, &items, error);
    if (status == DL2_OK && !taken)
        status = dl2_error_memory(error, "a dataset");
    if (status == DL2_OK)
        status =
            dl2_subset_by_rule(subset, items.keys, items.labels, items.count, taken, &total, error);
    for (size_t i = 0; status == DL2_OK && i < dataset->count; i++) {
        if (parts[i] != DL2_PART_TRAIN)
            continue;
        if (!taken[items.of[i]])
            parts[i] = LEFT_OUT;
        else if (!dataset->clips || !describe_item(dataset, i).is_further)
            dataset->taken++;
    }
    free_items(&items);
    free(taken);
    return status;
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

/* The part of each sample, and which samples the dataset has, if it has not simply all. */
static int choose_samples(struct dl2_dataset *dataset, const char *path,
                          const struct dl2_dataset_options *options, uint8_t *parts,
                          uint32_t *places, struct dl2_error *error)
{
    const unsigned split = find_split(dataset, options->split);
    DL2_TRY(assign_parts(dataset, path, split, options, parts, error));
    for (size_t i = 0; i < dataset->count; i++)
        count_image(dataset, i, parts[i]);
    if (!is_whole(&options->subset))
        DL2_TRY(leave_out(dataset, &options->subset, parts, error));
    size_t kept = 0;
    for (size_t i = 0; i < dataset->count; i++) {
        struct dl2_entry entry = describe_item(dataset, i);
        if (parts[i] == LEFT_OUT)
            continue;
        entry.part = parts[i];
        if (split == ALL_SPLITS || is_in_split(dataset, split, &entry))
            places[kept++] = (uint32_t)i;
    }
    keep_clips(dataset, places, kept);
    for (size_t i = 0; i < kept; i++)
        places[i] = (uint32_t)number_of(dataset, places[i]);
    dataset->count = kept;
    return DL2_OK;
}

/* Counts the samples of each part, and chooses those of the split that was asked for. */
static int choose_split(struct dl2_dataset *dataset, const char *path,
                        const struct dl2_dataset_options *options, struct dl2_error *error)
{
    if (find_split(dataset, options->split) == ALL_SPLITS && is_whole(&options->subset)) {
        for (size_t i = 0; i < dataset->count; i++)
            count_image(dataset, i, describe_item(dataset, i).part);
        return DL2_OK;
    }
    uint8_t *parts = dl2_calloc(dataset->count, 1);
    uint32_t *places = dl2_calloc(dataset->count, sizeof *places);
    const int status = parts && places
                           ? choose_samples(dataset, path, options, parts, places, error)
                           : dl2_error_memory(error, "a dataset");
    free(parts);
    free(dataset->chosen);
    dataset->chosen = places;
    return status;
}

/* The index of image `number` in the split, SIZE_MAX if the split lacks it. */
static size_t index_of(const struct dl2_dataset *dataset, size_t number)
{
    size_t low = 0, high = dataset->count;
    while (dataset->is_selected && low < dataset->count && number_of(dataset, low) != number)
        low++;
    if (dataset->is_selected)
        high = low;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (number_of(dataset, middle) < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < dataset->count && number_of(dataset, low) == number ? low : SIZE_MAX;
}

/* ---- Partitions */

static void forget_partitions(struct dl2_dataset *dataset)
{
    free(dataset->by_partition);
    free(dataset->starts);
    dataset->by_partition = dataset->starts = NULL;
    dataset->partitions = 0;
}

static uint32_t table_of(const struct dl2_dataset *dataset, size_t index)
{
    return dataset->container->reader->table(dataset, number_of(dataset, index));
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

/* Sorts the samples of the split by the partitions that they lie in. */
static int find_partitions(struct dl2_dataset *dataset, struct dl2_error *error)
{
    if (dataset->tables < 2)
        return DL2_OK;
    uint32_t *partition_of = dl2_calloc(dataset->tables, sizeof *partition_of);
    dataset->starts = dl2_calloc((size_t)dataset->tables + 1, sizeof *dataset->starts);
    dataset->by_partition = dl2_calloc(dataset->count, sizeof *dataset->by_partition);
    if (!partition_of || !dataset->starts || !dataset->by_partition) {
        free(partition_of);
        return dl2_error_memory(error, "a dataset");
    }
    number_partitions(dataset, partition_of);
    for (size_t i = 0; i < dataset->count; i++)
        dataset->by_partition[dataset->starts[partition_of[table_of(dataset, i)]]++] = (uint32_t)i;
    /* Each start has moved to the end of its samples, which is the next one's start. */
    for (unsigned p = dataset->partitions; p > 0; p--)
        dataset->starts[p] = dataset->starts[p - 1];
    dataset->starts[0] = 0;
    free(partition_of);
    if (dataset->partitions < 2)
        forget_partitions(dataset);
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

/* ---- Opening */

/* Does a dl2-variant.json say that there is more to come, here or above (ROOT/train/rose)? */
static int look_for_completeness(struct dl2_dataset *dataset, const char *path,
                                 struct dl2_error *error)
{
    enum { LEVELS = 3 };
    const size_t length = dl2_is_file(path) ? (size_t)(dl2_path_base(path) - path) : strlen(path);
    char *place;
    if (asprintf(&place, "%.*s%s/../..", (int)length, path, length ? "" : ".") < 0)
        return dl2_error_memory(error, "a dataset");
    int status = DL2_OK;
    const size_t start = strlen(place) - strlen("/../..");
    for (size_t level = 0; status == DL2_OK && level < LEVELS; level++) {
        json_t *summary;
        char *above = strndup(place, start + level * strlen("/.."));
        status =
            above ? dl2_facts_load(above, &summary, error) : dl2_error_memory(error, "a dataset");
        if (status == DL2_OK && json_is_false(json_object_get(summary, "complete")))
            dataset->is_incomplete = true;
        if (status == DL2_OK)
            json_decref(summary);
        free(above);
    }
    free(place);
    return status;
}

static int open_by_container(struct dl2_dataset *dataset, const char *path,
                             const struct dl2_dataset_options *options, struct dl2_error *error)
{
    unsigned depth = 1;
    const enum dl2_part own_part =
        dl2_dataset_is_database(path) ? DL2_PART_NONE : dl2_part_of_path(path, &depth);
    DL2_TRY(dataset->container->reader->open(dataset, path, options, error));
    if (dataset->count > UINT32_MAX)
        return dl2_error_set(error, DL2_ERR_LIMIT, "%s: %zu samples pass the limit of 2^32", path,
                             dataset->count);
    /* A folder of images in a split's folder is of that split; one with classes is a dataset. */
    if (!dataset->has_parts && (depth == 0 || !dataset->class_count))
        dataset->own_part = own_part;
    dataset->all_images = dataset->count;
    DL2_TRY(dl2_clips_find(dataset, path, options, error));
    DL2_TRY(choose_split(dataset, path, options, error));
    DL2_TRY(find_partitions(dataset, error));
    if (!dl2_dataset_is_database(path)) /* whose reader has looked */
        DL2_TRY(look_for_completeness(dataset, path, error));
    DL2_TRY(dl2_dataset_describe(dataset, path, options, error));
    return dataset->count ? DL2_OK : no_samples(dataset, path, options->split, error);
}

int dl2_dataset_open(const char *path, const struct dl2_dataset_options *options,
                     struct dl2_dataset **out, struct dl2_error *error)
{
    *out = NULL;
    if (options->val_fraction < 0 || options->val_fraction > 1) /* NAN: not given */
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "a validation part of %g is not within 0 and 1",
                             options->val_fraction);
    if (!(options->subset.fraction >= 0 && options->subset.fraction <= 1))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "a subset of %g is not within 0 and 1",
                             options->subset.fraction);
    const struct dl2_container *container = probe_container(path);
    if (!container)
        return unknown_path(path, error);
    struct dl2_dataset *dataset = dl2_calloc(1, sizeof *dataset);
    if (!dataset)
        return dl2_error_memory(error, "a dataset");
    dataset->container = container;
    const int status = open_by_container(dataset, path, options, error);
    if (status < 0)
        dl2_dataset_close(dataset);
    else
        *out = dataset;
    return status;
}

void dl2_dataset_close(struct dl2_dataset *dataset)
{
    if (!dataset)
        return;
    if (dataset->state)
        dataset->container->reader->close(dataset);
    for (size_t i = 0; i < dataset->message_count; i++)
        free(dataset->messages[i]);
    free(dataset->messages);
    free(dataset->remark);
    forget_partitions(dataset);
    dl2_clips_free(dataset);
    free(dataset->chosen);
    free(dataset->classes);
    dl2_part_list_free(&dataset->parts);
    free(dataset);
}

/* The clips of these numbers, and their images: *images of them, in *chosen. */
static int select_clips(const struct dl2_dataset *dataset, const uint32_t *numbers, size_t count,
                        struct dl2_clip **clips, uint32_t **chosen, size_t *images,
                        struct dl2_error *error)
{
    size_t at = 0;
    *images = 0;
    for (size_t i = 0; i < count; i++)
        *images += dataset->clips[numbers[i]].count;
    if (*images > UINT32_MAX)
        return dl2_error_set(error, DL2_ERR_LIMIT, "%zu frames pass the limit of 2^32", *images);
    *clips = dl2_calloc(count, sizeof **clips);
    *chosen = dl2_calloc(*images, sizeof **chosen);
    if (!*clips || !*chosen) {
        free(*clips);
        free(*chosen);
        return dl2_error_memory(error, "%zu clips", count);
    }
    for (size_t i = 0; i < count; i++) {
        const struct dl2_clip *from = &dataset->clips[numbers[i]];
        (*clips)[i] = *from;
        (*clips)[i].first = at;
        for (uint32_t k = 0; k < from->count; k++)
            (*chosen)[at++] = (uint32_t)number_of(dataset, from->first + k);
    }
    return DL2_OK;
}

static int select_images(const struct dl2_dataset *dataset, const uint32_t *numbers, size_t count,
                         uint32_t **chosen, struct dl2_error *error)
{
    *chosen = dl2_calloc(count, sizeof **chosen);
    if (!*chosen)
        return dl2_error_memory(error, "%zu samples", count);
    for (size_t i = 0; i < count; i++)
        (*chosen)[i] = (uint32_t)number_of(dataset, numbers[i]);
    return DL2_OK;
}

/* Leaves `count` items, clips if there are any, also where frames are samples. */
static int select_items(struct dl2_dataset *dataset, const uint32_t *numbers, size_t count,
                        struct dl2_error *error)
{
    const size_t there = dataset->clips ? dataset->clip_count : dataset->count;
    struct dl2_clip *clips = NULL;
    uint32_t *chosen = NULL;
    size_t images = count;
    if (!count)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "no sample was selected");
    if (count > UINT32_MAX)
        return dl2_error_set(error, DL2_ERR_LIMIT, "%zu samples pass the limit of 2^32", count);
    for (size_t i = 0; i < count; i++)
        if (numbers[i] >= there)
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "there is no sample number %" PRIu32 " to select among %zu",
                                 numbers[i], there);
    DL2_TRY(dataset->clips ? select_clips(dataset, numbers, count, &clips, &chosen, &images, error)
                           : select_images(dataset, numbers, count, &chosen, error));
    forget_partitions(dataset);
    free(dataset->chosen);
    free(dataset->clips);
    dataset->chosen = chosen;
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

/* ---- What is in it */

/* Are samples clips, and not images? */
static bool has_clips(const struct dl2_dataset *dataset)
{
    return dataset->clips && !dataset->by_frame;
}

size_t dl2_dataset_count(const struct dl2_dataset *dataset)
{
    return has_clips(dataset) ? dataset->clip_count : dataset->count;
}

enum dl2_sample_kind dl2_dataset_kind(const struct dl2_dataset *dataset)
{
    return dataset->clips ? DL2_SAMPLE_CLIP : DL2_SAMPLE_IMAGE;
}

size_t dl2_dataset_image_count(const struct dl2_dataset *dataset)
{
    return dataset->count;
}

struct dl2_image_range dl2_dataset_frames(const struct dl2_dataset *dataset, size_t index)
{
    if (!has_clips(dataset))
        return (struct dl2_image_range){index, 1};
    return (struct dl2_image_range){dataset->clips[index].first, dataset->clips[index].count};
}

struct dl2_image_range dl2_dataset_clip_of(const struct dl2_dataset *dataset, size_t image,
                                           const char **key)
{
    if (!dataset->clips) {
        *key = describe_image(dataset, number_of(dataset, image)).key;
        return (struct dl2_image_range){image, 1};
    }
    const struct dl2_clip *clip = &dataset->clips[dl2_clip_of_image(dataset, image)];
    *key = dl2_clip_key(dataset, clip);
    return (struct dl2_image_range){clip->first, clip->count};
}

/* The reader's number of a sample's image, of a clip its first. */
static size_t first_number(const struct dl2_dataset *dataset, size_t index)
{
    return number_of(dataset, dl2_dataset_frames(dataset, index).first);
}

uint64_t dl2_dataset_bytes(const struct dl2_dataset *dataset)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < dataset->count; i++) {
        struct dl2_sample sample;
        dl2_dataset_image(dataset, i, &sample);
        bytes += sample.bytes;
    }
    return bytes;
}

unsigned dl2_dataset_class_count(const struct dl2_dataset *dataset)
{
    return dataset->class_count;
}

const char *dl2_dataset_class_name(const struct dl2_dataset *dataset, unsigned label)
{
    return label < dataset->class_count ? dataset->classes[label] : NULL;
}

bool dl2_dataset_same_classes(const struct dl2_dataset *a, const struct dl2_dataset *b)
{
    bool same = a->class_count == b->class_count;
    for (unsigned i = 0; same && i < a->class_count; i++)
        same = !strcmp(a->classes[i], b->classes[i]);
    return same;
}

int dl2_dataset_shuffle(struct dl2_dataset *dataset, uint64_t seed, struct dl2_error *error)
{
    const size_t count = dataset->clips ? dataset->clip_count : dataset->count;
    struct dl2_random random;
    if (count > UINT32_MAX)
        return dl2_error_set(error, DL2_ERR_LIMIT, "%zu samples pass the limit of 2^32", count);
    uint32_t *order = dl2_calloc(count, sizeof *order);
    if (!order)
        return dl2_error_memory(error, "%zu samples", count);
    dl2_random_init(&random, seed, DL2_RANDOM_PACK, 0, 0);
    dl2_random_permutation(&random, order, (uint32_t)count);
    const int status = select_items(dataset, order, count, error);
    free(order);
    return status;
}

static uint64_t hash_text(const char *text, uint64_t hash)
{
    return XXH3_64bits_withSeed(text, strlen(text) + 1, hash);
}

static const char *split_of_image(const struct dl2_dataset *dataset, size_t image)
{
    const struct dl2_entry entry = describe_image(dataset, number_of(dataset, image));
    const bool in_one = dataset->has_parts && (entry.label >= 0 || !dataset->class_count);
    return dl2_part_name(&dataset->parts, in_one ? entry.part : DL2_PART_NONE);
}

static uint64_t sidecar_sum(const struct dl2_dataset *dataset, size_t image)
{
    const struct dl2_reader *reader = dataset->container->reader;
    return reader->sidecar_sum ? reader->sidecar_sum(dataset, number_of(dataset, image)) : 0;
}

int dl2_dataset_fingerprint(const struct dl2_dataset *dataset, uint64_t *fingerprint,
                            struct dl2_error *error)
{
    const struct dl2_reader *reader = dataset->container->reader;
    struct dl2_bytes version = DL2_BYTES_INIT;
    uint64_t hash = hash_text(dataset->container->name, dataset->class_count);
    const int status = reader->version ? reader->version(dataset, &version, error) : DL2_OK;
    if (version.size)
        hash = XXH3_64bits_withSeed(version.data, version.size, hash);
    dl2_bytes_free(&version);
    for (unsigned i = 0; i < dataset->class_count; i++)
        hash = hash_text(dataset->classes[i], hash);
    for (size_t i = 0; i < dataset->count; i++) {
        struct dl2_sample sample;
        dl2_dataset_image(dataset, i, &sample);
        const uint64_t facts[] = {(uint64_t)sample.label, sample.bytes,
                                  reader->version ? 0 : (uint64_t)sample.mtime_ns,
                                  sidecar_sum(dataset, i)};
        hash = hash_text(sample.name, hash);
        hash = hash_text(split_of_image(dataset, i), hash);
        hash = XXH3_64bits_withSeed(facts, sizeof facts, hash);
    }
    for (size_t i = 0; i < dataset->clip_count; i++)
        hash = hash_text(dl2_clip_key(dataset, &dataset->clips[i]), hash);
    *fingerprint = hash;
    return status;
}

void dl2_dataset_hash(const struct dl2_dataset *dataset, uint64_t *samples, uint64_t *times)
{
    const bool timed = !dataset->container->reader->version;
    *samples = dataset->class_count;
    *times = 0;
    for (unsigned i = 0; i < dataset->class_count; i++)
        *samples = hash_text(dataset->classes[i], *samples);
    for (size_t i = 0; i < dataset->clip_count; i++)
        *samples = hash_text(dl2_clip_key(dataset, &dataset->clips[i]), *samples);
    for (size_t i = 0; i < dataset->count; i++) {
        struct dl2_sample sample;
        dl2_dataset_image(dataset, i, &sample);
        const uint64_t facts[] = {(uint64_t)sample.label, sample.bytes};
        *samples = XXH3_64bits_withSeed(facts, sizeof facts, hash_text(sample.name, *samples));
        if (timed)
            *times = XXH3_64bits_withSeed(&sample.mtime_ns, sizeof sample.mtime_ns, *times);
    }
}

const char *dl2_dataset_container(const struct dl2_dataset *dataset)
{
    return dataset->container->name;
}

bool dl2_dataset_is_incomplete(const struct dl2_dataset *dataset)
{
    return dataset->is_incomplete;
}

bool dl2_dataset_has_parts(const struct dl2_dataset *dataset)
{
    return dataset->has_parts;
}

const char *dl2_dataset_split_of(const struct dl2_dataset *dataset, size_t index)
{
    return split_of_image(dataset, dl2_dataset_frames(dataset, index).first);
}

void dl2_dataset_image(const struct dl2_dataset *dataset, size_t image, struct dl2_sample *facts)
{
    const size_t number = number_of(dataset, image);
    dataset->container->reader->sample(dataset, number, facts);
    if (dataset->clips)
        facts->key = dl2_frame_key(dataset, number);
}

void dl2_dataset_sample(const struct dl2_dataset *dataset, size_t index, struct dl2_sample *sample)
{
    const struct dl2_image_range frames = dl2_dataset_frames(dataset, index);
    dl2_dataset_image(dataset, frames.first, sample);
    if (!has_clips(dataset))
        return;
    sample->key = sample->name = dl2_clip_key(dataset, &dataset->clips[index]);
    for (size_t i = 1; i < frames.count; i++) {
        struct dl2_sample frame;
        dl2_dataset_image(dataset, frames.first + i, &frame);
        sample->bytes += frame.bytes;
    }
}

int dl2_dataset_read(const struct dl2_dataset *dataset, size_t image, struct dl2_bytes *scratch,
                     const uint8_t **data, size_t *size, struct dl2_error *error)
{
    return dataset->container->reader->read(dataset, number_of(dataset, image), NULL, scratch, data,
                                            size, error);
}

int dl2_dataset_read_sidecar(const struct dl2_dataset *dataset, size_t index, const char *extension,
                             struct dl2_bytes *out, struct dl2_error *error)
{
    const struct dl2_reader *reader = dataset->container->reader;
    const size_t number = first_number(dataset, index);
    return dl2_dataset_has_sidecars(dataset) && !describe_image(dataset, number).is_further
               ? reader->read_sidecar(dataset, number, extension, out, error)
               : 0;
}

int dl2_dataset_read_sidecars(const struct dl2_dataset *dataset, size_t index,
                              struct dl2_sidecars *out, struct dl2_error *error)
{
    const struct dl2_reader *reader = dataset->container->reader;
    const size_t number = first_number(dataset, index);
    if (!reader->read_sidecars || describe_image(dataset, number).is_further)
        return DL2_OK;
    DL2_TRY(reader->read_sidecars(dataset, number, out, error));
    dl2_sidecars_sort(out);
    return DL2_OK;
}

uint64_t dl2_dataset_sidecar_sum(const struct dl2_dataset *dataset, size_t index)
{
    return sidecar_sum(dataset, dl2_dataset_frames(dataset, index).first);
}

size_t dl2_dataset_ignored(const struct dl2_dataset *dataset)
{
    const struct dl2_reader *reader = dataset->container->reader;
    return reader->ignored ? reader->ignored(dataset) : 0;
}

bool dl2_dataset_has_sidecars(const struct dl2_dataset *dataset)
{
    return dataset->container->reader->read_sidecar;
}

bool dl2_dataset_locate(const struct dl2_dataset *dataset, size_t image,
                        struct dl2_location *location)
{
    const struct dl2_reader *reader = dataset->container->reader;
    return reader->locate && reader->locate(dataset, number_of(dataset, image), NULL, location);
}

bool dl2_dataset_in_batches(const struct dl2_dataset *dataset, size_t image, uint64_t *bytes)
{
    const struct dl2_reader *reader = dataset->container->reader;
    return reader->in_batches && reader->in_batches(dataset, number_of(dataset, image), bytes);
}

bool dl2_dataset_read_batch(const struct dl2_dataset *dataset, const uint32_t *indices,
                            size_t count, uint8_t *data)
{
    uint32_t numbers[DL2_DATASET_BATCH];
    if (count > DL2_DATASET_BATCH)
        return false;
    for (size_t i = 0; i < count; i++)
        numbers[i] = (uint32_t)number_of(dataset, indices[i]);
    return dataset->container->reader->read_batch(dataset, numbers, count, data);
}

bool dl2_dataset_can_fit(const struct dl2_dataset *dataset)
{
    return dataset->container->reader->fit;
}

int dl2_dataset_fit(const struct dl2_dataset *dataset, const struct dl2_server_fit *fit,
                    struct dl2_bytes *out, struct dl2_error *error)
{
    struct dl2_server_fit own = *fit;
    uint32_t *rows = dl2_calloc(fit->count, sizeof *rows);
    if (!rows)
        return dl2_error_memory(error, "%zu samples", fit->count);
    for (size_t i = 0; i < fit->count; i++)
        rows[i] = (uint32_t)number_of(dataset, fit->numbers[i]);
    own.rows = rows;
    const int status = dataset->container->reader->fit(dataset, &own, out, error);
    free(rows);
    return status;
}

int dl2_dataset_verify(const struct dl2_dataset *dataset, size_t image, const uint8_t *data,
                       size_t size, struct dl2_error *error)
{
    const struct dl2_reader *reader = dataset->container->reader;
    return reader->verify
               ? reader->verify(dataset, number_of(dataset, image), NULL, data, size, error)
               : DL2_OK;
}

bool dl2_dataset_cuts(const struct dl2_dataset *dataset, size_t image, struct dl2_cuts *cuts)
{
    const struct dl2_reader *reader = dataset->container->reader;
    return reader->cuts && reader->cuts(dataset, number_of(dataset, image), cuts);
}

/* A reader that knows of slices has all functions. */
int dl2_dataset_read_slices(const struct dl2_dataset *dataset, size_t image,
                            struct dl2_slice_range range, struct dl2_bytes *scratch,
                            const uint8_t **data, size_t *size, struct dl2_error *error)
{
    return dataset->container->reader->read(dataset, number_of(dataset, image), &range, scratch,
                                            data, size, error);
}

bool dl2_dataset_locate_slices(const struct dl2_dataset *dataset, size_t image,
                               struct dl2_slice_range range, struct dl2_location *location)
{
    return dataset->container->reader->locate(dataset, number_of(dataset, image), &range, location);
}

int dl2_dataset_verify_slices(const struct dl2_dataset *dataset, size_t image,
                              struct dl2_slice_range range, const uint8_t *data, size_t size,
                              struct dl2_error *error)
{
    return dataset->container->reader->verify(dataset, number_of(dataset, image), &range, data,
                                              size, error);
}

/* How many images from this one on are of its item. */
static size_t count_frames(const struct dl2_dataset *dataset, size_t image)
{
    const size_t number = number_of(dataset, image);
    size_t count = 1;
    while (image + count < dataset->count && number_of(dataset, image + count) == number + count &&
           describe_image(dataset, number + count).is_further)
        count++;
    return count;
}

/* The clip with a key of so many bytes, NULL if the split has none. */
static const struct dl2_clip *find_clip(const struct dl2_dataset *dataset, const char *key,
                                        size_t length)
{
    const uint32_t number = dl2_clip_find(dataset, key, length);
    size_t low = 0, high = dataset->clip_count;
    while (!dataset->is_selected && high - low > 1) { /* numbers ascend */
        const size_t middle = low + (high - low) / 2;
        if (dataset->clips[middle].number <= number)
            low = middle;
        else
            high = middle;
    }
    for (; number != UINT32_MAX && low < high; low++)
        if (dataset->clips[low].number == number)
            return &dataset->clips[low];
    return NULL;
}

static bool find_clip_or_frame(const struct dl2_dataset *dataset, const char *id, size_t *first,
                               size_t *count)
{
    const struct dl2_clip *clip = find_clip(dataset, id, strlen(id));
    if (clip) {
        *first = dataset->by_frame ? clip->first : (size_t)(clip - dataset->clips);
        *count = dataset->by_frame ? clip->count : 1;
        return true;
    }
    const char *slash = strrchr(id, '/');
    clip = slash && dataset->by_frame ? find_clip(dataset, id, (size_t)(slash - id)) : NULL;
    for (size_t i = clip ? strtoul(slash + 1, NULL, 10) : 0; clip && i < clip->count;) {
        *first = clip->first + i;
        *count = 1;
        return !strcmp(dl2_frame_key(dataset, number_of(dataset, *first)), id);
    }
    return false;
}

bool dl2_dataset_find(const struct dl2_dataset *dataset, const char *id, size_t *first,
                      size_t *count)
{
    const struct dl2_reader *reader = dataset->container->reader;
    size_t index = 0;
    if (dataset->clips)
        return find_clip_or_frame(dataset, id, first, count);
    if (reader->find)
        index = index_of(dataset, reader->find(dataset, id));
    else
        while (index < dataset->count &&
               strcmp(describe_image(dataset, number_of(dataset, index)).key, id) != 0)
            index++;
    if (index >= dataset->count)
        return false;
    *first = index;
    *count = count_frames(dataset, index);
    return true;
}

/* One of the numbers of a slice, "-3" or nothing; false for other text. */
static bool read_bound(const char **text, int64_t usual, int64_t *bound)
{
    char *end;
    errno = 0;
    *bound = usual;
    if (**text == ':' || **text == ']')
        return true;
    *bound = strtoll(*text, &end, 10);
    const bool good = end > *text && !errno && !isspace((unsigned char)**text);
    *text = end;
    return good;
}

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* "[a:b:c]" or "[a]" of `count` frames, as Python's slice.indices() has it. */
static int read_slice(const char *text, int64_t count, struct dl2_frame_slice *slice,
                      struct dl2_error *error)
{
    int64_t start, stop, step = 1;
    const char *at = text + 1;
    const char *end = strchr(text, ']');
    const char *second = strchr(text, ':');
    bool good = end && !end[1];
    const char *third = good && second ? strchr(second + 1, ':') : NULL;
    if (good && third) {
        const char *bound = third + 1;
        good = read_bound(&bound, 1, &step) && bound == end && step;
    }
    good = good && read_bound(&at, step > 0 ? 0 : count - 1, &start) &&
           at == (second ? second : end) && (second || at > text + 1);
    const bool has_start = at > text + 1;
    bool has_stop = false;
    stop = step > 0 ? count : -1;
    if (good && second) {
        at = second + 1;
        good = read_bound(&at, stop, &stop) && at == (third ? third : end);
        has_stop = at > second + 1;
    }
    if (!good)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s is not [a:b:c] with whole numbers, c not 0, nor [a]", text);
    if (has_start && start < 0)
        start += count;
    if (has_stop && stop < 0)
        stop += count;
    if (!second && (start < 0 || start >= count))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "there is no frame %s of %" PRId64, text,
                             count);
    if (!second)
        stop = start + 1;
    /* Beyond the ends a slice is cut. */
    start = clamp(start, step > 0 ? 0 : -1, step > 0 ? count : count - 1);
    stop = clamp(stop, step > 0 ? 0 : -1, step > 0 ? count : count - 1);
    const uint64_t span = step > 0 ? (stop > start ? (uint64_t)(stop - start) : 0)
                                   : (start > stop ? (uint64_t)(start - stop) : 0);
    const uint64_t width = step > 0 ? (uint64_t)step : -(uint64_t)step;
    slice->first = span ? (size_t)start : 0;
    slice->count = span ? (size_t)((span - 1) / width + 1) : 0;
    slice->step = step;
    return DL2_OK;
}

int dl2_dataset_slice(const struct dl2_dataset *dataset, const char *text,
                      struct dl2_frame_slice *slice, struct dl2_error *error)
{
    size_t first, count;
    const char *bracket = strrchr(text, '[');
    char *id = bracket ? strndup(text, (size_t)(bracket - text)) : strdup(text);
    if (!id)
        return dl2_error_memory(error, "a slice");
    bool found = dl2_dataset_find(dataset, text, &first, &count); /* brackets may be a name's */
    if (found)
        bracket = NULL;
    else
        found = bracket && dl2_dataset_find(dataset, id, &first, &count);
    const int length = (int)strlen(id);
    free(id);
    if (!found)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "there is no sample %.*s", length, text);
    if (has_clips(dataset)) {
        const struct dl2_image_range frames = dl2_dataset_frames(dataset, first);
        slice->sample = first;
        first = frames.first;
        count = frames.count;
    } else {
        slice->sample = first;
    }
    *slice = (struct dl2_frame_slice){slice->sample, 0, count, 1};
    if (bracket)
        DL2_TRY(read_slice(bracket, (int64_t)count, slice, error));
    slice->first += first;
    return DL2_OK;
}

int dl2_dataset_set_classes(struct dl2_dataset *dataset, const char *const *names, unsigned count,
                            struct dl2_error *error)
{
    size_t size = count * sizeof(char *);
    for (unsigned i = 0; i < count; i++)
        size += strlen(names[i]) + 1;
    char **classes = dl2_calloc(1, size);
    if (!classes)
        return dl2_error_memory(error, "a dataset");
    char *text = (char *)(classes + count);
    for (unsigned i = 0; i < count; i++) {
        classes[i] = strcpy(text, names[i]);
        text += strlen(text) + 1;
    }
    dataset->classes = classes;
    dataset->class_count = count;
    return DL2_OK;
}

/* The last part of a path as it was given; "/", "." and ".." are resolved first. */
static char *last_part(const char *path)
{
    const int length = dl2_path_folder_length(path);
    char *given = strndup(path, (size_t)length);
    const char *base = given ? dl2_path_base(given) : "";
    char *resolved = NULL;
    if (!*base || !strcmp(base, ".") || !strcmp(base, ".."))
        resolved = realpath(path, NULL);
    if (resolved)
        base = dl2_path_base(resolved);
    char *name = strdup(*base ? base : "dataset");
    free(resolved);
    free(given);
    return name;
}

static char *table_name(const char *path)
{
    struct dl2_database_uri uri;
    const bool good = dl2_database_uri_parse(path, &uri, NULL) == DL2_OK;
    char *name = strdup(good ? uri.table : "dataset");
    dl2_database_uri_free(&uri);
    return name;
}

char *dl2_dataset_variant_name(const char *path)
{
    json_t *summary;
    char *name = NULL;
    if (dl2_facts_load(path, &summary, NULL) == DL2_OK) {
        const char *text = dl2_json_get_text(summary, "variant", "");
        name = text[0] ? strdup(text) : NULL;
        json_decref(summary);
    }
    if (name)
        return name;
    return dl2_dataset_is_database(path) ? table_name(path) : last_part(path);
}
