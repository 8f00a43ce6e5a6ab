/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages about a dataset when it is opened: how it was read, and warnings. */
#include "dataset/container.h"
#include "dataset/files/files.h"
#include "dataset/packed/packed.h"

#include "common/file.h"
#include "common/quote.h"
#include "common/scope.h"

#include <xxhash.h>

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "9,025" */
static const char *grouped(size_t number, char text[32])
{
    char digits[24];
    const int length = snprintf(digits, sizeof digits, "%zu", number);
    char *out = text;
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            *out++ = ',';
        *out++ = digits[i];
    }
    *out = '\0';
    return text;
}

/* "clip", "video", "volume" or "image", with an s unless there is one. */
static const char *noun(const struct dl2_dataset *dataset, size_t count)
{
    if (dataset->volumes)
        return count == 1 ? "volume" : "volumes";
    if (dataset->videos)
        return count == 1 ? "video" : "videos";
    return dataset->clips ? count == 1 ? "clip" : "clips" : count == 1 ? "image" : "images";
}

/* "9,025 images in 10 classes" or "120 clips of 18 to 40 frames in 3 classes". The frames are those
 * of all clips. */
static void print_images(const struct dl2_dataset *dataset, size_t count, FILE *out)
{
    char number[32];
    fprintf(out, "%s %s", grouped(count, number), noun(dataset, count));
    if (dataset->clips)
        fprintf(out, " of %s", grouped(dataset->least_frames, number));
    if (dataset->clips && dataset->most_frames > dataset->least_frames)
        fprintf(out, " to %s", grouped(dataset->most_frames, number));
    if (dataset->clips)
        fprintf(out, " frame%s", dataset->most_frames == 1 ? "" : "s");
    if (dataset->class_count)
        fprintf(out, " in %s class%s", grouped(dataset->class_count, number),
                dataset->class_count == 1 ? "" : "es");
}

/* "train 9,025 images in 10 classes, val 3,929 (valid/)" */
static void print_parts(const struct dl2_dataset *dataset, FILE *out)
{
    bool first = true;
    char number[32];
    for (unsigned p = DL2_PART_TRAIN; p < DL2_PARTS + dataset->parts.count; p++) {
        const size_t count = dataset->part_counts[p];
        if (!count)
            continue;
        const char *name = dl2_part_name(&dataset->parts, p), *folder = dataset->part_names[p];
        const size_t prefix = dl2_part_prefix(folder);
        const int length = (int)(prefix + strcspn(folder + prefix, "/"));
        fprintf(out, "%s%s ", first ? "" : ", ", name);
        if (first)
            print_images(dataset, count, out);
        else
            fputs(grouped(count, number), out);
        if (strncmp(folder, name, (size_t)length) != 0 || name[length])
            fprintf(out, " (%.*s/)", length, folder);
        first = false;
    }
    if (dataset->part_counts[DL2_PART_NONE])
        fprintf(out, "; %s elsewhere", grouped(dataset->part_counts[DL2_PART_NONE], number));
}

static void print_layout(const struct dl2_dataset *dataset,
                         const struct dl2_dataset_options *options, FILE *out)
{
    size_t all = 0;
    char train[32], val[32];
    if (dataset->has_parts) {
        print_parts(dataset, out);
        if (dataset->by_rule)
            fprintf(out,
                    ", of which val is chosen from train by a hash of names (fraction %g, seed "
                    "%llu)",
                    dl2_val_fraction(options), (unsigned long long)options->split_seed);
        return;
    }
    for (unsigned p = 0; p < DL2_PARTS; p++)
        all += dataset->part_counts[p];
    print_images(dataset, all, out);
    if (dataset->own_part && !dataset->by_rule)
        fprintf(out, ", all of them in the %s split",
                dl2_part_name(&dataset->parts, dataset->own_part));
    if (dataset->by_rule)
        fprintf(out,
                ", %s: %s for training and %s for validation, chosen by a hash of their names "
                "(fraction %g, seed %llu)",
                dataset->own_part ? "the train split" : "without folders for splits",
                grouped(dataset->part_counts[DL2_PART_TRAIN], train),
                grouped(dataset->part_counts[DL2_PART_VAL], val), dl2_val_fraction(options),
                (unsigned long long)options->split_seed);
}

