/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dl2.Array: memory that others see through the buffer protocol and DLPack, without a copy.
 *
 * Each view holds the array that owns the memory: a buffer by its `obj`, a DLPack tensor by its
 * manager_ctx, a part of an array by `base`. So the owner dies with its last view, and the batch's
 * memory goes back to the loader then.
 *
 * Comparing and PyTorch's functions are left to NumPy and PyTorch, which are imported when needed.
 */
#include "python/py_dl2.h"

#include <dlpack/dlpack.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

enum { MAX_NDIM = 5 };

struct py_array {
    PyObject_HEAD struct py_array *base; /* the owner of `data`; NULL: this array itself */
    struct py_loader *loader; /* an owner's: whose batch it is; NULL: `data` is its own */
    struct dl2_batch *batch;
    void *data;
    enum py_type type;
    int ndim;
    Py_ssize_t shape[MAX_NDIM], strides[MAX_NDIM]; /* strides in bytes */
};

static const struct {
    const char *name, *format; /* NULL: the buffer protocol has none */
    uint8_t bytes, dlpack;
} types[] = {
    [PY_UINT8] = {"uint8", "B", 1, kDLUInt},          [PY_FLOAT32] = {"float32", "f", 4, kDLFloat},
    [PY_BFLOAT16] = {"bfloat16", NULL, 2, kDLBfloat}, [PY_FLOAT16] = {"float16", "e", 2, kDLFloat},
    [PY_INT64] = {"int64", "q", 8, kDLInt},
};

/*
 * default_collate(batch) for a list of arrays: one tensor. PyTorch has a table of such functions,
 * but for a type that it doesn't know no way to find one.
 */
static PyObject *collate(PyObject *Py_UNUSED(unused), PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"batch", "collate_fn_map", NULL};
    PyObject *batch, *map;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$O:collate", names, &batch, &map))
        return NULL;
    PY_OWN PyObject *torch = PyImport_ImportModule("torch");
    PY_OWN PyObject *list = torch ? PySequence_List(batch) : NULL;
    return list ? PyObject_CallMethod(torch, "stack", "O", list) : NULL;
}

/* Puts collate() into that table once PyTorch is there; a PyTorch
 * without the table does without. */
static void teach_torch(struct py_state *state)
{
    static PyMethodDef method = {"collate", (PyCFunction)(void (*)(void))collate,
                                 METH_VARARGS | METH_KEYWORDS, NULL};
    PY_OWN PyObject *name = PyUnicode_FromString("torch.utils.data._utils.collate");
    PY_OWN PyObject *module = name ? PyImport_GetModule(name) : NULL;
    PY_OWN PyObject *map = module ? PyObject_GetAttrString(module, "default_collate_fn_map") : NULL;
    PY_OWN PyObject *function = map && PyDict_Check(map) ? PyCFunction_New(&method, NULL) : NULL;
    state->collates = module; /* tried */
    if (function)
        PyDict_SetItem(map, (PyObject *)state->array, function);
    PyErr_Clear();
}

static struct py_array *make(struct py_state *state, enum py_type type, int ndim,
                             const Py_ssize_t *shape)
{
    if (!state->collates)
        teach_torch(state);
    struct py_array *self = PyObject_New(struct py_array, state->array);
    if (!self)
        return NULL;
    Py_ssize_t stride = types[type].bytes;
    self->base = NULL;
    self->loader = NULL;
    self->batch = NULL;
    self->data = NULL;
    self->type = type;
    self->ndim = ndim;
    for (int i = ndim - 1; i >= 0; i--) {
        self->shape[i] = shape[i];
        self->strides[i] = stride;
        stride *= shape[i];
    }
    return self;
}

