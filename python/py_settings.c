/* SPDX-License-Identifier: BSD-2-Clause */
/* The settings of a dl2.Loader, from arguments, and to loader.settings and the loader's state. */
#include "python/py_dl2.h"

#include "common/nearest.h"

#include <stddef.h>
#include <string.h>

#define OBJECT DL2_SETTING_POINTER /* of py_arguments, not of py_settings */

/* ---- from Python ---- */

/* A setting's argument, borrowed; NULL: not given, or, with an exception, given twice. */
static PyObject *argument(PyObject *args, PyObject *kwargs, int number)
{
    const char *name = py_argument_at(number)->name;
    PyObject *named = kwargs ? PyDict_GetItemString(kwargs, name) : NULL;
    if (number >= PyTuple_Size(args))
        return named;
    if (named)
        PyErr_Format(PyExc_TypeError, "Loader() got two values for %s", name);
    return PyTuple_GetItem(args, number);
}

bool py_check_argument(PyObject *name, PyObject *others)
{
    struct dl2_nearest nearest = {.given = PyUnicode_AsUTF8AndSize(name, NULL)};
    const struct dl2_loader_setting *row, *best = NULL;
    for (int i = 0; nearest.given && (row = py_argument_at(i)); i++) {
        if (strcmp(row->name, nearest.given) == 0)
            return true;
        if (dl2_nearest_try(&nearest, row->name, row->also))
            best = row;
    }
    for (Py_ssize_t i = 0; nearest.given && others && i < PyTuple_Size(others); i++) {
        const char *other = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(others, i), NULL);
        if (other && dl2_nearest_try(&nearest, other, NULL))
            best = NULL;
    }
    return !PyErr_Occurred() &&
           py_refuse_argument("Loader()", name, nearest.name, best ? best->help : NULL);
}

static bool check_names(PyObject *args, PyObject *kwargs)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    if (PyTuple_Size(args) > PY_POSITIONS) {
        PyErr_Format(PyExc_TypeError,
                     "Loader() takes %d arguments without a name (dataset, batch, image_size), "
                     "not %zd",
                     PY_POSITIONS, PyTuple_Size(args));
        return false;
    }
    while (kwargs && PyDict_Next(kwargs, &at, &key, &value))
        if (!py_check_argument(key, NULL))
            return false;
    return true;
}

/* Height, width and depth of one number, two, or three. Two equal sides are one. */
static bool to_size(const char *what, PyObject *object, unsigned out[3])
{
    out[1] = out[2] = 0;
    if (!PySequence_Check(object))
        return py_to_unsigned(object, out);
    PY_OWN PyObject *pair = PySequence_Tuple(object);
    const Py_ssize_t count = pair ? PyTuple_Size(pair) : 0;
    if (pair && count != 2 && count != 3)
        PyErr_Format(PyExc_TypeError,
                     "%s is one number, height and width, or of volumes depth, height and width, "
                     "not %zd numbers",
                     what, count);
    for (int i = 0; i < count && !PyErr_Occurred(); i++) {
        unsigned *side = &out[count == 2 ? i : (i + 2) % 3];
        if (py_to_unsigned(PyTuple_GetItem(pair, i), side) && (!*side || *side > 65536))
            PyErr_Format(PyExc_ValueError, "%s must be 1 to 65536", what);
    }
    if (out[1] == out[0])
        out[1] = 0;
    return !PyErr_Occurred();
}

static bool to_range(const char *what, PyObject *object, double out[2])
{
    PY_OWN PyObject *pair = PySequence_Tuple(object);
    if (pair && PyTuple_Size(pair) != 2)
        PyErr_Format(PyExc_TypeError, "%s is two numbers, not %zd", what, PyTuple_Size(pair));
    for (int i = 0; i < 2 && !PyErr_Occurred(); i++)
        out[i] = PyFloat_AsDouble(PyTuple_GetItem(pair, i));
    return !PyErr_Occurred();
}

/* A number for each dataset, from a sequence or None. */
static bool to_shares(const char *what, PyObject *object, struct dl2_dataset_shares *out)
{
    if (object == Py_None)
        return true;
    PY_OWN PyObject *tuple = PySequence_Tuple(object);
    const Py_ssize_t count = tuple ? PyTuple_Size(tuple) : 0;
    if (tuple && (!count || count > DL2_DATASETS_MAX))
        PyErr_Format(PyExc_ValueError, "%s has %zd numbers: one for each dataset, at most %d", what,
                     count, DL2_DATASETS_MAX);
    for (Py_ssize_t i = 0; i < count && !PyErr_Occurred(); i++)
        out->of[i] = PyFloat_AsDouble(PyTuple_GetItem(tuple, i));
    out->count = (unsigned)count;
    return !PyErr_Occurred();
}

