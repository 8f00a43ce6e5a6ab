#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# dl2-transcode --color: what becomes of images that are not sRGB, of 16 bits, alpha and CMYK, and
# that it is said.
. "$srcdir/tests/lib.sh"
for have in JPEG PNG WEBP AVIF LCMS; do
    grep -q "define HAVE_$have 1" "$builddir/config.h" || skip "this build has no $have"
done
need_python PIL.ImageCms python3-pil
cd "$work" || exit 99
"$builddir/tests/transcode/images" colors src || fail "no images"
# `pixels FILE`, `profile FILE` by Pillow; `lines VARIANT`, `facts VARIANT`.
cat >names.py <<'PY'
import io, json, sys
from PIL import Image, ImageCms
def open_image(path): return Image.open(path)
def pixels(path): return open_image(path).convert("RGB").tobytes()
def profile(path): return open_image(path).info.get("icc_profile")
def facts(folder): return json.load(open(folder + "/dl2-variant.json"))
def lines(folder): return {l["key"]: l for l in map(json.loads, open(folder + "/dl2-variant.jsonl"))}
def srgb(path):
    return ImageCms.profileToProfile(open_image(path), ImageCms.ImageCmsProfile(io.BytesIO(profile(path))),
                                     ImageCms.createProfile("sRGB"), renderingIntent=1,
                                     flags=0x2000).tobytes()
def near(a, b, most): return len(a) == len(b) and max(abs(x - y) for x, y in zip(a, b)) <= most
PY
fact() {
    "$PYTHON3" -c "from names import *
import sys
sys.exit(not ($1))" || { cat "$work/out" >&2; fail "not so: $1"; }
}
"$PYTHON3" - <<'PY' || exit 99
import struct, zlib
png = open("src/a/plain.png", "rb").read()
body = b"acTL" + struct.pack(">II", 2, 0)
frames = struct.pack(">I", 8) + body + struct.pack(">I", zlib.crc32(body))
open("src/a/moving.png", "wb").write(png[:33] + frames + png[33:])
PY
P3="Display P3 with sRGB's curve (CICP 12/13)"
LINEAR="gamma 1.000"

# The survey counts them.
expect 0 dl2-transcode --quiet survey --json survey.json src
fact "json.load(open('survey.json'))['colors'] == {\"$P3\": 2, '$LINEAR': 1}"
fact "[json.load(open('survey.json'))[k] for k in ('above_8_bits', 'alpha', 'cmyk', 'has_more')] == [1] * 4"
grep -q "^not sRGB .*$LINEAR: 1" "$work/out" || fail "the survey's table does not name the gamma"

# By default numbers and descriptions stay, in files that are encoded and in copied ones.
expect 0 dl2-transcode --quiet --codec jpeg,png,webp,avif --effort avif=0 --q 95 src keep
fact "pixels('keep/png/a/p3.png') == pixels('src/a/p3.png') and profile('keep/png/a/p3.png')"
fact "profile('keep/png/a/p3.png') == profile('keep/jpeg-95/a/p3.jpg') == profile('keep/webp-95/a/p3.webp')"
fact "open_image('keep/png/a/linear.png').info['gamma'] == 1 and profile('keep/jpeg-95/a/linear.jpg')"
fact "open('keep/jpeg-95/a/copied.jpg', 'rb').read() == open('src/a/copied.jpg', 'rb').read()"
fact "facts('keep/jpeg-95')['copied'] >= 1 and lines('keep/jpeg-95')['a/copied']['color_is'] == 'kept'"
fact "facts('keep/jpeg-95')['options']['color'] == 'keep'"
for variant in jpeg-95 png webp-95 avif-95; do
    expect 0 dl2-transcode --quiet survey --json survey.json keep/$variant
    fact "sorted(json.load(open('survey.json'))['colors'].values()) in ([1, 2], [1, 1, 1])"
    fact "facts('keep/$variant')['colors']['kept'] == {\"$P3\": 2, '$LINEAR': 1}"
    fact "facts('keep/$variant')['colors']['reduced'] == {'alpha': 1, 'CMYK': 1, '16 bits': 1, 'several frames': 1}"
