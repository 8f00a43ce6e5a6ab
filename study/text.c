/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/text.h"

#include "common/file.h"
#include "common/option.h"
#include "common/process.h"
#include "common/quote.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void dl2_study_fail(int status, const char *format, ...)
{
    char text[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fflush(stdout);
    fprintf(stderr, "dl2-study: %s\n", DL2_SHOWN(text));
    exit(status);
}

const char *dl2_first_line(const char *text)
{
    return dl2_text("%.*s", (int)strcspn(text, "\n"), text);
}

void dl2_words_add_all(struct dl2_words *words, struct dl2_words more)
{
    for (size_t i = 0; i < more.count; i++)
        dl2_words_add(words, more.at[i]);
}

void dl2_words_more(struct dl2_words *words, ...)
{
    va_list args;
    va_start(args, words);
    for (const char *word; (word = va_arg(args, const char *));)
        dl2_words_add(words, word);
    va_end(args);
}

struct dl2_words dl2_words_split(const char *text)
{
    struct dl2_words words = {0};
    static const char blanks[] = " \t\r\n";
    for (text += strspn(text, blanks); *text; text += strspn(text, blanks)) {
        const size_t length = strcspn(text, blanks);
        dl2_words_add(&words, dl2_text("%.*s", (int)length, text));
        text += length;
    }
    return words;
}

struct dl2_words dl2_words_of_command(const char *text)
{
    struct dl2_words words = {0};
    char **list;
    if (!text[strspn(text, " \t\r\n")])
        return words;
    struct dl2_error error = DL2_ERROR_INIT;
    if (dl2_command_words(text, &list, &error) < 0)
        dl2_study_fail(DL2_EXIT_USAGE, "%s: %s", text, error.message);
    dl2_keep_block(list);
    for (; *list; list++)
        dl2_words_add(&words, *list);
    return words;
}

void dl2_words_add_command(struct dl2_words *words, const char *text)
{
    dl2_words_add_all(words, dl2_words_of_command(text));
}

const char *dl2_flags_value(const char *flags, const char *option)
{
    const struct dl2_words words = dl2_words_of_command(flags);
    const size_t length = strlen(option);
    const char *value = NULL;
    for (size_t i = 0; i < words.count; i++)
        if (strcmp(words.at[i], option) == 0 && i + 1 < words.count)
            value = words.at[i + 1];
        else if (strncmp(words.at[i], option, length) == 0 && words.at[i][length] == '=')
            value = words.at[i] + length + 1;
    return value;
}

bool dl2_words_have(struct dl2_words words, const char *word)
{
    for (size_t i = 0; i < words.count; i++)
        if (strcmp(words.at[i], word) == 0)
            return true;
    return false;
}

const char *dl2_words_join(struct dl2_words words, const char *separator)
{
    size_t size = 1;
    for (size_t i = 0; i < words.count; i++)
        size += strlen(words.at[i]) + strlen(separator);
    char *text = dl2_keep(size, 1, "a text"), *end = text;
    for (size_t i = 0; i < words.count; i++)
        end = stpcpy(stpcpy(end, i ? separator : ""), words.at[i]);
    return text;
}

void dl2_put(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, dl2_need(value)) < 0)
        dl2_need(NULL);
}

json_t *dl2_text_json(const char *text)
{
    json_t *json = json_string(text);
    if (!json)
        dl2_study_fail(DL2_EXIT_USAGE, "\"%s\" is not UTF-8, and a plan's texts are", text);
    return json;
}

json_t *dl2_words_json(struct dl2_words words)
{
    json_t *array = dl2_need(json_array());
    for (size_t i = 0; i < words.count; i++)
        if (json_array_append_new(array, dl2_text_json(words.at[i])) < 0)
            dl2_need(NULL);
    return array;
}

struct dl2_words dl2_words_of_json(const json_t *array)
{
    struct dl2_words words = {0};
    size_t i;
    json_t *word;
    json_array_foreach(array, i, word)
    {
        if (json_is_string(word))
            dl2_words_add(&words, json_string_value(word));
    }
    return words;
}

const char *dl2_shell_quote(const char *text)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";
    if (*text && strspn(text, plain) == strlen(text))
        return text;
    char *quoted = dl2_keep(4 * strlen(text) + 3, 1, "a text"), *end = quoted;
    *end++ = '\'';
    for (; *text; text++)
        if (*text == '\'')
            end = stpcpy(end, "'\\''");
        else
            *end++ = *text;
    *end = '\'';
    return quoted;
}

const char *dl2_shell_command(struct dl2_words words)
{
    struct dl2_words quoted = {0};
    for (size_t i = 0; i < words.count; i++)
        dl2_words_add(&quoted, dl2_shell_quote(words.at[i]));
    return dl2_words_join(quoted, " ");
}

const char *dl2_text_of_file(const char *path)
{
    struct dl2_bytes bytes = DL2_BYTES_INIT;
    const char *text = NULL;
    if (dl2_is_file(path) && dl2_file_read(path, 1 << 26, &bytes, NULL) == DL2_OK)
        text = dl2_text("%.*s", (int)bytes.size, (const char *)bytes.data);
    dl2_bytes_free(&bytes);
    return text;
}

void dl2_text_save(const char *path, const char *text)
{
    struct dl2_error error = DL2_ERROR_INIT;
    if (dl2_make_folder_of(path, &error) < 0 ||
        dl2_file_write(path, text, strlen(text), &error) < 0)
        dl2_study_fail(DL2_EXIT_FAILED, "%s", error.message);
}

const char *dl2_next_line(const char *text)
{
    text += strcspn(text, "\n");
    return text + (*text == '\n');
}
