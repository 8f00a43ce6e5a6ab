#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# device.py's two calls, rehearsed on the processors: each ends within its limits, its parts' too, and leaves what comes back.
# Then parts that fail, crash and hang, a smoke test that fails, and calls that are ended in the middle.
. "$srcdir/tests/lib.sh"
case $CC in *-fsanitize*) skip "PyTorch's processes and programs with sanitizers don't go together" ;; esac
emulated && skip "its parts have limits of time, and emulation is slow"
need_python torchvision python3-torchvision
"$builddir/dl2-train" --version | grep -q 'device cpu' || skip "built without oneDNN: too slow"
[ -x "$builddir/tests/device/test_device" ] || skip "built without cmocka (Debian: libcmocka-dev)"
"$builddir/dl2-transcode" --version | grep -q "^  jpeg:" || skip "this build can't write jpeg, which its study does"
device() { "$PYTHON3" -B "$srcdir/tests/device/device.py" "$@" --rehearse; }

# The page has every part with its limit.
device first --list | sed -n 's/^ *\([0-9]* s\)  \(.*\)/\2, \1/p' >"$work/parts"
is "$(wc -l <"$work/parts")" 18 "parts"
while read -r part; do
    grep -qF "$part" "$srcdir/docs/gpu.md" || fail "docs/gpu.md lacks '$part'"
done <"$work/parts"

# Both calls. PyTorch may be able to compile or not: Debian 12's PyTorch can't, 13's only with more than its own package.
for call in first second; do
    device $call --build "$builddir" --out "$work/results" >"$work/out.$call" 2>&1
    echo $? >"$work/status.$call"
    cat "$work/out.$call"
