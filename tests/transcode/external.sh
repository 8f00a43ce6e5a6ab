#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# External codecs: two commands that encode, score, load and train like any other codec; what they cost, what
# goes wrong with them, and what they leave behind.
. "$srcdir/tests/lib.sh"
grep -q 'define HAVE_PNG 1' "$builddir/config.h" || skip "this build has no PNG"
images=$builddir/tests/transcode/images
TMPDIR=$work/tmp && mkdir "$TMPDIR" && export TMPDIR || exit 99
run() { # STATUS ARGUMENTS...
    status=$1
    shift
    expect "$status" dl2-transcode --quiet -j 2 "$@"
    [ -z "$(ls "$TMPDIR")" ] || fail "files are left behind: $(ls "$TMPDIR"/*)"
}
made() { awk -v v="$1" '$1 == v { print $3 }' "$work/out"; }
field() { sed -n 's/^ *"'"$2"'": "\{0,1\}\([^",]*\)"\{0,1\},\{0,1\}$/\1/p' "$work/$1/dl2-variant.json" | head -n 1; }
"$images" tree "$work/src" 20 || exit 99
script() { # NAME LINES...: a command in a file, whose path has a blank
    mkdir -p "$work/my tools" && { echo '#!/bin/sh'; cat; } >"$work/my tools/$1" && chmod +x "$work/my tools/$1" || exit 99
}

# ---- The identity: every pixel comes back, through every program and container
same='same=cp %i %o; cp %i %o'
run 0 --codec "ppm,$same" "$work/src" "$work/v"
is "$(made same) $(field v/same codec) $(field v/same quality) $(field v/same images)" '20 same null 20' 'a variant'
is "$(field v/same encode)" 'cp %i %o' 'the command on record'
grep -q '"same": ".*cp ([0-9]* bytes, modified [0-9]*)"' "$work/v/same/dl2-variant.json" || fail 'no version of the command'
is "$(field v/same bytes)" "$(find "$work/v/same" -name '*.dl2x' -exec cat {} + | wc -c)" 'bytes'
run 0 --codec "$same" --container=tar "$work/src" "$work/packed"
for variant in v/same packed/same; do
    expect 0 dl2-quality --quiet --decoder 'same=cp %i %o' --csv "$work/q.csv" "$work/src" "$work/$variant"
    is "$(grep -c ',scored,.*,1,' "$work/q.csv")" 20 "lossless images of $variant"
    expect 0 dl2-load bench --quiet -i 16 -e 1 --digest --decoder 'same=cp %i %o' "$work/$variant"
    digest=$(grep '^digest' "$work/out")
    expect 0 dl2-load bench --quiet -i 16 -e 1 --digest "$work/v/ppm"
    [ "$digest" ] && is "$digest" "$(grep '^digest' "$work/out")" "what is loaded from $variant"
done
expect 0 dl2-train --quiet -a convnet --image-size 8 -b 8 -e 1 --threads 1 --decoder 'same=cp %i %o' -d "$work/v/same" \
    --out "$work/trained"
grep -q '"completed": true' "$work/trained/experiment_report.json" || fail 'not trained'
grep -q 'same=cp %i %o' "$work/trained/experiment_report.json" || fail 'the decoder is not in the report'
run 0 copy "$work/packed/same" "$work/unpacked"
diff -r -x 'dl2-*' -x '.dl2-*' "$work/unpacked" "$work/v/same" >/dev/null || fail 'unpacked files differ'
run 0 --codec png --decoder 'same=cp %i %o' "$work/v/same" "$work/back"
(cd "$work/v/ppm" && find . -name '*.ppm') | while read -r name; do
    "$images" show "$work/back/png/${name%ppm}png" >"$work/a" && "$images" show "$work/v/ppm/$name" >"$work/b"
    cmp -s "$work/a" "$work/b" || echo "$name"
done >"$work/differ"
[ ! -s "$work/differ" ] || fail "pixels differ: $(cat "$work/differ")"
# Behind its header a file is what the encoder wrote.
file=$work/v/same/train/rose/0001.dl2x
is "$(head -c 24 "$file" | tail -c 8)" "$(printf 'same\211PNG')" 'header and file'

