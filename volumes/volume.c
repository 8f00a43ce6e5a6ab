/* SPDX-License-Identifier: BSD-2-Clause */
#include "volumes/volume.h"

#include "common/file.h"
#include "common/scope.h"
#include "volumes/volume_slices.h"

#include "config.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* How many voxels are converted at a time where a whole volume is scanned. */
enum { SCAN_VOXELS = 1 << 16 };

struct dl2_volume {
    char *path;
    int file;
    gzFile gzip; /* of a compressed file; it has `file` */
    struct dl2_volume_info info;
    dl2_gray_decoder decode; /* of slices */
    struct dl2_volume_slices slices;
    struct dl2_bytes image; /* a slice's, encoded */
    uint64_t bytes, reads;  /* dl2_volume_counts() */
    uint64_t position;      /* of `gzip` */
    const uint8_t *plain;   /* the file, decompressed, in the caller's memory; NULL: none */
    struct dl2_bytes rows;  /* what was read or decoded last */
};

/* ---- formats ---- */

struct format {
    const char *extension;
    /* NULL: this build cannot read it. */
    int (*read_header)(struct dl2_volume *volume, struct dl2_error *error);
    const char *package; /* that it needs */
    bool compressed;
    bool has_slices; /* images, in volume->slices */
};

static int read_exactly(struct dl2_volume *volume, uint64_t offset, void *out, size_t size,
                        struct dl2_error *error);

static int read_npy(struct dl2_volume *volume, struct dl2_error *error)
{
    struct stat status;
    struct dl2_volume_info info;
    size_t have = 0, need = 128; /* the usual size */
    int parsed = 0;
    if (fstat(volume->file, &status) < 0)
        return dl2_error_system(error, "%s", volume->path);
    while (parsed == 0) {
        if (need > (uint64_t)status.st_size && have < (uint64_t)status.st_size && !have)
            need = (size_t)status.st_size;
        if (need > (uint64_t)status.st_size)
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "it is truncated in its header: %lld of %zu bytes",
                                 (long long)status.st_size, need);
        DL2_TRY(dl2_bytes_resize(&volume->rows, need, error));
        DL2_TRY(read_exactly(volume, 0, volume->rows.data, need, error));
        have = need;
        parsed = dl2_npy_parse(volume->rows.data, have, &info, &need, error);
        DL2_TRY(parsed);
    }
    volume->info = info;
    return DL2_OK;
}

#ifdef HAVE_LIBNIFTI
static int read_nifti(struct dl2_volume *volume, struct dl2_error *error)
{
    volume->bytes += 348;
    volume->reads++;
    return dl2_nifti_read_header(volume->path, &volume->info, error);
}
#else
#define read_nifti NULL
#endif

static int read_slices(struct dl2_volume *volume, struct dl2_error *error)
{
    struct stat status;
    if (!volume->decode)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "volumes of slices are not read here: there is no decoder");
    if (fstat(volume->file, &status) < 0)
        return dl2_error_system(error, "%s", volume->path);
    volume->reads++;
    return dl2_volume_slices_read(volume->file, (uint64_t)status.st_size, &volume->info,
                                  &volume->slices, error);
}

static const struct format formats[] = {
    {".npy", read_npy, NULL, false, false},
    {".nii", read_nifti, "libnifti-dev", false, false},
    {".nii.gz", read_nifti, "libnifti-dev", true, false},
    {"." DL2_SLICES_EXTENSION, read_slices, NULL, false, true},
};

static const struct format *format_of(const char *path)
{
    const size_t length = strlen(path);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const size_t part = strlen(formats[i].extension);
        if (length > part && path[length - part - 1] != '/' &&
            !strcasecmp(path + length - part, formats[i].extension))
            return &formats[i];
    }
    return NULL;
}

bool dl2_is_volume_file(const char *path)
{
    return format_of(path);
}

size_t dl2_volume_stem_length(const char *path)
{
    const struct format *format = format_of(path);
    return format ? strlen(path) - strlen(format->extension) : dl2_path_stem_length(path);
}

const char *dl2_volume_unreadable(const char *path)
{
    const struct format *format = format_of(path);
    return !format               ? "it is not called .npy, .nii, .nii.gz or .slices"
           : format->read_header ? NULL
                                 : "this build cannot read NIfTI: configure found no libnifti "
                                   "(Debian: libnifti-dev)";
}

