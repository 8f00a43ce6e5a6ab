#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Datasets in PostgreSQL, against a server of the test's own: the same samples as the folder's in the
# same order, by every program; lost connections; tables of others; rows that are no samples.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/postgres/server.sh"
serve
copy() { expect 0 dl2-transcode --quiet copy "$@"; }

# ---- There and back: bytes, names, order (tar keeps it), classes, splits
src=$work/src
for part in train val; do
    for class in rose tulip; do
        for i in 1 1.5 2 10 "a b" é; do picture "$src/$part/$class/$i.ppm" 24 16 "$i" || exit 99; done
    done
done
picture "$src/train/rose/x'\"\$.ppm" 24 16 7
copy "$src" "$(at photos)"
copy "$(at photos)" "$work/back"
diff -r -x '.dl2-*' "$src" "$work/back" >&2 || fail "not what was copied"
for from in "$src" "$(at photos)"; do
    copy --container=tar "$from" "$work/tar"
    for file in "$work/tar"/*/*.*; do echo "${file##*/} $(cksum <"$file")"; done >"$work/sums.new"
    [ ! -e "$work/sums" ] || diff "$work/sums" "$work/sums.new" >&2 || fail "tar files differ"
    mv "$work/sums.new" "$work/sums"
    rm -r "$work/tar"
done
is "$(sql "select count(*), count(distinct label), min(split), max(split) from photos")" "25|2|train|val" "the table"
is "$(sql "select attstorage from pg_attribute where attrelid = 'photos'::regclass and attname = 'image'")" e storage
expect 0 dl2-transcode copy "$src" "$(at photos)"
grep -q '; 0 written' "$work/out" || fail "copied again: $(cat "$work/out")"
picture "$src/train/rose/1.ppm" 24 16 99
touch -d @1000000000 "$src/train/rose/1.ppm" # older than what it replaces, as after cp -p
copy "$src" "$(at photos)"
copy "$(at photos)" "$work/back"
diff -r -x '.dl2-*' "$src" "$work/back" >&2 || fail "the changed file is not in the table"

# ---- Loading and training: what the folder gives
digest() { expect 0 dl2-load bench "$@" --image-size 8 -b 4 --epochs 3 --digest; sed -n 's/^digest //p' "$work/out"; }
wanted=$(digest "$src")
[ -n "$wanted" ] || fail "no digest"
for io in auto direct threads; do
    is "$(digest "$(at photos)" --io=$io)" "$wanted" "the digest by --io=$io"
done
expect 1 dl2-load bench "$(at photos)" --io=uring --image-size 8
said "a database is read by threads"
train() { expect 0 dl2-train --quiet -j 2 --threads 1 -a convnet --image-size 8 -b 4 -e 2 "$@"; }
weights() { tail -c +$(($(od -An -t u8 -N 8 "$1/checkpoint.safetensors" | tr -d ' ') + 9)) "$1/checkpoint.safetensors" | cksum; }
if ! sanitized; then
    train -d "$src" --out "$work/run1"
    train -d "$(at photos)" --out "$work/run2" --run-epochs 1.4
    train -d "$(at photos)" --out "$work/run2" --resume
    is "$(weights "$work/run2")" "$(weights "$work/run1")" "weights, resumed"
fi
expect 0 dl2-quality --quiet "$src" "$(at photos)"
if dl2-transcode --list codecs | grep -q "^png"; then
    expect 0 dl2-transcode --quiet --codec png "$(at photos)" "$work/variants"
    expect 0 dl2-transcode --codec png "$(at photos)" "$work/variants"
    grep -q '^png  *25  *0 ' "$work/out" || fail "made again: $(cat "$work/out")"
fi

# ---- Lost connections while reading: one backend, all, the whole server
kill_backends() { sql "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = 'dl2'"; }
wanted=$(dl2-load bench "$src" --image-size 8 -b 4 --epochs 2000 --digest --quiet | sed -n 's/^digest //p')
dl2-load bench "$(at photos)" --image-size 8 -b 4 --epochs 2000 --digest --quiet >"$work/digest" 2>"$work/err" &
load=$! killed=0
for i in 1 2 3 4; do
    sleep 0.2
    killed=$((killed + $(kill_backends)))
