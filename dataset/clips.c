/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which images are frames of one clip. GulpIO says so; elsewhere the paths of the frames do, by the
 * rules of dataset.h. In either case a clip's frames get the keys CLIP/00000, CLIP/00001..., so
 * that they are the same in every container.
 */
#include "dataset/container.h"

#include "common/file.h"
#include "common/quote.h"
#include "common/scope.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Keys of all clips of the container, and of their frames by the reader's numbers. */
struct dl2_clip_keys {
    const char **clips, **frames;
    uint32_t *sorted; /* numbers of clips, by key */
    size_t count;
    struct dl2_bytes strings;
};

/* An image, as far as its path says where in a clip it belongs. */
struct frame {
    const char *key;    /* of the image */
    size_t length;      /* of the clip's key, with which it begins */
    const char *digits; /* its number, without leading zeros */
    uint32_t number;    /* of the image */
    int label;
    bool is_bare; /* nothing but a number */
};

static size_t digits_of(const struct frame *frame)
{
    return strlen(frame->digits);
}

static int compare_numbers(const struct frame *a, const struct frame *b)
{
    const size_t one = digits_of(a), two = digits_of(b);
    return one != two ? (one > two) - (one < two) : strcmp(a->digits, b->digits);
}

static int compare_clips(const struct frame *a, const struct frame *b)
{
    return dl2_compare_spans(a->key, a->length, b->key, b->length);
}

static int compare_frames(const void *left, const void *right)
{
    const struct frame *a = left, *b = right;
    int order = compare_clips(a, b);
    if (!order)
        order = compare_numbers(a, b);
    return order ? order : (a->number > b->number) - (a->number < b->number);
}

/* ---- What a path says */

/* How an image's path is not that of a frame; NULL: it is one. */
static const char *read_path(const struct dl2_dataset *dataset, size_t number, bool exact,
                             struct frame *frame)
{
    const struct dl2_entry entry = dl2_reader_entry(dataset, number);
    const int label = entry.sample.label;
    const char *key = entry.sample.key, *inner = key, *base = dl2_path_base(key);
    unsigned folders = 0;
    if (dataset->has_parts && entry.part != DL2_PART_NONE && strchr(inner, '/'))
        inner = strchr(inner, '/') + 1;
    for (const char *at = inner; (at = strchr(at, '/')); at++)
        folders++;
    const char *digits = base + strlen(base);
    while (digits > base && isdigit((unsigned char)digits[-1]))
        digits--;
    if (!*digits)
        return "its name has no number at its end";
    const char *class = label >= 0 ? dataset->classes[label] : "";
    const size_t length = strlen(class);
    const bool in_class = length && !strncmp(inner, class, length) && inner[length] == '/';
    if (folders < 1u + in_class)
        return in_class ? "it lies in its class's folder and in no folder of a clip"
                        : "it lies in no folder of a clip";
    if (exact && (label < 0 || (in_class && folders != 2)))
        return "it is no CLASS/CLIP/FRAME";
    *frame = (struct frame){.key = key,
                            .length = (size_t)(base - key) - 1,
                            .digits = digits,
                            .number = (uint32_t)number,
                            .label = label,
                            .is_bare = digits == base};
    while (*frame->digits == '0' && frame->digits[1])
        frame->digits++;
    return NULL;
}

/* ---- Clips as they are found */

struct found {
    struct frame *frames; /* [dataset->count], those of a clip in order */
    struct dl2_clip *clips;
    size_t count;
};

static void free_found(struct found *found)
{
    free(found->frames);
    free(found->clips);
}

/* The clip of the least image comes first. */
static int compare_firsts(const void *left, const void *right, void *context)
{
    const struct dl2_clip *a = left, *b = right;
    const uint32_t *least = context;
    return (least[a->number] > least[b->number]) - (least[a->number] < least[b->number]);
}

