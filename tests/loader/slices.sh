#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Only the rows that a crop needs are read of packed JPEGs: fewer bytes, the same pixels, and damage in them is found.
. "$srcdir/tests/lib.sh"
dl2-transcode --version | grep -q '^  jpeg:' || skip "this build can't write JPEG (Debian: libjpeg62-turbo-dev)"
mkdir -p "$work/src/train/a" "$work/src/train/b"
for i in 1 2 3 4 5 6; do
    class=$([ $((i % 2)) = 0 ] && echo a || echo b)
    kind=$([ $i = 3 ] && echo 5 || echo 6)
    width=$((500 + 37 * i)) height=$((300 + 41 * i))
    {
        printf 'P%d\n%d %d\n255\n' $kind $width $height
        awk -v n=$((width * height * (kind == 5 ? 1 : 3))) -v seed=$i 'BEGIN {
            srand(seed); for (i = 0; i < n; i++) printf "%c", 33 + int(rand() * 40) + int(40 * (1 + sin(i / 500))) }'
    } >"$work/src/train/$class/$i.ppm"
done
for container in tar gulp; do
    expect 0 dl2-transcode --quiet --q 85 --container=$container "$work/src" "$work/$container"
done
expect 0 dl2-transcode --quiet --q 85 "$work/src" "$work/folder"

# Digest and bytes read of a bench.
bench() {
    expect 0 dl2-load bench --quiet --split all -b 3 -e 3 --digest --json "$work/bench.json" "$@"
    digest=$(sed -n 's/^digest //p' "$work/out")
    bytes=$(sed -n 's/.*"bytes_read": \([0-9]*\).*/\1/p' "$work/bench.json" | head -n 1)
    [ -n "$digest" ] && [ -n "$bytes" ] || fail "no digest, or no bytes: $(cat "$work/bench.json")"
}
for mode in "--train -i 64 --seed 1" "--train -i 200 --seed 2" "--val -i 96" "--train -i 64 --gray --seed 3"; do
    # shellcheck disable=SC2086
    bench $mode "$work/folder/jpeg-85"
    truth=$digest
    for container in tar gulp; do
        # shellcheck disable=SC2086
        bench $mode --whole "$work/$container/jpeg-85"
        whole=$bytes
        [ "$digest" = "$truth" ] || fail "$container, $mode: other pixels than from a folder"
        for how in "-j 1 --io direct" "-j 3 --io threads" "-j 2 --io auto --batching completion -b 6"; do
            # shellcheck disable=SC2086
            bench $mode $how "$work/$container/jpeg-85"
            case $how in *completion*) ;; *)
                [ "$digest" = "$truth" ] || fail "$container, $mode, $how: other pixels of slices than of whole images" ;;
            esac
            case $mode$how in *train*direct) # read ahead, neighbors come in one read with what is between
                [ "$bytes" -lt $((whole - 20000)) ] || fail "$container, $mode, $how: $bytes bytes read, $whole of whole images" ;;
            esac
        done
    done
done
# Images that an EXIF orientation turns are cut along their coded rows, which may run in any way.
mkdir -p "$work/turned/train/a"
for i in 1 2 3 4 5 6 7 8; do # SOI, APP1 with the orientation, and the rest of the file
    from=$(find "$work/folder/jpeg-85" -name "$((1 + i % 6)).jpg")
    {
        head -c 2 "$from"
        # shellcheck disable=SC2059
        printf "\\377\\341\\0\\042Exif\\0\\0MM\\0*\\0\\0\\0\\010\\0\\1\\001\\022\\0\\3\\0\\0\\0\\1\\0\\$(printf %o $i)\\0\\0\\0\\0\\0\\0"
        tail -c +3 "$from"
    } >"$work/turned/train/a/$i.jpg"
done
expect 0 dl2-transcode --quiet survey "$work/turned"
is "$(grep '^orientation' "$work/out" | tr -s ' ')" 'orientation 1: 1, 2: 1, 3: 1, 4: 1, 5: 1, 6: 1, 7: 1, 8: 1' 'orientations'
expect 0 dl2-transcode --quiet copy --container=tar "$work/turned" "$work/turned-tar"
for mode in "--train -i 64 --seed 4" "--train -i 200 --seed 5" "--train -i 96 --gray --seed 6 --batching completion" "--val -i 96"; do
    # shellcheck disable=SC2086
    bench $mode "$work/turned"
    truth=$digest whole=$bytes
    # shellcheck disable=SC2086
    bench $mode -j 2 "$work/turned-tar"
    case $mode in *completion*) ;; *)
        [ "$digest" = "$truth" ] || fail "turned, $mode: other pixels of slices than of whole images" ;;
    esac
    case $mode in *train*) [ "$bytes" -lt $((whole - 20000)) ] || fail "turned, $mode: $bytes bytes read, $whole of whole images" ;; esac
done

# A cache wants them whole, and gets them.
bench --train -i 64 --seed 1 --cache 1G "$work/tar/jpeg-85"
all=$(sed -n 's/.*"bytes": \([0-9]*\).*/\1/p' "$work/tar/jpeg-85/dl2-variant.json" | head -n 1)
[ "$bytes" = "$all" ] || fail "$bytes bytes read into a cache, of $all"

# An index that is made afterwards knows the same.
bench --train -i 64 --seed 1 "$work/tar/jpeg-85"
sliced=$bytes truth=$digest
cp -p "$work/tar/jpeg-85/dl2-index.bin" "$work/index"
rm "$work/tar/jpeg-85/dl2-index.bin"
bench --train -i 64 --seed 1 "$work/tar/jpeg-85"
[ "$digest" = "$truth" ] || fail "other pixels without the index"
[ "$bytes" -gt "$sliced" ] || fail "slices without an index"
expect 0 dl2-transcode --quiet index "$work/tar/jpeg-85"
bench --train -i 64 --seed 1 "$work/tar/jpeg-85"
[ "$digest $bytes" = "$truth $sliced" ] || fail "$bytes bytes read with an index made anew, not $sliced"

# A spoilt byte in the middle of an image is in the slices of nearly every crop of it.
shard=$work/tar/jpeg-85/train/shard-000000.tar
[ -f "$shard" ] || fail "no shard at $shard"
touch -r "$shard" "$work/time"
printf '\125\125\125\125' | dd of="$shard" bs=1 seek=$(($(wc -c <"$shard") / 12)) conv=notrunc 2>/dev/null
touch -r "$work/time" "$shard"
part=
for seed in 1 2 3 4 5 6 7 8; do
    expect 1 dl2-load bench --quiet --split all -b 3 -e 4 -i 64 --seed $seed "$work/tar/jpeg-85"
    grep -q 'shard-000000.tar\[train/.*damaged: ' "$work/err" || fail "the damaged image isn't named: $(cat "$work/err")"
    part=$part$(grep -c 'the check sum of a part of it' "$work/err")
done
case $part in *1*) ;; *) fail "damage was never found in slices" ;; esac
