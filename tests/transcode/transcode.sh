#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# dl2-transcode from the outside: what it writes, what it leaves alone, what it says.
. "$srcdir/tests/lib.sh"
grep -q 'define HAVE_JPEG 1' "$builddir/config.h" || skip "this build has no JPEG"
grep -q 'define HAVE_PNG 1' "$builddir/config.h" || skip "this build has no PNG"
images=$builddir/tests/transcode/images
run() { # STATUS ARGUMENTS...
    status=$1
    shift
    expect "$status" dl2-transcode --quiet -j 2 "$@"
}
# How many images of a variant the last run made; what it says of them in all.
made() { awk -v v="$1" '$1 == v { print $3 }' "$work/out"; }
# field VARIANT NAME: a number or word of its dl2-variant.json
field() { sed -n 's/^  "'"$2"'": \(.*[^,]\),\{0,1\}$/\1/p' "$work/$1/dl2-variant.json"; }
same_images() { # A B
    diff -r -x 'dl2-variant.json*' "$1" "$2" >"$work/diff" || { cat "$work/diff" >&2; fail "$1 and $2 differ"; }
}

"$images" tree "$work/src" 40 || exit 99
echo 'not an image' >"$work/src/README.txt"

# ---- Variants mirror the tree; names, extensions, sums
run 0 --codec jpeg,png,ppm --q 5,50 "$work/src" "$work/a"
is "$(ls "$work/a" | tr '\n' ' ')" 'jpeg-05 jpeg-50 png ppm ' 'variants'
(cd "$work/src" && find . -name '*.ppm' | sed 's/ppm$/jpg/' | sort) >"$work/want"
(cd "$work/a/jpeg-05" && find . -name '*.jpg' | sort) >"$work/have"
cmp "$work/want" "$work/have" || fail 'the tree is not mirrored'
(cd "$work/a/ppm" && find . -type f -name '*.ppm' -exec cmp {} "$work/src/"{} \;) >"$work/diff"
[ ! -s "$work/diff" ] || { cat "$work/diff"; fail 'PPM is not lossless'; }
is "$(field a/jpeg-50 variant)" '"jpeg-50"' 'variant'
is "$(field a/jpeg-50 quality)" 50 'quality'
is "$(field a/png quality)" null 'quality of a lossless codec'
is "$(field a/jpeg-50 complete)" true 'complete'
is "$(field a/jpeg-50 images)" 40 'images'
is "$(field a/jpeg-50 ignored)" 1 'ignored'
is "$(field a/jpeg-50 failed)" '[]' 'failed'
is "$(field a/jpeg-50 bytes)" \
    "$(find "$work/a/jpeg-50" -name '*.jpg' -exec cat {} + | wc -c | tr -d ' ')" 'bytes'
is "$(field a/jpeg-50 source_bytes)" \
    "$(find "$work/src" -name '*.ppm' -exec cat {} + | wc -c | tr -d ' ')" 'source bytes'
