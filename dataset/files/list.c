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
 * Lists of labels (dl2_dataset_options.labels) name videos of a folder by their names alone, or
 * folders of a video's frames, as datasets of videos are published:
 *   id;label                                         Jester, Something-Something; no first line
 *   label,youtube_id,time_start,time_end,split       Kinetics, with this first line
 * The video is the file below the folder that is called ID, or ID_START_END with six digits each,
 * with any extension of videos, or the images in a folder of that name. Its key is
 * "SPLIT/CLASS/NAME", and that of a frame "SPLIT/CLASS/NAME/FRAME".
 *
 * Metadata of Hugging Face's folders of images are lists, too: metadata.csv, or metadata.jsonl with
 * an object a line, in the folder or in those of splits in it, with file_name and a label.
 */
#include "dataset/files/files.h"

#include "common/csv.h"
#include "common/file.h"
#include "common/json.h"
#include "common/quote.h"
#include "common/scope.h"
#include "dataset/packed/label_field.h"
#include "remote/remote.h"

#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_LIST_BYTES = 1 << 30, MAX_FIELDS = 64, MISSING_NAMED = 5 };
enum column { IMAGE, CLASS, SPLIT, START, END, COLUMNS };

/* The videos and frames of a folder by the names of videos, which begin at `name` in a path: that
 * of a file, without extension, or that of the folder with the frame. */
struct video_names {
    const char *root;
    struct dl2_file_list files;
    struct video_name {
        const char *name;
        size_t length;
        size_t number; /* of the file */
    } * items;
    size_t count, taken; /* `taken`: lines have named them */
};

