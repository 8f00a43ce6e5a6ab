/* SPDX-License-Identifier: BSD-2-Clause */
/* dl2.Loader: epochs of batches. */
#include "python/py_dl2.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* How long a wait may last before Python is asked whether a signal (Ctrl-C) has come. */
#define WAIT_SECONDS 0.1

/* So many waits, 10 seconds, may other threads keep all batches before a warning says so. */
#define WARN_WAITS 100

/* ---- making ---- */

/* The dataset that was given, or that of a path, its split by default what the loader's mode is
 * called. */
static struct py_dataset *open_dataset(const struct py_state *state,
                                       const struct py_arguments *given,
                                       const struct dl2_loader_config *config)
{
    if (py_is_opened(state, given->dataset)) {
        if (given->split == Py_None && given->val_fraction == Py_None)
            return (
                struct py_dataset *)(Py_IS_TYPE(given->dataset, state->dataset)
                                         ? Py_NewRef(given->dataset)
                                         : PyObject_CallFunctionObjArgs((PyObject *)state->dataset,
                                                                        given->dataset, NULL));
        PyErr_SetString(PyExc_ValueError, "split and val_fraction go with a path: a dl2.Dataset "
                                          "was made with its own");
        return NULL;
    }
    PY_OWN PyObject *args = PyTuple_Pack(1, given->dataset), *kwargs = PyDict_New();
    PY_OWN PyObject *split = given->split == Py_None
                                 ? PyUnicode_FromString(config->train ? "train" : "val")
                                 : Py_NewRef(given->split);
    PY_OWN PyObject *mask = config->mask ? PyUnicode_FromString(config->mask) : NULL;
    if (args && kwargs && split && (mask || !config->mask) &&
        PyDict_SetItemString(kwargs, "split", split) == 0 &&
        (given->val_fraction == Py_None ||
         PyDict_SetItemString(kwargs, "val_fraction", given->val_fraction) == 0) &&
        (!mask || PyDict_SetItemString(kwargs, "sidecars", mask) == 0))
        return (struct py_dataset *)PyObject_Call((PyObject *)state->dataset, args, kwargs);
    return NULL;
}

/* dl2_loader_config.slot_alloc: one of the buffers that the argument `memory` makes. */
static void *buffer_alloc(void *context, size_t bytes)
{
    struct py_loader *self = context;
    void *memory = NULL;
    const PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *buffer = PyObject_CallFunction(self->memory, "n", (Py_ssize_t)bytes);
    Py_buffer *view = &self->buffers[self->buffer_count];
    if (buffer && PyObject_GetBuffer(buffer, view, PyBUF_WRITABLE) == 0) {
        if (view->len < (Py_ssize_t)bytes || (uintptr_t)view->buf % sizeof(float)) {
            PyErr_Format(PyExc_ValueError,
                         "memory(%zu) gave a buffer of %zd bytes at %p: it has to hold as many, at "
                         "an address that floats may have",
                         bytes, view->len, view->buf);
            PyBuffer_Release(view);
        } else {
            memory = view->buf;
            self->buffer_count++;
        }
    }
    Py_XDECREF(buffer);
    PyGILState_Release(gil);
    return memory;
}

static void buffer_free(void *context, void *slot)
{
    struct py_loader *self = context;
    const PyGILState_STATE gil = PyGILState_Ensure();
    for (unsigned i = 0; i < self->buffer_count; i++)
        if (self->buffers[i].buf == slot)
            PyBuffer_Release(&self->buffers[i]);
    PyGILState_Release(gil);
}

static bool use_memory(struct py_loader *self, PyObject *memory)
{
    if (memory == Py_None)
        return true;
    if (!PyCallable_Check(memory)) {
        PyErr_SetString(PyExc_TypeError, "memory is a function: memory(bytes) makes a buffer");
        return false;
    }
    self->buffers = PyMem_Calloc(self->settings.loader.depth ? self->settings.loader.depth : 1,
                                 sizeof(Py_buffer));
    if (!self->buffers) {
        PyErr_NoMemory();
        return false;
    }
    self->memory = Py_NewRef(memory);
    self->settings.loader.slot_alloc = buffer_alloc;
    self->settings.loader.slot_free = buffer_free;
    self->settings.loader.slot_context = self;
    return true;
}

/* Puts the text with every setting in place of the argument: it is what states are compared by, and
 * the arguments keep it alive. */
static bool keep_augment(struct py_loader *self)
{
    const char *augment = dl2_loader_augment(self->loader);
    PY_OWN PyObject *text = augment ? PyUnicode_FromString(augment) : NULL;
    if (!augment)
        return true;
    self->settings.loader.augment = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    return self->settings.loader.augment &&
           PyDict_SetItemString(self->kwargs, "augment", text) == 0;
}

/* A number for each sample in new memory, or NULL for None; or the path of a file, which *file
 * keeps. */
