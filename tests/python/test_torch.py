# SPDX-License-Identifier: BSD-2-Clause
"""dl2.torch against dl2 itself, torchvision's transforms, DataLoader and torch.distributed."""
import base64
import contextlib
import ctypes
import io
import json
import os
import pickle
import re
import struct
import subprocess
import sys
import unittest
import warnings
import zlib
from unittest import mock

import numpy
import torch
from torch.utils.data import DataLoader

try:
    import PIL
except ImportError:
    PIL = None
import dl2
import fake_card
from dl2 import torch as dt
from small_dataset import NAMES, SIZE, flowers, run, scratch, transforms, write_picture

SANITIZED = "LD_PRELOAD" in os.environ
needs_pillow = unittest.skipUnless(PIL, "no Pillow (Debian: python3-pil)")


def make(**settings):
    return dt.Loader(flowers, **{"batch_size": 8, "image_size": SIZE, "workers": 2, "seed": 0, **settings})


def plain(**settings):
    """What dl2 alone makes, as uint8 NHWC, and the labels."""
    batches = dl2.Loader(flowers, **{"batch": 8, "image_size": SIZE, "workers": 2, **settings})
    parts = [(torch.tensor(numpy.array(b.images)), torch.tensor(numpy.array(b.labels))) for b in batches]
    return [torch.cat(part) for part in zip(*parts)]


def epoch_of(batches):
    return [torch.cat(part) for part in zip(*[(images.clone(), targets.clone()) for images, targets in batches])]


def normalized(images):
    return (images.float() / 255 - torch.tensor(dt.IMAGENET_MEAN)) / torch.tensor(dt.IMAGENET_STD)


class Tensors(unittest.TestCase):
    def test_types_and_layouts(self):
        expected, labels = plain(seed=3)
        for dtype, close in ((torch.float32, 1e-5), ("float16", 2e-3), (torch.bfloat16, 2e-2), ("uint8", 0)):
            for layout in "NCHW", "NHWC", "channels_last":
                batches = make(seed=3, dtype=dtype, layout=layout)
                for images, targets in batches:
                    self.assertEqual(tuple(images.shape), (8, SIZE, SIZE, 3) if layout == "NHWC" else (8, 3, SIZE, SIZE))
                    self.assertEqual(images.is_contiguous(memory_format=torch.channels_last if layout == "channels_last"
                                                          else torch.contiguous_format), True)
                    self.assertEqual((images.dtype, targets.dtype),
                                     (dtype if isinstance(dtype, torch.dtype) else getattr(torch, dtype), torch.int64))
                batches.set_epoch(0)
                images, targets = epoch_of(batches)
                seen = images if layout == "NHWC" else images.permute(0, 2, 3, 1)
                theirs = expected if dtype == "uint8" else normalized(expected)
                torch.testing.assert_close(seen.float(), theirs.float(), rtol=close, atol=close)
                self.assertTrue(torch.equal(targets, labels))

    def test_pinned_without_a_card(self):
        with mock.patch.object(torch.cuda, "is_available", lambda: False):
            with self.assertWarnsRegex(UserWarning, "pin_memory has no effect"):
                loader = make(pin_memory=True)
            self.assertTrue(torch.equal(epoch_of(loader)[0], epoch_of(make())[0]))

    def test_not_normalized(self):
        for settings, expected in (({"mean": None, "std": None}, lambda x: x / 255),
                                   ({"mean": (0.5,) * 3, "std": (0.25,) * 3}, lambda x: (x / 255 - 0.5) / 0.25),
                                   ({"mean": None, "std": (0.5,) * 3}, lambda x: x / 127.5)):
            torch.testing.assert_close(epoch_of(make(layout="NHWC", **settings))[0], expected(plain()[0].float()))
        with self.assertRaisesRegex(ValueError, "divide numbers for 0 to 255 by 255"):
            make(mean=(123.7, 116.3, 103.5), std=(58.4, 57.1, 57.4))
        gray = make(channels=1, mean=None, std=None)
        self.assertEqual(tuple(next(iter(gray))[0].shape), (8, 1, SIZE, SIZE))

    def test_what_a_card_computes(self):
        """The conversion that a card does gives what the C loader gives."""
        raw, labels = plain()
        mean, std = torch.tensor(dt.IMAGENET_MEAN), torch.tensor(dt.IMAGENET_STD)
        for layout in "NCHW", "NHWC", "channels_last":
            ours = epoch_of(make(layout=layout))[0]
            theirs = dt._convert(raw, torch.float32, layout, mean, std)
            torch.testing.assert_close(theirs, ours, rtol=1e-5, atol=1e-5)
            self.assertEqual(theirs.stride(), next(iter(make(layout=layout, batch_size=40)))[0].stride())
            self.assertEqual(dt._convert(raw, torch.float16, layout, mean, std).dtype, torch.float16)
            self.assertEqual(dt._convert(raw, torch.uint8, layout, None, None).dtype, torch.uint8)

    def test_no_copies(self):
        """The tensors are the loader's memory, and nothing but the caller keeps it."""
        batches = make(depth=2)
        seen = {images.data_ptr() for images, targets in batches}
        self.assertLessEqual(len(seen), 2)
        running = iter(make(depth=2))
        kept = [next(running), next(running)]
        with self.assertRaisesRegex(dl2.Error, "still in use"):
            next(running)
        kept.pop()
        next(running)
        for dtype in "float16", "bfloat16":
            self.assertLessEqual(len({images.data_ptr() for images, targets in make(depth=2, dtype=dtype)}), 2)

    @unittest.skipUnless(transforms, "no torchvision (Debian: python3-torchvision)")
    def test_as_torchvision_validates(self):
        """Resize, CenterCrop and Normalize on the same pictures, within what their resizes differ."""
        theirs = transforms.Compose([transforms.Resize(round(SIZE * 256 / 224)), transforms.CenterCrop(SIZE), transforms.ToTensor(),
                                     transforms.Normalize(dt.IMAGENET_MEAN, dt.IMAGENET_STD)])
        dataset = dt.Dataset(flowers, "val", theirs)
        images, targets = epoch_of(make(train=False))
        self.assertEqual(targets.tolist(), [target for _, target in dataset])
        self.assertLess(float((images - torch.stack([image for image, _ in dataset])).abs().mean()), 0.05)
        for name in "nearest", "box", "bicubic", "lanczos":
            theirs = transforms.Compose([transforms.Resize(SIZE + 5, transforms.InterpolationMode(name)), transforms.CenterCrop(SIZE)])
            seen = torch.stack([torch.tensor(numpy.array(image)) for image, _ in dt.Dataset(flowers, "val", theirs)]).int()
            ours = [epoch_of(make(train=False, resize=SIZE + 5, dtype="uint8", layout="NHWC", interpolation=filter))[0].int()
                    for filter in (name, "bilinear")]
            off, other = [(one - seen).abs().float().mean() for one in ours]
            # The nearest pixel is either of two where the middle lies between them.
            self.assertLess(float(off), 2 if name == "nearest" else 0.5, name)
            self.assertGreater(float(other), 3, name)

    def test_targets(self):
        """What lies beside images comes with them, also in another process, and after a resume."""
        folder = f"{scratch.name}/beside"
        for n in range(12):
            write_picture(f"{folder}/{'ab'[n % 2]}/{n:02}.ppm", 40, 30, 0, 255, n)
            if n % 3:
                with open(f"{folder}/{'ab'[n % 2]}/{n:02}.json", "w") as file:
                    json.dump({"number": n, "classes": [n % 2, 2 + n % 3]}, file)
        settings = {"batch_size": 5, "image_size": SIZE, "targets": ("json", "txt"), "split": "all", "seed": 2}
        for train in True, False:
            loader = dt.Loader(folder, train=train, workers=3, **settings)
            self.assertEqual(loader.loader.settings["targets"], "json,txt")
            keys, seen, states = loader.dataset.keys, [], []
            with_indices = [batch.indices.tolist() for batch in dl2.Loader(
                folder, batch=5, image_size=SIZE, split="all", seed=2, train=train, targets="json,txt")]
            for (images, targets, sidecars), indices in zip(loader, with_indices):
                self.assertEqual(list(sidecars), ["json", "txt", "crop_boxes"])
                self.assertEqual(sidecars["txt"], [None] * len(images))
                for index, text in zip(indices, sidecars["json"]):
                    n = int(keys[index][2:])
                    self.assertEqual(text and json.loads(text), {"number": n, "classes": [n % 2, 2 + n % 3]} if n % 3 else None)
                    self.assertEqual(loader.dataset.sidecar(index, "json"), text)
                seen.append({**sidecars, "crop_boxes": sidecars["crop_boxes"].tolist()})
                states.append(loader.state_dict())
            self.assertEqual(len(seen), 3)
            again = dt.Loader(folder, train=train, workers=1, **settings)
            again.load_state_dict(states[0])
            everything = [([*again]), seen[1:]]
            again.set_epoch(0)
            copies = [pickle.loads(pickle.dumps(again))] + [DataLoader(again, batch_size=None)] * (not SANITIZED)
            for batches, expected in [everything] + [(copy, seen) for copy in copies]:
                self.assertEqual([{**sidecars, "crop_boxes": sidecars["crop_boxes"].tolist()} for _, _, sidecars in batches], expected)
        for wrong in ("json,json",), "", ".json", "crop_boxes":
            with self.assertRaisesRegex(ValueError, "targets"):
                dt.Loader(folder, targets=wrong)
        with self.assertRaises(TypeError):
            dt.Loader(folder, targets=(1, 2))
        self.assertEqual(len(next(iter(dt.Loader(folder, targets=(), split="all")))), 2)

    def test_masks(self):
        """uint8 tensors that see the loader's memory, moved as the images are (test_images.py has their pixels)."""
        folder = f"{scratch.name}/masks"
        for n in range(6):
            write_picture(f"{folder}/a/{n}.ppm", 40, 30, 0, 255, n)
            with open(f"{folder}/a/{n}.mask.pgm", "wb") as file:
                file.write(b"P5\n40 30\n255\n" + bytes((n,) * 1200))
        settings = {"image_size": (20, 30), "split": "all", "mask": "mask.pgm", "workers": 2, "seed": 0}
        for batch, (images, targets, sidecars) in zip(dl2.Loader(folder, 4, **settings), dt.Loader(folder, 4, **settings)):
            self.assertEqual((images.shape[2:], list(sidecars)), ((20, 30), ["masks", "crop_boxes"]))
            self.assertEqual((sidecars["masks"].dtype, sidecars["masks"].shape), (torch.uint8, (len(targets), 20, 30)))
            keys = dl2.Dataset(folder, "all", sidecars="mask.pgm").keys
            for index, mask in zip(batch.indices.tolist(), sidecars["masks"]):
                self.assertEqual(mask.unique().tolist(), [int(keys[index][2:])])
        self.assertEqual(list(next(iter(dt.Loader(folder, targets="json", **settings)))[2]), ["json", "masks", "crop_boxes"])
        with self.assertRaisesRegex(ValueError, "mixup and cutmix mix"):
            dt.Loader(folder, mixup=1, **settings)
        with self.assertRaisesRegex(ValueError, "'masks' is a tensor"):
            dt.Loader(folder, targets="masks", split="all")

    def test_wrong_arguments(self):
        for wrong, says in (({"dtype": "int8"}, "dtype is one of uint8, float32, float16, bfloat16, not 'int8'"),
                            ({"layout": "CHWN"}, "layout is one of"), ({"device": "meta"}, "device is 'cpu' or 'cuda'"),
                            ({"dtype": "uint8", "mean": (0, 0, 0)}, "not for uint8"), ({"rank": 1}, "go together"),
                            ({"mean": (0.5,)}, "3 numbers"), ({"channels": 1}, "1 numbers"), ({"batch_size": 0}, "batch")):
            with self.assertRaisesRegex(ValueError, says):
                make(**wrong)
        with mock.patch.object(torch.cuda, "is_available", lambda: False):
            with self.assertRaisesRegex(ValueError, "device='cuda:1': this PyTorch has no CUDA, or sees no card"):
                make(device="cuda:1")
        for wrong, says in ({"color": 3}, "color"), ({"batch": 3}, "batch_size"), ({"memory": bytearray}, "pin_memory"):
            with self.assertRaisesRegex(TypeError, says):
                make(**wrong)
        with self.assertRaises(FileNotFoundError) as caught:
            dt.Loader(f"{scratch.name}/nowhere")
        self.assertEqual(caught.exception.filename, f"{scratch.name}/nowhere")

    def test_bad_images(self):
        folder = f"{scratch.name}/bad"
        for n in range(4):
            write_picture(f"{folder}/val/a/{n}.ppm", 40, 40, 0, 255, n)
            write_picture(f"{folder}/val/b/{n}.ppm", 40, 40, 0, 255, n)
        os.truncate(f"{folder}/val/a/2.ppm", 100)
        batches = dt.Loader(folder, 8, SIZE, train=False)
        images, targets = next(iter(batches))
        self.assertEqual(targets.tolist(), [0, 0, -1, 0, 1, 1, 1, 1])
        loss = torch.nn.functional.cross_entropy(torch.zeros(8, 2), targets, ignore_index=-1)
        self.assertAlmostEqual(float(loss), 0.6931, places=3)
        self.assertTrue(batches.loader.bad[0].startswith(f"{folder}/val/a/2.ppm: "))


