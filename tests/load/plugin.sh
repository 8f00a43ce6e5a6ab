#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Operations of a user's own, from a shared object: in dl2-load and dl2-train, with other results for other settings
# alone, on record with the file's check sum, and refused with the file's name where something is wrong with it.
. "$srcdir/tests/lib.sh"
for n in 1 2 3 4 5 6 7 8; do
    picture "$work/photos/train/a/$n.ppm" $((30 + n)) $((44 - n)) $n
    picture "$work/photos/train/b/$n.ppm" $((40 - n)) $((30 + n)) $((9 + n))
done
top=$(cd "$srcdir" && pwd)
cd "$work" || exit 99
plugin() { # NAME SOURCE FLAGS...
    name=$1 source=$2
    shift 2
    expect 0 $CC -std=c11 -O1 -shared -fPIC "$@" "-I$top" "$top/$source" -o "$name"
}
plugin libgrain.so examples/grain.c
plugin libroll.so tests/pixels/roll_plugin.c
digest() { # AUGMENT OPTIONS...: into $sum
    augment=$1
    shift
    expect 0 dl2-load bench photos --quiet -e 1 -i 16 -b 16 --digest --augment "$augment" "$@"
    sum=$(sed -n 's/^digest //p' out)
    [ -n "$sum" ] || fail "no digest with $augment"
}

# ---- The same pixels for any number of workers; others for another seed, setting or operation
digest vflip,grain@./libgrain.so:strength=20 -j 1 --json load.json
grain=$sum
digest vflip,grain@./libgrain.so:p=1:strength=20:coarse=1 -j 4
is "$sum" "$grain" "four workers"
LD_LIBRARY_PATH=$work
export LD_LIBRARY_PATH
digest vflip,grain@libgrain.so:strength=20 -j 2
is "$sum" "$grain" "found where libraries lie"
unset LD_LIBRARY_PATH
for other in vflip vflip,grain@./libgrain.so:strength=21 vflip,grain@./libgrain.so:strength=20:coarse=3 \
    vflip,grain@./libgrain.so:strength=20:p=0.5 vflip,roll@./libroll.so; do
    digest "$other" -j 2
    [ "$sum" != "$grain" ] || fail "the same pixels with $other"
done
digest vflip,grain@./libgrain.so:strength=20 --seed 1
[ "$sum" != "$grain" ] || fail "the same pixels with another seed"
# What it draws changes nothing for the operations after it.
digest grain@./libgrain.so:strength=0,erase:p=0.7 -j 2
erased=$sum
digest grain@./libgrain.so:strength=0:coarse=16,erase:p=0.7
is "$sum" "$erased" "the operations after it"

# ---- The record has the file's check sum, by which another file is refused
text=$(sed -n 's/.*"augment": "\(.*\)".*/\1/p' load.json)
printf '%s\n' "$text" | grep -qxE 'vflip:p=0.5,grain@./libgrain.so#[0-9a-f]{16}:p=1:strength=20:coarse=1' || fail "on record: $text"
digest "$text"
is "$sum" "$grain" "the record's text"
train() { expect "$1" dl2-train -a convnet --image-size 16 -b 4 -e 2 --run-epochs 1 --threads 1 -j 2 -d photos --skip-validation \
    --augment grain@./libgrain.so --out run "$2"; }
train 0 --restart
grep -q '"augment": "grain@./libgrain.so#' run/experiment_report.json || fail "dl2-train has no record of it"
plugin libgrain.so examples/grain.c -DOTHER -g
expect 2 dl2-load bench photos --augment "$text"
said 'plug-in ./libgrain.so: its check sum is'
train 1 --resume
said 'is of another run: augment'

# ---- No program runs code because a report names it
expect 0 dl2-train --quiet -a convnet --image-size 16 -b 4 -e 1 --threads 1 --loader synthetic --images 8 --classes 2 \
    --skip-validation --augment grain@./libgrain.so --out noise
expect 1 dl2-load analyze photos --device-report noise/experiment_report.json
said "a report's plug-in is not run"

# ---- What fails names the file
expect 1 dl2-load bench photos --quiet -e 1 -i 16 -b 4 --augment breaks@./libroll.so
said 'photos/train/a/1.ppm: augment: breaks@./libroll.so: xxx'
expect 1 dl2-load bench photos --quiet -e 1 -i 16 -b 4 --on-bad stop --augment grain@./libgrain.so:coarse=17
said 'augment: grain@./libgrain.so: a grain of 17 pixels in an image of 16x16'
refused() { # MESSAGE AUGMENT
    expect 2 dl2-load bench photos --augment "$2"
    said "--augment: $1"
}
refused "plug-in ./none.so: cannot open shared object file: No such file" x@./none.so
refused "plug-in libgrain.so: cannot open shared object file: No such file or directory; a name without '/'" grain@libgrain.so
echo text >text.so
refused 'plug-in ./text.so: file too short' x@./text.so
plugin plain.so common/random.c
refused 'plug-in ./plain.so: exports no dl2_operation_plugin' x@./plain.so
plugin old.so tests/pixels/roll_plugin.c -DABI=99
refused 'plug-in ./old.so: is of plug-in ABI 99, and this dl2 takes' roll@./old.so
refused "plug-in ./libroll.so: has no operation 'rol', only roll, breaks, empty, wrong0," rol@./libroll.so
refused "plug-in ./libroll.so: the operation empty has no function" empty@./libroll.so
refused "'roll@' lacks the plug-in's file" roll@
refused "roll@./libroll.so: p is a number from 0 to 1, not '2'" roll@./libroll.so:p=2
refused "roll@./libroll.so: least is a number from 0 to 1, not '-1'" roll@./libroll.so:least=-1
refused "roll@./libroll.so has no setting 'bits', only p, least" roll@./libroll.so:bits=1
refused "roll@./libroll.so: least is given twice" roll@./libroll.so:least=1:least=1
refused "there is no operation 'roll': they are randaugment" roll
for n in 0 1 2 3 4 5 6 7 8 9; do
    refused "plug-in ./libroll.so: wrong$n" "wrong$n@./libroll.so"
done
