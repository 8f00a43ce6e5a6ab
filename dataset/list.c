/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lists: a text file that names image files, or videos, each with its class and perhaps its split.
 * There is no writer.
 *
 * A sample's key is "SPLIT/CLASS/PATH without extension", as if the files lay in class folders. So
 * what is written from a list, or split by rule, is as from such folders.
 *
 * A list on a server names files of that server, or of that bucket, by paths from its folder or by
 * whole addresses. Sizes and times come from the listing of its folder, or from a request a file.
 *
 * Lists of labels (dl2_dataset_options.labels) name videos of a folder by their names alone, as
 * datasets of videos are published:
 *   id;label                                         Jester, Something-Something; no first line
 *   label,youtube_id,time_start,time_end,split       Kinetics, with this first line
 * The video is the file below the folder that is called ID, or ID_START_END with six digits each,
 * with any extension of videos. Its key is "SPLIT/CLASS/NAME".
 */
#include "dataset/files.h"

#include "common/file.h"
#include "common/quote.h"
#include "common/scope.h"
#include "dataset/remote/remote.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_LIST_BYTES = 1 << 30, MAX_FIELDS = 64, MISSING_NAMED = 5 };
enum column { IMAGE, CLASS, SPLIT, START, END, COLUMNS };

/* The videos of a folder by their names, which begin at `name` in a path and have no extension. */
struct video_names {
    const char *root;
    struct dl2_file_list files;
    struct video_name {
        const char *name;
        size_t length;
        size_t number; /* of the file */
    } * items;
    size_t count;
};

