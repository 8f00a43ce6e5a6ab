#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# dl2-load on volumes: the same patches for every number of workers and in every order, and what is said; check finds
# bad ones, and bad masks; other programs refuse volumes by name.
. "$srcdir/tests/lib.sh"

# volume FILE DEPTH HEIGHT WIDTH [FIRST]: bytes that follow from FIRST.
volume() {
    mkdir -p "${1%/*}"
    text="{'descr': '|u1', 'fortran_order': False, 'shape': ($2, $3, $4), }"
    {
        printf '\223NUMPY\001\000'"$(printf '\\%03o' ${#text})"'\000%s' "$text"
        seq "${5-1}" 100000 | head -c $(($2 * $3 * $4))
    } >"$1"
}
for n in 1 2 3 4 5; do
    for class in a b; do
        volume "$work/scans/train/$class/$n.npy" $((6 + n)) 12 $((9 + 2 * n)) $((n * 100))
        volume "$work/scans/train/$class/$n.mask.npy" $((6 + n)) 12 $((9 + 2 * n)) $((n * 1000))
        volume "$work/scans/val/$class/$n.npy" 9 9 12 $n
    done
done
bench() {
    expect 0 dl2-load bench "$work/scans" --image-size 6x8x10 --batch 3 --epochs 2 --digest "$@"
}
first=
for how in '-j 1' '-j 3' '-j 2 --dtype float32 --layout nchw'; do
    # shellcheck disable=SC2086
    bench --mask mask.npy --oversample-foreground 0.5 --augment flips,elastic:p=0.5,noise,gamma,brightness,blur:sigma-max=1 $how
    digest=$(sed -n 's/^digest //p' "$work/out")
    [ -n "$digest" ] || fail "no digest"
    [ "$digest" = "${first:=$digest}" ] || fail "$digest with $how, $first with one worker"
done
said 'train 10 volumes in 2 classes, val 10'
for line in '^scans: 10 volumes for training, 6x8x10x1 float32 nchw' '^  volumes/s ' '^    elastic .* us a volume$'; do
    grep -q "$line" "$work/out" || fail "no line '$line': $(cat "$work/out")"
done
bench --batching completion -j 3 --augment elastic
bench --val --json "$work/load.json" --cold --dtype bfloat16 --normalization window --window=48,57
for field in '"image_size": "6x8x10"' '"padded": 0' '"normalization": "window"' '"operations": \[\]'; do
    grep -q "$field" "$work/load.json" || fail "no $field in $(cat "$work/load.json")"
done
expect 0 dl2-load bench "$work/scans" --image-size 16x8x10 -e 1
grep -q '^  smaller than the patch *10 times' "$work/out" || fail "padding is not told: $(cat "$work/out")"

# At most 1.2 times the bytes of the patches, and the headers (of some 80 bytes).
volume "$work/large/train/a/1.npy" 30 60 90
expect 0 dl2-load bench "$work/large" --image-size 16x32x64 -e 1 --json "$work/load.json"
bytes=$(sed -n 's/^ *"bytes_read": \([0-9]*\),*$/\1/p' "$work/load.json" | head -n 1)
[ "$bytes" -ge $((16 * 32 * 64)) ] && [ "$bytes" -le $((16 * 32 * 64 * 12 / 10 + 256)) ] || fail "$bytes bytes were read"

# A bad file is named, with the reason.
head -c 300 "$work/scans/train/a/1.npy" >"$work/short" && mv "$work/short" "$work/scans/train/a/1.npy"
expect 1 dl2-load bench "$work/scans" --image-size 6x8x10 -e 1
said 'a/1.npy: it is truncated: 300 of '

# What has no effect, or cannot be done, is refused.
for options in '--io uring' '--cache 1M' '--crop-area 0.1,1' '--gray' '--resize 9 --val' '--window 0,1' '--oversample-foreground 0.5' \
    '--frames 3' '--normalization window' '--mask mask.npy --foreground-rule component' '--mask mask.npy --foreground-rule voxel'; do
    # shellcheck disable=SC2086
    expect 2 dl2-load bench "$work/scans" --image-size 6x8x10 $options
