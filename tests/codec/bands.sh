#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Bands that one image does not show, kinds of samples that are not read, and more than 8 bits: nothing of it is silent.
. "$srcdir/tests/lib.sh"
[ -n "${PYTHON3:-}" ] || skip "there is no Python"
for format in PNG TIFF; do
    grep -q "define HAVE_$format 1" "$builddir/config.h" || skip "this build has no $format"
done
cd "$work" || exit 99
"$PYTHON3" "$srcdir/tests/codec/bands.py" "$work" || exit 99

# Bands are refused by name, wherever images are read.
expect 1 dl2-load check --json check.json bands
is "$(grep -c 'bands, of which only' err)" 7 'images with too many bands'
said 'c/thirteen.tif: decode: it has 13 bands, of which only one can be loaded, as gray'
said 'c/planes.tif: decode: it has 13 bands'
said 'c/untold.tif: decode: it has 3 bands, of which only one can be loaded, as gray'
said 'c/infrared.tif: decode: it has 4 bands, of which only three can be loaded, as RGB'
said 'c/infrared_and_alpha.tif: decode: it has 5 bands'
said '--drop-bands'
expect 1 dl2-load bench --image-size 8 --epochs 1 --train --max-bad 1 --split all bands
said 'none of the 7 samples can be read'
expect 1 dl2-transcode --quiet --codec png bands refused
is "$(grep -c 'bands, of which only' err)" 7 'images that a variant lacks'
expect 1 dl2-transcode --quiet survey --json survey.json bands
is "$(grep -c 'bands, of which' survey.json)" 7 'bad images of the survey'

# --drop-bands takes what the file says is gray or RGB, and counts.
expect 0 dl2-load check --json check.json --drop-bands bands
said 'bands: 7 of its images have further bands, which are not loaded'
grep -q '"dropped_bands": 7' check.json || fail "$(cat check.json)"
expect 0 dl2-load bench --drop-bands --image-size 8 --epochs 1 --split all bands
grep -q '^  bands dropped  *7 times: ' out || fail "bench says nothing: $(cat out)"
expect 0 dl2-transcode --quiet --codec ppm --drop-bands bands variants
grep -q 'further bands (7)' out || fail "the variant does not count bands: $(cat out)"
grep -q '"drop_bands": true' variants/ppm/dl2-variant.json || fail 'the variant does not note the option'
is "$(grep -c '"source_bands":true' variants/ppm/dl2-variant.jsonl)" 7 'lines of images with further bands'
expect 1 dl2-quality bands variants/ppm
expect 0 dl2-quality --drop-bands bands variants/ppm
pixel() { od -An -tu1 -v -j "$(($(wc -c <"$1") - $2))" -N "$3" "$1" | tr -s ' ' | sed 's/^ //'; }
for name in two thirteen planes untold; do # the last row begins with 15 in band 0
    is "$(pixel variants/ppm/c/$name.ppm 32 3)" '15 18 21' "the first band of $name"
done
is "$(pixel variants/ppm/c/infrared.ppm 96 6)" '15 25 35 18 28 38' 'RGB of an image with infrared'

# Samples that have a sign or are no integers.
expect 1 dl2-load check samples
for name in int8:signed int16:signed int16_rgb:signed int32:signed half:floating-point float:floating-point \
    double:floating-point complex:complex; do
    said "c/${name%:*}.tif: decode: TIFF: ${name#*:} samples are not supported"
done
said 'c/uint32.tif: decode: TIFF: '
grep -q '9 images, 9 bad' out || fail "$(cat out)"

# More than 8 bits, data of 12 bits in 16, further pages: whatever loads says so, once.
expect 0 dl2-load check --json check.json good
said 'good: 2 of its images have more than 8 bits a sample, and are loaded at 8'
said 'good: 1 of its images have 16 bits a sample and no value above a sixteenth of the range'
said 'good: 1 of its images have several frames, pages or pictures, of which the first is loaded'
for field in '"above_8_bits": 2' '"nearly_black": 1' '"several_frames": 1' '"dropped_bands": 0'; do
    grep -q "$field" check.json || fail "$field: $(cat check.json)"
done
expect 0 dl2-load bench --image-size 16 --epochs 1 --split all --json bench.json good
for field in '"above_8_bits": 2' '"nearly_black": 1' '"several_frames": 1'; do
    grep -q "$field" bench.json || fail "$field: $(cat bench.json)"
done
for line in 'above 8 bits  *2 times' 'nearly black  *1 times' 'several frames  *1 times'; do
    grep -q "^  $line: " out || fail "bench says nothing of '$line': $(cat out)"
done
expect 0 dl2-transcode --quiet --codec png good variants
grep -q '16 bits (2), .*several frames (1), data of 12 bits, now nearly black (1)' out || fail "the run says nothing: $(cat out)"
expect 0 dl2-transcode --quiet survey --json survey.json good
grep -q '"nearly_black": 1' survey.json || fail "$(cat survey.json)"
grep -q 'nearly black: 1' out || fail "$(cat out)"
for split in train val; do
    mkdir -p two/$split/a two/$split/b
    cp good/c/full.png good/c/gray.tif two/$split/a
    cp good/c/twelve.png good/c/pages.tif two/$split/b
done
expect 0 dl2-train --quiet -a convnet --image-size 8 -e 2 -b 2 --threads 1 --jobs 1 -d two --out run
for what in "the first epoch" two; do
    said "2 of $what's images have more than 8 bits a sample"
    said "1 of $what's images have 16 bits a sample and no value above"
    said "1 of $what's images have several frames"
done
is "$(grep -c 'images have more than 8 bits' err)" 2 'lines, one of training and one of validation'
