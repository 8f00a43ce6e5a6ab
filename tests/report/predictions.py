# SPDX-License-Identifier: BSD-2-Clause
"""Writes predictions-K.npy as dl2-train does, byte by byte, so that the tests need no NumPy.

    predictions.py FILE ROW... [-- OPTION=VALUE...]

A row is KEY:TARGET:PREDICTED:TOP5 and, if it is not 0.5, :LOSS. Options spoil the file or change its form: version (1), key
(bytes of a key), rows (that the header claims), cut (bytes off the end), more (bytes at the end),
descr (text in place of the header's list of columns), top1 (of all rows).
"""
import struct
import sys


def main():
    words = sys.argv[2:]
    at = words.index("--") if "--" in words else len(words)
    options = dict(word.split("=", 1) for word in words[at + 1:])
    rows = [word.split(":") for word in words[:at]]
    size = int(options.get("key", max([1] + [len(row[0].encode()) for row in rows])))
    descr = options.get("descr", "[('key', '|S%d'), ('target', '<i4'), ('predicted', '<i4'), "
                        "('top1', '|u1'), ('top5', '|u1'), ('loss', '<f4')]" % size)
    version = int(options.get("version", 1))
    header = "{'descr': %s, 'fortran_order': False, 'shape': (%s,), }" % (
        descr, options.get("rows", len(rows)))
    start = 10 if version == 1 else 12
    header += " " * (-(start + len(header) + 1) % 64) + "\n"
    data = b"\x93NUMPY" + bytes([version, 0])
    data += struct.pack("<H" if version == 1 else "<I", len(header)) + header.encode()
    for key, target, predicted, top5, *loss in rows:
        right = int(options.get("top1", int(target == predicted)))
        data += key.encode().ljust(size, b"\0")
        data += struct.pack("<iiBBf", int(target), int(predicted), right, int(top5), float((loss or [0.5])[0]))
    data = data[:len(data) - int(options.get("cut", 0))] + b"x" * int(options.get("more", 0))
    with open(sys.argv[1], "wb") as file:
        file.write(data)


main()