/* Sorts frames that are sorted by clip into the order in which the clips begin. */
static int order_clips(struct found *found, size_t images, struct dl2_error *error)
{
    DL2_AUTO_FREE uint32_t *least = NULL;
    struct frame *frames;
    size_t at = 0;
    DL2_TRY(DL2_NEW(&least, found->count, "clips", error));
    DL2_TRY(DL2_NEW(&frames, images, "clips", error));
    for (size_t i = 0; i < found->count; i++) {
        const struct dl2_clip *clip = &found->clips[i];
        least[i] = UINT32_MAX;
        for (size_t k = 0; k < clip->count; k++)
            if (found->frames[clip->first + k].number < least[i])
                least[i] = found->frames[clip->first + k].number;
    }
    qsort_r(found->clips, found->count, sizeof *found->clips, compare_firsts, least);
    for (size_t i = 0; i < found->count; i++) {
        struct dl2_clip *clip = &found->clips[i];
        memcpy(frames + at, found->frames + clip->first, clip->count * sizeof *frames);
        clip->first = at;
        clip->number = (uint32_t)i;
        at += clip->count;
    }
    free(found->frames);
    found->frames = frames;
    return DL2_OK;
}

/* Makes a clip of each run of frames that have one. */
static int gather_clips(struct found *found, size_t images, struct dl2_error *error)
{
    DL2_TRY(DL2_NEW(&found->clips, images, "clips", error));
    for (size_t i = 0; i < images; i++) {
        if (!i || compare_clips(&found->frames[i - 1], &found->frames[i]) != 0) {
            found->clips[found->count] =
                (struct dl2_clip){.first = i, .number = (uint32_t)found->count};
            found->count++;
        }
        found->clips[found->count - 1].count++;
    }
    return DL2_OK;
}

/* Do frames of one class follow each other without a gap? Sets *start to the first number. */
static bool is_sequence(const struct frame *frames, size_t count, unsigned long *start)
{
    *start = digits_of(&frames[0]) < 10 ? strtoul(frames[0].digits, NULL, 10) : ULONG_MAX;
    for (size_t k = 1; k < count; k++)
        if (frames[k].label != frames[0].label || digits_of(&frames[k]) > 9 ||
            strtoul(frames[k].digits, NULL, 10) != *start + k)
            return false;
    return *start != ULONG_MAX;
}

enum certainty { UNLIKELY, POSSIBLE, CERTAIN };

/* Are these the frames of clips? */
static enum certainty judge(const struct dl2_dataset *dataset, const struct found *found)
{
    size_t sequences = 0;
    unsigned long start, first = 0;
    bool certain = found->count > dataset->class_count;
    for (size_t i = 0; i < found->count; i++) {
        const struct frame *frames = found->frames + found->clips[i].first;
        const bool follow = is_sequence(frames, found->clips[i].count, &start);
        first = i ? first : start;
        certain = certain && follow && start < 2 && start == first;
        for (size_t k = 0; certain && k < found->clips[i].count; k++)
            certain = frames[k].is_bare;
        sequences += follow && found->clips[i].count > 1;
    }
    if (2 * sequences <= found->count)
        return UNLIKELY;
    return certain ? CERTAIN : POSSIBLE;
}

static int check_clips(const struct dl2_dataset *dataset, const char *path,
                       const struct found *found, struct dl2_error *error)
{
    for (size_t i = 0; i < found->count; i++) {
        const struct frame *frames = found->frames + found->clips[i].first;
        for (size_t k = 1; k < found->clips[i].count; k++) {
            if (frames[k].label == frames[0].label && compare_numbers(&frames[k - 1], &frames[k]))
                continue;
            const bool same = frames[k].label == frames[0].label;
            return dl2_error_set(
                error, DL2_ERR_FORMAT, "%s: clip %.*s: %s and %s %s", path, (int)frames[k].length,
                frames[k].key, dl2_reader_path(dataset, frames[same ? k - 1 : 0].number),
                dl2_reader_path(dataset, frames[k].number),
                same ? "have the same number; remove one of them" : "are of different classes");
        }
    }
    return DL2_OK;
}

