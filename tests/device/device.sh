#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# device.py, as a machine with a card runs it, tried out on the processors: every step of the three calls ends, what fails
# is named, and what was measured is in the tables; also when a program hangs or fails, and when a call is ended in the
# middle. Nsight Compute is a script that says what the real one would.
. "$srcdir/tests/lib.sh"
case $CC in *-fsanitize*) skip "PyTorch's processes and programs with sanitizers don't go together" ;; esac
emulated && skip "its steps have limits of time, and emulation is slow"
need_python torchvision python3-torchvision
"$builddir/dl2-train" --version | grep -q 'device cpu' || skip "built without oneDNN: too slow"
[ -x "$builddir/tests/device/test_device" ] || skip "built without cmocka (Debian: libcmocka-dev)"
for codec in jpeg webp; do
    "$builddir/dl2-transcode" --version | grep -q "^  $codec:" || skip "this build can't write $codec, which is part of its study"
done
mkdir "$work/bin"
cat >"$work/bin/ncu" <<'END'
#!/bin/sh
echo '==PROF== Connected to process 1'
echo '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"'
row() { echo "\"$1\",\"1\",\"dl2-train\",\"127.0.0.1\",\"$2\",\"1\",\"7\",\"(256, 1, 1)\",\"(8, 1, 1)\",\"0\",\"9.0\",\"GPU Speed Of Light Throughput\",\"$3\",\"$4\",\"$5\""; }
long='void (anonymous namespace)::map_rows<(int)8, float>(float *, int)'
row 0 "$long" Duration us 1,200.5
row 0 "$long" 'DRAM Throughput' % 40
row 0 "$long" 'Compute (SM) Throughput' % 80
row 1 'add_kernel(float *)' gpu__time_duration.sum ns 99500
row 1 'add_kernel(float *)' 'DRAM Throughput' % 90
row 1 'add_kernel(float *)' 'Compute (SM) Throughput' % 10
row 2 "$long" Duration us 700
row 2 "$long" 'DRAM Throughput' % 40
row 2 "$long" 'Compute (SM) Throughput' % 80
echo '==PROF== Disconnected from process 1'
END
chmod +x "$work/bin/ncu"
PATH=$work/bin:$PATH
device() { "$PYTHON3" -B "$srcdir/tests/device/device.py" --device cpu --tiny "$@"; }

