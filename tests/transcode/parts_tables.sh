#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# dl2-transcode --part and --ranks into tables: the images, lines and summaries of one process; parts that are missing,
# at work twice, killed, or too many; what they leave in the database.
. "$srcdir/tests/lib.sh"
dl2-transcode --list containers | grep -q "^postgresql" || skip "this build has no libpq (Debian: libpq-dev)"
dl2-transcode --list codecs | grep -q "^jpeg" || skip "this build has no JPEG (Debian: libjpeg62-turbo-dev)"
. "$srcdir/tests/postgres/server.sh"
find_server
make_server
start_server
export TMPDIR="$work/tmp"
mkdir "$TMPDIR"
src=$work/src seed=0
for class in rose tulip; do
    for i in 1 2 3 4 5 6 "a b" é; do picture "$src/train/$class/$i.ppm" 40 30 $((seed += 1)) || exit 99; done
done
cp "$src/train/rose/1.ppm" "$src/train/rose/1.pnm" # a taken name
head -c 40 "$src/train/rose/2.ppm" >"$work/cut" && cp "$work/cut" "$src/train/rose/2.ppm"
echo "a caption" >"$src/train/rose/3.txt"
part() { dl2-transcode --quiet -j 1 --part "$1" --q 5,30 "$src" "$(at "$2")"; } # I/N TABLE
# ends I/N TABLE: with or without the images that fail.
ends() { part "$1" "$2" >"$work/out" 2>"$work/err"; [ $? -le 1 ] || { cat "$work/err" >&2; fail "part $1 of $2"; }; }
rows() { sql "select key, split, label, number, extension, sum, beside, md5(image), (made - 'encode_cpu_seconds' - 'decode_cpu_seconds')::text from $1 order by number"; }
summary() { sql "select (obj_description('$1'::regclass)::jsonb #- '{written_ns}' #- '{transaction}' #- '{variant,encode_cpu_seconds}' #- '{variant,decode_cpu_seconds}')::text"; }
same() { # WHAT TABLE
    for q in 05 30; do
        rows "one_jpeg_$q" >"$work/wanted"; rows "$2_jpeg_$q" | diff "$work/wanted" - >&2 || fail "rows of $1, quality $q"
        is "$(summary "$2_jpeg_$q")" "$(summary "one_jpeg_$q")" "summary of $1, quality $q"
    done
    is "$(sql "select count(*) from pg_class where relname like 'dl2-%' and relkind = 'r'")" 0 "tables that $1 left"
    [ -z "$(ls -A "$TMPDIR")" ] || fail "$1 left $(ls -A "$TMPDIR")"
}
expect 1 dl2-transcode --quiet --q 5,30 "$src" "$(at one)"

# ---- One after the other, each image by one of them, and again
made() { awk '$1 == "jpeg-05" { print $3 }' "$work/out"; }
ends 3/3 three
grep -q 'part 3/3 has ended; 2 of 3 parts are missing, the first is 1/3' "$work/out" || fail "$(cat "$work/out")"
is "$(sql "select to_regclass('three_jpeg_05') is null")" t "a table before all parts"
sum=$(made)
ends 1/3 three
sum=$((sum + $(made)))
grep -q '1 of 3 parts are missing, the first is 2/3' "$work/out" || fail "$(cat "$work/out")"
ends 2/3 three
is $((sum + $(made))) 15 "images that three parts have made"
grep -q 'and the variants are complete' "$work/out" || fail "$(cat "$work/out")"
same "three parts" three
ends 1/3 three
is "$(made)" 0 "images of what is complete"
same "a part of what is complete" three

