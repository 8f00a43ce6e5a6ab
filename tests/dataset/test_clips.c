/* SPDX-License-Identifier: BSD-2-Clause */
/* Which trees of images are clips, in what order their frames come, and how clips are split. */
#include "dataset/write/writer.h"
#include "tests/dataset/scratch.h"

static void put_clip(const char *format, const char *place, int first, int count)
{
    char name[256];
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, format, place, first + i);
        put(name);
    }
}

static struct dl2_dataset *open_as(const char *name, enum dl2_samples samples)
{
    struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    options.samples = samples;
    return open_with(name, &options);
}

static bool has_message(const struct dl2_dataset *dataset, const char *word)
{
    const char *text;
    bool matters;
    for (size_t i = 0; (text = dl2_dataset_message(dataset, i, &matters)); i++)
        if (strstr(text, word))
            return true;
    return false;
}

/* Is the tree read as so many clips, or images for 0; and is there a message about the doubt? */
static void expect_clips(const char *name, size_t count, bool doubt)
{
    struct dl2_dataset *dataset = open_as(name, DL2_SAMPLES_AUTO);
    assert_int_equal(dl2_dataset_kind(dataset), count ? DL2_SAMPLE_CLIP : DL2_SAMPLE_IMAGE);
    if (count)
        assert_int_equal(dl2_dataset_count(dataset), count);
    assert_int_equal(has_message(dataset, "--samples clips"), doubt);
    dl2_dataset_close(dataset);
    remove_folder(name);
}

static void put_four(const char *format, int first)
{
    put_clip(format, "t/a/one", first, 3);
    put_clip(format, "t/a/two", first, 12);
    put_clip(format, "t/b/three", first, 2);
    put_clip(format, "t/b/four", first, 1);
}

static void test_rule(void **state)
{
    (void)state;
    put_four("%s/%d.jpg", 1);
    expect_clips("t", 4, false);
    put_four("%s/%05d.jpg", 0);
    expect_clips("t", 4, false);
    /* A gap, another start, letters, numbers that begin elsewhere: only maybe. */
    put_four("%s/%d.jpg", 1);
    put("t/b/four/3.jpg");
    expect_clips("t", 0, true);
    put_four("%s/%d.jpg", 2);
    expect_clips("t", 0, true);
    put_four("%s/frame%03d.jpg", 0);
    expect_clips("t", 0, true);
    put_four("%s/%d.jpg", 0);
    put_clip("%s/%d.jpg", "t/b/five", 1, 3);
    expect_clips("t", 0, true);
    /* One folder a class may be anything. */
    put_clip("%s/%d.jpg", "t/a/one", 1, 9);
    put_clip("%s/%d.jpg", "t/b/one", 1, 9);
    expect_clips("t", 0, true);
    /* Images beside the folders, deeper ones, ones outside every class, ordinary names. */
    put_four("%s/%d.jpg", 1);
    put("t/b/5.jpg");
    expect_clips("t", 0, false);
    put_four("%s/%d.jpg", 1);
    put("t/b/three/more/1.jpg");
    expect_clips("t", 0, false);
    put_four("%s/%d.jpg", 1);
    put("t/cover.jpg");
    expect_clips("t", 0, false);
    put_four("%s/%d.jpg", 1);
    put("t/b/three/last.jpg");
    expect_clips("t", 0, false);
    put_clip("%s/%d.jpg", "t/a", 1, 20);
    put_clip("%s/%d.jpg", "t/b", 1, 20);
    expect_clips("t", 0, false);
    put_clip("%s/IMG_%d.jpg", "t/a/x", 17, 1);
    put_clip("%s/IMG_%d.jpg", "t/a/y", 1, 1);
    put_clip("%s/IMG_%d.jpg", "t/b/z", 9, 1);
    expect_clips("t", 0, false);
    /* Below splits, as below classes. */
    put_clip("%s/%d.jpg", "t/train/a/one", 1, 3);
    put_clip("%s/%d.jpg", "t/train/a/two", 1, 3);
    put_clip("%s/%d.jpg", "t/val/a/one", 1, 2);
    expect_clips("t", 3, false);
    put_clip("%s/%d.jpg", "t/train/one", 1, 3);
    put_clip("%s/%d.jpg", "t/train/two", 1, 3);
    put_clip("%s/%d.jpg", "t/val/one", 1, 2);
    expect_clips("t", 0, false);
}

