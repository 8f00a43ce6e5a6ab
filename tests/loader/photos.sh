#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What the decoder's planes, its reductions and the fused transform make of photographs, against Pillow's resize of the
# whole decoded image: at most one gray level off on average.
. "$srcdir/tests/lib.sh"
need_python PIL python3-pil
need convert imagemagick
photos=/usr/share/backgrounds
found=$(find "$photos" -type f -name '*.jpg' 2>/dev/null | sort | head -n 4)
[ -n "$found" ] || skip "no photographs in $photos (Debian: lomiri-wallpapers-16.04)"
dl2-load --version | grep -q '^  jpeg:' || skip "this build can't read JPEG (Debian: libjpeg62-turbo-dev)"
mkdir "$work/images"
n=0
for photo in $found; do
    for size in 400 900; do
        n=$((n + 1))
        convert "$photo" -resize "${size}x${size}" -sampling-factor 4:2:0 -quality 90 "$work/images/$n-420.jpg" ||
            fail "convert $photo"
        convert "$photo" -resize "${size}x${size}" -sampling-factor 4:4:4 -quality 90 "$work/images/$n-444.jpg"
        convert "$photo" -resize "${size}x${size}" -colorspace Gray -quality 90 "$work/images/$n-gray.jpg"
    done
done
expect 0 "$PYTHON3" "$srcdir/tests/loader/compare_batches.py" "$builddir/tests/loader/show_batches" "$work/images" photos
cat "$work/out"
