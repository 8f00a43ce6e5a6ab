#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: bundle.sh INSTALLED NAME CUDA FORMAT [CHECK...]
#
# Makes NAME.tar.FORMAT (xz, gz) of what `make install DESTDIR=INSTALLED` gave and of the programs CHECK..., with the shared
# libraries that they need; if BUNDLE_LIMIT is set, it fails where that has so many MiB or more. FORMAT whl makes a Python wheel
# of the package and the programs alone. What a machine has to bring itself, since it belongs to its kernel or its kernel's
# driver: libc's family, the NVIDIA driver. CUDA=no also leaves out NVIDIA's large libraries (cuDNN, cuBLAS, NCCL; gigabytes):
# launcher.sh finds them there. For all of these but libc, lib/node has stand-ins, so that programs start without them.
set -eu
LC_ALL=C
export LC_ALL
installed=$1 name=$2 cuda=$3 format=$4
shift 4
here=$(cd "$(dirname "$0")" && pwd)
: "${CC:=cc}" "${PATCHELF:=patchelf}"
for tool in "$PATCHELF" readelf nm; do
    command -v "$tool" >/dev/null 2>&1 || { echo "make bundle needs $tool (Debian: patchelf binutils)" >&2; exit 1; }
done
case $cuda in yes | no) ;; *) echo "BUNDLE_CUDA is yes or no, not '$cuda'" >&2; exit 1 ;; esac
case $format in xz | gz | whl) ;; *) echo "BUNDLE_FORMAT is xz or gz, not $format" >&2; exit 1 ;; esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ "$format" = whl ]; then # the package's own folder holds all
    root=$work/wheel/dl2 package=$work/wheel/dl2
else
    root=$name package=$name/lib/python/dl2
fi
rm -rf "$root" "$name.tar.$format"
mkdir -p "$root/lib/node" "$root/libexec" "$root/share/licenses"

# ---- Programs and data
bin=$(dirname "$(find "$installed" -type f -name dl2-train)")
prefix=$(dirname "$bin")
module=$(find "$installed" -path '*packages/dl2/_core.so')
if [ "$format" = whl ]; then
    [ -n "$module" ] || { echo "make wheel needs the Python module (Debian: python3-dev libdlpack-dev)" >&2; exit 1; }
    cp "$here/_programs.py" "$root"
else
    cp -R "$prefix/share" "$root"
fi
[ -z "$module" ] || { mkdir -p "$package"; cp "${module%/*}"/* "$package"; }
for program in "$bin"/dl2-* "$@"; do
    [ "${program##*/}" = dl2-hub ] || cp -L "$program" "$root/libexec"
done
for file in "$root"/libexec/* ${module:+"$package"/_*.so}; do
    strip --strip-unneeded "$file"
done

# ---- Libraries
libc_family='^(ld-linux.*|lib(c|m|dl|rt|pthread|util|resolv|anl|nsl|BrokenLocale|nss_.*))\.so\.[0-9]+$'
# Whoever runs the card brings these.
node='^lib(cuda|nvidia-.*)\.so\.'
nvidia='^lib(cudnn.*|cublas.*|nccl|nvrtc.*|nvJitLink|cufft|curand|cusparse|cusolver)\.so\.'
[ "$cuda" = yes ] || node="$node|$nvidia"
# Other modules of the same Python use these, too, and every system with Python has them.
[ "$format" != whl ] || libc_family="$libc_family|^lib(stdc\\+\\+|gcc_s)\\.so\\."

needed() { readelf -d "$1" 2>/dev/null | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }
# Where the loader finds them here.
for file in "$bin"/dl2-* ${module:+"${module%/*}"/_*.so} "$@"; do
    ldd "$file" 2>/dev/null | sed -n 's/^[[:space:]]*\([^ ]*\) => \(\/[^ ]*\).*/\1 \2/p'
done | sort -u >"$work/elsewhere"
find "$installed" -name '*.so.*' | sed 's,\(.*/\)\(.*\),\2 \1\2,' | cat - "$work/elsewhere" >"$work/found" # our own first
where() { awk -v name="$1" '$1 == name {print $2; exit}' "$work/found"; }

