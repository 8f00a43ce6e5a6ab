/* SPDX-License-Identifier: BSD-2-Clause */
#include "transcode/reuse.h"

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
    if (codec->coding &&
        (!codec->coding(data, size, &reuse->coding) || chroma_of(reuse->coding.subsampling) < 0))
        return;
    reuse->codec = codec;
}

bool dl2_reuse_allowed(const struct dl2_reuse *reuse, const struct dl2_codec *codec)
{
    return reuse->codec && reuse->codec == codec;
}

bool dl2_reuse_suffices(const struct dl2_reuse *reuse, const struct dl2_codec *codec,
                        const struct dl2_encode_options *encode)
{
    if (!dl2_reuse_allowed(reuse, codec) || !reuse->coding.quality ||
        reuse->coding.quality > encode->quality)
        return false;
    return !codec->has_subsampling || chroma_of(reuse->coding.subsampling) <=
                                          chroma_of(dl2_subsampling_find(encode->subsampling));
}
