# SPDX-License-Identifier: BSD-2-Clause
"""A safetensors file with changes:

    edit_safetensors.py IN OUT CHANGE...

NAME= leaves a tensor out, NAME=F32:3,4 puts a zeroed one in its place, NAME@TEXT renames it, *=F16 (BF16, F64)
converts all from F32.
"""

import struct
import sys

import safetensors_file

SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8}


def convert(raw, dtype):
    values = struct.unpack(f"<{len(raw) // 4}f", raw)
    if dtype == "BF16":  # cut off, not rounded
        return b"".join(raw[i + 2:i + 4] for i in range(0, len(raw), 4))
    return struct.pack(f"<{len(values)}{'d' if dtype == 'F64' else 'e'}", *values)


tensors = safetensors_file.read(sys.argv[1])
for change in sys.argv[3:]:
    name, _, value = change.partition("@" if "@" in change else "=")
    dtype, _, shape = value.partition(":")
    if "@" in change:
        tensors[value] = tensors.pop(name)
    elif name == "*":
        tensors = {n: (dtype, shape, convert(raw, dtype)) for n, (_, shape, raw) in tensors.items()}
    elif not value:
        del tensors[name]
    else:
        dims = [int(n) for n in shape.split(",")] if shape else []
        count = SIZES[dtype]
        for n in dims:
            count *= n
        tensors[name] = (dtype, dims, bytes(count))
safetensors_file.write(sys.argv[2], tensors)
