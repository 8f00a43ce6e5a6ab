#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Files of several pictures: the first is read, which is said; a file that is copied is whole. And PNM as text and bits.
. "$srcdir/tests/lib.sh"
[ -n "${PYTHON3:-}" ] || skip "there is no Python"
for format in JPEG WEBP; do
    grep -q "define HAVE_$format 1" "$builddir/config.h" || skip "this build has no $format"
done
make_file() { "$PYTHON3" "$srcdir/tests/codec/further_pictures.py" "$@" || exit 99; }
cd "$work" || exit 99

# JPEG: an index of two pictures, and something behind the image without one. Copied files are the source's bytes.
picture made/c/one.ppm 640 200 1
picture made/c/two.ppm 640 200 2
expect 0 dl2-transcode --quiet --q 60 --restart none made plain
expect 0 dl2-transcode --quiet --q 60 made tiled
mkdir -p phone/c
make_file jpeg plain/jpeg-60/c/one.jpg plain/jpeg-60/c/two.jpg phone/c/map.jpg
make_file tail plain/jpeg-60/c/one.jpg phone/c/motion.jpg
cp plain/jpeg-60/c/one.jpg phone/c/plain.jpg
cmp -s plain/jpeg-60/c/one.jpg tiled/jpeg-60/c/one.jpg && fail 'the test shows nothing: the picture has no room for restart intervals'
expect 0 dl2-transcode --quiet --q 90 phone copied
grep -q ' 3  *0$' out || fail "three files are not copied: $(cat out)"
cmp phone/c/map.jpg copied/jpeg-90/c/map.jpg || fail 'the copy of a JPEG with two pictures is another file'
cmp phone/c/motion.jpg copied/jpeg-90/c/motion.jpg || fail 'the copy of a JPEG with a video behind it is another file'
cmp -s phone/c/plain.jpg copied/jpeg-90/c/plain.jpg && fail 'the copy of a plain JPEG has no restart intervals'
expect 0 dl2-transcode --quiet --q 30 phone small
grep -q 'several frames (1)' out || fail "the run does not count the second picture: $(cat out)"
expect 0 dl2-transcode --quiet survey --json survey.json phone
grep -q '"has_more": 1' survey.json || fail "the survey does not count the second picture: $(cat survey.json)"
expect 0 dl2-load check phone
said '1 of its images have several frames, pages or pictures'
expect 0 dl2-transcode --quiet --q 90 --metadata drop phone bare # the second picture has metadata of its own
[ "$(wc -c <bare/jpeg-90/c/map.jpg)" -ne "$(wc -c <phone/c/map.jpg)" ] && ! grep -q MPF bare/jpeg-90/c/map.jpg ||
    fail '--metadata drop copies a JPEG with two pictures'

# JPEG XL keeps a JPEG whole, with what lies behind its image, up to libjxl's limit, beyond which the reason is the right
# one.
if grep -q 'define HAVE_JXL 1' "$builddir/config.h"; then
    mkdir -p long/c
    cp plain/jpeg-60/c/two.jpg long/c/two.jpg
    make_file long plain/jpeg-60/c/two.jpg 4260096 long/c/most.jpg
    make_file long plain/jpeg-60/c/two.jpg 4260097 long/c/more.jpg
    expect 0 dl2-transcode --quiet --codec jxl_lossless long packed
    said '1 JPEG files cannot be stored so that their bytes come back: too much behind the image (1).'
    grep -q lib/jxl err && fail "libjxl prints: $(cat err)"
    grep '"pixels_only":"too much behind the image"' packed/jxl_lossless/dl2-variant.jsonl | grep -q '"key":"c/more"' ||
        fail "another file than the longest is not kept whole: $(cat packed/jxl_lossless/dl2-variant.jsonl)"
    # Below the limit libjxl fails on what compresses well: it is tried without, so that the reason is known.
    rm -r long packed
    mkdir -p long/c
    make_file long plain/jpeg-60/c/two.jpg 4200000 long/c/zeros.jpg zeros
    expect 0 dl2-transcode --quiet --codec jxl_lossless long packed
    said 'come back: too much behind the image (1).'
