/*
 * dl2.Array: memory that others see through the buffer protocol and DLPack, without a copy.
 *
 * Whoever sees it holds the array: a buffer by its `obj`, a DLPack tensor by its manager_ctx. So
 * the array dies with its last view, and the batch's memory goes back to the loader then.
 */
#include "python/py_dl2.h"

#include <dlpack/dlpack.h>

struct py_array {
    PyObject_HEAD struct py_loader *loader; /* whose batch this is, or NULL: `data` is our own */
    struct dl2_batch *batch;
    void *data;
    enum py_type type;
    int ndim;
    Py_ssize_t shape[4], strides[4]; /* strides in bytes */
};

static const struct {
    const char *name, *format; /* NULL: the buffer protocol has none */
    uint8_t bytes, dlpack;
} types[] = {
    [PY_UINT8] = {"uint8", "B", 1, kDLUInt},
    [PY_FLOAT32] = {"float32", "f", 4, kDLFloat},
    [PY_BFLOAT16] = {"bfloat16", NULL, 2, kDLBfloat},
    [PY_INT64] = {"int64", "q", 8, kDLInt},
};

static struct py_array *make(const struct py_state *state, enum py_type type, int ndim,
                             const Py_ssize_t *shape)
{
    struct py_array *self = PyObject_New(struct py_array, state->array);
    if (!self)
        return NULL;
    Py_ssize_t stride = types[type].bytes;
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

PyObject *py_array_of_images(const struct py_state *state, struct py_loader *loader,
                             struct dl2_batch *batch)
{
    static const enum py_type of_dtype[] = {
        [DL2_UINT8] = PY_UINT8, [DL2_FLOAT32] = PY_FLOAT32, [DL2_BFLOAT16] = PY_BFLOAT16};
    const struct dl2_loader_config *config = &loader->config;
    const Py_ssize_t side = config->image_size, channels = config->channels;
    const Py_ssize_t nhwc[] = {batch->count, side, side, channels};
    const Py_ssize_t nchw[] = {batch->count, channels, side, side};
    struct py_array *self =
        make(state, of_dtype[config->dtype], 4, config->layout == DL2_NHWC ? nhwc : nchw);
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

PyObject *py_array_of_numbers(const struct py_state *state, Py_ssize_t count, int64_t **data)
{
    struct py_array *self = make(state, PY_INT64, 1, &count);
    if (!self)
        return NULL;
    self->data = PyMem_Calloc(count ? (size_t)count : 1, sizeof **data);
    if (!self->data) {
        Py_DECREF((PyObject *)self);
        return PyErr_NoMemory();
    }
    *data = self->data;
    return (PyObject *)self;
}

static void array_dealloc(struct py_array *self)
{
    PyTypeObject *type = py_type_of(self);
    if (self->loader) {
        py_loader_give_back(self->loader, self->batch);
        Py_DECREF((PyObject *)self->loader);
    } else {
        PyMem_Free(self->data);
    }
    PyObject_Free(self);
    Py_DECREF((PyObject *)type);
}

static Py_ssize_t size_of(const struct py_array *self)
{
    return self->ndim ? self->shape[0] * self->strides[0] : 0;
}

/* ---- the buffer protocol ---- */

static int array_getbuffer(struct py_array *self, Py_buffer *view, int flags)
{
    view->obj = NULL;
    if (!types[self->type].format) {
        PyErr_Format(PyExc_BufferError,
                     "buffers have no format for %s: use DLPack (torch.from_dlpack)",
                     types[self->type].name);
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
        .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? self->strides : NULL,
    };
    return 0;
}

/* ---- DLPack ---- */

struct tensor {
    DLManagedTensor managed;
    int64_t shape[4], strides[4]; /* strides in elements */
};

/* Called by whoever took the tensor, on any of its threads, or never. */
static void tensor_delete(DLManagedTensor *managed)
{
    if (!Py_IsInitialized()) /* a tensor that outlives Python: the process is about to end */
        return;
    const PyGILState_STATE gil = PyGILState_Ensure();
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

static int check_request(PyObject *stream, PyObject *device, PyObject *copy)
{
    int type = kDLCPU, number = 0;
    if (stream != Py_None) {
        PyErr_SetString(PyExc_BufferError, "memory of the CPU has no streams: stream must be None");
        return -1;
    }
    if (device != Py_None && !PyArg_ParseTuple(device, "ii", &type, &number))
        return -1;
    if (type != kDLCPU || number != 0 || copy == Py_True) {
        PyErr_SetString(PyExc_BufferError, "only the CPU's memory as it is, without a copy");
        return -1;
    }
    return 0;
}

static PyObject *array_dlpack(struct py_array *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$OOO:__dlpack__", names, &stream, &version,
                                     &device, &copy) ||
        check_request(stream, device, copy) < 0)
        return NULL;
    struct tensor *tensor = PyMem_Calloc(1, sizeof *tensor);
    if (!tensor)
        return PyErr_NoMemory();
    for (int i = 0; i < self->ndim; i++) {
        tensor->shape[i] = self->shape[i];
        tensor->strides[i] = self->strides[i] / types[self->type].bytes;
    }
    tensor->managed = (DLManagedTensor){
        .dl_tensor = {.data = self->data,
                      .device = {kDLCPU, 0},
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

static PyObject *array_dlpack_device(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return Py_BuildValue("(ii)", kDLCPU, 0);
}

/* ---- attributes ---- */

static PyObject *array_shape(struct py_array *self, void *closure)
{
    (void)closure;
    PyObject *shape = PyTuple_New(self->ndim);
    for (int i = 0; shape && i < self->ndim; i++) {
        PyObject *number = PyLong_FromSsize_t(self->shape[i]);
        if (!number || PyTuple_SetItem(shape, i, number) < 0)
            Py_CLEAR(shape);
    }
    return shape;
}

static PyObject *array_dtype(struct py_array *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(types[self->type].name);
}

static PyObject *array_nbytes(struct py_array *self, void *closure)
{
    (void)closure;
    return PyLong_FromSsize_t(size_of(self));
}

static Py_ssize_t array_length(struct py_array *self)
{
    return self->shape[0];
}

static PyObject *array_repr(struct py_array *self)
{
    PyObject *shape = array_shape(self, NULL);
    PyObject *text =
        shape ? PyUnicode_FromFormat("<dl2.Array %s %R>", types[self->type].name, shape) : NULL;
    Py_XDECREF(shape);
    return text;
}

static PyMethodDef methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))array_dlpack, METH_VARARGS | METH_KEYWORDS,
     "__dlpack__($self, stream=None, *, max_version=None, dl_device=None, copy=None)\n--\n\n"
     "A DLPack capsule of this memory, for torch.from_dlpack() and numpy.from_dlpack()."},
    {"__dlpack_device__", array_dlpack_device, METH_NOARGS,
     "__dlpack_device__($self)\n--\n\n(1, 0): memory of the CPU."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"shape", (getter)array_shape, NULL, "The length of each dimension.", NULL},
    {"dtype", (getter)array_dtype, NULL, "'uint8', 'float32', 'bfloat16' or 'int64'.", NULL},
    {"nbytes", (getter)array_nbytes, NULL, "Bytes in all.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(doc, "Memory to be seen by others without a copy, dense and in C order.\n\n"
                  "    numpy.asarray(array)     through the buffer protocol, not bfloat16\n"
                  "    torch.from_dlpack(array) through DLPack\n"
                  "    memoryview(array)\n\n"
                  "All see the same bytes, and may write to them. The memory stays as it is while\n"
                  "the array or anything that sees it is alive. An array of images is one of its\n"
                  "loader's `depth` batches: when its last view dies, the loader fills it anew.\n"
                  "What is to be kept longer is to be copied.");

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)doc},           {Py_tp_dealloc, array_dealloc},
    {Py_tp_repr, array_repr},           {Py_tp_methods, methods},
    {Py_tp_getset, attributes},         {Py_sq_length, array_length},
    {Py_bf_getbuffer, array_getbuffer}, {0, NULL},
};

PyType_Spec py_array_spec = {
    .name = "dl2.Array",
    .basicsize = sizeof(struct py_array),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
