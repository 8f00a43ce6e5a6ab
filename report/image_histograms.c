/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/image_histograms.h"

#include "common/json.h"
#include "common/scope.h"
#include "report/result_files.h"

#include <math.h>
#include <stdio.h>

enum { LOWEST = -16, AN_OCTAVE = 4 };

double dl2_image_bin(size_t bin)
{
    return exp2((double)bin / AN_OCTAVE + LOWEST);
}

static void count(struct dl2_image_histogram *histogram, double value)
{
    if (!(value > 0) || !isfinite(value))
        return;
    const double bin = floor(AN_OCTAVE * (log2(value) - LOWEST));
    histogram->images[(size_t)fmin(fmax(bin, 0), DL2_IMAGE_BINS - 1)]++;
}

static void count_image(struct dl2_image_histogram *histograms, double bytes, double width,
                        double height, double frames)
{
    count(&histograms[DL2_IMAGE_BYTES], bytes);
    count(&histograms[DL2_IMAGE_BITS_PER_PIXEL], 8 * bytes / (width * height * frames));
    count(&histograms[DL2_IMAGE_SHORT], isnan(width) || isnan(height) ? NAN : fmin(width, height));
}

static void count_row(const json_t *row, struct dl2_image_histogram *own,
                      struct dl2_image_histogram *source)
{
    const double width = dl2_json_get_real(row, "width", NAN);
    const double height = dl2_json_get_real(row, "height", NAN);
    const double frames = dl2_json_get_real(row, "frames", dl2_json_get_real(row, "depth", 1));
    count_image(own, dl2_json_get_real(row, "bytes", NAN), width, height, frames);
    count_image(source, dl2_json_get_real(row, "source_bytes", NAN),
                dl2_json_get_real(row, "source_width", width),
                dl2_json_get_real(row, "source_height", height), frames);
}

int dl2_image_histograms_read(const char *path, struct dl2_image_histogram *own,
                              struct dl2_image_histogram *source, struct dl2_error *error)
{
    DL2_AUTO_FREE char *line = NULL;
    size_t capacity = 0;
    int status = DL2_OK;
    FILE *list = fopen(path, "re");
    if (!list)
        return dl2_error_system(error, "%s", path);
    for (size_t i = 1; status == DL2_OK && getline(&line, &capacity, list) > 0; i++) {
        json_auto_t *row = json_loads(line, 0, NULL);
        status = row ? dl2_result_check(row, "dl2-variant.jsonl", path, error)
                     : dl2_error_set(error, DL2_ERR_FORMAT,
                                     "%s: line %zu is not a JSON object: it is cut short or was "
                                     "changed",
                                     path, i);
        if (status == DL2_OK)
            count_row(row, own, source);
    }
    if (ferror(list) && status == DL2_OK)
        status = dl2_error_system(error, "%s", path);
    fclose(list);
    return status;
}