/* Frames come in the order of their numbers and have keys from 0 on. */
static void test_order(void **state)
{
    (void)state;
    put_clip("%s/%d.png", "t/a/one", 1, 12);
    put_clip("%s/%d.png", "t/a/one.5", 1, 2);
    put_clip("%s/%d.png", "t/b/two", 1, 2);
    struct dl2_dataset *dataset = open_as("t", DL2_SAMPLES_AUTO);
    struct dl2_bytes scratch = DL2_BYTES_INIT;
    /* "a/one.5/" comes before "a/one/". */
    assert_string_equal(describe(dataset), "a/one.5:0 a/one:0 b/two:1");
    assert_string_equal(dl2_dataset_layout(dataset), "3 clips of 2 to 12 frames in 2 classes");
    const struct dl2_image_range frames = dl2_dataset_frames(dataset, 1);
    assert_int_equal(frames.count, 12);
    for (size_t i = 0; i < frames.count; i++) {
        struct dl2_sample facts;
        const char *key;
        char name[64];
        dl2_dataset_image(dataset, frames.first + i, &facts);
        snprintf(name, sizeof name, "a/one/%05zu", i);
        assert_string_equal(facts.key, name);
        snprintf(name, sizeof name, "a/one/%zu.png", i + 1);
        assert_string_equal(facts.name, name);
        assert_int_equal(dl2_dataset_clip_of(dataset, frames.first + i, &key).first, frames.first);
        assert_string_equal(key, "a/one");
        const uint8_t *data;
        size_t size;
        assert_int_equal(dl2_dataset_read(dataset, frames.first + i, &scratch, &data, &size, NULL),
                         DL2_OK);
        assert_int_equal(size, facts.bytes);
        assert_memory_equal(data + size - strlen(name), name, strlen(name));
    }
    dl2_bytes_free(&scratch);
    dl2_dataset_close(dataset);
}

