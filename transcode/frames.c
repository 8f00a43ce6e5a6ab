/* SPDX-License-Identifier: BSD-2-Clause */
#include "transcode/frames.h"

#include "codec/settings.h"
#include "codec/video_notes.h"
#include "common/file.h"
#include "common/json.h"
#include "common/scope.h"
#include "common/thread.h"
#include "dataset/tell.h"
#include "pixels/resize.h"
#include "transcode/variant/output_folder.h"
#include "transcode/variant/source_items.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORD_NAME ".dl2-frames"
#define SCHEMA      "dl2-frames/1"

enum { MAX_RATE = 1000, MAX_RECORD_BYTES = 1 << 30, MAX_STRAYS_NAMED = 10 };

/* What was dropped or is worth a look, of one video or of all. */
struct notes {
    struct dl2_video_notes videos;
    size_t slow, beside;
    uint64_t repeated;
};

/* A clip, from a worker until it is written. */
struct clip {
    bool current;                    /* it is there already */
    struct dl2_error error;          /* why the video cannot be read */
    struct dl2_bytes bytes;          /* all frames, one behind the other */
    struct dl2_writer_frame *frames; /* in them */
    size_t count;
    struct notes notes;
};

/* What one thread keeps from video to video. */
struct worker {
    struct dl2_bytes file, encoded;
    struct dl2_image image;
    struct dl2_resizer resizer;
};

struct ingest {
    const struct dl2_transcode_options *options;
    const struct dl2_transcode_target *target; /* by which frames are resized and encoded */
    struct dl2_frame_rate rate;
    struct dl2_frames_result *result;
    struct dl2_dataset *dataset;
    struct dl2_writer *writer; /* NULL: class folders */
    struct worker *workers;
    struct clip *clips; /* a slot each */
    struct dl2_source_items source;
    json_t *settings;       /* that this run makes clips with */
    json_t *known;          /* by key: lines of earlier runs; "current" if of these settings */
    struct dl2_bytes lines; /* of this run, for the record */
    FILE *journal;          /* the record while clips are made; of folders */
    bool packed;
    struct notes notes;
};

/* ---- Options */

/* A number above 0 as a fraction: "8", "12.5", "30000/1001". */
static bool parse_rate(const char *text, struct dl2_frame_rate *rate)
{
    char *end;
    const size_t length = strlen(text);
    if (!length || length > 20 || strspn(text, "0123456789./") != length || !isdigit(*text))
        return false;
    double top = strtod(text, &end), bottom = 1;
    if (*end == '/') {
        if (!isdigit(end[1]))
            return false;
        bottom = strtod(end + 1, &end);
    }
    for (int i = 0; i < 6 && (top != floor(top) || bottom != floor(bottom)); i++) {
        top *= 10; /* to whole numbers; beyond six decimals it is rounded */
        bottom *= 10;
    }
    top = round(top);
    bottom = round(bottom);
    if (*end || !(top >= 1 && bottom >= 1 && top <= 1e9 && bottom <= 1e9) ||
        top / bottom > MAX_RATE)
        return false;
    *rate = (struct dl2_frame_rate){(uint32_t)top, (uint32_t)bottom};
    return true;
}

int dl2_frame_rate_parse(const char *text, void *rate, struct dl2_error *error)
{
    return parse_rate(text, rate)
               ? DL2_OK
               : dl2_error_set(error, DL2_ERR_ARGUMENT,
                               "'%s' is not a number of frames per second above 0 and up to %d, "
                               "such as 8, 12.5 or 30000/1001",
                               text, MAX_RATE);
}

/* ---- The record of what was made */

