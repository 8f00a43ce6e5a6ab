/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Folders of image files. dl2-transcode writes each file by itself, so there is no writer here.
 *
 * All strings lie in one block, so that opening takes a few allocations for any number of files:
 *
 *   path "ROOT/train/rose/0017.jpg", with the name behind "ROOT/"; then key "train/rose/0017"
 *
 * Files that are no samples have entries, too, if they lie beside a sample.
 */
#include "dataset/files/files.h"

#include "common/file.h"
#include "common/quote.h"
#include "common/scope.h"
#include "dataset/file_names.h"
#include "volumes/volume.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* A file beside a sample, by the sample's key and an extension of its own. */
struct companion {
    struct dl2_file_entry file;
    const char *extension;
    const char *image; /* of a mask that is called otherwise than KEY.mask.EXT: its image's key */
    size_t owner;      /* number of the sample; SIZE_MAX: none */
    bool is_label;     /* labels/NAME.txt of images/NAME */
};

enum { MASK_EXTENSION_SIZE = 16 };

struct left_out {
    size_t count;
    const char *first; /* the name of one */
    struct dl2_extensions extensions;
};

struct folder {
    struct dl2_files files;
    struct companion *companions; /* by owner and extension, once the folder is open */
    size_t companion_count;
    /* Files that are ignored: volumes, videos, and what else lies in folders of classes. */
    struct left_out volumes, videos, others;
    /* Masks that are called otherwise than KEY.mask.EXT: those that were taken, and those whose
     * image has another one of the kind. */
    struct left_out masks, second_masks;
    char (*mask_extensions)[MASK_EXTENSION_SIZE];
    /* Where ROOT is a folder images or lies in one: the folder of its label files, "labels/train/",
     * NULL if there is none, and the paths of these files. */
    char *labels, *label_paths;
    char *strings;
    size_t name_offset; /* strlen("ROOT/") */
};

/* Files that are neither samples nor beside one. */
static bool folder_hides(const char *path)
{
    const char *base = dl2_path_base(path);
    return base[0] == '.' || !strcmp(base, "dl2-variant.json") ||
           !strcmp(base, "dl2-variant.jsonl");
}

/* Does a file's name end in a dot and one of the extensions? */
static bool folder_has_extension(const char *base, const char *extensions)
{
    const size_t whole = strlen(base);
    for (const char *at = extensions; at && *at;) {
        const size_t length = strcspn(at, ",");
        if (length && whole > length + 1 && base[whole - length - 1] == '.' &&
            !strncmp(base + whole - length, at, length))
            return true;
        at += length + (at[length] == ',');
    }
    return false;
}

static bool folder_is_sample(const struct dl2_dataset *dataset, const char *path,
                             const struct dl2_dataset_options *options)
{
    return !folder_has_extension(dl2_path_base(path), options->sidecars) &&
           (dataset->volumes  ? dl2_is_volume_file(path)
            : dataset->videos ? dl2_files_is_video(path)
                              : !options->keep || options->keep(path));
}

/* Are the samples volumes, or videos? Files beside them, which keep() refuses, may be of any kind.
 */
static void folder_find_kind(struct dl2_dataset *dataset, const struct dl2_file_list *list,
                             const struct dl2_dataset_options *options)
{
    bool volumes = false, videos = false;
    for (size_t i = 0; i < list->count; i++) {
        const char *path = list->paths[i];
        const bool is_volume = dl2_is_volume_file(path), is_video = dl2_files_is_video(path);
        if (folder_hides(path) || folder_has_extension(dl2_path_base(path), options->sidecars))
            continue;
        if (!is_volume && !is_video && (!options->keep || options->keep(path)))
            return;
        volumes |= is_volume;
        videos |= is_video;
    }
    dataset->volumes = volumes;
    dataset->decode_slice = options->decode_slice;
    dataset->videos = videos && !volumes;
}

/* Volumes are read by programs that say so, on this machine, as this build can. */
static int folder_check_volumes(const struct dl2_dataset *dataset, const char *root,
                                const struct dl2_file_list *list,
                                const struct dl2_dataset_options *options, struct dl2_error *error)
{
    if (dataset->volumes && !options->decode_slice)
        return dl2_error_set(
            error, DL2_ERR_UNSUPPORTED,
            "%s: it holds volumes (.npy, .nii, .nii.gz, .slices), and what was asked for "
            "works on images; volumes are loaded by dl2-load bench, dl2-train with "
            "a network for volumes, such as --arch unet3d, dl2.Loader in Python, "
            "and the C library, and dl2-transcode makes variants of them",
            root);
    if (dataset->volumes && dataset->remote)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "%s: it holds volumes, which cannot be read from a server; copy them "
                             "to this machine",
                             root);
    if (dataset->volumes && options->samples != DL2_SAMPLES_AUTO)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s: it holds volumes, which are not %s",
                             root, options->samples == DL2_SAMPLES_CLIPS ? "clips" : "images");
    for (size_t i = 0; dataset->volumes && i < list->count; i++) {
        const char *path = list->paths[i];
        const char *why = dl2_is_volume_file(path) ? dl2_volume_unreadable(path) : NULL;
        if (why)
            return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "%s/%s: %s", root, path, why);
    }
    return DL2_OK;
}

