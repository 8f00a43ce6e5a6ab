#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What lies beside images (captions, JSON, masks): in variants and copies of every container, in reruns, and when it is gone.
[ ! -w /dev/shm ] || TMPDIR=/dev/shm
. "$srcdir/tests/lib.sh"
grep -q 'define HAVE_JPEG 1' "$builddir/config.h" || skip "this build has no JPEG"
images=$builddir/tests/transcode/images
run() { # STATUS ARGUMENTS...
    status=$1
    shift
    expect "$status" dl2-transcode -j 2 "$@"
}
made() { awk -v v="$1" '$1 == v { print $3 }' "$work/out"; }
field() { sed -n "s/.*\"$2\": \([0-9]*\).*/\1/p" "$1/dl2-variant.json"; }
beside() { (cd "$1" && find . \( -name '*.json' -o -name '*.txt' -o -name '*.seg.png' \) ! -name 'dl2-*' | sort); }
same_sidecars() { # A B: the same files with the same bytes
    is "$(beside "$1")" "$(beside "$2")" "files beside images in $2"
    for file in $(beside "$1"); do cmp "$1/$file" "$2/$file" || fail "$2/$file"; done
}

"$images" tree "$work/src" 12 || exit 99
echo 'no image has this name' >"$work/src/README.txt"
rose=train/rose/0001
[ -f "$work/src/$rose.ppm" ] || fail 'the tree is another'
printf '{"boxes": [[1, 2, 3, 4]], "id": "theirs", "weight": 0.5}' >"$work/src/$rose.json"
printf 'a rose' >"$work/src/$rose.txt"
printf 'not even a PNG file' >"$work/src/$rose.seg.png"
: >"$work/src/$rose.a.b.txt"
other=$(cd "$work/src" && find val -name '*.ppm' | sort | head -n 1)
printf 'another' >"$work/src/${other%.ppm}.txt"
mv "$work/src/README.txt" "$work/kept"

# ---- A folder: the same files, none of them a sample
run 0 --q 50 "$work/src" "$work/folder"
is "$(made jpeg-50) $(field "$work/folder/jpeg-50" ignored)" '12 0' 'made, ignored'
same_sidecars "$work/src" "$work/folder/jpeg-50"
is "$(beside "$work/src" | wc -l)" 5 'files beside images'
cp "$work/kept" "$work/src/README.txt"
run 0 --q 50 "$work/src" "$work/folder"
is "$(made jpeg-50) $(field "$work/folder/jpeg-50" ignored)" '0 1' 'made again, ignored'
rm "$work/src/README.txt"
# ---- What changes there is followed, and nothing else is made or removed
echo mine >"$work/folder/jpeg-50/$rose.note"
printf 'a red rose' >"$work/src/$rose.txt"
rm "$work/src/$rose.a.b.txt" "$work/src/${other%.ppm}.txt"
run 0 --q 50 "$work/src" "$work/folder"
is "$(made jpeg-50)" 2 'made for what changed beside them'
same_sidecars "$work/src" "$work/folder/jpeg-50"
[ -f "$work/folder/jpeg-50/$rose.note" ] || fail 'removed what is not ours'
run 0 --q 50 "$work/src" "$work/folder"
is "$(made jpeg-50)" 0 'made again'
rm "$work/folder/jpeg-50/$rose.seg.png"
run 0 --q 50 "$work/src" "$work/folder"
is "$(made jpeg-50)" 1 'made for what was missing'
same_sidecars "$work/src" "$work/folder/jpeg-50"
# ---- Other options, and source files that are taken as they are
run 0 --q 50 --restart=none "$work/src" "$work/folder"
is "$(made jpeg-50)" 12 'made by other options'
same_sidecars "$work/src" "$work/folder/jpeg-50"
run 0 --q 90 "$work/folder/jpeg-50" "$work/taken"
is "$(field "$work/taken/jpeg-90" copied)" 12 'copied'
same_sidecars "$work/src" "$work/taken/jpeg-90"

