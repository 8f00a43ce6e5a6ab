#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The demo dataset: complete, as it is told to be, resumable, and the same each time.
. "$srcdir/tests/lib.sh"
plainly
for convert in /usr/bin/convert convert none; do
    "$convert" -version 2>/dev/null | grep -q ImageMagick && break
done
[ "$convert" != none ] || skip "ImageMagick is not installed (Debian: imagemagick)"
script=$srcdir/study/demo-dataset.sh

# Photographs of its names, small ones: 540 x 800 halves to 270 x 400, so 2 x 3 tiles and a rest.
mkdir "$work/photos"
i=0
for name in $(sed -n '/^for name in Bridge/,/; do$/p' "$script" | tr -d '\\;' |
    sed 's/for name in//; s/ do$//'); do
    i=$((i + 1))
    "$convert" -size 540x800 "gradient:rgb($((i * 16)),0,0)-rgb(0,0,$((i * 16)))" \
        "$work/photos/$name.jpg" || fail "convert"
done
[ "$i" -eq 15 ] || fail "$i photographs"
expect 0 sh "$script" "$work/demo" "$work/photos"
[ "$(find "$work/demo" -name '*.png' | wc -l)" -eq 90 ] || fail "not 6 tiles each"
[ "$(ls "$work/demo/train" | wc -l)" -eq 15 ] || fail "not 15 classes"
tile=$work/demo/train/dragonfly_by_bolly/r00c01.png
"$convert" "$tile" -format '%w %h %z' info: | grep -qx '128 128 8' || fail "$tile isn't 128 x 128"
# Every fourth: column + 2 row is a multiple of 4.
for at in r00c00 r02c00; do
    [ -f "$work/demo/val/dragonfly_by_bolly/$at.png" ] || fail "$at isn't for validation"
done
[ "$(ls "$work/demo/val/dragonfly_by_bolly" | wc -l)" -eq 2 ] || fail "more for validation"
[ ! -e "$work/demo.parts" ] && [ ! -e "$work/demo.tmp" ] || fail "rubbish is left"

# A tile's pixels are means of four.
"$convert" "$work/photos/Dragonfly_by_Bolly.jpg" -scale 50% -crop 128x128+128+256 +repage "$work/own.png"
"$convert" "$work/own.png" "$work/demo/train/dragonfly_by_bolly/r02c01.png" -metric AE -compare \
    -format '%[distortion]' info: | grep -qx 0 || fail "other pixels"

# Again: the same bytes; and from a half-done state.
expect 0 sh "$script" "$work/again" "$work/photos"
diff -r "$work/demo" "$work/again" || fail "not reproducible"
mkdir -p "$work/resumed.parts/.dragonfly_by_bolly.tmp/train" "$work/resumed.tmp/train/nonsense"
expect 0 sh "$script" "$work/resumed" "$work/photos"
diff -r "$work/demo" "$work/resumed" || fail "resuming gives something else"

# What is missing is said, and nothing is left under the final name.
rm "$work/photos/Dragonfly_by_Bolly.jpg"
expect 1 sh "$script" "$work/none" "$work/photos"
grep -q lomiri-wallpapers "$work/err" || fail "the package isn't named"
echo broken >"$work/photos/Dragonfly_by_Bolly.jpg"
expect 1 sh "$script" "$work/none" "$work/photos"
[ ! -e "$work/none" ] || fail "a half-made dataset"
expect 2 sh "$script"

# The real photographs, where they are.
if [ -f /usr/share/backgrounds/Dragonfly_by_Bolly.jpg ]; then
    expect 0 sh "$script" "$work/real"
    [ "$(find "$work/real" -name '*.png' | wc -l)" -eq 1741 ] || fail "not 1741 tiles"
fi
exit 0