PyObject *py_array_of_images(struct py_state *state, struct py_loader *loader,
                             struct dl2_batch *batch)
{
    static const enum py_type of_dtype[] = {[DL2_UINT8] = PY_UINT8,
                                            [DL2_FLOAT32] = PY_FLOAT32,
                                            [DL2_BFLOAT16] = PY_BFLOAT16,
                                            [DL2_FLOAT16] = PY_FLOAT16};
    const struct dl2_loader_config *config = &loader->settings.loader;
    const Py_ssize_t height = config->height, width = dl2_loader_width(config);
    const Py_ssize_t channels = config->channels;
    Py_ssize_t shape[MAX_NDIM] = {batch->count};
    int ndim = 1;
    if (config->layout == DL2_NCHW)
        shape[ndim++] = channels;
    if (config->frames || config->volume_depth)
        shape[ndim++] = dl2_loader_planes(config);
    shape[ndim++] = height;
    shape[ndim++] = width;
    if (config->layout == DL2_NHWC)
        shape[ndim++] = channels;
    struct py_array *self = make(state, of_dtype[config->dtype], ndim, shape);
    if (!self) {
        dl2_loader_release(loader->loader, batch);
        return NULL;
    }
    Py_INCREF((PyObject *)loader);
    loader->taken++;
    self->loader = loader;
    self->batch = batch;
    self->data = batch->images;
    return (PyObject *)self;
}

static Py_ssize_t size_of(const struct py_array *self)
{
    Py_ssize_t size = types[self->type].bytes;
    for (int i = 0; i < self->ndim; i++)
        size *= self->shape[i];
    return size;
}

/* A part of the memory of a batch. */
static PyObject *part_of(struct py_state *state, PyObject *images, enum py_type type, int ndim,
                         const Py_ssize_t *shape, const void *data)
{
    static uint64_t nothing;
    struct py_array *self = make(state, type, ndim, shape);
    if (!self)
        return NULL;
    self->base = (struct py_array *)Py_NewRef(images);
    self->data = data && shape[0] ? (void *)(uintptr_t)data : &nothing;
    return (PyObject *)self;
}

PyObject *py_array_of_masks(struct py_state *state, PyObject *images)
{
    const struct py_array *owner = (struct py_array *)images;
    const struct dl2_loader_config *config = &owner->loader->settings.loader;
    const Py_ssize_t shape[] = {owner->batch->count, config->volume_depth, config->height,
                                dl2_loader_width(config)};
    const Py_ssize_t plane[] = {shape[0], shape[2], shape[3]};
    return config->volume_depth ? part_of(state, images, PY_UINT8, 4, shape, owner->batch->masks)
                                : part_of(state, images, PY_UINT8, 3, plane, owner->batch->masks);
}

static PyObject *dict_of_boxes(struct py_state *state, PyObject *images,
                               const struct dl2_boxes *boxes)
{
    const struct dl2_loader_config *config = &((struct py_array *)images)->loader->settings.loader;
    const Py_ssize_t corners[] = {boxes->count, 4};
    const Py_ssize_t masks[] = {boxes->count, config->height, dl2_loader_width(config)};
    PyObject *dict = PyDict_New();
    py_put_named(&dict, "boxes", part_of(state, images, PY_FLOAT32, 2, corners, boxes->boxes));
    py_put_named(&dict, "labels", part_of(state, images, PY_INT64, 1, corners, boxes->labels));
    py_put_named(&dict, "image_id", PyLong_FromLongLong(boxes->image_id));
    py_put_named(&dict, "area", part_of(state, images, PY_FLOAT32, 1, corners, boxes->areas));
    py_put_named(&dict, "iscrowd", part_of(state, images, PY_INT64, 1, corners, boxes->iscrowd));
    if (config->instance_masks)
        py_put_named(&dict, "masks", part_of(state, images, PY_UINT8, 3, masks, boxes->masks));
    return dict;
}

PyObject *py_boxes_of(struct py_state *state, PyObject *images)
{
    const struct dl2_batch *batch = ((struct py_array *)images)->batch;
    PyObject *list = PyList_New(batch->count);
    for (unsigned i = 0; list && i < batch->count; i++)
        py_put(&list, i, dict_of_boxes(state, images, &batch->boxes[i]));
    return list;
}

/* An array with memory of its own, of zeros. */
static struct py_array *make_own(struct py_state *state, enum py_type type, int ndim,
                                 const Py_ssize_t *shape)
{
    struct py_array *self = make(state, type, ndim, shape);
    if (self && !(self->data = PyMem_Calloc((size_t)size_of(self) + 1, 1))) {
        Py_DECREF((PyObject *)self);
        return (struct py_array *)PyErr_NoMemory();
    }
    return self;
}

PyObject *py_array_of_numbers(struct py_state *state, Py_ssize_t count, int64_t **data)
{
    struct py_array *self = make_own(state, PY_INT64, 1, &count);
    *data = self ? self->data : NULL;
    return (PyObject *)self;
}

