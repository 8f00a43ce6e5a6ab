/* SPDX-License-Identifier: BSD-2-Clause */
#include "dataset/label_field.h"

#include "common/json.h"

#include <stdlib.h>
#include <string.h>

/* Takes the next name off a path, without its backslashes: false at the end. `name` has room for
 * all of the path. */
static bool take_name(const char **path, char *name)
{
    const char *at = *path;
    if (!*at)
        return false;
    at += *at == '.'; /* the dot behind the name before */
    while (*at && *at != '.') {
        at += *at == '\\';
        *name++ = *at++;
    }
    *name = '\0';
    *path = at;
    return true;
}

int dl2_label_field_check(const char *field, struct dl2_error *error)
{
    bool good = strlen(field) <= DL2_LABEL_FIELD_BYTES, starts = true;
    for (const char *at = field; good && *at; at++) {
        const bool escaped = *at == '\\';
        at += escaped;
        good = escaped ? *at == '.' || *at == '\\' : *at != '.' || !starts;
        starts = !escaped && *at == '.';
    }
    return good && !starts
               ? DL2_OK
               : dl2_error_set(error, DL2_ERR_ARGUMENT,
                               "'%.200s' is not the path of a field, as label, meta.class or "
                               "labels.0 (\\. is a dot in a name)",
                               field);
}

/* What a name leads to in a value, or NULL. */
static const json_t *step_into(const json_t *value, const char *name)
{
    const size_t digits = strspn(name, "0123456789");
    if (!json_is_array(value))
        return json_object_get(value, name);
    return digits && digits <= 9 && !name[digits] ? json_array_get(value, strtoul(name, NULL, 10))
                                                  : NULL;
}

/* A value that is no label, in words. */
static const char *describe(const json_t *value)
{
    return json_is_object(value)    ? "an object"
           : json_is_array(value)   ? "an array"
           : json_is_real(value)    ? "a real number"
           : json_is_null(value)    ? "null"
           : json_is_string(value)  ? "an empty text"
           : json_is_boolean(value) ? "a boolean"
                                    : "a negative number";
}

static int take_label(const json_t *value, enum dl2_field_kind *kind, char *text,
                      struct dl2_error *error)
{
    const char *name = json_string_value(value);
    if (name && strlen(name) > DL2_LABEL_BYTES)
        return dl2_error_set(error, DL2_ERR_FORMAT, "it holds a text of %zu bytes", strlen(name));
    if (name && *name) {
        strcpy(text, name);
        *kind = DL2_LABEL_NAME;
    } else if (json_is_integer(value) && json_integer_value(value) >= 0) {
        snprintf(text, DL2_LABEL_BYTES, "%lld", (long long)json_integer_value(value));
        *kind = DL2_LABEL_NUMBER;
    } else {
        return dl2_error_set(error, DL2_ERR_FORMAT, "it holds %s", describe(value));
    }
    return DL2_OK;
}

int dl2_label_field_read(const char *field, const uint8_t *json, size_t size,
                         enum dl2_field_kind *kind, char text[DL2_LABEL_BYTES + 1],
                         struct dl2_error *error)
{
    char name[DL2_LABEL_FIELD_BYTES + 1];
    json_error_t fault;
    *kind = DL2_LABEL_NONE;
    json_auto_t *all =
        json_loadb((const char *)json, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &fault);
    if (!all)
        return dl2_error_set(error, DL2_ERR_FORMAT, "the .json is damaged: line %d: %s", fault.line,
                             fault.text);
    const json_t *value = all;
    for (const char *path = field; value && take_name(&path, name);)
        value = step_into(value, name);
    return value ? take_label(value, kind, text, error)
                 : dl2_error_set(error, DL2_ERR_FORMAT, "it is missing");
}
