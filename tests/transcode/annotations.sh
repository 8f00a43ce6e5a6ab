#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Annotations in files of their own: variants get COCO's at their sizes, and YOLO's as they are; what they lack is said.
[ ! -w /dev/shm ] || TMPDIR=/dev/shm
. "$srcdir/tests/lib.sh"
grep -q 'define HAVE_JPEG 1' "$builddir/config.h" || skip "this build has no JPEG"
need_python json python3
src=$work/src
run() { # STATUS ARGUMENTS...
    status=$1
    shift
    expect "$status" dl2-transcode -j 2 "$@"
}
quiet_about() { if grep -q "$1" "$work/err"; then cat "$work/err" >&2; fail "said: $1"; fi; }
picture "$src/train/a/0.ppm" 40 30 1
picture "$src/train/a/1.ppm" 21 33 2
picture "$src/train/b/2.ppm" 8 6 3

cat >"$work/coco.py" <<'EOF'
import json, os, sys

def runs_of(bits):
    out, last = [0], 0
    for bit in bits:
        if bit != last:
            out.append(0)
        out[-1] += 1
        last = bit
    return out

def bits_of(runs):
    return [i % 2 for i, run in enumerate(runs) for _ in range(run)]

def compress(runs):
    text = ""
    for i, run in enumerate(runs):
        rest, more = run - (runs[i - 2] if i > 2 else 0), True
        while more:
            group = rest & 31
            rest >>= 5
            more = rest != -1 if group & 16 else rest != 0
            text += chr(48 + (group | (32 if more else 0)))
    return text

def expand(text):
    runs, at = [], 0
    while at < len(text):
        value = shift = 0
        more = True
        while more:
            group = ord(text[at]) - 48
            at += 1
            value |= (group & 31) << shift
            shift += 5
            more = group & 32
        if group & 16:
            value -= 1 << shift
        runs.append(value + (runs[-2] if len(runs) > 2 else 0))
    return runs

SIZES = {7: (40, 30), 3: (21, 33), 2: (8, 6)}
NAMES = {7: "train/a/0", 3: "train/a/1", 2: "train/b/2"}

def disc(width, height):
    """Down the columns."""
    return [int((x - width * .4) ** 2 + (y - height * .6) ** 2 < width * height / 9) for x in range(width) for y in range(height)]

def make(path):
    images = [{"license": 1, "file_name": f"./{NAMES[i]}.jpg", "height": h, "width": w, "id": i} for i, (w, h) in SIZES.items()]
    images.append({"id": 99, "file_name": "train/a/gone.jpg", "width": 5, "height": 5})
    objects = [{"id": 4, "image_id": 99, "category_id": 1, "bbox": [0, 0, 1, 1], "segmentation": [[0, 0, 1, 0, 1, 1]]}]
    for i, (w, h) in SIZES.items():
        runs = runs_of(disc(w, h))
        for shape in [[[1, 2, w, 2.5, w / 2, h]], {"size": [h, w], "counts": runs}, {"size": [h, w], "counts": compress(runs)}]:
            objects.append({"id": len(objects) + 10, "image_id": i, "category_id": 1, "bbox": [1, 2.5, w - 3, h - 4], "area": w * h / 3,
                            "iscrowd": int(isinstance(shape, dict)), "segmentation": shape, "score": 0.123456789012345,
                            "keypoints": [3, 4, 2, 0, 0, 0, w, h, 1], "note": "gr\u00fcn \"[{\\"})
    with open(path, "w") as file:
        json.dump({"info": {"annotations": "]},[\"images\""}, "annotations": objects, "categories": [{"id": 1, "name": "x"}], "images": images}, file)