/* What decides a clip's bytes beside its video; of a packed DEST, with all videos. */
static int describe_settings(struct ingest *ingest, struct dl2_error *error)
{
    const struct dl2_transcode_options *options = ingest->options;
    const struct dl2_encode_options *encode = &ingest->target->encode;
    const struct dl2_codec *codec = ingest->target->codec;
    json_auto_t *versions = dl2_codec_versions();
    uint64_t source = 0;
    if (ingest->packed)
        DL2_TRY(dl2_dataset_fingerprint(ingest->dataset, &source, error));
    ingest->settings = json_pack(
        "{s:s, s:i, s:i, s:o, s:s, s:i, s:i, s:s?, s:s?, s:o*, s:O?, s:s, s:s, s:s, s:I, s:I, s:I, "
        "s:I}",
        "schema", SCHEMA, "fps", (int)ingest->rate.numerator, "fps_divisor",
        (int)ingest->rate.denominator, "resize", dl2_resolution_json(&ingest->target->resolution),
        "codec", ingest->target->name ? ingest->target->name : codec->name, "quality",
        encode->quality, "effort", encode->effort, "subsampling", encode->subsampling, "restart",
        encode->restart, "encoder",
        codec->encoder_parameters ? codec->encoder_parameters(encode) : NULL, "library",
        json_object_get(versions, codec->name), "videos", dl2_video_version(), "extension",
        codec->extension, "container", options->pack.container, "shard_bytes",
        (json_int_t)options->pack.shard_bytes, "shuffle",
        options->shuffle ? (json_int_t)*options->shuffle : (json_int_t)-1, "source",
        (json_int_t)source, "max_pixels",
        (json_int_t)(ingest->packed ? options->decode.max_pixels : 0)); /* decides what fails */
    return ingest->settings ? DL2_OK : dl2_error_memory(error, "a record");
}

static int record_path(const struct ingest *ingest, char **path, struct dl2_error *error)
{
    return dl2_format(path, error, "%s/" RECORD_NAME, ingest->options->dest);
}

/* Reads what earlier runs have noted. Of a line that was cut by a kill, or damaged, nothing is
 * known. */
static int load_record(struct ingest *ingest, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes text = DL2_BYTES_INIT;
    DL2_AUTO_FREE char *path = NULL;
    bool current = false;
    ingest->known = json_object();
    if (!ingest->known)
        return dl2_error_memory(error, "a record");
    DL2_TRY(record_path(ingest, &path, error));
    if (!dl2_is_file(path))
        return DL2_OK;
    DL2_TRY(dl2_file_read(path, MAX_RECORD_BYTES, &text, error));
    DL2_TRY(dl2_bytes_append(&text, "", 1, error));
    for (char *rest = (char *)text.data, *line; (line = strsep(&rest, "\n"));) {
        json_auto_t *json = json_loads(line, 0, NULL);
        const char *key = dl2_json_get_text(json, "key", NULL);
        int failed = 0;
        if (json_object_get(json, "schema"))
            current = json_equal(json, ingest->settings);
        else if (key && current)
            failed = json_object_set_new(json, "current", json_true());
        if (key)
            failed |= json_object_set(ingest->known, key, json);
        if (failed)
            return dl2_error_memory(error, "a record");
    }
    return DL2_OK;
}

/* Notes a line, also in the journal. */
static int note_line(struct ingest *ingest, json_t *line, struct dl2_error *error)
{
    if (line)
        json_object_del(line, "current");
    DL2_AUTO_FREE char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;
    if (!text)
        return dl2_error_memory(error, "a record");
    DL2_TRY(dl2_bytes_append(&ingest->lines, text, strlen(text), error));
    DL2_TRY(dl2_bytes_append(&ingest->lines, "\n", 1, error));
    return !ingest->journal ||
                   (fprintf(ingest->journal, "%s\n", text) > 0 && fflush(ingest->journal) == 0)
               ? DL2_OK
               : dl2_error_system(error, "%s/" RECORD_NAME ": can't be written",
                                  ingest->options->dest);
}

/* In a folder, lines of this run follow those of earlier ones until it ends. */
static int begin_record(struct ingest *ingest, struct dl2_error *error)
{
    DL2_AUTO_FREE char *path = NULL;
    DL2_TRY(record_path(ingest, &path, error));
    if (!ingest->packed) {
        ingest->journal = fopen(path, "ae");
        if (!ingest->journal || fputc('\n', ingest->journal) == EOF) /* behind a cut line */
            return dl2_error_system(error, "%s: can't be written", path);
    }
    return note_line(ingest, ingest->settings, error);
}

