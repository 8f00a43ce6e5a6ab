# SPDX-License-Identifier: BSD-2-Clause
"""What becomes of an image: size, type, plug-ins, decoders of one's own, masks."""
import json
import os
import pickle
import signal
import struct
import subprocess
import sys
import tarfile
import unittest
import warnings
import zlib

import numpy

import dl2
from small_dataset import (MEAN, NAMES, SIZE, STD, epoch_of, loader, pillow, run, scratch, torch, transforms, write_picture)


class Unusual(unittest.TestCase):
    """What samples don't show of their files is a warning, once, and bands need a word."""

    @classmethod
    def setUpClass(cls):
        cls.folder = f"{scratch.name}/unusual"
        maker = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../codec/bands.py")
        subprocess.run([sys.executable, maker, cls.folder], check=True)

    def load(self, name, **settings):
        dataset = dl2.Dataset(os.path.join(self.folder, name), "all")
        with warnings.catch_warnings(record=True) as caught, dl2.Loader(dataset, 2, 8, train=False, **settings) as batches:
            warnings.simplefilter("always")
            labels = [label for _ in range(2) for batch in batches for label in numpy.array(batch.labels)]
            return labels, [str(warning.message) for warning in caught], batches.stats(), list(batches.bad)

    def test_bits_and_pages(self):
        labels, warned, stats, bad = self.load("good")
        self.assertEqual((labels, bad), ([0] * 12, []))
        self.assertEqual([stats[name] for name in ("above_8_bits", "nearly_black", "several_frames", "dropped_bands")], [4, 2, 2, 0])
        for text in "images have more than 8 bits", "no value above a sixteenth", "images have several frames":
            self.assertEqual(sum(text in line for line in warned), 1, (text, warned))
        self.assertEqual(len(warned), 3)

    def test_bands(self):
        with self.assertRaisesRegex(dl2.Error, "none of the 7 samples .* it has 4 bands, .*drop_bands=True"):
            self.load("bands")
        labels, warned, stats, bad = self.load("bands", drop_bands=True)
        self.assertEqual((labels, bad, stats["dropped_bands"]), ([0] * 14, [], 14))
        self.assertEqual(sum("images have further bands" in line for line in warned), 1, warned)


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
        for wrong, error in ((24,), TypeError), ((24, 40, 3, 1), TypeError), ("224", TypeError), ((24, 0), ValueError), ((24, 70000), ValueError):
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
    """A gray PNG of these numbers, or one of a palette with other colors."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    height, width = pixels.shape
    rows = pixels if bits == 8 else numpy.packbits(numpy.unpackbits(pixels[..., None], axis=2)[..., 8 - bits:].reshape(height, -1), axis=1)
    body = b"".join(b"\0" + row.tobytes() for row in rows)
    colors = bytes((37 * i + 11 * c) % 256 for i in range(1 << bits) for c in range(3))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, 3 if palette else 0, 0, 0, 0)) +
                   (chunk(b"PLTE", colors) if palette else b"") + chunk(b"IDAT", zlib.compress(body)) + chunk(b"IEND", b""))


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

    @unittest.skipIf("tsan" in os.environ.get("LD_PRELOAD", ""),
                     "a shell, which leads a command's group, cannot start with ThreadSanitizer in it")
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
                zip(numpy.asarray(batch.images), numpy.asarray(batch.masks), batch.indices.tolist(), batch.crop_boxes.tolist())}

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
        """Without a resize, the image is ten times its mask still, whatever moved it; colors leave a mask alone."""
        keys = [key for key, mask in self.masks.items() if mask.shape == (self.HEIGHT, self.WIDTH)]
        data = dl2.Dataset(self.folder, "all", sidecars="png", select=lambda key: key in keys)
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
        colors = "jitter:brightness=0.9:contrast=0.9:saturation=0.9:hue=0.5,solarize:p=1,posterize:p=1:bits=1,autocontrast:p=1,equalize:p=1," \
            "sharpness:p=1,blur:p=1,grayscale:p=1,erase:p=1"
        with self.load(data, split=None, augment=colors, flip=False, **settings) as batches:
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
        run("dl2-transcode", "--quiet", "copy", "--container=gulp", f"{self.folder}.tar", f"{self.folder}.gulp")
        for batches in (self.load(f"{self.folder}.tar", image_size=24), self.load(f"{self.folder}.gulp", image_size=24),
                        self.load(image_size=24, decoded_cache_bytes=1 << 24), self.load(image_size=24, cache_bytes=1 << 24, io="threads"),
                        self.load(image_size=24, batching="completion")):
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
        with open(f"{self.folder}/a/04.ppm", "rb") as color, open(f"{self.folder}/a/04.png", "wb") as file:
            file.write(color.read())
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


if __name__ == "__main__":
    unittest.main(verbosity=2)
