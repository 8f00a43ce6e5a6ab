#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The first quarter of an hour of dl2 on a machine with an NVIDIA card, in two calls:

    device.py first|second [--out FOLDER] [--plans FILE]

    first   505 s at most: does it run, are its results right, how fast is it beside PyTorch?
    second  190 s at most: a study of photographs on the card, by dl2 and by a script that trains with PyTorch

Each call has parts; --list shows them with their limits in seconds. A part that hangs, crashes or fails loses only itself,
but a smoke test that fails ends the call. FOLDER (default: device-results) is complete after each part: results.md (read it
first), results.json, CALL.log, what all programs printed; plans.json, what cuDNN's plans were chosen, which --plans hands to a
later call; plan-times.json, and of the second call study.tar.gz. Exit status 1: something failed.

It runs from a bundle (`make bundle`: share/dl2/device/device.py; DL2_LIBRARIES where launchers don't find NVIDIA's
libraries by themselves), or from a checkout's build folder: --build FOLDER, after `make bundle_checks`. --rehearse tries all of
it out on a machine without a card, on less of everything.
"""
import argparse
import collections
import concurrent.futures
import csv
import glob
import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MAX_LOGGED = 1 << 20  # bytes of one program in the log, before its last lines
LARGEST_FILE = 15 << 20  # what is larger may not come back
SMOKE = "smoke test"

# How far losses of ten steps may be from PyTorch's in float32. They fall from 2.2 to 0.2 (resnet18) and from 2.8 to 0.7
# (vit_tiny); with gradients of three times the size they are 0.5 off by the second step, without any 0.33. On processors
# bfloat16 moves PyTorch's own losses by up to 0.015 from its float32 ones, and ours by as much. tf32 and fp16 round an
# eighth as far.
LOSSES_WITHIN = {"fp32": 1e-3, "tf32": 0.02, "fp16": 0.02, "bf16": 0.06}
DECODERS_WITHIN = 1  # gray levels in an image's mean, the bound of tests/cuda/test_decode.c
WATCHED = {"CUDA_LAUNCH_BLOCKING": "1", "CUDNN_LOGLEVEL_DBG": "2", "CUDNN_LOGDEST_DBG": "stderr", "CUBLASLT_LOG_LEVEL": "2"}


class Failed(Exception):
    pass


class Stopped(BaseException):
    """A signal ended the call. A BaseException, so that no part takes it for a failure of its own."""


# ---- Programs: what they print is in the log as soon as it is printed


class Program:
    """A program that runs, the head of a process group. What it prints goes to the call's log, line by line."""

    def __init__(self, call, what, command, environment):
        self.call, self.what, self.logged = call, what, 0
        self.lines = collections.deque(maxlen=2000)
        call.log("%s $ %s" % (what, " ".join(["%s=%s" % item for item in environment.items()] + list(map(shlex.quote, command)))))
        try:
            self.process = subprocess.Popen(command, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                            stderr=subprocess.STDOUT, text=True, errors="replace",
                                            env={**call.environment, **environment})
        except OSError as error:
            raise Failed("%s: cannot start %s: %s" % (what, command[0], error.strerror)) from None
        call.programs.add(self)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            self.logged += self.call.log(self.what + " | " + self.lines[-1]) if self.logged < MAX_LOGGED else 0

    def end(self):
        """Kills it where it still runs. Its exit status, or None where it can't be killed."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            pass
        self.reader.join(2)
        if self.logged >= MAX_LOGGED:
            for line in list(self.lines)[-100:]:
                self.call.log(self.what + " |... " + line)
        self.call.programs.discard(self)
        return self.process.returncode

    def tail(self):
        return "\n".join(list(self.lines)[-12:])[-900:].strip() or "(it printed nothing)"


class Call:
    """One call: its time, its results, its log."""

    def __init__(self, args, seconds, results):
        self.args, self.results = args, results
        self.began = time.monotonic()
        self.deadline = self.until = self.began + seconds
        self.programs, self.lock = set(), threading.Lock()
        self.stopping = False
        self.log_file = os.open(os.path.join(args.out, args.call + ".log"),
                                os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o666)
        self.logged = 0
        self.work = tempfile.mkdtemp(prefix="dl2-device.")
        root = os.path.normpath(os.path.join(HERE, "../../.."))
        if not args.build and not os.path.exists(os.path.join(root, "libexec/run")):
            raise SystemExit("device.py: neither in a bundle nor with --build FOLDER")
        self.program = ((lambda path: [os.path.join(args.build, path)]) if args.build else
                        (lambda path: [os.path.join(root, "libexec/run"), os.path.basename(path)]))
        self.packages = os.path.join(args.build, "python") if args.build else os.path.join(root, "lib/python")
        self.on_card = args.device.startswith("cuda")
        self.torch_device = "cpu" if args.rehearse else args.device
        self.plans = os.path.join(args.out, "plans.json")
        if args.plans and os.path.abspath(args.plans) != self.plans:
            try:
                shutil.copyfile(args.plans, self.plans)
            except OSError as error:  # costs time, but no result
                self.note("no plans from %s (%s): all are measured" % (args.plans, error.strerror))
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("DL2_CUDA_")}
        self.environment.update(PYTHONUNBUFFERED="1", PYTHONDONTWRITEBYTECODE="1", DL2_CUDA_PLAN_CACHE=self.plans)
        if args.rehearse:
            self.environment.update(CUDA_VISIBLE_DEVICES="", OMP_NUM_THREADS="1")
        self.parts = results["calls"].setdefault(args.call, {})
        self.parts.clear()

    def log(self, line):
        """How many bytes that are; none where the log is full."""
        if self.logged > LARGEST_FILE - MAX_LOGGED:
            return 0
        size = os.write(self.log_file, ("%7.2f %s\n" % (time.monotonic() - self.began, line)).encode())
        with self.lock:
            self.logged += size
        return size

    def left(self):
        return self.until - time.monotonic()

    def run(self, what, command, most=1e9, status=(0,), **environment):
        """Runs it, for no longer than `most` seconds and the part; gives what it printed."""
        if self.stopping or self.left() < 1:
            raise Failed("no time left for " + what)
        seconds = min(most, self.left())
        program = Program(self, what, command, environment)
        try:
            program.process.wait(seconds)
        except subprocess.TimeoutExpired:
            if most >= 1e9:  # a program with less time than the part is slow
                self.stacks(program)
            raise Failed("%s: not done after %.0f s; the last that it printed:\n%s" % (what, seconds, program.tail())) from None
        finally:
            code = program.end()
        for line in program.lines:
            if line.startswith("note: "):
                self.note(line[len("note: "):])
        if code not in status:
            raise Failed("%s: exit status %s:\n%s" % (what, code, program.tail()))
        return "\n".join(program.lines)

    def stacks(self, program):
        """Where it hangs, into the log; but for the end of a call, whose time is for what comes then."""
        debugger = nvidia_tool("cuda-gdb")
        if debugger and self.deadline - time.monotonic() > 60:
            try:
                found = subprocess.run([debugger, "-p", str(program.process.pid), "-batch", "-ex", "thread apply all backtrace"],
                                       stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10, check=False)
                self.log("stacks of %s:\n%s" % (program.what, (found.stdout + found.stderr)[-100000:]))
            except (OSError, subprocess.TimeoutExpired):
                pass

    def note(self, words):
        """What the device did in another way."""
        if words not in self.results["device notes"]:
            self.results["device notes"].append(words)

    def python(self, name):
        """A script beside this one."""
        for folder in (HERE, os.path.join(HERE, "../../examples"), os.path.join(HERE, "../../doc/dl2/examples")):
            if os.path.exists(os.path.join(folder, name)):
                return [self.args.python, os.path.join(folder, name)]
        raise Failed(name + " is not there")

    def save(self):
        for name, text in (("results.json", json.dumps(self.results, indent=1)), ("results.md", tables(self.results))):
            path = os.path.join(self.args.out, name)
            with open(path + ".new", "w") as file:
                file.write(text + "\n")
            os.replace(path + ".new", path)

    def part(self, name, seconds, function, *arguments):
        """Does a part; whatever becomes of it is in the results, and the rest goes on."""
        began = time.monotonic()
        self.until = min(self.deadline, began + min(seconds, self.args.limit))
        result = self.parts[name] = {"state": "running", "limit": round(self.until - began)}
        print("%4.0f s  %s, at most %.0f s" % (began - self.began, name, self.until - began), flush=True)
        try:
            self.save()
            function(self, result, *arguments)
        except Exception as error:  # whatever it is
            failed(result, str(error) if isinstance(error, Failed) else repr(error))
        except Stopped as stopped:
            failed(result, str(stopped))
            raise
        finally:
            result["state"] = "failed" if result.get("failures") else "done"
            result["seconds"] = round(time.monotonic() - began, 1)
            self.save()

    def stop(self, number, _frame):
        self.stopping = True
        for program in list(self.programs):
            try:
                os.killpg(program.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        raise Stopped("stopped by " + signal.Signals(number).name)


def failed(result, failure):
    result.setdefault("failures", []).append(failure)
    print("        FAILED %s" % failure[:600].replace("\n", "\n        "), flush=True)


def attempt(result, function, *arguments, **options):
    """The result, or None after a failure, which is noted."""
    try:
        return function(*arguments, **options)
    except Failed as failure:
        failed(result, str(failure))
        return None


def nvidia_tool(name):
    """Its path, or None."""
    places = ("/opt/nvidia/nsight-compute/*/", "/usr/local/cuda*/bin/", "/usr/local/cuda*/%s/" % name, "/usr/local/nvidia/bin/")
    return shutil.which(name) or next((path for place in places for path in sorted(glob.glob(place + name))), None)


def load_json(path):
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        raise Failed("cannot read %s: %s" % (os.path.basename(path), error)) from None


# ---- What parts have in common


def sizes(call):
    if call.args.rehearse:  # on what stands in for a card, each multiplication is plain C
        return {"arch": "convnet", "images": 16, **({"batch": 2, "size": 16, "steps": 2, "amp": "bf16"} if call.on_card else
                                                    {"batch": 4, "size": 32, "steps": 3, "amp": "off"})}
    return {"arch": "resnet50", "batch": 256, "size": 224, "steps": 20, "amp": "bf16", "images": 4000}


def train(call, what, *options, out="train", **environment):
    """dl2-train's report."""
    folder = os.path.join(call.work, out)
    call.run(what, call.program("dl2-train") + ["--restart", "--quiet", "--device", call.args.device, "--out", folder]
             + (["--threads", "1"] if call.args.rehearse else []) + [str(option) for option in options], **environment)
    report = load_json(os.path.join(folder, "experiment_report.json"))
    for words in report.get("device_notes") or []:
        call.note(words)
    return report


