#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Tar shards as other programs write them, in every program: which member is the image, the same keys in several shards,
# what is left out, compressed files by other names, and more shards than a process may open files.
. "$srcdir/tests/lib.sh"
need tar tar
need gzip gzip
cd "$work" || exit 99

# ---- Which member is the image: a photograph, and what depths look like
mkdir plain several
for i in 1 2 3 4; do
    picture "plain/$i.ppm" 24 16 $i
    picture "plain/$i.depth.ppm" 8 8 $((i + 9))
    echo $((i % 2)) >"plain/$i.cls"
done
(cd plain && tar cf ../several/s.tar --sort=name ./*) || fail tar
sum() { dl2-load bench "$@" --quiet --digest --val --split all --image-size 16 -b 4 2>"$work/err" | sed -n 's/^digest //p'; }
photograph=$(sum several)
[ -n "$photograph" ] || { cat "$work/err" >&2; fail 'no digest'; }
said 'images that are not loaded, since their samples have another: 4, such as 1.depth.ppm in s.tar'
mkdir alone
(cd plain && tar cf ../alone/s.tar [1-4].ppm [1-4].cls 2>/dev/null) # apart: refused, with what to do
expect 1 dl2-load check alone
said 'alone/s.tar: sample "1" lies apart'
said 'tar --sort=name'
expect 1 dl2-transcode --quiet copy --container=tar alone copied
[ ! -e copied/shard-000000.tar ] || fail 'a copy without labels'
(cd plain && tar cf ../alone/s.tar --sort=name --exclude '*depth*' ./*)
is "$(sum alone)" "$photograph" 'the photographs'
is "$(sum several --image-extension ppm)" "$photograph" 'the photographs, by their extension'
! grep -q 'not loaded' "$work/err" || fail 'what was asked for is no news'
[ "$(sum several --image-extension depth.ppm)" != "$photograph" ] || fail 'depths that are photographs'
expect 1 dl2-load check several --image-extension png
said 'no sample has an image .png; there is 1.cls in s.tar'
expect 1 dl2-load check plain --image-extension png
said "images are chosen by their extension in tar shards alone"
expect 0 dl2-transcode --quiet --codec ppm --container=tar several variants
is "$(tar tf variants/ppm/shard-000000.tar | tr '\n' ' ')" \
    '1.ppm 1.cls 1.depth.ppm 2.ppm 2.cls 2.depth.ppm 3.ppm 3.cls 3.depth.ppm 4.ppm 4.cls 4.depth.ppm ' 'members of a variant'
expect 0 dl2-quality --quiet --metrics psnr_rgb --image-extension ppm several variants/ppm
expect 0 dl2-transcode index --image-extension depth.ppm several
depth=$(sum several)
[ -n "$depth" ] && [ "$depth" != "$photograph" ] || fail 'the index has another image'
expect 0 dl2-transcode identify --image-extension ppm several
rm several/dl2-index.bin

# ---- Members without an image are counted, with an index and without
(cd plain && tar cf ../several/s.tar --sort=name 1.ppm 1.cls 3.cls 4.cls) || fail tar
for index in no yes; do
    expect 0 dl2-load check several
    said 'members of samples that have no image: 2, such as 3.cls in s.tar'
    expect 0 dl2-transcode --quiet --force copy --container=tar several copied
    said 'members of samples that have no image: 2, such as 3.cls in s.tar'
    expect 0 dl2-transcode index several
    said 'members of samples that have no image: 2, such as 3.cls in s.tar'
done

# ---- The same keys in several shards: they are the same in copies, variants and their scores
mkdir shards t
for s in 0 1 2; do
    for i in 0 1 2 3; do
        picture "t/00000$i.ppm" 24 16 $((4 * s + i))
        echo $((i % 2)) >"t/00000$i.cls"
        echo "caption $s $i" >"t/00000$i.txt"
    done
    (cd t && tar cf ../shards/s-$s.tar --sort=name ./*) || fail tar
done
expect 0 dl2-load check shards
said "12 images in 2 classes"
said "so keys have the shard's name: s-0_000000"
expect 0 dl2-transcode --quiet copy --container=tar shards copy
is "$(tar xOf copy/shard-000000.tar s-1_000002.txt)" 'caption 1 2' 'a caption of a copy'
expect 0 dl2-transcode --quiet copy --container=tar shards copy
grep -q ' 0 written' "$work/out" || fail 'copied twice'
expect 0 dl2-transcode --quiet --codec jpeg,ppm --q 90 shards files
[ -f files/ppm/s-2_000003.ppm ] && [ "$(cat files/ppm/s-2_000003.txt)" = 'caption 2 3' ] || fail 'a variant of files'
expect 0 dl2-transcode --quiet --codec jpeg,ppm --q 90 shards files
! grep -q '^ppm  *12  *[1-9]' "$work/out" || { cat "$work/out" >&2; fail 'a variant is made again'; }
expect 0 dl2-quality --quiet --metrics psnr_rgb --below psnr_rgb=99 shards files/ppm
expect 0 dl2-transcode --quiet --codec ppm --container=tar shards packed
expect 0 dl2-quality --quiet --metrics psnr_rgb --below psnr_rgb=99 shards packed/ppm copy
rm packed/ppm/dl2-index.bin # the keys are in the names of members
expect 0 dl2-quality --quiet --metrics psnr_rgb --below psnr_rgb=99 shards packed/ppm
whole=$(sum shards)
[ -n "$whole" ] || { cat "$work/err" >&2; fail 'no digest'; }
is "$(sum packed/ppm) $(sum copy)" "$whole $whole" 'pixels and labels of variants and copies'

# ---- Compressed by another name
mkdir zipped
gzip -c shards/s-0.tar >zipped/s.tar
expect 1 dl2-load check zipped
said 'zipped/s.tar: it is compressed by gzip, though its name does not say so: decompress it, or call it .tar.gz'

# ---- More shards than file descriptors: as with enough of them; where there are none left, no image is at fault
mkdir many
for s in $(seq 100 219); do cp alone/s.tar "many/$s.tar"; done
whole=$(sum many)
[ -n "$whole" ] || { cat "$work/err" >&2; fail 'many shards'; }
sanitized || emulated || {
    few=$(ulimit -n 64 && sum many) # two of which are the index's and the pipes'
    is "$few" "$whole" 'pixels with few file descriptors'
    (ulimit -n 64 && expect 0 dl2-load check many && ! grep -q ' [1-9][0-9]* bad' "$work/out") || fail 'bad images for lack of descriptors'
    (ulimit -n 64 && expect 0 dl2-transcode --quiet copy --container=tar many few) || exit
    (ulimit -n 64 && expect 0 dl2-quality --quiet --metrics psnr_rgb --below psnr_rgb=99 many few) || exit
}
exit 0
