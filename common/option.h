/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table of options parses the command line, prints --help (and so the man page) with the defaults
 * that the program's structs begin with, whole or a command's part, prints the shell's completion,
 * and writes the settings of a run as JSON. A table is of a struct: each row names a member by its
 * offset. Tables that several programs share are included by a row of type DL2_OPTION_TABLE. Built
 * on argp.
 */
#ifndef DL2_COMMON_OPTION_H
#define DL2_COMMON_OPTION_H

#include "common/error.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum dl2_option_type {
    DL2_OPTION_END = 0,
    DL2_OPTION_GROUP,  /* a heading: only `help` is used */
    DL2_OPTION_TABLE,  /* all rows of `table`, which is of the struct at `offset` */
    DL2_OPTION_FLAG,   /* bool, set to true */
    DL2_OPTION_NEGATE, /* bool, set to false */
    DL2_OPTION_UINT,   /* unsigned, within [min, max] */
    DL2_OPTION_UINT64, /* uint64_t, within [min, max] */
    DL2_OPTION_REAL,   /* double, within [min, max]; NAN: not set */
    DL2_OPTION_SIZE,   /* uint64_t in bytes: see dl2_parse_size() */
    DL2_OPTION_TEXT,   /* const char *, pointing into argv; NULL: not set */
    DL2_OPTION_CHOICE, /* an enum or unsigned: the number of one of `words` */
    DL2_OPTION_SWITCH, /* bool: the first or the second of `words` */
    DL2_OPTION_PARSE,  /* whatever parse() stores at `offset`; may be given several times */
};

/* What a setting means to a training run, as flags. 0: each part of a run may set it anew. */
enum dl2_option_role {
    DL2_OPTION_FIXED = 1,    /* a run keeps it: --resume refuses another value */
    DL2_OPTION_NOTED = 2,    /* --resume accepts another value and says so */
    DL2_OPTION_COMPARED = 4, /* it bears on accuracy: runs that are compared agree on it */
    DL2_OPTION_MODEL = 8,    /* models that are trained on the same batches may differ in it */
    DL2_OPTION_ALONE = 16,   /* models that a rank trains one at a time may, too */
    /* A model that is made in a database has it. It is of use on images that come by themselves,
     * and names no file, which would be the server's. */
    DL2_OPTION_FIT = 32,
};

struct dl2_option {
    enum dl2_option_type type;
    const char *name;    /* long name without dashes */
    char letter;         /* short name, or 0; j and V are taken */
    const char *metavar; /* NULL for flags */
    const char *help;    /* --help adds the default in brackets */
    size_t offset;       /* of the member that holds the value, in the table's struct */
    double min, max;     /* both 0: no bounds beyond the type's */
    int (*parse)(const char *text, void *value, struct dl2_error *error);
    json_t *(*show)(const void *value); /* a new reference to what parse() stored; or NULL */
    /* A choice's words in the order of its enum; what completion offers for a text. NULL ends. */
    const char *const *words;
    const char *list;    /* `--list` of the same program with this word prints the choices */
    const char *implied; /* the value's text where the option comes without one, so that a value
                            needs the sign, as --NAME=VALUE; NULL: a value is needed */
    const char *unset;   /* the default's text where the value is 0, NAN, NULL or no word */
    unsigned roles;      /* enum dl2_option_role */
    unsigned commands;   /* bits of the commands that have it; 0: all */
    bool basic;          /* the program's --help, which names few, has it */
    const struct dl2_option *table;
    const char *also; /* other programs' names for it, with commas: who types one gets a hint */
};

/* The maximum number of rows, included ones counted. */
enum { DL2_MAX_OPTIONS = 160 };

/* The options of every program. dl2_program_parse() fills it in; zero it first. */
struct dl2_common_options {
    unsigned jobs; /* -j, --jobs: worker threads, at least 1 */
    bool jobs_given;
    bool quiet;                  /* --quiet: no progress, only errors and results */
    unsigned command;            /* number of the program's command */
    bool given[DL2_MAX_OPTIONS]; /* by row; ask dl2_option_given() */
};

/* What a program does by its first argument, as in "dl2-load check photos". */
struct dl2_command {
    const char *name;
    unsigned bit;                          /* of the rows' `commands` */
    const char *synopsis;                  /* its arguments, "SOURCE DEST" */
    unsigned min_arguments, max_arguments; /* how many; max 0 means no limit */
    const char *summary;                   /* one line, at most 60 characters */
    const char *details;                   /* under its options; or NULL */
};

struct dl2_program {
    const char *name;    /* "dl2-quality" */
    const char *summary; /* one line, for --help and whatis */
    const char *details; /* of --help=all: what all commands have in common, exit status; or NULL */
    const char *topics;  /* what --help says before the examples; or NULL */
    const char *examples;               /* of --help */
    const struct dl2_option *options;   /* ends with DL2_OPTION_END */
    void *values;                       /* the struct that the table is of, holding the defaults */
    const struct dl2_command *commands; /* without a name behind the last */
    bool has_default;                   /* the first one is meant where no command is named */
    void (*print_versions)(FILE *out);  /* one "  name version" line per linked library, or NULL */
    const char *origin; /* "FILE:3": usage errors are of settings from there; NULL: command line */
    /* Receives usage errors, as DL2_ERR_ARGUMENT, of settings that no command line gave; NULL: they
     * are printed. */
    struct dl2_error *refusal;
};

