# SPDX-License-Identifier: BSD-2-Clause
"""How much of a loop's CPU time dl2.torch and PyTorch spend on the thread that takes the batches.

    PYTHONPATH=build/python /usr/bin/python3 tests/bench/python_share.py FOLDER [SIZE [BATCH]]

FOLDER is loaded at SIZE (224) pixels in batches of BATCH (256) by one worker thread, three epochs after the first, once
for each type. "converted" is float32 that the loop converts to float16 itself.
"""
import sys
import time

import torch

from dl2.torch import Loader

torch.set_num_threads(1)
folder, size, batch_size = sys.argv[1], *map(int, sys.argv[2:4] + [224, 256][len(sys.argv) - 2 :])
for name, dtype in (("uint8",) * 2, ("float32",) * 2, ("float16",) * 2, ("bfloat16",) * 2, ("converted", "float32")):
    loader = Loader(folder, batch_size, size, workers=1, dtype=dtype, seed=1)
    images = sum(len(targets) for _, targets in loader)
    thread, process = time.thread_time(), time.process_time()
    for epoch in range(3):
        for batch, targets in loader:
            if name == "converted":
                batch = batch.half()
    thread, process = time.thread_time() - thread, time.process_time() - process
    del batch, targets  # the next loader's time is not to free this one's memory
    print(f"{name:9} {thread / images / 3e-6:6.1f} of {process / images / 3e-6:6.1f} microseconds of CPU time an image: "
          f"{100 * thread / process:.1f}%")
