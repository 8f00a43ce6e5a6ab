/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Errors: a status to branch on, and one message to show.
 *
 * Every function that can fail returns an `enum dl2_status` (0 or negative) and takes a
 * `struct dl2_error *` last, which may be NULL. The first message wins; callers on the way up add
 * what they know (file, sample, stage) in front with dl2_error_prefix(). Control characters, which
 * file names may have, and bytes that are not UTF-8 become \n or \x1b, so that a message is safe to
 * print. A message that is too long loses its middle: names are long, and the reason stands at the
 * end. Only a program's main file prints the message and ends the process.
 *
 * Threads: a dl2_error belongs to one thread at a time.
 */
#ifndef DL2_COMMON_ERROR_H
#define DL2_COMMON_ERROR_H

#include <stdarg.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define DL2_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define DL2_PRINTF(text, first)
#endif

enum dl2_status {
    DL2_OK = 0,
    DL2_ERR_MEMORY = -1, /* memory or file descriptors ran out, which is no fault of a file */
    DL2_ERR_SYSTEM = -2, /* the operating system refused: the message has its reason */
    DL2_ERR_FORMAT = -3, /* bytes are not what they should be: truncated, corrupt, inconsistent */
    DL2_ERR_UNSUPPORTED = -4, /* well-formed, but not something this build can handle */
    DL2_ERR_LIMIT = -5,       /* larger than a stated limit */
    DL2_ERR_ARGUMENT = -6,    /* the caller or user asked for something that makes no sense */
    DL2_ERR_CANCELED = -7,    /* stopped because something else failed or ended */
    DL2_ERR_LOST = -8, /* the connection to a server was lost, or the server refuses to go on */
};

struct dl2_error {
    enum dl2_status status; /* DL2_OK while nothing has failed */
    char message[1024];     /* one line, no newline at the end */
    int number;             /* of dl2_error_system(): errno; else 0 */
    /*
     * Where the message names the file that `number` is about; length 0: it names none, or not as
     * it is: control characters are quoted, a long name is cut.
     */
    unsigned path_start, path_length;
};

#define DL2_ERROR_INIT                                                                             \
    {                                                                                              \
        DL2_OK, "", 0, 0, 0                                                                        \
    }

/* Records `status` and the message unless an error is already there. Returns `status`. */
int dl2_error_set(struct dl2_error *error, enum dl2_status status, const char *format, ...)
    DL2_PRINTF(3, 4);

/*
 * The same with ": strerror(errno)" behind it, and DL2_ERR_SYSTEM, or DL2_ERR_MEMORY where too many
 * files are open. Where the format begins with a conversion, the file's path ends at its first ": ".
 */
int dl2_error_system(struct dl2_error *error, const char *format, ...) DL2_PRINTF(2, 3);

/* Records DL2_ERR_MEMORY and "out of memory for WHAT"; `what` is a format. Returns that status. */
int dl2_error_memory(struct dl2_error *error, const char *what, ...) DL2_PRINTF(2, 3);

/* Records what `from` says unless an error is already there. Returns the status of `from`. */
int dl2_error_copy(struct dl2_error *error, const struct dl2_error *from);

/* Puts "text: " in front of the message that is there; does nothing where there is none. */
void dl2_error_prefix(struct dl2_error *error, const char *format, ...) DL2_PRINTF(2, 3);

void dl2_error_clear(struct dl2_error *error);

/* Returns the status of `call` from the enclosing function unless it is DL2_OK. */
#define DL2_TRY(call)                                                                              \
    do {                                                                                           \
        int dl2_try_status_ = (call);                                                              \
        if (dl2_try_status_ < 0)                                                                   \
            return dl2_try_status_;                                                                \
    } while (0)

#ifdef __cplusplus
}
#endif

#endif
