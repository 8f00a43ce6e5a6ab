/* SPDX-License-Identifier: BSD-2-Clause */
/* Folders and IDX files: splits, labels, names, and what must be refused. */
#include "common/file.h"
#include "common/memory.h"
#include "tests/dataset/scratch.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static void test_train_and_val(void **state)
{
    (void)state;
    put("train/rose/2.jpg");
    put("train/rose/deep/er/1.jpg");
    put("train/aster/a.b.jpg");
    put("train/aster.x/1.jpg");
    put("val/rose/9.jpg");
    put("val/tulip/1.jpg");
    put("test/rose/5.jpg");
    put("train/stray.jpg");
    expect_split("", "train",
                 "train/aster.x/1:1 train/aster/a.b:0 train/rose/2:2 "
                 "train/rose/deep/er/1:2");
    expect_split("", "val", "val/rose/9:2 val/tulip/1:3");
    expect_split("", "test", "test/rose/5:2");
    expect_split("", "all",
                 "test/rose/5:2 train/aster.x/1:1 train/aster/a.b:0 train/rose/2:2 "
                 "train/rose/deep/er/1:2 train/stray:-1 val/rose/9:2 val/tulip/1:3");
    struct dl2_dataset *dataset = open_split("", "val");
    assert_int_equal(dl2_dataset_class_count(dataset), 4);
    assert_string_equal(dl2_dataset_class_name(dataset, 0), "aster");
    assert_string_equal(dl2_dataset_class_name(dataset, 1), "aster.x");
    assert_string_equal(dl2_dataset_class_name(dataset, 2), "rose");
    assert_string_equal(dl2_dataset_class_name(dataset, 3), "tulip");
    assert_null(dl2_dataset_class_name(dataset, 4));
    dl2_dataset_close(dataset);
}

static void test_only_one_part(void **state)
{
    (void)state;
    put("train/a/1.jpg");
    expect_split("", "train", "train/a/1:0");
    refuse_split("", "val", DL2_ERR_FORMAT, "validation");
}

static void test_class_called_train(void **state)
{
    (void)state;
    put("plane/1.jpg");
    put("train/1.jpg");
    put("train/2.jpg");
    expect_split("", "all", "plane/1:0 train/1:1 train/2:1");
}

/* The layout matters to people where the seeded rule has split the dataset. */
static bool is_by_rule(const struct dl2_dataset *dataset)
{
    bool matters;
    dl2_dataset_message(dataset, 0, &matters);
    return matters;
}

static void expect_message(const char *name, size_t number, const char *text)
{
    struct dl2_dataset *dataset = open_split(name, "train");
    bool matters;
    const char *message = dl2_dataset_message(dataset, number, &matters);
    if (!message || !strstr(message, text))
        fail_msg("message %zu is \"%s\", without \"%s\"", number, message, text);
    dl2_dataset_close(dataset);
}

/* No message but the layout. */
static void expect_silence(const char *name)
{
    struct dl2_dataset *dataset = open_split(name, "train");
    bool matters;
    const char *message = dl2_dataset_message(dataset, 1, &matters);
    if (message)
        fail_msg("%s: \"%s\"", name, message);
    dl2_dataset_close(dataset);
}

/* The warning about a split that is opened by itself; NULL: none. */
static void expect_number(const char *name, const char *says)
{
    struct dl2_dataset *dataset = open_split(name, "all");
    bool matters;
    const char *message = dl2_dataset_message(dataset, 1, &matters);
    if (says ? !message || !strstr(message, says) : message != NULL)
        fail_msg("%s: %s", name, message);
    dl2_dataset_close(dataset);
}

/* The numbers are those that a loader of the folder train gives. */
static void test_classes_of_train_come_first(void **state)
{
    (void)state;
    put("train/rose/1.jpg");
    put("train/tulip/1.jpg");
    put("test/aster/1.jpg");
    put("test/tulip/1.jpg");
    put("val/rose/1.jpg");
    put("val/poppy/1.jpg");
    put("holdout/aster/1.jpg");
    put("holdout/rose/1.jpg");
    expect_split("", "all",
                 "holdout/aster/1:2 holdout/rose/1:0 test/aster/1:2 test/tulip/1:1 train/rose/1:0 "
                 "train/tulip/1:1 val/poppy/1:3 val/rose/1:0");
    expect_number("test", "'aster' is number 0 here and not there");
    expect_number("val", "'poppy' is number 0 here and not there");
    expect_message("", 1,
                   "2 classes have no image in train, only in other splits: 'aster' (number 2), "
                   "'poppy' (number 3)");
    put("same/train/rose/1.jpg");
    put("same/train/tulip/1.jpg");
    put("same/train/zinnia/1.jpg");
    put("same/val/rose/1.jpg");
    put("same/val/tulip/1.jpg");
    put("same/test/tulip/1.jpg");
    expect_number("same/train", NULL);
    expect_number("same/val", NULL);
    expect_number("same/test", "'tulip' is number 0 here and number 1 there; open the folder that "
                               "holds both, with the split test");
    remove_folder("same");
    put("test/a/1.jpg");
    put("test/b/1.jpg");
    put("test/c/1.jpg");
    put("test/d/1.jpg");
    expect_message("", 1, "'d' (number 6), ...;"); /* after 6 of them, 5 are named */
    remove_folder("train");
    expect_split("", "val", "val/poppy/1:5 val/rose/1:6"); /* a aster b c d poppy rose tulip */
    expect_split("", "test",
                 "test/a/1:0 test/aster/1:1 test/b/1:2 test/c/1:3 test/d/1:4 test/tulip/1:7");
}

/* Every usual name of a split, in any case, is one. */
static void test_names_of_splits(void **state)
{
    (void)state;
    static const char *const vals[] = {"val", "valid", "VALIDATION", "Dev"};
    static const char *const trains[] = {"training", "Train", "TRAINING", "train"};
    for (int i = 0; i < 4; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s/cat/1.jpg", trains[i]);
        put(name);
        snprintf(name, sizeof name, "%s/dog/1.jpg", vals[i]);
        put(name);
        struct dl2_dataset *train = open_split("", "train"), *val = open_split("", "val");
        assert_int_equal(dl2_dataset_count(train), 1);
        assert_int_equal(dl2_dataset_count(val), 1);
        assert_int_equal(dl2_dataset_class_count(val), 2);
        assert_string_equal(dl2_dataset_class_name(val, 0), "cat");
        assert_int_equal(sample_of(val, 0).label, 1);
        assert_true(dl2_dataset_has_parts(val));
        assert_false(is_by_rule(val));
        bool matters;
        char layout[128];
        snprintf(layout, sizeof layout, "train 1 image in 2 classes%s, val 1%s%s%s",
                 i == 0   ? " (training/)"
                 : i == 1 ? " (Train/)"
                 : i == 2 ? " (TRAINING/)"
                          : "",
                 i ? " (" : "", i ? vals[i] : "", i ? "/)" : "");
        assert_string_equal(dl2_dataset_message(val, 0, &matters), layout);
        assert_false(matters);
        assert_string_equal(dl2_dataset_message(val, 1, &matters),
                            "1 class has no image in train, only in other splits: 'dog' (number "
                            "1); no network can learn it, and other loaders may number the classes "
                            "of these splits otherwise");
        assert_null(dl2_dataset_message(val, 2, &matters));
        dl2_dataset_close(train);
        dl2_dataset_close(val);
        remove_root(NULL);
        assert_int_equal(mkdir(root, 0700), 0);
    }
}

