/* SPDX-License-Identifier: BSD-2-Clause */
/* data.yaml: what Ultralytics' trainers read of a dataset, and what Roboflow exports. */
#include "annotations/annotations.h"

#include "common/file.h"
#include "common/quote.h"
#include "common/scope.h"
#include "dataset/packed/label_field.h"
#include "dataset/split.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

enum { MAX_BYTES = 16 << 20 };

/* ---- Where it is */

/* Is a folder called like one that data.yaml lies above: images, or a split? */
static bool is_below(const char *folder, size_t length)
{
    const char *slash = memrchr(folder, '/', length), *base = slash ? slash + 1 : folder;
    const size_t size = length - (size_t)(base - folder);
    return (size == strlen("images") && !memcmp(base, "images", size)) ||
           dl2_part_of_folder(base, size) != DL2_PART_NONE;
}

/* The length of the path of the folder that a dataset was opened as, or of its shards', by its
 * first sample; 0: it has no such folder. */
static size_t folder_length(const struct dl2_sample *sample)
{
    const char *inner = dl2_ends_with(sample->path, "]") ? strrchr(sample->path, '[') : NULL;
    const size_t length =
        inner ? (size_t)(inner - sample->path) : strlen(sample->path) - strlen(sample->name);
    const char *slash = !inner && !dl2_ends_with(sample->path, sample->name)
                            ? NULL
                            : memrchr(sample->path, '/', length);
    return slash ? (size_t)(slash - sample->path) : 0;
}

/* Looks in a folder, and above it while it is called like one that the file lies above. */
static int find_from(const char *folder, size_t length, const char *name, char **path, bool *above,
                     struct dl2_error *error)
{
    *above = false;
    for (bool again = true; again; *above = true) {
        DL2_TRY(dl2_format(path, error, "%.*s%s%s", (int)length, folder, length ? "/" : "", name));
        if (dl2_is_file(*path))
            return DL2_OK;
        free(*path);
        *path = NULL;
        const char *slash = memrchr(folder, '/', length);
        again = length && slash != folder && is_below(folder, length);
        length = slash ? (size_t)(slash - folder) : 0;
    }
    return DL2_OK;
}

int dl2_data_yaml_find(const struct dl2_dataset *dataset, const char *name, char **path,
                       bool *above, struct dl2_error *error)
{
    struct dl2_sample sample;
    *path = NULL;
    *above = false;
    if (!dl2_dataset_count(dataset))
        return DL2_OK;
    dl2_dataset_sample(dataset, 0, &sample);
    const size_t length = folder_length(&sample);
    if (!length)
        return DL2_OK;
    DL2_TRY(find_from(sample.path, length, name, path, above, error));
    DL2_AUTO_FREE char *folder = *path ? NULL : strndup(sample.path, length);
    DL2_AUTO_FREE char *real = folder ? realpath(folder, NULL) : NULL;
    return real ? find_from(real, strlen(real), name, path, above, error) : DL2_OK;
}

/* ---- What it has */

static const char *text_of(const yaml_node_t *node)
{
    return node && node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : NULL;
}

static int refuse(const yaml_node_t *node, const char *why, struct dl2_error *error)
{
    return dl2_error_set(error, DL2_ERR_FORMAT, "line %zu: %s", node->start_mark.line + 1, why);
}

static int add_name(struct dl2_data_yaml *yaml, int64_t label, const char *name,
                    struct dl2_error *error)
{
    DL2_TRY(dl2_grow(&yaml->classes, yaml->class_count, sizeof *yaml->classes, error));
    struct dl2_box_class *class = &yaml->classes[yaml->class_count];
    *class = (struct dl2_box_class){label, NULL};
    DL2_TRY(dl2_format(&class->name, error, "%s", name));
    yaml->class_count++;
    return DL2_OK;
}

static int add_class(struct dl2_data_yaml *yaml, int64_t label, const yaml_node_t *name,
                     struct dl2_error *error)
{
    const char *text = text_of(name);
    if (label < 0 || !text)
        return refuse(name, "names are a list, or lines such as '0: person'", error);
    return add_name(yaml, label, text, error);
}