# The kernels that are ours, by name.
grep -h -A 3 '__global__' "$srcdir"/cuda/*.cu "$srcdir"/cuda/*.cuh | grep -o '[a-z_0-9]*(' | tr -d '(' |
    grep -v '^_*launch_bounds_*$' | grep . | sort -u >"$work/ours"
"$PYTHON3" -B -c 'import sys; sys.path[0] = sys.argv[1]; import device; print("\n".join(sorted(device.OUR_KERNELS)))' \
    "$srcdir/tests/device" | cmp -s - "$work/ours" ||
    fail "OUR_KERNELS is not what cuda/ has: $(tr '\n' ' ' <"$work/ours")"

# The first figure is not late: what comes before it ends in time, or comes after it.
"$PYTHON3" -B - "$srcdir/tests/device" <<'PY' || fail "see above"
import sys, time, types
sys.path[0] = sys.argv[1]
import device
args = types.SimpleNamespace(only=None, step_limit=1e9)
for elapsed, first in ((0, "machine"), (100, "machine"), (178, device.FIRST_FIGURE)):
    call = types.SimpleNamespace(args=args, began=time.monotonic() - elapsed)
    steps = list(device.ordered(call, device.calls(False)["run"][1]))
    names, limits = [step[0] for step in steps], {step[0]: step[1] for step in steps}
    assert names[0] == first and len(names) == len(set(names)) == len(device.calls(False)["run"][1]), names
    before = names[:names.index(device.FIRST_FIGURE)]
    assert all(limits[name] <= device.FIGURE_BEGINS - elapsed for name in before), limits
    assert limits[device.FIRST_FIGURE] == 120
PY

# The log stays small enough to be fetched, and what the device did in another way is among the results.
mkdir "$work/chatty"
"$PYTHON3" -B - "$srcdir/tests/device" "$work/chatty" <<'PY' || fail "see above"
import os, sys, types
sys.path[0] = sys.argv[1]
import device
device.LARGEST_LOG = 3000
args = types.SimpleNamespace(only=None, minutes=5, build="/", device="cpu", out=sys.argv[2])
call = device.Call("run", args, {"calls": {}, "device notes": []})
for what in ("much", "more"):
    call.run(what, ["sh", "-c", "echo note: slowly; seq 1000"])
os.rmdir(call.work)
text = open(call.log_path).read()
assert "much | 1\n" in text and "much |... 1000\n" in text and "more |... 1000\n" in text and len(text) < 8000, text
assert call.results["device notes"] == ["slowly"], call.results
PY

for call in run speed input; do
    device $call --build "$builddir" --out "$work/results" >"$work/out.$call" 2>&1
    echo $? >"$work/status.$call"
done
"$PYTHON3" - "$work" <<'PY' || { cat "$work"/out.* "$work"/results/*.log >&2; fail "see above"; }
import json, sys, tarfile, torch
work = sys.argv[1]
folder = work + "/results"
results = json.load(open(folder + "/results.json"))
calls = results["calls"]
assert list(calls) == ["run", "speed", "input"], list(calls)
failures = {call: {name: step["failures"] for name, step in steps.items() if step.get("failures")} for call, steps in calls.items()}
assert all(step["state"] == ("failed" if step.get("failures") else "done") for steps in calls.values() for step in steps.values())
for call, steps in calls.items():
    assert int(open(work + "/status." + call).read()) == bool(failures[call]), call
try:
    torch.compile(lambda x: x + 1)(torch.ones(8))
    compiles = True
except Exception:  # Debian 12's PyTorch can't, 13's only with more than its own package
    compiles = False
# Named, and the only thing that is.
assert sorted(failures["speed"]) == ([] if compiles else ["resnet18 and torch.compile", "vit_tiny and torch.compile"]), failures
assert not failures["run"], failures
assert not failures["input"], failures
run, speed, loaded = calls["run"], calls["speed"], calls["input"]
assert set(run["operations in bf16 and fp32"]["fp32"].values()) == {"pass"} and len(run["operations in bf16 and fp32"]["fp32"]) > 10
for network in ("resnet18, fp32", "vit_tiny, fp32"):
    assert run["ten steps in fp32 and bf16"][network]["dl2: off by"] < 1e-3, network
assert run["first figure"]["dl2"]["images_per_second"] > 0 and "same weights" in run["determinism"]
assert run["smoke test"]["begins at, s"]["step 4"] > 0
for name in ("resnet18", "vit_tiny"):
    rates = speed[name + " and PyTorch eager"]["images/s"]
    assert len(rates["dl2"]) == len(rates["pytorch eager"]) == 2, rates
kernels = speed["longest kernels"]["longest"]["kernels"]
assert [k["kernel"] for k in kernels] == ["void (anonymous namespace)::map_rows<(int)8, float>", "add_kernel"], kernels
assert kernels[0]["launches"] == 2 and abs(kernels[0]["us"] - 1900.5) < 1e-6 and abs(kernels[0]["DRAM Throughput"] - 40) < 1e-6
assert abs(kernels[1]["us"] - 99.5) < 1e-6
assert all(rate > 0 for rate in loaded["loading"]["images/s"].values()), loaded["loading"]
assert len(loaded["training from files"]["training"]) == 3 and len(loaded["decoding"]["images/s"]) == 4
python = loaded["loading in Python"]
assert python.get("skipped") or python["images/s"]["cpu"] > 0 and not python["off by"], python
runs = loaded["study"]["runs"]
assert sorted(runs) == ["jpeg-20", "jpeg-80", "raw", "webp-20", "webp-80"], runs
assert all(len(run["top1"]) == 2 for run in runs.values())
names = tarfile.open(folder + "/study.tar.gz").getnames()
assert "study/report/report.html" in names and not [n for n in names if n.endswith(".safetensors")]
text = open(folder + "/results.md").read()
for words in ("| resnet18 |", "| vit_tiny |", "| vit_tiny, fp32 |", "map_rows<(int)8, float> | 2 | 1900.5 | 95.0 | 40 | 80 |", "jpeg-20",
              "torchvision, plain files", "Operations in fp32: %d pass; none fails" % len(run["operations in bf16 and fp32"]["fp32"])):
    assert words in text, words
PY

# A build whose smoke test hangs, whose dl2-quality fails, and with an operation that fails.
mkdir -p "$work/odd/tests/device" "$work/odd/tests/train" "$work/odd/tests/cuda"
for program in dl2-train dl2-transcode dl2-load tests/device/steps tests/train/make_images; do
    ln -s "$builddir/$program" "$work/odd/$program"
done
cat >"$work/odd/tests/device/smoke" <<'END'
#!/bin/sh
echo "the last words"
echo $$ >"$PIDS"
exec sleep 1000
END
cat >"$work/odd/tests/device/test_device" <<END
#!/bin/sh
[ "\$1" != --list ] || { echo linear; echo ingest; exit 0; }
[ "\$3" != linear ] || { echo "linear is wrong"; exit 1; }
exec "$builddir/tests/device/test_device" "\$@"
END
printf '#!/bin/sh\necho "no score today" >&2\nexit 1\n' >"$work/odd/dl2-quality"
chmod +x "$work"/odd/tests/device/* "$work/odd/dl2-quality"
PIDS=$work/pid
export PIDS
gone() { # PID: within seconds
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        kill -0 "$1" 2>/dev/null || return 0
        sleep 0.3
    done
    return 1
}
device run --step-limit 15 --only "smoke test" --only "operations in bf16 and fp32" --only "failed operations" \
    --only metrics --build "$work/odd" --out "$work/odd.results" >"$work/out" 2>&1
[ $? = 1 ] || fail "what fails is a success: $(cat "$work/out")"
gone "$(cat "$work/pid")" || fail "a program that hangs runs on"
grep -q 'smoke | the last words' "$work/odd.results/run.log" || fail "what a program that hangs printed is lost"
"$PYTHON3" - "$work/odd.results" <<'PY' || { cat "$work/out" "$work/odd.results/run.log" >&2; fail "see above"; }
import json, sys
steps = json.load(open(sys.argv[1] + "/results.json"))["calls"]["run"]
assert list(steps) == ["smoke test", "operations in bf16 and fp32", "failed operations", "metrics"], list(steps)
assert "not done after" in steps["smoke test"]["failures"][0] and "the last words" in steps["smoke test"]["failures"][0], steps
assert steps["operations in bf16 and fp32"]["fp32"] == {"linear": "FAIL", "ingest": "pass"}, steps
again = steps["failed operations"]["once more"]["linear in fp32"]
assert "linear is wrong" in again["CUDA_LAUNCH_BLOCKING=1"] and "linear is wrong" in again["libraries' logs"], again
assert "no score today" in steps["metrics"]["failures"][0], steps
text = open(sys.argv[1] + "/results.md").read()
assert text.index("linear is wrong") < text.index("## Steps") and "these fail: linear" in text, text
PY

# Ended in the middle, by the signal that ends a call, and by one that leaves no time: what there was is there.
for signal in TERM KILL; do
    rm -f "$work/pid"
    device run --only machine --only "smoke test" --only metrics --build "$work/odd" --out "$work/$signal" >"$work/out" 2>&1 &
    pid=$!
    for _ in $(seq 300); do
        [ ! -s "$work/pid" ] || break
        sleep 0.1
    done
    [ -s "$work/pid" ] || fail "nothing begins: $(cat "$work/out")"
    # device() runs in a shell of its own.
    kill -$signal "$(cut -d ' ' -f 1 "/proc/$pid/task/$pid/children" 2>/dev/null | grep . || echo $pid)"
    wait $pid && fail "a call that was ended is a success"
    gone "$(cat "$work/pid")" || fail "SIG$signal leaves a program running"
    grep -q 'smoke | the last words' "$work/$signal/run.log" || fail "what it printed is lost at SIG$signal"
    "$PYTHON3" - "$work/$signal" $signal <<'PY' || { cat "$work/out" "$work/$signal/results.json" >&2; fail "after SIG$signal, see above"; }
import json, sys
steps = json.load(open(sys.argv[1] + "/results.json"))["calls"]["run"]
assert list(steps) == ["machine", "smoke test"] and steps["machine"]["state"] == "done", steps
if sys.argv[2] == "TERM":
    assert steps["smoke test"]["failures"] == ["stopped by SIGTERM"], steps
else:
    assert steps["smoke test"]["state"] == "running", steps
assert "| run | smoke test | " in open(sys.argv[1] + "/results.md").read()
PY
done

# Steps that need a card, with what stands in for one.
fake=$builddir/tests/cuda/fake_dl2_train
if [ -x "$fake" ] && "$fake" --version | grep -q NCCL; then
    mkdir -p "$work/card/tests/train"
    ln -s "$fake" "$work/card/dl2-train"
    ln -s "$builddir/dl2-load" "$builddir/dl2-transcode" "$work/card"
    ln -s "$builddir/tests/train/make_images" "$work/card/tests/train"
    # With nvJPEG, decoding would ask for a real card.
    "$builddir/dl2-load" --decode gpu bench "$work/nowhere" 2>&1 | grep -q 'decodes on no card' && decoding=--only=decoding
    device input --device cuda --only "one rank" ${decoding:-} --build "$work/card" --out "$work/card.results" >"$work/out" 2>&1
    device run --device cuda --only "plans in bf16" --only "times of a step" --build "$work/card" --out "$work/card.results" >>"$work/out" 2>&1
    "$PYTHON3" - "$work/card.results" <<'PY' || { cat "$work/out" "$work/card.results/input.log" >&2; fail "see above"; }
import json, sys
steps = json.load(open(sys.argv[1] + "/results.json"))["calls"]["input"]
rank = steps["one rank"]
assert rank["state"] == "done" and rank["alone"]["loss"] == rank["by NCCL"]["loss"], rank
failures = steps.get("decoding", {"failures": ["--with-nvjpeg="]})["failures"]
assert len(failures) == 1 and "--with-nvjpeg=" in failures[0], failures
steps = json.load(open(sys.argv[1] + "/results.json"))["calls"]["run"]
assert all(step["state"] == "done" for step in steps.values()), steps
assert steps["times of a step"]["times"]["steps"] > 0
assert "| longest parts of a step |" in open(sys.argv[1] + "/results.md").read()
PY
fi

# A step that can't be done is named, the others stay in the results.
expect 1 device input --only study --data "$work/nowhere" --build "$builddir" --out "$work/results"
grep -q 'vit_tiny, fp32' "$work/results/results.md" || fail "results of other calls are gone"
grep -q 'input, study: .*nowhere' "$work/results/results.md" || fail "the failure isn't named"
expect 2 device nonsense --build "$builddir"
expect 2 device run --only nonsense --build "$builddir"
exit 0
