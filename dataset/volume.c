/* SPDX-License-Identifier: BSD-2-Clause */
#include "dataset/volume.h"

#include "common/file.h"

#include "config.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
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
    uint64_t bytes, reads; /* dl2_volume_counts() */
    uint64_t position;     /* of `gzip` */
    struct dl2_bytes rows; /* what was read last */
};

/* ---- formats ---- */

struct format {
    const char *extension;
    /* NULL: this build cannot read it. */
    int (*read_header)(struct dl2_volume *volume, struct dl2_error *error);
    const char *package; /* that it needs */
    bool compressed;
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

static const struct format formats[] = {
    {".npy", read_npy, NULL, false},
    {".nii", read_nifti, "libnifti-dev", false},
    {".nii.gz", read_nifti, "libnifti-dev", true},
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
    return !format               ? "it is not called .npy, .nii or .nii.gz"
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
        return dl2_error_set(error, DL2_ERR_SYSTEM, "%s", strerror(errno));
    if (!S_ISREG(status.st_mode))
        return dl2_error_set(error, DL2_ERR_FORMAT, "it is no file");
    DL2_TRY(format->read_header(volume, error));
    volume->info.compressed = format->compressed;
    DL2_TRY(dl2_volume_check(&volume->info, &bytes, error));
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

int dl2_volume_open(const char *path, struct dl2_volume **out, struct dl2_error *error)
{
    *out = NULL;
    struct dl2_volume *volume = dl2_calloc(1, sizeof *volume);
    if (volume)
        volume->file = -1;
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

static int read_exactly(struct dl2_volume *volume, uint64_t offset, void *out, size_t size,
                        struct dl2_error *error)
{
    if (volume->gzip)
        return read_compressed(volume, offset, out, size, error);
    for (size_t done = 0; done < size;) {
        const ssize_t got =
            pread(volume->file, (uint8_t *)out + done, size - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return dl2_error_set(error, DL2_ERR_SYSTEM, "%s", strerror(errno));
        if (got == 0)
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "it was truncated while it was read, at byte %" PRIu64,
                                 offset + done);
        done += (size_t)got;
        volume->bytes += (size_t)got;
        volume->reads++;
    }
    return DL2_OK;
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

/* Bytes at any address: the compiler makes single loads of the copies. */
#define CONVERT(name, type)                                                                        \
    static void convert_##name(const uint8_t *from, size_t count, double slope, double intercept,  \
                               float *to)                                                          \
    {                                                                                              \
        for (size_t i = 0; i < count; i++) {                                                       \
            type value;                                                                            \
            memcpy(&value, from + i * sizeof value, sizeof value);                                 \
            to[i] = (float)(slope * (double)value + intercept);                                    \
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

typedef void convert_function(const uint8_t *from, size_t count, double slope, double intercept,
                              float *to);
static convert_function *const converters[] = {
    [DL2_VOXEL_U8] = convert_u8,   [DL2_VOXEL_I8] = convert_i8,   [DL2_VOXEL_U16] = convert_u16,
    [DL2_VOXEL_I16] = convert_i16, [DL2_VOXEL_U32] = convert_u32, [DL2_VOXEL_I32] = convert_i32,
    [DL2_VOXEL_U64] = convert_u64, [DL2_VOXEL_I64] = convert_i64, [DL2_VOXEL_F32] = convert_f32,
    [DL2_VOXEL_F64] = convert_f64,
};

static int convert(const struct dl2_volume *volume, uint8_t *from, size_t count, float *to,
                   struct dl2_error *error)
{
    const struct dl2_volume_info *info = &volume->info;
    if (info->swapped)
        swap_bytes(from, count, dl2_voxel_size(info->type));
    converters[info->type](from, count, info->slope, info->intercept, to);
    bool finite = true;
    for (size_t i = 0; i < count; i++)
        finite &= to[i] - to[i] == 0;
    return finite ? DL2_OK
                  : dl2_error_set(error, DL2_ERR_FORMAT,
                                  "it has a voxel that is no finite number of float32");
}

/* Labels that float32 holds exactly: all from 0 to 255. */
static int convert_labels(const struct dl2_volume *volume, uint8_t *from, size_t count, uint8_t *to,
                          struct dl2_error *error)
{
    float values[256];
    const size_t size = dl2_voxel_size(volume->info.type);
    if (volume->info.type == DL2_VOXEL_U8 && volume->info.slope == 1 &&
        volume->info.intercept == 0) {
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
        const size_t to =
            ((channel * part->out[0] + part->at[0] + z) * part->out[1] + part->at[1] + y) *
                part->out[2] +
            part->at[2];
        DL2_TRY(put_row(volume, bytes, width, to, voxels, labels, error));
    }
    return DL2_OK;
}

static int read_part(struct dl2_volume *volume, const struct dl2_volume_part *part, float *voxels,
                     uint8_t *labels, struct dl2_error *error)
{
    int status = DL2_OK;
    for (size_t c = 0; status == DL2_OK && c < volume->info.channels; c++)
        for (size_t z = 0; status == DL2_OK && z < part->size[0]; z++)
            status = read_plane(volume, part, c, z, voxels, labels, error);
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

int dl2_volume_scan_labels(struct dl2_volume *volume,
                           void (*see)(void *context, uint64_t first, const uint8_t *labels,
                                       size_t count),
                           void *context, struct dl2_error *error)
{
    const struct dl2_volume_info *info = &volume->info;
    const size_t size = dl2_voxel_size(info->type);
    const uint64_t all = (uint64_t)info->size[0] * info->size[1] * info->size[2];
    int status = check_labels(volume, error);
    DL2_TRY(status);
    DL2_TRY(dl2_bytes_resize(&volume->rows, SCAN_VOXELS * (size + 1), error));
    uint8_t *labels = volume->rows.data + SCAN_VOXELS * size;
    for (uint64_t done = 0; status == DL2_OK && done < all; done += SCAN_VOXELS) {
        const size_t now = (size_t)(all - done < SCAN_VOXELS ? all - done : SCAN_VOXELS);
        status =
            read_exactly(volume, info->offset + done * size, volume->rows.data, now * size, error);
        if (status == DL2_OK)
            status = convert_labels(volume, volume->rows.data, now, labels, error);
        if (status == DL2_OK)
            see(context, done, labels, now);
    }
    if (status < 0)
        dl2_error_prefix(error, "%s", volume->path);
    return status;
}