: >"$work/taken" >"$work/absent"
set -- "$root"/libexec/* ${module:+"$package"/_*.so}
while [ $# -gt 0 ]; do
    for library in $(needed "$1"); do
        if printf '%s\n' "$library" | grep -Eq "$libc_family"; then
            :
        elif printf '%s\n' "$library" | grep -Eq "$node"; then
            grep -qxF "$library" "$work/absent" || echo "$library" >>"$work/absent"
        elif ! grep -qF "$library " "$work/taken"; then
            path=$(where "$library")
            [ -n "$path" ] || { echo "$1 needs $library, which isn't found here" >&2; exit 1; }
            cp -L "$path" "$root/lib/$library"
            chmod u+w "$root/lib/$library"
            echo "$library $path" >>"$work/taken"
            set -- "$@" "$root/lib/$library"
        fi
    done
    shift
done
if [ "$cuda" = yes ] && grep -q '^libcudnn' "$work/taken"; then # what cuDNN opens by itself
    folder=$(dirname "$(readlink -f "$(where libcudnn.so.9)")")
    for path in "$folder"/libcudnn_*.so.9 "$folder"/libnvrtc.so.* "$folder"/libnvrtc-builtins.so.* "$folder"/libnvJitLink.so.*; do
        [ -e "$path" ] && cp -L "$path" "$root/lib" && echo "${path##*/} $path" >>"$work/taken"
    done
fi
# Debian's expat takes arc4random_buf() from glibc 2.36, as nothing else here does: of its static library and that function by
# getentropy() it is linked anew, for 2.35.
if [ -e "$root/lib/libexpat.so.1" ] && nm -D "$root/lib/libexpat.so.1" | grep -q 'arc4random_buf@GLIBC_2.36'; then
    cat >"$work/random.c" <<'END'
#include <stdlib.h>
#include <unistd.h>
__attribute__((visibility("hidden"))) void arc4random_buf(void *buffer, size_t size);
void arc4random_buf(void *buffer, size_t size)
{
    for (size_t at = 0, part; at < size; at += part) {
        part = size - at < 256 ? size - at : 256;
        if (getentropy((char *)buffer + at, part))
            abort();
    }
}
END
    # Debian 13's static library is not position-independent; what is built there asks for a newer glibc anyway.
    if $CC -O2 -fPIC -shared -s -o "$work/libexpat.so.1" "$work/random.c" -Wl,-soname,libexpat.so.1 \
        -Wl,--whole-archive "$($CC -print-file-name=libexpat.a)" -Wl,--no-whole-archive 2>"$work/expat"; then
        cp "$work/libexpat.so.1" "$root/lib/libexpat.so.1"
    else
        echo "bundle.sh: libexpat.a cannot be linked into a library here: the system's libexpat.so.1 is taken, for glibc 2.36 and later" >&2
    fi
fi
# RPATH, which the environment's LD_LIBRARY_PATH can't undo as it can RUNPATH.
for file in "$root"/libexec/*; do
    "$PATCHELF" --force-rpath --set-rpath '$ORIGIN/../lib' "$file"
done
for file in "$root"/lib/*.so*; do
    case $file in */libcu* | */libnv* | */libnccl*) continue ;; esac # NVIDIA's find each other; they stay as NVIDIA made them
    "$PATCHELF" --force-rpath --set-rpath '$ORIGIN' "$file"
done
case $format in whl) folder=lib ;; *) folder=../.. ;; esac
for file in ${module:+"$package"/_*.so}; do
    "$PATCHELF" --force-rpath --set-rpath "\$ORIGIN/$folder" "$file"
done

