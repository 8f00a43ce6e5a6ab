#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The Python module, as it was built, against dl2-load, NumPy and PyTorch. Says which tests were left out, and why, for
# want of PyTorch or torchvision.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/python/module.sh"
need_python numpy python3-numpy
PYTHONPATH=$PYTHONPATH:$srcdir/tests/python "$PYTHON3" -m unittest -v test_images test_boxes test_epochs test_arrays test_dataset test_calls test_clips test_videos test_volumes test_joined
