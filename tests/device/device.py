#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks and measures dl2 on a machine with an NVIDIA card, beside PyTorch where that is there:

    device.py [--parts LIST] [--out FOLDER] [--data FOLDER] [--minutes 9] [--device cuda]

Parts, each within its share of the minutes, and each by itself: what fails is named, and the rest goes on.
    correct      every operation of the device in every precision against the reference; ten steps of resnet18 and of
                 vit_tiny against PyTorch; two runs and a resumed one with the same weights; what it says when memory
                 runs out; with time left, all operations in bf16 once more under compute-sanitizer
    train        resnet50 and resnet18, 224 px, batch 256, bf16, synthetic data: dl2, PyTorch, torch.compile, in turns
    transformer  the same of vit_b_16, with AdamW
    load         from JPEG files: dl2's loader against torchvision's DataLoader, alone and training resnet50
    decode       JPEGs decoded on the processors, by nvJPEG, and by both, of plain files and of those with restart tiles
    study        five JPEG qualities and two of WebP, three seeds, resnet18 at 160 px, on --data; its report
    profile      where a training step's time goes, by Nsight Compute (ncu)

Results go to FOLDER (default: device-results): results.json, to which later parts are added, the same as tables in
results.md, study.tar.gz, and log.txt. Where a machine is to be had for minutes at a time: four calls of nine minutes
(correct,transformer; train; load,decode; study,profile), then --merge FILE... puts their results.json together. Exit
status 1: something failed. --device cpu --tiny tries all of it out without a card.

It runs from a bundle (`make bundle`: share/dl2/device/device.py; DL2_LIBRARIES where launchers don't find NVIDIA's
libraries by themselves), or from a checkout's build folder: --build FOLDER.
"""
import argparse
import csv
import glob
import io
import json
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PARTS = ["correct", "train", "transformer", "load", "decode", "study", "profile"]
SHARES = {"correct": 2, "train": 4, "transformer": 2, "load": 3, "decode": 1.5, "study": 7, "profile": 2.5}


class Failed(Exception):
    pass


class Runner:
    """Runs programs, never for longer than the part has left."""

    def __init__(self, args):
        self.args = args
        self.deadline = time.monotonic() + 60 * args.minutes
        self.part_deadline = self.deadline
        build = args.build
        if not build and not os.path.exists(os.path.join(HERE, "../../../libexec/run")):
            raise SystemExit("neither in a bundle nor with --build FOLDER")
        root = os.path.normpath(os.path.join(HERE, "../../.."))
        self.program = ((lambda name: [os.path.join(build, name)]) if build else
                        (lambda name: [os.path.join(root, "libexec/run"), name.rsplit("/", 1)[-1]]))
        self.peer_folders = [HERE, os.path.join(HERE, "../bench")]

    def peer(self, name):
        for folder in self.peer_folders:
            if os.path.exists(os.path.join(folder, name)):
                return [sys.executable, "-B", os.path.join(folder, name)]
        raise Failed(name + " is not there")

    def left(self):
        return min(self.deadline, self.part_deadline) - time.monotonic()

    def environment(self):
        environment = dict(os.environ, PYTHONUNBUFFERED="1")
        if self.args.device == "cpu":
            environment["CUDA_VISIBLE_DEVICES"] = ""
        return environment

    def run(self, command, most=None, status=(0,)):
        """Its standard output. Failed names the command and the end of what it wrote."""
        seconds = min(self.left(), most or max(30, self.left() / 2))  # one that hangs leaves time for others
        if seconds < 1:
            raise Failed("no time left")
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                                   start_new_session=True, env=self.environment())
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise Failed("%s: not done after %.0f s" % (os.path.basename(command[0]), seconds)) from None
        self.log(command, out, err)
        if process.returncode not in status:
            tail = (err.strip() or out.strip())[-600:]
            raise Failed("%s: exit status %d: %s" % (" ".join(command)[-200:], process.returncode, tail))
        return out if 0 in status else out + err

    def log(self, command, out, err):
        with open(os.path.join(self.args.out, "log.txt"), "a") as log:
            log.write("$ %s\n%s%s\n" % (" ".join(command), out[-20000:], err[-20000:]))

    def json(self, path):
        with open(path) as file:
            return json.load(file)


class Peer:
    """peer_train.py, which waits between its rounds."""

    def __init__(self, runner, *options):
        self.runner = runner
        self.log = open(os.path.join(runner.args.out, "log.txt"), "a")
        self.process = subprocess.Popen(runner.peer("peer_train.py") + list(options), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.log, text=True, start_new_session=True,
                                        env=runner.environment())
        self.line()  # "ready"

    def line(self):
        signal.signal(signal.SIGALRM, lambda *_: os.killpg(self.process.pid, signal.SIGKILL))
        signal.alarm(max(1, int(self.runner.left())))
        line = self.process.stdout.readline()
        signal.alarm(0)
        if not line:
            self.close()
            with open(self.log.name) as log:
                raise Failed("PyTorch ended or took too long: " + log.read()[-300:].strip().replace("\n", " | "))
        return line

    def round(self, steps):
        self.process.stdin.write("%d\n" % steps)
        self.process.stdin.flush()
        return json.loads(self.line())

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


# ---- What the parts have in common

def train(runner, out, *options, begin="--restart"):
    """dl2-train's report."""
    folder = os.path.join(runner.args.work, out)
    runner.run(runner.program("dl2-train") + [begin, "--quiet", "--device", runner.args.device, "--out", folder]
               + (["--threads", "1"] if runner.args.tiny else []) + [str(option) for option in options])
    return runner.json(os.path.join(folder, "experiment_report.json"))


