#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# --metadata: EXIF and XMP in files of every codec, from files of every codec, upright; none with drop; what is left out.
. "$srcdir/tests/lib.sh"
need_python PIL python3-pil
dl2-transcode --list codecs | grep -q '^jpeg' || skip "this build has no JPEG"
dl2-transcode --list codecs | grep -q '^png' || skip "this build has no PNG"
cat >"$work/blocks.py" <<'PY'
import io, re, sys
from PIL import Image
EXIF = Image.Exif()
EXIF[0x0112], EXIF[0x010f], EXIF[0x8825] = 6, "A camera's maker", {1: "N", 2: (48.0, 8.0, 1.0)}
XMP = b'<?xpacket begin=""?><x:xmpmeta xmlns:x="adobe:ns:meta/"><tiff:Orientation>6</tiff:Orientation>rose</x:xmpmeta>'
def jpeg(segments, quality=95, **more): # with further segments APP1 or others
    out = io.BytesIO()
    Image.effect_noise((97, 61), 80).convert("RGB").save(out, "JPEG", quality=quality, **more)
    data = out.getvalue()
    for code, body in segments:
        data = data[:2] + bytes([255, code]) + (len(body) + 2).to_bytes(2, "big") + body + data[2:]
    return data
def xmp_segment(text): return 0xe1, b"http://ns.adobe.com/xap/1.0/\0" + text
def blocks(path): # the EXIF and XMP of a JPEG, WebP or PNG
    image = Image.open(path)
    exif = image.info.get("exif", b"")
    xmp = image.info.get("xmp") or image.info.get("XML:com.adobe.xmp") or b""
    data = open(path, "rb").read()
    if path.endswith(".jpg") and b"http://ns.adobe.com/xap/1.0/\0" in data:
        at = data.index(b"http://ns.adobe.com/xap/1.0/\0")
        xmp = data[at + 29:at - 2 + int.from_bytes(data[at - 2:at], "big")]
    return exif[6:] if exif.startswith(b"Exif\0\0") else exif, xmp if isinstance(xmp, bytes) else xmp.encode()
PY
PYTHONPATH=$work PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH PYTHONDONTWRITEBYTECODE
python() { (cd "$work" && "$PYTHON3" - "$@") || fail "not so: $1"; }
mkdir "$work/src" "$work/odd" "$work/copy"
python sources <<'PY'
from blocks import *
from PIL import PngImagePlugin
image = Image.effect_noise((97, 61), 80).convert("RGB")
text = PngImagePlugin.PngInfo()
text.add_itxt("XML:com.adobe.xmp", XMP.decode(), zip=True)
image.save("src/png.png", exif=EXIF.tobytes(), pnginfo=text)
open("src/jpeg.jpg", "wb").write(jpeg([xmp_segment(XMP)], exif=EXIF.tobytes()))
image.save("src/plain.png")
# One JPEG has all that is left out: a packet in parts, EXIF that is none; another a block too large for it.
open("odd/parts.jpg", "wb").write(jpeg([xmp_segment(XMP), (0xe1, b"http://ns.adobe.com/xmp/extension/\0" + b"x" * 60)]))
open("odd/damaged.jpg", "wb").write(jpeg([(0xe1, b"Exif\0\0no TIFF")]))
large = PngImagePlugin.PngInfo()
large.add_itxt("XML:com.adobe.xmp", "r" * 70000)
image.save("odd/large.png", pnginfo=large)
# These would be copied: with EXIF, with a comment, with nothing.
exif = Image.Exif()
exif[0x010f] = "maker"
open("copy/exif.jpg", "wb").write(jpeg([], 20, exif=exif.tobytes()))
open("copy/comment.jpg", "wb").write(jpeg([(0xfe, b"taken at home")], 20))
open("copy/none.jpg", "wb").write(jpeg([], 20))
PY

# ---- Every codec writes what every other reads; jpeg and png are compared here, and others by way of png
codecs=jpeg,png
for codec in webp avif jxl jp2; do
    ! dl2-transcode --list codecs | grep -q "^$codec[^_a-z]" || codecs=$codecs,$codec
done
expect 0 dl2-transcode --quiet --metadata keep --codec "$codecs" "$work/src" "$work/all"
for variant in "$work"/all/*; do
    name=${variant##*/}
    grep -q '"metadata": "keep"' "$variant/dl2-variant.json" || fail "$name does not say what it keeps"
    expect 0 dl2-transcode --quiet --metadata keep --codec png "$variant" "$work/again/$name"
done
python blocks <<'PY'
import glob
from blocks import *
files = sorted(glob.glob("all/jpeg-*/*.jpg") + glob.glob("all/png/*.png") + glob.glob("all/webp-*/*.webp") + glob.glob("again/*/png/*.png"))
assert len(files) > 9, files
for path in files:
    exif, xmp = blocks(path)
    if "plain" in path:
        assert (exif, xmp) == (b"", b""), path
        continue
    read = Image.Exif()
    read.load(b"Exif\0\0" + exif)
    assert read[0x0112] == 1 and read[0x010f] == "A camera's maker" and read.get_ifd(0x8825)[2] == (48, 8, 1), (path, dict(read))
    assert xmp == XMP.replace(b">6<", b">1<"), (path, xmp)
    assert Image.open(path).size == (61, 97), path
PY

# ---- What cannot be kept is counted; no place at all is refused
expect 0 dl2-transcode --metadata keep --codec jpeg,png --never-larger no "$work/odd" "$work/kept"
for line in jpeg-75:3 png:2; do
    grep -A 3 "^${line%:*}:" "$work/out" | grep -q "metadata left out, .*: EXIF or XMP (${line#*:})" || { cat "$work/out" >&2; fail "what $line left out"; }
done
is "$(grep -c '"source_metadata":true' "$work/kept/png/dl2-variant.jsonl")" 2 "lines of png"
expect 2 dl2-transcode --metadata keep --codec ppm "$work/src" "$work/none"
said '--metadata keep: ppm files hold no EXIF or XMP'

# ---- Files that are copied: with what they have, or not at all
copied() { # VARIANTS OPTIONS...: the images of jpeg-90 that are the source's bytes
    out=$1
    shift
    expect 0 dl2-transcode --quiet --q 90 "$@" "$work/copy" "$work/$out"
    for file in exif comment none; do ! cmp -s "$work/copy/$file.jpg" "$work/$out/jpeg-90/$file.jpg" || echo $file; done | tr '\n' ' '
}
restart="--restart none"
is "$(copied usual $restart)" "exif comment none " "copied"
is "$(copied keep $restart --metadata keep)" "exif comment none " "copied with --metadata keep"
is "$(copied drop $restart --metadata drop)" "none " "copied with --metadata drop"
python none <<'PY'
from blocks import *
for name in ("exif", "comment"):
    data = open(f"drop/jpeg-90/{name}.jpg", "rb").read()
    assert b"maker" not in data and b"home" not in data, name
PY
expect 0 dl2-transcode --quiet --q 90 $restart --metadata drop "$work/copy" "$work/usual"
grep -q maker "$work/usual/jpeg-90/exif.jpg" && fail "another --metadata made nothing again"
exit 0
