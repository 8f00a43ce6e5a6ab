/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the files of the Python modules. They only translate: everything they do is in the C
 * library's public headers, and in the seam to decoders on a card.
 *
 * Built for Python's stable ABI of 3.9, so one build serves that and every later version. What is
 * declared here became part of it later (the buffer protocol in 3.11), and every CPython from 3.9
 * on has it.
 */
#ifndef DL2_PYTHON_PY_DL2_H
#define DL2_PYTHON_PY_DL2_H

#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

typedef struct { /* docs.python.org, C API, Buffer Protocol */
    void *buf;
    PyObject *obj;
    Py_ssize_t len, itemsize;
    int readonly, ndim;
    char *format;
    Py_ssize_t *shape, *strides, *suboffsets;
    void *internal;
} Py_buffer;
int PyObject_GetBuffer(PyObject *exporter, Py_buffer *view, int flags);
void PyBuffer_Release(Py_buffer *view);
const char *PyUnicode_AsUTF8AndSize(PyObject *unicode, Py_ssize_t *size);
void *PyMem_Calloc(size_t count, size_t size);
#undef Py_bf_getbuffer
#define Py_bf_getbuffer      1
#define PyBUF_WRITABLE       0x0001
#define PyBUF_FORMAT         0x0004
#define PyBUF_ND             0x0008
#define PyBUF_STRIDES        (0x0010 | PyBUF_ND)
#define PyBUF_C_CONTIGUOUS   (0x0020 | PyBUF_STRIDES)
#define PyBUF_F_CONTIGUOUS   (0x0040 | PyBUF_STRIDES)
#define PyBUF_ANY_CONTIGUOUS (0x0080 | PyBUF_STRIDES)
#if PY_VERSION_HEX < 0x030A0000
static inline PyObject *Py_XNewRef(PyObject *object)
{
    Py_XINCREF(object);
    return object;
}
#define Py_NewRef Py_XNewRef
#endif
#define PY_IMMUTABLE (1UL << 8) /* Py_TPFLAGS_IMMUTABLETYPE, which Python 3.9 ignores */

#include "codec/image_file.h"
#include "loader/batch_decoder.h"
#include "loader/loader_settings.h"

#include <stdio.h>

struct py_state { /* of the module: its types, each a strong reference */
    PyObject *error;
    PyTypeObject *array, *batch, *dataset, *epoch, *loader, *sample;
    bool collates; /* PyTorch's default_collate() was told of arrays */
};

/* An object that is let go of with its scope; set at once, NULL: none. */
#define PY_OWN __attribute__((cleanup(py_let_go)))

static inline void py_let_go(PyObject **object)
{
    Py_XDECREF(*object);
}

/* Adds an object to a module, which takes a reference of its own; -1: an exception is set. */
static inline int py_add_to_module(PyObject *module, const char *name, PyObject *object)
{
    Py_INCREF(object);
    if (PyModule_AddObject(module, name, object) == 0)
        return 0;
    Py_DECREF(object);
    return -1;
}

/* The type of an object of ours. */
static inline PyTypeObject *py_type_of(void *self)
{
    return Py_TYPE((PyObject *)self);
}

/* Py_tp_new of types that only the module makes objects of. (Py_TPFLAGS_DISALLOW_INSTANTIATION is
 * of 3.10.) */
PyObject *py_refuse_new(PyTypeObject *type, PyObject *args, PyObject *kwargs);

/* The state of the module that a type of ours belongs to. */
struct py_state *py_state_of(PyTypeObject *type);

/* Raises what `error` says: MemoryError, OSError or a subclass,
 * ValueError, else dl2.Error. NULL. */
PyObject *py_raise(const struct py_state *state, const struct dl2_error *error);

/* A string of the library's as Python has file names: bytes that are not UTF-8 survive. */
PyObject *py_text(const char *text);

/* Warns of the counts that are not 0, each row of dl2_unusual_rows() once, by a bit of *told;
 * false: an exception is set. */
bool py_warn_of_unusual(const struct dl2_loader_stats *stats, unsigned *told, const char *where);

/* Put an item, whose reference they take, into a new list or tuple, or under a name into a new
 * dict. Where that fails, or the item is NULL, they clear what it was to go into, which may be
 * NULL. */
