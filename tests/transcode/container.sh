#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Packed variants and copies: the same images, labels and splits as folders; what is redone, refused, and what a kill leaves.
[ ! -w /dev/shm ] || TMPDIR=/dev/shm
. "$srcdir/tests/lib.sh"
grep -q 'define HAVE_JPEG 1' "$builddir/config.h" || skip "this build has no JPEG"
images=$builddir/tests/transcode/images
run() { # STATUS ARGUMENTS...
    status=$1
    shift
    expect "$status" dl2-transcode --quiet -j 2 "$@"
}
made() { awk -v v="$1" '$1 == v { print $3 }' "$work/out"; }
# The container's own bytes; the index tells its shards' times.
same_container() { # A B
    diff -r -x 'dl2-*' -x '.dl2-*' "$1" "$2" >"$work/diff" || { cat "$work/diff" >&2; fail "$1 and $2 differ"; }
}

"$images" tree "$work/src" 40 || exit 99
echo 'not an image' >"$work/src/README.txt"
run 0 --q 50,90 "$work/src" "$work/folder"

for container in gulp tar; do
    at=$work/$container
    # ---- The variant, and the same bytes for any number of jobs
    run 0 --q 50,90 --container=$container "$work/src" "$at"
    is "$(made jpeg-50)" 40 'made'
    grep -q "\"container\": \"$container\"" "$at/jpeg-50/dl2-variant.json" || fail 'not said what it lies in'
    grep -q '"ignored": 1' "$at/jpeg-50/dl2-variant.json" || fail 'ignored files'
    expect 0 dl2-transcode --quiet -j 1 --q 50,90 --container=$container "$work/src" "$work/one"
    expect 0 dl2-transcode --quiet -j 5 --q 50,90 --container=$container "$work/src" "$work/five"
    same_container "$at" "$work/one"
    same_container "$at" "$work/five"
    rm -r "$work/one" "$work/five"
    # ---- Unpacked, it is the folder; packed again, itself
    run 0 copy "$at/jpeg-50" "$work/un-$container"
    same_container "$work/un-$container" "$work/folder/jpeg-50"
    grep -q '"variant": "jpeg-50"' "$work/un-$container/dl2-variant.json" || fail 'no longer a variant'
    run 0 copy --container=$container "$work/folder/jpeg-50" "$work/again-$container"
    same_container "$work/again-$container" "$at/jpeg-50"
    # ---- Copies and their indexes, too, are the same for any number of jobs, but for shards' times
    for jobs in 1 5; do
        expect 0 dl2-transcode --quiet -j $jobs copy --container=$container "$work/un-$container" "$work/copy-$jobs"
        same_container "$work/copy-$jobs" "$at/jpeg-50"
        find "$work/copy-$jobs" -name '*.gulp' -o -name '*.gmeta' -o -name '*.tar' | xargs touch -d @1000000000
        expect 0 dl2-transcode --quiet -j $jobs index "$work/copy-$jobs"
    done
    cmp "$work/copy-1/dl2-index.bin" "$work/copy-5/dl2-index.bin" || fail 'indexes differ'
    rm -r "$work/copy-1" "$work/copy-5"
    # ---- Every program reads it
    expect 0 dl2-quality --quiet --json="$work/quality-$container.json" "$work/src" "$at/jpeg-50"
    grep -q '"missing": \[\]' "$work/quality-$container.json" || fail 'keys that the folder does not have'
    expect 0 dl2-load check --quiet "$at/jpeg-50"
    # ---- Nothing is done twice; one changed source makes it all again
    index=$(stat -c %y "$at/jpeg-50/dl2-index.bin")
    run 0 --q 50,90 --container=$container "$work/src" "$at"
    is "$(made jpeg-50) $(stat -c %y "$at/jpeg-50/dl2-index.bin")" "0 $index" 'made again'
    run 0 copy --container=$container "$work/folder/jpeg-50" "$work/again-$container"
    grep -q ' 0 written' "$work/out" || fail 'copied again'
    touch "$work/src/train/rose/0001.ppm"
    run 0 --q 50 --container=$container "$work/src" "$at"
    is "$(made jpeg-50)" 40 'made for a changed source'
    mkdir "$work/src/train/zinnia"
    cp "$work/src/train/rose/0001.ppm" "$work/src/train/zinnia/1.ppm"
    run 0 --q 50 --container=$container "$work/src" "$at"
    is "$(made jpeg-50)" 41 'made for a new class'
    rm -r "$work/src/train/zinnia"
    run 0 --q 50 --container=$container "$work/src" "$at"
    same_container "$at/jpeg-50" "$work/again-$container"
    rm "$at/jpeg-50/dl2-index.bin"
    run 0 index "$at/jpeg-50"
    is "$(cat "$work/out")" "$at/jpeg-50/dl2-index.bin: 40 samples" 'an index'
    # ---- A damaged sample is found, and named
    shard=$(find "$at/jpeg-90/train" -name '*.gulp' -o -name '*.tar')
    time=$(stat -c %y "$shard")
    printf 'oops' | dd of="$shard" bs=1 seek=700 conv=notrunc 2>/dev/null
    touch -d "$time" "$shard"
    expect 1 dl2-load check --quiet "$at/jpeg-90"
    cat "$work/out" "$work/err" | grep -q 'train/rose/0001.*check sum' || fail 'a damaged sample goes unnoticed'
    # ---- Folders and containers don't mix
    run 2 --q 50 "$work/src" "$at"
    said 'holds a packed variant'
    run 2 --q 50 --container=$container "$work/src" "$work/folder"
    said 'in the way'
    run 2 copy "$work/src" "$at/jpeg-50"
    said 'holds a packed dataset'
    same_container "$work/un-$container" "$work/folder/jpeg-50"
