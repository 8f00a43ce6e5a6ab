#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The shell's completion: each program's own options, the words of choices, and what --list names.
. "$srcdir/tests/lib.sh"
need bash bash

# complete COMMAND WORD...: what bash offers for the last word, sorted, in one line
complete() {
    bash -c 'source "$1/$2.bash" || exit 99
        shift
        function=$(complete -p "$1" | sed "s/.* -F \([^ ]*\) .*/\1/")
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        "$function" && printf "%s\n" "${COMPREPLY[@]}"' completion "$builddir" "$@" | LC_ALL=C sort | tr '\n' ' '
}
offers() { # WANTED COMMAND WORD...
    wanted=$1
    shift
    [ "$(complete "$@")" = "$wanted " ] || fail "$*: $(complete "$@"), not $wanted"
}
offers "analyze bench check" dl2-load ""
offers "completion" dl2-load bench --batching c
offers "uring" dl2-load bench --io = u
offers "auto direct threads uring" dl2-load bench --io =
offers "--cache --cache-decoded --cache-dir --cache-dir-size" dl2-load bench data --cach
offers "all" dl2-load check -s al
offers "vit_b_16 vit_s_16 vit_tiny" dl2-train --arch vit
offers "convcolumn convnet" dl2-train -d data -a conv
offers "ref" dl2-train --device r
offers "jpeg,ppm" dl2-transcode --codec jpeg,pp
offers "folder gulp tar" dl2-transcode --container ""
offers "copy" dl2-transcode cop
offers "--fps" dl2-transcode frames --fp
offers "--json --json-dir" dl2-quality photos --js
offers "--output" dl2-report --out
# File names are the shell's.
offers "" dl2-train --data data/
offers "" dl2-load bench photo

for program in 'load bench' 'load check' 'train run' 'train several' transcode 'transcode copy' quality 'quality crops' report 'study run'; do
    command=$program
    case $program in *' '*) ;; transcode) command='transcode recompress' ;; quality) command='quality score' ;; *) command='report page' ;; esac
    # shellcheck disable=SC2086
    expect 0 dl2-$command --help
    sed -n 's/^\(  -., \|      \)\(--[a-z0-9-]*\).*/\2/p' "$work/out" | LC_ALL=C sort >"$work/wanted"
    # Not by intervals of awk: Debian 12's mawk lacks them, and that of Debian 13 gets them wrong.
    if sed '/^  -?, --help/q' "$work/out" | grep -E '^.{80}|^ {7,28}[^ ]|^ {30}' >&2 || grep -E '^.{80}' "$work/out" >&2; then
        fail "dl2-$command --help has lines that are too long or begin where none should"
    fi
    # shellcheck disable=SC2086
    complete dl2-$program -- | tr ' ' '\n' | sed '/^$/d' >"$work/offered"
    diff "$work/wanted" "$work/offered" >&2 || fail "dl2-$program completes (>) other options than dl2-$command --help has (<)"
done
