/* SPDX-License-Identifier: BSD-2-Clause */
#include "remote/remote.h"

#include "common/scope.h"
#include "config.h"
#include "remote/address.h"
#include "remote/credentials.h"
#include "remote/disk_cache.h"
#include "remote/transport.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    DEFAULT_REQUESTS = 64,
    MAX_REQUESTS = 1024,
    FIRST_BYTES = 64 << 10,   /* of a file whose size is not known yet */
    PIECE_BYTES = 8 << 20,    /* larger files are read in such pieces, several at once */
    MAX_PAGE_BYTES = 64 << 20 /* of a listing; S3 puts 1,000 objects on one */
};
#define DEFAULT_TIME_LIMIT 30.0
/* A request that fails is repeated for two of its limits of time, at least so many seconds. */
#define LEAST_RETRY_LIMIT 10.0
#define DEFAULT_CACHE     ((uint64_t)10 << 30)

/* Ways to send requests: what this build has. */
static const struct dl2_transport_driver *const drivers[] = {
#ifdef HAVE_LIBCURL
    &dl2_transport_curl,
#endif
    NULL,
};

/* The transport of one process: a child of a fork has none of its parent's threads. */
struct session {
    pid_t process;
    struct dl2_transport *transport;
};

struct dl2_remote {
    const struct dl2_transport_driver *driver;
    struct dl2_address address;
    struct dl2_credentials credentials;
    struct dl2_transport_settings settings;
    struct dl2_disk_cache *cache; /* NULL: none */
    _Atomic(struct session *) session;
    atomic_uint_fast64_t hits, misses, cached_bytes;
};

/* One read under way. */
struct dl2_remote_reading {
    struct dl2_remote_transfer transfer;
    char *url, *what, *object; /* the last: of the cache's unit; NULL: it is not cached */
    bool is_over, from_cache;
    /* With a cache: the bytes of the file from `start` on, some of which the cache had. */
    struct dl2_bytes whole;
    uint64_t start;
    void (*done)(void *context);
    void *context;
    struct dl2_error error; /* that it could not begin */
};

/* ---- Sessions */

static int get_session(struct dl2_remote *remote, struct session **out, struct dl2_error *error)
{
    struct session *session = atomic_load(&remote->session);
    if (session && session->process == getpid()) {
        *out = session;
        return DL2_OK;
    }
    DL2_AUTO_FREE struct session *own = NULL;
    DL2_TRY(DL2_NEW(&own, 1, "requests", error));
    own->process = getpid();
    DL2_TRY(remote->driver->create(&remote->settings, &own->transport, error));
    /* What the parent of a fork had stays as it is: its thread is not here to end it. */
    if (atomic_compare_exchange_strong(&remote->session, &session, own)) {
        *out = own;
        own = NULL;
        return DL2_OK;
    }
    remote->driver->destroy(own->transport); /* another thread was faster */
    *out = session;
    return DL2_OK;
}

/* ---- Where files are */

static bool is_host_name(const char *bucket)
{
    return !strpbrk(bucket, "._") &&
           strspn(bucket, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(bucket);
}

/* The URL of a bucket or of a host, with a slash at its end. */
static char *root_url(const struct dl2_remote *remote)
{
    const struct dl2_credentials *credentials = &remote->credentials;
    const char *place = remote->address.place, *region = credentials->region;
    char *url;
    const char *more = region && !strncmp(region, "cn-", 3) ? ".cn" : "";
    if (!remote->address.is_s3)
        dl2_format(&url, NULL, "%s/", place);
    else if (credentials->endpoint)
        dl2_format(&url, NULL, "%s/%s/", credentials->endpoint, place);
    else if (is_host_name(place))
        dl2_format(&url, NULL, "https://%s.s3.%s.amazonaws.com%s/", place, region, more);
    else
        dl2_format(&url, NULL, "https://s3.%s.amazonaws.com%s/%s/", region, more, place);
    return url;
}

char *dl2_remote_url(const struct dl2_remote *remote, const char *name)
{
    DL2_AUTO_FREE char *root = root_url(remote);
    DL2_AUTO_FREE char *object = root ? dl2_address_object(&remote->address, name) : NULL;
    char *url = NULL;
    if (object)
        dl2_format(&url, NULL, "%s%s", root, object);
    return url;
}

/* For messages: "s3://bucket/key", with the endpoint if the store is not AWS itself; or the URL. */
char *dl2_remote_shown(const struct dl2_remote *remote, const char *name)
{
    const struct dl2_address *address = &remote->address;
    const char *endpoint = remote->credentials.endpoint;
    char *text;
    if (!address->is_s3)
        return dl2_remote_url(remote, name);
    dl2_format(&text, NULL, "s3://%s/%s%s%s%s%s", address->place, address->path,
               *address->path && *name ? "/" : "", name, endpoint ? " at " : "",
               endpoint ? endpoint : "");
    return text;
}

/* What the cache knows a file by, with its ETag. */
static char *cache_object(const char *shown, const char *etag)
{
    char *text;
    dl2_format(&text, NULL, "%s\n%s", shown, etag);
    return text;
}

/* ---- Opening */

static int check_options(const struct dl2_remote_options *options, struct dl2_error *error)
{
    if (options->requests > MAX_REQUESTS)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%u requests at once are too many, %d at the most", options->requests,
                             MAX_REQUESTS);
    if (!(options->time_limit >= 0 && options->time_limit <= 86400))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%g seconds are no limit for a request: 0 (for the default) to 86400",
                             options->time_limit);
    if (!options->cache_dir && options->cache_bytes)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "the size of a cache has no effect without its folder (--cache-dir)");
    return DL2_OK;
}

