/* SPDX-License-Identifier: BSD-2-Clause */
#include "transcode/clip_packer.h"

#include <stdlib.h>
#include <string.h>

static void forget_clip(struct dl2_clip_packer *packer)
{
    packer->clip.count = packer->count = 0;
    dl2_sidecars_free(&packer->sidecars);
}

void dl2_clip_packer_begin(struct dl2_clip_packer *packer, const struct dl2_dataset *dataset,
                           size_t image)
{
    struct dl2_sample facts;
    forget_clip(packer);
    dl2_dataset_image(dataset, image, &facts);
    packer->clip = dl2_dataset_clip_of(dataset, image, &packer->key);
    packer->label = facts.label;
}

int dl2_clip_packer_add(struct dl2_clip_packer *packer, const char *extension,
                        struct dl2_bytes *bytes, struct dl2_error *error)
{
    if (packer->count == packer->capacity) {
        DL2_TRY(dl2_grow(&packer->bytes, packer->capacity, sizeof *packer->bytes, error));
        DL2_TRY(dl2_grow(&packer->frames, packer->capacity, sizeof *packer->frames, error));
        packer->bytes[packer->capacity++] = (struct dl2_bytes)DL2_BYTES_INIT;
    }
    struct dl2_bytes *own = &packer->bytes[packer->count];
    dl2_bytes_swap(own, bytes);
    packer->frames[packer->count++] = (struct dl2_writer_frame){extension, own->data, own->size};
    return DL2_OK;
}

int dl2_clip_packer_add_sidecars(struct dl2_clip_packer *packer, size_t image,
                                 const struct dl2_sidecars *sidecars, struct dl2_error *error)
{
    for (size_t i = 0; image != packer->clip.first && i < sidecars->count; i++)
        dl2_left_out_count(&packer->left_out, sidecars->items[i].extension);
    if (image != packer->clip.first)
        return DL2_OK;
    dl2_sidecars_free(&packer->sidecars);
    for (size_t i = 0; i < sidecars->count; i++) {
        const struct dl2_sidecar *from = &sidecars->items[i];
        struct dl2_sidecar *to;
        DL2_TRY(dl2_sidecars_add(&packer->sidecars, from->extension, from->bytes.size, &to, error));
        if (from->bytes.size)
            memcpy(to->bytes.data, from->bytes.data, from->bytes.size);
    }
    return DL2_OK;
}

char *dl2_clip_packer_left_out(const struct dl2_clip_packer *packer)
{
    return dl2_left_out_message(&packer->left_out, "left out beside frames",
                                "a packed clip has what lies beside its first frame");
}

int dl2_clip_packer_write(struct dl2_clip_packer *packer, struct dl2_writer *writer,
                          struct dl2_error *error)
{
    const int status = dl2_writer_add_clip(writer, packer->key, packer->label, packer->frames,
                                           packer->count, &packer->sidecars, error);
    forget_clip(packer);
    return status;
}

void dl2_clip_packer_free(struct dl2_clip_packer *packer)
{
    forget_clip(packer);
    for (size_t i = 0; i < packer->capacity; i++)
        dl2_bytes_free(&packer->bytes[i]);
    dl2_left_out_free(&packer->left_out);
    free(packer->bytes);
    free(packer->frames);
    *packer = (struct dl2_clip_packer){0};
}
