# SPDX-License-Identifier: BSD-2-Clause
"""Several datasets at once: which samples come, how often, in which order; their classes; what is refused."""
import collections
import json
import os
import pickle
import unittest
import warnings

import numpy

import dl2
from small_dataset import SIZE, epoch_of, flowers, loader, needs_torch, run, scratch, torch, write_picture

# Beside the flowers, 22 asters and 18 roses for training, 4 and 3 for validation.
garden = f"{scratch.name}/garden"
for name, count in ("rose", 6), ("tulip", 4):
    for n in range(count):
        write_picture(f"{garden}/train/{name}/{n:02}.ppm", 50 + n, 60, 0, 250, 100 * count + n)
    write_picture(f"{garden}/val/{name}/0.ppm", 50, 60, 0, 250, count)
both = [flowers, garden]
shards = f"{scratch.name}/shards"
run("dl2-transcode", "copy", "--container=tar", "--quiet", garden, shards)


def quietly(*arguments, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return loader(*arguments, **settings)


def counted(batches, epoch=0):
    """How often each sample comes in an epoch, by its number."""
    batches.start_epoch(epoch)
    return collections.Counter(int(index) for index in epoch_of(batches)[2])


class Union(unittest.TestCase):
    def test_classes_and_keys(self):
        with self.assertWarnsRegex(UserWarning, "garden adds 1 class, from number 2 on: tulip"):
            data = dl2.Dataset(both, "train")
        self.assertEqual(data.classes, ("aster", "rose", "tulip"))
        one, two = (dl2.Dataset(path, "train") for path in both)
        self.assertEqual(data.keys, [f"flowers/{key}" for key in one.keys] + [f"garden/{key}" for key in two.keys])
        self.assertEqual(data.targets, one.targets + [target + 1 for target in two.targets])
        self.assertEqual(data.samples[40][0], two.samples[0][0])
        self.assertEqual((data[41][0], data[41][1]), (two[1][0], 1))
        self.assertIn("50 images in 3 classes: 40 of ", data.layout)
        self.assertIn("50 samples in 3 classes", repr(data))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            swapped = dl2.Dataset(list(reversed(both)))
            self.assertEqual(swapped.classes, ("rose", "tulip", "aster"))
            self.assertEqual(dl2.Dataset(both, select=lambda key: key.endswith("/rose/00")).keys,
                             ["flowers/train/rose/00", "garden/train/rose/00"])
            copied = pickle.loads(pickle.dumps(dl2.Dataset(path=both, split="val", select=[8, 0])))
            self.assertEqual(copied.keys, ["garden/val/tulip/0", "flowers/val/aster/00"])
            opened = dl2.Dataset([one, garden])  # what was opened keeps its own split and choice
            self.assertEqual(opened.keys, data.keys)
        one.close()  # not before the joined one is
        self.assertEqual(opened[0][0], data[0][0])
        opened.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            len(one)

    def test_classes_of_another(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            classes = dl2.Dataset(both).classes
            swapped = dl2.Dataset(list(reversed(both)), classes=classes, select=[0, 10])
        alone, plain = dl2.Dataset(garden, classes=list(classes)), dl2.Dataset(garden)
        self.assertEqual((alone.classes, plain.classes), (classes, ("rose", "tulip")))
        self.assertEqual(alone.targets, [target + 1 for target in plain.targets])
        self.assertEqual(pickle.loads(pickle.dumps(alone)).targets, alone.targets)
        self.assertEqual([swapped.classes[target] for target in swapped.targets],
                         [key.split("/")[2] for key in swapped.keys])
        self.assertEqual(pickle.loads(pickle.dumps(swapped)).targets, swapped.targets)
        with self.assertRaisesRegex(ValueError, "are of the class 'tulip', and classes has no such class"):
            dl2.Dataset(garden, classes=["rose", "aster"])
        for wrong in "rose", 7, [1]:
            with self.assertRaises(TypeError):
                dl2.Dataset(garden, classes=wrong)

    def test_each_once(self):
        batches = quietly(both)
        self.assertEqual(len(batches), 7)
        images, labels, indices = epoch_of(batches)
        self.assertEqual(sorted(indices), list(range(50)))
        self.assertEqual([batches.dataset.targets[i] for i in indices], list(labels))
        self.assertGreater(len({int(i) // 40 for i in indices[:16]}), 1)  # shuffled together
        self.assertFalse((epoch_of(batches)[2] == indices).all())
        for same in {"workers": 1}, {"io": "direct"}, {"cache_bytes": 1 << 20}, {"decoded_cache_bytes": 1 << 20}:
            self.assertTrue((epoch_of(quietly(both, **same))[0] == images).all(), same)
        ranks = [epoch_of(quietly(both, rank=rank, world=2, batch=4))[2] for rank in range(2)]
        self.assertEqual(sorted(numpy.concatenate(ranks)), list(range(50)))
        val = epoch_of(quietly(both, train=False))
        one, two = (epoch_of(loader(path, train=False)) for path in both)
        self.assertTrue((val[0] == numpy.concatenate([one[0], two[0]])).all())
        self.assertEqual(list(val[1]), [0] * 4 + [1] * 3 + [1, 2])
        self.assertEqual(quietly((flowers,)).dataset.keys[0], "flowers/train/aster/00")

    def test_containers(self):
        """A folder and shards: the same pixels, however they are read."""
        images, _, indices = epoch_of(quietly(both))
        for paths in [flowers, shards], [shards, flowers]:
            number = {key.split("/", 1)[1]: i for i, key in enumerate(quietly(both).dataset.keys)}
            for io in "direct", "threads", "auto":
                batches = quietly(paths, io=io, seed=1, train=False, split="train")
                found = {batches.dataset.keys[i]: image.tobytes() for image, i in zip(*epoch_of(batches)[::2])}
                plain = quietly(both, train=False, split="train")
                wanted = {plain.dataset.keys[i]: image.tobytes() for image, i in zip(*epoch_of(plain)[::2])}
                self.assertEqual({key.replace("shards/", "garden/"): image for key, image in found.items()}, wanted, io)


class Shares(unittest.TestCase):
    def test_exact(self):
        with self.assertWarnsRegex(UserWarning, "shares: 15 of an epoch's 50 samples are of .*garden, which has 10: "
                                                "each comes 1.5 times"):
            batches = quietly(both).dataset and loader(both, shares=[0.7, 0.3])
        self.assertEqual((len(batches), batches.settings["shares"]), (7, (0.7, 0.3)))
        all_flowers, all_garden = collections.Counter(), collections.Counter()
        for epoch in range(8):
            counts = counted(batches, epoch)
            of_flowers = {i: n for i, n in counts.items() if i < 40}
            of_garden = {i: n for i, n in counts.items() if i >= 40}
            self.assertEqual((len(of_flowers), sum(of_flowers.values())), (35, 35))  # none twice
            self.assertEqual(collections.Counter(of_garden.values()), {1: 5, 2: 5})
            all_flowers.update(of_flowers)
            all_garden.update(of_garden)
            if epoch == 1:  # the five that were left come now
                self.assertEqual(collections.Counter(all_flowers.values()), {1: 10, 2: 30})
                self.assertEqual(set(all_garden.values()), {3})
        self.assertEqual(set(all_flowers.values()), {7})  # 8 * 35 is 7 * 40
        self.assertEqual(set(all_garden.values()), {12})

    def test_rounding(self):
        three = [flowers, garden, dl2.Dataset(flowers, "val")]
        for shares, samples, wanted in (([0.5, 0.5], 7, [4, 3]), ([1, 2], 50, [17, 33]), ([70, 30], 50, [35, 15]),
                                        ([1e308, 1e308], 8, [4, 4]), ([0.2, 0.3, 0.5], 9, [2, 3, 4])):
            opened = three if len(shares) == 3 else both
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                data = dl2.Dataset([dl2.Dataset(item, "train") if isinstance(item, str) else item for item in opened])
            counts = counted(quietly(data, shares=shares, num_samples=samples))
            found = collections.Counter(data.keys[i].split("/")[0] for i in counts.elements())
            self.assertEqual([found[name] for name in ("flowers", "garden", "flowers-2")[:len(shares)]], wanted)

    def test_order(self):
        settings = {"shares": [0.4, 0.6], "seed": 3}
        images, labels, indices = epoch_of(quietly(both, **settings))
        different = {(index, image.tobytes()) for index, image in zip(indices, images)}
        self.assertEqual(len(different), 50)  # what comes twice has another crop each time
        for same in ({"workers": 1, "io": "direct"}, {"workers": 3, "io": "threads"}, {"decoded_cache_bytes": 1 << 20},
                     {"shares": [2, 3]}):
            for a, b in zip((images, labels, indices), epoch_of(quietly(both, **{**settings, **same}))):
                self.assertTrue((a == b).all(), same)
        self.assertFalse((epoch_of(quietly(both, shares=[0.4, 0.6], seed=4))[2] == indices).all())
        parts = [epoch_of(quietly(both, **settings, batch=4, rank=rank, world=2)) for rank in range(2)]
        self.assertEqual({(i, image.tobytes()) for part in parts for i, image in zip(part[2], part[0])}, different)
        for batching in "strict", "completion":
            running = quietly(both, **settings, batching=batching, workers=3)
            first = next(iter(running))
            first = [(int(i), image.tobytes()) for i, image in zip(memoryview(first.indices), numpy.asarray(first.images))]
            again = quietly(both, **settings, workers=1)
            again.resume(json.loads(json.dumps(running.state())))
            rest = epoch_of(again)
            rest = [(int(i), image.tobytes()) for i, image in zip(rest[2], rest[0])]
            self.assertEqual(sorted(first + rest), sorted((int(i), image) for i, image in different))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            copied = pickle.loads(pickle.dumps(loader(both, **settings)))
        self.assertTrue((epoch_of(copied)[2] == indices).all())
        state = quietly(both, **settings).state()
        for other, says in ((quietly(both, shares=[0.5, 0.5], seed=3), "other shares"), (quietly(both, seed=3), "other shares"),
                            (quietly(both[::-1], **settings), "another dataset")):
            with self.assertRaisesRegex(ValueError, says):
                other.resume(state)

    @needs_torch
    def test_torch(self):
        import dl2.torch
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            batches = dl2.torch.Loader(both, 8, SIZE, shares=[0.7, 0.3], seed=1, indices=True)
            again = dl2.torch.Loader(both, 8, SIZE, shares=[0.7, 0.3], seed=1, indices=True)
        self.assertEqual(batches.class_to_idx, {"aster": 0, "rose": 1, "tulip": 2})
        whole = [sidecars["indices"].tolist() for _, _, sidecars in batches]
        self.assertEqual(sum(index < 40 for part in whole for index in part), 35)
        batches.set_epoch(0)
        running = iter(batches)
        self.assertEqual([next(running)[2]["indices"].tolist() for _ in range(3)], whole[:3])
        again.load_state_dict(batches.state_dict())
        self.assertEqual([sidecars["indices"].tolist() for _, _, sidecars in again], whole[3:])


class Refusals(unittest.TestCase):
    def test_shares(self):
        for shares, settings, says in (
                ([1], {}, "1 shares for 2 datasets"), ([1, 2, 3], {}, "3 shares for 2 datasets"), ([], {}, "0 numbers"),
                ([1, 0], {}, "shares must be finite numbers above 0"), ([1, -1], {}, "above 0"),
                ([1, float("nan")], {}, "above 0"), ([float("inf"), 1], {}, "above 0"),
                ([1, 1e-9], {}, "garden would have none of the 50 samples of an epoch"),
                ([1, 1], {"train": False}, "shares needs train"), ([1, 1], {"balanced": True}, "shares excludes sample_weights"),
                ([1, 1], {"sample_weights": [1] * 50}, "shares excludes sample_weights"), ([1, 1], {"repeats": 2}, "excludes repeats"),
                ([1, 1], {"shuffle_chunk": 4}, "shares excludes shuffle_chunk")):
            with self.assertRaisesRegex(ValueError, says):
                quietly(both, shares=shares, **settings)
        for one in flowers, [flowers]:
            with self.assertRaisesRegex(ValueError, "no effect on one dataset"):
                loader(one, shares=[1])
        with self.assertRaisesRegex(TypeError, "shares"):
            loader(both, shares=["much", "little"])
        with self.assertRaisesRegex(TypeError, "shares"):
            loader(both, proportions=[1, 1])
        data = quietly(both).dataset
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            roses = dl2.Dataset(both, select=range(40))
        with self.assertRaisesRegex(ValueError, "garden has none of the 40 samples"):
            loader(roses, shares=[1, 1])
        self.assertEqual(len(data), 50)

    def test_datasets(self):
        for paths, says in (([], "0 datasets"), ([flowers, flowers], "are the same dataset"),
                            ([flowers, dl2.Dataset(flowers)], "are the same dataset"), ([[flowers], garden], "not joined once more")):
            with self.assertRaisesRegex(ValueError, says):
                dl2.Loader(paths, 8, SIZE)
        with self.assertRaisesRegex(ValueError, "split and other options go with paths"):
            dl2.Dataset([dl2.Dataset(flowers), dl2.Dataset(garden)], "train")
        with self.assertRaisesRegex(ValueError, "split and val_fraction go with a path"):
            loader([dl2.Dataset(flowers), dl2.Dataset(garden)], split="train")
        with self.assertRaises(FileNotFoundError):
            loader([flowers, f"{scratch.name}/nowhere"])
        with self.assertRaises(TypeError):
            loader([flowers, 7])
        os.makedirs(f"{scratch.name}/empty/train")
        with self.assertRaisesRegex(dl2.Error, "empty: no samples for training"):
            loader([flowers, f"{scratch.name}/empty"])
        for n in range(4):
            write_picture(f"{scratch.name}/numbered/train/{n % 2}/{n}.ppm", 40, 40, 0, 200, n)
        with self.assertRaisesRegex(ValueError, "flowers have names, such as 'aster', and those of .*numbered are numbers"):
            loader([flowers, f"{scratch.name}/numbered"])

    def test_beside(self):
        masked = f"{scratch.name}/masked"
        for n in range(3):
            write_picture(f"{masked}/train/rose/{n}.ppm", 40, 40, 0, 200, n)
            with open(f"{masked}/train/rose/{n}.mask.pgm", "wb") as file:
                file.write(b"P5\n40 40\n255\n" + bytes([n]) * 1600)
            with open(f"{masked}/train/rose/{n}.txt", "w") as file:
                file.write("0 0.5 0.5 0.5 0.5\n")
        self.assertEqual(len(loader(masked, mask="mask.pgm", batch=2)), 2)
        with self.assertRaisesRegex(ValueError, "mask: no sample of .*flowers has any"):
            quietly([masked, flowers], mask="mask.pgm")
        with self.assertRaisesRegex(ValueError, "name the data.yaml that holds for all"):
            quietly([masked, garden], boxes="txt")
        coco = {"images": [{"id": 1, "file_name": "masked/train/rose/0.ppm", "width": 40, "height": 40}],
                "categories": [{"id": 3, "name": "rose"}],
                "annotations": [{"id": 1, "image_id": 1, "category_id": 3, "bbox": [1, 1, 9, 9], "area": 81, "iscrowd": 0}]}
        with open(f"{scratch.name}/instances.json", "w") as file:
            json.dump(coco, file)
        with self.assertRaisesRegex(ValueError, "boxes: no sample of .*garden has any"):
            quietly([masked, garden], boxes=f"{scratch.name}/instances.json")


if __name__ == "__main__":
    unittest.main()
