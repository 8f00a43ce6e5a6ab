/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests by libcurl. One thread runs its multi interface:
 *
 *     submit() --> queue --> slots: under way --> done()
 *                    ^             |
 *                    +-- waiting <-+  failed for a reason that may pass: after a pause, again
 *
 * Slots are as many as requests may be under way. A server that asks for fewer requests (429, 503)
 * gets none until the pause is over that it asked for, or that the failed request waits itself.
 */
#include "remote/transport.h"

#include "common/clock.h"
#include "common/random.h"
#include "config.h"
#include "remote/listing.h"
#include "remote/remote.h"

#include <curl/curl.h>

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Pauses before a request is sent again, seconds: twice as long each time, by chance up to half
 * less, so that requests that failed together do not come back together. */
#define FIRST_PAUSE   0.1
#define LONGEST_PAUSE 10.0
/* What a server may ask for (Retry-After); longer ones are given up at once. */
#define LONGEST_ASKED 300.0

enum {
    MAX_REDIRECTS = 5,
    MAX_NOTE = 4096,         /* of the body of an error */
    TRIES_OF_A_STRANGER = 3, /* while no server has answered at this address yet */
    CONNECT_MS = 10000,
    BUFFER_BYTES = 128 << 10 /* of each request: fewer system calls than with libcurl's 16 KiB */
};

/* The sum of a request's body, which is empty. */
#define SHA256_OF_NOTHING "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

struct dl2_transfer_slot {
    struct dl2_transport *transport;
    CURL *easy;
    struct curl_slist *headers;
    struct dl2_remote_transfer *transfer; /* NULL: free */
    /* The answer, so far. */
    uint64_t first, last; /* of Content-Range */
    bool has_range, has_total;
    uint8_t note[MAX_NOTE];
    size_t note_size;
    const char *wrong; /* why the answer is no good; NULL: it is, so far */
    bool wrong_for_good;
};

struct dl2_transport {
    struct dl2_transport_settings settings;
    char *signature; /* "aws:amz:REGION:s3" */
    CURLM *multi;
    struct dl2_transfer_slot *slots;
    pthread_t thread;
    struct dl2_random random;
    struct dl2_transport_stats stats;
    /* The thread's own. */
    struct dl2_remote_transfer *waiting; /* for their pause to end */
    double not_before;                   /* no request begins earlier */
    unsigned under_way;
    bool answered; /* a server ever was */

    pthread_mutex_t mutex; /* guards: */
    struct dl2_remote_transfer *queue, *queue_last;
    bool closing;
};

static size_t size_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- One request: what libcurl tells while it is under way */

/* A header of the answer, behind any redirections; "" where it has none. */
static const char *header_of(const struct dl2_transfer_slot *slot, const char *name)
{
    struct curl_header *header;
    return curl_easy_header(slot->easy, name, 0, CURLH_HEADER, -1, &header) == CURLHE_OK
               ? header->value
               : "";
}

/* "bytes 0-99/1000", "bytes 0-99/" and a star where the server does not know the object's size, or
 * of an empty object "bytes * /0" without the blank. */
static void read_content_range(struct dl2_transfer_slot *slot)
{
    const char *text = header_of(slot, "content-range");
    uint64_t first, last, total;
    int end = 0;
    if (sscanf(text, "bytes %" SCNu64 "-%" SCNu64 "/%" SCNu64 "%n", &first, &last, &total, &end) ==
            3 &&
        !text[end]) {
        slot->first = first;
        slot->last = last;
        slot->has_range = slot->has_total = true;
        slot->transfer->total = total;
    } else if (sscanf(text, "bytes %" SCNu64 "-%" SCNu64 "/*%n", &first, &last, &end) == 2 && end &&
               !text[end]) {
        const bool is_end = last - first < slot->transfer->size - 1; /* less than was asked for */
        slot->first = first;
        slot->last = last;
        slot->has_range = true;
        slot->transfer->total = is_end ? last + 1 : DL2_REMOTE_UNKNOWN;
    } else if (sscanf(text, "bytes */%" SCNu64 "%n", &total, &end) == 1 && !text[end]) {
        slot->has_total = true;
        slot->transfer->total = total;
    }
}

