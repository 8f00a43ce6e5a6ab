#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# dl2.torch in Lightning and accelerate, of which today's need a newer Python or PyTorch than Debian 12's:
# DL2_FRAMEWORKS_PYTHON is a Python (3.11 or later) that has NumPy, PyTorch and at least one of them:
#   python3 -m venv V && V/bin/pip install numpy torch lightning accelerate && DL2_FRAMEWORKS_PYTHON=V/bin/python make check
# That is 5.5 GB, since PyPI's PyTorch brings CUDA, also for a CPU alone.
. "$srcdir/tests/lib.sh"
case $CC in *-fsanitize=*) skip "a sanitizer's runtime is not for PyPI's PyTorch" ;; esac
. "$srcdir/tests/python/module.sh"
python=${DL2_FRAMEWORKS_PYTHON:-$PYTHON3}
"$python" -c 'import numpy, torch, lightning' 2>/dev/null || "$python" -c 'import numpy, torch, accelerate' 2>/dev/null ||
    skip "$python has neither Lightning nor accelerate with PyTorch and NumPy (DL2_FRAMEWORKS_PYTHON names another)"
exec "$python" "$srcdir/tests/python/test_frameworks.py"