/* As other tools want them, labels lie in a folder of their own. Here that would be a class. */
static int folder_check_classes(const struct dl2_dataset *dataset, const char *root,
                                struct dl2_error *error)
{
    const char *images = NULL, *labels = NULL;
    for (unsigned i = 0; dataset->volumes && i < dataset->class_count; i++) {
        if (!strncmp(dataset->classes[i], "image", strlen("image")))
            images = dataset->classes[i];
        if (!strncmp(dataset->classes[i], "label", strlen("label")))
            labels = dataset->classes[i];
    }
    if (!images || !labels)
        return DL2_OK;
    return dl2_error_set(error, DL2_ERR_FORMAT,
                         "%s: the volumes in '%s' look like labels of those in '%s', and would be "
                         "read as a class; put the labels of each NAME.npy beside it as "
                         "NAME.mask.npy (or .mask.nii.gz)",
                         root, labels, images);
}

/* Fills in the entries, all but part and label, and the companions. */
static int folder_collect(struct folder *folder, const char *root, const struct dl2_file_list *list,
                          const struct dl2_dataset *dataset,
                          const struct dl2_dataset_options *options, struct dl2_error *error)
{
    struct dl2_files *files = &folder->files;
    const size_t root_length = (size_t)dl2_path_folder_length(root);
    folder->name_offset = root_length + 1;
    size_t size = 0;
    for (size_t i = 0; i < list->count; i++)
        size += folder->name_offset + 2 * (strlen(list->paths[i]) + 1);
    DL2_TRY(DL2_NEW(&folder->strings, size, "a dataset", error));
    DL2_TRY(DL2_NEW(&files->entries, list->count, "a dataset", error));
    DL2_TRY(DL2_NEW(&folder->companions, list->count, "a dataset", error));
    char *at = folder->strings;
    for (size_t i = 0; i < list->count; i++) {
        const size_t length = strlen(list->paths[i]);
        const size_t stem = dataset->volumes ? dl2_volume_stem_length(list->paths[i])
                                             : dl2_path_stem_length(list->paths[i]);
        char *path = at, *name = path + folder->name_offset, *key = name + length + 1;
        memcpy(path, root, root_length);
        path[root_length] = '/';
        memcpy(name, list->paths[i], length + 1);
        if (folder_hides(path))
            continue;
        struct dl2_file_entry entry = {.sample = {.path = path,
                                                  .name = name,
                                                  .extension = name + stem + (stem < length),
                                                  .bytes = list->bytes[i],
                                                  .mtime_ns = list->mtime_ns[i]},
                                       .number = (uint32_t)i};
        at = key;
        if (!folder_is_sample(dataset, path, options)) {
            folder->companions[folder->companion_count++] = (struct companion){.file = entry};
            continue;
        }
        memcpy(key, name, stem);
        key[stem] = '\0';
        at = key + stem + 1;
        entry.sample.key = key;
        files->entries[files->count++] = entry;
    }
    return DL2_OK;
}

/* ---- classes.txt */

/* A file of LabelImg, which belongs to no image, but to the label files. */
static bool folder_is_class_file(const char *path)
{
    return !strcmp(dl2_path_base(path), "classes.txt");
}

static int folder_note_class_file(struct dl2_dataset *dataset, const char *path,
                                  struct dl2_error *error)
{
    return dataset->remote || !folder_is_class_file(path)
               ? DL2_OK
               : dl2_list_append(&dataset->class_files, &dataset->class_file_count, strdup(path),
                                 error);
}

/* ---- Label files outside ROOT */

/* As Ultralytics does: ROOT is the place that links lead to. Its own path comes second. */
static int folder_find_labels(struct folder *folder, const char *root, struct dl2_error *error)
{
    DL2_AUTO_FREE char *real = realpath(root, NULL);
    const char *const paths[] = {real, strstr(root, "..") ? NULL : root};
    for (size_t i = 0; i < 2 && !folder->labels; i++) {
        DL2_AUTO_FREE char *path = NULL, *labels = NULL;
        if (!paths[i])
            continue;
        DL2_TRY(dl2_format(&path, error, "%.*s/", dl2_path_folder_length(paths[i]), paths[i]));
        DL2_TRY(dl2_dataset_labels_path(path, &labels, error));
        if (!labels || !dl2_is_folder(labels))
            continue;
        folder->labels = labels;
        labels = NULL;
    }
    return DL2_OK;
}