class Epochs(unittest.TestCase):
    def test_epochs_and_len(self):
        batches = make()
        self.assertEqual((len(batches), len(DataLoader(batches, batch_size=None)), batches.classes), (5, 5, ("aster", "rose")))
        first = [epoch_of(batches)[1].tolist() for _ in range(3)]
        self.assertEqual(len({str(labels) for labels in first}), 3)
        for epoch in 2, 0, 1:
            batches.set_epoch(epoch)
            self.assertEqual(epoch_of(batches)[1].tolist(), first[epoch])
        self.assertEqual(epoch_of(batches)[1].tolist(), first[2])

    def test_set_epoch(self):
        """It chooses the next `for`, and one that has taken no batch yet; one that has goes on."""
        batches = make()
        epochs = [epoch_of(batches)[1].tolist() for _ in range(4)]
        batches = make()
        running = iter(batches)  # as Lightning does: an iterator, the epoch, and then the batches
        batches.set_epoch(2)
        rest = next(running)[1].tolist()
        batches.set_epoch(1)
        self.assertEqual(batches.state_dict()["epoch"], 2)
        self.assertEqual(rest + epoch_of(running)[1].tolist(), epochs[2])
        self.assertEqual((batches.state_dict()["epoch"], batches.state_dict()["step"]), (1, 0))
        self.assertEqual([epoch_of(batches)[1].tolist() for _ in range(2)], epochs[1:3])
        for _ in batches:
            break
        self.assertEqual((batches.state_dict()["epoch"], batches.state_dict()["step"]), (3, 1))
        batches.set_epoch(0)
        self.assertEqual(pickle.loads(pickle.dumps(batches)).state_dict(), batches.state_dict())
        self.assertEqual((batches.state_dict()["epoch"], batches.state_dict()["step"]), (0, 0))
        self.assertEqual(epoch_of(batches)[1].tolist(), epochs[0])
        running = iter(batches)
        for _ in range(len(batches)):  # without a look behind the last
            next(running)
        batches.set_epoch(3)
        self.assertEqual(batches.state_dict()["epoch"], 3)
        for wrong in -1, 1 << 64:
            with self.assertRaisesRegex(ValueError, "an epoch is a number of 0 or above"):
                batches.set_epoch(wrong)
        batches.set_epoch(1)
        state = batches.state_dict()
        batches.set_epoch(2)
        batches.load_state_dict(state)
        self.assertEqual(epoch_of(batches)[1].tolist(), epochs[1])

    def test_state_dict(self):
        for settings in {}, {"dtype": "float16"}, {"batching": "completion"}:
            batches = make(seed=5, **settings)
            for stop in range(6):
                batches.set_epoch(1)
                running = iter(batches)
                for _ in range(stop):
                    next(running)
                file = io.BytesIO()
                torch.save(batches.state_dict(), file)
                file.seek(0)
                again = make(seed=5, **settings)
                again.load_state_dict(json.loads(json.dumps(torch.load(file))))
                again.set_epoch(1)  # as a loop over epochs does: it is not begun anew
                rest, expected = [[(images.clone(), targets) for images, targets in part] for part in (again, running)]
                self.assertEqual(len(rest), 5 - stop)
                if "batching" not in settings:
                    for (ours, one), (theirs, other) in zip(rest, expected):
                        self.assertTrue(torch.equal(ours, theirs) and torch.equal(one, other))
                self.assertEqual(sum(1 for _ in again), 5)
                self.assertEqual(again.state_dict()["epoch"], 3)
        state = make(seed=5).state_dict()
        for other, says in ({"seed": 6}, "seed 5, this loader 6"), ({"batch_size": 4}, "batch 8"), ({"image_size": 16}, "image_size"):
            with self.assertRaisesRegex(ValueError, says):
                make(**{"seed": 5, **other}).load_state_dict(state)

    def test_ranks(self):
        """Two processes of torch.distributed, without a word about it to the loader."""
        program = f"""if 1:
            import sys, torch
            from torch import distributed
            import dl2.torch
            rank = int(sys.argv[1])
            distributed.init_process_group("gloo", init_method="file://{scratch.name}/meeting", rank=rank, world_size=2)
            for train in True, False:
                loader = dl2.torch.Loader({flowers!r}, 3, {SIZE}, train=train)
                indices = [i for batch in loader.loader for i in batch.indices]
                loader.set_epoch(0)
                sizes = torch.tensor([len(targets) for images, targets in loader])
                both = [None, None]
                distributed.all_gather_object(both, (indices, len(loader), sizes.tolist()))
                assert sorted(both[0][0] + both[1][0]) == list(range(40 if train else 7)), both
                assert both[0][1] == both[1][1] == len(both[0][2]) == len(both[1][2]), both
            print("good", len(loader.loader.dataset))
        """
        children = [subprocess.Popen([sys.executable, "-c", program, str(rank)], stdout=subprocess.PIPE, text=True) for rank in range(2)]
        for child in children:
            self.assertEqual((child.communicate()[0], child.returncode), ("good 7\n", 0))
        ranks = [make(rank=rank, world=2, train=False) for rank in range(2)]
        self.assertEqual(sum(len(targets) for part in ranks for images, targets in part), 7)