def check(source, made, variant, extension):
    with open(source) as file:
        before = json.load(file)
    with open(made) as file:
        after = json.load(file)
    with open(f"{variant}/dl2-variant.jsonl") as file:
        lines = {line["key"]: line for line in map(json.loads, file)}
    assert ["dl2_variant", *before] == list(after) and after["dl2_variant"] == os.path.basename(variant)
    assert before["info"] == after["info"] and before["categories"] == after["categories"]
    size = {i: (lines[NAMES[i]]["width"], lines[NAMES[i]]["height"]) for i in NAMES if NAMES[i] in lines}
    assert [image["id"] for image in after["images"]] == [image["id"] for image in before["images"] if image["id"] in size]
    for image in after["images"]:
        assert (image["width"], image["height"]) == size[image["id"]], image
        assert image["file_name"] == f"./{NAMES[image['id']]}.{extension}" and image["license"] == 1, image
    old = {o["id"]: o for o in before["annotations"] if o["image_id"] in size}
    assert [o["id"] for o in after["annotations"]] == list(old), after["annotations"]
    resized = 0
    for o in after["annotations"]:
        was, (w, h), (nw, nh) = old[o["id"]], SIZES[o["image_id"]], size[o["image_id"]]
        x, y = nw / w, nh / h
        resized += nw != w
        close = lambda got, wanted: len(got) == len(wanted) and all(abs(g - v) <= 0.0005001 for g, v in zip(got, wanted))
        assert list(o) == list(was) and {**was, **{k: o[k] for k in ("bbox", "area", "segmentation", "keypoints")}} == o, (o, was)
        assert close(o["bbox"], [v * (x, y)[n % 2] for n, v in enumerate(was["bbox"])]), (o, was)
        assert close([o["area"]], [was["area"] * x * y]), (o, was)
        assert close(o["keypoints"], [v * (x, y, 1)[n % 3] for n, v in enumerate(was["keypoints"])]), (o, was)
        shape = o["segmentation"]
        if isinstance(shape, list):
            assert close(shape[0], [v * (x, y)[n % 2] for n, v in enumerate(was["segmentation"][0])]), (o, was)
            continue
        assert shape["size"] == [nh, nw] and type(shape["counts"]) is type(was["segmentation"]["counts"])
        bits, plain = bits_of(expand(shape["counts"]) if isinstance(shape["counts"], str) else shape["counts"]), disc(w, h)
        middle = lambda at, new, side: (2 * at + 1) * side // (2 * new)
        assert bits == [plain[middle(c, nw, w) * h + middle(r, nh, h)] for c in range(nw) for r in range(nh)], o
        assert 0 < sum(bits) < nw * nh
    return resized

if sys.argv[1] == "make":
    make(sys.argv[2])
else:
    print(check(*sys.argv[2:]))
EOF
coco() { "$PYTHON3" "$work/coco.py" "$@" || fail "$*"; }
mkdir "$src/annotations"
coco make "$src/annotations/instances.json"
printf '{"images": 3}' >"$src/other.json"

# ---- Every size and format; nothing but files that are no annotations is ignored
run 0 --codec jpeg,ppm --q 50 --resize-shorter 15,9,full --fit 13x99 "$src" "$work/out-dir"
grep -q '^1 files that are not images were ignored' "$work/out" || fail "$(cat "$work/out")"
cp "$work/err" "$work/told"
for variant in jpeg-50 jpeg-50@15 jpeg-50@9 jpeg-50@13x99 ppm ppm@15 ppm@9 ppm@13x99; do
    made=$work/out-dir/$variant/annotations/instances.json
    extension=ppm
    case $variant in jpeg*) extension=jpg ;; esac
    resized=$(coco check "$src/annotations/instances.json" "$made" "$work/out-dir/$variant" $extension) || exit 1
    case $variant in *@*) is "$resized" 6 "resized objects of $variant" ;; *) is "$resized" 0 "resized objects" ;; esac
    grep -qF "$made: 3 images and 9 objects, at the variant's sizes; left out: 1 images that the variant lacks" "$work/told" ||
        fail "$variant: $(cat "$work/told")"
    # The loader takes it, and the source's, which has an image that is not there.
    expect 1 dl2-load check --quiet --split all --boxes "$src/annotations/instances.json" --instance-masks "$work/out-dir/$variant"
    grep -q ': 3 images, 1 bad' "$work/out" || fail "$(cat "$work/out" "$work/err")"
    expect 0 dl2-load check --quiet --split all --boxes "$made" --instance-masks "$work/out-dir/$variant"
done
[ ! -e "$work/out-dir/ppm/other.json" ] || fail 'what is no annotation'