PyObject *py_array_of_pixels(struct py_state *state, const uint8_t *pixels, uint32_t width,
                             uint32_t height)
{
    const Py_ssize_t shape[] = {height, width, 3};
    struct py_array *self = make_own(state, PY_UINT8, 3, shape);
    if (self)
        memcpy(self->data, pixels, (size_t)size_of(self));
    return (PyObject *)self;
}

PyObject *py_array_of_patches(struct py_state *state, const struct dl2_batch *batch)
{
    enum { COLUMNS = 6 };
    const Py_ssize_t shape[] = {batch->count, COLUMNS};
    struct py_array *self = make_own(state, PY_INT64, 2, shape);
    int64_t *data = self ? self->data : NULL;
    for (unsigned i = 0; data && i < batch->count; i++, data += COLUMNS)
        for (int axis = 0; axis < 3; axis++) {
            data[axis] = batch->patches[i].first[axis];
            data[3 + axis] = batch->patches[i].size[axis];
        }
    return (PyObject *)self;
}

PyObject *py_array_of_shown(struct py_state *state, const struct dl2_batch *batch)
{
    enum { COLUMNS = 5 };
    const Py_ssize_t shape[] = {batch->count, COLUMNS};
    struct py_array *self = make_own(state, PY_FLOAT32, 2, shape);
    float *data = self ? self->data : NULL;
    for (unsigned i = 0; data && i < batch->count; i++, data += COLUMNS) {
        const struct dl2_crop_box *crop = &batch->crop_boxes[i];
        data[0] = (float)crop->left;
        data[1] = (float)crop->top;
        data[2] = (float)crop->right;
        data[3] = (float)crop->bottom;
        data[4] = crop->flipped;
    }
    return (PyObject *)self;
}

static void array_dealloc(struct py_array *self)
{
    PyTypeObject *type = py_type_of(self);
    if (self->base) {
        Py_DECREF((PyObject *)self->base);
    } else if (self->loader) {
        py_loader_release(self->loader, self->batch);
        Py_DECREF((PyObject *)self->loader);
    } else {
        PyMem_Free(self->data);
    }
    PyObject_Free(self);
    Py_DECREF((PyObject *)type);
}

/* Dense, the last dimension running fastest (or, with `fortran`, the first)? */
static bool is_dense(const struct py_array *self, bool fortran)
{
    Py_ssize_t stride = types[self->type].bytes;
    for (int n = 0; n < self->ndim; n++) {
        const int i = fortran ? n : self->ndim - 1 - n;
        if (self->shape[i] > 1 && self->strides[i] != stride)
            return size_of(self) == 0;
        stride *= self->shape[i];
    }
    return true;
}

/* The card whose memory it is, or NULL for this machine's. */
static const struct py_card *card_of(const struct py_array *self)
{
    const struct py_loader *loader = (self->base ? self->base : self)->loader;
    return loader && loader->card.decoder ? &loader->card : NULL;
}

/* Can this machine's processors read it? Else an exception. */
static bool is_here(const struct py_array *self)
{
    const struct py_card *card = card_of(self);
    if (card)
        PyErr_Format(PyExc_BufferError,
                     "these images lie in the memory of the card cuda:%u, where they were decoded: "
                     "torch.from_dlpack(images) sees them there, and .cpu() of that is a copy here",
                     card->number);
    return !card;
}

/* ---- the buffer protocol ---- */

static bool has_all(int flags, int wanted)
{
    return (flags & wanted) == wanted;
}

static bool has_format(const struct py_array *self)
{
    if (!is_here(self))
        return false;
    if (!types[self->type].format)
        PyErr_Format(PyExc_BufferError,
                     "neither buffers nor NumPy have a format for %s: use DLPack "
                     "(torch.from_dlpack), or a loader of dtype 'float32'",
                     types[self->type].name);
    return types[self->type].format;
}

