/*
 * One table per program parses the command line, prints --help (and so the man page), and knows
 * every default. Built on argp.
 */
#ifndef DL2_COMMON_OPTION_H
#define DL2_COMMON_OPTION_H

#include "common/error.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum dl2_option_type {
    DL2_OPTION_END = 0,
    DL2_OPTION_GROUP,  /* a heading: only `help` is used */
    DL2_OPTION_FLAG,   /* bool *value, set to true */
    DL2_OPTION_NEGATE, /* bool *value, set to false */
    DL2_OPTION_UINT,   /* unsigned *value, within [min, max] */
    DL2_OPTION_UINT64, /* uint64_t *value, within [min, max] */
    DL2_OPTION_REAL,   /* double *value, within [min, max] */
    DL2_OPTION_SIZE,   /* uint64_t *value in bytes: see dl2_parse_size() */
    DL2_OPTION_TEXT,   /* const char **value, pointing into argv */
    DL2_OPTION_CHOICE, /* an enum or unsigned *value: the number of one of `words` */
    DL2_OPTION_PARSE,  /* parse() puts what it finds where value points; may come several times */
};

struct dl2_option {
    enum dl2_option_type type;
    const char *name;    /* long name without dashes */
    char letter;         /* short name, or 0; j and V are taken */
    const char *metavar; /* NULL for flags */
    const char *help;    /* a default, where one is worth telling, is written out by the author */
    void *value;
    double min, max; /* both 0: no bounds beyond the type's */
    int (*parse)(const char *text, void *value, struct dl2_error *error);
    const char *const *words; /* of a choice, in the order of its enum; NULL ends them */
};

/* Rows of a table of options, at most. */
enum { DL2_MOST_OPTIONS = 128 };

/* What every program has. Parsed by dl2_program_parse() from options of its own. */
struct dl2_common_options {
    unsigned jobs;                /* -j, --jobs: worker threads; 0 until parsed, then at least 1 */
    bool quiet;                   /* --quiet: no progress, only errors and results */
    bool given[DL2_MOST_OPTIONS]; /* by row of the program's table; ask dl2_option_given() */
};

struct dl2_program {
    const char *name;     /* "dl2-quality" */
    const char *synopsis; /* "REFERENCE VARIANT..." */
    const char *summary;  /* one line, for --help and whatis */
    const char *details;  /* under the options: examples, formats, exit status; or NULL */
    const struct dl2_option *options;  /* ends with DL2_OPTION_END */
    void (*print_versions)(FILE *out); /* one "  name version" line per linked library, or NULL */
    unsigned min_arguments, max_arguments; /* positional arguments; max 0 means no limit */
};

/*
 * Parses. --help, --usage and --version print and end the process with status 0; wrong usage says
 * why on stderr and ends it with status 2. `arguments` receives the positional arguments (a block
 * to free; the strings are argv's) and `count` how many there are. Begins with dl2_streams_begin(),
 * so a program that calls it has safe standard streams, and fails where its output was lost. Call
 * from main, first.
 */
void dl2_program_parse(const struct dl2_program *program, int argc, char **argv,
                       struct dl2_common_options *common, char ***arguments, size_t *count);

/* Was the option of this long name on the command line, with whatever value? For options that only
 * have a meaning beside others. */
bool dl2_option_given(const struct dl2_program *program, const struct dl2_common_options *common,
                      const char *name);

/* The project's exit statuses. */
enum { DL2_EXIT_OK = 0, DL2_EXIT_FAILED = 1, DL2_EXIT_USAGE = 2 };

/* Prints "program: message", quoted, for wrong usage found after parsing; returns DL2_EXIT_USAGE.
 */
int dl2_program_usage_error(const struct dl2_program *program, const char *format, ...)
    DL2_PRINTF(2, 3);

/* The number of the word, or DL2_ERR_ARGUMENT with a message that lists them all. */
int dl2_parse_word(const char *text, const char *const *words, struct dl2_error *error);

/*
 * "10,25,50" into a list of numbers within [min, max], in the order given, without repeats.
 * *out is a block to free.
 */
int dl2_parse_uint_list(const char *text, unsigned min, unsigned max, unsigned **out, size_t *count,
                        struct dl2_error *error);

/* "a,b,c" into a NULL-ended list of names; free each and the block with dl2_free_list(). */
int dl2_parse_name_list(const char *text, char ***out, size_t *count, struct dl2_error *error);
void dl2_free_list(char **list);

/* "512M", "1.5G": bytes, with K, M, G or T for powers of 1024 (any case, also as MB or MiB). */
int dl2_parse_size(const char *text, uint64_t *out, struct dl2_error *error);

/* "RRGGBB" or "#RRGGBB", hexadecimal, white, black or gray, into a uint8_t[3]; a DL2_OPTION_PARSE.
 */
int dl2_parse_colour(const char *text, void *value, struct dl2_error *error);

#endif
