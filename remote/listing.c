/* SPDX-License-Identifier: BSD-2-Clause */
#include "remote/listing.h"

#include <expat.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The longest value, in bytes (keys have at most 1024), and the deepest element. */
enum { MAX_TEXT = 4096, MAX_DEPTH = 16 };

struct reading {
    XML_Parser parser;
    int depth;
    bool in_object, is_listing, is_error, is_upload, truncated;
    char text[MAX_TEXT]; /* of the element that is being read */
    size_t length;
    const char *wrong; /* why reading stopped; NULL: nothing is wrong */
    int status;
    struct dl2_listing *listing; /* NULL: an error is read */
    struct dl2_listed_object object;
    bool has_key, has_size;
    struct dl2_store_error *store;
};

static void stop(struct reading *reading, int status, const char *why)
{
    if (!reading->wrong) {
        reading->wrong = why;
        reading->status = status;
    }
    XML_StopParser(reading->parser, XML_FALSE);
}

/* Names may have a prefix for their namespace: "s3:Key". */
static const char *local_name(const char *name)
{
    const char *colon = strrchr(name, ':');
    return colon ? colon + 1 : name;
}

static void start_element(void *context, const char *name, const char **attributes)
{
    struct reading *reading = context;
    (void)attributes;
    name = local_name(name);
    if (reading->depth == 0) {
        reading->is_listing = !strcmp(name, "ListBucketResult");
        reading->is_error = !strcmp(name, "Error");
        reading->is_upload = !strcmp(name, "InitiateMultipartUploadResult");
    }
    if (++reading->depth > MAX_DEPTH)
        stop(reading, DL2_ERR_FORMAT, "its elements are nested too deep");
    if (reading->depth == 2 && !strcmp(name, "Contents")) {
        reading->in_object = true;
        reading->object = (struct dl2_listed_object){0};
        reading->has_key = reading->has_size = false;
    }
    reading->length = 0;
}

static void add_text(void *context, const char *text, int length)
{
    struct reading *reading = context;
    if ((size_t)length >= MAX_TEXT - reading->length) {
        stop(reading, DL2_ERR_LIMIT, "a value is longer than 4,095 bytes");
        return;
    }
    memcpy(reading->text + reading->length, text, (size_t)length);
    reading->length += (size_t)length;
}

static size_t keep_text(struct reading *reading)
{
    const size_t at = reading->listing->strings.size;
    if (dl2_bytes_append(&reading->listing->strings, reading->text, reading->length + 1, NULL) < 0)
        stop(reading, DL2_ERR_MEMORY, "out of memory for a listing");
    return at;
}

static bool read_size(const char *text, uint64_t *value)
{
    *value = 0;
    if (!*text || strlen(text) > 18)
        return false;
    for (; *text; text++) {
        if (!isdigit((unsigned char)*text))
            return false;
        *value = 10 * *value + (uint64_t)(*text - '0');
    }
    return true;
}

/* "2026-11-25T22:42:00.000Z"; another form is no time. */
static int64_t read_time(const char *text)
{
    struct tm parts = {0};
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &parts);
    if (!end)
        return 0;
    int64_t ns = 0, unit = 100000000;
    if (*end == '.')
        for (end++; isdigit((unsigned char)*end); end++, unit /= 10)
            ns += unit * (*end - '0');
    return (int64_t)timegm(&parts) * 1000000000 + ns;
}

static void end_object(struct reading *reading)
{
    struct dl2_listing *listing = reading->listing;
    reading->in_object = false;
    if (!reading->has_key || !reading->has_size) {
        stop(reading, DL2_ERR_FORMAT, "an object has no key or no size");
        return;
    }
    if (listing->count >= UINT32_MAX) {
        stop(reading, DL2_ERR_LIMIT, "it has more than 2^32 objects");
        return;
    }
    if (dl2_bytes_append(&listing->block, &reading->object, sizeof reading->object, NULL) < 0) {
        stop(reading, DL2_ERR_MEMORY, "out of memory for a listing");
        return;
    }
    listing->objects = (struct dl2_listed_object *)(void *)listing->block.data;
    listing->count++;
}

static void end_of_listing(struct reading *reading, const char *name)
{
    struct dl2_listing *listing = reading->listing;
    if (reading->in_object && reading->depth == 3) {
        if (!strcmp(name, "Key")) {
            reading->object.key = keep_text(reading);
            reading->has_key = reading->length > 0;
        } else if (!strcmp(name, "ETag")) {
            reading->object.etag = keep_text(reading);
        } else if (!strcmp(name, "Size")) {
            reading->has_size = read_size(reading->text, &reading->object.bytes);
        } else if (!strcmp(name, "LastModified")) {
            reading->object.mtime_ns = read_time(reading->text);
        }
    } else if (reading->depth == 2) {
        if (!strcmp(name, "Contents")) {
            end_object(reading);
        } else if (!strcmp(name, "IsTruncated")) {
            reading->truncated = !strcmp(reading->text, "true");
        } else if (!strcmp(name, "NextContinuationToken")) {
            listing->next.size = 0;
            if (dl2_bytes_append(&listing->next, reading->text, reading->length + 1, NULL) < 0)
                stop(reading, DL2_ERR_MEMORY, "out of memory for a listing");
        }
    }
}

