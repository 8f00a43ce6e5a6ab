# SPDX-License-Identifier: BSD-2-Clause
"""bands.py FOLDER: images of more bands, bits and kinds of samples than 8-bit gray and RGB, without any library."""
import os
import struct
import sys
import zlib

WIDTH, HEIGHT = 32, 16
UINT, INT, FLOAT, COMPLEX = 1, 2, 3, 6
GRAY, RGB = 1, 2


def tiff(name, bands, code="B", form=UINT, photometric=GRAY, extra=(), planes=False, pages=1):
    """Band b of pixel (x, y) is 3 * x + y + 10 * b, as struct's code has it; complex numbers are pairs."""
    values = [[3 * x + y + 10 * b for y in range(HEIGHT) for x in range(WIDTH)] for b in range(bands)]
    order = [v for band in values for v in band] if planes else [v for pixel in zip(*values) for v in pixel]
    order = [part for v in order for part in ((v, 0) if form == COMPLEX else (v,))]
    body = struct.pack(f"<{len(order)}{code}", *order)
    bits = 8 * struct.calcsize(code) * (2 if form == COMPLEX else 1)
    strips = bands if planes else 1
    file, at = bytearray(b"II*\0\0\0\0\0"), 4  # `at`: where the next directory's place is to be written
    for page in range(pages):
        data = len(file)
        file += body
        lists = {"bits": (3, [bits] * bands), "offsets": (4, [data + i * len(body) // strips for i in range(strips)]),
                 "sizes": (4, [len(body) // strips] * strips), "formats": (3, [form] * bands),
                 "extra": (3, list(extra) or [0])}
        tags = [(256, 3, [WIDTH]), (257, 3, [HEIGHT]), (258, *lists["bits"]), (259, 3, [1]), (262, 3, [photometric]),
                (273, *lists["offsets"]), (277, 3, [bands]), (278, 3, [HEIGHT]), (279, *lists["sizes"]),
                (284, 3, [2 if planes else 1])] + ([(338, *lists["extra"])] if extra else []) + [(339, *lists["formats"])]
        entries = []
        for tag, kind, numbers in tags:
            packed = struct.pack(f"<{len(numbers)}{'H' if kind == 3 else 'I'}", *numbers)
            if len(packed) > 4:
                place = len(file)
                file += packed
                packed = struct.pack("<I", place)
            entries.append(struct.pack("<HHI", tag, kind, len(numbers)) + packed.ljust(4, b"\0"))
        file += bytes(len(file) % 2)
        struct.pack_into("<I", file, at, len(file))
        file += struct.pack("<H", len(entries)) + b"".join(entries)
        at = len(file)
        file += bytes(4)
    save(name + ".tif", bytes(file))


def png(name, scale):
    """16-bit gray, `scale` times the column."""
    rows = b"".join(b"\0" + struct.pack(f">{WIDTH}H", *(scale * x for x in range(WIDTH))) for _ in range(HEIGHT))
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", WIDTH, HEIGHT, 16, 0, 0, 0, 0)), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    save(name + ".png", b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks))


def save(name, data):
    path = os.path.join(sys.argv[1], name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


tiff("good/c/gray", 1)
tiff("good/c/rgb", 3, photometric=RGB)
tiff("good/c/alpha", 4, photometric=RGB, extra=[2])
tiff("good/c/pages", 1, pages=3)
png("good/c/full", 2000)
png("good/c/twelve", 130)
tiff("bands/c/two", 2, extra=[0])
tiff("bands/c/thirteen", 13, extra=[0] * 12)
tiff("bands/c/planes", 13, extra=[0] * 12, planes=True)
tiff("bands/c/untold", 3)  # three bands that are said to be gray
tiff("bands/c/infrared", 4, photometric=RGB, extra=[0])
tiff("bands/c/infrared_and_alpha", 5, photometric=RGB, extra=[2, 0])
tiff("bands/c/sixteen_bits", 4, "H", photometric=RGB, extra=[0])
for kind, code, form in [("int8", "b", INT), ("int16", "h", INT), ("int32", "i", INT), ("uint32", "I", UINT),
                         ("half", "e", FLOAT), ("float", "f", FLOAT), ("double", "d", FLOAT), ("complex", "f", COMPLEX)]:
    tiff(f"samples/c/{kind}", 1, code, form)
tiff("samples/c/int16_rgb", 3, "h", INT, RGB)
