#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Videos as clips: the same pixels however they are read, the frames that clips of images have, and bad videos by name.
[ ! -w /dev/shm ] || TMPDIR=/dev/shm
. "$srcdir/tests/lib.sh"
mkdir -p "$work/src/run" "$work/src/walk"
cd "$work" || exit 99
if ! grep -q 'define HAVE_FFMPEG 1' "$builddir/config.h"; then
    : >src/run/1.mp4
    expect 1 dl2-load bench --quiet --frames 2 src
    said 'libavformat-dev libavcodec-dev libavutil-dev libswscale-dev'
    skip "this build has no FFmpeg libraries"
fi
need ffmpeg ffmpeg
# Frame n is of one gray, 8 + 5 n, so that a frame's pixels say its number.
video() { # FILE FRAMES OPTIONS...
    file=$1 frames=$2
    shift 2
    ffmpeg -nostdin -v error -f lavfi -i "color=black:size=48x32:rate=25,geq=lum='16+219*(8+5*N)/255':cb=128:cr=128,format=yuv420p" -frames:v "$frames" "$@" "$file" ||
        skip "ffmpeg cannot make ${file##*/}"
}
video src/run/1.mp4 40 -c:v libx264 -qp 1 -bf 3 -g 9 -pix_fmt yuv420p
video src/run/2.mkv 40 -c:v libx264 -qp 1 -bf 2 -x264-params open-gop=1:keyint=8
video src/run/3.webm 40 -c:v libvpx -b:v 3M -g 10 -auto-alt-ref 1
video src/walk/1.avi 40 -c:v mpeg4 -q:v 1 -bf 2 -g 10
video src/walk/2.avi 40 -c:v libx264 -qp 1 -bf 2 -g 10
video src/walk/3.mov 3 -c:v mjpeg -q:v 1 -pix_fmt yuvj420p

# ---- As many frames as clips of the same frames in files (tests/python/test_videos.py says which)
expect 0 dl2-transcode --quiet frames --fps 25 -c ppm src files
expect 0 dl2-load check src
grep -q '6 videos, 0 bad' out || fail "$(cat out)"
said '6 videos in 2 classes'
for how in '--frames 14 --frame-step 3' '--frames 5 --frame-sampling uniform' '--frames 4 --val'; do
    for place in src files; do
        # shellcheck disable=SC2086
        expect 0 dl2-load bench --quiet -e 1 --split all --image-size 8 $how --json=$place.json $place
        sed -n 's/.*"short_clips": \([0-9]*\).*/\1/p' $place.json >$place.short
    done
    cmp -s src.short files.short || fail "$how: other clips are short"
done

# ---- The same bytes for any number of workers, way of reading, cache and order of seeks
how='--quiet -e 2 --split all --image-size 24 --frames 4 --frame-step 3'
for more in '-j 1' '-j 4' '-j 2 --io=direct' '-j 2 --io=threads' '-j 2 --cache=1M' '-j 2 --ahead 1'; do
    # shellcheck disable=SC2086
    dl2-load bench $how $more --digest src >out 2>err || { cat err >&2; fail "$more"; }
    sed -n 's/^digest //p' out
done | sort | uniq -c >digests
is "$(wc -l <digests)" 1 "digests: $(cat digests)"
for batching in completion; do
    # shellcheck disable=SC2086
    expect 0 dl2-load bench $how -j 3 --batching=$batching --json=$batching.json src
    grep -q '"frames_per_second"' $batching.json || grep -q 'frames/s' out || fail "$batching: no frames"
done

# ---- Bad videos are bad samples
cp -R src bad
head -c 3000 src/run/1.mp4 >bad/run/1.mp4
: >bad/walk/2.avi
expect 1 dl2-load check --quiet bad
said 'bad/run/1.mp4: decode: the video is cut off after 3000 bytes'
said 'bad/walk/2.avi: decode: the file is empty'
expect 1 dl2-load bench --quiet --split all --frames 2 --image-size 8 bad
said 'bad/run/1.mp4: decode: the video is cut off'
grep -q '^  frames/s ' out || fail 'the others were not loaded'

# ---- What has no use for videos says so
expect 1 dl2-load bench --quiet src
said 'set frames'
expect 1 dl2-load bench --quiet --samples images --frames 2 src
said 'it holds videos, which are not images'
expect 2 dl2-load bench --quiet --frames 2 --cache-decoded 4M src
said '--cache-decoded excludes --frames'
expect 1 dl2-load analyze --quiet --device-rate 100 --frames 2 src
said 'it holds videos'
cp files/run/1/00000.ppm src/picture.ppm
expect 0 dl2-load check src
said 'files left out because they are videos, and the folder holds images: 6 (.'
