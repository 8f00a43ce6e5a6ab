/* SPDX-License-Identifier: BSD-2-Clause */
/* The forms of settings' values, and what is said of a wrong one. */
#include "study/settings.h"

#include "common/process.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int dl2_setting_parse_one(const char *text, void *value, struct dl2_error *error)
{
    const struct dl2_words words = dl2_words_split(text);
    if (words.count != 1)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "one value is expected");
    *(const char **)value = words.at[0];
    return DL2_OK;
}

int dl2_setting_parse_names(const char *text, void *value, struct dl2_error *error)
{
    const struct dl2_words words = dl2_words_split(text);
    if (!words.count)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "it is empty");
    for (size_t i = 0; i < words.count; i++) {
        struct dl2_words others = {words.at + i + 1, words.count - i - 1};
        if (dl2_words_have(others, words.at[i]))
            return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s is there twice", words.at[i]);
    }
    *(const char **)value = dl2_words_join(words, " ");
    return DL2_OK;
}

int dl2_setting_parse_numbers(const char *text, void *value, struct dl2_error *error)
{
    DL2_TRY(dl2_setting_parse_names(text, value, error));
    const struct dl2_words words = dl2_words_split(text);
    for (size_t i = 0; i < words.count; i++) {
        const char *word = words.at[i];
        if (strspn(word, "0123456789") != strlen(word) || (word[0] == '0' && word[1]))
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "%s is not a whole number, or has zeros in front", word);
    }
    return DL2_OK;
}

/* "64x128x128". */
static bool is_patch(const char *text)
{
    for (int side = 0; side < 3; side++) {
        const size_t digits = strspn(text, "0123456789");
        if (!digits || *text == '0' || text[digits] != (side < 2 ? 'x' : '\0'))
            return false;
        text += digits + 1;
    }
    return true;
}

int dl2_setting_parse_size(const char *text, void *value, struct dl2_error *error)
{
    const struct dl2_words words = dl2_words_split(text);
    if (words.count != 1 || !strchr(words.at[0], 'x'))
        return dl2_setting_parse_numbers(text, value, error);
    *(const char **)value = words.at[0];
    return is_patch(words.at[0])
               ? DL2_OK
               : dl2_error_set(error, DL2_ERR_ARGUMENT,
                               "%s is no patch of a volume, such as 64x128x128", words.at[0]);
}

int dl2_setting_parse_times(const char *text, void *value, struct dl2_error *error)
{
    const struct dl2_words words = dl2_words_split(text);
    for (size_t i = 0; i < words.count; i++) {
        const char *word = words.at[i];
        const size_t digits = strspn(word, "0123456789");
        if (!digits || word[0] == '0' || !word[digits] || !strchr("smh", word[digits]) ||
            word[digits + 1])
            return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s is no time such as 90s, 30m or 2h",
                                 word);
    }
    *(const char **)value = dl2_words_join(words, " ");
    return DL2_OK;
}

double dl2_setting_seconds(const char *time)
{
    char *unit;
    const double number = strtod(time, &unit);
    return number * (*unit == 'h' ? 3600 : *unit == 'm' ? 60 : 1);
}

int dl2_setting_parse_command(const char *text, void *value, struct dl2_error *error)
{
    char **words;
    if (text[strspn(text, " \t\r\n")]) {
        DL2_TRY(dl2_command_words(text, &words, error));
        free(words);
    }
    *(const char **)value = text;
    return DL2_OK;
}

void dl2_setting_refuse(const char *name, const char *value, const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    dl2_study_fail(DL2_EXIT_USAGE, "%s is \"%s\": %s", name, value ? value : "", text);
}

const char *dl2_setting_variable(const char *option)
{
    char name[64];
    size_t i = 0;
    for (; option[i] && i < sizeof name - 1; i++)
        name[i] = option[i] == '-' ? '_' : (char)toupper((unsigned char)option[i]);
    name[i] = '\0';
    return dl2_text("%s", name);
}

int dl2_setting_parse_yes_or_no(const char *text, void *value, struct dl2_error *error)
{
    if (strcmp(text, "yes") != 0 && strcmp(text, "no") != 0)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "it is yes or no");
    *(const char **)value = text;
    return DL2_OK;
}
