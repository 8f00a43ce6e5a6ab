/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/boxes.h"

#include "annotations/instance_masks.h"
#include "common/file.h"
#include "common/quote.h"
#include "common/scope.h"
#include "pixels/crop.h"
#include "pixels/image.h"
#include "pixels/resolution.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The masks of one sample, bytes. */
#define MAX_MASKS ((size_t)1 << 31)

/* ---- sources ---- */

/* Does the text name a file, which ends in such an extension? Else it is one. */
static bool is_file(const char *text, const char *extension)
{
    return strlen(text) > strlen(extension) && dl2_ends_with(text, extension);
}

/* What does not fit, in words; NULL where all fits, or without memory. */
static char *describe_misfits(const char *path, const struct dl2_coco *coco)
{
    const struct dl2_coco_facts *facts = dl2_coco_facts(coco);
    char *text = NULL;
    size_t size;
    const bool misfits = facts->unlisted || facts->missing || facts->broken;
    FILE *out = misfits ? open_memstream(&text, &size) : NULL;
    if (!out)
        return NULL;
    const char *before = ": ";
    fputs(path, out);
    if (facts->broken)
        fprintf(out, "%s%zu broken element%s left out: %s", before, facts->broken,
                facts->broken == 1 ? "" : "s", facts->faults);
    before = facts->broken ? "; " : before;
    if (facts->unlisted)
        fprintf(out, "%s%zu samples are not among its images and have no boxes, such as '%s'",
                before, facts->unlisted, facts->unlisted_key);
    before = facts->unlisted ? "; " : before;
    if (facts->missing)
        fprintf(out,
                "%s%zu of its images, with %zu annotations, are not among the samples, such as "
                "'%s'",
                before, facts->missing, facts->missing_boxes, dl2_coco_missing(coco, 0));
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

/* Where else label files were looked for, or what to do if they lie elsewhere. */
static const char *other_places(const struct dl2_dataset *dataset, const struct dl2_sample *sample)
{
    if (strcmp(dl2_dataset_container(dataset), "folder") != 0)
        return "; those of a folder 'labels' have to be packed beside their images: unpack both, "
               "and pack them by dl2-transcode copy";
    return dl2_is_address(sample->path)
               ? ", nor in a folder 'labels' beside 'images' below the address: name the folder "
                 "that holds both"
               : ", nor in a folder 'labels' beside 'images'";
}

/* An image without a label file has no objects, as for Ultralytics' trainers; where none has one,
 * they lie elsewhere. */
static int find_label_file(const struct dl2_box_source *source, const struct dl2_dataset *dataset,
                           struct dl2_error *error)
{
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes text = DL2_BYTES_INIT;
    const size_t count = dl2_dataset_count(dataset);
    for (size_t i = 0; i < count; i++)
        if (dl2_dataset_read_sidecar(dataset, i, source->extension, &text, NULL))
            return DL2_OK; /* one that cannot be read makes its sample bad */
    struct dl2_sample sample;
    if (!count)
        return DL2_OK;
    dl2_dataset_sample(dataset, 0, &sample);
    return dl2_error_set(error, DL2_ERR_FORMAT,
                         "boxes: none of the %zu images has a label file: there is no '%s' beside "
                         "%s, nor beside another one%s",
                         count, source->extension, sample.path, other_places(dataset, &sample));
}

/* Names of classes, and what data.yaml says of the splits. */
static int open_names(struct dl2_box_source *source, const struct dl2_dataset *dataset, bool given,
                      struct dl2_error *error)
{
    const struct dl2_split_folder *folder;
    struct dl2_class_names *names = &source->names;
    if (!given && dl2_dataset_members(dataset) > 1)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "boxes: label files number their classes, and each of %zu datasets "
                             "may do so in its own way: name the data.yaml that holds for all",
                             dl2_dataset_members(dataset));
    if (given)
        return dl2_class_names_read(source->text, names, error);
    DL2_TRY(dl2_class_names_find(dataset, names, error));
    source->warning = names->warning;
    names->warning = NULL;
    const size_t misplaced =
        names->is_above ? 0 : dl2_data_yaml_misplaced(&names->yaml, dataset, &folder);
    return misplaced ? dl2_format_more(&source->warning, error,
                                       "%s: %zu images lie in folders such as %s, which is its "
                                       "split %s, and are in another one here: splits are folders "
                                       "that are called train, val or test",
                                       names->yaml_path, misplaced, folder->path, folder->split)
                     : DL2_OK;
}

