/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A variant's records on any bytes: the first byte says whether the rest is its summary, its lines
 * or a journal that a killed run left. Whatever they say, a record is believed only for an image
 * that is there with the size that the record names.
 */
#include "common/file.h"
#include "transcode/variant/variant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ITEMS = 2, OUTPUT_BYTES = 3 };

static const char *const names[] = {"dl2-variant.json", "dl2-variant.jsonl",
                                    ".dl2-variant.journal"};
enum { FILES = sizeof names / sizeof *names };

static char root[] = "/tmp/dl2-fuzz-variant.XXXXXX";
static char *paths[FILES];
static struct dl2_bytes summary = DL2_BYTES_INIT; /* the one that belongs to these options */

/* `a` has an output, `b` has none. */
static struct dl2_source_item item_list[ITEMS] = {
    {0, "a", "a.ppm", "a.ppm", "a", "a.ppm", 7, 11, -1, SIZE_MAX},
    {1, "b", "b.ppm", "b.ppm", "b", "b.ppm", 7, 11, -1, SIZE_MAX},
};
static size_t by_key[ITEMS] = {0, 1};
static const struct dl2_source_items items = {item_list, ITEMS, by_key, 0};

static void must(bool well)
{
    if (!well)
        abort();
}

static void remove_root(void)
{
    dl2_bytes_free(&summary);
    for (int i = 0; i < FILES; i++)
        free(paths[i]);
    char command[sizeof root + 16];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    if (system(command) != 0)
        perror(root);
}

static void init(struct dl2_variant *variant)
{
    static const struct dl2_transcode_options options = {.source = "source",
                                                         .dest = root,
                                                         .decode = DL2_DECODE_DEFAULTS,
                                                         .pack = {.container = "folder"},
                                                         .never_larger = true,
                                                         .color = DL2_COLORS_KEEP};
    const struct dl2_transcode_target target = {
        .codec = dl2_codec_find("ppm"),
        .encode = DL2_ENCODE_DEFAULTS,
        .resolution = {.short_side = 9, .filter = DL2_LANCZOS}};
    must(dl2_variant_init(variant, &options, &target, false, NULL) == DL2_OK);
}

static void make_variant(void)
{
    must(mkdtemp(root));
    struct dl2_variant variant;
    init(&variant);
    must(dl2_variant_load(&variant, &items, false, NULL) == DL2_OK);
    must(dl2_variant_begin(&variant, NULL) == DL2_OK);
    for (int i = 0; i < FILES; i++) {
        paths[i] = dl2_path_join(variant.root, names[i]);
        must(paths[i]);
    }
    must(dl2_file_read(paths[0], 1 << 20, &summary, NULL) == DL2_OK);
    char *output = dl2_path_join(variant.root, "a.ppm");
    must(output && dl2_file_write(output, "abc", OUTPUT_BYTES, NULL) == DL2_OK);
    free(output);
    dl2_variant_free(&variant);
    atexit(remove_root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!paths[0])
        make_variant();
    if (size == 0)
        return 0;
    const int kind = data[0] % FILES;
    for (int i = 1; i < FILES; i++)
        unlink(paths[i]);
    must(dl2_file_write(paths[0], summary.data, summary.size, NULL) == DL2_OK);
    must(dl2_file_write(paths[kind], data + 1, size - 1, NULL) == DL2_OK);

    struct dl2_variant variant;
    init(&variant);
    if (dl2_variant_load(&variant, &items, false, NULL) == DL2_OK) {
        if (variant.records[0].state == DL2_RECORD_VALID)
            must(variant.records[0].bytes == OUTPUT_BYTES);
        must(variant.records[1].state != DL2_RECORD_VALID);
    }
    dl2_variant_free(&variant);
    return 0;
}