done
control -m immediate restart
wait $load || { cat "$work/err" >&2; fail "reading did not survive lost connections"; }
is "$(sed -n 's/^digest //p' "$work/digest")" "$wanted" "the digest after $killed lost connections"
[ "$killed" -gt 0 ] || echo "no connection was there to be killed"

# ---- A server that stays away: as long as the address says. A training then ends with a checkpoint, from which it comes
# to the same weights, whether the server went while training or while validating.
expect 1 dl2-load check "$(at photos)&timeout=soon"
said "timeout=soon: it is a number of seconds, 0 to 604800"
for word in timeout=60 access=sql key=id; do # where a table is written, also one that is up to date
    for how in copy --q=10; do
        expect 2 dl2-transcode $how "$src" "$(at photos)&$word"
        said "${word%=*}= has no effect on a table that is written: "
    done
done
interrupted() { # NAME OPTIONS...: trains, without the server from a moment in the middle on
    name=$1 epochs=100
    shift
    while :; do
        rm -rf "$work/$name"
        dl2-train -j 2 --threads 1 -a convnet --image-size 8 -b 4 -e $epochs --checkpoint-every 0 "$@" \
            --out "$work/$name" >"$work/out" 2>"$work/err" &
        pid=$!
        until grep -q '^epoch *2 ' "$work/out"; do
            kill -0 $pid 2>/dev/null || break
            sleep 0.05
        done
        start=$(date +%s)
        control -m immediate stop
        wait $pid && code=0 || code=$?
        took=$(($(date +%s) - start))
        start_server
        [ $code -eq 0 ] || break # else it ended before
        epochs=$((2 * epochs))
    done
    is $code 1 "exit status of a training whose server went away"
    [ $took -lt 15 ] || fail "timeout=1: waited for $took s"
    said 'the same command with --resume goes on from there'
    [ -e "$work/$name/checkpoint.safetensors" ] || fail "no checkpoint: $(cat "$work/err")"
    grep -q '"completed": false' "$work/$name/experiment_report.json" || fail 'no report, or a completed one'
    expect 0 dl2-train --quiet -j 2 --threads 1 -a convnet --image-size 8 -b 4 -e $epochs --checkpoint-every 0 "$@" \
        --out "$work/$name" --resume
    expect 0 dl2-train --quiet -j 2 --threads 1 -a convnet --image-size 8 -b 4 -e $epochs --checkpoint-every 0 "$@" \
        --out "$work/$name-whole"
    is "$(weights "$work/$name")" "$(weights "$work/$name-whole")" "weights of $name after the server was away"
}
if ! slow; then
    interrupted lost-training -d "$(at photos)&timeout=1" --skip-validation
    interrupted lost-validation -d "$src" --val "$(at photos)&timeout=1"
fi

# ---- Cut short while writing: nothing is left, the old table stays, and a rerun completes
mkdir -p "$work/many/a"
i=0
while [ $((i += 1)) -le 400 ]; do cp "$src/val/rose/1.ppm" "$work/many/a/$i.ppm"; done
left() { sql "select count(*) from pg_class where relname like 'dl2-new%' and relkind = 'r'"; }
for what in client server; do
    before=$(sql "select count(*), sum(number), min(sum) from photos")
    dl2-transcode --quiet --force copy "$work/many" "$(at photos)" >/dev/null 2>"$work/err" &
    copier=$!
    if [ $what = client ]; then
        sleep 0.02
        kill -9 $copier 2>/dev/null
    else
        control -m immediate restart
    fi
    wait $copier && done=yes || done=no
    [ $done = yes ] || [ "$(sql "select count(*), sum(number), min(sum) from photos")" = "$before" ] ||
        [ "$(sql "select count(*) from photos")" -eq 400 ] || fail "a killed $what left half a table"
    tries=0
    while [ "$(left)" -ne 0 ] && [ $((tries += 1)) -lt 50 ]; do sleep 0.1; done
    is "$(left)" 0 "tables left by a killed $what"
    copy "$work/many" "$(at photos)"
    is "$(sql "select count(*), sum(number) from photos")" "400|79800" "rows after a killed $what"
    copy --force "$src" "$(at photos)"
done