fi

# WebP: the first frame of an animation, as the still file has it, or on a canvas that is transparent around it.
picture stills/c/one.ppm 64 48 3
picture stills/c/two.ppm 64 48 4
picture stills/c/part.ppm 40 30 5
expect 0 dl2-transcode --quiet --codec webp --q 80 stills encoded
mkdir -p moving/c
dl2-transcode --quiet --codec ppm encoded/webp-80 still-pixels || exit 99
make_file webp encoded/webp-80/c/one.webp encoded/webp-80/c/two.webp 64 48 0 0 moving/c/whole.webp
make_file webp encoded/webp-80/c/part.webp encoded/webp-80/c/two.webp 40 30 8 6 moving/c/part.webp
expect 0 dl2-load check moving
said '2 of its images have several frames'
expect 0 dl2-transcode --quiet --codec ppm --background 102030 moving pixels
grep -q 'several frames (2)' out || fail "the run does not count frames: $(cat out)"
cmp still-pixels/ppm/c/one.ppm pixels/ppm/c/whole.ppm || fail 'the first frame is not the still image'
"$PYTHON3" - still-pixels/ppm/c/part.ppm pixels/ppm/c/part.ppm <<'EOF' || fail 'the first frame does not lie on the canvas'
import sys
frame, canvas = (open(name, "rb").read() for name in sys.argv[1:])
frame, canvas = frame[-40 * 30 * 3:], canvas[-64 * 48 * 3:]
for y in range(48):
    for x in range(64):
        inside = 8 <= x < 48 and 6 <= y < 36
        at = ((y - 6) * 40 + x - 8) * 3
        assert canvas[(y * 64 + x) * 3:][:3] == (frame[at:at + 3] if inside else b"\x10\x20\x30"), (x, y)
EOF
mkdir -p cut/c
head -c 300 moving/c/whole.webp >cut/c/cut.webp
expect 1 dl2-load check cut
said 'cut.webp: decode: WebP: '
expect 0 dl2-load bench --image-size 32 --split all --epochs 1 moving
grep -q 'several frames  *2 times' out || fail "$(cat out)"

# PNM: text has the values of the binary file, bits are black where they are 1.
picture pnm/c/color.ppm 21 9 6
{ printf 'P5\n21 9\n255\n'; tail -c 189 pnm/c/color.ppm | LC_ALL=C tr '!-P' '\200-\257'; } >gray.pgm
make_file pnm pnm/c/color.ppm pnm/c/color
make_file pnm gray.pgm pnm/c/gray
expect 0 dl2-load check pnm
expect 0 dl2-transcode --quiet --codec ppm pnm same
grep -q '"failed": \[\]' same/ppm/dl2-variant.json || fail "$(cat err)"
cmp pnm/c/color.ppm same/ppm/c/color/plain.ppm || fail 'P3 has other values than P6'
tail -c 189 gray.pgm >wanted
tail -c 189 same/ppm/c/gray/plain.ppm | cmp - wanted || fail 'P2 has other values than P5'
for name in text packed; do
    cmp same/ppm/c/gray/expected.ppm "same/ppm/c/gray/$name.ppm" || fail "bits as $name are others"
done
for wrong in '1 3 2 0' '2 2 2 9 1 2 3' '3 1 1 255 256 0 0' '2 2 1 255 1 x' '2 2 1 65535 1'; do
    mkdir -p wrong/c
    printf 'P%s\n' "$wrong" >wrong/c/wrong.pgm
    expect 1 dl2-load check wrong
    said 'wrong.pgm: decode: PNM: '
done
printf 'P2 of the 10 pictures\n' >pnm/c/notes.txt # no picture
expect 0 dl2-load check pnm
