/* SPDX-License-Identifier: BSD-2-Clause */
/* RESULT=FILE:FIELD[:WORD...]: values in files that tools of training write. */
#include "study/result.h"

#include "common/accuracy_kind.h"
#include "common/csv.h"
#include "common/file.h"
#include "common/json.h"
#include "common/quote.h"
#include "study/paths.h"
#include "study/settings.h"

#include <errno.h>
#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_COLUMNS = 1024, NAMED = 5 };

/* ---- The setting */

enum form { CSV, JSON, LINES, FORMS };
static const struct {
    const char *extension;
    enum form form;
} forms[] = {{"csv", CSV},      {"tsv", CSV},   {"json", JSON}, {"jsonl", LINES},
             {"ndjson", LINES}, {"txt", LINES}, {"log", LINES}};

struct wanted {
    const char *pattern, *field, *unit;
    enum form form; /* FORMS: not known */
    bool best, lower;
};

static bool take_word(struct wanted *wanted, const char *word)
{
    if (strcmp(word, "best") == 0)
        wanted->best = true;
    else if (strcmp(word, "last") == 0)
        wanted->best = false;
    else if (strcmp(word, "lower") == 0)
        wanted->lower = true;
    else if (strcmp(word, "number") == 0)
        wanted->unit = "";
    else if (strcmp(word, "fraction") == 0 || strcmp(word, "percent") == 0)
        wanted->unit = word;
    else
        return false;
    return true;
}

/* Words stand at the end, so that a field may have colons. */
static struct wanted read_setting(const char *setting)
{
    struct wanted wanted = {.unit = "fraction", .form = FORMS};
    struct dl2_words words = {0};
    const size_t file = strcspn(setting, ":");
    size_t length = strlen(setting);
    wanted.pattern = dl2_text("%.*s", (int)file, setting);
    for (;;) {
        const char *text = dl2_text("%.*s", (int)length, setting), *colon = strrchr(text, ':');
        struct wanted tried = wanted;
        if (!colon || (size_t)(colon - text) <= file || !take_word(&tried, colon + 1))
            break;
        dl2_words_add(&words, colon + 1);
        length = (size_t)(colon - text);
    }
    for (size_t i = words.count; i-- > 0;)
        take_word(&wanted, words.at[i]);
    wanted.field =
        length > file ? dl2_text("%.*s", (int)(length - file - 1), setting + file + 1) : "";
    const char *extension = dl2_path_extension(wanted.pattern);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strcmp(forms[i].extension, extension) == 0)
            wanted.form = forms[i].form;
    return wanted;
}

void dl2_result_check_setting(const char *setting)
{
    const struct wanted wanted = read_setting(setting);
    if (!*setting || strcmp(setting, DL2_RESULT_FILE) == 0 ||
        strcmp(setting, DL2_RESULT_OF_DL2) == 0)
        return;
    if (!*wanted.pattern || !*wanted.field)
        dl2_setting_refuse("RESULT", setting,
                           "it is FILE:FIELD, such as summary.csv:eval_top1:percent");
    if (*wanted.pattern == '/' || strstr(wanted.pattern, ".."))
        dl2_setting_refuse("RESULT", setting, "%s is not a path from the folder for results, %%o",
                           wanted.pattern);
    if (!dl2_accuracy_name_is_plain(wanted.field))
        dl2_setting_refuse("RESULT", setting,
                           "the metric, %s, has a name that pages cannot show: of more than 64 "
                           "bytes, or with one of %s",
                           wanted.field, DL2_ODD_IN_METRIC_NAMES);
    if (wanted.form == FORMS)
        dl2_setting_refuse("RESULT", setting,
                           "%s is of no known form: .csv and .tsv are tables, .json is JSON, "
                           ".jsonl, .ndjson, .txt and .log have a JSON object a line",
                           wanted.pattern);
}

/* ---- Files */

