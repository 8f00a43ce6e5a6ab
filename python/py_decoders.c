/* SPDX-License-Identifier: BSD-2-Clause */
/* The module dl2._decoders: the registry of batch decoders, for the module dl2._core. */
#include "python/py_dl2.h"

static const struct py_decoders functions = {
    .card = dl2_batch_decoder_card,
    .open = dl2_decode_choice_open,
    .close = dl2_batch_decoder_close,
};

static int decoders_exec(PyObject *module)
{
    PY_OWN PyObject *capsule = PyCapsule_New((void *)&functions, PY_DECODERS, NULL);
    return capsule ? py_add_to_module(module, "functions", capsule) : -1;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, decoders_exec}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "dl2._decoders",
    .m_doc = "What decodes images on a card, for dl2.Loader(decode='gpu').",
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__decoders(void);
PyMODINIT_FUNC PyInit__decoders(void)
{
    return PyModuleDef_Init(&definition);
}
