#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The same photographs by every way to store them: folder, tar, gulp, PostgreSQL by SQL and from its files (pages). In
# turns, warm and cold:
#
#     access.sh DATASET [ROUNDS [OPTION...]]
#
# OPTION... are those of `dl2-load bench`, such as --image-size 224 -j 2. A line for each way: bytes on disk, images/s
# of one epoch (the best of ROUNDS) and CPU ms an image (the least) of the loader and, with PostgreSQL, of the server.
# Cold means that files are evicted from the page cache, and that the server is started anew. Copies and server lie in
# a folder of their own below ${TMPDIR:-/tmp}. Run it where dl2-load is on the PATH, on a machine that does nothing
# else; numbers of a busy one are worthless. Then, if tests/bench/bench_dataset is built, how fast one thread gets the
# bytes alone, undecoded and warm, beside what COPY gives: the best of ROUNDS.
#
# Then training, warm: images/s of one model in one process, of eight that hop over two, and CPU ms an image of the
# trainer and the server. Eight models count each image eight times. Where the extension of PostgreSQL is built, the
# row "in database" trains in one backend, and in two (dl2-train --hop --in-database). Each process and backend has
# one thread. $TRAIN has dl2-train's options: -a convnet --image-size 64 -b 32 unless it is set.
set -eu
srcdir=$(cd "$(dirname "$0")/../.." && pwd)
data=${1:?usage: access.sh DATASET [ROUNDS [OPTION...]]} rounds=${2:-3}
shift; [ $# -eq 0 ] || shift
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/postgres/server.sh"
set -e
builddir=${builddir:-$(dirname "$(command -v dl2-load)")} PG_CONFIG=${PG_CONFIG:-pg_config} program=
if [ -e "$builddir/postgres/dl2.la" ]; then
    start_extension
    program=$home/root$bindir/postgres
else
    find_server
    make_server
    start_server
fi

ways="folder tar gulp postgresql pages"
for way in $ways; do
    case $way in
    folder | tar | gulp) place=$work/$way ;;
    postgresql) place=$(at photos) ;;
    pages) place="$(at photos)&access=pages" ;;
    esac
    echo "$place" >"$work/$way.place"
    case $way in
    postgresql) dl2-transcode --quiet --copy "$data" "$place" >/dev/null ;;
    pages) ;; # the same table
    *) dl2-transcode --quiet --copy --container=$way "$data" "$place" >/dev/null ;;
    esac
done
# server_cpu: clock ticks of the server and of its processes, also of those that have ended.
server_cpu() {
    pid=$(head -n 1 "$home/data/postmaster.pid")
    for stat in /proc/"$pid"/stat $(sed 's:\([0-9][0-9]*\):/proc/\1/stat:g' "/proc/$pid/task/$pid/children"); do
        cat "$stat" 2>/dev/null || true
    done | awk -v pid="$pid" '{ ticks += $14 + $15; if ($1 == pid) ticks += $16 + $17 } END { print ticks + 0 }'
}
# evict: the data files of the server, which is then started anew.
evict() {
    control -m fast stop
    find "$home/data/base" -type f -exec dd if={} iflag=nocache count=0 status=none \;
    start_server ${program:+-p "$program"}
}
# run WAY warm|cold OPTION...: adds "IMAGES_PER_SECOND CPU_MS" to $work/WAY.TEMPERATURE
run() {
    way=$1 temperature=$2 epochs=2 cold=
    shift 2
    [ "$temperature" = warm ] || epochs=1
    if [ "$temperature" = cold ]; then
        case $way in postgresql | pages) evict ;; *) cold=--cold ;; esac
    fi
    before=$(server_cpu)
    # shellcheck disable=SC2086
    dl2-load bench "$(cat "$work/$way.place")" $cold --epochs $epochs --json "$work/out.json" --quiet "$@" >/dev/null
    sleep 0.3 # for the backends to end
    awk -v ticks=$(($(server_cpu) - before)) -v hz="$(getconf CLK_TCK)" -v epochs=$epochs '
        /"per_epoch"/ { inside = 1 } /"scaling"/ { inside = 0 }
        inside && /"(seconds|cpu_seconds|images)"/ { gsub(/[",:]/, ""); last[$1] = $2 }
        END { images = last["images"]
              printf "%.1f %.3f\n", images / last["seconds"],
                     1000 * (last["cpu_seconds"] + ticks / hz / epochs) / images }' "$work/out.json" >>"$work/$way.$temperature"
}
for round in $(seq "$rounds"); do
    for way in $ways; do
        for temperature in cold warm; do run "$way" $temperature "$@"; done
    done
done
# size WAY: bytes on disk.
size() {
    case $1 in
    postgresql | pages) sql "select pg_total_relation_size('photos')" ;;
    *) du -s --block-size=1 "$work/$1" | cut -f 1 ;;
    esac
}
printf '%-12s %14s %12s %10s %12s %10s\n' storage bytes "cold img/s" "CPU ms" "warm img/s" "CPU ms"
best() { sort -gr "$work/$way.$1" | head -n 1 | cut -d ' ' -f 1; }
least() { cut -d ' ' -f 2 "$work/$way.$1" | sort -g | head -n 1; }
for way in $ways; do
    printf '%-12s %14s %12s %10s %12s %10s\n' $way "$(size $way)" "$(best cold)" "$(least cold)" "$(best warm)" "$(least warm)"