/* Finds clips by the paths of their frames; none in found->clips where samples are images. */
static int find_by_path(struct dl2_dataset *dataset, const char *path, bool forced,
                        struct found *found, struct dl2_error *error)
{
    DL2_TRY(DL2_NEW(&found->frames, dataset->count, "clips", error));
    bool sorted = true;
    for (size_t i = 0; i < dataset->count; i++) {
        const char *why = read_path(dataset, i, !forced, &found->frames[i]);
        if (why && !forced)
            return DL2_OK;
        if (why)
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "%s: no frame of a clip: %s; clips are [SPLIT/]CLASS/CLIP/NUMBER",
                                 dl2_reader_path(dataset, i), why);
        sorted = sorted && (!i || compare_frames(&found->frames[i - 1], &found->frames[i]) < 0);
    }
    if (!sorted)
        qsort(found->frames, dataset->count, sizeof *found->frames, compare_frames);
    DL2_TRY(gather_clips(found, dataset->count, error));
    if (forced)
        DL2_TRY(check_clips(dataset, path, found, error));
    const enum certainty certainty = forced ? CERTAIN : judge(dataset, found);
    const char *const said =
        certainty == CERTAIN
            ? "each folder of numbered images is read as a clip; --samples images "
              "(samples='images' in Python) reads single images"
            : "the images lie in folders within their classes' and their names end in "
              "numbers, but are read as single images; if each such folder is a clip, say "
              "--samples clips (samples='clips' in Python)";
    if (!forced && certainty != UNLIKELY)
        dataset->clip_note = said;
    if (certainty == CERTAIN)
        return sorted ? DL2_OK : order_clips(found, dataset->count, error);
    free(found->clips);
    found->clips = NULL;
    return DL2_OK;
}

/* Is an image, by its key, "ID/00001", a further frame of the item whose first is "ID/00000"? An
 * index that is damaged may say so of any. */
static bool is_frame_of(const struct frame *first, const char *key)
{
    const size_t length = (size_t)(dl2_path_base(key) - key);
    return length > 1 && !strncmp(first->key, key, length);
}

/* Finds the items of a container that has frames in items. */
static int find_items(struct dl2_dataset *dataset, bool forced, struct found *found,
                      struct dl2_error *error)
{
    bool any = forced;
    for (size_t i = 0; i < dataset->count && !any; i++)
        any = dl2_reader_entry(dataset, i).is_further;
    if (!any)
        return DL2_OK;
    DL2_TRY(DL2_NEW(&found->frames, dataset->count, "clips", error));
    DL2_TRY(DL2_NEW(&found->clips, dataset->count, "clips", error));
    for (size_t i = 0; i < dataset->count; i++) {
        const struct dl2_entry entry = dl2_reader_entry(dataset, i);
        const char *key = entry.sample.key;
        struct dl2_clip *clip = found->clips + found->count;
        if (entry.is_further && found->count && is_frame_of(&found->frames[clip[-1].first], key))
            clip--;
        else
            *clip = (struct dl2_clip){.first = i, .number = (uint32_t)found->count++};
        found->frames[i] = (struct frame){.key = key, .length = strlen(key), .number = (uint32_t)i};
        if (clip->count++) /* "ID/00001" */
            found->frames[i].length = found->frames[clip->first].length =
                (size_t)(dl2_path_base(key) - key) - 1;
    }
    return DL2_OK;
}

/* ---- Keys */

static int compare_keys(const void *left, const void *right, void *context)
{
    const struct dl2_clip_keys *keys = context;
    return strcmp(keys->clips[*(const uint32_t *)left], keys->clips[*(const uint32_t *)right]);
}

/* The length of the split's folder in a key, with its slash; 0: it has none. */
static size_t split_length(const struct dl2_dataset *dataset, const struct frame *frame)
{
    const struct dl2_entry entry = dl2_reader_entry(dataset, frame->number);
    const char *slash = memchr(frame->key, '/', frame->length);
    return dataset->has_parts && entry.part != DL2_PART_NONE && slash
               ? (size_t)(slash - frame->key) + 1
               : 0;
}