void py_put(PyObject **list, Py_ssize_t at, PyObject *item);
void py_put_named(PyObject **dict, const char *name, PyObject *item);
/* A new one of a PyStructSequence, of fields whose references it takes; NULL where an exception is
 * set. */
PyObject *py_struct(PyTypeObject *type, PyObject **fields, int count);

/* Methods of several types: __enter__. */
PyObject *py_enter(PyObject *self, PyObject *unused);

/* A name of a table, ended by NULL; the number where it stands, or -1 and ValueError. */
int py_choice(const char *what, const char *name, const char *const *names);

/* TypeError: the function has no argument of that name, and `near`, unless it is NULL, may be
 * meant, which is `help`, or NULL. False. */
bool py_refuse_argument(const char *function, PyObject *name, const char *near, const char *help);

/* PyArg_Parse's O& for whole numbers that an unsigned or a uint64_t holds. */
int py_to_unsigned(PyObject *object, void *out);
int py_to_uint64(PyObject *object, void *out);

/* What the arguments of dl2.Loader are made of. */
struct py_settings {
    struct dl2_loader_config loader; /* first: its settings' offsets are of this struct, too */
    struct dl2_decode_choice decode;
    const char *device;  /* the card's name, borrowed; NULL: the first */
    double hold_timeout; /* seconds that a batch waits while other threads hold all */
};

/* Arguments of dl2.Loader that are no part of its settings, borrowed; None where not given. */
struct py_arguments {
    PyObject *dataset, *split, *val_fraction, *memory, *weights, *external;
};
/* ---- py_arguments.c ---- */

struct py_settings py_settings_defaults(void);
/* The arguments, by number; NULL: there are fewer. The first few may be given by position. */
const struct dl2_loader_setting *py_argument_at(int number);
enum { PY_POSITIONS = 3 };
/* Writes them as they stand in a signature, with or without their types. */
void py_arguments_write(bool typed, FILE *out);
/* The documentation of dl2.Loader, signature and all, to free(); NULL: there is no memory. */
char *py_loader_doc(void);

/* ---- py_settings.c ---- */

/* False and TypeError for a name that no argument of dl2.Loader has; NULL or a tuple of names that
 * may be meant besides. */
bool py_check_argument(PyObject *name, PyObject *others);
/* A copy of the arguments with a name, in which lists of names are texts; NULL and an exception. */
PyObject *py_settings_join(PyObject *kwargs);
/* False and an exception for arguments that are none or make no sense. */
bool py_settings_parse(struct py_settings *into, struct py_arguments *arguments, PyObject *args,
                       PyObject *kwargs);
/* A new dict of settings by name; with `pixels`, of those that decide what images hold. */
PyObject *py_settings_get(const struct py_settings *from, bool pixels);
/* False and ValueError where one of the latter, in a dict of a state, is another. */
bool py_settings_check(const struct py_settings *from, PyObject *theirs);

/* The loader's image_size: an int, or a tuple of height and width where they differ. */
PyObject *py_size_of(const struct dl2_loader_config *config);

/* ---- py_dataset.c ---- */

struct py_dataset {
    PyObject_HEAD struct dl2_dataset *dataset; /* NULL once closed */
    unsigned users;                            /* loaders and reads under way */
    bool closing;                              /* when the last of them ends */
    unsigned told;           /* rows of dl2_unusual_rows() that it has warned of */
    PyObject *args, *kwargs; /* that it was made with */
    PyObject *members;       /* a tuple of the datasets that it joins; NULL: none */
};
/* Is it a dataset, or are all of a list? */
bool py_is_opened(const struct py_state *state, PyObject *given);
extern PyType_Spec py_dataset_spec;
extern PyStructSequence_Desc py_sample_desc;
/* Counts one more user; false and ValueError where it is closed. */
bool py_dataset_use(struct py_dataset *self);
void py_dataset_leave(struct py_dataset *self);

/* _repr_html_() of a dataset or a loader: dl2._sheet's. */
PyObject *py_sheet(PyObject *self, PyObject *unused);

/* ---- py_decoders.c ---- */

/*
 * The functions of loader/batch_decoder.h, in a capsule of this name. They are a module of their
 * own, dl2._decoders, which is imported where images are to be decoded on a card: that alone needs
 * a card's libraries.
 */
