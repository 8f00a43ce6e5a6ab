/* SPDX-License-Identifier: BSD-2-Clause */
#include "network/weights.h"
#include "common/memory.h"
#include "common/quote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Up to a few names for a message. */
struct names {
    size_t count;
    char text[160];
};

enum { NAMED = 3 };

static void add_name(struct names *names, const char *name)
{
    if (names->count++ < NAMED)
        dl2_list_name(names->text, sizeof names->text, name);
}

/* Adds "; WHAT: NAMES and N more" to `text` where there are any. */
static void tell(char *text, size_t size, const char *what, const struct names *names)
{
    size_t used = strlen(text);
    char more[32] = "";
    if (names->count > NAMED)
        snprintf(more, sizeof more, " and %zu more", names->count - NAMED);
    if (names->count)
        snprintf(text + used, size - used, "%s%s: %s%s", used ? "; " : "", what, names->text, more);
}

/* Is it the last layer's, with another number of classes? */
static bool other_classes(const struct dl2_network *network, size_t index,
                          const struct dl2_safetensors_tensor *found)
{
    struct dl2_network_tensor tensor;
    dl2_network_tensor(network, index, &tensor);
    if (index + 2 < dl2_network_tensor_count(network) || found->dims != tensor.rank ||
        found->shape[0] == tensor.dims[0])
        return false;
    return tensor.rank == 1 || found->shape[1] == tensor.dims[1];
}

static bool passed_over(const char *name)
{
    static const char count[] = ".num_batches_tracked";
    static const char *const prefixes[] = {DL2_CHECKPOINT_MOMENTUM, DL2_CHECKPOINT_SECOND_MOMENT,
                                           DL2_CHECKPOINT_AVERAGE};
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return length >= sizeof count && strcmp(name + length - (sizeof count - 1), count) == 0;
}

/* A tensor of the network in the file: its average if `averages` and the file has it. Or NULL. */
static const struct dl2_safetensors_tensor *find_value(const struct dl2_safetensors *file,
                                                       const char *name, bool averages)
{
    char average[256];
    snprintf(average, sizeof average, DL2_CHECKPOINT_AVERAGE "%s", name);
    const struct dl2_safetensors_tensor *found =
        averages ? dl2_safetensors_find(file, average) : NULL;
    return found ? found : dl2_safetensors_find(file, name);
}

/* Does the file have what the network has, and no more? *fresh: all but the last layer. */
static int compare(const struct dl2_safetensors *file, const struct dl2_network *network,
                   bool averages, const struct dl2_safetensors_tensor **fresh,
                   struct dl2_error *error)
{
    struct names missing = {0}, shaped = {0}, unknown = {0};
    const size_t count = dl2_network_tensor_count(network);
    struct dl2_network_tensor tensor;
    *fresh = NULL;
    for (size_t i = 0; i < count; i++) {
        dl2_network_tensor(network, i, &tensor);
        const struct dl2_safetensors_tensor *found = find_value(file, tensor.name, averages);
        if (!found)
            add_name(&missing, tensor.name);
        else if (other_classes(network, i, found))
            *fresh = found;
        else if (!dl2_safetensors_has_shape(found, tensor.rank, tensor.dims))
            add_name(&shaped, tensor.name);
    }
    for (size_t k = 0; k < file->count; k++) {
        bool known = passed_over(file->tensors[k].name);
        for (size_t i = 0; i < count && !known; i++) {
            dl2_network_tensor(network, i, &tensor);
            known = strcmp(tensor.name, file->tensors[k].name) == 0;
        }
        if (!known)
            add_name(&unknown, file->tensors[k].name);
    }
    char text[700] = "";
    tell(text, sizeof text, "missing", &missing);
    tell(text, sizeof text, "of another shape", &shaped);
    tell(text, sizeof text, "unknown", &unknown);
    if (text[0])
        return dl2_error_set(error, DL2_ERR_FORMAT, "it does not hold the weights of %s here (%s)",
                             dl2_network_arch(network), text);
    return DL2_OK;
}

static int set_tensor(const struct dl2_safetensors *file, struct dl2_network *network, size_t index,
                      bool averages, struct dl2_error *error)
{
    struct dl2_network_tensor tensor;
    dl2_network_tensor(network, index, &tensor);
    float *values = dl2_alloc_aligned(tensor.count, sizeof *values);
    if (!values)
        return dl2_error_memory(error, "%s", tensor.name);
    int status = dl2_safetensors_copy_floats(file, find_value(file, tensor.name, averages)->name,
                                             tensor.rank, tensor.dims, values, error);
    if (status == DL2_OK)
        status = dl2_network_set(network, index, DL2_NETWORK_VALUE, values, error);
    free(values);
    return status;
}

static int set_all(const struct dl2_safetensors *file, struct dl2_network *network, bool averages,
                   char *note, size_t size, struct dl2_error *error)
{
    const struct dl2_safetensors_tensor *fresh;
    DL2_TRY(compare(file, network, averages, &fresh, error));
    size_t count = dl2_network_tensor_count(network) - (fresh ? 2 : 0);
    for (size_t i = 0; i < count; i++) { /* before anything is changed */
        struct dl2_network_tensor tensor;
        dl2_network_tensor(network, i, &tensor);
        DL2_TRY(dl2_safetensors_check_floats(find_value(file, tensor.name, averages), error));
    }
    for (size_t i = 0; i < count; i++)
        DL2_TRY(set_tensor(file, network, i, averages, error));
    if (fresh) {
        struct dl2_network_tensor tensor;
        dl2_network_tensor(network, count, &tensor);
        snprintf(note, size, "the last layer, %.*s, begins anew: it was for %zu classes, not %zu",
                 (int)(strlen(tensor.name) - strlen(".weight")), tensor.name, fresh->shape[0],
                 tensor.dims[0]);
    }
    return DL2_OK;
}

int dl2_weights_load(const char *path, struct dl2_network *network, bool averages, char *note,
                     size_t size, struct dl2_error *error)
{
    struct dl2_safetensors file;
    if (size)
        note[0] = '\0';
    DL2_TRY(dl2_safetensors_read(path, &file, error));
    int status = set_all(&file, network, averages, note, size, error);
    if (status < 0)
        dl2_error_prefix(error, "%s", path);
    dl2_safetensors_free(&file);
    return status;
}

int dl2_weights_add(struct dl2_safetensors *file, struct dl2_network *network, size_t index,
                    enum dl2_network_part part, const char *prefix, struct dl2_error *error)
{
    struct dl2_network_tensor tensor;
    float *values;
    dl2_network_tensor(network, index, &tensor);
    DL2_TRY(dl2_safetensors_add_floats(file, prefix, tensor.name, tensor.rank, tensor.dims, &values,
                                       error));
    return dl2_network_get(network, index, part, values, error);
}

int dl2_weights_save(const char *path, struct dl2_network *network, const json_t *texts,
                     struct dl2_error *error)
{
    struct dl2_safetensors file;
    const char *key;
    json_t *text;
    DL2_TRY(dl2_safetensors_init(&file, error));
    int status = DL2_OK;
    json_object_foreach((json_t *)texts, key, text)
    {
        if (status == DL2_OK)
            status = dl2_safetensors_set_text(&file, key, json_string_value(text), error);
    }
    for (size_t i = 0; i < dl2_network_tensor_count(network) && status == DL2_OK; i++)
        status = dl2_weights_add(&file, network, i, DL2_NETWORK_VALUE, "", error);
    if (status < 0)
        dl2_error_prefix(error, "%s", path);
    else
        status = dl2_safetensors_write(&file, path, error);
    dl2_safetensors_free(&file);
    return status;
}
