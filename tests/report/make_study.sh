# SPDX-License-Identifier: BSD-2-Clause
# Sourced: writes the JSON files of a study by hand, so that the report's tests know what must come out.
# dl2-transcode and the others are not run.

# Every report is the first look at its study, but in a test of looks (keep_plans).
if [ -z "${keep_plans:-}" ]; then
    real=$(command -v dl2-report)
    mkdir "$work/bin"
    printf '#!/bin/sh\nfind "%s" -name plan.json -exec rm {} +\nexec "%s" "$@"\n' "$work" "$real" >"$work/bin/dl2-report"
    chmod +x "$work/bin/dl2-report"
    PATH=$work/bin:$PATH
fi

# shown FILE: $said is the file, or of a page its text.
shown() {
    said=$1
    case $1 in *.html)
        need_python json python3
        said=$work/${1##*/}.txt
        page_text "$1" >"$said" || fail "$1: see above" ;;
    esac
}

# says FILE WORDS...: each of them is in the file. silent FILE WORDS...: none of them is.
says() {
    shown "$1"; shift
    for words in "$@"; do
        grep -qF -- "$words" "$said" || { cat "$said" >&2; fail "${said##*/} does not say '$words'"; }
    done
}
silent() {
    shown "$1"; shift
    for words in "$@"; do
        ! grep -qF -- "$words" "$said" || fail "${said##*/} says '$words'"
    done
}

# variant FOLDER NAME CODEC QUALITY BYTES PSNR SSIM LOAD_RATE [FAILED]: 1000 images of 100 x 100, 20 MB
variant() {
    mkdir -p "$1/variants/$2" "$1/quality" "$1/load"
    cat >"$1/variants/$2/dl2-variant.json" <<JSON
{"schema": "dl2-variant/1", "variant": "$2", "codec": "$3", "quality": $4, "complete": true,
 "source": "somewhere", "options": {}, "encoder": {"quality": $4}, "libraries": {"lib$3": "1.2"},
 "images": 1000, "pixels": 10000000, "bytes": $5, "bits_per_pixel": $(awk "BEGIN { print 8 * $5 / 1e7 }"),
 "source_bytes": 20000000, "encode_cpu_seconds": 1.5, "decode_cpu_seconds": 0.5,
 "failed": [${9:-}], "ignored": []}
JSON
    cat >"$1/quality/$2.json" <<JSON
{"schema": "dl2-quality/1", "reference": "somewhere", ${reference_files:+"\"reference_files\": $reference_files,"} "definitions": {"ssim": "Wang 2004"},
 "titles": {"psnr_rgb": "PSNR RGB", "ssim": "SSIM"}, "units": {"psnr_rgb": "dB", "ssim": ""}, "variants": [
 {"variant": "$2", "path": "x", "codec": "$3", "quality": $4, "images": 1000, "pixels": 10000000,
  "bytes": $5, ${header_bytes:+"\"header_bytes\": $header_bytes, \"above_8_bits\": 7, \"at_16_bits\": 6,"} "bits_per_pixel": 1, "reference_bytes": 20000000, "cpu_seconds": 1,
  "metrics": {"psnr_rgb": {"mean": $6, "median": $6, "p5": $6, "min": $6, "of_mean_mse": $6},
              "ssim": {"mean": $7, "median": $7, "p5": $7, "min": $7}},
  "missing": [], "extra": [${extra:-}], "mismatched": [], "failed": [], "per_image": []}]}
JSON
    load "$1" "$2" "$8"
}

# load FOLDER NAME LOAD_RATE: with batches of $batch (64) images of $loaded (1000)
load() {
    mkdir -p "$1/load"
    cat >"$1/load/$2.json" <<JSON
{"schema": "dl2-load/1", "variant": "$2", "images": ${loaded:-1000}, "batch": ${batch:-64}, "images_per_second": $3,
 "images_per_core_second": $3, "bad": [],
 "machine": {"cpu": "A <fast> & \"quoted\" processor", "cores": 2, "memory_bytes": 8000000000,
             "system": "Linux", "simd": "avx2"}, "versions": {"dl2": "0.1.0"}}
JSON
}

