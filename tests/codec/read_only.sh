#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# BMP, GIF and TIFF beside Debian's Pillow; dl2-transcode and the survey say what has several frames.
. "$srcdir/tests/lib.sh"
need_python numpy python3-numpy
need_python PIL python3-pil
for format in GIF TIFF; do
    grep -q "define HAVE_$format 1" "$builddir/config.h" || skip "this build has no $format"
done
cd "$work" || exit 99
"$PYTHON3" "$srcdir/tests/codec/read_only.py" make files || exit 99
expect 0 dl2-transcode --quiet survey --json survey.json files
grep -q '"has_more": 2' survey.json || fail "the survey does not count two files of several frames: $(cat survey.json)"
grep -q 'several frames: 2' "$work/out" || fail "the table of the survey says nothing of frames"
grep -q 'CMYK: 1' "$work/out" || fail "the table of the survey says nothing of inks"
grep -q '^not sRGB .*: 2$' "$work/out" || fail "the survey does not count two profiles: $(cat "$work/out")"
expect 0 dl2-transcode --quiet --codec ppm files variants
grep -q "several frames (2)" "$work/out" || fail "the run does not count two files of several frames: $(cat "$work/out")"
expect 0 dl2-transcode --quiet --codec ppm files variants
"$PYTHON3" "$srcdir/tests/codec/read_only.py" compare files variants/ppm || fail "other pixels than Pillow's"
expect 2 dl2-transcode --quiet --codec tiff files none
said "tiff"
