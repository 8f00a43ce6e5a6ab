#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# make demo-torch: without PyTorch it says what to install and makes nothing; with it, a study of the demo's images by the
# example script, with links to the demo's tiles. The script and its network are tried in tests/python/examples.sh.
. "$srcdir/tests/lib.sh"
plainly
unset MAKEFLAGS MFLAGS MAKELEVEL
script=$srcdir/study/demo-torch.sh
cd "$work" || exit 99
mkdir bin
printf '#!/bin/sh\nexit %s\n' 1 >bin/without
printf '#!/bin/sh\nexit %s\n' 0 >bin/with
printf '#!/bin/sh\nprintf "%%s\\n" "$@" >"%s/asked"\n' "$work" >bin/dl2-study
chmod +x bin/*
mkdir -p study-out/demo/data/train/a
for file in train/a/1.png .tiles-96; do echo x >study-out/demo/data/$file; done
for mode in --check "$work/bin"; do
    expect 1 env PYTHON3="$work/bin/without" sh "$script" "$mode"
    said 'apt-get install python3-torch python3-torchvision'
    [ ! -e asked ] && [ ! -e study-out/demo-torch ] || fail "something is made without PyTorch"
done
expect 2 make -C "$builddir" demo-torch STUDY_FOLDER="$work" PYTHON3="$work/bin/without"
said 'apt-get install python3-torch python3-torchvision'
[ ! -e study-out/demo-torch ] || fail "make makes something without PyTorch"

expect 0 env PYTHON3="$work/bin/with" sh "$script" --check
[ ! -e asked ] || fail "--check runs something"
expect 0 env PYTHON3="$work/bin/with" sh "$script" "$work/bin"
[ study-out/demo-torch/data/train/a/1.png -ef study-out/demo/data/train/a/1.png ] || fail "the tiles are no links"
grep -qx run asked || fail "no study: $(cat asked)"
for file in $(grep -o "'[^']*[.]py'" asked | tr -d "'"); do [ -f "$file" ] || fail "$file is not there"; done
grep -q 'small_network:build' asked || fail "another network: $(cat asked)"

# dl2-study takes these settings: trainings of three variants from four seeds, and no other ones.
rm -r study-out
printf '#!/bin/sh\nshift\nexec "%s/dl2-study" plan "$@"\n' "$builddir" >bin/dl2-study
expect 0 env PYTHON3="$work/bin/with" sh "$script" "$work/bin"
is "$(grep -c '^train/.*/seed-[1-4]' "$work/out")" 12 "trainings of $(cat "$work/out")"
