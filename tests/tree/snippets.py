# SPDX-License-Identifier: BSD-2-Clause
"""snippets.py FOLDER [PAGE...]: runs the commands and examples of the documents and of --help. See snippets.sh.

A snippet is a line `$ COMMAND` of an indented block or a cell of a table, with the lines that its last
backslash continues; a fenced block of Python or C; an indented block of SQL. A page's commands run in one
shell, in turn, in a folder that looks like a checkout after `make study`; its Python blocks share one
namespace, its C blocks are compiled.
"""
import fnmatch
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import textwrap
import time
import zlib

SOURCE = pathlib.Path(os.environ["srcdir"])
BUILD = pathlib.Path(os.environ["builddir"])
if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
    sys.exit("usage: snippets.py FOLDER [PAGE ...]")
WORK = pathlib.Path(sys.argv[1])
NO_SERVER = os.environ.get("DL2_NO_SERVER")
HAS_MPI = "mpi" in subprocess.run(["dl2-train", "--version"], capture_output=True, text=True).stdout.lower()
NO_PYTHON = None
if not (BUILD / "python/dl2/_core.la").exists():
    NO_PYTHON = "the Python module isn't built (Debian: python3-dev, libdlpack-dev)"
elif subprocess.run([sys.executable, "-c", "import torch, torchvision"], capture_output=True).returncode:
    NO_PYTHON = "Python has no module torch or torchvision (Debian: python3-torch, python3-torchvision)"
PROGRAMS = ["dl2-transcode", "dl2-quality", "dl2-load", "dl2-train", "dl2-report", "dl2-study"]
LIMIT = 600     # seconds for a page: what hangs ends
CLASSES = """aitzgorri_by_aitzol_berasategi analogpattern_by_peter_nerlich bridge_by_sander_klootwijk dragonfly_by_bolly
    free_by_peter_nerlich friends_by_aitzol_berasategi greentock_by_peter_nerlich life_by_aitzol_berasategi
    picosdeeuropa_by_aitzol_berasategi picture_0b_by_freespace picture_1a_by_freespace seeding_by_clements_engelhardt
    sunset_by_aitzol_berasategi umang_by_abhishek_mudgal wine_by_jakkub_mede""".split()

# What a page takes for granted, and its text says so.
GIVEN_SHELL = {
    "dl2-load": "dl2-transcode --q 50 photos variants",
    "dl2-quality": "dl2-transcode --q 10,50 photos variants; dl2-transcode --codec webp photos variants; "
        "cp photos/val/wine_by_jakkub_mede/r00c01.png original.png; cp variants/webp-75/val/wine_by_jakkub_mede/*.webp smaller.webp",
    "dl2-transcode": "export PGDATABASE=mydb",
    "dl2-train": """dl2-transcode --q 10,25 photos variants; ln -s study-out/demo/train/raw/convnet/seed-0 run1
        printf '%s\n' '{"name": "slow", "lr": 0.01}' '{"name": "fast", "lr": 0.1}' >rates.jsonl""",
    "docs/your-network.md": "export PYTHONPATH=$PWD/build/python",
    "docs/coming-from.md": "dl2-transcode --quiet copy --container=tar scenes shards",
    "docs/analysis.md": "mkdir study-out/demo/report; dl2-report study-out/demo -o study-out/demo/report/report.html; cp -r study-out/demo photos-study",
    "docs/formats/datasets.md": "dl2-transcode --quiet copy --container=tar photos shards",
    "docs/formats/train.md": "ln -s study-out/demo/train/raw/convnet/seed-0 run1",
    "docs/loading.md": """dl2-transcode --quiet copy --container=tar scenes shards
        [ -n "$DL2_NO_SERVER" ] || { dl2-transcode --quiet copy photos 'postgresql:///mydb?table=p' &&
            psql -qc 'CREATE TABLE pictures AS SELECT key AS id, image AS jpeg, label AS species, split AS fold FROM p' \\
                 -c 'CREATE INDEX ON pictures (id)' mydb; }; export PYTHONPATH=$PWD/build/python""",
    "docs/python.md": "dl2-transcode --quiet copy --container=tar scenes shards",
    "docs/study.md": "[ -n \"$DL2_NO_SERVER\" ] || dl2-transcode --quiet copy photos 'postgresql:///mydb?table=photos'",
    "dl2-study": "true",
    "docs/transcode.md": "export PYTHONPATH=$PWD/build/python; [ -n \"$DL2_NO_SERVER\" ] || dl2-transcode --quiet copy photos 'postgresql:///mydb?table=photos'",
}
GIVEN_PYTHON = {
    "docs/coming-from.md": """
        from torch.utils.data import DataLoader
        from torchvision.datasets import ImageFolder
        from torchvision.transforms import *
        MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
        transform = ToTensor()
        """,
    "docs/python.md": """
        import collections, torch
        boxes = collections.defaultdict(lambda: torch.tensor([[0., 0., 9., 9.]]))
        """,
}
GIVEN_C = """#include "dataset/dataset.h"
#include "loader/loader.h"
void train(const void *, const void *, size_t);
void given(struct dl2_dataset *dataset, struct dl2_loader *loader, struct dl2_loader_config config, struct dl2_batch *batch,
           uint64_t epoch, struct dl2_error error);
void given(struct dl2_dataset *dataset, struct dl2_loader *loader, struct dl2_loader_config config, struct dl2_batch *batch,
           uint64_t epoch, struct dl2_error error)
{ (void)dataset; (void)loader; (void)batch; (void)epoch; (void)error; (void)config; {
"""
SQL = re.compile(r"(SELECT|CREATE|INSERT|UPDATE|DELETE|WITH|ALTER|GRANT) ")


