#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# dl2-transcode --part, --ranks and mpirun: the bytes of one process, in every container, with targets, masks, failures
# and taken names; a lost part; another division; and what is refused.
[ ! -w /dev/shm ] || TMPDIR=/dev/shm
. "$srcdir/tests/lib.sh"
grep -q 'define HAVE_JPEG 1' "$builddir/config.h" || skip "this build has no JPEG"
grep -q 'define HAVE_PNG 1' "$builddir/config.h" || skip "this build has no PNG"
images=$builddir/tests/transcode/images
made() { awk -v v="$1" '$1 == v { print $3 }' "$work/out"; }
# expect_end STATUS: of the commands in the background, whose numbers are in $pids
expect_end() {
    for pid in $pids; do
        wait "$pid"
        is $? "$1" "status of a part"
    done
}

# ---- A source with masks, captions, a file that cannot be read, and two files that would have one name
"$images" tree "$work/src" 40 || exit 99
set -- $(find "$work/src" -name '*.ppm' | sort)
for file in "$1" "$2" "${20}"; do
    cp "$file" "$work/mask.ppm"
    size=$("$images" show "$file" | cut -d ' ' -f 1,2)
    picture "${file%.ppm}.mask.ppm" ${size% *} ${size#* } 3
    echo "caption of $file" >"${file%.ppm}.txt"
done
cp "$1" "${1%.ppm}.pnm" # the name of $1, in the same format
head -c 40 "$5" >"$work/cut" && cp "$work/cut" "$5"
: >"$work/src/README.txt"
"$images" tree "$work/small" 9 || exit 99
codecs=jpeg,png
! grep -q 'define HAVE_WEBP 1' "$builddir/config.h" || codecs=$codecs,webp

# Facts without times; of an index, the time of a shard takes 8 bytes, and sums over it some more.
facts() { sed 's/"\(en\|de\)code_cpu_seconds": *[-0-9.e]*,*//g' "$1"; }
same() { # ONE OTHER
    diff -rq -x 'dl2-variant.json*' -x dl2-index.bin -x .dl2-transcode.lock "$1" "$2" || fail "$2 has other bytes than $1"
    for file in $(cd "$1" && find . -name 'dl2-variant.json*' -o -name dl2-index.bin); do
        case $file in
        *.bin) cmp -l "$1/$file" "$2/$file" >"$work/differs"
            [ "$(wc -l <"$work/differs")" -le 64 ] || fail "$2/$file is another index than $1's" ;;
        *) facts "$1/$file" >"$work/one"; facts "$2/$file" >"$work/two"
            diff "$work/one" "$work/two" || fail "$2/$file" ;;
        esac
    done
    [ -z "$(find "$2" -name '*.dl2-tmp' -o -name '.dl2-variant.*' -o -name '.dl2-transcode.part*' -o -name .dl2-unfinished)" ] ||
        fail "something is left over in $2"
}
parts() { # N DEST ARGUMENTS...: all at once
    n=$1 dest=$2 pids=
    shift 2
    for i in $(seq "$n" -1 1); do
        dl2-transcode --quiet -j 1 --part "$i/$n" "$@" "$work/src" "$dest" >"$work/out.$i" 2>"$work/err.$i" &
        pids="$pids $!"
    done
}
check() { # NAME ARGUMENTS...
    name=$1
    shift
    expect 1 dl2-transcode --quiet -j 2 "$@" "$work/src" "$work/one-$name"
    parts 4 "$work/parts-$name" "$@"
    for pid in $pids; do
        wait "$pid"
        [ $? -le 1 ] || { cat "$work"/err.* >&2; fail "a part of $name"; }
    done
    is "$(cat "$work"/out.? | grep -c 'the variants are complete')" 1 "parts of $name that say that all is complete"
    same "$work/one-$name" "$work/parts-$name"
    [ "$name" != slow ] || return 0
    expect 1 dl2-transcode --quiet -j 1 --ranks 3 "$@" "$work/src" "$work/ranks-$name"
    same "$work/one-$name" "$work/ranks-$name"
}
options="--codec $codecs --q 30,60 --resize-shorter 24,full"
check folder $options
is "$(find "$work/parts-folder" -name '*.mask.ppm' | wc -l)" "$(find "$work/one-folder" -name '*.mask.ppm' | wc -l)" masks
check tar $options --container tar
check gulp --codec jpeg --q 30 --container gulp --shuffle=7
check target --codec $codecs --target ssim=0.9,bytes=600 --on-miss fail
if ! slow; then
    check tartarget --codec $codecs --target bytes=600 --container tar --shard 1 --shuffle=3
    if command -v mpirun >/dev/null 2>&1 && dl2-train --version | grep -q 'ranks by mpi'; then
        OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
        export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
        expect 1 mpirun --oversubscribe --mca btl_vader_single_copy_mechanism none -n 4 \
            dl2-transcode --quiet -j 1 $options "$work/src" "$work/mpi-folder"
        is "$(grep -c '^variant ' "$work/out")" 1 'tables of four ranks'
        same "$work/one-folder" "$work/mpi-folder"
    fi
