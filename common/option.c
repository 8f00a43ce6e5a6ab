/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "common/option.h"

#include "common/json.h"
#include "common/machine_log.h"
#include "common/memory.h"
#include "common/nearest.h"
#include "common/quote.h"
#include "common/streams.h"
#include "common/thread.h"

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* argp wants a number per option: its letter where it has one, else one above all letters. */
enum {
    KEY_JOBS = 'j',
    KEY_HELP = '?',
    KEY_VERSION = 'V',
    KEY_QUIET = 0x1000,
    KEY_USAGE,
    KEY_COMPLETION,
    FIRST_KEY = 0x10000
};

/* A row of the program's table or of one that it includes. */
struct row {
    const struct dl2_option *option;
    void *value;
    unsigned commands;
};

struct rows {
    struct row list[DL2_MAX_OPTIONS];
    size_t count;
};

struct parse {
    const struct dl2_program *program;
    struct dl2_common_options *common;
    struct rows rows;
    const struct dl2_command *command; /* NULL: none is named, and none is meant */
    bool is_named;                     /* the command line has its name */
    char **arguments;
    size_t count;
    const struct dl2_option *implied; /* the last that came without its optional value, or NULL */
    const struct dl2_option *group;   /* the heading of the rows that --help=GROUP shows, or NULL */
};

/* Appends the rows of a table of `values`, which may be NULL where none is asked for. */
static void add_rows(struct rows *rows, const struct dl2_option *option, void *values,
                     unsigned commands)
{
    for (; option->type != DL2_OPTION_END; option++) {
        void *value = values ? (char *)values + option->offset : NULL;
        const unsigned own = option->commands ? option->commands : commands;
        if (option->type == DL2_OPTION_TABLE)
            add_rows(rows, option->table, value, own);
        else if (rows->count < DL2_MAX_OPTIONS)
            rows->list[rows->count++] = (struct row){option, value, own};
        else
            abort(); /* DL2_MAX_OPTIONS is too small for the program's own table */
    }
}

static struct rows list_rows(const struct dl2_option *options, void *values)
{
    struct rows rows = {.count = 0};
    add_rows(&rows, options, values, 0);
    return rows;
}

/* The number of the option of that name, or that of all rows. */
static size_t find_row(const struct rows *rows, const char *name)
{
    size_t i = 0;
    while (i < rows->count &&
           (!rows->list[i].option->name || strcmp(rows->list[i].option->name, name) != 0))
        i++;
    return i;
}

/* ---- Unknown names ---- */

/* Rows of every program. */
static const struct dl2_option jobs_option = {.type = DL2_OPTION_UINT,
                                              .name = "jobs",
                                              .metavar = "N",
                                              .help = "Number of worker threads",
                                              .min = 1,
                                              .max = 1024,
                                              .also = "workers,num-workers,threads,num-threads"};
static const struct dl2_option quiet_option = {
    .name = "quiet", .help = "Print no progress, only results and errors", .also = "silent"};

static bool goes_with(const struct row *row, unsigned command)
{
    return !row->commands || !command || row->commands & command;
}

/* Into `text` "; did you mean --lr=RATE (Peak learning rate)?" where an option of the command (0:
 * of any) with one of the roles, or any with 0, has about that name, else "". */
static void suggest(const struct rows *rows, const char *name, unsigned command, unsigned roles,
                    char *text, size_t size)
{
    struct dl2_nearest nearest = {.given = name};
    const struct dl2_option *best = NULL;
    for (size_t i = 0; i < rows->count; i++) {
        const struct dl2_option *option = rows->list[i].option;
        if (option->name && goes_with(&rows->list[i], command) &&
            (!roles || option->roles & roles) &&
            dl2_nearest_try(&nearest, option->name, option->also))
            best = option;
    }
    for (int i = 0; !roles && i < 2; i++) {
        const struct dl2_option *option = i ? &quiet_option : &jobs_option;
        if (dl2_nearest_try(&nearest, option->name, option->also))
            best = option;
    }
    *text = '\0';
    if (!best)
        return;
    size_t length = strcspn(best->help, ",:;(");
    while (length && best->help[length - 1] == ' ')
        length--;
    snprintf(text, size, "; did you mean %s%s%s%s (%.*s)?", roles ? "" : "--", best->name,
             best->metavar && !roles ? "=" : "", best->metavar && !roles ? best->metavar : "",
             (int)length, best->help);
}

/* ---- Values ---- */

static int parse_number(const struct row *row, const char *text, struct dl2_error *error)
{
    const struct dl2_option *option = row->option;
    const bool bounded = option->min != 0 || option->max != 0;
    char *end = NULL;
    errno = 0;
    if (option->type == DL2_OPTION_REAL) {
        double number = strtod(text, &end);
        if (end == text || *end || errno == ERANGE || !isfinite(number))
            return dl2_error_set(error, DL2_ERR_ARGUMENT, "'%s' is not a number", text);
        if (bounded && (number < option->min || number > option->max))
            return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s is not between %g and %g", text,
                                 option->min, option->max);
        *(double *)row->value = number;
        return DL2_OK;
    }
    unsigned long long number = strtoull(text, &end, 10);
    if (end == text || *end || strchr(text, '-'))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "'%s' is not a whole number", text);
    if (errno == ERANGE || (option->type == DL2_OPTION_UINT && number > UINT_MAX))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s is too large", text);
    if (bounded && ((double)number < option->min || (double)number > option->max))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s is not between %.0f and %.0f", text,
                             option->min, option->max);
    if (option->type == DL2_OPTION_UINT)
        *(unsigned *)row->value = (unsigned)number;
    else
        *(uint64_t *)row->value = number;
    return DL2_OK;
}

static int parse_value(const struct row *row, const char *text, struct dl2_error *error)
{
    int word;
    switch (row->option->type) {
    case DL2_OPTION_FLAG:
    case DL2_OPTION_NEGATE:
        *(bool *)row->value = row->option->type == DL2_OPTION_FLAG;
        return DL2_OK;
    case DL2_OPTION_TEXT:
        *(const char **)row->value = text;
        return DL2_OK;
    case DL2_OPTION_SIZE:
        return dl2_parse_size(text, row->value, error);
    case DL2_OPTION_CHOICE:
        DL2_TRY(word = dl2_parse_word(text, row->option->words, error));
        *(unsigned *)row->value = (unsigned)word;
        return DL2_OK;
    case DL2_OPTION_SWITCH:
        DL2_TRY(word = dl2_parse_word(text, row->option->words, error));
        *(bool *)row->value = word;
        return DL2_OK;
    case DL2_OPTION_PARSE:
        return row->option->parse(text, row->value, error);
    default:
        return parse_number(row, text, error);
    }
}

