#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# dl2-quality --part, --ranks and mpirun: the table, the JSON, the CSV, the heat maps and the status of one process, with
# images that are missing, broken, of another size and extra; a lost part; what is refused; and damaged scores.
[ ! -w /dev/shm ] || TMPDIR=/dev/shm
. "$srcdir/tests/lib.sh"
grep -q 'define HAVE_JPEG 1' "$builddir/config.h" || skip "this build has no JPEG"
"$builddir/tests/transcode/images" tree "$work/src" 40 || exit 99
expect 0 dl2-transcode --quiet -j 2 --q 20,70 --resize-shorter 32,full "$work/src" "$work/variants"
set -- $(find "$work/variants/jpeg-20" -name '*.jpg' | sort)
rm "$1"
head -c 200 "$2" >"$work/cut" && cp "$work/cut" "$2"
cp "$3" "${4%.jpg}-extra.jpg"
cp "$3" "$5" # of another size, or not
variants="$work/variants/jpeg-20 $work/variants/jpeg-70@32 $work/variants/jpeg-70"
quality() { # STATUS DIR ARGUMENTS...
    status=$1 dir=$2
    shift 2
    mkdir -p "$dir"
    expect "$status" dl2-quality --quiet -j 1 --metrics psnr_y,ssim,ms_ssim --below ssim=0.5 --json "$dir/scores.json" \
        --json-dir "$dir/each" --csv "$dir/scores.csv" "$@" "$work/src" $variants
    sed "s,$dir,DIR,g" "$work/out" >"$work/table"
    sort "$work/err" >"$work/faults"
}
json() { sed 's/"\(reference_\|\)cpu_seconds": *[-0-9.e]*,*//g' "$1"; }
same() { # DIR
    diff -r -x '*.json' "$work/one" "$1" || fail "$1 has other files"
    for file in $(cd "$work/one" && find . -name '*.json'); do
        json "$work/one/$file" >"$work/a"; json "$1/$file" >"$work/b"
        diff "$work/a" "$work/b" || fail "$1/$file"
    done
    diff "$work/one.table" "$work/table" || fail "$1: another table"
    diff "$work/one.faults" "$work/faults" || fail "$1: other faults"
}
quality 1 "$work/one"
cp "$work/table" "$work/one.table"
cp "$work/faults" "$work/one.faults"
grep -q missing "$work/faults" || fail 'nothing is missing'

# ---- Parts, one after the other
for part in 3/4 1/4 2/4; do
    quality 0 "$work/parts" --part $part
    grep -q "^part $part has ended; " "$work/out" || fail "part $part: $(cat "$work/out")"
    [ ! -e "$work/parts/scores.json" ] || fail 'scores of a few parts'
done
grep -q '; 1 of 4 parts are missing, the first is 4/4$' "$work/out" || fail "which part: $(cat "$work/out")"
# A part whose scores were damaged, which the last one finds
cp "$work/parts/.scores.json.part-2-of-4.scores" "$work/kept"
for change in 's/^end$//' '$d' '2s/ [0-9]* / 99999 /' '2s/0x/zz/' 's,^dl2-quality-part/3 .,&x,' '3d'; do
    sed "$change" "$work/kept" >"$work/parts/.scores.json.part-2-of-4.scores"
    quality 1 "$work/parts" --part 4/4
    said 'the scores of part 2/4 are damaged; run that part again'
    [ ! -e "$work/parts/scores.json" ] || fail "scores in spite of $change"
done
quality 1 "$work/parts" --part 2/4
same "$work/parts"
[ -z "$(find "$work/parts" -name '.*.json*')" ] || fail "left over: $(ls -A "$work/parts")"

# ---- All at once: one of them has the result
mkdir -p "$work/once"
for part in 1 2 3; do
    dl2-quality --quiet -j 1 --metrics psnr_y,ssim --json "$work/once/scores.json" --part $part/3 "$work/src" $variants \
        >"$work/out.$part" 2>/dev/null &
done
wait
is "$(cat "$work"/out.? | grep -c '^Reference: ')" 1 'tables of three parts'
[ -s "$work/once/scores.json" ] || fail 'no scores of three parts'
# Scores by other metrics, or of a variant that has changed, are none.
again() { dl2-quality --quiet -j 1 --json "$work/once/other.json" "$@" "$work/src" "$work/variants/jpeg-70"; }
expect 0 again --part 1/2 --metrics ssim
expect 0 again --part 2/2 --metrics psnr_y
grep -q '1 of 2 parts are missing, the first is 1/2' "$work/out" || fail "other metrics: $(cat "$work/out")"
cp "$work/src/$(cd "$work/src" && find . -name '*.ppm' | head -n 1)" "$work/variants/jpeg-70/$(cd "$work/variants/jpeg-70" && find . -name '*.jpg' | head -n 1)"
expect 0 again --part 1/2 --metrics psnr_y
grep -q '1 of 2 parts are missing, the first is 2/2' "$work/out" || fail "another variant: $(cat "$work/out")"

# ---- Ranks
quality 1 "$work/one2"
variants="$work/variants/jpeg-20 $work/variants/jpeg-70@32 $work/variants/jpeg-70"
rm -rf "$work/one"; mv "$work/one2" "$work/one"
cp "$work/table" "$work/one.table"
cp "$work/faults" "$work/one.faults"
quality 1 "$work/ranks" --ranks 3
same "$work/ranks"
expect 1 dl2-quality --quiet --ranks 2 "$work/nowhere" $variants
is "$(grep -c '^dl2-quality' "$work/err")" 1 'messages of two ranks'

# ---- Refused
if command -v flock >/dev/null 2>&1; then
    mkdir -p "$work/locked"
    expect 1 flock "$work/locked/.s.json.part-1-of-2" dl2-quality --quiet --json "$work/locked/s.json" --part 1/2 \
        "$work/src" $variants
    said 'another process is making part 1/2'
fi
expect 2 dl2-quality --part 1/2 "$work/src" $variants
said '--part needs --json FILE'
expect 2 dl2-quality --part 1/2 --ranks 2 --json "$work/x.json" "$work/src" $variants
expect 2 dl2-quality --part 3/2 --json "$work/x.json" "$work/src" $variants
file=$(find "$work/src" -name '*.ppm' | head -n 1)
expect 1 dl2-quality --part 1/2 --json "$work/x.json" "$file" "$file"
said 'an image file has no parts'
