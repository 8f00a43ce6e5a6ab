/* SPDX-License-Identifier: BSD-2-Clause */
#include "dataset/packed/label_field.h"

#include "common/file.h"
#include "common/json.h"
#include "common/machine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* As isspace() in the C locale. */
static bool is_blank(char letter)
{
    return letter == ' ' || (letter >= '\t' && letter <= '\r');
}

void dl2_label_trim(const char **text, size_t *size)
{
    const size_t mark = dl2_text_mark(*text, *size);
    *text += mark;
    *size -= mark;
    for (; *size && is_blank(**text); ++*text)
        --*size;
    while (*size && is_blank((*text)[*size - 1]))
        --*size;
}

int64_t dl2_label_number(const char *text)
{
    size_t size = strlen(text);
    dl2_label_trim(&text, &size);
    if (size > 2 && text[0] == '[' && text[size - 1] == ']') { /* as Python prints an array */
        text++;
        size -= 2;
        dl2_label_trim(&text, &size);
    }
    const char *at = text, *const end = text + size;
    int64_t value = 0;
    at += size && (*at == '-' || *at == '+');
    const char *digits = at;
    for (; at < end && *at >= '0' && *at <= '9'; at++)
        value = value > (INT64_MAX - 9) / 10 ? INT64_MAX : 10 * value + (*at - '0');
    const bool any = at > digits;
    if (any && at < end && *at == '.')
        for (at++; at < end && *at == '0';)
            at++;
    return !size                       ? DL2_LABEL_ABSENT
           : !any || at < end          ? DL2_LABEL_WORD
           : *text == '-' && value > 0 ? DL2_LABEL_ABSENT
                                       : value;
}

/* What a class that is only known by its number takes in memory: its name, here and in an index,
 * and what those who open a dataset count by class. */
enum { NUMBERED_CLASS_BYTES = 128 };

void dl2_label_count(struct dl2_label_census *census, const char *text)
{
    const int64_t number = dl2_label_number(text);
    if (number == DL2_LABEL_WORD && !census->word)
        census->word = text;
    if (number >= 0 && !census->number)
        census->number = text;
    if (number <= census->largest)
        return;
    census->largest = number;
    census->top = text;
}

int dl2_label_check_largest(const struct dl2_label_census *census, const char *key,
                            struct dl2_error *error)
{
    const unsigned long long memory = dl2_memory_available();
    if (census->largest < INT32_MAX &&
        (!memory || census->largest < (int64_t)(memory / 2 / NUMBERED_CLASS_BYTES)))
        return DL2_OK;
    return dl2_error_set(error, DL2_ERR_LIMIT,
                         "label %.200s of %s: classes up to this number do not fit into memory; "
                         "number the classes from 0 on, or give them names",
                         census->top, key);
}

int dl2_label_remark_words(const struct dl2_label_census *census, const char *number_key,
                           const char *word_key, char **remark, struct dl2_error *error)
{
    char *end;
    const char *word = census->word;
    if (census->number)
        return dl2_format_more(remark, error,
                               "labels are numbers, such as %.200s of %s, and words, such as "
                               "'%.200s' of %s, so all of them are names of classes, numbered as "
                               "sorted; mend the words to keep the numbers",
                               census->number, number_key, word, word_key);
    if (*word != '[' && (strtod(word, &end), end == word || *end))
        return DL2_OK;
    return dl2_format_more(remark, error,
                           "labels such as '%.200s' of %s are no whole numbers, so each of their "
                           "values is the name of a class",
                           word, word_key);
}

int dl2_label_remark_absent(size_t absent, size_t all, const char *key, char **remark,
                            struct dl2_error *error)
{
    return absent ? dl2_format_more(remark, error,
                                    "labels below 0 mean no class: %zu of %zu samples have one, "
                                    "such as %s",
                                    absent, all, key)
                  : DL2_OK;
}

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
    return json_is_object(value)   ? "an object"
           : json_is_array(value)  ? "an array"
           : json_is_real(value)   ? "a number that is not whole"
           : json_is_null(value)   ? "null or NaN"
           : json_is_string(value) ? "an empty text"
                                   : "a boolean";
}

int dl2_label_of_json(const json_t *value, enum dl2_field_kind *kind,
                      char text[DL2_LABEL_BYTES + 1], struct dl2_error *error)
{
    const json_t *one = json_array_size(value) == 1 ? json_array_get(value, 0) : value;
    const double number = json_number_value(one);
    const char *name = json_string_value(value);
    size_t size = name ? strlen(name) : 0;
    *kind = DL2_LABEL_NONE;
    if (name)
        dl2_label_trim(&name, &size);
    if (size > DL2_LABEL_BYTES)
        return dl2_error_set(error, DL2_ERR_FORMAT, "it holds a text of %zu bytes", size);
    if (size) {
        memcpy(text, name, size);
        text[size] = '\0';
        *kind = DL2_LABEL_NAME;
    } else if (json_is_integer(one)) {
        snprintf(text, DL2_LABEL_BYTES, "%" JSON_INTEGER_FORMAT, json_integer_value(one));
        *kind = DL2_LABEL_NUMBER;
    } else if (json_is_real(one) && number == floor(number) && fabs(number) < 1e15) {
        snprintf(text, DL2_LABEL_BYTES, "%.0f", number);
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
    json_auto_t *all = dl2_json_parse(json, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &fault);
    if (!all)
        return dl2_error_set(error, DL2_ERR_FORMAT, "the .json is damaged: line %d: %s", fault.line,
                             fault.text);
    const json_t *value = all;
    for (const char *path = field; value && take_name(&path, name);)
        value = step_into(value, name);
    return value ? dl2_label_of_json(value, kind, text, error)
                 : dl2_error_set(error, DL2_ERR_FORMAT, "it is missing");
}
