#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes resize_golden.h: what Pillow's Image.resize(FILTER, box=) makes of a known pattern, and its resize(FILTER) of whole
images whose passes overshoot.

Usage: /usr/bin/python3 gen_resize.py >resize_golden.h
"""
import PIL
from PIL import Image

# width, height, channels, box, output width, output height; boxes are exact in Pillow's 32-bit floats
CASES = [
    (20, 17, 3, (0, 0, 20, 17), 8, 8),
    (20, 17, 1, (0, 0, 20, 17), 8, 8),
    (20, 17, 3, (3, 2, 16, 15), 7, 5),
    (20, 17, 3, (2.25, 1.5, 17.75, 16.125), 6, 7),
    (9, 5, 3, (0, 0, 9, 5), 12, 11),
    (9, 5, 1, (0.5, 0.25, 3.75, 4.5), 11, 6),
    (8, 8, 3, (0, 0, 8, 8), 8, 8),
    (1, 1, 3, (0, 0, 1, 1), 4, 3),
    (31, 1, 1, (0, 0, 31, 1), 5, 2),
    (2, 40, 3, (0, 0, 2, 40), 3, 4),
    (40, 40, 1, (39, 39, 40, 40), 3, 3),
]


# The filters beside the bilinear one: smaller and larger, with fractions, gray, one pixel.
OTHERS = (0, 3, 4, 5, 8, 10)


def pattern(size, soft):
    """Numerical Recipes' generator, its high byte; the test makes the same. Soft: 64 to 191, of which no filter makes
    anything below 0 or above 255."""
    state, out = 1, bytearray()
    for _ in range(size):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        out.append((state >> 25) + 64 if soft else state >> 24)
    return bytes(out)


print("/* SPDX-License-Identifier: BSD-2-Clause */")
print(f"/* Made by gen_resize.py with Pillow {PIL.__version__}; pixels in hexadecimal. */")
print("static const struct golden goldens[] = {")
for name in "BILINEAR", "NEAREST", "BOX", "BICUBIC", "LANCZOS":
    for width, height, channels, box, out_width, out_height in CASES if name == "BILINEAR" else [CASES[i] for i in OTHERS]:
        image = Image.frombytes("RGB" if channels == 3 else "L", (width, height),
                                pattern(width * height * channels, name in ("BICUBIC", "LANCZOS")))
        pixels = image.resize((out_width, out_height), Image.Resampling[name], box=box).tobytes()
        sides = ", ".join(str(side) for side in box)
        rows = [f'     "{pixels[at : at + 46].hex()}"' for at in range(0, len(pixels), 46)]
        print(f"    {{DL2_{name}, {width}, {height}, {channels}, {{{sides}}}, {out_width}, {out_height},")
        print("\n".join(rows) + "},")
print("};")

# Whole images: width, height, channels, output width, output height. Values from 0 to 255, and black and white alone, of
# which Lanczos makes the most beyond both ends.
WHOLE = [
    (45, 31, 3, 20, 9),
    (37, 64, 1, 9, 16),
    (130, 7, 3, 11, 1),
    (50, 9, 3, 49, 5),
    (33, 200, 1, 2, 12),
]

print("\nstatic const struct whole_golden whole_goldens[] = {")
for name in "LANCZOS", "BOX", "BILINEAR", "NEAREST":
    for i, (width, height, channels, out_width, out_height) in enumerate(WHOLE):
        if name == "NEAREST" and out_width * 2 > width:
            continue  # middles between two samples, of which Pillow takes either
        data = pattern(width * height * channels, False)
        if i % 2 == 0:
            data = bytes(255 if value > 127 else 0 for value in data)
        image = Image.frombytes("RGB" if channels == 3 else "L", (width, height), data)
        pixels = image.resize((out_width, out_height), Image.Resampling[name]).tobytes()
        rows = [f'     "{pixels[at : at + 46].hex()}"' for at in range(0, len(pixels), 46)]
        print(f"    {{DL2_{name}, {width}, {height}, {channels}, {out_width}, {out_height}, {str(i % 2 == 0).lower()},")
        print("\n".join(rows) + "},")
print("};")
