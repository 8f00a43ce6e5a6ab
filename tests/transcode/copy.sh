#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# copy into a folder: what SOURCE lacks is named or removed. A full disk names what was being written.
. "$srcdir/tests/lib.sh"
unsaid() { ! grep -qF -- "$1" "$work/err" || { cat "$work/err" >&2; fail "stderr says '$1'"; }; }

src=$work/src
for part in train val; do
    for class in a b; do
        for i in 1 2.5 3; do picture "$src/$part/$class/$i.ppm" 32 32 "$i" || exit 99; done
    done
done
copy() { expect 0 dl2-transcode --quiet copy "$@"; }

# What is gone from SOURCE, and what was never there; other files and folders stay.
copy "$src" "$work/dest"
unsaid "no source image"
rm -r "$src/val/b" && rm "$src/train/a/2.5.ppm"
picture "$src/val/b/1.ppm" 32 32 1
picture "$work/dest/mine/here/x.ppm" 32 32 1
echo mine >"$work/dest/mine/note.txt"
mkdir "$work/elsewhere" && cp "$src/train/a/1.ppm" "$work/elsewhere" && ln -s ../elsewhere "$work/dest/link"
copy "$src/" "$work/dest//"
for file in train/a/2.5.ppm val/b/2.5.ppm val/b/3.ppm mine/here/x.ppm link/1.ppm; do
    said "$work/dest/$file: no source image accounts for it"
    [ -e "$work/dest/$file" ] || fail "$file is gone without --prune"
done
said "--prune removes them"
unsaid "val/b/1.ppm"
copy --prune "$src" "$work/dest"
for file in train/a/2.5.ppm val/b/2.5.ppm val/b/3.ppm mine/here; do
    [ ! -e "$work/dest/$file" ] || fail "--prune left $file"
done
said "$work/dest: 4 images that no source image accounts for were removed"
[ -e "$work/dest/mine/note.txt" ] || fail "--prune removed what is no image"
[ -e "$work/elsewhere/1.ppm" ] || fail "--prune removed what a link led to"
said "$work/dest/link/1.ppm: no source image accounts for it"
rm "$work/dest/link"; rm -r "$work/dest/mine"
diff -r -x '.dl2-*' "$src" "$work/dest" >&2 || fail "not a copy"
copy --prune "$src" "$work/dest"
unsaid "no source image"
diff -r -x '.dl2-*' "$src" "$work/dest" >&2 || fail "--prune removed what is in SOURCE"
# Out of containers, of which GulpIO's tell no extension.
for container in tar gulp; do
    copy --container=$container "$src" "$work/$container"
    picture "$work/dest/val/a/9.ppm" 32 32 9
    copy --prune "$work/$container" "$work/dest"
    diff -r -x '.dl2-*' "$src" "$work/dest" >&2 || fail "not a copy out of $container"
done
# A container is made as a whole.
rm "$src/train/a/3.ppm"
copy --prune --container=tar "$src" "$work/tar"
copy --prune "$work/tar" "$work/untar"
diff -r -x '.dl2-*' "$src" "$work/untar" >&2 || fail "the container has other images than SOURCE"
expect 2 dl2-transcode --prune index "$work/tar"

# Two files of one size that change places, as `mv`, `cp -p` and `rsync -t` do it: older than what was
# copied of the other, and yet what SOURCE has there now. The same out of a container.
written() { sed -n 's/.*; \([0-9]*\) written.*/\1/p' "$work/out"; }
swap() { mv "$1" "$work/held" && mv "$2" "$1" && mv "$work/held" "$2"; }
one=train/a/1.ppm other=train/b/1.ppm
touch -d '2020-01-01 00:00:00.5' "$src/$one"
touch -d '2020-01-01 00:00:00.25' "$src/$other"
for container in folder tar gulp; do
    copy --container=$container "$src" "$work/swapped-$container"
    copy --container=$container "$src" "$work/swapped-$container"
    is "$(written)" 0 "copies of an unchanged source as $container"
