#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes golden.inc: what scikit-image says of pattern.h's images. Needs Debian's python3-skimage.

    /usr/bin/python3 tests/quality/make_golden.py > tests/quality/golden.inc
"""
import numpy as np
from skimage.metrics import peak_signal_noise_ratio, structural_similarity

# width, height, channels, strength, shift
CASES = [
    (11, 11, 3, 6, 0), (12, 11, 1, 6, 0), (11, 40, 3, 20, 0), (37, 23, 3, 4, 0), (37, 23, 1, 60, 0),
    (64, 64, 3, 1, 0), (128, 128, 3, 12, 0), (128, 128, 3, 3, 30), (191, 17, 3, 9, -20), (192, 33, 3, 9, 0),
    (193, 50, 3, 30, 0), (365, 14, 3, 5, 0), (400, 61, 1, 8, 0), (500, 375, 3, 10, 0),
    (176, 176, 3, 20, 0), (177, 191, 1, 90, 0), (239, 178, 3, 120, 40), (331, 257, 3, 255, 0),
]


def noise(x, y, c, seed):
    h = (x * 374761393 + y * 668265263 + c * 2246822519 + seed * 3266489917) & 0xffffffff
    h = ((h ^ (h >> 13)) * 1274126177) & 0xffffffff
    return h ^ (h >> 16)


def pattern(width, height, channels, strength, shift):
    y, x, c = np.meshgrid(np.arange(height), np.arange(width), np.arange(channels), indexing="ij")
    v = (3 * x + 2 * y + 40 * c) % 200 + np.where((x // 9 + y // 7) % 2, 45, 0) + noise(x, y, c, 1) % 16
    if strength:
        v = v + shift + noise(x, y, c, 2) % (2 * strength + 1) - strength
    return np.clip(v, 0, 255).astype(np.uint8)


def luma(image):
    image = image.astype(np.float64)
    return image[..., 0] if image.shape[2] == 1 else image @ [0.299, 0.587, 0.114]


def ssim(a, b, luminance=True):
    # A huge K1 makes the luminance's factor 1.
    return structural_similarity(a, b, K1=0.01 if luminance else 1e8, gaussian_weights=True, sigma=1.5,
                                 use_sample_covariance=False, data_range=255)


def half(image):
    image = np.pad(image, [(0, n % 2) for n in image.shape], "edge")
    return (image[::2, ::2] + image[1::2, ::2] + image[::2, 1::2] + image[1::2, 1::2]) / 4


def ms_ssim(a, b):
    product = 1
    for scale, weight in enumerate([0.0448, 0.2856, 0.3001, 0.2363, 0.1333]):
        product *= max(ssim(a, b, luminance=scale == 4), 0) ** weight
        a, b = half(a), half(b)
    return product


if __name__ == "__main__":
    print("/* Made by make_golden.py: width, height, channels, strength, shift, PSNR RGB, PSNR Y, SSIM Y, MS-SSIM Y. */")
    for case in CASES:
        a, b = pattern(*case[:3], 0, 0), pattern(*case)
        y, z = luma(a), luma(b)
        print("{%d, %d, %d, %d, %d, %.12f, %.12f, %.12f, %s}," % (
            *case, peak_signal_noise_ratio(a, b), peak_signal_noise_ratio(y, z, data_range=255), ssim(y, z),
            "%.12f" % ms_ssim(y, z) if min(case[:2]) >= 176 else "NAN"))
