#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Replays spaces of searches, configurations and settings of models, good and damaged.
. "$srcdir/tests/lib.sh"
mkdir "$work/corpus"
cd "$work" || exit 99
printf 'g{"lr": {"min": 0.001, "max": 1, "scale": "log", "points": 5}, "optimizer": ["sgd", "adamw"]}' >corpus/grid
printf 'r{"lr": {"min": -1e308, "max": 1e308}, "beta2": [0.9, 0.99, null, [1]], "nesterov": [true, false]}' >corpus/random
printf 'h{"lr": {"min": 1e-9, "max": 0.3, "scale": "log"}, "seed": [1, 2, 3]}' >corpus/halving
printf 'g{"lr": []}' >corpus/empty-list
printf 'c{"name": "a", "lr": 0.1}\n\n{"name": "b", "arch": "convnet", "image-size": 8, "optimizer": "rmsprop", "beta2": 0.9}\r\n' >corpus/configs
printf 'c{"name": "visits.jsonl"}\n{"name": "a", "mixup": 0.2, "augment": "rotate", "mean": "1,2,3"}' >corpus/names
printf 'm{"arch": "convnet", "image-size": 8, "classes": 3, "images": 6, "batch": 2, "epochs": 2}' >corpus/model
printf 'm{"arch": "convnet", "image-size": 9, "channels": 1, "classes": 2, "images": 1, "batch": 1, "epochs": 0.5, "optimizer": "adamw", "ema": 0.5, "mixup": 0.3, "cutmix": 1, "augment": "rotate,invert", "seed": 3}' >corpus/other
printf 'm{"arch": "convnet", "image-size": 8, "classes": 2, "images": 4, "batch": 4, "lr-policy": "step", "clip-grad": 1e-3, "freeze": true, "label-smoothing": 0.1, "warmup": 1}' >corpus/frozen
printf 'm{"classes": 1e400, "images": -1}' >corpus/numbers
DL2_FUZZ_SECONDS=3; export DL2_FUZZ_SECONDS
expect 0 "$builddir/tests/train/fuzz_settings" -runs=0 corpus
