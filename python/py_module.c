/* SPDX-License-Identifier: BSD-2-Clause */
/* The module dl2._core: its types and exception, how errors, names and numbers are translated. */
#include "python/py_dl2.h"

#include "config.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

PyObject *py_refuse_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)args, (void)kwargs;
    return PyErr_Format(PyExc_TypeError, "cannot create %R: dl2.Loader makes such objects", type);
}

struct py_state *py_state_of(PyTypeObject *type)
{
    return PyType_GetModuleState(type);
}

/* OSError's subclass for the errno, with that, what went wrong, and the file. */
static PyObject *raise_system(const struct dl2_error *error)
{
    char what[sizeof error->message];
    const char *const path = error->message + error->path_start;
    const char *after = path + error->path_length;
    after += error->path_length && !strncmp(after, ": ", 2) ? 2 : 0;
    memcpy(what, error->message, error->path_start);
    strcpy(what + error->path_start, after); /* no longer than the message that they are parts of */
    PY_OWN PyObject *text = py_text(what);
    PY_OWN PyObject *name = error->path_length
                                ? PyUnicode_DecodeFSDefaultAndSize(path, error->path_length)
                                : Py_NewRef(Py_None);
    PY_OWN PyObject *raised =
        text && name ? PyObject_CallFunction(PyExc_OSError, "iOO", error->number, text, name)
                     : NULL;
    if (raised)
        PyErr_SetObject((PyObject *)Py_TYPE(raised), raised);
    return NULL;
}

PyObject *py_raise(const struct py_state *state, const struct dl2_error *error)
{
    PyObject *type = state->error;
    if (error->number)
        return raise_system(error);
    if (error->status == DL2_ERR_MEMORY)
        type = PyExc_MemoryError;
    else if (error->status == DL2_ERR_SYSTEM)
        type = PyExc_OSError;
    else if (error->status == DL2_ERR_ARGUMENT)
        type = PyExc_ValueError;
    PY_OWN PyObject *text = py_text(error->message); /* may hold a path that is not UTF-8 */
    if (text)
        PyErr_SetObject(type, text);
    return NULL;
}

PyObject *py_text(const char *text)
{
    return PyUnicode_DecodeFSDefault(text);
}

void py_put(PyObject **list, Py_ssize_t at, PyObject *item)
{
    if (!item || (PyList_Check(*list) ? PyList_SetItem : PyTuple_SetItem)(*list, at, item) < 0)
        Py_CLEAR(*list);
}

void py_put_named(PyObject **dict, const char *name, PyObject *item)
{
    if (*dict && (!item || PyDict_SetItemString(*dict, name, item) < 0))
        Py_CLEAR(*dict);
    Py_XDECREF(item);
}

PyObject *py_struct(PyTypeObject *type, PyObject **fields, int count)
{
    PyObject *out = PyErr_Occurred() ? NULL : PyStructSequence_New(type);
    for (int i = 0; i < count; i++)
        if (out)
            PyStructSequence_SetItem(out, i, fields[i]);
        else
            Py_XDECREF(fields[i]);
    return out;
}

PyObject *py_enter(PyObject *self, PyObject *Py_UNUSED(unused))
{
    return Py_NewRef(self);
}

bool py_warn_of_unusual(const struct dl2_loader_stats *stats, unsigned *told, const char *where)
{
    for (unsigned i = 0; i < DL2_UNUSUAL; i++) {
        const struct dl2_unusual *row = &dl2_unusual_rows()[i];
        const uint64_t count = dl2_unusual_count(stats, row);
        if (!count || *told & 1u << i)
            continue;
        *told |= 1u << i;
        if (PyErr_WarnFormat(PyExc_UserWarning, 1, "%s: %llu %s", where, (unsigned long long)count,
                             row->text) < 0)
            return false;
    }
    return true;
}

int py_choice(const char *what, const char *name, const char *const *names)
{
    for (int i = 0; names[i]; i++)
        if (!strcmp(name, names[i]))
            return i;
    PyObject *all = PyUnicode_FromFormat("'%s'", names[0]);
    for (int i = 1; all && names[i]; i++) {
        PyObject *longer = PyUnicode_FromFormat("%U, '%s'", all, names[i]);
        Py_DECREF(all);
        all = longer;
    }
    if (all)
        PyErr_Format(PyExc_ValueError, "%s is one of %U, not '%s'", what, all, name);
    Py_XDECREF(all);
    return -1;
}