/* What is known of the file while it is read. */
struct list_reading {
    struct dl2_bytes
        entries;      /* struct dl2_file_entry; the path of each begins a block of strings */
    size_t ignored;   /* lines that name other files */
    size_t videos;    /* of the entries */
    const char *path; /* the list's */
    const struct dl2_remote *remote; /* its folder, on a server; else NULL */
    const struct video_names *names; /* of a list of labels; else NULL */
    const char *split;               /* of all lines; NULL: lines may say it */
    bool has_splits;                 /* a line has named one */
    size_t missing;                  /* lines whose video is not there */
    char missing_names[512];
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

static void cut_blanks_at_end(char *text)
{
    for (size_t end = strlen(text); end && text[end - 1] == ' ';)
        text[--end] = '\0';
}

/* "a b.jpg rose": all before the last blanks, and the last word. */
static int list_split_words(const struct list_reading *reading, char *line,
                            char *fields[MAX_FIELDS], int *count, struct dl2_error *error)
{
    cut_blanks_at_end(line);
    char *blank = strrchr(line, ' ');
    if (blank) {
        *blank = '\0';
        cut_blanks_at_end(line);
    }
    if (!blank || !*line)
        return list_error(reading, "it is not a path, a blank or tab, and a class", error);
    fields[IMAGE] = line;
    fields[CLASS] = blank + 1;
    *count = 2;
    return DL2_OK;
}

/* Does the first line name columns? Else a line is a path and a class. */
static void list_read_head(struct list_reading *reading, char *const *fields, int count)
{
    static const char *const names[COLUMNS][8] = {
        [IMAGE] = {"path", "image", "file", "filename", "filepath", "image_path", "name"},
        [CLASS] = {"label", "class", "category", "target"},
        [SPLIT] = {"split", "set", "subset"},
        [START] = {"time_start"},
        [END] = {"time_end"}};
    static const char *const videos[] = {"youtube_id", "video_id", "video", "id",
                                         "path",       "filename", "name",  NULL};
    int columns[COLUMNS] = {-1, -1, -1, -1, -1};
    for (int i = 0; i < count; i++)
        for (int c = 0; c < COLUMNS; c++)
            if (columns[c] < 0 &&
                dl2_is_one_of(fields[i], c == IMAGE && reading->names ? videos : names[c]))
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
           (reading->columns[SPLIT] >= 0 || reading->split ||
            !dl2_part_find(&none, name, strlen(name)));
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

/* Refuses what has no place among folders: IMAGE, CLASS or SPLIT as a line names them. */
static int list_check(const struct list_reading *reading, const char *tail, const char *class,
                      const char *split, struct dl2_error *error)
{
    if (!stays_inside(tail))
        return list_error(reading,
                          "a path with . or .. has no place among class folders: name "
                          "images by paths from the list's folder down, or absolute",
                          error);
    if (!is_class_name(reading, class))
        return list_error(reading, "its class cannot be a folder's name, or is a split's", error);
    if (split && (!*split || *split == '.' || strchr(split, '/')))
        return list_error(reading, "its split cannot be a folder's name", error);
    return DL2_OK;
}

/* What a whole address is called below the list's folder, and its path on the server. */
static int list_read_address(const struct list_reading *reading, const char *image, char **name,
                             char **path, struct dl2_error *error)
{
    struct dl2_error own = DL2_ERROR_INIT;
    if (!reading->remote)
        return list_error(reading,
                          "addresses have a place only in a list that lies on the same server; "
                          "name files by paths",
                          error);
    const int status = dl2_remote_name_of(reading->remote, image, name, path, &own);
    return status == DL2_ERR_ARGUMENT ? list_error(reading, own.message, error)
                                      : dl2_error_copy(error, &own);
}

/* Takes a sample's path, name and key, each with a zero at its end. */
static int list_put(struct list_reading *reading, char **path, uint64_t bytes, int64_t mtime_ns,
                    struct dl2_error *error)
{
    const char *name = *path + strlen(*path) + 1;
    const struct dl2_file_entry entry = {.sample = {.key = name + strlen(name) + 1,
                                                    .path = *path,
                                                    .name = name,
                                                    .extension = dl2_path_extension(*path),
                                                    .bytes = bytes,
                                                    .mtime_ns = mtime_ns},
                                         .number = (uint32_t)reading->line};
    DL2_TRY(dl2_bytes_append(&reading->entries, &entry, sizeof entry, error));
    reading->videos += dl2_files_is_video(*path);
    *path = NULL;
    return DL2_OK;
}

static int list_add(struct list_reading *reading, const char *image, const char *class,
                    const char *split, struct dl2_error *error)
{
    const char *list = reading->path, *tail = image + (*image == '/');
    const char *top = split ? split_folder(split) : "", *slash = split ? "/" : "";
    const bool is_address = dl2_dataset_is_remote(image);
    const int folder = is_address || *image == '/' ? 0 : (int)(dl2_path_base(list) - list);
    struct stat info = {.st_size = 0};
    DL2_AUTO_FREE char *path = NULL, *name_there = NULL, *path_there = NULL;
    if (is_address)
        DL2_TRY(list_read_address(reading, image, &name_there, &path_there, error));
    else if (reading->remote && *image == '/')
        return list_error(reading,
                          "a path from / has no place on a server: name files by paths from the "
                          "list's folder down, or by whole addresses",
                          error);
    tail = is_address ? path_there : tail;
    DL2_TRY(list_check(reading, tail, class, split, error));
    reading->has_splits |= split != NULL;
    /* The path, the name, the key and the name on a server, each with a zero at its end. */
    DL2_TRY(dl2_format(&path, error, "%.*s%s%c%s%s%s/%s%c%s%s%s/%.*s%c%s", folder, list, image, 0,
                       top, slash, class, tail, 0, top, slash, class,
                       (int)dl2_path_stem_length(tail), tail, 0, is_address ? name_there : tail));
    if (!reading->remote && stat(path, &info) < 0) {
        dl2_error_system(error, "%s: line %zu: %s", list, reading->line, path);
        return DL2_ERR_FORMAT;
    }
    if (!dl2_files_is_video(path) && reading->options->keep && !reading->options->keep(path)) {
        reading->ignored++;
        return DL2_OK;
    }
    return list_put(reading, &path, (uint64_t)info.st_size, dl2_mtime_ns(&info), error);
}

/* ---- Videos by their names */

static int compare_names(const void *a, const void *b)
{
    const struct video_name *one = a, *two = b;
    return dl2_compare_spans(one->name, one->length, two->name, two->length);
}

static void free_names(struct video_names *names)
{
    dl2_file_list_free(&names->files);
    free(names->items);
}

static int find_names(struct video_names *names, const char *root, struct dl2_error *error)
{
    names->root = root;
    DL2_TRY(dl2_list_files(root, &names->files, error));
    DL2_TRY(DL2_NEW(&names->items, names->files.count, "a list", error));
    for (size_t i = 0; i < names->files.count; i++) {
        const char *path = names->files.paths[i], *base = dl2_path_base(path);
        if (dl2_files_is_video(path))
            names->items[names->count++] =
                (struct video_name){base, dl2_path_stem_length(path) - (size_t)(base - path), i};
    }
    if (names->count > 1)
        qsort(names->items, names->count, sizeof *names->items, compare_names);
    return DL2_OK;
}

/* *out is NULL where no video has the name. */
static int find_video(const struct list_reading *reading, const char *name, size_t length,
                      const struct video_name **out, struct dl2_error *error)
{
    const struct video_names *names = reading->names;
    const struct video_name wanted = {name, length, 0}, *other = NULL;
    const struct video_name *found =
        bsearch(&wanted, names->items, names->count, sizeof wanted, compare_names);
    *out = found;
    if (found && found > names->items && !compare_names(found, found - 1))
        other = found - 1;
    else if (found && found + 1 < names->items + names->count && !compare_names(found, found + 1))
        other = found + 1;
    if (!other)
        return DL2_OK;
    const bool first = found->number < other->number;
    return dl2_error_set(error, DL2_ERR_FORMAT,
                         "%s: line %zu: %.*s may be %s or %s of %s; rename one of them",
                         reading->path, reading->line, (int)length, name,
                         names->files.paths[(first ? found : other)->number],
                         names->files.paths[(first ? other : found)->number], names->root);
}

/* "12.5" is second 12 in the names of files; -1: it is no time. */
static int read_second(const char *text)
{
    char *end;
    const double seconds = text && *text ? strtod(text, &end) : -1;
    return seconds >= 0 && seconds < 1e6 && !*end ? (int)seconds : -1;
}

/* Adds the video that a line of a list of labels names. */
static int list_add_video(struct list_reading *reading, char *const values[COLUMNS],
                          struct dl2_error *error)
{
    static const char validate[] = "validate"; /* as Kinetics calls it */
    cut_blanks_at_end(values[CLASS]);
    const char *id = dl2_path_base(values[IMAGE]), *class = values[CLASS];
    const char *split = reading->split ? reading->split : values[SPLIT];
    const int start = read_second(values[START]), end = read_second(values[END]);
    const size_t length = dl2_files_is_video(id) ? dl2_path_stem_length(id) : strlen(id);
    const struct video_name *found = NULL;
    DL2_AUTO_FREE char *timed = NULL, *path = NULL;
    if (!*id)
        return list_error(reading, "it names no video", error);
    DL2_TRY(list_check(reading, "", class, split, error));
    if (start >= 0 && end >= 0) {
        DL2_TRY(dl2_format(&timed, error, "%.*s_%06d_%06d", (int)length, id, start, end));
        DL2_TRY(find_video(reading, timed, strlen(timed), &found, error));
    }
    if (!found)
        DL2_TRY(find_video(reading, id, length, &found, error));
    if (!found) {
        if (reading->missing++ < MISSING_NAMED)
            dl2_list_name(reading->missing_names, sizeof reading->missing_names, id);
        return DL2_OK;
    }
    const char *top = !split ? "" : !strcasecmp(split, validate) ? "val" : split_folder(split);
    const char *slash = split ? "/" : "";
    reading->has_splits |= split != NULL;
    const struct dl2_file_list *files = &reading->names->files;
    const char *file = files->paths[found->number];
    DL2_TRY(dl2_format(&path, error, "%.*s/%s%c%s%s%s/%s%c%s%s%s/%.*s",
                       dl2_path_folder_length(reading->names->root), reading->names->root, file, 0,
                       top, slash, class, found->name, 0, top, slash, class, (int)found->length,
                       found->name));
    return list_put(reading, &path, files->bytes[found->number], files->mtime_ns[found->number],
                    error);
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
    char *values[COLUMNS];
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
    return reading->names ? list_add_video(reading, values, error)
                          : list_add(reading, values[IMAGE], values[CLASS], values[SPLIT], error);
}

static int list_take_lines(struct list_reading *reading, struct dl2_bytes *text,
                           struct dl2_error *error)
{
    DL2_TRY(dl2_bytes_append(text, "", 1, error));
    char *rest = (char *)text->data, *line;
    if (strlen(rest) + 1 != text->size)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s is not a text", reading->path);
    const size_t first = strcspn(rest, "\n");
    reading->separator = memchr(rest, '\t', first)                    ? '\t'
                         : reading->names && memchr(rest, ';', first) ? ';'
                         : memchr(rest, ',', first)                   ? ','
                                                                      : ' ';
    while ((line = strsep(&rest, "\n"))) {
        const size_t length = strlen(line);
        if (length && line[length - 1] == '\r')
            line[length - 1] = '\0';
        DL2_TRY(list_take_line(reading, line, error));
    }
    return DL2_OK;
}

/* ---- The dataset */

static int list_compare(const void *a, const void *b)
{
    const struct dl2_file_entry *one = a, *two = b;
    const int order = strcmp(one->sample.name, two->sample.name);
    return order ? order : (one->number > two->number) - (one->number < two->number);
}

static int list_check_names(const struct dl2_files *files, const char *path,
                            struct dl2_error *error)
{
    for (size_t i = 1; i < files->count; i++) {
        const struct dl2_file_entry *before = &files->entries[i - 1], *entry = &files->entries[i];
        if (!strcmp(before->sample.name, entry->sample.name))
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "%s: line %" PRIu32 " names the same image with the same class as "
                                 "line %" PRIu32 ": %s",
                                 path, entry->number, before->number, entry->sample.path);
    }
    return DL2_OK;
}

/* Reads one more list; `loaded` has the bytes of one on a server. */
static int list_read(struct list_reading *reading, const char *path, struct dl2_bytes *loaded,
                     struct dl2_error *error)
{
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes text = DL2_BYTES_INIT;
    const int columns[COLUMNS] = {IMAGE, CLASS, -1, -1, -1};
    memcpy(reading->columns, columns, sizeof columns);
    reading->path = path;
    reading->line = 0;
    reading->has_head = false;
    if (reading->remote)
        dl2_bytes_swap(&text, loaded);
    else
        DL2_TRY(dl2_file_read(path, MAX_LIST_BYTES, &text, error));
    return list_take_lines(reading, &text, error);
}

/* Reads lists of labels, "FILE" or "SPLIT=FILE", with commas between them. */
static int list_read_labels(struct list_reading *reading, const char *lists,
                            struct dl2_error *error)
{
    DL2_AUTO_FREE char *copy = NULL;
    DL2_TRY(dl2_format(&copy, error, "%s", lists));
    for (char *rest = copy, *path; (path = strsep(&rest, ","));) {
        char *equals = strchr(path, '=');
        const bool has_split = equals && !memchr(path, '/', (size_t)(equals - path));
        reading->split = has_split ? path : NULL;
        if (has_split)
            *equals = '\0';
        DL2_TRY(list_read(reading, has_split ? equals + 1 : path, NULL, error));
    }
    return DL2_OK;
}

/* Finds the files of a list on a server: by the listing of its folder, others one by one. */
static int list_find_remote(struct dl2_dataset *dataset, const char *path, struct dl2_error *error)
{
    struct dl2_files *files = dataset->state;
    struct dl2_listing *listing = &dataset->remote_listing;
    struct dl2_error own = DL2_ERROR_INIT;
    size_t failed = 0;
    DL2_AUTO_FREE int64_t *times_ns = NULL;
    DL2_TRY(DL2_NEW(&times_ns, files->count, "a list", error));
    DL2_TRY(DL2_NEW(&files->remote, files->count, "a list", error));
    if (dl2_remote_lists(dataset->remote))
        DL2_TRY(dl2_remote_list(dataset->remote, listing, error));
    for (size_t i = 0; i < files->count; i++) {
        const char *key = files->entries[i].sample.key, *name = key + strlen(key) + 1;
        const struct dl2_listed_object *object = dl2_listing_find(listing, name);
        times_ns[i] = object ? object->mtime_ns : 0;
        DL2_TRY(dl2_remote_file_init(dataset->remote, name,
                                     object ? object->bytes : DL2_REMOTE_UNKNOWN,
                                     object ? (char *)listing->strings.data + object->etag : NULL,
                                     &files->remote[files->remote_count++], error));
    }
    if (dl2_remote_look(files->remote, times_ns, files->count, &failed, &own) < 0) {
        dl2_error_prefix(&own, "%s: line %" PRIu32, path, files->entries[failed].number);
        return dl2_error_copy(error, &own);
    }
    if (dl2_remote_has_cache(dataset->remote))
        DL2_TRY(dl2_remote_identify(files->remote, files->count, error));
    for (size_t i = 0; i < files->count; i++) {
        struct dl2_file_entry *entry = &files->entries[i];
        entry->number = (uint32_t)i;
        entry->sample.bytes = files->remote[i].bytes;
        entry->sample.mtime_ns = times_ns[i];
    }
    return DL2_OK;
}

static int list_remark_missing(struct dl2_dataset *dataset, const struct list_reading *reading,
                               struct dl2_error *error)
{
    dataset->missing = reading->missing;
    return !reading->missing
               ? DL2_OK
               : dl2_format(&dataset->remark, error,
                            "%zu line%s of the lists of labels name%s a video that is not there: "
                            "%s%s",
                            reading->missing, reading->missing == 1 ? "" : "s",
                            reading->missing == 1 ? "s" : "", reading->missing_names,
                            reading->missing > MISSING_NAMED ? ", ..." : "");
}

static int list_open(struct dl2_dataset *dataset, const char *path,
                     const struct dl2_dataset_options *options, struct dl2_error *error)
{
    struct dl2_files *files = dataset->state = dl2_calloc(1, sizeof *files);
    DL2_CLEANUP(free_names) struct video_names names = {0};
    if (!files)
        return dl2_error_memory(error, "a dataset");
    struct list_reading reading = {
        .options = options, .names = options->labels ? &names : NULL, .remote = dataset->remote};
    if (options->labels)
        DL2_TRY(find_names(&names, path, error));
    const int status = options->labels ? list_read_labels(&reading, options->labels, error)
                                       : list_read(&reading, path, &dataset->remote_index, error);
    files->entries = (struct dl2_file_entry *)reading.entries.data;
    files->count = reading.entries.size / sizeof *files->entries;
    files->ignored = reading.ignored;
    DL2_TRY(status);
    DL2_TRY(list_remark_missing(dataset, &reading, error));
    if (reading.videos && reading.videos < files->count)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s names images and videos; write a list of each", path);
    dataset->videos = reading.videos;
    DL2_TRY(dl2_files_check_videos(dataset, path, options, error));
    if (files->count > 1)
        qsort(files->entries, files->count, sizeof *files->entries, list_compare);
    DL2_TRY(list_check_names(files, path, error));
    if (dataset->remote)
        DL2_TRY(list_find_remote(dataset, path, error));
    DL2_TRY(dl2_files_read_names(dataset, error));
    if (files->count && reading.has_splits && !dataset->has_parts)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s: none of the splits that are named is train, val or test, so they "
                             "would be read as classes; call one of them train",
                             path);
    return DL2_OK;
}

static void list_close(struct dl2_dataset *dataset)
{
    struct dl2_files *files = dataset->state;
    for (size_t i = 0; i < files->count; i++)
        free((char *)files->entries[i].sample.path);
    dl2_files_free(files);
    free(files);
}

bool dl2_files_is_list(const char *path)
{
    static const char *const extensions[] = {"csv", "tsv", "txt", "lst", NULL};
    return dl2_is_one_of(dl2_path_extension(path), extensions);
}

static bool list_probe(const char *path)
{
    return dl2_files_is_list(path) && dl2_is_file(path);
}

static const struct dl2_reader list_reader = {
    .open = list_open,
    .close = list_close,
    .describe = dl2_files_describe,
    .read = dl2_files_read,
    .ignored = dl2_files_ignored,
    .locate = dl2_files_locate,
};

const struct dl2_container dl2_container_list_files = {
    .name = "list",
    .extensions = "csv,tsv,txt,lst",
    .summary = "a list of image files and their classes",
    .looks_for = "a list, FILE.csv, .tsv, .txt or .lst, of images and classes",
    .reader = &list_reader,
    .probe = list_probe,
};
