#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Fitted quantization tables: made from a dataset, used by name, recorded.
[ ! -w /dev/shm ] || TMPDIR=/dev/shm
LC_ALL=C; export LC_ALL
. "$srcdir/tests/lib.sh"
grep -q 'define HAVE_JPEG 1' "$builddir/config.h" || skip "this build has no JPEG"
run() { # STATUS ARGUMENTS...
    status=$1
    shift
    expect "$status" dl2-transcode --quiet "$@"
}
made() { awk -v v="$1" '$1 == v { print $3 }' "$work/out"; }
bytes() { awk -v v="$1" '$1 == v { print $4 }' "$work/out"; }
cd "$work" || exit 99

# Smooth pictures with some noise, in color.
for i in 1 2 3 4 5 6; do
    mkdir -p src/train/a src/val/a
    { printf 'P6\n%d %d\n255\n' $((90 + 10 * i)) 80
      awk -v w=$((90 + 10 * i)) -v s=$i 'BEGIN {
          srand(s)
          for (y = 0; y < 80; y++) for (x = 0; x < w; x++) for (c = 0; c < 3; c++) {
              v = 70 + 12 * sin(x / (4 + s) + c) + 14 * cos(y / (3 + c)) + 10 * sin(x * y / 200) + 8 * rand()
              printf "%c", int(v > 126 ? 126 : v < 1 ? 1 : v) } }'
    } >src/train/a/$i.ppm
done
cp src/train/a/1.ppm src/val/a/v.ppm

# ---- The same for any number of jobs; from training images alone
run 0 -j 1 fit-tables --input-size 32 --resize-shorter full,48 src one.json
run 0 -j 3 fit-tables --input-size 32 --resize-shorter full,48 src two.json
cmp one.json two.json || fail 'tables depend on the number of jobs'
grep -q '"images": 6' one.json || fail 'images'
grep -c '"subsampling"' one.json | grep -qx 6 || fail 'families'
run 0 -j 2 fit-tables --input-size 32 --crop-area 1,1 src all.json
! cmp -s one.json all.json || fail '--crop-area has no effect'
mkdir val-alone && cp -R src/val val-alone
run 0 fit-tables --input-size 32 val-alone val.json
said 'val-alone has no images for training: tables are fitted to all images'
grep -q '"images": 1' val.json || fail 'images of val'

# ---- Variants are named after the file; sizes are about those of libjpeg's tables
run 0 -j 2 --codec jpeg,jpeg:tables=one.json --q 10,50 --resize-shorter full,48 src to
is "$(ls to | tr '\n' ' ')" "jpeg-10 jpeg-10@48 jpeg-50 jpeg-50@48 \
jpeg_one-10 jpeg_one-10@48 jpeg_one-50 jpeg_one-50@48 " 'variants'
for q in 10 50; do
    usual=$(bytes jpeg-$q) fitted=$(bytes jpeg_one-$q)
    [ $((fitted * 100)) -lt $((usual * 115)) ] && [ $((fitted * 115)) -gt $((usual * 100)) ] ||
        fail "q $q: $fitted bytes, $usual with libjpeg's tables"
done
# The files have the tables that the record and the file of tables name, and decode everywhere.
if command -v djpeg >/dev/null; then
    for file in to/jpeg_one*/train/a/*.jpg; do
        djpeg "$file" >/dev/null 2>warnings && [ ! -s warnings ] || fail "djpeg: $file: $(cat warnings)"
    done
fi
if [ -n "${PYTHON3:-}" ] && "$PYTHON3" -c '' 2>/dev/null; then
    "$PYTHON3" - <<'END' || fail 'the tables of the files'
import json
zigzag = sorted(range(64), key=lambda k: (k // 8 + k % 8, (k % 8 if (k // 8 + k % 8) % 2 == 0 else k // 8)))
family = json.load(open('one.json'))['families'][0]
assert family['resolution'] == '' and family['subsampling'] == '420'
record = json.load(open('to/jpeg_one-50/dl2-variant.json'))['encoder']['tables']
data = open('to/jpeg_one-50/train/a/2.jpg', 'rb').read()
at = 0
for kind in ('luma', 'chroma'):
    steps = [int(step) for step in family['qualities'][49][kind].split()]
    assert record[kind] == steps
    at = data.index(b'\xff\xdb', at) + 5
    assert [data[at + i] for i in range(64)] == [steps[k] for k in zigzag]
END
fi

# ---- Reruns make nothing; other tables under the same name make all of that variant again
run 0 -j 2 --codec jpeg:tables=one.json --q 50 src to
is "$(made jpeg_one-50)" 0 'made again'
mkdir other
cp all.json other/one.json
run 0 -j 2 --codec jpeg:tables=other/one.json --q 50 src to
is "$(made jpeg_one-50)" 7 'with other tables'
run 0 --codec jpeg:tables=absent.json --q 50 --list variants src to # named before they are made
is "$(cut -f 1,5 "$work/out")" "$(printf 'jpeg_absent-50\tabsent.json')" 'a name'

# ---- Refused
run 2 --codec jpeg:tables=absent.json src to2
said 'absent.json'
echo '{"schema": "dl2-tables/1"}' >bad.json
run 2 --codec jpeg:tables=bad.json src to2
said 'bad.json is not a file of quantization tables'
sed 's/"luma": "[0-9]*/"luma": "256/' one.json >large.json
run 2 --codec jpeg:tables=large.json src to2
said 'large.json is not a file of quantization tables'
cp one.json my-tables.json
run 2 --codec jpeg:tables=my-tables.json src to2
said 'rename it'
run 2 --codec jpeg:tables=one.json --resize-shorter 20 src to2
said 'one.json has no tables for @20 with chroma subsampling 420, but for full size with 420, '
run 2 --codec webp:tables=one.json src to2
said "webp has no setting 'tables'"
run 2 fit-tables --q 50 src x.json
said '--q is not an option of the command fit-tables, but of recompress, frames'
run 2 --input-size 32 src to2
said '--input-size has no effect but on --target'
run 2 fit-tables src
said 'too few arguments: SOURCE FILE is expected'
run 2 fit-tables --crop-area 1,0.5 src x.json
said "'1,0.5' is not two parts from 0 to 1"
run 1 fit-tables --sensitivity one.json src x.json
said 'one.json'
[ ! -e to2 ] && [ ! -e x.json ] || fail 'something was written'
: >src/train/a/broken.ppm
printf 'P6\n9 9\n255\nshort' >src/train/a/broken.ppm
run 1 fit-tables --input-size 32 src x.json
said 'broken.ppm'
grep -q '"images": 6' x.json || fail 'images beside a broken one'
exit 0