int dl2_box_source_open(struct dl2_box_source *source, const struct dl2_loader_config *config,
                        const struct dl2_dataset *dataset, struct dl2_error *error)
{
    if (!config->boxes)
        return DL2_OK;
    DL2_TRY(dl2_format(&source->text, error, "%s", config->boxes));
    if (is_file(source->text, ".json")) {
        DL2_TRY(dl2_coco_open(source->text, dataset, config->instance_masks, &source->coco, error));
        source->warning = describe_misfits(source->text, source->coco);
        return DL2_OK;
    }
    const bool names = is_file(source->text, ".yaml") || is_file(source->text, ".yml") ||
                       !strcmp(dl2_path_base(source->text), DL2_CLASSES_TXT);
    source->extension = names ? "txt" : source->text;
    if (!names && (!*source->text || *source->text == '.' || strpbrk(source->text, "/ ,")))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "boxes: '%s' is neither a file in COCO's JSON, FILE.json, nor the "
                             "extension of label files, such as txt, nor their data.yaml or "
                             "classes.txt",
                             source->text);
    if (config->instance_masks)
        return dl2_error_set(
            error, DL2_ERR_ARGUMENT,
            "instance_masks: label files hold boxes alone; masks need COCO's JSON");
    if (!dl2_dataset_has_sidecars(dataset))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "boxes: the container '%s' holds nothing beside images; give COCO's "
                             "JSON, FILE.json",
                             dl2_dataset_container(dataset));
    DL2_TRY(find_label_file(source, dataset, error));
    return open_names(source, dataset, names, error);
}

bool dl2_box_source_class(const struct dl2_box_source *source, size_t number, int64_t *label,
                          const char **name)
{
    if (source->coco)
        return dl2_coco_class(source->coco, number, label, name);
    if (number >= source->names.yaml.class_count)
        return false;
    *label = source->names.yaml.classes[number].label;
    *name = source->names.yaml.classes[number].name;
    return true;
}

void dl2_box_source_close(struct dl2_box_source *source)
{
    dl2_coco_close(source->coco);
    dl2_class_names_free(&source->names);
    free(source->text);
    free(source->warning);
    *source = (struct dl2_box_source){0};
}

/* ---- one sample ---- */

static int check_classes(const struct dl2_sample_boxes *boxes, const struct dl2_box_source *source,
                         struct dl2_error *error)
{
    const struct dl2_annotation *rows = (const void *)boxes->rows.data;
    for (size_t i = 0; source->names.yaml.class_count && i < boxes->rows.size / sizeof *rows; i++)
        if (!dl2_data_yaml_name(&source->names.yaml, rows[i].label))
            return dl2_error_set(error, DL2_ERR_FORMAT, "class %" PRId64 " has no name in %s",
                                 rows[i].label, source->names.path);
    return DL2_OK;
}

int dl2_boxes_read(struct dl2_sample_boxes *boxes, const struct dl2_box_source *source,
                   const struct dl2_dataset *dataset, uint32_t index,
                   struct dl2_loader_stats *stats, struct dl2_error *error)
{
    struct dl2_sample sample;
    if (!source->text || source->coco)
        return DL2_OK;
    boxes->rows.size = 0;
    int status = dl2_dataset_read_sidecar(dataset, index, source->extension, &boxes->file, error);
    DL2_TRY(status);
    if (!status) {
        stats->no_label_file++;
        return DL2_OK;
    }
    status = dl2_yolo_read(boxes->file.data, boxes->file.size, &boxes->rows, error);
    if (status == DL2_OK)
        status = check_classes(boxes, source, error);
    dl2_dataset_sample(dataset, index, &sample);
    if (status < 0)
        dl2_error_prefix(error, "%s: boxes: '%s'", sample.path, source->extension);
    return status;
}

/* What an image shows, in the units of its boxes. */
struct shown {
    struct dl2_crop_box crop;
    double across, down;    /* pixels of the output in one of these units */
    unsigned width, height; /* of the output */
    double area;            /* pixels of the image in a square of these units */
    double min_visibility;
};

