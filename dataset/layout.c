/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages about a dataset when it is opened: how it was read, and warnings. */
#include "dataset/container.h"
#include "dataset/packed.h"

#include <xxhash.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* "9,025 images in 10 classes" */
static void print_images(const struct dl2_dataset *dataset, size_t count, FILE *out)
{
    char number[32];
    fprintf(out, "%s image%s", grouped(count, number), count == 1 ? "" : "s");
    if (dataset->class_count)
        fprintf(out, " in %s class%s", grouped(dataset->class_count, number),
                dataset->class_count == 1 ? "" : "es");
}

/* "train 9,025 images in 10 classes, val 3,929 (valid/)" */
static void print_parts(const struct dl2_dataset *dataset, FILE *out)
{
    bool first = true;
    char number[32];
    for (unsigned p = DL2_PART_TRAIN; p < DL2_PARTS + dataset->parts.count; p++) {
        const size_t count = dataset->part_counts[p];
        if (!count)
            continue;
        const char *name = dl2_part_name(&dataset->parts, p), *folder = dataset->part_names[p];
        const int length = (int)strcspn(folder, "/");
        fprintf(out, "%s%s ", first ? "" : ", ", name);
        if (first)
            print_images(dataset, count, out);
        else
            fputs(grouped(count, number), out);
        if (strncmp(folder, name, (size_t)length) != 0 || name[length])
            fprintf(out, " (%.*s/)", length, folder);
        first = false;
    }
    if (dataset->part_counts[DL2_PART_NONE])
        fprintf(out, "; %s elsewhere", grouped(dataset->part_counts[DL2_PART_NONE], number));
}

static void print_layout(const struct dl2_dataset *dataset,
                         const struct dl2_dataset_options *options, FILE *out)
{
    size_t all = 0;
    char train[32], val[32];
    if (dataset->has_parts) {
        print_parts(dataset, out);
        return;
    }
    for (unsigned p = 0; p < DL2_PARTS; p++)
        all += dataset->part_counts[p];
    print_images(dataset, all, out);
    if (dataset->own_part)
        fprintf(out, ", all of them in the %s split",
                dl2_part_name(&dataset->parts, dataset->own_part));
    if (dataset->by_rule)
        fprintf(out,
                ", without folders for splits: %s for training and %s for validation, chosen by a "
                "hash of their names (fraction %g, seed %llu)",
                grouped(dataset->part_counts[DL2_PART_TRAIN], train),
                grouped(dataset->part_counts[DL2_PART_VAL], val), options->val_fraction,
                (unsigned long long)options->split_seed);
}

/* Adds a message; takes the text, NULL where memory ran out. */
static int add_message(struct dl2_dataset *dataset, char *text)
{
    char **grown = dl2_realloc(dataset->messages, dataset->message_count + 1, sizeof *grown);
    if (grown)
        dataset->messages = grown;
    if (!grown || !text) {
        free(text);
        return DL2_ERR_MEMORY;
    }
    grown[dataset->message_count++] = text;
    return DL2_OK;
}

DL2_PRINTF(2, 3) static int warn(struct dl2_dataset *dataset, const char *format, ...)
{
    char *text;
    va_list args;
    va_start(args, format);
    const int length = vasprintf(&text, format, args);
    va_end(args);
    return add_message(dataset, length < 0 ? NULL : text);
}

/* "a subset: 300 of the 1,000 images for training, 30% of each class, drawn with seed 0" */
static int tell_subset(struct dl2_dataset *dataset, const struct dl2_subset *subset)
{
    char taken[32], all[32], how[64] = "the first by name";
    if (subset->fraction == 0 || subset->fraction == 1)
        return DL2_OK;
    if (subset->by == DL2_SUBSET_DRAW)
        snprintf(how, sizeof how, "drawn with seed %llu", (unsigned long long)subset->seed);
    return warn(dataset, "a subset: %s of the %s images for training, %.6g%% of each class, %s",
                grouped(dataset->taken, taken), grouped(dataset->part_counts[DL2_PART_TRAIN], all),
                100 * subset->fraction, how);
}

/* The top folders of a tree whose classes they are, and the folders in them. */
struct folder_census {
    const char *key; /* of the sample before */
    size_t folders;  /* in its class */
    uint64_t sum;    /* of their names */
    size_t classes, all_folders;
    uint64_t all_sum; /* of a class */
};

/* Ends a class; false if its folders are not those of the classes before. */
static bool end_class(struct folder_census *census)
{
    if (census->classes++ == 0) {
        census->all_folders = census->folders;
        census->all_sum = census->sum;
    }
    const bool same = census->folders == census->all_folders && census->sum == census->all_sum;
    census->folders = 0;
    census->sum = 0;
    return same;
}

