/* SPDX-License-Identifier: BSD-2-Clause */
#include "remote/address.h"

#include "common/scope.h"
#include "remote/access.h"

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

bool dl2_is_address(const char *path)
{
    return find_scheme(path);
}

static int address_error(const char *text, const char *why, struct dl2_error *error)
{
    return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s: %s", text, why);
}

static bool has_only(const char *text, size_t length, const char *marks)
{
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr(marks, text[i]))
            return false;
    return true;
}

static bool is_host(const char *text, size_t length)
{
    return length > 0 && (isalnum((unsigned char)text[0]) || text[0] == '[') &&
           has_only(text, length, "-._:[]");
}

static bool is_bucket(const char *text, size_t length)
{
    return length >= 3 && length <= 255 && isalnum((unsigned char)text[0]) &&
           has_only(text, length, "-._");
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
    DL2_TRY(dl2_format(&address->place, error, "%s%.*s", scheme->is_s3 ? "" : scheme->start,
                       (int)length, place));
    DL2_TRY(dl2_format(&address->path, error, "%.*s", (int)end, path));
    return scheme->is_s3 ? DL2_OK : check_url_path(text, path, error);
}

void dl2_address_free(struct dl2_address *address)
{
    free(address->place);
    free(address->path);
    *address = (struct dl2_address){0};
}

char *dl2_percent_encode(const char *text, bool slash)
{
    static const char digits[] = "0123456789ABCDEF";
    char *out = dl2_calloc(strlen(text) + 1, 3), *at = out;
    for (; out && *text; text++) {
        const unsigned char byte = (unsigned char)*text;
        const bool plain = byte < 0x80 && (isalnum(byte) || strchr("-._~", byte));
        if (plain || (slash && byte == '/')) {
            *at++ = *text;
        } else {
            *at++ = '%';
            *at++ = digits[byte >> 4];
            *at++ = digits[byte & 15];
        }
    }
    return out;
}

bool dl2_percent_decode(char *text)
{
    char *to = text;
    for (; *text; text++) {
        if (*text == '%') {
            if (!isxdigit((unsigned char)text[1]) || !isxdigit((unsigned char)text[2]))
                return false;
            *to = (char)strtol((const char[]){text[1], text[2], '\0'}, NULL, 16);
            if (!*to || *to == '/')
                return false;
            to++;
            text += 2;
        } else {
            *to++ = *text;
        }
    }
    *to = '\0';
    return true;
}

char *dl2_address_object(const struct dl2_address *address, const char *name)
{
    size_t length = strlen(address->path);
    for (; !strncmp(name, "../", 3); name += 3) {
        if (!length)
            return NULL;
        while (length && address->path[length - 1] != '/')
            length--;
        while (length && address->path[length - 1] == '/')
            length--;
    }
    DL2_AUTO_FREE char *path = strndup(address->path, length);
    DL2_AUTO_FREE char *encoded = path && address->is_s3 ? dl2_percent_encode(path, true) : NULL;
    DL2_AUTO_FREE char *rest = dl2_percent_encode(name, true);
    const char *start = address->is_s3 ? encoded : path;
    char *out = NULL;
    if (start && rest)
        dl2_format(&out, NULL, "%s%s%s", start, length && *name ? "/" : "", rest);
    return out;
}

int dl2_address_unsupported(const char *text, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_address_free) struct dl2_address address;
    DL2_TRY(dl2_address_parse(text, &address, error));
    return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                         "%s: this build cannot read datasets over a network: it was made without "
                         "libcurl and Expat (Debian: libcurl4-openssl-dev, libexpat1-dev)",
                         text);
}
