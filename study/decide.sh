#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: decide.sh train|matrix|report MAKE...
#
# Trains from the first two seeds, then from more where the verdict is open, until none is, no seed is
# left, or BUDGET is spent; then makes the matrix or the report of them, if it is asked for. With
# FORECAST, variants that are forecast to be beyond the tolerance have to wait until all others are
# decided. MAKE... runs study.mk, which sets the variables that are used here.
set -euf

goal=$1
shift
looks=$(seq -s , 2 "$(echo $SEEDS | wc -w)")
# A look goes by the smallest seeds.
seeds=$(printf '%s\n' $SEEDS | sort -n)
case $BUDGET in
*h) budget=$((${BUDGET%h} * 3600)) ;;
*m) budget=$((${BUDGET%m} * 60)) ;;
*) budget=${BUDGET%s} ;;
esac
began=$(date +%s)
count() { echo $# | tr -d '\n'; }

# add VARIANT NETWORK COUNT: its trainings from so many seeds, to $runs
add() {
    for seed in $(printf '%s\n' $seeds | head -n "$3"); do
        case " $runs " in *" $1/$2/seed-$seed "*) ;; *) runs="$runs $1/$2/seed-$seed" ;; esac
    done
}

# add_two VARIANT...: every network's trainings from the first two seeds
add_two() {
    for variant in "$@"; do
        for arch in $ARCHS; do add "$variant" "$arch" 2; done
    done
}
# With -n and the like that make has trained nothing.
has_trained() { case ${MAKEFLAGS%% *} in -*) ;; *[nqt]*) exit 0 ;; esac; }
is_spent() { [ "$budget" ] && [ $(($(date +%s) - began)) -ge "$budget" ]; }

runs= later=
if [ "$FORECAST" ]; then
    add_two raw
    "$@" RUNS="$runs" forecast-trainings
    has_trained
    "$REPORT" --forecast --variants "$NAMES" --trainings "$runs" "$OUT" >"$OUT/.make/forecasts"
    # For no network is a loss within the tolerance in the forecast's interval.
    later=$(awk -v most="$TOLERANCE" '{ seen[$2]; if ($3 - $4 <= most) may[$2] }
        END { for (v in seen) if (!(v in may)) print v }' "$OUT/.make/forecasts" | sort)
fi
for variant in $TRAINED; do
    case " $(echo $later) " in *" $variant "*) ;; *) add_two "$variant" ;; esac
done
while :; do
    "$@" LOOKS="$looks" RUNS="$runs" train
    has_trained
    "$REPORT" --decide --interim "$looks" --tolerance "$TOLERANCE" --variants "$NAMES" \
        ${GROUPED:+--group "$GROUPED"} --trainings "$runs" "$OUT" >"$OUT/.make/decided" 2>"$OUT/.make/decide.log" || {
        cat "$OUT/.make/decide.log" >&2
        exit 1
    }
    before=$runs
    while read -r arch variant state wanted; do
        case " $TRAINED " in *" $variant "*) ;; *) continue ;; esac
        [ "$variant" = raw ] || echo "$variant, $arch: $state"
        add "$variant" "$arch" "$wanted"
    done <"$OUT/.make/decided"
    if [ "$runs" = "$before" ] && [ "$later" ] && ! is_spent; then
        echo "Next: what is forecast to lose more than $TOLERANCE: $(echo $later)"
        add_two $later
        later=
    fi
    new=$(($(count $runs) - $(count $before)))
    echo "$(count $before) trainings so far, $new to come"
    [ $new -gt 0 ] || break
    if is_spent; then
        echo "BUDGET is spent: what is open stays so"
        runs=$before
        break
    fi
done
[ -z "$later" ] || echo "Not trained, forecast to lose more than $TOLERANCE: $(echo $later)"
[ "$goal" = train ] || "$@" LOOKS="$looks" RUNS="$runs" "$goal"
