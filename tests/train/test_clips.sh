# SPDX-License-Identifier: BSD-2-Clause
# Networks that see clips: they learn what no single frame tells, go on from a checkpoint, and refuse images.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"
make_clips() { "$builddir/tests/train/make_clips" "$@" || exit 99; }
refused() { grep -q -e "$1" "$work/err" || fail "no '$1' in: $(cat "$work/err")"; }
# The last of a report.
top1() { sed -n 's/^ *"top1": \([0-9.]*\).*/\1/p' "$1" | tail -n 1; }
clips="-a convcolumn --frames 8 --image-size 16 --no-flip --threads 2"

# Four directions, which no frame tells: chance is 0.25.
if ! slow; then
    make_clips shapes 24 8 8 16
    expect 0 run -d shapes $clips -e 6 --validate-every 0 --out learned
    awk -v a="$(top1 learned/$REPORT)" 'BEGIN { exit !(a >= 0.8) }' || fail "$(cat learned/$REPORT)"
    # Its own settings come with the weights.
    expect 0 dl2-train --quiet evaluate learned/$CK --val shapes --out evaluated
    [ "$(top1 evaluated/evaluation_report.json)" = "$(top1 learned/$REPORT)" ] || fail "$(cat evaluated/evaluation_report.json)"
fi

# The report has the frames; a run in two parts, with other workers, from another container, is the same run.
make_clips few 4 2 10 18
few="$clips -e 2 --frame-sampling random --cutmix 1"
expect 0 run -d few $few --frame-step 1 --out one
[ "$(field one/$REPORT frames)" = 8 ] || fail "the report has no frames: $(cat one/$REPORT)"
[ "$(field one/$REPORT frame-sampling)" = random ] || fail "the report has no sampling: $(cat one/$REPORT)"
expect 0 run -d few $few --frame-step 1 --run-epochs 1 --out parts
expect 0 run -d few $few --frame-step 1 -j 1 --resume --out parts
same one/$CK parts/$CK "a run in two parts"
# Folders of frames anywhere, with lists of their labels, are the same clips.
for clip in few/*/*/*; do
    split=${clip#few/} split=${split%%/*} class=${clip%/*} class=${class##*/}
    mkdir -p "ids/$class" && cp -r "$clip" "ids/$class/$split-$class-${clip##*/}" || exit 99
    echo "$split-$class-${clip##*/};$class" >>$split.csv
done
rm -rf by-id && mkdir by-id && mv ids/*/* by-id
lists="train=train.csv,val=val.csv"
expect 0 run -d by-id --labels $lists $few --frame-step 1 --out listed
same one/$CK listed/$CK "clips that lists name"
expect 0 dl2-train --quiet evaluate one/$CK --val by-id --labels val=val.csv --val-split val --out by-list
[ "$(top1 by-list/evaluation_report.json)" = "$(top1 one/$REPORT)" ] || fail "$(cat by-list/evaluation_report.json)"
expect 2 run -d few --val by-id --labels $lists $clips --out none
refused "--labels is for one dataset, whose samples its lists name"
expect 0 dl2-load bench --quiet --digest -e 2 -j 1 --frames 8 -i 16 few
digest=$(grep '^digest' "$work/out")
expect 0 dl2-load bench --quiet --digest -e 2 -j 1 --frames 8 -i 16 --labels $lists by-id
[ "$digest" = "$(grep '^digest' "$work/out")" ] || fail "lists load other clips"
expect 0 dl2-transcode --quiet copy --container=gulp few few-gulp
expect 0 run -d few-gulp $few --frame-step 1 --out gulp
same one/$CK gulp/$CK "clips of a folder and of GulpIO"
expect 0 run -d few $clips -e 2 --cutmix 1 --frame-sampling uniform --skip-validation --out uniform
differ one/$CK uniform/$CK "--frame-sampling"

# Clips that are too short are counted.
expect 0 dl2-train -d few $clips -b 8 -e 1 --frame-step 2 --skip-validation --out short
said 'few: 16 of 16 clips have fewer frames than the 15 that --frames reaches over'
grep -q ' clips/s, ' "$work/out" || fail "no rate of clips: $(cat "$work/out")"

# One frame of a clip is an image; other networks, data and options are refused by name.
expect 0 run -d few --frames 1 -e 1 --out frame
expect 1 run -d few --out bad
refused 'few: it holds clips, and convnet sees single images'
make_images data 3 8 4 12
expect 1 run -d data -a convcolumn --out bad
refused 'data: it holds images, and convcolumn sees clips'
expect 1 run -d few $clips --frames 7 --out bad
refused 'clips of 7 frames of 16x16 are too small for convcolumn'
expect 2 run -d few --frames 2 --out bad
refused '--frames 2: convnet sees single images'
expect 2 run -d few $clips --cache-decoded 1M --out bad
expect 2 dl2-train --quiet evaluate one/$CK --val few --sensitivity out.json --out bad
refused '--sensitivity is for networks that see images'

# Noise has clips, too.
synthetic="--loader synthetic --images 8 --classes 3 -e 1"
expect 0 run $synthetic -a r3d_18 --frames 2 --image-size 8 --out noise
expect 2 run $synthetic --frames 1 --out bad
expect 2 run $synthetic $clips --frame-step 2 --out bad
