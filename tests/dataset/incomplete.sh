#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A variant that is not finished is told as such by every program that opens it, or a part or a copy of it.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"

make_images data 3 6 2 8
expect 0 dl2-transcode --quiet --codec ppm data variants
variant=variants/ppm
expect 0 dl2-transcode identify $variant
[ ! -s "$work/err" ] || fail "it is finished, but: $(cat "$work/err")"
grep -q complete "$work/out" && fail "it is finished, but: $(cat "$work/out")"

# What a run that is stopped leaves: a part of the images, and the note that there is more to come.
rm $variant/train/c1/000.ppm
sed -i 's/"complete": true/"complete": false/' $variant/dl2-variant.json
# tells PATH PROGRAM...: says it once, whatever the program makes of it.
tells() {
    wanted="$1: this variant is not complete, so images are missing"
    shift
    "$@" >"$work/out" 2>"$work/err"
    [ "$(grep -cF -- "$wanted" "$work/err")" = 1 ] || { cat "$work/err" >&2; fail "not once: '$wanted': $*"; }
}
expect 0 dl2-transcode --quiet copy --container=tar $variant packed
for path in $variant packed; do
    tells $path dl2-transcode identify $path
    grep -qx "complete	no" "$work/out" || fail "identify: $(cat "$work/out")"
    [ "$(tail -n 1 "$work/out" | cut -f 1)" = fingerprint ] || fail "identify: $(cat "$work/out")"
    tells $path dl2-transcode --quiet survey $path
    tells $path dl2-transcode --quiet --codec ppm $path again-$path
    tells $path dl2-transcode --quiet copy $path copy-$path
    tells $path dl2-quality --quiet data $path
    tells $path dl2-load bench --quiet -b 4 -i 8 $path
    tells $path dl2-load check --quiet $path
    tells $path run -e 1 --out run-$path -d $path
done
for path in $variant/train $variant/train/c0 packed/train packed/train/shard-000000.tar; do
    tells $path dl2-load check --quiet $path
done
(cd $variant/train && tells . dl2-load check --quiet .) || exit 1
(cd packed/train && tells shard-000000.tar dl2-load check --quiet shard-000000.tar) || exit 1

# The next run finishes it, and so does the next copy.
expect 0 dl2-transcode --quiet --codec ppm data variants
expect 0 dl2-transcode --quiet copy --container=tar $variant packed
for path in $variant packed; do
    expect 0 dl2-load check --quiet $path
    [ ! -s "$work/err" ] || fail "it is finished, but: $(cat "$work/err")"
done