/* ---- opening ---- */

size_t dl2_voxel_size(enum dl2_voxel_type type)
{
    static const unsigned char sizes[] = {
        [DL2_VOXEL_U8] = 1,  [DL2_VOXEL_I8] = 1,  [DL2_VOXEL_U16] = 2, [DL2_VOXEL_I16] = 2,
        [DL2_VOXEL_U32] = 4, [DL2_VOXEL_I32] = 4, [DL2_VOXEL_U64] = 8, [DL2_VOXEL_I64] = 8,
        [DL2_VOXEL_F32] = 4, [DL2_VOXEL_F64] = 8,
    };
    return sizes[type];
}

const char *dl2_voxel_type_name(enum dl2_voxel_type type)
{
    static const char *const names[] = {
        [DL2_VOXEL_U8] = "uint8",    [DL2_VOXEL_I8] = "int8",    [DL2_VOXEL_U16] = "uint16",
        [DL2_VOXEL_I16] = "int16",   [DL2_VOXEL_U32] = "uint32", [DL2_VOXEL_I32] = "int32",
        [DL2_VOXEL_U64] = "uint64",  [DL2_VOXEL_I64] = "int64",  [DL2_VOXEL_F32] = "float32",
        [DL2_VOXEL_F64] = "float64",
    };
    return names[type];
}

int dl2_volume_check(const struct dl2_volume_info *info, uint64_t *bytes, struct dl2_error *error)
{
    size_t size = dl2_voxel_size(info->type);
    bool fits = dl2_size_mul(size, info->channels, &size);
    bool some = info->channels > 0;
    for (int i = 0; i < 3; i++) {
        fits = fits && info->size[i] <= INT32_MAX && dl2_size_mul(size, info->size[i], &size);
        some = some && info->size[i] > 0;
    }
    if (!some)
        return dl2_error_set(error, DL2_ERR_FORMAT, "it has no voxels: %zux%zux%zux%zu",
                             info->channels, info->size[0], info->size[1], info->size[2]);
    if (info->channels > DL2_VOLUME_MAX_CHANNELS)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%zu channels pass the limit of %d; is the array [channels, depth, "
                             "height, width]?",
                             info->channels, DL2_VOLUME_MAX_CHANNELS);
    if (!fits || (uint64_t)size >> 40 || info->offset >> 40)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%zux%zux%zux%zu voxels pass the limit of 2^40 bytes", info->channels,
                             info->size[0], info->size[1], info->size[2]);
    *bytes = size;
    return DL2_OK;
}

static int open_volume(struct dl2_volume *volume, struct dl2_error *error)
{
    struct stat status;
    uint64_t bytes;
    const struct format *format = format_of(volume->path);
    const char *why = dl2_volume_unreadable(volume->path);
    if (why)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "%s", why);
    volume->file = open(volume->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (volume->file < 0 || fstat(volume->file, &status) < 0)
        return dl2_error_system(error, "it cannot be opened");
    if (!S_ISREG(status.st_mode))
        return dl2_error_set(error, DL2_ERR_FORMAT, "it is no file");
    DL2_TRY(format->read_header(volume, error));
    volume->info.compressed = format->compressed;
    DL2_TRY(dl2_volume_check(&volume->info, &bytes, error));
    if (format->has_slices)
        return DL2_OK;
    if (!format->compressed && (uint64_t)status.st_size < volume->info.offset + bytes)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "it is truncated: %lld of %" PRIu64 " bytes; copy it again",
                             (long long)status.st_size, volume->info.offset + bytes);
    if (!format->compressed)
        return DL2_OK;
    const int copy = fcntl(volume->file, F_DUPFD_CLOEXEC, 0);
    volume->gzip = copy < 0 ? NULL : gzdopen(copy, "rb");
    if (!volume->gzip && copy >= 0)
        close(copy);
    if (!volume->gzip)
        return dl2_error_memory(error, "a volume");
    gzbuffer(volume->gzip, 1 << 16);
    return DL2_OK;
}

int dl2_volume_open(const char *path, dl2_gray_decoder decode, struct dl2_volume **out,
                    struct dl2_error *error)
{
    *out = NULL;
    struct dl2_volume *volume = dl2_calloc(1, sizeof *volume);
    if (volume) {
        volume->file = -1;
        volume->decode = decode;
    }
    if (!volume || !(volume->path = strdup(path))) {
        dl2_volume_close(volume);
        return dl2_error_memory(error, "a volume");
    }
    const int status = open_volume(volume, error);
    if (status < 0) {
        dl2_error_prefix(error, "%s", path);
        dl2_volume_close(volume);
        return status;
    }
    *out = volume;
    return DL2_OK;
}