static bool to_weights(const struct py_dataset *dataset, PyObject *given, double **out,
                       PyObject **file)
{
    if (given == Py_None)
        return true;
    if (PyUnicode_Check(given) || PyObject_HasAttrString(given, "__fspath__"))
        return PyUnicode_FSConverter(given, file);
    PY_OWN PyObject *tuple = PySequence_Tuple(given);
    const Py_ssize_t count = tuple ? PyTuple_Size(tuple) : 0;
    if (tuple && (size_t)count != dl2_dataset_count(dataset->dataset))
        PyErr_Format(PyExc_ValueError, "sample_weights has %zd numbers for %zu samples", count,
                     dl2_dataset_count(dataset->dataset));
    else if (tuple && !(*out = PyMem_Calloc((size_t)count + 1, sizeof **out)))
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; !PyErr_Occurred() && i < count; i++)
        (*out)[i] = PyFloat_AsDouble(PyTuple_GetItem(tuple, i));
    return !PyErr_Occurred();
}

/* "NAME=COMMAND" for each item of a dict. A new list that keeps the texts; NULL and an exception.
 */
static PyObject *to_external(PyObject *given, struct dl2_external_decoders *out)
{
    PyObject *texts = PyList_New(0), *name, *command;
    Py_ssize_t at = 0;
    if (given != Py_None && !PyDict_Check(given))
        PyErr_SetString(PyExc_TypeError, "external is a dict of commands by codec, such as "
                                         "{'cjxl': 'djxl %i %o'}");
    else if (given != Py_None && PyDict_Size(given) > DL2_EXTERNAL_DECODERS)
        PyErr_Format(PyExc_ValueError, "external has %zd codecs, and %d at most are taken",
                     PyDict_Size(given), DL2_EXTERNAL_DECODERS);
    for (int i = 0;
         !PyErr_Occurred() && given != Py_None && PyDict_Next(given, &at, &name, &command); i++) {
        if (!PyUnicode_Check(name) || !PyUnicode_Check(command)) {
            PyErr_SetString(PyExc_TypeError, "external has names of codecs and commands, which are "
                                             "strings");
            break;
        }
        PY_OWN PyObject *text = PyUnicode_FromFormat("%U=%U", name, command);
        if (text && PyList_Append(texts, text) == 0)
            out->commands[i] = PyUnicode_AsUTF8AndSize(text, NULL);
    }
    if (PyErr_Occurred())
        Py_CLEAR(texts);
    return texts;
}

/* Puts a copy of the dict in its place: the caller may change it later. */
static bool keep_external(const struct py_loader *self, PyObject *given)
{
    PY_OWN PyObject *copy = given == Py_None ? Py_NewRef(Py_None) : PyDict_Copy(given);
    return copy && PyDict_SetItemString(self->kwargs, "external", copy) == 0;
}

/* Sets what was not given for volumes: as many channels as the first that can be read, of float32,
 * in planes. */
static void take_volumes(const struct py_dataset *dataset, PyObject *kwargs,
                         struct dl2_loader_config *config)
{
    struct dl2_volume *volume = NULL;
    if (dl2_dataset_kind(dataset->dataset) != DL2_SAMPLE_VOLUME || !config->volume_depth)
        return;
    if (!kwargs || !PyDict_GetItemString(kwargs, "dtype"))
        config->dtype = DL2_FLOAT32;
    if (!kwargs || !PyDict_GetItemString(kwargs, "layout"))
        config->layout = DL2_NCHW;
    if (kwargs && PyDict_GetItemString(kwargs, "channels"))
        return;
    config->channels = 1;
    for (size_t i = 0; !volume && i < dl2_dataset_count(dataset->dataset); i++)
        if (dl2_dataset_open_volume(dataset->dataset, i, NULL, &volume, NULL) == DL2_OK)
            config->channels = (unsigned)dl2_volume_info(volume)->channels;
    dl2_volume_close(volume);
}

/* `kwargs` become the loader's own. */
static PyObject *make_loader(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    const struct py_state *state = py_state_of(type);
    struct py_settings settings = py_settings_defaults();
    struct py_arguments given;
    if (!py_settings_parse(&settings, &given, args, kwargs))
        return NULL;
    struct py_dataset *dataset = open_dataset(state, &given, &settings.loader);
    struct py_loader *self = dataset ? (struct py_loader *)PyType_GenericAlloc(type, 0) : NULL;
    if (!self || !py_dataset_use(dataset)) {
        Py_XDECREF((PyObject *)dataset);
        Py_XDECREF((PyObject *)self);
        return NULL;
    }
    self->dataset = dataset;
    take_volumes(dataset, kwargs, &settings.loader);
    self->settings = settings;
    self->process = getpid();
    self->args = Py_NewRef(args);
    self->kwargs = Py_NewRef(kwargs);
    struct dl2_error error = DL2_ERROR_INIT;
    int status = DL2_OK;
    double *weights = NULL;
    PY_OWN PyObject *weights_file = NULL;
    PY_OWN PyObject *texts = to_external(given.external, &self->settings.loader.external);
    if (texts && to_weights(dataset, given.weights, &weights, &weights_file) &&
        use_memory(self, given.memory) && py_card_open(state, &self->card, &self->settings)) {
        self->settings.loader.weights = weights;
        self->settings.loader.weights_file = weights_file ? PyBytes_AsString(weights_file) : NULL;
        Py_BEGIN_ALLOW_THREADS status =
            dl2_loader_create(dataset->dataset, &self->settings.loader, &self->loader, &error);
        Py_END_ALLOW_THREADS
    }
    self->settings.loader.weights = NULL; /* the loader keeps what it needs */
    self->settings.loader.weights_file = NULL;
    self->settings.loader.external.commands[0] = NULL;
    PyMem_Free(weights);
    if (status < 0 && !PyErr_Occurred()) /* memory() may have raised one of its own */
        py_raise(state, &error);
    const bool made = status == DL2_OK && !PyErr_Occurred() && self->loader;
    const char *warning = made ? dl2_loader_boxes_warning(self->loader) : NULL;
    const char *note = made ? dl2_loader_shares_note(self->loader) : NULL;
    if (warning)
        PyErr_WarnFormat(PyExc_UserWarning, 1, "boxes: %s", warning);
    if (note && !PyErr_Occurred())
        PyErr_WarnFormat(PyExc_UserWarning, 1, "shares: %s", note);
    if (PyErr_Occurred() || !keep_augment(self) || !keep_external(self, given.external))
        Py_CLEAR(self);
    return (PyObject *)self;
}

