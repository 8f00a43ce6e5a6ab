#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# DL2_TIMELINE: each program writes how the machine was used, also if it fails or is killed; a folder that can't be
# written is an error at the start.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/report/make_study.sh"
need_python json python3
for part in train val; do
    for class in a b; do
        for i in 1 2; do picture "$work/data/$part/$class/$i.ppm" 16 16 "$i" || exit 99; done
    done
done
folder=$work/in/timelines
# record PROGRAM EXPRESSION: the only file is this program's, and the expression holds of it, d
record() {
    set -- "$1" "$2" "$folder/$1"-*.json
    [ $# -eq 3 ] && [ "$(ls "$folder")" = "${3##*/}" ] || fail "the files are $(ls "$folder")"
    "$PYTHON3" - "$@" <<'END' || { cat "$3" >&2; fail "$1: not $2"; }
import json, os, sys, time
d = json.load(open(sys.argv[3]))
t = d["timeline"]
assert d["schema"] == "dl2-timeline/1" and d["program"] == sys.argv[1], d
assert abs(time.time() - d["started"]) < 3600 and d["machine"]["cores"] > 0, d
assert sys.argv[3].endswith(f"{sys.argv[1]}-{os.uname().nodename[:63]}-" + sys.argv[3].rsplit("-", 1)[1]) and d["host"] == os.uname().nodename[:63], d
assert len(t["seconds"]) == len(t["machine_cpu_percent"]) == len(t["machine_disk_read_bytes"]) and "images" not in t, t
assert eval(sys.argv[2]), d
END
    rm -r "$folder"
}
logged() { DL2_TIMELINE=$folder expect "$@"; }
whole='d["complete"] and t["seconds"] and t["rss_bytes"][-1] > 0 and d["command"] =='
logged 0 dl2-transcode --quiet copy --container=tar "$work/data" "$work/copy"
record dl2-transcode "$whole 'copy'"
logged 0 dl2-quality --quiet "$work/data" "$work/data"
record dl2-quality "$whole 'score'"
logged 0 dl2-load --quiet check "$work/data"
record dl2-load "$whole 'check'"
logged 0 dl2-train --quiet --device ref --arch convnet --image-size 8 --epochs 1 --batch 2 --data "$work/data" --out "$work/run"
record dl2-train "$whole 'run'"
# One that fails, and one that is killed.
logged 1 dl2-load check "$work/none"
record dl2-load "$whole 'check'"
DL2_TIMELINE=$folder dl2-load --image-size 8 --batch 2 bench -e 1000000 "$work/data" >/dev/null 2>&1 & killed=$!
for try in $(seq 300); do
    cat "$folder"/*.json 2>/dev/null | tr -d '\n ' | grep -q '"seconds":\[[0-9]' && break
    sleep 0.1
done
kill -KILL $killed
wait $killed 2>/dev/null
record dl2-load "not d['complete'] and t['seconds'] and d['command'] == 'bench'"

# ---- Folders that can't be written
: >"$work/file"
DL2_TIMELINE=$work/file/x expect 1 dl2-transcode copy --container=tar "$work/data" "$work/again"
said "dl2-transcode: DL2_TIMELINE: $work/file/x"
[ ! -e "$work/again" ] || fail "the work was begun"
DL2_TIMELINE='' expect 0 dl2-load --quiet check "$work/data"
# One that goes away meanwhile
two_jpegs "$work/study"
printf '#!/bin/sh\nrm -rf "%s"\n' "$folder" >"$work/away"
chmod +x "$work/away"
logged 0 dl2-report --gnuplot "$work/away" "$work/study" -o "$work/page/report.html"
said "the timeline is incomplete: $folder/dl2-report-"
[ ! -e "$folder" ] || fail "it did not go away"
