#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A study where something is wrong: a failure is never taken for a success, and is told before the work.
. "$srcdir/tests/lib.sh"
plainly
. "$srcdir/tests/study/study_lib.sh"

# ---- Every variable is checked before anything is made
refused "EPOCHS is \"x\": 'x' is not a number" EPOCHS=x
refused 'EPOCHS is "0": 0 is not between' EPOCHS=0
refused 'EPOCHS is "1 2": one value' EPOCHS='1 2'
refused 'SEEDS is "1 x": x is not a whole number' SEEDS='1 x'
refused 'SEEDS is "99999999999999999999": 99999999999999999999 is too large' SEEDS=99999999999999999999
refused 'SEEDS is "1 1": 1 is there twice' SEEDS='1 1'
refused 'SEEDS is "": it is empty' SEEDS=
refused "TOLERANCE is \"x\": 'x' is neither a number" TOLERANCE=x
refused 'TOLERANCE is "2%": FORECAST compares points' TOLERANCE=2% DECIDE=yes FORECAST=yes
refused 'GROUP is "none.tsv": none.tsv is neither a file nor' GROUP=none.tsv
refused 'GROUP is "regex:(": "(" is not a valid extended regular expression' GROUP='regex:('
refused 'GROUP is "regex:a b": it can'"'t have blanks" GROUP='regex:a b'
refused 'GROUP is "postgresql://me:***@host/db?table=t&group=g": it has a password' GROUP='postgresql://me:secret@host/db?table=t&group=g'
refused 'BATCH is "0": 0 is not between' BATCH=0
refused 'BATCH is "8x": 8x is not a whole number' BATCH=8x
refused 'IMAGE_SIZE is "4": 4 is not between' IMAGE_SIZE=4
refused 'JOBS is "0": it is not between 1 and 1024' JOBS=0
refused 'JOBS is "2000": it is not between' JOBS=2000
refused 'JOBS is "two"' JOBS=two
refused 'TRAINERS is "0": it is not between' TRAINERS=0
refused 'TRAINERS is "1 2": one value' TRAINERS='1 2'
refused 'ROUNDS is "0": it is not between' ROUNDS=0
refused 'ROUNDS is "x": x is not a whole number' ROUNDS=x
refused "MEASURE is \"x\": 'x' is not a number" MEASURE=x
refused 'MEASURE is "0": 0 is not between' MEASURE=0
for given in QUALITY EPOCH; do # as make passes on what is on its command line
    refused "there is no setting $given; did you mean" MAKEFLAGS=" -j2 -- $given=50"
done
refused 'BUDGET is "9s": it has an effect with DECIDE=yes only' BUDGET=9s
refused 'BUDGETS is "9s": it has an effect on study-time only' BUDGETS=9s
refused "there is no goal stdy; did you mean study?" stdy
refused_of_loading() { expected=$1; shift; expect 2 study OUT=none study-loading "$@"; said "$expected"; }
refused_of_loading 'STORAGES is "disk tape": tape is neither memory, disk, memory=SIZE, ' STORAGES='disk tape'
refused_of_loading 'memory=1X: ' STORAGES=memory=1X
refused_of_loading 'memory=0: it is 0' STORAGES=memory=0
refused_of_loading 'memory=1G,disk: what follows memory= is cache=' STORAGES=memory=1G,disk
refused_of_loading 'results of two of them would be in one folder, a-b' STORAGES='/a/b a/b/'
refused_of_loading 'WORKERS is "x"' WORKERS=x
refused_of_loading 'WORKERS is "1 1": 1 is there twice' WORKERS='1 1'
refused_of_loading 'CACHES is "50%"' CACHES=50%
refused "CODECS is \"gif\": 'gif' is not a codec that this build can write" CODECS=gif
refused 'CODECS is "": it is empty' CODECS=
refused 'QUALITIES is "0": 0 is not between' QUALITIES=0
refused 'QUALITIES is "10 101": 101 is not between' QUALITIES='10 101'
refused 'QUALITIES is "05": 05 is not a whole number' QUALITIES=05
refused "DEVICE is \"none\": there is no device 'none'" DEVICE=none
refused 'DEVICE is "ref:1": there is one device ref' DEVICE=ref:1
refused 'ARCHS is "convnet resnet51": ' ARCHS='convnet resnet51'
for flags in TRANSCODE_FLAGS QUALITY_FLAGS LOAD_FLAGS TRAIN_FLAGS REPORT_FLAGS; do
    refused "$flags is \"--no-such-option\"" $flags=--no-such-option