done
said '--foreground-rule needs --oversample-foreground'
explained foreground-rule dl2-load bench "$work/scans"
expect 1 dl2-load bench "$work/scans" --image-size 6x8x10 --augment jitter:hue=0.1
said 'jitter is an operation on images'
expect 1 dl2-load bench "$work/scans" --image-size 6x8x10 --mask mask.png
expect 1 dl2-load bench "$work/scans" --image-size 24
said 'the dataset holds volumes'
expect 2 dl2-load check "$work/scans" --image-size 6x8x10
for program in 'dl2-load analyze --device-rate 9' 'dl2-transcode survey' \
    'dl2-train -e 1 -d'; do
    # shellcheck disable=SC2086
    expect 1 $program "$work/scans"
    said 'holds volumes'
done

# check reads every voxel, and masks on request.
volume "$work/scans/train/a/1.npy" 7 12 11 100
expect 0 dl2-load check "$work/scans" --json "$work/check.json"
is "$(cat "$work/out")" "$work/scans: 20 volumes, 0 bad" 'what check says'
grep -q '"images": 20' "$work/check.json" || fail "the check's record: $(cat "$work/check.json")"
expect 1 dl2-load check "$work/scans" --mask mask.npy
is "$(cat "$work/out")" "$work/scans: 20 volumes, 10 bad" 'what check says of masks'
said "val/a/1.npy: mask: there is no 'mask.npy' beside it"
cp -r "$work/scans" "$work/bad"
printf '\223NUMPY' >"$work/bad/train/a/1.npy"
volume "$work/bad/train/a/2.mask.npy" 8 12 14
volume "$work/bad/val/a/1.mask.npy" 9 9 12
volume "$work/bad/val/b/1.mask.npy" 9 9 12
python3 - "$work/bad/train/a/3.npy" "$work/bad/train/b/3.mask.npy" <<'END'
import struct, sys
for path, value in zip(sys.argv[1:], (float("inf"), 2.5)):
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (9, 12, 15), }"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        file.write(struct.pack("<1620f", *[1.0] * 1619, value))
END
expect 1 dl2-load check "$work/bad" --mask mask.npy
is "$(cat "$work/out")" "$work/bad: 20 volumes, 12 bad" 'what check says of bad volumes'
for what in 'train/a/1.npy: ' 'train/a/2.npy: mask: it is of 8x12x14, its volume of 8x12x13' 'train/a/3.npy: ' \
    'train/b/3.mask.npy: ' "val/a/2.npy: mask: there is no 'mask.npy' beside it"; do
    said "$what"
done
expect 2 dl2-load check "$work/bad" --mask-fill 3

picture "$work/photos/a/1.ppm" 30 30 1
volume "$work/photos/a/2.npy" 3 4 5
volume "$work/photos/a/1.npy" 3 4 5
expect 0 dl2-load bench "$work/photos" --split all --image-size 24 -e 1
said 'files left out because they are volumes, and the folder holds images: 1 (.npy)'
# Masks of images, too.
mkdir -p "$work/masked/a" && picture "$work/masked/a/1.ppm" 30 30 1
printf 'P5\n30 30\n255\n%900s' '' >"$work/masked/a/1.pgm"
expect 0 dl2-load bench "$work/masked" --split all --image-size 24 -e 1 --mask pgm
grep -q '^masked: 1 images' "$work/out" || fail "a mask is taken for an image: $(cat "$work/out")"
expect 0 dl2-load check "$work/masked" --mask pgm
is "$(cat "$work/out")" "$work/masked: 1 images, 0 bad" 'what check says of a mask'
printf 'P5\n30 29\n255\n%870s' '' >"$work/masked/a/1.pgm"
expect 1 dl2-load check "$work/masked" --mask pgm
said "a/1.ppm: mask 'pgm': it is of 30x29, its image of 30x30"
expect 1 dl2-load check "$work/masked" --mask mask.png
said "a/1.ppm: mask: there is no 'mask.png' beside it"
expect 1 dl2-load bench "$work/photos" --split all --image-size 4x5x6
said 'the dataset holds none'
expect 1 dl2-load bench "$work/photos" --split all --image-size 24 --augment elastic
said 'elastic is an operation on volumes'

