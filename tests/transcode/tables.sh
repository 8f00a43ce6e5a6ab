#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Variants as tables of PostgreSQL, against a server of the test's own: what variants in folders are, for every program;
# made again only where they must be; whole or not there at all after kills.
. "$srcdir/tests/lib.sh"
dl2-transcode --list containers | grep -q "^postgresql" || skip "this build has no libpq (Debian: libpq-dev)"
dl2-transcode --list codecs | grep -q "^jpeg" || skip "this build has no JPEG (Debian: libjpeg62-turbo-dev)"
. "$srcdir/tests/postgres/server.sh"
find_server
make_server
start_server
src=$work/src
for part in train val; do
    for class in rose tulip; do
        for i in 1 2 "a b" é; do picture "$src/$part/$class/$i.ppm" 24 16 "$i" || exit 99; done
    done
done
picture "$src/train/rose/x'\"\$.ppm" 24 16 7
copy() { expect 0 dl2-transcode --quiet copy "$@"; }
digest() { expect 0 dl2-load bench "$@" --image-size 8 -b 4 --digest; sed -n 's/^digest //p' "$work/out"; }

# ---- What variants in folders are
tables() { expect "$1" dl2-transcode --codec jpeg --q 5,30 "$2" "$3"; }
made() { awk '/^jpeg/ { printf "%s %s/%s ", $1, $3, $2 }' "$work/out"; }
tables 0 "$src" "$work/folders"
copy "$src" "$(at photos)"
tables 0 "$src" "$(at photos)"
is "$(made)" "jpeg-05 17/17 jpeg-30 17/17 " "tables that were made"
for q in 05 30; do
    copy "$(at photos_jpeg_$q)" "$work/unpacked-$q"
    diff -r -x 'dl2-variant.*' -x '.dl2-*' "$work/folders/jpeg-$q" "$work/unpacked-$q" >&2 || fail "other images in photos_jpeg_$q"
    grep -q "\"variant\": \"jpeg-$q\"" "$work/unpacked-$q/dl2-variant.json" || fail "a copy of the table is no variant"
    is "$(sql "select count(*), sum((made->>'bytes')::int) - sum(octet_length(image)) from photos_jpeg_$q")" "17|0" "lines of images"
done
expect 0 dl2-quality --quiet "$src" "$work/folders/jpeg-05" "$work/folders/jpeg-30"
cp "$work/out" "$work/scores"
expect 0 dl2-quality --quiet "$src" "$(at photos_jpeg_05)" "$(at photos_jpeg_30)"
diff "$work/scores" "$work/out" >&2 || fail "names or scores of tables"
is "$(digest "$(at photos_jpeg_30)" --json "$work/load.json")" "$(digest "$work/folders/jpeg-30")" "the digest of a variant"
grep -q '"jpeg-30"' "$work/load.json" || fail "dl2-load does not name the variant"
tables 0 "$src" "$(at photos)"
is "$(made)" "jpeg-05 0/17 jpeg-30 0/17 " "tables that are there"
sql "drop table photos_jpeg_05"
: >"$src/train/no-image"
tables 0 "$src" "$(at photos)"
is "$(made)" "jpeg-05 17/17 jpeg-30 0/17 " "a table that is missing"
ignored() { sql "select (obj_description('photos_jpeg_$1'::regclass)::json)->'variant'->>'ignored'"; }
is "$(ignored 05) $(ignored 30)" "1 1" "what the comments say of other files"
rm "$src/train/no-image"
tables 0 "$src" "$(at photos)"
sql "update photos_jpeg_05 set image = image || 'x' where number = 3"
tables 0 "$src" "$(at photos)"
is "$(made)" "jpeg-05 17/17 jpeg-30 0/17 " "a table that was changed"
tables 0 "$(at photos)" "$(at photos)" # a source with other times
is "$(made)" "jpeg-05 17/17 jpeg-30 17/17 " "tables of a table"
tables 2 "$(at photos_jpeg_30)" "$(at photos)&connect_timeout=9"
said "over its own source"
expect 2 dl2-transcode --force copy "$(at photos)" "$(at public.photos)"
said "DEST is SOURCE itself"
sql "create table mine_jpeg_05 (a int)"
tables 2 "$src" "$(at mine)"
said "in the way"
is "$(sql "select to_regclass('mine_jpeg_30') is null")" t "a run that failed left a table"

# ---- Resized: "@" is "_" in a table's name, and "jpeg-05@12" in reports
expect 0 dl2-transcode --q 5 --resize-shorter 12 "$src" "$(at photos)"
expect 0 dl2-transcode --q 5 --resize-shorter 12 "$src" "$work/folders"
copy "$(at photos_jpeg_05_12)" "$work/unpacked-small"
diff -r -x 'dl2-variant.*' -x '.dl2-*' "$work/folders/jpeg-05@12" "$work/unpacked-small" >&2 || fail "other images in photos_jpeg_05_12"
expect 0 dl2-quality --quiet "$src" "$(at photos_jpeg_05_12)"
grep -q "^jpeg-05@12 " "$work/out" || fail "the name of a resized table"
expect 2 dl2-transcode --codec "ppm_12=true %i %o; true %i %o,ppm" --resize-shorter 12,full "$src" "$(at photos)"
said "the variants ppm_12 and ppm@12 would both be written there"

# ---- Killed: the client, or the server, while the first of two tables waits for its place.
mkdir -p "$work/many/a"
i=0
while [ $((i += 1)) -le 300 ]; do cp "$src/val/rose/1.ppm" "$work/many/a/$i.ppm"; done
left() { sql "select count(*) from pg_class where relname like 'dl2-new%' and relkind = 'r'"; }
states() { sql "select (select count(*) from photos_jpeg_05), (select count(*) from photos_jpeg_30)"; }
# until_there WANTED CONDITION: waits until so many of the server's processes are so, or all if it never comes to that.
until_there() {
    tries=0
    while [ "$(sql "select count(*) from pg_stat_activity where $2")" -ne "$1" ] && [ $((tries += 1)) -lt 100 ]; do sleep 0.1; done
}
is "$(states)" "17|17" "variants before the kills"
for what in client server; do
    psql -qAt -h "$home" -U dl2 -d postgres -c "begin; select count(*) from photos_jpeg_05; select pg_sleep(60)" >/dev/null 2>&1 &
    holder=$!
    until_there 1 "wait_event = 'PgSleep'"
    dl2-transcode --quiet --codec jpeg --q 5,30 "$work/many" "$(at photos)" >/dev/null 2>"$work/err" &
    copier=$!
    until_there 1 "application_name = 'dl2' and wait_event_type = 'Lock'"
    case $what in
    client) kill -9 $copier; sql "select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'PgSleep'" >/dev/null ;;
    server) control -m immediate restart ;;
    esac
    ! wait $copier || fail "the $what was not killed in time"
    wait $holder
    until_there 0 "application_name = 'dl2'"
    is "$(states)" "17|17" "variants after a killed $what"
    is "$(left)" 0 "tables left by a killed $what"
done
tables 0 "$work/many" "$(at photos)"
is "$(made)" "jpeg-05 300/300 jpeg-30 300/300 " "a run after the kills"
exit 0
