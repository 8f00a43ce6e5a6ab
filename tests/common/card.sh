#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What the card did, told by a library that stands in for NVIDIA's: the timeline and the energy of a training, and that
# a card or a library that is not there is passed over in silence.
. "$srcdir/tests/lib.sh"
emulated && skip "emulated training takes a step in the seconds that it trains for"
[ -n "${PYTHON3:-}" ] || skip "no Python to read the reports with (Debian: python3)"
$CC -Wall -Werror -shared -fPIC "$srcdir/tests/common/fake_nvml.c" -o "$work/fake.so" || fail "the library does not compile"
DL2_NVML=$work/fake.so
export DL2_NVML
cd "$work" || exit 99

# A short training on random images. No check below depends on how busy the machine is.
train() { # NAME
    expect 0 dl2-train --loader synthetic --classes 10 --images 2048 -a convnet --image-size 16 -b 64 --threads 1 \
        --time-budget 0.7s --restart --quiet --out "$1"
    [ ! -s err ] || fail "$1: it complains: $(cat err)"
}
check() { # NAME; the Python that follows sees the report
    "$PYTHON3" - "$1/experiment_report.json" "$1" || fail "$1"
}

DL2_CARD=0000:1b:00.0 train counter
check counter <<'PY'
import json, sys
report = json.load(open(sys.argv[1]))
assert report["card"] == {"name": "Pretended card", "driver": "580.00.00", "memory_bytes": 8 << 30,
                          "power_limit_watts": 700.0, "energy": "counter"}, report["card"]
timeline = report["timeline"]
seconds = timeline["seconds"]
assert seconds and seconds == sorted(seconds), seconds
for name, value in {"card_percent": 80, "card_memory_percent": 40, "card_memory_bytes": 2 << 30, "card_watts": 250,
                    "card_sm_mhz": 1980, "card_memory_mhz": 3201}.items():
    assert timeline[name] == [value] * len(seconds), (name, timeline[name])
joules = timeline["card_joules"]
# 2 J a reading. Those at the first epoch's start and for the last sample are no epoch's.
assert joules == sorted(joules) and all(j > 0 and j % 2 == 0 for j in joules), joules
assert sum(e["joules"] for e in report["epochs"]) <= joules[-1] - 4, (report["epochs"], joules)
assert timeline["images"][-1] <= sum(e["train"]["images"] for e in report["epochs"])
assert timeline["images"] == sorted(timeline["images"])
assert timeline["images"][-1] > 0 or sum(e["seconds"] for e in report["epochs"]) < 2, report["epochs"]
for epoch in report["epochs"]:
    assert epoch["joules"] >= 2 and epoch["joules"] % 2 == 0, epoch
    assert abs(epoch["joules_per_image"] - epoch["joules"] / epoch["train"]["images"]) < 1e-9
    assert abs(epoch["data_stall"] - epoch["data_wait_seconds"] / epoch["seconds"]) < 1e-9
PY

# The card that the device says it is on: one that stands in for it (tests/cuda/fake_cuda.h).
fake=$builddir/tests/cuda/fake_dl2_train
if [ -x "$fake" ]; then
    expect 0 "$fake" --device cuda --loader synthetic --classes 2 --images 16 -a convnet --image-size 8 -b 8 -e 1 --threads 1 \
        --restart --quiet --out device
    check device <<'PY'
import json, sys
report = json.load(open(sys.argv[1]))
card = report["card"]
assert card["name"] == "Pretended card" and card["pci"] == "0000:00:00.0" and "compute_capability" in card, card
assert report["timeline"]["card_percent"][0] == 80, report["timeline"]
PY
fi

# A card that doesn't count: its power is summed up.
FAKE_NVML=nocounter DL2_CARD=0 train power
check power <<'PY'
import json, sys
report = json.load(open(sys.argv[1]))
assert report["card"]["energy"] == "power"
timeline = report["timeline"]
assert abs(timeline["card_joules"][-1] - 250 * timeline["seconds"][-1]) < 1, timeline
assert all(epoch["joules"] > 0 for epoch in report["epochs"]), report["epochs"]
assert sum(epoch["joules"] for epoch in report["epochs"]) <= timeline["card_joules"][-1] + 1, report
PY

# One that tells nothing but its name, and cards, drivers and libraries that are not there.
FAKE_NVML=nothing DL2_CARD=0 train nothing
grep -q '"name": "Pretended card"' nothing/experiment_report.json || fail "no name"
silent() { # NAME
    train "$1"
    check "$1" <<'PY'
import json, sys
report = json.load(open(sys.argv[1]))
if sys.argv[2] != "nothing":
    assert "card" not in report
assert report["timeline"]["seconds"] and not [c for c in report["timeline"] if c.startswith("card")]
assert not [e for e in report["epochs"] if "joules" in e or "joules_per_image" in e]
PY
}
FAKE_NVML=nothing DL2_CARD=0 silent nothing
silent unasked
DL2_CARD=0000:ff:00.0 silent elsewhere
FAKE_NVML=noinit DL2_CARD=0 silent driverless
DL2_NVML=$work/none.so DL2_CARD=0 silent missing
exit 0
