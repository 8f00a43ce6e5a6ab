#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The Python module, as it was built, against NumPy and PyTorch.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/python/module.sh"
need_python numpy python3-numpy
"$PYTHON3" "$srcdir/tests/python/test_dl2.py"
