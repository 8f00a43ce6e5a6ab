/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/device_name.h"

#include "common/quote.h"

#include <stdlib.h>
#include <string.h>

/* Is it "NAME" or "NAME:NUMBER" of this kind? */
static bool is_of_kind(const char *text, const char *kind, struct dl2_device_name *out)
{
    const size_t length = strlen(kind);
    if (strncmp(text, kind, length) != 0)
        return false;
    if (!text[length])
        return true;
    const char *digits = text + length + 1;
    const size_t count = strspn(digits, "0123456789");
    if (text[length] != ':' || !count || count > 4 || digits[count])
        return false;
    out->number = (unsigned)strtoul(digits, NULL, 10);
    out->numbered = true;
    return true;
}

int dl2_device_name_parse(const char *text, const char *(*known)(size_t index),
                          struct dl2_device_name *out, struct dl2_error *error)
{
    *out = (struct dl2_device_name){.automatic = !text || strcmp(text, "auto") == 0};
    if (out->automatic)
        return DL2_OK;
    char list[128] = "auto";
    for (const char *kind; (kind = known(out->kind)); out->kind++) {
        if (is_of_kind(text, kind, out))
            return DL2_OK;
        dl2_list_name(list, sizeof list, kind);
    }
    return dl2_error_set(error, DL2_ERR_ARGUMENT,
                         "there is no device '%s' in this build; there are: %s", text, list);
}