/* The class's folder that a clip's key gets behind the split's; "" for none. */
static const char *class_folder(const struct dl2_dataset *dataset, const struct frame *frame)
{
    const int label = dl2_reader_entry(dataset, frame->number).sample.label;
    const char *class = label >= 0 ? dataset->classes[label] : "";
    const size_t split = split_length(dataset, frame);
    return memchr(frame->key + split, '/', frame->length - split) || strchr(class, '/') ||
                   class[0] == '.'
               ? ""
               : class;
}

/* Prints the key of a clip. */
static int print_key(char *to, const struct dl2_dataset *dataset, const struct frame *frame,
                     bool class_folders)
{
    const char *class = class_folders ? class_folder(dataset, frame) : "";
    const int split = *class ? (int)split_length(dataset, frame) : 0;
    return sprintf(to, "%.*s%s%s%.*s", split, frame->key, class, *class ? "/" : "",
                   (int)frame->length - split, frame->key + split);
}

/* Keys that the reader has as they should be are not copied. */
static int make_keys(struct dl2_dataset *dataset, const struct found *found, bool class_folders,
                     struct dl2_error *error)
{
    DL2_TRY(DL2_NEW(&dataset->clip_keys, 1, "clips", error));
    struct dl2_clip_keys *keys = dataset->clip_keys;
    keys->count = found->count;
    DL2_TRY(DL2_NEW(&keys->clips, found->count, "clips", error));
    DL2_TRY(DL2_NEW(&keys->frames, dataset->count, "clips", error));
    DL2_TRY(DL2_NEW(&keys->sorted, found->count, "clips", error));
    size_t size = 0, longest = 0;
    for (unsigned i = 0; class_folders && i < dataset->class_count; i++)
        if (strlen(dataset->classes[i]) + 1 > longest)
            longest = strlen(dataset->classes[i]) + 1;
    for (size_t i = 0; i < found->count; i++) {
        const struct dl2_clip *clip = &found->clips[i];
        const size_t length = found->frames[clip->first].length + longest;
        size += length + 1 + (size_t)clip->count * (length + 12);
    }
    DL2_TRY(dl2_bytes_resize(&keys->strings, size, error));
    char *at = (char *)keys->strings.data;
    for (size_t i = 0; i < found->count; i++) {
        const struct dl2_clip *clip = &found->clips[i];
        const struct frame *frames = found->frames + clip->first;
        const char *key = keys->clips[i] = at;
        keys->sorted[i] = (uint32_t)i;
        at += print_key(at, dataset, &frames[0], class_folders) + 1;
        for (uint32_t k = 0; k < clip->count; k++) {
            const int used = sprintf(at, "%s/%05u", key, (unsigned)k);
            const bool same = !strcmp(at, frames[k].key);
            keys->frames[frames[k].number] = same ? frames[k].key : at;
            at += same ? 0 : used + 1;
        }
    }
    qsort_r(keys->sorted, keys->count, sizeof *keys->sorted, compare_keys, keys);
    return DL2_OK;
}

const char *dl2_clip_key(const struct dl2_dataset *dataset, const struct dl2_clip *clip)
{
    return dataset->clip_keys->clips[clip->number];
}

const char *dl2_frame_key(const struct dl2_dataset *dataset, size_t number)
{
    return dataset->clip_keys->frames[number];
}

/* A clip's key, of so many bytes, that is looked for. */
struct wanted {
    const struct dl2_clip_keys *keys;
    const char *key;
    size_t length;
};

static int compare_wanted(const void *left, const void *right)
{
    const struct wanted *wanted = left;
    const char *key = wanted->keys->clips[*(const uint32_t *)right];
    const int order = strncmp(wanted->key, key, wanted->length);
    return order ? order : -(key[wanted->length] != '\0');
}

