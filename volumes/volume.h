/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Volumes: arrays of voxels [depth][height][width], or of several channels
 * [channels][depth][height][width], in files of their own. A part of a volume can be read by
 * itself: of a file that is not compressed, only the bytes of its rows are read, at most 1.2 times
 * as many as the part has.
 *
 * Formats, told apart by the file's name (the table is in volume.c):
 *
 *   .npy          NumPy's format, versions 1 to 3, in C order: integers of 8 to 64 bits, float32,
 *                 float64 and bool, of either byte order. It has no spacing.
 *   .nii, .nii.gz NIfTI-1, three dimensions or four, the fourth for channels: integers of 8 to 64
 *                 bits, float32, float64, of either byte order, with the file's scale. The x axis
 *                 is the width. The orientation (sform, qform) is told, and not applied. A .nii.gz
 *                 is decompressed from its start to the end of the part, unless the caller has kept
 *                 its bytes (dl2_volume_use_plain()).
 *   .slices       A tar file of an image a slice (volume_slices.h), made by dl2-transcode. Of a
 *                 part only its slices are read and decoded, and of JPEG 2000 only what it shows.
 *
 * Threads: one at a time for each volume; any number of volumes.
 *
 * This header is installed with loader/loader.h.
 */
#ifndef DL2_VOLUMES_VOLUME_H
#define DL2_VOLUMES_VOLUME_H

#include "common/error.h"
#include "common/gray.h"
#include "common/memory.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dl2_dataset;

enum { DL2_VOLUME_MAX_CHANNELS = 64 };

enum dl2_voxel_type {
    DL2_VOXEL_U8,
    DL2_VOXEL_I8,
    DL2_VOXEL_U16,
    DL2_VOXEL_I16,
    DL2_VOXEL_U32,
    DL2_VOXEL_I32,
    DL2_VOXEL_U64,
    DL2_VOXEL_I64,
    DL2_VOXEL_F32,
    DL2_VOXEL_F64
};

/* What a file's header says. Axes are depth, height, width, in this order. */
struct dl2_volume_info {
    size_t channels; /* 1 to DL2_VOLUME_MAX_CHANNELS */
    size_t size[3];  /* voxels, 1 to 2^31 - 1; all of them are fewer than 2^40 bytes */
    /* mm from a voxel to the next, or the unit of a file that names none; 0: the file has none. */
    float spacing[3];
    /* The side of the body that each axis runs to, 'R' or 'L', 'A' or 'P', 'S' or 'I', by sform or
     * else qform; 0: the file does not say. */
    char towards[3];
    /* With these: x, y and z in mm, to the right, front and top, of voxel [k][j][i]: the sum of
     * column 0 times i, 1 times j, 2 times k, and column 3. */
    float affine[3][4];
    enum dl2_voxel_type type;
    bool swapped;    /* the bytes of a voxel stand in the order that is not this machine's */
    bool compressed; /* by gzip */
    /* A voxel's value is slope * (minimum + stored) + intercept: 1, 0 and 0 where a file says
     * nothing of them. */
    double slope, intercept;
    int64_t minimum;
    uint64_t offset; /* of the first voxel in the (decompressed) file */
};

/* Is this the name of a volume's file? */
bool dl2_is_volume_file(const char *path);
/* The length of a path without the extension of a volume, ".npy" or ".nii.gz"; of another path as
 * dl2_path_stem_length(). */
size_t dl2_volume_stem_length(const char *path);
/* Why this build cannot read files of this name; NULL: it can. */
const char *dl2_volume_unreadable(const char *path);

struct dl2_volume;

/* DL2_ERR_FORMAT, with the reason, for a file that is damaged, shorter than its header says, or
 * of a kind that is not listed above. `decode` decodes slices, dl2_gray_decode(); with NULL .slices
 * is DL2_ERR_UNSUPPORTED. Messages name the file. */
int dl2_volume_open(const char *path, dl2_gray_decoder decode, struct dl2_volume **out,
                    struct dl2_error *error);
void dl2_volume_close(struct dl2_volume *volume);
const struct dl2_volume_info *dl2_volume_info(const struct dl2_volume *volume);

/* A part of a volume, within it, and where it goes: voxel `first` of the volume becomes voxel `at`
 * of an array of `out` voxels, in each channel. */
struct dl2_volume_part {
    size_t first[3], size[3];
    size_t at[3], out[3];
};