static int write_record(struct ingest *ingest, struct dl2_error *error)
{
    DL2_AUTO_FREE char *path = NULL;
    DL2_TRY(record_path(ingest, &path, error));
    return dl2_file_write(path, ingest->lines.data, ingest->lines.size, error);
}

static json_t *new_line(const char *key, const struct dl2_source_item *video)
{
    return json_pack("{s:s, s:I, s:I}", "key", key, "source_bytes", (json_int_t)video->bytes,
                     "source_mtime_ns", (json_int_t)video->mtime_ns);
}

/* The line of an earlier run about a video; NULL: there is none. */
static json_t *find_line(const struct ingest *ingest, const struct dl2_source_item *video)
{
    return json_object_get(ingest->known, video->key_text);
}

/* Videos of one name but for the extension would be one clip: the first one is taken. */
static bool is_twin(const struct dl2_source_item *video)
{
    return video->same_key_as != SIZE_MAX;
}

/* ---- Clips in folders */

static int frame_path(const struct ingest *ingest, const char *key, size_t number, char **path,
                      struct dl2_error *error)
{
    return dl2_format(path, error, "%s/%s/%05zu.%s", ingest->options->dest, key, number,
                      ingest->target->codec->extension);
}

/* Is the clip there, made of the video as it is now? */
static bool is_there(const struct ingest *ingest, const struct dl2_source_item *video)
{
    const json_t *line = find_line(ingest, video);
    const long long frames = dl2_json_get_integer(line, "frames", -1);
    long long bytes = 0;
    if (ingest->options->force || frames < 1 || frames > DL2_FRAMES_MOST ||
        !json_is_true(json_object_get(line, "current")) ||
        dl2_json_get_integer(line, "source_bytes", -1) != (long long)video->bytes ||
        dl2_json_get_integer(line, "source_mtime_ns", -1) != (long long)video->mtime_ns)
        return false;
    for (long long i = 0; i < frames; i++) {
        DL2_AUTO_FREE char *path = NULL;
        struct stat info;
        if (frame_path(ingest, video->key, (size_t)i, &path, NULL) < 0 || stat(path, &info) < 0)
            return false;
        bytes += (long long)info.st_size;
    }
    return bytes == dl2_json_get_integer(line, "bytes", -1);
}

/* Lists the names in the folder of a clip: NULL-ended, or NULL where there is none. */
static int list_clip(const struct ingest *ingest, const char *key, char ***names,
                     struct dl2_error *error)
{
    DL2_AUTO_FREE char *folder = NULL;
    DL2_TRY(dl2_format(&folder, error, "%s/%s", ingest->options->dest, key));
    return dl2_is_folder(folder) ? dl2_list_names(folder, names, error) : DL2_OK;
}

static bool is_frame(const char *name)
{
    return strspn(name, "0123456789") == 5 && name[5] == '.';
}

/* Removes the frames of a clip, those of a run that was killed among them. */
static int remove_clip(const struct ingest *ingest, const char *key, struct dl2_error *error)
{
    DL2_AUTO_LIST char **names = NULL;
    DL2_TRY(list_clip(ingest, key, &names, error));
    for (size_t i = 0; names && names[i]; i++) {
        DL2_AUTO_FREE char *name = NULL;
        bool removed;
        if (!is_frame(names[i]))
            continue;
        DL2_TRY(dl2_format(&name, error, "%s/%s", key, names[i]));
        DL2_TRY(dl2_output_remove(ingest->options->dest, name, &removed, error));
    }
    return DL2_OK;
}

