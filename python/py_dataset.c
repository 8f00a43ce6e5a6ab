/* SPDX-License-Identifier: BSD-2-Clause */
/* dl2.Dataset: the encoded samples of a dataset, by number. */
#include "python/py_dl2.h"

#include "common/nearest.h"

#include <math.h>
#include <string.h>
#include <strings.h>

bool py_dataset_use(struct py_dataset *self)
{
    if (!self->dataset || self->closing) {
        PyErr_SetString(PyExc_ValueError, "the dataset is closed");
        return false;
    }
    self->users++;
    return true;
}

static void close_if_unused(struct py_dataset *self)
{
    if (self->users || (!self->dataset && !self->members))
        return;
    dl2_dataset_close(self->dataset);
    self->dataset = NULL;
    for (Py_ssize_t i = 0; self->members && i < PyTuple_Size(self->members); i++)
        py_dataset_leave((struct py_dataset *)PyTuple_GetItem(self->members, i));
    Py_CLEAR(self->members);
}

void py_dataset_leave(struct py_dataset *self)
{
    self->users--;
    if (self->closing)
        close_if_unused(self);
}

/* A dataset in use until its scope ends; NULL: it could not be used. */
#define IN_USE __attribute__((cleanup(leave_used)))

static void leave_used(struct py_dataset **used)
{
    if (*used)
        py_dataset_leave(*used);
}

static struct py_dataset *use(struct py_dataset *self)
{
    return py_dataset_use(self) ? self : NULL;
}

/* Warns of what may not have been meant so; of a split by the rule
 * unless its fraction was given. */
static bool warn_of(const struct dl2_dataset *dataset, const char *path, bool fraction_given)
{
    const char *text;
    bool matters;
    for (size_t i = 0; (text = dl2_dataset_message(dataset, i, &matters)); i++) {
        const bool wanted = i ? matters : matters && !fraction_given;
        if (wanted && PyErr_WarnFormat(PyExc_UserWarning, 1, "%s: %s", path, text) < 0)
            return false;
    }
    return true;
}

/* The numbers of the samples whose keys a function accepts, a list. */
static PyObject *numbers_by_key(const struct dl2_dataset *dataset, PyObject *function)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < dl2_dataset_count(dataset); i++) {
        struct dl2_sample sample;
        dl2_dataset_sample(dataset, i, &sample);
        PY_OWN PyObject *key = py_text(sample.key), *number = PyLong_FromSize_t(i);
        PY_OWN PyObject *wanted =
            key && number ? PyObject_CallFunctionObjArgs(function, key, NULL) : NULL;
        const int truth = wanted ? PyObject_IsTrue(wanted) : -1;
        if (truth < 0 || (truth && PyList_Append(list, number) < 0))
            Py_CLEAR(list);
    }
    return list;
}

/* A list of what was given to select. Arrays and tensors give numbers of Python's own. */
static PyObject *list_of_selected(PyObject *select)
{
    if (!PyObject_HasAttrString(select, "tolist"))
        return PySequence_List(select);
    PY_OWN PyObject *plain = PyObject_CallMethod(select, "tolist", NULL);
    return plain ? PySequence_List(plain) : NULL;
}

/* Numbers, which may be negative, as dl2_dataset_select() takes them. */
static bool select_numbers(struct py_dataset *self, PyObject *list)
{
    const Py_ssize_t count = PyList_Size(list), all = (Py_ssize_t)dl2_dataset_count(self->dataset);
    uint32_t *numbers = PyMem_Calloc((size_t)count + 1, sizeof *numbers);
    if (!numbers)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; !PyErr_Occurred() && i < count; i++) {
        PyObject *item = PyList_GetItem(list, i);
        if (PyBool_Check(item)) { /* which Python takes for 0 and 1 */
            PyErr_SetString(PyExc_TypeError, "select takes numbers of samples, and this is a mask: "
                                             "numpy.flatnonzero(mask) makes numbers of one");
            break;
        }
        Py_ssize_t number = PyNumber_AsSsize_t(item, PyExc_IndexError);
        if (PyErr_Occurred())
            break;
        number += number < 0 ? all : 0;
        if (number < 0 || number >= all)
            PyErr_Format(PyExc_IndexError, "select has sample %zd: the dataset has %zd", number,
                         all);
        numbers[i] = (uint32_t)number;
    }
    struct dl2_error error = DL2_ERROR_INIT;
    if (!PyErr_Occurred() && dl2_dataset_select(self->dataset, numbers, (size_t)count, &error) < 0)
        py_raise(py_state_of(py_type_of(self)), &error);
    PyMem_Free(numbers);
    return !PyErr_Occurred();
}

/* Leaves the samples that `select` names. They take its place among the arguments, so that a copy
 * has the same ones. */
static bool select_samples(struct py_dataset *self, PyObject *select)
{
    if (!select || select == Py_None)
        return true;
    PY_OWN PyObject *list =
        PyCallable_Check(select) ? numbers_by_key(self->dataset, select) : list_of_selected(select);
    return list && select_numbers(self, list) &&
           PyDict_SetItemString(self->kwargs, "select", list) == 0;
}