static void test_forced(void **state)
{
    (void)state;
    put_clip("%s/img_%03d.jpg", "t/a/deep/one", 7, 3);
    put("t/a/two/x10.jpg");
    put("t/a/two/x9.jpg");
    put("t/b/three/1.jpg");
    struct dl2_dataset *dataset = open_as("t", DL2_SAMPLES_CLIPS);
    assert_string_equal(describe(dataset), "a/deep/one:0 a/two:0 b/three:1");
    struct dl2_sample facts;
    dl2_dataset_image(dataset, dl2_dataset_frames(dataset, 1).first, &facts);
    assert_string_equal(facts.name, "a/two/x9.jpg");
    dl2_dataset_close(dataset);
    struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    options.samples = DL2_SAMPLES_CLIPS;
    static const struct {
        const char *put, *word;
    } wrong[] = {
        {"t/b/7.jpg", "in no folder of a clip"},
        {"t/b/three/cover.jpg", "no number at its end"},
        {"t/b/three/01.png", "have the same number"},
        {"t/8.jpg", "in no folder of a clip"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct dl2_error error = DL2_ERROR_INIT;
        put(wrong[i].put);
        assert_int_equal(dl2_dataset_open(at("t"), &options, &dataset, &error), DL2_ERR_FORMAT);
        assert_non_null(strstr(error.message, wrong[i].word));
        assert_non_null(strstr(error.message, strrchr(wrong[i].put, '/') + 1));
        remove(at(wrong[i].put));
    }
}

/* The rule and a subset choose clips, alike in every container. */
static void test_splits(void **state)
{
    (void)state;
    char name[64];
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "t/%c/c%d", 'a' + i % 2, i);
        put_clip("%s/%d.jpg", name, 1, 2 + i % 5);
    }
    const struct dl2_writer_options pack[] = {{.container = "gulp"}, {.container = "tar"}};
    struct dl2_dataset *dataset = open_as("t", DL2_SAMPLES_AUTO);
    for (size_t p = 0; p < 2; p++) {
        struct dl2_writer *writer;
        struct dl2_bytes scratch[6] = {{NULL, 0, 0}};
        assert_int_equal(
            dl2_writer_open_like(at(pack[p].container), &pack[p], dataset, &writer, NULL), DL2_OK);
        for (size_t i = 0; i < dl2_dataset_count(dataset); i++) {
            const struct dl2_image_range range = dl2_dataset_frames(dataset, i);
            const struct dl2_sample sample = sample_of(dataset, i);
            struct dl2_writer_frame frames[6];
            for (size_t k = 0; k < range.count; k++) {
                const uint8_t *data;
                frames[k].extension = "jpg";
                assert_int_equal(dl2_dataset_read(dataset, range.first + k, &scratch[k], &data,
                                                  &frames[k].size, NULL),
                                 DL2_OK);
                frames[k].data = data;
            }
            assert_int_equal(dl2_writer_add_clip(writer, sample.key, sample.label, frames,
                                                 range.count, NULL, NULL),
                             DL2_OK);
        }
        assert_int_equal(dl2_writer_finish(writer, NULL), DL2_OK);
        dl2_writer_close(writer);
        for (size_t k = 0; k < 6; k++)
            dl2_bytes_free(&scratch[k]);
    }
    dl2_dataset_close(dataset);
    for (int subset = 0; subset < 2; subset++) {
        static const char *const places[] = {"t", "gulp", "tar"}, *const splits[] = {"train",
                                                                                     "val"};
        char wanted[2][4096];
        for (int p = 0; p < 3; p++)
            for (int s = 0; s < 2; s++) {
                struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
                options.split = splits[s];
                options.subset.fraction = subset ? 0.25 : 1;
                dataset = open_with(places[p], &options);
                assert_int_equal(dl2_dataset_count(dataset), s ? 8 : subset ? 8 : 32);
                if (!p)
                    snprintf(wanted[s], sizeof wanted[s], "%s", describe(dataset));
                assert_string_equal(describe(dataset), wanted[s]);
                size_t frames = 0;
                for (size_t i = 0; i < dl2_dataset_count(dataset); i++) {
                    const struct dl2_image_range range = dl2_dataset_frames(dataset, i);
                    assert_int_equal(range.first, frames);
                    assert_int_equal(range.count,
                                     2 + atoi(strrchr(sample_of(dataset, i).key, 'c') + 1) % 5);
                    frames += range.count;
                }
                assert_int_equal(dl2_dataset_image_count(dataset), frames);
                dl2_dataset_close(dataset);
            }
    }
}

/* In tar with labels a clip's folder may lie anywhere, and has one label. */
static void test_labeled_tar(void **state)
{
    (void)state;
    static const char *const classes[] = {"run", "walk"};
    const struct dl2_writer_options options = {.container = "tar"};
    for (int mixed = 0; mixed < 2; mixed++) {
        struct dl2_writer *writer;
        assert_int_equal(dl2_writer_open(at("t"), &options, classes, 2, &writer, NULL), DL2_OK);
        for (int i = 0; i < 9; i++) {
            char key[64];
            snprintf(key, sizeof key, "video%d/%d", i / 3, i % 3);
            assert_int_equal(dl2_writer_add(writer, key, "jpg", mixed ? i % 2 : i / 3 % 2, key,
                                            strlen(key), NULL),
                             DL2_OK);
        }
        assert_int_equal(dl2_writer_finish(writer, NULL), DL2_OK);
        dl2_writer_close(writer);
        if (!mixed)
            expect_split("t", "all", "video0:0 video1:1 video2:0");
        expect_clips("t", mixed ? 0 : 3, false);
    }
}