static json_t *choice_json(const char *const *words, unsigned number)
{
    for (unsigned i = 0; words[i]; i++)
        if (i == number)
            return json_string(words[i]);
    return json_null();
}

static json_t *value_json(const struct row *row)
{
    switch (row->option->type) {
    case DL2_OPTION_FLAG:
        return json_boolean(*(const bool *)row->value);
    case DL2_OPTION_NEGATE:
        return json_boolean(!*(const bool *)row->value);
    case DL2_OPTION_UINT:
        return json_integer(*(const unsigned *)row->value);
    case DL2_OPTION_UINT64:
    case DL2_OPTION_SIZE:
        return json_integer((json_int_t) * (const uint64_t *)row->value);
    case DL2_OPTION_REAL:
        return dl2_json_real(*(const double *)row->value);
    case DL2_OPTION_TEXT: {
        const char *text = *(const char *const *)row->value;
        return text ? dl2_json_text(text) : json_null();
    }
    case DL2_OPTION_CHOICE:
        return choice_json(row->option->words, *(const unsigned *)row->value);
    case DL2_OPTION_SWITCH:
        return json_string(row->option->words[*(const bool *)row->value]);
    default:
        return row->option->show ? row->option->show(row->value) : json_null();
    }
}

json_t *dl2_options_json(const struct dl2_option *options, const void *values)
{
    const struct rows rows = list_rows(options, (void *)values);
    json_t *object = json_object();
    for (size_t i = 0; i < rows.count; i++)
        if (rows.list[i].option->name)
            json_object_set_new(object, rows.list[i].option->name, value_json(&rows.list[i]));
    return object;
}

json_t *dl2_options_select(const struct dl2_option *options, const json_t *values, unsigned roles)
{
    const struct rows rows = list_rows(options, NULL);
    json_t *object = json_object();
    for (size_t i = 0; i < rows.count; i++) {
        const struct dl2_option *option = rows.list[i].option;
        if (option->name && option->roles & roles)
            json_object_set(object, option->name, json_object_get(values, option->name));
    }
    return object;
}

bool dl2_option_has_role(const struct dl2_option *options, const char *name, unsigned roles)
{
    const struct rows rows = list_rows(options, NULL);
    const size_t i = find_row(&rows, name);
    return i < rows.count && rows.list[i].option->roles & roles;
}

/* A number or a list of numbers as it is written on a command line. */
static void write_numbers(const json_t *value, char *text, size_t size)
{
    const size_t count = json_is_array(value) ? json_array_size(value) : 1;
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < count && used < size; i++) {
        const json_t *number = json_is_array(value) ? json_array_get(value, i) : value;
        const char *comma = i ? "," : "";
        used +=
            (size_t)(json_is_integer(number) ? snprintf(text + used, size - used, "%s%lld", comma,
                                                        (long long)json_integer_value(number))
                                             : snprintf(text + used, size - used, "%s%.17g", comma,
                                                        json_number_value(number)));
    }
}

/* Stores a value of JSON, of a kind that the option takes. */
static int take_json(const struct row *row, const json_t *value, struct dl2_error *error)
{
    const enum dl2_option_type type = row->option->type;
    char numbers[256];
    if (type == DL2_OPTION_FLAG || type == DL2_OPTION_NEGATE) {
        *(bool *)row->value = json_is_true(value) == (type == DL2_OPTION_FLAG);
        return DL2_OK;
    }
    write_numbers(value, numbers, sizeof numbers);
    return parse_value(row, json_is_string(value) ? json_string_value(value) : numbers, error);
}

int dl2_option_from_record(const struct dl2_option *options, void *values, const char *name,
                           const json_t *value, struct dl2_error *error)
{
    const struct rows rows = list_rows(options, values);
    const size_t i = find_row(&rows, name);
    if (i == rows.count || !value || json_is_null(value))
        return DL2_OK;
    const struct dl2_option *option = rows.list[i].option;
    if (option->unset && json_is_integer(value) && json_integer_value(value) == 0)
        return DL2_OK; /* was not set */
    if (option->type == DL2_OPTION_TEXT && !json_is_string(value))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "it is not a text");
    return take_json(&rows.list[i], value, error);
}

/* Does the option take values of this kind? NULL, or the kind that it takes. */
static const char *wanted_kind(enum dl2_option_type type, const json_t *value)
{
    switch (type) {
    case DL2_OPTION_FLAG:
    case DL2_OPTION_NEGATE:
        return json_is_boolean(value) ? NULL : "true or false";
    case DL2_OPTION_UINT:
    case DL2_OPTION_UINT64:
    case DL2_OPTION_REAL:
        return json_is_number(value) ? NULL : "a number";
    case DL2_OPTION_PARSE:
        return json_is_number(value) || json_is_string(value) ? NULL : "a number or a text";
    default:
        return json_is_string(value) ? NULL : "a text";
    }
}

int dl2_option_from_user(const struct dl2_option *options, void *values, const char *name,
                         const json_t *value, unsigned role, struct dl2_error *error)
{
    const struct rows rows = list_rows(options, values);
    const size_t i = find_row(&rows, name);
    if (i == rows.count) {
        char hint[256];
        suggest(&rows, name, 0, role, hint, sizeof hint);
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "there is no such option%s",
                             *hint ? hint : "; --help lists those that models may differ in");
    }
    const struct dl2_option *option = rows.list[i].option;
    if (!(option->roles & role))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "it is the same for all models, as --%s on the command line%s", name,
                             option->roles & DL2_OPTION_ALONE
                                 ? "; with --hop and --task they may differ in it"
                                 : "");
    const char *wanted = wanted_kind(option->type, value);
    return wanted ? dl2_error_set(error, DL2_ERR_ARGUMENT, "it is not %s", wanted)
                  : take_json(&rows.list[i], value, error);
}

/* ---- Help and completion ---- */

/* Writes a default as a user would type it; nothing where there is none. */
static void print_default(FILE *out, const json_t *value)
{
    size_t i;
    const json_t *item;
    if (json_is_string(value))
        fputs(json_string_value(value), out);
    else if (json_is_number(value))
        fprintf(out, json_is_real(value) ? "%.6g" : "%.0f", json_number_value(value));
    json_array_foreach(value, i, item)
    {
        fputs(i ? "," : "", out);
        print_default(out, item);
    }
}

/* A whole number of the largest unit, as dl2_parse_size() takes it: 1G. */
static void print_size(FILE *out, uint64_t bytes)
{
    static const char units[] = "KMGT";
    size_t unit = 0;
    for (; bytes && bytes % 1024 == 0 && units[unit]; unit++)
        bytes /= 1024;
    fprintf(out, "%llu%.*s", (unsigned long long)bytes, unit > 0, unit ? &units[unit - 1] : "");
}

