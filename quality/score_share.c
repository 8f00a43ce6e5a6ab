/* SPDX-License-Identifier: BSD-2-Clause */
#include "quality/score_share.h"

#include "common/file.h"
#include "common/scope.h"
#include "ranks/world.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define HEAD "dl2-quality-part/3"

/* A pair's yes and no, in the order of their bits. */
enum { FLAGS = 7 };
static bool *flag_of(struct dl2_pair *pair, unsigned bit)
{
    bool *const flags[FLAGS] = {&pair->identical,    &pair->above_8_bits, &pair->deep,
                                &pair->drawn,        &pair->alpha,        &pair->resized,
                                &pair->colors_differ};
    return flags[bit];
}

int dl2_score_share_begin(struct dl2_score_share *share, const uint64_t *costs, size_t count,
                          uint64_t sum, struct dl2_error *error)
{
    share->file.fd = -1;
    DL2_TRY(DL2_NEW(&share->owners, count, "images", error));
    snprintf(share->digest, sizeof share->digest, "%016" PRIx64 "-%u", sum, share->part.count);
    DL2_TRY(dl2_work_divide(costs, count, share->part.count, share->owners, error));
    return share->world ? DL2_OK
                        : dl2_part_file_open(&share->file, share->stem, &share->part, error);
}

bool dl2_score_share_has(const struct dl2_score_share *share, size_t index)
{
    return share->owners[index] == share->part.number;
}

void dl2_score_share_free(struct dl2_score_share *share)
{
    dl2_part_file_close(&share->file);
    free(share->owners);
    share->owners = NULL;
}

/* ---- Text */

static void print_pair(const struct dl2_scoring *scoring, size_t index, size_t variant, FILE *out)
{
    const struct dl2_reference_file *file = &scoring->files[index];
    struct dl2_pair *pair = &scoring->variants[variant].pairs[index];
    unsigned flags = 0;
    for (unsigned i = 0; i < FLAGS; i++)
        flags |= (unsigned)*flag_of(pair, i) << i;
    fprintf(out,
            "%zu %zu %d %u %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64
            " %d %u %s",
            index, variant, (int)pair->state, flags, pair->width, pair->height, pair->slices,
            pair->bytes, pair->reference_bytes, (uint64_t)(pair->header_bytes + 1), file->lossy,
            file->quality, file->codec ? file->codec->name : "-");
    for (unsigned m = 0; m < scoring->metric_count; m++)
        fprintf(out, " %a %a", pair->scores[m].value, pair->scores[m].mean);
    fprintf(out, " %s\n", pair->error ? pair->error : "");
}

/* The text of what this process has scored: to free. */
static int print_part(const struct dl2_score_share *share, const struct dl2_scoring *scoring,
                      char **text, size_t *size, struct dl2_error *error)
{
    FILE *out = open_memstream(text, size);
    if (!out)
        return dl2_error_memory(error, "scores");
    fprintf(out, HEAD " %s %s %a", share->digest, scoring->device, scoring->reference_cpu_seconds);
    for (size_t v = 0; v < scoring->variant_count; v++)
        fprintf(out, " %a", scoring->variants[v].cpu_seconds);
    fputc('\n', out);
    for (size_t i = 0; i < scoring->count; i++)
        for (size_t v = 0; v < scoring->variant_count && dl2_score_share_has(share, i); v++)
            print_pair(scoring, i, v, out);
    fputs("end\n", out);
    const bool whole = !ferror(out);
    return fclose(out) == 0 && whole ? DL2_OK : dl2_error_memory(error, "scores");
}

/* The number at *at, which it passes over. */
static bool read_real(char **at, double *out)
{
    char *end;
    *out = strtod(*at, &end);
    const bool good = end != *at;
    *at = end;
    return good;
}

static bool read_whole(char **at, uint64_t limit, uint64_t *out)
{
    char *end;
    *at += strspn(*at, " ");
    const size_t digits = strspn(*at, "0123456789");
    errno = 0;
    *out = strtoull(*at, &end, 10);
    *at = end;
    return digits && !errno && *out <= limit;
}

/* A codec's name, or "-". */
static bool read_codec(char **at, const struct dl2_codec **codec)
{
    char name[32];
    int length = 0;
    if (sscanf(*at, " %31s%n", name, &length) != 1)
        return false;
    *at += length;
    *codec = dl2_codec_find(name);
    return *codec || strcmp(name, "-") == 0;
}