/* The path of the label file in the place of the last folder images; NULL: there is none. */
static int folder_label_path(const struct folder *folder, const struct dl2_sample *sample,
                             const char *extension, char **path, struct dl2_error *error)
{
    DL2_AUTO_FREE char *file = NULL, *below = NULL;
    *path = NULL;
    DL2_TRY(dl2_format(&file, error, "%s.%s", sample->key, extension));
    DL2_TRY(dl2_dataset_labels_path(file, &below, error));
    if (below)
        return dl2_format(path, error, "%.*s%s", (int)folder->name_offset, sample->path, below);
    return folder->labels ? dl2_format(path, error, "%s%s", folder->labels, file) : DL2_OK;
}

/* The sample that a file below the folder of label files belongs to; SIZE_MAX: none, as where its
 * own path has a folder images, whose label files lie below ROOT. */
static size_t folder_label_owner(const struct folder *folder, const struct dl2_named_key *keys,
                                 const char *name)
{
    DL2_AUTO_FREE char *below = NULL;
    if (strcmp(dl2_path_extension(name), "txt") != 0 ||
        dl2_dataset_labels_path(name, &below, NULL) < 0 || below)
        return SIZE_MAX;
    return dl2_keys_find(keys, folder->files.count, name, dl2_path_stem_length(name));
}

/* Adds the label files outside ROOT to the companions. */
static int folder_take_labels(struct dl2_dataset *dataset, struct folder *folder,
                              const struct dl2_named_key *keys, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_file_list_free) struct dl2_file_list list = {0};
    size_t size = 1;
    DL2_TRY(dl2_list_files(folder->labels, &list, error));
    for (size_t i = 0; i < list.count; i++)
        size += strlen(folder->labels) + strlen(list.paths[i]) + 1;
    struct companion *companions = dl2_realloc(
        folder->companions, folder->companion_count + list.count + 1, sizeof *companions);
    if (!companions)
        return dl2_error_memory(error, "a dataset");
    folder->companions = companions;
    DL2_TRY(DL2_NEW(&folder->label_paths, size, "a dataset", error));
    char *path = folder->label_paths;
    for (size_t i = 0; i < list.count; i++) {
        const size_t owner = folder_label_owner(folder, keys, list.paths[i]);
        sprintf(path, "%s%s", folder->labels, list.paths[i]);
        if (owner == SIZE_MAX) {
            DL2_TRY(folder_note_class_file(dataset, path, error));
            continue;
        }
        const struct dl2_sample file = {
            .path = path, .name = path, .bytes = list.bytes[i], .mtime_ns = list.mtime_ns[i]};
        folder->companions[folder->companion_count++] = (struct companion){
            .file = {.sample = file}, .extension = "txt", .owner = owner, .is_label = true};
        path += strlen(path) + 1;
    }
    return DL2_OK;
}

/* ---- What lies beside the samples */

static int folder_compare_companions(const void *a, const void *b)
{
    const struct companion *one = a, *two = b;
    if (one->owner != two->owner)
        return one->owner < two->owner ? -1 : 1;
    const int order = strcmp(one->extension, two->extension);
    return order ? order : strcmp(one->file.sample.path, two->file.sample.path);
}

/* What a label file is looked for in, and the number of the sample that it belongs to. */
struct label_search {
    const struct dl2_named_key *keys;
    size_t count;
    size_t *owner;
};

static bool folder_has_label_owner(const void *context, const char *key)
{
    const struct label_search *search = context;
    *search->owner = dl2_keys_find(search->keys, search->count, key, strlen(key));
    return *search->owner != SIZE_MAX;
}

/* Gives a file to the sample with the longest name, and says as what. */
static void folder_find_owner(const struct folder *folder, const struct dl2_named_key *keys,
                              struct companion *companion)
{
    const char *name = companion->file.sample.name, *base = dl2_path_base(name);
    companion->owner = SIZE_MAX;
    if (companion->image) {
        companion->owner =
            dl2_keys_find(keys, folder->files.count, companion->image, strlen(companion->image));
        return;
    }
    for (size_t dot = strlen(name); dot-- > (size_t)(base - name) + 1;) {
        if (name[dot] != '.' || !name[dot + 1] || name[dot + 1] == '.')
            continue;
        companion->extension = name + dot + 1;
        companion->owner = dl2_keys_find(keys, folder->files.count, name, dot);
        if (companion->owner != SIZE_MAX)
            return;
    }
    const struct label_search search = {keys, folder->files.count, &companion->owner};
    companion->extension = "txt";
    companion->is_label = dl2_dataset_is_label_file(name, folder_has_label_owner, &search);
}