done
refused 'TRAIN_FLAGS is "--warmup 9"' TRAIN_FLAGS='--warmup 9'
refused 'TRAIN_FLAGS is "--crop-area 2,3"' TRAIN_FLAGS='--crop-area 2,3'
expect 0 planned OUT=unmade ARCHS="$("$builddir/dl2-train" --list archs | awk -F '\t' '$6 != "volume" { print $1 }' | paste -sd ' ')" \
    IMAGE_SIZE=64
if [ "$(dl2-train --device cuda --list devices 2>/dev/null | cut -f 3)" != usable ]; then
    refused 'DEVICE is "cuda": ' DEVICE=cuda
fi

echo mine >file
refused 'OUT is "file": it is a file' OUT=file

# ---- OUT and DATASET apart, whatever way they are named
ln -s data link
mkdir -p outside
for out in data/study data/train/study link/study data/../data/new/study "$work/data/study" data; do
    refused 'OUT is "'"$out"'": it lies in DATASET, "data"' OUT="$out"
    [ "$out" = data ] || [ ! -e "$out" ] || fail "made $out"
done
ln -s "$work/data/val" outside/way-in
refused 'it lies in DATASET' OUT=outside/way-in/study
refused 'DATASET is "data": it lies in OUT' OUT=.
refused 'DATASET is "link": it lies in OUT' OUT=. DATASET=link
cp -R data variant && echo '{"schema": "dl2-variant/1", "complete": false}' >variant/dl2-variant.json || exit 99
refused 'DATASET is "variant": it is a variant that is not finished' DATASET=variant
(cd data && expect 2 study DATASET=. OUT=study && said 'lies in DATASET') || exit 1
[ -z "$(find data -name '.make')" ] || fail "something was made in DATASET"

# ---- Options of one codec among others, some of which have no qualities, or have their variants already
expect 0 study CODECS='jpeg png' QUALITIES=50 TRANSCODE_FLAGS=--restart=none OUT=sets variants
expect 0 study CODECS='jpeg png' QUALITIES='50 60' TRANSCODE_FLAGS=--restart=none OUT=sets variants
is "$(cd sets/variants && echo *)" 'jpeg-50 jpeg-60 png' 'variants of two codecs'
rm -r sets/variants/png
expect 0 study CODECS='jpeg png' QUALITIES='50 60' TRANSCODE_FLAGS=--restart=none OUT=sets variants

# ---- A training that fails is no success, whatever an earlier one has left
programs=$work/programs
mkdir "$programs"
for program in dl2-study dl2-transcode dl2-quality dl2-load dl2-train dl2-report; do
    ln -s "$builddir/$program" "$programs/$program"
done
# instead PROGRAM: what is on standard input in its place, but to check options
instead() {
    rm "$programs/$1"
    { printf '#!/bin/sh\nfor word in "$@"; do case $word in --list | --help) exec %s "$@"; esac; done\n' \
        "$builddir/$1" && cat; } >"$programs/$1"
    chmod +x "$programs/$1"
}
again() { rm "$programs/$1" && ln -s "$builddir/$1" "$programs/$1"; }
expect 0 study QUALITIES=50
cp results/report/report.html good.html
for how in 'exit 1' 'echo No space left on device >&2; exit 1' 'exit 0'; do
    echo "$how" | instead dl2-train
    expect 1 study QUALITIES=50 EPOCHS=2 PROGRAMS="$programs"
    said 'Training raw/convnet/seed-1 failed'
    ! grep -q 'Trained raw/convnet' "$work/out" || fail "a training that did nothing is called trained"
    cmp -s good.html results/report/report.html || fail "a report of trainings that failed"
