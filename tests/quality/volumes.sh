#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# dl2-quality on volumes, against NumPy; what has no effect on them, and what does not fit, is refused by name.
. "$srcdir/tests/lib.sh"
need_python numpy python3-numpy
volumes() { expect 0 "$PYTHON3" "$srcdir/tests/quality/volumes.py" "$1" "$work" "$work/scores.json"; }
volumes make
expect 0 dl2-quality --json "$work/scores.json" --csv "$work/scores.csv" "$work/reference" "$work/variant"
for line in '5 volumes$' 'PSNR .* dB\|PSNR ' '1 identical to the reference' '1 too small for SSIM' "reference volume's range"; do
    grep -q "$line" "$work/out" || fail "no '$line': $(cat "$work/out")"
done
is "$(wc -l <"$work/scores.csv")" 6 "lines of CSV"
volumes check
if "$PYTHON3" -c 'import jsonschema' 2>/dev/null; then
    expect 0 "$PYTHON3" -c 'import json, jsonschema, sys
jsonschema.validate(json.load(open(sys.argv[2])), json.load(open(sys.argv[1])))' \
        "$srcdir/docs/formats/dl2-quality-1.schema.json" "$work/scores.json"
fi

# The same by parts, whatever the workers.
for part in 1 2; do
    expect 0 dl2-quality -j 3 --quiet --part $part/2 --json "$work/parts.json" "$work/reference" "$work/variant"
done
sed 's/"[a-z_]*cpu_seconds": [^,]*//' "$work/scores.json" >"$work/one"
sed 's/"[a-z_]*cpu_seconds": [^,]*//' "$work/parts.json" >"$work/two"
cmp "$work/one" "$work/two" || fail "parts score otherwise"

for option in '--metrics ssim' '--below ssim=0.5' "heatmap --out $work/maps" "--codec-compare $work/viewer" '--background ffffff' \
    '--input-size 32 --metrics input_psnr'; do
    # shellcheck disable=SC2086
    expect 1 dl2-quality $option "$work/reference" "$work/variant"
    said 'has no effect on volumes'
done

# Another size, a damaged file and images are named.
mkdir -p "$work/other/a" "$work/other/b" "$work/photos/a"
cp "$work/reference/b/same.npy" "$work/other/a/int.npy"
head -c 500 "$work/reference/a/float.npy" >"$work/other/a/float.npy"
picture "$work/photos/a/int.ppm" 24 30 1
expect 1 dl2-quality "$work/reference" "$work/other" "$work/photos"
said 'other: a/int: '"$work"'/other/a/int.npy: is of 3x20x20 voxels and 1 channels, its reference of 5x30x24 and 1'
said 'other/a/float.npy: it is truncated'
said 'other: b/thin: missing'
said 'photos: only one of it and the reference holds volumes'
expect 1 dl2-quality --max-pixels 500 "$work/reference" "$work/variant"
said 'slices of 24x30 pixels are more than --max-pixels'