/* The file of certificates that a user names, as for the AWS command line and for curl's. */
static int find_authorities(struct dl2_remote *remote, struct dl2_error *error)
{
    static const char *const names[] = {"CURL_CA_BUNDLE", "SSL_CERT_FILE"};
    char **file = &remote->credentials.authorities;
    const char *from = *file ? "AWS_CA_BUNDLE or ca_bundle" : NULL;
    for (size_t i = 0; !*file && i < sizeof names / sizeof *names; i++) {
        from = names[i];
        const char *value = getenv(from);
        if (value && *value && !(*file = strdup(value)))
            return dl2_error_memory(error, "requests");
    }
    if (*file && access(*file, R_OK) != 0)
        return dl2_error_system(error, "%s, which %s names: it can't be read", *file, from);
    return DL2_OK;
}

static int open_parts(struct dl2_remote *remote, const char *address,
                      const struct dl2_remote_options *options, struct dl2_error *error)
{
    DL2_TRY(dl2_address_parse(address, &remote->address, error));
    if (remote->address.is_s3) {
        const int status = dl2_credentials_load(&remote->credentials, error);
        dl2_error_prefix(error, "%s", address);
        DL2_TRY(status);
    }
    const double time_limit = options->time_limit > 0 ? options->time_limit : DEFAULT_TIME_LIMIT;
    remote->settings = (struct dl2_transport_settings){
        .requests = options->requests ? options->requests : DEFAULT_REQUESTS,
        .time_limit = time_limit,
        .retry_limit = fmax(2 * time_limit, LEAST_RETRY_LIMIT),
        .is_s3 = remote->address.is_s3,
        .credentials = &remote->credentials,
    };
    DL2_TRY(find_authorities(remote, error));
    if (!options->cache_dir)
        return DL2_OK;
    return dl2_disk_cache_open(options->cache_dir,
                               options->cache_bytes ? options->cache_bytes : DEFAULT_CACHE,
                               &remote->cache, error);
}

int dl2_remote_open(const char *address, const struct dl2_remote_options *options,
                    struct dl2_remote **out, struct dl2_error *error)
{
    *out = NULL;
    if (!drivers[0])
        return dl2_address_unsupported(address, error);
    DL2_TRY(check_options(options, error));
    struct dl2_remote *remote;
    DL2_TRY(DL2_NEW(&remote, 1, "a dataset", error));
    remote->driver = drivers[0];
    const int status = open_parts(remote, address, options, error);
    if (status < 0)
        dl2_remote_close(remote);
    else
        *out = remote;
    return status;
}

void dl2_remote_close(struct dl2_remote *remote)
{
    if (!remote)
        return;
    struct session *session = atomic_load(&remote->session);
    if (session && session->process == getpid()) {
        remote->driver->destroy(session->transport);
        free(session);
    }
    dl2_disk_cache_close(remote->cache);
    dl2_address_free(&remote->address);
    dl2_credentials_free(&remote->credentials);
    free(remote);
}

/* Is a URL the prefix, or does it lie below it? */
static bool lies_below(const char *url, const char *prefix)
{
    size_t length = strlen(prefix);
    length -= prefix[length - 1] == '/'; /* that of a whole bucket or host */
    return !strncmp(url, prefix, length) && (!url[length] || url[length] == '/');
}

