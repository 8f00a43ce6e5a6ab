#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# dl2-transcode survey: what it says of images whose facts are known.
. "$srcdir/tests/lib.sh"
grep -q 'define HAVE_JPEG 1' "$builddir/config.h" || skip "this build has no JPEG"
need_python numpy python3-numpy
cd "$work" || exit 99
survey() { # STATUS FOLDER...: the survey as facts.json
    status=$1
    shift
    expect "$status" dl2-transcode --quiet -j 2 survey --json facts.json "$@"
}
# fact EXPRESSION: true of the survey `s`; `source` reads a PPM.
fact() {
    "$PYTHON3" - "$1" <<'PY' || { cat facts.json >&2; fail "not so: $1"; }
import json, sys
import numpy
s = json.load(open("facts.json"))
def source(path):
    data = open(path, "rb").read()
    kind, width, height, _ = data.split(maxsplit=4)[:4]
    pixels = numpy.frombuffer(data[-int(width) * int(height) * (3 if kind == b"P6" else 1):], numpy.uint8)
    return numpy.repeat(pixels.reshape(-1, 3 if kind == b"P6" else 1).astype(float), 1 if kind == b"P6" else 3, 1)
sys.exit(not eval(sys.argv[1]))
PY
}

# Smooth pictures that differ: blocks of noise.
block() { # FILE WIDTH HEIGHT SEED [P5]
    mkdir -p "${1%/*}"
    "$PYTHON3" - "$@" <<'PY' || exit 99
import sys
import numpy
path, width, height, seed = sys.argv[1], *map(int, sys.argv[2:5])
channels = 1 if len(sys.argv) > 5 else 3
small = numpy.random.default_rng(seed).integers(0, 256, (8, 9, channels), dtype=numpy.uint8)
rows, columns = numpy.arange(height) * 8 // height, numpy.arange(width) * 9 // width
with open(path, "wb") as file:
    file.write(b"P%d\n%d %d\n255\n" % (5 if channels == 1 else 6, width, height))
    file.write(small[rows][:, columns].tobytes())
PY
}
for i in 1 2 3 4; do
    block data/train/a/$i.ppm 90 64 $i
    block data/train/b/$i.ppm 45 80 1$i
    block data/val/a/$i.ppm 180 96 2$i
done
block data/val/b/gray.pgm 27 24 31 gray

# Counts, sizes, mean and deviation of each image alike.
survey 0 data
fact 's["schema"] == "dl2-survey/1" and s["images"] == 13 and s["classes"] == 2'
fact 's["splits"] == {"train": 8, "val": 5} and list(s["formats"]) == ["ppm"] and s["bad"] == []'
fact 's["width"]["min"] == 27 and s["width"]["max"] == 180 and s["height"]["median"] == 80'
fact 's["channels"] == {"3": 12, "1": 1} and sum(s["width"]["histogram"]) == 13'
fact 's["jpeg"]["qualities"] == {} and "quality" not in s and s["duplicates"]["groups"] == 0'
find data -type f >files
cat >expected.py <<'PY'
paths = open("files").read().split()
mean = numpy.mean([source(p).mean(0) for p in paths], 0)
square = numpy.mean([(source(p) ** 2).mean(0) for p in paths], 0)
PY
fact 'exec(open("expected.py").read()) or numpy.allclose(s["mean"], mean, atol=1e-9)'
fact 'exec(open("expected.py").read()) or numpy.allclose(s["std"], (square - mean ** 2) ** 0.5, atol=1e-9)'
fact 's["duplicates"]["val_near_train"] == 0'
cp facts.json one.json
expect 0 dl2-transcode --quiet -j 1 survey --json facts.json data
cmp facts.json one.json || fail "another survey with another number of jobs"
grep -q '^ppm  *13 ' "$work/out" || fail "no table"