/* Makes labels the numbers of `classes`, a sequence of names. */
static bool use_classes(struct py_dataset *self, const char *path, PyObject *classes)
{
    if (!classes || classes == Py_None)
        return true;
    if (PyUnicode_Check(classes) || !PySequence_Check(classes)) {
        PyErr_SetString(PyExc_TypeError,
                        "classes is a sequence of names, such as another dataset's classes");
        return false;
    }
    PY_OWN PyObject *list = PySequence_Tuple(classes);
    const Py_ssize_t count = list ? PyTuple_Size(list) : 0;
    const char **names = PyMem_Calloc((size_t)count + 1, sizeof *names);
    struct dl2_error error = DL2_ERROR_INIT;
    if (!names)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; !PyErr_Occurred() && i < count; i++)
        names[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(list, i), NULL);
    const struct dl2_known_classes known = {names, (unsigned)count, "classes"};
    if (!PyErr_Occurred() && dl2_dataset_use_classes(self->dataset, path, &known, &error) < 0)
        py_raise(py_state_of(py_type_of(self)), &error);
    PyMem_Free(names);
    return !PyErr_Occurred();
}

/* Settings of the rule that splits, beside the split that is asked for. */
static bool check_split(const char *split, double fraction, PyObject *kwargs)
{
    static const char *const splits[] = {"train", "training", "val", "valid", "validation", "dev"};
    bool rule = false;
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++)
        rule |= !strcasecmp(split, splits[i]);
    const bool given = kwargs && PyDict_GetItemString(kwargs, "val_fraction");
    if (given && isnan(fraction))
        PyErr_SetString(PyExc_ValueError, "val_fraction is a fraction within 0 and 1, not nan");
    else if (!rule && (given || (kwargs && PyDict_GetItemString(kwargs, "split_seed"))))
        PyErr_Format(PyExc_ValueError, "val_fraction and split_seed have no effect with split='%s'",
                     split);
    return !PyErr_Occurred();
}

static bool is_given(PyObject *kwargs, const char *name)
{
    return kwargs && PyDict_GetItemString(kwargs, name);
}

/* As dl2_subset_options_check(). */
static bool check_subset(PyObject *kwargs, int by)
{
    const bool seeded = is_given(kwargs, "subset_seed");
    if (!is_given(kwargs, "subset") && (seeded || is_given(kwargs, "subset_by")))
        PyErr_SetString(PyExc_ValueError,
                        "subset_by and subset_seed have no effect without subset");
    else if (seeded && by == DL2_SUBSET_NAME)
        PyErr_SetString(PyExc_ValueError, "subset_seed has no effect with subset_by='name'");
    return !PyErr_Occurred();
}

/* False and TypeError for an argument that is none. */
static bool check_names(PyObject *kwargs, char **names)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (kwargs && PyDict_Next(kwargs, &at, &key, &value)) {
        struct dl2_nearest nearest = {.given = PyUnicode_AsUTF8AndSize(key, NULL)};
        int i = 0;
        for (; nearest.given && names[i] && strcmp(names[i], nearest.given) != 0; i++)
            dl2_nearest_try(&nearest, names[i], NULL);
        if (!nearest.given || !names[i])
            return nearest.given && py_refuse_argument("Dataset()", key, nearest.name, NULL);
    }
    return true;
}

/* ---- Several datasets as one */

static bool is_list(PyObject *given)
{
    return PyList_Check(given) || PyTuple_Check(given);
}

bool py_is_opened(const struct py_state *state, PyObject *given)
{
    bool opened = is_list(given) && PySequence_Size(given) > 0;
    for (Py_ssize_t i = 0; opened && i < PySequence_Size(given); i++) {
        PY_OWN PyObject *item = PySequence_GetItem(given, i);
        opened = item && Py_IS_TYPE(item, state->dataset);
    }
    return opened || Py_IS_TYPE(given, state->dataset);
}

/* What it was made of, borrowed: a path, or a tuple of such and datasets. */
static PyObject *path_of(const struct py_dataset *self)
{
    return PyTuple_Size(self->args) ? PyTuple_GetItem(self->args, 0)
                                    : PyDict_GetItemString(self->kwargs, "path");
}

/* A new reference to a dataset of a list, in use; one of a path is opened with the arguments. */
static struct py_dataset *open_member(PyTypeObject *type, PyObject *item, PyObject *rest,
                                      PyObject *kwargs)
{
    PY_OWN PyObject *first = PyTuple_Pack(1, item);
    PY_OWN PyObject *args = first ? PySequence_Concat(first, rest) : NULL;
    PyObject *member = !args                    ? NULL
                       : Py_IS_TYPE(item, type) ? Py_NewRef(item)
                                                : PyObject_Call((PyObject *)type, args, kwargs);
    if (member && ((struct py_dataset *)member)->members)
        PyErr_SetString(PyExc_ValueError, "joined datasets are not joined once more: put all that "
                                          "they are of into one list");
    if (member && (PyErr_Occurred() || !py_dataset_use((struct py_dataset *)member)))
        Py_CLEAR(member);
    return (struct py_dataset *)member;
}