/* What is in the folder, for messages. */
static const char *names_in(const char *folder)
{
    char list[512] = "", **names;
    size_t count = 0;
    if (dl2_list_names(folder, &names, NULL) < 0)
        return "nothing that can be read";
    for (char **name = names; *name; name++, count++)
        if (count < NAMED)
            dl2_list_name(list, sizeof list, *name);
    dl2_free_list(names);
    return !count          ? "nothing"
           : count > NAMED ? dl2_text("%s and %zu more", list, count - NAMED)
                           : dl2_text("%s", list);
}

/* A path without a meaning for glob(). */
static const char *escape(const char *path)
{
    char *text = dl2_keep(2 * strlen(path) + 1, 1, "a path"), *end = text;
    for (; *path; path++) {
        if (strchr("*?[]\\", *path))
            *end++ = '\\';
        *end++ = *path;
    }
    return text;
}

int dl2_result_find(const char *pattern, const struct dl2_result_source *source, const char **path,
                    struct dl2_error *error)
{
    struct stat info;
    struct dl2_words found = {0};
    glob_t list;
    const int status =
        glob(dl2_text("%s/%s", escape(source->out), pattern), GLOB_NOSORT, NULL, &list);
    for (size_t i = 0; status == 0 && i < list.gl_pathc; i++)
        dl2_words_add(&found, dl2_text("%s", list.gl_pathv[i]));
    if (status == 0)
        globfree(&list);
    if (!found.count)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s: there is no %s; the folder has %s",
                             source->out, pattern, names_in(source->out));
    if (found.count > 1)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s: %s matches %zu files, such as %s and %s: which one it is has to "
                             "be certain",
                             source->out, pattern, found.count, dl2_path_base(found.at[0]),
                             dl2_path_base(found.at[1]));
    *path = found.at[0];
    if (stat(*path, &info) < 0)
        return dl2_error_system(error, "%s: cannot be read", *path);
    if (!S_ISREG(info.st_mode))
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s: it is no file", *path);
    if (!dl2_path_is_within(dl2_path_canonical(*path), dl2_path_canonical(source->out)))
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s: it is a link to %s, which may be another training's: write it "
                             "into the folder for results",
                             *path, dl2_path_canonical(*path));
    if (info.st_nlink > 1)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s: it has another name elsewhere, so it may be another training's: "
                             "write a file of its own",
                             *path);
    if (dl2_mtime_ns(&info) < source->began_ns)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s: it is older than the training, which has not written it", *path);
    return DL2_OK;
}

int dl2_result_text(const char *path, const char **text, struct dl2_error *error)
{
    enum { LARGEST = 1 << 26 };
    struct dl2_bytes bytes = DL2_BYTES_INIT;
    struct dl2_error own = DL2_ERROR_INIT;
    int status = dl2_file_read(path, LARGEST, &bytes, error);
    if (status == DL2_OK && (status = dl2_text_begin(&bytes, &own)) < 0)
        dl2_error_set(error, own.status, "%s: %s", path, own.message);
    if (status == DL2_OK)
        *text = dl2_text("%.*s", (int)bytes.size, (const char *)bytes.data);
    dl2_bytes_free(&bytes);
    if (status == DL2_OK && !(*text)[strspn(*text, " \t\r\n")])
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s: it is empty", path);
    return status;
}

/* ---- Values */

int dl2_result_check_value(const struct dl2_result_metric *metric, double value, const char *where,
                           struct dl2_error *error)
{
    const double most = dl2_accuracy_most(metric->unit);
    if (!isfinite(value) || fabs(value) > 1e12)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s: %g is no finite number, or beyond 1e12",
                             where, value);
    if (isfinite(most) && (value < 0 || value > most))
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s: %.10g is no %s, which is from 0 to %g%s",
                             where, value, metric->unit, most,
                             most == 1 && value > 1 && value <= 100 ? ": if it is percent, say so"
                                                                    : "");
    return DL2_OK;
}

