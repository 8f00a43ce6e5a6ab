#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: demo-torch.sh --check | BUILD
#
# `make demo-torch`: a study of the demo's images in which a script of PyTorch trains a network of its
# own, as yours would (docs/your-network.md), in study-out/demo-torch. BUILD has dl2's programs. --check only
# says what to install, if PyTorch is missing; else nothing is made without it, either.
set -eu
source=$(cd "$(dirname "$0")/.." && pwd)
python=
for candidate in ${PYTHON3:-/usr/bin/python3 python3}; do # the first is what dl2 is built for
    if "$candidate" -c 'import torch, torchvision' >/dev/null 2>&1; then
        python=$candidate
        break
    fi
done
[ -n "$python" ] || {
    echo "demo-torch: no PyTorch with torchvision for ${PYTHON3:-python3}, so nothing is made. On Debian install them by" >&2
    echo "    apt-get install python3-torch python3-torchvision" >&2
    exit 1
}
[ "${1:?usage: demo-torch.sh --check | BUILD}" != --check ] || exit 0
demo=study-out/demo/data out=study-out/demo-torch
if [ -e $demo/.tiles-96 ] && [ ! -e $out/data ]; then # the demo's tiles as links: they need not be cut again
    rm -rf $out/data.new
    mkdir -p $out
    if cp -al $demo $out/data.new 2>/dev/null; then mv $out/data.new $out/data; else rm -rf $out/data.new; fi
fi
exec "$1/dl2-study" run --dataset demo --out $out \
    --codecs jpeg --qualities '10 75' --tolerance 2 --resize-shorter full --decide no --archs small_network --seeds '1 2 3 4' \
    --epochs 7 --rounds 2 --device cpu \
    --train-files "'$source/examples/torch_parts.py' '$source/examples/small_network.py'" \
    --train-with "env 'PYTHONPATH=$1/python' $python '$source/examples/train_torch.py' %d \
--seed %s --out %o --network small_network:build --rate 0.2"
