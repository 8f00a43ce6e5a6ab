# SPDX-License-Identifier: BSD-2-Clause
"""compare_batches.py PROGRAM FOLDER [photos]: holds batches against Pillow (training) and torchvision (validation).

Of PNGs that it makes in FOLDER, no value may be off by more than one gray level. Of JPEGs that are there ("photos") the
mean difference may be at most one: planes are resized before colors are converted, and decoded as coarsely as the crop
allows, so single pixels differ by more. Prints what it finds; exits with 1 where it is too much.
"""
import os
import random
import subprocess
import sys

from PIL import Image

try:
    from torchvision import transforms
except ImportError:
    transforms = None

BILINEAR = Image.Resampling.BILINEAR
SIZES = [(500, 333), (333, 500), (64, 64), (73, 200), (20, 15), (1, 1), (5, 300), (640, 9), (129, 128), (256, 256)]


def make_images(folder):
    random.seed(1)
    for i, (width, height) in enumerate(SIZES * 2):
        mode = "L" if i % 5 == 4 else "RGB"
        noise = random.randbytes(width * height * len(mode))
        Image.frombytes(mode, (width, height), noise).save(f"{folder}/{i:02}.png")


def batches(program, folder, size, resize, mode, channels, epoch):
    command = [program, folder, size, resize, mode, channels, 3, epoch]
    data = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, check=True).stdout
    while data:
        line, data = data.split(b"\n", 1)
        path, crop = line.decode().split("\t")
        length = size * size * channels
        yield path, [int(part) for part in crop.split()], data[:length]
        data = data[length:]


def trained(image, crop, size):
    x, y, width, height, flip = crop
    image = image.crop((x, y, x + width, y + height)).resize((size, size), BILINEAR)
    return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if flip else image


def validated(image, size, resize):
    return transforms.CenterCrop(size)(transforms.Resize(resize)(image))


def differences(program, folder, size, resize, mode, channels, epoch):
    """Of each image: its path, and how far each value is off."""
    for path, crop, pixels in batches(program, folder, size, resize, mode, channels, epoch):
        image = Image.open(path)
        if channels == 1 or image.mode == "RGB":
            image = image.convert("RGB" if channels == 3 else "L")
        shown = trained(image, crop, size) if mode == "train" else validated(image, size, resize)
        expected = shown.convert("RGB" if channels == 3 else "L").tobytes()
        yield path, [abs(a - b) for a, b in zip(expected, pixels, strict=True)]


def compare(program, folder, size, resize, mode, channels, epoch):
    worst, count = 0, 0
    for _, off in differences(program, folder, size, resize, mode, channels, epoch):
        worst = max(worst, max(off))
        count += 1
    print(f"{mode}, {size} pixels, {channels} channels: {count} images, largest difference {worst}")
    return count == 2 * len(SIZES) and worst <= 1


def compare_photos(program, folder, size, resize, mode, channels, epoch):
    kinds = {}
    for path, off in differences(program, folder, size, resize, mode, channels, epoch):
        kind = path.rsplit("-", 1)[1].split(".")[0]
        means, largest = kinds.setdefault(kind, ([], []))
        means.append(sum(off) / len(off))
        largest.append(max(off))
    good = sum(len(means) for means, _ in kinds.values()) == len(os.listdir(folder)) > 0
    for kind, (means, largest) in sorted(kinds.items()):
        mean = sum(means) / len(means)
        print(f"{mode}, {size} pixels, {channels} channels, {kind}: {len(means)} images, mean difference {mean:.3f}, "
              f"of one image at most {max(means):.3f}, of one value at most {max(largest)}")
        good &= mean <= 1
    return good


def main():
    program, folder = sys.argv[1:3]
    if sys.argv[3:] == ["photos"]:
        good = all([compare_photos(program, folder, *case) for case in
                    ((224, 0, "train", 3, 0), (64, 0, "train", 3, 1), (224, 0, "train", 1, 0))])
        if transforms:
            good &= all([compare_photos(program, folder, *case) for case in
                         ((224, 256, "val", 3, 0), (64, 73, "val", 3, 0))])
        sys.exit(not good)
    make_images(folder)
    good = True
    for size, channels, epoch in (64, 3, 0), (64, 3, 1), (224, 3, 0), (33, 1, 0):
        good &= compare(program, folder, size, 0, "train", channels, epoch)
    if transforms:
        for size, resize, channels in (64, 73, 3), (64, 64, 3), (224, 256, 3), (33, 50, 1):
            good &= compare(program, folder, size, resize, "val", channels, 0)
    else:
        print("validation: SKIP, no torchvision (Debian: python3-torchvision)")
    sys.exit(not good)


main()