fi

# ---- A part that is lost is made by the command without parts, and so is one of another division
dest=$work/lost
for container in folder tar; do
    again="--quiet -j 2 --codec jpeg --q 30 --container $container"
    expect 0 dl2-transcode $again "$work/small" "$work/small-$container"
    rm -rf "$dest"
    total=0
    for part in 3/3 2/2 1/3; do
        expect 0 dl2-transcode $again --part $part "$work/small" "$dest"
        grep -q "^part $part has ended; " "$work/out" || fail "part $part: $(cat "$work/out")"
        total=$((total + $(made jpeg-30)))
    done
    grep -q '; 1 of 3 parts are missing, the first is 2/3' "$work/out" || fail "the missing part: $(cat "$work/out")"
    dl2-load check "$dest/jpeg-30" >/dev/null 2>"$work/err" # nobody takes it for a whole one
    grep -q -e 'is not complete' -e 'was not written to its end' "$work/err" || fail "opened: $(cat "$work/err")"
    expect 0 dl2-transcode $again "$work/small" "$dest"
    is "$((total + $(made jpeg-30)))" 9 "images made in all, of 9, in $container"
    same "$work/small-$container" "$dest"
    # All is there: no part has anything to do.
    expect 0 dl2-transcode $again --part 2/5 "$work/small" "$dest"
    is "$(made jpeg-30)" 0 'made of what is there'
    grep -q 'part 2/5 has ended, and the variants are complete' "$work/out" || fail "nothing to do: $(cat "$work/out")"
    same "$work/small-$container" "$dest"
done
# Where every image is made, any part completes the rest.
for container in folder tar; do
    rm -rf "$dest.made"
    now="--quiet --codec jpeg --q 30 --container $container"
    expect 0 dl2-transcode $now --part 1/2 "$work/small" "$dest.made"
    expect 0 dl2-transcode $now --part 2/3 "$work/small" "$dest.made"
    expect 0 dl2-transcode $now --part 1/3 "$work/small" "$dest.made"
    rm "$dest.made"/.dl2-transcode.part-* # as if all were of other divisions
    expect 0 dl2-transcode $now --part 3/3 "$work/small" "$dest.made"
    grep -q '; 2 of 3 parts are missing' "$work/out" || fail "3/3: $(cat "$work/out")"
    expect 0 dl2-transcode $now --part 3/3 "$work/small" "$dest.made"
    grep -q 'part 3/3 has ended, and the variants are complete' "$work/out" || fail "3/3: $(cat "$work/out")"
    same "$work/small-$container" "$dest.made"
done
# Options that change make everything again, and no image of others is taken.
expect 0 dl2-transcode $again --part 1/2 "$work/small" "$dest.other"
expect 0 dl2-transcode $again --effort 1 --part 1/2 "$work/small" "$dest.other"
expect 0 dl2-transcode $again --effort 1 --part 2/2 "$work/small" "$dest.other"
expect 0 dl2-transcode $again --effort 1 "$work/small" "$work/effort"
same "$work/effort" "$dest.other"
# Images that wait are not taken when their bytes are no more those that were written.
expect 0 dl2-transcode $again --part 1/2 "$work/small" "$dest.spoilt"
printf x | dd of="$dest.spoilt/jpeg-30/.dl2-variant.images-1-of-2" conv=notrunc status=none bs=1 seek=20
expect 1 dl2-transcode $again "$work/small" "$dest.spoilt"
said 'are not those that were written'
expect 1 dl2-load check "$dest.spoilt/jpeg-30"
rm "$dest.spoilt/jpeg-30/.dl2-variant.images-1-of-2"
expect 0 dl2-transcode $again "$work/small" "$dest.spoilt"
same "$work/small-tar" "$dest.spoilt"

# ---- Refused
if command -v flock >/dev/null 2>&1; then
    mkdir -p "$work/locked"
    expect 1 flock "$work/locked/.dl2-transcode.part-2-of-4" \
        dl2-transcode --quiet --codec jpeg --part 2/4 "$work/small" "$work/locked"
    said 'another process is making part 2/4'
    echo 0000000000000000-4 >"$work/locked/.dl2-transcode.lock"
    expect 1 flock -s "$work/locked/.dl2-transcode.lock" \
        dl2-transcode --quiet --codec jpeg --part 2/4 "$work/small" "$work/locked"
    said 'parts of another run are at work here'
fi
for part in 0/4 5/4 1/0 1 1/2/3 a/b -1/2 1/65536 ' 1/2' ''; do
    expect 2 dl2-transcode --part "$part" "$work/small" "$work/never"
done
expect 2 dl2-transcode --part 1/2 --force "$work/small" "$work/never"
said '--force has no effect with --part'
expect 2 dl2-transcode --part 1/2 copy --container tar "$work/small" "$work/never"
expect 2 dl2-transcode --part 1/2 --ranks 2 "$work/small" "$work/never"
[ ! -e "$work/never" ] || fail 'something was written'
