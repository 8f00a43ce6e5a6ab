#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Replays packed datasets, good and damaged, through the parsers of their shards and indices.
. "$srcdir/tests/lib.sh"
need tar tar
mkdir -p "$work/src/train/rose" "$work/src/train/two words" "$work/src/val/rose"
for name in train/rose/1 train/rose/2.b "train/two words/3" val/rose/4; do
    printf 'P5 2 1 255 ab' >"$work/src/$name.ppm"
done
for container in gulp tar; do
    expect 0 dl2-transcode --quiet copy --container=$container "$work/src" "$work/$container"
done
# One that is cut into slices, where this build writes JPEG.
mkdir "$work/large"
{ printf 'P5 512 300 255 '; awk 'BEGIN { srand(1); for (i = 0; i < 153600; i++) printf "%c", 33 + int(rand() * 90) }'; } \
    >"$work/large/noise.pgm"
if dl2-transcode --version | grep -q '^  jpeg:'; then
    expect 0 dl2-transcode --quiet --container=tar --q 90 "$work/large" "$work/cut"
fi
mkdir "$work/corpus-gulp" "$work/corpus-tar" "$work/corpus-index"
cp "$work/gulp/dl2-index.bin" "$work/corpus-index/gulp"
cp "$work/tar/dl2-index.bin" "$work/corpus-index/tar"
[ ! -d "$work/cut" ] || cp "$work/cut/jpeg-90/dl2-index.bin" "$work/corpus-index/cut"
# Three samples of 13 bytes and three of fill: 48.
{ printf '\060'; cat "$work/gulp/train/meta_0.gmeta"; } >"$work/corpus-gulp/ours" || fail 'no meta file'
printf '\014%s' '{"a": {"frame_info": [[0, 3, 4], [4, 0, 4]], "meta_data": [{"label": 3}]}, "b": {"frame_info": [[8, 1, 4]], "meta_data": [{"label": "rose"}, {}]}}' \
    >"$work/corpus-gulp/frames"
printf '\014%s' '{"a/../b": {"frame_info": [[0, 0, 12]]}}' >"$work/corpus-gulp/up"
cp "$work"/tar/train/*.tar "$work/corpus-tar/ours"
for format in ustar gnu pax v7; do
    (cd "$work/src" && tar --format=$format -cf "$work/corpus-tar/$format" train) || fail "tar --format=$format"
done
printf 'P5 2 1 255 ab' >"$work/1.ppm"
echo '{"label": [{"a": 1}], "a": [2, [3]]}' >"$work/1.json"
echo '{"label": ["rose", -1, 1.5, null, "\u00e9"]}' >"$work/2.json"
cp "$work/1.ppm" "$work/2.ppm"
(cd "$work" && tar -cf "$work/corpus-tar/json" 1.json 1.ppm 2.json 2.ppm) || fail tar
long=$work/long/$(printf '%0120d' 0)
mkdir -p "$long"
echo x >"$long/$(printf '%0120d' 1).jpg"
for format in gnu pax; do
    (cd "$work/long" && tar --format=$format -cf "$work/corpus-tar/long-$format" .) || fail "tar --format=$format"
done
# Hard and symbolic links, with short and with long names.
(cd "$work/src/train" && ln rose/1.ppm rose/5.ppm && ln -s 1.ppm rose/6.ppm) || fail ln
(cd "$work/long" && ln */*1.jpg "$(echo */)$(printf '%0120d' 2).jpg") || fail ln
for format in gnu pax; do
    (cd "$work" && tar --format=$format -cf "$work/corpus-tar/links-$format" src/train long) ||
        fail "tar --format=$format"
done
DL2_FUZZ_SECONDS=${DL2_FUZZ_SECONDS:-4}
export DL2_FUZZ_SECONDS
for kind in gulp tar index; do
    expect 0 "$builddir/tests/dataset/fuzz_$kind" -runs=0 "$work/corpus-$kind"
done