# training FOLDER NAME ARCH SEED TOP1 [COMPLETED]: TOP1 is a fraction. Variables may change it: epochs
# (2), trainers (1; empty: not recorded), images and val_images (800, 200), paths and sets (arguments' val
# and what comes after the first of "final", as JSON), comparable (the report's list, as JSON; none),
# predictions (the name of their file; none).
training() {
    mkdir -p "$1/train/$2/$3/seed-$4"
    trainers_field=", \"trainers\": ${trainers-1}"
    [ -n "${trainers-1}" ] || trainers_field=
    cat >"$1/train/$2/$3/seed-$4/experiment_report.json" <<JSON
{"schema": "dl2-experiment/1", "variant": "$2", "arch": "$3", "seed": $4, "device": "cpu",
 "arguments": {"data": "data/$2", "epochs": ${epochs:-2}, "image-size": 32, "val": [${paths:-}]${trainers_field}},
 ${comparable:+"\"comparable\": $comparable,"}
 "versions": {"dl2": "0.1.0"}, "machine": {"cpu": "c", "cores": 2},
 "classes": 10, "train_images": ${images:-800}, "val_images": ${val_images:-200}, "train_bytes": 1, "parameters": 1,
 "epochs": [{"epoch": 0, "val": [{"name": "$2", "images": 200, "loss": 2, "top1": 0.25, "top5": 0.5}],
             "seconds": 2, "images_per_second": 100, "data_stall": 0.5, "joules_per_image": 9},
            {"epoch": 1, "val": [{"name": "$2", "images": 200, "loss": 1.$4, "top1": $5, "top5": 1}],
             "seconds": 1, "images_per_second": 800, "data_stall": 0.0625, "joules_per_image": 0.125}],
 "final": [{"name": "$2", "images": ${val_images:-200}, "loss": 1.$4, "top1": $5, "top5": 1${predictions:+, \"predictions\": \"$predictions\"}}${sets:-}],
 "card": {"name": "A <card> & more", "memory_bytes": 80000000000, "driver": "580"},
 "timeline": {"period_seconds": 1, "seconds": [0.5, 1, 2], "images": [50, 150, 950], "data_wait_seconds": [0.25, 0.5, 0.5],
              "cpu_percent": [50, 100, 200], "rss_bytes": [1e9, 2e9, 2e9], "card_percent": [0, 90, 95],
              "card_memory_bytes": [1e9, 4e9, 4e9], "card_watts": [100, 250, null],
              "network_received_bytes": [0, 1e6, 5e6], "network_sent_bytes": [5e5, 1e6, 1e6],
              "machine_cpu_percent": [100, 150, 200], "server_cpu_percent": [20, 40, 60],
              "machine_disk_read_bytes": [1e6, 2e6, 2e6], "machine_disk_write_bytes": [0, 0, 3e6]},
 "rank_timelines": [{}, {"period_seconds": 1, "seconds": [1, 2], "images": [10, 30]}],
 "bad": [], "completed": ${6:-true}}
JSON
}

# trainings FOLDER NAME ARCH TOP1...: of seeds 1, 2 and so on
trainings() {
    folder=$1 name=$2 network=$3 number=0
    shift 3
    for top1 in "$@"; do
        number=$((number + 1))
        training "$folder" "$name" "$network" "$number" "$top1"
    done
}

# two_jpegs FOLDER [FAILED]: the original, and a small and a middle JPEG variant, the latter with what failed
two_jpegs() {
    load "$1" raw 900
    variant "$1" jpeg-10 jpeg 10 700000 26.125 0.78 3300
    variant "$1" jpeg-50 jpeg 50 2000000 30.9 0.915 2900 "${2:-}"
    trainings "$1" raw small 0.701 0.702 0.703
}

# evaluation FOLDER NAME ARCH SEED SET:TOP1...: what `make matrix` leaves beside a training.
evaluation() {
    evaluated=$1/train/$2/$3/seed-$4/evaluation
    mkdir -p "$evaluated"
    {
        printf '{"schema": "dl2-evaluation/1", "variant": "%s", "arch": "%s", "seed": %s, "val": [' "$2" "$3" "$4"
        shift 4
        separator=
        for set in "$@"; do
            printf '%s{"name": "%s", "images": 200, "loss": 1, "top1": %s, "top5": 0.9}' \
                "$separator" "${set%:*}" "${set#*:}"
            separator=', '
        done
        echo '], "seconds": 1, "bad": []}'
    } >"$evaluated/evaluation_report.json"
}

# timeline FOLDER HOST PID STEP START SECONDS: two samples, of a machine that was half busy and read 100 MB between them
timeline() {
    mkdir -p "$1/timelines"
    cat >"$1/timelines/dl2-study-$2-$3.json" <<JSON
{"schema": "dl2-timeline/1", "program": "dl2-study", "command": "$4", "host": "$2", "started": $5, "machine": {"cores": 2}, "complete": true,
 "timeline": {"period_seconds": 1, "seconds": [0, $6], "cpu_percent": [7, 7], "rss_bytes": [1e9, 1e9], "machine_cpu_percent": [null, 100],
              "server_cpu_percent": [0, ${server:-0}], "machine_disk_read_bytes": [0, 1e8], "machine_disk_write_bytes": [0, 0],
              "network_received_bytes": [0, 0], "network_sent_bytes": [0, 0], "disk_read_bytes": [0, 0], "disk_write_bytes": [0, 0]}}
JSON
}

# survey FOLDER: of 9 images
survey() {
    cat >"$1/survey.json" <<JSON
{"schema": "dl2-survey/1", "images": 9, "classes": 2, "splits": {"train": 6, "val": 3},
 "formats": {"jpeg": {"images": 8, "bytes": 800, "pixels": 1600}, "png": {"images": 1, "bytes": 9, "pixels": 9}},
 "quality": {"min": 80.0, "p95": 89.5, "max": 90.0, "histogram": [3, 0, 0, 0, 5]},
 "width": {"min": 32.0, "max": 32.0, "histogram": [9]},
 "duplicates": {"groups": 2, "images": 4, "across_splits": 1}, "bad": [{"path": "x", "reason": "y"}]}
JSON
}

# png FILE BYTES: starts like a PNG file; the report looks at no more.
png() {
    { printf '\211PNG\r\n\032\n'; head -c "$2" /dev/urandom; } >"$1"
}

# crops FOLDER BYTES VARIANT...: two images of files of that size
crops() {
    crops=$1/crops bytes=$2
    mkdir -p "$crops"
    shift 2
    {
        printf '{"schema": "dl2-crops/2", "reference": "r", "metrics": ["ssim", "psnr_rgb"], "crops": ['
        separator=
        for kind in median worst; do
            png "$crops/$kind.png" "$bytes"
            printf '%s{"of": [{"metric": "ssim", "kind": "%s"}, {"metric": "psnr_rgb", "kind": "%s"}], ' "$separator" $kind $kind
            printf '"key": "val/<%s>", "x": 0, "y": 0, "width": 128, "height": 96, ' $kind
            printf '"original": "%s.png", "variants": [' $kind
            separator=
            for name in "$@"; do
                png "$crops/$kind-$name.png" "$bytes"
                printf '%s{"variant": "%s", "file": "%s-%s.png", "scores": {"ssim": 0.8125, "psnr_rgb": null}}' \
                    "$separator" "$name" $kind "$name"
                separator=', '
            done
            printf ']}'
            separator=', '
        done
        echo ']}'
    } >"$crops/crops.json"
}

# rate FOLDER NETWORK NAME ROUND RATE [FOLDER_BELOW]: a measurement of training; with NETWORK load, of
# the loader, per core. With batches of $batch (64).
rate() {
    mkdir -p "$1/${6:-throughput}/$2/$3"
    if [ "$2" = load ]; then
        cat >"$1/${6:-throughput}/$2/$3/round-$4.json" <<JSON
{"schema": "dl2-load/1", "variant": "$3", "images": 1000, "batch": ${batch:-64}, "resident": 0.5,
 "config": {"cache_bytes": ${cache:-0}}, "machine": {"cpu": "c", "cores": 2},
 "per_epoch": [{"seconds": 9, "cpu_seconds": 9, "images": 9, "bytes_read": 9},
               {"seconds": 0.5, "cpu_seconds": 1, "images": $5, "bytes_read": ${read:-5000}}]}
JSON
    else
        cat >"$1/${6:-throughput}/$2/$3/round-$4.json" <<JSON
{"schema": "dl2-rate/1", "variant": "$3", "arch": "$2", "seed": $4,
 "arguments": {"data": "data/$3", "seed": $4, "batch": ${batch:-64}}, "machine": {"cpu": "c", "cores": 2},
 "measured": {"seconds": 2, "images": $5, "images_per_second": $5, "data_stall": 0.0625, "joules_per_image": 0.125}}
JSON
    fi
}
