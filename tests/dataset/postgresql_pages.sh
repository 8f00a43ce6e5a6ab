#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# access=pages: what the files of a PostgreSQL server give is what SQL gives, while rows are changed, tables are
# rewritten, files are damaged and the server is killed; what cannot be read so is read by SQL, or refused.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/postgres/server.sh"
serve
pages() { echo "$(at "$1")&access=${2:-pages}"; }

# Images in several spans of pages, in a few chunks, and in the rows themselves.
src=$work/src
for part in train val; do
    for class in rose tulip; do
        for i in 1 2; do picture "$src/$part/$class/$i.ppm" 60 "$((i * 9))" "$i" || exit 99; done
        for i in 3 4 5; do picture "$src/$part/$class/$i.ppm" 12 "$i" "$i" || exit 99; done
    done
done
picture "$src/train/rose/6.ppm" 300 220 6
same() {
    expect 0 dl2-transcode --quiet copy "$1" "$work/back"
    diff -r -x '.dl2-*' "$src" "$work/back" >&2 || fail "other bytes from $1"
    rm -r "$work/back"
}
expect 0 dl2-transcode --quiet copy "$src" "$(at photos)"
same "$(pages photos)"
[ ! -s "$work/err" ] || fail "not all images come from the files: $(cat "$work/err")"

# long ADDRESS: reads it in the background, and halts that after some epochs from files; goes_on then reads the rest.
# The digest must be that of the folder.
epochs=1000
options="--image-size 8 -b 4 -j 2 --digest"
# shellcheck disable=SC2086
digest() { dl2-load bench "$1" $options --epochs $epochs 2>/dev/null | sed -n 's/^digest //p'; }
wanted=$(digest "$src")
[ -n "$wanted" ] || fail "no digest"
halted() { [ "$(sed 's/.*) //; s/ .*//' "/proc/$load/stat")" = T ]; }
read_bytes() { sed -n 's/^rchar: //p' "/proc/$load/io" | grep . || echo 0; } # of files, not of sockets
long() {
    while :; do
        # shellcheck disable=SC2086
        dl2-load bench "$1" $options --epochs $epochs >"$work/digest" 2>"$work/err" &
        load=$!
        tries=0
        until [ "$(read_bytes)" -gt 3000000 ] || [ $((tries += 1)) -eq 1000 ]; do sleep 0.01; done
        kill -STOP $load 2>/dev/null
        tries=0
        until halted || [ $((tries += 1)) -eq 10 ]; do sleep 0.02; done
        halted && return
        wait $load || { cat "$work/err" >&2; fail "cannot read $1"; } # it was too fast
        epochs=$((epochs * 3))
        wanted=$(digest "$src")
    done
}
# goes_on DIGEST WHAT
goes_on() {
    halted || fail "$2: reading ended before"
    kill -CONT $load
    wait $load || { cat "$work/err" >&2; fail "$2: reading failed"; }
    is "$(sed -n 's/^digest //p' "$work/digest")" "$1" "$2"
}

# ---- Writers meanwhile: the images are those of the opening, also in rows that are gone since
sql "create table mapped as select number::int as id, image, label as class, split as fold from photos"
sql "alter table mapped add primary key (id)"
long "$(pages photos)"
for i in 1 2 3; do
    sql "update photos set label = label; update photos set image = 'changed', sum = 0 where number % 3 = $((i - 1))"
    sql "insert into photos select key || number, split, label, image, extension, sum, number from photos where number < 3 on conflict do nothing"
    sql "vacuum photos"
done
sql "delete from photos"
sql "vacuum photos"
sql "checkpoint"
goes_on "$wanted" "changed rows"

# A table that is written anew has other files: SQL reads on.
expect 0 dl2-transcode --quiet --force copy "$src" "$(at photos)"
long "$(pages photos)"
sql "vacuum full photos"
sql "checkpoint"
goes_on "$wanted" "a rewritten table"
! grep "SQL reads" "$work/err" >&2 || fail "not all images come from the files"

# ---- The server is killed, and stays away: no query is needed any more
sql "checkpoint" # what the kill would lose from the files otherwise, recovery would bring back
long "$(pages photos)"
main=$(head -n 1 "$home/data/postmaster.pid")
# shellcheck disable=SC2046
kill -9 "$main" $(cat "/proc/$main/task/$main/children")
goes_on "$wanted" "a killed server"
sleep 0.2
rm -f "$home/data/postmaster.pid" "$home"/.s.PGSQL.*
start_server
same "$(pages photos)"
# While it restarts itself after a backend is killed, too.
long "$(pages photos)"
kill -9 "$(sql "select pid from pg_stat_activity where application_name = 'dl2' limit 1")"
goes_on "$wanted" "a killed backend"
tries=0
until psql -qAt -h "$home" -U dl2 -d postgres -c "select 1" >/dev/null 2>&1 || [ $((tries += 1)) -gt 100 ]; do sleep 0.1; done