def lacking(kind, text):
    """Why this machine or build cannot run a snippet, or None."""
    if NO_SERVER and (kind == "sql" or re.search(r"postgresql:|\$at|\$\{at", text)):
        return NO_SERVER
    if kind == "python":
        return NO_PYTHON
    if kind == "command" and text.startswith("mpirun ") and not (HAS_MPI and shutil.which("mpirun")):
        return "this build or machine has no Open MPI (Debian: libopenmpi-dev, openmpi-bin)"
    return None


def snippets(page):
    """(line, kind, text) of each snippet of a page. One without a suffix is a program: its --help."""
    if "." not in page:
        help_text = subprocess.run([page, "--help=all"], check=True, capture_output=True, text=True).stdout
        examples = help_text[help_text.index("Examples:\n"):].split("\n  $ ")[1:]    # long ones are folded
        return [(n + 1, "command", " ".join(example.split("\n"))) for n, example in enumerate(examples)]
    lines = (SOURCE / page).read_text().split("\n")
    found, at, after_command = [], 0, False
    while at < len(lines):
        start, line = at, lines[at]
        at += 1
        if line.startswith("```"):
            kind = line[3:]
            while not lines[at].startswith("```"):
                at += 1
            found.append((start + 1, kind, "\n".join(lines[start + 1:at])))
            at += 1
            continue
        indented = re.match(r" {4,}(?=\S)", line)
        if not indented:
            after_command = after_command and not line
            found += [(start + 1, "command", command) for command in re.findall(r"`\$ ([^`]*)`", line)]
            continue
        text = line[indented.end():]
        if text.startswith("$ "):
            while lines[at - 1].endswith("\\"):
                at += 1
            found.append((start + 1, "command", "\n".join([text[2:]] + lines[start + 1:at])))
            after_command = True
        elif text.startswith("# make"):
            found.append((start + 1, "command", text[2:]))
        elif text.startswith(">>> "):
            found.append((start + 1, "python", text[4:]))
        elif SQL.match(text):
            end = start     # to its semicolon
            while end < len(lines) and not lines[end].rstrip().endswith(";") and (lines[end] or end == start):
                end += 1
            if lines[end:end + 1] and lines[end].rstrip().endswith(";"):
                found.append((start + 1, "sql", "\n".join(lines[start:end + 1])))
                at = end + 1
        elif not after_command and re.match(r"(dl2-[a-z]+|make|touch|python3|sh|pip) ", text):
            found.append((start + 1, "command without its $", text))
    return found