#define PY_DECODERS "dl2._decoders.functions"
struct py_decoders {
    int (*card)(const char *text, void *card, struct dl2_error *error);
    int (*open)(const struct dl2_decode_choice *choice, unsigned card,
                struct dl2_loader_config *config, struct dl2_batch_decoder **out,
                struct dl2_error *error);
    void (*close)(struct dl2_batch_decoder *decoder);
};

/* ---- py_card.c ---- */

/* The decoder of a loader whose images lie in a card's memory. */
struct py_card {
    const struct py_decoders *decoders;
    struct dl2_batch_decoder *decoder; /* NULL once closed, and where the processors decode */
    const char *name;                  /* of the decoder; NULL: none was opened */
    unsigned number;
    struct dl2_batch_decoder_stats seen, before; /* at the last look; at the last reset */
};
/* Opens what the settings choose, and sets it in them; false and an exception. */
bool py_card_open(const struct py_state *state, struct py_card *card, struct py_settings *settings);
/* After the loader. */
void py_card_close(struct py_card *card);
/* Looks at the decoder's figures, unless it is closed. */
void py_card_look(struct py_card *card);
/* A new dict of the figures seen since the reset, and the seconds that batches took; or None. */
PyObject *py_card_stats(const struct py_card *card, double finish);
void py_card_reset(struct py_card *card);

/* ---- py_loader.c ---- */

struct py_loader {
    PyObject_HEAD struct dl2_loader *loader; /* NULL once closed */
    struct py_dataset *dataset;
    struct py_settings settings;
    struct py_card card;  /* that decodes; none: all 0 */
    uint64_t epoch, step; /* of the batch that comes next */
    bool begun;           /* the epoch was begun, and nothing taken of it yet */
    uint64_t begins;      /* epochs begun so far */
    bool waiting;         /* a thread is inside the library without the GIL */
    bool closing;         /* when the last array of a batch dies */
    PyObject *last_bad;   /* .bad and stats() as they were when it was closed */
    unsigned told;        /* rows of dl2_unusual_rows that it has warned of */
    struct dl2_loader_stats last_stats;
    PyObject *memory;   /* the argument, NULL without */
    Py_buffer *buffers; /* that it made, for one batch each */
    unsigned buffer_count;
    PyObject *args, *kwargs; /* that it was made with */
    unsigned taken;          /* batches whose images are alive */
    long process;            /* that the workers belong to */
};
/* The iterator of `for`: one epoch, until another is begun. */
struct py_epoch {
    PyObject_HEAD struct py_loader *loader;
    uint64_t number; /* of loader->begins */
};
extern PyType_Spec py_loader_spec, py_epoch_spec; /* the first slot of the former has no text yet */
extern PyStructSequence_Desc py_batch_desc;
/* The images of a batch have died. */
void py_loader_release(struct py_loader *self, struct dl2_batch *batch);

/* ---- py_array.c ---- */

enum py_type { PY_UINT8, PY_FLOAT32, PY_BFLOAT16, PY_FLOAT16, PY_INT64 };

extern PyType_Spec py_array_spec;
/* The images of a batch, in the loader's memory, which the array gives back when it dies. */
PyObject *py_array_of_images(struct py_state *state, struct py_loader *loader,
                             struct dl2_batch *batch);
/* What volumes' patches show: int64 [n, 6]. */
/* A list of dicts of the boxes of its samples, whose arrays are parts of the batch's memory. */
PyObject *py_boxes_of(struct py_state *state, PyObject *images);
PyObject *py_array_of_patches(struct py_state *state, const struct dl2_batch *batch);
/* The masks beside these images, in the same memory's keeping. */
PyObject *py_array_of_masks(struct py_state *state, PyObject *images);
/* A vector of its own; *data is to be filled. */
PyObject *py_array_of_numbers(struct py_state *state, Py_ssize_t count, int64_t **data);
/* A copy of RGB pixels: uint8 [height, width, 3]. */
PyObject *py_array_of_pixels(struct py_state *state, const uint8_t *pixels, uint32_t width,
                             uint32_t height);
/* What each image of a batch shows: left, top, right, bottom, and whether it is flipped. */
PyObject *py_array_of_shown(struct py_state *state, const struct dl2_batch *batch);

#endif
