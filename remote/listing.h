/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The XML of S3: pages of a listing (ListObjectsV2), errors, and uploads. Only the files of this
 * room include this header.
 */
#ifndef DL2_LISTING_H
#define DL2_LISTING_H

#include "common/error.h"
#include "common/memory.h"

struct dl2_listed_object {
    size_t key, etag; /* in the listing's strings */
    uint64_t bytes;
    int64_t mtime_ns; /* since 1970 */
};

/* Zero it first; pages are appended. */
struct dl2_listing {
    struct dl2_listed_object *objects; /* in `block` */
    size_t count;
    struct dl2_bytes block;
    struct dl2_bytes strings;
    struct dl2_bytes next; /* what continues the listing, a string; size 0: it is complete */
};

/* DL2_ERR_FORMAT for what is no such page, DL2_ERR_LIMIT above 2^32 objects. */
int dl2_listing_read(const uint8_t *text, size_t size, struct dl2_listing *listing,
                     struct dl2_error *error);

/* Reads code, message and request id out of S3's <Error>, or the id of an upload in parts that S3
 * has begun (<InitiateMultipartUploadResult>): "" for what is not there. */
struct dl2_store_error {
    char code[64], message[256], request[128], region[64], upload[1024];
};
void dl2_store_error_read(const uint8_t *text, size_t size, struct dl2_store_error *out);

#endif