/* A new tuple of them. */
static PyObject *open_members(PyTypeObject *type, PyObject *list, PyObject *rest, PyObject *kwargs)
{
    const Py_ssize_t count = PyTuple_Size(list);
    PyObject *members = PyTuple_New(count);
    for (Py_ssize_t i = 0; members && i < count; i++) {
        struct py_dataset *member = open_member(type, PyTuple_GetItem(list, i), rest, kwargs);
        if (member) {
            PyTuple_SetItem(members, i, (PyObject *)member);
            continue;
        }
        while (i--)
            py_dataset_leave((struct py_dataset *)PyTuple_GetItem(members, i));
        Py_CLEAR(members);
    }
    return members;
}

/* Joins self->members; false and an exception. */
static bool join_members(struct py_dataset *self)
{
    struct dl2_dataset *members[DL2_DATASETS_MAX];
    const char *paths[DL2_DATASETS_MAX];
    struct dl2_error error = DL2_ERROR_INIT;
    const Py_ssize_t count = PyTuple_Size(self->members);
    PY_OWN PyObject *texts = PyList_New(0);
    for (Py_ssize_t i = 0; texts && i < count && i < DL2_DATASETS_MAX; i++) {
        struct py_dataset *member = (struct py_dataset *)PyTuple_GetItem(self->members, i);
        PY_OWN PyObject *text = NULL;
        if (!PyUnicode_FSConverter(path_of(member), &text) || PyList_Append(texts, text) < 0)
            return false;
        members[i] = member->dataset;
        paths[i] = PyBytes_AsString(text);
    }
    int status;
    if (!texts)
        return false;
    Py_BEGIN_ALLOW_THREADS status =
        dl2_dataset_join(members, paths, (size_t)count, &self->dataset, &error);
    Py_END_ALLOW_THREADS if (status < 0) py_raise(py_state_of(py_type_of(self)), &error);
    return status == DL2_OK;
}

/* Dataset([...], split, ...): the other arguments are of the paths, but for classes and select. */
static PyObject *new_joined(PyTypeObject *type, PyObject *given, PyObject *args, PyObject *kwargs)
{
    const Py_ssize_t size = PyTuple_Size(args);
    PY_OWN PyObject *own = kwargs ? PyDict_Copy(kwargs) : PyDict_New();
    PY_OWN PyObject *rest = PyTuple_GetSlice(args, 1, size > 1 ? size : 1);
    PY_OWN PyObject *list = PySequence_Tuple(given), *first = list ? PyTuple_Pack(1, list) : NULL;
    PY_OWN PyObject *select = Py_XNewRef(own ? PyDict_GetItemString(own, "select") : NULL);
    PY_OWN PyObject *classes = Py_XNewRef(own ? PyDict_GetItemString(own, "classes") : NULL);
    if (!own || !rest || !first)
        return NULL;
    if (size == 0)
        PyDict_DelItemString(own, "path");
    if (select)
        PyDict_DelItemString(own, "select");
    if (classes)
        PyDict_DelItemString(own, "classes");
    if (py_is_opened(py_state_of(type), given) && PyTuple_Size(rest) + PyDict_Size(own))
        return PyErr_Format(PyExc_ValueError,
                            "split and other options go with paths: a dl2.Dataset "
                            "was made with its own");
    PyObject *members = open_members(type, list, rest, own);
    struct py_dataset *self = members ? (struct py_dataset *)PyType_GenericAlloc(type, 0) : NULL;
    if (!self)
        return NULL;
    self->members = members;
    self->args = PySequence_Concat(first, rest);
    self->kwargs = Py_NewRef(own);
    if (!self->args || !join_members(self) || !warn_of(self->dataset, "datasets", true) ||
        !use_classes(self, "datasets", classes) ||
        (classes && PyDict_SetItemString(own, "classes", classes) < 0) ||
        !select_samples(self, select))
        Py_CLEAR(self);
    return (PyObject *)self;
}

/* ---- One dataset */