static char *url_of_address(const char *address)
{
    struct dl2_remote *remote;
    if (dl2_remote_open(address, &(struct dl2_remote_options){0}, &remote, NULL) < 0)
        return NULL;
    char *url = dl2_remote_url(remote, "");
    dl2_remote_close(remote);
    return url;
}

bool dl2_addresses_share_prefix(const char *a, const char *b)
{
    DL2_AUTO_FREE char *one = url_of_address(a);
    DL2_AUTO_FREE char *other = url_of_address(b);
    return one && other && (lies_below(one, other) || lies_below(other, one));
}

const char *dl2_remote_stats_count(const struct dl2_remote_stats *stats, size_t number,
                                   uint64_t *count)
{
    const struct {
        const char *name;
        uint64_t count;
    } counts[] = {
        {"requests", stats->requests},
        {"retries", stats->retries},
        {"bytes", stats->bytes},
        {"cache_hits", stats->cache_hits},
        {"cache_misses", stats->cache_misses},
        {"cache_bytes", stats->cache_bytes},
        {"cache_damaged", stats->cache_damaged},
        {"cache_lost", stats->cache_lost},
    };
    if (number >= sizeof counts / sizeof *counts)
        return NULL;
    *count = counts[number].count;
    return counts[number].name;
}

bool dl2_remote_lists(const struct dl2_remote *remote)
{
    return remote->address.is_s3;
}

bool dl2_remote_has_cache(const struct dl2_remote *remote)
{
    return remote->cache;
}

unsigned dl2_remote_requests(const struct dl2_remote *remote)
{
    return remote->settings.requests;
}

/* ---- Files */

int dl2_remote_file_init(struct dl2_remote *remote, const char *name, uint64_t bytes,
                         const char *etag, struct dl2_remote_file *file, struct dl2_error *error)
{
    char *copy = etag && *etag ? strdup(etag) : NULL;
    *file = (struct dl2_remote_file){.remote = remote, .bytes = bytes};
    atomic_init(&file->etag, copy);
    file->name = strdup(name);
    return file->name && (!etag || !*etag || copy) ? DL2_OK : dl2_error_memory(error, "a dataset");
}

void dl2_remote_file_free(struct dl2_remote_file *file)
{
    free(file->name);
    free(atomic_load(&file->etag));
    *file = (struct dl2_remote_file){0};
}

/* Takes what an answer says about a file, or finds that the file is another one by now. */
static int take_identity(struct dl2_remote_file *file, const struct dl2_remote_transfer *transfer,
                         struct dl2_error *error)
{
    if (file->bytes != DL2_REMOTE_UNKNOWN && transfer->total != DL2_REMOTE_UNKNOWN &&
        transfer->total != file->bytes)
        return dl2_error_set(error, DL2_ERR_LOST,
                             "%s: the file has %" PRIu64 " bytes, and %" PRIu64
                             " are expected: it was changed since it was listed, or the index "
                             "belongs to another file",
                             transfer->what, transfer->total, file->bytes);
    char *known = atomic_load(&file->etag);
    if (!transfer->etag[0])
        return DL2_OK;
    char *own = known ? NULL : strdup(transfer->etag);
    if (!known && !own)
        return dl2_error_memory(error, "a request");
    if (own && atomic_compare_exchange_strong(&file->etag, &known, own))
        return DL2_OK;
    free(own);
    return !strcmp(known, transfer->etag)
               ? DL2_OK
               : dl2_error_set(error, DL2_ERR_LOST,
                               "%s: the file was changed while it was read; load it again when "
                               "it rests",
                               transfer->what);
}

/* ---- Reading */

static void free_reading(struct dl2_remote_reading *reading)
{
    free(reading->url);
    free(reading->what);
    free(reading->object);
    dl2_bytes_free(&reading->whole);
    dl2_bytes_free(&reading->transfer.body);
    free(reading);
}

static void reading_done(struct dl2_remote_transfer *transfer, void *context)
{
    const struct dl2_remote_reading *reading = context;
    (void)transfer;
    reading->done(reading->context);
}

static int name_reading(struct dl2_remote_reading *reading, const struct dl2_remote *remote,
                        const char *name, struct dl2_error *error)
{
    reading->url = dl2_remote_url(remote, name);
    reading->what = dl2_remote_shown(remote, name);
    reading->transfer.url = reading->url;
    reading->transfer.what = reading->what;
    return reading->url && reading->what ? DL2_OK : dl2_error_memory(error, "a request");
}

