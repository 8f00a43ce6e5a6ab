#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Replays videos of every container, good and damaged, and headers whose sizes lie.
. "$srcdir/tests/lib.sh"
mkdir "$work/corpus"
cd "$work" || exit 99
printf '\0\0\0\020ftypisom\0\0\0\0\0\0\0\001mdat\377\377\377\377\377\377\377\377' >corpus/mp4
printf '\0\0\0\010free\0\0\0\0mdat12345678' >corpus/to-the-end
printf '\032\105\337\243\201\0\030\123\200\147\001\377\377\377\377\377\377\377' >corpus/unknown
printf '\032\105\337\243\210\0\0\0\0\0\0\0\0\030\123\200\147\100\377' >corpus/matroska
printf 'RIFF\377\377\377\377AVI RIFF' >corpus/avi
printf 'RIFF\005\0\0\0AVI 1RIFF\004\0\0\0AVIX' >corpus/chunks
if ffmpeg -version >/dev/null 2>&1; then
    source="-loglevel error -f lavfi -i testsrc=size=48x32:rate=5:duration=1 -threads 1"
    # shellcheck disable=SC2086
    {
        ffmpeg $source -c:v mpeg4 corpus/mpeg4.mp4
        ffmpeg $source -c:v mpeg4 corpus/mpeg4.avi
        ffmpeg $source -c:v mjpeg corpus/mjpeg.mkv
        ffmpeg $source -c:v libx264 -bf 2 corpus/h264.mp4 || rm -f corpus/h264.mp4
        ffmpeg $source -c:v libvpx corpus/vp8.webm || rm -f corpus/vp8.webm
    } </dev/null 2>"$work/err"
    [ -s corpus/mpeg4.mp4 ] || fail "ffmpeg: $(cat "$work/err")"
fi
DL2_FUZZ_SECONDS=4 expect 0 "$builddir/tests/codec/fuzz_video" -runs=0 corpus
