#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Layouts that other programs give to datasets: COCO's train2017, Ultralytics' images/train with labels/train, Roboflow's
# train/images with train/labels, and Hugging Face's metadata. Splits, classes and boxes are what these mean, from folders
# and from shards.
. "$srcdir/tests/lib.sh"
cd "$work" || exit 99
layout() { expect 0 dl2-load check "$@"; sed -n 's/^dl2-load: [^:]*: //p' "$work/err" | head -n 1; }
identify() { dl2-transcode identify "$@" | grep '^images\|^classes'; }
names() { (cd "$1" && find . -name '*.ppm' -o -name '*.txt' | LC_ALL=C sort | tr '\n' ' '); }

# ---- COCO's folders have the year
for image in train2017/1 train2017/2 train2017/3 val2017/4 test2017/5; do picture "coco/$image.ppm" 8 8 1; done
is "$(layout coco)" 'train 3 images (train2017/), val 1 (val2017/), test 1 (test2017/)' "COCO's layout"
expect 0 dl2-transcode --quiet --codec ppm coco coco-variants
expect 0 dl2-quality --quiet --metrics psnr_rgb coco coco-variants/ppm
grep -q '^Reference: coco, 5 images' "$work/out" || fail 'variants of COCO pair by key'
expect 0 dl2-transcode --quiet --codec ppm --container=tar coco coco-shards
is "$(layout coco-shards/ppm)" 'train 3 images (train2017/), val 1 (val2017/), test 1 (test2017/)' 'COCO in shards'
expect 0 dl2-quality --quiet --metrics psnr_rgb coco coco-shards/ppm
grep -q '^Reference: coco, 5 images' "$work/out" || fail 'shards of COCO pair by key'
picture years/2017/1.ppm 8 8 1; picture years/train12/1.ppm 8 8 1 # which are no splits
is "$(identify years)" 'images	2
classes	2' 'other numbers'

# ---- Ultralytics: the splits lie in images, the boxes in labels
for image in train/1 train/2 train/3 val/4; do
    picture "yolo/images/$image.ppm" 8 8 1
    mkdir -p "yolo/labels/${image%/*}"
    echo '0 0.5 0.5 0.2 0.2' >"yolo/labels/$image.txt"
done
echo 'train: images/train' >yolo/data.yaml
is "$(layout yolo --boxes txt)" 'train 3 images (images/train/), val 1 (images/val/)' "Ultralytics' layout"
grep -q '4 images, 0 bad' "$work/out" || fail "boxes of Ultralytics: $(cat "$work/out")"
is "$(identify yolo)" 'images	4
classes	0' "Ultralytics' classes"
expect 0 dl2-load check --boxes txt yolo/images/val
grep -q '1 images, 0 bad' "$work/out" || fail 'boxes of a split that is opened alone'
expect 0 dl2-transcode --quiet --codec ppm yolo yolo-variants
is "$(layout yolo-variants/ppm --boxes txt)" 'train 3 images (images/train/), val 1 (images/val/)' 'a variant of Ultralytics'
grep -q '4 images, 0 bad' "$work/out" || fail "boxes of a variant: $(cat "$work/out")"
for container in tar gulp; do
    expect 0 dl2-transcode --quiet --codec ppm --container=$container yolo yolo-$container
    expect 0 dl2-transcode --quiet copy --container=$container yolo copy-$container
    for packed in yolo-$container/ppm copy-$container; do
        for index in with without; do # the index says the same as the names
            [ $index = with ] || rm $packed/dl2-index.bin
            is "$(layout $packed --boxes txt)" 'train 3 images (images/train/), val 1 (images/val/)' "Ultralytics in $packed $index its index"
            grep -q '4 images, 0 bad' "$work/out" || fail "boxes of $packed: $(cat "$work/out")"
            ! grep -q 'label file\|data.yaml' "$work/err" || fail "$packed: $(cat "$work/err")"
        done
    done
    expect 0 dl2-quality --quiet --metrics psnr_rgb yolo yolo-$container/ppm
    grep -q '^Reference: yolo, 4 images' "$work/out" || fail "$container of Ultralytics pairs by key"
done

