#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# study-clips: of a folder of frames, and of videos; files against records, warm and cold, by numbers of frames.
. "$srcdir/tests/lib.sh"
plainly
. "$srcdir/tests/study/study_lib.sh"
unset CLIP_LENGTHS CLIP_FPS
need_python json python3
mkdir shots
for class in fine coarse; do
    for clip in 1 2 3; do
        mkdir -p "shots/$class/clip$clip"
        for i in 1 2 3 4; do
            "$convert" "data/train/$class/$i.png" -quality 90 "shots/$class/clip$clip/0000$i.jpg" || exit 99
        done
    done
done
clips() { study study-clips DATASET=shots CLIP_LENGTHS='16 18' BATCH=2 ARCHS=convcolumn IMAGE_SIZE=32 "$@"; }
refused 'DATASET is "data": study-clips needs a folder of videos' study-clips
refused 'CLIP_LENGTHS is "2": it has an effect on study-clips only' CLIP_LENGTHS=2
expect 0 clips
[ -f results/records/gulp/meta_0.gmeta ] && [ -f results/records/tar/dl2-index.bin ] ||
    fail "no records: $(find results/records)"
cat results/clips.txt
"${PYTHON3:-python3}" - <<'PY' || fail "$(cat results/clips.txt)"
import json
def of(storage, frames, container, number):
    return json.load(open(f"results/clips/{storage}/frames-{frames}/load/{container}/round-{number}.json"))
for storage in "memory", "disk":
    for frames in 16, 18:
        for container in "raw", "gulp", "tar":
            for number in 1, 2:
                report = of(storage, frames, container, number)
                assert report["clips"]["frames"] == frames and report["images"] == 4, report["images"]
                rate = json.load(open(f"results/clips/{storage}/frames-{frames}/convcolumn/{container}/round-{number}.json"))
                assert rate["arguments"]["frames"] == frames and rate["measured"]["images_per_second"] > 0, rate["arguments"]
                assert report["config"]["cold"] == (storage == "disk"), report["config"]
lines = [line.split() for line in open("results/clips.txt")]
assert [line[:2] for line in lines[2:8]] == [[n, c] for n in ("16", "18") for c in ("files", "gulp", "tar")], lines
def rate(number):
    epochs = of("memory", 18, "gulp", number)["per_epoch"][1:]
    return 18 * sum(epoch["images"] for epoch in epochs) / sum(epoch["seconds"] for epoch in epochs)
assert abs(int(lines[6][2]) - (rate(1) + rate(2)) / 2) <= 1, (lines[6], rate(1), rate(2))
assert sum("±" in cell for cell in lines[6]) == 4, lines[6]  # loads and trains, warm and cold
PY
touch mark
sleep 0.05
expect 0 clips
[ -z "$(find results/clips results/records -newer mark)" ] || fail "made again"
expect 0 clips CLIP_LENGTHS=16
[ ! -e results/clips/memory/frames-18 ] && [ -z "$(find results/records -newer mark)" ] || fail "another number of frames"

if command -v ffmpeg >/dev/null 2>&1; then
    for class in a b; do
        mkdir -p videos/$class
        for i in 1 2 3; do
            ffmpeg -nostdin -v error -f lavfi -i testsrc=size=48x32:rate=12:duration=0.5 "videos/$class/$i.avi" || skip "ffmpeg cannot make videos"
        done
    done
    if dl2-transcode identify videos >/dev/null 2>&1; then
        expect 0 clips DATASET=videos OUT=of-videos CLIP_LENGTHS=16 CLIP_FPS=12
        is "$(find of-videos/records/files -name '*.jpg' | wc -l)" 36 'frames of 0.5 s'
        grep -q '^16  *videos ' of-videos/clips.txt || fail "$(cat of-videos/clips.txt)"
    fi
fi
exit 0
