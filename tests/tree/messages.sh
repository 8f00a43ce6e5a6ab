#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What users are told of their mistakes, whole sentences with the exit status: messages.txt, which WRITE=yes writes anew
# after its commands. Other tests look for the part of a sentence that names the option, file or number.
. "$srcdir/tests/lib.sh"
plainly
golden=$(cd "$srcdir" && pwd)/tests/tree/messages.txt
cd "$work" || exit 99
"$builddir/tests/transcode/images" tree photos 4 || exit 99
mkdir -p broken/train/a empty
printf 'P6\n4 4\n255\nabc' >broken/train/a/short.ppm
cp broken/train/a/short.ppm .
dl2-train run --quiet -d photos -a convnet --image-size 8 -e 1 -b 1 --out trained >/dev/null 2>&1 || fail "no training"
grep '^\$ ' "$golden" | while read -r _ command; do
    printf '\n$ %s\n' "$command"
    LC_ALL=C sh -c "$command" >printed 2>told </dev/null
    echo $?
    cat told
done >now
[ "${WRITE:-no}" = no ] || cp now "$golden"
diff "$golden" now || fail "other messages than in messages.txt, or another status"
