# SPDX-License-Identifier: BSD-2-Clause
"""Videos: each frame that is loaded is the one of its number, with the crop and flip of its clip."""
import os
import shutil
import subprocess
import unittest

import numpy

import dl2
from small_dataset import run, scratch

root = f"{scratch.name}/videos"
FRAMES, SIDE = 40, 32
# Frame n is of one gray, 8 + 5 n.
GRAYS = "color=black:size=64x48:rate=25,geq=lum='16+219*(8+5*N)/255':cb=128:cr=128,format=yuv420p"
VIDEOS = {"run/1.mp4": "-c:v libx264 -qp 1 -bf 3 -g 9 -pix_fmt yuv420p",
          "run/2.mkv": "-c:v libx264 -qp 1 -bf 2 -x264-params open-gop=1:keyint=8 -pix_fmt yuv420p10le",
          "run/3.webm": "-c:v libvpx -b:v 3M -g 10",
          "walk/1.avi": "-c:v mpeg4 -q:v 1 -bf 2 -g 10",
          "walk/2.avi": "-c:v libx264 -qp 1 -bf 2 -g 10 -pix_fmt yuv420p",
          "walk/3.mp4": "-vf setparams=colorspace=bt709 -c:v libx264 -qp 1 -pix_fmt yuv420p"}


def ffmpeg(source, *options):
    """Makes a video; without a sanitizer's runtime, which is not for ffmpeg. False: it cannot."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    command = ["ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", source, *options]
    return subprocess.run(command, env=environment, check=False).returncode == 0


def make_videos():
    if not shutil.which("ffmpeg"):
        return "ffmpeg is not installed (Debian: ffmpeg)"
    for name, options in VIDEOS.items():
        os.makedirs(os.path.dirname(f"{root}/{name}"), exist_ok=True)
        if not ffmpeg(GRAYS, "-frames:v", str(FRAMES), *options.split(), f"{root}/{name}"):
            return f"ffmpeg cannot make {name}"
    try:
        next(iter(dl2.Loader(dl2.Dataset(root, "all"), 1, 8, frames=1)))
    except dl2.Error as error:
        if "found no FFmpeg libraries" in str(error):
            return "this build has no FFmpeg libraries"
        raise
    return None


missing = make_videos()


def numbers(loader, epoch=0):
    """By sample, the numbers of its frames, from their grays."""
    found = {}
    loader.start_epoch(epoch)
    for batch in loader:
        images = numpy.asarray(batch.images).astype(float)
        for sample, clip in zip(batch.indices, images):
            levels = clip.reshape(len(clip), -1)
            assert (levels.max(1) - levels.min(1)).max() <= 4, "not of one gray"
            found[int(sample)] = [int(round((level - 8) / 5)) for level in levels.mean(1)]
            assert abs((levels.mean(1) - 8) / 5 - numpy.array(found[int(sample)])).max() < 0.4, levels.mean(1)
    return [found[i] for i in range(len(VIDEOS))]


@unittest.skipIf(missing, missing)
class Videos(unittest.TestCase):
    def loader(self, **settings):
        return dl2.Loader(dl2.Dataset(root, "all"), **{"batch": 4, "image_size": SIDE, "workers": 2, **settings})

    def test_kind(self):
        dataset = dl2.Dataset(root, "all")
        self.assertEqual((dataset.kind, len(dataset)), ("video", len(VIDEOS)))
        with open(f"{root}/run/1.mp4", "rb") as file:
            self.assertEqual(dataset[0], (file.read(), 0))

    def test_frames_in_the_middle(self):
        for count, step in (1, 1), (4, 1), (5, 3), (40, 1):
            start = (FRAMES - (count - 1) * step - 1) // 2
            wanted = [start + step * k for k in range(count)]
            with self.loader(train=False, frames=count, frame_step=step) as loader:
                self.assertEqual(numbers(loader), [wanted] * len(VIDEOS))

    def test_clips_spread_over_a_video(self):
        for clips, count in (2, 10), (3, 20), (30, 20), (100, 5):
            starts = [(2 * i + 1) * (FRAMES - count + 1) // (2 * clips) for i in range(clips)]
            with self.loader(train=False, frames=count, val_clips=clips) as loader:
                self.assertEqual(numbers(loader), [[start + k for start in starts for k in range(count)]] * len(VIDEOS))

    def test_short_clips_repeat_the_last_frame(self):
        with self.loader(train=False, frames=50) as loader:
            self.assertEqual(numbers(loader), [[min(k, FRAMES - 1) for k in range(50)]] * len(VIDEOS))
            self.assertEqual(loader.stats()["short_clips"], len(VIDEOS))

    def test_what_is_unusual_is_counted(self):
        os.makedirs(f"{root}-unusual/walk", exist_ok=True)
        for name, options in {"1.mp4": "-vf setsar=2", "2.mp4": "-vf setparams=color_primaries=bt2020:color_trc=smpte2084"}.items():
            self.assertTrue(ffmpeg(GRAYS, "-frames:v", "5", *options.split(), "-c:v", "libx264", "-pix_fmt", "yuv420p",
                                   f"{root}-unusual/walk/{name}"))
        with dl2.Loader(dl2.Dataset(f"{root}-unusual", "all"), 2, SIDE, frames=2) as loader:
            list(loader)
            stats = loader.stats()
        self.assertEqual((stats["oblong"], stats["wide_color"], stats["interlaced"]), (1, 1, 0))

    def test_uniform(self):
        with self.loader(train=False, frames=7, frame_sampling="uniform") as loader:
            self.assertEqual(numbers(loader), [[(2 * k + 1) * FRAMES // 14 for k in range(7)]] * len(VIDEOS))

    def test_random_frames_are_those_of_clips_of_images(self):
        run("dl2-transcode", "--quiet", "frames", "--fps", "25", "-c", "ppm", root, f"{root}-frames")
        with self.loader(frames=5, frame_step=2) as videos, \
                dl2.Loader(dl2.Dataset(f"{root}-frames", "all"), 4, SIDE, workers=2, frames=5, frame_step=2) as clips:
            starts = set()
            for epoch in range(3):
                found = numbers(videos, epoch)
                self.assertEqual(found, numbers(clips, epoch))
                self.assertTrue(all(numpy.diff(clip).tolist() == [2] * 4 for clip in found))
                starts |= {clip[0] for clip in found}
            self.assertGreater(len(starts), 5)

    def test_one_crop_and_flip_for_a_clip(self):
        """A ramp from left to right tells the crop: it is the same in all frames."""
        ramp = f"{root}-ramp"
        os.makedirs(f"{ramp}/a")
        for n in range(4):
            ffmpeg("color=black:size=64x48:rate=25,geq=lum='16+3*X':cb=128:cr=128", "-frames:v", "6", "-c:v", "libx264",
                   "-qp", "1", "-pix_fmt", "yuv444p", f"{ramp}/a/{n}.mp4")
        with dl2.Loader(dl2.Dataset(ramp, "all"), 4, SIDE, frames=3) as loader:
            shown = []
            for batch in loader:
                for clip in numpy.asarray(batch.images).astype(int):
                    self.assertLessEqual(abs(clip - clip[0]).max(), 3)
                    shown.append((clip[0, SIDE // 2, 0, 0], clip[0, SIDE // 2, -1, 0]))
            self.assertEqual(len(set(shown)), 4)
