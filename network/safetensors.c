/* SPDX-License-Identifier: BSD-2-Clause */
#include "network/safetensors.h"
#include "common/file.h"
#include "device/element.h"

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* The checksum stands at a fixed place, so that it can cover the header that it stands in. */
#define CRC_PREFIX   "{\"__metadata__\":{\"crc32\":\""
#define CRC_OFFSET   (8 + sizeof CRC_PREFIX - 1)
#define CRC_DIGITS   8
#define CRC_EMPTY    "00000000"
#define METADATA_KEY "__metadata__"
#define CRC_KEY      "crc32"

static const struct {
    const char *name;
    size_t bytes;
} dtypes[] = {
    {"F32", 4}, {"F64", 8}, {"F16", 2}, {"BF16", 2}, {"I64", 8}, {"I32", 4},  {"I16", 2},
    {"I8", 1},  {"U64", 8}, {"U32", 4}, {"U16", 2},  {"U8", 1},  {"BOOL", 1},
};

/* 0 where the name is unknown. */
static size_t dtype_bytes(const char *name)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return dtypes[i].bytes;
    return 0;
}

static bool tensor_bytes(const char *dtype, unsigned dims, const size_t *shape, size_t *out)
{
    size_t bytes = dtype_bytes(dtype);
    if (bytes == 0)
        return false;
    for (unsigned i = 0; i < dims; i++)
        if (!dl2_size_mul(bytes, shape[i], &bytes))
            return false;
    *out = bytes;
    return true;
}

static struct dl2_safetensors_tensor *append(struct dl2_safetensors *content,
                                             struct dl2_error *error)
{
    if (content->count == content->capacity) {
        size_t capacity = content->capacity ? 2 * content->capacity : 64;
        void *grown = dl2_realloc(content->tensors, capacity, sizeof *content->tensors);
        if (!grown) {
            dl2_error_memory(error, "%zu tensors", capacity);
            return NULL;
        }
        content->tensors = grown;
        content->capacity = capacity;
    }
    struct dl2_safetensors_tensor *tensor = &content->tensors[content->count++];
    memset(tensor, 0, sizeof *tensor);
    return tensor;
}

int dl2_safetensors_init(struct dl2_safetensors *content, struct dl2_error *error)
{
    memset(content, 0, sizeof *content);
    content->metadata = json_object();
    if (!content->metadata)
        return dl2_error_memory(error, "weights");
    return DL2_OK;
}

void dl2_safetensors_free(struct dl2_safetensors *content)
{
    json_decref(content->metadata);
    json_decref(content->header);
    for (size_t i = 0; i < content->count; i++)
        free(content->tensors[i].owned);
    free(content->tensors);
    dl2_bytes_free(&content->file);
    memset(content, 0, sizeof *content);
}

int dl2_safetensors_set_text(struct dl2_safetensors *content, const char *key, const char *text,
                             struct dl2_error *error)
{
    if (strcmp(key, CRC_KEY) == 0 || json_object_get(content->metadata, key))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "the file already has '%s'", key);
    if (json_object_set_new(content->metadata, key, json_string(text)) != 0)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "'%s' of the file is not UTF-8", key);
    return DL2_OK;
}

int dl2_safetensors_add(struct dl2_safetensors *content, const char *name, const char *dtype,
                        unsigned dims, const size_t *shape, const void *data,
                        struct dl2_error *error)
{
    size_t bytes;
    if (dims > DL2_SAFETENSORS_MAX_DIMS || !tensor_bytes(dtype, dims, shape, &bytes))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "tensor '%s' has a type or shape that safetensors cannot hold", name);
    if (strcmp(name, METADATA_KEY) == 0 || dl2_safetensors_find(content, name))
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "the file already has a tensor '%s'", name);
    struct dl2_safetensors_tensor *tensor = append(content, error);
    if (!tensor)
        return DL2_ERR_MEMORY;
    tensor->name = name;
    tensor->dtype = dtype;
    tensor->dims = dims;
    for (unsigned i = 0; i < dims; i++)
        tensor->shape[i] = shape[i];
    tensor->data = data;
    tensor->bytes = bytes;
    return DL2_OK;
}