# The classes' names, an image without a label file, and labels that lie elsewhere.
cp -r yolo named && rm named/labels/train/2.txt
printf 'path: ../datasets/named\ntrain: images/train\nval: images/val\nnames:\n  0: person\n  1: "traffic light"\n' >named/data.yaml
expect 0 dl2-load check --boxes txt --json check.json named
grep -qx 'named/data.yaml: 2 classes: person, traffic light' "$work/out" || fail "names: $(cat "$work/out")"
grep -q '"1": "traffic light"' check.json || fail "names: $(cat check.json)"
is "$(grep -c 'named: 1 of its images have no label file: they are background' "$work/err")" 1 'background'
for path in named/images/val named/images; do
    expect 0 dl2-load check --boxes txt $path
    grep -qx 'named/data.yaml: 2 classes: person, traffic light' "$work/out" || fail "names of $path: $(cat "$work/out")"
done
(cd named && expect 0 dl2-load check --boxes txt images/val && grep -qx 'data.yaml: 2 classes: person, traffic light' "$work/out") ||
    fail 'a split, from the folder above'
expect 0 dl2-load check --boxes named/data.yaml yolo
grep -qx 'named/data.yaml: 2 classes: person, traffic light' "$work/out" || fail "names that are given: $(cat "$work/out")"
echo '2 0.5 0.5 0.2 0.2' >named/labels/val/4.txt
expect 1 dl2-load check --boxes txt named
said "named/images/val/4.ppm: boxes: 'txt': class 2 has no name in named/data.yaml"
printf 'names: [a, b, c\n' >named/data.yaml
expect 0 dl2-load check --boxes txt named
said 'named/data.yaml: line 2 is no YAML: '
expect 1 dl2-load check --boxes named/data.yaml named
mv named/labels named/label
expect 1 dl2-load check --boxes txt named
said "boxes: none of the 4 images has a label file: there is no 'txt' beside named/images/train/1.ppm"
# Splits that data.yaml has elsewhere than dl2.
mkdir -p odd/images odd/labels && for split in train val; do cp -r yolo/images/$split odd/images/$split-a; cp -r yolo/labels/$split odd/labels/$split-a; done
printf 'train: ./images/train-a/\nval: [images/val-a]\n' >odd/data.yaml
expect 0 dl2-load check --boxes txt odd
said 'odd/data.yaml: 4 images lie in folders such as images/train-a, which is its split train, and are in another one here'
printf 'train: images/train\nval: images/train\n' >named/data.yaml && rm -r named/images/val named/label/val && mv named/label named/labels
expect 0 dl2-load check --boxes txt named
! grep -q 'data.yaml' "$work/err" || fail "one folder for two splits: $(cat "$work/err")"

# ---- Roboflow: each split has images and labels
for image in 1 2 3; do
    picture "robo/train/images/$image.ppm" 8 8 1
    mkdir -p robo/train/labels robo/valid/labels
    echo '1 0.5 0.5 0.2 0.2' >"robo/train/labels/$image.txt"
done
picture robo/valid/images/4.ppm 8 8 1
echo '1 0.5 0.5 0.2 0.2' >robo/valid/labels/4.txt
printf 'train: ../train/images\nval: ../valid/images\nnc: 2\nnames: ['"'cat', 'dog'"']\n' >robo/data.yaml
is "$(layout robo --boxes txt)" 'train 3 images, val 1 (valid/)' "Roboflow's layout"
grep -qx 'robo/data.yaml: 2 classes: cat, dog' "$work/out" || fail "Roboflow's names: $(cat "$work/out" "$work/err")"
grep -q '4 images, 0 bad' "$work/out" || fail "boxes of Roboflow: $(cat "$work/out")"
mkdir flat && cp -r yolo/images/train flat/images && cp -r yolo/labels/train flat/labels
is "$(identify flat)" 'images	3
classes	0' 'images and labels alone'
expect 0 dl2-load check --boxes txt flat
grep -q '3 images, 0 bad' "$work/out" || fail 'boxes of images and labels alone'
picture both/images/1.ppm 8 8 1; picture both/paintings/1.ppm 8 8 1 # classes
is "$(identify both)" 'images	2
classes	2' 'a class that is called images'