/* What is known of the file while it is read. */
struct list_reading {
    struct dl2_bytes
        entries;      /* struct dl2_file_entry; the path of each begins a block of strings */
    size_t ignored;   /* lines that name other files */
    size_t videos;    /* of the entries */
    const char *path; /* the list's */
    const struct dl2_remote *remote; /* its folder, on a server; else NULL */
    struct video_names *names;       /* of a list of labels; else NULL */
    const char *split;               /* of all lines; NULL: lines may say it */
    bool is_metadata;                /* of Hugging Face: paths may say the split */
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

static void cut_blanks_at_end(char *text)
{
    for (size_t end = strlen(text); end && text[end - 1] == ' ';)
        text[--end] = '\0';
}

static int list_split_line(const struct list_reading *reading, char *line, char *fields[MAX_FIELDS],
                           int *count, struct dl2_error *error)
{
    const char *why = dl2_csv_split(line, reading->separator, fields, MAX_FIELDS, count);
    return why ? list_error(reading, why, error) : DL2_OK;
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

/* What columns may be called. */
static const char *const column_names[COLUMNS][9] = {
    [IMAGE] = {"path", "image", "file", "filename", "filepath", "image_path", "name", "file_name"},
    [CLASS] = {"label", "class", "category", "target"},
    [SPLIT] = {"split", "set", "subset"},
    [START] = {"time_start"},
    [END] = {"time_end"}};

/* Does the first line name columns? Else a line is a path and a class. */
static void list_read_head(struct list_reading *reading, char *const *fields, int count)
{
    static const char *const videos[] = {"youtube_id", "video_id", "video", "id",
                                         "path",       "filename", "name",  NULL};
    int columns[COLUMNS] = {-1, -1, -1, -1, -1};
    for (int i = 0; i < count; i++)
        for (int c = 0; c < COLUMNS; c++)
            if (columns[c] < 0 &&
                dl2_is_one_of(fields[i], c == IMAGE && reading->names ? videos : column_names[c]))
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

/* Whether no part of a path leads out of a folder: relative, or absolute without its slash. */
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
                          "a path with .. has no place among class folders: name "
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
    const bool is_address = dl2_is_address(image);
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
    /* Metadata beside folders of splits have paths into these. */
    const size_t first = reading->is_metadata && !split ? strcspn(tail, "/") : 0;
    const enum dl2_part part = tail[first] ? dl2_part_of_folder(tail, first) : DL2_PART_NONE;
    DL2_TRY(list_check(reading, tail, class, split, error));
    if (part) {
        split = dl2_part_name(&(const struct dl2_part_list){0}, part);
        top = split;
        slash = "/";
    }
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

static int compare_items(const void *a, const void *b)
{
    const struct video_name *one = a, *two = b;
    const int order = compare_names(a, b);
    return order ? order : (one->number > two->number) - (one->number < two->number);
}

static void free_names(struct video_names *names)
{
    dl2_file_list_free(&names->files);
    free(names->items);
}

static int find_names(struct video_names *names, const char *root,
                      const struct dl2_dataset_options *options, struct dl2_error *error)
{
    names->root = root;
    DL2_TRY(dl2_list_files(root, &names->files, error));
    DL2_TRY(DL2_NEW(&names->items, names->files.count, "a list", error));
    for (size_t i = 0; i < names->files.count; i++) {
        const char *path = names->files.paths[i], *base = dl2_path_base(path);
        const size_t stem = dl2_path_stem_length(path) - (size_t)(base - path);
        const char *folder = base;
        while (folder > path && (folder == base || folder[-1] != '/'))
            folder--;
        if (dl2_files_is_video(path))
            names->items[names->count++] = (struct video_name){base, stem, i};
        else if (folder < base && options->keep && options->keep(path))
            names->items[names->count++] =
                (struct video_name){folder, (size_t)(base - folder) - 1, i};
    }
    if (names->count > 1)
        qsort(names->items, names->count, sizeof *names->items, compare_items);
    return DL2_OK;
}

/* Are both frames in one folder? They have the same name. */
static bool in_one_folder(const struct video_names *names, const struct video_name *a,
                          const struct video_name *b)
{
    const char *one = names->files.paths[a->number], *two = names->files.paths[b->number];
    const size_t length = (size_t)(a->name - one) + a->length;
    return one[length] == '/' && !strncmp(one, two, length + 1);
}

/* The video of that name, or its frames; *count is 0 where there is none. */
static int find_video(const struct list_reading *reading, const char *name, size_t length,
                      const struct video_name **out, size_t *count, struct dl2_error *error)
{
    const struct video_names *names = reading->names;
    const struct video_name wanted = {name, length, 0};
    const struct video_name *found =
        bsearch(&wanted, names->items, names->count, sizeof wanted, compare_names);
    while (found && found > names->items && !compare_names(found, found - 1))
        found--;
    *out = found;
    *count = found != NULL;
    const struct video_name *end = names->items + names->count;
    for (; found && found + *count < end && !compare_names(found, found + *count); ++*count)
        if (!in_one_folder(names, found, found + *count))
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "%s: line %zu: %.*s may be %s or %s of %s; rename one of them",
                                 reading->path, reading->line, (int)length, name,
                                 names->files.paths[found->number],
                                 names->files.paths[found[*count].number], names->root);
    return DL2_OK;
}

/* "12.5" is second 12 in the names of files; -1: it is no time. */
static int read_second(const char *text)
{
    char *end;
    const double seconds = text && *text ? strtod(text, &end) : -1;
    return seconds >= 0 && seconds < 1e6 && !*end ? (int)seconds : -1;
}

/* Adds a video, or a frame of one, to a class's folder. */
static int list_put_video(struct list_reading *reading, const struct video_name *video,
                          const char *class, const char *split, struct dl2_error *error)
{
    static const char validate[] = "validate"; /* as Kinetics calls it */
    const char *top = !split ? "" : !strcasecmp(split, validate) ? "val" : split_folder(split);
    const char *slash = split ? "/" : "", *root = reading->names->root;
    const struct dl2_file_list *files = &reading->names->files;
    DL2_AUTO_FREE char *path = NULL;
    DL2_TRY(dl2_format(&path, error, "%.*s/%s%c%s%s%s/%s%c%s%s%s/%.*s",
                       dl2_path_folder_length(root), root, files->paths[video->number], 0, top,
                       slash, class, video->name, 0, top, slash, class,
                       (int)dl2_path_stem_length(video->name), video->name));
    return list_put(reading, &path, files->bytes[video->number], files->mtime_ns[video->number],
                    error);
}

/* Adds the video that a line of a list of labels names. */
static int list_add_video(struct list_reading *reading, char *const values[COLUMNS],
                          struct dl2_error *error)
{
    cut_blanks_at_end(values[CLASS]);
    const char *id = dl2_path_base(values[IMAGE]), *class = values[CLASS];
    const char *split = reading->split ? reading->split : values[SPLIT];
    const int start = read_second(values[START]), end = read_second(values[END]);
    const size_t length = dl2_files_is_video(id) ? dl2_path_stem_length(id) : strlen(id);
    const struct video_name *found = NULL;
    size_t count = 0;
    DL2_AUTO_FREE char *timed = NULL;
    if (!*id)
        return list_error(reading, "it names no video", error);
    DL2_TRY(list_check(reading, "", class, split, error));
    if (start >= 0 && end >= 0) {
        DL2_TRY(dl2_format(&timed, error, "%.*s_%06d_%06d", (int)length, id, start, end));
        DL2_TRY(find_video(reading, timed, strlen(timed), &found, &count, error));
    }
    if (!count)
        DL2_TRY(find_video(reading, id, length, &found, &count, error));
    if (!count) {
        if (reading->missing++ < MISSING_NAMED)
            dl2_list_name(reading->missing_names, sizeof reading->missing_names, id);
        return DL2_OK;
    }
    reading->has_splits |= split != NULL;
    reading->names->taken += count;
    for (size_t i = 0; i < count; i++)
        DL2_TRY(list_put_video(reading, &found[i], class, split, error));
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
    if (!dl2_is_address(values[IMAGE]))
        dl2_path_tidy(values[IMAGE] + (*values[IMAGE] == '/'));
    return reading->names ? list_add_video(reading, values, error)
                          : list_add(reading, values[IMAGE], values[CLASS],
                                     reading->split ? reading->split : values[SPLIT], error);
}

/* ---- Metadata of Hugging Face's folders of images */

/* What a line of metadata.jsonl calls by one of a column's names; NULL: nothing. */
static const json_t *find_member(const json_t *line, enum column column)
{
    const json_t *found = NULL;
    for (size_t i = 0; column_names[column][i] && !found; i++)
        found = json_object_get(line, column_names[column][i]);
    return found;
}

static int list_take_json(struct list_reading *reading, const char *line, struct dl2_error *error)
{
    char class[DL2_LABEL_BYTES + 1];
    enum dl2_field_kind kind;
    struct dl2_error why = DL2_ERROR_INIT;
    DL2_AUTO_FREE char *image = NULL;
    reading->line++;
    if (!line[strspn(line, " \t\r")])
        return DL2_OK;
    json_auto_t *json = dl2_json_parse(line, strlen(line), JSON_REJECT_DUPLICATES, NULL);
    const char *path = json_string_value(find_member(json, IMAGE));
    const json_t *label = find_member(json, CLASS);
    if (!path || !*path || !label)
        return list_error(reading, "it is not a JSON object with a file_name and a label", error);
    if (dl2_label_of_json(label, &kind, class, &why) < 0)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s: line %zu: its label: %s", reading->path,
                             reading->line, why.message);
    DL2_TRY(dl2_format(&image, error, "%s", path));
    dl2_path_tidy(image + (*image == '/'));
    return list_add(reading, image, class,
                    reading->split ? reading->split : json_string_value(find_member(json, SPLIT)),
                    error);
}

static int list_take_lines(struct list_reading *reading, struct dl2_bytes *text,
                           struct dl2_error *error)
{
    const int status = dl2_text_begin(text, error);
    dl2_error_prefix(error, "%s", reading->path);
    DL2_TRY(status);
    char *rest = (char *)text->data, *line;
    const bool json = dl2_ends_with(reading->path, ".jsonl");
    const size_t first = strcspn(rest, "\n");
    reading->separator = memchr(rest, '\t', first)                    ? '\t'
                         : reading->names && memchr(rest, ';', first) ? ';'
                         : memchr(rest, ',', first)                   ? ','
                                                                      : ' ';
    while ((line = strsep(&rest, "\n"))) {
        const size_t length = strlen(line);
        if (length && line[length - 1] == '\r')
            line[length - 1] = '\0';
        DL2_TRY(json ? list_take_json(reading, line, error) : list_take_line(reading, line, error));
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

/* Has a file of metadata labels? Its first line says so. */
static bool has_labels(const char *path)
{
    enum { MOST = 1 << 20 };
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes text = DL2_BYTES_INIT;
    struct list_reading reading = {.path = path, .separator = ',', .line = 1};
    char *fields[MAX_FIELDS];
    int count;
    DL2_CLEANUP(dl2_close_file) const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || dl2_bytes_resize(&text, MOST, NULL) < 0)
        return false;
    const int64_t got = dl2_read_at(file, 0, text.data, MOST);
    text.size = got > 0 ? (size_t)got : 0;
    if (dl2_text_begin(&text, NULL) < 0)
        return false;
    char *line = (char *)text.data;
    line[strcspn(line, "\r\n")] = '\0';
    if (dl2_ends_with(path, ".jsonl")) {
        json_auto_t *json = dl2_json_parse(line, strlen(line), 0, NULL);
        return find_member(json, IMAGE) && find_member(json, CLASS);
    }
    if (list_split_line(&reading, line, fields, &count, NULL) < 0)
        return false;
    list_read_head(&reading, fields, count);
    return reading.has_head;
}

/* Calls take(), unless it is NULL, with each file of metadata with labels in the folder and in
 * those of splits in it, and the name of the split's folder or NULL; *found counts them. */
static int each_metadata(const char *root, struct list_reading *reading,
                         int (*take)(struct list_reading *reading, const char *path,
                                     const char *folder, struct dl2_error *error),
                         size_t *found, struct dl2_error *error)
{
    static const char *const names[] = {"metadata.csv", "metadata.jsonl"};
    char **inner;
    *found = 0;
    DL2_TRY(dl2_list_names(root, &inner, error));
    int status = DL2_OK;
    for (char **folder = NULL; status == DL2_OK && (!folder || *folder);
         folder = folder ? folder + 1 : inner)
        for (size_t i = 0; status == DL2_OK && i < sizeof names / sizeof *names; i++) {
            DL2_AUTO_FREE char *path = NULL;
            if (folder && !dl2_part_of_folder(*folder, strlen(*folder)))
                continue;
            status = dl2_format(&path, error, "%.*s/%s%s%s", dl2_path_folder_length(root), root,
                                folder ? *folder : "", folder ? "/" : "", names[i]);
            if (status < 0 || !dl2_is_file(path) || !has_labels(path))
                continue;
            ++*found;
            status = take ? take(reading, path, folder ? *folder : NULL, error) : DL2_OK;
        }
    dl2_free_list(inner);
    return status;
}

bool dl2_files_has_metadata(const char *path)
{
    size_t found;
    return dl2_is_folder(path) && each_metadata(path, NULL, NULL, &found, NULL) == DL2_OK && found;
}

static int list_read_one_metadata(struct list_reading *reading, const char *path,
                                  const char *folder, struct dl2_error *error)
{
    reading->is_metadata = true;
    reading->split = folder;
    return list_read(reading, path, NULL, error);
}

/* Says where the classes come from, and what the metadata lack. */
static int list_remark_metadata(struct dl2_dataset *dataset, const struct list_reading *reading,
                                const char *root, size_t found, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_file_list_free) struct dl2_file_list files = {0};
    const size_t named = reading->entries.size / sizeof(struct dl2_file_entry);
    size_t images = 0;
    DL2_TRY(dl2_list_files(root, &files, error));
    for (size_t i = 0; i < files.count; i++)
        images += reading->options->keep && reading->options->keep(files.paths[i]);
    DL2_TRY(dl2_format_more(&dataset->remark, error,
                            "classes are the labels in %zu file%s of metadata (metadata.csv, "
                            "metadata.jsonl)",
                            found, found == 1 ? "" : "s"));
    return images > named ? dl2_format_more(&dataset->remark, error,
                                            "images left out because no metadata name them: %zu",
                                            images - named)
                          : DL2_OK;
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

/* The key of the first sample of a class. */
static const char *list_key_of(const struct dl2_dataset *dataset, const char *class)
{
    const struct dl2_files *files = dataset->state;
    for (size_t i = 0; class && i < files->count; i++) {
        const struct dl2_sample *sample = &files->entries[i].sample;
        if (sample->label >= 0 && !strcmp(dataset->classes[sample->label], class))
            return sample->key;
    }
    return "";
}

/* Sets class_of[c] to the number of what was class c until now, -1 for none, and names those that
 * have one. Returns the number of classes. */
static unsigned list_number_classes(const struct dl2_dataset *dataset,
                                    const struct dl2_label_census *census, int32_t *class_of,
                                    const char **names)
{
    unsigned count = census->word ? 0 : (unsigned)(census->largest + 1);
    for (unsigned c = 0; c < dataset->class_count; c++) {
        const int64_t number = dl2_label_number(dataset->classes[c]);
        class_of[c] = number == DL2_LABEL_ABSENT ? -1
                      : census->word             ? (int32_t)count++
                                                 : (int32_t)number;
        if (class_of[c] >= 0 && !names[class_of[c]])
            names[class_of[c]] = dataset->classes[c];
    }
    return count;
}

/* Labels that are all numbers keep them, as in other containers; those below 0 are no class. */
static int list_read_numbers(struct dl2_dataset *dataset, struct dl2_error *error)
{
    struct dl2_files *files = dataset->state;
    struct dl2_label_census census = DL2_LABEL_CENSUS;
    for (unsigned c = 0; c < dataset->class_count; c++)
        dl2_label_count(&census, dataset->classes[c]);
    const char *key = list_key_of(dataset, census.number);
    if (census.word)
        DL2_TRY(dl2_label_remark_words(&census, key, list_key_of(dataset, census.word),
                                       &dataset->remark, error));
    else
        DL2_TRY(dl2_label_check_largest(&census, list_key_of(dataset, census.top), error));
    const size_t most = census.word ? dataset->class_count : (size_t)(census.largest + 1);
    DL2_AUTO_FREE int32_t *class_of = NULL;
    DL2_AUTO_FREE const char **names = NULL;
    DL2_AUTO_FREE char(*digits)[24] = NULL;
    DL2_TRY(DL2_NEW(&class_of, dataset->class_count, "a list", error));
    DL2_TRY(DL2_NEW(&names, most, "a list", error));
    DL2_TRY(DL2_NEW(&digits, most, "a list", error));
    const unsigned count = list_number_classes(dataset, &census, class_of, names);
    for (unsigned c = 0; c < count; c++) {
        snprintf(digits[c], sizeof digits[c], "%u", c);
        names[c] = names[c] ? names[c] : digits[c];
    }
    size_t absent = 0;
    const char *first = NULL;
    for (size_t i = 0; i < files->count; i++) {
        struct dl2_sample *sample = &files->entries[i].sample;
        const int before = sample->label;
        sample->label = before < 0 ? before : class_of[before];
        if (before < 0 || sample->label >= 0)
            continue;
        first = absent++ ? first : sample->key;
    }
    DL2_AUTO_FREE char **old = dataset->classes; /* which has the names until they are copied */
    DL2_TRY(dl2_reader_set_classes(dataset, names, count, error));
    return dl2_label_remark_absent(absent, files->count, first, &dataset->remark, error);
}

static int list_remark_missing(struct dl2_dataset *dataset, const struct list_reading *reading,
                               struct dl2_error *error)
{
    const struct video_names *names = reading->names;
    dataset->missing = reading->missing;
    if (reading->missing)
        DL2_TRY(dl2_format_more(
            &dataset->remark, error,
            "%zu line%s of the lists of labels name%s a video that is not there: %s%s",
            reading->missing, reading->missing == 1 ? "" : "s", reading->missing == 1 ? "s" : "",
            reading->missing_names, reading->missing > MISSING_NAMED ? ", ..." : ""));
    return names && names->taken < names->count
               ? dl2_format_more(&dataset->remark, error,
                                 "%s left out because no list of labels names them: %zu",
                                 reading->videos ? "videos" : "frames", names->count - names->taken)
               : DL2_OK;
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
        DL2_TRY(find_names(&names, path, options, error));
    size_t found = 0;
    const bool is_folder = !options->labels && !dataset->remote && dl2_is_folder(path);
    const int status = options->labels ? list_read_labels(&reading, options->labels, error)
                       : is_folder
                           ? each_metadata(path, &reading, list_read_one_metadata, &found, error)
                           : list_read(&reading, path, &dataset->remote_index, error);
    files->entries = (struct dl2_file_entry *)reading.entries.data;
    files->count = reading.entries.size / sizeof *files->entries;
    files->ignored = reading.ignored;
    DL2_TRY(status);
    DL2_TRY(list_remark_missing(dataset, &reading, error));
    if (is_folder)
        DL2_TRY(list_remark_metadata(dataset, &reading, path, found, error));
    if (reading.videos && reading.videos < files->count)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             options->labels
                                 ? "%s: the lists of labels name videos and folders of frames; "
                                   "give a list of each"
                                 : "%s names images and videos; write a list of each",
                             path);
    dataset->videos = reading.videos;
    DL2_TRY(dl2_files_check_videos(dataset, path, options, error));
    if (files->count > 1)
        qsort(files->entries, files->count, sizeof *files->entries, list_compare);
    DL2_TRY(list_check_names(files, path, error));
    if (dataset->remote)
        DL2_TRY(list_find_remote(dataset, path, error));
    DL2_TRY(dl2_files_read_names(dataset, error));
    DL2_TRY(list_read_numbers(dataset, error));
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
