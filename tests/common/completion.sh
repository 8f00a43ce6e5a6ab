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
offers "--cache --cache-decoded --cache-dir --cache-dir-size --cache-volumes" dl2-load bench data --cach
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
    expect 0 dl2-$command --help=all
    sed -n 's/^\(  -., \|      \)\(--[a-z0-9-]*\).*/\2/p' "$work/out" | LC_ALL=C sort >"$work/wanted"
    # Not by intervals of awk: Debian 12's mawk lacks them, and that of Debian 13 gets them wrong.
    if sed '/^  -?, --help/q' "$work/out" | grep -E '^.{80}|^ {7,28}[^ ]|^ {30}' >&2 || grep -E '^.{80}' "$work/out" >&2; then
        fail "dl2-$command --help=all has lines that are too long or begin where none should"
    fi
    # shellcheck disable=SC2086
    complete dl2-$program -- | tr ' ' '\n' | sed '/^$/d' >"$work/offered"
    diff "$work/wanted" "$work/offered" >&2 || fail "dl2-$program completes (>) other options than dl2-$command --help=all has (<)"
done

# No page of help is long. What a page of groups names, together, are the command's options.
listed() { sed -n 's/^\(  -., \|      \)\(--[a-z0-9-]*\).*/\2/p' "$work/out" | grep -vxE -e '--(jobs|quiet|help|usage|version)' | LC_ALL=C sort; }
for program in load train transcode quality report study; do
    expect 0 dl2-$program --help
    for command in $(sed -n '/^Commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p' "$work/out"); do
        expect 0 dl2-$program "$command" --help
        [ "$(listed | wc -l)" -le 60 ] || fail "dl2-$program $command --help lists $(listed | wc -l) options"
        groups=$(sed -n 's/^  --help=\([a-z]*\) .*/\1/p' "$work/out")
        [ -n "$groups" ] || continue
        : >"$work/of-groups"
        for group in $groups; do
            expect 0 dl2-$program "$command" --help="$group"
            [ "$(listed | wc -l)" -le 60 ] || fail "dl2-$program $command --help=$group lists $(listed | wc -l) options"
            listed >>"$work/of-groups"
        done
        expect 0 dl2-$program "$command" --help=all
        listed >"$work/wanted"
        LC_ALL=C sort "$work/of-groups" | diff "$work/wanted" - >&2 || fail "dl2-$program $command: groups have (>) other options than --help=all (<)"
    done
done
expect 2 dl2-train --help=volume
said "--help: 'volume' is none of data, volumes, remote, loading, network, processes, optimization, run, scripts, all"
expect 2 dl2-load --help=bench
said 'groups of options are a command'
