#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Clips become videos: as many frames as before, close to the source at a low CRF, the same bytes however they are made,
# from every kind of clips; reruns and kills; what is refused.
[ ! -w /dev/shm ] || TMPDIR=/dev/shm
. "$srcdir/tests/lib.sh"
cd "$work" || exit 99
# frame FILE WIDTH HEIGHT TIME: a wave in soft colors, which moves.
frame() {
    mkdir -p "${1%/*}"
    { printf 'P6\n%d %d\n255\n' "$2" "$3"
      awk -v w="$2" -v h="$3" -v t="$4" 'BEGIN {
          for (y = 0; y < h; y++) for (x = 0; x < w; x++) {
              v = 75 + 20 * sin((x + 2 * t) / 9) + 10 * sin((y - t) / 7)
              printf "%c%c%c", v + 8, v, v - 6 } }'
    } >"$1"
}
for class in run walk; do
    for clip in 1 2 3; do
        for time in 0 1 2 3 4 5 6; do
            [ $time -ge $((clip + 4)) ] || frame "src/$class/c$clip/$time.ppm" 72 64 $((time + 9 * clip))
        done
    done
done
if ! grep -q 'define HAVE_FFMPEG 1' "$builddir/config.h"; then
    expect 2 dl2-transcode -c h264 src out
    said "'h264' is not a codec that this build can write"
    skip "this build has no FFmpeg libraries"
fi
make() { dl2-transcode --quiet "$@"; }
made() { awk -v name="$1" '$1 == name { print $3 }' out; }
same() { diff -r -x 'dl2-variant.json*' "$1" "$2" >&2 || fail "$3: other bytes"; }
if sanitized; then # x265 leaks a kilobyte with each encoder
    echo leak:libx265.so >leaks
    export LSAN_OPTIONS="${LSAN_OPTIONS:+$LSAN_OPTIONS:}suppressions=$work/leaks:print_suppressions=0"
fi
codecs=
for codec in h264 h265 av1; do
    if make -c $codec src probe >out 2>err; then
        codecs="$codecs $codec"
    else
        grep -q 'lack the encoder .*Debian' err || fail "$codec: $(cat err)"
    fi
done
[ "$codecs" ] || skip "FFmpeg's libraries here have none of the encoders (Debian: libavcodec59)"
list=$(echo $codecs | tr ' ' ,)
first=${list%%,*}

# ---- Frames in are frames out, and look alike
expect 0 make -c "$list" -q 1,12,40 src v
cp out table
for codec in $codecs; do
    is "$(awk -v name=$codec-12 '$1 == name { print $2, $3 }' table)" '6 6' "$codec: clips"
    grep -q '"frames": 36' v/$codec-12/dl2-variant.json || fail "$codec: $(cat v/$codec-12/dl2-variant.json)"
    expect 0 dl2-load check v/$codec-12
    said '6 videos in 2 classes'
    expect 0 make frames --fps 25 -c ppm v/$codec-12 frames-$codec
    grep -q '6 clips, 36 frames' out || fail "$codec: $(cat out)"
    expect 0 dl2-quality --quiet --samples clips --metrics psnr_rgb --below psnr_rgb=36 src frames-$codec
    size() { wc -c <v/$codec-$1/run/c3.mp4; }
    [ "$(size 01)" -gt "$(size 12)" ] && [ "$(size 12)" -gt "$(size 40)" ] || fail "$codec: a lower CRF is no larger"
done

# ---- Scored frame by frame, without the frames as files; bytes are those of the files
numbers() { sed -n '/"variants"/,$p' "$1" | grep -v -e seconds -e '"path"' -e '"variant":' -e '"name":' -e '"codec":' -e '"library":' -e '"quality":' -e bytes -e bits; }
for codec in $codecs; do
    expect 0 dl2-quality --quiet -j 1 --metrics psnr_rgb,ssim --json=one.json src v/$codec-12
    expect 0 dl2-quality --quiet -j 4 --metrics psnr_rgb,ssim --json=four.json src v/$codec-12
    expect 0 dl2-quality --quiet --metrics psnr_rgb,ssim --json=files.json src frames-$codec
    numbers one.json >one.txt && numbers four.json >four.txt && numbers files.json >files.txt
    grep -q psnr_rgb one.txt && cmp one.txt four.txt && cmp one.txt files.txt || fail "$codec: other scores"
    grep -q "\"bytes\": $(cat v/$codec-12/*/*.mp4 | wc -c)," one.json || fail "$codec: bytes: $(grep '"bytes"' one.json | head -1)"
    is "$(grep -c '"key"' one.json)" 36 "$codec: frames"