int dl2_safetensors_add_floats(struct dl2_safetensors *content, const char *prefix,
                               const char *name, unsigned dims, const size_t *shape, float **values,
                               struct dl2_error *error)
{
    const size_t length = strlen(prefix) + strlen(name) + 1;
    size_t bytes, all;
    char *memory = NULL;
    if (tensor_bytes("F32", dims, shape, &bytes) && dl2_size_add(bytes, length, &all))
        memory = dl2_alloc_aligned(all, 1);
    if (!memory)
        return dl2_error_memory(error, "%s%s", prefix, name);
    snprintf(memory + bytes, length, "%s%s", prefix, name);
    const int status =
        dl2_safetensors_add(content, memory + bytes, "F32", dims, shape, memory, error);
    if (status < 0)
        free(memory);
    else
        content->tensors[content->count - 1].owned = memory;
    *values = (float *)(void *)memory;
    return status;
}

/* The header as text to free(), or NULL when memory runs out; *data_bytes is what follows it. */
static char *format_header(const struct dl2_safetensors *content, size_t *data_bytes)
{
    json_t *header = json_object();
    json_t *metadata = json_object();
    bool good = header && metadata &&
                json_object_set_new(metadata, CRC_KEY, json_string(CRC_EMPTY)) == 0 &&
                json_object_update(metadata, content->metadata) == 0 &&
                json_object_set(header, METADATA_KEY, metadata) == 0;
    size_t end = 0;
    for (size_t i = 0; good && i < content->count; i++) {
        const struct dl2_safetensors_tensor *tensor = &content->tensors[i];
        size_t begin = end;
        json_t *shape = json_array();
        for (unsigned d = 0; d < tensor->dims; d++)
            json_array_append_new(shape, json_integer((json_int_t)tensor->shape[d]));
        good = dl2_size_add(begin, tensor->bytes, &end) && json_array_size(shape) == tensor->dims;
        json_t *entry = json_pack("{s:s, s:O, s:[I, I]}", "dtype", tensor->dtype, "shape", shape,
                                  "data_offsets", (json_int_t)begin, (json_int_t)end);
        json_decref(shape);
        good = json_object_set_new(header, tensor->name, entry) == 0 && good;
    }
    *data_bytes = end;
    char *text = good ? json_dumps(header, JSON_COMPACT) : NULL;
    json_decref(metadata);
    json_decref(header);
    return text;
}

/* The checksum of a file whose digits at CRC_OFFSET count as zeros. */
static uint32_t checksum(const uint8_t *data, size_t size)
{
    uLong crc = crc32_z(0, data, CRC_OFFSET);
    crc = crc32_z(crc, (const Bytef *)CRC_EMPTY, CRC_DIGITS);
    size_t rest = CRC_OFFSET + CRC_DIGITS;
    return (uint32_t)crc32_z(crc, data + rest, size - rest);
}

int dl2_safetensors_format(const struct dl2_safetensors *content, struct dl2_bytes *out,
                           struct dl2_error *error)
{
    size_t data_bytes;
    char *header = format_header(content, &data_bytes);
    if (!header)
        return dl2_error_memory(error, "a file's header");
    size_t length = strlen(header), padded = (length + 7) / 8 * 8, size;
    int status = DL2_OK;
    if (padded > DL2_SAFETENSORS_MAX_HEADER || !dl2_size_add(8 + padded, data_bytes, &size))
        status = dl2_error_set(error, DL2_ERR_LIMIT, "the header is too large");
    if (status == DL2_OK)
        status = dl2_bytes_resize(out, size, error);
    if (status == DL2_OK) {
        uint8_t *p = out->data;
        for (int i = 0; i < 8; i++)
            *p++ = (uint8_t)((uint64_t)padded >> (8 * i));
        memcpy(p, header, length);
        memset(p + length, ' ', padded - length);
        p += padded;
        for (size_t i = 0; i < content->count; i++) {
            if (content->tensors[i].bytes)
                memcpy(p, content->tensors[i].data, content->tensors[i].bytes);
            p += content->tensors[i].bytes;
        }
        char digits[CRC_DIGITS + 1];
        snprintf(digits, sizeof digits, "%08" PRIx32, checksum(out->data, size));
        memcpy(out->data + CRC_OFFSET, digits, CRC_DIGITS);
    }
    free(header);
    return status;
}