# ---- A line that leads elsewhere, or to an image, removes nothing
echo precious >"$work/folder/precious"
sed -i 's|"beside":\["json"|"beside":["../../../precious","/precious","jpg","..","json"|' "$work/folder/jpeg-50/dl2-variant.jsonl"
grep -q precious "$work/folder/jpeg-50/dl2-variant.jsonl" || fail 'lines do not name what lies beside images'
rm "$work/src/$rose.json"
run 0 --q 50 --restart=none "$work/src" "$work/folder"
is "$(made jpeg-50)" 1 'made for a line that is damaged'
[ -f "$work/folder/precious" ] && [ -f "$work/folder/jpeg-50/$rose.jpg" ] || fail 'a line removed another file'
same_sidecars "$work/src" "$work/folder/jpeg-50"
printf '{"boxes": [[1, 2, 3, 4]], "id": "theirs", "weight": 0.5}' >"$work/src/$rose.json"
run 0 --q 50 "$work/src" "$work/folder"

# ---- tar: members of the sample; the whole way back into a folder
run 0 --q 50 --container=tar "$work/src" "$work/tar"
run 0 --q 50 --container=tar "$work/src" "$work/tar"
is "$(made jpeg-50)" 0 'a tar file made again'
tar xOf "$work/tar/jpeg-50/train/shard-000000.tar" rose/0001.seg.png | cmp - "$work/src/$rose.seg.png" || fail 'a mask in tar'
expect 0 dl2-load check --quiet "$work/tar/jpeg-50"
run 0 copy "$work/tar/jpeg-50" "$work/back"
same_sidecars "$work/src" "$work/back"
printf 'a white rose' >"$work/src/$rose.txt"
run 0 --q 50 --container=tar "$work/src" "$work/tar"
is "$(made jpeg-50)" 12 'a tar file of another caption'
rm "$work/src/$rose.txt"
run 0 --q 50 --container=tar "$work/src" "$work/tar"
run 0 copy "$work/tar/jpeg-50" "$work/back"
same_sidecars "$work/src" "$work/back"
# A variant of what is in tar
run 0 --codec webp,png --q 50 "$work/tar/jpeg-50" "$work/of-tar"
same_sidecars "$work/src" "$work/of-tar/png"

# ---- Copies: made again for what changes beside images, and only for that
run 0 copy --container=tar "$work/src" "$work/copy"
run 0 copy --container=tar "$work/src" "$work/copy"
grep -q ' 0 written' "$work/out" || fail 'copied again'
printf 'a rose again' >"$work/src/$rose.txt"
run 0 copy --container=tar "$work/src" "$work/copy"
grep -q ' 12 written' "$work/out" || fail 'not copied again'
run 0 copy "$work/copy" "$work/unpacked"
same_sidecars "$work/src" "$work/unpacked"
rm "$work/src/$rose.txt"
run 0 copy --container=tar "$work/src" "$work/copy"
grep -q ' 12 written' "$work/out" || fail 'not copied again without a file'
echo mine >"$work/unpacked/$rose.note"
run 0 copy "$work/copy" "$work/unpacked"
same_sidecars "$work/src" "$work/unpacked"
[ -f "$work/unpacked/$rose.note" ] || fail 'a copy removed what is not ours'
said "$work/unpacked/$rose.note: it lies beside an image and is not of SOURCE"

