#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks and measures dl2 on a machine with an NVIDIA card, beside PyTorch where that is there:

    device.py run|speed|input [--out FOLDER] [--data FOLDER] [--minutes N] [--device cuda]

There are three calls, to be made in this order; each takes less than ten minutes. --list shows their steps.
    run     does it run? libraries, every operation, the chosen plans, ten steps against PyTorch, the first throughput
    speed   how fast? dl2 against PyTorch and torch.compile in turns, the longest kernels, all plans' times
    input   what comes before a step: NCCL, loading, decoding, a study of --data

Each step has its own time limit, saves what it found as it goes, and stops no other. FOLDER (default: device-results)
gets results.json and results.md, to which each call adds; CALL.log, what all programs printed, as they printed it;
plans.json and study.tar.gz. Read results.md first. Exit status 1: something failed. --device cpu --tiny tries all of
it out without a card.

It runs from a bundle (`make bundle`: share/dl2/device/device.py; DL2_LIBRARIES where launchers don't find NVIDIA's
libraries by themselves), or from a checkout's build folder: --build FOLDER, after `make bundle_checks`.
"""
import argparse
import collections
import concurrent.futures
import csv
import glob
import io
import json
import os
import platform
import queue
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
LARGEST_LOG = 12 << 20  # from which on it has last lines alone: a log of 16 MiB may be too large to be fetched

# How far losses of ten steps may be from PyTorch's in float32. They fall from 2.2 to 0.2 (resnet18) and from 2.8 to 0.7
# (vit_tiny); with gradients of three times the size they are 0.5 off by the second step, without any 0.33. On processors
# bfloat16 moves PyTorch's own losses by up to 0.015 from its float32 ones, and ours by as much. tf32 and fp16 round an
# eighth as far.
LOSSES_WITHIN = {"fp32": 1e-3, "tf32": 0.02, "fp16": 0.02, "bf16": 0.06}

# Our kernels, as they are named in cuda/*.cu; the others that run are cuDNN's and cublasLt's.
OUR_KERNELS = ("add_losses add_pixel_losses average_pool average_pool_backward count_cells count_labels dice_scores dice_sums each "
               "end_update find_clip finish_rows ingest ingest_floats layer_norm layer_norm_backward_data loss make_windows map_rows "
               "max_pool max_pool_backward pixel_losses resize_images score_tile set_step_params softmax softmax_backward sum_rows sum_squares "
               "tokens_backward").split()


class Failed(Exception):
    pass


class Stopped(BaseException):
    """A signal ended the call. A BaseException, so that no step takes it for a failure of its own."""


# ---- Programs: what they print is in the log as soon as it is printed


class Program:
    """A program that runs, the head of a process group. All that it prints goes to the call's log, line by line."""

    def __init__(self, call, what, command, environment, **options):
        self.call, self.what, self.written = call, what, 0
        self.lines = queue.Queue()  # of its standard output; None after the last
        self.out, self.text = [], []
        self.last = collections.deque(maxlen=100)
        call.log("%s $ %s" % (what, " ".join(["%s=%s" % item for item in environment.items()]
                                             + [shlex.quote(word) for word in command])))

        keeper = shutil.which("setpriv")  # so that it does not outlive this program
        self.process = subprocess.Popen(([keeper, "--pdeathsig", "KILL", "--"] if keeper else []) + command, process_group=0,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env={**call.environment, **environment}, **options)
        with call.lock:
            call.programs.add(self)
        self.pumps = [threading.Thread(target=self.pump, args=item, daemon=True) for item in
                      ((self.process.stdout, self.out), (self.process.stderr, None))]
        for pump in self.pumps:
            pump.start()

    def pump(self, pipe, kept):
        rest = b""
        while True:
            chunk = os.read(pipe.fileno(), 65536)
            *lines, rest = (rest + chunk).split(b"\n")
            if not chunk and rest:
                lines.append(rest)
            for line in lines:
                line = line.decode(errors="replace")
                self.text.append(line)
                if kept is not None:
                    kept.append(line)
                    self.lines.put(line)
                self.written += len(line)
                if self.written < MAX_LOGGED and self.call.logged < LARGEST_LOG:
                    self.call.log(self.what + " | " + line)
                else:
                    self.last.append(line)
            if not chunk:
                break
        if kept is not None:
            self.lines.put(None)

    def stacks(self):
        """Where it hangs, into the log; but for the end of a call, whose time is for what comes then."""
        debugger = nvidia_tool("cuda-gdb")
        if debugger and self.call.deadline - time.monotonic() > 60:
            with open(self.call.log_path, "ab") as log:
                subprocess.run([debugger, "-p", str(self.process.pid), "-batch", "-ex", "thread apply all backtrace"],
                               stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=20, check=False)

    def end(self):
        """Kills it where it still runs. Its exit status, or None where it can't be killed."""
        try:
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(5)
        except (subprocess.TimeoutExpired, ProcessLookupError):
            pass
        for pump in self.pumps:
            pump.join(2)
        for line in self.last:
            self.call.log(self.what + " |... " + line)
        self.last.clear()
        with self.call.lock:
            self.call.programs.discard(self)
        return self.process.returncode

    def tail(self):
        return "\n".join(self.text[-12:])[-900:].strip() or "(it printed nothing)"


