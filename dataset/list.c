/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lists of images: a text file that names image files, each with its class and perhaps its split.
 * There is no writer.
 *
 * A sample's key is "SPLIT/CLASS/PATH without extension", as if the files lay in class folders. So
 * what is written from a list, or split by rule, is as from such folders.
 */
#include "dataset/container.h"

#include "common/file.h"
#include "common/memory.h"
#include "common/quote.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_LIST_BYTES = 1 << 30, MAX_FIELDS = 64, MAX_SAMPLE_BYTES_LOG = 31 };
enum column { IMAGE, CLASS, SPLIT, COLUMNS };

/* Strings are to free, but the last. */
struct list_entry {
    char *key, *name, *path; /* name: the key with the extension */
    const char *extension;   /* in the path */
    size_t line;
    uint64_t bytes;
    int64_t mtime_ns;
    int label;
    uint8_t part;
};

struct list {
    struct list_entry *entries;
    size_t count, room;
    size_t ignored; /* lines that name other files */
};

/* What is known of the file while it is read. */
struct list_reading {
    struct list *list;
    const char *path; /* the list's */
    const struct dl2_dataset_options *options;
    bool has_head;
    char separator;       /* ',' or a tab; ' ': the class is the last word of a line */
    int columns[COLUMNS]; /* which field each is, -1: none */
    size_t line;
};

/* ---- Lines */

static int list_error(const struct list_reading *reading, const char *why, struct dl2_error *error)
{
    return dl2_error_set(error, DL2_ERR_FORMAT, "%s: line %zu: %s", reading->path, reading->line,
                         why);
}

/* Cuts a line into fields, in place; fields in double quotes may have separators, and "" for ". */
static int list_split_line(const struct list_reading *reading, char *line, char *fields[MAX_FIELDS],
                           int *count, struct dl2_error *error)
{
    char *at = line;
    for (*count = 0; *count < MAX_FIELDS;) {
        char *to = at;
        fields[(*count)++] = to;
        if (*at == '"') {
            for (at++; *at && (*at != '"' || at[1] == '"'); at++) {
                at += *at == '"';
                *to++ = *at;
            }
            if (*at != '"' || (at[1] && at[1] != reading->separator))
                return list_error(reading, "a quoted field does not end where it should", error);
            at++;
        } else {
            at += strcspn(at, (const char[]){reading->separator, '\0'});
            to = at;
        }
        const bool more = *at == reading->separator;
        *to = '\0';
        if (!more)
            return DL2_OK;
        at++;
    }
    return list_error(reading, "it has more than 64 fields", error);
}

/* "a b.jpg rose": all before the last blanks, and the last word. */
static int list_split_words(const struct list_reading *reading, char *line,
                            char *fields[MAX_FIELDS], int *count, struct dl2_error *error)
{
    size_t end = strlen(line);
    while (end && line[end - 1] == ' ')
        line[--end] = '\0';
    size_t word = end;
    while (word && line[word - 1] != ' ')
        word--;
    size_t rest = word;
    while (rest && line[rest - 1] == ' ')
        rest--;
    if (!rest)
        return list_error(reading, "it is not a path, a blank or tab, and a class", error);
    line[rest] = '\0';
    fields[IMAGE] = line;
    fields[CLASS] = line + word;
    *count = 2;
    return DL2_OK;
}

static bool is_one_of(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (!strcasecmp(text, *words))
            return true;
    return false;
}

/* Does the first line name columns? Else a line is a path and a class. */
static void list_read_head(struct list_reading *reading, char *const *fields, int count)
{
    static const char *const names[COLUMNS][8] = {
        [IMAGE] = {"path", "image", "file", "filename", "filepath", "image_path", "name"},
        [CLASS] = {"label", "class", "category", "target"},
        [SPLIT] = {"split", "set", "subset"}};
    int columns[COLUMNS] = {-1, -1, -1};
    for (int i = 0; i < count; i++)
        for (int c = 0; c < COLUMNS; c++)
            if (columns[c] < 0 && is_one_of(fields[i], names[c]))
                columns[c] = i;
    reading->has_head = columns[IMAGE] >= 0 && columns[CLASS] >= 0;
    if (reading->has_head)
        memcpy(reading->columns, columns, sizeof columns);
}

/* ---- Samples */

/* Can it be a folder's name, and not that of a split? */
static bool is_class_name(const struct list_reading *reading, const char *name)
{
    static const struct dl2_part_list none;
    return *name && *name != '.' && !strchr(name, '/') &&
           (reading->columns[SPLIT] >= 0 || !dl2_part_find(&none, name, strlen(name)));
}

/* Of a relative path, or an absolute one without its slash: no part leads out of a folder. */
static bool stays_inside(const char *path)
{
    while (*path) {
        const size_t length = strcspn(path, "/");
        if ((length == 2 && path[0] == '.' && path[1] == '.') ||
            (length == 1 && path[0] == '.' && path[1]))
            return false;
        path += length;
        path += strspn(path, "/");
    }
    return true;
}

