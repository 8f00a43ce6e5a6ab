#!/usr/bin/python3
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


print("/* Made by make_golden.py: width, height, channels, strength, shift, PSNR RGB, PSNR Y, SSIM Y. */")
for case in CASES:
    width, height, channels, strength, shift = case
    a, b = pattern(width, height, channels, 0, 0), pattern(*case)
    print("{%d, %d, %d, %d, %d, %.12f, %.12f, %.12f}," % (
        *case, peak_signal_noise_ratio(a, b), peak_signal_noise_ratio(luma(a), luma(b), data_range=255),
        structural_similarity(luma(a), luma(b), gaussian_weights=True, sigma=1.5, use_sample_covariance=False,
                              data_range=255)))
