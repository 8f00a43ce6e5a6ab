#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Every field of the JSON files that the programs write is in their schema's section of docs/formats/.
. "$srcdir/tests/lib.sh"
plainly
[ -n "${PYTHON3:-}" ] || skip "python3 is not installed"
dl2-train --list devices | grep -q cpu || skip "this build lacks oneDNN, and device ref is too slow (Debian: libdnnl-dev)"
dl2-transcode --list codecs | grep -q '^jpeg' || skip "this build can't write JPEG"
for split in train val; do
    for class in a b; do
        for i in 1 2 3 4; do picture "$work/data/$split/$class/$i.ppm" 24 24 $i$i; done
    done
done
cd "$work" || exit 99
expect 0 dl2-transcode --quiet --codec jpeg --q 20,60 --resize-shorter 16,full data study/variants
DL2_TIMELINE=timelines expect 0 dl2-transcode --quiet survey --json study/survey.json data
expect 0 dl2-transcode --quiet fit-tables --input-size 16 data tables.json
for name in jpeg-20 jpeg-60; do
    expect 0 dl2-quality --quiet --json study/quality/$name.json data study/variants/$name
    expect 0 dl2-load bench --quiet -e 1 --image-size 16 --json study/load/$name.json study/variants/$name
done
expect 0 dl2-quality crops --json-dir study/quality --out crops data study/variants/jpeg-20 study/variants/jpeg-60
expect 0 dl2-load check --quiet --json check.json data
expect 0 dl2-load analyze --device-rate 100 --seconds 0.1 --image-size 16 --json analysis.json data
for seed in 0 1; do
    for name in raw jpeg-20 jpeg-60; do
        data=study/variants/$name
        [ $name != raw ] || data=data
        expect 0 dl2-train -d $data --val data -a convnet --image-size 16 -e 1 --seed $seed --out study/train/$name/convnet/seed-$seed
    done
done
run=study/train/raw/convnet/seed-0
expect 0 dl2-train measure -d data -a convnet --image-size 16 --duration 0.1s --out rate
expect 0 dl2-train evaluate $run/checkpoint.safetensors --val data --out evaluation
echo '{"lr": [0.01, 0.1]}' >space.json
expect 0 dl2-train search -d data -a convnet --image-size 16 -e 1 --space space.json --algorithm grid --out search
mkdir study/report
expect 0 dl2-report study -o study/report/report.html
dl2-report decide study --interim 2,3 >decisions.json 2>"$work/err" || fail "decide: $(cat "$work/err")"
expect 0 dl2-study plan --dataset data --out planned --qualities 50 --epochs 1
find . -name '*.json' | sort >files
"$PYTHON3" - "$srcdir/docs/formats" <<'END' || fail "see above"
import json, pathlib, re, sys
# Under these names of others: values have fields, keys are not.
MAPS = set("""variants networks metrics formats qualities subsamplings channels bits orientations kept converted dropped reduced
    left_out definitions titles units colors scores splits""".split())
# Of these the page says what they are as a whole.
WHOLE = set("libraries versions machine arguments comparable settings config encoder trainings search.options space".split())
sections = {}
for page in pathlib.Path(sys.argv[1]).glob("*.md"):
    for part in re.split(r"^## ", page.read_text(), flags=re.M)[1:]:
        for schema in re.findall(r"`(dl2-[a-z-]+/\d+)`", part.split("\n")[0]):
            sections[schema] = page.read_text() if page.name in ("load.md", "train.md") else part   # as above
for schema in pathlib.Path(sys.argv[1]).glob("*.schema.json"):   # which describes its fields beside the page
    document = json.loads(schema.read_text())
    sections[document["title"]] += schema.read_text()
wrong, seen = [], {}

def walk(value, schema, words, under=""):
    for child in value if isinstance(value, list) else []:
        walk(child, schema, words, under)
    for key, child in value.items() if isinstance(value, dict) else []:
        if under not in MAPS:
            seen.setdefault(schema, set()).add(key)
            if key not in words and key != "schema":
                wrong.append(f"{schema}: docs/formats/ says nothing of {under + '.' if under else ''}{key}")
        if key not in WHOLE and f"{under}.{key}" not in WHOLE:
            walk(child, schema, words, key)

for path in open("files").read().split():
    document = json.load(open(path))
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema in sections:
        walk(document, schema, set(re.findall(r"\w+", sections[schema])))
    elif schema:
        wrong.append(f"{path}: docs/formats/ has no section on {schema}")
print(f"{sum(map(len, seen.values()))} fields of {len(seen)} schemas")
sys.exit("\n".join(sorted(set(wrong))) or len(seen) < 12 or None)
END