# NIfTI that is not read: each is named, and libnifti prints nothing.
if [ -n "${PYTHON3:-}" ] && grep -q 'define HAVE_LIBNIFTI 1' "$builddir/config.h"; then
    "$PYTHON3" - "$work/nifti" <<'EOF' || exit 99
import gzip, os, struct, sys
os.makedirs(sys.argv[1])
def save(name, head, *fields):
    head = bytearray(head)
    for form, at, *values in fields:
        struct.pack_into(form, head, at, *values)
    data = bytes(head) + bytes(120)
    with open(f"{sys.argv[1]}/{name}", "wb") as file:
        file.write(gzip.compress(data) if name.endswith("gz") else data)
def one(name, *fields):
    save(name, bytes(352), ("<i", 0, 348), ("<8h", 40, 3, 6, 5, 4, 1, 1, 1, 1), ("<hh", 70, 2, 8), ("<f", 108, 352),
         ("4s", 344, b"n+1"), *fields)
one("good.nii"), one("good-gz.nii.gz")
one("magic.nii", ("4s", 344, b"nope")), one("many.nii", ("<h", 40, 9)), one("empty.nii", ("<h", 44, 0))
one("type.nii", ("<h", 70, 0))
for order in "<>":
    for end in "nii", "nii.gz":
        save(f"two{'<>'.index(order)}.{end}", bytes(544), (order + "i", 0, 540), ("8s", 4, b"n+2\0\r\n\x1a\n"))
with open(f"{sys.argv[1]}/short.nii", "wb") as file:
    file.write(struct.pack("<i", 348) + bytes(60))
with open(f"{sys.argv[1]}/crc.nii.gz", "wb") as file:
    file.write(gzip.compress(struct.pack("<i", 348) + bytes(60))[:-8] + bytes(8))
EOF
    mkdir -p "$work/kept/train/a"
    cp "$work/nifti/good-gz.nii.gz" "$work/kept/train/a/1.nii.gz"
    expect 0 dl2-load bench "$work/kept" --image-size 2x2x2 -j 1 -e 3 -b 1
    grep -q '^  from the caches .* 2 decoded$' "$work/out" || fail "a volume is decompressed again: $(cat "$work/out")"
    expect 0 dl2-load bench "$work/kept" --image-size 2x2x2 -j 1 -e 3 -b 1 --cache-volumes 0 --json="$work/kept.json"
    grep -q '^  decompressed .* 3 times: .nii.gz that --cache-volumes does not keep$' "$work/out" || fail "$(cat "$work/out")"
    grep -q '"decompressed": 3' "$work/kept.json" || fail "$(cat "$work/kept.json")"
    expect 1 dl2-load check "$work/nifti"
    is "$(grep -c 'it is NIfTI-2, and NIfTI-1 is read: convert it' "$work/err")" 4 'files of NIfTI-2'
    for line in 'magic.nii: it is no NIfTI-1 file' 'many.nii: it says that it has 9 dimensions' \
        'empty.nii: dimension 2 is 0' 'type.nii: its type' 'short.nii: it ends after 64 bytes' \
        'crc.nii.gz: it cannot be decompressed: incorrect data check'; do
        said "$line"
    done
    grep -q '12 volumes, 10 bad' "$work/out" || fail "$(cat "$work/out")"
    grep -q '^\*\*' "$work/err" && fail "libnifti prints: $(cat "$work/err")"
fi
exit 0