struct reading {
    const struct wanted *wanted;
    const char *path;
    uint64_t seed;
    struct dl2_result_values *values;
    struct dl2_error *error;
};

static int wrong(const struct reading *reading, const char *where, const char *why)
{
    return dl2_error_set(reading->error, DL2_ERR_FORMAT, "%s: %s%s%s", reading->path, where,
                         *where ? ": " : "", why);
}

static int add_value(const struct reading *reading, double value, const char *where)
{
    struct dl2_result_values *values = reading->values;
    DL2_TRY(dl2_result_check_value(&values->metric, value, dl2_text("%s: %s", reading->path, where),
                                   reading->error));
    values->at = dl2_keep_more(values->at, values->count, sizeof *values->at);
    values->at[values->count++] = value;
    return DL2_OK;
}

/* A text as a number, as Python and C write one. */
static int add_text(const struct reading *reading, const char *text, const char *where)
{
    char *end;
    errno = 0;
    const double value = strtod(text, &end);
    if (*end || end == text || strpbrk(text, "xX"))
        return wrong(reading, where, dl2_text("\"%.40s\" is not a number", text));
    return add_value(reading, value, where);
}

static int check_seed(const struct reading *reading, const char *text, const char *where)
{
    char *end;
    const double seed = strtod(text, &end);
    if (end == text || *end || seed == (double)reading->seed)
        return DL2_OK;
    return wrong(
        reading, where,
        dl2_text("it is of seed %s, where %%s is %llu", text, (unsigned long long)reading->seed));
}

/* ---- Tables */

struct table {
    char *fields[MAX_COLUMNS];
    int columns, count; /* of the heading, of this line */
    int wanted, seed;   /* columns; -1: there is none */
    char separator;
};

/* A comma, unless the heading has none. */
static char separator_of(const char *heading)
{
    static const char known[] = ",\t;";
    for (const char *c = known; *c; c++)
        if (strchr(heading, *c))
            return *c;
    return ',';
}

static int read_heading(const struct reading *reading, struct table *table, char *line)
{
    const char *field = reading->wanted->field, *names = "";
    table->separator = separator_of(line);
    const char *why =
        dl2_csv_split(line, table->separator, table->fields, MAX_COLUMNS, &table->columns);
    if (why)
        return wrong(reading, "the heading", why);
    table->wanted = table->seed = -1;
    for (int i = 0; i < table->columns; i++) {
        const char *name = table->fields[i];
        if (strcmp(name, field) == 0 && table->wanted >= 0)
            return wrong(reading, "the heading", dl2_text("it has %s twice", field));
        if (strcmp(name, field) == 0)
            table->wanted = i;
        if (strcmp(name, "seed") == 0)
            table->seed = i;
        names = dl2_text("%s%s%s", names, *names ? ", " : "", name);
    }
    return table->wanted >= 0 ? DL2_OK
                              : wrong(reading, "the heading",
                                      dl2_text("it has no column %s, but %.300s", field, names));
}

static int read_row(const struct reading *reading, struct table *table, char *line, size_t number)
{
    const char *where = dl2_text("line %zu", number);
    const char *why =
        dl2_csv_split(line, table->separator, table->fields, MAX_COLUMNS, &table->count);
    if (why)
        return wrong(reading, where, why);
    if (table->count != table->columns)
        return wrong(
            reading, where,
            dl2_text("it has %d fields, where the heading has %d", table->count, table->columns));
    if (table->seed >= 0)
        DL2_TRY(check_seed(reading, table->fields[table->seed], where));
    const char *text = table->fields[table->wanted];
    return *text ? add_text(reading, text, dl2_text("%s, %s", where, reading->wanted->field))
                 : DL2_OK;
}