class Call:
    """One call: its time, its results, its log."""

    def __init__(self, name, args, results):
        self.name, self.args, self.results = name, args, results
        self.began = time.monotonic()
        self.deadline = self.until = self.began + 60 * args.minutes
        self.lock, self.programs, self.stopping = threading.RLock(), set(), False
        self.log_path = os.path.join(args.out, name + ".log")
        self.log_file = os.open(self.log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        self.logged = os.fstat(self.log_file).st_size
        self.work = tempfile.mkdtemp(prefix="dl2-device.")
        root = os.path.normpath(os.path.join(HERE, "../../.."))
        if not args.build and not os.path.exists(os.path.join(root, "libexec/run")):
            raise SystemExit("device.py: neither in a bundle nor with --build FOLDER")
        self.program = ((lambda path: [os.path.join(args.build, path)]) if args.build else
                        (lambda path: [os.path.join(root, "libexec/run"), os.path.basename(path)]))
        self.packages = os.path.join(args.build, "python") if args.build else os.path.join(root, "lib/python")
        self.on_card = args.device.startswith("cuda")
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("DL2_CUDA_")}
        # Plans are chosen once in a call, and anew in each.
        self.environment.update(PYTHONUNBUFFERED="1", DL2_CUDA_PLAN_CACHE=os.path.join(self.work, "plans"))
        if not self.on_card:
            self.environment["CUDA_VISIBLE_DEVICES"] = ""
        self.steps = results["calls"].setdefault(name, {})
        if not args.only:
            self.steps.clear()

    def log(self, line):
        self.logged += os.write(self.log_file, ("%7.2f %s\n" % (time.monotonic() - self.began, line)).encode())

    def left(self):
        return self.until - time.monotonic()

    def start(self, what, command, environment, **options):
        if self.stopping or self.left() < 1:
            raise Failed("no time left for " + what)
        try:
            return Program(self, what, command, environment, **options)
        except OSError as error:
            raise Failed("%s: cannot start %s: %s" % (what, command[0], error.strerror)) from None

    def run(self, what, command, most=1e9, status=(0,), **environment):
        """Runs it, for no longer than `most` seconds and the step; gives its standard output."""
        program = self.start(what, command, environment, stdin=subprocess.DEVNULL)
        seconds = min(most, self.left())
        try:
            program.process.wait(seconds)
        except subprocess.TimeoutExpired:
            try:
                program.stacks()
            except (OSError, subprocess.TimeoutExpired):
                pass
            raise Failed("%s: not done after %.0f s; the last that it printed:\n%s" % (what, seconds, program.tail())) from None
        finally:
            code = program.end()
        for line in program.text:
            if line.startswith("note: "):
                self.note(line[len("note: "):])
        if code not in status:
            raise Failed("%s: exit status %s:\n%s" % (what, code, program.tail()))
        return "\n".join(program.out if 0 in status else program.text)

    def note(self, words):
        """What the device did in another way."""
        with self.lock:
            if words not in self.results["device notes"]:
                self.results["device notes"].append(words)

    def together(self, jobs, at_once):
        """Results of functions, by name, so many at once; where one fails, its Failed."""
        def one(function):
            try:
                return function()
            except Failed as failure:
                return failure
        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            futures = {name: pool.submit(one, function) for name, function in jobs.items()}
            return {name: future.result() for name, future in futures.items()}

    def peer(self, name):
        for folder in (HERE, os.path.join(HERE, "../bench")):
            if os.path.exists(os.path.join(folder, name)):
                return [self.args.python, "-B", os.path.join(folder, name)]
        raise Failed(name + " is not there")

    def save(self):
        with self.lock:
            try:
                text = tables(self.results)
            except Exception as error:  # results.json is what counts
                text = "The tables cannot be made: %r" % error
            for name, text in (("results.json", json.dumps(self.results, indent=1)), ("results.md", text)):
                path = os.path.join(self.args.out, name)
                with open(path + ".new", "w") as file:
                    file.write(text + "\n")
                os.replace(path + ".new", path)

    def step(self, name, seconds, function, *arguments):
        """Runs a step; whatever becomes of it is in the results, and the rest goes on."""
        result = self.steps[name] = {"state": "running"}
        began = time.monotonic()
        self.until = min(self.deadline, began + seconds)
        try:
            self.save()
            if self.until - began < 3:
                raise Failed("no time left")
            print("%4.0f s  %s, at most %.0f s" % (began - self.began, name, self.until - began), flush=True)
            function(self, result, *arguments)
        except Exception as error:  # whatever it is
            note(result, str(error) if isinstance(error, Failed) else repr(error))
        except Stopped as stopped:
            note(result, str(stopped))
            raise
        finally:
            result["state"] = "failed" if result.get("failures") else "done"
            result["seconds"] = round(time.monotonic() - began, 1)
            self.save()

    def stop(self, number, _frame):
        self.stopping = True
        with self.lock:
            for program in list(self.programs):
                if program.process.poll() is None:
                    os.killpg(program.process.pid, signal.SIGKILL)
        raise Stopped("stopped by " + signal.Signals(number).name)


def note(result, failure):
    result.setdefault("failures", []).append(failure)
    print("        FAILED %s" % failure[:600].replace("\n", "\n        "), flush=True)


def attempt(result, function, *arguments, **options):
    """The result, or None after a failure, which is noted."""
    try:
        return function(*arguments, **options)
    except Failed as failure:
        note(result, str(failure))
        return None


def nvidia_tool(name):
    """Its path, or None."""
    return shutil.which(name) or next(iter(sorted(glob.glob("/opt/nvidia/nsight-compute/*/" + name)
                                                  + glob.glob("/usr/local/cuda*/bin/" + name)
                                                  + glob.glob("/usr/local/cuda*/%s/%s" % (name, name))
                                                  + glob.glob("/usr/local/nvidia/bin/" + name))), None)


def load_json(path):
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        raise Failed("cannot read %s: %s" % (os.path.basename(path), error)) from None


# ---- What steps have in common


def sizes(call):
    """Of batches and images, and the numbers of steps and rounds. --tiny only tries the steps out."""
    if call.args.tiny:
        return {"batch": 4, "size": 32, "steps": 3, "rounds": 2, "amp": "bf16" if call.on_card else "off"}
    return {"batch": 256, "size": 224, "steps": 40, "rounds": 3, "amp": "bf16" if call.on_card else "off"}


def train(call, what, *options, out=None, begin="--restart", **environment):
    """dl2-train's report."""
    folder = os.path.join(call.work, out or "train")
    call.run(what, call.program("dl2-train") + [begin, "--device", call.args.device, "--out", folder]
             + (["--threads", "1"] if call.args.tiny else []) + [str(option) for option in options], **environment)
    report = load_json(os.path.join(folder, "experiment_report.json"))
    for words in report.get("device_notes") or []:
        call.note(words)
    return report


def synthetic(call, arch, *options, epochs=3, **changes):
    """Options of dl2-train for training on a batch of noise, the same in every step."""
    s = {**sizes(call), **changes}
    return ["--loader", "synthetic", "--classes", 1000, "--images", s["batch"] * s["steps"], "-e", epochs, "-a", arch, "-b",
            s["batch"], "--image-size", s["size"], "--amp", s["amp"], "--skip-validation", *options]


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
        values = [value for value in timeline.get(name) or [] if value is not None]
        if values:
            medians[name] = max(values) if name.endswith("bytes") else statistics.median(values)
    return medians


def made_up(call):
    """Images for trying things out."""
    folder = os.path.join(call.work, "made-up")
    if not os.path.isdir(folder):
        program = call.program("tests/train/make_images")
        call.run("make_images", program[:-1] + [os.path.abspath(program[-1]) if call.args.build else program[-1]]
                 + [folder, "2", "32", "8", "64"])
    return folder


