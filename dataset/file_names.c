/* SPDX-License-Identifier: BSD-2-Clause */
#include "dataset/file_names.h"

#include "common/file.h"
#include "common/quote.h"
#include "common/scope.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int compare_keys(const void *a, const void *b)
{
    const struct dl2_named_key *one = a, *two = b;
    const int order = strcmp(one->key, two->key);
    return order ? order : (one->number > two->number) - (one->number < two->number);
}

void dl2_keys_sort(struct dl2_named_key *keys, size_t count)
{
    if (count > 1)
        qsort(keys, count, sizeof *keys, compare_keys);
}

const struct dl2_named_key *dl2_keys_search(const struct dl2_named_key *keys, size_t count,
                                            const char *name, size_t length)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strncmp(keys[middle].key, name, length) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    const bool found =
        low < count && !strncmp(keys[low].key, name, length) && !keys[low].key[length];
    return found ? &keys[low] : NULL;
}

size_t dl2_keys_find(const struct dl2_named_key *keys, size_t count, const char *name,
                     size_t length)
{
    const struct dl2_named_key *found = dl2_keys_search(keys, count, name, length);
    return found ? found->number : SIZE_MAX;
}

/* Names that other programs give to masks, and what they are here: NAME_mask.png beside NAME.jpg,
 * masks/NAME.png for images/NAME.jpg. */
struct mask_name {
    const char *text, *kind;
};

static const struct mask_name mask_ends[] = {
    {"_mask", "mask"}, {"-mask", "mask"},        {"_seg", "seg"},
    {"-seg", "seg"},   {"_segmentation", "seg"}, {"-segmentation", "seg"},
};
static const struct mask_name mask_folders[] = {
    {"masks", "mask"},
    {"mask", "mask"},
    {"labels", "mask"},
    {"annotations", "mask"},
    {"gt", "mask"},
    {"segmentation", "seg"},
    {"segmentations", "seg"},
    {"segmentationclass", "mask"},
    {"segmentationobject", "seg"},
};
static const char *const image_folders[] = {"images", "Images", "image",     "Image",
                                            "imgs",   "img",    "JPEGImages"};

static const struct mask_name *find_mask_end(const char *name)
{
    for (size_t i = 0; i < sizeof mask_ends / sizeof *mask_ends; i++)
        if (dl2_ends_with(name, mask_ends[i].text))
            return &mask_ends[i];
    return NULL;
}

static const struct mask_name *find_mask_folder(const char *part, size_t length)
{
    for (size_t i = 0; i < sizeof mask_folders / sizeof *mask_folders; i++)
        if (strlen(mask_folders[i].text) == length &&
            !strncasecmp(mask_folders[i].text, part, length))
            return &mask_folders[i];
    return NULL;
}

bool dl2_may_be_mask(const char *key)
{
    bool may = dl2_dataset_mask_stem(key) || find_mask_end(key);
    for (const char *end; !may && (end = strchr(key, '/')); key = end + 1)
        may = find_mask_folder(key, (size_t)(end - key));
    return may;
}

/* Photographs of people in masks may be called ..._mask.jpg. */
static bool is_jpeg(const struct dl2_sample *sample)
{
    return !strcasecmp(sample->extension, "jpg") || !strcasecmp(sample->extension, "jpeg");
}

/* The sample with this key, or with the key without a mask's end; NULL: none. */
static const char *find_image(const struct dl2_named_key *keys, size_t count, const char *key)
{
    const struct mask_name *end = find_mask_end(key);
    const size_t lengths[] = {strlen(key), end ? strlen(key) - strlen(end->text) : 0};
    for (size_t i = 0; i < 2 && lengths[i]; i++) {
        const struct dl2_named_key *found = dl2_keys_search(keys, count, key, lengths[i]);
        if (found)
            return found->key;
    }
    return NULL;
}