done
expect 0 dl2-transcode --quiet --codec jpeg,png,webp,avif --effort avif=0 --q 95 src keep
grep -q "kept with their description: .*$LINEAR (1)" "$work/out" || fail "a rerun does not say it"
grep -q 'reduced to .*16 bits (1)' "$work/out" || fail "the run does not say what it reduced"

# A variant of 8 bits is scored at the 16 of its source, and the scores say so.
expect 0 dl2-quality --quiet --json scores.json src keep/png
grep -q '^ .*7 identical to the reference, 1 with more than 8 bits: PSNR .* at 16 bits, .*, 1 with alpha' "$work/out" || fail "the scores hide what was reduced"
cat >>names.py <<'PY'
def scores(path): return json.load(open(path))["variants"][0]
PY
fact "[scores('scores.json')[k] for k in ('above_8_bits', 'alpha', 'colors_differ')] == [1, 1, 0]"
fact "[r['key'] for r in scores('scores.json')['per_image'] if 'above_8_bits' in r] == ['a/deep']"

# So do crops, which people look at: they say what their numbers mean.
mkdir one && mkdir one/a && cp src/a/p3.png one/a || exit 99
expect 0 dl2-transcode --quiet --codec jpeg --q 20 one few
expect 0 dl2-quality --quiet --json-dir scores one few/jpeg-20
expect 0 dl2-quality --quiet --json-dir scores crops --out crops one few/jpeg-20
fact "all(map(profile, __import__('glob').glob('crops/*.png'))) and __import__('glob').glob('crops/*.png')"

# A codec that can't hold them says so.
expect 0 dl2-transcode --quiet --codec ppm src keep
grep -q "WITHOUT their description: .*$LINEAR (1)" "$work/out" || fail "ppm drops in silence"
fact "facts('keep/ppm')['colors']['dropped'] == {\"$P3\": 2, '$LINEAR': 1}"

# Converted: the numbers are those of Little CMS, nothing is tagged, nothing is copied.
expect 0 dl2-transcode --quiet --color convert --codec jpeg,png --q 95 src convert
fact "near(pixels('convert/png/a/p3.png'), srgb('src/a/p3.png'), 1) and not profile('convert/png/a/p3.png')"
fact "pixels('convert/png/a/p3.png') != pixels('src/a/p3.png')"
fact "pixels('convert/png/a/plain.png') == pixels('src/a/plain.png')"
fact "not profile('convert/jpeg-95/a/copied.jpg') and facts('convert/jpeg-95')['colors']['converted'][\"$P3\"] == 2"
fact "near(pixels('convert/jpeg-95/a/copied.jpg'), srgb('src/a/copied.jpg'), 40)"
expect 0 dl2-transcode --quiet survey --json survey.json convert/jpeg-95
fact "json.load(open('survey.json'))['colors'] == {}"

# Dropped: numbers as they are and no profile, also where the file would have been copied.
expect 0 dl2-transcode --quiet --color drop --codec jpeg,png --q 95 src drop
fact "pixels('drop/png/a/p3.png') == pixels('src/a/p3.png') and not profile('drop/png/a/p3.png')"
fact "not profile('drop/jpeg-95/a/copied.jpg') and facts('drop/jpeg-95')['colors']['dropped'][\"$P3\"] == 2"

expect 0 dl2-quality --quiet --json scores.json src drop/png
grep -q '3 whose files describe other colors' "$work/out" || fail "the scores hide other colors"
fact "scores('scores.json')['colors_differ'] == 3"

# Another rule makes a variant again.
expect 0 dl2-transcode --quiet --color convert --codec png src keep
fact "not profile('keep/png/a/p3.png')"

# What can't be converted is named.
"$builddir/tests/transcode/images" colors odd odd || fail "no images"
expect 1 dl2-transcode --quiet --color convert --codec png odd odds
grep -q 'odd/a/pq.png: .*cannot be converted.*PQ' "$work/err" || fail "PQ is not named"
grep -q 'odd/a/damaged.jpg: .*damaged profile' "$work/err" || fail "the damaged profile is not named"
expect 0 dl2-transcode --quiet --codec png,jpeg odd odds
grep -q 'WITHOUT their description: .*a damaged profile (1)' "$work/out" || fail "damage is not said"
expect 2 dl2-transcode --color keep copy src copied
