/* SPDX-License-Identifier: BSD-2-Clause */
#include "dataset/split.h"

#include "common/file.h"
#include "common/memory.h"
#include "common/quote.h"
#include "common/random.h"
#include "common/scope.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* ---- By names */

static const struct {
    const char *name;
    enum dl2_part part;
} names[] = {
    {"train", DL2_PART_TRAIN}, {"training", DL2_PART_TRAIN}, {"val", DL2_PART_VAL},
    {"valid", DL2_PART_VAL},   {"validation", DL2_PART_VAL}, {"dev", DL2_PART_VAL},
    {"test", DL2_PART_TEST},   {"testing", DL2_PART_TEST},
};

const char *dl2_part_name(const struct dl2_part_list *list, unsigned part)
{
    static const char *const texts[DL2_PARTS] = {"", "train", "val", "test"};
    return part < DL2_PARTS ? texts[part] : list->names[part - DL2_PARTS];
}

unsigned dl2_part_find(const struct dl2_part_list *list, const char *name, size_t length)
{
    const enum dl2_part known = dl2_part_of_folder(name, length);
    for (unsigned i = 0; !known && i < list->count; i++)
        if (strlen(list->names[i]) == length && !memcmp(list->names[i], name, length))
            return DL2_PARTS + i;
    return known;
}

int dl2_part_add(struct dl2_part_list *list, const char *name, size_t length, uint8_t *part,
                 struct dl2_error *error)
{
    *part = (uint8_t)dl2_part_find(list, name, length);
    if (*part || !length || name[0] == '.' || memchr(name, '/', length) ||
        (length == strlen("all") && !memcmp(name, "all", length)) ||
        list->count >= DL2_MAX_PARTS - DL2_PARTS)
        return DL2_OK;
    DL2_TRY(dl2_grow(&list->names, list->count, sizeof *list->names, error));
    if (!(list->names[list->count] = strndup(name, length)))
        return dl2_error_memory(error, "a dataset");
    *part = (uint8_t)(DL2_PARTS + list->count++);
    return DL2_OK;
}

void dl2_part_list_free(struct dl2_part_list *list)
{
    for (unsigned i = 0; i < list->count; i++)
        free(list->names[i]);
    free(list->names);
    *list = (struct dl2_part_list){0};
}

/* "train2017", as COCO's folders have the year. */
static size_t without_year(const char *name, size_t length)
{
    enum { DIGITS = 4 };
    size_t digits = 0;
    while (digits < length && digits <= DIGITS && isdigit((unsigned char)name[length - 1 - digits]))
        digits++;
    return digits == DIGITS ? length - DIGITS : length;
}

enum dl2_part dl2_part_of_folder(const char *name, size_t length)
{
    length = without_year(name, length);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (length == strlen(names[i].name) && !strncasecmp(name, names[i].name, length))
            return names[i].part;
    return DL2_PART_NONE;
}

size_t dl2_part_prefix(const char *name)
{
    static const char images[] = "images/";
    const size_t length = sizeof images - 1;
    return !strncmp(name, images, length) &&
                   dl2_part_of_folder(name + length, strcspn(name + length, "/"))
               ? length
               : 0;
}

enum dl2_part dl2_part_of_shard(const char *name)
{
    for (const char *at = name; *at;) {
        const size_t length = strcspn(at, "-_.");
        const enum dl2_part part = dl2_part_of_folder(at, length);
        if (part)
            return part;
        at += length + (at[length] != '\0');
    }
    return DL2_PART_NONE;
}

bool dl2_census_has_parts(const struct dl2_part_census *census)
{
    size_t direct = 0, deep = 0;
    bool there[DL2_PARTS];
    for (int p = 0; p < DL2_PARTS; p++) {
        there[p] = census->direct[p] || census->deep[p];
        direct += census->direct[p];
        deep += census->deep[p];
    }
    if (!there[DL2_PART_TRAIN] && !there[DL2_PART_VAL] && !there[DL2_PART_TEST])
        return false;
    if (!there[DL2_PART_NONE] || (there[DL2_PART_TRAIN] && there[DL2_PART_VAL]))
        return true;
    return deep && direct <= deep / 100; /* a stray file decides nothing */
}

/* ---- By what lies around a path */

static bool is_folder_in(DIR *folder, const struct dirent *entry)
{
    struct stat status;
    return entry->d_type == DT_DIR ||
           ((entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN) &&
            fstatat(dirfd(folder), entry->d_name, &status, 0) == 0 && S_ISDIR(status.st_mode));
}

