/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/clock.h"
#include "common/error.h"
#include "common/file.h"
#include "common/json.h"
#include "common/machine.h"
#include "common/memory.h"
#include "common/monitor.h"
#include "common/option.h"
#include "common/process.h"
#include "common/quote.h"
#include "common/random.h"
#include "common/stats.h"
#include "common/thread.h"
#include "common/work_part.h"
#include "pixels/image.h"
#include "tests/unit.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void first_error_wins(void **state)
{
    struct dl2_error error = DL2_ERROR_INIT;
    assert_int_equal(dl2_error_set(&error, DL2_ERR_FORMAT, "bad %d", 7), DL2_ERR_FORMAT);
    assert_int_equal(dl2_error_set(&error, DL2_ERR_MEMORY, "later"), DL2_ERR_MEMORY);
    assert_int_equal(error.status, DL2_ERR_FORMAT);
    dl2_error_prefix(&error, "file %s", "x");
    assert_string_equal(error.message, "file x: bad 7");
    assert_int_equal(dl2_error_set(NULL, DL2_ERR_LIMIT, "nobody listens"), DL2_ERR_LIMIT);
}

static void names_are_quoted(void **state)
{
    char out[64], again[64];
    const struct {
        const char *raw, *quoted;
    } cases[] = {
        {"plain/na me.jpg", "plain/na me.jpg"},
        {"a\nb\rc\td\033[31m\x7f", "a\\nb\\rc\\td\\x1b[31m\\x7f"},
        {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"\xc2\x9b"
         "1m \x9b"
         "1m",
         "\\xc2\\x9b1m \\x9b1m"},                                /* CSI of C1 */
        {"\xc0\x8a \xed\xa0\x80", "\\xc0\\x8a \\xed\\xa0\\x80"}, /* overlong, a surrogate */
        {"end\xe2\x82", "end\\xe2\\x82"},
        {"", ""},
        /* Passwords in addresses of databases. */
        {"postgresql://me:secret@host:5432/db", "postgresql://me:***@host:5432/db"},
        {"at postgres://me:a:b?@/db?x=1: no", "at postgres://me:***@/db?x=1: no"},
        {"postgresql://me:@h1:1,h2:2/db", "postgresql://me:@h1:1,h2:2/db"},
        {"postgresql://h:1/d?password=s&user=u@v", "postgresql://h:1/d?password=***&user=u@v"},
        {"postgresql:///d?sslpassword=s", "postgresql:///d?sslpassword=***"},
        {"a:b@c/?password=x", "a:b@c/?password=x"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_string_equal(dl2_quote(cases[i].raw, out, sizeof out), cases[i].quoted);
        assert_string_equal(dl2_quote(out, again, sizeof again), cases[i].quoted);
    }
    assert_string_equal(dl2_quote("ab\x1b", out, 6), "ab"); /* no half of an escape */
    assert_string_equal(dl2_quote("a\xc3\xa9", out, 3), "a");
    assert_string_equal(DL2_SHOWN("\x1b"), "\\x1b");
    struct dl2_error error = DL2_ERROR_INIT;
    dl2_error_set(&error, DL2_ERR_FORMAT, "%s is bad", "a\nb");
    dl2_error_prefix(&error, "in %s", "\x1b[2J");
    assert_string_equal(error.message, "in \\x1b[2J: a\\nb is bad");
}

static void expect_path(const struct dl2_error *error, int number, const char *path)
{
    assert_int_equal(error->number, number);
    assert_int_equal(error->path_length, strlen(path));
    assert_memory_equal(error->message + error->path_start, path, strlen(path));
}

/* An error of the system keeps its number and where its message names the file. */
static void system_errors_name_their_file(void **state)
{
    struct dl2_error error = DL2_ERROR_INIT, copy = DL2_ERROR_INIT;
    errno = ENOENT;
    assert_int_equal(dl2_error_system(&error, "%s: can't be %s", "a: b/c", "read"), DL2_ERR_SYSTEM);
    expect_path(&error, ENOENT, "a: b/c");
    dl2_error_prefix(&error, "stage %d", 3);
    dl2_error_prefix(&error, "job");
    assert_string_equal(error.message,
                        "job: stage 3: a: b/c: can't be read: No such file or directory");
    expect_path(&error, ENOENT, "a: b/c");
    assert_int_equal(dl2_error_copy(&copy, &error), DL2_ERR_SYSTEM);
    expect_path(&copy, ENOENT, "a: b/c");
    dl2_error_clear(&error);
    expect_path(&error, 0, "");
    errno = EACCES;
    dl2_error_system(&error, "%.*s/%s%s: gone", 1, "roots", "x/", "y");
    expect_path(&error, EACCES, "r/x/y");
    dl2_error_clear(&error);
    errno = EMFILE;
    dl2_error_system(&error, "no thread: %s", "x");
    expect_path(&error, EMFILE, "");
    dl2_error_clear(&error);
    dl2_error_system(&error, "%s", "whole");
    expect_path(&error, EMFILE, "whole");
    /* A path moves with what is put in front, and is forgotten where it is cut. */
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    dl2_error_prefix(&error, "%.1000s", text);
    expect_path(&error, EMFILE, "whole");
    dl2_error_prefix(&error, "%s", "and the rest of it");
    expect_path(&error, EMFILE, "whole");
    dl2_error_clear(&error);
    errno = ENOENT;
    dl2_error_system(&error, "%s: can't be read", text);
    expect_path(&error, ENOENT, "");
    assert_int_equal(dl2_error_copy(&error, &copy), DL2_ERR_SYSTEM); /* the first one stays */
    expect_path(&error, ENOENT, "");
}

static bool ends_with(const char *text, const char *end)
{
    return strlen(text) >= strlen(end) && !strcmp(text + strlen(text) - strlen(end), end);
}

/* However long the names are, a message begins with them and ends with the reason. */
static void long_errors_keep_their_reason(void **state)
{
    char text[3000];
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = '\0';
    struct dl2_error error = DL2_ERROR_INIT;
    dl2_error_set(&error, DL2_ERR_FORMAT, "%s is bad", text);
    assert_int_equal(strlen(error.message), sizeof error.message - 1);
    assert_true(ends_with(error.message, "aaa is bad"));
    dl2_error_prefix(&error, "in %s", text);
    assert_int_equal(strlen(error.message), sizeof error.message - 1);
    assert_memory_equal(error.message, "in aaa", 6);
    assert_true(ends_with(error.message, "aaa is bad"));
    dl2_error_clear(&error);
    errno = ENOENT;
    dl2_error_system(&error, "%s: can't be read", text);
    assert_true(ends_with(error.message, "aaa: can't be read: No such file or directory"));
    dl2_error_clear(&error);
    /* 300 letters are 1200 once they are quoted. */
    memset(text, '\xff', 300);
    text[300] = '\0';
    dl2_error_set(&error, DL2_ERR_ARGUMENT, "'%s' is not one of a, b", text);
    assert_memory_equal(error.message, "'\\xff", 5);
    assert_true(ends_with(error.message, "\\xff' is not one of a, b"));
    dl2_error_clear(&error);
    /* The cut is between characters. */
    for (int shift = 0; shift < 3; shift++) {
        memset(text, 'b', 3);
        for (int i = 0; i < 900; i++)
            memcpy(text + shift + 3 * i, "\xe2\x82\xac", 3);
        text[shift + 2700] = '\0';
        dl2_error_set(&error, DL2_ERR_FORMAT, "%s", text);
        for (const char *at = error.message; *at; at += dl2_utf8_length(at))
            assert_int_not_equal(dl2_utf8_length(at), 0);
        dl2_error_clear(&error);
    }
}

static void memory_and_texts_come_with_their_error(void **state)
{
    struct dl2_error error = DL2_ERROR_INIT;
    uint64_t *numbers = (void *)1;
    char **list = NULL, *text;
    size_t count = 0;
    (void)state;
    assert_int_equal(DL2_NEW(&numbers, SIZE_MAX / 4, "numbers", &error), DL2_ERR_MEMORY);
    assert_null(numbers);
    assert_string_equal(error.message, "out of memory for numbers");
    assert_int_equal(DL2_NEW(&numbers, 3, "numbers", &error), DL2_OK);
    assert_true(!numbers[0] && !numbers[2]);
    free(numbers);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(dl2_format(&text, NULL, "%d-of-%d", i, 3), DL2_OK);
        assert_int_equal(dl2_list_append(&list, &count, text, NULL), DL2_OK);
    }
    assert_int_equal(count, 3);
    assert_string_equal(list[2], "2-of-3");
    assert_null(list[3]);
    assert_int_equal(dl2_list_append(&list, &count, NULL, NULL), DL2_ERR_MEMORY);
    assert_int_equal(count, 3);
    dl2_free_list(list);
}