/* The names of the commands that have the row, where not all have, " (copy, index)", else "". */
static void list_commands_of(const struct dl2_program *program, const struct row *row, char *text,
                             size_t size)
{
    size_t used = 0;
    bool all = true;
    for (const struct dl2_command *command = program->commands; command->name; command++)
        all &= goes_with(row, command->bit);
    *text = '\0';
    for (const struct dl2_command *command = program->commands; !all && command->name; command++)
        if (goes_with(row, command->bit) && used < size)
            used +=
                (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", command->name);
}

/* The help of a row with its default, and of some commands', with their names, to free(). */
static char *describe_row(const struct row *row, const char *commands)
{
    const struct dl2_option *option = row->option;
    char *text = NULL, *value = NULL;
    size_t size;
    FILE *out = open_memstream(&value, &size);
    if (!out)
        return NULL;
    json_t *json = value_json(row);
    const bool set = json_is_number(json)  ? json_number_value(json) != 0
                     : json_is_array(json) ? json_array_size(json) > 0
                                           : json && !json_is_null(json);
    if (option->unset && !set)
        fputs(option->unset, out);
    else if (option->type == DL2_OPTION_SIZE)
        print_size(out, (uint64_t)json_integer_value(json));
    else
        print_default(out, json);
    json_decref(json);
    fclose(out);
    if (value && asprintf(&text, "%s%s%s%s%s%s%s", option->help, *commands ? " (" : "", commands,
                          *commands ? ")" : "", *value ? " [" : "", value, *value ? "]" : "") < 0)
        text = NULL;
    free(value);
    return text;
}

/* Which rows --help shows: few of all commands, few of the command, a group's, the command's, or
 * all. */
enum view { VIEW_BASIC, VIEW_OVERVIEW, VIEW_GROUP, VIEW_COMMAND, VIEW_ALL };

static bool is_heading(const struct row *row)
{
    return row->option->type == DL2_OPTION_GROUP;
}

static bool is_in_view(const struct parse *parse, size_t row, enum view view)
{
    const struct row *at = &parse->rows.list[row];
    if (is_heading(at)) {
        for (size_t i = row + 1; i < parse->rows.count && !is_heading(&parse->rows.list[i]); i++)
            if (is_in_view(parse, i, view))
                return view > VIEW_OVERVIEW;
        return false;
    }
    size_t heading = row;
    while (view == VIEW_GROUP && heading > 0 && !is_heading(&parse->rows.list[heading]))
        heading--;
    return view == VIEW_ALL ||
           ((view > VIEW_OVERVIEW || at->option->basic) &&
            (view == VIEW_BASIC || goes_with(at, parse->command->bit)) &&
            (view != VIEW_GROUP || parse->rows.list[heading].option == parse->group));
}

/* The number of the command's options from a row on, up to the next heading or to the end. */
static size_t count_options(const struct parse *parse, size_t row, bool to_end)
{
    size_t count = 0;
    for (; row < parse->rows.count && (to_end || !is_heading(&parse->rows.list[row])); row++)
        count += !is_heading(&parse->rows.list[row]) &&
                 goes_with(&parse->rows.list[row], parse->command->bit);
    return count;
}

/* What a group's options are for: "data:" of "Options for data:". */
static const char *group_title(const struct row *heading)
{
    static const char before[] = "Options for ";
    const char *text = heading->option->help;
    return text + (strncmp(text, before, strlen(before)) == 0 ? strlen(before) : 0);
}

/* A group's word for --help: "data" of "Options for data:". */
static int group_word(const struct row *heading, char word[32])
{
    static const char *const before[] = {"the ", "several ", NULL};
    const char *text = group_title(heading);
    for (size_t i = 0; before[i]; i++)
        if (strncmp(text, before[i], strlen(before[i])) == 0)
            text += strlen(before[i]);
    return snprintf(word, 32, "%.*s", (int)strcspn(text, " :,;"), text);
}

/* The command's groups, a line each, as text or as words alone. */
static void list_groups(const struct parse *parse, bool as_words, FILE *out)
{
    for (size_t i = 0; i < parse->rows.count; i++) {
        char word[32];
        const struct row *row = &parse->rows.list[i];
        const size_t count = is_heading(row) ? count_options(parse, i + 1, false) : 0;
        if (!count)
            continue;
        group_word(row, word);
        const char *title = group_title(row);
        if (as_words)
            fprintf(out, "%s, ", word);
        else
            fprintf(out, "  --help=%-13s %2zu for %.*s\n", word, count, (int)strcspn(title, ":"),
                    title);
    }
}

/* Finds the command's group of that word. */
static void find_group(struct parse *parse, const char *word)
{
    for (size_t i = 0; i < parse->rows.count; i++) {
        char own[32];
        const struct row *row = &parse->rows.list[i];
        if (is_heading(row) && count_options(parse, i + 1, false) && group_word(row, own) > 0 &&
            strcmp(own, word) == 0)
            parse->group = row->option;
    }
}

static int row_key(const struct parse *parse, size_t row)
{
    const char letter = parse->rows.list[row].option->letter;
    return letter ? letter : FIRST_KEY + (int)row;
}

/* argp's rows for a view of the program's options and the common ones; free what free_argp_rows()
 * frees. NULL without memory. */
static struct argp_option *make_argp_rows(const struct parse *parse, enum view view)
{
    const struct argp_option common[] = {
        {.doc = "Options for running:"},
        {.name = jobs_option.name,
         .key = KEY_JOBS,
         .arg = jobs_option.metavar,
         .doc = "Number of worker threads [one per processor]"},
        {.name = quiet_option.name, .key = KEY_QUIET, .doc = quiet_option.help},
        {.name = "completion", .key = KEY_COMPLETION, .flags = OPTION_HIDDEN},
        {.name = "help",
         .key = KEY_HELP,
         .arg = "all",
         .flags = OPTION_ARG_OPTIONAL,
         .doc = "Print this; --help=all: print all options, behind a command its own",
         .group = -1},
        {.name = "usage", .key = KEY_USAGE, .doc = "Print a line of the options", .group = -1},
        {.name = "version",
         .key = KEY_VERSION,
         .doc = "Print the versions of this program and its libraries",
         .group = -1},
    };
    const size_t count = parse->rows.count, common_count = sizeof common / sizeof *common;
    struct argp_option *table = dl2_calloc(count + common_count + 1, sizeof *table);
    size_t used = 0;
    int group = 1;
    for (size_t i = 0; table && i < count; i++) {
        const struct row *row = &parse->rows.list[i];
        const struct dl2_option *option = row->option;
        const bool heading = option->type == DL2_OPTION_GROUP;
        char commands[128] = "";
        if (!is_in_view(parse, i, view))
            continue;
        if (view == VIEW_ALL)
            list_commands_of(parse->program, row, commands, sizeof commands);
        table[used++] =
            (struct argp_option){.name = option->name,
                                 .key = heading ? 0 : row_key(parse, i),
                                 .arg = option->metavar,
                                 .flags = option->implied ? OPTION_ARG_OPTIONAL : 0,
                                 .doc = heading ? option->help : describe_row(row, commands),
                                 .group = heading ? ++group : group};
    }
    for (size_t i = 0; table && i < common_count; i++) {
        table[used] = common[i];
        if (view == VIEW_GROUP) /* they are not the group's */
            table[used].flags |= OPTION_HIDDEN;
        table[used++].group = common[i].group ? common[i].group : group + 1;
    }
    return table;
}

static void free_argp_rows(struct argp_option *table)
{
    for (struct argp_option *row = table; row->key != KEY_JOBS; row++)
        if (row->name)
            free((char *)row->doc);
    free(table);
}

/* The program's commands, a line each. */
static void list_commands(const struct dl2_program *program, FILE *out)
{
    fputs("\n\nCommands:\n", out);
    for (const struct dl2_command *command = program->commands; command->name; command++)
        fprintf(out, "  %-12s %s%s\n", command->name, command->summary,
                program->has_default && command == program->commands ? " (also without the word)"
                                                                     : "");
}

/* What the commands do, for --help=all. */
static void describe_commands(const struct dl2_program *program, FILE *out)
{
    for (const struct dl2_command *command = program->commands; command->name; command++)
        fprintf(out, "%s %s: %s.%s%s\n\n", command->name, command->synopsis, command->summary,
                command->details ? " " : "", command->details ? command->details : "");
}

/* The text around the options of --help, "\v" between its parts. To free(). */
static char *describe(const struct parse *parse, enum view view)
{
    const struct dl2_program *program = parse->program;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    if (view == VIEW_GROUP) {
        fputc('\v', out);
    } else if (view == VIEW_COMMAND || view == VIEW_OVERVIEW) {
        const char *own = parse->command->details, *common = program->details;
        fprintf(out, "%s.\v", parse->command->summary);
        if (view == VIEW_OVERVIEW) {
            fprintf(out, "These are the options that most need. All, by group; --help=all prints "
                         "them on one page:\n");
            list_groups(parse, false, out);
            fputc('\n', out);
        }
        fprintf(out, "%s%s%s", own ? own : "", own && common ? "\n\n" : "", common ? common : "");
    } else {
        fputs(program->summary, out);
        list_commands(program, out);
        fputc('\v', out);
        if (view == VIEW_ALL)
            describe_commands(program, out);
        if (view == VIEW_BASIC)
            fprintf(out,
                    "'%s COMMAND --help' is about a command, '%s --help=all' lists all options.",
                    program->name, program->name);
        else if (program->details)
            fputs(program->details, out);
        if (view == VIEW_ALL)
            fputs("\n\nWith DL2_TIMELINE=FOLDER in the environment it writes to FOLDER how the "
                  "machine is used meanwhile.",
                  out);
        if (program->topics)
            fprintf(out, "\n\n%s", program->topics);
        if (program->examples)
            fprintf(out, "\n\nExamples:\n%s", program->examples);
    }
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

/* Columns of a line of the help: those of a terminal, or so many that man fills the lines itself.
 */
enum { COLUMNS = 79, MAN_COLUMNS = 100000 };

/* Writes a text in lines of so many columns; what doesn't fit on one goes on at column `indent`, of
 * a line that begins with blanks two columns further. `column` is where the first line begins. */
static void print_wrapped(const char *text, size_t column, size_t indent, size_t columns)
{
    while (*text) {
        size_t length = strcspn(text, "\n");
        const size_t blanks = strspn(text, " "), next = blanks ? blanks + 2 : indent;
        while (length > columns - column) {
            size_t end = columns - column;
            while (end > blanks && text[end] != ' ')
                end--;
            if (end <= blanks) /* one word is longer than the line */
                break;
            printf("%.*s\n%*s", (int)end, text, (int)next, "");
            text += end + 1;
            length -= end + 1;
            column = next;
        }
        printf("%.*s\n", (int)length, text);
        text += length + (text[length] == '\n');
        column = 0;
    }
}

static int compare_rows(const void *a, const void *b)
{
    const struct argp_option *const *left = a, *const *right = b;
    const int last = (*left)->group < 0, other_last = (*right)->group < 0;
    const int groups = last != other_last ? last - other_last : (*left)->group - (*right)->group;
    return groups            ? groups
           : !(*left)->name  ? -1 /* a heading */
           : !(*right)->name ? 1
                             : strcmp((*left)->name, (*right)->name);
}

/* Writes "  -j, --jobs=N" or, for --usage, " [--jobs=N]", into `text`. */
static void name_row(const struct argp_option *row, bool in_usage, char text[128])
{
    const bool optional = row->flags & OPTION_ARG_OPTIONAL;
    char letter[8] = "      ";
    if (row->key > ' ' && row->key < 0x7f)
        snprintf(letter, sizeof letter, "  -%c, ", row->key);
    snprintf(text, 128, "%s--%s%s%s%s%s", in_usage ? " [" : letter, row->name,
             !row->arg  ? ""
             : optional ? "[="
                        : "=",
             row->arg ? row->arg : "", optional ? "]" : "", in_usage ? "]" : "");
}

/* argp's own help loses its column now and then where it wraps a line. */
static void print_rows(const struct argp_option *const *rows, size_t count, size_t columns)
{
    enum { TEXT_COLUMN = 29 };
    for (size_t i = 0; i < count; i++) {
        const bool new_group = i == 0 || rows[i]->group != rows[i - 1]->group;
        if (new_group)
            putchar('\n');
        if (!rows[i]->name) {
            const bool by_man = columns == MAN_COLUMNS; /* help2man knows a heading at column 0 */
            printf("%s", by_man ? "" : " ");
            print_wrapped(rows[i]->doc, !by_man, 1, columns);
            continue;
        }
        char text[128];
        name_row(rows[i], false, text);
        if (strlen(text) < TEXT_COLUMN - 1)
            printf("%-*s", TEXT_COLUMN, text);
        else
            printf("%s\n%*s", text, TEXT_COLUMN, "");
        print_wrapped(rows[i]->doc, TEXT_COLUMN, TEXT_COLUMN, columns);
    }
}

/* Writes the rows on one line: " [--jobs=N] [--quiet]". */
static void print_usage_of(const struct argp_option *const *rows, size_t count, FILE *out)
{
    for (size_t i = 0; i < count; i++) {
        char text[128];
        if (rows[i]->name) {
            name_row(rows[i], true, text);
            fputs(text, out);
        }
    }
}

/* What --help shows, by its value ("man" is for Makefile.am) or NULL. Ends the process for a value
 * that is none. */
static enum view choose_view(struct parse *parse, const char *value, bool only_usage)
{
    enum { MOST = 60 }; /* options on a page, unless all are asked for */
    const bool all = value && (strcmp(value, "all") == 0 || strcmp(value, "man") == 0);
    if (!value || all)
        return !parse->is_named ? all ? VIEW_ALL : VIEW_BASIC
               : all || only_usage || count_options(parse, 0, true) <= MOST ? VIEW_COMMAND
                                                                            : VIEW_OVERVIEW;
    if (parse->command)
        find_group(parse, value);
    if (parse->group)
        return VIEW_GROUP;
    char *words = NULL;
    size_t size;
    FILE *out = open_memstream(&words, &size);
    if (out && parse->command)
        list_groups(parse, true, out);
    if (out)
        fclose(out);
    exit(dl2_program_usage_error(parse->program, "--help: '%s' is none of %sall%s",
                                 DL2_SHOWN(value), words ? words : "",
                                 parse->command ? "" : "; groups of options are a command's"));
}

/* Prints --help, of which the value is "all", "man", a group or NULL, or --usage, and ends the
 * process. */
static _Noreturn void print_help(struct parse *parse, const char *value, bool only_usage)
{
    enum { USAGE_COLUMN = 12 };
    const size_t columns = value && strcmp(value, "man") == 0 ? MAN_COLUMNS : COLUMNS;
    const enum view view = choose_view(parse, value, only_usage);
    const struct dl2_command *command =
        view == VIEW_BASIC || view == VIEW_ALL ? NULL : parse->command;
    struct argp_option *table = make_argp_rows(parse, view);
    char *text = describe(parse, view), *usage = NULL;
    size_t count = 0, size;
    while (table && (table[count].name || table[count].doc))
        count++;
    const struct argp_option **rows = dl2_calloc(count + 1, sizeof *rows);
    FILE *out = open_memstream(&usage, &size);
    if (!table || !text || !rows || !out) {
        fprintf(stderr, "%s: out of memory\n", parse->program->name);
        exit(DL2_EXIT_FAILED);
    }
    size_t shown = 0;
    for (size_t i = 0; i < count; i++)
        if (!(table[i].flags & OPTION_HIDDEN))
            rows[shown++] = &table[i];
    qsort(rows, shown, sizeof *rows, compare_rows);
    fprintf(out, "Usage: %s %s", parse->program->name,
            command                       ? command->name
            : parse->program->has_default ? "[COMMAND]"
                                          : "COMMAND");
    if (only_usage)
        print_usage_of(rows, shown, out);
    else
        fputs(" [OPTION...]", out);
    fprintf(out, " %s", command ? command->synopsis : "ARGUMENT...");
    fclose(out);
    print_wrapped(usage, 0, USAGE_COLUMN, columns);
    if (!only_usage) {
        char *after = strchr(text, '\v');
        *after++ = '\0';
        print_wrapped(text, 0, 0, columns);
        print_rows(rows, shown, columns);
        putchar('\n');
        print_wrapped(after, 0, 0, columns);
    }
    free(usage);
    free(text);
    free(rows);
    free_argp_rows(table);
    exit(DL2_EXIT_OK);
}

/* A line of the completion's `case`: the words that may follow an option. */
static void print_completed_option(const struct dl2_option *option)
{
    if (!option->metavar)
        return;
    printf("    --%s", option->name);
    if (option->letter)
        printf(" | -%c", option->letter);
    if (option->list) {
        printf(") choices=$(\"${COMP_WORDS[0]}\" --list %s 2>/dev/null | cut -f 1) ;;\n",
               option->list);
    } else if (option->words) {
        printf(") choices='");
        for (size_t i = 0; option->words[i]; i++)
            printf("%s%s", i ? " " : "", option->words[i]);
        printf("' ;;\n");
    } else {
        printf(") return ;;\n");
    }
}

/* The options of a command, of all commands for 0. */
static void print_completed_command(const struct parse *parse, const char *name, unsigned bit)
{
    printf("            %s) choices='", name);
    for (size_t i = 0; i < parse->rows.count; i++)
        if (parse->rows.list[i].option->name && goes_with(&parse->rows.list[i], bit))
            printf("--%s ", parse->rows.list[i].option->name);
    printf("--jobs --quiet --help --usage --version' ;;\n");
}

/* If the script completes nothing, the shell completes file names. */
static void print_completion(const struct parse *parse)
{
    const struct dl2_program *program = parse->program;
    const char *name = strchr(program->name, '-') ? strchr(program->name, '-') + 1 : program->name;
    printf("# bash completion for %s. In zsh, run `autoload -U bashcompinit && bashcompinit`\n"
           "# and then source this file.\n"
           "_dl2_%s()\n{\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD-1]} choices=\n"
           "    COMPREPLY=()\n"
           "    if [ \"$word\" = = ]; then word=\n"
           "    elif [ \"$option\" = = ]; then option=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
           "    case $option in\n",
           program->name, name);
    for (size_t i = 0; i < parse->rows.count; i++)
        print_completed_option(parse->rows.list[i].option);
    printf("    --jobs | -j) return ;;\n    *) case $word in\n"
           "        -*) case ${COMP_WORDS[1]} in\n");
    for (const struct dl2_command *command = program->commands; command->name; command++)
        if (!program->has_default || command != program->commands)
            print_completed_command(parse, command->name, command->bit);
    print_completed_command(parse, "*", program->has_default ? program->commands->bit : 0);
    printf("            esac ;;\n        *) [ \"$COMP_CWORD\" -ne 1 ] || choices='");
    for (const struct dl2_command *command = program->commands; command->name; command++)
        printf("%s%s", command == program->commands ? "" : " ", command->name);
    printf("' ;;\n");
    printf("        esac ;;\n    esac\n"
           "    local before=${word%%\"${word##*,}\"} # of a list, the items that are complete\n"
           "    [ -z \"$choices\" ] ||\n"
           "        COMPREPLY=($(compgen -P \"$before\" -W \"$choices\" -- \"${word##*,}\"))\n"
           "}\ncomplete -o default -F _dl2_%s %s\n",
           name, program->name);
}

static void print_version(const struct dl2_program *program)
{
    printf("%s (%s) %s\n", program->name, PACKAGE_NAME, PACKAGE_VERSION);
    printf("  Jansson %s\n", JANSSON_VERSION);
    if (program->print_versions)
        program->print_versions(stdout);
}

/* ---- Parsing ---- */

/* The value of an option that needs none may stand among the arguments by mistake. */
static _Noreturn void refuse_argument(const struct parse *parse, const char *text)
{
    const struct dl2_option *implied = parse->implied;
    exit(implied ? dl2_program_usage_error(
                       parse->program,
                       "too many arguments: '%s'; a value of --%s needs the sign, as --%s=%s",
                       DL2_SHOWN(text), implied->name, implied->name, implied->metavar)
                 : dl2_program_usage_error(parse->program, "too many arguments: '%s'",
                                           DL2_SHOWN(text)));
}

static _Noreturn void refuse_value(const struct parse *parse, const char *name,
                                   const struct dl2_error *error)
{
    exit(dl2_program_usage_error(parse->program, "--%s: %s", name, error->message));
}

/* Whether the key is an option of the program's table, which is stored then. */
static bool parse_row(struct parse *parse, int key, const char *text)
{
    struct dl2_error error = DL2_ERROR_INIT;
    for (size_t i = 0; i < parse->rows.count; i++) {
        const struct row *row = &parse->rows.list[i];
        if (row->option->type == DL2_OPTION_GROUP || row_key(parse, i) != key)
            continue;
        if (!text && row->option->implied) {
            text = row->option->implied;
            parse->implied = row->option;
        }
        if (parse_value(row, text, &error) < 0)
            refuse_value(parse, row->option->name, &error);
        parse->common->given[i] = true;
        return true;
    }
    return false;
}

/* No command is named, or `word`, which is none. */
static _Noreturn void refuse_command(const struct dl2_program *program, const char *word)
{
    char all[256] = "";
    struct dl2_nearest nearest = {.given = word ? word : ""};
    const char *best = NULL;
    for (const struct dl2_command *command = program->commands; command->name; command++) {
        dl2_list_name(all, sizeof all, command->name);
        if (word && dl2_nearest_try(&nearest, command->name, NULL))
            best = command->name;
    }
    const char *shown = word ? DL2_SHOWN(word) : "";
    if (best)
        exit(dl2_program_usage_error(program, "there is no command '%s'; did you mean %s? All: %s",
                                     shown, best, all));
    exit(dl2_program_usage_error(program, "the command comes first: one of %s%s%s%s", all,
                                 word ? ", not '" : "", shown, word ? "'" : ""));
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct parse *parse = state->input;
    const struct dl2_program *program = parse->program;
    struct dl2_error error = DL2_ERROR_INIT;
    if (parse_row(parse, key, text))
        return 0;
    switch (key) {
    case KEY_JOBS: {
        const struct row row = {&jobs_option, &parse->common->jobs, 0};
        if (parse_value(&row, text, &error) < 0)
            refuse_value(parse, jobs_option.name, &error);
        parse->common->jobs_given = true;
        return 0;
    }
    case KEY_QUIET:
        parse->common->quiet = true;
        return 0;
    case KEY_HELP:
        print_help(parse, text, false);
    case KEY_USAGE:
        print_help(parse, NULL, true);
    case KEY_COMPLETION:
        print_completion(parse);
        exit(DL2_EXIT_OK);
    case KEY_VERSION:
        print_version(program);
        exit(DL2_EXIT_OK);
    case ARGP_KEY_ARG:
        if (!parse->command)
            refuse_command(program, text);
        if (parse->command->max_arguments && parse->count == parse->command->max_arguments)
            refuse_argument(parse, text);
        parse->arguments[parse->count++] = text;
        return 0;
    case ARGP_KEY_END:
        if (!parse->command)
            refuse_command(program, NULL);
        if (parse->count < parse->command->min_arguments)
            exit(dl2_program_usage_error(program, "too few arguments: %s is expected",
                                         parse->command->synopsis));
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* All options of the program, for getopt_long(): `key` is the number of a row, or that of no row.
 */
struct known {
    struct option options[DL2_MAX_OPTIONS + 8];
    char letters[3 * DL2_MAX_OPTIONS + 16]; /* "+" first, with which getopt stops at arguments */
};

static void add_known(struct known *known, size_t *count, const char *name, char letter, int takes,
                      int key)
{
    const size_t used = strlen(known->letters);
    known->options[(*count)++] = (struct option){name, takes, NULL, key};
    if (letter)
        snprintf(known->letters + used, sizeof known->letters - used, "%c%.*s", letter, takes,
                 "::");
}

static struct known *list_known(const struct parse *parse)
{
    struct known *known = dl2_calloc(1, sizeof *known);
    size_t count = 0;
    if (!known)
        return NULL;
    strcpy(known->letters, "+:");
    for (size_t i = 0; i < parse->rows.count; i++) {
        const struct dl2_option *option = parse->rows.list[i].option;
        if (option->name)
            add_known(known, &count, option->name, option->letter,
                      !option->metavar  ? no_argument
                      : option->implied ? optional_argument
                                        : required_argument,
                      FIRST_KEY + (int)i);
    }
    add_known(known, &count, jobs_option.name, KEY_JOBS, required_argument, 0);
    add_known(known, &count, quiet_option.name, 0, no_argument, 0);
    add_known(known, &count, "completion", 0, no_argument, 0);
    add_known(known, &count, "help", KEY_HELP, optional_argument, 0);
    add_known(known, &count, "usage", 0, no_argument, 0);
    add_known(known, &count, "version", KEY_VERSION, no_argument, 0);
    return known;
}

static bool is_foreign(const struct parse *parse, const struct row *row)
{
    return row->option->name && parse->command && !goes_with(row, parse->command->bit);
}

/* An option of other commands was given. */
static _Noreturn void refuse_row(const struct parse *parse, const struct row *row)
{
    char commands[128];
    list_commands_of(parse->program, row, commands, sizeof commands);
    exit(dl2_program_usage_error(parse->program,
                                 "--%s is not an option of the command %s, but of %s",
                                 row->option->name, parse->command->name, commands));
}

/* The word's name, without its value, is no option, nor the beginning of one. */
static void refuse_word(const struct parse *parse, const struct option *known, const char *word)
{
    char name[128], hint[512];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
    for (; known->name; known++)
        if (strncmp(known->name, name, strlen(name)) == 0)
            return; /* argp lists what it may be */
    suggest(&parse->rows, name, parse->command ? parse->command->bit : 0, 0, hint, sizeof hint);
    for (const struct dl2_command *command = parse->program->commands; command->name; command++)
        if (strcmp(command->name, name) == 0)
            snprintf(hint, sizeof hint, "; %s is a command, and comes first: %s %s", name,
                     parse->program->name, name);
    exit(dl2_program_usage_error(parse->program, "there is no option '--%s'%s", name, hint));
}

/*
 * Says which option an unknown one may stand for, and which command has one that this command
 * lacks. argp would not, and prints it unquoted, where file names, too, may begin with a dash.
 * Changes the order of `words`.
 */
static void refuse_unknown(const struct parse *parse, const struct known *known, int count,
                           char **words)
{
    int key;
    opterr = optind = 0;
    while (optopt = 0,
           (key = getopt_long(count, words, known->letters + 1, known->options, NULL)) != -1) {
        if (key == '?' && optopt && optopt <= UCHAR_MAX && !isprint((unsigned char)optopt))
            exit(dl2_program_usage_error(parse->program, "there is no option '-\\x%02x'",
                                         (unsigned char)optopt));
        if (key == '?' && !optopt && strncmp(words[optind - 1], "--", 2) == 0)
            refuse_word(parse, known->options, words[optind - 1]);
        for (size_t i = 0; i < parse->rows.count; i++)
            if ((key == FIRST_KEY + (int)i || (key && key == parse->rows.list[i].option->letter)) &&
                is_foreign(parse, &parse->rows.list[i]))
                refuse_row(parse, &parse->rows.list[i]);
    }
}

/* Is the word, no file that is there, about a command's name? */
static bool is_misspelled(const struct dl2_program *program, const char *word)
{
    struct dl2_nearest nearest = {.given = word};
    bool near = false;
    for (const struct dl2_command *command = program->commands; command->name; command++)
        near |= dl2_nearest_try(&nearest, command->name, NULL);
    return near && access(word, F_OK) != 0;
}

/* Finds the command, the first argument, and takes it off the words. */
static void take_command(struct parse *parse, const struct known *known, int *count, char **words)
{
    const struct dl2_program *program = parse->program;
    opterr = optind = 0;
    while (getopt_long(*count, words, known->letters, known->options, NULL) != -1)
        ;
    for (const struct dl2_command *command = program->commands; command->name; command++)
        if (optind < *count && strcmp(words[optind], command->name) == 0 &&
            strcmp(words[optind - 1], "--") != 0) {
            parse->command = command;
            parse->is_named = true;
        }
    if (parse->is_named)
        memmove((void *)(words + optind), words + optind + 1,
                (size_t)(*count - optind) * sizeof *words);
    else if (program->has_default)
        parse->command = program->commands;
    if (!parse->is_named && parse->command && optind < *count &&
        strcmp(words[optind - 1], "--") != 0 && is_misspelled(program, words[optind]))
        refuse_command(program, words[optind]);
    *count -= parse->is_named;
    parse->common->command = parse->command ? (unsigned)(parse->command - program->commands) : 0;
}

/* Where DL2_TIMELINE names a folder, the program logs into it. */
static void begin_log(const struct dl2_program *program, const struct dl2_command *command)
{
    struct dl2_error error = DL2_ERROR_INIT;
    const char *folder = getenv("DL2_TIMELINE");
    if (folder && *folder &&
        dl2_machine_log_begin(folder, program->name, command ? command->name : NULL, &error) < 0) {
        fprintf(stderr, "%s: DL2_TIMELINE: %s\n", program->name, error.message);
        exit(DL2_EXIT_FAILED);
    }
}

void dl2_program_parse(const struct dl2_program *program, int argc, char **argv,
                       struct dl2_common_options *common, char ***arguments, size_t *count)
{
    dl2_streams_begin(program->name);
    struct parse parse = {.program = program,
                          .common = common,
                          .arguments = dl2_calloc((size_t)argc + 1, sizeof(char *))};
    add_rows(&parse.rows, program->options, program->values, 0);
    struct known *known = list_known(&parse);
    char **words = dl2_calloc(2 * ((size_t)argc + 1), sizeof *words), **copy = words + argc + 1;
    if (!known || !words || !parse.arguments) {
        fprintf(stderr, "%s: out of memory\n", program->name);
        exit(DL2_EXIT_FAILED);
    }
    for (int i = 0; i < argc; i++)
        words[i] = argv[i];
    take_command(&parse, known, &argc, words);
    memcpy((void *)copy, (const void *)words, (size_t)argc * sizeof *words);
    refuse_unknown(&parse, known, argc, copy);
    free(known);
    struct argp_option *table = make_argp_rows(&parse, parse.command ? VIEW_COMMAND : VIEW_ALL);
    if (!table) {
        fprintf(stderr, "%s: out of memory\n", program->name);
        exit(DL2_EXIT_FAILED);
    }
    const struct argp argp = {.options = table, .parser = parse_option};
    argp_err_exit_status = DL2_EXIT_USAGE;
    argp_parse(&argp, argc, words, ARGP_NO_HELP, NULL, &parse);
    if (common->jobs == 0)
        common->jobs = dl2_cpu_count();
    free_argp_rows(table);
    free((void *)words);
    *arguments = parse.arguments;
    *count = parse.count;
    begin_log(program, parse.command);
}

bool dl2_option_given(const struct dl2_program *program, const struct dl2_common_options *common,
                      const char *name)
{
    const struct rows rows = list_rows(program->options, NULL);
    const size_t i = find_row(&rows, name);
    return i < rows.count && common->given[i];
}

void dl2_option_note_given(const struct dl2_program *program, struct dl2_common_options *common,
                           const char *name, bool given)
{
    const struct rows rows = list_rows(program->options, NULL);
    const size_t i = find_row(&rows, name);
    if (i < rows.count)
        common->given[i] = given;
}

const struct dl2_option *dl2_option_of(const struct dl2_option *options, void *values,
                                       const void *member, bool negates)
{
    const struct rows rows = list_rows(options, values);
    for (size_t i = 0; i < rows.count; i++) {
        const struct row *row = &rows.list[i];
        if (row->option->name && row->value == member &&
            (row->option->type == DL2_OPTION_NEGATE) == negates)
            return row->option;
    }
    return NULL;
}

static bool is_without(const struct row *row, unsigned command)
{
    return row->option->name && row->commands && !(row->commands & command);
}

const char *dl2_option_without_effect(const struct dl2_program *program,
                                      const struct dl2_common_options *common, unsigned command)
{
    const struct rows rows = list_rows(program->options, NULL);
    for (size_t i = 0; i < rows.count; i++)
        if (common->given[i] && is_without(&rows.list[i], command))
            return rows.list[i].option->name;
    return NULL;
}

void dl2_options_list_without_effect(const struct dl2_option *options, unsigned command, FILE *out)
{
    const struct rows rows = list_rows(options, NULL);
    for (size_t i = 0; i < rows.count; i++) {
        const struct dl2_option *option = rows.list[i].option;
        if (is_without(&rows.list[i], command))
            fprintf(out, "--%s\t%s\n", option->name, option->metavar ? option->metavar : "");
    }
}

int dl2_program_usage_error(const struct dl2_program *program, const char *format, ...)
{
    char text[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    struct dl2_error own = DL2_ERROR_INIT, *refusal = program->refusal ? program->refusal : &own;
    dl2_error_set(refusal, DL2_ERR_ARGUMENT, "%s", text);
    if (program->refusal)
        return DL2_EXIT_USAGE;
    if (program->origin)
        fprintf(stderr, "%s: %s: %s\n", program->name, DL2_SHOWN(program->origin), own.message);
    else
        fprintf(stderr, "%s: %s\nTry '%s --help' for more information.\n", program->name,
                own.message, program->name);
    return DL2_EXIT_USAGE;
}

int dl2_program_refuse(const struct dl2_program *program, const struct dl2_common_options *common,
                       const struct dl2_option_rule *rules, size_t count)
{
    const struct rows rows = list_rows(program->options, NULL);
    for (size_t i = 0; i < count; i++)
        for (const char *at = rules[i].options; *at; at += *at == ',') {
            char name[64];
            const int length = (int)strcspn(at, ",");
            snprintf(name, sizeof name, "%.*s", length, at);
            const size_t row = find_row(&rows, name);
            if (row == rows.count)
                return dl2_program_usage_error(
                    program, "a mistake in the program: a rule is of --%s, which is no option",
                    name);
            if (rules[i].refused && common->given[row])
                return dl2_program_usage_error(program, "--%s %s", name, rules[i].reason);
            at += length;
        }
    return 0;
}

int dl2_parse_word(const char *text, const char *const *words, struct dl2_error *error)
{
    for (int i = 0; words[i]; i++)
        if (!strcmp(text, words[i]))
            return i;
    char all[256] = "";
    for (int i = 0; words[i]; i++)
        dl2_list_name(all, sizeof all, words[i]);
    return dl2_error_set(error, DL2_ERR_ARGUMENT, "'%s' is not one of %s", text, all);
}

/* A whole number from *at on, of which *end is behind; false: there is none. */
static bool read_number(const char *at, const char **end, unsigned long *out)
{
    char *behind = (char *)at;
    errno = 0;
    *out = isdigit((unsigned char)*at) ? strtoul(at, &behind, 10) : 0;
    if (errno == ERANGE)
        *out = ULONG_MAX;
    *end = behind;
    return behind != at;
}

/* Adds a number to a list that it is not in yet. */
static int add_number(unsigned number, unsigned **list, size_t *count, struct dl2_error *error)
{
    for (size_t i = 0; i < *count; i++)
        if ((*list)[i] == number)
            return DL2_OK;
    DL2_TRY(dl2_grow(list, *count, sizeof **list, error));
    (*list)[(*count)++] = number;
    return DL2_OK;
}

/* "25" or "5:95:10", up to a comma or the end, where *end is then. */
static int add_range(const char *text, const char *at, const char **end, unsigned min, unsigned max,
                     unsigned **list, size_t *count, struct dl2_error *error)
{
    unsigned long parts[3] = {0, 0, 1};
    size_t given = 0;
    const char *start = at;
    bool good = true;
    do {
        good = given < 3 && read_number(at, end, &parts[given]);
        given++;
        at = *end + 1;
    } while (good && **end == ':');
    if (!good || (**end && **end != ','))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "'%s' is not a list of whole numbers like 10,25,50 or 5:95:10", text);
    if (given == 1)
        parts[1] = parts[0];
    for (size_t i = 0; i < 2; i++)
        if (parts[i] < min || parts[i] > max)
            return dl2_error_set(error, DL2_ERR_ARGUMENT, "%.*s is not between %u and %u",
                                 (int)(*end - start), start, min, max);
    if (parts[1] < parts[0] || !parts[2])
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%.*s is not a range: from, to, and a step of 1 or more",
                             (int)(*end - start), start);
    for (unsigned long number = parts[0]; number <= parts[1];) {
        DL2_TRY(add_number((unsigned)number, list, count, error));
        if (parts[2] > parts[1] - number)
            break;
        number += parts[2];
    }
    return DL2_OK;
}

int dl2_parse_uint_list(const char *text, unsigned min, unsigned max, unsigned **out, size_t *count,
                        struct dl2_error *error)
{
    *out = NULL;
    *count = 0;
    int status;
    const char *at = text, *end;
    while ((status = add_range(text, at, &end, min, max, out, count, error)) == DL2_OK && *end)
        at = end + 1;
    if (status < 0) {
        free(*out);
        *out = NULL;
    }
    return status;
}

int dl2_parse_name_list(const char *text, char ***out, size_t *count, struct dl2_error *error)
{
    char **list = NULL;
    size_t n = 0;
    int status = DL2_OK;
    for (const char *p = text; p && status == DL2_OK;) {
        const size_t length = strcspn(p, ",");
        status = length ? dl2_list_append(&list, &n, strndup(p, length), error)
                        : dl2_error_set(error, DL2_ERR_ARGUMENT, "'%s' has an empty name", text);
        p = p[length] ? p + length + 1 : NULL;
    }
    if (status < 0) {
        dl2_free_list(list);
        return status;
    }
    *out = list;
    *count = n;
    return DL2_OK;
}

int dl2_parse_size(const char *text, uint64_t *out, struct dl2_error *error)
{
    static const char letters[] = "kmgt";
    char *end = NULL;
    double bytes = isdigit((unsigned char)*text) ? strtod(text, &end) : NAN;
    const char *letter = end && *end ? strchr(letters, tolower((unsigned char)*end)) : NULL;
    if (letter) {
        bytes *= pow(1024, (double)(letter - letters + 1));
        end++;
        if (!strcasecmp(end, "b") || !strcasecmp(end, "ib"))
            end += strlen(end);
    }
    if (!end || *end || !isfinite(bytes))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "'%s' is no size: bytes, or a number and K, M, G or T", text);
    if (bytes >= 0x1p63)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s is too large", text);
    *out = (uint64_t)bytes;
    return DL2_OK;
}

int dl2_parse_color(const char *text, void *value, struct dl2_error *error)
{
    static const struct {
        const char *name;
        uint8_t rgb[3];
    } names[] = {{"white", {255, 255, 255}}, {"black", {0, 0, 0}}, {"gray", {128, 128, 128}}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!strcasecmp(text, names[i].name)) {
            memcpy(value, names[i].rgb, 3);
            return DL2_OK;
        }
    }
    const char *digits = text + (*text == '#');
    if (strlen(digits) != 6 || strspn(digits, "0123456789abcdefABCDEF") != 6)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "'%s' is no color: RRGGBB (hexadecimal), white, black or gray", text);
    unsigned long number = strtoul(digits, NULL, 16);
    for (int c = 0; c < 3; c++)
        ((uint8_t *)value)[c] = (uint8_t)(number >> (16 - 8 * c));
    return DL2_OK;
}
