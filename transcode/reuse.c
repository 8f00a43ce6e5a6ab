/* SPDX-License-Identifier: BSD-2-Clause */
#include "transcode/reuse.h"

#include "common/clock.h"

#include <string.h>

/* Chroma samples per four pixels, -1 for a layout that is none of these. */
static int chroma_of(const char *subsampling)
{
    static const struct {
        const char *name;
        int samples;
    } known[] = {{"gray", 0}, {"420", 1}, {"411", 1}, {"422", 2}, {"440", 2}, {"444", 4}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(subsampling, known[i].name))
            return known[i].samples;
    return -1;
}

void dl2_reuse_look(struct dl2_reuse *reuse, const uint8_t *data, size_t size)
{
    struct dl2_image_info info;
    const struct dl2_codec *codec = dl2_codec_sniff(data, size);
    *reuse = (struct dl2_reuse){0};
    if (!codec || !codec->lossy || dl2_image_read_info(data, size, &info, NULL) < 0 || info.alpha ||
        info.orientation != 1)
        return;
    if (codec->coding && (!codec->coding(data, size, &reuse->coding) || !reuse->coding.common ||
                          chroma_of(reuse->coding.subsampling) < 0))
        return;
    reuse->codec = codec;
}

/* May a variant of this codec have the file, if that is no larger than what would be encoded? */
static bool reuse_allowed(const struct dl2_reuse *reuse, const struct dl2_codec *codec)
{
    return reuse->codec && reuse->codec == codec;
}

/* It may where it is allowed and the file is at or below the quality that the variant asks for,
 * with chroma no finer. It may not where headers do not tell. */
bool dl2_reuse_suffices(const struct dl2_reuse *reuse, const struct dl2_codec *codec,
                        const struct dl2_encode_options *encode)
{
    if (!reuse_allowed(reuse, codec) || encode->tables || !reuse->coding.quality ||
        reuse->coding.quality > encode->quality)
        return false;
    return !codec->has_subsampling || chroma_of(reuse->coding.subsampling) <=
                                          chroma_of(dl2_subsampling_find(encode->subsampling));
}

/* Makes `out` the source's file, with the restart intervals that the variant is to have. */
static int take_source(const struct dl2_codec *codec, const struct dl2_encode_options *encode,
                       struct dl2_bytes *out, struct dl2_error *error)
{
    const int status =
        codec->set_restart_intervals
            ? codec->set_restart_intervals(encode->source, encode->source_size, encode, out, error)
            : 0;
    if (status)
        return status;
    DL2_TRY(dl2_bytes_resize(out, encode->source_size, error));
    memcpy(out->data, encode->source, encode->source_size);
    return DL2_OK;
}

int dl2_reuse_replace(const struct dl2_reuse *reuse, const struct dl2_codec *codec,
                      const struct dl2_encode_options *encode, bool any_size,
                      struct dl2_bytes *spare, struct dl2_bytes *out, struct dl2_error *error)
{
    if (!reuse_allowed(reuse, codec) || (!any_size && encode->source_size > out->size))
        return 0;
    DL2_TRY(take_source(codec, encode, spare, error));
    if (!any_size && spare->size > out->size)
        return 0;
    dl2_bytes_swap(spare, out);
    return 1;
}

int dl2_reuse_encode(const struct dl2_reuse *reuse, const struct dl2_codec *codec,
                     const struct dl2_image *image, const struct dl2_encode_options *encode,
                     struct dl2_bytes *spare, struct dl2_bytes *out, double *encode_cpu,
                     struct dl2_error *error)
{
    if (dl2_reuse_suffices(reuse, codec, encode)) {
        DL2_TRY(take_source(codec, encode, out, error));
        return 1;
    }
    const double start = dl2_clock_thread_cpu();
    DL2_TRY(dl2_image_encode(codec, image, encode, out, error));
    *encode_cpu += dl2_clock_thread_cpu() - start;
    return dl2_reuse_replace(reuse, codec, encode, false, spare, out, error);
}