static int read_table(const struct reading *reading, const char *text)
{
    struct table table;
    size_t number = 0;
    for (const char *at = text; *at; at = dl2_next_line(at)) {
        const size_t length = strcspn(at, "\n");
        char *line = dl2_text("%.*s", (int)length, at);
        number++;
        if (!at[length])
            return wrong(reading, dl2_text("line %zu", number),
                         "it has no end: the file is cut off");
        if (length && line[length - 1] == '\r')
            line[length - 1] = '\0';
        if (number > 1 && !line[strspn(line, " ")])
            continue;
        DL2_TRY(number == 1 ? read_heading(reading, &table, line)
                            : read_row(reading, &table, line, number));
    }
    return DL2_OK;
}

/* ---- JSON */

static int add_json(const struct reading *reading, const json_t *value, const char *where)
{
    if (json_is_number(value))
        return add_value(reading, json_number_value(value), where);
    return wrong(reading, where,
                 json_is_null(value)     ? "it is null, or NaN, and not a number"
                 : json_is_string(value) ? "it is a text, and not a number"
                                         : "it is not a number");
}

/* All values at a path of members with points between them; a name may have points, too. Lists
 * stand for their elements, of which not all need have the member. */
static int take_path(const struct reading *reading, const json_t *at, const char *path)
{
    const char *where = reading->wanted->field;
    const json_t *item, *value;
    size_t i;
    if (json_is_array(at)) {
        json_array_foreach(at, i, item) DL2_TRY(take_path(reading, item, path));
        return DL2_OK;
    }
    if (!path)
        return add_json(reading, at, where);
    if ((value = json_object_get(at, path)))
        return take_path(reading, value, NULL);
    for (const char *point = strchr(path, '.'); point; point = strchr(point + 1, '.'))
        if ((value = json_object_get(at, dl2_text("%.*s", (int)(point - path), path))))
            return take_path(reading, value, point + 1);
    return DL2_OK;
}

static int take_json(const struct reading *reading, const char *text, size_t size,
                     const char *where)
{
    json_error_t why;
    json_auto_t *json = dl2_json_parse(text, size, JSON_REJECT_DUPLICATES, &why);
    if (!json)
        return wrong(reading, where, dl2_text("it is not JSON: %s", why.text));
    const json_t *seed = json_object_get(json, "seed");
    if (json_is_integer(seed))
        DL2_TRY(check_seed(reading, dl2_text("%lld", (long long)json_integer_value(seed)), where));
    return take_path(reading, json, reading->wanted->field);
}

static int read_lines(const struct reading *reading, const char *text)
{
    size_t number = 0;
    for (const char *at = text; *at; at = dl2_next_line(at)) {
        const size_t length = strcspn(at, "\n");
        number++;
        if (strspn(at, " \t\r") < length)
            DL2_TRY(take_json(reading, at, length, dl2_text("line %zu", number)));
    }
    return DL2_OK;
}

/* ---- */

static void choose(struct dl2_result_values *values, const struct wanted *wanted)
{
    values->chosen = values->count - 1;
    values->is_best = wanted->best && values->count > 1;
    for (size_t i = 0; values->is_best && i < values->count; i++) {
        const double gain = values->at[i] - values->at[values->chosen];
        if (wanted->lower ? gain < 0 : gain > 0)
            values->chosen = i;
    }
}

int dl2_result_read_values(const char *setting, const struct dl2_result_source *source,
                           struct dl2_result_values *values, struct dl2_error *error)
{
    const struct wanted wanted = read_setting(setting);
    const char *path, *text;
    *values = (struct dl2_result_values){.metric = {wanted.field, wanted.unit, wanted.lower}};
    DL2_TRY(dl2_result_find(wanted.pattern, source, &path, error));
    DL2_TRY(dl2_result_text(path, &text, error));
    const struct reading reading = {&wanted, path, source->seed, values, error};
    DL2_TRY(wanted.form == CSV    ? read_table(&reading, text)
            : wanted.form == JSON ? take_json(&reading, text, strlen(text), "")
                                  : read_lines(&reading, text));
    if (!values->count)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s: it has no value of %s", path,
                             wanted.field);
    choose(values, &wanted);
    return DL2_OK;
}