/* A line into its pair; false: it is none. */
static bool read_pair(struct dl2_scoring *scoring, char *at)
{
    uint64_t index, variant, state, flags, width, height, slices, bytes, reference_bytes, header,
        lossy, quality;
    const struct dl2_codec *codec;
    if (!read_whole(&at, SIZE_MAX, &index) || index >= scoring->count ||
        !read_whole(&at, SIZE_MAX, &variant) || variant >= scoring->variant_count ||
        !read_whole(&at, DL2_PAIR_STATES - 1, &state) ||
        !read_whole(&at, (1u << FLAGS) - 1, &flags) || !read_whole(&at, UINT32_MAX, &width) ||
        !read_whole(&at, UINT32_MAX, &height) || !read_whole(&at, UINT32_MAX, &slices) ||
        !read_whole(&at, UINT64_MAX, &bytes) || !read_whole(&at, UINT64_MAX, &reference_bytes) ||
        !read_whole(&at, INT64_MAX, &header) || !read_whole(&at, 1, &lossy) ||
        !read_whole(&at, 100, &quality) || !read_codec(&at, &codec))
        return false;
    struct dl2_pair *pair = &scoring->variants[variant].pairs[index];
    free(pair->error);
    *pair = (struct dl2_pair){.state = (enum dl2_pair_state)state,
                              .width = (uint32_t)width,
                              .height = (uint32_t)height,
                              .slices = (uint32_t)slices,
                              .bytes = bytes,
                              .reference_bytes = reference_bytes,
                              .header_bytes = (int64_t)header - 1};
    scoring->files[index] =
        (struct dl2_reference_file){.codec = codec, .lossy = lossy, .quality = (uint8_t)quality};
    for (unsigned i = 0; i < FLAGS; i++)
        *flag_of(pair, i) = flags >> i & 1;
    for (unsigned m = 0; m < scoring->metric_count; m++)
        if (!read_real(&at, &pair->scores[m].value) || !read_real(&at, &pair->scores[m].mean))
            return false;
    if (*at++ != ' ')
        return false;
    const bool failed = pair->state == DL2_PAIR_FAILED || pair->state == DL2_PAIR_MISMATCHED;
    pair->error = failed ? strdup(at) : NULL;
    return !failed == !*at && (pair->error || !failed);
}

static bool read_head(const struct dl2_score_share *share, struct dl2_scoring *scoring, char *at)
{
    const size_t head = strlen(HEAD), digest = strlen(share->digest);
    double cpu;
    if (strncmp(at, HEAD " ", head + 1) != 0 ||
        strncmp(at + head + 1, share->digest, digest) != 0 || at[head + 1 + digest] != ' ')
        return false;
    at += head + digest + 2;
    at += strcspn(at, " "); /* the device */
    if (!read_real(&at, &cpu))
        return false;
    scoring->reference_cpu_seconds += cpu;
    for (size_t v = 0; v < scoring->variant_count; v++) {
        if (!read_real(&at, &cpu))
            return false;
        scoring->variants[v].cpu_seconds += cpu;
    }
    return !*at;
}

