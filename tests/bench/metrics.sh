#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Megapixels a second of one core by each metric, dl2's beside those of other programs: scikit-image (python3-skimage),
# ffmpeg, ImageMagick's compare, libjxl's tools, and PyPI's ssimulacra2, psnr-hvsm and sewar, as far as they are there
# (PEERS names the Python that has the last three). All score the same two images of 768x512
# pixels in 8-bit RGB, in turns, one program after the other in each round; the table has the median of the rounds,
# with the lowest and the highest where they are more than 10% apart.
# Time is that of the processor. Of programs it is what a run takes longer than one that reads the same images and
# scores nothing; in-process figures (dl2, scikit-image) leave out reading by themselves.
#
#     make tests/bench/bench_metrics tests/quality/make_image
#     python3 -m venv peers && peers/bin/pip install ssimulacra2 psnr-hvsm sewar
#     PEERS=peers/bin/python sh $srcdir/tests/bench/metrics.sh [ROUNDS]
#
# Run it in the build folder.
set -eu
out=$(mktemp -d); trap 'rm -rf "$out"' EXIT
./tests/quality/make_image "$out/a.ppm" 768 512 3 0 0
./tests/quality/make_image "$out/b.ppm" 768 512 3 10 0
OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MAGICK_THREAD_LIMIT=1 "${PYTHON3:-python3}" - "$out" "${1:-3}" <<'END'
import json, os, resource, shutil, statistics, subprocess, sys, time

folder, rounds = sys.argv[1], int(sys.argv[2])
A, B, MEGAPIXELS = f"{folder}/a.ppm", f"{folder}/b.ppm", 768 * 512 / 1e6
absent = []


