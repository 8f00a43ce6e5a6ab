/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packed datasets: what is written is what a folder of the same samples says, with and without the
 * index; and what must be refused. GulpIO's own files: gulpio/, made by gen_gulp.py.
 */
#include "common/file.h"
#include "dataset/packed/packed.h"
#include "dataset/write/writer.h"
#include "tests/dataset/scratch.h"

#include <endian.h>
#include <fcntl.h>
#include <jansson.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static const struct dl2_member_choice as_it_is = {NULL, NULL};

static void read_sample(const struct dl2_dataset *dataset, size_t index, struct dl2_bytes *scratch,
                        const uint8_t **data, size_t *size)
{
    struct dl2_error error = DL2_ERROR_INIT;
    if (dl2_dataset_read(dataset, index, scratch, data, size, &error) < 0)
        fail_msg("%s", error.message);
}

/* ---- Pack a folder */

static void pack_with(const char *from, const char *to, const struct dl2_writer_options *options)
{
    struct dl2_dataset *dataset = open_split(from, "all");
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_writer *writer;
    struct dl2_bytes scratch = DL2_BYTES_INIT;
    int status = dl2_writer_open_like(at(to), options, dataset, &writer, &error);
    for (size_t i = 0; status == DL2_OK && i < dl2_dataset_count(dataset); i++) {
        const struct dl2_sample sample = sample_of(dataset, i);
        const uint8_t *data;
        size_t size;
        read_sample(dataset, i, &scratch, &data, &size);
        status =
            dl2_writer_add(writer, sample.key, sample.extension, sample.label, data, size, &error);
    }
    if (status == DL2_OK)
        status = dl2_writer_finish(writer, &error);
    dl2_writer_close(writer);
    if (status < 0)
        fail_msg("%s", error.message);
    dl2_bytes_free(&scratch);
    dl2_dataset_close(dataset);
}

static void compare_split(const char *a, const char *b, const char *split)
{
    struct dl2_dataset *one = open_any(a, split), *two = open_any(b, split);
    assert_int_equal(!one, !two);
    if (!one)
        return;
    struct dl2_bytes scratches[2] = {DL2_BYTES_INIT, DL2_BYTES_INIT};
    assert_int_equal(dl2_dataset_count(one), dl2_dataset_count(two));
    assert_int_equal(dl2_dataset_class_count(one), dl2_dataset_class_count(two));
    for (unsigned i = 0; i < dl2_dataset_class_count(one); i++)
        assert_string_equal(dl2_dataset_class_name(one, i), dl2_dataset_class_name(two, i));
    for (size_t i = 0; i < dl2_dataset_count(one); i++) {
        const struct dl2_sample x = sample_of(one, i), y = sample_of(two, i);
        assert_string_equal(x.key, y.key);
        assert_int_equal(x.label, y.label);
        assert_int_equal(x.bytes, y.bytes);
        const uint8_t *p, *q;
        size_t m, n;
        read_sample(one, i, &scratches[0], &p, &m);
        read_sample(two, i, &scratches[1], &q, &n);
        assert_int_equal(m, n);
        assert_memory_equal(p, q, m);
        size_t first, count;
        assert_true(dl2_dataset_find(two, x.key, &first, &count));
        assert_int_equal(first, i);
        assert_int_equal(count, 1);
        /* Where it says that it lies it lies. */
        struct dl2_location location;
        uint8_t bytes[512];
        assert_true(dl2_dataset_locate(two, i, &location));
        assert_int_equal(location.bytes, n);
        assert_true(location.fd >= 0 && n <= sizeof bytes);
        assert_int_equal(pread(location.fd, bytes, n, (off_t)location.offset), n);
        assert_memory_equal(bytes, q, n);
        assert_int_equal(dl2_dataset_verify(two, i, bytes, n, NULL), DL2_OK);
        assert_non_null(strstr(y.path, dl2_path_base(location.path)));
        assert_non_null(strstr(y.path, x.key));
    }
    dl2_bytes_free(&scratches[0]);
    dl2_bytes_free(&scratches[1]);
    dl2_dataset_close(one);
    dl2_dataset_close(two);
}

/* The same samples, labels, order, classes and parts, whether the index is read or made. */
static void check_pack(const char *from, const char *container)
{
    const struct dl2_writer_options options = {.container = container, .shard_samples = 3};
    pack_with(from, "packed", &options);
    for (int index = 1; index >= 0; index--) {
        if (!index)
            assert_int_equal(unlink(at("packed/dl2-index.bin")), 0);
        static const char *const splits[] = {"all", "train", "val", "test", "holdout"};
        for (size_t i = 0; i < sizeof splits / sizeof *splits; i++)
            compare_split(from, "packed", splits[i]);
    }
    /* An index that is made afterwards says the same. */
    size_t count;
    struct dl2_error error = DL2_ERROR_INIT;
    if (dl2_dataset_write_index(at("packed"), &as_it_is, NULL, 2, &count, NULL, &error) < 0)
        fail_msg("%s", error.message);
    compare_split(from, "packed", "all");
    remove_folder("packed");
}

static void put_photos(const char *folder, unsigned classes, unsigned each)
{
    for (unsigned c = 0; c < classes; c++)
        for (unsigned i = 0; i < each; i++) {
            char name[128];
            snprintf(name, sizeof name, "%s/class %u/%03u.jpg", folder, c, 7 * i % 101);
            put(name);
        }
}

static void check_container(const char *container)
{
    put_photos("plain", 3, 7);
    check_pack("plain", container);
    put_photos("parts/train", 3, 5);
    put_photos("parts/val", 2, 2);
    put("parts/val/only here/1.jpg");
    put("parts/train/stray.jpg");
    put("parts/test/rose/5.jpg");
    put_photos("parts/holdout", 2, 3);
    put("parts/holdout/unknown/1.jpg");
    put("parts/0 notes/unknown/1.jpg");
    check_pack("parts", container);
    put_photos("beside train/train", 2, 3);
    put_photos("beside train/fold", 2, 2);
    check_pack("beside train", container);
    put_photos("names/Training", 2, 5);
    put_photos("names/validation", 2, 2);
    put_photos("names/test", 2, 3);
    check_pack("names", container);
    put("flat/a.jpg");
    put("flat/b.jpg");
    put("flat/ab.jpg");
    check_pack("flat", container);
    put("train-is-a-class/train/1.jpg");
    put("train-is-a-class/train/2.jpg");
    put("train-is-a-class/plane/1.jpg");
    check_pack("train-is-a-class", container);
    /* Names that need care: dots, per cent signs, long ones, other scripts. */
    put("odd/c/a.b.jpg");
    put("odd/c/a%2Eb.jpg");
    put("odd/c/100%.png");
    put("odd/c/a-b.jpg");
    put("odd/Bl\xc3\xbcte \xf0\x9f\x8c\xb9/\"quoted\" \\ \t.jpg");
    char name[400] = "odd/";
    memset(name + 4, 'd', 90);
    memcpy(name + 94, "/x/", 3);
    memset(name + 97, 'n', 90);
    strcpy(name + 187, ".jpg");
    put(name);
    memset(name + 97, 'm', 200);
    strcpy(name + 297, ".jpg");
    put(name);
    check_pack("odd", container);
}

/* What a writer replaces: its own folders of splits, whatever their names, and no others. */
static void test_replaces_splits_by_other_names(void **state)
{
    (void)state;
    const struct dl2_writer_options options = {.container = "tar"};
    put_photos("parts/train", 2, 3);
    put_photos("parts/holdout", 2, 2);
    put_photos("plain", 2, 2);
    pack_with("parts", "p", &options);
    assert_int_equal(access(at("p/holdout/shard-000000.tar"), F_OK), 0);
    pack_with("parts", "p", &options);
    expect_count("p", 10);
    pack_with("plain", "p", &options);
    assert_int_equal(access(at("p/holdout"), F_OK), -1);
    expect_count("p", 4);
    /* One that was killed left a mark, which names its folders. */
    struct dl2_writer_options parts = {.container = "tar", .has_parts = true};
    struct dl2_writer *writer;
    struct dl2_bytes mark = DL2_BYTES_INIT;
    assert_int_equal(dl2_writer_open(at("k"), &parts, NULL, 0, &writer, NULL), 0);
    assert_int_equal(dl2_writer_add(writer, "holdout/a", "jpg", -1, "x", 1, NULL), 0);
    load("k/.dl2-unfinished", &mark);
    dl2_writer_close(writer);
    assert_int_equal(access(at("k/holdout"), F_OK), -1);
    put_bytes("k/.dl2-unfinished", mark.data, mark.size);
    put("k/holdout/shard-000000.tar");
    put("k/mine/shard-000000.tar");
    assert_int_equal(dl2_writer_open(at("k"), &parts, NULL, 0, &writer, NULL), DL2_ERR_ARGUMENT);
    assert_int_equal(access(at("k/holdout/shard-000000.tar"), F_OK), 0);
    remove_folder("k/mine");
    pack_with("plain", "k", &options);
    assert_int_equal(access(at("k/holdout"), F_OK), -1);
    dl2_bytes_free(&mark);
}

static void test_gulp_is_the_folder(void **state)
{
    (void)state;
    check_container("gulp");
}

static void test_tar_is_the_folder(void **state)
{
    (void)state;
    check_container("tar");
}

/* ---- Golden: GulpIO's own bytes */

static void load_golden(const char *dataset, const char *name, struct dl2_bytes *bytes)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/tests/dataset/gulpio/%s/%s", getenv("srcdir"), dataset, name);
    assert_int_equal(dl2_file_read(path, 1 << 20, bytes, NULL), 0);
}

static const char *const golden_files[] = {"data_0.gulp", "meta_0.gmeta", "label2idx.json"};