done
swap "$src/$one" "$src/$other"
for container in folder tar gulp; do
    copy --container=$container "$src" "$work/swapped-$container"
    [ "$(written)" -gt 0 ] || fail "$container: two images have changed places in SOURCE, not in DEST"
    rm -rf "$work/back"
    copy "$work/swapped-$container" "$work/back"
    diff -r -x '.dl2-*' "$src" "$work/back" >&2 || fail "$container is not a copy of SOURCE as it is now"
    copy --container=$container "$src" "$work/swapped-$container"
    is "$(written)" 0 "copies of an unchanged source as $container"
done
# Shards of one size that change places within a second: their index is out of date.
picture "$work/big/a/0.ppm" 700 400 1
picture "$work/big/b/1.ppm" 700 400 2
copy --container=tar --shard=1 "$work/big" "$work/shards"
touch -d '2020-01-01 00:00:00.5' "$work/shards/shard-000000.tar"
touch -d '2020-01-01 00:00:00.25' "$work/shards/shard-000001.tar"
expect 0 dl2-transcode index "$work/shards"
swap "$work/shards/shard-000000.tar" "$work/shards/shard-000001.tar"
copy "$work/shards" "$work/unpacked"
diff -r -x '.dl2-*' "$work/big" "$work/unpacked" >&2 || fail "shards that changed places"

# GulpIO's items of two frames each are clips, which stay clips (clips.sh has more of them).
gulp() { # FOLDER META: with the images of four frames of 3088 bytes
    mkdir -p "$1"
    for i in 1 2 3 4; do
        picture "$work/frame.ppm" 32 32 $i
        cat "$work/frame.ppm" && printf '\0\0\0'
    done >"$1/data_0.gulp"
    printf '%s' "$2" >"$1/meta_0.gmeta"
    echo '{"a": 0, "b": 1}' >"$1/label2idx.json"
}
item() { printf '"%s": {"meta_data": [{"label": "%s"}], "frame_info": [%s]}' "$@"; }
gulp "$work/clips" "{$(item film a '[0, 3, 3088], [3088, 3, 3088]'), $(item show b '[6176, 3, 3088], [9264, 3, 3088]')}"
expect 0 dl2-load check "$work/clips"
said "2 clips of 2 frames in 2 classes"
expect 0 dl2-load check --samples images "$work/clips"
said "2 ids have several frames, 4 in all, which are read as single images"
for container in folder gulp tar; do
    expect 0 dl2-transcode --quiet copy --container=$container "$work/clips" "$work/clips-$container"
done
(cd "$work/clips-folder" && find . -name '*.ppm' | sort) >"$work/list"
is "$(tr '\n' ' ' <"$work/list")" './a/film/00000.ppm ./a/film/00001.ppm ./b/show/00000.ppm ./b/show/00001.ppm ' 'frames in a folder'
expect 0 dl2-load check --samples clips "$work/clips-tar"
said "2 clips of 2 frames in 2 classes"
# A folder has no classes but its folders: what would be of another class there is refused, and what
# would have none is said.
gulp "$work/elsewhere" "{$(item b/1 a '[0, 3, 3088]'), $(item a/2 b '[3088, 3, 3088]'), $(item a/3 a '[6176, 3, 3088]'), $(item a/4 a '[9264, 3, 3088]')}"
gulp "$work/flat" "{$(item 1 a '[0, 3, 3088]'), $(item 2 b '[3088, 3, 3088]'), $(item a/3 a '[6176, 3, 3088]'), $(item a/4 a '[9264, 3, 3088]')}"
for how in copy "--codec ppm"; do
    expect 1 dl2-transcode --quiet $how "$work/elsewhere" "$work/mistaken"
    said "data_0.gulp[b/1]: its class is a, but in a folder it would be"
    expect 0 dl2-transcode --quiet $how "$work/flat" "$work/flattened"
    said "$work/flat: 2 of 4 images lie in no folder of their class"
    expect 0 dl2-transcode --quiet $how --container=tar "$work/elsewhere" "$work/kept"
    unsaid "its class"
    rm -rf "$work/kept"