# ---- A rerun writes what has changed, and nothing else
at=$work/out-dir/jpeg-50@15/annotations/instances.json
inode() { stat -c %i "$at"; }
before=$(inode)
run 0 --q 50 --resize-shorter 15 "$src" "$work/out-dir"
is "$(inode)" "$before" 'the file of a rerun'
quiet_about 'instances.json'
rm "$at"
run 0 --q 50 --resize-shorter 15 "$src" "$work/out-dir"
coco check "$src/annotations/instances.json" "$at" "$work/out-dir/jpeg-50@15" jpg >/dev/null
touch -d '2 days ago' "$src/annotations/instances.json"
run 0 --q 50 --resize-shorter 15 "$src" "$work/out-dir"
said "$at: 3 images and 9 objects"
printf 'P6\n8 6\n255\n' >"$src/train/b/2.ppm"
run 1 --q 50 --resize-shorter 15 "$src" "$work/out-dir"
said "$at: 2 images and 6 objects, at the variant's sizes; left out: 2 images that the variant lacks or that have another aspect"
coco check "$src/annotations/instances.json" "$at" "$work/out-dir/jpeg-50@15" jpg >/dev/null
picture "$src/train/b/2.ppm" 8 6 3

cp "$at" "$work/ours"
printf '{"images": "mine"}' >"$at"
touch -d '1 day ago' "$src/annotations/instances.json"
run 0 --q 50 --resize-shorter 15 "$src" "$work/out-dir"
said "$at: dl2-transcode has not written it, and leaves it as it is"
is "$(cat "$at")" '{"images": "mine"}' "a file that is not dl2-transcode's"
rm "$at"
# Ids that are texts, and NaN where a number is missing.
sed 's/"\(id\|image_id\)": 7\([,}]\)/"\1": "seven"\2/g; s/"area": 400.0/"area": NaN/g' "$src/annotations/instances.json" >"$src/annotations/texts.json"
is "$(grep -o '"seven"' "$src/annotations/texts.json" | wc -l) $(grep -o NaN "$src/annotations/texts.json" | wc -l)" '4 3' 'texts'
run 0 --q 50 --resize-shorter 15 "$src" "$work/out-dir"
said "annotations/texts.json: 3 images and 9 objects, at the variant's sizes; left out: 1 images"
is "$(grep -o '"seven"' "$work/out-dir/jpeg-50@15/annotations/texts.json" | wc -l)" 4 'texts of a variant'
rm "$src/annotations/texts.json"
# Of smaller images than the source's, so that shapes grow.
sed 's/7: (40, 30)/7: (20, 15)/' "$work/coco.py" >"$work/smaller.py"
"$PYTHON3" "$work/smaller.py" make "$src/annotations/smaller.json" || fail 'smaller.json'
run 0 --q 50 --resize-shorter 25,full "$src" "$work/out-dir"
for variant in jpeg-50@25 jpeg-50; do
    resized=$("$PYTHON3" "$work/smaller.py" check "$src/annotations/smaller.json" "$work/out-dir/$variant/annotations/smaller.json" \
        "$work/out-dir/$variant" jpg) || fail "$variant: shapes that grow"
    is "$resized" 3 "objects of $variant that grow"
done
rm "$src/annotations/smaller.json"
# A variant of a variant.
run 0 --codec ppm --resize-shorter 9 "$work/out-dir/ppm@15" "$work/again"
is "$(grep -c dl2_variant "$work/again/ppm@9/annotations/instances.json")" 1 'the name of the variant'

# ---- What cannot be scaled is named, and the variant is made
sed 's/"width": 40/"width": 60/' "$src/annotations/instances.json" >"$src/annotations/odd.json"
head -c 900 "$src/annotations/instances.json" >"$src/annotations/cut.json"
sed -i 's/^{/{"images": [], /' "$src/annotations/cut.json"
sed 's/"counts": \[[0-9]*,/"counts": [1,/' "$src/annotations/instances.json" >"$src/annotations/broken.json"
truncate -s 1073741825 "$src/annotations/large.json"
run 0 --q 50 --resize-shorter 15 "$src" "$work/out-dir"
said "annotations/odd.json: 2 images and 6 objects, at the variant's sizes; left out: 2 images"
said "$src/annotations/cut.json: annotations: is cut short: it ends where the rest of a value should be; variants get no such file"
said "annotations/broken.json: 3 images and 8 objects, at the variant's sizes; left out: 1 images that the variant lacks or that have another aspect than their files, and 2 objects of these or with broken shapes"
said "$src/annotations/large.json: 1073741825 bytes pass the limit of 1073741824; variants get no such file"
rm "$src/annotations/odd.json" "$src/annotations/cut.json" "$src/annotations/broken.json" "$src/annotations/large.json"