def figures(report):
    """Medians of the epochs but the first."""
    epochs = report["epochs"][1:] or report["epochs"]
    medians = {}
    for name in ("images_per_second", "data_stall", "joules_per_image"):
        values = [epoch[name] for epoch in epochs if epoch.get(name) is not None]
        if values:
            medians[name] = statistics.median(values)
    timeline = report.get("timeline", {})
    for name in ("card_percent", "card_watts", "card_memory_bytes"):
        if timeline.get(name):
            values = [value for value in timeline[name] if value is not None]
            medians[name] = max(values) if name.endswith("bytes") else statistics.median(values)
    return medians


def nvidia_tool(name):
    """Its path, or None."""
    return shutil.which(name) or next(iter(sorted(glob.glob("/opt/nvidia/nsight-compute/*/" + name)
                                                  + glob.glob("/usr/local/cuda*/bin/" + name))), None)


def attempt(result, what, function, *arguments):
    """The result, or None after a failure that is noted."""
    try:
        return function(*arguments)
    except Exception as error:  # whatever it is, the rest goes on
        result.setdefault("failures", []).append("%s: %s" % (what, error))
        print("  FAILED %s: %s" % (what, str(error)[:500]), flush=True)
        return None


def made_up(runner, classes=2, train_images=32, val_images=8, pixels=64):
    """Images for trying things out."""
    folder = os.path.join(runner.args.work, "made-up")
    if not os.path.isdir(folder):
        runner.run(["sh", "-c", 'cd "$0" && shift 0 && exec "$@"', runner.args.work]
                   + [os.path.abspath(runner.program("tests/train/make_images")[0])]
                   + runner.program("tests/train/make_images")[1:]
                   + ["made-up", str(classes), str(train_images), str(val_images), str(pixels)])
    return folder


def photographs(runner):
    if runner.args.data and not os.path.isdir(runner.args.data):
        raise Failed("there is no folder " + runner.args.data)
    return os.path.abspath(runner.args.data) if runner.args.data else made_up(runner)


def variants(runner, folder, codec, qualities, *options):
    runner.run(runner.program("dl2-transcode") + ["--quiet", "--codec", codec, "--q", qualities, *options,
                                                  photographs(runner), folder], status=(0, 1))
    return folder


