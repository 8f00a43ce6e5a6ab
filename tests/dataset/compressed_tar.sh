#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Compressed tar shards: dl2-transcode copy reads them from front to back, and what else opens them says so; damage is
# named.
. "$srcdir/tests/lib.sh"
need tar tar
need gzip gzip
cd "$work" || exit 99
mkdir plain whole packed
for i in 10 11 12 13 14 15 20 21 22; do
    picture "plain/$i.ppm" 90 60 $i
    echo "a caption of $i" >"plain/$i.txt"
    echo $((i % 3)) >"plain/$i.cls"
done
(cd plain && tar cf ../whole/train-0.tar 1* && tar cf ../whole/train-1.tar 2*) || fail tar
gzip -c whole/train-0.tar >packed/train-0.tar.gz
# Of two members, as pigz and cat write them.
{ head -c 20000 whole/train-1.tar | gzip; tail -c +20001 whole/train-1.tar | gzip; } >packed/train-1.tgz
copy() { expect 0 dl2-transcode --quiet copy "$@"; }

copy --container=tar whole from-whole
copy --container=tar packed from-packed
is "$(cd from-packed && cat train/*.tar | cksum)" "$(cd from-whole && cat train/*.tar | cksum)" 'a copy of compressed shards'
tar xOf from-packed/train/shard-000000.tar 15.txt | grep -q 'caption of 15' || fail 'what lies beside images'
copy --container=tar packed from-packed
grep -q ' 0 written' "$work/out" || fail 'copied twice'
copy --container=gulp packed gulp
copy packed/train-1.tgz folders
[ -f folders/21.ppm ] && cmp -s folders/21.ppm plain/21.ppm || fail 'a folder of one compressed shard'

# ---- What would read in any order is refused, with what to do
for program in 'dl2-transcode identify' 'dl2-transcode --codec ppm --container=tar' 'dl2-load check' 'dl2-transcode index' \
    'dl2-transcode copy --container=tar --shuffle'; do
    case $program in *container*) dest=dest ;; *) dest= ;; esac
    # shellcheck disable=SC2086
    expect 1 $program packed $dest
    said 'packed/train-0.tar.gz: samples of a compressed tar file cannot be read one by one; make plain shards with'
done

# ---- Damage: cut short, other bytes, no gzip; nothing is left where a copy was to be
refused() {
    expect 1 dl2-transcode --quiet copy --container=tar bad copied
    said "bad/train-0.tar.gz: $1"
    is "$(ls copied)" '' 'what was written'
    rm -rf copied
}
mkdir bad
size=$(wc -c <packed/train-0.tar.gz)
for cut in $((size - 1)) $((size / 2)) 30 5; do
    head -c $cut packed/train-0.tar.gz >bad/train-0.tar.gz
    refused 'the gzip data end too early: cut short'
done
{ head -c $((size / 2)) packed/train-0.tar.gz; printf 'ABCDEFGH'; tail -c +$((size / 2 + 9)) packed/train-0.tar.gz; } >bad/train-0.tar.gz
refused 'damaged gzip data: '
cp whole/train-0.tar bad/train-0.tar.gz
refused 'it is not compressed by gzip'
: >bad/train-0.tar.gz
refused 'it is not compressed by gzip'
head -c 3000 whole/train-0.tar | gzip >bad/train-0.tar.gz
refused 'the member at 1024 has'
head -c 1000000 /dev/zero | gzip >bad/train-0.tar.gz
expect 1 dl2-transcode --quiet copy --container=tar bad copied
said 'no samples'
exit 0