/* Sets there[part] for each split that a folder in `parent` is named after. */
static void look_at_siblings(const char *parent, bool there[DL2_PARTS])
{
    DL2_CLEANUP(dl2_close_folder) DIR *folder = opendir(parent);
    const struct dirent *entry;
    memset(there, 0, DL2_PARTS * sizeof *there);
    while (folder && (entry = readdir(folder))) {
        if (entry->d_name[0] == '.')
            continue;
        const enum dl2_part part = dl2_part_of_folder(entry->d_name, strlen(entry->d_name));
        there[part] = there[part] || is_folder_in(folder, entry);
    }
}

/* The split that the folder `path`, an absolute path, is by its name and what lies beside it. */
static enum dl2_part part_of_place(const char *path)
{
    const char *name = dl2_path_base(path);
    const enum dl2_part part = dl2_part_of_folder(name, strlen(name));
    DL2_AUTO_FREE char *parent = part ? strndup(path, (size_t)(name - path)) : NULL;
    if (!parent)
        return DL2_PART_NONE;
    bool there[DL2_PARTS];
    look_at_siblings(parent, there);
    if (part != DL2_PART_TRAIN)
        return there[DL2_PART_TRAIN] ? part : DL2_PART_NONE;
    return there[DL2_PART_VAL] || there[DL2_PART_TEST] || !there[DL2_PART_NONE] ? part
                                                                                : DL2_PART_NONE;
}

static enum dl2_part part_around(char *path, unsigned *depth)
{
    for (*depth = 0; *depth < 2; ++*depth) {
        const enum dl2_part part = part_of_place(path);
        char *slash = strrchr(path, '/');
        if (part || !slash || slash == path)
            return part;
        *slash = '\0';
    }
    return DL2_PART_NONE;
}

/* Makes a path absolute, but keeps its last part: a link may be named after a split. NULL if the
 * path has no such part. */
static char *absolute(const char *path)
{
    const int length = dl2_path_folder_length(path);
    DL2_AUTO_FREE char *given = strndup(path, length ? (size_t)length : 1);
    const char *base = given ? dl2_path_base(given) : "";
    if (!*base || !strcmp(base, ".") || !strcmp(base, ".."))
        return NULL;
    DL2_AUTO_FREE char *folder = dl2_folder_of(given);
    DL2_AUTO_FREE char *real = folder ? realpath(folder, NULL) : NULL;
    return real ? dl2_path_join(real, base) : NULL;
}

enum dl2_part dl2_part_of_path(const char *path, unsigned *depth)
{
    *depth = 0;
    if (dl2_is_file(path))
        return dl2_part_of_shard(dl2_path_base(path));
    DL2_AUTO_FREE char *given = absolute(path), *real = realpath(path, NULL);
    const enum dl2_part part = given ? part_around(given, depth) : DL2_PART_NONE;
    return part || !real ? part : part_around(real, depth);
}

enum dl2_part dl2_part_of_address(const char *text, unsigned *depth)
{
    const char *scheme = strstr(text, "://"), *start = scheme ? scheme + 3 : text;
    start += strcspn(start, "/"); /* a bucket or host is no split */
    size_t end = strlen(start);
    for (*depth = 0; *depth < 2; ++*depth) {
        while (end && start[end - 1] == '/')
            end--;
        size_t first = end;
        while (first && start[first - 1] != '/')
            first--;
        const enum dl2_part part = dl2_part_of_folder(start + first, end - first);
        if (part || !first)
            return part;
        end = first;
    }
    return DL2_PART_NONE;
}

static char *folder_of_train(const char *parent)
{
    DL2_CLEANUP(dl2_close_folder) DIR *folder = opendir(parent);
    const struct dirent *entry;
    while (folder && (entry = readdir(folder)))
        if (dl2_part_of_folder(entry->d_name, strlen(entry->d_name)) == DL2_PART_TRAIN &&
            is_folder_in(folder, entry))
            return dl2_path_join(parent, entry->d_name);
    return NULL;
}

/* The first class that has another number among the sorted folders: that number, or -1 if it is not
 * there. */
static bool differs(char **folders, size_t count, char *const *classes, unsigned class_count,
                    unsigned *which, long *number)
{
    if (count)
        qsort(folders, count, sizeof *folders, dl2_compare_texts);
    for (*which = 0; *which < class_count; ++*which) {
        char **found =
            count ? bsearch(&classes[*which], folders, count, sizeof *folders, dl2_compare_texts)
                  : NULL;
        *number = found ? found - folders : -1;
        if (*number != (long)*which)
            return true;
    }
    return false;
}