static struct dl2_named_key *folder_sort_keys(const struct dl2_files *files,
                                              struct dl2_error *error)
{
    struct dl2_named_key *keys = dl2_calloc(files->count, sizeof *keys);
    if (!keys)
        dl2_error_memory(error, "a dataset");
    for (size_t i = 0; keys && i < files->count; i++)
        keys[i] = (struct dl2_named_key){files->entries[i].sample.key, i};
    if (keys)
        dl2_keys_sort(keys, files->count);
    return keys;
}

static void folder_note(struct left_out *kind, const struct dl2_sample *sample)
{
    if (!kind->count++)
        kind->first = sample->name;
    dl2_extensions_add(&kind->extensions, sample->extension);
}

/* ---- Layouts of volumes whose labels do not lie beside them */

/* The Medical Segmentation Decathlon's folders, and what stands for them in keys. */
static const struct decathlon {
    const char *folder, *split;
    bool labels;
} decathlon[] = {{"imagesTr/", "train/", false},
                 {"imagesTs/", "test/", false},
                 {"labelsTr/", "train/", true},
                 {"labelsTs/", "test/", true}};

static const struct decathlon *folder_of_decathlon(const char *key)
{
    for (size_t i = 0; i < sizeof decathlon / sizeof *decathlon; i++)
        if (!strncmp(key, decathlon[i].folder, strlen(decathlon[i].folder)))
            return &decathlon[i];
    return NULL;
}

/* The length of a key without a last part of this name, such as KiTS19's CASE/imaging; 0: it has
 * another one. */
static size_t folder_of_part(const char *key, const char *name)
{
    const char *base = dl2_path_base(key);
    return base > key && !strcmp(base, name) ? (size_t)(base - key) - 1 : 0;
}

/* Which of the two layouts has volumes and labels here? Entries are sorted by path. */
static void folder_find_layout(const struct dl2_files *files, bool *has_decathlon, bool *has_kits)
{
    bool images = false, labels = false;
    const char *before = NULL; /* the last CASE/imaging */
    for (size_t i = 0; i < files->count; i++) {
        const char *key = files->entries[i].sample.key;
        const struct decathlon *place = folder_of_decathlon(key);
        const size_t length = folder_of_part(key, "segmentation");
        images |= place && !place->labels;
        labels |= place && place->labels;
        before = folder_of_part(key, "imaging") ? key : before;
        *has_kits |= length && before && folder_of_part(before, "imaging") == length &&
                     !strncmp(before, key, length);
    }
    *has_decathlon = images && labels;
}

/* Gives the volumes of these layouts keys without folders of their own, CASE or train/NAME, and
 * their labels those of the volumes. *is_label: the key is of labels. */
static void folder_rename(char *key, bool has_decathlon, bool has_kits, bool *is_label)
{
    const struct decathlon *place = has_decathlon ? folder_of_decathlon(key) : NULL;
    *is_label = place && place->labels;
    if (place) {
        const size_t old = strlen(place->folder), new = strlen(place->split);
        memmove(key + new, key + old, strlen(key + old) + 1);
        memcpy(key, place->split, new);
    }
    for (int label = 0; label < 2 && has_kits; label++) {
        const size_t length = folder_of_part(key, label ? "segmentation" : "imaging");
        if (length) {
            key[length] = '\0';
            *is_label = label;
        }
    }
}

static int folder_take_layout(struct folder *folder, struct dl2_error *error)
{
    struct dl2_files *files = &folder->files;
    const size_t count = files->count;
    bool has_decathlon = false, has_kits = false;
    folder_find_layout(files, &has_decathlon, &has_kits);
    if (!has_decathlon && !has_kits)
        return DL2_OK;
    DL2_TRY(DL2_NEW(&folder->mask_extensions, count, "a dataset", error));
    files->count = 0;
    for (size_t i = 0; i < count; i++) {
        struct dl2_file_entry entry = files->entries[i];
        struct companion companion = {.file = entry};
        bool is_label;
        char *key = folder->strings + (entry.sample.key - folder->strings);
        folder_rename(key, has_decathlon, has_kits, &is_label);
        if (!is_label) {
            entry.sample.name = key; /* by which splits and classes are found */
            files->entries[files->count++] = entry;
            continue;
        }
        char *extension = folder->mask_extensions[folder->masks.count];
        snprintf(extension, MASK_EXTENSION_SIZE, "mask.%s", entry.sample.extension);
        companion.extension = extension;
        companion.image = key;
        folder_note(&folder->masks, &entry.sample);
        folder->companions[folder->companion_count++] = companion;
    }
    return DL2_OK;
}

