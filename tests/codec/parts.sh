#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Parts of images against the whole: of every codec's own files, odd ones, and what other encoders make.
. "$srcdir/tests/lib.sh"
expect 0 "$builddir/tests/codec/make_corpus" "$work/corpus"
rm -r "$work/corpus/exif" "$work/corpus/jpeg_tiles" 2>/dev/null
have() { command -v "$1" >/dev/null 2>&1; }
LC_ALL=C awk 'BEGIN {
    printf "P6\n203 151\n255\n"
    for (y = 0; y < 151; y++)
        for (x = 0; x < 203; x++)
            printf "%c%c%c", int(128 + 60 * sin(x / 15 + y / 19) + 50 * sin(x * y / 900)),
                int(128 + 90 * sin(y / 11)), x
}' >"$work/corpus/picture.ppm"
cd "$work/corpus" || exit 99
# Other encoders know options that ours never use.
if have opj_compress; then
    opj_compress -i picture.ppm -o tiles.jp2 -t 64,48 -n 4 >/dev/null || exit 99
    opj_compress -i picture.ppm -o precincts.j2k -I -r 8 -c '[64,64],[32,32]' -p RPCL -SOP -EPH >/dev/null || exit 99
    opj_compress -i picture.ppm -o offset.jp2 -d 5,3 -n 3 >/dev/null || exit 99
    opj_compress -i picture.ppm -o blocks.j2k -M 63 -b 16,16 >/dev/null || exit 99
else
    echo "no opj_compress (Debian: libopenjp2-tools): nothing with its options"
fi
if have ojph_compress; then
    ojph_compress -i picture.ppm -o ht.j2c -reversible true >/dev/null || exit 99
    ojph_compress -i picture.ppm -o ht-lossy.j2c -qstep 0.01 -tile_size '{100,70}' >/dev/null || exit 99
else
    echo "no ojph_compress (Debian: openjph-tools): no HTJ2K but the sample"
fi
if have cwebp; then
    cwebp -quiet -q 70 picture.ppm -o picture.webp || exit 99
    cwebp -quiet -near_lossless 40 picture.ppm -o near.webp || exit 99
else
    echo "no cwebp (Debian: webp): nothing with its options"
fi
if have cjpeg; then
    cjpeg -progressive -sample 1x2 picture.ppm >progressive.jpg || exit 99
    cjpeg -arithmetic -sample 2x1 picture.ppm >arithmetic.jpg 2>/dev/null || rm -f arithmetic.jpg
    cjpeg -rgb picture.ppm >rgb.jpg || exit 99
    cjpeg -sample 4x1,1x1,2x1 picture.ppm >sampling.jpg || exit 99
else
    echo "no cjpeg (Debian: libjpeg-turbo-progs): nothing with its options"
fi
"$builddir/tests/codec/compare_parts" "$work/corpus" >"$work/out" 2>&1
status=$?
cat "$work/out"
case $status in
0) ;;
1) fail 'parts differ from the whole' ;;
*) exit "$status" ;;
esac
[ "$(sed -n 's/ image files: .*//p' "$work/out")" -ge 20 ] || fail 'too few images to tell anything'
