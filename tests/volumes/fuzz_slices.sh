#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Replays headers of volumes of slices, good and damaged, through the parser.
. "$srcdir/tests/lib.sh"
mkdir "$work/corpus"
good='{"schema":"dl2-slices/1","channels":1,"size":[2,3,4],"spacing":[1.0,0.5,0.5],"source_type":"int16","bits":12,"minimum":-1024,"slope":1.0,"intercept":0.0,"slices":[[512,100],[1536,90]]}'
printf '%s' "$good" >"$work/corpus/good"
# bad NAME FROM TO: the good header with a part replaced.
bad() {
    printf '%s' "$good" | sed "s#$2#$3#" >"$work/corpus/$1"
    ! cmp -s "$work/corpus/good" "$work/corpus/$1" || fail "$1 changes nothing"
}
bad schema 'slices/1' 'slices/2'
bad channels '"channels":1' '"channels":65'
bad two '"channels":1' '"channels":2'
bad size '\[2,3,4\]' '[2,3]'
bad zero '\[2,3,4\]' '[2,0,4]'
bad negative '\[2,3,4\]' '[2,-3,4]'
bad real '\[2,3,4\]' '[2,3.5,4]'
bad huge '\[2,3,4\]' '[2147483647,2147483647,2147483647]'
bad overflow '\[2,3,4\]' '[9223372036854775807,1,1]'
bad flat '\[2,3,4\]' '[2,65536,65536]'
bad deep '\[2,3,4\]' '[1048577,1,1]'
bad spacing '\[1.0,0.5,0.5\]' '[1.0,-0.5,0.5]'
bad gap '\[1.0,0.5,0.5\]' '[1.0]'
bad bits '"bits":12' '"bits":17'
bad few '"bits":12' '"bits":7'
bad minimum '"minimum":-1024' '"minimum":-9223372036854775808'
bad fraction '"minimum":-1024' '"minimum":0.5'
bad slope '"slope":1.0' '"slope":"1"'
bad infinite '"slope":1.0' '"slope":1e999'
bad rows ',\[1536,90\]' ''
bad row '\[1536,90\]' '[1536]'
bad text '\[1536,90\]' '"1536"'
bad empty '\[1536,90\]' '[1536,0]'
bad behind '\[1536,90\]' '[98976,1]'
bad beyond '\[1536,90\]' '[9223372036854775807,90]'
bad before '\[1536,90\]' '[-1,90]'
bad long '\[1536,90\]' '[1536,9223372036854775807]'
bad twice '"bits":12' '"bits":12,"bits":12'
bad open '}' ''
printf '[]' >"$work/corpus/list"
: >"$work/corpus/none"
expect 0 "$builddir/tests/volumes/fuzz_slices" -runs=0 "$work/corpus"
