# SPDX-License-Identifier: BSD-2-Clause
# Sourced by the study's tests after tests/lib.sh: a tiny dataset in $work/data, and the study of it.
for convert in /usr/bin/convert convert none; do
    "$convert" -version 2>/dev/null | grep -q ImageMagick && break
done
[ "$convert" != none ] || skip "ImageMagick is not installed (Debian: imagemagick)"
for program in dl2-study dl2-transcode dl2-quality dl2-load dl2-train dl2-report; do
    [ -x "$builddir/$program" ] || fail "$program is not built"
done
"$builddir/dl2-transcode" --version | grep -q '^  jpeg:' || skip "this build can't write JPEG (Debian: libjpeg62-turbo-dev)"
"$builddir/dl2-transcode" --version | grep -q '^  png:' || skip "this build can't read PNG (Debian: libpng-dev)"

# Two classes of noise, of two sizes so that they differ.
cd "$work" || exit 99
for split in train val; do
    for class in fine coarse; do
        mkdir -p "data/$split/$class"
        for i in 1 2 3 4 5 6 7 8; do
            [ $class = fine ] && size=40x40 || size=10x10
            "$convert" -size $size -seed "$i" xc:gray +noise Random -scale 40x40! -depth 8 \
                "PNG24:data/$split/$class/$i.png" || fail "convert"
        done
    done
done

# MAKEFLAGS of the make that runs this test isn't the study's.
unset MAKEFLAGS MFLAGS MAKELEVEL
unset DATASET OUT VARIANTS CODECS EXTERNAL QUALITIES TRAIN_ON ARCHS EPOCHS SEEDS DECIDE FORECAST TIMELINE BUDGET BUDGETS REGIMENS TUNING RESIZE_SHORTER CONTROL TABLES ENGINE ROUNDS \
    MEASURE WORKERS STORAGES CACHES GROUP IMAGE_SIZE BATCH DEVICE JOBS TRAINERS TRAIN_WITH RESULT TRAIN_FILES SENSITIVITY_WITH TRAIN_LIMIT ENCODE_LIMIT RETRIES GPUS GPUS_EACH EVALUATE_WITH WEIGHTS
# dl2_study COMMAND [WORD|VARIABLE=VALUE]...: as make in a checkout runs it, with the variables in the environment
dl2_study() (
    command=$1
    shift
    for word; do
        shift
        case $word in [A-Z]*=*) export "${word?}" ;; *) set -- "$@" "$word" ;; esac
    done
    exec dl2-study "$command" --checkout "$srcdir" "$@"
)
tiny() { # COMMAND...
    command=$1
    shift
    dl2_study "$command" DATASET=data OUT=results CODECS=jpeg ARCHS=convnet EPOCHS=1 SEEDS='1 2' IMAGE_SIZE=8 BATCH=8 JOBS=2 ROUNDS=2 \
        MEASURE=0.05 "$@"
}
study() { tiny run "$@"; }
planned() { tiny plan "$@"; }
# made_again PAGE: how the report says that it is made
made_again() {
    page_text "$1" | grep '^make \|^dl2-study run '
}
# up_to_date COMMAND: nothing is to be done for what the command makes; make takes two dollars for one
up_to_date() {
    given=$1
    case $given in make*) given=$(printf '%s\n' "$given" | sed 's/\$\$/$/g') ;; esac
    eval "set -- ${given#* }"
    [ "$1" != run ] || shift
    expect 0 dl2_study plan "$@"
    grep -q '^[0-9]* steps, 0 to be done$' "$work/out" || { cat "$work/out" >&2; fail "something is to be done: $given"; }
}
# as_from_files NAME...: results/ has the trainings of a study of the folder, on each of these.
as_from_files() {
    study QUALITIES=10 OUT=folders SEEDS=1 train >folders.out 2>&1 || { cat folders.out; fail "a study of the folder"; }
    for name in "$@"; do
        for out in results folders; do
            grep -E '"(top1|loss|train_images|val_images|train_bytes)":' $out/train/$name/convnet/seed-1/experiment_report.json >$out.figures
        done
        diff folders.figures results.figures || fail "trainings on $name differ from those on files"
    done
}
# What is wrong is told before anything is made.
refused() { # TEXT VARIABLE=VALUE...
    expected=$1
    shift
    expect 2 study OUT=none "$@"
    said "$expected"
    [ ! -e none ] || fail "refused after work had begun: $*"
}