# ---- YOLO's labels come along, and follow; XML is said
yolo=$work/yolo label=labels/train/0.txt
mkdir -p "$yolo/labels/train" "$yolo/Annotations"
picture "$yolo/images/train/0.ppm" 40 30 1
picture "$yolo/images/train/1.ppm" 30 40 2
picture "$yolo/images/train/2.ppm" 30 40 3
printf '0 0.5 0.5 0.25 0.25\n' >"$yolo/$label"
: >"$yolo/labels/train/1.txt"
printf 'note\n' >"$yolo/labels/train/other.txt"
printf '<annotation/>' >"$yolo/Annotations/0.xml"
printf 'path: /of/the/source # not of a variant\ntrain: images/train\nval: images/train\nnames:\n  0: person\n  path: x\n' >"$yolo/data.yaml"
run 0 --q 50 --resize-shorter 15 "$yolo" "$work/yolos"
said "$yolo/data.yaml: line 6: names are a list, or lines such as '0: person'; variants get no such file"
sed -i '/^  path/d' "$yolo/data.yaml"
made=$work/yolos/jpeg-50@15
run 0 --q 50 --resize-shorter 15 "$yolo" "$work/yolos"
is "$(cat "$made/data.yaml")" '# dl2-transcode: jpeg-50@15
train: images/train
val: images/train
names:
  0: person' 'data.yaml of a variant'
for n in 0 1; do cmp "$yolo/labels/train/$n.txt" "$made/labels/train/$n.txt" || fail "labels $n"; done
is "$(cd "$made" && find . -name '*.txt' | LC_ALL=C sort | tr '\n' ' ')" './labels/train/0.txt ./labels/train/1.txt ' 'label files of a variant'
said "$yolo: 1 .xml files are left out: their coordinates, as of Pascal VOC's boxes, are those of the source's images"
expect 0 dl2-load check --quiet --boxes txt "$made"
grep -qx "$made/data.yaml: 1 classes: person" "$work/out" || fail "$(cat "$work/out")"
said "1 of its images have no label file: they are background"
printf '1 0.5 0.5 0.25 0.25\n' >"$yolo/$label"
run 0 --q 50 --resize-shorter 15 "$yolo" "$work/yolos"
cmp "$yolo/$label" "$made/$label" || fail 'labels that have changed'
quiet_about 'no source image accounts for it'
rm "$yolo/labels/train/1.txt"
run 0 --q 50 --resize-shorter 15 "$yolo" "$work/yolos"
[ ! -e "$made/labels/train/1.txt" ] || fail 'labels that are gone'
# A label file of the same size and time is not read again.
cp -p "$yolo/$label" "$work/label"
sed -i 's/^1/0/' "$yolo/$label" && touch -r "$work/label" "$yolo/$label"
run 0 --q 50 --resize-shorter 15 "$yolo" "$work/yolos"
cmp "$work/label" "$made/$label" || fail 'a label file that was read again'
cp -p "$work/label" "$yolo/$label"
# What dl2-transcode has not written is in the way, and named.
printf '5 0.5 0.5 0.25 0.25\n' | tee "$made/labels/train/1.txt" >"$work/mine"
printf '0 0.5 0.5 0.25 0.25\n' >"$yolo/labels/train/1.txt"
run 1 --q 50 --resize-shorter 15 "$yolo" "$work/yolos"
said "$made/labels/train/1.txt is in the way"
cmp "$work/mine" "$made/labels/train/1.txt" || fail "a label file that is not dl2-transcode's"
rm "$made/labels/train/1.txt"
printf 'names: [mine]\n' >"$made/data.yaml"
run 0 --q 50 --resize-shorter 15 "$yolo" "$work/yolos"
said "$made/data.yaml: dl2-transcode has not written it, and leaves it as it is"
is "$(cat "$made/data.yaml")" 'names: [mine]' "a data.yaml that is not dl2-transcode's"
printf 'train: /abs/images/train\nnames: [person]\n' >"$yolo/data.yaml"
run 0 --q 50 --resize-shorter 15 "$yolo" "$work/yolos"
said "$yolo/data.yaml: its train is an absolute path, which leads to the source's images; variants get no such file"
printf '{path: /of/the/source, train: images/train, names: [person]}\n' >"$yolo/data.yaml"
run 0 --q 50 --resize-shorter 15 "$yolo" "$work/yolos"
said "$yolo/data.yaml: its path is no line of its own, which leads to the source's images; variants get no such file"
rm "$made/data.yaml"
printf '"path" : /of/the/source\nnames: [person]\n' >"$yolo/data.yaml"
run 0 --q 50 --resize-shorter 15 "$yolo" "$work/yolos"
is "$(cat "$made/data.yaml")" '# dl2-transcode: jpeg-50@15
names: [person]' 'data.yaml with a path of another form'
# A copy into a folder has them in the same place, and one that is in the way stays.
run 0 copy "$yolo" "$work/yolo-copy"
cmp "$yolo/$label" "$work/yolo-copy/$label" || fail 'labels of a copy'
rm -r "$work/yolo-copy" && mkdir -p "$work/yolo-copy/labels/train" && cp "$work/mine" "$work/yolo-copy/$label"
run 2 copy "$yolo" "$work/yolo-copy"
said "$work/yolo-copy/$label is in the way"
cmp "$work/mine" "$work/yolo-copy/$label" || fail "a label file that no copy has written"