static int array_getbuffer(struct py_array *self, Py_buffer *view, int flags)
{
    view->obj = NULL;
    if (!has_format(self))
        return -1;
    const bool needs_c = has_all(flags, PyBUF_C_CONTIGUOUS) || !has_all(flags, PyBUF_STRIDES);
    const bool needs_fortran = has_all(flags, PyBUF_F_CONTIGUOUS);
    const bool needs_any = has_all(flags, PyBUF_ANY_CONTIGUOUS);
    if ((needs_c && !is_dense(self, false)) || (needs_fortran && !is_dense(self, true)) ||
        (needs_any && !is_dense(self, false) && !is_dense(self, true))) {
        PyErr_SetString(PyExc_BufferError, "this part of an array is not contiguous");
        return -1;
    }
    *view = (Py_buffer){
        .buf = self->data,
        .obj = Py_NewRef((PyObject *)self),
        .len = size_of(self),
        .itemsize = types[self->type].bytes,
        .ndim = flags & PyBUF_ND ? self->ndim : 1,
        .format = flags & PyBUF_FORMAT ? (char *)types[self->type].format : NULL,
        .shape = flags & PyBUF_ND ? self->shape : NULL,
        .strides = has_all(flags, PyBUF_STRIDES) ? self->strides : NULL,
    };
    return 0;
}

/* ---- DLPack ---- */

/*
 * Whoever has taken a tensor of a card's memory reads it by work that a stream holds, and may let
 * go of the tensor before that work is done. So the decoder is told of the stream then: it writes
 * to this memory after that work.
 */
struct tensor {
    DLManagedTensor managed;
    uintptr_t stream;                           /* of a card */
    int64_t shape[MAX_NDIM], strides[MAX_NDIM]; /* strides in elements */
};

/* Called by whoever took the tensor, on any of its threads, or never. */
static void tensor_delete(DLManagedTensor *managed)
{
    if (!Py_IsInitialized()) /* a tensor that outlives Python: the process is about to end */
        return;
    const PyGILState_STATE gil = PyGILState_Ensure();
    const struct py_array *self = managed->manager_ctx, *owner = self->base ? self->base : self;
    const struct py_card *card = card_of(self);
    if (card && owner->loader->process == getpid())
        card->decoder->ops->write_after(card->decoder, owner->batch->images,
                                        ((struct tensor *)managed)->stream);
    Py_DECREF((PyObject *)managed->manager_ctx);
    PyMem_Free(managed);
    PyGILState_Release(gil);
}

/* Who takes the tensor renames the capsule. */
static void capsule_delete(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor"))
        tensor_delete(PyCapsule_GetPointer(capsule, "dltensor"));
}

static DLDevice device_of(const struct py_array *self)
{
    const struct py_card *card = card_of(self);
    return card ? (DLDevice){kDLCUDA, (int)card->number} : (DLDevice){kDLCPU, 0};
}

/* The consumer's stream by DLPack's numbers; its work is what the next batch waits for. Batches are
 * finished when they are handed out, so the consumer's stream need not wait for anything. */
static bool to_stream(const struct py_array *self, PyObject *given, uintptr_t *stream)
{
    enum { NO_SYNC = -1, LEGACY = 1, PER_THREAD = 2 };
    *stream = LEGACY; /* also what waits for all threads' default streams */
    if (given == Py_None)
        return true;
    if (!card_of(self)) {
        PyErr_SetString(PyExc_BufferError, "memory of the CPU has no streams: stream must be None");
        return false;
    }
    PY_OWN PyObject *index = PyNumber_Index(given);
    const long long number = index ? PyLong_AsLongLong(index) : 0;
    if (PyErr_Occurred())
        return false;
    if (number < NO_SYNC || number == 0) {
        PyErr_Format(PyExc_BufferError, "%lld is no stream of CUDA's: 1 is the default one",
                     number);
        return false;
    }
    if (number > PER_THREAD)
        *stream = (uintptr_t)number;
    return true;
}

static bool check_request(const struct py_array *self, PyObject *device, PyObject *copy)
{
    const DLDevice own = device_of(self);
    int type = (int)own.device_type, number = own.device_id;
    if (device != Py_None && !PyArg_ParseTuple(device, "ii", &type, &number))
        return false;
    if (type == (int)own.device_type && number == own.device_id && copy != Py_True)
        return true;
    PyErr_SetString(PyExc_BufferError, own.device_type == kDLCPU
                                           ? "only the CPU's memory as it is, without a copy"
                                           : "only the card's memory as it is, without a copy");
    return false;
}

