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
# Then the same by --batching completion, warm, where the batches are of the images that are ready first.
#
# Then training, warm: images/s and CPU ms an image of the trainer and of the server, by one model (strict, and
# completion), by eight that share each batch in one process, and by eight that hop over two ranks. Eight models count
# each image eight times. Where the extension of PostgreSQL is built, the row "in-database" trains one model in one
# backend, and eight in two (dl2-train --hop --in-database). A process has two threads and two workers, of two ranks
# each has one. $TRAIN has dl2-train's options: -a resnet10 --image-size 64 -b 32 unless it is set.
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
    postgresql) dl2-transcode --quiet copy "$data" "$place" >/dev/null ;;
    pages) ;; # the same table
    *) dl2-transcode --quiet copy --container=$way "$data" "$place" >/dev/null ;;
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
        run "$way" completion --batching completion "$@"
    done
done
# size WAY: bytes on disk.
size() {
    case $1 in
    postgresql | pages) sql "select pg_total_relation_size('photos')" ;;
    *) du -s --block-size=1 "$work/$1" | cut -f 1 ;;
    esac
}
printf '%-12s %14s %12s %10s %12s %10s %12s %10s\n' storage bytes "cold img/s" "CPU ms" "warm img/s" "CPU ms" \
    completion "CPU ms"
best() { sort -gr "$work/$way.$1" | head -n 1 | cut -d ' ' -f 1; }
least() { cut -d ' ' -f 2 "$work/$way.$1" | sort -g | head -n 1; }
for way in $ways; do
    printf '%-12s %14s %12s %10s %12s %10s %12s %10s\n' $way "$(size $way)" "$(best cold)" "$(least cold)" \
        "$(best warm)" "$(least warm)" "$(best completion)" "$(least completion)"
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
# train WAY NAME MODELS OPTION...: adds "IMAGES_PER_SECOND CPU_MS" to $work/WAY.NAME
train() {
    way=$1 name=$2 models=$3 place=$1
    shift 3
    [ "$way" != in-database ] || place=postgresql
    rm -rf "$work/run"
    own_cpu >"$work/own"
    ticks=$(server_cpu) start=$(date +%s%N)
    # shellcheck disable=SC2086
    dl2-train --quiet -d "$(cat "$work/$place.place")" -e 1 --skip-validation --checkpoint-every 0 \
        ${TRAIN:--a resnet10 --image-size 64 -b 32} --out "$work/run" "$@" >/dev/null
    wall=$(($(date +%s%N) - start))
    own_cpu >>"$work/own"
    sleep 0.3 # for the backends to end
    report=$(find "$work/run" -name experiment_report.json | head -n 1)
    sed -n 's/.*"train_images": *\([0-9]*\).*/\1/p' "$report" | cat "$work/own" - |
        awk -v models="$models" -v wall=$wall -v ticks=$(($(server_cpu) - ticks)) -v hz="$(getconf CLK_TCK)" '
            { line[NR] = $1 }
            END { images = models * line[3]
                  printf "%.1f %.3f\n", 1e9 * images / wall, 1000 * (line[2] - line[1] + ticks / hz) / images }' \
            >>"$work/$way.$name"
}
for round in $(seq "${TRAIN_ROUNDS:-$rounds}"); do
    for way in $ways; do
        train $way strict 1 --threads 2 -j 2
        train $way by-completion 1 --threads 2 -j 2 --batching completion
        train $way shared 8 several --configs "$work/8.configs" --threads 2 -j 2
        train $way hopping 8 several --configs "$work/8.configs" --threads 1 -j 1 --hop --ranks 2
    done
    [ -z "$program" ] || {
        train in-database strict 1 several --configs "$work/1.configs" --hop --ranks 1 --in-database
        train in-database hopping 8 several --configs "$work/8.configs" --hop --ranks 2 --in-database
    }
done
[ -z "$program" ] || ways="$ways in-database"
printf '\n%-12s %18s %10s %18s %10s %18s %10s %18s %10s\n' training "1 model img/s" "CPU ms" "completion img/s" "CPU ms" \
    "8 shared img/s" "CPU ms" "8 hopping img/s" "CPU ms"
for way in $ways; do
    printf '%-12s' $way
    for name in strict by-completion shared hopping; do
        if [ -e "$work/$way.$name" ]; then
            printf ' %18s %10s' "$(best $name)" "$(least $name)"
        else
            printf ' %18s %10s' - -
        fi
    done
    echo
done