void dl2_volume_close(struct dl2_volume *volume)
{
    if (!volume)
        return;
    if (volume->gzip)
        gzclose(volume->gzip);
    if (volume->file >= 0)
        close(volume->file);
    dl2_volume_slices_free(&volume->slices);
    dl2_bytes_free(&volume->image);
    dl2_bytes_free(&volume->rows);
    free(volume->path);
    free(volume);
}

const struct dl2_volume_info *dl2_volume_info(const struct dl2_volume *volume)
{
    return &volume->info;
}

int dl2_volume_file(const struct dl2_volume *volume)
{
    return volume->file;
}

void dl2_volume_counts(const struct dl2_volume *volume, uint64_t *bytes, uint64_t *reads)
{
    *bytes = volume->bytes + (volume->gzip ? (uint64_t)gzoffset(volume->gzip) : 0);
    *reads = volume->reads;
}

uint64_t dl2_volume_image_bytes(const struct dl2_volume *volume)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < volume->slices.count; i++)
        bytes += volume->slices.table[i].bytes;
    return bytes;
}

/* ---- reading ---- */

static int read_compressed(struct dl2_volume *volume, uint64_t offset, uint8_t *out, size_t size,
                           struct dl2_error *error)
{
    if (offset < volume->position) {
        gzrewind(volume->gzip);
        volume->position = 0;
    }
    uint8_t skipped[4096];
    volume->reads++;
    while (volume->position < offset + size) {
        const bool skips = volume->position < offset;
        const uint64_t rest = (skips ? offset : offset + size) - volume->position;
        const uint64_t most = skips ? sizeof skipped : 1 << 30;
        const int got = gzread(volume->gzip, skips ? skipped : out + (volume->position - offset),
                               (unsigned)(rest < most ? rest : most));
        int reason;
        if (got <= 0) {
            const char *why = gzerror(volume->gzip, &reason);
            return dl2_error_set(error, DL2_ERR_FORMAT, "decompressing it: %s",
                                 reason == Z_OK || reason == Z_BUF_ERROR ? "it is truncated" : why);
        }
        volume->position += (unsigned)got;
    }
    return DL2_OK;
}

uint64_t dl2_volume_plain_size(const struct dl2_volume *volume)
{
    const struct dl2_volume_info *info = &volume->info;
    return info->offset + (uint64_t)info->channels * info->size[0] * info->size[1] * info->size[2] *
                              dl2_voxel_size(info->type); /* dl2_volume_check(): below 2^41 */
}

int dl2_volume_decompress(struct dl2_volume *volume, uint8_t *plain, struct dl2_error *error)
{
    const int status =
        read_compressed(volume, 0, plain, (size_t)dl2_volume_plain_size(volume), error);
    if (status < 0) { /* what comes before the damage can still be read */
        dl2_error_prefix(error, "%s", volume->path);
        gzclearerr(volume->gzip);
        gzrewind(volume->gzip);
        volume->position = 0;
    }
    return status;
}

void dl2_volume_use_plain(struct dl2_volume *volume, const uint8_t *plain)
{
    volume->plain = plain;
}

static int read_exactly(struct dl2_volume *volume, uint64_t offset, void *out, size_t size,
                        struct dl2_error *error)
{
    if (volume->plain) { /* parts lie within the volume */
        memcpy(out, volume->plain + offset, size);
        return DL2_OK;
    }
    if (volume->gzip)
        return read_compressed(volume, offset, out, size, error);
    const int64_t got = dl2_read_at(volume->file, offset, out, size);
    if (got < 0)
        return dl2_error_set(error, DL2_ERR_SYSTEM, "%s", strerror(errno));
    volume->bytes += (uint64_t)got;
    volume->reads++;
    return (size_t)got == size ? DL2_OK
                               : dl2_error_set(error, DL2_ERR_FORMAT,
                                               "it was truncated while it was read, at byte "
                                               "%" PRIu64,
                                               offset + (uint64_t)got);
}

