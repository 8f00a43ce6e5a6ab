/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The header of NIfTI-1 files, by libnifti. Voxels are read by volume.c: libnifti's functions read
 * them through stdio, three times as many bytes as a patch of 64 x 64 x 64 has, and change what is
 * no number to 0.
 */
#include "volumes/volume.h"

#include <math.h>
#include <nifti1_io.h>
#include <pthread.h>
#include <string.h>
#include <zlib.h>

static void be_quiet(void)
{
    nifti_set_debug_level(0);
}

static int read_type(int datatype, struct dl2_volume_info *info, struct dl2_error *error)
{
    static const struct {
        int datatype;
        enum dl2_voxel_type type;
    } types[] = {
        {NIFTI_TYPE_UINT8, DL2_VOXEL_U8},    {NIFTI_TYPE_INT8, DL2_VOXEL_I8},
        {NIFTI_TYPE_UINT16, DL2_VOXEL_U16},  {NIFTI_TYPE_INT16, DL2_VOXEL_I16},
        {NIFTI_TYPE_UINT32, DL2_VOXEL_U32},  {NIFTI_TYPE_INT32, DL2_VOXEL_I32},
        {NIFTI_TYPE_UINT64, DL2_VOXEL_U64},  {NIFTI_TYPE_INT64, DL2_VOXEL_I64},
        {NIFTI_TYPE_FLOAT32, DL2_VOXEL_F32}, {NIFTI_TYPE_FLOAT64, DL2_VOXEL_F64},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].datatype == datatype) {
            info->type = types[i].type;
            return DL2_OK;
        }
    return dl2_error_set(error, DL2_ERR_FORMAT, "its type %s (%d) is not supported",
                         nifti_datatype_string(datatype), datatype);
}

static int16_t number_at(const uint8_t *head, size_t at, bool swapped)
{
    const uint8_t low = head[at + swapped], high = head[at + !swapped];
    return (int16_t)(low | (uint16_t)high << 8);
}

/* What libnifti would call bad on stderr, or not name. */
static int check_header(const uint8_t *head, struct dl2_error *error)
{
    enum { SIZE = 348, SIZE_OF_2 = 540, DIMENSIONS = 40, TYPE = 70, MAGIC = 344 };
    struct dl2_volume_info unused;
    const bool swapped = !head[0] && !head[1]; /* the size of a header is less than 65536 */
    const int16_t size = number_at(head, swapped ? 2 : 0, swapped);
    const int16_t dimensions = number_at(head, DIMENSIONS, swapped);
    if (size == SIZE_OF_2)
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "it is NIfTI-2, and NIfTI-1 is read: convert it, for example by "
                             "nibabel's Nifti1Image.from_image()");
    if (size != SIZE ||
        (memcmp(head + MAGIC, "n+1", 4) != 0 && memcmp(head + MAGIC, "ni1", 4) != 0))
        return dl2_error_set(error, DL2_ERR_FORMAT, "it is no NIfTI-1 file");
    if (dimensions < 1 || dimensions > 7)
        return dl2_error_set(error, DL2_ERR_FORMAT, "it says that it has %d dimensions",
                             dimensions);
    for (int i = 1; i <= dimensions; i++)
        if (number_at(head, DIMENSIONS + 2 * (size_t)i, swapped) < 1)
            return dl2_error_set(error, DL2_ERR_FORMAT, "dimension %d is %d", i,
                                 number_at(head, DIMENSIONS + 2 * (size_t)i, swapped));
    return read_type(number_at(head, TYPE, swapped), &unused, error);
}

/* Compressed files, too. */
static int look_at_header(const char *path, struct dl2_error *error)
{
    uint8_t head[348];
    int reason = Z_OK;
    const gzFile file = gzopen(path, "rb");
    if (!file)
        return dl2_error_system(error, "it cannot be opened");
    const int got = gzread(file, head, sizeof head);
    const char *why = gzerror(file, &reason);
    if (!strncmp(why, path, strlen(path))) /* as "PATH: why", and the caller names the file */
        why += strlen(path) + 2;
    const int status =
        got == (int)sizeof head ? check_header(head, error)
        : reason != Z_OK
            ? dl2_error_set(error, DL2_ERR_FORMAT, "it cannot be decompressed: %s", why)
            : dl2_error_set(error, DL2_ERR_FORMAT, "it ends after %d bytes, within the header",
                            got);
    gzclose(file);
    return status;
}

/* x, y, z are width, height, depth; what follows are channels, in one dimension. */
static int read_sizes(const nifti_image *image, struct dl2_volume_info *info,
                      struct dl2_error *error)
{
    if (image->ndim < 3)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "an image of %d dimensions is no volume: it needs 3 or 4",
                             image->ndim);
    info->channels = 1;
    for (int i = 1; i <= image->ndim && i < 8; i++) {
        if (image->dim[i] < 1)
            return dl2_error_set(error, DL2_ERR_FORMAT, "dimension %d is %d", i,
                                 (int)image->dim[i]);
        if (i <= 3) {
            info->size[3 - i] = (size_t)image->dim[i];
            info->spacing[3 - i] = isfinite(image->pixdim[i]) ? fabsf(image->pixdim[i]) : 0;
        } else if (image->dim[i] > 1 && info->channels > 1) {
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "it has more than one dimension beside x, y and z");
        } else if (image->dim[i] > 1) {
            info->channels = (size_t)image->dim[i];
        }
    }
    return DL2_OK;
}

static int read_image(const nifti_image *image, struct dl2_volume_info *info,
                      struct dl2_error *error)
{
    *info = (struct dl2_volume_info){.slope = 1};
    if (image->nifti_type != NIFTI_FTYPE_NIFTI1_1)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "it is not NIfTI-1 in one file, the only kind that is supported");
    DL2_TRY(read_type(image->datatype, info, error));
    DL2_TRY(read_sizes(image, info, error));
    if (image->iname_offset < 352)
        return dl2_error_set(error, DL2_ERR_FORMAT, "its voxels begin at byte %lld, in the header",
                             (long long)image->iname_offset);
    info->offset = (uint64_t)image->iname_offset;
    info->swapped = image->byteorder != nifti_short_order();
    if (isfinite(image->scl_slope) && isfinite(image->scl_inter) && image->scl_slope != 0) {
        info->slope = (double)image->scl_slope;
        info->intercept = (double)image->scl_inter;
    }
    return DL2_OK;
}

int dl2_nifti_read_header(const char *path, struct dl2_volume_info *info, struct dl2_error *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, be_quiet);
    DL2_TRY(look_at_header(path, error));
    nifti_image *image = nifti_image_read(path, 0);
    if (!image)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "libnifti cannot read it: it is damaged, or cut short");
    const int status = read_image(image, info, error);
    nifti_image_free(image);
    return status;
}