/* Into the folder gulp. */
static void put_golden(const char *dataset)
{
    struct dl2_bytes bytes = DL2_BYTES_INIT;
    for (int i = 0; i < 3; i++) {
        char name[64];
        load_golden(dataset, golden_files[i], &bytes);
        snprintf(name, sizeof name, "gulp/%s", golden_files[i]);
        put_bytes(name, bytes.data, bytes.size);
    }
    dl2_bytes_free(&bytes);
}

/* GulpIO's items, with the file of their frames. */
static json_t *golden_items(const char *dataset, struct dl2_bytes *data)
{
    struct dl2_bytes meta = DL2_BYTES_INIT;
    load_golden(dataset, "data_0.gulp", data);
    load_golden(dataset, "meta_0.gmeta", &meta);
    json_t *items = json_loadb((const char *)meta.data, meta.size, 0, NULL);
    assert_non_null(items);
    dl2_bytes_free(&meta);
    return items;
}

/* A frame is [offset, fill, bytes with the fill]. */
static const uint8_t *golden_frame(const struct dl2_bytes *data, const json_t *frame, size_t *size)
{
    int offset, fill, length;
    assert_int_equal(json_unpack((json_t *)frame, "[iii]", &offset, &fill, &length), 0);
    *size = (size_t)(length - fill);
    return data->data + offset;
}

static void test_reads_what_gulpio_wrote(void **state)
{
    (void)state;
    put_golden("mixed");
    /* The order of label2idx.json, not of the alphabet. */
    expect_split("gulp", "all", "17:0 film:1 rose/1:0");
    struct dl2_dataset_options by_frame = DL2_DATASET_DEFAULTS;
    by_frame.by_frame = true;
    struct dl2_dataset *dataset = open_with("gulp", &by_frame);
    assert_string_equal(describe(dataset),
                        "17/00000:0 film/00000:1 film/00001:1 film/00002:1 rose/1/00000:0");
    assert_string_equal(dl2_dataset_class_name(dataset, 0), "tulip");
    assert_string_equal(dl2_dataset_class_name(dataset, 1), "r\xc3\xb6schen");
    size_t first, count;
    assert_true(dl2_dataset_find(dataset, "film", &first, &count));
    assert_int_equal(first, 1);
    assert_int_equal(count, 3);
    assert_true(dl2_dataset_find(dataset, "film/00001", &first, &count));
    assert_int_equal(first, 2);
    assert_false(dl2_dataset_find(dataset, "fil", &first, &count));
    struct dl2_bytes data = DL2_BYTES_INIT;
    json_t *items = golden_items("mixed", &data), *item, *frame;
    const char *key;
    size_t i, size, sample = 0;
    json_object_foreach(items, key, item)
        json_array_foreach(json_object_get(item, "frame_info"), i, frame)
    {
        const uint8_t *bytes = golden_frame(&data, frame, &size);
        expect_sample(dataset, sample++, bytes, size);
    }
    assert_int_equal(sample, 5);
    json_decref(items);
    dl2_bytes_free(&data);
    dl2_dataset_close(dataset);
    /* Frames of one item are not parted. */
    struct dl2_dataset *val = open_split("gulp", "val");
    dataset = open_split("gulp", "train");
    const bool in_train = dl2_dataset_find(dataset, "film", &first, &count);
    if (!in_train)
        assert_true(dl2_dataset_find(val, "film", &first, &count));
    assert_int_equal(dl2_dataset_frames(in_train ? dataset : val, first).count, 3);
    dl2_dataset_close(dataset);
    dl2_dataset_close(val);
}

/* The same frames, added item by item, make the same files. */
static void writes_what_gulpio_writes(const char *golden, bool clips)
{
    const struct dl2_writer_options options = {.container = "gulp"};
    const char *const classes[] = {"tulip", "r\xc3\xb6schen"};
    struct dl2_writer *writer;
    assert_int_equal(dl2_writer_open(at("ours"), &options, classes, 2, &writer, NULL), 0);
    struct dl2_bytes data = DL2_BYTES_INIT, ours = DL2_BYTES_INIT;
    json_t *items = golden_items(golden, &data), *item;
    const char *key;
    json_object_foreach(items, key, item)
    {
        json_t *frame, *meta;
        struct dl2_writer_frame frames[3];
        int label;
        size_t size;
        assert_int_equal(json_unpack(item, "{s[o*]s[o]}", "frame_info", &frame, "meta_data", &meta),
                         0);
        assert_int_equal(json_unpack(meta, "{si}", "idx", &label), 0);
        struct dl2_error error = DL2_ERROR_INIT;
        const json_t *all = json_object_get(item, "frame_info");
        for (size_t i = 0; clips && i < json_array_size(all); i++) {
            frames[i].data = golden_frame(&data, json_array_get(all, i), &frames[i].size);
            frames[i].extension = "jpg";
        }
        const uint8_t *bytes = clips ? NULL : golden_frame(&data, frame, &size);
        const int status = clips ? dl2_writer_add_clip(writer, key, label, frames,
                                                       json_array_size(all), NULL, &error)
                                 : dl2_writer_add(writer, key, "jpg", label, bytes, size, &error);
        if (status < 0)
            fail_msg("%s", error.message);
    }
    assert_int_equal(json_object_size(items), clips ? 3 : 4);
    json_decref(items);
    assert_int_equal(dl2_writer_finish(writer, NULL), 0);
    dl2_writer_close(writer);
    for (int i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "ours/%s", golden_files[i]);
        load(name, &ours);
        load_golden(golden, golden_files[i], &data);
        assert_int_equal(ours.size, data.size);
        assert_memory_equal(ours.data, data.data, data.size);
    }
    dl2_bytes_free(&ours);
    dl2_bytes_free(&data);
}

static void test_writes_what_gulpio_writes(void **state)
{
    (void)state;
    writes_what_gulpio_writes("singles", false);
}

static void test_writes_clips_of_gulpio(void **state)
{
    (void)state;
    writes_what_gulpio_writes("mixed", true);
}

/* ---- Refusals */

static void put_meta(const char *meta)
{
    put_bytes("g/data_0.gulp", "abcdefgh", 8);
    put_text("g/meta_0.gmeta", meta);
}

static void refuse_meta(const char *meta, int status, const char *word)
{
    put_meta(meta);
    refuse("g", status, word);
    refuse("g", status, "meta_0.gmeta");
}

static void test_gulp_refusals(void **state)
{
    (void)state;
    put_meta("{\"1\": {\"frame_info\": [[0, 1, 4], [4, 3, 4]], \"meta_data\": [{}]}}");
    expect_split("g", "all", "1:-1");
    refuse_meta("", DL2_ERR_FORMAT, "empty");
    refuse_meta("{}", DL2_ERR_FORMAT, "no items");
    refuse_meta("[]", DL2_ERR_FORMAT, "no items");
    refuse_meta("{\"a\": 1, \"a\": 2}", DL2_ERR_FORMAT, "duplicate");
    refuse_meta("{\"a\": {}}", DL2_ERR_FORMAT, "no frames");
    refuse_meta("{\"a\": {\"frame_info\": [[0, 0]]}}", DL2_ERR_FORMAT, "not [offset");
    refuse_meta("{\"a\": {\"frame_info\": [[-4, 0, 4]]}}", DL2_ERR_FORMAT, "not [offset");
    refuse_meta("{\"a\": {\"frame_info\": [[0, 0, 1.5]]}}", DL2_ERR_FORMAT, "not [offset");
    refuse_meta("{\"a\": {\"frame_info\": [[8, 0, 4]]}}", DL2_ERR_FORMAT, "cut short");
    refuse_meta("{\"a\": {\"frame_info\": [[0, 0, 9223372036854775807]]}}", DL2_ERR_FORMAT,
                "cut short");
    refuse_meta("{\"a\": {\"frame_info\": [[4, 4, 4]]}}", DL2_ERR_FORMAT, "fill");
    refuse_meta("{\"a\": {\"frame_info\": [[0, 3, 3]]}}", DL2_ERR_FORMAT, "fill");
    refuse_meta("{\"a\": {\"frame_info\": [[0, 0, 4]]}}", DL2_ERR_FORMAT, "end at 4");
    refuse_meta("{\"../a\": {\"frame_info\": [[0, 0, 8]]}}", DL2_ERR_FORMAT, "..");
    refuse_meta("{\"a//b\": {\"frame_info\": [[0, 0, 8]]}}", DL2_ERR_FORMAT, "empty");
    put_meta("{\"a\": {\"frame_info\": [[0, 0, 8]]}}");
    put_bytes("g/data_1.gulp", "abcdefgh", 8);
    refuse("g", DL2_ERR_FORMAT, "data_1.gulp has no meta");
    const char *same = "{\"a\": {\"frame_info\": [[0, 0, 8]]}}";
    put_text("g/meta_1.gmeta", same);
    refuse("g", DL2_ERR_FORMAT, "comes twice");
    assert_int_equal(unlink(at("g/data_1.gulp")), 0);
    refuse("g", DL2_ERR_FORMAT, "meta_1.gmeta has no data");
    assert_int_equal(rename(at("g/meta_1.gmeta"), at("g/meta_01.gmeta")), 0);
    put_bytes("g/data_1.gulp", "abcdefgh", 8);
    put_bytes("g/data_001.gulp", "abcdefgh", 8);
    refuse("g", DL2_ERR_FORMAT, "same number");
}

static void tar_sum(uint8_t *header)
{
    memset(header + 148, ' ', 8);
    unsigned sum = 0;
    for (int i = 0; i < 512; i++)
        sum += header[i];
    snprintf((char *)header + 148, 8, "%06o", sum);
}

/* A tar header as small as it can be. */
static size_t tar_member(uint8_t *out, const char *name, char type, const void *data, size_t size)
{
    memset(out, 0, 512);
    strncpy((char *)out, name, 100);
    snprintf((char *)out + 124, 12, "%011o", (unsigned)size & 0xffffff);
    out[156] = (uint8_t)type;
    memcpy(out + 257, "ustar\00000", 8);
    tar_sum(out);
    const size_t room = (size + 511) / 512 * 512;
    memset(out + 512, 0, room);
    memcpy(out + 512, data, size);
    return 512 + room;
}

