/* SPDX-License-Identifier: BSD-2-Clause */
/* What stores and users give as text: a page of a listing, an error, a file of credentials, an
 * address. The first byte chooses. */
#include "remote/address.h"
#include "remote/credentials.h"
#include "remote/remote.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_listing(const uint8_t *text, size_t size)
{
    struct dl2_listing listing = {0};
    struct dl2_error error = DL2_ERROR_INIT;
    if (dl2_listing_read(text, size, &listing, &error) < 0 && !error.message[0])
        abort();
    for (size_t i = 0; i < listing.count; i++)
        if (listing.objects[i].key >= listing.strings.size ||
            listing.objects[i].etag >= listing.strings.size)
            abort();
    if (listing.strings.size && listing.strings.data[listing.strings.size - 1])
        abort();
    dl2_listing_free(&listing);
}

static void read_text(char *text, bool is_address)
{
    struct dl2_address address;
    struct dl2_error error = DL2_ERROR_INIT;
    bool there;
    if (!is_address) {
        free(dl2_ini_value(text, "default", "a", &there));
        return;
    }
    if (dl2_address_parse(text, &address, &error) < 0 ? !error.message[0] : !address.place)
        abort();
    if (address.path)
        free(dl2_address_object(&address, text));
    dl2_address_free(&address);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dl2_store_error store;
    if (size < 1)
        return 0;
    char *text = malloc(size); /* without the first byte, with a zero */
    if (!text)
        return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    switch (data[0] & 3) {
    case 0:
        read_listing(data + 1, size - 1);
        break;
    case 1:
        dl2_store_error_read(data + 1, size - 1, &store);
        break;
    default:
        read_text(text, data[0] & 1);
    }
    free(text);
    return 0;
}