done
# The others go on, and the end lists what failed; the same command trains that alone.
instead dl2-train <<END
case "\$*" in *train/raw/convnet/seed-1*) echo no room left >&2; exit 1 ;; esac
exec "$builddir/dl2-train" "\$@"
END
expect 1 study QUALITIES=50 EPOCHS=3 PROGRAMS="$programs"
is "$(sed -n 's/^Trained \([^:]*\):.*/\1/p' "$work/out" | sort | paste -sd ' ')" \
    'jpeg-50/convnet/seed-1 jpeg-50/convnet/seed-2 raw/convnet/seed-2' "trainings beside one that failed"
said 'no room left'
said '1 step failed:'
said '  train/raw/convnet/seed-1, which was to make results/train/raw/convnet/seed-1/experiment_report.json; see results/train/raw/convnet/seed-1/log'
said '1 other that needs their results was not done, such as the report'
cmp -s good.html results/report/report.html || fail "a report of trainings one of which failed"
expect 0 study QUALITIES=50 EPOCHS=3
is "$(sed -n 's/^Trained \([^:]*\):.*/\1/p' "$work/out")" raw/convnet/seed-1 "what is trained again"
again dl2-train
expect 0 study QUALITIES=50 EPOCHS=2
[ "$(grep -c '"lr":' results/train/raw/convnet/seed-1/experiment_report.json)" -ge 2 ] || fail "not trained again"
grep -q 'EPOCHS=2' results/report/report.html || fail "no new report"

# ---- RETRIES and TRAIN_LIMIT: one that fails once is tried again, one that hangs is ended, and both are said with the reason
instead dl2-train <<END
case "\$*" in
*train/raw/convnet/seed-1*) [ -e flaky ] || { touch flaky; exit 3; } ;;
*train/raw/convnet/seed-2*) sleep 1000 & wait ;;
esac
exec "$builddir/dl2-train" "\$@"
END
expect 1 study OUT=retried QUALITIES=50 TRAIN_ON= PROGRAMS="$programs" RETRIES=1 TRAIN_LIMIT=9s train
for line in 'Training raw/convnet/seed-1 again: it exited with status 3' \
    'Training raw/convnet/seed-2 again: it was ended after TRAIN_LIMIT, 9 s'; do
    is "$(grep -cxF "$line" "$work/out")" 1 "lines '$line'"
done
is "$(sed -n 's/^Trained \([^:]*\):.*/\1/p' "$work/out")" raw/convnet/seed-1 "what is trained by the second attempt"
said 'Training raw/convnet/seed-2 failed: it was ended after TRAIN_LIMIT, 9 s'
again dl2-train

# ---- TRAINERS trainings at once, and no more than make's -j allows; what measures has the machine to itself
instead dl2-train <<END
what=training
case " \$* " in *' measure '*) what=alone ;; esac
echo "\$what +1" >>at-once
for try in \$(seq 100); do # until as many have begun as are to run at once
    [ \$what = alone ] || [ "\$(grep -c 'training +' at-once)" -ge "\$(cat together)" ] && break
    sleep 0.1
done
"$builddir/dl2-train" "\$@"
status=\$?
echo "\$what -1" >>at-once
exit \$status
END
at_once() { # NUMBER VARIABLE...
    echo "$1" >together
    rm -rf at-once parallel/train parallel/throughput
    shift
    expect 0 study OUT=parallel QUALITIES=50 SEEDS='1 2 3' JOBS=3 ROUNDS=1 PROGRAMS="$programs" throughput train "$@"
    is "$(awk '{ n += $2; if (n > most) most = n } END { print most, NR }' at-once)" "$(cat together) 16" "the most at once, and lines"
    is "$(grep -n alone at-once | paste -sd ' ')" '1:alone +1 2:alone -1 3:alone +1 4:alone -1' "measurements, which come first"
}
at_once 3
at_once 2 TRAINERS=2
at_once 1 MAKEFLAGS=' -j1 --jobserver-auth=3,4'
said 'make -j1 lets 1 of 3 trainings run at once'
again dl2-train

