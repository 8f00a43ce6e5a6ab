/* SPDX-License-Identifier: BSD-2-Clause */
#include "dataset/files/files.h"

#include "common/file.h"
#include "common/quote.h"
#include "common/scope.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

/* Largest encoded sample that is read, bytes. */
#define MAX_SAMPLE_BYTES ((uint64_t)1 << 31)

int dl2_files_read_names(struct dl2_dataset *dataset, struct dl2_error *error)
{
    struct dl2_files *files = dataset->state;
    DL2_AUTO_FREE const char **names = NULL;
    DL2_TRY(DL2_NEW(&names, files->count, "a dataset", error));
    for (size_t i = 0; i < files->count; i++)
        names[i] = files->entries[i].sample.name;
    DL2_CLEANUP(dl2_tree_free) struct dl2_tree tree;
    DL2_TRY(dl2_tree_read(names, files->count, NULL, &tree, error));
    for (size_t i = 0; i < files->count; i++) {
        files->entries[i].part = tree.parts[i];
        files->entries[i].sample.label = tree.labels[i];
    }
    dataset->count = files->count;
    dataset->has_parts = tree.has_parts;
    dataset->classes = tree.classes;
    dataset->class_count = tree.class_count;
    dataset->parts = tree.names;
    tree.classes = NULL;
    tree.names = (struct dl2_part_list){0};
    return DL2_OK;
}

int dl2_files_load(const struct dl2_files *files, const char *path, size_t number,
                   uint64_t max_bytes, struct dl2_bytes *out, struct dl2_error *error)
{
    if (!files->remote)
        return dl2_file_read(path, max_bytes, out, error);
    struct dl2_remote_file *file = &files->remote[number];
    if (file->bytes > max_bytes)
        return dl2_error_set(error, DL2_ERR_LIMIT,
                             "%s: %" PRIu64 " bytes pass the limit of %" PRIu64, path, file->bytes,
                             max_bytes);
    DL2_TRY(dl2_bytes_resize(out, (size_t)file->bytes, error));
    return dl2_remote_read(file, 0, 0, out->data, out->size, error);
}

void dl2_extensions_add(struct dl2_extensions *extensions, const char *extension)
{
    size_t i = 0;
    while (i < DL2_EXTENSIONS_NAMED && extensions->names[i] &&
           strcasecmp(extensions->names[i], extension) != 0)
        i++;
    if (i < DL2_EXTENSIONS_NAMED)
        extensions->names[i] = extension;
}

void dl2_extensions_list(const struct dl2_extensions *extensions, char *list, size_t size)
{
    *list = '\0';
    for (size_t i = 0; i < DL2_EXTENSIONS_NAMED && extensions->names[i]; i++) {
        char name[32];
        snprintf(name, sizeof name, *extensions->names[i] ? ".%s" : "no extension",
                 extensions->names[i]);
        for (char *letter = name; *letter; letter++)
            *letter = (char)tolower((unsigned char)*letter);
        dl2_list_name(list, size, name);
    }
}

void dl2_files_free(struct dl2_files *files)
{
    for (size_t i = 0; i < files->remote_count; i++)
        dl2_remote_file_free(&files->remote[i]);
    free(files->remote);
    free(files->entries);
}

bool dl2_files_is_video(const char *path)
{
    static const char *const extensions[] = {"mp4", "m4v", "mov", "webm", "mkv", "avi", NULL};
    return dl2_is_one_of(dl2_path_extension(path), extensions);
}

int dl2_files_check_videos(const struct dl2_dataset *dataset, const char *path,
                           const struct dl2_dataset_options *options, struct dl2_error *error)
{
    if (dataset->videos && !options->takes_videos)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "%s: it holds videos (.mp4, .webm, .mkv, .avi and the like), and what "
                             "was asked for works on images; dl2-transcode frames makes clips of "
                             "images of them; dl2-load bench and check, dl2-train, dl2.Loader in "
                             "Python and the C library read them as they are",
                             path);
    if (dataset->videos && options->samples == DL2_SAMPLES_IMAGES)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s: it holds videos, which are not images",
                             path);
    return DL2_OK;
}

struct dl2_entry dl2_files_describe(const struct dl2_dataset *dataset, size_t number)
{
    const struct dl2_files *files = dataset->state;
    const struct dl2_file_entry *entry = &files->entries[number];
    return (struct dl2_entry){.sample = entry->sample, .part = entry->part};
}

/* Files are not cut into slices. */
int dl2_files_read(const struct dl2_dataset *dataset, size_t number,
                   const struct dl2_slice_range *slices, struct dl2_bytes *out,
                   struct dl2_error *error)
{
    (void)slices;
    const struct dl2_files *files = dataset->state;
    const struct dl2_file_entry *entry = &files->entries[number];
    return dl2_files_load(files, entry->sample.path, entry->number, MAX_SAMPLE_BYTES, out, error);
}

bool dl2_files_locate(const struct dl2_dataset *dataset, size_t number,
                      const struct dl2_slice_range *slices, struct dl2_location *location)
{
    (void)slices;
    const struct dl2_files *files = dataset->state;
    const struct dl2_file_entry *entry = &files->entries[number];
    *location =
        (struct dl2_location){.path = entry->sample.path,
                              .fd = -1,
                              .bytes = entry->sample.bytes,
                              .remote = files->remote ? &files->remote[entry->number] : NULL};
    return true;
}

size_t dl2_files_ignored(const struct dl2_dataset *dataset)
{
    const struct dl2_files *files = dataset->state;
    return files->ignored;
}