# ---- SOURCE is the folder images: its label files, which lie outside, come along beside the images, with names and splits
apart=$work/apart
for image in train/1 "train/2 b" val/3; do
    picture "$apart/images/$image.ppm" 8 8 1
    mkdir -p "$apart/labels/${image%/*}"
    echo "1 0.5 0.5 0.2 0.${#image}" >"$apart/labels/$image.txt"
done
printf 'path: /of/the/source\ntrain: images/train\nval: [images/val, images/train]\ntest: /abs/images\nnames: {0: "a \\"b\\"", 1: dog}\n' >"$apart/data.yaml"
made=$work/aparts/jpeg-50
label_files() { (cd "$1" && find . -name '*.txt' | LC_ALL=C sort | tr '\n' ' '); }
run 0 --q 50 "$apart/images" "$work/aparts"
said "label files outside it, in $(realpath "$apart")/labels/: 3; they are read, and written to variants, as NAME.txt beside the images"
for image in train/1 "train/2 b" val/3; do cmp "$apart/labels/$image.txt" "$made/$image.txt" || fail "labels of $image"; done
is "$(cat "$made/data.yaml")" '# dl2-transcode: jpeg-50
train:
  - "train"
val:
  - "val"
  - "train"
names:
  0: "a \"b\""
  1: "dog"' 'data.yaml from above'