/*
 * Joins what the cache has of the unit with what is wanted: one range, of which one side is missing
 * and is asked for. Where both sides are, what the cache has is of no use. `cached` may be taken.
 */
static int join_cached(struct dl2_remote_reading *reading, const struct dl2_remote_read *read,
                       uint64_t offset, struct dl2_bytes *cached, struct dl2_error *error)
{
    const uint64_t end = offset + cached->size, wanted_end = read->offset + read->size;
    struct dl2_remote_transfer *transfer = &reading->transfer;
    const bool left = read->offset<offset, right = wanted_end> end;
    if (left && right)
        return DL2_OK;
    reading->start = left ? read->offset : offset;
    reading->from_cache = !left && !right;
    if (reading->from_cache) {
        reading->whole = *cached;
        *cached = (struct dl2_bytes)DL2_BYTES_INIT;
        return DL2_OK;
    }
    DL2_TRY(dl2_bytes_resize(&reading->whole, (size_t)((right ? wanted_end : end) - reading->start),
                             error));
    memcpy(reading->whole.data + (offset - reading->start), cached->data, cached->size);
    transfer->offset = left ? read->offset : end;
    transfer->size = left ? (size_t)(offset - read->offset) : (size_t)(wanted_end - end);
    transfer->data = reading->whole.data + (transfer->offset - reading->start);
    return DL2_OK;
}

static int look_in_cache(struct dl2_remote_reading *reading, const struct dl2_remote_read *read,
                         struct dl2_error *error)
{
    struct dl2_remote *remote = read->file->remote;
    const char *etag = atomic_load(&read->file->etag);
    struct dl2_bytes cached = DL2_BYTES_INIT;
    uint64_t offset;
    if (!remote->cache || !etag)
        return DL2_OK;
    reading->object = cache_object(reading->what, etag);
    if (!reading->object)
        return dl2_error_memory(error, "a request");
    const struct dl2_cache_unit unit = {reading->object, read->unit};
    int status = DL2_OK;
    if (!read->is_fresh && dl2_disk_cache_get(remote->cache, &unit, &cached, &offset))
        status = join_cached(reading, read, offset, &cached, error);
    dl2_bytes_free(&cached);
    if (status == DL2_OK && !reading->whole.size) {
        status = dl2_bytes_resize(&reading->whole, read->size, error);
        reading->start = read->offset;
        reading->transfer.data = reading->whole.data;
    }
    const uint64_t asked = reading->from_cache ? 0 : reading->transfer.size;
    atomic_fetch_add(reading->from_cache ? &remote->hits : &remote->misses, 1);
    atomic_fetch_add(&remote->cached_bytes, read->size > asked ? read->size - asked : 0);
    return status;
}

/* Returns 1 for a read that is over at once. */
static int begin_reading(struct dl2_remote_reading *reading, const struct dl2_remote_read *read,
                         struct dl2_error *error)
{
    const struct dl2_remote_file *file = read->file;
    struct dl2_remote_transfer *transfer = &reading->transfer;
    struct session *session;
    DL2_TRY(name_reading(reading, file->remote, file->name, error));
    transfer->data = read->data;
    transfer->offset = read->offset;
    transfer->size = read->size;
    transfer->match = atomic_load(&file->etag);
    transfer->done = reading_done;
    transfer->context = reading;
    reading->done = read->done;
    reading->context = read->context;
    DL2_TRY(look_in_cache(reading, read, error));
    if (reading->from_cache) {
        reading->is_over = true;
        return 1;
    }
    DL2_TRY(get_session(file->remote, &session, error));
    file->remote->driver->submit(session->transport, transfer, read->urgent);
    return DL2_OK;
}

bool dl2_remote_read_begin(struct dl2_remote_read *read)
{
    struct dl2_remote_reading *reading = dl2_calloc(1, sizeof *reading);
    read->own = reading;
    if (!reading || !read->size)
        return true;
    /* From submit() on the reading may be over, and freed, on another thread. */
    return begin_reading(reading, read, &reading->error) != DL2_OK;
}

static int check_reading(struct dl2_remote_reading *reading, struct dl2_remote_read *read,
                         struct dl2_error *error)
{
    const struct dl2_remote_transfer *transfer = &reading->transfer;
    DL2_TRY(dl2_error_copy(error, &reading->error));
    if (reading->is_over || !read->size)
        return DL2_OK;
    if (transfer->status ==
        DL2_ERR_ARGUMENT) /* it is missing: the file's fault, not the caller's */
        return dl2_error_set(error, DL2_ERR_SYSTEM, "%s", transfer->error.message);
    if (transfer->status < 0)
        return dl2_error_copy(error, &transfer->error);
    DL2_TRY(take_identity(read->file, transfer, error));
    return transfer->got == transfer->size
               ? DL2_OK
               : dl2_error_set(error, DL2_ERR_FORMAT,
                               "%s: the file ends at byte %" PRIu64 ", before what is read of it",
                               transfer->what, transfer->total);
}