# ---- Without a command none is run, and the message says what to do
expect 1 dl2-load check --quiet "$work/v/same"
said "encoded by the external codec same: pass --decoder='same=COMMAND %i %o'"

# ---- A packed variant whose sources could not be decoded: each is tried again once that may help, and else not
mixed=$work/mixed/train/rose && mkdir -p "$mixed" || exit 99
cp "$work/src/train/rose/0001.ppm" "$mixed/" && cp "$work/v/same/train/rose/0003.dl2x" "$mixed/" || exit 99
script waits <<'SH'
sleep 1
cp "$1" "$2"
SH
waits="same='$work/my tools/waits' %i %o"
attempt() { # STATUS MADE OPTIONS...
    status=$1 wanted=$2
    shift 2
    run "$status" --codec ppm --container=tar "$@" "$work/mixed" "$work/cured"
    is "$(made ppm)" "$wanted" "made with $*"
}
attempt 1 1
said "pass --decoder='same=COMMAND %i %o'"
attempt 1 0
attempt 1 0 --decoder "$waits" --external-timeout 0.1
said 'was killed after 0.1 s'
grep -q 'was killed after 0.1 s' "$work/cured/ppm/dl2-variant.json" || fail 'the reason on record is an old one'
attempt 1 0 --decoder "$waits" --external-timeout 0.1
attempt 0 2 --decoder "$waits" --external-timeout 60
attempt 0 0
grep -q '"decoding"' "$work/cured/ppm/dl2-variant.json" && fail 'how failures came about, without any'
script waits <<'SH'
exit 3
SH
rm -r "$work/cured"
attempt 1 1 --decoder "$waits"
attempt 1 0 --decoder "$waits"
script waits <<'SH'
cp "$1" "$2"
SH
attempt 0 2 --decoder "$waits" # mended, by the same name

# ---- A rerun makes nothing; another command, or another encoder behind it, makes everything again
run 0 --codec "$same" "$work/src" "$work/v"
is "$(made same)" 0 'made again'
run 0 --codec 'same=cp -f %i %o; cp %i %o' "$work/src" "$work/v"
is "$(made same)" 20 'made with another command'
script encode <<'SH'
printf '%s\n' "$1" "$2" "$3" >"${0%/*}/seen"
cp "$1" "$2"
SH
mine="mine='$work/my tools/encode' %i %o q%q%%; cp %i \"%o\""
run 0 --codec "$mine" --q 7,30 "$work/src" "$work/v"
is "$(made mine-07) $(made mine-30) $(field v/mine-30 quality)" '20 20 30' 'qualities'
is "$(sed 's/.*external.[^/]*//' "$work/my tools/seen" | paste -sd ' ')" '/input.png /output.mine q30%' 'placeholders'
run 0 --codec "$mine" --q 30 "$work/src" "$work/v"
is "$(made mine-30)" 0 'made again'
touch -d 2001-01-01 "$work/my tools/encode"
run 0 --codec "$mine" --q 30 "$work/src" "$work/v"
is "$(made mine-30)" 20 'made by another encoder'

# ---- The CPU time of commands counts
script slow <<'SH'
i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done
cp "$1" "$2"
SH
run 0 --codec "slow='$work/my tools/slow' %i %o; '$work/my tools/slow' %i %o" "$work/src/val" "$work/v"
awk -v s="$(field v/slow encode_cpu_seconds)" 'BEGIN { exit !(s > 0.02) }' || fail "encoding took $(field v/slow encode_cpu_seconds) s"
expect 0 dl2-load check --quiet --decoder "slow='$work/my tools/slow' %i %o" --json "$work/check.json" "$work/v/slow"
awk '/cpu_seconds/ { exit !($2 + 0 > 0.02) }' "$work/check.json" || fail "decoding: $(grep cpu_seconds "$work/check.json")"

