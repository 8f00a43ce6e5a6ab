#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# SIGKILL of parts and of ranks of dl2-transcode at random moments: the rerun makes what no journal names and nothing
# else, and ends with the bytes of an undisturbed run: nothing is lost, nothing is there twice.
#
#     KILLS=100 make check TESTS=tests/transcode/parts_kill.sh
[ ! -w /dev/shm ] || TMPDIR=/dev/shm
. "$srcdir/tests/lib.sh"
grep -q 'define HAVE_JPEG 1' "$builddir/config.h" || skip "this build has no JPEG"
kills=${KILLS:-8} images=300
slow && kills=${KILLS:-4} images=80
"$builddir/tests/transcode/images" tree "$work/src" $images || exit 99
now() { date +%s%N; }
# A sanitizer's search for leaks is a child too, and one that must not be killed.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
options() { echo --quiet -j 1 --codec jpeg,ppm --q 50 --resize-shorter 32,full --container "$1"; }
for container in folder tar; do
    start=$(now)
    dl2-transcode $(options $container) --ranks 2 "$work/src" "$work/good-$container" >/dev/null || fail 'an undisturbed run'
    took=$((($(now) - start) / 1000)) # microseconds
done
# draw N: a number from 0 to N - 1 in $drawn.
seed=${SEED:-1}
draw() { seed=$(((seed * 1103515245 + 12345) % 2147483648)); drawn=$((seed / 65536 % $1)); }
# noted DEST: images of jpeg-50 that journals name, each once. A line without its end is none.
noted() {
    for journal in "$1"/jpeg-50/.dl2-variant.journal*; do
        [ ! -e "$journal" ] || { cat "$journal"; echo '#'; }
    done | sed -n 's/^{"key":"\([^"]*\)".*}$/\1/p' | sort -u | wc -l
}
struck=0 saved=0 cut=0
for round in $(seq "$kills"); do
    container=folder
    [ $((round % 2)) -eq 0 ] || container=tar
    dest=$work/victim
    options=$(options $container) # here, or the shell that puts it together would be one of the children
    rm -rf "$dest"
    case $((round / 2 % 2)) in
    0) # Ranks: one of them, or the process that started them.
        dl2-transcode $options --ranks 2 "$work/src" "$dest" >/dev/null 2>"$work/err" &
        pid=$!
        draw 32768; sleep "$(awk -v d=$drawn -v t="$took" 'BEGIN { printf "%.4f", d / 32768 * t / 1e6 }')"
        victims="$pid $(cat /proc/$pid/task/*/children 2>/dev/null)"
        draw 3; victim=$(echo $victims | cut -d ' ' -f $((drawn + 1)))
        kill -9 ${victim:-$pid} 2>/dev/null && struck=$((struck + 1))
        if ! wait $pid && [ "${victim:-$pid}" != "$pid" ]; then
            grep -q 'was killed by signal 9' "$work/err" || { cat "$work/err" >&2; fail 'a killed rank is not named'; }
        fi
        for rank in ${victims#"$pid"}; do # they end with the one that started them, a little later
            while kill -0 "$rank" 2>/dev/null; do sleep 0.02; done
        done ;;
    1) # Three parts, of which one or two are killed; the third may or may not see that it is not the last.
        pids=
        for part in 1 2 3; do
            dl2-transcode $options --part $part/3 "$work/src" "$dest" >"$work/out.$part" 2>&1 &
            pids="$pids $!"
        done
        draw 2
        for victim in $(echo $pids | cut -d ' ' -f 1-$((drawn + 1))); do
            draw 32768; sleep "$(awk -v d=$drawn -v t="$took" 'BEGIN { printf "%.4f", d / 32768 * t / 1e6 / 2 }')"
            kill -9 $victim 2>/dev/null && struck=$((struck + 1))
        done
        for pid in $pids; do wait $pid; done ;;
    esac
    complete=no
    grep -q '"complete": true' "$dest"/jpeg-50/dl2-variant.json 2>/dev/null && complete=yes
    had=$(noted "$dest")
    # Half of the reruns are the parts once more, the other half the command without parts.
    draw 2
    if [ $drawn -eq 0 ] && [ $((round / 2 % 2)) -eq 1 ]; then
        total=0
        for part in 1 2 3; do
            dl2-transcode $options --part $part/3 "$work/src" "$dest" >"$work/out" 2>"$work/err" ||
                { cat "$work/err" >&2; fail 'a part once more'; }
            total=$((total + $(awk '$1 == "jpeg-50" { print $3 }' "$work/out")))
        done
        grep -q 'the variants are complete' "$work/out" || fail "not complete after all parts: $(cat "$work/out")"
    else
        dl2-transcode $options "$work/src" "$dest" >"$work/out" 2>"$work/err" ||
            { cat "$work/err" >&2; fail 'the rerun'; }
        total=$(awk '$1 == "jpeg-50" { print $3 }' "$work/out")
    fi
    if [ $complete = no ]; then
        is "$total" $((images - had)) "images made again in round $round ($container)"
        cut=$((cut + 1))
        [ "$had" -eq 0 ] || saved=$((saved + 1))
    fi
    diff -rq -x 'dl2-variant.json*' -x dl2-index.bin -x .dl2-transcode.lock "$work/good-$container" "$dest" ||
        fail "other bytes after a kill, round $round"
    for variant in "$dest"/*; do
        is "$(sed -n 's/^{"key":"\([^"]*\)".*}$/\1/p' "$variant/dl2-variant.jsonl" | sort -u | wc -l) $(wc -l <"$variant/dl2-variant.jsonl")" \
            "$images $images" "lines of $variant"
        expect 0 dl2-transcode identify "$variant"
        is "$(sed -n 's/^images	//p' "$work/out") $(grep -c complete "$work/out")" "$images 0" "images of $variant"
    done
    [ -z "$(find "$dest" -name '*.dl2-tmp' -o -name '.dl2-variant.*' -o -name '.dl2-transcode.part*' -o -name .dl2-unfinished)" ] ||
        fail "left over: $(find "$dest" -name '.*')"
done
echo "$struck kills in $kills rounds; $cut runs were cut short, of which $saved had noted something"
[ "$cut" -ge 1 ] || fail 'no run was cut short'