/* Seconds, or a date. */
static double read_retry_after(const char *text)
{
    char *end;
    const double seconds = strtod(text, &end);
    if (end > text && !*end)
        return seconds >= 0 ? seconds : -1;
    const time_t date = curl_getdate(text, NULL);
    const double left = date < 0 ? -1 : difftime(date, time(NULL));
    return date >= 0 && left < 0 ? 0 : left;
}

/* What the headers say of the object. */
static void read_headers(struct dl2_transfer_slot *slot)
{
    struct dl2_remote_transfer *transfer = slot->transfer;
    const char *etag = header_of(slot, "etag");
    if (strlen(etag) < sizeof transfer->etag)
        strcpy(transfer->etag, etag);
    transfer->changed = (int64_t)curl_getdate(header_of(slot, "last-modified"), NULL);
    if (!slot->has_range)
        read_content_range(slot);
}

static size_t refuse(struct dl2_transfer_slot *slot, const char *why, bool for_good)
{
    slot->wrong = why;
    slot->wrong_for_good = for_good;
    return 0; /* ends the request */
}

static size_t take_range(struct dl2_transfer_slot *slot, long code, const void *data, size_t size)
{
    struct dl2_remote_transfer *transfer = slot->transfer;
    if (!slot->has_range)
        read_content_range(slot);
    if (code == 200 && !slot->has_range && transfer->offset == 0) {
        /* The whole object, of a server that thinks no range is worth its while. */
        curl_off_t length = -1;
        curl_easy_getinfo(slot->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
        if (length < 0 || (uint64_t)length > transfer->size)
            return refuse(slot, "the server cannot read parts of files (Range)", true);
        slot->has_range = slot->has_total = true;
        slot->first = 0;
        slot->last = (uint64_t)length - 1;
        transfer->total = (uint64_t)length;
    } else if (code == 200 && !slot->has_range) {
        return refuse(slot, "the server cannot read parts of files (Range)", true);
    }
    if (!slot->has_range || slot->first != transfer->offset || slot->last < slot->first ||
        slot->last >= slot->transfer->total || slot->last - slot->first >= transfer->size)
        return refuse(slot, "the server sent other bytes than it was asked for", false);
    if (size > slot->last - slot->first + 1 - transfer->got)
        return refuse(slot, "the server sent more bytes than it said", false);
    memcpy(transfer->data + transfer->got, data, size);
    transfer->got += size;
    return size;
}

static size_t take_body(char *data, size_t one, size_t size, void *context)
{
    struct dl2_transfer_slot *slot = context;
    struct dl2_remote_transfer *transfer = slot->transfer;
    long code = 0;
    (void)one;
    curl_easy_getinfo(slot->easy, CURLINFO_RESPONSE_CODE, &code);
    atomic_fetch_add_explicit(&slot->transport->stats.bytes, size, memory_order_relaxed);
    if (code < 200 || code >= 300) {
        const size_t kept = size_min(size, sizeof slot->note - slot->note_size);
        memcpy(slot->note + slot->note_size, data, kept);
        slot->note_size += kept;
        return size;
    }
    if (transfer->data)
        return take_range(slot, code, data, size);
    if (size > transfer->max_body - size_min(transfer->body.size, transfer->max_body))
        return refuse(slot, "the answer is too long", true);
    if (dl2_bytes_append(&transfer->body, data, size, NULL) < 0)
        return refuse(slot, "out of memory for the answer", true);
    return size;
}

/* ---- One request: from its beginning to its end */

static bool add_header(struct dl2_transfer_slot *slot, const char *name, const char *value)
{
    char line[4096];
    if (snprintf(line, sizeof line, "%s: %s", name, value) >= (int)sizeof line)
        return false;
    struct curl_slist *longer = curl_slist_append(slot->headers, line);
    slot->headers = longer ? longer : slot->headers;
    return longer;
}

/* A weak ETag ("W/...") never matches for If-Match; then the answer's is compared alone. */
static bool prepare_headers(struct dl2_transfer_slot *slot)
{
    const struct dl2_transport_settings *settings = &slot->transport->settings;
    const struct dl2_remote_transfer *transfer = slot->transfer;
    bool good = true;
    if (transfer->match && transfer->match[0] == '"')
        good = add_header(slot, "If-Match", transfer->match);
    if (transfer->is_new)
        good = good && add_header(slot, "If-None-Match", "*");
    /* libcurl signs this header when it is there, and sends none of its own before 8.x. */
    if (settings->credentials->key)
        good = good && add_header(slot, "x-amz-content-sha256",
                                  transfer->sent_size ? "UNSIGNED-PAYLOAD" : SHA256_OF_NOTHING);
    if (transfer->sent)
        good = good && add_header(slot, "Content-Type", "application/octet-stream");
    if (settings->credentials->key && settings->credentials->token)
        good = good && add_header(slot, "x-amz-security-token", settings->credentials->token);
    return good;
}

static bool prepare(struct dl2_transfer_slot *slot)
{
    const struct dl2_transport *transport = slot->transport;
    const struct dl2_transport_settings *settings = &transport->settings;
    const struct dl2_remote_transfer *transfer = slot->transfer;
    CURL *easy = slot->easy;
    char range[64];
    curl_easy_reset(easy);
    curl_slist_free_all(slot->headers);
    slot->headers = NULL;
    bool good = prepare_headers(slot);
#define SET(option, value) good = good && curl_easy_setopt(easy, option, value) == CURLE_OK
    SET(CURLOPT_URL, transfer->url);
    SET(CURLOPT_PATH_AS_IS, 1L);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    SET(CURLOPT_PIPEWAIT, 1L);
    SET(CURLOPT_NOSIGNAL, 1L);
    if (settings->credentials->authorities)
        SET(CURLOPT_CAINFO, settings->credentials->authorities);
    SET(CURLOPT_USERAGENT, "dl2/" PACKAGE_VERSION);
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    SET(CURLOPT_WRITEFUNCTION, take_body);
    SET(CURLOPT_WRITEDATA, slot);
    SET(CURLOPT_PRIVATE, slot);
    if (slot->headers)
        SET(CURLOPT_HTTPHEADER, slot->headers);
    if (!settings->is_s3) {
        SET(CURLOPT_FOLLOWLOCATION, 1L);
        SET(CURLOPT_MAXREDIRS, (long)MAX_REDIRECTS);
    }
    if (settings->credentials->key) {
        SET(CURLOPT_AWS_SIGV4, transport->signature);
        SET(CURLOPT_USERNAME, settings->credentials->key);
        SET(CURLOPT_PASSWORD, settings->credentials->secret);
    }
    if (transfer->data) {
        snprintf(range, sizeof range, "%" PRIu64 "-%" PRIu64, transfer->offset,
                 transfer->offset + transfer->size - 1);
        SET(CURLOPT_RANGE, range);
    }
    if (transfer->method)
        SET(CURLOPT_CUSTOMREQUEST, transfer->method);
    /* A body takes as long as those that share the way make it: it must only not stand still. */
    if (transfer->sent) {
        SET(CURLOPT_LOW_SPEED_LIMIT, 1L);
        SET(CURLOPT_LOW_SPEED_TIME, (long)ceil(settings->time_limit));
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)transfer->sent_size);
        SET(CURLOPT_POSTFIELDS, transfer->sent);
    } else {
        SET(CURLOPT_TIMEOUT_MS, (long)(settings->time_limit * 1000));
    }
