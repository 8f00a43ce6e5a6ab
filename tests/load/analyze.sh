#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# dl2-load analyze: where training's time goes for devices slow and fast, which dataset it chooses, and what
# it says where it can't. No rate is checked against a clock: only against each other, where they differ a lot.
. "$srcdir/tests/lib.sh"

# pictures FOLDER WIDTH HEIGHT: twelve of them in two classes, the same names everywhere
pictures() {
    for class in a b; do
        mkdir -p "$1/train/$class"
        for n in 1 2 3 4 5 6; do
            {
                printf 'P6\n%d %d\n255\n' "$2" "$3"
                head -c $(($2 * $3 * 3)) /dev/zero | tr '\0' "$n"
            } >"$1/train/$class/$n.ppm"
        done
    done
}
# value FIELD: the first of that name in the report
value() { sed -n "s/^ *\"$1\": \"*\([^\",]*\).*/\1/p" "$work/a.json" | head -n 1; }
analyze() { dl2-load analyze --quiet --seconds 0.2 --json "$work/a.json" "$@"; }
shape="-b 4 -i 16"

pictures "$work/small" 30 20
pictures "$work/large" 640 480

# A device that is slower than anything: it never waits, whatever the dataset, and the smallest will do.
expect 0 analyze "$work/large" "$work/small" --device-rate 5 $shape
[ "$(grep -c 'the device never waits' "$work/out")" = 2 ] || fail "$(cat "$work/out")"
grep -q '^The smallest within 5% of it is small: ' "$work/out" || fail "$(cat "$work/out")"
[ "$(value schema)" = dl2-load-analysis/1 ] || fail "schema"
[ "$(value kind)" = separate ] || fail "kind"
[ "$(value bottleneck)" = device ] || fail "bottleneck"
grep -q '"smallest": "small"' "$work/a.json" || fail "choice"
awk -F'[:,]' '/"predicted"/ { getline; getline; if ($2 + 0 != 5) exit 1 }' "$work/a.json" ||
    fail "more than the device can do, or less"

# One that is faster than anything waits for the loader; the dataset of small images is far faster.
expect 0 analyze "$work/large" "$work/small" --device-rate 1e8 $shape
grep -q '^The fastest is small: ' "$work/out" || fail "$(cat "$work/out")"
[ "$(value bottleneck)" != device ] || fail "bottleneck"
grep -q '^large: the device waits [0-9]*% of an epoch, mostly for decoding and cropping' "$work/out" || fail "$(cat "$work/out")"
grep -q 'What would help most: ' "$work/out" || fail "no advice"

# On the same processors the device and the loader add up: n / (t / device + the loader's seconds).
expect 0 analyze "$work/large" --device-rate 300 $shape --device-kind shared
[ "$(value kind)" = shared ] || fail "kind"
awk -F'[:,]' '
    /"threads"/ { t = $2 } /"cores"/ && !n { n = $2 } /"processor_seconds_per_image"/ { c = $2 }
    /"predicted"/ { getline; getline; got = $2 }
    END { want = n / (t / 300 + c); if (want > 300) want = 300
          if (!(c > 0) || got < want * 0.7 || got > want * 1.3) { print got, want; exit 1 } }' \
    "$work/a.json" >&2 || fail "processors don't add up"

# What a cache of decoded images needs for all of them: RGB here, and room for one more, in JPEGs half as
# much, and more where crops are decoded at several resolutions. So a larger cache finds no more images.
# needs LEAST MOST: bytes a pixel
needs() {
    decoded=$(sed -n 's/^ *"decoded_bytes": \([0-9]*\).*/\1/p' "$work/a.json")
    awk -v got="$decoded" -v all=$((12 * 640 * 480)) -v least="$1" -v most="$2" \
        'BEGIN { exit !(got >= least * all && got <= most * all) }' || fail "$decoded bytes for decoded images"
}
# hits SIZE: images that a cache of that size had, in 60 epochs
hits() {
    dl2-load bench --quiet -j 1 -b 4 -i 100 -e 60 --cache-decoded "$1" --json "$work/hits.json" "$work/variants/jpeg-75" \
        >/dev/null || fail "bench"
    sed -n 's/^ *"decoded_hits": \([0-9]*\).*/\1/p' "$work/hits.json"
}
expect 0 analyze "$work/large" --device-rate 5 $shape
needs 3.25 3.26
if dl2-transcode --list codecs | grep -q ^jpeg; then
    expect 0 dl2-transcode --quiet --q 75 --never-larger=no "$work/large" "$work/variants"
    expect 0 analyze "$work/variants/jpeg-75" --device-rate 5 -b 4 -i 320
    needs 1.75 1.76
    expect 0 analyze "$work/variants/jpeg-75" --device-rate 5 -b 4 -i 100
    needs 2.25 3
    is "$(hits "$decoded")" "$(hits 1G)" "images in a cache of the size that analyze names"
    [ "$(hits 7M)" -lt "$(hits 1G)" ] || fail "a smaller cache has as many images"
fi

# Memory that holds nothing of the files: storage counts in every epoch.
expect 0 analyze "$work/large" --device-rate 1e8 $shape --memory 1
grep -Eq '"cached": [0-9.]+e-' "$work/a.json" || fail "--memory is not heard"

# The report of a device brings its settings with it; one that waited for images is refused.
cat >"$work/device.json" <<'EOF'
{"schema": "dl2-experiment/1", "arch": "resnet10", "device": "cpu",
 "arguments": {"loader": "synthetic", "image-size": 24, "batch": 3, "channels": 1, "threads": 0,
  "crop-area": [0.5, 1.0], "crop-aspect": [1.0, 1.0], "interpolation": "box"},
 "epochs": [{"images_per_second": 1.0}, {"images_per_second": 6.5}, {"images_per_second": 7.5}]}