static PyObject *array_dlpack(struct py_array *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
    uintptr_t reader;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$OOO:__dlpack__", names, &stream, &version,
                                     &device, &copy) ||
        !to_stream(self, stream, &reader) || !check_request(self, device, copy))
        return NULL;
    struct tensor *tensor = PyMem_Calloc(1, sizeof *tensor);
    if (!tensor)
        return PyErr_NoMemory();
    for (int i = 0; i < self->ndim; i++) {
        tensor->shape[i] = self->shape[i];
        tensor->strides[i] = self->strides[i] / types[self->type].bytes;
    }
    tensor->stream = reader;
    tensor->managed = (DLManagedTensor){
        .dl_tensor = {.data = self->data,
                      .device = device_of(self),
                      .ndim = self->ndim,
                      .dtype = {types[self->type].dlpack, (uint8_t)(8 * types[self->type].bytes),
                                1},
                      .shape = tensor->shape,
                      .strides = tensor->strides},
        .manager_ctx = Py_NewRef((PyObject *)self),
        .deleter = tensor_delete,
    };
    PyObject *capsule = PyCapsule_New(&tensor->managed, "dltensor", capsule_delete);
    if (!capsule)
        tensor_delete(&tensor->managed);
    return capsule;
}

static PyObject *array_dlpack_device(PyObject *self, PyObject *Py_UNUSED(unused))
{
    const DLDevice device = device_of((struct py_array *)self);
    return Py_BuildValue("(ii)", (int)device.device_type, (int)device.device_id);
}

/* ---- NumPy and PyTorch ---- */

static PyObject *as_numpy(PyObject *self, PyObject *dtype, PyObject *copy)
{
    if (!has_format((struct py_array *)self))
        return NULL;
    PY_OWN PyObject *numpy = PyImport_ImportModule("numpy");
    PY_OWN PyObject *memory = numpy ? PyMemoryView_FromObject(self) : NULL;
    return !memory           ? NULL
           : copy == Py_None ? PyObject_CallMethod(numpy, "asarray", "OO", memory, dtype)
                             : PyObject_CallMethod(numpy, "array", "OOO", memory, dtype, copy);
}

static PyObject *array_array(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"dtype", "copy", NULL};
    PyObject *dtype = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$O:__array__", names, &dtype, &copy))
        return NULL;
    return as_numpy(self, dtype, copy);
}

static PyObject *as_tensor(PyObject *torch, PyObject *self)
{
    return PyObject_CallMethod(torch, "from_dlpack", "O", self);
}

/* `object` with tensors where it is, or lists or tuples in it hold, arrays. */
static PyObject *with_tensors(const struct py_state *state, PyObject *torch, PyObject *object)
{
    if (Py_IS_TYPE(object, state->array))
        return as_tensor(torch, object);
    if (!PyTuple_CheckExact(object) && !PyList_CheckExact(object))
        return Py_NewRef(object);
    PyObject *list = PySequence_List(object);
    for (Py_ssize_t i = 0; list && i < PyList_Size(list); i++)
        py_put(&list, i, with_tensors(state, torch, PyList_GetItem(list, i)));
    if (!list || PyList_CheckExact(object))
        return list;
    PyObject *tuple = PyList_AsTuple(list);
    Py_DECREF(list);
    return tuple;
}

static PyObject *with_tensor_values(const struct py_state *state, PyObject *torch, PyObject *dict)
{
    PyObject *copy = PyDict_New(), *key, *value;
    Py_ssize_t at = 0;
    while (copy && dict && PyDict_Next(dict, &at, &key, &value)) {
        PY_OWN PyObject *item = with_tensors(state, torch, value);
        if (!item || PyDict_SetItem(copy, key, item) < 0)
            Py_CLEAR(copy);
    }
    return copy;
}

/* PyTorch calls it for each of its functions that is given an array. */
static PyObject *array_torch_function(PyObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"func", "types", "args", "kwargs", NULL};
    PyObject *function, *types_given, *given, *named = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO!|O:__torch_function__", names, &function,
                                     &types_given, &PyTuple_Type, &given, &named))
        return NULL;
    const struct py_state *state = py_state_of((PyTypeObject *)type);
    PY_OWN PyObject *torch = PyImport_ImportModule("torch");
    PY_OWN PyObject *tensors = torch ? with_tensors(state, torch, given) : NULL;
    PY_OWN PyObject *values =
        tensors ? with_tensor_values(state, torch, named && PyDict_Check(named) ? named : NULL)
                : NULL;
    return values ? PyObject_Call(function, tensors, values) : NULL;
}