/* `what` of each channel, from a sequence or None. */
static bool to_channels(const char *what, PyObject *sequence, unsigned channels, float out[3])
{
    if (sequence == Py_None)
        return true;
    const Py_ssize_t count = PySequence_Size(sequence);
    if (count < 0)
        return false;
    if (count != (Py_ssize_t)channels) {
        PyErr_Format(PyExc_ValueError, "%s has %zd numbers for %u channels", what, count, channels);
        return false;
    }
    for (Py_ssize_t i = 0; i < count && i < 3; i++) {
        PY_OWN PyObject *item = PySequence_GetItem(sequence, i);
        out[i] = item ? (float)PyFloat_AsDouble(item) : 0;
        if (PyErr_Occurred())
            return false;
    }
    return true;
}

static bool to_choice(const struct dl2_loader_setting *setting, PyObject *object, unsigned *out)
{
    PY_OWN PyObject *name = PyUnicode_Check(object) ? PyUnicode_AsUTF8String(object) : NULL;
    if (!name && !PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "%s is a string", setting->name);
    const int choice = name ? py_choice(setting->name, PyBytes_AsString(name), setting->words) : -1;
    *out = choice < 0 ? 0 : (unsigned)choice;
    return choice >= 0;
}

/* The text lives as long as the argument. */
static bool to_text(const struct dl2_loader_setting *setting, PyObject *object, const char **out)
{
    if (object == Py_None)
        return true;
    if (!PyUnicode_Check(object)) {
        PyErr_Format(PyExc_TypeError, "%s is a string", setting->name);
        return false;
    }
    *out = PyUnicode_AsUTF8AndSize(object, NULL);
    return *out != NULL;
}

static bool take(const struct dl2_loader_setting *setting, PyObject *object,
                 struct py_settings *into)
{
    void *out = (char *)into + setting->offset;
    int truth;
    switch (setting->kind) {
    case DL2_SETTING_UNSIGNED:
        return py_to_unsigned(object, out);
    case DL2_SETTING_SIZE:
        return to_size(setting->name, object, out);
    case DL2_SETTING_UINT64:
        return py_to_uint64(object, out);
    case DL2_SETTING_BOOL:
        truth = PyObject_IsTrue(object);
        *(bool *)out = truth == 1;
        return truth >= 0;
    case DL2_SETTING_NUMBER:
        *(double *)out = PyFloat_AsDouble(object);
        return !PyErr_Occurred();
    case DL2_SETTING_RANGE:
        return to_range(setting->name, object, out);
    case DL2_SETTING_CHANNELS:
        return to_channels(setting->name, object, into->loader.channels, out);
    case DL2_SETTING_SHARES:
        return to_shares(setting->name, object, out);
    case DL2_SETTING_CHOICE:
        return to_choice(setting, object, out);
    case DL2_SETTING_TEXT:
    case DL2_SETTING_NAMES: /* py_settings_join() has joined them */
        return to_text(setting, object, out);
    default:
        return true;
    }
}

/* Conversions by Python raise without a word of which argument it was. */
static void name_setting(const char *name, PyObject *given)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PY_OWN PyObject *text = value ? PyObject_Str(value) : NULL;
    const char *message = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    if (PyErr_GivenExceptionMatches(type, PyExc_OverflowError))
        PyErr_Format(PyExc_ValueError, "%s: %R is out of range", name, given);
    else if (message && PyErr_GivenExceptionMatches(type, PyExc_TypeError) &&
             strncmp(message, name, strlen(name)) != 0)
        PyErr_Format(PyExc_TypeError, "%s: %s", name, message);
    if (!PyErr_Occurred()) {
        PyErr_Restore(type, value, trace);
        return;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
}

struct source {
    PyObject *kwargs;
    const struct dl2_loader_config *config;
};

/* Defaults that are values, too, say nothing of whether they were given; False says no, and so does
 * an empty range. */
