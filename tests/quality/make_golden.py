#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes golden.inc: scores of pattern.h's images by scikit-image, or, of metrics that it has not, by their
formulae in double precision. Needs Debian's python3-skimage.

    /usr/bin/python3 tests/quality/make_golden.py > tests/quality/golden.inc
"""
import os
import re

import numpy as np
from skimage.color import deltaE_ciede2000, rgb2lab
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


ROOM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "quality")


def table(file, name):
    """The numbers of a C table: published constants, of which the tree has one copy."""
    text = open(os.path.join(ROOM, file)).read()
    body = re.search(re.escape(name) + r"\b[^;]*?= \{(.*?)\};", text, re.S).group(1)
    return np.array([float(word) for word in re.sub(r"/\*.*?\*/|[{}f]", "", body).replace(",", " ").split()])


def psnr_hvs_m(a, b):
    """As psnrhvsm.m. An image without a visible difference is not among the cases."""
    csf, mask = table("psnr_hvs_m.c", "sensitivity").reshape(8, 8), table("psnr_hvs_m.c", "masking").reshape(8, 8)
    n = np.arange(8)
    dct = np.cos((2 * n + 1) * n[:, None] * np.pi / 16) * np.where(n[:, None], 0.5, np.sqrt(0.125))
    height, width = (size // 8 * 8 for size in a.shape)
    error = 0
    for y in range(0, height, 8):
        for x in range(0, width, 8):
            coefficients, masks = [], []
            for image in a, b:
                block = image[y:y + 8, x:x + 8]
                coefficients.append(dct @ block @ dct.T)
                energy = (coefficients[-1] ** 2 * mask).sum() - coefficients[-1][0, 0] ** 2 * mask[0, 0]
                spread = lambda part: np.var(part, ddof=1) * part.size
                quarters = sum(spread(block[i:i + 4, j:j + 4]) for i in (0, 4) for j in (0, 4))
                masks.append(np.sqrt(energy * quarters / spread(block)) / 32 if spread(block) else 0)
            seen = abs(coefficients[0] - coefficients[1])
            hidden = max(masks) / mask
            hidden[0, 0] = 0
            error += ((np.maximum(seen - hidden, 0) * csf) ** 2).sum()
    return 10 * np.log10(255 ** 2 / (error / (height * width)))


def ciede2000(a, b):
    """Mean and 95th percentile."""
    differences = deltaE_ciede2000(*(rgb2lab(np.broadcast_to(image, image.shape[:2] + (3,))) for image in (a, b)))
    return differences.mean(), np.percentile(differences, 95)


def linear_light(image):
    v = np.broadcast_to(image, image.shape[:2] + (3,)) / 255
    return np.where(v <= 0.04045, v / 12.92, ((v + 0.055) / 1.055) ** 2.4)


def recursive_gaussian(sigma=1.5):
    """The taps of Charalampidis, IEEE TSP 64(19), 2016; the numbers are those of its formulae."""
    n = round(3.2795 * sigma + 0.2546)  # (57)
    omega = np.array([1, 3, 5]) * np.pi / (2 * n)
    sign = np.array([1, -1, 1])
    p = sign / np.tan(omega / 2)  # (37)
    r = sign * p ** 2 / np.sin(omega)  # (44)
    rho = np.exp(-(sigma * omega) ** 2 / 2) / n  # (50)
    d = lambda i, j: p[i] * r[j] - r[i] * p[j]
    zeta = d(1, 2) / d(0, 1), d(2, 0) / d(0, 1)  # (52)
    beta = np.linalg.solve([p, r, [*zeta, 1]],
                           [1, n * n - sigma * sigma, zeta[0] * rho[0] + zeta[1] * rho[1] + rho[2]])  # (53) to (56)
    return (beta[:, None] * np.cos(omega[:, None] * np.arange(1 - n, n))).sum(0)


def blur(plane):
    taps = recursive_gaussian()
    for axis in 0, 1:
        plane = np.apply_along_axis(np.convolve, axis, np.pad(plane, 4), taps, "valid")
        plane = np.take(plane, range(4, plane.shape[1 - axis] - 4), 1 - axis)
    return plane


def xyb(light):
    """libjxl's opponent colors, moved to 0 to 1."""
    bias = 0.0037930732552754493
    matrix = np.array([[0.30, 0.622, 0.078], [0.23, 0.692, 0.078], [0.24342268924547819, 0.20476744424496821, 0]])
    matrix[2, 2] = 1 - matrix[2].sum()
    l, m, s = np.moveaxis(np.cbrt(light @ matrix.T + bias) - np.cbrt(bias), -1, 0)
    return 7 * (l - m) + 0.42, (l + m) / 2 + 0.01, s - (l + m) / 2 + 0.55


def ssimulacra2(a, b):
    """As libjxl's tools/ssimulacra2.cc, with its covariances as they stand there."""
    weights, scales = table("ssimulacra2.c", "weights"), []
    a, b = linear_light(a), linear_light(b)
    while len(scales) < 6:
        if scales:
            a, b = (np.stack([half(light[..., c]) for c in range(3)], -1) for light in (a, b))
        scales.append([])
        for x, y in zip(xyb(a), xyb(b)):
            mx, my, c2 = blur(x), blur(y), 0.0009
            covariance = 2 * (blur(x * y) - mx * my) + c2
            structure = 1 - (1 - (mx - my) ** 2) * covariance / (
                blur(x * x) - mx * mx + blur(y * y) - my * my + c2)
            edges = (1 + abs(y - my)) / (1 + abs(x - mx)) - 1
            maps = [np.maximum(m, 0) for m in (structure, edges, -edges)]
            scales[-1].append([[np.mean(m) for m in maps], [np.mean(m ** 4) ** 0.25 for m in maps]])
        if min(a.shape[:2]) < 8:
            break
    norms = np.moveaxis(np.array(scales), 0, 1).ravel()
    s = weights[:norms.size] @ norms * 0.9562382616834844
    s = 2.326765642916932 * s - 0.020884521182843837 * s * s + 6.248496625763138e-05 * s ** 3
    return 100 - 10 * s ** 0.6276336467831387 if s > 0 else 100


if __name__ == "__main__":
    print("/* SPDX-License-Identifier: BSD-2-Clause */\n"
          "/* Made by make_golden.py: width, height, channels, strength, shift, PSNR RGB, PSNR Y, SSIM Y, MS-SSIM Y,\n"
          " * PSNR-HVS-M, SSIMULACRA2, mean CIEDE2000, its 95th percentile. */")
    for case in CASES:
        a, b = pattern(*case[:3], 0, 0), pattern(*case)
        y, z = luma(a), luma(b)
        print("{%d, %d, %d, %d, %d, %.12f, %.12f, %.12f, %s, %.9f, %.9f, %.9f, %.9f}," % (
            *case, peak_signal_noise_ratio(a, b), peak_signal_noise_ratio(y, z, data_range=255), ssim(y, z),
            "%.12f" % ms_ssim(y, z) if min(case[:2]) >= 176 else "NAN",
            psnr_hvs_m(y, z), ssimulacra2(a, b), *ciede2000(a, b)))
