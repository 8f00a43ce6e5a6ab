#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Makes ht_golden.h: a small high-throughput JPEG 2000 file, which OpenJPEG reads and can't write, of
# 61x43 gray pixels, by ojph_compress (Debian: openjph-tools). Usage: gen_ht.sh >ht_golden.h
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
LC_ALL=C awk 'BEGIN {
    printf "P5\n61 43\n255\n"
    for (y = 0; y < 43; y++)
        for (x = 0; x < 61; x++)
            printf "%c", int(128 + 60 * sin(x / 5 + y / 9) + 50 * sin(x * y / 90))
}' >"$work/in.pgm"
ojph_compress -i "$work/in.pgm" -o "$work/out.j2c" -reversible false -qstep 0.02 -num_decomps 3 >&2 || exit 1
echo '/* Made by gen_ht.sh. */'
echo 'static const uint8_t ht_golden[] = {'
od -An -v -tu1 -w16 "$work/out.j2c" | sed 's/  */ /g; s/^ //; s/ $//; s/ /, /g; s/.*/    &,/'
echo '};'