static void fields_are_added_or_not_at_all(void **state)
{
    json_t *object = json_pack("{s:i}", "a", 1);
    (void)state;
    assert_true(dl2_json_add(object, json_pack("{s:i}", "b", 2)));
    assert_false(dl2_json_add(object, NULL));
    assert_false(dl2_json_add(NULL, json_object()));
    assert_int_equal(json_object_size(object), 2);
    assert_int_equal(dl2_json_get_integer(object, "b", 0), 2);
    json_decref(object);
}

static void sizes_are_checked(void **state)
{
    size_t out = 5;
    assert_false(dl2_size_mul(SIZE_MAX, 2, &out));
    assert_int_equal(out, 5);
    assert_false(dl2_size_add(SIZE_MAX, 1, &out));
    assert_null(dl2_calloc(SIZE_MAX / 2, 3));
    assert_null(dl2_alloc_aligned(SIZE_MAX, 1));
    struct dl2_bytes bytes = DL2_BYTES_INIT;
    for (int i = 0; i < 10000; i++)
        assert_int_equal(dl2_bytes_append(&bytes, "abc", 3, NULL), DL2_OK);
    assert_int_equal(bytes.size, 30000);
    assert_memory_equal(bytes.data + 29997, "abc", 3);
    dl2_bytes_free(&bytes);
}

/* A 3x2 image 0 1 2 / 3 4 5, turned as EXIF says; expected pixels worked out by hand. */
static void orientation_turns(void **state)
{
    static const struct {
        int width, height;
        uint8_t pixels[6];
    } expected[9] = {
        [1] = {3, 2, {0, 1, 2, 3, 4, 5}}, [2] = {3, 2, {2, 1, 0, 5, 4, 3}},
        [3] = {3, 2, {5, 4, 3, 2, 1, 0}}, [4] = {3, 2, {3, 4, 5, 0, 1, 2}},
        [5] = {2, 3, {0, 3, 1, 4, 2, 5}}, [6] = {2, 3, {3, 0, 4, 1, 5, 2}},
        [7] = {2, 3, {5, 2, 4, 1, 3, 0}}, [8] = {2, 3, {2, 5, 1, 4, 0, 3}},
    };
    for (int orientation = 1; orientation <= 8; orientation++) {
        struct dl2_image image = DL2_IMAGE_INIT, scratch = DL2_IMAGE_INIT;
        assert_int_equal(dl2_image_reshape(&image, 3, 2, 1, NULL), DL2_OK);
        for (uint8_t i = 0; i < 6; i++)
            image.data[i] = i;
        assert_int_equal(dl2_image_orient(&image, orientation, &scratch, NULL), DL2_OK);
        assert_int_equal(image.width, expected[orientation].width);
        assert_int_equal(image.height, expected[orientation].height);
        assert_memory_equal(image.data, expected[orientation].pixels, 6);
        dl2_image_free(&image);
        dl2_image_free(&scratch);
    }
}

/* Sizes around those of the tiles that are turned at once. */
static void orientation_turns_large_images(void **state)
{
    static const uint32_t sizes[] = {1, 15, 16, 33, 48};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    struct dl2_image image = DL2_IMAGE_INIT, scratch = DL2_IMAGE_INIT;
    for (int orientation = 1; orientation <= 8; orientation++)
        for (size_t i = 0; i < SIZES * SIZES; i++)
            for (uint32_t channels = 1; channels <= 3; channels += 2) {
                const uint32_t width = sizes[i / SIZES], height = sizes[i % SIZES];
                uint8_t upright[48 * 48 * 3];
                assert_int_equal(dl2_image_reshape(&image, width, height, channels, NULL), DL2_OK);
                for (size_t b = 0; b < height * image.stride; b++)
                    upright[b] = image.data[b] = (uint8_t)(b * 2654435761u >> 24);
                assert_int_equal(dl2_image_orient(&image, orientation, &scratch, NULL), DL2_OK);
                assert_int_equal(image.width, orientation < 5 ? width : height);
                assert_int_equal(image.height, orientation < 5 ? height : width);
                for (uint32_t y = 0; y < image.height; y++)
                    for (uint32_t x = 0; x < image.width; x++) {
                        const uint32_t right = width - 1, bottom = height - 1;
                        const uint32_t from[9][2] = {
                            [1] = {x, y},
                            [2] = {right - x, y},
                            [3] = {right - x, bottom - y},
                            [4] = {x, bottom - y},
                            [5] = {y, x},
                            [6] = {y, bottom - x},
                            [7] = {right - y, bottom - x},
                            [8] = {right - y, x},
                        };
                        const uint32_t *at = from[orientation];
                        assert_memory_equal(image.data + y * image.stride + x * channels,
                                            upright + (at[1] * width + at[0]) * channels, channels);
                    }
            }
    dl2_image_free(&image);
    dl2_image_free(&scratch);
}