DL2_PRINTF(2, 3) static int warn(struct dl2_dataset *dataset, const char *format, ...)
{
    va_list args;
    char *text;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    va_end(args);
    return dl2_list_append(&dataset->messages, &dataset->message_count, text, NULL);
}

/* A warning a line; `lines` may be NULL. */
static int warn_of_lines(struct dl2_dataset *dataset, const char *lines)
{
    for (const char *line = lines; line && *line;) {
        const int length = (int)strcspn(line, "\n");
        DL2_TRY(warn(dataset, "%.*s", length, line));
        line += length + (line[length] == '\n');
    }
    return DL2_OK;
}

/* "a subset: 300 of the 1,000 images for training, 30% of each class, drawn with seed 0" */
static int tell_subset(struct dl2_dataset *dataset, const struct dl2_subset *subset)
{
    char taken[32], all[32], how[64] = "the first by name";
    if (subset->fraction == 0 || subset->fraction == 1)
        return DL2_OK;
    if (subset->by == DL2_SUBSET_DRAW)
        snprintf(how, sizeof how, "drawn with seed %llu", (unsigned long long)subset->seed);
    return warn(dataset, "a subset: %s of the %s %s for training, %.6g%% of each class, %s",
                grouped(dataset->taken, taken), grouped(dataset->part_counts[DL2_PART_TRAIN], all),
                noun(dataset, 2), 100 * subset->fraction, how);
}

/* Samples of a class: those that are trained on, those of them that can be read, and others. */
struct class_counts {
    size_t trained, read, others;
};

/* ---- Samples that this build cannot read */

enum { CLASSES_NAMED = 8, START_BYTES = 64 };

struct unreadable {
    bool (*reads)(const char *extension, const uint8_t *start, size_t size);
    const char *last; /* the extension that was asked for last */
    bool last_is_read;
    size_t count;
    char first[1024]; /* the name of one */
    struct dl2_extensions extensions;
};

/* The first bytes of a sample that lies in a file; 0 for others, and where reading fails. */
static size_t read_start(const struct dl2_dataset *dataset, size_t number,
                         uint8_t start[START_BYTES])
{
    const struct dl2_reader *reader = dataset->container->reader;
    struct dl2_location at;
    if (!reader->locate || !reader->locate(dataset, number, NULL, &at))
        return 0;
    const int fd = at.fd < 0 ? open(at.path, O_RDONLY | O_CLOEXEC) : at.fd;
    const size_t wanted = at.bytes < START_BYTES ? (size_t)at.bytes : START_BYTES;
    const ssize_t size = fd < 0 ? -1 : pread(fd, start, wanted, (off_t)at.offset);
    if (at.fd < 0 && fd >= 0)
        close(fd);
    return size < 0 ? 0 : (size_t)size;
}

static bool is_readable(struct unreadable *found, const struct dl2_dataset *dataset, size_t number,
                        const char *extension)
{
    uint8_t start[START_BYTES];
    if (!found->last || strcmp(found->last, extension) != 0) {
        found->last = extension;
        found->last_is_read = found->reads(extension, NULL, 0);
    }
    if (found->last_is_read)
        return true;
    const size_t size = read_start(dataset, number, start);
    return size && found->reads(extension, start, size);
}

static void note_unreadable(struct unreadable *found, const struct dl2_sample *sample,
                            const char *extension)
{
    if (!found->count++)
        snprintf(found->first, sizeof found->first, "%s%s%s", sample->key,
                 *sample->extension ? "." : "", sample->extension);
    dl2_extensions_add(&found->extensions, extension);
}

/* Can the sample be read, as far as its name and its first bytes say? */
static bool look_at_format(struct unreadable *found, const struct dl2_dataset *dataset,
                           size_t number, const struct dl2_sample *sample)
{
    if (!found->reads)
        return true;
    const char *dot = strrchr(sample->extension, '.');
    const char *extension = dot ? dot + 1 : sample->extension;
    const bool readable = is_readable(found, dataset, number, extension);
    if (!readable)
        note_unreadable(found, sample, extension);
    return readable;
}

