/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses of datasets behind HTTP and in object stores (docs/loading.md):
 *
 *     http://HOST[:PORT]/PATH   https://...   s3://BUCKET[/PREFIX]
 *
 * Knows nothing of a network, so that a build without one can say what is missing.
 */
#ifndef DL2_ADDRESS_H
#define DL2_ADDRESS_H

#include "common/error.h"
#include "common/memory.h"

struct dl2_address {
    bool is_s3;
    char *place; /* "https://host:port", or the bucket */
    char *path;  /* without slashes at its ends. HTTP: percent-encoded as it was given; S3: bytes */
};

/* Sets *address, to be freed also after an error. DL2_ERR_ARGUMENT says what is wrong. */
int dl2_address_parse(const char *text, struct dl2_address *address, struct dl2_error *error);
void dl2_address_free(struct dl2_address *address);

/*
 * The address's path and `name` behind it, percent-encoded, without a slash in front. Each "../" at
 * the front of `name` takes a part off the path. A string to free. NULL if memory runs out, and
 * where the path has no such part.
 */
char *dl2_address_object(const struct dl2_address *address, const char *name);

/* A text in percent-encoding, as the signatures of S3 want it; '/' stays if `slash`. To be freed;
 * NULL if memory runs out. */
char *dl2_percent_encode(const char *text, bool slash);

/* The reverse of it, in place. False for a % without two hexadecimal digits, and for encoded
 * slashes and zeros, which no name of a file has. */
bool dl2_percent_decode(char *text);

/* Says that this build cannot read what lies at an address. */
int dl2_address_unsupported(const char *text, struct dl2_error *error);

#endif