static void image_sizes_have_limits(void **state)
{
    struct dl2_error error = DL2_ERROR_INIT;
    assert_int_equal(dl2_image_check_size(65535, 65535, DL2_DEFAULT_MAX_PIXELS, &error),
                     DL2_ERR_LIMIT);
    assert_int_equal(dl2_image_check_size(0, 5, 100, NULL), DL2_ERR_FORMAT);
    assert_int_equal(dl2_image_check_size(10, 10, 100, NULL), DL2_OK);
    assert_int_equal(dl2_image_check_size(UINT64_MAX, UINT64_MAX, UINT64_MAX, NULL), DL2_ERR_LIMIT);
    struct dl2_image image = DL2_IMAGE_INIT;
    assert_int_equal(dl2_image_reshape(&image, 4, 4, 2, NULL), DL2_ERR_ARGUMENT);
    dl2_image_free(&image);
}

/* Known answers of Philox4x32-10 from the Random123 distribution (kat_vectors). */
static void philox_known_answers(void **state)
{
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } vectors[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        uint32_t out[4];
        dl2_philox(vectors[i].counter, vectors[i].key, out);
        assert_memory_equal(out, vectors[i].out, sizeof out);
    }
}

static void streams_differ_and_repeat(void **state)
{
    struct dl2_random a, b, c;
    dl2_random_init(&a, 1, DL2_RANDOM_AUGMENT, 2, 3);
    dl2_random_init(&b, 1, DL2_RANDOM_AUGMENT, 2, 3);
    dl2_random_init(&c, 1, DL2_RANDOM_AUGMENT, 2, (uint64_t)1 << 32 | 3);
    int same = 0;
    for (int i = 0; i < 100; i++) {
        uint32_t number = dl2_random_u32(&a);
        assert_int_equal(number, dl2_random_u32(&b));
        same += number == dl2_random_u32(&c);
    }
    assert_true(same < 3);
    double sum = 0, squares = 0;
    for (int i = 0; i < 20000; i++) {
        double x = dl2_random_normal(&a);
        sum += x;
        squares += x * x;
        assert_true(dl2_random_below(&b, 7) < 7);
        double u = dl2_random_uniform(&c);
        assert_true(u >= 0 && u < 1);
    }
    assert_true(fabs(sum / 20000) < 0.03 && fabs(squares / 20000 - 1) < 0.05);
    uint32_t order[257];
    bool seen[257] = {false};
    dl2_random_permutation(&a, order, 257);
    for (int i = 0; i < 257; i++)
        seen[order[i]] = true;
    for (int i = 0; i < 257; i++)
        assert_true(seen[i]);
}

struct squares {
    size_t slots[16];
    size_t emitted[1000], count;
    size_t fail_at;
};

static int square(void *context, unsigned worker, size_t slot, size_t item, struct dl2_error *error)
{
    struct squares *squares = context;
    if (item == squares->fail_at)
        return dl2_error_set(error, DL2_ERR_FORMAT, "item %zu", item);
    squares->slots[slot] = item * item;
    return DL2_OK;
}

static int collect(void *context, size_t slot, size_t item, struct dl2_error *error)
{
    struct squares *squares = context;
    assert_int_equal(item, squares->count);
    squares->emitted[squares->count++] = squares->slots[slot];
    return DL2_OK;
}

static int run_squares(struct squares *squares, unsigned jobs, size_t count,
                       struct dl2_error *error)
{
    const struct dl2_parallel loop = {.jobs = jobs,
                                      .window = 16,
                                      .count = count,
                                      .work = square,
                                      .emit = collect,
                                      .context = squares};
    return dl2_parallel_run(&loop, error);
}

static void parallel_emits_in_order(void **state)
{
    for (unsigned jobs = 1; jobs <= 8; jobs *= 2) {
        struct squares squares = {.fail_at = SIZE_MAX};
        assert_int_equal(run_squares(&squares, jobs, 1000, NULL), DL2_OK);
        assert_int_equal(squares.count, 1000);
        for (size_t i = 0; i < 1000; i++)
            assert_int_equal(squares.emitted[i], i * i);
    }
}

static void parallel_stops_at_an_error(void **state)
{
    struct squares squares = {.fail_at = 300};
    struct dl2_error error = DL2_ERROR_INIT;
    assert_int_equal(run_squares(&squares, 4, 1000, &error), DL2_ERR_FORMAT);
    assert_string_equal(error.message, "item 300");
    assert_true(squares.count <= 300);
    assert_int_equal(run_squares(&squares, 4, 0, NULL), DL2_OK);
}

/* NumPy: np.percentile([3, 1, 4, 1, 5, 9, 2, 6], [5, 50, 95]) = 1.0, 3.5, 7.95; std(ddof=1)
 * = 2.7484 */
static void statistics_match_numpy(void **state)
{
    double values[] = {3, 1, 4, 1, 5, 9, 2, 6};
    struct dl2_summary summary;
    dl2_summarize(values, 8, &summary);
    assert_float_equal(summary.mean, 3.875, 1e-12);
    assert_float_equal(summary.p5, 1.0, 1e-12);
    assert_float_equal(summary.median, 3.5, 1e-12);
    assert_float_equal(summary.p95, 7.95, 1e-12);
    assert_float_equal(summary.stddev, 2.748376143938713, 1e-12);
    /* t(0.975, 7) = 2.3646 */
    assert_float_equal(dl2_confidence95(2.0, 8), 2.3646242515927863 * 2.0 / sqrt(8), 1e-9);
    assert_true(isinf(dl2_confidence95(1.0, 1)));
    dl2_summarize(NULL, 0, &summary);
    assert_int_equal(summary.count, 0);
}

/* 1 and 2 degrees of freedom: 1/2 - atan(t)/pi, and 1/2 - t / (2 sqrt(2 + t^2)). */
static void student_matches_closed_forms(void **state)
{
    (void)state;
    for (double t = -30; t < 31; t += 0.37) {
        assert_float_equal(dl2_student_tail(t, 1), 0.5 - atan(t) / M_PI, 1e-12);
        assert_float_equal(dl2_student_tail(t, 2), 0.5 - t / (2 * sqrt(2 + t * t)), 1e-12);
        assert_float_equal(dl2_student_tail(t, 1e9), erfc(t / sqrt(2)) / 2, 1e-8);
    }
    static const double tails[] = {0.4, 0.025, 0.0125, 1e-4, 1e-7};
    static const double freedoms[] = {1, 1.3, 2, 3.5, 6, 30, 447.2, 1e6, INFINITY};
    for (size_t i = 0; i < 5; i++)
        for (size_t k = 0; k < 9; k++) {
            const double t = dl2_student_quantile(tails[i], freedoms[k]);
            assert_float_equal(dl2_student_tail(t, freedoms[k]) / tails[i], 1, 1e-8);
            assert_float_equal(dl2_student_quantile(1 - tails[i], freedoms[k]), -t, 1e-6 * t);
        }
    /* A printed table: NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2. */
    assert_float_equal(dl2_student_quantile(0.025, 1), 12.706, 5e-4);
    assert_float_equal(dl2_student_quantile(0.01, 4), 3.747, 5e-4);
    assert_float_equal(dl2_student_quantile(0.001, 30), 3.385, 5e-4);
    assert_float_equal(dl2_student_quantile(0.025, INFINITY), 1.959963984540054, 1e-9);
    assert_true(isinf(dl2_student_quantile(0, 3)));
}

