/* SPDX-License-Identifier: BSD-2-Clause */
/* The color engine: Little CMS. Profiles carry a fixed date, so that bytes don't change. */
#include "codec/codecs.h"

#include <string.h>

#include <lcms2.h>

enum { DATE_AT = 24, DATE_BYTES = 12 };

static int lcms_fail(struct dl2_error *error)
{
    return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "Little CMS cannot use the profile");
}

static cmsToneCurve *lcms_curve(cmsContext context, const struct dl2_color_parameters *parameters)
{
    static const double srgb[5] = {2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045};
    static const double bt709[5] = {1 / 0.45, 1 / 1.099, 0.099 / 1.099, 1 / 4.5, 0.081};
    if (parameters->curve == DL2_CURVE_GAMMA)
        return cmsBuildGamma(context, parameters->gamma);
    return cmsBuildParametricToneCurve(context, 4,
                                       parameters->curve == DL2_CURVE_SRGB ? srgb : bt709);
}

static cmsHPROFILE lcms_profile(cmsContext context, const double xy[8], uint32_t channels,
                                cmsToneCurve *curve)
{
    cmsToneCurve *const curves[3] = {curve, curve, curve};
    const cmsCIExyY white = {xy[6], xy[7], 1};
    const cmsCIExyYTRIPLE rgb = {{xy[0], xy[1], 1}, {xy[2], xy[3], 1}, {xy[4], xy[5], 1}};
    if (!curve)
        return NULL;
    return channels == 1 ? cmsCreateGrayProfileTHR(context, &white, curve)
                         : cmsCreateRGBProfileTHR(context, &white, &rgb, curves);
}

static bool lcms_set_name(cmsContext context, cmsHPROFILE profile, const char *name)
{
    cmsMLU *text = cmsMLUalloc(context, 1);
    const bool set = text && cmsMLUsetASCII(text, "en", "US", name) &&
                     cmsWriteTag(profile, cmsSigProfileDescriptionTag, text);
    cmsMLUfree(text);
    return set;
}

static int lcms_save(cmsHPROFILE profile, struct dl2_bytes *out, struct dl2_error *error)
{
    static const uint8_t date[DATE_BYTES] = {2000 >> 8, 2000 & 255, 0, 1, 0, 1};
    cmsUInt32Number size = 0;
    if (!cmsSaveProfileToMem(profile, NULL, &size))
        return lcms_fail(error);
    DL2_TRY(dl2_bytes_resize(out, size, error));
    if (!cmsSaveProfileToMem(profile, out->data, &size))
        return lcms_fail(error);
    memcpy(out->data + DATE_AT, date, sizeof date);
    return DL2_OK;
}

static int lcms_make_profile(const struct dl2_color_parameters *parameters, uint32_t channels,
                             const char *name, struct dl2_bytes *icc, struct dl2_error *error)
{
    cmsContext context = cmsCreateContext(NULL, NULL);
    if (!context)
        return dl2_error_memory(error, "Little CMS");
    cmsToneCurve *curve = lcms_curve(context, parameters);
    cmsHPROFILE profile = lcms_profile(context, parameters->xy, channels, curve);
    const int status = profile && lcms_set_name(context, profile, name)
                           ? lcms_save(profile, icc, error)
                           : lcms_fail(error);
    if (profile)
        cmsCloseProfile(profile);
    if (curve)
        cmsFreeToneCurve(curve);
    cmsDeleteContext(context);
    return status;
}

/* Equal amounts of any primaries are gray: sRGB's do. */
static int lcms_gray_to_rgb(const struct dl2_color_space *gray, struct dl2_bytes *icc,
                            struct dl2_error *error)
{
    cmsContext context = cmsCreateContext(NULL, NULL);
    if (!context)
        return dl2_error_memory(error, "Little CMS");
    cmsHPROFILE in =
        cmsOpenProfileFromMemTHR(context, gray->icc.data, (cmsUInt32Number)gray->icc.size);
    cmsToneCurve *curve = in && cmsGetPCS(in) == cmsSigXYZData
                              ? cmsReadTag(in, cmsSigGrayTRCTag) /* the profile's */
                              : NULL;
    cmsHPROFILE profile = lcms_profile(context, dl2_color_srgb.xy, 3, curve);
    const int status = profile && lcms_set_name(context, profile, gray->name)
                           ? lcms_save(profile, icc, error)
                           : lcms_fail(error);
    if (profile)
        cmsCloseProfile(profile);
    if (in)
        cmsCloseProfile(in);
    cmsDeleteContext(context);
    return status;
}

static int lcms_to_srgb(const uint8_t *icc, size_t size, struct dl2_image *image,
                        struct dl2_error *error)
{
    cmsContext context = cmsCreateContext(NULL, NULL);
    if (!context)
        return dl2_error_memory(error, "Little CMS");
    const cmsUInt32Number format = image->channels == 1 ? TYPE_GRAY_8 : TYPE_RGB_8;
    cmsToneCurve *curve = lcms_curve(context, &dl2_color_srgb);
    cmsHPROFILE in = cmsOpenProfileFromMemTHR(context, icc, (cmsUInt32Number)size);
    cmsHPROFILE out = lcms_profile(context, dl2_color_srgb.xy, image->channels, curve);
    /* No cache of the last pixel: it would be the only state. */
    cmsHTRANSFORM transform =
        in && out
            ? cmsCreateTransformTHR(context, in, format, out, format, INTENT_RELATIVE_COLORIMETRIC,
                                    cmsFLAGS_BLACKPOINTCOMPENSATION | cmsFLAGS_NOCACHE)
            : NULL;
    for (uint32_t y = 0; transform && y < image->height; y++) {
        uint8_t *row = image->data + y * image->stride;
        cmsDoTransform(transform, row, row, image->width);
    }
    const int status = transform ? DL2_OK : lcms_fail(error);
    if (transform)
        cmsDeleteTransform(transform);
    if (out)
        cmsCloseProfile(out);
    if (in)
        cmsCloseProfile(in);
    if (curve)
        cmsFreeToneCurve(curve);
    cmsDeleteContext(context);
    return status;
}

const struct dl2_color_engine dl2_color_lcms = {
    .name = "Little CMS " DL2_TEXT_VALUE(LCMS_VERSION), /* 2140 is 2.14 */
    .make_profile = lcms_make_profile,
    .gray_to_rgb = lcms_gray_to_rgb,
    .to_srgb = lcms_to_srgb,
};