# ---- A class that is renamed, and images that are deleted, are so in the variants
images() { sed -n 's/^  "images": \([0-9]*\),$/\1/p' "results/variants/jpeg-50/dl2-variant.json"; }
sleep 0.05
mv data/train/fine data/train/finest && mv data/val/fine data/val/finest
rm data/train/coarse/1.png data/val/coarse/2.png
expect 0 study QUALITIES=50 EPOCHS=2
[ ! -e results/variants/jpeg-50/train/fine ] && [ -f results/variants/jpeg-50/train/finest/1.jpg ] ||
    fail "the variant has another class"
[ "$(images) $(find results/variants/jpeg-50 -name '*.jpg' | wc -l)" = '30 30' ] || fail "deleted images stayed"
grep -A 1 '"extra"' results/quality/jpeg-50.json | grep -q '/' && fail "images without original were left to score"
grep -q finest results/train/raw/convnet/seed-1/experiment_report.json || grep -q '"classes": 2' \
    results/train/raw/convnet/seed-1/experiment_report.json || fail "not trained on two classes"

# ---- A transcode that fails as a whole makes nothing up to date, and is tried again until it works
sleep 0.05
cp data/train/finest/1.png data/train/finest/new.png
ln -s .. data/train/finest/loop
for n in 1 2; do
    expect 1 study QUALITIES=50 variants
    said 'data/train/finest/loop: a symbolic link leads back'
    said 'jpeg-50 could not be made'
done
# Gone without a trace in the times of what is looked at.
rm data/train/finest/loop
touch -d '2001-01-01' data/train/finest
expect 0 study QUALITIES=50 variants
[ -f results/variants/jpeg-50/train/finest/new.jpg ] || fail "what a failed run left out was never made"
if [ "$(id -u)" -ne 0 ]; then
    sleep 0.05
    mkdir data/train/third data/val/third
    cp data/train/finest/1.png data/train/third/
    cp data/train/finest/2.png data/val/third/
    chmod 000 data/train/third
    for n in 1 2; do
        expect 1 study QUALITIES=50 variants
        said "data/train/third/: can't be opened: Permission denied"
    done
    chmod 755 data/train/third
    expect 0 study QUALITIES=50 variants
    [ -f results/variants/jpeg-50/train/third/1.jpg ] || fail "a class that can be read again was never made"
fi

# ---- An image that could not be read is looked at again once it was touched in any way
good=data/train/finest/new.png
printf 'not an image' >data/train/finest/odd.png
touch -d '2001-01-01' data/train/finest/odd.png
expect 0 study QUALITIES=50 variants
[ ! -e results/variants/jpeg-50/train/finest/odd.jpg ] || fail "an image out of nothing"
sleep 0.05
cat "$good" >data/train/finest/odd.png
touch -d '2001-01-01' data/train/finest/odd.png # what is left is the time of the change, as after chmod
expect 0 study QUALITIES=50 variants
[ -f results/variants/jpeg-50/train/finest/odd.jpg ] || fail "an image that can be read again was never made"

# ---- Packed and back
for container in tar gulp folder; do
    expect 0 study OUT=packed QUALITIES=50 TRANSCODE_FLAGS=--container=$container quality
done
for flags in '' '--container tar' '--cont=gulp' '' --container=gulp --subsampling=444; do
    expect 0 study OUT=packed QUALITIES=50 TRANSCODE_FLAGS="$flags" quality
    case $flags in *tar) want='train val dl2-index.bin' ;; *gulp) want='train val dl2-index.bin' ;; *) want='train val' ;; esac
    for name in $want; do
        [ -e packed/variants/jpeg-50/$name ] || fail "$flags: no $name"
    done
    case $flags in *tar | *gulp) ;; *)
        [ ! -e packed/variants/jpeg-50/dl2-index.bin ] && [ -f packed/variants/jpeg-50/train/finest/1.jpg ] ||
            fail "$flags: not a folder of images again" ;;
    esac
