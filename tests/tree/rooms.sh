#!/bin/sh
# The rooms of CONTRIBUTING.md: who includes whom, which files may include a library's headers, and
# that no two struct tags have one name.
. "$srcdir/tests/lib.sh"
cd "$srcdir" || exit 99

# allowed ROOM: the rooms that it may include. The registries of devices name those that cuda/ has.
allowed() {
    case $1 in
    common) echo ;;
    pixels | dataset | ranks | report) echo common ;;
    codec) echo pixels common ;;
    quality) echo codec dataset pixels common cuda/score_device_cuda.h ;;
    transcode) echo quality codec dataset pixels common ;;
    loader) echo codec dataset pixels common cuda/decode.h ;;
    load) echo loader codec dataset pixels common ;;
    device) echo ranks common ;;
    network) echo device ranks common ;;
    train) echo network device ranks loader codec dataset pixels common ;;
    cuda) echo device ranks quality pixels common loader/batch_decoder.h tests/cuda/emulate.h ;;
    python) echo loader/loader.h codec/image_file.h ;;
    *) fail "no such room: $1" ;;
    esac
}

rooms="common pixels dataset ranks report codec quality transcode loader load device network train cuda python"
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

# only_in PATTERN FILES...: headers of a library, and who may include them.
only_in() {
    pattern=$1
    shift
    # shellcheck disable=SC2086
    grep -rlE "^ *# *include <($pattern)" $rooms --include='*.[ch]' --include='*.cu*' --include='*.inc' |
        grep -vE "^($*)" >"$work/strangers"
    [ ! -s "$work/strangers" ] || fail "$pattern is included by $(cat "$work/strangers")"
}
only_in 'jpeglib|png|webp/|avif/|openjpeg|jxl/' 'codec/'
only_in "oneapi/dnnl|dnnl" "device/onednn\\.h"
only_in 'mpi\.h' 'ranks/world_mpi\.c'
only_in 'cuda|cudnn|cublas|nccl|nvjpeg|nvtx' 'cuda/'
only_in 'argp' 'common/option\.c'

# shellcheck disable=SC2086
find $rooms -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' | sort |
    xargs sed -nE 's/^(struct|enum|union) (dl2_[a-z0-9_]+) \{.*/\2/p' | sort | uniq -d >"$work/twice"
[ ! -s "$work/twice" ] || fail "two structs have one name: $(cat "$work/twice")"

# External symbols, of the objects that this build has. Tests compile some of them once more.
cd "$builddir" || exit 99
# shellcheck disable=SC2086
find $rooms \( -path '*.libs/*.o' -o -name '*.o' \) 2>/dev/null | grep -v '/tests_' >"$work/objects"
[ -s "$work/objects" ] || skip "this build has no object files"
command -v nm >/dev/null 2>&1 || skip "nm is not installed (Debian: binutils)"
xargs nm -g --defined-only <"$work/objects" | awk 'NF == 3 && $2 != "W" && $2 != "V" && $3 != "main" { print $3 }' |
    sort | uniq -d | grep '^dl2' >"$work/twice"
[ ! -s "$work/twice" ] || fail "two external symbols have one name: $(cat "$work/twice")"
