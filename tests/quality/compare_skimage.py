# SPDX-License-Identifier: BSD-2-Clause
"""Holds every figure of a dl2-quality JSON file against scikit-image: compare_skimage.py FILE.json"""
import json
import os
import sys

import numpy as np
from PIL import Image
from skimage.metrics import peak_signal_noise_ratio

from make_golden import ciede2000, luma, ms_ssim, ssim

TOLERANCE = {"ciede2000": 1e-4, "ciede2000_p95": 1e-3}  # single precision; of all others 1e-6


def find(folder):
    return {os.path.splitext(os.path.relpath(os.path.join(at, name), folder))[0]: os.path.join(at, name)
            for at, _, names in os.walk(folder) for name in names}


def rgb(path):
    return np.asarray(Image.open(path).convert("RGB"))


def expected(a, b):
    y, z = luma(a), luma(b)
    return {
        "psnr_rgb": peak_signal_noise_ratio(a, b),
        "psnr_y": peak_signal_noise_ratio(y, z, data_range=255),
        "ssim": ssim(y, z),
        "ms_ssim": ms_ssim(y, z),
        "ciede2000": ciede2000(a, b)[0],
        "ciede2000_p95": ciede2000(a, b)[1],
    }


def compare(what, value, truth, metric=None):
    if not abs(value - truth) <= TOLERANCE.get(metric, 1e-6) * max(1, abs(truth)):
        sys.exit(f"{what}: {value}, but scikit-image says {truth}")


document = json.load(open(sys.argv[1]))
reference = find(document["reference"])
worst, compared = 0, 0
for variant in document["variants"]:
    files = find(variant["path"])
    truths, mse = {}, {"psnr_rgb": [], "psnr_y": []}
    for row in variant["per_image"]:
        a, b = rgb(reference[row["key"]]), rgb(files[row["key"]])
        for name, truth in expected(a, b).items():
            compare(f"{variant['variant']} {row['key']} {name}", row[name], truth, name)
            worst, compared = max(worst, abs(row[name] - truth)), compared + 1
            truths.setdefault(name, []).append(truth)
        mse["psnr_rgb"].append(np.mean((a.astype(np.float64) - b) ** 2))
        mse["psnr_y"].append(np.mean((luma(a) - luma(b)) ** 2))
        compare("bytes", row["bytes"], os.path.getsize(files[row["key"]]))
        compare("bits per pixel", row["bits_per_pixel"], 8 * row["bytes"] / (a.shape[0] * a.shape[1]))
    for name, values in truths.items():
        metric = variant["metrics"][name]
        lower = name in document["lower_is_better"]
        for figure, truth in (("mean", np.mean(values)), ("median", np.median(values)),
                              ("p95" if lower else "p5", np.percentile(values, 95 if lower else 5)),
                              ("max" if lower else "min", np.max(values) if lower else np.min(values))):
            compare(f"{variant['variant']} {name} {figure}", metric[figure], truth, name)
        if name in mse:
            compare(f"{variant['variant']} {name} of mean MSE", metric["of_mean_mse"],
                    10 * np.log10(255 ** 2 / np.mean(mse[name])))
    compare("bytes", variant["bytes"], sum(os.path.getsize(files[row["key"]]) for row in variant["per_image"]))
print(f"{compared} figures within {worst:.1e}")
if not compared:
    sys.exit("nothing was compared")
