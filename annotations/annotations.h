/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Boxes around the objects of images: from one file for all images in COCO's JSON
 * (instances_*.json), or from a label file beside each image, as YOLO has it.
 *
 * COCO's file is read once, an element at a time, into compact arrays: memory beyond them is that
 * of its largest element. An image is looked up by its file_name without extension: a sample is
 * that image if its key is this name, or ends with a slash and this name.
 *
 * Threads: any number at once may ask what was opened.
 */
#ifndef DL2_ANNOTATIONS_H
#define DL2_ANNOTATIONS_H

#include "common/error.h"
#include "common/memory.h"
#include "dataset/dataset.h"

#include <jansson.h>

/* An object in an image. */
struct dl2_annotation {
    /* Its box, finite, left <= right and top <= bottom: in pixels of the image, of YOLO in parts of
     * its width and height. It may reach beyond the image. */
    double left, top, right, bottom;
    int64_t label; /* the category's id; of YOLO the class's number */
    float area;    /* as the file has it, else that of the box */
    bool crowd;
    size_t shape; /* where dl2_coco_shape() begins; 0: none was read */
};

struct dl2_annotated_image {
    int64_t id;
    uint32_t width, height; /* as the file has them; 0: it does not */
    const struct dl2_annotation *annotations;
    uint32_t count;
};

struct dl2_coco;

struct dl2_coco_facts {
    size_t images, annotations, categories; /* in the file, without those that are broken */
    size_t broken;            /* elements that were left out */
    const char *faults;       /* what is wrong with the first three of these, "; " between */
    size_t missing;           /* images of the file that no sample of the dataset is */
    size_t missing_boxes;     /* annotations of these */
    size_t unlisted;          /* samples of the dataset that the file does not have */
    const char *unlisted_key; /* the first of them, or NULL */
    size_t bare;              /* images of the file that are samples and have no annotation */
};

/*
 * Reads a file, with the shapes of objects or without, and finds the samples of a dataset in it;
 * with `dataset` NULL its images are the samples, in the order of their ids.
 *
 * A broken element is left out, counted and named in the facts: no id, an object that leads nowhere,
 * a box that is not four finite numbers or of negative size, a shape that is no polygons or run
 * lengths of their size. DL2_ERR_FORMAT for what is not such JSON; if no image, or none of more than
 * three objects, is whole; if an id of an image or a category comes twice, if two images are one
 * sample or two samples one image; and if no image fits.
 */
int dl2_coco_open(const char *path, const struct dl2_dataset *dataset, bool shapes,
                  struct dl2_coco **out, struct dl2_error *error);
void dl2_coco_close(struct dl2_coco *coco);

const struct dl2_coco_facts *dl2_coco_facts(const struct dl2_coco *coco);
size_t dl2_coco_memory(const struct dl2_coco *coco);
/* The file_name of an image that no sample is, by its number among these; NULL after the last. */
const char *dl2_coco_missing(const struct dl2_coco *coco, size_t number);

/* Category `number` by their ids, with "" if it has no name; false after the last. */
bool dl2_coco_class(const struct dl2_coco *coco, size_t number, int64_t *label, const char **name);

/* What the file has of a sample, its annotations in the file's order; false: nothing. */
bool dl2_coco_image(const struct dl2_coco *coco, size_t index, struct dl2_annotated_image *image);

/* The sample that the file's image with this id is, an image's `id` or an annotation's `image_id`;
 * false: there is no such image, or it is no sample. */
bool dl2_coco_find(const struct dl2_coco *coco, const json_t *id, size_t *index);

/*
 * The shape of an annotation. Polygons: their number, then of each the number of its points and
 * their x and y as int32_t, in fifths of a pixel as pycocotools rounds them. Run lengths: 0,
 * height, width, the number of runs, and the runs down the columns, beginning with one of zeros;
 * their sum is height * width.
 */
const uint32_t *dl2_coco_shape(const struct dl2_coco *coco,
                               const struct dl2_annotation *annotation);