int dl2_remote_read_end(struct dl2_remote_read *read, struct dl2_error *error)
{
    struct dl2_remote_reading *reading = read->own;
    read->own = NULL;
    if (!reading)
        return dl2_error_memory(error, "a request");
    const int status = check_reading(reading, read, error);
    if (status == DL2_OK && reading->whole.size) {
        const struct dl2_cache_unit unit = {reading->object, read->unit};
        memcpy(read->data, reading->whole.data + (read->offset - reading->start), read->size);
        if (!reading->from_cache)
            dl2_disk_cache_put(read->file->remote->cache, &unit, reading->start,
                               reading->whole.data, reading->whole.size);
    }
    free_reading(reading);
    return status;
}

void dl2_remote_forget(struct dl2_remote_file *file, uint64_t unit)
{
    DL2_AUTO_FREE char *what = dl2_remote_shown(file->remote, file->name);
    const char *etag = atomic_load(&file->etag);
    DL2_AUTO_FREE char *object = what && etag ? cache_object(what, etag) : NULL;
    if (object && file->remote->cache)
        dl2_disk_cache_remove(file->remote->cache, &(struct dl2_cache_unit){object, unit});
}

/* ---- Waiting for several */

static void one_is_done(void *context)
{
    sem_post(context);
}

static void transfer_is_done(struct dl2_remote_transfer *transfer, void *context)
{
    (void)transfer;
    one_is_done(context);
}

/* Waits until so many are done. */
static void wait_for(sem_t *done, size_t count)
{
    while (count)
        count -= sem_wait(done) == 0; /* a signal may interrupt it */
    sem_destroy(done);
}

int dl2_remote_run(struct dl2_remote *remote, struct dl2_remote_transfer *transfers, size_t count,
                   struct dl2_error *error)
{
    struct session *session;
    sem_t done;
    DL2_TRY(get_session(remote, &session, error));
    sem_init(&done, 0, 0);
    for (size_t i = 0; i < count; i++) {
        transfers[i].done = transfer_is_done;
        transfers[i].context = &done;
        remote->driver->submit(session->transport, &transfers[i], count == 1);
    }
    wait_for(&done, count);
    for (size_t i = 0; i < count; i++)
        if (transfers[i].status < 0)
            return dl2_error_copy(error, &transfers[i].error);
    return DL2_OK;
}

void dl2_remote_read_reply(const struct dl2_remote *remote, const struct dl2_bytes *body,
                           struct dl2_store_error *out)
{
    remote->driver->read_reply(body->data, body->size, out);
}

/* Begins all reads, waits, and ends all; the first error counts. */
static int run_reads(struct dl2_remote_read *reads, size_t count, struct dl2_error *error)
{
    sem_t done;
    int status = DL2_OK;
    sem_init(&done, 0, 0);
    for (size_t i = 0; i < count; i++) {
        reads[i].done = one_is_done;
        reads[i].context = &done;
        if (dl2_remote_read_begin(&reads[i]))
            one_is_done(&done);
    }
    wait_for(&done, count);
    for (size_t i = 0; i < count; i++) {
        const int one = dl2_remote_read_end(&reads[i], error);
        status = status < 0 ? status : one;
    }
    return status;
}

int dl2_remote_read(struct dl2_remote_file *file, uint64_t unit, uint64_t offset, void *data,
                    size_t size, struct dl2_error *error)
{
    struct dl2_remote_read read = {
        .file = file, .unit = unit, .offset = offset, .data = data, .size = size, .urgent = true};
    return run_reads(&read, 1, error);
}

/* ---- Files whose size is not known */