/* Without a val split nothing is validated on unasked, least of all a part of the test split. */
static void test_train_and_test(void **state)
{
    (void)state;
    put("train/cat/1.jpg");
    put("train/dog/1.jpg");
    put("test/cat/2.jpg");
    expect_split("", "train", "train/cat/1:0 train/dog/1:1");
    expect_split("", "test", "test/cat/2:0");
    refuse_split("", "val", DL2_ERR_FORMAT, "train 2 images in 2 classes, test 1");
}

/* The depth tells splits from classes that happen to be called so; both are said. */
static void test_depth_tells_splits(void **state)
{
    (void)state;
    put("shallow/plane/1.jpg");
    put("shallow/train/1.jpg");
    put("shallow/test/1.jpg");
    expect_message("shallow", 0, "3 images in 3 classes, without folders for splits");
    expect_message("shallow", 1, "'test' is read as a class");
    expect_message("shallow", 2, "'train' is read as a class");
    /* Classes that hold the same folders may be splits; others are none. */
    put("folds/fold1/cat/1.jpg");
    put("folds/fold1/dog/1.jpg");
    put("folds/fold2/cat/2.jpg");
    put("folds/fold2/cat/3.jpg");
    expect_silence("folds");
    put("folds/fold2/dog/2.jpg");
    expect_message("folds", 1, "if these are the classes, and fold1 and fold2 are splits");
    put("folds/fold2/fish/2.jpg");
    expect_silence("folds");
    put("sets/cat/images/1.jpg");
    put("sets/dog/images/1.jpg");
    expect_silence("sets");
    put("deep/train/cat/1.jpg");
    put("deep/train/dog/1.jpg");
    put("deep/extra/dog/1.jpg");
    put("deep/other/fish/1.jpg");
    expect_message("deep", 0, "train 2 images in 2 classes, extra 1; 1 elsewhere");
    put("stray/train/1.jpg");
    put("stray/train/cat/1.jpg");
    put("stray/val/cat/1.jpg");
    expect_message("stray", 1, "1 image is outside every class");
}

/* Beside train and val any folder is a split, as far as its classes are theirs. */
static void test_splits_by_other_names(void **state)
{
    (void)state;
    put("train/cat/1.jpg");
    put("train/dog/1.jpg");
    put("val/cat/1.jpg");
    put("holdout/dog/1.jpg");
    put("holdout/eel/1.jpg");
    put("holdout/stray.jpg");
    put("Holdout/cat/1.jpg");
    put("masks/fish/1.jpg");
    put("all/cat/1.jpg");
    expect_split("", "holdout", "holdout/dog/1:1");
    expect_split("", "Holdout", "Holdout/cat/1:0");
    expect_split("", "TRAINING", "train/cat/1:0 train/dog/1:1");
    expect_split("", NULL,
                 "Holdout/cat/1:0 all/cat/1:0 holdout/dog/1:1 holdout/eel/1:-1 holdout/stray:-1 "
                 "masks/fish/1:-1 train/cat/1:0 train/dog/1:1 val/cat/1:0");
    refuse_split("", "masks", DL2_ERR_ARGUMENT,
                 "no split is called 'masks', but train 2 images in 2 classes, val 1, Holdout 1, "
                 "holdout 3; 2 elsewhere");
    refuse_split("", "", DL2_ERR_ARGUMENT, "no split is called ''");
    struct dl2_dataset *dataset = open_split("", "all");
    static const char *const splits[] = {"Holdout", "",      "holdout", "",   "",
                                         "",        "train", "train",   "val"};
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++)
        assert_string_equal(dl2_dataset_split_of(dataset, i), splits[i]);
    dl2_dataset_close(dataset);
    /* Without classes all images count; without train, val and test, no folder is a split. */
    put("flat/train/1.jpg");
    put("flat/val/1.jpg");
    put("flat/fold 3/1.jpg");
    expect_split("flat", "fold 3", "flat/fold 3/1:-1" + strlen("flat/"));
    put("folds/fold1/cat/1.jpg");
    put("folds/fold2/cat/1.jpg");
    refuse_split("folds", "fold1", DL2_ERR_ARGUMENT, "2 images in 2 classes");
    /* Names that are too many for the numbers of splits are of none. */
    for (unsigned i = 0; i < 300; i++) {
        char name[64];
        snprintf(name, sizeof name, "%03u/cat/1.jpg", i);
        put(name);
    }
    expect_split("", "248", "248/cat/1:0");
    refuse_split("", "299", DL2_ERR_ARGUMENT, "no split is called '299'");
}

/* How many samples of the split a path below root has; 0: it can't be opened. */
static size_t count_below(const char *name, const char *split)
{
    struct dl2_dataset *dataset = open_any(name, split);
    const size_t count = dataset ? dl2_dataset_count(dataset) : 0;
    assert_false(dataset && is_by_rule(dataset));
    dl2_dataset_close(dataset);
    return count;
}

/* A folder of a split is that split, whole, however it is reached. */
static void test_folder_of_a_split(void **state)
{
    (void)state;
    char name[64];
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "woof/train/%s/%d.jpg", i % 2 ? "cat" : "dog", i);
        put(name);
        snprintf(name, sizeof name, "woof/test/%s/%d.jpg", i % 2 ? "cat" : "dog", i);
        put(name);
        snprintf(name, sizeof name, "woof/valid/%s/%d.jpg", i % 2 ? "cat" : "dog", i);
        put(name);
    }
    assert_int_equal(count_below("woof/train", "train"), 10);
    assert_int_equal(count_below("woof/train/", "train"), 10);
    assert_int_equal(count_below("woof/train/.", "train"), 10);
    assert_int_equal(count_below("woof/train", "all"), 10);
    assert_int_equal(count_below("woof/train", "val"), 0);
    assert_int_equal(count_below("woof/valid", "val"), 10);
    assert_int_equal(count_below("woof/test", "test"), 10);
    assert_int_equal(count_below("woof/test", "val"), 10); /* the path names it */
    assert_int_equal(count_below("woof/test", "train"), 0);
    assert_int_equal(count_below("woof/train/cat", "train"), 5);
    assert_int_equal(symlink("woof/train", at("alias")), 0);
    assert_int_equal(count_below("alias", "train"), 10);
    /* A folder that just happens to be called so, beside others, is split by the rule. */
    put("home/dev/cat/1.jpg");
    put("home/dev/cat/2.jpg");
    put("home/joe/1.jpg");
    struct dl2_dataset *dataset = open_any("home/dev", "train");
    assert_non_null(dataset);
    assert_true(is_by_rule(dataset));
    bool matters;
    const char *message = dl2_dataset_message(dataset, 0, &matters);
    assert_true(matters);
    assert_non_null(strstr(message, "1 for training and 1 for validation"));
    dl2_dataset_close(dataset);
}

