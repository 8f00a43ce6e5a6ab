# SPDX-License-Identifier: BSD-2-Clause
"""further_pictures.py jpeg FIRST SECOND OUT: a JPEG with an index (MPF) of two pictures. tail FIRST OUT: a JPEG with a
video behind it. long FIRST BYTES OUT [zeros]: with as much noise behind it, or zeros. webp FIRST SECOND WIDTH HEIGHT LEFT TOP
OUT: an animation of two still WebPs, the first frame, of that size, at a place of a canvas of 64x48. pnm IN FOLDER: a P6 or P5 as P3 or P2, and its bright parts as P1 and P4."""
import os
import random
import struct
import sys

kind, *names = sys.argv[1:]


def read(name):
    with open(name, "rb") as file:
        return file.read()


def write(name, data):
    os.makedirs(os.path.dirname(name), exist_ok=True)
    with open(name, "wb") as file:
        file.write(data)


def u24(value):
    return struct.pack("<I", value)[:3]


def chunk(name, data):
    return name + struct.pack("<I", len(data)) + data + bytes(len(data) % 2)


if kind == "jpeg":
    first, second, out = read(names[0]), read(names[1]), names[2]
    jfif = 2 + 2 + struct.unpack(">H", first[4:6])[0]
    index = 8 + 2 + 3 * 12 + 4  # behind the head and a directory of three entries
    size, at = 2 + 2 + 4 + index + 32, jfif + 8  # of the segment; where its offsets count from
    entries = [(0xB000, 7, 4, b"0100"), (0xB001, 4, 1, struct.pack("<I", 2)), (0xB002, 7, 32, struct.pack("<I", index))]
    body = b"MPF\0II*\0" + struct.pack("<IH", 8, 3)
    body += b"".join(struct.pack("<HHI", *entry[:3]) + entry[3] for entry in entries) + bytes(4)
    length = len(first) + size
    body += struct.pack("<IIIHH", 0x030000, length, 0, 0, 0) + struct.pack("<IIIHH", 0, len(second), length - at, 0, 0)
    assert len(body) == size - 4
    write(out, first[:jfif] + b"\xff\xe2" + struct.pack(">H", size - 2) + body + first[jfif:] + second)
elif kind == "tail":
    write(names[1], read(names[0]) + b"\0\0\0\x18ftypmp42" + bytes(range(256)))
elif kind == "long":
    tail = bytes(int(names[1])) if names[3:] == ["zeros"] else random.Random(1).randbytes(int(names[1]))
    write(names[2], read(names[0]) + tail)
elif kind == "webp":
    stills, (width, height, left, top) = [read(name)[12:] for name in names[:2]], map(int, names[2:6])
    frames = [u24(left // 2) + u24(top // 2) + u24(width - 1) + u24(height - 1) + u24(100) + b"\0" + stills[0],
              bytes(6) + u24(63) + u24(47) + u24(100) + b"\0" + stills[1]]
    body = b"WEBP" + chunk(b"VP8X", b"\x02\0\0\0" + u24(63) + u24(47)) + chunk(b"ANIM", b"\xff\xff\xff\xff\0\0")
    write(names[6], chunk(b"RIFF", body + b"".join(chunk(b"ANMF", frame) for frame in frames)))
else:
    data, out = read(names[0]), names[1]
    magic, width, height, _, body = data.split(maxsplit=4)
    body = data[-int(width) * int(height) * (3 if magic == b"P6" else 1):]
    size = width + b" # a comment\n" + height + b"\n"
    plain = {b"P6": b"P3", b"P5": b"P2"}[magic]
    write(f"{out}/plain.pnm", plain + b"\n" + size + b"255\n" + "\n".join(map(str, body)).encode() + b"\n")
    if magic == b"P5":
        rows = [[value < 128 for value in body[y * int(width):][:int(width)]] for y in range(int(height))]
        write(f"{out}/text.pbm", b"P1\n" + size + b"\n".join("".join("01"[bit] for bit in row).encode() for row in rows))
        packed = [int("".join("01"[bit] for bit in row).ljust(-(-len(row) // 8) * 8, "0"), 2).to_bytes(-(-len(row) // 8), "big") for row in rows]
        write(f"{out}/packed.pbm", b"P4\n" + size + b"".join(packed))
        write(f"{out}/expected.pgm", b"P5\n" + width + b" " + height + b"\n255\n" + bytes(255 * (not bit) for row in rows for bit in row))
