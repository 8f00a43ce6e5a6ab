# SPDX-License-Identifier: BSD-2-Clause
"""Clips: which frames come, and that each is what Pillow makes of it with the crop and flip of its clip."""
import json
import os
import pathlib
import unittest

import numpy

import dl2
from small_dataset import needs_torch, pillow, run, scratch, torch, write_picture

CLASSES, CLIPS, SIDE = ("run", "walk"), 5, 24
root = f"{scratch.name}/clips"


def count_of(label, n):
    return 2 + 3 * n + label


def make_clips():
    """Clips of 2, 5, 8... frames, 1.ppm to 14.ppm, whose order is not that of their names."""
    for label, name in enumerate(CLASSES):
        for n in range(CLIPS):
            width, height = 40 + 3 * n, 44 - 2 * n
            for frame in range(count_of(label, n)):
                write_picture(f"{root}/{name}/c{n}/{frame + 1}.ppm", width, height, 10 * frame, 10 * frame + 60, 100 * n + frame)


make_clips()
for container in "gulp", "tar":
    run("dl2-transcode", "--quiet", "copy", f"--container={container}", root, f"{root}-{container}")
PLACES = root, f"{root}-gulp", f"{root}-tar"


def clips(place=root, **settings):
    return dl2.Loader(dl2.Dataset(place, "all"), **{"batch": 4, "image_size": SIDE, "frames": 4, "workers": 2, **settings})


def epoch(loader):
    """{sample: (frames, label, crop)}, with what comes once."""
    found = {}
    for batch in loader:
        for i, sample in enumerate(numpy.asarray(batch.indices)):
            assert int(sample) not in found, "a clip came twice"
            found[int(sample)] = (numpy.array(batch.images)[i], int(numpy.asarray(batch.labels)[i]),
                                  tuple(numpy.asarray(batch.crop_boxes)[i]))
    return found


def frames_shown(Image, dataset, sample, images, crop):
    """Which frames these are: each is resized alike from the crop that the loader tells."""
    left, top, right, bottom, flipped = (float(value) for value in crop)
    folder = os.path.dirname(dataset.sample(sample).path)
    theirs = []
    for frame in range(len(os.listdir(folder))):
        image = Image.open(f"{folder}/{frame + 1}.ppm").crop((round(left), round(top), round(right), round(bottom)))
        image = image.resize((SIDE, SIDE), Image.Resampling.BILINEAR)
        if flipped:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        theirs.append(numpy.asarray(image, numpy.int16))
    shown = []
    for ours in images:
        same = [i for i, image in enumerate(theirs) if numpy.abs(ours - image).max() <= 1]
        assert len(same) == 1, (folder, crop, same)
        shown += same
    return shown