static void swap_bytes(uint8_t *data, size_t count, size_t size)
{
    for (size_t i = 0; i < count; i++, data += size)
        for (size_t j = 0; j < size / 2; j++) {
            const uint8_t kept = data[j];
            data[j] = data[size - 1 - j];
            data[size - 1 - j] = kept;
        }
}

/* Bytes at any address: the compiler makes single loads of the copies. Values, or `stored`: the
 * numbers that the file stores. */
#define CONVERT(name, type)                                                                        \
    static void convert_##name(const uint8_t *from, size_t count,                                  \
                               const struct dl2_volume_info *info, float *to)                      \
    {                                                                                              \
        const double slope = info->slope, intercept = info->intercept;                             \
        const double minimum = (double)info->minimum;                                              \
        for (size_t i = 0; i < count; i++) {                                                       \
            type value;                                                                            \
            memcpy(&value, from + i * sizeof value, sizeof value);                                 \
            to[i] = (float)(slope * ((double)value + minimum) + intercept);                        \
        }                                                                                          \
    }                                                                                              \
    static void stored_##name(const uint8_t *from, size_t count, double minimum, double *to)       \
    {                                                                                              \
        for (size_t i = 0; i < count; i++) {                                                       \
            type value;                                                                            \
            memcpy(&value, from + i * sizeof value, sizeof value);                                 \
            to[i] = (double)value + minimum;                                                       \
        }                                                                                          \
    }
CONVERT(u8, uint8_t)
CONVERT(i8, int8_t)
CONVERT(u16, uint16_t)
CONVERT(i16, int16_t)
CONVERT(u32, uint32_t)
CONVERT(i32, int32_t)
CONVERT(u64, uint64_t)
CONVERT(i64, int64_t)
CONVERT(f32, float)
CONVERT(f64, double)

static const struct converter {
    void (*values)(const uint8_t *from, size_t count, const struct dl2_volume_info *info,
                   float *to);
    void (*stored)(const uint8_t *from, size_t count, double minimum, double *to);
} converters[] = {
    [DL2_VOXEL_U8] = {convert_u8, stored_u8},    [DL2_VOXEL_I8] = {convert_i8, stored_i8},
    [DL2_VOXEL_U16] = {convert_u16, stored_u16}, [DL2_VOXEL_I16] = {convert_i16, stored_i16},
    [DL2_VOXEL_U32] = {convert_u32, stored_u32}, [DL2_VOXEL_I32] = {convert_i32, stored_i32},
    [DL2_VOXEL_U64] = {convert_u64, stored_u64}, [DL2_VOXEL_I64] = {convert_i64, stored_i64},
    [DL2_VOXEL_F32] = {convert_f32, stored_f32}, [DL2_VOXEL_F64] = {convert_f64, stored_f64},
};

static int refuse_infinite(struct dl2_error *error)
{
    return dl2_error_set(error, DL2_ERR_FORMAT,
                         "it has a voxel that is no finite number of float32");
}

static int convert(const struct dl2_volume *volume, uint8_t *from, size_t count, float *to,
                   struct dl2_error *error)
{
    const struct dl2_volume_info *info = &volume->info;
    if (info->swapped)
        swap_bytes(from, count, dl2_voxel_size(info->type));
    converters[info->type].values(from, count, info, to);
    bool finite = true;
    for (size_t i = 0; i < count; i++)
        finite &= to[i] - to[i] == 0;
    return finite ? DL2_OK : refuse_infinite(error);
}

/* Labels that float32 holds exactly: all from 0 to 255. */
static int convert_labels(const struct dl2_volume *volume, uint8_t *from, size_t count, uint8_t *to,
                          struct dl2_error *error)
{
    float values[256];
    const size_t size = dl2_voxel_size(volume->info.type);
    if (volume->info.type == DL2_VOXEL_U8 && volume->info.slope == 1 &&
        volume->info.intercept == 0 && volume->info.minimum == 0) {
        memcpy(to, from, count);
        return DL2_OK;
    }
    for (size_t done = 0; done < count;) {
        const size_t now = count - done < 256 ? count - done : 256;
        DL2_TRY(convert(volume, from + done * size, now, values, error));
        for (size_t i = 0; i < now; i++) {
            if (!(values[i] >= 0 && values[i] <= 255 && values[i] == floorf(values[i])))
                return dl2_error_set(error, DL2_ERR_FORMAT,
                                     "a label of %g is no whole number from 0 to 255",
                                     (double)values[i]);
            to[done + i] = (uint8_t)values[i];
        }
        done += now;
    }
    return DL2_OK;
}