/* PyTorch where it is loaded, and `other` a tensor or one of both of a type, or on a card, that
 * only it can read. */
static PyObject *torch_for(const struct py_array *self, PyObject *other)
{
    PY_OWN PyObject *name = PyUnicode_FromString("torch");
    PyObject *torch = name ? PyImport_GetModule(name) : NULL;
    PY_OWN PyObject *tensor = torch ? PyObject_GetAttrString(torch, "Tensor") : NULL;
    const struct py_array *both =
        Py_IS_TYPE(other, py_type_of((void *)self)) ? (struct py_array *)other : NULL;
    bool wanted = !types[self->type].format || card_of(self) ||
                  (both && (!types[both->type].format || card_of(both)));
    if (tensor && !wanted)
        wanted = PyObject_IsInstance(other, tensor) == 1;
    PyErr_Clear();
    if (!wanted)
        Py_CLEAR(torch);
    return torch;
}

/* Element by element, as NumPy or, beside a tensor, PyTorch compares. */
static PyObject *array_compare(PyObject *self, PyObject *other, int how)
{
    PY_OWN PyObject *torch = torch_for((struct py_array *)self, other);
    PY_OWN PyObject *seen = torch ? as_tensor(torch, self) : as_numpy(self, Py_None, Py_None);
    return seen ? PyObject_RichCompare(seen, other, how) : NULL;
}

/* By identity, as tensors have it. */
static Py_hash_t array_hash(PyObject *self)
{
    const Py_hash_t hash = (Py_hash_t)((uintptr_t)self / 16);
    return hash == -1 ? -2 : hash;
}

/* ---- parts ---- */

/* The value of half precision's bits. */
static double half_value(uint16_t half)
{
    const int exponent = half >> 10 & 31, mantissa = half & 0x3ff;
    const double size = exponent == 31 ? mantissa ? NAN : INFINITY
                        : exponent     ? ldexp(1024 + mantissa, exponent - 25)
                                       : ldexp(mantissa, -24);
    return half & 0x8000 ? -size : size;
}

static PyObject *number_at(enum py_type type, const void *data)
{
    uint16_t half;
    uint32_t bits;
    float real;
    int64_t whole;
    switch (type) {
    case PY_UINT8:
        return PyLong_FromLong(*(const uint8_t *)data);
    case PY_INT64:
        memcpy(&whole, data, sizeof whole);
        return PyLong_FromLongLong(whole);
    case PY_BFLOAT16:
        memcpy(&half, data, sizeof half);
        bits = (uint32_t)half << 16;
        memcpy(&real, &bits, sizeof real);
        return PyFloat_FromDouble(real);
    case PY_FLOAT16:
        memcpy(&half, data, sizeof half);
        return PyFloat_FromDouble(half_value(half));
    default:
        memcpy(&real, data, sizeof real);
        return PyFloat_FromDouble(real);
    }
}

/* A part of an array while its dimensions are gone through. */
struct part {
    char *data;
    int axis, ndim; /* dimensions of the array done, of the part made */
    Py_ssize_t shape[MAX_NDIM], strides[MAX_NDIM];
};

static void keep_axis(const struct py_array *self, struct part *part)
{
    part->shape[part->ndim] = self->shape[part->axis];
    part->strides[part->ndim++] = self->strides[part->axis++];
}

static bool take_index(const struct py_array *self, struct part *part, Py_ssize_t index)
{
    const Py_ssize_t length = self->shape[part->axis];
    if (index < -length || index >= length) {
        PyErr_Format(PyExc_IndexError, "there is no index %zd in a dimension of %zd", index,
                     length);
        return false;
    }
    part->data += (index < 0 ? index + length : index) * self->strides[part->axis++];
    return true;
}

static bool take_key(const struct py_array *self, struct part *part, PyObject *key)
{
    if (PySlice_Check(key)) {
        Py_ssize_t start, stop, step;
        if (PySlice_Unpack(key, &start, &stop, &step) < 0)
            return false;
        const Py_ssize_t count =
            PySlice_AdjustIndices(self->shape[part->axis], &start, &stop, step);
        part->data += count ? start * self->strides[part->axis] : 0;
        part->shape[part->ndim] = count;
        part->strides[part->ndim++] = step * self->strides[part->axis++];
        return true;
    }
    if (PyIndex_Check(key)) {
        const Py_ssize_t index = PyNumber_AsSsize_t(key, PyExc_IndexError);
        return !(index == -1 && PyErr_Occurred()) && take_index(self, part, index);
    }
    PyErr_SetString(PyExc_TypeError, "an index is a whole number, a slice or ...: "
                                     "numpy.asarray(array) takes others");
    return false;
}

