#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# study-loading LOADERS=...: peers are measured with a device and without one; what is missing or fails is named.
. "$srcdir/tests/lib.sh"
plainly
. "$srcdir/tests/study/study_lib.sh"
unset WORKERS STORAGES CACHES LOADERS LOADERS_PYTHON DEVICE_RATE
need_python json python3

# A Python whose loaders are known: dl2 waits 1 ms for an image, torch 4 ms, and dali's second round fails.
mkdir fake && cat >fake/python <<'SH'
#!/bin/sh
script=$1
shift
case "$1 $2" in
'check dali') echo "No module named 'nvidia' (package nvidia-dali-cuda120)" >&2; exit 1 ;;
check*) exit 0 ;;
'measure grain') echo 'grain: no such thing' >&2; exit 1 ;;
esac
exec "$REAL" -c '
import sys, time, types
script = sys.argv[1]
sys.argv = sys.argv[1:]
peers = types.ModuleType("peers")
exec(compile(open(script).read(), script, "exec"), peers.__dict__)
def peer(seconds):
    def run(folder, size, batch, workers, work):
        def epoch():
            for _ in range(4):
                time.sleep(batch * seconds)
                yield batch
        return [epoch]
    return run
peers.PEERS["dl2"] = (peer(0.001), "json", "fake", None)
peers.PEERS["torch"] = (peer(0.004), "json", "fake", None)
peers.version_of = lambda module, package: (package, "1.0")
peers.main()
' "$script" "$@"
SH
chmod +x fake/python
export REAL="${PYTHON3:-python3}"
loading() {
    study QUALITIES=10 study-loading WORKERS=1 STORAGES='memory disk' CACHES=0 MEASURE=0.2 DEVICE_RATE=500 LOADERS_PYTHON="$work/fake/python" "$@"
}
refused 'DEVICE_RATE is "500": it has an effect on study-loading only' DEVICE_RATE=500
expect 2 loading LOADERS=dali
said 'LOADERS is "dali": '
expect 0 loading LOADERS='dl2 torch dali grain'
said "LOADERS: dali is left out: No module named 'nvidia' (package nvidia-dali-cuda120)"
grep -q '^memory, 1 workers, jpeg-10: grain failed: grain: no such thing$' results/loaders.txt || fail "$(cat results/loaders.txt)"
grep -q '^torch: fake 1.0$' results/loaders.txt || fail "no version: $(cat results/loaders.txt)"
cat results/loaders.txt
"$REAL" - <<'PY' || fail "$(cat results/loaders.txt)"
import json
def of(storage, loader, variant, number):
    return json.load(open(f"results/loaders/{storage}/jobs-1/{loader}/{variant}/round-{number}.json"))
for storage in "memory", "disk":
    for number in 1, 2:
        fast, slow, none = of(storage, "dl2", "raw", number), of(storage, "torch", "jpeg-10", number), of(storage, "synthetic", "raw", number)
        assert fast["cold"] == slow["cold"] == (storage == "disk") and slow["path"].endswith("jpeg-10/train"), slow
        # No image comes faster than its loader sleeps, and none is taken faster than by the device, however busy the machine is.
        for report, least in (fast, 0.001), (slow, 0.004), (none, 0):
            for part, device in ("load", 0), ("device", 1 / 500):
                if part == "device" or least:
                    run = report[part]
                    assert run["seconds"] >= 0.98 * run["images"] * (least + device) and run["wait"] <= 1, report
                    assert run["wait"] * run["seconds"] >= 0.98 * run["images"] * least, report
                    assert device == 0 or abs(run["busy"] * run["seconds"] - run["images"] * device) < 1e-6, report
        assert none["device"]["wait"] < 0.1 < fast["device"]["wait"] and "load" not in none, (none, fast)
rates = [sum(of(storage, loader, "raw", number)["load"]["images_per_second"] for storage in ("memory", "disk") for number in (1, 2))
         for loader in ("dl2", "torch")]
assert rates[0] > 1.5 * rates[1], rates
lines = [line.split() for line in open("results/loaders.txt")]
row = next(line for line in lines if line[:4] == ["memory", "1", "jpeg-10", "torch"])
rates = [of("memory", loader, "jpeg-10", number)["load"]["images_per_second"] for loader in ("torch", "dl2") for number in (1, 2)]
assert abs(int(row[4]) - sum(rates[:2]) / 2) < 1 and abs(float(row[6]) - sum(rates[2:]) / sum(rates[:2])) < 0.01, (row, rates)
PY
touch mark
sleep 0.05
expect 0 loading LOADERS='dl2 torch dali grain'
[ -z "$(find results/loaders results/loading -newer mark -name 'round*')" ] || fail "measured again"
exit 0