static PyObject *dataset_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {
        "path",        "split",           "val_fraction",   "split_seed", "images_only",
        "subset",      "subset_by",       "subset_seed",    "select",     "sidecars",
        "samples",     "cache_dir",       "cache_dir_size", "requests",   "request_limit",
        "label_field", "image_extension", "labels",         "classes",    NULL};
    static const char *const kinds[] = {[DL2_SAMPLES_AUTO] = "auto",
                                        [DL2_SAMPLES_IMAGES] = "images",
                                        [DL2_SAMPLES_CLIPS] = "clips",
                                        NULL};
    static const char *const subsets[] = {
        [DL2_SUBSET_DRAW] = "draw", [DL2_SUBSET_NAME] = "name", NULL};
    struct dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    PY_OWN PyObject *path = NULL;
    PyObject *fraction = NULL, *select = NULL, *classes = NULL;
    options.split = "train";
    options.subset.fraction = 1;
    const char *subset_name = "draw", *kind_name = "auto";
    int images_only = 1;
    if (!check_names(kwargs, names))
        return NULL;
    PyObject *given = PyTuple_Size(args) ? PyTuple_GetItem(args, 0)
                      : kwargs           ? PyDict_GetItemString(kwargs, "path")
                                         : NULL;
    if (given && is_list(given))
        return new_joined(type, given, args, kwargs);
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "O&|s$OO&pdsO&OzszO&O&dzzzO:Dataset", names, PyUnicode_FSConverter, &path,
            &options.split, &fraction, py_to_uint64, &options.split_seed, &images_only,
            &options.subset.fraction, &subset_name, py_to_uint64, &options.subset.seed, &select,
            &options.sidecars, &kind_name, &options.remote.cache_dir, py_to_uint64,
            &options.remote.cache_bytes, py_to_unsigned, &options.remote.requests,
            &options.remote.time_limit, &options.members.label_field,
            &options.members.image_extension, &options.labels, &classes))
        return NULL;
    if (fraction)
        options.val_fraction = PyFloat_AsDouble(fraction);
    if (!PyErr_Occurred() && options.subset.fraction == 0) /* all, where no words say otherwise */
        PyErr_SetString(PyExc_ValueError, "subset is a fraction above 0, and 1 for all samples");
    const int by = PyErr_Occurred() ? -1 : py_choice("subset_by", subset_name, subsets);
    const int kind = by < 0 ? -1 : py_choice("samples", kind_name, kinds);
    if (kind < 0 || !check_split(options.split, options.val_fraction, kwargs) ||
        !check_subset(kwargs, by))
        return NULL;
    struct py_dataset *self = (struct py_dataset *)PyType_GenericAlloc(type, 0);
    if (!self)
        return NULL;
    self->args = Py_NewRef(args);
    self->kwargs = kwargs ? PyDict_Copy(kwargs) : PyDict_New();
    options.subset.by = (enum dl2_subset_by)by;
    options.samples = (enum dl2_samples)kind;
    options.decode_slice = dl2_gray_decode;
    options.takes_videos = true;
    options.keep = images_only ? dl2_codec_is_image_file : NULL;
    options.reads = images_only ? dl2_codec_reads : NULL;
    struct dl2_error error = DL2_ERROR_INIT;
    const char *name = PyBytes_AsString(path);
    int status;
    Py_BEGIN_ALLOW_THREADS status = dl2_dataset_open(name, &options, &self->dataset, &error);
    Py_END_ALLOW_THREADS if (status < 0) py_raise(py_state_of(type), &error);
    if (status < 0 || !self->kwargs || !warn_of(self->dataset, name, fraction) ||
        !use_classes(self, name, classes) || !select_samples(self, select))
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void dataset_dealloc(struct py_dataset *self)
{
    PyTypeObject *type = py_type_of(self);
    close_if_unused(self);
    Py_XDECREF(self->args);
    Py_XDECREF(self->kwargs);
    PyObject_Free(self);
    Py_DECREF((PyObject *)type);
}

static Py_ssize_t dataset_length(struct py_dataset *self)
{
    IN_USE struct py_dataset *used = use(self);
    return used ? (Py_ssize_t)dl2_dataset_count(used->dataset) : -1;
}

/* The same for a sample; IndexError where there is none of that number. */
static struct py_dataset *use_sample(struct py_dataset *self, Py_ssize_t index)
{
    struct py_dataset *used = use(self);
    if (!used || (index >= 0 && (size_t)index < dl2_dataset_count(used->dataset)))
        return used;
    py_dataset_leave(used);
    PyErr_SetString(PyExc_IndexError, "the dataset has no sample of that number");
    return NULL;
}

/* The same for a number as Python gives it, counted as dataset[number] counts. */
static struct py_dataset *use_numbered(struct py_dataset *self, PyObject *number, Py_ssize_t *index)
{
    *index = PyNumber_AsSsize_t(number, PyExc_IndexError);
    if (*index == -1 && PyErr_Occurred())
        return NULL;
    if (*index < 0 && self->dataset)
        *index += (Py_ssize_t)dl2_dataset_count(self->dataset);
    return use_sample(self, *index);
}

/* The bytes of an image. */
static PyObject *read_image(struct py_dataset *self, size_t image)
{
    struct dl2_bytes scratch = DL2_BYTES_INIT;
    struct dl2_error error = DL2_ERROR_INIT;
    const uint8_t *data;
    size_t size;
    int status;
    Py_BEGIN_ALLOW_THREADS status =
        dl2_dataset_read(self->dataset, image, &scratch, &data, &size, &error);
    Py_END_ALLOW_THREADS PyObject *bytes =
        status < 0 ? py_raise(py_state_of(py_type_of(self)), &error)
                   : PyBytes_FromStringAndSize((const char *)data, (Py_ssize_t)size);
    dl2_bytes_free(&scratch);
    return bytes;
}