class Targets(unittest.TestCase):
    """Labels of one's own, numbers of samples, transforms of batches."""

    def test_indices(self):
        for train in True, False:
            loader = make(train=train, indices=True)
            targets = loader.dataset.targets
            for batch, (images, classes, sidecars) in zip(make(train=train).loader, loader):
                self.assertEqual((list(sidecars), sidecars["indices"].dtype), (["indices"], torch.int64))
                self.assertEqual(sidecars["indices"].tolist(), batch.indices.tolist())
                self.assertEqual([targets[i] for i in sidecars["indices"]], classes.tolist())
        with self.assertRaisesRegex(ValueError, "'indices' is a tensor"):
            make(targets="indices")

    def test_labels_of_an_array(self):
        numbers = torch.arange(40) * 7 % 40
        for labels, dtype in ((numbers, torch.int64), (numbers.numpy() / 8, torch.float32), (numbers.tolist(), torch.int64),
                              (torch.eye(40)[numbers].to(torch.uint8), torch.float32)):
            expected = torch.as_tensor(labels).to(dtype)
            for images, targets, sidecars in make(labels=labels, indices=True):
                self.assertEqual(targets.dtype, dtype)
                self.assertTrue(torch.equal(targets, expected[sidecars["indices"]]))
        for wrong in numbers[1:], torch.zeros(40, 2, 2), 3:
            with self.assertRaisesRegex(ValueError, "labels has the shape .* each of 40 samples"):
                make(labels=wrong)
        with self.assertRaisesRegex(ValueError, "mixup and cutmix mix classes"):
            make(labels=numbers, mixup=1)
        numbers[0] = 5  # the loader has a copy
        self.assertEqual(int(make(labels=numbers)._labels[0]), 5)

    def test_labels_of_a_file(self):
        path, keys = f"{scratch.name}/labels.csv", dl2.Dataset(flowers).keys

        def write(lines):
            with open(path, "w") as file:
                file.write("\n".join(lines) + "\n")

        def check(expected, **settings):
            for images, targets, sidecars in make(labels=path, indices=True, **settings):
                self.assertEqual(targets.tolist(), [expected[i] for i in sidecars["indices"].tolist()])
            return targets.dtype

        write([f"{key},{n}" for n, key in enumerate(keys)])
        self.assertIs(check(list(range(40))), torch.int64)
        write(["image,x,y", "", *(f"{key}.ppm,{n},{n / 2}" for n, key in enumerate(keys)), "val/rose/00.ppm,1,1"])
        self.assertIs(check([[n, n / 2] for n in range(40)]), torch.float32)
        loader = dt.Loader(dl2.Dataset(flowers, select=[3, 3, 4]), 3, SIZE, labels=path, indices=True, seed=0)
        images, targets, sidecars = next(iter(loader))
        self.assertEqual(targets[:, 0].tolist(), [[3, 3, 4][i] for i in sidecars["indices"].tolist()])
        folder = f"{scratch.name}/named"
        for n in range(3):
            write_picture(f"{folder}/{'ab'[n % 2]}/{n}.ppm", 40, 40, 0, 99, n)
        write(["2,0.5", "0,1.5", "1.ppm,2"])
        self.assertEqual(dt.Loader(folder, labels=path, split="all")._labels.tolist(), [1.5, 0.5, 2])
        write_picture(f"{folder}/b/2.ppm", 40, 40, 0, 99, n)
        for lines, says in ((["2,1"], "labels.csv:1: several samples are called '2': use keys"), (["0,1"], "no line for 3 of 4 samples, such as 'a/2'"),
                            (["0,1", "0,2"], "csv:2: '0' comes twice"), (["0,1", "1,x"], "csv:2: what stands behind '1' is not numbers"),
                            (["0,1", "1,nan"], "csv:2: what stands"), (["0,1", "1,1,2"], "csv:2: 3 fields"), (["0"], "csv:1: 1 fields")):
            write(lines)
            with self.assertRaisesRegex(ValueError, says):
                dt.Loader(folder, labels=path, split="all")

    def test_labels_of_bad_images(self):
        folder = f"{scratch.name}/bad-labels"
        for n in range(4):
            write_picture(f"{folder}/{n}.ppm", 40, 40, 0, 99, n)
        os.truncate(f"{folder}/2.ppm", 100)
        settings = {"batch_size": 4, "image_size": SIZE, "split": "all", "seed": 0, "indices": True}
        images, targets, sidecars = next(iter(dt.Loader(folder, train=False, labels=[5, 6, 7, 8], **settings)))
        self.assertEqual((targets.tolist(), sidecars["indices"].tolist()), ([5, 6, -1, 8], [0, 1, 2, 3]))
        images, targets, sidecars = next(iter(dt.Loader(folder, train=False, labels=[[.5, 1]] * 4, **settings)))
        self.assertEqual(targets.isnan().tolist(), [[False] * 2, [False] * 2, [True] * 2, [False] * 2])
        images, targets, sidecars = next(iter(dt.Loader(folder, labels=[5, 6, 7, 8], **settings)))
        self.assertEqual(targets.tolist(), [5 + i for i in sidecars["indices"].tolist()])
        self.assertNotIn(7, targets)

    def test_batch_transform(self):
        def twice(images, targets, sidecars=None):
            return {"images": images * 2, "targets": targets + 1, "sidecars": sidecars}

        for settings in {}, {"indices": True}:
            for batch, made in zip(make(**settings), make(batch_transform=twice, **settings)):
                self.assertTrue(torch.equal(made["images"], batch[0] * 2) and torch.equal(made["targets"], batch[1] + 1))
                self.assertEqual(made["sidecars"] is not None, "indices" in settings)

    def test_what_image_folder_has(self):
        dataset = dl2.Dataset(flowers)
        self.assertEqual(dataset.class_to_idx, {"aster": 0, "rose": 1})
        self.assertEqual(dataset.samples, [(dataset.sample(i).path, dataset.sample(i).label) for i in range(40)])
        self.assertEqual(dataset.targets, [label for path, label in dataset.samples])
        ours = dt.Dataset(flowers)
        self.assertEqual((ours.targets, ours.samples, ours.imgs, ours.class_to_idx),
                         (dataset.targets, dataset.samples, dataset.samples, dataset.class_to_idx))
        self.assertEqual(make().class_to_idx, dataset.class_to_idx)
        try:
            from torchvision.datasets import ImageFolder
        except ImportError:
            return
        theirs = ImageFolder(f"{flowers}/train")
        self.assertEqual((ours.samples, ours.targets, ours.class_to_idx), (theirs.samples, theirs.targets, theirs.class_to_idx))

    def test_what_scripts_ask_of_a_loader(self):
        """As timm's train.py and the like do."""
        loader = make(mixup=0.2)
        self.assertFalse(hasattr(loader.dataset, "set_epoch") or hasattr(loader.batch_sampler, "set_epoch"))
        loader.sampler.set_epoch(3)
        self.assertEqual((next(iter(make(mixup=0.2).loader)).epoch, loader.state_dict()["epoch"]), (0, 3))
        self.assertEqual((len(loader.sampler), loader.batch_size, len(loader)), (40, 8, 5))
        with self.assertRaisesRegex(TypeError, "draws its own order"):
            iter(loader.sampler)
        self.assertTrue(loader.mixup_enabled)
        loader.mixup_enabled = False
        images, targets = next(iter(loader))
        other = make()
        other.set_epoch(3)
        expected, classes = next(iter(other))
        self.assertTrue(torch.equal(images, expected) and torch.equal(targets, torch.eye(2)[classes]))