def photographs(call):
    if call.args.data and not os.path.isdir(call.args.data):
        raise Failed("there is no folder " + call.args.data)
    return os.path.abspath(call.args.data) if call.args.data else made_up(call)


def variants(call, folder, codec, qualities, *options):
    call.run("dl2-transcode", call.program("dl2-transcode") + ["--quiet", "--codec", codec, "--q", qualities, *options,
                                                               photographs(call), folder], status=(0, 1))
    return folder


def many(folder, least):
    """A folder CLASS/IMAGE of at least `least` images: hard links to the training images of `folder`, each by several names."""
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


def jpegs(call):
    """Two folders of JPEGs of quality 75, without restart intervals and with tiles of them."""
    folder, least = os.path.join(call.work, "jpegs"), 16 if call.args.tiny else 12000
    return [many(os.path.join(folder + name, "jpeg-75") if os.path.isdir(folder + name) else
                 os.path.join(variants(call, folder + name, "jpeg", "75", *options), "jpeg-75"), least)
            for name, options in (("-plain", ["--restart=none"]), ("-tiles", []))]


def cores():
    return str(len(os.sched_getaffinity(0)))


# ---- Does it run?


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
            "--format=csv,noheader"])
    versions = attempt(result, call.run, "dl2-train", call.program("dl2-train") + ["--version"], DL2_VERBOSE="1") or ""
    about["dl2"] = ", ".join(line.strip() for line in versions.split("\n") if re.match("dl2-train|  device", line))


def smoke(call, result):
    text = call.run("smoke", call.program("tests/device/smoke") + [call.args.device, "bf16" if call.on_card else "fp32"])
    result["begins at, s"] = {name: float(at) for at, name in re.findall(r"^ *([0-9.]+) s  (.*): begins", text, re.M)}


def test_device(call, precision, *operation):
    return call.program("tests/device/test_device") + [call.args.device.split(":")[0], precision, *operation]