# ---- Tables of others: SQL's first reading proves what the files give later
map() { echo "$(pages "$1")&key=id&label=class&split=fold"; }
sql "checkpoint"
long "$(map mapped)"
unsummed=$(digest "$(at mapped)&key=id&label=class&split=fold")
control -m immediate stop
goes_on "$unsummed" "a table without sums"
said "SQL reads each image for the first time"
start_server
# Partitions, one with its columns in another order and one dropped; images that are compressed.
sql "create table parted (id int, image bytea, class text, fold text) partition by list (fold)"
sql "create table part1 (fold text, gone int, image bytea, class text, id int); alter table part1 drop gone"
sql "alter table parted attach partition part1 for values in ('train')"
sql "create table part2 partition of parted default"
sql "insert into parted select id, image, class, fold from mapped"
is "$(digest "$(map parted)")" "$unsummed" "the digest of partitions"
sql "create table squeezed as select id, case when id < 2 then image else decode(repeat('00', 50000 + id), 'hex') end as image from mapped"
expect 1 dl2-load check "$(pages squeezed)&key=id"
said "SQL reads 19 of 21 images"

# ---- Damaged files: the server has the pages in its memory, so SQL is right and the files are not
file() { echo "$home/data/$(sql "select pg_relation_filepath($1)")"; }
toast="(select reltoastrelid from pg_class where relname = 'photos')"
heap=$(file "'photos'") chunks=$(file "$toast") index=$(file "(select indexrelid from pg_index where indrelid = $toast)")
same "$(at photos)"
damage() {
    head -c "$(stat -c %s "$1")" /dev/urandom | dd of="$1" conv=notrunc status=none
}
for one in "$chunks" "$index" "$heap"; do
    cp "$one" "$work/good"
    damage "$one"
    same "$(pages photos auto)"
    dd if="$work/good" of="$one" conv=notrunc status=none
done
# Whole pages that are of other images; a few bytes of an image in each page.
cp "$chunks" "$work/good"
head -c 8192 "$work/good" | dd of="$chunks" bs=8192 seek=3 conv=notrunc status=none
same "$(pages photos)"
dd if="$work/good" of="$chunks" conv=notrunc status=none
page=$(($(stat -c %s "$chunks") / 8192))
while [ $((page -= 1)) -ge 0 ]; do
    printf wrong | dd of="$chunks" bs=1 seek=$((page * 8192 + 4000)) conv=notrunc status=none
done
same "$(pages photos)"
dd if="$work/good" of="$chunks" conv=notrunc status=none
cp "$heap" "$work/good"
damage "$heap"
expect 1 dl2-load check "$(pages photos)"
said "the server's files have none of the images"
dd if="$work/good" of="$heap" conv=notrunc status=none

# ---- What is refused, and falls back by access=auto
refused() {
    expect 1 dl2-load check "$(pages "$1")$2"
    said "$3"
    expect 0 dl2-load check "$(pages "$1" auto)$2"
    said "SQL reads all images"
    said "$3"
}
expect 1 dl2-load check "$(pages missing)"
said 'there is no table "missing"'
expect 1 dl2-load check "$(pages missing auto)"
said 'there is no table "missing"'
sql "create view shown as select * from photos"
refused shown "" "a view has no files"
sql "create role reader login; grant select on all tables in schema public to reader"
expect 1 dl2-load check "$(pages photos | sed 's/user=dl2/user=reader/')"
said "pg_read_all_settings"
expect 0 dl2-load check "$(pages photos auto | sed 's/user=dl2/user=reader/')"
sql "grant pg_read_all_settings to reader" # may ask for no checkpoint
sql "update photos set label = label"
same "$(pages photos auto | sed 's/user=dl2/user=reader/')"
# As on another machine: without the server's folder, or with that of another server.
elsewhere() { unshare -rm sh -c "mount -t tmpfs none '$home/data' && $1 && "'exec dl2-load check "$0"' "$2"; }
if unshare -rm mount -t tmpfs none "$home/data" 2>/dev/null; then
    expect 1 elsewhere true "$(pages photos)"
    said "is not on this machine"
    expect 1 elsewhere "mkdir '$home/data/global' && echo >'$home/data/global/pg_control' 12345678" "$(pages photos)"
    said "belongs to another server"
    expect 0 elsewhere true "$(pages photos auto)"
    said "SQL reads all images"
fi
expect 1 dl2-load check "$(pages photos none)"
said "access= is sql, pages or auto"
exit 0
