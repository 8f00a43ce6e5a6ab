/* SPDX-License-Identifier: BSD-2-Clause */
/* The decoder of a dl2.Loader on a card, from the module that has them. */
#include "python/py_dl2.h"

/* Python never unloads a module's code, where these functions are. */
static const struct py_decoders *find_decoders(void)
{
    PY_OWN PyObject *module = PyImport_ImportModule("dl2._decoders");
    PY_OWN PyObject *capsule = module ? PyObject_GetAttrString(module, "functions") : NULL;
    return capsule ? PyCapsule_GetPointer(capsule, PY_DECODERS) : NULL;
}

bool py_card_open(const struct py_state *state, struct py_card *card, struct py_settings *settings)
{
    struct dl2_error error = DL2_ERROR_INIT;
    int status = DL2_OK;
    if (settings->decode.mode == DL2_DECODE_CPU)
        return true;
    if (!(card->decoders = find_decoders()))
        return false;
    if (settings->device)
        status = card->decoders->card(settings->device, &card->number, &error);
    if (status == DL2_OK) {
        Py_BEGIN_ALLOW_THREADS /* starting a card takes seconds */
            status = card->decoders->open(&settings->decode, card->number, &settings->loader,
                                          &card->decoder, &error);
        Py_END_ALLOW_THREADS
    }
    if (status < 0)
        py_raise(state, &error);
    else
        card->name = card->decoder->ops->name;
    return status == DL2_OK;
}

void py_card_close(struct py_card *card)
{
    struct dl2_batch_decoder *decoder = card->decoder;
    card->decoder = NULL;
    if (decoder) {
        Py_BEGIN_ALLOW_THREADS card->decoders->close(decoder);
        Py_END_ALLOW_THREADS
    }
}

void py_card_look(struct py_card *card)
{
    if (card->decoder)
        card->decoder->ops->get_stats(card->decoder, &card->seen);
}

void py_card_reset(struct py_card *card)
{
    card->before = card->seen;
}

PyObject *py_card_stats(const struct py_card *card, double finish)
{
    const struct dl2_batch_decoder_stats *now = &card->seen, *before = &card->before;
    if (!card->name)
        return Py_NewRef(Py_None);
    return Py_BuildValue("{s:s,s:K,s:K,s:K,s:z,s:K,s:K,s:d,s:d,s:d}", "name", card->name, "images",
                         (unsigned long long)(now->images - before->images), "by_engines",
                         (unsigned long long)(now->by_engines - before->by_engines), "refused",
                         (unsigned long long)(now->refused - before->refused), "refusal",
                         now->refused > before->refused ? now->refusal : NULL, "bytes",
                         (unsigned long long)(now->bytes - before->bytes), "pixels",
                         (unsigned long long)(now->pixels - before->pixels), "decode",
                         now->decode - before->decode, "transform",
                         now->transform - before->transform, "finish", finish);
}
