#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# dl2.torch with another PyTorch than Debian's, such as PyPI's latest: DL2_TORCH_PYTHON is a Python (3.11 or later)
# that has it and NumPy.
. "$srcdir/tests/lib.sh"
case $CC in *-fsanitize=*) skip "a sanitizer's runtime is not for PyPI's PyTorch" ;; esac
. "$srcdir/tests/python/module.sh"
"${DL2_TORCH_PYTHON:-false}" -c 'import numpy, torch' 2>/dev/null ||
    skip "DL2_TORCH_PYTHON names no Python with NumPy and another PyTorch (PyPI)"
"$DL2_TORCH_PYTHON" -c 'import torch; print("PyTorch", torch.__version__)'
exec "$DL2_TORCH_PYTHON" "$srcdir/tests/python/test_torch.py"