expect 0 dl2-load check --quiet --boxes txt "$made"
grep -qx "$made/data.yaml: 2 classes: a \"b\", dog" "$work/out" || fail "names of a variant: $(cat "$work/out")"
before=$(stat -c %i "$made/data.yaml" "$made/val/3.txt")
run 0 --q 50 "$apart/images" "$work/aparts"
is "$(stat -c %i "$made/data.yaml" "$made/val/3.txt")" "$before" 'a rerun'
quiet_about 'no source image accounts for it'
run 0 --q 50 "$apart/images/train" "$work/split" # one split of it
is "$(label_files "$work/split/jpeg-50")" './1.txt ./2 b.txt ' 'labels of a split'
is "$(sed -n 2,5p "$work/split/jpeg-50/data.yaml" | tr -d '\n')" 'train:  - "."val:  - "."' 'data.yaml of a split'
# What changes is followed, what is gone is removed, and what is another program's stays.
echo '0 0.5 0.5 0.2 0.2' >"$apart/labels/val/3.txt"
rm "$apart/labels/train/1.txt" "$apart/images/train/2 b.ppm"
run 0 --q 50 "$apart/images" "$work/aparts"
cmp "$apart/labels/val/3.txt" "$made/val/3.txt" || fail 'labels outside that have changed'
said "$made/train/2 b.txt: no source image accounts for it"
is "$(label_files "$made")" './train/2 b.txt ./val/3.txt ' 'labels outside that are gone'
run 0 --q 50 --prune "$apart/images" "$work/aparts"
is "$(label_files "$made")" './val/3.txt ' 'labels of an image that was pruned'
cp "$work/mine" "$made/train/1.txt"
echo '0 0.5 0.5 0.2 0.2' >"$apart/labels/train/1.txt"
run 1 --q 50 "$apart/images" "$work/aparts"
said "$made/train/1.txt is in the way"
cmp "$work/mine" "$made/train/1.txt" || fail "a label file of another program outside"
rm "$made/train/1.txt"
# Shards, chunks and copies have them; Ultralytics looks elsewhere where DEST is a folder images.
for container in tar gulp folder; do
    run 0 --q 50 --container $container "$apart/images" "$work/apart-$container"
    run 0 copy --container $container "$apart/images" "$work/apart-copy-$container"
    for data in "$work/apart-$container/jpeg-50" "$work/apart-copy-$container"; do
        expect 0 dl2-load check --quiet --boxes "$apart/data.yaml" "$data"
        grep -q ': 2 images, 0 bad' "$work/out" || fail "$data: $(cat "$work/out")"
        ! grep -q 'background' "$work/err" || fail "$data: $(cat "$work/err")"
    done
    expect 0 dl2-load check --quiet --boxes txt "$work/apart-$container/jpeg-50"
    grep -qx "$work/apart-$container/jpeg-50/data.yaml: 2 classes: a \"b\", dog" "$work/out" || fail "names in $container: $(cat "$work/out")"
done
run 0 --q 50 "$apart/images" "$work/images/out"
said "$work/images/out: it lies in a folder 'images', so Ultralytics' trainers look for label files in $(realpath "$work")/labels/out/jpeg-50, and not beside"

# ---- LabelImg's classes.txt comes along, in shards as data.yaml
labelimg=$work/labelimg
for n in a/1 b/2; do picture "$labelimg/$n.ppm" 40 30 1; echo '2 0.5 0.5 0.2 0.2' >"$labelimg/$n.txt"; done
printf '\357\273\277cat\r\n\r\nblack dog\r\n' >"$labelimg/a/classes.txt"
run 0 --q 50 --resize-shorter 15 "$labelimg" "$work/lab"
made=$work/lab/jpeg-50@15
cmp "$labelimg/a/classes.txt" "$made/a/classes.txt" || fail 'classes.txt of a variant'
grep -q ignored "$work/out" && fail "ignored: $(cat "$work/out")"
expect 0 dl2-load check --quiet --boxes txt "$made"
grep -qx "$made/a/classes.txt: 2 classes: cat, black dog" "$work/out" || fail "names of a variant: $(cat "$work/out")"
run 0 --q 50 --resize-shorter 15 "$labelimg" "$work/lab"
quiet_about classes.txt
echo horse >>"$labelimg/a/classes.txt"
run 0 --q 50 --resize-shorter 15 "$labelimg" "$work/lab"
cmp "$labelimg/a/classes.txt" "$made/a/classes.txt" || fail 'classes.txt that has changed'
echo cat >"$labelimg/b/classes.txt"
echo mine >"$made/b/classes.txt"
run 0 --q 50 --resize-shorter 15 "$labelimg" "$work/lab"
said "$made/b/classes.txt: dl2-transcode has not written it, and leaves it as it is"
is "$(cat "$made/b/classes.txt")" mine "a classes.txt that is not dl2-transcode's"
run 0 --q 50 --container tar "$labelimg" "$work/lab-tar"
is "$(sed 1d "$work/lab-tar/jpeg-50/data.yaml")" 'names:
  0: "cat"
  2: "black dog"
  3: "horse"' 'classes.txt as data.yaml'