/* The same of images/NAME, for masks/NAME, or for any other folder of masks in the key. */
static int find_image_elsewhere(const struct dl2_named_key *keys, size_t count, const char *key,
                                const struct mask_name **name, const char **image,
                                struct dl2_error *error)
{
    for (const char *part = key, *end; !*image && (end = strchr(part, '/')); part = end + 1) {
        *name = find_mask_folder(part, (size_t)(end - part));
        for (size_t i = 0; *name && !*image && i < sizeof image_folders / sizeof *image_folders;
             i++) {
            DL2_AUTO_FREE char *other = NULL;
            DL2_TRY(dl2_format(&other, error, "%.*s%s%s", (int)(part - key), key, image_folders[i],
                               end));
            *image = find_image(keys, count, other);
        }
    }
    return DL2_OK;
}

static int find_masked(const struct dl2_named_key *keys, size_t count,
                       const struct dl2_sample *sample, const struct mask_name **name,
                       const char **image, struct dl2_error *error)
{
    *image = NULL;
    *name = find_mask_end(sample->key);
    if (*name && !is_jpeg(sample)) {
        const size_t stem = strlen(sample->key) - strlen((*name)->text);
        const struct dl2_named_key *found = dl2_keys_search(keys, count, sample->key, stem);
        *image = found ? found->key : NULL;
    }
    return *image ? DL2_OK : find_image_elsewhere(keys, count, sample->key, name, image, error);
}

int dl2_find_masked(const struct dl2_named_key *keys, size_t count, const struct dl2_sample *sample,
                    const char **kind, const char **image, struct dl2_error *error)
{
    const struct mask_name *name;
    DL2_TRY(find_masked(keys, count, sample, &name, image, error));
    *kind = *image ? name->kind : NULL;
    return DL2_OK;
}

int dl2_find_named_masks(const struct dl2_sample *samples, size_t count, size_t *found,
                         const char **first, struct dl2_error *error)
{
    DL2_AUTO_FREE struct dl2_named_key *keys = dl2_calloc(count, sizeof *keys);
    *found = 0;
    if (!keys)
        return dl2_error_memory(error, "a dataset");
    for (size_t i = 0; i < count; i++)
        keys[i] = (struct dl2_named_key){samples[i].key, i};
    dl2_keys_sort(keys, count);
    for (size_t i = 0; i < count; i++) {
        const struct mask_name *name;
        const char *image;
        DL2_TRY(find_masked(keys, count, &samples[i], &name, &image, error));
        if (image && !(*found)++)
            *first = samples[i].key;
    }
    return DL2_OK;
}
int dl2_dataset_labels_path(const char *path, char **labels, struct dl2_error *error)
{
    static const char images[] = "images/";
    const char *last = NULL;
    for (const char *at = path; (at = strstr(at, images)); at++)
        if (at == path || at[-1] == '/')
            last = at;
    *labels = NULL;
    return last ? dl2_format(labels, error, "%.*slabels/%s", (int)(last - path), path,
                             last + strlen(images))
                : DL2_OK;
}

bool dl2_dataset_is_label_file(const char *path, bool (*has)(const void *context, const char *key),
                               const void *context)
{
    static const char labels[] = "labels/";
    bool is = false;
    if (strcmp(dl2_path_extension(path), "txt") != 0)
        return false;
    for (const char *at = path; !is && (at = strstr(at, labels)); at++) {
        DL2_AUTO_FREE char *key = NULL, *back = NULL;
        const char *rest = at + strlen(labels);
        if ((at > path && at[-1] != '/') ||
            dl2_format(&key, NULL, "%.*simages/%.*s", (int)(at - path), path,
                       (int)(dl2_path_stem_length(path) - (size_t)(rest - path)), rest) < 0 ||
            dl2_dataset_labels_path(key, &back, NULL) < 0)
            continue;
        is = !strncmp(back, path, strlen(back)) && has(context, key);
    }
    return is;
}

size_t dl2_dataset_mask_stem(const char *key)
{
    static const char *const marks[] = {".mask", ".seg"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (dl2_ends_with(key, marks[i]))
            return strlen(key) - strlen(marks[i]);
    return 0;
}