/* Masks of other samples are no samples. */
static int folder_take_masks(const struct dl2_dataset *dataset, struct folder *folder,
                             struct dl2_error *error)
{
    struct dl2_files *files = &folder->files;
    const size_t count = files->count;
    bool any = false;
    for (size_t i = 0; i < count && !any; i++)
        any = dl2_may_be_mask(files->entries[i].sample.key);
    if (!any)
        return DL2_OK;
    DL2_AUTO_FREE struct dl2_named_key *keys = folder_sort_keys(files, error);
    if (!keys)
        return DL2_ERR_MEMORY;
    files->count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct dl2_file_entry entry = files->entries[i];
        const char *kind;
        const size_t stem = dl2_dataset_mask_stem(entry.sample.key);
        struct companion companion = {.file = entry};
        if (!stem && !dataset->volumes)
            DL2_TRY(dl2_find_masked(keys, count, &entry.sample, &kind, &companion.image, error));
        if (companion.image) {
            if (!folder->mask_extensions)
                DL2_TRY(DL2_NEW(&folder->mask_extensions, count, "a dataset", error));
            char *extension = folder->mask_extensions[folder->masks.count];
            snprintf(extension, MASK_EXTENSION_SIZE, "%s.%s", kind, entry.sample.extension);
            companion.extension = extension;
            folder_note(&folder->masks, &entry.sample);
        }
        if (companion.image || (stem && dl2_keys_search(keys, count, entry.sample.key, stem)))
            folder->companions[folder->companion_count++] = companion;
        else
            files->entries[files->count++] = entry;
    }
    return DL2_OK;
}

/* Does a file lie below a folder of a class? */
static bool folder_is_in_class(const struct dl2_dataset *dataset, const char *name)
{
    const size_t top = strcspn(name, "/");
    return dataset->has_parts ? dl2_part_find(&dataset->parts, name, top) && name[top] &&
                                    strchr(name + top + 1, '/')
                              : name[top] != '\0';
}

/* A file that is no sample and lies beside none. */
static void folder_leave_out(const struct dl2_dataset *dataset, struct folder *folder,
                             const struct dl2_sample *sample)
{
    struct left_out *kind = dl2_is_volume_file(sample->path)   ? &folder->volumes
                            : dl2_files_is_video(sample->path) ? &folder->videos
                                                               : &folder->others;
    folder->files.ignored++;
    if (folder_is_class_file(sample->path))
        return;
    if (kind == &folder->others && !folder_is_in_class(dataset, sample->name))
        return; /* as a README beside the classes */
    folder_note(kind, sample);
}

/* An image has one mask of a kind: the first by name of several that lie in several places. It has
 * one label file: that beside it. */
static void folder_leave_out_second(struct dl2_dataset *dataset, struct folder *folder)
{
    size_t kept = 0;
    for (size_t i = 0; i < folder->companion_count; i++) {
        const struct companion *companion = &folder->companions[i];
        const struct companion *before = kept ? &folder->companions[kept - 1] : NULL;
        if (before && before->owner == companion->owner &&
            !strcmp(before->extension, companion->extension)) {
            folder_note(before->is_label || companion->is_label ? &folder->others
                                                                : &folder->second_masks,
                        &companion->file.sample);
            if (before->is_label)
                folder->companions[kept - 1] = *companion;
        } else {
            folder->companions[kept++] = *companion;
        }
    }
    folder->companion_count = kept;
    for (size_t i = 0; i < kept; i++)
        dataset->label_folders |= folder->companions[i].is_label;
}

static int folder_give_companions(struct dl2_dataset *dataset, struct folder *folder,
                                  struct dl2_error *error)
{
    size_t kept = 0;
    if (!folder->companion_count && !folder->labels)
        return DL2_OK;
    DL2_AUTO_FREE struct dl2_named_key *keys = folder_sort_keys(&folder->files, error);
    if (!keys)
        return DL2_ERR_MEMORY;
    for (size_t i = 0; i < folder->companion_count; i++) {
        struct companion *companion = &folder->companions[i];
        folder_find_owner(folder, keys, companion);
        if (companion->owner != SIZE_MAX) {
            folder->companions[kept++] = *companion;
            continue;
        }
        folder_leave_out(dataset, folder, &companion->file.sample);
        DL2_TRY(folder_note_class_file(dataset, companion->file.sample.path, error));
    }
    folder->companion_count = kept;
    if (folder->labels)
        DL2_TRY(folder_take_labels(dataset, folder, keys, error));
    if (folder->companion_count > 1)
        qsort(folder->companions, folder->companion_count, sizeof *folder->companions,
              folder_compare_companions);
    folder_leave_out_second(dataset, folder);
    return DL2_OK;
}

/* The companions of a sample: *count of them. */
static const struct companion *folder_companions_of(const struct folder *folder, size_t number,
                                                    size_t *count)
{
    size_t low = 0, high = folder->companion_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (folder->companions[middle].owner < number)
            low = middle + 1;
        else
            high = middle;
    }
    for (*count = 0; low + *count < folder->companion_count &&
                     folder->companions[low + *count].owner == number;)
        ++*count;
    return folder->companions + low;
}

