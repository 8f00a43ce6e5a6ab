# SPDX-License-Identifier: BSD-2-Clause
"""Calling the module: errors, threads, signals, forks; docstrings, stubs and keywords."""
import ast
import errno
import gc
import os
import queue
import random
import re
import signal
import subprocess
import sys
import threading
import time
import types
import unittest

import numpy

import dl2
from small_dataset import MEAN, SIZE, STD, epoch_of, flowers, loader, make_flowers, scratch


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
        for wrong in ({"batch": 1.5}, {"area": 1}, {"mean": 3, "dtype": "float32"}, {"color": 1}, {"std": "abc", "dtype": "float32"},
                      {"cache_bytes": 1e9}, {"seed": None}, {"max_bad": "x"}):
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
                ({"mean": MEAN}, "mean is for types of floats"), ({"std": STD}, "not for uint8"), ({"std": (1, 1, 1)}, "not for uint8"),
                ({"train": False, "area": (0.5, 1)}, "area needs train"), ({"train": False, "aspect": (1, 1)}, "aspect needs train"),
                ({"train": False, "flip": True}, "flip needs train"),
                ({"train": False, "augment": "vflip"}, "augment needs train"), ({"augment": "flip"}, "no operation 'flip'"),
                ({"augment": "erase:p=x"}, "erase: p is a number from 0 to 1, not 'x'"), ({"augment": ""}, "no operation ''"), ({"resize": 40}, "resize needs train=False"),
                ({"train": False, "shuffle_chunk": 2}, "shuffle_chunk needs train: "), ({"shuffle_window": 2}, "needs shuffle_chunk"),
                ({"io": "direct", "ahead": 3}, "io direct"), ({"io": "direct", "ahead_bytes": 3}, "io direct")):
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
                self.assertEqual(list(labels), [0, 0, 0, 0, 1, -1, 1])
                self.assertFalse(images[5].any())
            with self.assertRaisesRegex(dl2.Error, path):
                epoch_of(loader(folder, train=train, stop_on_bad=True))
            with self.assertRaisesRegex(dl2.Error, "at least 1 of .* images cannot be used, above the limit of 0%"):
                epoch_of(loader(folder, train=train, max_bad=0))
            with self.assertWarnsRegex(UserWarning, "^epoch 0: 1 of .* images could not be read, and .*: decode: "):
                epoch_of(loader(folder, train=train))


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

    def test_waiting_for_another_thread_has_an_end(self):
        """Also where another thread, such as a progress bar's, goes on without holding anything."""
        done = threading.Event()
        thread = threading.Thread(target=done.wait, daemon=True)
        thread.start()
        try:
            running = iter(loader(depth=2, hold_timeout=0.5))
            kept = [next(running), next(running)]
            watch = threading.Timer(20, os._exit, (1,))  # on failure there is nobody to wake this thread
            watch.start()
            begun = time.monotonic()
            with self.assertRaisesRegex(dl2.Error, "no thread has let go of one.*hold_timeout"):
                next(running)
            watch.cancel()
            self.assertGreater(time.monotonic() - begun, 0.4)
            kept.pop()
            self.assertEqual(next(running).step, 2)
        finally:
            done.set()
            thread.join()
        self.assertEqual(loader().settings["hold_timeout"], 60)
        for wrong in -1, float("nan"):
            with self.assertRaisesRegex(ValueError, "hold_timeout"):
                loader(hold_timeout=wrong)

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

    def test_what_is_meant(self):
        """Of names that are no arguments: typing errors, and what other libraries call them."""
        for call, text in ((lambda: dl2.Loader(flowers, num_workers=2), r"'num_workers'; did you mean workers \(threads; 0"),
                           (lambda: dl2.Loader(flowers, batch_size=2), r"'batch_size'; did you mean batch \(images of a batch\)"),
                           (lambda: dl2.Loader(flowers, shuffle=True), r"'shuffle'; did you mean train \(shuffle; crop"),
                           (lambda: dl2.Loader(flowers, transform=None), r"'transform'; did you mean augment \("),
                           (lambda: dl2.Loader(flowers, imgae_size=2), r"'imgae_size'; did you mean image_size \("),
                           (lambda: dl2.Loader(flowers, nonsense=2), r"^Loader\(\) has no argument 'nonsense'$"),
                           (lambda: dl2.Dataset(flowers, splitt="all"), r"^Dataset\(\) has no argument 'splitt'; did you mean split\?$"),
                           (lambda: dl2.Dataset(flowers, nonsense=1), r"^Dataset\(\) has no argument 'nonsense'$")):
            with self.assertRaisesRegex(TypeError, text):
                call()

    def test_help_of_volumes(self):
        self.assertIn("Volumes are float32 [n, channels, depth, height, width]\nunless dtype and layout are given", dl2.Loader.__doc__)
        self.assertIn("of volumes 'NCHW' unless it is given", " ".join(dl2.Loader.__doc__.split()))

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
        renamed = {"crop-area": "area", "cache": "cache_bytes", "cache-decoded": "decoded_cache_bytes", "cache-volumes": "volume_cache_bytes",
                   "on-bad": "stop_on_bad", "gray": "channels", "val": "train", "jobs": "workers",
                   "decoder": "external"}
        of_the_program = set("""help usage version quiet json name epochs measure cold scaling digest
            device-kind device-rate device-report seconds within memory quality whole
            models ranks parameters bandwidth""".split())
        of_the_dataset = set("""subset subset-by subset-seed samples labels label-field image-extension cache-dir
            cache-dir-size requests request-limit""".split())
        of_python = set("""mean std aspect flip ahead_bytes drop_behind val_fraction memory
            targets mask_fill val_clips hold_timeout""".split())
        script = subprocess.run(["dl2-load", "--completion"], check=True, capture_output=True, text=True).stdout
        options = set(re.search(r"\*\) choices='(--.*)'", script)[1].replace("--", "").split())
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
