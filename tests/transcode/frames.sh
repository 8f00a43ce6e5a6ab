#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Videos become clips: the frames that FFmpeg's own filter takes, upright, at the asked size, in every container; label
# lists; what is damaged, empty or has only sound is named; reruns make what changed.
[ ! -w /dev/shm ] || TMPDIR=/dev/shm
. "$srcdir/tests/lib.sh"
grep -q 'define HAVE_JPEG 1' "$builddir/config.h" || skip "this build has no JPEG"
mkdir -p "$work/src/run" "$work/src/walk"
cd "$work" || exit 99
if ! grep -q 'define HAVE_FFMPEG 1' "$builddir/config.h"; then
    : >src/run/1.mp4
    expect 1 dl2-transcode frames --fps 8 src clips
    said 'libavformat-dev libavcodec-dev libavutil-dev libswscale-dev'
    skip "this build has no FFmpeg libraries"
fi
need ffmpeg ffmpeg
video() { # FILE OPTIONS...: of moving shapes
    file=$1
    shift
    ffmpeg -nostdin -v error -f lavfi -i testsrc=size=96x64:rate=25:duration=2 "$@" "$file" || skip "ffmpeg cannot make ${file##*/}"
}
convert() { # fps=N[,short=N] OPTION... SOURCE DEST
    rate=${1%%,*}
    short=${1#"$rate"}
    shift
    dl2-transcode --quiet frames --fps "${rate#fps=}" ${short:+--resize-shorter "${short#,short=}"} "$@"
}
video src/run/1.mp4 -c:v libx264 -qp 0 -bf 2 -g 12 -pix_fmt yuv444p
video src/run/2.mkv -c:v libx264 -qp 4 -pix_fmt yuv444p -vf setpts=PTS*1.3
video src/run/3.webm -c:v libvpx -b:v 2M
video src/walk/1.avi -c:v mpeg4 -q:v 2 -bf 2
video src/walk/2.mov -c:v mjpeg -q:v 2 -r 3
video src/walk/3.mp4 -c:v libx264 -qp 0 -pix_fmt yuv444p -colorspace bt709 -color_range tv

# ---- The same frames as FFmpeg's, and the same pixels but for how chroma is enlarged
for fps in 8 30; do
    expect 0 convert fps=$fps -c ppm src "full$fps"
    for name in run/1.mp4 run/2.mkv run/3.webm walk/1.avi walk/2.mov walk/3.mp4; do
        mkdir -p "ref$fps/${name%.*}"
        ffmpeg -nostdin -v error -i "src/$name" -vf "setpts=PTS-STARTPTS,fps=$fps,scale=flags=bicubic+accurate_rnd+full_chroma_int,format=rgb24" \
            -start_number 0 "ref$fps/${name%.*}/%05d.ppm" || fail "ffmpeg: $name"
    done
    expect 0 dl2-quality --quiet --metrics psnr_rgb --below psnr_rgb=33 "ref$fps" "full$fps"
    expect 0 dl2-quality --quiet --metrics psnr_rgb --csv=scores.csv "ref$fps" "full$fps"
    awk -F, '/,(run\/1|run\/2|walk\/3)\// && $12 != "" && $12 < 45 { print; bad = 1 } END { exit bad }' scores.csv || fail "$fps fps: other pixels"
done
is "$(find full8/run/1 -name '*.ppm' | wc -l)" 16 'frames of 2 s at 8 per second'
expect 0 convert fps=30 -c ppm --force src full30
said 'frames are repeated: 6 videos have fewer frames per second'

# ---- Reduced to the short side, never enlarged; read as clips without being told
expect 0 convert fps=8,short=32 src clips
is "$(sed 's/, [0-9]* bytes/, N bytes/' out)" 'clips: 6 clips, 105 frames, N bytes, as folder; 6 written, 0 failed' 'summary'
expect 0 dl2-load check clips
said '6 clips of 16 to 21 frames in 2 classes'
size() { dl2-transcode copy --force --quiet -j 1 "$1" sizes >/dev/null 2>&1; dl2-transcode --quiet -c ppm "$1" sized >/dev/null 2>&1; find sized/ppm -name '*.ppm' -exec head -c 12 {} \; -exec rm {} \; | grep -a -E '^[0-9]+ [0-9]+$' | sort -u; }
is "$(size clips)" '48 32' 'size'
expect 0 convert fps=1,short=200 src large
is "$(size large)" '96 64' 'a size that was not enlarged'

# ---- Every container has the same clips; reruns make what changed
digest() { dl2-load bench --quiet --val --split all --frames 3 --frame-step 2 --image-size 20 --digest "$1" | sed -n 's/^digest //p'; }
for container in gulp tar; do
    expect 0 convert fps=8,short=32 --container=$container src "$container"
    is "$(digest $container)" "$(digest clips)" "$container"
    expect 0 convert fps=8,short=32 --container=$container src "$container"
    grep -q '; 0 written' out || fail "$container was made again"
done
expect 0 convert fps=8,short=32 -j 3 src clips
grep -q '105 frames.*; 0 written' out || fail "clips were made again: $(cat out)"
rm clips/run/1/00003.jpg
touch -d 2001-01-01 src/walk/1.avi
expect 0 convert fps=8,short=32 src clips
grep -q '; 2 written' out || fail "what changed: $(cat out)"
[ -f clips/run/1/00003.jpg ] || fail 'a lost frame was not made again'
expect 0 convert fps=4,short=32 src clips
grep -q '; 6 written' out || fail 'another rate'
is "$(find clips/run/1 -name '*.jpg' | wc -l)" 8 'frames that are left of more'
expect 0 convert fps=4,short=32 --container=tar src tar
grep -q '; 6 written' out || fail 'another rate in tar'
mv src/run/2.mkv .
expect 0 convert fps=4,short=32 src clips
said 'clips/run/2: no source video accounts for it'
expect 0 convert fps=4,short=32 --prune src clips
[ ! -d clips/run/2 ] || fail 'a clip without a video was kept'
mv 2.mkv src/run
for jobs in 1 4; do expect 0 convert fps=8 -j $jobs src "jobs$jobs"; done
diff -r -x '.dl2-*' jobs1 jobs4 >&2 || fail 'the number of workers changes bytes'

# ---- What cannot be read is named and counted; the rest is made
mkdir -p bad/run bad/walk
cp src/run/*.* bad/run
cp src/walk/*.* bad/walk
: >bad/run/empty.mp4
echo 'no video' >bad/run/text.webm
printf '#EXTM3U\n#EXTINF:1,\n%s\n' "$work/src/run/1.mp4" >bad/run/list.mp4
video bad/run/both.mp4 -f lavfi -i sine=duration=2 -c:v mpeg4 -c:a aac -shortest
ffmpeg -nostdin -v error -i bad/run/both.mp4 -vn bad/run/sound.mp4
for name in run/1.mp4 run/3.webm walk/1.avi; do head -c 6000 "src/$name" >"bad/${name%/*}/cut.${name##*.}"; done
mv bad/run/cut.webm bad/walk/cut.webm && mv bad/walk/cut.avi bad/walk/cut2.avi
ffmpeg -nostdin -v error -i src/run/1.mp4 -c:v libx264 -movflags +faststart bad/run/damaged.mp4
at=$(($(wc -c <bad/run/damaged.mp4) / 2))
head -c 400 src/walk/2.mov | dd of=bad/run/damaged.mp4 bs=1 seek=$at conv=notrunc 2>/dev/null
cp src/run/1.mp4 bad/run/1.mkv
for container in folder gulp; do
    for run in first second; do
        expect 1 convert fps=4 --container=$container bad bad-$container
        grep -q ' 7 clips.* 9 failed' out || { cat err >&2; fail "bad: $(cat out)"; }
        said 'bad/run/empty.mp4: the file is empty'
        said 'bad/run/text.webm: no video in MP4, Matroska or AVI'
        said 'bad/run/list.mp4: no video'
        said 'bad/run/sound.mp4: it has no video stream, only sound'
        said 'bad/run/cut.mp4: the video is cut off after 6000 bytes'
        said 'bad/walk/cut.webm: the video is cut off'
        said 'bad/walk/cut2.avi: the video is cut off'
        said 'bad/run/damaged.mp4: '
        grep -q 'bad/run/1.m[kp][v4]: another video has the same name' err || fail 'two videos of one name'
        if [ $run = first ]; then said 'sound is dropped: 1 videos have it'; else grep -q '; 0 written' out || fail "bad: made again: $(cat out)"; fi
    done
done
expect 0 dl2-load check bad-gulp

# What stays as it is in the file, and would surprise a network.
mkdir -p unusual/a
ffmpeg -nostdin -v error -i src/run/1.mp4 -flags +ildct+ilme -c:v mpeg4 unusual/a/comb.mp4
ffmpeg -nostdin -v error -i src/run/1.mp4 -vf setsar=2,setparams=color_primaries=bt2020:color_trc=smpte2084 -c:v libx264 unusual/a/hdr.mp4
cp src/run/1.mp4 unusual/a/usual.mp4
expect 0 convert fps=4 unusual unusual-out
said 'pixels that are not square stay so, and clips look stretched: 1 videos have them'
said 'HDR and wide gamuts are not converted, and clips look pale: 1 videos have them'
said 'frames are not deinterlaced, and clips show combs where something moves: 1 videos are interlaced'
expect 0 dl2-load check --json=check.json unusual
said '1 of its videos have pixels that are not square: they look stretched'
tr -d ' \n' <check.json | grep -qF '"unusual":{"oblong":1,"wide_color":1,"interlaced":1,' || fail "check.json: $(cat check.json)"
expect 0 dl2-load bench --split all --epochs 1 --frames 2 --image-size 32 unusual
for line in 'pixels not square' 'HDR or wide gamut' 'interlaced videos'; do
    grep -q "$line .* 1 times" out || fail "bench says nothing of $line: $(cat out)"
done
mkdir -p strange/train/b strange/val/a strange/val/b
cp -r unusual/a strange/train
for class in train/b val/a val/b; do cp src/run/1.mp4 strange/$class/usual.mp4; done
cp unusual/a/hdr.mp4 strange/val/b/1.mp4
cp unusual/a/hdr.mp4 strange/val/b/2.mp4
expect 0 dl2-train -d strange -a convcolumn --frames 8 --image-size 16 -e 1 -b 4 --threads 2 --out strange-out
said "1 of the first epoch's videos have pixels that are not square"
said "1 of the first epoch's videos are HDR or of a wide gamut"
said "1 of the first epoch's videos are interlaced"
is "$(grep -c "2 of strange's videos are HDR or of a wide gamut" err)" 1 'what is said of the validation set'
expect 0 dl2-train evaluate strange-out/checkpoint.safetensors --val strange --out strange-evaluated
said "2 of strange's videos are HDR or of a wide gamut"
# What failed by a limit is tried again with another one.
mkdir -p sizes-src/run sizes-src/walk
cp src/run/1.mp4 sizes-src/run && cp src/walk/1.avi sizes-src/walk
video sizes-src/run/large.mp4 -vf scale=192:128 -c:v libx264 -pix_fmt yuv420p
expect 1 convert fps=4 --container=gulp --max-pixels 10000 sizes-src limits
grep -q '2 written, 1 failed' out || fail "a video above the limit: $(cat out err)"
expect 0 convert fps=4 --container=gulp sizes-src limits
grep -q '3 written, 0 failed' out || fail "the same without the limit: $(cat out)"
# A clip whose video is damaged later is gone.
expect 0 convert fps=4 src later
cp bad/run/damaged.mp4 src/run/1.mp4
expect 1 convert fps=4 src later
[ ! -e later/run/1/00000.jpg ] || fail 'frames of another video were kept'
cp bad/run/1.mkv src/run/1.mp4
expect 1 convert fps=4 --max-pixels 1000 src limited
said 'no video could be read'

# ---- Lists of labels
mkdir named named/deep
cp src/run/1.mp4 named/deep/17.mp4
cp src/run/2.mkv named/18.mkv
cp src/walk/1.avi named/x-_y_000004_000014.avi
expect 1 convert fps=4 named named-clips
said 'the video has no class'
expect 0 convert fps=4 --container=gulp named named-gulp
printf '17;Swiping Left\n18;Swiping [something]\n' >train.csv
printf 'label,youtube_id,time_start,time_end,split\n"a, b",x-_y,4,14,validate\nSwiping Left,17,0,10,train\n' >kinetics.csv
expect 0 convert fps=4 --labels train.csv named jester
is "$(cd jester && ls -d */* | tr '\n' '|')" 'Swiping Left/17|Swiping [something]/18|' 'a list of ids and labels'
expect 0 convert fps=4 --labels kinetics.csv named kinetics
is "$(cd kinetics && ls -d */*/* | tr '\n' '|')" 'train/Swiping Left/17|val/a, b/x-_y_000004_000014|' "Kinetics' columns"
printf '17;Swiping Left\n99;Swiping Left\n' >val.csv
expect 1 convert fps=4 --container=tar --labels train=train.csv,val=val.csv named splits
grep -q '3 clips.* 1 failed' out || fail "a video that is not there: $(cat out)"
said '1 line of the lists of labels names a video that is not there: 99'
[ -f splits/val/shard-000000.tar ] || fail 'no split of its own'
cp named/18.mkv named/deep/18.mkv
expect 1 convert fps=4 --labels train.csv named twice
said 'train.csv: line 2: 18 may be 18.mkv or deep/18.mkv'