/* One row of a part, from bytes to where it goes. */
static int put_row(struct dl2_volume *volume, uint8_t *from, size_t count, size_t to, float *voxels,
                   uint8_t *labels, struct dl2_error *error)
{
    return voxels ? convert(volume, from, count, voxels + to, error)
                  : convert_labels(volume, from, count, labels + to, error);
}

/* Decodes part of a slice into volume->rows, uint16_t [part's height][part's width]. */
static int decode_slice(struct dl2_volume *volume, const struct dl2_volume_part *part,
                        size_t channel, size_t z, struct dl2_error *error)
{
    const struct dl2_volume_info *info = &volume->info;
    const size_t number = channel * info->size[0] + part->first[0] + z;
    const struct dl2_volume_slice *slice = &volume->slices.table[number];
    const struct dl2_gray_part shown = {.width = (uint32_t)info->size[2],
                                        .height = (uint32_t)info->size[1],
                                        .bits = volume->slices.bits,
                                        .x = (uint32_t)part->first[2],
                                        .y = (uint32_t)part->first[1],
                                        .columns = (uint32_t)part->size[2],
                                        .rows = (uint32_t)part->size[1]};
    DL2_TRY(
        dl2_bytes_resize(&volume->rows, part->size[1] * part->size[2] * sizeof(uint16_t), error));
    int status = dl2_bytes_resize(&volume->image, (size_t)slice->bytes, error);
    if (status == DL2_OK)
        status = read_exactly(volume, slice->offset, volume->image.data, volume->image.size, error);
    if (status == DL2_OK)
        status = volume->decode(volume->image.data, volume->image.size, &shown,
                                (uint16_t *)(void *)volume->rows.data, error);
    if (status < 0)
        dl2_error_prefix(error, "slice %zu of channel %zu", part->first[0] + z, channel);
    return status;
}

static size_t place_of_row(const struct dl2_volume_part *part, size_t channel, size_t z, size_t y)
{
    return ((channel * part->out[0] + part->at[0] + z) * part->out[1] + part->at[1] + y) *
               part->out[2] +
           part->at[2];
}

static int read_slice(struct dl2_volume *volume, const struct dl2_volume_part *part, size_t channel,
                      size_t z, float *voxels, uint8_t *labels, struct dl2_error *error)
{
    const size_t width = part->size[2];
    DL2_TRY(decode_slice(volume, part, channel, z, error));
    for (size_t y = 0; y < part->size[1]; y++)
        DL2_TRY(put_row(volume, volume->rows.data + y * width * sizeof(uint16_t), width,
                        place_of_row(part, channel, z, y), voxels, labels, error));
    return DL2_OK;
}

/*
 * Rows of a plane are read together, with the gaps between them, where these are at most a fifth of
 * the rows: then what is read is at most 1.2 times what is needed. Else each is read by itself.
 */
static int read_plane(struct dl2_volume *volume, const struct dl2_volume_part *part, size_t channel,
                      size_t z, float *voxels, uint8_t *labels, struct dl2_error *error)
{
    const struct dl2_volume_info *info = &volume->info;
    const size_t size = dl2_voxel_size(info->type), rows = part->size[1], width = part->size[2];
    const size_t gap = info->size[2] - width;
    const bool together = gap * 5 <= width;
    const size_t stride = together ? info->size[2] * size : width * size;
    if (!dl2_size_mul(stride, rows, &(size_t){0}))
        return dl2_error_memory(error, "a plane of a volume");
    DL2_TRY(dl2_bytes_resize(&volume->rows, stride * rows, error));
    const size_t row = (channel * info->size[0] + part->first[0] + z) * info->size[1];
    const uint64_t start =
        info->offset + ((uint64_t)(row + part->first[1]) * info->size[2] + part->first[2]) * size;
    if (together)
        DL2_TRY(read_exactly(volume, start, volume->rows.data, stride * (rows - 1) + width * size,
                             error));
    for (size_t y = 0; y < rows; y++) {
        uint8_t *bytes = volume->rows.data + y * stride;
        if (!together)
            DL2_TRY(read_exactly(volume, start + (uint64_t)y * info->size[2] * size, bytes,
                                 width * size, error));
        DL2_TRY(put_row(volume, bytes, width, place_of_row(part, channel, z, y), voxels, labels,
                        error));
    }
    return DL2_OK;
}

