/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses, credentials' files, the XML of S3 and the cache in a folder, without a network. */
#include "dataset/split.h"
#include "remote/address.h"
#include "remote/credentials.h"
#include "remote/disk_cache.h"
#include "remote/remote.h"

#include "common/file.h"
#include "config.h"
#include "tests/dataset/scratch.h"

#include <fcntl.h>
#include <unistd.h>

/* ---- Addresses */

static void test_good_addresses(void **state)
{
    static const struct {
        const char *text, *place, *path;
        bool is_s3;
    } cases[] = {
        {"http://host", "http://host", "", false},
        {"HTTPS://host:8443//a/b//", "https://host:8443", "a/b", false},
        {"http://[::1]:80/a%20b", "http://[::1]:80", "a%20b", false},
        {"s3://bucket", "bucket", "", true},
        {"s3://my.bucket/a b/c?d#e/", "my.bucket", "a b/c?d#e", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dl2_address address;
        struct dl2_error error = DL2_ERROR_INIT;
        assert_true(dl2_is_address(cases[i].text));
        assert_int_equal(dl2_address_parse(cases[i].text, &address, &error), DL2_OK);
        assert_string_equal(address.place, cases[i].place);
        assert_string_equal(address.path, cases[i].path);
        assert_int_equal(address.is_s3, cases[i].is_s3);
        dl2_address_free(&address);
    }
    assert_false(dl2_is_address("s3:/bucket"));
    assert_false(dl2_is_address("http/host"));
    assert_false(dl2_is_address("postgresql:///db"));
}

static void test_bad_addresses(void **state)
{
    static const char *const cases[] = {
        "http://",       "http:///a",       "http://ho st/a", "http://host/a b", "http://host/a?b",
        "http://host/#", "http://host/%zz", "s3://",          "s3:///key",       "s3://ab",
        "s3://b_/\\",    "s3://-bucket",    "http://-/",      "ftp://host/",
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dl2_address address;
        struct dl2_error error = DL2_ERROR_INIT;
        if (dl2_address_parse(cases[i], &address, &error) != DL2_ERR_ARGUMENT || !error.message[0])
            fail_msg("%s was not refused", cases[i]);
        dl2_address_free(&address);
    }
}

static void test_passwords_are_not_shown(void **state)
{
    static const char *const cases[] = {"http://me:s3cret@host/a", "s3://key:s3cret@bucket/a",
                                        "https://s3cret@host"};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dl2_address address;
        struct dl2_error error = DL2_ERROR_INIT;
        assert_int_equal(dl2_address_parse(cases[i], &address, &error), DL2_ERR_ARGUMENT);
        assert_null(strstr(error.message, "s3cret"));
        assert_non_null(strstr(error.message, "***"));
        dl2_address_free(&address);
    }
}

static void expect_object(const char *text, const char *name, const char *wanted)
{
    struct dl2_address address;
    assert_int_equal(dl2_address_parse(text, &address, NULL), DL2_OK);
    char *object = dl2_address_object(&address, name);
    if (wanted)
        assert_string_equal(object, wanted);
    else
        assert_null(object);
    free(object);
    dl2_address_free(&address);
}

static void test_objects(void **state)
{
    (void)state;
    expect_object("http://h/a%20b", "c d/\xc3\xa9+&.jpg", "a%20b/c%20d/%C3%A9%2B%26.jpg");
    expect_object("s3://bucket/a b", "c", "a%20b/c");
    expect_object("s3://bucket", "a/b~c_d-e.f", "a/b~c_d-e.f");
    expect_object("s3://bucket/a//b/c", "../x", "a//b/x");
    expect_object("s3://bucket/a//b/c", "../../x", "a/x");
    expect_object("http://h/a", "../x", "x");
    expect_object("http://h/a", "../../x", NULL);
    expect_object("http://h/a", "", "a");
}

static void test_decoding(void **state)
{
    static const char *const bad[] = {"%", "a%2", "%zz", "a%2fb", "%00"};
    (void)state;
    char good[] = "a%20b/%C3%a9%25%2B+";
    assert_true(dl2_percent_decode(good));
    assert_string_equal(good, "a b/\xc3\xa9%++");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[16];
        snprintf(text, sizeof text, "%s", bad[i]);
        if (dl2_percent_decode(text))
            fail_msg("%s was decoded", bad[i]);
    }
}