# ---- Usage
expect 2 dl2-transcode frames --resize-shorter 32 src other
said 'frames needs --fps N'
expect 2 convert fps=4 -q 10,20 src other
said 'makes one dataset'
expect 2 dl2-transcode --labels train.csv src other
said '--labels is not an option of the command recompress, but of copy, frames'
expect 2 convert fps=4 --label-field class src other
said '--label-field is not an option of the command frames'
expect 2 convert fps=4 src src/clips
said 'lie in each other'
expect 2 convert fps=4 --labels train.csv http://127.0.0.1:9/videos other
said 'lists of labels are for videos and frames in a folder of this machine'
expect 1 convert fps=4 ref8 other
said 'it holds images, and frames is for videos'
expect 1 dl2-transcode --quiet src other
said 'it holds videos'

# ---- Frames that no run has written are in the way; those of a run that was killed are not
mkdir -p held/run/1 && echo mine >held/run/1/00003.jpg
expect 2 convert fps=4 src held
said 'held/run/1/00003.jpg is in the way'
is "$(cat held/run/1/00003.jpg) $(find held -name '*.jpg' | wc -l)" 'mine 1' 'files of another program'
expect 0 convert fps=4 src resumed
cp -r resumed whole
grep -v '"frames"' resumed/.dl2-frames >kept
sed -n 's/,"frames".*/}/p' resumed/.dl2-frames >>kept
mv kept resumed/.dl2-frames
rm resumed/run/1/00002.jpg
expect 0 convert fps=4 src resumed
diff -r -x '.dl2-*' whole resumed || fail 'a run that was killed'