#undef SET
    /* Only for speed, so it may fail: libcurl 7.88 refuses it after a host's name was not found. */
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)BUFFER_BYTES);
    return good;
}

static void finish(struct dl2_remote_transfer *transfer)
{
    transfer->done(transfer, transfer->context);
}

static void begin(struct dl2_transport *transport, struct dl2_transfer_slot *slot,
                  struct dl2_remote_transfer *transfer)
{
    slot->transfer = transfer;
    transfer->slot = slot;
    slot->has_range = slot->has_total = false;
    slot->note_size = 0;
    slot->wrong = NULL;
    slot->wrong_for_good = false;
    transfer->code = 0;
    transfer->got = 0;
    transfer->total = 0;
    transfer->etag[0] = '\0';
    transfer->changed = -1;
    transfer->body.size = 0;
    if (prepare(slot) && curl_multi_add_handle(transport->multi, slot->easy) == CURLM_OK) {
        transport->under_way++;
        transport->stats.retries += transfer->tries > 0;
        transfer->tries++;
        transport->stats.requests++;
        return;
    }
    slot->transfer = NULL;
    transfer->status = dl2_error_memory(&transfer->error, "a request");
    finish(transfer);
}

/* What an answer is worth. */
enum verdict { GOOD, AGAIN, SLOWER, BAD };

