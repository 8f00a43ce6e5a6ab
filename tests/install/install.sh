#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What `make install` gives to others: each header compiles alone, as C and as C++; the library exports what they
# declare and nothing else; the example builds with pkg-config and loads the batches that dl2-load does.
. "$srcdir/tests/lib.sh"
plainly
need pkg-config pkg-config
root=$work/root
(cd "$builddir" && unset MAKEFLAGS MFLAGS && make -s install DESTDIR="$root") >"$work/log" 2>&1 ||
    { cat "$work/log" >&2; fail "make install"; }
pc=$(find "$root" -name dl2.pc)
libdir=${pc%/pkgconfig/dl2.pc}
PKG_CONFIG_PATH=${pc%/dl2.pc}:${PKG_CONFIG_PATH:-}
PKG_CONFIG_SYSROOT_DIR=$root # also goes before the -I of what the system has: dl2 needs nothing of that
LD_LIBRARY_PATH=$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR
cflags=$(pkg-config --cflags dl2) && libs=$(pkg-config --libs dl2) || fail "pkg-config knows no dl2"
headers=${cflags#-I} && headers=${headers%% *}

# Among Python's modules lies the package alone.
stray=$(find "$root" -path '*-packages/*' ! -type d ! -path '*-packages/dl2/*.py' \
    ! -path '*-packages/dl2/*.pyi' ! -name py.typed ! -name _core.so ! -name _decoders.so)
[ -z "$stray" ] || fail "among Python's modules: $stray"

# The documents, with what they link to.
docs=$(find "$root" -path '*/doc/dl2' -type d)
for file in LICENSE NEWS.md README.md docs/install.md docs/report.png examples/grain.c examples/load_batches.c; do
    [ -s "$docs/$file" ] || fail "$file is not installed"
done

# Each alone.
strict='-Wall -Wextra -Wpedantic -Werror'
if emulated; then
    cxx=$(echo "$CC" | sed 's/-gcc/-g++/')
else
    cxx=$(command -v c++ || command -v g++ || command -v clang++) || echo "no C++ compiler: the headers are tried as C only"
fi
tried=0
for header in $(cd "$headers" && find . -name '*.h'); do
    printf '#include <%s>\nint main(void) { return 0; }\n' "${header#./}" | tee "$work/alone.c" >"$work/alone.cc"
    expect 0 $CC -std=c11 $strict $cflags -fsyntax-only "$work/alone.c"
    [ -z "$cxx" ] || expect 0 $cxx -std=c++11 $strict $cflags -fsyntax-only "$work/alone.cc"
    tried=$((tried + 1))
done
[ $tried -ge 9 ] || fail "only $tried headers in $headers"

# Exported is what they declare and do not define.
(cd "$headers" && for header in $(find . -name '*.h'); do echo "#include <${header#./}>"; done) >"$work/all.c"
$CC $cflags -E -P "$work/all.c" >"$work/all.i" # -P: no line marks, which would cut lines
names() { grep -o '\<dl2_[a-z0-9_]* *(' | tr -d ' (' | sort -u; }
grep '^static inline' "$work/all.i" | names >"$work/defined"
names <"$work/all.i" | grep -vxF -f "$work/defined" >"$work/declared"
nm -D --defined-only "$libdir/libdl2.so" | sed -n 's/.* [TDBR] //p' | sort >"$work/exported"
diff "$work/declared" "$work/exported" >&2 || fail "declared (<) is not what is exported (>)"
if [ -n "$cxx" ]; then # by the same names
    { cat "$work/all.c"; echo 'void *all[] = {'; sed 's/.*/(void *)\&&,/' "$work/declared"; echo '};'; } >"$work/all.cc"
    expect 0 $cxx -std=c++11 $cflags -c "$work/all.cc" -o "$work/all.o"
    nm -u "$work/all.o" | sed -n 's/.* U //p' | grep dl2_ | sort | diff "$work/declared" - >&2 ||
        fail "C++ has other names (>) for what is declared (<)"
fi

# The example, on twenty pictures.
for class in aster rose; do
    for n in 1 2 3 4 5 6 7 8 9; do
        picture "$work/flowers/train/$class/$n.ppm" $((40 + n)) $((90 - n)) $n
    done
done
echo 'not an image' >"$work/flowers/train/rose/README.txt"
expect 0 $CC -std=c11 $strict "$srcdir/examples/load_batches.c" -o "$work/load_batches" $cflags $libs -lz
expect 0 dl2-load bench --digest --quiet -i 224 -e 2 "$work/flowers"
wanted=$(grep '^digest' "$work/out")
expect 0 env LD_LIBRARY_PATH="$LD_LIBRARY_PATH" "$work/load_batches" "$work/flowers"
[ "$(cat "$work/out")" = "$wanted" ] || fail "$(cat "$work/out") where dl2-load has $wanted"
expect 1 env LD_LIBRARY_PATH="$LD_LIBRARY_PATH" "$work/load_batches" "$work/nothing"
grep -q "^load_batches: .*$work/nothing" "$work/err" || fail "the error: $(cat "$work/err")"

# A plug-in needs the header alone.
expect 0 $CC -std=c11 $strict -shared -fPIC "$srcdir/examples/grain.c" -o "$work/libgrain.so" $cflags
expect 0 dl2-load bench --digest --quiet -i 224 -e 2 --augment "grain@$work/libgrain.so" "$work/flowers"
grep '^digest' "$work/out" | grep -vxqF "$wanted" || fail "the plug-in: $(cat "$work/out")"

# argp leaves a line of spaces after words that just fill their last line.
programs=$(find "$root" -path '*/bin/dl2-*')
[ -n "$programs" ] || fail "no programs were installed"
for program in $programs; do
    expect 0 "${program##*/}" --help=all
    [ -s "$(find "$root" -path "*/bash-completion/completions/${program##*/}.bash")" ] ||
        fail "${program##*/} has no completion"
    if grep -n -B 2 '^ \{1,\}$' "$work/out" >&2; then fail "${program##*/} --help: reword what is above the empty line"; fi
done

# The Python module, where it was built.
module=$(find "$root" -name _core.so)
case ${module:-none}$CC in
none*) echo "no Python module was built" ;;
*-fsanitize*) ;; # tests/python/python.sh knows how to load it
*)
    expect 0 env LD_LIBRARY_PATH="$LD_LIBRARY_PATH" PYTHONPATH="${module%/dl2/*}" "$PYTHON3" -c '
