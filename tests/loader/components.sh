# SPDX-License-Identifier: BSD-2-Clause
# Connected components of labels are scipy's: label() of each class, with the boxes of find_objects().
. "$srcdir/tests/lib.sh"
need_python numpy python3-numpy
need_python scipy python3-scipy
cd "$work" || exit 99
"$PYTHON3" - "$builddir/tests/loader/show_components" <<'PY' || fail "not scipy's components"
import subprocess, sys
import numpy
from scipy import ndimage

random = numpy.random.default_rng(7)


def wanted(labels, fill):
    boxes = []
    for value in sorted(set(numpy.unique(labels)) - {0, fill}):
        for box in ndimage.find_objects(ndimage.label(labels == value)[0]):
            boxes.append((int(value), *(axis.start for axis in box), *(axis.stop for axis in box)))
    return boxes


def check(labels, fill=0):
    numpy.save("labels.npy", labels)
    lines = subprocess.run([sys.argv[1], "labels.npy", str(fill)], capture_output=True, text=True, check=True).stdout.splitlines()
    found = [tuple(map(int, line.split())) for line in lines]
    classes = [box[0] for box in found]
    assert classes == sorted(classes), "not by class"
    boxes = wanted(labels, fill)
    kept = 0
    for value in set(box[0] for box in boxes):
        here, theirs = [b for b in found if b[0] == value], [b for b in boxes if b[0] == value]
        if len(theirs) <= 1024:
            assert sorted(here) == sorted(theirs), (labels.shape, value, len(here), len(theirs))
        else:  # an even part of them
            assert 512 <= len(here) <= 1024 and not set(here) - set(theirs), (labels.shape, value, len(here), len(theirs))
            assert max(b[1] for b in here) >= 0.8 * (len(labels) - 1) >= 0.2 * (len(labels) - 1) >= min(b[1] for b in here)
        kept += len(here)
    assert kept == len(found)
    return len(boxes)


total = 0
# Smooth noise has large components of all forms; a scan's 65,536 voxels end within rows and slices.
for shape in (40, 60, 70), (1, 90, 80), (90, 1, 80), (70, 60, 1), (3, 300, 301), (130, 50, 51):
    for rough in 0, 1, 2:
        noise = ndimage.gaussian_filter(random.normal(size=shape), rough) if rough else random.normal(size=shape)
        ranks = noise / noise.std()
        total += check(numpy.digitize(ranks, (0.6, 1.2, 1.8)).astype(numpy.uint8))
total += check((random.random((60, 50, 40)) < 0.31).astype(numpy.uint8))  # just where all of it joins
spiral = numpy.zeros((30, 31, 33), numpy.uint8)  # parts that join only in later slices
for z in range(30):
    spiral[z, 3:28, 2 + 3 * (z % 2):30:6] = 1
    spiral[z, 3 if z % 4 < 2 else 27, 2:30] = 1 + (z % 7 == 0)
total += check(spiral)
comb = numpy.zeros((8, 9, 40), numpy.uint8)
comb[:7, 4, ::2] = 5
comb[7, 4, :] = 5
assert check(comb) == 1 and check(comb[::-1].copy()) == 1
assert check(numpy.zeros((5, 6, 7), numpy.uint8)) == 0 and check(numpy.full((5, 6, 7), 9, numpy.uint8)) == 1
full = random.integers(0, 256, (20, 30, 40)).astype(numpy.uint8)
total += check(full) + check(full, 255)
dots = numpy.zeros((60, 61, 62), numpy.uint8)  # more than are kept, of one class
dots[::2, ::2, ::2] = 1
dots[31, 31, 31] = 2
total += check(dots)
assert total > 50000, total
PY
# Labels that are none end the scan.
"$PYTHON3" -c 'import numpy; numpy.save("wrong.npy", numpy.full((3, 4, 5), 300, numpy.int16))'
expect 1 "$builddir/tests/loader/show_components" wrong.npy 0
said 'wrong.npy'