is "$(wc -l <"$work/a/jpeg-50/dl2-variant.jsonl" | tr -d ' ')" 40 'lines'
is "$(sed -n 's/^{"key":"\([^"]*\)".*/\1/p' "$work/a/png/dl2-variant.jsonl")" \
    "$(cd "$work/src" && find . -name '*.ppm' | sed 's/^..//; s/.ppm$//' | LC_ALL=C sort)" 'keys in order'

# ---- Any number of jobs gives the same bytes
expect 0 dl2-transcode --quiet -j 1 --codec jpeg,png --q 50 "$work/src" "$work/b"
expect 0 dl2-transcode --quiet -j 4 --codec jpeg,png --q 50 "$work/src" "$work/c"
for variant in jpeg-50 png; do
    same_images "$work/b/$variant" "$work/c/$variant"
    same_images "$work/a/$variant" "$work/c/$variant"
done

# ---- Qualities that are encoded together are those that are encoded alone, and libjpeg's
# unpack DATASET: the members of its variants' shards, as files
unpack() {
    find "$1" -name '*.tar' | while read -r shard; do tar -xf "$shard" -C "${shard%/*}" && rm "$shard"; done
    find "$1" -name 'dl2-index*' -exec rm {} +
}
for how in '--effort 0' '--subsampling 444 --restart none' --never-larger=yes --container=tar; do
    rm -rf "$work/sweep" "$work/alone"
    # shellcheck disable=SC2086
    run 0 $how --codec jpeg --q 5,50,90 "$work/a/jpeg-50" "$work/sweep"
    for quality in 5 50 90; do
        # shellcheck disable=SC2086
        (DL2_JPEG=libjpeg; export DL2_JPEG
         run 0 $how --codec jpeg --q $quality "$work/a/jpeg-50" "$work/alone") || exit
    done
    for variant in jpeg-05 jpeg-50 jpeg-90; do
        is "$(field sweep/$variant copied)" "$(field alone/$variant copied)" "copies in $variant with $how"
    done
    unpack "$work/sweep"
    unpack "$work/alone"
    same_images "$work/sweep" "$work/alone"
done
[ "$(find "$work/sweep" -name '*.jpg' | wc -l)" -eq 120 ] || fail 'images of a packed sweep'

# ---- A rerun does nothing at all
touch -d '2001-01-01' "$work/a/jpeg-50/dl2-variant.json" "$work/a/jpeg-50/dl2-variant.jsonl"
before=$(cd "$work/a/jpeg-50" && find . -type f -exec stat -c '%n %y %i' {} + | sort)
run 0 --codec jpeg,png,ppm --q 5,50 "$work/src" "$work/a"
is "$(made jpeg-50)" 0 'made again'
is "$(cd "$work/a/jpeg-50" && find . -type f -exec stat -c '%n %y %i' {} + | sort)" "$before" 'a rerun'

# ---- An added quality makes only that one
run 0 --q 5,50,75 "$work/src" "$work/a"
is "$(made jpeg-50) $(made jpeg-75)" '0 40' 'made for an added quality'
is "$(stat -c %Y "$work/a/jpeg-50/dl2-variant.json")" "$(date -d 2001-01-01 +%s)" "the others' time"

# ---- What is missing, cut, or older than its source is made again, nothing else
rm "$work/a/jpeg-50/train/rose/0001.jpg"
: >"$work/a/jpeg-50/train/rose/0003.jpg"
touch -d '2030-01-01' "$work/src/train/rose/0007.ppm"
run 0 --q 50 "$work/src" "$work/a"
is "$(made jpeg-50)" 3 'made again'
same_images "$work/a/jpeg-50" "$work/c/jpeg-50"
is "$(wc -l <"$work/a/jpeg-50/dl2-variant.jsonl" | tr -d ' ')" 40 'lines'
is "$(field a/jpeg-50 images)" 40 'images'

# ---- Other options make everything again; so does --force; a damaged record does too
run 0 --q 50 --effort 1 "$work/src" "$work/a"
is "$(made jpeg-50)" 40 'made with other options'
run 0 --q 50 "$work/src" "$work/a"
same_images "$work/a/jpeg-50" "$work/c/jpeg-50"
run 0 --q 50 --force "$work/src" "$work/a"
is "$(made jpeg-50)" 40 'made by --force'
echo '{' >"$work/a/jpeg-50/dl2-variant.json"
run 0 --q 50 "$work/src" "$work/a"
is "$(made jpeg-50)" 40 'made after a damaged dl2-variant.json'
# Lines that are none, or lie, are not believed: of 40, twenty are left as they were.
run 0 --q 50 "$work/src" "$work/c"
lines=$work/c/jpeg-50/dl2-variant.jsonl
{
    head -n 20 "$lines"
    printf '\0\377\n{\n[]\n{"key":5}\n{"key":"nobody","bytes":1}\n\n'
    sed -n '21,30s/"bytes":/"bytes":1/p' "$lines"
    sed -n '31,35s/"source_mtime_ns":/"source_mtime_ns":-/p' "$lines"
    sed -n '36s/,"source_bytes":.*//p' "$lines"
} >"$work/lines"
cp "$work/lines" "$lines"
run 0 --q 50 "$work/src" "$work/c"
is "$(made jpeg-50)" 20 'made after damaged lines'
same_images "$work/a/jpeg-50" "$work/c/jpeg-50"
is "$(wc -l <"$lines" | tr -d ' ')" 40 'lines'

# ---- Files whose source is gone are named, and removed on request
mv "$work/src/val/tulip" "$work/tulip"
run 0 --q 50 "$work/src" "$work/a"
said 'jpeg-50/val/tulip/0000.jpg: no source image'
[ -e "$work/a/jpeg-50/val/tulip/0000.jpg" ] || fail 'removed without --prune'
is "$(field a/jpeg-50 images)" 36 'images'
echo mine >"$work/a/jpeg-50/note.txt"
run 0 --q 50 --prune "$work/src" "$work/a"
[ ! -e "$work/a/jpeg-50/val/tulip" ] || fail '--prune left files'
[ -e "$work/a/jpeg-50/note.txt" ] || fail '--prune removed what is not its own'
# What a link leads to lies elsewhere.
mkdir "$work/elsewhere" && echo mine >"$work/elsewhere/1.jpg" && ln -s ../../elsewhere "$work/a/jpeg-50/link" || fail 'ln'
run 0 --q 50 --prune "$work/src" "$work/a"
[ -e "$work/elsewhere/1.jpg" ] || fail '--prune removed a file behind a link'
rm "$work/a/jpeg-50/link"
mv "$work/tulip" "$work/src/val/tulip"

# ---- DEST inside SOURCE would be read as images of it by the next run, and is refused, as are
# places in each other's way; nothing is written there
cp -R "$work/src" "$work/nested"
cp -R "$work/src/val" "$work/flat"
mkdir "$work/one" && cp "$work"/src/val/rose/* "$work/one/"
ln -s nested "$work/link"
ln -s ../nested/train "$work/one/way-in"
(cd "$work" && find nested flat one) >"$work/want"
for place in nested/variants nested/train/variants nested/../nested/new/variants link/variants flat/variants \
    flat/rose one/variants nested/none/../../nested/variants; do
    for container in folder tar; do
        run 2 --q 50 --container=$container "$work/${place%%/*}" "$work/$place"
        said 'lies within SOURCE'
    done
done
run 2 --q 50 "$work/nested" "$work/one/way-in/variants"
said 'lies within SOURCE'
(cd "$work/nested" && run 2 --q 50 . variants && run 2 --q 50 ../link train) || exit 1
mkdir "$work/led" && ln -s ../nested/val "$work/led/jpeg-50"
run 2 --q 50 "$work/nested" "$work/led"
said 'leads into SOURCE'
(cd "$work" && find nested flat one) | cmp - "$work/want" || fail 'a refused DEST was written to'
run 0 --q 50 "$work/link" "$work/nested-variants"
is "$(made jpeg-50)" 40 'a DEST beside SOURCE whose name begins alike'
run 2 --q 50 "$work/src" "$work/src"
said 'DEST is SOURCE'
run 2 --q 50 "$work/a/jpeg-50" "$work/a"
said 'its own source'
run 0 --q 40 "$work/a/jpeg-50" "$work/a"
is "$(made jpeg-40)" 36 'a variant of a variant'

# ---- Images of every kind
"$images" special "$work/odd" || exit 99
echo 'no image' >"$work/odd/text.jpg"
echo 'no image' >"$work/odd/notes.txt"
: >"$work/odd/empty.png"
run 1 --codec png,jpeg --q 90 --background 102030 "$work/odd" "$work/o"
said 'odd/cut-short.jpg: JPEG: '
said 'odd/text.jpg: not an image'
said 'odd/empty.png: '
said '3 of 16 images failed'
is "$(grep -c . "$work/err")" 4 'lines on stderr'
is "$(field o/png images) $(field o/png ignored)" '13 1' 'images, ignored'
grep -q '"path": "cut-short.jpg"' "$work/o/png/dl2-variant.json" || fail 'the failed file is not in the report'
is "$(field o/png complete)" true 'complete, though some failed'
is "$("$images" show "$work/o/png/clear.png")" '16 16 3 16 32 48' 'alpha over a background'
is "$("$images" show "$work/o/png/gray.png" | cut -d' ' -f3)" 1 'channels of gray'
is "$("$images" show "$work/o/jpeg-90/gray.jpg" | cut -d' ' -f3)" 1 'channels of gray'
"$images" show "$work/o/png/cmyk.png" | grep -q '^16 16 3 [0-3] 25[2-5] 25[2-5]$' || fail 'CMYK'
for o in 1 2 3 4; do
    is "$("$images" show "$work/o/png/exif-$o.png" | cut -d' ' -f1,2)" '32 20' "orientation $o"
done
for o in 5 6 7 8; do
    is "$("$images" show "$work/o/png/exif-$o.png" | cut -d' ' -f1,2)" '20 32' "orientation $o"
done
[ "$(tr -d ' \n' <"$work/o/png/dl2-variant.json" | grep -o '"turned":{[^}]*}')" = '"turned":{"EXIForientation":7}' ] || fail 'turned images'
# Upright: turning back gives the picture whose corner is known.
corner=$("$images" show "$work/odd/exif-1.jpg" | cut -d' ' -f4-)
is "$("$images" show "$work/o/png/exif-5.png" | cut -d' ' -f4-)" "$corner" 'corner of orientation 5'
is "$("$images" show "$work/o/jpeg-90/exif-6.jpg" | cut -d' ' -f1,2)" '20 32' 'orientation in a JPEG variant'
[ -e "$work/o/png/called-png.png" ] && [ -e "$work/o/png/no-extension.png" ] || fail 'names don’t decide'
touch -d '2001-01-01' "$work/o/png/dl2-variant.json"
run 1 --codec png,jpeg --q 90 --background 102030 "$work/odd" "$work/o"
is "$(made png)" 0 'made again beside failures'
is "$(stat -c %Y "$work/o/png/dl2-variant.json")" "$(date -d 2001-01-01 +%s)" 'an unchanged report'
# What once could be read and no longer can has no output any more.
head -c 100 "$work/odd/exif-2.jpg" >"$work/odd/new" && mv "$work/odd/new" "$work/odd/exif-2.jpg"
run 1 --codec png --background 102030 "$work/odd" "$work/o"
[ ! -e "$work/o/png/exif-2.png" ] || fail 'the output of a source that became unreadable stayed'
run 1 --codec png --max-pixels 600 "$work/odd" "$work/limited"
said 'exif-1.jpg: 32x20 pixels pass the limit of 600'

# ---- Two sources that would be written to one name
mkdir "$work/twins"
cp "$work/src/train/rose/0001.ppm" "$work/twins/a.pgm"
cp "$work/src/train/rose/0003.ppm" "$work/twins/a.ppm"
run 1 --q 50 "$work/twins" "$work/t"
said 'twins/a.ppm: would be written to the same name as a.pgm'
cmp "$work/t/jpeg-50/a.jpg" "$work/c/jpeg-50/train/rose/0001.jpg" || fail 'the first must win'
is "$(field t/jpeg-50 images)" 1 'images'

# ---- IDX files
mkdir "$work/idx"
printf '\0\0\010\003\0\0\0\002\0\0\0\002\0\0\0\003\1\2\3\4\5\6\7\7\7\7\7\7' >"$work/idx/train-images-idx3-ubyte"
printf '\0\0\010\001\0\0\0\002\001\000' >"$work/idx/train-labels-idx1-ubyte"
run 0 --codec png "$work/idx" "$work/i"
is "$(field i/png images)" 2 'images of an IDX file'
is "$(find "$work/i/png" -name '*.png' | xargs -n1 "$images" show | sort | tr '\n' ';')" \
    '3 2 1 1 1 1;3 2 1 7 7 7;' 'pixels of an IDX file'

# ---- Odd names
mkdir -p "$work/names/a \"quoted\" \\ class"
cp "$work/src/train/rose/0001.ppm" "$work/names/a \"quoted\" \\ class/x
y.ppm"
cp "$work/src/train/rose/0001.ppm" "$work/names/$(printf 'latin-\351').ppm"
echo a caption >"$work/names/$(printf 'latin-\351').txt"
run 0 --q 50 "$work/names" "$work/n"
run 0 --q 50 "$work/names" "$work/n"
is "$(made jpeg-50) $(field n/jpeg-50 images)" '0 2' 'odd names'
! grep 'accounts for' "$work/err" && [ -s "$work/n/jpeg-50/$(printf 'latin-\351').txt" ] || fail 'a caption of an odd name'

# ---- When writing fails
: >"$work/file"
run 1 --q 50 "$work/src" "$work/file/below"
said 'file'
# A size limit instead of a full disk: the same way out.
(trap '' XFSZ; ulimit -f 1; PATH=$PATH dl2-transcode --quiet -j 2 --codec png "$work/src" "$work/full") \
    >"$work/out" 2>"$work/err"
is "$?" 1 'exit status with a full disk'
said "can't be written"
find "$work/full" -name '*.png' | while read -r file; do
    cmp -s "$file" "$work/c/png/${file#"$work/full/png/"}" || echo "$file"
done >"$work/diff"
[ ! -s "$work/diff" ] || { cat "$work/diff" >&2; fail 'half-written files'; }
run 0 --codec png "$work/src" "$work/full"
same_images "$work/full/png" "$work/c/png"
[ -z "$(find "$work/full" -name '*.dl2-tmp')" ] || fail 'temporary files are left'

# ---- Two at once on one DEST
dl2-transcode --quiet --q 50 "$work/src" "$work/two" >"$work/out1" 2>&1 &
first=$!
run 0 --q 50 "$work/src" "$work/two"
wait "$first" || fail 'the other of two runs'
same_images "$work/two/jpeg-50" "$work/c/jpeg-50"
is "$(field two/jpeg-50 complete)" true 'complete'

# ---- Restart intervals are one of the options that a rerun looks at
run 0 --q 50 "$work/src" "$work/tiles"
grep -q '"restart": "tiles"' "$work/tiles/jpeg-50/dl2-variant.json" || fail 'tiles are not on record'
run 0 --q 50 --restart=none "$work/src" "$work/tiles"
is "$(made jpeg-50)" 40 'made without tiles'
grep -q '"restart": "tiles"' "$work/tiles/jpeg-50/dl2-variant.json" && fail 'tiles are on record'
run 2 --codec png --restart=none "$work/src" "$work/x"
said '--restart: none of the codecs in use has restart intervals'
run 2 --effort 2 --restart=tiles "$work/src" "$work/x"
said "a progressive JPEG can't have tiles"
run 2 --restart=some "$work/src" "$work/x"

# ---- Source files of a variant's own codec: copied where encoding again would save nothing
# has_intervals FILE: is there a DRI segment (ffdd 0004 and an interval that isn't 0)?
has_intervals() { od -An -v -tx1 "$1" | tr -d ' \n' | grep -q 'ffdd0004\(00[^0]\|00.[^0]\|[^0]\|.[^0]\)'; }
copied() { awk -v v="$1" '$1 == v { print $(NF - 1) }' "$work/out"; }
none_larger() { # SOURCE VARIANT
    (cd "$1" && find . -name '*.jpg' -exec stat -c '%s %n' {} +) | while read -r size name; do
        [ "$(stat -c %s "$2/$name")" -le "$size" ] || echo "$name"
    done >"$work/larger"
    [ ! -s "$work/larger" ] || fail "larger than their sources: $(cat "$work/larger")"
}
run 0 --q 50 --subsampling 444 "$work/src" "$work/fine"
jpegs=$work/c/jpeg-50
run 0 --q 20,50,51,95 "$jpegs" "$work/kept"
is "$(copied jpeg-50) $(copied jpeg-51) $(copied jpeg-95) $(made jpeg-95)" '40 40 40 40' 'copied'
same_images "$work/kept/jpeg-50" "$jpegs"
same_images "$work/kept/jpeg-95" "$jpegs"
none_larger "$jpegs" "$work/kept/jpeg-20"
is "$(field kept/jpeg-95 copied) $(field kept/jpeg-95 copied_bytes)" "40 $(field c/jpeg-50 bytes)" 'copies on record'
is "$(grep -c '"copied":true' "$work/kept/jpeg-20/dl2-variant.jsonl")" "$(field kept/jpeg-20 copied)" 'lines of copies'
[ "$(field kept/jpeg-20 copied)" -lt 40 ] || fail 'coarser files were copied'
run 0 --q 95 "$jpegs" "$work/kept"
is "$(made jpeg-95) $(copied jpeg-95)" '0 40' 'copied in an earlier run'
run 0 --q 95 --never-larger=no "$jpegs" "$work/kept"
is "$(made jpeg-95) $(copied jpeg-95)" '40 0' 'copied against --never-larger=no'
grep -q never_larger "$work/kept/jpeg-95/dl2-variant.json" && fail 'never_larger is on record'
[ "$(field kept/jpeg-95 bytes)" -gt "$(field c/jpeg-50 bytes)" ] || fail 'not encoded again'
# Finer chroma than the variant's is made coarser, unless that saves nothing; gray has none.
run 0 --q 50 "$work/fine/jpeg-50" "$work/kept-fine"
[ "$(copied jpeg-50)" -lt 40 ] && [ "$(copied jpeg-50)" -ge 6 ] || fail "4:4:4: $(copied jpeg-50) copied"
none_larger "$work/fine/jpeg-50" "$work/kept-fine/jpeg-50"
run 0 --q 50 --subsampling 444 "$jpegs" "$work/kept-fine"
is "$(copied jpeg-50)" 40 'coarser chroma copied'
# Packed, the bytes are the same.
run 0 --q 60 --container=tar "$jpegs" "$work/kept-tar"
is "$(copied jpeg-60)" 40 'copied into a container'
run 0 copy "$work/kept-tar/jpeg-60" "$work/kept-un"
rm -f "$work/kept-un/".dl2-*
same_images "$work/kept-un" "$jpegs"
# What must be turned upright, or has other colors than YCbCr, is encoded.
mkdir "$work/turned" && cp "$work/odd"/exif-[168].jpg "$work/odd/cmyk.jpg" "$work/turned/" || fail cp
run 0 --q 95 "$work/turned" "$work/kept-turned"
is "$(copied jpeg-95)" 1 'turned images'
cmp "$work/turned/exif-1.jpg" "$work/kept-turned/jpeg-95/exif-1.jpg" || fail 'an upright image was encoded'
is "$("$images" show "$work/kept-turned/jpeg-95/exif-6.jpg" | cut -d' ' -f1,2)" '20 32' 'a turned image'
# So are RGB and arithmetic codes, which some programs read otherwise or not at all.
"$images" rare "$work/rare" || exit 99
run 0 --q 95 --restart=none "$work/rare" "$work/kept-rare"
is "$(copied jpeg-95)" 1 'JPEGs of rare kinds copied'
cmp "$work/rare/plain.jpg" "$work/kept-rare/jpeg-95/plain.jpg" || fail 'a plain JPEG was encoded'
# jxl_lossless keeps files that come back and decode to their own pixels, and of others the pixels.
if grep -q 'define HAVE_JXL 1' "$builddir/config.h"; then
    for container in folder tar; do
        run 0 --codec jxl_lossless --container=$container "$work/rare" "$work/jxl-$container"
        said "3 JPEG files cannot be stored so that their bytes come back: CMYK (1), arithmetic codes (1), RGB with subsampling (1)."
        is "$(sed -n 's/.*"key":"\([^"]*\)".*"pixels_only":"\([^"]*\)".*/\1: \2/p' "$work/jxl-$container/jxl_lossless/dl2-variant.jsonl")" \
            "arithmetic: arithmetic codes
cmyk: CMYK
rgb-422: RGB with subsampling" 'the reason of each'
        is "$(wc -l <"$work/err")" 1 'lines on stderr'
        run 0 --codec jxl_lossless --container=$container "$work/rare" "$work/jxl-$container"
        is "$(made jxl_lossless) $(field jxl-$container/jxl_lossless pixels_only)" '0 3' 'kept as pixels, found again'
        said 'come back: CMYK (1), arithmetic codes (1), RGB with subsampling (1).'
        expect 0 dl2-quality --quiet --json "$work/q.json" "$work/rare" "$work/jxl-$container/jxl_lossless"
        grep -q '"identical": 5' "$work/q.json" || fail 'jxl_lossless has other pixels than its source'
    done
fi
# Of other codecs only the sizes are compared. A file that can't be decoded is not copied.
if grep -q 'define HAVE_WEBP 1' "$builddir/config.h"; then
    run 0 --codec webp --q 10 "$work/src" "$work/webp"
    run 0 --codec webp --q 95 "$work/webp/webp-10" "$work/kept"
    is "$(copied webp-95)" 40 'copied WebP'
    run 0 --codec jpeg --q 95 "$work/webp/webp-10" "$work/kept-other"
    is "$(copied jpeg-95)" 0 "another codec's files copied"
fi
# A copy gets restart intervals, and keeps its pixels, metadata and Huffman tables of its own.
picture "$work/big/a.ppm" 500 333 3 || fail picture
for effort in 0 1; do
    run 0 --q 60 --restart=none --effort $effort "$work/big" "$work/wide$effort"
    plain=$work/wide$effort/jpeg-60
    run 0 --q 90 "$plain" "$work/recut$effort"
    is "$(copied jpeg-90)" 1 'a plain JPEG copied'
    run 0 --codec ppm "$plain" "$work/wide$effort"
    run 0 --codec ppm "$work/recut$effort/jpeg-90" "$work/recut$effort"
    cmp "$work/wide$effort/ppm/a.ppm" "$work/recut$effort/ppm/a.ppm" || fail 'other pixels in a copy'
    has_intervals "$work/recut$effort/jpeg-90/a.jpg" || fail 'a copy without restart intervals'
    has_intervals "$plain/a.jpg" && fail 'restart intervals against --restart=none'
    [ $(($(stat -c %s "$work/recut$effort/jpeg-90/a.jpg") * 10)) -lt $(($(stat -c %s "$plain/a.jpg") * 11)) ] ||
        fail 'restart intervals take more than a tenth'
    run 0 --q 90 --restart=none "$plain" "$work/recut$effort"
    cmp "$plain/a.jpg" "$work/recut$effort/jpeg-90/a.jpg" || fail 'not copied byte for byte'
done
mkdir "$work/cut" && cp "$jpegs/train/rose/0001.jpg" "$work/cut/" && cp "$work/odd/cut-short.jpg" "$work/cut/" || fail cp
run 1 --q 95 "$work/cut" "$work/kept-cut"
[ ! -e "$work/kept-cut/jpeg-95/cut-short.jpg" ] || fail 'a broken file was copied'

# ---- Usage
run 2 --codec nothing "$work/src" "$work/x"
said "'nothing' is not a codec that this build can write: "
run 2 --q 0 "$work/src" "$work/x"
said '--q: 0 is not between 1 and 100'
run 2 copy --q 10 "$work/src" "$work/x"
run 2 copy --codec png "$work/src" "$work/x"
echo text >"$work/file.data"
run 1 "$work/file.data" "$work/x"
said 'file.data: no dataset; looked for a folder of images'
[ ! -e "$work/x" ] || fail 'DEST was made for nothing'
run 2 --q 101 "$work/src" "$work/x"
run 2 --q ten "$work/src" "$work/x"
run 2 --effort 3 "$work/src" "$work/x"
run 2 --effort png=3 "$work/src" "$work/x"
run 2 --codec png --subsampling 444 "$work/src" "$work/x"
run 2 --codec png --q 50 "$work/src" "$work/x"
said 'every codec in use is lossless'
run 2 --background mauve "$work/src" "$work/x"
run 2 "$work/src"
run 1 "$work/nowhere" "$work/x"
said nowhere
mkdir "$work/empty"
run 1 "$work/empty" "$work/x"
expect 0 dl2-transcode recompress --help
for codec in JPEG:jpeg WEBP:webp AVIF:avif JP2:jp2 JXL:jxl JXL:jxl_lossless PNG:png; do
    built=0
    grep -q "define HAVE_${codec%%:*} 1" "$builddir/config.h" && built=1
    is "$(grep -c "^  ${codec#*:} *\(quality\|lossless\)" "$work/out")" $built "${codec#*:} in --help"
done

# ---- --list: a line a codec for scripts, after the other options were checked
run 0 --list codecs
grep -qx "$(printf 'png\tlossless\tpng')" "$work/out" && grep -qx "$(printf 'jpeg\tlossy\tjpg')" "$work/out" || fail "--list codecs"
for wrong in '--codec none' '--q 0' '--q 10,x' '--codec png --q 50' '--effort 3'; do
    run 2 $wrong --list codecs
done
run 2 --list