done
expect 0 dl2-quality --quiet -j 1 --metrics psnr_rgb --csv=whole.csv src v/$first-12
for part in 1/2 2/2; do expect 0 dl2-quality --quiet --metrics psnr_rgb --part $part --json=parts.json --csv=parts.csv src v/$first-12; done
cmp whole.csv parts.csv || fail 'parts score otherwise'
if grep -q 'define HAVE_PNG 1' "$builddir/config.h"; then
    expect 0 dl2-quality --quiet --metrics ssim,psnr_rgb --json-dir scores src v/$first-40
    expect 0 dl2-quality --quiet crops --out crops --json-dir scores src v/$first-40
    mkdir decoded && expect 0 make frames --fps 25 -c png v/$first-40 "decoded/$first-40"
    expect 0 dl2-quality --quiet --metrics ssim,psnr_rgb --json-dir scored src "decoded/$first-40"
    expect 0 dl2-quality --quiet crops --out crops-decoded --json-dir scored src "decoded/$first-40"
    [ -f crops/image-0-variant-0.png ] || fail "$(ls crops)"
    for file in crops/*.png; do cmp "$file" "crops-decoded/${file##*/}" || fail 'crops of other pixels'; done
fi
expect 0 dl2-quality --quiet --metrics psnr_rgb v/$first-01 v/$first-12
grep -q '36 of its files are of a lossy codec' out || fail "$(cat out)"
cp -R v/$first-40 cut && head -c 900 v/$first-40/run/c2.mp4 >cut/run/c2.mp4
expect 1 dl2-quality --quiet --metrics psnr_rgb src cut
said 'cut/run/c2.mp4: the video is cut off'
grep -q 'missing' out || fail "$(cat out)"

# ---- Other sides, chroma and settings; what each codec cannot encode is said
mkdir odd && frame odd/a/x/0.ppm 65 67 1 && frame odd/a/x/1.ppm 65 67 2 && cp -R odd/a/x odd/a/y
expect 1 make -c $first --samples clips odd oddv
said 'frames of 65x67 pixels have an odd side, which subsampled chroma cannot have; pass --subsampling 444'
expect 0 make -c "$list" -q 2 -s 444 --samples clips odd oddv
for codec in $codecs; do
    expect 0 make frames --fps 25 -c ppm oddv/$codec-02 odd-$codec
    expect 0 dl2-quality --quiet --samples clips --metrics psnr_rgb --below psnr_rgb=44 odd odd-$codec
done
expect 0 make -c $first -q 20 --resize-shorter 32,full src small
grep -q '"width":36,"height":32' "small/$first-20@32/dl2-variant.jsonl" || fail "$(cat "small/$first-20@32/dl2-variant.jsonl")"
case $list in *h264*)
    expect 0 make -c h264:preset=ultrafast:gop=2,h264 -q 20 src set
    [ -f set/h264_presetultrafast_gop2-20/run/c1.mp4 ] || fail "$(ls set)"
    cmp -s set/h264_presetultrafast_gop2-20/run/c3.mp4 set/h264-20/run/c3.mp4 && fail 'settings without effect'
    expect 2 make -c h264:preset=fastest src set
    said 'preset takes ultrafast, superfast'
    ;;
esac
case $list in *h265*)
    frame tiny/a/x/0.ppm 34 18 1 && frame tiny/a/x/1.ppm 34 18 2 && cp -R tiny/a/x tiny/a/y
    expect 1 make -c h265 --samples clips tiny tinyv
    said 'frames of 34x18 pixels: h265 takes at least 64 pixels a side'
    ;;
esac

# ---- The same bytes for any number of threads and processes, from each kind of clips
expect 0 make -j 4 -c "$list" -q 12 src four
for codec in $codecs; do same v/$codec-12 four/$codec-12 "$codec, 4 threads"; done
expect 0 make -j 1 -c "$list" -q 12 --part 2/2 src parts
expect 0 make -j 1 -c "$list" -q 12 --part 1/2 src parts
for codec in $codecs; do
    same v/$codec-12 parts/$codec-12 "$codec, parts"
    grep -q '"complete": true' parts/$codec-12/dl2-variant.json || fail 'parts are not complete'
done
for container in gulp tar; do
    expect 0 make copy --container=$container src $container
    expect 0 make -c $first -q 12 $container from-$container
    same v/$first-12 from-$container/$first-12 $container
done
# From videos: their rate stays, and the frames are theirs
expect 0 make -c $first -q 2 -s 444 src fine
expect 0 make -c $first -q 12 fine/$first-02 again
expect 0 make frames --fps 25 -c ppm again/$first-12 frames-again
expect 0 dl2-quality --quiet --metrics psnr_rgb --below psnr_rgb=35 src frames-again
if command -v ffmpeg >/dev/null 2>&1; then
    mkdir -p rated/a && ffmpeg -nostdin -v error -f lavfi -i testsrc=size=64x64:rate=30000/1001:duration=0.4 -f lavfi -i sine -shortest \
        -c:v mpeg4 -q:v 2 rated/a/one.mov || skip 'ffmpeg cannot make a video'
    ffmpeg -nostdin -v error -f lavfi -i testsrc=size=64x64:rate=100:duration=1 \
        -vf 'select=eq(n\,0)+eq(n\,2)+eq(n\,8)+eq(n\,18)+eq(n\,32)' -vsync vfr -c:v mpeg4 rated/a/two.mp4
    expect 0 make -c $first rated rated-out
    said 'rated: sound is dropped: 1 videos have it'
    said 'frames are shown equally long in variants, and are not in 1 of its videos'
    expect 0 make frames --fps 30000/1001 -c ppm rated-out/"$first"-* rated-frames
    grep -q '"key":"a/one".*"frames":12' rated-frames/.dl2-frames || fail "another rate: $(cat rated-frames/.dl2-frames)"
