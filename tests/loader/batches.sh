#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Batches are what Pillow and torchvision make of the same images, within one gray level.
. "$srcdir/tests/lib.sh"
need_python PIL python3-pil
dl2-load --version | grep -q '^  png:' || skip "this build can't read PNG, which Pillow writes here (Debian: libpng-dev)"
mkdir "$work/images"
expect 0 "$PYTHON3" "$srcdir/tests/loader/compare_batches.py" "$builddir/tests/loader/show_batches" "$work/images"
cat "$work/out"