/* Refuses frames that no run has written: those of clips that the record doesn't know. */
static int check_foreign(const struct ingest *ingest, struct dl2_error *error)
{
    for (size_t i = 0; i < ingest->source.count; i++) {
        const struct dl2_source_item *video = &ingest->source.items[i];
        DL2_AUTO_LIST char **names = NULL;
        if (is_twin(video) || find_line(ingest, video))
            continue;
        DL2_TRY(list_clip(ingest, video->key, &names, error));
        for (size_t n = 0; names && names[n]; n++) {
            DL2_AUTO_FREE char *path = NULL;
            if (!is_frame(names[n]))
                continue;
            DL2_TRY(
                dl2_format(&path, error, "%s/%s/%s", ingest->options->dest, video->key, names[n]));
            return dl2_error_set(error, DL2_ERR_ARGUMENT, DL2_OUTPUT_IN_THE_WAY, path, "");
        }
    }
    return DL2_OK;
}

/* Notes in the journal a clip that no run has made so far, before its frames are written. */
static int claim_clip(const struct ingest *ingest, const struct dl2_source_item *video,
                      struct dl2_error *error)
{
    if (find_line(ingest, video))
        return DL2_OK;
    json_auto_t *line = new_line(video->key_text, video);
    return line && json_dumpf(line, ingest->journal, JSON_COMPACT) == 0 &&
                   fputc('\n', ingest->journal) != EOF && fflush(ingest->journal) == 0
               ? DL2_OK
               : dl2_error_system(error, "%s/" RECORD_NAME ": can't be written",
                                  ingest->options->dest);
}

static int write_folder(const struct ingest *ingest, const struct dl2_source_item *video,
                        const struct clip *clip, struct dl2_error *error)
{
    const char *key = video->key;
    DL2_TRY(claim_clip(ingest, video, error));
    DL2_TRY(remove_clip(ingest, key, error));
    for (size_t i = 0; i < clip->count; i++) {
        DL2_AUTO_FREE char *path = NULL;
        DL2_TRY(frame_path(ingest, key, i, &path, error));
        if (!i)
            DL2_TRY(dl2_make_folder_of(path, error));
        DL2_TRY(dl2_file_write(path, clip->frames[i].data, clip->frames[i].size, error));
    }
    return DL2_OK;
}

/* ---- From a video to encoded frames, on any thread */

static int keep_frame(struct clip *clip, const char *extension, const struct dl2_bytes *encoded,
                      struct dl2_error *error)
{
    DL2_TRY(dl2_grow(&clip->frames, clip->count, sizeof *clip->frames, error));
    clip->frames[clip->count++] = (struct dl2_writer_frame){extension, NULL, encoded->size};
    return dl2_bytes_append(&clip->bytes, encoded->data, encoded->size, error);
}

/* Encodes frame `number` of the video. */
static int encode_frame(const struct ingest *ingest, struct worker *worker, struct dl2_video *video,
                        size_t number, struct dl2_error *error)
{
    const struct dl2_transcode_target *target = ingest->target;
    DL2_TRY(dl2_video_image(video, number, &target->resolution, &worker->resizer, &worker->image,
                            error));
    return dl2_image_encode(target->codec, &worker->image, &target->encode, &worker->encoded,
                            error);
}

/* Each frame as often as one of the times falls to it. */
static int encode_frames(const struct ingest *ingest, struct worker *worker,
                         struct dl2_video *video, struct clip *clip, struct dl2_error *error)
{
    const struct dl2_frame_rate rate = ingest->rate;
    const char *extension = ingest->target->codec->extension;
    const size_t frames = dl2_video_info(video)->frames;
    const uint64_t count = dl2_video_times_before(video, frames, rate);
    if (count > DL2_FRAMES_MOST)
        return dl2_error_set(error, DL2_ERR_LIMIT,
                             "at this rate the video has more than %d frames; ask for fewer per "
                             "second, or cut it",
                             DL2_FRAMES_MOST);
    if (!count) {
        DL2_TRY(encode_frame(ingest, worker, video, 0, error));
        return keep_frame(clip, extension, &worker->encoded, error);
    }
    for (size_t i = 0; i < frames; i++) {
        const uint64_t begin = dl2_video_times_before(video, i, rate);
        const uint64_t end = dl2_video_times_before(video, i + 1, rate);
        if (begin < end)
            DL2_TRY(encode_frame(ingest, worker, video, i, error));
        for (uint64_t k = begin; k < end; k++)
            DL2_TRY(keep_frame(clip, extension, &worker->encoded, error));
        clip->notes.repeated += begin < end ? end - begin - 1 : 0;
    }
    return DL2_OK;
}

