#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The rules of dataset/dataset.h for splits and subsets once more, independently: prints what test_dataset.c expects."""
SPLIT, SUBSET = 6, 10
M32, M64 = 2**32 - 1, 2**64 - 1


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [p1 >> 32 ^ c[1] ^ k[0], p1 & M32, p0 >> 32 ^ c[3] ^ k[1], p0 & M32]
        k = [k[0] + 0x9E3779B9 & M32, k[1] + 0xBB67AE85 & M32]
    return c


def ticket(seed, key, use):
    fnv = 0xCBF29CE484222325
    for byte in key.encode():
        fnv = (fnv ^ byte) * 0x100000001B3 & M64
    a, b = fnv & 2**48 - 1, fnv >> 48
    counter = [0, use << 24 | (b >> 32) << 16 | a >> 32, b & M32, a & M32]
    out = philox(counter, [seed & M32, seed >> 32])
    return out[0] << 32 | out[1]


def validation(seed, fraction, keys):
    count = max(int(fraction * len(keys) + 0.5), len(keys) > 1)
    return sorted(sorted(keys, key=lambda key: ticket(seed, key, SPLIT))[:count])


def subset(seed, fraction, keys):
    count = max(int(fraction * len(keys) + 0.5), 1)
    return sorted(sorted(keys, key=lambda key: ticket(seed, key, SUBSET))[:count])


for seed in 0, 2**40 + 7:
    print(seed, *validation(seed, 0.3, [f"class0/{i:03}" for i in range(10)]))
    print(seed, *subset(seed, 0.3, [f"train/a/{i:03}" for i in range(10)]))