# ---- What goes wrong is said, with the command's last words
one=$work/one && mkdir "$one" && cp "$work/src/train/rose/0001.ppm" "$one/" || exit 99
wrong() { # MESSAGE ENCODE [OPTIONS...]
    message=$1 command=$2
    shift 2
    run 1 --codec "bad=$command; cp %i %o" "$@" "$one" "$work/bad"
    said "$message"
    [ ! -e "$work/bad/bad/0001.dl2x" ] || fail "a file although: $message"
}
script fails <<'SH'
echo first; echo 'no such luck' >&2; echo; exit 3
SH
wrong '0001.ppm: '"$work/my tools/fails"' exited with status 3: no such luck' "'$work/my tools/fails' %i %o"
emulated && reason='exited with status 127' || reason='cannot be run: No such file'
wrong "nowhere/encoder $reason" 'nowhere/encoder %i %o'
wrong 'true exited with status 0 but wrote no %o' 'true %i %o'
script dies <<'SH'
kill -9 $$
SH
wrong 'was killed by signal 9' "'$work/my tools/dies' %i %o"
# A time-out ends the command and what it has started.
gone() { ! kill -0 "$1" 2>/dev/null || grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null; }
none_left() { # WHEN: soon none of the processes that the commands named is there, and no folder
    tries=0
    while read -r pid; do
        while ! gone "$pid"; do
            [ $((tries += 1)) -lt 100 ] || fail "a process is left running $1: $(tr '\0' ' ' <"/proc/$pid/cmdline")"
            sleep 0.1
        done
    done <"$work/my tools/sleepers"
    while [ "$(ls "$TMPDIR")" ]; do
        [ $((tries += 1)) -lt 100 ] || fail "files are left $1: $(ls "$TMPDIR"/*)"
        sleep 0.1
    done
}
script hangs <<'SH'
echo $$ >"${0%/*}/sleepers"
sleep 1000 & echo $! >>"${0%/*}/sleepers"; echo waiting; wait
SH
wrong 'was killed after 0.5 s: waiting' "'$work/my tools/hangs' %i %o" --external-timeout 0.5
none_left 'after the time-out'
# What a command leaves running does not hold it up, and is ended with it; so are folders.
script leaves <<'SH'
cp "$1" "$2"; mkdir -p "${1%/*}/deep/er"; cp "$1" "${1%/*}/deep/er/"; sleep 1000 & echo $! >"${0%/*}/sleepers"
SH
start=$(date +%s)
run 0 --codec "leaves='$work/my tools/leaves' %i %o; cp %i %o" "$one" "$work/v"
[ $(($(date +%s) - start)) -lt 100 ] || fail 'waited for what a command left running'
none_left 'after a command that succeeded'
# Whatever ends the program ends its commands, with all that they have started, and removes their files.
script stays <<'SH'
mkdir "${1%/*}/deep" && cp "$1" "${1%/*}/deep/"
sleep 1000 & echo $! >>"${0%/*}/sleepers"
(trap '' HUP INT TERM; exec sleep 1000) & echo $! >>"${0%/*}/sleepers"
trap '' HUP INT TERM
echo $$ >>"${0%/*}/sleepers"
wait
SH
killed() { # SIGNAL NUMBER COMMAND...
    : >"$work/my tools/sleepers"
    signal=$1 number=$2
    shift 2
    env --default-signal "$@" >"$work/out" 2>"$work/err" &
    program=$!
    tries=0
    while [ "$(wc -l <"$work/my tools/sleepers")" -lt 6 ]; do
        [ $((tries += 1)) -lt 300 ] || { cat "$work/err" >&2; fail "the commands don't run: $*"; }
        sleep 0.1
    done
    kill "-$signal" "$program"
    wait "$program"
    is "$?" $((128 + number)) "exit status by SIG$signal"
    none_left "after SIG$signal: $1"
}
stays="'$work/my tools/stays' %i %o"
for signal in 'TERM 15' 'INT 2' 'HUP 1' 'KILL 9'; do
    # shellcheck disable=SC2086
    killed $signal dl2-transcode --quiet -j 2 --codec "stays=$stays; cp %i %o" "$work/src" "$work/killed"
