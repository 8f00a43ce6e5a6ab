/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/quote.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t dl2_utf8_length(const char *bytes)
{
    const unsigned char *text = (const unsigned char *)bytes;
    if (text[0] < 0x80)
        return 1;
    size_t length = text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2;
    if (text[0] < 0xc2 || text[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
        (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f))
        return 0;
    return length;
}

/* Bytes of the UTF-8 character at `text` that may be shown as it is; 0: none such. */
static size_t shown_length(const char *text)
{
    const unsigned char first = (unsigned char)text[0], second = (unsigned char)text[1];
    const bool control = first < 0x20 || first == 0x7f || (first == 0xc2 && second < 0xa0);
    return control ? 0 : dl2_utf8_length(text);
}

/* The characters that stand for a byte. */
static void escape(unsigned char byte, char out[8])
{
    static const char letters[] = "\n\r\t", names[] = "nrt";
    const char *letter = memchr(letters, byte, sizeof names - 1);
    if (letter)
        snprintf(out, 8, "\\%c", names[letter - letters]);
    else
        snprintf(out, 8, "\\x%02x", byte);
}

/* ---- Passwords in addresses: postgresql://USER:PASSWORD@HOST/...?password=... */

/* The end of the password that begins at `text`, which is within an address; NULL: none does. */
static const char *end_of_password(const char *start, const char *text)
{
    static const char word[] = "password=";
    const char *before = text;
    if (text > start && text[-1] == ':') { /* the user stands between "//" and ":" */
        while (before > start && before[-1] != '/')
            before--;
        const char *end = text + strcspn(text, "@/");
        const bool first = memchr(before, ':', (size_t)(text - before)) == text - 1;
        return *end == '@' && first && before - start >= 2 && before[-2] == '/' ? end : NULL;
    }
    if ((size_t)(text - start) < sizeof word ||
        strncmp(text - sizeof word + 1, word, sizeof word - 1) != 0)
        return NULL;
    return text + strcspn(text, "& \t\n'\"");
}

static const char *address_in(const char *text)
{
    static const char *const schemes[] = {"postgresql://", "postgres://", "http://", "https://",
                                          "s3://"};
    const char *first = NULL;
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        const char *one = strstr(text, schemes[i]);
        first = one && (!first || one < first) ? one : first;
    }
    return first;
}

char *dl2_hide_passwords(const char *text)
{
    const char *start = address_in(text);
    const size_t size = strlen(text) + 1;
    char *out = malloc(2 * size + 4); /* "***" may be longer than a password */
    size_t used = 0;
    if (!out)
        return NULL;
    while (*text) {
        const char *end = start && text > start ? end_of_password(start, text) : NULL;
        if (end && end > text) {
            memcpy(out + used, "***", 3);
            used += 3;
            text = end;
        } else {
            out[used++] = *text++;
        }
    }
    out[used] = '\0';
    return out;
}

char *dl2_quote(const char *text, char *out, size_t size)
{
    size_t used = 0;
    char *hidden = address_in(text) ? dl2_hide_passwords(text) : NULL;
    if (hidden)
        text = hidden;
    while (*text) {
        char escaped[8];
        const size_t shown = shown_length(text);
        if (!shown)
            escape((unsigned char)*text, escaped);
        const size_t length = shown ? shown : strlen(escaped);
        if (used + length + 1 > size)
            break;
        memcpy(out + used, shown ? text : escaped, length);
        used += length;
        text += shown ? shown : 1;
    }
    if (size)
        out[used] = '\0';
    free(hidden);
    return out;
}

void dl2_list_name(char *list, size_t size, const char *name)
{
    const size_t used = strlen(list);
    snprintf(list + used, size - used, "%s%s", used ? ", " : "", name);
}

bool dl2_ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), tail = strlen(end);
    return length > tail && !strcmp(text + length - tail, end);
}

bool dl2_is_one_of(const char *text, const char *const *words)
{
    while (*words && strcasecmp(text, *words) != 0)
        words++;
    return *words;
}

int dl2_compare_spans(const char *a, size_t length, const char *b, size_t other)
{
    const int order = memcmp(a, b, length < other ? length : other);
    return order ? order : (length > other) - (length < other);
}

int dl2_compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void dl2_csv_field(FILE *out, const char *text)
{
    if (!strpbrk(text, "\",\r\n")) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}