/* A number, or an array that sees the part. */
static PyObject *finish_part(struct py_array *self, struct part *part)
{
    while (part->axis < self->ndim)
        keep_axis(self, part);
    if (!part->ndim)
        return is_here(self) ? number_at(self->type, part->data) : NULL;
    struct py_array *out = make(py_state_of(py_type_of(self)), self->type, part->ndim, part->shape);
    if (!out)
        return NULL;
    memcpy(out->strides, part->strides, sizeof out->strides);
    out->data = part->data;
    out->base = (struct py_array *)Py_NewRef((PyObject *)(self->base ? self->base : self));
    return (PyObject *)out;
}

static PyObject *array_item(struct py_array *self, Py_ssize_t index)
{
    struct part part = {.data = self->data};
    return take_index(self, &part, index) ? finish_part(self, &part) : NULL;
}

static PyObject *array_subscript(struct py_array *self, PyObject *key)
{
    struct part part = {.data = self->data};
    PY_OWN PyObject *keys = PyTuple_Check(key) ? Py_NewRef(key) : PyTuple_Pack(1, key);
    if (!keys)
        return NULL;
    Py_ssize_t count = PyTuple_Size(keys), dots = 0;
    for (Py_ssize_t i = 0; i < count; i++)
        dots += PyTuple_GetItem(keys, i) == Py_Ellipsis;
    const Py_ssize_t left_out = self->ndim - (count - dots); /* dimensions that ... stands for */
    bool good = left_out >= 0 && dots <= 1;
    if (!good)
        PyErr_Format(PyExc_IndexError, "%zd indices for an array of %d dimensions", count,
                     self->ndim);
    for (Py_ssize_t i = 0; good && i < count; i++) {
        PyObject *item = PyTuple_GetItem(keys, i);
        for (Py_ssize_t n = 0; item == Py_Ellipsis && n < left_out; n++)
            keep_axis(self, &part);
        good = item == Py_Ellipsis || take_key(self, &part, item);
    }
    return good ? finish_part(self, &part) : NULL;
}

static PyObject *list_of_part(const struct py_array *self, int axis, const char *data)
{
    if (axis == self->ndim)
        return number_at(self->type, data);
    PyObject *list = PyList_New(self->shape[axis]);
    for (Py_ssize_t i = 0; list && i < self->shape[axis]; i++)
        py_put(&list, i, list_of_part(self, axis + 1, data + i * self->strides[axis]));
    return list;
}

static PyObject *array_tolist(struct py_array *self, PyObject *Py_UNUSED(unused))
{
    return is_here(self) ? list_of_part(self, 0, self->data) : NULL;
}

/* ---- attributes ---- */

static PyObject *array_shape(struct py_array *self, void *Py_UNUSED(closure))
{
    PyObject *shape = PyTuple_New(self->ndim);
    for (int i = 0; shape && i < self->ndim; i++)
        py_put(&shape, i, PyLong_FromSsize_t(self->shape[i]));
    return shape;
}

static PyObject *array_dtype(struct py_array *self, void *Py_UNUSED(closure))
{
    return PyUnicode_FromString(types[self->type].name);
}

static PyObject *array_nbytes(struct py_array *self, void *Py_UNUSED(closure))
{
    return PyLong_FromSsize_t(size_of(self));
}

static Py_ssize_t array_length(struct py_array *self)
{
    return self->shape[0];
}

static PyObject *array_device(struct py_array *self, void *Py_UNUSED(closure))
{
    const struct py_card *card = card_of(self);
    return card ? PyUnicode_FromFormat("cuda:%u", card->number) : PyUnicode_FromString("cpu");
}

static PyObject *array_repr(struct py_array *self)
{
    const struct py_card *card = card_of(self);
    PY_OWN PyObject *shape = array_shape(self, NULL);
    return !shape ? NULL
           : card ? PyUnicode_FromFormat("<dl2.Array %s %R on cuda:%u>", types[self->type].name,
                                         shape, card->number)
                  : PyUnicode_FromFormat("<dl2.Array %s %R>", types[self->type].name, shape);
}

