/* SPDX-License-Identifier: BSD-2-Clause */
#include "dataset/remote/address.h"

#include "dataset/dataset.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct scheme {
    const char *start;
    bool is_s3;
} schemes[] = {{"http://", false}, {"https://", false}, {"s3://", true}};

static const struct scheme *find_scheme(const char *text)
{
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (!strncasecmp(text, schemes[i].start, strlen(schemes[i].start)))
            return &schemes[i];
    return NULL;
}

bool dl2_dataset_is_remote(const char *path)
{
    return find_scheme(path);
}

static int address_error(const char *text, const char *why, struct dl2_error *error)
{
    return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s: %s", text, why);
}

static bool is_host(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr("-._:[]", text[i]))
            return false;
    return length > 0 && (isalnum((unsigned char)text[0]) || text[0] == '[');
}

static bool is_bucket(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr("-._", text[i]))
            return false;
    return length >= 3 && length <= 255 && isalnum((unsigned char)text[0]);
}

/* A path that was given must be one that URLs can have, as it is. */
static int check_url_path(const char *text, const char *path, struct dl2_error *error)
{
    if (strpbrk(path, "?#"))
        return address_error(text,
                             "? and # have no place in the address of a dataset, to which the "
                             "names of its files are appended; write %3F and %23 in a name",
                             error);
    for (const char *at = path; *at; at++) {
        if (*at <= ' ' || *at == 0x7f || (*at & 0x80))
            return address_error(text, "write blanks and other such bytes as %20 and alike", error);
        if (*at == '%' && (!isxdigit((unsigned char)at[1]) || !isxdigit((unsigned char)at[2])))
            return address_error(text, "a % stands before two hexadecimal digits; write %25 for it",
                                 error);
    }
    return DL2_OK;
}

int dl2_address_parse(const char *text, struct dl2_address *address, struct dl2_error *error)
{
    const struct scheme *scheme = find_scheme(text);
    *address = (struct dl2_address){.is_s3 = scheme && scheme->is_s3};
    if (!scheme)
        return address_error(text, "not an address http://, https:// or s3://", error);
    const char *place = text + strlen(scheme->start);
    const size_t length = strcspn(place, "/?#");
    /* Such an address is not repeated: it may hold a password. */
    if (memchr(place, '@', length))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s***%s: an address has no user and no password%s", scheme->start,
                             strchr(place, '@'),
                             scheme->is_s3 ? "; credentials come from the environment or from "
                                             "~/.aws/credentials"
                                           : "; HTTP with passwords is not supported");
    if (scheme->is_s3 ? !is_bucket(place, length) : !is_host(place, length))
        return address_error(text,
                             scheme->is_s3 ? "s3:// is followed by the name of a bucket"
                                           : "http:// is followed by the name of a host",
                             error);
    const char *path = place + length + strspn(place + length, "/");
    size_t end = strlen(path);
    while (end && path[end - 1] == '/')
        end--;
    address->place = scheme->is_s3 ? strndup(place, length) : NULL;
    if (!scheme->is_s3 &&
        asprintf(&address->place, "%s%.*s", scheme->start, (int)length, place) < 0)
        address->place = NULL;
    address->path = strndup(path, end);
    if (!address->place || !address->path)
        return dl2_error_memory(error, "an address");
    return scheme->is_s3 ? DL2_OK : check_url_path(text, path, error);
}

void dl2_address_free(struct dl2_address *address)
{
    free(address->place);
    free(address->path);
    *address = (struct dl2_address){0};
}

int dl2_percent_encode(struct dl2_bytes *out, const char *text, bool slash, struct dl2_error *error)
{
    static const char digits[] = "0123456789ABCDEF";
    for (; *text; text++) {
        const unsigned char byte = (unsigned char)*text;
        const char code[3] = {'%', digits[byte >> 4], digits[byte & 15]};
        const bool plain = byte < 0x80 && (isalnum(byte) || strchr("-._~", byte));
        DL2_TRY(plain || (slash && byte == '/') ? dl2_bytes_append(out, text, 1, error)
                                                : dl2_bytes_append(out, code, 3, error));
    }
    return DL2_OK;
}

char *dl2_address_object(const struct dl2_address *address, const char *name)
{
    struct dl2_bytes out = DL2_BYTES_INIT;
    size_t length = strlen(address->path);
    for (; !strncmp(name, "../", 3); name += 3) {
        if (!length)
            return NULL;
        while (length && address->path[length - 1] != '/')
            length--;
        while (length && address->path[length - 1] == '/')
            length--;
    }
    char *path = strndup(address->path, length);
    int status = path ? DL2_OK : DL2_ERR_MEMORY;
    if (status == DL2_OK)
        status = address->is_s3 ? dl2_percent_encode(&out, path, true, NULL)
                                : dl2_bytes_append(&out, path, length, NULL);
    if (status == DL2_OK && length && *name)
        status = dl2_bytes_append(&out, "/", 1, NULL);
    if (status == DL2_OK)
        status = dl2_percent_encode(&out, name, true, NULL);
    if (status == DL2_OK)
        status = dl2_bytes_append(&out, "", 1, NULL);
    free(path);
    if (status < 0)
        dl2_bytes_free(&out);
    return (char *)out.data;
}

enum dl2_part dl2_part_of_address(const char *text, unsigned *depth)
{
    const struct scheme *scheme = find_scheme(text);
    const char *start = text + (scheme ? strlen(scheme->start) : 0);
    start += strcspn(start, "/"); /* a bucket or host is no split */
    size_t end = strlen(start);
    for (*depth = 0; *depth < 2; ++*depth) {
        while (end && start[end - 1] == '/')
            end--;
        size_t first = end;
        while (first && start[first - 1] != '/')
            first--;
        const enum dl2_part part = dl2_part_of_folder(start + first, end - first);
        if (part || !first)
            return part;
        end = first;
    }
    return DL2_PART_NONE;
}

int dl2_address_unsupported(const char *text, struct dl2_error *error)
{
    struct dl2_address address;
    int status = dl2_address_parse(text, &address, error);
    dl2_address_free(&address);
    if (status == DL2_OK)
        status = dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                               "%s: this build cannot read datasets over a network: it was made "
                               "without libcurl and Expat (Debian: libcurl4-openssl-dev, "
                               "libexpat1-dev)",
                               text);
    return status;
}