/* The words of a split are one split. */
static const char *split_folder(const char *name)
{
    static const struct dl2_part_list none;
    const unsigned part = dl2_part_find(&none, name, strlen(name));
    return part ? dl2_part_name(&none, (uint8_t)part) : name;
}

static int list_add(struct list_reading *reading, const char *image, const char *class,
                    const char *split, struct dl2_error *error)
{
    struct list *list = reading->list;
    const char *base = dl2_path_base(reading->path), *tail = image + (*image == '/');
    struct list_entry entry = {.line = reading->line, .label = -1};
    struct stat info;
    if (!stays_inside(tail))
        return list_error(reading,
                          "a path with . or .. has no place among class folders: name "
                          "images by paths from the list's folder down, or absolute",
                          error);
    if (!is_class_name(reading, class))
        return list_error(reading, "its class cannot be a folder's name, or is a split's", error);
    if (split && (!*split || *split == '.' || strchr(split, '/')))
        return list_error(reading, "its split cannot be a folder's name", error);
    if (asprintf(&entry.path, "%.*s%s", *image == '/' ? 0 : (int)(base - reading->path),
                 reading->path, image) < 0)
        return dl2_error_memory(error, "a dataset");
    int status = DL2_OK;
    if (stat(entry.path, &info) < 0) {
        dl2_error_system(error, "%s: line %zu: %s", reading->path, reading->line, entry.path);
        status = DL2_ERR_FORMAT;
    } else if (reading->options->keep && !reading->options->keep(entry.path)) {
        list->ignored++;
        free(entry.path);
        return DL2_OK;
    }
    if (status == DL2_OK && asprintf(&entry.name, "%s%s%s/%s", split ? split_folder(split) : "",
                                     split ? "/" : "", class, tail) < 0) {
        entry.name = NULL;
        status = dl2_error_memory(error, "a dataset");
    }
    if (status == DL2_OK) {
        entry.key = strndup(entry.name, dl2_path_stem_length(entry.name));
        entry.extension = dl2_path_extension(entry.path);
        entry.bytes = (uint64_t)info.st_size;
        entry.mtime_ns = dl2_mtime_ns(&info);
        status = entry.key ? DL2_OK : dl2_error_memory(error, "a dataset");
    }
    if (status == DL2_OK && list->count == list->room) {
        const size_t room = list->room ? 2 * list->room : 1024;
        struct list_entry *grown = dl2_realloc(list->entries, room, sizeof *grown);
        if (grown) {
            list->entries = grown;
            list->room = room;
        } else {
            status = dl2_error_memory(error, "a dataset");
        }
    }
    if (status < 0) {
        free(entry.path);
        free(entry.name);
        free(entry.key);
        return status;
    }
    list->entries[list->count++] = entry;
    return DL2_OK;
}

static int list_take_line(struct list_reading *reading, char *line, struct dl2_error *error)
{
    char *fields[MAX_FIELDS];
    int count;
    reading->line++;
    if (!line[strspn(line, " \t\r")])
        return DL2_OK;
    DL2_TRY(reading->separator == ' ' ? list_split_words(reading, line, fields, &count, error)
                                      : list_split_line(reading, line, fields, &count, error));
    if (reading->line == 1)
        list_read_head(reading, fields, count);
    if (reading->line == 1 && reading->has_head)
        return DL2_OK;
    const char *values[COLUMNS];
    if (!reading->has_head && count != 2)
        return list_error(reading,
                          "it has other fields than a path and a class, and the first line "
                          "does not name columns \"path\" and \"label\"",
                          error);
    for (int c = 0; c < COLUMNS; c++) {
        if (reading->columns[c] >= count)
            return list_error(reading, "it has fewer fields than the first line", error);
        values[c] = reading->columns[c] < 0 ? NULL : fields[reading->columns[c]];
    }
    return list_add(reading, values[IMAGE], values[CLASS], values[SPLIT], error);
}

static int list_take_lines(struct list_reading *reading, struct dl2_bytes *text,
                           struct dl2_error *error)
{
    DL2_TRY(dl2_bytes_append(text, "\n", 2, error));
    char *line = (char *)text->data;
    if (strlen(line) + 1 != text->size)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s is not a text", reading->path);
    const size_t first = strcspn(line, "\n");
    reading->separator = memchr(line, '\t', first) ? '\t' : memchr(line, ',', first) ? ',' : ' ';
    while (*line) {
        char *end = line + strcspn(line, "\n"), *next = end + 1;
        *end = '\0';
        if (end > line && end[-1] == '\r')
            end[-1] = '\0';
        DL2_TRY(list_take_line(reading, line, error));
        line = next;
    }
    return DL2_OK;
}

/* ---- The dataset */

static int list_compare(const void *a, const void *b)
{
    const struct list_entry *one = a, *two = b;
    const int order = strcmp(one->name, two->name);
    return order ? order : (one->line > two->line) - (one->line < two->line);
}

static int list_check_names(const struct list *list, const char *path, struct dl2_error *error)
{
    for (size_t i = 1; i < list->count; i++)
        if (!strcmp(list->entries[i - 1].name, list->entries[i].name))
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "%s: line %zu names the same image with the same class as line "
                                 "%zu: %s",
                                 path, list->entries[i].line, list->entries[i - 1].line,
                                 list->entries[i].path);
    return DL2_OK;
}