class Seeds(unittest.TestCase):
    """Without a seed, PyTorch's counts."""

    def order(self, **settings):
        return [i for batch in make(seed=None, **settings).loader for i in batch.indices.tolist()]

    def test_manual_seed(self):
        before = torch.get_rng_state()
        self.addCleanup(torch.set_rng_state, before)
        orders = []
        # PyTorch takes -1 by a C++ exception, at which a preloaded AddressSanitizer stops.
        for seed in (1, 2, 3) if SANITIZED else (1, 2, 3, -1):
            torch.manual_seed(seed)
            orders.append(self.order())
            self.assertEqual(orders[-1], [i for batch in make(seed=seed % (1 << 64)).loader for i in batch.indices])
            self.assertIn(f"seed {seed % (1 << 64)}, ", repr(make(seed=None)))
        self.assertEqual(len({str(order) for order in orders}), len(orders))
        torch.manual_seed(2)
        torch.rand(3)
        self.assertEqual(self.order(), orders[1])
        mixed = []
        for seed in 1, 2:
            torch.manual_seed(seed)
            mixed.append(next(iter(make(seed=None, train=True, cutmix=1)))[1])
        self.assertFalse(torch.equal(*mixed))

    def test_a_state_brings_its_seed(self):
        """So an unseeded run continues in another process; a seed that was given has to agree."""
        first = make(seed=5, indices=True)
        running = iter(first)
        next(running)
        state, rest = first.state_dict(), [sidecars["indices"].tolist() for images, targets, sidecars in running]
        other = make(seed=None, indices=True)
        other.set_epoch(7)
        other.load_state_dict(state)
        self.assertEqual([sidecars["indices"].tolist() for images, targets, sidecars in other], rest)
        self.assertIn("seed 5, ", repr(pickle.loads(pickle.dumps(other))))
        with self.assertRaisesRegex(ValueError, "seed"):
            make(seed=6).load_state_dict(state)

    def test_ranks_without_a_seed(self):
        with self.assertRaisesRegex(ValueError, "give seed, too"):
            make(seed=None, rank=0, world=2)
        make(seed=None, rank=0, world=2, train=False), make(seed=None, rank=0, world=1)

    @unittest.skipIf(SANITIZED, "a sanitizer's runtime is not for PyTorch's processes")
    def test_ranks_agree(self):
        program = f"""if 1:
            import sys, torch, warnings
            from torch import distributed
            import dl2.torch
            rank = int(sys.argv[1])
            torch.manual_seed(7 + rank)
            early = dl2.torch.Loader({flowers!r}, 3, {SIZE})
            distributed.init_process_group("gloo", init_method="file://{scratch.name}/seeds", rank=rank, world_size=2)
            loader = dl2.torch.Loader({flowers!r}, 3, {SIZE})
            indices = [i for batch in loader.loader for i in batch.indices]
            both = [None, None]
            distributed.all_gather_object(both, (indices, loader.loader.settings["seed"]))
            assert sorted(both[0][0] + both[1][0]) == list(range(40)), both
            assert both[0][1] == both[1][1] == 7, both
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                iter(loader)
                assert not caught
                iter(early)
            assert "before torch.distributed was initialized" in str(caught[0].message), caught
            print("good")
            distributed.barrier()
            distributed.destroy_process_group()  # a process that ends in the middle of it aborts
        """
        children = [subprocess.Popen([sys.executable, "-c", program, str(rank)], stdout=subprocess.PIPE, text=True) for rank in range(2)]
        for child in children:
            self.assertEqual((child.communicate()[0], child.returncode), ("good\n", 0))

    def test_a_loader_before_its_group(self):
        with mock.patch.dict(os.environ, {"WORLD_SIZE": "4"}):
            with self.assertWarnsRegex(RuntimeWarning, "WORLD_SIZE is 4, but torch.distributed is not initialized") as caught:
                make()
            self.assertEqual(os.path.basename(caught.filename), "test_torch.py")
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                make(rank=0, world=1)
        with mock.patch.dict(os.environ, {"WORLD_SIZE": "1"}), warnings.catch_warnings():
            warnings.simplefilter("error")
            make()


class Names(unittest.TestCase):
    def test_what_is_meant(self):
        for settings, text in (({"num_workers": 2}, r"did you mean workers \(threads"), ({"shuffle": True}, r"did you mean train \(shuffle"),
                               ({"transform": None}, "augment names operations on each image, batch_transform is a function of a batch"),
                               ({"batch": 8}, "here it is batch_size"), ({"mixpu": 1}, r"did you mean mixup\?$"),
                               ({"nonsense": 1}, "has no argument 'nonsense'$"), ({"collate_fn": None}, "batch_transform")):
            with self.assertRaisesRegex(TypeError, text):
                make(**settings)