uint32_t dl2_clip_find(const struct dl2_dataset *dataset, const char *key, size_t length)
{
    const struct dl2_clip_keys *keys = dataset->clip_keys;
    const struct wanted wanted = {keys, key, length};
    const uint32_t *found =
        bsearch(&wanted, keys->sorted, keys->count, sizeof *found, compare_wanted);
    return found ? *found : UINT32_MAX;
}

static int compare_image(const void *image, const void *right)
{
    const size_t at = *(const size_t *)image;
    const struct dl2_clip *clip = right;
    return at < clip->first ? -1 : at - clip->first >= clip->count;
}

size_t dl2_clip_of_image(const struct dl2_dataset *dataset, size_t image)
{
    const struct dl2_clip *found =
        bsearch(&image, dataset->clips, dataset->clip_count, sizeof *dataset->clips, compare_image);
    return (size_t)(found - dataset->clips);
}

/* ---- For dataset.c */

static void count_frames(struct dl2_dataset *dataset)
{
    dataset->least_frames = UINT32_MAX;
    for (size_t i = 0; i < dataset->clip_count; i++) {
        const uint32_t count = dataset->clips[i].count;
        if (count < dataset->least_frames)
            dataset->least_frames = count;
        if (count > dataset->most_frames)
            dataset->most_frames = count;
    }
}

int dl2_clips_find(struct dl2_dataset *dataset, const char *path,
                   const struct dl2_dataset_options *options, struct dl2_error *error)
{
    const struct dl2_container *container = dataset->container;
    const bool forced = options->samples == DL2_SAMPLES_CLIPS;
    const bool has_paths = container->has_clip_paths || options->labels;
    DL2_CLEANUP(free_found) struct found found = {NULL, NULL, 0};
    if (options->samples == DL2_SAMPLES_IMAGES || !dataset->count || dataset->volumes ||
        dataset->videos)
        return DL2_OK;
    if (!container->shards && !has_paths)
        return forced ? dl2_error_set(error, DL2_ERR_ARGUMENT,
                                      "%s: the container '%s' holds images and no clips", path,
                                      container->name)
                      : DL2_OK;
    DL2_TRY(has_paths ? find_by_path(dataset, path, forced, &found, error)
                      : find_items(dataset, forced, &found, error));
    if (!found.clips)
        return DL2_OK;
    bool ordered = true;
    for (size_t i = 0; i < dataset->count && ordered; i++)
        ordered = found.frames[i].number == i;
    if (!ordered) {
        DL2_TRY(DL2_NEW(&dataset->chosen, dataset->count, "clips", error));
    }
    for (size_t i = 0; !ordered && i < dataset->count; i++)
        dataset->chosen[i] = found.frames[i].number;
    DL2_TRY(make_keys(dataset, &found, options->class_folders && !has_paths, error));
    dataset->clips = found.clips;
    dataset->clip_count = found.count;
    dataset->by_frame = options->by_frame;
    count_frames(dataset);
    found.clips = NULL;
    return DL2_OK;
}

int dl2_clips_set_keys(struct dl2_dataset *dataset, const char **clips, const char **frames,
                       struct dl2_error *error)
{
    struct dl2_clip_keys *keys = dataset->clip_keys = dl2_calloc(1, sizeof *keys);
    if (!keys) {
        free(clips);
        free(frames);
        return dl2_error_memory(error, "clips");
    }
    *keys = (struct dl2_clip_keys){.clips = clips, .frames = frames, .count = dataset->clip_count};
    DL2_TRY(DL2_NEW(&keys->sorted, keys->count, "clips", error));
    for (size_t i = 0; i < keys->count; i++)
        keys->sorted[i] = (uint32_t)i;
    qsort_r(keys->sorted, keys->count, sizeof *keys->sorted, compare_keys, keys);
    return DL2_OK;
}

void dl2_clips_free(struct dl2_dataset *dataset)
{
    struct dl2_clip_keys *keys = dataset->clip_keys;
    free(dataset->clips);
    if (!keys)
        return;
    free(keys->clips);
    free(keys->frames);
    free(keys->sorted);
    dl2_bytes_free(&keys->strings);
    free(keys);
}