static PyObject *loader_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PY_OWN PyObject *joined = py_settings_join(kwargs);
    return joined ? make_loader(type, args, joined) : NULL;
}

/* ---- unmaking ---- */

static void destroy(struct py_loader *self)
{
    struct dl2_loader *loader = self->loader;
    self->loader = NULL;
    if (self->process == getpid()) { /* a fork's child has none of its threads, nor the card */
        Py_BEGIN_ALLOW_THREADS dl2_loader_destroy(loader);
        Py_END_ALLOW_THREADS py_card_close(&self->card);
    }
    if (self->dataset) {
        py_dataset_leave(self->dataset);
        Py_CLEAR(self->dataset);
    }
}

static void loader_dealloc(struct py_loader *self)
{
    PyTypeObject *type = py_type_of(self);
    destroy(self);
    Py_XDECREF(self->last_bad);
    Py_XDECREF(self->memory);
    Py_XDECREF(self->args);
    Py_XDECREF(self->kwargs);
    PyMem_Free(self->buffers);
    PyObject_Free(self);
    Py_DECREF((PyObject *)type);
}

void py_loader_release(struct py_loader *self, struct dl2_batch *batch)
{
    if (self->process == getpid())
        dl2_loader_release(self->loader, batch);
    self->taken--;
    if (self->closing && !self->taken)
        destroy(self);
}

/* False and an exception where nothing can be asked of it now. */
static bool can_use(const struct py_loader *self)
{
    if (self->closing || !self->loader)
        PyErr_SetString(PyExc_ValueError, "the loader is closed");
    else if (self->process != getpid())
        PyErr_SetString(PyExc_RuntimeError,
                        "the loader's threads are in the process that forked this one: make a "
                        "loader here");
    else if (self->waiting)
        PyErr_SetString(PyExc_RuntimeError, "the loader is being used by another thread");
    else
        return true;
    return false;
}

static PyObject *list_of_bad(const struct py_loader *self)
{
    size_t count;
    const char *const *texts = dl2_loader_bad(self->loader, &count);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++)
        py_put(&list, (Py_ssize_t)i, py_text(texts[i]));
    return list;
}

static PyObject *loader_close(struct py_loader *self, PyObject *Py_UNUSED(unused))
{
    if (self->loader && !self->closing) {
        if (!can_use(self) || !(self->last_bad = list_of_bad(self)))
            return NULL;
        dl2_loader_get_stats(self->loader, &self->last_stats);
        py_card_look(&self->card);
        self->closing = true;
        if (!self->taken)
            destroy(self);
    }
    Py_RETURN_NONE;
}

/* ---- epochs ---- */

/* An epoch from a step on; or, with `exactly`, the samples that the position leaves. */
static bool begin(struct py_loader *self, const struct dl2_loader_position *at, bool exactly)
{
    struct dl2_error error = DL2_ERROR_INIT;
    int status;
    self->waiting = true;
    Py_BEGIN_ALLOW_THREADS status =
        exactly ? dl2_loader_resume(self->loader, at, &error)
                : dl2_loader_start_epoch(self->loader, at->epoch, at->step, &error);
    Py_END_ALLOW_THREADS self->waiting = false;
    if (status < 0) {
        py_raise(py_state_of(py_type_of(self)), &error);
        return false;
    }
    self->epoch = at->epoch;
    self->step = at->step;
    self->begun = true;
    self->begins++;
    return true;
}

static PyObject *loader_start_epoch(struct py_loader *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"epoch", "step", NULL};
    struct dl2_loader_position at = {0};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|O&:start_epoch", names, py_to_uint64,
                                     &at.epoch, py_to_uint64, &at.step) ||
        !can_use(self) || !begin(self, &at, false))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *loader_iter(struct py_loader *self)
{
    if (!can_use(self))
        return NULL;
    const struct dl2_loader_position at = {.epoch = self->step ? self->epoch + 1 : self->epoch};
    if (!self->begun && !begin(self, &at, false))
        return NULL;
    struct py_epoch *epoch = PyObject_New(struct py_epoch, py_state_of(py_type_of(self))->epoch);
    if (!epoch)
        return NULL;
    epoch->loader = (struct py_loader *)Py_NewRef((PyObject *)self);
    epoch->number = self->begins;
    return (PyObject *)epoch;
}

/* Threads of Python's, this one too; 0 and an exception. */
static long count_threads(void)
{
    PY_OWN PyObject *threading = PyImport_ImportModule("threading");
    PY_OWN PyObject *count =
        threading ? PyObject_CallMethod(threading, "active_count", NULL) : NULL;
    const long number = count ? PyLong_AsLong(count) : 0;
    return PyErr_Occurred() ? 0 : number;
}

