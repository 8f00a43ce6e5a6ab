# SPDX-License-Identifier: BSD-2-Clause
"""Volumes: which part of a volume comes, and that it is what NumPy makes of the file."""
import os
import pathlib
import struct
import unittest

import numpy

import dl2
from small_dataset import needs_torch, scratch, torch

root = f"{scratch.name}/volumes"
PATCH = (6, 10, 12)
LABELS = {"mask": "mask.npy"}


def save(path, array, version=None):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        numpy.lib.format.write_array(file, array, version=version)


def noise(shape, seed):
    return numpy.random.default_rng(seed).normal(size=shape) * 50 + 7


def make_volumes(place, count=9):
    """Of sizes around the patch's, with labels; those of the first volume are all 0."""
    for split in "train", "val":
        for n in range(count):
            shape = (8 + n % 4, 11 + n, 20 - n % 3)
            labels = numpy.zeros(shape, numpy.uint8)
            if n:
                labels[n % shape[0], 3:5, 4 + n % 5:9 + n % 5] = n
            save(f"{place}/{split}/{'ab'[n % 2]}/v{n}.npy", noise(shape, n).astype(numpy.float32))
            save(f"{place}/{split}/{'ab'[n % 2]}/v{n}.mask.npy", labels)


make_volumes(root)


def loader(place=root, **settings):
    return dl2.Loader(place, **{"batch": 2, "image_size": PATCH, "workers": 2, "normalization": "none", **settings})


def epoch(source, number=0):
    """{sample: (voxels, labels, label, patch)}, with what comes once."""
    source.start_epoch(number)
    return collect(source)


def collect(source):
    found = {}
    for batch in source:
        for i, sample in enumerate(numpy.asarray(batch.indices)):
            assert int(sample) not in found, "a volume came twice"
            labels = None if batch.masks is None else numpy.array(batch.masks)[i]
            found[int(sample)] = (numpy.array(batch.images)[i], labels, int(numpy.asarray(batch.labels)[i]),
                                  numpy.asarray(batch.patches)[i].tolist())
    return found


def shown(array, patch, size, fill=0):
    """The part of [channels, depth, height, width] that a patch shows."""
    out = numpy.full(array.shape[:1] + tuple(size), fill, array.dtype)
    source, target = [slice(None)], [slice(None)]
    for first, full, side in zip(patch[:3], patch[3:], size):
        source.append(slice(max(first, 0), min(first + side, full)))
        target.append(slice(max(-first, 0), max(-first, 0) + min(full, side)))
    out[tuple(target)] = array[tuple(source)]
    return out


def same(one, other):
    return one.keys() == other.keys() and all(
        numpy.array_equal(a[0], b[0]) and numpy.array_equal(a[1], b[1]) and a[2:] == b[2:]
        for a, b in ((one[n], other[n]) for n in one))