def cpu_of(*command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    status = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
    if status > (command[0] == "compare"):  # whose 1 says that the images differ
        sys.exit(f"{' '.join(command)}: exit status {status}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def dl2():
    lines = subprocess.run(["./tests/bench/bench_metrics", "0.05"], capture_output=True, text=True).stdout.splitlines()
    rates = {}
    for words in map(str.split, lines):  # the last path is the fastest
        if len(words) == 5 and words[1] == "768x512":
            rates[words[2]] = float(words[3])
    return rates


def best_rate(function):
    best, end = 9e9, time.process_time() + 0.5
    while best == 9e9 or time.process_time() < end:
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return MEGAPIXELS / best


def scikit_image():
    import numpy as np
    from skimage import color, metrics
    a, b = (np.frombuffer(open(name, "rb").read()[-3 * 768 * 512:], np.uint8).reshape(512, 768, 3) for name in (A, B))
    y, z = (image @ np.array([0.299, 0.587, 0.114]) for image in (a, b))
    ssim = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False, "data_range": 255}
    return {"psnr_rgb": best_rate(lambda: metrics.peak_signal_noise_ratio(a, b)),
            "psnr_y": best_rate(lambda: metrics.peak_signal_noise_ratio(y, z, data_range=255)),
            "ssim": best_rate(lambda: metrics.structural_similarity(y, z, **ssim)),
            "ciede2000": best_rate(lambda: color.deltaE_ciede2000(color.rgb2lab(a), color.rgb2lab(b)))}


def ffmpeg():
    frames, rates = 1000, {}
    for pixels, names in (("gbrp", {"psnr_rgb": "psnr"}), ("gray", {"psnr_y": "psnr", "ssim": "ssim"})):
        raw = []
        for name in (A, B):
            raw.append(f"{name}.{pixels}")
            cpu_of("ffmpeg", "-y", "-i", name, "-f", "rawvideo", "-pix_fmt", pixels, raw[-1])
        inputs = []
        for name in raw:
            inputs += ["-stream_loop", str(frames - 1), "-f", "rawvideo", "-pix_fmt", pixels, "-s", "768x512", "-i", name]
        def run(chain):
            return cpu_of("ffmpeg", "-threads", "1", "-filter_threads", "1", "-filter_complex_threads", "1", *inputs,
                          "-lavfi", chain, "-f", "null", "-")
        nothing = run("[1]nullsink;[0]null")
        for metric, filter_name in names.items():
            rates[metric] = frames * MEGAPIXELS / max(run(f"[0][1]{filter_name}") - nothing, 1e-9)
    return rates


def magick():
    def run(*command):
        return sum(cpu_of(*command) for _ in range(20))
    longer = run("compare", "-metric", "PSNR", A, B, "null:") - run("convert", A, B, "null:")
    return {"psnr_rgb": 20 * MEGAPIXELS / max(longer, 1e-9)}  # ImageMagick 6 has no SSIM


def libjxl():
    rates = {}
    for metric, name in (("ssimulacra2", "ssimulacra2"), ("butteraugli_max", "butteraugli_main")):
        if shutil.which(name):
            rates[metric] = MEGAPIXELS / max(cpu_of(name, A, B), 1e-9)
        else:
            absent.append(name)
    return rates


# Each beside an image that it decodes itself or is given; only scoring counts.
PEERS = """
import contextlib, importlib, io, json, os, sys, time
rates, absent, megapixels = {}, [], 768 * 512 / 1e6

def load(name):
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return importlib.import_module(name)
    except ImportError:
        absent.append("PyPI's " + name)

def measure(metric, function):
    best, end = 9e9, time.process_time() + 0.5
    while best == 9e9 or time.process_time() < end:
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    rates[metric] = megapixels / best

try:
    import numpy as np
    a, b = (np.frombuffer(open(name, "rb").read()[-3 * 768 * 512:], np.uint8).reshape(512, 768, 3) for name in sys.argv[1:])
    y, z = (image @ np.array([0.299, 0.587, 0.114]) for image in (a, b))
except ImportError:
    absent.append("PyPI's numpy")
else:
    if hvsm := load("psnr_hvsm"):
        measure("psnr_hvs_m", lambda: hvsm.BACKENDS["cpp"]["psnr_hvs_hvsm"](y / 255, z / 255))
    if sewar := load("sewar"):
        measure("ms_ssim", lambda: sewar.msssim(y, z, MAX=255))
    if load("ssimulacra2"):
        from ssimulacra2 import compute_ssimulacra2
        measure("ssimulacra2", lambda: compute_ssimulacra2(*sys.argv[1:]))
print(json.dumps([rates, absent]))
"""


def peers():
    result = subprocess.run([os.environ["PEERS"], "-c", PEERS, A, B], capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{os.environ['PEERS']}: {result.stderr}")
    rates, missing = json.loads(result.stdout.splitlines()[-1])
    absent.extend(missing)
    return rates


def has_skimage():
    return subprocess.run([sys.executable, "-c", "import skimage"], stderr=subprocess.DEVNULL).returncode == 0


programs = {"dl2": (dl2, True), "scikit-image": (scikit_image, has_skimage()),
            "ffmpeg": (ffmpeg, shutil.which("ffmpeg")), "ImageMagick": (magick, shutil.which("compare")),
            "libjxl": (libjxl, True), "PyPI": (peers, os.environ.get("PEERS"))}
absent += [name for name, (_, there) in programs.items() if not there]
results = {}
for _ in range(rounds):
    for name, (measure, there) in programs.items():
        for metric, rate in (measure() if there else {}).items():
            results.setdefault(metric, {}).setdefault(name, []).append(rate)


def figure(rate):
    return f"{float(f'{rate:.3g}'):,g}"


def cell(rates):
    spread = f" ({figure(min(rates))} to {figure(max(rates))})" if max(rates) > 1.1 * min(rates) else ""
    return figure(statistics.median(rates)) + spread


print("| " + " | ".join(["metric", *programs]) + " |")
print("|---" * (len(programs) + 1) + "|")
for metric, by_program in results.items():
    cells = [cell(by_program[name]) if name in by_program else "" for name in programs]
    print("| " + " | ".join([metric, *cells]) + " |")
print("not here:", ", ".join(dict.fromkeys(absent)) or "nothing", file=sys.stderr)
END