struct tar {
    uint8_t bytes[524288];
    size_t size;
};

static void tar_add(struct tar *tar, const char *name, const char *text)
{
    tar->size += tar_member(tar->bytes + tar->size, name, '0', text, strlen(text));
}

/* KEY.jpg with the key's contents, and KEY.cls. */
static void tar_labeled(struct tar *tar, const char *key, const char *label)
{
    char name[64];
    snprintf(name, sizeof name, "%s.cls", key);
    tar_add(tar, name, label);
    snprintf(name, sizeof name, "%s.jpg", key);
    tar_add(tar, name, key);
}

static void tar_end(struct tar *tar, const char *name)
{
    memset(tar->bytes + tar->size, 0, 1024);
    tar->size += 1024;
    put_bytes(name, tar->bytes, tar->size);
    tar->size = 0;
}

static void test_webdataset_rules(void **state)
{
    (void)state;
    struct tar tar = {.size = 0};
    tar_add(&tar, "a/b/0017.cls", "2\n");
    tar_add(&tar, "a/b/0017.jpg", "one");
    tar_add(&tar, "a/b/0017.json", "{}");
    tar_add(&tar, "a/b/0018.jpg", "two");
    tar_add(&tar, "a/b/0018.seg.png", "mask");
    tar_add(&tar, "a/b/0018.cls", " 0 ");
    tar_add(&tar, "a/b/0019.txt", "no image");
    tar_add(&tar, "./._a", "apple");
    tar_add(&tar, "../../etc/passwd.jpg", "up");
    tar_add(&tar, "//x/./0020.png", "three");
    tar_end(&tar, "w/x-000000.tar");
    expect_split("w", "all", "a/b/0017:2 a/b/0018:0 x/0020:-1");
    struct dl2_dataset *dataset = open_split("w", "all");
    assert_int_equal(dl2_dataset_class_count(dataset), 3);
    assert_string_equal(dl2_dataset_class_name(dataset, 1), "1");
    assert_string_equal(sample_of(dataset, 1).extension, "jpg");
    assert_int_equal(sample_of(dataset, 1).bytes, 3);
    dl2_dataset_close(dataset);
    put_bytes("w/classes.txt", "tulip\r\nrose\naster", 17);
    dataset = open_split("w", "all");
    assert_string_equal(describe(dataset), "a/b/0017:2 a/b/0018:0 x/0020:-1");
    assert_string_equal(dl2_dataset_class_name(dataset, 2), "aster");
    dl2_dataset_close(dataset);
    put_bytes("w/classes.txt", "tulip\n", 6);
    refuse("w", DL2_ERR_FORMAT, "label 2");
    /* One file by itself, and labels that are words. */
    tar_labeled(&tar, "1", "tulip");
    tar_add(&tar, "2.jpg", "2");
    tar_add(&tar, "2.cls", "aster");
    tar_end(&tar, "one.tar");
    expect_split("one.tar", "all", "1:1 2:0");
    /* The parts by the shards' names. */
    tar_labeled(&tar, "1", "0");
    tar_end(&tar, "p/set-train-000000.tar");
    tar_labeled(&tar, "1", "1");
    tar_end(&tar, "p/set-val-000000.tar");
    expect_split("p", "train", "train/1:0");
    expect_split("p", "val", "val/1:1");
    tar_labeled(&tar, "2", "1");
    tar_end(&tar, "p/set-Test-000000.tar");
    tar_labeled(&tar, "3", "1");
    tar_end(&tar, "p/set-validation-000001.tar");
    expect_split("p", "test", "test/2:1");
    expect_split("p", "val", "val/1:1 val/3:1");
    expect_split("p/set-train-000000.tar", "train", "1:0");
    /* Shards in folders of splits, by other names. */
    tar_labeled(&tar, "1", "0");
    tar_end(&tar, "q/training/a.tar");
    tar_labeled(&tar, "1", "1");
    tar_end(&tar, "q/valid/a.tar");
    expect_split("q", "train", "training/1:0");
    expect_split("q", "val", "valid/1:1");
    expect_split("q/training", "train", "1:0");
    /* Beside these any folder of shards is a split; its labels alone make no classes. */
    tar_labeled(&tar, "1", "0");
    tar_add(&tar, "2.jpg", "2");
    tar_add(&tar, "2.cls", "7");
    tar_end(&tar, "q/holdout/x.tar");
    put("q/raw/old.tar.gz");
    put("q/raw/old.tar");
    expect_split("q", "holdout", "holdout/1:0");
    expect_split("q", "val", "valid/1:1");
    struct dl2_dataset *numbered = open_split("q", "all");
    assert_int_equal(dl2_dataset_class_count(numbered), 2);
    dl2_dataset_close(numbered);
    /* A tree of files: labels by folders, and dots in names. */
    tar_add(&tar, "rose/img.1.jpg", "1");
    tar_add(&tar, "rose/img.2.jpg", "2");
    tar_add(&tar, "aster/x.jpg", "3");
    tar_end(&tar, "t/tree.tar");
    expect_split("t", "all", "rose/img.1:1 rose/img.2:1 aster/x:0");
    tar_add(&tar, "train/rose/1.jpg", "1");
    tar_add(&tar, "val/rose/1.jpg", "2");
    tar_end(&tar, "t/tree.tar");
    expect_split("t", "val", "val/rose/1:0");
    /* Joined: the second begins behind the empty blocks that close the first. */
    tar_labeled(&tar, "1", "0");
    memset(tar.bytes + tar.size, 0, 10240);
    tar.size += 10240;
    tar_labeled(&tar, "2", "1");
    tar_end(&tar, "joined.tar");
    expect_split("joined.tar", "all", "1:0 2:1");
    /* A tar file beside folders is not what they are about. */
    put("mixed/rose/1.jpg");
    tar_end(&tar, "mixed/old.tar");
    struct dl2_dataset *mixed = open_split("mixed", "all");
    assert_int_equal(sample_of(mixed, dl2_dataset_count(mixed) - 1).label, 0);
    dl2_dataset_close(mixed);
}

static void test_tar_extensions(void **state)
{
    (void)state;
    struct tar tar = {.size = 0};
    char name[200] = "long/";
    memset(name + 5, 'x', 150);
    strcpy(name + 155, ".jpg");
    tar.size += tar_member(tar.bytes, "././@LongLink", 'L', name, strlen(name) + 1);
    tar_add(&tar, "long/xxx", "gnu");
    char pax[300];
    name[5] = 'y';
    snprintf(pax, sizeof pax, "20 atime=1234567890\n169 path=%s\n", name);
    tar.size += tar_member(tar.bytes + tar.size, "PaxHeader", 'x', pax, strlen(pax));
    tar_add(&tar, "long/yyy", "pax");
    tar.size += tar_member(tar.bytes + tar.size, "folder.jpg/", '5', "", 0);
    tar.size += tar_member(tar.bytes + tar.size, "link.jpg", '2', "", 0);
    tar.size += tar_member(tar.bytes + tar.size, "global", 'g', "13 path=g.jpg\n", 14);
    tar.size += tar_member(tar.bytes + tar.size, "old/1.jpg", '\0', "old", 3);
    tar_end(&tar, "x.tar");
    struct dl2_dataset *dataset = open_split("x.tar", "all");
    assert_int_equal(dl2_dataset_count(dataset), 3);
    name[155] = '\0';
    assert_string_equal(sample_of(dataset, 1).key, name);
    name[5] = 'x';
    assert_string_equal(sample_of(dataset, 0).key, name);
    assert_string_equal(sample_of(dataset, 2).key, "old/1");
    dl2_dataset_close(dataset);
}

static void tar_link(struct tar *tar, const char *name, char type, const char *target)
{
    uint8_t *header = tar->bytes + tar->size;
    tar->size += tar_member(header, name, type, "", 0);
    memcpy(header + 157, target, strlen(target));
    tar_sum(header);
}

/* A hard link is the file that it is another name of, as tar extracts it. */
static void test_tar_hard_links(void **state)
{
    (void)state;
    struct tar tar = {.size = 0};
    tar_add(&tar, "./rose/1.jpg", "first");
    tar_link(&tar, "./rose/2.jpg", '1', "./rose/1.jpg");
    tar_add(&tar, "rose/.hidden.jpg", "other");
    tar_link(&tar, "aster/3.jpg", '1', "rose/2.jpg");
    tar_link(&tar, "aster/4.jpg", '1', "rose/.hidden.jpg");
    char name[160], target[160], pax[400];
    snprintf(target, sizeof target, "aster/%0120d.jpg", 7);
    snprintf(name, sizeof name, "aster/%0120d.jpg", 8);
    tar.size += tar_member(tar.bytes + tar.size, "././@LongLink", 'L', target, strlen(target) + 1);
    tar_add(&tar, "long", "long");
    tar.size += tar_member(tar.bytes + tar.size, "././@LongLink", 'K', target, strlen(target) + 1);
    tar_link(&tar, "aster/5.jpg", '1', "cut off");
    snprintf(pax, sizeof pax, "%zu linkpath=%s\n", strlen(target) + 14, target);
    tar.size += tar_member(tar.bytes + tar.size, "PaxHeader", 'x', pax, strlen(pax));
    tar_link(&tar, "aster/6.jpg", '1', "cut off");
    tar_end(&tar, "l.tar");
    struct dl2_dataset *dataset = open_split("l.tar", "all");
    static const char *const contents[] = {"first", "first", "first", "other",
                                           "long",  "long",  "long"};
    assert_int_equal(dl2_dataset_count(dataset), 7);
    for (size_t i = 0; i < 7; i++)
        expect_sample(dataset, i, contents[i], strlen(contents[i]));
    assert_string_equal(sample_of(dataset, 1).key, "rose/2");
    assert_int_equal(sample_of(dataset, 1).label, 1);
    dl2_dataset_close(dataset);
    tar_link(&tar, "rose/2.jpg", '1', "rose/1.jpg");
    tar_add(&tar, "rose/1.jpg", "late");
    tar_end(&tar, "l.tar");
    refuse("l.tar", DL2_ERR_FORMAT, "rose/2.jpg is a hard link to rose/1.jpg");
}