/*
 * All batches are in use, after so many waits. Another thread may let go of one; where there is
 * none, where none has done so for hold_timeout, or where the warning is an error, false and an
 * exception. Threads that hold nothing, such as a progress bar's, cannot be told from others.
 */
static bool may_wait(const struct py_loader *self, unsigned waits)
{
    static const char what_to_do[] = "let go of the arrays and tensors that see them, copy what is "
                                     "to be kept, or make the loader with a larger depth";
    PyObject *type = py_state_of(py_type_of((void *)self))->error;
    const unsigned depth = self->settings.loader.depth;
    const double waited = waits * WAIT_SECONDS;
    const long threads = count_threads();
    if (threads == 1)
        PyErr_Format(type, "all %u batches are still in use: %s", depth, what_to_do);
    else if (threads && waited >= self->settings.hold_timeout)
        PyErr_Format(type,
                     "all %u batches are still in use, and no thread has let go of one for %lu "
                     "seconds (hold_timeout): %s",
                     depth, (unsigned long)waited, what_to_do);
    else if (threads && waits == WARN_WAITS)
        PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                         "all %u batches of a dl2.Loader have been in use for 10 seconds: the next "
                         "one waits for another thread to let go of one; %s",
                         depth, what_to_do);
    return !PyErr_Occurred();
}

/* Until the next batch has an answer; false and an exception where a signal handler raised one, and
 * where there will never be an answer. */
static bool wait_for_next(struct py_loader *self)
{
    int ready = dl2_loader_wait(self->loader, 0);
    bool raised = false;
    unsigned waits = 0;
    self->waiting = true;
    while (!ready && !raised) {
        const bool all_taken = self->taken == self->settings.loader.depth;
        if (all_taken && !waits)
            PyGC_Collect(); /* views in cycles that nobody sees any more */
        if (self->taken == self->settings.loader.depth && !may_wait(self, waits))
            break;
        waits = all_taken ? waits + 1 : 0;
        Py_BEGIN_ALLOW_THREADS ready = dl2_loader_wait(self->loader, WAIT_SECONDS);
        Py_END_ALLOW_THREADS raised = PyErr_CheckSignals() < 0;
    }
    self->waiting = false;
    return ready && !raised;
}

/* A list of bytes, None where a sample has none, of target `number` of each sample. */
static PyObject *list_of_targets(const struct dl2_batch *batch, unsigned number)
{
    PyObject *list = PyList_New(batch->count);
    for (unsigned i = 0; list && i < batch->count; i++) {
        const struct dl2_target *target = &batch->targets[i * batch->target_count + number];
        py_put(&list, i,
               target->data
                   ? PyBytes_FromStringAndSize((const char *)target->data, (Py_ssize_t)target->size)
                   : Py_NewRef(Py_None));
    }
    return list;
}

/* A dict of them by extension. */
static PyObject *dict_of_targets(const struct py_loader *self, const struct dl2_batch *batch)
{
    PyObject *dict = PyDict_New();
    const char *name = dl2_loader_targets(self->loader);
    for (unsigned i = 0; dict && i < batch->target_count; i++) {
        const size_t length = strcspn(name, ",");
        PY_OWN PyObject *key = PyUnicode_FromStringAndSize(name, (Py_ssize_t)length);
        PY_OWN PyObject *list = key ? list_of_targets(batch, i) : NULL;
        if (!list || PyDict_SetItem(dict, key, list) < 0)
            Py_CLEAR(dict);
        name += length + 1;
    }
    return dict;
}

static PyObject *make_batch(struct py_state *state, struct py_loader *self, struct dl2_batch *batch)
{
    int64_t *labels = NULL, *indices = NULL;
    PyObject *fields[10] = {NULL,
                            py_array_of_numbers(state, batch->count, &labels),
                            py_array_of_numbers(state, batch->count, &indices),
                            PyLong_FromUnsignedLongLong(batch->epoch),
                            PyLong_FromUnsignedLongLong(batch->step),
                            dict_of_targets(self, batch),
                            py_array_of_shown(state, batch),
                            NULL,
                            batch->patches ? py_array_of_patches(state, batch)
                                           : Py_NewRef(Py_None)};
    for (unsigned i = 0; labels && indices && i < batch->count; i++) {
        labels[i] = batch->labels[i];
        indices[i] = batch->indices[i];
    }
    fields[0] = py_array_of_images(state, self, batch); /* or gives the batch back */
    fields[7] = !fields[0] || !self->settings.loader.mask ? Py_NewRef(Py_None)
                                                          : py_array_of_masks(state, fields[0]);
    fields[9] = !fields[0] || !self->settings.loader.boxes ? Py_NewRef(Py_None)
                                                           : py_boxes_of(state, fields[0]);
    return py_struct(state->batch, fields, 10);
}

/* Warns, once an epoch, of the samples that could not be read in it. */
static bool warn_of_bad(const struct py_loader *self)
{
    uint64_t samples, bad;
    size_t count;
    dl2_loader_epoch_bad(self->loader, &samples, &bad);
    const char *const *texts = bad ? dl2_loader_bad(self->loader, &count) : NULL;
    if (!texts || !count)
        return true;
    return PyErr_WarnFormat(PyExc_UserWarning, 1,
                            "epoch %llu: %llu of %llu images could not be read, and %s; all are "
                            "named in Loader.bad, for example %s",
                            (unsigned long long)self->epoch, (unsigned long long)bad,
                            (unsigned long long)samples,
                            self->settings.loader.train ? "others took their places"
                                                        : "their labels are -1",
                            texts[0]) == 0;
}

