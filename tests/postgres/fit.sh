#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Training in a server: bit for bit dl2-train's weights; hostile models and images, limits and
# canceled queries end queries, never a backend; no threads, no signal handlers.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/postgres/server.sh"
! sanitized || skip "the server is built without sanitizers; tests/train/test_fit.sh runs what trains with them"
start_extension
. "$srcdir/tests/train/train_lib.sh"
fit_rows="$builddir/tests/train/fit_rows"
alive=$(sql "select pg_postmaster_start_time(), count(*) from pg_stat_activity where backend_type = 'checkpointer'")

# The dynamic linker takes the server's function where a library of ours has one of the same name.
library=$home/root$libdir/dl2_train.so
if command -v nm >/dev/null && command -v ldd >/dev/null; then
    nm -D --defined-only "$bindir/postgres" | sed 's/.* //' | sort >"$work/servers"
    nm -D --undefined-only "$library" | sed 's/.* //; s/@.*//' | sort | comm -12 - "$work/servers" >"$work/taken"
    ldd "$library" | sed -n 's/.*=> \([^ ]*\) .*/\1/p' | grep -v '/libpq\.' | while read -r needed; do
        nm -D --defined-only "$needed" | sed 's/.* //; s/@.*//' | sort | comm -12 - "$work/taken"
    done >"$work/both"
    [ ! -s "$work/both" ] || fail "the server has these, too: $(cat "$work/both")"
fi

# ---- What dl2-train gives
make_images data 3 20 7 12
expect 0 dl2-transcode --quiet copy data "$(at photos)"
# ---- The example of docs/training.md, as it is but for the sizes; a second time, as after a first one that failed
sed -n '/^    CREATE EXTENSION/,/GROUP BY name;$/s/^    //p' "$srcdir/docs/training.md" |
    sed "s/'resnet10', 'image-size', 64, 'batch', 64/'convnet', 'image-size', 8, 'batch', 8/" >example.sql
grep -q dl2_evaluate example.sql || fail "no example in docs/training.md"
sql "create schema example"
for attempt in first second; do
    expect 0 psql -qAt -v ON_ERROR_STOP=1 -h "$home" -U dl2 -d postgres -c 'set search_path to example, public' -f example.sql
    grep -q '^a|{.*"images": 21[,}]' "$work/out" || fail "the example, $attempt: $(cat "$work/out")"
done

settings='{"arch": "convnet", "image-size": 8, "batch": 8, "classes": 3, "images": 60, "epochs": 2, "seed": 3, "ema": 0.9}'
expect 0 run -d data --device ref -e 2 --seed 3 --ema 0.9 --out by-program
for epoch in 0 1; do "$fit_rows" order data 3 8 $epoch | sed "s/^/$epoch /; s, data/, ,; s/\.[a-z]*$//"; done >order
sql "create table places (epoch int, place int, number int, key text)"
psql -q -h "$home" -U dl2 -d postgres -c "\\copy places from 'order' (delimiter ' ')" || fail "copy of the order"
sql "create view rows as select p.epoch, p.place, p.number, f.image, array_position('{c0,c1,c2}', f.label) - 1 as label
     from places p join photos f using (key)"
# dl2_order() has that order, of the numbers that the example's view gives to the images.
is "$(sql "select count(*) from places p join photos f using (key) join example.samples s on s.split = 'train' and s.number = p.number
     where s.image = f.image and s.class = array_position('{c0,c1,c2}', f.label) - 1 and (dl2_order(60, 3, p.epoch))[p.place + 1] = p.number")" \
    "$(sql "select count(*) from places")" "places of the order"
refuse_order() { expect 1 query "select dl2_order($1)"; said 22023; said "dl2_order: 1 to 134217727 images"; }
for wrong in 0 -1 1e10::bigint '5, 0, -1'; do refuse_order "$wrong"; done
sql "create table models (name text, model bytea); insert into models values ('fresh', dl2_model('$settings'))"
# fit FROM TO WHERE [OPTIONS]: trains a model of the table on rows.
fit() {
    sql "insert into models select '$2', dl2_fit(image, label, model, '${4:-{\}}', number)
         from (select image, label, model, number from rows, models where name = '$1' and $3 order by epoch, place) as r"
}
export_model() { sql "select lo_from_bytea(4711, model) from models where name = '$1'" >/dev/null
    psql -q -h "$home" -U dl2 -d postgres -c "\\lo_export 4711 '$PWD/$1'" -c "\\lo_unlink 4711" >/dev/null || fail "export of $1"; }