/* What lies beside a sample, by its key; NULL: nothing. */
static void expect_sidecar(const struct dl2_dataset *dataset, const char *key,
                           const char *extension, const char *text)
{
    struct dl2_bytes bytes = DL2_BYTES_INIT;
    struct dl2_error error = DL2_ERROR_INIT;
    size_t first, count;
    assert_true(dl2_dataset_find(dataset, key, &first, &count));
    const int status = dl2_dataset_read_sidecar(dataset, first, extension, &bytes, &error);
    if (status < 0)
        fail_msg("%s", error.message);
    assert_int_equal(status, text ? 1 : 0);
    if (text) {
        assert_int_equal(bytes.size, strlen(text));
        assert_memory_equal(bytes.data, text, bytes.size);
    }
    dl2_bytes_free(&bytes);
}

/* All that lies beside a sample, as "EXT=BYTES EXT=BYTES". */
static void expect_sidecars(const struct dl2_dataset *dataset, const char *key, const char *want)
{
    struct dl2_sidecars sidecars = {0};
    struct dl2_error error = DL2_ERROR_INIT;
    size_t first, count, size;
    char *text = NULL;
    assert_true(dl2_dataset_find(dataset, key, &first, &count));
    if (dl2_dataset_read_sidecars(dataset, first, &sidecars, &error) < 0)
        fail_msg("%s", error.message);
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    for (size_t i = 0; i < sidecars.count; i++)
        fprintf(out, "%s%s=%.*s", i ? " " : "", sidecars.items[i].extension,
                (int)sidecars.items[i].bytes.size,
                sidecars.items[i].bytes.size ? (const char *)sidecars.items[i].bytes.data : "");
    fclose(out);
    assert_string_equal(text, want);
    free(text);
    dl2_sidecars_free(&sidecars);
}

/* The message that contains the text is there, whether the index is made or read. */
static void expect_message(const char *name, const char *text)
{
    for (int index = 0; index < 2; index++) {
        struct dl2_dataset *dataset = open_split(name, "all");
        bool matters, found = false;
        const char *message;
        for (size_t i = 0; (message = dl2_dataset_message(dataset, i, &matters)); i++)
            found |= matters && strstr(message, text);
        dl2_dataset_close(dataset);
        if (!found)
            fail_msg("%s: no message of \"%s\"", name, text);
        size_t count;
        assert_int_equal(dl2_dataset_write_index(at(name), &as_it_is, NULL, 1, &count, NULL, NULL),
                         DL2_OK);
    }
}

static void test_what_tar_does_not_give(void **state)
{
    (void)state;
    struct tar tar = {.size = 0};
    tar_add(&tar, "1.jpg", "1");
    tar_add(&tar, "1.json", "{\"label\": 3}");
    tar_end(&tar, "json/a.tar");
    expect_message("json", "labels are read from .cls alone");
    tar_add(&tar, "rose/1.jpg", "1");
    tar_link(&tar, "rose/2.jpg", '2', "1.jpg");
    tar_end(&tar, "links/a.tar");
    expect_message("links", "symbolic links: 1, such as rose/2.jpg in a.tar");
}

static void expect_no_message(const char *name, const char *text)
{
    struct dl2_dataset *dataset = open_split(name, "all");
    bool matters;
    const char *message;
    for (size_t i = 0; (message = dl2_dataset_message(dataset, i, &matters)); i++)
        assert_null(strstr(message, text));
    dl2_dataset_close(dataset);
}

/* The members of a sample that lie apart in a shard are refused; those without an image counted. */
static void test_members_apart(void **state)
{
    (void)state;
    struct tar tar = {.size = 0};
    tar_add(&tar, "a/0.jpg", "0");
    tar_add(&tar, "a/1.jpg", "1");
    tar_add(&tar, "a/0.cls", "0");
    tar_add(&tar, "a/1.cls", "1");
    tar_end(&tar, "apart/train/s.tar");
    refuse("apart", DL2_ERR_FORMAT, "s.tar: sample \"a/0\" lies apart");
    tar_add(&tar, "v%2E1.json", "{}"); /* its key has a dot */
    tar_add(&tar, "0.jpg", "0");
    tar_add(&tar, "v%2E1.jpg", "1");
    tar_end(&tar, "apart/train/s.tar");
    refuse("apart", DL2_ERR_FORMAT, "sample \"v.1\" lies apart");
    tar_add(&tar, "0.jpg", "0");
    tar_add(&tar, "1.jpg", "1");
    tar_add(&tar, "0.depth.png", "d"); /* may be an image */
    tar_add(&tar, "0.cls", "1");
    tar_end(&tar, "apart/train/s.tar");
    refuse("apart", DL2_ERR_FORMAT, "\"train/0\" comes twice in train/s.tar");
    /* What belongs to no image of the shard. */
    tar_labeled(&tar, "1", "1");
    tar_add(&tar, "2.cls", "1");
    tar_add(&tar, "2.txt", "1");
    tar_add(&tar, "3.mask.png", "1");
    tar_end(&tar, "apart/train/s.tar");
    tar_labeled(&tar, "2", "0");
    tar_end(&tar, "apart/train/t.tar");
    expect_split("apart", "train", "train/1:1 train/2:0");
    expect_message("apart",
                   "members of samples that have no image: 3, such as 2.cls in train/s.tar");
    tar_add(&tar, "x.cls", "1");
    tar_end(&tar, "none/s.tar");
    refuse("none", DL2_ERR_FORMAT, "no sample has an image; there is x.cls in s.tar");
}

/* An extension without a further dot comes first, and masks are no images. */
static void test_which_member_is_the_image(void **state)
{
    (void)state;
    struct tar tar = {.size = 0};
    tar_add(&tar, "0.cls", "0");
    tar_add(&tar, "0.depth.png", "depth");
    tar_add(&tar, "0.jpg", "photograph");
    tar_add(&tar, "0.mask.png", "mask");
    tar_add(&tar, "1.alpha.png", "alpha");
    tar_add(&tar, "1.cls", "1");
    tar_add(&tar, "1.png", "photograph");
    tar_add(&tar, "2.cls", "0");
    tar_add(&tar, "2.seg.png", "seg");
    tar_add(&tar, "2.x.MASK.png", "mask");
    tar_add(&tar, "2.webp", "photograph");
    tar_add(&tar, "2.wav", "sound");
    tar_end(&tar, "w/s.tar");
    struct dl2_dataset *dataset = open_split("w", "all");
    assert_string_equal(describe(dataset), "0:0 1:1 2:0");
    static const char *const extensions[] = {"jpg", "png", "webp"};
    for (size_t i = 0; i < 3; i++) {
        expect_sample(dataset, i, "photograph", strlen("photograph"));
        assert_string_equal(sample_of(dataset, i).extension, extensions[i]);
    }
    expect_sidecars(dataset, "0", "depth.png=depth mask.png=mask");
    expect_sidecars(dataset, "1", "alpha.png=alpha");
    expect_sidecar(dataset, "2", "seg.png", "seg");
    dl2_dataset_close(dataset);
    expect_message("w", "images that are not loaded, since their samples have another: 2, such as "
                        "0.depth.png in s.tar");
    /* Shards of images alone, too: these are no tree of files with dots in their names. */
    tar_add(&tar, "0.depth.png", "depth");
    tar_add(&tar, "0.jpg", "photograph");
    tar_add(&tar, "1.jpg", "photograph");
    tar_add(&tar, "1.mask.png", "mask");
    tar_end(&tar, "i/s.tar");
    expect_split("i", "all", "0:-1 1:-1");
    expect_message("i", "since their samples have another: 1, such as 0.depth.png");
    tar_add(&tar, "a.1.jpg", "1");
    tar_add(&tar, "a.1.mask.png", "mask");
    tar_add(&tar, "a.2.jpg", "2");
    tar_end(&tar, "m/s.tar");
    expect_split("m", "all", "a.1:-1 a.2:-1");
    expect_message("m", "members of samples that have no image: 1, such as a.1.mask.png");
    /* Masks beside their images need no message. */
    tar_add(&tar, "0.jpg", "photograph");
    tar_add(&tar, "0.mask.png", "mask");
    tar_end(&tar, "q/s.tar");
    expect_no_message("q", "s.tar");
}

/* Keys end at the first dot: what that takes for one sample, and labels that are not read. */
static void test_dots_in_keys(void **state)
{
    (void)state;
    struct tar tar = {.size = 0};
    for (int i = 0; i < 10; i++) {
        char name[32];
        snprintf(name, sizeof name, "photo.%04d.cls", i);
        tar_add(&tar, name, "1");
        snprintf(name, sizeof name, "photo.%04d.jpg", i);
        tar_add(&tar, name, "1");
    }
    tar_end(&tar, "d/s.tar");
    expect_split("d", "all", "photo:-1");
    expect_message("d", "images that are not loaded, since their samples have another: 9, such as "
                        "photo.0001.jpg in s.tar");
    expect_message("d", "labels that are not read: 10, such as photo.0000.cls in s.tar");
    tar_add(&tar, "v.1/0.input.jpg", "0");
    tar_add(&tar, "v.1/0.output.cls", "0");
    tar_add(&tar, "v.1/1.jpg", "0");
    tar_add(&tar, "v.1/1.class", "0");
    tar_end(&tar, "o/s.tar");
    expect_message("o", "labels that are not read: 2, such as v.1/0.output.cls in s.tar");
    tar_labeled(&tar, "0", "0");
    tar_add(&tar, "0.coarse.cls", "7"); /* beside the label */
    tar_end(&tar, "o/s.tar");
    expect_no_message("o", "not read");
}

