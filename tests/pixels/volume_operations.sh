#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Operations on volumes are what NumPy makes of the same voxels.
. "$srcdir/tests/lib.sh"
need_python numpy python3-numpy
expect 0 "$PYTHON3" "$srcdir/tests/pixels/compare_volume_operations.py" "$builddir/tests/pixels/show_volume_operation"
cat "$work/out"