static void paths(void **state)
{
    char *joined = dl2_path_join("a//", "b.tar.gz");
    assert_string_equal(joined, "a/b.tar.gz");
    assert_string_equal(dl2_path_base(joined), "b.tar.gz");
    assert_string_equal(dl2_path_extension(joined), "gz");
    assert_int_equal(dl2_path_stem_length(joined), strlen("a/b.tar"));
    free(joined);
    joined = dl2_path_join("/", "x");
    assert_string_equal(joined, "/x");
    free(joined);
    assert_string_equal(dl2_path_extension("a.b/.hidden"), "");
    assert_string_equal(dl2_path_extension("a.b/plain"), "");
}

static int make_scratch(void **state)
{
    char *folder = strdup("/tmp/dl2-common.XXXXXX");
    *state = mkdtemp(folder);
    return *state ? 0 : -1;
}

static int drop_scratch(void **state)
{
    char command[256];
    snprintf(command, sizeof command, "rm -rf '%s'", (char *)*state);
    free(*state);
    return system(command);
}

static void files_are_written_whole_and_listed(void **state)
{
    struct dl2_error error = DL2_ERROR_INIT;
    char *deep = dl2_path_join(*state, "a/b/c");
    assert_int_equal(dl2_make_folders(deep, &error), DL2_OK);
    char *file = dl2_path_join(deep, "x.txt");
    assert_int_equal(dl2_file_write(file, "hello", 5, &error), DL2_OK);
    assert_int_equal(dl2_file_write(file, "hi", 2, &error), DL2_OK);
    struct dl2_bytes bytes = DL2_BYTES_INIT;
    assert_int_equal(dl2_file_read(file, 100, &bytes, &error), DL2_OK);
    assert_int_equal(bytes.size, 2);
    assert_memory_equal(bytes.data, "hi", 2);
    assert_int_equal(dl2_file_read(file, 1, &bytes, &error), DL2_ERR_LIMIT);
    dl2_error_clear(&error);

    /* What a killed writer left is overwritten, and gone. */
    char *left = dl2_path_join(deep, ".x.txt" DL2_TEMPORARY_SUFFIX);
    FILE *killed = fopen(left, "w");
    assert_true(killed && fputs("half a f", killed) >= 0 && fclose(killed) == 0);
    assert_int_equal(dl2_file_write(file, "yo", 2, &error), DL2_OK);
    assert_int_equal(dl2_file_read(file, 100, &bytes, &error), DL2_OK);
    assert_int_equal(bytes.size, 2);
    assert_memory_equal(bytes.data, "yo", 2);
    assert_false(dl2_is_file(left));
    free(left);
    dl2_bytes_free(&bytes);

    char *hidden = dl2_path_join(*state, ".hidden"), *other = dl2_path_join(*state, "a/b-z");
    assert_int_equal(dl2_file_write(hidden, "", 0, &error), DL2_OK);
    assert_int_equal(dl2_file_write(other, "1", 1, &error), DL2_OK);
    struct dl2_file_list list;
    assert_int_equal(dl2_list_files(*state, &list, &error), DL2_OK);
    assert_int_equal(list.count, 2);
    assert_string_equal(list.paths[0], "a/b-z");
    assert_string_equal(list.paths[1], "a/b/c/x.txt");
    assert_int_equal(list.bytes[1], 2);
    static const char folders[] = "a/\0a/b/\0a/b/c/";
    assert_int_equal(list.folders_size, sizeof folders);
    assert_memory_equal(list.folders, folders, sizeof folders);
    dl2_file_list_free(&list);

    char **names;
    static const char *const made[] = {"seed-10", "seed-9"};
    for (size_t i = 0; i < 2; i++) {
        char *one = dl2_path_join(*state, made[i]);
        assert_int_equal(dl2_file_write(one, "", 0, &error), DL2_OK);
        free(one);
    }
    assert_int_equal(dl2_list_names(*state, &names, &error), DL2_OK);
    assert_string_equal(names[0], "a");
    assert_string_equal(names[1], "seed-9");
    assert_string_equal(names[2], "seed-10");
    assert_null(names[3]);
    dl2_free_list(names);
    assert_int_equal(dl2_list_names(file, &names, &error), DL2_OK);
    assert_null(names[0]);
    dl2_free_list(names);

    char *loop = dl2_path_join(deep, "loop");
    assert_int_equal(symlink("../..", loop), 0);
    assert_int_equal(dl2_list_files(*state, &list, &error), DL2_ERR_FORMAT);
    assert_non_null(strstr(error.message, "loop"));
    dl2_error_clear(&error);
    assert_int_equal(dl2_make_folders(file, &error), DL2_ERR_SYSTEM);
    dl2_error_clear(&error);
    char *under = dl2_path_join(file, "y");
    assert_int_equal(dl2_file_write(under, "1", 1, &error), DL2_ERR_SYSTEM);
    free(under);
    free(loop);
    free(hidden);
    free(other);
    free(file);
    free(deep);
}

/* Text of other programs: byte order marks, UTF-16, and what Python writes in JSON. */
static void text_of_others(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t size;
        const char *rest; /* NULL: refused */
    } rows[] = {
        {"", 0, ""},
        {"a\n", 2, "a\n"},
        {"\xef\xbb\xbf", 3, ""},
        {"\xef\xbb\xbf"
         "ab",
         5, "ab"},
        {"a\xef\xbb\xbf", 4, "a\xef\xbb\xbf"},
        {"\xff\xfe"
         "a\0",
         4, NULL},
        {"\xfe\xff\0a", 4, NULL},
        {"a\0b", 3, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct dl2_bytes text = DL2_BYTES_INIT;
        struct dl2_error error = DL2_ERROR_INIT;
        if (rows[i].size)
            assert_int_equal(dl2_bytes_append(&text, rows[i].text, rows[i].size, &error), DL2_OK);
        assert_int_equal(dl2_text_begin(&text, &error), rows[i].rest ? DL2_OK : DL2_ERR_FORMAT);
        if (rows[i].rest) {
            assert_int_equal(text.size, strlen(rows[i].rest));
            assert_string_equal((const char *)text.data, rows[i].rest);
        }
        dl2_bytes_free(&text);
    }
    static const char json[] = "\xef\xbb\xbf{\"a\": [NaN, -Infinity,Infinity], \"b\": \"NaN \\\" "
                               "NaN\", \"c\": -NaN, \"d\": 5}";
    json_t *read = dl2_json_parse(json, strlen(json), 0, NULL);
    char *dumped = json_dumps(read, JSON_SORT_KEYS);
    assert_non_null(dumped);
    assert_string_equal(
        dumped, "{\"a\": [null, null, null], \"b\": \"NaN \\\" NaN\", \"c\": null, \"d\": 5}");
    free(dumped);
    json_decref(read);
    json_error_t why;
    assert_null(dl2_json_parse("{\"a\": NaNs}", 11, 0, &why));
    assert_null(dl2_json_parse("NaN", 3, 0, &why)); /* null alone is no object */
    assert_null(dl2_json_parse("", 0, 0, &why));
}