static int folder_read_sidecars(const struct dl2_dataset *dataset, size_t number,
                                struct dl2_sidecars *out, struct dl2_error *error)
{
    size_t count;
    const struct companion *companions = folder_companions_of(dataset->state, number, &count);
    for (size_t i = 0; i < count; i++) {
        struct dl2_sidecar *item;
        DL2_TRY(dl2_sidecars_add(out, companions[i].extension, 0, &item, error));
        DL2_TRY(dl2_files_load(dataset->state, companions[i].file.sample.path,
                               companions[i].file.number, DL2_BESIDE_MAX_BYTES - out->bytes,
                               &item->bytes, error));
        out->bytes += item->bytes.size;
    }
    return DL2_OK;
}

static const char *folder_sidecar_at(const struct dl2_dataset *dataset, size_t number, size_t i,
                                     const char **path)
{
    size_t count;
    const struct companion *companions = folder_companions_of(dataset->state, number, &count);
    if (i >= count)
        return NULL;
    *path = companions[i].file.sample.path;
    return companions[i].extension;
}

static uint64_t folder_sidecar_sum(const struct dl2_dataset *dataset, size_t number)
{
    size_t count;
    const struct companion *companions = folder_companions_of(dataset->state, number, &count);
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        const struct dl2_sample *file = &companions[i].file.sample;
        const uint64_t facts[] = {htole64(sum), htole64(file->bytes),
                                  htole64((uint64_t)file->mtime_ns)};
        sum = XXH3_64bits_withSeed(companions[i].extension, strlen(companions[i].extension),
                                   XXH3_64bits(facts, sizeof facts));
        sum += !sum;
    }
    return sum;
}

/* ---- Opening */

/* Is a folder of the listing at the place of a class: CLASS/, or with splits SPLIT/CLASS/? */
static bool folder_is_of_class(const struct dl2_dataset *dataset, const char *path)
{
    const size_t top = strcspn(path, "/") + 1;
    if (!dataset->has_parts)
        return !path[top];
    return dl2_part_find(&dataset->parts, path, top - 1) && path[top] &&
           !path[top + strcspn(path + top, "/") + 1];
}

/* Samples are sorted by name. */
static bool folder_has_sample(const struct folder *folder, const char *path)
{
    const size_t length = strlen(path);
    const struct dl2_file_entry *entries = folder->files.entries;
    size_t low = 0, high = folder->files.count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strncmp(entries[middle].sample.name, path, length) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < folder->files.count && !strncmp(entries[low].sample.name, path, length);
}

/* Do masks of images elsewhere lie below a folder? */
static bool folder_has_masks(const struct folder *folder, const char *path)
{
    bool has = false;
    for (size_t i = 0; i < folder->companion_count && folder->masks.count && !has; i++)
        has = folder->companions[i].image &&
              !strncmp(folder->companions[i].file.sample.name, path, strlen(path));
    return has;
}

/* Names the folders of classes that hold no sample. */
static int folder_remark_empty(struct dl2_dataset *dataset, const struct folder *folder,
                               const struct dl2_file_list *list, struct dl2_error *error)
{
    enum { NAMED = 5 };
    char names[1024] = "";
    size_t count = 0;
    for (size_t at = 0; dataset->class_count && at < list->folders_size;
         at += strlen(list->folders + at) + 1) {
        const char *path = list->folders + at;
        if (folder_is_of_class(dataset, path) && !folder_has_sample(folder, path) &&
            !folder_has_masks(folder, path) && count++ < NAMED)
            dl2_list_name(names, sizeof names, path);
    }
    if (!count)
        return DL2_OK;
    return dl2_format_more(&dataset->remark, error,
                           "%zu class folder%s no %s: %s%s; a class needs one, and other "
                           "loaders may refuse such folders, or give the classes other numbers",
                           count, count == 1 ? " holds" : "s hold",
                           dataset->videos ? "video" : "image", names,
                           count > NAMED ? ", ..." : "");
}

/* Adds to *text that files were left out: why, and what to do. */
static int folder_list_left_out(const struct left_out *others, const char *why, const char *advice,
                                char **text, struct dl2_error *error)
{
    char list[256];
    if (!others->count)
        return DL2_OK;
    dl2_extensions_list(&others->extensions, list, sizeof list);
    return dl2_format_more(text, error,
                           "files left out because they are %s: %zu (%s), such as %s%s", why,
                           others->count, list, others->first, advice);
}

/* Files that are not where links say, as those of git-annex that were not fetched. */
static int folder_remark_links(struct dl2_dataset *dataset, const struct dl2_file_list *list,
                               struct dl2_error *error)
{
    if (!list->dangling)
        return DL2_OK;
    return dl2_format_more(&dataset->remark, error,
                           "symbolic links left out because what they point to is missing: %zu, "
                           "such as %s",
                           list->dangling, list->first_dangling);
}

