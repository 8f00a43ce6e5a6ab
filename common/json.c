/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/json.h"

#include "common/file.h"
#include "common/memory.h"
#include "common/quote.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int dl2_json_load(const char *path, const char *schema, json_t **out, struct dl2_error *error)
{
    struct dl2_bytes bytes = DL2_BYTES_INIT;
    int status = dl2_file_read(path, DL2_JSON_MAX_BYTES, &bytes, error);
    if (status < 0)
        return status;
    if (bytes.size == 0) {
        dl2_bytes_free(&bytes);
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s:1:0: not valid JSON: it is empty", path);
    }
    json_error_t why;
    json_t *json = json_loadb((const char *)bytes.data, bytes.size, JSON_REJECT_DUPLICATES, &why);
    dl2_bytes_free(&bytes);
    if (!json)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s:%d:%d: not valid JSON: %s", path, why.line,
                             why.column, why.text);
    if (schema) {
        const char *found = dl2_json_get_text(json, "schema", NULL);
        if (!found || strcmp(found, schema) != 0) {
            status = dl2_error_set(error, DL2_ERR_FORMAT, "%s: its schema is %s, not %s", path,
                                   found ? found : "not given", schema);
            json_decref(json);
            return status;
        }
    }
    *out = json;
    return DL2_OK;
}

int dl2_json_append(struct dl2_bytes *out, const json_t *json, struct dl2_error *error)
{
    char *text = json_dumps(json, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(17));
    int status = text ? dl2_bytes_append(out, text, strlen(text), error)
                      : dl2_error_memory(error, "a JSON file");
    if (status == DL2_OK)
        status = dl2_bytes_append(out, "\n", 1, error);
    free(text);
    return status;
}

int dl2_json_save(const char *path, const json_t *json, struct dl2_error *error)
{
    struct dl2_bytes bytes = DL2_BYTES_INIT;
    int status = dl2_json_append(&bytes, json, error);
    if (status == DL2_OK)
        status = dl2_file_write(path, bytes.data, bytes.size, error);
    else
        dl2_error_prefix(error, "%s", path);
    dl2_bytes_free(&bytes);
    return status;
}

int dl2_json_save_new(const char *path, json_t *json, struct dl2_error *error)
{
    const int status = dl2_json_save(path, json, error);
    json_decref(json);
    return status;
}

json_t *dl2_json_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *dl2_json_text(const char *text)
{
    char *hidden = strstr(text, "://") ? dl2_hide_passwords(text) : NULL;
    json_t *json = json_string(hidden ? hidden : text);
    free(hidden);
    if (json)
        return json;
    size_t size = strlen(text);
    char *mended = dl2_calloc(size + 1, 3);
    if (!mended)
        return NULL;
    char *end = mended;
    for (const char *p = text; *p;) {
        size_t length = dl2_utf8_length(p);
        if (length) {
            memcpy(end, p, length);
            end += length;
            p += length;
        } else {
            memcpy(end, "\xef\xbf\xbd", 3);
            end += 3;
            p++;
        }
    }
    json = json_string(mended);
    free(mended);
    return json;
}

bool dl2_json_add(json_t *object, json_t *more)
{
    const bool added = json_object_update(object, more) == 0;
    json_decref(more);
    return added;
}

double dl2_json_get_real(const json_t *object, const char *key, double fallback)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : fallback;
}

long long dl2_json_get_integer(const json_t *object, const char *key, long long fallback)
{
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) ? json_integer_value(value) : fallback;
}

const char *dl2_json_get_text(const json_t *object, const char *key, const char *fallback)
{
    const json_t *value = json_object_get(object, key);
    return json_is_string(value) ? json_string_value(value) : fallback;
}

bool dl2_json_lists(const json_t *array, const char *text)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        const char *element = json_string_value(json_array_get(array, i));
        if (element && strcmp(element, text) == 0)
            return true;
    }
    return false;
}