static void json_round_trip(void **state)
{
    char *file = dl2_path_join(*state, "x.json");
    struct dl2_error error = DL2_ERROR_INIT;
    json_t *json = json_pack("{s:s, s:o, s:o, s:o}", "schema", "test/1", "third",
                             dl2_json_real(1.0 / 3), "nothing", dl2_json_real(NAN), "name",
                             dl2_json_text("caf\xc3\xa9 \xff\xe0\x80 end"));
    assert_int_equal(dl2_json_save(file, json, &error), DL2_OK);
    json_decref(json);
    assert_int_equal(dl2_json_load(file, "test/1", &json, &error), DL2_OK);
    assert_true(dl2_json_get_real(json, "third", 0) == 1.0 / 3);
    assert_true(json_is_null(json_object_get(json, "nothing")));
    assert_string_equal(dl2_json_get_text(json, "name", ""),
                        "caf\xc3\xa9 \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd end");
    assert_int_equal(dl2_json_get_integer(json, "name", -3), -3);
    json_decref(json);
    assert_int_equal(dl2_json_load(file, "other/1", &json, &error), DL2_ERR_FORMAT);
    dl2_error_clear(&error);
    assert_int_equal(dl2_file_write(file, "{\"a\": ", 6, &error), DL2_OK);
    assert_int_equal(dl2_json_load(file, NULL, &json, &error), DL2_ERR_FORMAT);
    assert_non_null(strstr(error.message, "x.json:1"));
    free(file);
}

static void files_are_expected(void **state)
{
    char root[] = "/tmp/dl2-test.XXXXXX", path[64];
    struct dl2_error error = DL2_ERROR_INIT;
    assert_non_null(mkdtemp(root));
    snprintf(path, sizeof path, "%s/a/b/file", root);
    assert_int_equal(dl2_file_expect(path, &error), DL2_OK);
    assert_int_equal(access(path, F_OK), -1); /* nothing is written yet */
    assert_int_equal(dl2_file_write(path, "x", 1, &error), DL2_OK);
    assert_int_equal(dl2_file_expect(path, &error), DL2_OK);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(dl2_file_expect(path, &error), DL2_ERR_SYSTEM);
    assert_non_null(strstr(error.message, "is a folder"));
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(dl2_file_write(path, "x", 1, &error), DL2_OK);
    snprintf(path, sizeof path, "%s/a/b/file/in", root);
    assert_int_equal(dl2_file_expect(path, NULL), DL2_ERR_SYSTEM);
    for (const char *name = "a/b/file\0a/b\0a\0"; *name; name += strlen(name) + 1) {
        snprintf(path, sizeof path, "%s/%s", root, name);
        assert_int_equal(remove(path), 0);
    }
    assert_int_equal(rmdir(root), 0);
}

static void words_are_parsed(void **state)
{
    static const char *const words[] = {"auto", "direct", NULL};
    struct dl2_error error = DL2_ERROR_INIT;
    assert_int_equal(dl2_parse_word("auto", words, &error), 0);
    assert_int_equal(dl2_parse_word("direct", words, &error), 1);
    assert_int_equal(dl2_parse_word("dir", words, &error), DL2_ERR_ARGUMENT);
    assert_string_equal(error.message, "'dir' is not one of auto, direct");
    assert_int_equal(dl2_parse_word("", words, NULL), DL2_ERR_ARGUMENT);
}

static void lists_of_numbers_and_names(void **state)
{
    unsigned *numbers;
    size_t count;
    struct dl2_error error = DL2_ERROR_INIT;
    assert_int_equal(dl2_parse_uint_list("10,25,10,5", 1, 100, &numbers, &count, &error), DL2_OK);
    assert_int_equal(count, 3);
    assert_int_equal(numbers[2], 5);
    free(numbers);
    assert_int_equal(
        dl2_parse_uint_list("90,5:95:30,7:9,100:100", 1, 100, &numbers, &count, &error), DL2_OK);
    const unsigned wanted[] = {90, 5, 35, 65, 95, 7, 8, 9, 100};
    assert_int_equal(count, sizeof wanted / sizeof *wanted);
    assert_memory_equal(numbers, wanted, sizeof wanted);
    free(numbers);
    static const char *const wrong[] = {"",        ",",
                                        "1,",      "a",
                                        "1,,2",    "-3",
                                        "1 2",     "0",
                                        "101",     "99999999999999999999",
                                        "5:",      ":5",
                                        "9:5",     "5:9:0",
                                        "5:9:1:1", "5:101",
                                        "5:9:",    "5:9:99999999999999999999x"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        dl2_error_clear(&error);
        assert_int_equal(dl2_parse_uint_list(wrong[i], 1, 100, &numbers, &count, &error),
                         DL2_ERR_ARGUMENT);
    }
    dl2_error_clear(&error);
    char **names;
    assert_int_equal(dl2_parse_name_list("jpeg,webp", &names, &count, &error), DL2_OK);
    assert_int_equal(count, 2);
    assert_string_equal(names[1], "webp");
    dl2_free_list(names);
    assert_int_equal(dl2_parse_name_list("jpeg,", &names, &count, &error), DL2_ERR_ARGUMENT);
}

struct inner {
    uint64_t size;
    unsigned color;
    bool stops;
};

struct outer {
    double rate, lost;
    const char *name, *none;
    bool flip;
    struct inner inner;
};

