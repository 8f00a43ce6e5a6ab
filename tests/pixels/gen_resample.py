# SPDX-License-Identifier: BSD-2-Clause
"""gen_resample.py >resample_golden.h: values for test_volume_resample.c, by SciPy and PyTorch."""
import numpy
import scipy.ndimage
import torch

OLD, NEW = (5, 7, 6), (8, 4, 9)
z, y, x = numpy.mgrid[0:OLD[0], 0:OLD[1], 0:OLD[2]]
voxels = ((37 * z * z + 11 * y + 53 * x * y) % 101).astype(numpy.float32)
labels = ((z + y * x) // 3 % 4).astype(numpy.uint8)
factors = [n / o for n, o in zip(NEW, OLD)]


def zoom(array, order):
    return scipy.ndimage.zoom(array, factors, order=order, mode="mirror")


def print_array(kind, name, values, form):
    print(f"static const {kind} {name}[] = {{")
    texts = [form % v for v in values.ravel()]
    line = "   "
    for text in texts:
        if len(line) + len(text) > 96:
            print(line)
            line = "   "
        line += f" {text},"
    print(line + "\n};")


shares = numpy.stack([zoom((labels == c).astype(float), 1) for c in range(4)])
top = -numpy.sort(-shares, 0)
tied = numpy.where(top[0] - top[1] < 1e-9, 255, shares.argmax(0))
mlperf = torch.nn.functional.interpolate(torch.from_numpy(labels)[None, None].float(), size=NEW, mode="nearest")
mlperf_linear = torch.nn.functional.interpolate(torch.from_numpy(voxels)[None, None], size=NEW, mode="trilinear",
                                                align_corners=True)[0, 0].numpy()
assert abs(mlperf_linear - zoom(voxels, 1)).max() < 1e-4  # MLPerf's resampling of images is order 1
print("/* SPDX-License-Identifier: BSD-2-Clause */")
print(f"/* Made by gen_resample.py: SciPy {scipy.__version__}, PyTorch {torch.__version__.split('+')[0]}. 255: a tie of "
      "classes. */")
print_array("float", "order_1", zoom(voxels, 1), "%.4fF")
print_array("float", "order_3", zoom(voxels, 3), "%.4fF")
print_array("uint8_t", "labels_0", zoom(labels, 0), "%d")
print_array("uint8_t", "labels_1", tied, "%d")
print_array("uint8_t", "labels_mlperf", mlperf[0, 0].numpy().astype(int), "%d")