done
"$PYTHON3" -B - "$srcdir/tests/device" "$work" <<'PY' || { cat "$work"/results/*.log >&2; fail "see above"; }
import json, os, sys, tarfile, torch
sys.path[0], work = sys.argv[1:]
import device
results = json.load(open(work + "/results/results.json"))
calls = results["calls"]
for call, (seconds, parts) in device.CALLS.items():
    assert sum(part[1] for part in parts) <= seconds, call
    assert list(calls[call]) == [part[0] for part in parts], list(calls[call])
    assert sum(part["seconds"] for part in calls[call].values()) <= seconds, call
    failures = {name: part["failures"] for name, part in calls[call].items() if part.get("failures")}
    assert all(part["state"] == ("failed" if name in failures else "done") for name, part in calls[call].items())
    assert int(open("%s/status.%s" % (work, call)).read()) == bool(failures), call
    try:
        torch.compile(lambda x: x + 1)(torch.ones(8))
        can_compile = True
    except Exception:
        can_compile = False
    assert list(failures) == (["beside torch.compile"] if call == "first" and not can_compile else []), failures
# Both calls and what is around them, starts of machines included: a quarter of an hour.
assert device.CALLS["first"][0] <= 520 - 15 and device.CALLS["second"][0] <= 200 - 10
first, second = calls["first"], calls["second"]
assert set(first["operations in bf16 and fp32"]["fp32"].values()) == {"pass"} and len(first["operations in bf16 and fp32"]["fp32"]) == 6
for network in ("resnet18, fp32", "vit_tiny, fp32"):
    assert first["ten steps in fp32 and bf16"][network]["dl2: off by"] < 1e-3, network
assert first[device.SMOKE]["begins at, s"]["step 4"] > 0
for part, names in (("first throughput", ["dl2, unmeasured plans", "dl2", "dl2, not recorded"]),
                    ("beside PyTorch eager", ["dl2, before", "PyTorch, eager", "dl2, after"]),
                    ("decoding", ["plain files, cpu", "restart tiles, cpu"]),
                    ("training from files", ["dl2, plain files", "PyTorch, plain files"])):
    rates = {name: found["images_per_second"] for name, found in first[part]["images/s"].items()}
    assert list(rates) == names and min(rates.values()) > 0, rates
python = first["loading in Python"]
assert python.get("skipped") or python["images/s"]["cpu"]["images_per_second"] > 0 and not python["off by"], python
assert len(set(first["determinism"]["weights"].values())) == 1 and len(first["determinism"]["weights"]) == 3
names = ["raw", "jpeg-10", "jpeg-50"]
for part, seeds in (("study", 2), ("study by PyTorch", 1)):
    found = second[part].get("variants")
    if part == "study" or not second[part].get("skipped"):
        assert sorted(found) == sorted(names) and all(len(v["top1"]) == seeds and v["images_per_second"] > 0 for v in found.values()), found
packed = tarfile.open(work + "/results/study.tar.gz").getnames()
for name in ("report/report.html", "report/answer.json", "train/raw/convnet/seed-2/experiment_report.json"):
    assert "study/" + name in packed, packed
assert not [name for name in packed if name.endswith((".safetensors", ".pt"))]
text = open(work + "/results/results.md").read()
for words in ("| resnet18, fp32 |", "Operations in fp32: 6 pass; none fails", "| PyTorch, eager |", "| jpeg-10 |", "there is no card"):
    assert words in text, words
# What comes back: eight files of 15 MiB at most, and the call says so.
files = {name: os.path.getsize(work + "/results/" + name) for name in os.listdir(work + "/results")}
assert sorted(files) == ["first.log", "results.json", "results.md", "second.log", "study.tar.gz"], files
assert len(files) + len(["plans.json", "plan-times.json"]) <= 8 and max(files.values()) < device.LARGEST_FILE
out = open(work + "/out.second").read()
assert all("%10d bytes  %s\n" % (size, name) in out for name, size in files.items()), out
assert "A rehearsal: " in open(work + "/results/second.log").read()
PY

# A build with an operation that fails, a dl2-train that crashes, a dl2-load that hangs, and a dl2-transcode that fails once.
mkdir -p "$work/odd/tests/device" "$work/odd/tests/train"
for program in dl2-quality dl2-report dl2-study tests/device/steps tests/device/smoke tests/train/make_images; do
    ln -s "$builddir/$program" "$work/odd/$program"
done
cat >"$work/odd/tests/device/test_device" <<END
#!/bin/sh
[ "\$1" != --list ] || { echo linear; echo ingest; exit 0; }
[ "\$3" != linear ] || { echo "linear is wrong\${CUDA_LAUNCH_BLOCKING:+ and waits}"; exit 1; }
exec "$builddir/tests/device/test_device" "\$@"
END
cat >"$work/odd/dl2-train" <<END
#!/bin/sh
case "\$*" in *'not recorded'* | *--deterministic*) kill -SEGV \$\$ ;; esac
exec "$builddir/dl2-train" "\$@"
END
cat >"$work/odd/dl2-load" <<'END'
#!/bin/sh
seq 300000
echo "the last words"
echo $$ >"$PIDS"
exec sleep 1000
END
printf '#!/bin/sh\n"%s/dl2-transcode" "$@"\n' "$builddir" >"$work/odd/dl2-transcode"
chmod +x "$work"/odd/tests/device/test_device "$work"/odd/dl2-[tl]*
PIDS=$work/pid
export PIDS
gone() { # PID: within seconds
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        kill -0 "$1" 2>/dev/null || return 0
        sleep 0.3
    done
    return 1
}
device first --limit 12 --only "operations in bf16 and fp32" --only "first throughput" --only decoding --only plans \
    --build "$work/odd" --out "$work/odd.results" >"$work/out" 2>&1
[ $? = 1 ] || fail "what fails is a success: $(cat "$work/out")"
gone "$(cat "$work/pid")" || fail "a program that hangs runs on"
"$PYTHON3" - "$work/odd.results" <<'PY' || { cat "$work/out" >&2; fail "see above"; }
import json, os, sys
parts = json.load(open(sys.argv[1] + "/results.json"))["calls"]["first"]
states = {name: part["state"] for name, part in parts.items()}
assert states == {"operations in bf16 and fp32": "failed", "first throughput": "failed", "decoding": "failed", "plans": "done"}, states
operations, throughput, decoding = (parts[name] for name in list(parts)[:3])
assert operations["fp32"] == {"linear": "FAIL", "ingest": "pass"} and len(operations["failures"]) == 1, operations
assert list(operations["once more"]) == ["linear in fp32"] and "wrong and waits" in operations["once more"]["linear in fp32"], operations
assert ["exit status -11" in failure for failure in throughput["failures"]] == [True], throughput
assert list(throughput["images/s"]) == ["dl2", "dl2, not recorded"], throughput
assert "not done after" in decoding["failures"][0] and "the last words" in decoding["failures"][0], decoding
log = open(sys.argv[1] + "/first.log").read()
assert "plain files, cpu | 1\n" in log and "plain files, cpu |... the last words\n" in log and 1 << 20 < len(log) < 2 << 20
text = open(sys.argv[1] + "/results.md").read()
assert text.index("linear is wrong") < text.index("## Parts") and "these fail: linear" in text, text
PY

# A smoke test that fails: nothing comes after it.
rm "$work/odd/tests/device/smoke"
printf '#!/bin/sh\necho "no card today${CUDNN_LOGLEVEL_DBG:+, says cuDNN}"\nexit 1\n' >"$work/odd/tests/device/smoke"
chmod +x "$work/odd/tests/device/smoke"
expect 1 device second --build "$work/odd" --out "$work/none"
"$PYTHON3" - "$work/none" <<'PY' || { cat "$work/out" >&2; fail "see above"; }
import json, sys
parts = json.load(open(sys.argv[1] + "/results.json"))["calls"]["second"]
assert list(parts) == ["machine", "smoke test"], list(parts)
assert "no card today" in parts["smoke test"]["failures"][0] and "says cuDNN" in parts["smoke test"]["once more"], parts
PY

# Ended in the middle, by the signal that ends a call, and by one that leaves no time: what there was is there.
for signal in TERM KILL; do
    rm -f "$work/pid"
    "$PYTHON3" -B "$srcdir/tests/device/device.py" first --rehearse --only plans --only decoding --build "$work/odd" \
        --out "$work/$signal" >"$work/out" 2>&1 &
    pid=$!
    for _ in $(seq 300); do
        [ ! -s "$work/pid" ] || break
        sleep 0.1
    done
    [ -s "$work/pid" ] || fail "nothing begins: $(cat "$work/out")"
    kill -$signal $pid
    wait $pid && fail "a call that was ended is a success"
    [ $signal = KILL ] && kill -KILL "$(cat "$work/pid")"
    gone "$(cat "$work/pid")" || fail "SIG$signal leaves a program running"
    grep -q 'plain files, cpu | 1' "$work/$signal/first.log" || fail "what it printed is lost at SIG$signal"
    "$PYTHON3" - "$work/$signal" $signal <<'PY' || { cat "$work/out" "$work/$signal/results.json" >&2; fail "after SIG$signal, see above"; }
import json, sys
parts = json.load(open(sys.argv[1] + "/results.json"))["calls"]["first"]
assert list(parts) == ["decoding"] and (parts["decoding"].get("failures") == ["stopped by SIGTERM"]) == (sys.argv[2] == "TERM"), parts
assert parts["decoding"]["state"] == ("failed" if sys.argv[2] == "TERM" else "running"), parts
assert "| first | decoding | " in open(sys.argv[1] + "/results.md").read()
PY
done

# Plans travel: those of an earlier call are those of the next.
echo '{"schema": "dl2-cuda-plans/1", "choices": {}}' >"$work/plans.json"
expect 0 device first --only machine --plans "$work/plans.json" --build "$builddir" --out "$work/travel"
cmp "$work/plans.json" "$work/travel/plans.json" || fail "plans don't travel"
expect 0 device first --only machine --plans "$work/nowhere" --build "$builddir" --out "$work/noplans"
grep -q "no plans from $work/nowhere" "$work/noplans/results.md" || fail "plans that are not there are not named"
# Photographs that are not there are named; other options are refused.
expect 1 device first --only decoding --data "$work/nowhere" --build "$builddir" --out "$work/results"
grep -q 'first, decoding: .*nowhere' "$work/results/results.md" || fail "the failure isn't named"
grep -q 'second | study' "$work/results/results.md" || fail "results of the other call are gone"
expect 2 device nonsense --build "$builddir"
expect 2 device first --only nonsense --build "$builddir"

# Watts and memory are nvidia-smi's; what it does not know is not made up.
mkdir "$work/bin"
printf '#!/bin/sh\nwhile :; do echo "$WATTS, 2048"; sleep 0.1; done\n' >"$work/bin/nvidia-smi"
chmod +x "$work/bin/nvidia-smi"
PATH=$work/bin:$PATH "$PYTHON3" -B - "$srcdir/tests/device" <<'PY' || fail "see above"
import os, sys, threading, time, types
sys.path[0] = sys.argv[1]
import device
for watts, wanted in (("123.5", 123.5), ("[N/A]", None)):
    os.environ["WATTS"] = watts
    call = types.SimpleNamespace(on_card=True, programs=set(), environment=os.environ, log=len)
    meter, began = device.Meter(call), time.monotonic()
    while len(meter.samples) < 3 and time.monotonic() - began < 30:
        time.sleep(0.1)
    meter.end()
    assert meter.between(began, time.monotonic()) == (wanted, 2 << 30), meter.samples
    assert meter.between(0, 1) == (None, None) and watts in meter.why_not(), meter.why_not()
    assert not call.programs and meter.program.process.returncode is not None
PY

# Our kernels, where compute-sanitizer runs, and ncu has no counters; then where neither does.
mkdir -p "$work/watched/tests/cuda"
printf '#!/bin/sh\necho kernels\n' >"$work/watched/tests/cuda/card_kernels"
cat >"$work/bin/compute-sanitizer" <<'END'
#!/bin/sh
[ "$1 $2" = "--target-processes all" ] || exit 3
echo "========= COMPUTE-SANITIZER${SUPPORT:-}"
[ -z "${SUPPORT:-}" ] || exit 1
exec "$(eval "echo \$$#")"
END
printf '#!/bin/sh\necho "==ERROR== LibraryNotLoaded"\n' >"$work/bin/ncu"
chmod +x "$work"/bin/* "$work/watched/tests/cuda/card_kernels"
for support in '' ': Device not supported'; do
    PATH=$work/bin:$PATH SUPPORT=$support expect 0 device first --device cuda --only "our kernels" --build "$work/watched" \
        --out "$work/watched.results"
    "$PYTHON3" - "$work/watched.results" "$support" <<'PY' || { cat "$work/out" >&2; fail "see above"; }
import json, sys
part = json.load(open(sys.argv[1] + "/results.json"))["calls"]["first"]["our kernels"]
assert part["results"] == "pass" and "LibraryNotLoaded" in part["ncu"] and part["state"] == "done", part
assert (part["compute-sanitizer"] == "runs", part.get("memcheck")) == ((False, None) if sys.argv[2] else (True, "found nothing")), part
assert not sys.argv[2] or "not supported" in part["compute-sanitizer"], part
PY
done

# Steps that need a card, with what stands in for one.
fake=$builddir/tests/cuda/fake_dl2_train
if [ -x "$fake" ]; then
    mkdir -p "$work/card/tests/device"
    ln -s "$fake" "$work/card/dl2-train"
    ln -s "$builddir/tests/cuda/fake_test_device" "$work/card/tests/device/test_device"
    device first --device cuda --only "operations in bf16 and fp32" --only "first throughput" --only plans \
        --build "$work/card" --out "$work/card.results" >"$work/out" 2>&1 || fail "over what stands in for a card: $(cat "$work/out")"
    "$PYTHON3" - "$work/card.results" <<'PY' || { cat "$work/out" "$work/card.results/first.log" >&2; fail "see above"; }
import json, sys
parts = json.load(open(sys.argv[1] + "/results.json"))["calls"]["first"]
assert parts["first throughput"]["times"]["steps"] > 0 and set(parts["operations in bf16 and fp32"]["bf16"].values()) == {"pass"}, parts
assert json.load(open(sys.argv[1] + "/plan-times.json"))["convolutions"]
assert json.load(open(sys.argv[1] + "/plans.json"))["choices"]
assert "| longest parts of a step |" in open(sys.argv[1] + "/results.md").read()
PY
fi
command -v "${CONVERT:-/usr/bin/convert}" >/dev/null || { echo "no convert here (Debian: imagemagick): photographs.sh was not tried"; exit 0; }
# Photographs of 500 x 375 out of fifteen, but not out of one.
mkdir "$work/wall"
"${CONVERT:-/usr/bin/convert}" -size 300x400 plasma:red-blue "$work/wall/P0_by_Me.jpg"
expect 1 sh "$srcdir/tests/device/photographs.sh" "$work/photographs" "$work/wall"
said "10 pieces, not 150"
for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do
    "${CONVERT:-/usr/bin/convert}" -size 400x300 "gradient:hsl($((n * 20)),255,128)-black" "$work/wall/P${n}_by_Me.jpg"
done
expect 0 sh "$srcdir/tests/device/photographs.sh" "$work/photographs" "$work/wall"
is "$(find "$work/photographs/train" -name '*.jpg' | wc -l), $(find "$work/photographs/val/p0_by_me" -name '*.jpg' | wc -l)" "105, 3" "pieces"
"$PYTHON3" -c 'import sys
from PIL import Image
assert {Image.open(path).size for path in sys.argv[1:]} == {(500, 375)}' "$work"/photographs/*/*/*.jpg || fail "pieces have another size"
exit 0