static void settings_become_json(void **state)
{
    static const char *const colors[] = {"red", "blue", NULL};
    static const char *const actions[] = {"go", "stop", NULL};
    static const struct dl2_option inner[] = {
        {DL2_OPTION_SIZE, "size", .offset = offsetof(struct inner, size)},
        {DL2_OPTION_CHOICE, "color", .offset = offsetof(struct inner, color), .words = colors,
         .roles = DL2_OPTION_FIXED | DL2_OPTION_COMPARED},
        {DL2_OPTION_SWITCH, "action", .offset = offsetof(struct inner, stops), .words = actions},
        {DL2_OPTION_END},
    };
    static const struct dl2_option outer[] = {
        {DL2_OPTION_GROUP, .help = "Options:"},
        {DL2_OPTION_REAL, "rate", .offset = offsetof(struct outer, rate),
         .roles = DL2_OPTION_FIXED},
        {DL2_OPTION_REAL, "lost", .offset = offsetof(struct outer, lost)},
        {DL2_OPTION_TABLE, .table = inner, .offset = offsetof(struct outer, inner)},
        {DL2_OPTION_TEXT, "name", .offset = offsetof(struct outer, name),
         .roles = DL2_OPTION_COMPARED},
        {DL2_OPTION_TEXT, "none", .offset = offsetof(struct outer, none)},
        {DL2_OPTION_NEGATE, "no-flip", .offset = offsetof(struct outer, flip)},
        {DL2_OPTION_END},
    };
    const struct outer values = {0.5, NAN, "n", NULL, true, {1u << 20, 1, true}};
    const struct {
        unsigned roles;
        const char *json;
    } selected[] = {
        {DL2_OPTION_FIXED, "{\"rate\":0.5,\"color\":\"blue\"}"},
        {DL2_OPTION_COMPARED, "{\"color\":\"blue\",\"name\":\"n\"}"},
        {DL2_OPTION_NOTED, "{}"},
    };
    json_t *all = dl2_options_json(outer, &values);
    char *text = json_dumps(all, JSON_COMPACT);
    assert_string_equal(text, "{\"rate\":0.5,\"lost\":null,\"size\":1048576,\"color\":\"blue\","
                              "\"action\":\"stop\",\"name\":\"n\",\"none\":null,"
                              "\"no-flip\":false}");
    free(text);
    for (size_t i = 0; i < sizeof selected / sizeof *selected; i++) {
        json_t *some = dl2_options_select(outer, all, selected[i].roles);
        text = json_dumps(some, JSON_COMPACT);
        assert_string_equal(text, selected[i].json);
        free(text);
        json_decref(some);
    }
    /* And back. */
    struct outer again = {0};
    const char *name;
    json_t *value;
    json_object_foreach(all, name, value)
        assert_int_equal(dl2_option_from_record(outer, &again, name, value, NULL), DL2_OK);
    again.lost = NAN; /* null leaves a value as it is */
    json_t *copy = dl2_options_json(outer, &again);
    assert_true(json_equal(copy, all));
    json_decref(copy);
    json_t *number = json_integer(3);
    assert_int_equal(dl2_option_from_record(outer, &again, "name", number, NULL), DL2_ERR_ARGUMENT);
    assert_int_equal(dl2_option_from_record(outer, &again, "color", number, NULL),
                     DL2_ERR_ARGUMENT);
    assert_string_equal(again.name, "n");
    json_decref(number);
    json_decref(all);
}

/* A rule refuses the option that was given; one of an option that does not exist is a mistake. */
static void rules_are_of_options(void **state)
{
    (void)state;
    static const struct dl2_option options[] = {{DL2_OPTION_UINT, "size", 0, "N", "Size", 0},
                                                {DL2_OPTION_END}};
    struct dl2_error refusal = DL2_ERROR_INIT;
    const struct dl2_program program = {.name = "test", .options = options, .refusal = &refusal};
    struct dl2_common_options common = {.jobs = 1};
    const struct dl2_option_rule rules[] = {{true, "size", "is no use"}, {false, "sise", "never"}};
    assert_int_equal(dl2_program_refuse(&program, &common, rules, 1), 0);
    assert_int_equal(dl2_program_refuse(&program, &common, rules, 2), DL2_EXIT_USAGE);
    assert_non_null(strstr(refusal.message, "--sise, which is no option"));
    refusal = (struct dl2_error)DL2_ERROR_INIT;
    dl2_option_note_given(&program, &common, "size", true);
    assert_int_equal(dl2_program_refuse(&program, &common, rules, 1), DL2_EXIT_USAGE);
    assert_string_equal(refusal.message, "--size is no use");
}

static void sizes_in_words(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } right[] = {{"0", 0},           {"123", 123},       {"2K", 2048},      {"512M", 512u << 20},
                 {"1.5g", 3u << 29}, {"1MiB", 1u << 20}, {"1kb", 1u << 10}, {"1T", 1ull << 40}};
    static const char *const wrong[] = {"",    "-1",  "M",   "1Q",      "1MM",
                                        "1Mi", "1 M", "nan", "8388608T"};
    uint64_t bytes = 7;
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        assert_int_equal(dl2_parse_size(right[i].text, &bytes, NULL), DL2_OK);
        assert_int_equal(bytes, right[i].bytes);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(dl2_parse_size(wrong[i], &bytes, NULL), DL2_ERR_ARGUMENT);
}

static void spin(double seconds)
{
    const double until = dl2_clock_wall() + seconds;
    while (dl2_clock_wall() < until)
        ;
}

static double last_of(const json_t *timeline, const char *name)
{
    const json_t *column = json_object_get(timeline, name);
    return json_number_value(json_array_get(column, json_array_size(column) - 1));
}

static void monitor_samples_the_process(void **state)
{
    struct dl2_monitor *monitor;
    unsetenv("DL2_CARD");
    assert_int_equal(dl2_monitor_start(0.01, NULL, NULL, &monitor, NULL), DL2_OK);
    dl2_monitor_count(monitor, 32, 0.25);
    spin(0.05);
    json_t *early = dl2_monitor_timeline(monitor);
    dl2_monitor_count(monitor, 16, 0.5);
    spin(0.15);
    json_t *late = dl2_monitor_timeline(monitor);
    assert_true(isnan(dl2_monitor_joules(monitor)));
    assert_null(dl2_monitor_card(monitor));
    dl2_monitor_stop(monitor);
    dl2_monitor_stop(NULL);
    const size_t count = json_array_size(json_object_get(early, "seconds"));
    assert_true(count >= 1);
    assert_true(count < json_array_size(json_object_get(late, "seconds")));
    assert_true(last_of(late, "seconds") >= 0.05);
    assert_true(last_of(late, "cpu_percent") > 0);
    assert_true(last_of(late, "rss_bytes") > 100000);
    assert_true(last_of(early, "images") == 32 && last_of(late, "images") == 48);
    assert_true(last_of(late, "data_wait_seconds") == 0.75);
    assert_null(json_object_get(late, "card_percent"));
    const char *key;
    json_t *column;
    json_object_foreach(late, key, column)
    {
        if (json_is_array(column))
            assert_int_equal(json_array_size(column),
                             json_array_size(json_object_get(late, "seconds")));
    }
    json_decref(early);
    json_decref(late);
    assert_int_equal(dl2_monitor_start(1000, NULL, NULL, &monitor, NULL), DL2_OK);
    dl2_monitor_sample(monitor);
    json_t *at_once = dl2_monitor_timeline(monitor);
    dl2_monitor_stop(monitor);
    assert_int_equal(json_array_size(json_object_get(at_once, "seconds")), 1);
    assert_true(last_of(at_once, "rss_bytes") > 100000);
    json_decref(at_once);
    json_t *machine = dl2_machine_describe();
    assert_true(dl2_json_get_integer(machine, "cores", 0) >= 1);
    json_decref(machine);
    assert_true(dl2_peak_rss() > 100000);
}

/* The name of a process that works beside this one. */
#define BUSY "dl2-test-busy"