# ---- A copy removes an image with what lay beside it, so that the next image of its name is not given that
new_tree() { # with captions, boxes and a mask beside 2
    mkdir -p "$work/few/train/a" "$work/few/train/b"
    cp "$work/src/$rose.ppm" "$work/few/train/a/1.ppm"
    cp "$work/src/$other" "$work/few/train/a/2.ppm"
    cp "$work/src/$other" "$work/few/train/b/3.ppm"
    for i in a/1 a/2 b/3; do echo "caption of the old $i" >"$work/few/train/$i.txt"; done
    for extension in json yolo seg.png; do echo old >"$work/few/train/a/2.$extension"; done
}
beside_2() { (cd "$1/train/a" && echo 2.*); }
for prune in --prune ''; do
    rm -rf "$work/few" "$work/few-copy"
    new_tree
    run 0 copy "$work/few" "$work/few-copy"
    rm "$work/few/train/a/2."*
    run 0 copy $prune "$work/few" "$work/few-copy"
    if [ -n "$prune" ]; then
        is "$(beside_2 "$work/few-copy")" '2.*' 'beside an image that was pruned'
    else
        is "$(beside_2 "$work/few-copy")" '2.json 2.ppm 2.seg.png 2.txt 2.yolo' 'beside an image that is left'
    fi
    cp "$work/src/$rose.ppm" "$work/few/train/a/2.ppm"
    run 0 copy $prune "$work/few" "$work/few-copy"
    is "$(beside_2 "$work/few-copy")" 2.ppm 'beside the next image of this name'
    diff -r -x '.dl2-*' "$work/few" "$work/few-copy" >&2 || fail 'not a copy'
done
# The image is removed from the copy by hand; what lay beside it goes, too.
new_tree
run 0 copy "$work/few" "$work/few-copy"
rm "$work/few/train/a/2."* "$work/few-copy/train/a/2.ppm"
run 0 copy "$work/few" "$work/few-copy"
cp "$work/src/$rose.ppm" "$work/few/train/a/2.ppm"
run 0 copy "$work/few" "$work/few-copy"
diff -r -x '.dl2-*' "$work/few" "$work/few-copy" >&2 || fail 'not a copy'
# A caption that another program has put where SOURCE has one now
echo theirs >"$work/few-copy/train/a/2.txt"
echo ours >"$work/few/train/a/2.txt"
run 2 copy "$work/few" "$work/few-copy"
said "$work/few-copy/train/a/2.txt is in the way"
is "$(cat "$work/few-copy/train/a/2.txt")" theirs 'a caption of another program'

# ---- GulpIO: an object of JSON is metadata, all else bytes, also JSON that is no object
printf 'a rose' >"$work/src/$rose.txt"
printf '[1,  2]' >"$work/src/${other%.ppm}.json"
: >"$work/src/${other%.ppm}.txt"
run 0 copy --container=gulp "$work/src" "$work/gulp"
[ ! -s "$work/err" ] || ! grep 'left out' "$work/err" || fail 'something was left out'
expect 0 dl2-load check --quiet "$work/gulp"
run 0 --q 50 "$work/gulp" "$work/of-gulp"
is "$(cat "$work/of-gulp/jpeg-50/$rose.json")" \
    '{"id": "rose/0001", "label": "rose", "idx": 0, "boxes": [[1, 2, 3, 4]], "weight": 0.5}' 'metadata'
cp "$work/src/$rose.json" "$work/of-gulp/jpeg-50/$rose.json"
same_sidecars "$work/src" "$work/of-gulp/jpeg-50"
rm "$work/gulp/dl2-index.bin"
run 0 copy --container=gulp "$work/gulp" "$work/gulp-2"
for file in data_0.gulp meta_0.gmeta; do
    cmp "$work/gulp/train/$file" "$work/gulp-2/train/$file" || fail "$file of a copied chunk"
done
# A name that leads elsewhere, and bytes beyond the data file
sed 's|"seg.png": |"/../../seg.png": |' "$work/gulp/train/meta_0.gmeta" >"$work/gulp-2/train/meta_0.gmeta"
run 1 copy --container=tar "$work/gulp-2" "$work/gulp-3"
said '[train/rose/0001]: sidecar "/../../seg.png": not an extension'
sed 's|"seg.png": \[|&9999999|' "$work/gulp/train/meta_0.gmeta" >"$work/gulp-2/train/meta_0.gmeta"
run 1 copy "$work/gulp-2" "$work/gulp-4"
said 'are not within the data file'
rm "$work/src/${other%.ppm}.json" "$work/src/${other%.ppm}.txt"