static void test_sample_fields(void **state)
{
    (void)state;
    put("c/one.tar.jpg");
    struct dl2_dataset *dataset = open_split("", "all");
    struct dl2_sample sample = sample_of(dataset, 0);
    const char *path = at("c/one.tar.jpg");
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_string_equal(sample.key, "c/one.tar");
    assert_string_equal(sample.name, "c/one.tar.jpg");
    assert_string_equal(sample.path, path);
    assert_int_equal(sample.bytes, strlen("c/one.tar.jpg"));
    assert_int_equal(sample.mtime_ns,
                     (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec);
    struct dl2_bytes scratch = DL2_BYTES_INIT;
    const uint8_t *data;
    size_t size;
    struct dl2_error error = DL2_ERROR_INIT;
    assert_int_equal(dl2_dataset_read(dataset, 0, &scratch, &data, &size, &error), 0);
    assert_int_equal(size, strlen("c/one.tar.jpg"));
    assert_memory_equal(data, "c/one.tar.jpg", size);
    struct dl2_location location;
    assert_true(dl2_dataset_locate(dataset, 0, &location));
    assert_string_equal(location.path, path);
    assert_int_equal(location.fd, -1);
    assert_int_equal(location.offset, 0);
    assert_int_equal(location.bytes, size);
    assert_int_equal(dl2_dataset_verify(dataset, 0, data, size, &error), 0);
    unlink(path);
    assert_int_equal(dl2_dataset_read(dataset, 0, &scratch, &data, &size, &error), DL2_ERR_SYSTEM);
    assert_non_null(strstr(error.message, "one.tar.jpg"));
    dl2_bytes_free(&scratch);
    dl2_dataset_close(dataset);
}

static void test_what_is_skipped(void **state)
{
    (void)state;
    put("dl2-variant.json");
    put("dl2-variant.jsonl");
    put("c/.hidden.jpg");
    put(".git/c/x.jpg");
    put("c/.1.jpg.dl2-tmp");
    put("c/1.jpg");
    put("c/1.png");
    expect_split("", "all", "c/1:0 c/1:0");
}

static bool is_jpeg(const char *path)
{
    return !strcmp(dl2_path_extension(path), "jpg");
}

static void test_keep(void **state)
{
    (void)state;
    put("README.txt");
    put("doc/README.txt");
    put("rose/README.txt");
    put("rose/1.jpg");
    expect_split("", "all", "README:-1 doc/README:0 rose/1:1 rose/README:1");
    struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    options.keep = is_jpeg;
    struct dl2_dataset *dataset = open_with("", &options);
    assert_string_equal(describe(dataset), "rose/1:0");
    assert_int_equal(dl2_dataset_class_count(dataset), 1);
    dl2_dataset_close(dataset);
}

/* A class folder without an image is named, whatever else it holds. */
static void test_class_without_images(void **state)
{
    (void)state;
    struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    bool matters;
    options.keep = is_jpeg;
    put("splits/train/rose/deep/1.jpg");
    put("splits/train/aster/notes.txt");
    put("splits/train/tulip/1.jpg");
    put("splits/val/rose/1.jpg");
    put("splits/val/tulip-2/1.jpg");
    put("splits/notes/empty/README");
    dl2_make_folders(at("splits/val/tulip/deeper"), NULL);
    dl2_make_folders(at("splits/train/rose/none"), NULL);
    struct dl2_dataset *dataset = open_with("splits", &options);
    assert_string_equal(dl2_dataset_message(dataset, 2, &matters),
                        "2 class folders hold no image: train/aster/, val/tulip/; a class needs "
                        "one, and other loaders may refuse such folders, or give the classes other "
                        "numbers");
    assert_true(matters);
    assert_string_equal(dl2_dataset_message(dataset, 3, &matters),
                        "files left out because they are not images: 1 (.txt), such as "
                        "train/aster/notes.txt");
    assert_false(matters);
    assert_null(dl2_dataset_message(dataset, 4, &matters));
    dl2_dataset_close(dataset);
    put("classes/rose/1.jpg");
    expect_silence("classes");
    dl2_make_folders(at("classes/aster"), NULL);
    expect_message("classes", 1, "1 class folder holds no image: aster/;");
    put("flat/1.jpg");
    dl2_make_folders(at("flat/empty"), NULL);
    expect_silence("flat");
}

/* A link that leads to nothing is no image, but may have been meant as one. */
static void test_dangling_links(void **state)
{
    (void)state;
    put("links/aster/1.jpg");
    put("links/rose/1.jpg");
    assert_int_equal(symlink("1.jpg", at("links/rose/2.jpg")), 0);
    expect_silence("links");
    assert_int_equal(symlink("gone.jpg", at("links/rose/3.jpg")), 0);
    expect_message("links", 1,
                   "symbolic links left out because what they point to is missing: 1, such as "
                   "rose/3.jpg");
    assert_int_equal(symlink("/gone/tulip", at("links/tulip")), 0);
    dl2_make_folders(at("links/violet"), NULL);
    expect_message("links", 1, "1 class folder holds no image: violet/;");
    expect_message("links", 2,
                   "symbolic links left out because what they point to is missing: 2, such as ");
}

static void test_flat(void **state)
{
    (void)state;
    put("b.jpg");
    put("a.jpg");
    put("c.jpg");
    expect_split("", "all", "a:-1 b:-1 c:-1");
    struct dl2_dataset *dataset = open_split("", "train");
    assert_int_equal(dl2_dataset_count(dataset), 2);
    assert_int_equal(dl2_dataset_class_count(dataset), 0);
    dl2_dataset_close(dataset);
}

static void test_odd_names(void **state)
{
    (void)state;
    put("two words/a photo.jpg");
    put("Bl\xc3\xbcte/\xe8\x8a\xb1.jpg");
    put("new\nline/x\ty.jpg");
    put("\xff\xfe/not utf-8 \x80.jpg");
    put("trailing./dot..jpg");
    expect_split("", "all",
                 "Bl\xc3\xbcte/\xe8\x8a\xb1:0 new\nline/x\ty:1 trailing./dot.:2 "
                 "two words/a photo:3 \xff\xfe/not utf-8 \x80:4");
}

static void test_slash_at_the_end(void **state)
{
    (void)state;
    put("c/1.jpg");
    char with_slashes[300];
    snprintf(with_slashes, sizeof with_slashes, "%s//", root);
    struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    struct dl2_dataset *dataset;
    assert_int_equal(dl2_dataset_open(with_slashes, &options, &dataset, NULL), 0);
    struct dl2_sample sample = sample_of(dataset, 0);
    assert_string_equal(sample.path, at("c/1.jpg"));
    assert_string_equal(sample.key, "c/1");
    dl2_dataset_close(dataset);
}

static void put_numbered(unsigned classes, unsigned each, const char *extension)
{
    for (unsigned c = 0; c < classes; c++)
        for (unsigned i = 0; i < each; i++) {
            char name[64];
            snprintf(name, sizeof name, "class%u/%03u.%s", c, i, extension);
            put(name);
        }
}

/* Both parts together are the whole, they share nothing, and each class gives its share. */
static void test_rule_is_a_partition(void **state)
{
    (void)state;
    put_numbered(3, 33, "jpg");
    put("lonely/1.jpg");
    put("pair/1.jpg");
    put("pair/2.jpg");
    struct dl2_dataset *all = open_split("", "all");
    struct dl2_dataset *train = open_split("", "train");
    struct dl2_dataset *val = open_split("", "val");
    assert_int_equal(dl2_dataset_count(all), 3 * 33 + 3);
    assert_int_equal(dl2_dataset_count(train) + dl2_dataset_count(val), dl2_dataset_count(all));
    size_t t = 0, v = 0;
    unsigned val_of[5] = {0};
    for (size_t i = 0; i < dl2_dataset_count(all); i++) {
        struct dl2_sample whole = sample_of(all, i);
        struct dl2_sample part;
        bool in_train = t < dl2_dataset_count(train) &&
                        (part = sample_of(train, t), !strcmp(part.key, whole.key));
        if (in_train) {
            t++;
        } else {
            part = sample_of(val, v++);
            assert_string_equal(part.key, whole.key);
            val_of[part.label]++;
        }
        assert_int_equal(part.label, whole.label);
    }
    for (int c = 0; c < 3; c++)
        assert_int_equal(val_of[c], 7); /* round(0.2 * 33) */
    assert_int_equal(val_of[3], 0);     /* the only one of its class stays in training */
    assert_int_equal(val_of[4], 1);
    dl2_dataset_close(all);
    dl2_dataset_close(train);
    dl2_dataset_close(val);
}

static char *copy_of_split(uint64_t seed, double fraction)
{
    struct dl2_dataset_options options = {
        .split = "val", .val_fraction = fraction, .split_seed = seed};
    struct dl2_dataset *dataset = open_with("", &options);
    char *text = strdup(describe(dataset));
    dl2_dataset_close(dataset);
    return text;
}

static void test_rule_is_stable(void **state)
{
    (void)state;
    put_numbered(2, 20, "jpg");
    char *first = copy_of_split(0, 0.2), *again = copy_of_split(0, 0.2),
         *other = copy_of_split(1, 0.2), *larger = copy_of_split(0, 0.5);
    assert_string_equal(first, again);
    assert_string_not_equal(first, other);
    /* A larger part holds the smaller one. */
    char *keys = strdup(first);
    for (char *key = strtok(keys, " "); key; key = strtok(NULL, " "))
        assert_non_null(strstr(larger, key));
    free(keys);
    /* The same keys with another extension are split alike. */
    remove_root(NULL);
    assert_int_equal(mkdir(root, 0700), 0);
    put_numbered(2, 20, "webp");
    char *variant = copy_of_split(0, 0.2);
    assert_string_equal(first, variant);
    free(first);
    free(again);
    free(other);
    free(larger);
    free(variant);
}

/*
 * The rule is part of the format: a change would silently mix training and validation data.
 * Expected values by gen_split.py.
 */
static void test_rule_is_what_it_was(void **state)
{
    (void)state;
    put_numbered(1, 10, "jpg");
    char *text = copy_of_split(0, 0.3);
    assert_string_equal(text, "class0/002:0 class0/003:0 class0/008:0");
    free(text);
    text = copy_of_split(((uint64_t)1 << 40) + 7, 0.3);
    assert_string_equal(text, "class0/003:0 class0/004:0 class0/005:0");
    free(text);
}

static void test_rule_arguments(void **state)
{
    (void)state;
    put_numbered(1, 4, "jpg");
    struct dl2_dataset *dataset;
    struct dl2_dataset_options options = {.split = "train", .val_fraction = 1.5};
    assert_int_equal(dl2_dataset_open(root, &options, &dataset, NULL), DL2_ERR_ARGUMENT);
    options.val_fraction = (double)NAN; /* a fifth */
    dataset = open_with("", &options);
    assert_int_equal(dl2_dataset_count(dataset), 3);
    dl2_dataset_close(dataset);
    options.val_fraction = 0;
    dataset = open_with("", &options);
    assert_int_equal(dl2_dataset_count(dataset), 4);
    dl2_dataset_close(dataset);
    options.val_fraction = 1;
    assert_int_equal(dl2_dataset_open(root, &options, &dataset, NULL), DL2_ERR_FORMAT);
}

static size_t count_by_rule(const char *name, const char *split, double fraction, uint64_t seed)
{
    struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    options.split = split;
    options.val_fraction = fraction;
    options.split_seed = seed;
    struct dl2_dataset *dataset = open_with(name, &options);
    const size_t count = dl2_dataset_count(dataset);
    dl2_dataset_close(dataset);
    return count;
}

static void refuse_rule(const char *name, double fraction, uint64_t seed, const char *says)
{
    struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    options.val_fraction = fraction;
    options.split_seed = seed;
    for (int i = 0; i < 2; i++) {
        struct dl2_dataset *dataset;
        struct dl2_error error = DL2_ERROR_INIT;
        options.split = i ? "val" : "train";
        assert_int_equal(dl2_dataset_open(at(name), &options, &dataset, &error), DL2_ERR_ARGUMENT);
        if (!strstr(error.message, says) || !strstr(error.message, root))
            fail_msg("%s", error.message);
    }
}

/* A fraction that is given splits the folder train, too; where it would do nothing, it is refused.
 */
static void test_rule_on_a_split(void **state)
{
    (void)state;
    for (int i = 0; i < 40; i++) {
        char name[64];
        snprintf(name, sizeof name, "only/train/%s/%02d.jpg", i % 2 ? "cat" : "dog", i);
        put(name);
        snprintf(name, sizeof name, "both/train/%s/%02d.jpg", i % 2 ? "cat" : "dog", i);
        put(name);
        snprintf(name, sizeof name, "none/%s/cat/%02d.jpg", i % 2 ? "val" : "test", i);
        put(name);
    }
    put("only/test/cat/1.jpg");
    put("both/val/cat/1.jpg");
    const double unset = DL2_VAL_FRACTION_UNSET;
    assert_int_equal(count_by_rule("only", "train", 0.1, 0), 36);
    assert_int_equal(count_by_rule("only", "val", 0.1, 0), 4);
    assert_int_equal(count_by_rule("only", "val", 0.5, 3), 20);
    assert_int_equal(count_by_rule("only", "test", 0.1, 0), 1);
    assert_int_equal(count_by_rule("only", "all", 0.1, 0), 41);
    assert_int_equal(count_by_rule("only", "train", unset, 0), 40);
    assert_int_equal(count_by_rule("both/train", "train", 0.1, 0), 36);
    assert_int_equal(count_by_rule("both/train", "val", 0.1, 0), 4);
    assert_int_equal(count_by_rule("both/train", "train", unset, 0), 40);
    assert_int_equal(count_by_rule("both", "train", 0, 0), 40);
    struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    options.split = "train";
    options.val_fraction = 0.1;
    options.subset.fraction = 0.5;
    struct dl2_dataset *dataset = open_with("only", &options);
    assert_int_equal(dl2_dataset_count(dataset), 18);
    assert_string_equal(dl2_dataset_layout(dataset),
                        "train 36 images in 2 classes, val 4 (train/), test 1, of which val is "
                        "chosen from train by a hash of names (fraction 0.1, seed 0)");
    dl2_dataset_close(dataset);
    refuse_rule("both", 0.1, 0, "a split for validation of its own");
    refuse_rule("both", unset, 5, "a split for validation of its own");
    refuse_rule("both/val", 0.1, 0, "no split train");
    refuse_rule("none", 0.1, 0, "no split train");
    refuse_rule("only", unset, 5, "no effect without val_fraction");
}

static char *copy_of_subset(const char *split, struct dl2_subset subset)
{
    struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    options.split = split;
    options.subset = subset;
    struct dl2_dataset *dataset = open_with("", &options);
    char *text = strdup(describe(dataset));
    dl2_dataset_close(dataset);
    return text;
}

static void expect_subset(const char *split, struct dl2_subset subset, const char *description)
{
    char *text = copy_of_subset(split, subset);
    assert_string_equal(text, description);
    free(text);
}

static void put_train_and_val(void)
{
    for (int i = 9; i >= 0; i--) {
        char name[64];
        snprintf(name, sizeof name, "train/a/%03d.jpg", i);
        put(name);
    }
    put("train/b/1.jpg");
    put("train/stray.jpg");
    put("val/a/1.jpg");
    put("val/b/2.jpg");
    put("test/a/1.jpg");
}

/* Expected draws by gen_split.py: they are part of what a run's identity says. */
static void test_subset(void **state)
{
    (void)state;
    put_train_and_val();
    const struct dl2_subset drawn = {0.3, DL2_SUBSET_DRAW, 0},
                            other = {0.3, DL2_SUBSET_DRAW, ((uint64_t)1 << 40) + 7},
                            named = {0.3, DL2_SUBSET_NAME, 0}, tiny = {1e-9, DL2_SUBSET_NAME, 0},
                            whole = {1, DL2_SUBSET_DRAW, 5};
    expect_subset("train", drawn, "train/a/000:0 train/a/002:0 train/a/009:0 train/b/1:1");
    expect_subset("train", other, "train/a/003:0 train/a/005:0 train/a/007:0 train/b/1:1");
    expect_subset("train", named, "train/a/000:0 train/a/001:0 train/a/002:0 train/b/1:1");
    expect_subset("train", tiny, "train/a/000:0 train/b/1:1");
    char *all = copy_of_subset("train", whole);
    expect_split("", "train", all);
    free(all);
    /* Other splits are whole, also among all samples. */
    expect_subset("val", drawn, "val/a/1:0 val/b/2:1");
    expect_subset("all", drawn,
                  "test/a/1:0 train/a/000:0 train/a/002:0 train/a/009:0 train/b/1:1 "
                  "train/stray:-1 val/a/1:0 val/b/2:1");
}

/* Each subset lies in every larger one; keys decide, not extensions. */
static void test_subset_is_nested(void **state)
{
    (void)state;
    for (int by = DL2_SUBSET_DRAW; by <= DL2_SUBSET_NAME; by++) {
        remove_root(NULL);
        assert_int_equal(mkdir(root, 0700), 0);
        put_numbered(2, 40, "jpg");
        char *smaller = NULL;
        size_t count = 0;
        for (int percent = 5; percent <= 100; percent += 5) {
            const struct dl2_subset subset = {percent / 100.0, (enum dl2_subset_by)by, 3};
            char *larger = copy_of_subset("train", subset);
            size_t now = 0;
            for (const char *at = larger; (at = strchr(at, ':')); at++)
                now++;
            assert_int_equal(now, 2 * ((32 * percent + 50) / 100));
            assert_true(now > count);
            count = now;
            for (char *key = smaller ? strtok(smaller, " ") : NULL; key; key = strtok(NULL, " "))
                assert_non_null(strstr(larger, key));
            free(smaller);
            smaller = larger;
        }
        free(smaller);
        const struct dl2_subset half = {0.5, (enum dl2_subset_by)by, 3};
        char *first = copy_of_subset("train", half);
        remove_root(NULL);
        assert_int_equal(mkdir(root, 0700), 0);
        put_numbered(2, 40, "webp");
        expect_subset("train", half, first);
        free(first);
    }
}

static void test_subset_is_said(void **state)
{
    (void)state;
    put_train_and_val();
    struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    bool matters;
    options.split = "train";
    options.subset = (struct dl2_subset){0.125, DL2_SUBSET_DRAW, 7};
    struct dl2_dataset *dataset = open_with("", &options);
    assert_string_equal(dl2_dataset_message(dataset, 1, &matters),
                        "a subset: 3 of the 12 images for training, 12.5% of each class, drawn "
                        "with seed 7");
    assert_true(matters);
    assert_non_null(strstr(dl2_dataset_layout(dataset), "train 12 images"));
    dl2_dataset_close(dataset);
    for (size_t i = 0; i < 3; i++) {
        options.subset.fraction = (const double[]){-0.1, 1.5, (double)NAN}[i];
        assert_int_equal(dl2_dataset_open(root, &options, &dataset, NULL), DL2_ERR_ARGUMENT);
    }
}

/* Any samples, in any order, also several times; then of these again. */
static void test_select(void **state)
{
    (void)state;
    put("train/a/1.jpg");
    put("train/a/2.jpg");
    put("train/b/3.jpg");
    put("train/b/4.jpg");
    put("val/a/5.jpg");
    struct dl2_dataset *dataset = open_split("", "train");
    static const uint32_t numbers[] = {3, 0, 3, 1}, again[] = {2, 1}, none[] = {0, 4};
    struct dl2_error error = DL2_ERROR_INIT;
    assert_int_equal(dl2_dataset_select(dataset, none, 2, &error), DL2_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "no sample number 4 to select among 4"));
    assert_int_equal(dl2_dataset_select(dataset, numbers, 0, NULL), DL2_ERR_ARGUMENT);
    assert_string_equal(describe(dataset), "train/a/1:0 train/a/2:0 train/b/3:1 train/b/4:1");
    assert_int_equal(dl2_dataset_select(dataset, numbers, 4, NULL), DL2_OK);
    assert_string_equal(describe(dataset), "train/b/4:1 train/a/1:0 train/b/4:1 train/a/2:0");
    expect_sample(dataset, 2, "train/b/4.jpg", 13);
    size_t first, count;
    assert_true(dl2_dataset_find(dataset, "train/a/2", &first, &count));
    assert_int_equal(first, 3);
    assert_int_equal(count, 1);
    assert_false(dl2_dataset_find(dataset, "train/b/3", &first, &count));
    assert_int_equal(dl2_dataset_select(dataset, again, 2, NULL), DL2_OK);
    assert_string_equal(describe(dataset), "train/b/4:1 train/a/1:0");
    assert_int_equal(dl2_dataset_class_count(dataset), 2);
    dl2_dataset_close(dataset);
}

