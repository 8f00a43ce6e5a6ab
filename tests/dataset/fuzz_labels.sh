#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Replays lists of videos' labels, good and damaged.
. "$srcdir/tests/lib.sh"
mkdir "$work/corpus"
cd "$work" || exit 99
printf '1;Swiping Left\n2;Swiping Right\n9;Swiping Left\n' >corpus/jester
printf 'label,youtube_id,time_start,time_end,split\nbowling,abc,1,11,train\n"a, b",1,0,10,validate\n' >corpus/kinetics
printf 'label,youtube_id,time_start,time_end,split\nbowling,abc,x,1e9,test\nbowling,2,-1,nan,train\n' >corpus/times
printf '1;a\n1;a\n' >corpus/twice
printf '3;a\n' >corpus/frames
printf '3;a\n3;b\n1;c\n' >corpus/mixed
printf '1;a/b\n2;..\n' >corpus/class
printf ';a\n' >corpus/nameless
printf '1\n2\n' >corpus/unlabeled
printf 'a b.avi\tx\r\nsome/1.webm\ty \r\n' >corpus/tabs
printf '1;a\n\0;b\n' >corpus/zero
printf '"1;a\n' >corpus/quote
: >corpus/empty
head -c 300 "$builddir/dl2-load" >corpus/binary
expect 0 "$builddir/tests/dataset/fuzz_labels" -runs=0 corpus
