#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: check.sh VARIABLE=VALUE...
#
# Prints one line that says what is wrong with the variables of study.mk, and nothing where they are
# right. The programs know names and ranges: each is run with the options that the study will pass,
# and with --list or --help, which ends it once the options are checked.
set -uf

for pair in "$@"; do export "${pair?}"; done
wrong() { echo "$*"; exit 1; }
value() { eval "printf %s \"\$$1\""; }

for name in CODECS QUALITIES ARCHS SEEDS ${WORKERS+WORKERS STORAGES CACHES}; do
    set -- $(value $name)
    [ $# -gt 0 ] || wrong "$name is empty"
    while [ $# -gt 1 ]; do
        word=$1
        shift
        case " $* " in *" $word "*) wrong "$name names $word twice" ;; esac
    done
done
for name in EPOCHS IMAGE_SIZE BATCH DEVICE JOBS TRAINERS TOLERANCE ROUNDS MEASURE; do
    set -- $(value $name)
    [ $# -eq 1 ] || wrong "$name is \"$(value $name)\": one value is expected"
done
for name in QUALITIES SEEDS JOBS TRAINERS ROUNDS BATCH IMAGE_SIZE ${WORKERS+WORKERS CACHES}; do
    for number in $(value $name); do
        case $number in *[!0-9]* | 0?*)
            wrong "$name is \"$(value $name)\": $number is not a whole number, or has zeros in front" ;;
        esac
    done
done
for name in JOBS TRAINERS ROUNDS; do
    [ "$(value $name)" != 0 ] || wrong "$name is 0: it must be 1 at least"
done
for storage in ${STORAGES-}; do
    [ "$storage" = memory ] || [ "$storage" = disk ] || wrong "STORAGES names $storage: memory and disk are known"
done
[ -z "$DECIDE" ] || [ "$DECIDE" = yes ] || wrong "DECIDE is \"$DECIDE\": it is yes, or not there"
[ -z "$FORECAST" ] || { [ "$FORECAST" = yes ] && [ "$DECIDE$DECIDER" ]; } ||
    wrong "FORECAST is \"$FORECAST\": it is yes, together with DECIDE=yes, or not there"
[ -z "$DECIDE" ] || [ $(echo $SEEDS | wc -w) -ge 2 ] || wrong "SEEDS is \"$SEEDS\": DECIDE begins with two"
for name in BUDGET BUDGETS; do
    for time in $(value $name); do
        case ${time%[smh]} in $time | *[!0-9]* | 0* | '')
            wrong "$name is \"$(value $name)\": $time is no time such as 90s, 30m or 2h" ;;
        esac
    done
done
[ $(echo $BUDGET | wc -w) -le 1 ] || wrong "BUDGET is \"$BUDGET\": one value is expected"

program() { printf %s "${PROGRAMS:+$PROGRAMS/}$1"; }
# ask VARIABLE PROGRAM ARGUMENT...: a complaint about any other option than those below is VARIABLE's
ask() {
    flags=$1 asked=$2
    shift 2
    answer=$("$(program "$asked")" "$@" 2>&1 >/dev/null </dev/null) && return
    answer=$(printf '%s\n' "$answer" | head -n 1)
    for pair in codec:CODECS q:QUALITIES jobs:JOBS threads:JOBS image-size:IMAGE_SIZE batch:BATCH \
        seed:SEEDS epochs:EPOCHS device:DEVICE tolerance:TOLERANCE group:GROUP measure:MEASURE; do
        case $answer in *": --${pair%:*}: "*)
            wrong "${pair#*:} is \"$(value "${pair#*:}")\": ${answer#*": --${pair%:*}: "}" ;;
        esac
    done
    wrong "$flags is \"$(value "$flags")\": $answer"
}

[ -z "$EXTERNAL" ] || answer=$("$(program dl2-transcode)" --codec "$EXTERNAL" --list codecs 2>&1 >/dev/null) ||
    wrong "EXTERNAL is \"$EXTERNAL\": $(printf '%s\n' "${answer#*--codec: }" | head -n 1)"

comma() { echo "$*" | tr -s ' ' ,; }
lossy=$("$(program dl2-transcode)" --list codecs | awk '$2 == "lossy" { print $1 }')
qualities=
for codec in $CODECS; do
    case " $(echo $lossy) " in *" $codec "*) qualities="--q $(comma $QUALITIES)" ;; esac
done
case $EXTERNAL in *%q*) qualities="--q $(comma $QUALITIES)" ;; esac
codecs=$(comma $CODECS)${EXTERNAL:+,$EXTERNAL}
eval "ask TRANSCODE_FLAGS dl2-transcode -j $JOBS --codec \"\$codecs\" $qualities $TRANSCODE_FLAGS --list codecs"
eval "ask QUALITY_FLAGS dl2-quality -j $JOBS $QUALITY_FLAGS --help"
eval "ask LOAD_FLAGS dl2-load -j $JOBS --image-size $IMAGE_SIZE --batch $BATCH --measure $MEASURE $LOAD_FLAGS --help"
[ "$GROUP" = survey ] && group= || group=$GROUP # the survey's file comes later
eval "ask REPORT_FLAGS dl2-report --tolerance $TOLERANCE ${group:+--group \"\$group\"} $REPORT_FLAGS --help"
archs=$("$(program dl2-train)" --list archs | cut -f 1)
for arch in $ARCHS; do
    printf '%s\n' "$archs" | grep -qxF -e "$arch" ||
        wrong "ARCHS names $arch, which 'dl2-train --list archs' does not name"
    set -- -j "$JOBS" --image-size "$IMAGE_SIZE" --batch "$BATCH" --epochs "$EPOCHS" \
        --device "$DEVICE" --data "$DATA" --arch "$arch"
    for seed in $SEEDS; do set -- "$@" --seed "$seed"; done
    eval "ask TRAIN_FLAGS dl2-train \"\$@\" $TRAIN_FLAGS --list archs"
done
for regimen in $REGIMENS; do
    stages=
    for stage in $(printf '%s\n' "$regimen" | tr , ' '); do stages="${stages:+$stages,}$DATA:${stage#*:}"; done
    eval "ask REGIMENS dl2-train --stages \"\$stages\" --batch $BATCH $TRAIN_FLAGS --list archs"
done
[ "$DEVICE" = auto ] || {
    eval "set -- --device \"\$DEVICE\" $TRAIN_FLAGS --list devices"
    state=$("$(program dl2-train)" "$@" | cut -f 3)
    [ "$state" = usable ] || wrong "DEVICE is \"$DEVICE\": $state"
}
exit 0
