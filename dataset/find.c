/* SPDX-License-Identifier: BSD-2-Clause */
/* Finding samples by their keys, and frames by slices of them. */
#include "dataset/container.h"

#include "common/scope.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

/* ---- By key */

static int compare_numbers(const void *left, const void *right)
{
    const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

static int compare_clips(const void *number, const void *clip)
{
    return compare_numbers(number, &((const struct dl2_clip *)clip)->number);
}

/* The item of an array that compares equal to the reader's number: they ascend by it, unless they
 * were selected. */
static const void *find_number(const struct dl2_dataset *dataset, uint32_t number,
                               const void *array, size_t count, size_t size,
                               int (*compare)(const void *, const void *))
{
    return dataset->is_selected ? lfind(&number, array, &count, size, compare)
                                : bsearch(&number, array, count, size, compare);
}

/* The index of image `number` in the split, at least dataset->count if the split lacks it. */
static size_t index_of(const struct dl2_dataset *dataset, size_t number)
{
    if (!dataset->chosen)
        return number;
    const uint32_t *found = find_number(dataset, (uint32_t)number, dataset->chosen, dataset->count,
                                        sizeof *found, compare_numbers);
    return found ? (size_t)(found - dataset->chosen) : SIZE_MAX;
}

/* How many images from this one on are of its item. */
static size_t count_frames(const struct dl2_dataset *dataset, size_t image)
{
    const size_t number = dl2_reader_number(dataset, image);
    size_t count = 1;
    while (image + count < dataset->count &&
           dl2_reader_number(dataset, image + count) == number + count &&
           dl2_reader_entry(dataset, number + count).is_further)
        count++;
    return count;
}

/* The clip with a key of so many bytes, NULL if the split has none. */
static const struct dl2_clip *find_clip(const struct dl2_dataset *dataset, const char *key,
                                        size_t length)
{
    return find_number(dataset, dl2_clip_find(dataset, key, length), dataset->clips,
                       dataset->clip_count, sizeof *dataset->clips, compare_clips);
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
    const char *slash = dataset->by_frame ? strrchr(id, '/') : NULL;
    clip = slash ? find_clip(dataset, id, (size_t)(slash - id)) : NULL;
    const size_t frame = clip ? strtoul(slash + 1, NULL, 10) : 0;
    if (!clip || frame >= clip->count)
        return false;
    *first = clip->first + frame;
    *count = 1;
    return !strcmp(dl2_frame_key(dataset, dl2_reader_number(dataset, *first)), id);
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
               strcmp(dl2_reader_entry(dataset, dl2_reader_number(dataset, index)).sample.key,
                      id) != 0)
            index++;
    if (index >= dataset->count)
        return false;
    *first = index;
    *count = count_frames(dataset, index);
    return true;
}

/* ---- By slice */

/* A number of a slice, "-3", or nothing. */
struct bound {
    bool given;
    int64_t value;
};

/* Reads "[a]", "[a:b]" or "[a:b:c]": how many bounds it has, 0 for other text. */
static int read_bounds(const char *text, struct bound bounds[3])
{
    const char *at = text + 1;
    for (int i = 0; i < 3; i++) {
        char *end;
        bounds[i].given = *at != ':' && *at != ']';
        if (bounds[i].given) {
            errno = 0;
            bounds[i].value = strtoll(at, &end, 10);
            if (end == at || errno || isspace((unsigned char)*at))
                return 0;
            at = end;
        }
        if (*at == ']')
            return at[1] ? 0 : i + 1;
        if (*at++ != ':')
            return 0;
    }
    return 0;
}

/* Where a bound is among `count` frames; `usual` if it was not given. Beyond the ends it is cut. */
static int64_t place_bound(const struct bound *bound, int64_t usual, int64_t count, bool forward)
{
    const int64_t low = forward ? 0 : -1, high = forward ? count : count - 1;
    const int64_t place = bound->given ? bound->value + (bound->value < 0 ? count : 0) : usual;
    return place < low ? low : place > high ? high : place;
}

/* "[a:b:c]" or "[a]" of `count` frames, as Python's slice.indices() has it. */
static int read_slice(const char *text, int64_t count, struct dl2_frame_slice *slice,
                      struct dl2_error *error)
{
    struct bound bounds[3] = {{false, 0}};
    const int given = read_bounds(text, bounds);
    const int64_t step = bounds[2].given ? bounds[2].value : 1;
    if (!given || !step || (given == 1 && !bounds[0].given))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s is not [a:b:c] with whole numbers, c not 0, nor [a]", text);
    const bool forward = step > 0;
    const int64_t start = place_bound(&bounds[0], forward ? 0 : count - 1, count, forward);
    int64_t stop = place_bound(&bounds[1], forward ? count : -1, count, forward);
    if (given == 1) {
        if (bounds[0].value < -count || bounds[0].value >= count)
            return dl2_error_set(error, DL2_ERR_ARGUMENT, "there is no frame %s of %" PRId64, text,
                                 count);
        stop = start + 1;
    }
    const int64_t span = forward ? stop - start : start - stop;
    const uint64_t width = forward ? (uint64_t)step : -(uint64_t)step;
    slice->first = span > 0 ? (size_t)start : 0;
    slice->count = span > 0 ? (size_t)(((uint64_t)span - 1) / width + 1) : 0;
    slice->step = step;
    return DL2_OK;
}

int dl2_dataset_slice(const struct dl2_dataset *dataset, const char *text,
                      struct dl2_frame_slice *slice, struct dl2_error *error)
{
    size_t first, count;
    const char *bracket = strrchr(text, '[');
    DL2_AUTO_FREE char *id = bracket ? strndup(text, (size_t)(bracket - text)) : strdup(text);
    if (!id)
        return dl2_error_memory(error, "a slice");
    if (dl2_dataset_find(dataset, text, &first, &count)) /* brackets may be a name's */
        bracket = NULL;
    else if (!bracket || !dl2_dataset_find(dataset, id, &first, &count))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "there is no sample %s", id);
    slice->sample = first;
    if (dl2_has_clips(dataset)) {
        const struct dl2_image_range frames = dl2_dataset_frames(dataset, first);
        first = frames.first;
        count = frames.count;
    }
    *slice = (struct dl2_frame_slice){slice->sample, 0, count, 1};
    if (bracket)
        DL2_TRY(read_slice(bracket, (int64_t)count, slice, error));
    slice->first += first;
    return DL2_OK;
}