done

# A disk that is full, as far as a test can tell: a limit to the size of a file.
full() { # ARGUMENTS...
    (trap '' XFSZ; ulimit -f 8 || exit 77; exec dl2-transcode --quiet "$@") >"$work/out" 2>"$work/err"
    got=$?
    [ $got -ne 77 ] || skip "this shell has no ulimit -f"
    [ $got -eq 1 ] || { cat "$work/err" >&2; fail "exit status $got: $*"; }
}
for container in tar gulp; do
    full copy --container=$container "$src" "$work/full"
    said "$work/full/train/"
    rm -rf "$work/full"
    full --codec ppm --container=$container "$src" "$work/full"
    said "$work/full/ppm/train/"
    rm -rf "$work/full"
done

# A DEST within SOURCE is refused before anything is made.
expect 2 dl2-transcode --quiet copy "$src" "$src/train/../new/dest"
said "lie in each other"
# A store's prefix is cleared before anything is written, so its source must not lie there.
for pair in b0b/p:b0b/p b0b//p/:b0b/p b0b/p:b0b b0b/p/train:b0b/p b0b/p:b0b/p/tar b0b:b0b; do
    for scheme in s3 S3; do
        expect 2 dl2-transcode --quiet copy --container=tar "$scheme://${pair%%:*}" "s3://${pair#*:}"
        said "lie in each other"
    done
done
[ ! -e "$src/new" ] || fail "a DEST that is refused was made"