/*
 * Parses into program->values. A command has the options of its own and those of all commands.
 * --help, --usage, --version and --completion print and end the process with status 0; wrong usage
 * says why on stderr and ends it with status 2. `arguments` receives the positional arguments
 * behind the command (a block to free; the strings are argv's) and `count` how many there are.
 * Begins with dl2_streams_begin(), so a program that calls it has safe standard streams,
 * and fails where its output was lost. Call from main, first.
 */
void dl2_program_parse(const struct dl2_program *program, int argc, char **argv,
                       struct dl2_common_options *common, char ***arguments, size_t *count);

/* Whether the option of this long name was on the command line. */
bool dl2_option_given(const struct dl2_program *program, const struct dl2_common_options *common,
                      const char *name);

/* The option of a table that sets a member of its struct, or with `negates` the one that clears it;
 * NULL: none does. */
const struct dl2_option *dl2_option_of(const struct dl2_option *options, void *values,
                                       const void *member, bool negates);

/* The first option on the command line that does not go with `command`, a bit of the rows'
 * `commands` that need not be a command's, or NULL. */
const char *dl2_option_without_effect(const struct dl2_program *program,
                                      const struct dl2_common_options *common, unsigned command);
/* Prints the options of a table that the command lacks: a line each, its name with
 * dashes, a tab, and its argument's name or nothing. */
void dl2_options_list_without_effect(const struct dl2_option *options, unsigned command, FILE *out);

/* The values of a table of options as a new JSON object: numbers, texts and booleans by option
 * name; null where a text or a real number is not set. `values` is the table's struct. */
json_t *dl2_options_json(const struct dl2_option *options, const void *values);
/* Those members of such an object whose options have one of the roles. A new reference. */
json_t *dl2_options_select(const struct dl2_option *options, const json_t *values, unsigned roles);
/* Is there an option of that name which has one of the roles? */
bool dl2_option_has_role(const struct dl2_option *options, const char *name, unsigned roles);

/* Sets the option `name` of a table to a value as dl2_options_json() shows it; a value that was not
 * set leaves it as it is. A text is borrowed from `value`. DL2_ERR_ARGUMENT for a value that the
 * option does not take. */
int dl2_option_from_record(const struct dl2_option *options, void *values, const char *name,
                           const json_t *value, struct dl2_error *error);

/*
 * Sets the option `name` of a table, which must have the role, as the command line does: by a
 * number, a text, or true or false for a flag. Texts are borrowed. DL2_ERR_ARGUMENT for unknown
 * names and for values that the option does not take; the message has no name.
 */
int dl2_option_from_user(const struct dl2_option *options, void *values, const char *name,
                         const json_t *value, unsigned role, struct dl2_error *error);
/* Makes dl2_option_given() true of a name, or false. */
void dl2_option_note_given(const struct dl2_program *program, struct dl2_common_options *common,
                           const char *name, bool given);

/* The project's exit statuses. */
enum { DL2_EXIT_OK = 0, DL2_EXIT_FAILED = 1, DL2_EXIT_USAGE = 2 };

/* Prints "program: message", with the program's origin, quoted, for wrong usage found after
 * parsing, or leaves the message in program->refusal; returns DL2_EXIT_USAGE. */
int dl2_program_usage_error(const struct dl2_program *program, const char *format, ...)
    DL2_PRINTF(2, 3);

/* Options that cannot be given: the message is "--OPTION REASON". */
struct dl2_option_rule {
    bool refused;        /* else the rule does not apply */
    const char *options; /* "a,b,c" */
    const char *reason;
};
/* Refuses the first option of the rules that was given, as dl2_program_usage_error() does; returns
 * 0 where there is none. A rule of an option that the program does not have is refused in any case:
 * it could never apply, so every test of the program shows it. */
int dl2_program_refuse(const struct dl2_program *program, const struct dl2_common_options *common,
                       const struct dl2_option_rule *rules, size_t count);

/* The number of the word, or DL2_ERR_ARGUMENT with a message that lists all words. */
int dl2_parse_word(const char *text, const char *const *words, struct dl2_error *error);

/*
 * "10,25,50" into a list of numbers within [min, max], in the order given, without repeats.
 * "5:95:10" is 5, 15 and so on up to 95, "5:9" 5 to 9. *out is a block to free.
 */
int dl2_parse_uint_list(const char *text, unsigned min, unsigned max, unsigned **out, size_t *count,
                        struct dl2_error *error);

/* "a,b,c" into a NULL-ended list of names; free each and the block with dl2_free_list(). */
int dl2_parse_name_list(const char *text, char ***out, size_t *count, struct dl2_error *error);

/* "512M", "1.5G": bytes, with K, M, G or T for powers of 1024 (any case, also as MB or MiB). */
int dl2_parse_size(const char *text, uint64_t *out, struct dl2_error *error);

/* Parses "RRGGBB" or "#RRGGBB", hexadecimal, white, black or gray into a uint8_t[3]. */
int dl2_parse_color(const char *text, void *value, struct dl2_error *error);

#endif