class DataLoaders(unittest.TestCase):
    @unittest.skipIf(SANITIZED, "a sanitizer's runtime is not for PyTorch's processes")
    def test_bad_files_of_another_process(self):
        folder = f"{scratch.name}/worker-bad"
        for n in range(12):
            write_picture(f"{folder}/rose/{n:02}.ppm", 40, 40, 0, 99, n)
        for n in 3, 8:
            os.truncate(f"{folder}/rose/{n:02}.ppm", 100)
        for settings in {}, {"multiprocessing_context": "spawn"}, {"persistent_workers": True}:
            loader = dt.Loader(folder, 4, SIZE, split="all", seed=0)
            self.assertEqual(loader.bad, [])
            batches = DataLoader(loader, batch_size=None, num_workers=1, **settings)
            for epoch in range(1 if "multiprocessing_context" in settings else 2):
                for batch in batches:
                    pass
                self.assertEqual(sorted(line.split(":")[0] for line in loader.bad),
                                 [f"{folder}/rose/03.ppm", f"{folder}/rose/08.ppm"], settings)
            self.assertEqual(loader.loader.bad, [])
        list(loader)
        self.assertEqual(len(loader.bad), 2)

    def test_notes_of_another_process(self):
        """They have an end, and name what they leave out."""
        notes = dt._Notes()
        notes.add(["one", "two\udcff", "one"])
        notes.add(["one", "three"])
        self.assertEqual(notes.read(), ["one", "two\udcff", "three"])
        notes.add([str(n) * 1000 for n in range(100, 300)])
        self.assertEqual((len(notes.read()), notes.read()[-1]), (3 + 87 + 1, "... and 113 more"))

    def test_batches_of_batches(self):
        for workers in (0,) if SANITIZED else (0, 1):
            for size in {}, {"batch_size": 4}:
                with self.assertRaisesRegex(ValueError, r"DataLoader\(loader, batch_size=None\)"):
                    next(iter(DataLoader(make(), num_workers=workers, **size)))

    def test_in_this_process(self):
        expected = epoch_of(make())
        for ours, theirs in zip(expected, epoch_of(DataLoader(make(), batch_size=None))):
            self.assertTrue(torch.equal(ours, theirs))

    @unittest.skipIf(SANITIZED, "a sanitizer's runtime is not for PyTorch's processes")
    def test_in_another_process(self):
        for context in "fork", "spawn":
            for whole in dt.Loader(flowers, 8, SIZE, split="train"), dt.Loader(dl2.Dataset(flowers), 8, SIZE):
                for epoch in 0, 3:
                    whole.set_epoch(epoch)
                    seen = epoch_of(DataLoader(whole, batch_size=None, num_workers=1, multiprocessing_context=context))
                    for ours, theirs in zip(epoch_of(whole), seen):
                        self.assertTrue(torch.equal(ours, theirs), (context, epoch))
            whole.set_epoch(2)
            running = iter(whole)
            next(running)
            state = whole.state_dict()
            rest = epoch_of(running)
            whole.load_state_dict(state)
            seen = epoch_of(DataLoader(whole, batch_size=None, num_workers=1, multiprocessing_context=context))
            self.assertTrue(torch.equal(rest[0], seen[0]), context)

    @unittest.skipIf(SANITIZED, "a sanitizer's runtime is not for PyTorch's processes")
    def test_epochs_in_another_process(self):
        """They go on by themselves, and set_epoch() reaches the worker, also one that persists."""
        alone = make()
        expected = [epoch_of(alone)[1].tolist() for epoch in range(6)]
        self.assertEqual(len({str(labels) for labels in expected}), 6)
        for settings in {}, {"multiprocessing_context": "spawn"}, {"persistent_workers": True}:
            whole = make()
            loader = DataLoader(whole, batch_size=None, num_workers=1, **settings)
            epochs = (0, None), (1, None), (4, 4), (5, None)
            for epoch, chosen in epochs[:2] if "multiprocessing_context" in settings else epochs:  # a process takes seconds
                if chosen is not None:
                    whole.set_epoch(chosen)
                self.assertEqual(epoch_of(loader)[1].tolist(), expected[epoch], (settings, epoch))

    @unittest.skipIf(SANITIZED, "a sanitizer's runtime is not for PyTorch's processes")
    def test_several_processes(self):
        with self.assertRaisesRegex(ValueError, "num_workers=0 or 1, not 2"):
            list(DataLoader(make(), batch_size=None, num_workers=2))

    def test_pickle(self):
        batches = make(seed=4, dtype="bfloat16")
        running = iter(batches)
        next(running)
        again = pickle.loads(pickle.dumps(batches))
        self.assertEqual(repr(again), repr(batches))
        for (ours, one), (theirs, other) in zip(running, again):
            self.assertTrue(torch.equal(ours, theirs) and torch.equal(one, other))