static int read_video(const struct ingest *ingest, struct worker *worker, size_t item,
                      struct clip *clip, struct dl2_error *error)
{
    const uint8_t *data;
    size_t size;
    struct dl2_video *video;
    DL2_TRY(dl2_dataset_read(ingest->dataset, item, &worker->file, &data, &size, error));
    DL2_TRY(dl2_video_open(data, size, ingest->options->decode.max_pixels, &video, error));
    dl2_bytes_free(&worker->file); /* the video has what it needs */
    const int status = encode_frames(ingest, worker, video, clip, error);
    const uint8_t *frame = clip->bytes.data;
    for (size_t i = 0; i < clip->count; frame += clip->frames[i++].size)
        clip->frames[i].data = frame;
    dl2_video_notes_add(&clip->notes.videos, dl2_video_info(video));
    clip->notes.slow = clip->notes.repeated > 0;
    dl2_video_close(video);
    return status;
}

/* A video's errors are told in order, by write_next(). */
static int make_clip(void *context, unsigned number, size_t slot, size_t item,
                     struct dl2_error *error)
{
    const struct ingest *ingest = context;
    const struct dl2_source_item *video = &ingest->source.items[item];
    struct clip *clip = &ingest->clips[slot];
    (void)error;
    clip->count = clip->bytes.size = 0;
    clip->notes = (struct notes){.beside = video->sidecar_sum != 0};
    dl2_error_clear(&clip->error);
    clip->current = !ingest->packed && !is_twin(video) && is_there(ingest, video);
    if (clip->current)
        return DL2_OK;
    if (is_twin(video))
        dl2_error_set(&clip->error, DL2_ERR_UNSUPPORTED,
                      "another video has the same name but for the extension");
    else
        read_video(ingest, &ingest->workers[number], item, clip, &clip->error);
    if (clip->error.status < 0 &&
        strncmp(clip->error.message, video->path, strlen(video->path)) != 0)
        dl2_error_prefix(&clip->error, "%s", video->path);
    return DL2_OK;
}

/* ---- Writing, in order */

/* Notes a clip that is there: the line of before, or what was made now. */
static int note_clip(struct ingest *ingest, const struct dl2_source_item *video,
                     const struct clip *clip, struct dl2_error *error)
{
    json_auto_t *line =
        clip->current ? json_deep_copy(find_line(ingest, video)) : new_line(video->key_text, video);
    if (!clip->current &&
        !dl2_json_add(line, json_pack("{s:I, s:I}", "frames", (json_int_t)clip->count, "bytes",
                                      (json_int_t)clip->bytes.size)))
        return dl2_error_memory(error, "a record");
    ingest->result->clips++;
    ingest->result->written += !clip->current;
    ingest->result->frames += (uint64_t)dl2_json_get_integer(line, "frames", 0);
    ingest->result->bytes += (uint64_t)dl2_json_get_integer(line, "bytes", 0);
    return note_line(ingest, line, error);
}

/* Names a video that could not be read. What an earlier run made of it is of another video. Where
 * the key is that of another clip, the line has the video's name instead. */
static int note_failure(struct ingest *ingest, const struct dl2_source_item *video,
                        const struct dl2_error *why, struct dl2_error *error)
{
    json_auto_t *line = new_line(is_twin(video) ? video->name_text : video->key_text, video);
    dl2_progress_message(ingest->options->progress, "%s", why->message);
    ingest->result->failed++;
    if (!ingest->packed && !is_twin(video))
        DL2_TRY(remove_clip(ingest, video->key, error));
    if (why->status == DL2_ERR_SYSTEM) /* it may be read the next time */
        return DL2_OK;
    return json_object_set_new(line, "error", dl2_json_text(why->message)) == 0
               ? note_line(ingest, line, error)
               : dl2_error_memory(error, "a record");
}