static void copy_text(const struct reading *reading, char *out, size_t size)
{
    const size_t length = reading->length < size - 1 ? reading->length : size - 1;
    memcpy(out, reading->text, length);
    out[length] = '\0';
}

static void end_of_error(struct reading *reading, const char *name)
{
    struct dl2_store_error *store = reading->store;
    if (reading->depth != 2)
        return;
    if (!strcmp(name, "Code"))
        copy_text(reading, store->code, sizeof store->code);
    else if (!strcmp(name, "Message"))
        copy_text(reading, store->message, sizeof store->message);
    else if (!strcmp(name, "RequestId"))
        copy_text(reading, store->request, sizeof store->request);
    else if (!strcmp(name, "Region"))
        copy_text(reading, store->region, sizeof store->region);
}

static void end_element(void *context, const char *name)
{
    struct reading *reading = context;
    reading->text[reading->length] = '\0';
    if (reading->listing && reading->is_listing)
        end_of_listing(reading, local_name(name));
    else if (reading->store && reading->is_error)
        end_of_error(reading, local_name(name));
    else if (reading->store && reading->is_upload && reading->depth == 2 &&
             !strcmp(local_name(name), "UploadId"))
        copy_text(reading, reading->store->upload, sizeof reading->store->upload);
    reading->length = 0;
    reading->depth--;
}

/* No answer of S3 has a document type, and entities can make a small text a large one. */
static void refuse_doctype(void *context, const char *name, const char *system, const char *public,
                           int has_internal)
{
    (void)name, (void)system, (void)public, (void)has_internal;
    stop(context, DL2_ERR_FORMAT, "it has a document type");
}

static void parse(struct reading *reading, const uint8_t *text, size_t size)
{
    reading->parser = XML_ParserCreate(NULL);
    if (!reading->parser) {
        reading->wrong = "out of memory for a listing";
        reading->status = DL2_ERR_MEMORY;
        return;
    }
    XML_SetUserData(reading->parser, reading);
    XML_SetElementHandler(reading->parser, start_element, end_element);
    XML_SetCharacterDataHandler(reading->parser, add_text);
    XML_SetStartDoctypeDeclHandler(reading->parser, refuse_doctype);
    if (size > INT32_MAX)
        stop(reading, DL2_ERR_LIMIT, "it is longer than 2 GiB");
    else if (XML_Parse(reading->parser, (const char *)text, (int)size, 1) != XML_STATUS_OK &&
             !reading->wrong)
        stop(reading, DL2_ERR_FORMAT, XML_ErrorString(XML_GetErrorCode(reading->parser)));
    XML_ParserFree(reading->parser);
}

int dl2_listing_read(const uint8_t *text, size_t size, struct dl2_listing *listing,
                     struct dl2_error *error)
{
    struct reading *reading;
    DL2_TRY(DL2_NEW(&reading, 1, "a listing", error));
    reading->listing = listing;
    listing->next.size = 0;
    if (!listing->strings.size) /* ETags that are not there */
        dl2_bytes_append(&listing->strings, "", 1, NULL);
    parse(reading, text, size);
    if (!reading->wrong && !reading->is_listing) {
        reading->wrong = "it is no ListBucketResult";
        reading->status = DL2_ERR_FORMAT;
    }
    if (!reading->wrong && reading->truncated != (listing->next.size > 1)) {
        reading->wrong = "it says that it is truncated, and not how to go on, or the other way "
                         "round";
        reading->status = DL2_ERR_FORMAT;
    }
    int status = DL2_OK;
    if (reading->wrong)
        status = dl2_error_set(error, reading->status, "the store's listing cannot be read: %s",
                               reading->wrong);
    if (!reading->truncated)
        listing->next.size = 0;
    free(reading);
    return status;
}

void dl2_store_error_read(const uint8_t *text, size_t size, struct dl2_store_error *out)
{
    *out = (struct dl2_store_error){.code = ""};
    struct reading *reading = dl2_calloc(1, sizeof *reading);
    if (!reading)
        return;
    reading->store = out;
    /* Blanks keep a connection open while S3 puts parts together; XML must not begin with them. */
    while (size && isspace(*text))
        text++, size--;
    parse(reading, text, size);
    free(reading);
}
