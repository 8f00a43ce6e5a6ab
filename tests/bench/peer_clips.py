# SPDX-License-Identifier: BSD-2-Clause
"""Clips for clips.sh: makes them, and loads them as GulpIO and PyTorch do.

    peer_clips.py make FOLDER CLIPS        CLASS/CLIP/00000.jpg...: 40 frames of 176 x 100 each, which move
    peer_clips.py gulpio GULP EPOCHS       gulpio2's own reader, GulpDirectory[id, slice], with its decoder, whose
                                           DCT and chroma are coarse but fast
    peer_clips.py pillow FOLDER EPOCHS     a torch Dataset that opens the files of a clip by Pillow, in a DataLoader
    peer_clips.py opencv FOLDER EPOCHS     the same by OpenCV
    peer_clips.py exact GULP EPOCHS        the same with libjpeg's exact DCT and chroma, as Pillow, OpenCV and dl2 have
    peer_clips.py compare FOLDER GULP      how far those pixels are from dl2's, which must be little

Each loads batches of 10 clips: 18 frames, step 2, from the middle of the clip, the 84 x 84 pixels in the middle of each
frame, as uint8 [10, 18, 84, 84, 3]. Prints the frames for each CPU second of every epoch but the first.
"""
import glob
import os
import sys
import time

import numpy

FRAMES, STEP, SIDE, BATCH, LONG = 18, 2, 84, 10, 40


def make(folder, clips):
    from PIL import Image

    random = numpy.random.default_rng(0)
    for clip in range(int(clips)):
        place = f"{folder}/{'abcd'[clip % 4]}/{clip:05}"
        os.makedirs(place)
        scene = Image.fromarray(random.integers(0, 256, (20, 38, 3), dtype=numpy.uint8)).resize((304, 160), Image.Resampling.BICUBIC)
        texture = random.normal(0, 3, (160, 304, 1))
        scene = numpy.clip(numpy.asarray(scene) + texture, 0, 255).astype(numpy.uint8)
        across, down = random.integers(0, 4, 2)
        for frame in range(LONG):
            x, y = frame * across % 128, frame * down % 60
            Image.fromarray(scene[y:y + 100, x:x + 176]).save(f"{place}/{frame:05}.jpg", quality=85)


def middle(frame):
    y, x = (frame.shape[0] - SIDE) // 2, (frame.shape[1] - SIDE) // 2
    return frame[y:y + SIDE, x:x + SIDE]


def start_of(count):
    return max(count - (FRAMES - 1) * STEP - 1, 0) // 2


def exact(data):
    import simplejpeg

    return simplejpeg.decode_jpeg(data)


def gulpio_batches(folder, **options):
    from gulpio2 import GulpDirectory

    gulp = GulpDirectory(folder, **options)
    names = list(gulp.merged_meta_dict)
    for at in range(0, len(names), BATCH):
        clips = []
        for name in names[at:at + BATCH]:
            start = start_of(len(gulp.merged_meta_dict[name]["frame_info"]))
            frames, _ = gulp[name, slice(start, start + FRAMES * STEP, STEP)]
            clips.append(numpy.stack([middle(frame) for frame in frames]))
        yield numpy.stack(clips)


def file_batches(folder, read):
    import torch
    from torch.utils.data import DataLoader, Dataset

    torch.set_num_threads(1)

    class Clips(Dataset):
        def __init__(self):
            self.clips = [sorted(glob.glob(f"{clip}/*.jpg")) for clip in sorted(glob.glob(f"{folder}/*/*"))]

        def __len__(self):
            return len(self.clips)

        def __getitem__(self, index):
            files = self.clips[index]
            start = start_of(len(files))
            return torch.from_numpy(numpy.stack([middle(read(file)) for file in files[start:start + FRAMES * STEP:STEP]]))

    data = Clips()
    return lambda: DataLoader(data, BATCH)


def pillow(path):
    from PIL import Image

    with Image.open(path) as image:
        return numpy.asarray(image.convert("RGB"))


def opencv(path):
    import cv2

    return cv2.cvtColor(cv2.imread(path), cv2.COLOR_BGR2RGB)


def compare(folder, gulp):
    import dl2

    theirs = numpy.concatenate(list(gulpio_batches(gulp, jpeg_decoder=exact)))
    with dl2.Loader(dl2.Dataset(folder, "all", samples="clips"), BATCH, SIDE, train=False, resize=100, frames=FRAMES, frame_step=STEP) as loader:
        ours = numpy.concatenate([numpy.array(batch.images) for batch in loader])
    assert theirs.shape == ours.shape, (theirs.shape, ours.shape)
    difference = numpy.abs(theirs.astype(numpy.int16) - ours)
    print(f"gulpio2's pixels and dl2's differ by {difference.mean():.3f} gray levels in the mean, {difference.max()} at most")
    sys.exit(bool(difference.mean() > 0.5))


def main(what, folder, more):
    if what in ("make", "compare"):
        return {"make": make, "compare": compare}[what](folder, more)
    if what == "gulpio":
        batches = lambda: gulpio_batches(folder)
    elif what == "exact":
        batches = lambda: gulpio_batches(folder, jpeg_decoder=exact)
    else:
        batches = file_batches(folder, {"pillow": pillow, "opencv": opencv}[what])
    for epoch in range(int(more) + 1):
        start = time.process_time()
        frames = sum(len(batch) * FRAMES for batch in batches())
        if epoch:
            print(round(frames / (time.process_time() - start)))


main(*sys.argv[1:])