static enum verdict judge_error(const struct dl2_transfer_slot *slot,
                                const struct dl2_store_error *store)
{
    const long code = slot->transfer->code;
    if (code == 429 || code == 503 || !strcmp(store->code, "SlowDown"))
        return SLOWER;
    if (code == 409 && slot->transfer->is_new) /* another writes it just now */
        return AGAIN;
    if (code == 408 || code == 500 || code == 502 || code == 504 ||
        !strcmp(store->code, "RequestTimeout") || !strcmp(store->code, "InternalError"))
        return AGAIN;
    return BAD;
}

static bool is_empty_object(const struct dl2_transfer_slot *slot)
{
    const struct dl2_remote_transfer *transfer = slot->transfer;
    return transfer->code == 416 && transfer->data && slot->has_total && !transfer->total &&
           !transfer->offset;
}

/* A range must be whole: up to its end, or that of the object. */
static enum verdict judge_success(struct dl2_transfer_slot *slot)
{
    struct dl2_remote_transfer *transfer = slot->transfer;
    if (!transfer->data)
        return GOOD;
    if (!transfer->got && transfer->code == 200 && !slot->has_range && !transfer->offset)
        return GOOD; /* an empty object */
    const uint64_t left = transfer->total - size_min(transfer->total, transfer->offset);
    if (!slot->has_range || transfer->got != (left < transfer->size ? left : transfer->size)) {
        slot->wrong = "the server sent fewer bytes than it was asked for";
        return AGAIN;
    }
    if (transfer->match && transfer->etag[0] && strcmp(transfer->match, transfer->etag) != 0) {
        slot->wrong = "the file was changed while it was read; load it again when it rests";
        return BAD;
    }
    return GOOD;
}

static bool may_pass(CURLcode result)
{
    switch (result) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_AGAIN:
        return true;
    default:
        return false;
    }
}

static enum verdict judge(struct dl2_transfer_slot *slot, CURLcode result,
                          struct dl2_store_error *store)
{
    struct dl2_remote_transfer *transfer = slot->transfer;
    *store = (struct dl2_store_error){.code = ""};
    curl_easy_getinfo(slot->easy, CURLINFO_RESPONSE_CODE, &transfer->code);
    read_headers(slot);
    slot->transport->answered = slot->transport->answered || transfer->code;
    if (slot->wrong)
        return slot->wrong_for_good ? BAD : AGAIN;
    if (result != CURLE_OK)
        return may_pass(result) ? AGAIN : BAD;
    if (transfer->code >= 200 && transfer->code < 300)
        return judge_success(slot);
    if (is_empty_object(slot))
        return GOOD;
    if (slot->transport->settings.is_s3)
        dl2_store_error_read(slot->note, slot->note_size, store);
    return judge_error(slot, store);
}

/* Is the bucket in another region than the request was sent to? */
static bool needs_region(const struct dl2_transfer_slot *slot, const struct dl2_store_error *store)
{
    const long code = slot->transfer->code;
    return slot->transport->settings.is_s3 &&
           (code == 301 || code == 307 || !strcmp(store->code, "AuthorizationHeaderMalformed"));
}

