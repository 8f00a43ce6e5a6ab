#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# --sensitivity: the covariance of the loss's gradient over the network's input, for dl2-transcode fit-tables.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"
make_images data 5 16 5 8
evaluate() { dl2-train --quiet -j 2 --threads 1 evaluate "$@"; }
expect 0 run -d data --out run
expect 0 evaluate run/$CK --val data --out plain
expect 0 evaluate run/$CK --val data --out with --sensitivity one.json
cmp plain/predictions-0.npy with/predictions-0.npy || fail "--sensitivity changes what is validated"
expect 0 evaluate run/$CK --val data --out with --sensitivity two.json
cmp one.json two.json || fail "two measurements differ"
is "$(field one.json schema) $(field one.json arch) $(field one.json lags)" "dl2-sensitivity/1 convnet 16" "the file"
if [ -n "${PYTHON3:-}" ] && "$PYTHON3" -c '' 2>/dev/null; then
    "$PYTHON3" - <<'END' || fail 'the covariance'
import json
file = json.load(open('one.json'))
lags, planes = file['lags'], file['covariance']
assert set(planes) <= {'luma', 'cb', 'cr'} and 'luma' in planes
for rows in planes.values():
    assert len(rows) == lags + 1 and all(len(row) == 2 * lags + 1 for row in rows)
    middle = rows[0][lags]
    assert middle > 0
    for shift in range(lags + 1):
        # Of a covariance: no shift is worth more, but for chance at shifts with few pairs; and both signs are the same.
        assert abs(rows[0][lags + shift] - rows[0][lags - shift]) <= 1e-6 * middle
        assert shift > 3 or abs(rows[shift][lags]) <= 1.5 * middle
    assert all(value == 0 for row in rows[8:] for value in row)  # of 8 pixels there are none
END
fi
if grep -q 'define HAVE_JPEG 1' "$builddir/config.h"; then
    expect 0 dl2-transcode --quiet fit-tables --sensitivity one.json data tables.json
    grep -q '"for": "network"' tables.json || fail "what tables were fitted to"
fi
expect 2 run -d data --out bad --sensitivity three.json
said "--sensitivity"
expect 2 evaluate run/$CK --val data --out bad --sensitivity three.json --ranks 2
said "--sensitivity works with one process only"
expect 2 evaluate run/$CK --val data --out bad --sensitivity three.json --amp bf16
said "--sensitivity needs --amp off"
[ ! -e three.json ] || fail "something was written"
exit 0