/* Reads a part of all channels into float [channels][out[0]][out[1]][out[2]]. Voxels around the
 * part stay as they are. DL2_ERR_FORMAT if a value is no finite number. */
int dl2_volume_read(struct dl2_volume *volume, const struct dl2_volume_part *part, float *voxels,
                    struct dl2_error *error);
/* Reads a part of a volume of one channel as labels. DL2_ERR_FORMAT for values that are not whole
 * numbers from 0 to 255. */
int dl2_volume_read_labels(struct dl2_volume *volume, const struct dl2_volume_part *part,
                           uint8_t *labels, struct dl2_error *error);
/* Reads a slice, voxels [size[1]][size[2]] of a channel at a depth, as the numbers that the file
 * stores, without slope and intercept but with `minimum`. DL2_ERR_FORMAT as above. */
int dl2_volume_read_stored(struct dl2_volume *volume, size_t channel, size_t z, double *stored,
                           struct dl2_error *error);
/* Calls `see` with rows of labels of the whole volume, in order: `count` of them from voxel `first`
 * on, by number. */
int dl2_volume_scan_labels(struct dl2_volume *volume,
                           void (*see)(void *context, uint64_t first, const uint8_t *labels,
                                       size_t count),
                           void *context, struct dl2_error *error);

/*
 * Makes `out` a file of voxels [channels][depth][height][width] of info->type, DL2_VOXEL_F32 or
 * DL2_VOXEL_U8: .npy, .nii or .nii.gz by the name `extension`, "nii.gz". Only NIfTI keeps spacing
 * and affine. .npy has the axis of channels only if there are several.
 */
int dl2_volume_encode(const char *extension, const struct dl2_volume_info *info, const void *voxels,
                      struct dl2_bytes *out, struct dl2_error *error);

/* Bytes of a compressed file that is decompressed, up to the end of the voxels. */
uint64_t dl2_volume_plain_size(const struct dl2_volume *volume);
/* Decompresses that much of it into `plain`. DL2_ERR_FORMAT if it is damaged or truncated; parts
 * before the damage can be read then. */
int dl2_volume_decompress(struct dl2_volume *volume, uint8_t *plain, struct dl2_error *error);
/* Reads from such bytes from here on, and not from the file. They must outlive the volume. */
void dl2_volume_use_plain(struct dl2_volume *volume, const uint8_t *plain);

/* What was read so far, of a compressed file before it was decompressed as far as that is known:
 * bytes, with the header's, and calls of the system. */
void dl2_volume_counts(const struct dl2_volume *volume, uint64_t *bytes, uint64_t *reads);
/* The bytes of a volume's slices, without what the file has around them; 0 for other volumes. */
uint64_t dl2_volume_image_bytes(const struct dl2_volume *volume);
/* The open file, for advice about the page cache. */
int dl2_volume_file(const struct dl2_volume *volume);

/*
 * Opens a sample of a dataset of volumes, or with an extension, "mask.npy", what lies beside it by
 * that. Returns DL2_OK, also with *out NULL where nothing lies beside the sample.
 */
int dl2_dataset_open_volume(const struct dl2_dataset *dataset, size_t index, const char *extension,
                            struct dl2_volume **out, struct dl2_error *error);
/* The channels of the first volume that can be read; 1 if none can. */
unsigned dl2_dataset_volume_channels(const struct dl2_dataset *dataset);

/* ---- for the formats' files ---- */

/* volume_npy.c. The header at the start of a file of `size` bytes, of which `have` are there.
 * Returns 1, 0 with *need bytes if they do not reach, or an error. */
int dl2_npy_parse(const uint8_t *data, size_t have, struct dl2_volume_info *info, size_t *need,
                  struct dl2_error *error);
/* volume_nifti.c. The second writes the header of a file whose voxels follow it. */
enum { DL2_NIFTI_HEADER = 352 };
int dl2_nifti_read_header(const char *path, struct dl2_volume_info *info, struct dl2_error *error);
int dl2_nifti_make_header(const struct dl2_volume_info *info, uint8_t header[DL2_NIFTI_HEADER],
                          struct dl2_error *error);

size_t dl2_voxel_size(enum dl2_voxel_type type);
/* "uint8" ... "float64". */
const char *dl2_voxel_type_name(enum dl2_voxel_type type);
/* Checks what a header says against the limits above, and sets *bytes to the voxels' size. */
int dl2_volume_check(const struct dl2_volume_info *info, uint64_t *bytes, struct dl2_error *error);

#ifdef __cplusplus
}
#endif

#endif
