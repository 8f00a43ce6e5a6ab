# SPDX-License-Identifier: BSD-2-Clause
"""The module dl2 against dl2-load, NumPy and PyTorch: bytes, lifetimes, errors.

Says which tests were left out, and why, for want of PyTorch or torchvision.
"""
import ast
import ctypes
import errno
import gc
import json
import os
import pathlib
import pickle
import queue
import random
import re
import resource
import signal
import struct
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import types
import unittest
import warnings
import zlib

import numpy

try:
    import torch
except ImportError:
    torch = None
try:
    from torchvision import transforms
except ImportError:
    transforms = None
import dl2
import fake_card

SIZE = 32
NAMES = ["aster", "rose"]
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # ImageNet's, as everybody has them
needs_torch = unittest.skipUnless(torch, "no PyTorch (Debian: python3-torch)")


def run(*command):
    """What one of the programs prints; it brings its sanitizer's runtime itself."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True).stdout


def write_picture(path, width, height, low, high, seed):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    pixels = numpy.random.default_rng(seed).integers(low, high, width * height * 3, dtype=numpy.uint8)
    with open(path, "wb") as file:
        file.write(b"P6\n%d %d\n255\n" % (width, height) + pixels.tobytes())


def make_flowers(folder):
    """Asters are dark, roses bright: 22 and 18 for training, 3 each for validation."""
    for label, name in enumerate(NAMES):
        for n in range(22 - 4 * label):
            write_picture(f"{folder}/train/{name}/{n:02}.ppm", 40 + 3 * n, 90 - 2 * n, 120 * label, 120 + 120 * label, n)
        for n in range(3):
            write_picture(f"{folder}/val/{name}/{n:02}.ppm", 50, 40 + n, 120 * label, 120 + 120 * label, n)
    with open(f"{folder}/train/rose/README.txt", "w") as file:
        file.write("not an image")


def setUpModule():
    global scratch, flowers
    scratch = tempfile.TemporaryDirectory(prefix="dl2-test.")
    flowers = f"{scratch.name}/flowers"
    make_flowers(flowers)


def tearDownModule():
    scratch.cleanup()


def loader(path=None, **settings):
    return dl2.Loader(path or flowers, **{"batch": 8, "image_size": SIZE, "workers": 2, **settings})


def epoch_of(batches):
    """Copies of what came: (images, labels, indices)."""
    parts = [(numpy.array(b.images), numpy.array(b.labels), numpy.array(b.indices)) for b in batches]
    return [numpy.concatenate(part) for part in zip(*parts)]


def address(array):
    return array.__array_interface__["data"][0]


def pillow():
    try:
        from PIL import Image
        return Image
    except ImportError:
        raise unittest.SkipTest("no Pillow (Debian: python3-pil)")


class Sizes(unittest.TestCase):
    def test_not_square(self):
        for layout, shape in ("NHWC", (8, 24, 40, 3)), ("NCHW", (8, 3, 24, 40)):
            with loader(image_size=(24, 40), layout=layout) as batches:
                self.assertEqual(numpy.asarray(next(iter(batches)).images).shape, shape)
                self.assertEqual(batches.settings["image_size"], (24, 40))
                self.assertIn("image_size (24, 40)", repr(batches))
        with loader(image_size=(SIZE, SIZE), seed=2) as pair, loader(seed=2) as one:
            self.assertEqual(pair.settings, one.settings)
            numpy.testing.assert_array_equal(epoch_of(pair)[0], epoch_of(one)[0])
        state = loader(image_size=(24, 40)).state()
        loader(image_size=(24, 40)).resume(json.loads(json.dumps(state)))
        with self.assertRaisesRegex(ValueError, r"image_size .*24, 40.*, this loader \(40, 24\)"):
            loader(image_size=(40, 24)).resume(state)
        for wrong, error in ((24,), TypeError), ((24, 40, 3), TypeError), ("224", TypeError), ((24, 0), ValueError), ((24, 70000), ValueError):
            with self.assertRaisesRegex(error, "image_size"):
                loader(image_size=wrong)

    def test_validation_is_pillows(self):
        """Squash is Pillow's resize of the whole; center its resize of the part that covers the output."""
        image_of = pillow()
        height, width = 20, 33
        for crop in "squash", "center":
            with loader(train=False, image_size=(height, width), val_crop=crop) as batches:
                images, _, indices = epoch_of(batches)
                names = [batches.dataset.sample(int(i)).path for i in indices]
            for ours, path in zip(images, names):
                image = image_of.open(path)
                box = (0, 0) + image.size
                if crop == "center":
                    down, across = 23, round(33 * 23 / 20)  # 20 * 256 / 224
                    wide = down * image.width > across * image.height
                    size = (image.width * down // image.height, down) if wide else (across, image.height * across // image.width)
                    x, y = round((size[0] - width) / 2), round((size[1] - height) / 2)
                    sx, sy = image.width / size[0], image.height / size[1]
                    box = (x * sx, y * sy, (x + width) * sx, (y + height) * sy)
                theirs = numpy.asarray(image.resize((width, height), image_of.Resampling.BILINEAR, box=box), numpy.int16)
                self.assertLessEqual(numpy.abs(ours - theirs).max(), 1, (crop, path))

    def test_where_crops_are_of_use(self):
        for wrong in {"val_crop": "squash"}, {"train": False, "val_crop": "squash", "resize": 40}, {"train": False, "val_crop": "top"}, {"train": False, "image_size": (20, 40), "resize": 19}:
            with self.assertRaisesRegex(ValueError, "val_crop|resize"):
                loader(**wrong)
        with loader(train=False, image_size=(20, 40), resize=20):
            pass


def write_png(path, pixels, palette=False, bits=8):
    """A gray PNG of these numbers, or one of a palette with other colours."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    height, width = pixels.shape
    rows = pixels if bits == 8 else numpy.packbits(numpy.unpackbits(pixels[..., None], axis=2)[..., 8 - bits:].reshape(height, -1), axis=1)
    body = b"".join(b"\0" + row.tobytes() for row in rows)
    colours = bytes((37 * i + 11 * c) % 256 for i in range(1 << bits) for c in range(3))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, 3 if palette else 0, 0, 0, 0)) +
                   (chunk(b"PLTE", colours) if palette else b"") + chunk(b"IDAT", zlib.compress(body)) + chunk(b"IEND", b""))


def make_plugin(name, source, *flags):
    """A plug-in of the tests or the examples: its file."""
    path, top = f"{scratch.name}/{name}", os.environ["srcdir"]
    if not os.path.exists(path):
        run(*os.environ.get("CC", "cc").split(), "-std=c11", "-O1", "-shared", "-fPIC", f"-I{top}", f"{top}/{source}", "-o", path, *flags)
    return path


class Plugins(unittest.TestCase):
    """Operations of a user's own, from shared objects; tests/load/plugin.sh has what goes wrong with them."""

    def test_same_for_any_workers(self):
        grain = f"vflip,grain@{make_plugin('libgrain.so', 'examples/grain.c')}:strength=9"
        plain, once = epoch_of(loader(augment="vflip")), epoch_of(loader(augment=grain, workers=1))
        difference = numpy.abs(once[0].astype(int) - plain[0])
        self.assertTrue(1 < difference.mean() < 9 and difference.max() <= 9)
        for same in {"workers": 3}, {"workers": 3, "batching": "completion", "batch": 40}:
            images, labels, indices = epoch_of(loader(augment=grain, **same))
            order = [list(indices).index(i) for i in once[2]]
            self.assertTrue((images[order] == once[0]).all(), same)
        batches = loader(augment=grain, workers=1)
        self.assertRegex(batches.settings["augment"], r"^vflip:p=0.5,grain@/.*/libgrain.so#[0-9a-f]{16}:p=1:strength=9:coarse=1$")
        again = pickle.loads(pickle.dumps(batches))
        self.assertTrue((epoch_of(again)[0] == once[0]).all())
        state = batches.state()
        batches.resume(state)
        with self.assertRaisesRegex(ValueError, "augment"):
            loader(augment="vflip").resume(state)
        with self.assertRaisesRegex(ValueError, "augment: plug-in /none.so: cannot open shared object file"):
            loader(augment="grain@/none.so")

    def test_another_file_of_the_same_name(self):
        """An old one that is in use is not taken for the new one."""
        first, second = (make_plugin(f"lib{level}.so", "examples/grain.c", f"-O{level}") for level in (0, 2))
        path = f"{scratch.name}/libmine.so"
        os.link(first, path)
        old = loader(augment=f"grain@{path}")
        os.unlink(path)
        os.link(second, path)
        with self.assertRaisesRegex(ValueError, "libmine.so: was replaced while the old one is in use"):
            loader(augment=f"grain@{path}")
        said = old.settings["augment"]
        old.close()
        self.assertNotEqual(loader(augment=f"grain@{path}").settings["augment"], said)
        with self.assertRaisesRegex(ValueError, "it is another file than the one that was named"):
            loader(augment=said)

    def test_failures_are_bad_samples(self):
        breaks = f"breaks@{make_plugin('libroll.so', 'tests/pixels/roll_plugin.c')}:p=0.2"
        batches = loader(augment=breaks)
        epoch_of(batches)
        self.assertTrue(0 < len(batches.bad) < 40)
        for text in batches.bad:
            self.assertRegex(text, r"\.ppm: augment: breaks@/.*/libroll.so: xxx")
        with self.assertRaisesRegex(dl2.Error, "libroll.so: xxx"):
            epoch_of(loader(augment=breaks, stop_on_bad=True))


class External(unittest.TestCase):
    """Variants of external codecs, by a command for each codec."""

    @classmethod
    def setUpClass(cls):
        cls.source = f"{scratch.name}/external"
        for n in range(6):
            write_picture(f"{cls.source}/train/{NAMES[n % 2]}/{n}.ppm", 40 + n, 50 - n, 0, 255, n)
        run("dl2-transcode", "--quiet", "--codec", "same=cp %i %o; cp %i %o", cls.source, f"{cls.source}-variants")
        cls.folder = f"{cls.source}-variants/same"

    def load(self, **settings):
        return loader(self.folder, **{"batch": 3, "external": {"other": "false %i %o", "same": "cp %i %o"}, **settings})

    def test_same_pixels(self):
        for settings in {}, {"workers": 1}, {"train": False, "image_size": 24, "split": "all"}, {"decoded_cache_bytes": 1 << 20}:
            plain, external = epoch_of(loader(self.source, batch=3, **settings)), epoch_of(self.load(**settings))
            for a, b in zip(plain, external):
                self.assertTrue((a == b).all(), settings)

    def test_settings(self):
        given = {"same": "cp %i %o"}
        batches = self.load(external=given, external_timeout=7)
        given["same"] = "false %i %o"
        self.assertEqual((batches.settings["external"], batches.settings["external_timeout"]), ({"same": "cp %i %o"}, 7))
        images = epoch_of(pickle.loads(pickle.dumps(batches)))[0]
        self.assertTrue((images == epoch_of(dl2.Loader(batches.dataset, **batches.settings))[0]).all())
        self.assertIsNone(loader().settings["external"])

    def test_without_a_command(self):
        for external in None, {}, {"other": "cp %i %o"}:
            with self.assertRaisesRegex(dl2.Error, "external codec same: .*external={'same': 'COMMAND %i %o'}"):
                epoch_of(self.load(external=external))

    def test_what_goes_wrong(self):
        with self.assertRaisesRegex(dl2.Error, "same: false exited with status 1"):
            epoch_of(self.load(external={"same": "false %i %o"}))
        slow = "env -u LD_PRELOAD sh -c 'sleep 100' %i %o"  # a shell cannot start with ThreadSanitizer in it
        with self.assertRaisesRegex(dl2.Error, "same: env was killed after 0.2 s"):
            epoch_of(self.load(external={"same": slow}, external_timeout=0.2, workers=6))
        for error, external, says in (
                (TypeError, "same=cp %i %o", "is a dict"), (TypeError, {1: "cp %i %o"}, "are strings"), (TypeError, {"same": None}, "are strings"),
                (ValueError, {"same": "cp %i"}, "external: 'cp %i' lacks %o"), (ValueError, {"same": "cp %i %o %q"}, "%q has no meaning"),
                (ValueError, {"sa-me": "cp %i %o"}, "does not begin with NAME="), (ValueError, {"": "cp %i %o"}, "does not begin with NAME="),
                (ValueError, {f"c{n}": "cp %i %o" for n in range(17)}, "17 codecs")):
            with self.assertRaisesRegex(error, says):
                self.load(external=external)
        for seconds in -1, 1e6, float("nan"):
            with self.assertRaisesRegex(ValueError, "external: a time-out of"):
                self.load(external_timeout=seconds)

    def test_ignored_children(self):
        """The system keeps no status of them then."""
        before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        try:
            self.assertTrue((epoch_of(self.load())[0] == epoch_of(loader(self.source, batch=3))[0]).all())
        finally:
            signal.signal(signal.SIGCHLD, before)


class Masks(unittest.TestCase):
    """Images of ten times their masks: 0 to 24, in blocks of four pixels or less."""
    HEIGHT, WIDTH, COUNT = 33, 41, 10

    def setUp(self):
        self.folder, self.masks = f"{scratch.name}/{self.id()}", {}
        os.makedirs(f"{self.folder}/a")
        for n in range(self.COUNT):
            height, width = self.HEIGHT + n % 3, self.WIDTH + n % 2
            mask = numpy.random.default_rng(n).integers(0, 15 if n % 4 == 3 else 25, (12, 12), dtype=numpy.uint8)
            mask = mask.repeat(4, 0).repeat(4, 1)[:height, :width]
            self.masks[f"a/{n:02}"] = mask
            with open(f"{self.folder}/a/{n:02}.ppm", "wb") as file:
                file.write(b"P6\n%d %d\n255\n" % (width, height) + (10 * mask).repeat(3).tobytes())
            write_png(f"{self.folder}/a/{n:02}.png", mask, n % 4 > 1, 4 if n % 4 == 3 else 8)

    def load(self, path=None, **settings):
        return dl2.Loader(path or self.folder, **{"batch": 4, "split": "all", "mask": "png", "workers": 2, **settings})

    def by_key(self, batches):
        keys = batches.dataset.keys
        return {keys[i]: (numpy.array(image), numpy.array(mask), shown) for batch in batches for image, mask, i, shown in
                zip(numpy.asarray(batch.images), numpy.asarray(batch.masks), batch.indices.tolist(), batch.shown.tolist())}

    def nearest(self, mask, box, flip, height, width):
        left, top, right, bottom = box
        rows = numpy.floor(top + (numpy.arange(height) + 0.5) * ((bottom - top) / height)).astype(int)
        columns = numpy.floor(left + (numpy.arange(width) + 0.5) * ((right - left) / width)).astype(int)
        part = mask[numpy.minimum(rows, mask.shape[0] - 1)][:, numpy.minimum(columns, mask.shape[1] - 1)]
        return part[:, ::-1] if flip else part

    def test_crops_are_numpys(self):
        flipped = 0
        for size in (20, 28), (56, 60):
            for epoch in range(2):
                batches = self.load(image_size=size, seed=3)
                batches.start_epoch(epoch)
                for key, (_, mask, (left, top, right, bottom, flip)) in self.by_key(batches).items():
                    flipped += flip
                    numpy.testing.assert_array_equal(mask, self.nearest(self.masks[key], (left, top, right, bottom), flip, *size))
            for key, (_, mask, _) in self.by_key(self.load(image_size=size, train=False, val_crop="squash")).items():
                whole = self.masks[key]
                numpy.testing.assert_array_equal(mask, self.nearest(whole, (0, 0, whole.shape[1], whole.shape[0]), 0, *size))
        self.assertTrue(5 < flipped < 35)
        for key, (_, mask, shown) in self.by_key(self.load(image_size=16, train=False)).items():
            height, width = self.masks[key].shape
            down, across = 18, 18 * width // height
            x, y = round((across - 16) / 2), 1
            box = (x * (width / across), y * (height / down), (x + 16) * (width / across), (y + 16) * (height / down))
            numpy.testing.assert_allclose(shown[:4], box, rtol=1e-6)
            numpy.testing.assert_array_equal(mask, self.nearest(self.masks[key], box, 0, 16, 16))

    def test_follows_what_moves_pixels(self):
        """Without a resize, the image is ten times its mask still, whatever moved it; colours leave a mask alone."""
        keys = [key for key, mask in self.masks.items() if mask.shape == (self.HEIGHT, self.WIDTH)]
        data = dl2.Dataset(self.folder, "all", beside="png", select=lambda key: key in keys)
        settings = dict(image_size=(self.HEIGHT, self.WIDTH), area=(1, 1), aspect=(self.WIDTH / self.HEIGHT,) * 2, mask_fill=21)
        moved = 0
        for augment in None, "vflip", "rotate:degrees=90:fill=210", "shear:x=30:y=20:fill=210,translate:x=0.3:fill=210":
            with self.load(data, split=None, augment=augment, **settings) as batches:
                for _ in range(3):
                    for key, (image, mask, _) in self.by_key(batches).items():
                        numpy.testing.assert_array_equal(image[..., 1], 10 * mask)
                        moved += not numpy.array_equal(mask, self.masks[key])
                        if "rotate" in (augment or ""):
                            moved += (mask == 21).sum() > 20
        self.assertGreater(moved, 10)
        with self.load(data, split=None, augment="invert:p=1,rotate:fill=45", **settings) as batches:
            for image, mask, _ in self.by_key(batches).values():
                numpy.testing.assert_array_equal(255 - image[..., 1], 10 * mask)
        colours = "jitter:brightness=0.9:contrast=0.9:saturation=0.9:hue=0.5,solarize:p=1,posterize:p=1:bits=1,autocontrast:p=1,equalize:p=1," \
            "sharpness:p=1,blur:p=1,grayscale:p=1,erase:p=1"
        with self.load(data, split=None, augment=colours, flip=False, **settings) as batches:
            for key, (image, mask, _) in self.by_key(batches).items():
                numpy.testing.assert_array_equal(mask, self.masks[key])
                self.assertFalse(numpy.array_equal(image[..., 1], 10 * mask))
        roll = f"roll@{make_plugin('libroll.so', 'tests/pixels/roll_plugin.c')}:least=0.2"
        still = f"grain@{make_plugin('libgrain.so', 'examples/grain.c')}:strength=0"
        with self.load(data, split=None, augment=f"{still},{roll},rotate:fill=210", flip=False, **settings) as batches:
            for key, (image, mask, _) in self.by_key(batches).items():
                numpy.testing.assert_array_equal(image[..., 1], 10 * mask)
                self.assertFalse(numpy.array_equal(mask, self.masks[key]))
        policies = "randaugment,trivialaugment,autoaugment"
        once, again = (self.by_key(self.load(workers=n, augment=policies, image_size=24, mask_fill=99)) for n in (1, 3))
        for key, (_, mask, _) in once.items():
            numpy.testing.assert_array_equal(mask, again[key][1])
            self.assertLessEqual(set(mask.ravel()), {*self.masks[key].ravel(), 99})

    def test_where_they_come_from(self):
        expected = self.by_key(self.load(image_size=24))
        self.assertEqual(sorted(expected), sorted(self.masks))
        with tarfile.open(f"{self.folder}.tar", "w") as tar:
            for key in self.masks:
                tar.add(f"{self.folder}/{key}.ppm", f"{key}.ppm")
                tar.add(f"{self.folder}/{key}.png", f"{key}.png")
        run("dl2-transcode", "--quiet", "--copy", "--container=gulp", f"{self.folder}.tar", f"{self.folder}.gulp")
        for batches in (self.load(f"{self.folder}.tar", image_size=24), self.load(f"{self.folder}.gulp", image_size=24),
                        self.load(image_size=24, decoded_cache_bytes=1 << 24), self.load(image_size=24, cache_bytes=1 << 24, io="threads"),
                        self.load(image_size=24, batching="aware")):
            for _ in range(2):
                batches.start_epoch(0)
                found = self.by_key(batches)
                for key in expected:
                    numpy.testing.assert_array_equal(found[key][0], expected[key][0])
                    numpy.testing.assert_array_equal(found[key][1], expected[key][1])
        # files of another ending, and masks that outlive their batch
        for n in range(self.COUNT):
            os.rename(f"{self.folder}/a/{n:02}.png", f"{self.folder}/a/{n:02}.depth.png")
        with self.load(image_size=24, mask="depth.png") as batches:
            masks = next(iter(batches)).masks
            self.assertEqual(numpy.asarray(masks).shape, (4, 24, 24))
            copy = numpy.array(masks)
            for _ in batches:
                pass
            numpy.testing.assert_array_equal(numpy.asarray(masks), copy)
        self.assertEqual(len(dl2.Dataset(self.folder, "all")), 2 * self.COUNT)
        self.assertIsNone(next(iter(dl2.Loader(self.folder, split="all", image_size=8))).masks)

    def test_of_images_read_in_slices(self):
        """Of a packed JPEG only the rows below the crop are read; its mask shows the same part."""
        if "jpeg:" not in run("dl2-transcode", "--version"):
            self.skipTest("this build can't write JPEG")
        folder, masks = f"{self.folder}.large", {}
        os.makedirs(f"{folder}/a")
        for n in range(3):
            mask = numpy.random.default_rng(n).integers(0, 256, (500 + n, 400), dtype=numpy.uint8)
            masks[f"a/{n}"] = mask
            with open(f"{folder}/a/{n}.ppm", "wb") as file:
                file.write(b"P6\n400 %d\n255\n" % (500 + n) + mask.repeat(3).tobytes())
            write_png(f"{folder}/a/{n}.mask.png", mask)
        run("dl2-transcode", "--quiet", "--q", "85", folder, f"{folder}-folder")
        for container in "tar", "gulp":
            run("dl2-transcode", "--quiet", "--q", "85", f"--container={container}", folder, f"{folder}-{container}")
        settings = dict(mask="mask.png", image_size=(30, 40), area=(0.05, 0.1), seed=2, batch=3)
        with self.load(f"{folder}-folder/jpeg-85", **settings) as batches:
            expected, whole = self.by_key(batches), batches.stats()["bytes_read"]
        for container in "tar", "gulp":
            with self.load(f"{folder}-{container}/jpeg-85", **settings) as batches:
                found = self.by_key(batches)
                self.assertLess(batches.stats()["bytes_read"], 0.7 * whole)
            self.assertEqual(sorted(found), sorted(masks))
            for key, (image, mask, (left, top, right, bottom, flip)) in found.items():
                numpy.testing.assert_array_equal(image, expected[key][0])
                numpy.testing.assert_array_equal(mask, expected[key][1])
                numpy.testing.assert_array_equal(mask, self.nearest(masks[key], (left, top, right, bottom), flip, 30, 40))

    def test_bad_ones(self):
        os.remove(f"{self.folder}/a/00.png")
        write_png(f"{self.folder}/a/01.png", self.masks["a/00"])
        write_png(f"{self.folder}/a/03.png", self.masks["a/02"])
        with open(f"{self.folder}/a/04.ppm", "rb") as colour, open(f"{self.folder}/a/04.png", "wb") as file:
            file.write(colour.read())
        os.truncate(f"{self.folder}/a/05.png", 90)
        with self.load(image_size=24, train=False, mask_fill=255) as batches:
            seen = [(label, mask.min()) for batch in batches for label, mask in zip(batch.labels.tolist(), numpy.asarray(batch.masks))]
            for text, says in zip(batches.bad, ("00.ppm: mask: there is no 'png' beside it", "it is of 41x33, its image of 42x34",
                                                "it is of 41x35, its image of 42x33", "04.ppm: decode: mask 'png': it has to be gray", "05.ppm: decode: mask 'png'"),
                                  strict=True):
                self.assertIn(says, text)
        self.assertEqual([label for label, _ in seen], [-1, -1, 0, -1, -1, -1, 0, 0, 0, 0])
        self.assertEqual([low for label, low in seen if label < 0], [255] * 5)
        with self.assertRaisesRegex(dl2.Error, "there is no 'png' beside it"):
            list(self.load(image_size=24, train=False, stop_on_bad=True))
        for wrong in {"mask": ""}, {"mask": ".png"}, {"mask": "a/png"}, {"mask": "png,txt"}, {"mask_fill": 256}, {"mask": None, "mask_fill": 1}:
            with self.assertRaisesRegex(ValueError, "mask"):
                self.load(**wrong)


class Batches(unittest.TestCase):
    def test_same_bytes_as_dl2_load(self):
        for train in True, False:
            digest = 0
            with loader(train=train, seed=5) as batches:
                for _ in range(2):
                    for images, labels in batches:
                        digest = zlib.crc32(memoryview(images), digest)
                        digest = zlib.crc32(numpy.asarray(labels).astype(numpy.int32), digest)
            said = run("dl2-load", "bench", flowers, "--train" if train else "--val", "-b", "8", "-i", str(SIZE), "-e", "2",
                       "--seed", "5", "--digest", "--quiet")
            self.assertIn(f"digest {digest:08x}\n", said)

    def test_shapes_and_labels(self):
        batches = loader()
        self.assertEqual(len(batches), 5)
        seen = []
        for step, batch in enumerate(batches):
            images, labels = batch
            self.assertEqual((images.shape, images.dtype, len(images), images.nbytes),
                             ((8, SIZE, SIZE, 3), "uint8", 8, 8 * SIZE * SIZE * 3))
            self.assertEqual((labels.shape, labels.dtype, batch.epoch, batch.step), ((8,), "int64", 0, step))
            view = memoryview(images)
            self.assertEqual((view.shape, view.format, view.readonly, view.c_contiguous),
                             ((8, SIZE, SIZE, 3), "B", False, True))
            for label, index, image in zip(memoryview(labels), memoryview(batch.indices), numpy.asarray(images)):
                self.assertEqual(label, batches.dataset.sample(index).label)
                self.assertEqual(label, int(image.mean() > 120))
                seen.append(index)
        self.assertEqual(sorted(seen), list(range(40)))
        self.assertEqual(batches.bad, [])
        stats = batches.stats(reset=True)
        self.assertEqual((stats["images"], stats["batches"], stats["bad"]), (40, 5, 0))
        self.assertGreater(stats["decode"] + stats["transform"], 0)
        self.assertEqual(batches.stats()["images"], 0)

    def test_settings(self):
        self.assertEqual([len(b.labels) for b in loader(batch=12)], [12, 12, 12, 4])
        self.assertEqual([len(b.labels) for b in loader(batch=12, drop_last=True)], [12, 12, 12])
        self.assertEqual(next(iter(loader(channels=1))).images.shape, (8, SIZE, SIZE, 1))
        images, labels, indices = epoch_of(loader(train=False))
        self.assertEqual((list(labels), list(indices)), ([0, 0, 0, 1, 1, 1], list(range(6))))
        ranks = [epoch_of(loader(rank=rank, world=2))[2] for rank in range(2)]
        self.assertEqual(sorted(numpy.concatenate(ranks)), list(range(40)))
        plain = epoch_of(loader())
        for same in {"workers": 1}, {"depth": 5}, {"io": "direct"}, {"cache_bytes": 1 << 20}, {"decoded_cache_bytes": 1 << 20}:
            for a, b in zip(plain, epoch_of(loader(**same))):
                self.assertTrue((a == b).all(), same)
        for other in {"seed": 1}, {"shuffle_chunk": 4, "shuffle_window": 2}:
            self.assertFalse((plain[2] == epoch_of(loader(**other))[2]).all(), other)
        for other in {"flip": False}, {"area": (0.5, 0.6)}, {"aspect": (1, 1)}, {"interpolation": "bicubic"}:
            self.assertFalse((plain[0] == epoch_of(loader(**other))[0]).all(), other)
        inverted = epoch_of(loader(augment="invert:p=1"))
        self.assertTrue((inverted[0] == 255 - plain[0]).all() and (inverted[2] == plain[2]).all())
        augment = "randaugment:m=12,jitter:hue=0.1:brightness=0.4,erase:p=0.7"
        once = epoch_of(loader(augment=augment))
        self.assertFalse((once[0] == plain[0]).all())
        for same in {"workers": 1}, {"workers": 3, "batching": "aware", "batch": 40}:
            images, labels, indices = epoch_of(loader(augment=augment, **same))
            order = [list(indices).index(i) for i in once[2]]
            self.assertTrue((images[order] == once[0]).all(), same)
        for batching in "completion", "aware":
            aware = {"slow_percentile": 50, "side_workers": 1} if batching == "aware" else {}
            images, labels, indices = epoch_of(loader(batching=batching, **aware))
            order = [list(indices).index(i) for i in plain[2]]
            self.assertTrue((images[order] == plain[0]).all(), batching)

    def test_settings_can_be_read(self):
        batches = loader(seed=9, dtype="float32", mean=MEAN, std=STD, area=(0.25, 1), io="direct")
        settings = batches.settings
        words = set(re.findall(r"(\w+)=", dl2.Loader.__text_signature__))
        self.assertEqual(set(settings), words - {"split", "val_fraction", "memory", "weights"})
        self.assertEqual([settings[name] for name in ("batch", "image_size", "train", "seed", "dtype", "layout", "mean", "std", "area", "io")],
                         [8, SIZE, True, 9, "float32", "NHWC", MEAN, STD, (0.25, 1.0), "direct"])
        self.assertIsNone(settings["augment"])
        self.assertEqual(loader(augment="vflip,randaugment:m=7").settings["augment"],
                         "vflip:p=0.5,randaugment:p=1:n=2:m=7:bins=31:fill=0")
        again = dl2.Loader(batches.dataset, **settings)
        self.assertEqual(again.settings, settings)
        for a, b in zip(epoch_of(batches), epoch_of(again)):
            self.assertTrue((a == b).all())
        self.assertIsNone(loader().settings["mean"])
        settings["seed"] = 1
        self.assertEqual(batches.settings["seed"], 9)

    def test_texts(self):
        batches = loader()
        next(iter(batches))
        self.assertEqual(repr(batches.dataset), f"<dl2.Dataset {flowers!r}: 40 samples in 2 classes>")
        self.assertEqual(repr(batches), "<dl2.Loader training, batch 8, image_size 32, at epoch 0 step 1 of 5: "
                         f"{batches.dataset!r}>")
        self.assertIn("validation, batch 8", repr(loader(train=False)))
        dataset = batches.dataset
        batches.close(), dataset.close()
        self.assertEqual((repr(batches), repr(dataset)), ("<dl2.Loader, closed>", f"<dl2.Dataset {flowers!r}, closed>"))
        batch = next(iter(loader()))
        self.assertRegex(repr(batch), r"^dl2.Batch\(images=<dl2.Array uint8 \(8, 32, 32, 3\)>, labels=<dl2.Array int64 \(8,\)>")

    def test_orientation(self):
        """As help(dl2.Loader) says: images are turned upright."""
        if "\n  jpeg:" not in run("dl2-load", "--version"):
            self.skipTest("this build has no JPEG (Debian: libjpeg62-turbo-dev)")
        self.assertIn("EXIF", dl2.Loader.__doc__)
        folder = f"{scratch.name}/turned"
        pixels = numpy.zeros((SIZE, SIZE, 3), numpy.uint8)
        pixels[: SIZE // 2] = 255  # the upper half is white
        os.makedirs(f"{folder}/a")
        with open(f"{folder}/a/0.ppm", "wb") as file:
            file.write(b"P6\n%d %d\n255\n" % (SIZE, SIZE) + pixels.tobytes())
        run("dl2-transcode", "--codec", "jpeg", "--q", "95", "--quiet", folder, f"{folder}-out")
        with open(f"{folder}-out/jpeg-95/a/0.jpg", "rb") as file:
            jpeg = file.read()
        for orientation, turn in (1, 0), (6, -1), (3, 2), (8, 1):
            exif = b"Exif\0\0MM\0*" + bytes([0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0, 0, 0, 0, 0])
            path = f"{folder}-{orientation}/a"
            os.makedirs(path)
            with open(f"{path}/0.jpg", "wb") as file:
                file.write(jpeg[:2] + b"\xff\xe1" + (len(exif) + 2).to_bytes(2, "big") + exif + jpeg[2:])
            images = next(iter(loader(f"{folder}-{orientation}", train=False, split="all", resize=SIZE))).images
            self.assertLess(abs(numpy.asarray(images)[0].astype(int) - numpy.rot90(pixels, turn)).mean(), 4, orientation)

    def test_transparency(self):
        """As help(dl2.Loader) says: what is transparent becomes white."""
        if "\n  png:" not in run("dl2-load", "--version"):
            self.skipTest("this build has no PNG (Debian: libpng-dev)")
        self.assertIn("white", dl2.Loader.__doc__)

        def chunk(name, data):
            return len(data).to_bytes(4, "big") + name + data + zlib.crc32(name + data).to_bytes(4, "big")

        row = b"\0" + bytes([10, 20, 30, 255]) * (SIZE // 2) + bytes([10, 20, 30, 0]) * (SIZE // 2)
        os.makedirs(f"{scratch.name}/transparent/a")
        with open(f"{scratch.name}/transparent/a/0.png", "wb") as file:
            file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", bytes([0, 0, 0, SIZE, 0, 0, 0, SIZE, 8, 6, 0, 0, 0])) +
                       chunk(b"IDAT", zlib.compress(row * SIZE)) + chunk(b"IEND", b""))
        images = next(iter(loader(f"{scratch.name}/transparent", train=False, split="all", resize=SIZE))).images
        self.assertEqual(images[0, 5, 2].tolist(), [10, 20, 30])
        self.assertEqual(images[0, 5, SIZE - 2].tolist(), [255, 255, 255])

    def test_a_dataset_of_the_callers(self):
        with dl2.Dataset(flowers, "all") as dataset, dl2.Loader(dataset, 46, SIZE) as batches:
            self.assertIs(batches.dataset, dataset)
            self.assertEqual(len(next(iter(batches)).labels), 46)

    def test_two_at_once(self):
        alone = [epoch_of(loader(seed=seed)) for seed in range(2)]
        pairs = list(zip(loader(seed=0, depth=9), loader(seed=1, depth=9)))
        for seed in range(2):
            for a, b in zip(alone[seed], epoch_of(pair[seed] for pair in pairs)):
                self.assertTrue((a == b).all())


class Types(unittest.TestCase):
    def test_floats_and_layouts(self):
        plain = epoch_of(loader())[0]
        for dtype, settings, expected in (
                ("uint8", {}, plain), ("float32", {}, plain / 255),
                ("float32", {"mean": MEAN, "std": STD}, (plain / 255 - MEAN) / STD)):
            for layout, shape in ("NHWC", (8, SIZE, SIZE, 3)), ("NCHW", (8, 3, SIZE, SIZE)):
                batches = loader(dtype=dtype, layout=layout, **settings)
                first = next(iter(batches)).images
                self.assertEqual((first.dtype, first.shape, numpy.asarray(first).dtype.name), (dtype, shape, dtype))
                batches.start_epoch(0)
                images = epoch_of(batches)[0]
                if layout == "NCHW":
                    images = images.transpose(0, 2, 3, 1)
                numpy.testing.assert_allclose(images, expected, rtol=1e-6, atol=1e-6, err_msg=f"{dtype} {layout}")
        gray = loader(channels=1, dtype="float32", layout="NCHW", mean=[0.5], std=[0.25])
        numpy.testing.assert_allclose(epoch_of(gray)[0].transpose(0, 2, 3, 1), (epoch_of(loader(channels=1))[0] / 255 - 0.5) / 0.25,
                                      rtol=1e-6, atol=1e-6)

    @unittest.skipUnless(transforms, "no torchvision (Debian: python3-torchvision)")
    def test_as_torchvision_normalizes(self):
        theirs = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
        for plain, ours in zip(loader(), loader(dtype="float32", layout="NCHW", mean=MEAN, std=STD)):
            expected = torch.stack([theirs(image) for image in numpy.asarray(plain.images)])
            torch.testing.assert_close(torch.from_dlpack(ours.images), expected, rtol=1e-6, atol=1e-6)

    def test_bfloat16(self):
        for layout in "NHWC", "NCHW":
            settings = {"layout": layout, "mean": MEAN, "std": STD}
            for whole, half in zip(loader(dtype="float32", **settings), loader(dtype="bfloat16", **settings)):
                self.assertEqual((half.images.dtype, half.images.shape, 2 * half.images.nbytes),
                                 ("bfloat16", whole.images.shape, whole.images.nbytes))
                for see in memoryview, numpy.asarray, numpy.array, lambda array: numpy.asarray(array, "float32"):
                    with self.assertRaisesRegex(BufferError, "torch.from_dlpack"):
                        see(half.images)
                self.assertAlmostEqual(half.images[0, 1, 2, 0], float(numpy.asarray(whole.images)[0, 1, 2, 0]), delta=0.02)
                if torch:
                    tensor = torch.from_dlpack(half.images)
                    self.assertEqual(tensor.dtype, torch.bfloat16)
                    self.assertTrue(torch.equal(tensor, torch.from_dlpack(whole.images).bfloat16()))


    def test_float16(self):
        """The bits of NumPy's rounding, and of PyTorch's, also of small and of too large numbers."""
        for layout in "NHWC", "NCHW":
            for settings in ({"mean": MEAN, "std": STD}, {}, {"mean": (-0.5, 0.25, 0.5), "std": (1e-5, 5e-6, 2e4)}):
                settings = {"layout": layout, "image_size": 47, **settings}
                for whole, half in zip(loader(dtype="float32", **settings), loader(dtype="float16", **settings)):
                    self.assertEqual((half.images.dtype, half.images.shape, 2 * half.images.nbytes),
                                     ("float16", whole.images.shape, whole.images.nbytes))
                    ours = numpy.asarray(half.images)
                    self.assertEqual(ours.dtype, numpy.float16)
                    with numpy.errstate(over="ignore"):
                        theirs = numpy.asarray(whole.images).astype(numpy.float16)
                    self.assertEqual(ours.tobytes(), theirs.tobytes())
                    self.assertEqual(half.images[1, 2].tolist(), theirs[1, 2].tolist())
                    self.assertEqual((half.images == theirs).all(), True)
                    if torch:
                        self.assertTrue(torch.equal(torch.from_dlpack(half.images), torch.from_dlpack(whole.images).half()))


class Order(unittest.TestCase):
    def test_epochs(self):
        batches = loader()
        epochs = [epoch_of(batches) for _ in range(3)]
        state = batches.state()
        order = state.pop("order")
        self.assertEqual(state.pop("settings")["image_size"], SIZE)
        self.assertEqual(state, {"epoch": 3, "step": 0, "next": 0, "missing": []})
        self.assertEqual((order["seed"], order["samples"], order["batch"], order["train"]), (0, 40, 8, True))
        self.assertFalse((epochs[0][2] == epochs[1][2]).all())
        batches.start_epoch(1)
        self.assertTrue((epoch_of(batches)[0] == epochs[1][0]).all())
        batches.start_epoch(epoch=2, step=3)
        self.assertTrue((epoch_of(batches)[0] == epochs[2][0][24:]).all())
        running = iter(batches)
        self.assertEqual([batch.step for batch in running], list(range(5)))
        self.assertEqual(batches.state()["epoch"], 4)
        with self.assertRaises(StopIteration):
            next(running)
        self.assertEqual(batches.state()["epoch"], 4)
        batches.start_epoch(2)
        with self.assertRaisesRegex(RuntimeError, "another epoch"):
            next(running)

    def test_break(self):
        batches = loader()
        whole = [epoch_of(batches) for _ in range(3)]
        batches = loader()
        for epoch in range(3):
            for images, labels in batches:
                break
            self.assertTrue((numpy.asarray(images) == whole[epoch][0][:8]).all())

    def test_resume(self):
        for batching in "strict", "completion", "aware":
            batches = loader(batching=batching, workers=3)
            for stop in range(6):
                batches.start_epoch(4)
                running = iter(batches)
                first = [list(memoryview(next(running).indices)) for _ in range(stop)]
                state = batches.state()
                self.assertEqual((state["epoch"], state["step"]), (4, stop))
                again = loader(batching=batching, workers=2)
                again.resume(state)
                rest = [list(memoryview(b.indices)) for b in again]
                self.assertEqual(sorted(sum(first + rest, [])), list(range(40)))
                if batching == "strict":
                    self.assertEqual(rest, [list(memoryview(b.indices)) for b in running])
        state = batches.state()
        for wrong in {**state, "step": 3, "next": 1}, {**state, "step": 9, "next": 40}:
            with self.assertRaisesRegex(ValueError, "no position"):
                batches.resume(wrong)
        no_order = {name: part for name, part in state.items() if name != "order"}
        for wrong in no_order, {**state, "order": {"seed": 3}}, {"epoch": 0}, 3:
            with self.assertRaises(TypeError):
                batches.resume(wrong)

    def test_choice_of_samples(self):
        weights = [1 + 3 * (i % 5 == 0) for i in range(40)]
        for choice in ({"weights": weights}, {"weights": numpy.array(weights), "draws": 100}, {"repeats": 3},
                       {"repeats": 3, "draws": 40}, {"draws": 13}, {"balanced": True, "draws": 64}):
            batches = loader(**choice)
            images, labels, indices = epoch_of(batches)
            length = choice.get("draws", 40 * choice.get("repeats", 1))
            self.assertEqual((len(indices), len(batches)), (length, -(-length // 8)), choice)
            for same in {"workers": 1, "io": "direct"}, {"workers": 3, "io": "threads"}, {"decoded_cache_bytes": 1 << 20}:
                for a, b in zip((images, labels, indices), epoch_of(loader(**choice, **same))):
                    self.assertTrue((a == b).all(), (choice, same))
            if "draws" in choice and choice["draws"] < 40 and "repeats" not in choice:
                self.assertEqual(len(set(indices)), length)
            # An image that comes twice has another crop each time.
            different = {(index, image.tobytes()) for index, image in zip(indices, images)}
            self.assertGreater(len(different), 0.95 * length, choice)
            # What a step has over all ranks is what one rank has in it, pixel by pixel.
            parts = []
            for rank in range(2):
                part = epoch_of(loader(**choice, batch=4, rank=rank, world=2))
                parts += [(index, image.tobytes()) for index, image in zip(part[2], part[0])]
            self.assertEqual(len(parts), length // 2 * 2)
            self.assertLessEqual(set(parts), different)
            # The rest of an epoch is the same from a state, in JSON, in another process or batching.
            for batching in "strict", "completion":
                running = loader(**choice, batching=batching, workers=3)
                epoch = iter(running)
                first = [(i, image.tobytes()) for i, image in zip(*(numpy.array(part) for part in
                         (lambda batch: (memoryview(batch.indices), batch.images))(next(epoch))))]
                state = json.loads(json.dumps(running.state()))
                again = loader(**choice, workers=1)
                again.resume(state)
                rest = epoch_of(again)
                rest = [(i, image.tobytes()) for i, image in zip(rest[2], rest[0])]
                whole = [(i, image.tobytes()) for i, image in zip(indices, images)]
                self.assertEqual(sorted(first + rest), sorted(whole), (choice, batching))
                with self.assertRaisesRegex(ValueError, "weights|repeats|draws|balanced"):
                    loader(repeats=2).resume(state)
        with self.assertRaisesRegex(ValueError, "other weights"):
            loader(weights=[1] * 40).resume(loader(weights=weights).state())
        # Classes come equally often, though there are 22 asters and 18 roses, and others as they are.
        labels = epoch_of(loader(balanced=True, draws=20000, batch=100, image_size=8))[1]
        self.assertLess(abs(labels.mean() - 0.5), 0.0137)  # once in 10,000 times by chance; 0.45 else
        self.assertEqual(set(epoch_of(loader(weights=[0, 1] * 20))[2] % 2), {1})
        with tempfile.TemporaryDirectory() as folder: # the same from a file, whatever order its lines have
            path = pathlib.Path(folder, "weights")
            keys = dl2.Dataset(flowers).keys
            path.write_text("".join(f"{key}\t{weight}\n" for key, weight in reversed(list(zip(keys, weights)))))
            self.assertTrue((epoch_of(loader(weights=path))[2] == epoch_of(loader(weights=weights))[2]).all())
            path.write_text("".join(f"{key} 1\n" for key in keys[1:]))
            with self.assertRaisesRegex(dl2.Error, "no weight for " + keys[0]):
                loader(weights=str(path))
        copied = pickle.loads(pickle.dumps(loader(weights=weights)))
        self.assertTrue((epoch_of(copied)[2] == epoch_of(loader(weights=weights))[2]).all())
        for wrong, says in (({"weights": [1] * 39}, "39 numbers for 40 samples"), ({"weights": [0] * 40}, "their sum is 0"),
                            ({"weights": [-1] + [1] * 39}, "-1 is none"), ({"weights": weights, "balanced": True}, "two ways"),
                            ({"weights": weights, "repeats": 2}, "without repeats"), ({"draws": 41}, "has 40 samples, not 41"),
                            ({"train": False, "repeats": 2}, "are for training"), ({"balanced": True, "shuffle_chunk": 2}, "by itself")):
            with self.assertRaisesRegex(ValueError, says):
                loader(**wrong)
        with self.assertRaises(TypeError):
            loader(weights=["heavy"] * 40)

    def test_state_of_another(self):
        batches = loader(seed=3)
        running = iter(batches)
        for stop in range(2):
            state = json.loads(json.dumps(batches.state()))
            for settings, says in (({"seed": 4}, "seed 3, this loader 4"), ({"seed": 3, "batch": 4}, "batch 8, this loader 4"),
                                   ({"seed": 3, "train": False}, "train"), ({"seed": 3, "drop_last": True}, "drop_last"),
                                   ({"seed": 3, "rank": 1, "world": 2}, "rank"), ({"seed": 3, "world": 2}, "world"),
                                   ({"seed": 3, "shuffle_chunk": 4}, "shuffle_chunk"), ({"seed": 3, "split": "all"}, "samples")):
                other = loader(**settings)
                with self.assertRaisesRegex(ValueError, says):
                    other.resume(state)
                self.assertEqual(sum(1 for batch in other), len(other))  # as if nothing had been
            next(running)
        moved = f"{scratch.name}/moved"
        make_flowers(moved)
        again = loader(moved, seed=3, image_size=16, workers=1, batching="completion")
        state = batches.state()
        del state["settings"]
        again.resume(state)
        self.assertEqual(sum(len(batch.labels) for batch in again), 24)
        os.rename(f"{moved}/train/rose/03.ppm", f"{moved}/train/rose/93.ppm")
        with self.assertRaisesRegex(ValueError, "another dataset"):
            loader(moved, seed=3).resume(batches.state())

    def test_state_of_other_images(self):
        settings = {"dtype": "float32", "mean": MEAN, "std": STD}
        state = json.loads(json.dumps(loader(**settings).state()))
        loader(**settings, workers=1, cache_bytes=1 << 20, io="direct").resume(state)
        for other, says in (({**settings, "image_size": 16}, "it has image_size 32, this loader 16"),
                            ({}, "dtype 'float32', this loader 'uint8'"),
                            ({**settings, "layout": "NCHW"}, "layout 'NHWC', this loader 'NCHW'"),
                            ({**settings, "std": (1, 1, 1)}, r"std \[0.229, 0.224, 0.225\], this loader \(1.0, 1.0, 1.0\)"),
                            ({**settings, "area": (0.5, 1)}, "area"), ({**settings, "flip": False}, "flip True, this loader False"),
                            ({**settings, "interpolation": "box"}, "interpolation 'bilinear', this loader 'box'"),
                            ({**settings, "augment": "vflip"}, "augment None, this loader 'vflip:p=0.5'")):
            again = loader(**other)
            with self.assertRaisesRegex(ValueError, says):
                again.resume(state)
            without = {name: part for name, part in state.items() if name != "settings"}
            again.resume(without)
        with self.assertRaises(TypeError):
            loader().resume({**state, "settings": 3})
        state = json.loads(json.dumps(loader(augment="randaugment").state()))
        loader(augment="randaugment:m=9").resume(state)
        with self.assertRaisesRegex(ValueError, "m=9.*, this loader .*m=8"):
            loader(augment="randaugment:m=8").resume(state)

    def test_pickle(self):
        batches = loader(seed=7, image_size=16)
        running = iter(batches)
        next(running), next(running)
        again = pickle.loads(pickle.dumps(batches))
        self.assertEqual((again.settings, repr(again)), (batches.settings, repr(batches)))
        for ours, theirs in zip(running, again):
            self.assertTrue((ours.images == theirs.images).all())
        dataset = pickle.loads(pickle.dumps(dl2.Dataset(flowers, "val", images_only=False)))
        self.assertEqual((len(dataset), dataset.keys[0]), (6, "val/aster/00"))
        with dl2.Loader(dataset=dataset, batch=2, train=False) as other:
            self.assertEqual(len(pickle.loads(pickle.dumps(other)).dataset), 6)
        for closed in other, batches:
            batches.close()
            with self.assertRaisesRegex(ValueError, "closed"):
                pickle.dumps(closed)

    def test_steps_that_are_none(self):
        batches = loader()
        for step in 6, 9999, 1 << 63:
            with self.assertRaisesRegex(ValueError, f"no step {step}: an epoch has 5"):
                batches.start_epoch(0, step=step)
        batches.start_epoch(0, step=5)
        self.assertEqual(list(batches), [])


class Sharing(unittest.TestCase):
    def test_no_copies(self):
        images, labels = next(iter(loader()))
        first, second = numpy.asarray(images), numpy.asarray(images)
        self.assertEqual(address(first), address(second))
        self.assertEqual(address(first), ctypes.addressof(ctypes.c_char.from_buffer(images)))
        self.assertEqual(address(first), address(numpy.from_dlpack(images)))
        first[0, 0, 0, 0] ^= 255
        self.assertEqual(first[0, 0, 0, 0], memoryview(images)[0, 0, 0, 0])
        self.assertEqual(first[0, 0, 0, 0], numpy.from_dlpack(images)[0, 0, 0, 0])
        self.assertEqual(numpy.from_dlpack(labels).tolist(), memoryview(labels).tolist())

    def test_memory_of_the_callers(self):
        made = []

        def memory(size):
            made.append(bytearray(size + 100))
            return made[-1]

        plain = epoch_of(loader())
        batches = loader(memory=memory, depth=4)
        self.assertEqual([len(buffer) for buffer in made], 4 * [8 * SIZE * SIZE * 3 + 100])
        begins = [ctypes.addressof(ctypes.c_char.from_buffer(buffer)) for buffer in made]
        seen = []
        for step, (images, labels) in enumerate(batches):
            self.assertIn(address(numpy.asarray(images)), begins)
            seen.append(numpy.array(images))
            with self.assertRaises(BufferError):
                made[0].clear()  # it is the loader's
        self.assertTrue((numpy.concatenate(seen) == plain[0]).all())
        batches.close()
        made[begins.index(address(numpy.asarray(images)))][0] ^= 255
        self.assertNotEqual(images[0, 0, 0, 0], seen[-1][0, 0, 0, 0])
        with self.assertRaises(BufferError):
            made[0].clear()
        del images, batches
        for buffer in made:
            buffer.clear()  # it is nobody's now

    def test_memory_that_is_none(self):
        def fails(size):
            raise KeyError("no memory here")

        late = iter([bytearray(8 * SIZE * SIZE * 3), b"", bytearray(8)])
        for wrong, error, says in ((3, TypeError, "memory is a function"), (fails, KeyError, "no memory here"),
                                   (lambda size: bytearray(size - 1), ValueError, "has to hold as many"),
                                   (lambda size: memoryview(bytearray(size + 4))[1:], ValueError, "floats may have"),
                                   (lambda size: bytes(size), BufferError, "writable"), (lambda size: None, TypeError, "bytes-like"),
                                   (lambda size: next(late), (BufferError, ValueError), "")):
            with self.assertRaisesRegex(error, says):
                loader(memory=wrong)

    @needs_torch
    def test_no_copies_in_torch(self):
        images, labels = next(iter(loader()))
        seen, tensor = numpy.asarray(images), torch.from_dlpack(images)
        self.assertEqual(tensor.data_ptr(), address(seen))
        self.assertEqual((tensor.dtype, tensor.shape, tensor.is_contiguous()), (torch.uint8, (8, SIZE, SIZE, 3), True))
        tensor[1, 2, 3, 0] += 1
        self.assertEqual(int(tensor[1, 2, 3, 0]), seen[1, 2, 3, 0])
        self.assertTrue((tensor.numpy() == seen).all())
        self.assertEqual((torch.from_dlpack(labels).dtype, torch.from_dlpack(labels).tolist()),
                         (torch.int64, memoryview(labels).tolist()))

    def test_what_dlpack_may_be_asked(self):
        images = next(iter(loader())).images
        self.assertEqual(images.__dlpack_device__(), (1, 0))
        self.assertIn("dltensor", repr(images.__dlpack__(stream=None, max_version=(1, 0), dl_device=(1, 0), copy=False)))
        for refused in {"stream": 1}, {"dl_device": (2, 0)}, {"copy": True}:
            with self.assertRaises(BufferError):
                images.__dlpack__(**refused)

    def test_as_a_sequence(self):
        images, labels = next(iter(loader(dtype="float32", mean=MEAN, std=STD)))
        for array in images, labels, next(iter(loader())).images, next(iter(loader(layout="NCHW"))).images:
            plain = numpy.asarray(array)
            self.assertEqual(array.tolist(), plain.tolist())
            self.assertEqual([len(array), len(list(array)), list(array)[3] is None], [8, 8, False])
            keys = [0, -1, numpy.int64(3), slice(2, 7, 2), slice(None, None, -1), slice(5, 2), ..., (), (..., slice(1, 3))]
            if plain.ndim == 4:
                keys += [(1, 2), (1, 2, 0, 1), (..., 0), (slice(None), 2, ..., slice(0, 3, 2)), (-1, slice(None, None, -3), 0)]
            for key in keys:
                part, expected = array[key], plain[key]
                if expected.ndim:
                    self.assertEqual((part.shape, part.dtype, part.nbytes), (expected.shape, expected.dtype.name, expected.nbytes))
                    for seen in numpy.asarray(part), numpy.from_dlpack(part), part.__array__():
                        self.assertEqual((address(seen), seen.strides) if expected.size else 0,
                                         (address(expected), expected.strides) if expected.size else 0, key)
                    self.assertEqual(bytes(part), expected.tobytes())
                    part = part.tolist()
                self.assertEqual((part, type(part)), (expected.tolist(), type(expected.tolist())), key)
            for wrong in plain.ndim * (0,) + (0,), 8, -9, (..., ...), (0, 32, 0, 0):
                with self.assertRaises(IndexError):
                    array[wrong]
            for wrong in "a", 1.5, [1, 2], None:
                with self.assertRaises(TypeError):
                    array[wrong]
        self.assertEqual([type(number) for number in (labels[0], images[0, 0, 0, 0])], [int, float])
        self.assertEqual(list(labels), [labels[i] for i in range(8)])
        self.assertEqual(images[2][3][4].tolist(), images[2, 3, 4].tolist())
        self.assertIn(labels[0], labels)
        with self.assertRaisesRegex(BufferError, "contiguous"):
            zlib.crc32(images[:, 0])
        numpy.asarray(images[1])[:] = 7
        self.assertEqual(images[1, 5, 5, 1], 7)
        self.assertEqual(labels.__array__("float32").dtype.name, "float32")

    def test_comparing(self):
        batch = next(iter(loader()))
        labels, plain = batch.labels, numpy.asarray(batch.labels)
        for other in 1, plain, plain.tolist(), plain[::-1], labels, batch.indices:
            for name in "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__":
                result = getattr(labels, name)(other)
                self.assertEqual((type(result), result.tolist()), (numpy.ndarray, getattr(plain, name)(other).tolist()))
        self.assertEqual((plain == labels).tolist(), [True] * 8)
        self.assertEqual({labels: 1}[labels], 1)
        self.assertTrue((batch.images == numpy.asarray(batch.images)).all())

    @needs_torch
    def test_as_torch_sees_it(self):
        batch = next(iter(loader()))
        images, labels = batch
        tensor = torch.from_dlpack(labels)
        for result in tensor == labels, labels == tensor, tensor <= labels, labels >= tensor:
            self.assertTrue(torch.equal(result, torch.ones(8, dtype=torch.bool)))
        self.assertTrue(torch.equal(torch.ones(8) * labels, tensor.float()))
        self.assertTrue(torch.equal(torch.as_tensor(labels), tensor))
        self.assertEqual(torch.as_tensor(images[:, :2]).tolist(), images[:, :2].tolist())
        self.assertTrue(torch.equal(torch.stack([labels, labels[::1]])[1], tensor))
        self.assertAlmostEqual(float(torch.nn.functional.cross_entropy(torch.zeros(8, 2), target=labels)), 0.6931, places=3)
        if "LD_PRELOAD" not in os.environ:  # AddressSanitizer stops at exceptions of C++ that it wasn't linked with
            with self.assertRaisesRegex(RuntimeError, "size"):
                torch.ones(3) + labels
        from torch.utils.data import DataLoader, default_collate
        both = default_collate([(images, labels), batch])
        self.assertEqual([list(part.shape) for part in both], [[2, 8, SIZE, SIZE, 3], [2, 8]])
        self.assertTrue(torch.equal(both[0][1], torch.from_dlpack(images)))
        self.assertEqual([len(part[0]) for part in DataLoader(list(zip(images, labels)), batch_size=3)], [3, 3, 2])
        half = next(iter(loader(dtype="bfloat16")))
        self.assertEqual(default_collate([half.images]).dtype, torch.bfloat16)
        self.assertTrue((half.images == half.images).all())

    def views(self, images):
        """Every way to see a batch's memory."""
        ways = [lambda: images, lambda: memoryview(images), lambda: numpy.asarray(images)[3:, ::2], lambda: images.__dlpack__(),
                lambda: numpy.from_dlpack(images)[0], lambda: images[2], lambda: images[1:, 3][..., 0],
                lambda: numpy.asarray(images[3:, ::2]), lambda: iter(images)]
        if torch:
            ways += [lambda: torch.from_dlpack(images)[2:].permute(3, 0, 1, 2)]
        return ways

    def test_the_last_view_gives_the_memory_back(self):
        for way in range(len(self.views(None))):
            batches = loader(depth=2)
            running = iter(batches)
            view = self.views(next(running).images)[way]()
            other = next(running)
            with self.assertRaisesRegex(dl2.Error, "all 2 batches are still in use"):
                next(running)
            del other
            self.assertEqual(next(running).step, 2)  # one was free
            other = next(running)
            with self.assertRaises(dl2.Error):
                next(running)
            del view
            self.assertEqual(next(running).step, 4)
            with self.assertRaises(StopIteration):
                next(running)

    def test_kept_across_epochs(self):
        batches = loader(depth=3)
        whole = [epoch_of(batches) for _ in range(4)]
        batches = loader(depth=3)
        kept = next(iter(batches)).images
        copy = numpy.array(kept)
        for epoch in range(1, 4):
            for images, labels in batches:  # the last one is still there when the next epoch begins
                pass
            self.assertTrue((numpy.asarray(images) == whole[epoch][0][32:]).all())
        self.assertTrue((numpy.asarray(kept) == copy).all())

    def test_garbage_in_cycles(self):
        threshold = gc.get_threshold()
        gc.set_threshold(1000000)
        try:
            steps = 0
            for images, labels in loader(depth=2):
                cycle = [numpy.asarray(images)]
                cycle.append(cycle)
                steps += 1
            self.assertEqual(steps, 5)
        finally:
            gc.set_threshold(*threshold)

    def test_views_outlive_all_else(self):
        for way in range(len(self.views(None))):
            for order in range(4):
                batches = loader()
                batch = next(iter(batches))
                copy = numpy.array(batch.images)
                view = self.views(batch.images)[way]()
                if order == 1:
                    batches.close()
                if order == 2:
                    del batch
                del batches
                if order == 3:
                    del batch
                gc.collect()
                junk = [next(iter(loader())) for _ in range(2)]  # something else where freed memory was
                if order < 2:
                    self.assertTrue((numpy.asarray(batch.images) == copy).all())
                    del batch
                expected = {2: copy[3:, ::2], 4: copy[0], 5: copy[2], 6: copy[1:, 3][..., 0]}
                if way in expected:
                    self.assertTrue((view == expected[way]).all())
                del view, junk

    def test_views_may_die_in_any_thread(self):
        batches = loader(depth=2)
        for images, labels in batches:
            held = [numpy.from_dlpack(images)]
            if torch:
                held.append(torch.from_dlpack(images))
            thread = threading.Thread(target=held.clear)
            del images
            thread.start()
            thread.join()
        self.assertEqual(batches.stats()["batches"], 5)

    def test_labels_may_be_kept(self):
        batches = loader(depth=2)
        kept = [(batch.labels, batch.indices) for batch in batches]
        self.assertEqual([numpy.asarray(labels).tolist() for labels, _ in kept],
                         [[batches.dataset.sample(i).label for i in memoryview(indices)] for _, indices in kept])

    def test_nothing_leaks(self):
        dataset = dl2.Dataset(flowers)
        batches = dl2.Loader(dataset, 8, SIZE)

        def epochs(count):
            for _ in range(count):
                for images, labels in batches:
                    numpy.asarray(images), numpy.from_dlpack(images), images.__dlpack__(), repr(images), images.shape
                    images[1], images[1:, 3][..., 0].tolist(), list(labels), labels == labels, labels < 3, labels.__array__()
                    if torch:
                        torch.from_dlpack(labels) == labels, torch.stack([images[1], images[2]]), labels == torch.zeros(1)
                    for wrong in "a", 99, (0,) * 5:
                        try:
                            images[wrong]
                        except (IndexError, TypeError):
                            pass
                batches.stats(), batches.bad, batches.state(), batches.resume(batches.state())
                dataset[3], dataset.keys, dataset.classes, dataset.sample(0)
                for wrong in {"dtype": "int3"}, {"mean": (1,)}, {"batch": 0}:
                    try:
                        dl2.Loader(dataset, **wrong)
                    except ValueError:
                        pass
                other = dl2.Loader(dataset, 8, SIZE)
                other.start_epoch(3)
                state = other.state()
                other.close(), other.bad, other.stats()
                for wrong in (lambda: dl2.Dataset(f"{flowers}/nowhere"), lambda: batches.start_epoch(0, 99), lambda: dataset.sample(99),
                              lambda: batches.resume({**state, "order": {**state["order"], "seed": 9}}), lambda: batches.resume(3),
                              lambda: dl2.Loader(dataset, split="val"), lambda: dl2.Dataset(flowers, "all", val_fraction=0.1)):
                    try:
                        wrong()
                    except (OSError, ValueError, TypeError, IndexError):
                        pass
                del other

        # CPython's cache of attributes keeps the names that NumPy makes anew for each look, as many as threads' timing has it.
        clear_caches = getattr(sys, "_clear_internal_caches", None) or sys._clear_type_cache  # since 3.13, before

        def counts():
            clear_caches()
            gc.collect()
            return [sys.getrefcount(thing) for thing in (dataset, batches, dl2.Array, dl2.Loader, dl2.Batch, dl2.Sample)]

        epochs(20)
        before, memory = counts(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        blocks = sys.getallocatedblocks()
        epochs(100)
        self.assertEqual(counts(), before)
        self.assertLess(sys.getallocatedblocks() - blocks, 50)
        # Sanitizers keep freed memory for a while, and QEMU some of every thread that has ended.
        if not {"LD_PRELOAD", "QEMU_LD_PREFIX"} & os.environ.keys():
            self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory, 4096)  # KiB

    @needs_torch
    def test_training(self):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, 2), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(4 * 15 * 15, 2))
        batches = loader()
        optimiser = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
        losses = []
        for epoch in range(8):
            for images, labels in batches:
                images = torch.from_dlpack(images).permute(0, 3, 1, 2) / 255 - 0.5
                loss = torch.nn.functional.cross_entropy(model(images), torch.from_dlpack(labels))
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                losses.append(loss.detach())
        right = [(model(torch.from_dlpack(b.images).permute(0, 3, 1, 2) / 255 - 0.5).argmax(1) == torch.from_dlpack(b.labels)).all()
                 for b in loader(train=False)]
        self.assertLess(sum(losses[-5:]), sum(losses[:5]) / 4)
        self.assertTrue(all(right))


class Samples(unittest.TestCase):
    def test_dataset(self):
        with dl2.Dataset(flowers) as train, dl2.Dataset(flowers, split="val") as val:
            self.assertEqual((len(train), len(val), train.classes), (40, 6, ("aster", "rose")))
            self.assertEqual(train.keys[:2] + train.keys[-1:], ["train/aster/00", "train/aster/01", "train/rose/17"])
            for i, (data, label) in enumerate(train):
                sample = train.sample(i)
                with open(sample.path, "rb") as file:
                    self.assertEqual(data, file.read())
                self.assertEqual((sample.label, sample.bytes, sample.key), (label, len(data), train.keys[i]))
                self.assertEqual(sample.mtime_ns, os.stat(sample.path).st_mtime_ns)
                self.assertEqual(sample.name, sample.key + ".ppm")
            self.assertEqual(train[-1], train[39])
            for nowhere in 40, -41:
                with self.assertRaises(IndexError):
                    train[nowhere]
                with self.assertRaises(IndexError):
                    train.sample(nowhere)
            self.assertEqual(train.sample(-1), train.sample(39))
            self.assertEqual(train.sample(-40), train.sample(0))
            self.assertEqual(len(dl2.Dataset(flowers, images_only=False)), 41)
        os.makedirs(f"{scratch.name}/caf\u00e9/a", exist_ok=True)
        write_picture(os.fsencode(f"{scratch.name}/caf\u00e9/a/").decode() + "1.ppm", 9, 9, 0, 9, 0)
        write_picture(f"{scratch.name}/caf\u00e9/a/\udcff.ppm", 9, 9, 0, 9, 0)
        odd = dl2.Dataset(f"{scratch.name}/caf\u00e9", split="all")
        self.assertEqual(odd.keys, ["a/1", "a/\udcff"])

    def test_packed(self):
        plain = dl2.Dataset(flowers, "all")
        for container in "gulp", "tar":
            packed = f"{scratch.name}/{container}"
            run("dl2-transcode", "--copy", f"--container={container}", "--quiet", flowers, packed)
            dataset = dl2.Dataset(packed, "all")
            self.assertEqual((list(dataset), dataset.keys, dataset.classes), (list(plain), plain.keys, plain.classes))
            for a, b in zip(epoch_of(loader(dl2.Dataset(flowers))), epoch_of(loader(packed))):
                self.assertTrue((a == b).all())

    def test_closed(self):
        dataset = dl2.Dataset(flowers)
        batches = dl2.Loader(dataset, 8, SIZE)
        dataset.close()
        for use in (lambda: len(dataset), lambda: dataset[0], lambda: dataset.classes, lambda: dl2.Loader(dataset)):
            with self.assertRaisesRegex(ValueError, "closed"):
                use()
        self.assertEqual(len(list(map(lambda batch: batch.step, batches))), 5)  # it is kept for the loader
        running = iter(batches)
        batch = next(running)
        copy = numpy.array(batch.images)
        batches.close()
        batches.close()
        for use in (lambda: len(batches), lambda: iter(batches), lambda: next(running), lambda: batches.state()):
            with self.assertRaisesRegex(ValueError, "closed"):
                use()
        self.assertTrue((numpy.asarray(batch.images) == copy).all())

    def test_figures_of_a_closed_loader(self):
        folder = f"{scratch.name}/closed"
        make_flowers(folder)
        os.truncate(f"{folder}/train/aster/07.ppm", 1000)
        for keeps in False, True:
            with loader(folder) as batches:
                kept = None
                for batch in batches:
                    kept = batch.images if keeps else None
                del batch
                bad, stats = batches.bad, batches.stats()
            self.assertEqual(len(bad), 1)
            # Workers that wait for work when it is closed have waited a little longer by then.
            final = batches.stats()
            self.assertGreaterEqual(final["worker_wait"], stats.pop("worker_wait"))
            self.assertEqual({key: final[key] for key in stats}, stats)
            for again in range(2):
                self.assertEqual((batches.bad, batches.stats()), (bad, final))
                kept = None
            self.assertEqual(batches.stats(reset=True), final)
            self.assertEqual((batches.stats()["images"], batches.stats()["memory"], batches.bad), (0, stats["memory"], bad))
        with dl2.Loader(dl2.Dataset(folder), 8, SIZE) as batches:
            pass
        self.assertEqual((batches.bad, batches.stats()["images"] >= 0), ([], True))

    def test_layouts(self):
        woof = f"{scratch.name}/woof"
        for split, count in ("Training", 10), ("valid", 4), ("test", 3):
            for n in range(count):
                write_picture(f"{woof}/{split}/{NAMES[n % 2]}/{n}.ppm", 40, 40, 0, 99, n)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertEqual([len(dl2.Dataset(woof, split)) for split in ("train", "val", "test", "all")], [10, 4, 3, 17])
            self.assertEqual(dl2.Dataset(woof).layout, "train 10 images in 2 classes (Training/), val 4 (valid/), test 3")
            write_picture(f"{woof}/holdout/{NAMES[0]}/0.ppm", 40, 40, 0, 99, 1)
            self.assertEqual(dl2.Dataset(woof, "holdout").keys[:], [f"holdout/{NAMES[0]}/0"])
            self.assertEqual(len(loader(woof, split="holdout", train=False).dataset), 1)
            self.assertEqual(len(loader(f"{woof}/Training").dataset), 10)
            self.assertEqual(len(loader(f"{woof}/valid", train=False).dataset), 4)
            self.assertEqual(len(loader(f"{woof}/test", split="test", train=False).dataset), 3)
            with self.assertRaisesRegex(dl2.Error, "all of them in the train split"):
                loader(f"{woof}/Training", train=False)
        plain = f"{scratch.name}/plain"
        for n in range(10):
            write_picture(f"{plain}/{NAMES[n % 2]}/{n}.ppm", 40, 40, 0, 99, n)
            write_picture(f"{plain}/dev/{n}.ppm", 40, 40, 0, 99, n)
        with self.assertWarnsRegex(UserWarning, "16 for training and 4 for validation"):
            loader(plain)
        with self.assertWarnsRegex(UserWarning, "'dev' is read as a class"):
            loader(plain, val_fraction=0.5)

    def test_splits(self):
        flat = f"{scratch.name}/flat"
        for name in "aster", "rose":
            for n in range(10):
                write_picture(f"{flat}/{name}/{n}.ppm", 40, 40, 0, 99, n)
        for settings, count in (({}, 16), ({"train": False}, 4), ({"split": "all"}, 20), ({"split": "val"}, 4),
                                ({"split": "train", "train": False}, 16), ({"val_fraction": 0.5}, 10),
                                ({"val_fraction": 0.3, "train": False}, 6), ({"val_fraction": 0}, 20)):
            self.assertEqual(len(loader(flat, **settings).dataset), count, settings)
        self.assertEqual(len(loader(split="all").dataset), 46)
        quarter, half = dl2.Dataset(flat, subset=0.25), dl2.Dataset(flat, subset=0.5)
        self.assertEqual((len(quarter), len(half), len(dl2.Dataset(flat, "val", subset=0.25))), (4, 8, 4))
        self.assertLess(set(quarter.keys), set(half.keys))
        self.assertNotEqual(dl2.Dataset(flat, subset=0.5, subset_seed=1).keys, half.keys)
        self.assertEqual(dl2.Dataset(flat, subset=0.5, subset_by="name").keys[:4],
                         dl2.Dataset(flat).keys[:4])
        for settings in {"subset": 1.5}, {"subset": -1}, {"subset": 0}, {"subset_by": "chance"}:
            with self.assertRaises(ValueError):
                dl2.Dataset(flat, **settings)
        for settings, says in (({"split": "half"}, "no split is called 'half'"), ({"val_fraction": 2}, "2"),
                               ({"val_fraction": float("nan")}, "nan")):
            with self.assertRaisesRegex(ValueError, says):
                loader(flat, **settings)
        for settings in {"val_fraction": 0.3}, {"split_seed": 1}:
            with self.assertRaisesRegex(ValueError, "no effect with split='all'"):
                dl2.Dataset(flat, "all", **settings)
        with self.assertRaisesRegex(ValueError, "no effect with split='all'"):
            loader(flat, split="all", val_fraction=0.2)
        with self.assertRaises(TypeError):
            loader(flat, split=3)
        for settings in {"split": "train"}, {"val_fraction": 0.2}:
            with self.assertRaisesRegex(ValueError, "go with a path"):
                loader(dl2.Dataset(flat), **settings)


class Beside(unittest.TestCase):
    def test_variants_have_the_targets_of_their_source(self):
        source = f"{scratch.name}/with-targets"
        make_flowers(source)
        for n, key in enumerate(dl2.Dataset(source, "all").keys):
            if n % 3:
                with open(f"{source}/{key}.json", "w") as file:
                    json.dump({"n": n}, file)
            if n % 2:
                with open(f"{source}/{key}.seg.png", "wb") as file:
                    file.write(bytes([n]) * n)

        def targets_of(path):
            found = {}
            for batch in dl2.Loader(path, image_size=8, targets=("json", "seg.png")):
                for place, index in enumerate(memoryview(batch.indices)):
                    found[dl2.Dataset(path).keys[index]] = [batch.targets[name][place] for name in ("json", "seg.png")]
            return found

        wanted = targets_of(source)
        self.assertEqual(len(wanted), 40)
        for number, container in enumerate(("folder", "tar")):
            made = f"{scratch.name}/variants-{container}"
            run("dl2-transcode", "--quiet", "--codec=ppm", f"--container={container}", source, made)
            self.assertEqual(targets_of(f"{made}/ppm"), wanted)
            run("dl2-transcode", "--quiet", "--copy", f"--container={('tar', 'folder')[number]}", f"{made}/ppm", f"{made}-copy")
            self.assertEqual(targets_of(f"{made}-copy"), wanted)


class Selection(unittest.TestCase):
    def test_numbers(self):
        """In any order, several times; order, resume and ranks follow from them."""
        all_of_it = dl2.Dataset(flowers)
        for numbers in [5, 2, 39], numpy.arange(30, 40), range(0, 40, 3), [-1, 0]:
            some = dl2.Dataset(flowers, select=numbers)
            self.assertEqual(some.keys, [all_of_it.keys[n] for n in numbers])
            self.assertEqual(some[1], all_of_it[int(numbers[1])])
            self.assertEqual(pickle.loads(pickle.dumps(some)).keys, some.keys)
        twice = dl2.Dataset(flowers, select=[n for n in range(40) for _ in range(1 + n % 2)])
        self.assertEqual(len(twice), 60)
        with loader(twice, seed=3) as batches:
            images, labels, indices = epoch_of(batches)
        self.assertEqual(sorted(indices), list(range(60)))
        place = {index: at for at, index in enumerate(indices)}
        pairs = [(n, n + 1) for n in range(59) if twice.keys[n] == twice.keys[n + 1]]
        self.assertEqual(len(pairs), 20)
        for a, b in pairs:  # copies, each with its own crop
            self.assertEqual(labels[place[a]], labels[place[b]])
            self.assertFalse(numpy.array_equal(images[place[a]], images[place[b]]))
        for settings in {"workers": 1}, {"workers": 4}:
            numpy.testing.assert_array_equal(epoch_of(loader(twice, seed=3, **settings))[0], images)
        parts = [epoch_of(loader(twice, seed=3, batch=4, rank=rank, world=2))[2] for rank in range(2)]
        self.assertEqual(sorted(numpy.concatenate(parts)), list(range(60)))
        state = loader(twice, seed=3).state()
        with self.assertRaisesRegex(ValueError, "samples 60, this loader 40"):
            loader(seed=3).resume(state)
        with self.assertRaisesRegex(ValueError, "another dataset"):
            loader(dl2.Dataset(flowers, select=[0] * 60), seed=3).resume(state)

    def test_by_key(self):
        roses = dl2.Dataset(flowers, "val", select=lambda key: "/rose/" in key)
        self.assertEqual(roses.keys, [f"val/rose/{n:02}" for n in range(3)])
        self.assertEqual(roses.classes, tuple(NAMES))  # with the same numbers
        self.assertEqual(dl2.Dataset(flowers, select=numpy.arange(3)).keys, dl2.Dataset(flowers, select=[0, 1, 2]).keys)
        self.assertEqual(pickle.loads(pickle.dumps(roses)).keys, roses.keys)
        self.assertEqual(epoch_of(loader(roses, train=False))[1].tolist(), [1, 1, 1])

    def test_what_is_none(self):
        for wrong, what in (([], ValueError), ([40], IndexError), ([-41], IndexError), ([0.5], TypeError), (3, TypeError),
                            ([True] * 40, TypeError), (numpy.ones(40, bool), TypeError),
                            (lambda key: False, ValueError), (lambda key: 1 / 0, ZeroDivisionError)):
            with self.assertRaises(what):
                dl2.Dataset(flowers, select=wrong)


class Card(unittest.TestCase):
    """Decoding on a card, by a stand-in for it whose memory is this machine's (fake_decoders.c)."""

    @classmethod
    def setUpClass(cls):
        if not os.path.exists(fake_card.PATH):
            raise unittest.SkipTest(f"no {fake_card.PATH}: the tests were not built")
        cls.photos = f"{scratch.name}/photos"
        try:
            run("dl2-transcode", "--quiet", "--codec", "jpeg", "--q", "90", flowers, f"{scratch.name}/jpegs")
        except subprocess.CalledProcessError:
            raise unittest.SkipTest("built without JPEG") from None
        os.rename(f"{scratch.name}/jpegs/jpeg-90", cls.photos)
        write_picture(f"{cls.photos}/train/aster/other.ppm", 50, 60, 0, 255, 1)
        cls.card = fake_card.install()
        cls.card.fake_reads.argtypes = [ctypes.POINTER(ctypes.c_size_t)] * 2

    @classmethod
    def tearDownClass(cls):
        fake_card.uninstall()

    def tearDown(self):
        os.environ.pop("DL2_FAKE_REFUSES", None), os.environ.pop("DL2_FAKE_FAILS_AT", None)
        gc.collect()
        self.assertEqual(self.card.fake_open_count(), 0)

    def make(self, **settings):
        return dl2.Loader(self.photos, **{"batch": 8, "image_size": SIZE, "workers": 2, "decode": "gpu", **settings})

    def read(self):
        images, stream = ctypes.c_size_t(), ctypes.c_size_t()
        return self.card.fake_reads(images, stream), images.value, stream.value

    @staticmethod
    def all_of(batches):
        return [(fake_card.pixels(batch.images), batch.labels.tolist(), batch.indices.tolist()) for batch in batches]

    def test_same_images(self):
        for settings in {}, {"train": False}, {"channels": 1}, {"decode": "hybrid"}, {"gpu_input": "spliced"}:
            expected = self.all_of(self.make(**{**settings, "decode": "cpu", "gpu_input": "plain"}))
            for refuses in "0", "1", "3":
                os.environ["DL2_FAKE_REFUSES"] = refuses
                with self.make(**settings) as batches:
                    self.assertEqual(self.all_of(batches), expected)
                    stats = batches.stats()
                    card, images = stats["card"], stats["images"]
                    self.assertEqual(stats["batches"], len(batches))
                    self.assertEqual((card["name"], card["by_engines"]), ("fake", 0))
                    if "decode" not in settings:
                        self.assertEqual(card["images"] + card["refused"], images - settings.get("train", True))
                        self.assertEqual([card["images"] > 0, card["refused"] > 0], [refuses != "1", refuses != "0"])
                    self.assertTrue(card["bytes"] > card["images"] + card["refused"] > 0 and card["finish"] > 0)
                    batches.stats(reset=True)
                    self.assertEqual(batches.stats()["card"]["refused"], 0)
                self.assertEqual(batches.stats()["card"]["name"], "fake")
        with self.make(decode="cpu") as batches:
            self.assertIsNone(batches.stats()["card"])

    def test_arrays(self):
        with self.make(device="cuda:1") as batches:
            batch = next(iter(batches))
            images = batch.images
            self.assertEqual((images.device, images.__dlpack_device__()), ("cuda:1", (fake_card.CUDA, 1)))
            self.assertEqual((batch.labels.device, batch.labels.__dlpack_device__()), ("cpu", (fake_card.CPU, 0)))
            self.assertEqual(repr(images), f"<dl2.Array uint8 (8, {SIZE}, {SIZE}, 3) on cuda:1>")
            self.assertIn(", decoded on cuda:1, at epoch 0 step 1 of 6: ", repr(batches))
            for access in (numpy.asarray, memoryview, bytes, lambda a: a.tolist(), lambda a: a[0, 0, 0, 0], lambda a: a[1].tolist(),
                           lambda a: a.__array__(), lambda a: numpy.array(a[2:])):
                with self.assertRaisesRegex(BufferError, "card cuda:1, where they were decoded: torch.from_dlpack"):
                    access(images)
            with self.assertRaises((BufferError, RuntimeError)):
                numpy.from_dlpack(images)
            whole, part = [fake_card.tensor_of(one, stream=1) for one in (images, images[2:, ..., 1])]
            self.assertEqual((part.device_type, part.device_id, part.data - whole.data), (2, 1, 2 * SIZE * SIZE * 3 + 1))
            images.__dlpack__(stream=-1, dl_device=(2, 1), copy=False)
            for wrong in {"stream": 0}, {"stream": -2}, {"dl_device": (1, 0)}, {"dl_device": (2, 0)}, {"copy": True}:
                with self.assertRaises(BufferError, msg=wrong):
                    images.__dlpack__(**wrong)
            with self.assertRaises(TypeError):
                images.__dlpack__(stream="1")
            with self.assertRaisesRegex(BufferError, "no streams"):
                batch.labels.__dlpack__(stream=1)

    def test_lifetimes(self):
        """A batch is the consumer's until its last view is gone; then the decoder knows which stream has read it."""
        with self.make(depth=2) as batches:
            running, kept = iter(batches), []
            for stream in 77, 1 << 40:
                images = next(running).images
                kept.append((fake_card.array_of(images, stream), fake_card.array_of(images[3:, ..., 0], stream + 1),
                             fake_card.pixels(images), fake_card.tensor_of(images).data))
            del images
            with self.assertRaisesRegex(dl2.Error, "all 2 batches are still in use"):
                next(running)
            before = self.read()[0]
            time.sleep(0.05)
            for whole, part, expected, _ in kept:
                self.assertEqual(whole.tobytes(), expected)
                self.assertTrue(numpy.array_equal(part, whole[3:, ..., 0]))
            whole, part, _, at = kept.pop(0)
            del whole
            self.assertEqual(self.read(), (before + 1, at, 77))
            with self.assertRaisesRegex(dl2.Error, "all 2 batches are still in use"):
                next(running)
            del part
            self.assertEqual(self.read(), (before + 2, at, 78))
            last = next(running).images
            for given, stream in (None, 1), (-1, 1), (2, 1), (3, 3):
                fake_card.array_of(last, given)
                self.assertEqual(self.read()[2], stream)
            batches.close()
            self.assertEqual(self.card.fake_open_count(), 1)
            self.assertEqual(kept[0][0].tobytes(), kept[0][2])
            kept.clear()
            self.assertEqual(self.card.fake_open_count(), 1)
            del last
            self.assertEqual(self.card.fake_open_count(), 0)

    def test_state(self):
        with self.make(seed=4) as batches, self.make(seed=4) as other, self.make(seed=4, decode="cpu") as third:
            expected = self.all_of(batches)
            batches.start_epoch(0)
            running = iter(batches)
            next(running), next(running)
            state = json.loads(json.dumps(batches.state()))
            self.assertEqual([state["settings"][name] for name in ("decode", "gpu_input", "gpu_engine")], ["gpu", "plain", "auto"])
            copy = pickle.loads(pickle.dumps(batches))
            other.resume(state)
            self.assertEqual((self.all_of(other), self.all_of(copy)), (expected[2:], expected[2:]))
            self.assertEqual((copy.settings["decode"], copy.settings["device"]), ("gpu", None))
            copy.close()
            with self.assertRaisesRegex(ValueError, "decode 'gpu', this loader 'cpu'"):
                third.resume(state)
            del state["settings"]["decode"]  # of a version that had only one
            third.resume(state)
            self.assertEqual(self.all_of(third), expected[2:])

    def test_fork(self):
        """A child neither uses nor ends the parent's card."""
        with self.make() as batches:
            images = next(iter(batches)).images
            array, reads = fake_card.array_of(images), self.read()[0]
            child = os.fork()
            if not child:
                try:
                    del array, images
                    with self.assertRaisesRegex(RuntimeError, "forked"):
                        next(iter(batches))
                    del batches
                    gc.collect()
                    os._exit(0 if (self.card.fake_open_count(), self.read()[0]) == (1, reads) else 3)
                finally:
                    os._exit(4)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)

    def test_decoder_fails(self):
        os.environ["DL2_FAKE_FAILS_AT"] = "3"
        with self.make() as batches, self.assertRaisesRegex(OSError, "the card fell out"):
            for _ in batches:
                pass

    def test_wrong_settings(self):
        needs = "need dtype 'uint8', layout 'NHWC', a square"
        for settings, what in (({"dtype": "float32"}, needs), ({"layout": "NCHW"}, needs), ({"image_size": (SIZE, 40)}, needs),
                               ({"augment": "gray"}, needs), ({"mask": "png"}, needs), ({"interpolation": "box"}, needs),
                               ({"decoded_cache_bytes": 9}, needs), ({"memory": bytearray}, "memory has no effect with decode"),
                               ({"decode": "cpu", "device": "cuda"}, "device have no effect without decode"),
                               ({"decode": "cpu", "gpu_input": "region"}, "no effect without decode"),
                               ({"decode": "cpu", "gpu_engine": "cores"}, "no effect without decode"),
                               ({"device": "cuda:7"}, "no card number 7"), ({"device": "tpu"}, "tpu"),
                               ({"decode": "card"}, "decode is one of 'cpu', 'gpu', 'hybrid', not 'card'")):
            with self.assertRaisesRegex(ValueError, what, msg=settings):
                self.make(**settings)
        with self.assertRaisesRegex(dl2.Error, "cores decode whole images"):
            self.make(gpu_input="region", gpu_engine="cores")
        with self.assertRaisesRegex(TypeError, "device is a string"):
            self.make(device=0)

    def test_without_the_stand_in(self):
        """The module as it is built: an exception that says what is missing, where there is no card."""
        fake_card.uninstall()
        try:
            with self.make() as batches:
                self.assertEqual(next(iter(batches)).images.device, "cuda:0")
        except (dl2.Error, OSError) as error:
            self.assertRegex(str(error), "this build decodes on no card|decoding on the card")
        finally:
            fake_card.install()


class Errors(unittest.TestCase):
    def test_arguments(self):
        for wrong, says in (
                ({"batch": 0}, "batch must"), ({"channels": 2}, "channels must"), ({"depth": 1}, "depth must"),
                ({"area": (0.5, 2)}, "area"), ({"dtype": "int8"}, "dtype is one of 'uint8', 'float32', 'bfloat16', 'float16', not 'int8'"),
                ({"layout": "CHWN"}, "layout"), ({"batching": "none"}, "batching"), ({"io": "tape"}, "io"),
                ({"mean": (0, 0), "dtype": "float32"}, "mean has 2 numbers for 3 channels"),
                ({"rank": 3, "world": 2}, "rank")):
            with self.assertRaisesRegex(ValueError, says, msg=wrong):
                loader(**wrong)
        for wrong in {"batch": -1}, {"batch": 1 << 32}, {"seed": 1 << 64}:
            with self.assertRaisesRegex(ValueError, f"{list(wrong)[0]}: {list(wrong.values())[0]} is out of range"):
                loader(**wrong)
        for wrong in ({"batch": 1.5}, {"area": 1}, {"mean": 3, "dtype": "float32"}, {"colour": 1}, {"std": "abc", "dtype": "float32"},
                      {"cache_bytes": 1e9}, {"seed": None}, {"slow_percentile": "x"}):
            with self.assertRaisesRegex(TypeError, list(wrong)[0]):
                loader(**wrong)
        with self.assertRaisesRegex(ValueError, "split"):
            dl2.Dataset(flowers, split="tset")
        for hidden in dl2.Array, dl2.Epoch:
            with self.assertRaises(TypeError):
                hidden()

    def test_arguments_without_effect(self):
        for dtype in "float32", "bfloat16", "float16":
            for number in float("nan"), float("inf"):
                with self.assertRaisesRegex(ValueError, "mean of channel 1"):
                    loader(dtype=dtype, mean=(0, number, 0))
            for number in 0, -1, float("nan"), float("inf"), 1e-60, 1e60:
                with self.assertRaisesRegex(ValueError, "std of channel 2"):
                    loader(dtype=dtype, std=(1, 1, number))
        for wrong, says in (
                ({"mean": MEAN}, "for dtypes of floats"), ({"std": STD}, "not for 'uint8'"), ({"std": (1, 1, 1)}, "not for 'uint8'"),
                ({"train": False, "area": (0.5, 1)}, "area has no effect"), ({"train": False, "aspect": (1, 1)}, "aspect has no effect"),
                ({"train": False, "flip": True}, "flip has no effect"),
                ({"train": False, "augment": "vflip"}, "augment has no effect"), ({"augment": "flip"}, "no operation 'flip'"),
                ({"augment": "erase:p=x"}, "erase: p is a number from 0 to 1, not 'x'"), ({"augment": ""}, "no operation ''"), ({"resize": 40}, "resize is for validation"),
                ({"train": False, "shuffle_chunk": 2}, "shuffle_chunk is for training"), ({"shuffle_window": 2}, "needs shuffle_chunk"),
                ({"slow_percentile": 50.0}, "sample-aware"), ({"side_workers": 1, "batching": "completion"}, "sample-aware"),
                ({"io": "direct", "ahead": 3}, "io 'direct'"), ({"io": "direct", "ahead_bytes": 3}, "io 'direct'")):
            with self.assertRaisesRegex(ValueError, says, msg=wrong):
                loader(**wrong)
        self.assertEqual(len(loader(train=False, flip=False, resize=40, drop_last=True, batch=6)), 1)

    def test_no_dataset(self):
        nowhere = f"{scratch.name}/nowhere"
        for make in dl2.Dataset, dl2.Loader:
            with self.assertRaises(FileNotFoundError) as caught:
                make(nowhere)
            self.assertEqual((caught.exception.errno, caught.exception.filename), (errno.ENOENT, nowhere))
        os.mkdir(f"{scratch.name}/empty")
        with self.assertRaisesRegex(dl2.Error, "empty"):
            dl2.Loader(f"{scratch.name}/empty")

    def test_images_that_have_gone(self):
        folder = f"{scratch.name}/gone"
        make_flowers(folder)
        dataset = dl2.Dataset(folder)
        path = dataset.sample(4).path
        os.unlink(path)
        for use in lambda: dataset[4], lambda: epoch_of(dl2.Loader(dataset, 8, SIZE, stop_on_bad=True)):
            with self.assertRaises(FileNotFoundError) as caught:
                use()
            self.assertEqual((caught.exception.errno, caught.exception.filename), (errno.ENOENT, path))
            self.assertIn("can't be opened: No such file", caught.exception.strerror)
        os.mkdir(path)
        with self.assertRaisesRegex((ValueError, OSError), "04.ppm"):
            dataset[4]

    def test_what_may_not_be_read(self):
        """Root may read all, so root gives that up in a child."""
        child = os.fork()
        if child == 0:
            status = 1
            try:
                if os.geteuid() == 0:
                    os.setuid(65534)
                for path in flowers, f"{flowers}/train/rose":
                    os.chmod(path, 0) if os.access(path, os.W_OK) else None
                dl2.Dataset(flowers)
            except PermissionError as error:
                status = 0 if (error.errno, error.filename.startswith(scratch.name)) == (errno.EACCES, True) else 2
            finally:
                os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        for path in flowers, f"{flowers}/train/rose":
            os.chmod(path, 0o755)
        self.assertEqual(status, 0)

    def test_names_that_are_joined(self):
        folder = f"{scratch.name}/compressed"
        os.makedirs(folder)
        open(f"{folder}/g-0000.tar.gz", "w").close()
        open(f"{folder}/g-0001.tar", "w").close()
        for path in folder, folder + "/", folder + "//":
            with self.assertRaisesRegex(dl2.Error, f"^{folder}/g-0000.tar.gz: "):
                dl2.Dataset(path)

    def test_damaged_images(self):
        folder = f"{scratch.name}/damaged"
        make_flowers(folder)
        broken = [f"{folder}/{name}" for name in ("train/aster/07.ppm", "val/rose/01.ppm")]
        for path in broken:
            os.truncate(path, 1000)
        for train, path in zip((True, False), broken):
            batches = loader(folder, train=train)
            images, labels, indices = epoch_of(batches)
            self.assertEqual(len(batches.bad), 1)
            self.assertTrue(batches.bad[0].startswith(path + ": "), batches.bad)
            self.assertEqual(batches.stats()["bad"], 1)
            if train:
                self.assertNotIn(batches.dataset.keys.index("train/aster/07"), indices)
                self.assertEqual(len(labels), 40)
            else:
                self.assertEqual(list(labels), [0, 0, 0, 1, -1, 1])
                self.assertFalse(images[4].any())
            with self.assertRaisesRegex(dl2.Error, path):
                epoch_of(loader(folder, train=train, stop_on_bad=True))


class Waiting(unittest.TestCase):
    """With batches that take a while: large images, several links to one file."""

    @classmethod
    def setUpClass(cls):
        cls.folder = f"{scratch.name}/large"
        os.makedirs(f"{cls.folder}/a")
        side = 2500 if "LD_PRELOAD" in os.environ else 4000  # sanitizers take longer
        row = random.Random(1).randbytes(3 * side)
        with open(f"{cls.folder}/a/0.ppm", "wb") as file:
            file.write(b"P6\n%d %d\n255\n" % (side, side) + row * side)
        for n in range(1, 24):
            os.link(f"{cls.folder}/a/0.ppm", f"{cls.folder}/a/{n}.ppm")

    def make(self):
        dataset = dl2.Dataset(self.folder, "all")
        return dl2.Loader(dataset, 24, 224, workers=1, area=(1, 1))

    def alarm(self, seconds, function, *arguments):
        """A signal comes after so long, and its exception must come out of what the function does meanwhile."""
        class Alarm(Exception):
            pass

        def ring(number, frame):
            raise Alarm

        old = signal.signal(signal.SIGALRM, ring)
        try:
            with self.assertRaises(Alarm):
                signal.setitimer(signal.ITIMER_REAL, seconds)
                function(*arguments)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, old)

    def test_other_threads_run(self):
        batches, counted, done = self.make(), [0], threading.Event()

        def count():
            while not done.wait(0.005):
                counted[0] += 1

        thread = threading.Thread(target=count)
        thread.start()
        begun = time.monotonic()
        next(iter(batches))
        took = time.monotonic() - begun
        done.set()
        thread.join()
        self.assertGreater(counted[0], min(3, took / 0.05))

    def test_batches_that_another_thread_keeps(self):
        for settings in {"depth": 2}, {"depth": 3, "batching": "completion"}:
            batches, kept, seen = loader(batch=4, **settings), queue.Queue(), []

            def consume():
                while True:
                    images = kept.get()
                    if images is None:
                        return
                    if len(seen) < 6:
                        time.sleep(0.05)  # all are taken by then
                    seen.append(numpy.asarray(images).sum())
                    del images

            thread = threading.Thread(target=consume)
            thread.start()
            try:
                for epoch in range(3):
                    for batch in batches:
                        kept.put(batch.images)
                        del batch
            finally:
                kept.put(None)
                thread.join()
            self.assertEqual(len(seen), 30)
        # The other thread has ended: nobody can let go of these.
        running, kept = iter(batches), []
        with self.assertRaisesRegex(dl2.Error, "all 3 batches are still in use"):
            while True:
                kept.append(next(running))
        self.assertEqual(len(kept), 3)

    def test_waiting_for_another_thread_ends(self):
        """By Ctrl-C, and when the last of the others ends without letting go of anything."""
        batches, done = loader(depth=2), threading.Event()
        running = iter(batches)
        kept = [next(running), next(running)]
        thread = threading.Thread(target=done.wait)
        thread.start()
        try:
            self.alarm(0.2, next, running)
            threading.Timer(0.2, done.set).start()
            with self.assertRaisesRegex(dl2.Error, "still in use"):
                next(running)
        finally:
            done.set()
            thread.join()
        kept.pop()
        self.assertEqual(next(running).step, 2)

    def test_one_thread_at_a_time(self):
        batches, said = self.make(), []

        def wait():
            next(iter(batches))

        thread = threading.Thread(target=wait)
        thread.start()
        while thread.is_alive() and not said:
            try:
                batches.stats()
                time.sleep(0.001)
            except RuntimeError as error:
                said.append(str(error))
        thread.join()
        self.assertEqual(said, ["the loader is being used by another thread"])

    def test_signals(self):
        batches = self.make()
        expected = numpy.array(next(iter(batches)).images)
        batches.start_epoch(0)
        running = iter(batches)
        self.alarm(0.01, next, running)
        self.assertTrue((numpy.asarray(next(running).images) == expected).all())  # as if nothing had been

    def test_fork(self):
        batches = loader()
        running = iter(batches)
        images, labels = next(running)
        child = os.fork()
        if child == 0:
            try:
                next(running)
            except RuntimeError as error:
                status = 0 if "fork" in str(error) else 2
            del images, labels, running, batches  # neither waits for threads that aren't here
            gc.collect()
            os._exit(status)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertEqual(next(running).step, 1)

    def test_end_of_the_interpreter(self):
        """A loader, views and tensors that are there to the end, in the middle of an epoch."""
        program = ("import dl2, sys, numpy\n"
                   "try: import torch\nexcept ImportError: torch = numpy\n"
                   "loader = dl2.Loader(sys.argv[1], 8, 32)\n"
                   "images, labels = next(iter(loader))\n"
                   "view, tensor, other = numpy.asarray(images), torch.from_dlpack(images), numpy.from_dlpack(labels)\n")
        subprocess.run([sys.executable, "-c", program, flowers], check=True)


class Words(unittest.TestCase):
    def test_everything_has_some(self):
        for thing in (dl2, dl2.Array, dl2.Batch, dl2.Dataset, dl2.Epoch, dl2.Error, dl2.Loader, dl2.Sample):
            self.assertGreater(len(thing.__doc__), 15, thing)
            for name in vars(thing):
                if not name.startswith("_") and not name.startswith("n_"):
                    self.assertTrue(getattr(thing, name).__doc__, name)
        self.assertIn("image_size=224", dl2.Loader.__text_signature__)

    def test_stubs_say_what_is_there(self):
        """_core.pyi against the module: names, and arguments with their defaults."""
        with open(os.path.join(os.path.dirname(dl2.__file__), "_core.pyi")) as file:
            stubs = {node.name: node for node in ast.parse(file.read()).body if isinstance(node, ast.ClassDef)}
        self.assertEqual(set(stubs) | {"__version__"}, set(dl2.__all__))
        for name, stub in stubs.items():
            thing = getattr(dl2, name)
            functions = {node.name: node for node in stub.body if isinstance(node, ast.FunctionDef)}
            for part in functions:
                self.assertTrue(part in ("__buffer__", "__iter__") or hasattr(thing, part), f"{name}.{part}")
            public = {part for part in vars(thing) if not part.startswith(("_", "n_"))}
            self.assertEqual(public - set(functions) - set(dir(tuple)) - set(dir(Exception)), set(), name)
            for part, node in functions.items():
                method = thing if part == "__new__" else getattr(thing, part, None)
                signature = getattr(method, "__text_signature__", None)
                if signature and isinstance(method, (type, types.MethodDescriptorType)):
                    theirs = ast.parse(f"def f{signature.replace('$', '')}: pass").body[0].args
                    for arguments in node.args, theirs:
                        for one in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
                            one.annotation = None
                    ours, theirs = [re.sub("^(self|cls)(, /)?(, )?", "", ast.unparse(one)) for one in (node.args, theirs)]
                    self.assertEqual(ours, theirs, f"{name}.{part}")

    def test_keywords_are_the_options_of_dl2_load(self):
        """The same settings have both, but for names, and for what only one of them is for."""
        renamed = {"crop-area": "area", "cache": "cache_bytes", "cache-decoded": "decoded_cache_bytes",
                   "on-bad": "stop_on_bad", "gray": "channels", "val": "train", "jobs": "workers",
                   "decoder": "external"}
        of_the_program = set("""help usage version quiet json name epochs measure cold scaling digest
            device-kind device-rate device-report seconds within memory quality whole
            models ranks parameters link""".split())
        of_the_dataset = set("subset subset-by subset-seed".split())
        of_python = set("""mean std aspect flip slow_percentile side_workers ahead_bytes drop_behind val_fraction memory
            targets mask mask_fill""".split())
        script = subprocess.run(["dl2-load", "--completion"], check=True, capture_output=True, text=True).stdout
        options = set(re.search(r"-\*\) choices='(.*)'", script)[1].replace("--", "").split())
        keywords = set(re.findall(r"(\w+)=", dl2.Loader.__text_signature__))
        self.assertLessEqual(of_the_program | of_the_dataset, options)
        self.assertLessEqual({name.replace("-", "_") for name in of_the_dataset},
                             set(re.findall(r"(\w+)=", dl2.Dataset.__text_signature__)))
        self.assertEqual({renamed.get(name, name.replace("-", "_")) for name in options - of_the_program - of_the_dataset},
                         keywords - of_python)
        for keyword in ("dtype", "layout", "interpolation", "batching", "io", "decode", "gpu_input", "gpu_engine"):
            words = re.search(rf"--{keyword.replace('_', '-')}\) choices='(.*)'", script)[1].split()
            with self.assertRaisesRegex(ValueError, f"{keyword} is one of ") as raised:
                dl2.Loader("nowhere", **{keyword: "none"})
            self.assertEqual(words, [word.lower() for word in re.findall(r"'(\w+)'", str(raised.exception))][:-1])


if __name__ == "__main__":
    unittest.main(verbosity=2)