def many(runner, folder, least):
    """The training images of `folder` by so many more names (hard links) that there are `least`, as CLASS/IMAGE."""
    source = os.path.join(folder, "train") if os.path.isdir(os.path.join(folder, "train")) else folder
    target = folder.rstrip("/") + "-many"
    files = [path for path in glob.glob(source + "/*/*") if os.path.isfile(path)]
    for copy in range(max(1, -(-least // max(1, len(files))))):
        for path in files:
            name = os.path.join(target, os.path.basename(os.path.dirname(path)), "%d-%s" % (copy, os.path.basename(path)))
            os.makedirs(os.path.dirname(name), exist_ok=True)
            if not os.path.exists(name):
                os.link(path, name)
    return target


# ---- The parts

def ten_steps(runner, result, precisions, network, rate):
    """Losses here and in PyTorch, from the same weights."""
    args = runner.args
    steps = result.setdefault("ten steps of " + network[0], {})
    for precision in precisions:
        def compare(precision=precision):
            folder = tempfile.mkdtemp(dir=args.work)
            shape = network + ["64", "8" if args.tiny else "64", "10", "3" if args.tiny else "10", rate]
            theirs = runner.run(runner.peer("peer_steps.py") + [args.device, precision] + shape + [folder], 120)
            files = [os.path.join(folder, name) for name in ("weights", "images", "labels")]
            ours = runner.run(runner.program("tests/device/steps") + [args.device, precision] + shape + files, 120)
            pairs = [(float(a), float(b)) for a, b in zip(ours.split(), theirs.split())]
            worst = max(abs(a - b) for a, b in pairs)
            steps[precision] = {"dl2": [a for a, _ in pairs], "pytorch": [b for _, b in pairs], "largest difference": worst}
            if len(pairs) != int(shape[5]):
                raise Failed("%d steps" % len(pairs))
            if precision == "fp32" and not worst < 1e-3:
                raise Failed("losses differ by %g, more than 1e-3" % worst)
        attempt(result, "ten steps of %s in %s" % (network[0], precision), compare)


def correct(runner, result):
    args = runner.args
    precisions = ["fp32", "tf32", "bf16", "fp16"] if args.device.startswith("cuda") else ["fp32"]
    operations = result.setdefault("operations", {})
    for precision in precisions:
        def check(precision=precision):
            runner.run(runner.program("tests/device/test_device") + [args.device.split(":")[0], precision], 120)
            return "pass"
        operations[precision] = attempt(result, "operations in " + precision, check) or "FAIL"
    if args.device.startswith("cuda"):
        for name in ("test_gpu", "test_decode"):
            def gpu(name=name):
                runner.run(runner.program("tests/cuda/" + name), 120)
                return "pass"
            operations[name] = attempt(result, name, gpu) or "FAIL"
    # At SGD's rate of 0.01, which ReLUs open for want of a rounding makes differences above 1e-3 on processors too.
    for arch, optimizer, rate in (("resnet18", "sgd", "3e-4"), ("vit_tiny", "adamw", "3e-5")):
        ten_steps(runner, result, precisions, [arch, optimizer], rate)

    def same_weights():
        data = made_up(runner) if args.tiny else photographs(runner)
        options = ["-d", data, "-a", "convnet" if args.tiny else "resnet18", "--image-size", 32 if args.tiny else 64, "-b",
                   8 if args.tiny else 64, "--deterministic", "--skip-validation", "-e", 2]
        if args.device.startswith("cuda"):
            options += ["--amp", "bf16"]
        digests = {}
        for name, more in (("one", []), ("two", []), ("part", ["--run-epochs", 0.6])):
            train(runner, name, *options, *more)
        train(runner, "part", *options, begin="--resume")
        for name in ("one", "two", "part"):
            with open(os.path.join(args.work, name, "checkpoint.safetensors"), "rb") as file:
                header = int.from_bytes(file.read(8), "little")
                file.seek(8 + header)
                digests[name] = hash(file.read())
        if len(set(digests.values())) != 1:
            raise Failed("weights differ between " + ("two runs" if digests["one"] != digests["two"] else
                                                      "a run in one part and one that was resumed"))
        return "two runs and a resumed one have the same weights, bit for bit"
    result["deterministic"] = attempt(result, "determinism", same_weights) or "FAIL"

    if args.device.startswith("cuda"):
        def memory():
            text = runner.run(runner.program("dl2-train") + [
                "--restart", "--quiet", "--device", args.device, "--loader", "synthetic", "--classes", "1000", "--images",
                "5200", "-a", "resnet50", "-b", "2600", "--image-size", "224", "--amp", "tf32", "-e", "1", "--out",
                os.path.join(args.work, "memory")], 120, (1,))
            if "batch" not in text:
                raise Failed("no batch is named: " + text[-300:])
            return text.strip()[-500:]
        result["out of memory"] = attempt(result, "out of memory", memory)

        def metrics():
            folder = variants(runner, os.path.join(args.work, "metrics"), "jpeg", "50")
            values = {}
            for device in ("cpu", args.device):
                path = os.path.join(args.work, "metrics-%s.json" % device.split(":")[0])
                runner.run(runner.program("dl2-quality") + ["--quiet", "--device", device, "--json", path,
                                                            photographs(runner), os.path.join(folder, "jpeg-50")])
                values[device] = runner.json(path)["variants"][0]["metrics"]
            worst = max(abs(values["cpu"][m]["mean"] - values[args.device][m]["mean"]) for m in values["cpu"])
            if not worst < 1e-5:
                raise Failed("PSNR or SSIM differ by %g" % worst)
            return "means differ by at most %.2g" % worst
        result["metrics on the card"] = attempt(result, "metrics on the card", metrics)

        # Slow, so only where there is time.
        checker = nvidia_tool("compute-sanitizer")
        if checker and runner.left() > 120:
            def accesses():
                runner.run([checker, "--tool", "memcheck", "--target-processes", "all", "--error-exitcode", "9"]
                           + runner.program("tests/device/test_device") + [args.device.split(":")[0], "bf16"], 300)
                return "memcheck found nothing"
            result["accesses to memory"] = attempt(result, "compute-sanitizer", accesses)


def shape(runner):
    tiny = runner.args.tiny
    return {"batch": 4 if tiny else 256, "size": 32 if tiny else 224, "steps": 3 if tiny else 60,
            "rounds": 2 if tiny else 3, "amp": "bf16" if runner.args.device.startswith("cuda") else "off"}


def peer_options(runner, s, *more):
    return ["--device", runner.args.device, "--amp", s["amp"], "--batch", str(s["batch"]), "--size", str(s["size"]),
            *(["--warmup", "1", "--threads", "1"] if runner.args.tiny else []), *more]


def ours(runner, arch, s, *options):
    return train(runner, "train-" + arch, "-a", arch, "-b", s["batch"], "--image-size", s["size"], "--amp", s["amp"],
                 "--skip-validation", *options)


def synthetic(runner, result):
    for arch in (["resnet18"] if runner.args.tiny else ["resnet50", "resnet18"]):
        in_turns(runner, result, arch, "sgd", shape(runner))


def transformer(runner, result):
    s = shape(runner)
    in_turns(runner, result, "vit_tiny" if runner.args.tiny else "vit_b_16", "adamw", {**s, "steps": s["steps"] // 2})


def in_turns(runner, result, arch, optimizer, s):
    """dl2, PyTorch and torch.compile on synthetic data."""
    rounds = result.setdefault(arch, {"dl2": [], "pytorch eager": [], "pytorch compile": []})
    options = ["--optimizer", optimizer, "--loader", "synthetic", "--classes", 1000, "--images", s["batch"] * s["steps"],
               "-e", 3]
    attempt(result, "dl2 %s, warming up" % arch, ours, runner, arch, s, *options[:-1], 1)
    peers = {}
    for mode in ("eager", "compile"):
        peers[mode] = attempt(result, "PyTorch %s %s" % (mode, arch), Peer, runner, arch, "--optimizer", optimizer,
                              "--mode", mode, *peer_options(runner, s))
    for _ in range(s["rounds"]):
        report = attempt(result, "dl2 " + arch, ours, runner, arch, s, *options)
        if report:
            rounds["dl2"].append(figures(report)["images_per_second"])
            result.setdefault("run of dl2", {})[arch] = figures(report)
            result["card"] = report.get("card")
        for mode, peer in peers.items():
            got = peer and attempt(result, "PyTorch %s %s" % (mode, arch), peer.round, s["steps"])
            if got:
                rounds["pytorch " + mode].append(got["images_per_second"])
    for peer in peers.values():
        if peer:
            peer.close()


def load(runner, result):
    s, args = shape(runner), runner.args
    cores = len(os.sched_getaffinity(0))
    result["workers"] = cores
    folder = os.path.join(args.work, "load")
    plain = many(runner, variants(runner, folder + "-plain", "jpeg", "75", "--restart=none") + "/jpeg-75",
                 16 if args.tiny else 12000)
    tiles = many(runner, variants(runner, folder + "-tiles", "jpeg", "75") + "/jpeg-75", 16 if args.tiny else 12000)
    rates = result.setdefault("loaders alone, images/s", {})
    for name, data in (("dl2, plain files", plain), ("dl2, restart tiles", tiles)):
        def bench(data=data):
            path = os.path.join(args.work, "load.json")
            runner.run(runner.program("dl2-load") + ["--quiet", "-j", str(cores), "--image-size", str(s["size"]), "-b",
                                                     str(s["batch"]), "-e", "4", "--json", path, "bench", data])
            return runner.json(path)["images_per_second"]
        rates[name] = attempt(result, name, bench)

    def torchvision():
        out = runner.run(runner.peer("peer_load.py") + ["torchvision", plain, str(s["size"]), str(s["batch"]), str(cores), "2",
                                                        args.work])
        return max(float(rate) for rate in out.split())
    rates["torchvision, plain files"] = attempt(result, "torchvision's loader", torchvision)
    training = result.setdefault("training resnet50 from JPEG" if not args.tiny else "training resnet18 from JPEG", {})
    arch = "resnet18" if args.tiny else "resnet50"
    for name, data in (("dl2, plain files", plain), ("dl2, restart tiles", tiles)):
        report = attempt(result, name + ", training", ours, runner, arch, s, "-d", data, "--val-fraction", 0.01, "-j", cores,
                         "-e", 3)
        training[name] = report and figures(report)

    def pytorch():
        peer = Peer(runner, arch, "--data", plain, "--workers", str(cores), *peer_options(runner, s))
        steps = 3 if args.tiny else 45
        rounds = [peer.round(steps) for _ in range(2)]
        peer.close()
        return {key: statistics.median(r[key] for r in rounds) for key in ("images_per_second", "data_stall")}
    training["PyTorch, plain files"] = attempt(result, "PyTorch from JPEG", pytorch)


def decode(runner, result):
    s, args = shape(runner), runner.args
    cores = len(os.sched_getaffinity(0))
    folder = os.path.join(args.work, "load")
    plain = many(runner, variants(runner, folder + "-plain", "jpeg", "75", "--restart=none") + "/jpeg-75",
                 16 if args.tiny else 12000)
    tiles = many(runner, variants(runner, folder + "-tiles", "jpeg", "75") + "/jpeg-75", 16 if args.tiny else 12000)
    table = result.setdefault("images/s", {})
    runs = [("plain files, cpu", plain, []), ("restart tiles, cpu", tiles, [])]
    if args.device.startswith("cuda"):
        for way in ("gpu", "hybrid"):
            runs += [("plain files, %s" % way, plain, ["--decode", way]),
                     ("plain files, %s, regions" % way, plain, ["--decode", way, "--gpu-input", "region"]),
                     ("restart tiles, %s, spliced" % way, tiles, ["--decode", way, "--gpu-input", "spliced"])]
        for engine in ("engines", "cores"):
            runs += [("plain files, gpu, %s" % engine, plain, ["--decode", "gpu", "--gpu-engine", engine]),
                     ("restart tiles, gpu, spliced, %s" % engine, tiles,
                      ["--decode", "gpu", "--gpu-input", "spliced", "--gpu-engine", engine])]
    # A crop for validation is near the whole image: what regions and splicing save is seen with training's crops.
    for crops in (["--train"], ["--val", "--split", "train"]):
        for name, data, options in runs:
            def bench(data=data, options=options):
                path = os.path.join(args.work, "decode.json")
                runner.run(runner.program("dl2-load") + ["--quiet", "-j", str(cores), "--image-size", str(s["size"]), "-b",
                                                         str(s["batch"]), "-e", "3", "--json", path, *crops, *options,
                                                         "bench", data])
                report = runner.json(path)
                return {key: report[key] for key in ("images_per_second", "images_per_core_second", "stages", "card")
                        if key in report}
            name += ", training's crops" if "--train" in crops else ", the middle of the image"
            table[name] = attempt(result, name, bench)
    ways = ["cpu", "gpu", "hybrid"]
    if args.device.startswith("cuda"):
        for way in ways:
            report = attempt(result, "training, --decode " + way, ours, runner, "resnet50", s, "-d", tiles, "--val-fraction", 0.01,
                             "-j", cores, "-e", 3, "--decode", way)
            result.setdefault("training resnet50", {})[way] = report and figures(report)


def study(runner, result):
    s, args = shape(runner), runner.args
    out = os.path.join(args.work, "study")
    data = photographs(runner)
    result["data"] = os.path.basename(data)
    cores = str(len(os.sched_getaffinity(0)))
    arch, size, epochs = ("convnet", 32, 1) if args.tiny else ("resnet18", args.study_size, args.epochs)
    os.makedirs(out + "/load", exist_ok=True)
    began = time.monotonic()
    for codec, qualities in (("jpeg", "10,25,50,75,90"), ("webp", "25,75")):
        variants(runner, out + "/variants", codec, "20,80" if args.tiny else qualities)
    names = sorted(name for name in os.listdir(out + "/variants") if not name.startswith("."))
    runner.run(runner.program("dl2-quality") + ["--quiet", "-j", cores, "--json-dir", out + "/quality", data]
               + [out + "/variants/" + name for name in names], status=(0, 1))
    folders = {"raw": data, **{name: out + "/variants/" + name for name in names}}
    for name, folder in folders.items():
        runner.run(runner.program("dl2-load") + ["--quiet", "-j", cores, "--image-size", str(size), "-b", "64", "-e", "2", "--name",
                                                 name, "--json", "%s/load/%s.json" % (out, name), "bench", folder], status=(0, 1))
    result["seconds before training"] = time.monotonic() - began
    # A seed of all variants after the other, so that what time doesn't suffice for is a whole seed.
    for seed in (1, 2) if args.tiny else (1, 2, 3):
        for name, folder in folders.items():
            target = "study/train/%s/%s/seed-%d" % (name, arch, seed)
            options = ["-d", folder, "--val", folder] + ([] if name == "raw" else ["--val", data])
            attempt(result, "%s, seed %d" % (name, seed), train, runner, target, *options, "-a", arch, "-b",
                    8 if args.tiny else 64, "--image-size", size, "--amp", s["amp"], "-e", epochs, "--seed", seed,
                    "--validate-every", max(1, epochs // 10))
            for path in glob.glob(os.path.join(args.work, target, "*.safetensors")):
                os.remove(path)
    runner.part_deadline = runner.deadline + 30  # the report comes whatever was reached
    runner.deadline += 30
    result["answer"] = runner.run(runner.program("dl2-report") + [
        "--title", os.path.basename(data), "-o", out + "/report/report.html", out]).strip()
    runs = {}
    for name in folders:
        reports = [runner.json(path) for path in glob.glob("%s/train/%s/%s/seed-*/experiment_report.json" % (out, name, arch))]
        reports = [report for report in reports if report.get("completed")]
        if reports:
            runs[name] = {"top1": [report["final"][0]["top1"] for report in reports],
                          **{key: statistics.mean(figures(report).get(key, float("nan")) for report in reports)
                             for key in ("images_per_second", "data_stall")}}
    result["runs"] = runs
    with tarfile.open(os.path.join(args.out, "study.tar.gz"), "w:gz") as archive:
        for kind in ("report", "quality", "load", "train"):
            archive.add(os.path.join(out, kind), "study/" + kind,
                        filter=lambda info: None if info.name.endswith(".safetensors") else info)
        for path in glob.glob(out + "/variants/*/dl2-variant.json"):
            archive.add(path, "study/" + os.path.relpath(path, out))


def profile(runner, result):
    s, args = shape(runner), runner.args
    ncu = nvidia_tool("ncu")
    if not ncu:
        raise Failed("ncu (Nsight Compute) is not there")
    for arch in (["resnet18"] if args.tiny else ["resnet50", "resnet18"]):
        def one(arch=arch):
            # Kernels one by one, of one step: those before it try out convolutions.
            os.environ.update(DL2_CUDA_GRAPHS="off", DL2_CUDA_PROFILE="5")
            text = runner.run([ncu, "--clock-control", "none", "--target-processes", "all", "--section", "SpeedOfLight", "--csv",
                               "--page", "details", "--profile-from-start", "off", "--launch-count", str(args.launches)]
                              + runner.program("dl2-train")
                              + ["--restart", "--quiet", "--device", args.device, "--loader", "synthetic", "--classes", "1000",
                                 "--images", str(8 * s["batch"]), "-a", arch, "-b", str(s["batch"]), "--image-size",
                                 str(s["size"]), "--amp", s["amp"], "-e", "1", "--skip-validation", "--out",
                                 os.path.join(args.work, "profile")], 200)
            return kernels(text)
        result[arch] = attempt(result, "profile of " + arch, one)


def kernels(text):
    """Of ncu's CSV: each kernel's launches, time, and how near it came to the limits, the longest first."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        raise Failed("ncu measured nothing: " + text[-300:])
    launches = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines[start:]))):
        launch = launches.setdefault(row["ID"], {"kernel": row["Kernel Name"].split("(")[0][:80]})
        try:
            value = float(row["Metric Value"].replace(",", ""))
        except ValueError:
            continue
        unit = row["Metric Unit"]
        if row["Metric Name"] == "Duration":
            launch["us"] = value * {"ns": 1e-3, "nsecond": 1e-3, "us": 1, "usecond": 1, "ms": 1e3, "msecond": 1e3,
                                    "s": 1e6, "second": 1e6}.get(unit, float("nan"))
        elif row["Metric Name"] in ("DRAM Throughput", "Compute (SM) Throughput", "Memory Throughput") and unit == "%":
            launch[row["Metric Name"]] = value
    table = {}
    for launch in launches.values():
        entry = table.setdefault(launch["kernel"], {"launches": 0, "us": 0.0})
        us = launch.get("us", 0.0)
        entry["launches"] += 1
        entry["us"] += us
        for name in ("DRAM Throughput", "Compute (SM) Throughput", "Memory Throughput"):
            entry[name] = entry.get(name, 0.0) + us * launch.get(name, 0.0)
    for entry in table.values():
        for name in ("DRAM Throughput", "Compute (SM) Throughput", "Memory Throughput"):
            entry[name] = entry[name] / entry["us"] if entry["us"] else 0.0
    ordered = sorted(table.items(), key=lambda item: -item[1]["us"])
    return {"launches": len(launches), "us": sum(entry["us"] for entry in table.values()),
            "kernels": [{"kernel": name, **entry} for name, entry in ordered[:40]]}


# ---- Tables

def number(value, digits=0):
    return "-" if value is None else "%.*f" % (digits, value)


def tables(results):
    lines = ["# dl2 on %s" % (results["machine"].get("card") or results["machine"]["cpu"]), ""]
    lines += ["%s: %s" % item for item in results["machine"].items()] + [""]
    parts = results["parts"]

    def table(head, rows):
        lines.extend(["| " + " | ".join(head) + " |", "|" + "---|" * len(head)])
        lines.extend("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows)
        lines.append("")
    if "correct" in parts:
        part = parts["correct"]
        lines += ["## Correctness", ""]
        table(["check", "result"], list(part.get("operations", {}).items())
              + [("%s, %s: largest difference of losses to PyTorch's" % (what, precision), "%.2g" % steps["largest difference"])
                 for what in part if what.startswith("ten steps of ") for precision, steps in part[what].items()]
              + [(name, part.get(name)) for name in ("deterministic", "metrics on the card", "accesses to memory", "out of memory")
                 if part.get(name)])
    trained = {arch: rounds for part in ("train", "transformer") for arch, rounds in parts.get(part, {}).items()
               if isinstance(rounds, dict) and "pytorch eager" in rounds}
    if trained:
        lines += ["## Synthetic data, images/s (median of rounds in turns)", ""]
        rows = []
        for arch, rounds in trained.items():
            medians = {name: statistics.median(values) if values else None for name, values in rounds.items()}
            mine = medians["dl2"]
            ratio = [number(mine / medians[name], 2) if mine and medians[name] else "-"
                     for name in ("pytorch eager", "pytorch compile")]
            rows.append([arch, *(number(medians[name]) for name in ("dl2", "pytorch eager", "pytorch compile")), *ratio])
        table(["network", "dl2", "PyTorch eager", "torch.compile", "dl2 / eager", "dl2 / compile"], rows)
    if "load" in parts:
        part = parts["load"]
        lines += ["## From JPEG of quality 75, %s workers" % part.get("workers"), ""]
        table(["loader alone", "images/s"], [(k, number(v)) for k, v in part.get("loaders alone, images/s", {}).items()])
        for key in part:
            if key.startswith("training"):
                table([key, "images/s", "data stall, %", "J an image"],
                      [(k, number(v.get("images_per_second")), number(100 * v.get("data_stall", float("nan")), 1),
                        number(v.get("joules_per_image"), 4)) for k, v in part[key].items() if v])
    if "decode" in parts:
        part = parts["decode"]
        lines += ["## Decoding", ""]
        table(["", "images/s", "images/s a core"], [(k, number(v["images_per_second"]), number(v.get("images_per_core_second")))
                                                    for k, v in part.get("images/s", {}).items() if v])
        table(["training resnet50", "images/s", "data stall, %"],
              [(k, number(v.get("images_per_second")), number(100 * v.get("data_stall", float("nan")), 1))
               for k, v in part.get("training resnet50", {}).items() if v])
    if "study" in parts:
        part = parts["study"]
        lines += ["## Study of %s" % part.get("data"), "", part.get("answer") or "", ""]
        table(["trained on", "top-1, % (a seed each)", "images/s", "data stall, %"],
              [(k, " ".join(number(100 * t, 2) for t in v["top1"]), number(v["images_per_second"]),
                number(100 * v["data_stall"], 1)) for k, v in part.get("runs", {}).items()])
    for arch, found in parts.get("profile", {}).items():
        if isinstance(found, dict) and "kernels" in found:
            lines += ["## Profile of %s: %d launches, %.2f ms" % (arch, found["launches"], found["us"] / 1e3), ""]
            table(["kernel", "launches", "us", "share, %", "DRAM, %", "compute, %"],
                  [(k["kernel"], k["launches"], number(k["us"], 1), number(100 * k["us"] / found["us"] if found["us"] else 0, 1),
                    number(k["DRAM Throughput"]), number(k["Compute (SM) Throughput"])) for k in found["kernels"][:25]])
    failures = [(name, failure.split("\n")[0][:400]) for name, part in parts.items() for failure in part.get("failures", [])]
    lines += ["## What failed", ""] + (["- %s: %s" % item for item in failures] or ["Nothing."]) + [""]
    return "\n".join(lines)


def machine(runner):
    """What all of it ran on."""
    about = {"cpu": platform.processor() or platform.machine(), "cores": len(os.sched_getaffinity(0)),
             "system": platform.platform(), "libc": " ".join(platform.libc_ver())}
    try:
        with open("/proc/cpuinfo") as file:
            about["cpu"] = next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    for name, command in (("card", ["nvidia-smi", "--query-gpu=name,driver_version,memory.total,clocks.max.sm,power.limit",
                                    "--format=csv,noheader"]),
                          ("dl2", runner.program("dl2-train") + ["--version"]),
                          ("pytorch", [sys.executable, "-c", "import torch, torchvision; print(torch.__version__, "
                                       "torch.version.cuda, torch.backends.cudnn.version(), torchvision.__version__)"])):
        try:
            about[name] = " / ".join(runner.run(command, 60).split("\n")).strip(" /")
        except (Failed, OSError):
            if name != "card":
                about[name] = "not there"
    return about


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--out", default="device-results")
    parser.add_argument("--data", help="photographs: train/CLASS/... and val/CLASS/..., or CLASS/...")
    parser.add_argument("--minutes", type=float, default=9)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--build", help="a checkout's build folder, after make and make check TESTS= or make bundle")
    parser.add_argument("--epochs", type=int, default=30, help="of each of the study's trainings")
    parser.add_argument("--study-size", type=int, default=160, help="pixels that the study's networks see")
    parser.add_argument("--launches", type=int, default=1200, help="of a step's kernels, that profile looks at")
    parser.add_argument("--tiny", action="store_true", help="only try everything out")
    parser.add_argument("--merge", nargs="+", metavar="FILE", help="only put these results.json together")
    args = parser.parse_args()
    chosen = args.parts.split(",")
    unknown = [part for part in chosen if part not in PARTS]
    if unknown:
        parser.error("no part %s: there are %s" % (unknown[0], " ".join(PARTS)))
    args.out = os.path.abspath(args.out)
    args.build = args.build and os.path.abspath(args.build)
    os.makedirs(args.out, exist_ok=True)
    runner = None if args.merge else Runner(args)
    path = os.path.join(args.out, "results.json")
    results = {"schema": "dl2-device/1", "parts": {}}
    for source in args.merge or [path]:
        if args.merge or os.path.exists(source):
            with open(source) as file:
                more = json.load(file)
            results["machine"] = more.get("machine", {})
            results["parts"].update(more["parts"])

    def save():
        for name, text in (("results.json", json.dumps(results, indent=2)), ("results.md", tables(results))):
            with open(os.path.join(args.out, name + ".new"), "w") as file:
                file.write(text + "\n")
            os.replace(os.path.join(args.out, name + ".new"), os.path.join(args.out, name))
    if args.merge:
        save()
        return 0
    args.work = tempfile.mkdtemp(prefix="dl2-device.")
    try:
        results["machine"] = machine(runner)
        functions = {"correct": correct, "train": synthetic, "transformer": transformer, "load": load, "decode": decode,
                     "study": study, "profile": profile}
        for i, name in enumerate(chosen):
            share = SHARES[name] / sum(SHARES[part] for part in chosen[i:])
            runner.part_deadline = time.monotonic() + share * max(0, runner.deadline - time.monotonic())
            began = time.monotonic()
            print("%s, at most %.0f s" % (name, runner.left()), flush=True)
            result = results["parts"][name] = {}
            attempt(result, name, functions[name], runner, result)
            result["seconds"] = time.monotonic() - began
            save()
    finally:
        shutil.rmtree(args.work, ignore_errors=True)
    print(tables(results))
    return 1 if any(results["parts"][name].get("failures") for name in chosen) else 0


if __name__ == "__main__":
    sys.exit(main())