class Shown(unittest.TestCase):
    def test_what_is_shown(self):
        """Pictures whose colors are their coordinates: each pixel shows the place that `shown` says."""
        folder, side = f"{scratch.name}/coordinates", 200
        os.makedirs(f"{folder}/a")
        y, x = numpy.mgrid[0:side, 0:side].astype(numpy.uint8)
        for n in range(6):
            pixels = numpy.stack([x, y, x * 0], 2)[:side - 20 * n]
            with open(f"{folder}/a/{n}.ppm", "wb") as file:
                file.write(b"P6\n%d %d\n255\n" % (side, len(pixels)) + pixels.tobytes())
        for settings in {"train": True}, {"train": True, "decoded_cache_bytes": 1 << 22}, {"train": False}:
            loader = dt.Loader(folder, 4, SIZE, split="all", dtype="uint8", layout="NHWC", targets="txt", seed=1, **settings)
            flips = set()
            for _ in range(4):
                for images, _, sidecars in loader:
                    self.assertEqual(tuple(sidecars["crop_boxes"].shape), (len(images), 5))
                    for image, (left, top, right, bottom, flipped) in zip(images.float(), sidecars["crop_boxes"].tolist()):
                        at = (torch.arange(SIZE) + 0.5) / SIZE
                        across, down = left + at * (right - left) - 0.5, top + at * (bottom - top) - 0.5
                        inner = slice(2, -2)  # at an image's edge, a filter has one side only
                        row = image[:, inner, 0].mean(0).flip(0) if flipped else image[:, inner, 0].mean(0)
                        self.assertLess((row - across[inner]).abs().max(), 1.5)
                        self.assertLess((image[inner, :, 1].mean(1) - down[inner]).abs().max(), 1.5)
                        flips.add(flipped)
            self.assertEqual(flips, {0, 1} if settings["train"] else {0})

    def test_of_what_was_read_in_part(self):
        """Where a crop's rows alone are read of a packed JPEG, it is the same crop."""
        folder, seen = f"{scratch.name}/large", []
        for n in range(4):
            write_picture(f"{folder}/a/{n}.ppm", 500 + n, 640 - n, 60, 90, n)
        environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        for name, options in ("files", []), ("packed", ["--container=tar"]):
            made = subprocess.run(["dl2-transcode", "--quiet", "--codec", "jpeg", "--q", "80", *options, folder, f"{folder}-{name}"],
                                  env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if "jpeg" in made.stderr and made.returncode == 2:
                self.skipTest("no JPEG (Debian: libjpeg62-turbo-dev)")
            self.assertEqual(made.returncode, 0, made.stderr)
            with dl2.Loader(f"{folder}-{name}/jpeg-80", 4, SIZE, split="all", seed=1, workers=1, io="direct") as loader:
                seen.append([batch.crop_boxes.tolist() for _ in range(5) for batch in loader])
                read = loader.stats()["bytes_read"]
                whole = 5 * sum(loader.dataset.sample(i).bytes for i in range(4))
            self.assertEqual(read < whole, name == "packed")
        self.assertEqual(seen[0], seen[1])


class Mixing(unittest.TestCase):
    def both(self, **settings):
        """Pairs of batches: mixed, and the same images without."""
        mixed, without = make(seed=3, **settings), make(seed=3, **{**settings, "mixup": 0, "cutmix": 0})
        for (images, soft), (plain_images, targets) in zip(mixed, without):
            yield images, soft, plain_images, targets

    def expect_soft(self, soft, targets, share):
        hard = torch.nn.functional.one_hot(targets, 2).float()
        torch.testing.assert_close(soft, share * hard + (1 - share) * hard.roll(1, 0))
        self.assertEqual(soft.dtype, torch.float32)

    def test_mixup(self):
        for layout in "NCHW", "NHWC", "channels_last":
            for dtype, close in (("float32", 1e-5), ("bfloat16", 3e-2), ("float16", 4e-3)):
                shares = []
                for images, soft, before, targets in self.both(mixup=0.4, layout=layout, dtype=dtype):
                    others = before.roll(1, 0)
                    a, b = (before - others).double(), (images - others).double()
                    share = float((a * b).sum() / (a * a).sum())
                    torch.testing.assert_close(images, share * before + (1 - share) * others, rtol=close, atol=close)
                    torch.testing.assert_close(soft.sum(1), torch.ones(len(soft)))
                    shares.append(share)
                    if dtype == "float32":
                        self.expect_soft(soft, targets, share)
                self.assertEqual(len({round(share, 6) for share in shares}), 5)

    def test_cutmix(self):
        for layout in "NCHW", "NHWC", "channels_last":
            for dtype in "uint8", "float32":
                for images, soft, before, targets in self.both(cutmix=1, layout=layout, dtype=dtype):
                    channel = 3 if layout == "NHWC" else 1
                    changed = (images != before).any(channel).any(0)
                    rows, columns = changed.any(1).nonzero(), changed.any(0).nonzero()
                    area = 0
                    if len(rows):
                        box = slice(int(rows[0]), int(rows[-1]) + 1), slice(int(columns[0]), int(columns[-1]) + 1)
                        area = (box[0].stop - box[0].start) * (box[1].stop - box[1].start)
                        whole = (slice(None),) * (1 if layout == "NHWC" else 2)
                        expected = before.clone()
                        expected[(*whole, *box)] = before.roll(1, 0)[(*whole, *box)]
                        self.assertTrue(torch.equal(images, expected))
                    self.expect_soft(soft, targets, 1 - area / SIZE ** 2)

    def test_what_is_drawn(self):
        """Beta(alpha, alpha) has mean 1/2 and variance 1 / (8 alpha + 4); boxes lie around places anywhere."""
        for alpha in 0.2, 1.0, 4.0:
            shares = numpy.array([dt._mix.draw(f"{n}", alpha, 0, 8, 8).share for n in range(4000)])
            self.assertAlmostEqual(shares.mean(), 0.5, delta=0.03)
            self.assertAlmostEqual(shares.var(), 1 / (8 * alpha + 4), delta=0.01)
        mixes = [dt._mix.draw(f"{n}", 0.2, 1, 40, 80) for n in range(4000)]
        self.assertAlmostEqual(sum(mix.box is None for mix in mixes) / 4000, 0.5, delta=0.04)
        covered = numpy.zeros((40, 80))
        for share, box in mixes:
            if box:
                top, left, bottom, right = box
                self.assertTrue(0 <= top <= bottom <= 40 and 0 <= left <= right <= 80)
                self.assertAlmostEqual(share, 1 - (bottom - top) * (right - left) / 3200)
                covered[top:bottom, left:right] += 1
        self.assertGreater(covered.min(), 0)
        self.assertLess(abs(covered - covered[::-1, ::-1]).max(), 0.06 * 4000)

    def test_resume(self):
        """The same for any number of workers, and where a run goes on."""
        settings = {"seed": 9, "mixup": 0.2, "cutmix": 1.0}
        whole = make(workers=3, **settings)
        states, batches = [], []
        for images, soft in whole:
            batches.append((images.clone(), soft))
            states.append(json.loads(json.dumps(whole.state_dict())))
        again = make(workers=1, **settings)
        again.load_state_dict(states[1])
        copy = pickle.loads(pickle.dumps(again))
        for rest in again, copy:
            for (ours, soft), (theirs, other) in zip(batches[2:], rest):
                self.assertTrue(torch.equal(ours, theirs) and torch.equal(soft, other))
        self.assertFalse(torch.equal(next(iter(whole))[1], batches[0][1]))  # another epoch, another share
        for settings, name in (({"mixup": 0.2}, "cutmix"), ({"mixup": 0.3, "cutmix": 1}, "mixup"), ({}, "mixup")):
            with self.assertRaisesRegex(ValueError, f"it has {name} "):
                make(seed=9, **settings).load_state_dict(states[1])
        with self.assertRaisesRegex(ValueError, "it has mixup 0.0"):
            again.load_state_dict(make(seed=9).state_dict())
        del states[1]["settings"]
        make(seed=9).load_state_dict(states[1])

    def test_wrong_settings(self):
        for settings, what in (({"mixup": -1}, "0 or above"), ({"cutmix": float("nan")}, "0 or above"),
                               ({"mixup": 0.2, "train": False}, "without train"), ({"mixup": 1, "dtype": "uint8"}, "uint8")):
            with self.assertRaisesRegex(ValueError, what):
                make(**settings)
        write_picture(f"{scratch.name}/flat/1.ppm", 40, 30, 0, 255, 1)
        with self.assertRaisesRegex(ValueError, "classes"):
            dt.Loader(f"{scratch.name}/flat", 1, SIZE, mixup=0.2, split="all")


class Card(unittest.TestCase):
    """The way to a card, with a card that is this machine's memory. It copies as late as it may: when it is waited for."""

    @contextlib.contextmanager
    def card(self):
        queue = []

        class Event:
            def synchronize(self):
                while queue:
                    queue.pop(0)()

        class Stream:
            def __init__(self, device=None):
                pass

            def wait_stream(self, other):
                pass

        def copy(self, batch):
            images, targets = torch.from_dlpack(batch.images), torch.from_dlpack(batch.labels)
            at, size, shape, owner = images.data_ptr(), images.numel(), images.shape, self._owner
            here = [torch.full_like(dt._convert(images, owner.dtype, owner.layout, self._mean, self._std), 7), targets.clone()]

            def late():  # what lies there now, without keeping it alive
                raw = torch.frombuffer(bytearray(ctypes.string_at(at, size)), dtype=torch.uint8).reshape(shape)
                here[0].copy_(dt._convert(raw, owner.dtype, owner.layout, self._mean, self._std))

            queue.append(late)
            return (*here, Event())

        with mock.patch.multiple(torch.cuda, Stream=Stream, current_stream=lambda device: Stream()), \
                mock.patch.object(torch.Tensor, "record_stream", lambda self, stream: None), \
                mock.patch.object(dt._OnCard, "_copy", copy):
            yield

    def make(self, **settings):
        """A loader that takes the way to a card, but for the card; and one that doesn't."""
        batches = make(**settings)
        batches._loader = dl2.Loader(flowers, 8, SIZE, workers=2, seed=settings.get("seed", 0))
        return batches, make(**settings)

    def on_card(self, batches):
        batches._resumed = batches._given = None
        return dt._OnCard(batches)

    def test_same_batches(self):
        for layout in "NCHW", "NHWC", "channels_last":
            mixing = {"cutmix": 1, "mixup": 0.2} if layout == "NHWC" else {}
            batches, expected = self.make(layout=layout, dtype="float32", **mixing)
            with self.card():
                for epoch in range(2):
                    seen, count = self.on_card(batches), 0
                    for (ours, one), (theirs, other) in zip(seen, expected):
                        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
                        self.assertTrue(torch.equal(one, other))
                        count += 1
                    self.assertEqual(count, 5)
                    self.assertRaises(StopIteration, next, seen)

    def test_state(self):
        """It is that of the batches which were given, not of the one that is being copied."""
        with self.card():
            for stop in range(6):
                batches, _ = self.make(seed=2)
                running = self.on_card(batches)
                for _ in range(stop):
                    next(running)
                state = batches.state_dict()
                self.assertEqual((state["epoch"], state["step"]), (0, stop))
                rest = [targets.tolist() for _, targets in running]
                batches.load_state_dict(state)
                self.assertEqual([targets.tolist() for _, targets in self.on_card(batches)], rest)
                self.assertEqual(len(rest), 5 - stop)

    def test_decoded_there(self):
        """decode="gpu": what the card decoded is converted and given, and no batch's memory is kept or waited for. The card
        is the stand-in of fake_decoders.c, its streams run at once, and its number is put on tensors of the machine's memory."""
        if not os.path.exists(fake_card.PATH):
            self.skipTest(f"no {fake_card.PATH}: the tests were not built")
        photos, streams, current = f"{scratch.name}/photos", [], [1]
        if not os.path.exists(photos):
            done = subprocess.run(["dl2-transcode", "--quiet", "--codec", "jpeg", "--q", "90", flowers, f"{scratch.name}/jpegs"],
                                  env={name: value for name, value in os.environ.items() if name != "LD_PRELOAD"},
                                  stdout=subprocess.DEVNULL)
            if done.returncode:
                self.skipTest("built without JPEG")
            os.rename(f"{scratch.name}/jpegs/jpeg-90", photos)

        class Stream:
            cuda_stream = 4096

            def __init__(self, device=None):
                self.device = device

            def wait_stream(self, other):
                pass

        class Event:
            def record(self, stream):
                pass

            def synchronize(self):
                pass

        @contextlib.contextmanager
        def use(stream):
            current.append(stream.cuda_stream)
            yield
            current.pop()

        from_dlpack, to = torch.from_dlpack, torch.Tensor.to

        def seen(array):
            if array.__dlpack_device__()[0] != fake_card.CUDA:
                return from_dlpack(array)
            self.assertEqual(array.__dlpack_device__(), (fake_card.CUDA, 1))
            streams.append(current[-1])
            return from_dlpack(fake_card.here(array, current[-1]))

        def moved(tensor, *args, **kwargs):
            return tensor if args and isinstance(args[0], torch.device) else to(tensor, *args, **kwargs)

        tensor = torch.tensor
        fake_card.install()
        try:
            with mock.patch.multiple(torch.cuda, Stream=Stream, Event=Event, stream=use, is_available=lambda: True,
                                     current_device=lambda: 1, current_stream=lambda device: Stream()), \
                    mock.patch.object(torch, "from_dlpack", seen), mock.patch.object(torch.Tensor, "to", moved), \
                    mock.patch.object(torch.Tensor, "record_stream", lambda self, stream: None), \
                    mock.patch.object(torch, "tensor", lambda data, device=None: tensor(data)):
                for dtype in "uint8", "float32":
                    for layout in "NCHW", "NHWC", "channels_last":
                        given = {"batch_size": 8, "image_size": SIZE, "workers": 2, "dtype": dtype, "layout": layout}
                        there = dt.Loader(photos, device="cuda", decode="gpu", depth=2, **given)
                        self.assertEqual((there.loader.settings["device"], str(there.device)), ("cuda:1", "cuda:1"))
                        kept = list(there)  # all of them, with two batches of the loader's
                        expected = list(dt.Loader(photos, depth=8, pin_memory=False, **given))
                        self.assertEqual(len(kept), 5)
                        for (ours, one), (theirs, other) in zip(kept, expected):
                            torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
                            self.assertEqual(ours.stride(), theirs.stride())
                            self.assertTrue(torch.equal(one, other))
                        self.assertEqual(set(streams), {Stream.cuda_stream})
                        self.assertEqual(there.loader.stats()["card"]["images"], 40)
                        copy = pickle.loads(pickle.dumps(there))
                        self.assertEqual(copy.loader.settings["decode"], "gpu")
                with self.assertRaisesRegex(Exception, "num_workers=0"):
                    list(DataLoader(there, batch_size=None, num_workers=1))
        finally:
            fake_card.uninstall()
        with self.assertRaisesRegex(ValueError, "decode='gpu' needs device='cuda', not 'cpu'"):
            make(decode="gpu")

    @unittest.skipUnless(torch.cuda.is_available(), "no card: the copies were only tried on the machine's memory")
    def test_decoded_on_a_real_one(self):
        """Within what two decoders' rounding comes to (tests/cuda/test_decode.c)."""
        photos = f"{scratch.name}/real"
        subprocess.run(["dl2-transcode", "--quiet", "--codec", "jpeg", "--q", "90", flowers, photos], check=True)
        try:
            there = dt.Loader(f"{photos}/jpeg-90", 8, SIZE, dtype="uint8", layout="NHWC", device="cuda", decode="gpu")
        except dl2.Error as error:
            self.skipTest(str(error))
        for (ours, one), (theirs, other) in zip(there, dt.Loader(f"{photos}/jpeg-90", 8, SIZE, dtype="uint8", layout="NHWC")):
            self.assertLess((ours.cpu().float() - theirs.float()).abs().mean(dim=(1, 2, 3)).max(), 1)
            self.assertTrue(torch.equal(one.cpu(), other))

    @unittest.skipUnless(torch.cuda.is_available(), "no card: the copies were only tried on the machine's memory")
    def test_on_a_real_one(self):
        for dtype in torch.float32, torch.float16, torch.bfloat16:
            for layout in "NCHW", "NHWC", "channels_last":
                for (ours, one), (theirs, other) in zip(make(dtype=dtype, layout=layout, device="cuda"), make(layout=layout)):
                    self.assertEqual((ours.device.type, ours.dtype, ours.stride()), ("cuda", dtype, theirs.stride()))
                    torch.testing.assert_close(ours.cpu().float(), theirs, rtol=2e-2, atol=2e-2)
                    self.assertTrue(torch.equal(one.cpu(), other))
        self.assertTrue(next(iter(make()))[0].is_pinned())


class Single(unittest.TestCase):
    @needs_pillow
    def test_images(self):
        dataset = dt.Dataset(flowers)
        self.assertEqual((len(dataset), dataset.classes), (40, ("aster", "rose")))
        image, target = dataset[-1]
        self.assertEqual((image.mode, image.size, target), ("RGB", (40 + 3 * 17, 90 - 2 * 17), 1))
        changed = dt.Dataset(flowers, "val", lambda image: image.size, lambda target: NAMES[target])
        self.assertEqual(changed[0], ((50, 40), "aster"))
        with self.assertRaises(IndexError):
            dataset[40]
        whole = DataLoader(dt.Dataset(flowers, transform=lambda image: torch.tensor(numpy.array(image.resize((9, 9))))), 8, shuffle=True)
        self.assertEqual([tuple(images.shape) for images, targets in whole], 5 * [(8, 9, 9, 3)])
        self.assertEqual(len(pickle.loads(pickle.dumps(dataset))), 40)

    @needs_pillow
    def test_upright_and_on_white(self):
        """As the batches have them."""
        from PIL import Image
        folder = f"{scratch.name}/special"
        os.makedirs(f"{folder}/a")
        pixels = numpy.zeros((SIZE, SIZE, 3), numpy.uint8)
        pixels[: SIZE // 2] = 255
        exif = Image.Exif()
        exif[0x112] = 6
        Image.fromarray(pixels).save(f"{folder}/a/0.jpg", exif=exif, quality=95)
        clear = numpy.full((SIZE, SIZE, 4), 10, numpy.uint8)
        clear[:, SIZE // 2:, 3] = 0
        clear[:, : SIZE // 2, 3] = 255
        Image.fromarray(clear).save(f"{folder}/a/1.png")
        dataset = dt.Dataset(folder, "all")
        upright, white = [numpy.asarray(image).astype(int) for image, _ in dataset]
        self.assertLess(abs(upright - numpy.rot90(pixels, -1)).mean(), 4)
        self.assertEqual((white[3, 3].tolist(), white[3, -3].tolist()), ([10, 10, 10], [255, 255, 255]))
        batches = dl2.Loader(folder, 2, SIZE, train=False, split="all", resize=SIZE)
        if not batches.bad:
            theirs = numpy.asarray(next(iter(batches)).images).astype(int)
            self.assertLess(abs(theirs - numpy.stack([upright, white])).mean(), 2)

    @needs_pillow
    def test_one_decoder(self):
        """Depths, orientations, inks and codecs: what dl2-transcode makes of them, and batches have."""
        from PIL import Image, TiffImagePlugin
        folder, out = f"{scratch.name}/kinds", f"{scratch.name}/kinds-out"
        os.makedirs(f"{folder}/a")
        gray = numpy.linspace(0, 65535, 48 * 32).reshape(32, 48)
        color = numpy.stack([gray // 257, gray[::-1] // 300, 200 - gray // 500], -1).astype(numpy.uint8)
        with open(f"{folder}/a/deep.pgm", "wb") as file:
            file.write(b"P5\n48 32\n65535\n" + gray.astype(">u2").tobytes())
        Image.fromarray(gray.astype(numpy.int32), "I").save(f"{folder}/a/deep_png.png")
        Image.fromarray(gray.astype(numpy.uint16)).save(f"{folder}/a/deep_tiff.tif")
        for turn in range(1, 9):
            tags = TiffImagePlugin.ImageFileDirectory_v2()
            tags[274] = turn
            Image.fromarray(color).save(f"{folder}/a/turn{turn}.tif", tiffinfo=tags)
        Image.fromarray(color).convert("CMYK").save(f"{folder}/a/inks.tif")
        Image.fromarray(color).convert("CMYK").save(f"{folder}/a/inks_jpeg.jpg")
        Image.fromarray(color).save(f"{folder}/a/jp2.jp2")
        run("dl2-transcode", "--quiet", "--codec", "ppm", folder, out)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            dataset = dt.Dataset(folder, "all")
            images = {os.path.basename(key): numpy.asarray(dataset[i][0]) for i, key in enumerate(dataset.dataset.keys)}
        self.assertEqual([str(w.message).split(": ")[1] for w in caught],
                         ["1 images have more than 8 bits a sample, and are loaded at 8"])
        for name, image in images.items():
            theirs = numpy.asarray(Image.open(f"{out}/ppm/a/{name}.ppm").convert("RGB"))
            numpy.testing.assert_array_equal(image, theirs, name)
        for name in "deep", "deep_png", "deep_tiff":
            self.assertLess(abs(images[name][..., 0] - gray / 257).max(), 0.51, name)
        numpy.testing.assert_array_equal(images["turn3"], color[::-1, ::-1])
        numpy.testing.assert_array_equal(images["turn6"], numpy.rot90(color, -1))
        batches = dl2.Loader(dataset.dataset, 1, (32, 48), train=False, val_crop="squash")
        for image, batch in zip(images.values(), batches):
            if image.shape == (32, 48, 3):
                self.assertLessEqual(abs(numpy.asarray(batch.images)[0].astype(int) - image).max(), 1)

    @needs_pillow
    def test_what_is_no_image(self):
        folder = f"{scratch.name}/none"
        write_picture(f"{folder}/a/0.ppm", 9, 9, 0, 255, 0)
        os.truncate(f"{folder}/a/0.ppm", 50)
        with self.assertRaisesRegex(dl2.Error, f"{folder}/a/0.ppm: decode: PNM: the file is cut short"):
            dt.Dataset(folder, "all")[0]

    def test_contact_sheet(self):
        folder = f"{scratch.name}/sheet"
        for n in range(30):
            write_picture(f"{folder}/{'<b>' if n < 15 else 'rose'}/{n:02}.ppm", 40, 40, 8 * n, 8 * n + 1, n)
        text = dt.Dataset(folder, "all")._repr_html_()
        pictures = re.findall(r'base64,([^"]*)"', text)
        self.assertEqual((len(pictures), text.count("<figure"), text.count("&lt;b&gt;</figcaption>")), (24, 24, 12))
        self.assertNotIn("<b>", text)
        grays = []
        for one in pictures:
            png = base64.b64decode(one)
            self.assertEqual(png[:8], b"\x89PNG\r\n\x1a\n")
            at, parts = 8, {}
            while at < len(png):
                size = int.from_bytes(png[at:at + 4], "big")
                name, content = png[at + 4:at + 8], png[at + 8:at + 8 + size]
                self.assertEqual(zlib.crc32(name + content), int.from_bytes(png[at + 8 + size:at + 12 + size], "big"))
                parts[name], at = content, at + 12 + size
            lines = zlib.decompress(parts[b"IDAT"])
            self.assertEqual(len(lines), 96 * (1 + 3 * 96))
            grays.append(lines[500])
        self.assertEqual(grays, [8 * (n * 30 // 24) for n in range(24)])
        self.assertNotIn("cannot be read", text)
        dataset = dl2.Dataset(folder, "all")
        for shown in dataset, dl2.Loader(dataset, 4, SIZE), dt.Loader(dataset, 4, SIZE, seed=0):
            again = shown._repr_html_()
            self.assertEqual(re.findall(r'base64,([^"]*)"', again), pictures)
            self.assertIn(repr(shown).replace("<", "&lt;").replace(">", "&gt;").replace("'", "&#x27;"), again)
        loader = dl2.Loader(dataset, 4, SIZE)
        running = iter(loader)
        self.assertEqual(repr(running), f"<dl2.Epoch of {loader!r}>")
        loader.start_epoch(2)
        self.assertEqual(repr(running), f"<dl2.Epoch, which has ended, of {loader!r}>")
        loader.close(), dataset.close()
        self.assertEqual(loader._repr_html_(), "<p>&lt;dl2.Loader, closed&gt;</p>")

    def test_contact_sheet_of_an_external_codec(self):
        folder = f"{scratch.name}/outside"
        os.makedirs(f"{folder}/rose")
        for n in range(2):
            with open(f"{folder}/rose/{n}.dl2x", "wb") as out:
                out.write(b"DL2X\x01\x03\x05\0" + struct.pack("<II", 40, 40) + b"heicxencoded")
        text = dt.Dataset(folder, "all")._repr_html_()
        self.assertEqual(text.count("rose (cannot be read)"), 2)
        self.assertRegex(text, "<p>[^<]*rose/0.dl2x: [^<]*heicx")


if __name__ == "__main__":
    unittest.main(verbosity=2)