static bool is_given(const void *context, const struct dl2_loader_setting *setting)
{
    const struct source *source = context;
    const void *at = (const char *)source->config + setting->offset;
    const bool is_flag = setting->kind == DL2_SETTING_BOOL;
    const double *range = setting->kind == DL2_SETTING_RANGE ? at : NULL;
    if (range && range[0] == 0 && range[1] == 0)
        return false;
    if (setting->kind != DL2_SETTING_RANGE && setting->kind != DL2_SETTING_CHANNELS && !is_flag)
        return dl2_loader_is_set(source->config, setting);
    PyObject *value = source->kwargs ? PyDict_GetItemString(source->kwargs, setting->name) : NULL;
    return value && value != Py_None && (!is_flag || *(const bool *)at);
}

static void translate(const void *context, const struct dl2_loader_setting *setting, bool cleared,
                      char text[64])
{
    (void)context;
    if (strcmp(setting->name, "decoder") == 0)
        snprintf(text, 64, "decode 'gpu' or 'hybrid'");
    else
        snprintf(text, 64, "%s%s", setting->name, cleared ? "=False" : "");
}

/* The rules of the library, before files are opened and a card is looked for. */
static bool check_loader(const struct py_settings *given, PyObject *kwargs)
{
    const struct source context = {kwargs, &given->loader};
    const struct dl2_loader_source source = {
        .decodes_on_card = given->decode.mode != DL2_DECODE_CPU,
        .given = is_given,
        .translate = translate,
        .context = &context,
    };
    struct dl2_loader_fault fault;
    struct dl2_error error = DL2_ERROR_INIT;
    if (dl2_loader_check(&given->loader, &source, &fault) == DL2_OK)
        return true;
    dl2_loader_explain(&fault, &source, &error);
    PyErr_SetString(PyExc_ValueError, error.message);
    return false;
}

/* What decoding on a card needs that is no setting of the library's. */
static bool check_decode(const struct py_settings *given, const struct py_arguments *arguments)
{
    const bool cpu = given->decode.mode == DL2_DECODE_CPU;
    if (cpu && (given->decode.input || given->decode.engine || given->device))
        PyErr_SetString(PyExc_ValueError, "gpu_input, gpu_engine and device have no effect without "
                                          "decode 'gpu' or 'hybrid'");
    else if (!cpu && arguments->memory != Py_None)
        PyErr_SetString(PyExc_ValueError, "memory has no effect with decode 'gpu' or 'hybrid': the "
                                          "images lie in the card's memory");
    else
        return true;
    return false;
}

PyObject *py_settings_join(PyObject *kwargs)
{
    const struct dl2_loader_setting *setting;
    PyObject *copy = kwargs ? PyDict_Copy(kwargs) : PyDict_New();
    PY_OWN PyObject *comma = PyUnicode_FromString(",");
    for (int i = 0; copy && !PyErr_Occurred() && (setting = py_argument_at(i)); i++) {
        PyObject *given = PyDict_GetItemString(copy, setting->name);
        if (setting->kind != DL2_SETTING_NAMES || !given || given == Py_None ||
            PyUnicode_Check(given))
            continue;
        PY_OWN PyObject *text =
            PyObject_Length(given) == 0 ? Py_NewRef(Py_None) : PyUnicode_Join(comma, given);
        if (text)
            PyDict_SetItemString(copy, setting->name, text);
    }
    if (PyErr_Occurred())
        Py_CLEAR(copy);
    return copy;
}

bool py_settings_parse(struct py_settings *into, struct py_arguments *arguments, PyObject *args,
                       PyObject *kwargs)
{
    const struct dl2_loader_setting *setting;
    if (!check_names(args, kwargs))
        return false;
    for (int pass = 0; pass < 2; pass++) /* how many channels there are comes before those of one */
        for (int i = 0; (setting = py_argument_at(i)); i++) {
            PyObject *given = argument(args, kwargs, i);
            if (PyErr_Occurred())
                return false;
            if (setting->kind == OBJECT)
                *(PyObject **)((char *)arguments + setting->offset) = given ? given : Py_None;
            else if (given && (setting->kind == DL2_SETTING_CHANNELS) == (pass == 1) &&
                     !take(setting, given, into)) {
                name_setting(setting->name, given);
                return false;
            }
        }
    if (arguments->dataset == Py_None) {
        PyErr_SetString(PyExc_TypeError,
                        "Loader() needs a dataset: a path, a dl2.Dataset, or a list of these");
        return false;
    }
    if (!(into->hold_timeout >= 0)) {
        PyErr_SetString(PyExc_ValueError, "hold_timeout is a number of seconds, 0 or above");
        return false;
    }
    return check_decode(into, arguments) && check_loader(into, kwargs);
}

/* ---- to Python ---- */