expect 0 dl2-load check --quiet --boxes txt "$work/lab-tar/jpeg-50"
grep -q '3 classes: cat, black dog, horse' "$work/out" || fail "names in tar: $(cat "$work/out")"
echo bird >"$labelimg/b/classes.txt"
run 0 --q 50 --container tar "$labelimg" "$work/lab-tar-2"
said "give class 0 the names 'bird' and 'cat'; number the classes alike, or name them in data.yaml; variants get no names of classes"

# ---- Packed variants have COCO's file, too, at their sizes; shards and chunks of any resolution have the boxes of the source's
for container in tar gulp; do
    run 0 --codec jpeg --q 50 --container $container --resize-shorter 15,9,full "$src" "$work/$container"
    cp "$work/err" "$work/told"
    for variant in jpeg-50 jpeg-50@15 jpeg-50@9; do
        made=$work/$container/$variant/annotations/instances.json
        coco check "$src/annotations/instances.json" "$made" "$work/$container/$variant" jpg >/dev/null
        grep -qF "$made: 3 images and 9 objects, at the variant's sizes" "$work/told" || fail "$container, $variant: $(cat "$work/told")"
        for index in with without; do
            [ $index = with ] || rm "$work/$container/$variant/dl2-index.bin"
            expect 1 dl2-load check --quiet --split all --boxes "$src/annotations/instances.json" --instance-masks "$work/$container/$variant"
            grep -q ': 3 images, 1 bad' "$work/out" || fail "$container, $variant $index an index: $(cat "$work/out" "$work/err")"
            expect 0 dl2-load check --quiet --split all --boxes "$made" --instance-masks "$work/$container/$variant"
        done
    done
done
run 0 --codec jpeg --q 50 --container tar --resize-shorter 9 "$src" "$work/tar"
before=$(stat -c %i "$work/tar/jpeg-50@9/annotations/instances.json")
run 0 --codec jpeg --q 50 --container tar --resize-shorter 9 "$src" "$work/tar"
is "$(stat -c %i "$work/tar/jpeg-50@9/annotations/instances.json")" "$before" 'the file of a packed variant'
quiet_about 'instances.json'
# A copy has none, and says so.
run 0 copy --container tar "$src" "$work/copy"
said "$src: files that are neither images nor beside one, such as annotations, are not copied: 2"

# ---- SOURCE has shards, and COCO's file beside them; member names with several dots, and names of folders above
mkdir -p "$work/shards/annotations" "$work/members"
for n in 1 2; do picture "$work/members/$n.v.ppm" 40 30 1; echo 0 >"$work/members/$n.v.cls"; done
tar cf "$work/shards/val2017.tar" -C "$work/members" 1.v.cls 1.v.ppm 2.v.cls 2.v.ppm
printf '{"images": [{"id": 1, "file_name": "val2017/1.v.jpg", "width": 40, "height": 30}, {"id": 2, "file_name": "2.v.jpg"}],
 "annotations": [{"id": 1, "image_id": 2, "category_id": 1, "bbox": [4, 4, 8, 8], "area": 64}], "categories": [{"id": 1, "name": "x"}]}' \
    >"$work/shards/annotations/i.json"
for container in folder tar; do
    run 0 --codec jpeg --q 50 --resize-shorter 15 --container $container "$work/shards" "$work/of-shards-$container"
    made=$work/of-shards-$container/jpeg-50@15
    said "$made/annotations/i.json: 2 images and 1 objects, at the variant's sizes"
    grep -q ignored "$work/out" && fail "ignored: $(cat "$work/out")"
    is "$(grep -o '"bbox":\[[^]]*\]' "$made/annotations/i.json")" '"bbox":[2.0,2.0,4.0,4.0]' 'a box of a shard'
    expect 0 dl2-load check --quiet --split all --boxes "$made/annotations/i.json" "$made"
    grep -q '; 0 samples are not in the file' "$work/out" || fail "names of $container: $(cat "$work/out")"
done
run 0 --codec jpeg --q 50 --resize-shorter 15 "$work/shards" "$work/of-shards-folder"
quiet_about 'i.json'
exit 0
