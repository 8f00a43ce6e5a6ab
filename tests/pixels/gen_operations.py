#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes operations_golden.h: what torchvision's functions make of a known pattern as a Pillow image.

Usage: /usr/bin/python3 gen_operations.py >operations_golden.h
"""
import math
import warnings

import PIL
from PIL import Image

warnings.filterwarnings("ignore")
import torch
import torchvision
from torchvision.transforms import InterpolationMode, autoaugment, functional as F

WIDTH, HEIGHT = 13, 10
FULL, NARROW = (0, 255), (60, 170)  # the range of the pattern's values


def pattern(size, low, high):
    """Numerical Recipes' generator, its high byte, put into a range; the test makes the same."""
    state, out = 1, bytearray()
    for _ in range(size):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        out.append(low + (state >> 24) * (high - low) // 255)
    return bytes(out)


def affine(image, shear, center, translate=(0, 0)):
    return F.affine(image, 0.0, list(translate), 1.0, list(shear), InterpolationMode.NEAREST, 0, center)


def shear(image, across, down):
    """About the top left corner, by tangents, as RandAugment's ShearX and ShearY."""
    degrees = [math.degrees(math.atan(across)), math.degrees(math.atan(down))]
    return affine(image, degrees, [0, 0])


def erase(image, fill, _):
    image = F.to_pil_image(F.erase(F.pil_to_tensor(image), 3, 2, 4, 5, torch.tensor(fill)))
    return image


# The two numbers mean what the test's function of that name takes them for.
FUNCTIONS = {
    "brightness": lambda image, a, b: F.adjust_brightness(image, a),
    "contrast": lambda image, a, b: F.adjust_contrast(image, a),
    "saturation": lambda image, a, b: F.adjust_saturation(image, a),
    "sharpness": lambda image, a, b: F.adjust_sharpness(image, a),
    "hue": lambda image, a, b: F.adjust_hue(image, a),
    "grayscale": lambda image, a, b: F.rgb_to_grayscale(image, 3 if image.mode == "RGB" else 1),
    "invert": lambda image, a, b: F.invert(image),
    "solarize": lambda image, a, b: F.solarize(image, a),
    "posterize": lambda image, a, b: F.posterize(image, int(a)),
    "autocontrast": lambda image, a, b: F.autocontrast(image),
    "equalize": lambda image, a, b: F.equalize(image),
    "blur": lambda image, a, b: F.gaussian_blur(image, [int(a), int(a)], [b, b]),
    "flip": lambda image, a, b: F.vflip(image),
    "rotate": lambda image, a, b: F.rotate(image, a, InterpolationMode.NEAREST, fill=int(b)),
    "shear": shear,
    "shear about the middle": lambda image, a, b: affine(image, (a, b), None),
    "translate": lambda image, a, b: affine(image, (0.0, 0.0), None, (int(a), int(b))),
    "erase": erase,
}

CASES = [
    *(("brightness", FULL, a, 0) for a in (0.0, 0.35, 1.27, 1.9)),
    *(("contrast", FULL, a, 0) for a in (0.0, 0.1, 0.73, 1.9)),
    ("contrast", NARROW, 1.5, 0),
    *(("saturation", FULL, a, 0) for a in (0.0, 0.1, 0.73, 1.9)),
    *(("sharpness", FULL, a, 0) for a in (0.0, 0.1, 0.73, 1.9)),
    *(("hue", FULL, a, 0) for a in (-0.5, -0.1, 0.0, 0.07, 0.5)),
    ("grayscale", FULL, 0, 0),
    ("invert", FULL, 0, 0),
    *(("solarize", FULL, a, 0) for a in (0.0, 127.5, 128.0, 255.0)),
    *(("posterize", FULL, a, 0) for a in (1, 4, 8)),
    ("autocontrast", FULL, 0, 0), ("autocontrast", NARROW, 0, 0), ("autocontrast", (77, 77), 0, 0),
    ("equalize", FULL, 0, 0), ("equalize", NARROW, 0, 0), ("equalize", (77, 77), 0, 0),
    ("blur", FULL, 3, 0.5), ("blur", FULL, 7, 1.3), ("blur", FULL, 9, 4.0),
    ("flip", FULL, 0, 0),
    *(("rotate", FULL, a, b) for a, b in ((0, 0), (9.0, 0), (-30.0, 200), (90.0, 0), (131.4, 0), (180.0, 0))),
    *(("shear", FULL, a, b) for a, b in ((0.3, 0), (-0.9, 0), (0, 0.21), (0, -0.99))),
    *(("shear about the middle", FULL, a, b) for a, b in ((10.0, 0.0), (10.0, -7.5))),
    *(("translate", FULL, a, b) for a, b in ((3, 0), (0, -4), (-12, 9), (13, 0))),
    ("erase", FULL, 0, 0), ("erase", FULL, 117, 0),
]
BINS = 31


def magnitudes(space):
    """Of each operation the magnitudes that the space has for 0, 9 and 30 of 31."""
    for name, (values, signed) in space.items():
        ends = [float(values[i]) for i in (0, 9, 30)] if values.ndim else [0.0] * 3
        print(f'    {{"{name}", {str(signed).lower()}, {{{", ".join(repr(value) for value in ends)}}}}},')


print("/* SPDX-License-Identifier: BSD-2-Clause */")
print(f"/* Made by gen_operations.py with torchvision {torchvision.__version__} and Pillow {PIL.__version__}; "
      "pixels in hexadecimal. */")
print("static const struct golden goldens[] = {")
for channels in 3, 1:
    for name, (low, high), a, b in CASES:
        image = Image.frombytes("RGB" if channels == 3 else "L", (WIDTH, HEIGHT),
                                pattern(WIDTH * HEIGHT * channels, low, high))
        if name == "erase" and channels == 1:
            continue
        pixels = FUNCTIONS[name](image, a, b).tobytes()
        assert len(pixels) == WIDTH * HEIGHT * channels
        print(f'    {{"{name}", {channels}, {low}, {high}, {a}, {b},')
        print("\n".join(f'     "{pixels[at : at + 46].hex()}"' for at in range(0, len(pixels), 46)) + "},")
print("};")
size = (224, 112)
print("static const struct magnitudes randaugment_magnitudes[] = {")
magnitudes(autoaugment.RandAugment()._augmentation_space(BINS, size[::-1]))
print("};")
print("static const struct magnitudes trivialaugment_magnitudes[] = {")
magnitudes(autoaugment.TrivialAugmentWide()._augmentation_space(BINS))
print("};")
policy = autoaugment.AutoAugment()
space = policy._augmentation_space(10, size[::-1])
print("static const struct policy imagenet_policy[] = {")
for pair in policy.policies:
    for name, p, number in pair:
        values = space[name][0]
        print(f'    {{"{name}", {p}, {float(values[number]) if number is not None else 0.0!r}}},')
print("};")