/* Asks for the first bytes of a file: 1, or 0 if there is none. */
static int read_start(struct dl2_remote *remote, const char *name, uint8_t *data, size_t size,
                      bool optional, struct dl2_remote_transfer *transfer, struct dl2_error *error)
{
    DL2_AUTO_FREE char *url = dl2_remote_url(remote, name);
    DL2_AUTO_FREE char *what = dl2_remote_shown(remote, name);
    struct dl2_error own = DL2_ERROR_INIT;
    *transfer = (struct dl2_remote_transfer){.url = url, .what = what, .data = data, .size = size};
    if (!url && !strncmp(name, "../", 3))
        return 0; /* there is nothing above */
    if (!url || !what)
        return dl2_error_memory(error, "a request");
    const int status = dl2_remote_run(remote, transfer, 1, &own);
    const bool hidden = optional && (transfer->code == 403 || transfer->code == 401);
    transfer->url = transfer->what = NULL;
    return status == DL2_OK                       ? 1
           : status == DL2_ERR_ARGUMENT || hidden ? 0
                                                  : dl2_error_copy(error, &own);
}

static int read_rest(struct dl2_remote_file *file, bool is_fresh, struct dl2_bytes *out,
                     struct dl2_error *error)
{
    const size_t rest = out->size - FIRST_BYTES, count = (rest + PIECE_BYTES - 1) / PIECE_BYTES;
    DL2_AUTO_FREE struct dl2_remote_read *reads = NULL;
    DL2_TRY(DL2_NEW(&reads, count, "requests", error));
    for (size_t i = 0, at = FIRST_BYTES; i < count; i++) {
        const size_t left = out->size - at, size = left < PIECE_BYTES ? left : PIECE_BYTES;
        reads[i] = (struct dl2_remote_read){.file = file,
                                            .unit = at,
                                            .offset = at,
                                            .size = size,
                                            .data = out->data + at,
                                            .is_fresh = is_fresh};
        at += size;
    }
    return run_reads(reads, count, error);
}

int dl2_remote_load(struct dl2_remote *remote, const char *name, uint64_t max_bytes, unsigned flags,
                    struct dl2_bytes *out, struct dl2_error *error)
{
    struct dl2_remote_transfer transfer = {.total = DL2_REMOTE_UNKNOWN};
    /* A server that does not tell the size is asked for more, until it has no more. */
    for (size_t size = FIRST_BYTES; transfer.total == DL2_REMOTE_UNKNOWN; size *= 16) {
        DL2_TRY(dl2_bytes_resize(out, size, error));
        const int status =
            read_start(remote, name, out->data, size, flags & DL2_LOAD_OPTIONAL, &transfer, error);
        if (status <= 0) {
            out->size = 0;
            return status;
        }
        if (transfer.total == DL2_REMOTE_UNKNOWN && size > max_bytes)
            return dl2_error_set(error, DL2_ERR_LIMIT,
                                 "%s: it passes the limit of %" PRIu64 " bytes", name, max_bytes);
    }
    if (transfer.total > max_bytes || transfer.total > SIZE_MAX)
        return dl2_error_set(error, DL2_ERR_LIMIT,
                             "%s: %" PRIu64 " bytes pass the limit of %" PRIu64, name,
                             transfer.total, max_bytes);
    if (transfer.got == transfer.total) {
        out->size = transfer.got;
        return 1;
    }
    struct dl2_bytes whole = DL2_BYTES_INIT;
    DL2_TRY(dl2_bytes_resize(&whole, (size_t)transfer.total, error));
    memcpy(whole.data, out->data, FIRST_BYTES);
    dl2_bytes_free(out);
    *out = whole;
    DL2_CLEANUP(dl2_remote_file_free) struct dl2_remote_file file = {.remote = NULL};
    DL2_TRY(dl2_remote_file_init(remote, name, transfer.total, transfer.etag, &file, error));
    DL2_TRY(read_rest(&file, flags & DL2_LOAD_FRESH, out, error));
    return 1;
}

/* ---- Which files there are */

void dl2_listing_free(struct dl2_listing *listing)
{
    dl2_bytes_free(&listing->block);
    dl2_bytes_free(&listing->strings);
    dl2_bytes_free(&listing->next);
    *listing = (struct dl2_listing){0};
}

int dl2_remote_identify(struct dl2_remote_file *files, size_t count, struct dl2_error *error)
{
    enum { AT_ONCE = 256 };
    struct dl2_remote_read reads[AT_ONCE];
    uint8_t bytes[AT_ONCE];
    for (size_t first = 0; first < count;) {
        size_t number = 0;
        for (; first < count && number < AT_ONCE; first++)
            if (files[first].bytes && !atomic_load(&files[first].etag)) {
                reads[number] = (struct dl2_remote_read){
                    .file = &files[first], .size = 1, .data = &bytes[number]};
                number++;
            }
        DL2_TRY(run_reads(reads, number, error));
        for (size_t i = 0; i < number; i++)
            if (!atomic_load(&reads[i].file->etag))
                return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                                     "%s: the server gives no ETag, without which a cache cannot "
                                     "know whether the file was changed; leave out --cache-dir",
                                     reads[i].file->name);
    }
    return DL2_OK;
}