/*
 * Appends the run lengths of `counts`, COCO's list of numbers or compressed text, to `runs`, as
 * uint32_t. Compressed runs are groups of five bits, the low ones first; from the fourth run on
 * they are what differs from the run but one before. 1; 0 where they are damaged, or do not fill so
 * many pixels; negative: no memory.
 */
int dl2_coco_read_runs(const json_t *counts, uint64_t pixels, struct dl2_bytes *runs,
                       struct dl2_error *error);

/* Beyond this, pixels, no coordinate of a polygon is accepted. */
#define DL2_POLYGON_MAX 1e6

/*
 * Reads a label file of YOLO into `rows` (struct dl2_annotation, which it replaces): lines
 * "class x y width height", the box's center and size as parts of the image's width and height.
 * DL2_ERR_FORMAT names the line that is none.
 */
int dl2_yolo_read(const uint8_t *text, size_t size, struct dl2_bytes *rows,
                  struct dl2_error *error);

/* A class of boxes. */
struct dl2_box_class {
    int64_t label;
    char *name;
};

struct dl2_split_folder {
    const char *split; /* "train", "val" or "test" */
    char *path;        /* "images/train", below the dataset's folder */
};

/* data.yaml, which Ultralytics' trainers read and Roboflow exports. */
struct dl2_data_yaml {
    struct dl2_box_class *classes; /* of `names`, ordered by label; there may be gaps */
    size_t class_count;
    struct dl2_split_folder *folders; /* of `train`, `val` and `test` */
    size_t folder_count;
    size_t path_line;    /* of `path`, from 1; 0: there is none */
    bool is_path_within; /* it is there, beside others on its line or on several */
};

#define DL2_DATA_YAML   "data.yaml"
#define DL2_CLASSES_TXT "classes.txt"

/* Sets *path to the file `name` of a dataset's folder, a string to free, or to NULL. A folder that
 * is called images or like a split may have it above, which *above tells. Not on a server. */
int dl2_data_yaml_find(const struct dl2_dataset *dataset, const char *name, char **path,
                       bool *above, struct dl2_error *error);

/* Reads a file; free it after success alone. DL2_ERR_FORMAT names the line that is no YAML, and
 * names that are neither a list nor have whole numbers from 0 on. Without names there are none. Of
 * classes.txt, as LabelImg writes it, line n names class n, from 0; a blank one names none. */
int dl2_data_yaml_read(const char *path, struct dl2_data_yaml *yaml, struct dl2_error *error);
/* NULL: the class has no name. */
const char *dl2_data_yaml_name(const struct dl2_data_yaml *yaml, int64_t label);
/* How many samples lie in folders that are another split there than the dataset's; *folder: the
 * first's. */
size_t dl2_data_yaml_misplaced(const struct dl2_data_yaml *yaml, const struct dl2_dataset *dataset,
                               const struct dl2_split_folder **folder);
void dl2_data_yaml_free(struct dl2_data_yaml *yaml);

/* What names the classes of a dataset's label files. */
struct dl2_class_names {
    struct dl2_data_yaml yaml;
    char *yaml_path; /* of a data.yaml; NULL: there is none */
    char *path;      /* the file that names the classes, that or classes.txt; NULL: none does */
    bool is_above;   /* data.yaml lies above the dataset's folder */
    char *warning;   /* what is wrong with these files, or NULL */
};

/*
 * Finds data.yaml, whose names count, and every classes.txt: beside label files or images, or where
 * data.yaml may be. DL2_ERR_FORMAT if, without names of data.yaml, two of them give a class two
 * names.
 */
int dl2_class_names_find(const struct dl2_dataset *dataset, struct dl2_class_names *names,
                         struct dl2_error *error);
/* Reads the file that a user names. Free both after success alone. */
int dl2_class_names_read(const char *path, struct dl2_class_names *names, struct dl2_error *error);
void dl2_class_names_free(struct dl2_class_names *names);

#endif