static void add_notes(struct notes *sum, const struct notes *own)
{
    dl2_video_notes_sum(&sum->videos, &own->videos);
    sum->slow += own->slow;
    sum->beside += own->beside;
    sum->repeated += own->repeated;
}

static int write_next(void *context, size_t slot, size_t item, struct dl2_error *error)
{
    struct ingest *ingest = context;
    const struct dl2_source_item *video = &ingest->source.items[item];
    struct clip *clip = &ingest->clips[slot];
    struct dl2_error *own = &clip->error;
    if (own->status == DL2_ERR_MEMORY || own->status == DL2_ERR_LOST)
        return dl2_error_copy(error, own);
    if (own->status == DL2_OK && ingest->packed) {
        const int status = dl2_writer_add_clip(ingest->writer, video->key, video->label,
                                               clip->frames, clip->count, NULL, own);
        if (status < 0 && status != DL2_ERR_UNSUPPORTED && status != DL2_ERR_LIMIT &&
            status != DL2_ERR_ARGUMENT) /* the disk is at fault, not the video */
            return dl2_error_copy(error, own);
    } else if (own->status == DL2_OK && !clip->current) {
        DL2_TRY(write_folder(ingest, video, clip, error));
    }
    if (own->status == DL2_OK)
        add_notes(&ingest->notes, &clip->notes);
    dl2_progress_update(ingest->options->progress, item + 1, NULL);
    return own->status < 0 ? note_failure(ingest, video, own, error)
                           : note_clip(ingest, video, clip, error);
}

static int make_all(struct ingest *ingest, struct dl2_error *error)
{
    struct dl2_parallel loop = {.jobs = ingest->options->jobs,
                                .count = dl2_dataset_count(ingest->dataset),
                                .work = make_clip,
                                .emit = write_next,
                                .context = ingest};
    loop.window = 2 * (size_t)(loop.jobs ? loop.jobs : dl2_cpu_count());
    dl2_parallel_resolve(&loop);
    ingest->options->progress->total = loop.count;
    int status = DL2_NEW(&ingest->workers, loop.jobs, "frames", error);
    if (status == DL2_OK)
        status = DL2_NEW(&ingest->clips, loop.window, "frames", error);
    if (status == DL2_OK)
        status = dl2_parallel_run(&loop, error);
    for (size_t i = 0; ingest->clips && i < loop.window; i++) {
        dl2_bytes_free(&ingest->clips[i].bytes);
        free(ingest->clips[i].frames);
    }
    for (size_t i = 0; ingest->workers && i < loop.jobs; i++) {
        dl2_bytes_free(&ingest->workers[i].file);
        dl2_bytes_free(&ingest->workers[i].encoded);
        dl2_image_free(&ingest->workers[i].image);
        dl2_resizer_free(&ingest->workers[i].resizer);
    }
    free(ingest->clips);
    free(ingest->workers);
    return status;
}

/* ---- The source */

/* Where folders say the classes, a clip without one would be a class. */
static int check_classes(const struct ingest *ingest, struct dl2_error *error)
{
    const char *container = ingest->options->pack.container;
    for (size_t i = 0; i < ingest->source.count; i++) {
        const struct dl2_source_item *video = &ingest->source.items[i];
        if (video->label < 0 && !dl2_container_has_clip_items(container))
            return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                                 "%s: the video has no class, and in the container '%s' its clip "
                                 "would be one; put videos into folders of their classes, give "
                                 "--labels, or use --container=gulp",
                                 video->path, container);
    }
    return DL2_OK;
}