class Frames(unittest.TestCase):
    def test_dataset(self):
        for place in PLACES:
            dataset = dl2.Dataset(place, "all")
            self.assertEqual(dataset.kind, "clip")
            self.assertEqual(dataset.layout.split(",")[0], "10 clips of 2 to 15 frames in 2 classes")
            self.assertEqual(dataset.keys, [f"{name}/c{n}" for name in CLASSES for n in range(CLIPS)])
            self.assertEqual(dataset.targets, [0] * CLIPS + [1] * CLIPS)
            frames, label = dataset[3]
            self.assertEqual(label, 0)
            wanted = [pathlib.Path(f"{root}/run/c3/{i + 1}.ppm").read_bytes() for i in range(count_of(0, 3))]
            self.assertEqual(frames, wanted)
            self.assertEqual(dataset.sample(3).bytes, sum(map(len, wanted)))
            for part in (":", "1:", ":-1", "::-1", "2:10:2", "-3:", "5:2", "9:1:-3", "100:", "-100::4", ":3", "::100"):
                bounds = slice(*(int(number) if number else None for number in part.split(":")))
                self.assertEqual(dataset.frames(f"run/c3[{part}]"), wanted[bounds], part)
            self.assertEqual(dataset.frames("run/c3"), wanted)
            self.assertEqual(dataset.frames("run/c3[-2]"), [wanted[-2]])
            for wrong in ("run/c3[]", "run/c3[11]", "run/c3[-12]", "run/c3[1:2:0]", "run/c3[a:b]", "run/c9[1]", "run/c3[1:2:3:4]", "run/c3[1",
                          "run/c3[ 1:]", "run/c3[99999999999999999999:]"):
                with self.assertRaises(ValueError, msg=wrong):
                    dataset.frames(wrong)

    def test_kinds(self):
        images = dl2.Dataset(root, "all", samples="images")
        self.assertEqual((images.kind, len(images)), ("image", 85))
        with self.assertRaisesRegex(ValueError, "samples"):
            dl2.Dataset(root, samples="films")
        with self.assertRaisesRegex(ValueError, "holds clips: set frames"):
            clips(frames=0)
        with self.assertRaisesRegex(ValueError, "holds images"):
            dl2.Loader(images, 4, SIDE, frames=4)
        for wrong in ({"mask": "png"}, {"decoded_cache_bytes": 1 << 20}, {"frame_step": 2, "frame_sampling": "uniform"},
                      {"train": False, "frame_sampling": "random"}, {"val_clips": 3}, {"train": False, "frames": 0, "val_clips": 3},
                      {"train": False, "val_clips": 3, "frame_sampling": "uniform"}, {"train": False, "val_clips": 257}, {"frames": 0, "frame_step": 2}, {"frames": 1025}, {"frame_sampling": "all"}):
            with self.assertRaises(ValueError, msg=wrong):
                clips(**wrong)

    def test_which_frames_and_their_pixels(self):
        Image = pillow()
        for settings in {}, {"frame_step": 2}, {"frame_sampling": "center"}, {"frame_sampling": "uniform"}, {"frames": 1}:
            with clips(seed=5, **settings) as loader:
                starts = set()
                for number in range(3):
                    loader.start_epoch(number)
                    shown = epoch(loader)
                    self.assertEqual(sorted(shown), list(range(10)))
                    for sample, (images, label, crop) in shown.items():
                        got = frames_shown(Image, loader.dataset, sample, images, crop)
                        self.assertEqual(label, sample // CLIPS)
                        starts.add((sample, got[0]))
                        self.check_frames(got, count_of(label, sample % CLIPS), settings)
                several = settings.get("frame_sampling", "random") == "random" or settings.get("frames") == 1
                self.assertEqual(len(starts) > 10, several, settings)
                stats = loader.stats()
                self.assertEqual(stats["frames"], 30 * settings.get("frames", 4))
                self.assertEqual(stats["short_clips"], 3 * sum(count_of(label, n) < self.span(settings) for label in (0, 1) for n in range(CLIPS)))

    @staticmethod
    def span(settings):
        frames = settings.get("frames", 4)
        return frames if settings.get("frame_sampling") == "uniform" else (frames - 1) * settings.get("frame_step", 1) + 1

    def check_frames(self, got, count, settings):
        frames, step = settings.get("frames", 4), settings.get("frame_step", 1)
        if settings.get("frame_sampling") == "uniform":
            wanted = [int((i + 0.5) * count / frames) for i in range(frames)]
        else:
            start = (count - self.span(settings)) // 2 if settings.get("frame_sampling") == "center" else got[0]
            if count < self.span(settings):
                start = 0
            wanted = [min(max(start, 0) + i * step, count - 1) for i in range(frames)]
        self.assertEqual(got, wanted, settings)

    def test_validation(self):
        """Each frame is what the same image alone would be."""
        images = dl2.Dataset(root, "all", samples="images")
        with dl2.Loader(images, 16, SIDE, train=False) as loader:
            alone = {key: image for key, image in zip(images.keys, (pixels for batch in loader for pixels in numpy.array(batch.images)))}
        for val_clips, more in (1, {}), (3, {}), (3, {"layout": "NCHW"}), (3, {"batching": "completion"}), (10, {"io": "direct"}):
            with clips(train=False, val_clips=val_clips, **more) as loader:
                shown, stats = epoch(loader), loader.stats()
            spare = {(label, n): max(count_of(label, n) - 4, 0) for label in (0, 1) for n in range(CLIPS)}
            many = val_clips > 1
            self.assertEqual(stats["frames"], 10 * 4 * val_clips)
            self.assertEqual(stats["equal_clips"], sum(many and count < val_clips - 1 for count in spare.values()))
            starts = {key: [(2 * i + 1) * (count + 1) // (2 * val_clips) if many else count // 2 for i in range(val_clips)] for key, count in spare.items()}
            self.assertEqual(stats["overlapping_clips"], sum(many and min(numpy.diff(starts[key])) < 4 for key in starts))
            for sample, (frames, label, _) in shown.items():
                n = sample % CLIPS
                frames = frames.transpose(1, 2, 3, 0) if "layout" in more else frames
                self.assertEqual(len(frames), 4 * val_clips)
                for k, frame in enumerate(frames):
                    key = f"{CLASSES[label]}/c{n}/{min(starts[label, n][k // 4] + k % 4, count_of(label, n) - 1) + 1}"
                    numpy.testing.assert_array_equal(frame, alone[key], f"{key} {val_clips} {more}")

    def test_layouts_and_types(self):
        augment = "randaugment:n=2:m=9"
        for more in {}, {"augment": augment}, {"dtype": "float32", "mean": (0.4, 0.5, 0.6), "std": (0.2, 0.3, 0.4)}, {"channels": 1}:
            for batching in "strict", "completion":
                settings = {"seed": 3, "batching": batching, **more}
                with clips(**settings) as nhwc, clips(layout="NCHW", **settings) as nchw:
                    first, second = epoch(nhwc), epoch(nchw)
                self.assertEqual(first[0][0].shape, (4, SIDE, SIDE, more.get("channels", 3)))
                self.assertEqual(second[0][0].shape, (more.get("channels", 3), 4, SIDE, SIDE))
                for sample, (images, _, crop) in first.items():
                    numpy.testing.assert_array_equal(images.transpose(3, 0, 1, 2), second[sample][0])
                    self.assertEqual(crop, second[sample][2])

    def test_same_augmentation(self):
        """Frames that are the same image stay the same, whatever is drawn."""
        with clips(frames=8, frame_step=2, seed=1, augment="randaugment:n=3:m=9,erase:p=1") as loader:
            images = epoch(loader)[0][0]
        for i in range(2, 8):
            numpy.testing.assert_array_equal(images[1], images[i])

    def test_same_for_any_workers_io_and_container(self):
        wanted = None
        for place in PLACES:
            for more in {"workers": 1, "io": "direct"}, {"workers": 3, "io": "threads"}, {"workers": 2, "cache_bytes": 1 << 24}, {"workers": 3, "ahead": 2}:
                with clips(place, seed=9, frame_step=3, **more) as loader:
                    got = []
                    for number in range(2):
                        loader.start_epoch(number)
                        got += [(numpy.array(b.images).tobytes(), tuple(numpy.array(b.indices))) for b in loader]
                wanted = wanted or got
                self.assertEqual(got, wanted, (place, more))

    def test_resume(self):
        for batching in "strict", "completion":
            with clips(seed=2, batching=batching) as loader:
                first = next(iter(loader))
                before = [int(i) for i in numpy.asarray(first.indices)]
                state = json.loads(json.dumps(loader.state()))
                del first
            with clips(seed=2, batching=batching) as loader:
                loader.resume(state)
                after = epoch(loader)
            self.assertEqual(sorted(before + list(after)), list(range(10)))
            with clips(seed=2) as loader:
                whole = epoch(loader)
            for sample, (images, _, _) in after.items():
                numpy.testing.assert_array_equal(images, whole[sample][0])
            with self.assertRaisesRegex(ValueError, "frames"):
                clips(seed=2, batching=batching, frames=5).resume(state)

    def test_bad_frames(self):
        folder = f"{scratch.name}/bad-clips"
        for n in range(4):
            for frame in range(4):
                write_picture(f"{folder}/a/c{n}/{frame}.ppm", 30 + (n == 1 and frame == 2), 30, 0, 200, n)
                write_picture(f"{folder}/b/c{n}/{frame}.ppm", 30, 30, 0, 200, n)
        with open(f"{folder}/a/c3/1.ppm", "wb") as file:
            file.write(b"P6\n30 30\n255\n")
        dataset = dl2.Dataset(folder, "all")
        self.assertEqual(len(dataset), 8)
        with dl2.Loader(dataset, 8, SIDE, train=False, frames=4) as loader:
            labels = numpy.array(next(iter(loader)).labels)
            self.assertEqual(list(labels), [0, -1, 0, -1, 1, 1, 1, 1])
            self.assertIn("a/c1/2.ppm: decode: is of 31x30 where the clip's first frame", loader.bad[0])
            self.assertIn("a/c3/1.ppm", loader.bad[1])

    @needs_torch
    def test_torch(self):
        import dl2.torch as dt
        with clips(train=False, layout="NCHW") as loader:
            wanted = epoch(loader)
        for layout, axes in ("NCHW", (0, 1, 2, 3)), ("NHWC", (3, 0, 1, 2)), ("channels_last", (0, 1, 2, 3)):
            loader = dt.Loader(dl2.Dataset(root, "all"), 4, SIDE, train=False, dtype="uint8", layout=layout, frames=4)
            at = 0
            for images, targets in loader:
                for image, target in zip(images, targets):
                    numpy.testing.assert_array_equal(image.permute(*axes).numpy(), wanted[at][0])
                    self.assertEqual(int(target), wanted[at][1])
                    at += 1
            self.assertEqual(at, 10)
        with self.assertRaisesRegex(ValueError, "holds clips"):
            dt.Dataset(root, "all")
        self.assertEqual(len(dt.Dataset(root, "all", samples="images")), 85)
        with self.assertRaisesRegex(ValueError, "mixup and cutmix mix images, not clips"):
            dt.Loader(dl2.Dataset(root, "all"), 4, SIDE, cutmix=1, frames=4)

    def test_lists_name_the_classes(self):
        """Folders of frames below a folder, as Something-Something's: lists say their classes and splits."""
        for n in range(3):
            for frame in 1, 2:
                write_picture(f"{scratch.name}/ids/{n}/{frame}.ppm", 30, 30, 0, 90, n)
        for split, text in ("train", "0;walk\n2;run\n"), ("val", "1;walk\n"):
            pathlib.Path(f"{scratch.name}/{split}.csv").write_text(text)
        lists = f"train={scratch.name}/train.csv,val={scratch.name}/val.csv"
        train = dl2.Dataset(f"{scratch.name}/ids", labels=lists)
        self.assertEqual((list(train.classes), list(train.keys), list(train.targets)), (["run", "walk"], ["train/run/2", "train/walk/0"], [0, 1]))
        self.assertEqual(list(dl2.Dataset(f"{scratch.name}/ids", "val", labels=lists).targets), [1])
        with self.assertRaises(FileNotFoundError):
            dl2.Dataset(f"{scratch.name}/ids", labels=f"{scratch.name}/none.csv")


if __name__ == "__main__":
    unittest.main()