static int tell_unreadable(struct dl2_dataset *dataset, const struct unreadable *found,
                           const struct class_counts *by_class)
{
    char number[32], all[32], list[256] = "", classes[512] = "", more[64] = "";
    size_t lost = 0;
    if (!found->count)
        return DL2_OK;
    dl2_extensions_list(&found->extensions, list, sizeof list);
    DL2_TRY(warn(dataset,
                 "%s of %s images are in formats that this build cannot read (%s), such as %s: "
                 "convert them, or build dl2 with their library (docs/install.md)",
                 grouped(found->count, number), grouped(dataset->all_images, all), list,
                 found->first));
    for (unsigned i = 0; i < dataset->class_count; i++)
        if (by_class[i].trained && !by_class[i].read && lost++ < CLASSES_NAMED)
            dl2_list_name(classes, sizeof classes, dataset->classes[i]);
    if (lost > CLASSES_NAMED)
        snprintf(more, sizeof more, " and %zu more", lost - CLASSES_NAMED);
    return lost ? warn(dataset,
                       "no image for training of %s can be read by this build, so no network can "
                       "learn %s: %s%s",
                       lost == 1 ? "one class" : "these classes", lost == 1 ? "it" : "them",
                       classes, more)
                : DL2_OK;
}

/* ---- Items of several samples */

struct clips {
    size_t count, frames;
    bool in_one;
};

static void look_at_clip(struct clips *clips, const struct dl2_entry *entry)
{
    clips->frames += entry->is_further ? 1 + !clips->in_one : 0;
    clips->count += entry->is_further && !clips->in_one;
    clips->in_one = entry->is_further;
}

static int tell_clips(struct dl2_dataset *dataset, const struct clips *clips)
{
    char number[32], frames[32];
    return clips->count && !dataset->clips
               ? warn(dataset, "%s id%s several frames, %s in all, which are read as single images",
                      grouped(clips->count, number), clips->count == 1 ? " has" : "s have",
                      grouped(clips->frames, frames))
               : DL2_OK;
}

/* ---- Warnings about classes and splits */

/* The top folders of a tree whose classes they are, and the folders in them. */
struct folder_census {
    bool failed;                        /* they are no splits */
    const char *key;                    /* of the sample before */
    size_t class_length, folder_length; /* of their names in it */
    size_t folders;                     /* in its class */
    uint64_t sum;                       /* of their names */
    size_t classes, all_folders;
    uint64_t all_sum; /* of a class */
};

/* Ends a class; false if its folders are not those of the classes before. */
static bool end_class(struct folder_census *census)
{
    if (census->classes++ == 0) {
        census->all_folders = census->folders;
        census->all_sum = census->sum;
    }
    const bool same = census->folders == census->all_folders && census->sum == census->all_sum;
    census->folders = 0;
    census->sum = 0;
    return same;
}

static bool may_be_splits(const struct dl2_dataset *dataset)
{
    return !dataset->has_parts && !dataset->own_part && dataset->class_count >= 2;
}

/*
 * Do all classes hold several folders, of the same names, and nothing else? Then the classes may be
 * splits, such as fold1 and fold2, and these folders the classes. Samples that are not in the order
 * of their folders, which only packed ones may be, count as other folders. This looks at the next
 * sample, and is false where they are no splits.
 */
static bool look_at_folders(struct folder_census *census, const struct dl2_dataset *dataset,
                            const struct dl2_sample *sample)
{
    const size_t top = strcspn(sample->key, "/");
    const size_t folder = sample->key[top] ? strcspn(sample->key + top + 1, "/") : 0;
    const char *class = sample->label >= 0 ? dataset->classes[sample->label] : "";
    if (!sample->key[top] || !sample->key[top + 1 + folder] || strlen(class) != top ||
        strncmp(class, sample->key, top) != 0)
        return false;
    const bool same_class =
        census->key && top == census->class_length && !strncmp(sample->key, census->key, top);
    if (census->key && !same_class && !end_class(census))
        return false;
    if (!same_class || folder != census->folder_length ||
        strncmp(sample->key + top + 1, census->key + top + 1, folder) != 0) {
        census->folders++;
        census->sum += XXH3_64bits(sample->key + top + 1, folder);
    }
    census->key = sample->key;
    census->class_length = top;
    census->folder_length = folder;
    return true;
}

