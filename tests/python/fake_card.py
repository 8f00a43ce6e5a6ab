# SPDX-License-Identifier: BSD-2-Clause
"""A card in the machine's memory, for tests of decode="gpu": dl2._decoders with the stand-in of fake_decoders.c."""
import ctypes
import importlib.machinery
import importlib.util
import os
import sys

import numpy

PATH = os.path.join(os.environ.get("builddir", "."), "tests/python/.libs/fake_decoders.so")
CPU, CUDA = 1, 2  # DLPack's numbers


def install():
    """The stand-in becomes dl2._decoders, for this process. Returns it, as ctypes sees it."""
    loader = importlib.machinery.ExtensionFileLoader("dl2._decoders", PATH)
    module = importlib.util.module_from_spec(importlib.machinery.ModuleSpec("dl2._decoders", loader, origin=PATH))
    loader.exec_module(module)
    sys.modules["dl2._decoders"] = module
    return ctypes.CDLL(PATH)


def uninstall():
    sys.modules.pop("dl2._decoders", None)


class Tensor(ctypes.Structure):
    """The head of a DLPack tensor."""
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64))]


def _tensor_in(capsule):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.POINTER(Tensor), [ctypes.py_object, ctypes.c_char_p]
    return get(capsule, b"dltensor").contents


def tensor_of(array, **request):
    """A copy of the head of its DLPack tensor, which is let go of at once."""
    capsule = array.__dlpack__(**request)
    return Tensor.from_buffer_copy(_tensor_in(capsule))


def pixels(array):
    """A copy of an array's bytes, wherever it lies: what the stand-in's card holds."""
    return ctypes.string_at(tensor_of(array).data, array.nbytes)


def here(array, stream=None):
    """A capsule of the same memory, as if it were the CPU's; whoever takes it owns a part of the batch as ever."""
    capsule = array.__dlpack__(stream=stream)
    _tensor_in(capsule).device_type = CPU
    return capsule


class _Here:
    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return CPU, 0


def array_of(array, stream=None):
    """NumPy's view of it, which keeps it alive."""
    return numpy.from_dlpack(_Here(here(array, stream)))