done

reader=$builddir/tests/bench/bench_dataset
if [ -x "$reader" ]; then
    bytes=$(sql "select sum(octet_length(image)) from photos")
    for round in $(seq "$rounds"); do
        start=$(date +%s%N)
        psql -qAt -h "$home" -U dl2 -d postgres -c "copy photos (image) to stdout (format binary)" >/dev/null
        echo "$bytes $(($(date +%s%N) - start))" | awk '{ printf "%.0f\n", 1000 * $1 / $2 }' >>"$work/copy.raw"
        for way in $ways; do
            "$reader" read "$(cat "$work/$way.place")" | sed -n 's/.*; \([0-9]*\) MB.s in all/\1/p' >>"$work/$way.raw"
        done
    done
    printf '\n%-12s %14s\n' "bytes alone" MB/s
    for way in copy $ways; do printf '%-12s %14s\n' $way "$(sort -gr "$work/$way.raw" | head -n 1)"; done
fi

for i in 1 2 3 4 5 6 7 8; do echo "{\"name\": \"model-$i\", \"lr\": 0.00$i}"; done >"$work/8.configs"
head -n 1 "$work/8.configs" >"$work/1.configs"
# own_cpu: seconds of the processes that have ended.
own_cpu() {
    times >"$work/times"
    tail -n 1 "$work/times" | tr 'ms' '  ' | awk '{ print $1 * 60 + $2 + $3 * 60 + $4 }'
}
# train WAY MODELS RANKS: adds "IMAGES_PER_SECOND CPU_MS" to $work/WAY.MODELS
train() {
    way=$1 place=$1 server=
    [ "$way" != in-database ] || { place=postgresql; server=--in-database; }
    rm -rf "$work/run"
    own_cpu >"$work/own"
    ticks=$(server_cpu) start=$(date +%s%N)
    # shellcheck disable=SC2086
    dl2-train --quiet -d "$(cat "$work/$place.place")" -e 1 --skip-validation --checkpoint-every 0 --threads 1 -j 1 \
        --hop --ranks "$3" $server --configs "$work/$2.configs" ${TRAIN:--a convnet --image-size 64 -b 32} \
        --out "$work/run" >/dev/null
    wall=$(($(date +%s%N) - start))
    own_cpu >>"$work/own"
    sleep 0.3 # for the backends to end
    sed -n 's/.*"train_images": *\([0-9]*\).*/\1/p' "$work/run/model-1/experiment_report.json" | cat "$work/own" - |
        awk -v models="$2" -v wall=$wall -v ticks=$(($(server_cpu) - ticks)) -v hz="$(getconf CLK_TCK)" '
            { line[NR] = $1 }
            END { images = models * line[3]
                  printf "%.1f %.3f\n", 1e9 * images / wall, 1000 * (line[2] - line[1] + ticks / hz) / images }' \
            >>"$work/$way.$2"
}
[ -z "$program" ] || ways="$ways in-database"
for round in $(seq "$rounds"); do
    for way in $ways; do
        train $way 1 1
        train $way 8 2
    done
done
printf '\n%-12s %16s %10s %18s %10s\n' training "1 model img/s" "CPU ms" "8 models img/s" "CPU ms"
for way in $ways; do
    printf '%-12s %16s %10s %18s %10s\n' $way "$(best 1)" "$(least 1)" "$(best 8)" "$(least 8)"
done