def exceptions():
    """[(reason, page, pattern, [line of a snippet...])] of snippets.txt."""
    reason, rows = None, []
    for line in (SOURCE / "tests/tree/snippets.txt").read_text().split("\n"):
        if line.startswith("#") or not line:
            continue
        if not line.startswith(" "):
            reason = line
        else:
            page, pattern = line.split(None, 1)
            rows.append((reason, page, pattern, []))
    return rows


def png(path, seed, side, mask=False):
    """A picture whose colors, slopes and noise depend on the seed; of a mask, gray numbers 0 to 7."""
    drawn = random.Random(seed)
    base = [drawn.randrange(40, 200) for _ in range(3)]
    slope = [drawn.randrange(-80, 80) for _ in range(3)]
    rows = []
    for y in range(side):
        if mask:
            rows.append(bytes([0] + [(x + y + seed) // 9 % 8 for x in range(side)]))
            continue
        row, noise = [0], drawn.randbytes(side)
        for x in range(side):
            noise = drawn.randrange(-9, 9)
            row += [max(0, min(255, base[c] + slope[c] * (x if c else y) // side + noise)) for c in range(3)]
        rows.append(bytes(row))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0 if mask else 2, 0, 0, 0))
                     + chunk(b"IDAT", zlib.compress(b"".join(rows), 1)) + chunk(b"IEND", b""))


def volume(path, shape):
    """NumPy's format: bytes that count up."""
    text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text.encode() +
                     (bytes(range(256)) * (shape[0] * shape[1] * shape[2] // 256 + 1))[:shape[0] * shape[1] * shape[2]])


def datasets():
    """demo/: like the demo, but smaller; more/: of 270 training images, more than one batch of 256; scenes/: with masks, JSON
    and captions beside the images; scans/: volumes with labels."""
    for number, name in enumerate(CLASSES):
        for split, count, few in ("train", 18, 9), ("val", 4, 1):
            for i in range(count):
                path = f"{split}/{name}/r{i:02d}c{split == 'val':02d}.png"
                png(WORK / "more" / path, 1000 * number + 2 * i + (split == "val"), 40)
                if i < few:
                    (WORK / "demo" / path).parent.mkdir(parents=True, exist_ok=True)
                    os.link(WORK / "more" / path, WORK / "demo" / path)
    for i in range(8):
        at = WORK / f"scenes/{'val' if i % 4 == 3 else 'train'}/{'rose' if i % 2 else 'aster'}/{i}"
        png(at.with_suffix(".png"), i, 48)
        png(at.with_suffix(".mask.png"), i, 48, mask=True)
        at.with_suffix(".json").write_text('{"height": 48}')
        at.with_suffix(".txt").write_text("a flower")
    for name in "17", "17.mask", "18", "18.mask":
        volume(WORK / "scans/train/a" / f"{name}.npy", (70, 130, 140))


def demo_study():
    """results/: what `make study` leaves of the demo, with little training."""
    out = WORK / "results"
    def run(*words):
        subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    run("dl2-transcode", "--q", "10,50", WORK / "demo", out / "variants")
    for name in "jpeg-10", "jpeg-50":
        run("dl2-quality", "--json", out / f"quality/{name}.json", WORK / "demo", out / "variants" / name)
    for name, data in ("raw", WORK / "demo"), ("jpeg-10", out / "variants/jpeg-10"), ("jpeg-50", out / "variants/jpeg-50"):
        for seed in range(2):
            run("dl2-train", "-d", data, "--val", WORK / "demo", "-a", "convnet", "--image-size", "16", "-e", "2", "--seed", seed,
                "--out", out / f"train/{name}/convnet/seed-{seed}")


def checkout(page):
    """A folder that looks like a checkout after `make study`, to its reader."""
    folder = WORK / page.replace("/", "-")
    (folder / "build").mkdir(parents=True)
    (folder / "study-out/demo").mkdir(parents=True)
    for file in BUILD.glob("dl2-*"):
        if os.access(file, os.X_OK) and not file.suffix:
            (folder / "build" / file.name).symlink_to(file)
    (folder / "build/python").symlink_to(BUILD / "python")
    for name in "README.md", "docs", "examples", "study", "tests":
        (folder / name).symlink_to(SOURCE / name)
    for name in "variants", "quality", "train":
        (folder / "study-out/demo" / name).symlink_to(WORK / "results" / name)
    (folder / "study-out/demo/data").symlink_to(WORK / ("more" if page == "docs/coming-from.md" else "demo"))
    for name in "scenes", "scans":
        (folder / name).symlink_to(WORK / name)
    for command in "cjxl", "djxl":                  # an encoder and a decoder that anybody can write
        if not shutil.which(command):
            (folder / "shims").mkdir(exist_ok=True)
            (folder / "shims" / command).write_text('#!/bin/sh\nexec cp "$1" "$2"\n')
            (folder / "shims" / command).chmod(0o755)
    home = folder / "home/.local/lib/pkgconfig"     # as after make install
    home.mkdir(parents=True)
    for file in (BUILD / ".libs").glob("libdl2.so*"):
        (home.parent / file.name).symlink_to(file)
    (home / "dl2.pc").write_text(f"Name: dl2\nDescription: dl2\nVersion: 0\nCflags: -I{SOURCE}\nLibs: -L{home.parent} -ldl2\n")
    return folder


HEAD = """
export HOME=$PWD/home
export PKG_CONFIG_PATH=$HOME/.local/lib/pkgconfig   # as after `make install`
export DL2_CUDA_PLAN_CACHE=off OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
PATH=$PWD/shims:$PATH
seconds() { date +%s.%N; }
result() { echo "$1 $2 $(seconds)" >&3; }
step() { # LINE COMMAND
    eval "$2" >"$OUTPUT" 2>&1 </dev/null
    local status=$?
    [ $status -eq 0 ] || { echo "---- $PAGE:$1: exit status $status: $2"; tail -n 15 "$OUTPUT"; }
    result $1 $status
}
python() { # LINE FILE
    [ -n "${worker:-}" ] || { coproc { exec "$PYTHON3" "$WORKER"; }; worker=1; }
    local status
    echo "$2" >&${COPROC[1]} && read -r status <&${COPROC[0]} || status=1
    [ "$status" = 0 ] || { echo "---- $PAGE:$1: this Python fails:"; tail -n 8 "$2.out"; }
    result $1 "$status"
}
# Trainings are of small images and short measurements, where later options may say so: these pages are about words.
dl2-train() {
    local smaller=
    case " $* " in *" evaluate "* | *" --image-size "* | *" --list "* | *" --help "* | *" --version "*) ;; *) smaller="--image-size 24" ;; esac
    case "$1" in measure) smaller="$smaller --duration 0.5s" ;; esac
    command dl2-train "$@" $smaller
}
dl2-load() {
    case "$1" in analyze) command dl2-load "$@" --seconds 0.3 ;; *) command dl2-load "$@" ;; esac
}
# Studies are planned, and not made.
dl2-study() { local what=$1; shift; [ $what != run ] || what=plan; command dl2-study $what "$@"; }
make() {
    local word goals=() variables=()
    for word; do case $word in [A-Z]*=*) variables+=("$word") ;; *) goals+=("$word") ;; esac; done
    env "${variables[@]}" dl2-study plan --checkout "$srcdir" "${goals[@]}"
}
[ -n "${DL2_NO_SERVER:-}" ] || {
    psql -qc 'DROP DATABASE IF EXISTS mydb' -c 'CREATE DATABASE mydb' postgres >/dev/null 2>&1; export PGDATABASE=mydb; }
DL2_NO_SERVER=${DL2_NO_SERVER:-}
export PYTHONDONTWRITEBYTECODE=1
"""
WORKER = '''
import contextlib, os, sys, traceback
names = {"__name__": "__main__"}
for file in iter(sys.stdin.readline, ""):
    file = file.strip()
    with open(file + ".out", "w") as out, contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            exec(compile(open(file).read(), file, "exec"), names)
            status = 0
        except BaseException:
            traceback.print_exc()
            status = 1
    print(status, flush=True)
'''


def spent(what, since):
    """Prints the seconds, and those of processors, of children that have ended, too."""
    wall, before = since
    now = os.times()
    cpu = sum(now[:4]) - sum(before[:4])
    print(f"{what}: {time.time() - wall:.1f} s, {cpu:.1f} s of processors")


def run(page, rows):
    """Runs a page; returns the number of its failures."""
    folder, began = checkout(page), (time.time(), os.times())
    quote = lambda text: "'" + text.replace("'", "'\\''") + "'"
    script, failures, steps = [HEAD], 0, {}
    if page in GIVEN_SHELL:
        (folder / "photos").symlink_to("study-out/demo/data")
        script.append(f"step 0 {quote(GIVEN_SHELL[page])}")
        steps[0] = "what it takes for granted"
    if page in GIVEN_PYTHON:
        (folder / "given.py").write_text(textwrap.dedent(GIVEN_PYTHON[page]))
    started = False
    for line, kind, text in snippets(page):
        first = text.strip().split("\n")[0]
        row = next((row for row in rows if fnmatch.fnmatchcase(page, row[1]) and fnmatch.fnmatchcase(first, row[2])), None)
        if row:
            row[3].append(line)
            print(f"skipped: {page}:{line}: {first}: {row[0]}")
            continue
        if lacking(kind, text):
            print(f"skipped: {page}:{line}: {first}: {lacking(kind, text)}")
            continue
        file = folder / f"snippet-{line}"
        file.write_text(textwrap.dedent(text) + "\n")
        steps[line] = first
        if kind == "command":
            script.append(f"step {line} {quote(text)}")
        elif kind == "python":
            if not started and page in GIVEN_PYTHON:
                script.append(f"python -1 {folder / 'given.py'}")
                steps[-1] = "what its Python takes for granted"
            started = True
            script.append(f"python {line} {file}")
        elif kind == "sql":
            script.append(f"step {line} 'psql -v ON_ERROR_STOP=1 -f {file.name}'")
        elif kind == "c":
            file.with_suffix(".c").write_text(f"{GIVEN_C}{text}\n}} }}\n")
            script.append(f"step {line} '$CC -std=c11 -fsyntax-only -Wall -Werror -I$srcdir -I$builddir {file.name}.c'")
        else:
            print(f"---- {page}:{line}: what is this? A block of '{kind}': {first}")
            failures += 1
    (folder / "worker.py").write_text(WORKER)
    (folder / "page.sh").write_text("\n".join(script) + "\n")
    reading, writing = os.pipe()
    environment = dict(os.environ, PAGE=page, OUTPUT=str(folder / "output"), WORKER=str(folder / "worker.py"))
    process = subprocess.Popen(["bash", "-c", f"exec 3>&{writing}; . ./page.sh"], cwd=folder, env=environment,
                               pass_fds=[writing], start_new_session=True)
    os.close(writing)
    try:
        process.wait(LIMIT)
    except subprocess.TimeoutExpired:
        print(f"---- {page}: still running after {LIMIT} s")
    try:
        os.killpg(process.pid, 9)   # what a command has left behind
    except ProcessLookupError:
        pass
    process.wait()
    with os.fdopen(reading) as results:
        done = [line.split() for line in results]
    spent(f"{page}: {sum(int(status) == 0 for _, status, _ in done)} of {len(steps)} run", began)
    for (line, _, then), (_, _, before) in zip(done[1:], done):
        if float(then) - float(before) > 1.5:
            print(f"    {float(then) - float(before):.1f} s: {page}:{line}: {steps[int(line)]}")
    missing = [line for line in steps if str(line) not in [row[0] for row in done]]
    for line in missing:
        print(f"---- {page}:{line}: not reached: {steps[line]}")
    shutil.rmtree(folder)
    return failures + sum(int(status) != 0 for _, status, _ in done) + len(missing)


def main():
    began = time.time(), os.times()
    everything = ["README.md"] + sorted(str(path.relative_to(SOURCE)) for path in SOURCE.glob("docs/**/*.md")) + PROGRAMS
    pages = sys.argv[2:] or everything
    datasets()
    demo_study()
    spent("preparing", began)
    rows = exceptions()
    failures = sum(run(page, rows) for page in pages)
    for _, page, pattern, used in rows:
        of_row = set(fnmatch.filter(everything, page))
        if not of_row or (of_row <= set(pages) and not used):
            print(f"---- snippets.txt: {page} has no snippet '{pattern}'")
            failures += 1
    print(f"{failures} failures")
    return failures > 0


sys.exit(main())
