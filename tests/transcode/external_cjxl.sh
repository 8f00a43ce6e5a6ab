#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A real encoder as an external codec: libjxl's cjxl and djxl give what this build's own JPEG XL codec gives.
. "$srcdir/tests/lib.sh"
need cjxl libjxl-tools
need djxl libjxl-tools
grep -q 'define HAVE_PNG 1' "$builddir/config.h" || skip "this build has no PNG"
"$builddir/tests/transcode/images" tree "$work/src" 6 || exit 99
expect 0 dl2-transcode --quiet -j 2 --codec 'cjxl=cjxl %i %o -q %q; djxl %i %o' --q 20,90 "$work/src" "$work/v"
score() { # VARIANT: "BYTES PSNR" of it
    expect 0 dl2-quality --quiet --decoder 'cjxl=djxl %i %o' --json "$work/q.json" "$work/src" "$work/v/$1"
    "${PYTHON3:-python3}" - "$work/q.json" <<'PY'
import json, sys
v = json.load(open(sys.argv[1]))["variants"][0]
print(v["images"], v["bytes"], v["metrics"]["psnr_rgb"]["mean"])
PY
}
low=$(score cjxl-20) high=$(score cjxl-90)
echo "$low $high" | awk '{ exit !($1 == 6 && $4 == 6 && $2 < $5 && $3 + 3 < $6 && $3 > 10) }' || fail "quality 20: $low, 90: $high"
expect 0 dl2-load bench --quiet -i 16 -e 1 --decoder 'cjxl=djxl %i %o' "$work/v/cjxl-90"
if grep -q 'define HAVE_JXL 1' "$builddir/config.h"; then
    # Behind the header lies a JPEG XL file, which decodes to the same pixels in this process.
    mkdir -p "$work/bare/train/rose"
    for file in "$work"/v/cjxl-90/train/rose/*.dl2x; do
        name=${file##*/}
        tail -c +21 "$file" >"$work/bare/train/rose/${name%.dl2x}.jxl"
        mkdir -p "$work/wrapped/train/rose" && cp "$file" "$work/wrapped/train/rose/"
    done
    expect 0 dl2-quality --quiet --decoder 'cjxl=djxl %i %o' --csv "$work/q.csv" "$work/bare" "$work/wrapped"
    [ "$(grep -c ',scored,' "$work/q.csv")" -ge 2 ] || fail "not compared: $(cat "$work/q.csv")"
fi