/* Parts, labels and classes, as of folders of these names. */
static int list_read_names(struct dl2_dataset *dataset, struct list *list, struct dl2_error *error)
{
    const char **names = dl2_calloc(list->count, sizeof *names);
    struct dl2_tree tree;
    if (!names)
        return dl2_error_memory(error, "a dataset");
    for (size_t i = 0; i < list->count; i++)
        names[i] = list->entries[i].name;
    const int status = dl2_tree_read(names, list->count, NULL, &tree, error);
    free(names);
    DL2_TRY(status);
    for (size_t i = 0; i < list->count; i++) {
        list->entries[i].part = tree.parts[i];
        list->entries[i].label = tree.labels[i];
    }
    dataset->has_parts = tree.has_parts;
    dataset->classes = tree.classes;
    dataset->class_count = tree.class_count;
    dataset->parts = tree.names;
    tree.classes = NULL;
    tree.names = (struct dl2_part_list){0};
    dl2_tree_free(&tree);
    return DL2_OK;
}

static int list_open(struct dl2_dataset *dataset, const char *path,
                     const struct dl2_dataset_options *options, struct dl2_error *error)
{
    struct list *list = dl2_calloc(1, sizeof *list);
    struct dl2_bytes text = DL2_BYTES_INIT;
    if (!list)
        return dl2_error_memory(error, "a dataset");
    dataset->state = list;
    struct list_reading reading = {
        .list = list, .path = path, .options = options, .columns = {IMAGE, CLASS, -1}};
    int status = dl2_file_read(path, MAX_LIST_BYTES, &text, error);
    if (status == DL2_OK)
        status = list_take_lines(&reading, &text, error);
    dl2_bytes_free(&text);
    DL2_TRY(status);
    if (list->count > 1)
        qsort(list->entries, list->count, sizeof *list->entries, list_compare);
    DL2_TRY(list_check_names(list, path, error));
    dataset->count = list->count;
    return list_read_names(dataset, list, error);
}

static void list_close(struct dl2_dataset *dataset)
{
    struct list *list = dataset->state;
    for (size_t i = 0; i < list->count; i++) {
        free(list->entries[i].path);
        free(list->entries[i].name);
        free(list->entries[i].key);
    }
    free(list->entries);
    free(list);
}

static const struct list_entry *list_entry_of(const struct dl2_dataset *dataset, size_t number)
{
    const struct list *list = dataset->state;
    return &list->entries[number];
}

static void list_describe(const struct dl2_dataset *dataset, size_t number, struct dl2_entry *out)
{
    const struct list_entry *entry = list_entry_of(dataset, number);
    *out = (struct dl2_entry){
        .key = entry->key, .name = entry->name, .label = entry->label, .part = entry->part};
}

static void list_sample(const struct dl2_dataset *dataset, size_t number, struct dl2_sample *sample)
{
    const struct list_entry *entry = list_entry_of(dataset, number);
    *sample = (struct dl2_sample){
        .key = entry->key,
        .path = entry->path,
        .name = entry->name,
        .extension = entry->extension,
        .label = entry->label,
        .bytes = entry->bytes,
        .mtime_ns = entry->mtime_ns,
    };
}

static int list_read(const struct dl2_dataset *dataset, size_t number,
                     const struct dl2_slice_range *slices, struct dl2_bytes *scratch,
                     const uint8_t **data, size_t *size, struct dl2_error *error)
{
    (void)slices; /* files are not cut */
    DL2_TRY(dl2_file_read(list_entry_of(dataset, number)->path, (uint64_t)1 << MAX_SAMPLE_BYTES_LOG,
                          scratch, error));
    *data = scratch->data;
    *size = scratch->size;
    return DL2_OK;
}

static size_t list_ignored(const struct dl2_dataset *dataset)
{
    const struct list *list = dataset->state;
    return list->ignored;
}

static bool list_locate(const struct dl2_dataset *dataset, size_t number,
                        const struct dl2_slice_range *slices, struct dl2_location *location)
{
    (void)slices;
    const struct list_entry *entry = list_entry_of(dataset, number);
    *location = (struct dl2_location){.path = entry->path, .fd = -1, .bytes = entry->bytes};
    return true;
}

static bool list_probe(const char *path)
{
    static const char *const extensions[] = {"csv", "tsv", "txt", "lst", NULL};
    return is_one_of(dl2_path_extension(path), extensions) && dl2_is_file(path);
}

static const struct dl2_reader list_reader = {
    .open = list_open,
    .close = list_close,
    .describe = list_describe,
    .sample = list_sample,
    .read = list_read,
    .ignored = list_ignored,
    .locate = list_locate,
};

const struct dl2_container dl2_container_list_files = {
    .name = "list",
    .extensions = "csv,tsv,txt,lst",
    .summary = "a list of image files and their classes",
    .looks_for = "a list, FILE.csv, .tsv, .txt or .lst, of images and classes",
    .reader = &list_reader,
    .probe = list_probe,
};