/* "./images/train/" and Roboflow's "../train/images" without what leads to the folder. */
static int add_folder(struct dl2_data_yaml *yaml, const char *split, const char *text,
                      struct dl2_error *error)
{
    if (!text)
        return DL2_OK;
    while (!strncmp(text, "./", 2) || !strncmp(text, "../", 3))
        text = strchr(text, '/') + 1;
    DL2_TRY(dl2_grow(&yaml->folders, yaml->folder_count, sizeof *yaml->folders, error));
    struct dl2_split_folder *folder = &yaml->folders[yaml->folder_count];
    *folder = (struct dl2_split_folder){split, NULL};
    DL2_TRY(dl2_format(&folder->path, error, "%.*s", dl2_path_folder_length(text), text));
    yaml->folder_count++;
    return DL2_OK;
}

/* Takes each item of a list, each pair of a mapping, or the node itself; `split` NULL: names. */
static int take(yaml_document_t *document, const yaml_node_t *node, const char *split,
                struct dl2_data_yaml *yaml, struct dl2_error *error)
{
    if (split && node->type == YAML_SCALAR_NODE)
        return add_folder(yaml, split, text_of(node), error);
    if (node->type == YAML_SEQUENCE_NODE) {
        const yaml_node_item_t *first = node->data.sequence.items.start;
        for (const yaml_node_item_t *item = first; item < node->data.sequence.items.top; item++) {
            const yaml_node_t *found = yaml_document_get_node(document, *item);
            DL2_TRY(split ? add_folder(yaml, split, text_of(found), error)
                          : add_class(yaml, item - first, found, error));
        }
        return DL2_OK;
    }
    if (split || node->type != YAML_MAPPING_NODE)
        return split ? DL2_OK : add_class(yaml, -1, node, error);
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        const char *label = text_of(yaml_document_get_node(document, pair->key));
        DL2_TRY(add_class(yaml, label ? dl2_label_number(label) : -1,
                          yaml_document_get_node(document, pair->value), error));
    }
    return DL2_OK;
}

static int compare_classes(const void *a, const void *b)
{
    const struct dl2_box_class *one = a, *two = b;
    return (one->label > two->label) - (one->label < two->label);
}

static void note_path(struct dl2_data_yaml *yaml, const yaml_node_t *root, const yaml_node_t *key,
                      const yaml_node_t *value)
{
    if (root->data.mapping.style == YAML_FLOW_MAPPING_STYLE || yaml->path_line ||
        key->start_mark.line != value->end_mark.line)
        yaml->is_path_within = true;
    yaml->path_line = key->start_mark.line + 1;
}

static int read_document(yaml_document_t *document, struct dl2_data_yaml *yaml,
                         struct dl2_error *error)
{
    static const char *const splits[] = {"train", "val", "test"};
    const yaml_node_t *root = yaml_document_get_root_node(document);
    if (!root || root->type != YAML_MAPPING_NODE)
        return dl2_error_set(error, DL2_ERR_FORMAT, "it has no lines such as 'names: [person]'");
    for (const yaml_node_pair_t *pair = root->data.mapping.pairs.start;
         pair < root->data.mapping.pairs.top; pair++) {
        const yaml_node_t *named = yaml_document_get_node(document, pair->key);
        const yaml_node_t *value = yaml_document_get_node(document, pair->value);
        const char *key = text_of(named);
        if (key && !strcmp(key, "path"))
            note_path(yaml, root, named, value);
        if (key && !strcmp(key, "names"))
            DL2_TRY(take(document, value, NULL, yaml, error));
        for (size_t i = 0; key && i < sizeof splits / sizeof *splits; i++)
            if (!strcmp(key, splits[i]))
                DL2_TRY(take(document, value, splits[i], yaml, error));
    }
    if (yaml->class_count > 1)
        qsort(yaml->classes, yaml->class_count, sizeof *yaml->classes, compare_classes);
    for (size_t i = 1; i < yaml->class_count; i++)
        if (yaml->classes[i].label == yaml->classes[i - 1].label)
            return dl2_error_set(error, DL2_ERR_FORMAT, "class %" PRId64 " has two names, %s, %s",
                                 yaml->classes[i].label, yaml->classes[i - 1].name,
                                 yaml->classes[i].name);
    return DL2_OK;
}