import dl2, sys
for images, labels in dl2.Loader(sys.argv[1]): print(images, labels)' "$work/flowers"
    [ "$(cat "$work/out")" = "<dl2.Array uint8 (18, 224, 224, 3)> <dl2.Array int64 (18,)>" ] ||
        fail "from Python: $(cat "$work/out")" ;;
esac

# C++, with all the headers and the library.
if [ -n "$cxx" ]; then
    cat "$work/all.c" - >"$work/user.cc" <<'END'
#include <cstdio>
int main(int, char **argv)
{
    dl2_error error = DL2_ERROR_INIT;
    dl2_dataset_options options = DL2_DATASET_DEFAULTS;
    dl2_loader_config config = DL2_LOADER_DEFAULTS;
    dl2_dataset *dataset;
    dl2_loader *loader;
    if (dl2_dataset_open(argv[1], &options, &dataset, &error) < 0 || dl2_loader_create(dataset, &config, &loader, &error) < 0)
        return std::puts(error.message), 1;
    std::printf("%u\n", (unsigned)dl2_loader_steps(loader));
    dl2_loader_destroy(loader);
    dl2_dataset_close(dataset);
}
END
    sanitize=$(printf '%s\n' $CC | grep '^-fsanitize' | tr '\n' ' ')
    expect 0 $cxx -std=c++20 -Wall -Werror $sanitize "$work/user.cc" -o "$work/user" $cflags $libs
    expect 0 env LD_LIBRARY_PATH="$LD_LIBRARY_PATH" "$work/user" "$work/flowers"
    [ "$(cat "$work/out")" = 1 ] || fail "from C++: $(cat "$work/out")"
fi

# Nothing is left behind.
(cd "$builddir" && unset MAKEFLAGS MFLAGS && make -s uninstall DESTDIR="$root") >"$work/log" 2>&1 ||
    { cat "$work/log" >&2; fail "make uninstall"; }
left=$(find "$root" ! -type d)
[ -z "$left" ] || fail "make uninstall leaves $left"