/* A list of the bytes of `count` images, each `step` further. */
static PyObject *read_frames(struct py_dataset *self, size_t first, size_t count, int64_t step)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++)
        py_put(&list, (Py_ssize_t)i,
               read_image(self, (size_t)((int64_t)first + (int64_t)i * step)));
    return list;
}

static PyObject *dataset_item(struct py_dataset *self, Py_ssize_t index)
{
    IN_USE struct py_dataset *used = use_sample(self, index);
    if (!used)
        return NULL;
    const struct dl2_image_range frames = dl2_dataset_frames(self->dataset, (size_t)index);
    struct dl2_sample sample;
    PyObject *data = dl2_dataset_kind(self->dataset) == DL2_SAMPLE_CLIP
                         ? read_frames(self, frames.first, frames.count, 1)
                         : read_image(self, frames.first);
    dl2_dataset_image(self->dataset, frames.first, &sample);
    return data ? Py_BuildValue("(Ni)", data, sample.label) : NULL;
}

static PyObject *dataset_image(struct py_dataset *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"index", "drop_bands", NULL};
    struct dl2_loader_config config = DL2_LOADER_DEFAULTS;
    struct dl2_loader_stats stats = {0};
    struct dl2_bytes pixels = DL2_BYTES_INIT;
    struct dl2_error error = DL2_ERROR_INIT;
    struct py_state *state = py_state_of(py_type_of(self));
    PyObject *number, *out = NULL;
    Py_ssize_t index;
    uint32_t width, height;
    int drop_bands = 0, status;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$p:image", names, &number, &drop_bands))
        return NULL;
    IN_USE struct py_dataset *used = use_numbered(self, number, &index);
    if (!used)
        return NULL;
    const struct dl2_image_range frames = dl2_dataset_frames(self->dataset, (size_t)index);
    config.drop_bands = drop_bands;
    Py_BEGIN_ALLOW_THREADS status = dl2_loader_decode(self->dataset, frames.first, &config, &pixels,
                                                      &width, &height, &stats, &error);
    Py_END_ALLOW_THREADS struct dl2_sample sample;
    dl2_dataset_image(self->dataset, frames.first, &sample);
    if (status < 0)
        py_raise(state, &error);
    else if (py_warn_of_unusual(&stats, &self->told, sample.path))
        out = py_array_of_pixels(state, pixels.data, width, height);
    dl2_bytes_free(&pixels);
    return out;
}

static PyObject *dataset_frames(struct py_dataset *self, PyObject *argument)
{
    struct dl2_frame_slice slice;
    struct dl2_error error = DL2_ERROR_INIT;
    PY_OWN PyObject *text = NULL;
    IN_USE struct py_dataset *used = PyUnicode_FSConverter(argument, &text) ? use(self) : NULL;
    if (!used)
        return NULL;
    if (dl2_dataset_slice(self->dataset, PyBytes_AsString(text), &slice, &error) < 0)
        return py_raise(py_state_of(py_type_of(self)), &error);
    return read_frames(self, slice.first, slice.count, slice.step);
}

static PyObject *dataset_kind(struct py_dataset *self, void *Py_UNUSED(closure))
{
    static const char *const kinds[] = {[DL2_SAMPLE_IMAGE] = "image",
                                        [DL2_SAMPLE_CLIP] = "clip",
                                        [DL2_SAMPLE_VOLUME] = "volume",
                                        [DL2_SAMPLE_VIDEO] = "video"};
    IN_USE struct py_dataset *used = use(self);
    return used ? py_text(kinds[dl2_dataset_kind(used->dataset)]) : NULL;
}

static PyObject *dataset_volume(struct py_dataset *self, PyObject *argument)
{
    Py_ssize_t index;
    IN_USE struct py_dataset *used = use_numbered(self, argument, &index);
    struct dl2_volume *volume;
    struct dl2_error error = DL2_ERROR_INIT;
    if (!used)
        return NULL;
    if (dl2_dataset_open_volume(self->dataset, (size_t)index, NULL, &volume, &error) < 0)
        return py_raise(py_state_of(py_type_of(self)), &error);
    const struct dl2_volume_info *info = dl2_volume_info(volume);
    PyObject *facts = Py_BuildValue(
        "{s:n,s:(nnn),s:(ddd),s:s}", "channels", (Py_ssize_t)info->channels, "size",
        (Py_ssize_t)info->size[0], (Py_ssize_t)info->size[1], (Py_ssize_t)info->size[2], "spacing",
        (double)info->spacing[0], (double)info->spacing[1], (double)info->spacing[2], "type",
        dl2_voxel_type_name(info->type));
    dl2_volume_close(volume);
    return facts;
}

