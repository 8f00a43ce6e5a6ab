/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replays a corpus through a fuzz target, for builds without libFuzzer: `fuzz_X FILE|FOLDER...`.
 *
 * Each file is fed as it is; then come truncations, and copies with some bytes changed, both drawn
 * from a fixed seed, so that a plain `make check` also sees damaged input. Files as they are come
 * first and always; the damage stops after DL2_FUZZ_SECONDS (default 10) of wall time.
 * Arguments that start with '-' are libFuzzer's and ignored, so `fuzz_X -runs=0 FOLDER` replays
 * with either driver. No input at all is an error: a replay of nothing would prove nothing.
 *
 * When the target crashes, the input that did it is left in ./fuzz-crash-PID.
 */
#include "common/clock.h"
#include "common/file.h"
#include "common/random.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROUNDS = 150, MAX_FLIPS = 8 };
#define MAX_FILE ((uint64_t)16 << 20)

/* What is being fed, for the signal handler. */
static const uint8_t *current;
static size_t current_size;
static char crash_name[64];

static void save_current(void)
{
    int fd = open(crash_name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0)
        return;
    ssize_t written = write(fd, current, current_size);
    (void)written;
    close(fd);
}

static void on_crash(int number)
{
    save_current();
    signal(number, SIG_DFL);
    raise(number);
}

/* The sanitizers end the process on their own; this is called by them where they are there. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

/* A block of exactly `size` bytes, so that a sanitizer sees the first byte read behind it. */
static void feed(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        abort();
    if (size)
        memcpy(copy, data, size);
    current = copy;
    current_size = size;
    LLVMFuzzerTestOneInput(copy, size);
    current = NULL;
    current_size = 0;
    free(copy);
}

static void feed_damaged(const uint8_t *data, size_t size, struct dl2_random *random)
{
    if (!size)
        return;
    feed(data, dl2_random_below(random, (uint32_t)size));
    uint8_t *copy = malloc(size);
    if (!copy)
        abort();
    memcpy(copy, data, size);
    uint32_t flips = 1 + dl2_random_below(random, MAX_FLIPS);
    for (uint32_t i = 0; i < flips; i++) {
        /* Half the changes go to the start, where headers are. */
        uint32_t end = i % 2 && size > 256 ? 256 : (uint32_t)size;
        uint32_t at = dl2_random_below(random, end);
        uint32_t kind = dl2_random_below(random, 4);
        if (kind == 0)
            copy[at] ^= (uint8_t)(1u << dl2_random_below(random, 8));
        else if (kind == 1)
            copy[at] = 0xff;
        else if (kind == 2)
            copy[at] = 0;
        else
            copy[at] = (uint8_t)dl2_random_u32(random);
    }
    feed(copy, size);
    free(copy);
}

struct corpus {
    struct dl2_bytes *files;
    size_t count;
};

static int add_file(struct corpus *corpus, const char *path, struct dl2_error *error)
{
    struct dl2_bytes *files = dl2_realloc(corpus->files, corpus->count + 1, sizeof *corpus->files);
    if (!files)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory");
    corpus->files = files;
    files[corpus->count] = (struct dl2_bytes)DL2_BYTES_INIT;
    DL2_TRY(dl2_file_read(path, MAX_FILE, &files[corpus->count], error));
    corpus->count++;
    return DL2_OK;
}

static int add_path(struct corpus *corpus, const char *path, struct dl2_error *error)
{
    if (!dl2_is_folder(path))
        return add_file(corpus, path, error);
    struct dl2_file_list list;
    DL2_TRY(dl2_list_files(path, &list, error));
    int status = DL2_OK;
    for (size_t i = 0; status == DL2_OK && i < list.count; i++) {
        char *file = dl2_path_join(path, list.paths[i]);
        if (!file)
            status = dl2_error_set(error, DL2_ERR_MEMORY, "out of memory");
        else
            status = add_file(corpus, file, error);
        free(file);
    }
    dl2_file_list_free(&list);
    return status;
}

int main(int argc, char **argv)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct corpus corpus = {NULL, 0};
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-')
            continue;
        if (add_path(&corpus, argv[i], &error) < 0) {
            fprintf(stderr, "%s: %s\n", argv[0], error.message);
            return 1;
        }
    }
    if (!corpus.count) {
        fprintf(stderr, "%s: no input; usage: %s FILE|FOLDER...\n", argv[0], argv[0]);
        return 1;
    }
    snprintf(crash_name, sizeof crash_name, "fuzz-crash-%ld", (long)getpid());
    signal(SIGSEGV, on_crash);
    signal(SIGBUS, on_crash);
    signal(SIGFPE, on_crash);
    signal(SIGABRT, on_crash);
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(save_current);

    const char *limit_text = getenv("DL2_FUZZ_SECONDS");
    double limit = limit_text ? atof(limit_text) : 10;
    double start = dl2_clock_wall();
    size_t fed = 0;
    feed(NULL, 0);
    for (size_t i = 0; i < corpus.count; i++, fed++)
        feed(corpus.files[i].data, corpus.files[i].size);
    bool cut = false;
    for (unsigned round = 0; round < ROUNDS && !cut; round++) {
        for (size_t i = 0; i < corpus.count && !cut; i++, fed += 2) {
            struct dl2_random random;
            dl2_random_init(&random, 1, DL2_RANDOM_TEST, round, i);
            feed_damaged(corpus.files[i].data, corpus.files[i].size, &random);
            cut = dl2_clock_wall() - start > limit;
        }
    }
    printf("%s: %zu files, %zu inputs in %.1f s%s\n", argv[0], corpus.count, fed,
           dl2_clock_wall() - start, cut ? " (cut short by the time limit)" : "");
    for (size_t i = 0; i < corpus.count; i++)
        dl2_bytes_free(&corpus.files[i]);
    free(corpus.files);
    return 0;
}