/* What a list at `base` calls a file at `url`; NULL: it is refused. */
static void expect_name(const char *base, const char *url, const char *wanted, const char *there)
{
    const struct dl2_remote_options options = {.cache_dir = NULL};
    struct dl2_remote *remote;
    char *name, *path;
    const int opened = dl2_remote_open(base, &options, &remote, NULL);
    if (opened == DL2_ERR_UNSUPPORTED)
        skip();
    assert_int_equal(opened, DL2_OK);
    const int status = dl2_remote_name_of(remote, url, &name, &path, NULL);
    assert_int_equal(status, wanted ? DL2_OK : DL2_ERR_ARGUMENT);
    if (wanted) {
        assert_string_equal(name, wanted);
        assert_string_equal(path, there);
    }
    free(name);
    free(path);
    dl2_remote_close(remote);
}

static void test_names_below_addresses(void **state)
{
    (void)state;
    expect_name("http://h/a%20b", "http://H/a%20b/c%20d.jpg", "c d.jpg", "a b/c d.jpg");
    expect_name("http://h/a%20b/c", "http://h/a%20bc/d.jpg", "../../a bc/d.jpg", "a bc/d.jpg");
    expect_name("http://h", "http://h/a/b.jpg", "a/b.jpg", "a/b.jpg");
    expect_name("s3://bucket/x//y", "s3://bucket/a%20.jpg", "../../a%20.jpg", "a%20.jpg");
    expect_name("s3://bucket/x", "s3://bucket/x/y.jpg", "y.jpg", "x/y.jpg");
    expect_name("s3://bucket/x", "s3://other/x/y.jpg", NULL, NULL);
    expect_name("s3://bucket/x", "http://bucket/x/y.jpg", NULL, NULL);
    expect_name("http://h", "https://h/a.jpg", NULL, NULL);
    expect_name("http://h", "http://h:81/a.jpg", NULL, NULL);
    expect_name("http://h", "http://h/a%2Fb.jpg", NULL, NULL);
    expect_name("http://h", "http://h/a.jpg?signed", NULL, NULL);
}

static void test_splits_of_addresses(void **state)
{
    unsigned depth;
    (void)state;
    assert_int_equal(dl2_part_of_address("s3://bucket/data/train", &depth), DL2_PART_TRAIN);
    assert_int_equal(depth, 0);
    assert_int_equal(dl2_part_of_address("http://h/data/valid/rose/", &depth), DL2_PART_VAL);
    assert_int_equal(depth, 1);
    assert_int_equal(dl2_part_of_address("s3://train/data", &depth), DL2_PART_NONE);
    assert_int_equal(dl2_part_of_address("http://test", &depth), DL2_PART_NONE);
}

/* ---- Credentials */

static const char ini[] = "# a comment = 1\n[default]\naws_access_key_id = AK\n"
                          "aws_secret_access_key=se=cret \n\n[ other ]\nregion = eu-west-1\r\n"
                          "s3 =\n  region = nowhere\n[profile third]\nregion=us-west-2";

static void expect_setting(const char *section, const char *name, const char *wanted, bool there)
{
    bool found;
    char *value = dl2_ini_value(ini, section, name, &found);
    if (wanted)
        assert_string_equal(value, wanted);
    else
        assert_null(value);
    assert_int_equal(found, there);
    free(value);
}

static void test_ini(void **state)
{
    (void)state;
    expect_setting("default", "aws_access_key_id", "AK", true);
    expect_setting("default", "aws_secret_access_key", "se=cret", true);
    expect_setting("default", "region", NULL, true);
    expect_setting("other", "region", "eu-west-1", true);
    expect_setting("profile third", "region", "us-west-2", true);
    expect_setting("third", "region", NULL, false);
}

static const char *const variables[] = {
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",      "AWS_SESSION_TOKEN", "AWS_PROFILE",
    "AWS_REGION",        "AWS_DEFAULT_REGION",         "AWS_ENDPOINT_URL",  "AWS_ENDPOINT_URL_S3",
    "AWS_CONFIG_FILE",   "AWS_SHARED_CREDENTIALS_FILE"};