fi

# ---- A rerun makes what is missing or changed; a frame of the same size, too
expect 0 make -c $first -q 12 src v
is "$(made $first-12)" 0 'made again'
rm v/$first-12/run/c1.mp4
frame src/walk/c2/3.ppm 72 64 40
touch -d 2001-01-01 src/walk/c2/3.ppm
expect 0 make -c $first -q 12 src v
is "$(made $first-12)" 2 'what is missing and what changed'
expect 0 make -c $first -q 12 src fresh
same v/$first-12 fresh/$first-12 'reruns'
mv src/run/c1 gone
expect 0 make -c $first -q 12 src v
said 'run/c1.mp4: no source image accounts for it'
expect 0 make -c $first -q 12 --prune src v
[ ! -e v/$first-12/run/c1.mp4 ] || fail 'a video without a source was kept'
mv gone src/run/c1

# ---- A clip that lacks a frame, or has another size in it, is named, and fails alone
cp -R src bad
echo 'P6 not an image' >bad/run/c2/2.ppm
frame bad/walk/c1/1.ppm 64 64 1
expect 1 make -c "$list" -q 30 bad badv
said 'run/c2: frame 2: PNM'
said 'walk/c1: frame 1: it is of 64x64 pixels, the first frame of its clip of 72x64'
said '2 of 6 clips failed'
is "$(find badv/$first-30 -name '*.mp4' | wc -l)" 4 'the others'

# ---- What lies beside the first frame stays with the clip; masks cannot
cp -R src beside
echo '{"caption": "a run"}' | tee beside/run/c1/0.json >beside/run/c1/1.json
expect 0 make -c $first -q 30 beside besidev
said 'left out beside frames: 1 .json'
cmp -s beside/run/c1/0.json besidev/$first-30/run/c1.json || fail 'what lies beside the first frame'
cp beside/run/c3/1.ppm beside/run/c3/1.mask.ppm
expect 1 make -c $first -q 30 beside besidev
said 'run/c3: a frame has a mask (.mask.ppm)'

# ---- A kill leaves no half-written file, and the rerun ends with the same bytes
kills=0
for delay in 0.02 0.1 0.2; do
    dl2-transcode --quiet -j 2 -c "$list" -q 12,40 src killed >/dev/null 2>&1 &
    pid=$!
    sleep $delay
    kill -9 $pid 2>/dev/null && kills=$((kills + 1))
    wait $pid 2>/dev/null
done
expect 0 make -c "$list" -q 12,40 src killed
expect 0 make -c "$list" -q 12,40 src whole
same whole killed "$kills kills"
[ -z "$(find killed -name '*.dl2-tmp' -o -name '*journal*')" ] || fail 'something is left over'

# ---- What is refused, by name
expect 2 make -c $first,ppm src no
said "--codec: $first makes a video of each clip, ppm an image of each frame; give them to two runs"
expect 2 make -c $first -q 75 src no
said "--q 75: of $first it is the CRF, 1 to"
expect 2 make -c $first --target ssim=0.9 src no
said '--target has no effect on videos'
expect 2 make -c $first --never-larger=yes src no
said '--never-larger has no effect on videos'
expect 2 make -c $first --restart=none src no
said '--restart has no effect on videos'
expect 2 make -c $first --effort 3 src no
said 'none that is has a choice'
expect 2 make -c $first --container=tar src no
said 'makes videos, which lie in folders'
expect 2 make -c $first src 'postgresql:///nothing?table=x'
said 'makes videos, which lie in folders'
expect 2 make frames --fps 8 -c $first fine/$first-02 no
said "leave the word out for $first, which makes videos of videos"
expect 1 make -c $first --samples images src no
said "src: it holds images, and $first makes videos of clips"
expect 1 make -c $first src/run/c1 no
said 'pass --samples clips'
[ ! -d no/$first-23 ] || fail 'something was made'
mkdir empty
for version in 59 60 61 62; do : >empty/libavformat.so.$version; done
LD_LIBRARY_PATH=empty${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} dl2-transcode --quiet -c $first src no >out 2>err && fail 'made without the libraries'
said "$first: FFmpeg's libraries, with which this build reads and makes videos, are not installed (Debian: libavformat"