/* An option says which member is the image; an index keeps it. */
static void test_image_extension(void **state)
{
    (void)state;
    struct tar tar = {.size = 0};
    tar_add(&tar, "0.cls", "0");
    tar_add(&tar, "0.depth.png", "depth");
    tar_add(&tar, "0.jpg", "photograph");
    tar_add(&tar, "1.cls", "1");
    tar_add(&tar, "1.flac", "other");
    tar_add(&tar, "1.zip", "other");
    tar_add(&tar, "1.PNG", "photograph");
    tar_end(&tar, "x/s.tar");
    struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    const struct dl2_member_choice photographs = {.image_extension = "png,jpg"};
    options.members = photographs;
    size_t count;
    for (int index = 0; index < 3; index++) {
        struct dl2_dataset *dataset = open_with("x", &options);
        assert_string_equal(describe(dataset), "0:0 1:1");
        for (size_t i = 0; i < 2; i++)
            expect_sample(dataset, i, "photograph", strlen("photograph"));
        expect_sidecars(dataset, "0", "depth.png=depth");
        dl2_dataset_close(dataset);
        assert_int_equal(dl2_dataset_write_index(at("x"), index ? &as_it_is : &photographs, NULL, 1,
                                                 &count, NULL, NULL),
                         DL2_OK);
        options.members = as_it_is; /* it is in the index */
    }
    expect_no_message("x", "since their samples have another");
    options.members.image_extension = "depth.png"; /* which one sample has not */
    struct dl2_dataset *dataset = open_with("x", &options);
    assert_string_equal(describe(dataset), "0:0");
    expect_sample(dataset, 0, "depth", strlen("depth"));
    dl2_dataset_close(dataset);
    static const char *const bad[][2] = {{"gif", "no sample has an image .gif; there is 0.cls"},
                                         {"", "the extension of images is empty"}};
    for (size_t i = 0; i < 2; i++) {
        struct dl2_error error = DL2_ERROR_INIT;
        options.members.image_extension = bad[i][0];
        assert_true(dl2_dataset_open(at("x"), &options, &dataset, &error) < 0);
        assert_non_null(strstr(error.message, bad[i][1]));
    }
}

/* Two shards have the same keys: then keys have the shard's name, in all of their split. */
static void test_same_keys_in_shards(void **state)
{
    (void)state;
    struct tar tar = {.size = 0};
    for (int shard = 0; shard < 3; shard++) {
        char name[32];
        for (int i = 0; i < 3; i++) {
            snprintf(name, sizeof name, "rose/%d.txt", i);
            tar_add(&tar, name, shard == 1 ? "one" : "other");
            snprintf(name, sizeof name, "rose/%d", shard == 2 ? i + 7 : i);
            tar_labeled(&tar, name, "1");
        }
        snprintf(name, sizeof name, "k/train/x-%d.tar", shard);
        tar_end(&tar, name);
    }
    tar_labeled(&tar, "rose/0", "1");
    tar_link(&tar, "rose/1.jpg", '1', "rose/0.jpg");
    tar_add(&tar, "rose/1.txt", "linked");
    tar_end(&tar, "k/val/x-0.tar");
    const char *const train = "train/rose/x-0_0:1 train/rose/x-0_1:1 train/rose/x-0_2:1 "
                              "train/rose/x-1_0:1 train/rose/x-1_1:1 train/rose/x-1_2:1 "
                              "train/rose/x-2_7:1 train/rose/x-2_8:1 train/rose/x-2_9:1";
    expect_split("k", "train", train);
    expect_split("k", "val", "val/rose/0:1");
    expect_message("k", "several shards have the same names of samples, so keys have the shard's "
                        "name: train/rose/x-0_0");
    /* What lies beside them is found, also with the index that was just made. */
    struct dl2_dataset *dataset = open_split("k", "all");
    expect_sidecar(dataset, "train/rose/x-0_1", "txt", "other");
    expect_sidecar(dataset, "train/rose/x-1_1", "txt", "one");
    expect_sidecars(dataset, "train/rose/x-1_2", "txt=one");
    expect_sidecar(dataset, "val/rose/1", "txt", "linked");
    dl2_dataset_close(dataset);
    /* A shard by itself, and a split, of which the latter has the keys that it has in the whole. */
    expect_split("k/train/x-1.tar", "all", "rose/0:1 rose/1:1 rose/2:1");
    dataset = open_split("k/train", "all");
    assert_string_equal(sample_of(dataset, 3).key, "rose/x-1_0");
    dl2_dataset_close(dataset);
    /* Check sums of an index that is out of date are found by these keys. */
    const struct timespec later[2] = {{2000000000, 0}, {2000000000, 0}};
    assert_int_equal(utimensat(AT_FDCWD, at("k/train/x-2.tar"), later, 0), 0);
    struct dl2_bytes bytes = DL2_BYTES_INIT;
    load("k/train/x-1.tar", &bytes);
    for (size_t i = 0; i + 6 < bytes.size; i++)
        if (!memcmp(bytes.data + i, "rose/2", 6) && bytes.data[i + 6] == '\0')
            bytes.data[i] = 'R'; /* the image's bytes, which are its name */
    put_bytes("k/train/x-1.tar", bytes.data, bytes.size);
    dl2_bytes_free(&bytes);
    dataset = open_split("k", "train");
    const uint8_t *data;
    size_t size;
    assert_int_equal(dl2_dataset_read(dataset, 4, &bytes, &data, &size, NULL), DL2_OK);
    assert_int_equal(dl2_dataset_read(dataset, 5, &bytes, &data, &size, NULL), DL2_ERR_FORMAT);
    dl2_bytes_free(&bytes);
    dl2_dataset_close(dataset);
    /* GulpIO's ids are those of all chunks. */
    static const char meta[] = "{\"1\": {\"frame_info\": [[0, 0, 4]], \"meta_data\": [{}]}}";
    for (int i = 0; i < 2; i++) {
        char name[32];
        snprintf(name, sizeof name, "g/data_%d.gulp", i);
        put_bytes(name, "abcd", 4);
        snprintf(name, sizeof name, "g/meta_%d.gmeta", i);
        put_text(name, meta);
    }
    refuse("g", DL2_ERR_FORMAT, "\"1\" comes twice, in data_0.gulp and in data_1.gulp");
}

static void expect_label(const char *name, const char *field, const char *key, int label,
                         const char *class)
{
    struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    struct dl2_sample sample;
    size_t first, count;
    options.members.label_field = field;
    struct dl2_dataset *dataset = open_with(name, &options);
    assert_true(dl2_dataset_find(dataset, key, &first, &count));
    dl2_dataset_sample(dataset, first, &sample);
    assert_int_equal(sample.label, label);
    if (class)
        assert_string_equal(dl2_dataset_class_name(dataset, (unsigned)label), class);
    dl2_dataset_close(dataset);
}

static void refuse_field(const char *name, const char *field, int status, const char *text)
{
    struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_dataset *dataset;
    options.members.label_field = field;
    assert_int_equal(dl2_dataset_open(at(name), &options, &dataset, &error), status);
    if (!strstr(error.message, text))
        fail_msg("\"%s\" says nothing of \"%s\"", error.message, text);
}

/* Labels of a field of .json: numbers, names, elements of arrays, names with dots. */
static void test_label_field(void **state)
{
    (void)state;
    struct tar tar = {.size = 0};
    tar_add(&tar, "1.jpg", "1");
    tar_add(&tar, "1.json", "{\"n\": 2, \"a\": {\"b\": [\"tree\", \"10\"], \"c.d\": \"x\"}}");
    tar_add(&tar, "2.json", "{\"n\": 0, \"a\": {\"b\": [\"bush\", \"9\"], \"c.d\": \"w\"}}");
    tar_add(&tar, "2.jpg", "2");
    tar_end(&tar, "f/a.tar");
    expect_label("f", "n", "1", 2, "2");
    expect_label("f", "n", "2", 0, "0");
    expect_label("f", "a.b.0", "1", 1, "tree");
    expect_label("f", "a.b.0", "2", 0, "bush");
    expect_label("f", "a.b.1", "1", 10, "10"); /* numbers, also in quotes */
    expect_label("f", "a.b.1", "2", 9, "09");
    expect_label("f", "a.c\\.d", "2", 0, "w");
    expect_label("f", NULL, "2", -1, NULL);
    refuse_field("f", "a.b.2", DL2_ERR_FORMAT, "no sample has a label in the field a.b.2");
    refuse_field("f", "a.b.2", DL2_ERR_FORMAT, "1: it is missing");
    refuse_field("f", "a.b", DL2_ERR_FORMAT, "it holds an array");
    static const char *const bad[] = {"", ".", "a.", ".a", "a..b", "a\\", "a\\b", "a\\\\."};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refuse_field("f", bad[i], DL2_ERR_ARGUMENT, "is not the path of a field");
    /* The index keeps the field, also when it is out of date. */
    const struct dl2_member_choice a_b_0 = {.label_field = "a.b.0"};
    size_t count;
    assert_int_equal(dl2_dataset_write_index(at("f"), &a_b_0, NULL, 1, &count, NULL, NULL), 0);
    expect_label("f", NULL, "1", 1, "tree");
    expect_label("f", "n", "1", 2, "2");
    tar_add(&tar, "1.jpg", "1");
    tar_add(&tar, "1.json", "{\"a\": {\"b\": [\"ant\"]}}");
    tar_add(&tar, "2.jpg", "2");
    tar_add(&tar, "2.json", "{\"a\": {\"b\": [\"bee\"]}, \"n\": 3}");
    tar_add(&tar, "3.jpg", "3");
    tar_add(&tar, "3.json", "{");
    tar_end(&tar, "f/a.tar");
    expect_label("f", NULL, "2", 1, "bee");
    expect_label("f", NULL, "3", -1, NULL);
    assert_int_equal(dl2_dataset_write_index(at("f"), &as_it_is, NULL, 1, &count, NULL, NULL), 0);
    expect_label("f", NULL, "1", 0, "ant");
    /* Kinds of values that are no label, in order; then a name after numbers. */
    static const char *const none[] = {"-1", "1.5", "true", "null", "NaN", "{}", "\"\"", "[1, 2]"};
    tar_add(&tar, "0.jpg", "0");
    tar_add(&tar, "0.json", "{\"n\": 1}");
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        char name[16], text[64];
        snprintf(name, sizeof name, "x%zu.jpg", i);
        tar_add(&tar, name, "0");
        snprintf(name, sizeof name, "x%zu.json", i);
        snprintf(text, sizeof text, "{\"n\": %s}", none[i]);
        tar_add(&tar, name, text);
    }
    tar_add(&tar, "y.jpg", "0");
    tar_add(&tar, "y.cls", ""); /* which nobody reads */
    tar_end(&tar, "kinds/a.tar");
    expect_label("kinds", "n", "0", 1, "1");
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        char key[16];
        snprintf(key, sizeof key, "x%zu", i);
        expect_label("kinds", "n", key, -1, NULL);
    }
    expect_label("kinds", "n", "y", -1, NULL);
    tar_add(&tar, "0.jpg", "0");
    tar_add(&tar, "0.json", "{\"n\": 1}");
    tar_add(&tar, "1.jpg", "0");
    tar_add(&tar, "1.json", "{\"n\": \"one\"}");
    tar_end(&tar, "kinds/a.tar");
    refuse_field("kinds", "n", DL2_ERR_FORMAT, "of 1.json is a name");
    /* Twice a .json: which was meant nobody knows. */
    tar_add(&tar, "0.jpg", "0");
    tar_add(&tar, "0.json", "{\"n\": 1}");
    tar_add(&tar, "0.json", "{\"n\": 2}");
    tar_end(&tar, "kinds/a.tar");
    refuse_field("kinds", "n", DL2_ERR_FORMAT, "0.json comes twice");
    put("tree/a/1.jpg");
    refuse_field("tree", "n", DL2_ERR_ARGUMENT, "the container here is 'folder'");
}

