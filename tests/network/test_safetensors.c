/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/file.h"
#include "network/safetensors.h"
#include "tests/unit.h"

#include <unistd.h>

static const float weights[6] = {1, -2, 3.5f, 0, 5e-30f, 6};
static const int64_t seen[1] = {-7};

static void make(struct dl2_bytes *file)
{
    struct dl2_safetensors checkpoint;
    assert_int_equal(dl2_safetensors_init(&checkpoint, NULL), 0);
    assert_int_equal(dl2_safetensors_set_text(&checkpoint, "format", "a \"text\"", NULL), 0);
    assert_int_equal(
        dl2_safetensors_add(&checkpoint, "conv1.weight", "F32", 2, (size_t[]){2, 3}, weights, NULL),
        0);
    assert_int_equal(dl2_safetensors_add(&checkpoint, "seen", "I64", 0, NULL, seen, NULL), 0);
    assert_int_equal(
        dl2_safetensors_add(&checkpoint, "none", "U8", 2, (size_t[]){0, 9}, NULL, NULL), 0);
    assert_int_equal(
        dl2_safetensors_add(&checkpoint, "none", "U8", 1, (size_t[]){1}, weights, NULL),
        DL2_ERR_ARGUMENT);
    assert_int_equal(dl2_safetensors_set_text(&checkpoint, "format", "b", NULL), DL2_ERR_ARGUMENT);
    assert_int_equal(dl2_safetensors_format(&checkpoint, file, NULL), 0);
    dl2_safetensors_free(&checkpoint);
}

static int parse(const void *data, size_t size, struct dl2_safetensors *checkpoint)
{
    struct dl2_bytes copy = DL2_BYTES_INIT;
    assert_int_equal(dl2_bytes_append(&copy, data, size, NULL), 0);
    struct dl2_error error = DL2_ERROR_INIT;
    int status = dl2_safetensors_parse(&copy, checkpoint, &error);
    assert_null(copy.data);
    assert_int_equal(error.status, status);
    return status;
}

static void round_trip(void **state)
{
    struct dl2_bytes file = DL2_BYTES_INIT;
    make(&file);
    struct dl2_safetensors checkpoint;
    assert_int_equal(parse(file.data, file.size, &checkpoint), 0);
    assert_true(checkpoint.checksummed);
    assert_int_equal(checkpoint.count, 3);
    assert_string_equal(dl2_safetensors_text(&checkpoint, "format"), "a \"text\"");
    assert_null(dl2_safetensors_text(&checkpoint, "other"));
    float w[6];
    int64_t s[1];
    struct dl2_error error = DL2_ERROR_INIT;
    const size_t shape[] = {2, 3}, wrong[] = {3, 2};
    assert_int_equal(dl2_safetensors_copy(&checkpoint, "conv1.weight", "F32", 2, shape, w, &error),
                     0);
    assert_memory_equal(w, weights, sizeof w);
    assert_int_equal(dl2_safetensors_copy(&checkpoint, "seen", "I64", 0, shape, s, &error), 0);
    assert_memory_equal(s, seen, sizeof s);
    assert_int_equal(dl2_safetensors_copy(&checkpoint, "conv1.weight", "F32", 2, wrong, w, &error),
                     DL2_ERR_FORMAT);
    assert_string_equal(error.message,
                        "tensor 'conv1.weight' should be F32 [3, 2], and there is F32 [2, 3]");
    assert_int_equal(dl2_safetensors_copy(&checkpoint, "absent", "F32", 2, shape, w, NULL),
                     DL2_ERR_FORMAT);
    dl2_safetensors_free(&checkpoint);
    dl2_bytes_free(&file);
}