def synthetic(call, *options, epochs=3, steps=None, amp=None):
    """Options of dl2-train for training on a batch of noise, the same in every step."""
    s = sizes(call)
    return ["--loader", "synthetic", "--classes", 1000, "--images", s["batch"] * (steps or s["steps"]), "-e", epochs, "-a",
            s["arch"], "-b", s["batch"], "--image-size", s["size"], "--amp", amp or s["amp"], "--skip-validation", *options]


def figures(report):
    """Medians of the epochs but the first, and of the card's samples."""
    epochs = report["epochs"][1:] or report["epochs"]
    timeline = report.get("timeline") or {}
    found = {}
    for name in ("images_per_second", "data_stall", "joules_per_image", "card_percent", "card_watts", "card_memory_bytes"):
        values = timeline.get(name) or [] if name.startswith("card") else [epoch.get(name) for epoch in epochs]
        values = [value for value in values if value is not None]
        if values:
            found[name] = max(values) if name.endswith("bytes") else statistics.median(values)
    return found


def photographs(call):
    """Those of the bundle, or images that are made up, which is said."""
    folder = call.args.data or os.path.join(HERE, "photographs")
    if os.path.isdir(folder):
        return os.path.abspath(folder)
    if call.args.data:
        raise Failed("there is no folder " + call.args.data)
    call.results["machine"]["photographs"] = "none in this bundle: images of noise, 64 pixels wide"
    folder = os.path.join(call.work, "made-up")
    if not os.path.isdir(folder):
        call.run("make_images", call.program("tests/train/make_images") + [folder, "3", "16", "6", "64"])
    return folder


