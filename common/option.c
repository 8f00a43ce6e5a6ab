#include "config.h"

#include "common/option.h"

#include "common/memory.h"
#include "common/quote.h"
#include "common/streams.h"
#include "common/thread.h"

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* argp wants a number per option: its letter where it has one, else one above all letters. */
enum { KEY_JOBS = 'j', KEY_QUIET = 0x1000, KEY_VERSION = 'V', FIRST_KEY = 0x10000 };

struct parse {
    const struct dl2_program *program;
    struct dl2_common_options *common;
    char **arguments;
    size_t count;
};

static int parse_number(const struct dl2_option *option, const char *text, struct dl2_error *error)
{
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
        *(double *)option->value = number;
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
        *(unsigned *)option->value = (unsigned)number;
    else
        *(uint64_t *)option->value = number;
    return DL2_OK;
}

static int parse_choice(const struct dl2_option *option, const char *text, struct dl2_error *error)
{
    const int number = dl2_parse_word(text, option->words, error);
    DL2_TRY(number);
    *(unsigned *)option->value = (unsigned)number;
    return DL2_OK;
}

static int apply(const struct dl2_option *option, const char *text, struct dl2_error *error)
{
    switch (option->type) {
    case DL2_OPTION_FLAG:
        *(bool *)option->value = true;
        return DL2_OK;
    case DL2_OPTION_NEGATE:
        *(bool *)option->value = false;
        return DL2_OK;
    case DL2_OPTION_TEXT:
        *(const char **)option->value = text;
        return DL2_OK;
    case DL2_OPTION_SIZE:
        return dl2_parse_size(text, option->value, error);
    case DL2_OPTION_CHOICE:
        return parse_choice(option, text, error);
    case DL2_OPTION_PARSE:
        return option->parse(text, option->value, error);
    default:
        return parse_number(option, text, error);
    }
}

static int option_key(const struct dl2_program *program, size_t position)
{
    const struct dl2_option *option = &program->options[position];
    return option->letter ? option->letter : FIRST_KEY + (int)position;
}

static const struct dl2_option *find_option(const struct dl2_program *program, int key)
{
    for (size_t i = 0; program->options[i].type != DL2_OPTION_END; i++)
        if (program->options[i].type != DL2_OPTION_GROUP && option_key(program, i) == key)
            return &program->options[i];
    return NULL;
}

static void print_version(const struct dl2_program *program)
{
    printf("%s (%s) %s\n", program->name, PACKAGE_NAME, PACKAGE_VERSION);
    printf("  Jansson %s\n", JANSSON_VERSION);
    if (program->print_versions)
        program->print_versions(stdout);
}