int dl2_safetensors_write(const struct dl2_safetensors *content, const char *path,
                          struct dl2_error *error)
{
    struct dl2_bytes file = DL2_BYTES_INIT;
    int status = dl2_safetensors_format(content, &file, error);
    if (status == DL2_OK)
        status = dl2_file_write(path, file.data, file.size, error);
    dl2_bytes_free(&file);
    return status;
}

static int check_checksum(struct dl2_safetensors *content, struct dl2_error *error)
{
    if (!json_object_get(content->metadata, CRC_KEY))
        return DL2_OK;
    const struct dl2_bytes *file = &content->file;
    if (file->size < CRC_OFFSET + CRC_DIGITS + 1 ||
        memcmp(file->data + 8, CRC_PREFIX, sizeof CRC_PREFIX - 1) != 0 ||
        file->data[CRC_OFFSET + CRC_DIGITS] != '"')
        return dl2_error_set(error, DL2_ERR_FORMAT, "its checksum is not where it should be");
    char digits[CRC_DIGITS + 1];
    snprintf(digits, sizeof digits, "%08" PRIx32, checksum(file->data, file->size));
    if (memcmp(file->data + CRC_OFFSET, digits, CRC_DIGITS) != 0)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "its checksum is wrong: the file was damaged after it was written");
    json_object_del(content->metadata, CRC_KEY);
    content->checksummed = true;
    return DL2_OK;
}

static bool read_size(const json_t *number, size_t *out)
{
    if (!json_is_integer(number) || json_integer_value(number) < 0)
        return false;
    *out = (size_t)json_integer_value(number);
    return true;
}

/* One tensor of the header; offsets are checked against the data's size here, gaps later. */
static int parse_tensor(struct dl2_safetensors *content, const char *name, const json_t *entry,
                        const uint8_t *data, size_t data_bytes, struct dl2_error *error)
{
    struct dl2_safetensors_tensor *tensor = append(content, error);
    if (!tensor)
        return DL2_ERR_MEMORY;
    const json_t *shape = json_object_get(entry, "shape");
    const json_t *offsets = json_object_get(entry, "data_offsets");
    tensor->name = name;
    tensor->dtype = json_string_value(json_object_get(entry, "dtype"));
    if (!tensor->dtype || dtype_bytes(tensor->dtype) == 0)
        return dl2_error_set(error, DL2_ERR_FORMAT, "tensor '%s' has no known dtype", name);
    if (!json_is_array(shape) || json_array_size(shape) > DL2_SAFETENSORS_MAX_DIMS)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "tensor '%s' has no shape, or more than %d dimensions", name,
                             DL2_SAFETENSORS_MAX_DIMS);
    tensor->dims = (unsigned)json_array_size(shape);
    for (unsigned i = 0; i < tensor->dims; i++)
        if (!read_size(json_array_get(shape, i), &tensor->shape[i]))
            return dl2_error_set(error, DL2_ERR_FORMAT, "tensor '%s' has a broken shape", name);
    size_t begin, end;
    if (json_array_size(offsets) != 2 || !read_size(json_array_get(offsets, 0), &begin) ||
        !read_size(json_array_get(offsets, 1), &end) || begin > end || end > data_bytes)
        return dl2_error_set(error, DL2_ERR_FORMAT, "tensor '%s' lies outside the file", name);
    if (!tensor_bytes(tensor->dtype, tensor->dims, tensor->shape, &tensor->bytes) ||
        tensor->bytes != end - begin)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "tensor '%s' has a shape that doesn't fit its %zu bytes", name,
                             end - begin);
    tensor->data = data + begin;
    return DL2_OK;
}

static int by_place(const void *a, const void *b)
{
    const struct dl2_safetensors_tensor *x = a, *y = b;
    if (x->data != y->data)
        return x->data < y->data ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

static int parse_tensors(struct dl2_safetensors *content, size_t header_bytes,
                         struct dl2_error *error)
{
    const uint8_t *data = content->file.data + 8 + header_bytes;
    size_t data_bytes = content->file.size - 8 - header_bytes;
    const char *name;
    json_t *entry;
    json_object_foreach(content->header, name, entry)
    {
        if (strcmp(name, METADATA_KEY) != 0)
            DL2_TRY(parse_tensor(content, name, entry, data, data_bytes, error));
    }
    if (content->count)
        qsort(content->tensors, content->count, sizeof *content->tensors, by_place);
    for (size_t i = 0; i < content->count; i++) {
        if (content->tensors[i].data != data)
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "there is a gap or an overlap before tensor '%s'",
                                 content->tensors[i].name);
        data += content->tensors[i].bytes;
    }
    if (data != content->file.data + content->file.size)
        return dl2_error_set(error, DL2_ERR_FORMAT, "there are bytes that belong to no tensor");
    return DL2_OK;
}

