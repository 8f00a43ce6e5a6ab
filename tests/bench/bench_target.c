/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What finding a JPEG's quality for a score takes, by trials and by whole files.
 *
 * usage: bench_target TARGET IMAGE...
 *
 * Searches each image (any that dl2 reads) for a target such as ssim=0.95, as dl2-transcode does;
 * then tries the same qualities in the same order by encoding, decoding and scoring each. Both must
 * find the same quality. Prints CPU seconds of both.
 */
#include "common/clock.h"
#include "common/file.h"
#include "transcode/target/target_search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int status, const struct dl2_error *error)
{
    if (status < 0) {
        fprintf(stderr, "bench_target: %s\n", error->message);
        exit(1);
    }
}

/* The lowest quality that meets the target, or 0, from whole files. */
static int search_files(struct dl2_scorer *scorer, const struct dl2_quality_target *target,
                        const struct dl2_image *image, unsigned *tried)
{
    static struct dl2_image decoded, scratch;
    static struct dl2_bytes file;
    const struct dl2_decode_options decode = DL2_DECODE_DEFAULTS;
    struct dl2_encode_options encode = DL2_ENCODE_DEFAULTS;
    struct dl2_error error = DL2_ERROR_INIT;
    dl2_scorer_set_reference(scorer, image);
    for (encode.quality = target->low; encode.quality <= target->high; encode.quality++) {
        struct dl2_score score;
        ++*tried;
        check(dl2_image_encode(dl2_codec_find("jpeg"), image, &encode, &file, &error), &error);
        check(dl2_image_decode(file.data, file.size, &decode, &decoded, &scratch, &error), &error);
        check(dl2_scorer_score(scorer, target->metric, &decoded, &score, &error), &error);
        if (dl2_target_meets(target, score.value))
            return encode.quality;
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct dl2_quality_target rest = {.low = 1, .high = 100, .probes = 100};
    const struct dl2_decode_options decode = DL2_DECODE_DEFAULTS;
    const struct dl2_encode_options encode = DL2_ENCODE_DEFAULTS;
    struct dl2_quality_target target;
    struct dl2_target_searcher searcher = {0};
    struct dl2_target_curve curve = {0};
    struct dl2_target_result result;
    struct dl2_image image = DL2_IMAGE_INIT, scratch = DL2_IMAGE_INIT;
    struct dl2_bytes file = DL2_BYTES_INIT, out = DL2_BYTES_INIT;
    const struct dl2_target_job job = {&searcher, &target, &curve, dl2_codec_find("jpeg"),
                                       &image,    &encode, &out,   &result};
    struct dl2_scorer *scorer;
    struct dl2_error error = DL2_ERROR_INIT;
    double ours = 0, files = 0;
    unsigned tried = 0;
    if (argc < 3) {
        fprintf(stderr, "usage: bench_target TARGET IMAGE...\n");
        return 2;
    }
    check(dl2_target_parse(argv[1], &rest, &target, &error), &error);
    check(dl2_scorer_create(&scorer, &error), &error);
    if (!target.metric)
        return 2;
    for (int i = 2; i < argc; i++) {
        check(dl2_file_read(argv[i], SIZE_MAX, &file, &error), &error);
        check(dl2_image_decode(file.data, file.size, &decode, &image, &scratch, &error), &error);
        double start = dl2_clock_thread_cpu();
        check(dl2_target_search(&job, &error), &error);
        ours += dl2_clock_thread_cpu() - start;
        start = dl2_clock_thread_cpu();
        const int quality = search_files(scorer, &target, &image, &tried);
        files += dl2_clock_thread_cpu() - start;
        if (quality != (result.met ? result.quality : 0)) {
            fprintf(stderr, "%s: quality %d by files, %d by trials\n", argv[i], quality,
                    result.quality);
            return 1;
        }
    }
    printf("%d images, %.1f qualities each: files %.3f s, trials %.3f s, ratio %.2f\n", argc - 2,
           (double)tried / (argc - 2), files, ours, files / ours);
    return 0;
}