static void test_links(void **state)
{
    (void)state;
    put("real/1.jpg");
    assert_int_equal(symlink("real", at("alias")), 0);
    expect_split("", "all", "alias/1:0 real/1:1");
    assert_int_equal(symlink("..", at("real/loop")), 0);
    refuse("", DL2_ERR_FORMAT, "loop");
}

/* ---- Several datasets as one */

/* Those of these names, split train; `paths` ends with NULL. */
static int join(const char *const *names, struct dl2_dataset **members, struct dl2_dataset **out,
                struct dl2_error *error)
{
    struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    options.split = "train";
    options.sidecars = "json";
    const char *paths[8];
    size_t count = 0;
    for (; names[count]; count++) {
        members[count] = open_with(names[count], &options);
        paths[count] = at(names[count]);
    }
    members[count] = NULL;
    return dl2_dataset_join(members, paths, count, out, error);
}

static void close_members(struct dl2_dataset **members)
{
    for (; *members; members++)
        dl2_dataset_close(*members);
}

static void refuse_join(const char *a, const char *b, const char *word)
{
    const char *const names[] = {a, b, NULL};
    struct dl2_dataset *members[3], *joined;
    struct dl2_error error = DL2_ERROR_INIT;
    assert_int_equal(join(names, members, &joined, &error), DL2_ERR_ARGUMENT);
    assert_null(joined);
    if (!strstr(error.message, word) || !strstr(error.message, at(a)))
        fail_msg("\"%s\", without \"%s\"", error.message, word);
    close_members(members);
}