# ---- Tables of others
sql "create table mapped (id int primary key, jpeg bytea, class text, fold text)"
sql "insert into mapped select number, image, label, case split when 'train' then 'Training' else 'dev' end from photos"
map() { echo "$(at mapped)&key=id&image=jpeg$1"; }
expect 0 dl2-load check "$(map '&label=class&split=fold')"
said "train 13 images in 2 classes, val 12"
expect 0 dl2-load check "$(map '&label=class')"
said "25 images in 2 classes"
copy "$(map '&label=class&split=fold')" "$work/unmapped"
[ -e "$work/unmapped/train/0.ppm" ] || fail "no split in the names: $(ls "$work/unmapped")"
sql "update mapped set fold = 'holdout' where fold = 'dev' and id % 2 = 0"
expect 0 dl2-load check "$(map '&label=class&split=fold')"
said "train 13 images in 2 classes, val 6"; said "holdout 6"
expect 0 dl2-load bench "$(map '&label=class&split=fold')" --split holdout --image-size 8 -b 4 -e 1
copy "$(map '&label=class&split=fold')" "$(at named)"
is "$(sql "select count(*) from named where split = 'holdout' and key like 'holdout/%'")" 6 "rows of a split by another name"
sql "update mapped set fold = 'dev' where fold = 'holdout'"
expect 2 dl2-transcode --quiet copy "$src" "$(at mapped)"
said "in the way"
expect 2 dl2-transcode --quiet copy "$src" "$(map '')"
said "key= has no effect on a table that is written: dl2-transcode names the columns itself"
is "$(sql "select count(*) from mapped")" 25 "rows of another's table"

# Rows that are no samples are bad ones, each by its name; a row may go after it was listed.
sql "insert into mapped values (100, null, 'rose', 'train'), (101, '', 'rose', 'train'),
     (102, '\\x00ff', 'rose', 'train'), (103, 'no image', repeat('x', 1000000), 'train')"
sql "create view shown as select * from mapped where id <> 0 or current_query() like '%ORDER BY%'"
expect 1 dl2-load check "$(map '&label=class&split=fold')"
grep -q '29 images, 4 bad' "$work/out" || fail "$(cat "$work/out")"
said "mapped[100]: the image is null"
said "outside every class"
expect 1 dl2-load check "$(at shown)&key=id&image=jpeg"
said "shown[0]: the row is gone"
expect 1 dl2-load bench "$(map '&label=class&split=fold')" --image-size 8 -b 4 --epochs 2
said "mapped[101]: decode: an empty file"
for key in ../../up /etc/x a//b ''; do
    sql "drop table if exists keys; create table keys (key text, image bytea); insert into keys values ('$key', '')"
    expect 1 dl2-transcode --quiet copy "$(at keys)" "$work/nowhere"
    said "cannot name a sample"
done
sql "truncate keys; insert into keys values ('a', ''), ('a', '')"
expect 1 dl2-load check "$(at keys)"
said 'the key "a" comes twice'
sql "update photos set image = 'changed' where number = 3"
expect 1 dl2-load check "$(at photos)"
said "check sum differs"

# ---- Partitions of a table are those of as many ranks; other numbers are drawn
sql "create table parted (key text, image bytea, label text) partition by list (label)"
sql "create table part_b partition of parted for values in ('rose'); create table part_a partition of parted for values in ('tulip')"
sql "insert into parted select key, image, label from photos where number <> 3"
hop() { status=$1; shift; expect "$status" dl2-train --quiet -j 1 --threads 1 -a convnet --image-size 8 -b 4 -e 1 --skip-validation -d "$(at parted)" "$@"; }
if ! sanitized; then
    hop 0 --out "$work/hand" --partition 1/2
    hop 0 --out "$work/hand" --partition 2/2 --resume
    printf '{"name": "a"}\n{"name": "b", "seed": 5}\n' >"$work/configs"
    hop 0 --out "$work/hop" --hop --ranks 2 --hop-order fixed several --configs "$work/configs"
    is "$(weights "$work/hop/a")" "$(weights "$work/hand")" "weights of a model that hops"
fi
sql "update parted set image = 'bad' where label = 'rose'"
hop 0 --out "$work/first" --partition 1/2
! grep rose "$work/err" >&2 || fail "the first partition has roses"
hop 1 --out "$work/first" --partition 2/2 --resume
said "rose"
hop 0 --out "$work/drawn" --partition 1/3
said "rose"