static void clear_environment(const char *home)
{
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    setenv("HOME", home, 1);
}

static void test_credentials(void **state)
{
    struct dl2_credentials credentials;
    struct dl2_error error = DL2_ERROR_INIT;
    (void)state;
    clear_environment(root);
    assert_int_equal(dl2_credentials_load(&credentials, &error), DL2_OK);
    assert_null(credentials.key);
    assert_string_equal(credentials.region, "us-east-1");
    dl2_credentials_free(&credentials);

    put_text(".aws/credentials", ini);
    assert_int_equal(dl2_credentials_load(&credentials, &error), DL2_OK);
    assert_string_equal(credentials.key, "AK");
    assert_string_equal(credentials.secret, "se=cret");
    dl2_credentials_free(&credentials);

    setenv("AWS_PROFILE", "nobody", 1);
    assert_int_equal(dl2_credentials_load(&credentials, &error), DL2_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "nobody"));
    dl2_credentials_free(&credentials);
    dl2_error_clear(&error);

    static const char config[] = "[profile work]\nregion = eu-west-1\nrole_arn = arn:x\n";
    put_text(".aws/config", config);
    setenv("AWS_PROFILE", "work", 1);
    assert_int_equal(dl2_credentials_load(&credentials, &error), DL2_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "role_arn"));
    dl2_credentials_free(&credentials);
    dl2_error_clear(&error);

    setenv("AWS_ACCESS_KEY_ID", "A", 1);
    assert_int_equal(dl2_credentials_load(&credentials, &error), DL2_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "AWS_SECRET_ACCESS_KEY"));
    dl2_credentials_free(&credentials);
    dl2_error_clear(&error);

    setenv("AWS_SECRET_ACCESS_KEY", "s3cret", 1);
    setenv("AWS_SESSION_TOKEN", "T", 1);
    setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9000//", 1);
    assert_int_equal(dl2_credentials_load(&credentials, &error), DL2_OK);
    assert_string_equal(credentials.key, "A");
    assert_string_equal(credentials.token, "T");
    assert_string_equal(credentials.region, "eu-west-1");
    assert_string_equal(credentials.endpoint, "http://127.0.0.1:9000");
    dl2_credentials_free(&credentials);

    setenv("AWS_ENDPOINT_URL_S3", "http://me:s3cret@host", 1);
    assert_int_equal(dl2_credentials_load(&credentials, &error), DL2_ERR_ARGUMENT);
    assert_null(strstr(error.message, "s3cret"));
    dl2_credentials_free(&credentials);
    clear_environment(root);
}

/* ---- The XML of S3 */

#ifdef HAVE_LIBCURL
static int read_page(const char *text, struct dl2_listing *listing, struct dl2_error *error)
{
    return dl2_listing_read((const uint8_t *)text, strlen(text), listing, error);
}

static void test_listing(void **state)
{
    struct dl2_listing listing = {0};
    struct dl2_error error = DL2_ERROR_INIT;
    (void)state;
    assert_int_equal(
        read_page("<?xml version='1.0'?><ListBucketResult xmlns='http://s3'><Name>b</Name>"
                  "<IsTruncated>true</IsTruncated><NextContinuationToken>a&amp;b</"
                  "NextContinuationToken><Contents><Key>x/a &lt;&#xE9;>.jpg</Key><Size>12</Size>"
                  "<LastModified>2026-11-25T00:00:01.500Z</LastModified><ETag>&quot;e&quot;</ETag>"
                  "<Owner><ID>Size</ID></Owner></Contents></ListBucketResult>",
                  &listing, &error),
        DL2_OK);
    assert_string_equal((char *)listing.next.data, "a&b");
    assert_int_equal(read_page("<s3:ListBucketResult xmlns:s3='http://s3'><s3:Contents><s3:Key>x/b"
                               "</s3:Key><s3:Size>0</s3:Size></s3:Contents></s3:ListBucketResult>",
                               &listing, &error),
                     DL2_OK);
    const char *strings = (const char *)listing.strings.data;
    assert_int_equal(listing.count, 2);
    assert_int_equal(listing.next.size, 0);
    assert_string_equal(strings + listing.objects[0].key, "x/a <\xc3\xa9>.jpg");
    assert_string_equal(strings + listing.objects[0].etag, "\"e\"");
    assert_int_equal(listing.objects[0].bytes, 12);
    assert_int_equal(listing.objects[0].mtime_ns % 10000000000, 1500000000);
    assert_string_equal(strings + listing.objects[1].key, "x/b");
    assert_string_equal(strings + listing.objects[1].etag, "");
    dl2_listing_free(&listing);
}