static int open_source(struct ingest *ingest, struct dl2_error *error)
{
    const struct dl2_transcode_options *options = ingest->options;
    struct dl2_dataset_options videos = DL2_DATASET_DEFAULTS;
    videos.keep = dl2_codec_is_image_file;
    videos.takes_videos = true;
    videos.labels = options->labels;
    DL2_TRY(dl2_dataset_open(options->source, &videos, &ingest->dataset, error));
    if (dl2_dataset_kind(ingest->dataset) != DL2_SAMPLE_VIDEO)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "%s: it holds images, and frames is for videos, such as .mp4 and "
                             ".webm; recompress and copy are for images",
                             options->source);
    dl2_dataset_tell(ingest->dataset, options->source, true, options->progress);
    if (options->shuffle)
        DL2_TRY(dl2_dataset_shuffle(ingest->dataset, *options->shuffle, error));
    DL2_TRY(dl2_source_items_list(&ingest->source, ingest->dataset, error));
    return check_classes(ingest, error);
}

/* ---- The run */

/* Does a packed DEST hold the clips of SOURCE as it is now? Then tells again what failed. */
static bool is_packed_current(struct ingest *ingest)
{
    struct dl2_dataset_options clips = DL2_DATASET_DEFAULTS;
    struct dl2_dataset *there;
    struct dl2_frames_result sum = {0};
    const char *key;
    json_t *line;
    clips.samples = DL2_SAMPLES_CLIPS;
    if (ingest->options->force || json_object_size(ingest->known) != ingest->source.count ||
        dl2_dataset_open(ingest->options->dest, &clips, &there, NULL) < 0)
        return false;
    bool same = !strcmp(dl2_dataset_container(there), ingest->options->pack.container);
    json_object_foreach(ingest->known, key, line)
    {
        same = same && json_is_true(json_object_get(line, "current"));
        sum.failed += json_object_get(line, "error") != NULL;
        sum.clips += json_object_get(line, "frames") != NULL;
        sum.frames += (uint64_t)dl2_json_get_integer(line, "frames", 0);
        sum.bytes += (uint64_t)dl2_json_get_integer(line, "bytes", 0);
    }
    same = same && sum.clips == dl2_dataset_count(there) &&
           sum.frames == dl2_dataset_image_count(there);
    dl2_dataset_close(there);
    if (!same)
        return false;
    json_object_foreach(ingest->known, key, line)
    {
        if (json_object_get(line, "error"))
            dl2_progress_message(ingest->options->progress, "%s",
                                 dl2_json_get_text(line, "error", ""));
    }
    *ingest->result = sum;
    return true;
}

/* Clips of a folder whose videos are gone: names them, or removes them where that is asked for. */
static int handle_strays(struct ingest *ingest, struct dl2_error *error)
{
    struct dl2_progress *progress = ingest->options->progress;
    const char *dest = ingest->options->dest, *key;
    size_t left = 0, removed = 0;
    json_t *line;
    json_object_foreach(ingest->known, key, line)
    {
        if (!json_object_get(line, "frames") ||
            dl2_source_items_find(&ingest->source, key) != SIZE_MAX)
            continue;
        if (ingest->options->prune) {
            DL2_TRY(remove_clip(ingest, key, error));
            removed++;
            continue;
        }
        if (left++ < MAX_STRAYS_NAMED)
            dl2_progress_message(progress, "%s/%s: no source video accounts for it", dest, key);
        json_object_set_new(line, "source_bytes", json_integer(-1)); /* should it come back */
        DL2_TRY(note_line(ingest, line, error));
    }
    if (left)
        dl2_progress_message(progress, "%s: %zu such clips are left alone; --prune removes them",
                             dest, left);
    if (removed)
        dl2_progress_message(progress,
                             "%s: %zu clips that no source video accounts for were removed", dest,
                             removed);
    return DL2_OK;
}