/* Looks at up to LOOKS files whose sizes are not known; *next is the first behind them. */
enum { LOOKS = 256 };
static int look_at_some(struct dl2_remote_file *files, int64_t *times_ns, size_t count,
                        size_t *next, size_t *failed, struct dl2_error *error)
{
    DL2_AUTO_FREE struct dl2_remote_transfer *transfers = NULL;
    size_t numbers[LOOKS], asked = 0;
    uint8_t bytes[LOOKS];
    int status = DL2_NEW(&transfers, LOOKS, "requests", error);
    for (; status == DL2_OK && *next < count && asked < LOOKS; ++*next) {
        struct dl2_remote_file *file = &files[*next];
        if (file->bytes != DL2_REMOTE_UNKNOWN)
            continue;
        transfers[asked] =
            (struct dl2_remote_transfer){.url = dl2_remote_url(file->remote, file->name),
                                         .what = dl2_remote_shown(file->remote, file->name),
                                         .data = &bytes[asked],
                                         .size = 1};
        if (!transfers[asked].url || !transfers[asked].what)
            status = dl2_error_memory(error, "requests");
        numbers[asked++] = *next;
    }
    if (status == DL2_OK && asked)
        dl2_remote_run(files[numbers[0]].remote, transfers, asked, &(struct dl2_error){0});
    for (size_t i = 0; i < asked; i++) {
        const struct dl2_remote_transfer *transfer = &transfers[i];
        struct dl2_remote_file *file = &files[numbers[i]];
        if (status == DL2_OK) {
            *failed = numbers[i];
            status = dl2_error_copy(error, &transfer->error);
        }
        if (status == DL2_OK && transfer->changed < 0)
            status = dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                                   "%s: the server does not say when the file was changed "
                                   "(Last-Modified), by which reruns know it again",
                                   transfer->what);
        if (status == DL2_OK && transfer->total == DL2_REMOTE_UNKNOWN)
            status = dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                                   "%s: the server does not say how large the file is "
                                   "(Content-Range); pack the images as tar",
                                   transfer->what);
        if (status == DL2_OK)
            status = take_identity(file, transfer, error);
        file->bytes = transfer->total;
        times_ns[numbers[i]] = transfer->changed * 1000000000;
        free((char *)transfer->url);
        free((char *)transfer->what);
    }
    return status;
}

int dl2_remote_look(struct dl2_remote_file *files, int64_t *times_ns, size_t count, size_t *failed,
                    struct dl2_error *error)
{
    for (size_t next = 0; next < count;)
        DL2_TRY(look_at_some(files, times_ns, count, &next, failed, error));
    return DL2_OK;
}

/* ---- Addresses of files */

/* The path of an address as bytes, to be freed. */
static int read_path(const struct dl2_address *address, const char *text, char **path,
                     struct dl2_error *error)
{
    DL2_TRY(dl2_format(path, error, "%s", address->path));
    return address->is_s3 || dl2_percent_decode(*path)
               ? DL2_OK
               : dl2_error_set(error, DL2_ERR_ARGUMENT,
                               "%s: an encoded slash or zero has no place in a name", text);
}

int dl2_remote_name_of(const struct dl2_remote *remote, const char *url, char **name, char **path,
                       struct dl2_error *error)
{
    DL2_CLEANUP(dl2_address_free) struct dl2_address address = {.is_s3 = false};
    DL2_AUTO_FREE char *base = NULL;
    *name = *path = NULL;
    DL2_TRY(dl2_address_parse(url, &address, error));
    if (address.is_s3 != remote->address.is_s3 || strcasecmp(address.place, remote->address.place))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s: it lies %s than the list", url,
                             address.is_s3 ? "in another bucket" : "on another server");
    DL2_TRY(read_path(&remote->address, "the list", &base, error));
    DL2_TRY(read_path(&address, url, path, error));
    const size_t length = strlen(base);
    if (!length || (!strncmp(*path, base, length) && (*path)[length] == '/'))
        return dl2_format(name, error, "%s", *path + length + (length > 0));
    struct dl2_bytes text = DL2_BYTES_INIT;
    int status = DL2_OK;
    for (const char *at = base; status == DL2_OK && *at; at += strspn(at, "/")) {
        at += strcspn(at, "/");
        status = dl2_bytes_append(&text, "../", 3, error);
    }
    if (status == DL2_OK)
        status = dl2_bytes_append(&text, *path, strlen(*path) + 1, error);
    *name = (char *)text.data;
    return status;
}