/*
 * Do all classes hold several folders, of the same names, and nothing else? Then the classes may be
 * splits, such as fold1 and fold2, and these folders the classes. Samples that are not in the order
 * of their folders, which only packed ones may be, count as other folders.
 */
static bool looks_like_splits(const struct dl2_dataset *dataset)
{
    struct folder_census census = {.key = NULL};
    size_t all = 0, class_length = 0, folder_length = 0;
    if (dataset->has_parts || dataset->own_part || dataset->class_count < 2)
        return false;
    for (unsigned p = 0; p < DL2_PARTS; p++)
        all += dataset->part_counts[p];
    for (size_t i = 0; i < all; i++) {
        struct dl2_entry entry;
        dataset->container->reader->describe(dataset, i, &entry);
        const size_t top = strcspn(entry.key, "/");
        const size_t folder = entry.key[top] ? strcspn(entry.key + top + 1, "/") : 0;
        const char *class = entry.label >= 0 ? dataset->classes[entry.label] : "";
        if (!entry.key[top] || !entry.key[top + 1 + folder] || strlen(class) != top ||
            strncmp(class, entry.key, top) != 0)
            return false;
        const bool same_class =
            census.key && top == class_length && !strncmp(entry.key, census.key, top);
        if (census.key && !same_class && !end_class(&census))
            return false;
        if (!same_class || folder != folder_length ||
            strncmp(entry.key + top + 1, census.key + top + 1, folder) != 0) {
            census.folders++;
            census.sum += XXH3_64bits(entry.key + top + 1, folder);
        }
        census.key = entry.key;
        class_length = top;
        folder_length = folder;
    }
    return census.key && end_class(&census) && census.classes == dataset->class_count &&
           census.all_folders > 1;
}

static int add_warnings(struct dl2_dataset *dataset)
{
    if (looks_like_splits(dataset))
        DL2_TRY(warn(dataset,
                     "every class holds folders of the same names: if these are the classes, and "
                     "%s and %s are splits, call one of the splits train; the others keep their "
                     "names (--val-split %s)",
                     dataset->classes[0], dataset->classes[1], dataset->classes[1]));
    for (unsigned i = 0; i < dataset->class_count; i++)
        if (dl2_part_of_folder(dataset->classes[i], strlen(dataset->classes[i])))
            DL2_TRY(
                warn(dataset,
                     "the folder '%s' is read as a class, although its name is a split's; if it "
                     "is a split, put every folder of images into a split, as in "
                     "train/CLASS/IMAGE",
                     dataset->classes[i]));
    size_t unlabelled = 0;
    char number[32];
    for (unsigned p = DL2_PART_NONE; p < DL2_PARTS + dataset->parts.count; p++)
        unlabelled += p || !dataset->has_parts ? dataset->unlabelled[p] : 0;
    if (unlabelled && dataset->class_count)
        DL2_TRY(warn(dataset, "%s image%s outside every class: no split has %s",
                     grouped(unlabelled, number), unlabelled == 1 ? " is" : "s are",
                     unlabelled == 1 ? "it" : "them"));
    const struct dl2_shard_format *shards = dataset->container->shards;
    for (unsigned i = 0; shards && i < DL2_SHARD_NOTES; i++)
        if (dataset->notes >> i & 1 && shards->notes[i])
            DL2_TRY(warn(dataset, "%s", shards->notes[i]));
    return dataset->remark ? warn(dataset, "%s", dataset->remark) : DL2_OK;
}

int dl2_dataset_describe(struct dl2_dataset *dataset, const struct dl2_dataset_options *options,
                         struct dl2_error *error)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return dl2_error_memory(error, "a dataset");
    print_layout(dataset, options, out);
    const bool whole = fclose(out) == 0;
    if (!whole) {
        free(text);
        text = NULL;
    }
    int status = add_message(dataset, text);
    if (status == DL2_OK)
        status = tell_subset(dataset, &options->subset);
    if (status == DL2_OK)
        status = add_warnings(dataset);
    return status < 0 ? dl2_error_memory(error, "a dataset") : DL2_OK;
}

const char *dl2_dataset_layout(const struct dl2_dataset *dataset)
{
    return dataset->messages[0];
}

const char *dl2_dataset_message(const struct dl2_dataset *dataset, size_t number, bool *matters)
{
    *matters = number || dataset->by_rule;
    return number < dataset->message_count ? dataset->messages[number] : NULL;
}