/* Warns once of what batches do not show of the files: after an epoch's first batch, or at its end.
 */
static bool warn_of_unusual(struct py_loader *self)
{
    struct dl2_loader_stats stats;
    char where[48];
    dl2_loader_get_stats(self->loader, &stats);
    snprintf(where, sizeof where, "epoch %llu, so far", (unsigned long long)self->epoch);
    return py_warn_of_unusual(&stats, &self->told, where);
}

static PyObject *epoch_next(struct py_epoch *epoch)
{
    struct py_loader *self = epoch->loader;
    if (!can_use(self))
        return NULL;
    if (epoch->number != self->begins)
        return PyErr_Format(PyExc_RuntimeError, "the loader has begun another epoch since");
    struct py_state *state = py_state_of(py_type_of(self));
    if (!wait_for_next(self))
        return NULL;
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_batch *batch;
    const int status = dl2_loader_next(self->loader, &batch, &error);
    if (status < 0)
        return py_raise(state, &error);
    self->begun = false;
    if (status == 0) {
        if (self->step) { /* the first to say so */
            (void)(warn_of_bad(self) && warn_of_unusual(self));
            self->epoch++;
        }
        self->step = 0;
        return NULL;
    }
    self->epoch = batch->epoch;
    self->step = batch->step + 1;
    if (!batch->step && !warn_of_unusual(self)) {
        dl2_loader_release(self->loader, batch);
        return NULL;
    }
    return make_batch(state, self, batch);
}

static void epoch_dealloc(struct py_epoch *self)
{
    PyTypeObject *type = py_type_of(self);
    Py_DECREF((PyObject *)self->loader);
    PyObject_Free(self);
    Py_DECREF((PyObject *)type);
}

static PyObject *epoch_repr(struct py_epoch *self)
{
    return PyUnicode_FromFormat("<dl2.Epoch%s of %R>",
                                self->number == self->loader->begins ? "" : ", which has ended,",
                                (PyObject *)self->loader);
}

static PyType_Slot epoch_slots[] = {
    {Py_tp_doc, (void *)"The batches that are left of a loader's epoch."},
    {Py_tp_new, py_refuse_new},
    {Py_tp_dealloc, epoch_dealloc},
    {Py_tp_repr, epoch_repr},
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, epoch_next},
    {0, NULL},
};

PyType_Spec py_epoch_spec = {
    .name = "dl2.Epoch",
    .basicsize = sizeof(struct py_epoch),
    .flags = Py_TPFLAGS_DEFAULT | PY_IMMUTABLE,
    .slots = epoch_slots,
};

static Py_ssize_t loader_length(struct py_loader *self)
{
    return can_use(self) ? (Py_ssize_t)dl2_loader_steps(self->loader) : -1;
}

/* ---- state ---- */

static PyObject *list_of(const uint32_t *numbers, uint32_t count)
{
    PyObject *list = PyList_New(count);
    for (uint32_t i = 0; list && i < count; i++)
        py_put(&list, i, PyLong_FromUnsignedLong(numbers[i]));
    return list;
}

static PyObject *loader_state(struct py_loader *self, PyObject *Py_UNUSED(unused))
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_loader_position at = {.epoch = self->epoch};
    if (!can_use(self))
        return NULL;
    if (self->step && dl2_loader_get_position(self->loader, &at, &error) < 0)
        return py_raise(py_state_of(py_type_of(self)), &error);
    self->waiting = true;
    Py_BEGIN_ALLOW_THREADS dl2_loader_get_order(self->loader, &at.order);
    Py_END_ALLOW_THREADS self->waiting = false;
    const struct dl2_loader_order *of = &at.order;
    PyObject *missing = list_of(at.missing, at.missing_count);
    PyObject *settings = missing ? py_settings_get(&self->settings, true) : NULL;
    if (!settings) {
        Py_XDECREF(missing);
        return NULL;
    }
    return Py_BuildValue(
        "{s:K,s:K,s:I,s:N,s:N,"
        "s:{s:K,s:K,s:I,s:I,s:I,s:I,s:I,s:I,s:O,s:O,s:K,s:I,s:I,s:O,s:K}}",
        "epoch", (unsigned long long)at.epoch, "step", (unsigned long long)at.step, "next", at.next,
        "missing", missing, "settings", settings, "order", "seed", (unsigned long long)of->seed,
        "dataset", (unsigned long long)of->dataset, "samples", of->samples, "batch", of->batch,
        "rank", of->rank, "world", of->world, "shuffle_chunk", of->shuffle_chunk, "shuffle_window",
        of->shuffle_window, "train", of->train ? Py_True : Py_False, "drop_last",
        of->drop_last ? Py_True : Py_False, "sample_weights", (unsigned long long)of->weights,
        "repeats", of->repeats, "num_samples", of->draws, "balanced",
        of->balanced ? Py_True : Py_False, "shares", (unsigned long long)of->shares);
}