static void cut_short_or_damaged_is_refused(void **state)
{
    struct dl2_bytes file = DL2_BYTES_INIT;
    make(&file);
    struct dl2_safetensors checkpoint;
    for (size_t size = 0; size < file.size; size++)
        assert_int_equal(parse(file.data, size, &checkpoint), DL2_ERR_FORMAT);
    uint8_t *longer = calloc(1, file.size + 1);
    memcpy(longer, file.data, file.size);
    assert_int_equal(parse(longer, file.size + 1, &checkpoint), DL2_ERR_FORMAT);
    free(longer);
    for (size_t at = 0; at < file.size; at++) {
        for (int bit = 0; bit < 8; bit++) {
            file.data[at] ^= (uint8_t)(1 << bit);
            int status = parse(file.data, file.size, &checkpoint);
            /* The one change that can't be told: a key that no longer says that there is a
             * checksum. */
            if (status == 0) {
                assert_false(checkpoint.checksummed);
                dl2_safetensors_free(&checkpoint);
            } else {
                assert_int_equal(status, DL2_ERR_FORMAT);
            }
            file.data[at] ^= (uint8_t)(1 << bit);
        }
    }
    dl2_bytes_free(&file);
}

static void nonsense_is_refused(void **state)
{
    static const struct {
        const char *header;
        size_t data;
        int status;
    } files[] = {
        {"{}", 0, DL2_OK},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, DL2_OK},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 5, DL2_ERR_FORMAT},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 3, DL2_ERR_FORMAT},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, DL2_ERR_FORMAT},
        {"{\"a\":{\"dtype\":\"X32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, DL2_ERR_FORMAT},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4, DL2_ERR_FORMAT},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, DL2_ERR_FORMAT},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0,
         DL2_ERR_FORMAT},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
         1, DL2_ERR_FORMAT},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
         "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
         2, DL2_ERR_FORMAT},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]}}", 1,
         DL2_ERR_FORMAT},
        {"{\"a\":7}", 0, DL2_ERR_FORMAT},
        {"{\"__metadata__\":[]}", 0, DL2_ERR_FORMAT},
        {"{\"__metadata__\":{\"k\":1}}", 0, DL2_ERR_FORMAT},
        {"{\"__metadata__\":{\"crc32\":\"00000000\"}}", 0, DL2_ERR_FORMAT},
        {"[]", 0, DL2_ERR_FORMAT},
        {"", 0, DL2_ERR_FORMAT},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        uint8_t file[512] = {0};
        size_t length = strlen(files[i].header);
        file[0] = (uint8_t)length;
        memcpy(file + 8, files[i].header, length);
        struct dl2_safetensors checkpoint;
        int status = parse(file, 8 + length + files[i].data, &checkpoint);
        assert_int_equal(status, files[i].status);
        if (status == 0) {
            assert_false(checkpoint.checksummed);
            dl2_safetensors_free(&checkpoint);
        }
    }
    static const uint8_t huge[16] = {255, 255, 255, 255, 255, 255, 255, 255, '{', '}'};
    struct dl2_safetensors checkpoint;
    assert_int_equal(parse(huge, sizeof huge, &checkpoint), DL2_ERR_FORMAT);
}

static void files_are_named_in_errors(void **state)
{
    char path[] = "/tmp/dl2-checkpoint.XXXXXX";
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, "nonsense, not a checkpoint", 26), 26);
    close(descriptor);
    struct dl2_safetensors checkpoint;
    struct dl2_error error = DL2_ERROR_INIT;
    assert_int_equal(dl2_safetensors_read(path, &checkpoint, &error), DL2_ERR_FORMAT);
    assert_non_null(strstr(error.message, path));

    assert_int_equal(dl2_safetensors_init(&checkpoint, NULL), 0);
    assert_int_equal(dl2_safetensors_add(&checkpoint, "w", "F32", 1, (size_t[]){6}, weights, NULL),
                     0);
    assert_int_equal(dl2_safetensors_write(&checkpoint, path, NULL), 0);
    dl2_safetensors_free(&checkpoint);
    assert_int_equal(dl2_safetensors_read(path, &checkpoint, NULL), 0);
    assert_int_equal(checkpoint.tensors[0].bytes, sizeof weights);
    dl2_safetensors_free(&checkpoint);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(cut_short_or_damaged_is_refused),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(files_are_named_in_errors),
    };
    return cmocka_run_group_tests_name("checkpoint", tests, NULL, NULL);
}