/* The shortest number that is this float: 0.485, not 0.48500001430511475. */
static PyObject *shortest(float value)
{
    double number = (double)value;
    for (int digits = 6; digits < 10; digits++) {
        char *text = PyOS_double_to_string((double)value, 'g', digits, 0, NULL);
        if (!text)
            return NULL;
        number = PyOS_string_to_double(text, NULL, NULL);
        PyMem_Free(text);
        if ((float)number == value)
            break;
    }
    return PyErr_Occurred() ? NULL : PyFloat_FromDouble(number);
}

static PyObject *channels_of(const struct dl2_loader_config *config, const float *values)
{
    if (config->dtype == DL2_UINT8 || config->volume_depth)
        return Py_NewRef(Py_None);
    PyObject *tuple = PyTuple_New((Py_ssize_t)config->channels);
    for (Py_ssize_t i = 0; tuple && i < (Py_ssize_t)config->channels; i++)
        py_put(&tuple, i, shortest(values[i]));
    return tuple;
}

PyObject *py_size_of(const struct dl2_loader_config *config)
{
    if (config->volume_depth)
        return Py_BuildValue("(III)", config->volume_depth, config->height,
                             dl2_loader_width(config));
    return config->width ? Py_BuildValue("(II)", config->height, config->width)
                         : PyLong_FromUnsignedLong(config->height);
}

static PyObject *shares_of(const struct dl2_dataset_shares *shares)
{
    PyObject *tuple = shares->count ? PyTuple_New(shares->count) : Py_NewRef(Py_None);
    for (unsigned i = 0; tuple && i < shares->count; i++)
        py_put(&tuple, i, PyFloat_FromDouble(shares->of[i]));
    return tuple;
}

static PyObject *value_of(const struct dl2_loader_setting *setting, const struct py_settings *from)
{
    const void *at = (const char *)from + setting->offset;
    switch (setting->kind) {
    case DL2_SETTING_UNSIGNED:
        return PyLong_FromUnsignedLong(*(const unsigned *)at);
    case DL2_SETTING_SIZE:
        return py_size_of(&from->loader);
    case DL2_SETTING_UINT64:
        return PyLong_FromUnsignedLongLong(*(const uint64_t *)at);
    case DL2_SETTING_BOOL:
        return PyBool_FromLong(*(const bool *)at);
    case DL2_SETTING_NUMBER:
        return PyFloat_FromDouble(*(const double *)at);
    case DL2_SETTING_RANGE:
        return Py_BuildValue("(dd)", ((const double *)at)[0], ((const double *)at)[1]);
    case DL2_SETTING_CHANNELS:
        return channels_of(&from->loader, at);
    case DL2_SETTING_SHARES:
        return shares_of(at);
    case DL2_SETTING_TEXT:
    case DL2_SETTING_NAMES:
        return *(const char *const *)at ? PyUnicode_FromString(*(const char *const *)at)
                                        : Py_NewRef(Py_None);
    default:
        return PyUnicode_FromString(setting->words[*(const unsigned *)at]);
    }
}

PyObject *py_settings_get(const struct py_settings *from, bool pixels)
{
    const struct dl2_loader_setting *setting;
    PyObject *dict = PyDict_New();
    for (int i = 0; dict && (setting = py_argument_at(i)); i++) {
        if (setting->kind == OBJECT || (pixels && !setting->pixels))
            continue;
        py_put_named(&dict, setting->name, value_of(setting, from));
    }
    return dict;
}

/* Is it the value, or what JSON makes of it? -1 and an exception. */
static int is_same(PyObject *value, PyObject *other)
{
    if (!PyTuple_Check(value) || !PyList_Check(other))
        return PyObject_RichCompareBool(value, other, Py_EQ);
    PY_OWN PyObject *tuple = PyList_AsTuple(other);
    return tuple ? PyObject_RichCompareBool(value, tuple, Py_EQ) : -1;
}

bool py_settings_check(const struct py_settings *from, PyObject *theirs)
{
    PY_OWN PyObject *ours = py_settings_get(from, true);
    PyObject *name, *value;
    Py_ssize_t at = 0;
    while (ours && !PyErr_Occurred() && PyDict_Next(ours, &at, &name, &value)) {
        PyObject *other = PyDict_GetItemWithError(theirs, name);
        if (other && is_same(value, other) == 0)
            PyErr_Format(PyExc_ValueError,
                         "the state is of a loader with other images: it has %U %R, this loader "
                         "%R; without its 'settings' the state is taken all the same",
                         name, other, value);
    }
    return !PyErr_Occurred();
}