done
killed TERM 15 dl2-load check --quiet -j 2 --decoder "same=$stays" "$work/v/same"
# Decoders, too; an image of another size is not believed.
decodes() { expect 1 dl2-load check --quiet --decoder "same=$1" "$work/small"; said "$2"; [ -z "$(ls "$TMPDIR")" ] || fail 'files are left'; }
run 0 --codec "$same" "$one" "$work/v1" && mv "$work/v1/same" "$work/small"
decodes "'$work/my tools/fails' %i %o" "same: $work/my tools/fails exited with status 3: no such luck"
script other <<SH
cp '$work/back/png/train/rose/0003.png' "\$2"
SH
decodes "'$work/my tools/other' %i %o" 'pixels, and the image has'
decodes 'cp /etc/passwd %o %i' 'exited with status'
script text <<'SH'
echo nothing >"$2"
SH
decodes "'$work/my tools/text' %i %o" 'same: what the decoder wrote: not an image'
# Damaged headers are refused, whatever follows.
for damage in '4 \002' '5 \002' '6 \377' '8 \0\0\0\0' '16 /'; do
    cp "$file" "$work/small/0001.dl2x"
    printf "${damage#* }" | dd of="$work/small/0001.dl2x" bs=1 seek="${damage%% *}" conv=notrunc 2>/dev/null
    expect 1 dl2-load check --quiet --decoder 'same=cp %i %o' "$work/small"
    grep -q "an external codec's file" "$work/err" || fail "damage at $damage: $(cat "$work/err")"
done

# ---- Wrong usage
for codec in 'x=cp %i %o' 'x=; cp %i %o' 'x=cp %i %o;' 'x=cp %i; cp %i %o' 'x=cp %o %i; cp %o' 'x=cp %i %o %z; cp %i %o' \
    'x=cp %i %o; cp %i %o %q' "x=cp '%i %o; cp %i %o" 'x-y=cp %i %o; cp %i %o' '=cp %i %o; cp %i %o' 'png=cp %i %o; cp %i %o'; do
    run 2 --codec "$codec" "$one" "$work/x"
done
said 'png is a codec of this build'
# A semicolon or a comma within quotes belongs to a command; outside, it ends one, and nothing that follows is swallowed.
script quoted <<'SH'
[ "$3" = 'a;b,c' ] && cp "$1" "$2"
SH
run 0 --codec "ppm,quoted='$work/my tools/quoted' %i %o 'a;b,c'; cp %i %o,png" "$one" "$work/several"
is "$(ls "$work/several" | paste -sd ' ')" 'png ppm quoted' 'codecs around an external one'
run 0 --codec 'png' --decoder "quoted=cp \"%i\" '%o'" "$work/several/quoted" "$work/several2"
while read -r message codec; do
    run 2 --codec "$codec" "$one" "$work/x"
    said "$(echo "$message" | tr _ ' ')"
done <<'END'
another_command_follows_at_character_9:_'; x=cp %i %o; cp %i %o; foo
another_command_follows_at_character_9:_'; x=cp %i %o; cp %i %o;
'1'_is_not_a_codec_that_this_build_can_write x=cp %i %o; cp %i %o -s 2,1
quote_a_comma_that_belongs_to_a_command x=cp %i %o; cp %i %o -s 2,1
is_a_second_external_codec x=cp %i %o; cp %i %o,y=cp %i %o; cp %i %o
an_empty_name x=cp %i %o; cp %i %o,
END
expect 2 dl2-load check --decoder 'same=cp %i %o; rm %i %o' "$work/small"
said 'another command follows at character 9'
run 2 --codec "none,$same" "$one" "$work/x"
run 2 --codec "$same" --q 10 "$one" "$work/x"
run 2 --codec "$same" --effort same=1 "$one" "$work/x"
expect 2 dl2-load check --decoder 'same=cp %i' "$work/small"
expect 2 dl2-load check --decoder 'same=cp %i %o' --decoder 'same=cp %i %o' "$work/small"
expect 2 dl2-load check --external-timeout 0 "$work/small"
[ ! -e "$work/x" ] || fail 'DEST was made for nothing'
