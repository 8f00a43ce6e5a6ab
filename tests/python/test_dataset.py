# SPDX-License-Identifier: BSD-2-Clause
"""Datasets: samples, packed ones, splits, what lies beside an image."""
import io
import json
import os
import shutil
import tarfile
import unittest
import warnings

import numpy

import dl2
from small_dataset import NAMES, SIZE, epoch_of, flowers, loader, make_flowers, run, scratch, write_picture


class Samples(unittest.TestCase):
    def test_dataset(self):
        with dl2.Dataset(flowers) as train, dl2.Dataset(flowers, split="val") as val:
            self.assertEqual((len(train), len(val), train.classes), (40, 7, ("aster", "rose")))
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
            run("dl2-transcode", "copy", f"--container={container}", "--quiet", flowers, packed)
            dataset = dl2.Dataset(packed, "all")
            self.assertEqual((list(dataset), dataset.keys, dataset.classes), (list(plain), plain.keys, plain.classes))
            for a, b in zip(epoch_of(loader(dl2.Dataset(flowers))), epoch_of(loader(packed))):
                self.assertTrue((a == b).all())

    def test_label_field(self):
        folder = f"{scratch.name}/with-json"
        os.makedirs(folder)
        with tarfile.open(f"{folder}/a.tar", "w") as tar:
            for key, name in ("1", "tree"), ("2", "bush"):
                for extension, data in ("jpg", b"x"), ("json", json.dumps({"meta": {"class": name}}).encode()):
                    member = tarfile.TarInfo(f"{key}.{extension}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
        labeled = dl2.Dataset(folder, split="all", label_field="meta.class", images_only=False)
        self.assertEqual((labeled.classes, labeled.targets), (("bush", "tree"), [1, 0]))
        with self.assertRaisesRegex(ValueError, "in tar shards alone"):
            dl2.Dataset(flowers, label_field="meta.class")

    def test_image_extension(self):
        folder = f"{scratch.name}/with-depth"
        os.makedirs(folder)
        with tarfile.open(f"{folder}/a.tar", "w") as tar:
            for name, data in ("1.depth.png", b"depth"), ("1.jpg", b"image"), ("2.depth.png", b"depth"), ("2.cls", b"0"):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
        with self.assertWarnsRegex(UserWarning, "since their samples have another: 1, such as 1.depth.png in a.tar"):
            dataset = dl2.Dataset(folder, split="all", images_only=False)
        self.assertEqual([data for data, _ in dataset], [b"image", b"depth"])
        with self.assertWarnsRegex(UserWarning, "members of samples that have no image: 2, such as 2.depth.png"):
            dataset = dl2.Dataset(folder, split="all", images_only=False, image_extension="jpg")
        self.assertEqual([data for data, _ in dataset], [b"image"])
        self.assertEqual(dataset.sidecar(0, "depth.png"), b"depth")
        with self.assertRaisesRegex(ValueError, "in tar shards alone"):
            dl2.Dataset(flowers, image_extension="jpg")

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

    def test_unreadable(self):
        for n in range(6):
            write_picture(f"{scratch.name}/heic/train/{NAMES[0]}/{n}.ppm", 40, 40, 0, 99, n)
            name = f"{scratch.name}/heic/train/{NAMES[1]}/{n}.heic"
            os.makedirs(os.path.dirname(name), exist_ok=True)
            with open(name, "wb") as file:
                file.write(b"\0\0\0\x18ftypheic")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            dl2.Dataset(f"{scratch.name}/heic", images_only=False)
            self.assertEqual(caught, [])
            dl2.Dataset(f"{scratch.name}/heic")
        texts = [str(warning.message).partition(": ")[2] for warning in caught]
        self.assertEqual(len(texts), 2)
        self.assertRegex(texts[0], r"^6 of 12 images are in formats that this build cannot read \(.heic\), such as train/")
        self.assertRegex(texts[1], f"no network can learn it: {NAMES[1]}$")

    def test_incomplete(self):
        write_picture(f"{scratch.name}/stopped/train/{NAMES[0]}/1.ppm", 40, 40, 0, 99, 1)
        for complete in "true", "false":
            with open(f"{scratch.name}/stopped/dl2-variant.json", "w") as file:
                file.write(f'{{"complete": {complete}}}')
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                dl2.Dataset(f"{scratch.name}/stopped")
            self.assertEqual(["this variant is not complete" in str(one.message) for one in caught],
                             [True] * (complete == "false"))

    def test_splits(self):
        flat = f"{scratch.name}/flat"
        for name in "aster", "rose":
            for n in range(10):
                write_picture(f"{flat}/{name}/{n}.ppm", 40, 40, 0, 99, n)
        for settings, count in (({}, 16), ({"train": False}, 4), ({"split": "all"}, 20), ({"split": "val"}, 4),
                                ({"split": "train", "train": False}, 16), ({"val_fraction": 0.5}, 10),
                                ({"val_fraction": 0.3, "train": False}, 6), ({"val_fraction": 0}, 20)):
            self.assertEqual(len(loader(flat, **settings).dataset), count, settings)
        self.assertEqual(len(loader(split="all").dataset), 47)
        quarter, half = dl2.Dataset(flat, subset=0.25), dl2.Dataset(flat, subset=0.5)
        self.assertEqual((len(quarter), len(half), len(dl2.Dataset(flat, "val", subset=0.25))), (4, 8, 4))
        self.assertLess(set(quarter.keys), set(half.keys))
        self.assertNotEqual(dl2.Dataset(flat, subset=0.5, subset_seed=1).keys, half.keys)
        self.assertEqual(dl2.Dataset(flat, subset=0.5, subset_by="name").keys[:4],
                         dl2.Dataset(flat).keys[:4])
        for settings in {"subset_by": "name"}, {"subset_seed": 1}:
            with self.assertRaisesRegex(ValueError, "subset_by and subset_seed have no effect without subset"):
                dl2.Dataset(flat, **settings)
        with self.assertRaisesRegex(ValueError, "subset_seed has no effect with subset_by='name'"):
            dl2.Dataset(flat, subset=0.5, subset_by="name", subset_seed=1)
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
        tree = f"{scratch.name}/tree"
        shutil.copytree(flat, f"{tree}/train")
        shutil.copytree(flat, f"{tree}/test")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for path in tree, f"{tree}/train":
                parts = [loader(path, val_fraction=0.1, train=train).dataset.keys for train in (True, False)]
                self.assertEqual([len(part) for part in parts], [18, 2])
                self.assertFalse(set(parts[0]) & set(parts[1]))
                self.assertEqual(len(loader(path).dataset), 20)
        with self.assertRaisesRegex(ValueError, "no effect with split='test'"):
            loader(tree, split="test", val_fraction=0.1)
        shutil.copytree(flat, f"{tree}/val")
        for train in True, False:
            with self.assertRaisesRegex(ValueError, "val_fraction and split_seed have no effect here.*for validation"):
                loader(tree, val_fraction=0.1, train=train)
            with self.assertRaisesRegex(ValueError, "split_seed have no effect here"):
                dl2.Dataset(tree, "train" if train else "val", split_seed=1)
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
            run("dl2-transcode", "--quiet", "copy", f"--container={('tar', 'folder')[number]}", f"{made}/ppm", f"{made}-copy")
            self.assertEqual(targets_of(f"{made}-copy"), wanted)


if __name__ == "__main__":
    unittest.main(verbosity=2)
