# SPDX-License-Identifier: BSD-2-Clause
"""The memory of batches: no copies, NumPy, DLPack and PyTorch, lifetimes, arrays on a card."""
import ctypes
import gc
import json
import os
import pickle
import resource
import subprocess
import sys
import threading
import time
import unittest
import zlib

import numpy

import dl2
import fake_card
from small_dataset import (MEAN, SIZE, STD, address, epoch_of, flowers, loader, needs_torch, run, scratch, torch, write_picture)


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
        for type_ in type(labels), type(iter(loader())):
            with self.assertRaisesRegex(TypeError, "cannot create <class 'dl2"):
                type_()
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
        optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
        losses = []
        for epoch in range(8):
            for images, labels in batches:
                images = torch.from_dlpack(images).permute(0, 3, 1, 2) / 255 - 0.5
                loss = torch.nn.functional.cross_entropy(model(images), torch.from_dlpack(labels))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.detach())
        right = [(model(torch.from_dlpack(b.images).permute(0, 3, 1, 2) / 255 - 0.5).argmax(1) == torch.from_dlpack(b.labels)).all()
                 for b in loader(train=False)]
        self.assertLess(sum(losses[-5:]), sum(losses[:5]) / 4)
        self.assertTrue(all(right))


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
                    self.assertEqual(card["refusal"], "an image for a test" if card["refused"] else None)
                    self.assertTrue(card["bytes"] > card["images"] + card["refused"] > 0 and card["finish"] > 0)
                    batches.stats(reset=True)
                    card = batches.stats()["card"]
                    self.assertEqual((card["refused"], card["refusal"]), (0, None))
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
        needs = "must .* with decode 'gpu' or 'hybrid'"
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


if __name__ == "__main__":
    unittest.main(verbosity=2)