bool dl2_part_differs_from_train(const char *path, char *const *classes, unsigned class_count,
                                 unsigned *which, long *number)
{
    DL2_AUTO_FREE char *whole = absolute(path);
    char *slash = whole ? strrchr(whole, '/') : NULL;
    if (slash)
        *slash = '\0';
    DL2_AUTO_FREE char *train = slash ? folder_of_train(*whole ? whole : "/") : NULL;
    char **entries;
    if (!train || dl2_list_names(train, &entries, NULL) < 0)
        return false;
    DL2_AUTO_FREE char **folders = NULL;
    size_t count = 0;
    bool good = true;
    for (char **name = entries; good && *name; name++) {
        DL2_AUTO_FREE char *inner = dl2_path_join(train, *name);
        good = inner && dl2_grow(&folders, count, sizeof *folders, NULL) == DL2_OK;
        if (good && dl2_is_folder(inner))
            folders[count++] = *name;
    }
    const bool other = good && differs(folders, count, classes, class_count, which, number);
    dl2_free_list(entries);
    return other;
}

/* ---- By the seeded rule */

struct ticket {
    uint64_t hash;
    uint32_t group; /* label + 1 */
    uint32_t index;
};

static int compare_tickets(const void *left, const void *right)
{
    const struct ticket *a = left, *b = right;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

/* FNV-1a, whose weak low bits Philox then stirs together with the seed. */
static uint64_t hash_key(uint64_t seed, enum dl2_random_use use, const char *key)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (; *key; key++)
        hash = (hash ^ (uint8_t)*key) * 0x100000001b3;
    struct dl2_random random;
    dl2_random_init(&random, seed, use, hash & 0xffffffffffff, hash >> 48);
    uint64_t high = dl2_random_u32(&random);
    return high << 32 | dl2_random_u32(&random);
}

/* A ticket for each of `count` keys, by group and then by hash. NULL if memory runs out. */
static struct ticket *draw_tickets(uint64_t seed, enum dl2_random_use use, const char *const *keys,
                                   const int *labels, size_t count)
{
    struct ticket *tickets = dl2_realloc(NULL, count, sizeof *tickets);
    for (size_t i = 0; tickets && i < count; i++)
        tickets[i] = (struct ticket){.hash = hash_key(seed, use, keys[i]),
                                     .group = (uint32_t)(labels[i] + 1),
                                     .index = (uint32_t)i};
    if (tickets)
        qsort(tickets, count, sizeof *tickets, compare_tickets);
    return tickets;
}

static size_t end_of_group(const struct ticket *tickets, size_t start, size_t count)
{
    size_t end = start;
    while (end < count && tickets[end].group == tickets[start].group)
        end++;
    return end;
}

double dl2_val_fraction(const struct dl2_dataset_options *options)
{
    return isnan(options->val_fraction) ? 0.2 : options->val_fraction;
}

static size_t validation_count(double fraction, size_t count)
{
    if (fraction == 0)
        return 0;
    size_t wanted = (size_t)floor(fraction * (double)count + 0.5);
    return wanted == 0 && count > 1 ? 1 : wanted;
}

int dl2_split_by_rule(const struct dl2_dataset_options *options, const char *const *keys,
                      const int *labels, size_t count, uint8_t *parts, struct dl2_error *error)
{
    DL2_AUTO_FREE struct ticket *tickets =
        draw_tickets(options->split_seed, DL2_RANDOM_SPLIT, keys, labels, count);
    if (!tickets)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory to split %zu samples", count);
    for (size_t start = 0, end; start < count; start = end) {
        end = end_of_group(tickets, start, count);
        size_t val = validation_count(dl2_val_fraction(options), end - start);
        for (size_t i = start; i < end; i++)
            parts[tickets[i].index] = i - start < val ? DL2_PART_VAL : DL2_PART_TRAIN;
    }
    return DL2_OK;
}

/* ---- A part of the samples for training */

static int compare_names(const void *left, const void *right, void *context)
{
    const char *const *keys = context;
    const struct ticket *a = left, *b = right;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    const int order = strcmp(keys[a->index], keys[b->index]);
    return order ? order : (a->index > b->index) - (a->index < b->index);
}

int dl2_subset_by_rule(const struct dl2_subset *subset, const char *const *keys, const int *labels,
                       size_t count, bool *taken, struct dl2_error *error)
{
    DL2_AUTO_FREE struct ticket *tickets =
        draw_tickets(subset->seed, DL2_RANDOM_SUBSET, keys, labels, count);
    if (!tickets)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory to draw from %zu samples",
                             count);
    if (subset->by == DL2_SUBSET_NAME)
        qsort_r(tickets, count, sizeof *tickets, compare_names, (void *)keys);
    for (size_t start = 0, end; start < count; start = end) {
        end = end_of_group(tickets, start, count);
        const size_t wanted = (size_t)floor(subset->fraction * (double)(end - start) + 0.5);
        const size_t take = wanted ? wanted : 1;
        for (size_t i = start; i < end; i++)
            taken[tickets[i].index] = i - start < take;
    }
    return DL2_OK;
}