done

# ---- Images that can't be, and names that a container can't hold
cp -R "$work/src" "$work/bad"
head -c 50 "$work/src/train/rose/0001.ppm" >"$work/bad/train/rose/0001.ppm"
cp "$work/src/train/rose/0003.ppm" "$work/bad/train/rose/$(printf 'latin-\351').ppm"
run 1 --q 50 --container=gulp "$work/bad" "$work/b"
said 'rose/0001.ppm: '
said 'not UTF-8'
is "$(made jpeg-50)" 39 'made beside failures'
run 1 --q 50 --container=gulp "$work/bad" "$work/b"
said 'rose/0001.ppm: '
said 'not UTF-8'
is "$(made jpeg-50)" 0 'made again beside failures'
run 1 copy --container=gulp "$work/bad" "$work/b2"
said 'not UTF-8'
run 1 --q 50 --container=tar "$work/bad" "$work/b"/tar
is "$(made jpeg-50)" 40 'made as tar'
cp "$work/src/train/rose/0003.ppm" "$work/src/train/rose/0003.pgm"
run 1 copy --container=tar "$work/src" "$work/twins"
said '0003.ppm: another file has the same name'
grep -q ' 40 images' "$work/out" || fail 'the first of two must be copied'
rm "$work/src/train/rose/0003.pgm"

# ---- What failed is tried again once its source is another, older than the variant or not
cp -R "$work/src" "$work/mended"
head -c 50 "$work/src/train/rose/0001.ppm" >"$work/mended/train/rose/0001.ppm"
run 1 --q 50 --container=tar "$work/mended" "$work/m"
is "$(made jpeg-50)" 39 'made beside a cut file'
cp "$work/src/train/rose/0001.ppm" "$work/mended/train/rose/0001.ppm"
touch -d @1000000000 "$work/mended/train/rose/0001.ppm"
run 0 --q 50 --container=tar "$work/mended" "$work/m"
is "$(made jpeg-50)" 40 'made after a cut file was mended'
# ---- And what could not be read is, once it can: a file that not even root can open for reading
unreadable=$(find /sys/bus -maxdepth 2 -name drivers_probe 2>/dev/null | head -n 1)
if [ -n "$unreadable" ] && ! cat "$unreadable" >/dev/null 2>&1; then
    for container in gulp tar; do
        ln -sf "$unreadable" "$work/mended/train/rose/0001.ppm"
        run 1 --q 50 --container=$container "$work/mended" "$work/u-$container"
        said 'rose/0001.ppm: '
        is "$(made jpeg-50)" 39 'made beside an unreadable file'
        run 1 --q 50 --container=$container "$work/mended" "$work/u-$container"
        said 'rose/0001.ppm: '
        is "$(made jpeg-50)" 0 'made while it can still not be read'
        rm "$work/mended/train/rose/0001.ppm"
        cp "$work/src/train/rose/0001.ppm" "$work/mended/train/rose/0001.ppm"
        touch -d @1000000000 "$work/mended/train/rose/0001.ppm"
        run 0 --q 50 --container=$container "$work/mended" "$work/u-$container"
        is "$(made jpeg-50)" 40 'made once it could be read'
    done
