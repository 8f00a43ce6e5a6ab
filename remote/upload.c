/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writing objects of S3. A small one is one request; a large one is sent in parts, many at once,
 * and appears when the store has been told to put them together (multipart upload):
 *
 *     POST ?uploads= --> an id --> PUT ?partNumber=N&uploadId=ID, each with an ETag
 *                                       |
 *                    failed: DELETE ?uploadId=ID      all there: POST ?uploadId=ID
 *
 * The store checks no sum of what it was sent (the signature says UNSIGNED-PAYLOAD): HTTPS does on
 * the way, and readers do by the sums in dl2-index.bin.
 */
#include "remote/remote.h"

#include "common/scope.h"
#include "remote/address.h"
#include "remote/listing.h"
#include "remote/transport.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* S3's limits: parts of 5 MiB at least but the last, 10,000 of them. */
enum { PART_BYTES = 8 << 20, MAX_PARTS = 10000, MAX_REPLY = 1 << 20 };

struct upload {
    struct dl2_remote *remote;
    const char *name;
    const uint8_t *data;
    size_t size, part_bytes, parts;
    char *id; /* percent-encoded */
};

/* Appends "?" and a formatted query to the URL of the object. */
__attribute__((format(printf, 2, 3))) static char *url_with(const struct upload *upload,
                                                            const char *format, ...)
{
    DL2_AUTO_FREE char *root = dl2_remote_url(upload->remote, upload->name), *query = NULL;
    char *url = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&query, format, arguments) < 0)
        query = NULL;
    va_end(arguments);
    if (root && query)
        dl2_format(&url, NULL, "%s?%s", root, query);
    return url;
}

/* Sends one request; `url` is freed. A reply of status 200 may be an error all the same. */
static int ask(const struct upload *upload, const char *method, char *url, const char *body,
               struct dl2_store_error *reply, struct dl2_error *error)
{
    DL2_AUTO_FREE char *what = dl2_remote_shown(upload->remote, upload->name), *own = url;
    struct dl2_remote_transfer transfer = {.url = url,
                                           .what = what,
                                           .method = method,
                                           .sent = (const uint8_t *)body,
                                           .sent_size = strlen(body),
                                           .max_body = MAX_REPLY};
    int status = url && what ? dl2_remote_run(upload->remote, &transfer, 1, error)
                             : dl2_error_memory(error, "a request");
    if (status == DL2_OK) {
        dl2_remote_read_reply(upload->remote, &transfer.body, reply);
        if (*reply->code)
            status = dl2_error_set(error, DL2_ERR_LOST, "%s: %s: %s (request %s)", what,
                                   reply->code, reply->message, reply->request);
    }
    dl2_bytes_free(&transfer.body);
    return status;
}

static int begin(struct upload *upload, struct dl2_error *error)
{
    struct dl2_store_error reply;
    DL2_TRY(ask(upload, "POST", url_with(upload, "uploads="), "", &reply, error));
    if (!*reply.upload)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s: the store began no upload in parts",
                             upload->name);
    upload->id = dl2_percent_encode(reply.upload, false);
    return upload->id ? DL2_OK : dl2_error_memory(error, "an upload");
}

static int send_parts(const struct upload *upload, struct dl2_remote_transfer *transfers,
                      struct dl2_error *error)
{
    DL2_AUTO_FREE char *what = dl2_remote_shown(upload->remote, upload->name);
    int status = what ? DL2_OK : dl2_error_memory(error, "an upload");
    for (size_t i = 0; i < upload->parts && status == DL2_OK; i++) {
        const size_t at = i * upload->part_bytes, left = upload->size - at;
        char *url = url_with(upload, "partNumber=%zu&uploadId=%s", i + 1, upload->id);
        transfers[i] = (struct dl2_remote_transfer){
            .url = url,
            .what = what,
            .method = "PUT",
            .sent = upload->data + at,
            .sent_size = left < upload->part_bytes ? left : upload->part_bytes,
            .max_body = MAX_REPLY};
        if (!url)
            status = dl2_error_memory(error, "an upload");
    }
    if (status == DL2_OK)
        status = dl2_remote_run(upload->remote, transfers, upload->parts, error);
    for (size_t i = 0; i < upload->parts; i++) {
        free((char *)transfers[i].url);
        dl2_bytes_free(&transfers[i].body);
        if (status == DL2_OK && !transfers[i].etag[0])
            status = dl2_error_set(error, DL2_ERR_FORMAT, "%s: the store gave part %zu no ETag",
                                   what, i + 1);
    }
    return status;
}

/* Is the object there, with its size, and put together from as many parts? */
static bool is_there(const struct upload *upload)
{
    struct dl2_error error = DL2_ERROR_INIT;
    uint8_t first;
    char suffix[32];
    char *url = dl2_remote_url(upload->remote, upload->name);
    struct dl2_remote_transfer transfer = {
        .url = url, .what = upload->name, .data = &first, .size = 1};
    const bool answered = url && dl2_remote_run(upload->remote, &transfer, 1, &error) == DL2_OK;
    const int length = snprintf(suffix, sizeof suffix, "-%zu\"", upload->parts);
    const size_t etag = strlen(transfer.etag);
    free(url);
    return answered && transfer.total == upload->size && etag > (size_t)length &&
           !strcmp(transfer.etag + etag - length, suffix);
}

/*
 * Has the parts put together. A request whose answer was lost may have done it: then the store no
 * longer knows the upload when it is asked again.
 */