# ---- What a folder would take for an image, and two members of one name
mkdir "$work/in"
"$images" tree "$work/pictures" 12
mv "$work/pictures/$rose.ppm" "$work/in/a.ppm"
for name in jpg depth.png txt json; do echo "$name" >"$work/in/a.$name"; done
printf 'P5\n1 1\n255\n0' >"$work/in/a.bin"
tar cf "$work/in.tar" -C "$work/in" a.ppm a.jpg a.depth.png a.txt a.json a.bin
run 0 --q 50 "$work/in.tar" "$work/clash"
said 'left out beside images: 1 .bin, 1 .depth.png, 1 .jpg; in a folder'
is "$(cd "$work/clash/jpeg-50" && echo *)" 'a.jpg a.json a.txt dl2-variant.json dl2-variant.jsonl' 'a folder'
run 0 --q 50 --container=tar "$work/in.tar" "$work/clash-tar"
said 'left out beside images: 1 .jpg; a sample in tar'
tar tf "$work/clash-tar/jpeg-50/shard-000000.tar" >"$work/members"
is "$(tr '\n' ' ' <"$work/members")" 'a.jpg a.bin a.depth.png a.json a.txt ' 'members'

# ---- Variants overwrite nothing that no run has written, and name what lies beside images
mkdir -p "$work/mine/train/a" && cp "$work/src/$other" "$work/mine/train/a/1.ppm"
cp "$work/src/$other" "$work/mine/train/a/2.ppm"
mkdir -p "$work/held/jpeg-50/train/a" && echo mine >"$work/held/jpeg-50/train/a/2.jpg"
run 2 --q 50 "$work/mine" "$work/held"
said "$work/held/jpeg-50/train/a/2.jpg is in the way: dl2-transcode did not write it"
is "$(cd "$work/held" && find . -name '*.jpg') $(cat "$work/held/jpeg-50/train/a/2.jpg")" './jpeg-50/train/a/2.jpg mine' 'a file of another program'
rm "$work/held/jpeg-50/train/a/2.jpg"
run 0 --q 50 "$work/mine" "$work/held"
for i in 3 4; do echo mine >"$work/held/jpeg-50/train/a/$i.jpg"; done
run 0 --q 50 "$work/mine" "$work/held"
cp "$work/mine/train/a/1.ppm" "$work/mine/train/a/3.ppm" && cp "$work/mine/train/a/1.ppm" "$work/mine/train/a/4.ppm"
run 2 --q 50 --force --prune "$work/mine" "$work/held"
said "$work/held/jpeg-50/train/a/3.jpg is in the way with 1 more files"
is "$(cat "$work/held/jpeg-50/train/a/3.jpg")" mine 'an image of another program'
rm "$work/mine/train/a"/[34].ppm "$work/held/jpeg-50/train/a"/[34].jpg
echo theirs >"$work/held/jpeg-50/train/a/1.txt"
run 0 --q 50 "$work/mine" "$work/held"
said 'train/a/1.txt: it lies beside an image and is not of SOURCE; such files, 1 here, are left alone'
echo ours >"$work/mine/train/a/1.txt"
for again in 1 2; do
    run 1 --q 50 "$work/mine" "$work/held"
    said "$work/held/jpeg-50/train/a/1.txt is in the way"
    is "$(cat "$work/held/jpeg-50/train/a/1.txt")" theirs 'a caption of another program'
done
rm "$work/held/jpeg-50/train/a/1.txt"
run 0 --q 50 "$work/mine" "$work/held"
is "$(cat "$work/held/jpeg-50/train/a/1.txt")" ours 'a caption'

# ---- --prune removes what lay beside an image that is gone
rm "$work/src/$rose."*
run 0 --q 50 "$work/src" "$work/folder"
said "$rose.json: no source image accounts for it"
run 0 --q 50 --prune "$work/src" "$work/folder"
[ -z "$(beside "$work/folder/jpeg-50")" ] || fail 'left beside an image that is gone'