/* What a reader can do about an error. */
static const char *advise(const struct dl2_transfer_slot *slot, const struct dl2_store_error *store)
{
    const struct dl2_transport_settings *settings = &slot->transport->settings;
    const long code = slot->transfer->code;
    if (code == 412)
        return "; the file was changed while it was read: load it again when it rests";
    if (needs_region(slot, store))
        return *header_of(slot, "x-amz-bucket-region") ? "; set AWS_REGION to "
                                                       : "; set AWS_REGION to the bucket's region";
    if (!strcmp(store->code, "ExpiredToken"))
        return "; the session is over: get new credentials";
    if (!strcmp(store->code, "NoSuchBucket"))
        return "; check the bucket's name, and AWS_ENDPOINT_URL if the store is not AWS";
    if (!strcmp(store->code, "RequestTimeTooSkewed"))
        return "; set this machine's clock";
    if (!strcmp(store->code, "InvalidAccessKeyId") || !strcmp(store->code, "SignatureDoesNotMatch"))
        return "; check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE";
    if ((code == 403 || code == 401) && settings->is_s3)
        return settings->credentials->key
                   ? slot->transfer->sent ? "; these credentials may not write it"
                                          : "; these credentials may not read it"
                   : "; no credentials were found, and it is not public: set "
                     "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE";
    if (code == 429 || code == 503)
        return "; the server is too busy: ask for fewer requests at once (--requests)";
    return "";
}

static void describe(struct dl2_transfer_slot *slot, CURLcode result,
                     const struct dl2_store_error *store)
{
    struct dl2_remote_transfer *transfer = slot->transfer;
    char tries[64] = "";
    if (transfer->tries > 1)
        snprintf(tries, sizeof tries, "; tried %u times", transfer->tries);
    const char *range = transfer->data ? header_of(slot, "content-range") : "";
    const char *request = header_of(slot, "x-amz-request-id");
    if (!*request)
        request = header_of(slot, "x-request-id");
    if (!*request)
        request = store->request;
    char id[160] = "";
    if (*request)
        snprintf(id, sizeof id, " (request %s)", request);
    if (slot->wrong) {
        transfer->status =
            dl2_error_set(&transfer->error, DL2_ERR_LOST, "%s: %s%s%s%s%s%s", transfer->what,
                          slot->wrong, *range ? " (" : "", range, *range ? ")" : "", id, tries);
    } else if (result != CURLE_OK) {
        transfer->status = dl2_error_set(
            &transfer->error, DL2_ERR_LOST, "%s: %s%s%s", transfer->what,
            curl_easy_strerror(result),
            result == CURLE_OPERATION_TIMEDOUT ? "; a longer limit is --request-limit"
            : result == CURLE_PEER_FAILED_VERIFICATION
                ? "; the certificates of a private authority are in the file that CURL_CA_BUNDLE "
                  "names, or for S3 AWS_CA_BUNDLE"
                : "",
            tries);
    } else {
        const bool missing = transfer->code == 404 || transfer->code == 410;
        transfer->status =
            dl2_error_set(&transfer->error, missing ? DL2_ERR_ARGUMENT : DL2_ERR_LOST,
                          "%s: status %ld%s%s%s%s%s%s%s%s%s", transfer->what, transfer->code,
                          missing && !*store->code ? ": there is no such file" : "",
                          *store->code ? " " : "", store->code, *store->message ? ": " : "",
                          store->message, id, tries, advise(slot, store),
                          needs_region(slot, store) ? header_of(slot, "x-amz-bucket-region") : "");
    }
}

/* Makes a failed transfer wait to be sent again; false if it is to be given up. */
static bool wait_again(struct dl2_transport *transport, struct dl2_transfer_slot *slot,
                       enum verdict verdict)
{
    struct dl2_remote_transfer *transfer = slot->transfer;
    const double now = dl2_clock_wall();
    const double asked = read_retry_after(header_of(slot, "retry-after"));
    double pause = FIRST_PAUSE;
    for (unsigned i = 1; i < transfer->tries && pause < LONGEST_PAUSE; i++)
        pause *= 2;
    pause = pause < LONGEST_PAUSE ? pause : LONGEST_PAUSE;
    pause *= 0.5 + 0.5 * dl2_random_uniform(&transport->random);
    if (asked > pause)
        pause = asked;
    if (transfer->tries == 1)
        transfer->first_failure = now;
    const bool stranger = !transport->answered && transfer->tries >= TRIES_OF_A_STRANGER;
    if (stranger || pause > LONGEST_ASKED ||
        (now + pause - transfer->first_failure > transport->settings.retry_limit && asked <= 0))
        return false;
    if (now - transfer->first_failure > transport->settings.retry_limit)
        return false;
    transfer->not_before = now + pause;
    transfer->after = transport->waiting;
    transport->waiting = transfer;
    if (verdict == SLOWER && transfer->not_before > transport->not_before)
        transport->not_before = transfer->not_before;
    return true;
}