done

expect 0 study OUT=packed QUALITIES=50 TRANSCODE_FLAGS=--container=tar variants
sleep 0.05
rm data/train/finest/odd.png
expect 0 study OUT=packed QUALITIES=50 TRANSCODE_FLAGS=--container=tar variants
grep -q "\"images\": $(find data -name '*.png' | wc -l)," packed/variants/jpeg-50/dl2-variant.json ||
    fail "a deleted image stayed in the shards"

# ---- Two runs in one OUT: the second is told, and nothing is left of one that was killed
cat <<END | instead dl2-quality
touch "$work/started"
until [ -e "$work/go" ]; do sleep 0.05; done
exec "$builddir/dl2-quality" "\$@"
END
study QUALITIES='10 50' PROGRAMS="$programs" quality >first.out 2>first.err &
first=$!
until [ -e started ]; do
    kill -0 $first 2>/dev/null || { cat first.err; fail "the first of two runs has ended"; }
    sleep 0.05
done
for goal in report variants clean-study; do
    expect 2 timeout 60 dl2-study run --dataset data --out ./results --codecs jpeg --qualities 50 $goal
    said 'is at work in ./results'
done
expect 0 study QUALITIES=50 OUT=elsewhere variants
touch go
wait $first || { cat first.err; fail "the first of two runs has failed"; }
[ -f results/quality/jpeg-10.json ] || fail "the first of two runs has made nothing"
again dl2-quality
expect 0 study QUALITIES=50 quality

# ---- Installed, where a blank is in the path of the programs
tools="$work/a  folder/with'quote"
mkdir -p "$tools/share/dl2" "$tools/bin"
cp "$srcdir"/study/*.sh "$srcdir/study/packages.txt" "$tools/share/dl2/"
ln -s "$builddir"/dl2-* "$tools/bin/"
rm "$tools/bin/dl2-study" && cp "$builddir/dl2-study" "$tools/bin/" || exit 99
expect 0 "$tools/bin/dl2-study" run --dataset data --out blank --codecs jpeg --qualities '50 60' --epochs 1 --archs convnet --seeds 1 \
    --image-size 8 --batch 8 --jobs 2 --rounds 1 --measure 0.05 --train-flags '--crop-area  0.5,1'
grep -qF "$tools/bin/dl2-transcode" blank/study-plan.json || fail "the programs beside dl2-study are not used"

# ---- "To make it again" is right from anywhere, and in a checkout from its root
command=$(made_again blank/report/report.html)
case $command in "dl2-study run study --dataset=$work/data --out=$work/blank "*" --train-flags=\"--crop-area  0.5,1\"") ;;
*) fail "the command: $command" ;; esac
(cd / && up_to_date "$command --programs='$(printf %s "$tools" | sed "s/'/'\\\\''/")/bin' --jobs=2") || exit 1
# A checkout, as far as this goes.
mkdir -p checkout/below checkout/study checkout/photos
cp "$srcdir"/study/*.* checkout/study/
cp -R data/train data/val checkout/photos/
(cd checkout/below && expect 0 dl2-study run --checkout .. --dataset ../photos --out 'a $out' --codecs jpeg --qualities 50 --epochs 1 \
    --archs convnet --seeds 1 --image-size 8 --batch 8 --jobs 2 --rounds 1 --measure 0.05) || exit 1
command=$(made_again 'checkout/below/a $out/report/report.html')
case $command in "make study DATASET=photos OUT='below/a \$\$out' "*) ;; *) fail "paths from the checkout: $command" ;; esac
(cd checkout && up_to_date "$command JOBS=2 --checkout=.") || exit 1

# ---- clean-study takes what is the study's, and leaves what is not
echo mine >results/notes.txt
expect 0 study clean-study
[ "$(ls -A results)" = notes.txt ] || fail "clean-study: $(ls -A results)"
expect 0 study OUT=packed clean-study
[ ! -e packed ] || fail "clean-study left $(ls -A packed)"
exit 0