static int parse(const struct dl2_bytes *text, struct dl2_data_yaml *yaml, struct dl2_error *error)
{
    yaml_parser_t parser;
    yaml_document_t document;
    int status;
    if (!yaml_parser_initialize(&parser))
        return dl2_error_memory(error, "names");
    yaml_parser_set_input_string(&parser, text->size ? text->data : (const uint8_t *)"",
                                 text->size);
    if (yaml_parser_load(&parser, &document)) {
        status = read_document(&document, yaml, error);
        yaml_document_delete(&document);
    } else if (parser.error == YAML_MEMORY_ERROR) {
        status = dl2_error_memory(error, "names");
    } else {
        status = dl2_error_set(error, DL2_ERR_FORMAT, "line %zu is no YAML: %s",
                               parser.problem_mark.line + 1,
                               parser.problem ? parser.problem : "it cannot be read");
    }
    yaml_parser_delete(&parser);
    return status;
}

/* Names of classes.txt, a line each. A blank line has a number, too: LabelImg counts it. */
static int parse_lines(struct dl2_bytes *text, struct dl2_data_yaml *yaml, struct dl2_error *error)
{
    static const char blanks[] = " \t\r";
    int64_t label = 0;
    DL2_TRY(dl2_text_begin(text, error));
    for (char *line = (char *)text->data, *next = line; next; line = next, label++) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        line += strspn(line, blanks);
        for (size_t size = strlen(line); size && strchr(blanks, line[size - 1]);)
            line[--size] = '\0';
        if (*line)
            DL2_TRY(add_name(yaml, label, line, error));
    }
    return DL2_OK;
}

int dl2_data_yaml_read(const char *path, struct dl2_data_yaml *yaml, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes text = DL2_BYTES_INIT;
    *yaml = (struct dl2_data_yaml){0};
    DL2_TRY(dl2_file_read(path, MAX_BYTES, &text, error));
    const int status = strcmp(dl2_path_base(path), DL2_CLASSES_TXT) != 0
                           ? parse(&text, yaml, error)
                           : parse_lines(&text, yaml, error);
    if (status < 0) {
        dl2_error_prefix(error, "%s", path);
        dl2_data_yaml_free(yaml);
    }
    return status;
}

const char *dl2_data_yaml_name(const struct dl2_data_yaml *yaml, int64_t label)
{
    const struct dl2_box_class wanted = {label, NULL};
    const struct dl2_box_class *found =
        yaml->class_count
            ? bsearch(&wanted, yaml->classes, yaml->class_count, sizeof wanted, compare_classes)
            : NULL;
    return found ? found->name : NULL;
}

size_t dl2_data_yaml_misplaced(const struct dl2_data_yaml *yaml, const struct dl2_dataset *dataset,
                               const struct dl2_split_folder **folder)
{
    size_t count = 0;
    for (size_t i = 0; yaml->folder_count && i < dl2_dataset_count(dataset); i++) {
        const char *split = dl2_dataset_split_of(dataset, i);
        const struct dl2_split_folder *in = NULL;
        struct dl2_sample sample;
        dl2_dataset_sample(dataset, i, &sample);
        bool right = false;
        for (size_t f = 0; f < yaml->folder_count && !right; f++) {
            const size_t length = strlen(yaml->folders[f].path);
            if (strncmp(sample.key, yaml->folders[f].path, length) != 0 ||
                sample.key[length] != '/')
                continue;
            in = &yaml->folders[f];
            right = !strcmp(split, in->split);
        }
        if (in && !right && !count++)
            *folder = in;
    }
    return count;
}

void dl2_data_yaml_free(struct dl2_data_yaml *yaml)
{
    for (size_t i = 0; i < yaml->class_count; i++)
        free(yaml->classes[i].name);
    for (size_t i = 0; i < yaml->folder_count; i++)
        free(yaml->folders[i].path);
    free(yaml->classes);
    free(yaml->folders);
    *yaml = (struct dl2_data_yaml){0};
}