static void end(struct dl2_transport *transport, struct dl2_transfer_slot *slot, CURLcode result)
{
    struct dl2_remote_transfer *transfer = slot->transfer;
    struct dl2_store_error store;
    curl_multi_remove_handle(transport->multi, slot->easy);
    transport->under_way--;
    const enum verdict verdict = judge(slot, result, &store);
    const bool again =
        (verdict == AGAIN || verdict == SLOWER) && wait_again(transport, slot, verdict);
    if (verdict != GOOD && !again)
        describe(slot, result, &store);
    slot->transfer = NULL;
    transfer->slot = NULL;
    if (!again) {
        transfer->status = verdict == GOOD ? DL2_OK : transfer->status;
        finish(transfer);
    }
}

/* ---- The thread */

static struct dl2_remote_transfer *take_waiting(struct dl2_transport *transport, double now)
{
    for (struct dl2_remote_transfer **at = &transport->waiting; *at; at = &(*at)->after)
        if ((*at)->not_before <= now) {
            struct dl2_remote_transfer *transfer = *at;
            *at = transfer->after;
            return transfer;
        }
    return NULL;
}

static struct dl2_remote_transfer *take_queued(struct dl2_transport *transport)
{
    pthread_mutex_lock(&transport->mutex);
    struct dl2_remote_transfer *transfer = transport->queue;
    if (transfer) {
        transport->queue = transfer->after;
        if (!transport->queue)
            transport->queue_last = NULL;
    }
    pthread_mutex_unlock(&transport->mutex);
    return transfer;
}

static void begin_more(struct dl2_transport *transport)
{
    const double now = dl2_clock_wall();
    for (unsigned i = 0; i < transport->settings.requests && now >= transport->not_before; i++) {
        struct dl2_transfer_slot *slot = &transport->slots[i];
        if (slot->transfer)
            continue;
        struct dl2_remote_transfer *transfer = take_waiting(transport, now);
        if (!transfer)
            transfer = take_queued(transport);
        if (!transfer)
            return;
        begin(transport, slot, transfer);
    }
}

static void reap(struct dl2_transport *transport)
{
    const CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(transport->multi, &left))) {
        char *slot = NULL;
        if (message->msg != CURLMSG_DONE)
            continue;
        const CURLcode result = message->data.result;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &slot);
        end(transport, (struct dl2_transfer_slot *)(void *)slot, result);
    }
}

/* Milliseconds until a pause ends. */
static int time_to_wait(const struct dl2_transport *transport)
{
    const double now = dl2_clock_wall();
    double next = now + 60;
    for (const struct dl2_remote_transfer *at = transport->waiting; at; at = at->after)
        next = at->not_before < next ? at->not_before : next;
    if (transport->not_before > now && transport->not_before < next)
        next = transport->not_before;
    else if (transport->not_before > next)
        next = transport->not_before;
    const double left = (next - now) * 1000 + 1;
    return left < 1 ? 1 : left > 60000 ? 60000 : (int)left;
}

static void cancel_list(struct dl2_remote_transfer *transfer)
{
    while (transfer) {
        struct dl2_remote_transfer *after = transfer->after;
        transfer->status = dl2_error_set(&transfer->error, DL2_ERR_CANCELED, "%s: no longer wanted",
                                         transfer->what);
        finish(transfer);
        transfer = after;
    }
}

static void cancel_all(struct dl2_transport *transport)
{
    for (unsigned i = 0; i < transport->settings.requests; i++) {
        struct dl2_remote_transfer *transfer = transport->slots[i].transfer;
        if (!transfer)
            continue;
        curl_multi_remove_handle(transport->multi, transport->slots[i].easy);
        transfer->after = NULL;
        cancel_list(transfer);
    }
    cancel_list(transport->waiting);
    cancel_list(transport->queue);
}