static int read_part(struct dl2_volume *volume, const struct dl2_volume_part *part, float *voxels,
                     uint8_t *labels, struct dl2_error *error)
{
    int status = DL2_OK;
    for (size_t c = 0; status == DL2_OK && c < volume->info.channels; c++)
        for (size_t z = 0; status == DL2_OK && z < part->size[0]; z++)
            status = (volume->slices.count ? read_slice : read_plane)(volume, part, c, z, voxels,
                                                                      labels, error);
    if (status < 0)
        dl2_error_prefix(error, "%s", volume->path);
    return status;
}

int dl2_volume_read(struct dl2_volume *volume, const struct dl2_volume_part *part, float *voxels,
                    struct dl2_error *error)
{
    return read_part(volume, part, voxels, NULL, error);
}

static int check_labels(const struct dl2_volume *volume, struct dl2_error *error)
{
    return volume->info.channels == 1
               ? DL2_OK
               : dl2_error_set(error, DL2_ERR_FORMAT, "%s: labels have one channel, not %zu",
                               volume->path, volume->info.channels);
}

int dl2_volume_read_labels(struct dl2_volume *volume, const struct dl2_volume_part *part,
                           uint8_t *labels, struct dl2_error *error)
{
    DL2_TRY(check_labels(volume, error));
    return read_part(volume, part, NULL, labels, error);
}

/* All of slice z. */
static struct dl2_volume_part whole_slice(const struct dl2_volume_info *info, size_t z)
{
    return (struct dl2_volume_part){.first = {z, 0, 0},
                                    .size = {1, info->size[1], info->size[2]},
                                    .out = {1, info->size[1], info->size[2]}};
}

int dl2_volume_read_stored(struct dl2_volume *volume, size_t channel, size_t z, double *stored,
                           struct dl2_error *error)
{
    const struct dl2_volume_info *info = &volume->info;
    const size_t size = dl2_voxel_size(info->type), count = info->size[1] * info->size[2];
    const struct dl2_volume_part part = whole_slice(info, z);
    const uint64_t start = (uint64_t)(channel * info->size[0] + z) * count * size;
    int status = DL2_OK;
    if (volume->slices.count) {
        status = decode_slice(volume, &part, channel, 0, error);
    } else {
        DL2_TRY(dl2_bytes_resize(&volume->rows, count * size, error));
        status = read_exactly(volume, info->offset + start, volume->rows.data, count * size, error);
    }
    if (status == DL2_OK) {
        if (info->swapped)
            swap_bytes(volume->rows.data, count, size);
        converters[info->type].stored(volume->rows.data, count, (double)info->minimum, stored);
        bool finite = true;
        for (size_t i = 0; i < count; i++)
            finite &= isfinite((float)(info->slope * stored[i] + info->intercept)) != 0;
        status = finite ? DL2_OK : refuse_infinite(error);
    }
    if (status < 0)
        dl2_error_prefix(error, "%s", volume->path);
    return status;
}

typedef void see_function(void *context, uint64_t first, const uint8_t *labels, size_t count);

static int scan_slices(struct dl2_volume *volume, see_function *see, void *context,
                       struct dl2_error *error)
{
    const struct dl2_volume_info *info = &volume->info;
    const size_t count = info->size[1] * info->size[2];
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes labels = DL2_BYTES_INIT;
    DL2_TRY(dl2_bytes_resize(&labels, count, error));
    for (size_t z = 0; z < info->size[0]; z++) {
        const struct dl2_volume_part part = whole_slice(info, z);
        DL2_TRY(read_slice(volume, &part, 0, 0, NULL, labels.data, error));
        see(context, (uint64_t)z * count, labels.data, count);
    }
    return DL2_OK;
}

static int scan_voxels(struct dl2_volume *volume, see_function *see, void *context,
                       struct dl2_error *error)
{
    const struct dl2_volume_info *info = &volume->info;
    const size_t size = dl2_voxel_size(info->type);
    const uint64_t all = (uint64_t)info->size[0] * info->size[1] * info->size[2];
    DL2_TRY(dl2_bytes_resize(&volume->rows, SCAN_VOXELS * (size + 1), error));
    uint8_t *labels = volume->rows.data + SCAN_VOXELS * size;
    for (uint64_t done = 0; done < all; done += SCAN_VOXELS) {
        const size_t now = (size_t)(all - done < SCAN_VOXELS ? all - done : SCAN_VOXELS);
        DL2_TRY(
            read_exactly(volume, info->offset + done * size, volume->rows.data, now * size, error));
        DL2_TRY(convert_labels(volume, volume->rows.data, now, labels, error));
        see(context, done, labels, now);
    }
    return DL2_OK;
}