# Qualities and subsampling of JPEG, from 1 to 100.
for how in 420 422 444; do
    expect 0 dl2-transcode --quiet --q 1,5,25,49,50,51,75,90,99,100 --subsampling $how data jpeg$how
    for q in 01 05 25 49 50 51 75 90 99 100; do
        survey 0 jpeg$how/jpeg-$q
        number=${q#0}
        fact "s['jpeg']['qualities'] == {'$number': 13} and s['jpeg']['exact'] == 13"
        fact "s['jpeg']['subsamplings'] == {'$how': 12, 'gray': 1}"
        fact "s['quality']['p95'] == $number"
    done
done
grep -q 'of quality 100 or below' "$work/out" || fail "nothing on what recompressing gains"

cp -r data/val data/holdout
survey 0 data
fact 's["splits"] == {"train": 8, "val": 5, "holdout": 5}'
rm -r data/holdout

# Near duplicates: the same picture recompressed and at another size, in another split and class.
cp -r jpeg420/jpeg-90 twins
cp jpeg420/jpeg-25/train/a/1.jpg twins/val/a/copy-of-1.jpg
block large/c/2.ppm 270 192 2
expect 0 dl2-transcode --quiet --q 75 large small
cp small/jpeg-75/c/2.jpg twins/train/b/copy-of-2.jpg
survey 0 twins --groups groups.tsv
fact 's["duplicates"]["groups"] == 2 and s["duplicates"]["images"] == 4'
fact 's["duplicates"]["val_near_train"] == 1'
grep -q '1 validation image has a near duplicate among the training images' "$work/out" || fail "no warning"

fact 's["duplicates"]["across_splits"] == 1 and s["duplicates"]["across_classes"] == 1'
fact '[g["keys"] for g in s["duplicates"]["list"]] == [["train/a/1", "val/a/copy-of-1"], ["train/a/2", "train/b/copy-of-2"]]'
grep -q 'in several splits: train/a/1 val/a/copy-of-1' "$work/out" || fail "the leak is not shown"

# All images are in the file of groups, with the keys of predictions.
is "$(wc -l <groups.tsv)" 15 "lines of the groups"
is "$(cut -f 2 groups.tsv | sort -u | wc -l)" 13 "groups"
group_of() { sed -n "s|^$1\t||p" groups.tsv; }
is "$(group_of val/a/copy-of-1)" "$(group_of train/a/1)" "a twin's group"
is "$(group_of train/b/copy-of-2)" "$(group_of train/a/2)" "a twin's group"
[ "$(group_of train/a/1)" != "$(group_of train/a/2)" ] || fail "one group for all"
cp groups.tsv one.tsv
expect 0 dl2-transcode --quiet -j 1 survey --groups groups.tsv twins
cmp groups.tsv one.tsv || fail "other groups with another number of jobs"
name=twins/train/a/"two
lines.jpg"
cp twins/train/a/3.jpg "$name"
expect 1 dl2-transcode --quiet survey --groups groups.tsv twins
said "has a newline, which a line of the file of groups can't have"
rm "$name"
expect 2 dl2-transcode --groups groups.tsv twins out
said "--groups is not an option of the command recompress, but of survey"

# What cannot be read is named and counts for nothing.
head -c 300 twins/train/a/3.jpg >twins/train/a/cut.jpg
echo nothing >twins/train/a/text.jpg
survey 1 twins
said "twins/train/a/cut.jpg"
said "twins/train/a/text.jpg"
fact 'len(s["bad"]) == 2 and s["images"] == 17 and s["formats"]["jpeg"]["images"] == 15'

# Without splits of its own, a dataset is split by the rule by which dl2-train does it.
mkdir flat
for class in a b; do
    for i in 0 1 2 3 4 5 6 7; do
        for copy in x y; do
            mkdir -p flat/$class
            cp jpeg420/jpeg-90/train/$class/$((i % 4 + 1)).jpg flat/$class/$i$copy.jpg
        done
    done
done
survey 0 flat
# Of 8 pictures of 4 copies each, a fifth of either class is for validation: all have copies left to train on.
fact 's["splits"] is None and s["duplicates"]["groups"] == 8 and s["duplicates"]["val_near_train"] == 6'
rm -r flat
survey 0 data/train
fact 's["duplicates"]["val_near_train"] is None'

# Packed datasets, and what goes with survey.
expect 0 dl2-transcode --quiet copy --container=tar data packed
survey 0 packed
fact 's["images"] == 13 and s["splits"] == {"train": 8, "val": 5}'
expect 2 dl2-transcode survey data out
expect 2 dl2-transcode survey --q 5 data
expect 2 dl2-transcode --json facts.json data out
said "--json is not an option of the command recompress, but of survey"
expect 1 dl2-transcode survey nowhere

# The table: a line for each image, figures equal to those of its pixels, near duplicates by their group's number.
mkdir -p 'table/a,"b"' table/c
cp data/train/a/1.ppm 'table/a,"b"/one.ppm'
cp data/train/a/1.ppm table/c/two.ppm
cp data/val/b/gray.pgm table/c/
echo broken >table/c/bad.jpg
expect 1 dl2-transcode --quiet survey --csv table.csv --json facts.json table
"$PYTHON3" - <<'PY' || { cat table.csv >&2; fail "the table is wrong"; }
import csv, numpy
rows = {r["key"]: r for r in csv.DictReader(open("table.csv", newline=""))}
assert set(rows) == {'a,"b"/one', "c/two", "c/gray", "c/bad"}, rows.keys()
one, two, gray, bad = (rows[k] for k in ('a,"b"/one', "c/two", "c/gray", "c/bad"))
assert one["class"] == 'a,"b"' and two["class"] == "c" and one["split"] == "", one
pixels = numpy.frombuffer(open("data/train/a/1.ppm", "rb").read()[-90 * 64 * 3:], numpy.uint8).reshape(-1, 3).astype(float)
for i, c in enumerate("rgb"):
    assert abs(float(one["mean_" + c]) - pixels[:, i].mean()) < 6e-4 and abs(float(one["std_" + c]) - pixels[:, i].std()) < 6e-4
assert (one["width"], one["height"], one["channels"], one["bits"], one["codec"], one["alpha"]) == ("90", "64", "3", "8", "ppm", "no"), one
assert int(one["bytes"]) == len(open("data/train/a/1.ppm", "rb").read()) and one["quality"] == one["error"] == ""
assert gray["channels"] == "1" and gray["mean_r"] == gray["mean_g"] == gray["mean_b"]
assert one["group"] == two["group"] != gray["group"] and one["hash"] == two["hash"]
assert bad["error"] and not any(v for k, v in bad.items() if k not in ("key", "class", "split", "error")), bad
PY
expect 1 dl2-transcode survey --csv nowhere/table.csv table
expect 2 dl2-transcode copy --csv table.csv table other
