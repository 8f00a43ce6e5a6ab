#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Lists of images: the same samples, classes and splits as class folders; what is wrong is named with its line.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"
make_images data 3 6 2 8
identify() { dl2-transcode identify "$1" | grep -v '^name\|^container\|^fingerprint'; }

# ---- With columns by name, in any order, with quotes; and a path and a class
(cd data && find train val -name '*.ppm' | LC_ALL=C sort -r) >names
awk -F/ 'BEGIN { print "split,id,label,path" } { printf "%s,%d,%s,\"data/%s\"\n", $1, NR, $2, $0 }' names >all.csv
awk -F/ 'BEGIN { print "filename\tclass\tset" } { printf "data/%s\t%s\t%s\r\n", $0, $2, $1 == "val" ? "validation" : "training" }' names >all.tsv
is "$(identify all.csv)" "$(identify data)" 'a list with columns'
is "$(identify all.tsv)" "$(identify data)" 'a list with tabs'
grep ^train names | awk -F/ -v here="$PWD" '{ printf "%s/data/%s  %s\n", here, $0, $2 }' >train.txt
grep ^train names | awk -F/ '{ printf "data/%s,%s\n", $0, $2 }' >train.lst
is "$(identify train.txt)" "$(identify data/train)" 'absolute paths and blanks'
is "$(identify train.lst)" "$(identify data/train)" 'commas'

# ---- As spreadsheets and editors write them: a byte order mark, blanks around fields; ./ in paths
{ printf '\357\273\277split , id , label , path\r\n'
  awk -F/ '{ printf "%s, %d , %s , \"./data/./%s\" \r\n", $1, NR, $2, $0 }' names; } >marked.csv
is "$(identify marked.csv)" "$(identify data)" 'a list with a byte order mark, blanks and ./'

# ---- Trains as the folder does; variants have the classes and splits, and pair by key
expect 0 run -d all.csv --out by-list
expect 0 run -d data --out by-folder
is "$(field by-list/$REPORT classes)" "$(field by-folder/$REPORT classes)" 'classes'
expect 0 dl2-transcode --quiet --codec ppm all.csv variants
is "$(identify variants/ppm | grep 'images\|classes')" "$(identify data | grep 'images\|classes')" 'a variant of a list'
[ -f variants/ppm/val/c1/data/val/c1/000.ppm ] || fail "a variant's key: $(find variants -name '*.ppm' | head -n 1)"
expect 0 dl2-quality --quiet --metrics psnr_rgb all.csv variants/ppm
grep -q '^Reference: all.csv, 24 images' "$work/out" || fail 'pairs by key'
expect 0 dl2-transcode --quiet copy --container=tar all.csv packed
is "$(identify packed)" "$(identify data)" 'a packed copy'

# ---- Other files are counted; what is wrong is refused by its line
cp all.csv notes.csv
echo 'train,99,c0,all.csv' >>notes.csv
is "$(identify notes.csv)" "$(identify data)" 'a file that is no image'
refused() { # TEXT LINE...
    wanted=$1
    shift
    printf '%b\n' "$@" >bad.csv
    expect 1 dl2-transcode identify bad.csv
    said "$wanted"
}
image=data/train/c0/000.ppm
refused 'bad.csv: line 2: data/absent.ppm: No such file' "$image,a" 'data/absent.ppm,b'
refused 'bad.csv: line 1: a path with ..' "../$image,a"
refused 'bad.csv: line 1: a path with ..' "data/.././train/c0/000.ppm,a"
refused "bad.csv: line 1: its class cannot be a folder's name" "$image,a/b"
refused "bad.csv: line 1: its class cannot be a folder's name" "$image,"
refused "bad.csv: line 1: its class cannot be a folder's name, or is a split's" "$image,train"
refused "bad.csv: line 2: its split cannot be a folder's name" path,label,split "$image,a,.."
refused 'bad.csv: line 1: it has other fields' "$image,a,b"
refused 'bad.csv: line 3: it has fewer fields than the first line' path,id,label "$image,1,a" "$image,1"
refused 'bad.csv: line 1: a quoted field' "\"$image,a"
refused 'line 2 names the same image with the same class as line 1' "$image,a" "$image,a"
refused 'bad.csv: it is not a text: byte 2 is zero' 'a\0000b'
refused 'bad.csv: it is UTF-16; save it as UTF-8' '\0377\0376p'
refused 'bad.csv: line 1: it is not a path, a blank or tab, and a class' word
: >empty.csv
expect 1 dl2-transcode identify empty.csv
i=0
while [ $i -lt 40 ]; do # any bytes: an answer or a message, never a crash
    head -c $((i * 7)) "$builddir/dl2-load" | cat - all.csv | head -c 900 >any.csv
    dl2-transcode identify any.csv >out 2>err
    status=$?
    [ $status -le 1 ] && [ -s out -o -s err ] || fail "exit status $status of any bytes"
    i=$((i + 1))
done
exit 0