static PyObject *dataset_sample(struct py_dataset *self, PyObject *argument)
{
    Py_ssize_t index;
    IN_USE struct py_dataset *used = use_numbered(self, argument, &index);
    struct dl2_sample sample;
    if (!used)
        return NULL;
    dl2_dataset_sample(self->dataset, (size_t)index, &sample);
    PyObject *fields[] = {py_text(sample.key),
                          py_text(sample.path),
                          py_text(sample.name),
                          PyLong_FromLong(sample.label),
                          PyLong_FromUnsignedLongLong(sample.bytes),
                          PyLong_FromLongLong(sample.mtime_ns)};
    return py_struct(py_state_of(py_type_of(self))->sample, fields, 6);
}

static PyObject *dataset_sidecar(struct py_dataset *self, PyObject *args)
{
    Py_ssize_t index;
    PyObject *number;
    const char *extension;
    if (!PyArg_ParseTuple(args, "Os:sidecar", &number, &extension))
        return NULL;
    IN_USE struct py_dataset *used = use_numbered(self, number, &index);
    if (!used)
        return NULL;
    struct dl2_bytes bytes = DL2_BYTES_INIT;
    struct dl2_error error = DL2_ERROR_INIT;
    int status;
    Py_BEGIN_ALLOW_THREADS status =
        dl2_dataset_read_sidecar(self->dataset, (size_t)index, extension, &bytes, &error);
    Py_END_ALLOW_THREADS PyObject *out =
        status < 0    ? py_raise(py_state_of(py_type_of(self)), &error)
        : status == 1 ? PyBytes_FromStringAndSize((const char *)bytes.data, (Py_ssize_t)bytes.size)
                      : Py_NewRef(Py_None);
    dl2_bytes_free(&bytes);
    return out;
}

/* For pickle: the same arguments. */
static PyObject *dataset_getnewargs(struct py_dataset *self, PyObject *Py_UNUSED(unused))
{
    return PyTuple_Pack(2, self->args, self->kwargs);
}

static PyObject *dataset_repr(struct py_dataset *self)
{
    PyObject *path = path_of(self);
    if (!self->dataset || self->closing)
        return PyUnicode_FromFormat("<dl2.Dataset %R, closed>", path);
    return PyUnicode_FromFormat("<dl2.Dataset %R: %zu samples in %u classes>", path,
                                dl2_dataset_count(self->dataset),
                                dl2_dataset_class_count(self->dataset));
}

static PyObject *dataset_layout(struct py_dataset *self, void *Py_UNUSED(closure))
{
    IN_USE struct py_dataset *used = use(self);
    return used ? py_text(dl2_dataset_layout(used->dataset)) : NULL;
}

static PyObject *dataset_classes(struct py_dataset *self, void *Py_UNUSED(closure))
{
    IN_USE struct py_dataset *used = use(self);
    const unsigned count = used ? dl2_dataset_class_count(used->dataset) : 0;
    PyObject *classes = used ? PyTuple_New(count) : NULL;
    for (unsigned i = 0; classes && i < count; i++)
        py_put(&classes, i, py_text(dl2_dataset_class_name(self->dataset, i)));
    return classes;
}

/* A new list with what `make` makes of each sample. */
static PyObject *list_of_samples(struct py_dataset *self,
                                 PyObject *(*make)(const struct dl2_sample *sample))
{
    IN_USE struct py_dataset *used = use(self);
    const size_t count = used ? dl2_dataset_count(used->dataset) : 0;
    PyObject *list = used ? PyList_New((Py_ssize_t)count) : NULL;
    for (size_t i = 0; list && i < count; i++) {
        struct dl2_sample sample;
        dl2_dataset_sample(self->dataset, i, &sample);
        py_put(&list, (Py_ssize_t)i, make(&sample));
    }
    return list;
}

static PyObject *key_of(const struct dl2_sample *sample)
{
    return py_text(sample->key);
}

static PyObject *label_of(const struct dl2_sample *sample)
{
    return PyLong_FromLong(sample->label);
}

static PyObject *path_and_label_of(const struct dl2_sample *sample)
{
    PyObject *path = py_text(sample->path);
    return path ? Py_BuildValue("(Ni)", path, sample->label) : NULL;
}

static PyObject *dataset_keys(struct py_dataset *self, void *Py_UNUSED(closure))
{
    return list_of_samples(self, key_of);
}

static PyObject *dataset_targets(struct py_dataset *self, void *Py_UNUSED(closure))
{
    return list_of_samples(self, label_of);
}

static PyObject *dataset_samples(struct py_dataset *self, void *Py_UNUSED(closure))
{
    return list_of_samples(self, path_and_label_of);
}

static PyObject *dataset_class_to_idx(struct py_dataset *self, void *closure)
{
    PY_OWN PyObject *classes = dataset_classes(self, closure);
    PyObject *dict = classes ? PyDict_New() : NULL;
    for (Py_ssize_t i = 0; dict && i < PyTuple_Size(classes); i++) {
        PY_OWN PyObject *number = PyLong_FromSsize_t(i);
        if (!number || PyDict_SetItem(dict, PyTuple_GetItem(classes, i), number) < 0)
            Py_CLEAR(dict);
    }
    return dict;
}

