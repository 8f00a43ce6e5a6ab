# SPDX-License-Identifier: BSD-2-Clause
"""Safetensors files: eight bytes with the header's length, the header (JSON), the data."""

import json
import struct


def read(path):
    """{name: (dtype, shape, bytes)}"""
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = (entry["dtype"], entry["shape"], data[8 + length + begin:8 + length + end])
    return tensors


def write(path, tensors):
    """What read() gives."""
    header, at = {}, 0
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(raw)]}
        at += len(raw)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.writelines(raw for _, _, raw in tensors.values())