EOF
expect 0 analyze "$work/small" --device-report "$work/device.json"
grep -q 'The device trains 7 images/s (resnet10, cpu)' "$work/out" || fail "$(cat "$work/out")"
for field in '"image_size": 24' '"batch": 3' '"channels": 1' '"kind": "shared"'; do
    grep -q "$field" "$work/a.json" || fail "no $field in $(cat "$work/a.json")"
done
expect 0 analyze "$work/small" --device-report "$work/device.json" --device-kind separate
[ "$(value kind)" = separate ] || fail "--device is not heard"
sed 's/"box"/"hamming"/' "$work/device.json" >"$work/hamming.json"
expect 1 analyze "$work/small" --device-report "$work/hamming.json"
grep -q "hamming.json: .*interpolation: 'hamming' is not one of" "$work/err" || fail "$(cat "$work/err")"
sed 's/synthetic/real/' "$work/device.json" >"$work/real.json"
expect 1 analyze "$work/small" --device-report "$work/real.json"
grep -q 'real.json: .*--loader synthetic' "$work/err" || fail "$(cat "$work/err")"
sed 's/"batch": 3/"batch": -3/' "$work/device.json" >"$work/odd.json"
expect 1 analyze "$work/small" --device-report "$work/odd.json"
grep -q 'odd.json: ' "$work/err" || fail "$(cat "$work/err")"
expect 1 analyze "$work/small" --device-report "$work/absent.json"

# Figures of quality stand beside the dataset's.
cat >"$work/quality.json" <<'EOF'
{"schema": "dl2-quality/1", "variants": [{"variant": "small", "metrics": {"psnr_rgb": {"mean": 31.25},
 "ssim": {"mean": 0.9125}}}]}
EOF
expect 0 analyze "$work/small" "$work/large" --device-rate 5 $shape --quality "$work/quality.json"
grep -q '^small .* 31.25  0.9125$' "$work/out" || fail "no quality in $(cat "$work/out")"
mkdir "$work/scores" && cp "$work/quality.json" "$work/scores/a.json"
expect 0 analyze "$work/small" "$work/large" --device-rate 5 $shape --quality "$work/scores"
grep -q '^small .* 31.25  0.9125$' "$work/out" || fail "no quality from a folder in $(cat "$work/out")"
grep -q 'PSNR 31.25 dB, SSIM 0.9125' "$work/out" || fail "the choice doesn't tell the quality"

expect 1 analyze "$work/small" --device-rate 5 $shape --quality "$work/device.json"
grep -q 'device.json' "$work/err" || fail "what is no file of dl2-quality is not named"

# Several models on several ranks: the bytes by hand, and times whose ratios follow from one rate.
expect 0 analyze "$work/large" --device-rate 5 $shape --memory 1G --models 6 --ranks 2 --parameters 1e6
ways() { "$PYTHON3" - "$work/a.json" "$1" <<'END'
import json, math, sys
a = json.load(open(sys.argv[1])); v = a["variants"][0]
data, hop, task = v["ways"]
assert [w["way"] for w in v["ways"]] == ["data parallel", "hopping", "task parallel"]
share = v["images"] // 2
steps = share // a["batch"] if v["images"] >= 2 * a["batch"] else math.ceil(share / a["batch"])
print(eval(sys.argv[2]))
END
}
if [ -n "${PYTHON3:-}" ]; then
    is "$(ways 'data["bytes_moved"] == 6 * steps * 8e6, hop["bytes_moved"], task["bytes_moved"]')" "(True, 96000000.0, 0.0)" "bytes that move"
    is "$(ways 'abs(data["epoch_seconds"] - 3 * v["images"] / 5) < 0.1 * data["epoch_seconds"]')" True "a slow device's time"
    is "$(ways 'data["epoch_seconds"] == hop["epoch_seconds"] == task["epoch_seconds"]')" True "times of three ways that never wait"
    is "$(ways 'data["file_bytes"] == task["file_bytes"] == 2 * hop["file_bytes"] == v["bytes"], hop["network_bytes"]')" "(True, 12000000.0)" "memory"
    expect 0 analyze "$work/large" --device-rate 5 $shape --memory 1G --models 1 --ranks 2 --parameters 1e6 --bandwidth 8
    is "$(ways 'round(hop["epoch_seconds"] / (task["epoch_seconds"] + 1), 6)')" 1.0 "one model hops, at 8 MB/s"
    is "$(ways 'round(data["epoch_seconds"] / (task["epoch_seconds"] / 2 + steps / 2), 6)')" 1.0 "one model data parallel, at 8 MB/s"
fi
grep -q '^hopping (--hop) ' "$work/out" || fail "the ways are not printed: $(cat "$work/out")"
for options in "--models 2" "--ranks 2" "--bandwidth 8" "--parameters 5" "--models 2 --ranks 2" "--models 2 --ranks 1 --parameters 5"; do
    expect 2 analyze "$work/large" --device-rate 5 $shape $options
done

# A bad image is named, and the rest is measured all the same; sets of one image, of none.
printf 'P6\n640 480\n255\n' >"$work/large/train/a/3.ppm"
expect 1 analyze "$work/large" --device-rate 5 $shape
grep -q 'train/a/3.ppm: decode: ' "$work/err" || fail "the bad image is not named"
grep -q 'train/a/3.ppm: decode: ' "$work/a.json" || fail "the report doesn't name it"
mkdir -p "$work/one/a" "$work/none"
cp "$work/small/train/a/1.ppm" "$work/one/a"
expect 0 analyze "$work/one" --device-rate 5 $shape --split all
expect 1 analyze "$work/none" --device-rate 5 $shape
grep -q none "$work/err" || fail "the empty folder is not named"
exit 0
