/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The header of NIfTI-1 files, by libnifti. Voxels are read by volume.c: libnifti's functions read
 * them through stdio, three times as many bytes as a patch of 64 x 64 x 64 has, and change what is
 * no number to 0.
 */
#include "dataset/volume.h"

#include <math.h>
#include <nifti1_io.h>
#include <pthread.h>

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
    nifti_image *image = nifti_image_read(path, 0);
    if (!image)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "it is no NIfTI-1 file, or its header is damaged");
    const int status = read_image(image, info, error);
    nifti_image_free(image);
    return status;
}