/* The length of the header, from the eight bytes before it. */
static uint64_t header_bytes_of(const uint8_t *data)
{
    uint64_t bytes;
    memcpy(&bytes, data, sizeof bytes);
    return le64toh(bytes);
}

static int parse(struct dl2_safetensors *content, struct dl2_error *error)
{
    const struct dl2_bytes *file = &content->file;
    if (file->size < 8)
        return dl2_error_set(error, DL2_ERR_FORMAT, "it is too short to be a safetensors file");
    const uint64_t header_bytes = header_bytes_of(file->data);
    if (header_bytes > DL2_SAFETENSORS_MAX_HEADER || header_bytes > file->size - 8)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "it is cut short, or no safetensors file at all");
    json_error_t reason;
    content->header = json_loadb((const char *)file->data + 8, (size_t)header_bytes,
                                 JSON_REJECT_DUPLICATES, &reason);
    if (!json_is_object(content->header))
        return dl2_error_set(error, DL2_ERR_FORMAT, "its header is no JSON object: %s",
                             content->header ? "something else" : reason.text);
    json_t *metadata = json_object_get(content->header, METADATA_KEY);
    content->metadata = metadata ? json_incref(metadata) : json_object();
    const char *key;
    json_t *text;
    if (!json_is_object(content->metadata))
        return dl2_error_set(error, DL2_ERR_FORMAT, "its metadata is no JSON object");
    json_object_foreach(content->metadata, key, text)
    {
        if (!json_is_string(text))
            return dl2_error_set(error, DL2_ERR_FORMAT, "its metadata '%s' is no text", key);
    }
    DL2_TRY(check_checksum(content, error));
    return parse_tensors(content, (size_t)header_bytes, error);
}

int dl2_safetensors_parse(struct dl2_bytes *file, struct dl2_safetensors *content,
                          struct dl2_error *error)
{
    memset(content, 0, sizeof *content);
    content->file = *file;
    *file = (struct dl2_bytes)DL2_BYTES_INIT;
    int status = parse(content, error);
    if (status < 0)
        dl2_safetensors_free(content);
    return status;
}

int dl2_safetensors_read(const char *path, struct dl2_safetensors *content, struct dl2_error *error)
{
    struct dl2_bytes file = DL2_BYTES_INIT;
    memset(content, 0, sizeof *content);
    DL2_TRY(dl2_file_read(path, DL2_SAFETENSORS_MAX_BYTES, &file, error));
    int status = dl2_safetensors_parse(&file, content, error);
    if (status < 0)
        dl2_error_prefix(error, "%s", path);
    return status;
}

/* The JSON header of an open file. */
static int read_header(FILE *file, json_t **out, struct dl2_error *error)
{
    uint8_t length[8];
    const uint64_t size =
        fread(length, 1, sizeof length, file) == sizeof length ? header_bytes_of(length) : 0;
    if (size == 0 || size > DL2_SAFETENSORS_MAX_HEADER)
        return dl2_error_set(error, DL2_ERR_FORMAT, "it is not a file of weights");
    char *text = dl2_calloc((size_t)size, 1);
    if (!text)
        return dl2_error_memory(error, "the head of a file of weights");
    const bool whole = fread(text, 1, (size_t)size, file) == size;
    *out = whole ? json_loadb(text, (size_t)size, 0, NULL) : NULL;
    free(text);
    return *out ? DL2_OK : dl2_error_set(error, DL2_ERR_FORMAT, "its head is damaged");
}

int dl2_safetensors_read_metadata(const char *path, json_t **out, struct dl2_error *error)
{
    json_auto_t *header = NULL;
    *out = NULL;
    FILE *file = fopen(path, "rbe");
    if (!file)
        return dl2_error_system(error, "can't open %s", path);
    const int status = read_header(file, &header, error);
    fclose(file);
    *out = json_incref(json_object_get(header, METADATA_KEY));
    return status;
}

