/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bare cost that dl2-transcode is held against: for each JPEG file named on stdin, one decode
 * and an encode at each quality named on the command line, with libjpeg alone. Prints the CPU
 * seconds of the library calls; files are read beforehand, nothing is written.
 */
#include "common/clock.h"
#include "common/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

static void decode(const struct dl2_bytes *file, struct dl2_bytes *pixels,
                   struct jpeg_decompress_struct *header)
{
    struct jpeg_error_mgr manager;
    struct jpeg_decompress_struct cinfo;
    cinfo.err = jpeg_std_error(&manager);
    jpeg_create_decompress(&cinfo);
    jpeg_mem_src(&cinfo, file->data, file->size);
    jpeg_read_header(&cinfo, TRUE);
    jpeg_start_decompress(&cinfo);
    size_t stride = (size_t)cinfo.output_width * (size_t)cinfo.output_components;
    if (dl2_bytes_resize(pixels, stride * cinfo.output_height, NULL) < 0)
        exit(1);
    while (cinfo.output_scanline < cinfo.output_height) {
        JSAMPROW row = pixels->data + cinfo.output_scanline * stride;
        jpeg_read_scanlines(&cinfo, &row, 1);
    }
    jpeg_finish_decompress(&cinfo);
    *header = cinfo;
    jpeg_destroy_decompress(&cinfo);
}

static unsigned long encode(const struct dl2_bytes *pixels,
                            const struct jpeg_decompress_struct *header, int quality)
{
    struct jpeg_error_mgr manager;
    struct jpeg_compress_struct cinfo;
    unsigned char *out = NULL;
    unsigned long size = 0;
    cinfo.err = jpeg_std_error(&manager);
    jpeg_create_compress(&cinfo);
    jpeg_mem_dest(&cinfo, &out, &size);
    cinfo.image_width = header->output_width;
    cinfo.image_height = header->output_height;
    cinfo.input_components = header->output_components;
    cinfo.in_color_space = header->out_color_space;
    jpeg_set_defaults(&cinfo);
    jpeg_set_quality(&cinfo, quality, TRUE);
    jpeg_start_compress(&cinfo, TRUE);
    size_t stride = (size_t)cinfo.image_width * (size_t)cinfo.input_components;
    while (cinfo.next_scanline < cinfo.image_height) {
        JSAMPROW row = pixels->data + cinfo.next_scanline * stride;
        jpeg_write_scanlines(&cinfo, &row, 1);
    }
    jpeg_finish_compress(&cinfo);
    jpeg_destroy_compress(&cinfo);
    free(out);
    return size;
}

int main(int argc, char **argv)
{
    char path[4096];
    struct dl2_bytes file = DL2_BYTES_INIT, pixels = DL2_BYTES_INIT;
    double cpu = 0;
    unsigned long long bytes = 0, images = 0;
    while (fgets(path, sizeof path, stdin)) {
        path[strcspn(path, "\n")] = '\0';
        struct dl2_error error = DL2_ERROR_INIT;
        if (dl2_file_read(path, SIZE_MAX / 2, &file, &error) < 0) {
            fprintf(stderr, "%s\n", error.message);
            return 1;
        }
        struct jpeg_decompress_struct header;
        double start = dl2_clock_process_cpu();
        decode(&file, &pixels, &header);
        for (int i = 1; i < argc; i++)
            bytes += encode(&pixels, &header, atoi(argv[i]));
        cpu += dl2_clock_process_cpu() - start;
        images++;
    }
    printf("%.6f %llu %llu\n", cpu, images, bytes);
    dl2_bytes_free(&file);
    dl2_bytes_free(&pixels);
    return 0;
}
