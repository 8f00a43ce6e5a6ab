#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Models that hop between two servers, each with a partition of the images: bit for bit the weights of one server and of
# dl2-train beside them; no training image leaves its server; a server that is missing, killed or too old is named.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/postgres/server.sh"
! sanitized || skip "the server is built without sanitizers; tests/train/test_fit.sh runs what trains with them"
start_extension
start_beside
. "$srcdir/tests/train/train_lib.sh"

# ---- A table in each server, and one with both as its partitions. The server b lacks the first class.
make_images data 3 20 7 12
expect 0 dl2-transcode --quiet copy data "$(at source)"
sql "create table whole (server text, key text, image bytea, label text, split text) partition by list (server);
     create table whole_a partition of whole for values in ('a'); create table whole_b partition of whole for values in ('b');
     insert into whole select s, s || replace(key, '/', '-'), image, label, split from
     (select *, case when label = 'c0' or number % 3 = 0 then 'a' else 'b' end as s from source) as r;
     create table photos as select * from whole where server = 'a'"
on "$beside" sql "create table photos (server text, key text, image bytea, label text, split text)"
psql -q -h "$home" -U dl2 -d postgres -c "\\copy whole_b to 'rows'" || fail "copy out of a"
psql -q -h "$beside" -U dl2 -d postgres -c "\\copy photos from 'rows'" || fail "copy into b"
a=$(at photos) b=$(on "$beside" at photos)\&timeout=1 only_in_b=$(sql "select count(*) from whole_b where split = 'train'")
[ "$only_in_b" -gt 16 ] || fail "$only_in_b training images in b"

# ---- The same weights
cat >configs <<'END'
{"name": "a"}
{"name": "b", "lr": 0.02, "seed": 5, "mixup": 0.3, "clip-grad": 1}
{"name": "c", "optimizer": "adamw", "epochs": 1.6, "ema": 0.9, "grad-accum": 2}
END
hop() { run --seed 1 --device ref several --configs configs --hop --hop-order fixed --ranks 2 -e 2 --augment rotate "$@"; }
expect 0 hop -d "$(at whole)" --out one
for place in "$home" "$beside"; do on "$place" sql "alter role dl2 set log_statement = 'all'"; done
expect 0 hop -d "$a" -d "$b" --in-database --skip-validation --out blind
for place in "$home" "$beside"; do on "$place" sql "alter role dl2 reset log_statement"; done
expect 0 hop -d "$a" -d "$b" --in-database --out servers
expect 0 hop -d "$a" -d "$b" --out beside
for model in a b c; do
    same one/$model/$CK servers/$model/$CK "$model in two servers and of one"
    same one/$model/$CK blind/$model/$CK "$model with and without validation"
    same one/$model/$CK beside/$model/$CK "$model of two servers' tables and of one's"
    is "$(field servers/$model/$REPORT completed)" true "$model completed"
    grep '"loss"' one/$model/$REPORT >losses
    grep '"loss"' servers/$model/$REPORT | diff losses - || fail "losses of $model"
done
# A server trains on its own rows, and no statement selects an image but for that, or more of it than its length.
for place in "$home" "$beside"; do
    partition=$([ "$place" = "$home" ] && echo 1 || echo 2)
    is "$(grep -c 'SELECT dl2_fit(' "$place/log")" "$(grep -c "\"partition\":$partition" blind/visits.jsonl)" "visits in $place"
    grep -i image "$place/log" | grep -v 'SELECT dl2_fit(' | sed 's/octet_length("image")//g' | grep -i image >&2 && fail "images left $place"
done

# ---- What is wrong is told of the server that it is wrong in
echo '{"name": "a"}' >one-config
short() { run --seed 1 several --configs one-config --hop --hop-order fixed --ranks 2 -e 1 --skip-validation --in-database "$@"; }
refuse() { expect 1 short -d "$a" -d "$b" --restart --out refused; said "$1"; }
expect 1 short -d "$a" -d "$b" --ranks 3 --out refused
said "these are 2 tables, and --in-database trains on them by 2 ranks, not 3"
expect 1 short -d "$a" -d data --out refused
said "data: --in-database needs a table"
expect 1 short -d "$b" -d "$a" --out refused
said "$a: $b has no class 'c0'"
on "$beside" sql "update pg_extension set extversion = '0.0.1' where extname = 'dl2'"
expect 0 short -d "$a" -d "$b" --restart --out refused
said "$b: the extension dl2 there is of version 0.0.1"
on "$beside" sql "alter extension dl2 drop aggregate dl2_fit(bytea, int, bytea, jsonb, bigint); drop aggregate dl2_fit(bytea, int, bytea, jsonb, bigint)"
refuse "$b: version 0.0.1 of the extension dl2 there has no dl2_fit()"
on "$beside" sql "drop extension dl2"
refuse "$b: the database has no extension dl2"
on "$beside" sql "create extension dl2; alter table photos rename to elsewhere"
refuse "$b: there is no table"
on "$beside" sql "alter table elsewhere rename to photos"
on "$beside" control -m immediate stop
refuse "$b: connection to server on socket \"$beside"
on "$beside" start_server -p "$postgres"

# ---- As docs/training.md divides images
for place in "$home" "$beside"; do
    expect 0 dl2-transcode --quiet copy data "$(on "$place" at halves)"
    on "$place" sql "delete from halves where number % 2 = $([ "$place" = "$home" ] && echo 0 || echo 1)"
done
expect 0 short -d "$(at halves)" -d "$(on "$beside" at halves)" --out halves
is "$(field halves/a/$REPORT train_images)" "$(sql "select count(*) from source where split = 'train'")" "images of both halves"

# ---- A server that is killed at work, and comes back
on "$beside" sql "create table brake (); create role trainee login; grant select on photos, brake to trainee;
     create function brake() returns bool language plpgsql as \$\$ begin perform pg_sleep(case when exists (select from brake) then 900 else 0 end);
     return true; end \$\$;
     create policy brakes on photos using (case when current_query() like 'SELECT dl2_fit%' then brake() else true end);
     alter table photos enable row level security; insert into brake default values"
trainee=$(echo "$b" | sed 's/user=dl2/user=trainee/')
killed="--seed 1 --device ref several --configs configs --hop --hop-order fixed --ranks 2 -e 2 --augment rotate --in-database --out killed"
(exec dl2-train $smallest $killed -d "$a" -d "$trainee") >/dev/null 2>err.killed &
pid=$!
at_work() { [ "$(on "$beside" sql "select count(*) from pg_stat_activity where query like 'SELECT dl2_fit%' and wait_event = 'PgSleep'")" = 1 ]; }
await "no visit in the second server" at_work
on "$beside" control -m immediate stop
wait $pid
is $? 1 "status after the server was killed: $(cat err.killed)"
cp err.killed "$work/err"
said "$trainee: connection to server on socket \"$beside"
on "$beside" start_server -p "$postgres"
on "$beside" sql "delete from brake"
expect 0 run $killed -d "$a" -d "$trainee" --resume
for model in a b c; do same one/$model/$CK killed/$model/$CK "$model after a server was killed"; done
exit 0