static void test_join(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "b", "c/a", NULL};
    struct dl2_dataset *members[4], *joined;
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_bytes text = DL2_BYTES_INIT;
    bool matters;
    size_t first, count;
    put("a/train/rose/1.jpg");
    put("a/train/tulip/1.jpg");
    put_text("a/train/tulip/1.json", "{}");
    put("b/train/aster/1.jpg");
    put("b/train/rose/1.jpg");
    put("b/train/zinnia/1.jpg");
    put("b/holdout/rose/1.jpg");
    put("c/a/train/rose/1.jpg");
    put("c/a/train/aster/22.jpg");
    if (join(names, members, &joined, &error) < 0)
        fail_msg("%s", error.message);
    /* rose 0 and tulip 1 are a's; b adds aster and zinnia */
    assert_string_equal(describe(joined),
                        "a/train/rose/1:0 a/train/tulip/1:1 b/train/aster/1:2 b/train/rose/1:0 "
                        "b/train/zinnia/1:3 a-2/train/aster/22:2 a-2/train/rose/1:0");
    assert_int_equal(dl2_dataset_class_count(joined), 4);
    assert_string_equal(dl2_dataset_class_name(joined, 3), "zinnia");
    assert_null(dl2_dataset_class_name(joined, 4));
    assert_string_equal(dl2_dataset_message(joined, 0, &matters), dl2_dataset_layout(joined));
    assert_non_null(strstr(dl2_dataset_message(joined, 1, &matters),
                           "b adds 2 classes, from number 2 on: aster, zinnia"));
    assert_true(matters);
    assert_null(dl2_dataset_message(joined, 2, &matters));
    expect_sample(joined, 3, "b/train/rose/1.jpg", strlen("b/train/rose/1.jpg"));
    expect_sample(joined, 5, "c/a/train/aster/22.jpg", strlen("c/a/train/aster/22.jpg"));
    assert_string_equal(sample_of(joined, 5).path, at("c/a/train/aster/22.jpg"));
    assert_int_equal(dl2_dataset_read_sidecar(joined, 1, "json", &text, &error), 1);
    assert_int_equal(dl2_dataset_read_sidecar(joined, 2, "json", &text, &error), 0);
    dl2_bytes_free(&text);
    assert_string_equal(dl2_dataset_split_of(joined, 4), "train");
    assert_true(dl2_dataset_find(joined, "a-2/train/rose/1", &first, &count));
    assert_int_equal(first, 6);
    assert_int_equal(dl2_dataset_members(joined), 3);
    assert_int_equal(dl2_dataset_members(members[0]), 1);
    static const uint32_t some[] = {6, 1, 6, 3};
    assert_int_equal(dl2_dataset_select(joined, some, 4, &error), DL2_OK);
    assert_string_equal(describe(joined), "a-2/train/rose/1:0 a/train/tulip/1:1 "
                                          "a-2/train/rose/1:0 b/train/rose/1:0");
    assert_int_equal(dl2_dataset_member_of(joined, 0), 2);
    assert_int_equal(dl2_dataset_member_of(joined, 1), 0);
    assert_int_equal(dl2_dataset_member_of(joined, 3), 1);
    dl2_dataset_close(joined);
    close_members(members);
}