/* O&: the dict that loader_state() makes of an order. */
static int to_order(PyObject *object, void *out)
{
    static char *names[] = {"seed",        "dataset",   "samples",        "batch",
                            "rank",        "world",     "shuffle_chunk",  "shuffle_window",
                            "train",       "drop_last", "sample_weights", "repeats",
                            "num_samples", "balanced",  "shares",         NULL};
    struct dl2_loader_order *order = out;
    int train, drop_last, balanced = 0; /* a state of an older version has no choice of samples */
    PY_OWN PyObject *none = PyTuple_New(0);
    const bool parsed =
        none && PyDict_Check(object) &&
        PyArg_ParseTupleAndKeywords(
            none, object, "O&O&O&O&O&O&O&O&pp|O&O&O&pO&:resume", names, py_to_uint64, &order->seed,
            py_to_uint64, &order->dataset, py_to_unsigned, &order->samples, py_to_unsigned,
            &order->batch, py_to_unsigned, &order->rank, py_to_unsigned, &order->world,
            py_to_unsigned, &order->shuffle_chunk, py_to_unsigned, &order->shuffle_window, &train,
            &drop_last, py_to_uint64, &order->weights, py_to_unsigned, &order->repeats,
            py_to_unsigned, &order->draws, &balanced, py_to_uint64, &order->shares);
    if (parsed) {
        order->train = train;
        order->drop_last = drop_last;
        order->balanced = balanced;
    } else if (!PyErr_Occurred()) {
        PyErr_SetString(PyExc_TypeError, "resume() takes what state() gave");
    }
    return parsed;
}

/* The numbers of a list in new memory; NULL and an exception. */
static uint32_t *numbers_of(PyObject *list, uint32_t *count)
{
    const Py_ssize_t length = PySequence_Size(list);
    uint32_t *numbers = length < 0 || length > UINT32_MAX
                            ? NULL
                            : PyMem_Calloc((size_t)length + 1, sizeof *numbers);
    for (Py_ssize_t i = 0; numbers && i < length; i++) {
        PY_OWN PyObject *item = PySequence_GetItem(list, i);
        if (!item || !py_to_unsigned(item, &numbers[i])) {
            PyMem_Free(numbers);
            numbers = NULL;
        }
    }
    if (!numbers && !PyErr_Occurred())
        PyErr_NoMemory();
    *count = (uint32_t)length;
    return numbers;
}

static PyObject *loader_resume(struct py_loader *self, PyObject *state)
{
    static char *names[] = {"epoch", "step", "next", "missing", "order", "settings", NULL};
    struct dl2_loader_position position = {0};
    PyObject *missing = NULL, *settings = NULL;
    PY_OWN PyObject *none = PyTuple_New(0);
    const bool parsed =
        none && PyDict_Check(state) &&
        PyArg_ParseTupleAndKeywords(none, state, "O&O&O&OO&|O!:resume", names, py_to_uint64,
                                    &position.epoch, py_to_uint64, &position.step, py_to_unsigned,
                                    &position.next, &missing, to_order, &position.order,
                                    &PyDict_Type, &settings);
    if (!parsed)
        return PyErr_Occurred() ? NULL
                                : PyErr_Format(PyExc_TypeError, "resume() takes what state() gave");
    if (settings && !py_settings_check(&self->settings, settings))
        return NULL;
    uint32_t *numbers = numbers_of(missing, &position.missing_count);
    position.missing = numbers;
    const bool done = numbers && can_use(self) && begin(self, &position, true);
    PyMem_Free(numbers);
    return done ? Py_NewRef(Py_None) : NULL;
}

/* ---- what it has seen ---- */

static const struct {
    const char *name;
    size_t offset;
    bool seconds; /* a double, else a uint64_t */
} stats_fields[] = {
#define SECONDS(field)                                                                             \
    {                                                                                              \
#field, offsetof(struct dl2_loader_stats, field), true                                     \
    }
#define NUMBER(field)                                                                              \
    {                                                                                              \
#field, offsetof(struct dl2_loader_stats, field), false                                    \
    }
    SECONDS(read),         SECONDS(decode),       SECONDS(transform),
    SECONDS(operations),   SECONDS(worker_wait),  SECONDS(consumer_wait),
    NUMBER(images),        NUMBER(bytes),         NUMBER(bad),
    NUMBER(batches),       NUMBER(bytes_read),    NUMBER(requests),
    NUMBER(encoded_hits),  NUMBER(decoded_hits),  NUMBER(frames),
    NUMBER(short_clips),   NUMBER(memory),        NUMBER(padded),
    NUMBER(no_foreground), NUMBER(boxes),         NUMBER(boxes_dropped),
    NUMBER(oblong),        NUMBER(wide_color),    NUMBER(interlaced),
    NUMBER(above_8_bits),  NUMBER(nearly_black),  NUMBER(several_frames),
    NUMBER(dropped_bands), NUMBER(no_label_file), NUMBER(overlapping_clips),
    NUMBER(equal_clips),   NUMBER(decompressed),
};