# ---- Stand-ins: asked for its version, a library that isn't there says 0; asked for anything else, what is missing
for library in $(cat "$work/absent"); do
    path=$(where "$library")
    for file in "$root"/libexec/*; do
        nm -D --undefined-only "$file" | sed -n 's/.* [Uwv] \([^@ ]*\).*/\1/p'
    done | sort -u >"$work/wanted"
    # Number, value, size, type, binding, visibility, section, name@version: those that it defines.
    # (Not what else is in its table: NCCL has all of the CUDA runtime in it, for itself.)
    readelf -W --dyn-syms "$path" | awk '$7 != "UND" && $5 != "LOCAL" && ($4 == "FUNC" || $4 == "OBJECT" || $4 == "IFUNC") {
        name = $8; sub(/@.*/, "", name); version = $8; if (!sub(/.*@/, "", version)) version = ""; print name, $4, $3, version }' |
        sort -u | join - "$work/wanted" >"$work/symbols"
    {
        printf '#include <unistd.h>\nstatic void missing(void)\n{\n    static const char text[] = "%s%s\\n";\n' \
            "$library is needed for this, and was not found on this machine: name its folder in DL2_LIBRARIES, " \
            "or do without (--device cpu)"
        printf '    if (write(2, text, sizeof text - 1)) {}\n    _exit(1);\n}\n'
        while read -r symbol type size version; do
            case $type:$symbol in
            OBJECT:*) echo "char $symbol[$size] __attribute__((aligned(32)));" ;;
            *[vV]ersion* | *Property*) echo "long $symbol(void); long $symbol(void) { return 0; }" ;;
            *) echo "long $symbol(void); long $symbol(void) { missing(); return 1; }" ;;
            esac
        done <"$work/symbols"
    } >"$work/node.c"
    version=$(awk 'NF > 3 {print $4; exit}' "$work/symbols")
    echo "${version:+$version }{ global: *; };" >"$work/node.map"
    $CC -w -shared -fPIC -fno-builtin -o "$root/lib/node/$library" "$work/node.c" -Wl,-soname,"$library" \
        ${version:+-Wl,--version-script="$work/node.map"}
done

# ---- The programs' places: launchers where a machine has to bring something
mkdir -p "$root/bin"
[ "$format" = whl ] || cp "$bin/dl2-hub" "$root/bin" # a script
if [ -s "$work/absent" ]; then
    cp "$work/absent" "$root/lib/node/LIST"
    cp "$here/launcher.sh" "$root/libexec/run"
    chmod 755 "$root/libexec/run"
else
    rmdir "$root/lib/node"
    printf '#!/bin/sh\nname=$1\nshift\nself=$(readlink -f "$0")\nexec "${self%%/*}/$name" "$@"\n' >"$root/libexec/run"
    chmod 755 "$root/libexec/run"
fi
for program in "$root"/libexec/dl2-*; do
    if [ "$format" = whl ]; then # _programs.py calls libexec/run
        :
    elif [ -s "$work/absent" ]; then
        ln -s ../libexec/run "$root/bin/${program##*/}"
    else
        mv "$program" "$root/bin"
        ln -s "../bin/${program##*/}" "$program"
    fi
done

