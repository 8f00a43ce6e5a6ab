/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/json.h"

#include "common/file.h"
#include "common/memory.h"
#include "common/quote.h"
#include "common/scope.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Copies a text with null in the place of numbers that are none: its new size. `out` has room for
 * four bytes for every three. */
static size_t replace_numbers(const char *text, size_t size, char *out)
{
    static const char *const words[] = {"NaN", "-NaN", "Infinity", "-Infinity"};
    const char *const end = text + size;
    char *to = out;
    bool in_string = false;
    while (text < end) {
        size_t length = 0;
        for (size_t i = 0; !in_string && i < sizeof words / sizeof *words && !length; i++)
            if ((size_t)(end - text) >= strlen(words[i]) &&
                !memcmp(text, words[i], strlen(words[i])))
                length = strlen(words[i]);
        if (length) {
            to = mempcpy(to, "null", 4);
            text += length;
            continue;
        }
        in_string ^= *text == '"';
        if (in_string && *text == '\\' && text + 1 < end)
            *to++ = *text++;
        *to++ = *text++;
    }
    return (size_t)(to - out);
}

json_t *dl2_json_parse(const void *text, size_t size, size_t flags, json_error_t *why)
{
    json_error_t own;
    const size_t mark = dl2_text_mark(text, size);
    const char *start = (const char *)text + mark;
    json_t *json = json_loadb(start, size - mark, flags, why ? why : &own);
    DL2_AUTO_FREE char *mended = json ? NULL : dl2_calloc(size / 3 + 1, 4);
    if (mended)
        json = json_loadb(mended, replace_numbers(start, size - mark, mended), flags, &own);
    return json;
}

int dl2_json_load(const char *path, const char *schema, json_t **out, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes bytes = DL2_BYTES_INIT;
    DL2_TRY(dl2_file_read(path, DL2_JSON_MAX_BYTES, &bytes, error));
    if (bytes.size == 0)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s:1:0: not valid JSON: it is empty", path);
    json_error_t why;
    json_auto_t *json = dl2_json_parse(bytes.data, bytes.size, JSON_REJECT_DUPLICATES, &why);
    if (!json)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s:%d:%d: not valid JSON: %s", path, why.line,
                             why.column, why.text);
    const char *found = dl2_json_get_text(json, "schema", "not given");
    if (schema && strcmp(found, schema) != 0)
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s: its schema is %s, not %s", path, found,
                             schema);
    *out = json_incref(json);
    return DL2_OK;
}

int dl2_json_append(struct dl2_bytes *out, const json_t *json, struct dl2_error *error)
{
    DL2_AUTO_FREE char *text =
        json_dumps(json, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(17));
    DL2_TRY(text ? dl2_bytes_append(out, text, strlen(text), error)
                 : dl2_error_memory(error, "a JSON file"));
    return dl2_bytes_append(out, "\n", 1, error);
}

int dl2_json_save(const char *path, const json_t *json, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes bytes = DL2_BYTES_INIT;
    const int status = dl2_json_append(&bytes, json, error);
    if (status < 0)
        dl2_error_prefix(error, "%s", path);
    return status < 0 ? status : dl2_file_write(path, bytes.data, bytes.size, error);
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
    DL2_AUTO_FREE char *hidden = strstr(text, "://") ? dl2_hide_passwords(text) : NULL;
    json_t *json = json_string(hidden ? hidden : text);
    DL2_AUTO_FREE char *mended = json ? NULL : dl2_calloc(strlen(text) + 1, 3);
    char *end = mended;
    for (const char *p = text; mended && *p;) {
        const size_t length = dl2_utf8_length(p);
        end = mempcpy(end, length ? p : "\xef\xbf\xbd", length ? length : 3);
        p += length ? length : 1;
    }
    return mended ? json_string(mended) : json;
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
