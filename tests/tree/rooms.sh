#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The rooms of CONTRIBUTING.md: who includes whom, which files may include a library's headers, that
# no two struct tags (but those of plans) or external symbols have one name, and that files of a room
# don't call each other in a circle.
. "$srcdir/tests/lib.sh"
plainly
cd "$srcdir" || exit 99

# allowed ROOM: the rooms that it may include. The registries of devices name those that cuda/ has.
allowed() {
    case $1 in
    common) echo ;;
    pixels | remote | ranks) echo common ;;
    volumes) echo common dataset/packed/tar_members.h ;;
    dataset) echo remote volumes common ;;
    annotations) echo dataset remote volumes common ;;
    report) echo common dataset/group_column.h dataset/write/variant_facts.h ;;
    codec) echo pixels common ;;
    quality) echo codec dataset remote volumes ranks pixels common cuda/score_device_cuda.h ;;
    transcode) echo quality codec annotations dataset remote volumes ranks pixels common ;;
    loader) echo codec annotations dataset remote volumes pixels common cuda/decode/decode.h ;;
    load) echo loader codec annotations dataset remote volumes pixels common ;;
    device) echo ranks common ;;
    network) echo device ranks common ;;
    train) echo network device ranks loader codec annotations dataset remote volumes pixels common ;;
    cuda) echo device ranks quality pixels common loader/batch_decoder.h tests/cuda/emulate.h ;;
    study) echo common ;;
    postgres) echo train/fit.h transcode quality codec pixels common ;;
    python) echo common/nearest.h loader/loader.h loader/loader_config.h loader/loader_settings.h codec/image_file.h loader/batch_decoder.h ;;
    *) fail "no such room: $1" ;;
    esac
}

rooms="common pixels remote volumes dataset annotations ranks report codec quality transcode loader load device network train study cuda python postgres"
for room in $rooms; do
    sources=$(find "$room" -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.inc')
    [ "$sources" ] || fail "$room/ has no sources"
    # shellcheck disable=SC2086
    sed -n 's/^ *# *include "\([^"]*\/[^"]*\)".*/\1/p' $sources | sort -u >"$work/included"
    while read -r header; do
        good=no
        for one in $room $(allowed "$room"); do
            case $header in "$one" | "$one"/*) good=yes ;; esac
        done
        [ $good = yes ] || fail "$room/ includes $header, which CONTRIBUTING.md does not allow"
    done <"$work/included"
done

# Figures know nothing of the page that shows them.
grep -l '"report/page/' report/*.[ch] | grep -vx 'report/dl2_report\.c' >"$work/drawing"
[ ! -s "$work/drawing" ] || fail "report/page/ is included by $(cat "$work/drawing")"
grep -lE 'dl2_(analyze|conditions_analyze|speeds_analyze)\(' report/page/*.c >"$work/analyzing"
[ ! -s "$work/analyzing" ] || fail "the page analyses: $(cat "$work/analyzing")"

# only_in PATTERN FILES...: headers of a library, and who may include them.
only_in() {
    pattern=$1
    shift
    # shellcheck disable=SC2086
    grep -rlE "^ *# *include <($pattern)" $rooms --include='*.[ch]' --include='*.cu*' --include='*.inc' |
        grep -vE "^($*)" >"$work/strangers"
    [ ! -s "$work/strangers" ] || fail "$pattern is included by $(cat "$work/strangers")"
}
only_in 'jpeglib|png|webp/|avif/|openjpeg|jxl/|tiffio|gif_lib|lcms2' 'codec/'
only_in 'libav|libsw' 'codec/ffmpeg_libraries\.h'
only_in "oneapi/dnnl|dnnl" "device/onednn\\.h"
only_in 'mpi\.h' 'ranks/world_mpi\.c'
only_in 'cuda|cudnn|cublas|nccl|nvjpeg|nvtx' 'cuda/'
only_in 'argp' 'common/option\.c'
only_in 'libpq' 'dataset/postgresql/'
only_in 'nifti' 'volumes/volume_nifti\.c'
only_in 'yaml' 'annotations/data_yaml\.c'
only_in 'curl/|expat' 'remote/'
only_in 'postgres|fmgr' 'postgres/'

# Each device defines the plans that device.h declares.
sed -n '/^\/\* Plans/,/^$/s/^struct \(.*\);$/\1/p' device/device.h >"$work/plans"
# shellcheck disable=SC2086
find $rooms -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' | sort |
    xargs sed -nE 's/^(struct|enum|union) (dl2_[a-z0-9_]+) \{.*/\2/p' | sort | uniq -d |
    grep -vxFf "$work/plans" >"$work/twice"
[ ! -s "$work/twice" ] || fail "two structs have one name: $(cat "$work/twice")"

# Objects that this build made of the rooms' sources. Tests compile some of them once more, and an
# older build may have left objects of files that are gone.
command -v nm >/dev/null 2>&1 || skip "nm is not installed (Debian: binutils)"
cd "$builddir" || exit 99
# shellcheck disable=SC2086
find $rooms -name '*.o' 2>/dev/null | grep -v '/tests_' | while read -r object; do
    name=${object##*/} folder=${object%/*}
    name=${name##*-}
    source=$srcdir/${folder%/.libs}/${name%.o}
    [ ! -e "$source.c" ] && [ ! -e "$source.cu" ] || echo "$object"
done >"$work/objects"
[ -s "$work/objects" ] || skip "this build has no object files"
xargs nm -A -g <"$work/objects" >"$work/symbols"

# symbols TYPES: "ROOM FILE SYMBOL" of those types.
symbols() {
    awk -v types="$1" '{
        file = substr($0, 1, index($0, ":") - 1); symbol = $NF; type = $(NF - 1)
        room = file; sub("/.*", "", room); sub(".*/", "", file); sub(".*-", "", file); sub("[.]o$", "", file)
        if (index(types, type)) print room, file, symbol
    }' "$work/symbols"
}
symbols TDBRC | awk '$3 ~ /^dl2/ { print $3 }' | sort | uniq -d >"$work/twice"
[ ! -s "$work/twice" ] || fail "two external symbols have one name: $(cat "$work/twice")"

# Files of a room call each other one way. Known loops, each with its reason:
# loader: the engines of read-ahead ask it what to read next; it starts and wakes them.
# python: an array gives its batch back to the loader that it came from.
known_loops='engine_remote read_ahead|engine_threads read_ahead|engine_uring read_ahead|py_array py_loader'
for room in $rooms; do
    symbols U | awk -v room="$room" '$1 == room { print $2, $3 }' >"$work/uses"
    symbols T | awk -v room="$room" '$1 == room { print $3, $2 }' >"$work/has"
    awk 'NR == FNR { has[$1] = $2; next } $2 in has && has[$2] != $1 { print $1, has[$2] }' \
        "$work/has" "$work/uses" | sort -u | grep -vxE "$known_loops" >"$work/calls"
    tsort "$work/calls" >/dev/null 2>"$work/loop" || true
    [ ! -s "$work/loop" ] || fail "files of $room/ call each other in a circle: $(sed 's/.*: //' "$work/loop")"
done