static bool looks_like_splits(struct folder_census *census, const struct dl2_dataset *dataset)
{
    return !census->failed && census->key && end_class(census) &&
           census->classes == dataset->class_count && census->all_folders > 1;
}

/* Names the classes of val and test that train lacks, with their numbers. */
static int warn_of_untrained(struct dl2_dataset *dataset, const struct class_counts *by_class)
{
    enum { NAMED = 5 };
    size_t count = 0, size;
    DL2_AUTO_FREE char *names = NULL;
    char number[32];
    FILE *out = open_memstream(&names, &size);
    if (!out)
        return DL2_ERR_MEMORY;
    for (unsigned i = 0; i < dataset->class_count; i++)
        if (by_class[i].others && !by_class[i].trained && count++ < NAMED)
            fprintf(out, "%s'%s' (number %u)", count > 1 ? ", " : "", dataset->classes[i], i);
    if (count > NAMED)
        fputs(", ...", out);
    if (fclose(out) != 0)
        return DL2_ERR_MEMORY;
    return count ? warn(dataset,
                        "%s class%s no %s in train, only in other splits: %s; no network can learn "
                        "%s, and other loaders may number the classes of these splits otherwise",
                        grouped(count, number), count == 1 ? " has" : "es have", noun(dataset, 1),
                        names, count == 1 ? "it" : "them")
                 : DL2_OK;
}

/* Warns of a split that is opened by itself, whose classes are its own folders. */
static int warn_of_numbers(struct dl2_dataset *dataset, const char *path)
{
    unsigned which;
    long number;
    char there[40] = "not there";
    if (!dataset->container->has_class_folders || dataset->own_part <= DL2_PART_TRAIN ||
        !dl2_part_differs_from_train(path, dataset->classes, dataset->class_count, &which, &number))
        return DL2_OK;
    if (number >= 0)
        snprintf(there, sizeof there, "number %ld there", number);
    return warn(dataset,
                "classes are numbered by this folder alone, and otherwise than by the folder train "
                "beside it: '%s' is number %u here and %s; open the folder that holds both, with "
                "the split %s, for train's numbers",
                dataset->classes[which], which, there,
                dl2_part_name(&dataset->parts, dataset->own_part));
}

/* What one pass over all samples finds. */
struct look {
    struct unreadable unreadable;
    struct clips clips;
    struct folder_census folders;
    struct class_counts *by_class;
};

static int add_warnings(struct dl2_dataset *dataset, const char *path, struct look *look)
{
    DL2_TRY(warn_of_numbers(dataset, path));
    if (dataset->has_parts && dataset->part_counts[DL2_PART_TRAIN])
        DL2_TRY(warn_of_untrained(dataset, look->by_class));
    if (looks_like_splits(&look->folders, dataset))
        DL2_TRY(warn(dataset,
                     "every class holds folders of the same names: if these are the classes, and "
                     "%s and %s are splits, call one of the splits train; the others keep their "
                     "names (--val-split %s)",
                     dataset->classes[0], dataset->classes[1], dataset->classes[1]));
    for (unsigned i = 0; i < dataset->class_count; i++)
        if (dl2_part_of_folder(dataset->classes[i], strlen(dataset->classes[i])))
            DL2_TRY(
                warn(dataset,
                     "the folder '%s' is read as a class, although its name is a split's; if it "
                     "is a split, put every folder of images into a split, as in "
                     "train/CLASS/IMAGE",
                     dataset->classes[i]));
    size_t unlabeled = 0;
    char number[32];
    for (unsigned p = DL2_PART_NONE; p < DL2_PARTS + dataset->parts.count; p++)
        unlabeled += p || !dataset->has_parts ? dataset->unlabeled[p] : 0;
    if (unlabeled && dataset->class_count)
        DL2_TRY(warn(dataset, "%s %s %s outside every class: no split has %s",
                     grouped(unlabeled, number), noun(dataset, unlabeled),
                     unlabeled == 1 ? "is" : "are", unlabeled == 1 ? "it" : "them"));
    DL2_TRY(warn_of_lines(dataset, dataset->remark));
    dataset->aside_message = dataset->aside ? dataset->message_count : 0;
    return dataset->aside ? warn(dataset, "%s", dataset->aside) : DL2_OK;
}