# Options without effect are refused, and nothing is made.
for options in "copy --q 50" "copy --background white" "copy --max-pixels 5" "copy --memory 5" "--shard 64" \
    "copy --shard 64" "copy --shards 2"; do
    expect 2 dl2-transcode --quiet $options "$src" "$work/refused"
    option=${options#copy } && said "${option%% *}"
done
for options in --force --prune "--container tar" "--shard 64" "--q 50"; do
    expect 2 dl2-transcode --quiet index $options "$src"
    said "${options%% *} is not an option of the command index"
done
[ ! -e "$work/refused" ] || fail "made in spite of wrong usage"

# What packing keeps of a dataset that may not have been meant so is said.
picture "$work/odd/plane/1.ppm" 32 32 1 && picture "$work/odd/test/1.ppm" 32 32 2 || exit 99
copy --container=tar "$work/odd" "$work/odd-tar"
said "the folder 'test' is read as a class"
expect 0 dl2-transcode --quiet --codec ppm --container=tar "$work/odd" "$work/odd-variants"
said "the folder 'test' is read as a class"

# ---- What no copy has written is never overwritten, in a folder or a container, and it is named
unchanged() { is "$(cat "$1")" "$2" "$1"; }
mkdir -p "$work/theirs/train/a" "$work/theirs-tar/train"
echo mine >"$work/theirs/train/a/1.ppm"
echo mine >"$work/theirs-tar/train/shard-000000.tar"
cp -r "$work/theirs" "$work/theirs-2"
echo mine >"$work/theirs-2/train/a/2.5.ppm"
echo mine >"$work/theirs-2/val.txt"
picture "$src/train/a/2.5.ppm" 32 32 2.5
expect 2 dl2-transcode --quiet copy "$src" "$work/theirs"
said "$work/theirs/train/a/1.ppm is in the way: "
is "$(cd "$work/theirs" && find . -name '*.ppm')" ./train/a/1.ppm "files beside one that is in the way"
expect 2 dl2-transcode --quiet copy --force --prune "$src" "$work/theirs-2"
said "$work/theirs-2/train/a/1.ppm is in the way with 1 more files: "
expect 2 dl2-transcode --quiet copy --container=tar "$src" "$work/theirs-tar"
said "$work/theirs-tar/train/shard-000000.tar is in the way: "
for file in theirs/train/a/1.ppm theirs-2/train/a/2.5.ppm theirs-tar/train/shard-000000.tar; do
    unchanged "$work/$file" mine
done
# In a container of ours: shards, chunks and lists of classes that it has not written.
rm "$work/theirs-tar/train/shard-000000.tar"
copy --container=tar "$src" "$work/theirs-tar"
for file in shard-000007.tar data_0.gulp label2idx.json; do
    echo mine >"$work/theirs-tar/train/$file"
    expect 2 dl2-transcode --quiet copy --force --container=tar "$src" "$work/theirs-tar"
    said "$work/theirs-tar/train/$file is in the way: "
    unchanged "$work/theirs-tar/train/$file" mine
    rm "$work/theirs-tar/train/$file"
done
copy --container=gulp "$src" "$work/theirs-tar"
# One of the same size; one with the same bytes, which a copy takes for its own.
mkdir -p "$work/same/train/a"
tr '!-Z' '"-[' <"$src/train/a/1.ppm" >"$work/same/train/a/1.ppm"
cp "$work/same/train/a/1.ppm" "$work/kept.ppm"
expect 2 dl2-transcode --quiet copy "$src" "$work/same"
said "$work/same/train/a/1.ppm is in the way: "
cmp "$work/kept.ppm" "$work/same/train/a/1.ppm" || fail "overwrote a file of the same size"
cp "$src/train/a/1.ppm" "$work/same/train/a"
copy "$src" "$work/same"
picture "$src/train/a/1.ppm" 32 32 77
copy "$src" "$work/same"
diff -r -x '.dl2-*' "$src" "$work/same" >&2 || fail "not a copy behind what had been in the way"
# An image that another program adds to a copy, and SOURCE gets afterwards.
echo mine >"$work/same/train/b/8.ppm"
picture "$src/train/b/8.ppm" 32 32 8
expect 2 dl2-transcode --quiet copy "$src" "$work/same"
unchanged "$work/same/train/b/8.ppm" mine
rm "$work/same/train/b/8.ppm" "$src/train/b/8.ppm"
# What a run that was killed has written is the next one's.
for after in 0.002 0.01 0.05; do
    rm -rf "$work/killed"
    dl2-transcode --quiet copy "$src" "$work/killed" >/dev/null 2>&1 &
    pid=$!
    sleep $after
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    for file in $(cd "$work/killed" 2>/dev/null && find . -name '*.ppm'); do touch -d 2001-01-01 "$work/killed/$file"; done
    copy "$src" "$work/killed"
    diff -r -x '.dl2-*' "$src" "$work/killed" >&2 || fail "not a copy after a run that was killed"
done
# A variant's folder, and one that was a copy of a variant: what it says of itself goes with it.
expect 0 dl2-transcode --quiet --codec ppm "$src" "$work/variants"
expect 2 dl2-transcode --quiet copy "$work/same" "$work/variants/ppm"
said "$work/variants/ppm/dl2-variant.json is in the way"
for container in folder tar; do
    copy --container=$container "$work/variants/ppm" "$work/was-$container"
    [ -e "$work/was-$container/dl2-variant.json" ] || fail "a copy of a variant is none"
    copy --container=$container "$src" "$work/was-$container"
    [ ! -e "$work/was-$container/dl2-variant.json" ] || fail "a copy of no variant says that it is one"
done

# ---- So many shards of each split
for i in 1 2 3 4 5 6 7; do picture "$work/few/train/a/$i.ppm" 32 $((30 + i)) $i; done
for i in 1 2 3 4; do picture "$work/few/val/a/$i.ppm" 32 32 $i; done
counts() { find "$1" -name '*.tar' | sort | while read -r shard; do tar tf "$shard" | grep -c '\.[pj][^.]*$'; done | tr '\n' ' '; }
copy --container=tar --shards=3 "$work/few" "$work/thirds"
is "$(counts "$work/thirds")" "2 2 3 1 1 2 " "images in three shards of each split"
copy --container=tar --shards=3 "$work/few" "$work/thirds"
is "$(written)" 0 "copies of an unchanged source"
copy "$work/thirds" "$work/together"
diff -r -x '.dl2-*' "$work/few" "$work/together" >&2 || fail "--shards is no copy"
for other in --shards=2 --shard=1 --shard=256; do
    copy --container=tar $other "$work/few" "$work/thirds"
    is "$(written)" 11 "copies in other shards: $other"
done
expect 0 dl2-transcode --quiet --q 50 --container=tar --shards=2 "$work/few" "$work/halves"
is "$(counts "$work/halves/jpeg-50")" "3 4 2 2 " "a variant in two shards of each split"
expect 0 dl2-transcode --quiet --q 50 --container=tar --shards=4 "$work/few" "$work/halves"
is "$(counts "$work/halves/jpeg-50")" "1 2 2 2 1 1 1 1 " "a variant in other shards"
expect 1 dl2-transcode --quiet copy --container=tar --shards=5 "$work/few" "$work/fifths"
said "val/ has 4 images for 5 shards"
expect 2 dl2-transcode --quiet copy --container=tar --shards=5 --shard 5 "$work/few" "$work/fifths"

# ---- In a random order: the same for the same seed, and all samples are there
order() { tar tf "$1"/*.tar | grep 'ppm$' | tr '\n' ' '; }
for i in 1 2 3 4 5 6 7 8 9; do for class in a b; do picture "$work/many/$class/$i.ppm" 8 8 $i; done; done
for seed in 1 2; do
    copy --container=tar --shuffle=$seed "$work/many" "$work/order$seed"
    copy --container=tar --shuffle=$seed "$work/many" "$work/again$seed"
    is "$(order "$work/order$seed")" "$(order "$work/again$seed")" "the order of a seed"
done
copy --container=tar "$work/many" "$work/plain"
[ "$(order "$work/order1")" != "$(order "$work/order2")" ] || fail "two seeds give one order"
[ "$(order "$work/order1")" != "$(order "$work/plain")" ] || fail "--shuffle has no effect"
is "$(tar tf "$work"/order1/*.tar | LC_ALL=C sort)" "$(tar tf "$work"/plain/*.tar | LC_ALL=C sort)" "samples"
copy --container=tar --shuffle=2 "$work/many" "$work/order1" # another seed: packed again
is "$(order "$work/order1")" "$(order "$work/order2")" "another seed"
copy --container=tar --shuffle "$work/many" "$work/order"
grep -q 'packed in the random order of seed 0$' "$work/out" || fail "the seed is not named"
copy --container=tar --shuffle=0 "$work/many" "$work/order0"
is "$(order "$work/order")" "$(order "$work/order0")" "the order of --shuffle alone"
[ "$(order "$work/order")" != "$(order "$work/plain")" ] || fail "--shuffle alone has no effect"
expect 2 dl2-transcode --quiet copy --container=tar --shuffle 1 "$work/many" "$work/unmade"
said "a value of --shuffle needs the sign, as --shuffle=SEED"
expect 2 dl2-transcode --quiet copy --shuffle=1 "$work/many" "$work/folders"
said "--shuffle has no effect: --container=folder has no order"

# A subset: of each class's images for training, with what lies beside them, and what is not for training whole; of data
# without splits, of all. A smaller one lies in a larger one, whatever the container.
listed() { (cd "$1" && find . -name '*.ppm' | sort); }
for i in 1 2 3 4 5 6 7 8 9 10; do
    for folder in train/a train/b val/a val/b; do picture "$work/split/$folder/$i.ppm" 8 8 $i; done
    echo "number $i" >"$work/split/train/a/$i.txt"
done
copy --subset 30% "$work/split" "$work/third"
said "$work/split: a subset: 6 of the 20 images for training, 30% of each class, drawn with seed 0"
is "$(listed "$work/third" | cut -d/ -f2,3 | sort | uniq -c | tr -s ' \n' ' ')" ' 3 train/a 3 train/b 10 val/a 10 val/b ' 'a subset'
for file in "$work/third"/train/a/*.ppm; do
    cmp "$file" "$work/split/train/a/${file##*/}" && cmp "${file%.*}.txt" "$work/split/train/a/$(basename "${file%.*}").txt" ||
        fail "$file is not a copy"
done
is "$(ls "$work/third/train/a" | wc -l)" 6 'images and what lies beside them'
copy --subset 60% --container=tar "$work/split" "$work/more-tar"
copy "$work/more-tar" "$work/more"
is "$(listed "$work/more" | wc -l)" 32 'the larger subset'
listed "$work/third" >"$work/list"
listed "$work/more" | comm -23 "$work/list" - | grep . && fail "not in the larger subset"
copy --subset 30% "$work/split/train" "$work/of-all"
said "a subset: 6 of the 20 images"
copy --subset 20% --subset-by name "$work/split/train" "$work/by-name"
is "$(listed "$work/by-name" | tr '\n' ' ')" './a/1.ppm ./a/10.ppm ./b/1.ppm ./b/10.ppm ' 'the first by name'
copy --subset 30% --subset-seed 1 "$work/split" "$work/other"
listed "$work/other" | cmp -s - "$work/list" && fail "another seed draws the same"
expect 2 dl2-transcode copy --subset 30% "$work/split/val" "$work/unmade"
said "a subset is a part of the images for training, and there are none"
expect 2 dl2-transcode copy --subset-seed 1 "$work/split" "$work/unmade"
said "--subset-seed needs --subset"
expect 2 dl2-transcode copy --subset 30 "$work/split" "$work/unmade"
expect 0 dl2-transcode --quiet --codec jpeg --q 50 "$work/split" "$work/variants"
expect 2 dl2-transcode copy --subset 30% "$work/variants/jpeg-50" "$work/unmade"
said "is a variant, and a part of one is none"
# Folders of frames and lists of their labels, as Jester and Something-Something are published: clips in class folders or
# in GulpIO, with the lists' splits. What no list names, and what is named and isn't there, is said.
for id in 1 2 3 40 5; do for i in 00001 00002 00003; do picture "$work/jester/part/$id/$i.ppm" 8 8 $id$i; done; done
echo notes >"$work/jester/part/1/notes.txt"
printf '1;Swiping Left\n40;Drumming Fingers\n2;Drumming Fingers\n' >"$work/train.csv"
printf '5;Swiping Left\n99;Swiping Left\n' >"$work/val.csv"
lists="train=$work/train.csv,val=$work/val.csv"
expect 1 dl2-transcode --quiet copy --labels "$lists" "$work/jester" "$work/classes"
grep -q '12 images.* 1 failed' "$work/out" || fail "a clip that is not there: $(cat "$work/out")"
said "1 line of the lists of labels names a video that is not there: 99"
said "frames left out because no list of labels names them: 3"
is "$(cd "$work/classes" && find . -mindepth 3 -type d | sort | tr '\n' '|')" \
    './train/Drumming Fingers/2|./train/Drumming Fingers/40|./train/Swiping Left/1|./val/Swiping Left/5|' 'folders of frames'
cmp "$work/jester/part/40/00003.ppm" "$work/classes/train/Drumming Fingers/40/00002.ppm" || fail 'a frame'
expect 0 dl2-load check "$work/classes"
said "3 clips of 3 frames in 2 classes"
printf '5;Swiping Left\n' >"$work/val.csv"
copy --container=gulp --labels "$lists" "$work/jester" "$work/gulped"
expect 0 dl2-load check "$work/gulped"
said "3 clips of 3 frames in 2 classes"
copy "$work/gulped" "$work/ungulped"
diff -r -x '.dl2-*' "$work/classes" "$work/ungulped" >&2 || fail "frames out of GulpIO"
copy --labels "$work/train.csv" "$work/jester" "$work/unsplit"
is "$(ls "$work/unsplit" | tr '\n' '|')" 'Drumming Fingers|Swiping Left|' 'a list without a split'
picture "$work/jester/other/2/00001.ppm" 8 8 1
expect 1 dl2-transcode copy --labels "$work/train.csv" "$work/jester" "$work/unmade"
said "line 3: 2 may be other/2/00001.ppm or part/2/00001.ppm of $work/jester; rename one of them"
exit 0
