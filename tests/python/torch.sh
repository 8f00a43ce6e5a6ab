#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# dl2.torch, and dl2.study.sensitivity.
. "$srcdir/tests/lib.sh"
case $CC in *-fsanitize=thread*) skip "PyTorch's threads are not built for ThreadSanitizer" ;; esac
. "$srcdir/tests/python/module.sh"
need_python torch python3-torch
need_python numpy python3-numpy
"$PYTHON3" "$srcdir/tests/python/test_torch.py" || exit 1
"$PYTHON3" "$srcdir/tests/python/test_sensitivity.py"
