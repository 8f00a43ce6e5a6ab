/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What requests to S3 are signed with, and where they go: from the environment, then from the files
 * of the AWS command line (docs/loading.md). Secrets never appear in a message. Only the files of
 * this room include this header.
 */
#ifndef DL2_CREDENTIALS_H
#define DL2_CREDENTIALS_H

#include "common/error.h"

struct dl2_credentials {
    char *key, *secret; /* NULL: requests are not signed */
    char *token;        /* of a session; NULL: none */
    char *region;
    char *authorities; /* a file of certificates; NULL: the system's. For HTTP, too */
    char *endpoint;    /* "http://127.0.0.1:9000", without a slash at its end; NULL: AWS itself */
    const char *from;  /* for messages: where the key was found */
};

/* To be freed also after an error. DL2_ERR_ARGUMENT for what is there by half. */
int dl2_credentials_load(struct dl2_credentials *credentials, struct dl2_error *error);
void dl2_credentials_free(struct dl2_credentials *credentials);

/*
 * The value of a setting in a section of an INI file, "[section]" with lines "name = value": a
 * string to free; NULL if it is not there, or memory runs out. Sets *there if the section is.
 */
char *dl2_ini_value(const char *text, const char *section, const char *name, bool *there);

#endif
