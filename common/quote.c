/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/quote.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Bytes of the UTF-8 character at `text` that may be shown as it is; 0: none such. */
static size_t shown_length(const unsigned char *text)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (*text < 0x80)
        return *text >= 0x20 && *text != 0x7f;
    const size_t length = *text >= 0xf0 ? 4 : *text >= 0xe0 ? 3 : 2;
    if (*text < 0xc2 || *text > 0xf4)
        return 0;
    uint32_t code = *text & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (text[i] & 0x3f);
    }
    if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff) ||
        (code >= 0x80 && code <= 0x9f))
        return 0;
    return length;
}

/* The characters that stand for a byte. */
static void escape(unsigned char byte, char out[8])
{
    switch (byte) {
    case '\n':
        strcpy(out, "\\n");
        break;
    case '\r':
        strcpy(out, "\\r");
        break;
    case '\t':
        strcpy(out, "\\t");
        break;
    default:
        snprintf(out, 8, "\\x%02x", byte);
    }
}

char *dl2_quote(const char *text, char *out, size_t size)
{
    size_t used = 0;
    while (*text) {
        char escaped[8];
        const size_t shown = shown_length((const unsigned char *)text);
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
    return out;
}

void dl2_list_name(char *list, size_t size, const char *name)
{
    const size_t used = strlen(list);
    snprintf(list + used, size - used, "%s%s", used ? ", " : "", name);
}