/* Selected, shuffled and found, clips keep their frames. */
static void test_select(void **state)
{
    (void)state;
    put_clip("%s/%d.jpg", "t/a/one", 1, 3);
    put_clip("%s/%d.jpg", "t/a/two", 1, 4);
    put_clip("%s/%d.jpg", "t/b/three", 1, 2);
    struct dl2_dataset *dataset = open_as("t", DL2_SAMPLES_AUTO);
    static const uint32_t numbers[] = {2, 1, 2};
    struct dl2_error error = DL2_ERROR_INIT;
    size_t first, count;
    assert_int_equal(dl2_dataset_select(dataset, numbers, 3, NULL), DL2_OK);
    assert_string_equal(describe(dataset), "b/three:1 a/two:0 b/three:1");
    assert_int_equal(dl2_dataset_image_count(dataset), 8);
    assert_int_equal(dl2_dataset_frames(dataset, 2).first, 6);
    assert_true(dl2_dataset_find(dataset, "a/two", &first, &count));
    assert_int_equal(first, 1);
    assert_false(dl2_dataset_find(dataset, "a/one", &first, &count));
    static const uint32_t beyond[] = {3};
    assert_int_equal(dl2_dataset_select(dataset, beyond, 1, &error), DL2_ERR_ARGUMENT);
    dl2_dataset_close(dataset);

    struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    options.by_frame = true;
    dataset = open_with("t", &options);
    assert_int_equal(dl2_dataset_count(dataset), 9);
    assert_true(dl2_dataset_find(dataset, "a/two", &first, &count));
    assert_int_equal(first, 3);
    assert_int_equal(count, 4);
    assert_true(dl2_dataset_find(dataset, "b/three/00001", &first, &count));
    assert_int_equal(first, 8);
    assert_false(dl2_dataset_find(dataset, "b/three/2", &first, &count));
    assert_false(dl2_dataset_find(dataset, "b/three/00002", &first, &count));
    assert_int_equal(dl2_dataset_select(dataset, numbers, 3, NULL), DL2_ERR_ARGUMENT);
    bool moved = false;
    assert_int_equal(dl2_dataset_shuffle(dataset, 3, NULL), DL2_OK);
    for (size_t i = 0; i < 9;) {
        const char *key;
        const struct dl2_image_range clip = dl2_dataset_clip_of(dataset, i, &key);
        moved = moved || (!i && strcmp(key, "a/one") != 0);
        assert_int_equal(clip.first, i);
        for (size_t k = 0; k < clip.count; k++, i++) {
            char name[64];
            snprintf(name, sizeof name, "%s/%05zu", key, k);
            assert_string_equal(sample_of(dataset, i).key, name);
        }
    }
    assert_true(moved);
    dl2_dataset_close(dataset);
}

/* Clips of joined datasets, with keys and frames in common. */
static void test_join(void **state)
{
    (void)state;
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_dataset *joined;
    put_clip("a/run/%s/%d.jpg", "film", 1, 3);
    put_clip("a/run/%s/%d.jpg", "take", 1, 2);
    put_clip("b/jump/%s/%d.jpg", "film", 1, 2);
    put_clip("b/run/%s/%d.jpg", "film", 1, 4);
    put_clip("b/run/%s/%d.jpg", "take", 1, 2);
    struct dl2_dataset *members[] = {open_as("a", DL2_SAMPLES_CLIPS),
                                     open_as("b", DL2_SAMPLES_CLIPS)};
    const char *const paths[] = {"a", "b"};
    if (dl2_dataset_join(members, paths, 2, &joined, &error) < 0)
        fail_msg("%s", error.message);
    assert_int_equal(dl2_dataset_kind(joined), DL2_SAMPLE_CLIP);
    assert_string_equal(describe(joined), "a/run/film:0 a/run/take:0 b/jump/film:1 b/run/film:0 "
                                          "b/run/take:0");
    assert_int_equal(dl2_dataset_image_count(joined), 13);
    const struct dl2_image_range frames = dl2_dataset_frames(joined, 3);
    assert_int_equal(frames.first, 7);
    assert_int_equal(frames.count, 4);
    struct dl2_sample frame;
    dl2_dataset_image(joined, 9, &frame);
    assert_string_equal(frame.key, "b/run/film/00002");
    struct dl2_frame_slice slice;
    assert_int_equal(dl2_dataset_slice(joined, "b/run/film[-1]", &slice, &error), DL2_OK);
    assert_int_equal(slice.first, 10);
    static const uint32_t some[] = {3, 0};
    assert_int_equal(dl2_dataset_select(joined, some, 2, &error), DL2_OK);
    assert_string_equal(describe(joined), "b/run/film:0 a/run/film:0");
    assert_int_equal(dl2_dataset_member_of(joined, 0), 1);
    dl2_dataset_close(joined);
    dl2_dataset_close(members[0]);
    dl2_dataset_close(members[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_rule),        TEST(test_order),  TEST(test_forced), TEST(test_splits),
        TEST(test_labeled_tar), TEST(test_select), TEST(test_join),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