ref='{"device": "ref"}'
fit fresh one 'epoch = 0' "$ref"
fit one half 'epoch = 1 and place < 24' "$ref"
fit half two 'epoch = 1 and place >= 24' "$ref"
export_model two
same two by-program/$CK "weights of the server and of dl2-train"
loss=$(sed -n '/"val": \[/,/\]/s/^ *"loss": \([0-9.]*\).*/\1/p' by-program/$REPORT | tail -n 1)
is "$(sql "select e->>'images', e->>'bad', abs((e->>'loss')::float8 - $loss) < 1e-5, (e->>'top1')::float8 between 0 and 1 from
     (select dl2_evaluate(image, array_position('{c0,c1,c2}', label) - 1, model) as e from photos, models where name = 'two' and split = 'val') as v")" \
    "21|0|t|t" "an evaluation"
is "$(sql "select count(*) from (select dl2_fit(image, label, model) as m from rows, models where false) as x where m is null")" 1 "a model of no rows"
fit fresh cpu 'epoch = 0' # the fastest device that the library has
is "$(sql "select count(model) from models")" 5 models

# ---- Models that hop: the server trains on the partitions, and sends no training image
cat >configs <<'EOF'
{"name": "a"}
{"name": "b", "lr": 0.02, "seed": 5, "mixup": 0.3, "clip-grad": 1}
{"name": "c", "optimizer": "adamw", "epochs": 1.6, "ema": 0.9, "grad-accum": 2}
EOF
hop() { run --seed 1 --device ref several --configs configs --hop --hop-order fixed --ranks 2 -e 2 --augment rotate "$@"; }
sql "alter role dl2 set log_statement = 'all'"
expect 0 hop -d data --out by-ranks
expect 0 hop -d "$(at photos)" --in-database --out in-database
grep -q 'SELECT dl2_fit(' "$home/log" || fail "the server was asked for nothing"
for model in a b c; do
    same by-ranks/$model/$CK in-database/$model/$CK "$model in the database and beside it"
    is "$(field in-database/$model/$REPORT completed)" true "$model completed"
    grep '"loss"' by-ranks/$model/$REPORT >losses
    grep '"loss"' in-database/$model/$REPORT | diff losses - || fail "losses of $model"
done
is "$(wc -l <in-database/visits.jsonl | tr -d ' ')" "$(wc -l <by-ranks/visits.jsonl | tr -d ' ')" "visits"
# Rows that are bad, and that were deleted, are named as a dataset's bad samples are, and the run goes on.
sql "create table spoiled as select * from photos; alter table spoiled add primary key (key);
     create table gone as select key from spoiled where split = 'train' order by key limit 3;
     update spoiled set image = '\\x00' where key = (select min(key) from gone);
     update spoiled set image = null where key = (select max(key) from gone)"
echo '{"name": "a"}' >one
expect 0 run --seed 1 several --configs one --hop --hop-order fixed --ranks 2 -e 2 -d "$(at spoiled)" --skip-validation --in-database --out spoiled
"${PYTHON3:-python3}" - $(sql "select min(key), max(key) from gone" | tr '|' ' ') <<'END' || fail "bad rows: $(grep -A4 '"bad"' spoiled/a/$REPORT; cat "$work/err")"
import json, sys
report = json.load(open("spoiled/a/experiment_report.json"))
assert sorted(text.split(": decode: ")[0] for text in report["bad"]) == [f"spoiled[{key}]" for key in sorted(sys.argv[1:])], report["bad"]
assert report["completed"]
END
said "spoiled[train/c0/000]: decode: "
expect 1 run --seed 1 several --configs one --hop --ranks 2 -e 1 -d "$(at spoiled)" --skip-validation --in-database --on-bad stop --out spoiled-stop
said ": decode: "
expect 1 run --seed 1 several --configs one --hop --ranks 2 -e 1 -d "$(at spoiled)" --skip-validation --in-database --max-bad 0 --out spoiled-many
said "images cannot be used, above the limit of 0%"

