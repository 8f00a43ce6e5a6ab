#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""How long does a browser take to open a report?

    report_page.py [--images N] [--chromium PROGRAM] [FOLDER]

Writes the JSON of a made-up study into FOLDER (a temporary one if left out): 20 variants of jpeg
and webp, with settings and resolutions, N images (1000) with scores by three metrics, more crops
than a page takes, and trainings from three seeds. Draws its report with the dl2-report on the PATH, then opens report.html five
times in a headless Chromium without a network. Prints the page's bytes, and the least and median
of the milliseconds to its load event, and to the end of the layout of all of it.
"""

import argparse
import json
import math
import os
import random
import re
import statistics
import struct
import subprocess
import tempfile
import zlib

CURVES = [("jpeg", "", ""), ("jpeg", "_444", ""), ("jpeg", "", "@320"), ("webp", "", ""),
          ("webp", "", "@320")]
QUALITIES = (10, 30, 50, 80)
NETWORKS = ("resnet10",)
BYTES = 110000  # of an image of the original


def write(folder, name, content):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file)


def figures(codec, settings, resolution, quality):
    """Bits per pixel, dB of PSNR, and points of top-1 that are lost."""
    rate = 0.12 * (quality / 10) ** 0.9 * (0.7 if codec == "webp" else 1)
    rate *= (1.25 if settings else 1) * (0.45 if resolution else 1)
    return rate, 24 + 7 * math.log10(1 + 40 * rate), 3.2 / (1 + 9 * rate) + (0.8 if resolution else 0)


def write_variant(folder, curve, quality, images, rng):
    codec, settings, resolution = curve
    name = f"{codec}{settings}-{quality:02d}{resolution}"
    rate, psnr, lost = figures(*curve, quality)
    rows, pixels = [], 400 * 300
    for i in range(images):
        hard = rng.gauss(0, 1) if i % 50 else 2.5
        size = round(pixels / 8 * rate * math.exp(0.3 * hard))
        rows.append({"key": f"val/class-{i % 10}/{i:04d}", "width": 400, "height": 300, "bytes": size,
                     "bits_per_pixel": 8 * size / pixels, "psnr_rgb": psnr - 1.5 * hard,
                     "ssim": 1 - 0.2 * math.exp(-psnr / 9 + 0.2 * hard),
                     "ciede2000": max(0.1, 9 - psnr / 5 + 0.3 * hard)})
    total = sum(row["bytes"] for row in rows)
    metrics = {}
    for metric in ("psnr_rgb", "ssim", "ciede2000"):
        values = sorted(row[metric] for row in rows)
        lower = metric == "ciede2000"
        metrics[metric] = {"mean": statistics.fmean(values), "median": statistics.median(values),
                           "p95" if lower else "p5": values[int((0.95 if lower else 0.05) * len(values))],
                           "max" if lower else "min": values[-1 if lower else 0], "images": images}
    common = {"variant": name, "codec": codec, "quality": quality, "images": images,
              "bytes": total, "bits_per_pixel": 8 * total / pixels / images}
    resize = {"resize": {"long": 320, "filter": "lanczos"}} if resolution else {}
    write(folder, f"variants/{name}/dl2-variant.json", common | {
        "schema": "dl2-variant/1", "complete": True, "source": "photos", "options": resize,
        "encoder": {"quality": quality}, "libraries": {}, "source_bytes": BYTES * images,
        "pixels": pixels * images, "source_pixels": pixels * images, "failed": [], "ignored": [],
        "encode_cpu_seconds": images * 0.004 * (8 if codec == "webp" else 1),
        "decode_cpu_seconds": 1.0})
    write(folder, f"quality/{name}.json", {
        "schema": "dl2-quality/1", "reference": "photos", "definitions": {},
        "titles": {"psnr_rgb": "PSNR RGB", "ssim": "SSIM", "ciede2000": "CIEDE2000"},
        "units": {"psnr_rgb": "dB", "ssim": "", "ciede2000": ""},
        "lower_is_better": ["ciede2000"], "one_is_best": ["ssim"], "variants": [common | resize | {
            "path": name, "pixels": pixels * images, "reference_bytes": BYTES * images,
            "cpu_seconds": 1, "metrics": metrics, "missing": [], "extra": [], "mismatched": [],
            "failed": [], "per_image": rows}]})
    write_load(folder, name, 900 + 500 / (1 + rate))
    return name, lost


def write_load(folder, name, rate):
    write(folder, f"load/{name}.json", {
        "schema": "dl2-load/1", "variant": name, "images": 1000, "batch": 64,
        "images_per_second": rate, "images_per_core_second": rate, "bad": [],
        "machine": {"cpu": "made up", "cores": 2, "system": "Linux", "simd": "avx2"}})


def write_training(folder, name, lost, network, seed, rng):
    top1 = 0.72 - lost / 100 + rng.gauss(0, 0.003)
    final = {"name": name, "images": 1000, "loss": 1, "top1": top1, "top5": 0.9}
    write(folder, f"train/{name}/{network}/seed-{seed}/experiment_report.json", {
        "schema": "dl2-experiment/1", "variant": name, "arch": network, "seed": seed,
        "device": "cpu", "arguments": {"data": f"data/{name}", "epochs": 30, "image-size": 64,
                                       "val": [], "trainers": 1},
        "versions": {}, "machine": {"cpu": "made up", "cores": 2}, "classes": 10,
        "train_images": 9000, "val_images": 1000, "train_bytes": 1, "parameters": 1,
        "epochs": [{"epoch": e, "seconds": 10, "images_per_second": 900, "data_stall": 0.1,
                    "val": [final | {"top1": top1 * (1 - math.exp(-(e + 1) / 6))}]}
                   for e in range(30)],
        "final": [final], "bad": [], "completed": True})


def write_png(path, rng):
    """128 x 128 pixels of noise."""
    rows = b"".join(b"\0" + rng.randbytes(3 * 128) for _ in range(128))
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", 128, 128, 8, 2, 0, 0, 0)),
              (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        for kind, data in chunks:
            file.write(struct.pack(">I", len(data)) + kind + data +
                       struct.pack(">I", zlib.crc32(kind + data)))


def write_crops(folder, names, rng):
    crops = []
    for metric in ("ssim", "psnr_rgb", "ciede2000"):
        for kind in ("worst", "median", "best"):
            files = [f"image-{len(crops)}-{v}.png" for v in range(len(names) + 1)]
            crops.append({"of": [{"metric": metric, "kind": kind}], "key": f"val/{metric}-{kind}",
                          "x": 0, "y": 0, "width": 128, "height": 128, "original": files[0],
                          "variants": [{"variant": name, "file": file, "scores": {metric: 0.5}}
                                       for name, file in zip(names, files[1:])]})
            os.makedirs(os.path.join(folder, "crops"), exist_ok=True)
            for file in files:
                write_png(os.path.join(folder, "crops", file), rng)
    write(folder, "crops/crops.json", {"schema": "dl2-crops/2", "reference": "photos",
                                       "metrics": ["ssim", "psnr_rgb", "ciede2000"], "left_out": [],
                                       "crops": crops})


def write_study(folder, images):
    rng = random.Random(1)
    write_load(folder, "raw", 800)
    made = [("raw", 0)]
    for curve in CURVES:
        made += [write_variant(folder, curve, quality, images, rng) for quality in QUALITIES]
    write_crops(folder, [name for name, _ in made if "@" not in name and name != "raw"], rng)
    for name, lost in made:
        for network in NETWORKS:
            for seed in (1, 2, 3):
                write_training(folder, name, lost, network, seed, rng)


PROBE = """<script>addEventListener("load",()=>{const load=performance.now();
document.body.getBoundingClientRect();document.title="opened "+load.toFixed(1)+" "+
performance.now().toFixed(1)})</script></body>"""


def open_page(chromium, page):
    """Milliseconds to the load event, and to the end of the layout after it."""
    with open(page, encoding="utf-8") as file:
        text = file.read().replace("</body>", PROBE)
    probed = page + ".probe.html"
    with open(probed, "w", encoding="utf-8") as file:
        file.write(text)
    done = subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu", "--timeout=4000",
                           "--dump-dom", "--proxy-server=localhost:1", "file://" + probed],
                          capture_output=True, text=True, check=True)
    os.remove(probed)
    found = re.search(r"<title>opened ([0-9.]+) ([0-9.]+)</title>", done.stdout)
    return float(found[1]), float(found[2])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--chromium", default="chromium")
    parser.add_argument("folder", nargs="?")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = os.path.abspath(arguments.folder or temporary)
        write_study(folder, arguments.images)
        page = os.path.join(folder, "report", "report.html")
        subprocess.run(["dl2-report", "--quiet", folder, "-o", page], check=True)
        times = sorted(open_page(arguments.chromium, page) for _ in range(5))
        print(f"{os.path.getsize(page)} bytes; load event {times[0][0]:.0f} ms (median "
              f"{times[2][0]:.0f}); with layout {min(t[1] for t in times):.0f} ms (median "
              f"{statistics.median(t[1] for t in times):.0f})")


if __name__ == "__main__":
    main()