bool py_refuse_argument(const char *function, PyObject *name, const char *near, const char *help)
{
    PyErr_Format(PyExc_TypeError, "%s has no argument %R%s%s%s%s%s", function, name,
                 near ? "; did you mean " : "", near ? near : "", near && help ? " (" : "",
                 near && help ? help : "", near ? (help ? ")?" : "?") : "");
    return false;
}

int py_to_uint64(PyObject *object, void *out)
{
    PY_OWN PyObject *number = PyNumber_Index(object);
    const unsigned long long value = number ? PyLong_AsUnsignedLongLong(number) : 0;
    if (PyErr_Occurred())
        return 0;
    *(uint64_t *)out = value;
    return 1;
}

int py_to_unsigned(PyObject *object, void *out)
{
    uint64_t value;
    if (!py_to_uint64(object, &value))
        return 0;
    if (value > UINT_MAX) {
        PyErr_Format(PyExc_OverflowError, "%llu is too large", (unsigned long long)value);
        return 0;
    }
    *(unsigned *)out = (unsigned)value;
    return 1;
}

/* ---- the module ---- */

static PyTypeObject *add(PyObject *module, PyTypeObject *type)
{
    if (type && PyModule_AddType(module, type) < 0)
        Py_CLEAR(type);
    return type;
}

static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec)
{
    return add(module, (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL));
}

/* The type keeps a copy of its documentation. */
static PyTypeObject *add_loader(PyObject *module)
{
    char *doc = py_loader_doc();
    py_loader_spec.slots[0].pfunc = doc;
    PyTypeObject *type = doc ? add_type(module, &py_loader_spec) : (PyTypeObject *)PyErr_NoMemory();
    py_loader_spec.slots[0].pfunc = NULL;
    free(doc);
    return type;
}

static PyTypeObject *add_struct(PyObject *module, PyStructSequence_Desc *desc)
{
    return add(module, PyStructSequence_NewType(desc));
}

static int module_exec(PyObject *module)
{
    struct py_state *state = PyModule_GetState(module);
    state->error = PyErr_NewExceptionWithDoc(
        "dl2.Error",
        "Something that could not be read, decoded or waited for; the message says what.", NULL,
        NULL);
    if (!state->error || py_add_to_module(module, "Error", state->error) < 0 ||
        PyModule_AddStringConstant(module, "__version__", PACKAGE_VERSION) < 0 ||
        !(state->array = add_type(module, &py_array_spec)) ||
        !(state->dataset = add_type(module, &py_dataset_spec)) ||
        !(state->epoch = add_type(module, &py_epoch_spec)) ||
        !(state->loader = add_loader(module)) ||
        !(state->batch = add_struct(module, &py_batch_desc)) ||
        !(state->sample = add_struct(module, &py_sample_desc)))
        return -1;
    return 0;
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
    struct py_state *state = PyModule_GetState(module);
    Py_VISIT(state->error);
    Py_VISIT(state->array);
    Py_VISIT(state->batch);
    Py_VISIT(state->dataset);
    Py_VISIT(state->epoch);
    Py_VISIT(state->loader);
    Py_VISIT(state->sample);
    return 0;
}

static int module_clear(PyObject *module)
{
    struct py_state *state = PyModule_GetState(module);
    Py_CLEAR(state->error);
    Py_CLEAR(state->array);
    Py_CLEAR(state->batch);
    Py_CLEAR(state->dataset);
    Py_CLEAR(state->epoch);
    Py_CLEAR(state->loader);
    Py_CLEAR(state->sample);
    return 0;
}

static void module_free(void *module)
{
    module_clear(module);
}

PyDoc_STRVAR(doc,
             "Batches of images for training: read, decoded, cropped, resized and flipped by\n"
             "threads of the C library, and seen by NumPy and PyTorch without a copy.\n\n"
             "    for images, labels in dl2.Loader('/data/photos', batch=256):\n"
             "        images = torch.from_dlpack(images)  # uint8 [256, 224, 224, 3]\n"
             "        labels = torch.from_dlpack(labels)  # int64 [256]\n\n"
             "Threads: a loader belongs to one thread at a time; datasets and arrays to any.\n"
             "While a loader waits, other threads run, and Ctrl-C ends the wait.\n"
             "Errors: dl2.Error; ValueError for arguments that make no sense; OSError where the\n"
             "operating system refused, as FileNotFoundError or PermissionError with errno and\n"
             "filename where it said so.");

static PyModuleDef_Slot slots[] = {{Py_mod_exec, module_exec}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "dl2._core",
    .m_doc = doc,
    .m_size = sizeof(struct py_state),
    .m_slots = slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&definition);
}