# A signal cancels the visits that the server is at, and --resume goes on from the checkpoints that they leave.
sql "create table brake (); create role trainee login; grant select on photos, brake to trainee;
     create function brake() returns bool language plpgsql as \$\$ begin perform pg_sleep(case when exists (select from brake) then 900 else 0 end);
     return true; end \$\$;
     create policy brakes on photos using (case when current_query() like 'SELECT dl2_fit%' then brake() else true end);
     alter table photos enable row level security; insert into brake default values"
braked="--seed 1 --device ref several --configs configs --hop --hop-order fixed --ranks 2 -e 2 --augment rotate --in-database --out braked"
trainee=$(at photos | sed 's/user=dl2/user=trainee/')
(exec dl2-train $smallest $braked -d "$trainee") >/dev/null 2>err.braked &
pid=$!
at_work() { [ "$(sql "select count(*) from pg_stat_activity where query like 'SELECT dl2_fit%' and wait_event = 'PgSleep'")" = "$1" ]; }
await "no visits in the server" at_work 2
kill -TERM $pid
await "a visit was not canceled" at_work 0
wait $pid
is $? 1 "status after SIGTERM: $(cat err.braked)"
is "$(grep -c '"outcome":"stopped"' braked/visits.jsonl)" 2 "visits that were stopped"
[ -s braked/a/$CK ] && [ -s braked/b/$CK ] || fail "there are no checkpoints"
sql "delete from brake"
expect 0 run $braked -d "$trainee" --resume
for model in a b c; do same by-ranks/$model/$CK braked/$model/$CK "$model after visits that were canceled"; done
sql "alter table photos disable row level security"

sql "create table parted (like photos) partition by list (label);
     create table parted_1 partition of parted for values in ('c0', 'c1');
     create table parted_2 partition of parted for values in ('c2'); insert into parted select * from photos"
expect 0 hop -d "$(at parted)" --skip-validation --out parted
expect 0 hop -d "$(at parted)" --skip-validation --in-database --out parted-in-database
same parted/c/$CK parted-in-database/c/$CK "partitions of a table in the database and beside it"
: >"$home/log"
printf '{"name": "a"}\n{"name": "wild", "lr": 1e6, "warmup": 0, "momentum": 0.99, "epochs": 30}\n' >configs
expect 1 hop -d "$(at photos)" --in-database --skip-validation --out wild
said "training diverged in epoch"
is "$(field wild/a/$REPORT completed)" true "a model beside one that diverged"
! grep 'ANY(\$1::text' "$home/log" >&2 || fail "images left the server"
expect 1 hop -d data --in-database --out no
said "data: --in-database needs a table"
sql "alter role dl2 reset log_statement"

# ---- Wrong words
# refuse CODE MESSAGE SQL
refuse() {
    expect 1 query "$3"
    said "$1"
    said "$2"
}
rows="from rows, models where name = 'fresh' and epoch = 0"
refuse 22023 "dl2_fit: the model has had all of its 2 epochs" "select dl2_fit(image, label, model) from rows, models where name = 'two'"
refuse 22023 "row 1: the label 3 is not a class of the model: 0 to 2" "select dl2_fit(image, 3, model) $rows"
refuse 22004 "dl2_fit: row 1: the label is null" "select dl2_fit(image, null, model) $rows"
refuse 22004 "dl2_fit: the model is null" "select dl2_fit(image, label, null) $rows"
refuse 22023 'there is no option "lr" here: the model has it' "select dl2_fit(image, label, model, '{\"lr\": 1}') $rows"
refuse 22023 "the device is cpu or ref, not auto" "select dl2_fit(image, label, model, '{\"device\": \"auto\"}') $rows"
refuse 22023 'there is no option "pretrained" here' "select dl2_model('{\"classes\": 2, \"images\": 9, \"pretrained\": \"/etc/passwd\"}')"
refuse 22P03 "the model: it is cut short" "select dl2_fit(image, label, '\\x0011223344556677') $rows"
refuse 54000 "and the limit is 1.0 MiB" "set dl2.max_training_memory = '1MB'; select dl2_model('{\"classes\": 2, \"images\": 900}')"
sql "create role guest"
refuse 42501 "permission denied" "select dl2_model('$settings') is null; set role guest; set dl2.max_training_memory = '64GB'"