static PyObject *loader_stats(struct py_loader *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"reset", NULL};
    int reset = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$p:stats", names, &reset) ||
        (!self->last_bad && !can_use(self)))
        return NULL;
    struct dl2_loader_stats stats = self->last_stats;
    if (!self->last_bad) {
        dl2_loader_get_stats(self->loader, &stats);
        py_card_look(&self->card);
    }
    PyObject *card = py_card_stats(&self->card, stats.finish);
    if (reset && self->last_bad)
        self->last_stats = (struct dl2_loader_stats){.memory = stats.memory};
    else if (reset)
        dl2_loader_stats_reset(self->loader);
    if (reset)
        py_card_reset(&self->card);
    PyObject *dict = PyDict_New();
    py_put_named(&dict, "card", card);
    for (size_t i = 0; dict && i < sizeof stats_fields / sizeof *stats_fields; i++) {
        const void *field = (const char *)&stats + stats_fields[i].offset;
        py_put_named(&dict, stats_fields[i].name,
                     stats_fields[i].seconds
                         ? PyFloat_FromDouble(*(const double *)field)
                         : PyLong_FromUnsignedLongLong(*(const uint64_t *)field));
    }
    return dict;
}

static PyObject *loader_bad(struct py_loader *self, void *Py_UNUSED(closure))
{
    if (self->last_bad)
        return PySequence_List(self->last_bad);
    return can_use(self) ? list_of_bad(self) : NULL;
}

static PyObject *loader_box_classes(struct py_loader *self, void *Py_UNUSED(closure))
{
    PyObject *dict = can_use(self) ? PyDict_New() : NULL;
    int64_t label;
    const char *name;
    for (size_t i = 0; dict && dl2_loader_box_class(self->loader, i, &label, &name); i++) {
        PY_OWN PyObject *key = PyLong_FromLongLong(label), *text = py_text(name);
        if (!key || !text || PyDict_SetItem(dict, key, text) < 0)
            Py_CLEAR(dict);
    }
    return dict;
}

static PyObject *loader_settings(struct py_loader *self, void *Py_UNUSED(closure))
{
    PyObject *dict = py_settings_get(&self->settings, false);
    PyObject *external = PyDict_GetItemString(self->kwargs, "external");
    PyObject *copy = external == Py_None ? Py_NewRef(Py_None) : PyDict_Copy(external);
    py_put_named(&dict, "external", copy);
    return dict;
}

static PyObject *loader_repr(struct py_loader *self)
{
    PY_OWN PyObject *dataset = PyObject_Repr(self->dataset ? (PyObject *)self->dataset : Py_None);
    PY_OWN PyObject *size = py_size_of(&self->settings.loader);
    const struct dl2_loader_config *config = &self->settings.loader;
    PY_OWN PyObject *where =
        self->card.decoder
            ? PyUnicode_FromFormat("%s on cuda:%u, ", config->decoder_shares ? "hybrid" : "decoded",
                                   self->card.number)
            : PyUnicode_FromString("");
    PY_OWN PyObject *seed =
        config->train ? PyUnicode_FromFormat("seed %llu, ", (unsigned long long)config->seed)
                      : PyUnicode_FromString("");
    return !dataset || !size || !where || !seed ? NULL
           : self->loader && !self->closing
               ? PyUnicode_FromFormat("<dl2.Loader %s, batch %u, image_size %S, %U%Uat epoch %llu "
                                      "step %llu of %llu: %U>",
                                      config->train ? "training" : "validation", config->batch,
                                      size, seed, where, (unsigned long long)self->epoch,
                                      (unsigned long long)self->step,
                                      (unsigned long long)dl2_loader_steps(self->loader), dataset)
               : PyUnicode_FromString("<dl2.Loader, closed>");
}

/* For pickle: a loader of the same arguments, which __setstate__ puts where this one is. */
static PyObject *loader_getnewargs(struct py_loader *self, PyObject *Py_UNUSED(unused))
{
    return PyTuple_Pack(2, self->args, self->kwargs);
}

static PyObject *loader_dataset(struct py_loader *self, void *Py_UNUSED(closure))
{
    return Py_NewRef(self->dataset ? (PyObject *)self->dataset : Py_None);
}