/* The machine's columns show another process' work, and the server's that of its name alone. */
static void monitor_samples_the_machine(void **state)
{
    struct dl2_monitor *monitor;
    const pid_t parent = getpid(), child = fork();
    if (child == 0) {
        prctl(PR_SET_NAME, BUSY);
        while (getppid() == parent)
            ;
        _exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(dl2_monitor_start(0.05, NULL, BUSY, &monitor, NULL), DL2_OK);
    double server = 0, machine = 0;
    for (const double until = dl2_clock_wall() + 60; !(server > 0) && dl2_clock_wall() < until;) {
        usleep(50000);
        json_t *timeline = dl2_monitor_timeline(monitor);
        const json_t *of_server = json_object_get(timeline, "server_cpu_percent");
        const json_t *of_machine = json_object_get(timeline, "machine_cpu_percent");
        for (size_t i = 0; i < json_array_size(of_server); i++) {
            server = fmax(server, json_number_value(json_array_get(of_server, i)));
            machine = fmax(machine, json_number_value(json_array_get(of_machine, i)));
        }
        json_decref(timeline);
    }
    dl2_monitor_stop(monitor);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_true(server > 0 && machine > 0);
    assert_true(dl2_named_cpu("dl2-no-such") == 0);
}

enum { SAMPLERS = 8, SAMPLES_OF_EACH = 70 };

static void *take_samples(void *monitor)
{
    for (int i = 0; i < SAMPLES_OF_EACH; i++)
        dl2_monitor_sample(monitor);
    return NULL;
}

/* Threads that take samples at once store them in the order of their readings: nothing was used
 * less than nothing. */
static void samples_are_in_order(void **state)
{
    static const char *const columns[] = {"cpu_percent", "machine_cpu_percent"};
    for (int round = 0; round < 20; round++) {
        struct dl2_monitor *monitor;
        pthread_t threads[SAMPLERS];
        assert_int_equal(dl2_monitor_start(1000, NULL, NULL, &monitor, NULL), DL2_OK);
        for (int i = 0; i < SAMPLERS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, take_samples, monitor), 0);
        for (int i = 0; i < SAMPLERS; i++)
            pthread_join(threads[i], NULL);
        json_t *timeline = dl2_monitor_timeline(monitor);
        for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
            const json_t *column = json_object_get(timeline, columns[c]);
            assert_int_equal(json_array_size(column), SAMPLERS * SAMPLES_OF_EACH);
            for (size_t i = 0; i < json_array_size(column); i++)
                assert_true(json_number_value(json_array_get(column, i)) >= 0);
        }
        json_decref(timeline);
        dl2_monitor_stop(monitor);
    }
}

/* As many samples as a timeline may have, and half as many again: the rate halves, and what is
 * counted isn't lost. */
static void long_timelines_are_thinned(void **state)
{
    struct dl2_monitor *monitor;
    const double period = 1e-4;
    assert_int_equal(dl2_monitor_start(period, NULL, NULL, &monitor, NULL), DL2_OK);
    json_t *timeline;
    bool thinned = false;
    const double until = dl2_clock_wall() + 30;
    do {
        dl2_monitor_count(monitor, 1, 0);
        spin(0.01);
        timeline = dl2_monitor_timeline(monitor);
        const json_t *seconds = json_object_get(timeline, "seconds");
        const size_t count = json_array_size(seconds);
        assert_true(count <= DL2_MONITOR_SAMPLES);
        thinned = dl2_json_get_real(timeline, "period_seconds", 0) > period;
        if (thinned) {
            assert_true(count >= DL2_MONITOR_SAMPLES / 2);
            for (size_t i = 1; i < count; i++) {
                assert_true(json_number_value(json_array_get(seconds, i)) >=
                            json_number_value(json_array_get(seconds, i - 1)));
                assert_true(
                    json_number_value(json_array_get(json_object_get(timeline, "images"), i)) >=
                    json_number_value(json_array_get(json_object_get(timeline, "images"), i - 1)));
            }
        }
        json_decref(timeline);
    } while (!thinned && dl2_clock_wall() < until);
    assert_true(thinned);
    dl2_monitor_stop(monitor);
}

static void expect_words(const char *text, size_t count, const char *const *expected)
{
    char **words;
    assert_int_equal(dl2_command_words(text, &words, NULL), DL2_OK);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(words[i], expected[i]);
    assert_null(words[count]);
    free(words);
}

static void commands_are_split(void **state)
{
    char **words;
    expect_words(" cjxl\t%i  %o ", 3, (const char *const[]){"cjxl", "%i", "%o"});
    expect_words("a", 1, (const char *const[]){"a"});
    expect_words("'a  b' c\"d ' e\"'f \"g' ''", 3,
                 (const char *const[]){"a  b", "cd ' ef \"g", ""});
    expect_words("\\n $HOME *.c;", 3, (const char *const[]){"\\n", "$HOME", "*.c;"});
    static const char *const wrong[] = {"", " \n ", "'", "a \"b c", "a 'b\""};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(dl2_command_words(wrong[i], &words, NULL), DL2_ERR_ARGUMENT);
}

/* What a program took counts for the thread that ran it, and for the process. */
static void programs_are_run(void **state)
{
    char *work[] = {"sh", "-c", "i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); done", NULL};
    char *fails[] = {"sh", "-c", "seq 9999; echo the end; exit 4", NULL};
    char *sleeps[] = {"sleep", "100", NULL};
    char *reads[] = {"cat", NULL}; /* its input is empty */
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_process_group group;
    assert_int_equal(dl2_process_group_begin(&group, "dl2-test", &error), DL2_OK);
    const double thread = dl2_clock_thread_cpu(), process = dl2_clock_process_cpu();
    assert_int_equal(dl2_process_run(&group, work, 100, &error), DL2_OK);
    assert_true(dl2_clock_thread_cpu() - thread > 0.01);
    assert_true(dl2_clock_process_cpu() - process > 0.01);
    assert_int_equal(dl2_process_run(&group, reads, 100, &error), DL2_OK);
    assert_int_equal(dl2_process_run(&group, fails, 100, &error), DL2_ERR_FORMAT);
    assert_string_equal(error.message, "sh exited with status 4: the end");
    dl2_error_clear(&error);
    assert_int_equal(dl2_process_run(&group, sleeps, 0.05, &error), DL2_ERR_LIMIT);
    assert_string_equal(error.message, "sleep was killed after 0.05 s");
    dl2_error_clear(&error);
    char *absent[] = {"no-such-program-anywhere", NULL};
    /* QEMU's posix_spawn doesn't say so (tests/arm.sh); there it exits with 127. */
    assert_int_equal(dl2_process_run(&group, absent, 1, &error),
                     getenv("QEMU_LD_PREFIX") ? DL2_ERR_FORMAT : DL2_ERR_SYSTEM);
    dl2_process_group_end(&group);
    assert_false(dl2_is_folder(group.folder));
}