# ---- Hostile bytes: images of every codec, damaged, and models with other bytes
expect 0 "$builddir/tests/codec/make_corpus" "$home/corpus"
chmod -R a+rX "$home/corpus"
files=$(cd "$home/corpus" && find . -type f | sed "s/.*/('&')/" | tr '\n' ',')
sql "create table hostile as select file, pg_read_binary_file('$home/corpus/' || file) as image from (values ${files%,}) f(file)"
sql "insert into hostile select file || i, set_byte(image, place, get_byte(image, place) # (1 << (i % 8))) from hostile, generate_series(1, 2) i,
     lateral (select abs(hashtext(file || i)) % octet_length(image) as place) as a where octet_length(image) > 0"
expect 0 query "set dl2.max_pixels = 1000000; select octet_length(dl2_fit(image, 1, model)) > 1000 from hostile, models where models.name = 'fresh'"
is "$(cat "$work/out")" t "a model of hostile images"
said "WARNING:  22P03: dl2_fit: row "
refuse 22P03 ": decode: " "select dl2_fit(image, 1, model, '{\"on-bad\": \"stop\"}') from hostile, models where models.name = 'fresh' and dl2_check(image) like '%cut short%'"
sql "create function calm(text, bytea) returns text language plpgsql as \$\$ begin
     perform dl2_fit(image, label, \$2) from rows where epoch = 0 and place < 9; return 'fine';
     exception when invalid_binary_representation or feature_not_supported or program_limit_exceeded or invalid_parameter_value then return sqlerrm; end \$\$"
sql "select calm(i::text, set_byte(model, place, (get_byte(model, place) + i) % 256)) from models, generate_series(1, 200) i,
     lateral (select abs(hashtext(i::text)) % least(octet_length(model), 6000) as place) as a where name = 'one'
     union all select calm('cut', substring(model for octet_length(model) * i / 40)) from models, generate_series(0, 39) i where name = 'one'" >damaged
is "$(wc -l <damaged | tr -d ' ')" 240 "damaged models"
! grep -q fine damaged || fail "a damaged model was taken"

# ---- One thread, no signal handlers, memory that comes back after errors and canceled queries
cat >session.sql <<SQL
select octet_length(dl2_fit(image, label, model)) > 1000 $rows;
select pg_backend_pid() as pid \\gset
\\setenv PID :pid
\\! grep -E '^(Threads|Sig[A-Z]...|RssAnon)' /proc/\$PID/status >before
do \$\$ begin for i in 1..60 loop
    perform dl2_fit(image, label, model) $rows;
    begin perform dl2_fit(image, label, model, '{"on-bad": "stop"}') from (select image, label, model $rows union all
        select '', 0, model from models where name = 'fresh') as r;
    exception when others then null; end; end loop; end \$\$;
set statement_timeout = 300;
select dl2_fit(image, 1, model) from rows, models, generate_series(1, 1000000) where name = 'fresh';
set statement_timeout = 0;
select octet_length(dl2_fit(image, label, model)) > 1000 $rows;
\\! grep -E '^(Threads|Sig[A-Z]...|RssAnon)' /proc/\$PID/status >after
SQL
expect 0 psql -qAt -h "$home" -U dl2 -d postgres -f session.sql
is "$(tr '\n' ' ' <"$work/out")" "t t " "models of a session"
said "canceling statement due to statement timeout"
is "$(sed -n 's/^Threads:[^0-9]*//p' after)" 1 "threads of a backend"
is "$(grep '^Sig[BIC]' after)" "$(grep '^Sig[BIC]' before)" "signals of a backend"
[ "$(awk '/^RssAnon/ { print $2 - last; last = $2 }' before after | tail -n 1)" -lt 50000 ] || fail "a backend has grown: $(grep -h RssAnon before after)"
is "$(sql "select pg_postmaster_start_time(), count(*) from pg_stat_activity where backend_type = 'checkpointer'")" "$alive" "the server"
! grep -E 'terminated by signal|PANIC' "$home/log" >&2 || fail "a backend crashed"
exit 0