# ---- What is wrong with an address; passwords stay secret
sql "create schema \"odd \"\"one\"; create table \"odd \"\"one\".\"t&%\" as select * from photos where number > 3"
expect 0 dl2-load check "$(at 'odd "one.t%26%25')"
# The first dot divides table=, unless schema= is there, which may have dots, and so may the table then.
sql "create schema \"v1.2\"; create table \"v1.2\".\"photos.small\" as select * from photos where number > 3"
expect 0 dl2-load check "$(at 'photos.small')&schema=v1.2"
expect 1 dl2-load check "$(at 'v1.2.photos.small')"
said 'there is no table "v1"."2.photos.small"; if a name has a dot, pass schema=SCHEMA beside table=NAME'
expect 0 dl2-transcode --quiet copy "$work/many/a" "$(at 'made.here')&schema=v1.2"
is "$(sql 'select count(*) from "v1.2"."made.here"')" 400 'rows of a table in a schema with a dot'
for case in "table=none:there is no table" "table=mapped:no column \"key\"" "user=dl2:which table?" \
    "table=photos&image=label:images are read from bytea alone" "table=photos&nonsense=1:nonsense"; do
    expect 1 dl2-load check "postgresql:///postgres?host=$home&user=dl2&${case%%:*}"
    said "${case#*:}"
done
for address in "postgresql://me:s3cret@localhost:1/db?table=t" "postgresql://me@localhost:1/db?password=s3cret&table=t" \
    "postgresql://me:s3cret%zz@localhost/db?table=t" "postgresql://me:s3cret@localhost/db"; do
    expect 1 dl2-load check "$address"
    ! grep -q "s3cret" "$work/out" "$work/err" || fail "the password is printed: $(cat "$work/err")"
    said "***"
done

# ---- What the server refuses is no row's fault; what another transaction rolled back is tried again
refusing() { # SQLSTATE CONDITION
    sql "create or replace function refuse() returns bool language plpgsql as
         \$\$ begin if $2 then raise exception 'not now' using errcode = '$1'; end if; return true; end \$\$"
}
sql "create sequence queries; create function refuse() returns bool language sql as 'select true'"
sql "create view refused as select * from named where current_query() like '%ORDER BY%' or refuse()"
for code in 42501 42P01 53200 57014; do
    refusing $code true
    for command in "check" "bench --image-size 8 -b 4 -e 1 --io=direct" "bench --image-size 8 -b 4 -e 1 --val"; do
        expect 1 dl2-load ${command%% *} "$(at refused)" $(echo "$command" | sed 's/^[a-z]*//')
        said "not now"
        ! grep -q "bad" "$work/out" || fail "rows are bad after an error $code: $(cat "$work/out")"
    done
done
refusing 40001 "nextval('queries') % 10 = 1"
expect 0 dl2-load check "$(at refused)"
refusing 22012 "nextval('queries') % 10 = 1"
expect 1 dl2-load check "$(at refused)"
grep -q ' bad' "$work/out" || fail "an error of one row is not its own: $(cat "$work/out")"

# ---- Children of a fork, such as workers of PyTorch's DataLoader, have connections of their own
# Not with a sanitizer: its allocator may stay locked in the child of a process with threads.
if [ -e "$builddir/python/dl2/_core.la" ] && ! sanitized; then
    . "$srcdir/tests/python/module.sh"
    "$PYTHON3" - "$(at named)" <<'END' || fail "what processes read that were forked"
import os, random, signal, sys, threading
import dl2

data = dl2.Dataset(sys.argv[1], "all")
expected = [data[i] for i in range(len(data))]

def read(seed):
    numbers = random.Random(seed)
    for _ in range(400):
        i = numbers.randrange(len(data))
        if data[i] != expected[i]:
            return False
    return True

children = []
for seed in range(3):
    threads = [threading.Thread(target=read, args=(n,)) for n in range(2)]  # that use connections at the fork
    for thread in threads:
        thread.start()
    child = os.fork()
    if not child:
        signal.alarm(60)
        good = read(seed)
        data.close()
        os._exit(not good)
    children.append(child)
    good = read(9)
    for thread in threads:
        thread.join()
codes = [os.waitpid(child, 0)[1] for child in children]
sys.exit(codes != [0, 0, 0] or not good or not read(5))
END
fi
exit 0
