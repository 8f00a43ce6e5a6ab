#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Images in formats that this build cannot read are counted, and classes that have no others are
# named, whenever a program or Python opens them.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"

make_images data 3 6 2 8
for i in 0 1 2 3 4 5; do
    printf '\0\0\0\030ftypheic\0\0\0\0mif1heic' >data/train/c1/00$i.heic
    rm data/train/c1/00$i.ppm
done
printf '\0\0\0\030ftypheic' >data/train/c0/x.HEIC
mv data/train/c0/001.ppm data/train/c0/001.heic # its name lies
mkdir packed && tar -C data -cf packed/data.tar train val

counted="7 of 25 images are in formats that this build cannot read (.heic)"
class="no image for training of one class can be read by this build, so no network can learn it: c1"
# tells TEXT PROGRAM...: says it once, whatever the program makes of it.
tells() {
    wanted=$1
    shift
    "$@" >"$work/out" 2>"$work/err"
    [ "$(grep -cF -- "$wanted" "$work/err")" = 1 ] || { cat "$work/err" >&2; fail "not once: '$wanted': $*"; }
}
for path in data packed; do
    for text in "$counted" "$class"; do
        tells "$path: $text" dl2-transcode identify "$path"
        tells "$path: $text" dl2-transcode --quiet survey "$path"
        tells "$path: $text" dl2-transcode --quiet --codec ppm "$path" "variants-$path"
        tells "$path: $text" dl2-transcode --quiet copy "$path" "copy-$path"
        tells "$path: $text" dl2-quality --quiet "$path" "variants-$path/ppm"
        tells "$path: $text" dl2-load bench --quiet -b 4 -i 8 "$path"
        tells "$path: $text" dl2-load check --quiet "$path"
    done
    tells "$path: $class" run -e 1 --out "run-$path" -d "$path"
done
rm data/train/*/*.heic data/train/c0/x.HEIC
expect 0 dl2-transcode identify data
[ ! -s "$work/err" ] || fail "all can be read, but: $(cat "$work/err")"
