/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The header of NIfTI-1 files, by libnifti. Voxels are read by volume.c: libnifti's functions read
 * them through stdio, three times as many bytes as a patch of 64 x 64 x 64 has, and change what is
 * no number to 0.
 */
#include "volumes/volume.h"

#include <endian.h>
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

/* mm from a voxel to the next. libnifti has 1 where a file has 0 or no number. */
static float spacing_at(const uint8_t *head, int axis, bool swapped)
{
    enum { PIXDIM = 76, UNITS = 123 };
    const int unit = XYZT_TO_SPACE(head[UNITS]);
    uint8_t bytes[4];
    float spacing;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = head[PIXDIM + 4 * (size_t)axis + (swapped ? 3 - i : i)];
    memcpy(&spacing, bytes, sizeof spacing);
    spacing = fabsf(spacing) * (unit == NIFTI_UNITS_METER    ? 1e3f
                                : unit == NIFTI_UNITS_MICRON ? 1e-3f
                                                             : 1);
    return isfinite(spacing) ? spacing : 0;
}

/* What libnifti would call bad on stderr, or not name, or replace. */
static int check_header(const uint8_t *head, float spacing[3], struct dl2_error *error)
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
    for (int i = 0; i < 3; i++)
        spacing[i] = spacing_at(head, 3 - i, swapped != (BYTE_ORDER == BIG_ENDIAN));
    return read_type(number_at(head, TYPE, swapped), &unused, error);
}

/* Compressed files, too. */
static int look_at_header(const char *path, float spacing[3], struct dl2_error *error)
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
        got == (int)sizeof head ? check_header(head, spacing, error)
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
        } else if (image->dim[i] > 1 && info->channels > 1) {
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "it has more than one dimension beside x, y and z");
        } else if (image->dim[i] > 1) {
            info->channels = (size_t)image->dim[i];
        }
    }
    return DL2_OK;
}

/* sform says where the voxels are, or qform where it doesn't. */
static void read_orientation(const nifti_image *image, struct dl2_volume_info *info)
{
    static const char letters[] = {[NIFTI_L2R] = 'R', [NIFTI_R2L] = 'L', [NIFTI_P2A] = 'A',
                                   [NIFTI_A2P] = 'P', [NIFTI_I2S] = 'S', [NIFTI_S2I] = 'I'};
    const mat44 *to = image->sform_code > 0 ? &image->sto_xyz : &image->qto_xyz;
    const int unit = image->xyz_units;
    const float scale = unit == NIFTI_UNITS_METER ? 1e3f : unit == NIFTI_UNITS_MICRON ? 1e-3f : 1;
    int codes[3] = {0};
    bool finite = true;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++)
            finite &= isfinite(info->affine[i][j] = to->m[i][j] * scale) != 0;
    if (!finite || (image->sform_code <= 0 && image->qform_code <= 0))
        return;
    nifti_mat44_to_orientation(*to, &codes[0], &codes[1], &codes[2]);
    for (int i = 0; i < 3; i++)
        info->towards[2 - i] = letters[codes[i]];
    if (!info->towards[0] || !info->towards[1] || !info->towards[2])
        memset(info->towards, 0, sizeof info->towards);
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
    read_orientation(image, info);
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
    float spacing[3] = {0};
    pthread_once(&once, be_quiet);
    DL2_TRY(look_at_header(path, spacing, error));
    nifti_image *image = nifti_image_read(path, 0);
    if (!image)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "libnifti cannot read it: it is damaged, or cut short");
    const int status = read_image(image, info, error);
    nifti_image_free(image);
    memcpy(info->spacing, spacing, sizeof spacing);
    return status;
}

int dl2_nifti_make_header(const struct dl2_volume_info *info, uint8_t header[DL2_NIFTI_HEADER],
                          struct dl2_error *error)
{
    nifti_1_header head = {.sizeof_hdr = sizeof head,
                           .bitpix = info->type == DL2_VOXEL_U8 ? 8 : 32,
                           .datatype =
                               info->type == DL2_VOXEL_U8 ? NIFTI_TYPE_UINT8 : NIFTI_TYPE_FLOAT32,
                           .vox_offset = DL2_NIFTI_HEADER,
                           .scl_slope = 1,
                           .xyzt_units = NIFTI_UNITS_MM,
                           .sform_code = info->towards[0] ? NIFTI_XFORM_SCANNER_ANAT : 0,
                           .magic = "n+1"};
    const size_t sizes[] = {info->size[2], info->size[1], info->size[0], info->channels};
    head.dim[0] = info->channels > 1 ? 4 : 3;
    head.pixdim[0] = 1;
    for (int i = 1; i <= 7; i++) {
        const size_t size = i <= 4 ? sizes[i - 1] : 1;
        if (size > INT16_MAX)
            return dl2_error_set(error, DL2_ERR_LIMIT,
                                 "NIfTI-1 has at most %d voxels along an axis, and it has %zu: "
                                 "write .npy",
                                 INT16_MAX, size);
        head.dim[i] = (short)size;
        head.pixdim[i] = i <= 3 ? info->spacing[3 - i] : 1;
    }
    memcpy(head.srow_x, info->affine[0], sizeof head.srow_x);
    memcpy(head.srow_y, info->affine[1], sizeof head.srow_y);
    memcpy(head.srow_z, info->affine[2], sizeof head.srow_z);
    memset(header, 0, DL2_NIFTI_HEADER);
    memcpy(header, &head, sizeof head);
    return DL2_OK;
}