/* Masks that were recognized by other names than NAME.mask.EXT. */
static int folder_remark_masks(struct dl2_dataset *dataset, const struct folder *folder,
                               struct dl2_error *error)
{
    const struct left_out *masks = &folder->masks;
    char list[256];
    if (!masks->count)
        return DL2_OK;
    dl2_extensions_list(&masks->extensions, list, sizeof list);
    DL2_TRY(dl2_format(&dataset->name_note, error,
                       "%s that are %s of others by their names: %zu (%s), such as %s; "
                       "they are read, and written to variants, as NAME.mask.EXT%s",
                       dataset->volumes ? "volumes" : "images",
                       dataset->volumes ? "labels" : "masks", masks->count, list, masks->first,
                       dataset->volumes ? "" : " or NAME.seg.EXT"));
    return folder_list_left_out(&folder->second_masks,
                                "masks of images that have another one of that kind", "",
                                &dataset->name_note, error);
}

/* Label files that lie outside ROOT. */
static int folder_remark_labels(struct dl2_dataset *dataset, const struct folder *folder,
                                struct dl2_error *error)
{
    const size_t length = folder->labels ? strlen(folder->labels) : 0;
    size_t count = 0;
    for (size_t i = 0; length && i < folder->companion_count; i++)
        count += !strncmp(folder->companions[i].file.sample.path, folder->labels, length);
    return count ? dl2_format_more(&dataset->name_note, error,
                                   "label files outside it, in %s: %zu; they are read, and written "
                                   "to variants, as NAME.txt beside the images",
                                   folder->labels, count)
                 : DL2_OK;
}

/* Volumes and videos between samples of another kind matter; what is neither may be meant so. */
static int folder_remark_left_out(struct dl2_dataset *dataset, const struct folder *folder,
                                  struct dl2_error *error)
{
    static const char *const advice = "; put them into a dataset of their own";
    const char *samples = dataset->volumes ? "volumes" : dataset->videos ? "videos" : "images";
    char none[32], volumes[64], videos[64];
    snprintf(none, sizeof none, "not %s", samples);
    snprintf(volumes, sizeof volumes, "volumes, and the folder holds %s", samples);
    snprintf(videos, sizeof videos, "videos, and the folder holds %s", samples);
    if (!dataset->volumes) /* other volumes are labels */
        DL2_TRY(folder_list_left_out(&folder->volumes, volumes, advice, &dataset->remark, error));
    DL2_TRY(folder_list_left_out(&folder->videos, videos, advice, &dataset->remark, error));
    return folder_list_left_out(&folder->others, none, "", &dataset->aside, error);
}

/* As dl2_list_files() of a folder on this machine: 1, or 0 for names with a part that starts with a
 * dot. What ends in a slash only stands for a folder. */
static int folder_is_listed(const char *name, struct dl2_error *error)
{
    const size_t length = strlen(name);
    if (!length || name[length - 1] == '/')
        return 0;
    for (const char *part = name; *part;) {
        const size_t size = strcspn(part, "/");
        if (!size)
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "%s: the key has an empty part, which no path of a file has; "
                                 "rename the object",
                                 name);
        if (*part == '.')
            return 0;
        part += size + (part[size] == '/');
    }
    return 1;
}

/* Makes a list of files, empty so far, out of a store's listing, whose strings it borrows. */
static int folder_take_listing(struct dl2_dataset *dataset, struct dl2_files *files,
                               struct dl2_file_list *list, struct dl2_error *error)
{
    const struct dl2_listing *from = &dataset->remote_listing;
    char *strings = (char *)from->strings.data;
    DL2_TRY(DL2_NEW(&list->paths, from->count, "a dataset", error));
    DL2_TRY(DL2_NEW(&list->bytes, from->count, "a dataset", error));
    DL2_TRY(DL2_NEW(&list->mtime_ns, from->count, "a dataset", error));
    DL2_TRY(DL2_NEW(&files->remote, from->count, "a dataset", error));
    for (size_t i = 0; i < from->count; i++) {
        const struct dl2_listed_object *object = &from->objects[i];
        char *name = strings + object->key;
        const int listed = folder_is_listed(name, error);
        DL2_TRY(listed);
        if (!listed)
            continue;
        DL2_TRY(dl2_remote_file_init(dataset->remote, name, object->bytes, strings + object->etag,
                                     &files->remote[files->remote_count++], error));
        list->paths[list->count] = name;
        list->bytes[list->count] = object->bytes;
        list->mtime_ns[list->count++] = object->mtime_ns;
    }
    return DL2_OK;
}

