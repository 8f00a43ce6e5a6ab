/*
 * Decoding of whole batches elsewhere: on a graphics card. What the loader's workers have read and
 * looked at goes encoded into the places of a slot, or as finished pixels where the processors made
 * them; when all places are taken the slot is finished, and the batch lies in the decoder's memory,
 * uint8 NHWC, as the loader would have made it: the same rectangle, antialiased triangle filter,
 * colours and flip (pixels/resize.h); only the decoding itself may round otherwise.
 *
 * A decoder is chosen by the caller of dl2_loader_create() and outlives the loader. The loader
 * takes images from it, and refused ones to the processors, whose word on what is bad is the last.
 *
 * Threads: begin, add and pixels while the slot is being filled, for different places at once;
 * finish alone on a slot, of different slots at once; the rest at any time.
 */
#ifndef DL2_LOADER_BATCH_DECODER_H
#define DL2_LOADER_BATCH_DECODER_H

#include "codec/jpeg/jpeg_plain.h"
#include "common/error.h"
#include "loader/loader.h"
#include "pixels/resize.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct dl2_batch_decoder_class;
struct dl2_decode_slot; /* each decoder has its own struct behind this name */

/* First member of every decoder's context. */
struct dl2_batch_decoder {
    const struct dl2_batch_decoder_class *ops;
};

/* An image to decode. What it points at is the caller's and may go after add(). */
struct dl2_encoded {
    const uint8_t *data;
    size_t size;
    struct dl2_jpeg_plain jpeg;
    struct dl2_box limit, box; /* as dl2_resize_raster() has them, in pixels of this JPEG */
    bool flip;
    /*
     * Of each row of MCUs (8 * step pixels each way), how many MCUs to the right of where limit and
     * box have it lies (struct dl2_jpeg_splice); NULL: none do.
     */
    const uint32_t *shift;
};

/* Since it was opened. */
struct dl2_batch_decoder_stats {
    uint64_t images, bytes; /* that it decoded, encoded */
    uint64_t pixels;        /* of decoded images; of the regions, where only these were decoded */
    uint64_t refused;       /* that it took and could not decode */
    uint64_t by_engines;    /* that engines of their own decoded, not the card's cores */
    /* Its own seconds, summed over batches that may have overlapped: decoding, and all that makes
     * pixels of a batch out of that. */
    double decode, transform;
};

struct dl2_batch_decoder_class {
    const char *name; /* "nvjpeg": in reports */
    /* Slots must be gone. NULL is fine. */
    void (*close)(struct dl2_batch_decoder *decoder);
    /* What decodes there, for reports: a new object to free. */
    json_t *(*describe)(const struct dl2_batch_decoder *decoder);

    /* Would it decode this? */
    bool (*takes)(const struct dl2_batch_decoder *decoder, const struct dl2_jpeg_plain *jpeg);

    /* Room for a batch of so many images of side x side x channels. */
    int (*slot_create)(struct dl2_batch_decoder *decoder, unsigned samples, unsigned side,
                       unsigned channels, struct dl2_decode_slot **out, struct dl2_error *error);
    void (*slot_free)(struct dl2_decode_slot *slot); /* NULL is fine */
    /* The batch, when it is finished: memory of the decoder's, good until the next begin. */
    uint8_t *(*images)(struct dl2_decode_slot *slot);

    /* Nothing is in any place. */
    void (*begin)(struct dl2_decode_slot *slot);
    /* Copies an image to place n. Fails for lack of memory alone. */
    int (*add)(struct dl2_decode_slot *slot, unsigned n, const struct dl2_encoded *image,
               struct dl2_error *error);
    /* Where the pixels of place n go that the processors made: side x side x channels bytes of this
     * machine's memory, to be filled before finish. */
    uint8_t *(*pixels)(struct dl2_decode_slot *slot, unsigned n);
    /*
     * Finishes what was put into places 0 .. count-1 since begin or the last finish, and waits for
     * it. What it can't decode is refused: refused[n] becomes true (it is never made false), and
     * the place is empty again. An error is the decoder's own: nothing more can be had of it.
     */
    int (*finish)(struct dl2_decode_slot *slot, unsigned count, bool *refused,
                  struct dl2_error *error);

    /* From a batch to this machine's memory, for who looks at pixels. Waits. */
    int (*download)(struct dl2_batch_decoder *decoder, void *to, const uint8_t *images,
                    size_t bytes, struct dl2_error *error);
    void (*get_stats)(const struct dl2_batch_decoder *decoder,
                      struct dl2_batch_decoder_stats *stats);
};

/* Which part of the card decodes. */
enum dl2_decode_engine {
    DL2_DECODE_AUTO,    /* engines where the card has them and they know the image */
    DL2_DECODE_ENGINES, /* DL2_ERR_UNSUPPORTED where there are none */
    DL2_DECODE_CORES
};

/* Who decodes: the processors alone, the decoder what it can, both by how fast they are. */
enum dl2_decode_mode { DL2_DECODE_CPU, DL2_DECODE_GPU, DL2_DECODE_HYBRID };

/* What the decoder is given: files as they are, to be decoded as a whole or under the crop alone,
 * or small JPEGs that are spliced of the segments under the crop, where files have such. */
enum dl2_decode_input { DL2_DECODE_PLAIN, DL2_DECODE_REGION, DL2_DECODE_SPLICED };

/* What users say. */
struct dl2_decode_choice {
    enum dl2_decode_mode mode;
    enum dl2_decode_input input;
    enum dl2_decode_engine engine;
};

struct dl2_batch_decoder_options {
    unsigned card;
    enum dl2_decode_engine engine;
    bool regions;     /* decode what is under the limit alone, where that can be done */
    unsigned threads; /* of this machine that may help with one batch; 0: 1 */
    size_t memory;    /* of decoded images at once, bytes; 0: 1 GiB. One always fits */
};

/* The best that was built: loader/batch_decoders.c. DL2_ERR_UNSUPPORTED without one, or without a
 * card. */
int dl2_batch_decoder_open(const struct dl2_batch_decoder_options *options,
                           struct dl2_batch_decoder **out, struct dl2_error *error);
/* Is there one in this build? */
bool dl2_batch_decoder_built(void);
void dl2_batch_decoder_close(struct dl2_batch_decoder *decoder);

/* Whether the choice makes sense, and this build can make it true. */
int dl2_decode_choice_check(const struct dl2_decode_choice *choice, struct dl2_error *error);
/* Opens what the choice needs, NULL for the processors alone, and sets it in the configuration,
 * whose number of workers decides on threads. */
int dl2_decode_choice_open(const struct dl2_decode_choice *choice, unsigned card,
                           struct dl2_loader_config *config, struct dl2_batch_decoder **out,
                           struct dl2_error *error);

#endif
