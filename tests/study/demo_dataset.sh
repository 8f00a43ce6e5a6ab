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

# Photographs of its names, small ones: 1500 x 500 halves to 750 x 250, so 7 x 2 tiles and a rest.
mkdir "$work/photos"
i=0
for name in $(sed -n '/^for name in Bridge/,/; do$/p' "$script" | tr -d '\\;' |
    sed 's/for name in//; s/ do$//'); do
    i=$((i + 1))
    "$convert" -size 1500x500 "gradient:rgb($((i * 16)),0,0)-rgb(0,0,$((i * 16)))" \
        "$work/photos/$name.jpg" || fail "convert"
done
[ "$i" -eq 15 ] || fail "$i photographs"
expect 0 sh "$script" "$work/demo" "$work/photos"
[ "$(find "$work/demo" -name '*.png' | wc -l)" -eq 210 ] || fail "not 14 tiles each"
[ "$(ls "$work/demo/train" | wc -l)" -eq 15 ] || fail "not 15 classes"
tile=$work/demo/train/dragonfly_by_bolly/r00c01.png
"$convert" "$tile" -format '%w %h %z' info: | grep -qx '96 96 8' || fail "$tile isn't 96 x 96"
# By place: the third to fifth column, in all rows.
is "$(cd "$work/demo/val/dragonfly_by_bolly" && echo *)" \
    "r00c02.png r00c03.png r00c04.png r01c02.png r01c03.png r01c04.png" "what is for validation"
is "$(cd "$work/demo/train/dragonfly_by_bolly" && echo r00*)" "r00c00.png r00c01.png r00c05.png r00c06.png" \
    "what is for training"
[ ! -e "$work/demo.parts" ] && [ ! -e "$work/demo.tmp" ] || fail "rubbish is left"

# A tile's pixels are means of four.
"$convert" "$work/photos/Dragonfly_by_Bolly.jpg" -scale 50% -crop 96x96+96+96 +repage "$work/own.png"
"$convert" "$work/own.png" "$work/demo/train/dragonfly_by_bolly/r01c01.png" -metric AE -compare \
    -format '%[distortion]' info: | grep -qx 0 || fail "other pixels"

# Again: the same bytes, in a folder of any name; and from a half-done state.
(cd "$work" && expect 0 sh "$script" "it's [100%d] & more" photos) || exit 1
diff -r "$work/demo" "$work/it's [100%d] & more" || fail "other tiles in a folder of another name"
expect 0 sh "$script" "$work/again" "$work/photos"
diff -r "$work/demo" "$work/again" || fail "not reproducible"
mkdir -p "$work/resumed.parts/96/.dragonfly_by_bolly.tmp/train" "$work/resumed.tmp/train/nonsense"
expect 0 sh "$script" "$work/resumed" "$work/photos"
diff -r "$work/demo" "$work/resumed" || fail "resuming gives something else"

# What an earlier version made, with other tiles, is replaced; any other folder is not touched.
rm "$work/again/.tiles-96"
rm -r "$work/again/train/wine_by_jakkub_mede"
touch "$work/again/val/dragonfly_by_bolly/r02c00.png"
expect 0 sh "$script" "$work/again" "$work/photos"
diff -r "$work/demo" "$work/again" || fail "an older demo dataset is kept"
mkdir "$work/other"
expect 1 sh "$script" "$work/other" "$work/photos"
said "is no demo dataset"

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
    [ "$(find "$work/real" -name '*.png' | wc -l)" -eq 3127 ] || fail "not 3127 tiles"
    [ "$(find "$work/real/val" -name '*.png' | wc -l)" -eq 1306 ] || fail "not 1306 for validation"
fi
exit 0