const struct dl2_safetensors_tensor *dl2_safetensors_find(const struct dl2_safetensors *content,
                                                          const char *name)
{
    for (size_t i = 0; i < content->count; i++)
        if (strcmp(content->tensors[i].name, name) == 0)
            return &content->tensors[i];
    return NULL;
}

const char *dl2_safetensors_text(const struct dl2_safetensors *content, const char *key)
{
    return json_string_value(json_object_get(content->metadata, key));
}

/* "F32 [64, 3, 3, 3]" */
static void describe(char *text, size_t size, const char *dtype, unsigned dims, const size_t *shape)
{
    int used = snprintf(text, size, "%s [", dtype);
    for (unsigned i = 0; i < dims && used >= 0 && (size_t)used < size; i++)
        used += snprintf(text + used, size - (size_t)used, "%s%zu", i ? ", " : "", shape[i]);
    if (used >= 0 && (size_t)used < size)
        snprintf(text + used, size - (size_t)used, "]");
}

bool dl2_safetensors_has_shape(const struct dl2_safetensors_tensor *tensor, unsigned dims,
                               const size_t *shape)
{
    return tensor->dims == dims && memcmp(tensor->shape, shape, dims * sizeof *shape) == 0;
}

/* The tensor, where it is there with this shape, and this type where not NULL. */
static int find_fitting(const struct dl2_safetensors *content, const char *name, const char *dtype,
                        unsigned dims, const size_t *shape,
                        const struct dl2_safetensors_tensor **out, struct dl2_error *error)
{
    const struct dl2_safetensors_tensor *tensor = dl2_safetensors_find(content, name);
    char wanted[256], found[256] = "nothing";
    *out = tensor;
    if (tensor && (!dtype || strcmp(tensor->dtype, dtype) == 0) &&
        dl2_safetensors_has_shape(tensor, dims, shape))
        return DL2_OK;
    describe(wanted, sizeof wanted, dtype ? dtype : "F32", dims, shape);
    if (tensor)
        describe(found, sizeof found, tensor->dtype, tensor->dims, tensor->shape);
    return dl2_error_set(error, DL2_ERR_FORMAT, "tensor '%s' should be %s, and there is %s", name,
                         wanted, found);
}

int dl2_safetensors_copy(const struct dl2_safetensors *content, const char *name, const char *dtype,
                         unsigned dims, const size_t *shape, void *data, struct dl2_error *error)
{
    const struct dl2_safetensors_tensor *tensor;
    DL2_TRY(find_fitting(content, name, dtype, dims, shape, &tensor, error));
    if (tensor->bytes)
        memcpy(data, tensor->data, tensor->bytes);
    return DL2_OK;
}

int dl2_safetensors_check_floats(const struct dl2_safetensors_tensor *tensor,
                                 struct dl2_error *error)
{
    static const char *const known[] = {"F32", "F16", "BF16", "F64"};
    for (int i = 0; i < 4; i++)
        if (strcmp(tensor->dtype, known[i]) == 0)
            return DL2_OK;
    return dl2_error_set(error, DL2_ERR_FORMAT, "tensor '%s' is %s, no floating-point numbers",
                         tensor->name, tensor->dtype);
}

int dl2_safetensors_copy_floats(const struct dl2_safetensors *content, const char *name,
                                unsigned dims, const size_t *shape, float *data,
                                struct dl2_error *error)
{
    const struct dl2_safetensors_tensor *tensor;
    DL2_TRY(find_fitting(content, name, NULL, dims, shape, &tensor, error));
    DL2_TRY(dl2_safetensors_check_floats(tensor, error));
    if (strcmp(tensor->dtype, "F64") == 0) {
        for (size_t i = 0; i < tensor->bytes / 8; i++) {
            double value;
            memcpy(&value, tensor->data + 8 * i, sizeof value);
            data[i] = (float)value;
        }
        return DL2_OK;
    }
    enum dl2_element element = strcmp(tensor->dtype, "F32") == 0   ? DL2_ELEMENT_F32
                               : strcmp(tensor->dtype, "F16") == 0 ? DL2_ELEMENT_F16
                                                                   : DL2_ELEMENT_BF16;
    if (tensor->bytes)
        dl2_elements_to_floats(element, tensor->data, data,
                               tensor->bytes / dl2_element_size(element));
    return DL2_OK;
}
