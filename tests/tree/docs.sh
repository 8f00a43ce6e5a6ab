#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The documents: lines of at most 100 columns, links that lead somewhere, a short README from which
# every document can be reached in two steps.
. "$srcdir/tests/lib.sh"
plainly
cd "$srcdir" || exit 99

[ "$(wc -c <README.md)" -le 6000 ] || fail "README.md has $(wc -c <README.md) bytes, more than 6000"
# Help says what the page on GPUs says, for each option that makes a card work.
if grep -q 'Untested on GPU hardware' docs/gpu.md; then
    for option in 'dl2-quality device' 'dl2-load decode' 'dl2-train decode' 'dl2-train device' 'dl2-train gpus'; do
        expect 0 "${option% *}" --help=all
        sed -n "/ --${option#* }=/,/\]\$/p" "$work/out" | tr -s ' \n' ' ' | grep -q 'untested on hardware' ||
            fail "${option% *} --help=all: --${option#* } isn't said to be untested on hardware"
    done
fi
pages=$(find ./*.md docs -name '*.md' | sed 's,^\./,,')
# Columns are characters: bytes but for those that continue one in UTF-8.
# shellcheck disable=SC2086
LC_ALL=C awk '{ line = $0; gsub(/[\200-\277]/, "", line) }
    length(line) > 100 { print FILENAME ":" FNR ": " length(line) " columns"; wide = 1 }
    END { exit wide }' $pages || fail "lines above 100 columns"

# anchors FILE: what its headings are called in links (lower case, punctuation left out, dashes).
anchors() {
    sed -n '/^```/,/^```/!s/^##* //p' "$1" | tr '[:upper:]' '[:lower:]' |
        sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}
for file in $pages; do
    # [text](link), or [text][name] with a line [name]: link.
    sed '/^    /d; /^```/,/^```/d; s/`[^`]*`//g; s/^\[[a-z]*\]: \(.*\)/](\1)/' "$file" |
        grep -o '\](\(<[^>]*>\|[^)]*\))' | sed 's/^](//; s/)$//' >"$work/links"
    while read -r link; do
        case $link in *://*) continue ;; esac
        path=${link%%#*} anchor=
        case $link in *'#'*) anchor=${link#*#} ;; esac
        target=$file
        [ -z "$path" ] || target=$(dirname "$file")/$path
        [ -e "$target" ] || fail "$file links to $link: there is no $target"
        [ -z "$anchor" ] || anchors "$target" | grep -qx -e "$anchor" ||
            fail "$file links to $link: $target has no such heading"
        echo "$file $(realpath --relative-to=. "$target")" >>"$work/leads"
    done <"$work/links"
done
# Reached from README.md, or from a page that it links to.
echo README.md >"$work/reached"
for step in 1 2; do
    awk 'NR == FNR { reached[$1]; next } $1 in reached { print $2 }' "$work/reached" "$work/leads" >"$work/new"
    cat "$work/new" >>"$work/reached"
done
for file in $pages; do
    grep -qx "$file" "$work/reached" || fail "no link leads from README.md to $file in $step steps"
done