/* As dl2-load's JSON has it. */
static PyObject *dataset_remote_stats(struct py_dataset *self, void *Py_UNUSED(closure))
{
    struct dl2_remote_stats stats;
    const char *name;
    uint64_t count;
    IN_USE struct py_dataset *used = use(self);
    if (!used)
        return NULL;
    if (!dl2_dataset_remote_stats(used->dataset, &stats))
        Py_RETURN_NONE;
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict && (name = dl2_remote_stats_count(&stats, i, &count)); i++)
        py_put_named(&dict, name, PyLong_FromUnsignedLongLong(count));
    return dict;
}

PyObject *py_sheet(PyObject *self, PyObject *Py_UNUSED(unused))
{
    PY_OWN PyObject *sheet = PyImport_ImportModule("dl2._sheet");
    return sheet ? PyObject_CallMethod(sheet, "html", "O", self) : NULL;
}

static PyObject *dataset_close(struct py_dataset *self, PyObject *Py_UNUSED(unused))
{
    self->closing = true;
    close_if_unused(self);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"sample", (PyCFunction)dataset_sample, METH_O,
     "sample($self, index, /)\n--\n\n"
     "What is known of a sample without reading it: a dl2.Sample. Negative numbers count from the\n"
     "end."},
    {"image", (PyCFunction)(void (*)(void))dataset_image, METH_VARARGS | METH_KEYWORDS,
     "image($self, index, *, drop_bands=False)\n--\n\n"
     "A sample decoded as a loader decodes it, before crop and resize: a dl2.Array of uint8\n"
     "[height, width, 3], upright, RGB, on white where it is transparent. Of a clip its first\n"
     "frame. What it does not show of the file, such as more than 8 bits, is a UserWarning, once.\n"
     "With drop_bands, of more bands than gray or RGB the others are left out; else they are a\n"
     "dl2.Error. Negative numbers count from the end."},
    {"volume", (PyCFunction)dataset_volume, METH_O,
     "volume($self, index, /)\n--\n\n"
     "What the header of a volume says, a new dict: 'channels', 'size' (depth, height, width) in\n"
     "voxels, 'spacing' between them in the same order (0: the file has none) and 'type', such\n"
     "as 'int16'. Negative numbers count from the end. ValueError of other datasets."},
    {"frames", (PyCFunction)dataset_frames, METH_O,
     "frames($self, text, /)\n--\n\n"
     "Frames of a clip, a list of bytes: 'train/rose/clip7' has all of them, "
     "'train/rose/clip7[2:10:2]'\n"
     "those of Python's slice, which alone are read, and 'train/rose/clip7[-1]' the last."},
    {"sidecar", (PyCFunction)dataset_sidecar, METH_VARARGS,
     "sidecar($self, index, extension, /)\n--\n\n"
     "What a sample has beside its image, such as 'json' or 'txt': bytes, or None. In a folder "
     "the\n"
     "file of the same name, in tar the member; of GulpIO, 'json' is the item's meta_data."},
    {"close", (PyCFunction)dataset_close, METH_NOARGS,
     "close($self)\n--\n\n"
     "Frees the dataset, once the loaders that read it are gone. `with` does it, too."},
    {"_repr_html_", py_sheet, METH_NOARGS, "For notebooks: a contact sheet."},
    {"__getnewargs_ex__", (PyCFunction)dataset_getnewargs, METH_NOARGS, NULL},
    {"__enter__", py_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)dataset_close, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"layout", (getter)dataset_layout, NULL,
     "How the dataset was read: 'train 9,025 images in 10 classes, val 3,929 (valid/)'.", NULL},
    {"kind", (getter)dataset_kind, NULL,
     "What the samples are: 'image', 'clip', 'video' or 'volume'.", NULL},
    {"classes", (getter)dataset_classes, NULL,
     "The classes' names, a tuple: label 3 is classes[3]. Empty for a flat folder.", NULL},
    {"keys", (getter)dataset_keys, NULL,
     "The samples' keys, a new list: paths from the root without extension.", NULL},
    {"targets", (getter)dataset_targets, NULL,
     "The numbers of the samples' classes, a new list; -1: none.", NULL},
    {"samples", (getter)dataset_samples, NULL,
     "(path, number of the class) of the samples, a new list; in a packed dataset, paths are\n"
     "'FILE[KEY]'.",
     NULL},
    {"class_to_idx", (getter)dataset_class_to_idx, NULL,
     "The number of each class by its name, a new dict.", NULL},
    {"remote_stats", (getter)dataset_remote_stats, NULL,
     "What a dataset at http://, https:// or s3:// has asked for in this process, a new dict:\n"
     "requests, retries, bytes, cache_hits, cache_misses, cache_bytes, cache_damaged and\n"
     "cache_lost. None for other datasets.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(
    doc,
    "Dataset(path, split='train', *, val_fraction=0.2, split_seed=0, images_only=True,\n"
    "        subset=1, subset_by='draw', subset_seed=0, select=None,\n"
    "        sidecars=None, samples='auto', cache_dir=None, cache_dir_size=0,\n"
    "        requests=0, request_limit=0, label_field=None, image_extension=None,\n"
    "        labels=None, classes=None)\n--\n\n"
    "The encoded samples of a dataset: a folder {train,val,test}/CLASS/FILE or\n"
    "CLASS/FILE, a packed dataset that dl2-transcode wrote, or MNIST's IDX files. Splits may\n"
    "also be called training, valid, validation, dev and testing, in any case. The folder of\n"
    "a split is that split, whole. The attribute `layout` tells how it was read.\n\n"
    "len(dataset) is the number of samples; dataset[i] is (bytes, label), the file as it is\n"
    "and its class's number or -1; dataset[-1] is the last. Of a clip it is ([bytes], label), "
    "with\n"
    "the bytes of all frames.\n\n"
    "path          or a list of paths and dl2.Datasets, which are joined: the samples of the "
    "first,\n"
    "              then those of the next, with keys NAME/KEY. Classes are joined by name: the\n"
    "              first dataset's keep their numbers, new names follow. Other arguments are of\n"
    "              each path, but `select`, which is of all. ValueError for datasets that don't "
    "go\n"
    "              together, and for the same one twice\n"
    "split         'all', 'train', 'val', 'test' or the name of another split\n"
    "val_fraction  of each class is for validation where no folder says what is; a\n"
    "              UserWarning says so, unless val_fraction is given. Where it is given, it also\n"
    "              splits the folder train of a dataset without a folder for validation, and a\n"
    "              path that is such a folder; ValueError where it would have no effect\n"
    "split_seed    of the hash that chooses it\n"
    "images_only   leave out files that are no images by name or first bytes\n"
    "subset        fraction of each class's training samples to take, above 0; other splits\n"
    "              stay whole\n"
    "subset_by     'draw': by a hash of subset_seed and key; 'name': the first by name\n"
    "select        numbers of samples: dataset[i] is then sample select[i]. One that comes\n"
    "              several times is visited as often in each epoch, with other crops. Or a\n"
    "              function of a key that tells whether to take the sample\n"
    "sidecars      extensions, such as 'mask.png' or 'png,json': a folder's files that end so\n"
    "              lie beside images and are none themselves\n"
    "samples       'images'; 'clips': GulpIO's items, or folders CLASS/CLIP of frames whose names\n"
    "              end in numbers; 'auto': clips where frames are certain to be frames\n"
    "cache_dir     folder that keeps what is read of a dataset at http://, https:// or s3://;\n"
    "              several processes may share it\n"
    "cache_dir_size limit of it, bytes; 0: 10 GiB\n"
    "requests      to the server that are under way at once; 0: 64\n"
    "request_limit seconds for one of them; 0: 30. ValueError for these four where the path is\n"
    "              no such address\n"
    "label_field   path of the field in the .json beside each sample of tar shards that holds\n"
    "              its class, as 'label', 'meta.class' or 'labels.0': a whole number is that of\n"
    "              a class, any other text its name\n"
    "image_extension which member of each sample of tar shards is its image: 'jpg', or\n"
    "              'jpg,png' for the first of them that a sample has\n"
    "labels        lists, 'FILE' or 'SPLIT=FILE', with commas, of the labels of videos or of\n"
    "              folders of frames, instead of class folders: lines id;label, or Kinetics'\n"
    "              columns\n"
    "classes       names: labels are numbers of this list, such as that of the dataset which a\n"
    "              network was trained on. ValueError for samples of a class that it lacks\n\n"
    "Any number of threads may use it at once; the GIL is released while it is opened and\n"
    "read. Raises dl2.Error where no sample is found, FileNotFoundError where there is no\n"
    "such path, and where a sample that is read has gone.");

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)doc},       {Py_tp_new, dataset_new},   {Py_tp_dealloc, dataset_dealloc},
    {Py_tp_repr, dataset_repr},     {Py_tp_methods, methods},   {Py_tp_getset, attributes},
    {Py_sq_length, dataset_length}, {Py_sq_item, dataset_item}, {0, NULL},
};

PyType_Spec py_dataset_spec = {
    .name = "dl2.Dataset",
    .basicsize = sizeof(struct py_dataset),
    .flags = Py_TPFLAGS_DEFAULT | PY_IMMUTABLE,
    .slots = slots,
};

static PyStructSequence_Field sample_fields[] = {
    {"key", "path from the root without extension: 'train/rose/0017'"},
    {"path", "what messages call it: the file, or 'FILE[17]' within a packed one"},
    {"name", "path from the root, with extension where it is a file of its own"},
    {"label", "number of its class, or -1"},
    {"bytes", "encoded size"},
    {"mtime_ns", "of the file it lies in, nanoseconds since 1970"},
    {NULL, NULL},
};

PyStructSequence_Desc py_sample_desc = {
    .name = "dl2.Sample",
    .doc = "One sample of a dataset.",
    .fields = sample_fields,
    .n_in_sequence = 6,
};