# ---- Hugging Face: metadata with labels, in the folder or in its splits, in CSV or JSON
for image in train/1 train/2 train/3 test/4; do picture "hf/$image.ppm" 8 8 1; done
printf '\357\273\277file_name,text,label\n1.ppm,"a, b",cat\n2.ppm,c,dog\n' >hf/train/metadata.csv
printf '{"file_name": "4.ppm", "label": "dog", "score": NaN}\n\n' >hf/test/metadata.jsonl
is "$(layout hf)" 'train 2 images in 2 classes, test 1' "Hugging Face's layout"
said 'classes are the labels in 2 files of metadata'
said 'images left out because no metadata name them: 1'
expect 0 dl2-transcode --quiet --codec ppm hf hf-variants
is "$(names hf-variants/ppm)" './test/dog/4.ppm ./train/cat/1.ppm ./train/dog/2.ppm ' 'a variant has classes'
mkdir root && cp -r hf/train hf/test root && rm root/*/metadata.*
picture root/train/1_mask.ppm 8 8 1 # which the folder, opened first, takes for a mask
printf 'file_name,label\ntrain/1.ppm,10\ntrain/2.ppm,2\n./train/3.ppm,-1\ntest/4.ppm,10\n' >root/metadata.csv
is "$(layout root)" 'train 3 images in 11 classes, test 1' 'metadata of a folder with splits'
mkdir captions && cp hf/train/*.ppm captions && printf 'file_name,text\n1.ppm,a\n2.ppm,b\n3.ppm,c\n' >captions/metadata.csv
is "$(identify captions)" 'images	3
classes	0' 'metadata without labels'
printf '{"file_name": "1.ppm", "label": {}}\n' >captions/metadata.jsonl
expect 1 dl2-transcode identify captions
said 'captions/metadata.jsonl: line 1: its label: it holds an object'
is "$(identify hf/train/metadata.csv)" 'images	2
classes	2' 'a file of metadata as a list'

# ---- The folder images by itself, or one in it: the label files lie outside, as Ultralytics finds them
bad() { expect "$1" dl2-load check --quiet --boxes "$2" "$3"; sed -n 's/.*: \([0-9]* images, [0-9]* bad\)$/\1/p' "$work/out"; }
outside() { sed -n 's/.*label files outside it, in \(.*\); they are read.*/\1/p' "$work/err"; }
for image in train/1 "train/2 a.b" train/deep/3 val/4; do
    picture "apart/images/$image.ppm" 8 8 1
    mkdir -p "apart/labels/${image%/*}"
    echo '1 0.5 0.5 0.2 0.2' >"apart/labels/$image.txt"
done
echo 'no image has this name' >apart/labels/train/other.txt
printf 'names: [cat, dog]\n' >apart/data.yaml
here=$(realpath .)
is "$(bad 0 txt apart/images)" '4 images, 0 bad' 'labels beside the folder images'
is "$(outside)" "$here/apart/labels/: 4" 'which files these are'
grep -q '2 classes: cat, dog' "$work/out" || fail "names above images: $(cat "$work/out")"
is "$(bad 0 txt apart/images/train/)" '3 images, 0 bad' 'labels of a split'
is "$(outside)" "$here/apart/labels/train/: 3" 'which files a split has'
(cd apart/images && is "$(bad 0 txt .)" '4 images, 0 bad' 'labels of the working folder' &&
    grep -q '2 classes: cat, dog' "$work/out") || fail 'names of the working folder'
ln -s apart/images/train link
is "$(bad 0 txt link)" '3 images, 0 bad' 'labels where a link leads'
# Of two folders images the last counts; one beside the image is its label file; links that lead elsewhere.
mkdir -p twice/images/images twice/labels/images twice/images/labels
picture twice/images/images/1.ppm 8 8 1
picture twice/images/2.ppm 8 8 1
echo '7 0.5 0.5 0.2 0.2' | tee twice/images/labels/1.txt twice/labels/2.txt >twice/labels/1.txt
echo 'another' >twice/labels/images/1.txt
is "$(bad 0 txt twice/images)" '2 images, 0 bad' 'images in images'
is "$(outside)" "$here/twice/labels/: 1" 'labels of images in images'
echo '8 0.5 0.5 0.2 0.2' >twice/images/2.txt
is "$(bad 0 txt twice/images)" '2 images, 0 bad' 'a label file beside the image'
is "$(outside)" '' 'a label file that another one hides'
mkdir -p moved/labels && ln -s ../apart/images/train moved/images
is "$(bad 0 txt moved/images)" '3 images, 0 bad' 'a link to images elsewhere'
# Shards have none from another folder; that is said.
(cd apart && tar cf ../apart.tar --sort=name images labels) || exit 99
expect 1 dl2-load check --boxes txt apart.tar
said "those of a folder 'labels' have to be packed beside their images: unpack both"

# ---- LabelImg: classes.txt names classes by their lines
for image in a b; do
    picture labelimg/$image.ppm 8 8 1
    echo '3 0.5 0.5 0.2 0.2' >labelimg/$image.txt