static void test_tar_refusals(void **state)
{
    (void)state;
    struct tar tar = {.size = 0};
    char large[1500];
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    tar_add(&tar, "a/1.jpg", large);
    tar_add(&tar, "a/2.jpg", large);
    tar_end(&tar, "s/whole.tar");
    struct dl2_bytes whole = DL2_BYTES_INIT;
    load("s/whole.tar", &whole);
    assert_int_equal(whole.size, 2 * 2048 + 1024);
    /* Cut anywhere before the end's mark. */
    for (size_t size = 0; size < 2 * 2048 + 512; size += size < 512 || size > 4000 ? 1 : 97) {
        put_bytes("s/whole.tar", whole.data, size);
        refuse("s", DL2_ERR_FORMAT, "cut short");
        refuse("s", DL2_ERR_FORMAT, "whole.tar");
    }
    whole.data[2048 + 5] ^= 1;
    put_bytes("s/whole.tar", whole.data, whole.size);
    refuse("s", DL2_ERR_FORMAT, "2048 is damaged");
    dl2_bytes_free(&whole);
    tar_add(&tar, "a/1.jpg", "x");
    tar_add(&tar, "b/1.jpg", "x");
    tar_add(&tar, "a/1.jpg", "x");
    tar_end(&tar, "s/whole.tar");
    refuse("s", DL2_ERR_FORMAT, "\"a/1\" comes twice");
    /* Beside each other, too: which of them was meant nobody knows. */
    tar_add(&tar, "a/1.jpg", "old");
    tar_add(&tar, "a/1.jpg", "new");
    tar_end(&tar, "s/whole.tar");
    refuse("s", DL2_ERR_FORMAT, "a/1.jpg comes twice");
    tar_add(&tar, "a/1.jpg", "x");
    tar_add(&tar, "a/1.cls", "1");
    tar_add(&tar, "a/1.cls", "2");
    tar_end(&tar, "s/whole.tar");
    refuse("s", DL2_ERR_FORMAT, "a/1.cls comes twice");
    tar_add(&tar, "a/1.jpg", "x");
    memset(tar.bytes + tar.size, 0, 1024);
    memcpy(tar.bytes + tar.size + 1024, "no header", 9);
    tar.size += 1536;
    tar_end(&tar, "s/whole.tar"); /* which bytes behind its end are there nobody knows */
    refuse("s", DL2_ERR_FORMAT, "the header at 2048 is damaged");
    put("s/more.tar.gz");
    refuse("s", DL2_ERR_UNSUPPORTED, "more.tar.gz");
    put("z.tgz");
    refuse("z.tgz", DL2_ERR_UNSUPPORTED, "make plain shards with dl2-transcode copy");
    put("y.tar.zst");
    refuse("y.tar.zst", DL2_ERR_UNSUPPORTED, "decompress it");
    /* The same by a name that does not say so; also where less than a header is there. */
    put_bytes("c/x.tar", "\x1f\x8b\x08", 3);
    refuse("c", DL2_ERR_UNSUPPORTED, "x.tar: it is compressed by gzip, though its name");
    memset(large, 0, sizeof large);
    memcpy(large, "\x28\xb5\x2f\xfd", 4);
    put_bytes("c/x.tar", large, sizeof large);
    refuse("c", DL2_ERR_UNSUPPORTED, "it is compressed by zstd");
    put_bytes("c/x.tar",
              "\xfd"
              "7zXZ\0\0",
              7);
    refuse("c", DL2_ERR_UNSUPPORTED, "it is compressed by xz");
    put_bytes("c/x.tar", "BZh91AY", 7);
    refuse("c", DL2_ERR_UNSUPPORTED, "it is compressed by bzip2");
    put_bytes("c/x.tar", "BZ", 2);
    refuse("c", DL2_ERR_FORMAT, "cut short");
    tar_add(&tar, "%2E%2E.jpg", "x");
    tar_end(&tar, "e.tar");
    refuse("e.tar", DL2_ERR_FORMAT, "no name");
    tar.size += tar_member(tar.bytes, "s.jpg", 'S', "x", 1);
    tar_end(&tar, "e.tar");
    refuse("e.tar", DL2_ERR_UNSUPPORTED, "s.jpg is a sparse file");
    /* The same as GNU tar --sparse --format=posix writes it: its map would become the image. */
    static const char sparse[] = "22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n"
                                 "25 GNU.sparse.name=b.jpg\n30 GNU.sparse.realsize=100000\n";
    tar.size += tar_member(tar.bytes, "PaxHeaders/b.jpg", 'x', sparse, strlen(sparse));
    tar_add(&tar, "GNUSparseFile.9/b.jpg", "1\n0\n1\n");
    tar_end(&tar, "e.tar");
    refuse("e.tar", DL2_ERR_UNSUPPORTED, "b.jpg is a sparse file");
    tar.size += tar_member(tar.bytes, "p", 'x', "99 path=x\n", 10);
    tar_end(&tar, "e.tar");
    refuse("e.tar", DL2_ERR_FORMAT, "pax header");
    tar_add(&tar, "1.cls", "   ");
    tar_end(&tar, "e.tar");
    refuse("e.tar", DL2_ERR_FORMAT, "not a label");
}

/* ---- The index */

static void pack_plain(const char *container)
{
    put_photos("plain", 2, 4);
    const struct dl2_writer_options options = {.container = container, .shard_samples = 3};
    pack_with("plain", "packed", &options);
}

