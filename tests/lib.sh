# SPDX-License-Identifier: BSD-2-Clause
# Sourced by the command tests: a scratch folder, and a few words to say what is expected.
set -u
fail() { echo "FAIL: $*" >&2; exit 1; }
skip() { echo "SKIP: $*"; exit 77; }
# need COMMAND PACKAGE: skips where a tool that the test makes its input with is missing.
need() { command -v "$1" >/dev/null 2>&1 || skip "$1 is not installed (Debian: $2)"; }
# need_python MODULE PACKAGE
need_python() {
    [ -n "${PYTHON3:-}" ] && "$PYTHON3" -c "import $1" >/dev/null 2>&1 ||
        skip "Python has no module $1 (Debian: $2)"
}
# sanitized: built with a sanitizer.
sanitized() { case ${CC:-} in *-fsanitize*) ;; *) return 1 ;; esac; }
# emulated: under QEMU (tests/arm.sh), whose posix_spawn says of no command that it cannot be started: it exits with 127.
emulated() { [ -n "${QEMU_LD_PREFIX:-}" ]; }
# slow: under a sanitizer or QEMU, where programs take ten times as long. What differs only in numbers is then tried
# once; `make check` without either tries all.
slow() { sanitized || emulated; }
# plainly: skips under a sanitizer a test of makefiles, files or documents, whose programs have tests of
# their own.
plainly() { ! sanitized || skip "nothing that a sanitizer could watch but programs with tests of their own"; }
# expect STATUS COMMAND...: runs it with output in $work/out and $work/err.
expect() {
    want=$1; shift
    "$@" >"$work/out" 2>"$work/err"; got=$?
    [ "$got" -eq "$want" ] || { cat "$work/out" "$work/err" >&2; fail "exit status $got, not $want: $*"; }
}
# said TEXT: stderr of the last expect says it. is GOT WANTED WHAT: two texts are equal.
said() { grep -qF -- "$1" "$work/err" || { cat "$work/err" >&2; fail "stderr says nothing of '$1'"; }; }
is() { [ "$1" = "$2" ] || fail "$3: '$1', not '$2'"; }
# picture FILE WIDTH HEIGHT SEED: a PPM of noise, in color; makes its folder too.
picture() {
    mkdir -p "${1%/*}"
    { printf 'P6\n%d %d\n255\n' "$2" "$3"
      awk -v n=$(($2 * $3 * 3)) -v seed="$4" 'BEGIN {
          srand(seed); for (i = 0; i < n; i++) printf "%c", 33 + int(rand() * 90) }'
    } >"$1"
}
work=$(mktemp -d "${TMPDIR:-/tmp}/dl2-test.XXXXXX") || exit 99
trap 'chmod -R u+rwX "$work" 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 99' INT TERM

# page_text PAGE [SCHEMA]: what a page of dl2-report shows, a line for each block, item and row
page_text() { "$PYTHON3" "$srcdir/tests/report/page_text.py" "$@"; }

# explained OPTION COMMAND...: --help=all of the program speaks of every word that the option knows
explained() {
    local option=$1 word words
    shift
    expect 2 "$@" "--$option=none"
    words=$(sed -n "s/.*'none' is not one of //p" "$work/err" | tr -d ,)
    [ -n "$words" ] || fail "--$option=none: $(cat "$work/err")"
    "$1" --help=all | sed -n "/--$option=/,/\]$/p" >"$work/help"
    for word in $words; do
        grep -q -w -e "$word" "$work/help" || fail "--help=all: --$option says nothing of $word"
    done
}