/* What a program leaves running, and folders in its folder, go with the group. */
static void groups_end_whole(void **state)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_process_group group;
    int ends[2];
    assert_int_equal(dl2_process_group_begin(&group, "dl2-test", &error), DL2_OK);
    assert_int_equal(pipe(ends), 0); /* what runs keeps an end of it */
    char *leaves[] = {"sh", "-c",
                      "cd \"$0\"; mkdir -p a/b .c; echo x >a/b/d; echo x >.c/e; sleep 100 &",
                      group.folder, NULL};
    assert_int_equal(dl2_process_run(&group, leaves, 100, &error), DL2_OK);
    close(ends[1]);
    dl2_process_group_end(&group);
    char byte;
    assert_int_equal(read(ends[0], &byte, 1), 0);
    close(ends[0]);
    assert_false(dl2_is_folder(group.folder));
    setenv("TMPDIR", "/nowhere", 1);
    assert_int_equal(dl2_process_group_begin(&group, "dl2-test", &error), DL2_ERR_SYSTEM);
    assert_memory_equal(error.message, "/nowhere/dl2-test.", 18);
    unsetenv("TMPDIR");
}

/* Where nobody waits for children, a shell that has ended takes its group along. */
static void groups_without_a_shell_are_named(void **state)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_process_group group;
    char *words[] = {"true", NULL};
    void (*before)(int) = signal(SIGCHLD, SIG_IGN);
    assert_int_equal(dl2_process_group_begin(&group, "dl2-test", &error), DL2_OK);
    kill(group.keeper, SIGKILL);
    while (kill(group.keeper, 0) == 0)
        usleep(1000);
    assert_int_equal(dl2_process_run(&group, words, 100, &error), DL2_ERR_SYSTEM);
    assert_non_null(strstr(error.message, "true cannot be run: the /bin/sh that is to end it"));
    dl2_process_group_end(&group);
    signal(SIGCHLD, before);
}

/* Parts cost the same up to one item, and the division is that of a plain search. */
static void work_is_divided_by_cost(void **state)
{
    enum { ITEMS = 1000, PARTS = 7 };
    uint64_t costs[ITEMS], sums[PARTS] = {0}, most = 0;
    uint16_t owners[ITEMS];
    struct dl2_random random;
    dl2_random_init(&random, 1, DL2_RANDOM_TARGET, 3, 4);
    for (size_t i = 0; i < ITEMS; i++)
        costs[i] = dl2_random_u32(&random) % 5000;
    assert_int_equal(dl2_work_divide(costs, ITEMS, PARTS, owners, NULL), DL2_OK);
    for (size_t i = 0; i < ITEMS; i++) {
        unsigned least = 0;
        for (unsigned p = 1; p < PARTS; p++)
            least = sums[p] < sums[least] ? p : least;
        assert_int_equal(owners[i], least + 1);
        sums[least] += costs[i];
        most = costs[i] > most ? costs[i] : most;
    }
    for (unsigned p = 1; p < PARTS; p++)
        assert_true(sums[p] < sums[0] + most && sums[0] < sums[p] + most);
    assert_int_equal(dl2_work_divide(costs, 2, DL2_WORK_PARTS_MAX, owners, NULL), DL2_OK);
    assert_true(owners[0] == 1 && owners[1] == 2);
}

static void parts_are_locked_and_marked(void **state)
{
    const char *scratch = *state;
    struct dl2_part_file file = {-1}, other = {-1};
    struct dl2_work_part part;
    struct dl2_error error = DL2_ERROR_INIT;
    unsigned first;
    char *stem = dl2_path_join(scratch, "stem");
    assert_int_equal(dl2_work_part_parse("2/3", &part, &error), DL2_OK);
    assert_true(part.number == 2 && part.count == 3);
    assert_int_equal(dl2_part_file_open(&file, stem, &part, &error), DL2_OK);
    assert_int_equal(dl2_part_file_open(&other, stem, &part, &error), DL2_ERR_CANCELED);
    assert_non_null(strstr(error.message, "another process is making part 2/3"));
    assert_int_equal(dl2_part_files_missing(stem, 3, "this", &first), 3);
    assert_int_equal(first, 1);
    assert_int_equal(dl2_part_file_end(&file, "this", NULL), DL2_OK);
    dl2_part_file_close(&file);
    assert_int_equal(dl2_part_files_missing(stem, 3, "this", &first), 2);
    assert_int_equal(dl2_part_files_missing(stem, 3, "that", &first), 3);
    assert_int_equal(dl2_part_files_missing(stem, 2, "this", &first), 2);
    /* A part that begins again has not ended. */
    assert_int_equal(dl2_part_file_open(&file, stem, &part, NULL), DL2_OK);
    assert_int_equal(dl2_part_files_missing(stem, 3, "this", &first), 3);
    dl2_part_file_close(&file);
    char *neighbor = dl2_path_join(scratch, "stem-2-of-3.scores");
    assert_int_equal(dl2_file_write(neighbor, "x", 1, NULL), DL2_OK);
    dl2_part_files_remove(stem);
    char *own = dl2_path_join(scratch, "stem-2-of-3");
    assert_true(!dl2_is_file(own) && dl2_is_file(neighbor));
    free(own);
    free(neighbor);
    free(stem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_error_wins),
        cmocka_unit_test(names_are_quoted),
        cmocka_unit_test(long_errors_keep_their_reason),
        cmocka_unit_test(system_errors_name_their_file),
        cmocka_unit_test(memory_and_texts_come_with_their_error),
        cmocka_unit_test(fields_are_added_or_not_at_all),
        cmocka_unit_test(sizes_are_checked),
        cmocka_unit_test(orientation_turns),
        cmocka_unit_test(orientation_turns_large_images),
        cmocka_unit_test(image_sizes_have_limits),
        cmocka_unit_test(philox_known_answers),
        cmocka_unit_test(streams_differ_and_repeat),
        cmocka_unit_test(parallel_emits_in_order),
        cmocka_unit_test(parallel_stops_at_an_error),
        cmocka_unit_test(statistics_match_numpy),
        cmocka_unit_test(student_matches_closed_forms),
        cmocka_unit_test(paths),
        cmocka_unit_test_setup_teardown(files_are_written_whole_and_listed, make_scratch,
                                        drop_scratch),
        cmocka_unit_test(text_of_others),
        cmocka_unit_test_setup_teardown(json_round_trip, make_scratch, drop_scratch),
        cmocka_unit_test(files_are_expected),
        cmocka_unit_test(words_are_parsed),
        cmocka_unit_test(lists_of_numbers_and_names),
        cmocka_unit_test(settings_become_json),
        cmocka_unit_test(rules_are_of_options),
        cmocka_unit_test(sizes_in_words),
        cmocka_unit_test(commands_are_split),
        cmocka_unit_test(programs_are_run),
        cmocka_unit_test(groups_end_whole),
        cmocka_unit_test(groups_without_a_shell_are_named),
        cmocka_unit_test(monitor_samples_the_process),
        cmocka_unit_test(monitor_samples_the_machine),
        cmocka_unit_test(samples_are_in_order),
        cmocka_unit_test(long_timelines_are_thinned),
        cmocka_unit_test(work_is_divided_by_cost),
        cmocka_unit_test_setup_teardown(parts_are_locked_and_marked, make_scratch, drop_scratch),
    };
    return cmocka_run_group_tests_name("common", tests, NULL, NULL);
}