# ---- Cut out of a longer video at an open group of pictures: its first frames lack what they refer to
mkdir -p cut/run cut/walk
video whole.mp4 -c:v libx264 -pix_fmt yuv420p -x264-params open-gop=1:keyint=12:min-keyint=12:bframes=2:scenecut=0
cut() { # NAME.EXTENSION OPTION...
    name=$1
    shift
    ffmpeg -nostdin -v error -ss 0.7 -i whole.mp4 -c copy "$@" "cut/run/$name" || fail "ffmpeg cuts no $name"
}
cut mp4.mp4 -avoid_negative_ts make_zero
cut mkv.mkv -avoid_negative_ts make_zero
cut timeless.mkv # times below 0 are left out
cut avi.avi      # AVI has none
cp whole.mp4 cut/walk
expect 1 convert fps=25 cut cut-clips
for name in mp4.mp4 mkv.mkv timeless.mkv avi.avi; do
    said "cut/run/$name: its first frames refer to frames before its first key frame, which the file lacks"
done
is "$(sed 's/, [0-9]* bytes.*folder//' out)" 'cut-clips: 1 clips, 50 frames; 1 written, 4 failed' 'a video that is whole'
# One that begins as it should and is damaged behind its first frame is not called that.
mkdir -p damaged/run
ffmpeg -nostdin -v error -i whole.mp4 -c copy damaged/run/1.avi
at=$(ffprobe -v error -show_entries packet=pos -of csv=p=0 damaged/run/1.avi | sed -n 2p)
head -c 8 /dev/zero | dd of=damaged/run/1.avi bs=1 seek=$((at + 5)) conv=notrunc 2>/dev/null # behind the unit's header
expect 1 convert fps=25 damaged damaged-clips
said 'damaged/run/1.avi: a frame of the video: Invalid data'

