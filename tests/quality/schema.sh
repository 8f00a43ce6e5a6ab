#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What dl2-quality writes, against the schema of docs/ and the rules of codec-compare's loader.
. "$srcdir/tests/lib.sh"
need_python jsonschema python3-jsonschema
make=$builddir/tests/quality/make_image
mkdir -p "$work/ref" "$work/fine-50" "$work/fine-75" "$work/bad" || exit 99
for i in 1 2 3; do
    "$make" "$work/ref/$i.ppm" $((20 + 9 * i)) 40 3 0 0 || exit 99
    "$make" "$work/fine-50/$i.ppm" $((20 + 9 * i)) 40 3 $((9 * (i > 1))) 0 || exit 99
    "$make" "$work/fine-75/$i.ppm" $((20 + 9 * i)) 40 3 5 0 || exit 99
done
for q in 50 75; do
    echo '{"schema": "dl2-variant/1", "variant": "fine-'$q'", "codec": "fine", "quality": '$q',
        "libraries": {"fine": "libfine 1.2"}}' >"$work/fine-$q/dl2-variant.json"
done
cp "$work/ref/1.ppm" "$work/bad/1.ppm"
"$make" "$work/bad/2.ppm" 5 5 3 0 0
echo broken >"$work/bad/3.ppm"
"$make" "$work/bad/extra.ppm" 20 20 3 0 0
cd "$work" || exit 99
expect 1 dl2-quality --quiet --metrics all --json all.json ref fine-50 bad ref nowhere
expect 0 dl2-quality --quiet --json-dir some ref fine-50
expect 0 dl2-quality --quiet --metrics psnr_rgb,ssim --codec-compare viewer ref fine-50 fine-75
grep -q 'codec-compare: 5 rows in viewer, 1 file and batches.json; 1 scored images left out' out || fail "the rows are not counted: $(cat out)"
if dl2-transcode --list codecs | grep -q '^ppm'; then
    expect 0 dl2-transcode --quiet --codec ppm --resize-shorter 16 ref small
    expect 0 dl2-quality --quiet --json-dir some ref small/ppm@16
fi
"$PYTHON3" - "$srcdir/docs/formats/dl2-quality-1.schema.json" all.json some/*.json <<'END' || fail 'the output does not fit'
import copy, json, sys
from jsonschema import Draft202012Validator
schema = json.load(open(sys.argv[1]))
Draft202012Validator.check_schema(schema)
check = Draft202012Validator(schema)
for path in sys.argv[2:]:
    document = json.load(open(path))
    for error in check.iter_errors(document):
        sys.exit(f"{path}: {list(error.path)}: {error.message}")
    # It can fail: with a member too many, one too few, and a text for a score.
    row = document["variants"][0]["per_image"][-1]
    for change in (lambda d, r: d.update(more=1), lambda d, r: d.pop("units"), lambda d, r: r.update(psnr_rgb="high")):
        other = copy.deepcopy(document)
        change(other, other["variants"][0]["per_image"][-1])
        if check.is_valid(other):
            sys.exit(f"{path}: the schema accepts what it should not")
[[name]] = json.load(open("viewer/batches.json"))
batch = json.load(open("viewer/" + name))
assert name == "fine.json" and list(batch)[0] == "constant_descriptions", name
assert batch["constant_values"] == ["fine", "fine", "libfine 1.2", "ref"], batch["constant_values"]
names = [next(iter(field)) for field in batch["field_descriptions"]]
assert names == ["original_name", "width", "height", "quality", "encoded_size", "psnr", "ssim"], names
assert all(len(row) == len(names) for row in batch["field_values"])
assert {(row[0], row[3]) for row in batch["field_values"]} == {("2", 50), ("3", 50), ("1", 75), ("2", 75), ("3", 75)}
assert all(isinstance(value, (int, float)) for row in batch["field_values"] for value in row[1:])
END