static void test_join_splits(void **state)
{
    (void)state;
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_dataset *joined;
    put("a/train/rose/1.jpg");
    put("a/holdout/rose/2.jpg");
    put("b/field/rose/1.jpg");
    put("b/train/rose/1.jpg");
    put("b/holdout/rose/1.jpg");
    struct dl2_dataset *members[] = {open_split("a", "all"), open_split("b", "all"), NULL};
    const char *const paths[] = {"a", "b/"};
    if (dl2_dataset_join(members, paths, 2, &joined, &error) < 0)
        fail_msg("%s", error.message);
    static const char *const splits[] = {"holdout", "train", "field", "holdout", "train"};
    assert_int_equal(dl2_dataset_count(joined), 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(dl2_dataset_split_of(joined, i), splits[i]);
    dl2_dataset_close(joined);
    close_members(members);
}

static void test_join_refusals(void **state)
{
    (void)state;
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_dataset *joined;
    put("names/train/rose/1.jpg");
    put("numbers/train/0/1.jpg");
    put("numbers/train/17/1.jpg");
    put("flat/train/1.jpg");
    put("clips/train/run/a/1.jpg");
    put("clips/train/run/a/2.jpg");
    put("clips/train/run/b/1.jpg");
    put("clips/train/run/b/2.jpg");
    refuse_join("names", "numbers", "and those of");
    refuse_join("numbers", "names", "numbers: classes are joined by name");
    refuse_join("names", "flat", "has none: its samples would have no label");
    refuse_join("flat", "names", "has none: its samples would have no label");
    refuse_join("names", "clips", "datasets of one kind go together");
    refuse_join("names", "names", "are the same dataset");
    assert_int_equal(symlink(at("names"), at("link")), 0);
    refuse_join("link", "names", "are the same dataset");
    assert_int_equal(dl2_dataset_join(NULL, NULL, 0, &joined, &error), DL2_ERR_ARGUMENT);
}

static void test_unreadable_folder(void **state)
{
    (void)state;
    put("c/1.jpg");
    put("locked/1.jpg");
    assert_int_equal(chmod(root, 0755), 0);
    assert_int_equal(chmod(at("locked"), 0), 0);
    const uid_t me = geteuid();
    if (me == 0)
        assert_int_equal(seteuid(65534), 0); /* root may read anything: be nobody for a while */
    refuse("", DL2_ERR_SYSTEM, "locked");
    if (me == 0)
        assert_int_equal(seteuid(0), 0);
}

static void test_nothing_there(void **state)
{
    (void)state;
    refuse("", DL2_ERR_FORMAT, "CLASS/FILE");
    refuse("absent", DL2_ERR_SYSTEM, "absent");
    put("file");
    refuse("file", DL2_ERR_FORMAT, "images-idx3-ubyte");
}

static void expect_variant(const char *path, const char *name)
{
    char *found = dl2_dataset_variant_name(path);
    assert_string_equal(found, name);
    free(found);
}

static void test_variant_name(void **state)
{
    (void)state;
    char path[300];
    snprintf(path, sizeof path, "%s///", root);
    expect_variant(path, dl2_path_base(root));
    char here[4096];
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(root), 0);
    expect_variant(".", dl2_path_base(root));
    put("sub/x");
    expect_variant("sub", "sub");
    expect_variant("sub/..", dl2_path_base(root));
    assert_int_equal(chdir(here), 0);
    put_text("dl2-variant.json", "{\"schema\": \"dl2-variant/1\", \"variant\": \"webp-10\"}");
    expect_variant(root, "webp-10");
    put_text("dl2-variant.json", "{");
    expect_variant(path, dl2_path_base(root));
}