/* Says what the clips lack, or have more of, than the videos. */
static void tell_notes(const struct ingest *ingest)
{
    struct dl2_progress *progress = ingest->options->progress;
    const struct notes *notes = &ingest->notes;
    const char *source = ingest->options->source;
    dl2_video_notes_tell(&notes->videos, source, "clips", progress);
    if (notes->repeated)
        dl2_progress_message(progress,
                             "%s: %" PRIu64
                             " frames are repeated: %zu videos have fewer frames per "
                             "second than asked for, at least in parts",
                             source, notes->repeated, notes->slow);
    if (notes->beside)
        dl2_progress_message(progress, "%s: files beside %zu videos are left out", source,
                             notes->beside);
}

/* Will other programs take DEST for clips without being told? */
static void tell_reading(const struct ingest *ingest)
{
    struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    struct dl2_dataset *there;
    options.keep = dl2_codec_is_image_file;
    if (dl2_dataset_open(ingest->options->dest, &options, &there, NULL) < 0)
        return;
    if (dl2_dataset_kind(there) != DL2_SAMPLE_CLIP)
        dl2_progress_message(ingest->options->progress,
                             "%s: programs read it as clips only with --samples clips: clips are "
                             "recognized where they are more than the classes, where most have "
                             "several frames, and where nothing but CLASS/CLIP/NUMBER is there",
                             ingest->options->dest);
    dl2_dataset_close(there);
}

static int complete(struct ingest *ingest, struct dl2_error *error)
{
    if (ingest->writer)
        DL2_TRY(dl2_writer_finish(ingest->writer, error));
    else
        DL2_TRY(handle_strays(ingest, error));
    if (ingest->journal && fclose(ingest->journal) != 0) {
        ingest->journal = NULL;
        return dl2_error_system(error, "%s/" RECORD_NAME ": can't be written",
                                ingest->options->dest);
    }
    ingest->journal = NULL;
    DL2_TRY(write_record(ingest, error));
    tell_notes(ingest);
    tell_reading(ingest);
    return DL2_OK;
}

static int run_ingest(struct ingest *ingest, struct dl2_error *error)
{
    const struct dl2_transcode_options *options = ingest->options;
    DL2_TRY(open_source(ingest, error));
    ingest->result->failed += dl2_dataset_missing(ingest->dataset);
    DL2_TRY(describe_settings(ingest, error));
    DL2_TRY(load_record(ingest, error));
    const size_t missing = ingest->result->failed;
    if (ingest->packed && is_packed_current(ingest)) {
        ingest->result->failed += missing;
        return DL2_OK;
    }
    DL2_TRY(dl2_output_open_copy(options, ingest->dataset, &ingest->writer, error));
    if (!ingest->packed)
        DL2_TRY(check_foreign(ingest, error));
    DL2_TRY(begin_record(ingest, error));
    DL2_TRY(make_all(ingest, error));
    if (!ingest->result->clips)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s: no video could be read", options->source);
    return complete(ingest, error);
}

int dl2_frames_make(const struct dl2_transcode_options *options, struct dl2_frame_rate rate,
                    struct dl2_frames_result *result, struct dl2_error *error)
{
    *result = (struct dl2_frames_result){0};
    struct ingest ingest = {.options = options,
                            .target = options->targets,
                            .rate = rate,
                            .result = result,
                            .packed = dl2_container_is_packed(options->pack.container)};
    struct dl2_output_lock lock = {.fd = -1};
    if (dl2_video_missing())
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "%s", dl2_video_missing());
    if (!dl2_output_is_folder(options->dest))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "frames writes to a folder of this machine; copy takes it from "
                             "there");
    int status = dl2_output_begin_copy(options, &lock, error);
    if (status == DL2_OK)
        status = run_ingest(&ingest, error);
    if (ingest.journal)
        fclose(ingest.journal);
    dl2_writer_close(ingest.writer);
    dl2_source_items_free(&ingest.source);
    dl2_dataset_close(ingest.dataset);
    dl2_bytes_free(&ingest.lines);
    json_decref(ingest.settings);
    json_decref(ingest.known);
    dl2_output_unlock(&lock);
    return status;
}