static void *serve(void *context)
{
    struct dl2_transport *transport = context;
    for (bool closing = false; !closing;) {
        int running;
        begin_more(transport);
        curl_multi_perform(transport->multi, &running);
        reap(transport);
        begin_more(transport);
        curl_multi_poll(transport->multi, NULL, 0, time_to_wait(transport), NULL);
        pthread_mutex_lock(&transport->mutex);
        closing = transport->closing;
        pthread_mutex_unlock(&transport->mutex);
    }
    cancel_all(transport);
    return NULL;
}

/* ---- Making and unmaking */

static void curl_submit(struct dl2_transport *transport, struct dl2_remote_transfer *transfer,
                        bool first)
{
    transfer->after = NULL;
    transfer->tries = 0;
    pthread_mutex_lock(&transport->mutex);
    if (first) {
        transfer->after = transport->queue;
        transport->queue = transfer;
        if (!transport->queue_last)
            transport->queue_last = transfer;
    } else {
        *(transport->queue_last ? &transport->queue_last->after : &transport->queue) = transfer;
        transport->queue_last = transfer;
    }
    pthread_mutex_unlock(&transport->mutex);
    curl_multi_wakeup(transport->multi);
}

static void free_transport(struct dl2_transport *transport)
{
    for (unsigned i = 0; transport->slots && i < transport->settings.requests; i++) {
        curl_slist_free_all(transport->slots[i].headers);
        curl_easy_cleanup(transport->slots[i].easy);
    }
    if (transport->multi)
        curl_multi_cleanup(transport->multi);
    pthread_mutex_destroy(&transport->mutex);
    free(transport->slots);
    free(transport->signature);
    free(transport);
}

static void curl_destroy(struct dl2_transport *transport)
{
    pthread_mutex_lock(&transport->mutex);
    transport->closing = true;
    pthread_mutex_unlock(&transport->mutex);
    curl_multi_wakeup(transport->multi);
    pthread_join(transport->thread, NULL);
    free_transport(transport);
}

static bool init_transport(struct dl2_transport *transport)
{
    const struct dl2_transport_settings *settings = &transport->settings;
    const long requests = settings->requests;
    transport->slots = dl2_calloc(settings->requests, sizeof *transport->slots);
    transport->multi = curl_multi_init();
    if (!transport->slots || !transport->multi)
        return false;
    if (settings->credentials->key &&
        asprintf(&transport->signature, "aws:amz:%s:s3", settings->credentials->region) < 0) {
        transport->signature = NULL;
        return false;
    }
    for (unsigned i = 0; i < settings->requests; i++) {
        transport->slots[i].transport = transport;
        if (!(transport->slots[i].easy = curl_easy_init()))
            return false;
    }
    return curl_multi_setopt(transport->multi, CURLMOPT_MAXCONNECTS, requests) == CURLM_OK &&
           curl_multi_setopt(transport->multi, CURLMOPT_MAX_CONCURRENT_STREAMS, requests) ==
               CURLM_OK;
}

static void init_curl(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

static int curl_create(const struct dl2_transport_settings *settings, struct dl2_transport **out,
                       struct dl2_error *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init_curl);
    struct dl2_transport *transport;
    DL2_TRY(DL2_NEW(&transport, 1, "requests", error));
    pthread_mutex_init(&transport->mutex, NULL);
    transport->settings = *settings;
    /* Only pauses are drawn: two processes must not draw the same. */
    dl2_random_init(&transport->random, (uint64_t)getpid() << 32 ^ (uint64_t)time(NULL),
                    DL2_RANDOM_PAUSE, 0, 0);
    int status = init_transport(transport) ? DL2_OK : dl2_error_memory(error, "requests");
    if (status == DL2_OK && pthread_create(&transport->thread, NULL, serve, transport) != 0)
        status = dl2_error_set(error, DL2_ERR_SYSTEM, "no thread for requests could be started");
    if (status < 0)
        free_transport(transport);
    else
        *out = transport;
    return status;
}

static const struct dl2_transport_stats *curl_stats(const struct dl2_transport *transport)
{
    return &transport->stats;
}

const struct dl2_transport_driver dl2_transport_curl = {
    .create = curl_create,
    .destroy = curl_destroy,
    .submit = curl_submit,
    .stats = curl_stats,
    .read_listing = dl2_listing_read,
    .read_reply = dl2_store_error_read,
};