/* IDX files. */

static size_t idx_header(uint8_t *out, unsigned rank, uint32_t a, uint32_t b, uint32_t c)
{
    const uint32_t dims[3] = {a, b, c};
    out[0] = out[1] = 0;
    out[2] = 8;
    out[3] = (uint8_t)rank;
    for (unsigned i = 0; i < rank; i++)
        for (int byte = 0; byte < 4; byte++)
            out[4 + 4 * i + (unsigned)byte] = (uint8_t)(dims[i] >> (24 - 8 * byte));
    return 4 + 4 * rank;
}

static size_t pack(const uint8_t *data, size_t size, uint8_t *out, size_t room)
{
    z_stream stream = {0};
    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = (Bytef *)data;
    stream.avail_in = (uInt)size;
    stream.next_out = out;
    stream.avail_out = (uInt)room;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    return room - stream.avail_out;
}

static void put_packed(const char *name, const void *data, size_t size)
{
    uint8_t packed[4096];
    put_bytes(name, packed, pack(data, size, packed, sizeof packed));
}

/* `count` images of 3x2 pixels with pixel values 6 * i + 0..5, and labels (i * 5) % modulus. */
static void put_idx(const char *prefix, uint32_t count, unsigned modulus, bool packed)
{
    void (*const put_data)(const char *, const void *, size_t) = packed ? put_packed : put_bytes;
    const char *extension = packed ? ".gz" : "";
    uint8_t data[2048];
    char name[64];
    size_t size = idx_header(data, 3, count, 2, 3);
    for (uint32_t i = 0; i < 6 * count; i++)
        data[size++] = (uint8_t)i;
    snprintf(name, sizeof name, "%s-images-idx3-ubyte%s", prefix, extension);
    put_data(name, data, size);
    size = idx_header(data, 1, count, 0, 0);
    for (uint32_t i = 0; i < count; i++)
        data[size++] = (uint8_t)(i * 5 % modulus);
    snprintf(name, sizeof name, "%s-labels-idx1-ubyte%s", prefix, extension);
    put_data(name, data, size);
}

static void check_idx(bool packed)
{
    put_idx("train", 5, 3, packed); /* labels 0 2 1 0 2 */
    put_idx("t10k", 2, 3, packed);  /* labels 0 2 */
    expect_split("", "train",
                 "train/0/00000:0 train/0/00003:0 train/1/00002:1 "
                 "train/2/00001:2 train/2/00004:2");
    expect_split("", "val", "val/0/00000:0 val/2/00001:2");
    struct dl2_dataset *dataset = open_split("", "all");
    assert_int_equal(dl2_dataset_count(dataset), 7);
    assert_int_equal(dl2_dataset_class_count(dataset), 3);
    struct dl2_sample sample = sample_of(dataset, 2);
    assert_string_equal(sample.key, "train/1/00002");
    assert_non_null(strstr(sample.path, packed ? "train-images-idx3-ubyte.gz[2]"
                                               : "train-images-idx3-ubyte[2]"));
    static const char expected[] = "P5\n3 2\n255\n\x0c\x0d\x0e\x0f\x10\x11";
    expect_sample(dataset, 2, expected, sizeof expected - 1);
    assert_int_equal(sample.bytes, sizeof expected - 1);
    struct dl2_location location;
    assert_false(dl2_dataset_locate(dataset, 2, &location));
    dl2_dataset_close(dataset);
}

static void test_idx_plain(void **state)
{
    (void)state;
    check_idx(false);
}

static void test_idx_packed(void **state)
{
    (void)state;
    check_idx(true);
}

/* Labels are the numbers of their classes, whether or not all occur, and names sort like them. */
static void test_idx_sparse_labels(void **state)
{
    (void)state;
    put_idx("train", 4, 13, false); /* labels 0 5 10 2 */
    struct dl2_dataset *dataset = open_split("", "all");
    assert_string_equal(describe(dataset),
                        "train/00/00000:0 train/02/00003:2 train/05/00001:5 train/10/00002:10");
    assert_string_equal(dl2_dataset_class_name(dataset, 10), "10");
    dl2_dataset_close(dataset);
    refuse_split("", "val", DL2_ERR_FORMAT, "validation");
    put_idx("t10k", 2, 4, false); /* labels 0 1 */
    expect_split("", "val", "val/00/00000:0 val/01/00001:1");
    expect_split("", "train",
                 "train/00/00000:0 train/02/00003:2 train/05/00001:5 train/10/00002:10");
}

