/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/csv.h"

#include <stdbool.h>
#include <string.h>

static void cut_blanks_at_end(char *text)
{
    for (size_t end = strlen(text); end && text[end - 1] == ' ';)
        text[--end] = '\0';
}

const char *dl2_csv_split(char *line, char separator, char **fields, int most, int *count)
{
    char *at = line;
    for (*count = 0; *count < most;) {
        at += strspn(at, " ");
        char *to = at;
        const bool quoted = *at == '"';
        fields[(*count)++] = to;
        if (quoted) {
            for (at++; *at && (*at != '"' || at[1] == '"'); at++) {
                at += *at == '"';
                *to++ = *at;
            }
            const char *closing = at;
            at += *at ? 1 + strspn(at + 1, " ") : 0;
            if (*closing != '"' || (*at && *at != separator))
                return "a quoted field does not end where it should";
        } else {
            at += strcspn(at, (const char[]){separator, '\0'});
            to = at;
        }
        const bool more = *at == separator && separator;
        *to = '\0';
        if (!quoted)
            cut_blanks_at_end(fields[*count - 1]);
        if (!more)
            return NULL;
        at++;
    }
    return "it has too many fields";
}