int dl2_volume_scan_labels(struct dl2_volume *volume, see_function *see, void *context,
                           struct dl2_error *error)
{
    DL2_TRY(check_labels(volume, error));
    const int status =
        (volume->slices.count ? scan_slices : scan_voxels)(volume, see, context, error);
    if (status < 0)
        dl2_error_prefix(error, "%s", volume->path);
    return status;
}

/* ---- writing ---- */

/* NumPy's, version 1.0, filled so that the voxels begin at a multiple of 64. */
static int make_npy_header(const struct dl2_volume_info *info, struct dl2_bytes *out,
                           struct dl2_error *error)
{
    enum { SIZE = 192, START = 10 };
    char text[SIZE], channels[24] = "";
    if (info->channels > 1)
        snprintf(channels, sizeof channels, "%zu, ", info->channels);
    const int length = snprintf(
        text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (%s%zu, %zu, %zu), }",
        info->type == DL2_VOXEL_U8    ? "|u1"
        : BYTE_ORDER == LITTLE_ENDIAN ? "<f4"
                                      : ">f4",
        channels, info->size[0], info->size[1], info->size[2]);
    const size_t size = (START + (size_t)length + 1 + 63) / 64 * 64;
    DL2_TRY(dl2_bytes_resize(out, size, error));
    memset(out->data, ' ', size);
    memcpy(out->data, "\x93NUMPY\1\0", 8);
    out->data[8] = (uint8_t)(size - START);
    out->data[9] = (uint8_t)((size - START) >> 8);
    memcpy(out->data + START, text, (size_t)length);
    out->data[size - 1] = '\n';
    return DL2_OK;
}

static int make_nifti_header(const struct dl2_volume_info *info, struct dl2_bytes *out,
                             struct dl2_error *error)
{
    DL2_TRY(dl2_bytes_resize(out, DL2_NIFTI_HEADER, error));
#ifdef HAVE_LIBNIFTI
    return dl2_nifti_make_header(info, out->data, error);
#else
    (void)info;
    return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "%s", dl2_volume_unreadable("a.nii"));
#endif
}

/* Replaces a file in memory by the same in gzip. */
static int compress_file(struct dl2_bytes *file, struct dl2_error *error)
{
    enum { GZIP = 16, WINDOW = 15, MOST = 1 << 30 };
    z_stream stream = {.next_in = file->data};
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes packed = DL2_BYTES_INIT;
    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW + GZIP, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        return dl2_error_memory(error, "compressing a volume");
    int status = dl2_bytes_resize(&packed, deflateBound(&stream, file->size), error);
    int result = Z_OK;
    stream.next_out = packed.data;
    while (status == DL2_OK && result == Z_OK) {
        const size_t left = file->size - stream.total_in, room = packed.size - stream.total_out;
        stream.avail_in = (uInt)(left < MOST ? left : MOST);
        stream.avail_out = (uInt)(room < MOST ? room : MOST);
        result = deflate(&stream, left <= MOST ? Z_FINISH : Z_NO_FLUSH);
    }
    packed.size = stream.total_out;
    deflateEnd(&stream);
    if (status == DL2_OK && result != Z_STREAM_END)
        status = dl2_error_set(error, DL2_ERR_SYSTEM, "zlib cannot compress it (%d)", result);
    if (status == DL2_OK) {
        const struct dl2_bytes kept = *file;
        *file = packed;
        packed = kept;
    }
    return status;
}

int dl2_volume_encode(const char *extension, const struct dl2_volume_info *info, const void *voxels,
                      struct dl2_bytes *out, struct dl2_error *error)
{
    uint64_t bytes;
    const bool npy = !strcmp(extension, "npy");
    DL2_TRY(dl2_volume_check(info, &bytes, error));
    DL2_TRY((npy ? make_npy_header : make_nifti_header)(info, out, error));
    DL2_TRY(dl2_bytes_append(out, voxels, (size_t)bytes, error));
    return strcmp(extension, "nii.gz") ? DL2_OK : compress_file(out, error);
}