static void test_check_sums(void **state)
{
    (void)state;
    pack_plain("tar");
    struct dl2_dataset *dataset = open_split("packed", "all");
    struct dl2_location location;
    assert_true(dl2_dataset_locate(dataset, 4, &location));
    struct stat status;
    assert_int_equal(stat(location.path, &status), 0);
    FILE *file = fopen(location.path, "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, (long)location.offset + 3, SEEK_SET), 0);
    assert_int_equal(fputc('!', file), '!');
    assert_int_equal(fclose(file), 0);
    struct dl2_bytes scratch = DL2_BYTES_INIT;
    const uint8_t *data;
    size_t size;
    for (int again = 0; again < 3; again++) {
        for (size_t i = 0; i < dl2_dataset_count(dataset); i++) {
            struct dl2_error error = DL2_ERROR_INIT;
            int got = dl2_dataset_read(dataset, i, &scratch, &data, &size, &error);
            assert_int_equal(got, i == 4 ? DL2_ERR_FORMAT : DL2_OK);
            if (i == 4) {
                assert_non_null(strstr(error.message, sample_of(dataset, i).key));
                assert_non_null(strstr(error.message, "check sum"));
            }
        }
        dl2_dataset_close(dataset);
        /* The second time the index is out of date, and the third it isn't. */
        const struct timespec times[2] = {status.st_atim, status.st_mtim};
        if (again == 1)
            assert_int_equal(utimensat(AT_FDCWD, at("packed/shard-000001.tar"), times, 0), 0);
        else
            assert_int_equal(utimensat(AT_FDCWD, at("packed/shard-000001.tar"),
                                       (struct timespec[2]){{1, 0}, {1, 0}}, 0),
                             0);
        dataset = open_split("packed", "all");
    }
    dl2_dataset_close(dataset);
    dl2_bytes_free(&scratch);
}

static void test_stale_index(void **state)
{
    (void)state;
    pack_plain("tar");
    struct tar tar = {.size = 0};
    tar_labeled(&tar, "class 0/new", "0");
    tar_end(&tar, "packed/shard-000002.tar");
    struct dl2_dataset *dataset = open_split("packed", "all");
    assert_int_equal(dl2_dataset_count(dataset), 7); /* 3 + 3 + 1 instead of 3 + 3 + 2 */
    assert_string_equal(sample_of(dataset, 6).key, "class 0/new");
    dl2_dataset_close(dataset);
    tar_labeled(&tar, "class 1/more", "1");
    tar_end(&tar, "packed/zzz.tar");
    expect_count("packed", 8);
    assert_int_equal(unlink(at("packed/shard-000000.tar")), 0);
    expect_count("packed", 5);
}

/* A shard that was replaced after the dataset was opened and before it is first read. */
static void test_replaced_shard(void **state)
{
    (void)state;
    struct tar tar = {.size = 0};
    tar_add(&tar, "1.jpg", "old");
    tar_end(&tar, "r.tar");
    const struct timespec then[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    assert_int_equal(utimensat(AT_FDCWD, at("r.tar"), then, 0), 0);
    struct dl2_dataset *dataset = open_split("r.tar", "all"), *early = open_split("r.tar", "all");
    expect_sample(early, 0, "old", 3);
    tar_add(&tar, "1.jpg", "new");
    tar_end(&tar, "r.tar");
    struct dl2_bytes scratch = DL2_BYTES_INIT;
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_location location;
    const uint8_t *data;
    size_t size;
    assert_false(dl2_dataset_locate(dataset, 0, &location));
    assert_int_equal(dl2_dataset_read(dataset, 0, &scratch, &data, &size, &error), DL2_ERR_FORMAT);
    assert_non_null(strstr(error.message, "it was changed since the dataset was opened"));
    dl2_bytes_free(&scratch);
    dl2_dataset_close(dataset);
    dl2_dataset_close(early);
}

/* Writes an index's flags at byte 16 and, unless it is 0, the version at byte 8. */
static void change_index(const char *name, uint32_t version, uint32_t flags)
{
    struct dl2_bytes index = DL2_BYTES_INIT;
    uint64_t sum = 0;
    load(name, &index);
    version = htole32(version);
    flags = htole32(flags);
    if (version)
        memcpy(index.data + 8, &version, sizeof version);
    memcpy(index.data + 16, &flags, sizeof flags);
    memcpy(index.data + 56, &sum, sizeof sum);
    sum = htole64(XXH3_64bits(index.data, index.size));
    memcpy(index.data + 56, &sum, sizeof sum);
    put_bytes(name, index.data, index.size);
    dl2_bytes_free(&index);
}

/* Classes that train lacks come last, as in a folder, unless a list says otherwise; an index that
 * was made before that rule is made anew. */
static void test_classes_of_train_come_first(void **state)
{
    (void)state;
    struct tar tar = {0};
    tar_labeled(&tar, "1", "rose");
    tar_end(&tar, "w/train/0.tar");
    tar_labeled(&tar, "1", "aster");
    tar_end(&tar, "w/val/0.tar");
    expect_split("w", "all", "train/1:0 val/1:1");
    put_bytes("w/train/classes.txt", "aster\nrose\n", 11);
    put_bytes("w/val/classes.txt", "aster\nrose\n", 11);
    expect_split("w", "all", "train/1:1 val/1:0");
    size_t count;
    assert_int_equal(dl2_dataset_write_index(at("w"), &as_it_is, NULL, 1, &count, NULL, NULL),
                     DL2_OK);
    assert_int_equal(unlink(at("w/train/classes.txt")), 0);
    assert_int_equal(unlink(at("w/val/classes.txt")), 0);
    expect_split("w", "all", "train/1:1 val/1:0");
    change_index("w/dl2-index.bin", 0, 1); /* with splits, of older programs */
    expect_split("w", "all", "train/1:0 val/1:1");
    put("names/train/rose/1.jpg");
    put("names/train/tulip/1.jpg");
    put("names/test/aster/1.jpg");
    check_pack("names", "gulp");
    check_pack("names", "tar");
}

/* An index that calls images further frames of items that they cannot be of. */
static void test_index_of_wrong_frames(void **state)
{
    (void)state;
    static const char *const names[] = {"f/1.jpg", "f/a/2.jpg", "f/a/3.jpg", "f/aa/4.jpg",
                                        "f/b.jpg"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        put(names[i]);
    const struct dl2_writer_options options = {.container = "gulp"};
    pack_with("f", "packed", &options);
    struct dl2_bytes index = DL2_BYTES_INIT;
    load("packed/dl2-index.bin", &index);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        index.data[64 + 24 + i * 48 + 45] |= DL2_ENTRY_FURTHER;
    put_bytes("packed/dl2-index.bin", index.data, index.size);
    dl2_bytes_free(&index);
    change_index("packed/dl2-index.bin", 0, 1u << 31 | 2);
    struct dl2_dataset *dataset = open_split("packed", "all");
    assert_int_equal(dl2_dataset_kind(dataset), DL2_SAMPLE_CLIP);
    assert_int_equal(dl2_dataset_image_count(dataset), 5);
    assert_int_equal(dl2_dataset_count(dataset), 4); /* a/2 and a/3 are one */
    dl2_dataset_close(dataset);
}

/* An index that knew fewer splits is not asked for them. */
static void test_old_index(void **state)
{
    (void)state;
    put_photos("names/training", 2, 3);
    put_photos("names/valid", 2, 2);
    const struct dl2_writer_options options = {.container = "tar"};
    pack_with("names", "packed", &options);
    change_index("packed/dl2-index.bin", 2, 2); /* our own, without splits */
    compare_split("names", "packed", "train");
    compare_split("names", "packed", "val");
    pack_with("names", "packed", &options); /* it is still our own, to be replaced */
}

static void test_damaged_index(void **state)
{
    (void)state;
    pack_plain("gulp");
    struct dl2_bytes bytes = DL2_BYTES_INIT;
    load("packed/dl2-index.bin", &bytes);
    for (size_t i = 0; i < bytes.size; i++) {
        bytes.data[i] ^= 0x10;
        put_bytes("packed/dl2-index.bin", bytes.data, bytes.size);
        struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
        struct dl2_dataset *dataset;
        struct dl2_error error = DL2_ERROR_INIT;
        assert_true(dl2_dataset_open(at("packed"), &options, &dataset, &error) < 0);
        assert_non_null(strstr(error.message, "dl2-index.bin"));
        bytes.data[i] ^= 0x10;
    }
    for (size_t size = 0; size < bytes.size; size++) {
        put_bytes("packed/dl2-index.bin", bytes.data, size);
        refuse("packed", DL2_ERR_FORMAT, "dl2-index.bin");
    }
    dl2_bytes_free(&bytes);
}

static void test_unfinished(void **state)
{
    (void)state;
    pack_plain("tar");
    const struct dl2_writer_options options = {.container = "gulp"};
    struct dl2_writer *writer;
    assert_int_equal(dl2_writer_open(at("packed"), &options, NULL, 0, &writer, NULL), 0);
    refuse("packed", DL2_ERR_FORMAT, "not written to its end");
    assert_int_equal(dl2_writer_add(writer, "a", "jpg", -1, "x", 1, NULL), 0);
    refuse("packed", DL2_ERR_FORMAT, "not written to its end");
    dl2_writer_close(writer);
    assert_int_equal(rmdir(at("packed")), 0); /* nothing is left */
    /* Chunks that others have added are not removed with ours; new labels are noticed. */
    pack_with("plain", "packed", &options);
    struct dl2_bytes meta = DL2_BYTES_INIT;
    load("packed/meta_0.gmeta", &meta);
    for (size_t i = 0; i + 16 < meta.size; i++)
        if (!memcmp(meta.data + i, "\"label\": \"class 0", 17))
            meta.data[i + 16] = '1';
    put_bytes("packed/meta_0.gmeta", meta.data, meta.size);
    const struct timespec later[2] = {{2000000000, 0}, {2000000000, 0}};
    assert_int_equal(utimensat(AT_FDCWD, at("packed/meta_0.gmeta"), later, 0), 0);
    dl2_bytes_free(&meta);
    struct dl2_dataset *relabeled = open_split("packed", "all");
    assert_int_equal(sample_of(relabeled, 0).label, 1);
    dl2_dataset_close(relabeled);
    put_bytes("packed/data_7.gulp", "abcd", 4);
    put_text("packed/meta_7.gmeta", "{\"x\": {\"frame_info\": [[0, 0, 4]], \"meta_data\": [{}]}}");
    assert_int_equal(dl2_writer_open(at("packed"), &options, NULL, 0, &writer, NULL),
                     DL2_ERR_ARGUMENT);
    expect_count("packed", 9);
    remove_folder("packed");
    put("packed/rose/1.jpg");
    struct dl2_error error = DL2_ERROR_INIT;
    assert_int_equal(dl2_writer_open(at("packed"), &options, NULL, 0, &writer, &error),
                     DL2_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "rose is in the way"));
    dl2_error_clear(&error);
    put_golden("mixed");
    assert_int_equal(dl2_writer_open(at("gulp"), &options, NULL, 0, &writer, &error),
                     DL2_ERR_ARGUMENT);
    size_t count;
    assert_int_equal(dl2_dataset_write_index(at("gulp"), &as_it_is, NULL, 0, &count, NULL, NULL),
                     0);
    assert_int_equal(count, 5);
    assert_int_equal(dl2_writer_open(at("gulp"), &options, NULL, 0, &writer, NULL),
                     DL2_ERR_ARGUMENT);
}

/* More shards than are kept open. */
static void test_many_shards(void **state)
{
    (void)state;
    const struct dl2_writer_options options = {.container = "tar", .shard_samples = 1};
    struct dl2_writer *writer;
    assert_int_equal(dl2_writer_open(at("m"), &options, NULL, 0, &writer, NULL), 0);
    for (int i = 0; i < 300; i++) {
        char key[16];
        snprintf(key, sizeof key, "%03d", i);
        assert_int_equal(dl2_writer_add(writer, key, "jpg", -1, key, 3, NULL), 0);
    }
    assert_int_equal(dl2_writer_finish(writer, NULL), 0);
    dl2_writer_close(writer);
    struct dl2_dataset *dataset = open_split("m", "all");
    int closed = 0;
    for (size_t i = 0; i < 600; i++) {
        struct dl2_location location;
        expect_sample(dataset, i % 300, sample_of(dataset, i % 300).key, 3);
        assert_true(dl2_dataset_locate(dataset, i % 300, &location));
        closed += location.fd < 0;
    }
    assert_int_equal(closed, 2 * (300 - 256));
    dl2_dataset_close(dataset);
}

static void test_sidecars_in_tar(void **state)
{
    (void)state;
    struct tar tar = {.size = 0};
    tar_add(&tar, "./a/1.json", "{1}");
    tar_add(&tar, "./a/1.jpg", "one");
    tar_add(&tar, "./a/1.txt", "behind it");
    tar_add(&tar, "a/2.jpg", "two");
    tar_add(&tar, "a/3.txt", "");
    tar_add(&tar, "a/3.jpg", "three");
    tar_add(&tar, "a/3.seg.png", "mask");
    tar_add(&tar, "1.jpg", "another folder");
    tar_add(&tar, "1.txt", "its own");
    tar_add(&tar, "v%2E1.TXT", "a dot in the key");
    tar_add(&tar, "v%2E1.jpg", "v");
    tar_end(&tar, "t/train/x-0.tar");
    /* With a split's folder in the keys, with an index and without. */
    for (int indexed = 0; indexed < 2; indexed++) {
        struct dl2_dataset *dataset = open_split("t", "all");
        expect_sidecar(dataset, "train/a/1", "json", "{1}");
        expect_sidecar(dataset, "train/a/1", "txt", "behind it");
        expect_sidecar(dataset, "train/a/2", "txt", NULL);
        expect_sidecar(dataset, "train/a/2", "json", NULL);
        expect_sidecar(dataset, "train/a/3", "txt", "");
        expect_sidecar(dataset, "train/a/3", "seg.png", "mask");
        expect_sidecar(dataset, "train/1", "txt", "its own");
        expect_sidecar(dataset, "train/1", "json", NULL);
        expect_sidecar(dataset, "train/v.1", "txt", "a dot in the key");
        expect_sidecars(dataset, "train/a/1", "json={1} txt=behind it");
        expect_sidecars(dataset, "train/a/2", "");
        expect_sidecars(dataset, "train/a/3", "seg.png=mask txt=");
        expect_sidecars(dataset, "train/1", "txt=its own");
        expect_sidecars(dataset, "train/v.1", "TXT=a dot in the key");
        dl2_dataset_close(dataset);
        size_t count;
        assert_int_equal(dl2_dataset_write_index(at("t"), &as_it_is, NULL, 1, &count, NULL, NULL),
                         DL2_OK);
    }
    /* Images that are hard links, and a target that is one. */
    tar_add(&tar, "b.jpg", "picture");
    tar_add(&tar, "b.txt", "first");
    tar_link(&tar, "c.jpg", '1', "b.jpg");
    tar_add(&tar, "c.txt", "second");
    tar_add(&tar, "d.jpg", "other");
    tar_link(&tar, "d.txt", '1', "c.txt");
    tar_end(&tar, "l.tar");
    struct dl2_dataset *dataset = open_split("l.tar", "all");
    expect_sidecar(dataset, "b", "txt", "first");
    expect_sidecar(dataset, "c", "txt", "second");
    struct dl2_bytes bytes = DL2_BYTES_INIT;
    struct dl2_error error = DL2_ERROR_INIT;
    assert_int_equal(dl2_dataset_read_sidecar(dataset, 2, "txt", &bytes, &error), DL2_ERR_FORMAT);
    assert_non_null(strstr(error.message, "l.tar[d]: txt: it is a hard link"));
    expect_sidecars(dataset, "b", "txt=first");
    expect_sidecars(dataset, "c", "txt=second");
    expect_sidecars(dataset, "d", "");
    dl2_bytes_free(&bytes);
    dl2_dataset_close(dataset);
    /* A tree of files has nothing beside them. */
    tar_add(&tar, "e/f.1.jpg", "1");
    tar_add(&tar, "e/f.2.jpg", "2");
    tar_end(&tar, "p.tar");
    dataset = open_split("p.tar", "all");
    expect_sidecar(dataset, "e/f.1", "2.jpg", NULL);
    expect_sidecar(dataset, "e/f.2", "txt", NULL);
    expect_sidecars(dataset, "e/f.1", "");
    dl2_dataset_close(dataset);
    /* More than anybody means, of which the last comes twice in another case. */
    tar_add(&tar, "m.jpg", "many");
    for (int i = 0; i < DL2_BESIDE_MAX_ITEMS; i++) {
        char name[32];
        snprintf(name, sizeof name, "m.%03d.txt", i);
        tar_add(&tar, name, i ? "" : "0");
    }
    tar_add(&tar, "m.000.TXT", "the last counts");
    tar_add(&tar, "m.cls", "3");
    tar_add(&tar, "n.jpg", "too many");
    for (int i = 0; i <= DL2_BESIDE_MAX_ITEMS; i++) {
        char name[32];
        snprintf(name, sizeof name, "n.%03d.txt", i);
        tar_add(&tar, name, "");
    }
    tar_end(&tar, "m.tar");
    dataset = open_split("m.tar", "all");
    struct dl2_sidecars sidecars = {0};
    assert_int_equal(dl2_dataset_read_sidecars(dataset, 0, &sidecars, NULL), DL2_OK);
    assert_int_equal(sidecars.count, DL2_BESIDE_MAX_ITEMS);
    assert_int_equal(sidecars.bytes, strlen("the last counts"));
    dl2_sidecars_free(&sidecars);
    dl2_error_clear(&error);
    assert_int_equal(dl2_dataset_read_sidecars(dataset, 1, &sidecars, &error), DL2_ERR_LIMIT);
    assert_non_null(strstr(error.message, "m.tar[n]: more than 256 things"));
    dl2_sidecars_free(&sidecars);
    dl2_dataset_close(dataset);
}

static void test_sidecars_in_gulp(void **state)
{
    (void)state;
    char path[512];
    snprintf(path, sizeof path, "%s/tests/dataset/gulpio/mixed", getenv("srcdir"));
    const struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    struct dl2_dataset *dataset;
    assert_int_equal(dl2_dataset_open(path, &options, &dataset, NULL), DL2_OK);
    expect_sidecar(dataset, "17", "json", "{\"id\": \"17\", \"label\": \"tulip\", \"idx\": 0}");
    expect_sidecar(dataset, "film", "json",
                   "{\"id\": \"film\", \"label\": \"r\303\266schen\", \"idx\": 1}");
    expect_sidecar(dataset, "rose/1", "json",
                   "{\"id\": \"rose/1\", \"label\": \"tulip\", \"idx\": 0}");
    expect_sidecar(dataset, "17", "txt", NULL);
    expect_sidecars(dataset, "17", "");
    /* Found by key in a selection, too. */
    static const uint32_t numbers[] = {2, 1, 0};
    size_t first, count;
    assert_int_equal(dl2_dataset_select(dataset, numbers, 3, NULL), DL2_OK);
    assert_true(dl2_dataset_find(dataset, sample_of(dataset, 1).key, &first, &count));
    assert_int_equal(first, 1);
    dl2_dataset_close(dataset);
}

static void test_writer_refusals(void **state)
{
    (void)state;
    const struct dl2_writer_options options = {.container = "gulp"};
    const char *const classes[] = {"a", "b"};
    struct dl2_writer *writer;
    assert_int_equal(dl2_writer_open(at("w"), &options, classes, 2, &writer, NULL), 0);
    assert_int_equal(dl2_writer_add(writer, "ok", "jpg", 1, "x", 1, NULL), DL2_OK);
    assert_int_equal(dl2_writer_add(writer, "a", "jpg", 2, "x", 1, NULL), DL2_ERR_ARGUMENT);
    assert_int_equal(dl2_writer_add(writer, "a", "", 0, "x", 1, NULL), DL2_ERR_ARGUMENT);
    assert_int_equal(dl2_writer_add(writer, "../a", "jpg", 0, "x", 1, NULL), DL2_ERR_ARGUMENT);
    assert_int_equal(dl2_writer_add(writer, "\xff", "jpg", 0, "x", 1, NULL), DL2_ERR_UNSUPPORTED);
    assert_int_equal(dl2_writer_add(writer, "empty", "jpg", 0, "", 0, NULL), DL2_ERR_UNSUPPORTED);
    assert_int_equal(dl2_writer_finish(writer, NULL), DL2_OK);
    dl2_writer_close(writer);
    expect_split("w", "all", "ok:1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_replaces_splits_by_other_names),
        TEST(test_gulp_is_the_folder),
        TEST(test_tar_is_the_folder),
        TEST(test_reads_what_gulpio_wrote),
        TEST(test_writes_what_gulpio_writes),
        TEST(test_writes_clips_of_gulpio),
        TEST(test_gulp_refusals),
        TEST(test_webdataset_rules),
        TEST(test_tar_extensions),
        TEST(test_label_field),
        TEST(test_members_apart),
        TEST(test_which_member_is_the_image),
        TEST(test_dots_in_keys),
        TEST(test_image_extension),
        TEST(test_same_keys_in_shards),
        TEST(test_tar_refusals),
        TEST(test_tar_hard_links),
        TEST(test_what_tar_does_not_give),
        TEST(test_check_sums),
        TEST(test_stale_index),
        TEST(test_replaced_shard),
        TEST(test_classes_of_train_come_first),
        TEST(test_old_index),
        TEST(test_index_of_wrong_frames),
        TEST(test_damaged_index),
        TEST(test_unfinished),
        TEST(test_many_shards),
        TEST(test_sidecars_in_tar),
        TEST(test_sidecars_in_gulp),
        TEST(test_writer_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
