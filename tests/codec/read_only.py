# SPDX-License-Identifier: BSD-2-Clause
"""read_only.py make FOLDER: BMP, GIF and TIFF files. read_only.py compare FOLDER DECODED: their pixels, by Pillow,
with FOLDER's images as PPM."""
import os
import struct
import sys

import numpy
from PIL import Image, ImageCms

WIDTH, HEIGHT = 53, 37


def bitmap(bits, body, header=40, compression=0, colors=0, palette=b"", masks=b"", height=HEIGHT):
    info = struct.pack("<IiiHHIIiiII", header, WIDTH, height, 1, bits, compression, 0, 0, 0, colors, 0)
    info += masks if header == 40 else (masks + bytes(header - 40))[:header - 40]
    return b"BM" + struct.pack("<IIII", 0, 0, 14 + len(info) + len(palette), header) + info[4:] + palette + body


def make(folder):
    random = numpy.random.default_rng(7)
    noise = random.integers(0, 256, (HEIGHT, WIDTH, 4), dtype="uint8")
    smooth = numpy.add.outer(numpy.arange(HEIGHT) * 5, numpy.arange(WIDTH) * 2).astype("uint8")
    color, gray = Image.fromarray(noise[..., :3]), Image.fromarray(smooth)
    kinds = {"rgb": color, "l": gray, "one": gray.convert("1"), "p": color.convert("P", palette=Image.ADAPTIVE)}
    for name, image in kinds.items():
        for extension in "bmp", "gif", "tif":
            image.save(f"{folder}/{name}-{extension}.{extension}")
    for bits in 1, 4, 8, 16, 24, 32:
        stride = (WIDTH * bits + 31) // 32 * 4
        body = random.integers(0, 256, stride * HEIGHT, dtype="uint8").tobytes()
        palette = random.integers(0, 256, 4 << bits, dtype="uint8").tobytes() if bits <= 8 else b""
        for height in HEIGHT, -HEIGHT:
            with open(f"{folder}/plain-{bits}-{height}.bmp", "wb") as file:
                file.write(bitmap(bits, body, palette=palette, height=height))
        layouts = {16: [(0xf800, 0x7e0, 0x1f, 0), (0x7c00, 0x3e0, 0x1f, 0x8000)],
                   32: [(0xff0000, 0xff00, 0xff, 0), (0xff, 0xff00, 0xff0000, 0xff000000), (0xff000000, 0xff0000, 0xff00, 0xff)]}
        for i, masks in enumerate(layouts.get(bits, [])):
            for header in (40, 108, 124) if not masks[3] else (108, 124):
                packed = struct.pack("<IIII", *masks)[:12 if header == 40 else 16]
                with open(f"{folder}/masks-{bits}-{i}-{header}.bmp", "wb") as file:
                    file.write(bitmap(bits, body, header=header, compression=3, masks=packed))
    rows = b"".join(bytes([20, y, WIDTH - 20, 255 - y, 0, 0]) for y in range(HEIGHT))
    with open(f"{folder}/rle8.bmp", "wb") as file:
        file.write(bitmap(8, rows + b"\0\1", compression=1, palette=noise.tobytes()[:1024]))
    kinds["p"].save(f"{folder}/transparent.gif", transparency=9)
    kinds["p"].save(f"{folder}/animated.gif", save_all=True, append_images=[gray, color])
    for compression in "tiff_lzw", "tiff_adobe_deflate", "packbits":
        color.save(f"{folder}/{compression}.tif", compression=compression)
    gray.convert("1").save(f"{folder}/fax.tif", compression="group4")
    Image.fromarray(numpy.dstack([smooth, smooth[::-1], smooth[:, ::-1]])).save(f"{folder}/jpeg.tif", compression="jpeg")
    color.convert("CMYK").save(f"{folder}/cmyk.tif")
    Image.fromarray(noise[..., :3] // 2 + 64).convert("LAB").save(f"{folder}/lab.tif")  # not at the edge of sRGB
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    tags = {bytes(profile[i:i + 4]): i for i in range(132, 132 + 12 * profile[131], 12)}
    red, = struct.unpack(">I", profile[tags[b"rXYZ"] + 4:tags[b"rXYZ"] + 8])
    profile[red + 8:red + 12] = struct.pack(">I", 0x9c18)  # Adobe RGB's X of red
    color.save(f"{folder}/profile.tif", icc_profile=bytes(profile))
    body = bytes((3 * WIDTH + 3) // 4 * 4 * HEIGHT)
    file = bytearray(bitmap(24, body, header=124) + profile)
    file[14 + 56:14 + 60] = b"DEBM"
    file[14 + 112:14 + 120] = struct.pack("<II", 124 + len(body), len(profile))
    with open(f"{folder}/profile-bmp.bmp", "wb") as output:
        output.write(file)
    Image.fromarray(noise).save(f"{folder}/rgba.tif")
    Image.fromarray(numpy.dstack([smooth, noise[..., 3]]), "LA").save(f"{folder}/la.tif")
    color.save(f"{folder}/pages.tif", save_all=True, append_images=[gray])


def expected(path):
    image = Image.open(path)
    if image.mode in ("RGBA", "LA") or "transparency" in image.info:
        image = image.convert("RGBA")
        over = Image.new("RGBA", image.size, (255, 255, 255, 255))
        over.alpha_composite(image)
        image = over
    return numpy.asarray(image.convert("RGB")).astype(int)


def compare(folder, decoded):
    others = 0
    for name in sorted(os.listdir(folder)):
        got = numpy.asarray(Image.open(f"{decoded}/{os.path.splitext(name)[0]}.ppm").convert("RGB")).astype(int)
        wanted = expected(f"{folder}/{name}")
        difference = abs(got - wanted).max() if got.shape == wanted.shape else None
        print(name, difference)
        if name == "lab.tif" and difference is not None:  # Pillow's goes through coarse tables
            others += abs(got - wanted).mean() > 0.3
        else:
            others += difference != 0
    return others


os.makedirs(sys.argv[2], exist_ok=True)
sys.exit(make(sys.argv[2]) if sys.argv[1] == "make" else int(compare(*sys.argv[2:]) > 0))