/* A page of the listing. The parts of the query are sorted, as the signature wants them. */
static int list_page(struct dl2_remote *remote, struct dl2_listing *listing,
                     struct dl2_error *error)
{
    const char *path = remote->address.path;
    const char *token = listing->next.size ? (char *)listing->next.data : NULL;
    DL2_AUTO_FREE char *root = root_url(remote), *what = dl2_remote_shown(remote, ""), *url = NULL;
    DL2_AUTO_FREE char *from = dl2_percent_encode(token ? token : "", false);
    DL2_AUTO_FREE char *prefix = dl2_percent_encode(path, false);
    if (!root || !what || !from || !prefix)
        return dl2_error_memory(error, "a listing");
    DL2_TRY(dl2_format(&url, error, "%s?%s%s%slist-type=2&prefix=%s%s", root,
                       token ? "continuation-token=" : "", from, token ? "&" : "", prefix,
                       *path ? "%2F" : ""));
    struct dl2_remote_transfer transfer = {.url = url, .what = what, .max_body = MAX_PAGE_BYTES};
    int status = dl2_remote_run(remote, &transfer, 1, error);
    if (status == DL2_OK) {
        status =
            remote->driver->read_listing(transfer.body.data, transfer.body.size, listing, error);
        dl2_error_prefix(error, "%s", what);
    }
    dl2_bytes_free(&transfer.body);
    return status;
}

static int compare_keys(const void *a, const void *b, void *strings)
{
    const struct dl2_listed_object *one = a, *two = b;
    return strcmp((const char *)strings + one->key, (const char *)strings + two->key);
}

/* Makes keys names below the address. */
static int name_objects(const struct dl2_remote *remote, struct dl2_listing *listing,
                        struct dl2_error *error)
{
    const char *path = remote->address.path, *strings = (char *)listing->strings.data;
    const size_t length = strlen(path) + (*path != '\0');
    for (size_t i = 0; i < listing->count; i++) {
        const char *key = strings + listing->objects[i].key;
        if (length && (strncmp(key, path, length - 1) != 0 || key[length - 1] != '/'))
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "s3://%s/%s: the store lists %s, which lies elsewhere",
                                 remote->address.place, path, key);
        listing->objects[i].key += length;
    }
    if (listing->count > 1)
        qsort_r(listing->objects, listing->count, sizeof *listing->objects, compare_keys,
                listing->strings.data);
    return DL2_OK;
}

const struct dl2_listed_object *dl2_listing_find(const struct dl2_listing *listing,
                                                 const char *name)
{
    size_t low = 0, high = listing->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct dl2_listed_object *object = &listing->objects[middle];
        const int order = strcmp((const char *)listing->strings.data + object->key, name);
        if (!order)
            return object;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

int dl2_remote_list(struct dl2_remote *remote, struct dl2_listing *listing, struct dl2_error *error)
{
    *listing = (struct dl2_listing){0};
    int status;
    do {
        const size_t before = listing->count;
        status = list_page(remote, listing, error);
        if (status == DL2_OK && listing->next.size && listing->count == before)
            status = dl2_error_set(error, DL2_ERR_FORMAT,
                                   "s3://%s/%s: the store's listing goes on without end",
                                   remote->address.place, remote->address.path);
    } while (status == DL2_OK && listing->next.size);
    if (status == DL2_OK)
        status = name_objects(remote, listing, error);
    if (status < 0)
        dl2_listing_free(listing);
    return status;
}

/* ---- What it took */

void dl2_remote_get_stats(struct dl2_remote *remote, struct dl2_remote_stats *stats)
{
    const struct session *session = atomic_load(&remote->session);
    *stats = (struct dl2_remote_stats){.cache_hits = atomic_load(&remote->hits),
                                       .cache_misses = atomic_load(&remote->misses),
                                       .cache_bytes = atomic_load(&remote->cached_bytes)};
    if (session && session->process == getpid()) {
        const struct dl2_transport_stats *now = remote->driver->stats(session->transport);
        stats->requests = atomic_load(&now->requests);
        stats->retries = atomic_load(&now->retries);
        stats->bytes = atomic_load(&now->bytes);
    }
    if (remote->cache)
        dl2_disk_cache_get_stats(remote->cache, stats);
}
