# SPDX-License-Identifier: BSD-2-Clause
"""Which images come, and in which order: batches, epochs, resuming, samples chosen by number or key."""
import json
import os
import pathlib
import pickle
import re
import tempfile
import unittest
import zlib

import numpy

import dl2
from small_dataset import MEAN, NAMES, SIZE, STD, epoch_of, flowers, loader, make_flowers, run, scratch


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
        self.assertEqual((list(labels), list(indices)), ([0, 0, 0, 0, 1, 1, 1], list(range(7))))
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
        for same in {"workers": 1}, {"workers": 3, "batching": "completion", "batch": 40}:
            images, labels, indices = epoch_of(loader(augment=augment, **same))
            order = [list(indices).index(i) for i in once[2]]
            self.assertTrue((images[order] == once[0]).all(), same)
        images, labels, indices = epoch_of(loader(batching="completion"))
        order = [list(indices).index(i) for i in plain[2]]
        self.assertTrue((images[order] == plain[0]).all())

    def test_settings_can_be_read(self):
        batches = loader(seed=9, dtype="float32", mean=MEAN, std=STD, area=(0.25, 1), io="direct")
        settings = batches.settings
        words = set(re.findall(r"(\w+)=", dl2.Loader.__text_signature__))
        self.assertEqual(set(settings), words - {"split", "val_fraction", "memory", "sample_weights"})
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
        self.assertEqual(repr(batches), "<dl2.Loader training, batch 8, image_size 32, seed 0, at epoch 0 step 1 of 5: "
                         f"{batches.dataset!r}>")
        self.assertIn("seed 18446744073709551615, ", repr(loader(seed=(1 << 64) - 1)))
        self.assertIn("validation, batch 8, image_size 32, at epoch", repr(loader(train=False)))
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
        with dl2.Dataset(flowers, "all") as dataset, dl2.Loader(dataset, 47, SIZE) as batches:
            self.assertIs(batches.dataset, dataset)
            self.assertEqual(len(next(iter(batches)).labels), 47)

    def test_two_at_once(self):
        alone = [epoch_of(loader(seed=seed)) for seed in range(2)]
        pairs = list(zip(loader(seed=0, depth=9), loader(seed=1, depth=9)))
        for seed in range(2):
            for a, b in zip(alone[seed], epoch_of(pair[seed] for pair in pairs)):
                self.assertTrue((a == b).all())


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
        for batching in "strict", "completion":
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
        for choice in ({"sample_weights": weights}, {"sample_weights": numpy.array(weights), "num_samples": 100}, {"repeats": 3},
                       {"repeats": 3, "num_samples": 40}, {"num_samples": 13}, {"balanced": True, "num_samples": 64}):
            batches = loader(**choice)
            images, labels, indices = epoch_of(batches)
            length = choice.get("num_samples", 40 * choice.get("repeats", 1))
            self.assertEqual((len(indices), len(batches)), (length, -(-length // 8)), choice)
            for same in {"workers": 1, "io": "direct"}, {"workers": 3, "io": "threads"}, {"decoded_cache_bytes": 1 << 20}:
                for a, b in zip((images, labels, indices), epoch_of(loader(**choice, **same))):
                    self.assertTrue((a == b).all(), (choice, same))
            if "num_samples" in choice and choice["num_samples"] < 40 and "repeats" not in choice:
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
            loader(sample_weights=[1] * 40).resume(loader(sample_weights=weights).state())
        # Classes come equally often, though there are 22 asters and 18 roses, and others as they are.
        labels = epoch_of(loader(balanced=True, num_samples=20000, batch=100, image_size=8))[1]
        self.assertLess(abs(labels.mean() - 0.5), 0.0137)  # once in 10,000 times by chance; 0.45 else
        self.assertEqual(set(epoch_of(loader(sample_weights=[0, 1] * 20))[2] % 2), {1})
        with tempfile.TemporaryDirectory() as folder: # the same from a file, whatever order its lines have
            path = pathlib.Path(folder, "weights")
            keys = dl2.Dataset(flowers).keys
            path.write_text("".join(f"{key}\t{weight}\n" for key, weight in reversed(list(zip(keys, weights)))))
            self.assertTrue((epoch_of(loader(sample_weights=path))[2] == epoch_of(loader(sample_weights=weights))[2]).all())
            path.write_text("".join(f"{key} 1\n" for key in keys[1:]))
            with self.assertRaisesRegex(dl2.Error, "no weight for " + keys[0]):
                loader(sample_weights=str(path))
        copied = pickle.loads(pickle.dumps(loader(sample_weights=weights)))
        self.assertTrue((epoch_of(copied)[2] == epoch_of(loader(sample_weights=weights))[2]).all())
        for wrong, says in (({"sample_weights": [1] * 39}, "39 numbers for 40 samples"), ({"sample_weights": [0] * 40}, "their sum is 0"),
                            ({"sample_weights": [-1] + [1] * 39}, "-1 is not a valid weight"), ({"sample_weights": weights, "balanced": True}, "two ways"),
                            ({"sample_weights": weights, "repeats": 2}, "repeats excludes sample_weights"), ({"num_samples": 41}, "has 40 samples, not 41"),
                            ({"train": False, "repeats": 2}, "repeats needs train"), ({"balanced": True, "shuffle_chunk": 2}, "shuffle_chunk excludes sample_weights and balanced")):
            with self.assertRaisesRegex(ValueError, says):
                loader(**wrong)
        with self.assertRaises(TypeError):
            loader(sample_weights=["heavy"] * 40)

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
        self.assertEqual((len(dataset), dataset.keys[0]), (7, "val/aster/00"))
        with dl2.Loader(dataset=dataset, batch=2, train=False) as other:
            self.assertEqual(len(pickle.loads(pickle.dumps(other)).dataset), 7)
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


if __name__ == "__main__":
    unittest.main(verbosity=2)