done
printf '\357\273\277cat\r\n traffic light \r\n\r\nperson\r\n\r\n' >labelimg/classes.txt
expect 0 dl2-load check --boxes txt --json check.json labelimg
grep -qx 'labelimg/classes.txt: 3 classes: cat, traffic light, person' "$work/out" || fail "LabelImg's names: $(cat "$work/out")"
grep -q '"3": "person"' check.json || fail "numbers of LabelImg's names: $(cat check.json)"
! grep -q 'classes\|background' "$work/err" || fail "what is said of classes.txt: $(cat "$work/err")"
echo '2 0.5 0.5 0.2 0.2' >labelimg/b.txt
expect 1 dl2-load check --boxes txt labelimg
said "labelimg/b.ppm: boxes: 'txt': class 2 has no name in labelimg/classes.txt"
echo '4 0.5 0.5 0.2 0.2' >labelimg/b.txt
is "$(bad 1 labelimg/classes.txt labelimg)" '2 images, 1 bad' 'a class beyond the names'
printf 'c\000' >labelimg/classes.txt
is "$(bad 0 txt labelimg)" '2 images, 0 bad' 'a classes.txt that is no text'
said 'labelimg/classes.txt: it is not a text: byte 2 is zero; it names no classes'
expect 1 dl2-load check --boxes labelimg/classes.txt labelimg
picture labelimg/classes.ppm 8 8 1 # whose label file it is
echo '9 0.5 0.5 0.2 0.2' >labelimg/classes.txt
is "$(bad 0 txt labelimg)" '3 images, 0 bad' 'an image called classes'
# Several: beside images, beside label files elsewhere. They must agree, and data.yaml counts.
rm apart/data.yaml
echo cat >apart/images/train/classes.txt && printf 'cat\ndog\n' >apart/labels/val/classes.txt
is "$(bad 0 txt apart/images)" '4 images, 0 bad' 'several classes.txt'
grep -q '2 classes: cat, dog' "$work/out" || fail "several classes.txt: $(cat "$work/out")"
echo horse >apart/images/train/classes.txt
for data in apart/images apart; do
    expect 1 dl2-load check --boxes txt $data
    said "classes.txt give class 0 the names 'cat' and 'horse'; number the classes alike, or name them in data.yaml"
done
printf 'names: [cat, dog]\n' >apart/data.yaml
is "$(bad 0 txt apart)" '4 images, 0 bad' 'data.yaml beside classes.txt'
said "give class 0 the names 'cat' and 'horse'; apart/data.yaml counts"
rm apart/images/train/classes.txt && echo horse >apart/labels/val/classes.txt
is "$(bad 0 txt apart)" '4 images, 0 bad' 'data.yaml beside another classes.txt'
said "apart/data.yaml, which counts, gives class 0 the name 'cat', and a classes.txt 'horse'"

# ---- COCO's file_name may have more than the key: a folder above, a shard's name, a dot
mkdir more && picture more/val2017/7.ppm 8 8 1 && picture more/val2017/8.ppm 8 8 1
cat >more/i.json <<'EOF'
{"images": [{"id": 1, "file_name": "val2017/7.jpg"}, {"id": 2, "file_name": "val2017/8.jpg"}, {"id": 3, "file_name": "train2017/8.jpg"}],
 "annotations": [{"id": 1, "image_id": 2, "category_id": 1, "bbox": [1, 1, 2, 2]}], "categories": [{"id": 1, "name": "x"}]}
EOF
unlisted() { # STATUS JSON DATA
    expect "$1" dl2-load check --split all --boxes "$2" "$3"
    sed -n 's/.*; \([0-9]* samples are not in the file\).*/\1/p' "$work/out"
}
tar cf more/val2017.tar -C more/val2017 7.ppm 8.ppm
for data in more/val2017 more/val2017.tar; do
    is "$(unlisted 1 more/i.json $data)" '0 samples are not in the file' "names from above $data"
    said "its image 'train2017/8.jpg' is not among the samples"
done
for n in 7 8; do mv more/val2017/$n.ppm more/val2017/$n.a.ppm && echo 0 >more/val2017/$n.a.cls; done
tar cf more/dots.tar -C more/val2017 7.a.cls 7.a.ppm 8.a.cls 8.a.ppm
sed 's/val2017.\([78]\)/\1.a/; s/val2017.\([78]\)/\1.a/' more/i.json >more/dots.json
is "$(unlisted 1 more/dots.json more/dots.tar)" '0 samples are not in the file' 'names with dots'
exit 0