# ---- An AVI that repeats each frame by an empty one, as ffmpeg writes where B-frames are copied, is shown as long as its source
mkdir -p doubled/run
ffmpeg -nostdin -v error -i whole.mp4 -c copy doubled/run/1.avi
ffmpeg -nostdin -v error -i whole.mp4 -c copy doubled/run/2.mkv
expect 0 convert fps=25 doubled doubled-clips
is "$(ls doubled-clips/run/1 | wc -l) $(ls doubled-clips/run/2 | wc -l)" '50 50' 'frames at the rate of the source'
diff -r doubled-clips/run/1 doubled-clips/run/2 || fail 'frames of an AVI differ'

# ---- Turned as the display matrix says
mkdir -p turned/run turned/walk
cp src/run/1.mp4 turned/walk/1.mp4
for angle in 90 180 270; do
    # FFmpeg 6 and later, or before.
    ffmpeg -nostdin -v error -display_rotation:v:0 $angle -i src/run/1.mp4 -c copy turned/run/$angle.mp4 2>/dev/null ||
        ffmpeg -nostdin -v error -i src/run/1.mp4 -c copy -metadata:s:v:0 rotate=$angle turned/run/$angle.mp4 2>/dev/null
    mkdir -p turned-ref/run/$angle
    ffmpeg -nostdin -v error -i turned/run/$angle.mp4 -vf fps=4,format=rgb24 -start_number 0 turned-ref/run/$angle/%05d.ppm
done
mkdir -p turned-ref/walk/1
ffmpeg -nostdin -v error -i turned/walk/1.mp4 -vf fps=4,format=rgb24 -start_number 0 turned-ref/walk/1/%05d.ppm
head -c 12 turned-ref/run/90/00000.ppm | grep -q '^64 96$' || skip "ffmpeg turned nothing"
expect 0 convert fps=4 -c ppm turned upright
expect 0 dl2-quality --quiet --metrics psnr_rgb --below psnr_rgb=40 turned-ref upright
