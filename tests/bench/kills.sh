#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Random kills of PostgreSQL and of its clients, while a table is written and while it is read:
#
#     kills.sh [KILLS [SEED]]
#
# Half of KILLS (200) are during writing, half during reading; each in turn kills the client (in writing), a backend
# (kill -9, after which the server restarts itself) or the whole server (immediate shutdown and start). After each
# kill in writing the table is the old one or the new one, whole, no other is left, and a rerun completes. Reading, by
# SQL and from the server's files in turns, always gives the same digest. Ends with the counts, with status 1 at the
# first that is not so.
set -u
srcdir=$(cd "$(dirname "$0")/../.." && pwd)
kills=${1:-200} seed=${2:-1}
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/postgres/server.sh"
find_server
make_server
start_server

# draw N: a number from 0 to N - 1 in $drawn.
draw() { seed=$(((seed * 1103515245 + 12345) % 2147483648)); drawn=$((seed / 65536 % $1)); }
# retry COMMAND...: for as long as a server restarts by itself.
retry() {
    tries=0
    until ("$@") >"$work/retried" 2>&1; do
        [ $((tries += 1)) -lt 100 ] || { cat "$work/retried" >&2; fail "$*"; }
        sleep 0.1
    done
    cat "$work/retried"
}
ask() { retry psql -qAt -h "$home" -U dl2 -d postgres -c "$1"; }
backend() { psql -qAt -h "$home" -U dl2 -d postgres -c "select pid from pg_stat_activity where application_name = 'dl2' limit 1" 2>/dev/null; }
# strike client|backend|server CLIENT
strike() {
    case $1 in
    client) kill -9 "$2" 2>/dev/null ;;
    backend) pid=$(backend); [ -z "$pid" ] || kill -9 "$pid" 2>/dev/null ;;
    server) retry control -m immediate restart ;;
    esac
}
for set in old new; do
    for i in $(seq 300); do
        picture "$work/$set/class-$((i % 3))/$i.ppm" 24 16 "$i" # of one content,
        [ $set = old ] || echo "$i" >>"$work/$set/class-$((i % 3))/$i.ppm" # and of another
    done
done
state() { ask "select count(*), count(distinct key), sum(sum), sum(octet_length(image)) from photos"; }
for set in new old; do
    begin=$(date +%s%N)
    dl2-transcode --quiet --force copy "$work/$set" "$(at photos)" >/dev/null || fail "copy"
    took=$((($(date +%s%N) - begin) / 1000000 + 1)) # ms
    state >"$work/$set.state"
done

hits="client 0 backend 0 server 0" complete=0
count() { hits=$(echo "$hits" | awk -v what="$1" '{ for (i = 1; i < NF; i += 2) if ($i == what) $(i + 1)++; print }'); }
for i in $(seq $((kills / 2))); do
    draw 3; what=$(echo client backend server | cut -d ' ' -f $((drawn + 1)))
    dl2-transcode --quiet --force copy "$work/new" "$(at photos)" >/dev/null 2>&1 &
    client=$!
    draw $took; sleep "$(echo $drawn | awk '{ print $1 / 1000 }')"
    strike "$what" $client
    wait $client 2>/dev/null && complete=$((complete + 1))
    count "$what"
    now=$(state)
    [ "$now" = "$(cat "$work/old.state")" ] || [ "$now" = "$(cat "$work/new.state")" ] || fail "kill $i ($what): the table is $now"
    tries=0
    while [ "$(ask "select count(*) from pg_class where relname like 'dl2-new%' and relkind = 'r'")" != 0 ]; do
        [ $((tries += 1)) -lt 100 ] || fail "kill $i ($what): a table is left"
        sleep 0.1
    done
    retry dl2-transcode --quiet copy "$work/new" "$(at photos)" >/dev/null
    [ "$(state)" = "$(cat "$work/new.state")" ] || fail "kill $i ($what): a rerun did not complete"
    retry dl2-transcode --quiet --force copy "$work/old" "$(at photos)" >/dev/null
done
echo "writing: $hits kills, $complete runs ended well all the same; nothing lost, nothing double"

hits="client 0 backend 0 server 0"
read_table() { dl2-load bench "$1" --image-size 8 -b 8 --epochs 100 --digest --quiet | sed -n 's/^digest //p'; }
wanted=$(read_table "$work/old")
[ -n "$wanted" ] || fail "no digest"
i=0 access=sql
while [ $i -lt $((kills - kills / 2)) ]; do
    read_table "$(at photos)&access=$access" >"$work/digest" 2>"$work/err" &
    client=$!
    # A server that was never there is not waited for.
    while kill -0 $client 2>/dev/null && [ -z "$(backend)" ]; do sleep 0.02; done
    while kill -0 $client 2>/dev/null && [ $i -lt $((kills - kills / 2)) ]; do
        draw 2; what=$(echo backend server | cut -d ' ' -f $((drawn + 1)))
        strike "$what"
        count "$what"
        i=$((i + 1))
        draw 300; sleep "$(echo $drawn | awk '{ print $1 / 1000 }')"
    done
    wait $client 2>/dev/null
    [ "$(cat "$work/digest")" = "$wanted" ] || { cat "$work/err" >&2; fail "kill $i: the digest differs"; }
    case $access in sql) access=pages ;; pages) access=sql ;; esac
done
echo "reading: $hits kills; the digest was the same each time"
