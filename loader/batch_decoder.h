/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The seam to decoders of whole batches: a graphics card. Each batch slot of the loader has a slot
 * of the decoder behind it. Workers put samples into its places: an encoded image, or pixels where
 * the processors decoded it. When all places are filled the slot is finished. Then the batch lies
 * in the decoder's memory, uint8 NHWC, as the loader would have made it: the same rectangle,
 * antialiased triangle filter, colors and flip (pixels/resize.h). Only the decoding itself may
 * round differently.
 *
 * The caller of dl2_loader_create() chooses a decoder, which must outlive the loader. Images that a
 * decoder refuses are decoded by the processors, which decide whether a file is corrupt.
 *
 * Threads: begin, add and pixels while the slot is being filled, for different places at once;
 * finish alone on a slot, but for different slots at once; the rest at any time. The calling
 * thread's current card stays what it was, except in finish.
 */
#ifndef DL2_LOADER_BATCH_DECODER_H
#define DL2_LOADER_BATCH_DECODER_H

#include "codec/codec.h"
#include "common/error.h"
#include "loader/loader_config.h"
#include "pixels/resize.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct dl2_batch_decoder_class;
struct dl2_decode_slot; /* the decoder's part of a batch slot; each decoder defines its own */

/* First member of every decoder's context. */
struct dl2_batch_decoder {
    const struct dl2_batch_decoder_class *ops;
};

/* An image to decode. The memory that it points at is the caller's and is not used after add(). */
struct dl2_encoded {
    struct dl2_crop_bytes file;
    /* As in dl2_resize_raster(), in pixels of the file, but for shifts. */
    struct dl2_box limit, box;
    bool flip;
};

/* Figures since the decoder was opened. */
struct dl2_batch_decoder_stats {
    uint64_t images, bytes; /* decoded images, and their encoded bytes */
    uint64_t pixels;        /* decoded pixels: of the regions, where only regions were decoded */
    uint64_t refused;       /* images that it took and could not decode */
    const char *refusal;    /* why the first of those was refused, static; NULL: there is none */
    uint64_t by_engines;    /* images decoded by the card's JPEG engines, not by its cores */
    /* The decoder's seconds, summed over batches that may have overlapped: for decoding, and for
     * the steps from decoded images to the pixels of a batch. */
    double decode, transform;
};

struct dl2_batch_decoder_class {
    const char *name; /* for reports: "nvjpeg" */
    /* All slots must have been freed before. NULL is allowed. */
    void (*close)(struct dl2_batch_decoder *decoder);
    /* Describes the card and its decoder for reports: a new object, which the caller frees. */
    json_t *(*describe)(const struct dl2_batch_decoder *decoder);

    /* Can it decode such a file? */
    bool (*takes)(const struct dl2_batch_decoder *decoder, const struct dl2_coded_frame *frame);

    /* Allocates a slot for a batch of `samples` images of side x side x channels. */
    int (*slot_create)(struct dl2_batch_decoder *decoder, unsigned samples, unsigned side,
                       unsigned channels, struct dl2_decode_slot **out, struct dl2_error *error);
    void (*slot_free)(struct dl2_decode_slot *slot); /* NULL is allowed */
    /* The pixels of a finished batch, in the decoder's memory, valid until the next begin. */
    uint8_t *(*images)(struct dl2_decode_slot *slot);

    /* Empties all places. */
    void (*begin)(struct dl2_decode_slot *slot);
    /* Copies an image to place n. The only error is lack of memory. */
    int (*add)(struct dl2_decode_slot *slot, unsigned n, const struct dl2_encoded *image,
               struct dl2_error *error);
    /* Memory for pixels of place n that the processors decode: side x side x channels bytes of this
     * machine's memory, to be filled before finish. */
    uint8_t *(*pixels)(struct dl2_decode_slot *slot, unsigned n);
    /*
     * Decodes what was put into places 0 .. count-1 since begin or the last finish, and waits for
     * it. If it can't decode place n, refused[n] becomes true (it is never set to false), and the
     * place is empty again. After an error the decoder can't be used any more.
     */
    int (*finish)(struct dl2_decode_slot *slot, unsigned count, bool *refused,
                  struct dl2_error *error);

    /*
     * For a batch that the caller's own work on the card reads, before it is released: what is
     * written in its place later waits for all that `stream` holds now, and nobody waits here.
     * `images` is that of a finished batch; `stream` a cudaStream_t of the decoder's card as a
     * number, 1 for the legacy default stream.
     */
    void (*write_after)(struct dl2_batch_decoder *decoder, const uint8_t *images, uintptr_t stream);

    /* Copies pixels of a batch to this machine's memory, and waits for it. */
    int (*download)(struct dl2_batch_decoder *decoder, void *to, const uint8_t *images,
                    size_t bytes, struct dl2_error *error);
    void (*get_stats)(const struct dl2_batch_decoder *decoder,
                      struct dl2_batch_decoder_stats *stats);
};

/* Which part of the card decodes. */
enum dl2_decode_engine {
    DL2_DECODE_AUTO,    /* the engines, if the card has some and they can decode the image */
    DL2_DECODE_ENGINES, /* DL2_ERR_UNSUPPORTED if the card has none */
    DL2_DECODE_CORES
};

/* Who decodes: the processors alone; the decoder, what it can; or both, by their speeds. */
enum dl2_decode_mode { DL2_DECODE_CPU, DL2_DECODE_GPU, DL2_DECODE_HYBRID };

/* The decoder's input: files, of which it decodes the whole or the region under the crop; or small
 * files made of the part under the crop, where the codec can make them. */
enum dl2_decode_input { DL2_DECODE_PLAIN, DL2_DECODE_REGION, DL2_DECODE_SPLICED };

/* The choice that users make by options. */
struct dl2_decode_choice {
    enum dl2_decode_mode mode;
    enum dl2_decode_input input;
    enum dl2_decode_engine engine;
};

struct dl2_batch_decoder_options {
    unsigned card;
    enum dl2_decode_engine engine;
    bool regions;     /* decode only what is under the limit, where that is possible */
    unsigned threads; /* of this machine that may work on one batch; 0: 1 */
    size_t memory;    /* bytes of decoded images at once; 0: 1 GiB. One image always fits */
};

/* Opens the best decoder in this build. DL2_ERR_UNSUPPORTED without a decoder or a card. */
int dl2_batch_decoder_open(const struct dl2_batch_decoder_options *options,
                           struct dl2_batch_decoder **out, struct dl2_error *error);
/* A DL2_OPTION_PARSE: the number of the card that `text` names (common/device_name.h), into an
 * unsigned. */
int dl2_batch_decoder_card(const char *text, void *card, struct dl2_error *error);
void dl2_batch_decoder_close(struct dl2_batch_decoder *decoder);

/* DL2_ERR_ARGUMENT if the choice makes no sense, DL2_ERR_UNSUPPORTED if this build can't do it. */
int dl2_decode_choice_check(const struct dl2_decode_choice *choice, struct dl2_error *error);
/* Opens the decoder for a choice (NULL for the processors alone) and sets it in the configuration,
 * whose number of workers decides the decoder's threads. */
int dl2_decode_choice_open(const struct dl2_decode_choice *choice, unsigned card,
                           struct dl2_loader_config *config, struct dl2_batch_decoder **out,
                           struct dl2_error *error);

#endif