static void refuse_images(const uint8_t *data, size_t size, int status, const char *word)
{
    put_bytes("train-images-idx3-ubyte", data, size);
    refuse("", status, word);
    refuse("", status, "train-images-idx3-ubyte");
}

static void test_idx_refusals(void **state)
{
    (void)state;
    uint8_t data[64];
    put_idx("train", 5, 3, false);
    refuse_images(data, 0, DL2_ERR_FORMAT, "not an IDX file");
    size_t size = idx_header(data, 3, 1, 2, 3);
    refuse_images(data, size - 1, DL2_ERR_FORMAT, "cut short");
    memset(data + size, 7, 8);
    refuse_images(data, size + 5, DL2_ERR_FORMAT, "6 bytes");
    refuse_images(data, size + 7, DL2_ERR_FORMAT, "more bytes");
    data[2] = 0x0d;
    refuse_images(data, size + 6, DL2_ERR_UNSUPPORTED, "0x0d");
    data[2] = 8;
    data[3] = 2;
    refuse_images(data, size + 6, DL2_ERR_UNSUPPORTED, "2 dimensions");
    data[0] = 1;
    refuse_images(data, size + 6, DL2_ERR_FORMAT, "not an IDX file");
    size = idx_header(data, 3, 1, 0, 3);
    refuse_images(data, size, DL2_ERR_FORMAT, "dimension 2 is 0");
    size = idx_header(data, 3, 0xffffffff, 0xffffffff, 0xffffffff);
    refuse_images(data, size, DL2_ERR_LIMIT, "4 GiB");
    size = idx_header(data, 3, 1, 65536, 65535);
    refuse_images(data, size, DL2_ERR_FORMAT, "cannot hold");
    size = idx_header(data, 3, 2, 2, 3);
    refuse_images(data, size + 12, DL2_ERR_FORMAT, "5 labels for the 2 images");
    unlink(at("train-labels-idx1-ubyte"));
    refuse_images(data, size + 12, DL2_ERR_FORMAT, "no labels");
}

static void test_idx_packed_refusals(void **state)
{
    (void)state;
    put_idx("train", 5, 3, false);
    unlink(at("train-images-idx3-ubyte"));
    const char *name = "train-images-idx3-ubyte.gz";
    uint8_t data[64], packed[256];
    size_t size = idx_header(data, 3, 5, 2, 3);
    memset(data + size, 9, 31);
    size_t length = pack(data, size + 30, packed, sizeof packed);
    put_bytes(name, packed, length - 9);
    refuse("", DL2_ERR_FORMAT, "too early");
    packed[length - 6] ^= 1; /* the check sum */
    put_bytes(name, packed, length);
    refuse("", DL2_ERR_FORMAT, "corrupt");
    put_packed(name, data, size + 29);
    refuse("", DL2_ERR_FORMAT, "only 29 follow");
    put_packed(name, data, size + 31);
    refuse("", DL2_ERR_FORMAT, "more bytes");
    size = idx_header(data, 3, 60000, 28, 28);
    put_packed(name, data, size);
    refuse("", DL2_ERR_FORMAT, "cannot hold");
    /* Two gzip members one after the other are one file. */
    size = idx_header(data, 3, 5, 2, 3);
    length = pack(data, size + 10, packed, sizeof packed);
    length += pack(data + size + 10, 20, packed + length, sizeof packed - length);
    put_bytes(name, packed, length);
    struct dl2_dataset *dataset = open_split("", "all");
    assert_int_equal(dl2_dataset_count(dataset), 5);
    dl2_dataset_close(dataset);
}

/* What lies beside an image under this extension; NULL: nothing. */
static void expect_sidecar(const struct dl2_dataset *dataset, size_t index, const char *extension,
                           const char *text)
{
    struct dl2_bytes bytes = DL2_BYTES_INIT;
    const int status = dl2_dataset_read_sidecar(dataset, index, extension, &bytes, NULL);
    assert_int_equal(status, text ? 1 : 0);
    if (text) {
        assert_int_equal(bytes.size, strlen(text));
        assert_memory_equal(bytes.data, text, bytes.size);
    }
    dl2_bytes_free(&bytes);
}

static bool is_jpg(const char *path)
{
    return strstr(path, ".jpg");
}

static void test_sidecars(void **state)
{
    (void)state;
    put("a/1.jpg");
    put_text("a/1.txt", "a caption");
    put_text("a/1.json", "{}");
    put("a/2.v1.jpg");
    put_text("a/2.v1.txt", "2");
    put_text("a/2.txt", "another's");
    const struct dl2_dataset_options options = {.keep = is_jpg};
    struct dl2_dataset *dataset = open_with("", &options);
    assert_true(dl2_dataset_has_sidecars(dataset));
    expect_sidecar(dataset, 0, "txt", "a caption");
    expect_sidecar(dataset, 0, "json", "{}");
    expect_sidecar(dataset, 0, "cls", NULL);
    expect_sidecar(dataset, 1, "txt", "2");
    expect_sidecar(dataset, 1, "json", NULL);
    dl2_dataset_close(dataset);
    put_idx("i/train", 1, 3, false);
    dataset = open_split("i", "all");
    assert_false(dl2_dataset_has_sidecars(dataset));
    expect_sidecar(dataset, 0, "txt", NULL);
    dl2_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_train_and_val),
        TEST(test_classes_of_train_come_first),
        TEST(test_only_one_part),
        TEST(test_class_called_train),
        TEST(test_names_of_splits),
        TEST(test_train_and_test),
        TEST(test_depth_tells_splits),
        TEST(test_splits_by_other_names),
        TEST(test_folder_of_a_split),
        TEST(test_sample_fields),
        TEST(test_what_is_skipped),
        TEST(test_keep),
        TEST(test_class_without_images),
        TEST(test_dangling_links),
        TEST(test_flat),
        TEST(test_odd_names),
        TEST(test_slash_at_the_end),
        TEST(test_rule_is_a_partition),
        TEST(test_rule_is_stable),
        TEST(test_rule_is_what_it_was),
        TEST(test_rule_arguments),
        TEST(test_rule_on_a_split),
        TEST(test_subset),
        TEST(test_subset_is_nested),
        TEST(test_subset_is_said),
        TEST(test_links),
        TEST(test_sidecars),
        TEST(test_select),
        TEST(test_join),
        TEST(test_join_splits),
        TEST(test_join_refusals),
        TEST(test_unreadable_folder),
        TEST(test_nothing_there),
        TEST(test_variant_name),
        TEST(test_idx_plain),
        TEST(test_idx_packed),
        TEST(test_idx_sparse_labels),
        TEST(test_idx_refusals),
        TEST(test_idx_packed_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