# ---- Names of a wheel's libraries, each its own: a Python that has loaded another libjpeg.so.62 would take that one for ours
: >"$work/renamed"
if [ "$format" = whl ]; then
    set --
    for file in "$root"/lib/*.so*; do
        old=${file##*/}
        new=${old%%.so*}-$(sha256sum "$file" | cut -c 1-8).so${old#*.so}
        "$PATCHELF" --set-soname "$new" "$file"
        mv "$file" "$root/lib/$new"
        echo "$old $new"
        set -- "$@" --replace-needed "$old" "$new"
    done >"$work/renamed"
    for file in "$root"/lib/*.so* "$root"/libexec/dl2-* "$package"/_*.so; do
        "$PATCHELF" "$@" "$file"
    done
    for file in "$package"/_*.so; do
        mv "$file" "${file%.so}.abi3.so"
    done
fi

# ---- Where it all comes from
{
    printf 'library\tpackage\tversion\tlicense\n'
    grep -v '^libdl2' "$work/taken" | sort | while read -r library path; do
        name_inside=$(awk -v name="$library" '$1 == name {print $2}' "$work/renamed")
        library=${name_inside:-$library}
        package=$(dpkg -S "$(readlink -f "$path")" 2>/dev/null | sed 's/:.*//;1q')
        [ -n "$package" ] || package=$(dpkg -S "$path" 2>/dev/null | sed 's/:.*//;1q')
        if [ -n "$package" ]; then
            cp -L "/usr/share/doc/$package/copyright" "$root/share/licenses/$package"
            printf '%s\t%s\t%s\tshare/licenses/%s\n' "$library" "$package" \
                "$(dpkg-query -W -f '${Version}' "$package" 2>/dev/null | head -n 1)" "$package"
        else
            case $library in
            libcu* | libnv* | libnccl*)
                printf '%s\tNVIDIA\t-\thttps://docs.nvidia.com/cuda/eula/ (its list of redistributable software)\n' "$library" ;;
            *) printf '%s\t%s\t-\tunknown\n' "$library" "$path" ;;
            esac
        fi
    done
} >"$root/share/licenses/LIBRARIES"
wallpapers=/usr/share/doc/lomiri-wallpapers-16.04/copyright # of photographs for device.py
[ ! -d "$root/share/dl2/device/photographs" ] || cp "$wallpapers" "$root/share/licenses/photographs"
glibc=$(find "$root" -type f -exec readelf -V {} + 2>/dev/null |
    grep -o 'GLIBC_[0-9.]*' | sort -t _ -k 2 -uV | tail -n 1 | sed 's/GLIBC_//')
if [ "$format" = whl ]; then
    rmdir "$root/bin"
    "${PYTHON3:-python3}" "$here/wheel.py" "$work/wheel" "$name" "$glibc" "$here/../LICENSE"
    exit
fi
sed -e "s/@NAME@/$name/g" -e "s/@GLIBC@/$glibc/g" -e "s/@CUDA@/$cuda/g" "$here/README.bundle" >"$root/README.bundle"
[ ! -s "$work/absent" ] || {
    printf '\nLibraries that this machine brings:\n\n'
    sed 's/^/    /' "$work/absent"
} >>"$root/README.bundle"
{
    printf '\nLibraries inside (share/licenses has their licenses):\n\n'
    tail -n +2 "$root/share/licenses/LIBRARIES" | cut -f 1-3 | tr '\t' ' ' | sed 's/^/    /'
} >>"$root/README.bundle"

tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@${SOURCE_DATE_EPOCH:-$(date +%s)}" -c "$root" |
    case $format in xz) XZ_OPT=-6 xz -T0 -c ;; gz) gzip -9nc ;; esac \
    >"$root.tar.$format.part"
size=$(($(wc -c <"$root.tar.$format.part") / 1048576))
if [ "$size" -ge "${BUNDLE_LIMIT:-$((size + 1))}" ]; then
    echo "$root.tar.$format would have $size MiB, and BUNDLE_LIMIT is $BUNDLE_LIMIT. Leave something out (BUNDLE_PHOTOGRAPHS=no," \
        "BUNDLE_CUDA=no, --with-cuda-arch with one card), or set another limit, or none (BUNDLE_LIMIT=). The largest files inside:" >&2
    find "$root" -type f -exec du -m {} + | sort -rn | head -n 5 >&2
    rm -rf "$root" "$root.tar.$format.part"
    exit 1
fi
mv "$root.tar.$format.part" "$root.tar.$format"
echo "$root.tar.$format: $size MiB, $(($(du -sk "$root" | cut -f 1) / 1024)) MiB" \
    "unpacked; for glibc $glibc and later"
if [ -n "$(ls "$root"/lib/libnvjpeg.so.* 2>/dev/null)" ]; then
    echo "nvJPEG is inside, so --decode gpu works where there is a card"
elif grep -q '^libcudart' "$work/taken" "$work/absent"; then
    echo "nvJPEG is not inside, so --decode gpu works nowhere: configure --with-nvjpeg=DIR (docs/install.md says where from)"
fi
photographs=$(find "$root/share/dl2/device/photographs" -name '*.jpg' 2>/dev/null | wc -l)
[ "$photographs" = 0 ] || echo "$photographs photographs are inside, for share/dl2/device/device.py"
rm -rf "$root"