def repeated(source, target, least, each=1):
    """A folder like `source` with at least `least` images, hard links by several names; of one image in `each`."""
    files = sorted(os.path.relpath(path, source) for path in glob.glob(source + "/**/*.*", recursive=True) if os.path.isfile(path))
    files = files[::each]
    for copy in range(-(-least // max(1, len(files)))):
        for file in files:
            name = os.path.join(target, os.path.dirname(file), "%d-%s" % (copy, os.path.basename(file)))
            os.makedirs(os.path.dirname(name), exist_ok=True)
            if not os.path.exists(name):
                try:
                    os.link(os.path.join(source, file), name)
                except OSError:  # another file system
                    shutil.copyfile(os.path.join(source, file), name)
    return target


def jpegs(call):
    """Two folders CLASS/... of JPEGs of quality 75, without restart intervals and with tiles of them."""
    folders = []
    for name, options in (("plain", ["--restart=none"]), ("tiles", [])):
        made, target = os.path.join(call.work, name), os.path.join(call.work, "many-" + name)
        if not os.path.isdir(target):
            call.run("dl2-transcode", call.program("dl2-transcode") + ["--quiet", "--codec", "jpeg", "--q", "75", *options,
                                                                       photographs(call), made])
            repeated(made + "/jpeg-75/train", target, sizes(call)["images"])
        folders.append(target)
    return folders


def cores():
    return str(len(os.sched_getaffinity(0)))


def has_nvjpeg(call):
    """Asked of the program, which refuses --decode gpu before it looks for the dataset."""
    return call.on_card and "decodes on no card" not in call.run(
        "dl2-load", call.program("dl2-load") + ["--decode", "gpu", "bench", "/nowhere"], 20, (1, 2))


# ---- The first call: does it run?


def machine(call, result):
    """What all of it runs on."""
    about = call.results["machine"]
    about.update({"cpu": platform.processor() or platform.machine(), "cores": cores(), "system": platform.platform(),
                  "libc": " ".join(platform.libc_ver()), "python": platform.python_version()})
    try:
        with open("/proc/cpuinfo") as file:
            about["cpu"] = next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    if call.on_card:
        about["card"] = attempt(result, call.run, "nvidia-smi", [
            nvidia_tool("nvidia-smi") or "nvidia-smi", "--query-gpu=name,driver_version,memory.total,clocks.max.sm,power.limit",
            "--format=csv,noheader"], 10)
    versions = attempt(result, call.run, "dl2-train", call.program("dl2-train") + ["--version"], 10, DL2_VERBOSE="1") or ""
    about["dl2"] = ", ".join(line.strip() for line in versions.split("\n") if re.match("dl2-train|  device", line))
    about["pytorch"] = attempt(result, call.run, "PyTorch's versions", call.python("peer_model.py"))


def smoke(call, result):
    command = call.program("tests/device/smoke") + [call.args.device, "bf16" if call.on_card else "fp32"]
    try:
        text = call.run("smoke", command)
    except Failed:
        call.until = min(call.deadline, time.monotonic() + 10)  # once more, for what the libraries say
        result["once more"] = once_more(call, "smoke", command)
        raise
    result["begins at, s"] = {name: float(at) for at, name in re.findall(r"^ *([0-9.]+) s  (.*): begins", text, re.M)}


def once_more(call, what, command):
    """What becomes of it if it waits after each launch, and the libraries have logs."""
    try:
        call.run(what + ", once more", command, 10, **WATCHED)
        return "passes"
    except Failed as failure:
        return str(failure)


def operations(call, result, *precisions):
    """Each in a process of its own, some at once, against the reference. Those that fail once more, one by one."""
    names = list(dict.fromkeys(call.run("test_device", call.program("tests/device/test_device") + ["--list"], 20).split()))
    names = names[:6] if call.args.rehearse else names
    again = []
    for precision in precisions if call.on_card else set(precisions) & {"fp32"}:
        def one(name, precision=precision):
            command = call.program("tests/device/test_device") + [call.args.device.split(":")[0], precision, name]
            try:
                call.run("%s in %s" % (name, precision), command)
                return command, None
            except Failed as failure:
                return command, str(failure)
        with concurrent.futures.ThreadPoolExecutor(max(1, int(cores()) // 2)) as pool:
            outcomes = dict(zip(names, pool.map(one, names)))
        result[precision] = {name: "FAIL" if failure else "pass" for name, (_, failure) in outcomes.items()}
        for name, (command, failure) in outcomes.items():
            if failure:
                failed(result, failure)
                again.append(("%s in %s" % (name, precision), command))
        call.save()
    for what, command in again:
        result.setdefault("once more", {})[what] = once_more(call, what, command)


def ten_steps(call, result, *precisions):
    """Losses here, with recording and without, and in PyTorch, from the same weights; two networks at once."""
    pixels, batch, steps = (32, 4, 2) if call.args.rehearse else (64, 64, 10)
    precisions = [precision for precision in precisions if call.on_card or precision == "fp32"]

    def compare(arch, optimizer, rate):
        shape, folder = [str(pixels), str(batch), "10", str(steps), rate], tempfile.mkdtemp(dir=call.work)
        text = attempt(result, call.run, "PyTorch's steps of " + arch, call.python("peer_steps.py") + [
            call.torch_device, ",".join(precisions), arch, optimizer, *shape, folder])
        for precision in precisions if text else []:
            theirs = [float(line.split()[1]) for line in text.split("\n") if line.startswith(precision + " ")]
            entry = result.setdefault("%s, %s" % (arch, precision), {"pytorch": theirs})
            for graphs, name in (("on", "dl2"), ("off", "dl2, not recorded"))[:2 if call.on_card else 1]:
                ours = attempt(result, call.run, "%s of %s in %s" % (name, arch, precision),
                               call.program("tests/device/steps") + [call.args.device, precision, arch, optimizer, *shape]
                               + [os.path.join(folder, file) for file in ("weights", "images", "labels")], DL2_CUDA_GRAPHS=graphs)
                if ours is None:
                    continue
                entry[name] = [float(line) for line in ours.split("\n") if re.fullmatch(r"[-+.\dena]+", line)]
                off = entry[name + ": off by"] = max([abs(a - b) for a, b in zip(entry[name], theirs)] + [0])
                if not (len(entry[name]) == len(theirs) == steps and off < LOSSES_WITHIN[precision]):
                    failed(result, "%s, %s, %s: losses of %d and %d steps differ by %g, more than %g" % (
                        arch, precision, name, len(entry[name]), len(theirs), off, LOSSES_WITHIN[precision]))

    # At SGD's rate of 0.01, which ReLUs open for want of a rounding makes differences above 1e-3 on processors too.
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(compare, *zip(("resnet18", "sgd", "3e-4"), ("vit_tiny", "adamw", "3e-5"))) if precisions else [])


def other_precisions(call, result):
    operations(call, result, "fp16", "tf32")
    ten_steps(call, result, "fp16", "tf32")


def throughput(call, result):
    """With the first plans that run, which takes no time to choose; with the fastest, all measured unless --plans has them;
    without recording. Then the parts of a step by time, as dl2-train measures them itself."""
    measured = {} if call.args.plans and os.path.exists(call.plans) else {"DL2_CUDA_PLANS": os.path.join(call.args.out, "plan-times.json")}
    rates = result.setdefault("images/s", {})
    for name, options, environment in (("dl2, unmeasured plans", ["--deterministic"], {}), ("dl2", [], measured),
                                       ("dl2, not recorded", [], {"DL2_CUDA_GRAPHS": "off"})):
        report = attempt(result, train, call, name, *synthetic(call, *options), **environment)
        if report:
            rates[name], result["card"] = figures(report), report.get("card")
        call.save()
    path = os.path.join(call.work, "times.json")
    train(call, "times of a step", *synthetic(call, epochs=1, steps=8), DL2_CUDA_TIMES=path, DL2_CUDA_GRAPHS="off")
    if call.on_card:
        result["times"] = load_json(path)


def kernels(call, result):
    """Ours without the libraries: results; accesses to memory, where compute-sanitizer runs here; whether ncu does."""
    program = call.program("tests/cuda/card_kernels")
    if not os.path.exists(program[-1] if call.args.build else os.path.join(HERE, "../../../libexec", program[-1])) or not call.on_card:
        result["skipped"] = "without a card, or not in this build"
        return
    result["results"] = attempt(result, call.run, "our kernels", program, 15, (0, 77) if call.args.rehearse else (0,)) and "pass"
    # The bundle's programs are started by a script, so that both have to follow it.
    watch = ["--target-processes", "all"]
    for name, options in (("compute-sanitizer", [*watch, "--tool", "memcheck", "--print-limit", "20", "--error-exitcode", "9"]),
                          ("ncu", [*watch, "--clock-control", "none", "--launch-count", "1"])):
        tool = nvidia_tool(name)
        try:
            if not tool:
                raise Failed(name + " is not there")
            text = call.run(name + ", a probe", [tool, *options, *program], 5)
            if "==ERROR==" in text:
                raise Failed(text[text.index("==ERROR=="):][:400])
            result[name] = "runs"
        except Failed as failure:  # of the tool, not of dl2
            works = "not done after" in str(failure) and not re.search("error|not supported", str(failure), re.I)
            result[name] = "runs, but is not done in 5 s" if works else str(failure)
        call.save()
        if name == "compute-sanitizer" and result[name].startswith("runs"):
            try:
                call.run("our kernels, memcheck", [tool, *options, *program], max(1, call.left() - 7))
                result["memcheck"] = "found nothing"
            except Failed as failure:
                result["memcheck"] = str(failure)
                if "not done after" not in str(failure) or "Invalid" in str(failure):
                    failed(result, str(failure))


def peer(call, what, *options, rounds=3, steps=None):
    """Rounds of peer_train.py, a training with PyTorch."""
    s = sizes(call)
    text = call.run(what, call.python("peer_train.py") + [
        "resnet18" if call.args.rehearse else s["arch"], "--device", call.torch_device, "--amp", s["amp"], "--batch", str(s["batch"]),
        "--size", str(s["size"]), "--rounds", str(rounds), "--steps", str(steps or s["steps"]),
        *(["--warmup", "1", "--threads", "1"] if call.args.rehearse else []), *options])
    found = [json.loads(line) for line in text.split("\n") if line.startswith("{")]
    return {key: statistics.median(entry[key] for entry in found) for key in ("images_per_second", "data_stall")}


def against(call, result, mode):
    """dl2, PyTorch and dl2 again on synthetic data; by torch.compile, which takes its time, without the first."""
    rates = result.setdefault("images/s", {})
    for name in ("dl2, before", "PyTorch, " + mode, "dl2, after")[mode == "compile":]:
        found = attempt(result, peer, call, name, "--mode", mode) if name.startswith("PyTorch") else \
            attempt(result, train, call, name, *synthetic(call))
        if found:
            rates[name] = figures(found) if name.startswith("dl2") else found
        call.save()


def decode(call, result):
    """nvJPEG's pixels within their bound; JPEGs decoded by the processors, by nvJPEG and by both, plain and spliced."""
    s, (plain, tiles) = sizes(call), jpegs(call)
    runs = [("plain files, cpu", plain, []), ("restart tiles, cpu", tiles, [])]
    if has_nvjpeg(call):
        result["pixels"] = attempt(result, call.run, "test_decode", call.program("tests/cuda/test_decode"), 20) and \
            "within %g gray level of the processors'" % DECODERS_WITHIN
        for engine in ("engines", "cores"):
            runs += [("plain files, gpu, " + engine, plain, ["--decode", "gpu", "--gpu-engine", engine]),
                     ("restart tiles, gpu, spliced, " + engine, tiles,
                      ["--decode", "gpu", "--gpu-input", "spliced", "--gpu-engine", engine])]
        runs.append(("plain files, hybrid", plain, ["--decode", "hybrid"]))
    elif call.on_card:
        failed(result, "nvJPEG is not in this build: configure --with-nvjpeg=DIR (docs/gpu.md) and make bundle again")
    for name, data, options in runs:
        path = os.path.join(call.work, "bench.json")
        if attempt(result, call.run, name, call.program("dl2-load") + [
                "--quiet", "-j", cores(), "--image-size", str(s["size"]), "-b", str(s["batch"]), "-e", "2", "--json", path,
                "--train", *options, "bench", data]) is None:
            continue
        report = load_json(path)
        result.setdefault("images/s", {})[name] = {key: report[key] for key in ("images_per_second", "images_per_core_second", "card")
                                                   if key in report}
        card = report.get("card")
        if card and card["refused"]:  # the processors decoded those: the rate isn't the card's
            failed(result, "%s: the card refused %d of %d images, the first of them: %s"
                   % (name, card["refused"], card["refused"] + card["images"], card["refusal"]))
        call.save()


def load_in_python(call, result):
    """dl2.torch's loader, decoding by the processors, by nvJPEG, and by both."""
    if not glob.glob(os.path.join(call.packages, "dl2/_core*.so")):
        result["skipped"] = "the Python package is not in this build"
        return
    s = sizes(call)
    ways = ["cpu"] + (["gpu", "hybrid"] if has_nvjpeg(call) else [])
    out = call.run("dl2.torch", call.python("card_load.py") + [jpegs(call)[0], str(s["size"]), str(s["batch"]), cores(),
                                                               call.torch_device, *ways], PYTHONPATH=call.packages)
    found = next(json.loads(line) for line in out.split("\n") if line.startswith("{"))
    result["images/s"] = {way: {"images_per_second": rate} for way, rate in found["images/s"].items()}
    result["off by"] = found["off by"]
    far = {way: off for way, off in found["off by"].items() if not off <= DECODERS_WITHIN}
    if far:
        raise Failed("images are off by %s gray levels in the mean" % far)


def check_plans(call, result):
    """The chosen plan of each shape and pass of the network at its real batch, against one of float32."""
    call.run("plans", call.program("dl2-train") + ["--check-device", "--restart", "--device", call.args.device, "--out", os.path.join(
        call.work, "check")] + [str(option) for option in synthetic(call, epochs=1, steps=1)])


def train_from_files(call, result):
    """Training from JPEG files here and in PyTorch."""
    s, (plain, tiles) = sizes(call), jpegs(call)
    for name, data, options in (("dl2, plain files", plain, []), ("dl2, restart tiles, --decode gpu", tiles, [
            "--decode", "gpu", "--gpu-input", "spliced"]))[:2 if has_nvjpeg(call) else 1]:
        report = attempt(result, train, call, name, "-a", s["arch"], "-b", s["batch"], "--image-size", s["size"], "--amp", s["amp"],
                         "--skip-validation", "-d", data, "--val-fraction", 0.01, "-j", cores(), "-e", 2, *options)
        if report:
            result.setdefault("images/s", {})[name] = figures(report)
            call.save()
    result.setdefault("images/s", {})["PyTorch, plain files"] = peer(
        call, "PyTorch, plain files", "--data", plain, "--workers", cores(), rounds=1, steps=3 if call.args.rehearse else 20)


def deterministic(call, result):
    """Two runs, and one that is not recorded, have the same weights, bit for bit."""
    digests = {}
    for name in ("one", "two", "not recorded"):
        train(call, "deterministic, " + name, *synthetic(call, "--deterministic", epochs=1, steps=3), out=name,
              DL2_CUDA_GRAPHS="off" if name == "not recorded" else "on")
        with open(os.path.join(call.work, name, "checkpoint.safetensors"), "rb") as file:
            file.seek(8 + int.from_bytes(file.read(8), "little"))
            digests[name] = hashlib.sha256(file.read()).hexdigest()[:16]
    result["weights"] = digests
    if len(set(digests.values())) != 1:
        raise Failed("weights differ between runs: %s" % digests)


# ---- The second call: a study


def study(call, result):
    """Three variants, two seeds: dl2-study's steps one by one, so that a step that fails loses only what needs it, and a seed of
    all variants before the next."""
    out, rehearse = os.path.join(call.work, "study"), call.args.rehearse
    program = call.program("dl2-study")
    settings = {"dataset": study_data(call), "out": out, "codecs": "jpeg", "qualities": "10 50", "seeds": "1 2", "rounds": 2,
                "archs": "convnet" if rehearse else "resnet18", "image-size": 32 if rehearse else 128, "batch": 8 if rehearse else 64,
                "epochs": 1 if rehearse else 10, "measure": 0.2 if rehearse else 1, "device": call.args.device, "jobs": cores(),
                "trainers": 1, "train-flags": "--amp " + sizes(call)["amp"], "report-flags": "--title photographs"}
    call.run("dl2-study plan", program + ["plan"] + ["--%s=%s" % item for item in settings.items()])
    steps = [step["name"] for step in load_json(out + "/study-plan.json")["steps"]]
    # Trainings after the rest, a seed of all variants before the next; then the report.
    steps.sort(key=lambda name: (name == "report", name.split("/")[-1] if name.startswith("train/") else ""))
    end, call.until = call.until, call.until - min(8, call.left() / 4)  # the report comes whatever was reached
    for step in steps:
        if step == "report":
            call.until = end
        attempt(result, call.run, "study: " + step, program + ["do", out, step], 45 if step == "throughput" else 20)
        pack_study(call)
    rows = []
    for path in glob.glob(out + "/report/answer.csv"):
        with open(path) as file:
            rows = list(csv.DictReader(file))
    for row in rows:
        runs = [load_json(path) for path in sorted(glob.glob("%s/train/%s/*/seed-*/experiment_report.json" % (out, row["variant"])))]
        runs = [run for run in runs if run.get("completed")]
        result.setdefault("variants", {})[row["variant"]] = {
            **medians([{"top1": run["final"][0]["top1"], **figures(run)} for run in runs]), "bytes": float(row["ratio"]),
            "images_per_second": float(row["train_rate"]) if row["train_rate"] else None,
            "loaded_per_second": float(row["load_rate"]) if row["load_rate"] else None}
    if not any(found["card_watts"] and found["card_memory_bytes"] for found in result.get("variants", {}).values()):
        result["power and memory"] = "not measured, or in part: %s" % (
            "dl2-train could not ask NVML" if call.on_card else "there is no card")
    answer = os.path.join(out, "report/answer.json")
    if not rows or not os.path.exists(answer):
        raise Failed("the study has no answer")
    result["answer"] = " ".join(f"{network['smallest']['text']} {network['open']}" for network in load_json(answer)["networks"].values())


def study_data(call):
    """Each training photograph several times, so that epochs are long enough to be measured; in a rehearsal every third."""
    source, target = photographs(call), os.path.join(call.work, "photographs")
    if not os.path.isdir(target):
        least, each = (1, 3) if call.args.rehearse else (840, 1)
        repeated(source + "/train", target + "/train", least, each)
        repeated(source + "/val", target + "/val", 1, each)
    return target


def pack_study(call):
    out = os.path.join(call.work, "study")
    path = os.path.join(call.args.out, "study.tar.gz")
    with tarfile.open(path + ".new", "w:gz") as archive:
        for pattern in ("report", "quality", "load", "throughput", "train", "pytorch", "study-plan.json",
                        "variants/*/dl2-variant.json"):
            for found in glob.glob(os.path.join(out, pattern)):
                archive.add(found, os.path.relpath(found, call.work),
                            filter=lambda info: None if info.name.endswith((".safetensors", ".pt")) else info)
    os.replace(path + ".new", path)


def pytorch_study(call, result):
    """The same variants by a user's script, examples/train_torch.py, which loads by dl2.torch; watts and memory by nvidia-smi."""
    rehearse, out = call.args.rehearse, os.path.join(call.work, "study")
    data = study_data(call)
    if len(glob.glob(out + "/variants/*/dl2-variant.json")) < 2:  # the study did not come that far
        call.run("dl2-transcode", call.program("dl2-transcode") + [
            "--quiet", "--codec", "jpeg", "--q", "10,50", data, out + "/variants"])
    folders, runs = {"raw": data, **{name: "%s/variants/%s" % (out, name) for name in ("jpeg-10", "jpeg-50")}}, {}
    meter = Meter(call)
    try:
        for seed in (1,) if rehearse else (1, 2):
            for name, folder in folders.items():
                to, began = "%s/pytorch/%s/seed-%d" % (out, name, seed), time.monotonic()
                if attempt(result, call.run, "PyTorch, %s, seed %d" % (name, seed), call.python("train_torch.py") + [
                        folder, "--seed", str(seed), "--out", to, "--device", call.torch_device,
                        *(["--size", "32", "--batch", "8", "--epochs", "2"] if rehearse else
                          ["--size", "128", "--epochs", "10", "--amp"])], 1e9 if rehearse else 20, PYTHONPATH=call.packages) is None:
                    continue
                with open(to + "/epochs.jsonl") as file:
                    epochs = [json.loads(line) for line in file]
                runs.setdefault(name, []).append({"top1": load_json(to + "/result.json")["value"], **{key: statistics.median(
                    of(epoch) for epoch in epochs[1:] or epochs) for key, of in (
                        ("images_per_second", lambda epoch: epoch["images"] / epoch["seconds"]),
                        ("data_stall", lambda epoch: epoch["wait_seconds"] / epoch["seconds"]))}})
                watts, memory = meter.between(began, time.monotonic())
                runs[name][-1].update({"card_watts": watts, "card_memory_bytes": memory})
                if watts is None or memory is None:
                    result["power and memory"] = "not measured, or in part: " + meter.why_not()
                result["variants"] = {name: medians(found) for name, found in runs.items()}
                call.save()
                pack_study(call)
    finally:
        meter.end()


def medians(runs):
    """Of several trainings: all their accuracies, and the medians of the rest where there are any."""
    table = {"top1": [run["top1"] for run in runs]}
    for key in ("images_per_second", "data_stall", "card_watts", "card_memory_bytes", "joules_per_image"):
        values = [run[key] for run in runs if run.get(key) is not None]
        table[key] = statistics.median(values) if values else None
    return table


class Meter:
    """nvidia-smi, which says the card's watts and memory five times a second. Where it can't, why_not() says why."""

    def __init__(self, call):
        self.samples, self.program, self.problem = [], None, "there is no card"  # samples: (time, watts or None, bytes or None)
        try:
            if call.on_card:
                self.program = Program(call, "meter", [nvidia_tool("nvidia-smi") or "nvidia-smi", "--format=csv,noheader,nounits",
                                                       "--query-gpu=power.draw,memory.used", "-lms", "200"], {})
                threading.Thread(target=self.read, daemon=True).start()
        except Failed as failure:
            self.problem = str(failure)

    def read(self):
        while self.program.process.poll() is None:
            time.sleep(0.2)
            words = [word.strip() for word in self.program.tail().split("\n")[-1].split(",")]
            numbers = [float(word) if re.fullmatch(r"[0-9.]+", word) else None for word in words]
            if len(numbers) == 2:
                self.samples.append((time.monotonic(), numbers[0], None if numbers[1] is None else numbers[1] * 2**20))

    def between(self, begin, end):
        """The median watts of the busier half, since the others are of the start and of validation; and the most memory."""
        watts = sorted(watts for at, watts, _ in self.samples if begin <= at <= end and watts is not None)
        memory = [used for at, _, used in self.samples if begin <= at <= end and used is not None]
        return statistics.median(watts[len(watts) // 2:]) if watts else None, max(memory) if memory else None

    def why_not(self):
        return "nvidia-smi says %s" % self.program.tail()[-80:] if self.program else self.problem

    def end(self):
        if self.program:
            self.program.end()


# ---- The calls: their limits in seconds, and their parts in order of what teaches most, each with its own

CALLS = {
    "first": (505, [
        ("machine", 30, machine),
        (SMOKE, 35, smoke),
        ("operations in bf16 and fp32", 45, operations, "bf16", "fp32"),
        ("ten steps in fp32 and bf16", 45, ten_steps, "fp32", "bf16"),
        ("first throughput", 60, throughput),
        ("our kernels", 25, kernels),
        ("beside PyTorch eager", 40, against, "eager"),
        ("beside torch.compile", 50, against, "compile"),
        ("decoding", 45, decode),
        ("loading in Python", 25, load_in_python),
        ("fp16 and tf32", 40, other_precisions),
        ("plans", 20, check_plans),
        ("training from files", 30, train_from_files),
        ("determinism", 15, deterministic)]),
    "second": (190, [
        ("machine", 20, machine),
        (SMOKE, 15, smoke),
        ("study", 97, study),
        ("study by PyTorch", 58, pytorch_study)]),
}


# ---- Tables


def number(value, digits=0, scale=1):
    return "-" if value is None or value != value else "%.*f" % (digits, scale * value)


def tables(results):
    about = results["machine"]
    lines = ["# dl2 on %s" % (about.get("card") or about.get("cpu")), ""] + ["%s: %s  " % item for item in about.items()] + [""]

    def table(head, rows):
        if rows:
            lines.extend(["| " + " | ".join(head) + " |", "|" + "---|" * len(head)])
            lines.extend("| " + " | ".join(str(cell).replace("|", "/").replace("\n", " ") for cell in row) + " |" for row in rows)
            lines.append("")
    parts = [(call, name, part) for call, found in results["calls"].items() for name, part in found.items()]
    lines += ["## What failed", ""]
    failures = [(call, name, failure) for call, name, part in parts for failure in part.get("failures", [])]
    for call, name, failure in failures:
        shortened = failure if len(failure) < 700 else failure[:200] + " [...] " + failure[-450:]
        lines.append("- %s, %s: %s" % (call, name, shortened.replace("\n", "\n      ")))
    lines += [] if failures else ["Nothing."]
    if results["device notes"]:
        lines += ["", "## What the device did in another way", ""] + ["- " + words for words in results["device notes"]]
    lines += ["", "## Parts", ""]
    table(["call", "part", "", "s", "at most"],
          [(call, name, part["state"], part.get("seconds", "-"), part.get("limit", "-")) for call, name, part in parts])
    for _, name, part in parts:
        lines += ["## " + name, ""] if set(part) - {"state", "seconds", "limit", "failures"} else []
        for precision in LOSSES_WITHIN:
            outcomes = part.get(precision)
            if outcomes:
                bad = [operation for operation, outcome in outcomes.items() if outcome == "FAIL"]
                lines += ["Operations in %s: %d pass; %s" % (
                    precision, list(outcomes.values()).count("pass"), "these fail: " + ", ".join(bad) if bad else "none fails"), ""]
        table(["ten steps against PyTorch", "losses off by", "not recorded"],
              [(what, "%.2g" % entry.get("dl2: off by", float("nan")), "%.2g" % entry.get("dl2, not recorded: off by", float("nan")))
               for what, entry in part.items() if isinstance(entry, dict) and "pytorch" in entry])
        again = part.get("once more", {})
        table(["once more", ""], [(what, text[:300]) for what, text in (again if isinstance(again, dict) else {name: again}).items()])
        table(["", "images/s", "data stall, %", "W", "J an image", "GiB"],
              [(what, number(v.get("images_per_second")), number(v.get("data_stall"), 1, 100), number(v.get("card_watts")),
                number(v.get("joules_per_image"), 4), number(v.get("card_memory_bytes"), 1, 2**-30))
               for what, v in part.get("images/s", {}).items()])
        table(["trained on", "bytes, %", "top-1, % (a seed each)", "images/s", "loader alone", "data stall, %", "W", "GiB"],
              [(what, number(v.get("bytes"), 1, 100), " ".join(number(t, 1, 100) for t in v["top1"]),
                number(v.get("images_per_second")), number(v.get("loaded_per_second")), number(v.get("data_stall"), 1, 100),
                number(v.get("card_watts")), number(v.get("card_memory_bytes"), 1, 2**-30))
               for what, v in part.get("variants", {}).items()])
        if part.get("times"):
            count = max(1, part["times"]["steps"])
            table(["longest parts of a step", "", "calls", "ms a step"],
                  [(row["layer"], row["what"], row["calls"] // count, number(row["ms"] / count, 3))
                   for row in part["times"]["parts"][:15]])
        for what in ("results", "compute-sanitizer", "ncu", "memcheck", "pixels", "off by", "weights", "power and memory",
                     "answer", "skipped"):
            lines += ["%s: %s" % (what, part[what]), ""] if what in part else []
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("call", choices=list(CALLS), nargs="?")
    parser.add_argument("--list", action="store_true", help="the calls' parts and their limits in seconds")
    parser.add_argument("--only", action="append", metavar="PART", help="only this part; may be given several times")
    parser.add_argument("--out", default="device-results")
    parser.add_argument("--plans", metavar="FILE", help="plans.json of an earlier call, whose plans need no measuring")
    parser.add_argument("--data", metavar="FOLDER", help="photographs, train/CLASS/... and val/CLASS/... [those of the bundle]")
    parser.add_argument("--limit", type=float, default=1e9, metavar="SECONDS", help="of each part, where it is less than its own")
    parser.add_argument("--device", help="[cuda; with --rehearse cpu]")
    parser.add_argument("--python", default=sys.executable, help="the Python that has PyTorch [this one]")
    parser.add_argument("--build", metavar="FOLDER", help="a checkout's build folder")
    parser.add_argument("--rehearse", action="store_true", 
                        help="try it out on the processors: smaller networks, fewer images and operations, one seed of PyTorch")
    args = parser.parse_args()
    if args.list:
        for name, (seconds, parts) in CALLS.items():
            print("%s, %d s" % (name, seconds))
            print("".join("%8d s  %s\n" % (part[1], part[0]) for part in parts), end="")
        return 0
    if not args.call:
        parser.error("which call? first or second")
    seconds, parts = CALLS[args.call]
    for name in args.only or []:
        if name not in [part[0] for part in parts]:
            parser.error("%s has no part '%s' (--list)" % (args.call, name))
    args.device = args.device or ("cpu" if args.rehearse else "cuda")
    args.out = os.path.abspath(args.out)
    args.build = args.build and os.path.abspath(args.build)
    os.makedirs(args.out, exist_ok=True)
    path = os.path.join(args.out, "results.json")
    results = load_json(path) if os.path.exists(path) else {"schema": "dl2-device/3", "machine": {}, "device notes": [], "calls": {}}
    call = Call(args, seconds, results)
    if args.rehearse:
        call.log("A rehearsal: %s; the first 6 operations; studies of every third photograph by small networks, one seed of PyTorch. "
                 "Limits are those of a card." % sizes(call))
    signal.signal(signal.SIGTERM, call.stop)
    signal.signal(signal.SIGINT, call.stop)
    try:
        for part in parts:
            if not args.only or part[0] in args.only:
                call.part(*part)
            if part[0] == SMOKE and call.parts.get(SMOKE, {}).get("failures"):
                print("The smoke test failed: nothing else is tried.", flush=True)
                break
    except Stopped as stopped:
        print(stopped, flush=True)
        return 1
    finally:
        shutil.rmtree(call.work, ignore_errors=True)
    with open(os.path.join(args.out, "results.md")) as file:
        print(file.read())
    too_large = 0
    print("%4.0f s of %d. To bring back:" % (time.monotonic() - call.began, seconds))
    for name in sorted(os.listdir(args.out)):
        size = os.path.getsize(os.path.join(args.out, name))
        too_large += size > LARGEST_FILE
        print("%10d bytes  %s%s" % (size, name, ", FAILED: too large to come back" if size > LARGEST_FILE else ""))
    return 1 if too_large or any(part.get("failures") for part in call.parts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