static void test_bad_listings(void **state)
{
#define PAGE(text) "<ListBucketResult>" text "</ListBucketResult>"
    static const char *const cases[] = {
        "",
        "<Error/>",
        "<ListBucketResult>",
        PAGE("<Contents><Size>1</Size></Contents>"),
        PAGE("<Contents><Key>a</Key></Contents>"),
        PAGE("<Contents><Key/><Size>1</Size></Contents>"),
        PAGE("<Contents><Key>a</Key><Size>-1</Size></Contents>"),
        PAGE("<Contents><Key>a</Key><Size>9999999999999999999</Size></Contents>"),
        PAGE("<IsTruncated>true</IsTruncated>"),
        PAGE("<NextContinuationToken>a</NextContinuationToken>"),
        "<!DOCTYPE x [<!ENTITY a 'b'>]>" PAGE("<Contents><Key>&a;</Key><Size>1</Size></Contents>"),
        PAGE("<a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a/></a></a></a></a></a></a></a></a></a>"
             "</a></a></a></a></a></a>"),
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dl2_listing listing = {0};
        struct dl2_error error = DL2_ERROR_INIT;
        if (read_page(cases[i], &listing, &error) != DL2_ERR_FORMAT || !error.message[0])
            fail_msg("page %zu was not refused", i);
        dl2_listing_free(&listing);
    }
}

static void test_store_errors(void **state)
{
    static const char text[] =
        "<?xml version='1.0'?><Error><Code>NoSuchKey</Code><Message>not there</Message>"
        "<Detail><Code>x</Code></Detail><RequestId>R1</RequestId></Error>";
    struct dl2_store_error store;
    (void)state;
    dl2_store_error_read((const uint8_t *)text, sizeof text - 1, &store);
    assert_string_equal(store.code, "NoSuchKey");
    assert_string_equal(store.message, "not there");
    assert_string_equal(store.request, "R1");
    dl2_store_error_read((const uint8_t *)"<html>", 6, &store);
    assert_string_equal(store.code, "");
}
#endif

/* ---- The cache */

static void put_entry(struct dl2_disk_cache *cache, const char *object, uint64_t start,
                      const char *text)
{
    const struct dl2_cache_unit unit = {object, start};
    dl2_disk_cache_put(cache, &unit, start + 1, (const uint8_t *)text, strlen(text));
}

static bool has_text(struct dl2_disk_cache *cache, const char *object, uint64_t start,
                     const char *text)
{
    const struct dl2_cache_unit unit = {object, start};
    struct dl2_bytes bytes = DL2_BYTES_INIT;
    uint64_t offset = 0;
    const bool there = dl2_disk_cache_get(cache, &unit, &bytes, &offset);
    if (there) {
        assert_int_equal(offset, start + 1);
        assert_int_equal(bytes.size, strlen(text));
        assert_memory_equal(bytes.data, text, bytes.size);
    }
    dl2_bytes_free(&bytes);
    return there;
}