/* Takes a part's text, which it changes. */
static int read_part(const struct dl2_score_share *share, struct dl2_scoring *scoring,
                     unsigned part, char *text, struct dl2_error *error)
{
    size_t pairs = 0, expected = 0;
    bool good = true, ended = false;
    for (size_t i = 0; i < scoring->count; i++)
        expected += share->owners[i] == part ? scoring->variant_count : 0;
    for (char *line = text, *end; good && !ended && (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        ended = !strcmp(line, "end");
        if (line == text)
            good = read_head(share, scoring, line);
        else if (!ended)
            good = read_pair(scoring, line) && pairs++ < expected;
    }
    return good && ended && pairs == expected
               ? DL2_OK
               : dl2_error_set(error, DL2_ERR_FORMAT,
                               "the scores of part %u/%u are damaged; run that part again", part,
                               share->part.count);
}

/* ---- Parts by themselves */

static char *path_of(const struct dl2_score_share *share, unsigned number)
{
    const struct dl2_work_part part = {number, share->part.count};
    char name[DL2_WORK_PART_NAME], *path;
    dl2_work_part_name(&part, name);
    return asprintf(&path, "%s%s.scores", share->stem, name) < 0 ? NULL : path;
}

static void forget_own(struct dl2_scoring *scoring)
{
    scoring->reference_cpu_seconds = 0; /* its own are in its text, too */
    for (size_t v = 0; v < scoring->variant_count; v++)
        scoring->variants[v].cpu_seconds = 0;
}

static int read_all(const struct dl2_score_share *share, struct dl2_scoring *scoring,
                    struct dl2_error *error)
{
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes text = DL2_BYTES_INIT;
    forget_own(scoring);
    for (unsigned part = 1; part <= share->part.count; part++) {
        DL2_AUTO_FREE char *path = path_of(share, part);
        if (!path)
            return dl2_error_memory(error, "a path");
        int status = dl2_file_read(path, SIZE_MAX / 2, &text, error);
        if (status == DL2_OK)
            status = dl2_bytes_append(&text, "", 1, error);
        if (status == DL2_OK)
            status = read_part(share, scoring, part, (char *)text.data, error);
        if (status < 0)
            dl2_error_prefix(error, "%s", path);
        DL2_TRY(status);
    }
    return DL2_OK;
}

static void remove_all(const struct dl2_score_share *share)
{
    for (unsigned part = 1; part <= share->part.count; part++) {
        DL2_AUTO_FREE char *path = path_of(share, part);
        if (path)
            unlink(path);
    }
    dl2_part_files_remove(share->stem);
}

/* Two parts may end together: one of them, which has the lock first, completes. */
static int complete_if_last(struct dl2_score_share *share, struct dl2_scoring *scoring,
                            struct dl2_error *error)
{
    const int lock = open(share->stem, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock < 0 || flock(lock, LOCK_EX) != 0) {
        dl2_error_system(error, "%s: can't be locked", share->stem);
        if (lock >= 0)
            close(lock);
        return DL2_ERR_SYSTEM;
    }
    DL2_AUTO_FREE char *own = path_of(share, share->part.number);
    const bool taken = own && !dl2_is_file(own); /* by another part, which has completed */
    if (!taken)
        share->parts_missing = dl2_part_files_missing(share->stem, share->part.count, share->digest,
                                                      &share->first_missing);
    int status = taken || share->parts_missing ? DL2_OK : read_all(share, scoring, error);
    share->complete = !taken && !share->parts_missing && status == DL2_OK;
    if (share->complete)
        remove_all(share);
    if (taken || share->complete)
        unlink(share->stem);
    close(lock);
    return status;
}

static int end_part(struct dl2_score_share *share, struct dl2_scoring *scoring,
                    struct dl2_error *error)
{
    DL2_AUTO_FREE char *text = NULL, *path = path_of(share, share->part.number);
    size_t size;
    if (!path)
        return dl2_error_memory(error, "a path");
    DL2_TRY(print_part(share, scoring, &text, &size, error));
    DL2_TRY(dl2_file_write(path, text, size, error));
    DL2_TRY(dl2_part_file_end(&share->file, share->digest, error));
    return complete_if_last(share, scoring, error);
}

/* ---- Ranks */

/* Rank `part` - 1 hands its text to rank 0. */
static int pass_part(struct dl2_score_share *share, struct dl2_scoring *scoring, unsigned part,
                     const char *own, size_t own_size, struct dl2_error *error)
{
    const struct dl2_world *world = share->world;
    double size = share->part.number == part ? (double)own_size : 0;
    DL2_TRY(dl2_world_sum(world, &size, 1, error));
    DL2_AUTO_FREE char *text = NULL;
    DL2_TRY(dl2_world_agree(world, DL2_NEW(&text, (size_t)size + 1, "scores", error), error));
    if (share->part.number == part)
        memcpy(text, own, own_size);
    DL2_TRY(world->ops->broadcast(world, part - 1, text, (size_t)size, error));
    return dl2_world_agree(
        world, dl2_world_rank(world) == 0 ? read_part(share, scoring, part, text, error) : DL2_OK,
        error);
}

static int end_rank(struct dl2_score_share *share, struct dl2_scoring *scoring, int status,
                    struct dl2_error *error)
{
    DL2_AUTO_FREE char *text = NULL;
    size_t size = 0;
    if (status == DL2_OK)
        status = print_part(share, scoring, &text, &size, error);
    DL2_TRY(dl2_world_agree(share->world, status, error));
    forget_own(scoring);
    for (unsigned part = 1; part <= share->part.count; part++)
        DL2_TRY(pass_part(share, scoring, part, text, size, error));
    share->complete = dl2_world_rank(share->world) == 0;
    return DL2_OK;
}

int dl2_score_share_end(struct dl2_score_share *share, struct dl2_scoring *scoring, int status,
                        struct dl2_error *error)
{
    if (share->world)
        return end_rank(share, scoring, status, error);
    return status == DL2_OK ? end_part(share, scoring, error) : status;
}