def operations(call, result, *precisions):
    """Each in a process of its own, some at once."""
    names = call.run("test_device", call.program("tests/device/test_device") + ["--list"], 20).split()
    for precision in precisions if call.on_card else set(precisions) & {"fp32"}:
        jobs = {name: (lambda name=name: call.run("%s in %s" % (name, precision), test_device(call, precision, name), 60))
                for name in names}
        for name, outcome in call.together(jobs, max(1, int(cores()) // 2) if call.on_card else 1).items():
            failed = isinstance(outcome, Failed)
            result.setdefault(precision, {})[name] = "FAIL" if failed else "pass"
            if failed:
                note(result, str(outcome))
        call.save()


def failed_operations(call, result):
    """Those that failed, the simplest first, once more: waiting after each launch, watched by compute-sanitizer, and with the
    libraries' logs."""
    failed = [(name, precision) for step in call.steps.values() for precision, outcomes in step.items()
              if precision in LOSSES_WITHIN for name, outcome in outcomes.items() if outcome == "FAIL"]
    done = {key for step in call.steps.values() for key in step.get("once more", {})}
    checker = nvidia_tool("compute-sanitizer")
    for name, precision in failed:
        what = "%s in %s" % (name, precision)
        if what in done:
            continue
        command = test_device(call, precision, name)
        ways = {"CUDA_LAUNCH_BLOCKING=1": (command, {"CUDA_LAUNCH_BLOCKING": "1"}),
                "libraries' logs": (command, {
                    "CUDNN_LOGLEVEL_DBG": "2", "CUDNN_LOGDEST_DBG": "stderr", "CUBLASLT_LOG_LEVEL": "2"})}
        if checker and call.on_card:
            ways["memcheck"] = (watched_by(checker, "memcheck") + command, {})
        for way in ("CUDA_LAUNCH_BLOCKING=1", "memcheck", "libraries' logs"):
            if way in ways:
                outcome = "passes"
                try:
                    call.run("%s, %s" % (what, way), ways[way][0], 60, **ways[way][1])
                except Failed as failure:
                    outcome = str(failure)
                result.setdefault("once more", {}).setdefault(what, {})[way] = outcome
                call.save()


def watched_by(checker, tool):
    return [checker, "--tool", tool, "--target-processes", "all", "--print-limit", "20", "--error-exitcode", "9"]


def check_plans(call, result, *precisions):
    """The chosen plan of each shape and pass of a network at its real batch, against one of float32."""
    for precision in precisions if call.on_card else ["off"]:
        for arch in ["convnet"] if call.args.tiny else ["resnet50", "vit_b_16"]:
            attempt(result, call.run, "plans of %s in %s" % (arch, precision), call.program("dl2-train") + [
                "--check-device", "--restart", "--device", call.args.device, "--out", os.path.join(call.work, "check")]
                + [str(option) for option in synthetic(call, arch, epochs=1, steps=1, amp=precision)])


def ten_steps(call, result, *precisions):
    """Losses here, with recording and without, and in PyTorch, from the same weights."""
    tiny = call.args.tiny
    if not call.on_card:
        precisions = [precision for precision in precisions if precision == "fp32"]

    def peer(arch, optimizer, rate):
        folder = tempfile.mkdtemp(dir=call.work)
        shape = ["64", "8" if tiny else "64", "10", "3" if tiny else "10", rate]
        text = call.run("PyTorch's steps of " + arch, call.peer("peer_steps.py") + [call.args.device, ",".join(precisions), arch,
                                                                                    optimizer, *shape, folder], 120)
        return shape, folder, text.split("\n")

    # At SGD's rate of 0.01, which ReLUs open for want of a rounding makes differences above 1e-3 on processors too.
    networks = [("resnet18", "sgd", "3e-4"), ("vit_tiny", "adamw", "3e-5")] if precisions else []
    peers = call.together({network: (lambda network=network: peer(*network)) for network in networks}, 2)
    for (arch, optimizer, rate), found in peers.items():
        if isinstance(found, Failed):
            note(result, str(found))
            continue
        shape, folder, text = found
        for line in text:
            if line.startswith("PyTorch "):
                call.results["machine"]["pytorch"] = line
        for precision in precisions:
            theirs = [float(line.split()[1]) for line in text if line.startswith(precision + " ")]
            entry = result.setdefault("%s, %s" % (arch, precision), {"pytorch": theirs})
            for graphs in ("on", "off") if call.on_card else ("on",):
                name = "dl2" if graphs == "on" else "dl2, not recorded"
                ours = attempt(result, call.run, "%s of %s in %s" % (name, arch, precision),
                               call.program("tests/device/steps") + [call.args.device, precision, arch, optimizer, *shape]
                               + [os.path.join(folder, file) for file in ("weights", "images", "labels")], 60,
                               DL2_CUDA_GRAPHS=graphs)
                if ours is None:
                    continue
                entry[name] = [float(word) for word in ours.split()]
                worst = max([abs(a - b) for a, b in zip(entry[name], theirs)] + [0])
                entry["%s: off by" % name] = worst
                if not (len(entry[name]) == len(theirs) == int(shape[3]) and worst < LOSSES_WITHIN[precision]):
                    note(result, "%s, %s, %s: losses of %d and %d steps differ by %g, more than %g" % (
                        arch, precision, name, len(entry[name]), len(theirs), worst, LOSSES_WITHIN[precision]))
            call.save()


def first_figure(call, result):
    """resnet50: with the first plans that run, which takes no time to choose; with the fastest; without recording."""
    for name, options, graphs in (("dl2, unmeasured plans", ["--deterministic"], "on"), ("dl2", [], "on"),
                                  ("dl2, not recorded", [], "off")):
        report = attempt(result, train, call, "resnet50, %s" % name,
                         *synthetic(call, "convnet" if call.args.tiny else "resnet50", *options), DL2_CUDA_GRAPHS=graphs)
        if report:
            result[name] = figures(report)
            result["card"] = report.get("card")
        call.save()


def times_of_a_step(call, result):
    """The parts of a step by time, as dl2-train measures them itself."""
    path = os.path.join(call.work, "times.json")
    train(call, "times of a step", *synthetic(call, "convnet" if call.args.tiny else "resnet50", epochs=1, steps=5),
          DL2_CUDA_TIMES=path, DL2_CUDA_GRAPHS="off")
    if call.on_card:
        result["times"] = load_json(path)


def our_kernels(call, result):
    """Without the libraries: results, accesses to memory, races in shared memory."""
    program = call.program("tests/cuda/card_kernels")
    if not call.on_card:
        call.run("our kernels", program, 60, (0, 77))  # 77: there is no card
        return
    result["results"] = attempt(result, call.run, "our kernels", program, 60) and "pass"
    checker = nvidia_tool("compute-sanitizer")
    if not checker:
        raise Failed("compute-sanitizer is not there")
    for tool in ("memcheck", "racecheck"):
        result[tool] = attempt(result, call.run, "our kernels, " + tool, watched_by(checker, tool) + program) and "found nothing"
        call.save()


def deterministic(call, result):
    """Two runs and a resumed one have the same weights, bit for bit."""
    data = made_up(call) if call.args.tiny else photographs(call)
    options = ["-d", data, "-a", "convnet" if call.args.tiny else "resnet18", "--image-size", 32 if call.args.tiny else 64, "-b",
               8 if call.args.tiny else 64, "--deterministic", "--skip-validation", "-e", 2]
    options += ["--amp", "bf16"] if call.on_card else []
    digests = {}
    for name, more in (("one", []), ("two", []), ("part", ["--run-epochs", 0.6])):
        train(call, "deterministic, " + name, *options, *more, out=name)
    train(call, "deterministic, resumed", *options, out="part", begin="--resume")
    for name in ("one", "two", "part"):
        with open(os.path.join(call.work, name, "checkpoint.safetensors"), "rb") as file:
            header = int.from_bytes(file.read(8), "little")
            file.seek(8 + header)
            digests[name] = hash(file.read())
    if len(set(digests.values())) != 1:
        raise Failed("weights differ between " + ("two runs" if digests["one"] != digests["two"] else
                                                  "a run in one part and one that was resumed"))
    result["same weights"] = "two runs and a resumed one"


def out_of_memory(call, result):
    """A batch too large for any card: that a smaller one is named. --deterministic: no plan is measured for it."""
    if call.on_card:
        text = call.run("out of memory", call.program("dl2-train") + ["--restart", "--device", call.args.device, "--out",
                                                                      os.path.join(call.work, "memory"), "--deterministic"]
                        + [str(option) for option in synthetic(call, "resnet50", epochs=1, batch=2600, steps=1, amp="tf32")],
                        60, (1,))
        result["says"] = text.strip()[-500:]
        if "batch" not in text:
            raise Failed("no batch is named")


def metrics(call, result):
    """PSNR and SSIM, by the card and by the processors."""
    folder = variants(call, os.path.join(call.work, "metrics"), "jpeg", "50")
    values = {}
    for device in ("cpu", call.args.device):
        path = os.path.join(call.work, "metrics-%s.json" % device.split(":")[0])
        call.run("dl2-quality on " + device, call.program("dl2-quality") + ["--quiet", "--device", device, "--json", path,
                                                                            photographs(call), os.path.join(folder, "jpeg-50")])
        values[device] = load_json(path)["variants"][0]["metrics"]
    result["largest difference"] = max(abs(values["cpu"][m]["mean"] - values[call.args.device][m]["mean"]) for m in values["cpu"])
    if not result["largest difference"] < 1e-5:
        raise Failed("PSNR or SSIM differ by %g" % result["largest difference"])


def other_tests(call, result):
    """Errors in words; nvJPEG's pixels."""
    for name in ["test_gpu"] + (["test_decode"] if has_nvjpeg(call) else []) if call.on_card else []:
        result[name] = attempt(result, call.run, name, call.program("tests/cuda/" + name), 60) and "pass"


# ---- How fast?


def peer_options(call, *more):
    s = sizes(call)
    return ["--device", call.args.device, "--amp", s["amp"], "--batch", str(s["batch"]), "--size", str(s["size"]),
            *(["--warmup", "1", "--threads", "1"] if call.args.tiny else []), *more]


class Peer:
    """peer_train.py, which waits between its rounds."""

    def __init__(self, call, arch, *options):
        self.call = call
        self.program = call.start("PyTorch, " + arch, call.peer("peer_train.py") + [arch, *options], {}, stdin=subprocess.PIPE)
        call.results["machine"]["pytorch"] = self.line().replace("ready ", "", 1)

    def line(self):
        how = "took too long"
        try:
            line = self.program.lines.get(timeout=max(1, self.call.left()))
            if line is not None:
                return line
            how = "ended"
        except queue.Empty:
            pass
        self.program.end()
        raise Failed("%s %s:\n%s" % (self.program.what, how, self.program.tail()))

    def round(self, steps):
        self.program.process.stdin.write(b"%d\n" % steps)
        self.program.process.stdin.flush()
        return json.loads(self.line())


def choose_plans(call, arch, optimizer):
    """A first run, which measures all plans; their times go to plans.json, by network."""
    plans, path = os.path.join(call.work, "plans-%s.json" % arch), os.path.join(call.args.out, "plans.json")
    train(call, "dl2 %s, choosing plans" % arch, *synthetic(call, arch, "--optimizer", optimizer, epochs=1), DL2_CUDA_PLANS=plans)
    if call.on_card:
        every = load_json(path) if os.path.exists(path) else {}
        every[arch] = load_json(plans)
        with open(path + ".new", "w") as file:
            json.dump(every, file)
        os.replace(path + ".new", path)


def against(call, result, mode, arch, optimizer):
    """dl2 and PyTorch in turns on synthetic data. PyTorch starts when its first turn comes, and waits in dl2's."""
    s = sizes(call)
    rounds = result.setdefault("images/s", {"dl2": [], "pytorch " + mode: []})
    options = synthetic(call, arch, "--optimizer", optimizer)
    if mode == "eager":
        attempt(result, choose_plans, call, arch, optimizer)
    peer = None
    try:
        for turn in range(s["rounds"]):
            report = attempt(result, train, call, "dl2 " + arch, *options)
            if report:
                rounds["dl2"].append(figures(report)["images_per_second"])
                result["run of dl2"], result["card"] = figures(report), report.get("card")
                call.save()
            if turn == 0:
                peer = Peer(call, arch, "--optimizer", optimizer, "--mode", mode, *peer_options(call))
            rounds["pytorch " + mode].append(peer.round(s["steps"])["images_per_second"])
            call.save()
    finally:
        if peer:
            peer.program.end()


def longest_kernels(call, result):
    """The ten of ours that take longest in a step, and how near each comes to the limits, by Nsight Compute."""
    ncu = nvidia_tool("ncu")
    if not ncu:
        raise Failed("ncu (Nsight Compute) is not there")
    arch = "resnet18" if call.args.tiny else "resnet50"

    def profile(what, *options):
        # Kernels one by one, of one step: those before it try out convolutions.
        return kernels(call.run(what, [ncu, "--clock-control", "none", "--target-processes", "all", "--csv", "--page", "details",
                                       "--profile-from-start", "off", *options] + call.program("dl2-train")
                                + ["--restart", "--device", call.args.device, "--out", os.path.join(call.work, "profile")]
                                + [str(option) for option in synthetic(call, arch, epochs=1, steps=8)],
                                DL2_CUDA_GRAPHS="off", DL2_CUDA_PROFILE="5"))
    result["all of ours"] = profile("all kernels of ours", "--metrics", "gpu__time_duration.sum", "--kernel-name-base", "function",
                                    "--kernel-name", "regex:^(%s)$" % "|".join(OUR_KERNELS))
    call.save()
    longest = [kernel["kernel"] for kernel in result["all of ours"]["kernels"][:10]]
    if not longest:
        raise Failed("ncu saw none of our kernels")
    result["longest"] = profile("the longest kernels", "--section", "SpeedOfLight", "--launch-count", "60", "--kernel-name-base",
                                "demangled", "--kernel-name", "regex:^(%s).*" % "|".join(escaped(name) for name in longest))


def escaped(name):
    """For ncu's regular expressions, in which only what has a meaning may be escaped."""
    return re.sub(r"([][(){}.*+?^$|\\])", r"\\\1", name)


def without_arguments(name):
    """"void a<(int)8>" of "void a<(int)8>(float *)"."""
    depth = 0
    for i in range(len(name) - 1, -1 if name.endswith(")") else len(name), -1):
        depth += {")": 1, "(": -1}.get(name[i], 0)
        if depth == 0:
            return name[:i]
    return name


def kernels(text):
    """Of ncu's CSV: each kernel's launches, time, and how near it came to the limits, the longest first."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        raise Failed("ncu measured nothing: " + text[-300:])
    limits = ("DRAM Throughput", "Compute (SM) Throughput", "Memory Throughput")
    launches = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines[start:]))):
        if not row["ID"].isdigit() or row["Metric Value"] is None:
            continue  # a line of ncu's or of the program's own
        launch = launches.setdefault(row["ID"], {"kernel": without_arguments(row["Kernel Name"])})
        try:
            value = float(row["Metric Value"].replace(",", ""))
        except ValueError:
            continue
        unit = row["Metric Unit"]
        if row["Metric Name"] in ("Duration", "gpu__time_duration.sum"):
            launch["us"] = value * {"ns": 1e-3, "nsecond": 1e-3, "us": 1, "usecond": 1, "ms": 1e3, "msecond": 1e3,
                                    "s": 1e6, "second": 1e6}.get(unit, float("nan"))
        elif row["Metric Name"] in limits and unit == "%":
            launch[row["Metric Name"]] = value
    table = {}
    for launch in launches.values():
        entry = table.setdefault(launch["kernel"], {"launches": 0, "us": 0.0})
        us = launch.get("us", 0.0)
        entry["launches"] += 1
        entry["us"] += us
        for name in limits:
            entry[name] = entry.get(name, 0.0) + us * launch.get(name, 0.0)
    for entry in table.values():
        for name in limits:
            entry[name] = entry[name] / entry["us"] if entry["us"] else 0.0
    ordered = sorted(table.items(), key=lambda item: -item[1]["us"])
    return {"launches": len(launches), "us": sum(entry["us"] for entry in table.values()),
            "kernels": [{"kernel": name, **entry} for name, entry in ordered[:40]]}


# ---- What comes before a step


def one_rank(call, result):
    """A world of one card: NCCL starts, and its sums are part of what is recorded. With the weights of a run without."""
    options = synthetic(call, "convnet" if call.args.tiny else "resnet18", "--deterministic", epochs=1)
    for name, more in (("alone", ["--device", call.args.device]), ("by NCCL", ["--gpus", 1]))[:None if call.on_card else 1]:
        folder = os.path.join(call.work, "rank")
        call.run("one rank, " + name, call.program("dl2-train") + ["--restart", "--out", folder]
                 + [str(option) for option in [*options, *more]], 60, NCCL_DEBUG="WARN")
        report = load_json(os.path.join(folder, "experiment_report.json"))
        result[name] = {**figures(report), "loss": report["epochs"][-1]["train"]["loss"]}
    if call.on_card and result["alone"]["loss"] != result["by NCCL"]["loss"]:
        raise Failed("the loss is %g, but %g alone" % (result["by NCCL"]["loss"], result["alone"]["loss"]))


def bench(call, what, data, *options):
    """dl2-load's report."""
    s, path = sizes(call), os.path.join(call.work, "bench.json")
    call.run(what, call.program("dl2-load") + ["--quiet", "-j", cores(), "--image-size", str(s["size"]), "-b", str(s["batch"]),
                                               "-e", "3", "--json", path, *options, "bench", data])
    report = load_json(path)
    return {key: report[key] for key in ("images_per_second", "images_per_core_second", "stages", "card") if key in report}


def load(call, result):
    """From JPEG files: the loader alone, and torchvision's."""
    s, (plain, tiles) = sizes(call), jpegs(call)
    result["workers"] = cores()
    rates = result.setdefault("images/s", {})
    for name, data in (("dl2, plain files", plain), ("dl2, restart tiles", tiles)):
        report = attempt(result, bench, call, name, data)
        rates[name] = report and report["images_per_second"]
        call.save()
    out = call.run("torchvision's loader", call.peer("peer_load.py") + ["torchvision", plain, str(s["size"]), str(s["batch"]),
                                                                       cores(), "2", call.work])
    rates["torchvision, plain files"] = max(float(rate) for rate in out.split())


def train_from_files(call, result):
    """Training from JPEG files here and in PyTorch."""
    s, (plain, tiles) = sizes(call), jpegs(call)
    arch = "resnet18" if call.args.tiny else "resnet50"
    for name, data in (("dl2, plain files", plain), ("dl2, restart tiles", tiles)):
        report = attempt(result, train, call, name + ", training", "-a", arch, "-b", s["batch"], "--image-size", s["size"], "--amp",
                         s["amp"], "--skip-validation", "-d", data, "--val-fraction", 0.01, "-j", cores(), "-e", 3)
        if report:
            result.setdefault("training", {})[name] = figures(report)
            call.save()
    peer = Peer(call, arch, "--data", plain, "--workers", cores(), *peer_options(call))
    try:
        rounds = [peer.round(3 if call.args.tiny else 45) for _ in range(2)]
    finally:
        peer.program.end()
    result.setdefault("training", {})["PyTorch, plain files"] = {
        key: statistics.median(r[key] for r in rounds) for key in ("images_per_second", "data_stall")}


def has_nvjpeg(call):
    """Asked of the program, which refuses --decode gpu before it looks for the dataset."""
    return "decodes on no card" not in call.run("dl2-load", call.program("dl2-load") + ["--decode", "gpu", "bench", "/nowhere"], 20,
                                                (1, 2))


def decode(call, result):
    """JPEGs decoded by the processors, by nvJPEG, and by both, of plain files and of those with restart tiles."""
    if call.on_card and not has_nvjpeg(call):
        raise Failed("nvJPEG is not in this build: unpack the Python wheel nvidia-nvjpeg into a folder, "
                     "configure --with-nvjpeg=FOLDER/nvidia/cu13, and make bundle again (docs/install.md)")
    s, (plain, tiles), arch = sizes(call), jpegs(call), "convnet" if call.args.tiny else "resnet50"
    table = result.setdefault("images/s", {})
    runs = [("plain files, cpu", plain, []), ("restart tiles, cpu", tiles, [])]
    if call.on_card:
        for engine in ("engines", "cores"):
            runs += [("plain files, gpu, %s" % engine, plain, ["--decode", "gpu", "--gpu-engine", engine]),
                     ("restart tiles, gpu, spliced, %s" % engine, tiles,
                      ["--decode", "gpu", "--gpu-input", "spliced", "--gpu-engine", engine])]
        for way in ("gpu", "hybrid"):
            runs += [("plain files, %s" % way, plain, ["--decode", way]),
                     ("plain files, %s, regions" % way, plain, ["--decode", way, "--gpu-input", "region"]),
                     ("restart tiles, %s, spliced" % way, tiles, ["--decode", way, "--gpu-input", "spliced"])]
    # A crop for validation is near the whole image: what regions and splicing save is seen with training's crops.
    for crops, words in ((["--train"], "training's crops"), (["--val", "--split", "train"], "the middle of the image")):
        for name, data, options in runs:
            report = table["%s, %s" % (name, words)] = attempt(result, bench, call, name, data, *crops, *options)
            card = report and report["card"]
            if card and card["refused"]:  # the processors decoded those: the rate isn't the card's
                note(result, "%s, %s: the card refused %d of %d images, the first of them: %s"
                     % (name, words, card["refused"], card["refused"] + card["images"], card["refusal"]))
            call.save()
    for way in ("cpu", "gpu", "hybrid") if call.on_card else ():
        report = attempt(result, train, call, "training, --decode " + way, "-a", arch, "-b", s["batch"], "--image-size",
                         s["size"], "--amp", s["amp"], "--skip-validation", "-d", tiles, "--val-fraction", 0.01, "-j", cores(),
                         "-e", 3, "--decode", way)
        result.setdefault("training", {})[way] = report and figures(report)


def load_in_python(call, result):
    """dl2.torch's loader, decoding by the processors, by nvJPEG, and by both."""
    if not glob.glob(os.path.join(call.packages, "dl2/_core*.so")):
        result["skipped"] = "the Python package is not in this build"
        return
    s = sizes(call)
    ways = ["cpu"] + (["gpu", "hybrid"] if call.on_card and has_nvjpeg(call) else [])
    out = call.run("dl2.torch", call.peer("card_load.py") + [jpegs(call)[0], str(s["size"]), str(s["batch"]), cores(),
                                                             call.args.device, *ways], PYTHONPATH=call.packages)
    result.update(json.loads(out.strip().split("\n")[-1]))
    # The bound of tests/cuda/test_decode.c.
    far = {way: off for way, off in result["off by"].items() if not off <= 1}
    if far:
        raise Failed("images are off by %s grey levels in the mean" % far)


def study(call, result):
    """Five JPEG qualities and two of WebP, three seeds: its report, and study.tar.gz."""
    args, s = call.args, sizes(call)
    out = os.path.join(call.work, "study")
    data = photographs(call)
    result["data"] = os.path.basename(data)
    arch, size, epochs = ("convnet", 32, 1) if args.tiny else ("resnet18", args.study_size, args.epochs)
    os.makedirs(out + "/load", exist_ok=True)
    end, call.until = call.until, call.until - min(30, call.left() / 5)  # the report comes whatever was reached
    for codec, qualities in (("jpeg", "10,25,50,75,90"), ("webp", "25,75")):
        variants(call, out + "/variants", codec, "20,80" if args.tiny else qualities)
    names = sorted(name for name in os.listdir(out + "/variants") if not name.startswith("."))
    attempt(result, call.run, "dl2-quality", call.program("dl2-quality") + ["--quiet", "-j", cores(), "--json-dir", out + "/quality", data]
            + [out + "/variants/" + name for name in names], status=(0, 1))
    folders = {"raw": data, **{name: out + "/variants/" + name for name in names}}
    for name, folder in folders.items():
        attempt(result, call.run, "dl2-load " + name, call.program("dl2-load") + [
            "--quiet", "-j", cores(), "--image-size", str(size), "-b", "64", "-e", "2", "--name", name, "--json",
            "%s/load/%s.json" % (out, name), "bench", folder], status=(0, 1))
    # A seed of all variants after the other, so that what time doesn't suffice for is a whole seed.
    for seed in (1, 2) if args.tiny else (1, 2, 3):
        for name, folder in folders.items():
            target = "study/train/%s/%s/seed-%d" % (name, arch, seed)
            options = ["-d", folder, "--val", folder] + ([] if name == "raw" else ["--val", data])
            attempt(result, train, call, "%s, seed %d" % (name, seed), *options, "-a", arch, "-b", 8 if args.tiny else 64,
                    "--image-size", size, "--amp", s["amp"], "-e", epochs, "--seed", seed, "--validate-every",
                    max(1, epochs // 10), out=target)
            for path in glob.glob(os.path.join(call.work, target, "*.safetensors")):
                os.remove(path)
            runs = [load_json(path) for path in glob.glob("%s/train/%s/%s/seed-*/experiment_report.json" % (out, name, arch))]
            runs = [run for run in runs if run.get("completed")]
            if runs:
                result.setdefault("runs", {})[name] = {
                    "top1": [run["final"][0]["top1"] for run in runs],
                    **{key: statistics.mean(figures(run).get(key, float("nan")) for run in runs)
                       for key in ("images_per_second", "data_stall")}}
                call.save()
    call.until = end
    result["answer"] = attempt(result, call.run, "dl2-report", call.program("dl2-report") + [
        "--title", os.path.basename(data), "-o", out + "/report/report.html", out])
    with tarfile.open(os.path.join(args.out, "study.tar.gz"), "w:gz") as archive:
        for kind in ("report", "quality", "load", "train"):
            if os.path.isdir(os.path.join(out, kind)):
                archive.add(os.path.join(out, kind), "study/" + kind,
                            filter=lambda info: None if info.name.endswith(".safetensors") else info)
        for path in glob.glob(out + "/variants/*/dl2-variant.json"):
            archive.add(path, "study/" + os.path.relpath(path, out))


# ---- The calls: steps in their order, each with its limit in seconds

FIRST_FIGURE = "first figure"
FIGURE_BEGINS = 180  # s after the beginning of the call, at the latest


def calls(tiny):
    networks = [("resnet18", "sgd"), ("vit_tiny", "adamw")] if tiny else [
        ("resnet50", "sgd"), ("resnet18", "sgd"), ("vit_b_16", "adamw")]
    every = {
        "run": (8, [
            ("machine", 40, machine),
            ("smoke test", 60, smoke),
            ("operations in bf16 and fp32", 75, operations, "bf16", "fp32"),
            ("failed operations", 60, failed_operations),
            ("plans in bf16", 75, check_plans, "bf16"),
            ("ten steps in fp32 and bf16", 60, ten_steps, "fp32", "bf16"),
            (FIRST_FIGURE, 120, first_figure),
            ("times of a step", 40, times_of_a_step),
            ("our kernels", 120, our_kernels),
            ("operations in tf32 and fp16", 60, operations, "tf32", "fp16"),
            ("failed operations, the rest", 60, failed_operations),
            ("plans in tf32 and fp16", 60, check_plans, "tf32", "fp16"),
            ("ten steps in tf32 and fp16", 60, ten_steps, "tf32", "fp16"),
            ("determinism", 60, deterministic),
            ("metrics", 40, metrics),
            ("out of memory", 60, out_of_memory),
            ("other tests", 60, other_tests)]),
        "speed": (9.5, [
            ("machine", 40, machine),
            *(("%s and PyTorch eager" % arch, 130, against, "eager", arch, optimizer) for arch, optimizer in networks),
            ("longest kernels", 100, longest_kernels),
            *(("%s and torch.compile" % arch, 150, against, "compile", arch, optimizer) for arch, optimizer in networks)]),
        "input": (9.5, [
            ("machine", 40, machine),
            ("one rank", 60, one_rank),
            ("loading", 90, load),
            ("training from files", 120, train_from_files),
            ("decoding", 150, decode),
            ("loading in Python", 60, load_in_python),
            ("study", 600, study)]),
    }
    # Tiny steps get ten times as long: the machines that try them out are busy with other things.
    return {name: (minutes * (5 if tiny else 1), [(step[0], step[1] * (10 if tiny else 1), *step[2:]) for step in steps])
            for name, (minutes, steps) in every.items()}


def ordered(call, steps):
    """The steps, of which the first figure comes before those for which it would be late. Each with its limit."""
    waiting = [step for step in steps if not call.args.only or step[0] in call.args.only]
    while waiting:
        elapsed = time.monotonic() - call.began
        figure = next((step for step in waiting if step[0] == FIRST_FIGURE), None)
        step = figure if figure and elapsed >= FIGURE_BEGINS - 5 else waiting[0]
        waiting.remove(step)
        limit = min(step[1], call.args.step_limit)
        yield (step[0], limit if not figure or step is figure else min(limit, FIGURE_BEGINS - elapsed), *step[2:])


# ---- Tables


def number(value, digits=0):
    return "-" if value is None else "%.*f" % (digits, value)


def tables(results):
    lines = ["# dl2 on %s" % (results["machine"].get("card") or results["machine"].get("cpu")), ""]
    lines += ["%s: %s  " % item for item in results["machine"].items()] + [""]

    def table(head, rows):
        if rows:
            lines.extend(["| " + " | ".join(head) + " |", "|" + "---|" * len(head)])
            lines.extend("| " + " | ".join(str(cell).replace("|", "/") for cell in row) + " |" for row in rows)
            lines.append("")
    steps = [(call, name, step) for call, found in results["calls"].items() for name, step in found.items()]
    lines += ["## What failed", ""]
    failures = [(call, name, failure) for call, name, step in steps for failure in step.get("failures", [])]
    for call, name, failure in failures or [("", "", "")]:
        shortened = failure if len(failure) < 700 else failure[:200] + " [...] " + failure[-450:]
        lines.append("- %s, %s: %s" % (call, name, shortened.replace("\n", "\n      ")) if failure else "Nothing.")
    if results["device notes"]:
        lines += ["", "## What the device did in another way", ""] + ["- " + words for words in results["device notes"]]
    lines += ["", "## Steps", ""]
    table(["call", "step", "", "s"], [(call, name, step.get("state"), step.get("seconds", "-")) for call, name, step in steps])
    for _, name, step in steps:
        if name.startswith("operations in"):
            for precision, outcomes in step.items():
                if isinstance(outcomes, dict):
                    bad = [operation for operation, outcome in outcomes.items() if outcome == "FAIL"]
                    lines += ["Operations in %s: %d pass; %s" % (
                        precision, list(outcomes.values()).count("pass"), "these fail: " + ", ".join(bad) if bad else "none fails"), ""]
        if name.startswith("ten steps"):
            table(["ten steps against PyTorch", "largest difference of losses", "not recorded"],
                  [(what, "%.2g" % entry.get("dl2: off by", float("nan")), "%.2g" % entry.get("dl2, not recorded: off by", float("nan")))
                   for what, entry in step.items() if isinstance(entry, dict)])
        if name == FIRST_FIGURE:
            table(["resnet50, synthetic data", "images/s"],
                  [(what, number(step[what].get("images_per_second"))) for what in step if what.startswith("dl2")])
        if step.get("times"):
            parts, count = step["times"]["parts"], max(1, step["times"]["steps"])
            table(["longest parts of a step", "", "calls", "ms a step"],
                  [(part["layer"], part["what"], part["calls"] // count, number(part["ms"] / count, 3)) for part in parts[:15]])
        for what, ways in step.get("once more", {}).items():
            table([what, ""], [(way, outcome[:300].replace("\n", " ")) for way, outcome in ways.items()])
    turns = []
    for _, name, step in steps:
        rates = {who: statistics.median(values) for who, values in step.get("images/s", {}).items() if values} if " and " in name else {}
        if rates:
            other = next((who for who in rates if who != "dl2"), None)
            turns.append([name.split()[0], number(rates.get("dl2")), other or "-", number(rates.get(other)),
                          number(rates["dl2"] / rates[other], 2) if other and "dl2" in rates else "-"])
    table(["network, images/s (medians of turns)", "dl2", "beside", "images/s", "dl2 / it"], turns)
    for _, name, step in steps:
        if name == "loading":
            table(["loader alone, %s workers" % step.get("workers"), "images/s"],
                  [(k, number(v)) for k, v in step.get("images/s", {}).items()])
        if name == "loading in Python":
            table(["dl2.torch, decode", "images/s", "off by, grey levels"],
                  [(k, number(v), number(step.get("off by", {}).get(k), 3)) for k, v in step.get("images/s", {}).items()])
        table([name, "images/s", "data stall, %", "J an image"],
              [(k, number(v.get("images_per_second")), number(100 * v.get("data_stall", float("nan")), 1),
                number(v.get("joules_per_image"), 4)) for k, v in step.get("training", {}).items() if v])
        if name == "decoding":
            table([name, "images/s", "images/s a core"], [
                (k, number(v["images_per_second"]), number(v.get("images_per_core_second")))
                for k, v in step.get("images/s", {}).items() if v])
        if name == "study":
            lines += ["## Study of %s" % step.get("data"), "", step.get("answer") or "", ""]
            table(["trained on", "top-1, % (a seed each)", "images/s", "data stall, %"],
                  [(k, " ".join(number(100 * t, 2) for t in v["top1"]), number(v["images_per_second"]),
                    number(100 * v["data_stall"], 1)) for k, v in step.get("runs", {}).items()])
        for key in ("all of ours", "longest"):
            found = step.get(key)
            if found:
                lines += ["## Kernels, %s: %d launches, %.2f ms" % (key, found["launches"], found["us"] / 1e3), ""]
                table(["kernel", "launches", "us", "share, %", "DRAM, %", "compute, %"],
                      [(k["kernel"][:90], k["launches"], number(k["us"], 1), number(100 * k["us"] / found["us"] if found["us"] else 0, 1),
                        number(k["DRAM Throughput"]), number(k["Compute (SM) Throughput"])) for k in found["kernels"][:25]])
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("call", choices=list(calls(False)), nargs="?")
    parser.add_argument("--list", action="store_true", help="the calls' steps and their limits in seconds")
    parser.add_argument("--only", action="append", metavar="STEP", help="only this step; may be given several times")
    parser.add_argument("--out", default="device-results")
    parser.add_argument("--data", help="photographs: train/CLASS/... and val/CLASS/..., or CLASS/...")
    parser.add_argument("--minutes", type=float, help="of the whole call [8 for run, else 9.5]")
    parser.add_argument("--step-limit", type=float, default=1e9, metavar="SECONDS", help="of each step, where it is less than its own")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--python", default=sys.executable, help="the Python that has PyTorch [this one]")
    parser.add_argument("--build", help="a checkout's build folder")
    parser.add_argument("--epochs", type=int, default=30, help="of each of the study's trainings [30]")
    parser.add_argument("--study-size", type=int, default=160, help="pixels that the study's networks see [160]")
    parser.add_argument("--tiny", action="store_true", help="only try everything out")
    args = parser.parse_args()
    if args.list:
        for name, (minutes, steps) in calls(args.tiny).items():
            print("%s, %g minutes" % (name, minutes))
            print("".join("%8d s  %s\n" % (step[1], step[0]) for step in steps), end="")
        return 0
    if not args.call:
        parser.error("which call? run, speed or input")
    minutes, steps = calls(args.tiny)[args.call]
    for name in args.only or []:
        if name not in [step[0] for step in steps]:
            parser.error("%s has no step '%s' (--list)" % (args.call, name))
    args.minutes = args.minutes or minutes
    args.out = os.path.abspath(args.out)
    args.build = args.build and os.path.abspath(args.build)
    os.makedirs(args.out, exist_ok=True)
    path = os.path.join(args.out, "results.json")
    results = load_json(path) if os.path.exists(path) else {
        "schema": "dl2-device/2", "machine": {}, "device notes": [], "calls": {}}
    call = Call(args.call, args, results)
    signal.signal(signal.SIGTERM, call.stop)
    signal.signal(signal.SIGINT, call.stop)
    try:
        for step in ordered(call, steps):
            call.step(*step)
    except Stopped as stopped:
        print(stopped, flush=True)
        return 1
    finally:
        shutil.rmtree(call.work, ignore_errors=True)
    with open(os.path.join(args.out, "results.md")) as file:
        print(file.read())
    return 1 if any(step.get("failures") for step in call.steps.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
