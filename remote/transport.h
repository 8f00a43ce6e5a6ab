/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests to servers of HTTP: many under way at once, by one thread. A request that fails for a
 * reason that may pass is sent again; one that is finished is right to the byte, or an error that
 * says what to do. Only the files of this room include this header.
 *
 * Threads: any number at once; create and destroy on one.
 */
#ifndef DL2_TRANSPORT_H
#define DL2_TRANSPORT_H

#include "common/error.h"
#include "common/memory.h"
#include "remote/credentials.h"

#include <stdatomic.h>

struct dl2_transport_settings {
    unsigned requests;  /* under way at once */
    double time_limit;  /* seconds for one try of one request; with a body, without any progress */
    double retry_limit; /* seconds from its first failure until a request is given up */
    const struct dl2_credentials *credentials; /* borrowed; key NULL: requests are not signed */
    bool is_s3; /* the server's errors are S3's, and redirections are errors */
};

/* Counted since a transport was made. */
struct dl2_transport_stats {
    atomic_uint_fast64_t requests; /* tries that a server answered, or did not */
    atomic_uint_fast64_t retries;  /* of these, those that repeated an earlier one */
    atomic_uint_fast64_t bytes;    /* of bodies, whatever became of them */
};

enum { DL2_ETAG_BYTES = 256 };

/* One request. Zero it, and set the first part; it must stay where it is until done(). */
struct dl2_remote_transfer {
    const char *url;  /* percent-encoded */
    const char *what; /* the address for messages */
    /* A range: `size` bytes, at least one, from `offset` on, go to `data`; fewer are right only
     * where the object ends. Without `data`, the whole answer goes to `body`. */
    uint8_t *data;
    uint64_t offset;
    size_t size;
    size_t max_body;
    const char *method; /* NULL: GET */
    /* The request's body, borrowed until done(); NULL: none. */
    const uint8_t *sent;
    size_t sent_size;
    const char *match; /* the object must still have this ETag; NULL: any */
    bool is_new;       /* of what is written: it must not be there; else status 412 */
    /* Called once, on the transport's thread or in dl2_transport_submit(); it must be quick. The
     * transfer is the caller's again. */
    void (*done)(struct dl2_remote_transfer *transfer, void *context);
    void *context;

    /* What became of it. */
    int status; /* DL2_ERR_ARGUMENT: there is no such object */
    struct dl2_error error;
    long code; /* the server's; 0: none */
    size_t got;
    uint64_t total;            /* bytes of the object, or DL2_REMOTE_UNKNOWN; of ranges alone */
    char etag[DL2_ETAG_BYTES]; /* "" if the server gives none */
    int64_t changed;           /* Last-Modified, seconds since 1970; -1 if the server gives none */
    struct dl2_bytes body;     /* the caller's to free */

    /* The transport's own. */
    struct dl2_remote_transfer *after;
    struct dl2_transfer_slot *slot;
    unsigned tries;
    double first_failure, not_before; /* of dl2_clock_wall() */
};

struct dl2_transport;
struct dl2_listing;
struct dl2_store_error;
struct dl2_transport_driver {
    int (*create)(const struct dl2_transport_settings *settings, struct dl2_transport **out,
                  struct dl2_error *error);
    /* Transfers that are not done fail with DL2_ERR_CANCELED. */
    void (*destroy)(struct dl2_transport *transport);
    /* `first`: before all that wait. */
    void (*submit)(struct dl2_transport *transport, struct dl2_remote_transfer *transfer,
                   bool first);
    const struct dl2_transport_stats *(*stats)(const struct dl2_transport *transport);
    /* Reads a page of S3's listing. See listing.h. */
    int (*read_listing)(const uint8_t *text, size_t size, struct dl2_listing *listing,
                        struct dl2_error *error);
    /* Reads another reply of S3. See listing.h. */
    void (*read_reply)(const uint8_t *text, size_t size, struct dl2_store_error *out);
};

extern const struct dl2_transport_driver dl2_transport_curl;

#endif