/* For dl2.torch.Loader, whose own arguments are the others. */
static PyObject *loader_check_argument(PyObject *Py_UNUSED(unused), PyObject *args)
{
    PyObject *name, *others;
    if (!PyArg_ParseTuple(args, "UO!:_check_argument", &name, &PyTuple_Type, &others) ||
        !py_check_argument(name, others))
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"start_epoch", (PyCFunction)(void (*)(void))loader_start_epoch, METH_VARARGS | METH_KEYWORDS,
     "start_epoch($self, epoch, step=0)\n--\n\n"
     "Begins an epoch at a step, at once; the next `for` goes through it. What is left of the\n"
     "last one is dropped. ValueError for a step beyond len(loader). Where batching is not\n"
     "'strict', use resume() for steps but 0."},
    {"state", (PyCFunction)loader_state, METH_NOARGS,
     "state($self)\n--\n\n"
     "Where the loader stands, for resume(): a dict of few numbers, 'epoch' and 'step' of the\n"
     "batch that comes next, where batching is not 'strict' what was skipped so far, and in\n"
     "'order' what decides the order of epochs: seed, batch and the like, and a hash of the\n"
     "samples' keys, in 'settings' what decides the images."},
    {"resume", (PyCFunction)loader_resume, METH_O,
     "resume($self, state, /)\n--\n\n"
     "Goes on where state() was asked, in this or another process: a loader made with the same\n"
     "arguments gives the batches that were still to come. ValueError, naming what differs, for\n"
     "a state of another dataset, seed, batch, rank, image_size or the like. A state without\n"
     "'settings' goes on with other images: del state['settings']."},
    {"stats", (PyCFunction)(void (*)(void))loader_stats, METH_VARARGS | METH_KEYWORDS,
     "stats($self, *, reset=False)\n--\n\n"
     "A dict of what was done since the last reset. Seconds: read, decode, transform,\n"
     "operations, worker_wait (summed over the workers), consumer_wait (this side's).\n"
     "Numbers: images, bytes, bad, batches, bytes_read, requests, encoded_hits, decoded_hits,\n"
     "memory; of clips\n"
     "frames, short_clips that had fewer than asked for, and of val_clips videos with\n"
     "overlapping_clips, or with equal_clips; of videos oblong, whose pixels\n"
     "are not square, wide_color, that are HDR or of a wide gamut, and interlaced: they stay\n"
     "so; of images above_8_bits, loaded at 8, nearly_black, of 16 bits and no value above a\n"
     "sixteenth of the range, several_frames, of which the first is loaded, and dropped_bands;\n"
     "of label files of boxes no_label_file, images without one, which have no boxes;\n"
     "of volumes padded, that were smaller than the patch, no_foreground, that had none to\n"
     "show, and decompressed, of .nii.gz that no cache keeps. 'card': None, or with decode 'gpu' "
     "or 'hybrid' a dict of what\n"
     "the card decoded: name, images, by_engines, refused, refusal (why the first was, or\n"
     "None), bytes, pixels, and in seconds decode, transform, finish. After close(), what it\n"
     "was then."},
    {"_check_argument", loader_check_argument, METH_VARARGS | METH_STATIC,
     "TypeError for a name that no argument has; one of the others may be meant."},
    {"_repr_html_", py_sheet, METH_NOARGS,
     "For notebooks: the loader, and a contact sheet of its dataset."},
    {"__getnewargs_ex__", (PyCFunction)loader_getnewargs, METH_NOARGS, NULL},
    {"__getstate__", (PyCFunction)loader_state, METH_NOARGS, NULL},
    {"__setstate__", (PyCFunction)loader_resume, METH_O, NULL},
    {"close", (PyCFunction)loader_close, METH_NOARGS,
     "close($self)\n--\n\n"
     "Ends the workers and frees the memory, once no batch is seen any more. `with` does it,\n"
     "too."},
    {"__enter__", py_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)loader_close, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"bad", (getter)loader_bad, NULL,
     "The samples that could not be read or decoded so far, each once: 'path: stage: reason'.\n"
     "After close(), those found until then.",
     NULL},
    {"box_classes", (getter)loader_box_classes, NULL,
     "With `boxes`: a new dict of the names of their classes by label, from COCO's categories,\n"
     "data.yaml or classes.txt; without names it is empty.",
     NULL},
    {"dataset", (getter)loader_dataset, NULL, "The dl2.Dataset that is read.", NULL},
    {"settings", (getter)loader_settings, NULL,
     "The arguments that the loader was made with, and the defaults of the others: a new dict.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* clang-format off */
static PyType_Slot slots[] = {
    {Py_tp_doc, NULL}, /* py_loader_doc() */
    {Py_tp_new, loader_new},
    {Py_tp_dealloc, loader_dealloc},
    {Py_tp_repr, loader_repr},
    {Py_tp_iter, loader_iter},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_sq_length, loader_length},
    {0, NULL},
};
/* clang-format on */

PyType_Spec py_loader_spec = {
    .name = "dl2.Loader",
    .basicsize = sizeof(struct py_loader),
    .flags = Py_TPFLAGS_DEFAULT | PY_IMMUTABLE,
    .slots = slots,
};

static PyStructSequence_Field batch_fields[] = {
    {"images",
     "dl2.Array [n, height, width, channels] or [n, channels, height, width]; of clips [n, frames, "
     "height, width, channels] or [n, channels, frames, height, width], and of volumes so with "
     "depth for frames"},
    {"labels", "dl2.Array, int64 [n]; -1: not to be counted"},
    {"indices", "dl2.Array, int64 [n]: the samples' numbers in the dataset"},
    {"epoch", "the epoch it belongs to"},
    {"step", "its number within the epoch"},
    {"targets", "dict: for each of the loader's targets a list of bytes, None where there is none"},
    {"crop_boxes",
     "dl2.Array, float32 [n, 5]: left, top, right and bottom of what is shown, in pixels of "
     "the upright image, and 1 where it is flipped"},
    {"masks", "dl2.Array, uint8 [n, height, width], of volumes [n, depth, height, width], or None "
              "without the setting mask"},
    {"patches",
     "of volumes, dl2.Array, int64 [n, 6]: the first voxel that is shown, and the size of "
     "the volume, each in depth, height and width; below 0 where the volume is smaller "
     "than the patch. Else None"},
    {"boxes",
     "with the setting boxes, a list of a dict for each sample: boxes, labels, image_id, area, "
     "iscrowd, masks; see there. Else None"},
    {NULL, NULL},
};

PyStructSequence_Desc py_batch_desc = {
    .name = "dl2.Batch",
    .doc = "A batch: unpacks into images and labels, and has indices, epoch, step and targets "
           "besides.",
    .fields = batch_fields,
    .n_in_sequence = 2,
};