static int folder_open(struct dl2_dataset *dataset, const char *path,
                       const struct dl2_dataset_options *options, struct dl2_error *error)
{
    struct folder *folder = dataset->state = dl2_calloc(1, sizeof *folder);
    if (!folder)
        return dl2_error_memory(error, "a dataset");
    DL2_CLEANUP(dl2_file_list_free) struct dl2_file_list list = {0};
    DL2_TRY(dataset->remote ? folder_take_listing(dataset, &folder->files, &list, error)
                            : dl2_list_files(path, &list, error));
    folder_find_kind(dataset, &list, options);
    DL2_TRY(folder_check_volumes(dataset, path, &list, options, error));
    DL2_TRY(dl2_files_check_videos(dataset, path, options, error));
    DL2_TRY(folder_collect(folder, path, &list, dataset, options, error));
    if (options->keep || dataset->volumes)
        DL2_TRY(folder_take_masks(dataset, folder, error));
    if (dataset->volumes)
        DL2_TRY(folder_take_layout(folder, error));
    if (!dataset->remote && !dataset->volumes && !dataset->videos)
        DL2_TRY(folder_find_labels(folder, path, error));
    DL2_TRY(dl2_files_read_names(dataset, error));
    DL2_TRY(folder_give_companions(dataset, folder, error));
    DL2_TRY(folder_check_classes(dataset, path, error));
    DL2_TRY(folder_remark_empty(dataset, folder, &list, error));
    DL2_TRY(folder_remark_links(dataset, &list, error));
    DL2_TRY(folder_remark_masks(dataset, folder, error));
    DL2_TRY(folder_remark_labels(dataset, folder, error));
    return folder_remark_left_out(dataset, folder, error);
}

static void folder_close(struct dl2_dataset *dataset)
{
    struct folder *folder = dataset->state;
    dl2_files_free(&folder->files);
    free(folder->companions);
    free(folder->mask_extensions);
    free(folder->labels);
    free(folder->label_paths);
    free(folder->strings);
    free(folder);
}

static int folder_compare_remote(const void *name, const void *file)
{
    return strcmp(name, ((const struct dl2_remote_file *)file)->name);
}

/* A mask that is called otherwise than KEY.mask.EXT; NULL: the sample has none by this extension.
 */
static const struct companion *folder_find_mask(const struct folder *folder, size_t number,
                                                const char *extension)
{
    size_t count = 0;
    const struct companion *companions =
        folder->masks.count ? folder_companions_of(folder, number, &count) : NULL;
    for (size_t i = 0; i < count; i++)
        if (companions[i].image && !strcmp(companions[i].extension, extension))
            return &companions[i];
    return NULL;
}

static int folder_read_sidecar(const struct dl2_dataset *dataset, size_t number,
                               const char *extension, struct dl2_bytes *out,
                               struct dl2_error *error)
{
    const struct folder *folder = dataset->state;
    const struct dl2_files *files = &folder->files;
    const struct dl2_sample *sample = &files->entries[number].sample;
    const struct companion *mask = folder_find_mask(folder, number, extension);
    DL2_AUTO_FREE char *beside = NULL, *elsewhere = NULL;
    DL2_TRY(dl2_format(&beside, error, "%.*s%s.%s", (int)folder->name_offset, sample->path,
                       sample->key, extension)); /* NAME.nii.gz has NAME.json */
    DL2_TRY(folder_label_path(folder, sample, extension, &elsewhere, error));
    const char *const paths[] = {mask ? mask->file.sample.path : beside, elsewhere};
    for (size_t i = 0; i < 2 && paths[i]; i++) {
        const struct dl2_remote_file *remote = NULL;
        if (files->remote)
            remote = bsearch(paths[i] + folder->name_offset, files->remote, files->remote_count,
                             sizeof *remote, folder_compare_remote);
        if (files->remote ? !remote : !dl2_is_file(paths[i]))
            continue;
        DL2_TRY(dl2_files_load(files, paths[i], remote ? (size_t)(remote - files->remote) : 0,
                               DL2_BESIDE_MAX_BYTES, out, error));
        return 1;
    }
    return 0;
}

static const struct dl2_reader folder_reader = {
    .open = folder_open,
    .close = folder_close,
    .describe = dl2_files_describe,
    .read = dl2_files_read,
    .read_sidecar = folder_read_sidecar,
    .read_sidecars = folder_read_sidecars,
    .sidecar_at = folder_sidecar_at,
    .sidecar_sum = folder_sidecar_sum,
    .ignored = dl2_files_ignored,
    .locate = dl2_files_locate,
};

const struct dl2_container dl2_container_folder = {
    .name = "folder",
    .extensions = "-",
    .summary = "class folders of image files",
    .looks_for = "a folder of images, CLASS/FILE or {train,val,test,...}/CLASS/FILE",
    .can_write = true,
    .has_clip_paths = true,
    .has_class_folders = true,
    .leaves_out = "in a folder they would be images of their own, or another image's",
    .reader = &folder_reader,
    .probe = dl2_is_folder,
};