else
    echo 'no file here that can not be read: what is done about one is not tested'
fi

# ---- Usage
run 2 --container=zip "$work/src" "$work/x"
run 2 index "$work/src" "$work/x"
run 2 index "$work/src"
said 'no packed dataset'
run 2 copy "$work/src"
run 2 copy "$work/src" "$work/src"
run 2 copy "$work/src" "$work/src/inside"
run 2 --container=tar "$work/src" "$work/src/inside"
said 'lies within SOURCE'
rm -rf "$work/src/inside"
mkdir "$work/empty"
run 1 copy --container=tar "$work/empty" "$work/x"

# ---- SIGKILL leaves nothing that opens as if it were whole, and a rerun ends with the same bytes
"$images" tree "$work/many" 400 || exit 99
for container in gulp tar; do
    run 0 --q 50,90 --shard 1 --container=$container "$work/many" "$work/good-$container"
    start=$(date +%s%N)
    run 0 --q 50,90 --shard 1 --container=$container "$work/many" "$work/victim"
    took=$((($(date +%s%N) - start) / 1000))
    kills=0 refused=0 attempt=0 rounds=${KILL_ROUNDS:-12}
    # A busy machine may have made the time above a poor guess: then more rounds are needed.
    while [ $attempt -lt "$rounds" ] || { [ $kills -lt 2 ] || [ $refused -lt 1 ]; } && [ $attempt -lt $((5 * rounds)) ]; do
        attempt=$((attempt + 1))
        [ $((attempt % 3)) -eq 0 ] || rm -rf "$work/victim"
        dl2-transcode --quiet --force -j 2 --q 50,90 --shard 1 --container=$container "$work/many" "$work/victim" \
            >"$work/out" 2>&1 &
        pid=$!
        sleep "$(awk -v seed="$attempt" -v took="$took" 'BEGIN { srand(seed); rand(); printf "%.6f", rand() * took / 1e6 }')"
        kill -9 $pid 2>/dev/null && kills=$((kills + 1))
        wait $pid 2>/dev/null
        for variant in jpeg-50 jpeg-90; do
            [ -d "$work/victim/$variant" ] || continue
            if dl2-load check --quiet "$work/victim/$variant" >"$work/out" 2>&1; then
                same_container "$work/victim/$variant" "$work/good-$container/$variant"
            else
                refused=$((refused + 1))
                find "$work/victim/$variant" -name '*.gulp' -o -name '*.tar' | while read -r shard; do
                    cmp -s "$shard" "$work/good-$container/${shard#"$work/victim/"}" || echo "$shard"
                done >"$work/broken"
                [ ! -s "$work/broken" ] || { cat "$work/broken" >&2; fail 'a half-written shard under its final name'; }
            fi
        done
        run 0 --q 50,90 --shard 1 --container=$container "$work/many" "$work/victim"
        same_container "$work/victim" "$work/good-$container"
        [ -z "$(find "$work/victim" -name '*.dl2-tmp' -o -name '.dl2-unfinished')" ] || fail 'something is left over'
    done
    echo "$container: $kills kills, $refused times a variant was refused"
    [ "$kills" -ge 2 ] && [ "$refused" -ge 1 ] || fail 'too few kills to tell anything'
    rm -rf "$work/victim"
done