static double limited(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

/* What is left of a box, in pixels of the output; false: too little. */
static bool crop_box(const struct dl2_annotation *annotation, const struct shown *shown,
                     float box[4])
{
    const struct dl2_crop_box *crop = &shown->crop;
    const double left = limited(annotation->left, crop->left, crop->right);
    const double right = limited(annotation->right, crop->left, crop->right);
    const double top = limited(annotation->top, crop->top, crop->bottom);
    const double bottom = limited(annotation->bottom, crop->top, crop->bottom);
    const double before =
        (annotation->right - annotation->left) * (annotation->bottom - annotation->top);
    double x1 = limited((left - crop->left) * shown->across, 0, shown->width);
    double x2 = limited((right - crop->left) * shown->across, 0, shown->width);
    if (crop->flipped) {
        const double old = x1;
        x1 = shown->width - x2;
        x2 = shown->width - old;
    }
    box[0] = (float)x1;
    box[1] = (float)limited((top - crop->top) * shown->down, 0, shown->height);
    box[2] = (float)x2;
    box[3] = (float)limited((bottom - crop->top) * shown->down, 0, shown->height);
    return box[0] < box[2] && box[1] < box[3] &&
           (right - left) * (bottom - top) >= shown->min_visibility * before;
}

/* The size that an image has for its file, and its crop at this size. */
static int fit_crop(const struct dl2_annotated_image *image, uint32_t width, uint32_t height,
                    const struct dl2_crop_box *crop, struct dl2_crop_box *out,
                    struct dl2_error *error)
{
    const double across = (double)image->width / width, down = (double)image->height / height;
    if (!dl2_is_resized(width, height, image->width, image->height))
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "the image is of %" PRIu32 "x%" PRIu32 ", and boxes are those of one "
                             "of %" PRIu32 "x%" PRIu32 ", which is not that image resized; boxes "
                             "are of the upright image",
                             width, height, image->width, image->height);
    *out = (struct dl2_crop_box){limited(crop->left * across, 0, image->width),
                                 limited(crop->top * down, 0, image->height),
                                 limited(crop->right * across, 0, image->width),
                                 limited(crop->bottom * down, 0, image->height), crop->flipped};
    return DL2_OK;
}

static int show_masks(struct dl2_sample_boxes *boxes, const struct dl2_box_source *source,
                      const struct dl2_annotated_image *image, const struct shown *shown,
                      uint64_t most, uint8_t *masks, struct dl2_error *error)
{
    const size_t bytes = (size_t)shown->width * shown->height;
    const struct dl2_box box = {shown->crop.left, shown->crop.top, shown->crop.right,
                                shown->crop.bottom};
    float unused[4];
    const size_t whole = (size_t)image->width * image->height; /* sides have a limit */
    if (whole > most)
        return dl2_error_set(error, DL2_ERR_LIMIT,
                             "boxes are of an image of %zu pixels, and the limit is %" PRIu64,
                             whole, most);
    DL2_TRY(dl2_bytes_resize(&boxes->whole, whole, error));
    DL2_TRY(dl2_bytes_resize(&boxes->columns, shown->width * sizeof(uint32_t), error));
    if (!boxes->shown.data)
        DL2_TRY(dl2_pixels_init(&boxes->shown, shown->width, shown->height, 1, error));
    const struct dl2_raster raster = {.color = DL2_COLOR_GRAY,
                                      .planes = {{.data = boxes->whole.data,
                                                  .stride = image->width,
                                                  .width = image->width,
                                                  .height = image->height,
                                                  .step_x = 1,
                                                  .step_y = 1}}};
    for (uint32_t i = 0; i < image->count; i++) {
        if (!crop_box(&image->annotations[i], shown, unused))
            continue;
        DL2_TRY(dl2_instance_mask_draw(dl2_coco_shape(source->coco, &image->annotations[i]),
                                       image->width, image->height, boxes->whole.data,
                                       &boxes->scratch, error));
        DL2_TRY(dl2_crop_nearest(&raster, &box, shown->crop.flipped, &boxes->shown,
                                 (uint32_t *)(void *)boxes->columns.data, error));
        memcpy(masks, boxes->shown.data, bytes);
        masks += bytes;
    }
    return DL2_OK;
}

