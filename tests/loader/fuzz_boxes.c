/* SPDX-License-Identifier: BSD-2-Clause */
/* Any bytes as COCO's JSON, a label file and data.yaml: an error, or boxes and masks within the
 * sample, and names of classes in their order. */
#include "loader/boxes.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WIDTH = 24, HEIGHT = 16 };

static void check_view(const struct dl2_boxes *view)
{
    for (unsigned i = 0; i < view->count; i++) {
        const float *box = view->boxes[i];
        if (!(box[0] >= 0 && box[0] < box[2] && box[2] <= WIDTH && box[1] >= 0 && box[1] < box[3] &&
              box[3] <= HEIGHT && view->areas[i] >= 0 && view->iscrowd[i] >= 0 &&
              view->iscrowd[i] <= 1))
            abort();
        for (size_t p = 0; view->masks && p < (size_t)WIDTH * HEIGHT; p++)
            if (view->masks[(size_t)i * WIDTH * HEIGHT + p] > 1)
                abort();
    }
}

static void show(const struct dl2_box_source *source, struct dl2_sample_boxes *boxes, size_t index,
                 uint32_t width, uint32_t height, bool masks)
{
    struct dl2_loader_config config = DL2_LOADER_DEFAULTS;
    struct dl2_error error = DL2_ERROR_INIT;
    const struct dl2_crop_box crop = {width / 8, height / 8, width - width / 8, height,
                                      index % 2 != 0};
    config.width = WIDTH;
    config.height = HEIGHT;
    config.instance_masks = masks;
    config.max_pixels = 1 << 20;
    if (dl2_boxes_show(boxes, source, &config, (uint32_t)index, width, height, &crop, &error) ==
        DL2_OK)
        check_view(&boxes->view);
    else if (!error.message[0])
        abort();
}

static void read_yaml(const char *path)
{
    struct dl2_data_yaml yaml;
    struct dl2_error error = DL2_ERROR_INIT;
    if (dl2_data_yaml_read(path, &yaml, &error) < 0) {
        if (!error.message[0])
            abort();
        return;
    }
    for (size_t i = 0; i < yaml.class_count; i++)
        if (dl2_data_yaml_name(&yaml, yaml.classes[i].label) != yaml.classes[i].name ||
            (i && yaml.classes[i].label <= yaml.classes[i - 1].label))
            abort();
    dl2_data_yaml_free(&yaml);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char path[64];
    static int fd;
    if (!fd) {
        fd = memfd_create("fuzz_boxes", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
        abort();
    read_yaml(path);
    struct dl2_sample_boxes boxes = {0};
    struct dl2_annotated_image image;
    for (int masks = 0; masks < 2; masks++) {
        struct dl2_box_source source = {.text = path};
        struct dl2_error error = DL2_ERROR_INIT;
        if (dl2_coco_open(path, NULL, masks, &source.coco, &error) < 0 && !error.message[0])
            abort();
        for (size_t i = 0; source.coco && dl2_coco_image(source.coco, i, &image); i++) {
            const bool sized = image.width && image.width < 4096 && image.height < 4096;
            show(&source, &boxes, i, sized ? image.width : 40, sized ? image.height : 30, masks);
        }
        dl2_coco_close(source.coco);
    }
    const struct dl2_box_source labels = {.text = path};
    struct dl2_error error = DL2_ERROR_INIT;
    if (dl2_yolo_read(data, size, &boxes.rows, &error) == DL2_OK)
        show(&labels, &boxes, 1, 40, 30, false);
    else if (!error.message[0])
        abort();
    dl2_boxes_free(&boxes);
    return 0;
}