static int complete(const struct upload *upload, const struct dl2_remote_transfer *transfers,
                    struct dl2_error *error)
{
    struct dl2_store_error reply = {.code = ""};
    struct dl2_error own = DL2_ERROR_INIT;
    DL2_AUTO_FREE char *list = NULL;
    size_t size;
    FILE *out = open_memstream(&list, &size);
    if (!out)
        return dl2_error_memory(error, "an upload");
    fputs("<CompleteMultipartUpload>", out);
    for (size_t i = 0; i < upload->parts; i++)
        fprintf(out, "<Part><PartNumber>%zu</PartNumber><ETag>%s</ETag></Part>", i + 1,
                transfers[i].etag);
    fputs("</CompleteMultipartUpload>", out);
    if (fclose(out) != 0)
        return dl2_error_memory(error, "an upload");
    const int status =
        ask(upload, "POST", url_with(upload, "uploadId=%s", upload->id), list, &reply, &own);
    if (status == DL2_OK || (status == DL2_ERR_ARGUMENT && is_there(upload)))
        return DL2_OK;
    return dl2_error_copy(error, &own);
}

static void abandon(const struct upload *upload)
{
    struct dl2_error error = DL2_ERROR_INIT; /* the one that led here counts */
    struct dl2_store_error reply;
    ask(upload, "DELETE", url_with(upload, "uploadId=%s", upload->id), "", &reply, &error);
}

static int store_in_parts(struct upload *upload, struct dl2_error *error)
{
    upload->part_bytes = PART_BYTES;
    while ((upload->size - 1) / upload->part_bytes >= MAX_PARTS)
        upload->part_bytes *= 2;
    upload->parts = (upload->size - 1) / upload->part_bytes + 1;
    DL2_AUTO_FREE struct dl2_remote_transfer *transfers = NULL;
    DL2_TRY(DL2_NEW(&transfers, upload->parts, "an upload", error));
    DL2_TRY(begin(upload, error));
    int status = send_parts(upload, transfers, error);
    if (status == DL2_OK)
        status = complete(upload, transfers, error);
    if (status < 0)
        abandon(upload);
    free(upload->id);
    return status;
}

static int check_place(const struct dl2_remote *remote, struct dl2_error *error)
{
    return dl2_remote_lists(remote)
               ? DL2_OK
               : dl2_error_set(error, DL2_ERR_ARGUMENT, "http:// and https:// can only be read");
}

int dl2_remote_store(struct dl2_remote *remote, const char *name, const void *data, size_t size,
                     struct dl2_error *error)
{
    struct upload upload = {.remote = remote, .name = name, .data = data, .size = size};
    DL2_TRY(check_place(remote, error));
    if (size > PART_BYTES)
        return store_in_parts(&upload, error);
    DL2_AUTO_FREE char *url = dl2_remote_url(remote, name), *what = dl2_remote_shown(remote, name);
    struct dl2_remote_transfer transfer = {.url = url,
                                           .what = what,
                                           .method = "PUT",
                                           .sent = size ? data : (const uint8_t *)"",
                                           .sent_size = size,
                                           .max_body = MAX_REPLY};
    const int status = url && what ? dl2_remote_run(remote, &transfer, 1, error)
                                   : dl2_error_memory(error, "an upload");
    dl2_bytes_free(&transfer.body);
    return status;
}

int dl2_remote_store_new(struct dl2_remote *remote, const char *name, const void *data, size_t size,
                         struct dl2_error *error)
{
    struct dl2_error own = DL2_ERROR_INIT;
    DL2_TRY(check_place(remote, error));
    DL2_AUTO_FREE char *url = dl2_remote_url(remote, name), *what = dl2_remote_shown(remote, name);
    struct dl2_remote_transfer transfer = {.url = url,
                                           .what = what,
                                           .method = "PUT",
                                           .sent = data,
                                           .sent_size = size,
                                           .is_new = true,
                                           .max_body = MAX_REPLY};
    const int status = url && what ? dl2_remote_run(remote, &transfer, 1, &own)
                                   : dl2_error_memory(&own, "an upload");
    dl2_bytes_free(&transfer.body);
    if (status < 0 && transfer.code == 501) {
        const int plain = dl2_remote_store(remote, name, data, size, error);
        return plain < 0 ? plain : 1;
    }
    if (status < 0 && transfer.code == 412)
        return 0;
    return status < 0 ? dl2_error_copy(error, &own) : 1;
}

int dl2_remote_store_file(struct dl2_remote *remote, const char *name, const char *path,
                          struct dl2_error *error)
{
    struct stat about;
    void *data = NULL;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &about) < 0) {
        const int status = dl2_error_system(error, "%s", path);
        if (fd >= 0)
            close(fd);
        return status;
    }
    const size_t size = (size_t)about.st_size;
    int status = DL2_OK;
    if (size && (data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0)) == MAP_FAILED)
        status = dl2_error_system(error, "%s", path);
    close(fd);
    if (status == DL2_OK) {
        status = dl2_remote_store(remote, name, data, size, error);
        if (data)
            munmap(data, size);
    }
    return status;
}

int dl2_remote_remove(struct dl2_remote *remote, const char *name, struct dl2_error *error)
{
    const struct upload upload = {.remote = remote, .name = name};
    struct dl2_store_error reply;
    struct dl2_error own = DL2_ERROR_INIT;
    DL2_TRY(check_place(remote, error));
    const int status = ask(&upload, "DELETE", dl2_remote_url(remote, name), "", &reply, &own);
    return status == DL2_ERR_ARGUMENT ? DL2_OK : dl2_error_copy(error, &own); /* there is none */
}