/* The forms of a synopsis, a line each, in one line. */
static void say_expected(const struct argp_state *state, const char *synopsis)
{
    char forms[256] = "";
    for (const char *form = synopsis; *form; form += strcspn(form, "\n"), form += *form == '\n') {
        const size_t length = strlen(forms);
        snprintf(forms + length, sizeof forms - length, "%s%.*s", length ? ", or " : "",
                 (int)strcspn(form, "\n"), form);
    }
    argp_error(state, "too few arguments: %s is expected", forms);
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct parse *parse = state->input;
    const struct dl2_program *program = parse->program;
    struct dl2_error error = DL2_ERROR_INIT;
    const struct dl2_option *option = find_option(program, key);
    if (option) {
        if (apply(option, text, &error) < 0)
            argp_error(state, "--%s: %s", option->name, error.message);
        parse->common->given[option - program->options] = true;
        return 0;
    }
    switch (key) {
    case KEY_JOBS: {
        struct dl2_option jobs = {
            .type = DL2_OPTION_UINT, .value = &parse->common->jobs, .min = 1, .max = 1024};
        if (apply(&jobs, text, &error) < 0)
            argp_error(state, "--jobs: %s", error.message);
        return 0;
    }
    case KEY_QUIET:
        parse->common->quiet = true;
        return 0;
    case KEY_VERSION:
        print_version(program);
        exit(DL2_EXIT_OK);
    case ARGP_KEY_ARG:
        if (program->max_arguments && parse->count == program->max_arguments)
            argp_error(state, "too many arguments: '%s'", DL2_SHOWN(text));
        parse->arguments[parse->count++] = text;
        return 0;
    case ARGP_KEY_END:
        if (parse->count < program->min_arguments)
            say_expected(state, program->synopsis);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* getopt names an option that it doesn't know as it is: file names, too, may begin with a dash. */
static void refuse_odd_options(const struct dl2_program *program, const struct argp_option *known,
                               char **argv)
{
    for (char **text = argv + 1; *text && strcmp(*text, "--") != 0; text++) {
        if (**text != '-' || strcmp(DL2_SHOWN(*text), *text) == 0)
            continue;
        const char *name = *text + 1 + ((*text)[1] == '-');
        const size_t length = strcspn(name, "=");
        bool is_known = false;
        for (size_t i = 0; (known[i].name || known[i].doc) && !is_known; i++)
            is_known = known[i].name && ((*text)[1] == '-' ? !strncmp(known[i].name, name, length)
                                                           : known[i].key == *name);
        if (!is_known)
            exit(dl2_program_usage_error(program, "there is no option '%s'", *text));
    }
}

void dl2_program_parse(const struct dl2_program *program, int argc, char **argv,
                       struct dl2_common_options *common, char ***arguments, size_t *count)
{
    dl2_streams_begin(program->name);
    size_t options = 0;
    while (program->options[options].type != DL2_OPTION_END)
        options++;
    struct argp_option *table = dl2_calloc(options + 5, sizeof *table);
    struct parse parse = {program, common, dl2_calloc((size_t)argc + 1, sizeof(char *)), 0};
    size_t length = strlen(program->summary) + (program->details ? strlen(program->details) : 0);
    char *text = dl2_calloc(length + 4, 1);
    if (!table || !parse.arguments || !text || options > DL2_MOST_OPTIONS) {
        fprintf(stderr, "%s: out of memory\n", program->name);
        exit(DL2_EXIT_FAILED);
    }
    int group = 1;
    for (size_t i = 0; i < options; i++) {
        const struct dl2_option *option = &program->options[i];
        if (option->type == DL2_OPTION_GROUP) {
            table[i] = (struct argp_option){.doc = option->help, .group = ++group};
            continue;
        }
        table[i] = (struct argp_option){.name = option->name,
                                        .key = option_key(program, i),
                                        .arg = option->metavar,
                                        .doc = option->help,
                                        .group = group};
    }
    size_t n = options;
    group++;
    table[n++] = (struct argp_option){.doc = "Running:", .group = group};
    table[n++] = (struct argp_option){.name = "jobs",
                                      .key = KEY_JOBS,
                                      .arg = "N",
                                      .doc = "Worker threads (default: one a processor)",
                                      .group = group};
    table[n++] = (struct argp_option){.name = "quiet",
                                      .key = KEY_QUIET,
                                      .doc = "No progress, only results and errors",
                                      .group = group};
    table[n++] = (struct argp_option){.name = "version",
                                      .key = KEY_VERSION,
                                      .doc = "Print the versions of this program and its libraries",
                                      .group = -1};
    sprintf(text, "%s\v%s", program->summary, program->details ? program->details : "");
    struct argp argp = {table, parse_option, program->synopsis, text, NULL, NULL, NULL};
    argp_err_exit_status = DL2_EXIT_USAGE;
    refuse_odd_options(program, table, argv);
    argp_parse(&argp, argc, argv, 0, NULL, &parse);
    if (common->jobs == 0)
        common->jobs = dl2_cpu_count();
    free(table);
    free(text);
    *arguments = parse.arguments;
    *count = parse.count;
}

bool dl2_option_given(const struct dl2_program *program, const struct dl2_common_options *common,
                      const char *name)
{
    for (size_t i = 0; program->options[i].type != DL2_OPTION_END; i++)
        if (program->options[i].name && !strcmp(program->options[i].name, name))
            return common->given[i];
    return false;
}

int dl2_program_usage_error(const struct dl2_program *program, const char *format, ...)
{
    char text[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "%s: %s\nTry '%s --help' for more information.\n", program->name,
            DL2_SHOWN(text), program->name);
    return DL2_EXIT_USAGE;
}

int dl2_parse_word(const char *text, const char *const *words, struct dl2_error *error)
{
    for (int i = 0; words[i]; i++)
        if (!strcmp(text, words[i]))
            return i;
    char all[256] = "";
    for (int i = 0; words[i]; i++) {
        const size_t length = strlen(all);
        snprintf(all + length, sizeof all - length, "%s%s", i ? ", " : "", words[i]);
    }
    return dl2_error_set(error, DL2_ERR_ARGUMENT, "'%s' is none of %s", text, all);
}

int dl2_parse_uint_list(const char *text, unsigned min, unsigned max, unsigned **out, size_t *count,
                        struct dl2_error *error)
{
    unsigned *list = dl2_calloc(strlen(text) / 2 + 1, sizeof *list);
    if (!list)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory");
    size_t n = 0;
    for (const char *p = text;; p++) {
        char *end;
        errno = 0;
        unsigned long number = isdigit((unsigned char)*p) ? strtoul(p, &end, 10) : 0;
        if (!isdigit((unsigned char)*p) || (*end && *end != ',')) {
            free(list);
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "'%s' is not a list of whole numbers like 10,25,50", text);
        }
        if (errno == ERANGE || number < min || number > max) {
            free(list);
            return dl2_error_set(error, DL2_ERR_ARGUMENT, "%.*s is not between %u and %u",
                                 (int)(end - p), p, min, max);
        }
        bool known = false;
        for (size_t i = 0; i < n; i++)
            known |= list[i] == number;
        if (!known)
            list[n++] = (unsigned)number;
        p = end;
        if (!*p)
            break;
    }
    *out = list;
    *count = n;
    return DL2_OK;
}

int dl2_parse_name_list(const char *text, char ***out, size_t *count, struct dl2_error *error)
{
    char **list = dl2_calloc(strlen(text) + 2, sizeof *list);
    size_t n = 0;
    for (const char *p = text; list;) {
        size_t length = strcspn(p, ",");
        if (length == 0) {
            dl2_free_list(list);
            return dl2_error_set(error, DL2_ERR_ARGUMENT, "'%s' has an empty name", text);
        }
        char *name = strndup(p, length);
        if (!name)
            break;
        list[n++] = name;
        p += length;
        if (!*p) {
            *out = list;
            *count = n;
            return DL2_OK;
        }
        p++;
    }
    dl2_free_list(list);
    return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory");
}

void dl2_free_list(char **list)
{
    for (char **p = list; p && *p; p++)
        free(*p);
    free(list);
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

int dl2_parse_colour(const char *text, void *value, struct dl2_error *error)
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
                             "'%s' is no colour: RRGGBB (hexadecimal), white, black or gray", text);
    unsigned long number = strtoul(digits, NULL, 16);
    for (int c = 0; c < 3; c++)
        ((uint8_t *)value)[c] = (uint8_t)(number >> (16 - 8 * c));
    return DL2_OK;
}