static PyMethodDef methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))array_dlpack, METH_VARARGS | METH_KEYWORDS,
     "__dlpack__($self, stream=None, *, max_version=None, dl_device=None, copy=None)\n--\n\n"
     "A DLPack capsule of this memory, for torch.from_dlpack() and numpy.from_dlpack(). Of a\n"
     "card's memory, `stream` is the one that will read it; it must live as long as what takes\n"
     "the capsule. When that is let go of, the next batch waits for what the stream holds then."},
    {"__dlpack_device__", array_dlpack_device, METH_NOARGS,
     "__dlpack_device__($self)\n--\n\n(1, 0): memory of the CPU; (2, number): of a card."},
    {"__array__", (PyCFunction)(void (*)(void))array_array, METH_VARARGS | METH_KEYWORDS,
     "__array__($self, dtype=None, *, copy=None)\n--\n\n"
     "A numpy.ndarray of this memory. BufferError for bfloat16, which NumPy doesn't have, and\n"
     "for a card's memory."},
    {"__torch_function__", (PyCFunction)(void (*)(void))array_torch_function,
     METH_CLASS | METH_VARARGS | METH_KEYWORDS,
     "__torch_function__($type, func, types, args=(), kwargs=None)\n--\n\n"
     "Calls a function of PyTorch's with tensors of the arrays' memory."},
    {"tolist", (PyCFunction)array_tolist, METH_NOARGS,
     "tolist($self)\n--\n\nThe numbers as Python has them, in as many lists as dimensions."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"shape", (getter)array_shape, NULL, "The length of each dimension.", NULL},
    {"dtype", (getter)array_dtype, NULL, "'uint8', 'float32', 'bfloat16', 'float16' or 'int64'.",
     NULL},
    {"nbytes", (getter)array_nbytes, NULL, "Bytes in all.", NULL},
    {"device", (getter)array_device, NULL, "Whose memory it is: 'cpu', or a card: 'cuda:0'.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(
    doc,
    "Memory that others see without a copy.\n\n"
    "    numpy.asarray(array)      through the buffer protocol; BufferError for bfloat16\n"
    "    torch.from_dlpack(array)  through DLPack\n"
    "    memoryview(array)\n"
    "    array[2], array[1:3, ..., 0]  a number, or an array of that part\n\n"
    "All see the same bytes, and may write to them. PyTorch's functions and operators take an\n"
    "array for a tensor (tensor == array, torch.stack([array, array])). Comparing two arrays,\n"
    "or an array and numbers, gives what NumPy gives. torch.as_tensor() and torch.tensor() work,\n"
    "but may go through all numbers one by one; torch.asarray() takes any buffer's bytes for\n"
    "float32: use torch.from_dlpack().\n\n"
    "The memory stays as it is while the array or anything that sees it is alive. An array of\n"
    "images is one of its loader's `depth` batches: when its last view dies, the loader fills\n"
    "it anew. Copy what you keep longer.\n\n"
    "With the loader's decode='gpu' or 'hybrid', images lie in a card's memory. DLPack and\n"
    "PyTorch see them there; buffers, NumPy, tolist() and single numbers are a BufferError.\n"
    "Let go of a tensor when the work that reads it is queued on the stream that was current\n"
    "when it was made: the next batch waits for that work, the program does not. Before work on\n"
    "another stream, copy the tensor, or have the first stream wait for that work.");

/* clang-format off */
static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)doc},
    {Py_tp_new, py_refuse_new},
    {Py_tp_dealloc, array_dealloc},
    {Py_tp_repr, array_repr},
    {Py_tp_richcompare, array_compare},
    {Py_tp_hash, array_hash},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_sq_length, array_length},
    {Py_sq_item, array_item},
    {Py_mp_length, array_length},
    {Py_mp_subscript, array_subscript},
    {Py_bf_getbuffer, array_getbuffer},
    {0, NULL},
};
/* clang-format on */

PyType_Spec py_array_spec = {
    .name = "dl2.Array",
    .basicsize = sizeof(struct py_array),
    .flags = Py_TPFLAGS_DEFAULT | PY_IMMUTABLE,
    .slots = slots,
};