class Volumes(unittest.TestCase):
    def test_dataset(self):
        dataset = dl2.Dataset(root, "all")
        self.assertEqual(dataset.kind, "volume")
        self.assertEqual(dataset.layout, "train 9 volumes in 2 classes, val 9")
        self.assertEqual(dataset.keys[0], "train/a/v0")
        self.assertEqual(dataset.volume(0), {"channels": 1, "size": (8, 11, 20), "spacing": (0, 0, 0), "type": "float32"})
        self.assertEqual(dataset.volume(-1)["size"], (11, 18, 19))

    def test_training(self):
        with loader(**LABELS, mask_fill=9, seed=3) as ours:
            keys = [ours.dataset.sample(i).path for i in range(9)]
            places = set()
            for number in range(4):
                found = epoch(ours, number)
                self.assertEqual(sorted(found), list(range(9)))
                for sample, (voxels, labels, label, patch) in found.items():
                    array = numpy.load(keys[sample])
                    self.assertEqual(voxels.shape, (1,) + PATCH)
                    self.assertEqual(labels.shape, PATCH)
                    self.assertEqual(label, "ab".index(keys[sample].split("/")[-2]))
                    self.assertEqual(tuple(patch[3:]), array.shape)
                    for first, full, side in zip(patch[:3], patch[3:], PATCH):
                        self.assertTrue(0 <= first <= full - side)
                    numpy.testing.assert_array_equal(voxels, shown(array[None], patch, PATCH))
                    mask = numpy.load(keys[sample].replace(".npy", ".mask.npy"))
                    numpy.testing.assert_array_equal(labels[None], shown(mask[None], patch, PATCH))
                    places.add((sample, *patch[:3]))
            self.assertGreater(len(places), 25)

    def test_validation_is_the_middle(self):
        with loader(train=False) as ours:
            for sample, (voxels, _, _, patch) in epoch(ours).items():
                array = numpy.load(ours.dataset.sample(sample).path)
                self.assertEqual(patch[:3], [(full - side) // 2 for full, side in zip(array.shape, PATCH)])
                numpy.testing.assert_array_equal(voxels, shown(array[None], patch, PATCH))

    def test_same_for_any_workers_and_resume(self):
        settings = dict(LABELS, seed=5, oversample_foreground=0.5, augment="flips,elastic:p=0.5,noise,brightness,gamma,blur:sigma-max=1")
        with loader(workers=1, **settings) as one, loader(workers=4, **settings) as four, \
                loader(workers=3, batching="completion", **settings) as completion:
            wanted = epoch(one, 2)
            self.assertTrue(same(wanted, epoch(four, 2)))
            self.assertTrue(same(wanted, epoch(completion, 2)))
            self.assertFalse(same(wanted, epoch(four, 3)))
        for batching in "strict", "completion":
            with loader(batching=batching, **settings) as first, loader(workers=1, **settings) as second:
                first.start_epoch(2)
                batches = iter(first)
                taken = [int(i) for batch in (next(batches), next(batches)) for i in numpy.asarray(batch.indices)]
                state = first.state()
                second.resume(state)
                rest = collect(second)
                self.assertEqual(sorted(taken + list(rest)), list(range(9)))
                self.assertTrue(same(rest, {n: wanted[n] for n in rest}))
        with loader(oversample_foreground=0.5, seed=5, **LABELS) as other:
            self.assertRaisesRegex(ValueError, "augment", other.resume, state)

    def test_smaller_volumes_are_padded(self):
        size = (13, 12, 31)
        with loader(image_size=size, mask_fill=7, **LABELS) as ours:
            for sample, (voxels, labels, _, patch) in epoch(ours).items():
                path = ours.dataset.sample(sample).path
                array, mask = numpy.load(path), numpy.load(path.replace(".npy", ".mask.npy"))
                self.assertLess(patch[0], 0)
                numpy.testing.assert_array_equal(voxels, shown(array[None], patch, size))
                numpy.testing.assert_array_equal(labels[None], shown(mask[None], patch, size, 7))
            self.assertEqual(ours.stats()["padded"], 9)
        with loader(image_size=size, normalization="zscore", train=False) as ours:
            for voxels, _, _, patch in epoch(ours).values():
                inside = shown(numpy.ones((1, *patch[3:]), bool), patch, size)
                self.assertAlmostEqual(float(voxels[inside].mean()), 0, places=5)
                self.assertFalse(voxels[~inside].any())

    def test_normalization(self):
        with loader(normalization="zscore") as ours:
            for sample, (voxels, _, _, patch) in epoch(ours).items():
                part = shown(numpy.load(ours.dataset.sample(sample).path)[None], patch, PATCH).astype(numpy.float64)
                numpy.testing.assert_allclose(voxels, (part - part.mean()) / part.std(), atol=1e-5)
        with loader(normalization="window", window=(-20, 60)) as ours:
            for sample, (voxels, _, _, patch) in epoch(ours).items():
                part = shown(numpy.load(ours.dataset.sample(sample).path)[None], patch, PATCH).astype(numpy.float64)
                numpy.testing.assert_allclose(voxels, (numpy.clip(part, -20, 60) + 20) / 80, atol=1e-6)

    def test_foreground(self):
        with loader(oversample_foreground=1, **LABELS) as ours:
            for number in range(3):
                for sample, (_, labels, _, _) in epoch(ours, number).items():
                    self.assertEqual(labels.any(), sample > 0)
            self.assertEqual(ours.stats()["no_foreground"], 3)
        counts = []
        for share in 0, 0.5:
            with loader(oversample_foreground=share, **LABELS) as ours:
                counts.append(sum(bool(found[1].any()) for number in range(20) for found in epoch(ours, number).values()))
        self.assertGreater(counts[1], counts[0])
        self.assertLess(counts[1], 160)

    def test_foreground_components(self):
        """MLPerf's rule: classes are equally frequent, and so are their components, whatever their sizes."""
        place, size = f"{scratch.name}/components", (30, 40, 50)
        boxes = [(1, (0, 0, 0), (2, 3, 1)), (1, (20, 30, 3), (22, 38, 9)), (2, (4, 20, 12), (27, 23, 46)), (2, (28, 0, 48), (30, 2, 50)),
                 (3, (12, 2, 30), (13, 3, 31)), (3, (2, 8, 40), (5, 14, 43)), (3, (29, 39, 20), (30, 40, 21)), (3, (12, 37, 24), (20, 39, 49))]
        labels = numpy.full(size, 9, numpy.uint8)
        labels[1:29, 1:39, 1:49] = 0
        for value, first, end in boxes:
            labels[tuple(slice(*axis) for axis in zip(first, end))] = value
        for n in range(4):
            save(f"{place}/train/a/{n}.npy", noise(size, n).astype(numpy.float32))
            save(f"{place}/train/a/{n}.mask.npy", labels)

        def starts_of(first, end, patch, whole):
            low, high = sorted((first, end - patch))
            return [min(max(start, 0), whole - patch) for start in range(low, high + 1)]

        settings = dict(LABELS, oversample_foreground=1, mask_fill=9, seed=4)
        counts, seen, patches = numpy.zeros(len(boxes)), set(), []
        with loader(place, foreground_rule="component", **settings) as ours, loader(place, foreground_rule="voxel", **settings) as voxels:
            for number in range(500):
                for sample, found in epoch(ours, number).items():
                    start = found[3][:3]
                    fits = [k for k, (_, *box) in enumerate(boxes)
                            if all(start[i] in starts_of(box[0][i], box[1][i], PATCH[i], size[i]) for i in range(3))]
                    self.assertTrue(fits, start)
                    counts[fits] += 1 / len(fits)
                    seen |= {(fits[0], i, start[i]) for i in range(3) if len(fits) == 1}
                    patches.append((number, sample, start))
            again = epoch(ours, 7)
            self.assertEqual([start for number, sample, start in patches if number == 7 and sample == 2], [again[2][3][:3]])
            self.assertNotEqual(again[2][3], epoch(voxels, 7)[2][3])
            self.assertGreater(ours.stats()["memory"], 0)
            self.assertEqual(ours.stats()["no_foreground"], 0)
        # Of 2,000 patches; three standard deviations, and patches that fit two.
        for k, (value, _, _) in enumerate(boxes):
            expected = 2000 / 3 / sum(box[0] == value for box in boxes)
            self.assertLess(abs(counts[k] - expected), 3 * expected ** 0.5 + 12, (k, counts))
        # The long component is shown from all places within it, and others from all around them.
        for k, axis in (2, 0), (2, 2), (1, 0), (1, 2), (5, 1):
            _, first, end = boxes[k]
            self.assertEqual({start for box, i, start in seen if (box, i) == (k, axis)},
                             set(starts_of(first[axis], end[axis], PATCH[axis], size[axis])), (k, axis))
        # A volume that is smaller than its patch along an axis is in the middle there.
        with loader(place, image_size=(32, 10, 12), foreground_rule="component", **settings) as ours:
            for found in epoch(ours).values():
                self.assertEqual(found[3][0], -1)
                self.assertTrue(set(numpy.unique(found[1])) & {1, 2, 3})
        for wrong, text in ({"oversample_foreground": 0}, "foreground_rule needs oversample_foreground"), ({"foreground_rule": "blob"}, "blob"):
            with self.assertRaisesRegex(ValueError, text):
                loader(place, **{**settings, "foreground_rule": "component", **wrong})

    def test_flips(self):
        for axis, name in enumerate("zyx"):
            others = ":".join(f"{other}=0" for other in "zyx" if other != name)
            with loader(seed=1, **LABELS) as plain, \
                    loader(seed=1, augment=f"flips:{name}=1:{others}", **LABELS) as flipped:
                before, after = epoch(plain), epoch(flipped)
                for sample in before:
                    numpy.testing.assert_array_equal(after[sample][0], numpy.flip(before[sample][0], 1 + axis))
                    numpy.testing.assert_array_equal(after[sample][1], numpy.flip(before[sample][1], axis))

    def test_labels_follow_elastic_deformation(self):
        place = f"{scratch.name}/blocks"
        block = numpy.zeros((16, 24, 24), numpy.uint8)
        block[4:12, 6:18, 6:18] = 1
        save(f"{place}/train/a/b.npy", block)
        save(f"{place}/train/a/b.mask.npy", block)
        with loader(place, batch=1, image_size=block.shape, augment="elastic:p=1:voxels=6:points=5", **LABELS) as ours:
            voxels, labels, _, _ = epoch(ours)[0]
        self.assertTrue((labels[voxels[0] >= 0.99] == 1).all())
        self.assertTrue((labels[voxels[0] <= 0.01] == 0).all())
        self.assertGreater((labels != block).sum(), 200)

    def test_types(self):
        place = f"{scratch.name}/types"
        kinds = "|b1 |u1 |i1 <u2 >i2 <u4 >i4 <u8 <i8 <f4 >f4 <f8 >f8".split()
        for n, kind in enumerate(kinds):
            array = numpy.abs(noise((7, 11, 13), n)) % 100
            save(f"{place}/val/a/{n:02}.npy", array.astype(kind), version=[(1, 0), (2, 0), (3, 0)][n % 3])
        with loader(place, train=False) as ours:
            found = epoch(ours)
            self.assertEqual(len(found), len(kinds))
            for n, (voxels, _, _, patch) in found.items():
                path = ours.dataset.sample(n).path
                numpy.testing.assert_array_equal(voxels, shown(numpy.load(path).astype(numpy.float32)[None], patch, PATCH), path)

    def test_channels_layouts_and_halves(self):
        place = f"{scratch.name}/channels"
        for n in range(3):
            save(f"{place}/val/a/{n}.npy", noise((4, 9, 12, 14), n).astype(numpy.float32))
        with loader(place, train=False, batch=3) as ours:
            wanted = numpy.array(next(iter(ours)).images)
            self.assertEqual(wanted.shape, (3, 4) + PATCH)
            self.assertEqual(ours.settings["channels"], 4)
            middle = numpy.load(f"{place}/val/a/1.npy")[:, 1:7, 1:11, 1:13]
            numpy.testing.assert_array_equal(wanted[1], middle)
        with loader(place, train=False, batch=3, layout="NHWC") as ours:
            numpy.testing.assert_array_equal(numpy.array(next(iter(ours)).images), numpy.moveaxis(wanted, 1, -1))
        with loader(place, train=False, batch=3, dtype="float16") as ours:
            numpy.testing.assert_array_equal(numpy.array(next(iter(ours)).images), wanted.astype(numpy.float16))
        save(f"{place}/val/a/1.npy", noise((4, 9, 12, 14), 1).astype(numpy.float32) * 1e4)
        with loader(place, train=False, batch=3, dtype="float16") as ours, self.assertWarns(UserWarning):
            self.assertEqual([found[2] for _, found in sorted(epoch(ours).items())], [0, -1, 0])
            self.assertRegex(ours.bad[0], "1.npy: dtype: it has values beyond 65504")
        with self.assertRaisesRegex(ValueError, "first volume has 4"):
            loader(place, train=False, channels=1)

    def test_bytes_read(self):
        place = f"{scratch.name}/bytes-read"
        save(f"{place}/val/a/0.npy", numpy.zeros((40, 120, 160), numpy.float32))
        for size in (16, 32, 48), (16, 64, 150), (8, 120, 160), (40, 3, 137):
            with loader(place, train=False, batch=1, image_size=size) as ours:
                epoch(ours)
                ratio = ours.stats()["bytes_read"] / (4 * size[0] * size[1] * size[2])
                self.assertTrue(1 <= ratio <= 1.2, (size, ratio))


def write_nifti(path, array, code, spacing=(1, 1, 1), slope=0, inter=0, order="<"):
    """[depth, height, width] or [channels, depth, height, width] as NIfTI-1; gzip by the name."""
    import gzip
    shape = array.shape[::-1] if array.ndim == 3 else array.shape[:0:-1] + array.shape[:1]
    dim = [len(shape), *shape] + [1] * (7 - len(shape))
    pixdim = [1, *spacing[::-1], 1, 1, 1, 1]
    header = struct.pack(f"{order}i10x18xihcB8hfffhhhh8ffffhBBffffii80s24shh6f4f4f4f16s4s", 348, 0, 0, b"r", 0, *dim, 0, 0, 0, 0,
                         code, array.itemsize * 8, 0, *pixdim, 352, slope, inter, 0, 0, 2, 0, 0, 0, 0, 0, 0, b"", b"", 0, 0,
                         *[0] * 6, *[0] * 12, b"", b"n+1\0")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    data = header + b"\0" * (352 - len(header)) + array.astype(array.dtype.newbyteorder(order)).tobytes()
    with (gzip.open if path.endswith(".gz") else open)(path, "wb") as file:
        file.write(data)


class Nifti(unittest.TestCase):
    def setUp(self):
        self.place = f"{scratch.name}/nifti-{self._testMethodName}"

    def load(self, **settings):
        try:
            return loader(self.place, train=False, **settings)
        except dl2.Error as error:
            if "libnifti" in str(error):
                self.skipTest("this build has no libnifti (Debian: libnifti-dev)")
            raise

    def test_nifti(self):
        array = (noise((8, 12, 14), 1)).astype(numpy.int16)
        write_nifti(f"{self.place}/val/a/a.nii", array, 4, (2.5, 0.5, 0.75))
        write_nifti(f"{self.place}/val/a/b.nii.gz", array, 4, (2.5, 0.5, 0.75), 2, -3)
        write_nifti(f"{self.place}/val/a/c.nii", array.astype(numpy.float32), 16, order=">")
        write_nifti(f"{self.place}/val/a/d.nii.gz", array.astype(numpy.float64), 64)
        for name in "abcd":
            extension = "nii.gz" if name in "bd" else "nii"
            write_nifti(f"{self.place}/val/a/{name}.mask.nii.gz", (array > 9).astype(numpy.uint8), 2)
        with self.load(mask="mask.nii.gz") as ours:
            self.assertEqual(ours.dataset.keys, [f"val/a/{name}" for name in "abcd"])
            self.assertEqual(ours.dataset.volume(0), {"channels": 1, "size": (8, 12, 14), "spacing": (2.5, 0.5, 0.75), "type": "int16"})
            for sample, (voxels, labels, _, patch) in epoch(ours).items():
                wanted = array.astype(numpy.float32) * (2 if sample == 1 else 1) - (3 if sample == 1 else 0)
                numpy.testing.assert_array_equal(voxels, shown(wanted[None], patch, PATCH), str(sample))
                numpy.testing.assert_array_equal(labels[None], shown((array > 9)[None], patch, PATCH))

    def test_channels(self):
        array = noise((3, 8, 12, 14), 2).astype(numpy.float32)
        write_nifti(f"{self.place}/val/a/a.nii.gz", array, 16)
        with self.load() as ours:
            voxels, _, _, patch = epoch(ours)[0]
            numpy.testing.assert_array_equal(voxels, shown(array, patch, PATCH))

    def test_damage(self):
        write_nifti(f"{self.place}/val/a/a.nii.gz", noise((8, 12, 14), 3).astype(numpy.float32), 16)
        for name, cut in ("short.nii.gz", -900), ("none.nii.gz", 100):
            whole = pathlib.Path(f"{self.place}/val/a/a.nii.gz").read_bytes()
            pathlib.Path(f"{self.place}/val/a/{name}").write_bytes(whole[:cut])
        other_sum = whole[:-8] + bytes([whole[-8] ^ 1]) + whole[-7:]
        pathlib.Path(f"{self.place}/val/a/sum.nii.gz").write_bytes(other_sum)
        with self.load(image_size=(8, 12, 14)) as ours:
            with self.assertWarns(UserWarning):
                self.assertEqual(len([1 for found in epoch(ours).values() if found[2] >= 0]), 1)
            said = "\n".join(map(str, ours.bad))
            self.assertEqual(len(ours.bad), 3)
            self.assertRegex(said, "sum.nii.gz: .*incorrect data check")

    def test_volumes_are_kept_decompressed(self):
        """Each is decompressed once, as far as there is room; no byte depends on that."""
        for n in range(6):
            array = noise((12, 14 + n, 16), n).astype(numpy.float32)
            write_nifti(f"{self.place}/train/a/{n}.nii.gz", array, 16)
            write_nifti(f"{self.place}/train/a/{n}.mask.nii.gz", (array > 40).astype(numpy.uint8), 2)
        settings = dict(mask="mask.nii.gz", seed=3, oversample_foreground=0.5, foreground_rule="component", train=True, repeats=2)
        sizes = [352 + 12 * (14 + n) * 16 * 4 for n in range(6)]
        self.load(mask="mask.nii.gz", split="train").close()

        def batches(ours):
            taken = []
            for number in range(3):
                ours.start_epoch(number)
                taken += [(numpy.array(b.images).tobytes(), numpy.array(b.masks).tobytes(), tuple(numpy.array(b.indices))) for b in ours]
            return taken

        wanted = None
        for limit, workers in (0, 1), (1 << 30, 1), (1 << 30, 4), (sizes[0] * 3, 1), (sizes[0] * 3, 3):
            with loader(self.place, workers=workers, **({} if limit == 1 << 30 else {"volume_cache_bytes": limit}), **settings) as ours:
                got = batches(ours)
                stats = ours.stats()
            wanted = wanted or got
            self.assertEqual(got, wanted, (limit, workers))
            if limit == 0:
                self.assertEqual((stats["decoded_hits"], stats["decompressed"]), (0, 72))
            elif limit == 1 << 30:
                if workers == 1:
                    self.assertEqual((stats["decoded_hits"], stats["decompressed"]), (30, 0))
                self.assertGreater(stats["memory"], sum(sizes))
            else:
                self.assertTrue(0 < stats["decoded_hits"] < 30 and 0 < stats["decompressed"] < 72, stats)
        # A file that changes is read anew; one that is damaged behind the patch is read up to there.
        with loader(self.place, image_size=(4, 10, 12), **settings) as ours:
            epoch_of = lambda number: {int(i): numpy.array(b.images)[k] for b in (ours.start_epoch(number), ours)[1] for k, i in enumerate(b.indices)}
            epoch_of(0)
            write_nifti(f"{self.place}/train/a/2.nii.gz", numpy.full((12, 16, 16), 77, numpy.float32), 16)
            self.assertTrue((epoch_of(1)[2] == 77).all())
            self.assertGreater(ours.stats()["decompressed"], 0)
        write_nifti(f"{self.place}/train/a/1.nii.gz", noise((60, 90, 100), 1).astype(numpy.float32), 16)
        write_nifti(f"{self.place}/train/a/1.mask.nii.gz", numpy.zeros((60, 90, 100), numpy.uint8), 2)
        whole = pathlib.Path(f"{self.place}/train/a/1.nii.gz").read_bytes()
        pathlib.Path(f"{self.place}/train/a/1.nii.gz").write_bytes(whole[:-8] + bytes([whole[-8] ^ 1]) + whole[-7:])
        for limit in 0, 1 << 30:
            with loader(self.place, train=False, split="train", image_size=(4, 10, 12), volume_cache_bytes=limit) as ours:
                for _ in range(2):
                    self.assertEqual(sum(found[2] >= 0 for found in epoch(ours).values()), 6)
                self.assertEqual(len(ours.bad), 0)

    def test_nibabel(self):
        try:
            import nibabel
        except ImportError:
            self.skipTest("nibabel is not installed (Debian: python3-nibabel)")
        array = noise((14, 12, 8), 4).astype(numpy.float32)
        os.makedirs(f"{self.place}/val/a")
        nibabel.save(nibabel.Nifti1Image(array, numpy.diag([0.5, 0.75, 2, 1])), f"{self.place}/val/a/a.nii.gz")
        with self.load() as ours:
            self.assertEqual(ours.dataset.volume(0)["spacing"], (2, 0.75, 0.5))
            voxels, _, _, patch = epoch(ours)[0]
            numpy.testing.assert_array_equal(voxels, shown(array.T[None], patch, PATCH))


class Refusals(unittest.TestCase):
    def test_settings(self):
        self.assertRaisesRegex(ValueError, "holds volumes", dl2.Loader, root, 2, 8)
        cases = (({"image_size": 8}, "normalization"), ({"dtype": "uint8"}, "floats"), ({"resize": 9, "train": False}, "resize"),
                 ({"flip": True}, "flip"), ({"augment": "jitter:hue=0.1"}, "jitter"), ({"cache_bytes": 9}, "cache_bytes"),
                 ({"window": (0, 1)}, "window"), ({"normalization": "window", "window": (0, float("inf"))}, "window .*finite"),
                 ({"oversample_foreground": 0.5}, "mask"), ({"mask": "mask.png"}, "mask.npy"),
                 ({"image_size": (4, 5, 6, 7)}, "4 numbers"), ({"frames": 2}, "frames"), ({"mean": (0.1,)}, "mean"),
                 ({"augment": "blur:kernel=3"}, "kernel"))
        for settings, text in cases:
            with self.subTest(settings), self.assertRaisesRegex((ValueError, TypeError), text):
                loader(**settings)

    def test_bad_files(self):
        place = f"{scratch.name}/bad"
        array = noise((8, 12, 14), 1).astype(numpy.float32)
        for n in range(6):
            save(f"{place}/val/a/{n}.npy", array)
            save(f"{place}/val/a/{n}.mask.npy", numpy.zeros((8, 12, 14), numpy.int32))
        broken = array.copy()
        broken[4, 6, 7] = numpy.nan
        save(f"{place}/val/a/1.npy", broken)
        with open(f"{place}/val/a/2.npy", "r+b") as file:
            file.truncate(4000)
        save(f"{place}/val/a/3.npy", numpy.asfortranarray(array))
        save(f"{place}/val/a/4.mask.npy", numpy.full((8, 12, 14), 256, numpy.int32))
        save(f"{place}/val/a/5.mask.npy", numpy.zeros((8, 12, 13), numpy.int32))
        save(f"{place}/val/a/6.npy", array)
        with loader(place, train=False, **LABELS) as ours, self.assertWarns(UserWarning):
            found = epoch(ours)
            self.assertEqual([n for n in found if found[n][2] == 0], [0])
            reasons = "finite", "truncated: 4000 of 5504 bytes", "Fortran", "256", "8x12x13", "no 'mask.npy'"
            self.assertEqual(len(ours.bad), 6)
            for n, (text, reason) in enumerate(zip(ours.bad, reasons)):
                self.assertIn(f"{n + 1}.", text)
                self.assertIn(reason, text)

    def test_folders_of_images_and_labels(self):
        place = f"{scratch.name}/decathlon"
        for folder in "imagesTr", "labelsTr":
            save(f"{place}/{folder}/1.npy", numpy.zeros((4, 4, 4)))
        data = dl2.Dataset(place, "train")
        self.assertEqual(len(data), 1)


class WithTorch(unittest.TestCase):
    @needs_torch
    def test_torch(self):
        from dl2.torch import Dataset, Loader
        ours = Loader(root, 3, PATCH, seed=1, mask="mask.npy", oversample_foreground=1, augment="flips")
        images, targets, sidecars = next(iter(ours))
        self.assertEqual((images.shape, images.dtype), ((3, 1) + PATCH, torch.float32))
        self.assertEqual(sidecars["masks"].shape, (3,) + PATCH)
        self.assertEqual(sidecars["patches"].shape, (3, 6))
        self.assertRaisesRegex(ValueError, "volumes", Dataset, root)
        self.assertRaisesRegex(ValueError, "normalization", Loader, root, 3, PATCH, mean=(0,), std=(1,))


if __name__ == "__main__":
    unittest.main()