/* Lays out and fills in the arrays of the boxes that are kept. */
static int fill_view(struct dl2_sample_boxes *boxes, const struct dl2_box_source *source,
                     const struct dl2_annotated_image *image, const struct shown *shown,
                     const struct dl2_loader_config *config, struct dl2_error *error)
{
    const bool with_masks = config->instance_masks;
    const size_t each = with_masks ? (size_t)shown->width * shown->height : 0;
    float box[4];
    size_t kept = 0, bytes, masks;
    for (uint32_t i = 0; i < image->count; i++)
        kept += crop_box(&image->annotations[i], shown, box);
    const size_t row = 2 * sizeof(int64_t) + 5 * sizeof(float);
    if (!dl2_size_mul(kept, row, &bytes) || !dl2_size_mul(kept, each, &masks) || masks > MAX_MASKS)
        return dl2_error_set(error, DL2_ERR_LIMIT, "the masks of %zu objects pass 2 GiB", kept);
    DL2_TRY(dl2_bytes_resize(&boxes->block, bytes + masks, error));
    int64_t *labels = (int64_t *)(void *)boxes->block.data, *crowds = labels + kept;
    float(*places)[4] = (float(*)[4])(void *)(crowds + kept);
    float *areas = (float *)(void *)(places + kept);
    uint8_t *pixels = (uint8_t *)(void *)(areas + kept);
    boxes->view = (struct dl2_boxes){.count = (unsigned)kept,
                                     .dropped = (unsigned)(image->count - kept),
                                     .boxes = (const float(*)[4])places,
                                     .labels = labels,
                                     .iscrowd = crowds,
                                     .areas = areas,
                                     .masks = with_masks ? pixels : NULL,
                                     .image_id = image->id};
    size_t at = 0;
    for (uint32_t i = 0; i < image->count; i++)
        if (crop_box(&image->annotations[i], shown, box)) {
            memcpy(places[at], box, sizeof box);
            labels[at] = image->annotations[i].label;
            crowds[at] = image->annotations[i].crowd;
            areas[at++] = (float)(image->annotations[i].area * shown->area);
        }
    if (!with_masks || !kept)
        return DL2_OK;
    const uint64_t most = config->max_pixels ? config->max_pixels : DL2_DEFAULT_MAX_PIXELS;
    return show_masks(boxes, source, image, shown, most, pixels, error);
}

int dl2_boxes_show(struct dl2_sample_boxes *boxes, const struct dl2_box_source *source,
                   const struct dl2_loader_config *config, uint32_t index, uint32_t width,
                   uint32_t height, const struct dl2_crop_box *crop, struct dl2_error *error)
{
    struct dl2_annotated_image image = {.id = source->coco ? -1 : (int64_t)index};
    struct shown shown = {.width = dl2_loader_width(config),
                          .height = config->height,
                          .area = source->coco ? 1 : (double)width * height,
                          .min_visibility = config->min_visibility};
    if (!source->text)
        return DL2_OK;
    if (!source->coco) { /* an image of 1x1 */
        image.width = image.height = 1;
        image.annotations = (const struct dl2_annotation *)(const void *)boxes->rows.data;
        image.count = (uint32_t)(boxes->rows.size / sizeof *image.annotations);
        shown.crop =
            (struct dl2_crop_box){crop->left / width, crop->top / height, crop->right / width,
                                  crop->bottom / height, crop->flipped};
    } else {
        dl2_coco_image(source->coco, index, &image);
        if (!image.width) {
            image.width = width;
            image.height = height;
        }
        DL2_TRY(fit_crop(&image, width, height, crop, &shown.crop, error));
    }
    shown.across = shown.width / (shown.crop.right - shown.crop.left);
    shown.down = shown.height / (shown.crop.bottom - shown.crop.top);
    return fill_view(boxes, source, &image, &shown, config, error);
}

void dl2_boxes_place(struct dl2_sample_boxes *from, struct dl2_bytes *block, struct dl2_boxes *out)
{
    *out = from ? from->view : (struct dl2_boxes){.image_id = -1};
    if (from)
        dl2_bytes_swap(&from->block, block);
}

size_t dl2_boxes_memory(const struct dl2_sample_boxes *boxes)
{
    return boxes->block.capacity + boxes->file.capacity + boxes->rows.capacity +
           boxes->whole.capacity + boxes->scratch.capacity + boxes->columns.capacity +
           (boxes->shown.data ? dl2_pixels_memory(&boxes->shown) : 0);
}

void dl2_boxes_free(struct dl2_sample_boxes *boxes)
{
    dl2_bytes_free(&boxes->block);
    dl2_bytes_free(&boxes->file);
    dl2_bytes_free(&boxes->rows);
    dl2_bytes_free(&boxes->whole);
    dl2_bytes_free(&boxes->scratch);
    dl2_bytes_free(&boxes->columns);
    dl2_pixels_free(&boxes->shown);
}