/* Looks at all samples, whatever their split, once for all messages. */
static void look_at_samples(const struct dl2_dataset *dataset, struct look *look)
{
    const size_t all = dataset->all_images;
    look->folders.failed = dataset->clips || !may_be_splits(dataset);
    for (size_t i = 0; i < all; i++) {
        const struct dl2_entry entry = dl2_reader_entry(dataset, i);
        const bool readable = look_at_format(&look->unreadable, dataset, i, &entry.sample);
        look_at_clip(&look->clips, &entry);
        look->folders.failed =
            look->folders.failed || !look_at_folders(&look->folders, dataset, &entry.sample);
        if (entry.sample.label < 0)
            continue;
        struct class_counts *counts = &look->by_class[entry.sample.label];
        const bool trained = !dataset->has_parts || entry.part == DL2_PART_TRAIN;
        counts->trained += trained;
        counts->read += trained && readable;
        counts->others += !trained;
    }
}

/* The messages behind the layout. */
static int tell_all(struct dl2_dataset *dataset, const char *path,
                    const struct dl2_dataset_options *options, struct look *look)
{
    if (dataset->is_incomplete)
        DL2_TRY(warn(dataset, "this variant is not complete, so images are missing: dl2-transcode "
                              "is writing it, or was stopped; run it again"));
    DL2_TRY(tell_unreadable(dataset, &look->unreadable, look->by_class));
    DL2_TRY(tell_clips(dataset, &look->clips));
    if (dataset->clip_note) {
        dataset->clip_message = dataset->clips ? dataset->message_count : 0;
        DL2_TRY(warn(dataset, "%s", dataset->clip_note));
    }
    DL2_TRY(warn_of_lines(dataset, dataset->name_note));
    dataset->warning_count = dataset->message_count - 1;
    DL2_TRY(tell_subset(dataset, &options->subset));
    return add_warnings(dataset, path, look);
}

int dl2_dataset_describe(struct dl2_dataset *dataset, const char *path,
                         const struct dl2_dataset_options *options, struct dl2_error *error)
{
    DL2_AUTO_FREE char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return dl2_error_memory(error, "a dataset");
    print_layout(dataset, options, out);
    DL2_AUTO_FREE struct class_counts *by_class =
        dl2_calloc(dataset->class_count + 1, sizeof *by_class);
    const bool images = !dataset->volumes && !dataset->videos;
    struct look look = {.unreadable = {.reads = images ? options->reads : NULL},
                        .by_class = by_class};
    if (fclose(out) != 0 || !by_class || warn(dataset, "%s", text) < 0)
        return dl2_error_memory(error, "a dataset");
    look_at_samples(dataset, &look);
    return tell_all(dataset, path, options, &look) < 0 ? dl2_error_memory(error, "a dataset")
                                                       : DL2_OK;
}

const char *dl2_dataset_layout(const struct dl2_dataset *dataset)
{
    return dataset->messages[0];
}

const char *dl2_dataset_message(const struct dl2_dataset *dataset, size_t number, bool *matters)
{
    *matters = number ? number != dataset->clip_message && number != dataset->aside_message
                      : dataset->by_rule;
    return number < dataset->message_count ? dataset->messages[number] : NULL;
}

const char *dl2_dataset_warning(const struct dl2_dataset *dataset, size_t number)
{
    return number < dataset->warning_count ? dataset->messages[number + 1] : NULL;
}