# ---- All at once: one of them completes the variants
pids=
for i in 1 2 3 4; do part $i/4 four >"$work/out.$i" 2>"$work/err.$i" & pids="$pids $!"; done
for pid in $pids; do wait "$pid"; [ $? -le 1 ] || { cat "$work"/err.? >&2; fail "a part of four"; }; done
grep -q 'the variants are complete' "$work"/out.? || fail "no part says that all is complete"
same "four parts at once" four
expect 1 dl2-transcode --quiet -j 1 --ranks 3 --q 5,30 "$src" "$(at ranks)"
same "three ranks" ranks
expect 1 dl2-transcode --quiet -j 1 --force --ranks 2 --q 5,30 "$src" "$(at ranks)"
is "$(made)" 15 "images of ranks with --force"
same "two ranks with --force" ranks

# ---- A part that is at work twice, and then loses its connection while it makes images
printf 'sleep 0.7; cp "$1" "$2"\n' >"$work/slow"
slow() { exec dl2-transcode --quiet -j 1 --part 1/2 --codec "slow=sh $work/slow %i %o; cp %i %o" "$src" "$(at slow)"; }
(slow) >"$work/first" 2>&1 &
pid=$!
tries=0
until [ "$(sql "select count(*) from pg_locks where locktype = 'advisory'")" -ge 1 ]; do [ $((tries += 1)) -lt 300 ] || fail "no lock: $(cat "$work/first")"; sleep 0.1; done
(slow) >"$work/out" 2>"$work/err"
is $? 1 "status of a part that is at work already"
said "another process is making part 1/2"
is "$(sql "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = 'dl2'")" 1 "connections of the part"
wait $pid
[ $? -le 1 ] || fail "a part that lost its connection: $(cat "$work/first")"
grep -q '1 of 2 parts are missing, the first is 2/2' "$work/first" || fail "$(cat "$work/first")"
sql "drop table \"$(sql "select relname from pg_class where relname like 'dl2-parts-%' and relkind = 'r'")\""

# ---- Who completes is killed while an old table is read, and the part is made again
expect 1 dl2-transcode --quiet --q 5,30 "$src" "$(at old)"
rows old_jpeg_05 >"$work/old"
picture "$src/train/rose/4.ppm" 40 30 98
expect 1 dl2-transcode --quiet --q 5,30 "$src" "$(at one)"
ends 1/2 old
psql -qAt -h "$home" -U dl2 -d postgres -c "begin; select count(*) from old_jpeg_05; select pg_sleep(60)" >/dev/null 2>&1 &
until_there() { # CONDITION
    tries=0
    until [ "$(sql "select count(*) from pg_stat_activity where $1")" -ge 1 ]; do [ $((tries += 1)) -lt 300 ] || fail "never $1: $(cat "$work/killed" "$work/out")"; sleep 0.1; done
}
until_there "wait_event = 'PgSleep'"
dl2-transcode --quiet -j 1 --part 2/2 --q 5,30 "$src" "$(at old)" >"$work/killed" 2>&1 &
pid=$!
until_there "application_name = 'dl2' and wait_event_type = 'Lock'"
kill -9 $pid
wait $pid
is $? 137 "status of the part that was killed: $(cat "$work/killed")"
sql "select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'PgSleep' or application_name = 'dl2'" >/dev/null
wait
rm -r "$TMPDIR"/dl2-parts-*
rows old_jpeg_05 | diff "$work/old" - >&2 || fail "rows after a part was killed"
ends 2/2 old
grep -q 'the variants are complete' "$work/out" || fail "$(cat "$work/out")"
same "a part after one that was killed" old

# ---- What lies in the database is damaged
picture "$src/train/rose/4.ppm" 40 30 99
ends 1/2 old
table=$(sql "select relname from pg_class where relname like 'dl2-parts-%' and relkind = 'r'")
sql "update \"$table\" set data = data || 'x' where name like 'part-%'"
expect 1 part 2/2 old
said "what lies there of part 1/2 is damaged; make the part again"
ends 1/2 old
grep -q 'the variants are complete' "$work/out" || fail "$(cat "$work/out")"
is "$(sql "select count(*) from pg_class where relname like 'dl2-parts-%'")" 0 "tables of parts at the end"
exit 0
