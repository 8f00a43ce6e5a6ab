#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# device.py, as a machine with a card runs it, tried out on the processors: every part ends, what isn't there is named,
# and what it measured is in its tables. Nsight Compute is a script that says what the real one would.
. "$srcdir/tests/lib.sh"
case $CC in *-fsanitize*) skip "PyTorch's processes and programs with sanitizers don't go together" ;; esac
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
row 0 'conv_kernel(float *, int)' Duration us 1,200.5
row 0 'conv_kernel(float *, int)' 'DRAM Throughput' % 40
row 0 'conv_kernel(float *, int)' 'Compute (SM) Throughput' % 80
row 1 'add_kernel(float *)' Duration ns 99500
row 1 'add_kernel(float *)' 'DRAM Throughput' % 90
row 1 'add_kernel(float *)' 'Compute (SM) Throughput' % 10
row 2 'conv_kernel(float *, int)' Duration us 700
row 2 'conv_kernel(float *, int)' 'DRAM Throughput' % 40
row 2 'conv_kernel(float *, int)' 'Compute (SM) Throughput' % 80
END
chmod +x "$work/bin/ncu"
PATH=$work/bin:$PATH

"$PYTHON3" "$srcdir/tests/device/device.py" --device cpu --tiny --minutes 30 --build "$builddir" --out "$work/results" \
    >"$work/out" 2>&1
status=$?
"$PYTHON3" - "$work/results" $status <<'PY' || { cat "$work/out" "$work/results/log.txt" >&2; fail "see above"; }
import json, sys, tarfile, torch
folder = sys.argv[1]
results = json.load(open(folder + "/results.json"))
parts = results["parts"]
assert list(parts) == ["correct", "train", "transformer", "load", "decode", "study", "profile"], list(parts)
failures = {(name, failure) for name, part in parts.items() for failure in part.get("failures", [])}
try:
    torch.compile(lambda x: x + 1)(torch.ones(8))
    compiles = True
except Exception:  # Debian 12's PyTorch can't, 13's only with more than its own package
    compiles = False
if not compiles:  # named, and the only thing that is
    assert sorted(name for name, failure in failures) == ["train", "transformer"], failures
    assert all("compile" in failure for name, failure in failures), failures
else:
    assert not failures, failures
assert int(sys.argv[2]) == bool(failures)
correct = parts["correct"]
assert correct["operations"]["fp32"] == "pass" and "same weights" in correct["deterministic"], correct
assert correct["ten steps of resnet18"]["fp32"]["largest difference"] < 1e-3
assert correct["ten steps of vit_tiny"]["fp32"]["largest difference"] < 1e-3
assert len(parts["train"]["resnet18"]["dl2"]) == 2 and len(parts["train"]["resnet18"]["pytorch eager"]) == 2
assert len(parts["transformer"]["vit_tiny"]["dl2"]) == 2
assert all(rate > 0 for rate in parts["load"]["loaders alone, images/s"].values()), parts["load"]
assert len(parts["load"]["training resnet18 from JPEG"]) == 3 and all(parts["load"]["training resnet18 from JPEG"].values())
assert len(parts["decode"]["images/s"]) == 4
runs = parts["study"]["runs"]
assert sorted(runs) == ["jpeg-20", "jpeg-80", "raw", "webp-20", "webp-80"], runs
assert all(len(run["top1"]) == 2 for run in runs.values())
kernels = parts["profile"]["resnet18"]["kernels"]
assert [k["kernel"] for k in kernels] == ["conv_kernel", "add_kernel"] and kernels[0]["launches"] == 2, kernels
assert abs(kernels[0]["us"] - 1900.5) < 1e-6 and abs(kernels[0]["DRAM Throughput"] - 40) < 1e-6
assert abs(kernels[1]["us"] - 99.5) < 1e-6
names = tarfile.open(folder + "/study.tar.gz").getnames()
assert "study/report/report.html" in names and not [n for n in names if n.endswith(".safetensors")]
text = open(folder + "/results.md").read()
for words in ("| resnet18 |", "| vit_tiny |", "ten steps of vit_tiny, fp32", "| conv_kernel | 2 | 1900.5 | 95.0 | 40 | 80 |", "jpeg-20", "torchvision, plain files"):
    assert words in text, words
PY

# A part that can't be done is named, the others stay in the results.
expect 1 "$PYTHON3" "$srcdir/tests/device/device.py" --device cpu --tiny --parts study --data "$work/nowhere" \
    --build "$builddir" --out "$work/results"
grep -q '## Correctness' "$work/results/results.md" || fail "results of other parts are gone"
grep -q 'study: .*nowhere' "$work/results/results.md" || fail "the failure isn't named"
mkdir "$work/other" "$work/merged" && echo '{"schema": "dl2-device/1", "machine": {"cpu": "x"}, "parts": {"new": {}}}' >"$work/other/results.json"
expect 0 "$PYTHON3" "$srcdir/tests/device/device.py" --out "$work/merged" --merge "$work/results/results.json" "$work/other/results.json"
grep -q '"new"' "$work/merged/results.json" && grep -q '## Correctness' "$work/merged/results.md" || fail "results aren't put together"
expect 2 "$PYTHON3" "$srcdir/tests/device/device.py" --parts nonsense --build "$builddir"
exit 0