static void test_cache(void **state)
{
    struct dl2_disk_cache *cache, *other;
    struct dl2_remote_stats stats;
    const char *folder = "a/b";
    (void)state;
    assert_int_equal(dl2_disk_cache_open(at(folder), 1 << 20, &cache, NULL), DL2_OK);
    assert_int_equal(dl2_disk_cache_open(at(folder), 1 << 20, &other, NULL), DL2_OK);
    put_entry(cache, "one\n\"e\"", 5, "some bytes");
    put_entry(cache, "two\n\"e\"", 5, "");
    assert_true(has_text(other, "one\n\"e\"", 5, "some bytes"));
    assert_true(has_text(other, "two\n\"e\"", 5, ""));
    assert_false(has_text(other, "one\n\"e\"", 6, ""));
    assert_false(has_text(other, "one\n\"f\"", 5, ""));
    put_entry(other, "one\n\"e\"", 5, "more");
    assert_true(has_text(cache, "one\n\"e\"", 5, "more"));
    dl2_disk_cache_remove(cache, &(struct dl2_cache_unit){"one\n\"e\"", 5});
    assert_false(has_text(other, "one\n\"e\"", 5, ""));
    dl2_disk_cache_close(other);
    dl2_disk_cache_close(cache);

    /* A damaged entry is none, and is counted; any byte. */
    assert_int_equal(dl2_disk_cache_open(at(folder), 1 << 20, &cache, NULL), DL2_OK);
    struct dl2_file_list list;
    for (size_t byte_at = 0;; byte_at++) {
        put_entry(cache, "one", 0, "some bytes");
        dl2_disk_cache_remove(cache, &(struct dl2_cache_unit){"two\n\"e\"", 5});
        assert_int_equal(dl2_list_files(at(folder), &list, NULL), DL2_OK);
        assert_int_equal(list.count, 1);
        char *path = dl2_path_join(at(folder), list.paths[0]);
        const bool over = byte_at >= list.bytes[0];
        const int fd = open(path, O_RDWR);
        uint8_t byte;
        if (!over) {
            assert_int_equal(pread(fd, &byte, 1, (off_t)byte_at), 1);
            byte ^= 1;
            assert_int_equal(pwrite(fd, &byte, 1, (off_t)byte_at), 1);
        } else {
            assert_int_equal(ftruncate(fd, (off_t)byte_at - 1), 0);
        }
        close(fd);
        free(path);
        dl2_file_list_free(&list);
        assert_false(has_text(cache, "one", 0, ""));
        if (over)
            break;
    }
    dl2_disk_cache_get_stats(cache, &stats);
    assert_true(stats.cache_damaged > 10);
    assert_int_equal(stats.cache_lost, 0);
    dl2_disk_cache_close(cache);
}

/* What was used least recently makes room. */
static void test_room(void **state)
{
    enum { ENTRIES = 64, BYTES = 8192, LIMIT = 16 * BYTES };
    static uint8_t data[BYTES];
    struct dl2_disk_cache *cache;
    struct dl2_bytes bytes = DL2_BYTES_INIT;
    uint64_t offset;
    size_t there = 0;
    (void)state;
    assert_int_equal(dl2_disk_cache_open(at(""), LIMIT, &cache, NULL), DL2_OK);
    const struct dl2_cache_unit first = {"0", 0};
    for (uint64_t i = 0; i < ENTRIES; i++) {
        dl2_disk_cache_put(cache, &(struct dl2_cache_unit){"0", i}, i, data, sizeof data);
        usleep(2000); /* times of use that differ */
        assert_true(dl2_disk_cache_get(cache, &first, &bytes, &offset));
    }
    for (uint64_t i = 0; i < ENTRIES; i++)
        there += dl2_disk_cache_get(cache, &(struct dl2_cache_unit){"0", i}, &bytes, &offset);
    assert_true(there >= 4 && there <= 16);
    assert_true(
        dl2_disk_cache_get(cache, &(struct dl2_cache_unit){"0", ENTRIES - 1}, &bytes, &offset));
    dl2_bytes_free(&bytes);
    dl2_disk_cache_close(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_addresses),
        cmocka_unit_test(test_bad_addresses),
        cmocka_unit_test(test_passwords_are_not_shown),
        cmocka_unit_test(test_objects),
        cmocka_unit_test(test_decoding),
        cmocka_unit_test(test_names_below_addresses),
        cmocka_unit_test(test_splits_of_addresses),
        cmocka_unit_test(test_ini),
        TEST(test_credentials),
#ifdef HAVE_LIBCURL
        cmocka_unit_test(test_listing),
        cmocka_unit_test(test_bad_listings),
        cmocka_unit_test(test_store_errors),
#endif
        TEST(test_cache),
        TEST(test_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
