#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# dl2-hub copies Parquet files into shards and makes twins of them, which `datasets` opens. DL2_PEER_PYTHON names a Python with it:
#   python3 -m venv V && V/bin/pip install pillow datasets && DL2_PEER_PYTHON=V/bin/python make check
# HUB_KILLS is how many runs of each command are killed [3].
. "$srcdir/tests/lib.sh"
plainly
emulated && skip "the Python with pyarrow is of another processor"
[ -n "${DL2_PEER_PYTHON:-}" ] || skip 'DL2_PEER_PYTHON names no Python with datasets (PyPI)'
"$DL2_PEER_PYTHON" -c 'import datasets, PIL' 2>/dev/null || skip "$DL2_PEER_PYTHON lacks datasets or pillow"
"$DL2_PEER_PYTHON" -c 'import pyarrow; assert int(pyarrow.__version__.split(".")[0]) >= 21' 2>/dev/null ||
    skip "$DL2_PEER_PYTHON has a pyarrow older than 21"
export HF_HOME="$work/hf" HF_HUB_DISABLE_TELEMETRY=1 no_proxy=127.0.0.1
cd "$work" || exit 99
"$DL2_PEER_PYTHON" "$srcdir/tests/python/test_hub.py" "$builddir/dl2-hub"
